/* fork(): a child's use of handles that its parent opened, and of handles that it opens itself. A child
 * reports by its exit status, so that one that crashes or hangs is a failed check here. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/train/rig.h"

/* In a child: say which check failed, and end. */
#define CHILD(x)                                                                                             \
    do {                                                                                                     \
        if (!(x)) {                                                                                          \
            fprintf(stderr, "child, line %d: %s\n", __LINE__, #x);                                           \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

typedef void child_main(void *context);

/* Its exit status; below 0: the signal that ended it, SIGALRM where it hung. */
static int in_child(child_main *main, void *context)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(mrt_seconds(60));
        main(context);
        _exit(0);
    }
    MRT_TRUE(child > 0);
    MRT_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void skip_where_threads_cannot_be_begun(void)
{
#if defined(__SANITIZE_THREAD__)
    printf("SKIP: a child of a process with threads cannot begin threads under the thread sanitizer\n");
    exit(77);
#endif
}

typedef struct reading {
    mr_source *src;
    mr_loader *l;
    mr_batch b;
} reading;

static void open_reading(reading *r, const char *name, uint32_t prefetch)
{
    mr_error err = MR_ERROR_INIT;
    mr_loader_config cfg;
    mr_loader_defaults(&cfg);
    cfg.batch = 8;
    cfg.prefetch = prefetch;
    cfg.epochs = UINT64_MAX;
    MRT_OK(mr_source_open(&r->src, mrt_toy_set(name, 0, 64), NULL, &err), &err);
    MRT_OK(mr_loader_open(&r->l, r->src, &cfg, &err), &err);
    MRT_OK(mr_loader_next(r->l, &r->b, MR_FOREVER, &err), &err);
}

static void close_reading(reading *r)
{
    MRT_EQ(mr_loader_release(r->l, &r->b, NULL), MR_OK);
    mr_loader_close(r->l);
    mr_source_close(r->src);
}

static void closes_all(void *context)
{
    reading *r = context;
    mr_loader_stop(r->l);
    mr_loader_close(r->l);
    mr_source_close(r->src);
}

static void a_child_closes_what_it_inherited(void **state)
{
    (void)state;
    for (uint32_t prefetch = 0; prefetch <= 2; prefetch += 2) {
        reading r;
        mr_error err = MR_ERROR_INIT;
        open_reading(&r, "closed", prefetch);
        MRT_EQ(in_child(closes_all, &r), 0);
        for (int k = 0; k < 20; k++) { /* the parent's goes on */
            MRT_EQ(mr_loader_release(r.l, &r.b, NULL), MR_OK);
            MRT_OK(mr_loader_next(r.l, &r.b, MR_FOREVER, &err), &err);
        }
        close_reading(&r);
    }
}

static bool is_told(int rc, const mr_error *err) { return rc == MR_EINVAL && strstr(err->text, "fork()"); }

static void calls_readers(void *context)
{
    reading *r = context;
    mr_error err = MR_ERROR_INIT;
    mr_batch b;
    mr_kept *kept;
    mr_extent e;
    mr_sample sample;
    mr_loader *l;
    mr_loader_config cfg;
    mr_loader_stats stats;
    void *buffer = NULL;
    size_t bytes = 0;
    int64_t label;
    CHILD(is_told(mr_loader_next(r->l, &b, MR_FOREVER, &err), &err));
    CHILD(strstr(err.text, "mr_loader_next: l was opened by the parent process"));
    CHILD(mr_loader_release(r->l, &r->b, NULL) == MR_EINVAL);
    CHILD(is_told(mr_loader_keep(r->l, &r->b, &kept, &err), &err));
    mr_loader_stats_read(r->l, &stats);
    CHILD(stats.batches == 0);
    CHILD(is_told(mr_source_read(r->src, 0, &buffer, &bytes, &sample, &err), &err));
    CHILD(is_told(mr_source_extent(r->src, 0, &e, &err), &err));
    CHILD(mr_source_label(r->src, 0, &label) == MR_EINVAL);
    CHILD(is_told(mr_source_check(r->src, &err), &err));
    mr_loader_defaults(&cfg);
    CHILD(is_told(mr_loader_open(&l, r->src, &cfg, &err), &err));
}

static void other_calls_of_a_child_are_refused(void **state)
{
    (void)state;
    reading r;
    open_reading(&r, "refused", 2);
    MRT_EQ(in_child(calls_readers, &r), 0);
    close_reading(&r);
}

static void reads_anew(void *context)
{
    reading r;
    (void)context;
    open_reading(&r, "anew", 2);
    close_reading(&r);
}

static void a_child_opens_a_loader_of_its_own(void **state)
{
    (void)state;
    skip_where_threads_cannot_be_begun();
    reading r;
    open_reading(&r, "anew", 2);
    MRT_EQ(in_child(reads_anew, NULL), 0);
    close_reading(&r);
}

/* ---- training ---- */

static mrt_hash train_some(void)
{
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.seed = 5});
    for (uint32_t s = 0; s < 4; s++) mrt_train(&rig, s, s * 32, 32);
    const mrt_hash hash = mrt_hash_of(&rig, 0);
    mrt_rig_close(&rig);
    return hash;
}

