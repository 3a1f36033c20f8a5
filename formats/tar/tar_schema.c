/* formats/tar/tar_schema.c: which member of a sample is the picture, which the class, and which are fields.
 *
 *   picture   the member image_key names; else the first that is a picture by content: .jpg, .jpeg, .png,
 *             .gif, ... are looked at first, then names that end so (input.jpg), then the others in the
 * archive's order; one named mask or seg only when there is no other
 *   class     label_key names a member with a whole number as text, or else a field of the .json member;
 *             without one .cls, .class, .label, then "label", "cls", "class" in the .json
 *   fields    every other member of the sample the schema was taken from, then members that only other
 *             samples have (tar_more.c), under their own names: .txt .text .transcript .json as text, which
 *             must be UTF-8, .npy as tensors of any shape (elements of another type stay bytes), others as
 *             bytes. The value of a sample that lacks one is empty
 *
 * .txt is a caption by custom and becomes a class only when label_key says so. */
#include <math.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/arrays/arrays.h"
#include "formats/image/picture_files.h"
#include "formats/source/value.h"
#include "formats/storage/json_text.h"
#include "formats/tar/tar_sample.h"

static const char *const label_members[] = {"cls", "class", "label"};
static const char *const label_fields[] = {"label", "cls", "class"};
static const char *const mask_words[] = {"mask", "seg"};
static const char *const text_members[] = {"txt", "text", "transcript", "json"};

/* "json" is the end of "meta.json" too. */
static bool ends_as(const char *ext, const char *end)
{
    const size_t m = strlen(ext), n = strlen(end);
    return m >= n && strcmp(ext + m - n, end) == 0 && (m == n || ext[m - n - 1] == '.');
}

/* ---- keys ---- */
static int take_key(char *out, const char *key, bool lower_case, mr_error *err)
{
    if (!key) return MR_OK;
    if (*key == '.') key++; /* ".jpg" is what people see */
    const size_t bytes = strlen(key);
    if (bytes == 0 || bytes > MR_MAX_NAME)
        return mr_error_set(err, MR_EINVAL, "expected a key of 1 to %d bytes, found %zu", MR_MAX_NAME, bytes);
    memcpy(out, key, bytes + 1);
    for (char *p = out; lower_case && *p; p++)
        if (*p >= 'A' && *p <= 'Z') *p = (char)(*p + ('a' - 'A'));
    return MR_OK;
}

int mri_tar_schema_init(mri_tar_schema *s, const char *image_key, const char *label_key, mr_error *err)
{
    *s = (mri_tar_schema){.image_field = -1, .label_field = -1};
    const int rc = take_key(s->image_key, image_key, true, err);
    return rc ? rc : take_key(s->label_key, label_key, false, err); /* fields of JSON have capitals */
}

/* ---- the picture ---- */
static int sniff(const mri_tar_part *part, mri_tar_get *get, void *context, mr_type *type, mr_error *err)
{
    const uint8_t *p;
    const size_t bytes = (size_t)mri_min_u64(part->bytes, MRI_PICTURE_SNIFF_BYTES);
    *type = 0;
    if (bytes == 0 || part->sparse) return MR_OK;
    const int rc = get(context, part->data, bytes, &p, err);
    if (!rc) *type = (mr_type)mr_image_sniff(p, bytes);
    return rc;
}

/* A member that is a field of its own does not stand in for a picture that is missing. */
static bool is_other_field(const mri_tar_schema *s, const char *ext)
{
    const int at = mri_field_find(s->field, s->field_count, ext);
    return at >= 0 && at != s->image_field && at != s->label_field;
}

bool mri_tar_schema_knows(const mri_tar_schema *s, const mri_tar_part *part)
{
    return (s->image_field >= 0 && strcmp(part->ext, s->image) == 0) ||
           (s->label_kind == MRI_TAR_LABEL_TEXT && strcmp(part->ext, s->label) == 0) ||
           is_other_field(s, part->ext);
}

/* "mask.png", "segmentation.png": a word of the name begins so. A mask is a picture, too, but belongs to
 * another one. */
bool mri_tar_is_mask(const char *ext)
{
    for (const char *word = ext; *word; word += strcspn(word, "."), word += *word == '.')
        for (size_t k = 0; k < MRI_ARRAY_COUNT(mask_words); k++)
            if (strncmp(word, mask_words[k], strlen(mask_words[k])) == 0) return true;
    return false;
}

