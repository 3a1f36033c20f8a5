/* ranks/post/letters.c: see letters.h. */
#include "ranks/post/letters.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"

enum {
    SHORT_BYTES = 4096,   /* of a head and its payload in one message */
    PART_BYTES = 1 << 30, /* of a message: MPI counts in int */
    LOOKS = 64,           /* between two looks at the clock */
    YIELD_NS = 200000,    /* look again after others had the core, */
    SLEEP_NS = 50000,     /* then after a sleep */
};
#define LEFT_NS UINT64_C(1000000000)

typedef enum stage { OVER = 0, HEAD, PAYLOAD } stage;

/* One direction of one rank. */
typedef struct run {
    stage at;
    bool waits; /* letter is on its way */
    mri_letter letter;
    size_t moved, part; /* bytes of the payload that are there, that the letter has */
    uint8_t *brief;     /* SHORT_BYTES */
} run;

struct mri_letters {
    mri_post *post;
    uint32_t rank, size;
    size_t head_bytes;
    bool failed;
    bool unconfirmed; /* messages to ranks that have left, which still have their letters */
    run *out, *in;    /* by rank */
    uint8_t *briefs;
};

static bool is_short(const mri_letters *l, const mr_world_piece *piece)
{
    return piece->bytes <= SHORT_BYTES - l->head_bytes;
}

/* ---- one step ---- */

static int begin_part(mri_letters *l, run *of_one, uint32_t r, const mr_world_piece *piece, bool sends,
                      bool *over, mr_error *err)
{
    uint8_t *at = (uint8_t *)piece->data + of_one->moved;
    of_one->part = (size_t)mri_min_u64(piece->bytes - of_one->moved, PART_BYTES);
    const bool last = of_one->moved + of_one->part == piece->bytes;
    return sends ? l->post->ops->send(l->post, r, at, of_one->part, last, &of_one->letter, over, err)
                 : l->post->ops->receive(l->post, r, at, of_one->part, &of_one->letter, over, err);
}

static int begin_head(mri_letters *l, run *of_one, uint32_t r, const mri_letters_of *of,
                      const mr_world_piece *piece, bool sends, bool *over, mr_error *err)
{
    size_t bytes = l->head_bytes;
    of_one->moved = of_one->part = 0;
    if (!sends)
        return l->post->ops->receive(l->post, r, of_one->brief, SHORT_BYTES, &of_one->letter, over, err);
    memcpy(of_one->brief, of->head(of->context, r), l->head_bytes);
    const bool last = is_short(l, piece);
    if (last) {
        if (piece->bytes) memcpy(of_one->brief + bytes, piece->data, piece->bytes);
        bytes += piece->bytes;
    }
    return l->post->ops->send(l->post, r, of_one->brief, bytes, last, &of_one->letter, over, err);
}

/* The letter is over: what comes next? */
static int advance(mri_letters *l, run *of_one, uint32_t r, const mri_letters_of *of,
                   const mr_world_piece *piece, bool sends, mr_error *err)
{
    if (of_one->at == HEAD) {
        const int rc = sends ? MR_OK : of->came(of->context, r, of_one->brief, err);
        if (rc) return rc;
        if (is_short(l, piece)) {
            if (!sends && piece->bytes) memcpy(piece->data, of_one->brief + l->head_bytes, piece->bytes);
            of_one->at = OVER;
            return MR_OK;
        }
        of_one->at = PAYLOAD;
        return MR_OK;
    }
    of_one->moved += of_one->part;
    if (of_one->moved == piece->bytes) of_one->at = OVER;
    return MR_OK;
}

/* As far as it goes without a wait. *moved: something was over. */
static int step(mri_letters *l, run *of_one, uint32_t r, const mri_letters_of *of,
                const mr_world_piece *piece, bool sends, bool *moved, mr_error *err)
{
    while (of_one->at != OVER) {
        bool over = false;
        int rc;
        if (of_one->waits) rc = l->post->ops->look(l->post, &of_one->letter, &over, err);
        else if (of_one->at == HEAD) rc = begin_head(l, of_one, r, of, piece, sends, &over, err);
        else rc = begin_part(l, of_one, r, piece, sends, &over, err);
        of_one->waits = rc == MR_OK && !over;
        if (rc) return rc;
        if (!over) return MR_OK;
        *moved = true;
        rc = advance(l, of_one, r, of, piece, sends, err);
        if (rc) return rc;
    }
    return MR_OK;
}

/* ---- all of them ---- */

static int step_all(mri_letters *l, const mri_letters_of *of, const mr_world_piece *send,
                    const mr_world_piece *receive, bool *left, bool *moved, uint32_t *with, mr_error *err)
{
    *left = *moved = false;
    for (uint32_t k = 1; k < l->size; k++) {
        const uint32_t r = (l->rank + k) % l->size;
        *with = r;
        int rc = step(l, &l->in[r], r, of, &receive[r], false, moved, err);
        if (rc == MR_OK) rc = step(l, &l->out[r], r, of, &send[r], true, moved, err);
        if (rc) return rc;
        *left |= l->in[r].at != OVER || l->out[r].at != OVER;
    }
    return MR_OK;
}

/* Nothing more comes from the rank, and the last message to it waits for its confirmation. */
static bool is_unconfirmed(const mri_letters *l, uint32_t r, const mr_world_piece *piece)
{
    const run *out = &l->out[r];
    if (l->post->ops->flush || l->in[r].at != OVER || !out->waits) return false;
    return out->at == HEAD ? is_short(l, piece) : out->moved + out->part == piece->bytes;
}

/* A rank that left well has sent all it will, and a second is enough for it to come. It has also received all
 * that it wanted, but where its library confirms the last message only in a further call, it may have made
 * none. The wait for it then ends, and no further message goes over this post. */
