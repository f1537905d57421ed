/* SPDX-License-Identifier: MIT */
/*
 * Objects installed for one owner: a static table, what is known of each object, and the one act
 * that follows for it. An object is read once and compared with what is rendered now; what was found
 * current is not read again until more of it changes than its status, or one of its inputs. An
 * object that another owner controls is never written.
 *
 * Embedded in its controller, which chooses the order, starts one act at a time and wakes its key.
 * Nothing calls back but the functions of conf, from within ctl_install_start() and
 * ctl_install_done().
 */
#ifndef TEC_CTL_INSTALL_H
#define TEC_CTL_INSTALL_H

#include "tec/ctl/env.h"
#include "tec/k8s/call.h"
#include "tec/kobj/gvk.h"
#include "tec/loop/op.h"

#define CTL_INSTALL_MAX 16

enum ctl_install_kind {
	CTL_INSTALL_APPLIED,  /* repaired when it differs */
	CTL_INSTALL_CREATED,  /* created once; others write it from then on */
	CTL_INSTALL_UNWANTED, /* deleted if the owner controls it and it was not rendered here */
};

struct ctl_install_object {
	const struct kobj_gvk *gvk; /* ConfigMap, Service or Deployment */
	const char *name;
	enum ctl_install_kind kind;
	unsigned inputs; /* bits of the controller's: what it is rendered from besides the owner */
};

enum ctl_install_state {
	CTL_INSTALL_ABSENT,
	CTL_INSTALL_UNREAD, /* not compared in this version, or the cache does not show it yet */
	CTL_INSTALL_CURRENT,
	CTL_INSTALL_STALE,
	CTL_INSTALL_REPLACE,    /* of the owner, but by another operator or not wanted: deleted */
	CTL_INSTALL_CONFLICT,   /* of another owner */
	CTL_INSTALL_DELETING,   /* it is created again when it is gone */
	CTL_INSTALL_UNREADABLE, /* larger than the cache takes: not changed */
};

enum ctl_install_do {
	CTL_INSTALL_NOTHING,
	CTL_INSTALL_READ,
	CTL_INSTALL_CREATE,
	CTL_INSTALL_APPLY,
	CTL_INSTALL_DELETE,
};

struct ctl_install_conf {
	const struct kobj_gvk *owner;
	const struct ctl_install_object *objects;
	unsigned n; /* <= CTL_INSTALL_MAX */
	/* NULL: it cannot be rendered now, so what is there counts as current. */
	struct json_object *(*render)(void *self, const struct kobj *owner, unsigned i);
	/* The rest is optional. */
	/* False: it is not wanted now. What was rendered earlier is deleted. */
	bool (*wanted)(void *self, const struct kobj *owner, unsigned i);
	/* o was read, or is the answer of an apply, which by_digest does not always read. False:
	 * another operator created it. */
	bool (*saw)(void *self, const struct kobj *owner, unsigned i, struct json_object *o);
	/* have was read, want is what is rendered now. */
	void (*compared)(void *self, unsigned i, struct json_object *want, struct json_object *have,
		bool current);
	/* It was created (also by an apply), applied or deleted; for log and Events. Comes before
	 * `saw`. */
	void (*wrote)(void *self, const struct kobj *owner, unsigned i, enum ctl_install_do what);
	/* When an input changes, what is rendered is compared with what was rendered for the version
	 * that is there, and no object is read for it: ctl_install_recheck(). For a controller that
	 * needs no `compared`, and no ConfigMap. */
	bool by_digest;
	/* What another operator created is replaced also when nobody owns it, instead of a conflict. */
	bool replaces_orphans;
};

/* Of one object; found holds for the version rv, and for those that differ in the status alone. */
struct ctl_install_known {
	char *rv;       /* owned */
	uint64_t shape; /* struct model_plain's, of rv; 0: not known */
	enum ctl_install_state found;
	bool doubt; /* an input has changed since */
	/* What was rendered: in the version rv, and in the write in flight. 0: not known. */
	uint64_t digest, sent;
	/* Rendered by the recheck that found it stale, for the write. Owned. */
	struct json_object *want;
	uint64_t want_digest;
	bool must_read; /* a create found an object that the cache does not show */
	bool absent;    /* when the write in flight began: its answer may come after the watch's */
};

struct ctl_install {
	const struct ctl_env *env;           /* borrowed, as are the next three */
	const struct ctl_install_conf *conf; /* static */
	void *self;
	struct op_scope *ops;
	char *owner_uid; /* owned: what is known is about its objects; NULL: about none */
	int64_t owner_generation;
	struct ctl_install_known known[CTL_INSTALL_MAX];
	char problem[512]; /* why an object cannot be read or written; "": no reason */
};

void ctl_install_init(struct ctl_install *in, const struct ctl_env *env,
	const struct ctl_install_conf *conf, void *self, struct op_scope *ops);
/* Forgets what is known when the owner (NULL: none) or its generation has changed. True: it is
 * another owner. */
bool ctl_install_follow(struct ctl_install *in, const struct kobj *owner);
/* The objects with one of these inputs are compared again, although they did not change; a write in
 * flight does not count as an answer to it. */
void ctl_install_forget(struct ctl_install *in, unsigned inputs);
/* by_digest: renders what is in doubt. Before ctl_install_state(), when it can be rendered. */
void ctl_install_recheck(struct ctl_install *in, const struct kobj *owner);

/* Of the cache; NULL: it is not there. Borrowed for the turn. */
const struct kobj *ctl_install_find(const struct ctl_install *in, unsigned i);
enum ctl_install_state ctl_install_state(
	const struct ctl_install *in, const struct kobj *owner, unsigned i);
enum ctl_install_do ctl_install_decide(enum ctl_install_kind kind, enum ctl_install_state state);

/* NULL with err set: what would be applied cannot be rendered. */
struct op *ctl_install_start(struct ctl_install *in, const struct kobj *owner, unsigned i,
	enum ctl_install_do what, k8s_result_fn done, void *arg, struct err *err);
/*
 * First line of `done`. owner: as it is now, NULL when it is gone; when it is another one than the
 * act was for, only the cache learns. True: the error, if there was one, needs no retry.
 */
bool ctl_install_done(struct ctl_install *in, const struct kobj *owner, unsigned i,
	enum ctl_install_do what, const struct err *err, const struct k8s_result *r);
/* The same for an act that failed on an object beside the table; sets problem. */
bool ctl_install_failed(struct ctl_install *in, bool *must_read, const struct kobj_gvk *gvk,
	const char *name, enum ctl_install_do what, const struct err *err,
	const struct k8s_result *r);
/* Log and Event: an object was written. installed: all were there before, so this is a repair. */
void ctl_install_tell(const struct ctl_install *in, const struct kobj *owner, bool installed,
	const struct kobj_gvk *gvk, const char *name);

#endif
