/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/kbsconfig. */
#ifndef TEC_CTL_KBSCONFIG_INTERNAL_H
#define TEC_CTL_KBSCONFIG_INTERNAL_H

#include "../ctl_internal.h"

#include "tec/ctl/kbsconfig.h"
#include "tec/model/kbsconfig.h"
#include "tec/model/plain.h"
#include "tec/render/kbsconfig.h"

/* Inputs besides the owner: the objects that the KbsConfig names, and the port in
 * kbs-config.toml. */
#define KBSCONFIG_INPUTS 1u
#define KBSCONFIG_PORT   2u

struct ctl_kbsconfig {
	struct ctl_kind kind;
	struct ctl_install install; /* for the KbsConfig that counts in the namespace */
};

/* Borrowed from the caches, valid for one step. */
struct kbsconfig_look {
	struct ctl_look base;
	struct ctl_kbsconfig_view v;
	const struct model_kbsconfig *m;
	bool is_ready;
};

/* view.c */
/* The KbsConfig that counts; NULL: none. Borrowed until the loop runs again. */
const struct model_kbsconfig *kbsconfig_view_holder(const struct state *s);
struct render_kbsconfig_source kbsconfig_view_source(const struct state *s);
int kbsconfig_view_look(
	struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out);

/* act.c */
extern const struct ctl_do kbsconfig_acts[CTL_KBSCONFIG_N_DO];
extern const struct ctl_install_conf kbsconfig_install;
bool kbsconfig_act_ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r);
void kbsconfig_act_tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o);
void kbsconfig_act_add_status(const struct ctl_look *l, struct json_object *status);

#endif
