/* pipeline/fields/fields.c: fields at open: found in the source's schema, checked against their roles, sized.
 * See fields.h. */
#include "pipeline/fields/fields.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "pipeline/fields/first_sample.h"

enum { MOST_UNKNOWN = 4096, MOST_COLUMNS = 4096 };

/* ------------------------------------------------------------------------------ names */

/* "image, label, boxes"; of tensors only when asked. Returns how many. */
static uint32_t list_fields(const mr_source_info *src, bool tensors, char *out, size_t out_bytes)
{
    uint32_t n = 0;
    size_t at = 0;
    char shown[4 * MR_MAX_NAME + 1];
    out[0] = '\0';
    for (uint32_t k = 0; k < src->field_count; k++) {
        if (tensors && src->fields[k].type != MR_TYPE_TENSOR) continue;
        if (at < out_bytes)
            at += (size_t)snprintf(out + at, out_bytes - at, "%s%s", n ? ", " : "",
                                   mr_text_shown(src->fields[k].name, shown, sizeof shown));
        n++;
    }
    return n;
}

static int find_field(mri_field_plan *p, const mr_source_info *src, const char *name, mr_error *err)
{
    char known[400], shown[200];
    for (uint32_t k = 0; name && k < src->field_count; k++) {
        if (strcmp(src->fields[k].name, name) != 0) continue;
        p->at = k;
        p->type = src->fields[k].type;
        memcpy(p->name, src->fields[k].name, sizeof p->name);
        return MR_OK;
    }
    list_fields(src, false, known, sizeof known);
    return mr_error_set(err, MR_EINVAL, "there is no field '%s' in the data; there are: %s",
                        name ? mr_text_shown(name, shown, sizeof shown) : "", known);
}

int mri_fields_missing(const mr_source_info *src, mr_error *err)
{
    char known[400];
    const uint32_t n = list_fields(src, true, known, sizeof known);
    if (n == 1)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "%s has no picture field; say which fields to deliver: --fields %s", src->path,
                            known);
    if (n > 1)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "%s has no picture field; say with --fields which to deliver; tensors are: %s",
                            src->path, known);
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "%s has no picture field; expected one of type jpeg, png, pixels or image",
                        src->path);
}

/* A word of the name, between dots, begins so. */
static bool has_word(const char *name, const char *begin)
{
    for (const char *word = name; *word; word += strcspn(word, "."), word += *word == '.')
        if (strncmp(word, begin, strlen(begin)) == 0) return true;
    return false;
}

static bool is_called(const char *name, const char *what)
{
    const size_t n = strlen(what);
    return strncmp(name, what, n) == 0 && (name[n] == '\0' || name[n] == '.');
}

mr_role mr_field_role(const mr_source_info *info, uint32_t field)
{
    if (!info || field >= info->field_count) return MR_ROLE_PLAIN;
    const mr_field *f = &info->fields[field];
    const bool tensor = f->type == MR_TYPE_TENSOR;
    if (info->image_field < 0 || (int)field == info->image_field) return MR_ROLE_PLAIN;
    if (tensor && is_called(f->name, "boxes") && (f->dtype == MR_F32 || f->dtype == MR_F64))
        return MR_ROLE_BOXES;
    if (tensor && is_called(f->name, "box_labels")) return MR_ROLE_BOX_VALUES;
    const bool may = f->type == MR_TYPE_PNG || f->type == MR_TYPE_PIXELS || f->type == MR_TYPE_IMAGE ||
                     f->type == MR_TYPE_BYTES || (tensor && f->dtype == MR_U8);
    return may && (has_word(f->name, "mask") || has_word(f->name, "seg")) ? MR_ROLE_MASK : MR_ROLE_PLAIN;
}

/* ------------------------------------------------------------------------------ padding */

static bool whole_between(double v, double low, double end) { return v >= low && v < end && v == floor(v); }

