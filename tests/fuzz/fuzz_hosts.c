/* tests/fuzz/fuzz_hosts.c: hostile text as lists of hosts and as Slurm's variables. Input: a byte with
 * its kind, then the text. As variables, lines of a letter and a value. An accepted list keeps the promises
 * of hosts.h, is read again from its own names, and gives roles. */
#include <stdlib.h>
#include <string.h>

#include "ranks/crew/hosts_roles.h"
#include "tests/fuzz/fuzz.h"

enum {
    MOST = 4096,
    DECLARED = 5 << 20 /* 4096 hosts, the smaller half of them while they grow, their roles */
};

static const char *const variables[] = {"SLURM_STEP_NODELIST",  "SLURM_STEP_TASKS_PER_NODE",
                                        "SLURM_STEP_NUM_NODES", "SLURM_STEP_NUM_TASKS",
                                        "SLURM_JOB_NODELIST",   "SLURM_TASKS_PER_NODE",
                                        "SLURM_NNODES",         "SLURM_NPROCS",
                                        "SLURM_PROCID",         "SLURM_NODEID",
                                        "SLURMD_NODENAME",      "MILLRACE_HOST_SUFFIX"};
enum { VARIABLES = sizeof variables / sizeof *variables };

static const char *value_of(void *context, const char *name)
{
    const char *const *values = context;
    for (int i = 0; i < VARIABLES; i++)
        if (strcmp(variables[i], name) == 0) return values[i];
    return NULL;
}

static int of_variables(mri_hosts *out, char *text, mr_error *err)
{
    const char *values[VARIABLES] = {NULL};
    for (char *end; *text; text = end) {
        end = text + strcspn(text, "\n");
        if (*end) *end++ = '\0';
        if (*text >= 'a' && *text < 'a' + VARIABLES) values[*text - 'a'] = text + 1;
    }
    return mri_hosts_of_slurm(out, &(mri_variables){.get = value_of, .context = values}, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mri_host *)a)->name, ((const mri_host *)b)->name);
}

/* Names are valid, each occurs once, ranks sum to the total. */
static void check(const mri_hosts *h)
{
    uint32_t ranks = 0, known = 0;
    if (h->count < 1 || h->count > MRI_HOSTS_MOST) abort();
    for (uint32_t i = 0; i < h->count; i++) {
        const char *name = h->all[i].name;
        if (!name[0] || name[0] == '-' || name[0] == '.' || !memchr(name, 0, MRI_HOST_BYTES)) abort();
        for (const char *at = name; *at; at++)
            if (!mri_hosts_has_in_names(*at)) abort();
        if (h->all[i].ranks > MRI_HOSTS_MOST || h->all[i].gpus) abort();
        ranks += h->all[i].ranks;
        known += h->all[i].ranks > 0;
    }
    if (ranks != h->ranks || ranks > MRI_HOSTS_MOST || (known && known != h->count)) abort();
    if (h->rank != MRI_RANK_UNKNOWN && h->rank >= (ranks ? ranks : MRI_HOSTS_MOST)) abort();
}

static void check_roles(const mri_hosts *h, uint32_t servers)
{
    mr_error err = MR_ERROR_INIT;
    mri_roles r;
    uint32_t chiefs = 0, serve = 0;
    if (mri_roles_deal(&r, h, servers, 0, &err) != MR_OK) {
        if (!err.text[0] || r.rows) abort();
        return;
    }
    if (r.ranks != h->ranks || r.servers + r.workers != r.ranks || r.workers == 0) abort();
    for (uint32_t i = 0; i < r.ranks; i++) {
        const mri_role_row *row = &r.rows[i];
        if (row->rank != i || row->host >= h->count || (row->role == MRI_ROLE_SERVER && !row->serves))
            abort();
        if (row->index >= (row->role == MRI_ROLE_SERVER ? r.servers : r.workers)) abort();
        if (row->gpus > h->all[row->host].gpus || !memchr(row->address, ':', sizeof row->address)) abort();
        chiefs += row->chief;
        serve += row->serves;
    }
    if (chiefs != 1 || serve != (r.servers ? r.servers : 1)) abort();
    mri_roles_fini(&r);
}

/* Each name alone is a list of one. */
static void check_again(const mri_hosts *h)
{
    for (uint32_t i = 0; i < h->count; i += 1 + h->count / 8) {
        mri_hosts one;
        if (mri_hosts_of_nodes(&one, "again", h->all[i].name, NULL) != MR_OK || one.count != 1 ||
            strcmp(one.all[0].name, h->all[i].name) != 0)
            abort();
        mri_hosts_fini(&one);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1 || bytes > MOST) return 0;
    mrt_fuzz_begin(bytes, DECLARED);
    char *text = malloc(bytes); /* nothing after it */
    if (!text) abort();
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = '\0';
    mr_error err = MR_ERROR_INIT;
    mri_hosts h;
    const int rc = data[0] % 3 == 0   ? mri_hosts_of_nodes(&h, "nodes", text, &err)
                   : data[0] % 3 == 1 ? mri_hosts_of_list(&h, "list", text, &err)
                                      : of_variables(&h, text, &err);
    if (rc == MR_OK) {
        check(&h);
        check_again(&h);
        for (uint32_t i = 0; i < h.count; i++) h.all[i].gpus = data[0] / 3 % 4;
        check_roles(&h, MRI_SERVERS_BY_HOST);
        check_roles(&h, data[0] / 12 % 4);
        qsort(h.all, h.count, sizeof *h.all, by_name);
        for (uint32_t i = 1; i < h.count; i++)
            if (strcmp(h.all[i - 1].name, h.all[i].name) == 0) abort();
    } else if (!err.text[0] || h.all || h.count) abort();
    mri_hosts_fini(&h);
    free(text);
    mrt_fuzz_end();
    return 0;
}
