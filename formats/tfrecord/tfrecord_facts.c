/* formats/tfrecord/tfrecord_facts.c: facts gathered while scanning, written to a note and read from it.
 *
 *   0   u32 flags   4  u32 bytes of the keys   8  u64 height   16  u64 width   24  u64 channels (0: pictures
 *       differ, or are encoded)
 *   32  u64 names   40 u64 bytes of their text   48 u64 boxes   56 u64 samples   64 u64 bytes of the rest
 *   72  keys   one text after the other in the order of enum mri_tf_feature, each with its 0; empty: none
 *       names x i64 label, then their texts, each with its 0
 *       (samples + 1) x u64 first box, boxes x 4 f32, boxes x i64 label: the first two with HAS_BOXES, the
 *       last with HAS_BOX_LABELS
 *       rest   texts, each with its 0: "TYPE COUNT NAME" of a further field, "!LINE" for the user
 *
 * Each part begins at a multiple of 8. */
#include "formats/tfrecord/tfrecord_facts.h"

#include <stdarg.h>
#include <stdio.h>

#include "formats/fileset/facts.h"
#include "formats/fileset/fileset.h"
#include "formats/source/value.h"

enum {
    HAS_BOXES = 1,
    HAS_BOX_LABELS = 2,
    HEAD = 72,
    REST_LINE = MR_MAX_NAME + 32,
    MOST_KEY = 255,
    MOST_NAME = 255,
    MOST_NAMED = 1 << 16,
    MOST_NAMES_BYTES = 4 << 20
};

/* ---- which features ---- */
static const char *const image_keys[] = {"image/encoded", "image_raw", "image", "image/raw", "image_bytes",
                                         "encoded_image", "jpeg",      "png",   "img",       NULL};
static const char *const label_keys[] = {
    "image/class/label", "label", "image/label", "class_label", "class", "labels", "target", NULL};
static const char *const text_keys[] = {"image/class/text", NULL};
static const char *const height_keys[] = {"image/height", "height", "rows", NULL};
static const char *const width_keys[] = {"image/width", "width", "cols", NULL};
static const char *const channels_keys[] = {"image/channels", "image/depth", "channels", "depth", NULL};
static const char *const mask_keys[] = {"image/segmentation/class/encoded", "image/segmentation/encoded",
                                        "image/mask", "mask", NULL};
static const char *const xmin_keys[] = {"image/object/bbox/xmin", NULL},
                         *const ymin_keys[] = {"image/object/bbox/ymin", NULL},
                         *const xmax_keys[] = {"image/object/bbox/xmax", NULL},
                         *const ymax_keys[] = {"image/object/bbox/ymax", NULL},
                         *const box_label_keys[] = {"image/object/bbox/label", "image/object/class/label",
                                                    NULL};

static const struct {
    const char *const *keys;
    mri_feature_kind kind;
} usual[MRI_TF_FEATURES] = {
    [MRI_TF_IMAGE] = {image_keys, MRI_FEATURE_BYTES}, [MRI_TF_LABEL] = {label_keys, MRI_FEATURE_INTS},
    [MRI_TF_TEXT] = {text_keys, MRI_FEATURE_BYTES},   [MRI_TF_HEIGHT] = {height_keys, MRI_FEATURE_INTS},
    [MRI_TF_WIDTH] = {width_keys, MRI_FEATURE_INTS},  [MRI_TF_CHANNELS] = {channels_keys, MRI_FEATURE_INTS},
    [MRI_TF_MASK] = {mask_keys, MRI_FEATURE_BYTES},   [MRI_TF_XMIN] = {xmin_keys, MRI_FEATURE_FLOATS},
    [MRI_TF_YMIN] = {ymin_keys, MRI_FEATURE_FLOATS},  [MRI_TF_XMAX] = {xmax_keys, MRI_FEATURE_FLOATS},
    [MRI_TF_YMAX] = {ymax_keys, MRI_FEATURE_FLOATS},  [MRI_TF_BOX_LABEL] = {box_label_keys, MRI_FEATURE_INTS},
};

