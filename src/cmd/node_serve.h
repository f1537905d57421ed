/* SPDX-License-Identifier: MIT */
/* tec-node serve: the local endpoint as a process. */
#ifndef TEC_CMD_NODE_SERVE_H
#define TEC_CMD_NODE_SERVE_H

#include "node_options.h"

/* Until SIGTERM or SIGINT; the exit status. */
int node_serve(const struct node_options *o);

#endif
