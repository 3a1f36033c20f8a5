/* millrace/ranks.h: a world of processes (ranks) that one launcher started.
 *
 * A launcher (mpirun, srun, torchrun, a pod of Kubernetes) starts N processes of one program and sets
 * environment variables with each process's rank; mr_launch_find() reads them. The processes of a world
 * connect over TCP, exchange bytes, and detect when one of them dies, stops answering or gives up.
 *
 * Trust: the processes of a run can share a secret (mr_world_config.secret). Both ends of every connection
 * then prove that they know it before they accept any other message, and all messages for meeting, watching
 * and finding ranks are signed. The data of calls is neither signed nor encrypted unless mr_world_config.tls
 * is set. Connections without a proof are closed; they are bounded in number and memory and delay no rank.
 * Without a secret, anybody who reaches the port and knows the job's name can take part; a run with all ranks
 * on one machine then listens on the loopback device only. mr_world_guard() returns the protection of a
 * world. */
#ifndef MILLRACE_RANKS_H
#define MILLRACE_RANKS_H

#include "millrace/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Launchers in the order of detection: launchers nest and variables are inherited, so the usually innermost
 * launcher comes first. */
typedef enum mr_launcher {
    MR_LAUNCHER_NONE = 0, /* started alone */
    MR_LAUNCHER_OPENMPI,  /* mpirun of Open MPI: OMPI_COMM_WORLD_RANK, _SIZE */
    MR_LAUNCHER_TORCHRUN, /* TORCHELASTIC_RUN_ID with RANK, WORLD_SIZE */
    MR_LAUNCHER_PMI,      /* mpirun of MPICH, srun --mpi=pmi2: PMI_RANK, PMI_SIZE */
    MR_LAUNCHER_SLURM, /* srun: SLURM_PROCID, SLURM_STEP_NUM_TASKS, if SLURM_STEP_ID is set; an sbatch script
                          is not a rank, even with SLURM_PROCID set */
    MR_LAUNCHER_POD,   /* only RANK, WORLD_SIZE, as the operators of Kubernetes set them */
} mr_launcher;

typedef struct mr_launch {
    size_t struct_size;
    mr_launcher launcher;
    uint32_t rank, size;             /* 0 of 1 when started alone */
    uint32_t local_rank, local_size; /* among the ranks on this machine; local_size 0: not known */
} mr_launch;

/* Read the launch from this process's environment. MR_EINVAL: a launcher's variables contradict each other;
 * err names them. Do not call it while another thread changes the environment. */
static inline int mr_launch_find(mr_launch *out, mr_error *err);

/* "Open MPI", "torchrun", ...; never NULL. */
MR_API const char *mr_launcher_name(mr_launcher launcher);

/* ---- the world of ranks ----
 *
 * Calls on a world are collective: all ranks make the same calls on a channel in the same order. The two
 * channels are independent, so that one thread can exchange gradients on one channel while another thread
 * uses the other. Every call blocks until this rank's share of it is done.
 *
 * Errors of these calls:
 *   MR_EPEER   a rank failed: it called mr_world_abort(), ended without closing its world, sent nothing for
 *              silence_s, or closed its world while others wait for it. The text names the rank, its machine,
 *              the reason and the call of this rank. All ranks report the same rank, except ranks that had
 *              ended before. After mr_world_abort() of another rank mr_error.host is the status of its `why`
 *   MR_EINVAL  the ranks make different calls, or lengths differ; the text names both
 *   MR_ENOMEM, MR_EIO  an error of this rank
 * Each of these errors ends the world: every later call of every rank fails, and receive buffers are
 * undefined. Call mr_world_close() and exit with a nonzero status, upon which launchers end the other
 * processes. A slow rank is not lost: its own thread sends its heartbeat. */

typedef struct mr_world mr_world;

#define MR_WORLD_CHANNELS 2

