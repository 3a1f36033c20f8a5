/* formats/record/record.h: our own record files (.mrec) and lists of them. Private.
 *
 * Takes samples from mr_writer (millrace/formats.h) and a file or shard list, here or on a web server. Gives
 * writer, reader and verifier, which are public; two formats for the table in formats/open.c; and the parts
 * of a file (mrec.h). Callers: formats/open.c, and pipeline/convert, which checks by mrec.h that a sample
 * fits into a record. The layout is specified in FORMAT.md. */
#ifndef MRI_RECORD_H
#define MRI_RECORD_H

#include "formats/record/mrec.h"
#include "formats/source/source.h"

#endif
