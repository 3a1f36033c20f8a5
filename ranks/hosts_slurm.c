/* ranks/hosts_slurm.c: Slurm's lists of nodes and counts of tasks; see hosts.h.
 *
 * A name is expanded from left to right: the text before a bracket, each number in it, and after each of
 * them the rest of the name anew. Every way to the end of a name is one host more, so that hosts bound the
 * work, whatever the text promises. */
#include <stdio.h>

#include "ranks/hosts.h"

enum { BRACKETS_MOST = 8 /* in one name */ };

/* ---- nodes ---- */

typedef struct expansion {
    mri_hosts *out;
    const char *what, *list;
    const char *end; /* of the name in the list */
    char name[MRI_HOST_BYTES];
    mr_error *err;
} expansion;

typedef struct range {
    uint64_t first, last;
    int digits;
} range;

static int expected(const expansion *e, const char *at, const char *what)
{
    return mri_hosts_expected(e->what, e->list, at, what, e->err);
}

static int too_long(const expansion *e)
{
    return mr_error_set(e->err, MR_EINVAL, "%s: expected names of at most %d bytes, found '%.80s...'",
                        e->what, MRI_HOST_BYTES - 1, e->name);
}

/* "7" or "08-11" */
static int read_range(const expansion *e, const char **at, range *out)
{
    static const char number[] = "a number of at most 18 digits";
    const char *from = *at;
    if (!mri_hosts_read_number(at, &out->first)) return expected(e, *at, number);
    out->digits = (int)(*at - from);
    out->last = out->first;
    if (**at != '-') return MR_OK;
    from = ++*at;
    if (!mri_hosts_read_number(at, &out->last)) return expected(e, *at, number);
    return out->last < out->first ? expected(e, from, "a range that goes up") : MR_OK;
}

static int expand(expansion *e, const char *at, size_t bytes, uint32_t brackets);

static int expand_range(expansion *e, const range *r, const char *rest, size_t bytes, uint32_t brackets)
{
    int rc = MR_OK;
    for (uint64_t value = r->first; rc == MR_OK && value <= r->last; value++) {
        const size_t room = sizeof e->name - bytes;
        const int more = snprintf(e->name + bytes, room, "%0*llu", r->digits, (unsigned long long)value);
        if ((size_t)more >= room) return too_long(e);
        rc = expand(e, rest, bytes + (size_t)more, brackets + 1);
    }
    return rc;
}

/* at: after the bracket that opens */
static int expand_bracket(expansion *e, const char *at, size_t bytes, uint32_t brackets)
{
    const char *close = at + strspn(at, "0123456789,-");
    if (*close != ']') return expected(e, close, "numbers, '-', ',' and ']'");
    if (brackets == BRACKETS_MOST) return expected(e, at, "at most 8 brackets in a name");
    for (;; at++) {
        range r;
        int rc = read_range(e, &at, &r);
        if (rc == MR_OK && *at != ',' && *at != ']') rc = expected(e, at, "',' or ']'");
        if (rc == MR_OK) rc = expand_range(e, &r, close + 1, bytes, brackets);
        if (rc != MR_OK || at == close) return rc;
    }
}

/* The rest of a name from `at` on; `bytes` bytes of e->name are set already. */
static int expand(expansion *e, const char *at, size_t bytes, uint32_t brackets)
{
    for (; mri_hosts_has_in_names(*at); at++) {
        e->name[bytes] = '\0';
        if (bytes + 1 == sizeof e->name) return too_long(e);
        e->name[bytes++] = *at;
    }
    e->name[bytes] = '\0';
    if (*at == '[') return expand_bracket(e, at + 1, bytes, brackets);
    if (bytes == 0) return expected(e, at, "a host");
    if (*at && *at != ',') return expected(e, at, "a list of nodes as n[0-2,7],m");
    e->end = at;
    return mri_hosts_add(e->out, e->what, e->name, 0, e->err);
}

