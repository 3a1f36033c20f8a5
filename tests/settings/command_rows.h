/* tests/settings/command_rows.h: options of no struct of the library: options of several commands, then
 * options of a single one. See test_settings.c. */
static const mri_setting ranks[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/ranks.rows"
};
static const mri_setting elastic[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/elastic.rows"
};
static const mri_setting tuning[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/tuning.rows"
};
static const mri_setting tracing[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/tracing.rows"
};
static const mri_setting show[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/show.rows"
};
static const mri_setting output[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/output.rows"
};
static const mri_setting command_append[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/append.rows"
};
static const mri_setting command_bench[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/bench.rows"
};
static const mri_setting command_bench_exchange[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/bench_exchange.rows"
};
static const mri_setting command_bench_storage[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/bench_storage.rows"
};
static const mri_setting command_convert[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/convert.rows"
};
static const mri_setting command_convert_update[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/convert_update.rows"
};
static const mri_setting command_digest[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/digest.rows"
};
static const mri_setting command_eval[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/eval.rows"
};
static const mri_setting command_export[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/export.rows"
};
static const mri_setting command_export_weights[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/export_weights.rows"
};
static const mri_setting command_inspect[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/inspect.rows"
};
static const mri_setting command_lr_find[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/lr_find.rows"
};
static const mri_setting command_manifest[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/manifest.rows"
};
static const mri_setting command_plan[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/plan.rows"
};
static const mri_setting command_predict[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/predict.rows"
};
static const mri_setting command_profile[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/profile.rows"
};
static const mri_setting command_repair[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/repair.rows"
};
static const mri_setting command_report[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/report.rows"
};
static const mri_setting command_restore[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/restore.rows"
};
static const mri_setting command_stats[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/stats.rows"
};
static const mri_setting command_sweep[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/sweep.rows"
};
static const mri_setting command_synth[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/synth.rows"
};
static const mri_setting command_verify[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/verify.rows"
};
static const mri_setting command_watch[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/watch.rows"
};
static const mri_setting command_withdraw[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/withdraw.rows"
};
static const mri_setting command_withdraw_samples[] = {
#define MRI_OPTIONS(...) OPTION(__VA_ARGS__),
#include "settings/commands/withdraw_samples.rows"
};

/* Elements of a table of { type, title, rows, count, usual, command }. */
#define COMMAND_TABLE(title, rows)                                                                           \
    {                                                                                                        \
        NULL, title, rows, MRI_ARRAY_COUNT(rows), NULL, true                                                 \
    }
/* clang-format off */
#define COMMAND_TABLES \
    COMMAND_TABLE("Processes of a run", ranks), \
    COMMAND_TABLE("Servers and lost processes", elastic), \
    COMMAND_TABLE("Tuning", tuning), \
    COMMAND_TABLE("A part of a trace", tracing), \
    COMMAND_TABLE("The learning rate before a run", show), \
    COMMAND_TABLE("Output", output), \
    COMMAND_TABLE("`append`", command_append), \
    COMMAND_TABLE("`bench`", command_bench), \
    COMMAND_TABLE("`bench exchange`", command_bench_exchange), \
    COMMAND_TABLE("`bench storage`", command_bench_storage), \
    COMMAND_TABLE("`convert`, without a member", command_convert), \
    COMMAND_TABLE("`convert --update`", command_convert_update), \
    COMMAND_TABLE("`digest`", command_digest), \
    COMMAND_TABLE("`eval`", command_eval), \
    COMMAND_TABLE("`export`", command_export), \
    COMMAND_TABLE("`export-weights`", command_export_weights), \
    COMMAND_TABLE("`inspect`", command_inspect), \
    COMMAND_TABLE("`lr-find`", command_lr_find), \
    COMMAND_TABLE("`manifest`", command_manifest), \
    COMMAND_TABLE("`plan`", command_plan), \
    COMMAND_TABLE("`predict`", command_predict), \
    COMMAND_TABLE("`profile`", command_profile), \
    COMMAND_TABLE("`repair`", command_repair), \
    COMMAND_TABLE("`report`", command_report), \
    COMMAND_TABLE("`restore`", command_restore), \
    COMMAND_TABLE("`stats`", command_stats), \
    COMMAND_TABLE("`sweep`", command_sweep), \
    COMMAND_TABLE("`synth`", command_synth), \
    COMMAND_TABLE("`verify`", command_verify), \
    COMMAND_TABLE("`watch`", command_watch), \
    COMMAND_TABLE("`withdraw`", command_withdraw), \
    COMMAND_TABLE("`withdraw` and `restore`: samples", command_withdraw_samples)
/* clang-format on */
