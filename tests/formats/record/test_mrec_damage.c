/* .mrec: any changed byte anywhere is found, and so is anything missing, added or moved. */
#include <fcntl.h>
#include <unistd.h>

#include "tests/formats/record/mrt_mrec.h"

static int verify_bytes(const uint8_t *bytes, size_t size, mr_verify_result *r)
{
    mrt_write_file(mrt_path("damaged.mrec"), bytes, size);
    mr_error err = MR_ERROR_INIT;
    const int rc = mr_mrec_verify(mrt_path("damaged.mrec"), NULL, NULL, r, &err);
    if (rc) MRT_TRUE(err.text[0] && err.file[0]);
    return rc;
}

static void every_flipped_bit_is_found(void **state)
{
    (void)state;
    mr_writer_config cfg = mrt_writer_config();
    cfg.record_align = 64; /* some padding between records, too */
    mrt_write_mrec(mrt_path("flip.mrec"), 5, &cfg);
    size_t size;
    uint8_t *bytes = mrt_read_file(mrt_path("flip.mrec"), &size);
    mr_verify_result r;
    MRT_EQ(verify_bytes(bytes, size, &r), MR_OK);
    MRT_EQ(r.bytes, size);
    MRT_EQ(r.records, 5);
    const int fd = open(mrt_path("damaged.mrec"), O_RDWR | O_CLOEXEC);
    for (size_t at = 0; at < size; at++) {
        const uint8_t changed = bytes[at] ^ (uint8_t)(1u << at % 8);
        MRT_EQ(pwrite(fd, &changed, 1, (off_t)at), 1);
        const int rc = mr_mrec_verify(mrt_path("damaged.mrec"), NULL, NULL, &r, NULL);
        if (rc == MR_OK || r.wrong == 0) fail_msg("byte %zu changed and nothing was found", at);
        MRT_EQ(pwrite(fd, &bytes[at], 1, (off_t)at), 1);
    }
    close(fd);
    free(bytes);
}

static void cut_or_longer(void **state)
{
    (void)state;
    const mr_writer_config cfg = mrt_writer_config();
    mrt_write_mrec(mrt_path("size.mrec"), 5, &cfg);
    size_t size;
    uint8_t *bytes = mrt_read_file(mrt_path("size.mrec"), &size), *longer = calloc(1, size + 4096);
    mr_verify_result r;
    memcpy(longer, bytes, size);
    for (size_t cut = 0; cut < size; cut += 509) MRT_TRUE(verify_bytes(bytes, cut, &r) != MR_OK);
    MRT_TRUE(verify_bytes(bytes, size - 1, &r) != MR_OK);
    MRT_EQ(verify_bytes(longer, size + 1, &r), MR_EFORMAT);
    MRT_EQ(verify_bytes(longer, size + 4096, &r), MR_EFORMAT);
    free(longer);
    free(bytes);
}

typedef struct seen {
    int count;
    uint64_t sample[8];
} seen;

static bool note(void *context, const mr_error *what)
{
    seen *s = context;
    if (s->count < 8) s->sample[s->count] = what->sample;
    s->count++;
    return true;
}

static bool note_one(void *context, const mr_error *what)
{
    note(context, what);
    return false;
}

/* One bad record does not hide the next; the caller may stop. */
static void each_damaged_record_is_named(void **state)
{
    (void)state;
    const mr_writer_config cfg = mrt_writer_config();
    mrt_write_mrec(mrt_path("two.mrec"), 300, &cfg);
    mr_mrec *m;
    mr_error err = MR_ERROR_INIT;
    uint64_t offset[3], bytes;
    MRT_OK(mr_mrec_open(&m, mrt_path("two.mrec"), 1 << 20, &err), &err);
    MRT_OK(mr_mrec_extent(m, 7, &offset[0], &bytes, &err), &err);
    MRT_OK(mr_mrec_extent(m, 290, &offset[1], &bytes, &err), &err);
    offset[2] = mr_mrec_info_of(m)->index_offset;
    const int fd = open(mrt_path("two.mrec"), O_RDWR | O_CLOEXEC);
    MRT_EQ(pwrite(fd, "#", 1, (off_t)offset[0] + 200), 1); /* payload */
    MRT_EQ(pwrite(fd, "#", 1, (off_t)offset[1] + 16), 1);  /* length in the header */
    seen s = {0};
    mr_verify_result r;
    MRT_TRUE(mr_mrec_verify(mrt_path("two.mrec"), note, &s, &r, &err) != MR_OK);
    MRT_EQ(s.count, 2);
    MRT_EQ(s.sample[0], 7);
    MRT_EQ(s.sample[1], 290);
    MRT_EQ(r.wrong, 2);
    MRT_EQ(r.records, 300);
    MRT_EQ(pwrite(fd, "#", 1, (off_t)offset[2] + 4096 + 100), 1); /* the index page of records 127..253 */
    s = (seen){0};
    MRT_TRUE(mr_mrec_verify(mrt_path("two.mrec"), note, &s, &r, &err) != MR_OK);
    MRT_EQ(s.count, 3);
    MRT_EQ(s.sample[1], MR_NOWHERE);
    MRT_EQ(r.records, 300);
    s = (seen){0};
    MRT_TRUE(mr_mrec_verify(mrt_path("two.mrec"), note_one, &s, &r, &err) != MR_OK);
    MRT_EQ(s.count, 1);
    close(fd);

    uint8_t buf[4096];
    mr_sample sample;
    MRT_OK(mr_mrec_extent(m, 7, &offset[0], &bytes, &err), &err);
    MRT_EQ(pread(mr_mrec_fd(m), buf, bytes, (off_t)offset[0]), bytes);
    MRT_EQ(mr_mrec_parse(m, 7, buf, bytes, &sample, NULL, &err), MR_ECHECKSUM);
    MRT_EQ(err.sample, 7);
    MRT_TRUE(err.offset >= offset[0] && err.offset < offset[0] + bytes);
    MRT_HAS(err.file, "two.mrec");
    mr_mrec_close(m);
    MRT_EQ(mr_mrec_open(&m, mrt_path("two.mrec"), 1 << 20, &err), MR_ECHECKSUM);
    MRT_HAS(err.text, "index page 1");
    MRT_OK(mr_mrec_open(&m, mrt_path("two.mrec"), 0, &err), &err); /* by page: only who needs that page hears
                                                                      of it */
    MRT_OK(mr_mrec_extent(m, 0, &offset[0], &bytes, &err), &err);
    MRT_EQ(mr_mrec_extent(m, 130, &offset[0], &bytes, &err), MR_ECHECKSUM);
    mr_mrec_close(m);
}

