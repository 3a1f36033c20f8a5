/* tests/fuzz/sets/fuzz_roundtrip.c: written samples are read back equal. The input describes samples; they
 * are written as each format has it, read again, and compared.
 *
 *   byte 0, mod 8   0 Example in TFRecord   1 tar     2 RecordIO   3 .mrec records
 *                   4 table   5 sequences   6 npy     7 IDX, CIFAR */
#include <fcntl.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/arrays/npy.h"
#include "formats/record/mrec.h"
#include "formats/recordio/recordio.h"
#include "formats/source/value.h"
#include "formats/tar/tar.h"
#include "formats/text/csv.h"
#include "formats/tfrecord/example.h"
#include "formats/tfrecord/tfrecord.h"
#include "tests/fuzz/fuzz_source.h"

/* ---- a description ---- */
typedef struct spec {
    const uint8_t *at, *end;
} spec;

static unsigned take(spec *s) { return s->at < s->end ? *s->at++ : 0; }
static bool more(const spec *s) { return s->at < s->end; }

/* The next `bytes` bytes, or the rest. */
static mri_span take_span(spec *s, size_t bytes)
{
    const size_t left = (size_t)(s->end - s->at), n = bytes < left ? bytes : left;
    const mri_span out = {s->at, n};
    s->at += n;
    return out;
}

static int64_t take_i64(spec *s)
{
    uint64_t v = 0;
    const unsigned bytes = take(s) % 9;
    for (unsigned k = 0; k < bytes; k++) v = v << 8 | take(s);
    return (int64_t)(bytes == 8 || !(v >> 62) ? v : ~v);
}

static uint8_t out[1 << 18]; /* the written bytes */
static size_t used;

static void put(const void *data, size_t bytes)
{
    if (bytes > sizeof out - used) abort();
    if (bytes) memcpy(out + used, data, bytes);
    used += bytes;
}

static bool same(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return a_bytes == b_bytes && (a_bytes == 0 || memcmp(a, b, a_bytes) == 0);
}

static void must(bool holds)
{
    if (!holds) abort();
}

static mr_source *reopen(const char *name, const char *format, const char *label_key)
{
    const mr_source_config cfg = fuzz_config(format, label_key);
    mr_source *src;
    must(mr_source_open(&src, mrt_fuzz_file(name, out, used), &cfg, NULL) == MR_OK);
    return src;
}

/* ---- Example, TFRecord ---- */
enum { FEATURES = 6, VALUES = 12 };
typedef struct feature {
    char key[24];
    mri_feature_kind kind;
    size_t count;
    mri_span bytes;
    int64_t ints[VALUES];
    float floats[VALUES];
} feature;

static void take_feature(spec *s, feature *f, int number)
{
    *f = (feature){.kind = (mri_feature_kind)(1 + take(s) % 3), .count = take(s) % (VALUES + 1)};
    const mri_span key = take_span(s, take(s) % 16);
    int n = 0;
    for (size_t k = 0; k < key.bytes; k++)
        if (key.data[k]) f->key[n++] = (char)key.data[k];
    snprintf(f->key + n, sizeof f->key - (size_t)n, "%d", number); /* no key twice */
    if (f->kind == MRI_FEATURE_BYTES) f->bytes = take_span(s, take(s) * (take(s) % 4));
    for (size_t k = 0; k < f->count; k++) {
        if (f->kind == MRI_FEATURE_INTS) f->ints[k] = take_i64(s);
        if (f->kind == MRI_FEATURE_FLOATS) f->floats[k] = (float)take_i64(s) / 16;
    }
}

static void check_feature(const feature *f, const mri_feature *found)
{
    int64_t ints[VALUES];
    float floats[VALUES];
    mri_span bytes;
    size_t count;
    must(found->kind == f->kind);
    if (f->kind == MRI_FEATURE_BYTES) {
        must(mri_feature_bytes(found, &bytes, 1, &count, NULL) == MR_OK && count == 1);
        must(same(bytes.data, bytes.bytes, f->bytes.data, f->bytes.bytes));
    } else if (f->kind == MRI_FEATURE_INTS) {
        must(mri_feature_ints(found, ints, VALUES, &count, NULL) == MR_OK && count == f->count);
        must(same(ints, count * sizeof *ints, f->ints, count * sizeof *ints));
    } else {
        must(mri_feature_floats(found, floats, VALUES, &count, NULL) == MR_OK && count == f->count);
        must(same(floats, count * sizeof *floats, f->floats, count * sizeof *floats));
    }
}

