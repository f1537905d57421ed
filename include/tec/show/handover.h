/* SPDX-License-Identifier: MIT */
/*
 * Which cluster decides, and the next step when that changes: of tecctl follow, promote and retire. All of it
 * follows from what two TrustedExecutionClusters show, so that a command that was killed goes on when it
 * runs again. The source is the cluster that decides, the target the one that follows it.
 *
 * A promotion has a ticket, an annotation on both clusters. The target may decide only while both show
 * the same one; each ticket is written to the source before that, so that a change of the source which
 * was decided earlier fails with its resourceVersion.
 *
 * A target that decides gets an epoch higher than both had. Of two that decide all the same, as one was
 * made to while the other could not be reached, the one with the lower epoch stops when it reads the
 * other's (ctl/follow.h).
 */
#ifndef TEC_SHOW_HANDOVER_H
#define TEC_SHOW_HANDOVER_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/model/cluster.h"
#include "tec/show/world.h"

#define SHOW_TICKET         "trusted-execution-clusters.io/promotion"
#define SHOW_TICKET_ABORTED "aborted-" /* and the ticket: no target with it may decide */

/* What a TrustedExecutionCluster shows of who decides. Strings are borrowed from it, NULL: not there. */
struct show_authority {
	enum model_authority is;
	bool known;    /* false: spec.authority is a word of a later version */
	bool observed; /* the condition Authority is of the current generation */
	bool synced;   /* TrusteeSynced is True */
	const char *name, *uid, *ticket, *reason, *message;
	const char *digest, *peer, *peer_uid; /* of status.authority, as all that follows */
	int64_t machines, keys, images, behind;
	int64_t epoch, peer_epoch; /* 0: not there */
	const char *seen;
};
void show_authority(struct json_object *cluster, struct show_authority *out);

enum show_do {
	SHOW_DO_REFUSE, /* why says it, next what to do */
	SHOW_DO_WAIT,   /* likewise */
	SHOW_DO_FOLLOW, /* give the target an account at the source; then its authority is Following */
	SHOW_DO_ANNOUNCE, /* give the target a ticket */
	SHOW_DO_FREEZE,   /* the source is Frozen, with the target's ticket */
	SHOW_DO_TAKE,     /* the target is Self, with show_next_epoch() */
	SHOW_DO_SWAP,     /* the source is Following, without a ticket */
	SHOW_DO_FENCE,    /* make the ticket of the target an aborted one */
	SHOW_DO_UNFREEZE, /* the source is Self, without a ticket */
	SHOW_DO_RETIRE,
	SHOW_DO_TAKE_ALONE, /* the same without a source, and without a ticket */
	SHOW_DO_DONE
};

/* The steps of a promotion in their order. */
enum show_step {
	SHOW_STEP_FOLLOW,
	SHOW_STEP_PREFLIGHT,
	SHOW_STEP_FREEZE,
	SHOW_STEP_COPY,
	SHOW_STEP_TAKE,
	SHOW_STEP_SWAP,
	SHOW_N_STEPS
};
extern const struct show_step_words {
	const char *name, *done, *todo;
} show_steps[SHOW_N_STEPS];

struct show_next {
	enum show_do act;
	enum show_step step; /* of a promotion: all before it are done; SHOW_N_STEPS: all are */
	char why[512];
	const char *next; /* static; NULL: nothing has to be done */
};

/* What else a promotion looks at. */
struct show_promotion {
	size_t deleting; /* Machines of the source whose deletion is not over */
	const char *from_version, *to_version; /* of the operators, "0.2.0"; NULL: not known */
	int64_t skew_s; /* by which the clock of the target's API server is ahead; 0 also: not known */
	const char *ticket; /* with which this run goes on; NULL: it has just started */
};

/* given: this run has written the kubeconfig for the target. */
struct show_next show_follow_next(
	const struct show_authority *from, const struct show_authority *to, bool given);
struct show_next show_promote_next(const struct show_authority *from,
	const struct show_authority *to, const struct show_promotion *p);
struct show_next show_abort_next(
	const struct show_authority *from, const struct show_authority *to);
/* The other cluster is lost. */
struct show_next show_from_lost_next(const struct show_authority *to);
/* Of a target that takes over; from NULL: the other cluster is lost. */
int64_t show_next_epoch(const struct show_authority *from, const struct show_authority *to);
/* What was copied from the cluster that is lost, and when it was last seen: a sentence for people. The
 * caller frees. */
char *show_last_seen(const struct show_authority *to, int64_t now_s);
/* last: its keys are given up although no other cluster is known to have them. */
struct show_next show_retire_next(const struct show_authority *at, bool last);

/* Machines of the target that the source does not have: following would revoke their keys. *first is the
 * name of one, borrowed from to. */
size_t show_strangers(
	const struct show_world *from, const struct show_world *to, const char **first);

/* Machines of the last 10 minutes that no AttestationKey is bound to, as of a node in its first boot. *first as above. */
size_t show_unbound(const struct show_world *w, const char **first);
/* Nodes that are installed with this cluster ask no other server than that address. */
bool show_asks_only(struct json_object *cluster, const char *address);

/* Of the gitVersion of a server. */
bool show_is_standalone(const char *git);
/* "0.3.0": of the gitVersion of tec-operator --standalone, or of the operator's image; NULL: not in them, which
 * may be NULL. The caller frees. */
char *show_operator_version(const char *git, const char *image);

/* "KUBECONFIG[:NS]": a colon after the last slash separates the namespace. *ns is NULL without one; the
 * caller frees both. ERR_INVALID. */
int show_place(const char *text, char **file, char **ns, struct err *err) MUST_CHECK;

#endif
