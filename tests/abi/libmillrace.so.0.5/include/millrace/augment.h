/* millrace/augment.h: the language for what happens to a picture on its way into a batch, and operations of
 * one's own. */
#ifndef MILLRACE_AUGMENT_H
#define MILLRACE_AUGMENT_H

#include "millrace/formats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* SPEC: operations in order, separated by commas, or a preset.
 *   rrc resize center padcrop shift       move pixels
 *   rotate affine
 *   flip                                  mirrors
 *   brightness contrast saturation        change pixels
 *   hue jitter
 *   gray invert solarize posterize        change pixels with a probability
 *   autocontrast equalize
 *   sharpness blur                        mix pixels with their neighbours
 *   erase cutout                          take a part of the picture away
 *   randaugment trivial                   draw which of these to do
 *   standardise normalise                 fix the numbers that go with them
 *   mixup cutmix                          mix pictures of a batch, and their labels
 * mr_augment_help() says of each how it is written and what it does; `millrace help augment` prints that.
 *
 * Everything below works on bytes, 0..255, by whole numbers, so results are the same bits everywhere. A
 * factor, and a turn of the hue, is drawn as a whole multiple of 1/65536; results are rounded, halves up,
 * and clipped. Pictures have one channel or three here: gray ones stay gray, and alpha was dropped when the
 * picture was decoded. Probabilities, P, are 0 to 1.
 *
 * hue(D) turns the hue, an angle on the hexagon of HSV, by a draw from [-D, D] of a whole turn, D up to 0.5.
 * A pixel's largest and smallest channel keep their values. Gray pictures stay.
 *
 * jitter(B,C,S,H[,P]), with probability P (default 1): four changes in an order that is drawn, each of 24 as
 * likely. All values times a draw from [1-B, 1+B]; around the mean of the picture's gray as contrast() does,
 * and around each pixel's gray as saturation() does, by draws from [1-C, 1+C] and [1-S, 1+S]; hue(H). A lower
 * end below 0 is 0. B, C, S: 0 to 15.
 *
 * gray(P): all channels become the pixel's gray (BT.601, in 1/65536). invert(P): 255 - x. solarize(T,P): 255
 * - x where x >= T, 0 to 256. posterize(B,P): the B highest bits stay, 1 to 8.
 *
 * autocontrast(P): of each channel the smallest value becomes 0, the largest 255. A channel of one value
 * stays.
 *
 * equalize(P): of each channel, with step = (pixels - those of the largest value) / 255, x becomes ((pixels
 * of smaller values) + step / 2) / step, at most 255, divisions rounded down. A channel where step is 0
 * stays.
 *
 * sharpness(LO:HI[,P]), with probability P (default 1): smooth + F * (x - smooth), F a draw from LO:HI, 0 to
 * 16, where smooth is the mean of the 3 x 3 pixels around, the middle one counted five times, rounded.
 * Outermost pixels stay.
 *
 * blur(K,LO:HI[,P]), with probability P (default 1): a normal distribution over K x K pixels, K odd, 1 to 63,
 * its standard deviation a draw from LO:HI, 0.01 to 100. Weights are whole multiples of 1/65536; columns,
 * rounded to 1/128, then rows. Beyond its border a picture goes on as its mirror image, outermost pixels not
 * repeated.
 *
 * rotate(DEG[,filter=bilinear|nearest][,fill=V]) turns around the middle by a draw from [-DEG, DEG] degrees,
 * DEG up to 180. The size stays: corners leave the picture, and fill comes in, 0 to 255 (default 0), or mean,
 * as erase has it.
 *
 * affine(DEG[,translate=X[:Y]][,scale=LO:HI][,shear=X[:Y]][,filter=F][,fill=V]) shears by draws from [-X, X]
 * degrees along rows and [-Y, Y] along columns (default 0, and Y 0; up to 80), turns as rotate does, and
 * scales by a draw from LO:HI (1:1; 0.1 to 10), around the middle; then moves by draws from [-X, X] of the
 * width and
 * [-Y, Y] of the height (0, and Y as X; up to 1), in whole pixels.
 *
 * Maps are kept in 1/2^32 of a pixel. nearest takes the pixel on which a result pixel's centre falls,
 * bilinear mixes the four around by weights of 1/1024 a side; what lies outside is fill there, too. Boxes and
 * masks that are delivered follow: a mask's pixel is the one under the centre, a box the one around what is
 * seen of the turned one. Up to 16 such maps may follow each other, those of randaugment counted.
 *
 * randaugment(N,M[,filter=F][,fill=V]): N times, 1 to 16, one of fourteen changes that is drawn, each as
 * likely, at level M of 0 to 30. Of those that go either way, either is as likely. At level 30: identity;
 * shear along rows or columns by a tangent of 0.3, around the first corner; move by 150/331 of the width or
 * the height, in whole pixels; rotate by 30 degrees; brightness, saturation, contrast, sharpness by a factor
 * of 1.9 or 0.1; posterize to 4 bits; solarize from 0; autocontrast; equalize. In between in proportion: at 0
 * factors are 1, bits 8, the threshold 255.
 *
 * trivial, or trivial([filter=F][,fill=V]): one of these, at a level of 0 to 30 that is drawn, where level 30
 * is a tangent of 0.99, 32 pixels, 135 degrees, factors of 1.99 or 0.01, 2 bits.
 *
 * erase(P[,scale=LO:HI][,ratio=LO:HI][,value=V]), random erasing: with probability P a rectangle is drawn
 * until one has at least a pixel and fewer rows and columns than the picture, 10 times at most, and if there
 * is one, its pixels are replaced. Its area is a draw from scale (default 0.02:0.33) times the picture's, its
 * height / width one from ratio (0.3:3.3), uniform in the logarithm, its place any at which it lies inside.
 *
 * cutout(SIZE[,value=V]): the pixels of a square of that side around a drawn pixel, cut off at the border,
 * are replaced.
 *
 * V is mean (default): the pixel that the device makes 0, the mean of normalise(), rounded, also where
 * normalise() stands behind it; without normalise() 0; with standardise the mean of all values of the picture
 * as it stands. zero: pixels of 0, black. random: each byte 0..255. Programs that erase behind normalising
 * write 0 and mean what is called mean here. Boxes and masks stay as they are.
 *
 * padcrop(..,border=mirror): the outermost pixels are not repeated; boxes end at the picture, and masks have
 * nothing in its mirror images.
 *
 * rrc(..,covers=C) takes the boxes of the first field that a loader delivers as BOXES, else of the first for
 * which mr_field_role() says BOXES, as parts of the picture; a loader that has neither, or a cache, does not
 * open. Nothing of this in evaluation.
 * mixup and cutmix take the samples of a batch in pairs, places 0 and 1, 2 and 3, ... of the global batch.
 * Each of the two gets the same share of the other, drawn for the pair, and mr_batch.share2 says so. One that
 * is left over, and a pair of which one does not count (label < 0), is not mixed. They need labels, go with
 * no fields, and a loader that has only some parts of its batches must have whole pairs.
 *
 * Presets: none, rrc224 = rrc(224),flip,normalise(imagenet); center224 =
 * resize(256),center(224),normalise(imagenet); cifar = padcrop(4),flip. A random operation is left out in
 * evaluation, except that rrc(N) becomes resize(N * 8/7),center(N) and padcrop with a SIZE its centre
 * crop. views is of evaluation alone: each epoch shows another view of a picture. */
