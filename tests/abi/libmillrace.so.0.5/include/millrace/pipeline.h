/* millrace/pipeline.h: moving samples from storage to a device, in order and on time.
 *
 *   images    decode, resize, encode one picture (what `convert` needs)
 *   augment   a small language for what happens to a picture on its way into a batch
 *   loader    sampler -> reader -> workers -> batch slot -> copy -> device slot
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
 * and by how chroma is interpolated. */
typedef enum mr_pixels { MR_PIXELS_OWN = 0, MR_PIXELS_LIBJPEG = 1 } mr_pixels;

typedef struct mr_decode_config {
    size_t struct_size;
    uint32_t channels;   /* 1, 3, or 0: as stored (gray stays 1, everything else becomes 3) */
    uint64_t max_pixels; /* refuse larger images before memory is taken; default 100,000,000 */
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
/* Resize with antialiasing (a triangle filter widened by the scale) to width x height. out is allocated. */
MR_API int mr_image_resize(const mr_image *in, uint32_t width, uint32_t height, mr_image *out, mr_error *err);
/* Baseline JPEG, quality 1..100, 4:2:0 below 91 and 4:4:4 from there; *data is malloc'd, the caller frees
 * it. */
MR_API int mr_image_encode_jpeg(const mr_image *in, int quality, void **data, size_t *bytes, mr_error *err);
/* 8-bit PNG; as above. */
MR_API int mr_image_encode_png(const mr_image *in, void **data, size_t *bytes, mr_error *err);

/* A checker of whole pictures, for tools: decoders and buffers, for one thread at a time. */
typedef struct mr_checker mr_checker;

MR_API int mr_checker_create(mr_checker **out);
MR_API void mr_checker_destroy(mr_checker *c); /* accepts NULL */
/* Decode a whole picture (JPEG, PNG, PIXELS, COEF) and discard the pixels: MR_OK, or the error. Entry points
 * of a JPEG must be correct. cfg may be NULL: the defaults. */
MR_API int mr_checker_run(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, mr_error *err);
/* MR_TYPE_COEF: a baseline JPEG file with the same coefficients; *data is malloc'd, the caller frees it. */
MR_API int mr_coef_to_jpeg(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, void **data,
                           size_t *bytes, mr_error *err);

/* ------------------------------------------------------------------------------ augment */

/* SPEC: operations in order, separated by commas, or a preset.
 *   rrc resize center padcrop shift       move pixels
 *   flip                                  mirrors
 *   brightness contrast saturation        change pixels
 *   standardise normalise                 fix the numbers that go with them
 * mr_augment_help() says of each how it is written and what it does; `millrace help augment` prints that.
 *
 * rrc(..,covers=C) takes the boxes of the first field that a loader delivers as BOXES, else of the first for
 * which mr_field_role() says BOXES, as parts of the picture; a loader that has neither, or a cache, does not
 * open. Nothing of this in evaluation.
 * Presets: none, rrc224 = rrc(224),flip,normalise(imagenet); center224 =
 * resize(256),center(224),normalise(imagenet); cifar = padcrop(4),flip. A random operation is left out in
 * evaluation, except that rrc(N) becomes resize(N * 8/7),center(N) and padcrop with a SIZE its centre
 * crop. */
typedef struct mr_augment mr_augment;

MR_API int mr_augment_create(mr_augment **out, const char *spec, bool training, mr_error *err);
MR_API void mr_augment_destroy(mr_augment *a);
/* The output size for pictures of this size (0 x 0: sizes differ). MR_EINVAL when the result would not be one
 * fixed size: err says which operation to add. channels is passed through. */
MR_API int mr_augment_output(const mr_augment *a, uint32_t in_h, uint32_t in_w, uint32_t *out_h,
                             uint32_t *out_w, mr_error *err);
/* mean[c], std[c] of normalise(), in units of 0..255, for MR_OP_INPUT; uses_affine: standardise is there. */
MR_API void mr_augment_normalise(const mr_augment *a, float mean[4], float std[4], bool *uses_affine);
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
 * Times in ns of CLOCK_MONOTONIC. t may be NULL (then nothing happens). Any thread. */
MR_API void mr_trace_span(mr_trace *t, const char *track, const char *name, uint64_t start_ns,
                          uint64_t end_ns, uint64_t batch);
/* Chrome trace event format (JSON array of complete events), written to a part file and renamed. */
MR_API int mr_trace_write(const mr_trace *t, const char *path, mr_error *err);

typedef struct mr_trace_entry {
    const char *track, *name;
    uint64_t start_ns, end_ns, batch;
} mr_trace_entry;
/* For tests and reports: spans in the order they were added; *out is malloc'd. */
MR_API int mr_trace_entries(const mr_trace *t, mr_trace_entry **out, size_t *count);

/* ------------------------------------------------------------------------------ loader */

typedef enum mr_order { MR_ORDER_SHUFFLE = 0, MR_ORDER_BLOCK, MR_ORDER_SEQUENTIAL } mr_order;
typedef enum mr_tail { MR_TAIL_KEEP = 0, MR_TAIL_DROP, MR_TAIL_PAD } mr_tail;
typedef enum mr_io { MR_IO_AUTO = 0, MR_IO_URING, MR_IO_PREAD } mr_io;
typedef enum mr_cache { MR_CACHE_OFF = 0, MR_CACHE_MEMORY, MR_CACHE_DISK } mr_cache;
typedef enum mr_bad { MR_BAD_STOP = 0, MR_BAD_REPLACE, MR_BAD_SKIP } mr_bad;

/* A damaged sample is reported to the caller's function from a worker thread, one at a time; each sample
 * once, no matter how many epochs contain it. */
typedef void mr_bad_report(void *context, const mr_error *what, uint64_t substitute);

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

typedef struct mr_loader_config {
    size_t struct_size;
    uint32_t batch;  /* samples in a GLOBAL batch, 1.. ; default 128 */
    uint64_t seed;   /* default 0 */
    uint64_t epochs; /* epochs 0 .. epochs-1 are delivered (from start_epoch on); UINT64_MAX: endless; default
                        1 */
    mr_order order;
    uint32_t block;    /* BLOCK: samples per block; blocks are shuffled, and samples inside a window of 16;
                          default 256 */
    mr_tail tail;      /* KEEP: a short last batch. DROP: none. PAD: filled up with repeats labelled -1 */
    uint32_t prefetch; /* batches prepared ahead; 0: read, decode, copy in series in the caller's thread;
                          default 4 */
    uint32_t workers;  /* decode threads; 0: one per core of the process; prefetch 0 uses none */
    /* reader threads; 0: one with io_uring, four with pread (each has one read in flight) */
    uint32_t readers;
    uint32_t depth;      /* reads in flight per reader, default 32 */
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
                              process may use. decode.max_pixels is lowered to what the rest of the budget can
                              hold */
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
    uint64_t cache_bytes; /* MEMORY: part of memory_bytes; DISK: of the file and its index. What does not fit
                             is read from the data in every epoch: nothing is evicted */
    void (*on_note)(void *context, const char *text); /* notes for the user that do not stop the run, each
                                                         once; from any thread, one at a time; or NULL */
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
                                multiple of this; default 1 */
} mr_loader_config;

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
    uint32_t batch, parts;
    uint32_t height, width, channels; /* of every picture in a batch, uint8 NHWC; 0 of a source without
                                         pictures */
    uint64_t sample_count;            /* in the data set */
    uint64_t steps_per_epoch;
    uint64_t epoch_samples;   /* delivered per epoch: sample_count, or less (DROP) */
    uint64_t dropped, padded; /* per epoch, by the tail policy */
    uint32_t prefetch, workers, readers;
    const char *io;        /* "io_uring", "pread" */
    const char *io_note;   /* why not io_uring, or "" */
    uint64_t memory_bytes; /* host memory the loader may use at most, the source's own not counted: checked
                              against the budget at open */
    uint64_t max_pixels;   /* largest picture that the budget lets a worker decode */
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

/* One replica's contiguous share of a batch: samples [first, first + count) of it; count may be 0. */
typedef struct mr_part {
    uint32_t first, count;
    const void *pixels; /* device (or host) memory: what `form` says */
    const void *labels; /* count int32 */
    const void *affine; /* count pairs of float, or NULL */
    mr_event *ready;    /* recorded behind the copies; NULL without devices */
    mr_part_form form;
    /* in the order of the configuration; memory as that of pixels */
    mr_batch_field field[MR_LOADER_MAX_FIELDS];
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
} mr_batch;

/* src must outlive the loader. MR_ELIMIT when the needed memory exceeds the budget: err says what needs how
 * much and which setting to lower. Starts threads unless prefetch is 0. Devices, trace and bad_context must
 * outlive the loader too. */
MR_API int mr_loader_open(mr_loader **out, const mr_source *src, const mr_loader_config *cfg, mr_error *err);
/* Stops (if still running), waits for what is in flight, joins, frees. All batches must have been released.
 * Accepts NULL. */
MR_API void mr_loader_close(mr_loader *l);
MR_API const mr_loader_info *mr_loader_info_of(const mr_loader *l);

/* Take the next batch, in order. One consumer thread.
 *
 * MR_OK         *out is on loan until mr_loader_release(). Device parts are ready for work queued behind
 * parts[r].ready
 * MR_EEND       all epochs are delivered
 * MR_EAGAIN     nothing ready within timeout_ns (0 polls, MR_FOREVER waits)
 * MR_ECANCELED  mr_loader_stop() was called
 * MR_EINVAL     every batch there is room for is held: prefetch + 1, with devices 2, with prefetch off 1;
 * release one first
 * other < 0     the first error of any stage, now and on every later call; err tells it */
MR_API int mr_loader_next_sized(mr_loader *l, mr_batch *out, uint64_t timeout_ns, mr_error *err);
static inline int mr_loader_next(mr_loader *l, mr_batch *out, uint64_t timeout_ns, mr_error *err)
{
    out->struct_size = sizeof *out;
    return mr_loader_next_sized(l, out, timeout_ns, err);
}

/* Release a batch. streams[r] (NULL without devices) is the stream that uses part r: its device memory is
 * written again only after the work that is queued there now. Batches are released in the order in which they
 * were taken. When a device fails here, the batch is released nevertheless, and mr_loader_next() returns the
 * error. */
MR_API int mr_loader_release(mr_loader *l, mr_batch *batch, mr_stream *const *streams);

/* Any thread, a signal handler's thread included (not the handler itself): every wait ends with
 * MR_ECANCELED. */
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
    out->struct_size = sizeof *out;
    mr_loader_stats_read_sized(l, out);
}

/* The sample at a position of an epoch, computed by the sampler (I1) without a loader. */
MR_API uint64_t mr_order_sample(mr_order order, uint32_t block, uint64_t seed, uint64_t epoch, uint64_t count,
                                uint64_t position);

/* A hash over everything that loaders deliver, in order: epoch, step, ids, labels, pixels, affine numbers.
 * One digester may run over several loaders one after the other (stop and resume): equal deliveries give
 * equal digests, whatever the settings. */
typedef struct mr_digest {
    uint64_t lo, hi;
} mr_digest;
typedef struct mr_digester mr_digester;

MR_API int mr_digester_create(mr_digester **out);
MR_API void mr_digester_destroy(mr_digester *d);
/* Take batches until the loader ends or max_batches are taken. With devices (the loader's, which then needs
 * keep_host) every part is read back from its device and compared with the host copy: MR_EDEVICE when they
 * differ. */
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

#ifdef __cplusplus
}
#endif
#endif
