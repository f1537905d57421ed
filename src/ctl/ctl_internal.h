/* SPDX-License-Identifier: MIT */
/*
 * Shared by the controllers, private to src/ctl: the acts in flight, at most one per key.
 *
 * An act exists while a request is in flight, until the next step has seen its result, and while
 * its key waits for Trustee; a settled key has none. The table owns it. `done` gets the act as
 * argument, stores the answer, and wakes the key.
 */
#ifndef TEC_CTL_INTERNAL_H
#define TEC_CTL_INTERNAL_H

#include <sys/queue.h>

#include "tec/ctl/ak.h"
#include "tec/ctl/declared.h"
#include "tec/ctl/env.h"
#include "tec/ctl/kind.h"
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
#include "tec/caches/ak.h"
#include "tec/caches/cluster.h"
#include "tec/caches/machine.h"
#include "tec/caches/adoption_cutoff.h"
#include "tec/caches/trustee.h"

#define CTL_WAIT_MAX  4
#define CTL_CONDS_MAX 4

/* The result of a live answer about one object: it proves that the cached version with this rv is
 * current. Owned strings. */
struct ctl_live {
	char *rv;
	char *finalizers; /* JSON array as in the object; NULL: unknown */
};

struct ctl_acts;
struct ctl_act {
	struct ctl_acts *table;
	const char *name;       /* of the key; borrowed from the queue */
	struct op *op;          /* in flight */
	int doing, last_ok;     /* numbers of acts; 0: none. last_ok: to detect an act that
			       succeeds without effect */
	uint64_t content;       /* of `doing`: see ctl_act_begin() */
	unsigned n_acts;        /* since the key last settled */
	uint64_t status_due_ms; /* boot clock: earliest time of a status; 0: none is wanted */
	enum err_kind err;      /* of the last request; the kind alone keeps the many acts small */
	uint32_t retry_after_ms;
	char *refused;  /* owned: why the last request was refused, a sentence; NULL: it was not */
	bool failed;    /* the key's backoff comes from a failed request */
	bool decides;   /* the request in flight would not be made while Frozen */
	bool must_read; /* a create met an object that the cache does not show */
	unsigned event_mask;         /* conditions whose reason changes with the status in flight */
	struct kobj_cond_want *want; /* owned: the status in flight */
	/* The status that was sent last: how, and, if it was cut, hashes of what was sent (0: nothing
	 * yet) and of each condition that its Events told. */
	enum ctl_declared_fit fit;
	uint64_t sent, told[CTL_CONDS_MAX];
	struct ctl_live self, secret;
	/* owned: a new disk key, from before its announcement until its create is answered */
	struct secret *made;
	char made_sha256[SHA256_HEX_LEN + 1];
	uint64_t wait[CTL_WAIT_MAX]; /* hashes of the names in Trustee that this key waits for */
	unsigned n_wait;
	LIST_ENTRY(ctl_act) waiting; /* while n_wait > 0 */
};

struct ctl_acts {
	void *self; /* the controller */
	struct ctl_runner *runner;
	struct op_scope ops;
	size_t n_deciding;            /* requests in flight that would not be made while Frozen */
	struct ctl_declared declared; /* of the kind whose status the controller writes */
	LIST_HEAD(, ctl_act) waiting;
};

/* Returns a new runner (as ctl_runner_new()), whose queue has the acts as records and frees them at
 * the latest. The caller owns the runner. */
struct ctl_runner *ctl_acts_init(struct ctl_acts *t, const struct ctl_env *env, const char *name,
	ctl_step_fn step, void *self);
void ctl_acts_clear(struct ctl_acts *t); /* cancels and frees every act */
struct ctl_act *ctl_act_find(const struct ctl_acts *t, const char *name);
struct ctl_act *ctl_act_get(struct ctl_acts *t, const char *name); /* found or created */
void ctl_act_drop(struct ctl_act *a);                              /* NULL is allowed */
/*
 * Notes the act that is about to start. False: the same act with the same content has just
 * succeeded without a visible effect, or there were too many acts; retry later instead. content:
 * hash of what the act was decided from, including the versions of the objects that it changes. If
 * one of them has changed since, by this act or by another client, the act may be due again.
 */
