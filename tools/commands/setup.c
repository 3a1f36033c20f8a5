/* tools/commands/setup.c: see setup.h. */
#include "tools/commands/setup.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/tool.h"
#include "tools/commands/check.h"

#define ANY 0x1p64 /* no upper end worth telling */

const opt output_options[2] = {
    {"json", OPT_FLAG, offsetof(output_args, json), 0, 0, NULL, NULL, "results as one JSON object per line",
     NULL},
    {"quiet", OPT_FLAG, offsetof(output_args, quiet), 0, 0, NULL, NULL, "no progress on stderr", NULL},
};

static const char *const splits[] = {"auto", "train", "test", NULL};
static const char *const exif[] = {"apply", "ignore", NULL};
const char *const setup_pixels[] = {"own", "libjpeg", NULL};

const opt data_options[12] = {
    {"format", OPT_TEXT, offsetof(data_args, format), 0, 0, NULL, "NAME",
     "format of the data, where its content does not tell (folder, tfrecord, tar, recordio, csv, pixels, "
     "npy, sequence, idx, cifar, mrec, shards)",
     NULL},
    {"split", OPT_CHOICE, offsetof(data_args, split), 0, 0, "auto", NULL,
     "which part of data that has parts; auto: the train part, or all of it", splits},
    {"exif", OPT_CHOICE, offsetof(data_args, exif), 0, 0, "apply", NULL,
     "turn pictures as their EXIF orientation says, or leave them as they are stored", exif},
    {"max-pixels", OPT_U64, offsetof(data_args, max_pixels), 1, ANY, "100000000", NULL,
     "pictures with more pixels are bad samples, found before memory is taken", NULL},
    {"max-scans", OPT_U32, offsetof(data_args, max_scans), 1, UINT32_MAX, "100", NULL,
     "progressive pictures with more scans are bad samples", NULL},
    {"pixels", OPT_CHOICE, offsetof(data_args, pixels), 0, 0, "own", NULL,
     "a JPEG's pixels: resampled before colour conversion, or libjpeg-turbo's RGB resampled (slower)",
     setup_pixels},
    {"image-key", OPT_TEXT, offsetof(data_args, image_key), 0, 0, NULL, "NAME",
     "which feature, member, column or array is the picture; without it the names that usual writers give",
     NULL},
    {"label-key", OPT_TEXT, offsetof(data_args, label_key), 0, 0, NULL, "NAME",
     "which one is the class; of several labels that have no names: the number of one, from 0", NULL},
    {"label-offset", OPT_TEXT, offsetof(data_args, label_offset), 0, 0, "auto", "N",
     "subtracted from every label; auto: 1 where the smallest label is 1, else 0", NULL},
    {"index-folder", OPT_TEXT, offsetof(data_args, index_folder), 0, 0, NULL, "DIR",
     "where the index of data without one is kept when it cannot lie beside them (default "
     "$XDG_CACHE_HOME/millrace); off: nowhere",
     NULL},
    {"remote-cache", OPT_TEXT, offsetof(data_args, remote_folder), 0, 0, NULL, "DIR",
     "where data of http:// and https:// addresses are kept (default $XDG_CACHE_HOME/millrace/remote)", NULL},
    {"remote-size", OPT_SIZE, offsetof(data_args, remote_size), 1, ANY, "16G", NULL,
     "room on disk for them; what was used longest ago is dropped", NULL},
};

const char *const setup_orders[] = {"shuffle", "block", "sequential", NULL};
const char *const setup_tails[] = {"keep", "drop", "pad", NULL};
static const char *const bads[] = {"stop", "replace", "skip", NULL};

