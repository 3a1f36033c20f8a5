/* formats/arrays/source_idx.c: the IDX files of MNIST and its kin, plain or packed with gzip.
 *
 *   | 0 0 | type | ndim | dim[0] big-endian | ... | elements, row-major |
 *
 * PATH is a folder with the four files (train and t10k or test, images and labels) or one images file with
 * its labels in the same folder. A file's content shows whether it is packed and whether it holds images;
 * only its name shows the split. Only unsigned bytes (type 0x08) are pictures: other types are refused by
 * name. Packed images are unpacked once, into a file without a name; labels are kept in memory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/arrays/arrays.h"
#include "formats/source/parts.h"
#include "formats/source/source.h"
#include "formats/source/value.h"
#include "formats/storage/storage.h"

enum { IMAGES, LABELS, KINDS };
enum { MAX_DIMS = 4, HEAD_MAX = 4 + 4 * MAX_DIMS, MAX_CANDIDATES = 256 };

typedef struct idx_header {
    uint32_t ndim, dim[MAX_DIMS];
    uint32_t header_bytes;
    uint64_t element_bytes; /* all elements */
} idx_header;

typedef struct idx_file {
    idx_header h;
    int fd;
    bool packed;
    uint64_t memory_bytes;
} idx_file;

typedef struct idx { /* fixed after open */
    char *path[MRI_PART_COUNT][KINDS];
    idx_file images;
    char *images_path; /* the one of path[][] that is open, or a copy */
    uint8_t *labels;
    uint64_t sample_bytes;
} idx;

static bool looks_like_idx(const uint8_t *p, size_t bytes)
{
    return bytes >= 8 && p[0] == 0 && p[1] == 0 && p[2] >= 0x08 && p[2] <= 0x0e && p[3] >= 1 &&
           p[3] <= MAX_DIMS;
}

/* ---- one file ---- */
static int parse_header(const uint8_t *p, size_t bytes, idx_header *h, mr_error *err)
{
    if (!looks_like_idx(p, bytes))
        return mr_error_set(err, MR_EFORMAT,
                            "no IDX header: expected 00 00 08 and a number of dimensions of 1 to 4");
    if (p[2] != 0x08)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "IDX element type 0x%02x: only unsigned bytes (0x08) are read", p[2]);
    *h = (idx_header){.ndim = p[3], .header_bytes = 4 + 4 * (uint32_t)p[3], .element_bytes = 1};
    if (bytes < h->header_bytes) return mr_error_set(err, MR_EFORMAT, "the file ends inside its IDX header");
    for (uint32_t k = 0; k < h->ndim; k++) {
        h->dim[k] = mri_be32(p + 4 + 4 * (size_t)k);
        if (h->dim[k] == 0) return mr_error_set(err, MR_EFORMAT, "IDX dimension %u is 0", k);
        if (__builtin_mul_overflow(h->element_bytes, h->dim[k], &h->element_bytes) ||
            h->element_bytes > INT64_MAX - 64)
            return mr_error_set(err, MR_EFORMAT,
                                "the IDX dimensions have more elements than any file can hold");
    }
    return MR_OK;
}

static int check_size(const idx_header *h, uint64_t file_bytes, mr_error *err)
{
    const uint64_t expected = h->header_bytes + h->element_bytes;
    if (file_bytes == expected) return MR_OK;
    return mr_error_set(err, MR_EFORMAT,
                        "the IDX header speaks of %u items and %llu bytes, the file has %llu", h->dim[0],
                        (unsigned long long)expected, (unsigned long long)file_bytes);
}

static int read_header(int fd, const char *path, uint64_t file_bytes, bool *packed, idx_header *h,
                       mr_error *err)
{
    uint8_t head[MRI_PROBE_BYTES], inner[HEAD_MAX];
    size_t bytes = (size_t)mri_min_u64(sizeof head, file_bytes);
    const int rc = mri_pread_all(fd, head, bytes, 0, path, err);
    if (rc) return rc;
    *packed = mri_is_gzip(head, bytes);
    const uint8_t *p = head;
    if (*packed) {
        bytes = mri_gunzip_head(head, bytes, inner, sizeof inner);
        p = inner;
    }
    return parse_header(p, bytes, h, err);
}

