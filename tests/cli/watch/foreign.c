/* tests/cli/watch/foreign.c: what tools/foreign/ reads from /proc and from control groups, on folders made by
 * hand: names with brackets, texts that are cut, both versions of control groups, processes and threads that
 * come and go between two looks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mrt.h"
#include "tools/foreign/machine.h"
#include "tools/foreign/proc_file.h"
#include "tools/foreign/tree.h"

static char root[64];

/* The file root/path with its folders. */
static void put(const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }
    FILE *f = fopen(full, "w");
    MRT_TRUE(f != NULL);
    fputs(text, f);
    fclose(f);
}

static void drop(const char *path)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf '%s/%s'", root, path);
    MRT_EQ(system(command), 0);
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/millrace-foreign-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int drop_root(void **state)
{
    (void)state;
    drop("");
    return 0;
}

static void stat_text(char *out, size_t bytes, int pid, const char *name, char state, int parent, int user,
                      int waited)
{
    snprintf(out, bytes,
             "%d (%s) %c %d 1 1 0 -1 4194304 100 0 3 4 %d 20 7 8 20 0 2 0 555 4096 25 18446744073709551615 "
             "1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 %d 0 0\n",
             pid, name, state, parent, user, waited);
}

static void stat_is_parsed(void **state)
{
    (void)state;
    char text[512];
    proc_stat s;
    stat_text(text, sizeof text, 42, "a) R 1 (b", 'D', 7, 10, 99);
    MRT_TRUE(proc_parse_stat(text, &s));
    MRT_EQ(s.pid, 42);
    MRT_STR(s.name, "a) R 1 (b");
    MRT_EQ(s.state, 'D');
    MRT_EQ(s.parent, 7);
    MRT_EQ(s.major_faults, 3);
    MRT_EQ(s.user_ticks, 10);
    MRT_EQ(s.system_ticks, 20);
    MRT_EQ(s.child_system_ticks, 8);
    MRT_EQ(s.threads, 2);
    MRT_EQ(s.start_ticks, 555);
    MRT_EQ(s.rss_pages, 25);
    MRT_EQ(s.disk_ticks, 99);
    for (size_t n = 0; n < 60; n++) { /* cut: refused, without reading past its end */
        char *cut = strndup(text, n);
        MRT_TRUE(!proc_parse_stat(cut, &s));
        free(cut);
    }
}

static void lines_are_found(void **state)
{
    (void)state;
    uint64_t n = 0;
    MRT_TRUE(proc_find("xrchar: 1\nrchar: 23\n", "rchar", &n));
    MRT_EQ(n, 23);
    MRT_TRUE(!proc_find("rchars: 1\n", "rchar", &n));
    MRT_TRUE(!proc_find("rchar: \n", "rchar", &n));
    const char *pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=1.00 total=5\n";
    MRT_TRUE(proc_parse_pressure(pressure, "some", &n));
    MRT_EQ(n, 12);
    MRT_TRUE(proc_parse_pressure(pressure, "full", &n));
    MRT_EQ(n, 5);
    MRT_TRUE(!proc_parse_pressure("some avg10=0.00\nfull total=5\n", "some", &n));
}

static void group_of_version_2(void **state)
{
    (void)state;
    machine_counters a, b;
    machine_figures f;
    put("proc/self/cgroup", "0::/jobs/mine\n");
    put("sys/fs/cgroup/jobs/mine/cpu.stat", "usage_usec 5\nnr_throttled 2\nthrottled_usec 1000\n");
    put("sys/fs/cgroup/jobs/mine/cpu.pressure", "some total=1000000\nfull total=0\n");
    put("sys/fs/cgroup/jobs/mine/io.pressure", "some total=2000000\nfull total=500000\n");
    put("proc/pressure/cpu", "some total=7\n");
    put("proc/pressure/io", "some total=7\nfull total=7\n");
    machine_read(root, &a);
    MRT_TRUE(a.group);
    put("sys/fs/cgroup/jobs/mine/cpu.stat", "usage_usec 5\nthrottled_usec 2501000\n");
    put("sys/fs/cgroup/jobs/mine/io.pressure", "some total=4000000\nfull total=1500000\n");
    machine_read(root, &b);
    machine_since(&a, &b, 4, &f);
    MRT_TRUE(f.has_pressure && f.group && f.has_quota);
    MRT_TRUE(f.cpu_some < 1e-9 && f.io_some > 0.499 && f.io_some < 0.501 && f.io_full > 0.249 &&
             f.io_full < 0.251);
    MRT_TRUE(f.throttled_s > 2.499 && f.throttled_s < 2.501);
    machine_since(&b, &a, 4, &f); /* counters never fall; nothing is made of it if they do */
    MRT_TRUE(f.io_some < 1e-9 && f.throttled_s < 1e-9);
}

