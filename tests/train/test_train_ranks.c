/* A trainer in several processes: the weights, sums and checkpoints of one; differences between the processes
 * are reported to all. Nothing is computed before fork(): OpenMP does not survive it. */
#include "tests/ranks/worlds.h"
#include "tests/train/rig.h"

enum { BATCH = 24, PARTS = 6 };

typedef struct job {
    mr_net *(*net)(void);
    uint64_t bucket_bytes;
    uint32_t sync;                    /* else one set of weights, with averages and Lookahead */
    uint32_t servers;                 /* of parameters, besides the workers; 0: none */
    bool plain;                       /* without averages, Lookahead and a limit of the norm */
    bool tunes;                       /* the size of buckets */
    uint32_t devices[MRT_RANKS_MOST]; /* of each rank; 0: one */
    const char *checkpoint;
    uint32_t odd_rank; /* it does something else: MRT_RANKS_MOST: nobody does */
    enum { ODD_SEED, ODD_BATCH, ODD_LEAVES } odd;
} job;

/* "cpu:3" or "cuda:0,1,2". */
static void name_devices(uint32_t count, char *out, size_t out_bytes)
{
    const char *kind = getenv("MRT_DEVICES");
    int at = snprintf(out, out_bytes, "cpu:%u", count);
    if (!kind) return;
    for (uint32_t i = 0; i < count; i++)
        at = i ? at + snprintf(out + at, out_bytes - (size_t)at, ",%u", i)
               : snprintf(out, out_bytes, "%s:0", kind);
}

static int open_rig(const job *j, mr_world *world, mr_crew *crew, uint32_t rank, mrt_rig *rig, mr_error *err)
{
    char spec[64];
    name_devices(j->devices[rank] ? j->devices[rank] : 1, spec, sizeof spec);
    return mrt_rig_try(rig,
                       &(mrt_rig_options){.devices = spec,
                                          .batch = BATCH,
                                          .seed = j->odd_rank == rank && j->odd == ODD_SEED ? 9 : 3,
                                          .lr = 0.05f,
                                          .net = j->net,
                                          .update = MR_UPDATE_ADAM,
                                          .parts = PARTS,
                                          .bucket_bytes = j->bucket_bytes,
                                          .tune_buckets = j->tunes,
                                          .deterministic = true,
                                          .clip_norm = j->plain ? 0 : 0.1f,
                                          .average = j->sync || j->plain ? 0 : 0.8f,
                                          .lookahead = j->sync || j->plain ? 0 : 2,
                                          .sync = j->sync,
                                          .outer_lr = 0.7f,
                                          .outer_momentum = 0.9f,
                                          .crew = crew,
                                          .world = world},
                       err);
}

static int step(mrt_rig *rig, uint64_t number, uint32_t first, uint32_t count, bool training, mr_error *err)
{
    mrt_batch b;
    mrt_batch_make(&b, rig, number, first, count, NULL, 0);
    int rc = training ? mr_trainer_step(rig->t, &b.b, err) : mr_trainer_forward(rig->t, &b.b, err);
    if (rc == MR_OK) rc = mri_flights_drain(&rig->t->flights, err); /* another process may leave meanwhile */
    mrt_batch_drop(&b, rig);
    return rc;
}

/* Back to where the snapshot was made, and the same step again: the same weights. */
static int repeat_last_step(mrt_rig *rig, const mr_snapshot *s, mr_error *err)
{
    uint64_t first[2], again[2];
    int rc = mr_trainer_weights_hash(rig->t, 0, &first[0], &first[1], err);
    if (rc == MR_OK) rc = mr_trainer_restore(rig->t, s, err);
    if (rc == MR_OK) rc = step(rig, 2, 47, 4, true, err);
    if (rc == MR_OK) rc = mr_trainer_weights_hash(rig->t, 0, &again[0], &again[1], err);
    if (rc == MR_OK && memcmp(first, again, sizeof first) != 0)
        rc = mr_error_set(err, MR_EDEVICE, "other weights after a snapshot");
    return rc;
}

