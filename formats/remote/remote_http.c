/* formats/remote/remote_http.c: the thread that fetches: many ranges in flight over one multi handle of
 * libcurl.
 *
 *   queued blocks ──► transfer (up to 8 neighbours, one range) ──► bytes go to the file as they come;
 *        ▲                 │                                       each whole block is marked at once
 *        │                 │ cut, short, slow, 408, 429, 5xx: again, later, from the byte it has reached
 *        └── foreign ◄─────┴── final: the blocks' wants fail
 *
 * A transfer that moves less than 1 KiB/s for 10 s is cut, and so is one whose answer has not begun after 30
 * s, redirects included; these go from http to http or https, and from https to https. Waits between tries
 * double from a quarter second to ten, with jitter, or last as long as the server requests (Retry-After, up
 * to a minute); after 8 tries in a row that brought nothing the transfer has failed. For tests
 * MILLRACE_REMOTE sets them: tries=8,backoff-ms=250,stall-s=10.
 *
 * The thread also waits for everybody else: for Ctrl-C (cfg.stop) and for other programs' locks, by looking
 * now and then. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <xxhash.h>

#include "formats/remote/remote_http.h"

enum {
    AT_ONCE = 32,
    RANGE_BLOCKS = 8,
    CHECKS_AT_ONCE = 4,
    MOST_WAIT_MS = 10000,
    MOST_ASKED_S = 60,
    PROGRESS_BYTES = 65536,
    MOST_IGNORED = 65536,
    CURL_TOO_LARGE = 100, /* CURLE_TOO_LARGE of curl 8.6 and later, which ends a head of 5,000 lines itself */
    MOST_HEAD = 1 << 18,
    ANSWER_STALLS = 3,
    LOOK_MS = 100,
    FOREIGN_MS = 20,
    IDLE_MS = 1000
};

typedef struct http {
    const mri_curl_api *api;
    CURLM *multi;
    mri_transfer transfer[AT_ONCE];
    uint32_t asked;      /* files below it were asked for */
    uint64_t foreign_ns; /* when to look at other programs' blocks again */
    uint8_t *room;       /* one block */
    unsigned tries, backoff_ms, stall_s;
} http;

/* ---- settings ---- */
static int read_settings(http *h, mr_error *err)
{
    const char *at = getenv("MILLRACE_REMOTE");
    h->tries = 8, h->backoff_ms = 250, h->stall_s = 10;
    while (at && *at) {
        unsigned value;
        char name[16];
        int bytes = 0;
        if (sscanf(at, "%15[a-z-]=%6u%n", name, &value, &bytes) != 2 || (at[bytes] && at[bytes] != ','))
            break;
        unsigned *place = strcmp(name, "tries") == 0        ? &h->tries
                          : strcmp(name, "backoff-ms") == 0 ? &h->backoff_ms
                          : strcmp(name, "stall-s") == 0    ? &h->stall_s
                                                            : NULL;
        if (!place || value == 0) break;
        *place = value;
        at += bytes + (at[bytes] == ',');
    }
    if (!at || !*at) return MR_OK;
    return mr_error_set(err, MR_EINVAL,
                        "MILLRACE_REMOTE: expected tries=N,backoff-ms=N,stall-s=N, found '%.40s'", at);
}

int mri_http_create(mri_remote *r, mr_error *err)
{
    const mri_curl_api *api = mri_curl_need(err);
    if (!api) return MR_EUNSUPPORTED;
    http *h = calloc(1, sizeof *h);
    r->http = h;
    if (h) {
        h->api = api;
        h->room = malloc(MRI_BLOCK_BYTES);
        h->multi = api->curl_multi_init();
    }
    if (!h || !h->room || !h->multi) return mr_error_set(err, MR_ENOMEM, "no memory to fetch remote data");
    api->curl_multi_setopt(h->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)AT_ONCE);
    api->curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)AT_ONCE);
    return read_settings(h, err);
}

/* Says goodbye to servers: in the set's thread, where no SIGPIPE of a connection that is gone comes
 * through. */
