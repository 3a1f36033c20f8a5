/* ranks/meet_host.c: rank 0 while the others come. One poll() over the listener and all who have connected;
 * nobody is waited for alone, so one that says nothing, or nonsense, holds nobody up. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ranks/meet.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    STRANGERS_MOST = 64, /* in addition to the ranks */
    SILENT_S = 20,       /* until one that has not said who it is must go */
    LEAVING_S = 2,       /* for it to read why */
    REFUSAL_S = 1,       /* for others to come who are to hear it too */
};

typedef enum guest_state {
    GUEST_STRANGER,
    GUEST_WELCOME, /* has said its rank */
    GUEST_HERE,    /* and its card is right */
    GUEST_WRONG,   /* of this job, but the world cannot be with it */
    GUEST_LEAVING, /* has got the reason why it cannot be in this world */
} guest_state;

typedef struct guest {
    mri_link link;
    guest_state state;
    mri_wire_hello hello;
    uint64_t due; /* strangers and leaving ones go then */
} guest;

typedef struct hosting {
    mri_meeting *m;
    guest *guests; /* [0, count), in no order */
    uint32_t count, room;
    struct pollfd *polls; /* the listener's first */
    uint64_t due, refuse_at;
    mr_error why;  /* code 0: nothing is wrong yet */
    bool reported; /* everybody who had come */
} hosting;

static void drop(hosting *h, uint32_t k)
{
    mri_link_fini(&h->guests[k].link);
    h->guests[k] = h->guests[--h->count];
}

/* The first problem is kept; the others have a moment to come and hear it. */
MR_PRINTF(3, 4) static void refuse(hosting *h, int code, const char *format, ...)
{
    if (h->why.code) return;
    char text[sizeof h->why.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mr_error_set(&h->why, code, "%s", text);
    h->refuse_at = mri_min_u64(mri_clock_ns() + REFUSAL_S * SECOND_NS, h->due);
}

static void say_other(guest *g, const char *text)
{
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    (void)mri_link_send(&g->link, MRI_WIRE_OTHER, out, mri_wire_put_reason(out, MR_EEXIST, text));
    (void)shutdown(g->link.fd, SHUT_WR);
    g->state = GUEST_LEAVING;
    g->due = mri_clock_ns() + LEAVING_S * SECOND_NS;
}

static guest *find_rank(hosting *h, uint32_t rank)
{
    for (uint32_t k = 0; k < h->count; k++)
        if ((h->guests[k].state == GUEST_WELCOME || h->guests[k].state == GUEST_HERE) &&
            h->guests[k].hello.rank == rank)
            return &h->guests[k];
    return NULL;
}

/* Its connection has ended and nobody has looked yet. */
static bool has_gone(const guest *g)
{
    struct pollfd one = {.fd = g->link.fd, .events = POLLRDHUP};
    return poll(&one, 1, 0) > 0;
}

static void take_second(hosting *h, guest *g, guest *first)
{
    if (first->hello.token == g->hello.token) {
        say_other(g, "this process is here already");
        return;
    }
    g->state = GUEST_WRONG;
    refuse(h, MR_EINVAL, "two processes say that they are rank %u: one on host %s, one on host %s",
           g->hello.rank, first->hello.host, g->hello.host);
}

static void say_why(hosting *h, guest *g)
{
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    char text[MRI_WIRE_TEXT_BYTES];
    snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, h->why.text);
    (void)mri_link_send(&g->link, MRI_WIRE_REFUSED, out, mri_wire_put_reason(out, h->why.code, text));
    (void)shutdown(g->link.fd, SHUT_WR);
    g->state = GUEST_LEAVING;
    g->due = mri_clock_ns() + LEAVING_S * SECOND_NS;
}

static void welcome(hosting *h, guest *g)
{
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    mri_wire_welcome w = {.left_ms = 0};
    const uint64_t now = mri_clock_ns();
    memcpy(w.key, h->m->place.key, sizeof w.key);
    if (h->due > now) w.left_ms = (uint32_t)mri_min_u64((h->due - now) / 1000000, UINT32_MAX);
    g->state = GUEST_WELCOME;
    g->link.most = MRI_WIRE_CARD_BYTES;
    (void)mri_link_send(&g->link, MRI_WIRE_WELCOME, out, mri_wire_put_welcome(out, &w));
}

