/* SPDX-License-Identifier: MIT */
/* tec-node serve: the endpoint for local workloads. */
#ifndef TEC_CMD_NODE_SERVE_H
#define TEC_CMD_NODE_SERVE_H

#include "node_options.h"

/* Runs until SIGTERM or SIGINT; returns the exit status. */
int node_serve(const struct node_options *o);

#endif
