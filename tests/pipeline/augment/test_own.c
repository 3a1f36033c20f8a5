/* Custom operations in the augmentation language: how they are named and written, the arguments of their
 * function, that batches depend on its draws and on no thread, stop or neighbour, and how errors are
 * reported. */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "mrt.h"
#include "pipeline/augment/frame.h"
#include "tests/pipeline/sets.h"

enum { COUNT = 60, SIDE = 12 };

/* ---- functions ---- */

/* Each byte plus a word of the draws, and the first argument. */
static int noise(void *context, const mr_own_picture *p, uint8_t *pixels, mr_error *err)
{
    (void)err;
    uint64_t *calls = context;
    if (calls) __atomic_fetch_add(calls, 1, __ATOMIC_RELAXED);
    const size_t bytes = (size_t)p->height * p->width * p->channels;
    for (size_t k = 0; k < bytes; k++)
        pixels[k] = (uint8_t)(pixels[k] + mr_own_draw(p, k) + (uint32_t)p->arguments[0]);
    return MR_OK;
}

/* All bytes become the context's. */
static int fill(void *context, const mr_own_picture *p, uint8_t *pixels, mr_error *err)
{
    (void)err;
    memset(pixels, *(const uint8_t *)context, (size_t)p->height * p->width * p->channels);
    return MR_OK;
}

/* The first pixel of the picture as it is seen. */
static int mark(void *context, const mr_own_picture *p, uint8_t *pixels, mr_error *err)
{
    (void)context, (void)err;
    memset(pixels, 255, p->channels);
    return MR_OK;
}

static mr_own_operation named(const char *name, mr_own_change *change, void *context)
{
    return (mr_own_operation){.name = name, .change = change, .context = context, .arguments_most = 8};
}

/* ---- names and arguments ---- */

static void text_is(const mr_own_operation *ops, uint32_t count, const char *spec, const char *text)
{
    for (int training = 0; training < 2; training++) {
        mr_augment *a, *again;
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mr_augment_create_own(&a, spec, training, ops, count, &err), &err);
        MRT_STR(mr_augment_text(a), text);
        MRT_OK(mr_augment_create_own(&again, text, training, ops, count, &err), &err);
        MRT_STR(mr_augment_text(again), text);
        mr_augment_destroy(again);
        mr_augment_destroy(a);
    }
}

static void error_is(const mr_own_operation *ops, uint32_t count, const char *spec, const char *part)
{
    mr_augment *a = (mr_augment *)(uintptr_t)8;
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_augment_create_own(&a, spec, true, ops, count, &err), MR_EINVAL);
    MRT_TRUE(a == NULL);
    MRT_HAS(err.text, part);
}

static void how_they_are_written(void **state)
{
    (void)state;
    mr_own_operation ops[] = {named("any", noise, NULL), named("none_taken", noise, NULL),
                              named("one_to_3", noise, NULL), named("two", noise, NULL)};
    ops[1].arguments_most = 0;
    ops[2].arguments_least = 1, ops[2].arguments_most = 3;
    ops[3].arguments_least = ops[3].arguments_most = 2;
    text_is(ops, 4, "any", "any");
    text_is(ops, 4, "resize(8x8), any( -.50 , 2/3,00 ) ,flip", "resize(8x8),any(-0.5,2/3,0),flip");
    text_is(ops, 4, "any(-0,1,2,3,4,5,6,-7.25)", "any(0,1,2,3,4,5,6,-7.25)");
    text_is(ops, 4, "none_taken,one_to_3(1),one_to_3(1,2,3)", "none_taken,one_to_3(1),one_to_3(1,2,3)");
    error_is(ops, 4, "any()", "expected a number: any or any(A[,B[,C[,D[,E[,F[,G[,H]]]]]]])");
    error_is(ops, 4, "any(1,2,3,4,5,6,7,8,9)", "character 21, \"9\": expected any");
    error_is(ops, 4, "any(1:2)", "expected any");
    error_is(ops, 4, "any(--1)", "expected a number");
    error_is(ops, 4, "any(1e3)", "expected any");
    error_is(ops, 4, "flip,none_taken(1)", "character 6, \"none_taken(1\": expected none_taken");
    error_is(ops, 4, "one_to_3", "expected one_to_3(A[,B[,C]])");
    error_is(ops, 4, "one_to_3(1,2,3,4)", "expected one_to_3(A[,B[,C]])");
    error_is(ops, 4, "two(1)", "expected two(A,B)");
    error_is(ops, 4, "standardise,any", "comes after everything that changes pixels");
    error_is(ops, 4, "mixup(1),any", "come after everything that is done to one picture");
    error_is(ops, 4, "other(3)",
             "character 1, \"other(3\": unknown; the program's own operations are any, none_taken, one_to_3, "
             "two, others rrc, ");
    error_is(ops, 4, "other(3)", "presets none, rrc224");
    error_is(NULL, 0, "any(3)", "a program's own are known to it alone");
}

