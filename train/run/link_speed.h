/* train/run/link_speed.h: how fast the processes of a run exchange bytes, and the size of gradient buckets
 * that follows from it. Private to train/ and its tests. */
#ifndef MRI_LINK_SPEED_H
#define MRI_LINK_SPEED_H

#include "millrace/ranks.h"

typedef struct mri_link_speed {
    double latency_s;   /* of an exchange of few bytes */
    double s_per_byte;  /* that a process sends, while it receives as many */
    uint32_t processes; /* or hosts, whose ranks add first; 0 or 1: nothing was measured */
} mri_link_speed;

/* All processes call it, with the same most_bytes: a process sends at most this at once, and at most 8
 * MiB. per_host: mr_group_config.ranks_per_host. They all get the figures of the slowest. Takes ten to forty
 * latencies, and a quarter of a second if the network is slow. */
int mri_link_speed_measure(mri_link_speed *out, mr_world *world, uint32_t channel, uint32_t per_host,
                           uint64_t most_bytes, mr_error *err);
/* The size of buckets for this many bytes of gradients: large enough for latencies to be a small part of
 * the exchange; 0: one bucket. */
uint64_t mri_link_speed_bucket(const mri_link_speed *speed, uint64_t bytes);
/* How long the sum of an array takes. */
double mri_link_speed_sum_s(const mri_link_speed *speed, uint64_t bytes);

#endif
