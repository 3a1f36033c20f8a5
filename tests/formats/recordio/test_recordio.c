/* RecordIO frames: built frames are found again, whatever bytes the data hold; frames written out by hand;
 * every kind of damage with its place. */
#include "formats/recordio/recordio.h"
#include "mrt.h"

enum { MOST = 4096 };

static const uint8_t magic[4] = {0x0a, 0x23, 0xd7, 0xce};

static mri_recordio_record look_ok(const uint8_t *p, uint64_t bytes, uint64_t offset)
{
    mri_recordio_memory m = {p, bytes};
    mri_recordio_input in = mri_recordio_in_memory(&m);
    mri_recordio_record r;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_recordio_read_headers(&in, offset, &r, &err), &err);
    MRT_EQ(r.offset, offset);
    return r;
}

static void copy_ok(const uint8_t *p, uint64_t bytes, const mri_recordio_record *r, void *out, uint64_t part)
{
    mri_recordio_memory m = {p, bytes};
    mri_recordio_input in = mri_recordio_in_memory(&m);
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_recordio_copy(&in, r, out, part, &err), &err);
}

static void round_trip(const uint8_t *data, uint32_t bytes, uint64_t parts)
{
    static uint8_t framed[8 * MOST], back[MOST + 1];
    memset(framed, 0xee, sizeof framed);
    const uint64_t size = mri_recordio_bytes(data, bytes);
    MRT_EQ(mri_recordio_build(data, bytes, framed) - framed, size);
    MRT_EQ(framed[size], 0xee);
    const mri_recordio_record r = look_ok(framed, size, 0);
    MRT_EQ(r.bytes, size);
    MRT_EQ(r.data_bytes, bytes);
    MRT_EQ(r.parts, parts);
    for (uint32_t part = 0; part <= bytes; part += part < 40 ? 1 : bytes - part ? bytes - part : 1) {
        back[part] = 0x5a;
        copy_ok(framed, size, &r, back, part);
        assert_memory_equal(back, data, part);
        MRT_EQ(back[part], 0x5a);
    }
}

static void data_of_any_size(void **state)
{
    (void)state;
    uint8_t data[MOST];
    mrt_noise(data, sizeof data, 1);
    for (uint32_t bytes = 0; bytes < 70; bytes++) round_trip(data, bytes, 1);
    round_trip(data, sizeof data, 1);
}

static void data_that_hold_the_magic(void **state)
{
    (void)state;
    uint8_t data[64];
    for (uint32_t bytes = 4; bytes < sizeof data; bytes++)
        for (uint32_t at = 0; at + 4 <= bytes; at++) { /* anywhere: only at multiples of 4 does it split */
            memset(data, 7, sizeof data);
            memcpy(data + at, magic, 4);
            round_trip(data, bytes, at % 4 ? 1 : 2);
        }
    for (uint32_t n = 1; n <= sizeof data / 4; n++) { /* nothing else */
        for (uint32_t k = 0; k < n; k++) memcpy(data + 4 * k, magic, 4);
        round_trip(data, 4 * n, n + 1);
    }
}

static void written_out_by_hand(void **state)
{
    (void)state;
    static const uint8_t file[] = {
        0x0a, 0x23, 0xd7, 0xce, 0x05, 0, 0, 0,    'h', 'e', 'l',  'l',  'o', 0, 0, 0, /* one part, padded */
        0x0a, 0x23, 0xd7, 0xce, 0x04, 0, 0, 0x20, 'a', 'b', 'c',  'd',                /* flag 1 */
        0x0a, 0x23, 0xd7, 0xce, 0x00, 0, 0, 0x40, /* flag 2, nothing between two magics */
        0x0a, 0x23, 0xd7, 0xce, 0x02, 0, 0, 0x60, 'e', 'f', 0xff, 0xff, /* flag 3; what pads it is nobody's
                                                                           business */
        0x0a, 0x23, 0xd7, 0xce, 0x00, 0, 0, 0,                          /* empty */
    };
    uint8_t out[16];
    mri_recordio_record r = look_ok(file, sizeof file, 0);
    MRT_EQ(r.bytes, 16);
    MRT_EQ(r.parts, 1);
    copy_ok(file, sizeof file, &r, out, r.data_bytes);
    assert_memory_equal(out, "hello", 5);
    r = look_ok(file, sizeof file, 16);
    MRT_EQ(r.bytes, 32);
    MRT_EQ(r.parts, 3);
    MRT_EQ(r.data_bytes, 14);
    copy_ok(file, sizeof file, &r, out, 14);
    assert_memory_equal(out,
                        "abcd\x0a\x23\xd7\xce\x0a\x23\xd7\xce"
                        "ef",
                        14);
    r = look_ok(file, sizeof file, 48);
    MRT_EQ(r.bytes, 8);
    MRT_EQ(r.data_bytes, 0);
}

