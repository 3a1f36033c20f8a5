/* formats/remote/remote.c: blocks of remote files, and their requests; see remote.h.
 *
 * The set's lock guards all lists and states; disk operations under it are short (a mark of 8 bytes, a
 * byte-range lock, a hole). Reading a block to compare its checksum, and every wait for the network, happen
 * without it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <xxhash.h>

#include "formats/remote/remote_private.h"

/* ---- lists ---- */
void mri_blocks_push(mri_blocks *l, mri_block *b)
{
    b->after = NULL;
    b->before = l->tail;
    *(l->tail ? &l->tail->after : &l->head) = b;
    l->tail = b;
}

void mri_blocks_remove(mri_blocks *l, mri_block *b)
{
    *(b->before ? &b->before->after : &l->head) = b->after;
    *(b->after ? &b->after->before : &l->tail) = b->before;
    b->before = b->after = NULL;
}

mri_block *mri_blocks_pop(mri_blocks *l)
{
    mri_block *b = l->head;
    if (b) mri_blocks_remove(l, b);
    return b;
}

static void push_request(mri_block_request_list *l, mri_block_request *w)
{
    w->after = NULL;
    w->before = l->tail;
    *(l->tail ? &l->tail->after : &l->head) = w;
    l->tail = w;
}

static void admit_all(mri_remote *r);

static void remove_request(mri_block_request_list *l, mri_block_request *w)
{
    *(w->before ? &w->before->after : &l->head) = w->after;
    *(w->after ? &w->after->before : &l->tail) = w->before;
    w->before = w->after = NULL;
}

/* ---- blocks ---- */
static void pin(mri_remote_file *f, mri_block *b)
{
    mri_remote *r = f->set;
    b->file = f->number; /* written here first: a size claimed by a server takes no memory by itself */
    if (b->pins++ == 0 && b->listed) {
        mri_blocks_remove(&r->unpinned, b);
        b->listed = 0;
    }
}

static void count_out(mri_remote_file *f, mri_block *b)
{
    if (!b->counted) return;
    b->counted = 0;
    f->set->used -= mri_entry_block_bytes(&f->entry, mri_block_number(f, b));
}

static void count_in(mri_remote_file *f, mri_block *b)
{
    if (b->counted) return;
    b->counted = 1;
    f->set->used += mri_entry_block_bytes(&f->entry, mri_block_number(f, b));
}

/* One that is still on its way is unlisted until it arrives. */
static void unpin(mri_remote_file *f, mri_block *b)
{
    if (--b->pins > 0 || (b->state != MRI_READY && b->state != MRI_NOTHING)) return;
    mri_entry_lock(&f->entry, mri_block_number(f, b), F_UNLCK);
    if (!b->counted) return;
    mri_blocks_push(&f->set->unpinned, b);
    b->listed = 1;
}

/* A block in use again: another program may have dropped it while nobody here held it. */
static bool still_ready(mri_remote_file *f, mri_block *b)
{
    const uint64_t number = mri_block_number(f, b);
    uint64_t mark;
    if (b->state != MRI_READY) return false;
    if (b->pins > 1) return true;
    return mri_entry_lock(&f->entry, number, F_RDLCK) && mri_entry_marks(&f->entry, number, 1, &mark) &&
           mark == b->mark;
}

static bool drop_one(mri_remote *r)
{
    mri_block *b = mri_blocks_pop(&r->unpinned);
    if (!b) return false;
    mri_remote_file *f = r->file[b->file];
    b->listed = 0;
    mri_entry_drop(&f->entry, mri_block_number(f, b)); /* where another program uses it, it counts for that
                                                          one */
    b->state = MRI_NOTHING;
    count_out(f, b);
    return true;
}

static bool make_room(mri_remote *r, uint64_t bytes)
{
    if (!r->looked) r->looked = mri_store_scan(&r->store, NULL) == MR_OK;
    while (r->used + r->store.closed_bytes + bytes > r->cfg.limit_bytes) {
        if (r->store.closed_count) mri_store_drop_oldest(&r->store);
        else if (!drop_one(r)) return false;
    }
    return true;
}

