/* SPDX-License-Identifier: MIT */
/* Why valid evidence does not affirm, for the person who has to fix it: which PCR of the node's
 * boot differs from the nearest approved image. The node does not receive this text. */
#ifndef TEC_BROKER_REASON_H
#define TEC_BROKER_REASON_H

#include "tec/base/str.h"
#include "tec/broker/admin.h"

struct broker_reason {
	struct strbuf text; /* one sentence or more */
	int pcr;            /* the first PCR that differs; -1: not about a PCR */
};
void broker_reason_fini(struct broker_reason *r);
#define cleanup_broker_reason __attribute__((cleanup(broker_reason_fini)))

/* The reference value with this name, which the caller puts; NULL: null or absent. store is a
 * struct broker_store: the signature is that of rats_policy_value_fn. */
struct json_object *broker_reason_value(void *store, const char *name);

/* Initialises out; its text stays empty if the verdict affirms. */
void broker_reason_make(struct broker_store *store, const struct broker_policy *p,
	const struct rats_evidence *e, const struct rats_verdict *v, struct broker_reason *out);

#endif
