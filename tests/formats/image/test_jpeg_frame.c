/* tests/formats/image/test_jpeg_frame.c: the marker walk, on headers written out by hand; entry points, on
 * numbers made up. */
#include "formats/image/jpeg_entry.h"
#include "mrt.h"

/* ---- headers to order ---- */

typedef struct bytes {
    uint8_t p[4096];
    size_t count;
} bytes;

static void add(bytes *b, const void *p, size_t count)
{
    memcpy(b->p + b->count, p, count);
    b->count += count;
}
#define ADD(b, ...) add(b, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void add_quant(bytes *b, unsigned slot, unsigned first)
{
    ADD(b, 0xff, 0xdb, 0, 67, (uint8_t)slot);
    for (unsigned k = 0; k < 64; k++) ADD(b, (uint8_t)(first + k));
}

static void add_huffman(bytes *b, unsigned slot, unsigned symbol)
{
    ADD(b, 0xff, 0xc4, 0, 20, (uint8_t)slot, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (uint8_t)symbol);
}

static void add_start(bytes *b)
{
    b->count = 0;
    ADD(b, 0xff, 0xd8);
    add_quant(b, 0, 1);
    add_quant(b, 1, 101);
    for (unsigned k = 0; k < 2; k++) {
        add_huffman(b, k, k);
        add_huffman(b, 0x10 | k, 0x20 + k);
    }
}

static void add_frame(bytes *b, unsigned luma) /* 100 x 50 */
{
    ADD(b, 0xff, 0xc0, 0, 17, 8, 0, 50, 0, 100, 3, 1, (uint8_t)luma, 0, 2, 0x11, 1, 3, 0x11, 1);
}

static void add_scan(bytes *b)
{
    ADD(b, 0xff, 0xda, 0, 12, 3, 1, 0x00, 2, 0x11, 3, 0x10, 0, 63, 0, 0x12, 0x34);
}
static void add_end(bytes *b) { ADD(b, 0xff, 0xd9); }

static int parse(const bytes *b, mri_jpeg_layout *out, mr_error *err)
{
    uint8_t *exact = malloc(b->count + 1); /* exact: the sanitizer sees reads beyond it */
    memcpy(exact, b->p, b->count);
    const int rc = mri_jpeg_layout_parse(out, exact, b->count, err);
    free(exact);
    return rc;
}

static void expect(const bytes *b, int rc, const char *text)
{
    mr_error err = MR_ERROR_INIT;
    mri_jpeg_layout l;
    MRT_EQ(parse(b, &l, &err), rc);
    if (rc) MRT_HAS(err.text, text);
}

/* ---- good ones ---- */

static void test_frame(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_jpeg_layout l;
    bytes b;
    add_start(&b);
    ADD(&b, 0xff, 0xff, 0xff, 0xdd, 0, 4, 1, 2); /* with fill bytes */
    add_frame(&b, 0x21);
    add_scan(&b);
    const size_t begin = b.count - 2;
    add_end(&b);
    MRT_OK(mri_jpeg_layout_parse(&l, b.p, b.count, &err), &err);
    const mri_jpeg_frame *f = &l.frame;
    MRT_TRUE(f->width == 100 && f->height == 50 && f->component_count == 3 && f->h_max == 2 && f->v_max == 1);
    MRT_TRUE(f->mcus_wide == 7 && f->mcus_high == 7 && f->colour == MRI_JPEG_YCC && f->orientation == 1);
    MRT_TRUE(f->component[0].width == 100 && f->component[0].blocks_wide == 13 &&
             f->component[0].blocks_high == 7);
    MRT_TRUE(f->component[2].width == 50 && f->component[2].height == 50 && f->component[2].blocks_wide == 7);
    for (unsigned k = 0; k < 64; k++) {
        MRT_EQ(f->component[0].quant[mri_jpeg_natural[k]], 1 + k);
        MRT_EQ(f->component[1].quant[mri_jpeg_natural[k]], 101 + k);
    }
    MRT_TRUE(l.scan_count == 1 && l.scan[0].component_count == 3 && l.scan[0].restart_interval == 0x102 &&
             l.scan[0].begin == begin);
    const mri_jpeg_scan_component *c = l.scan[0].component; /* 16 counts, then the one symbol that identifies
                                                               the table */
    MRT_TRUE(c[0].dc[16] == 0 && c[1].dc[16] == 1 && c[2].dc[16] == 1);
    MRT_TRUE(c[0].ac[16] == 0x20 && c[1].ac[16] == 0x21 && c[2].ac[16] == 0x20);
}

