/* tools/commands/cmd_export.c: `millrace export FILE DIR`: the way back: a data set's pictures as files,
 * called as they were, or numbered in a folder per class. Picture files come out byte for byte; coefficients
 * become baseline JPEG, pixels PNG. */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/exit.h"
#include "tools/cli/folders.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/facts/card.h"
#include "tools/outputs/export_classes.h"
#include "tools/outputs/export_name.h"
#include "tools/outputs/renamed.h"
#include "tools/session/setup.h"

typedef struct export_args {
    const char *data, *folder, *card;
    bool force, numbered, resume, no_space_check;
    data_args data_opts;
    output_args output;
} export_args;

typedef struct export_run {
    const export_args *args;
    const mr_source *src;
    mr_decode_config decode;
    mr_checker *checker;
    export_names names;
    export_classes classes;
    renamed_list renamed;
    progress_bar bar;
    uint64_t files, bytes, bad, there; /* there: of the files, by an earlier run (--resume) */
    bool is_bad;                       /* the sample itself is why export_one() failed */
} export_run;

static int make_folder(const char *path, mr_error *err)
{
    if (make_folder_deep(path, 0777) || errno == EEXIST) return MR_OK;
    mr_error_sys(err, errno, "cannot make the folder");
    return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
}

/* The folders that path leads through, below the first `done` bytes. */
static int make_folders(char *path, size_t done, mr_error *err)
{
    int rc = MR_OK;
    for (char *slash = strchr(path + done, '/'); !rc && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        rc = make_folder(path, err);
        *slash = '/';
    }
    return rc;
}

/* "cat", or the number where classes have no names; "" without a label. */
static const char *class_name(const mr_source_info *info, const mr_sample *sample, char *buf,
                              size_t buf_bytes)
{
    const int64_t label = info->label_field >= 0 ? sample->value[info->label_field].i : -1;
    const char *name = label >= 0 && label < (int64_t)info->class_count && info->class_names
                           ? info->class_names[label]
                           : NULL;
    if (info->label_field < 0) return "";
    if (name && name[0] && name[0] != '.') return name;
    snprintf(buf, buf_bytes, "%" PRId64, label);
    return buf;
}

/* In DIR.names.jsonl, next to the folder: inside it the list would be part of the set. */
static int list_change(export_run *r, uint64_t at, const char *name, const char *file, mr_error *err)
{
    char path[4096];
    const char *folder = r->args->folder;
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/') n--;
    if (snprintf(path, sizeof path, "%.*s.names.jsonl", (int)n, folder) >= (int)sizeof path)
        return mr_error_set(err, MR_EINVAL, "the folder's name is too long");
    return renamed_add(&r->renamed, path, r->src, r->args->force || r->args->resume, at, name, file, err);
}

/* The path of its file, whose folders are made. */
static int choose_path(export_run *r, uint64_t at, const mr_sample *sample, const void *buffer,
                       const char *extension, bool unchanged, char *path, size_t path_bytes, mr_error *err)
{
    char number[32], name[4096] = "", chosen[EXPORT_NAME_ROOM];
    mr_extent e;
    int rc = mr_source_extent(r->src, at, &e, err);
    if (rc == MR_OK && !r->args->numbered)
        rc = mr_source_sample_name_get(r->src, at, buffer, (size_t)e.bytes, name, sizeof name, err);
    if (rc) return rc;
    const mr_source_info *info = mr_source_info_of(r->src);
    const export_sample s = {.name = name,
                             .class_name = class_name(info, sample, number, sizeof number),
                             .ending = extension,
                             .unchanged = unchanged,
                             .number = at};
    bool changed;
    if (!export_name(&r->names, &s, chosen, &changed))
        return mr_error_set(err, MR_ENOMEM, "no memory for names");
    if (changed && (rc = list_change(r, at, name, chosen, err)) != MR_OK) return rc;
    if (info->label_field >= 0 &&
        !export_classes_note(&r->classes, info, sample->value[info->label_field].i, chosen))
        return mr_error_set(err, MR_ENOMEM, "no memory for classes");
    const int n = snprintf(path, path_bytes, "%s/%s", r->args->folder, chosen);
    if (n >= (int)path_bytes) return mr_error_set(err, MR_EINVAL, "the folder's name is too long");
    return make_folders(path, strlen(r->args->folder) + 1, err);
}