enum { WORST_RANK = 1000 };

static int rank_of(const mri_tar_schema *s, const char *ext)
{
    if (s->image[0] && strcmp(ext, s->image) == 0) return 0;
    const char *ending;
    for (size_t k = 0; (ending = mri_picture_ending_at(k)) != NULL; k++) {
        if (strcmp(ext, ending) == 0) return 1 + (int)k;
        if (ends_as(ext, ending) && !mri_tar_is_mask(ext)) return WORST_RANK - 2;
    }
    return mri_tar_is_mask(ext) ? WORST_RANK : WORST_RANK - 1;
}

/* The first picture in the order of preference; *out stays NULL without a picture. */
static int first_picture(const mri_tar_schema *s, const mri_tar_group *g, mri_tar_get *get, void *context,
                         const mri_tar_part **out, mr_type *type, mr_error *err)
{
    int best = WORST_RANK + 1;
    *out = NULL;
    for (uint32_t k = 0; k < g->count; k++) {
        const mri_tar_part *part = &g->part[k];
        const int rank = rank_of(s, part->ext);
        mr_type found;
        if (rank >= best || is_other_field(s, part->ext)) continue;
        const int rc = sniff(part, get, context, &found, err);
        if (rc) return rc;
        if (!found) continue;
        best = rank;
        *out = part;
        *type = found;
    }
    return MR_OK;
}

/* Names the kind of the member that should have been the picture. */
static int no_picture(const mri_tar_schema *s, const mri_tar_group *g, mri_tar_get *get, void *context,
                      mr_error *err)
{
    char key[128], names[256];
    const mri_tar_part *part = mri_tar_group_find(g, s->image_key[0] ? s->image_key : s->image);
    const uint8_t *p;
    mr_text_shown(g->key, key, sizeof key);
    if (part && !part->sparse && part->bytes > 0) {
        const size_t bytes = (size_t)mri_min_u64(part->bytes, 256);
        mr_image_header none;
        mr_error what = MR_ERROR_INIT;
        const int rc = get(context, part->data, bytes, &p, err);
        if (rc) return rc;
        if (mr_image_header_parse(p, bytes, &none, &what) == MR_OK)
            snprintf(what.text, sizeof what.text, "a picture, but it is a field of its own here");
        mr_error_set(err, MR_EFORMAT, "sample \"%s\", member .%s: %s", key, part->ext, what.text);
        mr_error_at(err, NULL, part->data, MR_NOWHERE);
        return MR_EFORMAT;
    }
    mr_error_set(err, MR_EFORMAT,
                 "sample \"%s\": expected a picture%s%s, found %s (members of one sample must be neighbours)",
                 key, s->image_key[0] ? " in ." : "", s->image_key,
                 mri_tar_group_names(g, names, sizeof names));
    mr_error_at(err, NULL, g->begin, MR_NOWHERE);
    return MR_EFORMAT;
}

int mri_tar_schema_image(const mri_tar_schema *s, const mri_tar_group *g, mri_tar_get *get, void *context,
                         const mri_tar_part **out, mr_type *type, mr_error *err)
{
    int rc = MR_OK;
    if (s->image_key[0]) {
        *type = 0;
        *out = mri_tar_group_find(g, s->image_key);
        if (*out) rc = sniff(*out, get, context, type, err);
        if (!*type) *out = NULL;
    } else {
        rc = first_picture(s, g, get, context, out, type, err);
    }
    return rc || *out ? rc : no_picture(s, g, get, context, err);
}

/* ---- the class ---- */
static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* "17", "-1", " 17\n": as writers put a number down. */
static bool whole_number(const uint8_t *p, size_t bytes, int64_t *out)
{
    const uint8_t *end = p + bytes;
    while (p < end && is_space(*p)) p++;
    while (end > p && is_space(end[-1])) end--;
    const bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    int64_t v = 0;
    if (p == end) return false;
    for (; p < end; p++)
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, *p - '0', &v))
            return false;
    *out = negative ? -v : v;
    return true;
}

