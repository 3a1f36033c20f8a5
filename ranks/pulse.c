/* ranks/pulse.c: see pulse.h.
 *
 *   event                               becomes the verdict
 *     a BLAME of another rank             at once: it was sent in order, before its sender ended
 *     this rank gives up                  at once
 *     a pulse ends without farewell       after 50 ms without one of the above
 *     nothing for silence_s               the same
 *     a channel's connection ended        after 1 s, unless its pulse says more
 *
 * A process with a verdict sends it to all before any thread here can act on it, and so before this process
 * can end: a rank that ends because of another is not taken for the cause. */
#include "ranks/pulse.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "millrace/ranks.h"
#include "ranks/link.h"

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

enum { GRACE_MS = 50, SUSPECT_MS = 1000, FLUSH_MS = 1000 };

typedef struct peer {
    mri_link link;
    uint64_t heard;
    atomic_bool farewell; /* any thread may read */
} peer;

struct mri_pulse {
    uint32_t rank, size; /* fixed after open, and the next four */
    const char (*hosts)[MRI_WIRE_HOST_BYTES];
    uint64_t beat_ns, silence_ns; /* silence 0: never */
    int poke_fd, wake_fd;         /* eventfds: to the thread, from the verdict */
    pthread_t thread;
    bool has_thread;

    peer *peers;          /* the thread's, and down to pending_due */
    struct pollfd *polls; /* poke_fd, then by rank */
    uint64_t last_turn, next_beat;
    mri_blame pending; /* rank == size: none */
    uint64_t pending_due;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t decided;
    bool closing, gives_up;
    int own_cause;
    char own_text[MRI_WIRE_TEXT_BYTES];
    uint32_t suspects[MR_WORLD_CHANNELS]; /* size: none */
    mri_blame verdict;                    /* fixed once has_ended */
    uint32_t told_by;                     /* the same */

    atomic_bool has_ended; /* release by the thread, acquire by readers */
};

static void ring(int fd)
{
    const uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
}

static bool has_verdict(const mri_pulse *p)
{
    return atomic_load_explicit(&p->has_ended, memory_order_acquire);
}