static void take_hello(hosting *h, guest *g)
{
    const uint32_t size = h->m->cfg->size, rank = g->hello.rank;
    if (memcmp(g->hello.key, h->m->place.key, sizeof g->hello.key) != 0) {
        say_other(g, "another job meets there");
        return;
    }
    if (h->reported) {
        say_why(h, g);
        return;
    }
    if (g->hello.size != size || rank >= size) {
        g->state = GUEST_WRONG;
        refuse(h, MR_EINVAL, "%s says that there are %u ranks, %s says %u",
               mri_meet_name(rank, g->hello.host), g->hello.size, mri_meet_name(0, h->m->host), size);
        return;
    }
    guest own = {.hello = {.token = h->m->token}};
    memcpy(own.hello.host, h->m->host, sizeof own.hello.host);
    guest *first = rank == 0 ? &own : find_rank(h, rank);
    if (first && first != &own && has_gone(first)) {
        mri_link_fini(&first->link); /* dropped when its turn comes */
        first->state = GUEST_LEAVING;
        first->due = 0;
        first = NULL;
    }
    if (first) take_second(h, g, first);
    else welcome(h, g);
}

static void take_card(hosting *h, guest *g, const void *card, size_t bytes)
{
    char own[80], other[80];
    const mr_world_config *cfg = h->m->cfg;
    g->link.most = MRI_WIRE_SMALL_BYTES;
    g->state = GUEST_HERE;
    if (!mri_wire_cards_differ(cfg->card, cfg->card_bytes, card, bytes, own, other)) return;
    refuse(h, MR_EINVAL, "%s has %s, %s has %s", mri_meet_name(g->hello.rank, g->hello.host), other,
           mri_meet_name(0, h->m->host), own);
}

/* False: it must go. */
static bool take_message(hosting *h, guest *g, const mri_wire_head *head, const uint8_t *data)
{
    if (head->version != MRI_WIRE_VERSION) {
        char text[128];
        snprintf(text, sizeof text, "another version of millrace meets there: it speaks %u, this one %u",
                 MRI_WIRE_VERSION, head->version);
        say_other(g, text);
        return true;
    }
    if (g->state == GUEST_STRANGER && head->kind == MRI_WIRE_HELLO) {
        if (!mri_wire_get_hello(data, head->bytes, &g->hello)) return false;
        take_hello(h, g);
        return true;
    }
    if (g->state != GUEST_WELCOME || head->kind != MRI_WIRE_CARD) return g->state >= GUEST_WRONG;
    take_card(h, g, data, head->bytes);
    return true;
}

static bool serve(hosting *h, guest *g)
{
    mri_wire_head head;
    const uint8_t *data;
    if (g->link.fd < 0) return false;
    mri_link_flush(&g->link);
    for (;;) {
        const int rc = mri_link_read(&g->link, &head, &data);
        if (rc == MR_EAGAIN) return true;
        if (rc == MR_EFORMAT && h->m->secret.set) mri_door_turn_away(&h->m->door, &g->link);
        if (rc != MR_OK || !take_message(h, g, &head, data)) return false;
    }
}

static void turn_away_silent(hosting *h, guest *g)
{
    if (!h->m->secret.set || g->link.fd < 0) return;
    g->link.refusal = MRI_REFUSED_SILENT;
    mri_door_turn_away(&h->m->door, &g->link);
}

