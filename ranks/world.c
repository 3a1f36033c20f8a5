/* ranks/world.c: the public calls of a world: its parts opened in order, and what each call transfers. */
#include <netdb.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/handle.h"
#include "ranks/address.h"
#include "ranks/meet.h"
#include "ranks/wires.h"

enum { SPARE_FILES = 64 }; /* for the rest of the program, in addition to the sockets */

struct mr_world {
    uint32_t process; /* that opened it (base/handle.h) */
    uint32_t rank, size;
    char (*hosts)[MRI_WIRE_HOST_BYTES];
    char (*addresses)[MRI_ADDRESS_BYTES]; /* address.h */
    mri_pulse *pulse;
    mri_channel *channels[MR_WORLD_CHANNELS];
    mr_guard guard;
    bool encrypts;
    mri_wires wires;
    atomic_bool note_given;
    double meet_s, silence_s;
    mr_wire_choice wire;
    bool tls;
    mri_door door; /* who was turned away while the ranks met */
};

/* ---- open, close ---- */

static const mr_world_config defaults = {
    .struct_size = sizeof defaults, .size = 1, .meet_s = 60, .silence_s = 10};

void mr_world_defaults_sized(mr_world_config *cfg, size_t struct_size)
{
    mri_settings_give(cfg, struct_size, &defaults, sizeof defaults);
}

static int check_settings(const mr_world_config *c, mr_error *err)
{
    if (c->size < 1 || c->size > MRI_WIRE_RANKS_MOST)
        return mr_error_set(err, c->size ? MR_ELIMIT : MR_EINVAL, "a world of %u ranks: expected 1 to %d",
                            c->size, MRI_WIRE_RANKS_MOST);
    if (c->rank >= c->size)
        return mr_error_set(err, MR_EINVAL, "rank %u of %u: expected a rank below it", c->rank, c->size);
    if (c->card_bytes > MRI_WIRE_CARD_BYTES || (c->card_bytes && !c->card))
        return mr_error_set(err, c->card ? MR_ELIMIT : MR_EINVAL, "a card of %zu bytes: at most %d",
                            c->card_bytes, MRI_WIRE_CARD_BYTES);
    if (c->wire > MR_WIRE_UCX)
        return mr_error_set(err, MR_EINVAL,
                            "wire is %u: expected MR_WIRE_AUTO, _TCP, _SHM, _NCCL, _MPI or _UCX", c->wire);
    if (!(c->meet_s > 0 && c->meet_s <= 1e6))
        return mr_error_set(err, MR_EINVAL, "meet_s is %g: expected seconds above 0, at most 1e6", c->meet_s);
    if (!(c->silence_s == 0 || (c->silence_s >= 0.5 && c->silence_s <= 1e6)))
        return mr_error_set(err, MR_EINVAL, "silence_s is %g: expected 0 or seconds from 0.5 to 1e6",
                            c->silence_s);
    struct rlimit files;
    const uint64_t needed = (uint64_t)MRI_LANES * (c->size - 1) + SPARE_FILES;
    if (c->size > 1 && getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < needed)
        return mr_error_set(err, MR_ELIMIT,
                            "%u ranks need %llu open files, %llu are allowed: raise the limit (ulimit -n)",
                            c->size, (unsigned long long)needed, (unsigned long long)files.rlim_cur);
    return MR_OK;
}

/* Of rank 0 the text by which the others found it. */
static void keep_address(mr_world *w, const mri_meeting *m, uint32_t rank)
{
    char *out = w->addresses[rank];
    struct sockaddr_storage to;
    const bool own = rank == w->rank && !m->place.this_host_only;
    snprintf(out, MRI_ADDRESS_BYTES, "%.255s", own ? m->host : m->place.host);
    if (rank == 0 || rank == w->rank) return;
    const socklen_t bytes = mri_wire_seat_to(&m->seats[rank], &to);
    (void)getnameinfo((const struct sockaddr *)&to, bytes, out, MRI_ADDRESS_BYTES, NULL, 0, NI_NUMERICHOST);
}

static int meet(mr_world *w, const mr_world_config *cfg, int *fds, mri_seal *seals, mr_error *err)
{
    mri_meeting m;
    int rc = mri_meeting_init(&m, cfg, err);
    if (rc != MR_OK) return rc;
    rc = cfg->rank == 0 ? mri_meet_as_host(&m, err) : mri_meet_as_guest(&m, err);
    if (rc == MR_OK) rc = mri_mesh_join(&m, fds, seals, err);
    for (uint32_t r = 0; rc == MR_OK && r < cfg->size; r++)
        memcpy(w->hosts[r], m.seats[r].host, sizeof *w->hosts), keep_address(w, &m, r);
    w->encrypts = m.tls;
    w->guard = m.secret.set ? MR_GUARD_SECRET : m.place.this_host_only ? MR_GUARD_HOST : MR_GUARD_NONE;
    mri_door_take(&w->door, &m.door);
    mri_meeting_fini(&m);
    return rc;
}

