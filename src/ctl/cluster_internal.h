/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/cluster*.c: the objects of an installation and what is known of each. */
#ifndef TEC_CTL_CLUSTER_INTERNAL_H
#define TEC_CTL_CLUSTER_INTERNAL_H

#include "ctl_internal.h"
#include "tec/ctl/cluster.h"

#define CLUSTER_N_OBJECTS 12

enum cluster_object_kind {
	CLUSTER_OBJECT_APPLY,       /* rendered, repaired */
	CLUSTER_OBJECT_CREATE_ONLY, /* made once, then somebody else's to write */
	CLUSTER_OBJECT_SECRET,      /* made once; what is there must be what we would have made */
	CLUSTER_OBJECT_UNWANTED,    /* deleted if this cluster owns it and we did not render it */
};

struct cluster_object {
	const struct kobj_gvk *gvk;
	const char *name;
	enum cluster_object_kind kind;
	bool of_trustee; /* not with deploy: External */
	struct json_object *(*render)(const struct ctl_env *env, const struct model_cluster *c);
	struct secret *(*make)(
		const struct ctl_env *env, const struct model_cluster *c, struct err *err);
	const char *data[2]; /* a Secret's members */
};
extern const struct cluster_object cluster_objects[CLUSTER_N_OBJECTS];

/* Of one object, by resourceVersion, so that an answer holds until the object changes. Owned
 * strings. */
struct cluster_known {
	char *ok_rv, *drift_rv, *conflict_rv;
	bool must_read; /* a create met an object that the cache does not show */
};

struct ctl_cluster {
	const struct ctl_env *env; /* borrowed */
	struct ctl_runner *runner; /* owned */
	struct ctl_acts acts;
	bool on;
	uint64_t status_ms; /* boot clock: when counts were written last, or the start */
	/* of the served cluster: */
	char *known_uid; /* owned */
	int64_t known_generation;
	struct cluster_known known[CLUSTER_N_OBJECTS];
	char problem[512]; /* why an object cannot be written; "": no reason */
};

/* Borrowed from the caches, valid for one step. */
struct cluster_look {
	struct ctl_cluster_view v;
	const struct model_cluster *c, *served;
	unsigned object;      /* of todo */
	const char *conflict; /* name of an object that is not ours; NULL: none */
	const char *waits;    /* ... that is being deleted */
	uint32_t recheck_ms;
	struct kobj_cond_want want[CLUSTER_N_CONDS];
};

/* cluster_objects.c */
void cluster_known_reset(struct ctl_cluster *c, const struct model_cluster *served);
const struct kobj *cluster_object_find(const struct ctl_env *env, unsigned i);
/* Sets todo, object, conflict, waits. */
void cluster_look_objects(struct ctl_cluster *c, struct cluster_look *l);
struct op *cluster_start_object(struct ctl_cluster *c, struct ctl_act *a,
	const struct cluster_look *l, enum ctl_cluster_do d, k8s_result_fn done, struct err *err);
/* True: the error is none. */
bool cluster_object_done(struct ctl_cluster *c, const struct kobj *cluster, enum ctl_cluster_do d,
	unsigned i, const struct err *err, const struct k8s_result *r);

/* cluster_view.c */
void cluster_look(struct ctl_cluster *c, const char *name, struct cluster_look *l);

#endif
