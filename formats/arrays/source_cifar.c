/* formats/arrays/source_cifar.c: the binary versions of CIFAR-10 and CIFAR-100.
 *
 *   CIFAR-10   | label | 1024 red | 1024 green | 1024 blue |            3073 bytes, label < 10
 *   CIFAR-100  | coarse | fine | 1024 red | 1024 green | 1024 blue |    3074 bytes, coarse < 20, fine < 100
 *
 * PATH is the folder with data_batch_1..5.bin and test_batch.bin (or train.bin and test.bin), or one such
 * file. There is no signature: a file is taken for CIFAR when its size fits and its first records have
 * possible labels. Labels are only known once a record is read. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/arrays/arrays.h"
#include "formats/source/source.h"
#include "formats/source/value.h"

enum { PIXEL_BYTES = 3072, MAX_FILES = 5, SNIFF_RECORDS = 64, MAX_NAMES_BYTES = 65536 };

typedef struct variant {
    const char *format, *names_file;
    uint32_t labels;   /* bytes in front of the pixels */
    uint32_t limit[2]; /* what each must stay below */
    uint32_t classes;
    const char *train[MAX_FILES], *test;
} variant;

static const variant variants[] = {
    {"cifar10",
     "batches.meta.txt",
     1,
     {10, 0},
     10,
     {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
     "test_batch.bin"},
    {"cifar100", "fine_label_names.txt", 2, {20, 100}, 100, {"train.bin"}, "test.bin"},
};

typedef struct cifar_file {
    char *path;
    int fd;
    uint64_t bytes, start; /* start: number of its first sample */
} cifar_file;

typedef struct cifar { /* fixed after open */
    const variant *v;
    cifar_file file[MAX_FILES];
    uint32_t count;
    char *names_text;
    const char **names;
} cifar;

static uint32_t record_bytes(const variant *v) { return v->labels + PIXEL_BYTES; }

/* ---- recognise ---- */
static bool fits(int fd, uint64_t bytes, const variant *v)
{
    if (bytes == 0 || bytes % record_bytes(v) != 0) return false;
    const uint64_t records = mri_min_u64(bytes / record_bytes(v), SNIFF_RECORDS);
    for (uint64_t k = 0; k < records; k++) {
        uint8_t label[2];
        if (mri_pread_all(fd, label, v->labels, k * record_bytes(v), "", NULL) != MR_OK) return false;
        for (uint32_t n = 0; n < v->labels; n++)
            if (label[n] >= v->limit[n]) return false;
    }
    return true;
}

static const variant *sniff_file(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    const variant *found = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        for (size_t k = 0; !found && k < MRI_ARRAY_COUNT(variants); k++)
            if (fits(fd, (uint64_t)st.st_size, &variants[k])) found = &variants[k];
    if (fd >= 0) close(fd);
    return found;
}

static bool in_folder(const char *folder, const char *name)
{
    char path[4096];
    struct stat st;
    return (size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path && stat(path, &st) == 0 &&
           S_ISREG(st.st_mode);
}

/* Of CIFAR-10 in five files all must be there: a set that lacks one is another set. */
static int check_whole(const char *folder, const variant *v, mr_error *err)
{
    char missing[256] = "";
    size_t at = 0;
    for (size_t n = 0; n < MAX_FILES && v->train[n]; n++)
        if (!in_folder(folder, v->train[n]))
            at += (size_t)snprintf(missing + at, sizeof missing - at, "%s%s", at ? ", " : "", v->train[n]);
    if (!at) return MR_OK;
    mr_error_set(err, MR_ENOENT,
                 "the train part lacks %s: copy the files again, name an existing file, or take "
                 "the test part (--split test)",
                 missing);
    return mri_error_place(err, MR_ENOENT, folder, MR_NOWHERE, MR_NOWHERE);
}

static const variant *sniff_folder(const char *folder)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(variants); k++) {
        const variant *v = &variants[k];
        bool any = in_folder(folder, v->test);
        for (size_t n = 0; n < MAX_FILES && v->train[n]; n++) any = any || in_folder(folder, v->train[n]);
        if (any) return v;
    }
    return NULL;
}

static bool cifar_probe(const mri_probe *p)
{
    return (p->is_folder ? sniff_folder(p->path) : sniff_file(p->path)) != NULL;
}

/* ---- open ---- */
static int add_path(cifar *c, const char *folder, const char *name, mr_error *err)
{
    const size_t a = strlen(folder), b = name ? strlen(name) + 1 : 0;
    char *path = malloc(a + b + 1);
    if (!path) return mr_error_set(err, MR_ENOMEM, "no memory for a path");
    memcpy(path, folder, a + 1);
    if (name) {
        path[a] = '/';
        memcpy(path + a + 1, name, b);
    }
    c->file[c->count++] = (cifar_file){.path = path, .fd = -1};
    return MR_OK;
}

