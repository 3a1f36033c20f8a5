/* kernels/host/compute_library.c: see compute_library.h. */
#include "kernels/host/compute_library.h"

#ifndef MRI_DNNL_LOAD

int mri_compute_library_load(mr_error *err)
{
    (void)err;
    return MR_OK;
}

#else

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the objects of this library ask of the two; the linker names one that is missing here. */
#define OPENMP_CALLS(X)                                                                                      \
    X(GOMP_barrier)                                                                                          \
    X(GOMP_critical_name_end)                                                                                \
    X(GOMP_critical_name_start)                                                                              \
    X(GOMP_loop_end)                                                                                         \
    X(GOMP_loop_nonmonotonic_dynamic_next)                                                                   \
    X(GOMP_loop_nonmonotonic_dynamic_start)                                                                  \
    X(GOMP_loop_ordered_dynamic_next)                                                                        \
    X(GOMP_loop_ordered_dynamic_start)                                                                       \
    X(GOMP_ordered_end)                                                                                      \
    X(GOMP_ordered_start)                                                                                    \
    X(GOMP_parallel)                                                                                         \
    X(omp_get_max_threads)                                                                                   \
    X(omp_get_num_threads)                                                                                   \
    X(omp_get_thread_num)                                                                                    \
    X(omp_set_dynamic)                                                                                       \
    X(omp_set_num_threads)

#define DNNL_CALLS(X)                                                                                        \
    X(dnnl_convolution_backward_data_desc_init)                                                              \
    X(dnnl_convolution_backward_weights_desc_init)                                                           \
    X(dnnl_convolution_forward_desc_init)                                                                    \
    X(dnnl_deconvolution_backward_data_desc_init)                                                            \
    X(dnnl_deconvolution_backward_weights_desc_init)                                                         \
    X(dnnl_deconvolution_forward_desc_init)                                                                  \
    X(dnnl_engine_create)                                                                                    \
    X(dnnl_inner_product_backward_data_desc_init)                                                            \
    X(dnnl_inner_product_backward_weights_desc_init)                                                         \
    X(dnnl_inner_product_forward_desc_init)                                                                  \
    X(dnnl_memory_create)                                                                                    \
    X(dnnl_memory_desc_equal)                                                                                \
    X(dnnl_memory_desc_get_size)                                                                             \
    X(dnnl_memory_desc_init_by_tag)                                                                          \
    X(dnnl_memory_destroy)                                                                                   \
    X(dnnl_memory_set_data_handle)                                                                           \
    X(dnnl_pooling_backward_desc_init)                                                                       \
    X(dnnl_pooling_forward_desc_init)                                                                        \
    X(dnnl_post_ops_append_eltwise)                                                                          \
    X(dnnl_post_ops_create)                                                                                  \
    X(dnnl_post_ops_destroy)                                                                                 \
    X(dnnl_primitive_attr_create)                                                                            \
    X(dnnl_primitive_attr_destroy)                                                                           \
    X(dnnl_primitive_attr_set_post_ops)                                                                      \
    X(dnnl_primitive_attr_set_scratchpad_mode)                                                               \
    X(dnnl_primitive_create)                                                                                 \
    X(dnnl_primitive_desc_clone)                                                                             \
    X(dnnl_primitive_desc_create)                                                                            \
    X(dnnl_primitive_desc_destroy)                                                                           \
    X(dnnl_primitive_desc_query)                                                                             \
    X(dnnl_primitive_desc_query_md)                                                                          \
    X(dnnl_primitive_destroy)                                                                                \
    X(dnnl_primitive_execute)                                                                                \
    X(dnnl_reorder_primitive_desc_create)                                                                    \
    X(dnnl_stream_create)

#define CALLS(X) OPENMP_CALLS(X) DNNL_CALLS(X)

/* A stub has its function's name and jumps to where the function was found: registers and stack are as the
 * caller left them, so it fits every signature. */