const opt run_options[14] = {
    {"batch", OPT_U32, offsetof(run_args, batch), 1, 1048576, NULL, NULL,
     "samples in a global batch, over all replicas; without it the model's own, else 128", NULL},
    {"epochs", OPT_U64, offsetof(run_args, epochs), 1, ANY, NULL, NULL,
     "passes over the data; without it the model's own when training, else 1", NULL},
    {"seed", OPT_U64, offsetof(run_args, seed), 0, ANY, "0", NULL,
     "of order, augmentation, initial weights, dropout", NULL},
    {"order", OPT_CHOICE, offsetof(run_args, order), 0, 0, "shuffle", NULL,
     "of samples in an epoch; block: shuffled blocks of neighbours, for slow media", setup_orders},
    {"block", OPT_U32, offsetof(run_args, block), 1, 16777216, "256", NULL,
     "samples in a block of --order block", NULL},
    {"tail", OPT_CHOICE, offsetof(run_args, tail), 0, 0, "keep", NULL,
     "a last batch that is not full: kept short, dropped, or padded with samples that count nothing",
     setup_tails},
    {"augment", OPT_TEXT, offsetof(run_args, augment), 0, 0, NULL, "SPEC",
     "none, cifar, rrc224, center224, or operations such as rrc(224),flip; without it the model's own, else "
     "none",
     NULL},
    {"channels", OPT_U32, offsetof(run_args, channels), 0, 3, "0", NULL,
     "1 gray, 3 colour, 0 what the data has", NULL},
    {"bad", OPT_CHOICE, offsetof(run_args, bad), 0, 0, "stop", NULL,
     "damaged samples: stop, put another in their place, or leave them out", bads},
    {"max-bad", OPT_U64, offsetof(run_args, max_bad), 0, ANY, "100", NULL,
     "more damaged samples than this stop the run", NULL},
    {"bad-list", OPT_TEXT, offsetof(run_args, bad_list), 0, 0, NULL, "FILE",
     "write each damaged sample to this file, one JSON object per line", NULL},
    {"fields", OPT_TEXT, offsetof(run_args, fields), 0, 0, NULL, "SPEC",
     "deliver these fields, too: NAME[:plain|boxes|values|mask][:most=N][:pad=X][:pixels], ...; boxes and "
     "masks follow their picture, values "
     "their boxes",
     NULL},
    {"width-multiple", OPT_U32, offsetof(run_args, width_multiple), 1, 1048576, "1", NULL,
     "rows of differing length are padded to the longest of their batch, rounded up to a multiple of this",
     NULL},
    {"length-window", OPT_COUNT_OR_OFF, offsetof(run_args, length_window), 0, 1048576, "off", NULL,
     "sequences: sort samples by length inside windows of so many batches of the order, and deliver a "
     "window's batches in a drawn order: "
     "less padding",
     NULL},
};

static const char *const ios[] = {"auto", "uring", "pread", NULL};

static const char *const on_or_off[] = {"on", "off", NULL};

const opt loader_options[10] = {
    {"prefetch", OPT_COUNT_OR_OFF, offsetof(loader_args, prefetch), 0, 1024, "4", NULL,
     "batches made ready ahead; off: read, decode and copy in series with the training step", NULL},
    {"workers", OPT_U32, offsetof(loader_args, workers), 0, 1024, "0", NULL,
     "decode threads; 0: one per core", NULL},
    {"readers", OPT_U32, offsetof(loader_args, readers), 0, 64, "0", NULL,
     "threads that read; 0: one with io_uring, four with pread", NULL},
    {"depth", OPT_U32, offsetof(loader_args, depth), 1, 4096, "32", NULL, "reads in flight per reader", NULL},
    {"io", OPT_CHOICE, offsetof(loader_args, io), 0, 0, "auto", NULL,
     "how to read; auto: io_uring where the kernel allows it, else pread threads", ios},
    {"direct", OPT_FLAG, offsetof(loader_args, direct), 0, 0, NULL, NULL,
     "read past the page cache (O_DIRECT)", NULL},
    {"memory", OPT_SIZE, offsetof(loader_args, memory), 0, ANY, "0", NULL,
     "host memory the loader may use; 0: half of what the process may", NULL},
    {"resident", OPT_SIZE, offsetof(loader_args, resident), 0, ANY, "1G", NULL,
     "data of small samples up to this size are read once and stay in memory, a quarter of --memory at most; "
     "0: never",
     NULL},
    {"cache", OPT_CACHE, offsetof(loader_args, cache), 0, 0, "off", "SPEC",
     "keep samples from the first epoch on: ram:SIZE, or disk:FOLDER:SIZE, which outlives the run; changes "
     "no bit of a batch",
     NULL},
    {"checks", OPT_CHOICE, offsetof(loader_args, checks), 0, 0, "on", NULL,
     "off: checksums of records are not computed, to measure what they cost; damaged records are then not "
     "noticed",
     on_or_off},
};

static const char *const kernels[] = {"fast", "reference", NULL};

