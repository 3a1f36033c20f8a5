/* formats/record/source_mrec.c: our own record files as sources: one file, or a shard list of many that
 * agree.
 *
 *   sample ──► shard by binary search over start[] ──► record in that shard's file ──► its index
 *
 * Of a list of more files than a process should have open (open_pool.h), each is opened when it is read: then
 * no index is kept in memory, and its pages go through a cache. A list of version 2 describes its files, and
 * only the first is opened in advance; the files of a version 1 list are all opened once, one after the
 * other. Either way a file that is opened later must be the one that the set was opened with. One that is not
 * is an error of the set (MR_EIO, ESTALE), never a bad sample.
 *
 * A field named "image" is the image field and one named "label" (INT) the label field. The bytes of
 * "image.entries" (BYTES) go with the image when that is a JPEG; the field also remains an ordinary field.
 * Lengths of sequences come from the index (mrec_lengths.c). */
#include <errno.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/record/mrec_file.h"
#include "formats/record/record.h"
#include "formats/record/shards.h"
#include "formats/source/classes.h"
#include "formats/source/columns.h"
#include "formats/source/sample_name.h"
#include "formats/source/source.h"
#include "formats/source/value.h"
#include "formats/storage/storage.h"

typedef struct shard { /* of a list of more files than are kept open */
    char *path;
    uint64_t file_bytes, fingerprint; /* as listed or as at open: the file that is opened must be this one */
} shard;

typedef struct set { /* fixed after open */
    mr_mrec **file;  /* all of them; bounded: the first only, whose fields and classes are all others' */
    uint64_t *start; /* start[k]: first sample of file k; start[count]: all samples */
    uint32_t count;
    uint32_t allowed;      /* descriptors, of mri_open_allow() */
    shard *shard;          /* NULL: all files are open */
    mri_open_pool *pool;   /* of mr_mrec, with shard */
    mri_page_cache *pages; /* of indexes that are not in memory; NULL: all are */
    mri_shard_facts facts; /* of all files */
    bool listed;           /* by a list of version 2: the facts are the list's, its files must fit them */
    mri_meta meta;         /* of all files: the first one's, whose memory it is */
    uint32_t class_count;  /* as the files have them */
    bool keeps_numbers;    /* the first file is of version 1.3 */
    bool read_through;     /* whole indexes were read for the range of labels */
    mri_lengths lengths;   /* element_bytes 0: sizes of records do not tell them */
    int entries;           /* field with the entry points of the image field's JPEGs, or -1 */
    int name;              /* field with the sample's original name, or -1 */
} set;

enum { CACHE_PAGES = 1024 }; /* 4 MiB */

static bool mrec_probe(const mri_probe *p)
{
    return !p->is_folder && p->head_bytes >= 5 && memcmp(p->head + 1, "MREC", 4) == 0;
}
static bool shards_probe(const mri_probe *p)
{
    return !p->is_folder && mri_shards_magic(p->head, p->head_bytes);
}

static int set_create(mr_source *src, uint32_t count, mr_error *err)
{
    set *s = calloc(1, sizeof *s);
    src->state = s;
    if (s) {
        mri_shard_facts_init(&s->facts);
        s->file = calloc(count, sizeof *s->file);
        s->start = calloc((size_t)count + 1, sizeof *s->start);
    }
    return s && s->file && s->start ? MR_OK
                                    : mr_error_set(err, MR_ENOMEM, "no memory for %u record files", count);
}

static void set_close(mr_source *src)
{
    set *s = src->state;
    if (!s) return;
    mri_open_pool_destroy(s->pool);
    mri_open_give_back(s->allowed);
    mri_page_cache_destroy(s->pages);
    for (uint32_t k = 0; k < s->count; k++) {
        mr_mrec_close(s->file[k]);
        if (s->shard) free(s->shard[k].path);
    }
    free(s->shard);
    free(s->file);
    free(s->start);
    free(s);
}

/* Headers before version 1.2 do not know the range of labels: then the index is read from front to back,
 * where nobody gave names. */
