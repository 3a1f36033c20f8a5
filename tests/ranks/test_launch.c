/* Who a process is, by the variables of every launcher, nested ones, and such as make no sense. */
#include <stdlib.h>

#include "millrace/ranks.h"
#include "mrt.h"

static const char *const all_names[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "TORCHELASTIC_RUN_ID",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MPI_LOCALRANKID",
                                        "MPI_LOCALNRANKS",
                                        "SLURM_STEP_ID",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_LOCALID"};

/* Nothing but these, "NAME=VALUE". */
static void environment(const char *const *set)
{
    for (size_t i = 0; i < sizeof all_names / sizeof *all_names; i++) unsetenv(all_names[i]);
    for (; *set; set++) {
        char name[64];
        const char *value = strchr(*set, '=');
        snprintf(name, sizeof name, "%.*s", (int)(value - *set), *set);
        setenv(name, value + 1, 1);
    }
}

static const struct {
    const char *set[12];
    mr_launch found;
} places[] = {
    {{NULL}, {.launcher = MR_LAUNCHER_NONE, .size = 1, .local_size = 1}},
    {{"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
      "OMPI_COMM_WORLD_LOCAL_SIZE=2"},
     {.launcher = MR_LAUNCHER_OPENMPI, .rank = 3, .size = 4, .local_rank = 1, .local_size = 2}},
    {{"TORCHELASTIC_RUN_ID=none", "RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4"},
     {.launcher = MR_LAUNCHER_TORCHRUN, .rank = 5, .size = 8, .local_rank = 1, .local_size = 4}},
    {{"PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=2"},
     {.launcher = MR_LAUNCHER_PMI, .size = 2, .local_size = 2}},
    {{"PMI_RANK=1", "PMI_SIZE=2"}, {.launcher = MR_LAUNCHER_PMI, .rank = 1, .size = 2}},
    {{"SLURM_STEP_ID=0", "SLURM_PROCID=6", "SLURM_STEP_NUM_TASKS=7", "SLURM_LOCALID=2"},
     {.launcher = MR_LAUNCHER_SLURM, .rank = 6, .size = 7, .local_rank = 2}},
    {{"RANK=1", "WORLD_SIZE=2"}, {.launcher = MR_LAUNCHER_POD, .rank = 1, .size = 2}},
    /* the script of sbatch: no srun has run */
    {{"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=7"},
     {.launcher = MR_LAUNCHER_NONE, .size = 1, .local_size = 1}},
    /* mpirun of MPICH in an allocation: its proxies were started by srun */
    {{"SLURM_STEP_ID=1", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=3", "PMI_RANK=6", "PMI_SIZE=7"},
     {.launcher = MR_LAUNCHER_PMI, .rank = 6, .size = 7}},
    /* srun --mpi=pmi2, torchrun and Open MPI inside srun */
    {{"SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "TORCHELASTIC_RUN_ID=j", "RANK=3",
      "WORLD_SIZE=4"},
     {.launcher = MR_LAUNCHER_TORCHRUN, .rank = 3, .size = 4}},
    {{"SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1", "OMPI_COMM_WORLD_RANK=2",
      "OMPI_COMM_WORLD_SIZE=3"},
     {.launcher = MR_LAUNCHER_OPENMPI, .rank = 2, .size = 3}},
    /* half of a pod's variables are somebody else's */
    {{"RANK=1"}, {.launcher = MR_LAUNCHER_NONE, .size = 1, .local_size = 1}},
};

static void every_launcher_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const mr_launch *want = &places[i].found;
        mr_error err = MR_ERROR_INIT;
        mr_launch at;
        environment(places[i].set);
        MRT_OK(mr_launch_find(&at, &err), &err);
        if (at.launcher != want->launcher || at.rank != want->rank || at.size != want->size ||
            at.local_rank != want->local_rank || at.local_size != want->local_size)
            fail_msg("place %zu: %s, rank %u of %u, local %u of %u", i, mr_launcher_name(at.launcher),
                     at.rank, at.size, at.local_rank, at.local_size);
    }
    MRT_STR(mr_launcher_name(MR_LAUNCHER_SLURM), "srun");
    MRT_STR(mr_launcher_name((mr_launcher)99), "alone");
}

static void what_makes_no_sense_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *set[6], *said;
    } wrong[] = {
        {{"OMPI_COMM_WORLD_RANK=4", "OMPI_COMM_WORLD_SIZE=4"}, "found '4' and '4'"},
        {{"OMPI_COMM_WORLD_RANK=-1", "OMPI_COMM_WORLD_SIZE=4"},
         "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE"},
        {{"PMI_RANK=0", "PMI_SIZE="}, "PMI_SIZE"},
        {{"PMI_RANK=0", "PMI_SIZE=99999999999999999999"}, "at most 1048576"},
        {{"TORCHELASTIC_RUN_ID=j", "RANK=0"}, "found '0' and 'nothing'"},
        {{"SLURM_STEP_ID=0", "SLURM_PROCID=x", "SLURM_STEP_NUM_TASKS=2"}, "found 'x' and '2'"},
        {{"SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_LOCALID=2"}, "below 2"},
        {{"TORCHELASTIC_RUN_ID=j", "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=3"},
         "3 ranks on this host"},
        {{"RANK=two", "WORLD_SIZE=2"}, "found 'two' and '2'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mr_error err = MR_ERROR_INIT;
        mr_launch at;
        environment(wrong[i].set);
        MRT_EQ(mr_launch_find(&at, &err), MR_EINVAL);
        MRT_HAS(err.text, wrong[i].said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_launcher_is_known),
        cmocka_unit_test(what_makes_no_sense_is_named),
    };
    return mrt_run(tests);
}