const opt device_options[3] = {
    {"devices", OPT_TEXT, offsetof(device_args, devices), 0, 0, NULL, "SPEC",
     "one replica per device: cpu, cpu:4, cuda:0,1, sim:8,step=3ms,h2d=25GB/s (default cpu)", NULL},
    {"threads", OPT_U32, offsetof(device_args, threads), 0, 4096, "0", NULL,
     "cores shared by the computing of all cpu devices; 0: all", NULL},
    {"kernels", OPT_CHOICE, offsetof(device_args, kernels), 0, 0, "fast", NULL,
     "of cpu devices; reference: the plain C every other kernel is tested against", kernels},
};

const char *const setup_precisions[] = {"f32", "tf32", "bf16", "f16", NULL};

const opt compute_options[6] = {
    {"precision", OPT_CHOICE, offsetof(compute_args, precision), 0, 0, "f32", NULL,
     "of activations and their gradients, weights are f32 always; tf32: f32 whose products may be rounded; "
     "all but f32 on cuda devices only",
     setup_precisions},
    {"deterministic", OPT_FLAG, offsetof(compute_args, deterministic), 0, 0, NULL, NULL,
     "GPUs: only algorithms that give the same bits in every run (cpu devices know no others)", NULL},
    {"graph", OPT_CHOICE, offsetof(compute_args, graph), 0, 0, "on", NULL,
     "record a step once and replay it, where the device can; off: queue every call anew", on_or_off},
    {"bucket", OPT_SIZE, offsetof(compute_args, bucket), 0, ANY, "25M", NULL,
     "sum gradients over replicas in pieces of about this size while the backward pass runs; 0: all at once "
     "behind it",
     NULL},
    {"watchdog", OPT_SECONDS, offsetof(compute_args, watchdog), 0, 1e6, "300", "TIME",
     "a step that is not over after so long ends the run and names the replica that hangs; 0: wait for ever",
     NULL},
    {"loss-scale", OPT_TEXT, offsetof(compute_args, loss_scale), 0, 0, "auto", "N",
     "f16: gradients are multiplied by this power of two on their way; auto: as large as goes without "
     "overflow",
     NULL},
};

int exit_status(int rc, const mr_error *err)
{
    if (rc == MR_OK) return EXIT_DONE;
    if (rc == MR_ECANCELED && interrupt_flag) {
        say("stopped by signal %d%s%s", interrupt_flag, err->text[0] ? ": " : "", err->text);
        return EXIT_SIGNAL + interrupt_flag;
    }
    say_error(err);
    return EXIT_FAILED;
}

int setting_status(int rc, const mr_error *err)
{
    const int status = exit_status(rc, err);
    return rc == MR_EINVAL ? EXIT_MISUSED : status;
}

static int take_label_offset(mr_source_config *cfg, const char *text)
{
    char *end;
    if (!text || strcmp(text, "auto") == 0) return EXIT_DONE;
    errno = 0;
    cfg->label_offset = strtoll(text, &end, 10);
    const bool number = isdigit((unsigned char)text[0]) ||
                        ((text[0] == '-' || text[0] == '+') && isdigit((unsigned char)text[1]));
    if (number && !*end && !errno && cfg->label_offset != MR_LABEL_AUTO) return EXIT_DONE;
    say("--label-offset: expected auto or a whole number, found '%s'", text);
    return EXIT_MISUSED;
}

/* Validation data are often another part of what was opened before and have the same to say. */
static void tell_once(const char *path, const char *text)
{
    static char last[512];
    if (!text || strcmp(last, text) == 0) return;
    snprintf(last, sizeof last, "%s", text);
    say("%s: %s", path, text);
}

static int fill_config(mr_source_config *cfg, const data_args *a)
{
    mr_source_defaults(cfg);
    cfg->format = a->format;
    cfg->split = (mr_split)a->split;
    cfg->image_key = a->image_key;
    cfg->label_key = a->label_key;
    cfg->no_index_file = a->index_folder && strcmp(a->index_folder, "off") == 0;
    cfg->index_folder = cfg->no_index_file ? NULL : a->index_folder;
    cfg->remote_folder = a->remote_folder;
    cfg->remote_bytes = a->remote_size;
    cfg->stop = &interrupt_flag;
    return take_label_offset(cfg, a->label_offset);
}

/* What was open in *out before is closed. */
static int open_source(mr_source **out, const char *path, const mr_source_config *cfg)
{
    mr_error err = MR_ERROR_INIT;
    mr_source_close(*out);
    return setting_status(mr_source_open(out, path, cfg, &err), &err);
}

int setup_source(mr_source **out, const char *path, const data_args *a)
{
    mr_source_config cfg;
    int status = fill_config(&cfg, a);
    *out = NULL;
    if (!status) status = open_source(out, path, &cfg);
    if (!status)
        tell_once(mr_source_info_of(*out)->path, mr_source_info_of(*out)->told); /* as it may be shown */
    return status;
}