static void example(spec *s)
{
    feature f[FEATURES];
    mri_feature found[FEATURES];
    const char *keys[FEATURES];
    mri_example_builder b = {0};
    mri_span e;
    uint64_t length;
    const int count = 1 + (int)(take(s) % FEATURES);
    mri_example_restart(&b);
    for (int k = 0; k < count; k++) {
        take_feature(s, &f[k], k);
        keys[k] = f[k].key;
        if (f[k].kind == MRI_FEATURE_BYTES)
            mri_example_add_bytes(&b, f[k].key, f[k].bytes.data, f[k].bytes.bytes);
        else if (f[k].kind == MRI_FEATURE_INTS) mri_example_add_ints(&b, f[k].key, f[k].ints, f[k].count);
        else mri_example_add_floats(&b, f[k].key, f[k].floats, f[k].count);
    }
    must(mri_example_finish(&b, &e, NULL) == MR_OK && e.bytes + 16 <= sizeof out);
    mri_tfrecord_put_head(out, e.bytes);
    used = MRI_TFRECORD_HEAD;
    put(e.data, e.bytes);
    mri_tfrecord_put_tail(out + used, e.data, e.bytes);
    mri_example_fini(&b);
    must(mri_tfrecord_length(out, &length) && length == used - MRI_TFRECORD_HEAD);
    must(mri_tfrecord_crc(out + MRI_TFRECORD_HEAD, length) == mri_le32(out + used));
    must(mri_example_pick(out + MRI_TFRECORD_HEAD, length, keys, (uint32_t)count, found, NULL) == MR_OK);
    for (int k = 0; k < count; k++) check_feature(&f[k], &found[k]);
}

/* ---- tar ---- */
enum { MEMBERS = 8 };

static int get_out(void *context, uint64_t offset, size_t bytes, const uint8_t **p, mr_error *err)
{
    (void)context, (void)err;
    must(bytes <= used && offset <= used - bytes);
    *p = out + offset;
    return MR_OK;
}

static void archive(spec *s)
{
    static mri_tar t;
    static char name[MEMBERS][700];
    mri_span data[MEMBERS];
    mri_tar_member m;
    size_t head;
    int count = 0;
    for (int k = 0; k < MEMBERS && more(s); k++) {
        const mri_span text = take_span(s, take(s) | (take(s) % 2) << 8);
        size_t n = 0;
        for (size_t c = 0; c < text.bytes; c++)
            if (text.data[c]) name[count][n++] = (char)text.data[c];
        name[count][n] = '\0';
        data[count] = take_span(s, take(s) << take(s) % 4);
        if (n == 0 || mri_tar_head_write(name[count], data[count].bytes, out + used, sizeof out - used, &head,
                                         NULL) != MR_OK)
            continue;
        must(head == mri_tar_head_bytes(name[count], data[count].bytes));
        used += head;
        put(data[count].data, data[count].bytes);
        while (used % MRI_TAR_BLOCK) out[used++] = 0;
        count++;
    }
    memset(out + used, 0, MRI_TAR_END);
    used += MRI_TAR_END;
    mri_tar_init(&t, get_out, NULL, 0, used);
    for (int k = 0; k < count; k++) {
        must(mri_tar_next(&t, &m, NULL) == MR_OK && m.kind == MRI_TAR_FILE);
        must(same(m.name, m.name_bytes, name[k], strlen(name[k])) &&
             same(out + m.data, m.bytes, data[k].data, data[k].bytes));
    }
    must(mri_tar_next(&t, &m, NULL) == MR_EEND && mri_tar_finish(&t, NULL) == MR_OK && t.end_blocks == 2);
}

