/* .mrec: written records are read back; wrong use is refused; alignment, index in memory and by page; full
 * disks. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/formats/record/mrt_mrec.h"

static void crc_known_answer(void **state)
{
    (void)state;
    MRT_EQ(mr_crc32c(0, "123456789", 9), 0xE3069283u);
    MRT_EQ(mr_crc32c(mr_crc32c(0, "1234", 4), "56789", 5), 0xE3069283u);
    MRT_EQ(mr_crc32c(7, "", 0), 7);
}

static void check_records(mr_mrec *m, uint64_t count)
{
    mr_error err = MR_ERROR_INIT;
    static uint8_t buf[100000];
    for (uint64_t i = 0; i < count; i++) {
        uint64_t offset, bytes, source_index;
        mr_sample s;
        MRT_OK(mr_mrec_extent(m, i, &offset, &bytes, &err), &err);
        MRT_EQ(offset % mr_mrec_info_of(m)->record_align, 0);
        MRT_TRUE(bytes <= sizeof buf);
        MRT_EQ(pread(mr_mrec_fd(m), buf, bytes, (off_t)offset), bytes);
        MRT_OK(mr_mrec_parse(m, i, buf, bytes, &s, &source_index, &err), &err);
        MRT_EQ(source_index, 2 * i);
        mrt_check_values(&s, i, mrt_image_bytes(i));
    }
}

/* Counts around a page of 127 entries, each with the index in memory and read by page. */
static void round_trip(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 126, 127, 128, 400};
    const mr_writer_config cfg = mrt_writer_config();
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        const char *path = mrt_path("round-%d.mrec", (int)k);
        mrt_write_mrec(path, counts[k], &cfg);
        MRT_TRUE(access(mrt_path("round-%d.mrec.part", (int)k), F_OK) != 0);
        for (int paged = 0; paged < 2; paged++) {
            mr_error err = MR_ERROR_INIT;
            mr_mrec *m;
            MRT_OK(mr_mrec_open(&m, path, paged ? 0 : 1 << 20, &err), &err);
            const mr_mrec_info *info = mr_mrec_info_of(m);
            MRT_EQ(info->count, counts[k]);
            MRT_EQ(info->field_count, MRT_FIELDS);
            MRT_EQ(info->class_count, 3);
            MRT_STR(info->class_names[2], mrt_classes[2]);
            MRT_STR(info->provenance, "{\"made\":\"by a test\"}");
            MRT_EQ(info->fields[3].dim[0], 3);
            check_records(m, counts[k]);
            uint64_t at;
            MRT_EQ(mr_mrec_extent(m, counts[k], &at, &at, &err), MR_EINVAL);
            mr_mrec_close(m);
        }
        mr_verify_result r;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mr_mrec_verify(path, NULL, NULL, &r, &err), &err);
        MRT_EQ(r.records, counts[k]);
        MRT_EQ(r.wrong, 0);
    }
}

static void write_one(const char *path, uint32_t align, size_t image_bytes, mr_mrec **out)
{
    static mrt_room room;
    mr_writer_config cfg = mrt_writer_config();
    mr_error err = MR_ERROR_INIT;
    mr_writer *w;
    cfg.record_align = align;
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    for (uint64_t i = 0; i < 3; i++) {
        const mr_value *v = mrt_values(&room, i, image_bytes);
        const uint64_t expected = mr_writer_record_bytes(w, v), before = mr_writer_bytes(w);
        MRT_OK(mr_writer_append(w, i, v, &err), &err);
        MRT_TRUE(mr_writer_bytes(w) - before <= expected + 4096 && mr_writer_bytes(w) > before + image_bytes);
        MRT_EQ(mr_writer_count(w), i + 1);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    MRT_OK(mr_mrec_open(out, path, 1 << 20, &err), &err);
}

static void alignment_follows_the_first_record(void **state)
{
    (void)state;
    static const struct {
        uint32_t asked;
        size_t image_bytes;
        uint32_t found;
    } cases[] = {{0, 1000, 8},     {0, 40000, 4096}, {0, 70000, 4096},
                 {512, 1000, 512}, {8, 70000, 8},    {4096, 100, 4096}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        mr_mrec *m;
        write_one(mrt_path("align-%d.mrec", (int)k), cases[k].asked, cases[k].image_bytes, &m);
        MRT_EQ(mr_mrec_info_of(m)->record_align, cases[k].found);
        for (uint64_t i = 0; i < 3; i++) {
            uint64_t offset, bytes;
            mr_error err = MR_ERROR_INIT;
            MRT_OK(mr_mrec_extent(m, i, &offset, &bytes, &err), &err);
            MRT_EQ(offset % cases[k].found, 0);
        }
        mr_mrec_close(m);
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mr_mrec_verify(mrt_path("align-%d.mrec", (int)k), NULL, NULL, NULL, &err), &err);
    }
    mr_writer *w;
    mr_writer_config cfg = mrt_writer_config();
    static const uint32_t bad[] = {1, 4, 12, 8192};
    for (size_t k = 0; k < 4; k++) {
        cfg.record_align = bad[k];
        MRT_EQ(mr_writer_open(&w, mrt_path("align-bad.mrec"), &cfg, NULL, NULL), MR_EINVAL);
        MRT_TRUE(w == NULL);
    }
}

