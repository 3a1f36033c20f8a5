/* run/page/page.c: see page.h. */
#include "run/page/page.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "millrace/report.h"

static const char style[] =
    ":root{--bg:#fff;--fg:#1c2128;--dim:#59636e;--line:#d1d9e0;--box:#f6f8fa;--a:#0969da;--b:#bc4c00;"
    "--c:#1a7f37;--d:#8250df}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#9198a1;--line:#3d444d;"
    "--box:#161b22;--a:#58a6ff;--b:#f0883e;--c:#3fb950;--d:#bc8cff}}\n"
    "*{box-sizing:border-box}body{font:15px/1.5 system-ui,sans-serif;margin:0 "
    "auto;padding:1.5em;max-width:76em;"
    "overflow-wrap:break-word;background:var(--bg);color:var(--fg)}\n"
    "h1{font-size:1.5em;margin:0 0 .3em}h2{font-size:1.15em;margin:1.8em 0 .4em;border-bottom:1px solid "
    "var(--line);padding-bottom:.2em}h3{font-size:1em;margin:.6em 0 .2em}\n"
    "p{margin:.4em 0}.note{color:var(--dim);font-size:.9em}.verdict{font-weight:600}.wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.15em "
    ".8em;text-align:right;"
    "border-bottom:1px solid "
    "var(--line)}td:first-child,th:first-child,.l{text-align:left}td.l{overflow-wrap:anywhere;min-width:8em}"
    "th{font-weight:600}tr.differs td{background:var(--box);font-weight:600}\n"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30em),1fr));gap:0 2em}"
    ".chart{margin:0;max-width:44em}figcaption{font-size:.9em;color:var(--dim)}\n"
    "svg{width:100%;height:auto;display:block;background:var(--box);border-radius:6px}"
    "svg text{font:13px system-ui,sans-serif;fill:var(--dim)}"
    "@media(max-width:32em){body{padding:1em}.chart svg text{font-size:18px}}" /* a chart shrinks its words */
    ".grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--dim);stroke-width:1}\n"
    ".key{display:inline-block;margin-right:1em;overflow-wrap:anywhere;font-size:.9em}"
    ".key i{display:inline-block;width:.8em;height:.8em;margin-right:.35em;border-radius:2px}\n"
    "polyline{fill:none;stroke-width:1.8}.a{--k:var(--a)}.b{--k:var(--b)}.c{--k:var(--c)}.d{--k:var(--d)}"
    "polyline{stroke:var(--k)}rect.v,circle{fill:var(--k)}.key "
    "i{background:var(--k)}.dash{stroke-dasharray:5 4}\n"
    ".c0{--k:#d9822b}.c1{--k:#3b82c4}.c2{--k:#7a5fc0}.c3{--k:#b0559f}.c4{--k:#c94f4f}.c5{--k:#8f3a3a}"
    ".c6{--k:#8a8f98}.c7{--k:#b8a13a}.c8{--k:#2f9e8f}.c9{--k:#5c9e44}.c10{--k:#6e7681}.c11{--k:#1f77b4}\n"
    ".pictures{display:flex;flex-wrap:wrap;gap:.6em}.pictures "
    "figure{margin:0;text-align:center;font-size:.8em;"
    "color:var(--dim)}.pictures img{height:96px;image-rendering:auto;border-radius:4px;display:block}\n"
    ".time .wide>svg{touch-action:pan-y;min-width:64em}.time svg text{font-size:15px}.time "
    "button{font:inherit;color:inherit;background:var(--box);border:1px "
    "solid "
    "var(--line);border-radius:4px;padding:0 .6em}\n";

void mri_page_begin(FILE *f, const char *title)
{
    fprintf(f,
            "%s\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
            "content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\"><title>",
            MRI_PAGE_MARK);
    mri_page_text(f, title);
    fprintf(f, "</title>\n<style>\n%s</style></head>\n<body><h1>", style);
    mri_page_text(f, title);
    fputs("</h1>\n", f);
}

void mri_page_end(FILE *f) { fputs("</body></html>\n", f); }

void mri_page_text(FILE *f, const char *text)
{
    char shown[8192];
    for (text = mr_text_shown(text, shown, sizeof shown); *text; text++) {
        if (*text == '<') fputs("&lt;", f);
        else if (*text == '>') fputs("&gt;", f);
        else if (*text == '&') fputs("&amp;", f);
        else if (*text == '"') fputs("&quot;", f);
        else fputc(*text, f);
    }
}

void mri_page_heading(FILE *f, const char *text)
{
    fputs("<h2>", f);
    mri_page_text(f, text);
    fputs("</h2>\n", f);
}

void mri_page_note(FILE *f, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fputs("<p class=\"note\">", f);
    mri_page_text(f, text);
    fputs("</p>\n", f);
}

void mri_page_key(FILE *f, const char *css, const char *name)
{
    fprintf(f, "<span class=\"key\"><i class=\"%s\"></i>", css);
    mri_page_text(f, name);
    fputs("</span>\n", f);
}

void mri_page_picture(FILE *f, const char *type, const void *data, size_t bytes, const char *label)
{
    static const char code[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = data;
    fprintf(f, "<figure><img alt=\"\" src=\"data:%s;base64,", type);
    for (size_t i = 0; i < bytes; i += 3) {
        const unsigned v = (unsigned)p[i] << 16 | (i + 1 < bytes ? (unsigned)p[i + 1] << 8 : 0) |
                           (i + 2 < bytes ? (unsigned)p[i + 2] : 0);
        fputc(code[v >> 18], f);
        fputc(code[v >> 12 & 63], f);
        fputc(i + 1 < bytes ? code[v >> 6 & 63] : '=', f);
        fputc(i + 2 < bytes ? code[v & 63] : '=', f);
    }
    fputs("\">", f);
    mri_page_text(f, label);
    fputs("</figure>\n", f);
}

bool mr_page_may_replace(const char *path)
{
    char begin[sizeof MRI_PAGE_MARK] = "";
    const int fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    if (path && fd < 0 && errno == ENOENT) return true;
    const ssize_t n = fd >= 0 ? read(fd, begin, sizeof begin - 1) : -1;
    if (fd >= 0) close(fd);
    return n == 0 || strcmp(begin, MRI_PAGE_MARK) == 0;
}

int mri_page_write(const char *path, bool force, mri_page_put *put, void *context, mr_error *err)
{
    char *page = NULL;
    size_t bytes = 0;
    mr_output_config cfg;
    mr_output_defaults(&cfg);
    cfg.force = force || mr_page_may_replace(path);
    FILE *f = open_memstream(&page, &bytes);
    const locale_t before = mri_c_numbers_begin();
    if (f) put(f, context);
    mri_c_numbers_end(before);
    bool whole = f && !ferror(f);
    if (f && fclose(f) != 0) whole = false;
    const int rc = whole ? mr_output_whole(path, page, bytes, &cfg, err)
                         : mr_error_set(err, MR_ENOMEM, "out of memory for the page");
    free(page);
    return rc;
}
