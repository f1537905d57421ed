/* SPDX-License-Identifier: MIT */
/*
 * Member `platforms` of an entry in image-pcrs.json: the registers that differ, or are known at
 * all, when this image boots on each platform that was given to the Job,
 * [{"name":ConfigMap,"variables":digest,"pcrs":[Pcr]}], or "why" instead of "pcrs" when they cannot
 * be predicted. As untrusted as the entry: a malformed element keeps its reason, does not count,
 * and affects neither the others nor the entry.
 */
#ifndef TEC_MODEL_PLATFORMS_H
#define TEC_MODEL_PLATFORMS_H

#include <json-c/json.h>

#include "tec/base/mem.h"
#include "tec/pcr/tpmevent.h"

#define MODEL_PLATFORMS_MAX 8 /* also the limit of spec.attestation.platformConfigMaps */

struct model_platform {
	char *name;                    /* owned; of the ConfigMap */
	uint8_t variables[SHA256_LEN]; /* pcr/platform.h; unset for a bad one */
	bool bad;                      /* unusable; why says what is wrong with it */
	char *why;                     /* owned; why there is no value; NULL: it has values */
	struct pcr_events events;      /* model_platform_check(); none when there is a why */
};
struct model_platforms {
	struct model_platform v[MODEL_PLATFORMS_MAX];
	size_t n;
};
void model_platforms_fini(struct model_platforms *p);
#define cleanup_model_platforms __attribute__((cleanup(model_platforms_fini)))

/* Read a list; NULL or another type: none. Elements after the first eight are not read, and those
 * without a valid object name are skipped. out is initialised. */
void model_platforms_read(struct json_object *list, struct model_platforms *out);
/* Check the registers: PCR 7, PCR 14 of its MOK variables, or what its firmware measures into PCR 4
 * before the boot loader (Pcr4Platform); the boot loader there only together with 14, where shim's
 * validation is off. */
int model_platform_check(const struct pcr_events *e, struct err *err) MUST_CHECK;
bool model_platform_has(const struct model_platform *m, unsigned pcr);
/* Its PCR 4 is complete: shim's validation is off there, so any kernel may run. */
bool model_platform_any_kernel(const struct model_platform *m);
/* Its firmware starts a program of its own before the boot loader. */
bool model_platform_application(const struct model_platform *m);
/* Find a platform by name; borrowed; NULL: absent. */
const struct model_platform *model_platforms_find(
	const struct model_platforms *p, const char *name);
/* Make the list, without bad elements; the caller releases it. */
struct json_object *model_platforms_json(const struct model_platforms *p);

#endif