static int take_key(mri_tf_gather *g, int at, const char *key, mr_error *err)
{
    const size_t bytes = strlen(key) + 1;
    if (bytes == 1 || bytes > MOST_KEY + 1)
        return mr_error_set(err, MR_EINVAL, "a feature's name has 1 to %d bytes", MOST_KEY);
    char *copy = malloc(bytes);
    if (!copy) return mr_error_set(err, MR_ENOMEM, "no memory for a feature's name");
    memcpy(copy, key, bytes);
    g->key[at] = g->key_text[at] = copy;
    return MR_OK;
}

/* The first of the usual names that is there with the right kind, else the first that exists at all: the
 * reader reports that one's error. */
static int choose_usual(mri_tf_gather *g, int at, const void *example, size_t bytes, mr_error *err)
{
    mri_feature f[16];
    uint32_t count = 0;
    while (usual[at].keys[count]) count++;
    int rc = mri_example_pick(example, bytes, usual[at].keys, count, f, err);
    if (rc) return rc;
    int found = -1;
    for (uint32_t k = 0; k < count; k++) {
        const bool right = f[k].kind == usual[at].kind;
        if (right || (found < 0 && f[k].kind != MRI_FEATURE_NONE)) found = (int)k;
        if (right) break;
    }
    return found >= 0 ? take_key(g, at, usual[at].keys[found], err) : MR_OK;
}

static int no_such_key(const char *key, const char *what, const void *example, size_t bytes, mr_error *err)
{
    char found[480], shown[128];
    mri_tf_list_keys(example, bytes, found, sizeof found);
    if (!found[0]) return mr_error_set(err, MR_EFORMAT, "no tf.train.Example: there is no feature in it");
    if (key)
        return mr_error_set(err, MR_EFORMAT, "no feature \"%s\"; found: %s",
                            mr_text_shown(key, shown, sizeof shown), found);
    return mr_error_set(err, MR_EFORMAT,
                        "none of the features is known to be the %s: name it (--%s-key); found: %s", what,
                        what, found);
}

static int choose_named(mri_tf_gather *g, int at, const char *key, const char *what, const void *example,
                        size_t bytes, mr_error *err)
{
    if (!key) {
        const int rc = choose_usual(g, at, example, bytes, err);
        return rc || g->key[at] || at != MRI_TF_IMAGE ? rc : no_such_key(NULL, what, example, bytes, err);
    }
    mri_feature f;
    const int rc = mri_example_pick(example, bytes, &key, 1, &f, err);
    if (rc) return rc;
    return f.kind == MRI_FEATURE_NONE ? no_such_key(key, what, example, bytes, err)
                                      : take_key(g, at, key, err);
}

static void drop_keys(mri_tf_gather *g, int from, int to)
{
    for (int k = from; k <= to; k++) {
        free(g->key_text[k]);
        g->key[k] = g->key_text[k] = NULL;
    }
}

/* Of the feature that is named like a mask. */
typedef enum mask_is { MASK_IS_NONE, MASK_IS_PNG, MASK_IS_OTHER } mask_is;

static int look_at_mask(const mri_tf_gather *g, const void *example, size_t bytes, mask_is *is, mr_error *err)
{
    mri_feature f;
    mr_value v;
    const int rc = mri_example_pick(example, bytes, &g->key[MRI_TF_MASK], 1, &f, err);
    if (rc) return rc;
    *is = mri_tf_mask(&f, "", &v, NULL) != MR_OK ? MASK_IS_OTHER : v.bytes ? MASK_IS_PNG : MASK_IS_NONE;
    return MR_OK;
}

/* A feature named like a mask that is not a PNG is something else: nobody requested it, so it makes no record
 * bad. The picture itself is not a mask either. */
static int check_mask(mri_tf_gather *g, const void *example, size_t bytes, mr_error *err)
{
    mask_is is = MASK_IS_OTHER;
    if (!g->key[MRI_TF_MASK]) return MR_OK;
    const bool picture = strcmp(g->key[MRI_TF_MASK], g->key[MRI_TF_IMAGE]) == 0;
    const int rc = picture ? MR_OK : look_at_mask(g, example, bytes, &is, err);
    if (!rc && is != MASK_IS_PNG) drop_keys(g, MRI_TF_MASK, MRI_TF_MASK);
    return rc;
}