static void group_of_version_1(void **state)
{
    (void)state;
    machine_counters a;
    put("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/c\n1:name=systemd:/\n");
    put("sys/fs/cgroup/cpu,cpuacct/c/cpu.stat", "nr_periods 1\nthrottled_time 77\n");
    put("proc/pressure/cpu", "some total=7\n");
    put("proc/pressure/io", "some total=8\nfull total=9\n");
    machine_read(root, &a);
    MRT_TRUE(a.has_quota && a.has_pressure && !a.group);
    MRT_EQ(a.throttled_ns, 77);
    MRT_EQ(a.io_full_us, 9);
}

static void nothing_there(void **state)
{
    (void)state;
    machine_counters a;
    machine_figures f;
    machine_read(root, &a);
    MRT_TRUE(!a.has_quota && !a.has_pressure);
    machine_since(&a, &a, 1, &f);
    MRT_TRUE(!f.has_quota && !f.has_pressure);
}

/* A process with one thread. */
static void put_process(int pid, int parent, char state, int user, int waited, const char *schedstat)
{
    char path[64], text[512];
    stat_text(text, sizeof text, pid, "worker", state, parent, user, waited);
    snprintf(path, sizeof path, "proc/%d/stat", pid);
    put(path, text);
    snprintf(path, sizeof path, "proc/%d/io", pid);
    put(path, "rchar: 100\nwchar: 1\nread_bytes: 40\n");
    snprintf(path, sizeof path, "proc/%d/task/%d/stat", pid, pid);
    put(path, text);
    snprintf(path, sizeof path, "proc/%d/task/%d/schedstat", pid, pid);
    put(path, schedstat);
}

static void tree_of_processes(void **state)
{
    (void)state;
    uint32_t count;
    tree_figures f;
    tree_used used;
    tree *t = tree_create(root, 10);
    put_process(11, 10, 'S', 100, 0, "5 1000000000 1\n");
    put_process(12, 11, 'D', 100, 50, "5 0 1\n");
    put_process(13, 1, 'D', 100, 50, "5 1000000000 1\n");  /* not of it */
    put_process(20, 21, 'R', 100, 50, "5 1000000000 1\n"); /* a circle */
    put_process(21, 20, 'R', 100, 50, "5 1000000000 1\n");
    tree_look(t);
    tree_pids(t, &count);
    MRT_EQ(count, 2);
    tree_living(t, &used);
    MRT_EQ(used.read_calls, 200);
    MRT_EQ(used.storage, 80);
    tree_mark(t);
    drop("proc/11"); /* it ended: 12 is ours now */
    put_process(12, 10, 'S', 150, 80, "5 2000000000 1\n");
    put_process(14, 12, 'S', 10, 0, "5 500000000 1\n");
    tree_look(t);
    tree_take(t, &f);
    tree_destroy(t);
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    MRT_EQ(f.count, 3);
    MRT_EQ(f.alive, 2);
    MRT_EQ(f.looks, 1);
    MRT_TRUE(f.any_waiting < 1e-9);
    MRT_TRUE(f.core_wait_s > 2.499 && f.core_wait_s < 2.501);
    MRT_TRUE(f.disk_wait_s > 29.9 * tick && f.disk_wait_s < 30.1 * tick);
    MRT_TRUE(f.cpu_s > 79.9 * tick && f.cpu_s < 80.1 * tick); /* 50 of 12; 10 and 20 of 14 */
    free(f.process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stat_is_parsed),
        cmocka_unit_test(lines_are_found),
        cmocka_unit_test_setup_teardown(group_of_version_2, make_root, drop_root),
        cmocka_unit_test_setup_teardown(group_of_version_1, make_root, drop_root),
        cmocka_unit_test_setup_teardown(nothing_there, make_root, drop_root),
        cmocka_unit_test_setup_teardown(tree_of_processes, make_root, drop_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