/* How many of these bytes does the file begin with? SIZE_MAX: it is something else. */
static int count_same(const char *path, const struct stat *st, const void *data, size_t bytes, size_t *same,
                      mr_error *err)
{
    char piece[65536];
    *same = SIZE_MAX;
    if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size > bytes) return MR_OK;
    FILE *f = fopen(path, "re");
    size_t at = 0, n = 0;
    while (f && (n = fread(piece, 1, sizeof piece, f)) > 0) {
        if (n > bytes - at || memcmp(piece, (const char *)data + at, n) != 0) break;
        at += n;
    }
    const int rc = f && !ferror(f) ? MR_OK : mr_error_sys(err, errno, "cannot read it to compare it");
    if (f) fclose(f);
    if (rc) return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    if (n == 0) *same = at;
    return MR_OK;
}

static int write_file(export_run *r, const char *path, const void *data, size_t bytes, mr_error *err)
{
    struct stat st;
    const bool exists = !r->args->force && lstat(path, &st) == 0;
    if (!exists && !r->args->force && errno != ENOENT) {
        mr_error_sys(err, errno, "cannot look at it");
        return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    size_t same = SIZE_MAX;
    if (exists && r->args->resume) {
        const int rc = count_same(path, &st, data, bytes, &same, err);
        if (rc) return rc;
        if (same == bytes) {
            r->there++;
            return MR_OK;
        }
        /* the machine lost power before the rest was on the disk */
        if (same < bytes) return setup_write_file(path, data, bytes, r->src, true, err);
    }
    if (exists && r->args->resume) {
        mr_error_set(
            err, MR_EEXIST,
            "the file exists and differs from the data: it is not from an earlier run; choose another "
            "folder, or replace files with --force");
        return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    if (exists) {
        mr_error_set(err, MR_EEXIST,
                     "the file exists; choose another folder, go on with an interrupted run (--resume), or "
                     "replace files with --force");
        return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    return setup_write_file(path, data, bytes, r->src, r->args->force, err);
}

/* Bytes and extension of the file for this picture; *made is malloc'd when they are new. */
static int picture_bytes(const export_run *r, const mr_value *v, const void **data, size_t *bytes,
                         void **made, const char **extension, mr_error *err)
{
    *data = v->data;
    *bytes = v->bytes;
    *extension = v->type == MR_TYPE_JPEG || v->type == MR_TYPE_COEF ? "jpg"
                 : v->type == MR_TYPE_PIXELS                        ? "png"
                                                                    : mr_type_name(v->type);
    if (v->type == MR_TYPE_COEF) {
        const int rc = mr_coef_to_jpeg(r->checker, v, &r->decode, made, bytes, err);
        *data = *made;
        return rc;
    }
    if (v->type != MR_TYPE_PIXELS) return MR_OK;
    mr_image image = {0};
    int rc = mr_image_decode(v, &r->decode, &image, err);
    if (rc == MR_OK) rc = mr_image_encode_png(&image, made, bytes, err);
    mr_image_free(&image);
    *data = *made;
    return rc;
}

static int export_one(export_run *r, uint64_t at, void **buffer, size_t *buffer_bytes, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(r->src);
    mr_sample sample;
    const void *data;
    void *made = NULL;
    size_t bytes;
    const char *extension;
    char path[4096];
    int rc = mr_source_read(r->src, at, buffer, buffer_bytes, &sample, err);
    if (rc == MR_OK)
        rc = picture_bytes(r, &sample.value[info->image_field], &data, &bytes, &made, &extension, err);
    r->is_bad = mr_error_of_sample(rc, err);
    if (rc == MR_OK)
        rc = choose_path(r, at, &sample, *buffer, extension, made == NULL, path, sizeof path, err);
    if (rc == MR_OK) rc = write_file(r, path, data, bytes, err);
    free(made);
    if (rc) return rc;
    r->files++;
    r->bytes += bytes;
    return MR_OK;
}

static uint64_t written_before; /* of nftw(), which passes no context on */

static int add_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)path;
    (void)at;
    if (kind == FTW_F) written_before += (uint64_t)st->st_blocks * 512;
    return 0;
}

typedef struct measured {
    const export_run *run;
    void *buffer;
    size_t buffer_bytes;
} measured;

/* Of the file of one sample; 0: there will be none. */
static uint64_t file_bytes(void *context, uint64_t at)
{
    measured *m = context;
    const int image = mr_source_info_of(m->run->src)->image_field;
    mr_sample sample;
    const void *data;
    void *made = NULL;
    size_t bytes = 0;
    const char *extension;
    int rc = mr_source_read(m->run->src, at, &m->buffer, &m->buffer_bytes, &sample, NULL);
    if (rc == MR_OK) rc = picture_bytes(m->run, &sample.value[image], &data, &bytes, &made, &extension, NULL);
    free(made);
    return rc ? 0 : bytes;
}

/* Files that are there already are kept or replaced. */
static int check_space(const export_run *r, mr_error *err)
{
    const uint64_t count = mr_source_info_of(r->src)->count;
    measured m = {.run = r};
    mr_error why = MR_ERROR_INIT;
    uint64_t room, likely, least;
    int rc = mr_output_estimate(count, file_bytes, &m, &likely, &least, err);
    free(m.buffer);
    if (rc) return rc;
    likely += count * 2048; /* the rest of each file's last block */
    written_before = 0;
    if (r->args->resume || r->args->force) nftw(r->args->folder, add_file, 16, FTW_PHYS);
    likely -= written_before < likely ? written_before : likely;
    least -= written_before < least ? written_before : least;
    rc = mr_output_check_estimate(r->args->folder, likely, least, &room, &why);
    if (rc && !r->args->no_space_check) {
        *err = why;
        return rc;
    }
    space_say(likely, room, r->args->output.quiet);
    return MR_OK;
}

static int export_all(export_run *r, mr_error *err)
{
    const uint64_t count = mr_source_info_of(r->src)->count;
    void *buffer = NULL;
    size_t buffer_bytes = 0;
    int rc = mr_checker_create(&r->checker);
    if (rc) return mr_error_set(err, rc, "no memory for decoders");
    rc = check_space(r, err);
    if (rc == MR_OK) rc = make_folder(r->args->folder, err);
    for (uint64_t at = 0; rc == MR_OK && at < count; at++) {
        r->is_bad = false;
        rc = interrupt_flag ? mr_error_set(err, MR_ECANCELED, "the export is not whole")
                            : export_one(r, at, &buffer, &buffer_bytes, err);
        if (rc && r->is_bad) {
            mr_error_at(err, NULL, MR_NOWHERE, at);
            say_error(err);
            r->bad++;
            rc = MR_OK;
        }
        progress_show(&r->bar, at + 1, count, NULL);
    }
    free(buffer);
    if (rc == MR_OK) rc = export_classes_make(&r->classes, mr_source_info_of(r->src), r->args->folder, err);
    export_names_fini(&r->names);
    export_classes_fini(&r->classes);
    mr_checker_destroy(r->checker);
    const int listed = renamed_close(&r->renamed, rc == MR_OK, rc ? NULL : err);
    if (rc || listed) return rc ? rc : listed;
    return mr_output_sync_all(r->args->folder, err);
}

static void report(const export_run *r)
{
    char text[32];
    if (!r->args->output.json) {
        printf("%s: %" PRIu64 " files, %s", shown_text(r->args->folder), r->files,
               size_text((double)r->bytes, text, sizeof text));
        if (r->there) printf(", %" PRIu64 " of them from an earlier run", r->there);
        if (r->bad) printf("; %" PRIu64 " bad sample%s left out", r->bad, r->bad == 1 ? "" : "s");
        putchar('\n');
        if (r->renamed.count)
            printf("%" PRIu64 " name%s changed to be usable as file names; listed in %s\n", r->renamed.count,
                   r->renamed.count == 1 ? " was" : "s were", shown_text(r->renamed.path));
        return;
    }
    json_line j = json_begin(stdout, "export");
    json_text(&j, "data", mr_source_info_of(r->src)->path);
    json_text(&j, "folder", r->args->folder);
    json_u64(&j, "files", r->files);
    json_u64(&j, "bytes", r->bytes);
    json_u64(&j, "bad", r->bad);
    json_u64(&j, "resumed", r->there);
    json_u64(&j, "renamed", r->renamed.count);
    json_end(&j);
}

static int describe(const export_run *r)
{
    const export_args *a = r->args;
    const card_args about = {.path = a->card,
                             .set = a->folder,
                             .part = mr_source_info_of(r->src)->parts.taken,
                             .force = a->force || a->resume,
                             .quiet = a->output.quiet};
    return card_write(&about);
}

/* Below what do samples lie that are files of their own? NULL: none of them is one. at: 0 for the data, then
 * one for each set of a mix. */
static const char *folder_of_pictures(const mr_source *src, uint32_t at)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_extent e;
    if (at == 0) return info->file_count == 0 ? info->path : NULL;
    const mr_mix_set *set = &info->mix[at - 1];
    return mr_source_extent(src, set->first, &e, NULL) == MR_OK && e.file == MR_FILE_OF_SAMPLE ? set->path
                                                                                               : NULL;
}

