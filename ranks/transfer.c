/* ranks/transfer.c: see transfer.h. Carriers that never wait, and one poll() over the carriers that have
 * something left and the pulse's descriptor, which ends every wait. */
#include "ranks/transfer.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "ranks/meet.h"

enum {
    TRANSFER_MAGIC = 0x6252724d,
    STEP_BYTES = 1 << 20, /* of one rank before others have their turn */
    SUSPECT_AGAIN_MS = 1000,
};
#define VERDICT_NS UINT64_C(2000000000)

char mri_transfer_token;

typedef struct flow { /* with one rank; head and payload are one run of bytes */
    uint64_t sent, to_send, got, to_get;
    uint8_t send_head[MRI_TRANSFER_HEAD_BYTES], get_head[MRI_TRANSFER_HEAD_BYTES];
    bool ended;        /* the connection: nothing goes and comes any more */
    uint64_t first_ns; /* its first byte came; 0: none did */
} flow;

typedef struct waiting {
    uint32_t rank;
    unsigned wants; /* directions of its carrier */
} waiting;

struct mri_channel {
    uint32_t id, rank, size;
    const char (*hosts)[MRI_WIRE_HOST_BYTES];
    mri_pulse *pulse;
    mri_carrier **carriers; /* by rank; the own one's is NULL */
    mri_letters *letters;   /* NULL: bytes go by the carriers */
    flow *flows;
    struct pollfd *polls; /* the pulse's, then one for each of */
    waiting *left;        /* the ones with something left */
    uint32_t left_count;
    mr_world_piece *pieces;
    mri_call call;
    uint64_t number;
    uint64_t spin_ns;
    bool spun_in_vain; /* and no sleep was short since */
    uint32_t round;
    atomic_bool busy;
    atomic_uint_fast64_t sent, received; /* any thread may read */
};

/* ---- heads ---- */

void mri_transfer_put_head(uint8_t out[MRI_TRANSFER_HEAD_BYTES], const mri_transfer_head *head)
{
    mri_put_le32(out, TRANSFER_MAGIC);
    out[4] = (uint8_t)head->call;
    out[5] = (uint8_t)head->channel;
    mri_put_le16(out + 6, (uint16_t)head->round);
    mri_put_le64(out + 8, head->number);
    mri_put_le64(out + 16, head->bytes);
}

bool mri_transfer_get_head(const uint8_t in[MRI_TRANSFER_HEAD_BYTES], mri_transfer_head *out)
{
    *out = (mri_transfer_head){.call = in[4],
                               .channel = in[5],
                               .round = mri_le16(in + 6),
                               .number = mri_le64(in + 8),
                               .bytes = mri_le64(in + 16)};
    return mri_le32(in) == TRANSFER_MAGIC && in[4] >= MRI_CALL_EXCHANGE && in[4] <= MRI_CALL_BARRIER;
}

static const char *call_name(uint32_t call)
{
    static const char *const names[] = {"nothing", "exchange", "broadcast", "gather", "barrier"};
    return call < MRI_ARRAY_COUNT(names) ? names[call] : "nothing";
}

static const char *name_of(const mri_channel *c, uint32_t r) { return mri_meet_name(r, c->hosts[r]); }

/* This rank is at fault, or has found out who is: everybody is to know. */
static int give_up(mri_channel *c, mr_error *err, const mr_error *why)
{
    mri_pulse_give_up(c->pulse, 0, why->text);
    if (err) *err = *why;
    return why->code;
}

/* A record of the handshake (RFC 8446, section 5.1). */
static bool speaks_tls(const uint8_t head[MRI_TRANSFER_HEAD_BYTES]) { return head[0] == 22 && head[1] == 3; }

