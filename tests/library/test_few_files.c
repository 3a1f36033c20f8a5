/* tests/library/test_few_files.c: a host that may open few files (RLIMIT_NOFILE), for each number of them: a
 * loader delivers the same batches, or the call that failed says that files are missing. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrt.h"
#include "tests/pipeline/sets.h"

enum { MORE_MOST = 40 };

typedef struct outcome {
    int rc;
    mr_error err;
    mr_digest digest;
} outcome;

static int drain(const mr_source *src, mr_digest *out, mr_error *err)
{
    mr_loader_config cfg;
    mr_loader *l;
    mr_digester *d;
    uint64_t batches, samples;
    mr_loader_defaults(&cfg);
    cfg.batch = 16;
    cfg.augment = "rrc(24)";
    cfg.training = true;
    cfg.workers = 2;
    int rc = mr_loader_open(&l, src, &cfg, err);
    if (rc != MR_OK) return rc;
    MRT_EQ(mr_digester_create(&d), MR_OK);
    rc = mr_digester_run(d, l, NULL, UINT64_MAX, &batches, &samples, err);
    *out = mr_digester_result(d);
    mr_digester_destroy(d);
    mr_loader_close(l);
    return rc;
}

/* In a child that has its three standard files and may open `more` others. */
static outcome with_files(const char *path, uint32_t more)
{
    outcome *o = mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    assert_true(o != MAP_FAILED);
    const pid_t child = fork();
    MRT_TRUE(child >= 0);
    if (child == 0) {
        enum { STANDARD = 3, ANY = 256 };
        const struct rlimit files = {STANDARD + more, STANDARD + more};
        mr_source *src = NULL;
        alarm(mrt_seconds(60));
        o->err = (mr_error)MR_ERROR_INIT;
        for (int fd = STANDARD; fd < ANY; fd++) close(fd);
        if (setrlimit(RLIMIT_NOFILE, &files) != 0) _exit(2);
        o->rc = mr_source_open(&src, path, NULL, &o->err);
        if (o->rc == MR_OK) o->rc = drain(src, &o->digest, &o->err);
        mr_source_close(src);
        _exit(0);
    }
    MRT_EQ(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("%s, %u more files: ended with %x", path, more, status);
    const outcome result = *o;
    munmap(o, sizeof *o);
    return result;
}

static bool says_files(const mr_error *err)
{
    return err->sys_errno == EMFILE || strstr(err->text, "open files") || strstr(err->text, "descriptor") ||
           strstr(err->text, strerror(EMFILE));
}

static void the_same_or_an_error(const char *path)
{
    const outcome all = with_files(path, 512);
    uint32_t least = MORE_MOST;
    MRT_OK(all.rc, &all.err);
    for (uint32_t more = 0; more <= MORE_MOST; more++) {
        const outcome o = with_files(path, more);
        if (o.rc == MR_OK) MRT_TRUE(mrt_same_batches(o.digest, all.digest));
        else if (!says_files(&o.err)) fail_msg("%s, %u more files: %d, %s", path, more, o.rc, o.err.text);
        if (o.rc == MR_OK && more < least) least = more;
    }
    print_message("%s: %u more files are enough\n", path, least);
    MRT_TRUE(least < MORE_MOST);
}

static void a_folder(void **state)
{
    (void)state;
    the_same_or_an_error(mrt_folder_set("few-files", 2, 40, 60, true));
}

static void a_record_file(void **state)
{
    char path[4096];
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    mr_convert_config cfg;
    (void)state;
    mr_convert_defaults(&cfg);
    snprintf(path, sizeof path, "%s", mrt_path("few.mrec"));
    MRT_OK(mr_source_open(&src, mrt_folder_set("few-files-too", 2, 40, 60, true), NULL, &err), &err);
    MRT_OK(mr_convert(src, path, &cfg, NULL, &err), &err);
    mr_source_close(src);
    the_same_or_an_error(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_folder), cmocka_unit_test(a_record_file)};
    return mrt_run(tests);
}