/* ---- wants ---- */
static void end_request_locked(mri_block_request *w, int status)
{
    mri_remote *r = w->file->set;
    remove_request(w->admitted ? &r->admitted : &r->waiting, w);
    w->over = true;
    w->status = status;
    if (w->arrived) w->arrived(w);
    pthread_cond_broadcast(&r->moved);
}

static bool touches(const mri_block_request *w, const mri_remote_file *f, uint64_t first, uint64_t count)
{
    return w->file == f && w->first < first + count && first < w->first + w->count;
}

void mri_block_ready_locked(mri_remote_file *f, mri_block *b, uint64_t mark)
{
    mri_remote *r = f->set;
    const uint64_t number = mri_block_number(f, b);
    b->state = MRI_READY;
    b->mark = mark;
    if (b->pins == 0) { /* nobody waited for it to the end: its room is others' now */
        b->pins = 1;
        unpin(f, b);
        admit_all(r);
        return;
    }
    for (mri_block_request *w = r->admitted.head, *next; w; w = next) {
        next = w->after;
        if (touches(w, f, number, 1) && --w->missing == 0) end_request_locked(w, MR_OK);
    }
}

void mri_block_failed_locked(mri_remote_file *f, mri_block *b)
{
    b->state = MRI_NOTHING;
    count_out(f, b);
    mri_entry_lock(&f->entry, mri_block_number(f, b), F_UNLCK);
}

void mri_block_requests_fail_locked(mri_remote_file *f, uint64_t first, uint64_t count, int code,
                                    const mr_error *why)
{
    f->code = code;
    f->why = *why;
    for (mri_block_request *w = f->set->admitted.head, *next; w; w = next) {
        next = w->after;
        if (touches(w, f, first, count)) end_request_locked(w, code);
    }
    admit_all(f->set); /* nobody may be left to end one of those */
}

void mri_block_requests_cancel_locked(mri_remote *r)
{
    while (r->admitted.head) end_request_locked(r->admitted.head, MR_ECANCELED);
    while (r->waiting.head) end_request_locked(r->waiting.head, MR_ECANCELED);
}

static void queue_block(mri_remote_file *f, mri_block *b)
{
    count_in(f, b);
    b->state = MRI_CHECK;
    mri_blocks_push(&f->set->check, b);
}

static uint64_t blocks_bytes(const mri_block_request *w)
{
    const uint64_t end = mri_min_u64((w->first + w->count) * MRI_BLOCK_BYTES, w->file->bytes);
    return w->count ? end - w->first * MRI_BLOCK_BYTES : 0;
}

/* False: there is no room now. */
static bool admit(mri_block_request *w)
{
    mri_remote_file *f = w->file;
    mri_remote *r = f->set;
    uint64_t more = 0;
    for (uint64_t k = w->first; k < w->first + w->count; k++)
        if (!f->block[k].counted) more += mri_entry_block_bytes(&f->entry, k);
    if (more > r->cfg.limit_bytes) return false; /* nothing was written yet */
    for (uint64_t k = w->first; k < w->first + w->count; k++)
        pin(f, &f->block[k]); /* first of all, so that none of them makes room for another */
    if (more > 0 && !make_room(r, more)) {
        for (uint64_t k = w->first; k < w->first + w->count; k++) unpin(f, &f->block[k]);
        return false;
    }
    remove_request(&r->waiting, w);
    w->admitted = true;
    push_request(&r->admitted, w);
    w->missing = w->count;
    for (uint64_t k = w->first; k < w->first + w->count; k++) {
        mri_block *b = &f->block[k];
        if (still_ready(f, b)) w->missing--;
        else if (b->state == MRI_READY || b->state == MRI_NOTHING) queue_block(f, b);
    }
    if (w->kept) r->kept += blocks_bytes(w);
    if (w->missing == 0) end_request_locked(w, MR_OK);
    return true;
}

/* Admit requests in their order. Memory held by others is returned unless it is pinned; a request that does
 * not fit next to the pinned memory never will. */
