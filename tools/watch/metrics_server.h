/* tools/watch/metrics_server.h: one page over HTTP/1.0, from a thread of its own that waits for nobody but
 * its client, and for that one no longer than a deadline. Does not depend on the page's contents. */
#ifndef TOOLS_METRICS_SERVER_H
#define TOOLS_METRICS_SERVER_H

#include <stddef.h>
#include <stdio.h>

#include "millrace/base.h"

/* Called by the server's thread. */
typedef void metrics_page_fn(void *context, FILE *out);

typedef struct metrics_server metrics_server;

/* where: PORT, HOST:PORT or [HOST]:PORT; without HOST this machine alone can ask. PORT 0: any that is free.
 * MR_EINVAL: no such thing; MR_EEXIST: the port is in use. */
int metrics_server_open(metrics_server **out, const char *where, metrics_page_fn *page, void *context,
                        mr_error *err);
/* "127.0.0.1:9100", "[::1]:9100". */
const char *metrics_server_address(const metrics_server *s);
/* At once, whoever is connected. Accepts NULL. */
void metrics_server_close(metrics_server *s);

#endif
