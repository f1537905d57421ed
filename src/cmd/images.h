/* SPDX-License-Identifier: MIT */
/*
 * struct labels: how an ApprovedImage's controller reads labels from registries, with what the
 * options say of them. Options are borrowed. Each request is a process of its own (oci/lookup.h),
 * which is this program with --lookup-label.
 */
#ifndef TEC_CMD_LABELS_H
#define TEC_CMD_LABELS_H

#include "options.h"

#include "tec/oci/lookup.h"

struct labels;

/* NULL: --registry-auth names a file that cannot be used. */
struct labels *labels_new(struct loop *l, const struct options *o, struct err *err) MUST_CHECK;
void labels_free(struct labels *s);
/* A label of an image's configuration, of the platform this program runs on when the reference is
 * an index. arg is the struct labels; see oci_lookup_get(). */
struct op *labels_image(void *arg, struct op_scope *scope, const char *reference, const char *label,
	oci_label_fn done, void *done_arg);

#endif
