/* ranks/wire.h: what ranks say to each other while they meet and on their pulse, as bytes. Private.
 *
 * Takes bytes that anybody may have sent, gives values within their bounds, or reports an error. Pure
 * functions: no socket, no clock, no memory of its own. Callers: link.c (heads), whoever says something.
 *
 *   head  | magic 4 | version 2 | kind 2 | bytes 4 |, then this number of bytes of the kind; all
 *   little-endian
 *
 * In a run with a secret both ends of a connection first prove that they know it, and each message then ends
 * with a tag (seal.h).
 *
 *   guest                    rank 0                       rank b            rank a < b
 *     HELLO ────────────────►   WELCOME, or OTHER:            JOIN, by lane ──► JOINED
 *                                 not there, try on
 *     CARD ─────────────────►   ROSTER when all are there     both, as long as the world lives:
 *     DONE when joined with     GO when all are done            BEAT  FAREWELL  BLAME
 *       all, or FAILED ─────►     REFUSED at any time
 *
 *   who looks for others     who may be their host
 *     MUSTER ───────────────►   WELCOME, then MUSTERED when they are enough; or OTHER: look again
 */
#ifndef MRI_WIRE_H
#define MRI_WIRE_H

#include <netinet/in.h>

#include "base/util.h"
#include "settings/limits.h"

/* CLOCK_MONOTONIC in nanoseconds, also in builds that do not measure: time decides here who is lost. */
static inline uint64_t mri_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define MRI_WIRE_MAGIC   0x7752724du /* "MrRw" */
#define MRI_WIRE_VERSION 4u

enum {
    MRI_WIRE_HEAD_BYTES = 12,
    MRI_WIRE_KEY_BYTES = 16,
    MRI_WIRE_HOST_BYTES = 64,             /* with its end; longer names are cut */
    MRI_WIRE_TEXT_BYTES = 640,            /* the same */
    MRI_WIRE_SMALL_BYTES = 1024,          /* no message but CARD and ROSTER is larger */
    MRI_WIRE_CARD_BYTES = 64 << 10,       /* at most */
    MRI_WIRE_RANKS_MOST = MRI_RANKS_MOST, /* in a world */
    MRI_WIRE_SEAT_BYTES = 24 + 64,        /* an entry of the roster, at most */
    MRI_WIRE_ROSTER_BYTES = 20 + MRI_WIRE_RANKS_MOST * MRI_WIRE_SEAT_BYTES,
};

typedef enum mri_wire_kind {
    MRI_WIRE_HELLO = 1,
    MRI_WIRE_WELCOME,
    MRI_WIRE_CARD,
    MRI_WIRE_OTHER,
    MRI_WIRE_REFUSED,
    MRI_WIRE_ROSTER,
    MRI_WIRE_JOIN,
    MRI_WIRE_JOINED,
    MRI_WIRE_DONE,
    MRI_WIRE_FAILED,
    MRI_WIRE_GO,
    MRI_WIRE_BEAT,
    MRI_WIRE_FAREWELL,
    MRI_WIRE_BLAME,
    MRI_WIRE_MUSTER,
    MRI_WIRE_MUSTERED,
    MRI_WIRE_CALL,  /* as MUSTER, of one who is in a world and does not ask to be taken in */
    MRI_WIRE_KNOCK, /* these four: seal.h */
    MRI_WIRE_CHALLENGE,
    MRI_WIRE_PROOF,
    MRI_WIRE_PROVED,
    MRI_WIRE_KINDS, /* above all */
} mri_wire_kind;

typedef struct mri_wire_head {
    uint32_t version, kind, bytes;
} mri_wire_head;

void mri_wire_put_head(uint8_t out[MRI_WIRE_HEAD_BYTES], mri_wire_kind kind, uint32_t bytes);
/* False: whoever sent this is no rank of millrace. Version and bytes are for the caller to judge. */
bool mri_wire_get_head(const uint8_t in[MRI_WIRE_HEAD_BYTES], mri_wire_head *out);

/* Each mri_wire_put_...() writes one message behind its head and returns its bytes, at most
 * MRI_WIRE_SMALL_BYTES. Each mri_wire_get_...() returns false when the bytes are no such message: too short,
 * too long, a number out of its bounds. Texts and names that come out are ended, and have no zero inside. */

typedef struct mri_wire_hello {
    uint8_t key[MRI_WIRE_KEY_BYTES]; /* of the job */
    uint64_t token;                  /* of the process: who comes again is not a second one */
    uint32_t rank, size;             /* any values */
    uint16_t port;                   /* where it waits for other ranks */
    char host[MRI_WIRE_HOST_BYTES];
} mri_wire_hello;
size_t mri_wire_put_hello(uint8_t *out, const mri_wire_hello *hello);
bool mri_wire_get_hello(const void *in, size_t bytes, mri_wire_hello *out);

typedef struct mri_wire_welcome {
    uint8_t key[MRI_WIRE_KEY_BYTES];
    uint32_t left_ms; /* until rank 0 stops waiting for the others */
} mri_wire_welcome;
size_t mri_wire_put_welcome(uint8_t *out, const mri_wire_welcome *welcome);
bool mri_wire_get_welcome(const void *in, size_t bytes, mri_wire_welcome *out);

