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

/* Bytes up to the end of "user:password@host:port" as the grammar has it (RFC 3986, 3.2). */
static size_t authority_end(const char *url)
{
    const size_t scheme = scheme_bytes(url);
    return scheme + strcspn(url + scheme, "/?#");
}

/* The start of the host: after the last @, since a password may contain an unescaped @. */
static size_t host_begin(const char *url)
{
    size_t host = scheme_bytes(url);
    for (size_t k = host, end = authority_end(url); k < end; k++)
        if (url[k] == '@') host = k + 1;
    return host;
}

/* Behind "host:", up to the end of the authority; NULL: there is no port. */
static const char *port_of(const char *url)
{
    const char *host = url + host_begin(url), *end = url + authority_end(url);
    const char *bracket = memchr(host, ']', (size_t)(end - host));
    if (bracket) host = bracket;
    const char *colon = memchr(host, ':', (size_t)(end - host));
    return colon ? colon + 1 : NULL;
}

const char *mri_url_fault(const char *url)
{
    const char *port = port_of(url), *end = url + authority_end(url);
    const size_t digits = port ? strspn(port, "0123456789") : 0;
    if (host_begin(url) > scheme_bytes(url) && strchr(end, '@'))
        return "an @ after the host of an address with a user's name: in a name, a password or a path @ is "
               "written %40, and in the first two / is %2F, # %23, ? %3F and : %3A";
    if (!port || (digits <= 5 && port + digits == end)) return NULL;
    return "the port in the address is not a number; in a user's name or password / is written %2F, # "
           "%23, ? %3F, @ %40 and : %3A";
}

/* An @ after the authority may belong to a path, or to a password with a / # or ? in it that was not
 * escaped. */
static bool may_hold_password(const char *url)
{
    const size_t scheme = scheme_bytes(url), end = authority_end(url);
    const bool has_colon = port_of(url) != NULL, has_user = host_begin(url) > scheme;
    return (has_colon || has_user) && strchr(url + end, '@') != NULL;
}

char *mri_url_shown(const char *url)
{
    const size_t scheme = scheme_bytes(url);
    size_t host = host_begin(url), end = path_end(url);
    const char *dots = "";
    char *out = malloc(strlen(url) + 12);
    if (!out) return NULL;
    if (may_hold_password(url)) {
        const size_t question = strcspn(url, "?");
        dots = "...@";
        host = (size_t)(strrchr(url, '@') + 1 - url);
        end = host + path_end(url + host);
        if (question < host) end = host = question; /* in what may be a query: nothing of it */
    }
    sprintf(out, "%.*s%s%.*s%s", (int)scheme, url, dots, (int)(end - host), url + host,
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
