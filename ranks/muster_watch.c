/* ranks/muster_watch.c: see muster.h. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ranks/muster.h"

#define MS_NS UINT64_C(1000000)

enum { TURN_MS = 200, FRONT_MS = 500 };

int mri_watch_init(mri_watch *w, mri_guests *guests, const mri_place *front, mr_error *err)
{
    *w = (mri_watch){.guests = guests, .front = front};
    mri_seek_init(&w->lost, guests->secret);
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return w->wake_fd < 0 ? mr_error_sys(err, errno, "cannot make an eventfd") : MR_OK;
}

void mri_watch_fini(mri_watch *w)
{
    mri_watch_stop(w);
    mri_seek_fini(&w->lost);
    if (w->wake_fd >= 0) close(w->wake_fd);
    w->wake_fd = -1;
}

void mri_watch_take_front(mri_guests *g, const mri_place *front)
{
    uint16_t port = front->ports[0];
    if (g->listeners[1] < 0 && mri_link_listen(&g->listeners[1], mri_place_listens(front), &port) != 0)
        g->listeners[1] = -1;
}

static void look_at_front(mri_watch *w)
{
    const uint64_t now = mri_clock_ns();
    if (!w->host || !w->front_here || w->guests->listeners[1] >= 0 || now < w->front_ns) return;
    w->front_ns = now + FRONT_MS * MS_NS;
    mri_watch_take_front(w->guests, w->front);
    if (w->guests->listeners[1] >= 0) mri_seek_drop_front(&w->lost);
}

static void *watch(void *context)
{
    mri_watch *w = context;
    struct pollfd polls[MRI_PROBES_MOST + 1];
    uint32_t count;
    do {
        uint64_t next = mri_clock_ns() + TURN_MS * MS_NS;
        look_at_front(w);
        mri_seek_ask(&w->lost, polls, &next);
        count = w->lost.count;
        polls[count] = (struct pollfd){.fd = w->wake_fd, .events = POLLIN};
        mri_guests_serve(w->guests, true, polls, count + 1, mri_meet_wait_ms(next));
        mri_seek_serve(&w->lost, polls, &w->self);
        if (mri_seek_has_found(&w->lost)) {
            atomic_store(&w->found, true);
            mri_seek_fini(&w->lost); /* once is enough */
        }
    } while (!polls[count].revents);
    return NULL;
}

int mri_watch_start(mri_watch *w, const mri_wire_muster *self, const mri_wire_seat *lost, uint32_t count,
                    mr_error *err)
{
    w->self = *self;
    w->lost.says = MRI_WIRE_CALL;
    if (w->host) mri_seek_places(&w->lost, w->guests->listeners[1] < 0 ? w->front : NULL, lost, count);
    w->guests->between = true;
    const int rc = pthread_create(&w->thread, NULL, watch, w);
    w->has_thread = rc == 0;
    return rc ? mr_error_sys(err, rc, "cannot start a thread") : MR_OK;
}

void mri_watch_stop(mri_watch *w)
{
    uint64_t one = 1;
    if (!w->has_thread) return;
    (void)!write(w->wake_fd, &one, sizeof one);
    pthread_join(w->thread, NULL);
    (void)!read(w->wake_fd, &one, sizeof one);
    w->has_thread = false;
    w->guests->between = false;
    atomic_store(&w->guests->called, false);
    atomic_store(&w->found, false);
    mri_seek_fini(&w->lost);
}
