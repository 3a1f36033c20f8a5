/* millrace/loader.h: batches of samples from storage, in a fixed order.
 *
 * mr_loader_defaults() fills the settings, mr_loader_config. mr_loader_open() starts a loader,
 * mr_loader_next() lends a batch to the program, mr_loader_release() returns the batch to the loader. The
 * order of samples and every pixel of every batch are a pure function of (data set, seed, epoch, order,
 * augment): threads, readers, slots, replicas, prefetch and resume points do not change them. By
 * default each sample comes once per epoch. */
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
    /* A random order, a new one in every epoch. In a mix (mr_source_info.mix) each data set gets its share of
     * the positions, to a ten-thousandth, in rounds of random order; its own samples come in random order,
     * and the counts of any two differ by at most one. The length of an epoch stays the same: samples of
     * small sets with large shares come several times per epoch, each time with new random augmentation,
     * samples of large sets with small shares once in several epochs */
    MR_ORDER_SHUFFLE = 0,
    /* Blocks of neighbouring samples in random order, samples shuffled within windows of 16 blocks; a new
     * order in every epoch. For media with slow random reads */
    MR_ORDER_BLOCK,
    MR_ORDER_SEQUENTIAL, /* the order of the data, the same in every epoch */
    /* Every class equally often: rounds with one sample of each class, in random order. The length of an
     * epoch stays the same: samples of small classes come several times per epoch, each time with new random
     * augmentation, samples of large classes once in several epochs. The source must know labels without
     * reading (mr_source_label()), else MR_EUNSUPPORTED */
    MR_ORDER_BALANCED,
} mr_order;
/* Handling of a short last batch (mr_loader_config.tail). */
typedef enum mr_tail { MR_TAIL_KEEP = 0, MR_TAIL_DROP, MR_TAIL_PAD } mr_tail;
typedef enum mr_io { MR_IO_AUTO = 0, MR_IO_URING, MR_IO_PREAD } mr_io;
typedef enum mr_cache { MR_CACHE_OFF = 0, MR_CACHE_MEMORY, MR_CACHE_DISK } mr_cache;
#define MR_CACHE_FITS UINT64_MAX /* for mr_loader_config.cache_bytes */
/* Handling of damaged samples. */
typedef enum mr_bad {
    MR_BAD_STOP = 0, /* end the run: mr_loader_next() returns MR_EBADSAMPLE */
    /* Deliver another sample of the epoch in its place. MR_EBADSAMPLE when 64 substitutes in turn are
     * damaged, too */
    MR_BAD_REPLACE,
    MR_BAD_SKIP /* deliver zeros with label -1 and id MR_NOWHERE in its place */
} mr_bad;

/* Callback for a damaged sample; called once per sample, however many epochs contain it. The mr_error has the
 * code of the damage (MR_EFORMAT, MR_ECHECKSUM, ...), also when mr_loader_next() then returns MR_EBADSAMPLE.
 * substitute: the sample delivered in its place, or MR_NOWHERE.
 *
 * It is also called for the sample that ends the run: a damaged sample with STOP, the sample that exceeds
 * max_bad, a sample for which no substitute is found. The error of mr_loader_next() then has the same file,
 * offset and sample. It is not called for damaged samples that were tried as substitutes.
 *
 * Threads: the caller of mr_loader_next(), before it returns the sample's batch or the error with which the
 * sample ends the run; the caller of mr_loader_close(), for samples of batches that were not taken. One call
 * at a time, no lock is held. Readers and workers continue during the call while slots are free. The callback
 * may take long and may call mr_loader_stop(); it must not wait for a batch of this loader, and must not take
 * or release a batch or close the loader. */
typedef void mr_bad_report(void *context, const mr_error *what, uint64_t substitute);

