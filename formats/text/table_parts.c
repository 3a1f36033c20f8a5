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

/* ---- which columns ---- */
static bool is_used(uint32_t column, const mri_table_used *used)
{
    return (int)column == used->image || (int)column == used->label ||
           mri_table_numbers_has(used->numbers, column);
}

static void add_column(mri_table_parts *p, const mri_csv *c, uint32_t at, bool header)
{
    size_t bytes;
    char raw[MRI_TABLE_COLUMN_BYTES / 4];
    const char *text = mri_csv_trimmed(mri_csv_place(c, at), &bytes);
    if (p->count == MRI_TABLE_PART_COLUMNS) return;
    mri_part_column *column = &p->column[p->count++];
    *column = (mri_part_column){.at = at};
    for (size_t k = 0; header && k < MRI_ARRAY_COUNT(yes_columns); k++)
        if (is_text(text, bytes, yes_columns[k].name)) column->if_yes = yes_columns[k].part;
    snprintf(raw, sizeof raw, "%.*s", (int)mri_min_u64(bytes, sizeof raw - 1), text);
    if (header) mr_text_shown(raw, column->name, sizeof column->name);
    else snprintf(column->name, sizeof column->name, "%u", at + 1);
}

static int add_usual(mri_table_parts *p, const mri_csv *c, const mri_table_used *used, mr_error *err)
{
    const size_t words = MRI_ARRAY_COUNT(word_columns), all = words + MRI_ARRAY_COUNT(yes_columns);
    int rc = MR_OK;
    for (size_t k = 0; !rc && k < all; k++) {
        const char *name = k < words ? word_columns[k] : yes_columns[k - words].name;
        const int at = mri_csv_find_name(c, name, strlen(name));
        if (at < 0 || is_used((uint32_t)at, used)) continue;
        add_column(p, c, (uint32_t)at, true);
        rc = mri_csv_named_once(c, (uint32_t)at, false, "--split-key", err);
    }
    return rc;
}

bool mri_table_parts_is_name(const char *name)
{
    const size_t bytes = strlen(name);
    bool found = is_one_of(name, bytes, word_columns, MRI_ARRAY_COUNT(word_columns));
    for (size_t k = 0; k < MRI_ARRAY_COUNT(yes_columns); k++)
        found |= is_text(name, bytes, yes_columns[k].name);
    return found;
}

/* "NAME" or "NAME=VALUE"; of a table without names the number of a column, from 1. */
static int find_asked(mri_table_parts *p, const mri_csv *c, bool header, const char *key, int *at,
                      mr_error *err)
{
    const char *equals = strrchr(key, '=');
    const size_t bytes = equals ? (size_t)(equals - key) : strlen(key);
    if (equals && (equals[1] == '\0' || strlen(equals + 1) >= sizeof p->value))
        return mr_error_set(err, MR_EINVAL, "split key \"%.80s\": expected NAME or NAME=VALUE", key);
    if (equals) snprintf(p->value, sizeof p->value, "%s", equals + 1);
    *at = header ? mri_csv_find_name(c, key, bytes) : -1;
    if (*at >= 0) return mri_csv_named_once(c, (uint32_t)*at, true, "--split-key", err);
    if (bytes > 0 && bytes < 6 && strspn(key, "0123456789") >= bytes) {
        const int number = (int)strtol(key, NULL, 10);
        if (number >= 1 && (uint32_t)number <= c->count) *at = number - 1;
    }
    if (*at >= 0) return MR_OK;
    return mri_text_error_at(&c->text, err, MR_EINVAL, c->line,
                             "no column %.*s for the part of a row (--split-key)", (int)bytes, key);
}

static int add_asked(mri_table_parts *p, const mri_csv *c, bool header, const char *key,
                     const mri_table_used *used, mr_error *err)
{
    int at = -1;
    const int rc = find_asked(p, c, header, key, &at, err);
    if (rc) return rc;
    if (is_used((uint32_t)at, used))
        return mri_text_error_at(&c->text, err, MR_EINVAL, c->line,
                                 "column %d cannot say the part and be picture, class or target at once",
                                 at + 1);
    add_column(p, c, (uint32_t)at, header);
    return MR_OK;
}

int mri_table_parts_choose(mri_table_parts *p, const mri_csv *c, bool header, const char *key,
                           const mri_table_used *used, mr_error *err)
{
    *p = (mri_table_parts){.asked = key != NULL};
    if (key && strcmp(key, "none") == 0) return MR_OK;
    if (key) return add_asked(p, c, header, key, used, err);
    return header ? add_usual(p, c, used, err) : MR_OK;
}

