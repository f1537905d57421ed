/* SPDX-License-Identifier: MIT */
/*
 * TrusteeConfig: a KbsConfig and what that names, made by profile and made again when deleted. What a
 * user has edited is kept; when it does not fit what spec asks for, nothing is changed and a condition
 * says so, so that a Trustee that runs goes on. Copies of TLS Secrets follow them. No finalizer:
 * everything goes with its owner. One controller for each namespace. decide is pure. Keys are names
 * of TrusteeConfigs.
 */
#ifndef TEC_CTL_TRUSTEECONFIG_H
#define TEC_CTL_TRUSTEECONFIG_H

#include "tec/ctl/env.h"
#include "tec/ctl/kind.h"
#include "tec/render/trusteeconfig.h"

/* One of the objects that it makes. */
enum ctl_child {
	CTL_CHILD_FINE, /* as wanted, or kept as the user has it, or nothing can be done */
	CTL_CHILD_ABSENT,
	CTL_CHILD_STALE,    /* made by us, and now to be another one */
	CTL_CHILD_TLS,      /* edited, and its TLS lines are not those of spec */
	CTL_CHILD_UNWANTED, /* ours, and not wanted any more */
	CTL_CHILD_N,
};

/* All that decide looks at. */
struct ctl_trusteeconfig_view {
	bool found, deleting;
	bool usable; /* spec can be followed: all that it names is there, and nothing is in the way */
	enum ctl_child child[RENDER_N_CHILDREN];
	int value; /* the child whose value was just read; -1: none */
	bool status_ok;
};

/* Of each child in the order of enum render_trusteeconfig_child. */
enum ctl_trusteeconfig_do {
	CTL_TRUSTEECONFIG_NOTHING,
	CTL_TRUSTEECONFIG_READ, /* what it is made of: a TLS Secret, the edited file */
	CTL_TRUSTEECONFIG_MAKE = CTL_TRUSTEECONFIG_READ + RENDER_N_CHILDREN,
	CTL_TRUSTEECONFIG_DELETE = CTL_TRUSTEECONFIG_MAKE + RENDER_N_CHILDREN,
	CTL_TRUSTEECONFIG_APPLY_STATUS = CTL_TRUSTEECONFIG_DELETE + RENDER_N_CHILDREN,
	CTL_TRUSTEECONFIG_N_DO,
};
enum ctl_trusteeconfig_do ctl_trusteeconfig_decide(const struct ctl_trusteeconfig_view *v);

/* env->state has trusteeconfigs, kbsconfigs, input_configmaps, input_secrets and claims. */
struct ctl_kind *ctl_trusteeconfig_new(const struct ctl_env *env);

#endif
