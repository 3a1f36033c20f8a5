/* kernels/backend/sum_tree.c: see sum_tree.h. */
#include <stdlib.h>

#include "base/util.h"
#include "kernels/backend/sum_tree.h"

/* Leaves of a node's first child: the largest power of two below n; n > 1. */
static uint32_t sum_first_half(uint32_t n)
{
    uint32_t half = 1;
    while (2 * half < n) half *= 2;
    return half;
}

bool mri_sum_is_node(uint32_t leaves, mr_sum_node node)
{
    mr_sum_node at = {0, leaves};
    while (at.first != node.first || at.count != node.count) {
        if (at.count <= node.count || at.count < 2) return false;
        const uint32_t half = sum_first_half(at.count);
        if (node.first < at.first + half) at.count = half;
        else at = (mr_sum_node){at.first + half, at.count - half};
    }
    return true;
}

/* Collect the nodes under `at` that cover [from, to), in order. */
static uint32_t cover(mr_sum_node at, uint32_t from, uint32_t to, mr_sum_node *out, uint32_t found)
{
    if (at.first >= to || at.first + at.count <= from) return found;
    if (at.first >= from && at.first + at.count <= to) {
        if (out) out[found] = at;
        return found + 1;
    }
    const uint32_t half = sum_first_half(at.count);
    found = cover((mr_sum_node){at.first, half}, from, to, out, found);
    return cover((mr_sum_node){at.first + half, at.count - half}, from, to, out, found);
}

uint32_t mr_sum_cover(uint32_t leaves, uint32_t first, uint32_t count, mr_sum_node *out)
{
    if (count == 0 || leaves > MR_SUM_MOST_LEAVES || first >= leaves || count > leaves - first) return 0;
    return cover((mr_sum_node){0, leaves}, first, first + count, out, 0);
}

/* ---- programs ---- */

static uint32_t find(const mr_sum_node *have, uint32_t count, mr_sum_node node)
{
    uint32_t i = 0;
    while (i < count && (have[i].first != node.first || have[i].count != node.count)) i++;
    return i;
}

typedef struct compiling {
    mri_sum_program *p;
    const mr_sum_node *have;
    uint32_t have_count, stack;
} compiling;

static void step(compiling *c, enum mri_sum_what what, uint32_t array)
{
    c->p->steps[c->p->count++] = (mri_sum_step){what, array};
    if (what == MRI_SUM_TAKE) c->stack++;
    if (what == MRI_SUM_FOLD) c->stack--;
    c->p->depth = (uint32_t)mri_max_u64(c->p->depth, c->stack);
}

static int compile(compiling *c, mr_sum_node node)
{
    const uint32_t array = find(c->have, c->have_count, node);
    if (array < c->have_count) {
        step(c, MRI_SUM_TAKE, array);
        return MR_OK;
    }
    if (node.count < 2) return MR_EINVAL;
    const uint32_t half = sum_first_half(node.count);
    const mr_sum_node second = {node.first + half, node.count - half};
    const int rc = compile(c, (mr_sum_node){node.first, half});
    const uint32_t direct = find(c->have, c->have_count, second);
    if (rc == MR_OK && direct < c->have_count) step(c, MRI_SUM_ADD, direct);
    if (rc || direct < c->have_count) return rc;
    const int later = compile(c, second);
    if (later == MR_OK) step(c, MRI_SUM_FOLD, 0);
    return later;
}

int mri_sum_program_init(mri_sum_program *p, uint32_t leaves, mr_sum_node want, const mr_sum_node *have,
                         uint32_t count)
{
    *p = (mri_sum_program){.steps = calloc(2 * (size_t)count + 1, sizeof *p->steps)};
    if (!p->steps) return MR_ENOMEM;
    compiling c = {.p = p, .have = have, .have_count = count};
    if (!mri_sum_is_node(leaves, want)) return MR_EINVAL;
    return compile(&c, want);
}

void mri_sum_program_fini(mri_sum_program *p)
{
    free(p->steps);
    *p = (mri_sum_program){0};
}