static void hang_up(http *h)
{
    for (uint32_t k = 0; k < AT_ONCE; k++) {
        mri_transfer *t = &h->transfer[k];
        if (t->state == MRI_RUNNING) h->api->curl_multi_remove_handle(h->multi, t->easy);
        if (t->easy) h->api->curl_easy_cleanup(t->easy);
        *t = (mri_transfer){0};
    }
    if (h->multi) h->api->curl_multi_cleanup(h->multi);
    h->multi = NULL;
}

void mri_http_destroy(mri_remote *r)
{
    http *h = r->http;
    if (!h) return;
    hang_up(h);
    free(h->room);
    free(h);
    r->http = NULL;
}

void mri_http_wake(mri_remote *r)
{
    http *h = r->http;
    h->api->curl_multi_wakeup(h->multi);
}

/* ---- bytes that come ---- */
static int cannot_keep(mri_transfer *t, int code)
{
    mr_error_sys(&t->why, code, "cannot write fetched bytes to %s", t->file->set->store.folder);
    return t->verdict = MR_EIO;
}

static int block_is_here(mri_transfer *t, mri_block *b, uint64_t number)
{
    mri_remote_file *f = t->file;
    const uint64_t mark = f->one_answer ? b->mark : mri_entry_mark(t->crc);
    if (!mri_entry_set_mark(&f->entry, number, mark)) return cannot_keep(t, errno);
    t->gained = true;
    mri_entry_lock(&f->entry, number, F_RDLCK);
    pthread_mutex_lock(&f->set->lock);
    mri_block_ready_locked(f, b, mark);
    pthread_mutex_unlock(&f->set->lock);
    return MR_OK;
}

/* Of a file that only comes whole, some blocks may be here already. */
static bool is_missing(mri_remote_file *f, const mri_block *b)
{
    pthread_mutex_lock(&f->set->lock);
    const bool missing = b->state == MRI_FETCHING;
    pthread_mutex_unlock(&f->set->lock);
    return missing;
}

/* All of one answer is here, and only now any of it: half of it would be mixed with half of the next. */
static int all_is_here(mri_transfer *t)
{
    mri_remote_file *f = t->file;
    int rc = MR_OK;
    for (uint64_t k = 0; !rc && k < f->entry.blocks; k++)
        if (is_missing(f, &f->block[k])) rc = block_is_here(t, &f->block[k], k);
    return rc;
}

static int keep(mri_transfer *t, const uint8_t *data, size_t bytes)
{
    mri_remote_file *f = t->file;
    int rc = MR_OK;
    while (!rc && bytes > 0) {
        const uint64_t number = t->at / MRI_BLOCK_BYTES,
                       end = mri_min_u64((number + 1) * MRI_BLOCK_BYTES, f->bytes);
        const size_t n = (size_t)mri_min_u64(bytes, end - t->at);
        mri_block *b = &f->block[number];
        const bool mine = !f->whole_only || is_missing(f, b);
        mr_error ignored = MR_ERROR_INIT;
        if (mine && mri_pwrite_all(f->entry.data_fd, data, n, t->at, "", &ignored) != MR_OK)
            return cannot_keep(t, ignored.sys_errno);
        t->crc = mr_crc32c(t->at % MRI_BLOCK_BYTES ? t->crc : 0, data, n);
        t->at += n;
        data += n;
        bytes -= n;
        if (mine && t->at == end && f->one_answer) b->mark = mri_entry_mark(t->crc);
        else if (mine && t->at == end) rc = block_is_here(t, b, number);
    }
    return !rc && f->one_answer && t->at == t->end ? all_is_here(t) : rc;
}

static size_t on_body(char *data, size_t one, size_t bytes, void *context)
{
    mri_transfer *t = context;
    (void)one;
    long status = 0;
    http *h = t->file->set->http;
    if (!t->judged) {
        h->api->curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        t->answer.status = status;
        t->judged = mri_answer_judge(t);
        if (t->question && t->judged && status == 200) return 0; /* the whole file comes: not now */
    }
    if (t->question || !t->judged) {
        t->ignored += bytes;
        return t->ignored > MOST_IGNORED ? 0 : bytes; /* a short one is read to its end, so that the
                                                         connection can be used again */
    }
    if (bytes > t->end - t->at) {
        mr_error_set(&t->why, MR_EFORMAT, "the server sends more than it was asked for");
        return 0;
    }
    return keep(t, (const uint8_t *)data, bytes) == MR_OK ? bytes : 0;
}

