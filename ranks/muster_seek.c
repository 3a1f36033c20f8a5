/* ranks/muster_seek.c: see muster.h. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#include "ranks/muster.h"

#define MS_NS UINT64_C(1000000)

enum {
    FRONT_ADDRESSES = 4,
    SILENT_MS = 3000,    /* alive ones answer from a thread of their own */
    AGAIN_ALIVE_MS = 50, /* until it is asked again */
    AGAIN_DEAD_MS = 200,
    AGAIN_SILENT_MS = 500,
};

void mri_seek_init(mri_seeking *s, const mri_secret *secret)
{
    memset(s, 0, sizeof *s);
    s->secret = secret;
    s->host = MRI_LINK_NONE;
    s->says = MRI_WIRE_MUSTER;
}

void mri_seek_fini(mri_seeking *s)
{
    for (uint32_t k = 0; k < s->count; k++) mri_link_fini(&s->probe[k].link);
    mri_link_fini(&s->host);
    s->count = s->fronts = 0;
}

static mri_place_probe *add(mri_seeking *s)
{
    mri_place_probe *p = &s->probe[s->count++];
    *p = (mri_place_probe){.link = MRI_LINK_NONE};
    return p;
}

static void add_front(mri_seeking *s, const mri_place *front)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
    char port[8];
    snprintf(port, sizeof port, "%u", front->ports[0]);
    const int rc = getaddrinfo(front->host, port, &hints, &found);
    if (rc) {
        snprintf(s->last, sizeof s->last, "%s: %s", front->host,
                 rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
        return;
    }
    for (const struct addrinfo *i = found; i && s->count < FRONT_ADDRESSES; i = i->ai_next) {
        if (i->ai_family != AF_INET && i->ai_family != AF_INET6) continue;
        mri_place_probe *p = add(s);
        memcpy(&p->to, i->ai_addr, i->ai_addrlen);
        p->to_bytes = i->ai_addrlen;
        s->fronts++;
    }
    freeaddrinfo(found);
}

void mri_seek_places(mri_seeking *s, const mri_place *front, const mri_wire_seat *seats, uint32_t count)
{
    if (front) add_front(s, front);
    for (uint32_t k = 0; k < count; k++) {
        mri_place_probe *p = add(s);
        p->to_bytes = mri_wire_seat_to(&seats[k], &p->to);
    }
}

static void put_off(mri_seeking *s, mri_place_probe *p, bool alive, uint32_t again_ms, const char *why)
{
    const uint64_t now = mri_clock_ns();
    mri_link_fini(&p->link);
    p->tried = true;
    p->alive = alive;
    p->again_ns = now + again_ms * MS_NS;
    if (why) snprintf(s->last, sizeof s->last, "%s", why);
}

static void put_off_errno(mri_seeking *s, mri_place_probe *p, int sys_errno)
{
    char text[128];
    put_off(s, p, false, AGAIN_DEAD_MS, mri_link_errno_text(sys_errno, text, sizeof text));
}

static void ask(mri_seeking *s, mri_place_probe *p)
{
    p->asked_ns = mri_clock_ns();
    const int rc = mri_link_connect(&p->link, (const struct sockaddr *)&p->to, p->to_bytes,
                                    MRI_WIRE_SMALL_BYTES, s->secret);
    if (rc) put_off_errno(s, p, rc);
}

void mri_seek_ask(mri_seeking *s, struct pollfd *polls, uint64_t *next_ns)
{
    for (uint32_t k = 0; k < s->count; k++) {
        mri_place_probe *p = &s->probe[k];
        const uint64_t now = mri_clock_ns();
        if (p->link.fd >= 0 && now >= p->asked_ns + SILENT_MS * MS_NS)
            put_off(s, p, false, AGAIN_SILENT_MS, "one who should listen there is silent");
        if (p->link.fd < 0 && now >= p->again_ns && s->host.fd < 0) ask(s, p);
        if (p->link.fd >= 0) *next_ns = mri_min_u64(*next_ns, p->asked_ns + SILENT_MS * MS_NS);
        else if (s->host.fd < 0)
            *next_ns = mri_min_u64(*next_ns, p->again_ns); /* at a host nobody else is asked */
        polls[k] = (struct pollfd){.fd = p->link.fd, .events = mri_link_events(&p->link)};
    }
}