static void admit_all(mri_remote *r)
{
    while (r->waiting.head) {
        mri_block_request *w = r->waiting.head;
        if (admit(w)) continue;
        if (blocks_bytes(w) <= r->cfg.limit_bytes && r->kept <= r->cfg.limit_bytes - blocks_bytes(w)) break;
        end_request_locked(w, MR_ELIMIT);
    }
    if (r->check.head) mri_http_wake(r);
}

static void start_locked(mri_block_request *w, mri_remote_file *f, uint64_t offset, uint64_t bytes)
{
    mri_remote *r = f->set;
    w->file = f;
    w->offset = offset;
    w->bytes = bytes;
    w->first = offset / MRI_BLOCK_BYTES;
    w->count = bytes ? (offset + bytes - 1) / MRI_BLOCK_BYTES - w->first + 1 : 0;
    w->admitted = w->over = false;
    push_request(&r->waiting, w);
    if (bytes > f->bytes || offset > f->bytes - bytes) end_request_locked(w, MR_EFORMAT);
    else if (r->ended || mri_remote_is_stopped(r)) end_request_locked(w, MR_ECANCELED);
    else admit_all(r);
}

void mri_block_request_start(mri_block_request *w, mri_remote_file *f, uint64_t offset, uint64_t bytes)
{
    pthread_mutex_lock(&f->set->lock);
    start_locked(w, f, offset, bytes);
    pthread_mutex_unlock(&f->set->lock);
}

void mri_block_request_end(mri_block_request *w)
{
    mri_remote_file *f = w->file;
    mri_remote *r = f->set;
    pthread_mutex_lock(&r->lock);
    if (!w->over) remove_request(w->admitted ? &r->admitted : &r->waiting, w);
    for (uint64_t k = w->first; w->admitted && k < w->first + w->count; k++) unpin(f, &f->block[k]);
    if (w->admitted && w->kept) r->kept -= blocks_bytes(w);
    admit_all(r);
    pthread_mutex_unlock(&r->lock);
}

static int remote_error_at(mr_error *err, int code, const char *file, uint64_t offset)
{
    if (err) err->sys_errno = EREMOTEIO;
    return mri_error_place(err, code, file, offset, MR_NOWHERE);
}

int mri_block_request_status(const mri_block_request *w, mr_error *err)
{
    const mri_remote_file *f = w->file;
    mri_remote *r = f->set;
    if (w->status == MR_OK) return MR_OK;
    if (w->status == MR_ECANCELED) {
        mr_error_set(err, MR_ECANCELED, "stopped while %llu bytes were being fetched",
                     (unsigned long long)w->bytes);
    } else if (w->status == MR_ELIMIT) {
        pthread_mutex_lock(&r->lock);
        const uint64_t kept = r->kept;
        pthread_mutex_unlock(&r->lock);
        mr_error_set(err, MR_ELIMIT,
                     "%llu bytes are wanted at once, and %llu of the %llu that remote data may take "
                     "on disk are kept: allow more",
                     (unsigned long long)w->bytes, (unsigned long long)kept,
                     (unsigned long long)r->cfg.limit_bytes);
    } else if (w->status == MR_EFORMAT && (w->bytes > f->bytes || w->offset > f->bytes - w->bytes)) {
        mr_error_set(err, MR_EFORMAT, "the file ends early: expected %llu bytes, found %llu",
                     (unsigned long long)w->bytes,
                     (unsigned long long)(w->offset < f->bytes ? f->bytes - w->offset : 0));
        return mri_error_place(err, MR_EFORMAT, f->shown, w->offset, MR_NOWHERE); /* the data are wrong, not
                                                                                     the way to them */
    } else {
        pthread_mutex_lock(&r->lock);
        if (err) *err = f->why;
        pthread_mutex_unlock(&r->lock);
        return w->status;
    }
    return remote_error_at(err, w->status, f->shown, w->offset);
}

static void wait_a_while_locked(mri_remote *r)
{
    const uint64_t end = mri_now_ns() + 50000000;
    const struct timespec until = {.tv_sec = (time_t)(end / 1000000000u),
                                   .tv_nsec = (long)(end % 1000000000u)};
    pthread_cond_timedwait(&r->moved, &r->lock, &until);
}

