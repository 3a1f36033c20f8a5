/* tools/session/groups.c: see groups.h. */
#include "tools/session/groups.h"

#define ANY 0x1p64 /* no upper end worth telling */

const opt output_options[2] = {
    {"json", OPT_FLAG, offsetof(output_args, json), 0, 0, NULL, NULL, "results as one JSON object per line",
     NULL},
    {"quiet", OPT_FLAG, offsetof(output_args, quiet), 0, 0, NULL, NULL, "no progress on stderr", NULL},
};

static const char *const splits[] = {"auto", "train", "test", NULL};
const char *const setup_exif[] = {"apply", "ignore", NULL};
const char *const setup_pixels[] = {"own", "libjpeg", NULL};

static const char *const class_matches[] = {"auto", "order", NULL};
static const char *const class_rules[] = {"first", "depth", "none", NULL};

static const char *const outsides[] = {"refuse", "take", NULL};
const opt data_options[18] = {
    {"format", OPT_TEXT, offsetof(data_args, format), 0, 0, NULL, "NAME",
     "format of the data, where its content does not tell; a name that is none lists all", NULL},
    {"split", OPT_CHOICE, offsetof(data_args, split), 0, 0, "auto", NULL,
     "which part of data that has parts; auto: the train part, or all of it", splits},
    {"classes", OPT_CHOICE, offsetof(data_args, classes), 0, 0, "first", NULL,
     "folders of pictures: the first level of folders is the classes; depth: every folder that holds "
     "pictures, "
     "such as animals/cat; none: all pictures, without labels",
     class_rules},
    {"exif", OPT_CHOICE, offsetof(data_args, exif), 0, 0, "apply", NULL,
     "turn pictures as their EXIF orientation says, or leave them as they are stored", setup_exif},
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
     "subtract N from every label; auto: training subtracts 1 where the smallest label of all data that it "
     "uses is 1",
     NULL},
    {"match-classes", OPT_CHOICE, offsetof(data_args, match), 0, 0, "auto", NULL,
     "match classes of two sets by name or number, or by order", class_matches},
    {"index-folder", OPT_TEXT, offsetof(data_args, index_folder), 0, 0, NULL, "DIR",
     "where the index of data without one is kept when it cannot lie beside them (default "
     "$XDG_CACHE_HOME/millrace); off: nowhere",
     NULL},
    {"remote-cache", OPT_TEXT, offsetof(data_args, remote_folder), 0, 0, NULL, "DIR",
     "where data of http:// and https:// addresses are kept (default $XDG_CACHE_HOME/millrace/remote)", NULL},
    {"remote-size", OPT_SIZE, offsetof(data_args, remote_size), 1, ANY, "16G", NULL,
     "room on disk for them; what was used longest ago is dropped", NULL},
    {"outside", OPT_CHOICE, offsetof(data_args, outside), 0, 0, "refuse", NULL,
     "files that a table names outside of its own folder (../x, /x, links that lead out): refused, or taken",
     outsides},
    {"take", OPT_TEXT, offsetof(data_args, take), 0, 0, NULL, "LO:HI",
     "only some of the samples, from and to as parts of 1 of a drawn order, the same in every run: 0:0.9 and "
     "0.9:1 share none; 0.1 is 0:0.1",
     NULL},
    {"target-key", OPT_TEXT, offsetof(data_args, target_key), 0, 0, NULL, "NAME",
     "NumPy arrays, tables: the array, column, or columns (FIRST..LAST) of numbers that become a further "
     "field",
     NULL},
    {"split-key", OPT_TEXT, offsetof(data_args, split_key), 0, 0, NULL, "NAME",
     "tables: the column that says the part of a row (train, val, test); NAME=VALUE: rows with VALUE are the "
     "part to test with; without it split, set, is_train and the like; none: no column",
     NULL},
};

const char *const setup_orders[] = {"shuffle", "block", "sequential", "balanced", NULL};
const char *const setup_tails[] = {"keep", "drop", "pad", NULL};
static const char *const bads[] = {"stop", "replace", "skip", NULL};