static uint64_t min_due(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- the verdict ---- */

static void tell_all(mri_pulse *p, const mri_blame *blame)
{
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    const size_t bytes = mri_wire_put_blame(out, blame);
    for (uint32_t r = 0; p->peers && r < p->size; r++)
        if (p->peers[r].link.fd >= 0) (void)mri_link_send(&p->peers[r].link, MRI_WIRE_BLAME, out, bytes);
}

static void settle_locked(mri_pulse *p, const mri_blame *blame, uint32_t told_by)
{
    p->verdict = *blame;
    p->told_by = told_by;
    atomic_store_explicit(&p->has_ended, true, memory_order_release);
    pthread_cond_broadcast(&p->decided);
    ring(p->wake_fd);
}

/* The first one counts. Others hear it first. */
static void decide(mri_pulse *p, const mri_blame *blame, uint32_t told_by)
{
    if (has_verdict(p)) return;
    tell_all(p, blame);
    pthread_mutex_lock(&p->lock);
    settle_locked(p, blame, told_by);
    pthread_mutex_unlock(&p->lock);
}

/* A cause that may have one before it: wait for better knowledge. */
static void consider(mri_pulse *p, uint32_t rank, mri_blame_how how, uint32_t wait_ms)
{
    const uint64_t due = mri_clock_ns() + wait_ms * MS_NS;
    if (p->pending.rank == rank) {
        p->pending_due = min_due(p->pending_due, due);
        p->pending.how = how;
    } else if (p->pending.rank == p->size) {
        p->pending.rank = rank;
        p->pending.how = how;
        p->pending_due = due;
    }
}

static void decide_pending(mri_pulse *p, uint64_t now)
{
    if (p->pending.rank == p->size || now < p->pending_due) return;
    if (p->peers[p->pending.rank].farewell) p->pending.how = MRI_BLAME_LEFT;
    if (p->pending.how == MRI_BLAME_SILENT)
        snprintf(p->pending.text, sizeof p->pending.text, "%.3g s", (double)p->silence_ns / 1e9);
    decide(p, &p->pending, p->rank);
    p->pending.rank = p->size;
}

/* ---- what comes ---- */

static void end_link(mri_pulse *p, uint32_t r)
{
    mri_link_fini(&p->peers[r].link);
    if (!p->peers[r].farewell) consider(p, r, MRI_BLAME_LOST, GRACE_MS);
}

static void take_message(mri_pulse *p, uint32_t r, const mri_wire_head *head, const uint8_t *data)
{
    mri_blame blame;
    if (head->kind == MRI_WIRE_FAREWELL) p->peers[r].farewell = true;
    if (head->kind != MRI_WIRE_BLAME) return;
    if (mri_wire_get_blame(data, head->bytes, p->size, &blame)) decide(p, &blame, r);
    else end_link(p, r);
}

static void read_peer(mri_pulse *p, uint32_t r)
{
    peer *from = &p->peers[r];
    mri_link_flush(&from->link);
    while (from->link.fd >= 0) {
        mri_wire_head head;
        const uint8_t *data;
        const int rc = mri_link_read(&from->link, &head, &data);
        if (rc == MR_EAGAIN) return;
        from->heard = mri_clock_ns();
        if (rc == MR_OK) take_message(p, r, &head, data);
        else end_link(p, r);
    }
}

/* What other threads of this process have asked for. True: to close. */
static bool take_requests(mri_pulse *p)
{
    uint64_t count;
    mri_blame own = {.rank = p->size};
    (void)!read(p->poke_fd, &count, sizeof count);
    pthread_mutex_lock(&p->lock);
    const bool closing = p->closing;
    if (p->gives_up) {
        own.rank = p->rank;
        own.how = MRI_BLAME_GAVE_UP;
        own.cause = p->own_cause;
        memcpy(own.text, p->own_text, sizeof own.text);
        p->gives_up = false;
    }
    uint32_t suspects[MR_WORLD_CHANNELS];
    memcpy(suspects, p->suspects, sizeof suspects);
    for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++) p->suspects[c] = p->size;
    pthread_mutex_unlock(&p->lock);
    if (own.rank != p->size) decide(p, &own, p->rank);
    for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++)
        if (suspects[c] != p->size)
            consider(p, suspects[c], MRI_BLAME_LOST, p->peers[suspects[c]].farewell ? 0 : SUSPECT_MS);
    return closing;
}

/* ---- time ---- */

static void send_beats(mri_pulse *p, uint64_t now)
{
    if (now < p->next_beat) return;
    p->next_beat = now + p->beat_ns;
    for (uint32_t r = 0; r < p->size; r++) {
        mri_link *l = &p->peers[r].link;
        if (l->fd >= 0 && mri_link_is_flushed(l)) (void)mri_link_send(l, MRI_WIRE_BEAT, NULL, 0);
    }
}

/* After everything that has come was read. */
static void look_for_silence(mri_pulse *p, uint64_t now)
{
    for (uint32_t r = 0; p->silence_ns && r < p->size; r++) {
        const peer *of = &p->peers[r];
        if (of->link.fd < 0 || of->farewell || now - of->heard < p->silence_ns || of->heard > now) continue;
        consider(p, r, MRI_BLAME_SILENT, GRACE_MS);
    }
}

/* Time in which this thread should have run and did not (the process was stopped, or its machine slept) is
 * nobody else's silence: they may have been stopped with it. */
static void forgive(mri_pulse *p, uint64_t now)
{
    const uint64_t gap = now - p->last_turn;
    if (gap > 2 * p->beat_ns) {
        for (uint32_t r = 0; r < p->size; r++) p->peers[r].heard += gap;
        if (p->pending.how == MRI_BLAME_SILENT) p->pending.rank = p->size;
    }
    p->last_turn = now;
}

static int next_wait_ms(const mri_pulse *p, uint64_t now)
{
    uint64_t due = p->next_beat;
    if (p->pending.rank != p->size) due = min_due(due, p->pending_due);
    return due <= now ? 0 : (int)((due - now) / MS_NS + 1);
}

static void turn(mri_pulse *p)
{
    p->polls[0] = (struct pollfd){.fd = p->poke_fd, .events = POLLIN};
    for (uint32_t r = 0; r < p->size; r++)
        p->polls[r + 1] =
            (struct pollfd){.fd = p->peers[r].link.fd, .events = mri_link_events(&p->peers[r].link)};
    (void)poll(p->polls, p->size + 1, next_wait_ms(p, mri_clock_ns()));
    forgive(p, mri_clock_ns());
    for (uint32_t r = 0; r < p->size; r++)
        if (p->polls[r + 1].revents) read_peer(p, r);
}