/* Callback for an order of the program's own: write the samples at positions [first, first + count) of an
 * epoch to out[count], as numbers below the source's count. first + count never exceeds
 * mr_loader_config.sampler_count.
 *
 * It must be a pure function of epoch and position: several threads of the loader call it at a time, in any
 * order, also for later epochs and repeatedly for the same positions, and a resumed run calls it again; every
 * call must give the same samples.
 *
 * Threads: one thread of the loader, which has no other work, requests the coming batches one at a time and
 * in order. A worker requests the substitute of a damaged sample (bad REPLACE). With prefetch 0 the caller of
 * mr_loader_next() requests both. No lock is held.
 *
 * It may wait, also until this loader has delivered the batches before the requested one: the loader reads,
 * decodes and delivers them during the call. A substitute belongs to the batch with the damaged sample, at
 * any position of its own in the epoch. With prefetch 0 the callback must not wait for a batch.
 * mr_loader_stop() never waits for it; mr_loader_close() returns after it has returned, so it must return
 * soon when the program closes the loader. It must not take or release a batch or close the loader.
 *
 * Returns MR_OK, or a negative code, which ends the run: mr_loader_next() returns this code and this err. */
typedef int mr_sampler(void *context, uint64_t epoch, uint64_t first, uint32_t count, uint64_t *out,
                       mr_error *err);

/* Fields of a sample delivered in addition to picture and label: boxes and masks, which are augmented with
 * their picture, and unchanged tensors: sequences, embeddings, numbers. */
typedef enum mr_role {
    MR_ROLE_PLAIN = 0,  /* unchanged: INT (delivered as i64), FLOAT (f64), or TENSOR of its dtype: a tensor of
                           one dimension is a row whose length may differ between samples; one of several
                           dimensions has a fixed shape */
    MR_ROLE_BOXES,      /* TENSOR [n][4 or more] f32 or f64: x0 y0 x1 y1 and further columns, delivered as
                           f32. Corners are fractions (0 to 1) of the stored picture's width and height, or
                           pixels with `in_pixels`; delivered as fractions of the picture in the batch.
                           Boxes are clipped to the picture; a box outside it is dropped */
    MR_ROLE_BOX_VALUES, /* TENSOR [n], one value per box of the BOXES field listed before it; dropped with its
                           box */
    MR_ROLE_MASK,       /* 8-bit numbers, one per pixel of the stored picture: PNG (also as BYTES), PIXELS, or
                           TENSOR of height x width. A PNG gives its stored numbers: palette indices, or gray
                           unscaled. Delivered as uint8 with the height and width of the picture in the batch;
                           cropped, resized (nearest neighbour) and flipped with it, it is `pad` outside of
                           the picture, and everywhere if the sample has no mask (0 bytes) */
} mr_role;

typedef struct mr_loader_field {
    const char *name; /* in the source's schema */
    mr_role role;
    uint32_t most; /* most elements (boxes; bytes of a TEXT or BYTES) of one sample, when their number
                      differs; a sample with more is a bad sample. 0: the largest number that the source knows
                      (mr_source_info), or 4,096 */
    double pad; /* value after the last element or box of a row; for MASK, outside of the picture; for a row
                   of fixed length, all of it if its sample is skipped (bad). A number that the dtype
                   represents exactly */
    bool in_pixels; /* BOXES: corners are pixels of the stored picture */
} mr_loader_field;

#define MR_LOADER_MAX_FIELDS 4

/* Return the role that follows from a field's name and type, for sources with pictures. The name up to its
 * first dot decides: "boxes", a TENSOR of f32 or f64, is BOXES; "box_labels", a TENSOR, is BOX_VALUES. A PNG,
 * PIXELS, IMAGE, BYTES or u8 TENSOR with a word in its name that begins with mask or seg ("mask",
 * "segmentation.png") is MASK. Every other field is PLAIN. */
MR_API mr_role mr_field_role(const mr_source_info *info, uint32_t field);

/* Settings. mr_loader_defaults() sets the defaults. mr_loader_open() returns MR_EINVAL with the member's name
 * for a value outside of the documented range or enumeration. The command's options have the same ranges,
 * and the same defaults except batch, epochs and augment, which the command takes from the model. */
