/* mr_source_verify(): one call checks a whole data set, and every defect has its file. */
#include <unistd.h>

#include "base/util.h"
#include "tests/formats/record/mrt_mrec.h"
#include "tests/formats/tar/mrt_tar.h"

enum { FILES = 3, EACH = 40 };

typedef struct seen {
    uint32_t count, most;
    mr_error what[8];
} seen;

static bool note(void *context, const mr_error *what)
{
    seen *s = context;
    if (s->count < MRI_ARRAY_COUNT(s->what)) s->what[s->count] = *what;
    return ++s->count < s->most;
}

/* A list of FILES record files, NAME-0.mrec, ...; opened. */
static mr_source *open_set(const char *name)
{
    const mr_writer_config cfg = mrt_writer_config();
    const char *paths[FILES];
    uint64_t counts[FILES];
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    for (uint32_t k = 0; k < FILES; k++) {
        counts[k] = EACH + k;
        mrt_write_mrec(mrt_path("%s-%u.mrec", name, k), counts[k], &cfg);
    }
    for (uint32_t k = 0; k < FILES; k++) paths[k] = mrt_path("%s-%u.mrec", name, k);
    MRT_OK(mr_shards_write(mrt_path("%s", name), paths, counts, FILES, true, &err), &err);
    MRT_OK(mr_source_open(&src, mrt_path("%s", name), NULL, &err), &err);
    return src;
}

static void change_byte(const char *path, size_t at)
{
    size_t bytes;
    uint8_t *data = mrt_read_file(path, &bytes);
    MRT_TRUE(at < bytes);
    data[at] ^= 0x40;
    mrt_write_file(path, data, bytes);
    free(data);
}

static void a_whole_set_is_checked(void **state)
{
    (void)state;
    mr_source *src = open_set("whole");
    mr_error err = MR_ERROR_INIT;
    mr_verify_result r;
    seen s = {.most = 100};
    MRT_OK(mr_source_verify(src, NULL, note, &s, &r, &err), &err);
    MRT_EQ(r.records, 3 * EACH + 3);
    MRT_EQ(r.wrong, 0);
    MRT_EQ(s.count, 0);
    MRT_TRUE(r.bytes > mr_source_info_of(src)->total_bytes); /* headers and padding, too */
    MRT_OK(mr_source_verify_files(src, NULL, NULL, NULL, &r, &err), &err);
    MRT_EQ(r.records, 3 * EACH + 3);
    MRT_OK(mr_source_verify_sized(src, NULL, NULL, NULL, NULL, &err), &err);
    const volatile int stop = 1;
    MRT_EQ(mr_source_verify(src, &stop, note, &s, &r, &err), MR_ECANCELED);
    mr_source_close(src);
}

static void damage_in_several_files_is_listed(void **state)
{
    (void)state;
    mr_source *src = open_set("hurt");
    mr_error err = MR_ERROR_INIT;
    mr_verify_result r;
    mr_extent e;
    seen s = {.most = 100};
    MRT_OK(mr_source_extent(src, EACH + 5, &e, &err), &err);
    MRT_EQ(e.file, 1);
    change_byte(mrt_path("hurt-1.mrec"), (size_t)(e.offset + e.bytes / 2));
    MRT_OK(mr_source_extent(src, 2 * EACH + 1 + 7, &e, &err), &err);
    change_byte(mrt_path("hurt-2.mrec"), (size_t)(e.offset + e.bytes / 2));
    const int rc = mr_source_verify(src, NULL, note, &s, &r, &err);
    MRT_TRUE(rc == MR_ECHECKSUM || rc == MR_EFORMAT);
    MRT_EQ(r.wrong, 2);
    MRT_EQ(s.count, 2);
    MRT_HAS(s.what[0].file, "hurt-1.mrec");
    MRT_EQ(s.what[0].sample, 5); /* of its file */
    MRT_HAS(s.what[1].file, "hurt-2.mrec");
    MRT_EQ(s.what[1].sample, 7);
    MRT_HAS(err.file, "hurt-1.mrec");
    MRT_EQ(err.code, rc);
    s = (seen){.most = 1}; /* one is enough */
    MRT_EQ(mr_source_verify(src, NULL, note, &s, &r, &err), rc);
    MRT_EQ(s.count, 1);
    MRT_EQ(mr_source_verify(src, NULL, NULL, NULL, &r, &err), rc); /* nobody listens */
    MRT_EQ(r.wrong, 2);
    mr_source_close(src);
}