static int open_idx_fd(idx_file *f, const char *path, uint64_t memory_bytes, mr_error *err)
{
    struct stat st;
    if (fstat(f->fd, &st) != 0) return mr_error_sys(err, errno, "cannot look at it");
    if (!S_ISREG(st.st_mode)) return mr_error_set(err, MR_EFORMAT, "not a regular file");
    const uint64_t bytes = (uint64_t)st.st_size;
    int rc = read_header(f->fd, path, bytes, &f->packed, &f->h, err);
    if (rc) return rc;
    if (!f->packed) return check_size(&f->h, bytes, err);
    const uint64_t expected = f->h.header_bytes + f->h.element_bytes;
    int unpacked;
    bool in_memory;
    rc = mri_gunzip_file(f->fd, bytes, path, expected, memory_bytes, &unpacked, &in_memory, err);
    if (rc) return rc;
    close(f->fd);
    f->fd = unpacked;
    f->memory_bytes = in_memory ? expected : 0;
    return MR_OK;
}

static void close_idx(idx_file *f)
{
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
}

static int open_idx(idx_file *f, const char *path, uint64_t memory_bytes, mr_error *err)
{
    *f = (idx_file){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    int rc = f->fd < 0 ? mr_error_sys(err, errno, "cannot open") : open_idx_fd(f, path, memory_bytes, err);
    if (rc) {
        close_idx(f);
        mri_error_place(err, rc, path, MR_NOWHERE, MR_NOWHERE);
    }
    return rc;
}

/* All labels of a file; malloc'd. */
static int read_labels(const char *path, const mr_source_config *cfg, uint8_t **out, uint32_t *count,
                       mr_error *err)
{
    idx_file f;
    *out = NULL;
    int rc = open_idx(&f, path, cfg->memory_bytes, err);
    if (rc) return rc;
    if (f.h.ndim != 1)
        rc = mri_error_place(
            err, mr_error_set(err, MR_EFORMAT, "expected labels (1 dimension), found %u", f.h.ndim), path, 3,
            MR_NOWHERE);
    if (!rc) rc = mri_source_budget(cfg, f.h.dim[0], path, err);
    if (!rc && !(*out = malloc(f.h.dim[0])))
        rc = mr_error_set(err, MR_ENOMEM, "no memory for %u labels", f.h.dim[0]);
    if (!rc) rc = mri_pread_all(f.fd, *out, f.h.dim[0], f.h.header_bytes, path, err);
    *count = f.h.dim[0];
    close_idx(&f);
    if (rc) {
        free(*out);
        *out = NULL;
    }
    return rc;
}

/* ---- the four files of a folder ---- */
enum { NO_IDX = -1 };

/* IMAGES, LABELS or NO_IDX; *packed as found. Not MR_OK: it cannot be read. */
static int kind_of_file(int dir, const char *name, int *kind, bool *packed, mr_error *err)
{
    struct stat st;
    *kind = NO_IDX;
    if (fstatat(dir, name, &st, 0) != 0) return mr_error_sys(err, errno, "cannot look at it");
    if (!S_ISREG(st.st_mode) || st.st_size == 0) return MR_OK;
    const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return mr_error_sys(err, errno, "cannot open");
    uint8_t head[MRI_PROBE_BYTES], inner[HEAD_MAX];
    const uint8_t *p = head;
    size_t bytes = (size_t)mri_min_u64(sizeof head, (uint64_t)st.st_size);
    const int rc = mri_pread_all(fd, head, bytes, 0, name, err);
    close(fd);
    if (rc) return rc;
    *packed = mri_is_gzip(head, bytes);
    if (*packed) {
        bytes = mri_gunzip_head(head, bytes, inner, sizeof inner);
        p = inner;
    }
    if (looks_like_idx(p, bytes)) *kind = p[3] == 1 ? LABELS : IMAGES;
    return MR_OK;
}

static char *join(const char *folder, const char *name)
{
    const size_t a = strlen(folder), b = strlen(name) + 1;
    char *out = malloc(a + 1 + b);
    if (!out) return NULL;
    memcpy(out, folder, a);
    out[a] = '/';
    memcpy(out + a + 1, name, b);
    return out;
}

static bool same_but_gz(const char *a, const char *b)
{
    const size_t m = strlen(a), n = strlen(b), longer = m > n ? m : n, shorter = m < n ? m : n;
    return longer == shorter + 3 && strncmp(a, b, shorter) == 0 &&
           strcmp((m > n ? a : b) + shorter, ".gz") == 0;
}

/* A file found for its role. The plain one of a pair that differs in .gz alone is taken: it need not be
 * unpacked. */
static int take_role(char **role, const char *folder, const char *name, bool packed, mr_error *err)
{
    if (*role) {
        const char *other = strrchr(*role, '/') + 1;
        if (!same_but_gz(other, name)) {
            mr_error_set(err, MR_EFORMAT, "two files for one role, %s and %s: name the images file to use",
                         other, name);
            return mri_error_place(err, MR_EFORMAT, folder, MR_NOWHERE, MR_NOWHERE);
        }
        if (packed) return MR_OK;
        free(*role);
    }
    *role = join(folder, name);
    return *role ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for a path");
}

/* Named as IDX files are: train-images-idx3-ubyte. Whoever has such a name was meant to be one. */
static bool named_idx(const char *name)
{
    return strcasestr(name, "ubyte") || strcasestr(name, "idx1") || strcasestr(name, "idx3") ||
           strcasestr(name, "idx4");
}

static int take_file(char *path[MRI_PART_COUNT][KINDS], const char *folder, int dir, const char *name,
                     mr_error *err)
{
    bool packed = false;
    int kind;
    mr_error what = MR_ERROR_INIT;
    const mri_part part = mri_part_of_name(name);
    int rc = kind_of_file(dir, name, &kind, &packed, &what);
    if (rc && !named_idx(name) && (rc == MR_ENOENT || what.sys_errno == EACCES)) return MR_OK;
    if (rc && err) *err = what;
    if (!rc && kind == NO_IDX && !named_idx(name)) return MR_OK;
    if (!rc && kind == NO_IDX)
        rc = mr_error_set(err, MR_EFORMAT,
                          "named like an IDX file, but it is not one: copy it again, or remove it");
    else if (!rc && (part == MRI_NO_PART || part == MRI_TWO_PARTS))
        rc = mr_error_set(err, MR_EFORMAT,
                          "an IDX file whose name says %s of train, validation and test: rename it, or name "
                          "the images file to use",
                          part == MRI_NO_PART ? "none" : "two");
    if (!rc) return take_role(&path[part][kind], folder, name, packed, err);
    char where[4096];
    snprintf(where, sizeof where, "%s/%s", folder, name);
    return mri_error_place(err, rc, where, MR_NOWHERE, MR_NOWHERE);
}

/* Kaggle's train-images.idx3-ubyte stands next to a folder train-images-idx3-ubyte/ with the same file in it.
 */
static bool is_folder(int dir, const struct dirent *e)
{
    struct stat st;
    if (e->d_type != DT_UNKNOWN && e->d_type != DT_LNK) return e->d_type == DT_DIR;
    return fstatat(dir, e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

/* most: stop after this number of entries, so that a flat folder of a million other files is rejected
 * quickly. */
static int scan_folder(const char *folder, char *path[MRI_PART_COUNT][KINDS], uint32_t most, mr_error *err)
{
    DIR *d = opendir(folder);
    if (!d)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot open the folder"), folder, MR_NOWHERE,
                               MR_NOWHERE);
    int rc = MR_OK;
    for (uint32_t looked = 0; !rc && looked < most;) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e && errno)
            rc = mri_error_place(err, mr_error_sys(err, errno, "cannot read the folder"), folder, MR_NOWHERE,
                                 MR_NOWHERE);
        if (!e) break;
        if (e->d_name[0] == '.' || (!named_idx(e->d_name) && !mri_part_of_name(e->d_name))) continue;
        looked++;
        if (is_folder(dirfd(d), e)) continue;
        rc = take_file(path, folder, dirfd(d), e->d_name, err);
    }
    closedir(d);
    return rc;
}