static int add_facts(set *s, const mr_mrec *m, mr_error *err)
{
    const bool labels = m->meta.class_count == 0;
    s->read_through |= labels && m->h.count > 0 && m->meta.label_field >= 0 &&
                       !mri_mrec_header_has_labels(&m->h) && !m->index;
    return mri_shard_facts_add(&s->facts, m, labels, err);
}

/* The file that was opened becomes the last one of the set. */
static int add_opened(mr_source *src, mr_mrec *m, mr_error *err)
{
    set *s = src->state;
    if (s->count == 0) s->keeps_numbers = mri_mrec_header_keeps_numbers(&m->h);
    s->start[s->count + 1] = s->start[s->count] + m->h.count;
    s->file[s->count++] = m;
    src->info.memory_bytes += mri_mrec_memory_bytes(m);
    return s->listed ? MR_OK : add_facts(s, m, err);
}

/* remote NULL: path is a local file. */
static int set_add(mr_source *src, const char *path, mri_remote_file *remote, const mr_source_config *cfg,
                   mr_error *err)
{
    const set *s = src->state;
    const uint64_t used = src->info.memory_bytes,
                   room = used < cfg->memory_bytes && !s->shard ? cfg->memory_bytes - used : 0;
    mr_mrec *m;
    const int rc = remote ? mri_mrec_open_remote(&m, remote, room, err) : mr_mrec_open(&m, path, room, err);
    return rc ? rc : add_opened(src, m, err);
}

/* Classes without names: the number of labels; 0 if a label is not a class. */
static void count_classes(mr_source *src)
{
    const set *s = src->state;
    const mri_shard_facts *f = &s->facts;
    if (f->has_labels && f->label_min >= 0 && f->label_max < MRI_MAX_CLASSES) {
        src->info.class_count = (uint32_t)(f->label_max + 1);
        src->labels.min = f->label_min;
        src->labels.max = f->label_max;
    }
    if (s->read_through)
        mri_source_tell(src,
                        "the number of classes was found by reading the whole index, because a header of "
                        "version 1.1 has no lengths: converting the data again saves that");
}

/* Indexes that are not in memory are read by pages. */
static int make_page_cache(mr_source *src, mr_error *err)
{
    set *s = src->state;
    bool all_in_memory = !s->shard;
    for (uint32_t k = 0; all_in_memory && k < s->count; k++) all_in_memory = s->file[k]->index != NULL;
    if (all_in_memory) return MR_OK;
    uint32_t pages = 1; /* no more than there are */
    while (pages < CACHE_PAGES && pages < mri_index_pages(s->start[s->count]) + s->count) pages *= 2;
    src->info.memory_bytes += mri_page_cache_memory(pages);
    return mri_page_cache_create(&s->pages, pages, err);
}

static int set_info(mr_source *src, const char *format, mr_error *err)
{
    set *s = src->state;
    const mri_meta *meta = &s->file[0]->meta;
    mr_source_info *info = &src->info;
    s->meta = *meta;
    s->meta.coef = s->facts.coef;
    info->format = format;
    info->count = s->start[s->count];
    info->max_extent_bytes = s->facts.record_bytes_max;
    info->total_bytes = s->facts.record_bytes_total;
    info->class_count = meta->class_count;
    info->class_names = meta->class_names;
    info->field_count = meta->field_count;
    info->fields = meta->fields;
    info->image_field = meta->image_field;
    info->label_field = meta->label_field;
    info->file_count = s->count;
    s->entries = mri_field_entries(meta->fields, meta->field_count);
    s->name = mri_field_name(meta->fields, meta->field_count);
    if (mri_lengths_of(meta->fields, meta->field_count, &s->lengths)) {
        info->length_field = s->lengths.field;
        info->length_most = mri_lengths_elements(&s->lengths, info->max_extent_bytes);
    }
    const mr_field *image = meta->image_field >= 0 ? &meta->fields[meta->image_field] : NULL;
    const bool fits = image && image->ndim == 3 && image->dim[0] <= UINT32_MAX &&
                      image->dim[1] <= UINT32_MAX && image->dim[2] <= UINT32_MAX;
    if (fits) {
        info->height = (uint32_t)image->dim[0];
        info->width = (uint32_t)image->dim[1];
        info->channels = (uint32_t)image->dim[2];
    }
    if (meta->label_start) src->labels.start = meta->label_start;
    src->labels.unsure = info->class_count == 0 && info->label_field >= 0 && !s->keeps_numbers;
    if (info->class_count == 0 && info->label_field >= 0) count_classes(src);
    s->class_count = info->class_count;
    const int rc = mri_source_columns_from(src, meta->provenance, err);
    return rc ? rc : make_page_cache(src, err);
}

