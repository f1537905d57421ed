/* SPDX-License-Identifier: MIT */
/*
 * Pure decisions: the state of two clusters in, one step out. The order of the checks matters:
 * whatever would let two clusters decide at once is refused before anything else is considered.
 *
 * A promotion, by spec.authority of source and target; T is a ticket:
 *
 *   Self        Self              FOLLOW    the target becomes Following
 *   Self        Following         ANNOUNCE  after the preflight: T on the target
 *   Self        Following, T      FREEZE    the source becomes Frozen, with T
 *   Frozen, T   Following, T      TAKE      once both digests are equal, the target becomes Self
 *   Frozen, T   Self, T           SWAP      the source becomes Following
 *   Following   Self              DONE      once the source has copied everything
 *
 * and its end with --abort, at any time before TAKE:
 *
 *   Frozen, T   Following, T      FENCE     the target's ticket becomes "aborted-T"
 *   Frozen, T   Following, -T     UNFREEZE  the source becomes Self
 *
 * All writes carry the resourceVersion that was read: of two runs of tecctl, one meets a conflict.
 */
#include "config.h"

#include "tec/report/handover.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"

const struct report_step_words report_steps[REPORT_N_STEPS] = {
	[REPORT_STEP_FOLLOW] = {"follow", "the target follows the source",
		"make the target follow the source"},
	[REPORT_STEP_PREFLIGHT] = {"preflight", "nothing prevents the promotion",
		"check versions, deletions and the target's Trustee, and create the account for the way back"},
	[REPORT_STEP_FREEZE] = {"freeze", "the source is Frozen and nothing is in flight",
		"freeze the source: new nodes wait, installed nodes get their keys"},
	[REPORT_STEP_COPY] = {"copy", "both clusters have the same state",
		"wait until both clusters have the same state"},
	[REPORT_STEP_TAKE] = {"promote", "the target decides", "make the target decide"},
	[REPORT_STEP_SWAP] = {"swap", "the source follows the target",
		"make the source follow the target"},
};

#define SKEW_MAX_S   60  /* between the clocks of the two API servers */
#define FIRST_BOOT_S 600 /* a younger Machine without a key is probably still booting */
#define RUN_AGAIN                                                                                  \
	"fix this and run the command again; or run tecctl promote --abort with the same options to let the source decide again"
#define SEE_OPERATOR "check that the operator there runs, and its log: tecctl doctor"

/* ---- what a cluster shows */

/* spec.authority is Self by default; a value of a later version must not be guessed. An annotation
 * name has slashes and dots, so the ticket is not read by a path. */
void report_authority(struct json_object *cluster, struct report_authority *out)
{
	static const char *const words[] = {[MODEL_AUTHORITY_SELF] = "Self",
		[MODEL_AUTHORITY_FOLLOWING] = "Following",
		[MODEL_AUTHORITY_FROZEN] = "Frozen",
		[MODEL_AUTHORITY_RETIRED] = "Retired"};
	struct json_object *c = report_condition(cluster, "Authority"),
			   *synced = report_condition(cluster, "TrusteeSynced"),
			   *status = json_get_obj(cluster, "status/authority"), *ticket = NULL;
	const char *word = json_get_str(cluster, "spec/authority");

	*out = (struct report_authority){.name = report_name(cluster)};
	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(words[i], word ? word : "Self")) {
			out->is = (enum model_authority)i;
			out->known = true;
		}
	json_object_object_get_ex(
		json_get_obj(cluster, "metadata/annotations"), REPORT_TICKET, &ticket);
	out->ticket = json_object_is_type(ticket, json_type_string) ? json_object_get_string(ticket)
								    : NULL;
	out->uid = json_get_str(cluster, "metadata/uid");
	out->reason = json_get_str(c, "reason");
	out->message = json_get_str(c, "message");
	out->observed = c && json_get_int(c, "observedGeneration", -1) ==
				     json_get_int(cluster, "metadata/generation", 0);
	out->synced = report_is_true(cluster, "TrusteeSynced");
	if (str_eq(json_get_str(cluster, "spec/trustee/deploy"), "External"))
		out->trustee = json_get_str(cluster, "spec/publicTrusteeAddr");
	out->take_over = json_get_str(cluster, "spec/trustee/takeOver");
	if (str_eq(json_get_str(synced, "reason"), "Conflict"))
		out->conflict = json_get_str(synced, "message");
	out->digest = json_get_str(status, "digest");
	out->peer = json_get_str(status, "peer");
	out->peer_uid = json_get_str(status, "peerUID");
	out->seen = json_get_str(status, "seen");
	out->peer_epoch = json_get_int(status, "peerEpoch", 0);
	out->behind = json_get_int(status, "behind", 0);
	out->epoch = json_get_int(cluster, "spec/epoch", 0);
	out->machines = json_get_int(status, "machines", 0);
	out->keys = json_get_int(status, "attestationKeys", 0);
	out->images = json_get_int(status, "images", 0);
}

