/* tests/settings/test_settings.c: rows of settings: each is whole, its default is in its range and the
 * library's, texts become values and back, and docs/settings.md has the table that follows from them. With
 * MILLRACE_UPDATE set the page is written. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"
#include "millrace/convert.h"
#include "millrace/train.h"
#include "mrt.h"
#include "settings/setting.h"

/* An option from which the command makes members: of no struct here. */
#define OPTION(name, kind_, ...)                                                                             \
    {                                                                                                        \
        .kind = MRI_SETTING_##kind_, __VA_ARGS__                                                             \
    }
static const mri_setting batches[] = {
#define MRI_SETTING(...) MRI_ROW(mr_loader_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#define MRI_OPTION(...)  OPTION(__VA_ARGS__),
#include "settings/batches.rows"
};
static const mri_setting loader[] = {
#define MRI_SETTING(...) MRI_ROW(mr_loader_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#define MRI_OPTION(...)  OPTION(__VA_ARGS__),
#include "settings/loader.rows"
};
static const mri_setting decode[] = {
#define MRI_SETTING(...) MRI_ROW(mr_decode_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#define MRI_OPTION(...)  OPTION(__VA_ARGS__),
#include "settings/decode.rows"
};
static const mri_setting data[] = {
#define MRI_SETTING(...) MRI_ROW(mr_source_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#define MRI_OPTION(...)  OPTION(__VA_ARGS__),
#include "settings/data.rows"
};
static const mri_setting optimizer[] = {
#define MRI_SETTING(...) MRI_ROW(mr_update_desc, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#define MRI_OPTION(...)  OPTION(__VA_ARGS__),
#include "settings/optimizer.rows"
};
static const mri_setting updates[] = {
#define MRI_SETTING(...) MRI_ROW(mr_trainer_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#define MRI_OPTION(...)  OPTION(__VA_ARGS__),
#include "settings/updates.rows"
};
static const mri_setting targets[] = {
#define MRI_OPTION(...) OPTION(__VA_ARGS__),
#include "settings/targets.rows"
};
static const mri_setting beginning[] = {
#define MRI_OPTION(...) OPTION(__VA_ARGS__),
#include "settings/beginning.rows"
};
static const mri_setting choice[] = {
#define MRI_OPTION(...) OPTION(__VA_ARGS__),
#include "settings/choice.rows"
};
static const mri_setting computing[] = {
#define MRI_SETTING(...) MRI_ROW(mr_trainer_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#define MRI_OPTION(...)  OPTION(__VA_ARGS__),
#include "settings/computing.rows"
};
static const mri_setting devices[] = {
#define MRI_SETTING(...) MRI_ROW(mr_devices_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#define MRI_OPTION(...)  OPTION(__VA_ARGS__),
#include "settings/devices.rows"
};
static const mri_setting shares[] = {
#define MRI_OPTION(...) OPTION(__VA_ARGS__),
#include "settings/shares.rows"
};
static const mri_setting training[] = {
#define MRI_SETTING(...) MRI_ROW(mr_fit_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#define MRI_OPTION(...)  OPTION(__VA_ARGS__),
#include "settings/training.rows"
};
static const mri_setting goal[] = {
#define MRI_SETTING(...) MRI_ROW(mr_fit_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#define MRI_OPTION(...)  OPTION(__VA_ARGS__),
#include "settings/goal.rows"
};
static const mri_setting reports[] = {
#define MRI_SETTING(...) MRI_ROW(mr_fit_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#define MRI_OPTION(...)  OPTION(__VA_ARGS__),
#include "settings/reports.rows"
};
static const mri_setting convert[] = {
#define MRI_SETTING(...) MRI_ROW(mr_convert_config, __VA_ARGS__),
#define MRI_MEMBER       MRI_SETTING
#define MRI_OPTION(...)  OPTION(__VA_ARGS__),
#include "settings/convert.rows"
};
#include "command_rows.h"

static const char *const kept[] = {
#define MRI_KEPT(member, kind, ...) #member,
#define MRI_KEPT_TEXT               MRI_KEPT
#include "settings/updates.rows"
#define MRI_KEPT(member, kind, ...) #member,
#define MRI_KEPT_TEXT               MRI_KEPT
#include "settings/batches.rows"
#define MRI_KEPT(member, kind, ...) #member,
#include "settings/decode.rows"
#define MRI_KEPT(member, kind, ...) #member,
#include "settings/goal.rows"
};

static mr_loader_config loader_usual;
static mr_decode_config decode_usual;
static mr_trainer_config trainer_usual;
static mr_source_config source_usual;
static mr_devices_config devices_usual;
static mr_fit_config fit_usual;
static mr_convert_config convert_usual;

