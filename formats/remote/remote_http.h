/* formats/remote/remote_http.h: one transfer and the server's answer. Private to remote_http.c and
 * remote_answer.c. */
#ifndef MRI_REMOTE_HTTP_H
#define MRI_REMOTE_HTTP_H

#include "formats/remote/remote_curl.h"
#include "formats/remote/remote_private.h"

typedef struct mri_answer { /* of the last answer of a chain of redirects */
    long status;
    bool has_range, has_length, packed;
    uint64_t range_first, range_last, range_total; /* total UINT64_MAX: unknown */
    uint64_t length;
    uint64_t retry_after_s;
    char etag[240], changed[64], date[64];
} mri_answer;

enum { MRI_IDLE, MRI_RUNNING, MRI_LATER };

typedef struct mri_transfer {
    int state;
    CURL *easy;
    mri_remote_file *file;
    bool question;       /* for size and version */
    bool judged;         /* the answer's head was looked at, and is good */
    uint64_t from, end;  /* bytes; from is where this transfer's blocks begin */
    uint64_t at;         /* bytes before it are here */
    uint64_t tried_at;   /* at, when this try began */
    bool gained;         /* a block became whole in this try */
    uint32_t crc;        /* of the current block, up to at */
    uint64_t ignored;    /* bytes of a body that is not needed */
    uint64_t head_bytes; /* of all answers of this try */
    uint32_t tries;
    uint64_t begun_ns, again_ns;
    int verdict; /* not MR_OK: no other try will help */
    mr_error why;
    mri_answer answer;
    char said[CURL_ERROR_SIZE];
} mri_transfer;

/* One line of the head, as libcurl hands it over. */
void mri_answer_line(mri_answer *a, const char *line, size_t bytes);
/* Does the head match the request? If not, sets t->why, and t->verdict if no retry will help. For a query of
 * size and version, stores both. */
bool mri_answer_judge(mri_transfer *t);

#endif
