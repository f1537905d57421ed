/* SPDX-License-Identifier: MIT */
/* The file of a CA for nodes, as created by tecctl bootstrap ca: its certificate and its
 * private key. */
#ifndef TEC_CMD_NODE_CA_H
#define TEC_CMD_NODE_CA_H

#include "tec/base/err.h"
#include "tec/pki/ca.h"

/* ERR_INVALID names the file; also if other users can read it. */
int node_ca_read(const char *path, struct pki_ca *out, struct err *err) MUST_CHECK;

#endif
