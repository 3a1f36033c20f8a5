/* formats/arrays/source_npy.c: arrays of NumPy: pictures n x h x w, n x h x w x c or n x c x h x w of u8, and
 * their classes.
 *
 *   x.npy and y.npy (x_labels.npy, labels.npy, ...)                a folder with x_train.npy, y_train.npy,
 *                                                                   x_test.npy, y_test.npy
 *   an archive .npz with such members, stored or deflated          image_key, label_key: names of arrays,
 *                                                                  without .npy
 *
 * A sample is one step along the first dimension, read where it lies. What has to be changed first goes once
 * through a file without a name: deflated members, elements in big-endian order. Classes are integers of any
 * width, n or n x 1; they are kept in memory, and so are the rows of the array that target_key names, a
 * further field. Arrays that are no pictures of bytes are tensors, which can be
 * converted but not trained on as pictures; those may lack classes, pictures may not unless label_key is
 * "none". Refused with what to do instead: Python objects, structures, texts, arrays in Fortran order,
 * one-hot classes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "formats/arrays/arrays.h"
#include "formats/arrays/npy_array.h"
#include "formats/arrays/npy_names.h"
#include "formats/source/number_rows.h"
#include "formats/source/source.h"
#include "formats/source/value.h"
#include "formats/storage/storage.h"

enum { NAME_BYTES = MRI_NPY_NAME_BYTES };
typedef struct labels {
    int32_t *value;
    uint64_t count;
    int32_t least, largest;
} labels;

typedef struct npy { /* fixed after open */
    mri_npy_store where;
    mri_npy_array images;
    labels classes;
    bool labelled;
    uint64_t count, sample_bytes;
    mr_value shape; /* of every sample but for its data */
    mri_rows targets;
    char report_text[320];
} npy;

/* ---- classes ---- */
static int bad_labels(const mri_npy_array *x, mr_error *err, int code, const char *why)
{
    char text[160];
    mr_error_set(err, code, "classes are %s: %s", mri_npy_text(&x->a, text, sizeof text), why);
    return mri_error_place(err, code, x->path, MR_NOWHERE, MR_NOWHERE);
}

static int check_labels(const mri_npy_array *x, mr_error *err)
{
    const mri_npy *a = &x->a;
    if (a->kind == 'S' || a->kind == 'U')
        return bad_labels(x, err, MR_EUNSUPPORTED,
                          "texts are not read; save the second result of np.unique(y, return_inverse=True)");
    if (!mri_npy_is_integer(a) && a->ndim == 2 && a->dim[1] > 1)
        return bad_labels(x, err, MR_EUNSUPPORTED,
                          "expected one integer a sample; of one-hot rows save y.argmax(axis=1)");
    if (!mri_npy_is_integer(a))
        return bad_labels(x, err, MR_EUNSUPPORTED, "expected integers; save y.astype('int64')");
    if (a->ndim == 2 && a->dim[1] > 1)
        return bad_labels(x, err, MR_EUNSUPPORTED,
                          "expected one number a sample; of one-hot rows save y.argmax(axis=1)");
    if (a->ndim == 0 || a->ndim > 2 || a->count != a->dim[0])
        return bad_labels(x, err, MR_EFORMAT, "expected one dimension");
    return MR_OK;
}

static int take_labels(const mri_npy_array *x, labels *out, mr_error *err)
{
    const mri_npy *a = &x->a;
    uint8_t piece[4096];
    const size_t many = sizeof piece / a->element_bytes;
    for (uint64_t at = 0; at < a->count; at += many) {
        const size_t n = (size_t)mri_min_u64(many, a->count - at);
        const int rc =
            mri_pread_all(x->fd, piece, n * a->element_bytes, x->first + at * a->element_bytes, x->path, err);
        if (rc) return rc;
        for (size_t k = 0; k < n; k++) {
            int64_t v;
            if (!mri_npy_integer(a, piece + k * a->element_bytes, &v) || v >= INT32_MAX || v <= INT32_MIN) {
                mr_error_set(err, MR_EFORMAT, "a class that does not fit 32 bits");
                return mri_error_place(err, MR_EFORMAT, x->path, x->first + (at + k) * a->element_bytes,
                                       at + k);
            }
            out->value[at + k] = (int32_t)v;
            if (v < out->least) out->least = (int32_t)v;
            if (v > out->largest) out->largest = (int32_t)v;
        }
    }
    return MR_OK;
}