static void free_paths(char *path[MRI_PART_COUNT][KINDS])
{
    for (int part = 0; part < MRI_PART_COUNT; part++)
        for (int kind = 0; kind < KINDS; kind++) free(path[part][kind]);
}

static bool idx_probe(const mri_probe *p)
{
    if (!p->is_folder) return looks_like_idx(p->inner, p->inner_bytes);
    char *path[MRI_PART_COUNT][KINDS] = {{0}};
    mr_error what = MR_ERROR_INIT;
    const int rc = scan_folder(p->path, path, MAX_CANDIDATES, &what);
    bool found = rc != MR_OK && !mri_probe_failed(p->trouble, rc, &what); /* open() says why */
    for (int part = MRI_TRAIN; part < MRI_PART_COUNT; part++)
        for (int kind = 0; kind < KINDS; kind++) found = found || path[part][kind];
    free_paths(path);
    return found;
}

/* ---- labels beside one images file ---- */
/* text with the last `from` in its file name replaced by `to` of the same length */
static void replace_in_name(char *text, const char *from, const char *to)
{
    char *name = strrchr(text, '/');
    char *at = strstr(name ? name : text, from);
    if (at) memcpy(at, to, strlen(to));
}

static int find_labels(const char *images, char **out, mr_error *err)
{
    const size_t len = strlen(images);
    char *name = malloc(len + 4);
    if (!name) return mr_error_set(err, MR_ENOMEM, "no memory for a path");
    memcpy(name, images, len + 1);
    replace_in_name(name, "images", "labels");
    replace_in_name(name, "idx3", "idx1");
    replace_in_name(name, "idx4", "idx1");
    if (strcmp(name, images) != 0) {
        *out = name;
        if (access(name, F_OK) == 0) return MR_OK;
        if (len > 3 && strcmp(name + len - 3, ".gz") == 0) name[len - 3] = '\0';
        else memcpy(name + len, ".gz", 4);
        if (access(name, F_OK) == 0) return MR_OK;
    }
    *out = NULL;
    const size_t end = strlen(name);
    if (end > 3 && strcmp(name + end - 3, ".gz") == 0) name[end - 3] = '\0'; /* the message speaks of both */
    mr_error_set(err, MR_ENOENT,
                 "no labels beside these images: expected %s (or with .gz); open the folder of both instead",
                 strncmp(name, images, strlen(name)) != 0
                     ? name
                     : "a name with \"images\" and one with \"labels\" in its place");
    free(name);
    return mri_error_place(err, MR_ENOENT, images, MR_NOWHERE, MR_NOWHERE);
}

