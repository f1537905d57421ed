/* SPDX-License-Identifier: MIT */
/*
 * tec-compute-pcrs as a child of tecctl: what an image's files do to that process, it has no
 * credentials and no environment of ours. Its progress goes to standard error.
 */
#ifndef TEC_CMD_TOOL_COMPUTE_H
#define TEC_CMD_TOOL_COMPUTE_H

#include "tool.h"

#include "tec/base/str.h"

struct tool_compute {
	struct tool *t;
	char *dir;    /* owned; of this run, deleted in the end */
	char *rootfs; /* owned; where the image's files are */
	char *file;   /* owned; the program */
};
/* Makes the directory. tool_compute_fini() in any case. */
int tool_compute_init(struct tool_compute *c, struct tool *t, struct err *err) MUST_CHECK;
void tool_compute_fini(struct tool_compute *c);

/* The reference with the digest that it has today; the caller frees. */
int tool_compute_resolve(
	struct tool_compute *c, const char *image, char **reference, struct err *err) MUST_CHECK;
/* Fetches the files that are needed; *reference is the image's with its digest, the caller frees. */
int tool_compute_fetch(
	struct tool_compute *c, const char *image, char **reference, struct err *err) MUST_CHECK;
/* The values for people and programs, as text. */
int tool_compute_values(struct tool_compute *c, struct strbuf *out, struct err *err) MUST_CHECK;
/* A platform's firmware variables, from its ConfigMap; platforms: pairs of --platform and NAME=DIR. */
int tool_compute_platform(struct tool_compute *c, struct json_object *configmap,
	struct json_object *platforms, struct err *err) MUST_CHECK;
/* What a Job's container says at its end. platforms may be NULL. */
int tool_compute_message(struct tool_compute *c, const char *reference, const char *nonce,
	struct json_object *platforms, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
