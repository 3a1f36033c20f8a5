/* tar headers: the contents of the known kinds, refused headers and their errors, and headers of our own read
 * back. */
#include "formats/tar/tar.h"

#include "mrt.h"
#include "tests/formats/tar/mrt_tar.h"

static int get(void *context, uint64_t offset, size_t bytes, const uint8_t **out, mr_error *err)
{
    (void)err;
    const mrt_tar *a = context;
    MRT_TRUE(offset <= a->bytes && bytes <= a->bytes - offset && bytes > 0); /* never asked for more than
                                                                                there is */
    static uint8_t *copy; /* at its exact size, so that a sanitizer sees what reads past it; gone with the
                             next call */
    free(copy);
    copy = malloc(bytes);
    assert_non_null(copy);
    memcpy(copy, a->data + offset, bytes);
    *out = copy;
    return MR_OK;
}

static mri_tar t;

static void start(mrt_tar *a) { mri_tar_init(&t, get, a, 0, a->bytes); }

static mri_tar_member next(const char *name, mri_tar_kind kind, uint64_t bytes)
{
    mri_tar_member m;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_tar_next(&t, &m, &err), &err);
    MRT_STR(m.name, name);
    MRT_EQ(m.name_bytes, strlen(name));
    MRT_EQ(m.kind, kind);
    MRT_EQ(m.bytes, bytes);
    return m;
}

static void end(uint32_t blocks)
{
    mri_tar_member m;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_tar_next(&t, &m, &err), MR_EEND);
    MRT_OK(mri_tar_finish(&t, &err), &err);
    MRT_EQ(t.end_blocks, blocks);
}

/* The whole walk, finish() included, ends with this; the archive is taken apart. */
static void refused(mrt_tar *a, int code, uint64_t offset, const char *text)
{
    mri_tar_member m;
    mr_error err = MR_ERROR_INIT;
    int rc;
    start(a);
    while ((rc = mri_tar_next(&t, &m, &err)) == MR_OK) {
    }
    if (rc == MR_EEND) rc = mri_tar_finish(&t, &err);
    MRT_EQ(rc, code);
    MRT_EQ(err.code, code);
    MRT_HAS(err.text, text);
    MRT_EQ(err.offset, offset);
    mrt_tar_fini(a);
}

static void plain_members(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_text(&a, "a.jpg", "picture");
    mrt_tar_text(&a, "empty", "");
    mrt_tar_header(&a, '5', "folder/", 0);
    mrt_tar_header(&a, '1', "hard", 0);
    mrt_tar_header(&a, '2', "symbolic", 0);
    mrt_tar_header(&a, '3', "character", 0);
    mrt_tar_header(&a, '4', "block", 0);
    mrt_tar_header(&a, '6', "pipe", 0);
    mrt_tar_header(&a, '\0', "old/", 0);
    mrt_tar_header(&a, '\0', "old", 0);
    mrt_tar_header(&a, '7', "contiguous", 0);
    mrt_tar_header(&a, 'V', "volume", 0);
    const size_t block = 512;
    char large[513];
    memset(large, 'x', sizeof large);
    mrt_tar_file(&a, "b.jpg", large, sizeof large);
    mrt_tar_file(&a, "c.jpg", large, 512);
    mrt_tar_end(&a);
    start(&a);
    mri_tar_member m = next("a.jpg", MRI_TAR_FILE, 7);
    MRT_EQ(m.head, 0);
    MRT_EQ(m.data, 512);
    m = next("empty", MRI_TAR_FILE, 0);
    MRT_EQ(m.head, 2 * block);
    next("folder/", MRI_TAR_FOLDER, 0);
    next("hard", MRI_TAR_HARD_LINK, 0);
    next("symbolic", MRI_TAR_SYMBOLIC_LINK, 0);
    next("character", MRI_TAR_DEVICE, 0);
    next("block", MRI_TAR_DEVICE, 0);
    next("pipe", MRI_TAR_PIPE, 0);
    next("old/", MRI_TAR_FOLDER, 0);
    next("old", MRI_TAR_FILE, 0);
    next("contiguous", MRI_TAR_FILE, 0);
    next("volume", MRI_TAR_OTHER, 0);
    m = next("b.jpg", MRI_TAR_FILE, 513);
    MRT_EQ(m.head, 13 * block);
    m = next("c.jpg", MRI_TAR_FILE, 512);
    MRT_EQ(m.head, 16 * block);
    end(2);
    mrt_tar_fini(&a);
}