/* Only exact values: the user cannot mean another number. */
static bool pad_f16(double v, uint16_t *out)
{
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    int e;
    if (isnan(v) || isinf(v)) return *out = sign | (isnan(v) ? 0x7e00 : 0x7c00), true;
    if (v == 0) return *out = sign, true;
    const double part = frexp(fabs(v), &e) * 2048; /* v = part * 2^(e - 11), 11 bits in front of the point */
    if (e > 16 || e < -23) return false;
    const bool small = e < -13;
    const double bits = small ? ldexp(part, e + 13) : part;
    if (bits != floor(bits)) return false;
    *out = (uint16_t)(sign | (small ? (uint32_t)bits : ((uint32_t)bits & 0x3ff) | (uint32_t)(e + 14) << 10));
    return true;
}

static bool pad_bf16(double v, uint16_t *out)
{
    const float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    *out = (uint16_t)(bits >> 16);
    return isnan(v) || ((double)f == v && (bits & 0xffff) == 0);
}

/* Two's complement in the lowest bytes is the number in each of the widths. */
static bool pad_integer(double v, mr_dtype dtype, uint8_t *out)
{
    const double side = ldexp(1, dtype == MR_U8 ? 8 : 8 * (int)mr_dtype_bytes(dtype) - 1);
    if (!whole_between(v, dtype == MR_U8 ? 0 : -side, side)) return false;
    const int64_t i = (int64_t)v;
    memcpy(out, &i, sizeof i);
    return true;
}

static bool pad_bits(double v, mr_dtype dtype, uint8_t *out)
{
    const float f = (float)v;
    uint16_t half = 0;
    bool fits = true;
    switch (dtype) {
    case MR_F64: memcpy(out, &v, sizeof v); return true;
    case MR_F32: memcpy(out, &f, sizeof f); return !isfinite(v) || fabs(v) <= (double)FLT_MAX;
    case MR_F16: fits = pad_f16(v, &half); break;
    case MR_BF16: fits = pad_bf16(v, &half); break;
    default: return pad_integer(v, dtype, out);
    }
    memcpy(out, &half, sizeof half);
    return fits;
}

/* ------------------------------------------------------------------------------ roles */

static const char *const role_names[] = {"plain", "boxes", "values", "mask"};

typedef struct planning {
    const mr_source_info *info;
    const mri_fields_config *cfg;
    mri_fields *f;
    mr_error *err;
} planning;

static int wrong_type(const planning *g, const mri_field_plan *p, const char *expected)
{
    const mr_field *s = &g->info->fields[p->at];
    const bool tensor = s->type == MR_TYPE_TENSOR;
    char shape[160] = "";
    size_t at = 0;
    for (uint32_t k = 0; tensor && k < s->ndim; k++)
        at += (size_t)snprintf(shape + at, sizeof shape - at, "[%llu]", (unsigned long long)s->dim[k]);
    return mr_error_set(g->err, MR_EINVAL, "field %s as %s: expected %s, found %s%s%s%s", p->name,
                        role_names[p->role], expected, mr_type_name(s->type), tensor ? " of " : "",
                        tensor ? mr_dtype_name(s->dtype) : "", shape);
}

static int set_plain(const planning *g, mri_field_plan *p, mr_loader_field_info *out)
{
    const mr_field *s = &g->info->fields[p->at];
    p->varies = s->type == MR_TYPE_TENSOR && s->ndim <= 1;
    switch (s->type) {
    case MR_TYPE_INT: p->dtype = MR_I64; break;
    case MR_TYPE_FLOAT: p->dtype = MR_F64; break;
    case MR_TYPE_TENSOR: p->dtype = s->dtype; break;
    case MR_TYPE_TEXT:
    case MR_TYPE_BYTES:
        p->dtype = MR_U8;
        p->varies = true;
        break;
    default: return wrong_type(g, p, "int, float, text, bytes or tensor");
    }
    out->ndim = s->type == MR_TYPE_TENSOR && s->ndim > 1 ? s->ndim : 0;
    memcpy(out->dim, s->dim, out->ndim * sizeof *out->dim);
    return MR_OK;
}

