/* tools/commands/profile_html.c: `profile --html`: the page that `millrace report` makes of what --json
 * prints. See profile_report.h. */
#include <stdlib.h>

#include "tools/commands/profile_report.h"
#include "tools/commands/report_page.h"
#include "tools/page/page.h"

static int make_log(const profile_result *p, run_log *out, mr_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (f) profile_print_json(f, p);
    bool whole = f && !ferror(f);
    if (f && fclose(f) != 0) whole = false;
    if (whole) return run_log_take(out, p->of.data, text, bytes, err);
    free(text);
    return mr_error_set(err, MR_ENOMEM, "out of memory for the report");
}

static int write_page(const profile_result *p, const mr_trace *trace, report_page *page, const char *path,
                      mr_error *err)
{
    mr_trace_entry *entries = NULL;
    int rc = make_log(p, &page->run[page->runs++], err);
    if (rc == MR_OK && trace && mr_trace_entries(trace, &entries, &page->span_count) != MR_OK)
        rc = mr_error_set(err, MR_ENOMEM, "out of memory for the timeline");
    if (rc == MR_OK && trace) {
        page->spans = timeline_of_trace(entries, page->span_count);
        page->trace_path = "the run with prefetch on";
        if (!page->spans) page->span_count = 0;
    }
    if (rc == MR_OK) rc = page_write(path, report_page_put, page, err);
    free(page->spans);
    free(entries);
    run_log_free(&page->run[0]);
    return rc;
}

int profile_write_html(const profile_result *p, const mr_trace *trace, const char *path, mr_error *err)
{
    report_page *page = calloc(1, sizeof *page);
    if (!page) return mr_error_set(err, MR_ENOMEM, "out of memory for the report");
    const int rc = write_page(p, trace, page, path, err);
    free(page);
    return rc;
}
