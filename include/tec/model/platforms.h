/* SPDX-License-Identifier: MIT */
/*
 * Member `platforms` of an entry in image-pcrs.json: which registers are other, or known at all, when
 * this image boots on each platform that the Job was given,
 * [{"name":ConfigMap,"variables":digest,"pcrs":[Pcr]}], or, where that cannot be predicted, "why"
 * instead of "pcrs". As hostile as the entry is: an element that is
 * wrong keeps its reason, does not count, and spoils neither the others nor the entry.
 */
#ifndef TEC_MODEL_PLATFORMS_H
#define TEC_MODEL_PLATFORMS_H

#include <json-c/json.h>

#include "tec/base/mem.h"
#include "tec/pcr/tpmevent.h"

#define MODEL_PLATFORMS_MAX 8 /* also of spec.attestation.platformConfigMaps */

struct model_platform {
	char *name;                    /* owned; of the ConfigMap */
	uint8_t variables[SHA256_LEN]; /* pcr/platform.h; not of a bad one */
	bool bad;                      /* says nothing; why tells what is wrong with it */
	char *why;                     /* owned; why there is no value; NULL: there is one */
	struct pcr_events events;      /* model_platform_check(); none when there is a why */
};
struct model_platforms {
	struct model_platform v[MODEL_PLATFORMS_MAX];
	size_t n;
};
void model_platforms_fini(struct model_platforms *p);
#define cleanup_model_platforms __attribute__((cleanup(model_platforms_fini)))

/* Those of a list, NULL or of another type: none. What comes after the first eight is not read, and
 * what does not have the name of an object is left out. out is new. */
void model_platforms_read(struct json_object *list, struct model_platforms *out);
/* PCR 7, PCR 14 of its MOK variables, or both; PCR 4 beside 14 only, where shim's validation is off. */
int model_platform_check(const struct pcr_events *e, struct err *err) MUST_CHECK;
bool model_platform_has(const struct model_platform *m, unsigned pcr);
/* Borrowed; NULL: there is none. */
const struct model_platform *model_platforms_find(
	const struct model_platforms *p, const char *name);
/* The list, without bad ones; the caller puts it. */
struct json_object *model_platforms_json(const struct model_platforms *p);

#endif
