/* tools/session/groups.c: see groups.h. */
#include "tools/session/groups.h"

const opt output_options[2] = {
    OPT(output_args, json, FLAG, .option = "json", .help = "results as one JSON object per line"),
    OPT(output_args, quiet, FLAG, .option = "quiet", .help = "no progress on stderr"),
};

static const char *const splits[] = {"auto", "train", "test", NULL};

static const char *const class_matches[] = {"auto", "order", NULL};
static const char *const class_rules[] = {"first", "depth", "none", NULL};

static const char *const outsides[] = {"refuse", "take", NULL};
const opt data_options[14 + DECODE_OPTIONS] = {
    OPT(data_args, format, TEXT, .option = "format", .value = "NAME",
        .help = "format of the data, where its content does not tell; a name that is none lists all"),
    OPT(data_args, split, CHOICE, .option = "split", .standard = "auto", .choices = splits,
        .help = "which part of data that has parts; auto: the train part, or all of it"),
    OPT(data_args, classes, CHOICE, .option = "classes", .standard = "first", .choices = class_rules,
        .help = "folders of pictures: the first level of folders is the classes; depth: every folder that "
                "holds pictures, such as animals/cat; none: all pictures, without labels"),
#define MRI_SETTING(member, kind, ...) MRI_ROW(data_args, member, kind, __VA_ARGS__),
#include "settings/decode.rows"
    OPT(data_args, image_key, TEXT, .option = "image-key", .value = "NAME",
        .help = "which feature, member, column or array is the picture; without it the names that usual "
                "writers give"),
    OPT(data_args, label_key, TEXT, .option = "label-key", .value = "NAME",
        .help = "which one is the class; of several labels that have no names: the number of one, from 0"),
    OPT(data_args, label_offset, TEXT, .option = "label-offset", .standard = "auto", .value = "N",
        .help = "subtract N from every label; auto: training subtracts 1 where the smallest label of all "
                "data that it uses is 1"),
    OPT(data_args, match, CHOICE, .option = "match-classes", .standard = "auto", .choices = class_matches,
        .help = "match classes of two sets by name or number, or by order"),
    OPT(data_args, index_folder, TEXT, .option = "index-folder", .value = "DIR",
        .help = "where the index of data without one is kept when it cannot lie beside them (default "
                "$XDG_CACHE_HOME/millrace); off: nowhere"),
    OPT(data_args, remote_folder, TEXT, .option = "remote-cache", .value = "DIR",
        .help = "where data of http:// and https:// addresses are kept (default "
                "$XDG_CACHE_HOME/millrace/remote)"),
    OPT(data_args, remote_size, SIZE, .option = "remote-size", .least = 1, .most = MRI_ANY, .standard = "16G",
        .help = "room on disk for them; what was used longest ago is dropped"),
    OPT(data_args, outside, CHOICE, .option = "outside", .standard = "refuse", .choices = outsides,
        .help = "files that a table names outside of its own folder (../x, /x, links that lead out): "
                "refused, or taken"),
    OPT(data_args, take, TEXT, .option = "take", .value = "LO:HI",
        .help = "only some of the samples, from and to as parts of 1 of a drawn order, the same in every "
                "run: 0:0.9 and 0.9:1 share none; 0.1 is 0:0.1"),
    OPT(data_args, target_key, TEXT, .option = "target-key", .value = "NAME",
        .help = "NumPy arrays, tables: the array, column, or columns (FIRST..LAST) of numbers that become a "
                "further field"),
    OPT(data_args, split_key, TEXT, .option = "split-key", .value = "NAME",
        .help =
            "tables: the column that says the part of a row (train, val, test); NAME=VALUE: rows with VALUE "
            "are the part to test with; without it split, set, is_train and the like; none: no column"),
};

const opt run_options[RUN_OPTIONS] = {
#define MRI_SETTING(member, kind, ...) MRI_ROW(run_args, member, kind, __VA_ARGS__),
#define MRI_OPTION                     MRI_SETTING
#include "settings/batches.rows"
};

const opt loader_options[LOADER_OPTIONS] = {
#define MRI_SETTING(member, kind, ...) MRI_ROW(loader_args, member, kind, __VA_ARGS__),
#define MRI_OPTION                     MRI_SETTING
#include "settings/loader.rows"
};

static const char *const on_or_off[] = {"on", "off", NULL};

static const char *const kernels[] = {"fast", "reference", NULL};

const opt part_options[3] = {
    OPT(part_args, parts, U32, .option = "parts", .least = 1, .most = 65536, .value = "V",
        .help = "cut a batch into so many parts, whose gradients are added in one order: the same weights to "
                "the bit on 1 to V devices of 1 to V processes (default: as many as there are devices, or "
                "those of the checkpoint)"),
    OPT(part_args, part_threads, U32, .option = "part-threads", .least = 1, .most = 4096, .value = "N",
        .help =
            "with --parts: threads that compute one part on a processor; weights depend on it (default 1)"),
    OPT(part_args, place, TEXT, .option = "place", .value = "WHERE",
        .help = "a network on several devices of each replica, for what does not fit one: block1=0,rest=1 "
                "puts the layers of a block on the first and all others on the second, 0-5=0,rest=1 goes by "
                "their numbers (inspect --model)"),
};

