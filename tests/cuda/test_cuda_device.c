/* kernels/cuda: opening and listing GPUs, memory, copies, and errors that stick. */
#include "tests/cuda/rig.h"

static uint32_t gpus;

static void refuse(const char *spec, int code, const char *part, const char *other)
{
    mr_error err = MR_ERROR_INIT;
    mr_device **devices = (mr_device **)&err; /* poison */
    uint32_t count = 99;
    MRT_EQ(mr_devices_open(&devices, &count, spec, NULL, &err), code);
    MRT_TRUE(devices == NULL);
    MRT_EQ(count, 0);
    MRT_HAS(err.text, part);
    MRT_HAS(err.text, other);
}

static void texts_name_gpus(void **state)
{
    (void)state;
    refuse("cuda:0,speed=3", MR_EINVAL, "cuda has no option \"speed\"", "cuda:NUMBER");
    refuse("cuda:x", MR_EINVAL, "neither a number", "x");
    refuse("cuda:0,sim:1", MR_EINVAL, "sim:1", "neither a number");
    char part[64], mask[64];
    snprintf(part, sizeof part, "there %s %u", gpus == 1 ? "is" : "are", gpus);
    if (gpus < RIG_MAX_DEVICES) refuse("cuda:300", MR_ENOENT, "asked for cuda:300", part);
    const char *before = getenv("CUDA_VISIBLE_DEVICES");
    snprintf(mask, sizeof mask, "%s", before ? before : "");
    setenv("CUDA_VISIBLE_DEVICES", "5,7", 1); /* the driver has read it long ago; the message shows what is
                                                 set */
    refuse("cuda:0,cuda:300", MR_ENOENT, "asked for cuda:300", "(CUDA_VISIBLE_DEVICES=5,7)");
    if (before) setenv("CUDA_VISIBLE_DEVICES", mask, 1);
    else unsetenv("CUDA_VISIBLE_DEVICES");
}

static void devices_say_what_they_are(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_device **devices;
    uint32_t count;
    MRT_OK(mr_devices_open(&devices, &count, "cuda", NULL, &err), &err);
    MRT_EQ(count, 1);
    const mr_device_info *info = mr_device_info_of(devices[0]);
    MRT_STR(info->kind, "cuda");
    MRT_STR(info->name, "cuda:0");
    MRT_HAS(info->hardware, "GiB");
    MRT_TRUE(info->memory_bytes > 0 && !info->simulated && info->threads == 0);
    mr_devices_close(devices, count);

    /* two replicas on one GPU */
    MRT_OK(mr_devices_open(&devices, &count, "cuda:0,cuda:0", NULL, &err), &err);
    MRT_EQ(count, 2);
    MRT_STR(mr_device_info_of(devices[0])->name, "cuda:0");
    MRT_STR(mr_device_info_of(devices[1])->name, "cuda:0 (replica 2)");
    MRT_EQ(mr_device_info_of(devices[1])->index, 1);
    mr_devices_close(devices, count);

    if (gpus < 2) return;
    MRT_OK(mr_devices_open(&devices, &count, "cuda:1,0", NULL, &err), &err);
    MRT_EQ(count, 2);
    MRT_STR(mr_device_info_of(devices[0])->name, "cuda:1");
    MRT_STR(mr_device_info_of(devices[1])->name, "cuda:0");
    MRT_EQ(mri_cuda_device_of(devices[0])->ordinal, 1);
    mr_devices_close(devices, count);
}

static void listing_has_a_line_for_each(void **state)
{
    (void)state;
    mr_device_listing line;
    uint32_t found = 0;
    char spec[24];
    for (uint32_t at = 0; mr_device_list(at, &line); at++) {
        if (strcmp(line.kind, "cuda") != 0) continue;
        snprintf(spec, sizeof spec, "cuda:%u", found++);
        MRT_STR(line.spec, spec);
        MRT_HAS(line.hardware, "GiB");
    }
    MRT_TRUE(found >= gpus);
}