/* Steps, a checkpoint that is read again, an evaluation. */
static int run_job(const job *j, mrt_rig *rig, uint32_t rank, char *out, size_t out_bytes, mr_error *err)
{
    mr_checkpoint_info info = {.struct_size = sizeof info};
    mr_metrics training, evaluation;
    mr_snapshot *s = NULL;
    uint64_t lo, hi;
    const uint64_t second = j->odd_rank == rank && j->odd == ODD_BATCH ? 7 : 1;
    int rc = step(rig, 0, 0, BATCH, true, err);
    if (rc == MR_OK && j->odd_rank == rank && j->odd == ODD_LEAVES) return MR_OK;
    if (rc == MR_OK) rc = step(rig, second, BATCH, 23, true, err);
    if (rc == MR_OK) rc = mr_trainer_save(rig->t, j->checkpoint, &info, err);
    if (rc == MR_OK) rc = mr_snapshot_create(&s);
    if (rc == MR_OK) rc = mr_trainer_snapshot(rig->t, s, &info, err);
    if (rc == MR_OK) rc = step(rig, 2, 900, 24, true, err); /* undone by loading */
    if (rc == MR_OK) rc = mr_trainer_load(rig->t, j->checkpoint, &info, err);
    if (rc == MR_OK) rc = step(rig, 2, 47, 4, true, err);
    if (rc == MR_OK) rc = repeat_last_step(rig, rank ? NULL : s, err);
    if (rc == MR_OK) rc = step(rig, 0, 1000, 17, false, err);
    if (rc == MR_OK) rc = mr_trainer_metrics(rig->t, &training, &evaluation, err);
    if (rc == MR_OK) rc = mr_trainer_weights_hash(rig->t, 0, &lo, &hi, err);
    if (rc == MR_OK)
        snprintf(out, out_bytes, "%016llx%016llx, %llu samples of loss %a, %llu of %a, %u parts",
                 (unsigned long long)hi, (unsigned long long)lo, (unsigned long long)training.count,
                 training.loss_sum, (unsigned long long)evaluation.count, evaluation.loss_sum, info.parts);
    mr_snapshot_destroy(s);
    return rc;
}

/* A machine for each server; the last one has the workers, too. A worker goes on with the world of workers.
 */
static int enter_crew(const job *j, mr_world **world, uint32_t *rank, mr_crew **crew, mr_error *err)
{
    char host[16];
    snprintf(host, sizeof host, "h%u", *rank < j->servers ? *rank : j->servers - 1);
    setenv("MILLRACE_HOST_ID", host, 1);
    const int rc = mr_crew_open(crew, *world, j->servers, err);
    if (rc || mr_crew_serves(*crew)) return rc;
    mr_world_close(*world);
    *world = mr_crew_take_together(*crew);
    *rank = mr_crew_index(*crew);
    return MR_OK;
}

static int serve(mr_crew *crew, char *out, size_t out_bytes, mr_error *err)
{
    snprintf(out, out_bytes, "server %u of %u, %u workers", mr_crew_index(crew), mr_crew_servers(crew),
             mr_crew_workers(crew));
    return mr_serve(crew, NULL, err);
}

static void live(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    const job *j = what;
    mr_error err = MR_ERROR_INIT;
    mrt_rank *me = &w->ranks[slot];
    mrt_rig rig = {0};
    mr_world *world = mrt_open(w, slot, rank, size, 10);
    if (!world) return;
    mr_crew *crew = NULL;
    int rc = j->servers ? enter_crew(j, &world, &rank, &crew, &err) : MR_OK;
    if (rc == MR_OK && mr_crew_serves(crew)) rc = serve(crew, me->text, sizeof me->text, &err);
    else if (rc == MR_OK) rc = open_rig(j, world, crew, rank, &rig, &err);
    if (rc == MR_OK && rig.t) rc = run_job(j, &rig, rank, me->text, sizeof me->text, &err);
    if (rc) mrt_keep(me, rc, &err);
    if (rig.t) mrt_rig_close(&rig);
    mr_world_close(world);
    mr_crew_close(crew);
}

/* The common result of the ranks of a world. */
static void outcome_of(const job *j, uint32_t size, char *out, size_t out_bytes)
{
    mrt_worlds *w = mrt_worlds_new();
    mrt_start_all(w, size, live, j);
    mrt_wait_all(w, size);
    for (uint32_t r = 0; r < size; r++) {
        mrt_ended_well(w, r);
        if (w->ranks[r].rc) fail_msg("rank %u: %s", r, w->ranks[r].text);
        MRT_STR(w->ranks[r].text, w->ranks[0].text);
    }
    snprintf(out, out_bytes, "%s", w->ranks[0].text);
    mrt_worlds_free(w);
}

