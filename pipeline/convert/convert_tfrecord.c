/* pipeline/convert/convert_tfrecord.c: conversion to TFRecord files of tf.train.Example, with the features
 * usual for pictures.
 *
 *   picture     image/encoded, image/format (jpeg, png, gif, bmp, webp, tiff, heic, avif; raw: uint8 rows of
 *               height x width x channels), image/height, image/width, image/channels: as stored, before EXIF
 *   label       image/class/label, from 0; image/class/text where classes have names. Without pictures: label
 *   boxes       by mr_field_role(), [n][4] in parts of width and height: image/object/bbox/xmin, ymin, xmax,
 *               ymax, as they are. The first sample with boxes decides whether they are; others stay under
 *               their name
 *   box_labels  whole numbers, one for each of these boxes: image/object/class/label
 *   mask        a picture, or bytes that are a PNG in the first sample: image/segmentation/class/encoded and
 *               .../format
 *   name        the sample's name: image/filename, unless another field has that name
 *   the rest    under their names: whole numbers as Int64List, others as FloatList (f64 is rounded to f32),
 *               text and bytes as BytesList; a tensor whose schema does not say that it has one dimension has
 *               its shape in NAME/shape
 *
 * Where several fields could be the boxes, their labels or the mask, it is the first.
 * Features stand in the order above, so that the same samples make the same bytes. */
#include <stdio.h>

#include "base/util.h"
#include "formats/source/columns.h"
#include "formats/source/elements.h"
#include "formats/source/value.h"
#include "formats/tfrecord/example.h"
#include "formats/tfrecord/tfrecord.h"
#include "pipeline/convert/convert.h"
#include "pipeline/convert/convert_files.h"
#include "pipeline/fields/first_sample.h"

enum {
    MOST_ELEMENTS = 1 << 27,
    MOST_BOXES = 1 << 16,
    MOST_LOOKS = 64 /* for a sample with boxes */,
    KEY_ROOM = 160 /* a feature's name, tags and lengths */
};

typedef struct tfrecord_state {
    const mri_convert_plan *plan;
    mri_example_builder builder;
    mri_span example; /* the sample being written */
    void *numbers;    /* elements on their way */
    size_t numbers_bytes;
} tfrecord_state;

/* ---- what fields are ---- */
typedef enum role { PLAIN, PICTURE, LABEL, BOXES, BOX_LABELS, MASK } role;

static const char *const sides[4] = {"image/object/bbox/xmin", "image/object/bbox/ymin",
                                     "image/object/bbox/xmax", "image/object/bbox/ymax"};

static uint64_t elements_of(const mr_value *v)
{
    const size_t each = mr_dtype_bytes(v->dtype);
    return each ? v->bytes / each : 0;
}

static role role_of(const mri_convert_plan *plan, uint32_t k) { return (role)plan->role[k]; }

typedef struct seen {
    int at; /* field of the source */
    bool fit;
} seen;

static double corner(const mr_value *v, size_t k)
{
    const uint8_t *at = v->data;
    float narrow;
    double wide;
    if (v->dtype == MR_F64) return memcpy(&wide, at + k * sizeof wide, sizeof wide), wide;
    return memcpy(&narrow, at + k * sizeof narrow, sizeof narrow), (double)narrow;
}

/* MR_EEND: this sample has no boxes. Parts may lie as far outside of the picture as a loader takes them for
 * parts. */
static int look_at_boxes(void *context, uint64_t at, const mr_sample *sample, mr_error *err)
{
    (void)at;
    seen *s = context;
    const mr_value *v = &sample->value[s->at];
    const size_t count = v->type == MR_TYPE_TENSOR ? (size_t)elements_of(v) : 0;
    if (count == 0) return mr_error_set(err, MR_EEND, "no boxes");
    s->fit = v->ndim == 2 && v->dim[1] == 4;
    for (size_t k = 0; k < count && s->fit; k++) s->fit = corner(v, k) >= -1 && corner(v, k) <= 2;
    return MR_OK;
}

/* Bytes can be the PNG of a mask, or anything else of that name. MR_EEND: this sample lacks it. */
static int look_at_mask(void *context, uint64_t at, const mr_sample *sample, mr_error *err)
{
    seen *s = context;
    const mr_value *v = &sample->value[s->at];
    (void)at;
    if (v->bytes == 0) return mr_error_set(err, MR_EEND, "no mask");
    s->fit = v->type != MR_TYPE_BYTES || mr_image_sniff(v->data, v->bytes) == MR_TYPE_PNG;
    return MR_OK;
}

