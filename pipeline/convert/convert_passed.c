/* pipeline/convert/convert_passed.c: samples that an interrupted run passed over, and that its caller could
 * not keep (a full disk, no power). Nothing but the gaps between the records' source indices says which they
 * are; why they are bad is found by reading them again. */
#include "base/util.h"
#include "pipeline/convert/convert.h"
#include "pipeline/convert/convert_sample.h"

typedef struct passed {
    const mri_convert_plan *plan;
    mr_budget *budget; /* NULL until the first of them is read */
    mri_convert_desk desk;
    mri_convert_item item;
    uint64_t next; /* the first sample not looked at */
} passed;

static int prepare(passed *p, mr_error *err)
{
    if (p->budget) return MR_OK;
    const uint64_t asked = p->plan->cfg.memory_bytes;
    const int rc = mr_budget_create(&p->budget, asked ? asked : mri_memory_limit_bytes() / 2);
    if (rc) return mr_error_set(err, rc, "out of memory to look at bad samples again");
    mri_convert_desk_init(&p->desk, p->budget);
    return MR_OK;
}

static int tell(passed *p, uint64_t sample, mr_error *err)
{
    const mr_convert_config *cfg = &p->plan->cfg;
    mri_convert_item *item = &p->item;
    if (cfg->bad_told(cfg->context, sample)) return MR_OK;
    int rc = prepare(p, err);
    if (rc) return rc;
    item->source_index = sample;
    mri_seat_work(&p->desk.seat);
    mri_convert_sample(p->plan, &p->desk, item);
    mri_seat_rest(&p->desk.seat);
    if (item->fatal) {
        rc = item->rc;
        if (err) *err = item->error;
    } else if (item->rc) {
        cfg->on_bad(cfg->context, &item->error, MR_NOWHERE);
    } else {
        rc =
            mr_error_set(err, MR_EEXIST,
                         "cannot resume: this sample was bad when the interrupted run passed over it, and is "
                         "sound now; begin anew with force");
        mr_error_at(err, mr_source_info_of(p->plan->src)->path, MR_NOWHERE, sample);
    }
    mri_convert_item_clear(item);
    return rc;
}

/* All from p->next up to one that was not passed over. */
static int tell_up_to(void *context, uint64_t source, mr_error *err)
{
    passed *p = context;
    int rc = MR_OK;
    for (; !rc && p->next < source; p->next++) {
        rc = tell(p, p->next, err);
        if (!rc && p->plan->cfg.stop && *p->plan->cfg.stop)
            rc = mr_error_set(err, MR_ECANCELED, "stopped; the records so far are kept for resume");
    }
    p->next = source + 1;
    return rc;
}

int mri_convert_tell_passed(const mri_convert_plan *plan, void *state, uint64_t first, mr_error *err)
{
    if (!plan->cfg.on_bad || !plan->cfg.bad_told || !plan->kind->sources) return MR_OK;
    passed p = {.plan = plan};
    int rc = plan->kind->sources(state, tell_up_to, &p, err);
    if (!rc) rc = tell_up_to(&p, first, err);
    mri_convert_item_fini(&p.item);
    if (p.budget) mri_convert_desk_fini(&p.desk);
    mr_budget_destroy(p.budget);
    return rc;
}
