/* A custom source: loaders deliver the batches of a record file of the same samples, to the bit; failing
 * samples are named and skipped or end the run; each failed allocation is reported. All of it three times:
 * samples made by the thread that waits for them, begun and given at once, begun and given later by another
 * thread. */
#include <pthread.h>
#include <stdlib.h>

#include "base/util.h"
#include "mrt.h"
#include "tests/pipeline/sets.h"

enum { COUNT = 70, SIDE = 12, TOKENS = 9 };

typedef enum made { FETCHED, BEGUN, LATE } made;

typedef struct maker {
    made kind;
    uint64_t bad;   /* a sample that cannot be made, or MR_NOWHERE */
    int code;       /* what making it returns */
    bool silent;    /* it gives nothing */
    uint64_t calls; /* atomic */
} maker;

static const mr_field fields[] = {{.name = "image", .type = MR_TYPE_IMAGE},
                                  {.name = "label", .type = MR_TYPE_INT},
                                  {.name = "tokens", .type = MR_TYPE_TENSOR, .dtype = MR_I32}};

/* Values of sample i; pixels and tokens are the caller's room. */
static void fill(uint64_t i, uint8_t pixels[SIDE * SIDE * 3], int32_t tokens[TOKENS], mr_value v[3])
{
    const uint64_t height = SIDE - i % 3, width = SIDE - i % 2;
    for (uint64_t k = 0; k < height * width * 3; k++) pixels[k] = (uint8_t)(i * 37 + k * 11);
    for (int32_t k = 0; k < TOKENS; k++) tokens[k] = (int32_t)i + k;
    v[0] = (mr_value){.type = MR_TYPE_PIXELS,
                      .data = pixels,
                      .bytes = (size_t)(height * width * 3),
                      .ndim = 3,
                      .dim = {height, width, 3}};
    v[1] = (mr_value){.type = MR_TYPE_INT, .i = (int64_t)(i % 3)};
    v[2] = (mr_value){.type = MR_TYPE_TENSOR,
                      .dtype = MR_I32,
                      .data = tokens,
                      .bytes = (size_t)(i % TOKENS) * sizeof *tokens,
                      .ndim = 1,
                      .dim = {i % TOKENS}};
}

static int make(void *context, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    maker *m = context;
    uint8_t pixels[SIDE * SIDE * 3];
    int32_t tokens[TOKENS];
    mr_value v[3];
    __atomic_fetch_add(&m->calls, 1, __ATOMIC_RELAXED);
    MRT_TRUE(sample < COUNT);
    if (sample == m->bad && m->code)
        return m->silent ? m->code : mr_error_set(err, m->code, "the program's own words");
    if (sample == m->bad && m->silent) return MR_OK;
    fill(sample, pixels, tokens, v);
    if (sample == m->bad) v[1].i = 3; /* no class */
    return mr_own_sample_give(to, v, err);
}

static int give_at_once(void *context, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    const int rc = make(context, sample, to, err);
    const maker *m = context;
    /* a program that goes on without having given it cannot be found out: it would be waited for */
    return rc == MR_OK && sample == m->bad && m->silent ? MR_EINVAL : rc;
}

/* ---- given by a thread of its own, in another order ---- */
typedef struct waiting {
    maker *maker;
    uint64_t sample;
    mr_own_sample *to;
} waiting;

static struct late {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    waiting list[1024];
    uint32_t count, most, crowd; /* crowd: number of waiting samples before one is given, while that many are
                                  * left */
    uint64_t left;
    bool over;
} late = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int give_later(void *context, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    (void)err;
    pthread_mutex_lock(&late.lock);
    MRT_TRUE(late.count < MRI_ARRAY_COUNT(late.list));
    late.list[late.count++] = (waiting){context, sample, to};
    if (late.count > late.most) late.most = late.count;
    pthread_cond_signal(&late.changed);
    pthread_mutex_unlock(&late.lock);
    return MR_OK;
}

static bool is_enough(void)
{
    const uint64_t crowd = late.crowd < late.left ? late.crowd : late.left;
    return late.count > 0 && late.count >= crowd;
}

