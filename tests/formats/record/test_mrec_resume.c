/* .mrec: an interrupted file goes on, and ends up the same byte for byte, wherever it was cut and whatever is
 * behind. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/formats/record/mrt_mrec.h"

enum { COUNT = 23 };

typedef struct whole {
    uint8_t *bytes;
    size_t size, data_end;
} whole;

static whole make_whole(const char *name, uint32_t align)
{
    mr_writer_config cfg = mrt_writer_config();
    cfg.record_align = align;
    mrt_write_mrec(mrt_path("%s", name), COUNT, &cfg);
    whole w;
    mr_mrec *m;
    mr_error err = MR_ERROR_INIT;
    w.bytes = mrt_read_file(mrt_path("%s", name), &w.size);
    MRT_OK(mr_mrec_open(&m, mrt_path("%s", name), 0, &err), &err);
    w.data_end = (size_t)mr_mrec_info_of(m)->index_offset;
    mr_mrec_close(m);
    return w;
}

/* The file aside of an interrupted run: how such a run begins, then records as in the finished file. */
static uint8_t *make_part(const whole *w, uint32_t align, size_t *prefix)
{
    mr_writer_config cfg = mrt_writer_config();
    cfg.record_align = align;
    mr_error err = MR_ERROR_INIT;
    mr_writer *writer;
    MRT_OK(mr_writer_open(&writer, mrt_path("begin.mrec"), &cfg, NULL, &err), &err);
    mr_writer_abort(writer, true);
    uint8_t *begin = mrt_read_file(mrt_path("begin.mrec.part"), prefix);
    uint8_t *part = malloc(w->size);
    memcpy(part, w->bytes, w->size);
    memcpy(part, begin, *prefix);
    free(begin);
    return part;
}

static void resume_and_compare(const whole *w, const char *name, uint32_t align, uint64_t at_least)
{
    mr_writer_config cfg = mrt_writer_config();
    cfg.record_align = align;
    cfg.resume = true;
    mr_error err = MR_ERROR_INIT;
    mr_writer *writer;
    uint64_t next;
    MRT_OK(mr_writer_open(&writer, mrt_path("%s", name), &cfg, &next, &err), &err);
    const uint64_t done = mr_writer_count(writer);
    MRT_EQ(next, done ? 2 * (done - 1) + 1 : 0);
    MRT_TRUE(done >= at_least && done <= COUNT);
    mrt_append(writer, done, COUNT);
    MRT_OK(mr_writer_finish(writer, &err), &err);
    size_t size;
    uint8_t *bytes = mrt_read_file(mrt_path("%s", name), &size);
    MRT_EQ(size, w->size);
    assert_memory_equal(bytes, w->bytes, size);
    free(bytes);
    unlink(mrt_path("%s", name));
}

static void cut_anywhere(void **state)
{
    (void)state;
    static const uint32_t aligns[] = {0, 64};
    for (int a = 0; a < 2; a++) {
        const whole w = make_whole("cut-whole.mrec", aligns[a]);
        size_t prefix;
        uint8_t *part = make_part(&w, aligns[a], &prefix);
        for (size_t cut = 0; cut <= w.data_end; cut += cut < prefix ? 997 : 53) {
            mrt_write_file(mrt_path("cut.mrec.part"), part, cut);
            resume_and_compare(&w, "cut.mrec", aligns[a], cut >= w.data_end ? COUNT : 0);
        }
        free(part);
        free(w.bytes);
        unlink(mrt_path("cut-whole.mrec"));
    }
}

static void garbage_tails(void **state)
{
    (void)state;
    const whole w = make_whole("tail-whole.mrec", 0);
    size_t prefix;
    uint8_t *part = make_part(&w, 0, &prefix), *buf = malloc(w.size + 8192);
    for (size_t cut = prefix, n = 0; cut <= w.data_end; cut += 211, n++) {
        memcpy(buf, part, cut);
        const size_t tail = 1 + n * 97 % 8000;
        const size_t old = tail < w.data_end - prefix ? tail : w.data_end - prefix;
        /* blocks that a crash left without data, noise, old records */
        if (n % 3 == 0) memset(buf + cut, 0, tail);
        else if (n % 3 == 1) mrt_noise(buf + cut, tail, n);
        else memcpy(buf + cut, part + prefix, old);
        mrt_write_file(mrt_path("tail.mrec.part"), buf, cut + (n % 3 == 2 ? old : tail));
        resume_and_compare(&w, "tail.mrec", 0, 0);
    }
    free(buf);
    free(part);
    free(w.bytes);
}

