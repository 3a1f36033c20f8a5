/* Transfers over a post whose messages are boxes in this process: each rank is a thread. Payloads around the
 * length that fits into a message with its head, heads that are refused, posts that fail, ranks that leave.
 */
#include <pthread.h>

#include "base/random.h"
#include "base/util.h"
#include "mrt.h"
#include "ranks/post/letters.h"

enum { RANKS = 3, HEAD = 24, SHORT = 4096 - HEAD, MOST = 3 * SHORT };

typedef struct message {
    struct message *next;
    size_t bytes;
    uint8_t data[];
} message;

/* All messages under way; each box is a queue. */
typedef struct office {
    pthread_mutex_t lock;
    message *box[RANKS][RANKS]; /* [to][from] */
    bool last[RANKS][RANKS];    /* the newest message of it ends its transfer */
    uint32_t turn;              /* every third message is not over at once */
    int drops, open, failing;   /* failing: the post of rank 0 does with its message of this number */
    bool confirms_late;         /* no last message is over as long as this is true */
} office;

typedef struct boxes {
    mri_post base;
    office *office;
    uint32_t rank;
    int sent;
    bool sent_after_last;
} boxes;

typedef struct letter { /* a receive on its way, or (data NULL) a send */
    uint32_t from;
    uint8_t *data;
    size_t most;
    int looks;
    bool late;
} letter;

static boxes *own(mri_post *p) { return (boxes *)p; }

static int send_box(mri_post *p, uint32_t rank, const void *data, size_t bytes, bool last, mri_letter *out,
                    bool *over, mr_error *err)
{
    boxes *b = own(p);
    office *o = b->office;
    if (b->rank == 0 && o->failing && ++b->sent == o->failing)
        return mr_error_set(err, MR_EIO, "the box burns");
    message *m = malloc(sizeof *m + bytes);
    *m = (message){.bytes = bytes};
    memcpy(m->data, data, bytes);
    pthread_mutex_lock(&o->lock);
    message **end = &o->box[rank][b->rank];
    while (*end) end = &(*end)->next;
    *end = m;
    if (o->last[rank][b->rank]) b->sent_after_last = true;
    o->last[rank][b->rank] = last;
    const bool late = o->confirms_late && last;
    *over = ++o->turn % 3 != 0 && !late;
    pthread_mutex_unlock(&o->lock);
    letter *l = *over ? NULL : calloc(1, sizeof *l);
    if (l) *l = (letter){.looks = 2, .late = late};
    out->request = l;
    return MR_OK;
}

static int receive_box(mri_post *p, uint32_t rank, void *data, size_t bytes, mri_letter *out, bool *over,
                       mr_error *err)
{
    letter *l = malloc(sizeof *l);
    (void)p;
    (void)err;
    *l = (letter){.from = rank, .data = data, .most = bytes};
    out->request = l;
    *over = false;
    return MR_OK;
}

static int look_box(mri_post *p, mri_letter *of, bool *over, mr_error *err)
{
    letter *l = of->request;
    office *o = own(p)->office;
    message *m = NULL;
    *over = !l->data && (l->late ? !o->confirms_late : l->looks-- == 0);
    if (l->data) {
        pthread_mutex_lock(&o->lock);
        message **first = &o->box[own(p)->rank][l->from];
        m = *first;
        if (m) *first = m->next;
        pthread_mutex_unlock(&o->lock);
        *over = m != NULL;
    }
    if (!*over) return MR_OK;
    const bool fits = !m || m->bytes <= l->most;
    if (m && fits) memcpy(l->data, m->data, m->bytes);
    free(m);
    free(l);
    of->request = NULL;
    return fits ? MR_OK : mr_error_set(err, MR_EIO, "a message too long");
}

static int flush_box(mri_post *p, mri_letter *out, bool *over, mr_error *err)
{
    letter *l = own(p)->rank ? calloc(1, sizeof *l) : NULL;
    (void)err;
    if (l) l->looks = 1;
    out->request = l;
    *over = !l;
    return MR_OK;
}

static void drop_box(mri_post *p, mri_letter *l, bool received)
{
    letter *of = l->request;
    MRT_EQ(received, of->data != NULL);
    own(p)->office->drops++;
    free(of);
}

static void close_box(mri_post *p, bool well)
{
    if (well) MRT_TRUE(!own(p)->sent_after_last);
    own(p)->office->open--;
    free(p);
}

static const mri_post_ops ops = {.name = "boxes",
                                 .send = send_box,
                                 .receive = receive_box,
                                 .look = look_box,
                                 .flush = flush_box,
                                 .drop = drop_box,
                                 .close = close_box};

/* ---- ranks ---- */