/* More records than fit into the piece of memory that index pages have: they go through the spilled file. */
static void long_index_is_spilled(void **state)
{
    (void)state;
    const mr_field field = {.name = "label", .type = MR_TYPE_INT};
    mr_writer_config cfg;
    mr_writer_defaults(&cfg);
    cfg.fields = &field;
    cfg.field_count = 1;
    mr_error err = MR_ERROR_INIT;
    mr_writer *w;
    const char *path = mrt_path("long.mrec");
    enum { COUNT = 127 * 256 * 2 + 77 };
    mrt_write_file(mrt_path("long.mrec.index"), "somebody's", 10);
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    for (int i = 0; i < COUNT; i++) {
        const mr_value v = {.type = MR_TYPE_INT, .i = -i};
        MRT_OK(mr_writer_append(w, (uint64_t)i, &v, &err), &err);
    }
    MRT_OK(mr_writer_finish(w, &err), &err);
    size_t foreign;
    char *text = mrt_read_file(mrt_path("long.mrec.index"), &foreign); /* no business of ours */
    MRT_EQ(foreign, 10);
    assert_memory_equal(text, "somebody's", 10);
    free(text);
    mr_verify_result r;
    MRT_OK(mr_mrec_verify(path, NULL, NULL, &r, &err), &err);
    MRT_EQ(r.records, COUNT);
    mr_mrec *m;
    MRT_OK(mr_mrec_open(&m, path, UINT64_MAX, &err), &err);
    uint64_t offset, bytes;
    uint8_t buf[256];
    mr_sample s;
    MRT_OK(mr_mrec_extent(m, COUNT - 5, &offset, &bytes, &err), &err);
    MRT_EQ(pread(mr_mrec_fd(m), buf, bytes, (off_t)offset), bytes);
    MRT_OK(mr_mrec_parse(m, COUNT - 5, buf, bytes, &s, NULL, &err), &err);
    MRT_EQ(s.value[0].i, -(COUNT - 5));
    MRT_EQ(mr_mrec_parse(m, COUNT - 6, buf, bytes, &s, NULL, &err), MR_EFORMAT); /* a good record in a wrong
                                                                                    place */
    MRT_EQ(err.sample, COUNT - 6);
    mr_mrec_close(m);
}

static void wrong_values_are_refused(void **state)
{
    (void)state;
    static mrt_room room;
    const mr_writer_config cfg = mrt_writer_config();
    mr_error err = MR_ERROR_INIT;
    mr_writer *w;
    MRT_OK(mr_writer_open(&w, mrt_path("values.mrec"), &cfg, NULL, &err), &err);
    mrt_values(&room, 0, 100);
    room.value[0].type = MR_TYPE_INT;
    MRT_EQ(mr_writer_append(w, 0, room.value, &err), MR_EINVAL);
    MRT_HAS(err.text, "\"image\": expected image, found int");
    mrt_values(&room, 0, 100);
    room.value[1].i = 3;
    MRT_EQ(mr_writer_append(w, 0, room.value, &err), MR_EINVAL);
    MRT_HAS(err.text, "label 3 is outside the 3 classes");
    mrt_values(&room, 0, 100);
    room.value[3].dim[0] = 2;
    MRT_EQ(mr_writer_append(w, 0, room.value, &err), MR_EINVAL);
    MRT_HAS(err.text, "fixed");
    mrt_values(&room, 0, 100);
    room.value[3].dtype = MR_I32;
    MRT_EQ(mr_writer_append(w, 0, room.value, &err), MR_EINVAL);
    room.value[0] =
        (mr_value){.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {5, 5, 3}, .data = room.image, .bytes = 74};
    MRT_EQ(mr_writer_append(w, 0, room.value, &err), MR_EINVAL);
    MRT_HAS(err.text, "74 bytes");
    room.value[0] = (mr_value){
        .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {UINT64_MAX / 2, 3, 3}, .data = room.image, .bytes = 74};
    MRT_EQ(mr_writer_append(w, 0, room.value, &err), MR_EINVAL);
    mrt_append(w, 0, 2); /* nothing of the above left a trace */
    MRT_EQ(mr_writer_append(w, 2, mrt_values(&room, 2, 100), &err), MR_EINVAL);
    MRT_HAS(err.text, "expected 3 or more");
    MRT_OK(mr_writer_finish(w, &err), &err);
    MRT_OK(mr_mrec_verify(mrt_path("values.mrec"), NULL, NULL, NULL, &err), &err);
}

