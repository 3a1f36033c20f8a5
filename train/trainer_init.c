/* train/trainer_init.c: the weights that a run begins with, from a file of weights or another run's
 * checkpoint.
 *
 *   names matched    ──► all tensors found, shapes compared ──► read ──► put into replica 0 ──► sent to all
 *                        └──────── nothing was changed so far ────────┘
 *
 * Nothing is guessed: a tensor is not loaded only if the caller leaves it out, or if it belongs to the last
 * layer and the file has another number of classes. All of these are reported, and so are the file's other
 * tensors. */
#include <math.h>
#include <stdio.h>

#include "base/abi.h"
#include "base/floats.h"
#include "formats/arrays/tensor_file.h"
#include "train/state/weights.h"
#include "train/trainer.h"

/* Where weights come from: one of both. */
typedef struct origin {
    mri_tensor_file *file;
    mri_checkpoint *ck;
    uint32_t first, own; /* of a checkpoint: weights and statistics, or the averages of them */
} origin;

typedef struct taking {
    mr_trainer *t;
    const mr_take_config *cfg;
    origin from;
    mr_weight_names names;
    mri_weight_place *place; /* of the trainer's own tensors, as the file has them */
    uint32_t *source;        /* of each: where in the file; UINT32_MAX: it is not taken */
    bool *used;              /* of each of the file's */
    bool *skipped;           /* by layer */
    uint32_t head;           /* the layer that is left out for its classes; UINT32_MAX: none is */
    uint64_t file_classes;
    mr_error *err;
} taking;

/* ---- the file's tensors ---- */

static uint32_t entry_count(const origin *o) { return o->file ? mri_tensor_file_count(o->file) : o->own; }

static const char *entry_name(const origin *o, uint32_t i)
{
    return o->file ? mri_tensor_file_at(o->file, i)->name : o->ck->tensors[i].name;
}

static void entry_shape(const origin *o, uint32_t i, uint32_t *ndim, const uint64_t **dim)
{
    *ndim = o->file ? mri_tensor_file_at(o->file, i)->ndim : o->ck->tensors[i].ndim;
    *dim = o->file ? mri_tensor_file_at(o->file, i)->dim : o->ck->tensors[i].dim;
}

static uint32_t find_entry(const origin *o, const char *name)
{
    if (o->file) return mri_tensor_file_find(o->file, name);
    for (uint32_t i = 0; i < o->own; i++)
        if (strcmp(o->ck->tensors[i].name, name) == 0) return i;
    return UINT32_MAX;
}

static int wrong_file(const taking *k, int code)
{
    mr_error_at(k->err, k->cfg->path, MR_NOWHERE, MR_NOWHERE);
    return code;
}

static int open_checkpoint(taking *k, const char *path)
{
    origin *o = &k->from;
    const char *model = mr_net_name(k->t->cfg.net);
    int rc = mri_checkpoint_open(&o->ck, path, k->err);
    if (rc) return rc;
    while (o->own < o->ck->tensor_count && o->ck->tensors[o->own].role <= MRI_ROLE_STATE) o->own++;
    const bool average = o->ck->info.average > 0 && !k->cfg->no_average;
    if (average && o->ck->tensor_count < 2 * o->own)
        return wrong_file(k,
                          mr_error_set(k->err, MR_EFORMAT, "the checkpoint has fewer averages than weights"));
    o->first = average ? o->ck->tensor_count - o->own : 0;
    if (strcmp(o->ck->info.model, model) != 0)
        return wrong_file(k, mr_error_set(k->err, MR_EINVAL, "the checkpoint is of model %s: expected %s",
                                          o->ck->info.model, model));
    return mri_checkpoint_verify(o->ck, k->err); /* all of it before any weight changes */
}