static void names_that_cannot_be(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "3d",    "_x",         "Noise",
                                      "a b", "my-op", "n\xc3\xa4h", "a1234567890123456789012345678901"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(bad); k++) {
        const mr_own_operation op = named(bad[k], noise, NULL);
        error_is(&op, 1, "none", "expected a name of a-z, 0-9 and _, a letter first, at most 31 characters");
    }
    mr_own_operation op = named(NULL, noise, NULL);
    error_is(&op, 1, "none", "expected a name");
    op = named("flip", noise, NULL);
    error_is(&op, 1, "flip", "operation flip of the program's own: there is an operation of that name");
    op = named("rrc224", noise, NULL);
    error_is(&op, 1, "none", "operation rrc224 of the program's own: there is a preset of that name");
    const mr_own_operation twice[] = {named("a", noise, NULL), named("b", noise, NULL),
                                      named("a", mark, NULL)};
    error_is(twice, 3, "none", "operation a of the program's own: it comes twice");
    op = named("a", NULL, NULL);
    error_is(&op, 1, "none", "operation a of the program's own has no function");
    op = named("a", noise, NULL), op.arguments_most = 9;
    error_is(&op, 1, "none", "from 0 to 9 arguments; expected least <= most <= 8");
    op = named("a", noise, NULL), op.arguments_least = 3, op.arguments_most = 2;
    error_is(&op, 1, "none", "from 3 to 2 arguments");
    error_is(NULL, 1, "none", "1 operations of the program's own, and no list");
    const mr_own_operation longest = named("a123456789012345678901234567890", noise, NULL);
    text_is(&longest, 1, "a123456789012345678901234567890", "a123456789012345678901234567890");
    const mri_op_type *type; /* as promised, none of the language's has a _ */
    for (size_t k = 0; (type = mri_op_type_at(k)) != NULL; k++) MRT_TRUE(!strchr(type->name, '_'));
}

/* ---- arguments of the function ---- */

typedef struct reported {
    mr_own_picture seen[2]; /* of the operation's places */
    uint32_t calls;
} reported;

static int tell(void *context, const mr_own_picture *p, uint8_t *pixels, mr_error *err)
{
    reported *t = context;
    (void)err;
    MRT_TRUE(t->calls < 2 && pixels);
    t->seen[t->calls++] = *p;
    return MR_OK;
}

/* One picture through a specification. */
static void run(const mr_own_operation *op, const char *spec, bool training, mri_sample_key key, uint32_t out)
{
    uint8_t pixels[3 * SIDE * (SIDE - 2)], dst[3 * SIDE * SIDE];
    memset(pixels, 9, sizeof pixels);
    const mr_value v = {.type = MR_TYPE_PIXELS,
                        .ndim = 3,
                        .dim = {SIDE - 2, SIDE, 3},
                        .data = pixels,
                        .bytes = sizeof pixels};
    mr_decode_config cfg;
    mr_decode_defaults(&cfg);
    mr_augment *a;
    mri_scratch *s;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mr_augment_create_own(&a, spec, training, op, 1, &err), &err);
    MRT_EQ(mri_scratch_create(&s), MR_OK);
    MRT_OK(mri_augment_run(a, s, &v, &cfg, 3, key, out, out, dst, NULL, NULL, NULL, &err), &err);
    mri_scratch_destroy(s);
    mr_augment_destroy(a);
}