static void *give_all(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&late.lock);
    while (!late.over || late.count > 0) {
        if (!is_enough() && !late.over) {
            pthread_cond_wait(&late.changed, &late.lock);
            continue;
        }
        const uint32_t at = late.crowd > 1 ? 0 : late.count - 1; /* a crowd of the newest would hold up the
                                                                    first batch */
        const waiting w = late.list[at];
        memmove(late.list + at, late.list + at + 1, (--late.count - at) * sizeof w);
        if (late.left > 0) late.left--;
        pthread_mutex_unlock(&late.lock);
        mr_error err = MR_ERROR_INIT;
        /* what could not be given has failed with that, and w.to is gone; else nothing was given */
        const bool given = w.sample != w.maker->bad || (!w.maker->code && !w.maker->silent);
        const int rc = make(w.maker, w.sample, w.to, &err);
        if (!given) mr_own_sample_fail(w.to, rc, &err);
        pthread_mutex_lock(&late.lock);
    }
    pthread_mutex_unlock(&late.lock);
    return NULL;
}

static pthread_t giver;

static void begin_giving(uint32_t crowd, uint64_t left)
{
    late.crowd = crowd;
    late.left = left;
    late.most = 0;
    late.over = false;
    MRT_EQ(pthread_create(&giver, NULL, give_all, NULL), 0);
}

static void end_giving(void)
{
    pthread_mutex_lock(&late.lock);
    late.over = true;
    pthread_cond_signal(&late.changed);
    pthread_mutex_unlock(&late.lock);
    MRT_EQ(pthread_join(giver, NULL), 0);
}

static const char *const names[] = {"a", "b", "c"};

static mr_own_config made_by(maker *m)
{
    mr_own_config cfg;
    mr_own_defaults(&cfg);
    cfg.count = COUNT;
    cfg.field_count = 3;
    cfg.fields = fields;
    cfg.class_count = 3;
    cfg.class_names = names;
    if (m->kind == FETCHED) cfg.fetch = make;
    else cfg.begin = m->kind == BEGUN ? give_at_once : give_later;
    cfg.context = m;
    return cfg;
}

static mr_source *own_source(maker *m)
{
    mr_error err = MR_ERROR_INIT;
    const mr_own_config cfg = made_by(m);
    mr_source *src;
    MRT_OK(mr_source_create(&src, &cfg, &err), &err);
    return src;
}

static mr_source *written(void)
{
    mr_writer *w = mrt_writer("same", fields, 3, 3);
    mr_error err = MR_ERROR_INIT;
    for (uint64_t i = 0; i < COUNT; i++) {
        uint8_t pixels[SIDE * SIDE * 3];
        int32_t tokens[TOKENS];
        mr_value v[3];
        fill(i, pixels, tokens, v);
        MRT_OK(mr_writer_append(w, i, v, &err), &err);
    }
    return mrt_written(w, "same");
}

static const mr_loader_field tokens_too = {.name = "tokens", .most = TOKENS};

