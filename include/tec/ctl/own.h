/* SPDX-License-Identifier: MIT */
/*
 * One Secret that the operator creates for one owner, under a name that may be in use already. The
 * hash of its content is announced in an annotation of the owner, then the Secret is POSTed. An
 * existing Secret is used only while its content is announced; a foreign one is never touched.
 *
 * Embedded in its controller, which looks (ctl_own_state), starts one act at a time and passes the
 * answer to ctl_own_saw(). Only the functions of conf are called back, from within these
 * functions.
 */
#ifndef TEC_CTL_OWN_H
#define TEC_CTL_OWN_H

#include "tec/base/bytes.h"
#include "tec/base/secret.h"
#include "tec/ctl/env.h"
#include "tec/ctl/install.h"

enum ctl_own_state {
	CTL_OWN_ABSENT,
	CTL_OWN_UNREAD,
	CTL_OWN_GOOD,
	CTL_OWN_OLDER,   /* of our form, not announced, but older than the marker */
	CTL_OWN_PLANTED, /* right name and owner, but content of another client */
	CTL_OWN_FOREIGN, /* has another owner, or a further one */
	CTL_OWN_N,
};

enum ctl_own_do {
	/* On the Secret: the values of ctl/install.h, so that a cast converts them. */
	CTL_OWN_NOTHING = CTL_INSTALL_NOTHING,
	CTL_OWN_READ = CTL_INSTALL_READ,
	CTL_OWN_CREATE = CTL_INSTALL_CREATE,
	CTL_OWN_DELETE = CTL_INSTALL_DELETE,
	/* On the owner: a patch with ctl_own_announce(). */
	CTL_OWN_ANNOUNCE,
};

struct ctl_own_conf {
	/* The hashes that the owner announces for a Secret (model/mark.h); NULL: none. Borrowed. */
	const char *(*announced)(const struct kobj *owner, const char *secret);
	/* Renders a new Secret as JSON text; the caller frees. */
	struct secret *(*make)(
		void *self, const struct kobj *owner, const char *name, struct err *err);
	const char *data[2]; /* its members; one or two */
};

struct ctl_own {
	const struct ctl_env *env;       /* borrowed, as are the next three */
	const struct ctl_own_conf *conf; /* static */
	void *self;
	const char *name;
	char *read_rv;                 /* owned: the version read last */
	char hash[SHA256_HEX_LEN + 1]; /* of its content; "": not in the form rendered here */
	bool must_read;                /* a create met a Secret that the cache does not show */
	/* Owned: the JSON text to be POSTed, kept until an announced Secret was seen; and the hash
	 * of its content. */
	struct secret *text;
	char text_hash[SHA256_HEX_LEN + 1];
};

void ctl_own_init(struct ctl_own *own, const struct ctl_env *env, const struct ctl_own_conf *conf,
	void *self, const char *name);
/* Forgets everything, as for another owner. */
void ctl_own_reset(struct ctl_own *own);
/* NULL drops the text. */
void ctl_own_set_text(struct ctl_own *own, struct secret *take_text);

enum ctl_own_state ctl_own_state(const struct ctl_own *own, const struct kobj *owner);
/* wanted: create it if absent; text_announced: the text to POST is announced. Pure. */
enum ctl_own_do ctl_own_decide(enum ctl_own_state state, bool wanted, bool text_announced);
bool ctl_own_text_announced(const struct ctl_own *own, const struct kobj *owner);

/* ANNOUNCE: renders the text if there is none, and adds the announcement to the annotations of a
 * patch. */
int ctl_own_announce(struct ctl_own *own, const struct kobj *owner, struct json_object *annotations,
	struct err *err) MUST_CHECK;
/* Sets or removes (hashes NULL) an announcement there. */
void ctl_own_put(struct json_object *annotations, const struct kobj *owner, const char *name,
	const char *hashes);
/* READ, CREATE, DELETE. */
struct op *ctl_own_start(struct ctl_own *own, struct op_scope *ops, enum ctl_own_do what,
	k8s_result_fn done, void *arg);
/* o was read, or is the answer of its create. */
void ctl_own_saw(struct ctl_own *own, const struct kobj *owner, struct json_object *o);

#endif