static int check_head(mri_channel *c, uint32_t r, mr_error *err)
{
    mri_transfer_head head;
    mr_error why = MR_ERROR_INIT;
    const uint64_t expected = c->flows[r].to_get - MRI_TRANSFER_HEAD_BYTES;
    if (!mri_carrier_is_encrypted(c->carriers[r]) && speaks_tls(c->flows[r].get_head))
        mr_error_set(&why, MR_EINVAL,
                     "%s has TLS and %s has not: set MILLRACE_TLS to 1 for all ranks or for none",
                     name_of(c, r), name_of(c, c->rank));
    else if (!mri_transfer_get_head(c->flows[r].get_head, &head) || head.channel != c->id)
        mr_error_set(&why, MR_EFORMAT, "%s sent %s bytes that are no message of a rank", name_of(c, r),
                     name_of(c, c->rank));
    else if (head.call != c->call || head.number != c->number || head.round != c->round)
        mr_error_set(&why, MR_EINVAL,
                     "the ranks do not make the same calls: on channel %u call %llu of %s "
                     "is %s, call %llu of %s is %s",
                     c->id, (unsigned long long)head.number, name_of(c, r), call_name(head.call),
                     (unsigned long long)c->number, name_of(c, c->rank), call_name(c->call));
    else if (head.bytes != expected)
        mr_error_set(&why, MR_EINVAL, "%s sends %llu bytes in %s %llu of channel %u, and %s expects %llu",
                     name_of(c, r), (unsigned long long)head.bytes, call_name(head.call),
                     (unsigned long long)head.number, c->id, name_of(c, c->rank),
                     (unsigned long long)expected);
    else return MR_OK;
    return give_up(c, err, &why);
}

/* ---- one step of one flow ---- */

/* The rest of head and payload after `at`, STEP_BYTES at most. */
static size_t what_is_left(struct iovec out[2], uint8_t *head, const mr_world_piece *piece, uint64_t at)
{
    size_t count = 0, payload_at = 0;
    if (at < MRI_TRANSFER_HEAD_BYTES)
        out[count++] = (struct iovec){head + at, (size_t)(MRI_TRANSFER_HEAD_BYTES - at)};
    else payload_at = (size_t)(at - MRI_TRANSFER_HEAD_BYTES);
    const size_t bytes = (size_t)mri_min_u64(piece->bytes - payload_at, STEP_BYTES);
    if (bytes) out[count++] = (struct iovec){(uint8_t *)piece->data + payload_at, bytes};
    return count;
}