static void weights_do_not_depend_on_processes(void **state)
{
    (void)state;
    static const struct {
        uint32_t size, devices[MRT_RANKS_MOST];
    } worlds[] = {{2, {0}}, {3, {0}}, {2, {3, 1}}, {3, {1, 2, 3}}, {5, {0}}, {6, {0}}};
    mr_net *(*const nets[])(void) = {mrt_net_norm, mrt_net_branch};
    for (size_t n = 0; n < sizeof nets / sizeof *nets; n++) {
        char alone[1024], together[1024];
        job j = {.net = nets[n],
                 .bucket_bytes = n ? 1024 : 0,
                 .checkpoint = mrt_path("net%zu.mrck", n),
                 .odd_rank = MRT_RANKS_MOST};
        outcome_of(&j, 1, alone, sizeof alone);
        MRT_HAS(alone, "79 samples");
        MRT_HAS(alone, "6 parts");
        for (size_t k = 0; k < sizeof worlds / sizeof *worlds; k++) {
            memcpy(j.devices, worlds[k].devices, sizeof j.devices);
            outcome_of(&j, worlds[k].size, together, sizeof together);
            MRT_STR(together, alone);
        }
    }
}

/* Of averages the checkpoint and the snapshot of the job are between two of them. */
static void ways_to_train_together_do_not_depend_on_processes(void **state)
{
    (void)state;
    static const struct {
        uint32_t size, devices[MRT_RANKS_MOST];
    } worlds[] = {{2, {3, 1}}, {3, {1, 2, 3}}, {5, {0}}};
    const uint32_t ways[] = {mr_sync_average(2), mr_sync_average(3), MR_SYNC_INDEPENDENT, MR_SYNC_DELAYED};
    for (size_t way = 0; way < MRI_ARRAY_COUNT(ways); way++) {
        char alone[1024], together[1024];
        job j = {.net = mrt_net_norm,
                 .sync = ways[way],
                 .checkpoint = mrt_path("way%zu.mrck", way),
                 .odd_rank = MRT_RANKS_MOST};
        outcome_of(&j, 1, alone, sizeof alone);
        for (size_t k = 0; k < sizeof worlds / sizeof *worlds; k++) {
            memcpy(j.devices, worlds[k].devices, sizeof j.devices);
            outcome_of(&j, worlds[k].size, together, sizeof together);
            MRT_STR(together, alone);
        }
    }
}

/* Workers have the weights of one process whatever servers there are: without and with several shares each,
 * and with servers that have no parameter. With gradients of its own an update of the only worker is the
 * same. */
static void servers_train_the_weights_of_one_process(void **state)
{
    (void)state;
    static const struct {
        mr_net *(*net)(void);
        uint32_t servers, workers, sync;
    } worlds[] = {{mrt_net_norm, 1, 3, MR_SYNC_SERVERS},
                  {mrt_net_norm, 2, 6, MR_SYNC_SERVERS},
                  {mrt_net_dense, 5, 3, MR_SYNC_SERVERS},
                  {mrt_net_dense, 1, 1, MR_SYNC_SERVERS_ASYNC | 1u << 8}};
    char alone[1024];
    for (size_t k = 0; k < MRI_ARRAY_COUNT(worlds); k++) {
        mrt_worlds *w = mrt_worlds_new();
        const uint32_t size = worlds[k].servers + worlds[k].workers;
        job j = {.net = worlds[k].net,
                 .plain = true,
                 .checkpoint = mrt_path("served.mrck"),
                 .odd_rank = MRT_RANKS_MOST};
        outcome_of(&j, 1, alone, sizeof alone);
        j.sync = worlds[k].sync, j.servers = worlds[k].servers;
        mrt_start_all(w, size, live, &j);
        mrt_wait_all(w, size);
        for (uint32_t r = 0; r < size; r++) {
            mrt_ended_well(w, r);
            if (w->ranks[r].rc) fail_msg("rank %u: %s", r, w->ranks[r].text);
            if (r >= j.servers) MRT_STR(w->ranks[r].text, alone);
            else MRT_HAS(w->ranks[r].text, "server ");
        }
        mrt_worlds_free(w);
    }
}