static void what_it_is_told(void **state)
{
    (void)state;
    reported t = {.calls = 0};
    const mr_own_operation op = named("tell_me", tell, &t);
    const mri_sample_key key = {5, 6, 7};
    run(&op, "tell_me(3,-0.5),flip,resize(4x4),tell_me", true, key, 4);
    MRT_EQ(t.calls, 2);
    const mr_own_picture *p = &t.seen[0], *q = &t.seen[1];
    MRT_TRUE(p->struct_size == sizeof *p && p->sample == 7 && p->training);
    MRT_TRUE(p->height == SIDE - 2 && p->width == SIDE && p->channels == 3);
    MRT_TRUE(q->height == 4 && q->width == 4 && q->argument_count == 0);
    MRT_EQ(p->argument_count, 2);
    assert_true(p->arguments[0] == 3.0 && p->arguments[1] == -0.5 && p->arguments[2] == 0.0);
    /* the draws: philox of a key that the operation's place has drawn */
    for (uint32_t k = 0; k < 2; k++) {
        const mri_philox d = mri_draw(key, k ? 3 : 0, 0);
        MRT_TRUE(t.seen[k].key == (d.v[0] | (uint64_t)d.v[1] << 32));
        for (uint32_t n = 0; n < 200; n++) {
            const uint32_t word = mri_philox4x32(t.seen[k].key, n / 4, 0).v[n % 4];
            MRT_EQ(mr_own_draw(&t.seen[k], n), word);
            if (n < MR_OWN_DRAWS) MRT_EQ(t.seen[k].draws[n], word);
        }
    }
    for (int part = 0; part < 3; part++) { /* each of the three enters */
        const mri_sample_key other = {key.seed + (part == 0), key.epoch + (part == 1),
                                      key.sample + (part == 2)};
        reported u = {.calls = 0};
        const mr_own_operation same = named("tell_me", tell, &u);
        run(&same, "tell_me,resize(4x4)", true, other, 4);
        MRT_TRUE(u.seen[0].key != p->key && u.seen[0].draws[0] != p->draws[0]);
    }
}

static void in_evaluation(void **state)
{
    (void)state;
    reported t = {.calls = 0};
    mr_own_operation op = named("tell_me", tell, &t);
    run(&op, "tell_me,resize(4x4)", false, (mri_sample_key){0, 0, 0}, 4);
    MRT_EQ(t.calls, 0);
    op.in_evaluation = true;
    run(&op, "flip,tell_me,resize(4x4)", false, (mri_sample_key){0, 0, 3}, 4);
    MRT_TRUE(t.calls == 1 && !t.seen[0].training);
    MRT_EQ(t.seen[0].key, mri_draw((mri_sample_key){0, 0, 3}, 1, 0).v[0] |
                              (uint64_t)mri_draw((mri_sample_key){0, 0, 3}, 1, 0).v[1] << 32);
}

/* ---- in a loader ---- */

static mr_loader_config with(const mr_own_operation *op, const char *spec)
{
    mr_loader_config cfg = mrt_training(16, 2, spec, NULL, 0);
    cfg.operations = op;
    cfg.operation_count = 1;
    return cfg;
}

