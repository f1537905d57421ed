/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/machine: what a look at one Machine finds, and the acts on it. */
#ifndef TEC_CTL_MACHINE_INTERNAL_H
#define TEC_CTL_MACHINE_INTERNAL_H

#include "../ctl_internal.h"
#include "tec/ctl/machine.h"
#include "tec/rats/names.h"

struct ctl_machine {
	const struct ctl_env *env; /* borrowed */
	struct ctl_runner *runner; /* owned */
	struct ctl_acts acts;
	bool on;
};

/* Borrowed from the caches, valid for one step. */
struct machine_look {
	struct ctl_machine_view v;
	const struct model_machine *m;
	const struct model_machine *holder;
	const struct model_secret *secret; /* named like the id; NULL: none */
	const struct model_ak *ak;         /* the Machine's key */
	char path[RATS_RESOURCE_PATH_MAX]; /* "": the id is no UUID */
	bool owns_path;                    /* what stands there in Trustee is this Machine's */
	enum kbs_far far_identity;         /* of ak */
	char lacking[RATS_IDENTITY_NAME_LEN +
		     1];     /* an identity that is not as it is wanted; "": none */
	bool waits;          /* for Trustee: an act has to remember for which names */
	uint32_t recheck_ms; /* pendingTTL ends then; 0: no reason to look again */
	struct kobj_cond_want want[MACHINE_N_CONDS];
};

/* act may be NULL. Notes in act what the Machine waits for. */
void machine_look(
	const struct ctl_env *env, const char *name, struct ctl_act *act, struct machine_look *out);
void machine_wants(const struct ctl_env *env, struct machine_look *l);
/* Memory only: false when d needs a request. */
bool machine_do_memory(
	const struct ctl_env *env, const struct machine_look *l, enum ctl_machine_do d);
void machine_start(struct ctl_machine *c, struct ctl_act *act, const struct machine_look *l,
	enum ctl_machine_do d);

#endif