/* ---- rows ---- */
typedef enum answer { NO_ANSWER, NO, YES } answer;

static answer answer_of(const char *text, size_t bytes)
{
    return is_one_of(text, bytes, yes_words, MRI_ARRAY_COUNT(yes_words)) ? YES
           : is_one_of(text, bytes, no_words, MRI_ARRAY_COUNT(no_words)) ? NO
                                                                         : NO_ANSWER;
}

static const char *text_of(const mri_part_column *column, const mri_csv *row, size_t *bytes)
{
    return mri_csv_trimmed(mri_csv_place(row, column->at), bytes);
}

/* By this column alone; MRI_NO_PART: the value is of no part. */
static mri_part part_of(const mri_table_parts *p, const mri_part_column *column, const mri_csv *row)
{
    size_t bytes;
    const char *text = text_of(column, row, &bytes);
    if (p->value[0]) return is_text(text, bytes, p->value) ? MRI_VALIDATION : MRI_TRAIN;
    if (column->if_yes == MRI_NO_PART) return mri_part_of_word(text, bytes);
    switch (answer_of(text, bytes)) {
    case YES: return column->if_yes;
    case NO: return column->if_yes == MRI_TRAIN ? MRI_TEST : MRI_TRAIN;
    default: return MRI_NO_PART;
    }
}

/* Does this column say another part than `part`? "No test" does not speak against validation. */
static bool speaks_against(const mri_table_parts *p, const mri_part_column *column, const mri_csv *row,
                           mri_part part)
{
    size_t bytes;
    if (column->if_yes == MRI_NO_PART) {
        const mri_part own = part_of(p, column, row);
        return own != MRI_NO_PART && own != part;
    }
    const char *text = text_of(column, row, &bytes);
    const answer a = answer_of(text, bytes);
    return a == YES ? column->if_yes != part : a == NO && column->if_yes == part;
}

/* By all columns of yes and no: the part of the one that is yes. Where none is, the part that has no column,
 * if that is train; one column that says no train is enough for test. *first, *second: columns that both are
 * yes, or twice the one that says no train while the others say no, too; else MRI_TABLE_PART_COLUMNS. */
static mri_part part_by_yes(const mri_table_parts *p, const mri_csv *row, uint32_t *first, uint32_t *second)
{
    uint32_t yes = MRI_TABLE_PART_COLUMNS, no_train = MRI_TABLE_PART_COLUMNS, columns = 0;
    *first = *second = MRI_TABLE_PART_COLUMNS;
    for (uint32_t k = 0; k < p->count; k++) {
        size_t bytes;
        const mri_part_column *column = &p->column[k];
        if (column->if_yes == MRI_NO_PART) continue;
        const char *text = text_of(column, row, &bytes);
        const answer a = answer_of(text, bytes);
        columns++;
        if (a == YES && yes == MRI_TABLE_PART_COLUMNS) yes = k;
        else if (a == YES && p->column[yes].if_yes != column->if_yes) *first = yes, *second = k;
        if (a == NO && column->if_yes == MRI_TRAIN) no_train = k;
    }
    if (yes < MRI_TABLE_PART_COLUMNS) return p->column[yes].if_yes;
    if (no_train == MRI_TABLE_PART_COLUMNS) return MRI_TRAIN;
    if (columns > 1) *first = *second = no_train;
    return MRI_TEST;
}

static bool is_by_yes(const mri_table_parts *p)
{
    return !p->value[0] && p->column[p->chosen].if_yes != MRI_NO_PART;
}

mri_part mri_table_parts_of(const mri_table_parts *p, const mri_csv *row)
{
    uint32_t first, second;
    if (p->count == 0) return MRI_NO_PART;
    return is_by_yes(p) ? part_by_yes(p, row, &first, &second) : part_of(p, &p->column[p->chosen], row);
}

static void see_other(mri_part_column *column, const char *text, size_t bytes)
{
    char shown[MRI_TABLE_VALUE_BYTES], raw[MRI_TABLE_VALUE_BYTES];
    if (column->other_count > MRI_TABLE_OTHERS) return;
    snprintf(raw, sizeof raw, "%.*s", (int)mri_min_u64(bytes, sizeof raw - 1), text);
    mr_text_shown(raw, shown, sizeof shown);
    for (uint32_t k = 0; k < column->other_count; k++)
        if (strcmp(column->other[k], shown) == 0) return;
    if (column->other_count < MRI_TABLE_OTHERS)
        memcpy(column->other[column->other_count], shown, sizeof shown);
    column->other_count++;
}

