/* formats/recordio/recordio_joined.c: see recordio_joined.h. */
#include "formats/recordio/recordio_joined.h"

#include <errno.h>

struct mri_joined { /* fixed once in the table */
    mri_joined *next;
    uint64_t sample, bytes;
    uint8_t data[];
};

int mri_joined_init(mri_joined_table *t, mr_error *err)
{
    t->has_lock = pthread_mutex_init(&t->lock, NULL) == 0;
    return t->has_lock ? MR_OK : mr_error_set(err, MR_ENOMEM, "no lock for RecordIO files");
}

void mri_joined_fini(mri_joined_table *t)
{
    for (size_t k = 0; k < MRI_JOINED_BUCKETS; k++)
        for (mri_joined *j = t->table[k], *next; j; j = next) {
            next = j->next;
            free(j);
        }
    if (t->has_lock) pthread_mutex_destroy(&t->lock);
}

static mri_joined *find_joined_locked(const mri_joined_table *t, uint64_t sample)
{
    mri_joined *j = t->table[sample % MRI_JOINED_BUCKETS];
    while (j && j->sample != sample) j = j->next;
    return j;
}

static int join(const mri_recordio_input *in, const mri_recordio_record *r, uint64_t sample, mri_joined **out,
                mr_error *err)
{
    *out = malloc(sizeof **out + (size_t)r->data_bytes);
    if (!*out)
        return mr_error_set(err, MR_ENOMEM, "no memory to join a record of %llu bytes",
                            (unsigned long long)r->data_bytes);
    **out = (mri_joined){.sample = sample, .bytes = r->data_bytes};
    const int rc = mri_recordio_copy(in, r, (*out)->data, r->data_bytes, err);
    if (rc) free(*out);
    return rc;
}

/* The one in the table when it is there already, which must say the same. */
static int enter_locked(mri_joined_table *t, mri_joined *mine, const mri_joined **out, mr_error *err)
{
    const mri_joined *there = find_joined_locked(t, mine->sample);
    *out = there ? there : mine;
    if (there && there->bytes == mine->bytes && memcmp(there->data, mine->data, (size_t)mine->bytes) == 0)
        return MR_OK;
    if (there)
        return mr_error_set(err, MR_EFORMAT,
                            "the record has changed since it was first read: the file has changed");
    if (mine->bytes > t->most - t->bytes) {
        mr_error_set(err, MR_ELIMIT,
                     "records stored in parts need more than the %llu bytes allowed: give more with --memory",
                     (unsigned long long)t->most);
        if (err) err->sys_errno = ENOMEM; /* the budget, not this record */
        return MR_ELIMIT;
    }
    t->bytes += mine->bytes;
    mine->next = t->table[mine->sample % MRI_JOINED_BUCKETS];
    t->table[mine->sample % MRI_JOINED_BUCKETS] = mine;
    return MR_OK;
}

int mri_joined_data(mri_joined_table *t, const mri_recordio_input *in, const mri_recordio_record *r,
                    uint64_t sample, const uint8_t **out, mr_error *err)
{
    mri_joined *mine;
    const mri_joined *kept;
    int rc = join(in, r, sample, &mine, err);
    if (rc) return rc;
    pthread_mutex_lock(&t->lock);
    rc = enter_locked(t, mine, &kept, err);
    pthread_mutex_unlock(&t->lock);
    *out = kept->data;
    if (rc || kept != mine) free(mine);
    return rc;
}
