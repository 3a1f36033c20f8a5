/* formats/tfrecord/example.c: reading tf.train.Example. See example.h; the builder is in example_build.c. */
#include "formats/tfrecord/example.h"

#include "base/util.h"

enum {
    VARINT = 0,
    FIXED64 = 1,
    LENGTH = 2,
    GROUP = 3,
    GROUP_END = 4,
    FIXED32 = 5,
    MOST_VARINT = 10,
    MOST_GROUPS = 32
};

typedef struct field {
    uint32_t number, wire;
    mri_span value; /* LENGTH: its bytes; FIXED32, FIXED64: 4 or 8 bytes; a whole GROUP */
    uint64_t varint;
} field;

const char *mri_feature_kind_text(mri_feature_kind kind)
{
    static const char *const texts[] = {"nothing", "bytes (BytesList)", "floats (FloatList)",
                                        "whole numbers (Int64List)"};
    return (unsigned)kind < MRI_ARRAY_COUNT(texts) ? texts[kind] : texts[0];
}

/* ---- wire format ---- */
static int no_protobuf(mr_error *err, const char *what)
{
    return mr_error_set(err, MR_EFORMAT, "no tf.train.Example: %s", what);
}

static mri_span take(mri_span *from, size_t bytes)
{
    const mri_span taken = {from->data, bytes};
    from->data += bytes;
    from->bytes -= bytes;
    return taken;
}

static bool take_varint(mri_span *from, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t k = 0; k < MOST_VARINT && k < from->bytes; k++) {
        v |= (uint64_t)(from->data[k] & 0x7f) << (7 * k); /* of a tenth byte one bit has room: the rest is
                                                             dropped, as everywhere */
        if (from->data[k] & 0x80) continue;
        take(from, k + 1);
        *out = v;
        return true;
    }
    return false;
}