/* ---- the end ---- */

static bool is_delivered(mri_link *l)
{
    int waiting = 0;
    struct pollfd one = {.fd = l->fd, .events = POLLRDHUP};
    mri_link_flush(l);
    if (l->broken || poll(&one, 1, 0) > 0) return true; /* nobody is there to hear it */
    if (!mri_link_is_flushed(l)) return false;
    return ioctl(l->fd, SIOCOUTQ, &waiting) != 0 || waiting == 0;
}

/* Closed with beats unread the kernel resets the connection, which can overtake the last message: wait until
 * the other host has it. */
static void say_farewell(mri_pulse *p)
{
    const uint64_t due = mri_clock_ns() + FLUSH_MS * MS_NS;
    for (uint32_t r = 0; r < p->size; r++) {
        mri_link *l = &p->peers[r].link;
        if (l->fd < 0) continue;
        if (!has_verdict(p)) (void)mri_link_send(l, MRI_WIRE_FAREWELL, NULL, 0);
    }
    for (uint32_t r = 0; r < p->size; r++)
        while (p->peers[r].link.fd >= 0 && !is_delivered(&p->peers[r].link) && mri_clock_ns() < due)
            (void)poll(NULL, 0, 1);
}

static void *pulse_main(void *arg)
{
    mri_pulse *p = arg;
    for (;;) {
        turn(p);
        if (take_requests(p)) break;
        const uint64_t now = mri_clock_ns();
        send_beats(p, now);
        if (has_verdict(p)) {
            p->pending.rank = p->size;
            continue;
        }
        look_for_silence(p, now);
        decide_pending(p, now);
    }
    say_farewell(p);
    return NULL;
}

/* ---- calls from other threads ---- */

int mri_pulse_wake_fd(const mri_pulse *p) { return p->wake_fd; }

bool mri_pulse_has_ended(const mri_pulse *p) { return has_verdict(p); }

bool mri_pulse_blames(const mri_pulse *p, uint32_t *rank, mri_blame_how *how)
{
    if (!has_verdict(p)) return false;
    *rank = p->verdict.rank;
    *how = p->verdict.how;
    return true;
}

static int verdict(const mri_pulse *p, const char *doing, mr_error *err)
{
    const mri_blame *v = &p->verdict;
    char who[MRI_WIRE_HOST_BYTES + 48], reported[32] = "";
    if (v->rank == p->rank) snprintf(who, sizeof who, "this rank, %u,", v->rank);
    else snprintf(who, sizeof who, "rank %u (host %.63s)", v->rank, p->hosts[v->rank]);
    if (p->told_by != p->rank && p->told_by != v->rank)
        snprintf(reported, sizeof reported, " (as rank %u says)", p->told_by);
    switch (v->how) {
    case MRI_BLAME_GAVE_UP:
        return mr_error_set(err, MR_EPEER, "%s gave up%s: %.480s; %s", who, reported, v->text, doing);
    case MRI_BLAME_SILENT:
        return mr_error_set(err, MR_EPEER, "%s was not heard of for %.20s%s; %s", who, v->text, reported,
                            doing);
    case MRI_BLAME_LEFT:
        return mr_error_set(err, MR_EPEER, "%s has ended, and others still wait for it%s; %s", who, reported,
                            doing);
    case MRI_BLAME_LOST: break;
    }
    return mr_error_set(err, MR_EPEER, "%s ended without a word%s; %s", who, reported, doing);
}

int mri_pulse_verdict(mri_pulse *p, const char *doing, mr_error *err)
{
    const int rc = verdict(p, doing, err);
    if (err && p->verdict.rank != p->rank) err->host = p->verdict.cause;
    return rc;
}

