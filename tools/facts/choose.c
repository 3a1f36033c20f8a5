/* tools/facts/choose.c: the steps of a choice, one after the other. See choose.h. */
#include "tools/facts/choose.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/facts/class_names.h"
#include "tools/facts/stats.h"
#include "tools/session/setup.h"

typedef struct choosing {
    mr_source *src;
    const choose_args *args;
    const mr_decode_config *decode;
    choose_result *result;
    stats facts;
    bool *kept; /* of each sample */
    uint64_t count;
} choosing;

const opt choose_options[CHOOSE_OPTIONS] = {
#define MRI_OPTION(name, kind, ...) OPT(choose_args, name, kind, __VA_ARGS__),
#include "settings/choice.rows"
};

bool choose_asked(const choose_args *a)
{
    return a->classes_from || a->rename_classes || a->only_classes || a->where || a->take_each || a->dedup ||
           a->sample;
}

static const char *class_of(const choosing *c, int64_t label, char *buf, size_t room)
{
    const mr_source_info *info = mr_source_info_of(c->src);
    if (label >= 0 && label < (int64_t)info->class_count && info->class_names)
        return info->class_names[label];
    snprintf(buf, room, "%" PRId64, label < 0 ? label : label + info->label_offset);
    return label < 0 ? "" : buf;
}

/* ---- where ---- */
static int by_where(choosing *c)
{
    where w;
    char why[512], key[4096], number[32];
    if (!c->args->where) return EXIT_DONE;
    if (!where_parse(&w, c->args->where, why, sizeof why)) {
        say("--where: %s", why);
        return EXIT_MISUSED;
    }
    const mr_source_info *info = mr_source_info_of(c->src);
    if (where_needs_picture(&w) && info->image_field < 0) {
        say("--where: %s has no pictures with a width and a height", info->path);
        return EXIT_FAILED;
    }
    for (uint64_t k = 0; k < c->count && !interrupt_flag; k++) {
        const stats_sample *f = &c->facts.sample[k];
        if (!c->kept[k] || !f->good) continue;
        mr_source_sample_name(c->src, k, NULL, 0, key, sizeof key);
        const where_sample s = {.key = key,
                                .class_name = class_of(c, f->label, number, sizeof number),
                                .label = f->label < 0 ? -1 : f->label + info->label_offset,
                                .width = f->width,
                                .height = f->height,
                                .bytes = f->bytes};
        c->kept[k] = where_holds(&w, &s);
        c->result->where += !c->kept[k];
    }
    return EXIT_DONE;
}

/* ---- copies ---- */
typedef struct mark {
    uint64_t hash, bytes, sample;
} mark;

