/* SPDX-License-Identifier: MIT */
/*
 * ConfigMaps in compact form. Kept are: the values of the two that hold values, the record of those
 * that record deletions, and the digest of one with a platform's firmware variables. Of others,
 * only the members of struct model_plain. The content of a ConfigMap never makes its extraction
 * fail: reporting it is the controller's job.
 */
#ifndef TEC_MODEL_CONFIGMAP_H
#define TEC_MODEL_CONFIGMAP_H

#include "tec/base/bytes.h"
#include "tec/model/pcrs.h"
#include "tec/model/plain.h"
#include "tec/model/record.h"

/* The arrays of the file, in its order: tpm_pcr14, tpm_pcr4, tpm_pcr7, tpm_svn. */
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
/* (+) A JSON array with the names of boot sets that a Trustee may hold: a name is written before
 * its first value is declared, and removed when the boot set is confirmed gone, so that no restart
 * forgets one. */
#define MODEL_RV_NAMES "boot-sets.json"

struct model_configmap {
	struct model_plain plain;
	struct model_pcrs *pcrs; /* of image-pcrs, owned; NULL: no text */
	struct model_record
		*record;         /* of a ConfigMap that records deletions, owned; NULL: no text */
	const char *file_sha256; /* of the file in trustee-rv-data, hex; NULL: no text */
	const char *data_sha256; /* of both its texts: model_configmap_rv_sha256() */
	int64_t expires_s;       /* expiration of its first entry; 0: none */
	const char *names;       /* its MODEL_RV_NAMES, as text; NULL: none */
	/* SHA-256 of each array's text (zeros for an array that is listed twice); bit i of arrays
	 * is set when there is one. */
	uint8_t array_sha256[MODEL_RV_N_ARRAYS][SHA256_LEN];
	unsigned arrays;
	bool is_platform;              /* has a platform's variable: pcr/platform.h */
	bool validation_off_ok;        /* any kernel may run there: pcr/platform.h */
	bool applications_ok;          /* the firmware may start programs of its own there */
	uint8_t variables[SHA256_LEN]; /* digest of a platform's variables */
};
/* Hash the content of trustee-rv-data; NULL counts as "". */
void model_configmap_rv_sha256(const char *names, const char *file, char hex[SHA256_HEX_LEN + 1]);
struct kobj *model_configmap_extract(struct json_object *o, struct err *err);

#endif
