/* formats/text/table_parts.c: see table_parts.h. */
#include "formats/text/table_parts.h"

#include <stdio.h>
#include <strings.h>

#include "base/util.h"
#include "formats/text/csv.h"

static const char *const word_columns[] = {"split",      "set",      "subset",   "partition",
                                           "data_split", "data set", "data_set", "dataset",
                                           "phase",      "fold",     "split_set"};
static const struct {
    const char *name;
    mri_part part;
} yes_columns[] = {
    {"is_train", MRI_TRAIN},      {"is_training", MRI_TRAIN}, {"is_training_img", MRI_TRAIN},
    {"is_valid", MRI_VALIDATION}, {"is_val", MRI_VALIDATION}, {"is_validation", MRI_VALIDATION},
    {"is_test", MRI_TEST},
};
static const char *const yes_words[] = {"1", "true", "yes", "t", "y", "1.0"};
static const char *const no_words[] = {"0", "false", "no", "f", "n", "0.0"};

static bool is_text(const char *text, size_t bytes, const char *word)
{
    return strlen(word) == bytes && strncasecmp(text, word, bytes) == 0;
}

static bool is_one_of(const char *text, size_t bytes, const char *const *words, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (is_text(text, bytes, words[k])) return true;
    return false;
}

/* ---- which column ---- */
static bool is_used(int column, const int *used)
{
    while (*used >= 0 && *used != column) used++;
    return *used >= 0;
}

static int find_named(const mri_csv *c, const char *name, size_t name_bytes)
{
    for (uint32_t k = 0; k < c->count; k++) {
        size_t bytes;
        const char *text = mri_csv_trimmed(mri_csv_place(c, k), &bytes);
        if (bytes == name_bytes && strncasecmp(text, name, bytes) == 0) return (int)k;
    }
    return -1;
}

static int find_usual(mri_table_parts *p, const mri_csv *c, const int *used)
{
    int at = -1;
    for (size_t k = 0; at < 0 && k < MRI_ARRAY_COUNT(word_columns); k++) {
        at = find_named(c, word_columns[k], strlen(word_columns[k]));
        if (is_used(at, used)) at = -1;
    }
    for (size_t k = 0; at < 0 && k < MRI_ARRAY_COUNT(yes_columns); k++) {
        at = find_named(c, yes_columns[k].name, strlen(yes_columns[k].name));
        if (is_used(at, used)) at = -1;
    }
    (void)p;
    return at;
}

/* "NAME" or "NAME=VALUE"; of a table without names the number of a column, from 1. */
static int find_asked(mri_table_parts *p, const mri_csv *c, bool header, const char *key, mr_error *err)
{
    const char *equals = strrchr(key, '=');
    const size_t bytes = equals ? (size_t)(equals - key) : strlen(key);
    if (equals && (equals[1] == '\0' || strlen(equals + 1) >= sizeof p->value))
        return mr_error_set(err, MR_EINVAL, "split key \"%.80s\": expected NAME or NAME=VALUE", key);
    if (equals) snprintf(p->value, sizeof p->value, "%s", equals + 1);
    p->column = header ? find_named(c, key, bytes) : -1;
    if (p->column < 0 && bytes > 0 && bytes < 6 && strspn(key, "0123456789") >= bytes) {
        const int number = (int)strtol(key, NULL, 10);
        if (number >= 1 && (uint32_t)number <= c->count) p->column = number - 1;
    }
    if (p->column >= 0) return MR_OK;
    return mri_text_error_at(&c->text, err, MR_EINVAL, c->line,
                             "no column %.*s for the part of a row (--split-key)", (int)bytes, key);
}

int mri_table_parts_choose(mri_table_parts *p, const mri_csv *c, bool header, const char *key,
                           const int *used, mr_error *err)
{
    *p = (mri_table_parts){.column = -1};
    if (key && strcmp(key, "none") == 0) return MR_OK;
    p->asked = key != NULL;
    const int rc = key ? find_asked(p, c, header, key, err) : MR_OK;
    if (rc) return rc;
    if (!key && header) p->column = find_usual(p, c, used);
    if (p->column < 0) return MR_OK;
    if (is_used(p->column, used))
        return mri_text_error_at(&c->text, err, MR_EINVAL, c->line,
                                 "column %d cannot say the part and be picture, class or target at once",
                                 p->column + 1);
    size_t bytes;
    const char *text = mri_csv_trimmed(mri_csv_place(c, (uint32_t)p->column), &bytes);
    for (size_t k = 0; header && k < MRI_ARRAY_COUNT(yes_columns); k++)
        if (is_text(text, bytes, yes_columns[k].name)) p->if_yes = yes_columns[k].part;
    char raw[MRI_TABLE_COLUMN_BYTES / 4];
    snprintf(raw, sizeof raw, "%.*s", (int)bytes, text);
    if (header) mr_text_shown(raw, p->name, sizeof p->name);
    else snprintf(p->name, sizeof p->name, "%d", p->column + 1);
    return MR_OK;
}

/* ---- rows ---- */
/* False: the value is of no part. */
static bool part_of(const mri_table_parts *p, const char *text, size_t bytes, mri_part *out)
{
    *out = MRI_NO_PART;
    if (p->value[0]) *out = is_text(text, bytes, p->value) ? MRI_VALIDATION : MRI_TRAIN;
    else if (p->if_yes == MRI_NO_PART) *out = mri_part_of_word(text, bytes);
    else if (is_one_of(text, bytes, yes_words, MRI_ARRAY_COUNT(yes_words))) *out = p->if_yes;
    else if (is_one_of(text, bytes, no_words, MRI_ARRAY_COUNT(no_words)))
        *out = p->if_yes == MRI_TRAIN ? MRI_TEST : MRI_TRAIN;
    return *out != MRI_NO_PART;
}