/* Where neither side has names, numbers tell, and the highest class may be missing here: unless an offset was
 * only guessed. */
static int check_classes(const mr_source_info *here, const data_like *like, bool guessed)
{
    const bool numbers = !here->class_names && !like->class_names,
               begins_elsewhere = guessed && here->label_offset;
    if (here->class_count == like->class_count ||
        (numbers && !begins_elsewhere && here->class_count < like->class_count))
        return EXIT_DONE;
    say("%s: expected %u classes as in %s, found %u%s", here->path, like->class_count, like->path,
        here->class_count,
        begins_elsewhere ? "; whether its labels begin at 0 or 1 is not certain, --label-offset says it"
                         : "");
    return EXIT_FAILED;
}

int setup_source_like(mr_source **out, const char *path, const data_args *a, const data_like *like)
{
    mr_source_config cfg;
    int status = fill_config(&cfg, a);
    *out = NULL;
    cfg.class_names = like->class_names;
    cfg.class_count = like->class_count;
    if (!status) status = open_source(out, path, &cfg);
    if (!status && cfg.split == MR_SPLIT_AUTO && mr_source_info_of(*out)->has_test) {
        cfg.split = MR_SPLIT_TEST;
        status = open_source(out, path, &cfg);
    }
    if (status) return status;
    /* where labels begin is found from what was trained on: a few samples to evaluate with may not have the
     * first class. With names on both sides classes have been told apart already */
    const mr_source_info *info = mr_source_info_of(*out);
    const bool same_format = strcmp(info->format, like->format) == 0,
               automatic = cfg.label_offset == MR_LABEL_AUTO;
    const bool named = info->class_names && like->class_names;
    if (automatic && same_format && !named && info->label_offset != like->label_offset) {
        cfg.label_offset = like->label_offset;
        status = open_source(out, path, &cfg);
    }
    if (status) return status;
    tell_once(mr_source_info_of(*out)->path, mr_source_info_of(*out)->told);
    return check_classes(mr_source_info_of(*out), like, automatic && !same_format);
}

/* 0 in *out: auto. Whether it is a power of two the trainer checks. */
static int read_loss_scale(const compute_args *c, float *out)
{
    *out = 0;
    if (strcmp(c->loss_scale, "auto") == 0) return EXIT_DONE;
    char *end;
    const double scale = strtod(c->loss_scale, &end);
    if (!isdigit((unsigned char)c->loss_scale[0]) || *end || !(scale >= 1)) {
        say("--loss-scale: expected auto or a power of two such as 1024, found '%s'", c->loss_scale);
        return EXIT_MISUSED;
    }
    if (c->precision != PRECISION_F16) {
        say("--loss-scale goes with --precision f16; gradients in %s need none, leave it out",
            setup_precisions[c->precision]);
        return EXIT_MISUSED;
    }
    *out = (float)scale;
    return EXIT_DONE;
}

int setup_compute(mr_trainer_config *cfg, const compute_args *c)
{
    static const uint32_t types[] = {MR_TENSOR_F32, MR_TENSOR_F32, MR_TENSOR_BF16, MR_TENSOR_F16};
    cfg->dtype = types[c->precision];
    cfg->no_graph = c->graph == 1;
    cfg->bucket_bytes = c->bucket;
    cfg->watchdog_s = c->watchdog;
    return read_loss_scale(c, &cfg->loss_scale);
}

int setup_devices(mr_device ***out, uint32_t *count, const device_args *a, const compute_args *c)
{
    mr_error err = MR_ERROR_INIT;
    mr_devices_config cfg;
    float scale;
    const int status = c ? read_loss_scale(c, &scale) : EXIT_DONE; /* before anything is opened */
    if (status) return status;
    mr_devices_defaults(&cfg);
    cfg.compute_threads = a->threads;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores > 0 && a->threads > (unsigned long)cores)
        say("--threads %u: this machine has %ld cores; more threads than cores slow the computing down",
            a->threads, cores);
    cfg.reference = a->kernels == 1;
    cfg.tf32 = c && c->precision == PRECISION_TF32;
    cfg.deterministic = c && c->deterministic;
    const int rc = mr_devices_open(out, count, a->devices ? a->devices : "cpu", &cfg, &err);
    if (rc || !cfg.tf32 || strcmp(mr_device_info_of((*out)[0])->kind, "cuda") == 0)
        return setting_status(rc, &err);
    say("--precision tf32: %s computes in f32; tf32, bf16 and f16 are offered on cuda devices",
        mr_device_info_of((*out)[0])->name);
    return EXIT_FAILED; /* what is open the caller closes */
}

