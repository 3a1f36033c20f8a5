/* A source of the program's own: loaders deliver what a record file of the same samples gives, to the bit;
 * samples that fail are named and passed over or end the run; each allocation that fails is told. */
#include <stdlib.h>

#include "base/util.h"
#include "mrt.h"
#include "tests/pipeline/sets.h"

enum { COUNT = 70, SIDE = 12, TOKENS = 9 };

typedef struct maker {
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
    cfg.fetch = make;
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

static void the_same_as_a_file(void **state)
{
    (void)state;
    maker m = {.bad = MR_NOWHERE};
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
        MRT_TRUE(mrt_same(expected, mrt_digest(own, &cfg, NULL, NULL)));
    }
    mr_loader_config cached = mrt_training(16, 3, "rrc(8),flip", NULL, 0);
    const mr_digest plain = mrt_digest(file, &cached, NULL, NULL);
    cached.cache = MR_CACHE_MEMORY;
    cached.cache_bytes = MR_CACHE_FITS;
    m.calls = 0;
    MRT_TRUE(mrt_same(plain, mrt_digest(own, &cached, NULL, NULL)));
    MRT_TRUE(m.calls >= COUNT && m.calls < 2 * COUNT); /* not again in later epochs */
    mr_source_close(own);
    mr_source_close(file);
}

static void it_is_read_and_converted(void **state)
{
    (void)state;
    maker m = {.bad = MR_NOWHERE};
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
    MRT_TRUE(mrt_same(mrt_digest(file, &usual, NULL, NULL), mrt_digest(copy, &usual, NULL, NULL)));
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

static void failures_are_told(void **state)
{
    (void)state;
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
        maker m = {.bad = 41, .code = cases[k].code, .silent = cases[k].silent};
        const bool is_error = cases[k].code < MR_EAGAIN;
        const int code = is_error ? cases[k].code : cases[k].of_sample ? MR_EFORMAT : MR_EINVAL;
        mr_error err = MR_ERROR_INIT;
        uint64_t came;
        MRT_EQ(run(&m, MR_BAD_STOP, &err, &came), cases[k].of_sample ? MR_EBADSAMPLE : code);
        MRT_HAS(err.text, cases[k].text);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_as_a_file), cmocka_unit_test(it_is_read_and_converted),
        cmocka_unit_test(failures_are_told),  cmocka_unit_test(settings_that_cannot_be),
        cmocka_unit_test(no_memory_is_told),
    };
    return mrt_run(tests);
}
