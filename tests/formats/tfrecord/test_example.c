/* tf.train.Example: built and read back; packed or not, joined, overruled, unknown; every byte damaged and
 * every length cut. */
#include "base/util.h"
#include "formats/tfrecord/example.h"
#include "mrt.h"

static mri_feature pick(const void *data, size_t bytes, const char *key)
{
    mri_feature f;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_example_pick(data, bytes, &key, 1, &f, &err), &err);
    return f;
}

static void built_and_read_back(void **state)
{
    (void)state;
    static const int64_t ints[] = {0, 1, 127, 128, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 40};
    static const float floats[] = {0.0f, -1.5f, 3.0e38f};
    uint8_t *big = malloc(300000);
    mrt_noise(big, 300000, 1);
    mri_example_builder b = {0};
    for (int turn = 0; turn < 2; turn++) { /* the buffer is used again */
        mri_example_restart(&b);
        mri_example_add_bytes(&b, "image", big, turn ? 10 : 300000);
        mri_example_add_ints(&b, "ints", ints, MRI_ARRAY_COUNT(ints));
        mri_example_add_floats(&b, "floats", floats, 3);
        mri_example_add_ints(&b, "none", NULL, 0);
        mri_example_add_bytes(&b, "", NULL, 0);
        mri_span e, s;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mri_example_finish(&b, &e, &err), &err);
        size_t count;
        mri_feature f = pick(e.data, e.bytes, "image");
        MRT_EQ(f.kind, MRI_FEATURE_BYTES);
        MRT_OK(mri_feature_bytes(&f, &s, 1, &count, &err), &err);
        MRT_EQ(count, 1);
        MRT_EQ(s.bytes, turn ? 10 : 300000);
        assert_memory_equal(s.data, big, s.bytes);
        f = pick(e.data, e.bytes, "ints");
        int64_t i[8];
        MRT_OK(mri_feature_ints(&f, i, 8, &count, &err), &err);
        MRT_EQ(count, 8);
        assert_memory_equal(i, ints, sizeof ints);
        MRT_OK(mri_feature_ints(&f, i, 2, &count, &err), &err);
        MRT_EQ(count, 8);
        MRT_OK(mri_feature_floats(&f, NULL, 0, &count, &err), &err); /* a list of another kind has no
                                                                      * floats */
        MRT_EQ(count, 0);
        f = pick(e.data, e.bytes, "floats");
        float x[3];
        MRT_OK(mri_feature_floats(&f, x, 3, &count, &err), &err);
        MRT_EQ(count, 3);
        assert_memory_equal(x, floats, sizeof floats);
        f = pick(e.data, e.bytes, "none");
        MRT_EQ(f.kind, MRI_FEATURE_INTS);
        MRT_OK(mri_feature_ints(&f, i, 8, &count, &err), &err);
        MRT_EQ(count, 0);
        MRT_EQ(pick(e.data, e.bytes, "").kind, MRI_FEATURE_BYTES);
        MRT_EQ(pick(e.data, e.bytes, "absent").kind, MRI_FEATURE_NONE);
    }
    mri_example_fini(&b);
    free(big);
}

/* One feature "a" whose Feature message is `text`. */
static size_t wrap(uint8_t *out, const char *text, size_t bytes)
{
    const uint8_t head[] = {0x0a, (uint8_t)(bytes + 7), 0x0a, (uint8_t)(bytes + 5), 0x0a, 1, 'a',
                            0x12, (uint8_t)bytes};
    memcpy(out, head, sizeof head);
    memcpy(out + sizeof head, text, bytes);
    return sizeof head + bytes;
}

#define INTS(text, ...)                                                                                      \
    do {                                                                                                     \
        static const int64_t expected[] = {__VA_ARGS__};                                                     \
        ints_are(text, sizeof(text) - 1, expected, MRI_ARRAY_COUNT(expected));                               \
    } while (0)

static void ints_are(const char *text, size_t bytes, const int64_t *expected, size_t expected_count)
{
    uint8_t buf[128];
    int64_t found[16];
    size_t count;
    mr_error err = MR_ERROR_INIT;
    const size_t n = wrap(buf, text, bytes);
    const mri_feature f = pick(buf, n, "a");
    MRT_OK(mri_feature_ints(&f, found, 16, &count, &err), &err);
    MRT_EQ(count, expected_count);
    assert_memory_equal(found, expected, count * sizeof *found);
}

static void packed_or_not(void **state)
{
    (void)state;
    INTS("\x1a\x02\x08\x05", 5);
    INTS("\x1a\x04\x08\x05\x08\x06", 5, 6);
    INTS("\x1a\x04\x0a\x02\x05\x06", 5, 6);
    INTS("\x1a\x08\x08\x04\x0a\x02\x05\x06\x08\x07", 4, 5, 6, 7); /* both in one list */
    INTS("\x1a\x02\x08\x05\x1a\x02\x08\x06", 5, 6);               /* two lists of a kind are joined */
    INTS("\x1a\x02\x08\x05\x0a\x00\x1a\x02\x08\x06", 6); /* another kind between them drops the first */
    INTS("\x1a\x00\x1a\x00\x1a\x02\x08\x05", 5);
    INTS("\x20\x07\x1a\x02\x08\x05\x2d\x01\x02\x03\x04", 5);          /* unknown fields around */
    INTS("\x1a\x04\x10\x09\x08\x05", 5);                              /* and inside */
    INTS("\x1a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", -1); /* a tenth byte has room for one bit */
    INTS("\x1a\x03\x08\x85\x00", 5);                                  /* longer than need be */
}

