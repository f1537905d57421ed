/* SPDX-License-Identifier: MIT */
/*
 * Which Trustee servers are administered, how each is reached, and one kbs_push for each. Keys are
 * the names of targets in kbs_sync: the addresses shown to people. The primary one is the cluster's
 * own (Managed) or the one at publicTrusteeAddr (External); every trusteeServers entry with an
 * adminSecret is another. With delivery by volumes the primary one has no push: ctl/cluster
 * confirms for it.
 *
 * Servers that the cluster object does not own are remembered in ConfigMap tec-trustees before
 * anything is sent to them, so that they are not forgotten when the cluster object is deleted or
 * the operator restarts.
 */
#ifndef TEC_CTL_TRUSTEE_H
#define TEC_CTL_TRUSTEE_H

#include "tec/ctl/env.h"

/* All that decide looks at, of one server. */
struct ctl_trustee_view {
	bool known;    /* it is in the list */
	bool wanted;   /* by the cluster served, or it may still hold our keys */
	bool recorded; /* the cluster object's own, or in memory as it is wanted now */
	bool volumes;  /* nothing is sent: it reads files, which ctl/cluster mounts and confirms */
	bool refused;  /* nothing may be sent to it, by spec */
	bool admin_there, admin_read; /* the Secret with its key; the version there was read */
	bool needs_ca, ca_there, ca_read;
	bool address;   /* where to connect is known */
	bool usable;    /* what was read is a key and a certificate */
	bool connected; /* the push has a transport made from all this */
	bool reported;  /* it has none, and the reason was reported */
};
struct ctl_trustee_memory_view {
	bool read;      /* since it last changed */
	bool as_wanted; /* it matches the list */
	bool empty;     /* there is nothing to remember */
	bool there;     /* the ConfigMap */
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
/* On before the other controllers, which need to know what Trustee may hold. Off after them:
 * everything declared is forgotten, keys leave memory. */
void ctl_trustee_on(struct ctl_trustee *c);
void ctl_trustee_off(struct ctl_trustee *c);
/* The process is about to end: what is declared is still sent, but each Trustee's clean sentinel is
 * not waited for any longer. */
void ctl_trustee_finish(struct ctl_trustee *c);
/* There is nothing left to wait for. */
bool ctl_trustee_is_finished(const struct ctl_trustee *c);

/* For conditions, in out: which Trustee is not in sync, and why. Returns its text. */
const char *ctl_trustee_why(const struct kbs_sync *sync, struct strbuf *out);
/* The same about one name: "Trustee at a, b has not confirmed it yet." It changes only when an
 * answer about this name comes, so that a status with it is not written again and again. */
const char *ctl_trustee_lacking(
	const struct kbs_sync *sync, enum kbs_sort sort, const char *name, struct strbuf *out);

#endif