/* Compared by id, not by name: the id is what a node's disk key belongs to. */
size_t report_strangers(
	const struct report_world *from, const struct report_world *to, const char **first)
{
	const struct report_list *l = &to->list[REPORT_MACHINE];
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		const char *id = json_get_str(l->v[i], "spec/id");
		struct err unused = ERR_INIT;

		/* ERR_CONFLICT: two Machines there have the id, so it is no stranger. */
		if (id && (report_machine_find(from, id, &unused) || unused.kind == ERR_CONFLICT))
			continue;
		if (!n++)
			*first = report_name(l->v[i]);
	}
	return n;
}

/* By age, as nothing else tells a node in its first boot from one that never comes back. */
size_t report_unbound(const struct report_world *w, const char **first)
{
	const struct report_list *l = &w->list[REPORT_MACHINE];
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		int64_t age_s = report_age_of(w, l->v[i]);

		if (age_s < 0 || age_s > FIRST_BOOT_S || report_deleting(l->v[i]) ||
			report_is_true(l->v[i], "AttestationKeyBound"))
			continue;
		if (!n++)
			*first = report_name(l->v[i]);
	}
	return n;
}

/* By address, or by what one of the specs says: one Trustee may have several names. */
bool report_shares_trustee(const struct report_authority *a, const struct report_authority *b)
{
	return a->trustee && b->trustee &&
	       (str_eq(a->trustee, b->trustee) || (b->uid && str_eq(a->take_over, b->uid)) ||
		       (a->uid && str_eq(b->take_over, a->uid)));
}

/* An entry of spec.trusteeServers that repeats the address adds no other server. */
bool report_asks_only(struct json_object *cluster, const char *address)
{
	struct json_object *more = json_get_arr(cluster, "spec/trusteeServers");

	if (!str_eq(json_get_str(cluster, "spec/publicTrusteeAddr"), address))
		return false;
	for (size_t i = 0; i < json_len(more); i++)
		if (!str_eq(json_get_str(json_at(more, i), "address"), address))
			return false;
	return true;
}

/* The version behind the mark in the gitVersion of a standalone API
 * ("v1.33.0+tec-operator-0.3.0"); NULL: another API server. */
static const char *standalone_version(const char *git)
{
	static const char mark[] = "+tec-operator-";
	const char *at = git ? strstr(git, mark) : NULL;

	return at ? at + strlen(mark) : NULL;
}

bool report_is_standalone(const char *git)
{
	return standalone_version(git) != NULL;
}

/* An image tag is taken for a version only if it starts with a digit; a digest tells none. */
char *report_operator_version(const char *git, const char *image)
{
	const char *version = standalone_version(git), *colon = image ? strrchr(image, ':') : NULL;

	if (!version && colon && !strchr(image, '@') && colon[1] >= '0' && colon[1] <= '9' &&
		!strchr(colon, '/'))
		version = colon + 1;
	return version ? xstrdup(version) : NULL;
}

