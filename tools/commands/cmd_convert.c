/* tools/commands/cmd_convert.c: `millrace convert SRC DST`: any data set into record files, TFRecord or tar.
 * The work is mr_convert(); here are its options, the list of bad samples, progress and the closing lines. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/advise/advise.h"
#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/commands/convert_update.h"
#include "tools/facts/card.h"
#include "tools/facts/choose.h"
#include "tools/facts/chosen.h"
#include "tools/session/setup.h"

enum { BAD_SKIP = 0, BAD_STOP = 1 };
enum { TO_NONE = -1 }; /* no mr_to */

typedef struct convert_args {
    const char *src, *dst;
#define MRI_SETTING(member, kind, ...) MRI_TYPE_##kind member;
#define MRI_OPTION                     MRI_SETTING
#include "settings/convert.rows"
    opt_given given;
    const char *card;
    set_update_args update;
    choose_args choose;
    data_args data;
    output_args output;
} convert_args;

typedef struct convert_run {
    const convert_args *args;
    const mr_source *src;
    progress_bar bar;
    mr_bad_list *bad;
    char bad_path[4096];
    uint64_t bad_count; /* of its lines, once it is closed */
    mr_choice_result chosen;
    char *note; /* the options that chose the samples, or NULL */
    uint64_t start_ns;
} convert_run;

static void on_progress(void *context, uint64_t done, uint64_t count, uint64_t bytes)
{
    convert_run *r = context;
    char text[32], note[64];
    mr_bad_list_begin(r->bad); /* by now the output was accepted */
    snprintf(note, sizeof note, "%s read", mri_size_text((double)bytes, text, sizeof text));
    progress_show(&r->bar, done, count, note);
}

static void on_bad(void *context, const mr_error *what, uint64_t substitute)
{
    (void)substitute; /* nothing takes its place */
    convert_run *r = context;
    mr_error placed = *what;
    mr_verify_place(r->src, &placed);
    mr_bad_list_add(r->bad, &placed);
}

static bool bad_told(void *context, uint64_t sample)
{
    const convert_run *r = context;
    return mr_bad_list_has(r->bad, sample);
}

static void on_space(void *context, uint64_t bytes, uint64_t free_bytes)
{
    const convert_run *r = context;
    space_say(bytes, free_bytes, r->args->output.quiet);
}

static const opt options[] = {
#define MRI_SETTING(...) MRI_ROW(convert_args, __VA_ARGS__),
#define MRI_OPTION       MRI_SETTING
#include "settings/convert.rows"
#define MRI_OPTIONS(...) OPT(convert_args, __VA_ARGS__),
#include "settings/commands/convert.rows"
};

/* Names of values of --to and --store, which are the first rows. */
static const char *to_text(uint32_t to) { return options[0].choices[to]; }

static const char *store_text(uint32_t store) { return options[1].choices[store]; }

static void fill_config(mr_convert_config *cfg, const convert_args *a, convert_run *r)
{
    mr_convert_defaults(cfg);
    setup_decode(&cfg->decode, &a->data);
    cfg->decode.channels = a->channels;
#define MRI_SETTING(member, kind, ...) cfg->member = a->member;
#include "settings/convert.rows"
    cfg->entries = !a->no_entries;
    cfg->check = !a->no_check;
    cfg->verify = !a->no_verify;
    if (a->bad == BAD_STOP) cfg->max_bad = 0;
    else if (a->max_bad) cfg->max_bad = a->max_bad;
    cfg->progress = on_progress;
    cfg->on_bad = on_bad;
    cfg->bad_told = bad_told;
    cfg->space = on_space;
    cfg->context = r;
    cfg->stop = &interrupt_flag;
}

