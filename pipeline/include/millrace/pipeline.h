/* millrace/pipeline.h: moving samples from storage to a device, in order and on time.
 *
 *   images    decode, resize, encode one picture (what `convert` needs)
 *   augment   a small language for what happens to a picture on its way into a batch
 *   loader    sampler -> reader -> workers -> batch slot -> copy -> device slot
 *   record    how long things took in a run, and what other settings would have given
 *   trace     what every stage did when, as a Chrome/Perfetto file
 *   convert   any source into .mrec (resumable), TFRecord or tar, in parallel
 *
 * The order of samples and every pixel of every batch are a pure function of (data set, seed, epoch, order,
 * augment): threads, readers, slots, replicas, prefetch and resume points change nothing (ARCHITECTURE.md,
 * I1-I4). */
#ifndef MILLRACE_PIPELINE_H
#define MILLRACE_PIPELINE_H

#include "millrace/formats.h"
#include "millrace/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------ images */

typedef struct mr_image {
    uint32_t width, height, channels; /* channels 1 or 3 */
    uint8_t *pixels;                  /* height * width * channels, rows packed; owned: mr_image_free() */
} mr_image;

/* How the pixels of a JPEG are computed. OWN: coefficients to planes, planes resampled at their own
 * resolution, colour last: no full-size picture, and the same bits for every source of coefficients. LIBJPEG:
 * libjpeg-turbo's RGB, then resampled: for comparison with programs that use it. The two differ by rounding
 * and by how chroma is interpolated. LIBJPEG differs from those programs where a progressive file lacks
 * scans: libjpeg's block smoothing, which makes up what is missing, is off, so that the same coefficients
 * give the same pixels in any file; and CMYK is multiplied out. */
typedef enum mr_pixels { MR_PIXELS_OWN = 0, MR_PIXELS_LIBJPEG = 1 } mr_pixels;

typedef struct mr_decode_config {
    size_t struct_size;
    uint32_t channels;   /* 1, 3, or 0: as stored (gray stays 1, everything else becomes 3) */
    uint64_t max_pixels; /* refuse larger images before memory is taken; 1 or more; default 100,000,000 */
    uint32_t max_scans;  /* refuse progressive JPEG with more scans; default 100 */
    bool ignore_exif;    /* default false: EXIF orientation is applied */
    mr_pixels pixels;    /* JPEG: whose arithmetic */
} mr_decode_config;

MR_API void mr_decode_defaults_sized(mr_decode_config *cfg, size_t struct_size);
static inline void mr_decode_defaults(mr_decode_config *cfg) { mr_decode_defaults_sized(cfg, sizeof *cfg); }

/* Decode JPEG or PNG (by content) or take MR_TYPE_PIXELS as they are. A truncated or damaged picture is
 * MR_EFORMAT with the reason; it is never filled with grey. On success the caller owns out->pixels. Any
 * thread. Rules: CMYK is multiplied out (with inverted values when Adobe's marker says so), 16-bit samples
 * keep their high byte, alpha is dropped and the colour below it is kept, gray is computed from colour by
 * BT.601. cfg may be NULL: the defaults. */
MR_API int mr_image_decode(const mr_value *value, const mr_decode_config *cfg, mr_image *out, mr_error *err);
MR_API void mr_image_free(mr_image *image);

/* A part of the upright picture, at a size of one's own. */
typedef struct mr_image_part {
    size_t struct_size;
    uint32_t x, y, width, height;   /* pixels of the upright picture; width, height 0: up to its end */
    uint32_t out_width, out_height; /* resized to, with antialiasing; 0: as the part */
    bool flip;                      /* left to right */
} mr_image_part;

MR_API void mr_image_part_defaults_sized(mr_image_part *part, size_t struct_size);
static inline void mr_image_part_defaults(mr_image_part *part)
{
    mr_image_part_defaults_sized(part, sizeof *part);
}

/* Decode no more of a picture than a part needs: of a JPEG what lies left of it and beyond it is never
 * computed, and what lies below it is not even read, so that damage there is not seen. Pixels are those that
 * a loader delivers for the same part and size. out, cfg, values and threads as for mr_image_decode().
 * MR_EINVAL: the part is not inside the picture. MR_ELIMIT: the result has more pixels than cfg.max_pixels.
 */
MR_API int mr_image_decode_part(const mr_value *value, const mr_image_part *part, const mr_decode_config *cfg,
                                mr_image *out, mr_error *err);
/* Resize with antialiasing (a triangle filter widened by the scale) to width x height. out is allocated. */
MR_API int mr_image_resize(const mr_image *in, uint32_t width, uint32_t height, mr_image *out, mr_error *err);
/* Baseline JPEG, quality 1..100, 4:2:0 below 91 and 4:4:4 from there; *data is malloc'd, the caller frees
 * it. */
MR_API int mr_image_encode_jpeg(const mr_image *in, int quality, void **data, size_t *bytes, mr_error *err);
/* 8-bit PNG; as above. */
MR_API int mr_image_encode_png(const mr_image *in, void **data, size_t *bytes, mr_error *err);

/* A budget of host memory that loaders and checkers share: what each loader needs from its start to its end
 * is reserved when it is opened, and pictures that need more than a worker always has take turns with the
 * rest, over all of them. What a picture comes to never depends on the budget: it waits for room, and one
 * that needs more than there can ever be ends the run with MR_ELIMIT. bytes 0: half of what the process may
 * use. MR_OK or MR_ENOMEM. Any thread. */
typedef struct mr_budget mr_budget;
MR_API int mr_budget_create(mr_budget **out, uint64_t bytes);
MR_API void mr_budget_destroy(mr_budget *b); /* behind all that use it; accepts NULL */

/* A checker of whole pictures, for tools: decoders and buffers, for one thread at a time. */
typedef struct mr_checker mr_checker;

MR_API int mr_checker_create(mr_checker **out);
MR_API void mr_checker_destroy(mr_checker *c); /* accepts NULL */
/* Decode a whole picture (JPEG, PNG, PIXELS, COEF) and discard the pixels: MR_OK, or the error. Entry points
 * of a JPEG must be correct. cfg may be NULL: the defaults. */
MR_API int mr_checker_run(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, mr_error *err);
/* From now on what larger pictures take comes out of b, which must outlive c; NULL: of nothing. Checkers of
 * one budget then wait for each other. A picture that b can never have room for: MR_ELIMIT with sys_errno
 * ENOMEM, which says nothing about the picture. */
MR_API void mr_checker_share(mr_checker *c, mr_budget *b);
/* MR_TYPE_COEF: a baseline JPEG file with the same coefficients; *data is malloc'd, the caller frees it. */
MR_API int mr_coef_to_jpeg(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, void **data,
                           size_t *bytes, mr_error *err);

/* ------------------------------------------------------------------------------ augment */

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

/* ------------------------------------------------------------------------------ trace */

/* A bounded ring of spans; the oldest are dropped and counted. */
typedef struct mr_trace mr_trace;

MR_API int mr_trace_create(mr_trace **out, size_t max_spans);
MR_API void mr_trace_destroy(mr_trace *t);
/* track: "worker 1", "copy cpu:0", ...; name: "decode", "compute", ...: static or kept alive by the caller.
 * Times in ns of CLOCK_MONOTONIC. batch: its global step; MR_NOWHERE: the span belongs to none. t may be NULL
 * (then nothing happens). Any thread. */
