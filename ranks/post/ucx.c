/* ranks/post/ucx.c: tagged messages of UCX.
 *
 * Each rank has a worker, and an endpoint to each other rank, with errors of the other end reported: so the
 * loss of a rank ends what waits for it. The tag of a message is the rank that sent it. UCX chooses the
 * transport (UCX_TLS, UCX_NET_DEVICES). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/library.h"
#include "base/util.h"
#include "ranks/post/post.h"

/* From ucp/api/ucp.h, unchanged since 1.9: the beginnings of structs; the first member names the members in
 * use. */
typedef struct context_params {
    uint64_t set, features;
    size_t request_bytes;
    void *init, *cleanup;
    uint64_t sender_mask;
    int shared;
    size_t endpoints;
    uint8_t rest[64];
} context_params;

typedef struct worker_params {
    uint64_t set;
    int thread_mode;
    uint8_t rest[320];
} worker_params;

typedef struct endpoint_params {
    uint64_t set;
    const void *address;
    int error_mode;
    struct {
        void (*call)(void *context, void *endpoint, signed char status);
        void *context;
    } errors;
    uint8_t rest[128];
} endpoint_params;

typedef struct request_params {
    uint32_t set, flags;
    uint8_t rest[120];
} request_params;

typedef struct functions {
    signed char (*ucp_init_version)(unsigned major, unsigned minor, const context_params *params,
                                    const void *config, void **out);
    void (*ucp_cleanup)(void *context);
    signed char (*ucp_worker_create)(void *context, const worker_params *params, void **out);
    void (*ucp_worker_destroy)(void *worker);
    signed char (*ucp_worker_get_address)(void *worker, void **address, size_t *bytes);
    void (*ucp_worker_release_address)(void *worker, void *address);
    unsigned (*ucp_worker_progress)(void *worker);
    signed char (*ucp_ep_create)(void *worker, const endpoint_params *params, void **out);
    void *(*ucp_ep_close_nbx)(void *endpoint, const request_params *params);
    void *(*ucp_tag_send_nbx)(void *endpoint, const void *data, size_t bytes, uint64_t tag,
                              const request_params *params);
    void *(*ucp_tag_recv_nbx)(void *worker, void *data, size_t bytes, uint64_t tag, uint64_t mask,
                              const request_params *params);
    signed char (*ucp_request_check_status)(void *request);
    void *(*ucp_worker_flush_nbx)(void *worker, const request_params *params);
    void (*ucp_request_cancel)(void *worker, void *request);
    void (*ucp_request_free)(void *request);
    const char *(*ucs_status_string)(signed char status);
} functions;

#define MEMBER(name)                                                                                         \
    {                                                                                                        \
#name, offsetof(functions, name)                                                                     \
    }
static const mri_symbol symbols[] = {MEMBER(ucp_init_version),       MEMBER(ucp_cleanup),
                                     MEMBER(ucp_worker_create),      MEMBER(ucp_worker_destroy),
                                     MEMBER(ucp_worker_get_address), MEMBER(ucp_worker_release_address),
                                     MEMBER(ucp_worker_progress),    MEMBER(ucp_ep_create),
                                     MEMBER(ucp_ep_close_nbx),       MEMBER(ucp_tag_send_nbx),
                                     MEMBER(ucp_tag_recv_nbx),       MEMBER(ucp_request_check_status),
                                     MEMBER(ucp_worker_flush_nbx),   MEMBER(ucp_request_cancel),
                                     MEMBER(ucp_request_free),       MEMBER(ucs_status_string)};

/* Numbers of that header. */
enum {
    API_MAJOR = 1,
    API_MINOR = 9,
    CONTEXT_FEATURES = 1 << 0,
    CONTEXT_SENDER_MASK = 1 << 4,
    CONTEXT_SHARED = 1 << 5,
    CONTEXT_ENDPOINTS = 1 << 6,
    FEATURE_TAG = 1 << 0,
    WORKER_THREAD_MODE = 1 << 0,
    THREADS_SERIALIZED = 1,
    ENDPOINT_ADDRESS = 1 << 0,
    ENDPOINT_ERROR_MODE = 1 << 1,
    ENDPOINT_ERRORS = 1 << 2,
    ERRORS_OF_PEER = 1,
    OPERATION_FLAGS = 1 << 4,
    CLOSE_FORCE = 1 << 0,
    IN_PROGRESS = 1,
    LAST_ERROR = -100,
};
#define CLOSE_NS UINT64_C(1000000000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static functions of; /* lock to write; does not change once it is loaded */
static bool loaded;  /* lock */

