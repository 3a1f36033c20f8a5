/* tools/advise/advise.h: the parts of `millrace convert SRC --advise`: what some of the data cost in each
 * form of storage, which form to take, and the report. */
#ifndef TOOLS_ADVISE_H
#define TOOLS_ADVISE_H

#include "tools/session/session.h"

enum { ADVISE_FORMS = 7, ADVISE_RESIZE = 256 };

typedef struct advise_form {
    const char *name, *set; /* set: the options that make it; NULL: the data as they are */
    bool changes_pixels;
    double sample_bytes, total_bytes; /* of the whole set: from the sample */
    double decode_ms;                 /* of a sample, on a core */
    double samples_per_s, cores;      /* with workers, from memory */
    double expected_per_s; /* the same, or less where the set does not fit into memory and storage limits */
    bool fits_memory, fits_disk;
} advise_form;

typedef struct advise_result {
    const char *path, *format, *augment;
    uint64_t samples, sampled, bad;
    uint32_t workers;
    double memory_bytes, disk_bytes; /* available; free in the current folder */
    double storage_bytes_per_s;      /* NAN: not measured, or not known */
    advise_form form[ADVISE_FORMS];  /* the first: as they are */
    uint32_t form_count;
    uint32_t best, resized; /* of form[]; resized: worth a look where other pixels will do, 0: none */
    char command[2048];     /* "": leave the data as they are */
    char reason[512];
} advise_result;

/* SRC, opened. augment NULL: a usual one for pictures of their size. 0 or an exit status. */
int advise_measure(const mr_source *src, const char *augment, const data_args *data, uint32_t workers,
                   uint32_t channels, bool quiet, advise_result *out);
/* best, resized, command, reason. src_text: as the user wrote it. */
void advise_choose(advise_result *r, const char *src_text);
void advise_print_text(const advise_result *r);
void advise_print_json(const advise_result *r);
/* Data without pictures: nothing to measure, and why. */
void advise_print_none(const mr_source_info *info, bool json);

#endif