MR_API void mr_trace_span(mr_trace *t, const char *track, const char *name, uint64_t start_ns,
                          uint64_t end_ns, uint64_t batch);
/* From now on keep only spans of `steps` batches from `first` (a global step, from 0) on; steps 0: all. What
 * belongs to no batch is not kept then. t may be NULL. Any thread. */
MR_API void mr_trace_keep(mr_trace *t, uint64_t first, uint64_t steps);
/* Chrome trace event format (JSON array of complete events), written to a part file and renamed. The clock is
 * told in "otherData" (docs/json.md). */
MR_API int mr_trace_write(const mr_trace *t, const char *path, mr_error *err);

/* What a trace holds now, in bytes to send to another process of the same build; *out is malloc'd. MR_ENOMEM.
 */
MR_API int mr_trace_pack(const mr_trace *t, void **out, size_t *bytes, mr_error *err);
/* The pack of one process. Its clock is known at two moments: at_ns of it is at_ns + shift_ns of the first
 * part's. */
typedef struct mr_trace_part {
    const void *pack; /* aligned to 8 bytes */
    size_t bytes;
    const char *name; /* of the process: "rank 2"; NULL: it is the only one */
    uint64_t at_ns[2];
    int64_t shift_ns[2];
    uint64_t within_ns; /* of which the shifts are known */
} mr_trace_part;
/* One file of several processes, on the clock of the first. MR_EFORMAT: a pack is none. */
MR_API int mr_trace_write_parts(const mr_trace_part *parts, uint32_t count, const char *path, mr_error *err);

typedef struct mr_trace_entry {
    const char *track, *name;
    uint64_t start_ns, end_ns, batch;
} mr_trace_entry;
/* For tests and reports: spans in the order they were added; *out is malloc'd. */
MR_API int mr_trace_entries(const mr_trace *t, mr_trace_entry **out, size_t *count);

/* ------------------------------------------------------------------------------ loader */

typedef enum mr_order {
    /* A drawn order, another one in every epoch. Of a mix (mr_source_info.mix) each data set has its share of
     * the positions, to a ten-thousandth, in rounds of a drawn order; its own samples come in a drawn order,
     * none more than once oftener than another. An epoch has as many samples as ever: those of small sets
     * with large shares come several times in it, each time with draws of its own, those of large ones with
     * small shares once in several epochs */
    MR_ORDER_SHUFFLE = 0,
    MR_ORDER_BLOCK,
    MR_ORDER_SEQUENTIAL,
    /* Every class as often as every other, one of each in a drawn order before any comes again. An epoch has
     * as many samples as ever: those of small classes come several times in it, each time with draws of
     * its own, those of large ones once in several. For sources that know labels without reading
     * (mr_source_label(), else MR_EUNSUPPORTED) */
    MR_ORDER_BALANCED,
} mr_order;
typedef enum mr_tail { MR_TAIL_KEEP = 0, MR_TAIL_DROP, MR_TAIL_PAD } mr_tail;
typedef enum mr_io { MR_IO_AUTO = 0, MR_IO_URING, MR_IO_PREAD } mr_io;
typedef enum mr_cache { MR_CACHE_OFF = 0, MR_CACHE_MEMORY, MR_CACHE_DISK } mr_cache;
#define MR_CACHE_FITS UINT64_MAX
typedef enum mr_bad { MR_BAD_STOP = 0, MR_BAD_REPLACE, MR_BAD_SKIP } mr_bad;

/* A damaged sample is reported to the caller's function; each sample once, no matter how many epochs contain
 * it. substitute: the sample in its place, or MR_NOWHERE.
 *
 * Thread: the one that calls mr_loader_next(), before that returns the sample's batch, or the error that the
 * sample ends the run with; the one that calls mr_loader_close(), for samples whose batch nobody took. One
 * call at a time, without a lock. Readers and workers go on meanwhile, as far as there is room. It may take
 * long, and may call mr_loader_stop(); it must not wait for a batch of this loader, and must not take,
 * release or close. */
typedef void mr_bad_report(void *context, const mr_error *what, uint64_t substitute);

/* An order of one's own: the samples at positions [first, first + count) of an epoch, into out[count], as
 * numbers below the source's count. first + count is never above mr_loader_config.sampler_count.
 *
 * It must be a pure function of epoch and position: threads of the loader ask it, several at a time, in any
 * order, for epochs ahead of the one that is delivered, for the same again, and a run that is resumed asks it
 * anew; all of them must get the same.
 *
 * Threads: one thread of the loader, which does nothing else, asks for the batches to come, a batch at a time
 * and in order. A worker asks for the sample in place of a damaged one (bad REPLACE). With prefetch 0 the
 * caller of mr_loader_next() asks. No lock is held.
 *
 * It may wait, also for this loader to deliver the batches before the first one that it is asked about: these
 * are read, decoded and delivered meanwhile. For a substitute that is any position of the epoch, asked for
 * the batch with the damaged sample. With prefetch 0 it must not wait for a batch. mr_loader_stop() never
 * waits for it; mr_loader_close() returns when it has returned, so it must return soon once the caller wants
 * to close. It must not take, release or close.
 *
 * MR_OK, or a negative code, which ends the run: mr_loader_next() returns it, with what err says. */
typedef int mr_sampler(void *context, uint64_t epoch, uint64_t first, uint32_t count, uint64_t *out,
                       mr_error *err);

/* Fields of a sample that are delivered in addition to picture and label: boxes and masks, which follow their
 * picture through the augmentation, and tensors as they are: sequences, embeddings, numbers. */
typedef enum mr_role {
    MR_ROLE_PLAIN = 0, /* as it is: INT (delivered as i64), FLOAT (f64), or TENSOR of its dtype: of one
                          dimension, a row with a length, which may differ from sample to sample; or of one
                          fixed shape of more dimensions */
    MR_ROLE_BOXES,     /* TENSOR [n][4 or more] f32 or f64: x0 y0 x1 y1 and what belongs to them, delivered as
                          f32. Corners are parts of the stored picture's width and height, 0 to 1, or its
                          pixels with `in_pixels`; delivered as parts of the picture in the batch. Clipped
                          to     it; a box of which nothing is left is dropped */
    MR_ROLE_BOX_VALUES, /* TENSOR [n], a value for each box of the BOXES field named before it: dropped with
                           its box */
    MR_ROLE_MASK, /* numbers of 8 bits, one for each pixel of the stored picture: PNG (also as BYTES), PIXELS,
                     or TENSOR of height x width. Of a PNG they are taken as they are stored, a palette's
                     index, gray unscaled. Delivered as uint8, height x width of the picture in the batch;
                     cut, resized (nearest neighbour) and flipped like it, `pad` where it has nothing */
} mr_role;

typedef struct mr_loader_field {
    const char *name; /* in the source's schema */
    mr_role role;
    uint32_t most; /* room for elements (boxes) of one sample, where their number differs: a sample with more
                      is a bad one. 0: the most the source knows of (mr_source_info), or else 4,096 */
    double pad; /* behind the last element or box of a row; MASK: outside of the picture; and all of a fixed
                   row whose sample is skipped (bad). A number that the dtype holds exactly */
    bool in_pixels; /* BOXES: corners are given in pixels of the stored picture */
} mr_loader_field;