int mri_tf_choose(mri_tf_gather *g, const void *example, size_t bytes, mr_error *err)
{
    int rc = choose_named(g, MRI_TF_IMAGE, g->cfg->image_key, "image", example, bytes, err);
    if (!rc) rc = choose_named(g, MRI_TF_LABEL, g->cfg->label_key, "label", example, bytes, err);
    for (int k = MRI_TF_TEXT; !rc && k < MRI_TF_FEATURES; k++) rc = choose_usual(g, k, example, bytes, err);
    if (!rc) rc = check_mask(g, example, bytes, err);
    if (rc) {
        drop_keys(g, 0, MRI_TF_FEATURES - 1);
        return rc;
    }
    if (!g->key[MRI_TF_XMIN] || !g->key[MRI_TF_YMIN] || !g->key[MRI_TF_XMAX] || !g->key[MRI_TF_YMAX])
        drop_keys(g, MRI_TF_XMIN, MRI_TF_BOX_LABEL);
    g->chosen = true;
    return MR_OK;
}

/* ---- features that the first record lacks ---- */
static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory for class names or boxes");
}

static bool is_key(const mri_feature *f, const char *key)
{
    return key && strlen(key) == f->key.bytes && memcmp(key, f->key.data, f->key.bytes) == 0;
}

/* It has a meaning already, or only describes the picture or the mask. */
static bool is_known(const mri_tf_gather *g, const mri_feature *f)
{
    static const char *const described[] = {"image/format", "image/filename",
                                            "image/segmentation/class/format"};
    for (int k = 0; k < MRI_TF_FEATURES; k++)
        if (is_key(f, g->key[k]) && (k != MRI_TF_TEXT || g->key[MRI_TF_LABEL])) return true;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(described); k++)
        if (is_key(f, described[k])) return true;
    return false;
}

/* Which feature, missing in the records so far, it is by name and kind; MRI_TF_FEATURES: no such one. */
static int usual_of(const mri_tf_gather *g, const mri_feature *f)
{
    for (int at = 0; at < MRI_TF_FEATURES; at++)
        for (uint32_t k = 0; !g->key[at] && f->kind == usual[at].kind && usual[at].keys[k]; k++)
            if (is_key(f, usual[at].keys[k])) return at;
    return MRI_TF_FEATURES;
}

/* All four sides, and labels where there are such; or none of them. */
static int choose_boxes(mri_tf_gather *g, const void *example, size_t bytes, mr_error *err)
{
    int rc = MR_OK;
    for (int k = MRI_TF_XMIN; !rc && k <= MRI_TF_BOX_LABEL; k++)
        if (!g->key[k]) rc = choose_usual(g, k, example, bytes, err);
    if (rc || !g->key[MRI_TF_XMIN] || !g->key[MRI_TF_YMIN] || !g->key[MRI_TF_XMAX] || !g->key[MRI_TF_YMAX]) {
        drop_keys(g, MRI_TF_XMIN, MRI_TF_BOX_LABEL);
        return rc;
    }
    if (!g->key[MRI_TF_BOX_LABEL] || g->box_label || g->box_cap == 0) return MR_OK;
    g->box_label = calloc((size_t)g->box_cap, sizeof *g->box_label); /* boxes before lack it: bad samples */
    return g->box_label ? MR_OK : no_memory(err);
}

static bool has_values(const mri_feature *f)
{
    size_t count = 0;
    return f->kind != MRI_FEATURE_INTS || (mri_feature_ints(f, NULL, 0, &count, NULL) == MR_OK && count > 0);
}

/* A feature that no record had so far. *taken: it has a meaning now, or nothing is known of it yet. *tried: a
 * bit for each meaning that was tried in this record, as a hostile one may repeat a feature. */
