/* train/state/checkpoint_names.c: the names of classes after a checkpoint's tensors (CHECKPOINT.md): one
 * text after the other, each with its zero, in the order of their numbers. They name the network's
 * outputs when the data to evaluate number classes differently. */
#include "formats/source/classes.h"
#include "train/state/checkpoint.h"

enum { NAMES_ALIGN = 64, MOST_NAMES_BYTES = 64 << 20 };

/* 0 without names, or with more than any data set could bring. */
static size_t text_bytes(const mr_checkpoint_info *info)
{
    size_t bytes = 0;
    for (uint32_t k = 0; info->class_names && k < info->classes && bytes <= MOST_NAMES_BYTES; k++)
        bytes += strlen(info->class_names[k]) + 1;
    return bytes <= MOST_NAMES_BYTES ? bytes : 0;
}

int mri_checkpoint_names_write(mri_names_place *place, int fd, const char *path,
                               const mr_checkpoint_info *info, uint64_t at, mr_error *err)
{
    *place = (mri_names_place){.offset = at, .bytes = text_bytes(info)};
    if (place->bytes == 0) return MR_OK;
    const size_t padded = (size_t)mri_align_up(place->bytes, NAMES_ALIGN);
    char *text = calloc(1, padded);
    if (!text)
        return mr_error_set(err, MR_ENOMEM, "no memory to write the names of %u classes", info->classes);
    char *p = text;
    for (uint32_t k = 0; k < info->classes; k++) {
        const size_t n = strlen(info->class_names[k]) + 1;
        memcpy(p, info->class_names[k], n);
        p += n;
    }
    place->crc = mr_crc32c(0, text, (size_t)place->bytes);
    const int rc = mri_pwrite_all(fd, text, padded, at, path, err);
    free(text);
    return rc;
}

bool mri_checkpoint_names_fit(const mri_names_place *place) { return place->bytes <= MOST_NAMES_BYTES; }

uint64_t mri_checkpoint_names_end(const mri_names_place *place)
{
    return mri_align_up(place->offset + place->bytes, NAMES_ALIGN);
}

static int damaged(const mri_checkpoint *ck, int code, const char *what, mr_error *err)
{
    mr_error_set(err, code, "damaged checkpoint: %s", what);
    mr_error_at(err, ck->path, ck->names.offset, MR_NOWHERE);
    return code;
}

static const char *what_is_wrong(const mri_checkpoint *ck, const char *text, size_t padded)
{
    size_t count = 0;
    for (size_t k = 0; k < ck->names.bytes; k++) count += text[k] == '\0';
    if (count != ck->info.classes || text[ck->names.bytes - 1] != '\0')
        return "there is not one name for each class";
    for (size_t k = ck->names.bytes; k < padded; k++)
        if (text[k]) return "not zero after the names of classes";
    return NULL;
}

/* *out: the text, or NULL without a text. */
static int read_text(const mri_checkpoint *ck, char **out, mr_error *err)
{
    *out = NULL;
    if (ck->names.bytes == 0) return MR_OK;
    const size_t padded = (size_t)mri_align_up(ck->names.bytes, NAMES_ALIGN);
    char *text = malloc(padded);
    if (!text) return mr_error_set(err, MR_ENOMEM, "no memory for %zu bytes of class names", padded);
    int rc = mri_pread_all(ck->fd, text, padded, ck->names.offset, ck->path, err);
    if (!rc && mr_crc32c(0, text, (size_t)ck->names.bytes) != ck->names.crc)
        rc = damaged(ck, MR_ECHECKSUM, "the names of classes do not match their checksum", err);
    const char *wrong = rc ? NULL : what_is_wrong(ck, text, padded);
    if (wrong) rc = damaged(ck, MR_EFORMAT, wrong, err);
    if (rc) free(text);
    else *out = text;
    return rc;
}

int mri_checkpoint_names_check(const mri_checkpoint *ck, mr_error *err)
{
    char *text;
    const int rc = read_text(ck, &text, err);
    if (!rc) free(text);
    return rc;
}

int mri_checkpoint_names_read(const mri_checkpoint *ck, const char ***names, uint32_t *count, mr_error *err)
{
    char *text;
    int rc = read_text(ck, &text, err);
    if (rc || !text) return rc;
    const char **at = malloc(ck->info.classes * sizeof *at);
    const char *p = text;
    for (uint32_t k = 0; at && k < ck->info.classes; k++) {
        at[k] = p;
        p += strlen(p) + 1;
    }
    *names = at ? mri_class_names_copy(at, ck->info.classes) : NULL;
    if (*names) *count = ck->info.classes;
    else rc = mr_error_set(err, MR_ENOMEM, "no memory for the names of %u classes", ck->info.classes);
    free(at);
    free(text);
    return rc;
}
