/* pipeline/observe/counter.c: see counter.h. */
#include "pipeline/observe/counter.h"

mr_stage_stats mri_stage_stats(const mri_stage_counter *c, uint32_t threads)
{
    mr_stage_stats s = {.busy_ns = mri_counted(&c->busy_ns),
                        .blocked_in_ns = mri_counted(&c->wait_ns[MRI_WAIT_INPUT]),
                        .blocked_out_ns = mri_counted(&c->wait_ns[MRI_WAIT_ROOM]) +
                                          mri_counted(&c->wait_ns[MRI_WAIT_BUFFER]),
                        .items = mri_counted(&c->items),
                        .threads = threads};
    const uint64_t n = mri_counted(&c->fill_samples);
    if (n) s.occupancy = (double)mri_counted(&c->fill_sum) / (double)n / 65536.0;
    return s;
}
