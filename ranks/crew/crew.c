/* ranks/crew/crew.c: the processes of a run dealt into servers and workers (hosts_roles.h), and their worlds:
 * one of all workers, and one for each server and each worker, so that a server waits for each worker in a
 * thread of its own.
 *
 * The worlds of pairs are opened in one order by all, server by server and worker by worker, so nobody waits
 * in a circle. */
#include <stdio.h>

#include "base/handle.h"
#include "ranks/address.h"
#include "ranks/crew/hosts_roles.h"
#include "ranks/meet.h"

enum { CHANNEL = 1, ID_BYTES = 64 };

struct mr_crew {
    uint32_t process; /* that opened it (base/handle.h) */
    bool serves;
    uint32_t index, servers, workers;
    mr_world *together; /* of workers; NULL for a server, and for a single worker */
    mr_world **pairs;   /* a worker's by server, a server's by worker */
};

typedef struct crew_opening {
    mr_crew *crew;
    mr_world *all;
    mri_roles roles;
    uint64_t nonce[2];
} crew_opening;

static uint32_t pair_count(const mr_crew *c) { return c->serves ? c->workers : c->servers; }

typedef struct crew_member {
    char host[ID_BYTES]; /* the machine's name, or MILLRACE_HOST_ID where it is set */
    uint32_t servers;    /* as this rank wants them */
} crew_member;

static int gather_members(mr_world *all, uint32_t servers, crew_member *out, mr_error *err)
{
    const char *id = getenv("MILLRACE_HOST_ID");
    crew_member mine = {.servers = servers};
    snprintf(mine.host, sizeof mine.host, "%s", id && *id ? id : mr_world_host(all, mr_world_rank(all)));
    int rc = mr_world_gather(all, CHANNEL, &mine, sizeof mine, out, err);
    for (uint32_t r = 1; rc == MR_OK && r < mr_world_size(all); r++)
        if (out[r].servers != out[0].servers)
            rc =
                mr_error_set(err, MR_EINVAL,
                             "servers: rank 0 has %u, rank %u has %u: expected the same number for all ranks "
                             "(0: one on each machine with several)",
                             out[0].servers, r, out[r].servers);
    return rc;
}

static int list_hosts(mr_world *all, uint32_t servers, mri_hosts *out, mr_error *err)
{
    const uint32_t size = mr_world_size(all);
    crew_member *members = calloc(size, sizeof *members);
    *out = (mri_hosts){.all = calloc(size, sizeof *out->all), .room = size};
    int rc = members && out->all ? MR_OK
                                 : mr_error_set(err, MR_ENOMEM, "no memory for the roles of %u ranks", size);
    if (rc == MR_OK) rc = gather_members(all, servers, members, err);
    for (uint32_t r = 0; rc == MR_OK && r < size; r++) {
        uint32_t h = 0;
        while (h < out->count && strncmp(out->all[h].name, members[r].host, ID_BYTES) != 0) h++;
        if (h + 1 < out->count) out->scattered = true;
        if (h == out->count) snprintf(out->all[out->count++].name, ID_BYTES, "%.63s", members[r].host);
        out->all[h].ranks++;
    }
    free(members);
    return rc;
}

static int deal(crew_opening *o, uint32_t servers, mr_error *err)
{
    mri_hosts hosts;
    int rc = list_hosts(o->all, servers, &hosts, err);
    if (rc == MR_OK) rc = mri_roles_deal(&o->roles, &hosts, servers ? servers : MRI_SERVERS_BY_HOST, 0, err);
    if (rc == MR_OK && o->roles.servers == 0)
        rc = mr_error_set(
            err, MR_EINVAL,
            "servers: no machine has a second process, so none serves: start one more process, or "
            "state the number of servers (--servers 1)");
    if (rc == MR_OK) {
        const mri_role_row *own = &o->roles.rows[mr_world_rank(o->all)];
        o->crew->serves = own->serves;
        o->crew->index = own->index;
        o->crew->servers = o->roles.servers, o->crew->workers = o->roles.workers;
    }
    free(hosts.all);
    return rc;
}

