/* train/state/checkpoint_net.c: the network of a checkpoint that no name stands for (CHECKPOINT.md), behind
 * everything else in the file. */
#include "train/net/code.h"
#include "train/state/checkpoint.h"

enum { NET_ALIGN = 64 };

uint64_t mri_checkpoint_net_end(const mri_net_place *place)
{
    return mri_align_up(place->offset + place->bytes, NET_ALIGN);
}

bool mri_checkpoint_net_fits(const mri_net_place *place)
{
    return place->bytes == 0 || (place->bytes >= MRI_CODE_HEAD_BYTES && place->bytes <= MRI_CODE_MOST_BYTES &&
                                 (place->bytes - MRI_CODE_HEAD_BYTES) % MRI_CODE_LAYER_BYTES == 0);
}

int mri_checkpoint_net_write(mri_net_place *place, int fd, const char *path, const mr_net *net, uint64_t at,
                             mr_error *err)
{
    void *bytes;
    size_t count;
    *place = (mri_net_place){.offset = at};
    if (!net) return MR_OK;
    int rc = mr_net_encode(net, &bytes, &count, err);
    if (rc) return rc;
    place->bytes = (uint32_t)count; /* a multiple of NET_ALIGN */
    place->crc = mr_crc32c(0, bytes, count);
    rc = mri_pwrite_all(fd, bytes, count, at, path, err);
    free(bytes);
    return rc;
}

static int damaged(const mri_checkpoint *ck, int code, const char *what, mr_error *err)
{
    mr_error_set(err, code, "damaged checkpoint: %s", what);
    mr_error_at(err, ck->path, ck->net.offset, MR_NOWHERE);
    return code;
}

int mri_checkpoint_net_read(const mri_checkpoint *ck, mr_net **out, mr_error *err)
{
    *out = NULL;
    if (ck->net.bytes == 0) return MR_OK;
    uint8_t *bytes = malloc(ck->net.bytes);
    if (!bytes) return mr_error_set(err, MR_ENOMEM, "no memory for %u bytes of a network", ck->net.bytes);
    int rc = mri_pread_all(ck->fd, bytes, ck->net.bytes, ck->net.offset, ck->path, err);
    if (rc == MR_OK && mr_crc32c(0, bytes, ck->net.bytes) != ck->net.crc)
        rc = damaged(ck, MR_ECHECKSUM, "the network does not match its checksum", err);
    else if (rc == MR_OK) {
        rc = mr_net_decode(out, ck->info.model, bytes, ck->net.bytes, err);
        if (rc) mr_error_at(err, ck->path, ck->net.offset, MR_NOWHERE);
    }
    free(bytes);
    return rc;
}

int mri_checkpoint_net_check(const mri_checkpoint *ck, mr_error *err)
{
    mr_net *net;
    const int rc = mri_checkpoint_net_read(ck, &net, err);
    if (rc || !net) return rc;
    const bool right = net->h == ck->info.h && net->w == ck->info.w && net->c == ck->info.c &&
                       mr_net_param_count(net) == ck->info.param_count;
    mr_net_destroy(net);
    return right ? MR_OK : damaged(ck, MR_EFORMAT, "the network differs from the header's description", err);
}

int mr_checkpoint_net(const char *path, mr_net **out, mr_error *err)
{
    mri_checkpoint *ck;
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, path);
    int rc = mri_checkpoint_open(&ck, path, err);
    if (rc) return rc;
    const mr_checkpoint_info *i = &ck->info;
    const mr_model *model = mr_model_find(i->model);
    if (ck->net.bytes) rc = mri_checkpoint_net_check(ck, err);
    if (rc == MR_OK && ck->net.bytes) rc = mri_checkpoint_net_read(ck, out, err);
    else if (rc == MR_OK && model) rc = mr_model_build(model, i->h, i->w, i->c, i->classes, out, err);
    else if (rc == MR_OK) {
        mr_error_set(err, MR_EUNSUPPORTED,
                     "network %s has no name of ours, and is not in the checkpoint: it was written by a "
                     "version before 0.5, or has layers behind its targets",
                     i->model);
        rc = mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    mri_checkpoint_close(ck);
    return rc;
}
