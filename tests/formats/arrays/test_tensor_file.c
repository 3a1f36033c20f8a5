/* Files of named arrays: written arrays are read back, from safetensors and from archives of NumPy, in every
 * type of number; a header error is reported with its place; archives beyond 4 GiB; every allocation may
 * fail. Tests of the command check that NumPy and others read the files. */
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/arrays/npy.h"
#include "formats/arrays/safetensors.h"
#include "formats/arrays/tensor_file.h"
#include "formats/arrays/zip.h"
#include "mrt.h"

enum { ARRAYS = 3, ROOM = 4096 };

static const mri_tensor_entry arrays[ARRAYS] = {
    {.name = "0/conv2d/weights", .ndim = 4, .dim = {2, 1, 3, 2}, .count = 12},
    {.name = "a \"quoted\" \\ name \xc3\xa9", .ndim = 1, .dim = {5}, .count = 5},
    {.name = "one", .ndim = 0, .count = 1},
};

static float value_at(uint32_t array, uint64_t i)
{
    return i == 3 ? -0.0f : i == 4 ? INFINITY : 1.0f / (float)(1 + array * 100 + i);
}

static int write_to(const char *path, const mri_output_rules *rules, mr_error *err)
{
    const mri_tensor_note notes[] = {{"format", "pt"}, {"said", "\"so\""}};
    mri_tensor_writer *w;
    float values[12];
    int rc = mri_tensor_writer_open(&w, path, arrays, ARRAYS, notes, 2, rules, err);
    if (rc) return rc;
    for (uint32_t a = 0; rc == MR_OK && a < ARRAYS; a++) {
        for (uint64_t i = 0; i < arrays[a].count; i++) values[i] = value_at(a, i);
        rc = mri_tensor_writer_put(w, values, err);
    }
    if (rc == MR_OK) rc = mri_tensor_writer_commit(w, NULL, err);
    mri_tensor_writer_close(w);
    return rc;
}

static int read_from(const char *path, mr_error *err)
{
    mri_tensor_file *f;
    float found[12];
    int rc = mri_tensor_file_open(&f, path, err);
    if (rc) return rc;
    MRT_EQ(mri_tensor_file_count(f), ARRAYS);
    for (uint32_t a = 0; rc == MR_OK && a < ARRAYS; a++) {
        const uint32_t at = mri_tensor_file_find(f, arrays[a].name);
        MRT_TRUE(at < ARRAYS);
        const mri_tensor_entry *e = mri_tensor_file_at(f, at);
        MRT_TRUE(e->ndim == arrays[a].ndim && !memcmp(e->dim, arrays[a].dim, sizeof e->dim) && !e->unread);
        rc = mri_tensor_file_read(f, at, found, err);
        for (uint64_t i = 0; rc == MR_OK && i < e->count; i++) {
            const float wanted = value_at(a, i);
            MRT_TRUE(memcmp(&found[i], &wanted, sizeof wanted) == 0);
        }
    }
    MRT_EQ(mri_tensor_file_find(f, "nothing"), UINT32_MAX);
    mri_tensor_file_close(f);
    return rc;
}

