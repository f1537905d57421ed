/* SPDX-License-Identifier: MIT */
/*
 * struct images: what the controller of ApprovedImages gets from registries, according to the
 * options: labels (oci/lookup.h) and, with --standalone, values (oci/compute.h). Options are
 * borrowed. Each request runs in its own child process: this program with another option.
 */
#ifndef TEC_CMD_IMAGES_H
#define TEC_CMD_IMAGES_H

#include "options.h"

#include "tec/oci/compute.h"
#include "tec/oci/lookup.h"

struct images;

/* NULL: the file of --registry-auth is unusable. */
struct images *images_new(struct loop *l, const struct options *o, struct err *err) MUST_CHECK;
void images_free(struct images *s); /* NULL is fine */
/* As in struct ctl_env; arg is the struct images. */
struct op *images_label(void *arg, struct op_scope *scope, const char *reference, const char *label,
	oci_label_fn done, void *done_arg);
/* With --standalone only. */
struct op *images_compute(void *arg, struct op_scope *scope, const char *reference,
	const char *nonce, struct json_object *platforms, oci_said_fn said, oci_computed_fn done,
	void *done_arg);

#endif
