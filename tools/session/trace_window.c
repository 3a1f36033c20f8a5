/* tools/session/trace_window.c: see trace_window.h. */
#include "tools/session/trace_window.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"

/* Digits, at least 1. *end: after them. */
static bool read_count(const char *text, char **end, uint64_t *out)
{
    if (*text < '0' || *text > '9') return false;
    *out = strtoull(text, end, 10);
    return *out > 0 && *out < UINT64_MAX; /* UINT64_MAX: too large */
}

static bool read_window(const char *text, uint64_t *first, uint64_t *count)
{
    char *end;
    if (!read_count(text, &end, first) || *end != ':') return false;
    return read_count(end + 1, &end, count) && *end == '\0' && *count <= UINT64_MAX - *first;
}

int trace_window_open(mr_trace **out, const trace_args *a, const char *path, bool also, const char *wants)
{
    uint64_t first = 0, count = 0;
    *out = NULL;
    if (a->steps && !read_window(a->steps, &first, &count)) {
        say("--trace-steps %s: expected FIRST:COUNT, two whole numbers from 1 on, as in "
            "100:20 for steps 100 to 119",
            shown_text(a->steps));
        return EXIT_MISUSED;
    }
    if (a->steps && !path && !also) {
        say("--trace-steps needs %s: it says which steps are kept there", wants);
        return EXIT_MISUSED;
    }
    const int status = setup_trace(out, path, also);
    if (status == EXIT_DONE && a->steps) mr_trace_keep(*out, first - 1, count);
    return status;
}

void trace_window_tell(const trace_args *a, const mr_trace *trace, uint64_t first, uint64_t last)
{
    uint64_t from, count;
    if (!trace || !a->steps || !read_window(a->steps, &from, &count)) return;
    const uint64_t end = from + count - 1;
    if (last == 0) say("--trace-steps %s: no step of these came: the run had none", a->steps);
    else if (end < first || from > last)
        say("--trace-steps %s: no step of these came: the run went from step %" PRIu64 " to %" PRIu64
            ", and the trace is empty",
            a->steps, first, last);
    else if (from < first || end > last)
        say("--trace-steps %s: the run went from step %" PRIu64 " to %" PRIu64
            ", and the trace has steps %" PRIu64 " to %" PRIu64,
            a->steps, first, last, from < first ? first : from, end > last ? last : end);
}
