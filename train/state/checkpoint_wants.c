/* train/state/checkpoint_wants.c: the targets of a network, if they are not its classes with equal weights
 * (CHECKPOINT.md): the field with its targets, the weights of its classes. It follows the names of
 * classes, as the header has no room for it. */
#include <math.h>

#include "train/state/checkpoint.h"

enum { WANTS_ALIGN = 64, FIELD_BYTES = sizeof(((mr_checkpoint_info *)0)->targets) };

static size_t field_bytes(const mr_checkpoint_info *info) { return info->target_loss ? FIELD_BYTES : 0; }

uint64_t mri_checkpoint_wants_bytes(const mr_checkpoint_info *info)
{
    return field_bytes(info) + (uint64_t)info->class_weight_count * sizeof(float);
}

uint64_t mri_checkpoint_wants_end(const mri_wants_place *place)
{
    return mri_align_up(place->offset + place->bytes, WANTS_ALIGN);
}

int mri_checkpoint_wants_write(mri_wants_place *place, int fd, const char *path,
                               const mr_checkpoint_info *info, uint64_t at, mr_error *err)
{
    *place = (mri_wants_place){.offset = at, .bytes = mri_checkpoint_wants_bytes(info)};
    if (place->bytes == 0) return MR_OK;
    const size_t padded = (size_t)(mri_checkpoint_wants_end(place) - at);
    char *bytes = calloc(1, padded);
    if (!bytes) return mr_error_set(err, MR_ENOMEM, "no memory to write targets and weights of classes");
    memcpy(bytes, info->targets, strnlen(info->targets, field_bytes(info) ? FIELD_BYTES - 1 : 0));
    if (info->class_weight_count)
        memcpy(bytes + field_bytes(info), info->class_weights, info->class_weight_count * sizeof(float));
    place->crc = mr_crc32c(0, bytes, (size_t)place->bytes);
    const int rc = mri_pwrite_all(fd, bytes, padded, at, path, err);
    free(bytes);
    return rc;
}

static int damaged(const mri_checkpoint *ck, int code, const char *what, mr_error *err)
{
    mr_error_set(err, code, "damaged checkpoint: %s", what);
    mr_error_at(err, ck->path, ck->wants.offset, MR_NOWHERE);
    return code;
}

static const char *what_is_wrong(const mri_checkpoint *ck, const char *bytes, size_t padded)
{
    const mr_checkpoint_info *info = &ck->info;
    const size_t name = strnlen(bytes, field_bytes(info));
    if (field_bytes(info) && (name == 0 || name == FIELD_BYTES)) return "the field with targets has no name";
    for (size_t k = name; k < field_bytes(info); k++)
        if (bytes[k]) return "a text has no end";
    for (size_t k = ck->wants.bytes; k < padded; k++)
        if (bytes[k]) return "not zero after the weights of classes";
    for (uint32_t c = 0; c < info->class_weight_count; c++) {
        float weight;
        memcpy(&weight, bytes + field_bytes(info) + c * sizeof weight, sizeof weight);
        if (!(weight >= 0) || isinf(weight)) return "the weight of a class is invalid";
    }
    return NULL;
}

int mri_checkpoint_wants_read(mri_checkpoint *ck, mr_error *err)
{
    mr_checkpoint_info *info = &ck->info;
    const size_t padded = (size_t)(mri_checkpoint_wants_end(&ck->wants) - ck->wants.offset),
                 weights = info->class_weight_count * sizeof(float);
    if (padded == 0) return MR_OK;
    char *bytes = malloc(padded);
    if (weights) ck->class_weights = malloc(weights);
    int rc = bytes && (ck->class_weights || !weights)
                 ? mri_pread_all(ck->fd, bytes, padded, ck->wants.offset, ck->path, err)
                 : mr_error_set(err, MR_ENOMEM, "no memory for targets and weights of classes");
    if (!rc && mr_crc32c(0, bytes, (size_t)ck->wants.bytes) != ck->wants.crc)
        rc = damaged(ck, MR_ECHECKSUM, "targets and weights of classes do not match their checksum", err);
    const char *wrong = rc ? NULL : what_is_wrong(ck, bytes, padded);
    if (wrong) rc = damaged(ck, MR_EFORMAT, wrong, err);
    if (!rc) {
        memcpy(info->targets, bytes, field_bytes(info));
        if (weights) memcpy(ck->class_weights, bytes + field_bytes(info), weights);
    }
    free(bytes);
    return rc;
}

int mr_checkpoint_class_weights(const char *path, float **weights, uint32_t *count, mr_error *err)
{
    mri_checkpoint *ck;
    MRI_GIVEN(err, weights);
    *weights = NULL;
    MRI_GIVEN(err, count);
    *count = 0;
    MRI_GIVEN(err, path);
    const int rc = mri_checkpoint_open(&ck, path, err);
    if (rc) return rc;
    *weights = ck->class_weights;
    *count = ck->info.class_weight_count;
    ck->class_weights = NULL; /* the caller's from here on */
    mri_checkpoint_close(ck);
    return MR_OK;
}