/* In a file of its own? */
static int note_array(mr_source *src, const mri_npy_store *s, const mri_npy_array *x, mr_error *err)
{
    return !src || s->is_zip ? MR_OK : mri_source_add_beside(src, x->path, err);
}

/* src: NULL where they are only looked at. */
static int read_labels(mr_source *src, mri_npy_store *s, const char *name, const mr_source_config *cfg,
                       labels *out, mr_error *err)
{
    mri_npy_array x;
    *out = (labels){.least = INT32_MAX, .largest = INT32_MIN};
    int rc = mri_npy_array_open(s, name, &x, true, cfg->memory_bytes / 4, err);
    if (rc) return rc;
    rc = note_array(src, s, &x, err);
    if (!rc) rc = check_labels(&x, err);
    out->count = x.a.count;
    if (!rc)
        rc = mri_source_budget(cfg, out->count > UINT64_MAX / 4 ? UINT64_MAX : out->count * 4, x.path, err);
    if (!rc && !(out->value = malloc(out->count ? (size_t)out->count * sizeof *out->value : 1)))
        rc = mri_npy_no_memory(err, x.path);
    if (!rc) rc = take_labels(&x, out, err);
    mri_npy_array_close(&x);
    return rc;
}

/* All parts speak of the same classes: the offset and their number come from all of them (range). */
static int number_classes(mr_source *src, npy *x, const labels *range, const mr_source_config *cfg,
                          mr_error *err)
{
    const int64_t least = range->least, largest = range->largest;
    const int64_t offset = cfg->label_offset != MR_LABEL_AUTO ? cfg->label_offset : 0;
    for (uint64_t k = 0; k < x->classes.count; k++) {
        int64_t v;
        if (__builtin_sub_overflow((int64_t)x->classes.value[k], offset, &v) || v < 0 || v >= INT32_MAX) {
            mr_error_set(err, MR_EFORMAT,
                         "class %d: expected 0 or more%s; with a label offset they can begin elsewhere",
                         x->classes.value[k], offset ? " after the offset" : "");
            return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, k);
        }
        x->classes.value[k] = (int32_t)v;
    }
    if (offset) {
        snprintf(x->report_text, sizeof x->report_text, "%lld is subtracted from every class",
                 (long long)offset);
        src->info.told = x->report_text;
    }
    src->info.label_offset = offset;
    src->labels.min = least;
    src->labels.max = largest;
    src->info.class_count = largest - offset < INT32_MAX ? (uint32_t)(largest - offset + 1) : 0;
    return MR_OK;
}

typedef struct others { /* arrays of classes of other parts */
    char name[MRI_PART_COUNT][NAME_BYTES];
    int count;
} others;

/* The smallest and the largest class of this one count, too. */
static int widen(npy *x, const char *name, labels *range, const mr_source_config *cfg, mr_error *err)
{
    labels other = {0};
    const int rc = read_labels(NULL, &x->where, name, cfg, &other, err);
    free(other.value);
    if (rc || other.count == 0) return rc;
    if (other.least < range->least) range->least = other.least;
    if (other.largest > range->largest) range->largest = other.largest;
    return MR_OK;
}

