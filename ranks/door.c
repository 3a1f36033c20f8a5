/* ranks/door.c: see door.h. */
#include "ranks/door.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>

static const char *const reasons[MRI_REFUSALS] = {
    [MRI_REFUSED_NOT] = "it is no rank of this run",
    [MRI_REFUSED_NO_RANK] = "it does not speak as a rank does",
    [MRI_REFUSED_VERSION] = "it is of another version of millrace",
    [MRI_REFUSED_NO_SECRET] = "it did not prove the secret of the run",
    [MRI_REFUSED_SECRET] = "it has another secret",
    [MRI_REFUSED_NEEDS_ONE] = "it has a secret, and this run does not",
    [MRI_REFUSED_ALTERED] = "its words were altered on the way, or came again",
    [MRI_REFUSED_SILENT] = "it did not say in time who it is",
};

void mri_door_init(mri_door *d)
{
    memset(d, 0, sizeof *d);
    pthread_mutex_init(&d->lock, NULL);
}

void mri_door_fini(mri_door *d) { pthread_mutex_destroy(&d->lock); }

static void add_locked(mri_door *d, const mri_wire_seat *from, mri_refusal why)
{
    for (uint32_t k = 0; k < d->count; k++)
        if (d->notes[k].why == why && d->notes[k].from.family == from->family &&
            memcmp(d->notes[k].from.address, from->address, sizeof from->address) == 0)
            return;
    d->more = d->more || d->count == MRI_DOOR_NOTES;
    if (d->count < MRI_DOOR_NOTES) d->notes[d->count++] = (mri_door_note){.from = *from, .why = why};
}

void mri_door_turn_away(mri_door *d, const mri_link *l)
{
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;
    mri_wire_seat from = {.family = 0}; /* it may have gone */
    if (getpeername(l->fd, (struct sockaddr *)&at, &bytes) == 0)
        (void)mri_wire_seat_from(&from, (const struct sockaddr *)&at);
    pthread_mutex_lock(&d->lock);
    d->all++;
    add_locked(d, &from, l->refusal);
    pthread_mutex_unlock(&d->lock);
}

static void write_note(const mri_door_note *n, char *text, size_t bytes)
{
    char address[INET6_ADDRSTRLEN] = "an address that has gone";
    if (n->from.family)
        inet_ntop(n->from.family == 4 ? AF_INET : AF_INET6, n->from.address, address, sizeof address);
    snprintf(text, bytes, "a connection from %s was turned away: %s; more of this kind are not reported",
             address, reasons[n->why]);
}

bool mri_door_tell(mri_door *d, char *text, size_t bytes)
{
    bool any = false;
    pthread_mutex_lock(&d->lock);
    for (uint32_t k = 0; k < d->count && !any; k++) {
        any = !d->notes[k].reported;
        d->notes[k].reported = true;
        if (any) write_note(&d->notes[k], text, bytes);
    }
    if (!any && d->more && !d->told_more) {
        any = d->told_more = true;
        snprintf(text, bytes,
                 "connections from more addresses are turned away: from here on they are not reported");
    }
    pthread_mutex_unlock(&d->lock);
    return any;
}

const char *mri_door_newest(mri_door *d, uint64_t *all)
{
    pthread_mutex_lock(&d->lock);
    const char *why = d->count ? reasons[d->notes[d->count - 1].why] : NULL;
    *all = d->all;
    pthread_mutex_unlock(&d->lock);
    return why;
}

void mri_door_take(mri_door *d, mri_door *from)
{
    pthread_mutex_lock(&d->lock);
    pthread_mutex_lock(&from->lock);
    d->all += from->all;
    d->more = d->more || from->more;
    for (uint32_t k = 0; k < from->count; k++)
        if (!from->notes[k].reported) add_locked(d, &from->notes[k].from, from->notes[k].why);
    pthread_mutex_unlock(&from->lock);
    pthread_mutex_unlock(&d->lock);
}
