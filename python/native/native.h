/* python/native/native.h: what ctypes cannot do well for the Python package: memory that outlives whoever
 * made it, deleters that run in any thread, reports from threads of the library. Private to the package.
 *
 * Takes public calls of the library only, and the addresses of two functions of Python, whose header it does
 * not know: one build serves every interpreter. Gives batches with a count of references, finished ahead
 * where asked, DLPack tensors over them, inboxes for reports, orders of epochs, samples, changed pictures,
 * and long calls that can be stopped and looked at.
 *
 * Callers: python/millrace/_library.py.
 *
 * mrp_ functions are no interface: the package and this library are of one build. Any thread, where nothing
 * else is said; none of them calls Python, but mrp_capsule_gone(). */
#ifndef MRP_NATIVE_H
#define MRP_NATIVE_H

#include "millrace/pipeline.h"

/* ---- inbox.c: reports of the library's threads, until Python asks for them ---- */
typedef struct mrp_inbox mrp_inbox;
enum { MRP_NOTE = 1, MRP_BAD = 2 };

MR_API mrp_inbox *mrp_inbox_create(void); /* NULL: no memory */
MR_API void mrp_inbox_destroy(mrp_inbox *in);
/* The next report: MRP_NOTE, MRP_BAD (then *substitute is the sample taken instead, or MR_NOWHERE); 0: no
 * report. *lost: number of reports that were dropped for lack of memory. */
MR_API int mrp_inbox_take(mrp_inbox *in, mr_error *what, uint64_t *substitute, uint64_t *lost);
/* An int as long as the inbox: 0 while nothing was put since it was found empty. Reading it costs no call. */
MR_API const void *mrp_inbox_flag(const mrp_inbox *in);
MR_API void mrp_on_note(void *inbox, const char *text);                         /* mr_loader_config.on_note */
MR_API void mrp_on_bad(void *inbox, const mr_error *what, uint64_t substitute); /* mr_bad_report */

/* ---- orders.c: orders of epochs, given by Python, asked for by the library's threads ---- */
typedef struct mrp_orders mrp_orders;

MR_API mrp_orders *mrp_orders_create(uint64_t count); /* samples in an epoch; NULL: no memory */
MR_API void mrp_orders_destroy(mrp_orders *o);        /* behind all loaders that use it; accepts NULL */
/* The samples of an epoch, count of them, copied. MR_OK or MR_ENOMEM. */
MR_API int mrp_orders_put(mrp_orders *o, uint64_t epoch, const uint64_t *samples);
/* Epochs below this one are no longer asked for. */
MR_API void mrp_orders_drop(mrp_orders *o, uint64_t epoch);
/* An epoch that a thread waits for; MR_NOWHERE: none does. */
MR_API uint64_t mrp_orders_wanted(mrp_orders *o);
/* Waiting callers, and later requests for missing samples, get MR_ECANCELED. */
MR_API void mrp_orders_close(mrp_orders *o);
/* mr_sampler. Waits for the epoch to be put. */
MR_API int mrp_orders_ask(void *orders, uint64_t epoch, uint64_t first, uint32_t count, uint64_t *out,
                          mr_error *err);

/* ---- maker.c: samples that one thread of Python makes, or pictures that it changes, for the library's
 * threads ---- */
typedef struct mrp_maker mrp_maker;
typedef struct mrp_request mrp_request;

MR_API mrp_maker *mrp_maker_create(void);    /* NULL: no memory */
MR_API void mrp_maker_destroy(mrp_maker *m); /* after the source and the thread; accepts NULL */
/* Whoever waits for a sample goes with MR_ECANCELED, at once, and so does whoever takes or asks from now on.
 */
MR_API void mrp_maker_close(mrp_maker *m);
/* mr_own_fetch. Waits until the sample was given. */
MR_API int mrp_make(void *maker, uint64_t sample, mr_own_sample *to, mr_error *err);
/* mr_own_fetch of a source with one field, a picture of one pixel: for loaders of whose batches only the
 * numbers of the samples are used. */
MR_API int mrp_make_nothing(void *nothing, uint64_t sample, mr_own_sample *to, mr_error *err);
/* A function of Python's, as the context of an operation. */
typedef struct mrp_function {
    mrp_maker *maker;
    uint64_t number;
} mrp_function;
/* mr_own_change. Waits until the picture was put. */
MR_API int mrp_change(void *function, const mr_own_picture *picture, uint8_t *pixels, mr_error *err);
/* The oldest request, the number of a sample or of a function: waits for one. MR_ECANCELED: closed. *out
 * goes to one of the next functions, which end it: give (a sample), put (a picture) or fail. */
