/* tests/run/metrics_abuse.c: the server of figures under hostile clients: silent and slow ones, noise,
 * oversized requests, ten thousand at once, clients that do not read; and it still ends at once. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mrt.h"
#include "run/logger/http_request.h"
#include "run/logger/metrics_server.h"

#define LARGE (8u << 20) /* more than the kernel holds for one who does not read */

static size_t page_bytes; /* written before a server is opened */

static void page(void *context, FILE *out)
{
    (void)context;
    static const char block[] = "################################################################";
    fputs("# HELP millrace_x x\n", out);
    for (size_t n = 20; n < page_bytes;) {
        const size_t left = page_bytes - n, bytes = left < sizeof block - 1 ? left : sizeof block - 1;
        n += fwrite(block, 1, bytes, out);
    }
}

static mri_metrics_server *open_server(const char *where)
{
    mr_error err = MR_ERROR_INIT;
    mri_metrics_server *s;
    MRT_OK(mri_metrics_server_open(&s, where, page, NULL, &err), &err);
    return s;
}

static uint16_t port_of(const mri_metrics_server *s)
{
    return (uint16_t)atoi(strrchr(mri_metrics_server_address(s), ':') + 1);
}

static int dial(const mri_metrics_server *s)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port_of(s)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MRT_TRUE(fd >= 0);
    MRT_EQ(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* What comes, up to the end; its bytes. */
static size_t read_all(int fd, char *out, size_t room)
{
    size_t got = 0;
    for (ssize_t n = 1; n > 0 && got<room - 1; got += n> 0 ? (size_t)n : 0)
        n = recv(fd, out + got, room - 1 - got, 0);
    out[got] = '\0';
    return got;
}

static int status_of(const mri_metrics_server *s, const char *request, size_t bytes, char *answer,
                     size_t room)
{
    const int fd = dial(s);
    send(fd, request, bytes, MSG_NOSIGNAL);
    read_all(fd, answer, room);
    close(fd);
    int status = 0;
    sscanf(answer, "HTTP/1.0 %d ", &status);
    return status;
}

static void answers(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        int status;
        bool body;
    } cases[] = {
        {"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200, true},
        {"GET / HTTP/1.0\n\n", 200, true},
        {"HEAD /metrics HTTP/1.0\r\n\r\n", 200, false},
        {"GET /metrics?x=1 HTTP/1.0\r\n\r\n", 200, true},
        {"GET /metricsx HTTP/1.0\r\n\r\n", 404, true},
        {"GET /../etc/passwd HTTP/1.0\r\n\r\n", 404, true},
        {"POST /metrics HTTP/1.0\r\n\r\n", 405, true},
        {"GET /metrics\r\n\r\n", 400, true},
        {"GET /metrics HTTP/2\r\n\r\n", 400, true},
        {"GET metrics HTTP/1.0\r\n\r\n", 400, true},
        {" \r\n\r\n", 400, true},
        {"\n\n", 400, true},
    };
    char answer[4096];
    page_bytes = 100;
    mri_metrics_server *s = open_server("0");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        MRT_EQ(status_of(s, cases[i].request, strlen(cases[i].request), answer, sizeof answer),
               cases[i].status);
        const char *body = strstr(answer, "\r\n\r\n");
        MRT_TRUE(body && (body[4] != '\0') == cases[i].body);
        MRT_HAS(answer, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    }
    MRT_EQ(status_of(s, "GET /\0 HTTP/1.0\n\n", 17, answer, sizeof answer), 400);
    char large[8192];
    memset(large, 'a', sizeof large);
    MRT_EQ(status_of(s, large, sizeof large, answer, sizeof answer), 431);
    mri_metrics_server_close(s);
    mri_metrics_server_close(NULL);
}

static void works(const mri_metrics_server *s)
{
    static const char get[] = "GET /metrics HTTP/1.0\r\n\r\n";
    char answer[4096];
    MRT_EQ(status_of(s, get, sizeof get - 1, answer, sizeof answer), 200);
}

static void noise_and_cut_requests(void **state)
{
    (void)state;
    char bytes[2048], answer[4096];
    static const char get[] = "GET /metrics HTTP/1.0\r\nHost: somewhere\r\n\r\n";
    bool head;
    page_bytes = 100;
    mri_metrics_server *s = open_server("127.0.0.1:0");
    for (uint64_t seed = 0; seed < 300; seed++) {
        mrt_noise(bytes, sizeof bytes, seed);
        const size_t n = seed * 7 % sizeof bytes;
        const int fd = dial(s);
        send(fd, bytes, n, MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        read_all(fd, answer, sizeof answer);
        MRT_TRUE(!answer[0] || strncmp(answer, "HTTP/1.0 4", 10) == 0);
        close(fd);
    }
    for (size_t n = 0; n < sizeof get - 1; n++) { /* nobody answers half a request whose sender is gone */
        const int fd = dial(s);
        send(fd, get, n, MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        MRT_EQ(read_all(fd, answer, sizeof answer), 0);
        close(fd);
        MRT_EQ(mri_http_request_status(get, n, &head), 0);
    }
    works(s);
    mri_metrics_server_close(s);
}

static void slow_clients_are_sent_away(void **state)
{
    (void)state;
    char answer[4096];
    page_bytes = 100;
    mri_metrics_server *s = open_server("0");
    const int silent = dial(s), half = dial(s);
    MRT_EQ(send(half, "GET /metr", 9, MSG_NOSIGNAL), 9);
    works(s); /* after them */
    MRT_EQ(read_all(silent, answer, sizeof answer), 0);
    read_all(half, answer, sizeof answer);
    MRT_HAS(answer, "HTTP/1.0 408 ");
    close(silent);
    close(half);
    mri_metrics_server_close(s);
}

static void one_who_does_not_read(void **state)
{
    (void)state;
    page_bytes = LARGE;
    mri_metrics_server *s = open_server("0");
    const int fd = dial(s);
    send(fd, "GET / HTTP/1.0\n\n", 16, MSG_NOSIGNAL);
    works(s); /* after it; only part of the page is read */
    close(fd);
    char *all = malloc(2 * LARGE);
    MRT_TRUE(all != NULL);
    size_t got = 0;
    while (got != LARGE) { /* who reads has it all, unless this process is not run for a connection's second
                            */
        MRT_EQ(status_of(s, "GET / HTTP/1.0\n\n", 16, all, 2 * LARGE), 200);
        got = strlen(strstr(all, "\r\n\r\n") + 4);
        MRT_TRUE(got <= LARGE);
    }
    free(all);
    mri_metrics_server_close(s);
}

/* Whoever is connected. The test's own time limit is the clock. */
static void ends_at_once(void **state)
{
    (void)state;
    page_bytes = LARGE;
    for (int i = 0; i < 50; i++) {
        mri_metrics_server *s = open_server("0");
        int fd[3];
        for (int k = 0; k < 3; k++) fd[k] = dial(s);
        if (i % 2) send(fd[0], "GET / HTTP/1.0\n\n", 16, MSG_NOSIGNAL);
        if (i % 3) send(fd[1], "GET", 3, MSG_NOSIGNAL);
        if (i % 5 == 0) usleep(1000);
        mri_metrics_server_close(s);
        for (int k = 0; k < 3; k++) close(fd[k]);
    }
}

static void *many(void *context)
{
    const mri_metrics_server *s = context;
    for (int i = 0; i < 2500; i++) {
        const struct sockaddr_in at = {
            .sin_family = AF_INET, .sin_port = htons(port_of(s)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0) continue;
        connect(fd, (const struct sockaddr *)&at, sizeof at); /* and does not wait for it */
        if (i % 2) send(fd, "GET / HTTP/1.0\n\n", 16, MSG_NOSIGNAL);
        const struct linger reset = {.l_onoff = i % 3 == 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    return NULL;
}

static int open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 4096; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void ten_thousand_connections(void **state)
{
    (void)state;
    pthread_t thread[4];
    page_bytes = 1000;
    const int before = open_files();
    mri_metrics_server *s = open_server("0");
    for (int i = 0; i < 4; i++) MRT_EQ(pthread_create(&thread[i], NULL, many, s), 0);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    works(s);
    mri_metrics_server_close(s);
    MRT_EQ(open_files(), before);
}

/* The system has no file to give: the server waits, and goes on. */
static void no_more_files(void **state)
{
    (void)state;
    struct rlimit usual;
    page_bytes = 100;
    mri_metrics_server *s = open_server("0");
    MRT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const int fd = dial(s), next = dial(s);
    struct rlimit none = usual;
    none.rlim_cur = 1;
    MRT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    close(fd); /* the server gives its end of it up, and cannot take the next one */
    usleep(50000);
    MRT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
    close(next);
    works(s);
    mri_metrics_server_close(s);
}

static void addresses(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",      "x",      ":80",   "65536",   "-1",          "80x", "host:",
                                        "1:2:3", "::1:80", "[]:80", "[::1]80", "99999999999", " 80", "+80"};
    mr_error err;
    mri_metrics_server *s;
    page_bytes = 100;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        err = (mr_error)MR_ERROR_INIT;
        MRT_EQ(mri_metrics_server_open(&s, wrong[i], page, NULL, &err), MR_EINVAL);
        MRT_TRUE(s == NULL);
        MRT_HAS(err.text, "expected PORT, HOST:PORT");
    }
    s = open_server("localhost:0");
    char same[64];
    snprintf(same, sizeof same, "%u", port_of(s));
    mri_metrics_server *other;
    if (strncmp(mri_metrics_server_address(s), "127.", 4) == 0) {
        MRT_EQ(mri_metrics_server_open(&other, same, page, NULL, &err), MR_EEXIST);
        MRT_HAS(err.text, "another program listens there");
    }
    mri_metrics_server_close(s);
    mri_metrics_server_close(open_server(same)); /* it is free again, old connections or not */
    MRT_EQ(mri_metrics_server_open(&s, "203.0.113.1:0", page, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "is no address of this machine");
    const int rc = mri_metrics_server_open(&s, "[::1]:0", page, NULL, &err); /* where there is IPv6 */
    if (rc == MR_OK) assert_memory_equal(mri_metrics_server_address(s), "[::1]:", 6);
    mri_metrics_server_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(noise_and_cut_requests),
        cmocka_unit_test(slow_clients_are_sent_away),
        cmocka_unit_test(one_who_does_not_read),
        cmocka_unit_test(ends_at_once),
        cmocka_unit_test(ten_thousand_connections),
        cmocka_unit_test(no_more_files),
        cmocka_unit_test(addresses),
    };
    return mrt_run(tests);
}