static void round_trip(void **state)
{
    (void)state;
    static const char *const names[] = {"w.safetensors", "w.npz"};
    mr_error err = MR_ERROR_INIT;
    for (int i = 0; i < 2; i++) {
        const char *path = mrt_path("%s", names[i]);
        MRT_OK(write_to(path, NULL, &err), &err);
        MRT_TRUE(mri_is_tensor_file(path));
        MRT_OK(read_from(path, &err), &err);
        size_t before, after;
        void *first = mrt_read_file(path, &before);
        MRT_EQ(write_to(path, NULL, &err), MR_EEXIST); /* nothing is replaced unasked */
        MRT_OK(write_to(path, &(mri_output_rules){.force = true}, &err), &err);
        void *second = mrt_read_file(path, &after);
        MRT_TRUE(before == after && memcmp(first, second, before) == 0); /* the same bytes each time */
        if (i == 0) MRT_EQ((8 + mri_le64(first)) % 8, 0);
        free(first);
        free(second);
    }
    MRT_EQ(write_to(mrt_path("w.pt"), NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, ".safetensors or .npz");
}

static void half_a_file(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_tensor_writer *w;
    const float values[12] = {0};
    const char *path = mrt_path("half.npz");
    MRT_OK(mri_tensor_writer_open(&w, path, arrays, ARRAYS, NULL, 0, NULL, &err), &err);
    MRT_OK(mri_tensor_writer_put(w, values, &err), &err);
    MRT_EQ(mri_tensor_writer_commit(w, NULL, &err), MR_EINVAL);
    mri_tensor_writer_close(w);
    MRT_TRUE(access(path, F_OK) != 0 && access(mrt_path("half.npz.part"), F_OK) != 0);
}

/* ---- hostile headers ---- */

static int parse(const char *text, uint64_t data_bytes, mr_error *err)
{
    mri_safetensors s;
    *err = (mr_error)MR_ERROR_INIT;
    const int rc = mri_safetensors_parse(text, strlen(text), data_bytes, &s, err);
    MRT_TRUE(rc == MR_OK || (s.tensor == NULL && s.count == 0));
    mri_safetensors_free(&s);
    return rc;
}

#define ONE "\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"

static void headers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t data;
    } good[] = {
        {"{}", 0},
        {" { \"a\" : {" ONE "} } ", 4},
        {"{\"__metadata__\":{},\"a\":{" ONE "}}", 4},
        {"{\"a\":{\"data_offsets\":[4,8],\"shape\":[1],\"dtype\":\"I32\"},\"b\":{" ONE "}}", 8},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2}, /* unknown, and only listed */
    };
    static const struct {
        const char *text;
        uint64_t data;
        const char *why;
    } bad[] = {
        {"", 0, "expected {, found its end"},
        {"[]", 0, "expected {"},
        {"{\"a\":{" ONE "}} x", 4, "nothing after"},
        {"{\"a\":{" ONE "}}", 5, "found 5"},
        {"{\"a\":{" ONE "}}", 3, "within the 3 bytes"},
        {"{\"a\":{" ONE "},\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8,
         "two tensors named a"},
        {"{\"a\":{" ONE "},\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}", 12,
         "begins at 8"},
        {"{\"a\":{" ONE "},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
         "begins at 0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "come to 8 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}", 4,
         "come to"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "within the 4 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,18446744073709551620]}}", 4, "64 bits"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "two offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, "two offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4, "a whole number"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[01],\"data_offsets\":[0,4]}}", 4, "a whole number"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "a whole number"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
         "8 dimensions"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "with dtype, shape and data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 4, "each once"},
        {"{\"a\":{\"kind\":3}}", 4, "each once"},
        {"{\"a\":{\"dtype\":\"F32_AND_MORE\"}}", 4, "a type such as"},
        {"{\"a\":{\"dtype\":null}}", 4, "a string, found null"},
        {"{\"a\\n\":{" ONE "}}", 4, "control characters"},
        {"{\"a\n\":{" ONE "}}", 4, "a string of JSON"},
        {"{\"\\ud83d\":{" ONE "}}", 4, "a string of JSON"},
        {"{\"a", 4, "a string that ends"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "a string"},
        {"{\"__metadata__\":{\"a\":\"b\"},\"__metadata__\":{}}", 0, "once"},
        {"{\"a\":{" ONE "},}", 4, "a string"},
    };
    mr_error err;
    for (size_t i = 0; i < MRI_ARRAY_COUNT(good); i++) MRT_OK(parse(good[i].text, good[i].data, &err), &err);
    for (size_t i = 0; i < MRI_ARRAY_COUNT(bad); i++) {
        if (parse(bad[i].text, bad[i].data, &err) != MR_EFORMAT) fail_msg("accepted: %s", bad[i].text);
        MRT_HAS(err.text, bad[i].why);
    }
    parse("{\"a\":{\"dtype\":null}}", 4, &err);
    MRT_EQ(err.offset, 8 + 14); /* in the file */
}

static void every_cut(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const char *whole = mrt_path("cut.safetensors");
    for (int kind = 0; kind < 2; kind++) {
        if (kind) whole = mrt_path("cut.npz");
        MRT_OK(write_to(whole, NULL, &err), &err);
        size_t bytes;
        uint8_t *p = mrt_read_file(whole, &bytes);
        for (size_t n = 0; n < bytes; n++) {
            mri_tensor_file *f;
            mrt_write_file(mrt_path("some"), p, n);
            MRT_TRUE(mri_tensor_file_open(&f, mrt_path("some"), &err) != MR_OK);
            MRT_TRUE(f == NULL);
            MRT_HAS(err.file, "some");
        }
        free(p);
    }
}

/* ---- types ---- */