static void the_same_as_a_file(made kind)
{
    maker m = {.kind = kind, .bad = MR_NOWHERE};
    mr_source *own = own_source(&m), *file = written();
    const mr_source_info *info = mr_source_info_of(own);
    MRT_TRUE(info->count == COUNT && info->class_count == 3 && info->field_count == 3 &&
             info->image_field == 0);
    MRT_EQ(strcmp(info->class_names[2], "c"), 0);
    MRT_EQ(m.calls, 0);
    const mr_loader_config usual = mrt_training(16, 2, "rrc(8),flip", &tokens_too, 1);
    const mr_digest expected = mrt_digest(file, &usual, NULL, NULL);
    for (int k = 0; k < 6; k++) {
        mr_loader_config cfg = usual;
        if (k == 1) cfg.workers = 7;
        if (k == 2) cfg.prefetch = 0;
        if (k == 3) cfg.parts = 3;
        if (k == 4) cfg.io = MR_IO_PREAD, cfg.direct = true;
        if (k == 5) cfg.no_checks = true, cfg.tune = MR_TUNE_ALL;
        MRT_TRUE(mrt_same_batches(expected, mrt_digest(own, &cfg, NULL, NULL)));
    }
    for (uint32_t readers = 1; readers < 4; readers++) {
        mr_loader_config cfg = usual;
        cfg.readers = readers;
        cfg.depth = 1 + readers * readers;
        MRT_TRUE(mrt_same_batches(expected, mrt_digest(own, &cfg, NULL, NULL)));
    }
    mr_loader_config cached = mrt_training(16, 3, "rrc(8),flip", NULL, 0);
    const mr_digest plain = mrt_digest(file, &cached, NULL, NULL);
    cached.cache = MR_CACHE_MEMORY;
    cached.cache_bytes = MR_CACHE_FITS;
    m.calls = 0;
    MRT_TRUE(mrt_same_batches(plain, mrt_digest(own, &cached, NULL, NULL)));
    MRT_TRUE(m.calls >= COUNT && m.calls < 2 * COUNT); /* not again in later epochs */
    cached.cache = MR_CACHE_DISK;
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", mrt_path("cache%d", kind));
    cached.cache_folder = folder;
    MRT_TRUE(mrt_same_batches(plain, mrt_digest(own, &cached, NULL, NULL)));
    MRT_TRUE(mrt_same_batches(plain, mrt_digest(own, &cached, NULL, NULL)));
    mr_source_close(own);
    mr_source_close(file);
}

static void it_is_read_and_converted(made kind)
{
    maker m = {.kind = kind, .bad = MR_NOWHERE};
    mr_source *own = own_source(&m), *file = written(), *copy;
    void *buffer = NULL;
    size_t room = 0;
    mr_error err = MR_ERROR_INIT;
    mr_sample sample;
    int64_t label;
    MRT_OK(mr_source_read(own, 68, &buffer, &room, &sample, &err), &err);
    MRT_TRUE(sample.value[1].i == 68 % 3 && sample.value[2].dim[0] == 68 % TOKENS);
    MRT_EQ(mr_source_read(own, COUNT, &buffer, &room, &sample, &err), MR_EINVAL);
    MRT_EQ(mr_source_label(own, 0, &label), MR_EUNSUPPORTED);
    free(buffer);
    mr_convert_config cfg;
    mr_convert_defaults(&cfg);
    cfg.force = true;
    MRT_OK(mr_convert(own, mrt_path("converted.mrec"), &cfg, NULL, &err), &err);
    copy = mrt_source(mrt_path("converted.mrec"));
    const mr_loader_config usual = mrt_training(16, 1, "rrc(8)", &tokens_too, 1);
    MRT_TRUE(mrt_same_batches(mrt_digest(file, &usual, NULL, NULL), mrt_digest(copy, &usual, NULL, NULL)));
    mr_source_close(copy);
    mr_source_close(own);
    mr_source_close(file);
}

