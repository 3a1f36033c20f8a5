/* Lists of hosts and Slurm's variables: the meaning of each text, and errors of meaningless ones. */
#include "mrt.h"
#include "ranks/hosts.h"

/* "a:1,b:2"; without ranks where nobody says them */
static const char *shown(const mri_hosts *h)
{
    static char text[1 << 20];
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < h->count; i++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? "," : "", h->all[i].name);
        if (h->all[i].ranks) at += (size_t)snprintf(text + at, sizeof text - at, ":%u", h->all[i].ranks);
    }
    return text;
}

typedef int reader(mri_hosts *, const char *, const char *, mr_error *);

static void gives(reader *read, const char *list, const char *want)
{
    mr_error err = MR_ERROR_INIT;
    mri_hosts h;
    MRT_OK(read(&h, "LIST", list, &err), &err);
    MRT_STR(shown(&h), want);
    mri_hosts_fini(&h);
    mri_hosts_fini(&h);
}

static void refuses(reader *read, const char *list, int code, const char *said)
{
    mr_error err = MR_ERROR_INIT;
    mri_hosts h;
    const int rc = read(&h, "LIST", list, &err);
    if (rc != code) fail_msg("'%.80s': expected %d, found %d (%s)", list, code, rc, shown(&h));
    MRT_HAS(err.text, "LIST: ");
    MRT_HAS(err.text, said);
    assert_null(h.all);
    MRT_EQ(h.count, 0);
}

/* A text of this length, between two others. */
static const char *long_text(const char *begin, char c, size_t bytes, const char *end)
{
    static char text[70000];
    const size_t n = strlen(begin);
    strcpy(text, begin);
    memset(text + n, c, bytes);
    strcpy(text + n + bytes, end);
    return text;
}

/* ---- lists of nodes ---- */