#if defined(__x86_64__)
#define JUMP(name) "    jmp *mri_at_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name)                                                                                           \
    "    adrp x16, mri_at_" #name "\n"                                                                       \
    "    ldr x16, [x16, :lo12:mri_at_" #name "]\n"                                                           \
    "    br x16\n"
#else
#error "MILLRACE_DNNL=LOAD knows x86-64 and AArch64"
#endif

#define STUB(name)                                                                                           \
    __asm__(".text\n"                                                                                        \
            ".balign 16\n"                                                                                   \
            ".globl " #name "\n"                                                                             \
            ".hidden " #name "\n"                                                                            \
            ".type " #name ", %function\n" #name ":\n" JUMP(name) ".size " #name ", . - " #name "\n");
#define PLACE(name)                                                                                          \
    extern void *mri_at_##name __attribute__((visibility("hidden")));                                        \
    void *mri_at_##name;

CALLS(PLACE) /* written once, before the first operation is made */
CALLS(STUB)

#define TEXT(x)     #x
#define TEXT_OF(x)  TEXT(x)
#define DNNL_FILE   "libdnnl.so." TEXT_OF(DNNL_VERSION_MAJOR)
#define OPENMP_FILE "libgomp.so.1"
#define REMEDY                                                                                               \
    "training and evaluation on the processor are computed by oneDNN %d, which is not part of this "         \
    "package; "                                                                                              \
    "install it (Debian, Ubuntu: apt install libdnnl%d) or set MILLRACE_DNNL_PATH to its file; loading, "    \
    "converting and checking data need none"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded; /* lock */

struct call {
    const char *name;
    void **at;
};
#define ROW(name) {#name, &mri_at_##name},

static void *open_library(const char *file, const char *place, char *reason, size_t reason_bytes)
{
    char path[4096];
    void *handle = NULL;
    reason[0] = '\0';
    if (place && *place) {
        handle = dlopen(place, RTLD_NOW | RTLD_LOCAL);
        if (!handle && snprintf(path, sizeof path, "%s/%s", place, file) < (int)sizeof path)
            handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (!handle) handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char *text = handle ? NULL : dlerror();
    if (text) snprintf(reason, reason_bytes, "%s", text);
    return handle;
}

static int fill(void *handle, const char *file, const struct call *calls, size_t count, mr_error *err)
{
    for (size_t i = 0; i < count; i++) {
        *calls[i].at = dlsym(handle, calls[i].name);
        if (!*calls[i].at)
            return mr_error_set(err, MR_EUNSUPPORTED, "%s has no %s: it is another version; " REMEDY, file,
                                calls[i].name, DNNL_VERSION_MAJOR, DNNL_VERSION_MAJOR);
    }
    return MR_OK;
}

/* What was opened stays open: a stub may be called until the process ends. */
static int load_locked(mr_error *err)
{
    static const struct call openmp[] = {OPENMP_CALLS(ROW)}, dnnl[] = {DNNL_CALLS(ROW)};
    char reason[256];
    void *handle = open_library(DNNL_FILE, getenv("MILLRACE_DNNL_PATH"), reason, sizeof reason);
    if (!handle)
        return mr_error_set(err, MR_EUNSUPPORTED, "%s; " REMEDY, reason, DNNL_VERSION_MAJOR,
                            DNNL_VERSION_MAJOR);
    int rc = fill(handle, DNNL_FILE, dnnl, sizeof dnnl / sizeof *dnnl, err);
    if (rc) return rc;
    handle = open_library(OPENMP_FILE, NULL, reason, sizeof reason);
    if (!handle)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "%s; install OpenMP's run time (Debian, Ubuntu: apt install "
                            "libgomp1)",
                            reason);
    rc = fill(handle, OPENMP_FILE, openmp, sizeof openmp / sizeof *openmp, err);
    loaded = rc == MR_OK;
    return rc;
}

int mri_compute_library_load(mr_error *err)
{
    pthread_mutex_lock(&lock);
    const int rc = loaded ? MR_OK : load_locked(err);
    pthread_mutex_unlock(&lock);
    return rc;
}

#endif