#define MR_LOADER_MAX_FIELDS 4

/* The role that follows from name and type of a field, in sources with pictures. Up to the first dot of the
 * name: "boxes", a TENSOR of f32 or f64, is BOXES; "box_labels", a TENSOR, BOX_VALUES. A PNG, PIXELS, IMAGE,
 * BYTES or u8 TENSOR of which a word of the name ("mask", "segmentation.png") begins with mask or seg is a
 * MASK. Everything else is PLAIN. */
MR_API mr_role mr_field_role(const mr_source_info *info, uint32_t field);

/* mr_loader_defaults() sets the defaults. mr_loader_open() refuses a value outside of the range in the
 * comment of its member, and a number that its enumeration does not have, with MR_EINVAL and the member's
 * name. Defaults and ranges are the same as those of the command's options; docs/settings.md has them in
 * tables. */
typedef struct mr_loader_config {
    size_t struct_size;
    uint32_t batch;  /* samples in a GLOBAL batch, 1 or more; default 128 */
    uint64_t seed;   /* default 0 */
    uint64_t epochs; /* epochs 0 .. epochs-1 are delivered (from start_epoch on), 1 or more; UINT64_MAX:
                        endless; default 1 */
    mr_order order;
    uint32_t block;    /* BLOCK: samples per block; blocks are shuffled, and samples inside a window of 16;
                          1 or more; default 256 */
    mr_tail tail;      /* KEEP: a short last batch. DROP: none. PAD: filled up with repeats labelled -1 */
    uint32_t prefetch; /* batches prepared ahead, up to 65,535; 0: read, decode, copy in series in the
                          caller's thread; default 4. Where the memory budget has no room for the defaults of
                          prefetch, workers (0) and depth, the loader takes less of them, down to 1, 1 and 4,
                          and on_note reports it; other values stay as they are */
    uint32_t workers;  /* decode threads, up to 4,096; 0 (default): one per core of the process; prefetch 0
                          uses none */
    /* reader threads, up to 1,024; 0 (default): one with io_uring, four with pread (each has one read in
     * flight) */
    uint32_t readers;
    uint32_t depth;      /* reads in flight per reader, 1 to 4,096; default 32 */
    mr_io io;            /* AUTO: io_uring, or pread threads where the kernel refuses it */
    bool direct;         /* O_DIRECT for shared files on a local disk; default false */
    bool training;       /* random augmentation on */
    const char *augment; /* default "none" */
    uint32_t channels;   /* 1, 3, or 0: what the data has (3 when pictures differ) */
    mr_decode_config decode;
    mr_bad bad;
    uint64_t max_bad; /* REPLACE, SKIP: more than this many different damaged samples stop the run; default
                         100 */
    mr_bad_report *on_bad;
    void *bad_context;
    uint64_t memory_bytes; /* host budget of the loader: slots, read buffers, scratch; 0: half of what the
                              process may use. Large pictures wait until the rest of it has room for them */
    uint64_t start_epoch, start_step; /* resume: the first batch delivered */
    mr_device *const *devices;        /* one per replica; NULL: batches stay in host memory, one part */
    uint32_t device_count;
    uint32_t parts;  /* with devices NULL: cut batches into this many parts nevertheless; default 1 */
    mr_trace *trace; /* or NULL */
    bool keep_host;  /* with devices: the host copy stays readable while a batch is held (mr_loader_digest
                        needs it);  costs host slots */
    uint64_t resident_bytes; /* a set of small samples (64 KiB on average) whose shared files have at most
                             this many bytes is read once, in large runs, and then served from memory without
                             requests or copies; 0: never; default 1 GiB. Never more than a quarter of the
                             memory budget */
    mr_cache cache; /* keep samples from the first epoch on for later epochs; default OFF. Changes no bit of a
                       batch */
    const char *cache_folder; /* DISK: created if missing; what an earlier run with the same data kept there
                                 is used */
    uint64_t cache_bytes; /* MEMORY: part of memory_bytes, MR_CACHE_FITS: what the rest of the loader leaves
                             of it; DISK: of the file and its index. What does not fit is read from the data
                             in every epoch: nothing is evicted */
    void (*on_note)(void *context, const char *text); /* notes for the user that do not stop the run, each
                                                         once; or NULL. Threads and what it may do: as
                                                         mr_bad_report, and from mr_loader_open() */
    void *note_context;
    bool free_order; /* deliver whichever batch is complete first: the same batches in an order that depends
                        on the machine, to measure the cost of the fixed order. Host memory only, and only
                        while prefetching; default false */
    bool no_checks;  /* checksums of records are not computed, for measuring what they cost; default false */
    const mr_loader_field *fields; /* copied, names too; the source may then be one without pictures */
    uint32_t field_count;          /* at most MR_LOADER_MAX_FIELDS; a cache does not go with fields */
    uint32_t length_window;  /* batches: inside windows of so many batches of the order, samples are sorted
                                by length (stable), cut into batches, and these delivered in a drawn order,
                                so that rows of a batch need little padding. The batch that is not full
                                stays the epoch's last; padding of PAD repeats its own samples. Needs a
                                source that knows lengths (mr_source_length(), else MR_EUNSUPPORTED). 0:
                                off. Part of the order (I1): resume must say the same */
    uint32_t width_multiple; /* rows of differing length are padded to the batch's longest, rounded up to a
                                multiple of this, 1 to 1,048,576; default 1 */
    mr_budget *budget; /* shared with others, in place of memory_bytes; must outlive the loader. NULL: its own
                        */
    struct mr_record *record; /* gets how long things took (below); must outlive the loader. NULL: nobody does
                               */
    uint32_t tune; /* mr_tune bits: settings that the loader may change while it delivers its first batches,
                      to deliver more of them. Changes no bit of a batch. Memory is taken for the largest that
                      it may try, within memory_bytes; values above are where it begins. What it finds is told
                      by mr_loader_tuning() and on_note. Default 0: none. Without effect while prefetch is 0
                    */
    /* One of several loaders of the same run, in this process or another: the global batch is cut into
     * all_parts parts, and this loader reads and delivers its own (one for each device, else `parts`), which
     * begin with first_part. A rank r of w with d devices each: all_parts w * d, first_part r * d. All other
     * settings that order, batches and pixels depend on must be the same in all of them; then the batches of
     * all, side by side, are those of one loader that delivers everything (rows of differing length are
     * padded to the longest that is delivered here). Default all_parts 0: its own are all */
    uint32_t all_parts, first_part;
    uint32_t keep; /* batches that mr_loader_keep() may keep at a time, each with memory of its own; up to
                      4,096. Host memory only; default 0 */
    bool count_unlabelled; /* samples of a source without labels get label 0 in place of -1, so that they
                              count (mr_batch.counted): for networks that tell no classes apart. Padding and
                              samples that are skipped keep -1. Default false; nothing changes where there are
                              labels */
    /* An order of one's own in place of `order` and `block`: an epoch has sampler_count positions, more or
     * fewer than there are samples, and a sample may stand at any number of them, or at none. The one at each
     * is sampler_samples[position], in every epoch: an array that is lent, stays as it is and outlives the
     * loader. Or, with that NULL, what sampler(sampler_context, ...) says. sampler_count 0 and both NULL,
     * the default: there is none.
     *   All else is as with any order: batches are cut from the positions, tails dropped or padded, the parts
     * of several loaders taken from the global batch, and a run that is resumed at an epoch and step goes on
     * as it would have, where the sampler is the same one; the loader cannot know that. Random operations
     * draw by the seed and the position over all epochs, so a sample that comes again is not the same picture
     * again. A damaged sample is replaced by one that stands elsewhere in the epoch. Neither length_window
     * nor order BALANCED goes with it.
     *   A number that is none of the source's is MR_EINVAL with position, number and count: of an array when
     * the loader is opened, of a function when it is asked. */
    uint64_t sampler_count;
    const uint64_t *sampler_samples;
    mr_sampler *sampler;
    void *sampler_context;
    /* Repeated augmentation (Hoffer et al. 2020; Berman et al. 2019): each sample that an epoch has comes so
     * many times in one batch, each time with other draws. A batch of B has ceil(B / repeats) samples, once
     * each, then the same again; an epoch has as many positions as ever, and so that share of the samples,
     * the next one others. 1, the default, and 0: once. Part of the order (I1): resume must say the same.
     * Goes with orders SHUFFLE, BLOCK and SEQUENTIAL, with neither a sampler nor a length window */
    uint32_t repeats;
    /* Operations of one's own that `augment` may name. Copied; contexts outlive the loader. A checkpoint has
     * their names and arguments in the text of the augmentation, and whoever goes on with it gives the same
     * functions again: what they do, the loader cannot know */
    const mr_own_operation *operations;
    uint32_t operation_count;
} mr_loader_config;

