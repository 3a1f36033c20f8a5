/* tests/formats/remote/mrt_http.c: see mrt_http.h. A thread accepts, and one serves each connection until it
 * is closed. */
#include "tests/formats/remote/mrt_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 256, CUT_AFTER = 100000 };

typedef struct reader_thread {
    struct mrt_http *s;
    int fd;
} reader_thread; /* a connection */

struct mrt_http {
    pthread_mutex_t lock;
    pthread_t acceptor, server[CONNECTIONS];
    reader_thread reader_thread[CONNECTIONS];
    int count, listener, port;
    bool ended;
    const char *data, *etag, *next;
    char lines[256], target[256];
    unsigned authorized;
    size_t bytes;
    mrt_http_way way;
    long arg;
    int times;
    unsigned answers, now, most;
};

static bool is_ended(mrt_http *s)
{
    pthread_mutex_lock(&s->lock);
    const bool ended = s->ended;
    pthread_mutex_unlock(&s->lock);
    return ended;
}

/* False: closed, or the test ends. */
static bool readable(mrt_http *s, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (!is_ended(s)) {
        const int n = poll(&p, 1, 20);
        if (n > 0) return true;
        if (n < 0 && errno != EINTR) return false;
    }
    return false;
}

static bool read_request(mrt_http *s, int fd, char *text, size_t text_bytes)
{
    size_t used = 0;
    while (used + 1 < text_bytes && readable(s, fd)) {
        const ssize_t n = recv(fd, text + used, text_bytes - 1 - used, 0);
        if (n <= 0) return false;
        text[used += (size_t)n] = '\0';
        if (strstr(text, "\r\n\r\n")) return true;
    }
    return false;
}

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool send_all(int fd, const char *data, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = send(fd, data, bytes, MSG_NOSIGNAL);
        if (n <= 0) return false;
        data += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* False: the connection is to be closed. */
static bool answer(mrt_http *s, int fd, const char *request)
{
    size_t first = 0, last;
    char head[1024], version[512] = "", target[256];
    const char *range = strstr(request, "Range: bytes=");
    pthread_mutex_lock(&s->lock);
    const mrt_http_way way = s->times != 0 ? s->way : MRT_HTTP_PLAIN;
    if (s->times > 0) s->times--;
    const char *data = s->data;
    const size_t bytes = s->bytes;
    const long arg = s->arg;
    if (s->etag) snprintf(version, sizeof version, "ETag: \"%s\"\r\n", s->etag);
    strcat(version, s->lines);
    strcpy(target, s->target);
    s->answers++;
    s->authorized += strstr(request, "\r\nAuthorization:") != NULL;
    pthread_mutex_unlock(&s->lock);
    last = bytes ? bytes - 1 : 0;
    if (range) sscanf(range, "Range: bytes=%zu-%zu", &first, &last);
    const bool question = range && first == 0 && last == 0 && bytes > 1;
    if (way == MRT_HTTP_SILENT) {
        while (!is_ended(s)) usleep(10000);
        return false;
    }
    for (int k = 0; way == MRT_HTTP_TOGETHER && (long)mrt_http_most(s) < arg && k < 6000; k++) usleep(10000);
    if (way == MRT_HTTP_NOISE) return send_all(fd, "no such protocol here\n", 22), false;
    if (way == MRT_HTTP_BUSY || way == MRT_HTTP_STATUS) {
        snprintf(head, sizeof head, "HTTP/1.1 %ld Nothing\r\n%sContent-Length: 2\r\n\r\nno",
                 way == MRT_HTTP_BUSY ? 503 : arg, way == MRT_HTTP_BUSY && arg ? "Retry-After: 1\r\n" : "");
        return send_all(fd, head, strlen(head));
    }
    if (way == MRT_HTTP_LOOP) {
        snprintf(head, sizeof head,
                 "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/again\r\nContent-Length: 0\r\n\r\n",
                 s->port);
        return send_all(fd, head, strlen(head));
    }
    if (way == MRT_HTTP_MOVED) {
        for (long begun = now_ms(); now_ms() - begun < arg && !is_ended(s);) usleep(10000);
        snprintf(head, sizeof head, "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
                 target);
        return send_all(fd, head, strlen(head));
    }
    if (way == MRT_HTTP_NO_SIZE) {
        snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        return send_all(fd, head, strlen(head)) && send_all(fd, data, bytes) && false;
    }
    if (!range || way == MRT_HTTP_WHOLE || (way == MRT_HTTP_WHOLE_LATER && !question)) {
        snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\n\r\n", version, bytes);
        if (!send_all(fd, head, strlen(head))) return false;
        if (way == MRT_HTTP_WHOLE_CUT || way == MRT_HTTP_WHOLE_NEXT) {
            send_all(fd, data, (size_t)arg);
            pthread_mutex_lock(&s->lock);
            if (way == MRT_HTTP_WHOLE_NEXT) s->data = s->next;
            pthread_mutex_unlock(&s->lock);
            return false;
        }
        if (way == MRT_HTTP_WHOLE && arg && bytes > CUT_AFTER) return send_all(fd, data, CUT_AFTER), false;
        return send_all(fd, data, bytes);
    }
    if (first >= bytes) {
        snprintf(head, sizeof head,
                 "HTTP/1.1 416 No\r\nContent-Range: bytes */%zu\r\nContent-Length: 0\r\n\r\n", bytes);
        return send_all(fd, head, strlen(head));
    }
    if (way == MRT_HTTP_BARE || way == MRT_HTTP_HUGE) {
        char claim[80] = "";
        if (way == MRT_HTTP_HUGE)
            snprintf(claim, sizeof claim, "Content-Range: bytes 0-0/%ld\r\n", arg ? arg : 36028797018963968);
        snprintf(head, sizeof head, "HTTP/1.1 206 Partial\r\n%s%sContent-Length: 1\r\n\r\nx", version, claim);
        return send_all(fd, head, strlen(head));
    }
    if (way == MRT_HTTP_HEADS) {
        snprintf(head, sizeof head, "HTTP/1.1 206 Partial\r\n");
        for (bool more = send_all(fd, head, strlen(head)); more;)
            more = !is_ended(s) && send_all(fd, "More: and more\r\n", 16);
        return false;
    }
    if (last >= bytes) last = bytes - 1;
    if (way == MRT_HTTP_SHORT && last - first > 1000) last -= 1000;
    if (way == MRT_HTTP_OTHER_RANGE && !question && last + 1 < bytes) first++, last++;
    const size_t n = last - first + 1, more = way == MRT_HTTP_ENDLESS && !question ? 10 : 0;
    snprintf(head, sizeof head,
             "HTTP/1.1 206 Partial\r\n%s%sContent-Range: bytes %zu-%zu/%zu\r\nContent-Length: %zu\r\n\r\n",
             version, way == MRT_HTTP_PACKED ? "Content-Encoding: gzip\r\n" : "", first, last, bytes,
             n + more);
    if (!send_all(fd, head, strlen(head))) return false;
    if (way == MRT_HTTP_CUT && n > CUT_AFTER) return send_all(fd, data + first, CUT_AFTER), false;
    return send_all(fd, data + first, n) && (!more || send_all(fd, "0123456789", more));
}

static void *serve(void *arg)
{
    reader_thread mine = *(reader_thread *)arg;
    mrt_http *s = mine.s;
    char request[8192];
    for (bool more = true; more && read_request(s, mine.fd, request, sizeof request);) {
        pthread_mutex_lock(&s->lock);
        s->now++;
        if (s->now > s->most) s->most = s->now;
        pthread_mutex_unlock(&s->lock);
        more = answer(s, mine.fd, request);
        pthread_mutex_lock(&s->lock);
        s->now--;
        pthread_mutex_unlock(&s->lock);
    }
    close(mine.fd);
    return NULL;
}

static void *accept_all(void *arg)
{
    mrt_http *s = arg;
    while (s->count < CONNECTIONS && readable(s, s->listener)) {
        reader_thread *next = &s->reader_thread[s->count];
        *next = (reader_thread){s, accept(s->listener, NULL, NULL)};
        if (next->fd < 0 || pthread_create(&s->server[s->count], NULL, serve, next) != 0) abort();
        s->count++;
    }
    return NULL;
}

/* libcurl would send requests to this machine through the user's proxy. */
static void leave_proxies_out(void)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                        "ALL_PROXY",  "no_proxy",    "NO_PROXY"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) unsetenv(names[k]);
}