static int look_at_columns(void *context, uint64_t at, const mr_sample *sample, mr_error *err)
{
    (void)at;
    mri_field_plan *p = context;
    const mr_value *v = &sample->value[p->at];
    if (v->type != MR_TYPE_TENSOR || v->ndim != 2 || v->dim[1] < 4 || v->dim[1] > MOST_COLUMNS)
        return mr_error_set(
            err, MR_EFORMAT,
            "field %s as boxes: expected a tensor of n x 4 or more numbers, found %u dimensions%s", p->name,
            v->ndim, v->ndim == 2 ? " with too few or too many columns" : "");
    p->columns = (uint32_t)v->dim[1];
    return MR_OK;
}

static int needs_picture(const planning *g, const mri_field_plan *p)
{
    if (g->info->image_field >= 0) return MR_OK;
    return mr_error_set(g->err, MR_EINVAL,
                        "field %s as %s: %s has no pictures that it could follow; deliver it as plain",
                        p->name, role_names[p->role], g->info->path);
}

static bool may_be_boxes(const mr_field *s)
{
    if (s->type != MR_TYPE_TENSOR || (s->dtype != MR_F32 && s->dtype != MR_F64)) return false;
    return s->ndim == 0 || (s->ndim == 2 && s->dim[1] >= 4 && s->dim[1] <= MOST_COLUMNS);
}

static int set_boxes(const planning *g, mri_field_plan *p, mr_loader_field_info *out)
{
    const mr_field *s = &g->info->fields[p->at];
    int rc = needs_picture(g, p);
    if (rc != MR_OK) return rc;
    if (!may_be_boxes(s)) return wrong_type(g, p, "a tensor of n x 4 or more f32 or f64");
    if (s->ndim == 2) p->columns = (uint32_t)s->dim[1];
    else rc = mri_first_sample(g->cfg->source, g->cfg->may_be_bad, look_at_columns, p, g->err);
    p->dtype = MR_F32;
    p->varies = true;
    out->ndim = 1;
    out->dim[0] = p->columns;
    return rc;
}

/* The boxes whose values they are: the field of that role named last before it. */
static const mri_field_plan *boxes_of(const planning *g, const mri_field_plan *p)
{
    for (const mri_field_plan *b = p; b-- > g->f->field;)
        if (b->role == MR_ROLE_BOXES) return b;
    return NULL;
}

static int set_values(const planning *g, mri_field_plan *p, mr_loader_field_info *out)
{
    const mr_field *s = &g->info->fields[p->at];
    if (!boxes_of(g, p))
        return mr_error_set(g->err, MR_EINVAL,
                            "field %s as values: name the boxes that they belong to before it", p->name);
    if (s->type != MR_TYPE_TENSOR || s->ndim > 1) return wrong_type(g, p, "a tensor of n numbers");
    p->dtype = s->dtype;
    p->varies = true;
    out->ndim = 0;
    return MR_OK;
}

static bool may_be_mask(const mr_field *s)
{
    switch (s->type) {
    case MR_TYPE_PNG:
    case MR_TYPE_PIXELS:
    case MR_TYPE_IMAGE:
    case MR_TYPE_BYTES: return true;
    case MR_TYPE_TENSOR:
        return s->dtype == MR_U8 && (s->ndim == 0 || s->ndim == 2 || (s->ndim == 3 && s->dim[2] == 1));
    default: return false;
    }
}

static int set_mask(const planning *g, mri_field_plan *p, mr_loader_field_info *out)
{
    const int rc = needs_picture(g, p);
    if (rc != MR_OK) return rc;
    if (!may_be_mask(&g->info->fields[p->at]))
        return wrong_type(g, p, "png, pixels, bytes that hold a PNG, or a tensor of u8 of height x width");
    p->dtype = MR_U8;
    g->f->has_masks = true;
    out->ndim = 2;
    out->dim[0] = g->cfg->out_h;
    out->dim[1] = g->cfg->out_w;
    return MR_OK;
}