static uint32_t rank_of(const crew_opening *o, bool serves, uint32_t index)
{
    uint32_t r = 0;
    while (o->roles.rows[r].serves != serves || o->roles.rows[r].index != index) r++;
    return r;
}

/* A world with this process as rank of size. Its rank 0 is rank `first` of the whole run. */
static int open_one(const crew_opening *o, mr_world **out, const char *name, uint32_t rank, uint32_t size,
                    uint32_t first, mr_error *err)
{
    mr_world_config cfg = mri_world_settings(o->all);
    char meet[MRI_ADDRESS_BYTES], job[160];
    mri_world_address(o->all, first, meet);
    snprintf(job, sizeof job, "%s of %016llx%016llx", name, (unsigned long long)o->nonce[0],
             (unsigned long long)o->nonce[1]);
    cfg.rank = rank, cfg.size = size, cfg.meet = meet, cfg.job = job;
    return mr_world_open(out, &cfg, err);
}

static int open_pairs(crew_opening *o, mr_error *err)
{
    mr_crew *c = o->crew;
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < pair_count(c); i++) {
        const uint32_t server = c->serves ? c->index : i, worker = c->serves ? i : c->index;
        char name[64];
        snprintf(name, sizeof name, "server %u and worker %u", server, worker);
        rc = open_one(o, &c->pairs[i], name, c->serves ? 0 : 1, 2, rank_of(o, true, server), err);
    }
    return rc;
}

int mr_crew_open(mr_crew **out, mr_world *all, uint32_t servers, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, all);
    crew_opening o = {.all = all, .crew = calloc(1, sizeof *o.crew)};
    if (!o.crew) return mr_error_set(err, MR_ENOMEM, "no memory for servers and workers");
    o.crew->process = mri_process();
    mri_meet_draw(o.nonce, sizeof o.nonce);
    int rc = deal(&o, servers, err);
    if (rc == MR_OK) rc = mr_world_broadcast(all, CHANNEL, o.nonce, sizeof o.nonce, 0, err);
    if (rc == MR_OK) o.crew->pairs = calloc(pair_count(o.crew), sizeof *o.crew->pairs);
    if (rc == MR_OK && !o.crew->pairs) rc = mr_error_set(err, MR_ENOMEM, "no memory for servers and workers");
    if (rc == MR_OK) rc = open_pairs(&o, err);
    if (rc == MR_OK && !o.crew->serves && o.crew->workers > 1)
        rc = open_one(&o, &o.crew->together, "workers", o.crew->index, o.crew->workers, rank_of(&o, false, 0),
                      err);
    mri_roles_fini(&o.roles);
    if (rc == MR_OK) *out = o.crew;
    else mr_crew_close(o.crew);
    return rc;
}

void mr_crew_close(mr_crew *c)
{
    if (!MRI_IS_OWN(c)) return;
    for (uint32_t i = 0; c->pairs && i < pair_count(c); i++) mr_world_close(c->pairs[i]);
    mr_world_close(c->together);
    free(c->pairs);
    free(c);
}

bool mr_crew_serves(const mr_crew *c) { return c && c->serves; }
uint32_t mr_crew_index(const mr_crew *c) { return c ? c->index : 0; }
uint32_t mr_crew_servers(const mr_crew *c) { return c ? c->servers : 0; }
uint32_t mr_crew_workers(const mr_crew *c) { return c ? c->workers : 0; }
mr_world *mr_crew_take_together(mr_crew *c)
{
    mr_world *together = c ? c->together : NULL;
    if (c) c->together = NULL;
    return together;
}
mr_world *mr_crew_pair(const mr_crew *c, uint32_t at)
{
    return c && at < pair_count(c) ? c->pairs[at] : NULL;
}
