/* formats/folder/folder.h: a folder of pictures, with a sub-folder for each class or however the tree is.
 * Private.
 *
 * Takes a folder and looks at names and sizes, and into files whose kind the name does not show. Gives one
 * format for the table in formats/open.c, which is the only one to use it; each sample is a file of its own.
 *
 *   folder_parts.c    which folders in it are parts (train, test, val), and which belong to none
 *   tree.c            which folders of a part are classes, by the rule that was asked for
 *   listing.c         what lies in one folder
 *   members.c         the same of an archive whose members lie in folders
 *   odd_classes.c     names of folders that are no classes
 *   mask_pairs.c      a folder with the masks of another folder's pictures, by any name
 *   table_beside.c    a table next to class folders that contradicts them
 *   file_kinds.c      is this file a picture?
 *   left_out.c        entries that were not taken, and their report to the user
 *   same_folders.c    folders that have two names, and their report
 *   same_files.c      pictures that have several names, and their report
 *   source_folder.c   the samples: names and sizes of all files, and the calls of a source
 *
 * source_folder.c calls the others; listing.c stands on file_kinds.c and left_out.c. */
#ifndef MRI_FOLDER_H
#define MRI_FOLDER_H

#include <dirent.h>
#include <limits.h>

#include "formats/folder/members.h"
#include "formats/source/source.h"

enum { MRI_FOLDER_PATH = 2 * 4096 }; /* of paths that are put together for messages */

/* ---- growing lists of names (listing.c) ---- */
typedef struct mri_listed {
    size_t at; /* of the name in text */
    uint64_t bytes;
} mri_listed;

typedef struct mri_listing {
    char *text;
    size_t text_used, text_cap;
    mri_listed *entries;
    size_t count, cap;
    size_t links; /* files that are links */
} mri_listing;

/* Room for `more` behind used elements; *items stays valid on failure. */
bool mri_make_room(void **items, size_t *cap, size_t used, size_t more, size_t item_bytes);
bool mri_listing_add(mri_listing *l, const char *name, uint64_t bytes);
void mri_listing_sort(mri_listing *l); /* by the bytes of the names */
/* The index of this name in a sorted list; -1: it is not in it. */
int mri_listing_find(const mri_listing *l, const char *name, size_t bytes);
void mri_listing_fini(mri_listing *l);
static inline const char *mri_listing_name(const mri_listing *l, size_t k)
{
    return l->text + l->entries[k].at;
}

/* ---- entries that are not taken (left_out.c) ---- */
typedef enum mri_left {
    MRI_LEFT_NO_PICTURE, /* files */
    MRI_LEFT_UNDECODED,  /* pictures of kinds that are not decoded */
    MRI_LEFT_LINK,       /* links to nothing, or back to themselves */
    MRI_LEFT_BESIDE,     /* pictures beside class folders or parts */
    MRI_LEFT_INSIDE,     /* folders in class folders */
    MRI_LEFT_DEEPER,     /* folders that hold folders only */
    MRI_LEFT_OTHERS,     /* folders that hold other files only */
    MRI_LEFT_NO_PART,    /* folders next to the split folders */
    MRI_LEFT_SYSTEM,     /* folders of an operating system: __MACOSX */
    MRI_LEFT_EMPTY,      /* taken all the same: class folders without pictures */
    MRI_LEFT_KINDS
} mri_left;

enum { MRI_LEFT_NAMES = 3 };

typedef struct mri_left_out {
    const char *root; /* names are reported relative to it */
    uint64_t hidden;
    struct {
        uint64_t count;
        char name[MRI_LEFT_NAMES][192]; /* the first in the order of their bytes */
    } of[MRI_LEFT_KINDS];
} mri_left_out;

/* what: the reason, appended to the name; may be NULL. */
void mri_leave_out(mri_left_out *l, mri_left kind, const char *where, const char *name, const char *what);
uint64_t mri_left_out_count(const mri_left_out *l); /* entries that are in no sample, hidden ones included */
void mri_left_out_tell(const mri_left_out *l, mr_source *src);
/* "3 files that are no pictures (a, b, c)", for an error; "" for nothing. Returns buf. */
char *mri_left_out_text(const mri_left_out *l, mri_left kind, char *buf, size_t buf_bytes);