typedef struct mr_augment mr_augment;

MR_API int mr_augment_create(mr_augment **out, const char *spec, bool training, mr_error *err);

/* An operation of one's own: a function of the program under a name that SPEC can have anywhere an operation
 * that changes pixels can stand, as in resize(64x64),my_noise(3,0.5),flip. It is known to the loader, or the
 * mr_augment, that is given it, and to nothing else: others of the same name are not in its way, and the
 * command, which reads the language too, refuses the name. */
enum { MR_OWN_ARGUMENTS = 8, MR_OWN_DRAWS = 16 };

/* What such a function is told of the picture whose pixels it gets. */
typedef struct mr_own_picture {
    size_t struct_size;
    uint64_t sample; /* its number in the source */
    /* Of the draws: a hash of seed, epoch, sample and the place of the operation in SPEC (of the position
     * instead of the epoch where a sample may come several times in one). A seed for a generator of one's
     * own */
    uint64_t key;
    uint32_t height, width, channels; /* channels 1: gray, or 3: red, green, blue */
    bool training;
    uint32_t argument_count;
    double arguments[MR_OWN_ARGUMENTS]; /* as SPEC has them; 0 behind the last */
    uint32_t draws[MR_OWN_DRAWS];       /* the first words of mr_own_draw() */
} mr_own_picture;