/* ------------------------------------------------------------------------------ sizes */

static uint64_t most_known(const planning *g, const mri_field_plan *p, uint32_t asked)
{
    const mr_field *s = &g->info->fields[p->at];
    if (p->role == MR_ROLE_BOX_VALUES) return boxes_of(g, p)->most;
    if (asked) return asked;
    if (p->at == g->info->length_field) return mri_max_u64(1, g->info->length_most);
    return s->ndim ? mri_max_u64(1, s->dim[0]) : MOST_UNKNOWN;
}

static int set_room(const planning *g, mri_field_plan *p, mr_loader_field_info *out, uint32_t asked)
{
    uint64_t element = mr_dtype_bytes(p->dtype), most = 1;
    for (uint32_t k = 0; k < out->ndim; k++) element = mri_times(element, out->dim[k]);
    p->multiple = p->varies ? g->cfg->width_multiple : 1;
    if (p->varies) most = most_known(g, p, asked);
    const uint64_t room = mri_times((most - 1) / p->multiple + 1, p->multiple),
                   row = mri_times(room, element);
    if (room > INT32_MAX || row > SIZE_MAX / 4)
        return mr_error_set(g->err, MR_ELIMIT,
                            "field %s: room for %llu elements of %llu bytes in each row is more than there "
                            "can be: lower its most",
                            p->name, (unsigned long long)room, (unsigned long long)element);
    p->most = (uint32_t)most;
    p->room = (uint32_t)room;
    p->element_bytes = (size_t)element;
    p->row_bytes = (size_t)row;
    if (p->role == MR_ROLE_BOXES && p->most > g->f->most_boxes) g->f->most_boxes = p->most;
    out->name = p->name;
    out->role = p->role;
    out->dtype = p->dtype;
    out->varies = p->varies;
    out->element_bytes = element;
    out->most = p->room;
    return MR_OK;
}

static int plan_field(const planning *g, mri_field_plan *p, mr_loader_field_info *out,
                      const mr_loader_field *asked)
{
    int rc = find_field(p, g->info, asked->name, g->err);
    if (rc != MR_OK) return rc;
    p->role = asked->role;
    p->in_pixels = asked->in_pixels;
    switch (asked->role) {
    case MR_ROLE_PLAIN: rc = set_plain(g, p, out); break;
    case MR_ROLE_BOXES: rc = set_boxes(g, p, out); break;
    case MR_ROLE_BOX_VALUES: rc = set_values(g, p, out); break;
    case MR_ROLE_MASK: rc = set_mask(g, p, out); break;
    default: rc = mr_error_set(g->err, MR_EINVAL, "field %s: role %d is unknown", p->name, (int)asked->role);
    }
    if (rc != MR_OK) return rc;
    if (p->in_pixels && p->role != MR_ROLE_BOXES)
        return mr_error_set(g->err, MR_EINVAL, "field %s as %s: only boxes can be given in pixels", p->name,
                            role_names[p->role]);
    if (!pad_bits(asked->pad, p->dtype, p->pad))
        return mr_error_set(g->err, MR_EINVAL,
                            "field %s: padding with %.17g is not possible, its elements are %s", p->name,
                            asked->pad, mr_dtype_name(p->dtype));
    return set_room(g, p, out, asked->most);
}

int mri_fields_plan(mri_fields *f, mr_loader_field_info *info, const mri_fields_config *cfg, mr_error *err)
{
    const planning g = {.info = mr_source_info_of(cfg->source), .cfg = cfg, .f = f, .err = err};
    const uint32_t count = cfg->asked_count;
    *f = (mri_fields){0};
    if (count > MR_LOADER_MAX_FIELDS || (count && !cfg->asked))
        return mr_error_set(err, MR_EINVAL, "%u fields: expected at most %d, and a list of them", count,
                            MR_LOADER_MAX_FIELDS);
    if (count && cfg->cached)
        return mr_error_set(err, MR_EINVAL,
                            "a cache keeps pictures and labels alone: leave out --cache or --fields");
    for (uint32_t k = 0; k < count; k++) {
        const int rc = plan_field(&g, &f->field[k], &info[k], &cfg->asked[k]);
        if (rc != MR_OK) return rc;
        f->count++;
    }
    return MR_OK;
}

