/* settings/setting.h: a setting is one row. Private.
 *
 * The room settings/
 *   takes    rows of the files *.rows next to this one: a file for each subject, a row for each setting
 *   gives    the properties of a value: its default, whether it is in range, the meaning of a text
 *   callers  every room above. pipeline/ takes defaults and checks from the rows, tools/ takes options, help,
 *            and what --resume may change, python/native/ takes names, types and places of members
 *
 * A row is written once, as
 *
 *   MRI_SETTING(prefetch, COUNT_OR_OFF, .standard = "4", .most = 65535, .option = "prefetch", ...)
 *
 * and whoever includes the file says what MRI_SETTING makes of it: an element of a table, a member of a
 * struct, an assignment. Five words begin rows:
 *
 *   MRI_SETTING  a member of the public struct, and an option of the command
 *   MRI_KEPT     the same, and mr_checkpoint_info has a member of this name, which is at `.kept_at` of a
 *                checkpoint; where nobody defines it, it is MRI_SETTING
 *   MRI_KEPT_TEXT  as MRI_KEPT, a TEXT that mr_checkpoint_info has as an array of char
 *   MRI_MEMBER   a member of the public struct without an option of its own
 *   MRI_OPTION   an option from which the command makes other members, or that a command has alone
 *
 * MRI_OPTIONS stands for MRI_SETTING and MRI_OPTION at once: all that are options of the command.
 *
 * Undefined words expand to nothing, and all are undefined after the include. */
#ifndef MRI_SETTING_H
#define MRI_SETTING_H

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "millrace/base.h"
#include "settings/limits.h"
#include "settings/picture_kinds.h"

typedef enum mri_setting_kind {
    MRI_SETTING_FLAG,    /* bool: an option without a value; with a default it is true */
    MRI_SETTING_U32,     /* uint32_t */
    MRI_SETTING_U64,     /* uint64_t */
    MRI_SETTING_REAL,    /* double; NAN when neither given nor defaulted */
    MRI_SETTING_FLOAT,   /* float; of an option that is not given: zero, or NAN where it is the model's */
    MRI_SETTING_SIZE,    /* uint64_t bytes: 4096, 64K, 1.5G (powers of 1024) */
    MRI_SETTING_SECONDS, /* double: 10, 10s, 250ms */
    MRI_SETTING_TEXT,    /* const char *, the caller's; NULL when not given */
    MRI_SETTING_CHOICE,  /* uint32_t or an enumeration: place in choices */
    MRI_SETTING_EITHER,  /* bool: false is the first of two choices, true the second */
    MRI_SETTING_COUNT_OR_OFF, /* uint32_t: "off" is 0 */
    MRI_SETTING_SET,          /* uint32_t: a bit for each of choices, "jpeg,png"; 0: "all" of them */
    MRI_SETTING_CACHE,        /* mri_cache_spec: off, ram, ram:SIZE, disk:DIR:SIZE */
    MRI_SETTING_CHOICE_EVERY, /* uint32_t: the number of the choice, plus 256 times the count of a choice that
                                 ends with ":N": "average:8" */
} mri_setting_kind;

typedef struct mri_cache_spec {
    uint32_t kind;  /* mr_cache: 0 off, 1 memory, 2 disk */
    uint64_t bytes; /* UINT64_MAX: all that fit */
    char folder[4096];
} mri_cache_spec;

/* The type of a member by the kind of its row. */
#define MRI_TYPE_FLAG         bool
#define MRI_TYPE_U32          uint32_t
#define MRI_TYPE_U64          uint64_t
#define MRI_TYPE_REAL         double
#define MRI_TYPE_FLOAT        float
#define MRI_TYPE_SIZE         uint64_t
#define MRI_TYPE_SECONDS      double
#define MRI_TYPE_TEXT         const char *
#define MRI_TYPE_CHOICE       uint32_t
#define MRI_TYPE_EITHER       bool
#define MRI_TYPE_COUNT_OR_OFF uint32_t
#define MRI_TYPE_SET          uint32_t
#define MRI_TYPE_CACHE        mri_cache_spec
#define MRI_TYPE_CHOICE_EVERY uint32_t

/* What of a result another value changes. */
typedef enum mri_changes {
    MRI_CHANGES_SPEED,   /* nothing: how fast batches come, how much memory they take, the reports */
    MRI_CHANGES_ORDER,   /* which samples come in which batch */
    MRI_CHANGES_PIXELS,  /* the pixels of samples in a batch */
    MRI_CHANGES_END,     /* when the run ends */
    MRI_CHANGES_WEIGHTS, /* what training makes of the same batches */
} mri_changes;