static void wrong_schemas_are_refused(void **state)
{
    (void)state;
    const mr_field bad[] = {
        {.name = "", .type = MR_TYPE_INT},
        {.name = "a", .type = 0},
        {.name = "a", .type = 10},
        {.name = "a", .type = MR_TYPE_TENSOR},
        {.name = "a", .type = MR_TYPE_INT, .ndim = 1, .dim = {1}},
        {.name = "a", .type = MR_TYPE_PIXELS, .ndim = 2, .dim = {1, 1}},
        {.name = "a", .type = MR_TYPE_TENSOR, .dtype = MR_F32, .ndim = 9},
        {.name = "a", .type = MR_TYPE_TENSOR, .dtype = MR_F32, .ndim = 2, .dim = {1, 0}},
        {.name = "a", .type = MR_TYPE_TENSOR, .dtype = MR_F32, .ndim = 2, .dim = {UINT64_MAX, UINT64_MAX}},
    };
    mr_writer_config cfg = mrt_writer_config();
    mr_writer *w;
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        cfg.fields = &bad[k];
        cfg.field_count = 1;
        MRT_EQ(mr_writer_open(&w, mrt_path("schema.mrec"), &cfg, NULL, NULL), MR_EINVAL);
    }
    const mr_field twice[2] = {{.name = "a", .type = MR_TYPE_INT}, {.name = "a", .type = MR_TYPE_INT}};
    cfg.fields = twice;
    cfg.field_count = 2;
    MRT_EQ(mr_writer_open(&w, mrt_path("schema.mrec"), &cfg, NULL, NULL), MR_EINVAL);
    cfg.field_count = 0;
    MRT_EQ(mr_writer_open(&w, mrt_path("schema.mrec"), &cfg, NULL, NULL), MR_EINVAL);
    cfg.struct_size = 0;
    MRT_EQ(mr_writer_open(&w, mrt_path("schema.mrec"), &cfg, NULL, NULL), MR_EINVAL);
    MRT_TRUE(access(mrt_path("schema.mrec.part"), F_OK) != 0);
}

static void existing_output_needs_force(void **state)
{
    (void)state;
    const char *path = mrt_path("exists.mrec");
    mr_writer_config cfg = mrt_writer_config();
    mr_writer *w, *second;
    mr_error err = MR_ERROR_INIT;
    mrt_write_mrec(path, 3, &cfg);
    MRT_EQ(mr_writer_open(&w, path, &cfg, NULL, &err), MR_EEXIST);
    cfg.force = true;
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    MRT_EQ(mr_writer_open(&second, path, &cfg, NULL, &err), MR_EEXIST); /* one writer at a time */
    MRT_HAS(err.text, "another process");
    mrt_append(w, 0, 5);
    MRT_OK(mr_writer_finish(w, &err), &err);
    mr_mrec *m;
    MRT_OK(mr_mrec_open(&m, path, 0, &err), &err);
    MRT_EQ(mr_mrec_info_of(m)->count, 5);
    mr_mrec_close(m);
    mrt_mkdir(mrt_path("exists"));
    MRT_EQ(mr_writer_open(&w, mrt_path("exists"), &cfg, NULL, &err), MR_EINVAL);
    MRT_EQ(mr_writer_open(&w, mrt_path("no/such/folder.mrec"), &cfg, NULL, &err), MR_ENOENT);
    MRT_HAS(err.file, "folder.mrec.part");
}