int mri_hosts_of_nodes(mri_hosts *out, const char *what, const char *list, mr_error *err)
{
    expansion e = {.out = out, .what = what, .list = list, .err = err};
    *out = (mri_hosts){.rank = MRI_RANK_UNKNOWN};
    int rc = expand(&e, list, 0, 0);
    while (rc == MR_OK && *e.end) rc = expand(&e, e.end + 1, 0, 0);
    if (rc == MR_OK) rc = mri_hosts_unite(out, what, false, err);
    if (rc != MR_OK) mri_hosts_fini(out);
    return rc;
}

/* ---- counts ---- */

typedef struct names {
    const char *nodes, *tasks;                   /* lists */
    const char *node_number[2], *task_number[2]; /* NULL: no more */
} names;

static const names of_step = {
    "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE", {"SLURM_STEP_NUM_NODES"}, {"SLURM_STEP_NUM_TASKS"}};
static const names of_job = {"SLURM_JOB_NODELIST",
                             "SLURM_TASKS_PER_NODE",
                             {"SLURM_JOB_NUM_NODES", "SLURM_NNODES"},
                             {"SLURM_NPROCS", "SLURM_NTASKS"}};

static const char *get(const mri_variables *from, const char *name)
{
    const char *value = from->get(from->context, name);
    return value && value[0] ? value : NULL;
}

static bool read_whole(const char *text, uint64_t *value)
{
    return mri_hosts_read_number(&text, value) && *text == '\0';
}

/* "3(x2)" or "4" */
static int read_tasks(const names *n, const char *text, const char **at, uint64_t *tasks, uint64_t *times,
                      mr_error *err)
{
    static const char shape[] = "counts as 1,3(x2),4";
    const char *from = *at;
    *times = 1;
    if (!mri_hosts_read_number(at, tasks) || *tasks == 0)
        return mri_hosts_expected(n->tasks, text, from, shape, err);
    if (**at == '(') {
        from = ++*at;
        if (**at == 'x') from = ++*at;
        if (from[-1] != 'x' || !mri_hosts_read_number(at, times) || *times == 0 || *(*at)++ != ')')
            return mri_hosts_expected(n->tasks, text, from, shape, err);
    }
    return **at && **at != ',' ? mri_hosts_expected(n->tasks, text, *at, shape, err) : MR_OK;
}

static int take_tasks(mri_hosts *out, const names *n, const char *text, mr_error *err)
{
    uint64_t hosts = 0, ranks = 0;
    for (const char *at = text;; at++) {
        uint64_t tasks, times;
        const int rc = read_tasks(n, text, &at, &tasks, &times, err);
        if (rc != MR_OK) return rc;
        for (uint64_t i = hosts; i < out->count && i - hosts < times; i++)
            out->all[i].ranks = (uint32_t)mri_min_u64(tasks, MRI_HOSTS_MOST);
        hosts = mri_plus(hosts, times);
        ranks = mri_plus(ranks, mri_times(tasks, times));
        if (*at == '\0') break;
    }
    if (hosts != out->count)
        return mr_error_set(err, MR_EINVAL,
                            "%s: expected the counts of the %u hosts of %s, found %llu in '%.200s'", n->tasks,
                            out->count, n->nodes, (unsigned long long)hosts, text);
    if (ranks > MRI_HOSTS_MOST)
        return mr_error_set(err, MR_ELIMIT, "%s: at most %d ranks are possible, found %llu", n->tasks,
                            MRI_HOSTS_MOST, (unsigned long long)ranks);
    out->ranks = (uint32_t)ranks;
    return MR_OK;
}

/* Each variable of `number` that is set must be `have`, as `of` says. */
static int compare(const mri_variables *from, const char *const number[2], uint32_t have, const char *whose,
                   const char *of, mr_error *err)
{
    for (int i = 0; i < 2 && number[i]; i++) {
        uint64_t value;
        const char *text = get(from, number[i]);
        if (text && (!read_whole(text, &value) || value != have))
            return mr_error_set(err, MR_EINVAL, "%s: expected %u, the %s of %s, found '%.40s'", number[i],
                                have, whose, of, text);
    }
    return MR_OK;
}

