#!/bin/sh
# One run in N processes of this host, or of those in a host file, under Open MPI or MPICH:
#
#   train_mpirun.sh 4 photos.mrec --model resnet50 --parts 16
#   MEET=node1:29000 MPIRUN="mpirun --hostfile hosts" train_mpirun.sh 4 photos.mrec --model resnet50 --parts 16
#
# Over several hosts mpirun does not say where rank 0 is: MEET names its host, the first of the file, and a free port.
# MILLRACE: the program, where it is not on the path.
processes=$1
shift
# shellcheck disable=SC2086
exec ${MPIRUN:-mpirun} -n "$processes" "${MILLRACE:-millrace}" train "$@" ${MEET:+--meet "$MEET"}
