/* tools/plan/plan_forms.c: the cost of some samples in other forms, as ratios to their present cost: it does
 * not matter then which samples they are or how busy the machine is. */
#include "millrace/forms.h"
#include "tools/cli/exit.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/plan/plan.h"
#include "tools/trial/measure.h"

static const struct {
    const char *name;
    mr_form form;
} forms[PLAN_FORMS] = {
    {"jpeg records", {.store = MR_STORE_JPEG}},
    {"coefficient records", {.store = MR_STORE_COEF}},
    {"raw records", {.store = MR_STORE_RAW}},
};

static double times_of(double then, double now) { return now > 0 ? then / now : 1; }

static int measure(mr_form_trial *t, const tool_session *s, plan_result *p, mr_error *err)
{
    const mr_loader_config *like = &s->loader_cfg;
    mr_form_cost now, then, there;
    int rc = mr_form_trial_cost(t, false, like, &now, err);
    if (rc == MR_OK) rc = mr_form_cost_of(s->src, like, &interrupt_flag, &there, err);
    for (int i = 0; i < PLAN_FORMS && rc == MR_OK && !interrupt_flag; i++) {
        mr_error none = MR_ERROR_INIT;
        mr_convert_result result;
        bool made;
        const bool is_jpeg = forms[i].form.store == MR_STORE_JPEG;
        if (mr_form_trial_convert(t, &forms[i].form, &made, &result, &none) == MR_OK && made &&
            (!is_jpeg || result.with_entries > 0) &&
            mr_form_trial_cost(t, true, like, &then, &none) == MR_OK && now.decode_ms > 0 && now.bytes > 0)
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
    mr_form_trial *t;
    if (mr_source_info_of(s->src)->image_field < 0 || s->loader_cfg.field_count) return EXIT_DONE;
    int rc = mr_form_trial_open(&t, s->src, &interrupt_flag, &err);
    const bool copied = rc == MR_OK;
    if (copied) rc = measure(t, s, p, &err);
    mr_form_trial_close(t);
    if (interrupt_flag) return EXIT_SIGNAL + interrupt_flag;
    const int status = exit_status(rc, &err);
    if (!copied) say("samples are copied to measure other forms of storage; --no-forms leaves these out");
    return status;
}