/* The name of the files, as other commands take it. */
static void report_shards(const convert_args *a, uint32_t shards)
{
    const char *dst = shown_text(a->dst);
    const size_t n = strlen(dst);
    const int stem = (int)(n > 4 && strcmp(dst + n - 4, ".tar") == 0 ? n - 4 : n);
    if (a->to == MR_TO_MDS) return; /* the folder names the set */
    if (a->to == MR_TO_RECORDIO) {
        const int bytes = (int)(n > 4 && strcmp(dst + n - 4, ".rec") == 0 ? n - 4 : n);
        printf("named %.*s-00000.rec and so on, each with its .idx and .lst\n", bytes, dst);
    } else if (a->to == MR_TO_TFRECORD)
        printf("named %s-00000-of-%05" PRIu32 " and so on; any of them names the set\n", dst, shards);
    else printf("named \"%.*s-{000000..%06" PRIu32 "}.tar\"\n", stem, dst, shards - 1);
}

static void json_chosen(json_line *j, const mr_choice_result *c)
{
    if (!c->asked) return;
    json_object(j, "chosen");
    json_u64(j, "of", c->before);
    json_u64(j, "other_classes", c->other_classes);
    json_u64(j, "where", c->where);
    json_u64(j, "copies", c->copies);
    json_u64(j, "share", c->share);
    json_u64(j, "drawn", c->drawn);
    json_u64(j, "classes_renamed", c->renamed);
    json_u64(j, "classes_merged", c->merged);
    json_close_object(j);
}

static void report_renamed(const convert_run *r, const mr_convert_result *res)
{
    char name[512];
    if (res->renamed == 0) return;
    printf("%" PRIu64 " sample%s another key than %s: a key has no points and occurs once\n", res->renamed,
           res->renamed == 1 ? " has" : "s have", res->renamed == 1 ? "its name" : "their names");
    for (uint64_t k = 0; k < res->renamed && k < MR_CONVERT_RENAMED; k++) {
        mr_source_sample_name(r->src, res->renamed_sample[k], NULL, 0, name, sizeof name);
        printf("  sample %" PRIu64 ", %s\n", res->renamed_sample[k], shown_text(name));
    }
    if (res->renamed > MR_CONVERT_RENAMED)
        printf("  and %" PRIu64 " more\n", res->renamed - MR_CONVERT_RENAMED);
}

/* Of data that have none. */
static void report_no_label(const convert_run *r)
{
    if (r->args->to == MR_TO_RECORDIO && mr_source_info_of(r->src)->label_field < 0)
        say("the data have no classes, and RecordIO has a label for each picture: 0 was written");
}

static void report_names(const convert_run *r, const mr_convert_result *res)
{
    const uint64_t lost = res->class_names_lost;
    if (lost == 0) return;
    const bool in_samples = r->args->to == MR_TO_TFRECORD && mr_source_info_of(r->src)->image_field >= 0;
    printf("the name%s of %" PRIu64 " class%s%s %s not written: --classes-from FILE names %s again\n",
           lost == 1 ? "" : "s", lost, lost == 1 ? "" : "es", in_samples ? " without samples" : "",
           lost == 1 ? "was" : "were", lost == 1 ? "it" : "them");
}

/* Record files alone keep the names of columns that became targets. */
static uint32_t lost_columns(const convert_run *r)
{
    return r->args->to == MR_TO_MREC ? 0 : mr_source_columns(r->src, NULL, NULL);
}

static void report_columns(const convert_run *r)
{
    const uint32_t lost = lost_columns(r);
    if (lost)
        printf("the name%s of %" PRIu32 " column%s of targets %s not written: only record files keep names, "
               "by which data with other columns are refused\n",
               lost == 1 ? "" : "s", lost, lost == 1 ? "" : "s", lost == 1 ? "was" : "were");
}

