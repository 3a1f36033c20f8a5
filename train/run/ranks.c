/* train/run/ranks.c: see ranks.h. */
#include "train/run/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "base/util.h"
#include "settings/limits.h"

_Static_assert(MR_SUM_MOST_LEAVES == MRI_SHARES_MOST, "settings allow as many shares as can be summed");

/* What every rank has found out from the same bytes ends all of them with the same words: nobody goes before
 * all know. */
static int found_by_all(mr_world *world, int rc)
{
    if (rc && world) (void)mr_world_barrier(world, MRI_RANKS_HOST, NULL);
    return rc;
}

/* ------------------------------------------------------------------------------ dealing parts */

/* Devices of every rank. */
static int gather_counts(mr_world *world, uint32_t mine, uint32_t *all, mr_error *err)
{
    if (world) return mr_world_gather(world, MRI_RANKS_HOST, &mine, sizeof mine, all, err);
    all[0] = mine;
    return MR_OK;
}

/* Part numbers of device `at` of `devices`, of all ranks. */
static uint32_t part_before(uint32_t parts, uint32_t at, uint32_t devices)
{
    return (uint32_t)((uint64_t)parts * at / devices);
}

static uint64_t sum_of(const uint32_t *counts, uint32_t size)
{
    uint64_t sum = 0;
    for (uint32_t r = 0; r < size; r++) sum += counts[r];
    return sum;
}

/* *parts 0: becomes one a device. */
static int check_counts(const uint32_t *counts, uint32_t size, uint32_t *parts, mr_error *err)
{
    const uint64_t devices = sum_of(counts, size);
    if (*parts == 0) *parts = (uint32_t)mri_min_u64(devices, UINT32_MAX);
    if (*parts > MR_SUM_MOST_LEAVES)
        return mr_error_set(err, MR_EINVAL, "a batch in %u parts: at most %u are possible", *parts,
                            MR_SUM_MOST_LEAVES);
    if (devices <= *parts) return MR_OK;
    return mr_error_set(err, MR_EINVAL,
                        "%llu devices for the %u parts of a batch: each computes at least one; use "
                        "fewer devices or more parts",
                        (unsigned long long)devices, *parts);
}

static int deal(const uint32_t *counts, uint32_t rank, uint32_t size, uint32_t parts, mr_parts *out,
                mr_error *err)
{
    const uint64_t devices = sum_of(counts, size), before = sum_of(counts, rank);
    out->all = parts;
    out->first = part_before(parts, (uint32_t)before, (uint32_t)devices);
    for (uint32_t d = 0, at = out->first; d < counts[rank]; d++) {
        const uint32_t end = part_before(parts, (uint32_t)before + d + 1, (uint32_t)devices);
        out->of_device[d] = end - at;
        at = end;
        out->count = end - out->first;
    }
    if (out->count <= MR_LOADER_MAX_PARTS) return MR_OK;
    return mr_error_set(err, MR_ELIMIT,
                        "%u parts of a batch in one process: at most %d are possible; use more ranks",
                        out->count, MR_LOADER_MAX_PARTS);
}

int mr_parts_deal_sized(mr_parts *out, mr_world *world, uint32_t device_count, uint32_t parts, mr_error *err)
{
    MRI_GIVEN(err, out);
    const uint32_t size = world ? mr_world_size(world) : 1, rank = world ? mr_world_rank(world) : 0;
    mr_parts all = {.all = 0};
    int rc = mri_result_check(out, err);
    if (rc) return rc;
    if (device_count < 1 || device_count > MR_LOADER_MAX_PARTS)
        return mr_error_set(err, MR_EINVAL, "%u devices: expected 1 to %d", device_count,
                            MR_LOADER_MAX_PARTS);
    uint32_t *counts = calloc(size, sizeof *counts);
    if (!counts) return mr_error_set(err, MR_ENOMEM, "no memory for %u ranks", size);
    rc = gather_counts(world, device_count, counts, err);
    if (rc == MR_OK) rc = found_by_all(world, check_counts(counts, size, &parts, err));
    if (rc == MR_OK) rc = deal(counts, rank, size, parts, &all, err);
    free(counts);
    if (rc == MR_OK) mri_result_give(out, &all, sizeof all);
    return rc;
}

/* ------------------------------------------------------------------------------ opening */