typedef struct mr_loader_config {
    size_t struct_size;
    uint32_t batch;  /* samples in a global batch, 1 or more; default 128 */
    uint64_t seed;   /* of order and random augmentation; default 0 */
    uint64_t epochs; /* deliver epochs start_epoch .. epochs-1, 1 or more; UINT64_MAX: endless; default 1 */
    mr_order order;  /* default SHUFFLE */
    uint32_t block; /* BLOCK: samples per block; blocks are shuffled, and samples within windows of 16 blocks;
                       1 or more; default 256 */
    mr_tail tail;   /* KEEP: the last batch is short. DROP: it is dropped. PAD: it is filled with repeated
                       samples labelled -1. Default KEEP */
    uint32_t prefetch; /* batches prepared ahead, up to 65,535; 0: read, decode and copy in series in the
                          caller's thread; default 4. If the memory budget is too small for the defaults of
                          prefetch, workers (0) and depth, the loader lowers them, to 1, 1 and 4 at the
                          lowest, and on_note reports it; it never lowers values that the program has set */
    uint32_t workers;  /* decode threads, up to 4,096; 0 (default): one per core of the process; prefetch 0
                          uses none */
    /* reader threads, up to 1,024; 0 (default): one with io_uring, four with pread (each has one read in
     * flight) */
    uint32_t readers;
    uint32_t depth; /* reads in flight per reader, 1 to 4,096; default 32 */
    mr_io io;       /* AUTO: io_uring, or pread threads if the kernel refuses io_uring */
    bool direct;    /* O_DIRECT for shared files on a local disk; default false */
    bool training;  /* apply random operations of `augment`; default false: augment in its form for evaluation
                       (augment.h) */
    /* Default "none": pictures keep their size. Without an operation that fixes the size all pictures must
     * have one size: if the source states none (mr_source_info), it is the size of the first whole picture. A
     * picture of another size is MR_EINVAL with file, sample and both sizes. mr_loader_open() looks at 32
     * pictures, spread over the data, and the first of each set of a mix (at none with a sampler or for
     * samples that the program makes). Any other picture of another size is an error of mr_loader_next() and
     * ends the run, for every value of `bad`: it is not damaged */
    const char *augment;
    uint32_t channels; /* 1, 3, or 0: the channels of the data (3 when pictures differ) */
    mr_decode_config decode;
    mr_bad bad;       /* default STOP */
    uint64_t max_bad; /* REPLACE, SKIP: mr_loader_next() returns MR_EBADSAMPLE when more than this number of
                         different samples are damaged, over all epochs of this loader; damaged
                         substitutes do not count; default 100 */
    mr_bad_report *on_bad; /* called for each damaged sample, or NULL */
    void *bad_context;     /* passed to on_bad */
    uint64_t memory_bytes; /* budget of host memory for slots, read buffers and scratch; 0: half of the
                              memory that the process may use. Large pictures share the rest of the budget,
                              and wait until enough of it is free */
    /* Resume: epoch and step of the first batch. start_epoch is 0 to epochs - 1: from `epochs` on no batch is
     * left, and mr_loader_open() returns MR_EEND. start_step is 0 to steps_per_epoch (the start of the next
     * epoch), else MR_EINVAL */
    uint64_t start_epoch, start_step;
    mr_device *const *devices; /* one per replica; NULL: batches stay in host memory as one share */
    uint32_t device_count;
    uint32_t parts;  /* with devices NULL: number of shares that batches are cut into; default 1 */
    mr_trace *trace; /* receives spans of the stages (observe.h), or NULL */
    bool keep_host;  /* with devices: the host copy stays readable while the program holds a batch (a digester
                        needs it); costs host slots */
    uint64_t resident_bytes; /* a set of small samples (64 KiB on average or less) whose shared files have at
                                most this many bytes is read once, in large reads, and then served from memory
                                without requests or copies; 0: never; default 1 GiB. At most a quarter of the
                                memory budget */
    mr_cache cache; /* store samples of the first epoch for later epochs; default OFF. Changes no bit of a
                       batch */
    const char *cache_folder; /* DISK: created if missing; samples that an earlier run with the same data
                                 stored are used */
    uint64_t cache_bytes;     /* MEMORY: bytes out of memory_bytes; MR_CACHE_FITS: all that the loader
                                 leaves unused. DISK: size of file and index. Samples that do not fit are
                                 read from the data in every epoch: nothing is evicted */
    void (*on_note)(void *context, const char *text); /* callback for notes to the user, each once; or NULL.
                                                         Threads and allowed calls: as for mr_bad_report, and
                                                         mr_loader_open() calls it too */
    void *note_context;                               /* passed to on_note */
    bool free_order; /* deliver batches in the order in which they become complete: the same batches in an
                        order that depends on the machine, to measure the cost of the fixed order. Needs host
                        memory and prefetch above 0; default false */
    bool no_checks;  /* skip the checksums of records, to measure their cost; default false */
    const mr_loader_field *fields; /* copied, including names; with fields the source may have no pictures */
    uint32_t field_count;          /* at most MR_LOADER_MAX_FIELDS; fields exclude a cache */
    uint32_t length_window;   /* window in batches: within each window of the order, samples are sorted by
                                 length (stable), cut into batches, and the batches delivered in random order,
                                 so that rows of a batch need little padding. A short batch stays the epoch's
                                 last; PAD repeats its own samples. The source must know lengths
                                 (mr_source_length()), else MR_EUNSUPPORTED. 0: off. Part of the order: a
                                 resumed run needs the same value */
    uint32_t width_multiple;  /* rows of differing length are padded to the batch's longest row, rounded up to
                                 a multiple of this, 1 to 1,048,576; default 1 */
    mr_budget *budget;        /* shared budget in place of memory_bytes; must outlive the loader. NULL:
                                 memory_bytes */
    struct mr_record *record; /* receives recorded durations (observe.h); must outlive the loader. NULL: no
                                 record */
    uint32_t tune; /* mr_tune bits: settings that the loader may change during its first batches to deliver
                      faster. Changes no bit of a batch. Memory is reserved for the largest values that it may
                      try, within memory_bytes; tuning begins with the configured values. mr_loader_tuning()
                      and on_note report its results. Default 0: no tuning. No effect with prefetch 0 */
    /* For one of several loaders of the same run, in this process or others: the global batch is cut into
     * all_parts shares, and this loader reads and delivers its own shares (one per device, else `parts`),
     * from share first_part on. Rank r of w with d devices each: all_parts = w * d, first_part = r * d. All
     * loaders must have the same settings of order, batches and pixels; their batches side by side are then
     * the batches of one loader that delivers everything (rows of differing length are padded to the longest
     * row in this loader's shares). Default all_parts 0: this loader delivers all shares */
    uint32_t all_parts, first_part;
    uint32_t keep; /* number of batches that mr_loader_keep() may keep at a time, each with memory of its own;
                      up to 4,096. Host memory only; default 0 */
    bool count_unlabelled; /* give samples of a source without labels label 0 in place of -1, so that they
                              count (mr_batch.counted): for networks without classes. Padding and skipped
                              samples keep -1. No effect on a source with labels. Default false */
    /* An order of the program's own, in place of `order` and `block`. An epoch has sampler_count positions,
     * which may differ from the number of samples; a sample may stand at any number of positions, including
     * none. sampler_samples[position] is the sample at a position in every epoch: an array that the program
     * lends, leaves unchanged and keeps longer than the loader. With sampler_samples NULL,
     * sampler(sampler_context, ...) returns the samples. sampler_count 0 and both NULL, the default: no such
     * order.
     *   The other rules of orders hold: batches are cut from the positions, tails are dropped or padded,
     *   several loaders share the global batch, and a run resumed at an epoch and step continues identically,
     *   provided that the sampler is the same; the loader cannot check this. Random operations draw by the
     *   seed and the position over all epochs, so a repeated sample gives a different picture. A damaged
     *   sample is replaced by a sample from another position of the epoch. Excludes length_window and order
     *   BALANCED.
     *   A number not below the source's count is MR_EINVAL with position, number and count: at
     *   mr_loader_open() for an array, at the call for a function. */
    uint64_t sampler_count;
    const uint64_t *sampler_samples;
    mr_sampler *sampler;
    void *sampler_context;
    /* Repeated augmentation (Hoffer et al. 2020; Berman et al. 2019): each sample of a batch comes `repeats`
     * times in it, each time with new random augmentation. A batch of B has ceil(B / repeats) samples, once
     * each, then the same samples again. The length of an epoch stays the same, so an epoch holds 1/repeats
     * of the samples and the next epoch others. 0 and 1 (default): once. Part of the order: a resumed
     * run needs the same value. Needs order SHUFFLE, BLOCK or SEQUENTIAL; excludes a sampler and
     * length_window */
    uint32_t repeats;
    /* Operations of the program's own that `augment` may name. Copied; contexts must outlive the loader. A
     * checkpoint stores their names and arguments in the augmentation's text; a resumed run must supply the
     * same functions, which the loader cannot check */
    const mr_own_operation *operations;
    uint32_t operation_count;
    /* Memory for entry points, with several epochs and no cache: the first decoding of a JPEG without entry
     * points finds them, and later epochs decode the JPEG like a record with entry points. The limit is the
     * smallest of this value, an eighth of the memory budget, and the need of the set; 0: never; default 1
     * GiB. Changes no bit of a batch */
    uint64_t entry_bytes;
} mr_loader_config;