/* ---- RecordIO ---- */
static void recordio(spec *s)
{
    static uint8_t record[4096], back[sizeof record];
    struct {
        uint64_t offset;
        size_t bytes;
        mri_picture_head h;
        float label[4];
        mri_span data;
    } made[8];
    int count = 0;
    for (; count < 8 && more(s); count++) {
        const unsigned kind = take(s);
        made[count].h = (mri_picture_head){.label_count = kind % 5,
                                           .label = kind % 5 ? 0 : (float)(int8_t)take(s),
                                           .id = (uint64_t)take_i64(s)};
        for (unsigned k = 0; k < kind % 5; k++) made[count].label[k] = (float)take(s);
        made[count].data = take_span(s, take(s) * (1 + kind % 3));
        uint8_t *p = mri_picture_head_build(&made[count].h, made[count].label, record);
        if (kind & 0x80) p = memcpy(p, "\x0a\x23\xd7\xce", 4), p += 4; /* the magic in the data */
        if (made[count].data.bytes) memcpy(p, made[count].data.data, made[count].data.bytes);
        made[count].bytes = (size_t)(p - record) + made[count].data.bytes;
        made[count].offset = used;
        must(mri_recordio_build(record, (uint32_t)made[count].bytes, out + used) ==
             out + used + mri_recordio_bytes(record, (uint32_t)made[count].bytes));
        used += mri_recordio_bytes(record, (uint32_t)made[count].bytes);
    }
    mri_recordio_memory m = {out, used};
    mri_recordio_input in = mri_recordio_in_memory(&m);
    mri_recordio_record r = {0};
    mri_picture_head h;
    for (int k = 0; k < count; k++) {
        must(mri_recordio_read_headers(&in, made[k].offset, &r, NULL) == MR_OK &&
             r.data_bytes == made[k].bytes);
        must(mri_recordio_copy(&in, &r, back, r.data_bytes, NULL) == MR_OK &&
             mri_picture_head_parse(back, r.data_bytes, &h, NULL) == MR_OK);
        must(h.label_count == made[k].h.label_count && h.id == made[k].h.id && h.label == made[k].h.label);
        must(same(back + MRI_PICTURE_HEAD_BYTES, 4 * h.label_count, made[k].label, 4 * h.label_count));
        must(same(back + made[k].bytes - made[k].data.bytes, made[k].data.bytes, made[k].data.data,
                  made[k].data.bytes));
        must(r.offset + r.bytes == (k + 1 < count ? made[k + 1].offset : used));
    }
}

/* ---- .mrec records ---- */
static void value_of(spec *s, mr_field *f, mr_value *v)
{
    static const mr_type types[] = {MR_TYPE_INT,    MR_TYPE_FLOAT,  MR_TYPE_BYTES,
                                    MR_TYPE_TENSOR, MR_TYPE_PIXELS, MR_TYPE_JPEG};
    *v = (mr_value){.type = types[take(s) % MRI_ARRAY_COUNT(types)]};
    f->type = v->type;
    if (v->type == MR_TYPE_INT) v->i = take_i64(s);
    else if (v->type == MR_TYPE_FLOAT) v->f = (double)take_i64(s) / 3;
    else {
        const mri_span data = take_span(s, take(s));
        v->data = data.data;
        v->bytes = data.bytes;
    }
    if (v->type == MR_TYPE_TENSOR) {
        f->dtype = v->dtype = take(s) % 2 && v->bytes % 2 == 0 ? MR_I16 : MR_U8;
        v->ndim = 1 + take(s) % MR_MAX_DIMS;
        for (uint32_t k = 0; k < v->ndim; k++) v->dim[k] = 1;
        v->dim[take(s) % v->ndim] = v->bytes / mr_dtype_bytes(v->dtype);
    } else if (v->type == MR_TYPE_PIXELS) {
        v->ndim = 3;
        v->planes = take(s) % 2 ? MR_CHW : MR_HWC;
        v->dim[0] = v->dim[2] = 1;
        v->dim[1] = v->bytes;
    }
}

static void mrec(spec *s)
{
    mri_meta meta = {.field_count = 1 + take(s) % 6, .label_field = -1, .image_field = -1};
    mr_value v[6];
    mr_sample sample;
    mri_record_size size;
    mri_record_facts facts;
    mr_error err = MR_ERROR_INIT;
    const uint64_t number = (uint64_t)take_i64(s);
    for (uint32_t k = 0; k < meta.field_count; k++) {
        meta.fields[k].name[0] = (char)('a' + k);
        value_of(s, &meta.fields[k], &v[k]);
        if (mri_value_check(&meta.fields[k], &v[k], MR_EINVAL, &err) != MR_OK)
            return; /* as the writer asks first */
    }
    must(mri_record_measure(v, meta.field_count, &size) && size.record_bytes <= sizeof out);
    const uint32_t crc = mri_record_encode(v, meta.field_count, number, &size, out);
    used = size.header_bytes;
    for (uint32_t k = 0; k < meta.field_count; k++) {
        uint8_t scratch[8];
        size_t bytes;
        const void *data = mri_value_bytes(&v[k], scratch, &bytes);
        while (used % 8) out[used++] = 0;
        put(data, bytes);
    }
    must(used == size.record_bytes && mri_record_parse(&meta, out, used, &sample, &facts, NULL) == MR_OK);
    must(facts.header_crc == crc && facts.source_index == number && sample.value_count == meta.field_count);
    for (uint32_t k = 0; k < meta.field_count; k++) {
        const mr_value *a = &v[k], *b = &sample.value[k];
        must(a->type == b->type && a->i == b->i && memcmp(&a->f, &b->f, sizeof a->f) == 0 &&
             a->dtype == b->dtype && a->planes == b->planes);
        must(a->ndim == b->ndim && memcmp(a->dim, b->dim, sizeof a->dim) == 0 &&
             same(a->data, a->bytes, b->data, b->bytes));
    }
}