/* ---- the source ---- */
static int open_images(mr_source *src, idx *x, const char *path, const mr_source_config *cfg, mr_error *err)
{
    int rc = open_idx(&x->images, path, cfg->memory_bytes, err);
    if (rc) return rc;
    const idx_header *h = &x->images.h;
    if (h->ndim < 3) {
        mr_error_set(err, MR_EFORMAT,
                     "expected images (3 or 4 dimensions), found %u: labels are found next to them", h->ndim);
        return mri_error_place(err, MR_EFORMAT, path, 3, MR_NOWHERE);
    }
    x->sample_bytes = h->element_bytes / h->dim[0];
    if (x->sample_bytes > MRI_MAX_SAMPLE_BYTES)
        return mri_error_place(err, mr_error_set(err, MR_ELIMIT, "images of more than 2 GiB"), path, 4,
                               MR_NOWHERE);
    src->info.height = h->dim[1];
    src->info.width = h->dim[2];
    src->info.channels = h->ndim == 4 ? h->dim[3] : 1;
    return MR_OK;
}

static void count_classes(mr_source *src, const uint8_t *labels, uint32_t count)
{
    mr_source_labels *l = &src->labels;
    for (uint32_t k = 0; k < count; k++) {
        if (l->max < l->min || labels[k] < l->min) l->min = labels[k];
        if (labels[k] > l->max) l->max = labels[k];
    }
    src->info.class_count = (uint32_t)(l->max + 1);
}