typedef enum mr_tune {
    MR_TUNE_WORKERS = 1,
    MR_TUNE_PREFETCH = 2,
    MR_TUNE_DEPTH = 4,
    MR_TUNE_READERS = 8,
    MR_TUNE_CACHE = 16, /* with cache OFF: one in memory, if the loader holds the consumer up by its work */
    MR_TUNE_ALL = 31,
} mr_tune;

MR_API void mr_loader_defaults_sized(mr_loader_config *cfg, size_t struct_size);
static inline void mr_loader_defaults(mr_loader_config *cfg) { mr_loader_defaults_sized(cfg, sizeof *cfg); }

typedef struct mr_loader mr_loader;

/* The layout of a field in batches. */
typedef struct mr_loader_field_info {
    const char *name; /* owned by the loader */
    mr_role role;
    mr_dtype dtype;
    bool varies;   /* rows have lengths, and a width that differs from batch to batch */
    uint32_t ndim; /* of one element (box: {columns}; fixed tensor: its shape; mask: {height, width}); 0: a
                      number */
    uint64_t dim[MR_MAX_DIMS];
    uint64_t element_bytes;
    uint32_t most; /* elements in a row at most, what width_multiple adds included; 1 where nothing varies */
} mr_loader_field_info;

/* What stays fixed for the life of a loader. */
typedef struct mr_loader_info {
    uint32_t batch, parts;            /* batch: the global one; parts: those that are delivered here */
    uint32_t height, width, channels; /* of every picture in a batch, uint8 NHWC; 0 of a source without
                                         pictures */
    uint64_t sample_count;            /* in the data set */
    uint64_t steps_per_epoch;
    uint64_t epoch_samples;   /* delivered per epoch: sample_count, or sampler_count; or less (DROP) */
    uint64_t dropped, padded; /* per epoch, by the tail policy */
    uint32_t prefetch, workers, readers;
    const char *io;        /* "io_uring", "pread" */
    const char *io_note;   /* why not io_uring, or "" */
    uint64_t memory_bytes; /* host memory the loader may use at most, the source's own not counted: checked
                              against the budget at open */
    uint64_t max_pixels;   /* largest picture that the budget has room for, one at a time; a larger one, up to
                              decode.max_pixels, ends the run with MR_ELIMIT */
    uint64_t device_bytes; /* per device */
    bool uses_affine;
    float mean[4], std[4];
    const char *augment;  /* spelled out */
    uint64_t fingerprint; /* of the source */
    mr_order order; /* as configured, like the two below: with seed and batch they fix the order of samples */
    uint32_t block;
    mr_tail tail;
    mr_pixels pixels;
    uint64_t resident_bytes; /* memory that holds the whole set, part of memory_bytes; 0: samples are read one
                                by one */
    uint32_t field_count;
    mr_loader_field_info field[MR_LOADER_MAX_FIELDS];
    uint32_t length_window; /* as configured */
    bool ignore_exif;       /* as configured */
    bool labelled;          /* the source has labels */
    bool counts;            /* samples do: labelled, or count_unlabelled */
    bool mixes;             /* pictures of a batch are mixed with each other (mr_batch.labels2) */
    uint32_t repeats;       /* as configured, 1 at least */
    bool sampled;           /* the order is the caller's own (mr_loader_config.sampler), not `order`. A
                               checkpoint does not say which: who goes on with one sets the same sampler */
} mr_loader_info;

/* The state of processing of a part's samples. There is one form; consumers must refuse a form that they do
 * not know, so that another can be added for devices that decode. Such a form would put into the slot what a
 * worker has before the expensive part of its work, and leave the rest to an operation on the device that
 * ends in the pixels below, bit for bit (the arithmetic is integers: the plain C of pipeline/jpeg/ and
 * resample_plain.c specifies it):
 *   - coefficients: per sample its crop window in blocks, the quantisation tables, both resampling axes and
 *     the mirror bit, then the window's rows of blocks as formats/image/coef.h packs them; left to do:
 *     unpack, inverse DCT, resample, colour;
 *   - JPEG: the same head, the Huffman tables, and the scan's bytes from the entry point above the window to
 *     the one below it; left to do: Huffman decoding as well, one thread a row between entry points.
 * Both differ from sample to sample in length: `pixels` would point at count + 1 offsets with the samples
 * behind them, and fewer bytes than those of pixels would cross to the device. */
typedef enum mr_part_form {
    MR_PART_PIXELS = 0, /* finished: count * height * width * channels uint8 */
} mr_part_form;

/* A field of a batch or of a part: rows of `width` elements (or fixed ones) one after the other, without
 * gaps. */
typedef struct mr_batch_field {
    const void *data;      /* count * width elements of element_bytes each */
    const int32_t *length; /* count: elements of each row that are there, the rest is padding; NULL where
                              nothing varies */
    uint32_t width; /* elements in each row of this batch, the same in all parts; never 0: width_multiple
                       where all rows are empty, 1 where nothing varies */
} mr_batch_field;

/* One replica's contiguous share of a batch: samples [first, first + count) of the global one; count may be
 * 0. */
typedef struct mr_part {
    uint32_t first, count;
    const void *pixels; /* device (or host) memory: what `form` says */
    const void *labels; /* count int32 */
    const void *affine; /* count pairs of float, or NULL */
    mr_event *ready;    /* recorded behind the copies; NULL without devices */
    mr_part_form form;
    /* in the order of the configuration; memory as that of pixels */
    mr_batch_field field[MR_LOADER_MAX_FIELDS];
    const void *labels2, *share2; /* count int32, count float, or both NULL: as in mr_batch */
} mr_part;

