/* SPDX-License-Identifier: MIT */
/*
 * A world for controllers: one in-memory API, and lives of an operator on it, one after the other.
 * A life has its own transport, caches, watches, kbs_sync and controllers, as a process has; ending
 * it leaves the API. The clock is the fake one.
 */
#ifndef TEC_TESTS_CTL_WORLD_H
#define TEC_TESTS_CTL_WORLD_H

#include "fake/kbs.h"
#include "fake/transport.h"
#include "tec/ctl/ak.h"
#include "tec/ctl/cluster.h"
#include "tec/ctl/follow.h"
#include "tec/ctl/image.h"
#include "tec/ctl/machine.h"
#include "tec/ctl/record.h"
#include "tec/ctl/adoption_cutoff.h"
#include "tec/ctl/trustee.h"
#include "tec/k8s/watch.h"

#define NS   "tec"
#define ID_A "00000000-0000-4000-8000-00000000000a"
#define ID_B "00000000-0000-4000-8000-00000000000b"

/* Criterion counts each assertion that holds, which is too slow in a loop over millions of views. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			cr_assert_fail("%s", #condition);                                          \
	} while (0)

struct life {
	struct fake_transport *f;
	struct k8s_transport *api;
	struct caches caches;
	struct k8s_watch *watch[CACHES_N_KINDS];
	struct k8s_events *events;
	struct ctl_env env;
	struct ctl_record *record;
	struct ctl_adoption_cutoff *since;
	struct ctl_trustee *trustee;
	struct ctl_cluster *cluster;
	struct ctl_kind *machine;
	struct ctl_kind *ak;
	struct ctl_kind *image;
	struct ctl_follow *follow;
};

struct world {
	struct loop *loop;
	struct fake_api *api;
	struct life *life;       /* NULL: no operator runs */
	struct fake_kbs *kbs;    /* set by a test: the Trustee that is reached; NULL: none is */
	struct fake_api *source; /* set by a test: what a follower reads; NULL: nothing */
	struct fake_transport *source_f; /* of this life; NULL: not connected */
	char server[200];                /* of the kubeconfig that it was asked for with */
	unsigned n_here;                 /* connections to the broker of this process */
	unsigned n_plain; /* connections to a Trustee that were asked for without TLS */
	char place[200];  /* URL and address of the last one */
	/* Becomes env.image_label; NULL: no registry. */
	struct op *(*image_label)(void *arg, struct op_scope *scope, const char *reference,
		const char *label, ctl_label_fn done, void *done_arg);
	/* Becomes env.image_compute; NULL: Jobs compute. */
	struct op *(*image_compute)(void *arg, struct op_scope *scope, const char *reference,
		const char *nonce, struct json_object *platforms, ctl_said_fn said,
		ctl_computed_fn done, void *done_arg);
	/* By id: the Machine made last, which a listener that takes a key sees. */
	struct {
		char id[40], uid[40];
	} seen[8];
	void (*arm)(void); /* called at each boot, before the controllers start */
};

void world_start(struct world *w);
void world_stop(struct world *w);
/* controllers: any of 'c', 'm', 'a', 'i', all run if NULL. The first life makes the marker, so that
 * what was put before it is older. */
void world_boot(struct world *w, const char *controllers);
void world_kill(struct world *w); /* as kill -9 */
void world_run(struct world *w, uint64_t ms);

void world_cluster(struct world *w, const char *name, const char *spec);
/* by: "listener" or NULL. The listener's Machine is owned by the cluster, if there is one. */
void world_machine(struct world *w, const char *name, const char *id, const char *by);
void world_ak(struct world *w, const char *name, const char *pem, const char *uuid, const char *by);
/* uid of the Machine with this id, or MODEL_SEEN_NONE: what a listener notes on a key. */
const char *world_seen(const struct world *w, const char *id);
/* Borrowed. */
struct json_object *world_get(struct world *w, const struct kobj_gvk *gvk, const char *name);
const char *world_str(
	struct world *w, const struct kobj_gvk *gvk, const char *name, const char *path);
const char *world_annotation(
	struct world *w, const struct kobj_gvk *gvk, const char *name, const char *annotation);
/* Writes a mark of ours, as an operator before this life did. */
void world_mark(struct world *w, const struct kobj_gvk *gvk, const char *name,
	const char *annotation, const char *payload);
/* The payload of a mark that is this object's; NULL: there is none. Borrowed. */
const char *world_marked(
	struct world *w, const struct kobj_gvk *gvk, const char *name, const char *annotation);
/* Makes the marker now, between lives: what is there already is older than the operator. */
void world_since(struct world *w);
const char *world_cond(
	struct world *w, const struct kobj_gvk *gvk, const char *name, const char *type);
const char *world_reason(
	struct world *w, const struct kobj_gvk *gvk, const char *name, const char *type);

/* How many Events of this life have this in their text. */
size_t world_events(struct world *w, const char *part);

/* What Trustee answers. path_of and identity_of give the names. */
void identity_of(const char *pem, char out[300]);
void trustee_has_key(struct world *w, const char *id, bool has);
void trustee_has_identity(struct world *w, const char *pem, const char *id, bool has);
enum kbs_observed observed_key(struct world *w, const char *id);
bool key_declared(struct world *w, const char *id);
bool identity_declared(struct world *w, const char *pem);

#endif
