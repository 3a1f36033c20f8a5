/* ranks/launch.c: who this process is, from the variables of whoever started it. */
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "millrace/ranks.h"

enum { RANKS_MOST = 1 << 20 };

/* The variables that a launcher sets. */
typedef struct variables {
    mr_launcher launcher;
    const char *name;
    const char *mark; /* is there where it is this launcher; NULL: its rank and size are enough */
    const char *rank, *size;
    const char *local_rank, *local_size; /* NULL: it does not say */
} variables;

static const variables known[] = {
    {MR_LAUNCHER_OPENMPI, "Open MPI", NULL, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {MR_LAUNCHER_TORCHRUN, "torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK",
     "LOCAL_WORLD_SIZE"},
    {MR_LAUNCHER_PMI, "PMI", NULL, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {MR_LAUNCHER_SLURM, "srun", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
     NULL},
    {MR_LAUNCHER_POD, "RANK and WORLD_SIZE", NULL, "RANK", "WORLD_SIZE", NULL, NULL},
};

const char *mr_launcher_name(mr_launcher launcher)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].launcher == launcher) return known[i].name;
    return "alone";
}

/* Digits and no more, below RANKS_MOST + 1. */
static bool number(const char *text, uint32_t *out)
{
    *out = 0;
    if (!text || !text[0] || strlen(text) > 7) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        *out = 10 * *out + (uint32_t)(*text - '0');
    }
    return *out <= RANKS_MOST;
}

static const char *shown(const char *text) { return text ? text : "nothing"; }

static bool is_it(const variables *v)
{
    return v->mark ? getenv(v->mark) != NULL : getenv(v->rank) && getenv(v->size);
}

static int read_pair(const char *rank_name, const char *size_name, uint32_t *rank, uint32_t *size,
                     mr_error *err)
{
    const char *rank_text = getenv(rank_name), *size_text = getenv(size_name);
    if (number(rank_text, rank) && number(size_text, size) && *rank < *size) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "%s and %s: expected a rank below a number of ranks (at most %d), found '%.40s' and '%.40s'",
        rank_name, size_name, RANKS_MOST, shown(rank_text), shown(size_text));
}

static int read_local(const variables *v, mr_launch *out, mr_error *err)
{
    if (!v->local_rank || !getenv(v->local_rank)) return MR_OK;
    if (v->local_size && getenv(v->local_size)) {
        const int rc = read_pair(v->local_rank, v->local_size, &out->local_rank, &out->local_size, err);
        if (rc != MR_OK || out->local_size <= out->size) return rc;
        return mr_error_set(err, MR_EINVAL, "%s: %u ranks on this host, and %s has %u in all", v->local_size,
                            out->local_size, v->size, out->size);
    }
    if (number(getenv(v->local_rank), &out->local_rank) && out->local_rank < out->size) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "%s: expected a number below %u, found '%.40s'", v->local_rank,
                        out->size, getenv(v->local_rank));
}

int mr_launch_find_sized(mr_launch *out, mr_error *err)
{
    mr_launch all = {.launcher = MR_LAUNCHER_NONE, .size = 1, .local_size = 1};
    int rc = mri_result_check(out, err);
    for (size_t i = 0; rc == MR_OK && i < sizeof known / sizeof *known; i++) {
        const variables *v = &known[i];
        if (!is_it(v)) continue;
        all.launcher = v->launcher;
        all.local_size = 0;
        rc = read_pair(v->rank, v->size, &all.rank, &all.size, err);
        if (rc == MR_OK) rc = read_local(v, &all, err);
        break;
    }
    if (rc == MR_OK) mri_result_give(out, &all, sizeof all);
    return rc;
}
