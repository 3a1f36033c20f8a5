/* ranks/post/post.h: bytes to and from other ranks as messages of another program's library. Private.
 *
 * A post sends and receives whole messages, in order between two ranks, and never waits. letters.c knows this
 * table only, so another library is another table and an open function.
 *
 *   mpi.c      point-to-point messages of Open MPI or MPICH, whichever started the processes
 *   ucx.c      tagged messages of UCX
 *
 * Nothing is linked: a library is opened when a world wants it. One thread at a time. */
#ifndef MRI_POST_H
#define MRI_POST_H

#include "millrace/ranks.h"

enum { MRI_POST_CARD_BYTES = 4096, MRI_POST_VERSION_BYTES = 64 };

typedef struct mri_post mri_post;

/* One message on its way; NULL: none. */
typedef struct mri_letter {
    void *request;
} mri_letter;

typedef struct mri_post_ops {
    const char *name; /* of the library */
    /* Begin to send or receive a message; the bytes belong to it until look() says that it is over. *over: it
     * is already. last: of a transfer to this rank, after which nobody may call the library for a long time:
     * without a flush() it is over only when the other rank has begun to receive it. MR_OK, or MR_EIO with
     * the library's words. */
    int (*send)(mri_post *p, uint32_t rank, const void *data, size_t bytes, bool last, mri_letter *out,
                bool *over, mr_error *err);
    int (*receive)(mri_post *p, uint32_t rank, void *data, size_t bytes, mri_letter *out, bool *over,
                   mr_error *err);
    int (*look)(mri_post *p, mri_letter *l, bool *over, mr_error *err);
    /* Begin to push out the messages that are over here and not sent yet: nobody calls the library again
     * soon. As send(); NULL: no such messages exist. */
    int (*flush)(mri_post *p, mri_letter *out, bool *over, mr_error *err);
    /* Of a message that is not over: its bytes are the caller's again. The post is of no more use. */
    void (*drop)(mri_post *p, mri_letter *l, bool received);
    /* Write to card, zeroed, the address of this rank for the others. All ranks at once. MR_EUNSUPPORTED:
     * the processes were not started by this library; MR_ENOMEM, MR_EIO. */
    int (*begin)(mri_post *p, uint8_t card[MRI_POST_CARD_BYTES], mr_error *err);
    /* cards[r * MRI_POST_CARD_BYTES] are the cards of all ranks. All ranks at once. The same errors. */
    int (*connect)(mri_post *p, const uint8_t *cards, mr_error *err);
    /* well: the world has not failed, so sent messages must still arrive. */
    void (*close)(mri_post *p, bool well);
} mri_post_ops;

/* The first member of every post. */
struct mri_post {
    const mri_post_ops *ops;
};

/* MR_EUNSUPPORTED: the library is missing or too old; MR_ENOMEM. */
int mri_post_open_mpi(mri_post **out, mr_launcher launcher, uint32_t rank, uint32_t size, mr_error *err);
int mri_post_open_ucx(mri_post **out, uint32_t rank, uint32_t size, mr_error *err);

static inline void mri_post_close(mri_post *p, bool well)
{
    if (p) p->ops->close(p, well);
}

#endif
