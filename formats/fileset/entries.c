/* formats/fileset/entries.c: see entries.h. */
#include "formats/fileset/entries.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "formats/source/classes.h"

enum {
    RUN_PAGES = 256,    /* 1 MiB: written and read at a time */
    CACHE_PAGES = 1024, /* of pages on disk: 4 MiB */
    FIRST_PAGES = 4
};

void mri_entries_init(mri_entries *e)
{
    *e = (mri_entries){.fd = -1};
    mri_entries_sums_init(&e->sums);
}

void mri_entries_fini(mri_entries *e)
{
    free(e->page);
    mri_page_cache_destroy(e->cache);
    mri_entries_init(e);
}

uint64_t mri_entries_memory(const mri_entries *e)
{
    return e->page_cap * MRI_ENTRY_PAGE + (e->cache ? mri_page_cache_memory(CACHE_PAGES) : 0);
}

uint64_t mri_entries_disk_memory(void)
{
    return mri_page_cache_memory(CACHE_PAGES) + (uint64_t)RUN_PAGES * MRI_ENTRY_PAGE;
}

/* ---- sums ---- */
void mri_entries_sums_init(mri_entries_sums *s)
{
    *s = (mri_entries_sums){.class_min = MRI_MAX_CLASSES, .class_max = -1};
}

void mri_entries_sums_add(mri_entries_sums *s, const mri_entry *one)
{
    s->total_bytes += one->bytes;
    s->max_bytes = mri_max_u64(s->max_bytes, one->bytes);
    if (one->label == MRI_NO_LABEL) return;
    if (s->labelled == 0 || one->label < s->label_min) s->label_min = one->label;
    if (s->labelled == 0 || one->label > s->label_max) s->label_max = one->label;
    s->labelled++;
    if (one->label < 0 || one->label >= MRI_MAX_CLASSES) return;
    if (one->label < s->class_min) s->class_min = one->label;
    if (one->label > s->class_max) s->class_max = one->label;
}

/* ---- pages ---- */
static uint32_t entries_of(uint64_t count, uint64_t page)
{
    return (uint32_t)mri_min_u64(count - page * MRI_ENTRIES_PER_PAGE, MRI_ENTRIES_PER_PAGE);
}

static void put(uint8_t *page, uint32_t slot, const mri_entry *one)
{
    uint8_t *p = page + MRI_ENTRY_PAGE_HEAD + (size_t)slot * MRI_ENTRY_BYTES;
    mri_put_le64(p, one->offset);
    mri_put_le32(p + 8, one->bytes);
    mri_put_le64(p + 12, (uint64_t)one->label);
}

static mri_entry decode(const uint8_t *p)
{
    return (mri_entry){mri_le64(p), mri_le32(p + 8), (int64_t)mri_le64(p + 12)};
}

static void seal(uint8_t *page, uint64_t number, uint32_t entries)
{
    const size_t used = MRI_ENTRY_PAGE_HEAD + (size_t)entries * MRI_ENTRY_BYTES;
    memset(page + used, 0, MRI_ENTRY_PAGE - used);
    mri_put_le32(page + 4, entries);
    mri_put_le64(page + 8, number);
    mri_put_le32(page, mr_crc32c(0, page + 4, MRI_ENTRY_PAGE - 4));
}

static int check_page(const mri_entries *e, const uint8_t *page, uint64_t number, mr_error *err)
{
    const uint32_t stored = mri_le32(page), found = mr_crc32c(0, page + 4, MRI_ENTRY_PAGE - 4);
    int rc = MR_OK;
    if (stored != found)
        rc = mr_error_set(
            err, MR_ECHECKSUM,
            "the index is damaged: expected checksum %08x, found %08x: remove it, and it is built anew",
            stored, found);
    else if (mri_le32(page + 4) != entries_of(e->count, number) || mri_le64(page + 8) != number)
        rc = mr_error_set(err, MR_EFORMAT, "the index is not in order: remove it, and it is built anew");
    return rc ? mri_error_place(err, rc, e->path, e->at + number * MRI_ENTRY_PAGE, MR_NOWHERE) : MR_OK;
}

