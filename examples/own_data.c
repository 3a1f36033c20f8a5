/* own_data.c: data of one's own, made in memory, for our trainer: batches are filled by hand.
 *
 *   own_data [DEVICES [CHECKPOINT.mrck]]
 *
 * There is no data set and no loader. Each replica has two slots, so that one batch is made and copied while
 * the other is computed with; events on the devices keep them apart, and the host waits for nothing but room:
 *
 *   host      make 0   make 1            make 2 (slot 0 again: once its copy is over)
 *   copy         copy 0   copy 1            copy 2 (once step 0 has been computed)
 *   compute               step 0   step 1            step 2
 *
 * The task: which quarter of a noisy picture is the bright one. */
#include <millrace/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 4, BATCH = 32, SLOTS = 2, STEPS = 60, MOST = 16 };

static mr_error err = MR_ERROR_INIT;

static void must(int rc)
{
    char line[1024];
    if (rc == MR_OK) return;
    fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    exit(1);
}

/* Sample k is the same whenever it is asked for. */
static int32_t make_sample(uint64_t k, uint8_t *pixels)
{
    uint64_t noise = k * 0x9e3779b97f4a7c15u + 1;
    const uint32_t class = (uint32_t)(noise >> 32) % CLASSES;
    for (uint32_t i = 0; i < PIXELS; i++) {
        noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
        const uint32_t quarter = 2 * (i / SIDE >= SIDE / 2) + (i % SIDE >= SIDE / 2);
        pixels[i] = (uint8_t)(noise % 160 + (quarter == class ? 60 : 0));
    }
    return (int32_t) class;
}

/* A part of a batch: the samples of one replica, and where they are. */
typedef struct slot {
    uint8_t *host, *device; /* pixels, then labels */
    mr_event *ready, *used; /* the copy is over; the step that takes it is */
} slot;

typedef struct feed {
    mr_device **devices;
    uint32_t replicas;
    mr_stream *copy[MOST];
    slot slots[MOST][SLOTS];
} feed;

static size_t labels_at(void) { return (size_t)BATCH * PIXELS; } /* a multiple of 4 */

static void feed_open(feed *f)
{
    const size_t bytes = labels_at() + BATCH * sizeof(int32_t);
    for (uint32_t r = 0; r < f->replicas; r++) {
        must(mr_stream_create(&f->copy[r], f->devices[r], MR_STREAM_COPY, &err));
        for (uint32_t k = 0; k < SLOTS; k++) {
            slot *s = &f->slots[r][k];
            must(mr_host_alloc(f->devices[r], bytes, (void **)&s->host, &err));
            must(mr_device_alloc(f->devices[r], bytes, (void **)&s->device, &err));
            must(mr_event_create(&s->ready, f->devices[r], &err));
            must(mr_event_create(&s->used, f->devices[r], &err));
        }
    }
}

/* After the trainer, whose steps use the memory. */
static void feed_close(feed *f)
{
    for (uint32_t r = 0; r < f->replicas; r++) {
        mr_stream_destroy(f->copy[r]); /* finishes queued work */
        for (uint32_t k = 0; k < SLOTS; k++) {
            slot *s = &f->slots[r][k];
            mr_event_destroy(s->ready);
            mr_event_destroy(s->used);
            mr_device_free(f->devices[r], s->device);
            mr_host_free(f->devices[r], s->host);
        }
    }
}

/* Samples first to first + count - 1, divided among the replicas, on their way to the devices. parts: one for
 * each. */
static mr_batch make_batch(feed *f, uint64_t step, uint64_t first, uint32_t count, mr_part *parts)
{
    for (uint32_t r = 0; r < f->replicas; r++) {
        slot *s = &f->slots[r][step % SLOTS];
        const uint32_t begin = count * r / f->replicas, end = count * (r + 1) / f->replicas;
        must(mr_event_sync(s->ready, &err)); /* the copy before this one has read the host's memory */
        int32_t *labels = (int32_t *)(void *)(s->host + labels_at());
        for (uint32_t i = begin; i < end; i++)
            labels[i - begin] = make_sample(first + i, s->host + (size_t)(i - begin) * PIXELS);
        must(mr_stream_wait_event(f->copy[r], s->used)); /* the step before has read the device's */
        must(mr_copy_h2d_async(f->copy[r], s->device, s->host, (size_t)(end - begin) * PIXELS));
        must(mr_copy_h2d_async(f->copy[r], s->device + labels_at(), labels, (end - begin) * sizeof *labels));
        must(mr_event_record(s->ready, f->copy[r]));
        parts[r] = (mr_part){.first = begin,
                             .count = end - begin,
                             .pixels = s->device, /* uint8, sample after sample, h x w x c */
                             .labels = s->device + labels_at(),
                             .ready = s->ready,
                             .form = MR_PART_PIXELS};
    }
    return (mr_batch){.struct_size = sizeof(mr_batch),
                      .step = step,
                      .global_step = step, /* what dropout draws by: another one for each step */
                      .count = count,
                      .counted = count, /* less those with label -1, which teach nothing */
                      .all_count = count,
                      .part_count = f->replicas,
                      .parts = parts};
}

