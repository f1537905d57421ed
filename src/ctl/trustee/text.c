/* SPDX-License-Identifier: MIT */
/* Sentences about Trustee servers for conditions. kbs provides only names, states and errors. */
#include "config.h"

#include "tec/ctl/trustee.h"

/* A text (delivery by volumes) is complete; an error is a fragment that gets its context here. */
static void add_one(struct strbuf *out, const struct kbs_target_status *t)
{
	strbuf_addf(out, "%sTrustee at %s: ", out->len ? " " : "", t->name);
	if (t->text)
		strbuf_adds(out, t->text);
	else if (t->error && t->state == KBS_TARGET_REFUSED)
		strbuf_addf(out, "it rejects updates: %s.", t->error);
	else if (t->error)
		strbuf_addf(out, "%s.", t->error);
	else if (t->state == KBS_TARGET_POPULATING)
		strbuf_adds(out, "policies, values and keys are being sent.");
	else if (t->state == KBS_TARGET_UNREACHABLE)
		strbuf_adds(out, "it cannot be reached yet.");
	else
		strbuf_adds(out, "it has not answered yet.");
}

/* With every server in sync, something is still in flight, otherwise nobody would ask. */
const char *ctl_trustee_why(const struct kbs_sync *sync, struct strbuf *out)
{
	struct kbs_target_status t;
	unsigned i;

	strbuf_reset(out);
	for (i = 0; kbs_sync_target(sync, i, &t); i++)
		if (t.state != KBS_TARGET_IN_SYNC)
			add_one(out, &t);
	if (i == 0)
		strbuf_adds(out, "No Trustee is administered.");
	else if (!out->len)
		strbuf_adds(out, "Changes are being sent to Trustee.");
	return strbuf_str(out);
}

/* Names may be on the way although no server is known to differ: hence the general sentence. */
const char *ctl_trustee_lacking(
	const struct kbs_sync *sync, enum kbs_kind kind, const char *name, struct strbuf *out)
{
	struct kbs_target_status t;
	unsigned n = 0;

	strbuf_reset(out);
	for (unsigned i = 0; kbs_sync_target(sync, i, &t); i++)
		if (kbs_sync_target_differs(sync, i, kind, name))
			strbuf_addf(out, n++ ? ", %s" : "Trustee at %s", t.name);
	strbuf_adds(
		out, n ? " has not confirmed it yet." : "Trustee has not confirmed all of it yet.");
	return strbuf_str(out);
}
