/* tests/pipeline/convert/converted.h: what mr_convert() made or refused to make, checked. */
#ifndef MRT_CONVERTED_H
#define MRT_CONVERTED_H

#include "millrace/pipeline.h"
#include "mrt.h"

/* Opens a source without leaving an index next to it. */
mr_source *mrt_source_alone(const char *path);

/* Two files hold the same bytes. */
void mrt_same_files(const char *a, const char *b);

/* This conversion fails with `code` and says `text`. */
void mrt_convert_refused(const mr_source *src, const char *dst, const mr_convert_config *cfg, int code,
                         const char *text);

#endif
