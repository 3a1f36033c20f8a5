/* Who serves and who works: whole tables, and clusters without roles. */
#include "mrt.h"
#include "ranks/crew/hosts_roles.h"

/* "RANK HOST ROLE INDEX ADDRESS DEVICES"; + serves beside its work, * is the chief */
static const char *shown(const mri_role_row *r, const mri_hosts *h)
{
    static char text[2 * MRI_HOST_BYTES + 128];
    char devices[64];
    const bool works = r->role == MRI_ROLE_WORKER;
    if (r->gpus == 0) snprintf(devices, sizeof devices, "cpu %u", r->device);
    else if (r->gpus == 1) snprintf(devices, sizeof devices, "gpu %u", r->device);
    else snprintf(devices, sizeof devices, "gpu %u-%u", r->device, r->device + r->gpus - 1);
    snprintf(text, sizeof text, "%u %s %s %u%s%s %s %s", r->rank, h->all[r->host].name,
             works ? "worker" : "ps", r->index, works && r->serves ? "+" : "", r->chief ? "*" : "",
             r->address, devices);
    return text;
}

static const struct {
    const char *hosts; /* as mpirun's list; number of GPUs of each: */
    uint32_t gpus, servers, first_port;
    const char *rows[12];
} tables[] = {
    /* the three of the launchers of 2017 */
    {"h0:2", 4, MRI_SERVERS_BY_HOST, 0, {"0 h0 ps 0 h0:2300 cpu 0", "1 h0 worker 0* h0:2301 gpu 0-3"}},
    {"h0:2,h1:2",
     4,
     MRI_SERVERS_BY_HOST,
     0,
     {"0 h0 ps 0 h0:2300 cpu 0", "1 h0 worker 0* h0:2301 gpu 0-3", "2 h1 ps 1 h1:2300 cpu 0",
      "3 h1 worker 1 h1:2301 gpu 0-3"}},
    {"h0:5,h1:5",
     4,
     MRI_SERVERS_BY_HOST,
     0,
     {"0 h0 ps 0 h0:2300 cpu 0", "1 h0 worker 0* h0:2301 gpu 0", "2 h0 worker 1 h0:2302 gpu 1",
      "3 h0 worker 2 h0:2303 gpu 2", "4 h0 worker 3 h0:2304 gpu 3", "5 h1 ps 1 h1:2300 cpu 0",
      "6 h1 worker 4 h1:2301 gpu 0", "7 h1 worker 5 h1:2302 gpu 1", "8 h1 worker 6 h1:2303 gpu 2",
      "9 h1 worker 7 h1:2304 gpu 3"}},
    /* more workers than GPUs: the rest have processors */
    {"h0:5,h1:5",
     2,
     MRI_SERVERS_BY_HOST,
     0,
     {"0 h0 ps 0 h0:2300 cpu 0", "1 h0 worker 0* h0:2301 gpu 0", "2 h0 worker 1 h0:2302 gpu 1",
      "3 h0 worker 2 h0:2303 cpu 0", "4 h0 worker 3 h0:2304 cpu 1", "5 h1 ps 1 h1:2300 cpu 0",
      "6 h1 worker 4 h1:2301 gpu 0", "7 h1 worker 5 h1:2302 gpu 1", "8 h1 worker 6 h1:2303 cpu 0",
      "9 h1 worker 7 h1:2304 cpu 1"}},
    /* none at all, and more than workers */
    {"h0:3",
     0,
     MRI_SERVERS_BY_HOST,
     0,
     {"0 h0 ps 0 h0:2300 cpu 0", "1 h0 worker 0* h0:2301 cpu 0", "2 h0 worker 1 h0:2302 cpu 1"}},
    {"h0:2", 0, MRI_SERVERS_BY_HOST, 0, {"0 h0 ps 0 h0:2300 cpu 0", "1 h0 worker 0* h0:2301 cpu 0"}},
    {"h0:2", 1, MRI_SERVERS_BY_HOST, 0, {"0 h0 ps 0 h0:2300 cpu 0", "1 h0 worker 0* h0:2301 gpu 0"}},
    {"h0:3",
     8,
     MRI_SERVERS_BY_HOST,
     0,
     {"0 h0 ps 0 h0:2300 cpu 0", "1 h0 worker 0* h0:2301 gpu 0", "2 h0 worker 1 h0:2302 gpu 1"}},
    /* one rank in all, one on every host: nobody only serves */
    {"h0", 2, MRI_SERVERS_BY_HOST, 0, {"0 h0 worker 0+* h0:2300 gpu 0-1"}},
    {"h0,h1", 1, MRI_SERVERS_BY_HOST, 0, {"0 h0 worker 0+* h0:2300 gpu 0", "1 h1 worker 1 h1:2300 gpu 0"}},
    /* a host with one rank works, its weights are elsewhere */
    {"h0,h1:2,h2",
     2,
     MRI_SERVERS_BY_HOST,
     0,
     {"0 h0 worker 0* h0:2300 gpu 0-1", "1 h1 ps 0 h1:2300 cpu 0", "2 h1 worker 1 h1:2301 gpu 0-1",
      "3 h2 worker 2 h2:2300 gpu 0-1"}},
    /* 1,3(x2) of Slurm */
    {"n0:1,n1:3,n2:3",
     1,
     MRI_SERVERS_BY_HOST,
     0,
     {"0 n0 worker 0* n0:2300 gpu 0", "1 n1 ps 0 n1:2300 cpu 0", "2 n1 worker 1 n1:2301 gpu 0",
      "3 n1 worker 2 n1:2302 cpu 0", "4 n2 ps 1 n2:2300 cpu 0", "5 n2 worker 3 n2:2301 gpu 0",
      "6 n2 worker 4 n2:2302 cpu 0"}},
    /* a stated number of servers */
    {"h0:2,h1:2",
     4,
     1,
     7000,
     {"0 h0 ps 0 h0:7000 cpu 0", "1 h0 worker 0* h0:7001 gpu 0-3", "2 h1 worker 1 h1:7000 gpu 0",
      "3 h1 worker 2 h1:7001 gpu 1"}},
    {"h0,h1", 1, 1, 0, {"0 h0 ps 0 h0:2300 cpu 0", "1 h1 worker 0* h1:2300 gpu 0"}},
    {"h0:2", 2, 0, 65534, {"0 h0 worker 0+* h0:65534 gpu 0", "1 h0 worker 1 h0:65535 gpu 1"}},
};

