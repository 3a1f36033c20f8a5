/* millrace/ranks.h: processes that were started together.
 *
 * A launcher (mpirun, srun, torchrun, a pod of Kubernetes) starts N processes of one program and tells each
 * by environment variables which it is: mr_launch_find(). As a world they meet over TCP, exchange bytes, and
 * notice when one of them dies, falls silent or gives up.
 *
 * Trust: the processes of a run can share a secret (mr_world_config.secret). Both ends of every connection
 * then prove that they know it before anything else they say is believed, and all messages by which the ranks
 * meet, watch each other and find each other again are signed. The data of calls is neither signed nor
 * encrypted, unless mr_world_config.tls asks for it. Connections without a proof are closed, are bounded in
 * number and memory, and hold nobody up. Without a secret, whoever reaches the port and knows the job's name
 * can take part: a run whose ranks are all on one host then listens on the loopback device alone, and
 * mr_world_guard() says what holds. */
#ifndef MILLRACE_RANKS_H
#define MILLRACE_RANKS_H

#include "millrace/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the order in which they are looked for: launchers nest and variables are inherited, so the one that
 * usually stands innermost comes first. */
typedef enum mr_launcher {
    MR_LAUNCHER_NONE = 0, /* started alone */
    MR_LAUNCHER_OPENMPI,  /* mpirun of Open MPI: OMPI_COMM_WORLD_RANK, _SIZE */
    MR_LAUNCHER_TORCHRUN, /* TORCHELASTIC_RUN_ID with RANK, WORLD_SIZE */
    MR_LAUNCHER_PMI,      /* mpirun of MPICH, srun --mpi=pmi2: PMI_RANK, PMI_SIZE */
    MR_LAUNCHER_SLURM, /* srun: SLURM_PROCID, SLURM_STEP_NUM_TASKS, where there is a SLURM_STEP_ID; the script
                          of sbatch is no rank, whatever SLURM_PROCID it has */
    MR_LAUNCHER_POD,   /* RANK, WORLD_SIZE alone, as the operators of Kubernetes set them */
} mr_launcher;

typedef struct mr_launch {
    size_t struct_size;
    mr_launcher launcher;
    uint32_t rank, size;             /* 0 of 1 when started alone */
    uint32_t local_rank, local_size; /* among those on the same host; local_size 0: nobody says */
} mr_launch;

/* From this process's environment. MR_EINVAL: a launcher's variables do not fit each other; err names them.
 * Not while another thread changes the environment. */
MR_API int mr_launch_find_sized(mr_launch *out, mr_error *err);
static inline int mr_launch_find(mr_launch *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_launch_find_sized(out, err);
}

/* "Open MPI", "torchrun", ...; never NULL. */
MR_API const char *mr_launcher_name(mr_launcher launcher);

/* ---- the world of ranks ----
 *
 * Calls on a world are collective: all ranks make the same calls on a channel in the same order. The two
 * channels know nothing of each other, so that one thread can exchange gradients while another agrees on
 * something else. Every call blocks until this rank's part is done.
 *
 * Errors of these calls:
 *   MR_EPEER   a rank is at fault: it gave up (mr_world_abort()), ended without a word, was silent for
 *              silence_s, or closed its world while others still wait for it. The text names the rank, its
 *              host, why, and what this rank was doing. All ranks come to the same verdict, but for those
 *              that had ended before
 *   MR_EINVAL  the ranks do not make the same call, or lengths differ: the text names both
 *   MR_ENOMEM, MR_EIO  of this rank
 * After any of them the world has ended: every later call of every rank fails, and what was to be received is
 * undefined. What remains is mr_world_close(), and to exit with a status that is not 0: launchers end the
 * rest then. A rank that is slow is not lost: its heartbeat comes from a thread of its own. */

typedef struct mr_world mr_world;

#define MR_WORLD_CHANNELS 2

