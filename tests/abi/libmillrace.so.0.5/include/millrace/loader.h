/* millrace/loader.h: samples from storage into batches, in order and on time.
 *
 * The loader takes its settings from mr_loader_config, which mr_loader_defaults() fills. mr_loader_open()
 * starts it, mr_loader_next() gives a batch, mr_loader_release() gives it back. The order of samples and
 * every pixel of every batch are a pure function of (data set, seed, epoch, order, augment): threads,
 * readers, slots, replicas, prefetch and resume points change nothing (ARCHITECTURE.md, I1-I4). */
#ifndef MILLRACE_LOADER_H
#define MILLRACE_LOADER_H

#include "millrace/augment.h"
#include "millrace/formats.h"
#include "millrace/image.h"
#include "millrace/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_trace mr_trace;   /* observe.h */
typedef struct mr_record mr_record; /* observe.h */

#define MR_LOADER_MAX_PARTS 64

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
    /* Where there are several epochs and no cache: entry points of JPEGs that have none are noted when a
     * picture is first decoded, and kept in memory, so that later epochs decode it as they would from a
     * record with entry points. At most so many bytes, an eighth of the memory budget, and what the set
     * needs; 0: never; default 1 GiB. Changes no bit of a batch */
    uint64_t entry_bytes;
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
    uint64_t seed;          /* as configured, like the two below */
    uint64_t start_epoch, start_step; /* of the first batch */
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

/* The sample at a position of an epoch, computed by the sampler (I1) without a loader. MR_NOWHERE: there is
 * no such position, or the order is BALANCED, which needs the classes of a source. */
MR_API uint64_t mr_order_sample(mr_order order, uint32_t block, uint64_t seed, uint64_t epoch, uint64_t count,
                                uint64_t position);

#ifdef __cplusplus
}
#endif
#endif