static int open_file(cifar *c, cifar_file *f, uint64_t start, mr_error *err)
{
    struct stat st;
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open"), f->path, MR_NOWHERE, MR_NOWHERE);
    f->bytes = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    f->start = start;
    const uint32_t one = record_bytes(c->v);
    if (f->bytes == 0 || f->bytes % one != 0) {
        mr_error_set(err, MR_EFORMAT,
                     "expected a multiple of %u bytes (%s), found %llu: copy or unpack it again", one,
                     c->v->format, (unsigned long long)f->bytes);
        return mri_error_place(err, MR_EFORMAT, f->path, f->bytes - f->bytes % one, MR_NOWHERE);
    }
    return MR_OK;
}

static int choose_files(mr_source *src, cifar *c, const mr_source_config *cfg, mr_error *err)
{
    struct stat st;
    if (stat(src->path, &st) != 0) return mr_error_sys(err, errno, "cannot look at it");
    const bool folder = S_ISDIR(st.st_mode);
    const variant *v = folder ? sniff_folder(src->path) : sniff_file(src->path);
    for (size_t k = 0; cfg->format && k < MRI_ARRAY_COUNT(variants); k++)
        if (strcmp(cfg->format, variants[k].format) == 0) v = &variants[k];
    if (!v) {
        mr_error_set(err, MR_EFORMAT,
                     "no CIFAR here: expected a multiple of 3073 or 3074 bytes with possible labels, or a "
                     "folder with data_batch_1.bin or train.bin");
        return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
    }
    c->v = v;
    if (!folder) return add_path(c, src->path, NULL, err);
    src->info.has_test = in_folder(src->path, v->test);
    bool has_train = false; /* any of it: half a part is a mistake, no reason to take the other one for it */
    for (size_t n = 0; n < MAX_FILES && v->train[n]; n++)
        has_train = has_train || in_folder(src->path, v->train[n]);
    src->info.only_test = cfg->split == MR_SPLIT_AUTO && !has_train;
    const bool take_test = cfg->split == MR_SPLIT_TEST || src->info.only_test;
    const bool there[MRI_PART_COUNT] = {[MRI_TRAIN] = has_train, [MRI_TEST] = src->info.has_test};
    mri_source_set_parts(src, there, take_test ? MRI_TEST : MRI_TRAIN);
    if (take_test ? !src->info.has_test : !has_train)
        return mri_source_no_part(src, take_test ? MRI_TEST : MRI_TRAIN, err);
    if (take_test) return add_path(c, src->path, v->test, err);
    int rc = check_whole(src->path, v, err);
    for (size_t n = 0; !rc && n < MAX_FILES && v->train[n]; n++)
        rc = add_path(c, src->path, v->train[n], err);
    return rc;
}