/* A struct of any of the tables. */
typedef union any_config {
    mr_loader_config loader;
    mr_decode_config decode;
    mr_trainer_config trainer;
    mr_source_config source;
    mr_devices_config devices;
    mr_update_desc update;
    mr_fit_config fit;
    mr_convert_config convert;
    mri_cache_spec cache; /* the largest value of an option without a member */
} any_config;

static const struct {
    const char *type, *title;
    const mri_setting *rows;
    size_t count;
    const void *usual;
    bool command; /* no member, nothing that --resume refuses */
} tables[] = {
    {"mr_loader_config", "Delivered batches", batches, MRI_ARRAY_COUNT(batches), &loader_usual, false},
    {"mr_loader_config", "Making of batches", loader, MRI_ARRAY_COUNT(loader), &loader_usual, false},
    {"mr_decode_config", "Pictures", decode, MRI_ARRAY_COUNT(decode), &decode_usual, false},
    {"mr_source_config", "Data", data, MRI_ARRAY_COUNT(data), &source_usual, false},
    {"mr_update_desc", "Network and optimizer", optimizer, MRI_ARRAY_COUNT(optimizer), &trainer_usual.update,
     false},
    {"mr_trainer_config", "Updates", updates, MRI_ARRAY_COUNT(updates), &trainer_usual, false},
    {NULL, "Choice", choice, MRI_ARRAY_COUNT(choice), NULL, false},
    {NULL, "Targets", targets, MRI_ARRAY_COUNT(targets), NULL, false},
    {NULL, "Initial weights", beginning, MRI_ARRAY_COUNT(beginning), NULL, false},
    {"mr_trainer_config", "Computing", computing, MRI_ARRAY_COUNT(computing), &trainer_usual, false},
    {"mr_devices_config", "Devices", devices, MRI_ARRAY_COUNT(devices), &devices_usual, false},
    {NULL, "Shares of a batch", shares, MRI_ARRAY_COUNT(shares), NULL, false},
    {"mr_fit_config", "A training run", training, MRI_ARRAY_COUNT(training), &fit_usual, false},
    {"mr_fit_config", "Validation inside epochs", goal, MRI_ARRAY_COUNT(goal), &fit_usual, false},
    {"mr_fit_config", "Reports", reports, MRI_ARRAY_COUNT(reports), &fit_usual, false},
    {"mr_convert_config", "Conversion", convert, MRI_ARRAY_COUNT(convert), &convert_usual, false},
    COMMAND_TABLES,
};

static int take_defaults(void **state)
{
    (void)state;
    mr_loader_defaults(&loader_usual);
    mr_decode_defaults(&decode_usual);
    mr_trainer_defaults(&trainer_usual);
    trainer_usual.update.lr = trainer_usual.schedule.lr; /* the rate of the row; update.lr is 0 */
    mr_source_defaults(&source_usual);
    mr_devices_defaults(&devices_usual);
    mr_fit_defaults(&fit_usual);
    mr_convert_defaults(&convert_usual);
    return 0;
}

/* ---- rows ---- */

static bool is_kept(const mri_setting *s)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kept); k++)
        if (s->member && strcmp(kept[k], s->member) == 0) return true;
    return false;
}

static const char *name_of(const mri_setting *s) { return s->member ? s->member : s->option; }

static void every_file_of_rows_has_a_table(void **state)
{
    (void)state;
    const char *root = getenv("MRT_SOURCE_DIR");
    char pattern[4096];
    glob_t found;
    if (!root) fail_msg("MRT_SOURCE_DIR is not set: run by ctest");
    snprintf(pattern, sizeof pattern, "%s/settings/*.rows", root);
    MRT_EQ(glob(pattern, 0, NULL, &found), 0);
    snprintf(pattern, sizeof pattern, "%s/settings/commands/*.rows", root);
    MRT_EQ(glob(pattern, GLOB_APPEND, NULL, &found), 0);
    MRT_EQ(found.gl_pathc, MRI_ARRAY_COUNT(tables));
    globfree(&found);
}

