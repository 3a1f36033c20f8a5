/* ranks/muster.h: how processes of a job find each other again. Private.
 *
 *   place 0      the job's port, which one process of that host has: the front
 *   place 1 + i  where rank i of the world before listens
 *
 * A process that looks for the others asks all places below its own. While one of those is alive it waits for
 * its word; the first that has nobody alive below it is the host. Whoever comes to a process that is not the
 * host is sent away and looks again. So all come to one host, whoever is lost meanwhile.
 *
 * In a run with a secret nobody is listened to who has not proved it. A world's members know a number, drawn
 * for the first world and sent to members only; the state of a process counts when it knows that number.
 *
 *   muster.c        the public calls: the search, the decisions of a host, the messages to all
 *   muster_seek.c   the places below: who of them is alive, and who is the host
 *   muster_guests.c who has come here
 *   muster_watch.c  the thread between musters: it serves the guests, and looks for the places of those who
 * were not found in the last one, lest a world that is cut in two stays so */
#ifndef MRI_MUSTER_H
#define MRI_MUSTER_H

#include <stdatomic.h>

#include "ranks/meet.h"

/* ---- guests ---- */

typedef struct mri_guest {
    mri_link link; /* fd -1: none */
    bool here;     /* has said who it is */
    uint64_t due;  /* until then */
    mri_wire_muster who;
} mri_guest;

enum {
    MRI_STRANGERS_MOST = 64, /* who have not said who they are; one more, and the oldest goes */
    MRI_GUESTS_MOST = MR_MUSTER_MOST + MRI_STRANGERS_MOST,
};

typedef struct mri_loss {
    uint64_t at_ns;
    char host[MRI_WIRE_HOST_BYTES];
} mri_loss;

/* Two listeners, and who came there. */
typedef struct mri_guests {
    int listeners[2]; /* own, front; -1: none */
    uint8_t key[MRI_WIRE_KEY_BYTES];
    uint8_t run[MRI_WIRE_KEY_BYTES]; /* of this process; zeros: it was in no world yet */
    const mri_secret *secret;        /* the muster's */
    mri_door door;
    mri_guest *guest; /* [0, count), in the order in which they came */
    uint32_t count;
    struct pollfd *polls;
    uint64_t changed_ns; /* when a process came that had not come to this muster before */
    uint64_t known[MR_MUSTER_MOST];
    uint32_t known_count; /* tokens of the processes that have come to it */
    atomic_uint here;
    bool between;       /* musters: there is a world */
    atomic_bool called; /* by one of another world, between musters */
    mri_loss *loss;     /* a ring of the newest */
    uint64_t losses;    /* so far */
    uint32_t min, leave_out;
    uint64_t forget_ns;
} mri_guests;

int mri_guests_init(mri_guests *g, const uint8_t key[MRI_WIRE_KEY_BYTES], const mri_secret *secret,
                    mr_error *err);
void mri_guests_fini(mri_guests *g);
/* One poll() of at most wait_ms over the listeners, guests and `more` other descriptors, whose results are in
 * extra. host: those who come are welcome; else they are sent to look again. */
void mri_guests_serve(mri_guests *g, bool host, struct pollfd *extra, uint32_t more, int wait_ms);
/* Drops those who have gone, or not said who they are. */
void mri_guests_look(mri_guests *g);
/* All are sent to look again. */
void mri_guests_dismiss(mri_guests *g);
void mri_guests_drop(mri_guests *g, uint32_t k);
/* Not while another thread serves. */
void mri_guests_lost(mri_guests *g, const char *host);

/* ---- places ---- */

typedef struct mri_place_probe {
    struct sockaddr_storage to;
    socklen_t to_bytes;
    mri_link link;
    uint64_t again_ns, asked_ns;
    bool tried; /* something is known of it: */
    bool alive; /* its last word was that it is not the host */
} mri_place_probe;

enum { MRI_PROBES_MOST = 4 + MR_MUSTER_MOST };

typedef struct mri_seeking {
    mri_place_probe probe[MRI_PROBES_MOST]; /* the front's addresses, then seats */
    uint32_t count, fronts;
    const mri_secret *secret;
    mri_wire_kind says;             /* MUSTER, or CALL */
    mri_link host;                  /* who has said WELCOME, */
    uint32_t host_at;               /* and the place */
    char last[MRI_WIRE_TEXT_BYTES]; /* the last failure */
} mri_seeking;

void mri_seek_init(mri_seeking *s, const mri_secret *secret);
void mri_seek_fini(mri_seeking *s);
/* The places of a search: the front's addresses unless it is here, and the first `seats` of them. */
void mri_seek_places(mri_seeking *s, const mri_place *front, const mri_wire_seat *seats, uint32_t count);
/* Ask those whose turn it is, take the answers. `me` is the message. Sets polls[count] to the descriptors to
 * wait for; serve() takes what came. */
void mri_seek_ask(mri_seeking *s, struct pollfd *polls, uint64_t *next_ns);
void mri_seek_serve(mri_seeking *s, const struct pollfd *polls, const mri_wire_muster *me);
/* Is a place alive, or not known yet? */
bool mri_seek_may_find(const mri_seeking *s);
/* The host is no longer one: ask it again. */
void mri_seek_lost_host(mri_seeking *s);
/* Has anybody answered? */
bool mri_seek_has_found(const mri_seeking *s);
/* The front is here now. */
void mri_seek_drop_front(mri_seeking *s);

/* ---- between musters ---- */

typedef struct mri_watch {
    mri_guests *guests;
    const mri_place *front;
    mri_wire_muster self;
    mri_seeking lost; /* the places that were asked in vain */
    bool host, front_here;
    uint64_t front_ns;
    atomic_bool found; /* one of them is alive */
    pthread_t thread;
    int wake_fd; /* ends the thread */
    bool has_thread;
} mri_watch;

int mri_watch_init(mri_watch *w, mri_guests *guests, const mri_place *front, mr_error *err);
void mri_watch_fini(mri_watch *w);
/* The thread. w->host: it takes the front when that is free, else looks for who has it, and for who listened
 * at lost[count]. */
int mri_watch_start(mri_watch *w, const mri_wire_muster *self, const mri_wire_seat *lost, uint32_t count,
                    mr_error *err);
void mri_watch_stop(mri_watch *w);

/* Takes the front's port if it can be had. */
void mri_watch_take_front(mri_guests *g, const mri_place *front);

#endif