static void take_answer(mri_seeking *s, uint32_t k, const mri_wire_muster *me)
{
    mri_place_probe *p = &s->probe[k];
    mri_wire_head head;
    mri_wire_welcome w;
    const uint8_t *data;
    char text[MRI_WIRE_TEXT_BYTES];
    int code;
    const int rc = mri_link_read(&p->link, &head, &data);
    if (rc == MR_EAGAIN) return;
    if (rc == MR_OK && head.kind == MRI_WIRE_WELCOME && head.version == MRI_WIRE_VERSION &&
        mri_wire_get_welcome(data, head.bytes, &w) && memcmp(w.key, me->key, sizeof w.key) == 0) {
        s->host = p->link;
        s->host_at = k;
        s->host.most = MRI_WIRE_MUSTERED_BYTES;
        p->link = MRI_LINK_NONE;
        p->tried = true;
    } else if (rc == MR_OK && head.kind == MRI_WIRE_OTHER &&
               mri_wire_get_reason(data, head.bytes, &code, text)) {
        put_off(s, p, code == MR_EAGAIN, AGAIN_ALIVE_MS, text);
    } else {
        put_off(s, p, false, AGAIN_DEAD_MS,
                rc == MR_EEND || rc == MR_EIO ? "closed by who listens there"
                                              : "no process of this version of millrace listens there");
    }
}

static void serve(mri_seeking *s, uint32_t k, const mri_wire_muster *me)
{
    mri_place_probe *p = &s->probe[k];
    uint8_t out[MRI_WIRE_SMALL_BYTES];
    if (p->link.connecting) {
        const int sys_errno = mri_link_connected(&p->link);
        if (sys_errno == EINPROGRESS) return;
        if (sys_errno) put_off_errno(s, p, sys_errno);
        else (void)mri_link_send(&p->link, s->says, out, mri_wire_put_muster(out, me));
        return;
    }
    mri_link_flush(&p->link);
    take_answer(s, k, me);
}

/* The lowest first: once there is a host the others need not say more. */
void mri_seek_serve(mri_seeking *s, const struct pollfd *polls, const mri_wire_muster *me)
{
    for (uint32_t k = 0; k < s->count && s->host.fd < 0; k++)
        if (s->probe[k].link.fd >= 0 && polls[k].revents) serve(s, k, me);
    for (uint32_t k = 0; s->host.fd >= 0 && k < s->count; k++) {
        mri_link_fini(&s->probe[k].link);
        s->probe[k].tried = s->probe[k].tried && k != s->host_at;
    }
}

bool mri_seek_may_find(const mri_seeking *s)
{
    for (uint32_t k = 0; k < s->count; k++)
        if (!s->probe[k].tried || s->probe[k].alive) return true;
    return false;
}

bool mri_seek_has_found(const mri_seeking *s)
{
    bool found = s->host.fd >= 0;
    for (uint32_t k = 0; k < s->count && !found; k++) found = s->probe[k].alive;
    return found;
}

void mri_seek_drop_front(mri_seeking *s)
{
    for (uint32_t k = 0; k < s->fronts; k++) mri_link_fini(&s->probe[k].link);
    memmove(s->probe, s->probe + s->fronts, (s->count - s->fronts) * sizeof *s->probe);
    s->count -= s->fronts;
    s->fronts = 0;
}

void mri_seek_lost_host(mri_seeking *s)
{
    mri_link_fini(&s->host);
    s->probe[s->host_at].tried = false;
    s->probe[s->host_at].again_ns = 0;
}
