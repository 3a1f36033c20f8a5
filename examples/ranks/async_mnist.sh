#!/bin/sh
# Asynchronous MNIST with parameter servers: of HOSTS machines with EACH processes the first process of each serves parameters, the
# others train, and a server updates with the gradient of each when it comes. No process is more than 8 steps ahead of another.
#
#   MPIRUN="mpirun --host h0:5,h1:5" async_mnist.sh 2 5 mnist --meet h0:29000
#   async_mnist.sh 1 3 mnist                                                    # on this machine: one server, two workers
#
# MILLRACE: the program, where it is not on the path; EPOCHS: 12 by default.
hosts=$1 each=$2 data=$3
shift 3
# shellcheck disable=SC2086
exec ${MPIRUN:-mpirun} -n $((hosts * each)) "${MILLRACE:-millrace}" train "$data" --model mnist-cnn --sync ps-async:8 \
    --batch $((128 * hosts * (each - 1))) --optimizer adadelta --lr 1 --epochs "${EPOCHS:-12}" "$@"
