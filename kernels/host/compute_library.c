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
#ifndef MRI_DNNL_OFF
#include <oneapi/dnnl/dnnl.h>
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/handle.h"

/* The functions of both that this library calls; the linker names a missing one. */
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

#ifdef MRI_DNNL_OFF
#define DNNL_OWN_CALLS(X)
#elif DNNL_VERSION_MAJOR >= 3 /* kernels/ops/dnnl/onednn.c */
#define DNNL_OWN_CALLS(X)                                                                                    \
    X(dnnl_convolution_backward_data_primitive_desc_create)                                                  \
    X(dnnl_convolution_backward_weights_primitive_desc_create)                                               \
    X(dnnl_convolution_forward_primitive_desc_create)                                                        \
    X(dnnl_deconvolution_backward_data_primitive_desc_create)                                                \
    X(dnnl_deconvolution_backward_weights_primitive_desc_create)                                             \
    X(dnnl_deconvolution_forward_primitive_desc_create)                                                      \
    X(dnnl_inner_product_backward_data_primitive_desc_create)                                                \
    X(dnnl_inner_product_backward_weights_primitive_desc_create)                                             \
    X(dnnl_inner_product_forward_primitive_desc_create)                                                      \
    X(dnnl_memory_desc_clone)                                                                                \
    X(dnnl_memory_desc_create_with_tag)                                                                      \
    X(dnnl_memory_desc_destroy)                                                                              \
    X(dnnl_memory_desc_query)                                                                                \
    X(dnnl_pooling_backward_primitive_desc_create)                                                           \
    X(dnnl_pooling_forward_primitive_desc_create)
#else
#define DNNL_OWN_CALLS(X)                                                                                    \
    X(dnnl_convolution_backward_data_desc_init)                                                              \
    X(dnnl_convolution_backward_weights_desc_init)                                                           \
    X(dnnl_convolution_forward_desc_init)                                                                    \
    X(dnnl_deconvolution_backward_data_desc_init)                                                            \
    X(dnnl_deconvolution_backward_weights_desc_init)                                                         \
    X(dnnl_deconvolution_forward_desc_init)                                                                  \
    X(dnnl_inner_product_backward_data_desc_init)                                                            \
    X(dnnl_inner_product_backward_weights_desc_init)                                                         \
    X(dnnl_inner_product_forward_desc_init)                                                                  \
    X(dnnl_memory_desc_init_by_tag)                                                                          \
    X(dnnl_pooling_backward_desc_init)                                                                       \
    X(dnnl_pooling_forward_desc_init)                                                                        \
    X(dnnl_primitive_desc_create)
#endif

#ifdef MRI_DNNL_OFF
#define DNNL_CALLS(X)
#else
#define DNNL_CALLS(X)                                                                                        \
    DNNL_OWN_CALLS(X)                                                                                        \
    X(dnnl_engine_create)                                                                                    \
    X(dnnl_memory_create)                                                                                    \
    X(dnnl_memory_desc_equal)                                                                                \
    X(dnnl_memory_desc_get_size)                                                                             \
    X(dnnl_memory_destroy)                                                                                   \
    X(dnnl_memory_set_data_handle)                                                                           \
    X(dnnl_post_ops_append_eltwise)                                                                          \
    X(dnnl_post_ops_create)                                                                                  \
    X(dnnl_post_ops_destroy)                                                                                 \
    X(dnnl_primitive_attr_create)                                                                            \
    X(dnnl_primitive_attr_destroy)                                                                           \
    X(dnnl_primitive_attr_set_post_ops)                                                                      \
    X(dnnl_primitive_attr_set_scratchpad_mode)                                                               \
    X(dnnl_primitive_create)                                                                                 \
    X(dnnl_primitive_desc_clone)                                                                             \
    X(dnnl_primitive_desc_destroy)                                                                           \
    X(dnnl_primitive_desc_query)                                                                             \
    X(dnnl_primitive_desc_query_md)                                                                          \
    X(dnnl_primitive_destroy)                                                                                \
    X(dnnl_primitive_execute)                                                                                \
    X(dnnl_reorder_primitive_desc_create)                                                                    \
    X(dnnl_stream_create)
#endif

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

#define OPENMP_FILE "libgomp.so.1"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded; /* lock */

struct call {
    const char *name;
    void **at;
};
#define ROW(name)   {#name, &mri_at_##name},

/* Fills in the addresses. The name of the first function that the library lacks; NULL: it has all. */
static const char *missing(void *handle, const struct call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        *calls[i].at = dlsym(handle, calls[i].name);
        if (!*calls[i].at) return calls[i].name;
    }
    return NULL;
}