/* The first colon after the last slash, so that directory names may have colons. */
int report_place(const char *text, char **file, char **ns, struct err *err)
{
	const char *slash = strrchr(text, '/'), *colon = strchr(slash ? slash : text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);

	if (!len || (slash && slash + 1 == text + len))
		return err_set(
			err, ERR_INVALID, "%.100s does not name a kubeconfig file", log_esc(text));
	if (colon && !kobj_label_valid(colon + 1, strlen(colon + 1)))
		return err_set(err, ERR_INVALID,
			"%.100s: the text after the colon is not a valid namespace", log_esc(text));
	*file = xstrndup(text, len);
	*ns = colon ? xstrdup(colon + 1) : NULL;
	return 0;
}

/* ---- answers */

static struct report_next next(enum report_do act, enum report_step step, const char *then,
	const char *fmt, ...) PRINTF_LIKE(4, 5);

/* enum report_do An answer with a reason and, for people, the next step. */
static struct report_next next(
	enum report_do act, enum report_step step, const char *then, const char *fmt, ...)
{
	struct report_next n = {.act = act, .step = step, .next = then};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(n.why, sizeof(n.why), fmt, ap);
	va_end(ap);
	return n;
}

/* An answer without words: something to do, or nothing left. */
static struct report_next act(enum report_do what, enum report_step step)
{
	return (struct report_next){.act = what, .step = step};
}

/* Whether the operator reports this reason for the current spec; an older report proves nothing. */
static bool is(const struct report_authority *a, const char *reason)
{
	return a->observed && str_eq(a->reason, reason);
}

static const char *said(const struct report_authority *a)
{
	return a->message ? a->message : a->reason ? a->reason : "";
}

/* Wait until the operator reports the reason. of is "source", "target" or "cluster", for the
 * message. */
static struct report_next wait_for(
	const struct report_authority *a, enum report_step step, const char *of, const char *reason)
{
	if (!a->observed)
		return next(REPORT_DO_WAIT, step, SEE_OPERATOR,
			"the operator of the %s has not observed the current generation", of);
	return next(REPORT_DO_WAIT, step, SEE_OPERATOR, "the %s is not %s yet: %s", of, reason,
		said(a));
}

/* ---- following */

/* Reasons of a follower that do not resolve by waiting. */
static const struct {
	const char *reason, *next;
} hindrances[] = {
	{"Conflict",
		"if no node needs the objects of the target that it names, delete them; otherwise follow in the other direction"},
	{"SourceDiffers",
		"give the kubeconfig of the cluster that was followed before, or reinstall the target"},
	{"SourceWentBack",
		"if the source was restored from a backup, restore a newer one, or accept the older state with tecctl follow --accept-source"},
};

/* Check how far the follower has got. DONE: it has copied everything up to now. leader and
 * follower are the roles now; the texts use the roles of the command, in which the follower is
 * the source after a promotion. */
static struct report_next judge_following(const struct report_authority *leader,
	const struct report_authority *follower, enum report_step step)
{
	bool back = step == REPORT_STEP_SWAP;
	const char *of = back ? "source" : "target", *whom = back ? "target" : "source";

	if (follower->peer_uid && !str_eq(follower->peer_uid, leader->uid))
		return next(REPORT_DO_REFUSE, step,
			"give the kubeconfig of the cluster that it follows",
			"the %s follows another cluster: %s", of,
			follower->peer ? follower->peer : follower->peer_uid);
	for (size_t i = 0; i < ARRAY_LEN(hindrances); i++)
		if (is(follower, hindrances[i].reason))
			return next(REPORT_DO_REFUSE, step, hindrances[i].next, "%s: %s",
				follower->reason, said(follower));
	if (is(follower, "SourceUnreachable"))
		return next(REPORT_DO_WAIT, step,
			"the operator must reach the server in the kubeconfig: check its address and firewalls",
			"the operator of the %s cannot reach the %s: %s", of, whom, said(follower));
	if (is(follower, "Following") && follower->peer_uid)
		return act(REPORT_DO_DONE, step);
	return wait_for(follower, step, of, "in step");
}

