/* tools/session/tune.c: see tune.h. The file: the key, line by line, then "found" and the numbers. A file of
 * another key, or one that is damaged, is as good as none. */
#include "tools/session/tune.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/folders.h"
#include "tools/cli/output.h"

#define FOUND "found workers %u prefetch %u depth %u readers %u cache %u bucket %" SCNu64 "\n"

static const char first_line[] = "millrace tune 2\n";

/* FNV-1a (Fowler, Noll, Vo), 64 bits: a name for the file; the key in it decides. */
static uint64_t name_of(const char *text)
{
    uint64_t h = 14695981039346656037u;
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

/* False: there is no place for it. */
static bool find_place(char *out, size_t bytes, uint64_t name)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0;
    if (xdg && xdg[0] == '/') n = snprintf(out, bytes, "%s/millrace/tune/%016" PRIx64 ".txt", xdg, name);
    else if (home && home[0] == '/')
        n = snprintf(out, bytes, "%s/.cache/millrace/tune/%016" PRIx64 ".txt", home, name);
    if (n <= 0 || (size_t)n >= bytes) out[0] = '\0';
    return out[0] != '\0';
}

/* All that the best settings may depend on; a line each, so that one can read it. */
static void write_key(tune_run *t, const tool_session *s)
{
    const mr_source_info *src = mr_source_info_of(s->src);
    const mr_loader_config *c = &s->loader_cfg;
    char *whole = realpath(src->path, NULL);
    const mr_device_info *d = s->devices ? mr_device_info_of(s->devices[0]) : NULL;
    snprintf(t->key, sizeof t->key,
             "%sdata %s\nfingerprint %016" PRIx64 " of %" PRIu64
             " samples\ncores %ld\nmodel %s\ndevices %u x %s, %s\n"
             "batch %u augment %s training %d decode %d\nio %d direct %d cache %d resident %" PRIu64
             " memory %" PRIu64 "\nfree %u workers %u prefetch %u depth %u readers %u bucket %s%" PRIu64 "\n",
             first_line, whole ? whole : src->path, src->fingerprint, src->count,
             sysconf(_SC_NPROCESSORS_ONLN), s->model ? s->model->name : "none", s->device_count,
             d ? d->name : "none", d ? d->hardware : "", c->batch, c->augment, c->training,
             (int)c->decode.pixels, (int)c->io, c->direct, (int)c->cache, c->resident_bytes, c->memory_bytes,
             c->tune, c->workers, c->prefetch, c->depth, c->readers, s->bucket.tuned ? "from " : "",
             s->compute ? s->compute->bucket_bytes : 0);
    free(whole);
}

static bool is_one_of_several(const tool_session *s) { return s->world && mr_world_size(s->world) > 1; }

static bool read_kept(const tune_run *t, tool_session *s)
{
    char text[sizeof t->key + 256];
    unsigned n[4], cache;
    uint64_t bucket;
    mr_loader_config *c = &s->loader_cfg;
    FILE *f = fopen(t->path, "re");
    if (!f) return false;
    const size_t bytes = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[bytes] = '\0';
    const size_t key = strlen(t->key);
    if (strncmp(text, t->key, key) != 0) return false;
    if (sscanf(text + key, FOUND, &n[0], &n[1], &n[2], &n[3], &cache, &bucket) != 6) return false;
    for (int i = 0; i < 4; i++)
        if (n[i] == 0 || n[i] > 1024) return false;
    c->workers = n[0];
    c->prefetch = n[1];
    c->depth = n[2];
    c->readers = n[3];
    if (cache) {
        c->cache = MR_CACHE_MEMORY;
        c->cache_bytes = MR_CACHE_FITS;
    }
    if (is_one_of_several(s)) return true; /* buckets must be the same in all: they look for them again */
    s->bucket.known = s->bucket.tuned;
    s->bucket.bytes = bucket;
    s->bucket.tuned = false;
    return true;
}

static uint32_t free_settings(const opt_given *given)
{
    const struct {
        const char *name;
        uint32_t bit;
    } all[] = {{"workers", MR_TUNE_WORKERS},
               {"prefetch", MR_TUNE_PREFETCH},
               {"depth", MR_TUNE_DEPTH},
               {"readers", MR_TUNE_READERS},
               {"cache", MR_TUNE_CACHE}};
    uint32_t bits = 0;
    for (size_t i = 0; i < OPT_COUNT(all); i++)
        if (!options_was_given(given, all[i].name)) bits |= all[i].bit;
    return bits;
}

void tune_begin(tune_run *t, const tune_args *a, tool_session *s, const opt_given *given)
{
    mr_loader_config *c = &s->loader_cfg;
    *t = (tune_run){.known = false};
    if (!a->on && !a->again) return;
    if (c->prefetch == 0) {
        say("--tune: nothing to look for with --prefetch off");
        return;
    }
    c->tune = free_settings(given);
    s->bucket.tuned =
        (is_one_of_several(s) || session_replicas(s) > 1) && !options_was_given(given, "bucket");
    write_key(t, s);
    if (!find_place(t->path, sizeof t->path, name_of(t->key)))
        say("--tune: neither HOME nor XDG_CACHE_HOME names a folder: the result is not stored");
    if (!t->path[0] || a->again || !read_kept(t, s)) return;
    c->tune = 0;
    t->known = true;
    say("tune: workers %u, prefetch %u, depth %u, readers %u%s, as found before "
        "(%s; --tune-again looks again)",
        c->workers, c->prefetch, c->depth, c->readers, c->cache == MR_CACHE_MEMORY ? ", cache in memory" : "",
        t->path);
}

static int keep(const tune_run *t, const mr_tuning *found, uint64_t bucket, mr_error *err)
{
    char text[200];
    mr_output *out;
    mr_output_config cfg;
    mr_output_defaults(&cfg);
    cfg.force = true;
    if (!make_folders_of(t->path, 0700)) return mr_error_sys(err, errno, "cannot make its folder");
    int rc = mr_output_open(&out, t->path, &cfg, err);
    if (rc) return rc;
    snprintf(text, sizeof text, FOUND, found->workers, found->prefetch, found->depth, found->readers,
             found->cache_bytes > 0, bucket);
    rc = mr_output_write(out, t->key, strlen(t->key), err);
    if (rc == MR_OK) rc = mr_output_write(out, text, strlen(text), err);
    if (rc == MR_OK) return mr_output_commit(out, err);
    mr_output_abandon(out, false);
    return rc;
}

void tune_end(const tune_run *t, const tool_session *s, const tune_args *a)
{
    mr_tuning found;
    mr_bucket_tuning buckets;
    mr_error err = MR_ERROR_INIT;
    if ((!a->on && !a->again) || t->known || !s->loader || !s->loader_cfg.tune) return;
    mr_loader_tuning(s->loader, &found);
    mr_trainer_bucket_tuning(s->trainer, &buckets);
    if (!found.done)
        say("tune: the run ended before it was done (%u changes tried): nothing is kept", found.tried);
    else if (!buckets.done) say("tune: the run ended before sizes of buckets were compared: nothing is kept");
    else if (t->path[0] && keep(t, &found, buckets.bytes, &err) != MR_OK)
        say("tune: %s: not kept: %s", t->path, err.text);
}