/* Wires between ranks. The bytes that arrive do not depend on the wire. */
typedef enum mr_wire_choice {
    MR_WIRE_AUTO = 0, /* shared memory between ranks of one machine, TCP between machines */
    MR_WIRE_TCP,      /* TCP everywhere */
    MR_WIRE_SHM,      /* shared memory everywhere, else mr_world_open() fails */
    MR_WIRE_NCCL, /* sums of gradients from GPU to GPU by NCCL (mr_group_config.nccl); the calls of the world
                     itself as with MR_WIRE_AUTO */
    /* channel 0 by messages of Open MPI or MPICH, whichever started the ranks, else mr_world_open() fails;
     * channel 1 as with MR_WIRE_AUTO */
    MR_WIRE_MPI,
    /* channel 0 by messages of UCX, else mr_world_open() fails; channel 1 as with MR_WIRE_AUTO */
    MR_WIRE_UCX,
} mr_wire_choice;

typedef struct mr_world_config {
    size_t struct_size;
    uint32_t rank, size; /* from mr_launch; default 0 of 1 */
    /* Address of rank 0: "HOST:PORT", "[ADDRESS]:PORT" for IPv6, or "HOST"; the port must be free on that
     * machine. NULL: the variable MILLRACE_MEET, else the launcher's value: this machine when all ranks run
     * on it, MASTER_ADDR (torchrun, pods), or the first node (srun), whose short name gets the suffix in the
     * variable MILLRACE_HOST_SUFFIX ("n1.cluster" and "-ib" become "n1-ib.cluster"). mpirun over several
     * machines supplies no address: MR_EINVAL.
     * Without a PORT the ranks try eight ports between 20000 and 32000 that follow from the job's key; for
     * pods, and for torchrun without a store of its own, MASTER_PORT comes first. With a HOST of localhost or
     * 127.x no port is reachable from other machines. */
    const char *meet;
    /* Name of the job; jobs that meet at the same address at the same time must have different names. NULL:
     * the launcher's name of the job. The variable MILLRACE_JOB is appended in both cases. The name is not a
     * secret: anybody may guess it. */
    const char *job;
    /* Bytes that must be equal on all ranks, such as version and settings in lines of text; if they differ,
     * the error names the first different line. At most 64 KiB. */
    const void *card;
    size_t card_bytes;
    double meet_s; /* time limit for all ranks to arrive; they then have the same time again, at least 10 s,
                      to connect; default 60 */
    double silence_s; /* a rank without a heartbeat for this time is lost; 0: no limit. At least 0.5; default
                         10 */
    /* Secret that only the processes of the run know: 16 to 4096 bytes; use 32 random bytes. NULL: the
     * contents, without newlines at the end, of the file named in the variable MILLRACE_SECRET_FILE, which
     * only its owner (this user or root) may read or write; else the variable MILLRACE_SECRET; else no
     * secret. A secret needs OpenSSL's libcrypto at run time (else MR_EUNSUPPORTED). */
    const void *secret;
    size_t secret_bytes;
    /* Encrypt the data of calls with TLS 1.3; the variable MILLRACE_TLS=1 also sets it. All ranks must have
     * the same value. The key is derived from the secret (MR_EINVAL without a secret). TLS needs OpenSSL's
     * libssl at run time (else MR_EUNSUPPORTED). Messages for meeting and watching ranks are signed but not
     * encrypted. Data in shared memory is not encrypted: it stays on the machine, and other users cannot read
     * it. */
    bool tls;
    /* All ranks must have the same value. Default MR_WIRE_AUTO.
     * Two ranks share memory when they run on one machine, as one user and in one network namespace. The
     * memory is anonymous: no file is created, and nothing remains when the ranks end in any way. Only a
     * process of the same user that knows a number drawn for this world can attach. Per pair of ranks it
     * takes 2.1 MiB with up to 8 ranks on a machine, less with more, and at least 128 KiB. Whether
     * two ranks run on one machine is decided by the kernel's boot id, or by the variable MILLRACE_HOST_ID if
     * it is set. */
    mr_wire_choice wire;
} mr_world_config;

static inline void mr_world_defaults(mr_world_config *cfg);