/* A file of weights, else a checkpoint, or a folder of them. */
static int open_origin(taking *k)
{
    char found[4096], note[1024] = "";
    mr_checkpoint_info info;
    if (mri_is_tensor_file(k->cfg->path)) return mri_tensor_file_open(&k->from.file, k->cfg->path, k->err);
    if (mri_tensor_file_kind(k->cfg->path)) return mri_tensor_file_open(&k->from.file, k->cfg->path, k->err);
    const int rc = mr_checkpoint_find(k->cfg->path, found, sizeof found, &info, note, sizeof note, k->err);
    if (note[0] && k->cfg->on_note) k->cfg->on_note(k->cfg->context, note);
    return rc ? rc : open_checkpoint(k, found);
}

/* ---- names ---- */

static uint32_t count_found(const taking *k, const mri_weight_place *place)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < k->t->tensors.own; i++)
        found += find_entry(&k->from, place[i].name) != UINT32_MAX;
    return found;
}

static int no_names(const taking *k, const mri_weight_place *own, const mri_weight_place *theirs)
{
    const char *first = entry_count(&k->from) ? entry_name(&k->from, 0) : "none";
    if (theirs)
        mr_error_set(
            k->err, MR_EINVAL,
            "its names do not belong to network %s: expected ours (%s) or torchvision's (%s), found %.200s",
            mr_net_name(k->t->cfg.net), own[0].name, theirs[0].name, first);
    else
        mr_error_set(k->err, MR_EINVAL,
                     "its names do not belong to network %s: expected ours (%s), found %.200s",
                     mr_net_name(k->t->cfg.net), own[0].name, first);
    return wrong_file(k, MR_EINVAL);
}

/* Ours or torchvision's: whichever the file has more of. */
static int tell_names(taking *k)
{
    const mr_trainer *t = k->t;
    const uint32_t own = t->tensors.own;
    mri_weight_place *theirs = NULL;
    k->place = calloc(own ? own : 1, sizeof *k->place);
    k->source = calloc(own ? own : 1, sizeof *k->source);
    k->skipped = calloc((size_t)t->cfg.net->layer_count + 1, sizeof *k->skipped);
    k->used = calloc((size_t)entry_count(&k->from) + 1, sizeof *k->used);
    if (!k->place || !k->source || !k->skipped || !k->used)
        return mr_error_set(k->err, MR_ENOMEM, "no memory for the names of %u tensors", own);
    mri_weights_own(t->tensors.desc, own, k->place);
    k->names = MR_NAMES_OWN;
    const uint32_t ours = count_found(k, k->place);
    int rc = MR_OK;
    if (k->from.file && mri_weights_has_torchvision(t->cfg.net->name)) {
        theirs = calloc(own ? own : 1, sizeof *theirs);
        if (!theirs) return mr_error_set(k->err, MR_ENOMEM, "no memory for the names of %u tensors", own);
        rc = mri_weights_torchvision(t->cfg.net, t->tensors.desc, own, theirs, ours ? NULL : k->err);
        if (rc) { /* of another size: then it goes by ours */
            free(theirs);
            theirs = NULL;
            if (!ours) return wrong_file(k, rc);
        }
    }
    const uint32_t others = theirs ? count_found(k, theirs) : 0;
    rc = ours || others ? MR_OK : no_names(k, k->place, theirs);
    if (others > ours) {
        memcpy(k->place, theirs, own * sizeof *theirs);
        k->names = MR_NAMES_TORCHVISION;
    }
    free(theirs);
    return rc;
}

/* ---- which of them ---- */

static uint32_t layer_of(const taking *k, uint32_t tensor)
{
    return (uint32_t)strtoul(k->t->tensors.desc[tensor].name, NULL, 10);
}

static bool same_shape(const mri_weight_place *p, uint32_t ndim, const uint64_t *dim)
{
    return p->ndim == ndim && memcmp(p->dim, dim, ndim * sizeof *dim) == 0;
}