static void hosts_of(mri_hosts *h, const char *list, uint32_t gpus)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_hosts_of_list(h, "LIST", list, &err), &err);
    for (uint32_t i = 0; i < h->count; i++) h->all[i].gpus = gpus;
}

static void tables_are_as_they_were(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        mr_error err = MR_ERROR_INIT;
        mri_hosts h;
        mri_roles roles;
        uint32_t rows = 0, servers = 0;
        hosts_of(&h, tables[i].hosts, tables[i].gpus);
        MRT_OK(mri_roles_deal(&roles, &h, tables[i].servers, tables[i].first_port, &err), &err);
        for (; rows < 12 && tables[i].rows[rows]; rows++) {
            assert_true(rows < roles.ranks);
            MRT_STR(shown(&roles.rows[rows], &h), tables[i].rows[rows]);
            servers += roles.rows[rows].role == MRI_ROLE_SERVER;
        }
        MRT_EQ(roles.ranks, rows);
        MRT_EQ(roles.servers, servers);
        MRT_EQ(roles.workers, rows - servers);
        mri_roles_fini(&roles);
        mri_roles_fini(&roles);
        mri_hosts_fini(&h);
    }
}

static void hosts_may_have_different_gpus(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_hosts h;
    mri_roles roles;
    hosts_of(&h, "h0:3,h1:3", 0);
    h.all[1].gpus = UINT32_MAX;
    MRT_OK(mri_roles_deal(&roles, &h, MRI_SERVERS_BY_HOST, 0, &err), &err);
    MRT_STR(shown(&roles.rows[2], &h), "2 h0 worker 1 h0:2302 cpu 1");
    MRT_STR(shown(&roles.rows[5], &h), "5 h1 worker 3 h1:2302 gpu 1");
    mri_roles_fini(&roles);
    mri_hosts_fini(&h);
}

