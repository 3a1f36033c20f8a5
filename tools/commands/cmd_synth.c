/* tools/commands/cmd_synth.c: `millrace synth DIR`: a small labelled data set as folders of JPEG or PNG
 * files, for a first try and for tests: DIR/train/CLASS/00000.jpg and DIR/test/CLASS/00000.jpg. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/folders.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/commands/commands.h"
#include "tools/commands/synth_picture.h"
#include "tools/session/setup.h"

typedef struct synth_args {
    const char *folder;
    uint32_t classes, count, test_count, size, max_size, channels, quality, image;
    uint64_t seed;
    bool force;
    output_args output;
} synth_args;

typedef struct synth_run {
    const synth_args *args;
    progress_bar bar;
    uint64_t files, bytes;
} synth_run;

static const char *const parts[] = {"train", "test"};

static int make_folder(const char *path, mr_error *err)
{
    if (make_folder_deep(path, 0777) || errno == EEXIST) return MR_OK;
    mr_error_sys(err, errno, "cannot make the folder");
    return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
}

static int write_picture(synth_run *r, const synth_key *key, const char *folder, mr_error *err)
{
    const synth_args *a = r->args;
    mr_image image;
    void *data = NULL;
    size_t bytes = 0;
    char path[4096];
    const uint32_t high = a->max_size > a->size ? a->max_size : a->size;
    int rc = synth_draw(key, synth_side(key, a->size, high), a->channels, &image);
    if (rc) return mr_error_set(err, rc, "out of memory for a picture");
    rc = a->image ? mr_image_encode_png(&image, &data, &bytes, err)
                  : mr_image_encode_jpeg(&image, (int)a->quality, &data, &bytes, err);
    mr_image_free(&image);
    if (rc) return rc;
    const int n = snprintf(path, sizeof path, "%s/%05u.%s", folder, key->number, a->image ? "png" : "jpg");
    mr_output_config cfg;
    mr_output_defaults(&cfg);
    cfg.force = a->force;
    cfg.unsynced = true; /* mr_output_sync_all() at the end */
    rc = n < (int)sizeof path ? mr_output_whole(path, data, bytes, &cfg, err)
                              : mr_error_set(err, MR_EINVAL, "the folder's name is too long");
    free(data);
    r->files++;
    r->bytes += bytes;
    return rc;
}

static uint32_t count_of(const synth_args *a, uint32_t part)
{
    return part == 0 ? a->count : a->test_count ? a->test_count : (a->count + 4) / 5;
}

static int write_class(synth_run *r, uint32_t part, uint32_t class_idx, mr_error *err)
{
    const synth_args *a = r->args;
    char folder[4096], name[64];
    const int n = snprintf(folder, sizeof folder, "%s/%s/%s", a->folder, parts[part],
                           synth_class_name(class_idx, a->classes, name, sizeof name));
    if (n >= (int)sizeof folder) return mr_error_set(err, MR_EINVAL, "the folder's name is too long");
    int rc = make_folder(folder, err);
    const uint64_t total = ((uint64_t)count_of(a, 0) + count_of(a, 1)) * a->classes;
    for (uint32_t i = 0; rc == MR_OK && i < count_of(a, part); i++) {
        const synth_key key = {a->seed, class_idx, a->classes, part, i};
        rc = interrupt_flag ? mr_error_set(err, MR_ECANCELED, "the data set is not whole")
                            : write_picture(r, &key, folder, err);
        progress_show(&r->bar, r->files, total, NULL);
    }
    return rc;
}

static int write_all(synth_run *r, mr_error *err)
{
    int rc = make_folder(r->args->folder, err);
    for (uint32_t part = 0; rc == MR_OK && part < OPT_COUNT(parts); part++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", r->args->folder, parts[part]);
        rc = make_folder(path, err);
        for (uint32_t c = 0; rc == MR_OK && c < r->args->classes; c++) rc = write_class(r, part, c, err);
    }
    return rc ? rc : mr_output_sync_all(r->args->folder, err);
}

/* An absent or empty folder, or --force. */
static bool may_fill(const synth_args *a)
{
    DIR *d = a->force ? NULL : opendir(a->folder);
    if (!d) return true;
    bool empty = true;
    for (const struct dirent *e; (errno = 0, e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) empty = false;
    if (errno) empty = false; /* nobody knows */
    closedir(d);
    return empty;
}

static int run(const void *args)
{
    synth_run r = {.args = args};
    const synth_args *a = args;
    mr_error err = MR_ERROR_INIT;
    if (a->channels == 2) {
        say("--channels: expected 1 or 3, found 2");
        return EXIT_MISUSED;
    }
    if (a->max_size && a->max_size < a->size) {
        say("--max-size: expected %u or more (--size), found %u", a->size, a->max_size);
        return EXIT_MISUSED;
    }
    if (!may_fill(a)) {
        say("%s: the folder is not empty; choose another, or add files to it with --force", a->folder);
        return EXIT_FAILED;
    }
    const uint64_t start = clock_ns();
    progress_start(&r.bar, "synth", "pictures", a->output.quiet);
    const int rc = write_all(&r, &err);
    progress_end(&r.bar);
    if (rc) return exit_status(rc, &err);
    if (a->output.json) {
        json_line j = json_begin(stdout, "synth");
        json_text(&j, "folder", a->folder);
        json_u64(&j, "classes", a->classes);
        json_u64(&j, "train", (uint64_t)a->classes * count_of(a, 0));
        json_u64(&j, "test", (uint64_t)a->classes * count_of(a, 1));
        json_u64(&j, "bytes", r.bytes);
        json_u64(&j, "seed", a->seed);
        json_real(&j, "seconds", seconds_since(start));
        json_end(&j);
    } else {
        char text[32];
        printf("%s: %u classes, %" PRIu64 " pictures to train on, %" PRIu64 " to test with, %s\n",
               shown_text(a->folder), a->classes, (uint64_t)a->classes * count_of(a, 0),
               (uint64_t)a->classes * count_of(a, 1), mri_size_text((double)r.bytes, text, sizeof text));
    }
    return EXIT_DONE;
}

static const opt options[] = {
#define MRI_OPTIONS(...) OPT(synth_args, __VA_ARGS__),
#include "settings/commands/synth.rows"
};
static const opt_group groups[] = {
    OPT_OWN_GROUP("Options", options),
    GROUP(OUTPUT, synth_args, output),
};
static const opt_positional positionals[] = {
    {"DIR", offsetof(synth_args, folder), true, "folder to make"},
};

const command command_synth = {
    .name = "synth",
    .summary = "make a small labelled data set for first tries and tests",
    .text = "Writes DIR/train/CLASS/NNNNN.jpg and DIR/test/CLASS/NNNNN.jpg: ten shapes in changing places, "
            "sizes and colours, on noise. A small network learns to tell them apart in a few epochs.",
    .examples = "  millrace synth shapes --count 400 --seed 1\n  millrace synth photos --size 200 --max-size "
                "500 --count 50\n",
    .positionals = positionals,
    .positional_count = OPT_COUNT(positionals),
    .groups = groups,
    .group_count = OPT_COUNT(groups),
    .args_bytes = sizeof(synth_args),
    .alone = true,
    .run = run,
};