/* Each part takes its sockets, whether it can be opened or not. */
static int open_parts(mr_world *w, const mr_world_config *cfg, int *fds, const mri_seal *seals, mr_error *err)
{
    const char(*hosts)[MRI_WIRE_HOST_BYTES] = (const char(*)[MRI_WIRE_HOST_BYTES])w->hosts;
    int rc = mri_pulse_open(&w->pulse, w->rank, w->size, hosts, fds + (size_t)MRI_LANE_PULSE * w->size, seals,
                            cfg->silence_s, err);
    for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++) {
        const int opened = mri_channel_open(&w->channels[c], c, w->rank, w->size, hosts,
                                            fds + (size_t)c * w->size, w->pulse, rc == MR_OK ? err : NULL);
        if (rc == MR_OK) rc = opened;
    }
    for (uint32_t c = 0; rc == MR_OK && w->encrypts && c < MR_WORLD_CHANNELS; c++)
        rc = mri_channel_encrypt(w->channels[c], seals, err);
    if (rc == MR_OK && w->size > 1) rc = mri_wires_choose(&w->wires, w, w->channels, cfg->wire, err);
    if (rc != MR_OK && w->pulse)
        mri_pulse_give_up(w->pulse, 0, "its world cannot be opened"); /* the others have theirs */
    return rc;
}

static int open_world(mr_world *w, const mr_world_config *cfg, mr_error *err)
{
    w->rank = cfg->rank;
    w->size = cfg->size;
    w->meet_s = cfg->meet_s, w->silence_s = cfg->silence_s;
    w->wire = cfg->wire, w->tls = cfg->tls;
    w->guard = MR_GUARD_HOST; /* a world of one opens no socket */
    w->hosts = calloc(cfg->size, sizeof *w->hosts);
    w->addresses = calloc(cfg->size, sizeof *w->addresses);
    int *fds = malloc(MRI_LANES * (size_t)cfg->size * sizeof *fds), rc = MR_OK;
    mri_seal *seals = calloc(cfg->size, sizeof *seals);
    if (!w->hosts || !w->addresses || !fds || !seals)
        rc = mr_error_set(err, MR_ENOMEM, "no memory for a world of %u ranks", cfg->size);
    for (size_t k = 0; rc == MR_OK && k < MRI_LANES * (size_t)cfg->size; k++) fds[k] = -1;
    if (rc == MR_OK && cfg->size > 1) rc = meet(w, cfg, fds, seals, err);
    else if (rc == MR_OK && gethostname(w->hosts[0], sizeof *w->hosts - 1) != 0) w->hosts[0][0] = '\0';
    if (rc == MR_OK) rc = open_parts(w, cfg, fds, seals, err);
    free(fds);
    free(seals);
    return rc;
}

int mr_world_open(mr_world **out, const mr_world_config *cfg, mr_error *err)
{
    mr_world_config mine = defaults;
    MRI_GIVEN(err, out);
    *out = NULL;
    int rc = mri_settings_take(&mine, sizeof mine, cfg, "world", err);
    if (rc == MR_OK) rc = check_settings(&mine, err);
    if (rc != MR_OK) return rc;
    mr_world *w = calloc(1, sizeof *w);
    if (!w) return mr_error_set(err, MR_ENOMEM, "no memory for a world");
    w->process = mri_process();
    mri_door_init(&w->door);
    rc = open_world(w, &mine, err);
    if (rc == MR_OK) *out = w;
    else mr_world_close(w);
    return rc;
}

void mr_world_close(mr_world *w)
{
    if (!MRI_IS_OWN(w)) return;
    for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++) mri_channel_close_letters(w->channels[c]);
    mri_pulse_close(w->pulse); /* the farewell first: what ends without it is lost */
    for (uint32_t c = 0; c < MR_WORLD_CHANNELS; c++) mri_channel_close(w->channels[c]);
    mri_door_fini(&w->door);
    free(w->addresses);
    free(w->hosts);
    free(w);
}

