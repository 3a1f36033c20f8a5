/* ranks/post/mpi.c: messages by MPI, of the library that started the processes.
 *
 * Open MPI and MPICH have different binary interfaces: the handles of the one are pointers, of the other
 * ints. Both fit a word. A word passed for an int arrives as its lower half, and an int written to a word of
 * zeros is that word, on little-endian processors with 64 bits. So one table of functions serves both, and
 * the few predefined handles come with the library. (The standard interface of MPI 5 has few libraries yet.)
 *
 * MPI begins once a process and ends once. It ends when the process does, and only if each world that used it
 * was closed well: MPI_Finalize() waits for all processes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/handle.h"
#include "base/library.h"
#include "base/util.h"
#include "ranks/post/post.h"

typedef uintptr_t handle;

/* As mpi.h of both declares them, with a word for each handle. */
typedef struct functions {
    int (*MPI_Initialized)(int *flag);
    int (*MPI_Finalized)(int *flag);
    int (*MPI_Init_thread)(int *argc, char ***argv, int wanted, int *given);
    int (*MPI_Query_thread)(int *given);
    int (*MPI_Finalize)(void);
    int (*MPI_Comm_rank)(handle comm, int *rank);
    int (*MPI_Comm_size)(handle comm, int *size);
    int (*MPI_Comm_group)(handle comm, handle *group);
    int (*MPI_Group_incl)(handle group, int count, const int *ranks, handle *out);
    int (*MPI_Group_free)(handle *group);
    int (*MPI_Comm_create_group)(handle comm, handle group, int tag, handle *out);
    int (*MPI_Comm_set_errhandler)(handle comm, handle errhandler);
    int (*MPI_Isend)(const void *data, int count, handle type, int to, int tag, handle comm, handle *request);
    int (*MPI_Issend)(const void *data, int count, handle type, int to, int tag, handle comm,
                      handle *request);
    int (*MPI_Irecv)(void *data, int count, handle type, int from, int tag, handle comm, handle *request);
    int (*MPI_Test)(handle *request, int *flag, void *status);
    int (*MPI_Cancel)(handle *request);
    int (*MPI_Error_string)(int code, char *text, int *bytes);
    int (*MPI_Get_library_version)(char *text, int *bytes);
    void *comm_world, *byte, *errors_return; /* Open MPI's */
} functions;

#define MEMBER(name)                                                                                         \
    {                                                                                                        \
#name, offsetof(functions, name)                                                                     \
    }
static const mri_symbol symbols[] = {MEMBER(MPI_Initialized),
                                     MEMBER(MPI_Finalized),
                                     MEMBER(MPI_Init_thread),
                                     MEMBER(MPI_Query_thread),
                                     MEMBER(MPI_Finalize),
                                     MEMBER(MPI_Comm_rank),
                                     MEMBER(MPI_Comm_size),
                                     MEMBER(MPI_Comm_group),
                                     MEMBER(MPI_Group_incl),
                                     MEMBER(MPI_Group_free),
                                     MEMBER(MPI_Comm_create_group),
                                     MEMBER(MPI_Comm_set_errhandler),
                                     MEMBER(MPI_Isend),
                                     MEMBER(MPI_Issend),
                                     MEMBER(MPI_Irecv),
                                     MEMBER(MPI_Test),
                                     MEMBER(MPI_Cancel),
                                     MEMBER(MPI_Error_string),
                                     MEMBER(MPI_Get_library_version),
                                     {"ompi_mpi_comm_world", offsetof(functions, comm_world)},
                                     {"ompi_mpi_byte", offsetof(functions, byte)},
                                     {"ompi_mpi_errors_return", offsetof(functions, errors_return)}};
enum { OF_OPEN_MPI = 3 }; /* symbols at the end */

/* Numbers of both, and of MPICH's mpi.h. */
enum {
    THREAD_SERIALIZED = 2,
    TAG = 0x6d72,
    VERSION_BYTES = 8192,
    ERROR_BYTES = 512,
    MPICH_COMM_WORLD = 0x44000000,
    MPICH_BYTE = 0x4c00010d,
    MPICH_ERRORS_RETURN = 0x54000001,
};
#define DROP_NS UINT64_C(2000000000) /* a send may still be over */