static bool would_wait(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

static void send_step(mri_channel *c, uint32_t r, const mr_world_piece *piece)
{
    flow *f = &c->flows[r];
    struct iovec left[2];
    if (f->ended || f->sent == f->to_send) return;
    const ssize_t n =
        c->carriers[r]->ops->send(c->carriers[r], left, what_is_left(left, f->send_head, piece, f->sent));
    if (n > 0) f->sent += (uint64_t)n;
    else if (n < 0 && !would_wait())
        f->to_send = f->sent; /* bytes that it sent before it ended can still be read */
    if (n < 0 && f->to_send == f->sent && f->got == f->to_get)
        f->ended = true; /* nothing else would show it */
}

static int receive_step(mri_channel *c, uint32_t r, const mr_world_piece *piece, mr_error *err)
{
    flow *f = &c->flows[r];
    struct iovec left[2];
    if (f->ended || f->got == f->to_get) return MR_OK;
    const ssize_t n =
        c->carriers[r]->ops->receive(c->carriers[r], left, what_is_left(left, f->get_head, piece, f->got));
    if (n < 0 && would_wait()) return MR_OK;
    if (n <= 0) {
        f->ended = true;
        return MR_OK;
    }
    if (!f->first_ns) f->first_ns = mri_clock_ns();
    const bool had_head = f->got >= MRI_TRANSFER_HEAD_BYTES;
    f->got += (uint64_t)n;
    return had_head || f->got < MRI_TRANSFER_HEAD_BYTES ? MR_OK : check_head(c, r, err);
}

/* ---- all of them ---- */

static uint64_t run_bytes(const mr_world_piece *piece)
{
    return piece->bytes || piece->data == &mri_transfer_token
               ? MRI_TRANSFER_HEAD_BYTES + (uint64_t)piece->bytes
               : 0;
}

static void start_flows(mri_channel *c, const mr_world_piece *send, const mr_world_piece *receive)
{
    for (uint32_t r = 0; r < c->size; r++) {
        flow *f = &c->flows[r];
        f->sent = f->got = f->to_send = f->to_get = f->first_ns = 0;
        f->ended = false;
        if (r == c->rank) continue;
        f->to_send = run_bytes(&send[r]);
        f->to_get = run_bytes(&receive[r]);
        const mri_transfer_head head = {c->call, c->id, c->round, c->number, send[r].bytes};
        mri_transfer_put_head(f->send_head, &head);
    }
}

/* Who has something left; returns a rank whose connection has ended, or size. */
static uint32_t list_left(mri_channel *c)
{
    uint32_t suspect = c->size;
    c->left_count = 0;
    for (uint32_t r = 0; r < c->size; r++) {
        const flow *f = &c->flows[r];
        const unsigned wants =
            (f->sent < f->to_send ? MRI_CARRIER_SENDS : 0u) | (f->got < f->to_get ? MRI_CARRIER_GETS : 0u);
        if (f->ended) suspect = r;
        if (!f->ended && wants) c->left[c->left_count++] = (waiting){r, wants};
    }
    return suspect;
}

static bool can_go_on(const mri_channel *c)
{
    for (uint32_t k = 0; k < c->left_count; k++) {
        mri_carrier *with = c->carriers[c->left[k].rank];
        if (with->ops->can(with, c->left[k].wants)) return true;
    }
    return false;
}

/* poll() would see nothing that can() does not. */
static bool are_in_memory(const mri_channel *c)
{
    for (uint32_t k = 0; k < c->left_count; k++)
        if (!c->carriers[c->left[k].rank]->ops->in_memory) return false;
    return c->left_count > 0;
}

/* Returns whether one goes on. The other end may need this core, so it has it between two looks; and others
 * keep it long, so after a spin in vain waits sleep at once, until a sleep is short. */
static bool spin(mri_channel *c)
{
    if (c->spun_in_vain) return false;
    const uint64_t until = mri_clock_ns() + c->spin_ns;
    do {
        if (can_go_on(c)) return true;
        sched_yield();
    } while (mri_clock_ns() < until && !mri_pulse_has_ended(c->pulse));
    c->spun_in_vain = true;
    return false;
}

/* Until one of the unfinished ones continues, the pulse has a verdict, or the time is over. */
static void wait_for_one(mri_channel *c, int limit_ms)
{
    const bool memory = are_in_memory(c);
    bool waits = !can_go_on(c) && !(memory && c->spin_ns && spin(c));
    const bool sleeps = waits;
    if (memory && !waits) { /* woken() finds no event */
        for (uint32_t k = 0; k < c->left_count; k++) c->polls[k + 1].revents = 0;
        return;
    }
    c->polls[0] = (struct pollfd){.fd = mri_pulse_wake_fd(c->pulse), .events = POLLIN};
    for (uint32_t k = 0; k < c->left_count; k++) {
        mri_carrier *with = c->carriers[c->left[k].rank];
        if (!with->ops->listen(with, c->left[k].wants, sleeps, &c->polls[k + 1])) waits = false;
    }
    const uint64_t slept_ns = waits && c->spin_ns ? mri_clock_ns() : 0;
    (void)poll(c->polls, c->left_count + 1, waits ? limit_ms : 0);
    if (slept_ns && mri_clock_ns() - slept_ns < c->spin_ns) c->spun_in_vain = false;
}

static int fail_by_verdict(mri_channel *c, bool inside, mr_error *err)
{
    char doing[128];
    snprintf(doing, sizeof doing, "rank %u was %s %s %llu on channel %u", c->rank, inside ? "in" : "before",
             call_name(c->call), (unsigned long long)c->number, c->id);
    return mri_pulse_verdict(c->pulse, doing, err);
}

/* ---- by messages ---- */

static const uint8_t *letter_head(void *c, uint32_t r) { return ((mri_channel *)c)->flows[r].send_head; }
static bool letter_sends(void *c, uint32_t r) { return ((mri_channel *)c)->flows[r].to_send > 0; }
static bool letter_gets(void *c, uint32_t r) { return ((mri_channel *)c)->flows[r].to_get > 0; }
static bool rank_has_left(void *c, uint32_t r) { return mri_pulse_has_left(((mri_channel *)c)->pulse, r); }
static bool world_ended(void *c) { return mri_pulse_has_ended(((mri_channel *)c)->pulse); }

static int letter_came(void *context, uint32_t r, const uint8_t *head, mr_error *err)
{
    mri_channel *c = context;
    c->flows[r].first_ns = mri_clock_ns();
    memcpy(c->flows[r].get_head, head, MRI_TRANSFER_HEAD_BYTES);
    return check_head(c, r, err);
}

/* A post often fails first when a rank is lost: the pulse knows soon who is. */
static int post_failed(mri_channel *c, uint32_t with, const mr_error *why, mr_error *err)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    const uint64_t until = mri_clock_ns() + VERDICT_NS;
    mr_error all = MR_ERROR_INIT;
    while (!mri_pulse_has_ended(c->pulse) && mri_clock_ns() < until) nanosleep(&moment, NULL);
    if (mri_pulse_has_ended(c->pulse)) return fail_by_verdict(c, true, err);
    mr_error_set(&all, MR_EIO, "between %s and %s: %.300s", name_of(c, c->rank), name_of(c, with), why->text);
    return give_up(c, err, &all);
}