typedef struct ucx_post {
    mri_post base;
    uint32_t rank, size;
    void *context, *worker;
    void **endpoints; /* by rank */
} ucx_post;

typedef struct ucx_card { /* of MRI_POST_CARD_BYTES */
    uint32_t bytes;
    uint8_t address[MRI_POST_CARD_BYTES - sizeof(uint32_t)];
} ucx_card;

static ucx_post *own(mri_post *p) { return (ucx_post *)p; }

static int failed(int status, const char *what, mr_error *err)
{
    return mr_error_set(err, MR_EIO, "%s: %s", what, of.ucs_status_string((signed char)status));
}

/* A pointer that is a status: as UCS_PTR_IS_ERR() has it. */
static bool is_error(const void *pointer) { return (uintptr_t)pointer >= (uintptr_t)(intptr_t)LAST_ERROR; }

static int status_of(const void *pointer) { return (int)(intptr_t)pointer; }

/* ---- messages ---- */

static int begun(void *request, const char *what, mri_letter *out, bool *over, mr_error *err)
{
    if (is_error(request)) return failed(status_of(request), what, err);
    out->request = request;
    *over = !request;
    return MR_OK;
}

static int send_ucx(mri_post *p, uint32_t rank, const void *data, size_t bytes, bool last, mri_letter *out,
                    bool *over, mr_error *err)
{
    const request_params plain = {0};
    ucx_post *u = own(p);
    (void)last; /* flush_ucx() */
    return begun(of.ucp_tag_send_nbx(u->endpoints[rank], data, bytes, u->rank, &plain), "ucp_tag_send_nbx",
                 out, over, err);
}

static int receive_ucx(mri_post *p, uint32_t rank, void *data, size_t bytes, mri_letter *out, bool *over,
                       mr_error *err)
{
    const request_params plain = {0};
    return begun(of.ucp_tag_recv_nbx(own(p)->worker, data, bytes, rank, UINT64_MAX, &plain),
                 "ucp_tag_recv_nbx", out, over, err);
}

static int flush_ucx(mri_post *p, mri_letter *out, bool *over, mr_error *err)
{
    const request_params plain = {0};
    return begun(of.ucp_worker_flush_nbx(own(p)->worker, &plain), "ucp_worker_flush_nbx", out, over, err);
}

static int look_ucx(mri_post *p, mri_letter *l, bool *over, mr_error *err)
{
    of.ucp_worker_progress(own(p)->worker);
    const int status = of.ucp_request_check_status(l->request);
    *over = status != IN_PROGRESS;
    if (!*over) return MR_OK;
    of.ucp_request_free(l->request);
    l->request = NULL;
    return status ? failed(status, "a message", err) : MR_OK;
}

/* Until it is over, or the time is. */
static void await(ucx_post *u, void *request, uint64_t until_ns)
{
    const struct timespec moment = {.tv_nsec = 100000};
    if (!request || is_error(request)) return;
    for (;;) {
        of.ucp_worker_progress(u->worker);
        if (of.ucp_request_check_status(request) != IN_PROGRESS || mri_now_ns() >= until_ns) break;
        nanosleep(&moment, NULL);
    }
    of.ucp_request_free(request);
}

/* well: sent messages arrive, within a second for all of them. */
static void close_endpoints(ucx_post *u, bool well)
{
    const request_params force = {.set = OPERATION_FLAGS, .flags = CLOSE_FORCE}, flush = {0};
    const uint64_t until_ns = mri_now_ns() + CLOSE_NS;
    for (uint32_t r = 0; u->endpoints && r < u->size; r++)
        if (u->endpoints[r]) u->endpoints[r] = of.ucp_ep_close_nbx(u->endpoints[r], well ? &flush : &force);
    for (uint32_t r = 0; u->endpoints && r < u->size; r++) {
        await(u, u->endpoints[r], until_ns); /* by now a request */
        u->endpoints[r] = NULL;
    }
}

/* A pending request ends with its endpoint, or is cancelled. */
static void drop_ucx(mri_post *p, mri_letter *l, bool received)
{
    ucx_post *u = own(p);
    if (received) of.ucp_request_cancel(u->worker, l->request);
    else close_endpoints(u, false);
    await(u, l->request, mri_now_ns() + CLOSE_NS);
    l->request = NULL;
}

/* ---- open, close ---- */