static int mrec_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    int rc = set_create(src, 1, err);
    mri_remote_file *remote = src->view ? mri_remote_first(src->view->remote) : NULL;
    if (!rc) rc = set_add(src, src->path, remote, cfg, err);
    if (rc) return rc;
    const set *s = src->state;
    src->info.fingerprint = s->file[0]->h.fingerprint;
    return set_info(src, "mrec", err);
}

/* ---- shards ---- */
/* Does the file added last match its line in the list? */
static int check_added(const set *s, const mri_shards *list, mr_error *err)
{
    const mr_mrec *m = s->file[s->count - 1];
    const int rc = mri_shard_check(&list->shard[s->count - 1], s->listed ? &s->facts : NULL, m, err);
    return rc ? rc : mri_shard_check_meta(s->file[0], m, err);
}

/* Append to the message what to do, and with which list. err may be NULL. */
static void advise(const mr_source *src, mr_error *err)
{
    char list[256];
    const size_t len = strlen(src->path);
    if (!err) return;
    /* the end of a long path is more useful than its start */
    snprintf(list, sizeof list, "%s", len < sizeof list ? src->path : src->path + len + 1 - sizeof list);
    mri_remote_view_name(src->view, list, sizeof list);
    const size_t at = strlen(err->text);
    snprintf(err->text + at, sizeof err->text - at,
             "; the list is %s: put the file back that it was made of, or make the list again", list);
}

static int add_path(mr_source *src, const char *path, const mr_source_config *cfg, uint32_t files,
                    mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    const int rc = set_add(src, path, NULL, cfg, &why);
    if (rc && why.sys_errno == EMFILE)
        mri_error_place(&why, mri_too_many_files(files, &why), path, MR_NOWHERE, MR_NOWHERE);
    if (rc && err) *err = why;
    return rc;
}

static int add_local(mr_source *src, const mri_shards *list, uint32_t at, const mr_source_config *cfg,
                     mr_error *err)
{
    char *path = mri_shards_resolve(src->path, list->shard[at].path);
    if (!path) return mr_error_set(err, MR_ENOMEM, "no memory for the path of a shard");
    const int rc = add_path(src, path, cfg, list->count, err);
    free(path);
    return rc;
}

/* ---- more files than are kept open ---- */
/* A file that is known by its line. */
static int add_closed(mr_source *src, const mri_shards *list, uint32_t at, mr_error *err)
{
    set *s = src->state;
    const mri_shard *line = &list->shard[at];
    char *path = mri_shards_resolve(src->path, line->path);
    if (!path) return mr_error_set(err, MR_ENOMEM, "no memory for the path of a shard");
    s->shard[at] = (shard){path, line->file_bytes, line->fingerprint};
    s->start[at + 1] = s->start[at] + line->count;
    s->count++;
    src->info.memory_bytes += strlen(path) + 1;
    return MR_OK;
}

/* Keep only the data needed to reopen the file, and close it, except for the first. */
static int let_go(mr_source *src, mr_error *err)
{
    set *s = src->state;
    const uint32_t at = s->count - 1;
    mr_mrec *m = s->file[at];
    shard *mine = &s->shard[at];
    *mine = (shard){strdup(m->path), m->h.file_bytes, m->h.fingerprint};
    if (!mine->path) return mr_error_set(err, MR_ENOMEM, "no memory for the path of a shard");
    if (at == 0) return MR_OK;
    src->info.memory_bytes += strlen(mine->path) + 1;
    src->info.memory_bytes -= mri_mrec_memory_bytes(m);
    s->file[at] = NULL;
    mr_mrec_close(m);
    return MR_OK;
}