static int transfer_letters(mri_channel *c, const mr_world_piece *send, const mr_world_piece *receive,
                            mr_error *err)
{
    const mri_letters_of of = {.context = c,
                               .head = letter_head,
                               .came = letter_came,
                               .sends = letter_sends,
                               .gets = letter_gets,
                               .ended = world_ended,
                               .has_left = rank_has_left};
    mr_error why = MR_ERROR_INIT;
    uint32_t with = c->rank;
    const int rc = mri_letters_transfer(c->letters, &of, send, receive, &with, &why);
    if (rc == MR_ECANCELED) return fail_by_verdict(c, true, err);
    if (rc == MR_EPEER) mri_pulse_suspect(c->pulse, c->id, with);
    if (rc == MR_EIO || rc == MR_EPEER) return post_failed(c, with, &why, err);
    if (rc && err) *err = why;
    return rc;
}

/* ---- by carriers ---- */

static int transfer_bytes(mri_channel *c, const mr_world_piece *send, const mr_world_piece *receive,
                          mr_error *err)
{
    for (uint32_t r = 0; r < c->size; r++) send_step(c, r, &send[r]);
    for (;;) {
        const uint32_t suspect = list_left(c);
        if (suspect != c->size) mri_pulse_suspect(c->pulse, c->id, suspect);
        if (c->left_count == 0 && suspect == c->size) break;
        wait_for_one(c, suspect == c->size ? -1 : SUSPECT_AGAIN_MS);
        if (mri_pulse_has_ended(c->pulse)) return fail_by_verdict(c, true, err);
        for (uint32_t k = 0; k < c->left_count; k++) {
            const uint32_t r = c->left[k].rank;
            mri_carrier *with = c->carriers[r];
            const unsigned can =
                with->ops->woken(with, c->polls[k + 1].revents) | with->ops->can(with, c->left[k].wants);
            if (can & MRI_CARRIER_SENDS) send_step(c, r, &send[r]);
            const int rc = can & MRI_CARRIER_GETS ? receive_step(c, r, &receive[r], err) : MR_OK;
            if (rc != MR_OK) return rc;
        }
    }
    return MR_OK;
}

