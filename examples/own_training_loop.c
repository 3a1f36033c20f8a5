/* own_training_loop.c: millrace feeds, the loop and the step are one's own: softmax regression in plain C.
 *
 *   own_training_loop DATA
 *
 * Without devices a batch lies in host memory. With cfg.devices its parts are in device memory instead: the
 * step is then queued on a stream behind parts[r].ready, and mr_loader_release() gets that stream. */
#include <math.h>
#include <millrace/pipeline.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 16, PIXELS = SIDE * SIDE * 3, MOST_CLASSES = 64, EPOCHS = 8 };

static float weights[MOST_CLASSES][PIXELS + 1]; /* the last one of each row is the bias */

/* Probabilities of all classes for one picture, in p. */
static void predict(const uint8_t *x, uint32_t classes, float *p)
{
    float most = -INFINITY, sum = 0;
    for (uint32_t c = 0; c < classes; c++) {
        p[c] = weights[c][PIXELS];
        for (int i = 0; i < PIXELS; i++) p[c] += weights[c][i] * ((float)x[i] / 128 - 1);
        if (p[c] > most) most = p[c];
    }
    for (uint32_t c = 0; c < classes; c++) sum += p[c] = expf(p[c] - most);
    for (uint32_t c = 0; c < classes; c++) p[c] /= sum;
}

/* One step of gradient descent; returns the sum of the losses before it. */
static double step(const mr_batch *b, uint32_t classes, float rate)
{
    static float gradient[MOST_CLASSES][PIXELS + 1];
    double loss = 0;
    for (uint32_t c = 0; c < classes; c++)
        for (int i = 0; i <= PIXELS; i++) gradient[c][i] = 0;
    for (uint32_t k = 0; k < b->count; k++) {
        const uint8_t *x = b->pixels + (size_t)k * PIXELS;
        float p[MOST_CLASSES];
        if (b->labels[k] < 0) continue; /* padding counts nothing */
        predict(x, classes, p);
        loss -= log(p[b->labels[k]] + 1e-12);
        p[b->labels[k]] -= 1;
        for (uint32_t c = 0; c < classes; c++) {
            for (int i = 0; i < PIXELS; i++) gradient[c][i] += p[c] * ((float)x[i] / 128 - 1);
            gradient[c][PIXELS] += p[c];
        }
    }
    for (uint32_t c = 0; b->counted && c < classes; c++)
        for (int i = 0; i <= PIXELS; i++) weights[c][i] -= rate * gradient[c][i] / (float)b->counted;
    return loss;
}

int main(int argc, char **argv)
{
    mr_error err = MR_ERROR_INIT;
    mr_source *source = NULL;
    mr_loader *loader = NULL;
    mr_loader_config cfg;
    mr_batch batch;
    char line[1024];
    double loss = 0;
    mr_loader_defaults(&cfg);
    cfg.batch = 16, cfg.epochs = EPOCHS, cfg.channels = 3, cfg.augment = "resize(16x16)";
    int rc = mr_source_open(&source, argc > 1 ? argv[1] : ".", NULL, &err);
    if (rc == MR_OK) rc = mr_loader_open(&loader, source, &cfg, &err);
    const uint32_t classes = rc == MR_OK ? mr_source_info_of(source)->class_count : 0;
    if (classes > MOST_CLASSES) rc = mr_error_set(&err, MR_EINVAL, "%u classes are too many here", classes);
    while (rc == MR_OK && (rc = mr_loader_next(loader, &batch, MR_FOREVER, &err)) == MR_OK) {
        loss += step(&batch, classes, 0.02f);
        if (batch.last)
            printf("epoch %llu: loss %.4f\n", (unsigned long long)batch.epoch + 1,
                   loss / (double)mr_loader_info_of(loader)->epoch_samples);
        if (batch.last) loss = 0;
        mr_loader_release(loader, &batch, NULL); /* from here its memory is filled again */
    }
    if (rc != MR_EEND) fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    mr_loader_close(loader);
    mr_source_close(source);
    return rc == MR_EEND ? 0 : 1;
}
