/* tests/run/test_report.c: pages of runs, data sets and networks; sweeps. Their texts are compared by the
 * tests of the command. */
#include <math.h>
#include <stdlib.h>

#include "millrace/run.h"
#include "mrt.h"

#define START(data) "{\"event\": \"start\", \"seed\": 7, \"data\": \"" data "\", \"augment\": \"none\"}\n"
#define EPOCH       "{\"event\": \"epoch\", \"epoch\": 0, \"loss\": 1.5, \"samples_per_s\": 1234567}\n"
#define TRAINED                                                                                              \
    "{\"event\": \"train\", \"complete\": true, \"epochs\": 1, \"total_seconds\": 2, \"accuracy\": 0.5, "    \
    "\"samples_per_s\": 10, \"weights\": \"abc\"}\n"
#define PROFILED "{\"event\": \"profile_run\", \"prefetch\": 0}\n{\"event\": \"profile\"}\n"

static mr_error err = MR_ERROR_INIT;

static const char *in_temp(const char *name)
{
    static char path[4][512];
    static int turn;
    char *at = path[turn = (turn + 1) % 4];
    snprintf(at, sizeof path[0], "%s/%s", mrt_temp(), name);
    return at;
}

static void write_text(const char *path, const char *text)
{
    mr_output_config force;
    mr_output_defaults(&force);
    force.force = true;
    MRT_OK(mr_output_whole(path, text, strlen(text), &force, &err), &err);
}