static void report_endless_head(mri_transfer *t)
{
    mr_error_set(&t->why, MR_EFORMAT,
                 "the head of the server's answer does not end: expected at most %d bytes", MOST_HEAD);
}

static size_t on_line(char *line, size_t one, size_t bytes, void *context)
{
    mri_transfer *t = context;
    (void)one;
    t->head_bytes += bytes;
    if (t->head_bytes > MOST_HEAD) {
        report_endless_head(t);
        return 0;
    }
    mri_answer_line(&t->answer, line, bytes);
    return bytes;
}

/* ---- begin ---- */
static bool set_up(http *h, mri_transfer *t, const char *range)
{
    const mri_curl_api *api = h->api;
    const char *authorities = getenv("SSL_CERT_FILE");
    const bool https = strncasecmp(t->file->url, "https", 5) == 0;
    if (!t->easy) t->easy = api->curl_easy_init();
    if (!t->easy) return false;
    api->curl_easy_reset(t->easy);
    int wrong = 0;
#define SET(option, value) wrong |= api->curl_easy_setopt(t->easy, option, value) != CURLE_OK
    SET(CURLOPT_URL, t->file->url);
    SET(CURLOPT_RANGE, range);
    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_ERRORBUFFER, t->said);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_HEADERFUNCTION, on_line);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1); /* connections of their own: one lost packet does
                                                               not stop the others */
    SET(CURLOPT_FOLLOWLOCATION, 1L);
    SET(CURLOPT_MAXREDIRS, 8L);
    SET(CURLOPT_CONNECTTIMEOUT, (long)h->stall_s);
    SET(CURLOPT_LOW_SPEED_LIMIT, 1024L);
    SET(CURLOPT_LOW_SPEED_TIME, (long)h->stall_s);
    SET(CURLOPT_USERAGENT, "millrace/" MR_VERSION_TEXT);
#if LIBCURL_VERSION_NUM >= 0x075500
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, https ? "https" : "http,https");
#else
    SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    SET(CURLOPT_REDIR_PROTOCOLS, https ? (long)CURLPROTO_HTTPS : (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    if (authorities && *authorities) SET(CURLOPT_CAINFO, authorities);
#undef SET
    api->curl_easy_setopt(t->easy, CURLOPT_BUFFERSIZE, 262144L); /* refused after a name was not found: what
                                                                    there was serves */
#if LIBCURL_VERSION_NUM >= 0x075700
    api->curl_easy_setopt(t->easy, CURLOPT_QUICK_EXIT, 1L); /* ending never waits for a name's address; older
                                                               ones do not know it */
#endif
    return !wrong;
}

static void end_transfer(http *h, mri_transfer *t, CURLcode code);

static void begin(http *h, mri_transfer *t)
{
    char range[64];
    if (t->file->whole_only && !t->question) t->at = 0;
    t->tried_at = t->at;
    t->begun_ns = mri_now_ns();
    t->judged = t->gained = false;
    t->ignored = t->head_bytes = 0;
    t->verdict = MR_OK;
    t->why = (mr_error)MR_ERROR_INIT;
    t->answer = (mri_answer){0};
    t->said[0] = '\0';
    snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)t->at, (unsigned long long)t->end - 1);
    t->state = MRI_RUNNING;
    if (!set_up(h, t, t->file->whole_only ? NULL : range) ||
        h->api->curl_multi_add_handle(h->multi, t->easy) != CURLM_OK) {
        t->state = MRI_IDLE;
        end_transfer(h, t, CURLE_OUT_OF_MEMORY);
    }
}

static mri_transfer *idle_transfer(http *h)
{
    for (uint32_t k = 0; k < AT_ONCE; k++)
        if (h->transfer[k].state == MRI_IDLE) return &h->transfer[k];
    return NULL;
}

