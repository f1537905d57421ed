/* SPDX-License-Identifier: MIT */
/* The options of a write: CreateOptions, UpdateOptions, PatchOptions or DeleteOptions. */
#ifndef TEC_SRC_APIREQ_OPTIONS_H
#define TEC_SRC_APIREQ_OPTIONS_H

#include "tec/store/gc.h"
#include "tec/apireq/managed.h"
#include "tec/apireq/request.h"

/* fieldValidation: what to do about unknown and duplicate fields. */
enum apireq_fields { APIREQ_FIELDS_IGNORE, APIREQ_FIELDS_WARN, APIREQ_FIELDS_STRICT };

struct apireq_options {
	bool dry;
	enum apireq_fields fields;
	enum store_policy policy; /* of a deletion */
	char manager[APIREQ_MANAGER_MAX + 1];
};

/* Read them from the query, and from the body of a DELETE (of other methods it is not read and may
 * be NULL). out is zeroed by the caller. -1: *refused is set. */
int apireq_options_read(const struct apireq_request_info *t, const struct apireq_request *r,
	struct json_object *body, struct apireq_options *out,
	struct apireq_answer *refused) MUST_CHECK;

#endif