/* Unreadable samples are reported in their turn; where no boxes are found, fields of boxes
 * are empty. */
static int check_content(const mri_convert_plan *plan, uint32_t k, mri_sample_visitor *look, bool *fit,
                         mr_error *err)
{
    seen s = {.at = plan->from[k], .fit = true};
    mr_error none = MR_ERROR_INIT;
    const int rc = mri_first_sample(plan->src, MOST_LOOKS, look, &s, &none);
    *fit = s.fit;
    if (rc == MR_ENOMEM && err) *err = none;
    return rc == MR_ENOMEM ? rc : MR_OK;
}

static bool may_be(const mri_convert_plan *plan, uint32_t k, role wanted)
{
    const mr_field *f = &plan->fields[k];
    const mr_role known = mri_convert_role(plan, k);
    if (plan->role[k] != PLAIN) return false;
    if (wanted == BOXES) return known == MR_ROLE_BOXES && (f->ndim == 0 || (f->ndim == 2 && f->dim[1] == 4));
    if (wanted == BOX_LABELS)
        return known == MR_ROLE_BOX_VALUES && mri_dtype_is_integer(f->dtype) && f->ndim <= 1;
    if (known == MR_ROLE_MASK) return mri_type_is_picture(f->type) || f->type == MR_TYPE_BYTES;
    return mri_type_is_picture(f->type) && strcmp(f->name, "mask") == 0; /* a JPEG */
}

/* The first field that can be `wanted` is it. */
static int find_role(mri_convert_plan *plan, role wanted, bool *found, mr_error *err)
{
    *found = false;
    for (uint32_t k = 0; k < plan->field_count && !*found; k++) {
        *found = may_be(plan, k, wanted);
        const int rc =
            *found && wanted != BOX_LABELS
                ? check_content(plan, k, wanted == BOXES ? look_at_boxes : look_at_mask, found, err)
                : MR_OK;
        if (rc) return rc;
        if (*found) plan->role[k] = (uint8_t)wanted;
    }
    return MR_OK;
}

static int find_roles(mri_convert_plan *plan, mr_error *err)
{
    bool found, boxes;
    if (plan->label >= 0 && plan->fields[plan->label].type == MR_TYPE_INT) plan->role[plan->label] = LABEL;
    if (plan->image < 0) return MR_OK;
    plan->role[plan->image] = PICTURE;
    int rc = find_role(plan, BOXES, &boxes, err);
    if (!rc && boxes) rc = find_role(plan, BOX_LABELS, &found, err);
    return rc ? rc : find_role(plan, MASK, &found, err);
}

static bool has_shape(const mr_field *f) { return f->type == MR_TYPE_TENSOR && f->ndim != 1; }

static bool has_field(const mri_convert_plan *plan, const char *name)
{
    return mri_field_find(plan->fields, plan->field_count, name) >= 0;
}

static const char *name_of(const mri_convert_plan *plan, uint32_t k)
{
    switch (role_of(plan, k)) {
    case PICTURE: return "image/encoded";
    case LABEL: return plan->image >= 0 ? "image/class/label" : "label";
    case BOXES: return "image/object/bbox";
    case BOX_LABELS: return "image/object/class/label";
    case MASK: return "image/segmentation/class/encoded";
    default:
        return (int)k == plan->name && plan->image >= 0 && !has_field(plan, "image/filename")
                   ? "image/filename"
                   : plan->fields[k].name;
    }
}

/* Targets that nobody would find again: our reader has other fields of these names. */
static int check_targets(const mri_convert_plan *plan, uint32_t k, mr_error *err)
{
    static const char *const others[] = {"image", "label", "boxes", "box_labels", "mask"};
    uint32_t field;
    bool other = false;
    if (!mr_source_columns(plan->src, &field, NULL) || plan->from[k] != (int)field) return MR_OK;
    for (size_t o = 0; o < MRI_ARRAY_COUNT(others); o++) other |= strcmp(plan->called[k], others[o]) == 0;
    if (!other && role_of(plan, k) == PLAIN) return MR_OK;
    return mr_error_set(err, MR_EINVAL,
                        "field \"%s\" has targets, and a feature of this name in a TFRecord is taken for "
                        "something else: rename the column",
                        plan->fields[k].name);
}