typedef enum mr_tune {
    MR_TUNE_WORKERS = 1,
    MR_TUNE_PREFETCH = 2,
    MR_TUNE_DEPTH = 4,
    MR_TUNE_READERS = 8,
    MR_TUNE_CACHE = 16, /* with cache OFF: add a cache in memory if the loader's work delays the consumer */
    MR_TUNE_ALL = 31,
} mr_tune;

MR_STABLE_INLINE void mr_loader_defaults(mr_loader_config *cfg);

typedef struct mr_loader mr_loader;

/* The layout of a field in batches. */
typedef struct mr_loader_field_info {
    const char *name; /* owned by the loader */
    mr_role role;
    mr_dtype dtype;
    bool varies;   /* rows have lengths, and their width differs between batches */
    uint32_t ndim; /* dimensions of one element (box: {columns}; fixed tensor: its shape; mask: {height,
                      width}); 0: a number */
    uint64_t dim[MR_MAX_DIMS];
    uint64_t element_bytes;
    uint32_t most; /* most elements in a row, including the padding of width_multiple; 1 if varies is false */
} mr_loader_field_info;

/* Facts that are fixed for the life of a loader. */
typedef struct mr_loader_info {
    uint32_t batch, parts; /* batch: samples in a global batch; parts: shares that this loader delivers */
    uint32_t height, width, channels; /* of every picture in a batch, uint8 NHWC; 0 for a source without
                                         pictures */
    uint64_t sample_count;            /* in the data set */
    uint64_t steps_per_epoch;
    uint64_t epoch_samples;   /* delivered per epoch: sample_count or sampler_count, or less with DROP */
    uint64_t dropped, padded; /* per epoch, by the tail policy */
    uint32_t prefetch, workers, readers;
    const char *io;        /* "io_uring", "pread" */
    const char *io_note;   /* why io_uring is not used, or "" */
    uint64_t memory_bytes; /* upper bound of the loader's host memory, without the source's memory; checked
                              against the budget at open. Use is usually lower */
    uint64_t max_pixels;   /* largest picture that the budget allows, one at a time; a larger picture, up to
                              decode.max_pixels, ends the run with MR_ELIMIT */
    uint64_t device_bytes; /* per device */
    bool uses_affine;      /* `augment` has standardise: batches have `affine` */
    /* Of normalise(), per channel, for values from 0 to 255. Default mean 0 and std 255, with standardise 0
     * and 1. Pixels of a batch are not normalised: the network's input is (x * a + b - mean[c]) / std[c],
     * with a and b of mr_batch.affine */
    float mean[4], std[4];
    const char *augment;  /* full text, with presets expanded */
    uint64_t fingerprint; /* of the source */
    mr_order order;       /* as configured, like block and tail: with seed and batch they fix the order of
                             samples */
    uint32_t block;
    mr_tail tail;
    mr_pixels pixels;
    uint64_t resident_bytes; /* memory that holds the whole set, included in memory_bytes; 0: samples are read
                                one by one */
    uint32_t field_count;
    mr_loader_field_info field[MR_LOADER_MAX_FIELDS];
    uint32_t length_window; /* as configured */
    bool ignore_exif;       /* as configured */
    bool labelled;          /* the source has labels */
    bool counts;            /* samples count in losses: labelled or count_unlabelled */
    bool mixes;             /* mixup or cutmix mixes pictures of a batch (mr_batch.labels2) */
    uint32_t repeats;       /* as configured, 1 at least */
    bool sampled; /* the order is the program's own (mr_loader_config.sampler), not `order`. A checkpoint does
                     not store it: a resumed run must set the same sampler */
    uint64_t seed;                    /* as configured, like start_epoch and start_step */
    uint64_t start_epoch, start_step; /* of the first batch */
    bool training;                    /* as configured */
} mr_loader_info;

