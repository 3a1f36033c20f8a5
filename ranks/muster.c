/* ranks/muster.c: see muster.h. */
#include "ranks/muster.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/handle.h"

#define MS_NS     UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

enum { TURN_MS = 100, FRONT_MS = 300, TELL_MS = 1000, WORD_S = 8 };

/* Where processes were seen. */
typedef struct seen {
    uint32_t count;
    mri_wire_seat seats[MR_MUSTER_MOST];
    uint64_t tokens[MR_MUSTER_MOST];
} seen;

struct mr_muster {
    uint32_t process; /* that opened it (base/handle.h) */
    mr_muster_config cfg;
    mri_place place;
    mri_secret secret;
    mri_wire_muster self;
    mri_guests guests;
    mri_watch watch;
    mri_wire_mustered world; /* the newest; size 0: none yet */
    atomic_bool room;        /* in it */
    seen lost;               /* those below this process that the last muster did not find, if it hosted it */
    char meet[INET6_ADDRSTRLEN + 256], job[64];
    char lost_hosts[8][MRI_WIRE_HOST_BYTES]; /* since the last one */
    uint32_t lost_count;
};

/* ---- open, close ---- */

static const mr_muster_config defaults = {.struct_size = sizeof defaults,
                                          .min = 1,
                                          .max = MR_MUSTER_MOST,
                                          .settle_s = 1,
                                          .meet_s = 60,
                                          .leave_out_s = 600};

void mr_muster_defaults_sized(mr_muster_config *cfg, size_t struct_size)
{
    mri_settings_give(cfg, struct_size, &defaults, sizeof defaults);
}

static int check_settings(const mr_muster_config *c, mr_error *err)
{
    if (c->min < 1 || c->min > c->max || c->max > MR_MUSTER_MOST)
        return mr_error_set(err, MR_EINVAL,
                            "a world of %u to %u ranks: expected 1 to %d, the first not above the second",
                            c->min, c->max, MR_MUSTER_MOST);
    if (!(c->settle_s >= 0 && c->settle_s <= 1e6) || !(c->meet_s > 0 && c->meet_s <= 1e6))
        return mr_error_set(err, MR_EINVAL, "settle_s is %g, meet_s %g: expected seconds, at most 1e6",
                            c->settle_s, c->meet_s);
    if (!(c->leave_out_s >= 0 && c->leave_out_s <= 1e6))
        return mr_error_set(err, MR_EINVAL, "leave_out_s is %g: expected seconds, at most 1e6",
                            c->leave_out_s);
    return MR_OK;
}

/* Who comes later has no launcher, so with a place that was given the launcher's names do not tell jobs
 * apart. */
static int find_place(mr_muster *m, mr_error *err)
{
    mr_launch at = {.size = 1};
    mr_world_config cfg;
    mr_world_defaults(&cfg);
    const int rc = mr_launch_find(&at, err);
    if (rc) return rc;
    const bool given = m->cfg.meet || getenv("MILLRACE_MEET");
    cfg.meet = m->cfg.meet;
    cfg.job = m->cfg.job ? m->cfg.job : given ? "muster" : NULL;
    cfg.size = at.size;
    return mri_place_find(&m->place, &cfg, err);
}

static int listen_own(mr_muster *m, mr_error *err)
{
    const int rc = mri_link_listen(&m->guests.listeners[0], mri_place_listens(&m->place), &m->self.port);
    if (rc == 0) return MR_OK;
    m->guests.listeners[0] = -1;
    return mr_error_sys(err, rc, "cannot listen for other processes");
}