static void memory_says_what_is_left(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 1);
    mr_error err = MR_ERROR_INIT;
    char asked[64];
    void *p = &r;
    MRT_EQ(mr_device_alloc(r.devices[0], SIZE_MAX - 100, &p, &err), MR_ENOMEM);
    MRT_TRUE(p == NULL);
    MRT_HAS(err.text, "18446744073709551515 bytes");
    p = &r;
    MRT_EQ(mr_host_alloc(r.devices[0], (size_t)1 << 60, &p, &err), MR_ENOMEM);
    MRT_TRUE(p == NULL);
    MRT_HAS(err.text, "pinned");

    const size_t total = (size_t)mr_device_info_of(r.devices[0])->memory_bytes, most = total / 4 * 3;
    void *big = rig_memory(&r, 0, most);
    MRT_EQ(mr_device_alloc(r.devices[0], most, &p, &err), MR_ENOMEM);
    snprintf(asked, sizeof asked, "asked for %zu bytes", most);
    MRT_HAS(err.text, asked);
    snprintf(asked, sizeof asked, "of %zu", total);
    MRT_HAS(err.text, asked);
    mr_device_free(r.devices[0], big);
    mr_device_free(r.devices[0], rig_memory(&r, 0, most)); /* a refusal does no harm, and freed memory comes
                                                              back */
    mr_device_free(r.devices[0], rig_memory(&r, 0, 0));
    mr_device_free(r.devices[0], NULL);
    mr_host_free(r.devices[0], NULL);
    rig_close(&r);
}

static void copies_carry_bytes(void **state)
{
    (void)state;
    enum { BYTES = 100003 };
    for (int each = 0; each < 2; each++) {
        struct rig r;
        mr_devices_config cfg;
        mr_devices_defaults(&cfg);
        cfg.check_each = each;
        rig_open_as(&r, gpus, &cfg);
        mr_error err = MR_ERROR_INIT;
        uint8_t *in = rig_pinned(&r, BYTES), *out = rig_pinned(&r, BYTES);
        for (uint32_t d = 0; d < gpus; d++) {
            uint8_t *a = rig_memory(&r, d, BYTES), *b = rig_memory(&r, d, BYTES);
            mrt_noise(in, BYTES, d + 1);
            memset(out, 0, BYTES);
            MRT_OK(mr_copy_h2d_async(r.copy[d], a, in, BYTES), NULL);
            MRT_OK(mr_fill_async(r.copy[d], b, 0x5A, BYTES), NULL);
            MRT_OK(mr_copy_d2d_async(r.copy[d], b, a, BYTES - 3), NULL);
            MRT_OK(mr_copy_d2h_async(r.copy[d], out, b, BYTES), NULL);
            MRT_OK(mr_copy_d2h_async(r.copy[d], out, b, 0), NULL);
            if (!each) MRT_OK(mr_stream_sync(r.copy[d], &err), &err);
            MRT_TRUE(memcmp(in, out, BYTES - 3) == 0);
            for (int i = 1; i <= 3; i++) MRT_EQ(out[BYTES - i], 0x5A);
            mr_device_free(r.devices[d], a);
            mr_device_free(r.devices[d], b);
        }
        MRT_EQ(mr_copy_h2d_async(r.copy[0], NULL, in, 1), MR_EINVAL);
        mr_host_free(r.devices[0], in);
        mr_host_free(r.devices[0], out);
        rig_close(&r);
    }
}

