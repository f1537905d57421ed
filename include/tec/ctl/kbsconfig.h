/* SPDX-License-Identifier: MIT */
/*
 * The controller of KbsConfig: its Deployment and Service, repaired when they differ, and its
 * status. There is one controller per namespace, with its own struct caches. The names of the
 * objects are fixed, so only one of several KbsConfigs counts: the owner of the Deployment, or
 * else the oldest. While an object that spec names is missing, or its TrusteeConfig has yet to write
 * one, the installation stays as it is. decide is pure. Keys of the queue are names of KbsConfigs.
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

/* The input of decide. */
struct ctl_kbsconfig_view {
	bool found, deleting, has_finalizer;
	bool holds;      /* it is the one that counts in its namespace */
	bool renderable; /* all objects that it names exist and fit, and none is about to change */
	enum ctl_install_state object[CTL_KBSCONFIG_N_OBJECTS];
	/* Per object: it exists and belongs to this KbsConfig; it is being deleted. */
	bool owned[CTL_KBSCONFIG_N_OBJECTS], leaving[CTL_KBSCONFIG_N_OBJECTS];
	bool status_ok;
};

/* READ, APPLY and DELETE have one number per object, in the order of enum ctl_kbsconfig_object. */
enum ctl_kbsconfig_do {
	CTL_KBSCONFIG_NOTHING,
	CTL_KBSCONFIG_ADD_FINALIZER,
	CTL_KBSCONFIG_READ,
	CTL_KBSCONFIG_TAKE = CTL_KBSCONFIG_READ + CTL_KBSCONFIG_N_OBJECTS,
	CTL_KBSCONFIG_APPLY = CTL_KBSCONFIG_TAKE + CTL_KBSCONFIG_N_OBJECTS,
	CTL_KBSCONFIG_DELETE = CTL_KBSCONFIG_APPLY + CTL_KBSCONFIG_N_OBJECTS,
	CTL_KBSCONFIG_DROP_FINALIZER = CTL_KBSCONFIG_DELETE + CTL_KBSCONFIG_N_OBJECTS,
	CTL_KBSCONFIG_APPLY_STATUS,
	CTL_KBSCONFIG_N_DO,
};
enum ctl_kbsconfig_do ctl_kbsconfig_decide(const struct ctl_kbsconfig_view *v);

/* env->caches has kbsconfigs, input_configmaps, input_secrets, services, deployments, trusteeconfigs
 * and claims; the last two may be empty. */
struct ctl_kind *ctl_kbsconfig_new(const struct ctl_env *env);

#endif