/* No setting of threads, memory or parts changes a bit; seed, argument and place do. */
static void the_same_whoever_runs_it(void **state)
{
    (void)state;
    mrt_folder_set("noisy", 2, COUNT / 2, 16, true);
    mr_source *src = mrt_source(mrt_path("noisy"));
    uint64_t calls = 0, samples;
    const mr_own_operation op = named("my_noise", noise, &calls);
    const mr_loader_config usual = with(&op, "rrc(8),my_noise(3),flip,my_noise");
    const mr_digest expected = mrt_digest(src, &usual, NULL, &samples);
    MRT_TRUE(samples == 2 * COUNT && calls == 2 * samples);
    for (int k = 0; k < 8; k++) {
        mr_loader_config cfg = usual;
        if (k == 0) cfg.workers = 1;
        if (k == 1) cfg.workers = 5;
        if (k == 2) cfg.prefetch = 0;
        if (k == 3) cfg.parts = 4;
        if (k == 4) cfg.resident_bytes = 0, cfg.io = MR_IO_PREAD, cfg.readers = 3;
        if (k == 5) cfg.cache = MR_CACHE_MEMORY, cfg.cache_bytes = MR_CACHE_FITS;
        if (k == 6) cfg.augment = "rrc(8),my_noise(3),flip,my_noise(0)";
        if (k == 7) cfg.tune = MR_TUNE_ALL;
        MRT_TRUE(mrt_same_batches(expected, mrt_digest(src, &cfg, NULL, NULL)));
    }
    static const char *const others[] = {"rrc(8),my_noise(4),flip,my_noise",
                                         "rrc(8),flip,my_noise(3),my_noise", "rrc(8),my_noise(3),flip",
                                         "rrc(8),flip"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(others); k++) {
        const mr_loader_config cfg = with(&op, others[k]);
        MRT_TRUE(!mrt_same_batches(expected, mrt_digest(src, &cfg, NULL, NULL)));
    }
    mr_loader_config cfg = usual;
    cfg.seed++;
    MRT_TRUE(!mrt_same_batches(expected, mrt_digest(src, &cfg, NULL, NULL)));
    cfg = usual, cfg.training = false, calls = 0;
    mr_loader_config plain = usual;
    plain.training = false, plain.augment = "rrc(8)", plain.operation_count = 0;
    MRT_TRUE(mrt_same_batches(mrt_digest(src, &plain, NULL, NULL), mrt_digest(src, &cfg, NULL, NULL)));
    MRT_EQ(calls, 0);
    mr_source_close(src);
}

/* Stopped at any batch, a run goes on with the same pixels. */
static void resumed_at_any_batch(void **state)
{
    (void)state;
    mrt_folder_set("resumed", 2, COUNT / 2, 16, false);
    mr_source *src = mrt_source(mrt_path("resumed"));
    const mr_own_operation op = named("my_noise", noise, NULL);
    mr_loader_config usual = with(&op, "padcrop(2),my_noise");
    for (uint64_t at = 1; at < 8; at += 3) {
        mr_error err = MR_ERROR_INIT;
        mr_digester *d;
        MRT_EQ(mr_digester_create(&d), MR_OK);
        for (int part = 0; part < 2; part++) {
            mr_loader_config cfg = usual;
            mr_loader *l;
            uint64_t batches, samples;
            if (part) cfg.start_epoch = at / 4, cfg.start_step = at % 4;
            MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
            MRT_OK(mr_digester_run(d, l, NULL, part ? UINT64_MAX : at, &batches, &samples, &err), &err);
            MRT_EQ(batches, part ? 8 - at : at);
            mr_loader_close(l);
        }
        MRT_TRUE(mrt_same_batches(mrt_digest(src, &usual, NULL, NULL), mr_digester_result(d)));
        mr_digester_destroy(d);
    }
    mr_source_close(src);
}