const opt run_options[15] = {
    {"batch", OPT_U32, offsetof(run_args, batch), 1, 1048576, NULL, NULL,
     "samples in a global batch, over all replicas; without it the model's own, else 128", NULL},
    {"epochs", OPT_U64, offsetof(run_args, epochs), 1, ANY, NULL, NULL,
     "passes over the data; without it the model's own when training, else 1", NULL},
    {"seed", OPT_U64, offsetof(run_args, seed), 0, ANY, "0", NULL,
     "of order, augmentation, initial weights, dropout", NULL},
    {"order", OPT_CHOICE, offsetof(run_args, order), 0, 0, "shuffle", NULL,
     "of samples in an epoch; block: shuffled blocks of neighbours, for slow media; balanced: every class as "
     "often as every other, samples of small ones several times",
     setup_orders},
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
    {"repeats", OPT_U32, offsetof(run_args, repeats), 1, 1048576, "1", NULL,
     "each sample comes so many times in its batch, each time augmented otherwise; an epoch stays as long, "
     "and "
     "so has fewer samples",
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
     "keep samples from the first epoch on: ram:SIZE, ram (half of what the rest of the loader leaves of "
     "--memory), or disk:FOLDER:SIZE, which outlives the run; changes no bit of a batch",
     NULL},
    {"checks", OPT_CHOICE, offsetof(loader_args, checks), 0, 0, "on", NULL,
     "off: checksums of records are not computed, to measure what they cost; damaged records are then not "
     "noticed",
     on_or_off},
};

static const char *const kernels[] = {"fast", "reference", NULL};

const opt part_options[3] = {
    {"parts", OPT_U32, offsetof(part_args, parts), 1, 65536, NULL, "V",
     "cut a batch into so many parts, whose gradients are added in one order: the same weights to the bit on "
     "1 to V "
     "devices of 1 to V processes (default: as many as there are devices, or those of the checkpoint)",
     NULL},
    {"part-threads", OPT_U32, offsetof(part_args, part_threads), 1, 4096, NULL, "N",
     "with --parts: threads that compute one part on a processor; weights depend on it (default 1)", NULL},
    {"place", OPT_TEXT, offsetof(part_args, place), 0, 0, NULL, "WHERE",
     "a network on several devices of each replica, for what does not fit one: block1=0,rest=1 puts the "
     "layers of a "
     "block on the first and all others on the second, 0-5=0,rest=1 goes by their numbers (inspect --model)",
     NULL},
};

const char *const setup_convolutions[] = {"auto", "direct", NULL};

const opt device_options[4] = {
    {"devices", OPT_TEXT, offsetof(device_args, devices), 0, 0, NULL, "SPEC",
     "one replica per device: cpu, cpu:4, cuda:0,1, cuda:all, sim:8,step=3ms,h2d=25GB/s (default cpu)", NULL},
    {"threads", OPT_U32, offsetof(device_args, threads), 0, 4096, "0", NULL,
     "cores shared by the computing of all cpu devices; 0: all", NULL},
    {"kernels", OPT_CHOICE, offsetof(device_args, kernels), 0, 0, "fast", NULL,
     "of cpu devices; reference: the plain C every other kernel is tested against", kernels},
    {"convolution", OPT_CHOICE, offsetof(device_args, convolution), 0, 0, "auto", NULL,
     "of cpu devices; auto: Winograd's algorithm for the shapes of layers where it is faster; direct: never",
     setup_convolutions},
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
     "end the run when a step is not over after this time, and name the replica that hangs; 0: never", NULL},
    {"loss-scale", OPT_TEXT, offsetof(compute_args, loss_scale), 0, 0, "auto", "N",
     "f16: gradients are multiplied by this power of two on their way; auto: as large as goes without "
     "overflow",
     NULL},
};

const char *const setup_decays[] = {"all", "weights", NULL};

