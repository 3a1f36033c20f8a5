/* tools/advise/advise.c: see advise.h. */
#include "tools/advise/advise.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/session/setup.h"
#include "tools/trial/convert_command.h"
#include "tools/trial/measure.h"

static void on_form(void *context, uint32_t at, uint32_t count, const char *name)
{
    progress_show(context, at, count, name);
}

static int measure(const mr_source *src, const advise_args *a, mr_advice *out)
{
    mr_error err = MR_ERROR_INIT;
    mr_advise_config cfg;
    progress_bar bar;
    mr_advise_defaults(&cfg);
    setup_decode(&cfg.decode, a->data);
    cfg.augment = a->augment;
    cfg.channels = a->channels;
    cfg.workers = a->workers;
    cfg.on_form = on_form;
    cfg.context = &bar;
    cfg.stop = &interrupt_flag;
    progress_start(&bar, "advise", "forms", a->quiet);
    bar.untimed = true;
    const int rc = mr_advise(src, &cfg, out, &err);
    progress_end(&bar);
    return measure_status(rc, &err);
}

const char *advise_set(const mr_advice *r, uint32_t form, char buf[64])
{
    const mr_form *f = &r->form[form].form;
    char resize[32] = "";
    if (form == 0) return NULL;
    if (f->resize) snprintf(resize, sizeof resize, " --resize %" PRIu32, f->resize);
    snprintf(buf, 64, "%s%s%s", f->transcode ? " --transcode" : "",
             f->store == MR_STORE_COEF  ? " --store coef"
             : f->store == MR_STORE_RAW ? " --store raw"
                                        : "",
             resize);
    return buf;
}

static void write_reason(advise_result *r)
{
    char size[32];
    const mr_advice_form *f = &r->advice.form[r->advice.best], *now = &r->advice.form[0];
    if (r->advice.best == 0) {
        snprintf(r->reason, sizeof r->reason,
                 "no form that keeps the pixels and fits on the disk gives %.0f %% more "
                 "samples/s than the data as they are",
                 100 * (1 / MR_ADVICE_NEARLY - 1));
        return;
    }
    snprintf(r->reason, sizeof r->reason,
             "%.2f times the samples/s of the data as they are, for %.2f times the bytes (%s, which %s)",
             f->expected_per_s / now->expected_per_s, f->total_bytes / now->total_bytes,
             mri_size_text(f->total_bytes, size, sizeof size),
             f->fits_memory ? "memory has room for" : "is more than memory has room for: storage limits");
}

int advise(const mr_source *src, const advise_args *a)
{
    static advise_result r; /* one command a process, and large for a stack frame */
    char set[64];
    r = (advise_result){.info = mr_source_info_of(src)};
    const int status = measure(src, a, &r.advice);
    if (status) return status;
    if (r.advice.best)
        convert_command(r.command, sizeof r.command, a->src_text, advise_set(&r.advice, r.advice.best, set));
    write_reason(&r);
    if (a->json) advise_print_json(&r);
    else advise_print_text(&r);
    return status;
}