MR_API int mrp_maker_take(mrp_maker *m, uint64_t *number, mrp_request **out);
MR_API void mrp_maker_give(mrp_request *r, const mr_value *values);
MR_API void mrp_maker_fail(mrp_request *r, int code, const char *text);
/* The picture that is to be changed; valid until the request has ended. */
MR_API const mr_own_picture *mrp_request_picture(const mrp_request *r);
/* Its pixels, copied. MR_ECANCELED: nobody waits for it any more, and the request has ended. */
MR_API int mrp_request_read(mrp_request *r, uint8_t *pixels);
MR_API void mrp_request_put(mrp_request *r, const uint8_t *pixels);

/* ---- batches.c: a batch and who uses it ---- */
typedef struct mrp_batch mrp_batch;

/* Take a batch and keep it; *out has one reference. `keep` as in the loader's settings. As mr_loader_next(),
 * and MR_ELIMIT when all batches are in use: no batch was taken. The consumer's thread. */
MR_API int mrp_next(mr_loader *l, uint32_t keep, uint64_t timeout_ns, mrp_batch **out, mr_error *err);
MR_API const mr_batch *mrp_batch_view(const mrp_batch *b);
MR_API void mrp_batch_ref(mrp_batch *b);
/* The last one gives the memory back. In a child of fork() nothing happens: it is the parent's. */
MR_API void mrp_batch_unref(mrp_batch *b);

/* Decode a picture file, or part of it (NULL: all): *out has one reference, its view the pixels, shape the
 * height, width and channels. */
MR_API int mrp_decode(const void *data, size_t bytes, const mr_image_part *part, const mr_decode_config *cfg,
                      mrp_batch **out, uint32_t shape[3], mr_error *err);

/* The same of a value of a sample, in whichever form it holds a picture. */
MR_API int mrp_decode_value(const mr_value *value, const mr_image_part *part, const mr_decode_config *cfg,
                            mrp_batch **out, uint32_t shape[3], mr_error *err);

/* ---- dlpack.c ---- */
/* Addresses of functions of Python. */
typedef struct mrp_python {
    void *capsule_is_valid, *capsule_get_pointer; /* PyCapsule_IsValid(), PyCapsule_GetPointer() */
    void *capsule_new, *tuple_pack;               /* PyCapsule_New(), PyTuple_Pack() */
    void *decref, *no_memory;                     /* Py_DecRef(), PyErr_NoMemory() */
} mrp_python;
MR_API void mrp_dlpack_start(const mrp_python *python);
enum {
    MRP_EXPORT_VERSIONED = 1, /* a DLManagedTensorVersioned, else a DLManagedTensor */
    MRP_EXPORT_COPY = 2,      /* of a copy of data, which keeps nothing of b */
    MRP_EXPORT_PLANES = 4,    /* (n, h, w, c) in memory is exported as (n, c, h, w), channels last */
};
/* A tensor over data, which lies in b and keeps it. how: a sum of the above. NULL: no memory, or more than 16
 * dimensions. */
MR_API void *mrp_export(mrp_batch *b, void *data, int code, int bits, int ndim, const int64_t *shape,
                        int how);
/* A DLManagedTensor of a copy as int64, in which those below 0 are `ignore`. */
MR_API void *mrp_export_labels(const int32_t *labels, uint32_t count, int64_t ignore);
/* The destructor of a capsule: called with the GIL, maybe with an exception set, and touches neither. */
MR_API void mrp_capsule_gone(void *capsule);

/* ---- finish.c: batches made ready by a thread of its own, ahead of whoever takes them ---- */
typedef struct mrp_finisher mrp_finisher;
enum { MRP_LENT_MOST = 8 };

