/* tests/ranks/test_tls.c: TLS between two ends in one thread, with a relay between them that the test can
 * read and change; then worlds whose ranks disagree about it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ranks/tls.h"
#include "worlds.h"

#define SECRET "0123456789abcdef"

enum { RELAY_BYTES = 4 << 20, HEAD_BYTES = 24, RECORD_BYTES = 16384 };

typedef struct line { /* caller | relay[0] ... relay[1] | called */
    mri_tls *caller, *called;
    int ends[2], relay[2];
    uint8_t *seen; /* all bytes of both directions */
    size_t seen_bytes;
    size_t flip_at; /* the byte of seen that is altered; SIZE_MAX: none */
} line;

static void socket_pair(int out[2])
{
    MRT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, out), 0);
    for (int k = 0; k < 2; k++) MRT_EQ(fcntl(out[k], F_SETFL, O_NONBLOCK), 0);
}

static void open_line(line *l, const char *caller_key, const char *called_key)
{
    mr_error err = MR_ERROR_INIT;
    int left[2], right[2];
    memset(l, 0, sizeof *l);
    l->flip_at = SIZE_MAX;
    l->seen = malloc(RELAY_BYTES);
    socket_pair(left);
    socket_pair(right);
    l->ends[0] = left[0];
    l->relay[0] = left[1];
    l->relay[1] = right[0];
    l->ends[1] = right[1];
    MRT_OK(mri_tls_open(&l->caller, l->ends[0], true, (const uint8_t *)caller_key, &err), &err);
    MRT_OK(mri_tls_open(&l->called, l->ends[1], false, (const uint8_t *)called_key, &err), &err);
}

static void close_line(line *l)
{
    mri_tls_close(l->caller);
    mri_tls_close(l->called);
    for (int k = 0; k < 2; k++) {
        close(l->ends[k]);
        close(l->relay[k]);
    }
    free(l->seen);
}

/* Moves what has come, in both directions. Returns the bytes. */
static size_t pass_on(line *l)
{
    size_t moved = 0;
    for (int from = 0; from < 2; from++) {
        uint8_t *at = l->seen + l->seen_bytes;
        const ssize_t n = recv(l->relay[from], at, 32768, MSG_DONTWAIT);
        if (n <= 0) continue;
        MRT_TRUE(l->seen_bytes + (size_t)n + 32768 < RELAY_BYTES);
        if (l->flip_at >= l->seen_bytes && l->flip_at < l->seen_bytes + (size_t)n) l->seen[l->flip_at] ^= 1;
        l->seen_bytes += (size_t)n;
        MRT_EQ(send(l->relay[!from], at, (size_t)n, MSG_NOSIGNAL), n);
        moved += (size_t)n;
    }
    return moved;
}

/* Until both are ready or one refuses; the first refusal. */
static int greet(line *l, const char **why)
{
    short events;
    for (;;) {
        const int caller = mri_tls_greet(l->caller, &events, why);
        const int called =
            caller == MR_OK || caller == MR_EAGAIN ? mri_tls_greet(l->called, &events, why) : caller;
        if (caller != MR_OK && caller != MR_EAGAIN) return caller;
        if (called != MR_EAGAIN && called != MR_OK) return called;
        if (caller == MR_OK && called == MR_OK) return MR_OK;
        MRT_TRUE(pass_on(l) > 0);
    }
}

static const char key_a[MRI_KEY_BYTES + 1] = "a key of thirty-two bytes, say a";
static const char key_b[MRI_KEY_BYTES + 1] = "a key of thirty-two bytes, say b";

/* Sends `bytes` of text from `from` to `to`; returns the bytes that came before an error of to. */
static size_t send_text(line *l, mri_tls *from, mri_tls *to, const char *text, size_t bytes)
{
    char *all = malloc(bytes), *got = calloc(1, bytes);
    size_t sent = 0, have = 0;
    bool failed = false;
    for (size_t i = 0; i < bytes; i++) all[i] = text[i % strlen(text)];
    while (have < bytes && !failed) {
        const size_t head = sent < HEAD_BYTES && HEAD_BYTES < bytes ? HEAD_BYTES - sent : 0;
        const struct iovec out[2] = {{all + sent, head}, {all + sent + head, bytes - sent - head}};
        const ssize_t gone = sent < bytes ? mri_tls_send(from, out, 2) : 0;
        MRT_TRUE(gone >= 0 || errno == EAGAIN);
        if (gone > 0) sent += (size_t)gone;
        pass_on(l);
        const struct iovec in = {got + have, bytes - have};
        const ssize_t n = mri_tls_receive(to, &in, 1);
        failed = n == 0 || (n < 0 && errno != EAGAIN);
        if (n > 0) have += (size_t)n;
    }
    MRT_TRUE(memcmp(all, got, have) == 0);
    free(all);
    free(got);
    return have;
}

static void bytes_arrive_and_nobody_between_reads_them(void **state)
{
    static const char text[] = "gradients of layer four, which nobody else may read; ";
    const char *why = "";
    line l;
    (void)state;
    open_line(&l, key_a, key_a);
    MRT_EQ(greet(&l, &why), MR_OK);
    MRT_EQ(send_text(&l, l.caller, l.called, text, 300000), 300000);
    MRT_EQ(send_text(&l, l.called, l.caller, text, 700001), 700001);
    MRT_EQ(send_text(&l, l.caller, l.called, text, 1), 1);
    MRT_TRUE(l.seen_bytes > 1000000);
    for (size_t i = 0; i + 8 <= l.seen_bytes; i++)
        if (memcmp(l.seen + i, "gradient", 8) == 0) fail_msg("readable at byte %zu", i);
    close_line(&l);
}

