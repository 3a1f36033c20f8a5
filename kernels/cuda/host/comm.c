/* kernels/cuda/host/comm.c: the groups that a device is in, and what NCCL, or another process, noticed in
 * them by itself.
 *
 * One lock for the lists of all devices, which a thread holds while it ends a group that it found in one of
 * them: no other thread destroys the group meanwhile. Ending it takes its parts out of the lists, so the lock
 * may be taken again by its owner. */
#include "kernels/cuda/host/gpu.h"

/* A process that is lost often shows in NCCL first, as an error of the network. The processes find out which
 * one it was; one that fell silent after 10 s by default. */
#define VERDICT_NS 12000000000u

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_lock(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

static void take_lock(void)
{
    pthread_once(&once, make_lock);
    pthread_mutex_lock(&lock);
}

void mri_cuda_comm_attach(struct mri_cuda_comm *part)
{
    take_lock();
    part->next = part->dev->comms;
    part->dev->comms = part;
    part->dev->comm_count++;
    pthread_mutex_unlock(&lock);
}

void mri_cuda_comm_detach(struct mri_cuda_comm *part)
{
    take_lock();
    for (struct mri_cuda_comm **at = &part->dev->comms; *at; at = &(*at)->next) {
        if (*at != part) continue;
        *at = part->next;
        part->dev->comm_count--;
        break;
    }
    pthread_mutex_unlock(&lock);
}

int mri_cuda_comm_judge(struct mri_cuda_comm *part, ncclResult_t found, mr_error *err)
{
    const int rc = part->check ? part->check(part->context, err) : MR_OK;
    if (rc || found == ncclSuccess || found == ncclInProgress) return rc;
    const uint64_t now = mri_now_ns();
    if (part->noticed_ns == 0) part->noticed_ns = now;
    if (part->check && now - part->noticed_ns < VERDICT_NS) return MR_OK;
    return mri_cuda_check_nccl(part->dev, found, "an exchange between GPUs", err);
}

static int look(struct mri_cuda_comm *part, mr_error *err)
{
    ncclResult_t found = ncclSuccess; /* the lock keeps the communicator alive */
    /* On a communicator that does not block, the query that finds a call complete also frees the call's
     * memory: two threads must not query at once. A thread inside a call queries by itself. */
    const bool free_to_ask = !part->calls || pthread_mutex_trylock(part->calls) == 0;
    if (free_to_ask && part->dev->api->ncclCommGetAsyncError(part->comm, &found) != ncclSuccess)
        found = ncclSuccess;
    if (free_to_ask && part->calls) pthread_mutex_unlock(part->calls);
    return mri_cuda_comm_judge(part, found, err);
}

void mri_cuda_comm_poll(mri_cuda_device *dev)
{
    mr_error err = MR_ERROR_INIT;
    take_lock();
    struct mri_cuda_comm *part = dev->comms;
    while (part && look(part, &err) == MR_OK) part = part->next;
    if (part) {
        mri_cuda_fail(dev, &err);
        if (part->end) part->end(part->group, &err);
    }
    pthread_mutex_unlock(&lock);
}
