/* tools/outputs/views.h: combines a network's outputs for several views of each sample: the mean of its
 * probabilities. The loader shows one view in each of its epochs (mr_augment_views()). */
#ifndef TOOLS_VIEWS_H
#define TOOLS_VIEWS_H

#include "millrace/train.h"

typedef struct views {
    uint32_t count;    /* 1: there is nothing to take together */
    char augment[768]; /* the specification followed by views() */
    /* The caller's function, called once for each sample, with the logarithms of the means as logits; as in
     * mr_outputs_config. NULL: no calls */
    int (*on_outputs)(void *context, const mr_outputs *o, mr_error *err);
    void *context;
    /* what follows is its own */
    uint32_t classes, pass;
    uint64_t samples, room, at; /* of the sums; where the next batch of a pass begins */
    float *sum;                 /* samples x classes */
    double loss_sum;
    uint64_t right, labelled;
} views;

/* name: flip, five, ten; NULL: one view. An exit status. */
int views_open(views *v, const char *name, const char *augment);
void views_close(views *v); /* accepts a zeroed one */
/* All passes. loss_sum, right and labelled count this process's samples. */
int views_run(views *v, mr_trainer *t, mr_loader *l, const volatile int *stop, mr_error *err);

#endif
