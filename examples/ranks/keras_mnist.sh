#!/bin/sh
# Horovod's keras_mnist_advanced in N processes of this host: a rate N times as high that is reached in 5 epochs, a batch of 128
# for each process, weights of rank 0 at the start, figures of all processes, checkpoints of rank 0. docs/ranks.md compares line by
# line.
#
#   keras_mnist.sh 4 mnist
#   EPOCHS=12 MPIRUN="mpirun --hostfile hosts" keras_mnist.sh 8 mnist --meet node1:29000
#
# MILLRACE: the program, where it is not on the path; CHECKPOINT: the folder of the run, which an interrupted run continues.
processes=$1 data=$2
shift 2
# shellcheck disable=SC2086
exec ${MPIRUN:-mpirun} -n "$processes" "${MILLRACE:-millrace}" train "$data" --model mnist-cnn --parts "$processes" \
    --batch $((128 * processes)) --optimizer adadelta --lr "$processes" --schedule constant,warmup=5 --epochs "${EPOCHS:-24}" \
    --checkpoint "${CHECKPOINT:-mnist-run}" --resume "$@"
