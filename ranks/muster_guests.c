/* ranks/muster_guests.c: see muster.h. */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ranks/muster.h"

enum {
    STRANGER_S = 5,
    TURN_MS = 200,
    ACCEPTS_MOST = 16, /* before those who are there have their turn */
};

int mri_guests_init(mri_guests *g, const uint8_t key[MRI_WIRE_KEY_BYTES], const mri_secret *secret,
                    mr_error *err)
{
    *g = (mri_guests){.listeners = {-1, -1}, .secret = secret};
    mri_door_init(&g->door);
    memcpy(g->key, key, sizeof g->key);
    g->guest = calloc(MRI_GUESTS_MOST, sizeof *g->guest);
    g->polls = calloc(MRI_GUESTS_MOST + 3 + MRI_PROBES_MOST + 1, sizeof *g->polls);
    g->loss = calloc(MRI_LOSSES_MOST, sizeof *g->loss);
    if (!g->guest || !g->polls || !g->loss) return mr_error_set(err, MR_ENOMEM, "no memory for a muster");
    return MR_OK;
}

void mri_guests_fini(mri_guests *g)
{
    while (g->count) mri_guests_drop(g, g->count - 1);
    for (int k = 0; k < 2; k++)
        if (g->listeners[k] >= 0) close(g->listeners[k]);
    free(g->guest);
    free(g->polls);
    free(g->loss);
    mri_door_fini(&g->door);
    *g = (mri_guests){.listeners = {-1, -1}};
}

static void count_here(mri_guests *g)
{
    uint32_t here = 0;
    for (uint32_t k = 0; k < g->count; k++) here += g->guest[k].here;
    atomic_store(&g->here, here);
}

void mri_guests_drop(mri_guests *g, uint32_t k)
{
    mri_link_fini(&g->guest[k].link);
    memmove(&g->guest[k], &g->guest[k + 1], (--g->count - k) * sizeof *g->guest);
    count_here(g);
}

static void turn_away_silent(mri_guests *g, uint32_t k)
{
    if (!g->secret->set) return;
    g->guest[k].link.refusal = MRI_REFUSED_SILENT;
    mri_door_turn_away(&g->door, &g->guest[k].link);
}

/* One more may come: strangers never take the room of those who are known, nor of one another for long. */
static void make_room(mri_guests *g)
{
    uint32_t strangers = 0, oldest = 0;
    for (uint32_t k = g->count; k-- > 0;)
        if (!g->guest[k].here) {
            strangers++;
            oldest = k;
        }
    if (strangers < MRI_STRANGERS_MOST) return;
    turn_away_silent(g, oldest);
    mri_guests_drop(g, oldest);
}

static void accept_all(mri_guests *g, int listener)
{
    int fd = -1, sys_errno = 0;
    for (uint32_t k = 0; k < ACCEPTS_MOST && (fd = mri_link_accept(listener, &sys_errno)) >= 0; k++) {
        make_room(g);
        if (g->count == MRI_GUESTS_MOST) {
            close(fd);
            continue;
        }
        mri_guest *one = &g->guest[g->count++];
        *one = (mri_guest){.due = mri_clock_ns() + STRANGER_S * UINT64_C(1000000000)};
        mri_link_host(&one->link, fd, MRI_WIRE_SMALL_BYTES, g->secret);
    }
    if (sys_errno) (void)poll(NULL, 0, TURN_MS); /* no descriptors: it waits in the queue */
}

static void send_away(mri_guest *one, int code, const char *why)
{
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    (void)mri_link_send(&one->link, MRI_WIRE_OTHER, out, mri_wire_put_reason(out, code, why));
    (void)shutdown(one->link.fd, SHUT_WR);
}

static void welcome(mri_guests *g, mri_guest *one)
{
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    mri_wire_welcome w = {.left_ms = 0};
    memcpy(w.key, g->key, sizeof w.key);
    (void)mri_link_send(&one->link, MRI_WIRE_WELCOME, out, mri_wire_put_welcome(out, &w));
}