/* The state of processing of a share's samples. Today there is one form. Consumers must refuse an unknown
 * form, so that forms can be added for devices that decode. Such a form would deliver a worker's data before
 * its expensive computation and leave the computation to an operation on the device that yields the same
 * pixels, bit for bit (the arithmetic is integers):
 *   - coefficients: per sample its crop window in blocks, the quantisation tables, both resampling axes and
 *     the mirror bit, then the window's rows of blocks, packed as in MR_TYPE_COEF. The device unpacks,
 *     and does the inverse DCT, resampling and colour conversion;
 *   - JPEG: the same head, the Huffman tables, and the scan's bytes from the entry point above the window to
 *     the entry point below it. The device also does the Huffman decoding, with one thread per row between
 *     entry points.
 * Both have a different length for each sample: `pixels` would point at count + 1 offsets followed by the
 * samples, and fewer bytes than the pixels have would be copied to the device. */
typedef enum mr_part_form {
    MR_PART_PIXELS = 0, /* finished: count * height * width * channels uint8 */
} mr_part_form;

/* A field of a batch or share: contiguous rows of `width` elements (or of fixed shape). */
typedef struct mr_batch_field {
    const void *data;      /* count * width elements of element_bytes each */
    const int32_t *length; /* count lengths: number of valid elements of each row, followed by padding; NULL
                              if the rows have one length */
    uint32_t width; /* elements in each row of this batch, the same in all shares; never 0: width_multiple if
                       all rows are empty, 1 if the rows have one length */
} mr_batch_field;

