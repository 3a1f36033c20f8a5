/* ranks/meet_place.c: see meet_place.h. */
#include "ranks/meet_place.h"

#include <stdio.h>
#include <unistd.h>

#include "base/hash.h"
#include "ranks/hosts.h"

/* ---- the key ---- */

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static void mix_in(uint64_t key[2], const char *text)
{
    const uint64_t first[2] = {key[0], 0x6d696c6c72616365}, second[2] = {key[1], 0x6b65797377697265};
    const size_t bytes = text ? strlen(text) : 0;
    key[0] = mri_siphash(first, text ? text : "", bytes);
    key[1] = mri_siphash(second, text ? text : "", bytes);
}

static void mix_in_variables(uint64_t key[2], const char *const *names)
{
    for (; *names; names++) mix_in(key, variable(*names));
}

/* Parent and name of a process, and when it began. */
static bool read_stat(long pid, long *parent, char name[32], unsigned long long *began)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const size_t bytes = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[bytes] = '\0';
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close || close < open) return false;
    snprintf(name, 32, "%.*s", (int)(close - open - 1), open + 1);
    return sscanf(close + 1,
                  " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", parent,
                  began) == 2;
}

/* mpirun of MPICH gives its ranks nothing that names the run, but all of a host come from one proxy. Its
 * children may be scripts that started us. */
static void mix_in_proxy(uint64_t key[2])
{
    long pid = getppid(), parent = 0, found = pid;
    unsigned long long began = 0, found_began = 0;
    char name[32], text[64];
    for (int up = 0; up < 32 && pid > 1 && read_stat(pid, &parent, name, &began); up++, pid = parent) {
        if (up == 0) found_began = began;
        if (strncmp(name, "hydra_pmi_proxy", 15) != 0) continue;
        found = pid;
        found_began = began;
        break;
    }
    snprintf(text, sizeof text, "%ld.%llu", found, found_began);
    mix_in(key, text);
}

static void mix_in_launcher(uint64_t key[2], const mr_launch *at, bool one_host)
{
    static const char *const openmpi[] = {"PMIX_NAMESPACE", NULL};
    static const char *const torchrun[] = {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", NULL};
    static const char *const slurm[] = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT", NULL};
    static const char *const pod[] = {"MASTER_ADDR", "MASTER_PORT", NULL};
    mix_in(key, mr_launcher_name(at->launcher));
    switch (at->launcher) {
    case MR_LAUNCHER_OPENMPI: mix_in_variables(key, openmpi); return;
    case MR_LAUNCHER_TORCHRUN: mix_in_variables(key, torchrun); return;
    case MR_LAUNCHER_POD: mix_in_variables(key, pod); return;
    case MR_LAUNCHER_SLURM: mix_in_variables(key, slurm); return;
    case MR_LAUNCHER_PMI: /* srun --mpi=pmi2, or mpirun: one step can hold several of the latter */
        mix_in_variables(key, slurm);
        if (one_host) mix_in_proxy(key);
        return;
    case MR_LAUNCHER_NONE: return;
    }
}

static void make_key(mri_place *out, const mr_world_config *cfg, const mr_launch *at)
{
    uint64_t key[2] = {0};
    if (cfg->job) mix_in(key, cfg->job);
    else mix_in_launcher(key, at, at->local_size == cfg->size);
    mix_in(key, variable("MILLRACE_JOB"));
    memcpy(out->key, key, sizeof key);
}

/* ---- the host ---- */

static bool port_number(const char *text, uint16_t *port)
{
    unsigned long value = 0;
    if (!text[0] || strlen(text) > 5) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        value = 10 * value + (unsigned long)(*text - '0');
    }
    *port = (uint16_t)value;
    return value >= 1 && value <= UINT16_MAX;
}

/* HOST:PORT, [ADDRESS]:PORT or HOST; *port is 0 without a port. False: another form. */
static bool place_split(const char *text, char host[256], uint16_t *port)
{
    const char *from = text, *end = text + strlen(text), *colon = strrchr(text, ':');
    *port = 0;
    if (text[0] == '[') {
        const char *close = strchr(text, ']');
        if (!close || (close[1] && close[1] != ':')) return false;
        from = text + 1;
        end = close;
        colon = close[1] ? close + 1 : NULL;
    } else if (colon && strchr(text, ':') != colon) { /* an address of IPv6 */
        colon = NULL;
    } else if (colon) {
        end = colon;
    }
    if (colon && !port_number(colon + 1, port)) return false;
    if (end == from || end - from >= 256) return false;
    memcpy(host, from, (size_t)(end - from));
    host[end - from] = '\0';
    return true;
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 || strncmp(host, "127.", 4) == 0;
}

static int take_text(mri_place *out, const char *text, const char *where, mr_error *err)
{
    uint16_t port = 0;
    if (!place_split(text, out->host, &port))
        return mr_error_set(err, MR_EINVAL, "%s: expected HOST:PORT, found '%.200s'", where, text);
    if (port) out->ports[out->port_count++] = port;
    out->host_by = where;
    return MR_OK;
}

