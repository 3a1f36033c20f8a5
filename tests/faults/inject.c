/* tests/faults/inject.c: counts calls, decides which of them fails, and writes the report. The calls
 * themselves are in inject_alloc.c, inject_files.c, inject_stdio.c and inject_ring.c. */
#include "inject.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANGES_MOST = 64 };

typedef struct range {
    uintptr_t from, to;
    bool kin; /* a library whose allocations count */
} range;

static range ranges[RANGES_MOST];
static size_t range_count;
static mrt_fault_report unmapped, *report = &unmapped;
static bool ready;
static int fault_class = -1, fault_error;
static uint64_t fault_at;
static bool fault_stays;
static _Thread_local bool inside; /* our own work is not counted */

static const char *const class_names[] = {
#define X(class, name) #name,
    MRT_FAULT_CLASSES
#undef X
};

static const struct {
    const char *name;
    int value;
} errors[] = {
    {"ENOMEM", ENOMEM},         {"EIO", EIO},
    {"ENOSPC", ENOSPC},         {"EMFILE", EMFILE},
    {"EINTR", EINTR},           {"EAGAIN", EAGAIN},
    {"EACCES", EACCES},         {"EDQUOT", EDQUOT},
    {"EPERM", EPERM},           {"ENOLCK", ENOLCK},
    {"EROFS", EROFS},           {"ENFILE", ENFILE},
    {"EINVAL", EINVAL},         {"EOPNOTSUPP", EOPNOTSUPP},
    {"short", MRT_FAULT_SHORT}, {"kill", MRT_FAULT_KILL},
    {"torn", MRT_FAULT_TORN},
};

static int add_module(struct dl_phdr_info *info, size_t bytes, void *context)
{
    static const char *const kin[] = {"libjpeg",   "libspng", "libcjson", "libisal",
                                      "libxxhash", "libz.",   "liburing"};
    const char *name = info->dlpi_name, *slash = strrchr(name, '/');
    (void)bytes;
    (void)context;
    const char *base = slash ? slash + 1 : name;
    bool related = false;
    for (size_t i = 0; i < sizeof kin / sizeof *kin; i++)
        related |= strncmp(base, kin[i], strlen(kin[i])) == 0;
    if (*name && !related && strncmp(base, "libmillrace", 11) != 0)
        return 0; /* the program's own name is "" */
    for (int i = 0; i < info->dlpi_phnum && range_count < RANGES_MOST; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        const uintptr_t from = info->dlpi_addr + p->p_vaddr;
        ranges[range_count++] = (range){from, from + p->p_memsz, related};
    }
    return 0;
}

static int error_of(const char *name)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(name, errors[i].name) == 0) return errors[i].value;
    return 0;
}

static bool read_fault(const char *text)
{
    char name[16], error[16], plus[2] = "";
    unsigned long long at;
    if (sscanf(text, "%15[a-z]:%llu%1[+]:%15s", name, &at, plus, error) != 4 &&
        sscanf(text, "%15[a-z]:%llu:%15s", name, &at, error) != 3)
        return false;
    for (int i = 0; i < MRT_FAULT_CLASS_COUNT; i++)
        if (strcmp(name, class_names[i]) == 0) fault_class = i;
    fault_at = at;
    fault_stays = plus[0] == '+';
    fault_error = error_of(error);
    return fault_class >= 0 && fault_error != 0;
}

static void open_report(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (map != MAP_FAILED) report = map;
}

__attribute__((constructor)) static void start(void)
{
    void *frames[4];
    const char *fault = getenv("FAULTS"), *path = getenv("FAULTS_REPORT"),
               *journal = getenv("FAULTS_JOURNAL");
    inside = true;
    dl_iterate_phdr(add_module, NULL);
    backtrace(frames, 4); /* loads its libraries now, not in the middle of a call */
    if (path) open_report(path);
    if (fault && *fault && !read_fault(fault)) {
        fprintf(stderr, "faults: FAULTS: expected CLASS:N:ERROR, found '%s'\n", fault);
        _exit(99);
    }
    if (journal && *journal) mrt_journal_open(journal);
    memcpy(report->magic, "faults1", 8);
    inside = false;
    ready = true;
}

static bool called_by(const void *caller, bool kin)
{
    const uintptr_t at = (uintptr_t)caller;
    for (size_t i = 0; i < range_count; i++)
        if (at >= ranges[i].from && at < ranges[i].to) return kin || !ranges[i].kin;
    return false;
}

bool mrt_fault_own(const void *caller) { return ready && !inside && called_by(caller, false); }

static void tell_place(void)
{
    void *frames[24];
    const int count = backtrace(frames, 24);
    size_t used = 0;
    for (int i = 0; i < count && used + 300 < sizeof report->place; i++) {
        Dl_info info;
        if (!dladdr(frames[i], &info) || !info.dli_fname) continue;
        used += (size_t)snprintf(report->place + used, 300, "%.250s+0x%lx\n", info.dli_fname,
                                 (unsigned long)((uintptr_t)frames[i] - (uintptr_t)info.dli_fbase));
    }
}

_Noreturn void mrt_fault_kill(void)
{
    for (;;) {
        kill(getpid(), SIGKILL);
        pause();
    }
}

int mrt_fault(mrt_fault_class class, const void *caller)
{
    if (!ready || inside || !called_by(caller, class == MRT_FAULT_ALLOC)) return 0;
    const uint64_t n = __atomic_add_fetch(&report->count[class], 1, __ATOMIC_RELAXED);
    if ((int)class != fault_class || (fault_stays ? n < fault_at : n != fault_at)) return 0;
    inside = true;
    if (__atomic_fetch_add(&report->hit, 1, __ATOMIC_RELAXED) == 0) tell_place();
    inside = false;
    return fault_error;
}

bool mrt_fault_change(bool writes, const void *caller)
{
    const int error = mrt_fault(MRT_FAULT_CHANGE, caller);
    if (error == MRT_FAULT_TORN && writes) return true;
    if (error) mrt_fault_kill();
    return false;
}