static void report(const convert_run *r, const mr_convert_result *res)
{
    const convert_args *a = r->args;
    const double seconds = seconds_since(r->start_ns);
    const uint64_t made = res->records - res->resumed;
    const double rate = seconds > 0 ? (double)made / seconds : 0;
    if (a->output.json) {
        json_line j = json_begin(stdout, "convert");
        json_text(&j, "source", mr_source_info_of(r->src)->path);
        json_text(&j, "output", a->dst);
        json_text(&j, "to", to_text(a->to));
        json_u64(&j, "records", res->records);
        json_u64(&j, "bad", res->bad);
        json_u64(&j, "resumed", res->resumed);
        json_u64(&j, "transcoded", res->transcoded);
        json_u64(&j, "with_entries", res->with_entries);
        json_u64(&j, "coefficients", res->coefficients);
        json_u64(&j, "kept", res->kept);
        json_u64(&j, "class_names_lost", res->class_names_lost);
        json_u64(&j, "column_names_lost", lost_columns(r));
        json_u64(&j, "renamed", res->renamed);
        json_u64(&j, "bytes_in", res->bytes_in);
        json_u64(&j, "bytes_out", res->bytes_out);
        json_u64(&j, "shards", res->shards);
        json_chosen(&j, &r->chosen);
        json_real(&j, "seconds", seconds);
        json_real(&j, "records_per_s", rate);
        json_text(&j, "bad_list", res->bad ? r->bad_path : NULL);
        json_end(&j);
        return;
    }
    char in[32], out[32];
    if (a->resume && made == 0 && res->bytes_in == 0 && res->resumed == res->records) {
        printf("%s: was finished already, with %" PRIu64 " records, %s\n", shown_text(a->dst), res->records,
               mri_size_text((double)res->bytes_out, out, sizeof out));
        if (res->bad)
            printf("%" PRIu64 " bad sample%s passed over, listed in %s\n", res->bad, res->bad == 1 ? "" : "s",
                   shown_text(r->bad_path));
        return;
    }
    printf("%s: %" PRIu64 " records", shown_text(a->dst), res->records);
    if (res->shards > 1 || a->shard_bytes)
        printf(" in %" PRIu32 " file%s", res->shards, res->shards == 1 ? "" : "s");
    if (res->resumed) printf(", %" PRIu64 " of them from an earlier run", res->resumed);
    printf("; %s read, %s written; %.2f s, %.0f records/s\n",
           mri_size_text((double)res->bytes_in, in, sizeof in),
           mri_size_text((double)res->bytes_out, out, sizeof out), seconds, rate);
    if (a->shard_bytes && a->to != MR_TO_MREC) report_shards(a, res->shards);
    if (res->transcoded)
        printf("%" PRIu64 " progressive or arithmetic JPEGs made sequential, with the same coefficients\n",
               res->transcoded);
    if (res->coefficients) printf("%" PRIu64 " pictures stored as coefficients\n", res->coefficients);
    if (res->kept)
        printf("%" PRIu64 " pictures that cannot be coefficients (PNG, CMYK, ...) kept as they are\n",
               res->kept);
    if (res->bad)
        printf("%" PRIu64 " bad sample%s passed over, listed in %s\n", res->bad, res->bad == 1 ? "" : "s",
               shown_text(r->bad_path));
    report_names(r, res);
    report_columns(r);
    report_renamed(r, res);
}

/* A name that opens the result. */
static void name_result(const convert_args *a, uint32_t shards, char *out, size_t room)
{
    const char *dst = a->dst, *slash = strrchr(dst, '/'), *dot = strrchr(slash ? slash : dst, '.');
    const char *ending = a->to == MR_TO_TAR ? ".tar" : ".rec";
    const int stem = (int)(dot && strcmp(dot, ending) == 0 ? (size_t)(dot - dst) : strlen(dst));
    if (a->shard_bytes && a->to == MR_TO_TFRECORD) snprintf(out, room, "%s-00000-of-%05" PRIu32, dst, shards);
    else if (a->shard_bytes && (a->to == MR_TO_TAR || a->to == MR_TO_RECORDIO))
        snprintf(out, room, "%.*s-*%s", stem, dst, ending);
    else snprintf(out, room, "%s", dst);
}

static int describe(const convert_run *r, uint32_t shards)
{
    const convert_args *a = r->args;
    char set[4200];
    name_result(a, shards, set, sizeof set);
    const card_args about = {.path = a->card,
                             .set = set,
                             .part = mr_source_info_of(r->src)->parts.taken,
                             .workers = a->workers,
                             .force = a->force || a->resume,
                             .quiet = a->output.quiet};
    return card_write(&about);
}