mri_part mri_table_parts_of(const mri_table_parts *p, const mri_csv *row)
{
    size_t bytes;
    mri_part part;
    if (p->column < 0 || (uint32_t)p->column >= row->count) return MRI_NO_PART;
    const char *text = mri_csv_trimmed(mri_csv_place(row, (uint32_t)p->column), &bytes);
    part_of(p, text, bytes, &part);
    return part;
}

void mri_table_parts_see(mri_table_parts *p, const mri_csv *row)
{
    size_t bytes;
    mri_part part;
    char shown[MRI_TABLE_VALUE_BYTES], raw[MRI_TABLE_VALUE_BYTES];
    if (p->column < 0 || (uint32_t)p->column >= row->count) return; /* too few columns are found again */
    const char *text = mri_csv_trimmed(mri_csv_place(row, (uint32_t)p->column), &bytes);
    const bool known = part_of(p, text, bytes, &part);
    p->rows[part]++;
    if (known || p->other_count > MRI_TABLE_OTHERS) return;
    snprintf(raw, sizeof raw, "%.*s", (int)mri_min_u64(bytes, sizeof raw - 1), text);
    mr_text_shown(raw, shown, sizeof shown);
    for (uint32_t k = 0; k < p->other_count; k++)
        if (strcmp(p->other[k], shown) == 0) return;
    if (p->other_count < MRI_TABLE_OTHERS) memcpy(p->other[p->other_count], shown, sizeof shown);
    p->other_count++;
}

/* ---- the resulting split ---- */
static const char *others_text(const mri_table_parts *p, char *buf, size_t room)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; k < p->other_count && at < room; k++)
        at += (size_t)snprintf(buf + at, room - at, "%s%s", k ? ", " : "",
                               k == MRI_TABLE_OTHERS ? "..."
                               : p->other[k][0]      ? p->other[k]
                                                     : "\"\"");
    return buf;
}

static bool speaks_of_parts(const mri_table_parts *p)
{
    const bool test = p->rows[MRI_VALIDATION] || p->rows[MRI_TEST];
    if (p->other_count == 0) return p->rows[MRI_TRAIN] || test;
    return p->if_yes == MRI_NO_PART && (p->asked ? p->rows[MRI_TRAIN] || test : p->rows[MRI_TRAIN] && test);
}

static int no_parts(mri_table_parts *p, mr_source *src, mr_error *err)
{
    char values[MRI_TABLE_OTHERS * (MRI_TABLE_VALUE_BYTES + 2) + 8];
    others_text(p, values, sizeof values);
    if (p->asked) {
        mr_error_set(
            err, MR_EFORMAT,
            "column %s says no part: expected train, val, test and the like, found %s; --split-key "
            "%s=VALUE makes the rows with VALUE the part to test with, and all others the train part",
            p->name, values, p->name);
        return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
    }
    mri_source_tell(src,
                    "column %s is called like one of parts, but has %s: all rows are taken; --split-key "
                    "%s=VALUE makes the rows with VALUE the part to test with, --split-key none says that it "
                    "is about something else",
                    p->name, values, p->name);
    p->column = -1;
    return MR_OK;
}

static int take(mri_table_parts *p, mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    const bool train = p->rows[MRI_TRAIN], val = p->rows[MRI_VALIDATION], test = p->rows[MRI_TEST];
    const bool there[MRI_PART_COUNT] = {[MRI_TRAIN] = train, [MRI_VALIDATION] = val, [MRI_TEST] = test};
    const bool want_test = cfg->split == MR_SPLIT_TEST || (cfg->split == MR_SPLIT_AUTO && !train);
    src->info.has_test = val || test;
    src->info.only_test = cfg->split == MR_SPLIT_AUTO && !train;
    p->taken = !want_test ? MRI_TRAIN : val ? MRI_VALIDATION : MRI_TEST;
    if (!there[p->taken]) return mri_source_no_part(src, want_test ? MRI_TEST : MRI_TRAIN, err);
    mri_source_set_parts(src, there, p->taken);
    uint64_t all = 0;
    for (int k = 0; k < MRI_PART_COUNT; k++) all += p->rows[k];
    mri_source_tell(
        src, "column %s says the part of a row: %llu of %llu rows are taken (%s); --split-key none takes all",
        p->name, (unsigned long long)p->rows[p->taken], (unsigned long long)all, mri_part_name(p->taken));
    if (val && test && want_test)
        mri_source_tell(src,
                        "rows of the test part are left out: of validation and test the part to test with "
                        "is validation");
    if (p->other_count) {
        char values[MRI_TABLE_OTHERS * (MRI_TABLE_VALUE_BYTES + 2) + 8];
        mri_source_tell(src, "left out: %llu rows of no part (column %s has %s)",
                        (unsigned long long)p->rows[MRI_NO_PART], p->name,
                        others_text(p, values, sizeof values));
    }
    return MR_OK;
}

int mri_table_parts_settle(mri_table_parts *p, mr_source *src, const mr_source_config *cfg, bool lone,
                           mr_error *err)
{
    uint32_t parts = 0;
    if (p->column < 0) return MR_OK;
    for (int k = MRI_TRAIN; k < MRI_PART_COUNT; k++) parts += p->rows[k] > 0;
    if (p->value[0] && p->rows[MRI_VALIDATION] == 0) {
        mr_error_set(err, MR_EFORMAT, "column %s: no row has %s (--split-key)", p->name, p->value);
        return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
    }
    if (!speaks_of_parts(p)) return no_parts(p, src, err);
    if (parts == 1 && p->other_count == 0 && !lone) { /* the table's own name says it */
        p->column = -1;
        return MR_OK;
    }
    return take(p, src, cfg, err);
}