/* Is this the file of that number? */
static int check_again(const set *s, uint32_t number, const mr_mrec *m, mr_error *err)
{
    const shard *mine = &s->shard[number];
    const mri_shard line = {s->start[number + 1] - s->start[number], mine->file_bytes, mine->fingerprint,
                            mine->path};
    int rc = s->listed ? mri_shard_check(&line, &s->facts, m, err) : MR_OK;
    if (!rc && s->listed) rc = mri_shard_check_meta(s->file[0], m, err);
    if (s->listed || (m->h.file_bytes == mine->file_bytes && m->h.fingerprint == mine->fingerprint))
        return rc;
    return mri_error_place(
        err, mr_error_set(err, MR_EFORMAT, "the file has changed since the data set was opened"), mine->path,
        MR_NOWHERE, MR_NOWHERE);
}

static int pool_open(void *context, uint32_t number, void **object, mr_error *err)
{
    const mr_source *src = context;
    const set *s = src->state;
    mr_mrec *m;
    mr_error why = MR_ERROR_INIT;
    int rc = mr_mrec_open(&m, s->shard[number].path, 0, &why);
    if (!rc && (rc = check_again(s, number, m, &why))) mr_mrec_close(m);
    if (!rc) *object = m;
    if (rc && mr_error_of_sample(rc, &why)) { /* all its samples are gone: no fault of one */
        advise(src, &why);
        rc = why.code = MR_EIO;
        why.sys_errno = ESTALE;
    }
    if (rc && err) *err = why;
    return rc;
}

static void pool_close(void *object) { mr_mrec_close(object); }

static int make_pool(mr_source *src, mr_error *err)
{
    set *s = src->state;
    const mri_open_ops ops = {pool_open, pool_close, src};
    const uint32_t most = s->allowed;
    s->allowed = 0; /* the pool's now */
    src->info.memory_bytes += mri_open_pool_memory(s->count, most) + s->count * sizeof *s->shard +
                              most * mri_mrec_memory_bytes(s->file[0]);
    return mri_open_pool_create(&s->pool, s->count, most, &ops, err);
}

static int shard_acquire(const set *s, uint32_t k, bool must, const mr_mrec **out, mr_error *err)
{
    void *object;
    *out = s->file[k];
    if (!s->pool) return MR_OK;
    const int rc = mri_open_pool_acquire(s->pool, k, must, &object, err);
    if (!rc) *out = object;
    return rc;
}

static void shard_release(const set *s, uint32_t k)
{
    if (s->pool) mri_open_pool_release(s->pool, k);
}

/* How many files may be open; more are looked at one after the other. */
static int choose_bound(mr_source *src, const mri_shards *list, mr_error *err)
{
    set *s = src->state;
    if (src->view) return MR_OK; /* remote files have one descriptor each already */
    s->allowed = mri_open_allow(list->count);
    if (s->allowed == list->count) return MR_OK;
    s->shard = calloc(list->count, sizeof *s->shard);
    return s->shard ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for a list of %u files", list->count);
}

/* All of them are asked for at once. Their names are taken as the list's own: never as names of files
 * here. */
static int begin_remote(mr_source *src, const mri_shards *list, mri_remote_file **files, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t k = 0; !rc && src->view && k < list->count; k++) {
        char *url = mri_url_join(mri_remote_url(mri_remote_first(src->view->remote)), list->shard[k].path);
        rc = url ? mri_remote_begin(src->view->remote, &files[k], url, err)
                 : mr_error_set(err, MR_ENOMEM, "no memory for the URL of a shard");
        free(url);
    }
    return rc;
}

/* One file after the other is opened: all of them, or of a list of version 2 that has more than may be open,
 * the first. */
