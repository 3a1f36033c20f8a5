/* tools/facts/chosen.c: see chosen.h. */
#include "tools/facts/chosen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/facts/match_set.h"

static const char note_begins[] = "{\"event\": \"choice\", \"options\": \"";

/* ---- the text ---- */
static void add(FILE *out, const char *option, const char *value)
{
    if (value) fprintf(out, "%s--%s '%s'", ftell(out) ? " " : "", option, value);
}

static void add_sample(FILE *out, const choose_args *c)
{
    char number[32];
    if (!c->sample) return;
    snprintf(number, sizeof number, "%" PRIu64, c->sample);
    add(out, "sample", number);
    snprintf(number, sizeof number, "%" PRIu64, c->sample_seed);
    add(out, "sample-seed", number);
}

/* Classes are compared by their names when a set is updated. */
static int options_text(char **out, const choose_args *c, const data_args *d)
{
    static const char *const copies[] = {NULL, "bytes", "pixels"};
    size_t bytes;
    FILE *text = open_memstream(out, &bytes);
    if (!text) return exit_no_memory("the options that choose samples");
    add(text, "take", d->take);
    if (c) {
        add(text, "take-each", c->take_each);
        add(text, "where", c->where);
        add(text, "dedup", copies[c->dedup]);
        add_sample(text, c);
    }
    return fclose(text) == 0 ? EXIT_DONE : exit_no_memory("the options that choose samples");
}

static int note_of(char **out, const char *options)
{
    size_t bytes;
    FILE *text = open_memstream(out, &bytes);
    if (!text) return exit_no_memory("the options that choose samples");
    json_line j = json_begin(text, "choice");
    json_text(&j, "options", options);
    json_end(&j);
    if (fclose(text) != 0) return exit_no_memory("the options that choose samples");
    (*out)[bytes - 1] = '\0'; /* the line's end */
    return EXIT_DONE;
}

int chosen_note(char **out, const choose_args *choose, const data_args *data)
{
    char *options = NULL;
    *out = NULL;
    int status = options_text(&options, choose, data);
    if (!status && options[0]) status = note_of(out, options);
    free(options);
    return status;
}

/* ---- the set's ---- */
/* Of a provenance, "--where 'width>=64'" as it stands in JSON; to be freed. NULL: nothing was chosen, or
 * nobody knows. */
static char *options_of(const char *provenance)
{
    const char *at = strstr(provenance, note_begins);
    const char *end = at ? strstr(at, "\"}") : NULL;
    at += at ? sizeof note_begins - 1 : 0;
    return end ? strndup(at, (size_t)(end - at)) : NULL;
}

static int read_options(char **out, const char *set, const data_args *data)
{
    mr_source *src;
    mr_mrec *m;
    mr_source_file file;
    mr_error err = MR_ERROR_INIT;
    *out = NULL;
    int status = match_open_set(&src, set, data);
    if (status) return status;
    if (mr_source_file_at(src, 0, &file) == MR_OK && mr_mrec_open(&m, file.path, 0, &err) == MR_OK) {
        *out = options_of(mr_mrec_info_of(m)->provenance);
        mr_mrec_close(m);
    }
    mr_source_close(src);
    return EXIT_DONE;
}

/* Shares and draws depend on the number of samples of the source, and that has changed. */
static bool is_drawn(const char *options)
{
    return strstr(options, "--take") || strstr(options, "--sample ");
}

int chosen_check(const char *set, const choose_args *choose, const data_args *data)
{
    char *was = NULL, *now = NULL;
    int status = read_options(&was, set, data);
    if (!status) status = chosen_note(&now, choose, data);
    char *same = now ? options_of(now) : NULL;
    if (!status && was && is_drawn(was)) {
        say("%s: the set was made with %s, which draws from all samples of its source: of a larger source it "
            "draws other ones, and an update would append samples that were left out. Put the new samples "
            "into a folder of their own, and append them (append SET FOLDER)",
            shown_text(set), shown_text(was));
        status = EXIT_FAILED;
    } else if (!status && was && (!same || strcmp(was, same) != 0)) {
        say("%s: the set was made with %s, and an update without it would append the samples that were left "
            "out: %s%s",
            shown_text(set), shown_text(was),
            !choose ? "update it by convert, with the same options (convert SRC SET --update)"
            : same  ? "expected the same options, found "
                    : "expected the same options",
            choose && same ? same : "");
        status = EXIT_FAILED;
    }
    free(same);
    free(now);
    free(was);
    return status;
}