typedef struct mr_world_config {
    size_t struct_size;
    uint32_t rank, size; /* of mr_launch; 0 of 1 */
    /* Where rank 0 is: "HOST:PORT", "[ADDRESS]:PORT" of IPv6, or "HOST"; the port must be free there. NULL:
     * the variable MILLRACE_MEET, else what the launcher says: this host when all ranks are on it,
     * MASTER_ADDR (torchrun, pods), the first node (srun), to whose short name the variable
     * MILLRACE_HOST_SUFFIX is added ("n1.cluster" and "-ib" are "n1-ib.cluster"). mpirun over several hosts
     * says nothing: MR_EINVAL.
     * Without a PORT eight are tried, between 20000 and 32000, that the job's key decides; pods and torchrun
     * without a store of its own begin with MASTER_PORT. A HOST of localhost or 127.x: no port is seen from
     * outside. */
    const char *meet;
    /* What tells this job from others that meet at the same place at the same time; at most one may have
     * it. NULL: the launcher's names of the job. The variable MILLRACE_JOB is added to either. It is a name,
     * no secret: anybody may guess it. */
    const char *job;
    /* Bytes that must be equal on all ranks, such as version and settings as lines of text: where they
     * differ, the error tells the first such line. At most 64 KiB. */
    const void *card;
    size_t card_bytes;
    double meet_s;    /* all ranks must have come by then; to connect they have as long again, at least 10 s;
                         60 */
    double silence_s; /* a rank that is not heard of for so long is lost; 0: never. At least 0.5; 10 */
    /* What all processes of the run know and nobody else does: 16 to 4096 bytes, 32 random ones are good.
     * NULL: the contents of the file that the variable MILLRACE_SECRET_FILE names, without newlines at the
     * end, which nobody but its owner (this user or root) may read or write; else the variable
     * MILLRACE_SECRET; else there is none. A secret needs OpenSSL's libcrypto at run time
     * (MR_EUNSUPPORTED). */
    const void *secret;
    size_t secret_bytes;
    /* Encrypt the data of calls with TLS 1.3; the variable MILLRACE_TLS=1 asks for it, too. All ranks must
     * agree. The key comes from the secret (MR_EINVAL without one). TLS needs OpenSSL's libssl at run time
     * (MR_EUNSUPPORTED). The messages by which ranks meet and watch each other stay signed and readable. */
    bool tls;
} mr_world_config;

MR_API void mr_world_defaults_sized(mr_world_config *cfg, size_t struct_size);
static inline void mr_world_defaults(mr_world_config *cfg) { mr_world_defaults_sized(cfg, sizeof *cfg); }

/* Meet the others. Blocks until all ranks are connected with each other, or an error that all learn of which
 * have come: one has other settings, two are the same rank, one did not come. A world of one opens no socket.
 *
 * out  written on MR_OK; NULL else
 * cfg  not kept
 *
 * Keeps 3 sockets for each other rank (RLIMIT_NOFILE: MR_ELIMIT where that is too few) and a thread. At most
 * 4096 ranks. No SIGPIPE. After fork() the child cannot use the world (MR_EINVAL; mr_world_close() does
 * nothing). It should not live on: as long as its copies of the sockets are open, others learn of this rank's
 * end by its silence only.
 *
 * MR_EINVAL     settings that make no sense here, or do not fit those of other ranks
 * MR_EPEER      a rank did not come, or went away meanwhile
 * MR_ELIMIT, MR_ENOMEM, MR_EIO */
MR_API int mr_world_open(mr_world **out, const mr_world_config *cfg, mr_error *err);

/* Tell the others that this rank has ended well, and free everything. Waits for no other rank (at most 1 s
 * for their hosts to have the message). No other call may be running. NULL is harmless. */
MR_API void mr_world_close(mr_world *w);

/* These, and the questions below, answer 0, false or "" where w is NULL. */
MR_API uint32_t mr_world_rank(const mr_world *w);
MR_API uint32_t mr_world_size(const mr_world *w);
/* The name of a rank's host as it told it; "" where rank is none. Lives as long as w. */
MR_API const char *mr_world_host(const mr_world *w, uint32_t rank);

typedef enum mr_guard {
    MR_GUARD_NONE = 0, /* whoever reaches the port can take part, and read and change what the run computes */
    MR_GUARD_HOST,     /* whoever has an account on this host can; a world of one has no port */
    MR_GUARD_SECRET,   /* whoever knows the secret can */
} mr_guard;
/* Who could have been one of the ranks. */
MR_API mr_guard mr_world_guard(const mr_world *w);
/* The data of calls is encrypted (mr_world_config.tls). False for a world of one. */
MR_API bool mr_world_encrypts(const mr_world *w);
/* A line about connections that were turned away while the ranks met: from where, and why. Each kind of each
 * address once, of a few addresses. False: there is no other one. Only with a secret. Any thread. */
MR_API bool mr_world_turned_away(mr_world *w, char *text, size_t text_bytes);

typedef struct mr_world_piece {
    void *data;
    size_t bytes;
} mr_world_piece;

/* send[r] goes to rank r, receive[r] comes from rank r; all at once, in both directions. Arrays of size
 * pieces, on all channels below MR_WORLD_CHANNELS; the own rank's are ignored. What is sent is not written
 * to, and must not overlap with what is received. Lengths are known on both sides and compared; nothing is
 * sent where both are 0. One thread at a time on a channel. */
MR_API int mr_world_exchange(mr_world *w, uint32_t channel, const mr_world_piece *send,
                             const mr_world_piece *receive, mr_error *err);
/* data of root comes to all. */
MR_API int mr_world_broadcast(mr_world *w, uint32_t channel, void *data, size_t bytes, uint32_t root,
                              mr_error *err);