static int convert(convert_run *r)
{
    const convert_args *a = r->args;
    mr_error err = MR_ERROR_INIT, list_err = MR_ERROR_INIT;
    mr_convert_config cfg;
    mr_convert_result res = {0};
    snprintf(r->bad_path, sizeof r->bad_path, "%s.bad.jsonl", a->dst);
    int rc = mr_bad_list_open(&r->bad, r->bad_path, r->src, a->resume, a->force, &err);
    if (rc) return exit_status(rc, &err);
    fill_config(&cfg, a, r);
    cfg.provenance = r->note;
    r->start_ns = clock_ns();
    progress_start(&r->bar, "convert", "samples", a->output.quiet);
    rc = mr_convert(r->src, a->dst, &cfg, &res, &err);
    progress_end(&r->bar);
    if (rc == MR_OK) mr_bad_list_begin(r->bad);
    r->bad_count = mr_bad_list_count(r->bad);
    const int list_rc = mr_bad_list_close(r->bad, &list_err);
    int status = exit_status(rc, &err);
    if (list_rc) {
        say_error(&list_err);
        status = EXIT_FAILED;
    }
    if (rc == MR_OK) {
        report(r, &res);
        report_no_label(r);
    } else if (r->bad_count)
        say("%" PRIu64 " bad sample%s listed in %s", r->bad_count, r->bad_count == 1 ? " is" : "s are",
            r->bad_path);
    if (status == EXIT_DONE && a->card) status = describe(r, res.shards);
    return status == EXIT_DONE && res.bad ? EXIT_BAD_SAMPLES : status;
}

/* ---- advice ---- */

/* Does an option of this command go with a form of it that takes few? */
static int check_taken(const convert_args *a, const char *const *taken, size_t count, const char *form)
{
    for (uint32_t i = 0; i < a->given.count; i++)
        for (size_t k = 0; k < OPT_COUNT(options); k++) {
            bool goes = strcmp(a->given.name[i], options[k].option) != 0;
            for (size_t t = 0; t < count; t++) goes = goes || strcmp(a->given.name[i], taken[t]) == 0;
            if (goes) continue;
            say("--%s does not go with %s", a->given.name[i], form);
            return EXIT_MISUSED;
        }
    return EXIT_DONE;
}

static int check_advise(const convert_args *a)
{
    static const char *const taken[] = {"advise", "augment", "workers", "channels"};
    if (a->dst) {
        say("--advise writes nothing: leave %s out", a->dst);
        return EXIT_MISUSED;
    }
    if (choose_asked(&a->choose)) {
        say("--advise measures the data as they are: leave the options that choose samples or classes out");
        return EXIT_MISUSED;
    }
    return check_taken(a, taken, OPT_COUNT(taken), "--advise, which says what to take");
}

static int check_augment(const char *text)
{
    mr_error err = MR_ERROR_INIT;
    mr_augment *augment;
    const int rc = mr_augment_create(&augment, text, true, &err);
    if (rc == MR_OK) mr_augment_destroy(augment);
    return setting_status(rc, &err);
}

static int run_advise(const convert_args *a)
{
    const advise_args about = {.src_text = a->src,
                               .augment = a->augment,
                               .data = &a->data,
                               .workers = a->workers,
                               .channels = a->channels,
                               .quiet = a->output.quiet,
                               .json = a->output.json};
    mr_source *src;
    int status = check_advise(a);
    if (status == EXIT_DONE && a->augment) status = check_augment(a->augment);
    if (status == EXIT_DONE) status = setup_source(&src, a->src, &a->data);
    if (status) return status;
    if (mr_source_info_of(src)->image_field < 0) advise_print_none(mr_source_info_of(src), a->output.json);
    else status = advise(src, &about);
    mr_source_close(src);
    return status;
}

/* ---- what DST is ---- */