/* "64 x 3", of at most 8 dimensions. */
static const char *shape_text(uint32_t ndim, const uint64_t *dim, char *buf, size_t buf_bytes)
{
    size_t at = 0;
    snprintf(buf, buf_bytes, "one number");
    for (uint32_t d = 0; d < ndim && at < buf_bytes; d++)
        at +=
            (size_t)snprintf(buf + at, buf_bytes - at, "%s%llu", d ? " x " : "", (unsigned long long)dim[d]);
    return buf;
}

/* The last layer is left out when its rows alone are of another number: classes. */
static void find_head(taking *k)
{
    const mri_tensors *t = &k->t->tensors;
    bool *head = calloc((size_t)k->t->cfg.net->layer_count + 1, sizeof *head);
    k->head = UINT32_MAX;
    if (!head || mr_net_choose(k->t->cfg.net, "head", head, NULL)) {
        free(head);
        return;
    }
    for (uint32_t i = 0; i < t->own; i++) {
        const uint32_t at = find_entry(&k->from, k->place[i].name);
        uint32_t ndim;
        const uint64_t *dim;
        if (!head[layer_of(k, i)] || k->skipped[layer_of(k, i)] || at == UINT32_MAX || k->place[i].ndim < 2)
            continue;
        entry_shape(&k->from, at, &ndim, &dim);
        if (ndim != k->place[i].ndim || dim[0] == k->place[i].dim[0] ||
            memcmp(dim + 1, k->place[i].dim + 1, (ndim - 1) * sizeof *dim) != 0)
            continue;
        k->head = layer_of(k, i);
        k->file_classes = dim[0];
    }
    free(head);
}

static int choose_skipped(taking *k)
{
    const char *skip = k->cfg->skip;
    if (skip && *skip) {
        const int rc = mr_net_choose(k->t->cfg.net, skip, k->skipped, k->err);
        if (rc) return rc;
    }
    find_head(k);
    if (k->head != UINT32_MAX) k->skipped[k->head] = true;
    return MR_OK;
}

static int missing(const taking *k, uint32_t i)
{
    const mr_trainer *t = k->t;
    uint32_t more = 0;
    for (uint32_t n = i + 1; n < t->tensors.own; n++)
        more += !k->skipped[layer_of(k, n)] && find_entry(&k->from, k->place[n].name) == UINT32_MAX;
    mr_error_set(
        k->err, MR_EINVAL,
        "it has no %s, which network %s needs for layer %u, and %u others are missing, too; leave their "
        "layers out by name (--init-skip), or take a file of this network",
        k->place[i].name, mr_net_name(t->cfg.net), layer_of(k, i), more);
    return wrong_file(k, MR_EINVAL);
}

static int other_shape(const taking *k, uint32_t i, uint32_t ndim, const uint64_t *dim)
{
    char found[256], expected[256];
    mr_error_set(k->err, MR_EINVAL,
                 "%s is %s: expected %s, as network %s has it in layer %u; leave that layer out by name "
                 "(--init-skip), or take a file of this network",
                 k->place[i].name, shape_text(ndim, dim, found, sizeof found),
                 shape_text(k->place[i].ndim, k->place[i].dim, expected, sizeof expected),
                 mr_net_name(k->t->cfg.net), layer_of(k, i));
    return wrong_file(k, MR_EINVAL);
}

/* Every tensor that is wanted, with its place in the file. */
static int match(taking *k)
{
    const mri_tensors *t = &k->t->tensors;
    bool any = false;
    for (uint32_t i = 0; i < t->own; i++) {
        uint32_t ndim;
        const uint64_t *dim;
        k->source[i] = UINT32_MAX;
        if (k->skipped[layer_of(k, i)]) continue;
        const uint32_t at = find_entry(&k->from, k->place[i].name);
        if (at == UINT32_MAX) return missing(k, i);
        entry_shape(&k->from, at, &ndim, &dim);
        if (!same_shape(&k->place[i], ndim, dim)) return other_shape(k, i, ndim, dim);
        k->source[i] = at;
        k->used[at] = any = true;
    }
    return any ? MR_OK
               : mr_error_set(k->err, MR_EINVAL, "skip \"%s\": nothing is left to take", k->cfg->skip);
}

