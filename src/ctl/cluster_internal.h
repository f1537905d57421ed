/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/cluster*.c: the objects of an installation and what is known of each. */
#ifndef TEC_CTL_CLUSTER_INTERNAL_H
#define TEC_CTL_CLUSTER_INTERNAL_H

#include "ctl_internal.h"
#include "tec/ctl/cluster.h"
#include "tec/render/volumes.h"

#define CLUSTER_N_OBJECTS 12

enum cluster_object_kind {
	CLUSTER_OBJECT_APPLY,       /* rendered, repaired */
	CLUSTER_OBJECT_CREATE_ONLY, /* made once, then somebody else's to write */
	CLUSTER_OBJECT_SECRET,      /* made once; what is there must be what we would have made */
	CLUSTER_OBJECT_UNWANTED,    /* deleted if this cluster owns it and we did not render it */
};

struct ctl_cluster;
struct cluster_object {
	const struct kobj_gvk *gvk;
	const char *name;
	enum cluster_object_kind kind;
	bool of_trustee;  /* not with deploy: External */
	bool of_delivery; /* rendered another way with delivery by volumes */
	struct json_object *(*render)(const struct ctl_cluster *ctl, const struct model_cluster *c);
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

/*
 * Delivery by volumes. `wanted` is what trustee-deployment is rendered with: a copy of what is
 * declared, replaced rarely. `live` is what the Deployment was seen to mount, with its status, at
 * one resourceVersion.
 */
struct cluster_volumes {
	char *uid;          /* owned: of the cluster it is about; NULL: delivery is another */
	int64_t generation; /* that `wanted` was found to fit with */
	struct render_volumes_list wanted, live;
	bool has_wanted; /* else nothing that depends on the delivery is written */
	bool live_known; /* nothing was written since */
	bool live_ours;  /* it is one of delivery by volumes */
	bool live_done;  /* by its status all Pods are of its template, and available */
	char *live_rv;   /* owned */
	bool dirty;      /* something changed that it has not looked at */
	bool pending;    /* `wanted` is to be replaced, but not yet */
	bool confirming; /* what kbs_sync tells now is our own doing */
	bool announced;  /* it was not written yet; the next write of the Deployment is no repair */
	/* Boot clock: nothing is added before, nothing taken back before. */
	uint64_t add_ms, take_back_ms;
	struct err refused; /* why `wanted` is not what is declared */
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
	struct cluster_volumes volumes;
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

/* The object is judged again, although it did not change. */
void cluster_known_forget(struct ctl_cluster *c, const struct kobj_gvk *gvk, const char *name);

/* cluster_volumes.c */
#define CLUSTER_DEPLOYMENT "trustee-deployment"
/* Each step of the served cluster (NULL: there is none): confirms what Trustee serves, and replaces
 * what is rendered. When to be asked again, in ms; 0: when something changes. */
uint32_t cluster_volumes_step(struct ctl_cluster *c, const struct model_cluster *served);
/* The Deployment as it was read or answered; a write of it begins. */
void cluster_volumes_saw(
	struct ctl_cluster *c, const struct model_cluster *served, struct json_object *deployment);
void cluster_volumes_writes(struct ctl_cluster *c, const struct model_cluster *served);
/* What is to be mounted is not known yet, or more than the API takes: nothing of it is written. */
bool cluster_volumes_hold(const struct ctl_cluster *c);
/* NULL when it holds. */
struct json_object *cluster_volumes_render(
	const struct ctl_cluster *c, const struct model_cluster *cluster);
/* Something that counts changed. True: it has to be looked at now. */
bool cluster_volumes_on_sync(struct ctl_cluster *c, enum kbs_sort sort, const char *name);
void cluster_volumes_fini(struct ctl_cluster *c);
/* What the files of a list say at this moment: "<keys>.<reference values>". */
#define CLUSTER_CONTENTS_LEN (2 * 16 + 1)
void cluster_volumes_contents(const struct ctl_env *env, const struct render_volumes_list *l,
	char out[CLUSTER_CONTENTS_LEN + 1]);

/* cluster_served.c */
/* `live` is what all of Trustee serves: by the Deployment's status and by every Pod. */
bool cluster_served(const struct ctl_cluster *c);
/* Tells kbs_sync what that is, name by name. */
void cluster_served_confirm(struct ctl_cluster *c, const struct model_cluster *served);

/* cluster_view.c */
void cluster_look(struct ctl_cluster *c, const char *name, struct cluster_look *l);

#endif
