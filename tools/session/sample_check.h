/* tools/session/sample_check.h: every sample of a data set read, parsed, its label compared with the
 * classes, its picture decoded; on several threads, and errors reported in the order of the samples. */
#ifndef TOOLS_CHECK_H
#define TOOLS_CHECK_H

#include "millrace/pipeline.h"
#include "settings/limits.h"

typedef struct sample_check {
    const mr_source *src;
    mr_decode_config decode;
    bool no_decode, quiet;
    bool decode_only;  /* what cannot be read was reported elsewhere */
    uint32_t workers;  /* 0: one per core */
    uint64_t memory;   /* memory that large pictures share; 0: half of the memory that the process may use */
    const char *label; /* of the progress line */
    /* Called for one bad sample after the other, with file, sample and, in shared files, offset; false:
     * stop. */
    bool (*wrong)(void *context, const mr_error *what);
    void *context;
    uint64_t done, bytes; /* result: samples looked at, bytes read */
} sample_check;

/* 0, or an exit status when the check itself failed. A signal ends it early: the caller looks at
 * interrupt_flag. */
int check_samples(sample_check *c);

/* Check what no single sample can show (mr_source_check()); reported like a bad sample without a number. 0,
 * or an exit status when the check itself failed. */
int check_files(const sample_check *c);

/* Add the place of a bad sample that was reported by its number only: file, and the offset in a shared
 * file. */
void check_place(const mr_source *src, mr_error *what);

#endif