static int find_left(mri_letters *l, const mri_letters_of *of, const mr_world_piece *send, uint64_t since_ns,
                     uint32_t *with, mr_error *err)
{
    if (!since_ns || mri_now_ns() - since_ns < LEFT_NS) return MR_OK;
    for (uint32_t r = 0; r < l->size; r++) {
        if ((l->in[r].at == OVER && l->out[r].at == OVER) || !of->has_left(of->context, r)) continue;
        *with = r;
        if (!is_unconfirmed(l, r, &send[r])) return mr_error_set(err, MR_EPEER, "it has left");
        l->out[r].at = OVER;
        l->unconfirmed = true;
    }
    return MR_OK;
}

/* The other end may need this core. */
static void rest(uint64_t waited_ns)
{
    const struct timespec moment = {.tv_nsec = SLEEP_NS};
    if (waited_ns < YIELD_NS) sched_yield();
    else nanosleep(&moment, NULL);
}

static void drop_all(mri_letters *l)
{
    for (uint32_t r = 0; r < l->size; r++) {
        if (l->in[r].waits) l->post->ops->drop(l->post, &l->in[r].letter, true);
        if (l->out[r].waits) l->post->ops->drop(l->post, &l->out[r].letter, false);
        l->in[r].waits = l->out[r].waits = false;
    }
    l->failed = true;
}

static bool any_has_left(const mri_letters *l, const mri_letters_of *of)
{
    bool left = false;
    for (uint32_t r = 0; r < l->size && !left; r++) left = r != l->rank && of->has_left(of->context, r);
    return left;
}

/* A rank that left well has received all that it wanted, but does not confirm it. The wait then ends, and no
 * further message goes over this post. */
static int flush(mri_letters *l, const mri_letters_of *of, mr_error *err)
{
    mri_letter letter = {NULL};
    bool over = false;
    const uint64_t since_ns = mri_now_ns();
    if (!l->post->ops->flush) return MR_OK;
    int rc = l->post->ops->flush(l->post, &letter, &over, err);
    while (rc == MR_OK && !over) {
        rc = l->post->ops->look(l->post, &letter, &over, err);
        if (rc != MR_OK || over) break;
        const uint64_t waited_ns = mri_now_ns() - since_ns;
        const bool left = waited_ns > LEFT_NS && any_has_left(l, of), ended = of->ended(of->context);
        if (!left && !ended) {
            rest(waited_ns);
            continue;
        }
        l->post->ops->drop(l->post, &letter, false);
        l->failed = true;
        return ended ? MR_ECANCELED : MR_OK;
    }
    if (rc == MR_OK || !any_has_left(l, of)) return rc;
    l->failed = true;
    return MR_OK;
}

int mri_letters_transfer(mri_letters *l, const mri_letters_of *of, const mr_world_piece *send,
                         const mr_world_piece *receive, uint32_t *with, mr_error *err)
{
    bool left = true, moved = true;
    uint64_t since_ns = 0;
    int rc = of->ended(of->context) || l->failed || l->unconfirmed ? MR_ECANCELED : MR_OK;
    if (rc) return rc;
    for (uint32_t r = 0; r < l->size; r++) {
        l->in[r].at = r != l->rank && of->gets(of->context, r) ? HEAD : OVER;
        l->out[r].at = r != l->rank && of->sends(of->context, r) ? HEAD : OVER;
    }
    while (rc == MR_OK && left) {
        for (int k = 0; rc == MR_OK && left && k < LOOKS; k++) {
            rc = step_all(l, of, send, receive, &left, &moved, with, err);
            if (moved) since_ns = 0;
            if (!moved && since_ns) rest(mri_now_ns() - since_ns);
            else if (!moved) since_ns = mri_now_ns();
        }
        if (rc == MR_OK && left)
            rc = of->ended(of->context) ? MR_ECANCELED : find_left(l, of, send, since_ns, with, err);
    }
    if (rc == MR_OK) rc = flush(l, of, err);
    if (rc) drop_all(l);
    return rc;
}

/* ---- open, close ---- */

int mri_letters_open(mri_letters **out, mri_post *post, uint32_t rank, uint32_t size, size_t head_bytes,
                     mr_error *err)
{
    mri_letters *l = calloc(1, sizeof *l);
    run *runs = calloc(2 * (size_t)size, sizeof *runs);
    uint8_t *briefs = malloc(2 * (size_t)size * SHORT_BYTES);
    if (!l || !runs || !briefs) {
        free(l);
        free(runs);
        free(briefs);
        mri_post_close(post, false);
        return mr_error_set(err, MR_ENOMEM, "no memory for messages between %u ranks", size);
    }
    *l = (mri_letters){.post = post,
                       .rank = rank,
                       .size = size,
                       .head_bytes = head_bytes,
                       .out = runs,
                       .in = runs + size,
                       .briefs = briefs};
    for (uint32_t r = 0; r < 2 * size; r++) runs[r].brief = briefs + (size_t)r * SHORT_BYTES;
    *out = l;
    return MR_OK;
}

/* At messages that nobody has confirmed. What is still not over then belongs to the library until its end,
 * but nobody reads it: the other rank has it. */
static void look_last(mri_letters *l)
{
    bool over;
    for (uint32_t r = 0; r < l->size && l->unconfirmed; r++)
        if (l->out[r].waits) (void)l->post->ops->look(l->post, &l->out[r].letter, &over, NULL);
}

void mri_letters_close(mri_letters *l, bool well)
{
    if (!l) return;
    look_last(l);
    mri_post_close(l->post, well && !l->failed);
    free(l->out);
    free(l->briefs);
    free(l);
}