/* The format that an ending of file names stands for; TO_NONE: one that convert cannot write. */
static const struct ending {
    const char *text;
    int to;
} endings[] = {
    {".mrec", MR_TO_MREC},
    {".tfrecord", MR_TO_TFRECORD},
    {".tfrecords", MR_TO_TFRECORD},
    {".tfrec", MR_TO_TFRECORD},
    {".record", MR_TO_TFRECORD},
    {".tar", MR_TO_TAR},
    {".mds", MR_TO_MDS},
    {".rec", MR_TO_RECORDIO},
    {".tar.gz", TO_NONE},
    {".tgz", TO_NONE},
    {".tfrecord.gz", TO_NONE},
    {".zip", TO_NONE},
    {".7z", TO_NONE},
    {".npz", TO_NONE},
    {".npy", TO_NONE},
    {".csv", TO_NONE},
    {".h5", TO_NONE},
    {".hdf5", TO_NONE},
    {".parquet", TO_NONE},
    {".lmdb", TO_NONE},
    {".beton", TO_NONE},
    {".json", TO_NONE},
    {".jsonl", TO_NONE},
    {".txt", TO_NONE},
    {".jpg", TO_NONE},
    {".jpeg", TO_NONE},
    {".png", TO_NONE},
    {".wds", TO_NONE},
};

static const struct ending *ending_of(const char *dst)
{
    const size_t n = strlen(dst);
    for (size_t k = 0; k < OPT_COUNT(endings); k++) {
        const size_t bytes = strlen(endings[k].text);
        if (n > bytes && strcasecmp(dst + n - bytes, endings[k].text) == 0) return &endings[k];
    }
    return NULL;
}

/* Without --to the ending of DST chooses the format. */
static int choose_to(convert_args *a)
{
    const bool given = options_was_given(&a->given, "to");
    const struct ending *e = a->dst ? ending_of(a->dst) : NULL;
    if (a->dst && strcmp(a->dst, "-") == 0) {
        say("-: convert cannot write to standard output, as it reads back its output; give DST "
            "a name, such as photos.mrec");
        return EXIT_MISUSED;
    }
    if (!e || (given && e->to == (int)a->to)) return EXIT_DONE;
    if (e->to == TO_NONE) {
        say("%s: convert cannot write %s files; expected a name that ends in .mrec, .tfrecord, .tar, .mds or "
            ".rec",
            a->dst, e->text);
        return EXIT_MISUSED;
    }
    if (given) {
        say("%s: the name ends in %s, and --to is %s; leave --to out, or give DST another name", a->dst,
            e->text, to_text(a->to));
        return EXIT_MISUSED;
    }
    a->to = (uint32_t)e->to;
    return EXIT_DONE;
}

/* ---- update ---- */
static int check_update(const convert_args *a)
{
    static const char *const taken[] = {"workers", "memory", "force", "no-space-check", "seed"};
    if (a->update.update)
        return check_taken(a, taken, OPT_COUNT(taken), "--update, which takes the settings that DST stores");
    if (!options_was_given(&a->given, "changed") && !options_was_given(&a->given, "gone")) return EXIT_DONE;
    say("--changed and --gone go with --update");
    return EXIT_MISUSED;
}

static int update(const convert_args *a, mr_source *src)
{
    const convert_update u = {.dst = a->dst,
                              .args = a->update,
                              .workers = a->workers,
                              .memory_bytes = a->memory_bytes,
                              .force = a->force,
                              .no_space_check = a->no_space_check,
                              .data = &a->data,
                              .choose = &a->choose,
                              .output = &a->output};
    return convert_update_run(&u, src);
}