static void test_colour(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_jpeg_layout l;
    for (int kind = 0; kind < 5; kind++) { /* none, Adobe 0, Adobe 1, JFIF and Adobe 0, names R G B */
        bytes b;
        add_start(&b);
        if (kind == 3) ADD(&b, 0xff, 0xe0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0);
        if (kind >= 1 && kind <= 3)
            ADD(&b, 0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, kind == 2);
        if (kind == 4) {
            ADD(&b, 0xff, 0xc1, 0, 17, 8, 0, 50, 0, 100, 3, 'R', 0x11, 0, 'G', 0x11, 1, 'B', 0x11, 1);
            ADD(&b, 0xff, 0xda, 0, 12, 3, 'R', 0x00, 'G', 0x11, 'B', 0x11, 0, 63, 0);
        } else {
            add_frame(&b, 0x11);
            add_scan(&b);
        }
        add_end(&b);
        MRT_OK(parse(&b, &l, &err), &err);
        MRT_EQ(l.frame.colour, kind == 1 || kind == 4 ? MRI_JPEG_RGB : MRI_JPEG_YCC);
    }
}

static void test_orientation(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_jpeg_layout l;
    mr_image_header h;
    bytes b;
    add_start(&b);
    ADD(&b, 0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0,
        0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0);
    add_frame(&b, 0x11);
    add_scan(&b);
    add_end(&b);
    MRT_OK(parse(&b, &l, &err), &err);
    MRT_EQ(l.frame.orientation, 6);
    MRT_OK(mr_image_header_parse(b.p, b.count, &h, &err), &err);
    MRT_EQ(h.orientation, 6);
    add_start(&b); /* the same as a LONG */
    ADD(&b, 0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 4, 0,
        0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0);
    add_frame(&b, 0x11);
    add_scan(&b);
    add_end(&b);
    MRT_OK(parse(&b, &l, &err), &err);
    MRT_EQ(l.frame.orientation, 6);
}

static void test_scans(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_jpeg_layout l;
    bytes b;
    add_start(&b);
    add_frame(&b, 0x22);
    ADD(&b, 0xff, 0xda, 0, 8, 1, 2, 0x11, 0, 63, 0, 1, 0xff, 0, 2, 0xff, 0xd3, 3, 0xff);
    const size_t first_end = b.count;
    ADD(&b, 0xff, 0xdd, 0, 4, 0, 7);
    add_huffman(&b, 0, 9); /* another table in the same place */
    ADD(&b, 0xff, 0xda, 0, 10, 2, 1, 0, 3, 0, 0, 63, 0, 5);
    add_end(&b);
    MRT_OK(parse(&b, &l, &err), &err);
    MRT_EQ(l.scan_count, 2);
    MRT_TRUE(l.scan[0].end == first_end && l.scan[0].restart_interval == 0 &&
             l.scan[1].restart_interval == 7);
    MRT_TRUE(l.scan[0].component[0].component == 1 && l.scan[1].component[1].component == 2);
    MRT_TRUE(l.scan[1].end == b.count - 2);
}

/* ---- others ---- */

