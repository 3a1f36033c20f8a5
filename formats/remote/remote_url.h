/* formats/remote/remote_url.h: parsing and joining of URLs. Private. */
#ifndef MRI_REMOTE_URL_H
#define MRI_REMOTE_URL_H

#include "millrace/base.h"

enum { MRI_URL_MAX_BYTES = 2048 };

bool mri_is_url(const char *path); /* http:// or https:// */
/* NULL, or the error in it, without quoting the URL. */
const char *mri_url_fault(const char *url);
/* For messages, logs and reports: without user and password, and without what follows a '?', where signatures
 * are. What may be either a path or the rest of a password is left out: "http://...@host/name". malloc'd. */
char *mri_url_shown(const char *url);
/* The last component of the path: the bytes before it, and its own. What follows a '?' or '#' belongs to
 * neither. */
size_t mri_url_name(const char *url, size_t *name_bytes);
/* Resolve `relative` against the URL of the document that contains it; returns a copy if `relative` is a URL
 * itself. malloc'd; NULL: no memory. */
char *mri_url_join(const char *base, const char *relative);

#endif