/* What cannot go together, or is missing. */
static int check_args(const convert_args *a)
{
    if (!a->dst) {
        say("convert needs DST, the file to make; --advise says which form to make it in");
        return EXIT_MISUSED;
    }
    if (a->augment) {
        say("--augment goes with --advise: a conversion makes no random pictures");
        return EXIT_MISUSED;
    }
    if (a->center_square && (a->store != MR_STORE_RAW || a->resize == 0)) {
        say("--center-square needs --store raw and --resize N");
        return EXIT_MISUSED;
    }
    if (a->sample_index != MR_SAMPLE_INDEX_NONE && a->to != MR_TO_TAR) {
        say("--index wids: the index lists tar archives; add --to tar, or leave it out");
        return EXIT_MISUSED;
    }
    const int card_status = card_check(a->card, a->dst, a->force || a->resume);
    if (card_status) return card_status;
    if (a->to != MR_TO_MREC && a->resume) {
        say("--resume: a conversion with --to %s begins anew; only one to mrec goes on where it stopped",
            to_text(a->to));
        return EXIT_MISUSED;
    }
    if ((a->to != MR_TO_MREC && a->store == MR_STORE_COEF) ||
        (a->to != MR_TO_MREC && a->to != MR_TO_TFRECORD && a->store == MR_STORE_RAW)) {
        say("--store %s: --to %s has no place for it; leave it out, and pictures become files",
            store_text(a->store), to_text(a->to));
        return EXIT_MISUSED;
    }
    return EXIT_DONE;
}

/* ---- what does not follow a picture that changes its size ---- */

/* A picture, or rows of four numbers: maybe a mask, or boxes, under a name that does not say so. */
static bool looks_bound(const mr_value *v)
{
    if (v->type == MR_TYPE_TENSOR) return v->ndim == 2 && v->dim[1] == 4;
    return v->type == MR_TYPE_PIXELS || (v->type != MR_TYPE_INT && v->type != MR_TYPE_FLOAT && v->data &&
                                         mr_image_sniff(v->data, v->bytes) != 0);
}

/* Of the first sample: fields that keep their size and their positions beside a picture that does not. */
static void tell_unbound(const convert_args *a, const mr_source *src)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_error err = MR_ERROR_INIT;
    char names[512] = "";
    void *buffer = NULL;
    size_t room = 0;
    mr_sample sample;
    if (!a->resize || info->image_field < 0 || !info->count ||
        mr_source_read(src, 0, &buffer, &room, &sample, &err) != MR_OK) {
        free(buffer);
        return;
    }
    for (uint32_t k = 0; k < sample.value_count && k < info->field_count; k++) {
        const size_t at = strlen(names);
        if ((int)k == info->image_field || mr_field_role(info, k) != MR_ROLE_PLAIN ||
            !looks_bound(&sample.value[k]))
            continue;
        snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", info->fields[k].name);
    }
    if (names[0])
        say("%s: --resize leaves these fields as they are: %s. Masks and boxes follow their picture by their "
            "names: mask, boxes (docs/fields.md)",
            info->path, shown_text(names));
    free(buffer);
}

static int run(const void *args)
{
    convert_args own = *(const convert_args *)args, *a = &own;
    if (a->channels == 2) {
        say("--channels: expected 0, 1 or 3, found 2");
        return EXIT_MISUSED;
    }
    if (a->advise) return run_advise(a);
    int status = check_update(a);
    if (status == EXIT_DONE && !a->update.update) status = choose_to(a);
    if (status == EXIT_DONE) status = check_args(a);
    if (status) return status;
    convert_run r = {.args = a};
    mr_source *src;
    status = setup_source(&src, a->src, &a->data);
    if (status) return status;
    setup_tell_part(src, &a->data);
    r.src = src;
    status = setup_not_input("card", a->card, src);
    mr_decode_config decode;
    setup_decode(&decode, &a->data);
    const uint64_t all = mr_source_info_of(src)->count;
    if (status == EXIT_DONE) status = choose_samples(src, &a->choose, &decode, a->output.quiet, &r.chosen);
    if (status == EXIT_DONE && !a->update.update)
        status = chosen_note(&r.note, mr_source_info_of(src)->count < all ? &a->choose : NULL, &a->data);
    if (status == EXIT_DONE) tell_unbound(a, src);
    if (status == EXIT_DONE) status = a->update.update ? update(a, src) : convert(&r);
    free(r.note);
    mr_source_close(src);
    return status;
}

static const opt_group groups[] = {
    OPT_OWN_GROUP("Conversion", options),
    OPT_GROUP(set_update_options, convert_args, update),
    OPT_GROUP(choose_options, convert_args, choose),
    GROUP(DATA, convert_args, data),
    GROUP(OUTPUT, convert_args, output),
};