typedef struct member {
    office *office;
    mri_letters *letters;
    uint32_t rank, with;
    size_t send[RANKS], get[RANKS]; /* lengths of payloads, by rank; NONE */
    uint8_t *out[RANKS], *in[RANKS], head[HEAD];
    bool ended, refuses;
    uint32_t left; /* a rank, or RANKS */
    int rc;
    mr_error err;
} member;
#define NONE SIZE_MAX

static const uint8_t *head_of(void *context, uint32_t r)
{
    member *m = context;
    memset(m->head, (int)(16 * m->rank + r), HEAD);
    return m->head;
}

static int came(void *context, uint32_t r, const uint8_t *head, mr_error *err)
{
    const member *m = context;
    for (int k = 0; k < HEAD; k++)
        if (m->refuses || head[k] != 16 * r + m->rank)
            return mr_error_set(err, MR_EINVAL, "a head of rank %u", r);
    return MR_OK;
}

static bool sends(void *context, uint32_t r) { return ((member *)context)->send[r] != NONE; }
static bool gets(void *context, uint32_t r) { return ((member *)context)->get[r] != NONE; }
static bool ended(void *context) { return ((member *)context)->ended; }
static bool has_left(void *context, uint32_t r) { return ((member *)context)->left == r; }

static void *transfer(void *context)
{
    member *m = context;
    const mri_letters_of of = {.context = m,
                               .head = head_of,
                               .came = came,
                               .sends = sends,
                               .gets = gets,
                               .ended = ended,
                               .has_left = has_left};
    mr_world_piece send[RANKS] = {{0}}, receive[RANKS] = {{0}};
    for (uint32_t r = 0; r < RANKS; r++) {
        if (m->send[r] != NONE) send[r] = (mr_world_piece){m->out[r], m->send[r]};
        if (m->get[r] != NONE) receive[r] = (mr_world_piece){m->in[r], m->get[r]};
    }
    m->rc = mri_letters_transfer(m->letters, &of, send, receive, &m->with, &m->err);
    return NULL;
}

static void open_member(member *m, office *o, uint32_t rank, const mri_post_ops *by)
{
    boxes *post = malloc(sizeof *post);
    *post = (boxes){.base.ops = by, .office = o, .rank = rank};
    *m = (member){.office = o, .rank = rank, .left = RANKS, .err = MR_ERROR_INIT};
    o->open++;
    MRT_OK(mri_letters_open(&m->letters, &post->base, rank, RANKS, HEAD, &m->err), &m->err);
    for (uint32_t r = 0; r < RANKS; r++) {
        m->send[r] = m->get[r] = NONE;
        m->out[r] = malloc(MOST);
        m->in[r] = malloc(MOST);
    }
}

static void close_member(member *m)
{
    mri_letters_close(m->letters, m->rc == MR_OK);
    for (uint32_t r = 0; r < RANKS; r++) {
        free(m->out[r]);
        free(m->in[r]);
    }
}

/* No message and no post is left over. */
static void close_office(office *o)
{
    for (uint32_t to = 0; to < RANKS; to++)
        for (uint32_t from = 0; from < RANKS; from++)
            for (message *m = o->box[to][from], *next; m; m = next) {
                next = m->next;
                free(m);
            }
    MRT_EQ(o->open, 0);
    pthread_mutex_destroy(&o->lock);
}

static void payloads_of_all_lengths_arrive(void **state)
{
    (void)state;
    static const size_t lengths[] = {NONE, 0, 1, SHORT - 1, SHORT, SHORT + 1, MOST};
    office o = {.lock = PTHREAD_MUTEX_INITIALIZER};
    member members[RANKS];
    uint64_t dice = 1;
    for (uint32_t r = 0; r < RANKS; r++) open_member(&members[r], &o, r, &ops);
    for (int round = 0; round < 60; round++) {
        pthread_t threads[RANKS];
        for (uint32_t a = 0; a < RANKS; a++)
            for (uint32_t b = 0; b < RANKS; b++) {
                if (a == b) continue;
                const size_t bytes = lengths[mri_mix64(dice++) % MRI_ARRAY_COUNT(lengths)];
                members[a].send[b] = members[b].get[a] = bytes;
                if (bytes != NONE) mrt_noise(members[a].out[b], bytes, dice);
            }
        memset(o.last, 0, sizeof o.last);
        for (uint32_t r = 0; r < RANKS; r++) pthread_create(&threads[r], NULL, transfer, &members[r]);
        for (uint32_t r = 0; r < RANKS; r++) pthread_join(threads[r], NULL);
        for (uint32_t a = 0; a < RANKS; a++) {
            MRT_OK(members[a].rc, &members[a].err);
            for (uint32_t b = 0; b < RANKS; b++)
                if (a != b && members[a].send[b] != NONE) {
                    MRT_TRUE(memcmp(members[a].out[b], members[b].in[a], members[a].send[b]) == 0);
                    MRT_TRUE(o.last[b][a]);
                }
        }
    }
    for (uint32_t r = 0; r < RANKS; r++) close_member(&members[r]);
    MRT_EQ(o.drops, 0);
    close_office(&o);
}