/* ---- a table ---- */
enum { ROWS = 6, PLACES = 5, TEXT = 24 };

/* Text from the input's bytes that are UTF-8, without NUL. */
static void take_text(spec *s, char *text)
{
    const mri_span from = take_span(s, take(s) % TEXT);
    size_t n = 0;
    for (size_t k = 0; k < from.bytes; k++)
        if (from.data[k] && from.data[k] < 0x80) text[n++] = (char)from.data[k];
    if (take(s) % 8 == 0 && n + 3 < TEXT) memcpy(text + n, "\xe2\x82\xac", 3), n += 3;
    text[n] = '\0';
}

static void put_place(const char *text, char separator, bool quote)
{
    const char mean[] = {separator, '"', '\n', '\r', 0};
    if (!quote && !strpbrk(text, mean)) {
        put(text, strlen(text));
        return;
    }
    put("\"", 1);
    for (const char *p = text; *p; p++) put(*p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
    put("\"", 1);
}

static void table(spec *s)
{
    static char text[ROWS][PLACES][TEXT + 1];
    const char separator = ",;\t"[take(s) % 3];
    const uint32_t rows = 1 + take(s) % ROWS, places = 2 + take(s) % (PLACES - 1);
    const char *const ends[] = {"\n", "\r\n", "\r"}, *end = ends[take(s) % 3];
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t p = 0; p < places; p++) {
            take_text(s, text[r][p]);
            if (p) put(&separator, 1);
            put_place(text[r][p], separator, take(s) % 4 == 0);
        }
        if (r + 1 < rows || take(s) % 2) put(end, strlen(end));
    }
    mri_csv c;
    must(mri_csv_open(&c, mrt_fuzz_file("table", out, used), NULL) == MR_OK);
    /* which one it is is a guess from the first lines, and these are made to deceive */
    c.separator = separator;
    for (uint32_t r = 0; r < rows; r++) {
        must(mri_csv_next(&c, NULL) == MR_OK && c.count == places);
        for (uint32_t p = 0; p < places; p++) must(strcmp(mri_csv_place(&c, p), text[r][p]) == 0);
    }
    must(mri_csv_next(&c, NULL) == MR_EEND);
    mri_csv_close(&c);
}

/* ---- sequences ---- */
static void sequences(spec *s)
{
    static int32_t number[16][17];
    uint32_t length[16], rows = 1 + take(s) % 16;
    const char *const between[] = {",", ", ", " ", ";", "\t"};
    for (uint32_t r = 0; r < rows; r++) {
        length[r] = 2 + take(s) % 15;
        for (uint32_t k = 0; k < length[r]; k++) {
            char text[16];
            const int64_t v = take_i64(s);
            const char *gap = between[take(s) % 5];
            number[r][k] = k + 1 < length[r] ? (int32_t)v : (int32_t)(v & INT32_MAX);
            if (k) put(gap, strlen(gap));
            put(text, (size_t)snprintf(text, sizeof text, "%d", number[r][k]));
        }
        put("\n", 1);
    }
    mr_source *src = reopen("numbers", "sequence", NULL);
    void *buf = NULL;
    size_t buf_bytes = 0;
    must(mr_source_info_of(src)->count == rows);
    for (uint32_t r = 0; r < rows; r++) {
        mr_sample x;
        must(mr_source_read(src, r, &buf, &buf_bytes, &x, NULL) == MR_OK &&
             x.value[1].i == number[r][length[r] - 1]);
        must(same(x.value[0].data, x.value[0].bytes, number[r], (length[r] - 1) * sizeof number[r][0]));
    }
    free(buf);
    mr_source_close(src);
}