static void rows_are_whole(void **state)
{
    (void)state;
    for (size_t t = 0; t < MRI_ARRAY_COUNT(tables); t++)
        for (size_t i = 0; i < tables[t].count; i++) {
            const mri_setting *s = &tables[t].rows[i];
            const bool chosen = s->kind == MRI_SETTING_CHOICE || s->kind == MRI_SETTING_EITHER ||
                                s->kind == MRI_SETTING_SET || s->kind == MRI_SETTING_CHOICE_EVERY;
            if (!s->since || chosen != (s->choices != NULL) || (s->option && !s->help) || s->least > s->most)
                fail_msg("%s: since, choices, help or range", name_of(s));
            if (s->changes == MRI_CHANGES_SPEED && s->resume != MRI_RESUME_FREE)
                fail_msg("%s changes no bit: --resume may take any", name_of(s));
            if (is_kept(s) != (s->kept_at > 0)) fail_msg("%s: MRI_KEPT and .kept_at go together", s->member);
            if (is_kept(s) && s->resume == MRI_RESUME_FREE)
                fail_msg("%s: checkpoints keep it, and --resume says nothing of it", s->member);
        }
}

static void defaults_are_in_their_ranges(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    for (size_t t = 0; t < MRI_ARRAY_COUNT(tables); t++) {
        any_config all = {0};
        char message[512];
        for (size_t i = 0; i < tables[t].count; i++) {
            const mri_setting *s = &tables[t].rows[i];
            any_config alone = {0}; /* of an option without a member: its value is at offset 0 */
            if (s->standard &&
                !mri_setting_parse(s, s->member ? &all : &alone, s->standard, message, sizeof message))
                fail_msg("%s: %s", name_of(s), message);
        }
        for (size_t i = 0; i < tables[t].count; i++)
            if (tables[t].rows[i].member)
                MRT_OK(mri_settings_check(&tables[t].rows[i], 1, &all, tables[t].type, &err), &err);
    }
}

static void the_library_has_the_defaults_of_the_rows(void **state)
{
    (void)state;
    for (size_t t = 0; t < MRI_ARRAY_COUNT(tables); t++)
        for (size_t i = 0; i < tables[t].count; i++) {
            const mri_setting *s = &tables[t].rows[i];
            char text[64], want[64] = "0";
            if (!s->member || (s->kind == MRI_SETTING_SIZE && !s->standard))
                continue; /* its help says which */
            any_config all = {0};
            mri_settings_fill(s, 1, &all);
            mri_setting_text(s, &all, want, sizeof want);
            mri_setting_text(s, tables[t].usual, text, sizeof text);
            if (strcmp(text, want) != 0) fail_msg("%s: the library has %s", s->member, text);
        }
}

static void what_is_out_of_range_is_named(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg = loader_usual;
    cfg.prefetch = 65536;
    MRT_EQ(mri_settings_check(loader, MRI_ARRAY_COUNT(loader), &cfg, "mr_loader_config", &err), MR_EINVAL);
    MRT_HAS(err.text, "mr_loader_config.prefetch is 65536: expected 0 to 65535 batches");
    cfg = loader_usual;
    cfg.depth = 0;
    MRT_EQ(mri_settings_check(loader, MRI_ARRAY_COUNT(loader), &cfg, "mr_loader_config", &err), MR_EINVAL);
    MRT_HAS(err.text, "mr_loader_config.depth is 0: expected 1 to 4096 reads");
    cfg = loader_usual;
    cfg.batch = 0;
    MRT_EQ(mri_settings_check(batches, MRI_ARRAY_COUNT(batches), &cfg, "mr_loader_config", &err), MR_EINVAL);
    MRT_HAS(err.text, "mr_loader_config.batch is 0: expected 1 to 4294967295 samples");
}

/* ---- texts ---- */

typedef struct every_kind {
    bool flag, either;
    uint32_t u32, choice, count, set;
    uint64_t u64, size;
    double real, seconds;
    float real32;
    const char *text;
    mri_cache_spec cache;
    uint32_t every;
} every_kind;

static const mri_setting kinds[] = {
    MRI_ROW(every_kind, flag, FLAG, .option = "flag"),
    MRI_ROW(every_kind, u32, U32, .option = "u32", .least = 1, .most = 9),
    MRI_ROW(every_kind, u64, U64, .option = "u64", .most = MRI_ANY),
    MRI_ROW(every_kind, real, REAL, .option = "real", .most = 1),
    MRI_ROW(every_kind, real32, FLOAT, .option = "float", .most = 1, .below = true),
    MRI_ROW(every_kind, size, SIZE, .option = "size", .least = 1, .most = MRI_ANY),
    MRI_ROW(every_kind, seconds, SECONDS, .option = "seconds", .most = 100),
    MRI_ROW(every_kind, text, TEXT, .option = "text"),
    MRI_ROW(every_kind, choice, CHOICE, .option = "choice", .choices = MRI_CHOICES("one", "two")),
    MRI_ROW(every_kind, either, EITHER, .option = "either", .choices = MRI_CHOICES("on", "off")),
    MRI_ROW(every_kind, count, COUNT_OR_OFF, .option = "count", .most = 9),
    MRI_ROW(every_kind, set, SET, .option = "set", .choices = MRI_CHOICES("one", "two", "three")),
    MRI_ROW(every_kind, cache, CACHE, .option = "cache"),
    MRI_ROW(every_kind, every, CHOICE_EVERY, .option = "every", .least = 1, .most = 9,
            .choices = MRI_CHOICES("one", "two:N", "three")),
};