static void names(void **state)
{
    (void)state;
    char full[101], text[3000], joined[300];
    mrt_tar a = {0};
    memset(full, 'n', 100);
    full[100] = '\0';
    memset(text, 'l', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    mrt_tar_text(&a, full, "1"); /* no zero after it */
    mrt_tar_header(&a, '0', full, 0);
    memset(a.data + a.header + 345, 'p', 155);
    mrt_tar_sum(&a);
    mrt_tar_header(&a, '0', "x", 0); /* GNU: no prefix there */
    memcpy(a.data + a.header + 257,
           "ustar  \0"
           "12345670123",
           8);
    memset(a.data + a.header + 345, '7', 11);
    mrt_tar_sum(&a);
    mrt_tar_extended(&a, 'L', text, sizeof text);
    mrt_tar_extended(&a, 'K', "where/it/points", 16);
    mrt_tar_text(&a, "short", "2");
    mrt_tar_text(&a, "short", "3"); /* and it holds for one member only */
    mrt_tar_pax(&a, 'x', "path", text);
    mrt_tar_text(&a, "short", "4");
    mrt_tar_extended(&a, 'L', "gnu", 4);
    mrt_tar_pax(&a, 'x', "path", "pax wins");
    mrt_tar_text(&a, "short", "5");
    mrt_tar_pax(&a, 'x', "path", "pax wins");
    mrt_tar_extended(&a, 'L', "gnu", 4);
    mrt_tar_text(&a, "short", "6");
    mrt_tar_pax(&a, 'x', "path", "");
    mrt_tar_text(&a, "taken back", "7");
    mrt_tar_pax(&a, 'g', "comment", "for all");
    mrt_tar_text(&a, "new\nline \xff.jpg", "8");
    mrt_tar_pax(&a, 'X', "path", "solaris");
    mrt_tar_text(&a, "short", "9");
    mrt_tar_extended(&a, 'x', "", 0);
    mrt_tar_text(&a, "", "10");
    mrt_tar_end(&a);
    start(&a);
    next(full, MRI_TAR_FILE, 1);
    memset(joined, 'p', 155);
    joined[155] = '/';
    memcpy(joined + 156, full, 101);
    next(joined, MRI_TAR_FILE, 0);
    const uint64_t before = next("x", MRI_TAR_FILE, 0).data;
    mri_tar_member m = next(text, MRI_TAR_FILE, 1);
    MRT_EQ(m.head, before);
    MRT_EQ(m.data, before + 512 + 3072 + 1024 + 512);
    MRT_EQ(next("short", MRI_TAR_FILE, 1).head, m.data + 512);
    next(text, MRI_TAR_FILE, 1);
    next("pax wins", MRI_TAR_FILE, 1);
    next("pax wins", MRI_TAR_FILE, 1);
    m = next("taken back", MRI_TAR_FILE, 1);
    MRT_EQ(next("new\nline \xff.jpg", MRI_TAR_FILE, 1).head, m.data + 512 + 1024); /* the header for all is
                                                                                      part of none */
    next("solaris", MRI_TAR_FILE, 1);
    next("", MRI_TAR_FILE, 2);
    end(2);
    mrt_tar_fini(&a);
}

static void put_size(mrt_tar *a, const void *field)
{
    memcpy(a->data + a->header + 124, field, 12);
    mrt_tar_sum(a);
}

static void sizes(void **state)
{
    (void)state;
    static const char same[][13] = {"         7 ",  "7          ",  "00000000007",
                                    "7\0garbage..", "000000000007", "\x80\0\0\0\0\0\0\0\0\0\0\x07"};
    for (size_t k = 0; k < 6; k++) {
        mrt_tar a = {0};
        mrt_tar_header(&a, '0', "a", 0);
        put_size(&a, same[k]);
        mrt_tar_raw(&a, "picture", 7);
        mrt_tar_pad(&a);
        mrt_tar_end(&a);
        start(&a);
        next("a", MRI_TAR_FILE, 7);
        end(2);
        mrt_tar_fini(&a);
    }
    mrt_tar a = {0};
    mrt_tar_pax(&a, 'x', "size", "7");
    mrt_tar_header(&a, '0', "a", 0); /* as Python writes it when the field is too small */
    mrt_tar_raw(&a, "picture", 7);
    mrt_tar_pad(&a);
    mrt_tar_pax(&a, 'x', "size", "7");
    mrt_tar_text(&a, "b", "picture");
    mrt_tar_text(&a, "c", "");
    mrt_tar_end(&a);
    start(&a);
    next("a", MRI_TAR_FILE, 7);
    next("b", MRI_TAR_FILE, 7);
    next("c", MRI_TAR_FILE, 0);
    end(2);
    mrt_tar_fini(&a);
}

static void signed_sums(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_header(&a, '0', "\xc3\xa4\xc3\xb6.jpg", 0);
    int sum = 0;
    memset(a.data + a.header + 148, ' ', 8);
    for (int k = 0; k < 512; k++) sum += (signed char)a.data[a.header + (size_t)k];
    char text[9];
    snprintf(text, sizeof text, "%06o", (unsigned)sum);
    memcpy(a.data + a.header + 148, text, 7);
    mrt_tar_end(&a);
    MRT_TRUE(mri_tar_is_header(a.data, 512));
    MRT_TRUE(!mri_tar_is_header(a.data, 511));
    MRT_TRUE(!mri_tar_is_header(a.data + 512, 512)); /* zeros */
    start(&a);
    next("\xc3\xa4\xc3\xb6.jpg", MRI_TAR_FILE, 0);
    end(2);
    mrt_tar_fini(&a);
}

static void ends(void **state)
{
    (void)state;
    static const struct {
        size_t zeros;
        uint32_t blocks;
    } cases[] = {{0, 0}, {100, 0}, {512, 1}, {700, 1}, {1024, 2}, {10240, 2}, {10241, 2}};
    for (size_t k = 0; k < 7; k++) {
        static const uint8_t zeros[10241];
        mrt_tar a = {0};
        mrt_tar_text(&a, "a", "1");
        mrt_tar_raw(&a, zeros, cases[k].zeros);
        start(&a);
        next("a", MRI_TAR_FILE, 1);
        end(cases[k].blocks);
        mrt_tar_fini(&a);
    }
    mrt_tar a = {0};
    mrt_tar_text(&a, "a", "1");
    a.bytes = 512 + 1; /* all of its data, none of its padding */
    start(&a);
    next("a", MRI_TAR_FILE, 1);
    end(0);
    mrt_tar_fini(&a);
    start(&a); /* nothing at all */
    end(0);
}

static mrt_tar one(const char *name, const char *text)
{
    mrt_tar a = {0};
    mrt_tar_text(&a, name, text);
    return a;
}

static void cut_and_changed(void **state)
{
    (void)state;
    mrt_tar a = one("a", "1");
    mrt_tar_text(&a, "b", "2");
    a.bytes = 1024 + 511;
    refused(&a, MR_EFORMAT, 1024, "expected a header of 512 bytes, found the end of the archive after 511");
    a = one("a", "1");
    mrt_tar_text(&a, "b\n\x80", "12345");
    a.bytes = 1536 + 4;
    refused(
        &a, MR_EFORMAT, 1540,
        "member \"b\\x0a\\x80\": expected 5 bytes from offset 1536, found the end of the archive after 4");
    a = one("a", "1");
    a.data[3] ^= 1;
    refused(&a, MR_EFORMAT, 0, "expected a tar header with checksum");
    a = one("a", "1");
    memset(a.data + 148, 'z', 8);
    refused(&a, MR_EFORMAT, 0, "no number where the checksum would be");
    a = one("a", "1");
    mrt_tar_end(&a);
    mrt_tar_raw(&a, "  garbage", 9);
    refused(&a, MR_EFORMAT, 2048, "expected zeros up to the end");
    a = one("a", "1");
    mrt_tar_end(&a);
    mrt_tar_text(&a, "second archive", "2");
    refused(&a, MR_EFORMAT, 2048, "two archives in one file");
    a = one("a", "1");
    mrt_tar_end(&a);
    a.bytes -= 512;
    mrt_tar_text(&a, "after one block of zeros", "2");
    refused(&a, MR_EFORMAT, 1536, "which ended at offset 1024");
    for (size_t cut = 1; cut < 512 * 6; cut++) { /* a cut is reported, or the members before it were whole */
        a = one("a", "1");
        mrt_tar_pax(&a, 'x', "path", "long");
        mrt_tar_text(&a, "b", "12345");
        mrt_tar_end(&a);
        a.bytes = cut;
        start(&a);
        mri_tar_member m;
        mr_error err = MR_ERROR_INIT;
        int rc, found = 0;
        while ((rc = mri_tar_next(&t, &m, &err)) == MR_OK) found++;
        const int whole_a = cut >= 513, whole_b = cut >= 5 * 512 + 5;
        MRT_EQ(found, whole_a + whole_b);
        MRT_EQ(rc, cut < 513 || (cut > 1024 && !whole_b) ? MR_EFORMAT : MR_EEND);
        mrt_tar_fini(&a);
    }
}

static void lying_sizes(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_header(&a, '0', "a", 077777777777);
    refused(&a, MR_EFORMAT, 512,
            "expected 8589934591 bytes from offset 512, found the end of the archive after 0");
    static const struct {
        char field[13];
        const char *text;
    } wrong[] = {
        {"\x80\0\0\0\x80\0\0\0\0\0\0\0", "2^63"},
        {"\x80\0\0\x01\0\0\0\0\0\0\0\0", "2^63"},
        {"\x81\0\0\0\0\0\0\0\0\0\0\0", "2^63"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "another number in base 256"},
        {"0000000008\0", "octal digits"},
        {"-0000000001", "octal digits"},
        {"1 1", "octal digits"},
    };
    for (size_t k = 0; k < 7; k++) {
        mrt_tar_header(&a, '0', "a", 0);
        put_size(&a, wrong[k].field);
        refused(&a, MR_EFORMAT, 124, wrong[k].text);
    }
    mrt_tar_header(&a, '0', "a", 0);
    put_size(&a, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff");
    refused(&a, MR_EFORMAT, 512, "expected 9223372036854775807 bytes");
    static const struct {
        char type;
        const char *name;
    } without[] = {
        {'1', "a hard link"}, {'2', "a symbolic link"}, {'3', "a device"},
        {'4', "a device"},    {'5', "a folder"},        {'6', "a pipe"},
    };
    for (size_t k = 0; k < 6; k++) {
        mrt_tar_header(&a, without[k].type, "l", 512);
        refused(&a, MR_EFORMAT, 124, without[k].name);
    }
    mrt_tar_pax(&a, 'x', "size", "512"); /* the next member's header or this one's data? */
    mrt_tar_text(&a, "a", "1");
    refused(&a, MR_EFORMAT, 1024 + 124, "member \"a\": 1 bytes says its header, 512 its PAX record");
    mrt_tar_header(&a, 'M', "rest", 0);
    refused(&a, MR_EUNSUPPORTED, 0, "another volume");
}

static void lying_records(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "99 path=a\n",
        "8 path=a\n",
        "11 path=a\n",
        "10 path=ab",
        "path=a\n",
        "10_path=a\n",
        "10 pathaa\n",
        "0 path=a\n",
        "7 =abc\n",
        "4 =\n",
        "18446744073709551626 path=a\n",
        "3 \n",
        "1 ",
        "5",
        "10 path=a\n10 path=b",
        "10 path=a\n\n",
    };
    mrt_tar a = {0};
    for (size_t k = 0; k < sizeof broken / sizeof *broken; k++) {
        mrt_tar_extended(&a, 'x', broken[k], strlen(broken[k]));
        mrt_tar_text(&a, "a", "1");
        refused(&a, MR_EFORMAT, k < 14 ? 512 : 522, "expected a PAX record");
    }
    mrt_tar_extended(&a, 'x', "12 path=a\0b\n", 12);
    mrt_tar_text(&a, "a", "1");
    refused(&a, MR_EFORMAT, 512, "zero byte");
    static const char *const numbers[] = {"9223372036854775808",
                                          "18446744073709551616",
                                          "99999999999999999999",
                                          "-1",
                                          "1x",
                                          "0x10",
                                          " 1",
                                          "1 "};
    for (size_t k = 0; k < 8; k++) {
        mrt_tar_pax(&a, 'x', "size", numbers[k]);
        mrt_tar_text(&a, "a", "1");
        refused(&a, MR_EFORMAT, 512, "expected a size from 0 to 2^63 - 1");
    }
    mrt_tar_pax(&a, 'x', "size", "9223372036854775807");
    mrt_tar_text(&a, "a", "");
    refused(&a, MR_EFORMAT, 1536, "expected 9223372036854775807 bytes from offset 1536");
    mrt_tar_pax(&a, 'g', "path", "one for all");
    mrt_tar_text(&a, "a", "1");
    refused(&a, MR_EUNSUPPORTED, 512, "one \"path\" to all members");
    mrt_tar_pax(&a, 'g', "size", "5");
    refused(&a, MR_EUNSUPPORTED, 512, "one \"size\" to all members");
    char long_text[4200];
    memset(long_text, 'l', sizeof long_text);
    long_text[4097] = '\0';
    mrt_tar_pax(&a, 'x', "path", long_text);
    refused(&a, MR_ELIMIT, 512, "a name of 4097 bytes: at most 4096");
    mrt_tar_extended(&a, 'L', long_text, 4098);
    refused(&a, MR_ELIMIT, 0, "at most 4097 are read");
    mrt_tar_header(&a, 'x', "pax", 2 << 20);
    a.cap = a.bytes + (2 << 20);
    a.data = realloc(a.data, a.cap);
    assert_non_null(a.data);
    memset(a.data + a.bytes, 0, 2 << 20);
    a.bytes = a.cap;
    refused(&a, MR_ELIMIT, 0, "at most 1048576");
    for (const char *type = "xLK"; *type; type++) {
        for (int k = 0; k < 2; k++)
            if (*type == 'x') mrt_tar_pax(&a, 'x', "path", "a");
            else mrt_tar_extended(&a, *type, "a", 2);
        refused(&a, MR_EFORMAT, 1024, "two extended headers");
        mrt_tar_extended(&a, *type, "", 0);
        mrt_tar_end(&a);
        refused(&a, MR_EFORMAT, 512, "expected the member that the extended header before speaks of");
    }
    mrt_tar_header(&a, 'x', "pax", 600);
    mrt_tar_raw(&a, long_text, 599);
    refused(&a, MR_EFORMAT, 512 + 599, "an extended header: expected 600 bytes");
}

static void sparse(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_header(&a, 'S', "old", 5);
    a.data[a.header + 482] = 1;
    mrt_tar_sum(&a);
    uint8_t map[512] = {0};
    map[504] = 1;
    mrt_tar_raw(&a, map, 512);
    map[504] = 0;
    mrt_tar_raw(&a, map, 512);
    mrt_tar_raw(&a, "12345", 5);
    mrt_tar_pad(&a);
    mrt_tar_extended(&a, 'x',
                     "22 GNU.sparse.major=1\n"
                     "25 GNU.sparse.name=a.jpg\n",
                     47);
    mrt_tar_text(&a, "GNUSparseFile.12/a.jpg", "map");
    mrt_tar_text(&a, "whole", "data");
    mrt_tar_end(&a);
    start(&a);
    MRT_EQ(next("old", MRI_TAR_SPARSE, 5).data, 1536);
    next("a.jpg", MRI_TAR_SPARSE, 3);
    next("whole", MRI_TAR_FILE, 4);
    end(2);
    a.bytes = 1024;
    refused(&a, MR_EFORMAT, 1024, "inside the map of a sparse file");
}

/* A part of an archive, as one sample is. */
static void a_part(void **state)
{
    (void)state;
    mrt_tar a = {0};
    mrt_tar_text(&a, "before", "0");
    mrt_tar_text(&a, "a", "1");
    mrt_tar_text(&a, "b", "2");
    mrt_tar_text(&a, "after", "3");
    mri_tar_init(&t, get, &a, 1024, 2048 + 513);
    MRT_EQ(next("a", MRI_TAR_FILE, 1).head, 1024);
    next("b", MRI_TAR_FILE, 1);
    end(0);
    mrt_tar_fini(&a);
}

/* ---- headers of our own ---- */
static void round_trip(const char *name, uint64_t bytes, size_t expected)
{
    uint8_t out[3 * 4096];
    size_t used = 0;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_tar_head_bytes(name, bytes), expected);
    MRT_EQ(mri_tar_head_write(name, bytes, out, expected - 1, &used, &err), MR_EINVAL);
    memset(out, 0xee, sizeof out);
    MRT_OK(mri_tar_head_write(name, bytes, out, expected, &used, &err), &err);
    MRT_EQ(used, expected);
    for (size_t k = used; k < sizeof out; k++) MRT_EQ(out[k], 0xee);
    mrt_tar a = {.data = out, .bytes = used, .cap = sizeof out};
    mri_tar_init(&t, get, &a, 0, INT64_MAX); /* the data is not looked at */
    mri_tar_member m;
    MRT_OK(mri_tar_next(&t, &m, &err), &err);
    MRT_STR(m.name, name);
    MRT_EQ(m.kind, MRI_TAR_FILE);
    MRT_EQ(m.head, 0);
    MRT_EQ(m.data, used);
    MRT_TRUE(m.bytes == bytes);
}

