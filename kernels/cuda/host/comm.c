/* kernels/cuda/host/comm.c: the groups that a device is in, and what NCCL noticed in them by itself. */
#include "kernels/cuda/host/gpu.h"

void mri_cuda_comm_attach(struct mri_cuda_comm *part)
{
    pthread_mutex_lock(&part->dev->lock);
    part->next = part->dev->comms;
    part->dev->comms = part;
    part->dev->comm_count++;
    pthread_mutex_unlock(&part->dev->lock);
}

void mri_cuda_comm_detach(struct mri_cuda_comm *part)
{
    pthread_mutex_lock(&part->dev->lock);
    for (struct mri_cuda_comm **at = &part->dev->comms; *at; at = &(*at)->next) {
        if (*at != part) continue;
        *at = part->next;
        part->dev->comm_count--;
        break;
    }
    pthread_mutex_unlock(&part->dev->lock);
}

void mri_cuda_comm_poll(mri_cuda_device *dev)
{
    ncclResult_t found = ncclSuccess;
    pthread_mutex_lock(&dev->lock); /* the call only reads a word; the lock keeps the communicator alive */
    for (struct mri_cuda_comm *part = dev->comms; part && (found == ncclSuccess || found == ncclInProgress);
         part = part->next)
        if (dev->api->ncclCommGetAsyncError(part->comm, &found) != ncclSuccess) found = ncclSuccess;
    pthread_mutex_unlock(&dev->lock);
    if (found == ncclSuccess || found == ncclInProgress) return;
    mr_error err = MR_ERROR_INIT;
    mri_cuda_check_nccl(dev, found, "an exchange between GPUs", &err);
    mri_cuda_fail(dev, &err);
}
