/* pipeline/convert/convert_read_back.c: are the written data on disk, and do our own readers find them? See
 * convert_files.h.
 *
 * The file is opened by its descriptor's name: one file of that content, whatever its name would say to a
 * reader of sets. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/util.h"
#include "pipeline/convert/convert_files.h"

#define CHUNK_BYTES ((size_t)1 << 20)

void mri_files_hash_sample(void *hash, const mr_value *picture, const mr_value *label)
{
    const uint64_t head[3] = {(uint64_t)picture->type, picture->bytes, label ? (uint64_t)label->i : 0};
    XXH3_64bits_update(hash, head, sizeof head);
    XXH3_64bits_update(hash, picture->data, picture->bytes);
}

static bool is_stopped(const mri_convert_plan *plan) { return plan->cfg.stop && *plan->cfg.stop; }

static int stopped(mr_error *err) { return mr_error_set(err, MR_ECANCELED, "stopped; nothing was written"); }

static int check_bytes(const mri_convert_plan *plan, int fd, const char *path, const mri_file_facts *facts,
                       XXH3_state_t *hash, mr_error *err)
{
    uint8_t *chunk = malloc(CHUNK_BYTES);
    int rc = chunk ? MR_OK : mr_error_set(err, MR_ENOMEM, "out of memory to read the output back");
    XXH3_64bits_reset(hash);
    for (uint64_t at = 0; !rc && at < facts->bytes; at += CHUNK_BYTES) {
        const size_t some = (size_t)mri_min_u64(CHUNK_BYTES, facts->bytes - at);
        rc = is_stopped(plan) ? stopped(err) : mri_pread_all(fd, chunk, some, at, path, err);
        if (!rc) XXH3_64bits_update(hash, chunk, some);
    }
    free(chunk);
    if (rc || XXH3_64bits_digest(hash) == facts->bytes_hash) return rc;
    return mr_error_set(err, MR_ECHECKSUM,
                        "read back, the file differs from the written bytes: check the disk");
}

static int check_sample(const mr_source *src, uint64_t sample, void **buffer, size_t *buffer_bytes,
                        bool labels, XXH3_state_t *hash, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_sample s;
    const int rc = mr_source_read(src, sample, buffer, buffer_bytes, &s, err);
    if (rc) return rc;
    const mr_value *label = labels && info->label_field >= 0 ? &s.value[info->label_field] : NULL;
    if (info->image_field >= 0) mri_files_hash_sample(hash, &s.value[info->image_field], label);
    return MR_OK;
}

static int check_samples(const mri_convert_plan *plan, const mr_source *src, const mri_file_facts *facts,
                         XXH3_state_t *hash, mr_error *err)
{
    const bool labels = plan->label >= 0 && plan->fields[plan->label].type == MR_TYPE_INT;
    void *buffer = NULL;
    size_t buffer_bytes = 0;
    int rc = MR_OK;
    if (mr_source_info_of(src)->count != facts->records)
        return mr_error_set(err, MR_ECHECKSUM, "read back: expected %" PRIu64 " samples, found %" PRIu64,
                            facts->records, mr_source_info_of(src)->count);
    XXH3_64bits_reset(hash);
    for (uint64_t k = 0; !rc && k < facts->records; k++)
        rc =
            is_stopped(plan) ? stopped(err) : check_sample(src, k, &buffer, &buffer_bytes, labels, hash, err);
    free(buffer);
    if (rc || XXH3_64bits_digest(hash) == facts->samples_hash) return rc;
    return mr_error_set(err, MR_ECHECKSUM, "read back, pictures or labels differ from the written ones");
}

static int check_as_source(const mri_convert_plan *plan, const char *source, int fd,
                           const mri_file_facts *facts, XXH3_state_t *hash, mr_error *err)
{
    char name[48];
    mr_source *src;
    mr_source_config cfg;
    mr_source_defaults(&cfg);
    cfg.format = source;
    cfg.memory_bytes = mri_memory_limit_bytes() / 2;
    cfg.label_offset = 0;
    cfg.no_index_file = true;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int rc = mr_source_open(&src, name, &cfg, err);
    if (rc) return rc;
    rc = check_samples(plan, src, facts, hash, err);
    mr_source_close(src);
    return rc;
}

int mri_files_read_back(const mri_convert_plan *plan, const char *source, const char *path,
                        const mri_file_facts *facts, bool samples, mr_error *err)
{
    XXH3_state_t *hash = XXH3_createState();
    const int fd = hash ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int rc = !hash    ? mr_error_set(err, MR_ENOMEM, "out of memory to read the output back")
             : fd < 0 ? mr_error_sys(err, errno, "cannot open it again")
                      : MR_OK;
    if (!rc) rc = check_bytes(plan, fd, path, facts, hash, err);
    if (!rc && samples) rc = check_as_source(plan, source, fd, facts, hash, err);
    if (rc) mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    if (fd >= 0) close(fd);
    XXH3_freeState(hash);
    return rc;
}
