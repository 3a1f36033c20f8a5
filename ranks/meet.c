/* ranks/meet.c: what rank 0 and its guests have in common; see meet.h. */
#include "ranks/meet.h"

#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "ranks/tls.h"

void mri_meet_draw(void *out, size_t bytes)
{
    if (getrandom(out, bytes, 0) == (ssize_t)bytes) return;
    uint64_t word = mri_mix64(mri_clock_ns() ^ (uint64_t)getpid() << 32);
    for (size_t i = 0; i < bytes; i++) {
        word = mri_mix64(word);
        ((uint8_t *)out)[i] = (uint8_t)(word >> 24);
    }
}

int mri_meeting_init(mri_meeting *m, const mr_world_config *cfg, mr_error *err)
{
    memset(m, 0, sizeof *m);
    m->cfg = cfg;
    m->listener = -1;
    int rc = mri_place_find(&m->place, cfg, err);
    if (rc == MR_OK) rc = mri_secret_find(&m->secret, cfg->secret, cfg->secret_bytes, err);
    if (rc == MR_OK) rc = mri_tls_wanted(&m->tls, cfg->tls, &m->secret, err);
    if (rc != MR_OK) return rc;
    mri_door_init(&m->door);
    m->star = calloc(cfg->size, sizeof *m->star);
    m->seats = calloc(cfg->size, sizeof *m->seats);
    for (uint32_t r = 0; m->star && r < cfg->size; r++) m->star[r] = MRI_LINK_NONE;
    if (!m->star || !m->seats) {
        mri_meeting_fini(m);
        return mr_error_set(err, MR_ENOMEM, "no memory to meet %u ranks", cfg->size);
    }
    mri_meet_draw(&m->token, sizeof m->token);
    mri_meet_draw(m->nonce, sizeof m->nonce);
    if (gethostname(m->host, sizeof m->host) != 0) snprintf(m->host, sizeof m->host, "unknown");
    m->host[sizeof m->host - 1] = '\0';
    return MR_OK;
}

void mri_meeting_fini(mri_meeting *m)
{
    for (uint32_t r = 0; m->star && r < m->cfg->size; r++) mri_link_fini(&m->star[r]);
    if (m->listener >= 0) close(m->listener);
    free(m->star);
    free(m->seats);
    mri_secret_fini(&m->secret);
    mri_door_fini(&m->door);
    m->star = NULL;
    m->seats = NULL;
    m->listener = -1;
}

const char *mri_meet_name(uint32_t rank, const char *host)
{
    static _Thread_local char names[4][MRI_WIRE_HOST_BYTES + 32];
    static _Thread_local unsigned at;
    char *name = names[at++ % 4];
    snprintf(name, sizeof names[0], "rank %u (host %.63s)", rank, host);
    return name;
}

int mri_meet_wait_ms(uint64_t due)
{
    const uint64_t now = mri_clock_ns();
    return due <= now ? 0 : (int)mri_min_u64((due - now) / 1000000 + 1, 60000);
}

void mri_meet_flush(mri_link *links, uint32_t count, uint64_t limit_ns)
{
    const uint64_t due = mri_clock_ns() + limit_ns;
    for (uint32_t i = 0; i < count; i++)
        while (links[i].fd >= 0 && !links[i].connecting && !mri_link_is_flushed(&links[i])) {
            struct pollfd one = {.fd = links[i].fd, .events = POLLOUT};
            if (mri_clock_ns() >= due) return;
            (void)poll(&one, 1, mri_meet_wait_ms(due));
            mri_link_flush(&links[i]);
        }
}
