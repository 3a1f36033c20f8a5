/* tools/cli/output.c: see output.h. */
#include "tools/cli/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/progress.h"

static char speaker[40] = "millrace";
static char last[4096]; /* guarded by what progress_hold() takes */

void say_as(const char *what, uint32_t number)
{
    snprintf(speaker, sizeof speaker, "millrace, %s %u", what, number);
}

void say(const char *format, ...)
{
    char text[4096], safe[2 * sizeof text];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    mr_text_shown(text, safe, sizeof safe); /* names may hold anything */
    progress_hold();
    fprintf(stderr, "%s: %s\n", speaker, safe);
    snprintf(last, sizeof last, "%s", text);
    progress_release();
}

const char *said_last(char *buf, size_t buf_bytes)
{
    progress_hold();
    snprintf(buf, buf_bytes, "%s", last);
    progress_release();
    return buf;
}

void put_shown(const char *text)
{
    char safe[4096];
    fputs(mr_text_shown(text, safe, sizeof safe), stdout);
}

const char *shown_text(const char *text)
{
    static _Thread_local char safe[4][8192];
    static _Thread_local unsigned turn;
    turn = (turn + 1) % 4;
    return mr_text_shown(text, safe[turn], sizeof safe[turn]);
}

void say_error(const mr_error *err)
{
    char text[2048];
    say("%s", mr_error_format(err, text, sizeof text));
}

const char *float_text(float value, char *buf, size_t buf_bytes)
{
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(buf, buf_bytes, "%.*g", digits, (double)value);
        if (strtof(buf, NULL) == value) break;
    }
    return buf;
}

void space_say(uint64_t bytes, uint64_t free_bytes, bool quiet)
{
    char needed[32], there[32];
    const bool short_of = bytes > free_bytes;
    if (!short_of && (quiet || bytes < (uint64_t)1 << 30)) return;
    mri_size_text((double)bytes, needed, sizeof needed);
    if (free_bytes == UINT64_MAX) say("about %s are to be written", needed);
    else
        say("about %s are to be written; %s are free%s", needed,
            mri_size_text((double)free_bytes, there, sizeof there),
            short_of ? ", which may be too little" : "");
}