static void use(mri_transfer *t, mri_remote_file *f, bool question, uint64_t from, uint64_t end)
{
    CURL *easy = t->easy;
    *t = (mri_transfer){.easy = easy, .file = f, .question = question, .from = from, .at = from, .end = end};
}

/* Others' blocks are not waited for: they may wait for those queued here. */
static bool is_settled(const mri_remote_file *f)
{
    for (uint64_t k = 0; k < f->entry.blocks; k++)
        if (f->block[k].state == MRI_CHECK || f->block[k].state == MRI_FETCHING) return false;
    return true;
}

/* The next range. The lock is held. */
static bool take_queued_locked(mri_remote *r, mri_transfer *t)
{
    mri_block *b = r->queued.head;
    if (!b) return false;
    mri_remote_file *f = r->file[b->file];
    uint64_t first = mri_block_number(f, b), end = first;
    if (f->whole_only) {
        if (!is_settled(f)) return false; /* its other blocks are still compared, or on their way */
        first = 0;
        for (end = 0; end < f->entry.blocks; end++) {
            if (f->block[end].state != MRI_QUEUED) continue;
            mri_blocks_remove(&r->queued, &f->block[end]);
            f->block[end].state = MRI_FETCHING;
        }
    }
    for (; !f->whole_only && end < f->entry.blocks && end < first + RANGE_BLOCKS &&
           f->block[end].state == MRI_QUEUED;
         end++) {
        mri_blocks_remove(&r->queued, &f->block[end]);
        f->block[end].state = MRI_FETCHING;
    }
    use(t, f, false, first * MRI_BLOCK_BYTES, mri_min_u64(end * MRI_BLOCK_BYTES, f->bytes));
    return true;
}

static void begin_all(mri_remote *r, http *h)
{
    for (mri_transfer *t; (t = idle_transfer(h));) {
        pthread_mutex_lock(&r->lock);
        bool any = h->asked < r->file_count;
        if (any) use(t, r->file[h->asked++], true, 0, 1);
        else any = take_queued_locked(r, t);
        pthread_mutex_unlock(&r->lock);
        if (!any) return;
        begin(h, t);
    }
}

/* ---- end ---- */
static void answer_locked(mri_transfer *t, int code)
{
    mri_remote_file *f = t->file;
    f->code = code;
    if (code) f->why = t->why;
    f->refused = code && (t->answer.status == 401 || t->answer.status == 403);
    f->answered = true;
    pthread_cond_broadcast(&f->set->moved);
}

static void fail(mri_transfer *t, int code)
{
    mri_remote_file *f = t->file;
    t->why.code = code;
    mr_error_at(&t->why, f->shown, t->at, MR_NOWHERE);
    t->why.sys_errno = EREMOTEIO;
    pthread_mutex_lock(&f->set->lock);
    if (t->question) {
        answer_locked(t, code);
    } else {
        const uint64_t first = t->from / MRI_BLOCK_BYTES, end = (t->end - 1) / MRI_BLOCK_BYTES + 1;
        for (uint64_t k = first; k < end; k++)
            if (f->block[k].state == MRI_FETCHING) mri_block_failed_locked(f, &f->block[k]);
        mri_block_requests_fail_locked(f, first, end - first, code, &t->why);
    }
    pthread_mutex_unlock(&f->set->lock);
}