static void own_headers(void **state)
{
    (void)state;
    char name[MRI_TAR_MAX_NAME + 2];
    round_trip("a", 0, 512);
    round_trip("a/b/c.jpg", 077777777777, 512);
    round_trip("a", 1ull << 33, 1536);
    round_trip("a", (uint64_t)1 << 62, 1536);
    for (size_t n = 1; n <= MRI_TAR_MAX_NAME; n = n < 330 ? n + 1 : n * 2 - n % 7) {
        memset(name, 'n', n);
        name[n] = '\0';
        round_trip(
            name, n,
            n <= 100 ? 512 : 1024 + (n + 9 + (n > 91) + (n > 989) <= 512 ? 512 : (n + 11 + 511) / 512 * 512));
        if (n > 101 && n <= 256) {
            name[n - 101] = '/';
            round_trip(name, n, 512);
        }
    }
    memset(name, '\xff', 120); /* no UTF-8: marked */
    name[120] = '\0';
    round_trip(name, 1, 1536);
    MRT_EQ(mri_tar_head_bytes("short \xff", 5), 512);
    uint8_t out[512];
    size_t used;
    mr_error err = MR_ERROR_INIT;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    MRT_EQ(mri_tar_head_write("", 0, out, sizeof out, &used, &err), MR_EINVAL);
    MRT_EQ(mri_tar_head_write("folder/", 0, out, sizeof out, &used, &err), MR_EINVAL);
    MRT_EQ(mri_tar_head_write(name, 0, out, sizeof out, &used, &err), MR_EINVAL);
    MRT_EQ(mri_tar_head_write("a", 1ull << 63, out, sizeof out, &used, &err), MR_EINVAL);
    MRT_HAS(err.text, "2^63");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_members), cmocka_unit_test(names),         cmocka_unit_test(sizes),
        cmocka_unit_test(signed_sums),   cmocka_unit_test(ends),          cmocka_unit_test(cut_and_changed),
        cmocka_unit_test(lying_sizes),   cmocka_unit_test(lying_records), cmocka_unit_test(sparse),
        cmocka_unit_test(a_part),        cmocka_unit_test(own_headers),
    };
    return mrt_run(tests);
}