/* Open a world. Blocks until all ranks are connected with each other, or until an error, which all ranks that
 * have arrived report: a rank with other settings, two processes with the same rank, a missing rank. A world
 * of one opens no socket.
 *
 * out  written on MR_OK; else NULL
 * cfg  read during the call only
 *
 * Holds 3 sockets per other rank (MR_ELIMIT when RLIMIT_NOFILE is too small) and a thread. At most 4096
 * ranks. Raises no SIGPIPE. After fork() the child cannot use the world (MR_EINVAL; mr_world_close() does
 * nothing). The child should end soon: while its copies of the sockets are open, other ranks detect the end
 * of this rank only by the missing heartbeat.
 *
 * MR_EINVAL     settings are invalid, or differ from the other ranks' settings
 * MR_EUNSUPPORTED  MR_WIRE_SHM is set and two ranks cannot share memory; the text names both and the reason.
 *               Ranks that share memory with rank 0 return MR_EPEER with this text.
 *               MR_WIRE_MPI or MR_WIRE_UCX is set and a rank cannot use it; the text names the rank, and the
 *               others return MR_EPEER with this text
 * MR_EPEER      a rank did not arrive, or left in the meantime
 * MR_ELIMIT, MR_ENOMEM, MR_EIO */
MR_API int mr_world_open(mr_world **out, const mr_world_config *cfg, mr_error *err);

/* End this rank without error: send the other ranks a message and free everything. Waits for no other rank,
 * and at most 1 s for the message to reach their machines. No other call may be running. Accepts NULL. */
MR_API void mr_world_close(mr_world *w);

/* This rank and the number of ranks. For w NULL these and the queries below return 0, false or "". */
MR_API uint32_t mr_world_rank(const mr_world *w);
MR_API uint32_t mr_world_size(const mr_world *w);
/* The name of a rank's machine, as sent by the rank; "" for an invalid rank. Valid as long as w. */
MR_API const char *mr_world_host(const mr_world *w, uint32_t rank);

typedef enum mr_guard {
    MR_GUARD_NONE = 0, /* anybody who reaches the port can take part, and read and change the run's data */
    MR_GUARD_HOST,     /* anybody with an account on this machine can; a world of one has no port */
    MR_GUARD_SECRET,   /* anybody who knows the secret can */
} mr_guard;
/* Return who could have joined the world as a rank. */
MR_API mr_guard mr_world_guard(const mr_world *w);
/* Return true when the data of calls is encrypted (mr_world_config.tls). False for a world of one. */
MR_API bool mr_world_encrypts(const mr_world *w);
/* Return the wires in use between any ranks: "tcp", "shm" or "shm and tcp"; "nccl", "mpi" or "ucx" with these
 * choices; "" for a world of one. The same on all ranks. */
MR_API const char *mr_world_wires(const mr_world *w);
/* Return mr_world_config.wire. */
MR_API mr_wire_choice mr_world_wire(const mr_world *w);
/* Return the number of ranks on each machine, if it is the same on all, the ranks of a machine are
 * consecutive and share memory; else 1. The same on all ranks. */
MR_API uint32_t mr_world_ranks_per_host(const mr_world *w);
/* Return mr_world_config.meet_s. */
MR_API double mr_world_meet_s(const mr_world *w);
/* Return, once, a line that says why ranks of one machine use TCP although MR_WIRE_AUTO was set. False: there
 * is no such line, or it was returned before. Any thread. */
MR_API bool mr_world_wire_note(mr_world *w, char *text, size_t text_bytes);
/* Return a line about connections that were rejected while the ranks met: their address, and why. Each
 * address and reason comes once, for a few addresses. False: no further line. Only with a secret. Any
 * thread. */
MR_API bool mr_world_turned_away(mr_world *w, char *text, size_t text_bytes);

typedef struct mr_world_piece {
    void *data;
    size_t bytes;
} mr_world_piece;

/* Exchange data with all ranks at once: send[r] goes to rank r, receive[r] comes from rank r. Both arrays
 * have mr_world_size() pieces; the piece of this rank is ignored. channel is below MR_WORLD_CHANNELS. send
 * pieces are only read, and must not overlap receive pieces. Both sides state the length, and the lengths are
 * compared; nothing is sent for length 0. One thread at a time per channel. */
MR_API int mr_world_exchange(mr_world *w, uint32_t channel, const mr_world_piece *send,
                             const mr_world_piece *receive, mr_error *err);