/* The effect of another value than the checkpoint's on a resumed run. The row is the only place that decides
 * it. */
typedef enum mri_resume {
    MRI_RESUME_FREE,     /* takes it: no checkpoint keeps this setting */
    MRI_RESUME_TAKE,     /* takes it; without the option, the checkpoint's */
    MRI_RESUME_SAME,     /* refuses it; without the option, the checkpoint's */
    MRI_RESUME_OVERRIDE, /* takes it with --override only; without the option, the checkpoint's */
    MRI_RESUME_AGAIN,    /* refuses it: it has to be given again */
} mri_resume;

/* Their names: "speed", ...; "free", ... */
extern const char *const mri_changes_names[], *const mri_resume_names[];

typedef struct mri_setting {
    const char *option; /* without the dashes */
    mri_setting_kind kind;
    size_t at;            /* offset of the value in the struct of the table */
    double least, most;   /* numbers: the range, both ends in it; MRI_ANY: no upper end. FLAG, TEXT: unused */
    const char *standard; /* the default as the user would type it; NULL: zero, NAN or NULL, and help says
                             what that means */
    const char *value;    /* what stands for the value in help; NULL: made from kind and choices */
    const char *help;
    const char *const *choices; /* CHOICE, EITHER, SET: NULL-terminated */

    bool below;        /* `most` itself is out of the range */
    const char *needs; /* the option without which this one has no effect, or several with | between them;
                          NULL: none */

    /* Rows of this room have these, too. */
    const char *member; /* of the public struct */
    const char *unit;   /* of the value in messages and tables: "batches"; NULL: none */
    bool of_model; /* where the option is not given, the command takes the model's own value, and has zero or
                      NULL until it knows the model: `standard` is the library's */
    mri_changes changes;
    mri_resume resume;
    const char *since; /* version */
    uint16_t kept_at;  /* offset in a checkpoint's header (CHECKPOINT.md); 0: no checkpoint keeps it */
} mri_setting;

/* An element of a table of rows whose values are members of `type`: this does not compile where a
 * member has another type than the kind says. */
#define MRI_ROW(type, name, kind_, ...)                                                                      \
    {                                                                                                        \
        .member = #name, .kind = MRI_SETTING_##kind_,                                                        \
        .at = _Generic(&((type *)0)->name, MRI_TYPE_##kind_ *                                                \
                       : offsetof(type, name)),                                                              \
        __VA_ARGS__                                                                                          \
    }

#define MRI_ANY 0x1p64
#define MRI_CHOICES(...)                                                                                     \
    (const char *const[]) { __VA_ARGS__, NULL }

/* Set the value of s in settings from text; the text of a FLAG is ignored. False: message is "--OPTION:
 * expected
 * ..., found '...'". */
bool mri_setting_parse(const mri_setting *s, void *settings, const char *text, char *message,
                       size_t message_bytes);
/* The value of s in settings as the user would type it, into buf, which is returned. */
const char *mri_setting_text(const mri_setting *s, const void *settings, char *buf, size_t buf_bytes);

/* "1 to 9", "0 or more", "0 to below 1" into buf, which is returned. */
const char *mri_setting_range(const mri_setting *s, char *buf, size_t buf_bytes);

/* False: the value of s is out of its range; message is "MEMBER is VALUE: expected RANGE UNIT". */
bool mri_setting_holds(const mri_setting *s, const void *settings, char *message, size_t message_bytes);

/* A setting that checkpoints keep: its row for a struct of settings, and for mr_checkpoint_info. */
typedef struct mri_kept_setting {
    mri_setting now, then;
} mri_kept_setting;
#define MRI_KEPT_ROW(type, ...)                                                                              \
    {                                                                                                        \
        MRI_ROW(type, __VA_ARGS__), MRI_ROW(mr_checkpoint_info, __VA_ARGS__)                                 \
    }
/* The two values of a kept setting as texts. */
typedef struct mri_kept_texts {
    char then[64], now[64];
} mri_kept_texts;
/* Write the value in the checkpoint `from` and the value in `settings` to *texts. Return true when they
 * differ. */
bool mri_kept_differs(const mri_kept_setting *kept, const void *from, const void *settings,
                      mri_kept_texts *texts);

/* Defaults of all rows into settings; what no row stands for stays as it is. */
void mri_settings_fill(const mri_setting *rows, size_t count, void *settings);
/* MR_EINVAL: a value is out of its range; err says which of `name`, its value, and the range. */
int mri_settings_check(const mri_setting *rows, size_t count, const void *settings, const char *name,
                       mr_error *err);

#endif
