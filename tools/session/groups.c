/* tools/session/groups.c: see groups.h. */
#include "tools/session/groups.h"

const opt output_options[2] = {
    OPT(output_args, json, FLAG, .option = "json", .help = "print results as one JSON object per line"),
    OPT(output_args, quiet, FLAG, .option = "quiet", .help = "no progress on stderr"),
};

static const char *const splits[] = {"auto", "train", "test", NULL};

static const char *const class_matches[] = {"auto", "order", NULL};
static const char *const class_rules[] = {"first", "depth", "none", NULL};

static const char *const outsides[] = {"refuse", "take", NULL};
const opt data_options[14 + DECODE_OPTIONS] = {
    OPT(data_args, format, TEXT, .option = "format", .value = "NAME",
        .help = "set the format of the data if their content does not show it; a wrong name lists all "
                "formats"),
    OPT(data_args, split, CHOICE, .option = "split", .standard = "auto", .choices = splits,
        .help = "split of the data; auto: the train split, or all data without splits"),
    OPT(data_args, classes, CHOICE, .option = "classes", .standard = "first", .choices = class_rules,
        .help = "classes of folders of pictures: first: each folder of the first level; depth: each folder "
                "with pictures, such as animals/cat; none: no labels"),
#define MRI_SETTING(member, kind, ...) MRI_ROW(data_args, member, kind, __VA_ARGS__),
#include "settings/decode.rows"
    OPT(data_args, image_key, TEXT, .option = "image-key", .value = "NAME",
        .help = "feature, member, column or array of the picture; default: the names that common writers "
                "use"),
    OPT(data_args, label_key, TEXT, .option = "label-key", .value = "NAME",
        .help = "feature, member, column or array of the class; of several unnamed labels: the number of "
                "one, from 0"),
    OPT(data_args, label_offset, TEXT, .option = "label-offset", .resume = MRI_RESUME_AGAIN,
        .standard = "auto", .value = "N",
        .help = "subtract N from every label; auto: training subtracts 1 if the smallest label of all its "
                "data is 1"),
    OPT(data_args, match, CHOICE, .option = "match-classes", .standard = "auto", .choices = class_matches,
        .help = "match classes of two sets by name or number, or by order"),
    OPT(data_args, index_folder, TEXT, .option = "index-folder", .value = "DIR",
        .help = "keep indexes in this folder if they cannot be written next to their data (default "
                "$XDG_CACHE_HOME/millrace); off: nowhere"),
    OPT(data_args, remote_folder, TEXT, .option = "remote-cache", .value = "DIR",
        .help = "store data of http:// and https:// addresses in this folder (default "
                "$XDG_CACHE_HOME/millrace/remote)"),
    OPT(data_args, remote_size, SIZE, .option = "remote-size", .least = 1, .most = MRI_ANY, .standard = "16G",
        .help = "limit the disk space of --remote-cache; the least recently used data are deleted first"),
    OPT(data_args, outside, CHOICE, .option = "outside", .standard = "refuse", .choices = outsides,
        .help = "refuse or take files that a table names outside of its own folder (../x, /x, links that "
                "lead out)"),
    OPT(data_args, take, TEXT, .option = "take", .resume = MRI_RESUME_AGAIN, .value = "LO:HI",
        .help = "take a share of the samples, as fractions of a random order, the same in every run: 0:0.9 "
                "and 0.9:1 share no sample; 0.1 is 0:0.1"),
    OPT(data_args, target_key, TEXT, .option = "target-key", .value = "NAME",
        .help = "add a field from this array, column, or columns (FIRST..LAST) of numbers of NumPy arrays "
                "or a table"),
    OPT(data_args, split_key, TEXT, .option = "split-key", .value = "NAME",
        .help =
            "column of a table with the split of each row (train, val, test); NAME=VALUE: rows with VALUE "
            "are the test split; default: split, set, is_train and similar names; none: no column"),
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
    OPT(part_args, parts, U32, .option = "parts", .resume = MRI_RESUME_OVERRIDE, .least = 1, .most = 65536,
        .value = "V",
        .help = "cut a batch into V parts and add their gradients in one order: the same weights to the "
                "bit on 1 to V devices of 1 to V processes (default: the number of devices, or of the "
                "checkpoint)"),
    OPT(part_args, part_threads, U32, .option = "part-threads", .resume = MRI_RESUME_OVERRIDE, .least = 1,
        .most = 4096, .value = "N",
        .help =
            "with --parts: threads that compute one part on a processor; weights depend on it (default 1)"),
    OPT(part_args, place, TEXT, .option = "place", .value = "WHERE",
        .help = "spread a network that does not fit one device over several: block1=0,rest=1 puts the "
                "layers of a block on the first device and all others on the second, 0-5=0,rest=1 selects "
                "layers by number (inspect --model)"),
};

const char *const setup_convolutions[] = {"auto", "direct", NULL};