typedef struct mrp_finish {
    uint32_t height, width, channels; /* of a picture; 0: no pictures */
    int dtype;                        /* mr_dtype of what pixels become: U8, F16, BF16, F32 */
    int planar;            /* (count, channels, height, width), else (count, height, width, channels) */
    float mean[4], std[4]; /* a value is (pixel - mean) / std; U8: the pixel */
    int64_t ignore;        /* target of a sample whose label is below 0 */
    uint32_t classes;      /* number of classes whose shares are the targets; 0: labels, int64 */
    uint32_t ahead;        /* batches finished ahead; 0: mrp_finisher_next() does it */
    uint64_t bytes_most;   /* of all finished batches, in use or ready; there are always a few */
    uint32_t field_count;
    uint64_t field_bytes[4]; /* of a row, or of an element of a row where rows differ in width */
    /* Batches in use at most, whose pixels and all but targets stay in the loader's own memory: its
     * mr_loader_config.keep is keep + ahead. U8, not planar. 0: pixels are formed. */
    uint32_t keep;
    /* Memory of the caller's for finished batches, such as is pinned: lent_count pieces of lent_bytes,
     * aligned to 64 bytes, which outlive the finisher and its batches. A batch that is larger, or finds none,
     * gets memory of the finisher's own. */
    uint32_t lent_count;
    uint64_t lent_bytes;
    void *lent[MRP_LENT_MOST];
} mrp_finish;

/* Take the batches of a loader from now on: nobody else does. Their pixels and all that comes with them are
 * copied into memory that is used again once nobody has it, and never before; with `keep` the loader's own
 * memory is. */
MR_API int mrp_finisher_open(mrp_finisher **out, mr_loader *l, const mrp_finish *how, mr_error *err);
/* As mrp_next(); MR_EBUSY: the batches in use take bytes_most, and none is ready, or `keep` are in use. One
 * thread at a time. */
MR_API int mrp_finisher_next(mrp_finisher *f, uint64_t timeout_ns, mrp_batch **out, mr_error *err);
/* Batches in use, and bytes of all. */
MR_API uint32_t mrp_finisher_held(mrp_finisher *f, uint64_t *bytes);
/* Behind mr_loader_stop(), before mr_loader_close(). Batches in use live on. Accepts NULL. */
MR_API void mrp_finisher_close(mrp_finisher *f);
/* int64 (count), or float (count, classes). */
MR_API const void *mrp_batch_targets(const mrp_batch *b);
/* dlpack.c, of a finished batch with pictures, which `how` formed: a tuple of two capsules, of its pixels as
 * (count, channels, height, width) in either layout, and of a copy of its targets. With the GIL. NULL: an
 * exception is set. */
MR_API void *mrp_export_pair(mrp_batch *b, const mrp_finish *how);

/* ---- pixels.c ---- */
/* Of each class as much as a sample is of it, into out, count x classes: 1 - share2 of its label, share2 of
 * the second one; nothing of samples that do not count (label < 0). labels2, share2: NULL where nothing is
 * mixed. Gives count, or the first sample with a label that is not below classes. */
MR_API uint32_t mrp_soft_targets(const int32_t *labels, const int32_t *labels2, const float *share2,
                                 uint32_t count, uint32_t classes, float *out);

/* ---- jobs.c: calls that take long ---- */
/* How far a call has come, written by it and read by anybody; stop is written by anybody. */
typedef struct mrp_progress {
    uint64_t done, count, bytes;
    int stop;
    mrp_inbox *inbox; /* or NULL */
} mrp_progress;

MR_API int mrp_convert(const mr_source *src, const char *dst, mr_convert_config *cfg, mrp_progress *progress,
                       mr_convert_result *out, mr_error *err);
/* Read and check all of src, and with `decode` decode every picture. Errors go to
 * the inbox and is counted in *wrong; after most_wrong of them it ends. MR_OK also when something is wrong.
 */
MR_API int mrp_verify(const mr_source *src, int decode, uint64_t most_wrong, mrp_progress *progress,
                      uint64_t *wrong, mr_error *err);
/* Deliver all that is left of l and hash it: 32 hexadecimal digits. */
MR_API int mrp_digest(mr_loader *l, mrp_progress *progress, char out[33], uint64_t *batches,
                      uint64_t *samples, mr_error *err);

/* ---- layout.c ---- */
/* Bytes of a struct ("mr_loader_config"), or with a member its offset, and *bytes its size. -1: not known
 * here. */
MR_API int64_t mrp_layout(const char *type, const char *member, uint64_t *bytes);

/* A member of a struct that is a setting, as its row says (settings/setting.h). */
typedef struct mrp_setting {
    const char *member, *kind;          /* "flag", "u32", "choice", ... */
    const char *standard, *unit, *help; /* or NULL */
    const char *const *choices;         /* NULL-terminated, or NULL */
    double least, most;
    uint64_t offset, bytes;
    const char *option; /* of the command, without the dashes; NULL: none */
} mrp_setting;
/* The k-th one of a struct. MR_EEND: k is past the end. */
MR_API int mrp_setting_at(const char *type, uint32_t k, mrp_setting *out);

#endif
