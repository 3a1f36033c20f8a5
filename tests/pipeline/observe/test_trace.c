/* The trace: a bounded ring, and a file that Chrome's trace viewer reads. */
#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "millrace/pipeline.h"
#include "mrt.h"

static void ring_keeps_the_newest(void **state)
{
    (void)state;
    mr_trace *t;
    MRT_EQ(mr_trace_create(&t, 4), MR_OK);
    for (uint64_t i = 0; i < 10; i++) mr_trace_span(t, "a", "x", i, i + 1, i);
    mr_trace_entry *e;
    size_t n;
    MRT_EQ(mr_trace_entries(t, &e, &n), MR_OK);
    MRT_EQ(n, 4);
    for (size_t i = 0; i < n; i++) MRT_EQ(e[i].batch, 6 + i);
    free(e);
    mr_trace_destroy(t);
}

static void file_is_valid_json(void **state)
{
    (void)state;
    mr_trace *t;
    MRT_EQ(mr_trace_create(&t, 100), MR_OK);
    mr_trace_span(t, "worker \"1\"", "decode", 1000500, 2000500, 3);
    mr_trace_span(t, "copy cpu:0", "copy", 1500000, 2500000, 3);
    mr_error err = MR_ERROR_INIT;
    const char *path = mrt_path("trace.json");
    MRT_OK(mr_trace_write(t, path, &err), &err);
    mr_trace_destroy(t);
    char *text = mrt_read_file(path, NULL);
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    const cJSON *events = cJSON_GetObjectItem(root, "traceEvents");
    MRT_EQ(cJSON_GetArraySize(events), 4); /* two tracks' names, two spans */
    const cJSON *span = cJSON_GetArrayItem(events, 2);
    MRT_STR(cJSON_GetObjectItem(span, "ph")->valuestring, "X");
    MRT_TRUE(cJSON_GetObjectItem(span, "dur")->valuedouble == 1000.0);
    MRT_TRUE(cJSON_GetObjectItem(cJSON_GetArrayItem(events, 3), "ts")->valuedouble == 499.5);
    cJSON_Delete(root);
    free(text);
}

static double number_of(const cJSON *o, const char *key)
{
    const cJSON *n = cJSON_GetObjectItem(o, key);
    assert_non_null(n);
    return n->valuedouble;
}

/* Enough to lay the file over what keeps the wall clock: ts + base_ns is CLOCK_MONOTONIC, and the anchors say
 * what that was in CLOCK_REALTIME. */
static void clock_is_told(void **state)
{
    (void)state;
    mr_trace *t;
    MRT_EQ(mr_trace_create(&t, 100), MR_OK);
    mr_trace_span(t, "worker 1", "decode", 5000, 6000, 3);
    mr_trace_span(t, "worker 1", "decode", 4000, 5000, MR_NOWHERE);
    mr_error err = MR_ERROR_INIT;
    const char *path = mrt_path("clock.json");
    MRT_OK(mr_trace_write(t, path, &err), &err);
    mr_trace_destroy(t);
    char *text = mrt_read_file(path, NULL);
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    const cJSON *about = cJSON_GetObjectItem(root, "otherData"), *a = cJSON_GetObjectItem(about, "anchors");
    MRT_STR(cJSON_GetObjectItem(about, "clock")->valuestring, "CLOCK_MONOTONIC");
    MRT_TRUE(number_of(about, "base_ns") == 4000);
    MRT_EQ(cJSON_GetArraySize(a), 2);
    const cJSON *first = cJSON_GetArrayItem(a, 0), *last = cJSON_GetArrayItem(a, 1);
    MRT_TRUE(number_of(first, "monotonic_ns") <= number_of(last, "monotonic_ns"));
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    MRT_TRUE(fabs(number_of(last, "realtime_ns") * 1e-9 - (double)now.tv_sec) < 3600);
    MRT_TRUE(number_of(about, "pid") == (double)getpid());
    /* the track, a span of batch 3, one of none */
    const cJSON *events = cJSON_GetObjectItem(root, "traceEvents");
    MRT_TRUE(number_of(cJSON_GetObjectItem(cJSON_GetArrayItem(events, 1), "args"), "batch") == 3);
    MRT_TRUE(!cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetArrayItem(events, 2), "args"), "batch"));
    cJSON_Delete(root);
    free(text);
}

static void window_keeps_its_batches(void **state)
{
    (void)state;
    mr_trace *t;
    mr_trace_entry *e;
    size_t n;
    MRT_EQ(mr_trace_create(&t, 100), MR_OK);
    mr_trace_keep(t, 4, 3);
    for (uint64_t i = 0; i < 10; i++) mr_trace_span(t, "a", "x", i, i + 1, i);
    mr_trace_span(t, "a", "x", 0, 1, MR_NOWHERE);
    MRT_EQ(mr_trace_entries(t, &e, &n), MR_OK);
    MRT_EQ(n, 3);
    for (size_t i = 0; i < n; i++) MRT_EQ(e[i].batch, 4 + i);
    free(e);
    mr_trace_keep(t, UINT64_MAX - 2, 5); /* to the end of all numbers, and none of no batch */
    mr_trace_span(t, "a", "x", 0, 1, UINT64_MAX - 2);
    mr_trace_span(t, "a", "x", 0, 1, MR_NOWHERE);
    mr_trace_keep(t, 7, 0); /* all */
    mr_trace_span(t, "a", "x", 0, 1, 1);
    mr_trace_span(t, "a", "x", 0, 1, MR_NOWHERE);
    MRT_EQ(mr_trace_entries(t, &e, &n), MR_OK);
    MRT_EQ(n, 6);
    free(e);
    mr_trace_destroy(t);
    mr_trace_keep(NULL, 0, 1);
}

