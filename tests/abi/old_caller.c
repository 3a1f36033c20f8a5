/* A program as somebody wrote it for the first release with this soname: every kind of struct that goes over
 * the library's edge. Compiled with that release's headers and run with today's library, it must print what
 * it prints when it is compiled with today's headers. Built and run by check_abi.sh. */
#include <millrace/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char *what, const mr_error *err)
{
    char line[1024];
    printf("%s: %s\n", what, mr_error_format(err, line, sizeof line));
    return 1;
}

static int read_header(const mr_source *source, mr_error *err)
{
    void *buffer = NULL;
    size_t room = 0;
    mr_sample sample;
    mr_image_header header;
    mr_image image;
    mr_decode_config decode;
    mr_extent extent;
    mr_source_file file;
    const mr_source_info *info = mr_source_info_of(source);
    int rc = mr_source_extent(source, 1, &extent, err);
    if (rc == MR_OK) rc = mr_source_read(source, 1, &buffer, &room, &sample, err);
    if (rc != MR_OK) return failed("read", err);
    const mr_value *picture = &sample.value[info->image_field];
    mr_decode_defaults(&decode);
    decode.channels = 3;
    if (mr_value_header(picture, &header, err) || mr_image_decode(picture, &decode, &image, err))
        return failed("decode", err);
    printf("sample 1: %llu bytes, %u x %u, orientation %u, first pixel %u %u %u\n",
           (unsigned long long)extent.bytes, header.width, header.height, header.orientation, image.pixels[0],
           image.pixels[1], image.pixels[2]);
    printf("file 0: %d\n", mr_source_file_at(source, 0, &file) == MR_OK && file.fd >= 0);
    mr_image_free(&image);
    free(buffer);
    return 0;
}

static int convert(const mr_source *source, const char *to, mr_error *err)
{
    mr_convert_config cfg;
    mr_convert_result result;
    mr_verify_result verified;
    mr_convert_defaults(&cfg);
    cfg.workers = 2;
    cfg.force = true;
    if (mr_convert(source, to, &cfg, &result, err)) return failed("convert", err);
    if (mr_mrec_verify(to, NULL, NULL, &verified, err)) return failed("verify", err);
    printf("converted: %llu records, %llu bad, %u shards; verified %llu of %llu bytes\n",
           (unsigned long long)result.records, (unsigned long long)result.bad, result.shards,
           (unsigned long long)verified.records, (unsigned long long)verified.bytes);
    return 0;
}

static int train(mr_loader *loader, mr_device *const *devices, mr_error *err)
{
    const mr_loader_info *info = mr_loader_info_of(loader);
    const mr_model *model = mr_model_find("cifar-cnn");
    mr_trainer_config cfg;
    mr_fit_config fit;
    mr_report last;
    mr_layer_row row;
    mr_net *net;
    mr_trainer *trainer;
    uint64_t lo, hi;
    if (mr_model_build(model, info->height, info->width, info->channels, 2, &net, err))
        return failed("model", err);
    mr_trainer_defaults(&cfg);
    cfg.net = net;
    cfg.devices = devices;
    cfg.device_count = 1;
    cfg.batch = info->batch;
    cfg.update = model->update;
    cfg.schedule = model->schedule;
    memcpy(cfg.mean, info->mean, sizeof cfg.mean);
    memcpy(cfg.std, info->std, sizeof cfg.std);
    if (mr_trainer_open(&trainer, &cfg, err)) return failed("trainer", err);
    mr_fit_defaults(&fit);
    fit.max_steps = 3;
    if (mr_fit(trainer, loader, &fit, &last, err)) return failed("fit", err);
    if (mr_trainer_weights_hash(trainer, 0, &lo, &hi, err)) return failed("hash", err);
    mr_net_layer(net, 0, &row);
    printf("%s: %llu parameters; %llu steps, loss %.6f; weights %016llx%016llx\n", row.name,
           (unsigned long long)row.params, (unsigned long long)last.steps, last.loss, (unsigned long long)hi,
           (unsigned long long)lo);
    mr_trainer_close(trainer);
    mr_net_destroy(net);
    return 0;
}

static int load(const mr_source *source, mr_device **devices, mr_error *err)
{
    mr_loader_config cfg;
    mr_loader *loader;
    mr_batch batch;
    mr_loader_stats stats;
    int rc;
    mr_loader_defaults(&cfg);
    cfg.batch = 4;
    cfg.seed = 7;
    cfg.augment = "resize(32x32)";
    if (mr_loader_open(&loader, source, &cfg, err)) return failed("loader", err);
    while ((rc = mr_loader_next(loader, &batch, MR_FOREVER, err)) == MR_OK) {
        unsigned sum = 0;
        for (size_t i = 0; i < (size_t)batch.count * 32 * 32 * 3; i++) sum += batch.pixels[i];
        printf("batch %llu: %u samples, %u counted, labels %d.., sum %u, last %d\n",
               (unsigned long long)batch.step, batch.count, batch.counted, batch.labels[0], sum, batch.last);
        mr_loader_release(loader, &batch, NULL);
    }
    if (rc != MR_EEND) return failed("next", err);
    mr_loader_stats_read(loader, &stats);
    printf("stats: %llu batches, %llu decoded, %llu bad\n", (unsigned long long)stats.batches,
           (unsigned long long)stats.decode.items, (unsigned long long)stats.bad_samples);
    mr_loader_close(loader);
    cfg.devices = devices;
    cfg.device_count = 1;
    cfg.epochs = UINT64_MAX;
    if (mr_loader_open(&loader, source, &cfg, err)) return failed("loader", err);
    rc = train(loader, devices, err);
    mr_loader_close(loader);
    return rc;
}

int main(int argc, char **argv)
{
    mr_error err = MR_ERROR_INIT;
    mr_source_config cfg;
    mr_source *source;
    mr_devices_config device_cfg;
    mr_device **devices;
    mr_device_listing row;
    uint32_t count;
    if (argc != 3) return 2;
    mr_source_defaults(&cfg);
    cfg.split = MR_SPLIT_TRAIN;
    if (mr_source_open(&source, argv[1], &cfg, &err)) return failed("source", &err);
    mr_devices_defaults(&device_cfg);
    device_cfg.compute_threads = 1;
    if (mr_devices_open(&devices, &count, "cpu", &device_cfg, &err)) return failed("devices", &err);
    printf("%llu samples, %u classes; %s, %d\n", (unsigned long long)mr_source_info_of(source)->count,
           mr_source_info_of(source)->class_count, mr_device_info_of(devices[0])->name,
           mr_device_list(0, &row));
    int rc = read_header(source, &err);
    if (rc == 0) rc = convert(source, argv[2], &err);
    if (rc == 0) rc = load(source, devices, &err);
    mr_devices_close(devices, count);
    mr_source_close(source);
    return rc;
}
