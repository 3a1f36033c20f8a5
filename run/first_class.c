/* run/first_class.c: the number at which the classes of data begin, where they have no names. See run.h. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/handle.h"
#include "formats/source/source.h"
#include "millrace/run.h"

typedef struct notes {
    mr_run_note *on_note;
    void *context;
} notes;

/* Smallest class number of a set; false: not known. Names that are not numbers have no class number. */
static bool first_number(const mr_source *src, int64_t *out)
{
    const mr_source_info *info = mr_source_info_of(src);
    const mr_source_labels *l = mr_source_labels_of(src);
    bool known = l->min <= l->max;
    *out = l->min;
    for (uint32_t k = 0; !known && info->class_names && k < info->class_count; k++) {
        char *end;
        const char *name = info->class_names[k];
        const int64_t number = strtoll(name, &end, 10);
        if (!isdigit((unsigned char)name[0]) || *end) return false;
        if (k == 0 || number < *out) *out = number;
    }
    return known || info->class_names;
}

/* Are its classes named, whatever their numbers? */
static bool is_named(const mr_source_info *info) { return info->class_names && info->class_names[0][0]; }

static int declared_twice(const mr_source *a, const mr_source *b, mr_error *err)
{
    return mr_error_set(err, MR_EINVAL,
                        "%s: classes begin at %" PRId64 ", as it was converted with --label-offset; in %s at "
                        "%" PRId64 ": --label-offset says which it is",
                        mr_source_info_of(a)->path, mr_source_labels_of(a)->start, mr_source_info_of(b)->path,
                        mr_source_labels_of(b)->start);
}

/* Nobody can see any more what was subtracted when this file was made. */
static void doubt(const mr_source *unsure, const notes *n)
{
    char text[4608];
    snprintf(text, sizeof text,
             "%s: a record file of an earlier version: if the smallest label of its source was 1, 1 was "
             "subtracted; convert it again to be certain of its classes",
             mr_source_info_of(unsure)->path);
    if (n->on_note) n->on_note(n->context, text);
}

/* Labels of an old record file may have lost 1, the labels of the other set have not. */
static int check_sure(const mr_source *unsure, const mr_source *other, const notes *n, mr_error *err)
{
    const mr_source_labels *u = mr_source_labels_of(unsure), *o = mr_source_labels_of(other);
    int64_t first;
    if (!u->unsure || u->min != 0 || is_named(mr_source_info_of(other))) return MR_OK;
    if (o->unsure || !first_number(other, &first) || first < 1) {
        doubt(unsure, n);
        return MR_OK;
    }
    return mr_error_set(
        err, MR_EINVAL,
        "%s: a record file of an earlier version, in which class 0 can be the 1 of its "
        "source; expected the numbers %" PRId64 " to %" PRId64 " as in %s, found %" PRId64 " to %" PRId64
        ": convert it again, or --label-offset 0 takes the numbers as they are",
        mr_source_info_of(unsure)->path, o->min, o->max, mr_source_info_of(other)->path, u->min, u->max);
}

int mr_first_class(const mr_source *trained, const mr_source *other, int64_t *out, mr_run_note *on_note,
                   void *context, mr_error *err)
{
    MRI_OWN(err, trained);
    if (other) MRI_OWN(err, other);
    MRI_GIVEN(err, out);
    const mr_source *const all[] = {trained, other};
    const notes n = {on_note, context};
    int64_t least = INT64_MAX, first;
    *out = 0;
    if (is_named(mr_source_info_of(trained))) return MR_OK;
    for (int k = 0; k < 2 && all[k]; k++) {
        const int64_t start = mr_source_labels_of(all[k])->start;
        if (start != MR_LABEL_AUTO && *out && start != *out) return declared_twice(trained, other, err);
        if (start != MR_LABEL_AUTO) *out = start;
        if (first_number(all[k], &first) && first < least) least = first;
    }
    if (!*out && least == 1) *out = 1;
    if (!other || mr_source_info_of(trained)->class_count == 0) return MR_OK;
    const int rc = check_sure(trained, other, &n, err);
    return rc ? rc : check_sure(other, trained, &n, err);
}
