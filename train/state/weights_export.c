/* train/state/weights_export.c: the weights of a checkpoint as a file that other programs read. */
#include <stdio.h>

#include "base/abi.h"
#include "formats/arrays/tensor_file.h"
#include "train/state/weights.h"

typedef struct exporting {
    mri_checkpoint *ck;
    mr_net *net;    /* torchvision's names: which points are flattened */
    uint32_t own;   /* weights and running statistics */
    uint32_t first; /* where in the checkpoint they begin: its own, or the averages of them */
    mri_weight_place *place;
    mri_tensor_entry *entry;
} exporting;

static int name_tensors(exporting *x, mr_weight_names names, mr_error *err)
{
    const mr_checkpoint_info *i = &x->ck->info;
    while (x->own < x->ck->tensor_count && x->ck->tensors[x->own].role <= MRI_ROLE_STATE) x->own++;
    x->place = calloc(x->own ? x->own : 1, sizeof *x->place);
    x->entry = calloc(x->own ? x->own : 1, sizeof *x->entry);
    if (!x->place || !x->entry)
        return mr_error_set(err, MR_ENOMEM, "no memory for the names of %u tensors", x->own);
    if (names == MR_NAMES_OWN) {
        mri_weights_own(x->ck->tensors, x->own, x->place);
        return MR_OK;
    }
    const mr_model *model = mr_model_find(i->model);
    if (!model || !mri_weights_has_torchvision(i->model)) {
        char known[160];
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "torchvision's names are known of %s: not of %s, which goes by our own",
                            mri_weights_torchvision_models(known, sizeof known), i->model);
    }
    const int rc = mr_model_build(model, i->h, i->w, i->c, i->classes, &x->net, err);
    return rc ? rc : mri_weights_torchvision(x->net, x->ck->tensors, x->own, x->place, err);
}

/* Averages stand last, in the order of their tensors. */
static int choose_first(exporting *x, bool no_average, mr_error *err)
{
    x->first = 0;
    if (no_average || x->ck->info.average == 0) return MR_OK;
    if (x->ck->tensor_count < 2 * x->own)
        return mr_error_set(err, MR_EFORMAT, "damaged checkpoint: it has fewer averages than weights");
    x->first = x->ck->tensor_count - x->own;
    for (uint32_t i = 0; i < x->own; i++)
        if (strcmp(x->ck->tensors[x->first + i].name, x->ck->tensors[i].name) != 0 ||
            x->ck->tensors[x->first + i].count != x->ck->tensors[i].count ||
            x->ck->tensors[x->first + i].role != mri_role_averaged(x->ck->tensors[i].role))
            return mr_error_set(err, MR_EFORMAT,
                                "damaged checkpoint: averages in another order than weights");
    return MR_OK;
}

static uint64_t list_entries(exporting *x)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < x->own; i++) {
        const mri_weight_place *p = &x->place[i];
        x->entry[i] = (mri_tensor_entry){.name = p->name, .ndim = p->ndim, .count = x->ck->tensors[i].count};
        memcpy(x->entry[i].dim, p->dim, sizeof p->dim);
        most = mri_max_u64(most, x->entry[i].count);
    }
    return most;
}

static int put_tensors(const exporting *x, mri_tensor_writer *w, uint64_t most, mr_error *err)
{
    float *own = malloc((size_t)most * sizeof *own), *moved = malloc((size_t)most * sizeof *moved);
    int rc = own && moved ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory to write weights");
    for (uint32_t i = 0; rc == MR_OK && i < x->own; i++) {
        const bool moves = mri_weight_is_moved(&x->place[i]);
        rc = mri_checkpoint_read(x->ck, x->first + i, own, err);
        if (rc == MR_OK && moves) mri_weight_to_file(&x->place[i], own, moved);
        if (rc == MR_OK) rc = mri_tensor_writer_put(w, moves ? moved : own, err);
    }
    free(own);
    free(moved);
    return rc;
}

/* The checkpoint itself must not be written over. */
static const char *is_checkpoint(const void *context, const struct stat *st)
{
    const mri_checkpoint *ck = context;
    struct stat own;
    return fstat(ck->fd, &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino ? ck->path : NULL;
}

static int write_file(exporting *x, const char *path, const mr_weights_config *cfg, mr_weights_report *report,
                      mr_error *err)
{
    const mr_checkpoint_info *i = &x->ck->info;
    const mri_output_rules rules = {.force = cfg->force, .input = is_checkpoint, .context = x->ck};
    char input[64], classes[16];
    snprintf(input, sizeof input, "%ux%ux%u", i->h, i->w, i->c);
    snprintf(classes, sizeof classes, "%u", i->classes);
    const mri_tensor_note notes[] = {{"format", cfg->names == MR_NAMES_OWN ? "millrace" : "pt"},
                                     {"model", i->model},
                                     {"input", input},
                                     {"classes", classes},
                                     {"weights", x->first ? "average" : "trained"}};
    const uint64_t most = list_entries(x);
    mri_tensor_writer *w;
    int rc = mri_tensor_writer_open(&w, path, x->entry, x->own, notes, MRI_ARRAY_COUNT(notes), &rules, err);
    if (rc) return rc;
    rc = put_tensors(x, w, most, err);
    if (rc == MR_OK) rc = mri_tensor_writer_commit(w, &report->bytes, err);
    mri_tensor_writer_close(w);
    return rc;
}

void mr_weights_defaults_sized(mr_weights_config *cfg, size_t struct_size)
{
    const mr_weights_config full = {.struct_size = sizeof full};
    mri_settings_give(cfg, struct_size, &full, sizeof full);
}

int mr_weights_export_sized(const char *checkpoint, const char *path, const mr_weights_config *cfg,
                            mr_weights_report *out, mr_error *err)
{
    MRI_GIVEN(err, checkpoint);
    MRI_GIVEN(err, path);
    mr_weights_config own = {.struct_size = sizeof own};
    mr_weights_report report = {.struct_size = sizeof report};
    exporting x = {0};
    int rc = mri_result_check(out, err);
    if (rc == MR_OK && cfg) rc = mri_settings_take(&own, sizeof own, cfg, "weights", err);
    if (rc) return rc;
    if (own.names > MR_NAMES_TORCHVISION)
        return mr_error_set(err, MR_EINVAL, "names of weights %u: expected our own or torchvision's",
                            own.names);
    if (!mri_tensor_file_kind(path)) {
        mr_error_set(err, MR_EINVAL, "expected a name that ends in .safetensors or .npz");
        return mr_error_at(err, path, MR_NOWHERE, MR_NOWHERE);
    }
    rc = mri_checkpoint_open(&x.ck, checkpoint, err);
    if (rc) return rc;
    rc = name_tensors(&x, own.names, err);
    if (rc == MR_OK) rc = choose_first(&x, own.no_average, err);
    if (rc && err && !err->file[0]) mr_error_at(err, checkpoint, MR_NOWHERE, MR_NOWHERE);
    if (rc == MR_OK) rc = write_file(&x, path, &own, &report, err);
    report.tensors = x.own;
    report.average = x.first > 0;
    for (uint32_t i = 0; i < x.own; i++) report.numbers += x.ck->tensors[i].count;
    if (rc == MR_OK) mri_result_give(out, &report, sizeof report);
    mr_net_destroy(x.net);
    mri_checkpoint_close(x.ck);
    free(x.place);
    free(x.entry);
    return rc;
}
