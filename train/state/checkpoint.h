/* train/state/checkpoint.h: the checkpoint container (train/state/CHECKPOINT.md specifies its bytes) and the
 * folder it lives in.
 *
 * Takes arrays under names and roles in canonical order, and the run's description of itself. Gives a file
 * that is whole or not there, and the arrays back from one that can be trusted. Callers: the trainer and the
 * training loop; trainers, layouts and replicas are not known here (trainer_state.c, train/run/tensors.h). */
#ifndef MRI_CHECKPOINT_H
#define MRI_CHECKPOINT_H

#include "base/util.h"
#include "millrace/train.h"

#define MRI_CHECKPOINT_MAX_TENSORS 65536u

typedef enum mri_role {                       /* numbers are on disk */
                        MRI_ROLE_WEIGHTS = 0, /* trained */
                        MRI_ROLE_STATE = 1,   /* kept by layers: running statistics */
                        MRI_ROLE_SLOT0 = 2,   /* optimizer state of the weights of the same name */
                        MRI_ROLE_SLOT1 = 3,
                        MRI_ROLE_AVERAGE = 4,       /* of weights; ... */
                        MRI_ROLE_AVERAGE_STATE = 5, /* of what layers keep: of the tensor of the same name */
                        MRI_ROLE_SLOT2 = 6,         /* as SLOT0 */
                        MRI_ROLE_OUTER = 7,         /* momentum of averages: of the weights of this name */
                        MRI_ROLE_WORKER = 8, /* all that a share has trained by itself since the last average
                                              */
                        MRI_ROLE_LATE = 9, /* gradient that the next update uses: of the weights of this name
                                            */
                        MRI_ROLE_COUNT = 10,
} mri_role;

/* Of weights, or of what layers keep. */
static inline mri_role mri_role_averaged(mri_role role)
{
    return role == MRI_ROLE_WEIGHTS ? MRI_ROLE_AVERAGE : MRI_ROLE_AVERAGE_STATE;
}

typedef struct mri_tensor_desc {
    char name[64]; /* "4/conv2d/weights" */
    mri_role role;
    uint32_t ndim;
    uint64_t dim[4];
    uint64_t count; /* floats: product of dim */
} mri_tensor_desc;

/* Write tensor number at (tensors[at].count floats) to out. */
typedef int mri_tensor_source(void *context, uint32_t at, float *out, mr_error *err);

/* All of it to a part file (PATH.part), synced, renamed, folder synced. On failure PATH is as it was. net:
 * one that is to be found in the file; NULL: its name says it. */
int mri_checkpoint_write(const char *path, const mr_checkpoint_info *info, const mr_net *net,
                         const mri_tensor_desc *tensors, uint32_t count, mri_tensor_source *source,
                         void *context, mr_error *err);

typedef struct mri_names_place { /* of the names of classes in the file */
    uint64_t offset, bytes;      /* 0 bytes: absent */
    uint32_t crc;
} mri_names_place;

typedef struct mri_wants_place { /* of the targets of a network, after the names of classes */
    uint64_t offset, bytes;      /* 0 bytes: absent */
    uint32_t crc;
} mri_wants_place;

typedef struct mri_net_place { /* of the network, last in the file */
    uint64_t offset;
    uint32_t bytes, crc; /* 0 bytes: absent */
} mri_net_place;

typedef struct mri_checkpoint {
    int fd;
    char *path;
    mr_checkpoint_info info;
    uint32_t tensor_count;
    mri_tensor_desc *tensors;
    uint64_t *offset;
    uint32_t *crc;
    uint64_t data_offset, file_bytes;
    mri_names_place names;
    mri_wants_place wants;
    mri_net_place net;
    float *class_weights; /* their number is in the info, or NULL */
} mri_checkpoint;

/* Header and directory, checked against each other and the file's length. */
int mri_checkpoint_open(mri_checkpoint **out, const char *path, mr_error *err);
void mri_checkpoint_close(mri_checkpoint *ck); /* accepts NULL */
/* Is the file to blame, not the system? */
static inline bool mri_checkpoint_is_damage(int rc)
{
    return rc == MR_EFORMAT || rc == MR_ECHECKSUM || rc == MR_EUNSUPPORTED;
}
/* Every byte after the directory. */
int mri_checkpoint_verify(const mri_checkpoint *ck, mr_error *err);
/* One tensor, its checksum compared. */
int mri_checkpoint_read(const mri_checkpoint *ck, uint32_t at, float *out, mr_error *err);

/* ---- names of classes, after the last tensor ---- */
int mri_checkpoint_names_write(mri_names_place *place, int fd, const char *path,
                               const mr_checkpoint_info *info, uint64_t at, mr_error *err);
/* Are they no longer than any data set could bring, and where do they end, zeros included? */
bool mri_checkpoint_names_fit(const mri_names_place *place);
uint64_t mri_checkpoint_names_end(const mri_names_place *place);
int mri_checkpoint_names_check(const mri_checkpoint *ck, mr_error *err);
/* As mr_checkpoint_class_names(); without names the output is unchanged. */
int mri_checkpoint_names_read(const mri_checkpoint *ck, const char ***names, uint32_t *count, mr_error *err);

/* ---- targets and weights of classes, after the names ---- */
int mri_checkpoint_wants_write(mri_wants_place *place, int fd, const char *path,
                               const mr_checkpoint_info *info, uint64_t at, mr_error *err);
/* The bytes of the data that the info describes. */
uint64_t mri_checkpoint_wants_bytes(const mr_checkpoint_info *info);
uint64_t mri_checkpoint_wants_end(const mri_wants_place *place);
/* Into info and class_weights; place and counts come from the header. */
int mri_checkpoint_wants_read(mri_checkpoint *ck, mr_error *err);

/* ---- a network that no name stands for, behind all of it ---- */
int mri_checkpoint_net_write(mri_net_place *place, int fd, const char *path, const mr_net *net, uint64_t at,
                             mr_error *err);
/* Is it as long as a network may be, and where does it end? */
bool mri_checkpoint_net_fits(const mri_net_place *place);
uint64_t mri_checkpoint_net_end(const mri_net_place *place);
/* *out is NULL if there is no text. */
int mri_checkpoint_net_read(const mri_checkpoint *ck, mr_net **out, mr_error *err);
int mri_checkpoint_net_check(const mri_checkpoint *ck, mr_error *err);

/* ---- the folder: step-NNNNNNNNNNNN.mrck by updates done, and best.mrck ---- */
int mri_checkpoint_folder_make(const char *folder, mr_error *err);
void mri_checkpoint_step_path(const char *folder, uint64_t updates, char *out, size_t out_bytes);
void mri_checkpoint_best_path(const char *folder, char *out, size_t out_bytes);
/* The updates of every step file there is, whole or not, newest first; to be freed. */
int mri_checkpoint_steps(const char *folder, uint64_t **steps, size_t *count, mr_error *err);
/* Give path a second name, replacing what had it; a copy where that cannot be. note: why, when the system
 * failed instead of knowing no second names, or what could not be removed; else as it was. */
int mri_checkpoint_second_name(const char *path, const char *second, char *note, size_t note_bytes,
                               mr_error *err);
/* Remove what interrupted writes left. Best effort. */
void mri_checkpoint_clear_parts(const char *folder);

#endif
