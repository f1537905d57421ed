/* SPDX-License-Identifier: MIT */
/*
 * The other side of oci/lookup.h: the whole life of the process that reads what registries send. It
 * is started for one request, so it has none of the requester's keys.
 */
#ifndef TEC_OCI_SERVE_H
#define TEC_OCI_SERVE_H

#include "tec/base/confine.h"
#include "tec/base/err.h"

/*
 * Permanently restrict this process before it reads what a registry sends: see base/confine.h. It
 * can still resolve names, verify certificates, and write below the directory write_fd (-1:
 * nowhere). Without Landlock only the limits apply.
 */
int oci_confine(const struct confine_limits *limits, int write_fd, struct err *err) MUST_CHECK;

/*
 * Restrict this process, read one request from in_fd and write its answer to out_fd (oci/wire.h). A
 * failed lookup is an answer too. Warnings logged in the meantime become part of the answer.
 */
int oci_serve(int in_fd, int out_fd, struct err *err) MUST_CHECK;

#endif
