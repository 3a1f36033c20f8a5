/* formats/tar/tar_group.c: which members make one sample. See tar_sample.h for the rule. */
#include <stdio.h>

#include "base/util.h"
#include "formats/tar/tar_sample.h"

/* Length of the key of a name; the name of the member follows after a dot. False: there is no key. */
static bool tar_split(const char *name, size_t bytes, mri_tar_dot which, size_t *key_bytes)
{
    const char *slash = memrchr(name, '/', bytes);
    const char *last = slash ? slash + 1 : name;
    const size_t rest = bytes - (size_t)(last - name);
    const char *dot = which == MRI_TAR_FIRST_DOT ? memchr(last, '.', rest) : memrchr(last, '.', rest);
    if (!dot || dot == last) return false;
    *key_bytes = (size_t)(dot - name);
    return true;
}

bool mri_tar_is_meta(const char *name)
{
    const size_t bytes = strcspn(name, "/");
    return bytes >= 4 && memcmp(name, "__", 2) == 0 && memcmp(name + bytes - 2, "__", 2) == 0;
}

static bool tar_group_has(const mri_tar_group *g, const char *key, size_t key_bytes)
{
    return g->key_bytes == key_bytes && memcmp(g->key, key, key_bytes) == 0;
}

static void tar_group_begin(mri_tar_group *g, const mri_tar_member *m, size_t key_bytes)
{
    g->key_bytes = key_bytes;
    memcpy(g->key, m->name, key_bytes);
    g->key[key_bytes] = '\0';
    g->begin = m->head;
    g->end = m->data;
    g->count = 0;
    g->more = false;
    g->passed = MRI_TAR_FILE;
}

/* Only ASCII: what other alphabets call lower case is no business of a file format. */
static void lower(char *out, const char *name, size_t bytes)
{
    if (bytes > MR_MAX_NAME) bytes = 0;
    for (size_t k = 0; k < bytes; k++)
        out[k] = (char)(name[k] >= 'A' && name[k] <= 'Z' ? name[k] + ('a' - 'A') : name[k]);
    out[bytes] = '\0';
}

/* The part it became, or NULL when there is no room. */
static mri_tar_part *tar_group_add(mri_tar_group *g, const mri_tar_member *m)
{
    g->end = m->data + m->bytes;
    if (g->count == MRI_TAR_MAX_PARTS) {
        g->more = true;
        return NULL;
    }
    mri_tar_part *p = &g->part[g->count++];
    lower(p->ext, m->name + g->key_bytes + 1, m->name_bytes - g->key_bytes - 1);
    p->data = m->data;
    p->bytes = m->bytes;
    p->sparse = m->kind == MRI_TAR_SPARSE;
    return p;
}

/* What has the key, but holds no bytes. */
static void tar_group_pass(mri_tar_group *g, mri_tar_kind kind, const char *name, size_t name_bytes)
{
    if (g->passed != MRI_TAR_FILE) return;
    g->passed = kind;
    lower(g->passed_ext, name + g->key_bytes + 1, name_bytes - g->key_bytes - 1);
}

const mri_tar_part *mri_tar_group_find(const mri_tar_group *g, const char *ext)
{
    for (uint32_t k = 0; k < g->count; k++)
        if (strcmp(g->part[k].ext, ext) == 0) return &g->part[k];
    return NULL;
}

char *mri_tar_group_names(const mri_tar_group *g, char *buf, size_t buf_bytes)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; k < g->count && at < buf_bytes; k++) {
        char shown[4 * MR_MAX_NAME + 1];
        mr_text_shown(g->part[k].ext, shown, sizeof shown);
        at += (size_t)snprintf(buf + at, buf_bytes - at, "%s.%s", k ? ", " : "", shown);
    }
    if (g->passed != MRI_TAR_FILE && at < buf_bytes) {
        char shown[4 * MR_MAX_NAME + 1];
        mr_text_shown(g->passed_ext, shown, sizeof shown);
        snprintf(buf + at, buf_bytes - at, "%s.%s, %s without bytes of its own", at ? ", " : "", shown,
                 mri_tar_kind_name(g->passed));
    }
    return buf;
}

/* ---- all samples ---- */
void mri_tar_note(mri_tar_notes *n, mri_tar_irregularity what, uint64_t offset, const char *name)
{
    if (!n || n->of[what].count++ > 0) return;
    n->of[what].offset = offset;
    n->of[what].file = n->file;
    mr_text_shown(name, n->of[what].what, sizeof n->of[what].what);
}