typedef struct mr_batch {
    size_t struct_size;
    uint64_t epoch, step;  /* step within the epoch */
    uint64_t global_step;  /* since epoch 0 */
    bool last;             /* of its epoch */
    uint32_t count;        /* samples in it, padding included */
    uint32_t counted;      /* of them with a label >= 0: what a loss divides by */
    const uint8_t *pixels; /* host copy, valid while the batch is held; these four are NULL with devices,
                              unless keep_host was set */
    const int32_t *labels;
    const uint64_t *ids; /* sample numbers as the sampler gave them; MR_NOWHERE for padding */
    const float *affine; /* or NULL */
    uint32_t part_count;
    const mr_part *parts;
    mr_batch_field field[MR_LOADER_MAX_FIELDS]; /* host memory; data NULL with devices, unless keep_host was
                                                   set */
    uint32_t first, all_count; /* the batch is places [first, first + count) of a global batch of all_count
                                  samples: not all of it where other loaders have the other parts */
    const int32_t *labels2; /* with pixels: a sample is share2 (0 to 1) of a picture with this label, and the
                               rest of one with its own (mixup, cutmix; mr_op_args says what losses make of
                               it). -1: it is not mixed. NULL where nothing is */
    const float *share2;    /* 0: it is not mixed */
} mr_batch;

/* src must outlive the loader. MR_ELIMIT when the needed memory exceeds the budget: err says what needs how
 * much and which setting to lower. Starts threads unless prefetch is 0. Devices, trace and bad_context must
 * outlive the loader too. */
MR_API int mr_loader_open(mr_loader **out, const mr_source *src, const mr_loader_config *cfg, mr_error *err);
/* Stops (if still running), waits for what is in flight, for functions of the program that have not returned
 * and for a thread that is in mr_loader_next(); joins, reports what on_bad and on_note have yet to be told,
 * frees. All batches must have been released. Any thread, once. Called by a function that the loader has
 * called (on_bad, on_note, sampler, an operation, a fetch) it does not close: the loader stops, and
 * mr_loader_next() returns MR_EINVAL that says so. In a child of fork() it does nothing. Accepts NULL. */
MR_API void mr_loader_close(mr_loader *l);
MR_API const mr_loader_info *mr_loader_info_of(const mr_loader *l);

/* Take the next batch, in order. One thread at a time; a second one gets MR_EBUSY.
 *
 * MR_OK         *out is on loan until mr_loader_release(). Device parts are ready for work queued behind
 * parts[r].ready
 * MR_EEND       all epochs are delivered
 * MR_EAGAIN     nothing ready within timeout_ns (0 polls, MR_FOREVER waits). With prefetch 0 the call works
 *               for itself: it ends a chunk of up to 64 samples that it has begun, and a later call goes on
 * MR_ECANCELED  mr_loader_stop() was called
 * MR_EBUSY      another thread is in this call or in mr_loader_close(); or every batch there is room for is
 *               held (prefetch + 1, with devices 2, with prefetch 0 one): call again once one is released,
 * here or in another thread
 * MR_EINVAL     a function that the loader has called calls it; l or out is NULL; l is the parent's of fork()
 * other < 0     the first error of any stage, now and on every later call; err tells it */
MR_API int mr_loader_next_sized(mr_loader *l, mr_batch *out, uint64_t timeout_ns, mr_error *err);
static inline int mr_loader_next(mr_loader *l, mr_batch *out, uint64_t timeout_ns, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_loader_next_sized(l, out, timeout_ns, err);
}

/* Release a batch. streams[r] (NULL without devices) is the stream that uses part r: its device memory is
 * written again only after the work that is queued there now. Batches are released in the order in which they
 * were taken, by any thread, one at a time. When a device fails here, the batch is released nevertheless, and
 * mr_loader_next() returns the error. */
MR_API int mr_loader_release(mr_loader *l, mr_batch *batch, mr_stream *const *streams);

/* Keep a batch instead of releasing it: the loader gives its place to spare memory and goes on as if it had
 * been released, and what the batch points to (pixels, labels, ids, affine, field; not parts) stays as it is
 * until mr_kept_drop(), in any order, also when the loader was closed before. In the order in which batches
 * were taken, as mr_loader_release().
 *
 * MR_OK      *out is the caller's; the batch is given back
 * MR_ELIMIT  mr_loader_config.keep batches are kept: drop one, or release this one
 * MR_EINVAL  keep is 0, or an earlier batch is still held
 * MR_ENOMEM  nothing has changed, as after the two above */
typedef struct mr_kept mr_kept;
MR_API int mr_loader_keep(mr_loader *l, const mr_batch *batch, mr_kept **out, mr_error *err);
/* Any thread; never waits for a loader. Accepts NULL. */
MR_API void mr_kept_drop(mr_kept *k);
/* Batches of this loader that are kept now. Any thread. */
MR_API uint32_t mr_loader_kept(const mr_loader *l);

/* Any thread, a signal handler's thread included (not the handler itself), and any function of the program
 * that the loader calls: every wait ends with MR_ECANCELED. Waits for no such function. */
MR_API void mr_loader_stop(mr_loader *l);

/* Sum of times of all threads of a stage, ns, since open. */
typedef struct mr_stage_stats {
    uint64_t busy_ns;        /* working */
    uint64_t blocked_in_ns;  /* waiting for input */
    uint64_t blocked_out_ns; /* waiting for room behind it */
    uint64_t items;          /* read, decode: samples; copy, consume: batches */
    double occupancy;        /* mean fill of the queue in front of the stage, 0..1 */
    uint32_t threads;
} mr_stage_stats;

#define MR_LOADER_MAX_PARTS 64

/* What a device, or whoever takes batches, waited for. */
typedef enum mr_cause {
    MR_CAUSE_READ = 0, /* bytes that storage or a server had not brought */
    MR_CAUSE_DECODE,   /* samples being decoded, or waiting until a worker had decoded others */
    MR_CAUSE_LARGE,    /* the same: what single samples took beyond four times the mean */
    MR_CAUSE_MEMORY,   /* memory for a large picture */
    MR_CAUSE_CORES,    /* a core: the worker could have run, and other threads did */
    MR_CAUSE_QUOTA,    /* the same: the control group had used up its time */
    MR_CAUSE_LOCK,     /* a lock, a page fault, a thread that was woken late */
    MR_CAUSE_ROOM,     /* a free slot or buffer, before reading could begin */
    MR_CAUSE_COPY,     /* the link to the device */
    MR_CAUSE_HOST,     /* nothing of the loader: the batch was there, and its step was not queued */
    MR_CAUSE_UNKNOWN,  /* what nothing is recorded of */
    MR_CAUSES
} mr_cause;

/* ns of each; total_ns is their sum, and that of the intervals that were charged. */
typedef struct mr_causes {
    uint64_t ns[MR_CAUSES];
    uint64_t total_ns;
} mr_causes;

/* "read", "decode", ...; NULL: no such cause. */
MR_API const char *mr_cause_name(mr_cause cause);
/* In a few words: "reading", "cores taken by other threads". */
MR_API const char *mr_cause_text(mr_cause cause);

