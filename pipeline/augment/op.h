/* pipeline/augment/op.h: defines an operation of the augmentation language: a row of a table. Private to this
 * room.
 *
 *   create.c  reads a specification: a row's read() takes what stands between the parentheses
 *   table.c   the families of rows, and the presets
 *   op_*.c    a family each: the syntax of its operations, and their effect on a picture
 *   own.c     rows that a program brings
 *   spec.c    the words and numbers of the language
 *   augment.c runs a sample: a row's run(), touch(), paint() or mirrors() works on the picture so far
 *             (frame.h)
 *
 * Nothing but an operation's own family knows its name, its arguments or its draws. */
#ifndef MRI_AUGMENT_OP_H
#define MRI_AUGMENT_OP_H

#include "base/util.h"
#include "millrace/pipeline.h"
#include "pipeline/augment/augment.h"

#define MRI_AUGMENT_MAX_OPS  32
#define MRI_AUGMENT_MAX_SIDE 32768

/* The fill for areas outside of a picture. */
typedef struct mri_fill {
    bool mean; /* the pixel that the device makes zero (mri_frame_mean()) */
    uint8_t value;
} mri_fill;

/* How a map (warp.h) looks the picture up. */
typedef struct mri_look {
    bool nearest; /* the pixel a centre falls on; else a mix */
    mri_fill fill;
} mri_look;

typedef struct mri_op_type mri_op_type;
typedef struct mri_spec mri_spec;
typedef struct mri_frame mri_frame;

/* An operation with its arguments. */
typedef struct mri_op {
    const mri_op_type *type;
    uint32_t index;         /* place in the specification: what draws depend on */
    uint32_t height, width; /* of the output picture; 0: as the input picture */
    bool shorter;           /* width is the length of the shorter side, height follows from the picture */
    bool takes_boxes;       /* crops go by the sample's boxes */
    uint32_t turns;         /* maps (warp.h) the picture goes through at most */
    _Alignas(8) uint8_t args[72]; /* what read() made of the other arguments: MRI_OP_ARGS() */
} mri_op;

/* The arguments of an operation as its family's struct, which start as zeros. A struct that is too large for
 * them does not compile. */
#define MRI_OP_ARGS(type, op)                                                                                \
    ((type *)((op)->args + 0 * sizeof(char[sizeof(type) <= sizeof(((mri_op *)0)->args) ? 1 : -1])))

/* A row of the table. One of mirrors, paint, touch, run, mix and fix is the operation's function. */
struct mri_op_type {
    const char *name;
    const char *usage; /* how it is written, for messages and the manual */
    const char *help;  /* its effect, for the manual: lines of at most 70 characters */

    /* Takes the arguments behind "(" into s->op and writes them down with all defaults. NULL: takes none. */
    int (*read)(mri_spec *s);
    /* Adds the operation's replacement in evaluation to the list. NULL: it is left out, like all random ones.
     */
    void (*evaluate)(mr_augment *a, const mri_op *op);

    /* Mixes two finished pictures by a draw; share: of the other picture, in 256ths, as a rule. Gives the
     * share that it is. In no list: it comes when a batch's pictures are there. */
    float (*mix)(mri_philox draw, uint32_t share, const mri_mixed *m);
    /* Is the picture to be mirrored? May be asked ahead of its turn. */
    bool (*mirrors)(const mri_frame *f, const mri_op *op);
    /* Changes pixels where they are, `count` of them with `channels` bytes each, by draws of the sample. It
     * must not matter where a pixel lies: flips that follow are folded in before. */
    void (*paint)(const mri_op *op, mri_sample_key key, uint8_t *pixels, size_t count, uint32_t channels);
    /* Changes the picture in place, full_w x full_h pixels of v.channels bytes, packed and as it is to be
     * seen: no flip is pending, and none that follows was folded in. Its size stays. */
    int (*touch)(mri_frame *f, const mri_op *op, uint8_t *pixels);
    /* Moves pixels: makes another picture of the one so far, with the functions of frame.h. */
    int (*run)(mri_frame *f, const mri_op *op);
    /* Does nothing to pixels, but fixes the numbers that go with them. One such operation, once; it is in no
     * list. */
    void (*fix)(mr_augment *a, const mri_op *op);