static void *add_spans(void *trace)
{
    char track[16];
    for (uint64_t i = 0; i < 20000; i++) {
        snprintf(track, sizeof track, "track %u", (unsigned)(i / 100));
        mr_trace_span(trace, track, "x", i, i + 1, i);
    }
    return NULL;
}

/* A trace may be written while stages still add to it. */
static void written_while_it_grows(void **state)
{
    (void)state;
    mr_trace *t;
    pthread_t adding;
    MRT_EQ(mr_trace_create(&t, 64), MR_OK);
    MRT_EQ(pthread_create(&adding, NULL, add_spans, t), 0);
    for (int i = 0; i < 20; i++) {
        mr_error err = MR_ERROR_INIT;
        const char *path = mrt_path("growing.json");
        MRT_OK(mr_trace_write(t, path, &err), &err);
        char *text = mrt_read_file(path, NULL);
        cJSON *root = cJSON_Parse(text);
        assert_non_null(root);
        cJSON_Delete(root);
        free(text);
    }
    pthread_join(adding, NULL);
    mr_trace_destroy(t);
}

static mr_trace_part packed(const char *track, const char *name, uint64_t start_ns)
{
    mr_trace *t;
    mr_error err = MR_ERROR_INIT;
    void *pack;
    mr_trace_part part = {.name = name};
    MRT_EQ(mr_trace_create(&t, 10), MR_OK);
    mr_trace_span(t, track, "decode", start_ns, start_ns + 1000, 7);
    mr_trace_span(t, track, "read", start_ns + 2000000000, start_ns + 2000001000, 8);
    mr_trace_span(t, "copy", "decode", start_ns + 1000000000, start_ns + 1000001000, MR_NOWHERE);
    MRT_OK(mr_trace_pack(t, &pack, &part.bytes, &err), &err);
    mr_trace_destroy(t);
    part.pack = pack;
    return part;
}

static const char *name_of(const cJSON *events, int at)
{
    return cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetArrayItem(events, at), "args"), "name")
        ->valuestring;
}

/* Of the second process: a clock 5 s behind at its first second, 5 s and 4 ms at its third. */
static void several_processes_on_one_clock(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    const uint64_t second = 1000000000;
    mr_trace_part parts[2] = {packed("worker 1", "rank 0", 6 * second), packed("worker 1", "rank 1", second)};
    const char *path = mrt_path("parts.json");
    parts[1].at_ns[0] = second;
    parts[1].at_ns[1] = 3 * second;
    parts[1].shift_ns[0] = (int64_t)(5 * second);
    parts[1].shift_ns[1] = (int64_t)(5 * second + 4000000);
    parts[1].within_ns = 12;
    MRT_OK(mr_trace_write_parts(parts, 2, path, &err), &err);
    char *text = mrt_read_file(path, NULL);
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    const cJSON *events = cJSON_GetObjectItem(root, "traceEvents");
    const cJSON *processes = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "otherData"), "processes");
    MRT_EQ(cJSON_GetArraySize(processes), 2);
    MRT_TRUE(number_of(cJSON_GetArrayItem(processes, 1), "within_ns") == 12);
    MRT_EQ(cJSON_GetArraySize(events), 12); /* each: its name, two tracks', three spans */
    MRT_STR(name_of(events, 6), "rank 1");
    MRT_STR(name_of(events, 7), "rank 1 worker 1");
    const double expected_us[] = {0, 2004000, 1002000};
    for (int i = 0; i < 3; i++) {
        const cJSON *e = cJSON_GetArrayItem(events, 9 + i);
        MRT_TRUE(number_of(e, "pid") == 2);
        MRT_TRUE(number_of(e, "tid") == (i == 2 ? 1002 : 1001));
        MRT_TRUE(fabs(number_of(e, "ts") - expected_us[i]) < 0.002);
        MRT_STR(cJSON_GetObjectItem(e, "name")->valuestring, i == 1 ? "read" : "decode");
    }
    cJSON_Delete(root);
    free(text);

    char *bytes = (char *)(uintptr_t)parts[1].pack;
    for (size_t n = 0; n < parts[1].bytes; n++) { /* cut, or a byte of it changed */
        mr_trace_part cut = parts[1];
        cut.bytes = n;
        MRT_EQ(mr_trace_write_parts(&cut, 1, path, &err), MR_EFORMAT);
        bytes[n] ^= 0x55;
        const int rc = mr_trace_write_parts(&parts[1], 1, path, &err);
        MRT_TRUE(rc == MR_OK || rc == MR_EFORMAT);
        bytes[n] ^= 0x55;
    }
    MRT_HAS(err.text, "rank 1");
    MRT_EQ(mr_trace_write_parts(parts, 0, path, &err), MR_EINVAL);
    for (int i = 0; i < 2; i++) free((void *)(uintptr_t)parts[i].pack);
}

static void unwritable_place_is_reported(void **state)
{
    (void)state;
    mr_trace *t;
    MRT_EQ(mr_trace_create(&t, 1), MR_OK);
    mr_error err = MR_ERROR_INIT;
    MRT_EQ(mr_trace_write(t, mrt_path("no/such/folder.json"), &err), MR_ENOENT);
    MRT_HAS(err.file, "folder.json");
    mr_trace_destroy(t);
    mr_trace_span(NULL, "a", "b", 0, 1, 0); /* no trace: nothing happens */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_keeps_the_newest),
        cmocka_unit_test(file_is_valid_json),
        cmocka_unit_test(clock_is_told),
        cmocka_unit_test(window_keeps_its_batches),
        cmocka_unit_test(written_while_it_grows),
        cmocka_unit_test(unwritable_place_is_reported),
        cmocka_unit_test(several_processes_on_one_clock),
    };
    return mrt_run(tests);
}