/* Enough steps for a search to end. The text: weights, then the buckets in use. */
static void live_long(mrt_worlds *w, uint32_t slot, uint32_t rank, uint32_t size, const void *what)
{
    const job *j = what;
    mr_error err = MR_ERROR_INIT;
    mrt_rank *me = &w->ranks[slot];
    mrt_rig rig = {0};
    uint64_t lo = 0, hi = 0;
    mr_bucket_tuning tuning;
    mr_trainer_link link;
    mr_world *world = mrt_open(w, slot, rank, size, 10);
    if (!world) return;
    int rc = open_rig(j, world, NULL, rank, &rig, &err);
    for (uint32_t s = 0; rc == MR_OK && s < 130; s++) rc = step(&rig, s, s * 31, BATCH, true, &err);
    if (rc == MR_OK) rc = mr_trainer_weights_hash(rig.t, 0, &lo, &hi, &err);
    if (rc == MR_OK) {
        mr_trainer_bucket_tuning(rig.t, &tuning);
        mr_trainer_link_read(rig.t, &link);
        MRT_CHECK(me, tuning.done && (rank == 0 || tuning.sizes == 1));
        MRT_CHECK(me, j->bucket_bytes == MR_BUCKET_AUTO || (tuning.sizes > 1) == (j->tunes && rank == 0));
        MRT_CHECK(me, link.buckets == rig.t->team.replicas[0].plan.bucket_count);
        MRT_CHECK(me, size == 1 || link.latency_ms > 0);
        snprintf(me->text, sizeof me->text, "%016llx%016llx %u %llu", (unsigned long long)hi,
                 (unsigned long long)lo, link.buckets, (unsigned long long)link.bucket_bytes);
    }
    if (rc) mrt_keep(me, rc, &err);
    if (rig.t) mrt_rig_close(&rig);
    mr_world_close(world);
}

/* The first process tunes and sends the others its result; without a size all use the size for their
 * network. */
static void buckets_are_the_same_in_all_and_change_no_bit(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        bool tunes;
    } jobs[] = {{2000, false}, {2000, true}, {MR_BUCKET_AUTO, false}, {MR_BUCKET_AUTO, true}};
    char first[1024] = "";
    for (size_t k = 0; k < sizeof jobs / sizeof *jobs; k++) {
        const job j = {.net = mrt_net_conv,
                       .bucket_bytes = jobs[k].bytes,
                       .tunes = jobs[k].tunes,
                       .odd_rank = MRT_RANKS_MOST};
        mrt_worlds *w = mrt_worlds_new();
        mrt_start_all(w, 2, live_long, &j);
        mrt_wait_all(w, 2);
        for (uint32_t r = 0; r < 2; r++) {
            mrt_ended_well(w, r);
            if (w->ranks[r].rc) fail_msg("rank %u: %s", r, w->ranks[r].text);
            MRT_STR(w->ranks[r].text, w->ranks[0].text);
            if (!first[0]) snprintf(first, sizeof first, "%s", w->ranks[0].text);
            MRT_EQ(strncmp(w->ranks[r].text, first, 32), 0);
        }
        mrt_worlds_free(w);
    }
}

/* rc and part of the text: of every rank but the odd one; odd_rc: its, or MR_OK: it is not asked. */
static void all_are_told(job *j, int rc, int odd_rc, const char *part)
{
    mrt_worlds *w = mrt_worlds_new();
    j->net = mrt_net_dense;
    j->checkpoint = mrt_path("odd.mrck");
    mrt_start_all(w, 3, live, j);
    mrt_wait_all(w, 3);
    for (uint32_t r = 0; r < 3; r++)
        if (r != j->odd_rank || odd_rc) mrt_said(w, r, r == j->odd_rank ? odd_rc : rc, part);
    mrt_worlds_free(w);
}

static void what_differs_is_told_to_all(void **state)
{
    (void)state;
    job j = {.odd_rank = 1, .odd = ODD_SEED};
    all_are_told(&j, MR_EPEER, MR_EINVAL, "has 'seed 9'");
    j = (job){.odd_rank = 2, .odd = ODD_BATCH};
    all_are_told(&j, MR_EINVAL, MR_EINVAL, "expected the same batch of all ranks");
    j = (job){.odd_rank = 2, .odd = ODD_LEAVES};
    all_are_told(&j, MR_EPEER, MR_OK, "rank 2");
    j = (job){.odd_rank = MRT_RANKS_MOST, .devices = {3, 3, 3}};
    all_are_told(&j, MR_EINVAL, MR_OK, "9 devices for the 6 parts");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_do_not_depend_on_processes),
        cmocka_unit_test(ways_to_train_together_do_not_depend_on_processes),
        cmocka_unit_test(servers_train_the_weights_of_one_process),
        cmocka_unit_test(buckets_are_the_same_in_all_and_change_no_bit),
        cmocka_unit_test(what_differs_is_told_to_all),
    };
    return mrt_run(tests);
}