/* A name that is given twice would hide one of the two. */
static int check_name(const mri_convert_plan *plan, uint32_t k, mr_error *err)
{
    static const char *const taken[] = {"image/format",     "image/height",
                                        "image/width",      "image/channels",
                                        "image/class/text", "image/segmentation/class/format"};
    const char *name = plan->called[k];
    bool twice = false;
    for (size_t t = 0; plan->image >= 0 && t < MRI_ARRAY_COUNT(taken); t++)
        twice |= strcmp(name, taken[t]) == 0;
    for (size_t t = 0; t < 4; t++) twice |= strcmp(name, sides[t]) == 0;
    for (uint32_t other = 0; other < plan->field_count; other++) {
        char shape[MRI_CALLED_BYTES + 8];
        snprintf(shape, sizeof shape, "%s/shape", plan->called[other]);
        twice |= other < k && strcmp(name, plan->called[other]) == 0;
        twice |= has_shape(&plan->fields[other]) && strcmp(name, shape) == 0;
    }
    if (!twice) return MR_OK;
    return mr_error_set(err, MR_EINVAL,
                        "field \"%s\": a feature of the name \"%s\" is there already; rename the field",
                        plan->fields[k].name, name);
}

static int tfrecord_plan(mri_convert_plan *plan, mr_error *err)
{
    int rc = find_roles(plan, err);
    for (uint32_t k = 0; k < plan->field_count; k++) {
        const char *name = name_of(plan, k);
        memcpy(plan->called[k], name, strlen(name) + 1);
    }
    for (uint32_t k = 0; !rc && k < plan->field_count; k++) {
        rc = check_targets(plan, k, err);
        if (!rc) rc = check_name(plan, k, err);
    }
    return rc;
}

/* ---- whether a sample can be an Example ---- */
static uint64_t most_bytes(const mr_value *v)
{
    if (v->type != MR_TYPE_TENSOR) return v->bytes + KEY_ROOM;
    return elements_of(v) * (mri_dtype_is_integer(v->dtype) ? 10 : 4) + 4 * KEY_ROOM;
}

/* Readers want as many labels as boxes. */
static int check_boxes(const mri_convert_plan *plan, const mr_value *values, mr_error *err)
{
    uint64_t boxes = 0, labels = UINT64_MAX;
    for (uint32_t k = 0; k < plan->field_count; k++) {
        const mr_value *v = &values[k];
        const role r = role_of(plan, k);
        if (r == BOX_LABELS) labels = elements_of(v);
        if (r != BOXES) continue;
        boxes = elements_of(v) / 4;
        if (v->ndim != 2 || v->dim[1] != 4 || v->dim[0] > MOST_BOXES)
            return mr_error_set(
                err, MR_EUNSUPPORTED,
                "field \"%s\": expected up to %d boxes of 4 numbers, found a tensor of %u dimensions "
                "and %llu elements",
                plan->fields[k].name, MOST_BOXES, v->ndim, (unsigned long long)elements_of(v));
    }
    if (labels == UINT64_MAX || labels == boxes) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "labels of boxes: %llu labels for %llu boxes",
                        (unsigned long long)labels, (unsigned long long)boxes);
}

static int tfrecord_fits(const mri_convert_plan *plan, const mr_value *values, mr_error *err)
{
    uint64_t all = 8 * KEY_ROOM;
    for (uint32_t k = 0; k < plan->field_count; k++) {
        const mr_value *v = &values[k];
        const char *name = plan->fields[k].name;
        if (v->type == MR_TYPE_TENSOR && elements_of(v) > MOST_ELEMENTS)
            return mr_error_set(err, MR_ELIMIT,
                                "field \"%s\": %llu elements; an Example takes at most %d here", name,
                                (unsigned long long)elements_of(v), MOST_ELEMENTS);
        all += most_bytes(v);
    }
    if (all <= INT32_MAX) return check_boxes(plan, values, err);
    return mr_error_set(err, MR_ELIMIT,
                        "the sample could need %llu bytes as an Example, which may have 2 GiB",
                        (unsigned long long)all);
}