static int run(maker *m, mr_bad bad, mr_error *err, uint64_t *came)
{
    mr_source *own = own_source(m);
    mr_loader_config cfg = mrt_training(16, 1, "rrc(8)", NULL, 0);
    cfg.bad = bad;
    mr_loader *l;
    mr_batch b;
    MRT_OK(mr_loader_open(&l, own, &cfg, err), err);
    int rc;
    for (*came = 0; (rc = mr_loader_next(l, &b, MR_FOREVER, err)) == MR_OK;) {
        for (uint32_t i = 0; i < b.count; i++) {
            *came += b.labels[i] >= 0;
            if (b.labels[i] >= 0) MRT_EQ(b.ids[i] == m->bad, bad == MR_BAD_REPLACE && b.ids[i] == m->bad);
        }
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    mr_loader_close(l);
    mr_source_close(own);
    return rc;
}

static void failures_are_told(made kind)
{
    static const struct {
        int code;
        bool silent, of_sample;
        const char *text;
    } cases[] = {{MR_EFORMAT, false, true, "the program's own words"},
                 {MR_EFORMAT, true, true, "did not say why"},
                 {MR_OK, false, true, "label 3 is outside the 3 classes"},
                 {MR_EIO, false, false, "the program's own words"},
                 {MR_ECANCELED, false, false, "the program's own words"},
                 {MR_OK, true, false, "gave none"},
                 {5, true, false, "samples returned 5: expected MR_OK or the code of an error"},
                 {MR_EEND, true, false, "samples returned -1"},
                 {MR_EAGAIN, true, false, "samples returned -2"}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(cases); k++) {
        maker m = {.kind = kind, .bad = 41, .code = cases[k].code, .silent = cases[k].silent};
        if (kind != FETCHED && cases[k].silent && !cases[k].of_sample)
            continue; /* another text reports it, or it is waited for */
        const bool is_error = cases[k].code < MR_EAGAIN;
        const int code = is_error ? cases[k].code : cases[k].of_sample ? MR_EFORMAT : MR_EINVAL;
        mr_error err = MR_ERROR_INIT;
        uint64_t came;
        MRT_EQ(run(&m, MR_BAD_STOP, &err, &came), cases[k].of_sample ? MR_EBADSAMPLE : code);
        MRT_HAS(err.text, cases[k].text);
        if (cases[k].code != MR_OK) MRT_EQ(err.host, cases[k].code);
        MRT_EQ(err.sample, 41);
        MRT_EQ(run(&m, MR_BAD_SKIP, &err, &came), cases[k].of_sample ? MR_EEND : code);
        if (cases[k].of_sample) MRT_EQ(came, COUNT - 1);
        MRT_EQ(run(&m, MR_BAD_REPLACE, &err, &came), cases[k].of_sample ? MR_EEND : code);
        if (cases[k].of_sample) MRT_EQ(came, COUNT);
    }
}

static void create_refused(const mr_own_config *cfg, const char *text)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src = (mr_source *)(uintptr_t)8;
    MRT_EQ(mr_source_create(&src, cfg, &err), MR_EINVAL);
    MRT_TRUE(src == NULL);
    MRT_HAS(err.text, text);
}

static void settings_that_cannot_be(void **state)
{
    (void)state;
    maker m = {.bad = MR_NOWHERE};
    const mr_own_config usual = made_by(&m);
    mr_own_config cfg = usual;
    const mr_field twice[] = {fields[1], fields[1]};
    cfg.fetch = NULL;
    create_refused(&cfg, "set fetch");
    cfg = usual, cfg.sample_bytes_most = 0;
    create_refused(&cfg, "expected 1 to 2 GiB");
    cfg = usual, cfg.field_count = 0;
    create_refused(&cfg, "expected 1 to 32 fields");
    cfg = usual, cfg.fields = twice, cfg.field_count = 2;
    create_refused(&cfg, "two fields are named");
    cfg = usual, cfg.sample_bytes_most = 200;
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    void *buffer = NULL;
    size_t room = 0;
    mr_sample sample;
    MRT_OK(mr_source_create(&src, &cfg, &err), &err);
    MRT_EQ(mr_source_read(src, 0, &buffer, &room, &sample, &err), MR_ELIMIT);
    MRT_HAS(err.text, "larger than the 200 bytes");
    free(buffer);
    mr_source_close(src);
    cfg = usual, cfg.count = 0;
    MRT_OK(mr_source_create(&src, &cfg, &err), &err);
    mr_loader_config loader = mrt_training(16, 1, "rrc(8)", NULL, 0);
    mrt_refused(src, &loader, MR_EINVAL, "holds no samples");
    mr_source_close(src);
}