/* Copy root's data to data of all ranks. */
MR_API int mr_world_broadcast(mr_world *w, uint32_t channel, void *data, size_t bytes, uint32_t root,
                              mr_error *err);
/* Gather every rank's bytes into all: mr_world_size() * bytes, in order of ranks, the same on every rank.
 * mine may point to this rank's position in all. */
MR_API int mr_world_gather(mr_world *w, uint32_t channel, const void *mine, size_t bytes, void *all,
                           mr_error *err);
/* Return after all ranks have called it. */
MR_API int mr_world_barrier(mr_world *w, uint32_t channel, mr_error *err);

/* Give up: all waiting and later calls of all ranks end with MR_EPEER, which names this rank and the reason
 * `why` (may be NULL). Their mr_error.host is why->host, or why->code if that is 0. If the world has already
 * ended, its first reason remains. Any thread, also during other calls; repeated calls are harmless. Returns
 * when the message is on its way. */
MR_API void mr_world_abort(mr_world *w, const mr_error *why);

/* Return MR_OK while the world lives, else MR_EPEER with the text that its calls return from now on. Does not
 * wait. Any thread. */
MR_API int mr_world_check(mr_world *w, mr_error *err);
/* Return true when the world has ended for another reason than mr_world_abort() on this rank. *rank: the rank
 * at fault. Any thread. */
MR_API bool mr_world_was_lost(const mr_world *w, uint32_t *rank);

/* Read the payload so far, in bytes; either pointer may be NULL. Any thread. */
MR_API void mr_world_traffic(const mr_world *w, uint64_t *sent, uint64_t *received);

/* Read when the first byte of each rank came in the newest mr_world_exchange() of a channel: first_ns[r], of
 * mr_world_size() entries, in ns of CLOCK_MONOTONIC; 0: that rank sent nothing. Call it in the thread of the
 * exchange. No effect if w or first_ns is NULL. */
MR_API void mr_world_arrivals(const mr_world *w, uint32_t channel, uint64_t *first_ns);

/* ---- worlds that lose and gain ranks ----
 *
 * A muster lets the processes of one job find each other repeatedly: at the start, when a rank of their world
 * is lost, and when a new process arrives. Each time the processes present agree on their ranks and their
 * meeting address; mr_world_open() then makes a world of them. One living process coordinates: the process
 * with the job's port, else the lowest rank of the world before. A lost coordinator is replaced by the same
 * rule.
 *
 * A process that is cut off from the others may form a world of its own if `min` allows it; with `min` above
 * half of all processes, at most one world continues. The coordinator of such a world keeps looking for the
 * others, and mr_muster_is_wanted() returns true in both worlds when they can reach each other again. */
typedef struct mr_muster mr_muster;

#define MR_MUSTER_MOST 256 /* ranks of such a world */

typedef struct mr_muster_config {
    size_t struct_size;
    const char *meet, *job; /* as in mr_world_config; processes that arrive later need the same values */
    uint32_t min, max;      /* limits of the number of ranks; default 1 and MR_MUSTER_MOST */
    double settle_s; /* with at least min but fewer ranks than expected: time to wait for one more, five times
                        this before the first world; default 1 */
    double meet_s;   /* time limit for min ranks to arrive; default 60 */
    /* Reject new processes of a machine that has lost leave_out ranks within leave_out_s, unless fewer than
     * min ranks remain without them; 0: never. Default 0 and 600 */
    uint32_t leave_out;
    double leave_out_s;
    const void *secret; /* as in mr_world_config; set it in each world's configuration, too */
    size_t secret_bytes;
} mr_muster_config;

static inline void mr_muster_defaults(mr_muster_config *cfg);

/* Open a muster: until mr_muster_close() one or two ports are open, and a thread answers on them. *out is
 * NULL unless MR_OK. MR_EINVAL, MR_ELIMIT, MR_ENOMEM, MR_EIO. */
MR_API int mr_muster_open(mr_muster **out, const mr_muster_config *cfg, mr_error *err);
MR_API void mr_muster_close(mr_muster *m); /* accepts NULL */