static bool leads_out(const char *name)
{
    if (name[0] == '/') return true;
    for (const char *at = name; *at; at += strcspn(at, "/"), at += *at == '/')
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0')) return true;
    return false;
}

void mri_tar_samples_init(mri_tar_samples *it, mri_tar_get *get, void *context, uint64_t at, uint64_t end,
                          mri_tar_notes *notes)
{
    mri_tar_init(&it->walk, get, context, at, end);
    it->dot = MRI_TAR_FIRST_DOT;
    it->pending_key = 0;
    it->link.key_bytes = 0;
    it->notes = notes;
    it->on_part = NULL;
    it->on_note = NULL;
    it->on_context = NULL;
}

static int take(mri_tar_samples *it, mri_tar_group *g, const mri_tar_member *m, mr_error *err)
{
    const mri_tar_part *part = tar_group_add(g, m);
    return part && it->on_part ? it->on_part(it->on_context, part, err) : MR_OK;
}

/* In the extent, so that parse() can tell why a picture is missing: behind other members of its sample, or in
 * front of all. */
static void pass(mri_tar_samples *it, mri_tar_group *g, const mri_tar_member *m, size_t key_bytes)
{
    mri_tar_link *l = &it->link;
    if (tar_group_has(g, m->name, key_bytes)) {
        g->end = m->data;
        l->key_bytes = 0; /* behind one of the next sample's: their extents would overlap */
        tar_group_pass(g, m->kind, m->name, m->name_bytes);
        return;
    }
    if (l->key_bytes == key_bytes && memcmp(l->name, m->name, key_bytes) == 0)
        return; /* the second of one sample */
    *l =
        (mri_tar_link){.kind = m->kind, .head = m->head, .key_bytes = key_bytes, .name_bytes = m->name_bytes};
    memcpy(l->name, m->name, m->name_bytes);
}

static void begin(mri_tar_samples *it, mri_tar_group *g, const mri_tar_member *m, size_t key_bytes)
{
    const mri_tar_link *l = &it->link;
    tar_group_begin(g, m, key_bytes);
    if (l->key_bytes == 0 || !tar_group_has(g, l->name, l->key_bytes)) return;
    g->begin = l->head;
    tar_group_pass(g, l->kind, l->name, l->name_bytes);
}

/* A member that counts, and the length of its key; of others is noted what there is to tell. */
static bool belongs(mri_tar_samples *it, mri_tar_group *g, const mri_tar_member *m, size_t *key_bytes)
{
    if (m->kind == MRI_TAR_FOLDER) return false;
    const bool has_key = tar_split(m->name, m->name_bytes, it->dot, key_bytes);
    if (m->kind != MRI_TAR_FILE && m->kind != MRI_TAR_SPARSE) {
        mri_tar_note(it->notes, MRI_TAR_NO_BYTES, m->head, m->name);
        if (has_key) pass(it, g, m, *key_bytes);
        return false;
    }
    if (leads_out(m->name)) mri_tar_note(it->notes, MRI_TAR_OUTSIDE, m->head, m->name);
    if (!has_key) mri_tar_note(it->notes, MRI_TAR_NO_KEY, m->head, m->name);
    return has_key;
}

int mri_tar_samples_next(mri_tar_samples *it, mri_tar_group *g, mr_error *err)
{
    g->key_bytes = 0;
    if (it->pending_key) {
        begin(it, g, &it->pending, it->pending_key);
        it->pending_key = 0;
        it->link.key_bytes = 0;
        const int rc = take(it, g, &it->pending, err);
        if (rc) return rc;
    }
    for (;;) {
        mri_tar_member m;
        size_t key_bytes = 0;
        int rc = mri_tar_next(&it->walk, &m, err);
        if (rc) return rc == MR_EEND && g->key_bytes ? MR_OK : rc;
        if (mri_tar_is_meta(m.name)) {
            rc = m.kind == MRI_TAR_FILE && it->on_note ? it->on_note(it->on_context, &m, err) : MR_OK;
            if (rc) return rc;
            continue;
        }
        if (!belongs(it, g, &m, &key_bytes)) continue;
        if (g->key_bytes && !tar_group_has(g, m.name, key_bytes)) {
            it->pending = m;
            it->pending_key = key_bytes;
            return MR_OK;
        }
        if (!g->key_bytes) begin(it, g, &m, key_bytes);
        it->link.key_bytes = 0; /* the same */
        rc = take(it, g, &m, err);
        if (rc) return rc;
    }
}
