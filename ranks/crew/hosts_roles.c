/* ranks/crew/hosts_roles.c: see hosts_roles.h. */
#include "ranks/crew/hosts_roles.h"

#include <stdio.h>

static bool has_server(const mri_hosts *hosts, uint32_t host, uint32_t servers)
{
    return servers == MRI_SERVERS_BY_HOST ? hosts->all[host].ranks > 1 : host < servers;
}

static int check(const mri_hosts *hosts, uint32_t servers, uint32_t first_port, mr_error *err)
{
    uint64_t ranks = 0;
    if (hosts->scattered)
        return mr_error_set(err, MR_EINVAL,
                            "roles: expected ranks that fill one host after the other, found another order: "
                            "start them with srun --distribution=block");
    for (uint32_t i = 0; i < hosts->count; i++) {
        const mri_host *h = &hosts->all[i];
        ranks += h->ranks;
        if (h->ranks == 0)
            return mr_error_set(err, MR_EINVAL, "roles: expected the number of ranks on %s, found nothing",
                                h->name);
        if (h->ranks > UINT16_MAX || first_port > UINT16_MAX - (h->ranks - 1))
            return mr_error_set(err, MR_EINVAL,
                                "roles: expected ports up to 65535, found %llu for the last rank on %s",
                                (unsigned long long)first_port + h->ranks - 1, h->name);
    }
    if (ranks == 0 || ranks > MRI_HOSTS_MOST)
        return mr_error_set(err, MR_EINVAL, "roles: expected 1 to %d ranks, found %llu", MRI_HOSTS_MOST,
                            (unsigned long long)ranks);
    if (servers != MRI_SERVERS_BY_HOST && (servers > hosts->count || servers >= ranks))
        return mr_error_set(err, MR_EINVAL,
                            "roles: expected at most one server for each of %u hosts and a worker among %u "
                            "ranks, found %u servers",
                            hosts->count, (uint32_t)ranks, servers);
    return MR_OK;
}

/* The k-th of `workers` on a host. */
static void give_devices(mri_role_row *row, uint32_t k, uint32_t workers, uint32_t gpus)
{
    if (workers == 1) {
        row->gpus = gpus;
    } else if (k < gpus) {
        row->gpus = 1;
        row->device = k;
    } else {
        row->device = k - gpus;
    }
}

static void deal_host(mri_roles *out, const mri_hosts *hosts, uint32_t host, bool server, uint32_t first_port)
{
    const mri_host *h = &hosts->all[host];
    for (uint32_t k = 0; k < h->ranks; k++) {
        mri_role_row *row = &out->rows[out->ranks];
        row->rank = out->ranks++;
        row->host = host;
        snprintf(row->address, sizeof row->address, "%s:%u", h->name, (first_port + k) & UINT16_MAX);
        row->serves = server && k == 0;
        row->role = row->serves ? MRI_ROLE_SERVER : MRI_ROLE_WORKER;
        row->index = row->serves ? out->servers++ : out->workers++;
        row->chief = !row->serves && row->index == 0;
        if (!row->serves) give_devices(row, k - server, h->ranks - server, h->gpus);
    }
}

int mri_roles_deal(mri_roles *out, const mri_hosts *hosts, uint32_t servers, uint32_t first_port,
                   mr_error *err)
{
    uint32_t ranks = 0;
    if (first_port == 0) first_port = MRI_ROLES_FIRST_PORT;
    *out = (mri_roles){.ranks = 0};
    const int rc = check(hosts, servers, first_port, err);
    if (rc != MR_OK) return rc;
    for (uint32_t i = 0; i < hosts->count; i++) ranks += hosts->all[i].ranks;
    out->rows = calloc(ranks, sizeof *out->rows);
    if (!out->rows) return mr_error_set(err, MR_ENOMEM, "no memory for the roles of %u ranks", ranks);
    for (uint32_t i = 0; i < hosts->count; i++)
        deal_host(out, hosts, i, has_server(hosts, i, servers), first_port);
    for (uint32_t i = 0; out->servers == 0 && i < ranks; i++) out->rows[i].serves = out->rows[i].chief;
    return MR_OK;
}

void mri_roles_fini(mri_roles *roles)
{
    free(roles->rows);
    *roles = (mri_roles){.ranks = 0};
}