static void trains_alike(void *context) { CHILD(mrt_same(train_some(), *(const mrt_hash *)context)); }

static void a_child_trains_after_its_parent_did(void **state)
{
    (void)state;
    skip_where_threads_cannot_be_begun();
    mrt_hash hash = train_some();
    MRT_EQ(in_child(trains_alike, &hash), 0);
}

static void trains_with_the_parents(void *context)
{
    mrt_rig *rig = context;
    mr_error err = MR_ERROR_INIT;
    mr_batch b = {.count = 1};
    uint64_t lo, hi;
    mr_stream *s;
    void *memory;
    CHILD(is_told(mr_trainer_step(rig->t, &b, &err), &err));
    CHILD(is_told(mr_trainer_forward(rig->t, &b, &err), &err));
    CHILD(is_told(mr_trainer_metrics(rig->t, NULL, NULL, &err), &err));
    CHILD(is_told(mr_trainer_weights_hash(rig->t, 0, &lo, &hi, &err), &err));
    CHILD(is_told(mr_trainer_load(rig->t, "nowhere", NULL, &err), &err));
    CHILD(is_told(mr_stream_create(&s, rig->devices[0], MR_STREAM_COPY, &err), &err));
    CHILD(is_told(mr_device_alloc(rig->devices[0], 64, &memory, &err), &err));
    CHILD(is_told(mr_stream_sync(rig->t->team.streams[0], &err), &err));
    mrt_rig_close(rig);
}

static void a_trainer_of_the_parent_is_refused(void **state)
{
    (void)state;
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.seed = 5});
    mrt_train(&rig, 0, 0, 32);
    MRT_EQ(in_child(trains_with_the_parents, &rig), 0);
    mrt_train(&rig, 1, 32, 32);
    mrt_rig_close(&rig);
}

/* ---- files that are being written ---- */

typedef struct writing {
    mr_output *o;
    mr_run_folder *folder;
} writing;

static void gives_up_writing(void *context)
{
    writing *w = context;
    mr_error err = MR_ERROR_INIT;
    CHILD(is_told(mr_output_write(w->o, "x", 1, &err), &err));
    CHILD(is_told(mr_output_commit(w->o, &err), &err));
    mr_output_abandon(w->o, false);
    mr_run_folder_close(w->folder);
}

static void looks_at_folder(void *context)
{
    mr_run_folder *other;
    mr_error err = MR_ERROR_INIT;
    CHILD(mr_run_folder_open(&other, context, &err) == MR_EEXIST);
}

static void a_child_ends_no_file_of_its_parent(void **state)
{
    (void)state;
    writing w;
    mr_error err = MR_ERROR_INIT;
    char folder[512];
    size_t bytes;
    snprintf(folder, sizeof folder, "%s", mrt_path("run"));
    MRT_OK(mr_output_open(&w.o, mrt_path("out"), NULL, &err), &err);
    MRT_OK(mr_run_folder_open(&w.folder, folder, &err), &err);
    MRT_OK(mr_output_write(w.o, "whole", 5, &err), &err);
    MRT_EQ(in_child(gives_up_writing, &w), 0);
    MRT_EQ(in_child(looks_at_folder, folder), 0); /* the parent still has it */
    MRT_OK(mr_output_commit(w.o, &err), &err);
    free(mrt_read_file(mrt_path("out"), &bytes));
    MRT_EQ(bytes, 5);
    mr_run_folder_close(w.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_closes_what_it_inherited),
        cmocka_unit_test(other_calls_of_a_child_are_refused),
        cmocka_unit_test(a_trainer_of_the_parent_is_refused),
        cmocka_unit_test(a_child_ends_no_file_of_its_parent),
        cmocka_unit_test(a_child_opens_a_loader_of_its_own),
        cmocka_unit_test(a_child_trains_after_its_parent_did),
    };
    return mrt_run(tests);
}