static void the_suffix_is_in_the_addresses(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_hosts h;
    mri_roles roles;
    hosts_of(&h, "n1.cluster:2", 1);
    MRT_OK(mri_hosts_add_suffix(&h, "X", "-ib", &err), &err);
    MRT_OK(mri_roles_deal(&roles, &h, MRI_SERVERS_BY_HOST, 0, &err), &err);
    MRT_STR(roles.rows[1].address, "n1-ib.cluster:2301");
    mri_roles_fini(&roles);
    mri_hosts_fini(&h);
}

static void clusters_without_a_table_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *hosts;
        uint32_t servers, first_port;
        const char *said;
    } wrong[] = {
        {"h0:2,h1:2", 3, 0,
         "at most one server for each of 2 hosts and a worker among 4 ranks, found 3 servers"},
        {"h0,h1", 2, 0, "a worker among 2 ranks, found 2 servers"},
        {"h0", 1, 0, "found 1 servers"},
        {"h0:2", MRI_SERVERS_BY_HOST, 65535,
         "expected ports up to 65535, found 65536 for the last rank on h0"},
        {"h0,h1:4", MRI_SERVERS_BY_HOST, 65533, "found 65536 for the last rank on h1"},
        {"h0", MRI_SERVERS_BY_HOST, 65536, "found 65536"},
        {"h0", MRI_SERVERS_BY_HOST, UINT32_MAX, "found 4294967295"},
    };
    mr_error err = MR_ERROR_INIT;
    mri_hosts h;
    mri_roles roles;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hosts_of(&h, wrong[i].hosts, 1);
        MRT_EQ(mri_roles_deal(&roles, &h, wrong[i].servers, wrong[i].first_port, &err), MR_EINVAL);
        MRT_HAS(err.text, wrong[i].said);
        assert_null(roles.rows);
        mri_hosts_fini(&h);
    }
    MRT_EQ(mri_roles_deal(&roles, &h, 0, 0, &err), MR_EINVAL); /* no hosts */
    MRT_OK(mri_hosts_of_nodes(&h, "LIST", "n[1-2]", &err), &err);
    MRT_EQ(mri_roles_deal(&roles, &h, 0, 0, &err), MR_EINVAL);
    MRT_HAS(err.text, "expected the number of ranks on n1, found nothing");
    h.scattered = true;
    MRT_EQ(mri_roles_deal(&roles, &h, 0, 0, &err), MR_EINVAL);
    MRT_HAS(err.text, "srun --distribution=block");
    h.scattered = false;
    h.all[0].ranks = h.all[1].ranks = 3000;
    MRT_EQ(mri_roles_deal(&roles, &h, 0, 0, &err), MR_EINVAL);
    MRT_HAS(err.text, "expected 1 to 4096 ranks, found 6000");
    h.all[0].ranks = UINT32_MAX;
    MRT_EQ(mri_roles_deal(&roles, &h, 0, 0, &err), MR_EINVAL);
    mri_hosts_fini(&h);
}

static void memory_that_is_refused_is_reported(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_hosts h;
    mri_roles roles = {.ranks = 1};
    hosts_of(&h, "h0:2", 1);
    mrt_fail_alloc_at(0);
    const int rc = mri_roles_deal(&roles, &h, 0, 0, &err);
    mrt_fail_alloc_at(-1);
    MRT_EQ(rc, MR_ENOMEM);
    assert_null(roles.rows);
    MRT_EQ(roles.ranks, 0);
    mri_hosts_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_as_they_were),
        cmocka_unit_test(hosts_may_have_different_gpus),
        cmocka_unit_test(the_suffix_is_in_the_addresses),
        cmocka_unit_test(clusters_without_a_table_are_named),
        cmocka_unit_test(memory_that_is_refused_is_reported),
    };
    return mrt_run(tests);
}