/* One replica's contiguous share of a batch: samples [first, first + count) of the global one; count may be
 * 0. */
typedef struct mr_part {
    uint32_t first, count;
    const void *pixels; /* device (or host) memory, in the form `form` */
    const void *labels; /* count int32 */
    const void *affine; /* count pairs of float, as in mr_batch, or NULL */
    mr_event *ready;    /* recorded after the copies; NULL without devices */
    mr_part_form form;
    /* in the order of the configuration; same memory as pixels */
    mr_batch_field field[MR_LOADER_MAX_FIELDS];
    const void *labels2, *share2; /* count int32 and count float, or both NULL: as in mr_batch */
} mr_part;

typedef struct mr_batch {
    size_t struct_size;
    uint64_t epoch, step;  /* step within the epoch */
    uint64_t global_step;  /* since epoch 0 */
    bool last;             /* of its epoch */
    uint32_t count;        /* samples in it, padding included */
    uint32_t counted;      /* samples with a label >= 0: the divisor of a mean loss */
    const uint8_t *pixels; /* host copy, count x height x width x channels, valid until the batch is released.
                              Three channels: red, green, blue. pixels, labels, ids and affine are NULL with
                              devices unless keep_host was set */
    const int32_t *labels;
    const uint64_t *ids; /* number of the delivered sample, for REPLACE of the substitute; MR_NOWHERE for
                            padding and skipped samples */
    const float *affine; /* per sample a and b: x * a + b are the standardised pixels (minus the picture's
                            mean, divided by its standard deviation); NULL without standardise */
    uint32_t part_count;
    const mr_part *parts;
    mr_batch_field field[MR_LOADER_MAX_FIELDS]; /* host memory; data NULL with devices, unless keep_host was
                                                   set */
    uint32_t first, all_count; /* the batch is samples [first, first + count) of a global batch of all_count
                                  samples; other loaders may have the others */
    const int32_t *labels2; /* a mixed sample is share2 (0 to 1) of a picture with this label and 1 - share2
                               of a picture with its own label (mixup, cutmix; for losses see mr_op_args). -1:
                               not mixed. NULL without mixing. Valid with pixels */
    const float *share2;    /* 0: not mixed */
} mr_batch;

