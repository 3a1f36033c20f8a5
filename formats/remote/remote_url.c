/* formats/remote/remote_url.c: see remote_url.h. No more of a URL is understood than these need: libcurl
 * reads the rest. */
#include "formats/remote/remote_url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool mri_is_url(const char *path)
{
    return strncasecmp(path, "http://", 7) == 0 || strncasecmp(path, "https://", 8) == 0;
}

static size_t scheme_bytes(const char *url) { return (size_t)(strstr(url, "://") - url) + 3; }

/* Bytes up to the end of the path. */
static size_t path_end(const char *url) { return strcspn(url, "?#"); }

char *mri_url_shown(const char *url)
{
    const size_t scheme = scheme_bytes(url), end = path_end(url),
                 host_end = scheme + strcspn(url + scheme, "/?#");
    size_t host = scheme;
    for (size_t k = scheme; k < host_end; k++) /* the last one: a password may hold an @ that was not escaped
                                                */
        if (url[k] == '@') host = k + 1;
    char *out = malloc(end + 5);
    if (!out) return NULL;
    sprintf(out, "%.*s%.*s%s", (int)scheme, url, (int)(end - host), url + host,
            url[end] == '?' ? "?..." : "");
    return out;
}

size_t mri_url_name(const char *url, size_t *name_bytes)
{
    const size_t scheme = scheme_bytes(url), end = path_end(url);
    size_t start = end;
    while (start > scheme && url[start - 1] != '/') start--;
    if (start == scheme) start = end; /* a host alone */
    *name_bytes = end - start;
    return start;
}

char *mri_url_join(const char *base, const char *relative)
{
    size_t ignored;
    const size_t scheme = scheme_bytes(base);
    size_t keep = mri_url_name(base, &ignored);
    if (mri_is_url(relative)) keep = 0;
    else if (relative[0] == '/') keep = scheme + strcspn(base + scheme, "/?#");
    const size_t bytes = keep + strlen(relative) + 1;
    char *out = malloc(bytes);
    if (out) snprintf(out, bytes, "%.*s%s", (int)keep, base, relative);
    return out;
}
