/* run/logger/http_request.c: see http_request.h. Of a request only its first line matters, and that an empty
 * line ends it. */
#include "run/logger/http_request.h"

#include <stdint.h>
#include <string.h>

static bool begins_with(const char *text, size_t bytes, const char *word)
{
    return bytes >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

static bool is_page(const char *path, size_t bytes)
{
    const char *query = memchr(path, '?', bytes);
    const size_t length = query ? (size_t)(query - path) : bytes;
    return (length == 1 && path[0] == '/') || (length == 8 && memcmp(path, "/metrics", 8) == 0);
}

int mri_http_request_status(const char *text, size_t bytes, bool *head)
{
    *head = false;
    if (memchr(text, 0, bytes)) return 400;
    if (!memmem(text, bytes, "\r\n\r\n", 4) && !memmem(text, bytes, "\n\n", 2)) return 0;
    const size_t line = (size_t)((const char *)memchr(text, '\n', bytes) - text);
    const char *path = memchr(text, ' ', line);
    if (!path || path[1] != '/') return 400; /* the line is followed at least by its end */
    const size_t method = (size_t)(path++ - text);
    const char *end = memchr(path, ' ', line - method - 1);
    if (!end || !begins_with(end, line - (size_t)(end - text), " HTTP/1.")) return 400;
    *head = method == 4 && memcmp(text, "HEAD", 4) == 0;
    if (!*head && !(method == 3 && memcmp(text, "GET", 3) == 0)) return 405;
    return is_page(path, (size_t)(end - path)) ? 200 : 404;
}

const char *mri_http_status_text(int status)
{
    switch (status) {
    case 200: return "OK";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    default: return "Bad Request";
    }
}