    bool bare;      /* read: the parentheses may be left out; then everything is 0 */
    uint32_t turns; /* touch: mri_op.turns, where read() says nothing else */
    bool resamples; /* run: takes its result at its size straight from the decoder */
    /* run: takes a window of its height and width that begins here of the whole, full_w x full_h pixels,
     * which a resize before it may take along. NULL: it does another thing. */
    void (*place)(const mri_op *op, mri_sample_key key, uint64_t full_w, uint64_t full_h, int64_t *x,
                  int64_t *y);
    bool evaluates; /* it is of evaluations alone */
};

enum { MRI_AUGMENT_MAX_MIX = 2 };

/* One that mixes, and its distribution: a word of a draw comes to the first k 256ths with word < words[k]. */
typedef struct mri_mix {
    mri_op op;
    uint64_t words[256];
} mri_mix;

/* A row that the program brought. */
typedef struct mri_own_op {
    mri_op_type type; /* first: the row is found by it */
    char name[32], usage[128];
    mr_own_operation given; /* without its name */
} mri_own_op;

struct mr_augment {
    bool training;
    uint32_t own_count;
    mri_own_op *own;
    uint32_t op_count;
    mri_op op[2 * MRI_AUGMENT_MAX_OPS]; /* for this mode: an operation may become two in evaluation */
    uint32_t mix_count;
    mri_mix mix[MRI_AUGMENT_MAX_MIX];
    bool standardise;
    uint32_t views; /* of each picture in evaluation; 0: one */
    float mean[4], std[4];
    char text[6144]; /* 32 operations of at most 170 characters, and room */
};

/* Row k of the table, families one after the other; NULL after the last. */
const mri_op_type *mri_op_type_at(size_t k);
/* The row of that name, `n` characters long; NULL: unknown name. */
const mri_op_type *mri_op_type_find(const char *name, size_t n);

/* The program's own rows, which a keeps until mri_own_drop(). MR_EINVAL: one that cannot be. */
int mri_own_take(mr_augment *a, const mr_own_operation *given, uint32_t count, mr_error *err);
void mri_own_drop(mr_augment *a);
const mri_op_type *mri_own_find(const mr_augment *a, const char *name, size_t n);

/* Presets: names for whole specifications. */
typedef struct mri_preset {
    const char *name, *spec;
} mri_preset;
const mri_preset *mri_preset_at(size_t k); /* NULL after the last */
const mri_preset *mri_preset_find(const char *name, size_t n);

/* Families. The last row has no name. */
extern const mri_op_type mri_ops_resize[], mri_ops_window[], mri_ops_turn[], mri_ops_colour[], mri_ops_tone[],
    mri_ops_smooth[], mri_ops_erase[], mri_ops_policy[], mri_ops_numbers[], mri_ops_mix[], mri_ops_views[];

/* Adds an operation to the list unchanged. */
static inline void mri_augment_add(mr_augment *a, const mri_op *op) { a->op[a->op_count++] = *op; }
void mri_augment_add_mix(mr_augment *a, const mri_op *op);
/* Adds the centre crop of the size of another operation, in its place. */
void mri_augment_add_center(mr_augment *a, const mri_op *op);

/* An operation of the list that takes the middle of a picture: by view v it takes the middle (v = 0, 5, ...),
 * the upper left corner (1, 6), the upper right one, the lower left and the lower right one. */
void mri_augment_take_corners(mri_op *center);

/* Sides after resize(N): the shorter one N, the other in proportion, rounded down, at least 1. */
void mri_shorter_side(uint32_t n, uint32_t in_h, uint32_t in_w, uint64_t *out_h, uint64_t *out_w);

#endif
