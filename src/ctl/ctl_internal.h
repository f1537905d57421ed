/* SPDX-License-Identifier: MIT */
/*
 * Shared by the controllers, private to src/ctl: the acts in flight (one per key at most), and
 * questions about the caches that more than one controller asks, so that they cannot get two
 * answers.
 *
 * An act exists while a call is in flight, while its end has not been looked at, and while its key
 * waits for Trustee; a settled key has none. Its owner is the table. `done` runs with the act as
 * argument, stores what came, and wakes the key.
 */
#ifndef TEC_CTL_INTERNAL_H
#define TEC_CTL_INTERNAL_H

#include "tec/base/uuid.h"
#include "tec/ctl/env.h"
#include "tec/ctl/machine.h"
#include "tec/ctl/runner.h"
#include "tec/k8s/call.h"
#include "tec/k8s/watch.h"
#include "tec/kobj/condition.h"
#include "tec/kobj/owner.h"
#include "tec/loop/op.h"
#include "tec/model/ak.h"
#include "tec/model/machine.h"
#include "tec/model/secretobj.h"
#include "tec/rats/names.h"

#define CTL_WAIT_MAX       4
#define CTL_TRUSTEE_MEMORY "tec-trustees" /* ConfigMap */

/* What a live answer showed of one object: proof that the cached version with this rv is current.
 * Owned strings. */
struct ctl_live {
	char *rv;
	char *finalizers; /* JSON array, as it stands there */
};

struct ctl_acts;
struct ctl_act {
	struct ctl_acts *table;
	struct ctl_act *next;
	struct op *op;      /* in flight */
	int doing, last_ok; /* the kind's enum; 0: none. last_ok: to see an act that succeeds
			       without effect */
	unsigned n_acts;    /* since the key last came to rest */
	uint64_t calm_ms; /* boot clock: when a wish to write the status may be followed; 0: none */
	enum err_kind err; /* how the last call ended; there are many acts, and few have failed */
	uint32_t retry_after_ms;
	bool failed;                 /* the key's backoff comes from a call that failed */
	bool must_read;              /* a create met an object that the cache does not show */
	unsigned event_mask;         /* conditions whose reason changes with the status in flight */
	struct kobj_cond_want *want; /* owned: the status in flight */
	struct ctl_live self, secret;
	/* owned: a disk key, from before it is announced until its create is answered */
	struct secret *made;
	char made_sha256[SHA256_HEX_LEN + 1];
	uint64_t wait[CTL_WAIT_MAX]; /* hashes of the names in Trustee that this key waits for */
	unsigned n_wait;
	char name[];
};

struct ctl_acts {
	void *self; /* the controller */
	struct ctl_runner *runner;
	struct op_scope ops;
	struct ctl_act **buckets; /* owned; a power of two */
	size_t n_buckets, n, n_waiting;
};

void ctl_acts_init(struct ctl_acts *t, void *self, struct ctl_runner *runner);
void ctl_acts_clear(struct ctl_acts *t); /* cancels and frees every act */
void ctl_acts_fini(struct ctl_acts *t);
struct ctl_act *ctl_act_find(const struct ctl_acts *t, const char *name);
struct ctl_act *ctl_act_get(struct ctl_acts *t, const char *name); /* found or made */
void ctl_act_drop(struct ctl_act *a);                              /* NULL is fine */
/* Notes the act about to be started. False: the same act has just succeeded without a visible
 * effect, or so many that they lead nowhere; wait instead. */
#define CTL_ACTS_MAX 32
bool ctl_act_begin(struct ctl_act *a, int doing);
/*
 * Status is written when nothing else has happened for a moment, so that what is true only for
 * milliseconds is never written. False: *out is the answer of the step.
 */
bool ctl_act_calm(struct ctl_act *a, struct queue_next *out);
/* First line of every done. */
void ctl_act_end(struct ctl_act *a, const struct err *err);
/* True: *out is the answer of the step (in flight, or waiting after an error). */
bool ctl_act_busy(struct ctl_act *a, struct queue_next *out);
/* The key came to rest: freed, unless it waits for Trustee. */
void ctl_act_rest(struct ctl_act *a);
/* The key waits until something changes under this name in Trustee. */
void ctl_act_wait_none(struct ctl_act *a);
void ctl_act_wait(struct ctl_act *a, enum kbs_sort sort, const char *name);
void ctl_acts_wake_waiting(struct ctl_acts *t, enum kbs_sort sort, const char *name);

/* The answers of a step. */
struct queue_next ctl_settled(void);
struct queue_next ctl_in_flight(void);
struct queue_next ctl_retry(uint32_t after_ms, const char *static_reason);

/* ---- objects in answers */
void ctl_live_set(struct ctl_live *l, struct json_object *o);
void ctl_live_clear(struct ctl_live *l);
bool ctl_live_is(const struct ctl_live *l, const struct kobj *o);
/* The array with `finalizer` added or taken out; the caller puts it. */
struct json_object *ctl_live_finalizers(const struct ctl_live *l, const char *finalizer, bool add);
/*
 * Puts the object of an answer into the cache, so that the next look sees it. Not in the place of
 * an object with another uid; one that the cache does not know only as the answer of a create or of
 * a read that looked for it (`created`).
 */
void ctl_take_answer(struct k8s_cache *cache, struct json_object *o, bool created);
/* {"metadata":{"resourceVersion":rv}}; the caller adds and puts. */
struct json_object *ctl_patch_new(const char *rv, struct json_object **meta);
/* The same with the uid: of an object that others make and delete, so that marks never reach the
 * next one of its name. */