/* The process's MPI. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of these, and of every call of MPI */
static functions of;
static handle comm_world, byte, errors_return;
static void *status_ignore;
static bool loaded, started, broken;
static uint64_t drop_until_ns; /* once broken */
static uint32_t posts;         /* open ones */
static uint32_t process;       /* that started it: a child of it has no MPI */

typedef struct mpi_post {
    mri_post base;
    uint32_t rank, size;
    handle comm;
} mpi_post;

typedef struct mpi_card { /* of MRI_POST_CARD_BYTES */
    uint32_t rank, size;  /* in MPI_COMM_WORLD */
    char version[MRI_POST_VERSION_BYTES];
} mpi_card;

static mpi_post *own(mri_post *p) { return (mpi_post *)p; }

static int failed(int code, const char *what, mr_error *err)
{
    char text[ERROR_BYTES] = "";
    int bytes = 0;
    if (of.MPI_Error_string(code, text, &bytes)) snprintf(text, sizeof text, "error %d", code);
    return mr_error_set(err, MR_EIO, "%s: %s", what, text);
}

/* ---- the library ---- */

/* The launcher knows which; MILLRACE_MPI names a file where it is looked for first. */
static int load(mr_launcher launcher, mr_error *err)
{
    const char *const open_mpi[] = {"libmpi.so.40", "libmpi.so", NULL};
    const char *const mpich[] = {"libmpich.so.12", "libmpi.so.12", NULL};
    const char *const any[] = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi.so", NULL};
    const char *const given[] = {getenv("MILLRACE_MPI"), NULL};
    const char *const *files = given[0] && given[0][0]           ? given
                               : launcher == MR_LAUNCHER_OPENMPI ? open_mpi
                               : launcher == MR_LAUNCHER_PMI     ? mpich
                                                                 : any;
    const char *what = "";
    const size_t all = MRI_ARRAY_COUNT(symbols);
    int rc = mri_library_open(&of, files, symbols, all, &what);
    const bool is_open_mpi = rc == MR_OK;
    if (rc == MR_EUNSUPPORTED) rc = mri_library_open(&of, files, symbols, all - OF_OPEN_MPI, &what);
    if (rc == MR_ENOENT)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "no MPI library can be opened: install Open MPI or MPICH, or name its file in "
                            "MILLRACE_MPI (%s)",
                            what);
    if (rc)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "the MPI library has no %s: expected Open MPI 2 or MPICH 3, or newer", what);
    comm_world = is_open_mpi ? (handle)of.comm_world : MPICH_COMM_WORLD;
    byte = is_open_mpi ? (handle)of.byte : MPICH_BYTE;
    errors_return = is_open_mpi ? (handle)of.errors_return : MPICH_ERRORS_RETURN;
    status_ignore = is_open_mpi ? NULL : (void *)1;
    loaded = true;
    return MR_OK;
}

static void end_mpi(void)
{
    int over = 1;
    if (process != mri_process() || posts || broken || of.MPI_Finalized(&over) || over) return;
    of.MPI_Finalize();
}

/* lock */
static int start_mpi(mr_error *err)
{
    int begun = 0, over = 0, given = 0;
    if (of.MPI_Finalized(&over) || over)
        return mr_error_set(err, MR_EUNSUPPORTED, "MPI has ended in this process (MPI_Finalize)");
    if (of.MPI_Initialized(&begun)) begun = 0;
    if (begun) of.MPI_Query_thread(&given);
    else {
        const int rc = of.MPI_Init_thread(NULL, NULL, THREAD_SERIALIZED, &given);
        if (rc) return failed(rc, "MPI_Init_thread", err);
        process = mri_process();
        atexit(end_mpi);
    }
    if (given < THREAD_SERIALIZED)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "MPI lets one thread only call it: expected MPI_THREAD_SERIALIZED or more");
    started = true;
    return MR_OK;
}

