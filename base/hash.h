/* base/hash.h: a hash of foreign names for tables in memory. Private.
 *
 * The key is drawn once in a process, so nobody who writes names into a data set can choose such that meet in
 * one place of a table. Results differ from run to run: they never go to disk, and nothing that is counted or
 * ordered depends on them. */
#ifndef MRI_HASH_H
#define MRI_HASH_H

#include "millrace/base.h"

/* SipHash-2-4 (Aumasson, Bernstein: SipHash, a fast short-input PRF, 2012). */
uint64_t mri_siphash(const uint64_t key[2], const void *data, size_t bytes);
/* With this process's key. Any thread. */
uint64_t mri_hash_name(const void *data, size_t bytes);

#endif