/* Refuse what no command can start with: one cluster named twice, a spec.authority of a later
 * version, a Retired cluster. *out is set only if the result is true. */
static bool refuse_any(const struct report_authority *from, const struct report_authority *to,
	enum report_step step, struct report_next *out)
{
	const struct report_authority *const both[] = {from, to};
	static const char *const of[] = {"source", "target"};

	if (from->uid && str_eq(from->uid, to->uid)) {
		*out = next(REPORT_DO_REFUSE, step, "give two different clusters",
			"source and target are the same cluster");
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		if (!both[i]->known)
			*out = next(REPORT_DO_REFUSE, step, "use tecctl of the cluster's version",
				"spec.authority of the %s has a value that this tecctl does not know",
				of[i]);
		else if (both[i]->is == MODEL_AUTHORITY_RETIRED)
			*out = next(REPORT_DO_REFUSE, step,
				"create a new TrustedExecutionCluster in its place",
				"the %s is Retired, which is permanent", of[i]);
		else
			continue;
		return true;
	}
	return false;
}

/* Refuse if the target took over from the source and both claim to decide: following now would
 * restore what was deleted since the takeover. */
static bool refuse_later(const struct report_authority *from, const struct report_authority *to,
	struct report_next *out)
{
	bool both = from->is == MODEL_AUTHORITY_SELF && to->is == MODEL_AUTHORITY_SELF;

	if (!both || to->epoch <= from->epoch || !from->uid || !str_eq(to->peer_uid, from->uid))
		return false;
	*out = next(REPORT_DO_REFUSE, REPORT_STEP_FOLLOW,
		"exchange --from and --to; or, to keep the source, first set spec.authority of the target to Frozen",
		"the target decides with a later epoch (%" PRId64 ") than the source (%" PRId64 ")",
		to->epoch, from->epoch);
	return true;
}

/* FOLLOW is also the answer for a target that follows already, until this run has written a
 * kubeconfig: the old one may have expired. */
struct report_next report_follow_next(
	const struct report_authority *from, const struct report_authority *to, bool given)
{
	struct report_next n;

	if (refuse_any(from, to, REPORT_STEP_FOLLOW, &n) || refuse_later(from, to, &n))
		return n;
	if (from->is == MODEL_AUTHORITY_FOLLOWING)
		return next(REPORT_DO_REFUSE, REPORT_STEP_FOLLOW, "follow the cluster that decides",
			"the source does not decide: it follows %s",
			from->peer ? from->peer : "another cluster");
	if (from->is == MODEL_AUTHORITY_FROZEN && to->is == MODEL_AUTHORITY_SELF)
		return next(REPORT_DO_REFUSE, REPORT_STEP_FOLLOW,
			to->epoch > from->epoch
				? "exchange --from and --to: the target decided later"
				: "finish or abort the promotion, or set spec.authority of the source to Self",
			"the source is Frozen and the target decides");
	if (to->is == MODEL_AUTHORITY_FOLLOWING) {
		n = judge_following(from, to, REPORT_STEP_FOLLOW);
		/* A new kubeconfig resolves none of the refusals. */
		if (given || n.act == REPORT_DO_REFUSE)
			return n;
	}
	return act(REPORT_DO_FOLLOW, REPORT_STEP_FOLLOW);
}

/* ---- promoting */

/* Whether the target has a ticket that was not aborted. */
static bool has_ticket(const struct report_authority *to)
{
	return to->ticket && *to->ticket && !str_starts(to->ticket, REPORT_TICKET_ABORTED);
}

