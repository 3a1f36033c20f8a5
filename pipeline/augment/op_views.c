/* pipeline/augment/op_views.c: several views of each picture in evaluation, another one in every epoch. */
#include "pipeline/augment/frame.h"
#include "pipeline/augment/spec.h"

struct views {
    uint32_t straight; /* views before the mirrored ones; 0: no mirrored views */
};

/* The last operation so far that takes a window whose place is known. */
static mri_op *last_window(mr_augment *a)
{
    for (uint32_t k = a->op_count; k-- > 0;)
        if (a->op[k].type->place) return &a->op[k];
    return NULL;
}

static int read_views(mri_spec *s)
{
    static const struct {
        const char *name;
        uint32_t count, straight;
        bool corners;
    } kinds[] = {{"flip", 2, 1, false}, {"five", 5, 0, true}, {"ten", 10, 5, true}};
    const char *start = s->at;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(kinds); k++) {
        if (!mri_spec_word(s, kinds[k].name)) continue;
        mri_op *window = last_window(s->a);
        if (s->a->views) return mri_spec_fail(s, start, "it is there already, once is enough");
        if (kinds[k].corners && !window)
            return mri_spec_fail(s, start,
                                 "no crop stands before it that could take the corners; add one, such as "
                                 "resize(256),center(224)");
        if (kinds[k].corners) mri_augment_take_corners(window);
        s->a->views = kinds[k].count;
        MRI_OP_ARGS(struct views, &s->op)->straight = kinds[k].straight;
        mri_spec_put(s, "%s", kinds[k].name);
        return MR_OK;
    }
    return mri_spec_fail(s, start, "expected %s", s->usage);
}

static bool mirrors(const mri_frame *f, const mri_op *op)
{
    const uint32_t straight = MRI_OP_ARGS(struct views, op)->straight;
    return straight && f->key.epoch % f->a->views >= straight;
}

const mri_op_type mri_ops_views[] = {
    {.name = "views",
     .usage = "views(flip|five|ten)",
     .help = "in evaluation alone: epoch e shows view e of each picture. flip: as it\n"
             "is, then mirrored. five: the middle that a centre crop takes, then the\n"
             "four corners. ten: these five, then the five mirrored",
     .read = read_views,
     .evaluate = mri_augment_add,
     .mirrors = mirrors,
     .evaluates = true},
    {0},
};
