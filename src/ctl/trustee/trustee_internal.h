/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/trustee: the servers and what is known of each. Each file calls only those
 * before it: desc, memory, list, view, trustee. */
#ifndef TEC_CTL_TRUSTEE_INTERNAL_H
#define TEC_CTL_TRUSTEE_INTERNAL_H

#include "../ctl_internal.h"
#include "tec/ctl/trustee.h"
#include "tec/kbs/push.h"

#define TRUSTEE_SERVERS_MAX 24

/* The description of a server, from spec or memory. Strings are owned. */
struct trustee_desc {
	char *address;      /* host[:port]; NULL: the primary of a cluster without an address */
	char *ca_secret;    /* NULL: plain http */
	char *admin_secret; /* has member private.key */
	bool primary, owned;
	bool https_only; /* spec.trustee.plaintext is Refuse, or may have been */
	bool volumes;    /* nothing is sent to it: ctl/cluster mounts files and confirms */
};

/* A Secret's member, as of one resourceVersion. */
struct trustee_bytes {
	char *rv;                         /* owned; NULL: never read */
	struct secret *value;             /* owned; NULL: the Secret has no such member */
	char content[SHA256_HEX_LEN + 1]; /* hash of all members (model/content.h) */
};

struct trustee_server {
	struct trustee_server *next;
	struct trustee_desc desc;
	char *cluster_uid; /* owned */
	bool wanted;       /* the served cluster names it */
	struct trustee_bytes admin, ca;
	bool admin_ours;       /* of the own Trustee: this operator announced the admin key */
	struct kbs_push *push; /* owned; NULL with delivery by volumes */
	bool is_target;        /* registered in kbs_sync without a push */
	char *connected_as;    /* owned: inputs of the transport; NULL: no transport */
	char *reason;          /* owned: why it is not connected */
	char name[];           /* of the target in kbs_sync */
};

struct ctl_trustee {
	const struct ctl_env *env; /* borrowed */
	struct ctl_runner *runner; /* owned */
	struct ctl_acts acts;
	bool on;
	bool has_policies;              /* kbs_sync has the policies */
	unsigned window;                /* spec.trustee.window; 0: the default of each server */
	bool memory_known;              /* read, or found missing, since the start */
	bool adopt;                     /* memory was just read: add its servers to the list */
	struct trustee_server *servers; /* owned list */
	struct defer look;
	char *memory_rv,
		*memory; /* owned: tec-trustees as last read or written; memory NULL: none */
};

/* Where a server is reached. Strings are owned. */
struct trustee_place {
	char *url, *connect_to; /* connect_to NULL: by the URL */
	const char *service;    /* static: the Service of the address; NULL: none of ours */
};

/* The look of a step; view.c. */
struct trustee_look {
	struct ctl_trustee_view v;
	struct trustee_place place;
	char *as; /* owned: the inputs of a transport as text, compared with connected_as */
	struct strbuf why;
};

/* ---- desc.c */
void trustee_desc_fini(struct trustee_desc *d);
bool trustee_desc_same(const struct trustee_desc *a, const struct trustee_desc *b);
/* The i-th server of a cluster; false: there are no more. *name: its target, borrowed from c. */
bool trustee_desc_of_cluster(
	const struct model_cluster *c, unsigned i, struct trustee_desc *out, const char **name);
/* Where a server is reached; false: not known yet. The caller frees the strings. */
bool trustee_desc_place(const struct ctl_env *env, const struct model_cluster *c,
	const struct trustee_server *s, struct trustee_place *out);
/* A place depends on this Service. */
bool trustee_desc_is_service(const char *name);
/* The server is this process, which needs no address, certificate or Secret. */
bool trustee_desc_is_here(const struct ctl_env *env, const struct trustee_desc *d);
/* The connection would be plain text. */
bool trustee_desc_is_plain(const struct ctl_env *env, const struct trustee_desc *d);

/* ---- memory.c */
/* The i-th server of a memory text; false: there are no more, or the text is invalid. */
bool trustee_memory_desc(const char *json, unsigned i, struct trustee_desc *out);
bool trustee_memory_is_read(const struct ctl_trustee *c);
void trustee_memory_set(struct ctl_trustee *c, const char *rv, const char *text);
void trustee_memory_look(const struct ctl_trustee *c, struct ctl_trustee_memory_view *v);
struct op *trustee_memory_start(
	struct ctl_trustee *c, enum ctl_trustee_do d, k8s_result_fn done, void *arg);
/* True: the error needs no retry. */
bool trustee_memory_done(struct ctl_trustee *c, enum ctl_trustee_do d, const struct err *err,
	const struct k8s_result *r);

/* ---- list.c */
struct trustee_server *trustee_list_find(const struct ctl_trustee *c, const char *name);
void trustee_list_drop(struct ctl_trustee *c, struct trustee_server *s); /* frees s */
void trustee_bytes_fini(struct trustee_bytes *b);
/* A server that no cluster names any more may still hold our keys. */
bool trustee_list_may_hold(const struct ctl_trustee *c, const struct trustee_server *s);
void trustee_list_tell_left(
	const struct ctl_trustee *c, const char *name); /* a warning in log and Events */
void trustee_list_update(void *trustee);                /* from spec and memory */
void trustee_list_update_soon(struct ctl_trustee *c);   /* the same, in the next turn */

/* ---- view.c */
void trustee_view_look(
	const struct ctl_trustee *c, const struct trustee_server *s, struct trustee_look *l);
void trustee_view_fini(struct trustee_look *l);

#endif