/* Only a valid ticket on both sides counts; an aborted one never matches. */
static bool same_ticket(const struct report_authority *from, const struct report_authority *to)
{
	return has_ticket(to) && str_eq(from->ticket, to->ticket);
}

/* Check what must hold before the source is frozen. Freezing blocks new nodes, so it must not
 * start a wait that could have come first. DONE: all checks passed. */
static struct report_next preflight(const struct report_authority *from,
	const struct report_authority *to, const struct report_promotion *p)
{
	const enum report_step step = REPORT_STEP_PREFLIGHT;
	const char *a = p->from_version, *b = p->to_version;
	size_t minor = a ? strcspn(a, ".") : 0; /* length of "0.2" in "0.2.1" */
	bool one_trustee = report_shares_trustee(from, to);

	if (a && a[minor])
		minor += 1 + strcspn(a + minor + 1, ".");
	/* Operators exchange state only within one minor version. */
	if (a && b && (strncmp(a, b, minor) != 0 || (b[minor] && b[minor] != '.')))
		return next(REPORT_DO_REFUSE, step, "upgrade the older one first",
			"the operators have different versions: %s at the source, %s at the target",
			p->from_version, p->to_version);
	if (p->skew_s > SKEW_MAX_S || p->skew_s < -SKEW_MAX_S)
		return next(REPORT_DO_REFUSE, step, "set both clocks, for example with NTP",
			"the clocks of the API servers are %" PRId64 " s apart", p->skew_s);
	if (!is(from, "Self"))
		return wait_for(from, step, "source", "Self");
	if (p->deleting)
		return next(REPORT_DO_WAIT, step, "tecctl status at the source",
			"%zu Machines are being deleted at the source; revocation of their keys is not confirmed yet",
			p->deleting);
	/* The target sends nothing to a Trustee that the source administers. */
	if (one_trustee && !from->synced)
		return next(REPORT_DO_WAIT, step, "tecctl status at the source",
			"the Trustee of both clusters has not received everything yet");
	if (!one_trustee && !to->synced)
		return next(REPORT_DO_WAIT, step, "tecctl status at the target",
			"the target's Trustee has not received everything yet");
	return act(REPORT_DO_DONE, step);
}

/* Put a ticket on the target first; only then may the source be frozen. A run whose own ticket
 * was replaced meanwhile stops: another tecctl is at work. */
static struct report_next announce(
	const struct report_authority *to, const struct report_promotion *p, enum report_step step)
{
	if (p->ticket && !str_eq(p->ticket, to->ticket))
		return next(REPORT_DO_REFUSE, step, RUN_AGAIN,
			"the promotion was aborted, or started again, by another tecctl");
	return act(has_ticket(to) ? REPORT_DO_FREEZE : REPORT_DO_ANNOUNCE, step);
}

/* The source still decides: follow, preflight, ticket, freeze. */
static struct report_next promote_from_self(const struct report_authority *from,
	const struct report_authority *to, const struct report_promotion *p)
{
	struct report_next n;

	switch (to->is) {
	case MODEL_AUTHORITY_SELF:
		return act(REPORT_DO_FOLLOW, REPORT_STEP_FOLLOW);
	case MODEL_AUTHORITY_FOLLOWING:
		break;
	case MODEL_AUTHORITY_FROZEN:
	case MODEL_AUTHORITY_RETIRED:
		return next(REPORT_DO_REFUSE, REPORT_STEP_FOLLOW,
			"tecctl follow makes the target follow the source",
			"the target is Frozen and does not follow the source");
	}
	n = judge_following(from, to, REPORT_STEP_FOLLOW);
	if (n.act == REPORT_DO_DONE)
		n = preflight(from, to, p);
	if (n.act != REPORT_DO_DONE)
		return n;
	n = announce(to, p, REPORT_STEP_PREFLIGHT);
	if (n.act == REPORT_DO_FREEZE)
		n.step = REPORT_STEP_FREEZE;
	return n;
}