static bool has_gone(const mri_guest *one)
{
    struct pollfd p = {.fd = one->link.fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0;
}

/* One process asks at several places, and this one may be two of them. */
static bool is_here_already(const mri_guests *g, uint32_t k)
{
    for (uint32_t i = 0; i < g->count; i++)
        if (i != k && g->guest[i].here && g->guest[i].who.token == g->guest[k].who.token &&
            !has_gone(&g->guest[i]))
            return true;
    return false;
}

void mri_guests_lost(mri_guests *g, const char *host)
{
    mri_loss *one = &g->loss[g->losses++ % MRI_LOSSES_MOST];
    one->at_ns = mri_clock_ns();
    snprintf(one->host, sizeof one->host, "%s", host);
}

/* New processes of a host that loses them again and again; processes of the run that come back are welcome,
 * and all while there are too few. */
static bool is_left_out(const mri_guests *g, const mri_wire_muster *who, char *why, size_t why_bytes)
{
    const uint64_t now = mri_clock_ns(), count = mri_min_u64(g->losses, MRI_LOSSES_MOST);
    uint32_t lost = 0;
    const bool enough = g->between || 1 + atomic_load(&g->here) >= g->min;
    const bool of_this_run = who->progress && memcmp(who->run, g->run, sizeof g->run) == 0;
    if (!g->leave_out || of_this_run || !enough) return false;
    for (uint64_t i = 0; i < count; i++)
        lost += now - g->loss[i].at_ns < g->forget_ns && strcmp(g->loss[i].host, who->host) == 0;
    snprintf(why, why_bytes,
             "host %.64s has lost %u processes of the run in %.3g s and is left out for a while", who->host,
             lost, (double)g->forget_ns / 1e9);
    return lost >= g->leave_out;
}

/* A guest asks again every few seconds, because its host may have been stopped. That is no reason to wait for
 * others once more: the muster would never end. */
static void renew_for_new(mri_guests *g, uint64_t token)
{
    for (uint32_t i = 0; i < g->known_count; i++)
        if (g->known[i] == token) return;
    if (g->known_count < MRI_ARRAY_COUNT(g->known)) g->known[g->known_count++] = token;
    g->changed_ns = mri_clock_ns();
}

/* With a state that does not go on here. Only members of a run know its number. */
static bool is_of_another_run(const mri_guests *g, const mri_wire_muster *who)
{
    return who->progress && mri_wire_has_run(g->run) && memcmp(who->run, g->run, sizeof g->run) != 0;
}

/* False: it must go. */
static bool take_message(mri_guests *g, uint32_t k, bool host)
{
    mri_guest *one = &g->guest[k];
    mri_wire_head head;
    const uint8_t *data;
    char why[MRI_WIRE_TEXT_BYTES];
    mri_link_flush(&one->link);
    const int rc = mri_link_read(&one->link, &head, &data);
    if (rc == MR_EAGAIN) return true;
    if (rc == MR_EFORMAT && g->secret->set) mri_door_turn_away(&g->door, &one->link);
    if (rc != MR_OK || one->here || (head.kind != MRI_WIRE_MUSTER && head.kind != MRI_WIRE_CALL) ||
        head.version != MRI_WIRE_VERSION || !mri_wire_get_muster(data, head.bytes, &one->who))
        return false;
    if (memcmp(one->who.key, g->key, sizeof g->key) != 0) {
        send_away(one, MR_ENOENT, "another job meets there");
        return false;
    }
    if (is_of_another_run(g, &one->who)) {
        send_away(one, MR_EEXIST, "another run of this job has that place");
        return false;
    }
    if (head.kind == MRI_WIRE_CALL && g->between) atomic_store(&g->called, true);
    if (!host || head.kind == MRI_WIRE_CALL || is_here_already(g, k)) {
        send_away(one, MR_EAGAIN, "it looks for the others itself");
        return false;
    }
    if (is_left_out(g, &one->who, why, sizeof why)) {
        send_away(one, MR_EAGAIN, why);
        return false;
    }
    one->here = true;
    renew_for_new(g, one->who.token);
    welcome(g, one);
    count_here(g);
    return true;
}

void mri_guests_serve(mri_guests *g, bool host, struct pollfd *extra, uint32_t more, int wait_ms)
{
    const uint32_t polled = g->count;
    struct pollfd *guests = g->polls + 2, *others = guests + polled;
    for (int k = 0; k < 2; k++) g->polls[k] = (struct pollfd){.fd = g->listeners[k], .events = POLLIN};
    for (uint32_t k = 0; k < polled; k++)
        guests[k] = (struct pollfd){.fd = g->guest[k].link.fd, .events = mri_link_events(&g->guest[k].link)};
    if (more) memcpy(others, extra, more * sizeof *extra);
    const int ready = poll(g->polls, 2 + polled + more, wait_ms);
    for (uint32_t k = 0; k < more; k++) extra[k].revents = ready > 0 ? others[k].revents : 0;
    const uint64_t now = mri_clock_ns();
    for (uint32_t k = polled; k-- > 0;) { /* from the end: drop() moves those behind */
        const bool late = !g->guest[k].here && now >= g->guest[k].due;
        if (late) turn_away_silent(g, k);
        if (late || (ready > 0 && guests[k].revents && !take_message(g, k, host))) mri_guests_drop(g, k);
    }
    for (int k = 0; k < 2; k++)
        if (ready > 0 && g->listeners[k] >= 0 && g->polls[k].revents) accept_all(g, g->listeners[k]);
}

/* The connection of one that has gone may still look whole. */
void mri_guests_look(mri_guests *g)
{
    for (uint32_t k = g->count; k-- > 0;)
        if (!g->guest[k].here || has_gone(&g->guest[k])) mri_guests_drop(g, k);
}

void mri_guests_dismiss(mri_guests *g)
{
    for (uint32_t k = g->count; k-- > 0;) {
        if (!g->guest[k].here) continue;
        send_away(&g->guest[k], MR_EAGAIN, "it looks for the others itself");
        mri_guests_drop(g, k);
    }
}
