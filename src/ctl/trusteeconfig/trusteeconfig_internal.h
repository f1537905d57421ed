/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/trusteeconfig. */
#ifndef TEC_CTL_TRUSTEECONFIG_INTERNAL_H
#define TEC_CTL_TRUSTEECONFIG_INTERNAL_H

#include "../ctl_internal.h"

#include "tec/ctl/trusteeconfig.h"
#include "tec/model/plain.h"

/* Why the write of a child cannot succeed. Valid until its TrusteeConfig or the child changes. */
struct trusteeconfig_stuck {
	char *of, *rv; /* owned; name of the TrusteeConfig; version of the child */
	enum render_trusteeconfig_child child;
	bool edited;       /* because a user edited it; otherwise the API refused it: retried */
	uint64_t since_ms; /* boot clock */
	char text[256];
	LIST_ENTRY(trusteeconfig_stuck) link;
};

struct ctl_trusteeconfig {
	struct ctl_kind kind;
	LIST_HEAD(, trusteeconfig_stuck) stuck; /* owned; one for each TrusteeConfig at most */
};

/* Borrowed from the caches, valid for one step. */
struct trusteeconfig_look {
	struct ctl_look base;
	struct ctl_trusteeconfig_view v;
	const struct model_trusteeconfig *m;
	const struct model_kbsconfig *kbs; /* NULL: none, or another owner's */
	const char *description;           /* static */
	const char *ns;
	bool is_ready;
};

/* view.c */
/* The cache of a child's kind, and the child itself (NULL: none). Borrowed. */
struct k8s_cache *trusteeconfig_view_cache(
	const struct state *s, enum render_trusteeconfig_child i);
const struct kobj *trusteeconfig_view_child(const struct state *s,
	const struct model_trusteeconfig *m, enum render_trusteeconfig_child i);
const struct model_input *trusteeconfig_view_source(const struct state *s,
	const struct model_trusteeconfig *m, enum render_trusteeconfig_child i);
/* NULL: none. */
struct trusteeconfig_stuck *trusteeconfig_view_stuck(
	const struct ctl_trusteeconfig *c, const char *name);
int trusteeconfig_view_look(
	struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out);

/* act.c */
extern const struct ctl_do trusteeconfig_acts[CTL_TRUSTEECONFIG_N_DO];
/* What could not be written is tried again. */
void trusteeconfig_act_unstick(struct ctl_trusteeconfig *c, const char *name);
bool trusteeconfig_act_ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r);
void trusteeconfig_act_tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o);
void trusteeconfig_act_add_status(const struct ctl_look *l, struct json_object *status);

#endif