void mri_pulse_give_up(mri_pulse *p, int cause, const char *text)
{
    pthread_mutex_lock(&p->lock);
    if (!has_verdict(p) && !p->has_thread) {
        mri_blame own = {.rank = p->rank, .how = MRI_BLAME_GAVE_UP, .cause = cause};
        snprintf(own.text, sizeof own.text, "%s", text);
        settle_locked(p, &own, p->rank);
    } else if (!has_verdict(p) && !p->gives_up) {
        snprintf(p->own_text, sizeof p->own_text, "%s", text);
        p->own_cause = cause;
        p->gives_up = true;
        ring(p->poke_fd);
    }
    while (!has_verdict(p)) pthread_cond_wait(&p->decided, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

bool mri_pulse_has_left(const mri_pulse *p, uint32_t rank) { return atomic_load(&p->peers[rank].farewell); }

void mri_pulse_suspect(mri_pulse *p, uint32_t channel, uint32_t rank)
{
    pthread_mutex_lock(&p->lock);
    p->suspects[channel] = rank;
    pthread_mutex_unlock(&p->lock);
    ring(p->poke_fd);
}

/* ---- open, close ---- */

static void destroy(mri_pulse *p)
{
    for (uint32_t r = 0; p->peers && r < p->size; r++) mri_link_fini(&p->peers[r].link);
    if (p->poke_fd >= 0) close(p->poke_fd);
    if (p->wake_fd >= 0) close(p->wake_fd);
    pthread_cond_destroy(&p->decided);
    pthread_mutex_destroy(&p->lock);
    free(p->peers);
    free(p->polls);
    free(p);
}

static mri_pulse *create(uint32_t rank, uint32_t size, const char (*hosts)[MRI_WIRE_HOST_BYTES],
                         double silence_s)
{
    mri_pulse *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->rank = rank;
    p->size = size;
    p->hosts = hosts;
    p->silence_ns = (uint64_t)(silence_s * 1e9);
    p->beat_ns = p->silence_ns && p->silence_ns < 5 * SECOND_NS ? p->silence_ns / 5 : SECOND_NS;
    p->pending.rank = size;
    for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++) p->suspects[c] = size;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->decided, NULL);
    p->poke_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    p->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return p;
}

static int start(mri_pulse *p, const int *fds, const mri_seal *seals, mr_error *err)
{
    if (p->poke_fd < 0 || p->wake_fd < 0) return mr_error_sys(err, errno, "no descriptor for the pulse");
    if (p->size == 1) return MR_OK;
    p->peers = calloc(p->size, sizeof *p->peers);
    p->polls = calloc(p->size + 1, sizeof *p->polls);
    p->last_turn = p->next_beat = mri_clock_ns();
    int rc = p->peers && p->polls ? MR_OK : MR_ENOMEM;
    for (uint32_t r = 0; p->peers && r < p->size; r++) {
        mri_link_init(&p->peers[r].link, fds[r], MRI_WIRE_SMALL_BYTES);
        p->peers[r].link.seal = seals[r];
        p->peers[r].heard = p->last_turn;
        if (rc == MR_OK && fds[r] >= 0) rc = mri_link_reserve(&p->peers[r].link);
    }
    if (rc != MR_OK) return mr_error_set(err, rc, "no memory for the pulse of %u ranks", p->size);
    rc = mri_thread_start(&p->thread, "mr-pulse", pulse_main, p);
    p->has_thread = rc == MR_OK;
    return rc == MR_OK ? rc : mr_error_set(err, rc, "no thread for the pulse");
}

int mri_pulse_open(mri_pulse **out, uint32_t rank, uint32_t size, const char (*hosts)[MRI_WIRE_HOST_BYTES],
                   const int *fds, const mri_seal *seals, double silence_s, mr_error *err)
{
    mri_pulse *p = create(rank, size, hosts, silence_s);
    const int rc = p ? start(p, fds, seals, err) : mr_error_set(err, MR_ENOMEM, "no memory for the pulse");
    const bool owned = p && (p->peers || size == 1);
    for (uint32_t r = 0; !owned && r < size; r++)
        if (fds[r] >= 0) close(fds[r]);
    if (rc != MR_OK && p) destroy(p);
    if (rc == MR_OK) *out = p;
    return rc;
}

void mri_pulse_close(mri_pulse *p)
{
    if (!p) return;
    if (p->has_thread) {
        pthread_mutex_lock(&p->lock);
        p->closing = true;
        pthread_mutex_unlock(&p->lock);
        ring(p->poke_fd);
        pthread_join(p->thread, NULL);
    }
    destroy(p);
}
