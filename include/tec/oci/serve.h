/* SPDX-License-Identifier: MIT */
/*
 * The other side of oci/lookup.h: the whole life of the process that reads what registries send. It
 * was started for one question, so it has none of the keys of the one that asks.
 */
#ifndef TEC_OCI_SERVE_H
#define TEC_OCI_SERVE_H

#include "tec/base/confine.h"
#include "tec/base/err.h"

/*
 * What a process gives up for good before it reads what a registry sends: see base/confine.h. It can still
 * resolve names and verify certificates, and write below the directory write_fd (-1: nowhere). Without
 * Landlock the limits hold.
 */
int oci_confine(const struct confine_limits *limits, int write_fd, struct err *err) MUST_CHECK;

/*
 * Confines this process for good (base/confine.h), reads one question from in_fd and writes its
 * answer to out_fd (oci/wire.h); that a registry did not answer is an answer. What was logged
 * meanwhile goes into the answer.
 */
int oci_serve(int in_fd, int out_fd, struct err *err) MUST_CHECK;

#endif