static void test_refused(void **state)
{
    (void)state;
    bytes b, good;
    add_start(&good);
    add_frame(&good, 0x21);
    const size_t frame_end = good.count;
    add_scan(&good);
    add_end(&good);
    for (size_t cut = 0; cut < good.count; cut++) {
        b = good;
        b.count = cut;
        expect(&b, MR_EFORMAT, "JPEG");
    }
    const size_t sof = frame_end - 19;
    const struct {
        size_t at;
        uint8_t value;
        int rc;
        const char *text;
    } changes[] = {
        {sof + 1, 0xc2, MR_EUNSUPPORTED, "FFC2"},
        {sof + 1, 0xc9, MR_EUNSUPPORTED, "FFC9"},
        {sof + 1, 0xc8, MR_EUNSUPPORTED, "FFC8"},
        {sof + 1, 0x55, MR_EUNSUPPORTED, "FF55"},
        {sof + 1, 0xdc, MR_EUNSUPPORTED, "FFDC"},
        {sof + 3, 16, MR_EFORMAT, "SOF"},
        {sof + 4, 12, MR_EUNSUPPORTED, "12 bits"},
        {sof + 6, 0, MR_EUNSUPPORTED, "100 x 0"},
        {sof + 11, 0x51, MR_EFORMAT, "sampling factors 5 x 1"},
        {sof + 11, 0x20, MR_EFORMAT, "sampling factors 2 x 0"},
        {sof + 13, 1, MR_EUNSUPPORTED, "same name"},
        {sof + 12, 3, MR_EFORMAT, "quantisation table 3"},
        {sof + 11, 0x44, MR_EFORMAT, "18 blocks"},
        {frame_end + 5, 2, MR_EUNSUPPORTED, "out of place"},
        {frame_end + 5, 9, MR_EUNSUPPORTED, "component 9"},
        {frame_end + 6, 0x30, MR_EUNSUPPORTED, "Huffman tables 3, 0"},
        {frame_end + 4, 2, MR_EFORMAT, "SOS"},
        {frame_end, 0, MR_EFORMAT, "found 00: damaged"},
        {frame_end + 1, 0, MR_EFORMAT, "found FF 00, which is data"},
        {3, 0xda, MR_EFORMAT, "no frame header"},
        {5, 60, MR_EFORMAT, "DQT"},
        {6, 4, MR_EFORMAT, "DQT"},
        {7, 0, MR_EFORMAT, "missing or zero"},
        {1, 0xd9, MR_EFORMAT, "start marker"},
        {good.count - 1, 0xd8, MR_EFORMAT, "end marker"},
    };
    for (size_t k = 0; k < MRI_ARRAY_COUNT(changes); k++) {
        b = good;
        b.p[changes[k].at] = changes[k].value;
        expect(&b, changes[k].rc, changes[k].text);
    }
    add_start(&b);
    add_frame(&b, 0x21);
    add_frame(&b, 0x21);
    add_scan(&b);
    add_end(&b);
    expect(&b, MR_EFORMAT, "second frame header");
    add_start(&b);
    add_frame(&b, 0x21);
    ADD(&b, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 1);
    add_end(&b);
    expect(&b, MR_EFORMAT, "incomplete");
    b.count -= 2;
    ADD(&b, 0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 1, 0xff, 0xd9);
    expect(&b, MR_EUNSUPPORTED, "comes again");
}

static void test_tail(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const struct {
        uint8_t p[12];
        size_t count;
        int rc;
    } tails[] = {
        {{0xff, 0xd9}, 2, MR_OK},
        {{0xff, 0xff, 0xd9, 1, 2}, 5, MR_OK},
        {{0xff, 0xd3, 0xff, 0xfe, 0, 3, 9, 0xff, 0xd9}, 9, MR_OK},
        {{1, 0xff, 0xd9}, 3, MR_EFORMAT},
        {{0xff, 0, 0xff, 0xd9}, 4, MR_EFORMAT},
        {{0xff, 0xda, 0, 2, 0xff, 0xd9}, 6, MR_EFORMAT},
        {{0xff, 0xd8, 0xff, 0xd9}, 4, MR_EFORMAT},
        {{0xff, 0xe0, 0, 9, 0xff, 0xd9}, 6, MR_EFORMAT},
        {{0xff, 0xdb, 0, 2, 0xff, 0xd9}, 6, MR_EUNSUPPORTED},
        {{0xff, 0xff}, 2, MR_EFORMAT},
    };
    for (size_t k = 0; k < MRI_ARRAY_COUNT(tails); k++)
        MRT_EQ(mri_jpeg_tail_check(tails[k].p, tails[k].count, 0, &err), tails[k].rc);
}

/* ---- entry points ---- */

