/* formats/text/csv_table.h: a table of picture files while it is read. Private to source_csv.c and its parts.
 *
 *   csv_columns.c   which columns are the picture and the class
 *   csv_paths.c     the file of a row: no file outside the table's folder that nobody asked for
 *   csv_classes.c   classes, numbered
 *   csv_other_classes.c   further columns of classes
 *   csv_unnamed.c   pictures that no row names
 *   source_csv.c    the rows, the source and folders of tables */
#ifndef MRI_CSV_TABLE_H
#define MRI_CSV_TABLE_H

#include "formats/source/names.h"
#include "formats/source/number_rows.h"
#include "formats/source/source.h"
#include "formats/text/csv.h"
#include "formats/text/table_numbers.h"
#include "formats/text/table_parts.h"
#include "formats/text/table_place.h"

/* As for folders: a larger file is no picture. */
#define MRI_CSV_MOST_PICTURE ((uint64_t)256 << 20)
/* in place of a size */
enum { MRI_CSV_NOT_THERE = UINT32_MAX, MRI_CSV_TOO_LARGE = UINT32_MAX - 1 };

enum { MRI_CSV_OTHER_CLASSES = 8, MRI_CSV_SHOWN = 80 };

typedef struct mri_csv_other_class { /* a column with a usual name of classes that is not taken */
    uint32_t at;
    char name[MRI_CSV_SHOWN];
    uint64_t same, differ; /* rows with the class of the column that is taken, and with another */
    uint64_t line;         /* the first that differs, and its classes */
    char first[MRI_CSV_SHOWN], first_other[MRI_CSV_SHOWN];
} mri_csv_other_class;

typedef struct mri_csv_other_classes {
    mri_csv_other_class of[MRI_CSV_OTHER_CLASSES];
    uint32_t count;
    char taken[MRI_CSV_SHOWN]; /* the name of the column that is taken */
} mri_csv_other_classes;

typedef struct mri_csv_named { /* of all rows, while reading */
    uint64_t *hash;            /* of the name */
    uint32_t *folder;          /* its number in folders */
    uint64_t count, cap;
    mri_names folders; /* each with its last slash; "": the table's */
} mri_csv_named;

typedef struct mri_csv_table {
    mri_names paths;  /* numbered like the samples */
    mri_names normal; /* while reading: their normal forms, numbered alike; empty while all are normal */
    uint32_t *size, *line;
    int32_t *label; /* while reading: number in classes */
    uint32_t cap;
    struct {
        mri_names names; /* in order of appearance */
        uint32_t *line;  /* where each appears first */
        uint32_t cap;
        const char **numbered; /* names in order of number; NULL when they are integers */
    } classes;
    size_t folder_bytes; /* of src->path, its last slash included */
    int folder;          /* open while reading, else -1 */
    struct {
        uint32_t image, label, count;
        bool labelled;
    } column;
    mri_csv_other_classes others;
    mri_csv_named named;
    mri_table_numbers numbers;
    mri_table_parts parts;
    bool lone; /* no table of other splits lies in its folder */
    mri_rows targets;
    struct {
        uint64_t missing, first_line /* of the first one */, outside;
    } absent; /* rows without a file */
    struct {
        uint64_t rows, first_line;
    } unlabelled;      /* rows without a class, which are left out */
    char *real_folder; /* without links; NULL until it is needed, and after reading */
    bool placed;       /* the pictures lie at `place`, as no file the table names is there */
    mri_table_place place;
    char report_text[1024];
} mri_csv_table;

/* Names the columns that are neither picture, class, target nor part. names: the first row. */
void mri_csv_tell_unread(mr_source *src, const mri_csv_table *t, const mri_csv *names);

int mri_csv_table_no_memory(const mr_source *src, mr_error *err);
/* Names that are kept once; *number: of this one. */
int mri_csv_table_add_name(const mr_source *src, mri_names *names, const char *text, size_t bytes,
                           uint32_t *number, bool *is_new, mr_error *err);

/* Has this row no class? A list is none either, but an error. */
bool mri_csv_table_is_unlabelled(const mri_csv_table *t, const mri_csv *c);
/* Are these the first bytes of such a table? */
bool mri_csv_looks_like_table(const uint8_t *head, size_t bytes);
/* The same, by the first line alone: among other files of a folder a second line is not enough. */
bool mri_csv_begins_as_table(const uint8_t *head, size_t bytes);
/* From the first row. *header: it names the columns. */
int mri_csv_table_choose(mri_csv_table *t, const mri_csv *c, const mr_source_config *cfg, bool *header,
                         mr_error *err);
/* The column of pictures, where this row names it; -1: it does not. */
int mri_csv_find_image(const mri_csv *names, const mr_source_config *cfg);
/* Has a column of this name a meaning without being asked for: picture, class, part? */
bool mri_csv_is_known_name(const char *name);
/* Is it a usual name of a column of classes? y is one, and may as well be a place: not here. */
bool mri_csv_is_class_name(const char *text, size_t bytes);
/* From the row of names, and then from every row. */
void mri_csv_other_classes_find(mri_csv_other_classes *o, const mri_csv_table *t, const mri_csv *names);
void mri_csv_other_classes_see(mri_csv_other_classes *o, const mri_csv_table *t, const mri_csv *row);
/* After all rows. MR_EFORMAT: two columns contradict each other. */
int mri_csv_other_classes_settle(const mri_csv_other_classes *o, mr_source *src, mr_error *err);
/* Of every row, taken or not: its picture has a name. */
int mri_csv_table_see_path(const mr_source *src, mri_csv_table *t, const mri_csv *c, mr_error *err);
int mri_csv_named_add(const mr_source *src, mri_csv_named *n, const char *path, size_t bytes, mr_error *err);
/* After all rows: report pictures that no row names, of this table or of others next to it, and free the
 * names. */
int mri_csv_named_tell(mri_csv_table *t, mr_source *src, const mr_source_config *cfg, mr_error *err);
void mri_csv_named_fini(mri_csv_named *n); /* accepts a zeroed one */
/* The picture of this row. first: a file that is missing is an error. */
int mri_csv_table_add_path(mr_source *src, mri_csv_table *t, const mri_csv *c, bool first,
                           const mr_source_config *cfg, mr_error *err);
int mri_csv_table_not_there(const mri_csv *c, const char *path, mr_error *err);
/* taken: the class of the sample added last; else the class of a row of another split, which may be
 * missing. */
int mri_csv_table_add_class(const mr_source *src, mri_csv_table *t, const mri_csv *c, bool taken,
                            mr_error *err);
/* An integer, also written 3.0 as tables of numbers with gaps are. */
bool mri_csv_integer_of(const char *text, size_t bytes, int64_t *out);
/* After all rows. */
int mri_csv_table_number_classes(mr_source *src, mri_csv_table *t, const mr_source_config *cfg,
                                 mr_error *err);

#endif
