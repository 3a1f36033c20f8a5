/* millrace/train.h: all of the trainer's headers:
 *
 *   net.h         networks, losses, schedules, named models
 *   trainer.h     the training loop, evaluation, reports
 *   checkpoint.h  the state of a run in files and in memory
 *
 * and the headers of the pipeline (pipeline.h). Include it, or only the headers with the functions that you
 * call: each compiles alone. A program that trains calls, in this order, mr_source_open(), mr_devices_open(),
 * mr_loader_open(), mr_model_build(), mr_trainer_open() and mr_fit(), and closes in the reverse order. */
#ifndef MILLRACE_TRAIN_H
#define MILLRACE_TRAIN_H

#include "millrace/checkpoint.h"
#include "millrace/net.h"
#include "millrace/pipeline.h"
#include "millrace/trainer.h"

#endif
