/* millrace/train.h: all of the trainer's headers:
 *
 *   net.h         networks, losses, schedules, named models
 *   trainer.h     the training loop, evaluation, reports
 *   checkpoint.h  the state of a run in files and in memory
 *
 * and the headers of the pipeline (pipeline.h). */
#ifndef MILLRACE_TRAIN_H
#define MILLRACE_TRAIN_H

#include "millrace/checkpoint.h"
#include "millrace/net.h"
#include "millrace/pipeline.h"
#include "millrace/trainer.h"

#endif