/* A hole in the middle: the records after it are written again. */
static void damage_inside(void **state)
{
    (void)state;
    const whole w = make_whole("hole-whole.mrec", 0);
    size_t prefix;
    uint8_t *part = make_part(&w, 0, &prefix);
    for (size_t at = prefix; at < w.data_end; at += 131) {
        part[at] ^= 0x40;
        mrt_write_file(mrt_path("hole.mrec.part"), part, w.data_end);
        part[at] ^= 0x40;
        resume_and_compare(&w, "hole.mrec", 0, 0);
    }
    free(part);
    free(w.bytes);
}

/* Stopped between the finished header and the rename. */
static void finished_but_not_renamed(void **state)
{
    (void)state;
    const whole w = make_whole("late-whole.mrec", 0);
    mrt_write_file(mrt_path("late.mrec.part"), w.bytes, w.size);
    resume_and_compare(&w, "late.mrec", 0, COUNT);
    free(w.bytes);
}

static void other_data_is_refused(void **state)
{
    (void)state;
    const char *path = mrt_path("other.mrec");
    mr_writer_config cfg = mrt_writer_config();
    mr_writer *w;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    mrt_append(w, 0, 4);
    mr_writer_abort(w, true);
    size_t before_bytes, after_bytes;
    uint8_t *before = mrt_read_file(mrt_path("other.mrec.part"), &before_bytes);
    cfg.resume = true;
    cfg.provenance = "{\"made\":\"otherwise\"}";
    MRT_EQ(mr_writer_open(&w, path, &cfg, NULL, &err), MR_EEXIST);
    MRT_HAS(err.text, "other fields, classes, provenance or alignment");
    cfg = mrt_writer_config();
    cfg.resume = true;
    cfg.class_count = 2;
    MRT_EQ(mr_writer_open(&w, path, &cfg, NULL, &err), MR_EEXIST);
    uint8_t *after = mrt_read_file(mrt_path("other.mrec.part"), &after_bytes);
    MRT_EQ(before_bytes, after_bytes);
    assert_memory_equal(before, after, before_bytes);
    free(before);
    free(after);
    cfg.resume = false; /* starting over is the way out */
    MRT_OK(mr_writer_open(&w, path, &cfg, NULL, &err), &err);
    mr_writer_abort(w, false);
}

/* A process killed at some moment, several times in a row. */
static void killed_again_and_again(void **state)
{
    (void)state;
    enum { MANY = 30000 };
    mr_writer_config cfg = mrt_writer_config();
    mrt_write_mrec(mrt_path("kill-whole.mrec"), MANY, &cfg);
    cfg.resume = true;
    mr_error err = MR_ERROR_INIT;
    for (int round = 0; round < 6; round++) {
        const pid_t child = fork();
        MRT_TRUE(child >= 0);
        if (child == 0) {
            mr_writer *w;
            if (mr_writer_open(&w, mrt_path("kill.mrec"), &cfg, NULL, NULL) != MR_OK) _exit(1);
            mrt_append(w, mr_writer_count(w), MANY);
            pause(); /* never finished here */
        }
        usleep(10000 + 15000 * (useconds_t)round);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    mr_writer *w;
    MRT_OK(mr_writer_open(&w, mrt_path("kill.mrec"), &cfg, NULL, &err), &err);
    mrt_append(w, mr_writer_count(w), MANY);
    MRT_OK(mr_writer_finish(w, &err), &err);
    size_t a, b;
    uint8_t *x = mrt_read_file(mrt_path("kill.mrec"), &a),
            *y = mrt_read_file(mrt_path("kill-whole.mrec"), &b);
    MRT_EQ(a, b);
    assert_memory_equal(x, y, a);
    free(x);
    free(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_anywhere),          cmocka_unit_test(garbage_tails),
        cmocka_unit_test(damage_inside),         cmocka_unit_test(finished_but_not_renamed),
        cmocka_unit_test(other_data_is_refused), cmocka_unit_test(killed_again_and_again),
    };
    return mrt_run(tests);
}
