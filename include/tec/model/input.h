/* SPDX-License-Identifier: MIT */
/*
 * A ConfigMap or Secret that a KbsConfig may name: metadata, names of keys and hashes. No value
 * is kept, except what a kbs-config.toml says about the Pod (model/kbsfile.h).
 */
#ifndef TEC_MODEL_INPUT_H
#define TEC_MODEL_INPUT_H

#include <json-c/json.h>

#include "tec/base/bytes.h"
#include "tec/model/kbsfile.h"

/*
 * On objects made by a TrusteeConfig: the hash of the content as written (for a ConfigMap, so that
 * an edited one is recognised), or of the Secret from which it was made. Hex.
 */
#define MODEL_INPUT_MADE "trusted-execution-clusters.io/made"
#define MODEL_INPUT_TLS  "trusted-execution-clusters.io/tls" /* hash of the TLS lines inserted */

#define MODEL_INPUT_SUM_LEN 32 /* hex, half a SHA-256 */

struct model_input {
	struct kobj obj;
	const char *owner_uid;      /* controller */
	const char *made;           /* annotation MODEL_INPUT_MADE */
	const char *tls;            /* annotation MODEL_INPUT_TLS */
	const char *keys;           /* lines, sorted; NULL: none */
	const char *sums;           /* of a Secret's values, in the order of keys; NULL: none */
	uint8_t sha256[SHA256_LEN]; /* of names and values */
	/* reference-values.json or reference_value is a list, as Trustee up to v0.18 reads it;
	 * values_empty: one without elements. */
	bool values_list, values_empty;
	struct model_kbsfile file; /* file.there: it has a kbs-config.toml */
};

/* Extraction overwrites all values of Secrets with zeros, on failure too. */
struct kobj *model_input_configmap_extract(struct json_object *o, struct err *err);
struct kobj *model_input_secret_extract(struct json_object *o, struct err *err);
static inline const struct model_input *model_input(const struct kobj *o)
{
	return (const struct model_input *)o;
}

/* Compute model_input.sha256 of an object with this data; hex. */
void model_input_hash(struct json_object *data, char hex[SHA256_HEX_LEN + 1]);
bool model_input_has(const struct model_input *in, const char *key);
/* The hash of one value of a Secret, MODEL_INPUT_SUM_LEN characters without a NUL; NULL: no such
 * key. */
const char *model_input_sum(const struct model_input *in, const char *key);
/* Iterate over the keys: *at NULL gives the first one; the caller frees each. NULL: no more. */
char *model_input_next(const struct model_input *in, const char **at);

#endif