/* ---- messages ---- */

static int begun(int rc, const char *what, handle request, mri_letter *out, bool *over, mr_error *err)
{
    if (rc) return failed(rc, what, err);
    out->request = (void *)request;
    *over = false;
    return MR_OK;
}

/* A message of MPI_Isend() can be over while its end waits in a buffer of MPI (MPICH over UCX's tcp, with a
 * full socket), and only calls of MPI move it on. */
static int send_mpi(mri_post *p, uint32_t rank, const void *data, size_t bytes, bool last, mri_letter *out,
                    bool *over, mr_error *err)
{
    handle request = 0;
    pthread_mutex_lock(&lock);
    int rc =
        (last ? of.MPI_Issend : of.MPI_Isend)(data, (int)bytes, byte, (int)rank, TAG, own(p)->comm, &request);
    rc = begun(rc, last ? "MPI_Issend" : "MPI_Isend", request, out, over, err);
    pthread_mutex_unlock(&lock);
    return rc;
}

static int receive_mpi(mri_post *p, uint32_t rank, void *data, size_t bytes, mri_letter *out, bool *over,
                       mr_error *err)
{
    handle request = 0;
    pthread_mutex_lock(&lock);
    int rc = of.MPI_Irecv(data, (int)bytes, byte, (int)rank, TAG, own(p)->comm, &request);
    rc = begun(rc, "MPI_Irecv", request, out, over, err);
    pthread_mutex_unlock(&lock);
    return rc;
}

static int look_mpi(mri_post *p, mri_letter *l, bool *over, mr_error *err)
{
    handle request = (handle)l->request;
    int flag = 0;
    (void)p;
    pthread_mutex_lock(&lock);
    int rc = of.MPI_Test(&request, &flag, status_ignore);
    if (rc) rc = failed(rc, "MPI_Test", err);
    pthread_mutex_unlock(&lock);
    l->request = (void *)request;
    *over = flag;
    return rc;
}

/* A receive can be taken back. A send cannot: it may still be over, for as long as all such letters have
 * together; else nothing of MPI runs in this process any more, which could read its bytes. */
static void drop_mpi(mri_post *p, mri_letter *l, bool received)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    mr_error why = MR_ERROR_INIT;
    bool over = false;
    pthread_mutex_lock(&lock);
    if (!broken) drop_until_ns = mri_now_ns() + DROP_NS;
    broken = true;
    handle request = (handle)l->request;
    if (received) of.MPI_Cancel(&request);
    const uint64_t until = drop_until_ns;
    pthread_mutex_unlock(&lock);
    do {
        if (look_mpi(p, l, &over, &why) != MR_OK) return;
        if (!over) nanosleep(&moment, NULL);
    } while (!over && mri_now_ns() < until);
}

/* ---- open, close ---- */

static int join(mpi_post *m, const int *ranks, mr_error *err)
{
    handle world = 0, group = 0;
    int rc = of.MPI_Comm_group(comm_world, &world);
    if (rc) return failed(rc, "MPI_Comm_group", err);
    rc = of.MPI_Group_incl(world, (int)m->size, ranks, &group);
    if (rc == 0) rc = of.MPI_Comm_create_group(comm_world, group, TAG, &m->comm);
    if (rc == 0) rc = of.MPI_Comm_set_errhandler(m->comm, errors_return);
    if (rc) rc = failed(rc, "MPI_Comm_create_group", err);
    if (group) of.MPI_Group_free(&group);
    of.MPI_Group_free(&world);
    return rc;
}

static const mpi_card *card_of(const uint8_t *cards, uint32_t r)
{
    return (const mpi_card *)(const void *)(cards + (size_t)r * MRI_POST_CARD_BYTES);
}