static int open_labels(mr_source *src, npy *x, const char *name, const others *rest,
                       const mr_source_config *cfg, mr_error *err)
{
    int rc = read_labels(src, &x->where, name, cfg, &x->classes, err);
    if (rc) return rc;
    if (x->classes.count != x->count) {
        rc = mr_error_set(err, MR_EFORMAT,
                          "%llu classes (%.60s) for %llu samples: these arrays do not belong together",
                          (unsigned long long)x->classes.count, name, (unsigned long long)x->count);
        return mri_error_place(err, rc, src->path, MR_NOWHERE, MR_NOWHERE);
    }
    labels range = x->classes;
    for (int k = 0; !rc && k < rest->count; k++) rc = widen(x, rest->name[k], &range, cfg, err);
    if (!rc) rc = number_classes(src, x, &range, cfg, err);
    x->labelled = rc == MR_OK;
    return rc;
}

/* ---- samples ---- */
/* u8 with a height and a width: pictures. */
static bool plan_pixels(const mri_npy *a, mr_value *v)
{
    if (a->kind != 'u' || a->element_bytes != 1 || (a->ndim != 3 && a->ndim != 4)) return false;
    const bool chw = a->ndim == 4 && a->dim[3] > 4;
    if (chw && a->dim[1] > 4) return false;
    const uint64_t h = a->dim[chw ? 2 : 1], w = a->dim[chw ? 3 : 2];
    if (h > INT32_MAX || w > INT32_MAX) return false;
    *v = (mr_value){.type = MR_TYPE_PIXELS,
                    .planes = chw ? MR_CHW : MR_HWC,
                    .ndim = 3,
                    .dim = {h, w,
                            a->ndim == 3 ? 1
                            : chw        ? a->dim[1]
                                         : a->dim[3]}};
    return true;
}

static int plan_tensor(mr_source *src, npy *x, mr_error *err)
{
    const mri_npy *a = &x->images.a;
    char text[160];
    const mr_dtype dtype = mri_npy_dtype(a);
    if (!dtype) {
        mr_error_set(err, MR_EUNSUPPORTED,
                     "%s: elements of this type have no place in a record; expected u1, i1, "
                     "i2, i4, i8, f2, f4, f8 or b1",
                     mri_npy_text(a, text, sizeof text));
        return mri_error_place(err, MR_EUNSUPPORTED, x->images.path, MR_NOWHERE, MR_NOWHERE);
    }
    x->shape =
        (mr_value){.type = MR_TYPE_TENSOR, .dtype = dtype, .ndim = a->ndim > 1 ? a->ndim - 1 : 1, .dim = {1}};
    for (uint32_t k = 1; k < a->ndim; k++) x->shape.dim[k - 1] = a->dim[k];
    snprintf(x->report_text, sizeof x->report_text,
             "%s: no pictures of bytes, so they can be converted and not trained on as such",
             mri_npy_text(a, text, sizeof text));
    src->info.told = x->report_text;
    return MR_OK;
}

static int plan_samples(mr_source *src, npy *x, const mr_source_config *cfg, mr_error *err)
{
    mri_npy *a = &x->images.a;
    char text[160];
    int rc = MR_OK;
    if (a->ndim == 0 || a->count == 0)
        rc = mr_error_set(err, MR_EFORMAT, "%s: no samples along a first dimension",
                          mri_npy_text(a, text, sizeof text));
    else if (a->fortran)
        rc = mr_error_set(err, MR_EUNSUPPORTED,
                          "%s in Fortran order, where samples lie scattered: save np.ascontiguousarray(x)",
                          mri_npy_text(a, text, sizeof text));
    if (rc) return mri_error_place(err, rc, x->images.path, MR_NOWHERE, MR_NOWHERE);
    x->count = a->dim[0];
    x->sample_bytes = a->count / a->dim[0] * a->element_bytes;
    if (x->sample_bytes > MRI_MAX_SAMPLE_BYTES)
        return mri_error_place(err, mr_error_set(err, MR_ELIMIT, "samples of more than 2 GiB"),
                               x->images.path, MR_NOWHERE, MR_NOWHERE);
    if (!plan_pixels(a, &x->shape)) rc = plan_tensor(src, x, err);
    return !rc && a->swapped ? mri_npy_array_swap(&x->images, cfg->memory_bytes / 2, err) : rc;
}

