/* formats/tfrecord/tfrecord_more.c: see tfrecord_more.h. */
#include "formats/tfrecord/tfrecord_more.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/source/value.h"
#include "formats/tfrecord/tfrecord_facts.h"

void mri_tf_more_begin(mri_tf_more *m) { m->samples++; }

mri_tf_more_feature *mri_tf_more_find(mri_tf_more *m, mri_span key)
{
    for (uint32_t k = 0; k < m->count; k++)
        if (strlen(m->feature[k].key) == key.bytes && memcmp(m->feature[k].key, key.data, key.bytes) == 0)
            return &m->feature[k];
    return NULL;
}

/* NULL: no such name, or no room. */
static mri_tf_more_feature *put(mri_tf_more *m, const mri_feature *f)
{
    const size_t n = f->key.bytes;
    if (m->count == MRI_TF_MOST_MORE || n == 0 || n > MR_MAX_NAME || memchr(f->key.data, 0, n)) {
        m->unnamed++;
        return NULL;
    }
    mri_tf_more_feature *at = &m->feature[m->count++];
    *at = (mri_tf_more_feature){.kind = f->kind};
    memcpy(at->key, f->key.data, n);
    return at;
}

/* How many values there are; *one: of bytes, the value. */
static int count_values(const mri_feature *f, size_t *count, bool *whole, mri_span *one, mr_error *err)
{
    const uint8_t *floats;
    *whole = true;
    *one = (mri_span){0};
    if (f->kind == MRI_FEATURE_BYTES) return mri_feature_bytes(f, one, 1, count, err);
    if (f->kind == MRI_FEATURE_INTS) return mri_feature_ints(f, NULL, 0, count, err);
    return mri_feature_floats_at(f, &floats, count, whole, err);
}

int mri_tf_more_add(mri_tf_more *m, mri_tf_more_feature *at, const mri_feature *f, mr_error *err)
{
    size_t count;
    bool whole;
    mri_span one;
    const int rc = count_values(f, &count, &whole, &one, NULL);
    if (rc == MR_ENOMEM) return mr_error_set(err, rc, "no memory for the values of a feature");
    if (!rc && count == 0) return MR_OK;
    if (!at) at = put(m, f);
    if (!at) return MR_OK;
    if (rc) { /* damaged values of a feature that nobody asked for cost this feature alone */
        at->odd = true;
        return MR_OK;
    }
    at->odd |= !whole || at->kind != f->kind || at->last == m->samples;
    at->differs |= at->records > 0 && at->values != count;
    at->no_text |= f->kind == MRI_FEATURE_BYTES && !at->no_text && !mri_text_is_utf8(one.data, one.bytes);
    if (at->records++ == 0) at->values = count;
    at->last = m->samples;
    return MR_OK;
}

/* ---- fields ---- */
/* Names that mean something to those who read a schema. */
static bool is_taken(const char *key)
{
    static const char *const names[] = {"image", "label", "boxes", "box_labels", "mask", MRI_ENTRIES_NAME};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(names); k++)
        if (strcmp(key, names[k]) == 0) return true;
    return false;
}

bool mri_tf_more_field(const mri_tf_more *m, const mri_tf_more_feature *at, mr_field *out)
{
    const bool one = !at->differs && at->values == 1, all = at->records == m->samples;
    if (at->odd || at->records == 0 || is_taken(at->key)) return false;
    if (at->kind == MRI_FEATURE_BYTES) {
        *out = mri_field(at->key, at->no_text ? MR_TYPE_BYTES : MR_TYPE_TEXT);
        return one;
    }
    if (one && all) {
        *out = mri_field(at->key, at->kind == MRI_FEATURE_INTS ? MR_TYPE_INT : MR_TYPE_FLOAT);
        return true;
    }
    *out = mri_field(at->key, MR_TYPE_TENSOR);
    out->dtype = MR_F32;
    out->ndim = all && !at->differs;
    out->dim[0] = out->ndim ? at->values : 0;
    return at->kind == MRI_FEATURE_FLOATS;
}

/* ---- lines for the user ---- */
typedef struct line {
    char *text;
    size_t used;
} line;

/* ", KEY (what, in N records)", as far as it fits. */
static void list(line *l, const mri_tf_more *m, const mri_tf_more_feature *at)
{
    static const char *const kinds[] = {"empty", "bytes", "floats", "whole numbers"};
    char shown[4 * MR_MAX_NAME + 1];
    const size_t room = MRI_TF_TOLD - l->used;
    mr_text_shown(at->key, shown, sizeof shown);
    const bool lists = at->differs || at->values > 1;
    const int n = snprintf(l->text + l->used, room, "%s%s (%s%s, in %" PRIu64 " of %" PRIu64 " records)",
                           l->used ? ", " : "", shown, lists ? "lists of " : "", kinds[at->kind], at->records,
                           m->samples);
    if (n > 0 && (size_t)n < room) l->used += (size_t)n;
    else l->text[l->used] = '\0';
}

