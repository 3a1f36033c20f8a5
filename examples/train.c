/* train.c: train a named network, with checkpoints; the same command continues a run that was stopped.
 *
 *   train DATA MODEL FOLDER [EPOCHS]
 *
 * Validates on the test part of DATA, if it has one. Ctrl-C ends the run between two steps. */
#include <millrace/run.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile int stop;

static void on_signal(int number) { stop = number; }

static void on_note(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "%s\n", text);
}

static void on_epoch(void *context, const mr_report *r)
{
    (void)context;
    printf("epoch %llu: loss %.4f, accuracy %.4f, validation %.4f\n", (unsigned long long)r->epoch + 1,
           r->loss, r->accuracy, r->val_accuracy);
}

int main(int argc, char **argv)
{
    mr_error err = MR_ERROR_INIT;
    mr_run *run = NULL;
    mr_run_config cfg;
    mr_loader_config loader;
    mr_fit_config fit;
    char line[1024];
    mr_run_defaults(&cfg);
    mr_loader_defaults(&loader);
    mr_fit_defaults(&fit);
    signal(SIGINT, on_signal);
    if (argc < 4) return fprintf(stderr, "usage: train DATA MODEL FOLDER [EPOCHS]\n"), 2;
    cfg.data = argv[1];
    cfg.model = argv[2];
    cfg.checkpoint = argv[3];
    cfg.resume = true; /* where the folder has a checkpoint */
    cfg.loader = &loader;
    cfg.on_note = on_note;
    if (argc > 4) loader.epochs = strtoull(argv[4], NULL, 10);
    fit.stop = &stop;
    fit.callbacks = (mr_callbacks){.on_epoch = on_epoch, .on_message = on_note};
    int rc = mr_run_open(&run, &cfg, &err);
    if (rc == MR_OK) rc = mr_run_fit(run, &fit, NULL, &err);
    if (rc) fprintf(stderr, "%s\n", mr_error_format(&err, line, sizeof line));
    mr_run_close(run);
    return rc == MR_OK ? 0 : 1;
}