/* A file that goes while the set is open: the others are checked all the same. */
static void a_file_that_is_gone_is_a_defect(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_verify_result r;
    mr_source *src = open_set("gone");
    seen s = {.most = 100};
    MRT_EQ(unlink(mrt_path("gone-1.mrec")), 0);
    MRT_EQ(mr_source_verify(src, NULL, note, &s, &r, &err), MR_EFORMAT);
    MRT_EQ(r.wrong, 1);
    MRT_EQ(s.what[0].code, MR_ENOENT);
    MRT_HAS(err.file, "gone-1.mrec");
    MRT_EQ(r.records, 2 * EACH + 2);
    mr_source_close(src);
}

/* Other formats: every sample is read. */
static void samples_of_other_formats_are_read(void **state)
{
    (void)state;
    static const uint8_t images[] = "\0\0\010\003\0\0\0\003\0\0\0\002\0\0\0\002abcdefghijkl",
                         labels[] = "\0\0\010\001\0\0\0\003\0\001\001";
    static const char table[] = "image,label\na.jpg,0\nb.jpg,1\nc.jpg,1\n";
    mr_error err = MR_ERROR_INIT;
    mr_verify_result r;
    mr_source *src;
    seen s = {.most = 100};
    mrt_mkdir(mrt_path("idx"));
    mrt_write_file(mrt_path("idx/train-images-idx3-ubyte"), images, sizeof images - 1);
    mrt_write_file(mrt_path("idx/train-labels-idx1-ubyte"), labels, sizeof labels - 1);
    MRT_OK(mr_source_open(&src, mrt_path("idx"), NULL, &err), &err);
    MRT_OK(mr_source_verify(src, NULL, note, &s, &r, &err), &err);
    MRT_EQ(r.records, 3);
    mr_source_close(src);

    mrt_mkdir(mrt_path("table"));
    mrt_write_file(mrt_path("table/list.csv"), table, sizeof table - 1);
    mrt_write_file(mrt_path("table/a.jpg"), "\xff\xd8\xff", 3); /* nothing is decoded */
    mrt_write_file(mrt_path("table/b.jpg"), "\xff\xd8\xff", 3);
    mrt_write_file(mrt_path("table/c.jpg"), "\xff\xd8\xff", 3);
    MRT_OK(mr_source_open(&src, mrt_path("table/list.csv"), NULL, &err), &err);
    MRT_EQ(unlink(mrt_path("table/b.jpg")), 0);
    MRT_EQ(mr_source_verify(src, NULL, note, &s, &r, &err), MR_EFORMAT);
    MRT_EQ(r.records, 3);
    MRT_EQ(r.wrong, 1);
    MRT_EQ(s.what[0].code, MR_ENOENT);
    MRT_EQ(s.what[0].sample, 1);
    MRT_HAS(s.what[0].file, "b.jpg");
    MRT_OK(mr_source_verify_files(src, NULL, note, &s, &r, &err), &err); /* which reads no sample */
    mr_source_close(src);
}

static void put_tar(const char *name, const char *picture)
{
    mrt_tar a = {0};
    mrt_tar_text(&a, "0.jpg", picture);
    mrt_tar_text(&a, "0.cls", "0");
    mrt_tar_end(&a);
    mrt_write_file(mrt_path("%s", name), a.data, a.bytes);
    mrt_tar_fini(&a);
}

static void a_gap_in_the_numbers_is_a_defect(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_verify_result r;
    mr_source *src;
    seen s = {.most = 100};
    mrt_mkdir(mrt_path("gap"));
    put_tar("gap/p-00000.tar", "\xff\xd8\xff one");
    put_tar("gap/p-00002.tar", "\xff\xd8\xff two");
    MRT_OK(mr_source_open(&src, mrt_path("gap"), NULL, &err), &err);
    MRT_EQ(mr_source_verify(src, NULL, note, &s, &r, &err), MR_EFORMAT);
    MRT_EQ(r.records, 2);
    MRT_EQ(r.wrong, 1);
    MRT_EQ(s.what[0].code, MR_ENOENT);
    MRT_HAS(err.text, "1 number is missing between the numbers of the files");
    MRT_HAS(err.file, "gap");
    MRT_EQ(mr_source_verify_files(src, NULL, NULL, NULL, &r, &err), MR_EFORMAT);
    MRT_EQ(r.wrong, 1);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_set_is_checked),
        cmocka_unit_test(damage_in_several_files_is_listed),
        cmocka_unit_test(a_file_that_is_gone_is_a_defect),
        cmocka_unit_test(samples_of_other_formats_are_read),
        cmocka_unit_test(a_gap_in_the_numbers_is_a_defect),
    };
    return mrt_run(tests);
}