static int wait_over(mri_block_request *w, const bool *until, mr_error *err)
{
    mri_remote *r = w->file->set;
    pthread_mutex_lock(&r->lock);
    while (!w->over) {
        if (!until) pthread_cond_wait(&r->moved, &r->lock);
        else if (__atomic_load_n(until, __ATOMIC_RELAXED)) end_request_locked(w, MR_ECANCELED);
        else wait_a_while_locked(r);
    }
    pthread_mutex_unlock(&r->lock);
    const int rc = mri_block_request_status(w, err);
    if (rc) mri_block_request_end(w);
    return rc;
}

int mri_remote_pin(mri_block_request *w, mri_remote_file *f, uint64_t offset, uint64_t bytes, mr_error *err)
{
    *w = (mri_block_request){0};
    mri_block_request_start(w, f, offset, bytes);
    return wait_over(w, NULL, err);
}

int mri_remote_read_until(mri_remote_file *f, void *data, size_t bytes, uint64_t offset, const bool *until,
                          mr_error *err)
{
    mri_block_request w = {0};
    mri_block_request_start(&w, f, offset, bytes);
    int rc = wait_over(&w, until, err);
    if (rc) return rc;
    rc = mri_pread_all(f->entry.data_fd, data, bytes, offset, f->shown, err);
    mri_block_request_end(&w);
    return rc;
}

int mri_remote_read(mri_remote_file *f, void *data, size_t bytes, uint64_t offset, mr_error *err)
{
    return mri_remote_read_until(f, data, bytes, offset, NULL, err);
}

void mri_remote_keep_begin(mri_remote_file *f)
{
    f->all = (mri_block_request){.kept = true};
    f->keeps = true;
    mri_block_request_start(&f->all, f, 0, f->bytes);
}

int mri_remote_keep_finish(mri_remote_file *f, mr_error *err)
{
    const int rc = f->keeps ? wait_over(&f->all, NULL, err) : MR_OK;
    if (rc) f->keeps = false;
    return rc;
}

void mri_remote_keep_end(mri_remote_file *f)
{
    if (f->keeps) mri_block_request_end(&f->all);
    f->keeps = false;
}

/* ---- checksums of what earlier runs left ---- */
static bool agrees(const mri_remote_file *f, uint64_t number, uint64_t mark, uint8_t *room)
{
    const size_t bytes = mri_entry_block_bytes(&f->entry, number);
    return mri_pread_all(f->entry.data_fd, room, bytes, number * MRI_BLOCK_BYTES, "", NULL) == MR_OK &&
           mri_entry_mark(mr_crc32c(0, room, bytes)) == mark;
}

/* The lock is held, and let go of for the reading. */
static void check_block(mri_remote *r, mri_remote_file *f, mri_block *b, uint8_t *room)
{
    const uint64_t number = mri_block_number(f, b);
    uint64_t mark = 0;
    bool good = false;
    if (!mri_entry_lock(&f->entry, number, F_RDLCK)) { /* being fetched by another program, or dropped */
        b->state = MRI_FOREIGN;
        mri_blocks_push(&r->foreign, b);
        return;
    }
    if (mri_entry_marks(&f->entry, number, 1, &mark) && mark != 0) {
        pthread_mutex_unlock(&r->lock);
        good = agrees(f, number, mark, room);
        pthread_mutex_lock(&r->lock);
    }
    if (good) {
        mri_block_ready_locked(f, b, mark);
    } else if (mri_entry_lock(&f->entry, number, F_WRLCK) && mri_entry_set_mark(&f->entry, number, 0)) {
        b->state = MRI_QUEUED;
        mri_blocks_push(&r->queued, b);
    } else {
        b->state = MRI_FOREIGN;
        mri_blocks_push(&r->foreign, b);
    }
}

void mri_blocks_check(mri_remote *r, uint32_t most, uint8_t *room)
{
    pthread_mutex_lock(&r->lock);
    mri_block *b;
    for (uint32_t k = 0; k < most && (b = mri_blocks_pop(&r->check)); k++)
        check_block(r, r->file[b->file], b, room);
    pthread_mutex_unlock(&r->lock);
}

