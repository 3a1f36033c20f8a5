/* tests/pipeline/export/test_export.c: mr_export() on a source of the program's own: files in a folder for
 * each class, a call that goes on after another, refused calls. */
#include <sys/stat.h>
#include <unistd.h>

#include "millrace/export.h"
#include "mrt.h"

enum { SAMPLES = 12, CLASSES = 4, DAMAGED = 5 };

static const mr_field fields[] = {{.name = "image", .type = MR_TYPE_PIXELS, .ndim = 3, .dim = {2, 2, 1}},
                                  {.name = "label", .type = MR_TYPE_INT}};
static const char *const names[CLASSES] = {"cat", "a/b", "..", "never"};

typedef struct seen {
    uint64_t bad, done, spaces, bytes; /* bytes: that were estimated */
    volatile int stop;
    bool stops;
} seen;

/* The last class has no sample. */
static int fetch(void *context, uint64_t sample, mr_own_sample *to, mr_error *err)
{
    (void)context;
    const uint8_t pixels[4] = {(uint8_t)sample};
    const mr_value values[] = {
        {.type = MR_TYPE_PIXELS, .ndim = 3, .dim = {2, 2, 1}, .data = pixels, .bytes = sizeof pixels},
        {.type = MR_TYPE_INT, .i = (int64_t)(sample % (CLASSES - 1))}};
    if (sample == DAMAGED) return mr_error_set(err, MR_EFORMAT, "damaged");
    return mr_own_sample_give(to, values, err);
}

static mr_source *make_source(uint32_t first_field)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *src;
    mr_own_config cfg;
    mr_own_defaults(&cfg);
    cfg.count = SAMPLES;
    cfg.field_count = 2 - first_field;
    cfg.fields = fields + first_field;
    cfg.class_count = CLASSES;
    cfg.class_names = names;
    cfg.fetch = fetch;
    MRT_OK(mr_source_create(&src, &cfg, &err), &err);
    return src;
}

static void on_bad(void *context, const mr_error *what)
{
    seen *s = context;
    s->bad++;
    MRT_EQ(what->sample, DAMAGED);
    MRT_HAS(what->text, "damaged");
}

static void on_progress(void *context, uint64_t done, uint64_t count)
{
    seen *s = context;
    MRT_EQ(count, SAMPLES);
    s->done = done;
    if (s->stops && done == 3) s->stop = 1;
}

static void on_space(void *context, uint64_t bytes, uint64_t free_bytes)
{
    seen *s = context;
    s->spaces++;
    MRT_TRUE(free_bytes > 0);
    s->bytes = bytes;
}

static mr_export_config settings(seen *s)
{
    mr_export_config cfg;
    mr_export_defaults(&cfg);
    cfg.on_bad = on_bad;
    cfg.on_progress = on_progress;
    cfg.space = on_space;
    cfg.context = s;
    cfg.stop = &s->stop;
    return cfg;
}

static bool is_there(const char *folder, const char *file)
{
    char path[4200];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return lstat(path, &st) == 0;
}

static void a_stopped_call_is_continued(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen s = {.stops = true};
    mr_export_config cfg = settings(&s);
    mr_export_result r;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/a/pictures", mrt_temp());
    mr_source *src = make_source(0);
    MRT_EQ(mr_export(src, folder, &cfg, &r, &err), MR_ECANCELED);
    MRT_EQ(r.files, 3);
    MRT_TRUE(s.spaces == 1 && s.bytes > 0);
    MRT_TRUE(!is_there(folder, "cat/00000003.png") && !is_there(folder, "never"));
    s = (seen){.bad = 0};
    MRT_EQ(mr_export(src, folder, &cfg, &r, &err), MR_EEXIST);
    MRT_HAS(err.text, "resume");
    MRT_HAS(err.file, "cat/00000000.png");
    cfg.resume = true;
    MRT_OK(mr_export(src, folder, &cfg, &r, &err), &err);
    MRT_EQ(r.files, SAMPLES - 1);
    MRT_EQ(r.resumed, 3);
    MRT_TRUE(r.bad == 1 && s.bad == 1 && s.done == SAMPLES);
    MRT_TRUE(is_there(folder, "cat/00000003.png") && is_there(folder, "a_b/00000001.png"));
    MRT_TRUE(!is_there(folder, "a_b/00000005.png")); /* the damaged one */
    MRT_TRUE(is_there(folder, "2/00000002.png"));    /* ".." leads elsewhere */
    MRT_TRUE(is_there(folder, "never"));
    MRT_EQ(r.renamed, 0); /* samples without names */
    MRT_EQ(r.renamed_classes, 2);
    MRT_HAS(r.names_path, "pictures.names.jsonl");
    mr_source_close(src);
}

static void another_file_is_replaced_by_force_alone(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    seen s = {.bad = 0};
    mr_export_config cfg = settings(&s);
    mr_export_result r;
    char folder[4096], file[4200];
    snprintf(folder, sizeof folder, "%s/b", mrt_temp());
    mr_source *src = make_source(0);
    MRT_OK(mr_export(src, folder, &cfg, NULL, &err), &err);
    snprintf(file, sizeof file, "%s/cat/00000006.png", folder);
    FILE *f = fopen(file, "r+");
    MRT_TRUE(f && fputc('x', f) == 'x' && fclose(f) == 0);
    cfg.resume = true;
    MRT_EQ(mr_export(src, folder, &cfg, &r, &err), MR_EEXIST);
    MRT_HAS(err.text, "differs from the data");
    MRT_HAS(err.file, "00000006.png");
    MRT_TRUE(truncate(file, 0) == 0); /* the beginning of the right bytes */
    MRT_OK(mr_export(src, folder, &cfg, &r, &err), &err);
    MRT_EQ(r.resumed, SAMPLES - 2);
    cfg.resume = false;
    cfg.force = true;
    MRT_OK(mr_export(src, folder, &cfg, &r, &err), &err);
    MRT_TRUE(r.resumed == 0 && r.files == SAMPLES - 1);
    mr_source_close(src);
}

static void what_has_no_pictures_is_refused(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/c", mrt_temp());
    mr_source *src = make_source(1);
    MRT_EQ(mr_export(src, folder, NULL, NULL, &err), MR_EUNSUPPORTED);
    MRT_HAS(err.text, "expected pictures");
    MRT_TRUE(!is_there(mrt_temp(), "c"));
    mr_source_close(src);
}

/* Pictures of a folder do not get more of themselves. */
static void a_folder_inside_the_data_is_refused(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_source *made = make_source(0), *src;
    char folder[4096], inside[4200];
    snprintf(folder, sizeof folder, "%s/d", mrt_temp());
    snprintf(inside, sizeof inside, "%s/more//", folder);
    MRT_OK(mr_export(made, folder, NULL, NULL, &err), &err);
    MRT_OK(mr_source_open(&src, folder, NULL, &err), &err);
    MRT_EQ(mr_export(src, inside, NULL, NULL, &err), MR_EINVAL);
    MRT_HAS(err.text, "inside the input");
    MRT_TRUE(!is_there(folder, "more"));
    mr_source_close(src);
    mr_source_close(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_call_is_continued),
        cmocka_unit_test(another_file_is_replaced_by_force_alone),
        cmocka_unit_test(what_has_no_pictures_is_refused),
        cmocka_unit_test(a_folder_inside_the_data_is_refused),
    };
    return mrt_run(tests);
}
