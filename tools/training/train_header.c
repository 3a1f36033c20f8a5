/* tools/training/train_header.c: see train_header.h. */
#include "tools/training/train_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"
#include "tools/cli/report.h"
#include "tools/session/convolutions.h"
#include "tools/session/schedule.h"

static void put_class_weights(const objective *o)
{
    float least = o->class_weights[0], most = least;
    for (uint32_t c = 1; c < o->class_weight_count; c++) {
        if (o->class_weights[c] < least) least = o->class_weights[c];
        if (o->class_weights[c] > most) most = o->class_weights[c];
    }
    printf(", classes weigh %.4g to %.4g", (double)least, (double)most);
}

/* "10 classes", "3 labels of attributes by bce" */
static void put_told(const tool_session *s)
{
    const objective *o = &s->objective;
    const bool labels = o->loss == MR_TARGET_LABELS, one = o->count == 1;
    if (!o->loss) printf("%u classes", mr_net_class_count(s->net));
    else
        printf("%u %s%s of %s by %s", o->count, labels ? "label" : "number", one ? "" : "s", o->field,
               objective_names[o->loss]);
}

static void put_rule(const tool_session *s)
{
    printf("rule     %s, lr %g, schedule %s", mr_update_name(&s->rule.update), (double)s->rule.schedule.lr,
           schedule_name(&s->rule.schedule));
    if (s->rule.update.weight_decay > 0)
        printf(", weight decay %g%s", (double)s->rule.update.weight_decay,
               mr_net_has_own_decay(s->net)              ? " on weights of some layers"
               : s->rule.decay_on == MR_DECAY_ON_WEIGHTS ? " on weights alone"
                                                         : "");
    if (s->objective.class_weights) put_class_weights(&s->objective);
    if (s->rule.label_smoothing > 0) printf(", labels smoothed by %g", (double)s->rule.label_smoothing);
    if (s->rule.clip_value > 0) printf(", gradients clipped at %g", (double)s->rule.clip_value);
    if (s->rule.clip_norm > 0) printf(", gradient norm at most %g", (double)s->rule.clip_norm);
    if (s->rule.lookahead) printf(", lookahead %u", s->rule.lookahead);
    if (s->rule.average > 0) printf(", average %g is evaluated", (double)s->rule.average);
    putchar('\n');
}

/* Another algorithm than one set of weights must not be taken for it. */
static void put_sync(const tool_session *s)
{
    const uint32_t updates = s->rule.sync >> 8;
    static const char other[] = ": another algorithm than --sync sync\n";
    if (s->rule.sync == MR_SYNC_EACH) return;
    if (s->rule.sync == MR_SYNC_INDEPENDENT)
        printf("sync     independent weights of %u share%s, share 0's are evaluated and stored%s",
               s->parts.all, s->parts.all > 1 ? "s" : "", other);
    if (s->rule.sync == MR_SYNC_DELAYED)
        printf("sync     each update uses the gradients of the batch before%s", other);
    if (s->crew) {
        const uint32_t servers = mr_crew_servers(s->crew), workers = mr_crew_workers(s->crew),
                       bound = s->rule.sync >> 8;
        printf("sync     %u server%s of parameters, %u worker%s", servers, servers > 1 ? "s" : "", workers,
               workers > 1 ? "s" : "");
        if (bound)
            printf(", each at most %u step%s ahead of the slowest%s", bound, bound > 1 ? "s" : "", other);
        else putchar('\n');
    }
    if ((s->rule.sync & 255) != MR_SYNC_AVERAGE) return;
    printf("sync     the weights of %u share%s are averaged after %s%u update%s", s->parts.all,
           s->parts.all > 1 ? "s" : "", updates > 1 ? "" : "each ", updates, updates > 1 ? "s" : "");
    if (s->rule.outer_lr < 1 || s->rule.outer_lr > 1) printf(", outer lr %g", (double)s->rule.outer_lr);
    if (s->rule.outer_momentum > 0)
        printf(", outer momentum %g (%s)", (double)s->rule.outer_momentum,
               s->rule.outer_heavy_ball ? "heavy ball" : "Nesterov");
    fputs(other, stdout);
}

