/* run/logger/http_request.h: parses a request for the page of figures. Any bytes are safe. */
#ifndef MRI_HTTP_REQUEST_H
#define MRI_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

/* The status of the answer to these bytes, all that came so far; 0: the request is incomplete, more may come.
 * *head: the answer has no body. */
int mri_http_request_status(const char *text, size_t bytes, bool *head);
const char *mri_http_status_text(int status);

#endif
