/* formats/remote_view.h: a data set on a web server as names that formats can open. Private to source.c and remote_view.c.
 *
 *   http://h/d/train-00003-of-00128 ─► all 128 asked for ─► first bytes ─┬─ a record file: read as it comes (mri_source_mrec)
 *                                                                        └─ anything else: fetched whole, then
 *   FOLDER/v-HASH/train-00000-of-00128 ─► FOLDER/KEY.data                   opened under the same names, with the index kept beside
 *
 * Files that formats find beside theirs (.idx and .lst, labels) are asked for too; it is no error when there are none. Errors
 * name the URL in the local name's place. */
#ifndef MRI_REMOTE_VIEW_H
#define MRI_REMOTE_VIEW_H

#include "formats/source.h"

/* Sets src->remote, view and path, and of a record file ops. On failure, too, mri_view_close() is to be called. */
int  mri_view_open(mr_source *src, const char *url, const mr_source_config *cfg, mr_error *err);
/* The format is open: is it one that needs nothing else from the server? */
int  mri_view_opened(mr_source *src, mr_error *err);
void mri_view_close(mr_source *src);
/* Local names become URLs: in an error, whose code it returns, and in a text. Nothing happens to what is no URL's. */
int  mri_view_place(const mr_source *src, int code, mr_error *err);
void mri_view_name(const mr_source *src, char *name, size_t name_bytes);

#endif