/* Find the other processes, while no world is open. Sets only rank, size, meet and job of *world; their texts
 * are valid until the next call. mr_world_open() may still fail if a process is lost in the meantime: call
 * mr_muster_form() again.
 *
 * expected  number of ranks that need not wait for more; 0: cfg.max
 * progress  progress of the state that this process holds; 0: no state. The process with the most progress
 *           becomes rank 0. It is trusted only from processes that were in an earlier world of this run,
 *           which share a secret number; any other process counts as new, without state
 * stop      may be NULL; nonzero: returns MR_ECANCELED soon
 *
 * MR_EPEER: fewer than cfg.min came within meet_s. MR_ECANCELED, MR_ENOMEM, MR_EIO. */
MR_API int mr_muster_form(mr_muster *m, uint32_t expected, uint64_t progress, const volatile int *stop,
                          mr_world_config *world, mr_error *err);

/* Record that a rank on this machine was lost, for leave_out. Call it before the next mr_muster_form(), from
 * the same thread. */
MR_API void mr_muster_lost(mr_muster *m, const char *host);

/* As mr_world_guard() and mr_world_turned_away(), for all calls of mr_muster_form(). */
MR_API mr_guard mr_muster_guard(const mr_muster *m);
MR_API bool mr_muster_turned_away(mr_muster *m, char *text, size_t text_bytes);

/* Return true when another process could join the world: one that waits here while the world has fewer than
 * `max` ranks, or one in another world of the job. Any thread, at any time; cheap. */
MR_API bool mr_muster_is_wanted(const mr_muster *m);

/* ---- servers and workers ----
 *
 * A crew deals the ranks of a world into servers, which hold parameters and update them, and workers, which
 * compute: the first rank of each machine with several is a server, all others are workers, numbered by rank.
 * It opens a world of all workers, and one for each server and worker: rank 0 is the server. */
typedef struct mr_crew mr_crew;

/* Open a crew with the settings of `all`. All ranks of `all` call it at once; `all` may be closed afterwards.
 * The worlds meet at free ports of the servers' machines; their secret is the one of the environment. *out is
 * NULL unless MR_OK.
 *
 * servers  their number, the first ranks of the first machines; 0: one for each machine with several ranks
 *
 * Processes with equal host names are on one machine; the variable MILLRACE_HOST_ID replaces the name.
 * MR_EINVAL: no rank would serve or work, or the ranks of a machine are not consecutive; else the errors of
 * mr_world_open(). */
MR_API int mr_crew_open(mr_crew **out, mr_world *all, uint32_t servers, mr_error *err);
MR_API void mr_crew_close(mr_crew *c); /* accepts NULL */
/* Return whether this process is a server, its number among servers or workers, and how many there are. */
MR_API bool mr_crew_serves(const mr_crew *c);
MR_API uint32_t mr_crew_index(const mr_crew *c);
MR_API uint32_t mr_crew_servers(const mr_crew *c);
MR_API uint32_t mr_crew_workers(const mr_crew *c);
/* Take the world of all workers, which the caller closes; NULL in a server, with a single worker, and when it
 * was taken before. */
MR_API mr_world *mr_crew_take_together(mr_crew *c);
/* Return a worker's world with server `at`, or a server's with worker `at`; NULL past the last. The crew's.
 */
MR_API mr_world *mr_crew_pair(const mr_crew *c, uint32_t at);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_API int mr_launch_find_sized(mr_launch *out, mr_error *err);
static inline int mr_launch_find(mr_launch *out, mr_error *err)
{
    if (out) out->struct_size = sizeof *out;
    return mr_launch_find_sized(out, err);
}

MR_API void mr_world_defaults_sized(mr_world_config *cfg, size_t struct_size);
static inline void mr_world_defaults(mr_world_config *cfg) { mr_world_defaults_sized(cfg, sizeof *cfg); }

MR_API void mr_muster_defaults_sized(mr_muster_config *cfg, size_t struct_size);
static inline void mr_muster_defaults(mr_muster_config *cfg) { mr_muster_defaults_sized(cfg, sizeof *cfg); }

#ifdef __cplusplus
}
#endif
#endif
