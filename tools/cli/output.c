/* tools/cli/output.c: see output.h. */
#include "tools/cli/output.h"

#include <stdarg.h>
#include <stdio.h>

#include "tools/cli/progress.h"

void say(const char *format, ...)
{
    char text[4096], safe[2 * sizeof text];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    mr_text_shown(text, safe, sizeof safe); /* names may hold anything */
    progress_hold();
    fprintf(stderr, "millrace: %s\n", safe);
    progress_release();
}

void put_shown(const char *text)
{
    char safe[4096];
    fputs(mr_text_shown(text, safe, sizeof safe), stdout);
}

void say_error(const mr_error *err)
{
    char text[2048];
    say("%s", mr_error_format(err, text, sizeof text));
}

const char *size_text(double bytes, char *buf, size_t buf_bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t k = 0;
    while (bytes >= 1024 && k + 1 < sizeof unit / sizeof unit[0]) {
        bytes /= 1024;
        k++;
    }
    snprintf(buf, buf_bytes, k ? "%.1f %s" : "%.0f %s", bytes, unit[k]);
    return buf;
}