static void accept_all(hosting *h)
{
    int fd, sys_errno;
    while ((fd = mri_link_accept(h->m->listener, &sys_errno)) >= 0) {
        if (h->count == h->room) { /* the stranger that has been silent longest */
            uint32_t oldest = UINT32_MAX;
            for (uint32_t k = 0; k < h->count; k++)
                if (h->guests[k].state == GUEST_STRANGER || h->guests[k].state == GUEST_LEAVING)
                    if (oldest == UINT32_MAX || h->guests[k].due < h->guests[oldest].due) oldest = k;
            if (oldest == UINT32_MAX) {
                close(fd);
                continue;
            }
            if (h->guests[oldest].state == GUEST_STRANGER) turn_away_silent(h, &h->guests[oldest]);
            drop(h, oldest);
        }
        guest *g = &h->guests[h->count++];
        *g = (guest){.state = GUEST_STRANGER, .due = mri_clock_ns() + SILENT_S * SECOND_NS};
        mri_link_host(&g->link, fd, MRI_WIRE_SMALL_BYTES, &h->m->secret);
    }
    if (!sys_errno || h->why.code) return;
    mr_error_sys(&h->why, sys_errno, "%s cannot accept connections", mri_meet_name(0, h->m->host));
    h->refuse_at = mri_clock_ns();
}

static uint32_t here_count(const hosting *h)
{
    uint32_t here = 0;
    for (uint32_t k = 0; k < h->count; k++) here += h->guests[k].state == GUEST_HERE;
    return here;
}

static uint32_t leaving_count(const hosting *h)
{
    uint32_t leaving = 0;
    for (uint32_t k = 0; k < h->count; k++) leaving += h->guests[k].state == GUEST_LEAVING;
    return leaving;
}

static void refuse_missing(hosting *h)
{
    const uint32_t missing = h->m->cfg->size - 1 - here_count(h);
    char others[48] = "", strangers[160] = "", hint[288];
    uint64_t turned_away;
    uint32_t rank = 1;
    const char *why = mri_door_newest(&h->m->door, &turned_away);
    if (why)
        snprintf(strangers, sizeof strangers, "; %llu connections were turned away: %s",
                 (unsigned long long)turned_away, why);
    for (guest *g; rank < h->m->cfg->size && (g = find_rank(h, rank)) && g->state == GUEST_HERE;) rank++;
    if (missing > 1) snprintf(others, sizeof others, " and %u others", missing - 1);
    refuse(h, MR_EPEER, "rank %u%s did not come to %s within %.3g s%s%s", rank, others,
           mri_meet_name(0, h->m->host), h->m->cfg->meet_s, strangers,
           mri_place_hint(&h->m->place, h->m->cfg->size, true, hint, sizeof hint));
}

static void poll_once(hosting *h)
{
    uint64_t due = h->why.code ? h->refuse_at : h->due;
    h->polls[0] = (struct pollfd){.fd = h->m->listener, .events = POLLIN};
    for (uint32_t k = 0; k < h->count; k++) {
        const guest *g = &h->guests[k];
        h->polls[k + 1] = (struct pollfd){.fd = g->link.fd, .events = mri_link_events(&g->link)};
        if (g->state == GUEST_STRANGER || g->state == GUEST_LEAVING) due = mri_min_u64(due, g->due);
    }
    const uint32_t polled = h->count;
    if (poll(h->polls, polled + 1, mri_meet_wait_ms(due)) < 0) return; /* a signal: again */
    const uint64_t now = mri_clock_ns();
    for (uint32_t k = polled; k-- > 0;) { /* from the end: drop() moves the last one here */
        guest *g = &h->guests[k];
        const bool may_go = g->state == GUEST_STRANGER || g->state == GUEST_LEAVING;
        const bool late = may_go && now >= g->due;
        if (late && g->state == GUEST_STRANGER) turn_away_silent(h, g);
        if (late || (h->polls[k + 1].revents && !serve(h, g))) drop(h, k);
    }
    if (h->polls[0].revents) accept_all(h);
}

/* Everybody of this job hears why, and whoever comes in the next moment. Those who have read it close. */
static int tell_refusal(hosting *h, mr_error *err)
{
    for (uint32_t k = 0; k < h->count; k++)
        if (h->guests[k].state != GUEST_STRANGER && h->guests[k].state != GUEST_LEAVING)
            say_why(h, &h->guests[k]);
    h->reported = true;
    h->refuse_at = mri_clock_ns() + REFUSAL_S * SECOND_NS;
    while (mri_clock_ns() < h->refuse_at && leaving_count(h)) poll_once(h);
    if (err) *err = h->why;
    return h->why.code;
}