const opt device_options[4] = {
    OPT(device_args, devices, TEXT, .option = "devices", .value = "SPEC",
        .help = "one replica per device: cpu, cpu:4, cuda:0,1, cuda:all, sim:8,step=3ms,h2d=25GB/s (default "
                "cpu)"),
    OPT(device_args, threads, U32, .option = "threads", .most = 4096, .standard = "0",
        .help = "cores shared by the computing of all cpu devices; 0: all"),
    OPT(device_args, kernels, CHOICE, .option = "kernels", .standard = "fast", .choices = kernels,
        .help = "kernels of cpu devices; reference: the plain C code against which all others are tested"),
    OPT(device_args, convolution, CHOICE, .option = "convolution", .resume = MRI_RESUME_OVERRIDE,
        .standard = "auto", .choices = setup_convolutions,
        .help = "convolutions of cpu devices; auto: Winograd's algorithm for the shapes of layers where it "
                "is faster; direct: never"),
};

const char *const setup_precisions[] = {"f32", "tf32", "bf16", "f16", NULL};

const opt compute_options[6] = {
    OPT(compute_args, precision, CHOICE, .option = "precision", .standard = "f32",
        .choices = setup_precisions,
        .help = "precision of activations and their gradients; weights are always f32; tf32: f32 with "
                "rounded products; all but f32 on cuda devices only"),
    OPT(compute_args, deterministic, FLAG, .option = "deterministic",
        .help = "use only GPU algorithms that give the same bits in every run (cpu devices have no others)"),
    OPT(compute_args, graph, CHOICE, .option = "graph", .standard = "on", .choices = on_or_off,
        .help = "record a step once and replay it if the device supports it; off: queue every call anew"),
    OPT(compute_args, bucket, SIZE, .option = "bucket", .most = MRI_ANY,
        .help = "sum gradients over replicas in pieces of about this size during the backward pass; 0: all "
                "at once after it; default: 25M, in several processes a size for their network"),
    OPT(compute_args, watchdog, SECONDS, .option = "watchdog", .most = 1e6, .standard = "300",
        .value = "TIME",
        .help =
            "end the run when a step is not over after this time, and name the replica that hangs; 0: never"),
    OPT(compute_args, loss_scale, TEXT, .option = "loss-scale", .standard = "auto", .value = "N",
        .help = "with f16: multiply gradients by this power of two; auto: the largest without overflow"),
};

const opt update_options[UPDATE_OPTIONS] = {
#define MRI_SETTING(...) MRI_ROW(model_args, __VA_ARGS__),
#include "settings/updates.rows"
};

const opt model_options[7] = {
    OPT(model_args, model, TEXT, .option = "model", .resume = MRI_RESUME_SAME, .value = "NAME",
        .help = "network: mnist-cnn, cifar-cnn, mnist-mlp, ...; a wrong name lists all"),
    OPT(model_args, optimizer, TEXT, .option = "optimizer", .resume = MRI_RESUME_SAME, .value = "NAME",
        .help = "optimizer: sgd, momentum, adam, adamw, ...; a wrong name lists all"),
    OPT(model_args, lr, REAL, .option = "lr", .resume = MRI_RESUME_OVERRIDE, .most = 1000,
        .help = "learning rate; default: the model's"),
    OPT(model_args, momentum, REAL, .option = "momentum", .resume = MRI_RESUME_OVERRIDE, .most = 1,
        .help = "momentum of the rule; default: the rule's"),
    OPT(model_args, weight_decay, REAL, .option = "weight-decay", .resume = MRI_RESUME_OVERRIDE, .most = 1,
        .help = "weight decay; default: the model's"),
    OPT(model_args, schedule, TEXT, .option = "schedule", .resume = MRI_RESUME_OVERRIDE, .value = "SPEC",
        .help = "schedule of the learning rate: constant, cosine, linear, step:E1/E2, piecewise:LR@E, "
                "exponential:F, decay:D, each with ,warmup=E; onecycle; default: the model's"),
    OPT(model_args, scale, FLAG, .option = "scale",
        .help = "multiply batch and learning rate by the number of replicas"),
};

const opt objective_options[3] = {
    OPT(objective_args, loss, CHOICE, .option = "loss", .resume = MRI_RESUME_SAME, .standard = "own",
        .choices = objective_names,
        .help = "loss; own: the model's, mostly of classes; bce: several labels per sample; mse, l1, "
                "huber: numbers"),
    OPT(objective_args, targets, TEXT, .option = "targets", .resume = MRI_RESUME_SAME, .value = "NAME",
        .help = "with --loss: the field with the labels or numbers; the array, column, or columns "
                "(FIRST..LAST) of NumPy arrays and tables"),
    OPT(objective_args, class_weights, TEXT, .option = "class-weights", .resume = MRI_RESUME_OVERRIDE,
        .value = "WHICH",
        .help = "weights of the classes in the training loss: balanced (rare ones more), numbers "
                "(0.5/2/1), or a file of them; none"),
};

const opt begin_options[2] = {
    OPT(begin_args, init, TEXT, .option = "init", .value = "FILE",
        .help = "start from the weights of FILE: .safetensors, .npz (our names or torchvision's), or "
                "another run's checkpoint or folder; the last layer starts anew if FILE has another number "
                "of classes"),
    OPT(begin_args, skip, TEXT, .option = "init-skip", .value = "LAYERS",
        .help = "with --init: initialise these layers anew, named as for --freeze"),
};
