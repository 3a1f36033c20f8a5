/* formats/tar/tar_sample.h: which members of a tar archive make one sample, and which of them is the picture,
 * the class, a field. Private.
 *
 *   dir/0017.jpg  dir/0017.cls  dir/0017.meta.json      key "dir/0017", members "jpg", "cls", "meta.json"
 *
 * The rules of WebDataset: the key ends at the first dot of the last path component, the rest is the
 * case-insensitive name of the member; neighbours with the same key are one sample. Where that would fold
 * pictures into one sample or hide labels (cat.0001.jpg, cat.0001.cls, cat.0002.jpg), the key ends at the
 * last dot, for all of the set (tar_dots.c). Names of the form __x__ (alone or as first folder) are metadata
 * of a writer and skipped. A name without a key (no dot, or a leading dot) belongs to no sample. */
#ifndef MRI_TAR_SAMPLE_H
#define MRI_TAR_SAMPLE_H

#include "formats/tar/tar.h"
#include "millrace/formats.h"

enum {
    MRI_TAR_MAX_PARTS = 64,      /* members of one sample; more make it a bad one */
    MRI_TAR_MAX_LABEL_TEXT = 64, /* bytes of a class written as a number */
    MRI_TAR_MAX_JSON = 1 << 20,  /* bytes of a JSON member that holds the class */
};

/* Where the key of a name ends: at the first dot (WebDataset's rule), or at the last one, which is for
 * archives whose names have dots in them (tar_dots.c). */
typedef enum mri_tar_dot { MRI_TAR_FIRST_DOT, MRI_TAR_LAST_DOT } mri_tar_dot;

bool mri_tar_is_meta(const char *name);

/* ---- one sample's members ---- */
typedef struct mri_tar_part {
    char ext[MR_MAX_NAME + 1]; /* lower case; "" when longer than a field's name may be */
    uint64_t data, bytes;
    bool sparse;
} mri_tar_part;

typedef struct mri_tar_group {
    size_t key_bytes;    /* 0: nothing in it */
    uint64_t begin, end; /* from the first member's (or link's) first header to the last one's data */
    uint32_t count;
    bool more;           /* than there is room for */
    mri_tar_kind passed; /* a link or the like had this key; MRI_TAR_FILE: none */
    char passed_ext[MR_MAX_NAME + 1];
    char key[MRI_TAR_MAX_NAME + 1];
    mri_tar_part part[MRI_TAR_MAX_PARTS];
} mri_tar_group;

/* A part by its name, or NULL. */
const mri_tar_part *mri_tar_group_find(const mri_tar_group *g, const char *ext);
/* The names of its members, for messages: "jpg, cls". */
char *mri_tar_group_names(const mri_tar_group *g, char *buf, size_t buf_bytes);

/* ---- all samples, one after the other ---- */
typedef enum mri_tar_irregularity {                    /* not refused, but reported */
                                    MRI_TAR_NO_BYTES,  /* links, devices, pipes, types of some program's own:
                                                          passed  over */
                                    MRI_TAR_NO_KEY,    /* names without a key: passed over */
                                    MRI_TAR_OUTSIDE,   /* names that would lead out of a folder, if anybody
                                                          unpacked   them */
                                    MRI_TAR_KEY_AGAIN, /* a key that other samples lie between: parts that are
                                                          no neighbours, or two samples of one name */
                                    MRI_TAR_CLASSES_LARGE,  /* lists of classes too large to be ones */
                                    MRI_TAR_CLASSES_DIFFER, /* lists of classes that are not like the first:
                                                               then none holds */
                                    MRI_TAR_LEFT_OUT,       /* members that are neither picture nor class, and
                                                               cannot be fields */
                                    MRI_TAR_LATE_CLASS,     /* classes, where no sample of the first ones has
                                                               one: then none is taken */
                                    MRI_TAR_NO_END, /* no blocks of zeros at the end: a writer's habit, or cut
                                                       off between two members */
                                    MRI_TAR_IRREGULARITIES
} mri_tar_irregularity;

typedef struct mri_tar_notes { /* how many there are, and the first of each */
    uint32_t file;             /* the one being read */
    struct {
        uint64_t count, offset;
        uint32_t file;
        char what[96];
    } of[MRI_TAR_IRREGULARITIES];
} mri_tar_notes;

typedef struct mri_tar_link { /* what holds no bytes, in front of the sample that it may belong to */
    mri_tar_kind kind;
    uint64_t head;
    size_t key_bytes; /* 0: none */
    size_t name_bytes;
    char name[MRI_TAR_MAX_NAME + 1];
} mri_tar_link;

