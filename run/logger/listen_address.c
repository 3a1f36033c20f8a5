/* run/logger/listen_address.c: see listen_address.h. */
#include "run/logger/listen_address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOST = 256, PORT = 8, BACKLOG = 16 };

static int wrong(const char *where, mr_error *err)
{
    return mr_error_set(
        err, MR_EINVAL,
        "--metrics: expected PORT, HOST:PORT or [HOST]:PORT with a port from 0 to 65535, found '%s'", where);
}

static bool is_port(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits < PORT - 1 && !text[digits] && strtoul(text, NULL, 10) <= 65535;
}

/* An address with colons of its own stands in brackets. */
static int split(const char *where, char host[HOST], char port[PORT], mr_error *err)
{
    const char *colon = strrchr(where, ':');
    const char *number = colon ? colon + 1 : where, *name = where;
    size_t bytes = colon ? (size_t)(colon - where) : 0;
    if (!is_port(number)) return wrong(where, err);
    if (bytes > 2 && name[0] == '[' && name[bytes - 1] == ']') {
        name++;
        bytes -= 2;
    } else if (name[0] == '[' || memchr(name, ':', bytes)) return wrong(where, err);
    if ((colon && bytes == 0) || bytes >= HOST) return wrong(where, err);
    snprintf(host, HOST, "%.*s", colon ? (int)bytes : 9, colon ? name : "127.0.0.1");
    snprintf(port, PORT, "%s", number);
    return MR_OK;
}

static int show(int fd, char *shown, size_t shown_bytes)
{
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;
    char host[HOST], port[PORT];
    if (getsockname(fd, (struct sockaddr *)&at, &bytes) != 0 ||
        getnameinfo((struct sockaddr *)&at, bytes, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return -1;
    snprintf(shown, shown_bytes, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    return 0;
}

/* 0, or why not. */
static int try_listen(int *fd, const struct addrinfo *a, char *shown, size_t shown_bytes)
{
    const int yes = 1;
    const int s = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (s < 0) return errno;
    if (setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 || /* not to wait for old connections
                                                                           */
        bind(s, a->ai_addr, a->ai_addrlen) != 0 || listen(s, BACKLOG) != 0 ||
        show(s, shown, shown_bytes) != 0) {
        const int why = errno;
        close(s);
        return why;
    }
    *fd = s;
    return 0;
}

int mri_listen_address_open(int *fd, const char *where, char *shown, size_t shown_bytes, mr_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char host[HOST], port[PORT];
    int rc = split(where, host, port, err);
    if (rc) return rc;
    const int unknown = getaddrinfo(host, port, &hints, &found);
    if (unknown)
        return mr_error_set(err, MR_ENOENT, "--metrics %s: cannot find the host %s: %s", where, host,
                            gai_strerror(unknown));
    int why = EADDRNOTAVAIL;
    for (const struct addrinfo *a = found; a && why; a = a->ai_next)
        why = try_listen(fd, a, shown, shown_bytes);
    freeaddrinfo(found);
    if (why == EADDRINUSE)
        return mr_error_set(
            err, MR_EEXIST,
            "--metrics %s: another program listens there: choose another port, or 0 for any that is free",
            where);
    if (why == EADDRNOTAVAIL)
        return mr_error_set(err, MR_EINVAL, "--metrics %s: %s is no address of this machine", where, host);
    return why ? mr_error_sys(err, why, "--metrics %s: cannot listen there", where) : MR_OK;
}
