/* nvtx_listener.c: a profiler's ears and nothing else. Loaded by a program that has NVTX_INJECTION64_PATH set
 * to it; when that program ends, the file RANGES_HEARD gets
 *
 *   range NAME PUSHES POPS MOST_DEEP    per name of domain "millrace"; its spaces are underscores
 *   mark NAME TIMES                     the same, of moments
 *   thread NAME                         per thread that was given a name
 *   wrong N                             pops with nothing open, threads' ranges still open, pushes that came
 *                                       with no registered name */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#define MOST_NAMES 64
#define MOST_DEEP  16

typedef struct heard {
    char name[32];
    unsigned pushes, pops, deepest, marks;
} heard;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static heard ranges[MOST_NAMES];                               /* lock */
static char threads[MOST_NAMES][32];                           /* lock */
static unsigned range_count, thread_count, wrong, open_ranges; /* lock */
static int the_domain;

static __thread heard *stack[MOST_DEEP];
static __thread unsigned deep;

static nvtxDomainHandle_t NVTX_API domain_create(const char *name)
{
    return strcmp(name, "millrace") == 0 ? (nvtxDomainHandle_t)&the_domain : NULL;
}

static nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t domain, const char *text)
{
    nvtxStringHandle_t handle = NULL;
    pthread_mutex_lock(&lock);
    if (domain == (nvtxDomainHandle_t)&the_domain && range_count < MOST_NAMES) {
        heard *h = &ranges[range_count++];
        snprintf(h->name, sizeof h->name, "%s", text);
        for (char *c = h->name; *c; c++)
            if (*c == ' ') *c = '_';
        handle = (nvtxStringHandle_t)h;
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

static int NVTX_API range_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *what)
{
    (void)domain;
    heard *h = (heard *)what->message.registered;
    pthread_mutex_lock(&lock);
    if (what->messageType != NVTX_MESSAGE_TYPE_REGISTERED || h < ranges || h >= ranges + range_count ||
        deep == MOST_DEEP) {
        wrong++;
    } else {
        stack[deep++] = h;
        h->pushes++;
        if (deep > h->deepest) h->deepest = deep;
        open_ranges++;
    }
    pthread_mutex_unlock(&lock);
    return (int)deep - 1;
}

static void NVTX_API mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *what)
{
    (void)domain;
    heard *h = (heard *)what->message.registered;
    pthread_mutex_lock(&lock);
    if (what->messageType != NVTX_MESSAGE_TYPE_REGISTERED || h < ranges || h >= ranges + range_count) wrong++;
    else h->marks++;
    pthread_mutex_unlock(&lock);
}

static int NVTX_API range_pop(nvtxDomainHandle_t domain)
{
    (void)domain;
    pthread_mutex_lock(&lock);
    if (deep == 0) {
        wrong++;
    } else {
        stack[--deep]->pops++;
        open_ranges--;
    }
    pthread_mutex_unlock(&lock);
    return (int)deep;
}

static void NVTX_API name_thread(uint32_t id, const char *name)
{
    (void)id;
    pthread_mutex_lock(&lock);
    if (thread_count < MOST_NAMES) snprintf(threads[thread_count++], sizeof threads[0], "%s", name);
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("RANGES_HEARD");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f) return;
    for (unsigned i = 0; i < range_count; i++)
        fprintf(f, "range %s %u %u %u\nmark %s %u\n", ranges[i].name, ranges[i].pushes, ranges[i].pops,
                ranges[i].deepest, ranges[i].name, ranges[i].marks);
    for (unsigned i = 0; i < thread_count; i++) fprintf(f, "thread %s\n", threads[i]);
    fprintf(f, "wrong %u\n", wrong + open_ranges);
    fclose(f);
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable core, core2;
    unsigned size, size2;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size) ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &size2) ||
        size <= NVTX_CBID_CORE_NameOsThreadA || size2 <= NVTX_CBID_CORE2_DomainCreateA)
        return 0;
    *core[NVTX_CBID_CORE_NameOsThreadA] = (NvtxFunctionPointer)name_thread;
    *core2[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)domain_create;
    *core2[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_string;
    *core2[NVTX_CBID_CORE2_DomainMarkEx] = (NvtxFunctionPointer)mark;
    *core2[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)range_push;
    *core2[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)range_pop;
    return 1;
}
