/* SPDX-License-Identifier: MIT */
/* The options of a write: CreateOptions, UpdateOptions, PatchOptions or DeleteOptions. */
#ifndef TEC_SRC_APISTORE_OPTIONS_H
#define TEC_SRC_APISTORE_OPTIONS_H

#include "tec/apistore/gc.h"
#include "tec/apistore/managed.h"
#include "tec/apistore/request.h"

/* fieldValidation: what to do about unknown and duplicate fields. */
enum apistore_fields { APISTORE_FIELDS_IGNORE, APISTORE_FIELDS_WARN, APISTORE_FIELDS_STRICT };

struct apistore_options {
	bool dry;
	enum apistore_fields fields;
	enum apistore_policy policy; /* of a deletion */
	char manager[APISTORE_MANAGER_MAX + 1];
};

/* Read them from the query, and from the body of a DELETE (of other methods it is not read and may
 * be NULL). out is zeroed by the caller. -1: *refused is set. */
int apistore_options_read(const struct apistore_target *t, const struct apistore_request *r,
	struct json_object *body, struct apistore_options *out,
	struct apistore_answer *refused) MUST_CHECK;

#endif
