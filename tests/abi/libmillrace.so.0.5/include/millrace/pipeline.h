/* millrace/pipeline.h: all of the pipeline's headers:
 *
 *   image.h    one picture: decode, resize, encode
 *   augment.h  the language for what happens to a picture on its way into a batch
 *   loader.h   batches, in order and on time
 *   observe.h  where time goes: counters, causes, traces, records and their replay
 *   convert.h  any source into record files, TFRecords or tar
 *   repair.h   what is whole out of damaged and incomplete sets */
#ifndef MILLRACE_PIPELINE_H
#define MILLRACE_PIPELINE_H

#include "millrace/augment.h"
#include "millrace/convert.h"
#include "millrace/image.h"
#include "millrace/loader.h"
#include "millrace/observe.h"
#include "millrace/repair.h"

#endif
