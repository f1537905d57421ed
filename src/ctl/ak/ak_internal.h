/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/ak: the result of a look at one AttestationKey and its Secret, and the acts on
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
	AK_WHY_NOT, /* it may be approved */
	AK_WHY_INVALID,
	AK_WHY_NO_MACHINE,
	AK_WHY_NO_CLUSTER,
	AK_WHY_OTHER_OWNER,
	AK_WHY_MANUAL,
	AK_WHY_YOUNG_MACHINE,
	AK_WHY_DELETED_ID, /* an earlier Machine with this id was deleted */
	AK_WHY_HAS_KEY,
	AK_WHY_HAD_KEY,     /* the Machine was bound to another key, which is gone */
	AK_WHY_WAS_THERE,   /* it may have been, before this operator was installed */
	AK_WHY_RESTORED,    /* it may have been, after the backup that it was restored from */
	AK_WHY_NO_DISK_KEY, /* the Machine has no disk key yet that could be delivered */
};

/* Borrowed from the caches, valid for one step. */
struct ak_look {
	struct ctl_look base;
	struct ctl_ak_view v;
	const struct model_ak *ak;           /* NULL: gone */
	const struct model_machine *machine; /* the live Machine with the ID; NULL: none */
	const struct model_ak *current;      /* the key that the Machine is bound to */
	const struct model_secret *secret;
	const struct kobj
		*same_key; /* another Machine's key with the same public key, approved earlier */
	bool no_place;     /* declared, but the list of its name is full */
	char identity[RATS_IDENTITY_NAME_LEN +
		      1]; /* name of the identity to declare or revoke; "": none */
	enum ak_why why;
};

extern const struct ctl_do ak_acts[CTL_AK_N_DO]; /* act.c */
bool ak_act_ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r);
void ak_act_tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o);
/* view.c: looks and decides. */
int ak_view_look(struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out);

#endif
