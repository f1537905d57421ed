/* SPDX-License-Identifier: MIT */
/* tec-operator --role=guard: the proxy in front of Trustee; it does not use Kubernetes. */
#ifndef TEC_CMD_GUARD_H
#define TEC_CMD_GUARD_H

#include "options.h"

/* Runs until SIGTERM or SIGINT. -1: it could not start. */
int guard_run(struct options *o, struct err *err);

#endif
