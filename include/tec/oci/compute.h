/* SPDX-License-Identifier: MIT */
/*
 * The values of an image, computed by processes of their own, so that the one which holds keys reads
 * neither what a registry sent nor what an image holds. A program (oci_compute_serve()) is started for
 * each question and gets it on standard input. It gives up its rights, and starts tec-compute-pcrs
 * twice: to fetch the image's files, with the credentials, and to compute, without them. What it
 * writes to standard error is its progress; if it fails, the last line says why.
 *
 * One runs at a time; the others wait. A child is killed at its deadline, when its op is cancelled, and
 * with us. What it writes to disk is below one directory, which is emptied before and after each.
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
/* What each process may take; files: the largest one. */
#define OCI_COMPUTE_CPU_S       900u
#define OCI_COMPUTE_MEMORY      (512u << 20)
#define OCI_COMPUTE_FILE        (512u << 20)
#define OCI_COMPUTE_DEADLINE_MS (45u * 60 * 1000)

/* Borrowed for the call. */
struct oci_compute_question {
	const char *reference, *nonce;
	const char *const *options;    /* more of tec-compute-pcrs fetch; ends with NULL */
	const char *ca;                /* a file that it reads; NULL: the system's CAs */
	const struct secret *auth;     /* a docker configuration; NULL: no credentials */
	struct json_object *platforms; /* ConfigMaps by name; NULL: none */
};

struct oci_computes_conf { /* the strings are borrowed and outlive it */
	const char *file;  /* the program, and what it is called with; ends with NULL */
	const char *const *argv;
	const char *tool;    /* tec-compute-pcrs, as a path */
	const char *scratch; /* a directory, which is made; nothing else is in it */
};

/* Removes what was left in the directory by a process that was killed. */
struct oci_computes *oci_computes_new(struct loop *l, const struct oci_computes_conf *conf);
void oci_computes_free(struct oci_computes *k); /* NULL is fine; every op has ended */

/* A line without control characters, borrowed. */
typedef void (*oci_said_fn)(void *arg, const char *line);
/* err: TRANSIENT, with the child's own words; they may hold what an image or a registry sent, without
 * control characters. message: what tec-compute-pcrs printed (model/pcrmsg.h), not looked at yet. */
typedef void (*oci_computed_fn)(void *arg, const struct err *err, const char *message, size_t len);
struct op *oci_compute(struct oci_computes *k, struct op_scope *scope,
	const struct oci_compute_question *q, oci_said_fn said, oci_computed_fn done, void *arg);

/* The program. ERR_DENIED: without Landlock nothing is computed. */
int oci_compute_serve(int in_fd, int out_fd, struct err *err) MUST_CHECK;

/* Where tec-compute-pcrs is: beside this program, or where it is installed. The caller frees. */
char *oci_compute_tool(void);
/* Writes a platform's variables, which are the members of a ConfigMap, as files of a directory. */
int oci_compute_platform(
	const char *dir, struct json_object *configmap, struct err *err) MUST_CHECK;

#endif
