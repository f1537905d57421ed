/* SPDX-License-Identifier: MIT */
/*
 * Member `variants` of an entry in image-pcrs.json: further values that the same image may show,
 * because the behaviour of its loader is not known for certain or Secure Boot may be off,
 * [{"when":text,"secure_boot":bool,"pcrs":[Pcr...]}]. As untrusted as the entry: an element that is
 * malformed, or lacks PCR 4 or PCR 14, does not count and affects neither the others nor the entry.
 */
#ifndef TEC_MODEL_VARIANTS_H
#define TEC_MODEL_VARIANTS_H

#include <json-c/json.h>

#include "tec/base/mem.h"
#include "tec/pcr/tpmevent.h"

#define MODEL_VARIANTS_MAX 15 /* in addition to the entry's own values */

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

/* Check that the events of an entry or a variant suffice for an approval. */
int model_variant_check(const struct pcr_events *e, struct err *err) MUST_CHECK;
/* Read a list; NULL or another type: none. Elements after the first MODEL_VARIANTS_MAX are not
 * read. out is initialised. */
void model_variants_read(struct json_object *list, struct model_variants *out);
/* Make the list; the caller releases it. */
struct json_object *model_variants_json(const struct model_variants *s);

#endif
