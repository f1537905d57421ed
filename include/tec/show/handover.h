/* SPDX-License-Identifier: MIT */
/*
 * Decides the next step when the authority over nodes moves between clusters: for tecctl follow,
 * promote and retire. Each step follows only from what the two TrustedExecutionClusters show, so
 * a command that was killed continues when it is run again. The source is the cluster that
 * decides, the target the one that follows it.
 *
 * A promotion has a ticket, an annotation on both clusters. The target may decide only while both
 * clusters carry the same ticket. Each ticket is written to the source before that, so a write to
 * the source that was prepared earlier fails on its resourceVersion.
 *
 * A target that takes over gets an epoch higher than both had. If two clusters decide
 * nevertheless, because one was promoted while the other was unreachable, the one with the lower
 * epoch stops when it reads the other's (ctl/follow.h).
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
#define SHOW_TICKET_ABORTED "aborted-" /* prefix of a ticket: a target that has it may not decide */

/* What a TrustedExecutionCluster shows about who decides. Strings are borrowed from it; NULL:
 * absent. */
struct show_authority {
	enum model_authority is;
	bool known;    /* false: spec.authority has a value of a later version */
	bool observed; /* the condition Authority is up to date with the generation */
	bool synced;   /* TrusteeSynced is True */
	const char *name, *uid, *ticket, *reason, *message;
	const char *digest, *peer, *peer_uid; /* from status.authority, like all that follows */
	int64_t machines, keys, images, behind;
	int64_t epoch, peer_epoch; /* 0: absent */
	const char *seen;
};
void show_authority(struct json_object *cluster, struct show_authority *out);

enum show_do {
	SHOW_DO_REFUSE, /* why gives the reason, next what to do */
	SHOW_DO_WAIT,   /* likewise */
	SHOW_DO_FOLLOW, /* give the target an account at the source; set the target to Following */
	SHOW_DO_ANNOUNCE, /* give the target a ticket */
	SHOW_DO_FREEZE,   /* set the source to Frozen, with the target's ticket */
	SHOW_DO_TAKE,     /* set the target to Self, with show_next_epoch() */
	SHOW_DO_SWAP,     /* set the source to Following, without a ticket */
	SHOW_DO_FENCE,    /* mark the target's ticket as aborted, so that it cannot decide */
	SHOW_DO_UNFREEZE, /* set the source to Self, without a ticket */
	SHOW_DO_RETIRE,
	SHOW_DO_TAKE_ALONE, /* as SHOW_DO_TAKE, but without a source and without a ticket */
	SHOW_DO_DONE
};

/* The steps of a promotion, in order. */
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
	enum show_step step; /* all steps before it are done; SHOW_N_STEPS: all are done */
	char why[512];
	const char *next; /* static; NULL: no action is needed */
};

/* What a promotion considers besides the two clusters. */
struct show_promotion {
	size_t deleting;                       /* Machines still being deleted at the source */
	const char *from_version, *to_version; /* operator versions, "0.2.0"; NULL: unknown */
	int64_t skew_s;     /* seconds the target API server's clock is ahead; 0 if unknown, too */
	const char *ticket; /* of this run of tecctl; NULL: the run has just started */
};

/* given: this run has already written the kubeconfig for the target. */
struct show_next show_follow_next(
	const struct show_authority *from, const struct show_authority *to, bool given);
struct show_next show_promote_next(const struct show_authority *from,
	const struct show_authority *to, const struct show_promotion *p);
struct show_next show_abort_next(
	const struct show_authority *from, const struct show_authority *to);
/* The next step when the other cluster is lost (tecctl promote --from-lost). */
struct show_next show_from_lost_next(const struct show_authority *to);
/* The epoch for a target that takes over; from NULL: the other cluster is lost. */
int64_t show_next_epoch(const struct show_authority *from, const struct show_authority *to);
/* Describes, in a sentence for people, when the lost cluster was last read and what had not been
 * copied then. The caller frees. */
char *show_last_seen(const struct show_authority *to, int64_t now_s);
/* last: retire although no other cluster is known to have the keys (--last). */
struct show_next show_retire_next(const struct show_authority *at, bool last);

/* Counts the Machines that the target has and the source lacks: following would revoke their
 * keys. *first is the name of one of them, borrowed from to. */
size_t show_strangers(
	const struct show_world *from, const struct show_world *to, const char **first);

/* Counts the Machines younger than 10 minutes without a bound AttestationKey: probably nodes in
 * their first boot. *first as above. */
size_t show_unbound(const struct show_world *w, const char **first);
/* Whether nodes installed with this cluster contact no server but that address. */
bool show_asks_only(struct json_object *cluster, const char *address);

/* Whether the gitVersion is that of tec-operator --standalone. */
bool show_is_standalone(const char *git);
/* The operator's version ("0.3.0") from the gitVersion of tec-operator --standalone, or else from
 * the tag of the operator's image; either may be NULL. NULL: neither tells it. The caller frees. */
char *show_operator_version(const char *git, const char *image);

/* Splits "KUBECONFIG[:NS]" at the first colon after the last slash. *ns is NULL without a
 * namespace; the caller frees both. ERR_INVALID: no file name, or not a namespace. */
int show_place(const char *text, char **file, char **ns, struct err *err) MUST_CHECK;

#endif