static void try_later(http *h, mri_transfer *t)
{
    const mri_remote_file *f = t->file;
    const bool moved = f->whole_only ? t->gained : t->at >= t->tried_at + PROGRESS_BYTES || t->gained;
    if (moved) t->tries = 0;
    if (++t->tries >= h->tries) {
        const size_t used = strlen(t->why.text);
        snprintf(t->why.text + used, sizeof t->why.text - used, "; gave up after %u tries", t->tries);
        fail(t, t->why.code ? t->why.code : MR_EIO);
        return;
    }
    const mri_philox draw = mri_philox4x32(XXH3_64bits(f->url, strlen(f->url)), t->at, t->tries);
    uint64_t wait_ms = h->backoff_ms;
    for (uint32_t k = 1; k < t->tries && wait_ms < MOST_WAIT_MS; k++) wait_ms *= 2;
    wait_ms = mri_min_u64(wait_ms, MOST_WAIT_MS);
    wait_ms -= mri_below(draw.v[0], (uint32_t)wait_ms / 2 + 1);
    if (t->answer.retry_after_s)
        wait_ms = mri_max_u64(wait_ms, 1000 * mri_min_u64(t->answer.retry_after_s, MOST_ASKED_S));
    t->again_ns = mri_now_ns() + wait_ms * 1000000;
    t->state = MRI_LATER;
}

static bool is_final(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_URL_MALFORMAT || code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_OUT_OF_MEMORY ||
           code == CURLE_SSL_CERTPROBLEM;
}

/* A redirect to file:, ftp: or, from https, to http. An answer that is no HTTP has the same code. */
static bool leads_away(http *h, const mri_transfer *t, CURLcode code)
{
    long redirects = 0;
    h->api->curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_COUNT, &redirects);
    return code == CURLE_UNSUPPORTED_PROTOCOL && redirects > 0;
}

/* Why it ended before its end, where nothing else has said so. */
static void report_transfer_error(http *h, mri_transfer *t, CURLcode code)
{
    if (t->why.text[0]) return;
    const char *text = t->said[0] ? t->said : h->api->curl_easy_strerror(code);
    if (code == CURLE_OK || code == CURLE_PARTIAL_FILE)
        mr_error_set(&t->why, MR_EIO, "the answer is too short: expected %llu bytes, found %llu",
                     (unsigned long long)(t->end - t->tried_at), (unsigned long long)(t->at - t->tried_at));
    else if (code == CURLE_OPERATION_TIMEDOUT)
        mr_error_set(&t->why, MR_EIO, "the server is silent or sends less than 1 KiB a second for %u s",
                     h->stall_s);
    else if ((int)code == CURL_TOO_LARGE) report_endless_head(t);
    else if (leads_away(h, t, code))
        mr_error_set(
            &t->why, MR_EIO,
            "the server redirects to another sort of address (%s): only http and https are followed, "
            "and from https only https",
            text);
    else mr_error_set(&t->why, MR_EIO, "cannot fetch it: %s", text);
}

static void end_transfer(http *h, mri_transfer *t, CURLcode code)
{
    if (t->state == MRI_RUNNING) h->api->curl_multi_remove_handle(h->multi, t->easy);
    t->state = MRI_IDLE;
    if (!t->judged && !t->verdict && !t->why.text[0] && code == CURLE_OK) { /* there was no body */
        h->api->curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->answer.status);
        t->judged = mri_answer_judge(t);
    }
    const bool done = t->judged && !t->verdict && (t->question || t->at == t->end);
    if (done && t->question) {
        pthread_mutex_lock(&t->file->set->lock);
        answer_locked(t, MR_OK);
        pthread_mutex_unlock(&t->file->set->lock);
    }
    if (done) return;
    report_transfer_error(h, t, code);
    if (t->verdict) fail(t, t->verdict);
    else if (is_final(code) || leads_away(h, t, code))
        fail(t, code == CURLE_OUT_OF_MEMORY ? MR_ENOMEM : MR_EIO);
    else try_later(h, t);
}

static void collect(http *h)
{
    CURLMsg *m;
    int left;
    while ((m = h->api->curl_multi_info_read(h->multi, &left))) {
        if (m->msg != CURLMSG_DONE) continue;
        const CURLcode code = m->data.result; /* m goes with its handle */
        void *t = NULL;
        h->api->curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
        end_transfer(h, t, code);
    }
}