int mri_channel_transfer(mri_channel *c, uint32_t round, const mr_world_piece *send,
                         const mr_world_piece *receive, mr_error *err)
{
    c->round = round;
    start_flows(c, send, receive);
    const int rc =
        c->letters ? transfer_letters(c, send, receive, err) : transfer_bytes(c, send, receive, err);
    if (rc) return rc;
    for (uint32_t r = 0; r < c->size; r++) {
        if (r == c->rank) continue;
        atomic_fetch_add_explicit(&c->sent, send[r].bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&c->received, receive[r].bytes, memory_order_relaxed);
    }
    return MR_OK;
}

mri_carrier *mri_channel_carry(mri_channel *c, uint32_t r, mri_carrier *by)
{
    mri_carrier *before = c->carriers[r];
    c->carriers[r] = by;
    return before;
}

void mri_channel_spin(mri_channel *c, uint64_t spin_ns) { c->spin_ns = spin_ns; }

int mri_channel_post(mri_channel *c, mri_post *post, mr_error *err)
{
    return mri_letters_open(&c->letters, post, c->rank, c->size, MRI_TRANSFER_HEAD_BYTES, err);
}

void mri_channel_close_letters(mri_channel *c)
{
    if (!c || !c->letters) return; /* without them there may be no pulse */
    mri_letters_close(c->letters, !mri_pulse_has_ended(c->pulse));
    c->letters = NULL;
}

void mri_channel_begin_anew(mri_channel *c)
{
    c->number = 0;
    atomic_store(&c->sent, 0);
    atomic_store(&c->received, 0);
}

/* ---- calls ---- */

int mri_channel_begin(mri_channel *c, mri_call call, mr_error *err)
{
    if (atomic_exchange(&c->busy, true)) {
        mr_error why = MR_ERROR_INIT;
        mr_error_set(&why, MR_EINVAL, "%s: two threads call on channel %u at once", name_of(c, c->rank),
                     c->id);
        return give_up(c, err, &why);
    }
    c->call = call;
    c->number++;
    return mri_pulse_has_ended(c->pulse) ? mri_channel_end(c, fail_by_verdict(c, false, err)) : MR_OK;
}

int mri_channel_end(mri_channel *c, int rc)
{
    atomic_store(&c->busy, false);
    return rc;
}

void mri_channel_pieces(mri_channel *c, mr_world_piece **send, mr_world_piece **receive)
{
    memset(c->pieces, 0, 2 * (size_t)c->size * sizeof *c->pieces);
    *send = c->pieces;
    *receive = c->pieces + c->size;
}

void mri_channel_arrivals(const mri_channel *c, uint64_t *first_ns)
{
    for (uint32_t r = 0; r < c->size; r++) first_ns[r] = c->flows[r].first_ns;
}

void mri_channel_traffic(const mri_channel *c, uint64_t *sent, uint64_t *received)
{
    *sent = atomic_load_explicit(&c->sent, memory_order_relaxed);
    *received = atomic_load_explicit(&c->received, memory_order_relaxed);
}

/* ---- TLS ---- */

/* Fills polls with the ranks whose handshake goes on; returns their number. */
static int greet_all(mri_channel *c, bool *ready, uint32_t *count, mr_error *err)
{
    *count = 0;
    for (uint32_t r = 0; r < c->size; r++) {
        const char *what = "";
        if (r == c->rank || ready[r]) continue;
        const int rc = mri_carrier_tcp_greet(c->carriers[r], &c->polls[*count + 1], &what);
        ready[r] = rc == MR_OK;
        if (rc == MR_EAGAIN) ++*count;
        if (rc != MR_OK && rc != MR_EAGAIN) {
            mr_error why = MR_ERROR_INIT;
            mr_error_set(&why, MR_EPEER, "no TLS between %s and %s: %s", name_of(c, c->rank), name_of(c, r),
                         what);
            return give_up(c, err, &why);
        }
    }
    return MR_OK;
}

