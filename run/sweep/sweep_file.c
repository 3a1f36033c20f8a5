/* run/sweep/sweep_file.c: reads the file of a sweep; the words of its runs. */
#include "run/sweep/sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/handle.h"
#include "run/page/run_log.h"

static const char *const of_the_sweep[] = {"json", "quiet", "help", "live"};

static int wrong(const mr_sweep *s, uint32_t line, mr_error *err)
{
    char what[sizeof err->text];
    snprintf(what, sizeof what, "%s", err->text);
    mr_error_set(err, MR_EFORMAT, "line %u: %s", line, what);
    return mr_error_at(err, s->info.path, MR_NOWHERE, MR_NOWHERE);
}

static char *trimmed(char *s)
{
    while (*s == ' ' || *s == '\t') s++;
    char *end = s + strlen(s);
    while (end > s && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) end--;
    *end = '\0';
    return s;
}

static bool is_name(const char *s)
{
    if (*s < 'a' || *s > 'z') return false;
    for (; *s; s++)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') || *s == '-' || *s == '_')) return false;
    return true;
}

static int take_values(mri_sweep_key *k, char *text, mr_error *err)
{
    uint32_t count = 1;
    for (const char *s = text; *s; s++) count += *s == '|';
    if (count > MR_SWEEP_VALUES)
        return mr_error_set(err, MR_EFORMAT, "%u values: at most %d for one option", count, MR_SWEEP_VALUES);
    k->value = calloc(count, sizeof *k->value);
    if (!k->value) return mr_error_set(err, MR_ENOMEM, "out of memory");
    for (char *at = text, *next; at; at = next) {
        next = strchr(at, '|');
        if (next) *next++ = '\0';
        const char *value = trimmed(at);
        if (!*value)
            return mr_error_set(err, MR_EFORMAT, "'%s' has an empty value; '-' stands for \"without it\"",
                                k->name);
        for (uint32_t i = 0; i < k->count; i++)
            if (strcmp(k->value[i], value) == 0)
                return mr_error_set(err, MR_EFORMAT, "'%s' has the value '%s' twice", k->name, value);
        k->value[k->count++] = value;
    }
    return MR_OK;
}

static int take_key(mr_sweep *s, char *name, char *values, mr_error *err)
{
    mri_sweep_key data = {.name = name};
    if (!is_name(name))
        return mr_error_set(err, MR_EFORMAT,
                            "expected the name of an option of train, without dashes; found '%s'", name);
    for (size_t i = 0; i < sizeof of_the_sweep / sizeof *of_the_sweep; i++)
        if (strcmp(name, of_the_sweep[i]) == 0)
            return mr_error_set(err, MR_EFORMAT, "'%s' is not for a file: the sweep sees to it", name);
    uint32_t unused;
    if (mri_sweep_find(s, name, &unused) || (s->info.data && strcmp(name, "data") == 0))
        return mr_error_set(err, MR_EFORMAT,
                            "'%s' stands there twice: put its values on one line, between '|'", name);
    if (strcmp(name, "data") == 0) {
        const int rc = take_values(&data, values, err);
        if (rc == MR_OK && data.count == 1) s->info.data = data.value[0];
        free(data.value);
        return rc || s->info.data
                   ? rc
                   : mr_error_set(err, MR_EFORMAT, "'data' has %u values: one set a sweep", data.count);
    }
    if (s->info.options == MR_SWEEP_OPTIONS)
        return mr_error_set(err, MR_EFORMAT, "more than %d options", MR_SWEEP_OPTIONS);
    s->key[s->info.options].name = name;
    return take_values(&s->key[s->info.options++], values, err);
}

static int take_line(mr_sweep *s, char *line, mr_error *err)
{
    char *text = trimmed(line);
    if (!*text || *text == '#') return MR_OK;
    char *equals = strchr(text, '=');
    if (!equals)
        return mr_error_set(err, MR_EFORMAT, "expected OPTION = VALUE | VALUE ..., found '%.60s'", text);
    *equals = '\0';
    return take_key(s, trimmed(text), equals + 1, err);
}

static int count_runs(mr_sweep *s, mr_error *err)
{
    uint64_t runs = 1;
    for (uint32_t k = 0; k < s->info.options; k++) {
        runs *= s->key[k].count;
        if (runs > MR_SWEEP_RUNS)
            return mr_error_set(err, MR_EFORMAT, "more than %d combinations", MR_SWEEP_RUNS);
    }
    s->info.runs = (uint32_t)runs;
    return MR_OK;
}

static int read_lines(mr_sweep *s, mr_error *err)
{
    uint32_t line = 1;
    for (char *at = s->text, *next; at; at = next, line++) {
        next = strchr(at, '\n');
        if (next) *next++ = '\0';
        const int rc = take_line(s, at, err);
        if (rc) return wrong(s, line, err);
    }
    return MR_OK;
}

static int check_whole(mr_sweep *s, mr_error *err)
{
    uint32_t unused;
    int rc = count_runs(s, err);
    if (rc == MR_OK && !s->info.data)
        rc = mr_error_set(err, MR_EFORMAT, "expected a line 'data = SET', found none");
    if (rc == MR_OK && !mri_sweep_find(s, "model", &unused))
        rc = mr_error_set(err, MR_EFORMAT, "expected a line 'model = NAME | ...', found none");
    if (rc) return mr_error_at(err, s->path, MR_NOWHERE, MR_NOWHERE);
    s->result = calloc(s->info.runs, sizeof *s->result);
    if (!s->result) return mr_error_set(err, MR_ENOMEM, "out of memory for the results");
    for (uint32_t i = 0; i < s->info.runs; i++) mri_sweep_no_result(&s->result[i]);
    return MR_OK;
}

