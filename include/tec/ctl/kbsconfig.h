/* SPDX-License-Identifier: MIT */
/*
 * KbsConfig: its Deployment and Service, repaired when they differ, and its status. One controller
 * for each namespace, with a struct state of its own; the names of the objects are fixed, so that of
 * several KbsConfigs one counts: the owner of the Deployment, else the oldest. What is installed
 * stays as it is while something that spec names is missing. decide is pure. Keys are names of
 * KbsConfigs.
 */
#ifndef TEC_CTL_KBSCONFIG_H
#define TEC_CTL_KBSCONFIG_H

#include "tec/ctl/env.h"
#include "tec/ctl/install.h"
#include "tec/ctl/kind.h"

enum ctl_kbsconfig_object {
	CTL_KBSCONFIG_DEPLOYMENT,
	CTL_KBSCONFIG_SERVICE,
	CTL_KBSCONFIG_N_OBJECTS,
};

/* All that decide looks at. */
struct ctl_kbsconfig_view {
	bool found, deleting, has_finalizer;
	bool holds;      /* it counts in its namespace */
	bool renderable; /* all that it names is there and fits */
	enum ctl_install_state object[CTL_KBSCONFIG_N_OBJECTS];
	/* Of an object that is being deleted with it: there, and controlled by it. */
	bool owned[CTL_KBSCONFIG_N_OBJECTS], leaving[CTL_KBSCONFIG_N_OBJECTS];
	bool status_ok;
};

/* Of each object in the order of enum ctl_kbsconfig_object. */
enum ctl_kbsconfig_do {
	CTL_KBSCONFIG_NOTHING,
	CTL_KBSCONFIG_ADD_FINALIZER,
	CTL_KBSCONFIG_READ,
	CTL_KBSCONFIG_APPLY = CTL_KBSCONFIG_READ + CTL_KBSCONFIG_N_OBJECTS,
	CTL_KBSCONFIG_DELETE = CTL_KBSCONFIG_APPLY + CTL_KBSCONFIG_N_OBJECTS,
	CTL_KBSCONFIG_DROP_FINALIZER = CTL_KBSCONFIG_DELETE + CTL_KBSCONFIG_N_OBJECTS,
	CTL_KBSCONFIG_APPLY_STATUS,
	CTL_KBSCONFIG_N_DO,
};
enum ctl_kbsconfig_do ctl_kbsconfig_decide(const struct ctl_kbsconfig_view *v);

/* env->state has kbsconfigs, input_configmaps, input_secrets, services and deployments. */
struct ctl_kind *ctl_kbsconfig_new(const struct ctl_env *env);

#endif