int setup_output(const char *option, const char *path)
{
    struct stat st;
    if (!path) return EXIT_DONE;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!folder) {
        say("out of memory");
        return EXIT_FAILED;
    }
    const bool is_other = lstat(path, &st) == 0 && !S_ISREG(st.st_mode); /* /dev/stdout would be replaced by a
                                                                            file */
    const int why = access(folder, W_OK | X_OK) == 0 ? 0 : errno;
    free(folder);
    if (!is_other && !why) return EXIT_DONE;
    say("--%s %s: %s", option, path,
        is_other ? "expected a file or a new name, found a folder, link or device" : strerror(why));
    return EXIT_FAILED;
}

void setup_decode(mr_decode_config *cfg, const data_args *a)
{
    mr_decode_defaults(cfg);
    cfg->max_pixels = a->max_pixels;
    cfg->max_scans = a->max_scans;
    cfg->ignore_exif = a->exif == 1;
    cfg->pixels = (mr_pixels)a->pixels;
}

static void on_note(void *context, const char *text)
{
    (void)context;
    say("%s", text);
}

void setup_loader(mr_loader_config *cfg, const data_args *data, const run_args *run,
                  const loader_args *loader)
{
    mr_loader_defaults(cfg);
    setup_decode(&cfg->decode, data);
    if (run->batch) cfg->batch = run->batch;
    if (run->epochs) cfg->epochs = run->epochs;
    if (run->augment) cfg->augment = run->augment;
    cfg->seed = run->seed;
    cfg->order = (mr_order)run->order;
    cfg->block = run->block;
    cfg->tail = (mr_tail)run->tail;
    cfg->channels = run->channels;
    cfg->bad = (mr_bad)run->bad;
    cfg->max_bad = run->max_bad;
    cfg->width_multiple = run->width_multiple;
    cfg->length_window = run->length_window;
    cfg->prefetch = loader->prefetch;
    cfg->workers = loader->workers;
    cfg->readers = loader->readers;
    cfg->depth = loader->depth;
    cfg->io = (mr_io)loader->io;
    cfg->direct = loader->direct;
    cfg->memory_bytes = loader->memory;
    cfg->resident_bytes = loader->resident;
    cfg->cache = (mr_cache)loader->cache.kind;
    cfg->cache_bytes = loader->cache.bytes;
    cfg->cache_folder = loader->cache.folder;
    cfg->no_checks = loader->checks == 1;
    cfg->on_note = on_note;
    if (cfg->no_checks) say("--checks off: checksums of records are not computed");
}

static void on_bad(void *context, const mr_error *what, uint64_t substitute)
{
    enum { TOLD = 10 };
    bad_watch *w = context;
    char text[2048];
    mr_error placed = *what;
    check_place(w->src, &placed);
    w->count++;
    if (w->listed) bad_list_add(&w->list, &placed);
    if (w->stops || w->count > TOLD) return; /* what stops the run is told as its error */
    mr_error_format(&placed, text, sizeof text);
    if (substitute != MR_NOWHERE) say("bad sample, %" PRIu64 " takes its place: %s", substitute, text);
    else say("bad sample: %s", text);
    if (w->count == TOLD) say("further bad samples are counted, not told");
}

int bad_watch_open(bad_watch *w, const mr_source *src, const run_args *run, mr_loader_config *cfg)
{
    memset(w, 0, sizeof *w);
    w->src = src;
    w->stops = cfg->bad == MR_BAD_STOP;
    cfg->on_bad = on_bad;
    cfg->bad_context = w;
    if (!run->bad_list) return EXIT_DONE;
    const int status = setup_output("bad-list", run->bad_list);
    if (status) return status;
    mr_error err = MR_ERROR_INIT;
    w->listed = true;
    return exit_status(bad_list_open(&w->list, run->bad_list, false, &err), &err);
}

int bad_watch_close(bad_watch *w, int status)
{
    mr_error err = MR_ERROR_INIT;
    if (w->listed && bad_list_close(&w->list, &err) != MR_OK) {
        say_error(&err);
        return EXIT_FAILED;
    }
    return status == EXIT_DONE && w->count ? EXIT_BAD_SAMPLES : status;
}
