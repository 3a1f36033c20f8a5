/* kernels/cuda/host/library.c: opens NVIDIA's libraries and fills the table of functions.
 *
 * Each library is opened once, under a lock, and stays open. One that is not there may be asked for again:
 * the answer is looked up anew, so that a program may install or mount it meanwhile. Private (RTLD_LOCAL): a
 * program that brings another CUDA of its own keeps it. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include "kernels/cuda/host/libraries.h"

#define SYMBOL_TEXT(f) #f
#define SYMBOL(f)      {SYMBOL_TEXT(f), offsetof(struct mri_cuda_api, f)},

struct symbol {
    const char *name;
    size_t place; /* in the table */
};

static const struct symbol driver_symbols[] = {MRI_CUDA_DRIVER_CALLS(SYMBOL)};
static const struct symbol cublas_symbols[] = {MRI_CUBLAS_CALLS(SYMBOL)};
static const struct symbol cudnn_symbols[] = {MRI_CUDNN_CALLS(SYMBOL)};
static const struct symbol nccl_symbols[] = {MRI_NCCL_CALLS(SYMBOL)};

#define TEXT_OF(x) SYMBOL_TEXT(x)
#define LIBRARY(file, symbols, what)                                                                         \
    {                                                                                                        \
        file, symbols, MRI_ARRAY_COUNT(symbols), what                                                        \
    }

static const struct library {
    const char *file;
    const struct symbol *symbols;
    size_t symbol_count;
    const char *remedy;
} libraries[MRI_CUDA_LIBRARIES] = {
    [MRI_CUDA_DRIVER] =
        LIBRARY("libcuda.so.1", driver_symbols,
                "install NVIDIA's driver, 580 or newer; in a container, start it with access to the GPUs"),
    [MRI_CUDA_CUBLAS] = LIBRARY(
        "libcublas.so.13", cublas_symbols,
        "install cuBLAS of CUDA 13 (Debian and Ubuntu: apt install libcublas-13-0), or name its folder in "
        "MILLRACE_CUDA_PATH"),
    [MRI_CUDA_CUDNN] = LIBRARY(
        "libcudnn.so.9", cudnn_symbols,
        "install cuDNN " TEXT_OF(CUDNN_MAJOR) "." TEXT_OF(
            CUDNN_MINOR) " or newer for CUDA 13 (Debian and Ubuntu: apt install libcudnn9-cuda-13), or "
                         "name its folder in MILLRACE_CUDA_PATH"),
    [MRI_CUDA_NCCL] =
        LIBRARY("libnccl.so.2", nccl_symbols,
                "install NCCL for CUDA 13 (Debian and Ubuntu: apt install libnccl2), or name its folder in "
                "MILLRACE_CUDA_PATH; one GPU works without"),
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool open_already[MRI_CUDA_LIBRARIES]; /* lock */
static struct mri_cuda_api table;             /* lock to write; parts of open libraries do not change */

const struct mri_cuda_api *mri_cuda_api(void) { return &table; }

/* Why the last dlopen() failed: a library that is there and does not load says more than a folder where it is
 * not. */
static void keep_reason(char *reason, size_t reason_bytes)
{
    const char *text = dlerror();
    if (!text) return;
    if (reason[0] && strstr(text, "No such file or directory")) return;
    snprintf(reason, reason_bytes, "%s", text);
}

static void *open_in_folder(const char *folder, int len, const char *file, char *reason, size_t reason_bytes)
{
    char path[4096];
    if (len == 0 || snprintf(path, sizeof path, "%.*s/%s", len, folder, file) >= (int)sizeof path)
        return NULL;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) keep_reason(reason, reason_bytes);
    return handle;
}

static void *open_somewhere(const char *file, char *reason, size_t reason_bytes)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) keep_reason(reason, reason_bytes);
    const char *folders = getenv("MILLRACE_CUDA_PATH");
    while (!handle && folders && *folders) {
        const size_t len = strcspn(folders, ":");
        if (len < 4096) handle = open_in_folder(folders, (int)len, file, reason, reason_bytes);
        folders += len;
        if (*folders == ':') folders++;
    }
    static const char usual[] = "/usr/local/cuda/lib64";
    return handle ? handle : open_in_folder(usual, sizeof usual - 1, file, reason, reason_bytes);
}

/* Where a library was found. */
static const char *path_of(void *handle, const char *otherwise)
{
    struct link_map *map = NULL;
    return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0] ? map->l_name : otherwise;
}

static int fill_locked(const struct library *lib, void *handle, mr_error *err)
{
    for (size_t i = 0; i < lib->symbol_count; i++) {
        void *symbol = dlsym(handle, lib->symbols[i].name);
        if (!symbol) {
            mr_error_set(err, MR_EUNSUPPORTED, "too old: it has no %s; %s", lib->symbols[i].name,
                         lib->remedy);
            mr_error_at(err, path_of(handle, lib->file), MR_NOWHERE, MR_NOWHERE);
            return MR_EUNSUPPORTED;
        }
        memcpy((char *)&table + lib->symbols[i].place, &symbol, sizeof symbol);
    }
    return MR_OK;
}

static int open_locked(enum mri_cuda_library which, mr_error *err)
{
    const struct library *lib = &libraries[which];
    char reason[512] = "";
    void *handle = open_somewhere(lib->file, reason, sizeof reason);
    if (!handle) {
        mr_error_set(err, MR_EUNSUPPORTED, "cannot be opened; %s (%.400s)", lib->remedy, reason);
        mr_error_at(err, lib->file, MR_NOWHERE, MR_NOWHERE);
        return MR_EUNSUPPORTED;
    }
    const int rc = fill_locked(lib, handle, err);
    if (rc) dlclose(handle);
    open_already[which] = rc == MR_OK;
    return rc;
}

int mri_cuda_need(enum mri_cuda_library which, mr_error *err)
{
    pthread_mutex_lock(&lock);
    const int rc = open_already[which] ? MR_OK : open_locked(which, err);
    pthread_mutex_unlock(&lock);
    return rc;
}