static void another_key_is_refused(void **state)
{
    const char *why = "";
    line l;
    (void)state;
    open_line(&l, key_a, key_b);
    MRT_EQ(greet(&l, &why), MR_EPEER);
    MRT_TRUE(strstr(why, "MILLRACE_TLS") != NULL);
    close_line(&l);
}

static void an_end_without_tls_is_refused(void **state)
{
    static const char head[] = "MrRb is no record of TLS";
    const char *why = "";
    short events;
    line l;
    (void)state;
    open_line(&l, key_a, key_a);
    MRT_EQ(send(l.relay[1], head, strlen(head), MSG_NOSIGNAL), strlen(head));
    MRT_EQ(mri_tls_greet(l.called, &events, &why), MR_EPEER);
    MRT_TRUE(strstr(why, "set MILLRACE_TLS to 1 for all ranks or for none") != NULL);
    close(l.relay[0]);
    l.relay[0] = -1;
    MRT_EQ(mri_tls_greet(l.caller, &events, &why), MR_EPEER);
    MRT_TRUE(strstr(why, "ended") != NULL);
    close_line(&l);
}

/* No byte that was altered is given on: what came before it is right, then there is an error, for good. */
static void an_altered_byte_ends_it(void **state)
{
    static const size_t places[] = {0, 1, 3, 5, 40, 5000, 20000, 99999};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(places); k++) {
        const char *why = "";
        char byte;
        line l;
        (void)state;
        open_line(&l, key_a, key_a);
        MRT_EQ(greet(&l, &why), MR_OK);
        l.flip_at = l.seen_bytes + places[k];
        const size_t came = send_text(&l, l.caller, l.called, "0123456789abcdef", 200000);
        MRT_TRUE(came <= places[k] && (came == 0 || (came - HEAD_BYTES) % RECORD_BYTES == 0));
        const struct iovec in = {&byte, 1};
        MRT_EQ(mri_tls_receive(l.called, &in, 1), -1);
        MRT_TRUE(!mri_tls_has_more(l.called));
        close_line(&l);
    }
}

static void it_needs_a_secret(void **state)
{
    mr_error err = MR_ERROR_INIT;
    mri_secret none = {.set = false}, some = {.set = true};
    bool wanted = true;
    (void)state;
    unsetenv("MILLRACE_TLS");
    MRT_OK(mri_tls_wanted(&wanted, false, &none, &err), &err);
    MRT_TRUE(!wanted);
    MRT_EQ(mri_tls_wanted(&wanted, true, &none, &err), MR_EINVAL);
    MRT_TRUE(strstr(err.text, "MILLRACE_SECRET_FILE") != NULL);
    setenv("MILLRACE_TLS", "yes", 1);
    MRT_EQ(mri_tls_wanted(&wanted, false, &some, &err), MR_EINVAL);
    MRT_TRUE(strstr(err.text, "MILLRACE_TLS is \"yes\": expected 0 or 1") != NULL);
    setenv("MILLRACE_TLS", "1", 1);
    MRT_OK(mri_tls_wanted(&wanted, false, &some, &err), &err);
    MRT_TRUE(wanted);
    unsetenv("MILLRACE_TLS");
}

/* what: the rank that asks for TLS, or size for all. */
static void gathers(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    const uint32_t who = *(const uint32_t *)what;
    uint32_t all[MRT_RANKS_MOST];
    mr_error err = MR_ERROR_INIT;
    mr_world *world = NULL;
    mr_world_config cfg;
    mr_world_defaults(&cfg);
    cfg.rank = rank;
    cfg.size = size;
    cfg.meet = w->meet;
    cfg.secret = SECRET;
    cfg.secret_bytes = strlen(SECRET);
    cfg.tls = rank == who || who == size;
    int rc = mr_world_open(&world, &cfg, &err);
    MRT_CHECK(&w->ranks[slot], rc != MR_OK || mr_world_encrypts(world) == cfg.tls);
    if (rc == MR_OK) rc = mr_world_gather(world, 0, &rank, sizeof rank, all, &err);
    mrt_keep(&w->ranks[slot], rc, &err);
    mr_world_close(world);
}

static void all_ranks_or_none(void **state)
{
    (void)state;
    for (uint32_t who = 0; who < 3; who++) {
        mrt_worlds *w = mrt_worlds_new();
        mrt_start_all(w, 2, gathers, &who);
        mrt_wait_all(w, 2);
        for (uint32_t r = 0; r < 2; r++) {
            mrt_ended_well(w, r);
            MRT_TRUE((w->ranks[r].rc == MR_OK) == (who == 2));
            if (who < 2 && !strstr(w->ranks[r].text, "MILLRACE_TLS"))
                fail_msg("rank %u: %s", r, w->ranks[r].text);
        }
        mrt_worlds_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_and_nobody_between_reads_them),
        cmocka_unit_test(another_key_is_refused),
        cmocka_unit_test(an_end_without_tls_is_refused),
        cmocka_unit_test(an_altered_byte_ends_it),
        cmocka_unit_test(it_needs_a_secret),
        cmocka_unit_test(all_ranks_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