/* Let the target take over only when both operators report the same digest of their state; the
 * counts are for the message alone. */
static struct report_next compare(
	const struct report_authority *from, const struct report_authority *to)
{
	const enum report_step step = REPORT_STEP_COPY;

	if (!from->digest)
		return next(REPORT_DO_WAIT, step, RUN_AGAIN,
			"the source does not show a digest of its state yet");
	if (to->digest && str_eq(from->digest, to->digest))
		return act(REPORT_DO_TAKE, REPORT_STEP_TAKE);
	if (!to->digest)
		return next(REPORT_DO_WAIT, step, RUN_AGAIN, "the target is copying: %s", said(to));
	return next(REPORT_DO_WAIT, step, RUN_AGAIN,
		"the clusters differ (source, target): Machines %" PRId64 ", %" PRId64
		"; AttestationKeys %" PRId64 ", %" PRId64 "; ApprovedImages %" PRId64 ", %" PRId64
		"; digests %.12s, %.12s",
		from->machines, to->machines, from->keys, to->keys, from->images, to->images,
		from->digest, to->digest);
}

/* The ticket comes before the digests: equal state under different tickets belongs to two
 * promotions, and neither may end in a takeover. With the target at Self the takeover has
 * happened; only the same ticket on both shows that it was this promotion. */
static struct report_next promote_from_frozen(const struct report_authority *from,
	const struct report_authority *to, const struct report_promotion *p)
{
	struct report_next n;

	switch (to->is) {
	case MODEL_AUTHORITY_FOLLOWING:
		n = judge_following(from, to, REPORT_STEP_COPY);
		if (n.act == REPORT_DO_REFUSE)
			return n;
		if (!same_ticket(from, to) || (p->ticket && !str_eq(p->ticket, to->ticket)))
			return announce(to, p, REPORT_STEP_FREEZE);
		if (!is(from, "Frozen"))
			return wait_for(from, REPORT_STEP_FREEZE, "source", "Frozen");
		return n.act == REPORT_DO_DONE ? compare(from, to) : n;
	case MODEL_AUTHORITY_SELF:
		if (!same_ticket(from, to))
			return next(REPORT_DO_REFUSE, REPORT_STEP_SWAP,
				to->epoch > from->epoch
					? "make the source follow it: tecctl follow, with --from and --to exchanged"
					: "set spec.authority of the source to Self, or that of the target to Frozen, and choose which one decides",
				"the target decides, but did not take over from this source in this promotion");
		if (!is(to, "Self"))
			return wait_for(to, REPORT_STEP_TAKE, "target", "Self");
		return act(REPORT_DO_SWAP, REPORT_STEP_SWAP);
	case MODEL_AUTHORITY_FROZEN:
	case MODEL_AUTHORITY_RETIRED:
		break;
	}
	return next(REPORT_DO_REFUSE, REPORT_STEP_FREEZE,
		"set spec.authority to Self on the one that decided last",
		"both clusters are Frozen: no cluster decides");
}

/* Together the states of the source are the steps of enum report_step. */
struct report_next report_promote_next(const struct report_authority *from,
	const struct report_authority *to, const struct report_promotion *p)
{
	struct report_next n;

	if (refuse_any(from, to, REPORT_STEP_FOLLOW, &n) || refuse_later(from, to, &n))
		return n;
	switch (from->is) {
	case MODEL_AUTHORITY_SELF:
		return promote_from_self(from, to, p);
	case MODEL_AUTHORITY_FROZEN:
		return promote_from_frozen(from, to, p);
	case MODEL_AUTHORITY_FOLLOWING:
	case MODEL_AUTHORITY_RETIRED:
		break;
	}
	/* Either this promotion is complete, or it runs in the wrong direction. */
	if (to->is != MODEL_AUTHORITY_SELF)
		return next(REPORT_DO_REFUSE, REPORT_STEP_FOLLOW,
			to->is == MODEL_AUTHORITY_FROZEN
				? "finish or abort the promotion in the other direction"
				: "give the cluster that decides as --from",
			"the source does not decide: it follows %s",
			from->peer ? from->peer : "another cluster");
	n = judge_following(to, from, REPORT_STEP_SWAP);
	if (n.act == REPORT_DO_DONE)
		n.step = REPORT_N_STEPS;
	return n;
}

