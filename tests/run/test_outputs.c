/* tests/run/test_outputs.c: likely classes, a confusion matrix by hand, its CSV; names of views. The
 * command's tests evaluate networks with both. */
#include <math.h>

#include "millrace/outputs.h"
#include "mrt.h"

static void likely_classes_come_first(void **state)
{
    (void)state;
    const float logits[] = {0, logf(3), 0, logf(5)};
    mr_guess g[4];
    MRT_EQ(mr_outputs_best(logits, 4), 3);
    MRT_EQ(mr_outputs_best(logits, 3), 1);
    MRT_EQ(mr_outputs_top(logits, 4, 3, g), 3);
    MRT_TRUE(g[0].class_number == 3 && g[1].class_number == 1 && g[2].class_number == 0); /* of equals the
                                                                                             first */
    MRT_TRUE(fabs(g[0].probability - 0.5) < 1e-6 && fabs(g[1].probability - 0.3) < 1e-6);
    MRT_EQ(mr_outputs_top(logits, 2, 4, g), 2);
}

/* Labels 0, 0, 1, none, 2, 5 (too large) of three classes; class 2 is never right. */
static void classes_are_counted(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_confusion *c;
    mr_class_row r;
    uint32_t worst[3], count;
    static const char *const names[] = {"cat", "a,b", "\"x\""};
    const int32_t labels[] = {0, 0, 1, -1, 2, 5};
    const float logits[] = {1, 0, 0, /**/ 0, 0, 1, /**/ 0, 2, 1, /**/ 1, 0, 0, /**/ 3, 0, 0, /**/ 1, 0, 0};
    const mr_outputs o = {
        .struct_size = sizeof o, .labels = labels, .count = 6, .classes = 3, .logits = logits};
    mr_outputs other = o;
    MRT_EQ(mr_confusion_create(&c, 0, &err), MR_EINVAL);
    MRT_EQ(mr_confusion_create(&c, MR_CONFUSION_MOST + 1, &err), MR_EINVAL);
    MRT_OK(mr_confusion_create(&c, 3, &err), &err);
    MRT_OK(mr_confusion_add(c, &o, &err), &err);
    other.classes = 2;
    MRT_EQ(mr_confusion_add(c, &other, &err), MR_EINVAL);
    MRT_OK(mr_confusion_row(c, 0, &r, &err), &err);
    MRT_TRUE(r.samples == 2 && r.right == 1 && r.taken_for == 2 && r.taken == 1 && r.accuracy == 0.5);
    MRT_OK(mr_confusion_worst(c, 3, worst, &count, &err), &err);
    MRT_TRUE(count == 3 && worst[0] == 2 && worst[1] == 0 && worst[2] == 1);
    char *csv = mr_confusion_csv(c, names, 0);
    MRT_STR(csv, "class,cat,\"a,b\",\"\"\"x\"\"\",samples,accuracy\n"
                 "cat,1,0,1,2,0.5\n"
                 "\"a,b\",0,1,0,1,1\n"
                 "\"\"\"x\"\"\",1,0,0,1,0\n");
    free(csv);
    mr_confusion_counts(c)[2 * 3] = 0; /* a class without samples */
    csv = mr_confusion_csv(c, NULL, -1);
    MRT_HAS(csv, "class,-1,0,1,");
    MRT_HAS(csv, "1,0,0,0,0,\n");
    free(csv);
    MRT_OK(mr_confusion_worst(c, 3, worst, &count, &err), &err);
    MRT_EQ(count, 2);
    mr_confusion_destroy(c);
}

static void views_have_names(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_views *v;
    MRT_OK(mr_views_create(&v, "ten", "resize(40),center(32)", &err), &err);
    MRT_EQ(mr_views_count(v), 10);
    MRT_STR(mr_views_augment(v), "resize(40),center(32),views(ten)");
    mr_views_destroy(v);
    MRT_EQ(mr_views_create(&v, "eleven", NULL, &err), MR_EINVAL);
    MRT_TRUE(!v && err.text[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(likely_classes_come_first),
        cmocka_unit_test(classes_are_counted),
        cmocka_unit_test(views_have_names),
    };
    return mrt_run(tests);
}
