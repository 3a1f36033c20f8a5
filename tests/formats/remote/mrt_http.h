/* tests/formats/remote/mrt_http.h: a small web server in threads of the test, which misbehaves on request.
 * One file, any name. */
#ifndef MRT_HTTP_H
#define MRT_HTTP_H

#include "mrt.h"

typedef struct mrt_http mrt_http;

typedef enum mrt_http_way {
    MRT_HTTP_PLAIN,
    MRT_HTTP_CUT,         /* the connection ends after 100,000 bytes of each body */
    MRT_HTTP_SHORT,       /* fewer bytes than requested; Content-Length agrees */
    MRT_HTTP_OTHER_RANGE, /* the bytes of another place, and says so */
    MRT_HTTP_BUSY,        /* 503 */
    MRT_HTTP_WHOLE,       /* 200 and everything, always */
    MRT_HTTP_WHOLE_LATER, /* the same, but for the question */
    MRT_HTTP_SILENT,      /* accepts, and says nothing until it is closed */
    MRT_HTTP_STATUS,      /* arg, an answer without meaning */
    MRT_HTTP_PACKED,      /* Content-Encoding: gzip */
    MRT_HTTP_ENDLESS,     /* sends more than was asked for */
    MRT_HTTP_NOISE,       /* no HTTP at all */
    MRT_HTTP_LOOP,        /* redirects to itself */
    MRT_HTTP_TOGETHER,    /* no answer before arg of them are asked for at one time, or a minute is over */
    MRT_HTTP_NO_SIZE,     /* 200, no Content-Length */
    MRT_HTTP_BARE,        /* 206 without saying which bytes */
    MRT_HTTP_HUGE,        /* says the file has arg bytes, 0: 2^55 */
    MRT_HTTP_HEADS,       /* an answer's head without end */
    MRT_HTTP_MOVED,       /* redirects to the target, after arg milliseconds */
    MRT_HTTP_WHOLE_CUT,   /* 200: arg bytes of everything, then the end; to the question a range */
    MRT_HTTP_WHOLE_NEXT,  /* the same, and the next content from then on */
} mrt_http_way;

/* Also removes the proxies from the environment: the server runs on this machine. */
mrt_http *mrt_http_start(const void *data, size_t bytes);
void mrt_http_end(mrt_http *s);
/* The next `times` answers are like this (-1: all), then plain ones again. */
void mrt_http_be(mrt_http *s, mrt_http_way way, long arg, int times);
/* Another content and ETag from now on; data are not copied. etag NULL: no version is sent. */
void mrt_http_change(mrt_http *s, const void *data, size_t bytes, const char *etag);
/* Of MRT_HTTP_WHOLE_NEXT: as many bytes, not copied. */
void mrt_http_next(mrt_http *s, const void *data);
/* More lines of each head: "Name: value\r\n"...; copied. */
void mrt_http_lines(mrt_http *s, const char *lines);
/* Of MRT_HTTP_MOVED, copied. */
void mrt_http_target(mrt_http *s, const char *url);
/* Requests so far that had an Authorization. */
unsigned mrt_http_authorized(mrt_http *s);
const char *mrt_http_url(const mrt_http *s, const char *name); /* "http://127.0.0.1:PORT/NAME", one of 8
                                                                  rotating buffers */
unsigned mrt_http_answers(mrt_http *s);                        /* so far, including silent ones */
unsigned mrt_http_most(mrt_http *s);                           /* answers at one time */

#endif