/* ---- files (file_kinds.c) ---- */
typedef enum mri_file_kind {
    MRI_FILE_PICTURE,
    MRI_FILE_UNDECODED, /* a picture of another kind, by its name */
    MRI_FILE_OTHER,
    MRI_FILE_CLUTTER, /* what file managers leave behind */
    MRI_FILE_UNKNOWN, /* the name does not tell */
    MRI_FILE_GONE     /* mri_file_look(): not there any more */
} mri_file_kind;

/* The kind that the ending of a name shows; *what: the kind of an undecoded picture. */
mri_file_kind mri_file_kind_of_name(const char *name, const char **what);
/* The same from the file's first bytes, where the name does not show whether it is a picture; *what points to
 * buf or to a static text, which quotes the file only where it lies below root (NULL: nowhere). A file that
 * may not be read counts as a picture: reading it reports the reason. */
int mri_file_look(mri_dir dir, const char *root, const char *where, const char *name, mri_file_kind *kind,
                  const char **what, char *buf, size_t buf_bytes, mr_error *err);

/* ---- one folder (listing.c) ---- */
typedef struct mri_list_what {
    mri_listing *folders, *files;  /* NULL: not wanted */
    bool tell_folders, tell_files; /* report unwanted entries as left out: INSIDE, BESIDE or NO_PICTURE */
} mri_list_what;

/* Sorted. Hidden entries are counted, links followed. where: the folder's path, for messages. out may be
 * NULL. */
int mri_list_folder(mri_dir parent, const char *name, const char *where, const mri_list_what *want,
                    mri_left_out *out, mr_error *err);

typedef struct mri_contents {
    bool pictures, undecoded, others, folders;
} mri_contents;

/* What kinds of entries there are. Ends early once there is a picture, unless `all`. */
int mri_look_into(mri_dir parent, const char *name, const char *where, bool all, mri_contents *out,
                  mr_error *err);

/* Of what lies on disk a descriptor, of an archive a node. */
int mri_folder_open(mri_dir parent, const char *name, const char *where, mri_dir *out, mr_error *err);
void mri_folder_close(mri_dir dir);
/* Does the entry exist? Any error other than "no such entry" counts as yes. */
bool mri_folder_has(mri_dir dir, const char *path);
int mri_folder_no_memory(mr_error *err, const char *where);
int mri_folder_error(mr_error *err, int code, const char *where, const char *name);

/* ---- classes (tree.c) ---- */
/* Folders below `part` whose pictures are taken, sorted by their paths below it: the classes, but with
 * MR_CLASSES_NONE every folder, `part` itself ("") included. MR_EFORMAT without such folders; err describes
 * the tree, and what to do. inner: the folder in every class folder that has the pictures, or "". */
int mri_tree_classes(mri_listing *out, mri_dir part, const char *where, char inner[NAME_MAX + 1],
                     mri_left_out *left, const mr_source_config *cfg, mr_error *err);

/* ---- folders with two names (same_folders.c) ---- */
typedef struct mri_same_folders {
    mri_dir root;
    const mri_listing *classes; /* folders of a part, as mri_tree_classes() lists them */
    const char *inner;
    const char *part, *other; /* the part that is taken, and the other one; "": none */
} mri_same_folders;

/* Reports folders of the split that a link makes one, and folders that both splits have. MR_ENOMEM. */
int mri_same_folders_tell(mr_source *src, const mri_same_folders *s, mr_error *err);

/* ---- files with several names (same_files.c) ---- */
typedef struct mri_same_files {
    uint64_t count, links; /* samples; of these, links. Without links no file is looked at */
    uint64_t memory_bytes; /* that the source has */
    bool labels;
    void (*path_of)(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes);
    uint32_t (*class_of)(const mr_source *src, uint64_t sample);
} mri_same_files;

/* Report pictures that occur twice through a link. MR_ENOMEM, or MR_ECANCELED after a stop. */
int mri_same_files_tell(mr_source *src, const mri_same_files *s, const mr_source_config *cfg, mr_error *err);

/* ---- masks next to their pictures (no_classes.c) ---- */
typedef struct mri_masks {
    uint64_t count;
    char first[256]; /* "cat/1_mask.png" */
} mri_masks;

/* Finds files of one folder (sorted) that have the name of another file with _mask appended. They are taken
 * and reported. */
