/* The only path for writing files: whole or not at all; no link followed, nothing but a regular file
 * replaced, no input, never two writers; system errors are reported and no file is left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/storage/output.h"
#include "mrt.h"

/* Calls that the system lacks, or refuses. */
static bool no_noreplace, no_link, no_tmpfile, no_sync, no_flock;
static int looks_left = -1; /* until lstat() fails, once; -1: it does not */

int __real_renameat2(int from, const char *a, int to, const char *b, unsigned flags);
int __real_link(const char *a, const char *b);
int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __real_fsync(int fd);
int __real_flock(int fd, int how);
int __real_lstat(const char *path, struct stat *out);
int __wrap_renameat2(int from, const char *a, int to, const char *b, unsigned flags);
int __wrap_link(const char *a, const char *b);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_fsync(int fd);
int __wrap_flock(int fd, int how);
int __wrap_lstat(const char *path, struct stat *out);
int __wrap_lstat64(const char *path, struct stat *out);

int __wrap_renameat2(int from, const char *a, int to, const char *b, unsigned flags)
{
    if (no_noreplace && flags) return errno = EINVAL, -1;
    return __real_renameat2(from, a, to, b, flags);
}

int __wrap_link(const char *a, const char *b) { return no_link ? (errno = EPERM, -1) : __real_link(a, b); }

static mode_t mode_of(int flags, va_list more)
{
    return flags & (O_CREAT | __O_TMPFILE) ? (mode_t)va_arg(more, int) : 0;
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = mode_of(flags, more);
    va_end(more);
    if (no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) return errno = EOPNOTSUPP, -1;
    return __real_open(path, flags, mode);
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = mode_of(flags, more);
    va_end(more);
    return __wrap_open(path, flags, mode);
}

int __wrap_fsync(int fd) { return no_sync ? (errno = EIO, -1) : __real_fsync(fd); }
int __wrap_flock(int fd, int how) { return no_flock ? (errno = ENOLCK, -1) : __real_flock(fd, how); }

int __wrap_lstat(const char *path, struct stat *out)
{
    if (looks_left >= 0 && looks_left-- == 0) return errno = EIO, -1;
    return __real_lstat(path, out);
}

int __wrap_lstat64(const char *path, struct stat *out) { return __wrap_lstat(path, out); }

static int set_up(void **state)
{
    (void)state;
    looks_left = -1;
    no_noreplace = no_link = no_tmpfile = no_sync = no_flock = false;
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s/w'", mrt_temp());
    if (system(command) != 0) return -1;
    mrt_mkdir(mrt_path("w"));
    return 0;
}

static const char *at(const char *name) { return mrt_path("w/%s", name); }

static bool is_there(const char *name)
{
    struct stat st;
    return lstat(at(name), &st) == 0;
}

static void holds(const char *name, const char *want)
{
    size_t bytes;
    char *found = mrt_read_file(at(name), &bytes);
    MRT_EQ(bytes, strlen(want));
    MRT_TRUE(memcmp(found, want, bytes) == 0);
    free(found);
}

static void put(const char *name, const char *text) { mrt_write_file(at(name), text, strlen(text)); }

static int file_count(void)
{
    int n = 0;
    DIR *d = opendir(mrt_path("w"));
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    closedir(d);
    return n;
}

static const mri_output_rules force = {.force = true}, resume = {.resume = true},
                              force_resume = {.force = true, .resume = true};

static int write_it(const char *name, const char *text, const mri_output_rules *rules, mr_error *err)
{
    return mri_output_write_whole(at(name), text, strlen(text), rules, err);
}

/* open() of this name is refused with code and a text that has `part`. */
static void refused(const char *name, const mri_output_rules *rules, int code, const char *part)
{
    mr_error err = MR_ERROR_INIT;
    mri_output *o = (mri_output *)&err; /* open must clear it */
    MRT_EQ(mri_output_open(&o, at(name), rules, &err), code);
    MRT_TRUE(o == NULL);
    MRT_HAS(err.text, part);
    MRT_HAS(err.file, name);
}