#define CTL_ACTS_MAX 32
bool ctl_act_begin(struct ctl_act *a, int doing, uint64_t content);
uint64_t ctl_version(const struct kobj *o); /* for content; 0: there is no object */
/* The API server answered, and a retry of the same request would fail again. */
bool ctl_err_is_refusal(const struct err *err);
/* Last line of every done. what: what could not be done, for a->refused; NULL: nobody shows it, as for a status. */
void ctl_act_end(struct ctl_act *a, const struct err *err, const char *what);
/* True: *out is the answer of the step (in flight, or waiting after an error). */
bool ctl_act_busy(struct ctl_act *a, struct queue_next *out);
/* A request was refused, and the status (number of that act) has not said so: it is written before
 * the retry, which still waits for the backoff. */
bool ctl_act_tells(const struct ctl_act *a, int status);
/* Nothing is to be done for the key, whenever it is looked at again: earlier failures no longer
 * count, and the act is freed, unless it waits for Trustee. */
void ctl_act_settled(struct ctl_act *a);
/* The key waits until something changes under this name in Trustee. */
void ctl_act_wait(struct ctl_act *a, enum kbs_kind kind, const char *name);

/* Applies the status of the key's own object, as far as its CRD declares it. NULL: that was done
 * before; look again after CTL_DECLARED_AGAIN_MS. a->event_mask must be set. */
struct op *ctl_act_apply_status(struct ctl_act *a, const struct ctl_env *env,
	const struct kobj_gvk *gvk, const struct kobj *about, struct json_object *o,
	k8s_result_fn done);
/* Its answer. True: it was refused because of what the CRD does not declare; that is no failure,
 * and the next step writes the rest. */
bool ctl_act_status_refused(struct ctl_act *a, const struct kobj_gvk *gvk, const struct err *err,
	const struct k8s_result *r);

/* The answers of a step. */
struct queue_next ctl_settled(void);
struct queue_next ctl_in_flight(void);
struct queue_next ctl_retry(uint32_t after_ms, const char *static_reason);

/* ---- the controller of one kind: ctl/kind.h */

/* The result of a look at one key. First member of the kind's own struct; zeroed before each look.
 * Borrowed from the caches, valid for one step. */
struct ctl_look {
	const struct kobj *o;         /* the object; NULL: none, or unreadable */
	const struct kobj_cond *have; /* its conditions; `want`: as they should be */
	struct kobj_cond_want want[CTL_CONDS_MAX];
	const char *refused;               /* of the act, set before the look */
	const struct model_secret *secret; /* the Secret of the key; NULL: none */
	const char *secret_name;
	uint64_t content;    /* for ctl_act_begin(), in addition to the version of o */
	bool over;           /* nothing is left of the key */
	uint32_t recheck_ms; /* when to look again if there is nothing to do; 0: no timer */
	const char *recheck_why;
};

/* One act that a step may take. Exactly one of memory and start is set, except in number 0,
 * which is no act. */
struct ctl_do {
	const char *name; /* what could not be done, in errors */
	const char *done; /* logged after a successful request; NULL: at debug level, by name */
	enum {
		CTL_DO_ANSWERS_SELF = 1, /* the answer is the key's own object */
		CTL_DO_GONE_IS_FINE = 2, /* NOT_FOUND is a success */
		CTL_DO_WARNS = 4,        /* `done` is logged as a warning */
		CTL_DO_OR_MEMORY = 8,    /* start may change memory only; then it returns NULL */
		/* The answer is the key's Secret. READS, CREATES: it goes into the cache although the
		 * cache may not know it; that a Secret exists already is not a failure. */
		CTL_DO_SECRET = 128,
		CTL_DO_READS = 256,
		CTL_DO_CREATES = 512, /* with ANSWERS_SELF, too */
		/* Also allowed with these values of spec.authority; Self allows every act. */
		CTL_DO_FROZEN = 16,
		CTL_DO_FOLLOWING = 32,
		CTL_DO_RETIRED = 64,
	} flags;
	void (*memory)(struct ctl_kind *k, const struct ctl_look *l);
	/* Starts one request that ends with ctl_kind_done(). NULL: not possible now. d: the act. */
	struct op *(*start)(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d);
};
/* The type of such a function, to declare those that several kinds use. */
typedef struct op *ctl_start_fn(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d);