/* ------------------------------------------------------------------------------ boxes for crops */

int mri_fields_plan_crops(mri_fields *f, const mri_fields_config *cfg, mr_error *err)
{
    const mr_source_info *src = mr_source_info_of(cfg->source);
    char known[400];
    if (cfg->cached)
        return mr_error_set(
            err, MR_EINVAL,
            "a cache keeps pictures and labels alone, no boxes for crops: leave out --cache, or "
            "covers= in the augmentation");
    for (uint32_t k = 0; k < f->count && !f->crop; k++) {
        if (f->field[k].role != MR_ROLE_BOXES) continue;
        f->crop_at = f->field[k].at;
        f->crop_in_pixels = f->field[k].in_pixels;
        f->crop = src->fields[f->crop_at].name;
    }
    for (uint32_t k = 0; k < src->field_count && !f->crop; k++) {
        if (mr_field_role(src, k) != MR_ROLE_BOXES || !may_be_boxes(&src->fields[k])) continue;
        f->crop_at = k;
        f->crop = src->fields[k].name;
    }
    if (f->crop) return MR_OK;
    list_fields(src, false, known, sizeof known);
    return mr_error_set(
        err, MR_EINVAL,
        "augment covers= needs boxes: no field of %s is delivered as boxes, and none is called boxes (a "
        "tensor of n x 4 or more f32 or f64); there are: %s",
        src->path, known);
}

/* ------------------------------------------------------------------------------ memory */

static uint64_t lengths_bytes(const mri_field_plan *p, uint64_t samples)
{
    return p->varies ? mri_times(samples, sizeof(int32_t)) : 0;
}

uint64_t mri_fields_bytes(const mri_fields *f, uint64_t samples)
{
    uint64_t all = 0;
    for (uint32_t k = 0; k < f->count; k++) {
        const mri_field_plan *p = &f->field[k];
        all = mri_plus(all, mri_plus(mri_plus(mri_times(samples, p->row_bytes), lengths_bytes(p, samples)),
                                     2 * MR_DEVICE_ALIGN));
    }
    return all;
}

void mri_fields_layout(const mri_fields *f, uint8_t *memory, size_t batch, mri_rows *rows)
{
    for (uint32_t k = 0; k < f->count; k++) {
        const mri_field_plan *p = &f->field[k];
        rows[k].data = memory;
        memory += mri_align_up(batch * p->row_bytes, MR_DEVICE_ALIGN);
        rows[k].length = p->varies ? (int32_t *)(void *)memory : NULL;
        memory += mri_align_up(lengths_bytes(p, batch), MR_DEVICE_ALIGN);
    }
}

int mri_field_scratch_init(mri_field_scratch *s, const mri_fields *f)
{
    if (f->most_boxes == 0) return MR_OK;
    s->which = malloc(f->most_boxes * sizeof *s->which);
    return s->which ? MR_OK : MR_ENOMEM;
}

void mri_field_scratch_drop(mri_field_scratch *s) { mri_buffer_free(&s->mask); }

void mri_field_scratch_fini(mri_field_scratch *s)
{
    free(s->which);
    mri_field_scratch_drop(s);
}

uint64_t mri_field_scratch_bound_bytes(const mri_fields *f, uint64_t pixels)
{
    const uint64_t decoder = (uint64_t)1 << 20; /* rows, inflate windows */
    return mri_plus(f->most_boxes * sizeof(uint32_t), f->has_masks ? mri_plus(pixels, decoder) : 0);
}