struct json_object *ctl_patch_of(const struct kobj *o, struct json_object **meta);
/* A mark (model/mark.h) of o among the annotations of such a patch. */
void ctl_add_mark(struct json_object *annotations, const struct kobj *o, const char *annotation,
	const char *payload);
/* {"apiVersion","kind","metadata":{"name","uid"}}; the caller adds and puts. */
struct json_object *ctl_apply_new(
	const struct kobj_gvk *gvk, const struct kobj *o, struct json_object **meta);
/* The status to apply, conditions as wanted. */
struct json_object *ctl_status_json(const struct kobj_gvk *gvk, const struct kobj *o,
	const struct kobj_cond *have, const struct kobj_cond_want *want, size_t n);
/* Bit i: status or reason of condition i changes. */
unsigned ctl_cond_changes(
	const struct kobj_cond *have, const struct kobj_cond_want *want, size_t n);

/* ---- questions */

/* trustee-deployment is there, and owned by somebody or rendered by us; or it is not known. */
bool ctl_deployment_is_left(const struct ctl_env *env);
/* True while a Trustee is administered, seen from the API: what kbs_sync does not know of yet right
 * after a start. */
bool ctl_administered(const struct ctl_env *env);
/* The id in "default/<id>/root". */
bool ctl_path_id(const char *path, char id[UUID_TEXT_LEN + 1]);
/* The name in kbs_sync of the cluster's own Trustee; borrowed from c. */
const char *ctl_primary_target(const struct model_cluster *c);
/* kbs_sync_far, but NONE only when no Trustee is administered indeed. */
enum kbs_far ctl_far(const struct ctl_env *env, enum kbs_sort sort, const char *name);
/* The AttestationKey that this identity is declared for, when that is not the one with this uid;
 * else NULL. */
const struct kobj *ctl_taken_by(const struct ctl_env *env, const char *identity, const char *uid);
/* Trustee is being asked what it holds, as after every start: a condition that says that something
 * is there is not taken back before the answer. */
bool ctl_asking(const struct ctl_env *env);
/*
 * Trustee is being filled, and this is on its way or there: every object looks when that is over,
 * and writing statuses one by one would take the time that keys need. What goes is not waited for.
 */
bool ctl_filling(const struct ctl_env *env, enum kbs_sort sort, const char *name);
static inline bool ctl_far_gone(enum kbs_far far)
{
	return far == KBS_FAR_ABSENT || far == KBS_FAR_NONE;
}
/* The cluster whose policy holds now: served, and nothing of its extended spec lost. NULL: nothing
 * happens by itself (fail closed). */
const struct model_cluster *ctl_policy(const struct ctl_env *env);
/*
 * The Machine that holds an id: one whose key may have been delivered, else one that announces a
 * key, else the oldest. Age alone does not do: an older one may show up late (two API servers'
 * clocks, one second's resolution), after the key was born. The owner of a Secret counts for
 * nothing: anybody who may create one writes it.
 */
const struct model_machine *ctl_holder(const struct ctl_env *env, const char *id);
/* Made before this operator was first started here, or before a later time that an administrator
 * set: may be taken over without our marks. */
bool ctl_is_older(const struct ctl_env *env, const struct kobj *o);
/* Of two versions of a TrustedExecutionCluster (NULL: none): nothing that other controllers read of
 * it differs, only what is written about it. */
bool ctl_cluster_means_the_same(const struct kobj *was, const struct kobj *now);
/* Disk keys are for every attested node (Shared, and delivery by volumes) and not only for the one
 * their Machine is bound to. */
bool ctl_keys_are_shared(const struct ctl_env *env);
/* What the Secret named like the Machine's id is to it. */
enum ctl_luks ctl_luks(const struct ctl_env *env, const struct model_machine *m);
/* Its content is a key that the Machine announces. */
bool ctl_luks_is_announced(const struct model_machine *m, const struct model_secret *s);
/* Made by another operator, or version 0.1.0, and now to be this operator's: Secret and Machine are
 * older, and none of our marks stands against it. */
bool ctl_luks_is_inherited(
	const struct ctl_env *env, const struct model_machine *m, const struct model_secret *s);
/* Another operator's Machine whose Secret is gone: its disk may be encrypted. */
bool ctl_luks_was_lost(const struct ctl_env *env, const struct model_machine *m);
const struct model_secret *ctl_secret(const struct ctl_env *env, const char *name);
/* When an approved key was approved, microseconds since the epoch; made before we marked approvals:
 * when it was created. */
int64_t ctl_ak_approved_us(const struct model_ak *ak);
/* Owned by exactly this Machine. Anybody who may create a key can write that. */
bool ctl_ak_is_of(const struct model_ak *ak, const char *machine_uid);
/* Its Machine may have had it declared to Trustee: with our mark, or approved by another operator.
 */
bool ctl_ak_was_approved(const struct model_ak *ak);
/* Another operator approved it for this Machine, and both are older: to be bound as it is. */
bool ctl_ak_is_inherited(
	const struct ctl_env *env, const struct model_ak *ak, const struct model_machine *m);
/* The live key that the Machine is bound to, else the one to be inherited; NULL: none. */
const struct model_ak *ctl_ak_of_machine(const struct ctl_env *env, const struct model_machine *m);
/* The identity's name in Trustee; false: no usable key. */
bool ctl_ak_identity(const struct model_ak *ak, char out[RATS_IDENTITY_NAME_LEN + 1]);

#endif