struct ctl_watch {
	enum caches_of of;
	ctl_map_fn map; /* self is the struct ctl_kind */
};

struct ctl_kind_conf {
	const char *name;          /* of the queue, in metrics and logs */
	enum caches_of of;         /* the kind whose names are the keys */
	size_t size, look_size;    /* of the kind's structs around ctl_kind and ctl_look */
	size_t n_conds;            /* at most CTL_CONDS_MAX */
	const struct ctl_do *acts; /* by the number that look returns */
	int status;                /* the act that writes the status */
	bool knows_cached; /* if the cache has the answer already, its object is used instead */
	const struct ctl_watch *watches; /* ends with a NULL map; NULL: see ctl/follow */
	/* Looks and decides; returns the number of the act. Notes in `a` what the key waits for. */
	int (*look)(struct ctl_kind *k, const char *name, struct ctl_act *a, struct ctl_look *l);
	/* A request ended; its own object and Secret were taken already. True: it counts as success
	 * even if err is set. NULL: nothing else matters. */
	bool (*ended)(struct ctl_kind *k, struct ctl_act *a, const struct err *err,
		const struct k8s_result *r);
	/* The status was written: posts Events for the conditions in a->event_mask. */
	void (*tell)(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o);
	/* A value changed in a Trustee; keys that wait for it are woken already. NULL: nothing else
	 * matters. */
	void (*on_sync)(struct ctl_kind *k, enum kbs_kind kind, const char *name);
	/* Adds the members of the status besides conditions; NULL: none. */
	void (*add_status)(const struct ctl_look *l, struct json_object *status);
	void (*started)(struct ctl_kind *k); /* after on; NULL: nothing */
	void (*forget)(struct ctl_kind *k);  /* at off and free; NULL: nothing */
};

struct ctl_kind {
	const struct ctl_kind_conf *conf;
	const struct ctl_env *env;   /* borrowed */
	const struct caches *caches; /* env's */
	struct ctl_runner *runner;   /* owned */
	struct ctl_acts acts;
	void *look; /* owned: that of the step */
	bool on;
};
/* Off at first. The kind's own members are zero. */
struct ctl_kind *ctl_kind_new(const struct ctl_env *env, const struct ctl_kind_conf *conf);
void ctl_kind_done(void *act, const struct err *err, const struct k8s_result *r);

/* Requests, each ending with ctl_kind_done(). */
struct op *ctl_kind_get(
	struct ctl_kind *k, struct ctl_act *a, const struct kobj_gvk *gvk, const char *name);
struct op *ctl_kind_create(
	struct ctl_kind *k, struct ctl_act *a, const struct kobj_gvk *gvk, struct json_object *o);
struct op *ctl_kind_create_secret(struct ctl_kind *k, struct ctl_act *a, struct secret *take_text);
struct op *ctl_kind_patch(struct ctl_kind *k, struct ctl_act *a, const struct kobj_gvk *gvk,
	const char *name, struct json_object *patch);
struct op *ctl_kind_delete(
	struct ctl_kind *k, struct ctl_act *a, const struct kobj_gvk *gvk, const struct kobj *o);
/* Apply `finalizer` to the key's own object; those of others stay. */
struct op *ctl_kind_add_finalizer(
	struct ctl_kind *k, struct ctl_act *a, const struct kobj *o, const char *finalizer);
/* For the key's own object. rv: write only to this version; NULL: to any. more_events: bits for
 * a->event_mask besides those of changed conditions. */
struct op *ctl_kind_apply_status(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l,
	const char *rv, unsigned more_events);
