/* ranks/hosts.h: the hosts of a cluster, and how many ranks each has, from the text of those who started it.
 * Private.
 *
 * Takes a list of hosts as mpirun has it, or Slurm's variables. Gives names in order of ranks. Text is
 * anybody's: memory is bounded, and text that is not understood is an error that names the variable, the
 * expected and the found value. Pure functions: no environment but through mri_variables, no name is looked
 * up. Callers: meet_place.c, hosts_roles.c. */
#ifndef MRI_HOSTS_H
#define MRI_HOSTS_H

#include "ranks/wire.h"

enum {
    MRI_HOST_BYTES = 256,                 /* of a name, with its end */
    MRI_HOSTS_MOST = MRI_WIRE_RANKS_MOST, /* hosts, and ranks on all of them */
};

#define MRI_RANK_UNKNOWN UINT32_MAX

typedef struct mri_host {
    char name[MRI_HOST_BYTES]; /* letters, digits, '-', '_' and '.'; the first is not '-' or '.' */
    uint32_t ranks;            /* 0: nobody says */
    uint32_t gpus;             /* 0 here: whoever knows sets it */
} mri_host;

typedef struct mri_hosts {
    mri_host *all; /* no name twice */
    uint32_t count, room;
    uint32_t ranks; /* on all hosts; 0: nobody says how many each has */
    uint32_t rank;  /* this one's; or MRI_RANK_UNKNOWN */
    bool scattered; /* ranks are known not to fill one host after the other */
} mri_hosts;

/* Where variables come from. NULL: no such variable. */
typedef struct mri_variables {
    const char *(*get)(void *context, const char *name);
    void *context;
} mri_variables;

/* Functions that fill *out: MR_OK, or MR_EINVAL, MR_ELIMIT (more than MRI_HOSTS_MOST), MR_ENOMEM with nothing
 * in it. `what` is the name of the variable or option, for errors. */

/* "h0:2,h1:2,h2", as mpirun's --host: ranks after the colon, 1 without a colon. A host that is named
 * again has the ranks of both, at its first place, as Open MPI counts them. */
int mri_hosts_of_list(mri_hosts *out, const char *what, const char *list, mr_error *err);

/* Slurm's list of nodes: "n[0-2,7],gpu-[08-11]b,x", "rack[0-1]n[1-2]" (the last bracket goes first). The
 * first number of a range says how many digits the others have at least. Ranks are not known. */
int mri_hosts_of_nodes(mri_hosts *out, const char *what, const char *list, mr_error *err);

/* Slurm's variables: of the step if there is one (SLURM_STEP_ID or SLURM_STEP_NODELIST), else
 * of the job. The two are not mixed: within a step SLURM_NNODES is the step's and SLURM_JOB_NODELIST the
 * job's.
 *
 *            step                        job
 *   hosts    SLURM_STEP_NODELIST         SLURM_JOB_NODELIST
 *   number   SLURM_STEP_NUM_NODES        SLURM_JOB_NUM_NODES, SLURM_NNODES
 *   ranks    SLURM_STEP_TASKS_PER_NODE   SLURM_TASKS_PER_NODE
 *   number   SLURM_STEP_NUM_TASKS        SLURM_NPROCS, SLURM_NTASKS
 *   this     SLURM_PROCID; SLURM_NODEID, SLURMD_NODENAME in a step
 *
 * All but the hosts may be missing, which empty ones are; given values must fit, else MR_EINVAL. At last
 * MILLRACE_HOST_SUFFIX is added to the names. */
int mri_hosts_of_slurm(mri_hosts *out, const mri_variables *from, mr_error *err);

/* Another interface of the same hosts: suffix is added to the short name of each, before its domain.
 * "n1.cluster" with "-ib" is "n1-ib.cluster". what: as above. On failure nothing is changed. */
int mri_hosts_add_suffix(mri_hosts *hosts, const char *what, const char *suffix, mr_error *err);

/* Again is harmless. */
void mri_hosts_fini(mri_hosts *hosts);

/* ---- for those who read lists ---- */

/* Is it a character of a name? */
bool mri_hosts_has_in_names(char c);
/* One more, as it is. MR_OK, MR_EINVAL, MR_ELIMIT or MR_ENOMEM. */
int mri_hosts_add(mri_hosts *hosts, const char *what, const char *name, uint32_t ranks, mr_error *err);
/* Each name once: of equal ones the first remains. `sum`: with the ranks of all; else two are an error. */
int mri_hosts_unite(mri_hosts *hosts, const char *what, bool sum, mr_error *err);
/* "WHAT: expected EXPECTED, found 'x' at character 7 of 'TEXT'". MR_EINVAL. */
int mri_hosts_expected(const char *what, const char *text, const char *at, const char *expected,
                       mr_error *err);
/* 1 to 18 digits; *at is moved past them. False: no digit there, or more. */
bool mri_hosts_read_number(const char **at, uint64_t *value);

#endif