/* ---- files ---- */
static void free_file(mri_remote_file *f)
{
    if (f->open) mri_entry_close(&f->entry);
    free(f->block);
    free(f->url);
    free(f->shown);
    free(f);
}

static int add_file(mri_remote *r, mri_remote_file *f, mr_error *err)
{
    int rc = MR_OK;
    pthread_mutex_lock(&r->lock);
    if (r->file_count == r->file_cap) {
        const uint32_t cap = r->file_cap ? 2 * r->file_cap : 16;
        mri_remote_file **larger = realloc(r->file, cap * sizeof *larger);
        if (larger) r->file = larger, r->file_cap = cap;
        else rc = mr_error_set(err, MR_ENOMEM, "no memory for a list of remote files");
    }
    if (!rc) {
        f->number = r->file_count;
        r->file[r->file_count++] = f;
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}

int mri_remote_begin(mri_remote *r, mri_remote_file **out, const char *url, mr_error *err)
{
    *out = NULL;
    if (strlen(url) >= MRI_URL_MAX_BYTES)
        return mr_error_set(err, MR_ELIMIT, "a URL of more than %d bytes", MRI_URL_MAX_BYTES);
    const char *fault = mri_url_fault(url);
    if (fault) return mr_error_set(err, MR_EINVAL, "%s", fault);
    mri_remote_file *f = calloc(1, sizeof *f);
    if (f) {
        f->set = r;
        f->url = strdup(url);
        f->shown = mri_url_shown(url);
        f->why = (mr_error)MR_ERROR_INIT;
    }
    int rc = f && f->url && f->shown ? MR_OK : mr_error_set(err, MR_ENOMEM, "no memory for a remote file");
    if (!rc) rc = add_file(r, f, err);
    if (rc) {
        if (f) free_file(f);
        return rc;
    }
    *out = f;
    mri_http_wake(r);
    return MR_OK;
}

/* What earlier runs left is counted, and may make room. */
static int list_blocks(mri_remote *r, mri_remote_file *f, uint64_t *marks)
{
    enum { PIECE = 4096 };
    for (uint64_t first = 0; first < f->entry.blocks; first += PIECE) {
        const size_t count = (size_t)mri_min_u64(PIECE, f->entry.blocks - first);
        if (!mri_entry_marks(&f->entry, first, count, marks)) return MR_EIO;
        for (size_t k = 0; k < count; k++) {
            if (!marks[k]) continue;
            mri_block *b = &f->block[first + k];
            b->file = f->number;
            count_in(f, b);
            mri_blocks_push(&r->unpinned, b);
            b->listed = 1;
        }
    }
    return MR_OK;
}

/* For mri_remote_told(). */
static void note_doubts_locked(mri_remote *r, const mri_remote_file *f)
{
    if (f->one_answer && r->unsure_count++ == 0) r->unsure = f;
    if (!f->entry.distrust[0] || r->distrusted) return;
    r->distrusted = f;
    memcpy(r->distrust, f->entry.distrust, sizeof r->distrust);
}

static int open_entry(mri_remote_file *f, mr_error *err)
{
    mri_remote *r = f->set;
    const char *version = f->one_answer ? "" : f->version;
    int rc = mri_entry_open(&r->store, &f->entry, f->url, f->shown, version, f->bytes, err);
    if (rc) return rc;
    f->block = calloc(f->entry.blocks ? (size_t)f->entry.blocks : 1, sizeof *f->block);
    uint64_t *marks = malloc(4096 * sizeof *marks);
    if (f->block && marks) {
        pthread_mutex_lock(&r->lock);
        rc = list_blocks(r, f, marks);
        r->looked = false;
        f->open = true;
        note_doubts_locked(r, f);
        pthread_mutex_unlock(&r->lock);
        if (rc) mr_error_set(err, rc, "cannot read the stored part of it in %s", r->store.folder);
    } else {
        rc = mr_error_set(err, MR_ENOMEM, "no memory for a remote file of %llu bytes",
                          (unsigned long long)f->bytes);
        mri_entry_close(&f->entry);
    }
    free(marks);
    return rc;
}

int mri_remote_finish(mri_remote_file *f, mr_error *err)
{
    mri_remote *r = f->set;
    pthread_mutex_lock(&r->lock);
    while (!f->answered) pthread_cond_wait(&r->moved, &r->lock);
    int rc = f->code;
    if (rc && err) *err = f->why;
    pthread_mutex_unlock(&r->lock);
    if (rc || f->open) return rc;
    rc = open_entry(f, err);
    if (!rc && f->whole_only) {
        mri_remote_keep_begin(f);
        return mri_remote_keep_finish(f, err);
    }
    return rc ? mri_error_place(err, rc, f->shown, MR_NOWHERE, MR_NOWHERE) : MR_OK;
}

int mri_remote_open(mri_remote *r, mri_remote_file **out, const char *url, mr_error *err)
{
    const int rc = mri_remote_begin(r, out, url, err);
    return rc ? rc : mri_remote_finish(*out, err);
}

bool mri_remote_told(mri_remote *r, uint32_t line, char *text, size_t text_bytes)
{
    bool any = false;
    pthread_mutex_lock(&r->lock);
    if (line == 0 && r->unsure) {
        char more[48] = "";
        if (r->unsure_count > 1) snprintf(more, sizeof more, ", and of %u others", r->unsure_count - 1);
        snprintf(
            text, text_bytes,
            "%.300s: of this file%s the server sends no version that identifies its bytes (a strong ETag, "
            "or a time of change): fetched whole in one answer, and kept for this run only",
            r->unsure->shown, more);
        any = true;
    }
    if (line == 1 && r->distrusted) {
        snprintf(
            text, text_bytes,
            "%.300s: the copy in %.300s is not used: %s; it is fetched again, and kept for this run only",
            r->distrusted->shown, r->store.folder, r->distrust);
        any = true;
    }
    pthread_mutex_unlock(&r->lock);
    return any;
}

mri_remote_file *mri_remote_first(const mri_remote *r) { return r->file[0]; }

const char *mri_remote_url(const mri_remote_file *f) { return f->url; }
int mri_remote_fd(const mri_remote_file *f) { return f->entry.data_fd; }
uint64_t mri_remote_bytes(const mri_remote_file *f) { return f->bytes; }
const char *mri_remote_shown(const mri_remote_file *f) { return f->shown; }
const char *mri_remote_key(const mri_remote_file *f) { return f->entry.key; }
const char *mri_remote_folder(const mri_remote *r) { return r->store.folder; }

/* ---- the set ---- */
int mri_remote_create(mri_remote **out, const mri_remote_config *cfg, mr_error *err)
{
    *out = NULL;
    mri_remote *r = calloc(1, sizeof *r);
    if (!r) return mr_error_set(err, MR_ENOMEM, "no memory to fetch remote data");
    r->cfg = *cfg;
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->moved, &attr);
    pthread_condattr_destroy(&attr);
    int rc = mri_http_create(r, err);
    if (!rc) rc = mri_store_open(&r->store, cfg->folder, err);
    if (!rc) {
        rc = mri_thread_start(&r->thread, "fetcher", mri_http_main, r);
        r->started = rc == MR_OK;
        if (rc) mr_error_set(err, rc, "the system refused another thread");
    }
    if (rc) {
        mri_remote_destroy(r);
        return rc;
    }
    *out = r;
    return MR_OK;
}

void mri_remote_destroy(mri_remote *r)
{
    if (!r) return;
    if (r->started) {
        pthread_mutex_lock(&r->lock);
        r->ended = true;
        mri_http_wake(r); /* before the thread sees it: then there is nothing to wake */
        pthread_mutex_unlock(&r->lock);
        pthread_join(r->thread, NULL);
    }
    mri_http_destroy(r);
    for (uint32_t k = 0; k < r->file_count; k++) free_file(r->file[k]); /* locks go with their files */
    free(r->file);
    mri_store_close(&r->store);
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
