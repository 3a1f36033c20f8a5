/* tools/plan/plan_forms.c: the cost of some samples in other forms, as ratios to their present cost: it does
 * not matter then which samples they are or how busy the machine is. */
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/plan/plan.h"
#include "tools/trial/forms.h"

static const struct {
    const char *name;
    form_spec form;
} forms[PLAN_FORMS] = {
    {"jpeg records", {.store = MR_STORE_JPEG}},
    {"coefficient records", {.store = MR_STORE_COEF}},
    {"raw records", {.store = MR_STORE_RAW}},
};

static double times_of(double then, double now) { return now > 0 ? then / now : 1; }

static int measure(const form_sample *f, const tool_session *s, plan_result *p, mr_error *err)
{
    const mr_loader_config *like = &s->loader_cfg;
    form_cost now, then, there;
    int rc = form_measure(f->now, like, &now, err);
    if (rc == MR_OK) rc = form_measure_there(s->src, like, &there, err);
    for (int i = 0; i < PLAN_FORMS && rc == MR_OK && !interrupt_flag; i++) {
        mr_error none = MR_ERROR_INIT;
        mr_convert_result made;
        const bool is_jpeg = forms[i].form.store == MR_STORE_JPEG;
        if (form_convert(f, &forms[i].form, &made, &none) && (!is_jpeg || made.with_entries > 0) &&
            form_measure(f->then, like, &then, &none) == MR_OK && now.decode_ms > 0 && now.bytes > 0)
            p->form[i] = (plan_form){.name = forms[i].name,
                                     .decode_times = then.decode_ms / now.decode_ms,
                                     .read_core_times = times_of(then.read_core_ms, there.read_core_ms),
                                     .bytes_times = then.bytes / now.bytes};
    }
    return rc;
}

int plan_measure_forms(const tool_session *s, plan_result *p)
{
    mr_error err = MR_ERROR_INIT;
    form_sample f;
    if (mr_source_info_of(s->src)->image_field < 0 || s->loader_cfg.field_count) return EXIT_DONE;
    int status = form_sample_make(&f, s->src, ", or leave forms out by --no-forms");
    if (status == EXIT_DONE && !interrupt_flag) {
        const int rc = measure(&f, s, p, &err);
        if (rc != MR_OK) status = exit_status(rc, &err);
    }
    form_sample_remove(&f);
    return status == EXIT_DONE && interrupt_flag ? EXIT_SIGNAL + interrupt_flag : status;
}