/* ---- a further field ---- */
static int check_targets(const npy *x, const mri_npy_array *of, const char *key, mr_error *err)
{
    char text[160];
    const mri_npy *a = &of->a;
    mri_npy_text(a, text, sizeof text);
    int rc = MR_OK;
    if (strlen(key) > MR_MAX_NAME)
        rc = mr_error_set(err, MR_EINVAL, "targets %.80s...: a field's name has at most %d bytes", key,
                          MR_MAX_NAME);
    else if (!mri_npy_dtype(a))
        rc = mr_error_set(err, MR_EUNSUPPORTED,
                          "targets %s are %s: expected numbers; save %s.astype('float32')", key, text, key);
    else if (a->fortran)
        rc =
            mr_error_set(err, MR_EUNSUPPORTED,
                         "targets %s are %s in Fortran order: save np.ascontiguousarray(%s)", key, text, key);
    else if (a->ndim == 0 || a->dim[0] != x->count || a->count == 0)
        rc = mr_error_set(
            err, MR_EFORMAT,
            "targets %s are %s: expected a row for each of the %llu samples along the first dimension", key,
            text, (unsigned long long)x->count);
    return rc ? mri_error_place(err, rc, of->path, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

static int take_targets(npy *x, mri_npy_array *of, const char *key, const mr_source_config *cfg,
                        mr_error *err)
{
    mr_field f = mri_field(key, MR_TYPE_TENSOR);
    int rc = check_targets(x, of, key, err);
    if (!rc && of->a.swapped) rc = mri_npy_array_swap(of, cfg->memory_bytes / 4, err);
    if (rc) return rc;
    f.dtype = mri_npy_dtype(&of->a);
    f.ndim = of->a.ndim > 1 ? of->a.ndim - 1 : 1;
    f.dim[0] = 1;
    for (uint32_t k = 1; k < of->a.ndim; k++) f.dim[k - 1] = of->a.dim[k];
    rc = mri_rows_init(&x->targets, &f, x->count, cfg, of->path, err);
    return rc ? rc
              : mri_pread_all(of->fd, x->targets.data, (size_t)x->count * x->targets.row_bytes, of->first,
                              of->path, err);
}

/* found: the array that they are, "" where none were asked for. */
static int open_targets(mr_source *src, npy *x, const char *image, const mr_source_config *cfg,
                        char found[NAME_BYTES], mr_error *err)
{
    mri_npy_array of;
    found[0] = '\0';
    if (!cfg->target_key) return MR_OK;
    if (!mri_npy_find_targets(&x->where, image, cfg->target_key, found))
        return mri_npy_no_array(&x->where, cfg->target_key, " with targets", err);
    int rc = mri_npy_array_open(&x->where, found, &of, true, cfg->memory_bytes / 4, err);
    if (rc) return rc;
    rc = note_array(src, &x->where, &of, err);
    if (!rc) rc = take_targets(x, &of, cfg->target_key, cfg, err);
    mri_npy_array_close(&of);
    return rc;
}

/* ---- open ---- */
/* A folder or an archive; for one .npy file the folder it lies in. */
static int open_store(mr_source *src, mri_npy_store *s, char single[NAME_BYTES], mr_error *err)
{
    struct stat st;
    uint8_t head[MRI_PROBE_BYTES];
    single[0] = '\0';
    if ((size_t)snprintf(s->path, sizeof s->path, "%s", src->path) >= sizeof s->path)
        return mr_error_set(err, MR_ELIMIT, "the path is too long");
    if (stat(src->path, &st) != 0)
        return mri_error_place(err, mr_error_sys(err, errno, "cannot look at it"), src->path, MR_NOWHERE,
                               MR_NOWHERE);
    if (S_ISDIR(st.st_mode)) return MR_OK;
    uint64_t bytes;
    int rc = mri_npy_open_file(src->path, &s->fd, &bytes, err);
    if (!rc) rc = mri_pread_all(s->fd, head, (size_t)mri_min_u64(sizeof head, bytes), 0, src->path, err);
    if (rc) return rc;
    s->is_zip = mri_is_zip(head, (size_t)mri_min_u64(sizeof head, bytes));
    if (s->is_zip) return mri_zip_open(&s->zip, s->fd, bytes, s->path, err);
    char *slash = strrchr(s->path, '/');
    snprintf(single, NAME_BYTES, "%.255s", slash ? slash + 1 : s->path);
    char *dot = strrchr(single, '.');
    if (dot) *dot = '\0';
    if (!slash) strcpy(s->path, ".");
    else slash[slash == s->path] = '\0';
    return MR_OK;
}

typedef struct choice { /* arrays of samples, by name */
    const char *taken;
    mri_npy_parts parts; /* all that there are; none where somebody named one */
} choice;

static int choose_images(mr_source *src, npy *x, const mr_source_config *cfg, choice *out, mr_error *err)
{
    mri_npy_parts *p = &out->parts;
    *out = (choice){.taken = cfg->image_key};
    if (out->taken)
        return mri_npy_has(&x->where, out->taken) ? MR_OK : mri_npy_no_array(&x->where, out->taken, "", err);
    mri_npy_find_parts(&x->where, p);
    const bool train = p->name[MRI_TRAIN][0], val = p->name[MRI_VALIDATION][0], test = p->name[MRI_TEST][0];
    src->info.has_test = val || test;
    src->info.only_test = cfg->split == MR_SPLIT_AUTO && !train && src->info.has_test;
    const bool want_test = cfg->split == MR_SPLIT_TEST || (cfg->split == MR_SPLIT_AUTO && !train);
    const mri_part part = !want_test ? MRI_TRAIN : val ? MRI_VALIDATION : MRI_TEST;
    const bool there[MRI_PART_COUNT] = {[MRI_TRAIN] = train, [MRI_VALIDATION] = val, [MRI_TEST] = test};
    if (src->info.has_test) mri_source_set_parts(src, there, part);
    out->taken = p->name[part];
    if (out->taken[0]) {
        if (val && test)
            mri_source_tell(src, "of %s and %s the part to test with is %s; --image-key %s takes the other",
                            p->name[MRI_VALIDATION], p->name[MRI_TEST], p->name[MRI_VALIDATION],
                            p->name[MRI_TEST]);
        return MR_OK;
    }
    if (train || src->info.has_test) return mri_source_no_part(src, want_test ? MRI_TEST : MRI_TRAIN, err);
    return mri_npy_no_array(&x->where, NULL, want_test ? " for tests" : " for samples", err);
}

/* The arrays of classes of the parts that were not taken, but for `found`. */
static void find_others(const npy *x, const choice *of, const char *found, others *out)
{
    out->count = 0;
    for (int part = MRI_TRAIN; part < MRI_PART_COUNT; part++) {
        char *name = out->name[out->count];
        if (!of->parts.name[part][0] || strcmp(of->parts.name[part], of->taken) == 0) continue;
        if (mri_npy_find_labels(&x->where, of->parts.name[part], name) && strcmp(name, found) != 0)
            out->count++;
    }
}

static int open_classes(mr_source *src, npy *x, const choice *of, const char *targets,
                        const mr_source_config *cfg, mr_error *err)
{
    const char *name = of->taken;
    char found[NAME_BYTES];
    others rest = {0};
    if (cfg->label_key && strcmp(cfg->label_key, "none") == 0) return MR_OK;
    if (cfg->label_key) {
        if (!mri_npy_has(&x->where, cfg->label_key))
            return mri_npy_no_array(&x->where, cfg->label_key, " with classes", err);
        return open_labels(src, x, cfg->label_key, &rest, cfg, err);
    }
    if (mri_npy_find_labels(&x->where, name, found) && strcmp(found, targets) != 0) {
        find_others(x, of, found, &rest);
        return open_labels(src, x, found, &rest, cfg, err);
    }
    if (x->shape.type == MR_TYPE_TENSOR || targets[0]) return MR_OK;
    char what[NAME_BYTES];
    snprintf(what, sizeof what, ", labels or y with the classes of %.100s (--label-key none without classes)",
             name);
    char wanted[NAME_BYTES];
    snprintf(wanted, sizeof wanted, "%.200s_labels", name);
    const int rc = mri_npy_no_array(&x->where, wanted, what, err);
    return mri_error_place(err, rc, src->path, MR_NOWHERE, MR_NOWHERE); /* the file, not the folder that its
                                                                           labels could lie in */
}

static void fill_info(mr_source *src, npy *x)
{
    mr_source_info *info = &src->info;
    const mri_npy *a = &x->images.a;
    info->format = x->where.is_zip ? "npz" : "npy";
    info->count = x->count;
    info->file_count = 1;
    info->max_extent_bytes = x->sample_bytes;
    info->total_bytes = x->count * x->sample_bytes;
    info->memory_bytes = sizeof *x + x->classes.count * sizeof *x->classes.value +
                         mri_spill_memory(&x->images.spill) + x->where.zip.memory_bytes +
                         x->count * x->targets.row_bytes;
    const uint64_t print =
        XXH3_64bits_withSeed(a->dim, sizeof a->dim, a->element_bytes + (uint64_t)(uint8_t)a->kind * 256);
    info->fingerprint = XXH3_64bits_withSeed(
        x->classes.value, x->labelled ? x->classes.count * sizeof *x->classes.value : 0, print);
    if (mri_rows_there(&x->targets))
        info->fingerprint =
            XXH3_64bits_withSeed(x->targets.data, (size_t)x->count * x->targets.row_bytes, info->fingerprint);
    if (x->shape.type == MR_TYPE_PIXELS) {
        info->height = (uint32_t)x->shape.dim[0];
        info->width = (uint32_t)x->shape.dim[1];
        info->channels = (uint32_t)x->shape.dim[2];
        mri_source_set_image_label(src, mri_field_pixels("image", info->height, info->width, info->channels));
    } else {
        mr_field f = mri_field("data", MR_TYPE_TENSOR);
        f.dtype = x->shape.dtype;
        f.ndim = x->shape.ndim;
        memcpy(f.dim, x->shape.dim, sizeof f.dim);
        mri_source_set_image_label(src, f);
        info->image_field = -1;
    }
    if (!x->labelled) {
        info->field_count = 1;
        info->label_field = -1;
    }
    mri_rows_declare(&x->targets, src);
}

static void report_unchecked(mr_source *src, npy *x, const char *name)
{
    const size_t at = strlen(x->report_text);
    if (!x->images.unchecked) return;
    snprintf(x->report_text + at, sizeof x->report_text - at,
             "%sthe CRC over all %llu MiB of %.100s is checked by verify, not when opening", at ? "; " : "",
             (unsigned long long)(x->images.unchecked->bytes >> 20), name);
    src->info.told = x->report_text;
}

static int npy_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    npy *x = calloc(1, sizeof *x);
    if (!x) return mri_npy_no_memory(err, src->path);
    x->where.fd = x->images.fd = x->images.spill.fd = -1;
    src->state = x;
    char single[NAME_BYTES], targets[NAME_BYTES];
    choice of = {.taken = single};
    int rc = open_store(src, &x->where, single, err);
    if (!rc && single[0]) rc = mri_npy_array_file(&x->images, src->path, err);
    else if (!rc) rc = choose_images(src, x, cfg, &of, err);
    if (!rc && !single[0])
        rc = mri_npy_array_open(&x->where, of.taken, &x->images, false, cfg->memory_bytes / 2, err);
    if (!rc) rc = plan_samples(src, x, cfg, err);
    if (!rc) rc = open_targets(src, x, of.taken, cfg, targets, err);
    if (!rc) rc = open_classes(src, x, &of, targets, cfg, err);
    if (rc) return rc;
    report_unchecked(src, x, of.taken);
    fill_info(src, x);
    return mri_source_budget(cfg, src->info.memory_bytes, src->path, err);
}

static int npy_check(const mr_source *src, mr_error *err)
{
    const npy *x = src->state;
    const mri_zip_member *m = x->images.unchecked;
    return m ? mri_zip_check_stored(&x->where.zip, m, err) : MR_OK;
}

static void npy_close(mr_source *src)
{
    npy *x = src->state;
    if (!x) return;
    mri_npy_array_close(&x->images);
    mri_zip_close(&x->where.zip);
    if (x->where.fd >= 0) close(x->where.fd);
    free(x->classes.value);
    mri_rows_fini(&x->targets);
    free(x);
}

/* ---- the source ---- */
static bool npy_probe(const mri_probe *p)
{
    if (!p->is_folder) {
        if (mri_is_npy(p->head, p->head_bytes)) return true;
        if (!mri_is_zip(p->head, p->head_bytes) || p->head_bytes < 30) return false;
        const size_t n = mri_le16(p->head + 26);
        return n >= 4 && n <= p->head_bytes - 30 && memcmp(p->head + 30 + n - 4, ".npy", 4) == 0;
    }
    mri_npy_store s = {.fd = -1};
    mri_npy_parts parts;
    if ((size_t)snprintf(s.path, sizeof s.path, "%s", p->path) >= sizeof s.path) return false;
    return mri_npy_find_parts(&s, &parts);
}

static int npy_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    (void)err;
    const npy *x = src->state;
    *out = (mr_extent){0, x->images.first + sample * x->sample_bytes, x->sample_bytes};
    return MR_OK;
}