/* ---- a sample ---- */
static void *numbers_room(tfrecord_state *s, size_t bytes)
{
    if (bytes > s->numbers_bytes) {
        void *larger = realloc(s->numbers, bytes);
        if (!larger) {
            s->builder.failed = MR_ENOMEM;
            return NULL;
        }
        s->numbers = larger;
        s->numbers_bytes = bytes;
    }
    return s->numbers;
}

static void add_text(tfrecord_state *s, const char *key, const char *text)
{
    mri_example_add_bytes(&s->builder, key, text, strlen(text));
}

static void add_int(tfrecord_state *s, const char *key, int64_t v)
{
    mri_example_add_ints(&s->builder, key, &v, 1);
}

static void add_picture(tfrecord_state *s, const char *key, const mr_value *v)
{
    mr_image_header h;
    mri_example_add_bytes(&s->builder, key, v->data, v->bytes);
    add_text(s, "image/format", mri_type_is_picture_file(v->type) ? mr_type_name(v->type) : "raw");
    if (mr_value_header(v, &h, NULL) != MR_OK) return; /* a damaged one that was to be kept */
    add_int(s, "image/height", h.height);
    add_int(s, "image/width", h.width);
    add_int(s, "image/channels", h.channels);
}

static void add_label(tfrecord_state *s, const char *key, int64_t label)
{
    const mr_source_info *info = s->plan->info;
    add_int(s, key, label);
    if (s->plan->image >= 0 && info->class_names && label >= 0 && label < (int64_t)info->class_count)
        add_text(s, "image/class/text", info->class_names[label]);
}

static void add_boxes(tfrecord_state *s, const mr_value *v)
{
    const size_t count = (size_t)v->dim[0];
    float *all = numbers_room(s, (count * 5 + 1) * sizeof *all);
    if (!all) return;
    float *column = all + 4 * count;
    mri_elements_to_floats(v->dtype, v->data, 4 * count, all);
    for (size_t side = 0; side < 4; side++) {
        for (size_t k = 0; k < count; k++) column[k] = all[4 * k + side];
        mri_example_add_floats(&s->builder, sides[side], column, count);
    }
}

static void add_tensor(tfrecord_state *s, const char *key, const mr_value *v, bool shape)
{
    const size_t count = (size_t)elements_of(v);
    void *numbers = numbers_room(s, (count + 1) * sizeof(int64_t));
    if (!numbers) return;
    if (mri_dtype_is_integer(v->dtype)) {
        mri_elements_to_ints(v->dtype, v->data, count, numbers);
        mri_example_add_ints(&s->builder, key, numbers, count);
    } else {
        mri_elements_to_floats(v->dtype, v->data, count, numbers);
        mri_example_add_floats(&s->builder, key, numbers, count);
    }
    if (!shape) return;
    char name[MRI_CALLED_BYTES + 8];
    int64_t dim[MR_MAX_DIMS];
    for (uint32_t k = 0; k < v->ndim; k++) dim[k] = (int64_t)v->dim[k];
    snprintf(name, sizeof name, "%s/shape", key);
    mri_example_add_ints(&s->builder, name, dim, v->ndim);
}

static void add_plain(tfrecord_state *s, uint32_t k, const mr_value *v)
{
    const char *key = s->plan->called[k];
    const float f = (float)v->f;
    if (v->type == MR_TYPE_INT) add_int(s, key, v->i);
    else if (v->type == MR_TYPE_FLOAT) mri_example_add_floats(&s->builder, key, &f, 1);
    else if (v->type == MR_TYPE_TENSOR) add_tensor(s, key, v, has_shape(&s->plan->fields[k]));
    else mri_example_add_bytes(&s->builder, key, v->data, v->bytes);
}

static void add_field(tfrecord_state *s, uint32_t k, const mr_value *v)
{
    const char *key = s->plan->called[k];
    switch (role_of(s->plan, k)) {
    case PICTURE: add_picture(s, key, v); break;
    case LABEL: add_label(s, key, v->i); break;
    case BOXES: add_boxes(s, v); break;
    case BOX_LABELS: add_tensor(s, key, v, false); break;
    case MASK: {
        const int kind = mr_image_sniff(v->data, v->bytes);
        mri_example_add_bytes(&s->builder, key, v->data, v->bytes);
        add_text(s, "image/segmentation/class/format", kind ? mr_type_name((mr_type)kind) : "png");
        break;
    }
    default: add_plain(s, k, v); break;
    }
}

