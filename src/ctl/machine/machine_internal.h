/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/machine: the result of a look at one Machine, and the acts on it. */
#ifndef TEC_CTL_MACHINE_INTERNAL_H
#define TEC_CTL_MACHINE_INTERNAL_H

#include "../ctl_internal.h"
#include "tec/ctl/machine.h"
#include "tec/rats/names.h"

/* Borrowed from the caches, valid for one step. */
struct machine_look {
	struct ctl_look base;
	struct ctl_machine_view v;
	const struct model_machine *m;
	const struct model_machine *id_owner; /* the Machine to which this ID belongs */
	const struct model_secret *secret;    /* its name is the ID; NULL: none */
	const struct model_ak *ak;            /* the bound key; NULL: none */
	char path[RATS_RESOURCE_PATH_MAX];    /* in Trustee; "": the ID is not a UUID */
	bool owns_path;                       /* the resource at path belongs to this Machine */
	struct ctl_machine_notes notes;       /* to be recorded before the finalizer is removed */
	const char *problem;                  /* why recording fails; NULL: it does not */
	enum kbs_observed observed_identity;  /* of ak */
	/* An identity that some Trustee has not confirmed yet; "": none. */
	char lacking[RATS_IDENTITY_NAME_LEN + 1];
};

extern const struct ctl_do machine_acts[CTL_MACHINE_N_DO]; /* act.c */
bool machine_act_ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r);
void machine_act_tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o);
/* view.c: looks and decides. */
int machine_view_look(
	struct ctl_kind *k, const char *name, struct ctl_act *a, struct ctl_look *out);

#endif