/* What 64 workers may come to hold follows from the limits that the program gives. */
static void small_limits_need_little_memory(void **state)
{
    (void)state;
    maker m = {.bad = MR_NOWHERE};
    mr_own_config cfg = made_by(&m);
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    mr_loader *l;
    cfg.sample_bytes_most = 4096;
    MRT_OK(mr_source_create(&src, &cfg, &err), &err);
    mr_loader_config loader = mrt_training(16, 1, "rrc(8)", NULL, 0);
    loader.workers = 64;
    loader.decode.max_pixels = 4096;
    MRT_OK(mr_loader_open(&l, src, &loader, &err), &err);
    print_message("64 workers: %.1f MiB\n", (double)mr_loader_info_of(l)->memory_bytes / 1048576);
    MRT_TRUE(mr_loader_info_of(l)->memory_bytes < (uint64_t)64 * 6 << 20);
    mr_loader_close(l);
    mr_source_close(src);
}

static void no_memory_is_told(void **state)
{
    (void)state;
    maker m = {.bad = MR_NOWHERE};
    const mr_own_config cfg = made_by(&m);
    for (int n = 0;; n++) {
        mr_error err = MR_ERROR_INIT;
        mr_source *src = (mr_source *)(uintptr_t)8;
        void *buffer = NULL;
        size_t room = 0;
        mr_sample sample;
        mrt_fail_alloc_at(n);
        int rc = mr_source_create(&src, &cfg, &err);
        if (rc == MR_OK) rc = mr_source_read(src, 3, &buffer, &room, &sample, &err);
        mrt_fail_alloc_at(-1);
        mr_source_close(src);
        free(buffer);
        if (rc == MR_OK) break;
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(n < 40);
    }
}

static void as_fetched(void **state)
{
    (void)state;
    the_same_as_a_file(FETCHED);
    it_is_read_and_converted(FETCHED);
    failures_are_told(FETCHED);
}

static void as_begun(void **state)
{
    (void)state;
    the_same_as_a_file(BEGUN);
    it_is_read_and_converted(BEGUN);
    failures_are_told(BEGUN);
}

static void as_begun_and_given_later(void **state)
{
    (void)state;
    begin_giving(1, 0);
    the_same_as_a_file(LATE);
    it_is_read_and_converted(LATE);
    failures_are_told(LATE);
    end_giving();
}

/* Nothing is given before eight wait: one thread begins them all, and no more than depth. */
static void many_wait_at_a_time(void **state)
{
    (void)state;
    enum { DEPTH = 8 };
    maker m = {.kind = LATE, .bad = MR_NOWHERE};
    mr_source *own = own_source(&m);
    mr_loader_config cfg = mrt_training(COUNT / 7, 1, "rrc(8)", NULL, 0);
    cfg.readers = 1;
    cfg.depth = DEPTH;
    cfg.workers = 1;
    begin_giving(DEPTH, COUNT);
    mrt_digest(own, &cfg, NULL, NULL);
    end_giving();
    MRT_EQ(late.most, DEPTH);
    mr_source_close(own);
}

/* Closed and stopped while samples are on their way: all of them come first. */
static void closed_while_some_are_on_their_way(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        maker m = {.kind = LATE, .bad = MR_NOWHERE};
        mr_source *own = own_source(&m);
        mr_loader_config cfg = mrt_training(16, MR_FOREVER, "rrc(8)", NULL, 0);
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        mr_batch b;
        cfg.readers = 1 + k % 2;
        begin_giving(4, UINT64_MAX);
        MRT_OK(mr_loader_open(&l, own, &cfg, &err), &err);
        MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
        if (k > 1) mr_loader_stop(l);
        pthread_mutex_lock(&late.lock);
        late.crowd = 1;
        pthread_cond_signal(&late.changed);
        pthread_mutex_unlock(&late.lock);
        mr_loader_close(l);
        MRT_EQ(late.count, 0);
        end_giving();
        mr_source_close(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_fetched),
        cmocka_unit_test(as_begun),
        cmocka_unit_test(as_begun_and_given_later),
        cmocka_unit_test(many_wait_at_a_time),
        cmocka_unit_test(closed_while_some_are_on_their_way),
        cmocka_unit_test(settings_that_cannot_be),
        cmocka_unit_test(small_limits_need_little_memory),
        cmocka_unit_test(no_memory_is_told),
    };
    return mrt_run(tests);
}