/* What processes send each other in other bits than they have. */
static void put_exchange(const tool_session *s, uint32_t ranks)
{
    static const char *const names[] = {"f32", "bf16", "f16", "int8", "1bit"};
    if (s->rule.exchange == MR_EXCHANGE_F32) return;
    if (ranks == 1)
        printf("exchange nothing in one process: --exchange %s has no effect\n", names[s->rule.exchange]);
    else
        printf("exchange %s, the rest with the next step: another algorithm than --exchange f32, and other "
               "bits in each distribution of the shares\n",
               names[s->rule.exchange]);
}

static const char *starter(const tool_world *w)
{
    return w->at.launcher == MR_LAUNCHER_NONE ? "hand" : mr_launcher_name(w->at.launcher);
}

/* What their exchange will cost. */
static void put_link(const tool_session *s)
{
    mr_trainer_link l;
    char rate[32], gradients[32];
    mr_trainer_link_read(s->trainer, &l);
    if (!(l.latency_ms > 0)) return;
    if (l.bytes_per_s > 0) mri_size_text(l.bytes_per_s, rate, sizeof rate);
    else snprintf(rate, sizeof rate, "?");
    mri_size_text((double)l.bytes, gradients, sizeof gradients);
    printf("network  %.2f ms, %s/s; ", l.latency_ms, rate);
    if (s->rule.sync == MR_SYNC_DELAYED)
        printf("a step's %s of gradients: %.1f ms, while the next batch is computed\n", gradients, l.sum_ms);
    else if (s->rule.sync == MR_SYNC_EACH)
        printf("a step's %s of gradients in %u bucket%s: %.1f ms if nothing overlaps\n", gradients, l.buckets,
               l.buckets > 1 ? "s" : "", l.sum_ms);
    else printf("an average of %s: %.1f ms\n", gradients, l.sum_ms);
}

static void say_no_nccl(const mr_trainer_link *l)
{
    if (l->no_nccl[0]) say("gradients go through the memory of the hosts (wire %s): %s", l->wire, l->no_nccl);
}

/* Who else there is, and whose gradients are added in which order. */
static void put_ranks(const train_header *h)
{
    const tool_session *s = h->s;
    const mr_world *w = h->world->world;
    const uint32_t ranks = w ? mr_world_size(w) : 1, threads = mr_device_info_of(s->devices[0])->threads;
    uint32_t hosts = ranks > 0;
    for (uint32_t r = 1; r < ranks; r++) hosts += strcmp(mr_world_host(w, r), mr_world_host(w, r - 1)) != 0;
    mr_trainer_link link;
    mr_trainer_link_read(s->trainer, &link);
    say_no_nccl(&link);
    if (ranks > 1)
        printf("ranks    %u, started by %s, on %u host%s (%s%s), wire %s\n", ranks, starter(h->world), hosts,
               hosts > 1 ? "s" : "", mr_world_host(w, 0), hosts > 1 ? ", ..." : "", link.wire);
    put_exchange(s, ranks);
    if (ranks > 1) put_link(s);
    if (s->part.parts || ranks > 1)
        printf("parts    %u of a batch, %u to %u of them here%s%u%s: the same weights on 1 to %u devices\n",
               s->parts.all, s->parts.first, s->parts.first + s->parts.count - 1,
               threads ? ", computed with " : ", ", threads ? threads : s->device_count,
               threads > 1 ? " threads"
               : threads   ? " thread"
                           : " devices",
               s->parts.all);
}