typedef struct mr_loader_stats {
    size_t struct_size;
    mr_stage_stats read, decode, copy;
    uint64_t wait_ns;          /* consumer blocked in mr_loader_next() */
    uint64_t batches, samples; /* delivered */
    uint64_t bytes_read;
    uint64_t bytes_copied[MR_LOADER_MAX_PARTS]; /* to each device */
    uint64_t bad_samples, replaced, skipped;
    uint64_t reads, reads_short, reads_again; /* system-level events */
    uint64_t cache_hits;                      /* samples that came from the cache */
    uint64_t cache_entries, cache_bytes;      /* in it now */
    uint64_t cache_dropped;                   /* entries that were damaged */
} mr_loader_stats;

/* Any thread. */
MR_API void mr_loader_stats_read_sized(const mr_loader *l, mr_loader_stats *out);
static inline void mr_loader_stats_read(const mr_loader *l, mr_loader_stats *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_loader_stats_read_sized(l, out);
}

/* What the consumer was blocked for in mr_loader_next(), so far. Any thread. */
MR_API void mr_loader_waits(const mr_loader *l, mr_causes *out);
/* Charge an interval in which a part's device (or, without devices, the consumer) had nothing to do until the
 * batch of this global_step was there: times of CLOCK_MONOTONIC, as events have them. Adds to *add; what is
 * recorded covers the batches that are under way and at least 16 before them, the rest is UNKNOWN. Any
 * thread. */
MR_API void mr_loader_charge(const mr_loader *l, uint64_t global_step, uint32_t part, uint64_t from_ns,
                             uint64_t to_ns, mr_causes *add);

/* A sample that took long to decode and augment, but for what its thread was kept from doing so. */
typedef struct mr_slow_sample {
    uint64_t sample, ns;
    uint64_t bytes; /* encoded */
    double times;   /* the mean of all samples */
} mr_slow_sample;

#define MR_LOADER_SLOWEST 8

/* The slowest samples so far, the slowest first; each once. Returns how many, at most room. Samples of about
 * a KiB and less are not timed. Any thread. */
MR_API uint32_t mr_loader_slowest(const mr_loader *l, mr_slow_sample *out, uint32_t room);

typedef enum mr_odd_kind { MR_ODD_WORKER = 0, MR_ODD_FILE } mr_odd_kind;

/* One worker, or one file, that took far longer than the others of its kind: the median of all, of two the
 * faster one. */
typedef struct mr_odd {
    mr_odd_kind kind;
    uint32_t number;      /* of the worker, as its thread is called; of the source's file */
    double ms, others_ms; /* mean, of a sample decoded and augmented, or of a read */
    double times;         /* ms / others_ms */
    uint64_t items;       /* samples, reads */
    mr_cause cause; /* what makes it so. A worker: DECODE, it was at it; CORES, it could have run; LOCK, it
                       was blocked. A file: READ */
} mr_odd;

#define MR_LOADER_ODD 8

/* Workers and files that stick out so far, workers first, each kind by times: a worker from twice the time of
 * others on, a file from three times, by the read and by the byte, and 0.3 ms a read. Files are looked at
 * where a source has 2 to 4,096 of them, and samples are read from them one by one. Returns how many, at most
 * room. Any thread. */
MR_API uint32_t mr_loader_odd(const mr_loader *l, mr_odd *out, uint32_t room);

/* What mr_loader_config.tune has led to so far. */
typedef struct mr_tuning {
    size_t struct_size;
    bool done;                                  /* nothing more is tried */
    uint32_t workers, prefetch, depth, readers; /* in use */
    uint32_t tried, taken;                      /* changes */
    double gain; /* rate with the last change that was taken over that with none, from turns side by side */
    uint64_t cache_bytes; /* that a cache in memory may take from now on; 0: there is none */
} mr_tuning;

/* Of a loader that does not tune: its settings, done. The consumer's thread. */
MR_API void mr_loader_tuning_sized(const mr_loader *l, mr_tuning *out);
static inline void mr_loader_tuning(const mr_loader *l, mr_tuning *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_loader_tuning_sized(l, out);
}

/* ------------------------------------------------------------------------------ record and replay */

/* How long chunks, copies and steps of a run took: the newest of each, in memory that does not grow. Filled
 * by a loader that is given it, and with steps by whoever runs them (mr_fit() does). A record belongs to one
 * loader at a time. Any thread. */
typedef struct mr_record mr_record;

/* chunks_most: of chunks (88 bytes each) that are kept, 1.. ; MR_EINVAL, MR_ENOMEM. */
MR_API int mr_record_create(mr_record **out, uint32_t chunks_most);
MR_API void mr_record_destroy(mr_record *r); /* accepts NULL */
/* Forget what is recorded so far: a warm-up. A loader that has another number of parts than the one before
 * does that, too. */
MR_API void mr_record_clear(mr_record *r);
/* A step of the batch of this number: when it began and ended on each of the loader's parts (CLOCK_MONOTONIC,
 * as events have them), and what their devices were idle for before it, added up. Nothing happens when the
 * loader has no record. */
MR_API void mr_loader_record_step(const mr_loader *l, uint64_t global_step, uint32_t samples,
                                  const uint64_t *start_ns, const uint64_t *end_ns, const mr_causes *causes);

/* What limits, by the idle part (0..1) of the devices and its causes: "compute" where they hardly idle, else
 * the name of the heaviest cause, those together that the same remedy helps against ("decode" stands for
 * decode and large, "cores" for cores and quota). A static string. */
MR_API const char *mr_limit_name(double idle, const mr_causes *causes);

typedef struct mr_record_totals {
    size_t struct_size;
    uint64_t chunks, steps; /* chunks: that are kept; steps: since the record was cleared, as all below */
    double seconds;         /* from the end of the first step to that of the last */
    double samples_per_s;   /* in these */
    double idle;            /* of the devices, 0..1 */
    mr_causes causes;       /* of that, mean over devices */
    const char *limit;      /* mr_limit_name() of it */
    double bytes_per_sample, decode_ms_per_sample, read_ms_per_chunk; /* decode: on a core */
    double step_ms;                 /* mean; computing, without what devices wait for */
    double read_core_ms_per_sample; /* of the readers' threads, on a core */
} mr_record_totals;
MR_API void mr_record_totals_read_sized(const mr_record *r, mr_record_totals *out);
static inline void mr_record_totals_read(const mr_record *r, mr_record_totals *out)
{
    if (out) out->struct_size = sizeof *out;
    mr_record_totals_read_sized(r, out);
}

/* A pipeline to send the recorded durations through, in the order in which they were recorded. */
typedef struct mr_replay_config {
    size_t struct_size;
    uint32_t batch, prefetch, workers, readers, depth, devices; /* as in mr_loader_config, but none of them 0,
                                                                   prefetch apart: in series */
    double cores;        /* that workers, readers, copies and steps share; each thread gets the same part */
    uint32_t step_cores; /* that a step wants on each device: threads of cpu devices. 0: it has its own */
    double others;       /* threads of other programs that want to run all the time; 0: the machine is ours */
    double copy_core_ms; /* of the copies of a batch to one device: a core copies for so long, as batches were
                          */
    double read_times;   /* durations are multiplied by these. read: until storage has answered; 0: samples
                            are in memory, no reader is needed */
    double decode_times, copy_times, step_times;
    double bytes_times;     /* of a sample, in storage: reading takes as many times as long */
    uint64_t batches;       /* to replay at most; 0: as many as were recorded, and enough of them */
    double read_core_times; /* what a reader's thread does on a core for a sample */
    double crowd_times; /* work on a core takes so many times as long when all cores are busy as when one is:
                           shared caches, hyper-threads; default 1 */
    double crowd_part;  /* of that, what the record has in it, 0..1: the part of the other cores that were
                           busy, with this program or others */
} mr_replay_config;