static int choose_late(mri_tf_gather *g, const mri_feature *f, const void *example, size_t bytes,
                       uint32_t *tried, bool *taken, mr_error *err)
{
    const int at = usual_of(g, f);
    mask_is is;
    int rc = MR_OK;
    *taken = false;
    if (at == MRI_TF_FEATURES || *tried >> at & 1 || !has_values(f)) return MR_OK;
    *tried |= UINT32_C(1) << at;
    if (at >= MRI_TF_XMIN) {
        rc = choose_boxes(g, example, bytes, err);
        *taken = g->key[at] != NULL;
        return rc;
    }
    rc = choose_usual(g, at, example, bytes, err);
    *taken = g->key[at] != NULL;
    if (rc || at != MRI_TF_MASK || !*taken) return rc;
    rc = look_at_mask(g, example, bytes, &is, err);
    if (!rc && is != MASK_IS_PNG) drop_keys(g, MRI_TF_MASK, MRI_TF_MASK);
    *taken = rc || is != MASK_IS_OTHER;
    return rc;
}

int mri_tf_look(mri_tf_gather *g, const void *example, size_t bytes, bool *again, mr_error *err)
{
    mri_example_walk w;
    mri_feature f;
    uint32_t tried = 0;
    int rc;
    *again = false;
    mri_tf_more_begin(&g->more);
    mri_example_begin(&w, example, bytes);
    while ((rc = mri_example_next(&w, &f, NULL)) == MR_OK) {
        if (f.kind == MRI_FEATURE_NONE || is_known(g, &f)) continue;
        mri_tf_more_feature *at = mri_tf_more_find(&g->more, f.key);
        bool taken = false;
        if (!at) rc = choose_late(g, &f, example, bytes, &tried, &taken, err);
        if (!rc && !taken) rc = mri_tf_more_add(&g->more, at, &f, err);
        if (rc) return rc;
        *again |= taken;
    }
    return MR_OK;
}

/* ---- gather ---- */
static void add_picture(mri_tf_gather *g, const mri_feature *f)
{
    mr_value v;
    if (mri_tf_picture(f, g->key, &v, NULL) != MR_OK) return;
    if (v.type != MR_TYPE_PIXELS) {
        g->encoded = true;
        return;
    }
    if (g->raw && (g->dim[0] != v.dim[0] || g->dim[1] != v.dim[1] || g->dim[2] != v.dim[2]))
        g->shapes_differ = true;
    memcpy(g->dim, v.dim, sizeof g->dim);
    g->raw = true;
}

static bool can_be_name(mri_span text)
{
    return text.bytes > 0 && text.bytes <= MOST_NAME && !memchr(text.data, 0, text.bytes);
}

MR_PRINTF(2, 3) static int drop_names(mri_tf_gather *g, const char *why, ...)
{
    char text[MRI_TF_WHY - 80];
    va_list args;
    va_start(args, why);
    vsnprintf(text, sizeof text, why, args);
    va_end(args);
    snprintf(g->why_no_names, sizeof g->why_no_names, "names of classes are left out: record %llu has %s",
             (unsigned long long)g->samples, text);
    g->no_names = true;
    return MR_OK;
}

/* A record is odd whose file has used the other name as well. Else the files number their classes
 * differently, and one number would be two classes, unless the user takes the numbers. */
static int other_name(mri_tf_gather *g, int64_t label, mri_span text, mr_error *err)
{
    char raw[MOST_NAME + 1], found[120], known[120];
    snprintf(raw, sizeof raw, "%.*s", (int)text.bytes, (const char *)text.data);
    mr_text_shown(raw, found, sizeof found);
    mr_text_shown(g->names + g->named[label].at - 1, known, sizeof known);
    if (g->named[label].file == g->file || g->cfg->label_key)
        return drop_names(g, "\"%s\" as the name of class %lld, and records before it \"%s\"", found,
                          (long long)label, known);
    return mr_error_set(
        err, MR_EFORMAT,
        "record %llu has \"%s\" as the name of class %lld (%s), and files before this one \"%s\": "
        "open them as a mix, which matches classes by their names, or take the numbers as they "
        "are (--label-key %s)",
        (unsigned long long)g->samples, found, (long long)label, g->key[MRI_TF_TEXT], known,
        g->key[MRI_TF_LABEL]);
}