void mri_find_masks(mri_masks *found, const mri_listing *files, const char *class_name);
/* Is a word of the folder's name one of masks: gt, SegmentationClassPNG, 1st_manual? */
bool mri_has_word_of_masks(const char *name);
/* Bytes of the name whose mask this one (without ending) is by its name; 0: it is not named like a mask. */
size_t mri_masked_bytes(const char *name, size_t bytes);
/* Is there a name of these bytes and any ending among these, which are sorted? */
bool mri_has_stem(const mri_listing *l, const char *stem, size_t bytes);
void mri_tell_masks(const mri_masks *found, mr_source *src);

/* ---- folders of masks (mask_pairs.c) ---- */
typedef struct mri_taken { /* the samples, class by class, and in a class by the bytes of their names */
    const char *const *classes;
    size_t class_count;
    bool deep; /* classes are paths */
    const char *inner;
    const uint64_t *first; /* of each class the first sample; at the end their number */
    const char *names;
    const uint32_t *name_at; /* of each sample, in names */
    const uint64_t *size;    /* of each sample, bytes */
} mri_taken;

/* MR_EFORMAT: a folder has the masks of another one's pictures. Opens a few files where names fit. */
int mri_masks_are_no_classes(const mri_taken *taken, mri_dir part, const char *where, mr_error *err);

/* ---- trees without classes (no_classes.c): MR_EFORMAT, and what to do ---- */
int mri_no_classes(mri_dir part, const char *where, const mri_left_out *left, mr_error *err);
/* images/ and annotations/: two folders, but no two classes. */
int mri_one_is_no_class(const mri_listing *out, const char *where, const mri_left_out *left, mr_error *err);
/* images/ and list.txt: one folder, and the labels elsewhere. MR_OK: no such file. */
int mri_labels_beside(const mri_listing *out, const char *where, const mri_left_out *left, mr_error *err);
/* The same in the only folder, after its files are listed. */
int mri_labels_inside(const mri_listing *out, const char *where, const char *inner, const mri_left_out *left,
                      mr_error *err);
/* A file directly in the folder `where` that was left out and may hold labels, without the folder; NULL:
 * none. Only the first names are known. */
const char *mri_find_labels(const mri_left_out *left, const char *where);
/* images/ and masks/; deep: below another folder. MR_OK: no such folders. */
int mri_masks_are_no_class(const mri_listing *out, const char *where, bool archive, bool deep, mr_error *err);
/* train2017/, val2017/ and unlabeled2017/, all with pictures. MR_OK: no such folders. */
int mri_splits_are_no_classes(const mri_listing *out, const char *where, mr_error *err);
/* data/train/cat and data/val/cat, which are no classes, and without classes no one part. MR_OK: no such
 * folders. */
int mri_parts_are_apart(const mri_listing *out, bool classes, const char *where, mr_error *err);

/* ---- names that are no classes (odd_classes.c): MR_EFORMAT, and what to do ---- */
/* out: the folders of the first level, sorted; inner: as mri_tree_classes() found it. */
int mri_odd_classes(const mri_listing *out, mri_dir part, const char *where, const char *inner,
                    const mri_left_out *left, mr_error *err);

/* Are all classes called like pieces of one set (images_part_1, images_part_2)? */
bool mri_are_called_pieces(const mri_listing *classes);

/* ---- tables next to class folders (table_beside.c) ---- */
/* MR_EFORMAT: a table in the folder `where` contradicts the class folders (sorted). */
int mri_tables_beside(const mri_listing *classes, const char *where, mr_error *err);
/* The same of tables in an archive, next to the part's folders or above them, and of those next to the
 * archive that name its pictures. */
int mri_tables_of_archive(const mri_listing *classes, mri_dir part, const char *where, mr_error *err);

/* ---- names (accents.c) ---- */
/* Two names that differ in how their accents are written alone: as letters, or as marks behind letters. */
bool mri_names_look_alike(const char *a, const char *b);

/* ---- parts (folder_parts.c) ---- */
typedef struct mri_folder_parts { /* names of folders; "": missing */
    char train[256], test[256];
    char passed[256]; /* another one to test with */
} mri_folder_parts;

/* folders: the subfolders of the data set. If there are split folders, the others are left out.
 */
int mri_folder_find_parts(mri_folder_parts *out, mri_dir root, const char *where, const mri_listing *folders,
                          mri_left_out *left, mr_error *err);

#endif