static void whole_or_not_at_all(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_output *o;
    MRT_OK(write_it("x", "one", NULL, &err), &err);
    holds("x", "one");
    refused("x", NULL, MR_EEXIST, "exists already");
    MRT_OK(mri_output_open(&o, at("x"), &force, &err), &err);
    MRT_STR(mri_output_part(o), at("x.part"));
    MRT_EQ(write(mri_output_fd(o), "two!", 4), 4);
    holds("x", "one");
    MRT_OK(mri_output_commit(o, NULL, NULL, &err), &err);
    mri_output_close(o, false);
    holds("x", "two!");
    MRT_OK(mri_output_open(&o, at("x"), &force, &err), &err);
    mri_output_close(o, false); /* given up */
    holds("x", "two!");
    MRT_EQ(file_count(), 1);
    mri_output_close(NULL, false);
    MRT_OK(mri_output_remove(at("x"), NULL, &err), &err);
    MRT_OK(mri_output_remove(at("x"), NULL, &err), &err);
    MRT_EQ(file_count(), 0);
}

static void goes_on(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_output *o;
    MRT_OK(mri_output_open(&o, at("x"), NULL, &err), &err);
    MRT_EQ(write(mri_output_fd(o), "abc", 3), 3);
    MRT_OK(mri_output_sync(o, &err), &err);
    mri_output_close(o, true);
    holds("x.part", "abc");
    MRT_TRUE(!is_there("x"));
    MRT_OK(mri_output_open(&o, at("x"), &resume, &err), &err);
    MRT_EQ(lseek(mri_output_fd(o), 0, SEEK_END), 3);
    FILE *f = mri_output_stream(o, &err);
    assert_non_null(f);
    MRT_TRUE(fputs("def", f) >= 0);
    MRT_OK(mri_output_commit(o, NULL, NULL, &err), &err);
    mri_output_close(o, true);
    holds("x", "abcdef");
    MRT_OK(mri_output_open(&o, at("y"), NULL, &err), &err);
    MRT_EQ(write(mri_output_fd(o), "left", 4), 4);
    mri_output_close(o, true);
    MRT_OK(write_it("y", "new", NULL, &err), &err); /* without resume it begins empty */
    holds("y", "new");
    MRT_EQ(file_count(), 2);
}

/* A part file of ours is known by its mark. Others are not overwritten and not removed unasked, whatever they
 * hold. */
static void of_other_origin(void **state)
{
    (void)state;
    const mri_output_rules take = {.take_part = true};
    mr_error err = MR_ERROR_INIT;
    mri_output *o;
    struct stat st;
    put("x.part", "a download");
    refused("x", NULL, MR_EEXIST, "no interrupted run left this file: move it, or force");
    refused("x", &force, MR_EEXIST, "no interrupted run left this file"); /* x may be replaced, this not */
    MRT_EQ(mri_output_check(at("x"), &force, &err), MR_EEXIST);
    MRT_EQ(write_it("x", "new", &resume, &err), MR_EEXIST);
    MRT_OK(mri_output_open(&o, at("x"), &resume, &err), &err); /* a caller that resumes inspects the
                                                                * contents */
    MRT_EQ(mri_output_empty(o, &err), MR_EEXIST);
    mri_output_close(o, false);
    holds("x.part", "a download");
    MRT_OK(mri_output_open(&o, at("x"), &resume, &err), &err);
    mri_output_adopt(o);
    mri_output_close(o, true);
    MRT_OK(write_it("x", "new", NULL, &err), &err);
    holds("x", "new");
    MRT_EQ(stat(at("x"), &st), 0);
    MRT_EQ(st.st_mode & 07000, 0); /* the mark goes when the name comes */
    put("y.part", "a download");
    MRT_OK(write_it("y", "new", &take, &err), &err);
    holds("y", "new");
    put("z.part", ""); /* nothing to lose */
    MRT_OK(mri_output_check(at("z"), NULL, &err), &err);
    MRT_OK(write_it("z", "new", NULL, &err), &err);
    MRT_EQ(file_count(), 3);
}