/* All parts speak of the same classes, also when the last one is missing in this part. */
static int count_other_classes(mr_source *src, const idx *x, int mine, const mr_source_config *cfg,
                               mr_error *err)
{
    int rc = MR_OK;
    for (int part = 0; !rc && part < MRI_PART_COUNT; part++) {
        uint32_t count;
        uint8_t *other;
        if (part == mine || !x->path[part][LABELS]) continue;
        rc = read_labels(x->path[part][LABELS], cfg, &other, &count, err);
        if (rc) break;
        count_classes(src, other, count);
        free(other);
    }
    return rc;
}

static int open_labels(mr_source *src, idx *x, const char *path, const mr_source_config *cfg, mr_error *err)
{
    uint32_t count;
    int rc = read_labels(path, cfg, &x->labels, &count, err);
    if (!rc) rc = mri_source_add_beside(src, path, err);
    if (rc) return rc;
    if (count != x->images.h.dim[0]) {
        mr_error_set(err, MR_EFORMAT, "%u labels for %u images: these files do not belong together", count,
                     x->images.h.dim[0]);
        return mri_error_place(err, MR_EFORMAT, path, 4, MR_NOWHERE);
    }
    count_classes(src, x->labels, count);
    return MR_OK;
}

static int choose_part(mr_source *src, idx *x, const mr_source_config *cfg, int *part, mr_error *err)
{
    struct stat st;
    if (stat(src->path, &st) != 0) return mr_error_sys(err, errno, "cannot look at it");
    if (!S_ISDIR(st.st_mode)) {
        *part = MRI_TRAIN;
        x->path[MRI_TRAIN][IMAGES] = strdup(src->path);
        if (!x->path[MRI_TRAIN][IMAGES]) return mr_error_set(err, MR_ENOMEM, "no memory for a path");
        return MR_OK; /* labels are looked for once the images are known to be images */
    }
    const int rc = scan_folder(src->path, x->path, UINT32_MAX, err);
    if (rc) return rc;
    const bool validation = x->path[MRI_VALIDATION][IMAGES] || x->path[MRI_VALIDATION][LABELS];
    const int test = validation ? MRI_VALIDATION : MRI_TEST;
    src->info.has_test = x->path[test][IMAGES] != NULL;
    /* half a train split is an error to report, not a reason to take the test split */
    const bool no_train = !x->path[MRI_TRAIN][IMAGES] && !x->path[MRI_TRAIN][LABELS];
    src->info.only_test = cfg->split == MR_SPLIT_AUTO && no_train;
    *part = cfg->split == MR_SPLIT_TEST || src->info.only_test ? test : MRI_TRAIN;
    bool there[MRI_PART_COUNT] = {false};
    for (int k = MRI_TRAIN; k < MRI_PART_COUNT; k++) there[k] = x->path[k][IMAGES] != NULL;
    mri_source_set_parts(src, there, (mri_part)*part);
    if (!x->path[*part][IMAGES] && !x->path[*part][LABELS])
        return mri_source_no_part(src, cfg->split == MR_SPLIT_TEST ? MRI_TEST : MRI_TRAIN, err);
    static const char *const names[MRI_PART_COUNT] = {"", "train", "validation", "t10k or test"};
    for (int kind = 0; kind < KINDS; kind++) {
        if (x->path[*part][kind]) continue;
        mr_error_set(err, MR_ENOENT, "no IDX file with %s in it and %s in its name, or it is damaged",
                     kind == IMAGES ? "images" : "labels", names[*part]);
        return mri_error_place(err, MR_ENOENT, src->path, MR_NOWHERE, MR_NOWHERE);
    }
    return MR_OK;
}