/* Several loaders at once, each with a function of its own under the same name; the list may go. */
static void one_name_in_several_loaders(void **state)
{
    (void)state;
    enum { LOADERS = 3 };
    mr_source *src = mrt_source(mrt_idx_set("several", COUNT, SIDE, SIDE));
    mr_loader *l[LOADERS];
    uint8_t value[LOADERS] = {3, 77, 200};
    mr_error err = MR_ERROR_INIT;
    for (int k = 0; k < LOADERS; k++) {
        char name[] = "my_fill";
        mr_own_operation op = named(name, fill, &value[k]);
        const mr_loader_config cfg = with(&op, "my_fill");
        MRT_OK(mr_loader_open(&l[k], src, &cfg, &err), &err);
        memset(name, 'x', sizeof name - 1);
        memset(&op, 0, sizeof op);
    }
    for (int step = 0; step < 8; step++)
        for (int k = 0; k < LOADERS; k++) {
            mr_batch b;
            MRT_OK(mr_loader_next(l[k], &b, MR_FOREVER, &err), &err);
            for (size_t n = 0; n < (size_t)b.count * SIDE * SIDE; n++) MRT_EQ(b.pixels[n], value[k]);
            MRT_OK(mr_loader_release(l[k], &b, NULL), NULL);
        }
    for (int k = 0; k < LOADERS; k++) {
        MRT_STR(mr_loader_info_of(l[k])->augment, "my_fill");
        mr_loader_close(l[k]);
    }
    mr_source_close(src);
}

/* Which pixels of a first row are 255, as the bits of a number. */
static void first_rows(const mr_source *src, const mr_own_operation *op, const char *spec, uint32_t *out)
{
    mr_loader_config cfg = with(op, spec);
    cfg.order = MR_ORDER_SEQUENTIAL, cfg.epochs = 1, cfg.batch = COUNT;
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    mr_batch b;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    MRT_OK(mr_loader_next(l, &b, MR_FOREVER, &err), &err);
    for (uint32_t i = 0; i < COUNT; i++) {
        out[i] = 0;
        for (uint32_t x = 0; x < SIDE; x++)
            out[i] |= (uint32_t)(b.pixels[(size_t)i * SIDE * SIDE + x] == 255) << x;
    }
    MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    mr_loader_close(l);
}

/* It sees the picture after all flips before it, and before any flip after it. */
static void it_sees_the_picture_upright(void **state)
{
    (void)state;
    const mr_own_operation op = named("my_mark", mark, NULL);
    uint32_t behind[COUNT], before[COUNT], flipped = 0;
    mr_source *src = mrt_source(mrt_idx_set("upright", COUNT, SIDE, SIDE));
    first_rows(src, &op, "posterize(1,1),flip,my_mark", behind);
    first_rows(src, &op, "posterize(1,1),my_mark,flip", before);
    for (uint32_t i = 0; i < COUNT; i++) {
        MRT_EQ(behind[i], 1); /* posterized pixels are 0 or 128 */
        MRT_TRUE(before[i] == 1 || before[i] == 1u << (SIDE - 1));
        flipped += before[i] != 1;
    }
    MRT_TRUE(flipped > COUNT / 5 && flipped < COUNT * 4 / 5);
    mr_source_close(src);
}

/* ---- errors ---- */

typedef struct failing {
    uint64_t sample;
    int code, sys_errno;
    bool silent;
} failing;

static int fails(void *context, const mr_own_picture *p, uint8_t *pixels, mr_error *err)
{
    const failing *f = context;
    (void)pixels;
    if (p->sample != f->sample) return MR_OK;
    if (f->silent) return f->code;
    mr_error_set(err, f->code, "the program's own words");
    err->sys_errno = f->sys_errno;
    return f->code;
}

static int run_all(const mr_source *src, const mr_loader_config *cfg, mr_error *err, uint64_t *came)
{
    mr_loader *l;
    mr_batch b;
    MRT_OK(mr_loader_open(&l, src, cfg, err), err);
    int rc;
    for (*came = 0; (rc = mr_loader_next(l, &b, MR_FOREVER, err)) == MR_OK;) {
        for (uint32_t i = 0; i < b.count; i++) *came += b.labels[i] >= 0;
        MRT_OK(mr_loader_release(l, &b, NULL), NULL);
    }
    mr_loader_close(l);
    return rc;
}