/* OTHER, REFUSED, FAILED: a status code (MR_E...) and why. */
size_t mri_wire_put_reason(uint8_t *out, int code, const char *text);
bool mri_wire_get_reason(const void *in, size_t bytes, int *code, char text[MRI_WIRE_TEXT_BYTES]);

typedef struct mri_wire_seat { /* where a rank waits for others */
    uint8_t family;            /* 4 or 6 */
    uint8_t address[16];       /* of 4 the first four bytes */
    uint16_t port;
    char host[MRI_WIRE_HOST_BYTES];
} mri_wire_seat;
/* MRI_WIRE_ROSTER_BYTES at most. */
size_t mri_wire_put_roster(uint8_t *out, const uint8_t nonce[MRI_WIRE_KEY_BYTES], const mri_wire_seat *seats,
                           uint32_t size);
bool mri_wire_get_roster(const void *in, size_t bytes, uint8_t nonce[MRI_WIRE_KEY_BYTES],
                         mri_wire_seat *seats, uint32_t size);
/* To and from what connect() takes. False: neither IPv4 nor IPv6. IPv4 in IPv6 becomes IPv4. */
bool mri_wire_seat_from(mri_wire_seat *out, const struct sockaddr *from);
socklen_t mri_wire_seat_to(const mri_wire_seat *seat, struct sockaddr_storage *out);
bool mri_wire_seat_is_loopback(const mri_wire_seat *seat);

typedef struct mri_wire_join {
    uint8_t nonce[MRI_WIRE_KEY_BYTES];
    uint32_t from, to, lane;
} mri_wire_join;
/* JOIN, and JOINED with the same content as its echo. */
size_t mri_wire_put_join(uint8_t *out, const mri_wire_join *join);
bool mri_wire_get_join(const void *in, size_t bytes, uint32_t size, uint32_t lanes, mri_wire_join *out);

typedef enum mri_blame_how {
    MRI_BLAME_GAVE_UP = 1, /* said so itself, and why */
    MRI_BLAME_LOST,        /* its connection ended without a farewell */
    MRI_BLAME_SILENT,
    MRI_BLAME_LEFT, /* ended well while others still waited for it */
} mri_blame_how;
typedef struct mri_blame {
    uint32_t rank; /* at fault */
    mri_blame_how how;
    int cause; /* of MRI_BLAME_GAVE_UP: a status of its library or of its program; 0: none */
    char text[MRI_WIRE_TEXT_BYTES];
} mri_blame;
size_t mri_wire_put_blame(uint8_t *out, const mri_blame *blame);
bool mri_wire_get_blame(const void *in, size_t bytes, uint32_t size, mri_blame *out);

/* ---- of musters ---- */

typedef struct mri_wire_muster {
    uint8_t key[MRI_WIRE_KEY_BYTES]; /* of the job */
    uint64_t token;                  /* of the process */
    uint8_t run[MRI_WIRE_KEY_BYTES]; /* of mri_wire_mustered; zeros: it was in no world yet */
    uint64_t progress;               /* of its state; 0: no state */
    uint32_t expected;               /* ranks that it waits for; 0: it does not know */
    uint16_t port;                   /* where others find it when they look again */
    char host[MRI_WIRE_HOST_BYTES];
} mri_wire_muster;
static inline bool mri_wire_has_run(const uint8_t run[MRI_WIRE_KEY_BYTES])
{
    static const uint8_t none[MRI_WIRE_KEY_BYTES];
    return memcmp(run, none, sizeof none) != 0;
}
size_t mri_wire_put_muster(uint8_t *out, const mri_wire_muster *muster);
bool mri_wire_get_muster(const void *in, size_t bytes, mri_wire_muster *out);

enum { MRI_WIRE_MUSTER_MOST = 256 }; /* ranks of a world that is mustered */
enum { MRI_WIRE_MUSTERED_BYTES = 80 + MRI_WIRE_MUSTER_MOST * (MRI_WIRE_SEAT_BYTES + 8) };

typedef struct mri_wire_mustered {
    uint8_t nonce[MRI_WIRE_KEY_BYTES]; /* of the world to come */
    uint8_t run[MRI_WIRE_KEY_BYTES];   /* drawn for its first world: only members know it */
    uint32_t rank, size;
    uint64_t progress;                         /* of rank 0 */
    mri_wire_seat seats[MRI_WIRE_MUSTER_MOST]; /* by rank; port: where it is found again. The seat of the host
                                                  itself: a loopback address */
    uint64_t tokens[MRI_WIRE_MUSTER_MOST];
} mri_wire_mustered;
size_t mri_wire_put_mustered(uint8_t *out, const mri_wire_mustered *mustered);
bool mri_wire_get_mustered(const void *in, size_t bytes, mri_wire_mustered *out);

/* The first line in which two cards differ, as "'batch 64'" and "'batch 128'" ("nothing" where one has
 * ended). False: they are equal. */
bool mri_wire_cards_differ(const void *a, size_t a_bytes, const void *b, size_t b_bytes, char a_line[80],
                           char b_line[80]);

#endif
