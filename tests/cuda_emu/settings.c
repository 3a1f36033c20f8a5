/* tests/cuda_emu/settings.c: settings from the environment, the count of calls, the log, and the reports of
 * violations. */
#include <stdarg.h>
#include <stdio.h>

#include "tests/cuda_emu/inside.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct emu_settings settings;
static enum emu_order order;
static char hang[64];
static bool counts; /* violations do not abort */
static FILE *log_file;
static _Atomic uint64_t calls, violations;

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    if (!text || !*text) return otherwise;
    char *end;
    const uint64_t v = strtoull(text, &end, 0);
    if (*end != '\0') {
        fprintf(stderr, "emulated CUDA: %s=%s is not a number\n", name, text);
        abort();
    }
    return v;
}

static void read_order(void)
{
    static const char *const names[] = {"eager", "late", "starve", "random"};
    const char *text = getenv("MILLRACE_EMU_ORDER");
    order = (enum emu_order)(settings.seed % 4);
    if (!text || !*text) return;
    for (size_t i = 0; i < MRI_ARRAY_COUNT(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            order = (enum emu_order)i;
            return;
        }
    }
    fprintf(stderr, "emulated CUDA: MILLRACE_EMU_ORDER=%s: expected eager, late, starve or random\n", text);
    abort();
}

static void read_environment(void)
{
    settings.devices = (int)mri_min_u64(number_of("MILLRACE_EMU_DEVICES", 1), EMU_MAX_DEVICES);
    settings.seed = number_of("MILLRACE_EMU_SEED", 1);
    settings.memory_bytes = number_of("MILLRACE_EMU_MEMORY", (uint64_t)4 << 30);
    settings.fail_at = number_of("MILLRACE_EMU_FAIL_AT", 0);
    read_order();
    const char *text = getenv("MILLRACE_EMU_HANG");
    snprintf(hang, sizeof hang, "%s", text ? text : "");
    text = getenv("MILLRACE_EMU_VIOLATION");
    counts = text && strcmp(text, "count") == 0;
    text = getenv("MILLRACE_EMU_LOG");
    if (text && *text) {
        log_file = fopen(text, "w");
        if (log_file) setvbuf(log_file, NULL, _IOLBF, 0); /* whole lines, also of a program that is killed */
    }
}

const struct emu_settings *emu_settings(void)
{
    pthread_once(&once, read_environment);
    return &settings;
}

enum emu_order emu_order(void)
{
    emu_settings();
    return order;
}

bool emu_hangs(const char *operation)
{
    emu_settings();
    return hang[0] != '\0' && strcmp(operation, hang) == 0;
}

void emu_log(const char *format, ...)
{
    emu_settings();
    if (!log_file) return;
    va_list list;
    va_start(list, format);
    char line[512];
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    fprintf(log_file, "%s\n", line);
}

uint64_t emu_calls(void) { return calls; }

bool emu_fails(const char *call)
{
    emu_settings();
    const uint64_t number = ++calls;
    const bool fails = number == settings.fail_at;
    emu_log("%llu %s%s", (unsigned long long)number, call, fails ? " set to fail" : "");
    return fails;
}

void emu_violation(const char *format, ...)
{
    emu_settings();
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    violations++;
    emu_log("violation: %s", text);
    fprintf(stderr, "emulated CUDA: %s (MILLRACE_EMU_SEED=%llu)\n", text, (unsigned long long)settings.seed);
    if (!counts) abort();
}

uint64_t emu_violations(void) { return violations; }