static int reads_back(void *context, int fd, const char *part, mr_error *err)
{
    char text[8] = "";
    MRT_EQ(pread(fd, text, sizeof text, 0), 4);
    MRT_STR(text, "good");
    MRT_STR(part, at("x.part"));
    MRT_TRUE(access(at("x"), F_OK) != 0);
    return *(int *)context ? mr_error_set(err, MR_ECHECKSUM, "other bytes than written") : MR_OK;
}

static void read_back_before_it_has_its_name(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_output *o;
    for (int bad = 1; bad >= 0; bad--) {
        MRT_OK(mri_output_open(&o, at("x"), NULL, &err), &err);
        MRT_EQ(write(mri_output_fd(o), "good", 4), 4);
        MRT_EQ(mri_output_commit(o, reads_back, &bad, &err), bad ? MR_ECHECKSUM : MR_OK);
        mri_output_close(o, false);
        MRT_EQ(is_there("x"), !bad);
        MRT_TRUE(!is_there("x.part"));
    }
}

static void nothing_but_files(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    put("victim", "precious");
    MRT_EQ(symlink("victim", at("link")), 0);
    MRT_EQ(symlink("nowhere", at("dangling")), 0);
    MRT_EQ(mkfifo(at("pipe"), 0600), 0);
    mrt_mkdir(at("folder"));
    static const char *const names[] = {"link", "dangling", "pipe", "folder"};
    for (size_t k = 0; k < 4; k++) {
        refused(names[k], &force_resume, MR_EINVAL, k == 3 ? "a folder is there" : "link, device, pipe");
        MRT_EQ(mri_output_remove(at(names[k]), &force, &err), MR_EINVAL);
        char part[64]; /* and under the part file's name */
        snprintf(part, sizeof part, "at-%s.part", names[k]);
        MRT_EQ(rename(at(names[k]), at(part)), 0);
        snprintf(part, sizeof part, "at-%s", names[k]);
        refused(part, &resume, MR_EINVAL, "expected a file or nothing there");
        refused(part, NULL, MR_EINVAL, "expected a file or nothing there");
        MRT_EQ(mri_output_check(at(part), NULL, &err), MR_EINVAL);
        mri_output *o;
        snprintf(part, sizeof part, "at-%s.part", names[k]);
        MRT_EQ(mri_output_open_log(&o, at(part), &resume, &err), MR_EINVAL);
    }
    holds("victim", "precious");
    MRT_TRUE(!is_there("nowhere"));
    MRT_EQ(file_count(), 5);
    if (geteuid() != 0) return;
    MRT_EQ(mknod(at("device"), S_IFCHR | 0600, makedev(1, 3)), 0);
    refused("device", &force, MR_EINVAL, "link, device, pipe");
    MRT_EQ(rename(at("device"), at("d.part")), 0);
    refused("d", &force, MR_EINVAL, "expected a file or nothing there");
}

/* A part file that is a second name of something: writing it would change that. */
static void no_second_names(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    put("victim", "precious");
    MRT_EQ(link(at("victim"), at("x.part")), 0);
    refused("x", NULL, MR_EINVAL, "other names");
    refused("x", &force_resume, MR_EINVAL, "other names");
    holds("victim", "precious");
    MRT_EQ(unlink(at("x.part")), 0);
    /* but a run killed between link() and unlink() leaves both names of one file */
    MRT_EQ(link(at("victim"), at("victim.part")), 0);
    mri_output *o;
    MRT_OK(mri_output_open(&o, at("victim"), &force, &err), &err);
    holds("victim", "precious");
    MRT_EQ(write(mri_output_fd(o), "new", 3), 3);
    MRT_OK(mri_output_commit(o, NULL, NULL, &err), &err);
    mri_output_close(o, false);
    holds("victim", "new");
    MRT_EQ(file_count(), 1);
}

static const char *is_input(const void *context, const struct stat *st)
{
    struct stat in;
    return stat(context, &in) == 0 && in.st_ino == st->st_ino && in.st_dev == st->st_dev ? context : NULL;
}

