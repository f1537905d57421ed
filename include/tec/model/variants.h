/* SPDX-License-Identifier: MIT */
/*
 * Member `variants` of an entry in image-pcrs.json: further values that the same image may show,
 * because its loader's behaviour is not known for sure or Secure Boot may be off,
 * [{"when":text,"secure_boot":bool,"pcrs":[Pcr...]}]. As hostile as the entry is: an element that
 * is wrong, or lacks PCR 4 or PCR 14, does not count and spoils neither the others nor the entry.
 */
#ifndef TEC_MODEL_VARIANTS_H
#define TEC_MODEL_VARIANTS_H

#include <json-c/json.h>

#include "tec/base/mem.h"
#include "tec/pcr/tpmevent.h"

#define MODEL_VARIANTS_MAX 15 /* beside the entry's own */

struct model_variant {
	char *when; /* owned; for people */
	bool secure_boot;
	struct pcr_events events; /* of PCR 4 and PCR 14 */
};
struct model_variants {
	struct model_variant *v; /* owned */
	size_t n;
};
void model_variants_fini(struct model_variants *s);
#define cleanup_model_variants __attribute__((cleanup(model_variants_fini)))

/* Those of a list, NULL or of another type: none. What comes after the first MODEL_VARIANTS_MAX is
 * not read. out is new. */
void model_variants_read(struct json_object *list, struct model_variants *out);
/* The list; the caller puts it. */
struct json_object *model_variants_json(const struct model_variants *s);

#endif
