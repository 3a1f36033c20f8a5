/* millrace/pipeline.h: all of the pipeline's headers:
 *
 *   image.h    one picture: decode, resize, encode
 *   augment.h  the augmentation language: how a picture is changed for a batch
 *   loader.h   batches of samples from storage, in a fixed order
 *   observe.h  where time goes: counters, causes, traces, records and their replay
 *   pages.h    files of a set in the page cache, for measurements
 *   choose.h   some samples of a data set, and other names of its classes
 *   columns.h  names of the columns of a table that became targets (a header of formats)
 *   convert.h  any source into record files, TFRecords, tar, MDS or RecordIO
 *   export.h   the pictures of a data set as files
 *   repair.h   repair of damaged and incomplete sets
 *   stats.h    counts of a data set: classes, pictures, channels, duplicates
 *   verify.h   every sample read and decoded, to find damage
 *   manifest.h sizes and SHA-256 sums of a set's files
 *   card.h     a description of a set for other people and programs
 *
 * Include it, or only the headers with the functions that you call: each compiles alone. */
#ifndef MILLRACE_PIPELINE_H
#define MILLRACE_PIPELINE_H

#include "millrace/augment.h"
#include "millrace/card.h"
#include "millrace/choose.h"
#include "millrace/columns.h"
#include "millrace/convert.h"
#include "millrace/export.h"
#include "millrace/image.h"
#include "millrace/loader.h"
#include "millrace/manifest.h"
#include "millrace/observe.h"
#include "millrace/pages.h"
#include "millrace/repair.h"
#include "millrace/stats.h"
#include "millrace/verify.h"

#endif
