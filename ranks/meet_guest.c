/* ranks/meet_guest.c: the other ranks until they have rank 0's roster. All ports and addresses where it may
 * be are tried at once and again; the first that answers with the job's key is it. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ranks/meet.h"

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

enum {
    ADDRESSES_MOST = 4,
    ROUND_S = 5,         /* then the host's name is looked up again, and who has not answered left */
    FIRST_PAUSE_MS = 20, /* between attempts at one port, doubled up to */
    LAST_PAUSE_MS = 500,
    BEYOND_S = 10, /* rank 0 has this long to say what came of it */
};

typedef struct attempt {
    struct sockaddr_storage to;
    socklen_t to_bytes;
    mri_link link;
    uint64_t again; /* no link until then */
    uint32_t pause_ms;
} attempt;

typedef struct seeking {
    mri_meeting *m;
    attempt attempts[(MRI_PLACE_PORTS + 1) * ADDRESSES_MOST];
    struct pollfd polls[(MRI_PLACE_PORTS + 1) * ADDRESSES_MOST];
    uint32_t count;
    char last[MRI_WIRE_TEXT_BYTES]; /* the last failure of an attempt */
    bool other;                     /* and it was another job: says more than a closed port */
    uint32_t left_ms;
} seeking;

static void note(seeking *s, bool other, const char *text)
{
    if (s->other && !other) return;
    s->other = other;
    snprintf(s->last, sizeof s->last, "%s", text);
}

static void note_errno(seeking *s, int sys_errno)
{
    char text[128];
    note(s, sys_errno == EKEYREJECTED || sys_errno == ENOKEY,
         mri_link_errno_text(sys_errno, text, sizeof text));
}

static void fail_attempt(attempt *a)
{
    mri_link_fini(&a->link);
    a->again = mri_clock_ns() + a->pause_ms * MS_NS;
    a->pause_ms = (uint32_t)mri_min_u64(2 * a->pause_ms, LAST_PAUSE_MS);
}