static int add_shards(mr_source *src, const mri_shards *list, mri_remote_file **files,
                      const mr_source_config *cfg, mr_error *err)
{
    const set *s = src->state;
    const uint32_t opened = s->listed && s->shard ? 1 : list->count;
    int rc = begin_remote(src, list, files, err);
    for (uint32_t k = 0; !rc && k < opened; k++) {
        if (files[k]) rc = mri_remote_finish(files[k], err);
        if (!rc) rc = files[k] ? set_add(src, "", files[k], cfg, err) : add_local(src, list, k, cfg, err);
        if (!rc) rc = check_added(s, list, err);
        if (rc && mr_error_of_sample(rc, err)) advise(src, err);
        if (!rc && s->shard) rc = let_go(src, err);
        if (!rc) rc = mri_source_budget(cfg, s->shard ? src->info.memory_bytes : 0, src->path, err);
    }
    for (uint32_t k = opened; !rc && k < list->count; k++) rc = add_closed(src, list, k, err);
    if (!rc && s->shard) rc = mri_source_budget(cfg, src->info.memory_bytes, src->path, err);
    return rc || !s->shard ? rc : make_pool(src, err);
}

static int begin_shards(mr_source *src, const mri_shards *list, mr_error *err)
{
    int rc = set_create(src, list->count, err);
    set *s = src->state;
    if (rc) return rc;
    s->listed = list->version == MRI_SHARDS_FACTS;
    if (s->listed) s->facts = list->facts;
    return choose_bound(src, list, err);
}

static int shards_open(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    mri_shards list;
    int rc = mri_shards_read(&list, src->path, err);
    if (rc) return rc;
    mri_remote_file **files = calloc(list.count, sizeof *files);
    rc = files ? begin_shards(src, &list, err) : mr_error_set(err, MR_ENOMEM, "no memory for a shard list");
    if (!rc) rc = add_shards(src, &list, files, cfg, err);
    free(files);
    mri_shards_fini(&list);
    if (rc) return rc;
    src->info.fingerprint = ((const set *)src->state)->facts.fingerprint;
    return set_info(src, "shards", err);
}

/* ---- samples ---- */
static uint32_t shard_of(const set *s, uint64_t sample)
{
    uint32_t low = 0, high = s->count - 1;
    /* the last shard that begins at or before the sample; empty ones share their start */
    while (low < high) {
        const uint32_t mid = low + (high - low + 1) / 2;
        if (s->start[mid] <= sample) low = mid;
        else high = mid - 1;
    }
    return low;
}

/* The file's own numbering must not reach the caller. */
static int in_set(int rc, uint64_t sample, mr_error *err)
{
    return rc ? mri_error_place(err, rc, NULL, MR_NOWHERE, sample) : MR_OK;
}

typedef struct page_of {
    const set *s;
    uint32_t shard;
} page_of;

enum { PAGE_BITS = 40 }; /* a file's pages are numbered below 2^40: one cache holds the pages of all files */

static int fill_page(const void *context, uint64_t number, uint8_t *out, mr_error *err)
{
    const page_of *of = context;
    const mr_mrec *m;
    int rc = shard_acquire(of->s, of->shard, true, &m, err);
    if (rc) return rc;
    rc = mri_mrec_index_page(m, number & ((UINT64_C(1) << PAGE_BITS) - 1), out, err);
    shard_release(of->s, of->shard);
    return rc;
}

static int set_entry(const set *s, uint64_t sample, uint32_t *file, mri_index_entry *out, mr_error *err)
{
    const uint32_t k = shard_of(s, sample);
    const uint64_t record = sample - s->start[k], page = record / MRI_INDEX_PER_PAGE;
    if (file) *file = k;
    if (!s->shard && s->file[k]->index) return mri_mrec_entry(s->file[k], record, out, err);
    const page_of of = {s, k};
    const uint32_t slot = (uint32_t)(record % MRI_INDEX_PER_PAGE);
    uint8_t one[MRI_INDEX_HEAD + MRI_INDEX_ENTRY];
    const int rc = mri_page_cache_get(s->pages, (uint64_t)k << PAGE_BITS | page,
                                      MRI_INDEX_HEAD + (size_t)slot * MRI_INDEX_ENTRY, one + MRI_INDEX_HEAD,
                                      MRI_INDEX_ENTRY, fill_page, &of, err);
    if (!rc) mri_index_get(one, 0, out);
    return rc;
}

