/* The trace: a bounded ring, and a file that Chrome's trace viewer reads. */
#include <cjson/cJSON.h>
#include <pthread.h>

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
        cmocka_unit_test(written_while_it_grows),
        cmocka_unit_test(unwritable_place_is_reported),
    };
    return mrt_run(tests);
}
