/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/ak: what a look at one AttestationKey and its Secret finds, and the acts on
 * them. */
#ifndef TEC_CTL_AK_INTERNAL_H
#define TEC_CTL_AK_INTERNAL_H

#include "../ctl_internal.h"
#include "tec/ctl/ak.h"

/* printf: the key's name, the namespace. */
#define AK_APPROVAL_IGNORED                                                                         \
	"approved=true was set when the key was created and does not count. Set it again: kubectl " \
	"annotate attestationkey %s -n %s " MODEL_APPROVED_ANNOTATION "=true"

/* Why a key is not approved automatically. */
enum ak_why {
	AK_WHY_NOT, /* it is */
	AK_WHY_INVALID,
	AK_WHY_NO_MACHINE,
	AK_WHY_NO_CLUSTER,
	AK_WHY_OTHER_OWNER,
	AK_WHY_MANUAL,
	AK_WHY_YOUNG_MACHINE,
	AK_WHY_DELETED_ID, /* somebody deleted an earlier Machine with this id */
	AK_WHY_HAS_KEY,
	AK_WHY_HAD_KEY,     /* the Machine was bound to another one, which is gone */
	AK_WHY_WAS_THERE,   /* ... or may have been, before this operator */
	AK_WHY_RESTORED,    /* ... or may have been, after the backup it comes from */
	AK_WHY_NO_DISK_KEY, /* the Machine has none yet that could be delivered */
};

/* Borrowed from the caches, valid for one step. */
struct ak_look {
	struct ctl_look base;
	struct ctl_ak_view v;
	const struct model_ak *ak;           /* NULL: gone */
	const struct model_machine *machine; /* the live one with the id; NULL: none */
	const struct model_ak *current;      /* the Machine's key that counts */
	const struct model_secret *secret;
	const struct kobj *same_key; /* another Machine's, with the same key, that counts */
	bool no_place;               /* declared, but its name's list is full */
	char identity[RATS_IDENTITY_NAME_LEN +
		      1]; /* what is declared, or has to be revoked; "": nothing */
	enum ak_why why;
};

extern const struct ctl_do ak_acts[CTL_AK_N_DO]; /* act.c */
bool ak_act_ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r);
void ak_act_tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o);
/* view.c: looks and decides. */
int ak_view_look(struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out);

#endif