/* The work that is queued now is the last that uses this slot. */
static void give_back(feed *f, uint64_t step, const mr_trainer *trainer)
{
    mr_stream *const *streams = mr_trainer_streams(trainer);
    for (uint32_t r = 0; r < f->replicas; r++)
        must(mr_event_record(f->slots[r][step % SLOTS].used, streams[r]));
}

int main(int argc, char **argv)
{
    feed f = {.replicas = 0};
    must(mr_devices_open(&f.devices, &f.replicas, argc > 1 ? argv[1] : "cpu", NULL, &err));
    if (f.replicas > MOST) must(mr_error_set(&err, MR_EINVAL, "at most %d devices here", MOST));
    feed_open(&f);

    mr_net *net = NULL;
    must(mr_net_create(&net, "quarters", SIDE, SIDE, 1));
    mr_net_conv2d(net, 8, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_max_pool(net, 2, 2);
    mr_net_dropout(net, 0.1f);
    mr_net_dense(net, CLASSES, MR_ACT_NONE);
    must(mr_net_check(net, &err));

    mr_trainer *trainer = NULL;
    mr_trainer_config how;
    mr_trainer_defaults(&how);
    how.net = net, how.devices = f.devices, how.device_count = f.replicas, how.batch = BATCH, how.seed = 1;
    how.update = mr_update_rule_find("adam")->desc;
    how.schedule = (mr_schedule){.kind = MR_LR_CONSTANT, .lr = 0.01f};
    how.mean[0] = 110, how.std[0] = 50; /* of the pixels, which the devices take out */
    must(mr_trainer_open(&trainer, &how, &err));

    mr_part parts[MOST];
    mr_metrics training, evaluation;
    uint64_t step = 0;
    for (; step < STEPS; step++) {
        const mr_batch batch = make_batch(&f, step, step * BATCH, BATCH, parts);
        must(mr_trainer_step(trainer, &batch, &err)); /* queued: it returns before it is done */
        give_back(&f, step, trainer);
        if (step % 15 && step + 1 < STEPS) continue;
        must(mr_trainer_metrics(trainer, &training, NULL, &err)); /* waits; the sums since the last call */
        printf("step %2llu: loss %.4f, accuracy %.3f\n", (unsigned long long)step + 1,
               training.loss_sum / (double)training.count, (double)training.correct / (double)training.count);
    }

    for (uint64_t k = 0; k < 4; k++, step++) { /* samples that it has not seen; the last batch is a short one
                                                */
        const mr_batch batch = make_batch(&f, step, (STEPS + k) * BATCH, k < 3 ? BATCH : BATCH / 2, parts);
        must(mr_trainer_forward(trainer, &batch, &err));
        give_back(&f, step, trainer);
    }
    must(mr_trainer_metrics(trainer, NULL, &evaluation, &err));
    const double accuracy = (double)evaluation.correct / (double)evaluation.count;
    printf("evaluation: %llu samples, loss %.4f, accuracy %.3f\n", (unsigned long long)evaluation.count,
           evaluation.loss_sum / (double)evaluation.count, accuracy);

    if (argc > 2) { /* with the network and the changes of pixels: `millrace eval DATA --checkpoint` knows
                       both */
        const mr_checkpoint_info info = {
            .struct_size = sizeof info, .batch = BATCH, .seed = how.seed, .augment = "normalise(110/50)"};
        must(mr_trainer_save(trainer, argv[2], &info, &err));
    }
    mr_trainer_close(trainer);
    feed_close(&f);
    mr_net_destroy(net);
    mr_devices_close(f.devices, f.replicas);
    return accuracy > 0.9 ? 0 : 1;
}