/* Open a loader and, unless prefetch is 0, start its threads. src, devices, trace and bad_context must
 * outlive the loader.
 *
 * MR_EEND    all epochs are done: start_epoch is not below epochs, and every other setting is valid. This is
 *            the answer to a program that resumes a complete run
 * MR_EINVAL  a setting is wrong; err names it
 * MR_ELIMIT  the loader needs more memory than the budget: err lists the needs and names the setting to
 *            lower
 * other < 0  see base.h. *out is NULL on every error */
MR_STABLE int mr_loader_open(mr_loader **out, const mr_source *src, const mr_loader_config *cfg,
                             mr_error *err);
/* Stop the loader, wait for work in flight, for callbacks that have not returned and for a thread in
 * mr_loader_next(); join the threads, make the outstanding calls of on_bad and on_note, and free the loader.
 * Release all batches first: this call frees their memory, so a batch that is still held becomes invalid. Any
 * thread, once. When a callback of this loader (on_bad, on_note, sampler, an operation, a fetch) calls it,
 * the loader stops but is not closed, and mr_loader_next() returns MR_EINVAL with this reason. In a child of
 * fork() it does nothing. Accepts NULL. */
MR_STABLE void mr_loader_close(mr_loader *l);
/* Facts about the loader, owned by it. */
MR_STABLE const mr_loader_info *mr_loader_info_of(const mr_loader *l);
/* The source on which the loader was opened. */
MR_API const mr_source *mr_loader_source(const mr_loader *l);

/* Take the next batch, in order. One thread at a time; a second one gets MR_EBUSY.
 *
 * MR_OK         *out is on loan until mr_loader_release(). Device shares are ready for work queued after
 *               parts[r].ready
 * MR_EEND       all epochs are delivered
 * MR_EAGAIN     nothing ready within timeout_ns (0 polls, MR_FOREVER waits). With prefetch 0 the call itself
 *               reads and decodes: it finishes the current chunk of up to 64 samples, and a later call
 *               continues
 * MR_ECANCELED  mr_loader_stop() was called
 * MR_EBUSY      another thread is in this call or in mr_loader_close(); or the program holds a batch in each
 *               slot (prefetch + 1 slots; 2 with devices; 1 with prefetch 0): release a batch and call again
 * MR_EINVAL     called by a callback of this loader; l or out is NULL; l belongs to the parent of fork()
 * other < 0     the first error of any stage, now and on every later call; err describes it */
MR_STABLE_INLINE int mr_loader_next(mr_loader *l, mr_batch *out, uint64_t timeout_ns, mr_error *err);

/* Choose the batch that mr_loader_next() delivers next: of this epoch and step, earlier or later than the
 * last one. Only for a loader with prefetch 0 and without devices, which prepares no batch in advance; the
 * call reads nothing and costs less than opening a loader. The content of a batch does not depend on it.
 *
 * MR_EINVAL        the epoch is not below mr_loader_config.epochs, or the step not below steps_per_epoch
 * MR_EBUSY         a batch is not released yet, or mr_loader_next() returned MR_EAGAIN and has begun one;
 *                  another thread is in mr_loader_next()
 * MR_EUNSUPPORTED  the loader has threads or devices: open another one at this position
 * other < 0        the first error of the loader, as from mr_loader_next() */
