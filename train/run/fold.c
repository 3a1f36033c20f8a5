/* train/run/fold.c: see fold.h. */
#include "train/run/fold.h"

void mri_folds_init(mri_folds *f, uint32_t all, uint32_t first, uint32_t count)
{
    mr_sum_node waiting[MR_SUM_MOST_NODES];
    uint32_t top = 0;
    *f = (mri_folds){.count = count};
    for (uint32_t i = 0; i < count; i++) {
        mr_sum_node come = {first + i, 1};
        f->of[i].waiting = top;
        /* what waits last is the first child of a node whose second has come */
        while (top > 0 &&
               mr_sum_cover(all, waiting[top - 1].first, waiting[top - 1].count + come.count, NULL) == 1) {
            top--;
            f->of[i].merges++;
            come = (mr_sum_node){waiting[top].first, waiting[top].count + come.count};
        }
        if (i + 1 == count) break;
        waiting[top++] = come;
        if (top > f->terms) f->terms = top;
    }
    f->left = top;
}