/* The wrong library runs each process as the only one. */
static int check_cards(const mpi_post *m, const uint8_t *cards, mr_error *err)
{
    const mpi_card *first = card_of(cards, 0);
    for (uint32_t r = 0; r < m->size; r++) {
        const mpi_card *c = card_of(cards, r);
        if (strncmp(c->version, first->version, sizeof c->version) != 0)
            return mr_error_set(err, MR_EUNSUPPORTED, "rank %u has %.64s, rank 0 has %.64s: expected one MPI",
                                r, c->version, first->version);
        for (uint32_t k = 0; k < r; k++)
            if (c->rank == card_of(cards, k)->rank)
                return mr_error_set(
                    err, MR_EUNSUPPORTED,
                    "ranks %u and %u both are process %u of %u of %.64s: start them by mpirun "
                    "(or srun) of this library, or name the other one in MILLRACE_MPI",
                    k, r, c->rank, c->size, c->version);
    }
    return MR_OK;
}

static int connect_mpi(mri_post *p, const uint8_t *cards, mr_error *err)
{
    mpi_post *m = own(p);
    int *ranks = malloc(m->size * sizeof *ranks);
    if (!ranks) return mr_error_set(err, MR_ENOMEM, "no memory for %u ranks", m->size);
    for (uint32_t r = 0; r < m->size; r++) ranks[r] = (int)card_of(cards, r)->rank;
    pthread_mutex_lock(&lock);
    int rc = check_cards(m, cards, err);
    if (rc == MR_OK) rc = join(m, ranks, err);
    pthread_mutex_unlock(&lock);
    free(ranks);
    return rc;
}

/* Its communicator stays: all ranks would have to give it back at once. */
static void close_mpi(mri_post *p, bool well)
{
    pthread_mutex_lock(&lock);
    posts--;
    if (!well) broken = true;
    pthread_mutex_unlock(&lock);
    free(p);
}

/* lock. The first line of the version, without what follows a comma: "Open MPI v4.1.4". */
static void write_card(mpi_card *card)
{
    static char text[VERSION_BYTES];
    int rank = 0, size = 0, bytes = 0;
    of.MPI_Comm_rank(comm_world, &rank);
    of.MPI_Comm_size(comm_world, &size);
    if (of.MPI_Get_library_version(text, &bytes)) text[0] = '\0';
    text[strcspn(text, ",\n")] = '\0';
    for (char *at = text; *at; at++)
        if (*at == '\t') *at = ' ';
    *card = (mpi_card){.rank = (uint32_t)rank, .size = (uint32_t)size};
    snprintf(card->version, sizeof card->version, "%.63s", text);
}

static int begin_mpi(mri_post *p, uint8_t card[MRI_POST_CARD_BYTES], mr_error *err)
{
    int rc = MR_OK;
    (void)p;
    pthread_mutex_lock(&lock);
    if (broken)
        rc = mr_error_set(
            err, MR_EUNSUPPORTED,
            "an earlier world of this process has lost a rank, and MPI does not go on without it");
    else if (!started) rc = start_mpi(err);
    if (rc == MR_OK) write_card((mpi_card *)(void *)card);
    pthread_mutex_unlock(&lock);
    return rc;
}

static const mri_post_ops ops = {.name = "MPI",
                                 .send = send_mpi,
                                 .receive = receive_mpi,
                                 .look = look_mpi,
                                 .drop = drop_mpi,
                                 .begin = begin_mpi,
                                 .connect = connect_mpi,
                                 .close = close_mpi};

int mri_post_open_mpi(mri_post **out, mr_launcher launcher, uint32_t rank, uint32_t size, mr_error *err)
{
    if (sizeof(handle) != 8 || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return mr_error_set(err, MR_EUNSUPPORTED, "MPI needs a little-endian processor with 64 bits here");
    mpi_post *m = calloc(1, sizeof *m);
    if (!m) return mr_error_set(err, MR_ENOMEM, "no memory for messages by MPI");
    *m = (mpi_post){.base.ops = &ops, .rank = rank, .size = size};
    pthread_mutex_lock(&lock);
    const int rc = loaded ? MR_OK : load(launcher, err);
    if (rc == MR_OK) posts++;
    pthread_mutex_unlock(&lock);
    if (rc) free(m);
    else *out = &m->base;
    return rc;
}
