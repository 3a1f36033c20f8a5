/* base/ranges.c: ranges through NVTX, which is headers alone: at its first call it loads the library a tool
 * has named in the environment, or finds that no tool is named. Without the headers, that is without
 * MILLRACE_NVTX, nobody listens. */
#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/ranges.h"

#ifdef MILLRACE_NVTX
#include <nvtx3/nvToolsExt.h>

atomic_int mri_ranges_listener;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t domain;                 /* fixed once asked */
static nvtxStringHandle_t names[MRI_RANGE_COUNT]; /* likewise */

static const char *const texts[MRI_RANGE_COUNT] = {
#define TEXT(constant, name) [MRI_RANGE_##constant] = name,
    MRI_RANGES(TEXT) MRI_STALLS(TEXT)
#undef TEXT
};

static void ask(void)
{
    domain = nvtxDomainCreateA("millrace"); /* NULL: nobody is there */
    for (int i = 0; domain && i < MRI_RANGE_COUNT; i++)
        names[i] = nvtxDomainRegisterStringA(domain, texts[i]);
    atomic_store_explicit(&mri_ranges_listener, domain ? 1 : -1, memory_order_release);
}

static bool heard(void)
{
    if (atomic_load_explicit(&mri_ranges_listener, memory_order_acquire) == 0) pthread_once(&once, ask);
    return atomic_load_explicit(&mri_ranges_listener, memory_order_acquire) > 0;
}

static nvtxEventAttributes_t event(enum mri_range range, uint64_t number)
{
    return (nvtxEventAttributes_t){
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .category = (uint32_t)range,
        .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
        .payload.ullValue = number,
        .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
        .message.registered = names[range],
    };
}

void mri_range_begin_traced(enum mri_range range, uint64_t number)
{
    if (!heard()) return;
    const nvtxEventAttributes_t what = event(range, number);
    nvtxDomainRangePushEx(domain, &what);
}

void mri_range_end_traced(void)
{
    if (heard()) nvtxDomainRangePop(domain);
}

void mri_range_mark_traced(enum mri_range range, uint64_t number)
{
    if (!heard()) return;
    const nvtxEventAttributes_t what = event(range, number);
    nvtxDomainMarkEx(domain, &what);
}

void mri_range_name_thread(const char *name)
{
    if (heard()) nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), name);
}

#else

atomic_int mri_ranges_listener = -1;
void mri_range_begin_traced(enum mri_range range, uint64_t number) { (void)range, (void)number; }
void mri_range_end_traced(void) {}
void mri_range_mark_traced(enum mri_range range, uint64_t number) { (void)range, (void)number; }
void mri_range_name_thread(const char *name) { (void)name; }

#endif