/* ---- aborting */

/* The target is fenced before the source is released: a target with a valid ticket could still
 * take over. A source at Self is not frozen yet; a ticket already on the target is fenced all the
 * same. */
struct report_next report_abort_next(
	const struct report_authority *from, const struct report_authority *to)
{
	const enum report_step step =
		from->is == MODEL_AUTHORITY_FROZEN ? REPORT_STEP_FREEZE : REPORT_STEP_FOLLOW;
	bool aborted = to->ticket && str_starts(to->ticket, REPORT_TICKET_ABORTED);
	struct report_next n;

	if (refuse_any(from, to, REPORT_STEP_FOLLOW, &n))
		return n;
	if (from->is == MODEL_AUTHORITY_FROZEN) {
		if (to->is == MODEL_AUTHORITY_SELF)
			return next(REPORT_DO_REFUSE, step,
				"run tecctl promote with the same options, without --abort, to finish it",
				"the target already decides");
		/* A source that a person froze, without a ticket, has no promotion to fence; any
		 * aborted ticket matches it. */
		if (from->ticket ? aborted && str_eq(to->ticket + strlen(REPORT_TICKET_ABORTED),
						      from->ticket)
				 : !has_ticket(to))
			return act(REPORT_DO_UNFREEZE, step);
		if (from->ticket && !same_ticket(from, to))
			return next(REPORT_DO_REFUSE, step,
				"give its target as --to; or run tecctl promote with the same options, then --abort",
				"the source was frozen to promote another target");
		return act(REPORT_DO_FENCE, step);
	}
	if (from->is == MODEL_AUTHORITY_FOLLOWING || to->is == MODEL_AUTHORITY_SELF)
		return next(REPORT_DO_REFUSE, step, "to go back, promote in the other direction",
			"there is no promotion to abort: %s",
			to->is == MODEL_AUTHORITY_SELF ? "the target decides"
						       : "the source does not decide");
	if (has_ticket(to))
		return act(REPORT_DO_FENCE, step);
	if (!is(from, "Self"))
		return wait_for(from, step, "source", "Self");
	return act(REPORT_DO_DONE, step);
}

/* ---- retiring */

/* Retiring revokes all keys of this cluster, so another cluster must be known to have them. */
struct report_next report_retire_next(const struct report_authority *at, bool last)
{
	bool followed = is(at, "Following") || is(at, "FollowingBehind");

	if (!at->known)
		return next(REPORT_DO_REFUSE, REPORT_STEP_FOLLOW,
			"use tecctl of the cluster's version",
			"spec.authority has a value that this tecctl does not know");
	if (at->is == MODEL_AUTHORITY_RETIRED) {
		if (is(at, "Retired"))
			return act(REPORT_DO_DONE, REPORT_STEP_FOLLOW);
		return wait_for(at, REPORT_STEP_FOLLOW, "cluster", "Retired");
	}
	if (last)
		return act(REPORT_DO_RETIRE, REPORT_STEP_FOLLOW);
	if (at->is != MODEL_AUTHORITY_FOLLOWING)
		return next(REPORT_DO_REFUSE, REPORT_STEP_FOLLOW,
			"hand over first with tecctl promote; --last gives up every key",
			"the cluster %s: no other cluster is known to have its keys",
			at->is == MODEL_AUTHORITY_SELF ? "decides" : "is Frozen");
	if (!followed)
		return next(REPORT_DO_REFUSE, REPORT_STEP_FOLLOW,
			"check that the cluster that it follows runs; --last gives up every key",
			"the cluster that decides is not known to be healthy: %s", said(at));
	return act(REPORT_DO_RETIRE, REPORT_STEP_FOLLOW);
}