/* ---- build ---- */
static int write_run(mri_entries *e, uint64_t first, uint64_t pages, mr_error *err)
{
    return mri_pwrite_all(e->fd, e->page, (size_t)pages * MRI_ENTRY_PAGE, e->at + first * MRI_ENTRY_PAGE,
                          e->path, err);
}

/* From memory to disk, with all that is there so far. */
static int leave_memory(mri_entries *e, uint64_t pages, const mri_entries_room *room, mr_error *err)
{
    int fd;
    int rc = room->spill(room->context, &fd, &e->at, &e->path, err);
    if (rc) return rc;
    e->fd = fd;
    rc = write_run(e, 0, pages, err);
    const uint64_t first = pages / RUN_PAGES * RUN_PAGES; /* of the run that is begun */
    if (!rc) memmove(e->page, e->page + first * MRI_ENTRY_PAGE, (size_t)(pages - first) * MRI_ENTRY_PAGE);
    uint8_t *run = rc ? NULL : realloc(e->page, (size_t)RUN_PAGES * MRI_ENTRY_PAGE);
    if (rc) return rc;
    if (!run)
        return mr_error_set(err, MR_ENOMEM, "no memory for an index of %llu samples",
                            (unsigned long long)e->count);
    e->page = run;
    e->page_cap = RUN_PAGES;
    return MR_OK;
}

/* Room for page `pages`, where there are as many. */
static int grow(mri_entries *e, uint64_t pages, const mri_entries_room *room, mr_error *err)
{
    const uint64_t most = room->memory_bytes / MRI_ENTRY_PAGE;
    const uint64_t cap = mri_min_u64(pages ? 2 * pages : FIRST_PAGES, most);
    if (cap <= pages && pages > 0) return leave_memory(e, pages, room, err);
    const uint64_t room_for = cap ? cap : 1; /* one page goes even where none may */
    uint8_t *larger = realloc(e->page, (size_t)room_for * MRI_ENTRY_PAGE);
    if (!larger)
        return mr_error_set(err, MR_ENOMEM, "no memory for an index of %llu samples",
                            (unsigned long long)e->count);
    e->page = larger;
    e->page_cap = room_for;
    return MR_OK;
}

int mri_entries_add(mri_entries *e, const mri_entry *one, const mri_entries_room *room, mr_error *err)
{
    const uint64_t number = e->count / MRI_ENTRIES_PER_PAGE;
    const uint32_t slot = (uint32_t)(e->count % MRI_ENTRIES_PER_PAGE);
    if (slot == 0 && e->fd < 0 && number == e->page_cap) {
        const int rc = grow(e, number, room, err);
        if (rc) return rc;
    }
    uint8_t *page = e->page + (e->fd < 0 ? number : number % RUN_PAGES) * MRI_ENTRY_PAGE;
    put(page, slot, one);
    mri_entries_sums_add(&e->sums, one);
    e->count++;
    if (slot + 1 < MRI_ENTRIES_PER_PAGE) return MR_OK;
    seal(page, number, MRI_ENTRIES_PER_PAGE);
    if (e->fd < 0 || number % RUN_PAGES != RUN_PAGES - 1) return MR_OK;
    return write_run(e, number - (RUN_PAGES - 1), RUN_PAGES, err);
}

int mri_entries_finish(mri_entries *e, mr_error *err)
{
    const uint64_t pages = mri_entries_pages(e->count), begun = pages ? pages - 1 : 0;
    const uint64_t first = begun / RUN_PAGES * RUN_PAGES;
    if (pages)
        seal(e->page + (begun - (e->fd < 0 ? 0 : first)) * MRI_ENTRY_PAGE, begun,
             entries_of(e->count, begun));
    if (e->fd < 0) return MR_OK;
    int rc = write_run(e, first, pages - first, err); /* the last run, written before or not */
    if (!rc) rc = mri_page_cache_create(&e->cache, CACHE_PAGES, err);
    if (rc) return rc;
    free(e->page);
    e->page = NULL;
    e->page_cap = 0;
    return MR_OK;
}

int mri_entries_write(const mri_entries *e, int fd, uint64_t at, const char *path, mr_error *err)
{
    return mri_pwrite_all(fd, e->page, (size_t)mri_entries_pages(e->count) * MRI_ENTRY_PAGE, at, path, err);
}