mrt_http *mrt_http_start(const void *data, size_t bytes)
{
    leave_proxies_out();
    mrt_http *s = calloc(1, sizeof *s);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    pthread_mutex_init(&s->lock, NULL);
    mrt_http_change(s, data, bytes, "one");
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(s->listener, 64) != 0 || getsockname(s->listener, (struct sockaddr *)&at, &length) != 0 ||
        pthread_create(&s->acceptor, NULL, accept_all, s) != 0)
        abort();
    s->port = ntohs(at.sin_port);
    return s;
}

void mrt_http_end(mrt_http *s)
{
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->acceptor, NULL);
    for (int k = 0; k < s->count; k++) pthread_join(s->server[k], NULL);
    close(s->listener);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void mrt_http_be(mrt_http *s, mrt_http_way way, long arg, int times)
{
    pthread_mutex_lock(&s->lock);
    s->way = way;
    s->arg = arg;
    s->times = times;
    pthread_mutex_unlock(&s->lock);
}

void mrt_http_change(mrt_http *s, const void *data, size_t bytes, const char *etag)
{
    pthread_mutex_lock(&s->lock);
    s->data = data;
    s->bytes = bytes;
    s->etag = etag;
    pthread_mutex_unlock(&s->lock);
}

void mrt_http_next(mrt_http *s, const void *data)
{
    pthread_mutex_lock(&s->lock);
    s->next = data;
    pthread_mutex_unlock(&s->lock);
}

void mrt_http_lines(mrt_http *s, const char *lines)
{
    pthread_mutex_lock(&s->lock);
    snprintf(s->lines, sizeof s->lines, "%s", lines);
    pthread_mutex_unlock(&s->lock);
}

void mrt_http_target(mrt_http *s, const char *url)
{
    pthread_mutex_lock(&s->lock);
    snprintf(s->target, sizeof s->target, "%s", url);
    pthread_mutex_unlock(&s->lock);
}

unsigned mrt_http_authorized(mrt_http *s)
{
    pthread_mutex_lock(&s->lock);
    const unsigned n = s->authorized;
    pthread_mutex_unlock(&s->lock);
    return n;
}

const char *mrt_http_url(const mrt_http *s, const char *name)
{
    static char text[8][256];
    static unsigned next;
    char *out = text[next++ % 8];
    snprintf(out, sizeof text[0], "http://127.0.0.1:%d/%s", s->port, name);
    return out;
}

unsigned mrt_http_answers(mrt_http *s)
{
    pthread_mutex_lock(&s->lock);
    const unsigned n = s->answers;
    pthread_mutex_unlock(&s->lock);
    return n;
}

unsigned mrt_http_most(mrt_http *s)
{
    pthread_mutex_lock(&s->lock);
    const unsigned n = s->most;
    pthread_mutex_unlock(&s->lock);
    return n;
}