static int npy_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    const npy *x = src->state;
    if (!x->labelled) return MR_EUNSUPPORTED;
    *out = x->classes.value[sample];
    return MR_OK;
}

static int npy_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    (void)file;
    const mri_npy_array *a = &((const npy *)src->state)->images;
    *out =
        (mr_source_file){.path = a->path, .fd = a->fd, .bytes = a->file_bytes, .direct_ok = a->spill.fd < 0};
    return MR_OK;
}

static void npy_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    (void)sample;
    snprintf(buf, buf_bytes, "%s", ((const npy *)src->state)->images.path);
}

static int npy_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                     mr_error *err)
{
    const npy *x = src->state;
    if (bytes != x->sample_bytes) {
        mr_error_set(err, MR_EFORMAT, "expected %llu bytes of elements, found %zu",
                     (unsigned long long)x->sample_bytes, bytes);
        return mri_error_place(err, MR_EFORMAT, x->images.path, x->images.first + sample * x->sample_bytes,
                               sample);
    }
    out->value_count = x->labelled ? 2 : 1;
    out->value[0] = x->shape;
    out->value[0].data = data;
    out->value[0].bytes = bytes;
    if (x->labelled) out->value[1] = (mr_value){.type = MR_TYPE_INT, .i = x->classes.value[sample]};
    mri_rows_give(&x->targets, sample, out);
    return MR_OK;
}

const mri_source_ops mri_source_npy = {
    .name = "npy",
    .help = "arrays of NumPy: x.npy with y.npy next to it, a folder of them, or an archive "
            ".npz; u8 arrays are pictures",
    .probe = npy_probe,
    .open = npy_open,
    .close = npy_close,
    .extent = npy_extent,
    .label = npy_label,
    .file_at = npy_file_at,
    .sample_path = npy_sample_path,
    .parse = npy_parse,
    .check = npy_check,
    .target_keys = true,
};