/* The input that `to` lies in, or NULL. */
static const char *input_around(const mr_source *src, const char *to, bool *unknown)
{
    for (uint32_t k = 0; k <= mr_source_info_of(src)->mix_count; k++) {
        const char *folder = folder_of_pictures(src, k);
        errno = 0;
        char *from = folder ? realpath(folder, NULL) : NULL;
        *unknown |= folder && !from && errno == ENOMEM;
        const size_t len = from ? strlen(from) : 0;
        const bool inside = from && strncmp(to, from, len) == 0 && (to[len] == '/' || !to[len]);
        free(from);
        if (inside) return folder;
    }
    return NULL;
}

/* A folder of pictures would get more pictures, and folders that are no classes. */
static int check_not_inside(const export_run *r)
{
    char *parent = strdup(r->args->folder);
    if (!parent) {
        say("out of memory");
        return EXIT_FAILED;
    }
    size_t n = strlen(parent);
    while (n > 1 && parent[n - 1] == '/') parent[--n] = '\0';
    char *slash = strrchr(parent, '/');
    errno = 0;
    char *to = realpath(parent, NULL);
    bool unknown = !to && errno == ENOMEM; /* then nothing is written */
    if (!to && slash) *slash = '\0';       /* missing: the folder in which it will be made */
    if (!to) to = realpath(slash ? (*parent ? parent : "/") : ".", NULL);
    unknown |= !to && errno == ENOMEM;
    const char *around = to ? input_around(r->src, to, &unknown) : NULL;
    free(parent);
    free(to);
    if (unknown) {
        say("%s: out of memory: does this lie inside the input?", r->args->folder);
        return EXIT_FAILED;
    }
    if (!around) return EXIT_DONE;
    say("%s: this is inside the input (%s) and would be part of it the next time; choose a place outside",
        r->args->folder, around);
    return EXIT_FAILED;
}