/* A name that appears while we write is not overwritten without force. */
static void late_rival_keeps_its_file(void **state)
{
    (void)state;
    const char *path = mrt_path("rival.mrec");
    const mr_writer_config cfg = mrt_writer_config();
    mr_writer *w;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    mrt_append(w, 0, 2);
    mrt_write_file(path, "mine", 4);
    MRT_EQ(mr_writer_finish(w, &err), MR_EEXIST);
    size_t bytes;
    char *text = mrt_read_file(path, &bytes);
    MRT_STR(text, "mine");
    free(text);
    MRT_TRUE(access(mrt_path("rival.mrec.part"), F_OK) == 0);
}

/* A file that reads back differently from the written data does not replace the existing file. */
static void read_back_before_it_has_its_name(void **state)
{
    (void)state;
    const char *path = mrt_path("back.mrec");
    mr_writer_config cfg = mrt_writer_config();
    mr_writer *w;
    mr_error err = MR_ERROR_INIT;
    mrt_write_mrec(path, 3, &cfg);
    size_t bytes, left;
    void *before = mrt_read_file(path, &bytes);
    cfg.force = cfg.verify = true;
    for (int damaged = 1; damaged >= 0; damaged--) {
        static mrt_room room;
        MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
        for (uint64_t i = 0; i < 120; i++) /* past the buffer */
            MRT_OK(mr_writer_append(w, i, mrt_values(&room, i, 70000), &err), &err);
        if (damaged) {
            const int fd = open(mrt_path("back.mrec.part"), O_WRONLY | O_CLOEXEC);
            MRT_EQ(pwrite(fd, "some noise..", 12, 3 << 20), 12);
            close(fd);
        }
        MRT_EQ(mr_writer_finish(w, &err), damaged ? MR_ECHECKSUM : MR_OK);
        if (!damaged) continue;
        MRT_HAS(err.file, "back.mrec.part");
        void *after = mrt_read_file(path, &left);
        MRT_EQ(left, bytes);
        assert_memory_equal(before, after, bytes);
        free(after);
    }
    free(before);
    MRT_OK(mr_mrec_verify(path, NULL, NULL, NULL, &err), &err);
}

/* A write limit stands for a full disk: the failure is reported, again on the next call, no file takes the
 * final name, and the temporary file can be resumed once the disk has space. */