#ifndef MRI_DNNL_OFF

#define MINOR_MOST 40 /* a distribution may put the minor version into the file's name: libdnnl.so.3.6 */
#if DNNL_VERSION_MAJOR >= 3
#define PACKAGES "Debian 13, Ubuntu 24.04: apt install libdnnl-dev; Python: pip install onednn-cpu-gomp"
#else
#define PACKAGES "Debian 12: apt install libdnnl-dev; Python: pip install 'onednn-cpu-gomp<2023'"
#endif
#define REMEDY                                                                                               \
    "training and evaluation on the processor are computed by oneDNN %d, which is not part of this "         \
    "package; install it (" PACKAGES ") or set MILLRACE_DNNL_PATH to its file or folder; loading, "          \
    "converting and checking data need none"

struct reason {
    char text[256];
    bool found; /* a oneDNN was found, and could not be loaded */
};

/* dlopen(). Keeps the error if keep is set, or if it names another file than path: a library that path needs.
 */
static void *open_library(const char *path, bool keep, struct reason *reason)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *text = handle ? NULL : dlerror();
    if (!text || reason->found) return handle;
    reason->found = strncmp(text, path, strlen(path)) != 0 && strstr(text, "cannot open shared object file");
    if (keep || reason->found) snprintf(reason->text, sizeof reason->text, "%s", text);
    return NULL;
}

/* folder: NULL for where the system looks. */
static void *open_dnnl_in(const char *folder, struct reason *reason)
{
    char path[4096];
    void *handle = NULL;
    const char *slash = folder ? "/" : "";
    if (!folder) folder = "";
    for (int minor = 0; !handle && minor <= MINOR_MOST; minor++) {
        const int length =
            minor == 0 ? snprintf(path, sizeof path, "%s%slibdnnl.so.%d", folder, slash, DNNL_VERSION_MAJOR)
                       : snprintf(path, sizeof path, "%s%slibdnnl.so.%d.%d", folder, slash,
                                  DNNL_VERSION_MAJOR, MINOR_MOST + 1 - minor);
        if (length >= (int)sizeof path) return NULL;
        handle = open_library(path, minor == 0, reason);
    }
    return handle;
}

static int load_dnnl(mr_error *err)
{
    static const struct call calls[] = {DNNL_CALLS(ROW)};
    struct reason reason = {.found = false};
    const char *place = getenv("MILLRACE_DNNL_PATH");
    void *handle = NULL;
    if (place && *place) {
        handle = open_library(place, false, &reason);
        if (!handle) handle = open_dnnl_in(place, &reason);
    }
    if (!handle && !reason.found) handle = open_dnnl_in(NULL, &reason);
    if (!handle && reason.found)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "oneDNN was found and cannot be loaded: %s; install the missing library "
                            "(libgomp.so.1: Debian, Ubuntu: apt install libgomp1)",
                            reason.text);
    if (!handle) return mr_error_set(err, MR_EUNSUPPORTED, "%s; " REMEDY, reason.text, DNNL_VERSION_MAJOR);
    const char *name = missing(handle, calls, sizeof calls / sizeof *calls);
    if (!name) return MR_OK;
    return mr_error_set(err, MR_EUNSUPPORTED, "%s has no %s: it is another version; " REMEDY,
                        place && *place ? place : "libdnnl", name, DNNL_VERSION_MAJOR);
}

#else

static int load_dnnl(mr_error *err)
{
    (void)err;
    return MR_OK;
}

#endif

/* Opened libraries stay open: a stub may be called until the process ends. */
static int load_locked(mr_error *err)
{
    static const struct call calls[] = {OPENMP_CALLS(ROW)};
    const int rc = load_dnnl(err);
    if (rc) return rc;
    void *handle = dlopen(OPENMP_FILE, RTLD_NOW | RTLD_LOCAL);
    const char *text = handle ? NULL : dlerror();
    if (!handle)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "%s; install OpenMP's run time (Debian, Ubuntu: apt install libgomp1)",
                            text ? text : OPENMP_FILE);
    const char *name = missing(handle, calls, sizeof calls / sizeof *calls);
    if (name)
        return mr_error_set(err, MR_EUNSUPPORTED, OPENMP_FILE " has no %s: it is another version", name);
    loaded = true;
    return MR_OK;
}

int mri_compute_library_load(mr_error *err)
{
    mri_lock_global(&lock);
    const int rc = loaded ? MR_OK : load_locked(err);
    pthread_mutex_unlock(&lock);
    return rc;
}

#endif
