/* ranks/post/letters.h: one transfer of a channel over a post. Private.
 *
 * What goes to one rank is a head and its payload. A short payload travels in one message with its head; a
 * long one follows it in messages of its own, straight from and to the caller's memory. Callers: transfer.c.
 */
#ifndef MRI_LETTERS_H
#define MRI_LETTERS_H

#include "ranks/post/post.h"

typedef struct mri_letters mri_letters;

/* Calls of a transfer to its channel. An empty payload without a head is not sent. */
typedef struct mri_letters_of {
    void *context;
    size_t head_bytes;
    /* The head for rank r, and a look at the one that came from it. */
    const uint8_t *(*head)(void *context, uint32_t r);
    int (*came)(void *context, uint32_t r, const uint8_t *head, mr_error *err);
    bool (*sends)(void *context, uint32_t r);
    bool (*gets)(void *context, uint32_t r);
    bool (*ended)(void *context); /* the world has */
    bool (*has_left)(void *context, uint32_t r);
} mri_letters_of;

/* post: the letters' from here on, also when this fails: MR_ENOMEM. */
int mri_letters_open(mri_letters **out, mri_post *post, uint32_t rank, uint32_t size, size_t head_bytes,
                     mr_error *err);
void mri_letters_close(mri_letters *l, bool well);

/* By rank, as mri_channel_transfer(). MR_ECANCELED: the world has ended. MR_EIO: the post has failed on the
 * way to or from rank *with. MR_EPEER: rank *with has left and its awaited message does not come. An error
 * of came() ends the transfer, too. */
int mri_letters_transfer(mri_letters *l, const mri_letters_of *of, const mr_world_piece *send,
                         const mr_world_piece *receive, uint32_t *with, mr_error *err);

#endif
