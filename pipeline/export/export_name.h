/* pipeline/export/export_name.h: the name of the file of an exported sample: the sample's own name, if it
 * is known. Names and classes come from a file and may hold anything; the result leads nowhere but below
 * the folder that is exported to, and never to a file of the same run. */
#ifndef MRI_EXPORT_NAME_H
#define MRI_EXPORT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MRI_EXPORT_NAME_ROOM = 3072 };

typedef struct mri_export_names { /* {0} is empty */
    uint64_t *used;               /* hashes of the paths given, open addressing, 0 is free */
    uint64_t count, room;
    bool rooted;
    char root[1024]; /* in front of all folders of classes, with its slash */
} mri_export_names;

typedef struct mri_export_sample {
    const char *name;       /* its original name, or "" */
    const char *class_name; /* or "": none */
    const char *ending;     /* of the file: jpg, png, gif, ... */
    bool unchanged;         /* the bytes that were stored: whatever the name ends in stays */
    uint64_t number;
} mri_export_sample;

/* "cat/1.jpg", from the name; else "CLASS/00000017.jpg". A file of a class lies in the class's own folder,
 * and that in the root or in a part of the set (train/). *changed: the sample has a name, and the path does
 * not end in it (apart from the ending that the file's kind asks for). False: no memory. */
bool mri_export_name(mri_export_names *n, const mri_export_sample *s, char out[MRI_EXPORT_NAME_ROOM],
                     bool *changed);
void mri_export_names_fini(mri_export_names *n);
/* The path that a class or a name becomes. False: nothing is left of it, or it is too long. */
bool mri_export_name_safe(const char *name, char *out, size_t room);

#endif
