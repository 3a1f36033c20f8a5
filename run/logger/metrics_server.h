/* run/logger/metrics_server.h: one page over HTTP/1.0, from a thread of its own that waits for nobody but
 * its client, and for that one no longer than a deadline. Does not depend on the page's contents. */
#ifndef MRI_METRICS_SERVER_H
#define MRI_METRICS_SERVER_H

#include <stddef.h>
#include <stdio.h>

#include "millrace/base.h"

/* Called by the server's thread. */
typedef void mri_metrics_page_fn(void *context, FILE *out);

typedef struct mri_metrics_server mri_metrics_server;

/* where: PORT, HOST:PORT or [HOST]:PORT; without HOST this machine alone can ask. PORT 0: any that is free.
 * MR_EINVAL: no such thing; MR_EEXIST: the port is in use. */
int mri_metrics_server_open(mri_metrics_server **out, const char *where, mri_metrics_page_fn *page,
                            void *context, mr_error *err);
/* "127.0.0.1:9100", "[::1]:9100". */
const char *mri_metrics_server_address(const mri_metrics_server *s);
/* At once, whoever is connected. Accepts NULL. */
void mri_metrics_server_close(mri_metrics_server *s);

#endif