static int set_extent(const mr_source *src, uint64_t sample, mr_extent *out, mr_error *err)
{
    mri_index_entry e;
    const int rc = set_entry(src->state, sample, &out->file, &e, err);
    if (rc) return in_set(rc, sample, err);
    out->offset = e.offset;
    out->bytes = e.bytes;
    return MR_OK;
}

static int set_label(const mr_source *src, uint64_t sample, int64_t *out)
{
    if (src->info.label_field < 0) return MR_EUNSUPPORTED;
    mri_index_entry e;
    const int rc = set_entry(src->state, sample, NULL, &e, NULL);
    if (rc) return rc;
    const uint32_t classes = ((const set *)src->state)->class_count; /* whatever number they get afterwards */
    if (classes && (e.label < 0 || e.label >= classes)) return MR_EFORMAT; /* nor will its record be taken */
    *out = e.label;
    return MR_OK;
}

static bool set_labels_near(const mr_source *src) { return ((const set *)src->state)->pages == NULL; }

static int set_length(const mr_source *src, uint64_t sample, uint32_t *out)
{
    const set *s = src->state;
    mri_index_entry e;
    const int rc = set_entry(s, sample, NULL, &e, NULL);
    if (!rc) *out = mri_lengths_elements(&s->lengths, e.bytes);
    return rc;
}

static int set_file_at(const mr_source *src, uint32_t file, mr_source_file *out)
{
    const set *s = src->state;
    if (s->shard) {
        *out = (mr_source_file){
            .path = s->shard[file].path, .fd = -1, .bytes = s->shard[file].file_bytes, .direct_ok = true};
        return MR_OK;
    }
    const mr_mrec *m = s->file[file];
    *out = (mr_source_file){
        .path = m->path, .fd = m->fd, .bytes = m->h.file_bytes, .direct_ok = m->remote == NULL};
    return MR_OK;
}

static int set_file_acquire(const mr_source *src, uint32_t file, bool must, int *fd, mr_error *err)
{
    const mr_mrec *m;
    const int rc = shard_acquire(src->state, file, must, &m, err);
    if (!rc) *fd = m->fd;
    return rc;
}

static void set_file_release(const mr_source *src, uint32_t file) { shard_release(src->state, file); }

static mri_remote_file *set_remote_at(const mr_source *src, uint32_t file)
{
    const set *s = src->state;
    return s->shard ? NULL : s->file[file]->remote;
}

static void set_sample_path(const mr_source *src, uint64_t sample, char *buf, size_t buf_bytes)
{
    const set *s = src->state;
    const uint32_t k = shard_of(s, sample);
    snprintf(buf, buf_bytes, "%s", s->shard ? s->shard[k].path : s->file[k]->path);
}

static int set_name(const mr_source *src, uint64_t sample, const void *data, size_t bytes, char *buf,
                    size_t buf_bytes, mr_error *err)
{
    (void)sample, (void)err;
    const set *s = src->state;
    const mri_meta *meta = &s->file[0]->meta;
    const uint8_t *name;
    size_t name_bytes;
    if (s->name < 0 || !mri_record_payload(meta, data, bytes, (uint32_t)s->name, &name, &name_bytes))
        return MR_OK;
    snprintf(buf, buf_bytes, "%.*s", (int)mri_min_u64(name_bytes, buf_bytes), (const char *)name);
    return MR_OK;
}

/* Entry points go with the picture they belong to. */
static void join_entries(const mr_source *src, mr_sample *out)
{
    const set *s = src->state;
    mr_value *image = s->entries >= 0 ? &out->value[src->info.image_field] : NULL;
    if (!image || image->type != MR_TYPE_JPEG || out->value[s->entries].bytes == 0) return;
    image->entries = out->value[s->entries].data;
    image->entries_bytes = out->value[s->entries].bytes;
}