static int read_file(mr_sweep *s, const char *path, mr_error *err)
{
    size_t bytes;
    s->info.struct_size = sizeof s->info;
    s->info.path = s->path = strdup(path);
    if (!s->path) return mr_error_set(err, MR_ENOMEM, "out of memory");
    int rc = mri_run_log_bytes(path, &s->text, &bytes, err);
    if (rc) return rc;
    if (memchr(s->text, '\0', bytes)) {
        mr_error_set(err, MR_EFORMAT, "expected text, found a byte 0");
        return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    rc = read_lines(s, err);
    return rc ? rc : check_whole(s, err);
}

int mr_sweep_open(mr_sweep **out, const char *path, mr_error *err)
{
    mr_error mine = MR_ERROR_INIT;
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, path);
    mr_sweep *s = calloc(1, sizeof *s);
    if (!s) return mr_error_set(err, MR_ENOMEM, "out of memory for a sweep");
    const int rc = read_file(s, path, err ? err : &mine);
    if (rc) {
        mr_sweep_close(s);
        return rc;
    }
    *out = s;
    return MR_OK;
}

void mr_sweep_close(mr_sweep *s)
{
    if (!s) return;
    for (uint32_t k = 0; k < s->info.options; k++) free(s->key[k].value);
    free(s->result);
    free(s->path);
    free(s->text);
    free(s);
}

/* ---- its contents ---- */

const mr_sweep_info *mr_sweep_info_of(const mr_sweep *s) { return s ? &s->info : NULL; }

uint32_t mri_sweep_value(const mr_sweep *s, uint32_t run, uint32_t k)
{
    for (uint32_t i = s->info.options; i-- > k + 1;) run /= s->key[i].count;
    return run % s->key[k].count;
}

const char *mri_sweep_text(const mr_sweep *s, uint32_t run, uint32_t k)
{
    return s->key[k].value[mri_sweep_value(s, run, k)];
}

const mri_sweep_key *mri_sweep_find(const mr_sweep *s, const char *name, uint32_t *k)
{
    for (*k = 0; *k < s->info.options; ++*k)
        if (strcmp(s->key[*k].name, name) == 0) return &s->key[*k];
    return NULL;
}

const char *mr_sweep_option(const mr_sweep *s, uint32_t option, uint32_t *values)
{
    if (values) *values = 0;
    if (!s || option >= s->info.options) return NULL;
    if (values) *values = s->key[option].count;
    return s->key[option].name;
}

uint32_t mr_sweep_option_number(const mr_sweep *s, const char *name)
{
    uint32_t k;
    return s && name && mri_sweep_find(s, name, &k) ? k : UINT32_MAX;
}

const char *mr_sweep_value(const mr_sweep *s, uint32_t run, uint32_t option)
{
    return s && run < s->info.runs && option < s->info.options ? mri_sweep_text(s, run, option) : NULL;
}

/* FNV-1a; a zero between words. */
static uint64_t hash_word(uint64_t h, const char *word)
{
    do h = (h ^ (unsigned char)*word) * 0x100000001B3u;
    while (*word++);
    return h;
}

char *mr_sweep_run_name(const mr_sweep *s, uint32_t run, char *name)
{
    if (!s || !name || run >= s->info.runs) return NULL;
    uint64_t h = hash_word(0xCBF29CE484222325u, s->info.data);
    for (uint32_t k = 0; k < s->info.options; k++) {
        const char *value = mri_sweep_text(s, run, k);
        if (strcmp(value, "-") == 0) continue;
        h = hash_word(hash_word(h, s->key[k].name), value);
    }
    snprintf(name, MR_SWEEP_NAME_BYTES, "%016" PRIx64, h);
    return name;
}

/* value with the run's name for each {run}, to `to`; or how long it is, with NULL. */
static size_t fill_in(char *to, const char *value, const char *name)
{
    size_t bytes = 0;
    while (*value) {
        const bool is_run = strncmp(value, "{run}", 5) == 0;
        const char *from = is_run ? name : value;
        const size_t n = is_run ? strlen(name) : 1;
        if (to) memcpy(to + bytes, from, n);
        bytes += n;
        value += is_run ? 5 : 1;
    }
    if (to) to[bytes] = '\0';
    return bytes + 1;
}

/* word: room for a copy of text behind *room. */
static char *copy_word(char **room, const char *text)
{
    char *word = *room;
    *room = stpcpy(word, text) + 1;
    return word;
}

char **mr_sweep_words(const mr_sweep *s, uint32_t run, const char *program)
{
    if (!s || !program || run >= s->info.runs) return NULL;
    const char *const first[] = {program, "train", s->info.data};
    static const char *const last[] = {"--json", "--quiet"};
    char name[MR_SWEEP_NAME_BYTES];
    const size_t most = 6 + 2 * (size_t)s->info.options;
    size_t bytes = strlen(program) + strlen(s->info.data) + 64;
    mr_sweep_run_name(s, run, name);
    for (uint32_t k = 0; k < s->info.options; k++)
        bytes += strlen(s->key[k].name) + 3 + fill_in(NULL, mri_sweep_text(s, run, k), name);
    char **word = malloc(most * sizeof *word + bytes), *room = word ? (char *)(word + most) : NULL;
    size_t n = 0;
    if (!word) return NULL;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) word[n++] = copy_word(&room, first[i]);
    for (uint32_t k = 0; k < s->info.options; k++) {
        const char *value = mri_sweep_text(s, run, k);
        if (strcmp(value, "-") == 0) continue;
        word[n++] = room;
        room += sprintf(room, "--%s", s->key[k].name) + 1;
        if (strcmp(value, "+") == 0) continue;
        word[n++] = room;
        room += fill_in(room, value, name);
    }
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) word[n++] = copy_word(&room, last[i]);
    word[n] = NULL;
    return word;
}