static void see_yes(mri_table_parts *p, const mri_csv *row)
{
    uint32_t first, second;
    p->yes_rows[part_by_yes(p, row, &first, &second)]++;
    if (p->unclear.line || first == MRI_TABLE_PART_COLUMNS) return;
    p->unclear.line = row->line;
    p->unclear.first = first;
    p->unclear.second = second;
}

void mri_table_parts_see(mri_table_parts *p, const mri_csv *row)
{
    bool yes = false;
    for (uint32_t k = 0; k < p->count; k++) /* too few columns are found again */
        if (p->column[k].at >= row->count) return;
    for (uint32_t k = 0; k < p->count; k++) {
        size_t bytes;
        mri_part_column *column = &p->column[k];
        const mri_part part = part_of(p, column, row);
        column->rows[part]++;
        yes |= column->if_yes != MRI_NO_PART;
        const char *text = text_of(column, row, &bytes);
        if (part == MRI_NO_PART) see_other(column, text, bytes);
        if (part == MRI_NO_PART || column->if_yes != MRI_NO_PART) continue;
        for (uint32_t other = k + 1; other < p->count; other++)
            if (speaks_against(p, &p->column[other], row, part) && p->differs[k][other].rows++ == 0)
                p->differs[k][other].line = row->line;
    }
    if (yes && !p->value[0]) see_yes(p, row);
}

/* ---- the resulting split ---- */
static const char *others_text(const mri_part_column *column, char *buf, size_t room)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; k < column->other_count && at < room; k++)
        at += (size_t)snprintf(buf + at, room - at, "%s%s", k ? ", " : "",
                               k == MRI_TABLE_OTHERS ? "..."
                               : column->other[k][0] ? column->other[k]
                                                     : "\"\"");
    return buf;
}

static bool speaks_of_parts(const mri_table_parts *p, const mri_part_column *column)
{
    const bool test = column->rows[MRI_VALIDATION] || column->rows[MRI_TEST], train = column->rows[MRI_TRAIN];
    if (column->other_count == 0) return train || test;
    return column->if_yes == MRI_NO_PART && (p->asked ? train || test : train && test);
}

static int no_parts(mri_table_parts *p, mr_source *src, mr_error *err)
{
    const mri_part_column *column = &p->column[0];
    char values[MRI_TABLE_OTHERS * (MRI_TABLE_VALUE_BYTES + 2) + 8];
    others_text(column, values, sizeof values);
    if (p->asked) {
        mr_error_set(
            err, MR_EFORMAT,
            "column %s says no part: expected train, val, test and the like, found %s; --split-key "
            "%s=VALUE makes the rows with VALUE the part to test with, and all others the train part",
            column->name, values, column->name);
        return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
    }
    mri_source_tell(src,
                    "column %s is called like one of parts, but has %s: all rows are taken; --split-key "
                    "%s=VALUE makes the rows with VALUE the part to test with, --split-key none says that it "
                    "is about something else",
                    column->name, values, column->name);
    p->count = 0;
    return MR_OK;
}

/* Columns of yes and no are taken together: none may have other values, and no row may have two parts. */
static int check_yes(const mri_table_parts *p, mr_source *src, mr_error *err)
{
    char values[MRI_TABLE_OTHERS * (MRI_TABLE_VALUE_BYTES + 2) + 8];
    const mri_part_column *chosen = &p->column[p->chosen];
    for (uint32_t k = 0; k < p->count; k++) {
        const mri_part_column *column = &p->column[k];
        if (column->if_yes == MRI_NO_PART || column->other_count == 0) continue;
        mr_error_set(
            err, MR_EFORMAT,
            "columns %s and %s say the part of a row, but %s has %s: write 1 or 0, or name the column "
            "to take (--split-key %s)",
            chosen->name, column->name, column->name, others_text(column, values, sizeof values),
            chosen->name);
        return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
    }
    if (p->unclear.line == 0) return MR_OK;
    const mri_part_column *a = &p->column[p->unclear.first], *b = &p->column[p->unclear.second];
    if (a == b)
        mr_error_set(
            err, MR_EFORMAT,
            "line %llu: column %s says no, and no other column says a part: write 1 into one of them, "
            "or name the column to take (--split-key %s)",
            (unsigned long long)p->unclear.line, a->name, a->name);
    else
        mr_error_set(err, MR_EFORMAT,
                     "line %llu: columns %s and %s both say yes, and a row has one part: write 0 into one of "
                     "them, or name the column to take (--split-key %s)",
                     (unsigned long long)p->unclear.line, a->name, b->name, a->name);
    return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
}