/* Names are optional: an error in one drops all of them, with a line. A record may lack it. */
static int add_name(mri_tf_gather *g, const mri_feature *f, int64_t label, mr_error *err)
{
    mri_span text;
    if (g->no_names || label == MRI_NO_LABEL || f[MRI_TF_TEXT].kind == MRI_FEATURE_NONE) return MR_OK;
    if (label < 0 || label >= MOST_NAMED)
        return drop_names(g, "a class %lld; names are read for 0 to %d", (long long)label, MOST_NAMED - 1);
    if (mri_tf_one_bytes(&f[MRI_TF_TEXT], "", &text, NULL) != MR_OK || !can_be_name(text))
        return drop_names(g, "no name of 1 to %d bytes in \"%s\"", MOST_NAME, g->key[MRI_TF_TEXT]);
    if ((uint64_t)label >= g->label_cap) {
        const size_t before = g->label_cap, cap = (size_t)mri_align_up((uint64_t)label + 1, 1024);
        struct mri_tf_named *larger = realloc(g->named, cap * sizeof *larger);
        if (!larger) return no_memory(err);
        memset(larger + before, 0, (cap - before) * sizeof *larger);
        g->named = larger;
        g->label_cap = cap;
    }
    if (g->named[label].at) {
        const char *known = g->names + g->named[label].at - 1;
        if (strlen(known) != text.bytes || memcmp(known, text.data, text.bytes) != 0)
            return other_name(g, label, text, err);
        g->named[label].file = g->file;
        return MR_OK;
    }
    uint64_t cap = g->names_cap;
    if (!mri_facts_grow((void **)&g->names, &cap, g->names_used + text.bytes + 1, 1)) return no_memory(err);
    g->names_cap = (size_t)cap;
    g->named[label] = (struct mri_tf_named){(uint32_t)g->names_used + 1, g->file};
    memcpy(g->names + g->names_used, text.data, text.bytes);
    g->names[g->names_used + text.bytes] = '\0';
    g->names_used += text.bytes + 1;
    return g->names_used > MOST_NAMES_BYTES ? drop_names(g, "a name too many: 4 MiB are read") : MR_OK;
}

/* Four lists become one array of corners. */
static int add_boxes(mri_tf_gather *g, const mri_feature *f, mr_error *err)
{
    size_t count = 0;
    if (!f || mri_tf_box_count(f, g->key, &count, NULL) != MR_OK || count == 0)
        return MR_OK; /* parse() reports it */
    uint64_t cap = g->box_cap, label_cap = g->box_cap;
    const int rc = mri_source_budget(
        g->cfg, (g->box_count + count) * 3 * (4 * sizeof *g->box + sizeof *g->box_label), NULL, err);
    if (rc) return rc;
    if (!mri_facts_grow((void **)&g->box, &cap, g->box_count + count, 4 * sizeof *g->box))
        return no_memory(err);
    if (g->key[MRI_TF_BOX_LABEL] &&
        !mri_facts_grow((void **)&g->box_label, &label_cap, g->box_count + count, sizeof *g->box_label))
        return no_memory(err);
    g->box_cap = cap;
    float *column = malloc(count * sizeof *column);
    if (!column) return no_memory(err);
    for (int side = 0; side < 4; side++) {
        size_t n;
        mri_feature_floats(&f[MRI_TF_XMIN + side], column, count, &n, NULL);
        for (size_t k = 0; k < count; k++) g->box[4 * (g->box_count + k) + (size_t)side] = column[k];
    }
    free(column);
    if (g->key[MRI_TF_BOX_LABEL])
        mri_feature_ints(&f[MRI_TF_BOX_LABEL], g->box_label + g->box_count, count, &count, NULL);
    g->box_count += count;
    return MR_OK;
}

