/* SPDX-License-Identifier: MIT */
/*
 * Computes the PCR values of an image in separate processes, so that the process that holds keys
 * reads neither what a registry sent nor what an image contains. A program (oci_compute_serve()) is
 * started for each request, which it reads from standard input. It restricts itself and starts
 * tec-compute-pcrs twice: to fetch the image's files, with the credentials, and to compute, without
 * them. Its standard error reports progress; if it fails, the last line is the reason.
 *
 * One request runs at a time; the others wait. A child is killed at its deadline, when its op is
 * cancelled, and when this process ends. It writes below one directory, which is emptied before and
 * after each request.
 */
#ifndef TEC_OCI_COMPUTE_H
#define TEC_OCI_COMPUTE_H

#include <json-c/json.h>

#include "tec/base/err.h"
#include "tec/base/secret.h"
#include "tec/loop/loop.h"
#include "tec/loop/op.h"

#define OCI_COMPUTE_LINE_MAX    300u
#define OCI_COMPUTE_MESSAGE_MAX (64u << 10)
/* Limits of each process; FILE: the largest file. */
#define OCI_COMPUTE_CPU_S       900u
#define OCI_COMPUTE_MEMORY      (512u << 20)
#define OCI_COMPUTE_FILE        (512u << 20)
#define OCI_COMPUTE_DEADLINE_MS (45u * 60 * 1000)

/* Borrowed for the call. */
struct oci_compute_question {
	const char *reference, *nonce;
	const char *const *options; /* further options of tec-compute-pcrs fetch; ends with NULL */
	const char *ca;             /* path of a CA file; NULL: the system's CAs */
	const struct secret *auth;  /* a docker configuration; NULL: no credentials */
	struct json_object *platforms; /* ConfigMaps by name; NULL: none */
};

struct oci_computes_conf { /* the strings are borrowed and must outlive it */
	const char *file;  /* the program; its arguments end with NULL */
	const char *const *argv;
	const char *tool;    /* path of tec-compute-pcrs */
	const char *scratch; /* a directory of its own; created if missing */
};

/* Also removes what a killed process left in the directory. */
struct oci_computes *oci_computes_new(struct loop *l, const struct oci_computes_conf *conf);
void oci_computes_free(struct oci_computes *k); /* NULL is fine; every op must have ended */

/* A line without control characters, borrowed. */
typedef void (*oci_said_fn)(void *arg, const char *line);
/* err: TRANSIENT, with the child's last line; it may contain text from an image or a registry,
 * without control characters. message: the output of tec-compute-pcrs (model/pcrmsg.h), not yet
 * validated. */
typedef void (*oci_computed_fn)(void *arg, const struct err *err, const char *message, size_t len);
struct op *oci_compute(struct oci_computes *k, struct op_scope *scope,
	const struct oci_compute_question *q, oci_said_fn said, oci_computed_fn done, void *arg);

/* The program's main function. ERR_DENIED: Landlock is not available, so nothing is computed. */
int oci_compute_serve(int in_fd, int out_fd, struct err *err) MUST_CHECK;

/* Return the path of tec-compute-pcrs: next to this program, or in the installation. The caller
 * frees it. */
char *oci_compute_tool(void);
/* Write a platform's variables, the members of a ConfigMap, as files into a directory. */
int oci_compute_platform(
	const char *dir, struct json_object *configmap, struct err *err) MUST_CHECK;

#endif