typedef enum trouble { HEAD_REFUSED, WORLD_ENDED, POST_FAILS, RANK_LEFT } trouble;

static void what_cannot_go_on_ends(void **state)
{
    (void)state;
    static const struct {
        trouble what;
        int rc;
        const char *said;
    } cases[] = {{HEAD_REFUSED, MR_EINVAL, "a head of rank 1"},
                 {WORLD_ENDED, MR_ECANCELED, ""},
                 {POST_FAILS, MR_EIO, "the box burns"},
                 {RANK_LEFT, MR_EPEER, ""}};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(cases); i++) {
        office o = {.lock = PTHREAD_MUTEX_INITIALIZER, .failing = cases[i].what == POST_FAILS};
        member zero, one;
        open_member(&zero, &o, 0, &ops);
        open_member(&one, &o, 1, &ops);
        zero.get[1] = zero.get[2] = zero.send[1] = 10; /* rank 2 sends nothing */
        one.send[0] = 10;
        zero.refuses = cases[i].what == HEAD_REFUSED;
        zero.ended = cases[i].what == WORLD_ENDED;
        zero.left = cases[i].what == RANK_LEFT ? 2 : RANKS;
        memset(one.out[0], 1, 10);
        memset(zero.out[1], 1, 10);
        if (zero.refuses) transfer(&one);
        transfer(&zero);
        MRT_EQ(zero.rc, cases[i].rc);
        MRT_HAS(zero.err.text, cases[i].said);
        if (cases[i].what == RANK_LEFT) MRT_EQ(zero.with, 2);
        if (cases[i].what != WORLD_ENDED) MRT_TRUE(o.drops > 0);
        const int drops = o.drops;
        transfer(&zero); /* of no more use, and nothing is begun */
        if (cases[i].what != WORLD_ENDED) MRT_EQ(zero.rc, MR_ECANCELED);
        MRT_EQ(o.drops, drops);
        close_member(&zero);
        close_member(&one);
        close_office(&o);
    }
}

/* Rank 1 has received all, and leaves before its library confirms it; rank 2 leaves without its message. */
static void who_left_need_not_confirm(void **state)
{
    (void)state;
    const size_t lengths[] = {10, MOST, 10};
    mri_post_ops confirms = ops;
    confirms.flush = NULL;
    for (size_t i = 0; i < MRI_ARRAY_COUNT(lengths); i++) {
        const uint32_t gone = i == 2 ? 2 : 1;
        office o = {.lock = PTHREAD_MUTEX_INITIALIZER, .confirms_late = true};
        member zero, one;
        open_member(&zero, &o, 0, &confirms);
        open_member(&one, &o, 1, &confirms);
        zero.send[1] = one.get[0] = lengths[i];
        zero.get[1] = one.send[0] = 10;
        if (gone == 2) zero.get[2] = 10;
        mrt_noise(zero.out[1], lengths[i], 1);
        memset(one.out[0], 1, 10);
        zero.left = gone;
        one.left = 0;
        pthread_t thread;
        pthread_create(&thread, NULL, transfer, &one);
        transfer(&zero);
        pthread_join(thread, NULL);
        MRT_OK(one.rc, &one.err);
        MRT_TRUE(memcmp(one.in[0], zero.out[1], lengths[i]) == 0);
        MRT_EQ(zero.rc, gone == 1 ? MR_OK : MR_EPEER);
        if (gone == 1) MRT_EQ(o.drops, 0);
        else MRT_EQ(zero.with, 2);
        transfer(&zero);
        MRT_EQ(zero.rc, MR_ECANCELED);
        o.confirms_late = false;
        close_member(&zero);
        close_member(&one);
        close_office(&o);
    }
}

static void without_memory_the_post_is_closed(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        office o = {.lock = PTHREAD_MUTEX_INITIALIZER, .open = 1};
        boxes *post = malloc(sizeof *post);
        mri_letters *letters = NULL;
        mr_error err = MR_ERROR_INIT;
        *post = (boxes){.base.ops = &ops, .office = &o};
        mrt_fail_alloc_at(k);
        const int rc = mri_letters_open(&letters, &post->base, 0, RANKS, HEAD, &err);
        mrt_fail_alloc_at(-1);
        MRT_EQ(rc, MR_ENOMEM);
        MRT_HAS(err.text, "no memory for messages between 3 ranks");
        close_office(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_of_all_lengths_arrive),
        cmocka_unit_test(what_cannot_go_on_ends),
        cmocka_unit_test(who_left_need_not_confirm),
        cmocka_unit_test(without_memory_the_post_is_closed),
    };
    return mrt_run(tests);
}
