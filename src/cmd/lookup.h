/* SPDX-License-Identifier: MIT */
/* tec-operator --lookup-label: one question to a registry, for the operator that started it. */
#ifndef TEC_CMD_LOOKUP_H
#define TEC_CMD_LOOKUP_H

/* Reads the question from standard input, prints the answer (oci/wire.h); the exit status. */
int lookup_run(void);

#endif