static int by_hash(const void *a, const void *b)
{
    const mark *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* A hash only finds candidates: the pictures themselves decide. */
static int same_pictures(const choosing *c, uint64_t a, uint64_t b, bool *same)
{
    const mr_source_info *info = mr_source_info_of(c->src);
    void *x = NULL, *y = NULL;
    size_t x_bytes = 0, y_bytes = 0;
    mr_sample p, q;
    mr_error err = MR_ERROR_INIT;
    mr_image i = {0}, j = {0};
    *same = false;
    int rc = mr_source_read(c->src, a, &x, &x_bytes, &p, &err);
    if (!rc) rc = mr_source_read(c->src, b, &y, &y_bytes, &q, &err);
    const int f = info->image_field;
    if (!rc && f < 0) { /* all that a sample is */
        mr_extent s = {0}, t = {0};
        rc = mr_source_extent(c->src, a, &s, &err);
        if (!rc) rc = mr_source_extent(c->src, b, &t, &err);
        *same = !rc && s.bytes == t.bytes && memcmp(x, y, (size_t)s.bytes) == 0;
    } else if (!rc && c->args->dedup == CHOOSE_PIXELS) {
        rc = mr_image_decode(&p.value[f], c->decode, &i, &err);
        if (!rc) rc = mr_image_decode(&q.value[f], c->decode, &j, &err);
        *same = !rc && i.width == j.width && i.height == j.height && i.channels == j.channels &&
                memcmp(i.pixels, j.pixels, (size_t)i.width * i.height * i.channels) == 0;
    } else if (!rc)
        *same = p.value[f].type == q.value[f].type && p.value[f].bytes == q.value[f].bytes &&
                memcmp(p.value[f].data, q.value[f].data, p.value[f].bytes) == 0;
    mr_image_free(&i);
    mr_image_free(&j);
    free(x);
    free(y);
    return rc ? exit_status(rc, &err) : EXIT_DONE;
}

static int drop_copies(choosing *c, const mark *marks, uint64_t n)
{
    int status = EXIT_DONE;
    for (uint64_t k = 1, first = 0; k < n && !status && !interrupt_flag; k++) {
        if (marks[k].hash != marks[first].hash || marks[k].bytes != marks[first].bytes) {
            first = k;
            continue;
        }
        bool same;
        status = same_pictures(c, marks[first].sample, marks[k].sample, &same);
        if (status || !same) continue;
        c->kept[marks[k].sample] = false;
        c->result->copies++;
        c->result->copies_crossing +=
            c->facts.sample[marks[k].sample].label != c->facts.sample[marks[first].sample].label;
    }
    return status;
}

static int by_copies(choosing *c)
{
    if (c->args->dedup == CHOOSE_COPIES) return EXIT_DONE;
    mark *marks = malloc((c->count + 1) * sizeof *marks);
    uint64_t n = 0;
    if (!marks) return exit_no_memory("the hashes of all samples");
    for (uint64_t k = 0; k < c->count; k++)
        if (c->kept[k] && c->facts.sample[k].good)
            marks[n++] = (mark){c->facts.sample[k].hash,
                                c->args->dedup == CHOOSE_PIXELS ? 0 : c->facts.sample[k].bytes, k};
    if (n) qsort(marks, n, sizeof *marks, by_hash);
    const int status = drop_copies(c, marks, n);
    free(marks);
    return status;
}

/* ---- a share of each class, and a number ---- */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

typedef struct drawn {
    int64_t label;
    uint64_t key, sample;
} drawn;

static int by_draw(const void *a, const void *b)
{
    const drawn *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* The remaining samples, in a drawn order, class by class or all together. */
static drawn *draw(const choosing *c, uint64_t seed, bool by_class, uint64_t *count)
{
    drawn *d = malloc((c->count + 1) * sizeof *d);
    *count = 0;
    for (uint64_t k = 0; d && k < c->count; k++)
        if (c->kept[k] && (!by_class || c->facts.sample[k].good)) /* what cannot be read has no class */
            d[(*count)++] = (drawn){
                by_class ? c->facts.sample[k].label : 0,
                mix(mix(mr_source_number(c->src, k) + 0x9e3779b97f4a7c15u) ^ mix(seed + 0x6d696c6c72616365u)),
                k};
    if (d && *count) qsort(d, *count, sizeof *d, by_draw);
    return d;
}

static int by_share(choosing *c)
{
    double from, to;
    uint64_t n;
    if (!c->args->take_each) return EXIT_DONE;
    const int status = setup_take(c->args->take_each, &from, &to);
    if (status) return status;
    drawn *d = draw(c, 0, true, &n);
    if (!d) return exit_no_memory("the samples of each class");
    for (uint64_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && d[end].label == d[first].label; end++) {
        }
        const double all = (double)(end - first);
        const uint64_t low = (uint64_t)(from * all + 0.5), high = (uint64_t)(to * all + 0.5);
        for (uint64_t k = first; k < end; k++) {
            if (k - first >= low && k - first < high) continue;
            c->kept[d[k].sample] = false;
            c->result->share++;
        }
    }
    free(d);
    return EXIT_DONE;
}

static int by_number(choosing *c)
{
    uint64_t n;
    if (!c->args->sample) return EXIT_DONE;
    drawn *d = draw(c, c->args->sample_seed, false, &n);
    if (!d) return exit_no_memory("the samples to draw from");
    for (uint64_t k = c->args->sample; k < n; k++) {
        c->kept[d[k].sample] = false;
        c->result->drawn++;
    }
    if (n < c->args->sample && !c->args->silent)
        say("--sample %" PRIu64 ": there are %" PRIu64 ", and all are taken", c->args->sample, n);
    free(d);
    return EXIT_DONE;
}

/* ---- together ---- */
static bool ignore(void *context, const mr_error *what)
{
    (void)context, (void)what; /* whoever reads the data says it */
    return true;
}

static int look(choosing *c, bool quiet)
{
    const stats_config cfg = {
        .decode = *c->decode, .quiet = quiet, .pixel_hash = c->args->dedup == CHOOSE_PIXELS, .wrong = ignore};
    const bool needs = c->args->where || c->args->dedup || c->args->take_each || c->args->only_classes;
    c->count = mr_source_info_of(c->src)->count;
    if (needs) {
        const int status = stats_collect(&c->facts, c->src, &cfg);
        if (status) return status;
    }
    c->kept = malloc((size_t)c->count + 1);
    if (!c->kept) return exit_no_memory("the choice of samples");
    memset(c->kept, true, (size_t)c->count);
    return EXIT_DONE;
}

static int take(choosing *c)
{
    uint64_t n = 0, *numbers = malloc((c->count + 1) * sizeof *numbers);
    mr_error err = MR_ERROR_INIT;
    if (!numbers) return exit_no_memory("the choice of samples");
    for (uint64_t k = 0; k < c->count; k++)
        if (c->kept[k]) numbers[n++] = k;
    c->result->before = c->count;
    c->result->after = n;
    int rc = MR_OK;
    if (n == 0)
        rc = mr_error_set(&err, MR_EINVAL, "%s: no sample is left of %" PRIu64,
                          mr_source_info_of(c->src)->path, c->count);
    else rc = mr_source_choose(c->src, numbers, n, &err);
    free(numbers);
    return rc ? exit_status(rc, &err) : EXIT_DONE;
}

static void report(const choose_args *a, const choose_result *r)
{
    if (r->before == r->after) {
        if (a->where || a->dedup || a->only_classes || a->take_each || a->sample)
            say("all %" PRIu64 " samples are taken", r->after);
        return;
    }
    say("%" PRIu64 " of %" PRIu64 " samples are taken", r->after, r->before);
    if (r->other_classes) say("left out: %" PRIu64 " of other classes", r->other_classes);
    if (r->where) say("left out: %" PRIu64 " for which --where does not hold", r->where);
    if (r->copies)
        say("left out: %" PRIu64 " with the same %s as an earlier sample, %" PRIu64
            " of them in another class",
            r->copies, a->dedup == CHOOSE_PIXELS ? "pixels" : "bytes", r->copies_crossing);
    if (r->share) say("left out: %" PRIu64 " by --take-each %s", r->share, a->take_each);
    if (r->drawn) say("left out: %" PRIu64 " that --sample did not draw", r->drawn);
}

int choose_samples(mr_source *src, const choose_args *a, const mr_decode_config *decode, bool quiet,
                   choose_result *out)
{
    choosing c = {.src = src, .args = a, .decode = decode, .result = out};
    class_plan plan = {0};
    *out = (choose_result){0};
    if (!choose_asked(a)) return EXIT_DONE;
    out->asked = true;
    out->classes_before = mr_source_info_of(src)->class_count;
    int status = class_plan_make(&plan, src, a);
    if (!status) status = look(&c, quiet);
    for (uint64_t k = 0; !status && plan.only && k < c.count; k++) {
        const int64_t label = c.facts.sample[k].label;
        if (!c.facts.sample[k].good || label < 0) continue;
        c.kept[k] = plan.to[label] != UINT32_MAX;
        out->other_classes += !c.kept[k];
    }
    if (!status && plan.names) status = class_plan_apply(&plan, src, a->silent, out);
    if (!status && plan.names) /* conditions speak of the new classes */
        for (uint64_t k = 0; c.facts.sample && k < c.count; k++) {
            stats_sample *s = &c.facts.sample[k];
            if (s->good && s->label >= 0)
                s->label = plan.to[s->label] == UINT32_MAX ? -1 : (int32_t)plan.to[s->label];
        }
    if (!status) status = by_where(&c);
    if (!status) status = by_copies(&c);
    if (!status) status = by_share(&c);
    if (!status) status = by_number(&c);
    if (!status && interrupt_flag) status = EXIT_SIGNAL + interrupt_flag;
    if (!status) status = take(&c);
    out->classes_after = mr_source_info_of(src)->class_count;
    if (!status && !a->silent) report(a, out);
    class_plan_free(&plan);
    stats_free(&c.facts);
    free(c.kept);
    return status;
}

static int choose_for(data_chooser *base, mr_source *src)
{
    chooser *c = (chooser *)base;
    mr_decode_config decode;
    choose_result unused;
    setup_decode(&decode, c->data);
    const int status = choose_samples(src, &c->args, &decode, c->quiet, &unused);
    c->args.silent = true;
    return status;
}

void chooser_begin(chooser *c, const choose_args *a, data_args *data, bool quiet)
{
    const bool gives = a->classes_from || a->rename_classes, names = gives || a->only_classes;
    *c = (chooser){.base = {.choose = choose_for,
                            .names_classes = names,
                            .gives_names = gives,
                            .needs_classes = names || a->take_each || where_needs_class(a->where)},
                   .args = *a,
                   .data = data,
                   .quiet = quiet};
    data->chooser = choose_asked(a) ? &c->base : NULL;
}

int choose_where(mr_source *src, const char *conditions, const mr_decode_config *decode, bool quiet,
                 uint64_t **numbers, uint64_t *count)
{
    const choose_args args = {.where = conditions};
    choose_result unused = {0};
    choosing c = {.src = src, .args = &args, .decode = decode, .result = &unused};
    *numbers = NULL;
    *count = 0;
    int status = look(&c, quiet);
    if (!status) status = by_where(&c);
    if (!status && interrupt_flag) status = EXIT_SIGNAL + interrupt_flag;
    if (!status && !(*numbers = malloc((c.count + 1) * sizeof **numbers)))
        status = exit_no_memory("the numbers of samples");
    for (uint64_t k = 0; !status && k < c.count; k++)
        if (c.kept[k] && c.facts.sample[k].good) (*numbers)[(*count)++] = k;
    stats_free(&c.facts);
    free(c.kept);
    return status;
}