static void close_ucx(mri_post *p, bool well)
{
    ucx_post *u = own(p);
    close_endpoints(u, well);
    if (u->worker) of.ucp_worker_destroy(u->worker);
    if (u->context) of.ucp_cleanup(u->context);
    free(u->endpoints);
    free(u);
}

static int begin_ucx(mri_post *p, uint8_t card[MRI_POST_CARD_BYTES], mr_error *err)
{
    ucx_post *u = own(p);
    const context_params all = {.set = CONTEXT_FEATURES | CONTEXT_SENDER_MASK | CONTEXT_SHARED |
                                       CONTEXT_ENDPOINTS,
                                .features = FEATURE_TAG,
                                .sender_mask = UINT64_MAX,
                                .endpoints = u->size};
    const worker_params one = {.set = WORKER_THREAD_MODE, .thread_mode = THREADS_SERIALIZED};
    ucx_card *mine = (ucx_card *)(void *)card;
    void *address = NULL;
    size_t bytes = 0;
    int status = of.ucp_init_version(API_MAJOR, API_MINOR, &all, NULL, &u->context);
    if (status) return failed(status, "ucp_init", err);
    status = of.ucp_worker_create(u->context, &one, &u->worker);
    if (status) return failed(status, "ucp_worker_create", err);
    status = of.ucp_worker_get_address(u->worker, &address, &bytes);
    if (status) return failed(status, "ucp_worker_get_address", err);
    const bool fits = bytes <= sizeof mine->address;
    mine->bytes = (uint32_t)bytes;
    if (fits) memcpy(mine->address, address, bytes);
    of.ucp_worker_release_address(u->worker, address);
    if (fits) return MR_OK;
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "its address has %zu bytes, at most %zu fit: name fewer devices in UCX_NET_DEVICES",
                        bytes, sizeof mine->address);
}

/* The failed message reports it. */
static void on_error(void *context, void *endpoint, signed char status)
{
    (void)context;
    (void)endpoint;
    (void)status;
}

static int connect_ucx(mri_post *p, const uint8_t *cards, mr_error *err)
{
    ucx_post *u = own(p);
    for (uint32_t r = 0; r < u->size; r++) {
        const ucx_card *card = (const ucx_card *)(const void *)(cards + (size_t)r * MRI_POST_CARD_BYTES);
        const endpoint_params to = {.set = ENDPOINT_ADDRESS | ENDPOINT_ERROR_MODE | ENDPOINT_ERRORS,
                                    .address = card->address,
                                    .error_mode = ERRORS_OF_PEER,
                                    .errors.call = on_error};
        if (r == u->rank) continue;
        const int status = of.ucp_ep_create(u->worker, &to, &u->endpoints[r]);
        if (status) return failed(status, "ucp_ep_create", err);
    }
    return MR_OK;
}

static const mri_post_ops ops = {.name = "UCX",
                                 .send = send_ucx,
                                 .receive = receive_ucx,
                                 .look = look_ucx,
                                 .flush = flush_ucx,
                                 .drop = drop_ucx,
                                 .begin = begin_ucx,
                                 .connect = connect_ucx,
                                 .close = close_ucx};

static int load(mr_error *err)
{
    static const char *const files[] = {"libucp.so.0", NULL};
    const char *what = "";
    const int rc = mri_library_open(&of, files, symbols, MRI_ARRAY_COUNT(symbols), &what);
    if (rc == MR_ENOENT)
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "UCX cannot be opened: install it (Debian and Ubuntu: apt install libucx0), or add its "
            "folder to LD_LIBRARY_PATH (%s)",
            what);
    if (rc) return mr_error_set(err, MR_EUNSUPPORTED, "UCX has no %s: expected version 1.9 or newer", what);
    loaded = true;
    return MR_OK;
}

int mri_post_open_ucx(mri_post **out, uint32_t rank, uint32_t size, mr_error *err)
{
    pthread_mutex_lock(&lock);
    const int rc = loaded ? MR_OK : load(err);
    pthread_mutex_unlock(&lock);
    if (rc) return rc;
    ucx_post *u = calloc(1, sizeof *u);
    if (u)
        *u = (ucx_post){
            .base.ops = &ops, .rank = rank, .size = size, .endpoints = calloc(size, sizeof(void *))};
    if (!u || !u->endpoints) {
        free(u);
        return mr_error_set(err, MR_ENOMEM, "no memory for messages by UCX");
    }
    *out = &u->base;
    return MR_OK;
}