int mr_muster_open(mr_muster **out, const mr_muster_config *cfg, mr_error *err)
{
    mr_muster_config mine = defaults;
    MRI_GIVEN(err, out);
    *out = NULL;
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "muster", err);
    if (rc == MR_OK) rc = check_settings(&mine, err);
    if (rc) return rc;
    mr_muster *m = calloc(1, sizeof *m);
    if (!m) return mr_error_set(err, MR_ENOMEM, "no memory for a muster");
    m->process = mri_process();
    m->cfg = mine;
    m->watch = (mri_watch){.wake_fd = -1, .lost.host = MRI_LINK_NONE};
    rc = find_place(m, err);
    if (rc == MR_OK) rc = mri_secret_find(&m->secret, mine.secret, mine.secret_bytes, err);
    if (rc) {
        free(m);
        return rc;
    }
    m->cfg.secret = NULL; /* the caller's */
    memcpy(m->self.key, m->place.key, sizeof m->self.key);
    rc = mri_guests_init(&m->guests, m->place.key, &m->secret, err);
    if (rc == MR_OK) rc = mri_watch_init(&m->watch, &m->guests, &m->place, err);
    m->guests.min = mine.min;
    m->guests.leave_out = mine.leave_out;
    m->guests.forget_ns = (uint64_t)(1e9 * mine.leave_out_s);
    mri_meet_draw(&m->self.token, sizeof m->self.token);
    if (gethostname(m->self.host, sizeof m->self.host) != 0)
        snprintf(m->self.host, sizeof m->self.host, "unknown");
    m->self.host[sizeof m->self.host - 1] = '\0';
    if (rc == MR_OK) rc = listen_own(m, err);
    if (rc == MR_OK) *out = m;
    else mr_muster_close(m);
    return rc;
}

void mr_muster_close(mr_muster *m)
{
    if (!MRI_IS_OWN(m)) return;
    mri_watch_fini(&m->watch);
    mri_guests_fini(&m->guests);
    mri_secret_fini(&m->secret);
    free(m);
}

mr_guard mr_muster_guard(const mr_muster *m)
{
    if (!m) return MR_GUARD_NONE;
    return m->secret.set ? MR_GUARD_SECRET : m->place.this_host_only ? MR_GUARD_HOST : MR_GUARD_NONE;
}

bool mr_muster_turned_away(mr_muster *m, char *text, size_t text_bytes)
{
    return MRI_IS_OWN(m) && text && mri_door_tell(&m->guests.door, text, text_bytes);
}

bool mr_muster_is_wanted(const mr_muster *m)
{
    if (!m) return false;
    if (atomic_load(&m->watch.found)) return true;
    return atomic_load(&m->room) && (atomic_load(&m->guests.here) > 0 || atomic_load(&m->guests.called));
}

void mr_muster_lost(mr_muster *m, const char *host)
{
    if (!MRI_IS_OWN(m) || !host) return;
    if (m->lost_count == MRI_ARRAY_COUNT(m->lost_hosts)) return;
    snprintf(m->lost_hosts[m->lost_count++], sizeof m->lost_hosts[0], "%s", host);
}

/* ---- the front ---- */

