/* tools/commands/profile_html.c: `profile --html`: the page that `millrace report` makes of what --json
 * prints. See profile_report.h. */
#include <stdlib.h>

#include "millrace/report.h"
#include "tools/commands/profile_report.h"

static int add_log(mr_run_page *page, const profile_result *p, mr_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    if (f) profile_print_json(f, p);
    bool whole = f && !ferror(f);
    if (f && fclose(f) != 0) whole = false;
    const int rc = whole ? mr_run_page_add_text(page, p->of.data, text, bytes, err)
                         : mr_error_set(err, MR_ENOMEM, "out of memory for the report");
    free(text);
    return rc;
}

int profile_write_html(const profile_result *p, const mr_trace *trace, const char *path, mr_error *err)
{
    mr_run_page *page;
    int rc = mr_run_page_open(&page, NULL, err);
    if (rc) return rc;
    rc = add_log(page, p, err);
    if (rc == MR_OK && trace) rc = mr_run_page_trace(page, trace, "the run with prefetch on", err);
    if (rc == MR_OK) rc = mr_run_page_write(page, path, true, err);
    mr_run_page_close(page);
    return rc;
}
