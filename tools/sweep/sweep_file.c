/* tools/sweep/sweep_file.c: see sweep_file.h. */
#include "tools/sweep/sweep_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/page/run_log.h"

static const char *const of_the_sweep[] = {"json", "quiet", "help", "live"};

static int wrong(const sweep_plan *p, uint32_t line, mr_error *err)
{
    char what[sizeof err->text];
    snprintf(what, sizeof what, "%s", err->text);
    mr_error_set(err, MR_EFORMAT, "line %u: %s", line, what);
    return mr_error_at(err, p->path, MR_NOWHERE, MR_NOWHERE);
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

static int take_values(sweep_key *k, char *text, mr_error *err)
{
    uint32_t count = 1;
    for (const char *s = text; *s; s++) count += *s == '|';
    if (count > SWEEP_VALUES_MOST)
        return mr_error_set(err, MR_EFORMAT, "%u values: at most %d for one option", count,
                            SWEEP_VALUES_MOST);
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

static int take_key(sweep_plan *p, char *name, char *values, mr_error *err)
{
    sweep_key data = {.name = name};
    if (!is_name(name))
        return mr_error_set(err, MR_EFORMAT,
                            "expected the name of an option of train, without dashes; found '%s'", name);
    for (size_t i = 0; i < sizeof of_the_sweep / sizeof *of_the_sweep; i++)
        if (strcmp(name, of_the_sweep[i]) == 0)
            return mr_error_set(err, MR_EFORMAT, "'%s' is not for a file: the sweep sees to it", name);
    uint32_t unused;
    if (sweep_find(p, name, &unused) || (p->data && strcmp(name, "data") == 0))
        return mr_error_set(err, MR_EFORMAT,
                            "'%s' stands there twice: put its values on one line, between '|'", name);
    if (strcmp(name, "data") == 0) {
        const int rc = take_values(&data, values, err);
        if (rc == MR_OK && data.count == 1) p->data = data.value[0];
        free(data.value);
        return rc || p->data
                   ? rc
                   : mr_error_set(err, MR_EFORMAT, "'data' has %u values: one set a sweep", data.count);
    }
    if (p->count == SWEEP_KEYS_MOST)
        return mr_error_set(err, MR_EFORMAT, "more than %d options", SWEEP_KEYS_MOST);
    p->key[p->count].name = name;
    return take_values(&p->key[p->count++], values, err);
}

static int take_line(sweep_plan *p, char *line, mr_error *err)
{
    char *text = trimmed(line);
    if (!*text || *text == '#') return MR_OK;
    char *equals = strchr(text, '=');
    if (!equals)
        return mr_error_set(err, MR_EFORMAT, "expected OPTION = VALUE | VALUE ..., found '%.60s'", text);
    *equals = '\0';
    return take_key(p, trimmed(text), equals + 1, err);
}

static int count_runs(sweep_plan *p, mr_error *err)
{
    uint64_t runs = 1;
    for (uint32_t k = 0; k < p->count; k++) {
        runs *= p->key[k].count;
        if (runs > SWEEP_RUNS_MOST)
            return mr_error_set(err, MR_EFORMAT, "more than %d combinations", SWEEP_RUNS_MOST);
    }
    p->runs = (uint32_t)runs;
    return MR_OK;
}

int sweep_read(sweep_plan *p, const char *path, mr_error *err)
{
    size_t bytes;
    uint32_t line = 1, unused;
    *p = (sweep_plan){.path = path};
    int rc = run_log_bytes(path, &p->text, &bytes, err);
    if (rc) return rc;
    if (memchr(p->text, '\0', bytes)) {
        mr_error_set(err, MR_EFORMAT, "expected text, found a byte 0");
        return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    for (char *at = p->text, *next; at; at = next, line++) {
        next = strchr(at, '\n');
        if (next) *next++ = '\0';
        rc = take_line(p, at, err);
        if (rc) return wrong(p, line, err);
    }
    rc = count_runs(p, err);
    if (rc == MR_OK && !p->data)
        rc = mr_error_set(err, MR_EFORMAT, "expected a line 'data = SET', found none");
    if (rc == MR_OK && !sweep_find(p, "model", &unused))
        rc = mr_error_set(err, MR_EFORMAT, "expected a line 'model = NAME | ...', found none");
    return rc ? mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

void sweep_free(sweep_plan *p)
{
    for (uint32_t k = 0; k < p->count; k++) free(p->key[k].value);
    free(p->text);
    *p = (sweep_plan){.path = NULL};
}

uint32_t sweep_value(const sweep_plan *p, uint32_t at, uint32_t k)
{
    for (uint32_t i = p->count; i-- > k + 1;) at /= p->key[i].count;
    return at % p->key[k].count;
}

const char *sweep_text(const sweep_plan *p, uint32_t at, uint32_t k)
{
    return p->key[k].value[sweep_value(p, at, k)];
}

const sweep_key *sweep_find(const sweep_plan *p, const char *name, uint32_t *k)
{
    for (*k = 0; *k < p->count; ++*k)
        if (strcmp(p->key[*k].name, name) == 0) return &p->key[*k];
    return NULL;
}

/* FNV-1a; a zero between words. */
static uint64_t hash_word(uint64_t h, const char *word)
{
    do h = (h ^ (unsigned char)*word) * 0x100000001B3u;
    while (*word++);
    return h;
}

void sweep_name(const sweep_plan *p, uint32_t at, char name[SWEEP_NAME_BYTES])
{
    uint64_t h = hash_word(0xCBF29CE484222325u, p->data);
    for (uint32_t k = 0; k < p->count; k++) {
        const char *value = sweep_text(p, at, k);
        if (strcmp(value, "-") == 0) continue;
        h = hash_word(hash_word(h, p->key[k].name), value);
    }
    snprintf(name, SWEEP_NAME_BYTES, "%016" PRIx64, h);
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

char **sweep_words(const sweep_plan *p, uint32_t at, const char *program)
{
    const char *const first[] = {program, "train", p->data};
    static const char *const last[] = {"--json", "--quiet"};
    char name[SWEEP_NAME_BYTES];
    const size_t most = 6 + 2 * (size_t)p->count;
    size_t bytes = strlen(program) + strlen(p->data) + 64;
    sweep_name(p, at, name);
    for (uint32_t k = 0; k < p->count; k++)
        bytes += strlen(p->key[k].name) + 3 + fill_in(NULL, sweep_text(p, at, k), name);
    char **word = malloc(most * sizeof *word + bytes), *room = word ? (char *)(word + most) : NULL;
    size_t n = 0;
    if (!word) return NULL;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) word[n++] = copy_word(&room, first[i]);
    for (uint32_t k = 0; k < p->count; k++) {
        const char *value = sweep_text(p, at, k);
        if (strcmp(value, "-") == 0) continue;
        word[n++] = room;
        room += sprintf(room, "--%s", p->key[k].name) + 1;
        if (strcmp(value, "+") == 0) continue;
        word[n++] = room;
        room += fill_in(room, value, name);
    }
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) word[n++] = copy_word(&room, last[i]);
    word[n] = NULL;
    return word;
}