/* A record of a file that need not be open: its fields are the same as in all files. */
static int parse_closed(const set *s, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                        mr_error *err)
{
    mri_record_facts facts;
    mri_index_entry e;
    uint32_t k;
    const int rc = mri_record_parse(&s->meta, data, bytes, out, &facts, err);
    if (!rc || !err) return rc;
    if (set_entry(s, sample, &k, &e, NULL) == MR_OK)
        mr_error_at(err, s->shard[k].path, e.offset + (err->offset == MR_NOWHERE ? 0 : err->offset),
                    MR_NOWHERE);
    return rc;
}

static int set_parse(const mr_source *src, uint64_t sample, const void *data, size_t bytes, mr_sample *out,
                     mr_error *err)
{
    const set *s = src->state;
    const uint32_t k = shard_of(s, sample);
    const int rc = s->shard ? parse_closed(s, sample, data, bytes, out, err)
                            : mr_mrec_parse(s->file[k], sample - s->start[k], data, bytes, out, NULL, err);
    if (rc) return in_set(rc, sample, err);
    join_entries(src, out);
    return MR_OK;
}

static int set_parse_trusted(const mr_source *src, uint64_t sample, const void *data, size_t bytes,
                             mr_sample *out, mr_error *err)
{
    const set *s = src->state;
    const int rc = mri_record_parse_trusted(&s->meta, data, bytes, out, err);
    if (rc) return in_set(rc, sample, err);
    join_entries(src, out);
    return MR_OK;
}

/* Do the facts of the list add up from all files? Each is compared with its line on the way. */
static int shards_check(const mr_source *src, mr_error *err)
{
    const set *s = src->state;
    const bool labels = s->facts.has_labels;
    mri_shard_facts found;
    int rc = MR_OK;
    mri_shard_facts_init(&found);
    for (uint32_t k = 0; s->listed && !rc && k < s->count; k++) {
        const mr_mrec *m;
        rc = mri_stop_asked() ? mri_stopped(err) : MR_OK;
        if (!rc) rc = shard_acquire(s, k, true, &m, err);
        if (rc) return rc;
        rc = mri_shard_facts_add(&found, m, labels, err);
        shard_release(s, k);
    }
    if (rc || !s->listed || mri_shard_facts_equal(&found, &s->facts)) return rc;
    mr_error_set(
        err, MR_EFORMAT,
        "line 2: expected %llu bytes of records, the largest of %llu, labels %lld to %lld, "
        "coefficients %d, as the files have; found %llu, %llu, %lld to %lld, %d: make the list again",
        (unsigned long long)found.record_bytes_total, (unsigned long long)found.record_bytes_max,
        (long long)found.label_min, (long long)found.label_max, found.coef,
        (unsigned long long)s->facts.record_bytes_total, (unsigned long long)s->facts.record_bytes_max,
        (long long)s->facts.label_min, (long long)s->facts.label_max, s->facts.coef);
    return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
}

const mri_source_ops mri_source_mrec = {
    .name = "mrec",
    .help = "a millrace record file",
    .no_keys = true,
    .probe = mrec_probe,
    .open = mrec_open,
    .close = set_close,
    .extent = set_extent,
    .label = set_label,
    .labels_near = set_labels_near,
    .length = set_length,
    .file_at = set_file_at,
    .file_acquire = set_file_acquire,
    .file_release = set_file_release,
    .remote_at = set_remote_at,
    .sample_path = set_sample_path,
    .parse = set_parse,
    .parse_trusted = set_parse_trusted,
    .sample_name = set_name,
};

const mri_source_ops mri_source_shards = {
    .name = "shards",
    .help = "a list of millrace record files that together are one data set",
    .no_keys = true,
    .probe = shards_probe,
    .open = shards_open,
    .close = set_close,
    .extent = set_extent,
    .label = set_label,
    .labels_near = set_labels_near,
    .length = set_length,
    .file_at = set_file_at,
    .file_acquire = set_file_acquire,
    .file_release = set_file_release,
    .remote_at = set_remote_at,
    .check = shards_check,
    .sample_path = set_sample_path,
    .parse = set_parse,
    .parse_trusted = set_parse_trusted,
    .sample_name = set_name,
};