static int take_seats(hosting *h, mr_error *err)
{
    mri_meeting *m = h->m;
    m->seats[0] = (mri_wire_seat){.family = 4, .address = {127, 0, 0, 1}, .port = m->port};
    memcpy(m->seats[0].host, m->host, sizeof m->host);
    for (uint32_t k = 0; k < h->count; k++) {
        guest *g = &h->guests[k];
        struct sockaddr_storage from;
        socklen_t bytes = sizeof from;
        if (g->state != GUEST_HERE) continue;
        mri_wire_seat *seat = &m->seats[g->hello.rank];
        if (getpeername(g->link.fd, (struct sockaddr *)&from, &bytes) != 0 ||
            !mri_wire_seat_from(seat, (const struct sockaddr *)&from))
            return mr_error_set(err, MR_EPEER, "%s went away while the ranks met",
                                mri_meet_name(g->hello.rank, g->hello.host));
        seat->port = g->hello.port;
        memcpy(seat->host, g->hello.host, sizeof seat->host);
        m->star[g->hello.rank] = g->link;
        g->link = MRI_LINK_NONE;
    }
    return MR_OK;
}

static int send_roster(mri_meeting *m, mr_error *err)
{
    const uint32_t size = m->cfg->size;
    uint8_t *out = malloc(MRI_WIRE_ROSTER_BYTES);
    bool refused = !out;
    const size_t bytes = out ? mri_wire_put_roster(out, m->nonce, m->seats, size) : 0;
    for (uint32_t r = 1; !refused && r < size; r++)
        refused = mri_link_send(&m->star[r], MRI_WIRE_ROSTER, out, bytes) != MR_OK;
    free(out);
    return refused ? mr_error_set(err, MR_ENOMEM, "no memory for the roster of %u ranks", size) : MR_OK;
}

/* A port may still be held by what has just ended: again, as long as the others would wait. */
static int listen_here(mri_meeting *m, uint64_t due, mr_error *err)
{
    const mri_place *p = &m->place;
    const mri_listen_at at = mri_place_listens(p);
    for (;;) {
        int sys_errno = 0;
        for (uint32_t k = 0; k < p->port_count; k++) {
            m->port = p->ports[k];
            sys_errno = mri_link_listen(&m->listener, at, &m->port);
            if (sys_errno == 0) return MR_OK;
            m->listener = -1;
        }
        if (sys_errno != EADDRINUSE || mri_clock_ns() >= due)
            return mr_error_sys(err, sys_errno, "rank 0 cannot listen at port %u%s", p->ports[0],
                                p->port_count > 1 ? ", nor at the others of this job" : "");
        (void)poll(NULL, 0, 100);
    }
}

int mri_meet_as_host(mri_meeting *m, mr_error *err)
{
    hosting h = {.m = m, .room = m->cfg->size + STRANGERS_MOST};
    h.due = mri_clock_ns() + (uint64_t)(m->cfg->meet_s * 1e9);
    int rc = listen_here(m, h.due, err);
    if (rc != MR_OK) return rc;
    h.guests = calloc(h.room, sizeof *h.guests);
    h.polls = calloc(h.room + 1, sizeof *h.polls);
    const uint32_t all = m->cfg->size - 1;
    if (!h.guests || !h.polls) rc = mr_error_set(err, MR_ENOMEM, "no memory to meet %u ranks", all + 1);
    while (rc == MR_OK && (h.why.code || here_count(&h) < all)) {
        const uint64_t now = mri_clock_ns();
        if (!h.why.code && now >= h.due) {
            refuse_missing(&h);
            h.refuse_at = now;
        }
        if (h.why.code && now >= h.refuse_at) rc = tell_refusal(&h, err);
        else poll_once(&h);
    }
    if (rc == MR_OK) rc = take_seats(&h, err);
    if (rc == MR_OK) rc = send_roster(m, err);
    while (h.count) drop(&h, h.count - 1);
    free(h.guests);
    free(h.polls);
    return rc;
}
