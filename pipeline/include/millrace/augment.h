/* millrace/augment.h: the augmentation language, which describes how a picture is changed for a batch, and
 * operations of the program's own. */
#ifndef MILLRACE_AUGMENT_H
#define MILLRACE_AUGMENT_H

#include "millrace/formats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* SPEC: operations in order, separated by commas. A preset stands for its operations, alone or in the list:
 * cifar,cutout(8).
 *   rrc resize center padcrop shift       move pixels
 *   rotate affine
 *   flip                                  mirrors
 *   brightness contrast saturation        change pixels
 *   hue jitter
 *   gray invert solarize posterize        change pixels with a probability
 *   autocontrast equalize
 *   sharpness blur                        mix pixels with their neighbours
 *   erase cutout                          overwrite an area of the picture
 *   randaugment trivial                   choose operations at random
 *   standardise normalise normalise01     set the numbers for normalisation
 *   mixup cutmix                          mix pictures of a batch and their labels
 * mr_augment_help() returns syntax and effect of each operation; `millrace help augment` prints them.
 *
 * All operations compute on bytes, 0..255, in integer arithmetic, so results have the same bits everywhere.
 * Factors and hue angles are drawn as whole multiples of 1/65536; results are rounded half up and clipped.
 * Pictures have one or three channels: gray pictures stay gray, and decoding has dropped alpha. A probability
 * P is 0 to 1.
 *
 * hue(D) rotates the hue, an angle on the hexagon of HSV, by a random fraction of a full turn from [-D, D], D
 * up to 0.5. A pixel's largest and smallest channel keep their values. Gray pictures are unchanged.
 *
 * jitter(B,C,S,H[,P]), with probability P (default 1): four changes in random order, all 24 orders equally
 * likely. All values are multiplied by a draw from [1-B, 1+B]; contrast() with a factor from [1-C, 1+C];
 * saturation() with a factor from [1-S, 1+S]; hue(H). A lower bound below 0 becomes 0. B, C, S: 0 to 15.
 *
 * With probability P: gray(P) sets all channels to the pixel's gray (BT.601, in 1/65536); invert(P) replaces
 * x by 255 - x; solarize(T,P) replaces x >= T by 255 - x, T 0 to 256; posterize(B,P) keeps the B highest
 * bits, B 1 to 8.
 *
 * autocontrast(P) stretches each channel so that its smallest value becomes 0 and its largest 255. A channel
 * with only one value is unchanged.
 *
 * equalize(P) equalises each channel's histogram: with step = (number of pixels - number of pixels with the
 * largest value) / 255, x becomes ((number of pixels with smaller values) + step / 2) / step, at most 255;
 * divisions round down. A channel with step 0 is unchanged.
 *
 * sharpness(LO:HI[,P]), with probability P (default 1): x becomes smooth + F * (x - smooth), with F drawn
 * from LO:HI, 0 to 16. smooth is the rounded mean of the surrounding 3 x 3 pixels, the middle pixel counted
 * five times. The outermost pixels are unchanged.
 *
 * blur(K,LO:HI[,P]), with probability P (default 1): a Gaussian filter of K x K pixels, K odd, 1 to 63, with
 * a standard deviation drawn from LO:HI, 0.01 to 100. Weights are whole multiples of 1/65536; the filter runs
 * over columns, rounded to 1/128, then over rows. Beyond its border a picture continues as its mirror image,
 * without repeating the outermost pixels.
 *
 * rotate(DEG[,filter=bilinear|nearest][,fill=V]) rotates around the centre by an angle drawn from [-DEG, DEG]
 * degrees, DEG up to 180. The size is unchanged: corners leave the picture, and uncovered pixels get fill: 0
 * to 255 (default 0), or mean, as for erase.
 *
 * affine(DEG[,translate=X[:Y]][,scale=LO:HI][,shear=X[:Y]][,filter=F][,fill=V]) shears by angles drawn from
 * [-X, X] degrees along rows and [-Y, Y] along columns (default 0 for both, up to 80), rotates like rotate,
 * and scales by a factor drawn from LO:HI (default 1:1; 0.1 to 10), all around the centre; then translates by
 * fractions drawn from [-X, X] of the width and [-Y, Y] of the height (default 0, Y defaults to X; up to 1),
 * in whole pixels.
 *
 * Coordinates are computed in 1/2^32 of a pixel. nearest takes the pixel under the centre of a result pixel;
 * bilinear mixes the four surrounding pixels with weights of 1/1024 per axis, and pixels outside the picture
 * count as fill. Delivered boxes and masks follow the map: a mask takes the pixel under the centre, a box
 * becomes the bounding box of the visible area of the mapped box. Up to 16 such maps may follow each other,
 * including the maps of randaugment.
 *
 * randaugment(N,M[,filter=F][,fill=V]) applies N (1 to 16) times one of fourteen changes, drawn with equal
 * probability, at level M of 0 to 30. Changes with two directions take either with equal probability. The
 * changes at level 30: identity; shear along rows or columns by a tangent of 0.3, around the first corner;
 * translate by 150/331 of the width or the height, in whole pixels; rotate by 30 degrees; brightness,
 * saturation, contrast, sharpness by a factor of 1.9 or 0.1; posterize to 4 bits; solarize from 0;
 * autocontrast; equalize. Lower levels are proportional: at level 0 factors are 1, bits 8, the threshold 255.
 *
 * trivial, or trivial([filter=F][,fill=V]), applies one of these changes at a level drawn from 0 to 30; level
 * 30 is a tangent of 0.99, 32 pixels, 135 degrees, factors of 1.99 or 0.01, 2 bits.
 *
 * erase(P[,scale=LO:HI][,ratio=LO:HI][,value=V]), random erasing: with probability P up to 10 rectangles are
 * drawn until one has at least one pixel and fewer rows and columns than the picture; its pixels are
 * replaced. The rectangle's area is a draw from scale (default 0.02:0.33) times the picture's area, its
 * height / width a draw from ratio (default 0.3:3.3), uniform in the logarithm, its position any that lies
 * inside the picture.
 *
 * cutout(SIZE[,value=V]) replaces the pixels of a square with side SIZE around a random pixel, clipped at the
 * border.
 *
 * V is mean, zero or random. mean (default) is the pixel that becomes 0 after normalisation: the rounded mean
 * of normalise(), also if normalise() comes later; 0 without normalise(); with standardise the mean of all
 * values of the current picture. Other programs reach the same by erasing with 0 after normalising. zero:
 * pixels of 0, black. random: each byte is drawn from 0..255. Boxes and masks are unchanged.
 *
 * normalise01(MEAN/STD) is normalise() with 255 times these numbers: MEAN is 0 to 1, STD above 0 and at most
 * 1, for pixels from 0 to 1. normalise() refuses deviations below 1 with means of at most 1.
 *
 * padcrop(..,border=mirror) does not repeat the outermost pixels; boxes are clipped at the picture's border,
 * and masks have their pad value in the mirrored area.
 *
 * rrc(..,covers=C) uses the boxes of the first field that the loader delivers as BOXES, else of the first
 * field for which mr_field_role() returns BOXES, as fractions of the picture. A loader with no such field, or
 * with a cache, does not open. Evaluation ignores covers.
 * mixup and cutmix mix the samples of a batch in pairs: samples 0 and 1, 2 and 3, ... of the global batch.
 * Each sample gets the same share of its partner, drawn per pair and delivered in mr_batch.share2. A single
 * last sample, and a pair with a sample that does not count (label < 0), is not mixed. mixup and cutmix need
 * labels and exclude fields; a loader of some shares of the batches must have whole pairs.
 *
 * Presets: none, rrc224 = rrc(224),flip,normalise(imagenet); center224 =
 * resize(256),center(224),normalise(imagenet); cifar = padcrop(4),flip. Evaluation omits random operations,
 * except that rrc(N) becomes resize(N * 8/7),center(N) and padcrop with a SIZE becomes its centre crop. views
 * applies to evaluation only: each epoch delivers another view of a picture. */