static void never_an_input(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    put("in", "input");
    char input[512];
    snprintf(input, sizeof input, "%s", at("in"));
    const mri_output_rules rules = {.force = true, .resume = true, .input = is_input, .context = input};
    MRT_EQ(link(input, at("hard")), 0);
    refused("in", &rules, MR_EINVAL, "also the input");
    refused("hard", &rules, MR_EINVAL, "also the input");
    MRT_EQ(mri_output_check(at("hard"), &rules, &err), MR_EINVAL);
    MRT_EQ(mri_output_remove(at("hard"), &rules, &err), MR_EINVAL);
    MRT_EQ(unlink(at("hard")), 0);
    MRT_EQ(rename(input, at("x.part")), 0);
    snprintf(input, sizeof input, "%s", at("x.part"));
    refused("x", &rules, MR_EINVAL, "also the input");
    mri_output *o;
    MRT_EQ(mri_output_open_log(&o, at("x.part"), &rules, &err), MR_EINVAL);
    holds("x.part", "input");
    /* one that takes the output's name while it is written */
    MRT_OK(mri_output_open(&o, at("y"), &rules, &err), &err);
    MRT_EQ(rename(input, at("y")), 0);
    snprintf(input, sizeof input, "%s", at("y"));
    MRT_EQ(mri_output_commit(o, NULL, NULL, &err), MR_EINVAL);
    mri_output_close(o, false);
    holds("y", "input");
    MRT_EQ(file_count(), 1);
}

static void of_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("SKIP: another user's part file (only root can make one)\n");
        return;
    }
    put("x.part", "planted");
    MRT_EQ(chown(at("x.part"), 12345, (gid_t)-1), 0);
    refused("x", NULL, MR_EEXIST, "another user's (number 12345)");
    refused("x", &force_resume, MR_EEXIST, "another user's");
    holds("x.part", "planted");
}

static void made_since(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    for (int way = 0; way < 3; way++) {
        no_noreplace = way > 0;
        no_link = way > 1;
        mri_output *o;
        MRT_OK(mri_output_open(&o, at("x"), NULL, &err), &err);
        MRT_EQ(write(mri_output_fd(o), "mine", 4), 4);
        put("x", "theirs");
        MRT_EQ(mri_output_commit(o, NULL, NULL, &err), MR_EEXIST);
        mri_output_close(o, false);
        holds("x", "theirs");
        MRT_EQ(unlink(at("x")), 0);
        MRT_OK(write_it("x", "mine", NULL, &err), &err);
        holds("x", "mine");
        MRT_EQ(file_count(), 1);
        MRT_EQ(unlink(at("x")), 0);
    }
}

/* What cannot be looked at is neither there, nor missing, nor replaced by somebody. */
static void looks_that_fail(void **state)
{
    (void)state;
    mri_output *o;
    no_noreplace = no_link = true; /* the way with the most of them */
    for (int n = 0, rc = MR_EIO; rc != MR_OK; n++) {
        mr_error err = MR_ERROR_INIT;
        MRT_OK(mri_output_open(&o, at("x"), NULL, &err), &err);
        looks_left = n;
        rc = mri_output_commit(o, NULL, NULL, &err);
        looks_left = -1;
        mri_output_close(o, false);
        if (rc == MR_OK) MRT_EQ(n, 3);
        else MRT_EQ(rc, MR_EIO);
        if (rc) MRT_HAS(err.text, "Input/output error");
        MRT_EQ(file_count(), rc == MR_OK);
    }
    for (int n = 0, rc = MR_EIO; rc != MR_OK; n++) {
        mr_error err = MR_ERROR_INIT;
        looks_left = n;
        rc = mri_output_open(&o, at("y"), NULL, &err);
        looks_left = -1;
        if (rc) MRT_HAS(err.text, "Input/output error");
        else mri_output_close(o, false);
        MRT_EQ(file_count(), 1);
    }
    mr_error err = MR_ERROR_INIT;
    put("log", "a line\n");
    looks_left = 0;
    MRT_EQ(mri_output_open_log(&o, at("log"), NULL, &err), MR_EIO);
    looks_left = -1;
    holds("log", "a line\n");
}