/* ---- the thread ---- */
/* Every step of a chain of redirects may be quick enough, and the chain still lead nowhere. */
static void cut_late_answers(http *h)
{
    const uint64_t most_s = (uint64_t)ANSWER_STALLS * h->stall_s;
    for (uint32_t k = 0; k < AT_ONCE; k++) {
        mri_transfer *t = &h->transfer[k];
        if (t->state != MRI_RUNNING || t->judged || mri_now_ns() - t->begun_ns < most_s * 1000000000u)
            continue;
        mr_error_set(&t->why, MR_EIO, "no answer within %llu s, redirects included",
                     (unsigned long long)most_s);
        end_transfer(h, t, CURLE_OPERATION_TIMEDOUT);
    }
}

static void cancel_all(mri_remote *r, http *h)
{
    for (uint32_t k = 0; k < AT_ONCE; k++) {
        mri_transfer *t = &h->transfer[k];
        if (t->state == MRI_IDLE) continue;
        if (t->state == MRI_RUNNING) h->api->curl_multi_remove_handle(h->multi, t->easy);
        t->state = MRI_IDLE;
        mr_error_set(&t->why, MR_ECANCELED, "stopped");
        fail(t, MR_ECANCELED);
    }
    pthread_mutex_lock(&r->lock);
    while (h->asked < r->file_count) {
        mri_transfer t = {.file = r->file[h->asked++], .question = true};
        mr_error_set(&t.why, MR_ECANCELED, "stopped");
        mr_error_at(&t.why, t.file->shown, MR_NOWHERE, MR_NOWHERE);
        answer_locked(&t, MR_ECANCELED);
    }
    mri_blocks *const lists[] = {&r->check, &r->foreign, &r->queued};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(lists); k++)
        for (mri_block *b; (b = mri_blocks_pop(lists[k]));) mri_block_failed_locked(r->file[b->file], b);
    mri_block_requests_cancel_locked(r);
    pthread_mutex_unlock(&r->lock);
}

/* Other programs' blocks are looked at again. Milliseconds until the next time, or IDLE_MS. */
static uint64_t look_at_foreign(mri_remote *r, http *h)
{
    const uint64_t now = mri_now_ns();
    pthread_mutex_lock(&r->lock);
    const bool any = r->foreign.head != NULL;
    if (any && now >= h->foreign_ns) {
        for (mri_block *b; (b = mri_blocks_pop(&r->foreign));) {
            b->state = MRI_CHECK;
            mri_blocks_push(&r->check, b);
        }
        h->foreign_ns = now + FOREIGN_MS * 1000000u;
    }
    const bool checks = r->check.head != NULL;
    pthread_mutex_unlock(&r->lock);
    return checks ? 0 : any ? FOREIGN_MS : IDLE_MS;
}

/* Begins what waited long enough. Milliseconds until the next one, or IDLE_MS. */
static uint64_t begin_again(http *h)
{
    uint64_t most = IDLE_MS;
    for (uint32_t k = 0; k < AT_ONCE; k++) {
        mri_transfer *t = &h->transfer[k];
        if (t->state != MRI_LATER) continue;
        const uint64_t now = mri_now_ns();
        if (t->again_ns <= now) begin(h, t);
        else most = mri_min_u64(most, (t->again_ns - now) / 1000000 + 1);
    }
    return most;
}

/* False: the set ends. */
static bool go_on(mri_remote *r, http *h)
{
    pthread_mutex_lock(&r->lock);
    const bool ended = r->ended;
    pthread_mutex_unlock(&r->lock);
    if (ended || mri_remote_is_stopped(r)) cancel_all(r, h);
    return !ended;
}

void *mri_http_main(void *remote)
{
    mri_remote *r = remote;
    http *h = r->http;
    while (go_on(r, h)) {
        int running = 0;
        h->api->curl_multi_perform(h->multi, &running);
        collect(h);
        cut_late_answers(h);
        mri_blocks_check(r, CHECKS_AT_ONCE, h->room);
        begin_all(r, h); /* new transfers make the poll below return at once */
        uint64_t wait_ms = mri_min_u64(begin_again(h), look_at_foreign(r, h));
        if (r->cfg.stop) wait_ms = mri_min_u64(wait_ms, LOOK_MS);
        h->api->curl_multi_poll(h->multi, NULL, 0, (int)wait_ms, NULL);
    }
    hang_up(h);
    return NULL;
}