static void types(void **state)
{
    (void)state;
    static const char text[] = "{\"f16\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[0,8]},"
                               "\"bf16\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[8,12]},"
                               "\"f64\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[12,28]},"
                               "\"i64\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[28,36]}}";
    static const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7c00}, shorts[] = {0x3fc0, 0xc2c8};
    static const double reals[] = {0.1, -3};
    uint8_t file[ROOM] = {0}, *at = file + 8 + sizeof text - 1;
    mri_put_le64(file, sizeof text - 1);
    memcpy(file + 8, text, sizeof text - 1);
    memcpy(at, halves, 8), memcpy(at + 8, shorts, 4), memcpy(at + 12, reals, 16), memset(at + 28, 1, 8);
    mrt_write_file(mrt_path("types"), file, (size_t)(at + 36 - file));
    mr_error err = MR_ERROR_INIT;
    mri_tensor_file *f;
    float v[4];
    MRT_OK(mri_tensor_file_open(&f, mrt_path("types"), &err), &err);
    MRT_OK(mri_tensor_file_read(f, mri_tensor_file_find(f, "f16"), v, &err), &err);
    MRT_TRUE(v[0] == 1 && v[1] == -2 && v[2] == ldexpf(1, -24) && isinf(v[3]));
    MRT_OK(mri_tensor_file_read(f, mri_tensor_file_find(f, "bf16"), v, &err), &err);
    MRT_TRUE(v[0] == 1.5f && v[1] == -100);
    MRT_OK(mri_tensor_file_read(f, mri_tensor_file_find(f, "f64"), v, &err), &err);
    MRT_TRUE(v[0] == 0.1f && v[1] == -3);
    MRT_EQ(mri_tensor_file_read(f, mri_tensor_file_find(f, "i64"), v, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "i64 is of type I64");
    mri_tensor_file_close(f);
}

/* ---- archives beyond 32 bits: with holes, which take no room ---- */

static void wide_archive(void **state)
{
    (void)state;
    const uint64_t wide = (uint64_t)5 << 30;
    mri_zip_member m[2] = {{.name = (char *)"wide.npy", .packed = wide, .bytes = wide, .crc = 7},
                           {.name = (char *)"behind.npy", .packed = 3, .bytes = 3, .crc = 9}};
    uint8_t p[ROOM];
    const char *path = mrt_path("wide.npz");
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    uint64_t at = 0;
    mr_error err = MR_ERROR_INIT;
    MRT_TRUE(fd >= 0);
    for (int i = 0; i < 2; i++) {
        m[i].header = at;
        const size_t n = mri_zip_local_write(&m[i], p);
        MRT_EQ(pwrite(fd, p, n, (off_t)at), (ssize_t)n);
        at += n + m[i].packed;
    }
    const uint64_t begin = at;
    for (int i = 0; i < 2; i++) {
        const size_t n = mri_zip_central_write(&m[i], p);
        MRT_EQ(pwrite(fd, p, n, (off_t)at), (ssize_t)n);
        at += n;
    }
    const size_t n = mri_zip_end_write(2, begin, at, p);
    MRT_EQ(pwrite(fd, p, n, (off_t)at), (ssize_t)n);
    mri_zip z;
    MRT_OK(mri_zip_open(&z, fd, at + n, path, &err), &err);
    for (int i = 0; i < 2; i++) {
        mri_zip_member *found = mri_zip_find(&z, m[i].name);
        MRT_TRUE(found != NULL);
        MRT_OK(mri_zip_locate(&z, found, &err), &err);
        MRT_TRUE(found->bytes == m[i].bytes && found->header == m[i].header && found->crc == m[i].crc);
    }
    mri_zip_close(&z);
    close(fd);
    unlink(path);
}

static void wrong_crc(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const char *path = mrt_path("crc.npz");
    size_t bytes;
    MRT_OK(write_to(path, NULL, &err), &err);
    uint8_t *p = mrt_read_file(path, &bytes);
    float first = value_at(0, 0);
    for (size_t i = 0; i + sizeof first < bytes; i++)
        if (memcmp(p + i, &first, sizeof first) == 0) p[i] ^= 1;
    mrt_write_file(path, p, bytes);
    free(p);
    MRT_EQ(read_from(path, &err), MR_ECHECKSUM);
    MRT_HAS(err.text, "CRC");
}

/* ---- without memory ---- */

static void allocations(void **state)
{
    (void)state;
    static const char *const names[] = {"turn.safetensors", "turn.npz"};
    for (int i = 0; i < 2; i++)
        for (int writing = 1; writing >= 0; writing--)
            for (int n = 0;; n++) {
                mr_error err = MR_ERROR_INIT;
                const char *path = mrt_path("%s", names[i]);
                mrt_fail_alloc_at(n);
                const int rc = writing ? write_to(path, &(mri_output_rules){.force = true}, &err)
                                       : read_from(path, &err);
                const int failed = mrt_alloc_failed();
                mrt_fail_alloc_at(-1);
                if (!failed) {
                    MRT_OK(rc, &err);
                    break;
                }
                MRT_EQ(rc, MR_ENOMEM);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip), cmocka_unit_test(half_a_file), cmocka_unit_test(headers),
        cmocka_unit_test(every_cut),  cmocka_unit_test(types),       cmocka_unit_test(wide_archive),
        cmocka_unit_test(wrong_crc),  cmocka_unit_test(allocations),
    };
    return mrt_run(tests);
}