int mri_tf_add(mri_tf_gather *g, const mri_feature *f, int64_t label, mr_error *err)
{
    int rc = MR_OK;
    if (f) add_picture(g, f);
    if (f) rc = add_name(g, f, label, err);
    const uint64_t before = g->samples++;
    if (rc || !g->key[MRI_TF_XMIN]) return rc;
    const uint64_t had = g->start_cap; /* records in front of the first that could be read have no boxes */
    if (!mri_facts_grow((void **)&g->start, &g->start_cap, g->samples + 1, sizeof *g->start))
        return no_memory(err);
    if (!had) memset(g->start, 0, (size_t)(before + 1) * sizeof *g->start);
    rc = add_boxes(g, f, err);
    g->start[g->samples] = g->box_count;
    return rc;
}

void mri_tf_gather_fini(mri_tf_gather *g)
{
    drop_keys(g, 0, MRI_TF_FEATURES - 1);
    free(g->names);
    free(g->named);
    free(g->start);
    free(g->box);
    free(g->box_label);
    *g = (mri_tf_gather){0};
}

/* ---- note ---- */
typedef struct layout { /* where each part begins; the last is the whole */
    uint64_t keys, labels, names, start, box, box_label, rest, all;
} layout;

typedef struct sizes {
    uint64_t keys, name_count, names, boxes, samples, rest;
    uint32_t flags;
} sizes;

/* Everything is below 2^48 where this is called: no sum overflows. */
static layout lay_out(const sizes *s)
{
    layout l = {.keys = HEAD};
    l.labels = mri_align_up(l.keys + s->keys, 8);
    l.names = l.labels + 8 * s->name_count;
    l.start = mri_align_up(l.names + s->names, 8);
    l.box = l.start + (s->flags & HAS_BOXES ? 8 * (s->samples + 1) : 0);
    l.box_label = l.box + 16 * s->boxes;
    l.rest = l.box_label + (s->flags & HAS_BOX_LABELS ? 8 * s->boxes : 0);
    l.all = l.rest + s->rest;
    return l;
}

/* The further fields, and lines for the user. Returns bytes; out has room for them all. */
static size_t put_rest(const mri_tf_gather *g, char *out)
{
    char line[MRI_TF_LINES][MRI_TF_TOLD] = {""};
    size_t at = 0;
    const uint32_t room = MR_MAX_FIELDS - MRI_TF_OTHERS;
    uint32_t fields = 0;
    mr_field f;
    for (uint32_t k = 0; k < g->more.count; k++)
        if (mri_tf_more_field(&g->more, &g->more.feature[k], &f) && fields++ < room)
            at += (size_t)sprintf(out + at, "%u %llu %s", (unsigned)f.type, (unsigned long long)f.dim[0],
                                  f.name) +
                  1;
    mri_tf_more_tell_left(&g->more, room, line[0]);
    if (!g->key[MRI_TF_LABEL]) mri_tf_more_tell_class(&g->more, g->key[MRI_TF_XMIN] != NULL, line[1]);
    snprintf(line[2], sizeof line[2], "%s", g->why_no_names);
    for (size_t k = 0; k < MRI_TF_LINES; k++)
        if (line[k][0]) at += (size_t)sprintf(out + at, "!%s", line[k]) + 1;
    return at;
}

static sizes sizes_of(const mri_tf_gather *g, uint64_t rest)
{
    sizes s = {.boxes = g->box_count, .samples = g->samples, .rest = rest};
    if (g->key[MRI_TF_XMIN]) s.flags = HAS_BOXES | (g->key[MRI_TF_BOX_LABEL] ? HAS_BOX_LABELS : 0);
    for (int k = 0; k < MRI_TF_FEATURES; k++) s.keys += (g->key[k] ? strlen(g->key[k]) : 0) + 1;
    for (size_t k = 0; !g->no_names && k < g->label_cap; k++) s.name_count += g->named[k].at != 0;
    s.names = g->no_names ? 0 : g->names_used;
    return s;
}

static void put_names(uint8_t *note, const layout *l, const mri_tf_gather *g)
{
    uint8_t *label = note + l->labels;
    char *text = (char *)note + l->names;
    for (size_t k = 0; !g->no_names && k < g->label_cap; k++) { /* in the order of labels, whatever order they
                                                                   came in */
        if (!g->named[k].at) continue;
        const char *name = g->names + g->named[k].at - 1;
        mri_put_le64(label, k);
        label += 8;
        memcpy(text, name, strlen(name) + 1);
        text += strlen(name) + 1;
    }
}