static const opt_positional positionals[] = {
    {"SRC", offsetof(convert_args, src), true,
     "a folder of pictures, TFRecords, tar archives, RecordIO, MDS, IDX, CIFAR, CSV, .npy, a record file"},
    {"DST", offsetof(convert_args, dst), false,
     "the output; .mrec, .tfrecord, .tar, .rec or .mds chooses the format"},
};

const command command_convert = {
    .name = "convert",
    .summary = "convert a data set to record files, TFRecords, tar, MDS or RecordIO",
    .text =
        "Writes SRC as a record file, or as files of another format. The same data and settings give the "
        "same bytes, for any number of workers and however often the run was interrupted and resumed. DST "
        "appears under its name when it is whole; until then it is DST.part.\nA JPEG keeps its bytes by "
        "default; 'export' writes the same file. From coefficients it makes a baseline JPEG with the same "
        "coefficients. Every picture is decoded once as a check. Pictures that fail, and labels outside the "
        "classes, are skipped and listed in DST.bad.jsonl; the exit status is then 3.\nWhere --resize, "
        "--center-square or --store raw (by EXIF orientation) move pixels, fields that are boxes, "
        "box_labels or masks by their names follow: boxes are cut, and dropped with their label where "
        "nothing is left, masks resized without mixing values. Boxes must be parts of the picture, 0 to 1, "
        "and masks numbers of 8 bits (gray or palette PNG). Other fields stay as they are.\nWith --to "
        "tfrecord, tar, mds or recordio picture files keep their bytes, pixels become PNG, coefficients "
        "JPEG; labels are the numbers of SRC; the output is read back and compared before it takes its "
        "name. An interrupted run leaves nothing, a killed one files named .part.\nTFRecord: "
        "image/encoded, image/format (jpeg, png, gif, bmp, webp, tiff, heic, avif; with --store raw: raw, "
        "uint8 in image/height x image/width x image/channels), image/class/label and image/class/text, "
        "field boxes as image/object/bbox/xmin, ymin, xmax, ymax with box_labels as "
        "image/object/class/label, a picture mask as image/segmentation/class/encoded; other fields under "
        "their names, whole numbers as int64, floating point as float: 64-bit ones are rounded to 32. A "
        "tensor of more or fewer than "
        "one dimension has its shape in NAME/shape.\ntar: KEY with the ending of the picture's kind (.jpg, "
        ".png, .gif, ...), KEY.cls, other fields as KEY.NAME with .txt, .npy, .png or .jpg where the name "
        "does not end so. KEY is the file's path below SRC where each sample is a file, else its number. "
        "The names of classes are in a member __classes__. --index wids refuses names of members of more "
        "than 100 bytes, which the package does not know.\nmds: DST is a folder with shard.00000.mds, ... "
        "and index.json, which is written last. Columns: image (encoding jpeg if the first picture is a "
        "JPEG, else png), label (int), other fields under their names; names of samples in sample.name, "
        "names of classes in index.json. Shards have up to 64 MiB unless --shard-size is given.\nrecordio: "
        "DST and, in place of its .rec, an index .idx and a list .lst with labels and names; the label is a "
        "float, field labels (f32) becomes packed labels, other fields are refused.\nThe output may not be "
        "the input, and may not lie inside a folder of pictures that is the input.",
    .examples = "  millrace convert photos photos.mrec\n"
                "  millrace convert photos small.mrec --resize 256 --quality 90\n"
                "  millrace convert photos fast.mrec --store coef --resize 400\n"
                "  millrace convert imagenet/train train.mrec --shard-size 4G --resume\n"
                "  millrace convert photos shards.mrec --update\n"
                "  millrace convert train.mrec train --to tfrecord --shard-size 128M\n"
                "  millrace convert photos part.mrec --where \"width>=64,height>=64\" --dedup bytes\n"
                "  millrace convert photos --advise\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(convert_args),
    .given_at = offsetof(convert_args, given),
    .alone = true,
    .run = run,
};