static const mri_setting *kind_of(const char *name)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++)
        if (strcmp(kinds[k].option, name) == 0) return &kinds[k];
    fail_msg("no row %s", name);
    return NULL;
}

static void texts_become_values_and_back(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *back;
    } cases[] = {
        {"flag", "", "1"},
        {"u32", "9", "9"},
        {"u64", "18446744073709551615", "18446744073709551615"},
        {"real", "0.5", "0.5"},
        {"size", "1.5K", "1536"},
        {"size", "2MiB", "2097152"},
        {"size", "7", "7"},
        {"seconds", "250ms", "0.25"},
        {"seconds", "1min", "60"},
        {"text", "a b", "a b"},
        {"float", "0.1", "0.1"},
        {"set", "all", "all"},
        {"set", "three,one", "one,three"},
        {"set", "two", "two"},
        {"set", "one,two,three", "all"},
        {"choice", "two", "two"},
        {"either", "off", "off"},
        {"either", "on", "on"},
        {"count", "off", "off"},
        {"count", "3", "3"},
        {"every", "one", "one"},
        {"every", "two:9", "two:9"},
        {"every", "three", "three"},
        {"cache", "ram", "1"},
        {"cache", "disk:/a:b:1K", "2"},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        const mri_setting *s = kind_of(cases[i].name);
        every_kind all = {0};
        char message[512] = "", text[64];
        if (!mri_setting_parse(s, &all, cases[i].text, message, sizeof message)) fail_msg("%s", message);
        MRT_STR(mri_setting_text(s, &all, text, sizeof text), cases[i].back);
    }
    every_kind all = {0};
    char message[512];
    assert_true(mri_setting_parse(kind_of("cache"), &all, "disk:/a:b:1K", message, sizeof message));
    MRT_STR(all.cache.folder, "/a:b");
    MRT_EQ(all.cache.bytes, 1024);
}

static void texts_that_stand_for_nothing_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *message;
    } cases[] = {
        {"u32", "0", "--u32: expected 1 to 9, found '0'"},
        {"u32", "10", "--u32: expected 1 to 9, found '10'"},
        {"u32", " 3", "--u32: expected a whole number, found ' 3'"},
        {"u32", "3x", "--u32: expected a whole number, found '3x'"},
        {"u64", "-1", "--u64: expected a whole number, found '-1'"},
        {"u64", "18446744073709551616", "--u64: expected a whole number, found '18446744073709551616'"},
        {"real", "1.01", "--real: expected 0 to 1, found '1.01'"},
        {"real", "nan", "--real: expected a number, found 'nan'"},
        {"real", "", "--real: expected a number, found ''"},
        {"float", "1", "--float: expected 0 to below 1, found '1'"},
        {"float", "0.99999999999", "--float: expected 0 to below 1, found '0.99999999999'"},
        {"size", "0", "--size: expected 1 or more, found '0'"},
        {"size", "1Q", "--size: expected a size such as 4096, 64K or 1.5G, found '1Q'"},
        {"seconds", "soon", "--seconds: expected a time such as 10s or 250ms, found 'soon'"},
        {"text", "", "--text: expected a value, found ''"},
        {"choice", "three", "--choice: expected one of one, two; found 'three'"},
        {"either", "yes", "--either: expected one of on, off; found 'yes'"},
        {"count", "on", "--count: expected a whole number or off, found 'on'"},
        {"every", "two", "--every: expected two:N with N from 1 to 9, found 'two'"},
        {"every", "two:10", "--every: expected two:N with N from 1 to 9, found 'two:10'"},
        {"every", "two:0", "--every: expected two:N with N from 1 to 9, found 'two:0'"},
        {"every", "one:1", "--every: expected one of one, two:N, three; found 'one:1'"},
        {"every", "thr", "--every: expected one of one, two:N, three; found 'thr'"},
        {"cache",
         "ram:", "--cache: expected off, ram, ram:SIZE or disk:FOLDER:SIZE, such as ram:8G; found 'ram:'"},
        {"cache", "disk::1",
         "--cache: expected off, ram, ram:SIZE or disk:FOLDER:SIZE, such as ram:8G; found 'disk::1'"},
        {"cache", "disk",
         "--cache: expected off, ram, ram:SIZE or disk:FOLDER:SIZE, such as ram:8G; found 'disk'"},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        every_kind all = {0};
        char message[512] = "";
        assert_false(mri_setting_parse(kind_of(cases[i].name), &all, cases[i].text, message, sizeof message));
        MRT_STR(message, cases[i].message);
    }
}

