/* SPDX-License-Identifier: MIT */
/*
 * An ApprovedImage as tecctl makes and checks it: its name, its object, why it is not in force, and
 * whether the values in force are those that the image computes to.
 */
#ifndef TEC_REPORT_IMAGE_H
#define TEC_REPORT_IMAGE_H

#include <json-c/json.h>

#include "tec/model/pcrmsg.h"
#include "tec/model/pcrs.h"
#include "tec/report/world.h"

/* Makes a reference for files that are in no registry from the values that they compute to. The
 * caller frees. */
char *report_image_reference(const char *values, size_t len);
/* Refuses a reference without a digest, and a name (NULL: none was given) that no object can have. */
int report_image_check(const char *reference, const char *given, struct err *err) MUST_CHECK;
/*
 * Chooses the ApprovedImage for a checked reference. *name is its name, which the caller frees:
 * that of an existing one, else the given one, else one made from the reference. 1: it exists; 0:
 * it has to be created; ERR_INVALID: the given name belongs to another image.
 */
int report_image_choose(const struct report_world *w, const char *given, const char *reference,
	char **name, struct err *err) MUST_CHECK;
/* The object to create. handed_in: the operator waits for its values instead of computing them. The
 * caller releases it. */
struct json_object *report_image_new(const char *name, const char *reference, bool handed_in);
/* Sets the error that the image was not in force after wait_s, with the next step. Returns -1. */
int report_image_late(struct json_object *image, uint64_t wait_s, struct err *err);
/* Counts the value sets in force (1 + e->variants.n) that the image does not compute to. A variant
 * that was computed but is not in force is no fault. */
size_t report_image_unlike(const struct model_pcrs_entry *e, const struct model_pcrmsg *computed);

#endif
