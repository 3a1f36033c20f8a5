/* train/run/run.h: the room that runs a network on devices: steps over all replicas of it.
 *
 * Takes a network (train/net), devices, and the parts of a batch that are in device memory. Gives weights
 * that were updated, sums of losses, and tensors by the names that a checkpoint has for them. Callers: train/
 * itself (trainer.c, trainer_state.c) and tests; nothing here knows a trainer, a loader, or a file.
 *
 *   split         a network on several devices, one after the other
 *   sums          counted sums, and the loss scale              tensors   the arrays of a replica by name
 *   exchange      the messages between replicas                 flight    steps that are queued and not over
 *   tap           the wire of an exchange, watched
 *   team          the replicas together, and their first error
 *   ranks         what processes ask of each other; which parts of a batch are whose
 *   lateness      which process the others wait for             link_speed  the network between processes
 *   replica       a network on one device: its parts, opened and closed
 *   passes        forward, backward, update: queued, or replayed
 *   memory        device memory                                 plan      where everything lies in it
 *   worker        parts that train by themselves, and their averages
 *   nodes         layers as ops                                 spans     places in one stretch of memory
 *   fold          the order in which a replica adds up its parts
 *
 * Calls go down this list only. Every struct is written by the file of its name. */
#ifndef MRI_RUN_H
#define MRI_RUN_H

#include "train/run/exchange.h"
#include "train/run/flight.h"
#include "train/run/split.h"
#include "train/run/sums.h"
#include "train/run/tensors.h"

#endif
