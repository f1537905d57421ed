/* SPDX-License-Identifier: MIT */
/*
 * tec-compute-pcrs as a child of tecctl: whatever an image's files do to that process, it has no
 * credentials and nothing of our environment. Its progress messages go to standard error.
 */
#ifndef TEC_CMD_TOOL_COMPUTE_H
#define TEC_CMD_TOOL_COMPUTE_H

#include "tool_session.h"

#include "tec/base/str.h"

struct tool_compute {
	struct tool *t;
	char *dir;    /* owned; temporary, removed by tool_compute_fini() */
	char *rootfs; /* owned; directory with the image's files */
	char *file;   /* owned; path of the program */
};
/* Creates the directory. Call tool_compute_fini() in any case. */
int tool_compute_init(struct tool_compute *c, struct tool *t, struct err *err) MUST_CHECK;
void tool_compute_fini(struct tool_compute *c);

/* Resolves the reference to one with the current digest; the caller frees. */
int tool_compute_resolve(
	struct tool_compute *c, const char *image, char **reference, struct err *err) MUST_CHECK;
/* Fetches the files that are needed; *reference is the image's with its digest, the caller
 * frees. */
int tool_compute_fetch(
	struct tool_compute *c, const char *image, char **reference, struct err *err) MUST_CHECK;
/* Uses the files of --rootfs instead. */
int tool_compute_open(struct tool_compute *c, const char *rootfs, struct err *err) MUST_CHECK;
/* Computes the values and appends them as JSON text. */
int tool_compute_values(struct tool_compute *c, struct strbuf *out, struct err *err) MUST_CHECK;
/* Writes a platform's firmware variables from its ConfigMap to files and appends --platform and
 * NAME=DIR to platforms. */
int tool_compute_platform(struct tool_compute *c, struct json_object *configmap,
	struct json_object *platforms, struct err *err) MUST_CHECK;
/* Computes the termination message of a Job's container. platforms may be NULL. */
int tool_compute_message(struct tool_compute *c, const char *reference, const char *nonce,
	struct json_object *platforms, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
