/* run/logger/listen_address.h: from HOST:PORT to a socket that listens there. */
#ifndef MRI_LISTEN_ADDRESS_H
#define MRI_LISTEN_ADDRESS_H

#include <stddef.h>

#include "millrace/base.h"

/* See mri_metrics_server_open(). *fd does not block; shown gets the address with the port that it got. */
int mri_listen_address_open(int *fd, const char *where, char *shown, size_t shown_bytes, mr_error *err);

#endif