typedef struct mr_augment mr_augment;

/* Parse SPEC for training or for evaluation. MR_EINVAL: SPEC is invalid; err quotes the wrong operation. */
MR_API int mr_augment_create(mr_augment **out, const char *spec, bool training, mr_error *err);

/* An operation of the program's own: a function with a name that SPEC may contain wherever it may contain an
 * operation that changes pixels, as in resize(64x64),my_noise(3,0.5),flip. Only the loader or mr_augment that
 * receives it knows it: other loaders may use the same name, and the command, which reads the language too,
 * refuses the name. */
enum { MR_OWN_ARGUMENTS = 8, MR_OWN_DRAWS = 16 };

/* Input of an operation of the program's own. */
typedef struct mr_own_picture {
    size_t struct_size;
    uint64_t sample; /* its number in the source */
    /* Key of the draws: a hash of seed, epoch, sample and the operation's position in SPEC (if a sample may
     * come several times in an epoch, of its position instead of the epoch). A seed for the program's own
     * generator */
    uint64_t key;
    uint32_t height, width, channels; /* channels 1: gray, or 3: red, green, blue */
    bool training;
    uint32_t argument_count;
    double arguments[MR_OWN_ARGUMENTS]; /* the numbers in SPEC; 0 after the last */
    uint32_t draws[MR_OWN_DRAWS];       /* the first words of mr_own_draw() */
} mr_own_picture;