static void full_disk(void **state)
{
    (void)state;
    static mrt_room room;
    const char *path = mrt_path("full.mrec");
    mr_writer_config cfg = mrt_writer_config();
    mr_error err = MR_ERROR_INIT;
    mr_writer *w;
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    const struct rlimit tight = {6 << 20, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    setrlimit(RLIMIT_FSIZE, &tight);
    int rc = MR_OK;
    uint64_t i = 0;
    for (; rc == MR_OK && i < 1000; i++) rc = mr_writer_append(w, i, mrt_values(&room, i, 60000), &err);
    MRT_EQ(rc, MR_EIO);
    MRT_EQ(err.sys_errno, EFBIG);
    MRT_HAS(err.file, "full.mrec.part");
    MRT_EQ(mr_writer_append(w, i, mrt_values(&room, i, 100), &err), MR_EIO);
    MRT_EQ(mr_writer_finish(w, &err), MR_EIO);
    MRT_TRUE(access(path, F_OK) != 0);
    setrlimit(RLIMIT_FSIZE, &before);

    uint64_t next;
    cfg.resume = true;
    MRT_OK(mr_writer_open(&w, path, &cfg, &next, &err), &err);
    MRT_TRUE(next > 60 && next < 120);
    for (i = next; i < 120; i++) MRT_OK(mr_writer_append(w, i, mrt_values(&room, i, 60000), &err), &err);
    MRT_OK(mr_writer_finish(w, &err), &err);
    mr_verify_result r;
    MRT_OK(mr_mrec_verify(path, NULL, NULL, &r, &err), &err);
    MRT_EQ(r.records, 120);
}

static void allocations_fail_in_turn(void **state)
{
    (void)state;
    const char *path = mrt_path("alloc.mrec");
    const mr_writer_config cfg = mrt_writer_config();
    mr_error err = MR_ERROR_INIT;
    for (long n = 0;; n++) {
        mr_writer *w = (mr_writer *)&err;
        mrt_fail_alloc_at(n);
        const int rc = mr_writer_open(&w, path, &cfg, NULL, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) {
            mrt_append(w, 0, 3);
            MRT_OK(mr_writer_finish(w, &err), &err);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(w == NULL);
    }
    for (long n = 0;; n++) {
        mr_mrec *m = (mr_mrec *)&err;
        mrt_fail_alloc_at(n);
        const int rc = mr_mrec_open(&m, path, 1 << 20, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) {
            mr_mrec_close(m);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(m == NULL);
    }
    for (long n = 0;; n++) {
        mrt_fail_alloc_at(n);
        const int rc = mr_mrec_verify(path, NULL, NULL, NULL, &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) break;
        MRT_EQ(rc, MR_ENOMEM);
    }
}

/* One file of a JPEG's bytes, coefficients, and a JPEG again; then one without coefficients. */
static void coefficients_are_announced(void **state)
{
    (void)state;
    const mr_field field = {.name = "image", .type = MR_TYPE_IMAGE};
    mr_writer_config cfg;
    mr_writer_defaults(&cfg);
    cfg.fields = &field;
    cfg.field_count = 1;
    for (int coef = 1; coef >= 0; coef--) {
        mr_error err = MR_ERROR_INIT;
        mr_writer *w;
        mr_mrec *m;
        mr_sample s;
        uint64_t offset, bytes;
        char path[1024];
        snprintf(path, sizeof path, "%s", mrt_path("coef-%d.mrec", coef));
        MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
        for (uint64_t i = 0; i < 3; i++) {
            const mr_value v = {
                .type = coef && i == 1 ? MR_TYPE_COEF : MR_TYPE_JPEG, .data = "anything", .bytes = 8};
            MRT_OK(mr_writer_append(w, i, &v, &err), &err);
        }
        MRT_OK(mr_writer_finish(w, &err), &err);
        MRT_OK(mr_mrec_verify(path, NULL, NULL, NULL, &err), &err);
        size_t size;
        uint8_t *file = mrt_read_file(path, &size);
        MRT_EQ(file[10], 3);
        MRT_EQ(file[16], coef ? 3 : 1);
        file[16] = 1; /* a file that hides them: no reader may be surprised */
        const uint32_t crc = mr_crc32c(0, file, 4092);
        memcpy(file + 4092, &crc, 4);
        mrt_write_file(path, file, size);
        MRT_OK(mr_mrec_open(&m, path, 1 << 20, &err), &err);
        MRT_OK(mr_mrec_extent(m, 1, &offset, &bytes, &err), &err);
        MRT_EQ(mr_mrec_parse(m, 1, file + offset, bytes, &s, NULL, &err), coef ? MR_EFORMAT : MR_OK);
        if (coef) MRT_HAS(err.text, "announce");
        MRT_EQ(mr_mrec_verify(path, NULL, NULL, NULL, &err), coef ? MR_EFORMAT : MR_OK);
        mr_mrec_close(m);
        free(file);
    }
    const mr_field only = {.name = "image", .type = MR_TYPE_COEF};
    mr_writer *w;
    mr_error err = MR_ERROR_INIT;
    cfg.fields = &only;
    MRT_EQ(mr_writer_open(&w, mrt_path("coef-only.mrec"), &cfg, NULL, &err), MR_EINVAL);
}

static void abort_keeps_or_removes(void **state)
{
    (void)state;
    const char *path = mrt_path("abort.mrec");
    const mr_writer_config cfg = mrt_writer_config();
    mr_writer *w;
    mr_error err = MR_ERROR_INIT;
    mr_writer_abort(NULL, true);
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    mrt_append(w, 0, 2);
    mr_writer_abort(w, true);
    MRT_TRUE(access(mrt_path("abort.mrec.part"), F_OK) == 0 && access(path, F_OK) != 0);
    mr_mrec *m; /* half a file is never a file */
    MRT_EQ(mr_mrec_open(&m, mrt_path("abort.mrec.part"), 0, &err), MR_EFORMAT);
    MRT_HAS(err.text, "unfinished");
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    mr_writer_abort(w, false);
    MRT_TRUE(access(mrt_path("abort.mrec.part"), F_OK) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_known_answer),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(alignment_follows_the_first_record),
        cmocka_unit_test(long_index_is_spilled),
        cmocka_unit_test(wrong_values_are_refused),
        cmocka_unit_test(wrong_schemas_are_refused),
        cmocka_unit_test(existing_output_needs_force),
        cmocka_unit_test(late_rival_keeps_its_file),
        cmocka_unit_test(read_back_before_it_has_its_name),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(allocations_fail_in_turn),
        cmocka_unit_test(coefficients_are_announced),
        cmocka_unit_test(abort_keeps_or_removes),
    };
    return mrt_run(tests);
}