int train_header_count_frozen(const tool_session *s, frozen_count *out)
{
    mr_error err = MR_ERROR_INIT;
    mr_layer_row row;
    *out = (frozen_count){0};
    if (!s->rule.freeze) return EXIT_DONE;
    bool *frozen = calloc((size_t)mr_net_layer_count(s->net) + 1, sizeof *frozen);
    if (!frozen) return exit_no_memory("the list of frozen layers");
    const int rc = mr_net_choose(s->net, s->rule.freeze, frozen, &err);
    for (uint32_t at = 0; rc == MR_OK && mr_net_layer(s->net, at, &row); at++) {
        if (row.params == 0) continue;
        out->all++;
        if (frozen[at]) out->layers++, out->params += row.params;
    }
    free(frozen);
    return setting_status(rc, &err);
}

static const char *names_text(uint32_t names)
{
    return names == MR_NAMES_TORCHVISION ? "torchvision" : "own";
}

static void put_beginning(const train_header *h)
{
    const tool_session *s = h->s;
    if (h->begin->path)
        printf("init     %s: %u of %u tensors, %s names%s\n", shown_text(h->begin->path),
               h->begin->report.taken, h->begin->report.taken + h->begin->report.left,
               h->begin->report.names == MR_NAMES_TORCHVISION ? "torchvision's" : "our own",
               h->begin->report.average ? ", the average of its weights" : "");
    if (!s->rule.freeze) return;
    const frozen_count f = *h->frozen;
    printf("frozen   %s: %u of %u layers with parameters, %" PRIu64 " of %" PRIu64 " parameters\n",
           s->rule.freeze, f.layers, f.all, f.params, mr_net_param_count(s->net));
}

void train_header_text(const train_header *h)
{
    const tool_session *s = h->s;
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    const mr_source_info *d = mr_source_info_of(s->src);
    printf("model    %s (%s), %" PRIu64 " parameters, ", s->model->name, s->model->id,
           mr_net_param_count(s->net));
    put_told(s);
    printf(", input ");
    if (s->model->numbers) printf("%u numbers\n", l->field[0].most);
    else printf("%u x %u x %u\n", l->height, l->width, l->channels);
    printf("data     %s (%s), %" PRIu64 " samples, %" PRIu64 " steps an epoch", shown_text(d->path),
           d->format, d->count, l->steps_per_epoch);
    if (l->dropped) printf(", %" PRIu64 " samples dropped", l->dropped);
    if (l->padded) printf(", %" PRIu64 " padded", l->padded);
    if (h->val)
        printf("; validation %s, %" PRIu64, shown_text(mr_source_info_of(h->val)->path),
               mr_source_info_of(h->val)->count);
    printf("\nrun      batch %u (%u per %s), %" PRIu64 " epochs, seed %" PRIu64 ", augment %s\n", l->batch,
           (l->batch - 1) / s->parts.all + 1, s->parts.all == session_replicas(s) ? "replica" : "part",
           h->run->epochs, h->run->seed, l->augment);
    put_rule(s);
    put_sync(s);
    put_beginning(h);
    printf("devices  %u:", s->device_count);
    for (uint32_t i = 0; i < s->device_count && i < 8; i++)
        printf(" %s", mr_device_info_of(s->devices[i])->name);
    printf("%s (%s), %s%s\n", s->device_count > 8 ? " ..." : "", mr_device_info_of(s->devices[0])->hardware,
           group_choice("precision", s->compute->precision),
           s->compute->deterministic ? ", deterministic" : "");
    if (s->part.place)
        printf("place    %s: %u replica%s of %u devices\n", s->part.place, session_replicas(s),
               session_replicas(s) > 1 ? "s" : "", s->device_count / session_replicas(s));
    put_ranks(h);
    const convolution_count convolutions = count_convolutions(s->trainer);
    convolutions_text("kernels", &convolutions, h->convolution);
    if (l->prefetch)
        printf("loader   prefetch %u, %u workers, %u readers, %s", l->prefetch, l->workers, l->readers,
               l->io);
    else printf("loader   prefetch off: everything in series, %s", l->io);
    printf("%s%s%s\n", l->io_note[0] ? " (" : "", l->io_note, l->io_note[0] ? ")" : "");
    if (h->from)
        printf("resume   %s: epoch %" PRIu64 ", step %" PRIu64 "\n", shown_text(h->from), h->start_epoch + 1,
               h->start_step);
    report_table_head(h->val != NULL);
    fflush(stdout);
}