/* Every rank is here: they have just met. The pulse ends the wait for one that is gone. */
static int greet(mri_channel *c, mr_error *err)
{
    uint32_t count;
    bool *ready = calloc(c->size, sizeof *ready);
    if (!ready) return mr_error_set(err, MR_ENOMEM, "no memory for TLS");
    int rc = greet_all(c, ready, &count, err);
    while (rc == MR_OK && count) {
        c->polls[0] = (struct pollfd){.fd = mri_pulse_wake_fd(c->pulse), .events = POLLIN};
        (void)poll(c->polls, count + 1, -1);
        rc = mri_pulse_has_ended(c->pulse)
                 ? mri_pulse_verdict(c->pulse, "it was agreeing on keys of TLS", err)
                 : greet_all(c, ready, &count, err);
    }
    free(ready);
    return rc;
}

int mri_channel_encrypt(mri_channel *c, const mri_seal *seals, mr_error *err)
{
    char label[] = "millrace tls lane 0";
    int rc = MR_OK;
    label[sizeof label - 2] = (char)('0' + c->id);
    for (uint32_t r = 0; rc == MR_OK && r < c->size; r++) {
        const bool calls = c->rank > r; /* as in the mesh */
        uint8_t key[MRI_KEY_BYTES];
        if (r == c->rank) continue;
        if (mri_secret_tag(calls ? seals[r].out_key : seals[r].in_key, label, sizeof label, key))
            rc = mri_carrier_tcp_encrypt(c->carriers[r], calls, key, err);
        else rc = mr_error_set(err, MR_EUNSUPPORTED, "libcrypto has failed");
        explicit_bzero(key, sizeof key);
    }
    return rc == MR_OK ? greet(c, err) : rc;
}

/* ---- open, close ---- */

/* Takes all sockets. */
static int take_sockets(mri_channel *c, const int *fds)
{
    int rc = MR_OK;
    for (uint32_t r = 0; r < c->size; r++) {
        const int opened = fds[r] < 0 ? MR_OK : mri_carrier_tcp_open(&c->carriers[r], fds[r]);
        if (rc == MR_OK) rc = opened;
    }
    return rc;
}

static mri_channel *create(uint32_t size)
{
    mri_channel *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->size = size;
    c->carriers = calloc(size, sizeof(mri_carrier *));
    c->flows = calloc(size, sizeof *c->flows);
    c->polls = calloc(size + 1, sizeof *c->polls);
    c->left = calloc(size, sizeof *c->left);
    c->pieces = calloc(2 * (size_t)size, sizeof *c->pieces);
    if (c->carriers && c->flows && c->polls && c->left && c->pieces) return c;
    mri_channel_close(c);
    return NULL;
}

int mri_channel_open(mri_channel **out, uint32_t id, uint32_t rank, uint32_t size,
                     const char (*hosts)[MRI_WIRE_HOST_BYTES], const int *fds, mri_pulse *pulse,
                     mr_error *err)
{
    mri_channel *c = create(size);
    for (uint32_t r = 0; !c && r < size; r++)
        if (fds[r] >= 0) close(fds[r]);
    if (c) {
        c->id = id;
        c->rank = rank;
        c->hosts = hosts;
        c->pulse = pulse;
    }
    if (c && take_sockets(c, fds) == MR_OK) {
        *out = c;
        return MR_OK;
    }
    mri_channel_close(c);
    return mr_error_set(err, MR_ENOMEM, "no memory for a channel of %u ranks", size);
}

void mri_channel_close(mri_channel *c)
{
    if (!c) return;
    for (uint32_t r = 0; c->carriers && r < c->size; r++) mri_carrier_close(c->carriers[r]);
    free(c->carriers);
    free(c->flows);
    free(c->polls);
    free(c->left);
    free(c->pieces);
    free(c);
}