static const char *text_of(const char *path)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    MRT_TRUE(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void on_note(void *context, const char *text) { snprintf(context, 256, "%s", text); }

static void a_page_is_made_of_logs(void **state)
{
    (void)state;
    mr_run_page *p;
    mr_run_page_config cfg;
    char note[256] = "";
    const char *page = in_temp("page.html"), *log = in_temp("log.jsonl");
    mr_run_page_defaults(&cfg);
    cfg.on_note = on_note;
    cfg.context = note;
    MRT_OK(mr_run_page_open(&p, &cfg, &err), &err);
    MRT_EQ(mr_run_page_write(p, page, false, &err), MR_EINVAL); /* no run */
    MRT_TRUE(!mr_run_page_data(p));
    write_text(log, START("first") START("here") EPOCH "no JSON\n" TRAINED "{\"event\": \"ep");
    MRT_OK(mr_run_page_add(p, log, &err), &err);
    MRT_HAS(note, "the last line is cut off");
    assert_string_equal(mr_run_page_data(p), "here"); /* the last run of the file */
    MRT_OK(mr_run_page_add_text(p, "other", START("there") EPOCH, sizeof START("there") EPOCH - 1, &err),
           &err);
    MRT_EQ(mr_run_page_add(p, log, &err), MR_EINVAL); /* a third */
    MRT_EQ(mr_run_page_trace_file(p, log, &err), MR_EFORMAT);
    MRT_EQ(mr_run_page_bad_list(p, log, &err), MR_EFORMAT);
    MRT_OK(mr_run_page_write(p, page, false, &err), &err);
    MRT_HAS(text_of(page), "Two runs of millrace");
    MRT_HAS(text_of(page), "1,234,567");
    MRT_TRUE(mr_page_may_replace(page) && !mr_page_may_replace(log) && mr_page_may_replace(in_temp("none")));
    MRT_OK(mr_run_page_write(p, page, false, &err), &err); /* over a page */
    MRT_EQ(mr_run_page_write(p, log, false, &err), MR_EEXIST);
    MRT_OK(mr_run_page_write(p, log, true, &err), &err);
    mr_run_page_close(p);
}

static void runs_of_two_kinds_are_refused(void **state)
{
    (void)state;
    mr_run_page *p;
    MRT_OK(mr_run_page_open(&p, NULL, &err), &err);
    MRT_EQ(mr_run_page_add_text(p, "empty", "", 0, &err), MR_EFORMAT);
    mr_run_page_close(p);
    MRT_OK(mr_run_page_open(&p, NULL, &err), &err);
    MRT_OK(mr_run_page_add_text(p, "a", PROFILED, sizeof PROFILED - 1, &err), &err);
    MRT_EQ(mr_run_page_add_text(p, "b", START("x"), sizeof START("x") - 1, &err), MR_EINVAL);
    MRT_HAS(err.text, "a and b: one is of train");
    mr_run_page_close(p);
}

static void a_network_is_drawn(void **state)
{
    (void)state;
    mr_net *net;
    const char *path = in_temp("net.svg");
    MRT_OK(mr_model_build(mr_model_find("cifar-cnn"), 0, 0, 0, 0, &net, &err), &err);
    MRT_OK(mr_net_graph_write(net, path, false, &err), &err);
    MRT_HAS(text_of(path), "conv2d");
    MRT_EQ(mr_net_graph_write(net, path, false, &err), MR_EEXIST);
    MRT_OK(mr_net_graph_write(net, path, true, &err), &err);
    mr_net_destroy(net);
}

static void a_sweep_has_runs(void **state)
{
    (void)state;
    mr_sweep *s;
    mr_sweep_result r;
    uint32_t values;
    char name[MR_SWEEP_NAME_BYTES];
    const char *file = in_temp("sweep.txt"), *log = in_temp("run.jsonl"), *out = in_temp("results.csv");
    write_text(file,
               "data = set\nmodel = a\n\n# words\ndevices = cpu:1 | cpu:2\nname = {run} | -\nflag = +\n");
    MRT_OK(mr_sweep_open(&s, file, &err), &err);
    MRT_EQ(mr_sweep_info_of(s)->runs, 4);
    MRT_EQ(mr_sweep_info_of(s)->options, 4);
    assert_string_equal(mr_sweep_info_of(s)->data, "set");
    MRT_EQ(mr_sweep_option_number(s, "name"), 2);
    assert_string_equal(mr_sweep_option(s, 1, &values), "devices");
    MRT_EQ(values, 2);
    MRT_TRUE(!mr_sweep_option(s, 4, &values) && !mr_sweep_value(s, 4, 0) && !mr_sweep_value(s, 0, 4));
    assert_string_equal(mr_sweep_value(s, 2, 1), "cpu:2"); /* the last option changes fastest */
    char **words = mr_sweep_words(s, 2, "millrace");
    const char *const wanted[] = {"millrace", "train",  "set",
                                  "--model",  "a",      "--devices",
                                  "cpu:2",    "--name", mr_sweep_run_name(s, 2, name),
                                  "--flag",   "--json", "--quiet"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) assert_string_equal(words[i], wanted[i]);
    MRT_TRUE(!words[sizeof wanted / sizeof *wanted]);
    free(words);
    write_text(log, START("set") EPOCH TRAINED);
    MRT_OK(mr_sweep_read_result(s, 0, log, &err), &err);
    MRT_OK(mr_sweep_read_result(s, 2, log, &err), &err);
    MRT_OK(mr_sweep_read_result(s, 1, in_temp("missing"), &err), &err);
    MRT_OK(mr_sweep_set_failed(s, 3, 1, &err), &err);
    MRT_EQ(mr_sweep_read_result(s, 4, log, &err), MR_EINVAL);
    MRT_OK(mr_sweep_result_of(s, 2, &r, &err), &err);
    MRT_TRUE(r.state == MR_SWEEP_DONE && r.speed_up == 1 && r.accuracy == 0.5 && isnan(r.loss));
    MRT_OK(mr_sweep_result_of(s, 1, &r, &err), &err);
    MRT_TRUE(r.state == MR_SWEEP_OPEN && isnan(r.seconds) && isnan(r.speed_up));
    MRT_OK(mr_sweep_write_csv(s, out, &err), &err);
    MRT_HAS(text_of(out), "run,model,devices,name,flag,state,epochs_done,acc");
    MRT_HAS(text_of(out), ",a,cpu:2,{run},+,done,1,0.5,,,,2,10,1,abc\n");
    MRT_HAS(text_of(out), ",a,cpu:2,-,+,failed,");
    MRT_OK(mr_sweep_write_page(s, 1, out, &err), &err);
    MRT_HAS(text_of(out), "4 runs, 2 done, 1 failed, 1 open");
    MRT_EQ(mr_sweep_write_page(s, 4, out, &err), MR_EINVAL);
    mr_sweep_close(s);
    write_text(file, "data = set\nmodel = a |\n");
    MRT_EQ(mr_sweep_open(&s, file, NULL), MR_EFORMAT);
    MRT_EQ(mr_sweep_open(&s, file, &err), MR_EFORMAT);
    MRT_HAS(err.text, "line 2: 'model' has an empty value");
    MRT_TRUE(!s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_made_of_logs),
        cmocka_unit_test(runs_of_two_kinds_are_refused),
        cmocka_unit_test(a_network_is_drawn),
        cmocka_unit_test(a_sweep_has_runs),
    };
    return mrt_run(tests);
}