void train_header_json(const train_header *h)
{
    const tool_session *s = h->s;
    const mr_loader_info *l = mr_loader_info_of(s->loader);
    const mr_source_info *d = mr_source_info_of(s->src);
    json_line j = json_begin(stdout, "start");
    json_text(&j, "model", s->model->name);
    json_text(&j, "model_id", s->model->id);
    json_u64(&j, "parameters", mr_net_param_count(s->net));
    json_u64(&j, "classes", mr_net_class_count(s->net));
    json_text(&j, "loss_name", objective_names[s->objective.loss]);
    json_text(&j, "targets", s->objective.field[0] ? s->objective.field : NULL);
    json_u64(&j, "target_count", s->objective.count);
    json_bool(&j, "class_weights", s->objective.class_weights != NULL);
    json_text(&j, "data", d->path);
    json_text(&j, "format", d->format);
    json_u64(&j, "samples", d->count);
    json_u64(&j, "steps_per_epoch", l->steps_per_epoch);
    json_text(&j, "val", h->val ? mr_source_info_of(h->val)->path : NULL);
    json_u64(&j, "batch", l->batch);
    json_u64(&j, "replica_batch", (l->batch - 1) / s->parts.all + 1);
    json_u64(&j, "replicas", session_replicas(s));
    json_u64(&j, "replica_devices", s->device_count / session_replicas(s));
    json_text(&j, "place", s->part.place);
    json_u64(&j, "ranks", h->world->world ? mr_world_size(h->world->world) : 1);
    mr_trainer_link link;
    mr_trainer_link_read(s->trainer, &link);
    say_no_nccl(&link);
    if (h->world->world && mr_world_size(h->world->world) > 1) json_text(&j, "wire", link.wire);
    report_link_json(&j, &link);
    json_u64(&j, "servers", mr_crew_servers(s->crew));
    json_u64(&j, "parts", s->parts.all);
    json_text(&j, "device", mr_device_info_of(s->devices[0])->name);
    json_text(&j, "hardware", mr_device_info_of(s->devices[0])->hardware);
    json_text(&j, "precision", group_choice("precision", s->compute->precision));
    json_bool(&j, "deterministic", s->compute->deterministic);
    const convolution_count convolutions = count_convolutions(s->trainer);
    convolutions_json(&j, &convolutions, h->convolution);
    json_u64(&j, "epochs", h->run->epochs);
    json_u64(&j, "seed", h->run->seed);
    json_text(&j, "optimizer", mr_update_name(&s->rule.update));
    json_float(&j, "lr", s->rule.schedule.lr);
    json_text(&j, "schedule", schedule_name(&s->rule.schedule));
    json_float(&j, "weight_decay", s->rule.update.weight_decay);
    for (size_t i = 0; i < RULE_KEPT; i++) json_setting(&j, &rule_kept[i], &s->rule);
    json_text(&j, "freeze", s->rule.freeze);
    json_u64(&j, "frozen_parameters", h->frozen->params);
    json_text(&j, "init", h->begin->path);
    if (h->begin->path) {
        json_text(&j, "init_names", names_text(h->begin->report.names));
        json_u64(&j, "init_taken", h->begin->report.taken);
        json_u64(&j, "init_left", h->begin->report.left);
        json_u64(&j, "init_unused", h->begin->report.unused);
        json_bool(&j, "init_average", h->begin->report.average);
    }
    json_text(&j, "augment", l->augment);
    json_u64(&j, "prefetch", l->prefetch);
    json_u64(&j, "workers", l->workers);
    json_u64(&j, "readers", l->readers);
    json_text(&j, "io", l->io);
    json_text(&j, "io_note", l->io_note);
    json_u64(&j, "loader_memory_bytes", l->memory_bytes);
    json_text(&j, "resumed_from", h->from);
    json_end(&j);
}
