/* SPDX-License-Identifier: MIT */
/*
 * An installed CustomResourceDefinition may be older than this operator, or the Trustee operator's:
 * the API server then refuses the whole status because of one member that it does not declare. This
 * is what is known of one kind: the members that were refused, which are left out from then on, until
 * the whole status is tried again. Embedded by value, zero at first; owns nothing.
 */
#ifndef TEC_CTL_DECLARED_H
#define TEC_CTL_DECLARED_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "tec/base/str.h"
#include "tec/kobj/gvk.h"

#define CTL_DECLARED_AGAIN_MS 5000 /* after so long, the whole status is tried again */
#define CTL_DECLARED_MAX      4    /* members of a status that are noted */

struct ctl_declared {
	char missing[CTL_DECLARED_MAX][32];
	unsigned n;        /* 0: no refusal is known */
	uint64_t again_ms; /* boot clock */
	int64_t since_s;   /* wall clock: of the first refusal */
};

/* How an object was sent: with its whole status; the same, although a member is known to be missing;
 * or without such members. */
enum ctl_declared_fit { CTL_DECLARED_WHOLE, CTL_DECLARED_PROBE, CTL_DECLARED_CUT };

/* Prepare an object before its status is applied: cut what is not declared, and add condition
 * CRDOutdated, if conditions are. */
enum ctl_declared_fit ctl_declared_fit(
	struct ctl_declared *d, const struct kobj_gvk *gvk, struct json_object *o);
/* The status was refused with this message of the API server (NULL: none). True: because of a member
 * that is not declared, which is noted; write the status again. */
bool ctl_declared_refused(struct ctl_declared *d, const struct kobj_gvk *gvk,
	enum ctl_declared_fit sent, const char *message);
/* The status was accepted. */
void ctl_declared_accepted(
	struct ctl_declared *d, const struct kobj_gvk *gvk, enum ctl_declared_fit sent);
/* What to do, for people; some member must be missing. */
void ctl_declared_advice(
	const struct ctl_declared *d, const struct kobj_gvk *gvk, struct strbuf *out);

#endif