uint32_t mr_world_rank(const mr_world *w) { return w ? w->rank : 0; }
uint32_t mr_world_size(const mr_world *w) { return w ? w->size : 0; }
mr_guard mr_world_guard(const mr_world *w) { return w ? w->guard : MR_GUARD_NONE; }
bool mr_world_encrypts(const mr_world *w) { return w && w->encrypts; }
bool mr_world_turned_away(mr_world *w, char *text, size_t text_bytes)
{
    return MRI_IS_OWN(w) && text && mri_door_tell(&w->door, text, text_bytes);
}
const char *mr_world_wires(const mr_world *w) { return w && w->wires.name ? w->wires.name : ""; }
mr_wire_choice mr_world_wire(const mr_world *w) { return w ? w->wire : MR_WIRE_AUTO; }
uint32_t mr_world_ranks_per_host(const mr_world *w) { return w && w->wires.per_host ? w->wires.per_host : 1; }
double mr_world_meet_s(const mr_world *w) { return w ? w->meet_s : 0; }
bool mr_world_wire_note(mr_world *w, char *text, size_t text_bytes)
{
    if (!MRI_IS_OWN(w) || !text || !w->wires.note[0] || atomic_exchange(&w->note_given, true)) return false;
    snprintf(text, text_bytes, "%s", w->wires.note);
    return true;
}
const char *mr_world_host(const mr_world *w, uint32_t rank)
{
    return w && rank < w->size ? w->hosts[rank] : "";
}

void mri_world_address(const mr_world *w, uint32_t rank, char out[MRI_ADDRESS_BYTES])
{
    snprintf(out, MRI_ADDRESS_BYTES, "%s", rank < w->size ? w->addresses[rank] : "");
}

mr_world_config mri_world_settings(const mr_world *w)
{
    mr_world_config cfg = defaults;
    cfg.meet_s = w->meet_s, cfg.silence_s = w->silence_s;
    cfg.wire = w->wire, cfg.tls = w->tls;
    return cfg;
}

/* ---- calls ---- */

/* A call that cannot be made: the others would wait for it. */
static int misuse(mr_world *w, mr_error *err, const char *what)
{
    mr_error why = MR_ERROR_INIT;
    mr_error_set(&why, MR_EINVAL, "%s: %s", mri_meet_name(w->rank, w->hosts[w->rank]), what);
    mri_pulse_give_up(w->pulse, 0, why.text);
    if (err) *err = why;
    return MR_EINVAL;
}

static int begin(mr_world *w, uint32_t channel, mri_call call, mr_error *err)
{
    if (channel >= MR_WORLD_CHANNELS) return misuse(w, err, "a call on a channel that a world does not have");
    return mri_channel_begin(w->channels[channel], call, err);
}

static bool are_pieces(const mr_world *w, const mr_world_piece *pieces)
{
    for (uint32_t r = 0; pieces && r < w->size; r++)
        if (r != w->rank && pieces[r].bytes && !pieces[r].data) return false;
    return pieces || w->size == 1;
}

int mr_world_exchange(mr_world *w, uint32_t channel, const mr_world_piece *send,
                      const mr_world_piece *receive, mr_error *err)
{
    MRI_OWN(err, w);
    if (!are_pieces(w, send) || !are_pieces(w, receive))
        return misuse(w, err, "an exchange of bytes that are nowhere (NULL)");
    const int rc = begin(w, channel, MRI_CALL_EXCHANGE, err);
    if (rc != MR_OK || w->size == 1) return rc == MR_OK ? mri_channel_end(w->channels[channel], rc) : rc;
    return mri_channel_end(w->channels[channel],
                           mri_channel_transfer(w->channels[channel], 0, send, receive, err));
}

/* A binomial tree: from the rank that lacks the lowest bit of one's distance to root, then to the ranks that
 * have one lower bit more. The farthest first: they have the most below them. */
static int broadcast(mr_world *w, mri_channel *c, const mr_world_piece *piece, uint32_t root, mr_error *err)
{
    mr_world_piece *send, *receive;
    const uint32_t distance = (w->rank + w->size - root) % w->size;
    uint32_t bit = 1;
    while (bit < w->size && !(distance & bit)) bit <<= 1;
    mri_channel_pieces(c, &send, &receive);
    if (distance) receive[(distance - bit + root) % w->size] = *piece;
    int rc = mri_channel_transfer(c, 0, send, receive, err);
    mri_channel_pieces(c, &send, &receive);
    for (bit >>= 1; bit; bit >>= 1)
        if (distance + bit < w->size) send[(distance + bit + root) % w->size] = *piece;
    return rc == MR_OK ? mri_channel_transfer(c, 0, send, receive, err) : rc;
}