static void expect(const uint8_t *p, uint64_t bytes, uint64_t offset, const char *text)
{
    mri_recordio_memory m = {p, bytes};
    mri_recordio_input in = mri_recordio_in_memory(&m);
    mri_recordio_record r;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_recordio_read_headers(&in, 0, &r, &err), MR_EFORMAT);
    MRT_HAS(err.text, text);
    MRT_EQ(err.offset, offset);
}

static void damage_and_its_place(void **state)
{
    (void)state;
    uint8_t data[21] = {0}, p[64];
    const uint64_t size = (uint64_t)(mri_recordio_build(data, sizeof data, p) - p);
    MRT_EQ(size, 32);
    for (uint64_t cut = 0; cut < 8; cut++) expect(p, cut, 0, "cut in a record's header: expected 8 bytes");
    for (uint64_t cut = 8; cut < 29; cut++) expect(p, cut, 4, "a record of 21 bytes");
    for (uint64_t cut = 29; cut < 32; cut++) expect(p, cut, 4, "cut in a record's padding: expected 3 bytes");
    p[0] ^= 1;
    expect(p, size, 0, "expected the magic number 0xced7230a, found 0xced7230b");
    p[0] ^= 1;
    for (uint8_t flag = 2; flag < 8; flag++) {
        char text[64];
        p[7] = (uint8_t)(flag << 5);
        snprintf(text, sizeof text, "expected flag 0 or 1 of a record's start, found %u", flag);
        expect(p, size, 4, text);
    }
    memcpy(p + 4, "\xff\xff\xff\x1f", 4);
    expect(p, size, 4, "a record of 536870911 bytes, and 24 are left");
}

static void damage_between_parts(void **state)
{
    (void)state;
    uint8_t data[24] = {0}, p[64];
    memcpy(data + 8, magic, 4);
    const uint64_t size = (uint64_t)(mri_recordio_build(data, sizeof data, p) - p);
    MRT_EQ(size, 8 + 8 + 8 + 12);
    expect(p, 16, 16, "cut in a record's header");
    expect(p, size - 1, 20, "a record of 12 bytes, and 11 are left");
    p[16] = 0;
    expect(p, size, 16, "no record starts here");
    p[16] = magic[0];
    for (uint8_t flag = 0; flag < 8; flag++) {
        if (flag == 2 || flag == 3) continue;
        char text[64];
        p[23] = (uint8_t)(flag << 5);
        snprintf(text, sizeof text, "same record's next part, found %u", flag);
        expect(p, size, 20, text);
    }
}

static void header_of_a_picture(void **state)
{
    (void)state;
    static const float labels[] = {1, 2.5f, -3};
    const mri_picture_head made = {.label = 7, .id = 0x1122334455667788, .id2 = 9};
    mri_picture_head h = made;
    mr_error err = MR_ERROR_INIT;
    uint8_t p[64];
    MRT_EQ(mri_picture_head_build(&h, NULL, p) - p, 24);
    assert_memory_equal(p, "\0\0\0\0\0\0\xe0\x40\x88\x77\x66\x55\x44\x33\x22\x11\x09\0\0\0\0\0\0\0", 24);
    MRT_OK(mri_picture_head_parse(p, 24, &h, &err), &err);
    MRT_EQ(h.bytes, 24);
    MRT_TRUE(h.label == 7 && h.id == made.id && h.id2 == 9);
    h.label_count = 3;
    MRT_EQ(mri_picture_head_build(&h, labels, p) - p, 36);
    MRT_OK(mri_picture_head_parse(p, 36, &h, &err), &err);
    MRT_EQ(h.bytes, 36);
    MRT_TRUE(h.label == 0);
    assert_memory_equal(p + 24, labels, 12);
    MRT_EQ(mri_picture_head_parse(p, 35, &h, &err), MR_EFORMAT);
    MRT_HAS(err.text, "3 labels of 4 bytes are announced, and 11 bytes follow");
    MRT_EQ(mri_picture_head_parse(p, 23, &h, &err), MR_EFORMAT);
    MRT_HAS(err.text, "expected a picture's header of 24 bytes (label and numbers), found a record of 23");
    memset(p, 0xff, 4); /* times 4 it does not fit 32 bits */
    MRT_EQ(mri_picture_head_parse(p, 64, &h, &err), MR_EFORMAT);
    MRT_HAS(err.text, "4294967295 labels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_of_any_size),     cmocka_unit_test(data_that_hold_the_magic),
        cmocka_unit_test(written_out_by_hand),  cmocka_unit_test(damage_and_its_place),
        cmocka_unit_test(damage_between_parts), cmocka_unit_test(header_of_a_picture),
    };
    return mrt_run(tests);
}