static void resolve(seeking *s)
{
    const mri_place *p = &s->m->place;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
    s->count = 0;
    for (uint32_t k = 0; k < p->port_count; k++) {
        char port[8];
        snprintf(port, sizeof port, "%u", p->ports[k]);
        const int rc = getaddrinfo(p->host, port, &hints, &found);
        if (rc != 0) {
            note(s, false, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
            return;
        }
        uint32_t of_port = 0;
        for (const struct addrinfo *i = found; i && of_port < ADDRESSES_MOST; i = i->ai_next) {
            if (i->ai_family != AF_INET && i->ai_family != AF_INET6) continue;
            attempt *a = &s->attempts[s->count++];
            *a = (attempt){.to_bytes = i->ai_addrlen, .link = MRI_LINK_NONE, .pause_ms = FIRST_PAUSE_MS};
            memcpy(&a->to, i->ai_addr, i->ai_addrlen);
            of_port++;
        }
        freeaddrinfo(found);
    }
}

static void say_hello(seeking *s, attempt *a)
{
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    const mri_meeting *m = s->m;
    mri_wire_hello hello = {.token = m->token, .rank = m->cfg->rank, .size = m->cfg->size, .port = m->port};
    memcpy(hello.key, m->place.key, sizeof hello.key);
    memcpy(hello.host, m->host, sizeof hello.host);
    (void)mri_link_send(&a->link, MRI_WIRE_HELLO, out, mri_wire_put_hello(out, &hello));
}

static int take_refusal(const uint8_t *data, size_t bytes, mr_error *err)
{
    char text[MRI_WIRE_TEXT_BYTES];
    int code;
    if (!mri_wire_get_reason(data, bytes, &code, text))
        return mr_error_set(err, MR_EFORMAT, "rank 0 refuses this rank and does not say why");
    return mr_error_set(err, code, "%s", text);
}

/* MR_OK: this is rank 0. MR_EAGAIN: not yet. MR_ENOENT: it is not. Other codes: it refuses us. */
static int take_answer(seeking *s, attempt *a, mr_error *err)
{
    mri_wire_head head;
    mri_wire_welcome w;
    const uint8_t *data;
    char text[MRI_WIRE_TEXT_BYTES];
    int code, rc = mri_link_read(&a->link, &head, &data);
    if (rc == MR_EAGAIN) return rc;
    if (rc == MR_OK && head.kind == MRI_WIRE_WELCOME && head.version == MRI_WIRE_VERSION &&
        mri_wire_get_welcome(data, head.bytes, &w) && memcmp(w.key, s->m->place.key, sizeof w.key) == 0) {
        s->left_ms = w.left_ms;
        return MR_OK;
    }
    if (rc == MR_OK && head.kind == MRI_WIRE_REFUSED && head.version == MRI_WIRE_VERSION) {
        rc = take_refusal(data, head.bytes, err);
        return rc == MR_ENOENT || rc == MR_EAGAIN ? MR_EPEER : rc;
    }
    if (rc == MR_OK && head.kind == MRI_WIRE_OTHER && mri_wire_get_reason(data, head.bytes, &code, text))
        note(s, true, text);
    else note(s, false, rc == MR_EEND ? "closed by who listens there" : "no rank of millrace listens there");
    return MR_ENOENT;
}

static int serve_attempt(seeking *s, attempt *a, mr_error *err)
{
    if (a->link.connecting) {
        const int sys_errno = mri_link_connected(&a->link);
        if (sys_errno == EINPROGRESS) return MR_EAGAIN;
        if (sys_errno) {
            note_errno(s, sys_errno);
            return MR_ENOENT;
        }
        say_hello(s, a);
    }
    mri_link_flush(&a->link);
    return take_answer(s, a, err);
}

static void start_attempt(seeking *s, attempt *a)
{
    const int rc = mri_link_connect(&a->link, (const struct sockaddr *)&a->to, a->to_bytes,
                                    MRI_WIRE_SMALL_BYTES, &s->m->secret);
    if (rc == 0) return;
    note_errno(s, rc);
    fail_attempt(a);
}

/* MR_OK: star[0] is the link to rank 0. MR_EAGAIN: nobody has answered by `due`. */
static int seek(seeking *s, uint64_t due, mr_error *err)
{
    int rc = MR_EAGAIN;
    while (rc == MR_EAGAIN && mri_clock_ns() < due) {
        uint64_t next = due;
        for (uint32_t k = 0; k < s->count; k++) {
            attempt *a = &s->attempts[k];
            if (a->link.fd < 0 && mri_clock_ns() >= a->again) start_attempt(s, a);
            if (a->link.fd < 0) next = mri_min_u64(next, a->again);
            s->polls[k] = (struct pollfd){.fd = a->link.fd, .events = mri_link_events(&a->link)};
        }
        if (poll(s->polls, s->count, mri_meet_wait_ms(next)) < 0) continue;
        for (uint32_t k = 0; rc == MR_EAGAIN && k < s->count; k++) {
            attempt *a = &s->attempts[k];
            if (a->link.fd < 0 || !s->polls[k].revents) continue;
            rc = serve_attempt(s, a, err);
            if (rc == MR_OK) {
                s->m->star[0] = a->link;
                a->link = MRI_LINK_NONE;
            } else if (rc == MR_ENOENT) {
                fail_attempt(a);
                rc = MR_EAGAIN;
            }
        }
    }
    for (uint32_t k = 0; k < s->count; k++) mri_link_fini(&s->attempts[k].link);
    return rc;
}

static int nobody_came(const seeking *s, mr_error *err)
{
    const mri_place *p = &s->m->place;
    char others[48] = "", hint[288];
    if (p->port_count > 1) snprintf(others, sizeof others, " (or at %u other ports)", p->port_count - 1);
    return mr_error_set(err, MR_EPEER, "rank 0 did not answer at %s port %u%s within %.3g s: %s%s", p->host,
                        p->ports[0], others, s->m->cfg->meet_s, s->last[0] ? s->last : "no answer",
                        mri_place_hint(p, s->m->cfg->size, false, hint, sizeof hint));
}

/* Where others reach this rank. Before rank 0 hears the port. */
static int listen_for_ranks(mri_meeting *m, mr_error *err)
{
    const int rc = mri_link_listen(&m->listener, mri_place_listens(&m->place), &m->port);
    if (rc == 0) return MR_OK;
    m->listener = -1;
    return mr_error_sys(err, rc, "rank %u cannot listen", m->cfg->rank);
}

/* Whatever address rank 0 saw: one of its own host's loopback means its host, which we have just reached. */
static void see_from_here(mri_meeting *m)
{
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer;
    mri_wire_seat zero;
    if (getpeername(m->star[0].fd, (struct sockaddr *)&peer, &bytes) != 0 ||
        !mri_wire_seat_from(&zero, (const struct sockaddr *)&peer))
        return;
    for (uint32_t r = 0; r < m->cfg->size; r++) {
        if (!mri_wire_seat_is_loopback(&m->seats[r])) continue;
        m->seats[r].family = zero.family;
        memcpy(m->seats[r].address, zero.address, sizeof zero.address);
    }
}

static int take_roster(mri_meeting *m, uint64_t due, mr_error *err)
{
    mri_link *l = &m->star[0];
    l->most = MRI_WIRE_ROSTER_BYTES;
    for (;;) {
        mri_wire_head head;
        const uint8_t *data;
        mri_link_flush(l);
        const int rc = mri_link_read(l, &head, &data);
        if (rc == MR_OK && head.kind == MRI_WIRE_REFUSED) return take_refusal(data, head.bytes, err);
        if (rc == MR_OK && head.kind == MRI_WIRE_ROSTER &&
            mri_wire_get_roster(data, head.bytes, m->nonce, m->seats, m->cfg->size))
            return MR_OK;
        if (rc == MR_OK || rc == MR_EFORMAT)
            return mr_error_set(err, MR_EFORMAT, "rank 0 sent something that is no list of ranks");
        if (rc != MR_EAGAIN) return mr_error_set(err, MR_EPEER, "rank 0 went away while the ranks met");
        if (mri_clock_ns() >= due)
            return mr_error_set(err, MR_EPEER, "rank 0 has not said who is there: it may be stopped");
        struct pollfd one = {.fd = l->fd, .events = mri_link_events(l)};
        (void)poll(&one, 1, mri_meet_wait_ms(due));
    }
}

int mri_meet_as_guest(mri_meeting *m, mr_error *err)
{
    const uint64_t due = mri_clock_ns() + (uint64_t)(m->cfg->meet_s * 1e9);
    int rc = listen_for_ranks(m, err);
    if (rc != MR_OK) return rc;
    seeking *s = calloc(1, sizeof *s);
    if (!s) return mr_error_set(err, MR_ENOMEM, "no memory to meet rank 0");
    s->m = m;
    do {
        resolve(s);
        const uint64_t round = s->count ? ROUND_S * SECOND_NS : SECOND_NS;
        rc = seek(s, mri_min_u64(due, mri_clock_ns() + round), err);
    } while (rc == MR_EAGAIN && mri_clock_ns() < due);
    if (rc == MR_EAGAIN) rc = nobody_came(s, err);
    const uint64_t last = mri_clock_ns() + s->left_ms * MS_NS + BEYOND_S * SECOND_NS;
    free(s);
    if (rc != MR_OK) return rc;
    if (mri_link_send(&m->star[0], MRI_WIRE_CARD, m->cfg->card, m->cfg->card_bytes) != MR_OK)
        return mr_error_set(err, MR_ENOMEM, "no memory to meet rank 0");
    rc = take_roster(m, last, err);
    if (rc == MR_OK) see_from_here(m);
    return rc;
}