/* all: size * bytes, in order of ranks, the same everywhere. mine may be its place in all. */
MR_API int mr_world_gather(mr_world *w, uint32_t channel, const void *mine, size_t bytes, void *all,
                           mr_error *err);
/* No rank returns before all have called. */
MR_API int mr_world_barrier(mr_world *w, uint32_t channel, mr_error *err);

/* This rank gives up: calls of all ranks, those that are waiting and those to come, end with MR_EPEER that
 * names this rank and why (may be NULL). When the world has ended already the first cause remains. Any
 * thread, beside other calls too; again is harmless. Returns when the message is on its way. */
MR_API void mr_world_abort(mr_world *w, const mr_error *why);

/* Has the world ended, and not because this rank gave up? *rank: who is at fault. Any thread. */
MR_API bool mr_world_was_lost(const mr_world *w, uint32_t *rank);

/* Payload so far, in bytes; either may be NULL. Any thread. */
MR_API void mr_world_traffic(const mr_world *w, uint64_t *sent, uint64_t *received);

/* ---- worlds that lose and gain ranks ----
 *
 * In a muster the processes of one job find each other, again and again: at the start, when a rank of their
 * world is lost, and when another process has come. Each time those who are there agree on who is which rank
 * and where they meet; then mr_world_open() makes a world of them. One process is the host of it, whichever
 * is alive and stands first: who has the job's port, else the lowest rank of the world before. A host that is
 * lost is replaced in the same way.
 *
 * A process that is cut off from the others may find itself a world of its own when `min` allows it; with a
 * `min` above half of all, at most one world goes on. The host of such a world keeps looking for the others,
 * and mr_muster_is_wanted() tells both worlds when they can reach each other again. */
typedef struct mr_muster mr_muster;

#define MR_MUSTER_MOST 256 /* ranks of such a world */

typedef struct mr_muster_config {
    size_t struct_size;
    const char *meet, *job; /* of mr_world_config; who comes later must be given the same ones */
    uint32_t min, max;      /* ranks of a world; 1 and MR_MUSTER_MOST */
    double settle_s; /* with min ranks there, but fewer than were expected: so long for another one, and five
                        times so long before the first world; 1 */
    double meet_s;   /* min ranks must have come by then; 60 */
    /* New processes of a host that has lost so many ranks within leave_out_s are not taken in while there are
     * min without them; 0: they are. 0 and 600 */
    uint32_t leave_out;
    double leave_out_s;
    const void *secret; /* of mr_world_config; give it to each world, too */
    size_t secret_bytes;
} mr_muster_config;

MR_API void mr_muster_defaults_sized(mr_muster_config *cfg, size_t struct_size);
static inline void mr_muster_defaults(mr_muster_config *cfg) { mr_muster_defaults_sized(cfg, sizeof *cfg); }

/* Keeps one or two ports open and a thread that answers there until mr_muster_close(). *out: NULL unless
 * MR_OK. MR_EINVAL, MR_ELIMIT, MR_ENOMEM, MR_EIO. */
MR_API int mr_muster_open(mr_muster **out, const mr_muster_config *cfg, mr_error *err);
MR_API void mr_muster_close(mr_muster *m); /* NULL is harmless */

/* Find the others, with no world open. Sets rank, size, meet, job of *world, whose texts live until the next
 * call, and nothing else. That world may yet fail to open, when one of them is lost meanwhile: call again.
 *
 * expected  as many need not wait for more; 0: cfg.max
 * progress  how far the state is that this process holds; 0: it holds none. The one with the most becomes
 *           rank 0. Believed of processes that were in a world of this run before, which share a number that
 *           nobody else is told: any other comes as a new one, with no state
 * stop      may be NULL; non-zero: MR_ECANCELED soon
 *
 * MR_EPEER: fewer than cfg.min came within meet_s. MR_ECANCELED, MR_ENOMEM, MR_EIO. */
MR_API int mr_muster_form(mr_muster *m, uint32_t expected, uint64_t progress, const volatile int *stop,
                          mr_world_config *world, mr_error *err);

/* A rank on this host was lost. Before the next muster, by the thread that calls mr_muster_form(). */
MR_API void mr_muster_lost(mr_muster *m, const char *host);

/* As those of a world, for all musters. */
MR_API mr_guard mr_muster_guard(const mr_muster *m);
MR_API bool mr_muster_turned_away(mr_muster *m, char *text, size_t text_bytes);

/* Is there somebody who could be of the world: who waits here, while it has fewer than `max`, or in another
 * world of the job? Any thread, at any time; costs next to nothing. */
MR_API bool mr_muster_is_wanted(const mr_muster *m);

#ifdef __cplusplus
}
#endif
#endif