static void replaced_while_written(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_output *o;
    MRT_OK(mri_output_open(&o, at("x"), NULL, &err), &err);
    MRT_EQ(unlink(at("x.part")), 0);
    put("x.part", "theirs");
    MRT_EQ(mri_output_commit(o, NULL, NULL, &err), MR_EEXIST);
    MRT_HAS(err.text, "removed or replaced");
    mri_output_close(o, false);
    holds("x.part", "theirs"); /* not ours: it stays */
    MRT_TRUE(!is_there("x"));
}

static void one_writer(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_output *o;
    MRT_OK(mri_output_open(&o, at("x"), NULL, &err), &err);
    MRT_EQ(write(mri_output_fd(o), "mine", 4), 4);
    refused("x", NULL, MR_EEXIST, "another process is writing it");
    refused("x", &resume, MR_EEXIST, "another process is writing it");
    holds("x.part", "mine");
    mri_output_close(o, false);
    MRT_EQ(file_count(), 0);
    no_flock = true; /* a file system without locks: a file made by us is ours, an existing one is doubtful */
    MRT_OK(write_it("x", "mine", NULL, &err), &err);
    put("y.part", "whose?");
    refused("y", &resume, MR_EIO, "cannot lock");
}

/* Many processes at once write one path with force: whole files by one of them at any moment. */
static void race(void **state)
{
    (void)state;
    enum { WRITERS = 4, ROUNDS = 60, BYTES = 20000 };
    pid_t pid[WRITERS];
    put("x", "");
    for (int w = 0; w < WRITERS; w++) {
        pid[w] = fork();
        MRT_TRUE(pid[w] >= 0);
        if (pid[w] > 0) continue;
        int failures = 0, done = 0;
        char data[BYTES];
        memset(data, 'a' + w, sizeof data);
        for (int k = 0; k < ROUNDS; k++) {
            const int rc = mri_output_write_whole(at("x"), data, sizeof data, &force, NULL);
            done += rc == MR_OK;
            failures += rc != MR_OK && rc != MR_EEXIST;
        }
        _exit(failures ? 1 : done ? 0 : 2);
    }
    for (int running = WRITERS; running > 0;) {
        int status;
        size_t bytes;
        const pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended > 0) {
            running--;
            MRT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 1);
        }
        char *found = mrt_read_file(at("x"), &bytes);
        MRT_TRUE(bytes == 0 || bytes == BYTES);
        MRT_TRUE(bytes == 0 || memcmp(found, found + 1, bytes - 1) == 0); /* all bytes are the first */
        free(found);
    }
    MRT_EQ(file_count(), 1);
}

/* The same without force: exactly one wins, and its bytes stay. */
static void race_to_be_first(void **state)
{
    (void)state;
    enum { WRITERS = 4, ROUNDS = MRT_SANITIZED ? 12 : 40 };
    for (int k = 0; k < ROUNDS; k++) {
        pid_t pid[WRITERS];
        char name[16];
        int won = 0;
        snprintf(name, sizeof name, "r%d", k);
        for (int w = 0; w < WRITERS; w++) {
            pid[w] = fork();
            if (pid[w] == 0) {
                const char text[2] = {(char)('a' + w), '\0'};
                const int rc = write_it(name, text, NULL, NULL);
                _exit(rc == MR_OK ? 1 : rc == MR_EEXIST ? 0 : 2);
            }
        }
        int winner = 0;
        for (int w = 0; w < WRITERS; w++) {
            int status;
            MRT_EQ(waitpid(pid[w], &status, 0), pid[w]);
            MRT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 2);
            if (WEXITSTATUS(status) == 1) won++, winner = w;
        }
        MRT_EQ(won, 1);
        const char text[2] = {(char)('a' + winner), '\0'};
        holds(name, text);
    }
    MRT_EQ(file_count(), ROUNDS);
}