static int label_in_text(const mri_tar_part *part, const uint8_t *p, int64_t *out, mr_error *err)
{
    const size_t bytes = (size_t)part->bytes;
    if (whole_number(p, bytes, out)) return MR_OK;
    char raw[MRI_TAR_MAX_LABEL_TEXT + 1], shown[4 * MRI_TAR_MAX_LABEL_TEXT + 1];
    memcpy(raw, p, bytes);
    raw[bytes] = '\0';
    return mr_error_set(err, MR_EFORMAT, "member .%s: expected a class as whole number, found \"%s\"",
                        part->ext, mr_text_shown(raw, shown, sizeof shown));
}

/* The field, or NULL: it must be there once, or readers take different ones. */
static const cJSON *the_field(const cJSON *root, const char *name, int *found)
{
    const cJSON *item, *last = NULL;
    *found = 0;
    cJSON_ArrayForEach(item, root)
    {
        if (!item->string || strcmp(item->string, name) != 0) continue;
        last = item;
        (*found)++;
    }
    return *found == 1 ? last : NULL;
}

static int label_in_object(const cJSON *root, const mri_tar_part *part, const char *name, int64_t *out,
                           mr_error *err)
{
    char shown[4 * MR_MAX_NAME + 1];
    int found = 0;
    mr_text_shown(name, shown, sizeof shown);
    const cJSON *item = cJSON_IsObject(root) ? the_field(root, name, &found) : NULL;
    if (!item)
        return mr_error_set(err, MR_EFORMAT, "member .%s: expected one field \"%s\" with the class, found %s",
                            part->ext, shown,
                            !root                   ? "no JSON"
                            : !cJSON_IsObject(root) ? "no object"
                            : found                 ? "it more than once"
                                                    : "none");
    const double v = item->valuedouble;
    if (!cJSON_IsNumber(item) || v != floor(v) || fabs(v) > 0x1p53)
        return mr_error_set(err, MR_EFORMAT,
                            "member .%s, field \"%s\": expected a class as whole number, found %s", part->ext,
                            shown,
                            cJSON_IsNumber(item)   ? "another number"
                            : cJSON_IsString(item) ? "a text"
                            : cJSON_IsArray(item)  ? "a list"
                                                   : "something else");
    *out = (int64_t)v;
    return MR_OK;
}

static int label_in_json(const mri_tar_part *part, const uint8_t *p, const char *name, int64_t *out,
                         mr_error *err)
{
    const char *end = NULL, *last = (const char *)p + part->bytes;
    bool no_memory;
    cJSON *root = mri_json_parse((const char *)p, (size_t)part->bytes, &end, &no_memory);
    if (no_memory) return mr_error_set(err, MR_ENOMEM, "no memory for member .%s", part->ext);
    while (root && end < last && is_space((uint8_t)*end)) end++;
    if (root && end < last) { /* something follows */
        cJSON_Delete(root);
        root = NULL;
    }
    const int rc = label_in_object(root, part, name, out, err);
    cJSON_Delete(root);
    return rc;
}

bool mri_tar_is_class(const char *ext)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(label_members); k++)
        if (strcmp(ext, label_members[k]) == 0) return true;
    return false;
}

bool mri_tar_schema_is_label(const mri_tar_schema *s, const mri_tar_part *part)
{
    if (s->label_kind == MRI_TAR_LABEL_TEXT) return strcmp(part->ext, s->label) == 0;
    return s->label_kind == MRI_TAR_LABEL_JSON && ends_as(part->ext, "json");
}

int mri_tar_schema_label(const mri_tar_schema *s, const mri_tar_part *part, mri_tar_get *get, void *context,
                         int64_t *out, mr_error *err)
{
    const bool text = s->label_kind == MRI_TAR_LABEL_TEXT;
    const uint64_t most = text ? MRI_TAR_MAX_LABEL_TEXT : MRI_TAR_MAX_JSON;
    const uint8_t *p = NULL;
    int rc = MR_OK;
    if (part->sparse)
        rc = mr_error_set(err, MR_EUNSUPPORTED,
                          "member .%s is stored as a sparse file: write the archive without them", part->ext);
    else if (part->bytes == 0 || part->bytes > most)
        rc = mr_error_set(err, MR_EFORMAT, "member .%s: expected a class in 1 to %llu bytes, found %llu",
                          part->ext, (unsigned long long)most, (unsigned long long)part->bytes);
    if (!rc) rc = get(context, part->data, (size_t)part->bytes, &p, err);
    if (!rc) rc = text ? label_in_text(part, p, out, err) : label_in_json(part, p, s->label, out, err);
    if (rc) mr_error_at(err, NULL, part->data, MR_NOWHERE);
    return rc;
}

