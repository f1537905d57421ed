/* SPDX-License-Identifier: MIT */
/*
 * Why well-formed, bound and signed evidence does not affirm, for the person who has to do something
 * about it: which register of what the node booted is not as in the approved image that is nearest.
 * Nothing of it is told to the node.
 */
#ifndef TEC_BROKER_REASON_H
#define TEC_BROKER_REASON_H

#include "tec/base/str.h"
#include "tec/broker/admin.h"

struct broker_reason {
	struct strbuf text; /* one sentence or more */
	int pcr;            /* the first register that differs; -1: it is not about one */
};
void broker_reason_fini(struct broker_reason *r);
#define cleanup_broker_reason __attribute__((cleanup(broker_reason_fini)))

/* The reference value with this name, which the caller puts; NULL: null, or not there. store is a
 * struct broker_store: it fits rats_policy_value_fn. */
struct json_object *broker_reason_value(void *store, const char *name);

/* out is initialised; its text stays empty when the verdict affirms. */
void broker_reason_make(struct broker_store *store, const struct broker_policy *p,
	const struct rats_evidence *e, const struct rats_verdict *v, struct broker_reason *out);

#endif