/* ---- the page ---- */

static const char *const resumes[] = {[MRI_RESUME_FREE] = "free",
                                      [MRI_RESUME_TAKE] = "kept, may change",
                                      [MRI_RESUME_SAME] = "kept",
                                      [MRI_RESUME_OVERRIDE] = "kept, `--override`",
                                      [MRI_RESUME_AGAIN] = "again"};

static void put_range(FILE *f, const mri_setting *s)
{
    const bool has_range =
        s->kind != MRI_SETTING_FLAG && s->kind != MRI_SETTING_TEXT && s->kind != MRI_SETTING_CACHE;
    if (s->choices)
        for (size_t k = 0; s->choices[k]; k++) fprintf(f, "%s%s", k ? ", " : "", s->choices[k]);
    else if (has_range && s->most >= UINT32_MAX) fprintf(f, "%.15g or more", s->least);
    else if (has_range) fprintf(f, "%.15g to %.15g", s->least, s->most);
    if (s->unit) fprintf(f, " %s", s->unit);
}

static void put_row(FILE *f, const mri_setting *s, bool command)
{
    fprintf(f, "| `--%s` | ", s->option);
    if (s->member) fprintf(f, "`%s`", s->member);
    fprintf(f, "%s%s | ", command ? "" : " | ", s->standard ? s->standard : "");
    put_range(f, s);
    fprintf(f, " | %s | ", mri_changes_names[s->changes]);
    if (!command) fprintf(f, "%s | ", resumes[s->resume]);
    fprintf(f, "%s | ", s->since);
    for (const char *at = s->help; *at; at++) fprintf(f, "%s%c", *at == '|' ? "\\" : "", *at);
    fputs(" |\n", f);
}

static void put_tables(FILE *f)
{
    for (size_t t = 0; t < MRI_ARRAY_COUNT(tables); t++) {
        fprintf(f, "\n## %s", tables[t].title);
        if (tables[t].type) fprintf(f, " (`%s`)", tables[t].type);
        fputs("\n\n", f);
        fputs(tables[t].command
                  ? "| option | default | range | changes | since | |\n|---|---|---|---|---|---|\n"
                  : "| option | member | default | range | changes | `--resume` | since | |\n"
                    "|---|---|---|---|---|---|---|---|\n",
              f);
        for (size_t i = 0; i < tables[t].count; i++)
            if (tables[t].rows[i].option) put_row(f, &tables[t].rows[i], tables[t].command);
    }
}

/* Text before the first table is written by hand. */
static void the_page_follows_from_the_rows(void **state)
{
    (void)state;
    enum { MOST = 1 << 18 };
    const char *root = getenv("MRT_SOURCE_DIR");
    char path[4096], *page = calloc(1, MOST), *made = NULL;
    size_t bytes = 0;
    if (!root) fail_msg("MRT_SOURCE_DIR is not set: run by ctest");
    snprintf(path, sizeof path, "%s/docs/settings.md", root);
    FILE *f = fopen(path, "r");
    MRT_TRUE(f && fread(page, 1, MOST - 1, f) > 0 && fclose(f) == 0);
    char *first = strstr(page, "\n## ");
    MRT_TRUE(first != NULL);
    f = open_memstream(&made, &bytes);
    put_tables(f);
    fclose(f);
    const bool same = strcmp(first, made) == 0;
    if (!same && getenv("MILLRACE_UPDATE")) {
        f = fopen(path, "w");
        MRT_TRUE(f && fprintf(f, "%.*s%s", (int)(first - page), page, made) > 0 && fclose(f) == 0);
    } else if (!same) {
        fail_msg("docs/settings.md differs from the rows: MILLRACE_UPDATE=1 ctest -R '^settings$' writes it");
    }
    free(page);
    free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_of_rows_has_a_table),
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(defaults_are_in_their_ranges),
        cmocka_unit_test(the_library_has_the_defaults_of_the_rows),
        cmocka_unit_test(what_is_out_of_range_is_named),
        cmocka_unit_test(texts_become_values_and_back),
        cmocka_unit_test(texts_that_stand_for_nothing_are_refused),
        cmocka_unit_test(the_page_follows_from_the_rows),
    };
    return cmocka_run_group_tests(tests, take_defaults, NULL);
}