/* Return word k of a picture's draws, uniform in 0 to 2^32 - 1, for any k. Pure. Any thread. */
MR_STABLE uint32_t mr_own_draw(const mr_own_picture *picture, uint64_t k);

/* Change a picture in place.
 *
 * pixels  height * width * channels bytes, rows packed, without alignment: the picture after all earlier
 *         operations, including flips. Its size cannot change; use resize or rrc for that. Delivered boxes
 *         and masks do not follow this operation: do not move pixels that they refer to
 *
 * It must be a pure function of pixels and picture, so that batches do not depend on threads or on stop and
 * resume: take all randomness from the draws. It may be called twice for a picture.
 *
 * Threads: the loader's workers call it, several at a time and in any order; with prefetch 0 the caller of
 * mr_loader_next(). No lock is held.
 *
 * It may take long: the picture's batch waits. It may wait for this loader to deliver the batches before the
 * picture's, because the loader always leaves one worker for the first batch that is not decoded. It must not
 * wait with free_order or prefetch 0, nor if pictures are so large that workers wait for each other's memory
 * (memory_bytes). mr_loader_stop() never waits for it; mr_loader_close() returns after it has returned. It
 * must not take or release a batch or close the loader.
 *
 * Returns MR_OK, or a negative code and fills err; the loader adds name, sample and file. MR_EFORMAT and
 * every other error for which mr_error_of_sample() returns true mark this sample as damaged; all other errors
 * end the run. */
typedef int mr_own_change(void *context, const mr_own_picture *picture, uint8_t *pixels, mr_error *err);

typedef struct mr_own_operation {
    /* letters a to z, digits and _, beginning with a letter, at most 31 characters; not the name of an
     * operation or preset. Operations of the language never have a _ in their names */
    const char *name;
    mr_own_change *change;
    void *context;
    uint32_t arguments_least, arguments_most; /* number of arguments in parentheses, 0 to 8; without arguments
                                                 there are no parentheses. Arguments are decimal numbers or
                                                 fractions, such as 3, -0.5 or 2/3, with up to nine digits */
    bool in_evaluation; /* evaluation runs it too; false: evaluation omits it, like random operations */
} mr_own_operation;

/* mr_augment_create() with operations of the program's own, which are copied; their contexts must outlive the
 * mr_augment. MR_EINVAL also for a name that is invalid, taken or repeated. */
MR_API int mr_augment_create_own(mr_augment **out, const char *spec, bool training,
                                 const mr_own_operation *operations, uint32_t count, mr_error *err);
/* Accepts NULL. */
MR_API void mr_augment_destroy(mr_augment *a);
/* Return the output size for pictures of this size (0 x 0: sizes differ). MR_EINVAL when the result has no
 * fixed size; err names the operation to add. The number of channels is unchanged. */
MR_API int mr_augment_output(const mr_augment *a, uint32_t in_h, uint32_t in_w, uint32_t *out_h,
                             uint32_t *out_w, mr_error *err);
/* Return mean[c] and std[c] of normalise(), in units of 0..255, for MR_OP_INPUT; uses_affine: SPEC contains
 * standardise. */
MR_API void mr_augment_normalise(const mr_augment *a, float mean[4], float std[4], bool *uses_affine);
/* Return the number of views per picture set by views(), 1 without it; epoch e of a loader delivers view e %
 * views. The prediction for a picture is the mean of the predictions for its views. */
MR_API uint32_t mr_augment_views(const mr_augment *a);
/* Return the full specification with presets expanded, as stored in checkpoints and reports. Owned by a. */
MR_API const char *mr_augment_text(const mr_augment *a);
/* Return the manual of operation `which`, in lines, and its syntax in *usage. NULL after the last operation.
 * Static strings. */
MR_API const char *mr_augment_help(uint32_t which, const char **usage);

#ifdef __cplusplus
}
#endif
#endif