static void wrong(const char *text, size_t bytes, int code, const char *says)
{
    mri_feature f;
    const char *const key = "a";
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_example_pick(text, bytes, &key, 1, &f, &err), code);
    MRT_HAS(err.text, says);
}
#define WRONG(text, code, says) wrong(text, sizeof(text) - 1, code, says)

static void what_is_no_example(void **state)
{
    (void)state;
    WRONG("\x0a\x02\x0a\x00\x12\x00", MR_EUNSUPPORTED, "SequenceExample");
    WRONG("\x08\x05", MR_EFORMAT, "its first field is no message");
    WRONG("\x0a\x05xyz", MR_EFORMAT, "a field of 5 bytes where 3 are left");
    WRONG("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", MR_EFORMAT,
          "18446744073709551615 bytes where 0 are left");
    WRONG("\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", MR_EFORMAT, "a length does not end");
    WRONG("\x07", MR_EFORMAT, "number is damaged");
    WRONG("\x00\x00", MR_EFORMAT, "number is damaged");
    WRONG("\x0f\x00", MR_EFORMAT, "unknown type");
    WRONG("\x0c", MR_EFORMAT, "unknown type");
    WRONG("\x0a\x02\x08\x01", MR_EFORMAT, "no map");
    WRONG("\x0a\x0b\x0a\x09\x0a\x01"
          "a\x12\x00\x12\x00",
          MR_EFORMAT, "where");
    WRONG("\x0a\x09\x0a\x07\x0a\x01"
          "a\x12\x00\x12\x00",
          MR_EFORMAT, "two values");
    WRONG("\x1b\x08\x01", MR_EFORMAT, "number is damaged"); /* a group that does not end */
    WRONG("\x1b\x24", MR_EFORMAT, "a group ends that did not begin");
    char deep[64];
    memset(deep, 0x1b, sizeof deep);
    wrong(deep, sizeof deep, MR_EFORMAT, "too deep");
    uint8_t buf[64];
    size_t count;
    int64_t i;
    mr_error err = MR_ERROR_INIT;
    mri_feature f = pick(buf, wrap(buf, "\x1a\x05\x0d\x01\x02\x03\x04", 7), "a");
    MRT_EQ(mri_feature_ints(&f, &i, 1, &count, &err), MR_EFORMAT);
    f = pick(buf, wrap(buf, "\x12\x05\x0a\x03\x01\x02\x03", 7), "a");
    MRT_EQ(mri_feature_floats(&f, NULL, 0, &count, &err), MR_EFORMAT);
    MRT_HAS(err.text, "something else in a list of floats");
    f = pick(buf, wrap(buf, "\x0a\x02\x08\x01", 4), "a");
    MRT_EQ(mri_feature_bytes(&f, NULL, 0, &count, &err), MR_EFORMAT);
}

/* Whatever is done to the bytes: an answer, within the bytes (the buffer ends where they end, so that a
 * sanitizer sees more). */
static void damaged_in_every_way(void **state)
{
    (void)state;
    static const int64_t ints[] = {3, -7};
    static const float floats[] = {1.0f, 2.0f};
    mri_example_builder b = {0};
    mri_span e;
    mri_example_restart(&b);
    mri_example_add_bytes(&b, "a", "pixels", 6);
    mri_example_add_ints(&b, "b", ints, 2);
    mri_example_add_floats(&b, "c", floats, 2);
    MRT_OK(mri_example_finish(&b, &e, NULL), NULL);
    const char *const keys[] = {"a", "b", "c", NULL};
    for (size_t bytes = 0; bytes <= e.bytes; bytes++) {
        uint8_t *copy = malloc(bytes ? bytes : 1);
        if (bytes) memcpy(copy, e.data, bytes);
        for (size_t at = 0; at < (bytes == e.bytes ? bytes * 256 : 1); at++) {
            if (bytes) copy[at / 256] ^= (uint8_t)at;
            mri_feature f[4];
            mri_span s;
            float x[4];
            int64_t i[4];
            size_t count;
            if (mri_example_pick(copy, bytes, keys, 4, f, NULL) == MR_OK)
                for (int k = 0; k < 4; k++) {
                    if (mri_feature_bytes(&f[k], &s, 1, &count, NULL) == MR_OK && count > 0)
                        MRT_TRUE(s.data + s.bytes <= copy + bytes);
                    mri_feature_floats(&f[k], x, 4, &count, NULL);
                    mri_feature_ints(&f[k], i, 4, &count, NULL);
                }
            if (bytes) copy[at / 256] ^= (uint8_t)at;
        }
        free(copy);
    }
    mri_example_fini(&b);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        mri_example_builder b = {0};
        mri_span e;
        mrt_fail_alloc_at(n);
        mri_example_restart(&b);
        for (int k = 0; k < 2000; k++) mri_example_add_bytes(&b, "key", "some bytes", 10);
        const int rc = mri_example_finish(&b, &e, NULL);
        mrt_fail_alloc_at(-1);
        mri_example_fini(&b);
        if (rc == MR_OK) break;
        MRT_EQ(rc, MR_ENOMEM);
    }
    mri_example_builder b = {0};
    mr_error err = MR_ERROR_INIT;
    mri_span e;
    mri_example_restart(&b);
    mri_example_add_bytes(&b, "key", &b, (size_t)1 << 31); /* refused before a byte of it is read */
    MRT_EQ(mri_example_finish(&b, &e, &err), MR_ELIMIT);
    mri_example_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_and_read_back),      cmocka_unit_test(packed_or_not),
        cmocka_unit_test(what_is_no_example),       cmocka_unit_test(damaged_in_every_way),
        cmocka_unit_test(allocations_fail_in_turn),
    };
    return mrt_run(tests);
}
