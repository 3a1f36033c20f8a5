/* pipeline/stream/stream.h: the room of stages: batches on their way from a number to pixels in the memory of
 * host and devices. Private.
 *
 * Takes a plan of batches (order/), a source, a cache or resident set, an augmentation, fields and devices,
 * all of them opened by the caller. Gives full slots, or parts in device memory, one batch after the other;
 * counts of every stage; one way to stop all of them. Callers: the loader, which wires, starts and stops the
 * stages, and tests that run one of them alone: no file here names the loader.
 *
 *   batches ──► ring ◄──────────────────── slots, chunks
 *                │ claim           ready ▲  take         full ▲  wait         staged ▲  take, release
 *                ▼                       │   ▼                │   ▼                  │   ▼
 *             read stage ────────────────┘ decode stage ──────┘ staging ─────────────┘ whoever consumes
 *             locate, resident, readers    place, bad samples   devices
 *
 *   halt     the first error, or a stop, ends all of them
 *
 * Each stage is a struct with create, start, join, destroy and counters, and can be run without threads.
 * Only the ring lies between two stages, so no stage knows another one. Calls go down:
 *
 *   charges                                  what those who wait for a batch wait for
 *   order stage, read stage, decode stage, staging
 *   bad samples                              what follows from a sample that cannot be placed
 *   locate, place                            where the bytes of samples are; what becomes of them
 *   ring                                     slots and chunks change hands
 *   chunk, slot, halt, notices */
#ifndef MRI_STREAM_H
#define MRI_STREAM_H

#include "pipeline/stream/charges.h"
#include "pipeline/stream/decode_stage.h"
#include "pipeline/stream/order_stage.h"
#include "pipeline/stream/read_stage.h"
#include "pipeline/stream/staging.h"

#endif