static int take_master(mri_place *out, const mr_launch *at, mr_error *err)
{
    const char *host = variable("MASTER_ADDR"), *port = variable("MASTER_PORT");
    const char *taken = variable("TORCHELASTIC_USE_AGENT_STORE"); /* torchrun's own store listens there */
    const bool free_port = at->launcher == MR_LAUNCHER_POD || (taken && strcmp(taken, "False") == 0);
    if (!host || strlen(host) >= sizeof out->host)
        return mr_error_set(err, MR_EINVAL, "MASTER_ADDR: expected the host of rank 0, found '%.200s'",
                            host ? host : "");
    strcpy(out->host, host);
    out->host_by = "MASTER_ADDR";
    if (free_port && port && port_number(port, &out->ports[0])) out->port_count = 1;
    return MR_OK;
}

static const char *variable_of(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

/* Rank 0 is on the first host of the step. */
static int take_nodes(mri_place *out, mr_error *err)
{
    const mri_variables from = {.get = variable_of};
    mr_error why = MR_ERROR_INIT;
    mri_hosts hosts;
    const int rc = mri_hosts_of_slurm(&hosts, &from, &why);
    if (rc != MR_OK)
        return mr_error_set(err, rc, "%.600s; or say where rank 0 is with MILLRACE_MEET=HOST:PORT", why.text);
    strcpy(out->host, hosts.count == 1 ? "127.0.0.1" : hosts.all[0].name);
    mri_hosts_fini(&hosts);
    return MR_OK;
}

static int take_launcher(mri_place *out, const mr_launch *at, uint32_t size, mr_error *err)
{
    const bool of_slurm = at->launcher == MR_LAUNCHER_SLURM ||
                          (at->launcher == MR_LAUNCHER_PMI && variable("SLURM_STEP_NODELIST"));
    if (at->launcher != MR_LAUNCHER_NONE && at->local_size == size) {
        strcpy(out->host, "127.0.0.1");
        return MR_OK;
    }
    if (at->launcher == MR_LAUNCHER_TORCHRUN || at->launcher == MR_LAUNCHER_POD)
        return take_master(out, at, err);
    if (of_slurm) return take_nodes(out, err);
    char who[64] = "nobody says";
    if (at->launcher != MR_LAUNCHER_NONE)
        snprintf(who, sizeof who, "%s does not say", mr_launcher_name(at->launcher));
    return mr_error_set(
        err, MR_EINVAL,
        "%s on which host rank 0 is: give every rank MILLRACE_MEET=HOST:PORT, with a port that "
        "is free there",
        who);
}

/* Spread over the range by the job's key: jobs rarely meet in their first, and never in all. */
static void add_ports(mri_place *out)
{
    const uint32_t range = MRI_PLACE_HIGHEST_PORT - MRI_PLACE_LOWEST_PORT;
    const uint32_t first = mri_le32(out->key) % range, step = 1 + mri_le32(out->key + 8) % 1499;
    for (uint32_t i = 0; i < MRI_PLACE_PORTS; i++)
        out->ports[out->port_count++] = (uint16_t)(MRI_PLACE_LOWEST_PORT + (first + i * step) % range);
}

int mri_place_find(mri_place *out, const mr_world_config *cfg, mr_error *err)
{
    mr_launch at = {.local_size = 0};
    const char *given = variable("MILLRACE_MEET");
    memset(out, 0, sizeof *out);
    int rc = mr_launch_find(&at, err);
    if (rc != MR_OK && cfg->meet && cfg->job) rc = MR_OK; /* nobody needs the launcher */
    if (rc == MR_OK)
        rc = cfg->meet ? take_text(out, cfg->meet, "meet", err)
             : given   ? take_text(out, given, "MILLRACE_MEET", err)
                       : take_launcher(out, &at, cfg->size, err);
    if (rc != MR_OK) return rc;
    out->this_host_only = is_loopback(out->host);
    if (cfg->job) out->host_by = NULL; /* nobody has chosen it by hand */
    else if (at.size == cfg->size) out->size_by = at.launcher;
    make_key(out, cfg, &at);
    const bool stated = (cfg->meet || given) && out->port_count;
    if (!stated) add_ports(out);
    return MR_OK;
}

const char *mri_place_hint(const mri_place *p, uint32_t size, bool missing, char *buf, size_t buf_bytes)
{
    char alone[128] = "", loopback[160] = "";
    if (missing && p->size_by != MR_LAUNCHER_NONE)
        snprintf(alone, sizeof alone,
                 "; started by %s as one of %u ranks: for a run of one process clear its variables",
                 mr_launcher_name(p->size_by), size);
    if (p->this_host_only && p->host_by)
        snprintf(loopback, sizeof loopback,
                 "; %s is %.40s, which is each machine itself: ranks on other machines need rank 0's address",
                 p->host_by, p->host);
    snprintf(buf, buf_bytes, "%s%s", alone, loopback);
    return buf;
}

mri_listen_at mri_place_listens(const mri_place *p)
{
    if (!p->this_host_only) return MRI_LISTEN_ALL;
    return strcmp(p->host, "::1") == 0 ? MRI_LISTEN_LOOPBACK_6 : MRI_LISTEN_LOOPBACK_4;
}