static void fill_info(mr_source *src, const idx *x)
{
    mr_source_info *info = &src->info;
    const idx_header *h = &x->images.h;
    info->format = "idx";
    info->count = h->dim[0];
    info->file_count = 1;
    info->max_extent_bytes = x->sample_bytes;
    info->total_bytes = h->element_bytes;
    info->memory_bytes = sizeof *x + h->dim[0] + x->images.memory_bytes;
    const uint64_t print = XXH3_64bits(x->labels, h->dim[0]);
    info->fingerprint = XXH3_64bits_withSeed(h->dim, sizeof h->dim, print);
    mri_source_set_image_label(src, mri_field_pixels("image", info->height, info->width, info->channels));
}

static int idx_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    idx *x = calloc(1, sizeof *x);
    if (!x) return mr_error_set(err, MR_ENOMEM, "no memory for IDX files");
    x->images.fd = -1;
    src->state = x;
    int part = MRI_TRAIN;
    int rc = choose_part(src, x, cfg, &part, err);
    if (rc) return rc;
    char **mine = x->path[part];
    x->images_path = mine[IMAGES];
    rc = open_images(src, x, mine[IMAGES], cfg, err);
    if (!rc && !mine[LABELS]) rc = find_labels(mine[IMAGES], &mine[LABELS], err);
    if (!rc) rc = open_labels(src, x, mine[LABELS], cfg, err);
    if (!rc) rc = count_other_classes(src, x, part, cfg, err);
    if (!rc) fill_info(src, x);
    return rc;
}

static void idx_close(mr_source *src)
{
    idx *x = src->state;
    if (!x) return;
    close_idx(&x->images);
    free_paths(x->path);
    free(x->labels);
    free(x);
}

static int idx_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    (void)err;
    const idx *x = src->state;
    *out = (mr_extent){0, x->images.h.header_bytes + sample * x->sample_bytes, x->sample_bytes};
    return MR_OK;
}

static int idx_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    *out = ((const idx *)src->state)->labels[sample];
    return MR_OK;
}

static int idx_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    (void)file;
    const idx *x = src->state;
    *out = (mr_source_file){.path = x->images_path,
                            .fd = x->images.fd,
                            .bytes = x->images.h.header_bytes + x->images.h.element_bytes,
                            .direct_ok = !x->images.packed};
    return MR_OK;
}

static void idx_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    (void)sample;
    snprintf(buf, buf_bytes, "%s", ((const idx *)src->state)->images_path);
}

static int idx_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                     mr_error *err)
{
    const idx *x = src->state;
    if (bytes != x->sample_bytes) {
        mr_error_set(err, MR_EFORMAT, "expected %llu bytes of pixels, found %zu",
                     (unsigned long long)x->sample_bytes, bytes);
        return mri_error_place(err, MR_EFORMAT, x->images_path,
                               x->images.h.header_bytes + sample * x->sample_bytes, sample);
    }
    const mr_source_info *info = &src->info;
    out->value_count = 2;
    out->value[0] = (mr_value){.type = MR_TYPE_PIXELS,
                               .planes = MR_HWC,
                               .ndim = 3,
                               .dim = {info->height, info->width, info->channels},
                               .data = data,
                               .bytes = bytes};
    out->value[1] = (mr_value){.type = MR_TYPE_INT, .i = x->labels[sample]};
    return MR_OK;
}

const mri_source_ops mri_source_idx = {
    .name = "idx",
    .help = "MNIST and sets like it: a folder with the four IDX files, or one images file with its labels "
            "next to it; gzip or plain",
    .no_keys = true,
    .probe = idx_probe,
    .open = idx_open,
    .close = idx_close,
    .extent = idx_extent,
    .label = idx_label,
    .file_at = idx_file_at,
    .sample_path = idx_sample_path,
    .parse = idx_parse,
};