static int tfrecord_take(void *state, uint64_t source_index, const mr_value *values, uint64_t *bytes,
                         mr_error *err)
{
    tfrecord_state *s = state;
    (void)source_index;
    mri_example_restart(&s->builder);
    for (uint32_t k = 0; k < s->plan->field_count; k++) add_field(s, k, &values[k]);
    const int rc = mri_example_finish(&s->builder, &s->example, err);
    *bytes = rc ? 0 : MRI_TFRECORD_HEAD + s->example.bytes + MRI_TFRECORD_TAIL;
    return rc;
}

static int tfrecord_put(void *state, mri_files *f, mr_error *err)
{
    const tfrecord_state *s = state;
    uint8_t head[MRI_TFRECORD_HEAD], tail[MRI_TFRECORD_TAIL];
    mri_tfrecord_put_head(head, s->example.bytes);
    mri_tfrecord_put_tail(tail, s->example.data, s->example.bytes);
    int rc = mri_files_put(f, head, sizeof head, err);
    if (!rc) rc = mri_files_put(f, s->example.data, s->example.bytes, err);
    return rc ? rc : mri_files_put(f, tail, sizeof tail, err);
}

static int tfrecord_create(void **state, const mri_convert_plan *plan, mr_error *err)
{
    tfrecord_state *s = calloc(1, sizeof *s);
    if (!s) return mr_error_set(err, MR_ENOMEM, "no memory for Examples");
    s->plan = plan;
    *state = s;
    return MR_OK;
}

static void tfrecord_destroy(void *state)
{
    tfrecord_state *s = state;
    mri_example_fini(&s->builder);
    free(s->numbers);
    free(s);
}

/* ---- names: DST-00017-of-00128 ---- */
static void tfrecord_shard_name(char *out, size_t room, const char *dst, uint32_t at, uint32_t count)
{
    snprintf(out, room, "%s-%05u-of-%05u", dst, at, count);
}

static bool tfrecord_is_shard(const char *dst, const char *name)
{
    const size_t n = strlen(dst);
    uint64_t number, total;
    if (strncmp(name, dst, n) != 0 || name[n] != '-') return false;
    const char *at = name + n + 1;
    if (mri_files_digits(&at, &number) < 5 || strncmp(at, "-of-", 4) != 0) return false;
    at += 4;
    return mri_files_digits(&at, &total) >= 5 && !*at;
}

/* Without a class our reader would take a feature with a class's name for it, and reject it. */
static bool tfrecord_readable(const mri_convert_plan *plan)
{
    static const char *const usual[] = {
        "image/class/label", "label", "image/label", "class_label", "class", "labels", "target"};
    bool labelled = false, other = false;
    for (uint32_t k = 0; k < plan->field_count; k++) {
        labelled |= role_of(plan, k) == LABEL;
        for (size_t u = 0; u < MRI_ARRAY_COUNT(usual); u++) other |= strcmp(plan->called[k], usual[u]) == 0;
    }
    return plan->image >= 0 && (labelled || !other);
}

static const mri_files_format format = {
    .source = "tfrecord",
    .readable = tfrecord_readable,
    .create = tfrecord_create,
    .destroy = tfrecord_destroy,
    .take = tfrecord_take,
    .put = tfrecord_put,
    .shard_name = tfrecord_shard_name,
    .is_shard = tfrecord_is_shard,
};

static int tfrecord_open(void **state, const mri_convert_plan *plan, const char *dst, uint64_t *first,
                         uint64_t *resumed, mr_error *err)
{
    *first = *resumed = 0;
    return mri_files_open(state, plan, dst, &format, err);
}

const mri_convert_kind mri_convert_tfrecord = {
    .name = "tfrecord",
    .class_names = MRI_NAMES_WITH_SAMPLES,
    .stores = 1 << MR_STORE_JPEG | 1 << MR_STORE_RAW,
    .picture_files = true,
    .plan = tfrecord_plan,
    .fits = tfrecord_fits,
    .open = tfrecord_open,
    .append = mri_files_append,
    .finish = mri_files_finish,
    .close = mri_files_close,
};