const opt update_options[7] = {
    {"label-smoothing", OPT_REAL, offsetof(model_args, label_smoothing), 0, 1, NULL, NULL,
     "the loss of training wants 1 - X of the label and X of all classes alike, such as 0.1; without it the "
     "model's own, 0 for most",
     NULL},
    {"decay-on", OPT_CHOICE, offsetof(model_args, decay_on), 0, 0, "all", NULL,
     "weights: weight decay leaves biases and the scale and shift of normalisation alone", setup_decays},
    {"clip-value", OPT_REAL, offsetof(model_args, clip_value), 0, 1e30, NULL, NULL,
     "bring each element of the gradient into [-X, X]; without it, or 0: no", NULL},
    {"clip-norm", OPT_REAL, offsetof(model_args, clip_norm), 0, 1e30, NULL, NULL,
     "scale the gradient down to a norm of X where it is above; without it, or 0: no", NULL},
    {"lookahead", OPT_U32, offsetof(model_args, lookahead), 0, 1000000, "0", "K",
     "after every K updates go half the way back to where the weights were K updates before; 0: no", NULL},
    {"average", OPT_REAL, offsetof(model_args, average), 0, 1, NULL, "DECAY",
     "keep a moving average of the weights, such as 0.999, and evaluate that; without it, or 0: no", NULL},
    {"freeze", OPT_TEXT, offsetof(model_args, freeze), 0, 0, NULL, "LAYERS",
     "layers that stay as they are: numbers as of inspect --model, 0-40, blocks, kinds, backbone (all but "
     "the last "
     "with weights), head; none",
     NULL},
};

const opt model_options[7] = {
    {"model", OPT_TEXT, offsetof(model_args, model), 0, 0, NULL, "NAME",
     "mnist-cnn, cifar-cnn, mnist-mlp, ...; a wrong name lists them all", NULL},
    {"optimizer", OPT_TEXT, offsetof(model_args, optimizer), 0, 0, NULL, "NAME",
     "sgd, momentum, adam, adamw, ...; a wrong name lists them all", NULL},
    {"lr", OPT_REAL, offsetof(model_args, lr), 0, 1000, NULL, NULL,
     "learning rate; without it the model's own", NULL},
    {"momentum", OPT_REAL, offsetof(model_args, momentum), 0, 1, NULL, NULL,
     "of rules that have one; without it their own", NULL},
    {"weight-decay", OPT_REAL, offsetof(model_args, weight_decay), 0, 1, NULL, NULL,
     "without it the model's own", NULL},
    {"schedule", OPT_TEXT, offsetof(model_args, schedule), 0, 0, NULL, "SPEC",
     "constant, cosine, linear, step:E1/E2, piecewise:LR@E, exponential:F, decay:D, each with "
     ",warmup=E; "
     "onecycle; without it the model's own",
     NULL},
    {"scale", OPT_FLAG, offsetof(model_args, scale), 0, 0, NULL, NULL,
     "multiply batch and learning rate by the number of replicas", NULL},
};

const opt objective_options[3] = {
    {"loss", OPT_CHOICE, offsetof(objective_args, loss), 0, 0, "own", NULL,
     "own: the model's, of classes for most; bce: several labels a sample, there or not; mse, l1, huber: "
     "numbers",
     objective_names},
    {"targets", OPT_TEXT, offsetof(objective_args, targets), 0, 0, NULL, "NAME",
     "--loss: the field of the data that has the labels or numbers; of NumPy arrays and tables the array, "
     "column, or columns (FIRST..LAST)",
     NULL},
    {"class-weights", OPT_TEXT, offsetof(objective_args, class_weights), 0, 0, NULL, "WHICH",
     "the loss of training counts each class so often: balanced (rare ones more), numbers (0.5/2/1), or a "
     "file of them; none",
     NULL},
};

const opt begin_options[2] = {
    {"init", OPT_TEXT, offsetof(begin_args, init), 0, 0, NULL, "FILE",
     "begin with the weights of FILE: .safetensors, .npz (our names or torchvision's), or another run's "
     "checkpoint or "
     "folder; the last layer begins anew where FILE tells another number of classes apart",
     NULL},
    {"init-skip", OPT_TEXT, offsetof(begin_args, skip), 0, 0, NULL, "LAYERS",
     "--init: these layers begin anew, named as --freeze names them", NULL},
};