static int take_tag(mri_span *from, field *f, mr_error *err)
{
    uint64_t tag;
    if (!take_varint(from, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return no_protobuf(err, "a field's number is damaged");
    f->number = (uint32_t)(tag >> 3);
    f->wire = (uint32_t)(tag & 7);
    return MR_OK;
}

static int take_value(mri_span *from, field *f, mr_error *err)
{
    uint64_t bytes;
    if (f->wire == VARINT) {
        if (!take_varint(from, &f->varint)) return no_protobuf(err, "a number does not end");
        f->value = (mri_span){NULL, 0};
        return MR_OK;
    }
    if (f->wire == LENGTH) {
        if (!take_varint(from, &bytes)) return no_protobuf(err, "a length does not end");
    } else if (f->wire == FIXED32 || f->wire == FIXED64) {
        bytes = f->wire == FIXED32 ? 4 : 8;
    } else {
        return no_protobuf(err, "a field has an unknown type");
    }
    if (bytes > from->bytes)
        return mr_error_set(err, MR_EFORMAT, "no tf.train.Example: a field of %llu bytes where %zu are left",
                            (unsigned long long)bytes, from->bytes);
    f->value = take(from, (size_t)bytes);
    return MR_OK;
}

/* Skip the rest of a group after its first tag, nested groups included. Nobody writes groups any more; they
 * are only skipped. */
static int skip_group(mri_span *from, uint32_t number, mr_error *err)
{
    uint32_t open[MOST_GROUPS] = {number}, depth = 1;
    while (depth > 0) {
        field f = {0};
        int rc = take_tag(from, &f, err);
        if (rc) return rc;
        if (f.wire == GROUP) {
            if (depth == MOST_GROUPS) return no_protobuf(err, "groups are nested too deep");
            open[depth++] = f.number;
        } else if (f.wire == GROUP_END) {
            if (open[--depth] != f.number) return no_protobuf(err, "a group ends that did not begin");
        } else {
            rc = take_value(from, &f, err);
            if (rc) return rc;
        }
    }
    return MR_OK;
}

static int take_field(mri_span *from, field *f, mr_error *err)
{
    const int rc = take_tag(from, f, err);
    if (rc) return rc;
    return f->wire == GROUP ? skip_group(from, f->number, err) : take_value(from, f, err);
}

/* ---- messages ---- */
/* The last kind of list, and where the lists of that kind begin. */
static int read_feature(mri_span feature, mri_feature *out, mr_error *err)
{
    out->kind = MRI_FEATURE_NONE;
    out->lists = (mri_span){feature.data, 0};
    while (feature.bytes > 0) {
        const mri_span before = feature;
        field f;
        const int rc = take_field(&feature, &f, err);
        if (rc) return rc;
        if (f.wire != LENGTH || f.number < MRI_FEATURE_BYTES || f.number > MRI_FEATURE_INTS ||
            f.number == (uint32_t)out->kind)
            continue;
        out->kind = (mri_feature_kind)f.number;
        out->lists = before;
    }
    return MR_OK;
}

static int read_entry(mri_span entry, mri_feature *out, mr_error *err)
{
    mri_span value = {NULL, 0};
    bool has_value = false;
    *out = (mri_feature){.key = {entry.data, 0}};
    while (entry.bytes > 0) {
        field f;
        const int rc = take_field(&entry, &f, err);
        if (rc) return rc;
        if (f.wire == LENGTH && f.number == 1) out->key = f.value;
        if (f.wire != LENGTH || f.number != 2) continue;
        if (has_value) return no_protobuf(err, "a feature has two values");
        value = f.value;
        has_value = true;
    }
    return read_feature(value, out, err);
}

void mri_example_begin(mri_example_walk *w, const void *data, size_t bytes)
{
    *w = (mri_example_walk){.example = {data, bytes}, .features = {data, 0}};
}

/* The next Features of the Example: one as a rule. */
static int next_features(mri_example_walk *w, mr_error *err)
{
    while (w->example.bytes > 0) {
        field f;
        const int rc = take_field(&w->example, &f, err);
        if (rc) return rc;
        if (f.number == 2 && f.wire == LENGTH)
            return mr_error_set(
                err, MR_EUNSUPPORTED,
                "expected a tf.train.Example, found a SequenceExample (it has feature lists): "
                "write its steps as Examples");
        if (f.number == 1 && f.wire != LENGTH) return no_protobuf(err, "its first field is no message");
        if (f.number != 1) continue;
        w->features = f.value;
        return MR_OK;
    }
    return MR_EEND;
}

int mri_example_next(mri_example_walk *w, mri_feature *out, mr_error *err)
{
    for (;;) {
        while (w->features.bytes > 0) {
            field f;
            int rc = take_field(&w->features, &f, err);
            if (rc) return rc;
            if (f.number != 1) continue;
            if (f.wire != LENGTH) return no_protobuf(err, "its features are no map");
            return read_entry(f.value, out, err);
        }
        const int rc = next_features(w, err);
        if (rc) return rc;
    }
}

int mri_example_pick(const void *data, size_t bytes, const char *const *keys, uint32_t key_count,
                     mri_feature *out, mr_error *err)
{
    mri_example_walk w;
    mri_feature f;
    int rc;
    for (uint32_t k = 0; k < key_count; k++) out[k] = (mri_feature){0};
    mri_example_begin(&w, data, bytes);
    while ((rc = mri_example_next(&w, &f, err)) == MR_OK)
        for (uint32_t k = 0; k < key_count; k++)
            if (keys[k] && strlen(keys[k]) == f.key.bytes && memcmp(keys[k], f.key.data, f.key.bytes) == 0)
                out[k] = f;
    return rc == MR_EEND ? MR_OK : rc;
}

/* ---- values ---- */
typedef struct values { /* the values of one feature, one after the other */
    mri_span lists, list;
    mri_feature_kind kind;
} values;

/* The next field of number 1 in the lists; MR_EEND after the last. */
static int next_value(values *v, field *f, mr_error *err)
{
    for (;;) {
        mri_span *from = v->list.bytes > 0 ? &v->list : &v->lists;
        if (from->bytes == 0) return MR_EEND;
        const int rc = take_field(from, f, err);
        if (rc) return rc;
        if (from == &v->lists) {
            if (f->wire == LENGTH && f->number == (uint32_t)v->kind) v->list = f->value;
        } else if (f->number == 1) {
            return MR_OK;
        }
    }
}

static int wrong_element(mr_error *err, mri_feature_kind kind)
{
    return mr_error_set(err, MR_EFORMAT, "no tf.train.Example: something else in a list of %s",
                        mri_feature_kind_text(kind));
}

int mri_feature_ints(const mri_feature *f, int64_t *out, size_t cap, size_t *count, mr_error *err)
{
    values v = {.lists = f->kind == MRI_FEATURE_INTS ? f->lists : (mri_span){0}, .kind = MRI_FEATURE_INTS};
    field e;
    int rc;
    *count = 0;
    while ((rc = next_value(&v, &e, err)) == MR_OK) {
        if (e.wire != VARINT && e.wire != LENGTH) return wrong_element(err, v.kind);
        for (mri_span packed = e.value; e.wire == VARINT || packed.bytes > 0;) {
            if (e.wire == LENGTH && !take_varint(&packed, &e.varint))
                return no_protobuf(err, "a number does not end");
            if (*count < cap) out[*count] = (int64_t)e.varint;
            (*count)++;
            if (e.wire == VARINT) break;
        }
    }
    return rc == MR_EEND ? MR_OK : rc;
}

/* One float and a packed list of them look the same here: 4 bytes each. */
static int next_floats(values *v, mri_span *out, mr_error *err)
{
    field e;
    const int rc = next_value(v, &e, err);
    if (rc) return rc;
    if ((e.wire != FIXED32 && e.wire != LENGTH) || e.value.bytes % sizeof(float) != 0)
        return wrong_element(err, v->kind);
    *out = e.value;
    return MR_OK;
}

static values floats_of(const mri_feature *f)
{
    return (values){.lists = f->kind == MRI_FEATURE_FLOATS ? f->lists : (mri_span){0},
                    .kind = MRI_FEATURE_FLOATS};
}

int mri_feature_floats(const mri_feature *f, float *out, size_t cap, size_t *count, mr_error *err)
{
    values v = floats_of(f);
    mri_span piece = {0};
    int rc;
    *count = 0;
    while ((rc = next_floats(&v, &piece, err)) == MR_OK) {
        const size_t more = piece.bytes / sizeof *out, room = *count < cap ? cap - *count : 0;
        if (more > 0 && room > 0) memcpy(out + *count, piece.data, (more < room ? more : room) * sizeof *out);
        *count += more;
    }
    return rc == MR_EEND ? MR_OK : rc;
}

int mri_feature_floats_at(const mri_feature *f, const uint8_t **out, size_t *count, bool *whole,
                          mr_error *err)
{
    values v = floats_of(f);
    mri_span piece = {0};
    int rc;
    *out = NULL;
    *count = 0;
    *whole = true;
    while ((rc = next_floats(&v, &piece, err)) == MR_OK) {
        if (piece.bytes == 0) continue;
        if (*count > 0) *whole = false;
        else *out = piece.data;
        *count += piece.bytes / sizeof(float);
    }
    return rc == MR_EEND ? MR_OK : rc;
}

int mri_feature_bytes(const mri_feature *f, mri_span *out, size_t cap, size_t *count, mr_error *err)
{
    values v = {.lists = f->kind == MRI_FEATURE_BYTES ? f->lists : (mri_span){0}, .kind = MRI_FEATURE_BYTES};
    field e;
    int rc;
    *count = 0;
    while ((rc = next_value(&v, &e, err)) == MR_OK) {
        if (e.wire != LENGTH) return wrong_element(err, v.kind);
        if (*count < cap) out[*count] = e.value;
        (*count)++;
    }
    return rc == MR_EEND ? MR_OK : rc;
}