static bool is_address_here(const struct sockaddr *at, socklen_t bytes)
{
    const int fd = socket(at->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool here = fd >= 0 && bind(fd, at, bytes) == 0;
    if (fd >= 0) close(fd);
    return here;
}

/* The front's host is this one when its address can be had here. */
static bool is_front_here(const mri_place *p)
{
    mri_seeking s;
    bool here = p->this_host_only;
    mri_seek_init(&s, NULL);
    mri_seek_places(&s, p, NULL, 0);
    for (uint32_t k = 0; k < s.count && !here; k++) {
        struct sockaddr_storage at = s.probe[k].to;
        if (at.ss_family == AF_INET) ((struct sockaddr_in *)&at)->sin_port = 0;
        else ((struct sockaddr_in6 *)&at)->sin6_port = 0;
        here = is_address_here((const struct sockaddr *)&at, s.probe[k].to_bytes);
    }
    mri_seek_fini(&s);
    return here;
}

/* ---- the host ---- */

static bool address_of(const mri_link *l, mri_wire_seat *out)
{
    struct sockaddr_storage from;
    socklen_t bytes = sizeof from;
    return getpeername(l->fd, (struct sockaddr *)&from, &bytes) == 0 &&
           mri_wire_seat_from(out, (const struct sockaddr *)&from);
}

static bool is_run(const uint8_t a[MRI_WIRE_KEY_BYTES], const uint8_t b[MRI_WIRE_KEY_BYTES])
{
    return memcmp(a, b, MRI_WIRE_KEY_BYTES) == 0;
}

/* How many guests with the state of a run were in the run of this one. */
static uint32_t count_of_run(const mr_muster *m, uint32_t count, const mri_wire_muster *who)
{
    uint32_t same = 0;
    for (uint32_t k = 0; k < count; k++) {
        const mri_wire_muster *other = &m->guests.guest[k].who;
        same += other->progress && is_run(other->run, who->run);
    }
    return same;
}

/* The run that goes on: the host's own. A host that was in no world yet takes the one in which most of its
 * guests with a state were, else any. NULL: nobody was in one. */
static const uint8_t *choose_run(const mr_muster *m, uint32_t count)
{
    const uint8_t *best = NULL;
    uint32_t most = 0;
    if (mri_wire_has_run(m->self.run)) return m->self.run;
    for (uint32_t k = 0; k < count; k++) {
        const mri_wire_muster *who = &m->guests.guest[k].who;
        const uint32_t same = who->progress ? count_of_run(m, count, who) : 0;
        if (!mri_wire_has_run(who->run) || (best && same <= most)) continue;
        most = same;
        best = who->run;
    }
    return best;
}

/* Whose state is rank 0's: UINT32_MAX for the host itself. Processes of another run have no state for this
 * one. */
static uint32_t farthest(const mr_muster *m, const uint8_t *run, uint32_t count)
{
    uint32_t best = UINT32_MAX;
    uint64_t most = m->self.progress;
    for (uint32_t k = 0; run && k < count; k++) {
        const mri_wire_muster *who = &m->guests.guest[k].who;
        if (who->progress <= most || !is_run(who->run, run)) continue;
        best = k;
        most = who->progress;
    }
    return best;
}

/* Seat `rank` for guest k, or for the host itself. */
static bool seat(mr_muster *m, mri_wire_mustered *w, uint32_t rank, uint32_t k)
{
    static const mri_wire_seat loopback = {.family = 4, .address = {127, 0, 0, 1}};
    const mri_wire_muster *who = k == UINT32_MAX ? &m->self : &m->guests.guest[k].who;
    w->seats[rank] = loopback;
    if (k != UINT32_MAX && !address_of(&m->guests.guest[k].link, &w->seats[rank])) return false;
    w->seats[rank].port = who->port;
    memcpy(w->seats[rank].host, who->host, sizeof who->host);
    w->tokens[rank] = who->token;
    return true;
}

/* The world of the host and its first guests; false: one has gone. */
static bool assign(mr_muster *m, mri_wire_mustered *w, uint32_t *rank_of, uint32_t *own_rank)
{
    const uint32_t guests = (uint32_t)mri_min_u64(atomic_load(&m->guests.here), m->cfg.max - 1);
    const uint8_t *run = choose_run(m, guests);
    const uint32_t zero = farthest(m, run, guests);
    uint32_t rank = 1;
    bool ok = seat(m, w, 0, zero);
    *own_rank = 0;
    if (zero != UINT32_MAX) {
        *own_rank = rank;
        ok = ok && seat(m, w, rank++, UINT32_MAX);
        rank_of[zero] = 0;
    }
    for (uint32_t k = 0; ok && k < guests; k++) {
        if (k == zero) continue;
        rank_of[k] = rank;
        ok = seat(m, w, rank++, k);
    }
    w->size = guests + 1;
    w->progress = zero == UINT32_MAX ? m->self.progress : m->guests.guest[zero].who.progress;
    mri_meet_draw(w->nonce, sizeof w->nonce);
    if (run) memcpy(w->run, run, sizeof w->run);
    else mri_meet_draw(w->run, sizeof w->run);
    return ok;
}

static int tell_all(mr_muster *m, mri_wire_mustered *w, mr_error *err)
{
    uint32_t rank_of[MR_MUSTER_MOST] = {0}, own = 0;
    uint8_t *out = malloc(MRI_WIRE_MUSTERED_BYTES);
    if (!out) return mr_error_set(err, MR_ENOMEM, "no memory for a muster");
    if (!assign(m, w, rank_of, &own)) {
        free(out);
        return MR_EAGAIN;
    }
    mri_link links[MR_MUSTER_MOST];
    for (uint32_t k = 0; k + 1 < w->size; k++) {
        mri_link *l = &m->guests.guest[k].link;
        w->rank = rank_of[k];
        (void)mri_link_send(l, MRI_WIRE_MUSTERED, out, mri_wire_put_mustered(out, w));
        links[k] = *l;
    }
    free(out);
    mri_meet_flush(links, w->size - 1, TELL_MS * MS_NS);
    for (uint32_t k = w->size - 1; k-- > 0;) {
        m->guests.guest[k].link = links[k];
        (void)shutdown(links[k].fd, SHUT_WR);
        mri_guests_drop(&m->guests, k);
    }
    w->rank = own;
    return MR_OK;
}

/* ---- the search ---- */

typedef struct search {
    mr_muster *m;
    mri_seeking seeking;
    struct pollfd polls[MRI_PROBES_MOST + 1];
    uint32_t expected;
    seen below;
    uint64_t began_ns, due_ns, front_ns, host_ns;
    uint64_t word_ns; /* until which the host's word is waited for */
    bool had_front, host;
} search;

static void add_seen(seen *to, const mri_wire_seat *seat, uint64_t token)
{
    if (to->count == MR_MUSTER_MOST) return;
    to->seats[to->count] = *seat;
    to->tokens[to->count++] = token;
}

/* Those below this process in the world before: all, when it has no seat of its own. And those who were lost
 * and have been found. */
static void find_below(search *s, bool found)
{
    const mr_muster *m = s->m;
    for (uint32_t r = 0; r < m->world.size && m->world.tokens[r] != m->self.token; r++)
        add_seen(&s->below, &m->world.seats[r], m->world.tokens[r]);
    for (uint32_t k = 0; found && k < m->lost.count; k++)
        add_seen(&s->below, &m->lost.seats[k], m->lost.tokens[k]);
}

/* Who has the front has nobody below it. */
static void choose_places(search *s)
{
    s->had_front = s->m->guests.listeners[1] >= 0;
    if (s->had_front) s->below.count = 0;
    mri_seek_fini(&s->seeking);
    if (!s->had_front) mri_seek_places(&s->seeking, &s->m->place, s->below.seats, s->below.count);
}

/* Nobody hosts who stands nowhere: the others could not find it. */
static bool has_place(const mr_muster *m) { return m->guests.listeners[1] >= 0 || m->world.size > 0; }

/* Guests that were in a world before. Are all here for whom they wait? A host that is new knows it from them
 * alone: it may have found the place of one that was lost before they did. */
static uint32_t members_here(const mr_muster *m, bool *all)
{
    uint32_t members = 0, expected = 0;
    for (uint32_t k = 0; k < m->guests.count; k++) {
        const mri_guest *guest = &m->guests.guest[k];
        if (!guest->here || !mri_wire_has_run(guest->who.run)) continue;
        members++;
        if (guest->who.expected > expected) expected = guest->who.expected;
    }
    *all = expected && members >= expected;
    return members;
}

static bool is_enough(const search *s)
{
    const mr_muster *m = s->m;
    const uint32_t count = 1 + atomic_load(&m->guests.here);
    bool all = false;
    const bool goes_on = m->world.size || members_here(m, &all) > 0;
    if (count >= s->expected || count >= m->cfg.max || (goes_on && !m->world.size && all))
        return count >= m->cfg.min;
    const uint64_t since = mri_max_u64(s->host_ns, m->guests.changed_ns);
    return count >= m->cfg.min &&
           mri_clock_ns() >= since + (uint64_t)((goes_on ? 1e9 : 5e9) * m->cfg.settle_s);
}

/* Of who has welcomed us. MR_EAGAIN: not yet, or never. */
static int hear(search *s, mri_wire_mustered *w)
{
    mri_wire_head head;
    const uint8_t *data;
    mri_link *l = &s->seeking.host;
    mri_link_flush(l);
    const int rc = mri_link_read(l, &head, &data);
    if (rc == MR_EAGAIN && mri_clock_ns() < s->word_ns) return rc;
    if (rc == MR_OK && head.kind == MRI_WIRE_MUSTERED && mri_wire_get_mustered(data, head.bytes, w) &&
        w->tokens[w->rank] == s->m->self.token) {
        if (!s->m->self.progress || is_run(w->run, s->m->self.run)) return MR_OK;
        snprintf(s->seeking.last, sizeof s->seeking.last, "another run has that place");
        s->due_ns = mri_min_u64(s->due_ns, s->began_ns + (uint64_t)(1e9 * s->m->cfg.meet_s));
    }
    mri_seek_lost_host(&s->seeking);
    return MR_EAGAIN;
}

static void turn(search *s)
{
    mr_muster *m = s->m;
    uint64_t now = mri_clock_ns(), next = now + TURN_MS * MS_NS;
    if (now >= s->front_ns && s->seeking.host.fd < 0) {
        if (m->watch.front_here) mri_watch_take_front(&m->guests, &m->place);
        s->front_ns = now + FRONT_MS * MS_NS;
    }
    if (!s->had_front && m->guests.listeners[1] >= 0) choose_places(s);
    mri_seek_ask(&s->seeking, s->polls, &next);
    const uint32_t count = s->seeking.count;
    s->polls[count] = (struct pollfd){.fd = s->seeking.host.fd, .events = POLLIN};
    const bool was = s->host;
    s->host = s->seeking.host.fd < 0 && has_place(m) && !mri_seek_may_find(&s->seeking);
    if (!was && s->host) s->host_ns = now;
    if (was && !s->host) mri_guests_dismiss(&m->guests);
    mri_guests_serve(&m->guests, s->host, s->polls, count + 1, mri_meet_wait_ms(next));
    const bool had_host = s->seeking.host.fd >= 0;
    mri_seek_serve(&s->seeking, s->polls, &m->self);
    if (had_host || s->seeking.host.fd < 0) return;
    now = mri_clock_ns();
    s->word_ns = now + WORD_S * SECOND_NS; /* then it is asked again: it may be stopped */
    s->due_ns = now + (uint64_t)(1e9 * m->cfg.meet_s);
}

static int nobody(const search *s, mr_error *err)
{
    const mri_place *p = &s->m->place;
    if (s->host)
        return mr_error_set(err, MR_EPEER, "%u of at least %u processes came within %.3g s",
                            1 + atomic_load(&s->m->guests.here), s->m->cfg.min, s->m->cfg.meet_s);
    return mr_error_set(
        err, MR_EPEER,
        "no processes of this job that take part with this one, at %s port %u within %.3g s: %s", p->host,
        p->ports[0], s->m->cfg.meet_s, s->seeking.last[0] ? s->seeking.last : "no answer");
}

static int find_others(search *s, mri_wire_mustered *w, const volatile int *stop, mr_error *err)
{
    for (;;) {
        int rc = MR_EAGAIN;
        if (stop && *stop) return mr_error_set(err, MR_ECANCELED, "stopped on request");
        if (s->seeking.host.fd < 0 && mri_clock_ns() >= s->due_ns) return nobody(s, err);
        turn(s);
        if (s->host && is_enough(s)) mri_guests_look(&s->m->guests);
        if (s->host && is_enough(s)) rc = tell_all(s->m, w, err);
        if (rc == MR_EAGAIN && s->seeking.host.fd >= 0) rc = hear(s, w);
        if (rc != MR_EAGAIN) return rc;
    }
}

/* ---- the result ---- */

/* Where rank 0 is, as this process sees it. Those on the host's own host have a loopback address there. */
static void name_place(mr_muster *m, mri_link *host)
{
    mri_wire_seat at;
    char text[INET6_ADDRSTRLEN] = "127.0.0.1";
    const bool guest = host->fd >= 0 && address_of(host, &at);
    for (uint32_t r = 0; guest && r < m->world.size; r++) {
        if (!mri_wire_seat_is_loopback(&m->world.seats[r])) continue;
        m->world.seats[r].family = at.family;
        memcpy(m->world.seats[r].address, at.address, sizeof at.address);
    }
    const mri_wire_seat *zero = &m->world.seats[0];
    inet_ntop(zero->family == 4 ? AF_INET : AF_INET6, zero->address, text, sizeof text);
    if (m->world.rank == 0)
        snprintf(m->meet, sizeof m->meet, "%s", m->place.this_host_only ? m->place.host : "0.0.0.0");
    else snprintf(m->meet, sizeof m->meet, zero->family == 4 ? "%s" : "[%s]", text);
    snprintf(m->job, sizeof m->job, "muster %016llx%016llx", (unsigned long long)mri_le64(m->world.nonce),
             (unsigned long long)mri_le64(m->world.nonce + 8));
}

/* The thread between musters. A host looks for those whom it asked in vain, but for those who came yet. */
static int start_watch(mr_muster *m, const search *s, const mri_wire_mustered *now, mr_error *err)
{
    m->lost.count = 0;
    for (uint32_t k = 0; s->host && k < s->below.count; k++) {
        bool came = false;
        for (uint32_t r = 0; r < now->size; r++) came = came || now->tokens[r] == s->below.tokens[k];
        if (!came) add_seen(&m->lost, &s->below.seats[k], s->below.tokens[k]);
    }
    m->watch.host = s->host;
    return mri_watch_start(&m->watch, &m->self, m->lost.seats, m->lost.count, err);
}

int mr_muster_form(mr_muster *m, uint32_t expected, uint64_t progress, const volatile int *stop,
                   mr_world_config *world, mr_error *err)
{
    MRI_OWN(err, m);
    MRI_GIVEN(err, world);
    const int sized = mri_result_check(world, err);
    if (sized) return sized;
    search *s = calloc(1, sizeof *s);
    mri_wire_mustered *w = calloc(1, sizeof *w);
    int rc = s && w ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for a muster");
    const bool found = atomic_load(&m->watch.found);
    mri_watch_stop(&m->watch);
    while (m->lost_count) mri_guests_lost(&m->guests, m->lost_hosts[--m->lost_count]);
    if (rc == MR_OK) {
        s->m = m;
        s->expected = expected ? expected : m->cfg.max;
        s->began_ns = mri_clock_ns();
        s->due_ns = s->began_ns + (uint64_t)(1e9 * m->cfg.meet_s);
        m->watch.front_here = is_front_here(&m->place);
        m->self.progress = progress;
        m->self.expected = expected;
        m->guests.changed_ns = mri_clock_ns();
        m->guests.known_count = 0;
        mri_seek_init(&s->seeking, &m->secret);
        if (m->watch.front_here) mri_watch_take_front(&m->guests, &m->place);
        find_below(s, found);
        choose_places(s);
        rc = find_others(s, w, stop, err);
    }
    if (rc == MR_OK) {
        memcpy(m->self.run, w->run, sizeof m->self.run);
        memcpy(m->guests.run, w->run, sizeof m->guests.run);
        rc = start_watch(m, s, w, err);
    }
    if (rc == MR_OK) {
        m->world = *w;
        atomic_store(&m->room, w->size < m->cfg.max);
        name_place(m, &s->seeking.host);
        world->rank = w->rank;
        world->size = w->size;
        world->meet = m->meet;
        world->job = m->job;
    }
    if (s) mri_seek_fini(&s->seeking);
    free(s);
    free(w);
    return rc;
}