static void nodes_are_expanded(void **state)
{
    (void)state;
    static const struct {
        const char *list, *hosts;
    } lists[] = {
        {"n1", "n1"},
        {"n1,n2", "n1,n2"},
        {"n[0-2,7],gpu-[08-11]b,x", "n0,n1,n2,n7,gpu-08b,gpu-09b,gpu-10b,gpu-11b,x"},
        {"n[3]", "n3"},
        {"n[3,9],m", "n3,n9,m"},
        {"n[9,3]", "n9,n3"},
        {"node[007-012]", "node007,node008,node009,node010,node011,node012"},
        {"node[007-12]", "node007,node008,node009,node010,node011,node012"},
        {"n[9-11]", "n9,n10,n11"},
        {"n[09-11]", "n09,n10,n11"},
        {"n[99-101]", "n99,n100,n101"},
        {"n[099-101]", "n099,n100,n101"},
        {"n[1,01,001]", "n1,n01,n001"},
        {"n[5-5]", "n5"},
        {"rack[0-1]n[1-2]", "rack0n1,rack0n2,rack1n1,rack1n2"},
        {"r[0,2-3]c[1]n[08-09].x,y", "r0c1n08.x,r0c1n09.x,r2c1n08.x,r2c1n09.x,r3c1n08.x,r3c1n09.x,y"},
        {"[1-2]", "1,2"},
        {"[1-2]a", "1a,2a"},
        {"a[1][2][3][4][5][6][7][8]", "a12345678"},
        {"a-b[10]", "a-b10"},
        {"a_b.c-d.cluster", "a_b.c-d.cluster"},
        {"n[999999999999999998-999999999999999999]", "n999999999999999998,n999999999999999999"},
        {"10.0.0.[1-2]", "10.0.0.1,10.0.0.2"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        gives(mri_hosts_of_nodes, lists[i].list, lists[i].hosts);
}

static void what_is_no_list_of_nodes_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *list, *said;
    } lists[] = {
        {"", "expected a host, found the end of ''"},
        {",", "expected a host, found ',' at character 1 of ','"},
        {"n1,", "expected a host, found the end of 'n1,'"},
        {"n1,,n2", "expected a host, found ',' at character 4"},
        {"n1, n2", "expected a host, found ' ' at character 4"},
        {"n1 n2", "found ' ' at character 3"},
        {"n1\n", "found '\n' at character 3"},
        {"n/1", "found '/' at character 2"},
        {"n\xc3\xa4", "character 2"},
        {"n[", "expected numbers, '-', ',' and ']', found the end"},
        {"n[1", "found the end of 'n[1'"},
        {"n[1,", "found the end"},
        {"n[1-", "found the end"},
        {"n]", "found ']' at character 2"},
        {"n1]", "found ']' at character 3"},
        {"n[]", "expected a number of at most 18 digits, found ']' at character 3"},
        {"n[,1]", "found ',' at character 3"},
        {"n[1,]", "found ']' at character 5"},
        {"n[1,,2]", "found ',' at character 5"},
        {"n[-1]", "found '-' at character 3"},
        {"n[1-]", "found ']' at character 5"},
        {"n[1--2]", "found '-' at character 5"},
        {"n[1-2-3]", "expected ',' or ']', found '-' at character 6"},
        {"n[2-1]", "expected a range that goes up, found '1' at character 5 of 'n[2-1]'"},
        {"n[x]", "found 'x' at character 3"},
        {"n[1x]", "found 'x' at character 4"},
        {"n[0x1-0x3]", "found 'x'"},
        {"bg[000x133]", "found 'x'"},
        {"n[1[2]]", "found '[' at character 4"},
        {"n[1-2]s[", "found the end"},
        {"n[1-2]]", "found ']' at character 7"},
        {"n[ 1]", "found ' ' at character 3"},
        {"n[1000000000000000000]", "at most 18 digits, found '0' at character 21"},
        {"n[0-1000000000000000000]", "at most 18 digits"},
        {"n1,n2,n1", "expected every host once, found 'n1' twice"},
        {"n[1-3],n2", "found 'n2' twice"},
        {"n[1,1]", "found 'n1' twice"},
        {"-n", "expected a host that begins with a letter or digit, found '-n'"},
        {".n", "found '.n'"},
        {"a[1][2][3][4][5][6][7][8][9]", "at most 8 brackets in a name"},
        {"n0:2", "found ':' at character 3"},
        {"$(x)", "found '$' at character 1"},
        {"%s%n", "found '%' at character 1"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        refuses(mri_hosts_of_nodes, lists[i].list, MR_EINVAL, lists[i].said);
}

static void a_list_takes_bounded_memory(void **state)
{
    (void)state;
    static const char *const lists[] = {
        "n[0-999999999]",
        "n[0-4096]",
        "a,n[1-4096]",
        "n[0-99][0-99]",
        "n[0-99999999][0-99999999][0-99999999][0-99999999]",
        "n[000000000000000000-999999999999999999]",
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        refuses(mri_hosts_of_nodes, lists[i], MR_ELIMIT, "at most 4096 hosts are possible, found more");
    refuses(mri_hosts_of_nodes, long_text("n[0-9", '9', 60000, "]"), MR_EINVAL, "18 digits");
    refuses(mri_hosts_of_nodes, long_text("n", '[', 60000, ""), MR_EINVAL, "found '['");
    refuses(mri_hosts_of_nodes, long_text("n[1]", '[', 60000, ""), MR_EINVAL, "found '['");
    refuses(mri_hosts_of_nodes, long_text("n", ',', 60000, ""), MR_EINVAL, "found ','");
    refuses(mri_hosts_of_nodes, long_text("n[1-4000][", '1', 60000, "]"), MR_EINVAL, "18 digits");

    mr_error err = MR_ERROR_INIT;
    mri_hosts h;
    MRT_OK(mri_hosts_of_nodes(&h, "LIST", "n[0-4095]", &err), &err);
    MRT_EQ(h.count, 4096);
    MRT_STR(h.all[4095].name, "n4095");
    mri_hosts_fini(&h);
    MRT_OK(mri_hosts_of_nodes(&h, "LIST", "n[00-63][00-63]", &err), &err);
    MRT_EQ(h.count, 4096);
    MRT_STR(h.all[4095].name, "n6363");
    mri_hosts_fini(&h);
}

static void names_end_at_255_bytes(void **state)
{
    (void)state;
    static const struct {
        size_t bytes;
        const char *end;
        int rc;
    } names[] = {{255, "", MR_OK},        {256, "", MR_EINVAL},      {254, "[1]", MR_OK},
                 {255, "[1]", MR_EINVAL}, {252, "[1]bc", MR_OK},     {253, "[1]bc", MR_EINVAL},
                 {252, "[010]", MR_OK},   {253, "[010]", MR_EINVAL}, {60000, ",b", MR_EINVAL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *list = long_text("", 'a', names[i].bytes, names[i].end);
        mr_error err = MR_ERROR_INIT;
        mri_hosts h;
        if (names[i].rc != MR_OK) {
            refuses(mri_hosts_of_nodes, list, names[i].rc, "at most 255 bytes, found 'aaaa");
            if (!strchr(list, '[')) refuses(mri_hosts_of_list, list, names[i].rc, "at most 255 bytes");
            continue;
        }
        MRT_OK(mri_hosts_of_nodes(&h, "LIST", list, &err), &err);
        MRT_EQ(strlen(h.all[0].name), 255);
        mri_hosts_fini(&h);
    }
}

/* ---- mpirun's list ---- */

static void hosts_have_their_ranks(void **state)
{
    (void)state;
    static const struct {
        const char *list, *hosts;
    } lists[] = {
        {"h0", "h0:1"},
        {"h0:2,h1:2,h2", "h0:2,h1:2,h2:1"},
        {"h0,h0,h1", "h0:2,h1:1"},
        {"h1:2,h0,h1:3,h0", "h1:5,h0:2"},
        {"10.0.0.1:4,b.c", "10.0.0.1:4,b.c:1"},
        {"h:4096", "h:4096"},
        {"h:007", "h:7"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        gives(mri_hosts_of_list, lists[i].list, lists[i].hosts);
}

static void what_is_no_list_of_hosts_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *list, *said;
        int code;
    } lists[] = {
        {"", "expected a host, found the end of ''", MR_EINVAL},
        {"h0,", "expected a host, found the end of 'h0,'", MR_EINVAL},
        {",h0", "found ',' at character 1", MR_EINVAL},
        {"h0:", "expected a number of ranks, found the end", MR_EINVAL},
        {"h0:x", "expected a number of ranks, found 'x' at character 4 of 'h0:x'", MR_EINVAL},
        {"h0:0", "expected a number of ranks, found '0' at character 4", MR_EINVAL},
        {"h0:-1", "found '-'", MR_EINVAL},
        {"h0:*", "found '*'", MR_EINVAL},
        {"h0:2:2", "expected a list as h0:2,h1:2,h2, found ':' at character 5", MR_EINVAL},
        {"h0:2 h1", "found ' ' at character 5", MR_EINVAL},
        {":2", "expected a host, found ':'", MR_EINVAL},
        {"n[0-2]", "found '[' at character 2", MR_EINVAL},
        {"[::1]:2", "expected a host, found '['", MR_EINVAL},
        {"h:4097", "at most 4096 ranks are possible", MR_ELIMIT},
        {"a:4096,b", "at most 4096 ranks are possible", MR_ELIMIT},
        {"h:999999999999999999", "at most 4096 ranks are possible", MR_ELIMIT},
        {"h:9999999999999999999", "expected a number of ranks", MR_EINVAL},
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        refuses(mri_hosts_of_list, lists[i].list, lists[i].code, lists[i].said);
    refuses(mri_hosts_of_list, long_text("h", ',', 60000, ""), MR_EINVAL, "found ','");
}

/* ---- Slurm's variables ---- */

/* "NAME=VALUE NAME=VALUE" */
static const char *value_of(void *context, const char *name)
{
    static char values[8][256];
    static int turn;
    const size_t bytes = strlen(name);
    for (const char *at = context; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strncmp(at, name, bytes) == 0 && at[bytes] == '=') {
            char *value = values[turn++ % 8];
            snprintf(value, sizeof *values, "%.*s", (int)strcspn(at + bytes + 1, " "), at + bytes + 1);
            return value;
        }
    return NULL;
}

static int of_slurm(mri_hosts *out, const char *set, mr_error *err)
{
    union {
        const char *in;
        void *out;
    } text = {.in = set};
    return mri_hosts_of_slurm(out, &(mri_variables){.get = value_of, .context = text.out}, err);
}

#define STEP "SLURM_STEP_ID=0 SLURM_STEP_NODELIST=n[0-2] "
#define JOB  "SLURM_JOB_NODELIST=n[0-2] "

static void the_variables_of_slurm_are_taken(void **state)
{
    (void)state;
    static const struct {
        const char *set, *hosts;
        uint32_t ranks, rank;
        bool scattered;
    } places[] = {
        {STEP, "n0,n1,n2", 0, MRI_RANK_UNKNOWN, false},
        {STEP "SLURM_STEP_NUM_NODES=3 SLURM_STEP_NUM_TASKS=7 SLURM_PROCID=6 SLURM_NODEID=2", "n0,n1,n2", 0, 6,
         false},
        {STEP "SLURM_STEP_TASKS_PER_NODE=1,3(x2)", "n0:1,n1:3,n2:3", 7, MRI_RANK_UNKNOWN, false},
        {STEP "SLURM_STEP_TASKS_PER_NODE=2(x3)", "n0:2,n1:2,n2:2", 6, MRI_RANK_UNKNOWN, false},
        {STEP "SLURM_STEP_TASKS_PER_NODE=1(x1),3,4", "n0:1,n1:3,n2:4", 8, MRI_RANK_UNKNOWN, false},
        /* srun -N3 -n7, all that it says */
        {STEP "SLURM_JOB_NODELIST=n[0-2] SLURM_JOB_NUM_NODES=3 SLURM_NNODES=3 SLURM_NPROCS=7 SLURM_NTASKS=7 "
              "SLURM_STEP_NUM_NODES=3 SLURM_STEP_NUM_TASKS=7 SLURM_STEP_TASKS_PER_NODE=1,3(x2) "
              "SLURM_TASKS_PER_NODE=1,3(x2) SLURM_PROCID=4 SLURM_NODEID=2 SLURMD_NODENAME=n2",
         "n0:1,n1:3,n2:3", 7, 4, false},
        /* srun -N2 -n4 in a job of three nodes: SLURM_NNODES is the step's, SLURM_JOB_NODELIST is not */
        {"SLURM_STEP_ID=0 SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_NUM_NODES=2 SLURM_STEP_NUM_TASKS=4 "
         "SLURM_STEP_TASKS_PER_NODE=2(x2) SLURM_JOB_NODELIST=n[0-2] SLURM_JOB_NUM_NODES=3 SLURM_NNODES=2 "
         "SLURM_NPROCS=4 SLURM_PROCID=1 SLURM_NODEID=0 SLURMD_NODENAME=n1",
         "n1:2,n2:2", 4, 1, false},
        /* the same with -m cyclic: ranks 1 and 2 are where blocks do not have them */
        {"SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_TASKS_PER_NODE=2(x2) SLURM_PROCID=1 SLURM_NODEID=1 "
         "SLURMD_NODENAME=n2",
         "n1:2,n2:2", 4, 1, true},
        /* the script of sbatch */
        {JOB
         "SLURM_JOB_NUM_NODES=3 SLURM_NNODES=3 SLURM_NPROCS=7 SLURM_NTASKS=7 SLURM_TASKS_PER_NODE=1,3(x2) "
         "SLURM_PROCID=0 SLURM_NODEID=0",
         "n0:1,n1:3,n2:3", 7, 0, false},
        {JOB "SLURM_NNODES=3 SLURM_NPROCS=8 SLURM_TASKS_PER_NODE=1,3,4 SLURM_PROCID=7", "n0:1,n1:3,n2:4", 8,
         7, false},
        /* -m arbitrary leaves it empty */
        {JOB "SLURM_NNODES=3 SLURM_TASKS_PER_NODE= SLURM_PROCID=7", "n0,n1,n2", 0, 7, false},
        {STEP "SLURM_STEP_TASKS_PER_NODE=2(x3) MILLRACE_HOST_SUFFIX=-ib SLURM_NODEID=1 SLURMD_NODENAME=n1",
         "n0-ib:2,n1-ib:2,n2-ib:2", 6, MRI_RANK_UNKNOWN, false},
        {STEP "MILLRACE_HOST_SUFFIX=.ib.cluster", "n0.ib.cluster,n1.ib.cluster,n2.ib.cluster", 0,
         MRI_RANK_UNKNOWN, false},
        {STEP "MILLRACE_HOST_SUFFIX=", "n0,n1,n2", 0, MRI_RANK_UNKNOWN, false},
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        mr_error err = MR_ERROR_INIT;
        mri_hosts h;
        MRT_OK(of_slurm(&h, places[i].set, &err), &err);
        MRT_STR(shown(&h), places[i].hosts);
        if (h.ranks != places[i].ranks || h.rank != places[i].rank || h.scattered != places[i].scattered)
            fail_msg("place %zu: rank %u of %u, scattered %d", i, h.rank, h.ranks, h.scattered);
        mri_hosts_fini(&h);
    }
}

static void variables_that_do_not_fit_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *set, *said;
    } wrong[] = {
        {"", "SLURM_JOB_NODELIST: expected a list of nodes, found nothing"},
        {"SLURM_STEP_ID=1 SLURM_JOB_NODELIST=n1",
         "SLURM_STEP_NODELIST: expected a list of nodes, found nothing"},
        {"SLURM_STEP_NODELIST=n[", "SLURM_STEP_NODELIST: expected numbers"},
        {"SLURM_JOB_NODELIST=n[", "SLURM_JOB_NODELIST: expected numbers"},
        {STEP "SLURM_STEP_NUM_NODES=4",
         "SLURM_STEP_NUM_NODES: expected 3, the number of hosts of SLURM_STEP_NODELIST, found '4'"},
        {STEP "SLURM_STEP_NUM_NODES=3x", "found '3x'"},
        {STEP "SLURM_STEP_NUM_NODES=-3", "found '-3'"},
        {STEP "SLURM_STEP_NUM_NODES=4294967299", "SLURM_STEP_NUM_NODES: expected 3"},
        {JOB "SLURM_JOB_NUM_NODES=2", "SLURM_JOB_NUM_NODES: expected 3"},
        {JOB "SLURM_JOB_NUM_NODES=3 SLURM_NNODES=2",
         "SLURM_NNODES: expected 3, the number of hosts of SLURM_JOB_NODELIST, found '2'"},
        {STEP "SLURM_STEP_TASKS_PER_NODE=1,3", "SLURM_STEP_TASKS_PER_NODE: expected the counts of the 3 "
                                               "hosts of SLURM_STEP_NODELIST, found 2 in '1,3'"},
        {STEP "SLURM_STEP_TASKS_PER_NODE=1,3(x3)", "found 4 in '1,3(x3)'"},
        {STEP "SLURM_STEP_TASKS_PER_NODE=1(x999999999999999999)", "found 999999999999999999 in"},
        {STEP "SLURM_STEP_TASKS_PER_NODE=1,2,3 SLURM_STEP_NUM_TASKS=7",
         "SLURM_STEP_NUM_TASKS: expected 6, the sum of SLURM_STEP_TASKS_PER_NODE, found '7'"},
        {JOB "SLURM_TASKS_PER_NODE=1,3(x2) SLURM_NPROCS=8",
         "SLURM_NPROCS: expected 7, the sum of SLURM_TASKS_PER_NODE, found '8'"},
        {JOB "SLURM_TASKS_PER_NODE=1,3(x2) SLURM_NTASKS=8", "SLURM_NTASKS: expected 7"},
        {STEP "SLURM_STEP_TASKS_PER_NODE=2(x3) SLURM_PROCID=6",
         "SLURM_PROCID: expected less than 6, the ranks of SLURM_STEP_TASKS_PER_NODE, found 6"},
        {STEP "SLURM_PROCID=4096", "SLURM_PROCID: expected less than 4096"},
        {STEP "SLURM_PROCID=x", "SLURM_PROCID: expected a rank, found 'x'"},
        {STEP "SLURM_NODEID=3",
         "SLURM_NODEID: expected less than 3, the hosts of SLURM_STEP_NODELIST, found '3'"},
        {STEP "SLURM_NODEID=x", "SLURM_NODEID: expected less than 3"},
        /* srun -w n2 : -w n1, where rank 0 is on n2 and the list is n[1-2] */
        {"SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_TASKS_PER_NODE=1,2 SLURM_PROCID=0 SLURM_NODEID=0 "
         "SLURMD_NODENAME=n2",
         "SLURMD_NODENAME: expected n1, host 0 of SLURM_STEP_NODELIST as SLURM_NODEID has it, found 'n2'"},
        {STEP "MILLRACE_HOST_SUFFIX=-i/b",
         "MILLRACE_HOST_SUFFIX: expected letters, digits, '-', '_' and '.', found '/' at character 3"},
        {"SLURM_STEP_NODELIST=10.0.0.[1-2] MILLRACE_HOST_SUFFIX=-ib",
         "MILLRACE_HOST_SUFFIX: expected hosts with names to add '-ib' to, found the address '10.0.0.1'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mr_error err = MR_ERROR_INIT;
        mri_hosts h;
        if (of_slurm(&h, wrong[i].set, &err) != MR_EINVAL) fail_msg("%s: is taken", wrong[i].set);
        MRT_HAS(err.text, wrong[i].said);
        assert_null(h.all);
    }
}

static void counts_that_are_none_are_named(void **state)
{
    (void)state;
    static const char *const counts[] = {"x",
                                         "1,",
                                         ",1",
                                         "1,,1",
                                         "0",
                                         "1,0,1",
                                         "-1",
                                         "1(2)",
                                         "1(x)",
                                         "1(x0)",
                                         "1(x2",
                                         "1(",
                                         "1(x2)3",
                                         "1x2",
                                         "1(x2)(x2)",
                                         "1(y2)",
                                         "1(xx2)",
                                         "1(x-2)",
                                         "1.5",
                                         "1(x2),",
                                         "()",
                                         "9999999999999999999",
                                         "1(x9999999999999999999)"};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char set[256];
        mr_error err = MR_ERROR_INIT;
        mri_hosts h;
        snprintf(set, sizeof set, STEP "SLURM_STEP_TASKS_PER_NODE=%s", counts[i]);
        if (of_slurm(&h, set, &err) != MR_EINVAL) fail_msg("%s: is taken", set);
        MRT_HAS(err.text, "SLURM_STEP_TASKS_PER_NODE: expected counts as 1,3(x2),4, found ");
    }
    static const char *const many[] = {"1,4095,1", "999999999999999999(x3)", "4097(x3)"};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        char set[256];
        mr_error err = MR_ERROR_INIT;
        mri_hosts h;
        snprintf(set, sizeof set, STEP "SLURM_STEP_TASKS_PER_NODE=%s", many[i]);
        MRT_EQ(of_slurm(&h, set, &err), MR_ELIMIT);
        MRT_HAS(err.text, "SLURM_STEP_TASKS_PER_NODE: at most 4096 ranks are possible, found ");
    }
}

/* ---- the suffix ---- */

static void a_suffix_goes_before_the_domain(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_hosts h;
    MRT_OK(mri_hosts_of_list(&h, "LIST", "n1:2,n2.cluster,a.b.c:3,7", &err), &err);
    MRT_OK(mri_hosts_add_suffix(&h, "X", "-ib", &err), &err);
    MRT_STR(shown(&h), "n1-ib:2,n2-ib.cluster:1,a-ib.b.c:3,7-ib:1");
    MRT_OK(mri_hosts_add_suffix(&h, "X", "", &err), &err);
    MRT_STR(shown(&h), "n1-ib:2,n2-ib.cluster:1,a-ib.b.c:3,7-ib:1");
    MRT_EQ(mri_hosts_add_suffix(&h, "X", " ", &err), MR_EINVAL);
    MRT_HAS(err.text, "X: expected letters");
    mri_hosts_fini(&h);

    MRT_OK(mri_hosts_of_list(&h, "LIST", long_text("b,", 'a', 253, ""), &err), &err);
    MRT_EQ(mri_hosts_add_suffix(&h, "X", "-ib", &err), MR_EINVAL);
    MRT_HAS(err.text, "X: expected names of at most 255 bytes, 'aaaa");
    MRT_STR(h.all[0].name, "b"); /* nothing is changed */
    MRT_OK(mri_hosts_add_suffix(&h, "X", "-i", &err), &err);
    MRT_EQ(strlen(h.all[1].name), 255);
    MRT_EQ(mri_hosts_add_suffix(&h, "X", long_text("", 'a', 60000, ""), &err), MR_EINVAL);
    mri_hosts_fini(&h);

    MRT_OK(mri_hosts_of_list(&h, "LIST", "n1,10.0.0.1", &err), &err);
    MRT_EQ(mri_hosts_add_suffix(&h, "X", "-ib", &err), MR_EINVAL);
    MRT_HAS(err.text, "the address '10.0.0.1'");
    MRT_STR(h.all[0].name, "n1");
    mri_hosts_fini(&h);
}

static void memory_that_is_refused_is_reported(void **state)
{
    (void)state;
    for (int n = 0;; n++) {
        mr_error err = MR_ERROR_INIT;
        mri_hosts h = {.all = (mri_host *)&err}; /* poison */
        mrt_fail_alloc_at(n);
        const int rc = of_slurm(&h, "SLURM_STEP_NODELIST=n[0-99]", &err);
        mrt_fail_alloc_at(-1);
        if (rc == MR_OK) {
            mri_hosts_fini(&h);
            assert_true(n > 3);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        assert_null(h.all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_expanded),
        cmocka_unit_test(what_is_no_list_of_nodes_is_named),
        cmocka_unit_test(a_list_takes_bounded_memory),
        cmocka_unit_test(names_end_at_255_bytes),
        cmocka_unit_test(hosts_have_their_ranks),
        cmocka_unit_test(what_is_no_list_of_hosts_is_named),
        cmocka_unit_test(the_variables_of_slurm_are_taken),
        cmocka_unit_test(variables_that_do_not_fit_are_named),
        cmocka_unit_test(counts_that_are_none_are_named),
        cmocka_unit_test(a_suffix_goes_before_the_domain),
        cmocka_unit_test(memory_that_is_refused_is_reported),
    };
    return mrt_run(tests);
}
