/* SPDX-License-Identifier: MIT */
/*
 * Installs objects for one owner: a static table, the knowledge of each object, and the act that
 * follows from it. An object is read once and compared with its rendering; a current object is not
 * read again until it changes (status excepted) or one of its inputs does. An object that another
 * owner controls is never written.
 *
 * Embedded in its controller, which chooses the order, starts one act at a time and wakes its key.
 * Only the functions of conf are called back, from within ctl_install_start() and
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
	CTL_INSTALL_CREATED,  /* created once; other writers update it afterwards */
	CTL_INSTALL_UNWANTED, /* deleted if the owner controls it and it was not rendered here */
};

struct ctl_install_object {
	const struct kobj_gvk *gvk; /* ConfigMap, Service or Deployment */
	const char *name;
	enum ctl_install_kind kind;
	unsigned
		inputs; /* bits defined by the controller: inputs of the rendering besides the owner */
};

enum ctl_install_state {
	CTL_INSTALL_ABSENT,
	CTL_INSTALL_UNREAD, /* this version was not compared, or the cache does not show it yet */
	CTL_INSTALL_CURRENT,
	CTL_INSTALL_STALE,
	CTL_INSTALL_REPLACE,  /* of the owner, but by another operator or unwanted: to be deleted */
	CTL_INSTALL_OF_OTHER, /* another operator, whose fields are taken over, wrote it */
	CTL_INSTALL_CONFLICT, /* another owner has it */
	CTL_INSTALL_DELETING, /* created again when it is gone */
	CTL_INSTALL_UNREADABLE, /* too large for the cache: not changed */
};

enum ctl_install_do {
	CTL_INSTALL_NOTHING,
	CTL_INSTALL_READ,
	CTL_INSTALL_CREATE,
	CTL_INSTALL_TAKE,
	CTL_INSTALL_APPLY,
	CTL_INSTALL_DELETE,
};

struct ctl_install_conf {
	const struct kobj_gvk *owner;
	const struct ctl_install_object *objects;
	unsigned n; /* <= CTL_INSTALL_MAX */
	/* NULL: it cannot be rendered now, so the existing object counts as current. */
	struct json_object *(*render)(void *self, const struct kobj *owner, unsigned i);
	/* The remaining members are optional. */
	/* False: the object is not wanted now. An object rendered earlier is deleted. */
	bool (*wanted)(void *self, const struct kobj *owner, unsigned i);
	/* o was read, or is the answer of an apply (with by_digest not every one). False: another
	 * operator created it. */
	bool (*saw)(void *self, const struct kobj *owner, unsigned i, struct json_object *o);
	/* have was read, want is the current rendering. */
	void (*compared)(void *self, unsigned i, struct json_object *want, struct json_object *have,
		bool current);
	/* The object was created (also by an apply), applied or deleted; for log and Events. Called
	 * before `saw`. */
	void (*wrote)(void *self, const struct kobj *owner, unsigned i, enum ctl_install_do what);
	/* When an input changes, the rendering is compared with that of the existing version, and no
	 * object is read: ctl_install_recheck(). For controllers without `compared` and without
	 * ConfigMaps. */
	bool by_digest;
	/* The field manager of an operator without server-side apply: its fields of an object become
	 * ours before the object is applied (kobj/managed.h). */
	const char *takes_from;
	/* Adds operations to the patch that takes o over. */
	void (*taking)(void *self, const struct kobj *owner, unsigned i, struct json_object *o,
		struct json_object *patch);
};

/* Knowledge of one object; found is valid for version rv, and for versions that differ only in
 * status. */
struct ctl_install_known {
	char *rv;       /* owned */
	uint64_t shape; /* struct model_plain.shape of rv; 0: unknown */
	enum ctl_install_state found;
	bool doubt; /* an input has changed since */
	/* Digests of renderings: of version rv, and of the write in flight. 0: unknown. */
	uint64_t digest, sent;
	/* Rendered by the recheck that found it stale, for the write. Owned. */
	struct json_object *want;
	uint64_t want_digest;
	bool must_read; /* a create met an object that the cache does not show */
	bool absent;    /* it did not exist when the write in flight began */
};

struct ctl_install {
	const struct ctl_env *env;           /* borrowed, as are the next three */
	const struct ctl_install_conf *conf; /* static */
	void *self;
	struct op_scope *ops;
	char *owner_uid; /* owned: of the owner whose objects are known; NULL: none */
	int64_t owner_generation;
	struct ctl_install_known known[CTL_INSTALL_MAX];
};

void ctl_install_init(struct ctl_install *in, const struct ctl_env *env,
	const struct ctl_install_conf *conf, void *self, struct op_scope *ops);
/* Forgets everything if the owner (NULL: none) or its generation changed. True: another owner. */
bool ctl_install_follow(struct ctl_install *in, const struct kobj *owner);
/* Compares the objects with one of these inputs again, although they did not change; a write in
 * flight does not prove them current. */
void ctl_install_forget(struct ctl_install *in, unsigned inputs);
/* by_digest: renders the objects in doubt. Called before ctl_install_state(), if they can be
 * rendered. */
void ctl_install_recheck(struct ctl_install *in, const struct kobj *owner);

/* The object in the cache; NULL: none. Borrowed until the loop runs again. */
const struct kobj *ctl_install_find(const struct ctl_install *in, unsigned i);
enum ctl_install_state ctl_install_state(
	const struct ctl_install *in, const struct kobj *owner, unsigned i);
enum ctl_install_do ctl_install_decide(enum ctl_install_kind kind, enum ctl_install_state state);

/* Starts an act. NULL with err set: the object cannot be rendered. */
struct op *ctl_install_start(struct ctl_install *in, const struct kobj *owner, unsigned i,
	enum ctl_install_do what, k8s_result_fn done, void *arg, struct err *err);
/*
 * First line of `done`. owner: the current one, NULL if it is gone; if it is not the owner that
 * the act was for, only the cache is updated. True: success, or an error that needs no retry.
 */
bool ctl_install_done(struct ctl_install *in, const struct kobj *owner, unsigned i,
	enum ctl_install_do what, const struct err *err, const struct k8s_result *r);
/* The same for a failed act on an object outside the table. */
bool ctl_install_failed(bool *must_read, enum ctl_install_do what, const struct err *err,
	const struct k8s_result *r);
/* Log and Event: an object was written. installed: the installation was complete, so this is a
 * repair. */
void ctl_install_tell(const struct ctl_install *in, const struct kobj *owner, bool installed,
	const struct kobj_gvk *gvk, const char *name);

#endif