ctl_start_fn ctl_kind_start_status, ctl_kind_start_confirm; /* confirm: GET */
ctl_start_fn ctl_kind_start_delete, ctl_kind_start_expire;  /* expire: only this version */
ctl_start_fn ctl_kind_start_read_secret, ctl_kind_start_delete_secret;

/* Repeats the step after this time (an hour at most); of several calls the earliest time counts. */
void ctl_look_again(struct ctl_look *l, int64_t ms, const char *static_reason);
/* Tells whether pendingTTL has passed since then; if not, looks again when it has. */
bool ctl_look_is_overdue(struct ctl_look *l, const struct model_cluster *policy, int64_t since_s);

/* Wakes the names of the objects with this value in an index (NULL: none). */
void ctl_kind_wake_index(
	struct ctl_kind *k, const struct k8s_cache *cache, unsigned index, const char *value);
/* For ctl_watch: wakes all keys when a part of a cluster changed that other controllers read. */
void ctl_kind_map_cluster(void *kind, const struct kobj *was, const struct kobj *now);

/* ---- shared by two kinds */

/* What the Secret of its name is to an AttestationKey (NULL: deleted). */
enum ctl_ak_secret ctl_ak_secret_of(const struct model_ak *ak, const struct model_secret *secret);
/* Creates the Secret of the AttestationKey l->o; adds or removes the finalizer of one that exists.
 * Defined in ctl/ak. */
ctl_start_fn ctl_ak_start_secret, ctl_ak_start_finalizer;
/* What has to be recorded before a Machine goes (ctl/record.h): its resource path, its id. Both: how far
 * that is, and the act. ctl/machine has them. */
struct ctl_machine_notes {
	bool path, id;
};
enum ctl_recorded ctl_machine_recorded(const struct ctl_record *r,
	const struct ctl_machine_notes *n, const char *path, const struct model_machine *m);
void ctl_machine_record(struct ctl_kind *k, const struct ctl_machine_notes *n, const char *path,
	const struct model_machine *m);

/* ---- objects in answers */
bool ctl_live_is(const struct ctl_live *l, const struct kobj *o);
/* The array with `finalizer` added or removed; the caller puts it. */
struct json_object *ctl_live_finalizers(const struct ctl_live *l, const char *finalizer, bool add);
/*
 * Puts the object of an answer into the cache, so that the next look sees it. It never replaces an
 * object with another UID. An object that the cache does not know is added only if it was created
 * or read deliberately (`created`).
 */
void ctl_take_answer(struct k8s_cache *cache, struct json_object *o, bool created);
/* {"metadata":{"resourceVersion":rv}}; the caller adds and puts. */
struct json_object *ctl_patch_new(const char *rv, struct json_object **meta);
/* The same with the UID, for objects that others create and delete: marks never reach a later
 * object of the same name. */
struct json_object *ctl_patch_of(const struct kobj *o, struct json_object **meta);
/* Adds a mark (model/mark.h) for o to the annotations of such a patch. */
void ctl_add_mark(struct json_object *annotations, const struct kobj *o, const char *annotation,
	const char *payload);
/* {"apiVersion","kind","metadata":{"name","uid"}}; the caller adds and puts. */
struct json_object *ctl_apply_new(
	const struct kobj_gvk *gvk, const struct kobj *o, struct json_object **meta);
/* A ConfigMap of this operator without data. */
struct json_object *ctl_configmap_new(const char *name, const char *ns);
/* The status to apply, with the wanted conditions. */
struct json_object *ctl_status_json(const struct kobj_gvk *gvk, const struct kobj *o,
	const struct kobj_cond *have, const struct kobj_cond_want *want, size_t n);
/* Bit i: status or reason of condition i changes. */
unsigned ctl_cond_changes(
	const struct kobj_cond *have, const struct kobj_cond_want *want, size_t n);

/* The name in kbs_sync of the cluster's own Trustee; borrowed from c. */
const char *ctl_primary_target(const struct model_cluster *c);

#endif