int mri_tf_note(const mri_tf_gather *g, uint8_t **out, size_t *bytes, mr_error *err)
{
    char rest[MR_MAX_FIELDS * REST_LINE + MRI_TF_LINES * (MRI_TF_TOLD + 2)];
    const sizes s = sizes_of(g, put_rest(g, rest));
    const layout l = lay_out(&s);
    uint8_t *note = calloc(1, (size_t)l.all);
    if (!note) return no_memory(err);
    const bool one_shape = g->raw && !g->encoded && !g->shapes_differ;
    mri_put_le32(note, s.flags);
    mri_put_le32(note + 4, (uint32_t)s.keys);
    for (size_t k = 0; k < 3; k++) mri_put_le64(note + 8 + 8 * k, one_shape ? g->dim[k] : 0);
    mri_put_le64(note + 32, s.name_count);
    mri_put_le64(note + 40, s.names);
    mri_put_le64(note + 48, s.boxes);
    mri_put_le64(note + 56, s.samples);
    char *key = (char *)note + l.keys;
    for (int k = 0; k < MRI_TF_FEATURES; k++) {
        const size_t key_bytes = g->key[k] ? strlen(g->key[k]) : 0;
        if (key_bytes) memcpy(key, g->key[k], key_bytes);
        key += key_bytes + 1;
    }
    put_names(note, &l, g);
    if (s.flags & HAS_BOXES) memcpy(note + l.start, g->start, (size_t)(l.box - l.start));
    if (s.boxes) memcpy(note + l.box, g->box, (size_t)(l.box_label - l.box));
    if (s.boxes && s.flags & HAS_BOX_LABELS)
        memcpy(note + l.box_label, g->box_label, (size_t)s.boxes * sizeof *g->box_label);
    mri_put_le64(note + 64, s.rest);
    memcpy(note + l.rest, rest, (size_t)s.rest);
    *out = note;
    *bytes = (size_t)l.all;
    return MR_OK;
}

/* ---- facts ---- */
static bool read_sizes(const uint8_t *note, size_t bytes, sizes *s)
{
    if (bytes < HEAD) return false;
    *s = (sizes){mri_le32(note + 4),  mri_le64(note + 32), mri_le64(note + 40), mri_le64(note + 48),
                 mri_le64(note + 56), mri_le64(note + 64), mri_le32(note)};
    return s->flags <= (HAS_BOXES | HAS_BOX_LABELS) && s->keys <= bytes && s->name_count <= bytes &&
           s->names <= bytes && s->boxes <= bytes && s->rest <= bytes && s->samples < (uint64_t)1 << 40;
}

/* Do exactly `count` texts, each with its 0, fill the bytes? */
static bool texts_fit(const uint8_t *p, uint64_t bytes, uint64_t count)
{
    uint64_t ends = 0;
    for (uint64_t k = 0; k < bytes; k++) ends += p[k] == 0;
    return ends == count && (bytes == 0 || p[bytes - 1] == 0);
}

static bool starts_fit(const uint64_t *start, uint64_t samples, uint64_t boxes)
{
    if (start[0] != 0 || start[samples] != boxes) return false;
    for (uint64_t k = 0; k < samples; k++)
        if (start[k] > start[k + 1]) return false;
    return true;
}

/* "TYPE COUNT NAME" */
static bool read_field(mr_field *out, const char *text)
{
    char *end;
    const unsigned long type = strtoul(text, &end, 10);
    if (*end != ' ') return false;
    const unsigned long long count = strtoull(end + 1, &end, 10);
    if (*end != ' ' || !end[1] || strlen(end + 1) > MR_MAX_NAME) return false;
    *out = mri_field(end + 1, (mr_type)type);
    switch (type) {
    case MR_TYPE_INT:
    case MR_TYPE_FLOAT:
    case MR_TYPE_BYTES:
    case MR_TYPE_TEXT: return count == 0;
    case MR_TYPE_TENSOR: break;
    default: return false;
    }
    out->dtype = MR_F32;
    out->ndim = count > 0;
    out->dim[0] = count;
    return count <= UINT32_MAX;
}