int mri_ranks_init(mri_ranks *r, mr_world *world, const mr_parts *parts, mr_error *err)
{
    *r = (mri_ranks){.world = world,
                     .rank = world ? mr_world_rank(world) : 0,
                     .size = world ? mr_world_size(world) : 1,
                     .most_parts = parts->count};
    r->beats = calloc(r->size, sizeof *r->beats);
    uint32_t *counts = calloc(r->size, sizeof *counts);
    r->gathered = calloc(2 * (size_t)r->size, sizeof *r->gathered);
    int rc = mri_lateness_init(&r->late, r->rank, r->size);
    if (rc || !r->beats || !r->gathered || !counts)
        rc = mr_error_set(err, MR_ENOMEM, "no memory for %u ranks", r->size);
    if (rc == MR_OK) rc = gather_counts(world, parts->count, counts, err);
    for (uint32_t i = 0; rc == MR_OK && i < r->size; i++)
        if (counts[i] > r->most_parts) r->most_parts = counts[i];
    if (rc == MR_OK && r->most_parts > MR_LOADER_MAX_PARTS)
        rc = mr_error_set(err, MR_EINVAL, "a rank has %u parts: expected at most %d", r->most_parts,
                          MR_LOADER_MAX_PARTS);
    free(counts);
    if (rc || r->size == 1) return rc;
    r->sums = calloc((r->size + 1) * (size_t)r->most_parts, sizeof *r->sums);
    return r->sums ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for the sums of %u ranks", r->size);
}

void mri_ranks_fini(mri_ranks *r)
{
    free(r->beats);
    free(r->sums);
    free(r->gathered);
    mri_lateness_fini(&r->late);
    *r = (mri_ranks){.size = 1};
}

/* ------------------------------------------------------------------------------ agreeing */

enum { TEXT_BYTES = 4096 };

static size_t line_bytes(const char *text) { return strcspn(text, "\n"); }

/* The first line in which they differ. */
static void skip_equal(const char **a, const char **b)
{
    while (**a && line_bytes(*a) == line_bytes(*b) && strncmp(*a, *b, line_bytes(*a)) == 0) {
        *a += line_bytes(*a) + ((*a)[line_bytes(*a)] == '\n');
        *b += line_bytes(*b) + ((*b)[line_bytes(*b)] == '\n');
    }
}

int mri_ranks_agree(const mri_ranks *r, const char *text, mr_error *err)
{
    char mine[TEXT_BYTES] = {0};
    if (r->size == 1) return MR_OK;
    char *all = malloc((size_t)r->size * TEXT_BYTES);
    if (!all) return mr_error_set(err, MR_ENOMEM, "no memory for the settings of %u ranks", r->size);
    memcpy(mine, text, strnlen(text, TEXT_BYTES - 1));
    int rc = mr_world_gather(r->world, MRI_RANKS_HOST, mine, sizeof mine, all, err);
    const bool odd = rc == MR_OK && memcmp(all, mine, TEXT_BYTES) != 0, known = rc == MR_OK;
    for (uint32_t i = 1; rc == MR_OK && i < r->size; i++) {
        const char *first = all, *other = all + (size_t)i * TEXT_BYTES;
        if (memcmp(first, other, TEXT_BYTES) == 0) continue;
        all[(size_t)(i + 1) * TEXT_BYTES - 1] = '\0';
        skip_equal(&first, &other);
        rc = mr_error_set(err, odd ? MR_EINVAL : MR_EPEER,
                          "the settings of the ranks differ: rank %u (%s) has '%.*s', rank 0 (%s) '%.*s'", i,
                          mr_world_host(r->world, i), (int)line_bytes(other), other,
                          mr_world_host(r->world, 0), (int)line_bytes(first), first);
        if (err) err->host = MR_EINVAL; /* a misuse, for all of them */
    }
    free(all);
    return known ? found_by_all(r->world, rc) : rc;
}

/* Who waited for whom, from the beats. */
static void compare_beats(mri_ranks *r)
{
    uint64_t *steps = r->gathered, *waited = r->gathered + r->size;
    for (uint32_t i = 0; i < r->size; i++) steps[i] = r->beats[i].steps, waited[i] = r->beats[i].network_ns;
    mri_lateness_compare(&r->late, steps, waited);
}

int mri_ranks_compare(mri_ranks *r, uint64_t steps, uint64_t network_ns, mr_error *err)
{
    const uint64_t mine[2] = {steps, network_ns};
    if (r->size == 1) return MR_OK;
    uint64_t *all = malloc(2 * (size_t)r->size * sizeof *all);
    if (!all) return mr_error_set(err, MR_ENOMEM, "no memory for %u ranks", r->size);
    const int rc = mr_world_gather(r->world, MRI_RANKS_HOST, mine, sizeof mine, all, err);
    for (uint32_t i = 0; rc == MR_OK && i < r->size; i++)
        r->gathered[i] = all[2 * i], r->gathered[r->size + i] = all[2 * i + 1];
    if (rc == MR_OK) mri_lateness_compare(&r->late, r->gathered, r->gathered + r->size);
    free(all);
    return rc;
}