static void failures_are_told(void **state)
{
    (void)state;
    static const struct {
        failing how;
        int code;
        bool of_sample;
        const char *text;
    } cases[] = {
        {{17, MR_EFORMAT, 0, false}, MR_EBADSAMPLE, true, "operation my_fail: the program's own words"},
        {{17, MR_EFORMAT, 0, true}, MR_EBADSAMPLE, true, "operation my_fail failed, and did not say why"},
        {{17, MR_ELIMIT, 0, false}, MR_EBADSAMPLE, true, "operation my_fail: the program's own words"},
        {{17, MR_ELIMIT, ENOMEM, false}, MR_ELIMIT, false, "operation my_fail: the program's own words"},
        {{17, MR_EINVAL, 0, false}, MR_EINVAL, false, "operation my_fail: the program's own words"},
        {{17, MR_EPEER, 0, true}, MR_EPEER, false, "operation my_fail failed, and did not say why"},
        {{17, 4, 0, false}, MR_EINVAL, false, "operation my_fail returned 4: expected MR_OK or the code of"},
        {{17, MR_EEND, 0, false}, MR_EINVAL, false, "operation my_fail returned -1"},
    };
    mrt_folder_set("failing", 1, COUNT, 16, false);
    mr_source *src = mrt_source(mrt_path("failing"));
    for (size_t k = 0; k < 4 * MRI_ARRAY_COUNT(cases); k++) {
        failing how = cases[k / 4].how;
        const mr_own_operation op = named("my_fail", fails, &how);
        mr_loader_config cfg = with(&op, "my_fail,resize(8x8)");
        cfg.epochs = 1;
        cfg.bad = k % 2 ? MR_BAD_SKIP : MR_BAD_STOP;
        if (k % 4 > 1) cfg.prefetch = 0;
        mr_error err = MR_ERROR_INIT;
        uint64_t came;
        const int rc = run_all(src, &cfg, &err, &came);
        if (cases[k / 4].of_sample && k % 2) {
            MRT_EQ(rc, MR_EEND);
            MRT_EQ(came, COUNT - 1);
            continue;
        }
        MRT_EQ(rc, cases[k / 4].code);
        MRT_EQ(err.sample, 17);
        MRT_EQ(err.host, cases[k / 4].how.code);
        MRT_HAS(err.file, "0017.jpg");
        MRT_HAS(err.text, cases[k / 4].text);
    }
    mr_source_close(src);
}

static void a_loader_refuses(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("refusing", COUNT, SIDE, SIDE));
    mr_own_operation op = named("my_noise", noise, NULL);
    mr_loader_config cfg = with(&op, "my_other");
    mrt_refused(src, &cfg, MR_EINVAL, "the program's own operations are my_noise");
    cfg.operation_count = 0, cfg.augment = "my_noise";
    mrt_refused(src, &cfg, MR_EINVAL, "unknown; operations are");
    op.name = "rrc";
    cfg = with(&op, "none");
    mrt_refused(src, &cfg, MR_EINVAL, "there is an operation of that name");
    mr_source_close(src);
}

static void no_memory_is_told(void **state)
{
    (void)state;
    const mr_own_operation op = named("my_noise", noise, NULL);
    for (int n = 0;; n++) {
        mr_augment *a = (mr_augment *)(uintptr_t)8;
        mr_error err = MR_ERROR_INIT;
        mrt_fail_alloc_at(n);
        const int rc = mr_augment_create_own(&a, "my_noise", true, &op, 1, &err);
        mrt_fail_alloc_at(-1);
        mr_augment_destroy(a);
        if (rc == MR_OK) {
            MRT_EQ(n, 2);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        MRT_TRUE(a == NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_they_are_written),
        cmocka_unit_test(names_that_cannot_be),
        cmocka_unit_test(what_it_is_told),
        cmocka_unit_test(in_evaluation),
        cmocka_unit_test(the_same_whoever_runs_it),
        cmocka_unit_test(resumed_at_any_batch),
        cmocka_unit_test(one_name_in_several_loaders),
        cmocka_unit_test(it_sees_the_picture_upright),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(a_loader_refuses),
        cmocka_unit_test(no_memory_is_told),
    };
    return mrt_run(tests);
}