static void what_fails_leaves_nothing(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    put("x", "old");
    no_sync = true;
    MRT_EQ(write_it("x", "new", &force, &err), MR_EIO);
    MRT_HAS(err.text, "cannot sync");
    no_sync = false;
    holds("x", "old");
    MRT_EQ(file_count(), 1);
    for (long n = 0;; n++) { /* each allocation in turn */
        mrt_fail_alloc_at(n);
        const int rc = write_it("x", "new", &force, &err);
        const int failed = mrt_alloc_failed();
        mrt_fail_alloc_at(-1);
        if (!failed) {
            MRT_OK(rc, &err);
            break;
        }
        MRT_EQ(rc, MR_ENOMEM);
        holds("x", "old");
        MRT_EQ(file_count(), 1);
    }
    holds("x", "new");
    mri_output *o;
    MRT_EQ(mri_output_open(&o, at("no/where"), NULL, &err), MR_ENOENT);
    MRT_EQ(mri_output_open(&o, at("x/y"), NULL, &err), MR_EIO);
    MRT_EQ(write_it("x/y", "z", NULL, &err), MR_EIO);
    if (access("/dev/full", W_OK) != 0) return;
    MRT_OK(mri_output_open(&o, at("y"), NULL, &err), &err); /* a stream that could not be written */
    FILE *f = mri_output_stream(o, &err);
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    MRT_TRUE(f && dup2(full, fileno(f)) >= 0);
    MRT_TRUE(fputs("lost", f) >= 0);
    MRT_EQ(mri_output_commit(o, NULL, NULL, &err), MR_EIO);
    mri_output_close(o, false);
    close(full);
    MRT_EQ(file_count(), 1);
}

static void logs(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mri_output *o, *second;
    MRT_OK(mri_output_open_log(&o, at("log"), NULL, &err), &err);
    MRT_EQ(write(mri_output_fd(o), "one\n", 4), 4);
    holds("log", "one\n");
    MRT_EQ(mri_output_open_log(&second, at("log"), &resume, &err), MR_EEXIST); /* another writes it */
    mri_output_close(o, false);                                                /* never removed */
    MRT_EQ(mri_output_open_log(&o, at("log"), NULL, &err), MR_EEXIST);
    MRT_OK(mri_output_open_log(&o, at("log"), &resume, &err), &err);
    MRT_EQ(write(mri_output_fd(o), "two\n", 4), 4);
    MRT_OK(mri_output_commit(o, NULL, NULL, &err), &err);
    mri_output_close(o, false);
    holds("log", "one\ntwo\n");
    MRT_EQ(file_count(), 1);
}

static void spills(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    for (int named = 0; named < 2; named++) {
        int fd;
        char back[4] = "";
        no_tmpfile = named;
        MRT_OK(mri_output_spill(&fd, at("x.mrec"), &err), &err);
        MRT_EQ(write(fd, "abc", 3), 3);
        MRT_EQ(pread(fd, back, 3, 0), 3);
        MRT_STR(back, "abc");
        MRT_EQ(file_count(), 0); /* nothing has a name */
        close(fd);
        MRT_EQ(mri_output_spill(&fd, at("no/where"), &err), MR_ENOENT);
        MRT_EQ(fd, -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(whole_or_not_at_all, set_up),
        cmocka_unit_test_setup(goes_on, set_up),
        cmocka_unit_test_setup(of_other_origin, set_up),
        cmocka_unit_test_setup(read_back_before_it_has_its_name, set_up),
        cmocka_unit_test_setup(nothing_but_files, set_up),
        cmocka_unit_test_setup(no_second_names, set_up),
        cmocka_unit_test_setup(looks_that_fail, set_up),
        cmocka_unit_test_setup(never_an_input, set_up),
        cmocka_unit_test_setup(of_another_user, set_up),
        cmocka_unit_test_setup(made_since, set_up),
        cmocka_unit_test_setup(replaced_while_written, set_up),
        cmocka_unit_test_setup(one_writer, set_up),
        cmocka_unit_test_setup(race, set_up),
        cmocka_unit_test_setup(race_to_be_first, set_up),
        cmocka_unit_test_setup(what_fails_leaves_nothing, set_up),
        cmocka_unit_test_setup(logs, set_up),
        cmocka_unit_test_setup(spills, set_up),
    };
    return mrt_run(tests);
}