/* ---- numbers ---- */

static int read_tensor(const taking *k, uint32_t i, float *out, float *room)
{
    const mri_weight_place *p = &k->place[i];
    const uint64_t count = k->t->tensors.desc[i].count;
    const bool moved = mri_weight_is_moved(p);
    float *to = moved ? room : out;
    const int rc = k->from.file ? mri_tensor_file_read(k->from.file, k->source[i], to, k->err)
                                : mri_checkpoint_read(k->from.ck, k->from.first + k->source[i], to, k->err);
    if (rc) return rc;
    if (moved) mri_weight_from_file(p, room, out);
    for (uint64_t n = 0; n < count; n++)
        if (!isfinite(out[n])) {
            mr_error_set(k->err, MR_EFORMAT, "%s has a number that is not finite", p->name);
            return wrong_file(k, MR_EFORMAT);
        }
    return MR_OK;
}

/* Weights, and what begins as they do: averages, and the weights that Lookahead goes back to. */
static int put_tensor(const taking *k, uint32_t i, const float *values)
{
    const mri_tensors *t = &k->t->tensors;
    const mri_tensor_desc *d = &t->desc[i];
    const mri_replica *first = &k->t->team.replicas[0];
    int rc = mri_tensor_import(t, first, i, values, k->err);
    for (uint32_t n = t->own; rc == MR_OK && n < t->count; n++) {
        const bool average = t->desc[n].role == mri_role_averaged(d->role),
                   slow = mri_tensors_is_lookahead(t, first, n);
        if ((average || slow) && strcmp(t->desc[n].name, d->name) == 0 && t->desc[n].count == d->count)
            rc = mri_tensor_import(t, first, n, values, k->err);
    }
    return rc;
}

/* All of it is read once before any of it is put anywhere: a number that is not finite, or a file that ends,
 * changes nothing. */
static int move_tensors(const taking *k)
{
    const mri_tensors *t = &k->t->tensors;
    float *values = malloc((size_t)t->most_floats * sizeof *values),
          *room = malloc((size_t)t->most_floats * sizeof *room);
    int rc = values && room ? MR_OK : mr_error_set(k->err, MR_ENOMEM, "no memory to take weights");
    for (int put = 0; rc == MR_OK && put < 2; put++)
        for (uint32_t i = 0; rc == MR_OK && i < t->own; i++) {
            if (k->source[i] == UINT32_MAX) continue;
            rc = read_tensor(k, i, values, room);
            if (rc == MR_OK && put) rc = put_tensor(k, i, values);
        }
    free(values);
    free(room);
    return rc;
}

/* ---- reports ---- */

enum { LINE_MOST = 100 };

typedef struct list {
    const taking *k;
    const char *before;
    char text[LINE_MOST + MRI_WEIGHT_NAME + 256];
    size_t at;
} list;

static void put_line(list *l)
{
    if (l->at && l->k->cfg->on_note) l->k->cfg->on_note(l->k->cfg->context, l->text);
    l->at = 0;
}

/* Names in lines that can be read, each with its kind. */
static void put_name(list *l, const char *name)
{
    if (l->at + strlen(name) > LINE_MOST) put_line(l);
    const int n =
        snprintf(l->text + l->at, sizeof l->text - l->at, "%s%.200s", l->at ? ", " : l->before, name);
    l->at += n > 0 ? (size_t)n : 0;
    if (l->at >= sizeof l->text) l->at = sizeof l->text - 1;
}

static bool is_counter(const char *name)
{
    static const char counter[] = ".num_batches_tracked";
    const size_t n = strlen(name);
    return n >= sizeof counter - 1 && strcmp(name + n - (sizeof counter - 1), counter) == 0;
}