int mri_ranks_beat(mri_ranks *r, const mri_beat *mine, uint32_t *counted, mr_error *err)
{
    *counted = mine->counted;
    r->keep = r->wants_to_keep;
    if (r->size == 1) return MR_OK;
    mri_beat beat = *mine;
    beat.wants_to_stop = r->wants_to_stop;
    beat.wants_to_keep = r->wants_to_keep;
    const int rc = mr_world_gather(r->world, MRI_RANKS_HOST, &beat, sizeof beat, r->beats, err);
    if (rc) return rc;
    *counted = 0;
    for (uint32_t i = 0; i < r->size; i++) {
        const mri_beat *b = &r->beats[i];
        if (b->batch != mine->batch || b->training != mine->training)
            return found_by_all(
                r->world,
                mr_error_set(
                    err, MR_EINVAL,
                    "rank %u (%s) is at %s %llu, rank %u at %s %llu: expected the same batch of all ranks", i,
                    mr_world_host(r->world, i), b->training ? "step" : "evaluation batch",
                    (unsigned long long)b->batch, r->rank, mine->training ? "step" : "evaluation batch",
                    (unsigned long long)mine->batch));
        *counted += b->counted;
        r->stop = r->stop || b->wants_to_stop;
    }
    compare_beats(r);
    r->keep = r->beats[0].wants_to_keep;
    return MR_OK;
}

/* In memory that was had at the start: a step that is done must not fail for want of it. */
int mri_ranks_sum(const mri_ranks *r, const mr_metrics *mine, uint32_t count, mr_metrics *out, mr_error *err)
{
    const size_t most = r->most_parts, all_count = r->size > 1 ? r->size * most : count;
    const mr_metrics *all = r->size > 1 ? r->sums : mine;
    *out = (mr_metrics){0};
    if (r->size > 1) {
        mr_metrics *block = r->sums + all_count;
        memset(block, 0, most * sizeof *block);
        memcpy(block, mine, count * sizeof *mine);
        const int rc = mr_world_gather(r->world, MRI_RANKS_HOST, block, most * sizeof *block, r->sums, err);
        if (rc) return rc;
    }
    for (size_t i = 0; i < all_count; i++) { /* zeros where a rank has fewer */
        out->loss_sum += all[i].loss_sum;
        out->correct += all[i].correct;
        out->count += all[i].count;
        out->bad += all[i].bad;
    }
    return MR_OK;
}

int mri_ranks_tell(const mri_ranks *r, void *data, size_t bytes, mr_error *err)
{
    return r->size > 1 ? mr_world_broadcast(r->world, MRI_RANKS_HOST, data, bytes, 0, err) : MR_OK;
}

int mri_ranks_share_error(const mri_ranks *r, int rc, mr_error *err)
{
    struct {
        int rc;
        mr_error error;
    } reported = {rc, MR_ERROR_INIT};
    if (r->size == 1) return rc;
    if (rc && err) reported.error = *err;
    const int failed = mri_ranks_tell(r, &reported, sizeof reported, err);
    if (failed || reported.rc == MR_OK) return failed;
    if (r->rank && err) {
        char text[sizeof reported.error.text];
        mr_error_format(&reported.error, text, sizeof text);
        mr_error_set(err, reported.rc, "rank 0 (host %s): %s", mr_world_host(r->world, 0), text);
    }
    return found_by_all(r->world, reported.rc);
}

void mri_abort_run(mr_world *world, const mr_error *why)
{
    mr_error of_run = *why;
    if (of_run.code == MR_EINVAL || of_run.code == MR_EEND) of_run.host = MR_EIO;
    mr_world_abort(world, &of_run);
}

void mri_ranks_fail(const mri_ranks *r, const mr_error *why)
{
    if (r->world) mri_abort_run(r->world, why);
}

/* ------------------------------------------------------------------------------ the wire of groups */

static int exchange(void *context, const mr_piece *send, const mr_piece *receive, mr_error *err)
{
    mr_world *world = context;
    const uint32_t size = mr_world_size(world);
    mr_world_piece *pieces = calloc(2 * (size_t)size, sizeof *pieces);
    if (!pieces) return mr_error_set(err, MR_ENOMEM, "no memory for an exchange of %u ranks", size);
    for (uint32_t i = 0; i < size; i++) {
        pieces[i] = (mr_world_piece){send[i].data, send[i].bytes};
        pieces[size + i] = (mr_world_piece){receive[i].data, receive[i].bytes};
    }
    const int rc = mr_world_exchange(world, MRI_RANKS_SUMS, pieces, pieces + size, err);
    free(pieces);
    return rc;
}

mr_wire mr_wire_of(mr_world *world)
{
    if (!world) return (mr_wire){.size = 1};
    return (mr_wire){mr_world_rank(world), mr_world_size(world), world, exchange};
}