MR_API int mr_loader_seek(mr_loader *l, uint64_t epoch, uint64_t step, mr_error *err);

/* Write the numbers of the samples that a batch has on this loader: mr_batch.ids of the batch of this epoch
 * and step, if no sample is damaged. They follow from the order; the call reads no sample, and does not
 * change the batch that mr_loader_next() delivers next. Any thread, also while another is in
 * mr_loader_next(); it waits only if mr_loader_config.sampler does, which it calls.
 *
 * out     room for `room` numbers: mr_loader_config.batch is enough. MR_NOWHERE for padding
 * first   position of the first of them in the global batch (mr_batch.first)
 * count   how many there are, 0 included
 *
 * MR_OK      *first and *count are written, and count numbers
 * MR_EINVAL  the epoch is not below mr_loader_config.epochs, the step not below steps_per_epoch, or room
 *            below the count
 * other < 0  as the sampler returned, or MR_ENOMEM of a length window */
MR_API int mr_loader_samples(mr_loader *l, uint64_t epoch, uint64_t step, uint64_t *out, uint32_t room,
                             uint32_t *first, uint32_t *count, mr_error *err);

/* Release a batch. streams[r] (streams may be NULL without devices) is the stream that uses share r: the
 * loader rewrites the share's device memory only after the work queued on this stream so far. Release batches
 * in the order in which they were taken, from any thread, one at a time. If a device fails here, the batch is
 * released all the same, and mr_loader_next() returns the error. MR_EINVAL: an earlier batch is still held,
 * streams is NULL with devices, or a callback of this loader calls it; the batch is still held, and nothing
 * has changed. After any other error the batch is released. */
MR_STABLE int mr_loader_release(mr_loader *l, mr_batch *batch, mr_stream *const *streams);

/* Keep a batch instead of releasing it. The loader replaces its slot with spare memory and continues as after
 * mr_loader_release(). The memory of the batch (pixels, labels, ids, affine, field; not parts) is unchanged
 * until mr_kept_drop(), also after mr_loader_close(). Keep or release batches in the order in which they were
 * taken; drop kept batches in any order.
 *
 * MR_OK      the caller owns *out; the batch counts as released
 * MR_ELIMIT  mr_loader_config.keep batches are kept: drop one of them, or release this batch
 * MR_EINVAL  keep is 0, or an earlier batch is still held
 * MR_ENOMEM  nothing has changed, as after MR_ELIMIT and MR_EINVAL */
typedef struct mr_kept mr_kept;
MR_STABLE int mr_loader_keep(mr_loader *l, const mr_batch *batch, mr_kept **out, mr_error *err);
/* Free a kept batch. Any thread; never waits for a loader. Accepts NULL. */
MR_STABLE void mr_kept_drop(mr_kept *k);
/* Return the number of batches of this loader that are kept now. Any thread. */
MR_API uint32_t mr_loader_kept(const mr_loader *l);

/* End every wait of this loader with MR_ECANCELED. Any thread, including a thread that waits for signals (but
 * not a signal handler), and every callback of the loader. It never waits for a callback. */
MR_STABLE void mr_loader_stop(mr_loader *l);

/* Return the sample at a position of an epoch, computed by the order's definition, without a loader.
 * MR_NOWHERE: the position is not below count, or the order is BALANCED, which needs the classes of a
 * source. */
MR_API uint64_t mr_order_sample(mr_order order, uint32_t block, uint64_t seed, uint64_t epoch, uint64_t count,
                                uint64_t position);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_STABLE void mr_loader_defaults_sized(mr_loader_config *cfg, size_t struct_size);
static inline void mr_loader_defaults(mr_loader_config *cfg) { mr_loader_defaults_sized(cfg, sizeof *cfg); }

MR_STABLE int mr_loader_next_sized(mr_loader *l, mr_batch *out, uint64_t timeout_ns, mr_error *err);
static inline int mr_loader_next(mr_loader *l, mr_batch *out, uint64_t timeout_ns, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_loader_next_sized(l, out, timeout_ns, err);
}

#ifdef __cplusplus
}
#endif
#endif
