/* ranks/hosts.c: hosts and lists of them; see hosts.h. */
#include "ranks/hosts.h"

enum { DIGITS_MOST = 18 /* no number overflows 64 bits */ };

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool mri_hosts_has_in_names(char c)
{
    return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.';
}

bool mri_hosts_read_number(const char **at, uint64_t *value)
{
    const char *from = *at;
    *value = 0;
    for (; is_digit(**at) && *at - from < DIGITS_MOST; (*at)++) *value = 10 * *value + (uint64_t)(**at - '0');
    return *at > from && !is_digit(**at);
}

int mri_hosts_expected(const char *what, const char *text, const char *at, const char *expected,
                       mr_error *err)
{
    if (*at == '\0')
        return mr_error_set(err, MR_EINVAL, "%s: expected %s, found the end of '%.200s'", what, expected,
                            text);
    return mr_error_set(err, MR_EINVAL, "%s: expected %s, found '%c' at character %zu of '%.200s'", what,
                        expected, *at, (size_t)(at - text) + 1, text);
}

void mri_hosts_fini(mri_hosts *hosts)
{
    free(hosts->all);
    *hosts = (mri_hosts){.rank = MRI_RANK_UNKNOWN};
}

static int make_room(mri_hosts *hosts, mr_error *err)
{
    if (hosts->count < hosts->room) return MR_OK;
    const uint32_t room = hosts->room ? 2 * hosts->room : 8;
    mri_host *all = realloc(hosts->all, room * sizeof *all);
    if (!all) return mr_error_set(err, MR_ENOMEM, "no memory for %u hosts", room);
    hosts->all = all;
    hosts->room = room;
    return MR_OK;
}

int mri_hosts_add(mri_hosts *hosts, const char *what, const char *name, uint32_t ranks, mr_error *err)
{
    if (name[0] == '\0' || name[0] == '-' || name[0] == '.')
        return mr_error_set(err, MR_EINVAL,
                            "%s: expected a host that begins with a letter or digit, found '%.80s'", what,
                            name);
    if (hosts->count == MRI_HOSTS_MOST)
        return mr_error_set(err, MR_ELIMIT, "%s: at most %d hosts are possible, found more", what,
                            MRI_HOSTS_MOST);
    const int rc = make_room(hosts, err);
    if (rc != MR_OK) return rc;
    mri_host *h = &hosts->all[hosts->count++];
    memset(h, 0, sizeof *h);
    strcpy(h->name, name);
    h->ranks = ranks;
    return MR_OK;
}

/* ---- the same host again ---- */

static int by_name(const void *a, const void *b)
{
    const mri_host *x = *(mri_host *const *)a, *y = *(mri_host *const *)b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x > y) - (x < y);
}

int mri_hosts_unite(mri_hosts *hosts, const char *what, bool sum, mr_error *err)
{
    mri_host **sorted = malloc((hosts->count + 1) * sizeof(mri_host *)), *first = NULL;
    if (!sorted) return mr_error_set(err, MR_ENOMEM, "no memory for %u hosts", hosts->count);
    int rc = MR_OK;
    uint32_t left = 0;
    for (uint32_t i = 0; i < hosts->count; i++) sorted[i] = &hosts->all[i];
    qsort(sorted, hosts->count, sizeof(mri_host *), by_name);
    for (uint32_t i = 0; rc == MR_OK && i < hosts->count; i++) {
        if (!first || strcmp(first->name, sorted[i]->name) != 0) {
            first = sorted[i];
            continue;
        }
        if (!sum)
            rc = mr_error_set(err, MR_EINVAL, "%s: expected every host once, found '%s' twice", what,
                              first->name);
        first->ranks += sorted[i]->ranks;
        sorted[i]->name[0] = '\0';
    }
    for (uint32_t i = 0; i < hosts->count; i++)
        if (hosts->all[i].name[0]) {
            if (left < i) hosts->all[left] = hosts->all[i];
            left++;
        }
    hosts->count = left;
    free(sorted);
    return rc;
}

/* ---- mpirun's list ---- */

/* "h0:2" */
static int read_host(mri_hosts *out, const char *what, const char *list, const char **at, mr_error *err)
{
    char name[MRI_HOST_BYTES];
    const char *from = *at;
    uint64_t ranks = 1;
    while (mri_hosts_has_in_names(**at)) (*at)++;
    if (*at == from) return mri_hosts_expected(what, list, *at, "a host", err);
    if (*at - from >= MRI_HOST_BYTES)
        return mr_error_set(err, MR_EINVAL, "%s: expected names of at most %d bytes, found '%.80s...'", what,
                            MRI_HOST_BYTES - 1, from);
    memcpy(name, from, (size_t)(*at - from));
    name[*at - from] = '\0';
    if (**at == ':') {
        const char *number = ++*at;
        if (!mri_hosts_read_number(at, &ranks) || ranks == 0)
            return mri_hosts_expected(what, list, number, "a number of ranks", err);
    }
    if (**at && **at != ',') return mri_hosts_expected(what, list, *at, "a list as h0:2,h1:2,h2", err);
    if (ranks > MRI_HOSTS_MOST - out->ranks)
        return mr_error_set(err, MR_ELIMIT, "%s: at most %d ranks are possible, found more", what,
                            MRI_HOSTS_MOST);
    out->ranks += (uint32_t)ranks;
    return mri_hosts_add(out, what, name, (uint32_t)ranks, err);
}

int mri_hosts_of_list(mri_hosts *out, const char *what, const char *list, mr_error *err)
{
    const char *at = list;
    *out = (mri_hosts){.rank = MRI_RANK_UNKNOWN};
    int rc = read_host(out, what, list, &at, err);
    while (rc == MR_OK && *at) {
        at++;
        rc = read_host(out, what, list, &at, err);
    }
    if (rc == MR_OK) rc = mri_hosts_unite(out, what, true, err);
    if (rc != MR_OK) mri_hosts_fini(out);
    return rc;
}

/* ---- another interface ---- */

/* Digits and dots: it has no short name. */
static bool is_address(const char *name)
{
    return strchr(name, '.') && name[strspn(name, "0123456789.")] == '\0';
}

int mri_hosts_add_suffix(mri_hosts *hosts, const char *what, const char *suffix, mr_error *err)
{
    const size_t bytes = strlen(suffix);
    for (const char *at = suffix; *at; at++)
        if (!mri_hosts_has_in_names(*at))
            return mri_hosts_expected(what, suffix, at, "letters, digits, '-', '_' and '.'", err);
    for (uint32_t i = 0; i < hosts->count; i++) {
        const char *name = hosts->all[i].name;
        if (is_address(name))
            return mr_error_set(err, MR_EINVAL,
                                "%s: expected hosts with names to add '%.80s' to, found the address '%s'",
                                what, suffix, name);
        if (bytes >= MRI_HOST_BYTES - strlen(name))
            return mr_error_set(err, MR_EINVAL, "%s: expected names of at most %d bytes, '%.80s' has more",
                                what, MRI_HOST_BYTES - 1, name);
    }
    for (uint32_t i = 0; i < hosts->count; i++) {
        char *name = hosts->all[i].name, *domain = name + strcspn(name, ".");
        memmove(domain + bytes, domain, strlen(domain) + 1);
        memcpy(domain, suffix, bytes);
    }
    return MR_OK;
}
