/* SPDX-License-Identifier: MIT */
/*
 * Administers Trustee servers: which ones, how each is reached, and one kbs_push for each. Keys of
 * the queue are the names of targets in kbs_sync, the addresses shown to people. The primary
 * server is the cluster's own (Managed) or the one at publicTrusteeAddr (External); each entry of
 * trusteeServers with an adminSecret is another one. With delivery by volumes, the primary server
 * has no push: ctl/cluster confirms for it.
 *
 * Servers that the cluster object does not own are recorded in ConfigMap tec-trustees before
 * anything is sent to them, so that they are not forgotten when the cluster object is deleted or
 * the operator restarts.
 */
#ifndef TEC_CTL_TRUSTEE_H
#define TEC_CTL_TRUSTEE_H

#include "tec/ctl/env.h"

/* The input of decide, for one server. */
struct ctl_trustee_view {
	bool known;    /* it is in the list */
	bool wanted;   /* the served cluster names it, or it may still hold our keys */
	bool recorded; /* the cluster object owns it, or memory has its current description */
	bool volumes;  /* nothing is sent: it reads files, which ctl/cluster mounts and confirms */
	bool refused;  /* spec forbids sending anything to it */
	bool admin_there, admin_read; /* the Secret with its key exists; was read in this version */
	bool needs_ca, ca_there, ca_read;
	bool address;   /* its address is known */
	bool usable;    /* key and certificate were read and are valid */
	bool connected; /* the push has a transport made from exactly these inputs */
	bool reported;  /* it has no transport, and the reason was reported */
};
struct ctl_trustee_memory_view {
	bool read;      /* since it last changed */
	bool as_wanted; /* it matches the list */
	bool empty;     /* there is nothing to remember */
	bool there;     /* the ConfigMap exists */
};

enum ctl_trustee_do {
	CTL_TRUSTEE_NOTHING,
	CTL_TRUSTEE_READ_ADMIN,
	CTL_TRUSTEE_READ_CA,
	CTL_TRUSTEE_CONNECT,
	CTL_TRUSTEE_DISCONNECT, /* nothing can be sent, and the reason is reported */
	CTL_TRUSTEE_DROP,
	CTL_TRUSTEE_READ_MEMORY,
	CTL_TRUSTEE_APPLY_MEMORY,
	CTL_TRUSTEE_DELETE_MEMORY,
	CTL_TRUSTEE_N_DO,
};
enum ctl_trustee_do ctl_trustee_decide(const struct ctl_trustee_view *v);
enum ctl_trustee_do ctl_trustee_decide_memory(const struct ctl_trustee_memory_view *v);

struct ctl_trustee;
struct ctl_trustee *ctl_trustee_new(const struct ctl_env *env);
void ctl_trustee_free(struct ctl_trustee *c);
/* On before the other controllers, which need to know what Trustee may hold. Off after them: all
 * declarations are forgotten, and keys leave memory. */
void ctl_trustee_on(struct ctl_trustee *c);
void ctl_trustee_off(struct ctl_trustee *c);
/* The process is about to end: declarations are still sent, but the clean sentinel of each
 * Trustee is no longer waited for. */
void ctl_trustee_finish(struct ctl_trustee *c);
/* There is nothing left to wait for. */
bool ctl_trustee_is_finished(const struct ctl_trustee *c);

/* Tell whether spec (NULL: no cluster) names the server with this address. */
bool ctl_trustee_is_named(const struct model_cluster *c, const char *name);

/* Sets out to sentences for conditions: which Trustee is not in sync, why, and what to do about one
 * that does not answer. served: the cluster; NULL: none. Returns its text. */
const char *ctl_trustee_why(
	const struct kbs_sync *sync, const struct model_cluster *served, struct strbuf *out);
/* The same for one name: "Trustee at a, b has not confirmed it yet." The text changes only with an
 * answer about this name, and when a server that spec no longer names stops or begins to answer: so
 * a status with it is not written again and again. */
const char *ctl_trustee_lacking(const struct kbs_sync *sync, const struct model_cluster *served,
	enum kbs_kind kind, const char *name, struct strbuf *out);

#endif