/* The settings of the loader that filled the record, this machine's cores, durations as they are. MR_EINVAL:
 * there is nothing to replay, which err explains: chunks, copies and steps are needed. */
MR_API int mr_replay_defaults_sized(const mr_record *r, mr_replay_config *cfg, size_t struct_size,
                                    mr_error *err);
static inline int mr_replay_defaults(const mr_record *r, mr_replay_config *cfg, mr_error *err)
{
    return mr_replay_defaults_sized(r, cfg, sizeof *cfg, err);
}

/* cfg->others: what must have run beside, for workers to be delayed as they were. */
MR_API int mr_replay_find_others(const mr_record *r, mr_replay_config *cfg, mr_error *err);

typedef struct mr_replay_result {
    size_t struct_size;
    double samples_per_s;
    double samples_per_s_error; /* half of the 95 % interval that replays of separate parts of the record
                                   span: how much the record says, not how good the model is */
    double idle;                /* of the devices, 0..1 */
    mr_causes causes;           /* of that, mean over devices */
    const char *limit;          /* mr_limit_name() of it */
    double step_ms_p50, step_ms_p95, step_ms_p99; /* from the end of a step to that of the next */
    double cores, read_bytes_per_s;               /* used, on average */
    uint64_t batches;                             /* that were counted */
} mr_replay_result;

/* Pure: the same record and settings give the same result. No clock, no thread. MR_EINVAL: a setting out of
 * range, or nothing to replay. */
MR_API int mr_replay_sized(const mr_record *r, const mr_replay_config *cfg, mr_replay_result *out,
                           mr_error *err);
static inline int mr_replay(const mr_record *r, const mr_replay_config *cfg, mr_replay_result *out,
                            mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_replay_sized(r, cfg, out, err);
}

/* The sample at a position of an epoch, computed by the sampler (I1) without a loader. MR_NOWHERE: there is
 * no such position, or the order is BALANCED, which needs the classes of a source. */
MR_API uint64_t mr_order_sample(mr_order order, uint32_t block, uint64_t seed, uint64_t epoch, uint64_t count,
                                uint64_t position);

/* A hash over everything that loaders deliver, in order: epoch, step, and a hash of each sample's id, label,
 * pixels, affine numbers, second label and fields. One digester may run over several loaders one after the
 * other (stop and resume): equal deliveries give equal digests, whatever the settings. */
typedef struct mr_digest {
    uint64_t lo, hi;
} mr_digest;
typedef struct mr_digester mr_digester;

MR_API int mr_digester_create(mr_digester **out);
MR_API void mr_digester_destroy(mr_digester *d);
/* For loaders of parts of a batch: called by the thread in mr_digester_run(), for each batch, with the
 * digests of its `all` samples, of which those of [first, first + count) are known here; it puts the others'
 * in their places, or returns an error.
 */
typedef int mr_digest_share(void *context, mr_digest *samples, uint32_t first, uint32_t count, uint32_t all,
                            mr_error *err);
MR_API void mr_digester_share(mr_digester *d, mr_digest_share *share, void *context);
/* Take batches until the loader ends or max_batches are taken. With devices (the loader's, which then needs
 * keep_host) every part is read back from its device and compared with the host copy: MR_EDEVICE when they
 * differ. *samples: of whole batches. */
MR_API int mr_digester_run(mr_digester *d, mr_loader *l, mr_device *const *devices, uint64_t max_batches,
                           uint64_t *batches, uint64_t *samples, mr_error *err);
MR_API mr_digest mr_digester_result(const mr_digester *d);

/* ------------------------------------------------------------------------------ convert */

typedef enum mr_store {
    MR_STORE_JPEG = 0, /* pictures keep their bytes */
    MR_STORE_RAW,      /* decoded pixels */
    MR_STORE_COEF,     /* JPEGs become MR_TYPE_COEF; pictures that cannot (PNG, CMYK) keep their bytes */
} mr_store;

typedef enum mr_to {
    MR_TO_MREC = 0,
    MR_TO_TFRECORD, /* tf.train.Example: image/encoded, image/format, image/class/label, image/height, ...;
                       other fields under their names */
    MR_TO_TAR,      /* WebDataset: KEY.jpg or .png, KEY.cls, other fields as KEY.NAME */
} mr_to;            /* which feature or member each field becomes: pipeline/convert/convert_tfrecord.c,
                       pipeline/convert/convert_tar.c */

typedef struct mr_convert_config {
    size_t struct_size;
    mr_store store;
    uint32_t resize;      /* shorter side at most this many pixels; 0: as it is */
    uint32_t quality;     /* JPEG quality where re-encoding is needed; default 90 */
    bool center_square;   /* RAW with resize: cut to resize x resize */
    uint32_t workers;     /* 0: one per core */
    uint64_t shard_bytes; /* start another file when one grows past this; 0: one file. With shards DST becomes
                             a shard list and the files are named DST-00000.mrec ...; TFRECORD: there is no
                             DST, the files are DST-00000-of-00128
                             ...; TAR: DST-000000.tar ... (DST without its ".tar") */
    bool resume, force;
    bool check;  /* decode every picture that is kept as it is (default true): damaged ones are bad samples */
    bool verify; /* read everything back at the end (default true) */
    uint64_t max_bad; /* stop when more samples are bad; default unlimited */
    mr_decode_config decode;
    const char *provenance; /* JSON text */
    /* from the calling thread */
    void (*progress)(void *context, uint64_t done, uint64_t count, uint64_t bytes);
    mr_bad_report *on_bad; /* from the calling thread, in source order */
    void *context;
    const volatile int *stop; /* set non-zero to stop cleanly; or NULL */
    bool entries;   /* JPEG: entry points beside JPEGs that can have them, in a field "image.entries" (default
                       true) */
    bool transcode; /* progressive and arithmetic JPEGs become sequential Huffman-coded ones with the same
                       coefficients and all APPn and COM segments (default false) */
    mr_to to;       /* what DST is; default MREC. The others have no resume and no store COEF, TAR no RAW */
    bool no_names;  /* leave out what samples were called (mr_source_sample_name()); else MREC keeps it in a
                       field  "sample.name", TFRECORD in "image/filename", TAR as the members' keys */
    uint64_t memory_bytes; /* what large pictures being converted at a time may take: they wait for each
                              other; one that alone takes more ends the run with MR_ELIMIT. 0: half of what
                              the process may use */
    /* resume: was on_bad told of this sample by an earlier run? Of those that run passed over and for which
     * this says no, on_bad is told first of all; their reasons are found by reading them again. NULL: they
     * are not told again. From the calling thread, with rising samples */
    bool (*bad_told)(void *context, uint64_t sample);
} mr_convert_config;

MR_API void mr_convert_defaults_sized(mr_convert_config *cfg, size_t struct_size);
static inline void mr_convert_defaults(mr_convert_config *cfg)
{
    mr_convert_defaults_sized(cfg, sizeof *cfg);
}

