/* Structs that go over the library's edge: of older and newer headers than the library's, nothing is written
 * or read beyond what the caller has. */
#include "base/abi.h"
#include "millrace/train.h"
#include "mrt.h"
#include "tests/pipeline/sets.h"

enum { ROOM = 2048, GUARD = 0xA5 };

typedef union room { /* for any of the structs, with guard bytes behind what the caller has */
    size_t struct_size;
    uint8_t bytes[ROOM];
    uint64_t align;
} room;

static void check_guard(const room *r, size_t from)
{
    for (size_t i = from; i < ROOM; i++) MRT_EQ(r->bytes[i], GUARD);
}

#define DEFAULTS(name)                                                                                       \
    {                                                                                                        \
#name, sizeof(mr_##name##_config), (void (*)(void *, size_t))mr_##name##_defaults_sized              \
    }

/* Whatever the caller's header has of a settings struct, that much is filled, and not a byte more. */
static void defaults_write_what_the_caller_has(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t bytes;
        void (*defaults)(void *, size_t);
    } all[] = {DEFAULTS(source),  DEFAULTS(writer),  DEFAULTS(decode),  DEFAULTS(loader),
               DEFAULTS(convert), DEFAULTS(devices), DEFAULTS(trainer), DEFAULTS(fit),
               DEFAULTS(devices), DEFAULTS(trainer), DEFAULTS(fit)};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(all); i++) {
        room full, r;
        MRT_TRUE(all[i].bytes + 64 < ROOM);
        memset(&full, GUARD, sizeof full);
        all[i].defaults(&full, all[i].bytes);
        for (size_t bytes = 0; bytes <= all[i].bytes + 64; bytes += 4) {
            memset(&r, GUARD, sizeof r);
            all[i].defaults(&r, bytes);
            check_guard(&r, bytes < sizeof bytes ? 0 : bytes);
            if (bytes < sizeof bytes) continue; /* not even struct_size */
            MRT_EQ(r.struct_size, bytes);
            const size_t shared = bytes < all[i].bytes ? bytes : all[i].bytes;
            assert_memory_equal(r.bytes + sizeof bytes, full.bytes + sizeof bytes, shared - sizeof bytes);
            for (size_t k = shared; k < bytes; k++)
                MRT_EQ(r.bytes[k], 0); /* what a newer header has is unset */
        }
    }
}

typedef struct settings {
    size_t struct_size;
    int32_t a, b;
} settings;
typedef struct newer {
    settings s;
    int32_t c, d;
} newer;

static void settings_of_other_headers_are_understood(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    settings mine = {sizeof mine, 1, 2};
    const settings older = {offsetof(settings, b), 7, 8};
    MRT_OK(mri_settings_take(&mine, sizeof mine, &older, "test", &err), &err);
    MRT_TRUE(mine.a == 7 && mine.b == 2 && mine.struct_size == sizeof mine);
    newer n = {{sizeof n, 3, 4}, 0, 0};
    MRT_OK(mri_settings_take(&mine, sizeof mine, &n, "test", &err), &err);
    MRT_TRUE(mine.a == 3 && mine.b == 4 && mine.struct_size == sizeof mine);
    n.d = 1;
    MRT_EQ(mri_settings_take(&mine, sizeof mine, &n, "test", &err), MR_EINVAL);
    MRT_HAS(err.text, "compiled for a newer one");
    n.s.struct_size = 0;
    MRT_EQ(mri_settings_take(&mine, sizeof mine, &n, "test", &err), MR_EINVAL);
    MRT_HAS(err.text, "mr_test_defaults()");
    n.s.struct_size = SIZE_MAX;
    MRT_EQ(mri_settings_take(&mine, sizeof mine, &n, "test", &err), MR_EINVAL);
}