/* Other columns that say another part of some rows. */
static void tell_differing(const mri_table_parts *p, mr_source *src, uint64_t all)
{
    const char *name = p->column[p->chosen].name;
    for (uint32_t k = p->chosen + 1; k < p->count; k++) {
        const mri_part_column *other = &p->column[k];
        if (p->differs[p->chosen][k].rows == 0 || !speaks_of_parts(p, other)) continue;
        mri_source_tell(
            src,
            "columns %s and %s contradict each other in %llu of %llu rows, the first in line %llu: "
            "%s is taken; --split-key %s takes the other",
            name, other->name, (unsigned long long)p->differs[p->chosen][k].rows, (unsigned long long)all,
            (unsigned long long)p->differs[p->chosen][k].line, name, other->name);
    }
}

static void tell_columns(const mri_table_parts *p, mr_source *src, const uint64_t *rows, uint64_t all)
{
    char names[MRI_TABLE_PART_COLUMNS * (MRI_TABLE_COLUMN_BYTES + 2)];
    uint32_t count = 0;
    size_t at = 0;
    for (uint32_t k = p->chosen; k < p->count; k++) {
        if (k > p->chosen && !is_by_yes(p)) break;
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", count++ ? ", " : "", p->column[k].name);
    }
    mri_source_tell(
        src,
        "column%s %s say%s the part of a row: %llu of %llu rows are taken (%s); --split-key none takes all",
        count == 1 ? "" : "s", names, count == 1 ? "s" : "", (unsigned long long)rows[p->taken],
        (unsigned long long)all, mri_part_name(p->taken));
}

static int take(mri_table_parts *p, mr_source *src, const uint64_t *rows, const mr_source_config *cfg,
                mr_error *err)
{
    const mri_part_column *column = &p->column[p->chosen];
    const bool train = rows[MRI_TRAIN], val = rows[MRI_VALIDATION], test = rows[MRI_TEST];
    const bool there[MRI_PART_COUNT] = {[MRI_TRAIN] = train, [MRI_VALIDATION] = val, [MRI_TEST] = test};
    const bool want_test = cfg->split == MR_SPLIT_TEST || (cfg->split == MR_SPLIT_AUTO && !train);
    src->info.has_test = val || test;
    src->info.only_test = cfg->split == MR_SPLIT_AUTO && !train;
    p->taken = !want_test ? MRI_TRAIN : val ? MRI_VALIDATION : MRI_TEST;
    if (!there[p->taken]) return mri_source_no_part(src, want_test ? MRI_TEST : MRI_TRAIN, err);
    mri_source_set_parts(src, there, p->taken);
    uint64_t all = 0;
    for (int k = 0; k < MRI_PART_COUNT; k++) all += rows[k];
    tell_columns(p, src, rows, all);
    tell_differing(p, src, all);
    if (val && test && want_test)
        mri_source_tell(src,
                        "rows of the test part are left out: of validation and test the part to test with "
                        "is validation");
    if (column->other_count) {
        char values[MRI_TABLE_OTHERS * (MRI_TABLE_VALUE_BYTES + 2) + 8];
        mri_source_tell(src, "left out: %llu rows of no part (column %s has %s)",
                        (unsigned long long)rows[MRI_NO_PART], column->name,
                        others_text(column, values, sizeof values));
    }
    return MR_OK;
}

int mri_table_parts_settle(mri_table_parts *p, mr_source *src, const mr_source_config *cfg, bool lone,
                           mr_error *err)
{
    uint32_t parts = 0;
    if (p->count == 0) return MR_OK;
    if (p->value[0] && p->column[0].rows[MRI_VALIDATION] == 0) {
        mr_error_set(err, MR_EFORMAT, "column %s: no row has %s (--split-key)", p->column[0].name, p->value);
        return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
    }
    while (p->chosen < p->count && !speaks_of_parts(p, &p->column[p->chosen])) p->chosen++;
    if (p->chosen == p->count) return no_parts(p, src, err);
    const int rc = is_by_yes(p) ? check_yes(p, src, err) : MR_OK;
    if (rc) return rc;
    const uint64_t *rows = is_by_yes(p) ? p->yes_rows : p->column[p->chosen].rows;
    for (int k = MRI_TRAIN; k < MRI_PART_COUNT; k++) parts += rows[k] > 0;
    if (parts == 1 && p->column[p->chosen].other_count == 0 && !lone) { /* the table's own name says it */
        p->count = 0;
        return MR_OK;
    }
    return take(p, src, rows, cfg, err);
}
