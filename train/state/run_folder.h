/* train/state/run_folder.h: the folder of a run's checkpoints: its owner, its writer, and the files that may
 * be removed. Private to train/ and its tests.
 *
 *   open: locked ──► claim: it is this run's, `best` matches the record ──► wrote, prune, ... ──► close
 *
 * run.lock names the process that writes there and the run that the folder belongs to (run_lock.h); a
 * checkpoint names its run in its header. */
#ifndef MRI_RUN_FOLDER_H
#define MRI_RUN_FOLDER_H

#include "train/state/run_lock.h"

/* The facts known of a run before it resumes. */
typedef struct mri_run_claim {
    const uint8_t *run;    /* MRI_RUN_BYTES */
    bool resumed;          /* from a checkpoint, after this number of updates: */
    uint64_t updates;      /* done so far */
    bool nameless_too;     /* it began with a program whose checkpoints do not tell their run */
    uint64_t best_updates; /* of the checkpoint that `best` must be; 0: none */
    bool replace;          /* move another run's files aside */
} mri_run_claim;

void mri_run_draw(uint8_t *run);

/* from: NULL, or a run whose process may have the folder taken away. */
int mri_run_folder_open(mr_run_folder **out, const char *path, const uint8_t *from, mr_error *err);
/* MR_EEXIST: another run's. note (room for one line): something to tell, or "". */
int mri_run_folder_claim(mr_run_folder *f, const mri_run_claim *claim, char *note, size_t note_bytes,
                         mr_error *err);
const char *mri_run_folder_path(const mr_run_folder *f);
/* Before anything is written. MR_EPEER: the folder was taken over. */
int mri_run_folder_check(const mr_run_folder *f, mr_error *err);

/* Note that the checkpoint of `updates` updates was written, and is whole. */
void mri_run_folder_wrote(mr_run_folder *f, uint64_t updates);
/* Give it its second name, best.mrck. note: as for a claim. */
int mri_run_folder_set_best(const mr_run_folder *f, uint64_t updates, char *note, size_t note_bytes,
                            mr_error *err);

/* Remove whole step files of the run but for the newest `keep` of them, and, until `last`, the one that it
 * was resumed from. Damaged ones count for nothing and stay. What cannot be looked at or removed stays, is in
 * the note, and is tried again the next time. */
void mri_run_folder_prune(mr_run_folder *f, uint32_t keep, bool last, char *note, size_t note_bytes);

#endif