/* A loader opens with the settings of a header that ended anywhere: the rest has its default. */
static void a_loader_takes_settings_of_any_length(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("abi", 9, 3, 4));
    for (size_t bytes = offsetof(mr_loader_config, seed); bytes < sizeof(mr_loader_config); bytes += 8) {
        mr_error err = MR_ERROR_INIT;
        mr_loader *l;
        room r;
        memset(&r, GUARD, sizeof r);
        mr_loader_defaults_sized((mr_loader_config *)(void *)&r, bytes);
        MRT_OK(mr_loader_open(&l, src, (const mr_loader_config *)(const void *)&r, &err), &err);
        MRT_EQ(mr_loader_info_of(l)->batch, 128);
        mr_loader_close(l);
    }
    mr_source_close(src);
}

/* Results: as much of them as the caller has room for. */
static void results_fill_what_the_caller_has(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_idx_set("abi", 9, 3, 4));
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = 4;
    cfg.epochs = UINT64_MAX;
    mr_error err = MR_ERROR_INIT;
    mr_loader *l;
    MRT_OK(mr_loader_open(&l, src, &cfg, &err), &err);
    for (size_t bytes = sizeof bytes; bytes <= sizeof(mr_batch) + 64; bytes += 8) {
        room r;
        mr_batch whole = {.struct_size = sizeof whole}, shown;
        memset(&r, GUARD, sizeof r);
        r.struct_size = bytes;
        MRT_OK(mr_loader_next_sized(l, (mr_batch *)(void *)&r, MR_FOREVER, &err), &err);
        check_guard(&r, bytes);
        MRT_EQ(r.struct_size, bytes);
        memset(&shown, 0, sizeof shown);
        memcpy(&shown, &r, bytes < sizeof shown ? bytes : sizeof shown);
        if (bytes > offsetof(mr_batch, count)) MRT_EQ(shown.global_step % 3, shown.step);
        if (bytes >= sizeof whole) MRT_EQ(shown.part_count, 1);
        whole.global_step = bytes / 8 - 1;
        MRT_EQ(mr_loader_release(l, &whole, NULL), MR_OK);

        memset(&r, GUARD, sizeof r);
        r.struct_size = bytes;
        mr_loader_stats_read_sized(l, (mr_loader_stats *)(void *)&r);
        check_guard(&r, bytes);
    }
    mr_batch unsized = {0}; /* nothing is taken for whom nothing could be given */
    mr_convert_result none = {0};
    MRT_EQ(mr_loader_next_sized(l, &unsized, MR_FOREVER, &err), MR_EINVAL);
    MRT_HAS(err.text, "without struct_size");
    MRT_EQ(mr_convert_sized(src, mrt_path("none.mrec"), NULL, &none, &err), MR_EINVAL);
    mr_batch whole;
    MRT_OK(mr_loader_next(l, &whole, MR_FOREVER, &err), &err);
    mr_loader_close(l);
    mr_source_close(src);
}

/* The settings of decoding inside others may be written whole, without their own size. */
static void settings_inside_settings_need_no_size(void **state)
{
    (void)state;
    mr_source *src = mrt_source(mrt_folder_set("inside", 2, 3, 24, false));
    mr_convert_config cfg;
    mr_convert_result result;
    mr_error err = MR_ERROR_INIT;
    mr_convert_defaults(&cfg);
    cfg.store = MR_STORE_RAW;
    cfg.decode = (mr_decode_config){.max_pixels = 10000, .max_scans = 10};
    MRT_OK(mr_convert(src, mrt_path("inside.mrec"), &cfg, &result, &err), &err);
    MRT_EQ(result.records, 6);
    mr_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_write_what_the_caller_has),
        cmocka_unit_test(settings_of_other_headers_are_understood),
        cmocka_unit_test(a_loader_takes_settings_of_any_length),
        cmocka_unit_test(results_fill_what_the_caller_has),
        cmocka_unit_test(settings_inside_settings_need_no_size),
    };
    return mrt_run(tests);
}