static bool read_rest(mri_tf_facts *out, const char *text, uint64_t bytes)
{
    uint32_t lines = 0;
    if (bytes && text[bytes - 1] != '\0') return false;
    for (const char *end = text + bytes; text < end; text += strlen(text) + 1) {
        if (text[0] == '!') {
            if (lines == MRI_TF_LINES) return false;
            out->told[lines++] = text + 1;
            continue;
        }
        if (out->more_count == MR_MAX_FIELDS - MRI_TF_OTHERS) return false;
        mr_field *f = &out->more[out->more_count];
        if (!read_field(f, text)) return false;
        out->key[MRI_TF_FEATURES + out->more_count++] = f->name;
    }
    return true;
}

bool mri_tf_facts_read(mri_tf_facts *out, const uint8_t *note, size_t bytes, uint64_t samples)
{
    sizes s;
    *out = (mri_tf_facts){0};
    if (!read_sizes(note, bytes, &s) || s.samples != samples) return false;
    const layout l = lay_out(&s);
    if (l.all != bytes || !texts_fit(note + l.keys, s.keys, MRI_TF_FEATURES) ||
        !texts_fit(note + l.names, s.names, s.name_count))
        return false;
    const char *key = (const char *)note + l.keys;
    for (int k = 0; k < MRI_TF_FEATURES; k++) {
        out->key[k] = *key ? key : NULL;
        key += strlen(key) + 1;
    }
    for (size_t k = 0; k < 3; k++) {
        out->dim[k] = mri_le64(note + 8 + 8 * k);
        if (out->dim[k] > UINT32_MAX || !out->dim[k] != !out->dim[0]) return false;
    }
    out->has_boxes = s.flags & HAS_BOXES;
    out->has_box_labels = s.flags & HAS_BOX_LABELS;
    out->start = (const uint64_t *)(const void *)(note + l.start);
    out->box = (const float *)(const void *)(note + l.box);
    out->box_label = (const int64_t *)(const void *)(note + l.box_label);
    out->name_count = s.name_count;
    out->name_label = note + l.labels;
    out->name_text = (const char *)note + l.names;
    if (!out->key[MRI_TF_IMAGE] || !read_rest(out, (const char *)note + l.rest, s.rest)) return false;
    if (!out->has_boxes) return s.boxes == 0;
    return out->key[MRI_TF_XMIN] && out->key[MRI_TF_YMIN] && out->key[MRI_TF_XMAX] && out->key[MRI_TF_YMAX] &&
           (!out->has_box_labels || out->key[MRI_TF_BOX_LABEL]) && starts_fit(out->start, samples, s.boxes);
}

enum { MOST_WITHOUT = 65536 }; /* numbers without a name, that have no sample */

int mri_tf_facts_names(mri_tf_facts *facts, uint32_t class_count, int64_t label_offset, mr_error *err)
{
    const uint8_t *label = facts->name_label;
    const char *text = facts->name_text;
    if (class_count == 0 || facts->name_count == 0 || class_count > facts->name_count + MOST_WITHOUT)
        return MR_OK;
    const char **names = calloc(class_count, sizeof *names);
    if (!names) return no_memory(err);
    for (uint64_t k = 0; k < facts->name_count; k++, label += 8, text += strlen(text) + 1) {
        int64_t class_idx;
        if (__builtin_sub_overflow((int64_t)mri_le64(label), label_offset, &class_idx)) continue;
        if (class_idx < 0 || class_idx >= class_count || names[class_idx]) continue;
        names[class_idx] = text;
    }
    for (uint32_t k = 0; k < class_count; k++)
        if (!names[k]) names[k] = "";
    facts->class_names = names;
    return MR_OK;
}

void mri_tf_facts_fini(mri_tf_facts *facts)
{
    free(facts->class_names);
    facts->class_names = NULL;
}