static void test_entries(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    static const uint8_t jpeg[400] = {1, 2, 3};
    mri_jpeg_layout l = {.frame = {.component_count = 3, .mcus_wide = 23, .mcus_high = 5},
                         .scan_count = 1,
                         .scan[0].begin = 120};
    for (uint32_t gap = 1; gap <= 24; gap++) {
        const uint32_t per_row = (23 + gap - 1) / gap;
        mri_jpeg_entry e[5 * 23];
        uint64_t bit = 8 * 120;
        for (uint32_t k = 0; k < per_row * 5; k++) {
            e[k] = (mri_jpeg_entry){.bit = bit,
                                    .dc = {(int)(k * 977 % 65536) - 32768, k % 2 ? 32767 : -32768, 0}};
            bit += k * 37 % 1000;
        }
        void *p;
        size_t n;
        MRT_OK(mri_jpeg_entries_pack(&l, jpeg, sizeof jpeg, gap, e, &p, &n, &err), &err);
        mri_jpeg_entries t;
        MRT_OK(mri_jpeg_entries_open(&t, p, n, &l, jpeg, sizeof jpeg, &err), &err);
        MRT_EQ(t.per_row, per_row);
        for (uint32_t row = 0; row < 5; row++) {
            mri_jpeg_entry found = mri_jpeg_entries_row(&t, row);
            for (uint32_t k = 0; k < per_row; k++) {
                const mri_jpeg_entry *put = &e[row * per_row + k];
                MRT_TRUE(found.bit == put->bit && memcmp(found.dc, put->dc, sizeof found.dc) == 0);
                if (k + 1 < per_row) mri_jpeg_entries_next(&t, row, k, &found);
            }
        }
        MRT_EQ(mri_jpeg_entries_open(&t, p, n - 1, &l, jpeg, sizeof jpeg, &err), MR_EFORMAT);
        MRT_EQ(mri_jpeg_entries_open(&t, p, n, &l, jpeg, sizeof jpeg - 1, &err), MR_EFORMAT);
        MRT_EQ(mri_jpeg_entries_open(&t, p, n, &l, jpeg + 1, sizeof jpeg, &err), MR_EFORMAT);
        free(p);
    }
    mri_jpeg_entry far[10] = {{.bit = 8 * 120, .dc = {40000, 0, 0}}};
    void *p;
    size_t n;
    for (int k = 1; k < 10; k++) far[k].bit = 8 * 120;
    MRT_EQ(mri_jpeg_entries_pack(&l, jpeg, sizeof jpeg, 16, far, &p, &n, &err), MR_EUNSUPPORTED);
    MRT_EQ(mri_jpeg_entries_pack(&l, jpeg, sizeof jpeg, 0, far, &p, &n, &err), MR_EINVAL);
}

/* The example of formats/record/FORMAT.md, section 3. */
static void test_entries_example(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    static const uint8_t jpeg[11] = "abcdefghij";
    const mri_jpeg_layout l = {.frame = {.component_count = 1, .mcus_wide = 20, .mcus_high = 2},
                               .scan_count = 1,
                               .scan[0].begin = 4};
    const mri_jpeg_entry e[4] = {
        {.bit = 32}, {.bit = 37, .dc = {-3}}, {.bit = 46, .dc = {5}}, {.bit = 49, .dc = {4}}};
    static const uint8_t example[] = {1,  16, 1, 4, 3,    4,    0,    0,    3,    0,    0,    0,
                                      10, 0,  0, 0, 0x31, 0x0a, 0xc8, 0x92, 0x00, 0xad, 0xd7, 0x0e};
    void *p;
    size_t n;
    MRT_OK(mri_jpeg_entries_pack(&l, jpeg, 10, 16, e, &p, &n, &err), &err);
    MRT_EQ(n, sizeof example);
    MRT_TRUE(memcmp(p, example, n) == 0);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame),       cmocka_unit_test(test_colour),
        cmocka_unit_test(test_orientation), cmocka_unit_test(test_scans),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_tail),
        cmocka_unit_test(test_entries),     cmocka_unit_test(test_entries_example),
    };
    return mrt_run(tests);
}