/* ---- npy ---- */
static void npy(spec *s)
{
    static const char *const descr[] = {"|u1", "<i2", ">i4", "<i8", "<f4", ">f8", "|b1"};
    static const uint32_t width[] = {1, 2, 4, 8, 4, 8, 1};
    const unsigned type = take(s) % 7, version = 1 + take(s) % 3;
    const uint32_t ndim = take(s) % (MR_MAX_DIMS + 1), before = version == 1 ? 10 : 12;
    const bool fortran = take(s) % 2;
    uint64_t dim[MR_MAX_DIMS], count = 1;
    char shape[200] = "", text[400];
    int n = 0;
    for (uint32_t k = 0; k < ndim; k++) {
        dim[k] = take(s) % 6;
        count *= dim[k];
        n += snprintf(shape + n, sizeof shape - (size_t)n, "%s%llu%s", k ? ", " : "",
                      (unsigned long long)dim[k], ndim == 1 ? "," : "");
    }
    n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr[type],
                 fortran ? "True" : "False", shape);
    while ((before + (uint32_t)n + 1) % 64) text[n++] = ' ';
    text[n++] = '\n';
    const uint64_t elements = count * width[type];
    if (before + (uint64_t)n + elements > sizeof out) return;
    put("\x93NUMPY", 6);
    const uint8_t head[] = {(uint8_t)version, 0, (uint8_t)n, (uint8_t)(n >> 8), 0, 0};
    put(head, before - 6);
    put(text, (size_t)n);
    mri_npy a;
    must(mri_npy_parse(out, used, used + elements, &a, NULL) == MR_OK && a.count == count && a.ndim == ndim);
    must(a.element_bytes == width[type] && a.header_bytes == used &&
         a.swapped == (descr[type][0] == '>' && width[type] > 1));
    must(ndim == 0 || memcmp(a.dim, dim, ndim * sizeof *dim) == 0);
    must(mri_npy_parse(out, used, used + elements + 1, &a, NULL) != MR_OK &&
         mri_npy_parse(out, used - 1, used + elements, &a, NULL) != MR_OK);
}

/* ---- IDX, CIFAR ---- */
static void check_pictures(mr_source *src, const uint8_t *pixels, size_t one, size_t step,
                           const uint8_t *labels, size_t label_step, uint32_t count)
{
    void *buf = NULL;
    size_t buf_bytes = 0;
    must(mr_source_info_of(src)->count == count);
    for (uint32_t k = 0; k < count; k++) {
        mr_sample x;
        must(mr_source_read(src, k, &buf, &buf_bytes, &x, NULL) == MR_OK &&
             x.value[1].i == labels[k * label_step]);
        must(same(x.value[0].data, x.value[0].bytes, pixels + k * step, one));
    }
    free(buf);
    mr_source_close(src);
}

static void pictures(spec *s)
{
    static uint8_t labels[8 + 16];
    const uint32_t count = 1 + take(s) % 12, kind = take(s) % 3;
    if (kind == 0) {
        const uint32_t h = 1 + take(s) % 8, w = 1 + take(s) % 8, c = 1 + take(s) % 4;
        const uint8_t head[] = {0, 0, 8, 4,          0, 0, 0, (uint8_t)count, 0, 0, 0, (uint8_t)h,
                                0, 0, 0, (uint8_t)w, 0, 0, 0, (uint8_t)c};
        memcpy(labels, "\0\0\x08\1\0\0\0", 7);
        labels[7] = (uint8_t)count;
        put(head, sizeof head);
        for (uint32_t k = 0; k < count; k++) labels[8 + k] = (uint8_t)take(s);
        for (uint32_t k = 0; k < count * h * w * c; k++) put(&(uint8_t){(uint8_t)take(s)}, 1);
        mrt_fuzz_file("train-labels", labels, 8 + count);
        check_pictures(reopen("train-images", "idx", NULL), out + sizeof head, h * w * c, h * w * c,
                       labels + 8, 1, count);
        return;
    }
    const size_t front = kind, one = front + 3072; /* labels in front of the pixels */
    memset(out, (int)take(s), count * one);
    used = count * one;
    for (uint32_t k = 0; k < count; k++) {
        if (front == 2) out[k * one] = (uint8_t)(take(s) % 20);
        out[k * one + front - 1] = (uint8_t)(take(s) % (front == 2 ? 100 : 10));
        out[k * one + front + take(s) * 12] = (uint8_t)take(s);
    }
    check_pictures(reopen("train.bin", front == 2 ? "cifar100" : "cifar10", NULL), out + front, 3072, one,
                   out + front - 1, one, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static void (*const trips[])(spec *) = {example, archive,   recordio, mrec,
                                            table,   sequences, npy,      pictures};
    if (bytes < 1) return 0;
    spec s = {data + 1, data + bytes};
    used = 0;
    mrt_fuzz_begin(bytes, FUZZ_DECLARED);
    trips[data[0] % MRI_ARRAY_COUNT(trips)](&s);
    mrt_fuzz_end();
    return 0;
}