/* ---- load ---- */
int mri_entries_load(mri_entries *e, int fd, uint64_t at, const char *path, uint64_t count, bool in_memory,
                     mr_error *err)
{
    const uint64_t pages = mri_entries_pages(count);
    e->count = count;
    e->at = at;
    e->path = path;
    if (!in_memory) {
        e->fd = fd;
        return mri_page_cache_create(&e->cache, CACHE_PAGES, err);
    }
    e->page = malloc(pages ? (size_t)pages * MRI_ENTRY_PAGE : 1);
    if (!e->page)
        return mr_error_set(err, MR_ENOMEM, "no memory for an index of %llu samples",
                            (unsigned long long)count);
    e->page_cap = pages;
    int rc = mri_pread_all(fd, e->page, (size_t)pages * MRI_ENTRY_PAGE, at, path, err);
    for (uint64_t k = 0; !rc && k < pages; k++) rc = check_page(e, e->page + k * MRI_ENTRY_PAGE, k, err);
    return rc;
}

/* ---- asked ---- */
static int fill(const void *context, uint64_t page, uint8_t *out, mr_error *err)
{
    const mri_entries *e = context;
    const int rc = mri_pread_all(e->fd, out, MRI_ENTRY_PAGE, e->at + page * MRI_ENTRY_PAGE, e->path, err);
    return rc ? rc : check_page(e, out, page, err);
}

int mri_entries_get(const mri_entries *e, uint64_t k, mri_entry *out, mr_error *err)
{
    const uint64_t page = k / MRI_ENTRIES_PER_PAGE;
    const size_t at = MRI_ENTRY_PAGE_HEAD + (size_t)(k % MRI_ENTRIES_PER_PAGE) * MRI_ENTRY_BYTES;
    uint8_t one[MRI_ENTRY_BYTES];
    if (e->fd < 0) {
        *out = decode(e->page + page * MRI_ENTRY_PAGE + at);
        return MR_OK;
    }
    const int rc = mri_page_cache_get(e->cache, page, at, one, sizeof one, fill, e, err);
    if (!rc) *out = decode(one);
    return rc;
}

void mri_entries_walk_init(mri_entries_walk *w, const mri_entries *e) { *w = (mri_entries_walk){.e = e}; }

void mri_entries_walk_fini(mri_entries_walk *w) { free(w->run); }

static int read_run(mri_entries_walk *w, uint64_t page, mr_error *err)
{
    const mri_entries *e = w->e;
    const uint64_t pages = mri_min_u64(mri_entries_pages(e->count) - page, RUN_PAGES);
    if (!w->run) w->run = malloc((size_t)RUN_PAGES * MRI_ENTRY_PAGE);
    if (!w->run) return mr_error_set(err, MR_ENOMEM, "no memory to read an index");
    int rc = mri_pread_all(e->fd, w->run, (size_t)pages * MRI_ENTRY_PAGE, e->at + page * MRI_ENTRY_PAGE,
                           e->path, err);
    for (uint64_t k = 0; !rc && k < pages; k++)
        rc = check_page(e, w->run + k * MRI_ENTRY_PAGE, page + k, err);
    return rc;
}

int mri_entries_walk_next(mri_entries_walk *w, mri_entry *out, mr_error *err)
{
    const mri_entries *e = w->e;
    if (w->next == e->count) return MR_EEND;
    const uint64_t page = w->next / MRI_ENTRIES_PER_PAGE;
    const uint32_t slot = (uint32_t)(w->next % MRI_ENTRIES_PER_PAGE);
    if (e->fd >= 0 && slot == 0 && page % RUN_PAGES == 0) {
        const int rc = read_run(w, page, err);
        if (rc) return rc;
    }
    const uint8_t *p =
        e->fd < 0 ? e->page + page * MRI_ENTRY_PAGE : w->run + page % RUN_PAGES * MRI_ENTRY_PAGE;
    *out = decode(p + MRI_ENTRY_PAGE_HEAD + (size_t)slot * MRI_ENTRY_BYTES);
    w->next++;
    return MR_OK;
}