/* One name a line. The file may be missing; when it is there it must be right. */
static int read_names(cifar *c, const char *path, mr_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return MR_OK;
    c->names_text = calloc(1, MAX_NAMES_BYTES + 1);
    c->names = calloc(c->v->classes, sizeof *c->names);
    const ssize_t got = c->names_text ? pread(fd, c->names_text, MAX_NAMES_BYTES, 0) : 0;
    close(fd);
    if (!c->names_text || !c->names) return mr_error_set(err, MR_ENOMEM, "no memory for class names");
    if (got < 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot read"), path, MR_NOWHERE, MR_NOWHERE);
    uint32_t count = 0;
    char *save = NULL;
    for (char *line = strtok_r(c->names_text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
        if (count < c->v->classes) c->names[count] = line;
        count++;
    }
    if (count == c->v->classes) return MR_OK;
    mr_error_set(err, MR_EFORMAT, "expected %u class names, one a line, found %u: correct or remove it",
                 c->v->classes, count);
    return mri_error_place(err, MR_EFORMAT, path, MR_NOWHERE, MR_NOWHERE);
}

static int find_names(cifar *c, mr_error *err)
{
    const char *first = c->file[0].path, *slash = strrchr(first, '/');
    const size_t folder = slash ? (size_t)(slash - first) + 1 : 0;
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%.*s%s", (int)folder, first, c->v->names_file) >= sizeof path)
        return MR_OK;
    return read_names(c, path, err);
}

static void fill_info(mr_source *src, const cifar *c, uint64_t count)
{
    mr_source_info *info = &src->info;
    info->format = c->v->format;
    info->count = count;
    info->class_count = c->v->classes;
    info->class_names = c->names;
    info->height = info->width = 32;
    info->channels = 3;
    info->file_count = c->count;
    info->max_extent_bytes = record_bytes(c->v);
    info->total_bytes = count * record_bytes(c->v);
    info->memory_bytes = sizeof *c + (c->names ? MAX_NAMES_BYTES + c->v->classes * sizeof *c->names : 0);
    mri_source_set_image_label(src, mri_field_pixels("image", 32, 32, 3));
    if (c->v->labels == 2) {
        src->fields[2] = mri_field("coarse_label", MR_TYPE_INT);
        info->field_count = 3;
    }
}

/* Sizes and the first records identify the data set; reading all of it would cost too much. */
static int fingerprint(mr_source *src, const cifar *c, mr_error *err)
{
    uint64_t print = XXH3_64bits(c->v->format, strlen(c->v->format));
    for (uint32_t k = 0; k < c->count; k++) {
        uint8_t first[1 + PIXEL_BYTES + 1];
        const int rc = mri_pread_all(c->file[k].fd, first, record_bytes(c->v), 0, c->file[k].path, err);
        if (rc) return rc;
        print = XXH3_64bits_withSeed(first, record_bytes(c->v), print ^ c->file[k].bytes);
    }
    src->info.fingerprint = print;
    return MR_OK;
}

static int cifar_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    cifar *c = calloc(1, sizeof *c);
    if (!c) return mr_error_set(err, MR_ENOMEM, "no memory for CIFAR files");
    src->state = c;
    int rc = choose_files(src, c, cfg, err);
    uint64_t count = 0;
    for (uint32_t k = 0; !rc && k < c->count; k++) {
        rc = open_file(c, &c->file[k], count, err);
        count += c->file[k].bytes / record_bytes(c->v);
    }
    if (!rc) rc = find_names(c, err);
    if (!rc) rc = fingerprint(src, c, err);
    if (!rc) fill_info(src, c, count);
    return rc;
}

static void cifar_close(mr_source *src)
{
    cifar *c = src->state;
    if (!c) return;
    for (uint32_t k = 0; k < c->count; k++) {
        if (c->file[k].fd >= 0) close(c->file[k].fd);
        free(c->file[k].path);
    }
    free(c->names_text);
    free(c->names);
    free(c);
}

/* ---- samples ---- */
static uint32_t file_of(const cifar *c, uint64_t sample)
{
    uint32_t k = c->count - 1;
    while (c->file[k].start > sample) k--;
    return k;
}

static int cifar_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    (void)err;
    const cifar *c = src->state;
    const uint32_t k = file_of(c, sample), one = record_bytes(c->v);
    *out = (mr_extent){k, (sample - c->file[k].start) * one, one};
    return MR_OK;
}

static int cifar_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    const cifar_file *f = &((const cifar *)src->state)->file[file];
    *out = (mr_source_file){.path = f->path, .fd = f->fd, .bytes = f->bytes, .direct_ok = true};
    return MR_OK;
}

static void cifar_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const cifar *c = src->state;
    snprintf(buf, buf_bytes, "%s", c->file[file_of(c, sample)].path);
}

static int wrong_sample(const mr_source *src, uint64_t sample, mr_error *err)
{
    mr_extent e;
    const cifar *c = src->state;
    cifar_extent(src, sample, &e, NULL);
    return mri_error_place(err, MR_EFORMAT, c->file[e.file].path, e.offset, sample);
}

static int cifar_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                       mr_error *err)
{
    const cifar *c = src->state;
    const variant *v = c->v;
    const uint8_t *p = data;
    if (bytes != record_bytes(v)) {
        mr_error_set(err, MR_EFORMAT, "expected a record of %u bytes, found %zu", record_bytes(v), bytes);
        return wrong_sample(src, sample, err);
    }
    for (uint32_t n = 0; n < v->labels; n++) {
        if (p[n] < v->limit[n]) continue;
        mr_error_set(err, MR_EFORMAT, "expected a label below %u, found %u", v->limit[n], p[n]);
        return wrong_sample(src, sample, err);
    }
    out->value_count = src->info.field_count;
    out->value[0] = (mr_value){.type = MR_TYPE_PIXELS,
                               .planes = MR_CHW,
                               .ndim = 3,
                               .dim = {32, 32, 3},
                               .data = p + v->labels,
                               .bytes = PIXEL_BYTES};
    out->value[1] = (mr_value){.type = MR_TYPE_INT, .i = p[v->labels - 1]}; /* the fine one comes last */
    if (v->labels == 2) out->value[2] = (mr_value){.type = MR_TYPE_INT, .i = p[0]};
    return MR_OK;
}

const mri_source_ops mri_source_cifar = {
    .name = "cifar",
    .help = "CIFAR-10 or CIFAR-100, binary version: the folder with the batches, or one of its .bin files",
    .no_keys = true,
    .probe = cifar_probe,
    .open = cifar_open,
    .close = cifar_close,
    .extent = cifar_extent,
    .file_at = cifar_file_at,
    .sample_path = cifar_sample_path,
    .parse = cifar_parse,
};
