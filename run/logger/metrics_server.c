/* run/logger/metrics_server.c: see metrics_server.h.
 *
 *   listen ─► accept ─► request: 4 KiB and a second at most ─► page ─► answer, in the rest of it ─► close
 *
 * One connection at a time; the others wait in the kernel, which holds a few and turns the rest away. Every
 * wait is for the stop, too. */
#include "run/logger/metrics_server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "run/logger/http_request.h"
#include "run/logger/listen_address.h"

#define DEADLINE_NS 1000000000u /* of a connection */
#define PAUSE_MS    100         /* when the system has no connection to give */
enum { REQUEST = 4096, DRAIN = 65536 };

struct mri_metrics_server {
    mri_metrics_page_fn *page;
    void *context;
    int listener, stop; /* stop: readable from mri_metrics_server_close() on */
    pthread_t thread;
    char address[320];
};

/* Until fd can be read (POLLIN) or written. False: over, or the server ends. */
static bool wait_for(const mri_metrics_server *s, int fd, short what, uint64_t until_ns)
{
    for (;;) {
        struct pollfd fds[2] = {{.fd = s->stop, .events = POLLIN}, {.fd = fd, .events = what}};
        const uint64_t now = mri_now_ns();
        if (now >= until_ns) return false;
        const int n = poll(fds, 2, (int)((until_ns - now) / 1000000u) + 1);
        if (n < 0 && errno != EINTR) return false;
        if (n > 0) return !fds[0].revents;
    }
}

/* ---- a connection ---- */

/* The status that what comes is answered with; 0: with nothing, nobody is there any more. */
static int read_request(const mri_metrics_server *s, int fd, bool *head, uint64_t until_ns)
{
    char text[REQUEST];
    size_t got = 0;
    while (wait_for(s, fd, POLLIN, until_ns)) {
        const ssize_t n = recv(fd, text + got, sizeof text - got, 0);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return 0;
        got += (size_t)n;
        const int status = mri_http_request_status(text, got, head);
        if (status) return status;
        if (got == sizeof text) return 431;
    }
    return got ? 408 : 0;
}

static bool send_all(const mri_metrics_server *s, int fd, const char *data, size_t bytes, uint64_t until_ns)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = send(fd, data + done, bytes - done, MSG_NOSIGNAL);
        if (n > 0) done += (size_t)n;
        else if (n == 0 || (errno != EINTR && errno != EAGAIN)) return false;
        else if (!wait_for(s, fd, POLLOUT, until_ns)) return false;
    }
    return true;
}

/* Head and body in one piece of memory, to be freed; NULL: no memory. */
static char *make_answer(const mri_metrics_server *s, int status, bool head, size_t *bytes)
{
    char *body = NULL, *all = NULL;
    size_t body_bytes = 0;
    FILE *f = open_memstream(&body, &body_bytes);
    if (!f) return NULL;
    if (status == 200) s->page(s->context, f);
    else fprintf(f, "%s: the figures are at /metrics\n", mri_http_status_text(status));
    const bool whole = !ferror(f);
    if (fclose(f) != 0 || !whole) {
        free(body);
        return NULL;
    }
    const int n = asprintf(&all,
                           "HTTP/1.0 %d %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                           "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                           status, mri_http_status_text(status), body_bytes, head ? "" : body);
    free(body);
    *bytes = n < 0 ? 0 : (size_t)n;
    return n < 0 ? NULL : all;
}

/* Closing a connection with unread bytes resets it, and the client may never see the answer: read them
 * first. */
static void drain(const mri_metrics_server *s, int fd, uint64_t until_ns)
{
    char text[REQUEST];
    if (shutdown(fd, SHUT_WR) != 0) return;
    for (size_t all = 0; all < DRAIN && wait_for(s, fd, POLLIN, until_ns);) {
        const ssize_t n = recv(fd, text, sizeof text, 0);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return;
        all += n > 0 ? (size_t)n : 0;
    }
}

static void serve(const mri_metrics_server *s, int fd)
{
    static const char none[] = "HTTP/1.0 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";
    const uint64_t until_ns = mri_now_ns() + DEADLINE_NS;
    bool head = false;
    const int status = read_request(s, fd, &head, until_ns);
    if (status == 0) return;
    size_t bytes = 0;
    char *answer = make_answer(s, status, head, &bytes);
    const uint64_t later_ns = status == 408 ? mri_now_ns() + DEADLINE_NS / 10 : until_ns;
    const bool sent =
        answer ? send_all(s, fd, answer, bytes, later_ns) : send_all(s, fd, none, sizeof none - 1, later_ns);
    free(answer);
    if (sent) drain(s, fd, later_ns);
}

/* ---- the thread ---- */

static bool is_stopped(const mri_metrics_server *s, int wait_ms)
{
    struct pollfd stop = {.fd = s->stop, .events = POLLIN};
    return poll(&stop, 1, wait_ms) > 0;
}

/* It was gone before it was accepted. */
static bool is_the_clients(int why) { return why == ECONNABORTED || why == EAGAIN || why == EINTR; }

static void *serve_all(void *context)
{
    const mri_metrics_server *s = context;
    while (!is_stopped(s, 0)) {
        const bool called = wait_for(s, s->listener, POLLIN, mri_now_ns() + 3600u * UINT64_C(1000000000));
        const int fd = called ? accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
        if (fd >= 0) {
            serve(s, fd);
            close(fd);
        } else if (!called || !is_the_clients(errno)) {
            is_stopped(s, PAUSE_MS); /* no files or no memory: not to ask again at once */
        }
    }
    return NULL;
}

/* Signals are for the threads that were there before. */
static int start(mri_metrics_server *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int why = pthread_create(&s->thread, NULL, serve_all, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return why;
}

int mri_metrics_server_open(mri_metrics_server **out, const char *where, mri_metrics_page_fn *page,
                            void *context, mr_error *err)
{
    mri_metrics_server *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return mr_error_set(err, MR_ENOMEM, "out of memory for the page of figures");
    s->page = page;
    s->context = context;
    s->stop = -1;
    int rc = mri_listen_address_open(&s->listener, where, s->address, sizeof s->address, err);
    if (rc) {
        free(s);
        return rc;
    }
    s->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int why = s->stop < 0 ? errno : start(s);
    if (why) {
        if (s->stop >= 0) close(s->stop);
        close(s->listener);
        free(s);
        return mr_error_sys(err, why, "--metrics %s: cannot start the server", where);
    }
    *out = s;
    return MR_OK;
}

const char *mri_metrics_server_address(const mri_metrics_server *s) { return s->address; }

void mri_metrics_server_close(mri_metrics_server *s)
{
    const uint64_t one = 1;
    if (!s) return;
    while (write(s->stop, &one, sizeof one) < 0 && errno == EINTR) {
    }
    pthread_join(s->thread, NULL);
    close(s->listener);
    close(s->stop);
    free(s);
}
