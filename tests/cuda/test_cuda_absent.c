/* kernels/cuda: a program with the cuda device in it, on a machine that lacks the driver or has a useless
 * one. The first argument is the first entry of the library search path: nothing, or a folder with a
 * libcuda.so.1 that is no library, or lacks functions. */
#include <dlfcn.h>

#include "kernels/cuda/host/gpu.h"
#include "mrt.h"

static const char *part; /* of every message */

static void opening_says_what_is_missing(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_device **devices = (mr_device **)&err; /* poison */
    uint32_t count = 9;
    for (int i = 0; i < 2; i++) { /* the second time as well */
        MRT_EQ(mr_devices_open(&devices, &count, "cuda:0,1", NULL, &err), MR_EUNSUPPORTED);
        MRT_TRUE(devices == NULL && count == 0);
        MRT_HAS(err.text, part);
        MRT_HAS(err.text, "install NVIDIA's driver");
        MRT_HAS(err.file, "libcuda.so.1");
    }
    MRT_EQ(mr_devices_open(&devices, &count, "cuda:0,speed=1", NULL, &err), MR_EINVAL); /* the text comes
                                                                                           first */
    MRT_HAS(err.text, "no option \"speed\"");
}

static void listing_says_so_in_one_line(void **state)
{
    (void)state;
    mr_device_listing line;
    int lines = 0;
    for (uint32_t at = 0; mr_device_list(at, &line); at++) {
        if (strcmp(line.kind, "cuda") != 0) continue;
        lines++;
        MRT_STR(line.spec, "cuda:0");
        MRT_HAS(line.state, "libcuda.so.1: ");
        MRT_HAS(line.state, "install NVIDIA's driver");
    }
    MRT_EQ(lines, 1);
}

static void the_processor_works_as_ever(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_device **devices;
    uint32_t count;
    MRT_OK(mr_devices_open(&devices, &count, "cpu:2", NULL, &err), &err);
    mr_devices_close(devices, count);
}

static void libraries_are_looked_for_in_our_folders(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    setenv("MILLRACE_CUDA_PATH", "/nowhere::relative:/usr/lib/also-nowhere:", 1);
    MRT_EQ(mri_cuda_need(MRI_CUDA_DRIVER, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, part);
    unsetenv("MILLRACE_CUDA_PATH");
}

int main(int argc, char **argv)
{
    part = argc > 1 ? argv[1] : "cannot be opened";
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver && dlsym(driver, "cuInit")) {
        printf("SKIP: there is a driver\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_says_what_is_missing),
        cmocka_unit_test(listing_says_so_in_one_line),
        cmocka_unit_test(the_processor_works_as_ever),
        cmocka_unit_test(libraries_are_looked_for_in_our_folders),
    };
    return mrt_run(tests);
}
