/* SPDX-License-Identifier: MIT */
/*
 * ConfigMaps, compact: of the two that hold values what they hold, of those that record deletions
 * the record, of one with a platform's firmware variables their digest. Others keep what struct model_plain keeps. Nothing fails because
 * of what a ConfigMap holds: that is for the controller to report.
 */
#ifndef TEC_MODEL_CONFIGMAP_H
#define TEC_MODEL_CONFIGMAP_H

#include "tec/base/bytes.h"
#include "tec/model/pcrs.h"
#include "tec/model/plain.h"
#include "tec/model/record.h"

/* The file's arrays, in its order: tpm_pcr14, tpm_pcr4, tpm_pcr7, tpm_svn. */
enum model_rv_array {
	MODEL_RV_PCR14,
	MODEL_RV_PCR4,
	MODEL_RV_PCR7,
	MODEL_RV_SVN,
	MODEL_RV_N_ARRAYS
};
extern const char *const model_rv_array_names[MODEL_RV_N_ARRAYS];

#define MODEL_RV_CONFIGMAP "trustee-rv-data"
#define MODEL_RV_FILE      "reference-values.json"
/* (+) A JSON array of the names of boot sets that a Trustee may hold: written before the first of
 * them is declared and taken out when it is confirmed gone, so that no restart forgets one. */
#define MODEL_RV_NAMES "boot-sets.json"

struct model_configmap {
	struct model_plain plain;
	struct model_pcrs *pcrs;     /* of image-pcrs, owned by the object; NULL: no text */
	struct model_record *record; /* of one that records deletions, owned; NULL: no text */
	const char *file_sha256;     /* of trustee-rv-data's file, hex; NULL: no text */
	const char *data_sha256;     /* of both its texts: model_configmap_rv_sha256() */
	int64_t expires_s;           /* its first expiration; 0: none */
	const char *names;           /* its MODEL_RV_NAMES, as text; NULL: none */
	/* The file's arrays, as text: SHA-256 (zeros for one that is there twice), and bit i set
	 * when there is one. */
	uint8_t array_sha256[MODEL_RV_N_ARRAYS][SHA256_LEN];
	unsigned arrays;
	bool is_platform;              /* it has a variable of one: pcr/platform.h */
	bool validation_off_ok;        /* any kernel may run there: pcr/platform.h */
	uint8_t variables[SHA256_LEN]; /* of a platform: its digest */
};
/* Of what trustee-rv-data holds; NULL counts as "". */
void model_configmap_rv_sha256(const char *names, const char *file, char hex[SHA256_HEX_LEN + 1]);
struct kobj *model_configmap_extract(struct json_object *o, struct err *err);

#endif