static int run(const void *args)
{
    export_run r = {.args = args};
    const export_args *a = args;
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    int status = card_check(a->card, a->folder, a->force || a->resume);
    if (status == EXIT_DONE) status = setup_source(&src, a->data, &a->data_opts);
    if (status) return status;
    setup_tell_part(src, &a->data_opts);
    r.src = src;
    setup_decode(&r.decode, &a->data_opts);
    if (mr_source_info_of(src)->image_field < 0) {
        say("%s: expected pictures, found none; only pictures can be written as files",
            mr_source_info_of(src)->path);
        status = EXIT_FAILED;
    } else if ((status = check_not_inside(&r)) == EXIT_DONE) {
        progress_start(&r.bar, "export", "samples", a->output.quiet);
        const int rc = export_all(&r, &err);
        progress_end(&r.bar);
        status = exit_status(rc, &err);
        if (rc == MR_OK) report(&r);
        if (status == EXIT_DONE && a->card) status = describe(&r);
        if (status == EXIT_DONE && r.bad) status = EXIT_BAD_SAMPLES;
    }
    mr_source_close(src);
    return status;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(export_args, __VA_ARGS__),
#include "settings/commands/export.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Options", options),
    GROUP(DATA, export_args, data_opts),
    GROUP(OUTPUT, export_args, output),
};
static const opt_positional positionals[] = {
    {"DATA", offsetof(export_args, data), true, "a record file, a shard list, or any data set"},
    {"DIR", offsetof(export_args, folder), true, "folder to make"},
};

const command command_export = {
    .name = "export",
    .summary = "write the pictures of a data set as files",
    .text = "Writes the files under the names that they had below the folder they were converted from, "
            "DIR/cat/1.jpg; if these names are unknown, under DIR/CLASS/NNNNNNNN.jpg with the sample's "
            "number. Names never lead out of DIR. Picture files come out byte for byte; coefficients "
            "become baseline JPEGs with the same coefficients and orientation, decoded pixels PNG. Data "
            "without labels go to DIR itself.",
    .examples = "  millrace export train.mrec pictures\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(export_args),
    .alone = true,
    .run = run,
};
