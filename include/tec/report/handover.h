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
#ifndef TEC_REPORT_HANDOVER_H
#define TEC_REPORT_HANDOVER_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/err.h"
#include "tec/model/cluster.h"
#include "tec/report/world.h"

#define REPORT_TICKET "trusted-execution-clusters.io/promotion"
#define REPORT_TICKET_ABORTED                                                                      \
	"aborted-" /* prefix of a ticket: a target that has it may not decide */

/* What a TrustedExecutionCluster shows about who decides. Strings are borrowed from it; NULL:
 * absent. */
struct report_authority {
	enum model_authority is;
	bool known;            /* false: spec.authority has a value of a later version */
	bool observed;         /* the condition Authority is up to date with the generation */
	bool synced;           /* TrusteeSynced is True */
	const char *trustee;   /* address of an external Trustee; NULL: it has its own. The caller
				unsets it for --standalone, whose Trustee is its own broker. */
	const char *take_over; /* spec.trustee.takeOver */
	const char *conflict;  /* the message of TrusteeSynced, if its reason is Conflict */
	const char *name, *uid, *ticket, *reason, *message;
	const char *digest, *peer, *peer_uid; /* from status.authority, like all that follows */
	int64_t machines, keys, images, behind;
	int64_t epoch, peer_epoch; /* 0: absent */
	const char *seen;
};
void report_authority(struct json_object *cluster, struct report_authority *out);

enum report_do {
	REPORT_DO_REFUSE, /* why gives the reason, next what to do */
	REPORT_DO_WAIT,   /* likewise */
	REPORT_DO_FOLLOW, /* give the target an account at the source; set the target to Following */
	REPORT_DO_ANNOUNCE, /* give the target a ticket */
	REPORT_DO_FREEZE,   /* set the source to Frozen, with the target's ticket */
	REPORT_DO_TAKE,     /* set the target to Self, with report_next_epoch() */
	REPORT_DO_SWAP,     /* set the source to Following, without a ticket */
	REPORT_DO_FENCE,    /* mark the target's ticket as aborted, so that it cannot decide */
	REPORT_DO_UNFREEZE, /* set the source to Self, without a ticket */
	REPORT_DO_RETIRE,
	REPORT_DO_TAKE_ALONE, /* as REPORT_DO_TAKE, but without a source and without a ticket */
	REPORT_DO_DONE
};

/* The steps of a promotion, in order. */
enum report_step {
	REPORT_STEP_FOLLOW,
	REPORT_STEP_PREFLIGHT,
	REPORT_STEP_FREEZE,
	REPORT_STEP_COPY,
	REPORT_STEP_TAKE,
	REPORT_STEP_SWAP,
	REPORT_N_STEPS
};
extern const struct report_step_words {
	const char *name, *done, *todo;
} report_steps[REPORT_N_STEPS];

struct report_next {
	enum report_do act;
	enum report_step step; /* all steps before it are done; REPORT_N_STEPS: all are done */
	char why[512];
	const char *next; /* static; NULL: no action is needed */
};

/* What a promotion considers besides the two clusters. */
struct report_promotion {
	size_t deleting;                       /* Machines still being deleted at the source */
	const char *from_version, *to_version; /* operator versions, "0.2.0"; NULL: unknown */
	int64_t skew_s;     /* seconds the target API server's clock is ahead; 0 if unknown, too */
	const char *ticket; /* of this run of tecctl; NULL: the run has just started */
};

/* given: this run has already written the kubeconfig for the target. */
struct report_next report_follow_next(
	const struct report_authority *from, const struct report_authority *to, bool given);
struct report_next report_promote_next(const struct report_authority *from,
	const struct report_authority *to, const struct report_promotion *p);
struct report_next report_abort_next(
	const struct report_authority *from, const struct report_authority *to);
/* The next step when the other cluster is lost (tecctl promote --from-lost). */
struct report_next report_from_lost_next(const struct report_authority *to);
/* The epoch for a target that takes over; from NULL: the other cluster is lost. */
int64_t report_next_epoch(const struct report_authority *from, const struct report_authority *to);
/* Describes, in a sentence for people, when the lost cluster was last read and what had not been
 * copied then. The caller frees. */
char *report_last_seen(const struct report_authority *to, int64_t now_s);
/* last: retire although no other cluster is known to have the keys (--last). */
struct report_next report_retire_next(const struct report_authority *at, bool last);

/* Counts the Machines that the target has and the source lacks: following would revoke their
 * keys. *first is the name of one of them, borrowed from to. */
size_t report_strangers(
	const struct report_world *from, const struct report_world *to, const char **first);

/* Counts the Machines younger than 10 minutes without a bound AttestationKey: probably nodes in
 * their first boot. *first as above. */
size_t report_unbound(const struct report_world *w, const char **first);
/* Whether both clusters have one external Trustee: only one of them can administer it. */
bool report_shares_trustee(const struct report_authority *a, const struct report_authority *b);
/* Whether nodes installed with this cluster contact no server but that address. */
bool report_asks_only(struct json_object *cluster, const char *address);

/* Whether the gitVersion is that of tec-operator --standalone. */
bool report_is_standalone(const char *git);
/* The operator's version ("0.3.0") from the gitVersion of tec-operator --standalone, or else from
 * the tag of the operator's image; either may be NULL. NULL: neither tells it. The caller frees. */
char *report_operator_version(const char *git, const char *image);

/* Splits "KUBECONFIG[:NS]" at the first colon after the last slash. *ns is NULL without a
 * namespace; the caller frees both. ERR_INVALID: no file name, or not a namespace. */
int report_place(const char *text, char **file, char **ns, struct err *err) MUST_CHECK;

#endif
