/* tests/train/whole_run.c: see whole_run.h. What runs in a child returns its errors: cmocka's checks would go
 * on with the parent's tests there. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/train/whole_run.h"

enum { VAL = 19, MOST_SECONDS = 200 };

typedef struct whole {
    const mrt_run *o;
    mrt_rig rig;
    mr_source *source[2]; /* to train and to validate */
    mr_loader *loader[2];
    mrt_outcome *out;
} whole;

static int open_loader(whole *w, int which, const char *path, mr_error *err)
{
    const bool training = which == 0;
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = w->o->batch;
    cfg.seed = 11;
    cfg.epochs = training ? w->o->epochs : UINT32_MAX;
    cfg.order = training ? MR_ORDER_SHUFFLE : MR_ORDER_SEQUENTIAL;
    cfg.tail = training ? w->o->tail : MR_TAIL_KEEP;
    cfg.training = training;
    cfg.augment = training ? "flip" : "none";
    cfg.prefetch = w->o->prefetch;
    cfg.workers = 1;
    cfg.devices = w->rig.devices;
    cfg.device_count = w->rig.count;
    const int rc = mr_source_open(&w->source[which], path, NULL, err);
    return rc ? rc : mr_loader_open(&w->loader[which], w->source[which], &cfg, err);
}

static void on_epoch(void *context, const mr_report *report)
{
    mrt_outcome *out = context;
    out->steps += report->steps;
    out->samples += report->samples;
    out->correct += (uint64_t)(report->accuracy * (double)report->samples + 0.5);
    out->val_correct += (uint64_t)(report->val_accuracy * VAL + 0.5);
    out->loss = report->loss;
    out->val_loss = report->val_loss;
}

static int compare_replicas(whole *w, mr_error *err)
{
    int rc = mr_trainer_weights_hash(w->rig.t, 0, &w->out->weights.lo, &w->out->weights.hi, err);
    for (uint32_t r = 1; rc == MR_OK && r < w->rig.count; r++) {
        mrt_hash h;
        rc = mr_trainer_weights_hash(w->rig.t, r, &h.lo, &h.hi, err);
        if (rc == MR_OK && !mrt_same(h, w->out->weights))
            rc = mr_error_set(err, MR_EDEVICE, "replica %u has other weights than replica 0", r);
    }
    return rc;
}

static int train(whole *w, const char *const *paths, mr_error *err)
{
    const mrt_run *o = w->o;
    const mrt_rig_options rig = {.devices = o->devices,
                                 .batch = o->batch,
                                 .seed = 2,
                                 .update = o->update,
                                 .lr = o->lr,
                                 .net = o->net,
                                 .bucket_bytes = o->bucket_bytes,
                                 .clip_value = o->clip_value,
                                 .clip_norm = o->clip_norm,
                                 .weight_decay = o->weight_decay,
                                 .decay_on = o->decay_on,
                                 .average = o->average,
                                 .lookahead = o->lookahead,
                                 .dtype = o->dtype,
                                 .no_graph = o->no_graph,
                                 .deterministic = true};
    int rc = mrt_rig_try(&w->rig, &rig, err);
    for (int i = 0; rc == MR_OK && i < 2; i++) rc = open_loader(w, i, paths[i], err);
    if (rc) return rc;
    mr_fit_config cfg;
    mr_fit_defaults(&cfg);
    cfg.val = w->loader[1];
    cfg.callbacks = (mr_callbacks){.context = w->out, .on_epoch = on_epoch};
    rc = mr_fit(w->rig.t, w->loader[0], &cfg, NULL, err);
    return rc ? rc : compare_replicas(w, err);
}

static int whole_run(const mrt_run *o, const char *const *paths, mrt_outcome *out)
{
    mr_error err = MR_ERROR_INIT;
    whole w = {.o = o, .out = out};
    const int rc = train(&w, paths, &err);
    if (rc) mr_error_format(&err, out->text, sizeof out->text);
    for (int i = 0; i < 2; i++) mr_loader_close(w.loader[i]);
    for (int i = 0; i < 2; i++) mr_source_close(w.source[i]);
    mrt_rig_close(&w.rig);
    return rc ? 1 : 0;
}

static pid_t start(const mrt_run *o, mrt_outcome *out)
{
    char text[32];
    snprintf(text, sizeof text, "train-%u", o->samples);
    const char *const paths[] = {mrt_toy_set(text, 0, o->samples), mrt_toy_set("val", 5000, VAL)};
    fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0) fail_msg("fork: %s", strerror(errno));
    if (pid > 0) return pid;
    snprintf(text, sizeof text, "%llu", (unsigned long long)o->seed);
    setenv("MILLRACE_EMU_SEED", text, 1);
    setenv("MILLRACE_EMU_DEVICES", "8", 1);
    alarm(mrt_seconds(MOST_SECONDS)); /* a run that hangs dies of it */
    _exit(whole_run(o, paths, out));  /* the temporary folder is the parent's to remove */
}

static void collect(const pid_t *pids, mrt_outcome *out, size_t count)
{
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, 0)) < 0 && errno == EINTR) {
    }
    if (pid < 0) fail_msg("waitpid: %s", strerror(errno));
    for (size_t i = 0; i < count; i++)
        if (pids[i] == pid) out[i].status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void mrt_run_all(const mrt_run *runs, mrt_outcome *outcomes, size_t count)
{
    const size_t bytes = count * sizeof(mrt_outcome), jobs = 2 * (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    mrt_outcome *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *pids = calloc(count, sizeof *pids);
    if (shared == MAP_FAILED || !pids) fail_msg("no memory for %zu outcomes", count);
    for (size_t i = 0; i < count; i++) {
        if (i >= jobs) collect(pids, shared, i);
        pids[i] = start(&runs[i], &shared[i]);
    }
    for (size_t i = 0; i < mri_min_u64(count, jobs); i++) collect(pids, shared, count);
    memcpy(outcomes, shared, bytes);
    munmap(shared, bytes);
    free(pids);
}

void mrt_emulated_or_skip(void)
{
    if (getenv("MILLRACE_EMU_DEVICES")) return;
    printf("SKIP: only on emulated GPUs\n");
    exit(77);
}