static void tell(const taking *k, mr_take_report *report)
{
    const mri_tensors *t = &k->t->tensors;
    char line[512];
    uint32_t counters = 0;
    list left = {.k = k, .before = "not taken: "}, unused = {.k = k, .before = "in the file and not used: "};
    for (uint32_t i = 0; i < t->own; i++) {
        if (k->source[i] != UINT32_MAX) report->taken++;
        else report->left++, put_name(&left, k->place[i].name);
    }
    put_line(&left);
    if (k->head != UINT32_MAX) {
        snprintf(line, sizeof line,
                 "layer %u, the last with weights, begins anew: the file has %llu classes, this network %u",
                 k->head, (unsigned long long)k->file_classes, mr_net_class_count(k->t->cfg.net));
        if (k->cfg->on_note) k->cfg->on_note(k->cfg->context, line);
    }
    for (uint32_t i = 0; i < entry_count(&k->from); i++) {
        const char *name = entry_name(&k->from, i);
        if (k->used[i]) continue;
        report->unused++;
        if (k->names == MR_NAMES_TORCHVISION && is_counter(name)) counters++;
        else put_name(&unused, name);
    }
    put_line(&unused);
    if (!counters || !k->cfg->on_note) return;
    snprintf(line, sizeof line,
             "in the file and not used: %u num_batches_tracked, which statistics here need not", counters);
    k->cfg->on_note(k->cfg->context, line);
}

/* ---- all of it ---- */

static int take(taking *k, mr_take_report *report)
{
    int rc = open_origin(k);
    if (rc == MR_OK) rc = tell_names(k);
    if (rc == MR_OK) rc = choose_skipped(k);
    if (rc == MR_OK) rc = match(k);
    if (rc == MR_OK) rc = move_tensors(k);
    if (rc) return rc;
    report->names = k->names;
    report->average = k->from.first > 0;
    tell(k, report);
    return MR_OK;
}

static void end_taking(taking *k)
{
    mri_tensor_file_close(k->from.file);
    mri_checkpoint_close(k->from.ck);
    free(k->place);
    free(k->source);
    free(k->skipped);
    free(k->used);
}

void mr_take_defaults_sized(mr_take_config *cfg, size_t struct_size)
{
    const mr_take_config full = {.struct_size = sizeof full};
    mri_settings_give(cfg, struct_size, &full, sizeof full);
}

int mr_trainer_take_sized(mr_trainer *t, const mr_take_config *cfg, mr_take_report *out, mr_error *err)
{
    MRI_DEFAULT_FLOATS;
    MRI_OWN(err, t);
    const mri_ranks *ranks = &t->team.ranks;
    mr_take_config own = {.struct_size = sizeof own};
    mr_take_report report = {.struct_size = sizeof report};
    int rc = mri_result_check(out, err);
    if (rc == MR_OK) rc = mri_settings_take(&own, sizeof own, cfg, "take", err);
    if (rc == MR_OK && !own.path)
        rc = mr_error_set(err, MR_EINVAL, "a file of weights, or a checkpoint, is needed");
    if (rc == MR_OK && t->updates > 0)
        rc = mr_error_set(err, MR_EINVAL, "weights are taken before the first update, and %llu are done",
                          (unsigned long long)t->updates);
    if (rc == MR_OK) rc = mri_team_error(&t->team, err);
    if (rc) return rc;
    taking k = {.t = t, .cfg = &own, .err = err, .head = UINT32_MAX};
    if (ranks->rank == 0) rc = take(&k, &report); /* the first process reads, for all */
    end_taking(&k);
    rc = mri_ranks_share_error(ranks, rc, err);
    if (rc == MR_OK) rc = mri_ranks_tell(ranks, &report, sizeof report, err);
    if (rc == MR_OK) rc = mri_trainer_share_all(t, err);
    if (rc == MR_OK) mri_result_give(out, &report, sizeof report);
    return rc;
}