typedef struct mr_convert_result {
    size_t struct_size;
    uint64_t records, bad, resumed; /* resumed: records found whole from an earlier run */
    uint64_t bytes_in, bytes_out;
    uint32_t shards;
    uint64_t transcoded, with_entries; /* of the records made now, as those below */
    uint64_t coefficients, kept; /* COEF: pictures stored as coefficients, and those that cannot be and stay
                                    as they are */
} mr_convert_result;

/* Same source and settings give the same bytes, for any number of workers and however often interrupted and
 * resumed. What is written lies in files named .part until it is whole. MREC: shards get their names one by
 * one, and an interrupted run can be resumed. TFRECORD, TAR: everything is written and read back before the
 * first file gets its name; a run that fails or is stopped leaves nothing, one that is killed leaves .part
 * files, which the next run to the same DST takes over or removes. */
MR_API int mr_convert_sized(const mr_source *src, const char *dst, const mr_convert_config *cfg,
                            mr_convert_result *out, mr_error *err);
static inline int mr_convert(const mr_source *src, const char *dst, const mr_convert_config *cfg,
                             mr_convert_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_convert_sized(src, dst, cfg, out, err);
}

/* ------------------------------------------------------------------------------ repair */

typedef enum mr_repair_what {
    MR_REPAIR_DAMAGE = 0,   /* something is wrong, and no sample is lost with it */
    MR_REPAIR_LOST = 1,     /* samples that nothing gives back */
    MR_REPAIR_PUT_BACK = 2, /* samples that were lost here, from the second copy or the source */
    MR_REPAIR_MISSING = 3,  /* a file of the set is not there */
    MR_REPAIR_FILE = 4,     /* a file was written: to, with count samples */
} mr_repair_what;

typedef struct mr_repair_finding {
    size_t struct_size;
    mr_repair_what what;
    const char *file;  /* of the set */
    uint64_t offset;   /* in it; MR_NOWHERE: not known */
    uint64_t count;    /* samples; 0: at least one, how many is not known */
    uint64_t position; /* of the first of them in the set; MR_NOWHERE: not known */
    uint64_t number;   /* record files: its number in the converted source; MR_NOWHERE: not known */
    const char *name;  /* what it was called; "": not known, or several */
    const char *text;  /* why */
    const char *to;    /* FILE: what was written */
} mr_repair_finding;

typedef struct mr_repair_config {
    size_t struct_size;
    const char *dst; /* what is whole goes there: a folder for the files of a set, which is made, a file for a
                        file. NULL: nothing is written, or with in_place the damaged files are */
    bool in_place;   /* files that are damaged are replaced; what they were stays as NAME.damaged */
    bool force;      /* files in dst, NAME.damaged and the list may be replaced */
    const char *copy; /* a second copy of the set, damaged or not: its folder, or one of its files. NULL:
                         none */
    const mr_source *source; /* what record files were converted from; NULL: not there */
    void (*report)(void *context, const mr_repair_finding *finding); /* from the calling thread; or NULL */
    void *context;
    const volatile int *stop; /* set non-zero to stop; or NULL */
} mr_repair_config;

MR_API void mr_repair_defaults_sized(mr_repair_config *cfg, size_t struct_size);
static inline void mr_repair_defaults(mr_repair_config *cfg) { mr_repair_defaults_sized(cfg, sizeof *cfg); }

typedef struct mr_repair_result {
    size_t struct_size;
    char format[16];           /* "mrec", "tar", "tfrecord" */
    uint32_t files;            /* of the set, missing ones counted */
    uint32_t damaged, missing; /* of these */
    uint32_t written;          /* files */
    uint64_t samples;          /* whole ones, with those put back */
    uint64_t put_back, lost;   /* lost: as far as they can be counted */
    bool lost_unknown;         /* there may be more */
    bool list_damaged;         /* the list of record files is missing, damaged, or does not fit its files */
    bool list_written;
    bool renumbered;  /* files of dst have other numbers than those of the set, whose names say how many there
                         are */
    bool unprotected; /* the format has no checksums of the samples' bytes: a changed byte is not seen */
} mr_repair_result;

/* Look at a set of record files, tar archives or TFRecord files, say what is damaged, missing and lost, and
 * (with dst or in_place) write what is whole: every sample once, in the old order, with its old bytes. A file
 * from which nothing is lost comes out as it was written. path: a shard list, a file, a folder, a pattern, or
 * what the names of the files begin with.
 *
 * MR_OK        also where samples are lost: out says it
 * MR_ENOENT, MR_EUNSUPPORTED  there is no such set
 * MR_EEXIST    something would be replaced, and force is false
 * MR_EINVAL    copy or source are not of this set; err names what differs
 * MR_ECANCELED stopped; files written so far stay */
MR_API int mr_repair_sized(const char *path, const mr_repair_config *cfg, mr_repair_result *out,
                           mr_error *err);
static inline int mr_repair(const char *path, const mr_repair_config *cfg, mr_repair_result *out,
                            mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_repair_sized(path, cfg, out, err);
}

/* Is `other` of the format of the set at path, as a second copy would be, or something to convert from? By
 * names and first bytes; damaged files are no hindrance. *out is set on MR_OK. */
MR_API int mr_repair_is_copy(const char *path, const char *other, bool *out, mr_error *err);

/* ------------------------------------------------------------------------------ append */

typedef struct mr_append_config {
    size_t struct_size;
    uint32_t workers;      /* 0: one per core */
    uint64_t memory_bytes; /* as in mr_convert_config */
    bool force;            /* what an interrupted call with other samples left is thrown away */
    void (*progress)(void *context, uint64_t done, uint64_t count, uint64_t bytes);
    mr_bad_report *on_bad; /* samples of src that are left out, in its order */
    void *context;
    const volatile int *stop;
} mr_append_config;

MR_API void mr_append_defaults_sized(mr_append_config *cfg, size_t struct_size);
static inline void mr_append_defaults(mr_append_config *cfg) { mr_append_defaults_sized(cfg, sizeof *cfg); }

typedef struct mr_append_result {
    size_t struct_size;
    uint64_t before, after; /* samples of the set */
    uint64_t bad;           /* of src, left out */
    uint32_t files;         /* new ones */
    bool resumed; /* an interrupted call with the same samples was finished: they are in the set once */
} mr_append_result;

/* Add the samples of src to a set of record files, behind those that it has, in new files: numbers and bytes
 * of the old ones stay. They are converted by the settings that the set keeps; fields and classes must be
 * those of the set (mr_source_config.class_names). list_path: the set's shard list. Until the new list is in
 * place the set is what it was. A call that was killed is finished by the same call; two calls for one set do
 * not run together.
 *
 * MR_EEXIST    another program writes the list, or a file has a name that a new one needs; or an interrupted
 *              call with other samples is not finished, and force is false, or was finished now
 * MR_EINVAL, MR_EFORMAT  the samples do not fit the set, or it is no set of record files; err says what
 * differs MR_ECANCELED stopped; the same call goes on */
MR_API int mr_append_sized(const char *list_path, const mr_source *src, const mr_append_config *cfg,
                           mr_append_result *out, mr_error *err);
static inline int mr_append(const char *list_path, const mr_source *src, const mr_append_config *cfg,
                            mr_append_result *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_append_sized(list_path, src, cfg, out, err);
}

#ifdef __cplusplus
}
#endif
#endif