const char *const setup_convolutions[] = {"auto", "direct", NULL};

const opt device_options[4] = {
    OPT(device_args, devices, TEXT, .option = "devices", .value = "SPEC",
        .help = "one replica per device: cpu, cpu:4, cuda:0,1, cuda:all, sim:8,step=3ms,h2d=25GB/s (default "
                "cpu)"),
    OPT(device_args, threads, U32, .option = "threads", .most = 4096, .standard = "0",
        .help = "cores shared by the computing of all cpu devices; 0: all"),
    OPT(device_args, kernels, CHOICE, .option = "kernels", .standard = "fast", .choices = kernels,
        .help = "of cpu devices; reference: the plain C every other kernel is tested against"),
    OPT(device_args, convolution, CHOICE, .option = "convolution", .standard = "auto",
        .choices = setup_convolutions,
        .help = "of cpu devices; auto: Winograd's algorithm for the shapes of layers where it is faster; "
                "direct: never"),
};

const char *const setup_precisions[] = {"f32", "tf32", "bf16", "f16", NULL};

const opt compute_options[6] = {
    OPT(compute_args, precision, CHOICE, .option = "precision", .standard = "f32",
        .choices = setup_precisions,
        .help = "of activations and their gradients, weights are f32 always; tf32: f32 whose products may be "
                "rounded; all but f32 on cuda devices only"),
    OPT(compute_args, deterministic, FLAG, .option = "deterministic",
        .help = "GPUs: only algorithms that give the same bits in every run (cpu devices know no others)"),
    OPT(compute_args, graph, CHOICE, .option = "graph", .standard = "on", .choices = on_or_off,
        .help = "record a step once and replay it, where the device can; off: queue every call anew"),
    OPT(compute_args, bucket, SIZE, .option = "bucket", .most = MRI_ANY,
        .help = "sum gradients over replicas in pieces of about this size while the backward pass runs; 0: "
                "all at once after it; without it 25M, and in several processes a size for their network"),
    OPT(compute_args, watchdog, SECONDS, .option = "watchdog", .most = 1e6, .standard = "300",
        .value = "TIME",
        .help =
            "end the run when a step is not over after this time, and name the replica that hangs; 0: never"),
    OPT(compute_args, loss_scale, TEXT, .option = "loss-scale", .standard = "auto", .value = "N",
        .help = "f16: gradients are multiplied by this power of two on their way; auto: as large as goes "
                "without overflow"),
};

const opt update_options[UPDATE_OPTIONS] = {
#define MRI_SETTING(...) MRI_ROW(model_args, __VA_ARGS__),
#include "settings/updates.rows"
};

const opt model_options[7] = {
    OPT(model_args, model, TEXT, .option = "model", .value = "NAME",
        .help = "mnist-cnn, cifar-cnn, mnist-mlp, ...; a wrong name lists them all"),
    OPT(model_args, optimizer, TEXT, .option = "optimizer", .value = "NAME",
        .help = "sgd, momentum, adam, adamw, ...; a wrong name lists them all"),
    OPT(model_args, lr, REAL, .option = "lr", .most = 1000,
        .help = "learning rate; without it the model's own"),
    OPT(model_args, momentum, REAL, .option = "momentum", .most = 1,
        .help = "of rules that have one; without it their own"),
    OPT(model_args, weight_decay, REAL, .option = "weight-decay", .most = 1,
        .help = "without it the model's own"),
    OPT(model_args, schedule, TEXT, .option = "schedule", .value = "SPEC",
        .help = "constant, cosine, linear, step:E1/E2, piecewise:LR@E, exponential:F, decay:D, each with "
                ",warmup=E; onecycle; without it the model's own"),
    OPT(model_args, scale, FLAG, .option = "scale",
        .help = "multiply batch and learning rate by the number of replicas"),
};

const opt objective_options[3] = {
    OPT(objective_args, loss, CHOICE, .option = "loss", .standard = "own", .choices = objective_names,
        .help = "own: the model's, of classes for most; bce: several labels a sample, there or not; mse, l1, "
                "huber: numbers"),
    OPT(objective_args, targets, TEXT, .option = "targets", .value = "NAME",
        .help = "--loss: the field of the data that has the labels or numbers; of NumPy arrays and tables "
                "the array, column, or columns (FIRST..LAST)"),
    OPT(objective_args, class_weights, TEXT, .option = "class-weights", .value = "WHICH",
        .help = "the loss of training counts each class so often: balanced (rare ones more), numbers "
                "(0.5/2/1), or a file of them; none"),
};

const opt begin_options[2] = {
    OPT(begin_args, init, TEXT, .option = "init", .value = "FILE",
        .help = "begin with the weights of FILE: .safetensors, .npz (our names or torchvision's), or another "
                "run's checkpoint or folder; the last layer begins anew where FILE tells another number of "
                "classes apart"),
    OPT(begin_args, skip, TEXT, .option = "init-skip", .value = "LAYERS",
        .help = "--init: these layers begin anew, named as --freeze names them"),
};