/* A GPU that failed stays failed: every call says so with the first error, and closing still works. */
static void errors_stick(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 1);
    mri_cuda_device *dev = mri_cuda_device_of(r.devices[0]);
    mr_error err = MR_ERROR_INIT;
    mr_event *e;
    void *p, *memory = rig_memory(&r, 0, 100);
    MRT_OK(mr_event_create(&e, r.devices[0], &err), &err);
    MRT_OK(mr_event_record(e, r.compute[0]), NULL);

    MRT_EQ(mri_cuda_check(dev, CUDA_ERROR_INVALID_VALUE, "a wrong argument", &err), MR_EDEVICE); /* the GPU is
                                                                                                    well */
    MRT_HAS(err.text, "cuda:0: a wrong argument: CUDA_ERROR_INVALID_VALUE");
    MRT_OK(mr_stream_sync(r.compute[0], &err), &err);
    MRT_EQ(mri_cuda_check(dev, CUDA_ERROR_OUT_OF_MEMORY, "too much", &err), MR_ENOMEM);
    MRT_OK(mr_stream_sync(r.compute[0], &err), &err);

    MRT_EQ(mri_cuda_check(dev, CUDA_ERROR_ILLEGAL_ADDRESS, "conv2d forward", &err), MR_EDEVICE);
    MRT_EQ(mri_cuda_check(dev, CUDA_ERROR_LAUNCH_FAILED, "later", NULL), MR_EDEVICE);
    MRT_EQ(mr_stream_sync(r.compute[0], &err), MR_EDEVICE);
    MRT_HAS(err.text, "conv2d forward: CUDA_ERROR_ILLEGAL_ADDRESS");
    MRT_HAS(err.text, "check_each");
    MRT_EQ(mr_stream_sync(r.copy[0], NULL), MR_EDEVICE);
    MRT_EQ(mr_fill_async(r.copy[0], memory, 0, 1), MR_EDEVICE);
    MRT_EQ(mr_device_alloc(r.devices[0], 1, &p, &err), MR_EDEVICE);
    MRT_HAS(err.text, "conv2d forward");
    MRT_EQ(mr_host_alloc(r.devices[0], 1, &p, &err), MR_EDEVICE);
    MRT_EQ(mr_event_query(e), MR_EDEVICE);
    MRT_EQ(mr_event_wait(e, 1, &err), MR_EDEVICE);
    MRT_EQ(mr_event_record(e, r.compute[0]), MR_EDEVICE);
    MRT_EQ(mr_graph_begin(r.compute[0]), MR_EDEVICE);
    mr_event_destroy(e);
    mr_device_free(r.devices[0], memory);
    rig_close(&r);
    rig_open(&r, 1);
    rig_close(&r);
}

/* Each library's codes come with its name and text, and out of memory has its own code. */
static void foreign_codes_are_named(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 1);
    mri_cuda_device *dev = mri_cuda_device_of(r.devices[0]);
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mri_cuda_check_cublas(dev, CUBLAS_STATUS_SUCCESS, "x", &err), MR_OK);
    MRT_EQ(mri_cuda_check_cublas(dev, CUBLAS_STATUS_ALLOC_FAILED, "dense forward", &err), MR_ENOMEM);
    MRT_HAS(err.text, "cuda:0: dense forward: cuBLAS error 3");
    MRT_EQ(mri_cuda_check_cudnn(dev, CUDNN_STATUS_NOT_SUPPORTED, "conv2d forward", &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "cuda:0: conv2d forward: cuDNN error 3000");
    MRT_EQ(mri_cuda_check_cudnn(dev, CUDNN_STATUS_EXECUTION_FAILED, "conv2d forward", NULL), MR_EDEVICE);
    MRT_EQ(mri_cuda_check_cudnn(dev, CUDNN_STATUS_SUCCESS, "x", &err), MR_OK);
    MRT_OK(mr_stream_sync(r.compute[0], &err), &err);
    rig_close(&r);
}

static void failed_allocations_leave_nothing(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        mr_error err = MR_ERROR_INIT;
        mr_device **devices = (mr_device **)&err;
        mr_stream *stream = (mr_stream *)&err;
        mr_event *event = (mr_event *)&err;
        mr_group *group = (mr_group *)&err;
        uint32_t count = 0;
        mrt_fail_alloc_at(n);
        int rc = mr_devices_open(&devices, &count, "cuda:0", NULL, &err);
        if (!rc) {
            if (!(rc = mr_stream_create(&stream, devices[0], MR_STREAM_COMPUTE, &err))) {
                if (!(rc = mr_event_create(&event, devices[0], &err))) {
                    rc = mr_group_create(&group, &stream, 1, &err);
                    mr_group_destroy(group);
                }
                mr_event_destroy(event);
            }
            mr_stream_destroy(stream);
        }
        mrt_fail_alloc_at(-1);
        mr_devices_close(devices, count);
        if (rc == MR_OK) break;
        MRT_EQ(rc, MR_ENOMEM);
    }
}

int main(void)
{
    gpus = cuda_or_skip();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_name_gpus),
        cmocka_unit_test(devices_say_what_they_are),
        cmocka_unit_test(listing_has_a_line_for_each),
        cmocka_unit_test(memory_says_what_is_left),
        cmocka_unit_test(copies_carry_bytes),
        cmocka_unit_test(errors_stick),
        cmocka_unit_test(foreign_codes_are_named),
        cmocka_unit_test(failed_allocations_leave_nothing),
    };
    return mrt_run(tests);
}