static void put_crc(uint8_t *block)
{
    const uint32_t crc = mr_crc32c(0, block, 4092);
    memcpy(block + 4092, &crc, 4);
}

static int open_bytes(const uint8_t *bytes, size_t size, mr_error *err)
{
    mr_mrec *m;
    mrt_write_file(mrt_path("version.mrec"), bytes, size);
    const int rc = mr_mrec_open(&m, mrt_path("version.mrec"), 1 << 20, err);
    mr_mrec_close(m);
    return rc;
}

static void versions_flags_and_mangling(void **state)
{
    (void)state;
    const mr_writer_config cfg = mrt_writer_config();
    mrt_write_mrec(mrt_path("v.mrec"), 2, &cfg);
    size_t size;
    uint8_t *bytes = mrt_read_file(mrt_path("v.mrec"), &size);
    mr_error err = MR_ERROR_INIT;
    bytes[8] = 2; /* major: whatever follows may mean something else, its checksum included */
    MRT_EQ(open_bytes(bytes, size, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "version 2.3");
    bytes[8] = 1;
    bytes[10] = 7; /* minor: a longer header whose end is not known here */
    bytes[12] = 200;
    bytes[190] = 99;
    put_crc(bytes);
    MRT_OK(open_bytes(bytes, size, &err), &err);
    bytes[210] = 1; /* but bytes after the stated header length are reserved and must be zero */
    put_crc(bytes);
    MRT_EQ(open_bytes(bytes, size, &err), MR_EFORMAT);
    bytes[210] = 0;
    bytes[10] = 1;
    bytes[12] = 160;
    memset(bytes + 160, 0, 16); /* the labels of 1.2 */
    put_crc(bytes);
    MRT_EQ(open_bytes(bytes, size, &err), MR_EFORMAT); /* version 1.1 has nothing at 190 */
    bytes[190] = 0;
    bytes[16] = 3; /* 1.1 knows records of coefficients, 1.0 did not */
    put_crc(bytes);
    MRT_OK(open_bytes(bytes, size, &err), &err);
    bytes[10] = 0;
    put_crc(bytes);
    MRT_EQ(open_bytes(bytes, size, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "features");
    bytes[16] = 1;
    put_crc(bytes);
    MRT_OK(open_bytes(bytes, size, &err), &err); /* but 1.0's own features are read */
    bytes[10] = 1;
    bytes[16] = 5;
    put_crc(bytes);
    MRT_EQ(open_bytes(bytes, size, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "features");
    bytes[16] = 1;
    put_crc(bytes);
    MRT_OK(open_bytes(bytes, size, &err), &err);
    bytes[5] = '\n';
    MRT_EQ(open_bytes(bytes, size, &err), MR_EFORMAT);
    MRT_HAS(err.text, "text transfer");
    memcpy(bytes, "GIF89a..", 8);
    MRT_EQ(open_bytes(bytes, size, &err), MR_EFORMAT);
    free(bytes);
}

/* Numbers in the header that do not fit together, under a good checksum. */
static void hostile_headers(void **state)
{
    (void)state;
    const mr_writer_config cfg = mrt_writer_config();
    mrt_write_mrec(mrt_path("h.mrec"), 2, &cfg);
    size_t size;
    uint8_t *bytes = mrt_read_file(mrt_path("h.mrec"), &size);
    static const uint64_t values[] = {0, 1, 4095, 4096, (uint64_t)1 << 40, UINT64_MAX - 7, UINT64_MAX};
    for (size_t at = 24; at < 144; at += 8) {
        uint64_t before;
        memcpy(&before, bytes + at, 8);
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            if (values[k] == before || at == 136) continue; /* the fingerprint is verify's business */
            memcpy(bytes + at, &values[k], 8);
            put_crc(bytes);
            mr_error err = MR_ERROR_INIT;
            MRT_TRUE(open_bytes(bytes, size, &err) != MR_OK);
            MRT_TRUE(err.code != MR_ENOMEM);
        }
        memcpy(bytes + at, &before, 8);
    }
    put_crc(bytes);
    mr_error err = MR_ERROR_INIT;
    MRT_OK(open_bytes(bytes, size, &err), &err);
    bytes[136] ^= 1;
    put_crc(bytes);
    mr_verify_result r;
    MRT_EQ(verify_bytes(bytes, size, &r), MR_EFORMAT);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flipped_bit_is_found),
        cmocka_unit_test(cut_or_longer),
        cmocka_unit_test(each_damaged_record_is_named),
        cmocka_unit_test(versions_flags_and_mangling),
        cmocka_unit_test(hostile_headers),
    };
    return mrt_run(tests);
}
