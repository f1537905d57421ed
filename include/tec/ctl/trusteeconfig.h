/* SPDX-License-Identifier: MIT */
/*
 * The controller of TrusteeConfig. It creates a KbsConfig and the objects that it names, according
 * to the profile, and creates them again when deleted. What a user has edited is kept; if it does
 * not match spec, nothing is changed and a condition says so, so that a running Trustee is not
 * affected. Copies of TLS Secrets are updated with their sources. There is no finalizer: the
 * garbage collector deletes everything with its owner. There is one controller per namespace.
 * decide is pure. Keys of the queue are names of TrusteeConfigs.
 */
#ifndef TEC_CTL_TRUSTEECONFIG_H
#define TEC_CTL_TRUSTEECONFIG_H

#include "tec/ctl/env.h"
#include "tec/ctl/kind.h"
#include "tec/render/trusteeconfig.h"

/* The state of one of the objects that it creates. */
enum ctl_child {
	CTL_CHILD_FINE, /* current, or edited by a user, or nothing can be done */
	CTL_CHILD_ABSENT,
	CTL_CHILD_STALE,    /* unedited, but now rendered differently */
	CTL_CHILD_TLS,      /* edited, and its TLS lines do not match spec */
	CTL_CHILD_UNWANTED, /* ours, and no longer needed */
	CTL_CHILD_N,
};

/* The input of decide. */
struct ctl_trusteeconfig_view {
	bool found, deleting;
	bool usable; /* spec can be followed: all objects that it names exist, and none is blocked */
	enum ctl_child child[RENDER_N_CHILDREN];
	int value; /* the child whose value was just read; -1: none */
	bool status_ok;
};

/* READ, MAKE and DELETE have one number per child, in the order of enum
 * render_trusteeconfig_child. */
enum ctl_trusteeconfig_do {
	CTL_TRUSTEECONFIG_NOTHING,
	CTL_TRUSTEECONFIG_READ, /* the source of a child: a TLS Secret, or the edited file */
	CTL_TRUSTEECONFIG_MAKE = CTL_TRUSTEECONFIG_READ + RENDER_N_CHILDREN,
	CTL_TRUSTEECONFIG_DELETE = CTL_TRUSTEECONFIG_MAKE + RENDER_N_CHILDREN,
	CTL_TRUSTEECONFIG_APPLY_STATUS = CTL_TRUSTEECONFIG_DELETE + RENDER_N_CHILDREN,
	CTL_TRUSTEECONFIG_N_DO,
};
enum ctl_trusteeconfig_do ctl_trusteeconfig_decide(const struct ctl_trusteeconfig_view *v);

/*
 * Whether the TrusteeConfig that controls this KbsConfig has yet to write or replace some of its
 * objects: until then, the KbsConfig and the objects that it names do not belong together. Read from
 * the caches alone, so that it is the same after a restart.
 */
bool ctl_trusteeconfig_writes(const struct caches *s, const struct model_kbsconfig *kbs);

/* env->caches has trusteeconfigs, kbsconfigs, input_configmaps, input_secrets and claims. */
struct ctl_kind *ctl_trusteeconfig_new(const struct ctl_env *env);

#endif
