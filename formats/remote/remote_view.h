/* formats/remote/remote_view.h: a data set on a web server as names that formats can open. Private.
 *
 *   http://h/d/train-00003-of-00128 ─► all 128 asked for ─► first bytes ─┬─ a record file: read as it comes
 *                                                                        │  (is_record)
 *                                                                        └─ anything else: fetched whole,
 *   FOLDER/v-HASH/train-00000-of-00128 ─► FOLDER/KEY.data                   then opened under the same
 *                                                                           names, the index kept beside
 *
 * Companion files (.idx and .lst, labels) are requested, too; it is no error when they do not exist. Errors
 * name the URL instead of the local name. */
#ifndef MRI_REMOTE_VIEW_H
#define MRI_REMOTE_VIEW_H

#include "formats/remote/remote.h"

typedef struct mri_remote_view {
    mri_remote *remote; /* what fetches; formats that read as it comes use it */
    char *path;         /* what to open: the URL of a record file, else the local name of the first file */
    char *shown;        /* the URL as given, without secrets */
    size_t base_bytes;  /* of shown, in front of its last name */
    bool is_record;     /* a record file or a shard list: nothing is fetched yet */
    /* remote_view.c's own */
    char *folder;  /* NULL: none was made */
    int lock_fd;   /* of the folder: it stays as long as somebody has it open */
    bool for_once; /* holds a file that is not kept */
} mri_remote_view;

/* format: as the caller named it, or NULL: by content. *out is written on failure, too:
 * mri_remote_view_close() is then to be called. */
int mri_remote_view_open(mri_remote_view **out, const char *url, const char *format,
                         const mri_remote_config *cfg, mr_error *err);
/* Close it after the format that reads from it. Accepts NULL. */
void mri_remote_view_close(mri_remote_view *v);

/* Local names become URLs: in an error, whose code it returns, and in a text. Other names stay unchanged. v
 * may be NULL. */
int mri_remote_view_place(const mri_remote_view *v, int code, mr_error *err);
void mri_remote_view_name(const mri_remote_view *v, char *name, size_t name_bytes);

#endif
