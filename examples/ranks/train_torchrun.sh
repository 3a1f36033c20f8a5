#!/bin/sh
# One run in N processes of this host under torchrun, started again up to three times when one of them ends:
#
#   train_torchrun.sh 4 photos.mrec --model resnet50 --parts 16
#
# On several hosts start it on each with the same RENDEZVOUS="--nnodes 2 --rdzv-backend c10d --rdzv-endpoint node1:29400".
# MILLRACE: the program; CHECKPOINT: the folder to go on from, which the host of rank 0 can write to.
processes=$1
shift
# shellcheck disable=SC2086
exec ${TORCHRUN:-torchrun} --nproc-per-node "$processes" --max-restarts 3 ${RENDEZVOUS:-} --no-python \
    "${MILLRACE:-millrace}" train "$@" --checkpoint "${CHECKPOINT:-run}" --resume