/* Word k of a picture's draws, 0 to 2^32 - 1, each as likely; as many as are wanted, by k. Pure. Any thread.
 */
MR_API uint32_t mr_own_draw(const mr_own_picture *picture, uint64_t k);

/* Change a picture in place.
 *
 * pixels  height * width * channels bytes, rows packed, without alignment: the picture as it is seen, all
 *         flips in front are done. Its size stays as it is, so what makes another one is for resize or rrc.
 *         Boxes and masks that are delivered do not learn of it: move nothing that they follow
 *
 * It must be a pure function of pixels and picture, so that batches depend on neither threads nor a stop and
 * resume (I1, I2): all that is random comes from the draws. It may be called twice for a picture.
 *
 * Threads: the loader's workers call it, several at a time and in any order; with prefetch 0 the caller of
 * mr_loader_next(). No lock is held.
 *
 * It may take long: the picture's batch waits. It may wait for this loader to deliver the batches before the
 * picture's, because the loader always leaves one worker for the first batch that is not decoded. That does
 * not hold with free_order or prefetch 0, nor for pictures so large that workers wait for each other's memory
 * (memory_bytes). mr_loader_stop() never waits for it; mr_loader_close() returns when it has returned. It
 * must not take, release or close.
 *
 * MR_OK, or the code of an error, with err filled; name, sample and file are put to it. MR_EFORMAT says that
 * this sample is damaged, and the rest of those for which mr_error_of_sample() is true are taken so, too;
 * others end the run. */
typedef int mr_own_change(void *context, const mr_own_picture *picture, uint8_t *pixels, mr_error *err);

typedef struct mr_own_operation {
    /* a to z, 0 to 9 and _, a letter first, at most 31 of them; no operation and no preset. None of the
     * language's will ever have a _ in its name */
    const char *name;
    mr_own_change *change;
    void *context;
    uint32_t arguments_least, arguments_most; /* numbers between its parentheses, 0 to 8; none: no
                                                 parentheses. They are decimal or fractions, as 3, -0.5 or
                                                 2/3, and have up to nine digits */
    bool in_evaluation;                       /* it is done there, too; else left out, as what is random is */
} mr_own_operation;

/* mr_augment_create() with operations of one's own; they are copied, contexts are lent. MR_EINVAL also for a
 * name that cannot be, is taken or comes twice. */
MR_API int mr_augment_create_own(mr_augment **out, const char *spec, bool training,
                                 const mr_own_operation *operations, uint32_t count, mr_error *err);
MR_API void mr_augment_destroy(mr_augment *a);
/* The output size for pictures of this size (0 x 0: sizes differ). MR_EINVAL when the result would not be one
 * fixed size: err says which operation to add. channels is passed through. */
MR_API int mr_augment_output(const mr_augment *a, uint32_t in_h, uint32_t in_w, uint32_t *out_h,
                             uint32_t *out_w, mr_error *err);
/* mean[c], std[c] of normalise(), in units of 0..255, for MR_OP_INPUT; uses_affine: standardise is there. */
MR_API void mr_augment_normalise(const mr_augment *a, float mean[4], float std[4], bool *uses_affine);
/* Views of each picture that views() asks for, 1 without it; epoch e of a loader shows view e % views. What
 * is said of a picture is the mean of what is said of its views. */
MR_API uint32_t mr_augment_views(const mr_augment *a);
/* The specification in full, presets spelled out: what a checkpoint and a report keep. Owned by a. */
MR_API const char *mr_augment_text(const mr_augment *a);
/* The manual of the language: what operation `which` does, in lines, and in *usage how it is written. NULL
 * behind the last one. Static strings. */
MR_API const char *mr_augment_help(uint32_t which, const char **usage);

#ifdef __cplusplus
}
#endif
#endif