/* ---- without the other cluster */

/* Above all epochs that this operator has ever seen, so that the other side must step down. */
int64_t report_next_epoch(const struct report_authority *from, const struct report_authority *to)
{
	int64_t epoch = to->epoch > to->peer_epoch ? to->epoch : to->peer_epoch;

	if (from && from->epoch > epoch)
		epoch = from->epoch;
	return epoch + 1;
}

/* Take over only if this operator itself has no contact with a cluster that decides. A source
 * that answers, or a peer that decides, must hand over by tecctl promote. */
struct report_next report_from_lost_next(const struct report_authority *to)
{
	static const char *const lost[] = {"SourceUnreachable", "SourceWentBack", "SourceDiffers"};
	const enum report_step step = REPORT_STEP_TAKE;

	if (!to->known)
		return next(REPORT_DO_REFUSE, step, "use tecctl of the cluster's version",
			"spec.authority of the target has a value that this tecctl does not know");
	switch (to->is) {
	case MODEL_AUTHORITY_FOLLOWING:
		/* The operator itself must report that it has lost the source. */
		for (size_t i = 0; i < ARRAY_LEN(lost); i++)
			if (is(to, lost[i]))
				return act(REPORT_DO_TAKE_ALONE, step);
		if (!to->observed)
			return wait_for(to, step, "target", "Following");
		return next(REPORT_DO_REFUSE, step, "hand over with tecctl promote",
			"the cluster that the target follows is not lost: %s", said(to));
	case MODEL_AUTHORITY_RETIRED:
		return next(REPORT_DO_REFUSE, step,
			"create a new TrustedExecutionCluster in its place",
			"the target is Retired, which is permanent");
	case MODEL_AUTHORITY_FROZEN:
		if (is(to, "Frozen"))
			return act(REPORT_DO_TAKE_ALONE, step);
		break;
	case MODEL_AUTHORITY_SELF:
		if (is(to, "Self"))
			return act(REPORT_DO_DONE, step);
		if (is(to, "PeerUnknown"))
			return act(REPORT_DO_TAKE_ALONE, step);
		break;
	}
	if (is(to, "PeerDecides"))
		return next(REPORT_DO_REFUSE, step,
			"make the target follow it with tecctl follow; then hand over with tecctl promote",
			"the other cluster is not lost: %s", said(to));
	return wait_for(to, step, "target", to->is == MODEL_AUTHORITY_SELF ? "Self" : "Frozen");
}

/* The peer's address comes from the API, so it is escaped. */
char *report_last_seen(const struct report_authority *to, int64_t now_s)
{
	struct strbuf out = STRBUF_INIT;
	char seen[CLOCK_RFC3339_LEN];
	int64_t us = 0;

	strbuf_addf(&out, "The other cluster%s%s was ", to->peer ? " at " : "",
		to->peer ? log_esc(to->peer) : "");
	if (to->seen && clock_parse(to->seen, &us) == 0) {
		clock_format(us / 1000000, seen);
		strbuf_addf(&out, "last read at %s", seen);
		if (now_s >= us / 1000000)
			strbuf_addf(&out, ", %" PRId64 " minutes ago", (now_s - us / 1000000) / 60);
	} else {
		strbuf_adds(&out, "never read here, or at an unknown time");
	}
	if (to->is == MODEL_AUTHORITY_FOLLOWING)
		strbuf_addf(&out, "; %" PRId64 " objects were not copied then", to->behind);
	strbuf_adds(&out, ". Its decisions since then are unknown here.");
	return strbuf_steal(&out);
}