/* ---- taking a schema ---- */
static const mri_tar_part *json_part(const mri_tar_group *g)
{
    for (uint32_t k = 0; k < g->count; k++)
        if (ends_as(g->part[k].ext, "json")) return &g->part[k];
    return NULL;
}

static void label_is(mri_tar_schema *s, mri_tar_label kind, const char *name)
{
    s->label_kind = kind;
    snprintf(s->label, sizeof s->label, "%s", name);
}

static void asked_label(mri_tar_schema *s, const mri_tar_group *g)
{
    char ext[MR_MAX_NAME + 1];
    take_key(ext, s->label_key, true, NULL);
    const mri_tar_part *part = mri_tar_group_find(g, ext);
    if (part && !ends_as(ext, "json")) label_is(s, MRI_TAR_LABEL_TEXT, ext);
    else if (json_part(g)) label_is(s, MRI_TAR_LABEL_JSON, s->label_key);
}

/* Of JSON only a field that is there and a number: an object may hold anything. */
static int usual_label(mri_tar_schema *s, const mri_tar_group *g, mri_tar_get *get, void *context,
                       mr_error *err)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(label_members); k++) {
        if (!mri_tar_group_find(g, label_members[k])) continue;
        label_is(s, MRI_TAR_LABEL_TEXT, label_members[k]);
        return MR_OK;
    }
    const mri_tar_part *part = json_part(g);
    for (size_t k = 0; part && k < MRI_ARRAY_COUNT(label_fields); k++) {
        int64_t label;
        mr_error why = MR_ERROR_INIT;
        label_is(s, MRI_TAR_LABEL_JSON, label_fields[k]);
        const int rc = mri_tar_schema_label(s, part, get, context, &label, &why);
        if (rc && err) *err = why;
        if (rc == MR_OK) s->no_class[0] = '\0';
        if (rc == MR_OK || rc == MR_EIO || rc == MR_ENOMEM) return rc;
        if (!s->no_class[0] && strstr(why.text, "expected a class as whole number"))
            snprintf(s->no_class, sizeof s->no_class, "%.*s", (int)sizeof s->no_class - 1, why.text);
    }
    s->label_kind = MRI_TAR_NO_LABEL;
    return MR_OK;
}

static void add_field(mri_tar_schema *s, const char *name, mr_type type)
{
    if (s->field_count == MR_MAX_FIELDS) return;
    s->none[s->field_count] = (mr_value){.type = type};
    s->field[s->field_count++] = mri_field(name, type);
}

/* Names that mean something to those who read a schema are not given to members by chance: "image",
 * "image.entries", "label". */
bool mri_tar_schema_may_add(const mri_tar_schema *s, const char *ext)
{
    return ext[0] && strncmp(ext, "image", 5) != 0 && strcmp(ext, "label") != 0 &&
           mri_field_find(s->field, s->field_count, ext) < 0;
}

/* ---- other members ---- */
static int tensor_of(const void *data, size_t head_bytes, uint64_t bytes, mr_value *out, mr_error *err)
{
    mri_npy a;
    char text[128];
    const int rc = mri_npy_parse(data, head_bytes, bytes, &a, err);
    if (rc) return rc;
    *out = (mr_value){
        .type = MR_TYPE_TENSOR, .dtype = mri_npy_dtype(&a), .ndim = a.ndim ? a.ndim : 1, .dim = {1}};
    if (!out->dtype || a.swapped || a.fortran)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "expected an array of signed, u1 or floating elements, little-endian, rows first; found %s%s",
            mri_npy_text(&a, text, sizeof text), a.fortran ? ", columns first" : "");
    if (a.ndim) memcpy(out->dim, a.dim, a.ndim * sizeof *a.dim);
    out->data = (const uint8_t *)data + a.header_bytes;
    out->bytes = (size_t)(bytes - a.header_bytes);
    return MR_OK;
}