typedef struct mri_tar_samples {
    mri_tar walk;
    mri_tar_dot dot;        /* MRI_TAR_FIRST_DOT at first */
    mri_tar_member pending; /* the first of the next sample */
    size_t pending_key;
    mri_tar_link link;
    mri_tar_notes *notes;
    /* For each part as it is met, so that a file is read front to back; not MR_OK ends the walk. May be
     * NULL */
    int (*on_part)(void *context, const mri_tar_part *part, mr_error *err);
    /* For each note of a writer that holds bytes. May be NULL */
    int (*on_note)(void *context, const mri_tar_member *m, mr_error *err);
    void *on_context;
} mri_tar_samples;

/* notes may be NULL. */
void mri_tar_samples_init(mri_tar_samples *it, mri_tar_get *get, void *context, uint64_t at, uint64_t end,
                          mri_tar_notes *notes);
/* MR_EEND after the last one; else as mri_tar_next(). */
int mri_tar_samples_next(mri_tar_samples *it, mri_tar_group *g, mr_error *err);
void mri_tar_note(mri_tar_notes *n, mri_tar_irregularity what, uint64_t offset, const char *name);

/* ---- names with dots in them (tar_dots.c) ---- */
typedef enum mri_tar_dots {
    MRI_TAR_DOTS_FINE,    /* the first dot makes one sample of it */
    MRI_TAR_DOTS_LAST,    /* several samples, or a hidden label: the last dot makes whole samples */
    MRI_TAR_DOTS_UNCLEAR, /* several pictures or classes in one sample, and no dot makes whole samples */
} mri_tar_dots;
/* g: as the first dot makes it. */
mri_tar_dots mri_tar_dots_of(const mri_tar_group *g);
/* MR_EFORMAT with the names of its members and what to try. */
int mri_tar_dots_unclear(const mri_tar_group *g, mr_error *err);
/* g: as the last dot makes it. MR_EFORMAT: without a picture, since the names are of both kinds. */
int mri_tar_dots_check(const mri_tar_group *g, mr_error *err);

/* ---- meaning of the members ---- */
typedef enum mri_tar_label { MRI_TAR_NO_LABEL, MRI_TAR_LABEL_TEXT, MRI_TAR_LABEL_JSON } mri_tar_label;

typedef struct mri_tar_schema {
    char image_key[MR_MAX_NAME + 1], label_key[MR_MAX_NAME + 1]; /* as asked for; "" by the usual names */
    char image[MR_MAX_NAME + 1]; /* the member that was the picture where the schema was taken */
    mri_tar_label label_kind;
    char label[MR_MAX_NAME + 1]; /* TEXT: the member, JSON: the field */
    char no_class[256];          /* why a usual field of .json is no class where there is no other; or "" */
    uint32_t field_count;
    int image_field, label_field;
    mr_field field[MR_MAX_FIELDS]; /* but for "image" and "label" named as their members are */
    mr_value none[MR_MAX_FIELDS];  /* the value of a sample that lacks it */
} mri_tar_schema;

/* MR_EINVAL for keys no member can have. */
int mri_tar_schema_init(mri_tar_schema *s, const char *image_key, const char *label_key, mr_error *err);
/* The schema that this sample suggests; image_field and label_field show whether picture and class were
 * found, as far as requested. */
int mri_tar_schema_take(mri_tar_schema *s, const mri_tar_group *g, mri_tar_get *get, void *context,
                        mr_error *err);
/* Is the part the picture, the class or a field where the schema was taken? */
bool mri_tar_schema_knows(const mri_tar_schema *s, const mri_tar_part *part);
/* Can a member of this name become a further field? */
bool mri_tar_schema_may_add(const mri_tar_schema *s, const char *ext);
/* Add a part of another sample as a field; nothing where there are MR_MAX_FIELDS. */
int mri_tar_schema_add(mri_tar_schema *s, const mri_tar_part *part, mri_tar_get *get, void *context,
                       mr_error *err);
/* "mask.png", "segmentation.png": a picture that belongs to another one. */
bool mri_tar_is_mask(const char *ext);
/* "cls", "class", "label": the class by custom. */
bool mri_tar_is_class(const char *ext);
/* Could this part hold the class? */
bool mri_tar_schema_is_label(const mri_tar_schema *s, const mri_tar_part *part);
/* The class in it: MR_EFORMAT, MR_ELIMIT when it is missing or invalid. */
int mri_tar_schema_label(const mri_tar_schema *s, const mri_tar_part *part, mri_tar_get *get, void *context,
                         int64_t *out, mr_error *err);
/* The value of another member, data: its bytes. MR_EFORMAT, MR_EUNSUPPORTED: it is not what its field
 * says. */
int mri_tar_schema_value(const mr_field *field, const void *data, size_t bytes, mr_value *out, mr_error *err);
/* The picture among a sample's members: its kind, and the member. MR_EFORMAT without a picture. */
int mri_tar_schema_image(const mri_tar_schema *s, const mri_tar_group *g, mri_tar_get *get, void *context,
                         const mri_tar_part **out, mr_type *type, mr_error *err);

#endif