static int take_counts(mri_hosts *out, const names *n, const mri_variables *from, mr_error *err)
{
    const char *tasks = get(from, n->tasks);
    int rc = compare(from, n->node_number, out->count, "number of hosts", n->nodes, err);
    if (rc != MR_OK || !tasks) return rc;
    rc = take_tasks(out, n, tasks, err);
    return rc == MR_OK ? compare(from, n->task_number, out->ranks, "sum", n->tasks, err) : rc;
}

/* ---- this rank ---- */

static uint32_t host_of(const mri_hosts *hosts, uint32_t rank)
{
    uint32_t host = 0;
    for (; rank >= hosts->all[host].ranks; host++) rank -= hosts->all[host].ranks;
    return host;
}

static int take_rank(mri_hosts *out, const names *n, const mri_variables *from, mr_error *err)
{
    const char *text = get(from, "SLURM_PROCID");
    uint64_t value;
    if (!text) return MR_OK;
    if (!read_whole(text, &value))
        return mr_error_set(err, MR_EINVAL, "SLURM_PROCID: expected a rank, found '%.40s'", text);
    if (value >= (out->ranks ? out->ranks : MRI_HOSTS_MOST))
        return mr_error_set(err, MR_EINVAL, "SLURM_PROCID: expected less than %u, the ranks of %s, found %s",
                            out->ranks ? out->ranks : (uint32_t)MRI_HOSTS_MOST, n->tasks, text);
    out->rank = (uint32_t)value;
    return MR_OK;
}

/* Jobs of several parts (srun A : B) count their nodes by part, but their list is sorted: rank 0 need not be
 * on its first. This is what gives them away. */
static int take_host(mri_hosts *out, const names *n, const mri_variables *from, mr_error *err)
{
    const char *text = get(from, "SLURM_NODEID"), *name = get(from, "SLURMD_NODENAME");
    uint64_t host;
    if (n != &of_step || !text) return MR_OK;
    if (!read_whole(text, &host) || host >= out->count)
        return mr_error_set(err, MR_EINVAL,
                            "SLURM_NODEID: expected less than %u, the hosts of %s, found '%.40s'", out->count,
                            n->nodes, text);
    if (name && strcmp(name, out->all[host].name) != 0)
        return mr_error_set(
            err, MR_EINVAL,
            "SLURMD_NODENAME: expected %s, host %u of %s as SLURM_NODEID has it, found '%.80s'",
            out->all[host].name, (uint32_t)host, n->nodes, name);
    if (out->ranks && out->rank != MRI_RANK_UNKNOWN) out->scattered = host != host_of(out, out->rank);
    return MR_OK;
}

int mri_hosts_of_slurm(mri_hosts *out, const mri_variables *from, mr_error *err)
{
    const bool in_step = get(from, "SLURM_STEP_ID") || get(from, of_step.nodes);
    const names *n = in_step ? &of_step : &of_job;
    const char *nodes = get(from, n->nodes), *suffix = get(from, "MILLRACE_HOST_SUFFIX");
    *out = (mri_hosts){.rank = MRI_RANK_UNKNOWN};
    if (!nodes) return mr_error_set(err, MR_EINVAL, "%s: expected a list of nodes, found nothing", n->nodes);
    int rc = mri_hosts_of_nodes(out, n->nodes, nodes, err);
    if (rc == MR_OK) rc = take_counts(out, n, from, err);
    if (rc == MR_OK) rc = take_rank(out, n, from, err);
    if (rc == MR_OK) rc = take_host(out, n, from, err);
    if (rc == MR_OK && suffix) rc = mri_hosts_add_suffix(out, "MILLRACE_HOST_SUFFIX", suffix, err);
    if (rc != MR_OK) mri_hosts_fini(out);
    return rc;
}