int mr_world_broadcast(mr_world *w, uint32_t channel, void *data, size_t bytes, uint32_t root, mr_error *err)
{
    MRI_OWN(err, w);
    if (root >= w->size) return misuse(w, err, "a broadcast of a rank that a world does not have");
    if (bytes && !data) return misuse(w, err, "a broadcast of bytes that are nowhere (NULL)");
    int rc = begin(w, channel, MRI_CALL_BROADCAST, err);
    if (rc != MR_OK) return rc;
    const mr_world_piece piece = {bytes ? data : &mri_transfer_token, bytes};
    rc = broadcast(w, w->channels[channel], &piece, root, err);
    return mri_channel_end(w->channels[channel], rc);
}

int mr_world_gather(mr_world *w, uint32_t channel, const void *mine, size_t bytes, void *all, mr_error *err)
{
    mr_world_piece *send, *receive;
    size_t total;
    MRI_OWN(err, w);
    if (!mri_mul_size(bytes, w->size, &total) || (bytes && (!mine || !all)))
        return misuse(w, err, "a gather of bytes that are nowhere (NULL), or too many");
    int rc = begin(w, channel, MRI_CALL_GATHER, err);
    if (rc != MR_OK) return rc;
    mri_channel *c = w->channels[channel];
    mri_channel_pieces(c, &send, &receive);
    uint8_t *own = bytes ? (uint8_t *)all + w->rank * bytes : NULL;
    if (bytes && own != mine) memcpy(own, mine, bytes);
    for (uint32_t r = 0; r < w->size; r++) {
        send[r] = (mr_world_piece){bytes ? own : (void *)&mri_transfer_token, bytes};
        receive[r] =
            (mr_world_piece){bytes ? (uint8_t *)all + r * bytes : (void *)&mri_transfer_token, bytes};
    }
    rc = mri_channel_transfer(c, 0, send, receive, err);
    return mri_channel_end(c, rc);
}

/* Dissemination: in round k hear of the 2^k ranks before those heard of so far. */
int mr_world_barrier(mr_world *w, uint32_t channel, mr_error *err)
{
    MRI_OWN(err, w);
    int rc = begin(w, channel, MRI_CALL_BARRIER, err);
    if (rc != MR_OK) return rc;
    mri_channel *c = w->channels[channel];
    for (uint32_t k = 0, step = 1; rc == MR_OK && step < w->size; k++, step *= 2) {
        mr_world_piece *send, *receive;
        mri_channel_pieces(c, &send, &receive);
        send[(w->rank + step) % w->size].data = &mri_transfer_token;
        receive[(w->rank + w->size - step) % w->size].data = &mri_transfer_token;
        rc = mri_channel_transfer(c, k, send, receive, err);
    }
    return mri_channel_end(c, rc);
}

void mr_world_abort(mr_world *w, const mr_error *why)
{
    char text[MRI_WIRE_TEXT_BYTES] = "";
    if (!MRI_IS_OWN(w)) return;
    if (why) mr_error_format(why, text, sizeof text);
    const int cause = !why ? 0 : why->host ? why->host : why->code;
    mri_pulse_give_up(w->pulse, cause, text[0] ? text : "it does not say why");
}

int mr_world_check(mr_world *w, mr_error *err)
{
    char doing[64];
    MRI_OWN(err, w);
    if (!mri_pulse_has_ended(w->pulse)) return MR_OK;
    snprintf(doing, sizeof doing, "rank %u was between two calls", w->rank);
    return mri_pulse_verdict(w->pulse, doing, err);
}

bool mr_world_was_lost(const mr_world *w, uint32_t *rank)
{
    mri_blame_how how;
    if (!MRI_IS_OWN(w) || !rank) return false;
    if (!mri_pulse_blames(w->pulse, rank, &how)) return false;
    return *rank != w->rank || how != MRI_BLAME_GAVE_UP;
}

void mr_world_traffic(const mr_world *w, uint64_t *sent, uint64_t *received)
{
    uint64_t all_sent = 0, all_received = 0;
    for (uint32_t c = 0; w && c < MR_WORLD_CHANNELS; c++) {
        uint64_t one_sent, one_received;
        mri_channel_traffic(w->channels[c], &one_sent, &one_received);
        all_sent += one_sent;
        all_received += one_received;
    }
    if (sent) *sent = all_sent;
    if (received) *received = all_received;
}

void mr_world_arrivals(const mr_world *w, uint32_t channel, uint64_t *first_ns)
{
    if (!w || !first_ns || channel >= MR_WORLD_CHANNELS) return;
    if (w->size == 1) first_ns[0] = 0;
    else mri_channel_arrivals(w->channels[channel], first_ns);
}
