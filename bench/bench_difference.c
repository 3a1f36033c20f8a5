/* bench/bench_difference.c: how far our own pixels of JPEGs are from libjpeg-turbo's, resampled alike.
 *
 * usage: bench_difference DATA [AUGMENT [EPOCHS]]     (default rrc224, 1)
 *
 * The same batches are loaded twice, with --pixels own and libjpeg; the draws are the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "millrace/pipeline.h"

static mr_loader *open_loader(const mr_source *src, const char *augment, uint64_t epochs, mr_pixels pixels)
{
    mr_loader_config cfg;
    mr_loader *l;
    mr_error err = MR_ERROR_INIT;
    char text[1024];
    mr_loader_defaults(&cfg);
    cfg.augment = augment;
    cfg.training = true;
    cfg.epochs = epochs;
    cfg.batch = 64;
    cfg.decode.pixels = pixels;
    if (mr_loader_open(&l, src, &cfg, &err) == MR_OK) return l;
    fprintf(stderr, "%s\n", mr_error_format(&err, text, sizeof text));
    exit(1);
}

int main(int argc, char **argv)
{
    const char *augment = argc > 2 ? argv[2] : "rrc224";
    mr_source *src;
    mr_error err = MR_ERROR_INIT;
    char text[1024];
    if (argc < 2) return fprintf(stderr, "usage: bench_difference DATA [AUGMENT [EPOCHS]]\n"), 2;
    if (mr_source_open(&src, argv[1], NULL, &err) != MR_OK)
        return fprintf(stderr, "%s\n", mr_error_format(&err, text, sizeof text)), 1;
    const uint64_t epochs = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    mr_loader *own = open_loader(src, augment, epochs, MR_PIXELS_OWN),
              *libjpeg = open_loader(src, augment, epochs, MR_PIXELS_LIBJPEG);
    const mr_loader_info *info = mr_loader_info_of(own);
    const size_t sample = (size_t)info->height * info->width * info->channels;
    uint64_t histogram[256] = {0}, values = 0, samples = 0;
    int64_t bias = 0;
    double worst = 0;
    mr_batch a, b;
    while (mr_loader_next(own, &a, MR_FOREVER, &err) == MR_OK &&
           mr_loader_next(libjpeg, &b, MR_FOREVER, &err) == MR_OK) {
        const uint8_t *p = a.pixels, *q = b.pixels;
        for (uint32_t k = 0; k < a.count; k++, p += sample, q += sample) {
            uint64_t sum = 0;
            for (size_t i = 0; i < sample; i++) {
                const int d = p[i] - q[i];
                histogram[d < 0 ? -d : d]++;
                sum += (uint64_t)(d < 0 ? -d : d);
                bias += d;
            }
            const double mean = (double)sum / (double)sample;
            if (mean > worst) worst = mean;
            samples++;
            values += sample;
        }
        mr_loader_release(own, &a, NULL);
        mr_loader_release(libjpeg, &b, NULL);
    }
    mr_loader_close(own);
    mr_loader_close(libjpeg);
    mr_source_close(src);
    if (values == 0)
        return fprintf(stderr, "nothing was loaded: %s\n", mr_error_format(&err, text, sizeof text)), 1;
    uint64_t sum = 0, above[4] = {0};
    for (unsigned d = 0; d < 256; d++) {
        sum += d * histogram[d];
        above[0] += d > 0 ? histogram[d] : 0;
        above[1] += d > 1 ? histogram[d] : 0;
        above[2] += d > 4 ? histogram[d] : 0;
        above[3] += d > 16 ? histogram[d] : 0;
    }
    const double all = (double)values;
    printf("%" PRIu64
           " pictures, %s: mean difference %.4f of 255, bias %+.4f, worst picture %.2f; off by more than 0: "
           "%.2f %%, 1: %.3f %%, 4: %.4f %%, 16: %.5f %%\n",
           samples, augment, (double)sum / all, (double)bias / all, worst, 100 * (double)above[0] / all,
           100 * (double)above[1] / all, 100 * (double)above[2] / all, 100 * (double)above[3] / all);
    return 0;
}