void mri_tf_more_tell_left(const mri_tf_more *m, uint32_t room, char out[MRI_TF_TOLD])
{
    char names[MRI_TF_TOLD] = "";
    line l = {names, 0};
    uint64_t left = 0;
    uint32_t fields = 0;
    mr_field field;
    for (uint32_t k = 0; k < m->count; k++) {
        if (m->feature[k].records == 0) continue;
        if (mri_tf_more_field(m, &m->feature[k], &field) && fields++ < room) continue;
        left++;
        list(&l, m, &m->feature[k]);
    }
    out[0] = '\0';
    if (left)
        snprintf(out, MRI_TF_TOLD, "%" PRIu64 " feature%s left out, which can be no field: %.900s", left,
                 left == 1 ? " is" : "s are", names);
    else if (m->unnamed)
        snprintf(out, MRI_TF_TOLD,
                 "features are left out: their names are longer than %d bytes, or there are more than %d",
                 MR_MAX_NAME, MRI_TF_MOST_MORE);
}

static bool may_be_class(const char *key)
{
    static const char *const words[] = {"label", "class", "target", "category"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(words); k++)
        if (strstr(key, words[k])) return true;
    return false;
}

void mri_tf_more_tell_class(const mri_tf_more *m, bool boxes, char out[MRI_TF_TOLD])
{
    const mri_tf_more_feature *found[MRI_TF_MOST_MORE];
    uint32_t count = 0, likely = 0;
    mr_field field;
    out[0] = '\0';
    for (uint32_t k = 0; k < m->count; k++) {
        const mri_tf_more_feature *at = &m->feature[k];
        if (!mri_tf_more_field(m, at, &field) || field.type != MR_TYPE_INT) continue;
        const bool is_likely = may_be_class(at->key);
        if (is_likely && likely++ == 0) count = 0; /* these alone */
        if (is_likely == (likely > 0)) found[count++] = at;
    }
    if (count == 0 || (boxes && !likely)) return;
    char shown[4 * MR_MAX_NAME + 1];
    size_t at = (size_t)snprintf(out, MRI_TF_TOLD, "no class is taken: whole numbers are in");
    for (uint32_t k = 0; k < count && at + sizeof shown + 160 < MRI_TF_TOLD; k++)
        at += (size_t)snprintf(out + at, MRI_TF_TOLD - at, "%s %s", k ? "," : "",
                               mr_text_shown(found[k]->key, shown, sizeof shown));
    snprintf(out + at, MRI_TF_TOLD - at, "; --label-key NAME takes one as the class");
}

/* ---- a record ---- */
static int take_floats(const mr_field *field, const mri_feature *f, mr_value *out, mr_error *err)
{
    const uint8_t *floats;
    size_t count;
    bool whole;
    const int rc = mri_feature_floats_at(f, &floats, &count, &whole, err);
    if (rc) return rc;
    if (!whole || (field->type == MR_TYPE_FLOAT && count != 1) || (field->ndim && count != field->dim[0]))
        return mr_error_set(err, MR_EFORMAT,
                            "feature \"%s\": %zu floats, the index has others: remove the index", field->name,
                            count);
    if (field->type == MR_TYPE_FLOAT) {
        float one;
        memcpy(&one, floats, sizeof one);
        out->f = (double)one;
        return MR_OK;
    }
    out->dtype = MR_F32;
    out->ndim = 1;
    out->dim[0] = count;
    out->data = floats;
    out->bytes = count * sizeof(float);
    return MR_OK;
}

int mri_tf_more_value(const mr_field *field, const mri_feature *f, mr_value *out, mr_error *err)
{
    mri_span bytes = {0};
    *out = (mr_value){.type = field->type};
    if (field->type == MR_TYPE_INT) return mri_tf_one_int(f, field->name, &out->i, err);
    if (field->type == MR_TYPE_FLOAT || field->type == MR_TYPE_TENSOR) return take_floats(field, f, out, err);
    size_t count;
    int rc = mri_feature_bytes(f, &bytes, 1, &count, err);
    if (!rc && count > 1) rc = mri_tf_one_bytes(f, field->name, &bytes, err);
    if (!rc && field->type == MR_TYPE_TEXT && !mri_text_is_utf8(bytes.data, bytes.bytes))
        rc = mr_error_set(err, MR_EFORMAT, "feature \"%s\": expected text in UTF-8, found other bytes",
                          field->name);
    out->data = bytes.data;
    out->bytes = bytes.bytes;
    return rc;
}