int mri_tar_schema_value(const mr_field *field, const void *data, size_t bytes, mr_value *out, mr_error *err)
{
    *out = (mr_value){.type = field->type, .data = data, .bytes = bytes};
    if (field->type == MR_TYPE_TEXT && !mri_text_is_utf8(data, bytes))
        return mr_error_set(err, MR_EFORMAT, "expected text in UTF-8, found other bytes");
    if (field->type != MR_TYPE_TENSOR) return MR_OK;
    const int rc = tensor_of(data, bytes, bytes, out, err);
    if (rc || out->dtype == field->dtype) return rc;
    return mr_error_set(err, MR_EFORMAT,
                        "expected an array of %s, as in the first sample that has it, found one of %s",
                        mr_dtype_name(field->dtype), mr_dtype_name(out->dtype));
}

/* None of it, of the shape that the first sample with it has: no boxes are 0 x 4. */
static int add_tensor(mri_tar_schema *s, const mri_tar_part *part, mri_tar_get *get, void *context,
                      mr_error *err)
{
    const uint8_t *p = NULL;
    const size_t head_bytes = (size_t)mri_min_u64(part->bytes, MRI_NPY_HEAD_BYTES);
    mr_value v;
    const int rc = part->sparse || !head_bytes ? MR_OK : get(context, part->data, head_bytes, &p, err);
    if (rc == MR_EIO || rc == MR_ENOMEM) return rc;
    if (rc || !p || tensor_of(p, head_bytes, part->bytes, &v, NULL) != MR_OK) {
        add_field(s, part->ext, MR_TYPE_BYTES);
        return MR_OK;
    }
    if (s->field_count == MR_MAX_FIELDS) return MR_OK;
    v.dim[0] = v.bytes = 0;
    v.data = NULL;
    add_field(s, part->ext, MR_TYPE_TENSOR);
    s->field[s->field_count - 1].dtype = v.dtype;
    s->none[s->field_count - 1] = v;
    return MR_OK;
}

int mri_tar_schema_add(mri_tar_schema *s, const mri_tar_part *part, mri_tar_get *get, void *context,
                       mr_error *err)
{
    mr_type type = MR_TYPE_BYTES;
    if (ends_as(part->ext, "npy")) return add_tensor(s, part, get, context, err);
    for (size_t t = 0; t < MRI_ARRAY_COUNT(text_members); t++)
        if (ends_as(part->ext, text_members[t])) type = MR_TYPE_TEXT;
    add_field(s, part->ext, type);
    return MR_OK;
}

static int add_other(mri_tar_schema *s, const mri_tar_group *g, const mri_tar_part *image, mri_tar_get *get,
                     void *context, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && k < g->count; k++) {
        const mri_tar_part *part = &g->part[k];
        const bool label = s->label_kind == MRI_TAR_LABEL_TEXT && mri_tar_schema_is_label(s, part);
        const bool again = image && part != image && strcmp(part->ext, image->ext) == 0; /* a second picture
                                                                                          */
        if (part == image || label || again || !mri_tar_schema_may_add(s, part->ext)) continue;
        rc = mri_tar_schema_add(s, part, get, context, err);
    }
    return rc;
}

int mri_tar_schema_take(mri_tar_schema *s, const mri_tar_group *g, mri_tar_get *get, void *context,
                        mr_error *err)
{
    const mri_tar_part *image = NULL;
    mr_type type;
    s->image[0] = s->no_class[0] = '\0';
    s->label_kind = MRI_TAR_NO_LABEL;
    s->field_count = 0;
    s->image_field = s->label_field = -1;
    int rc = mri_tar_schema_image(s, g, get, context, &image, &type, err);
    if (rc == MR_EFORMAT) rc = MR_OK;
    if (!rc && s->label_key[0]) asked_label(s, g);
    else if (!rc) rc = usual_label(s, g, get, context, err);
    if (rc) return rc;
    if (image) {
        memcpy(s->image, image->ext, sizeof s->image);
        s->image_field = (int)s->field_count;
        add_field(s, "image", MR_TYPE_IMAGE);
    }
    if (s->label_kind != MRI_TAR_NO_LABEL) {
        s->label_field = (int)s->field_count;
        add_field(s, "label", MR_TYPE_INT);
    }
    return add_other(s, g, image, get, context, err);
}
