/* SPDX-License-Identifier: MIT */
/* Two clusters as they are now in, one step out. The order of the questions matters: what would make two
 * clusters decide at once is refused before anything else is looked at. */
#include "config.h"

#include "tec/show/handover.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"

const struct show_step_words show_steps[SHOW_N_STEPS] = {
	[SHOW_STEP_FOLLOW] = {"follow", "the target follows the source",
		"make the target follow the source"},
	[SHOW_STEP_PREFLIGHT] = {"preflight", "nothing hinders the promotion",
		"check versions, deletions and the target's Trustee, and make the account for the way back"},
	[SHOW_STEP_FREEZE] = {"freeze", "the source is Frozen and nothing is in flight",
		"freeze the source: new nodes wait, installed nodes get their keys"},
	[SHOW_STEP_COPY] = {"copy", "both clusters have the same state",
		"wait until both clusters have the same state"},
	[SHOW_STEP_TAKE] = {"promote", "the target decides", "make the target decide"},
	[SHOW_STEP_SWAP] = {"swap", "the source follows the target",
		"make the source follow the target"},
};

#define SKEW_MAX_S   60
#define FIRST_BOOT_S 600
#define RUN_AGAIN                                                                                  \
	"repair that and run the command again, or tecctl promote --abort with the same options: the source decides again"
#define SEE_OPERATOR "see that the operator there runs, and its log: tecctl doctor"

/* ---- what a cluster shows */

static bool authority_of(const char *word, enum model_authority *out)
{
	static const char *const words[] = {[MODEL_AUTHORITY_SELF] = "Self",
		[MODEL_AUTHORITY_FOLLOWING] = "Following",
		[MODEL_AUTHORITY_FROZEN] = "Frozen",
		[MODEL_AUTHORITY_RETIRED] = "Retired"};

	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(words[i], word ? word : "Self")) {
			*out = (enum model_authority)i;
			return true;
		}
	return false;
}

void show_authority(struct json_object *cluster, struct show_authority *out)
{
	struct json_object *c = show_condition(cluster, "Authority"),
			   *status = json_get_obj(cluster, "status/authority"), *ticket = NULL;

	*out = (struct show_authority){.name = show_name(cluster)};
	out->known = authority_of(json_get_str(cluster, "spec/authority"), &out->is);
	json_object_object_get_ex(
		json_get_obj(cluster, "metadata/annotations"), SHOW_TICKET, &ticket);
	out->ticket = json_object_is_type(ticket, json_type_string) ? json_object_get_string(ticket)
								    : NULL;
	out->uid = json_get_str(cluster, "metadata/uid");
	out->reason = json_get_str(c, "reason");
	out->message = json_get_str(c, "message");
	out->observed = c && json_get_int(c, "observedGeneration", -1) ==
				     json_get_int(cluster, "metadata/generation", 0);
	out->synced = show_is_true(cluster, "TrusteeSynced");
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

size_t show_strangers(
	const struct show_world *from, const struct show_world *to, const char **first)
{
	const struct show_list *l = &to->list[SHOW_MACHINE];
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		const char *id = json_get_str(l->v[i], "spec/id");
		struct err unused = ERR_INIT;

		/* More than one with that id is found as well. */
		if (id && (show_machine_find(from, id, &unused) || unused.kind == ERR_CONFLICT))
			continue;
		if (!n++)
			*first = show_name(l->v[i]);
	}
	return n;
}

size_t show_unbound(const struct show_world *w, const char **first)
{
	const struct show_list *l = &w->list[SHOW_MACHINE];
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		int64_t age_s = show_age_of(w, l->v[i]);

		if (age_s < 0 || age_s > FIRST_BOOT_S || show_deleting(l->v[i]) ||
			show_is_true(l->v[i], "AttestationKeyBound"))
			continue;
		if (!n++)
			*first = show_name(l->v[i]);
	}
	return n;
}

bool show_asks_only(struct json_object *cluster, const char *address)
{
	struct json_object *more = json_get_arr(cluster, "spec/trusteeServers");

	if (!str_eq(json_get_str(cluster, "spec/publicTrusteeAddr"), address))
		return false;
	for (size_t i = 0; i < json_len(more); i++)
		if (!str_eq(json_get_str(json_at(more, i), "address"), address))
			return false;
	return true;
}

/* What follows in the gitVersion of a standalone API; NULL: it is another server. */
static const char *standalone_version(const char *git)
{
	static const char mark[] = "+tec-operator-";
	const char *at = git ? strstr(git, mark) : NULL;

	return at ? at + strlen(mark) : NULL;
}

bool show_is_standalone(const char *git)
{
	return standalone_version(git) != NULL;
}

char *show_operator_version(const char *git, const char *image)
{
	const char *version = standalone_version(git), *colon = image ? strrchr(image, ':') : NULL;

	if (!version && colon && !strchr(image, '@') && colon[1] >= '0' && colon[1] <= '9' &&
		!strchr(colon, '/'))
		version = colon + 1;
	return version ? xstrdup(version) : NULL;
}

int show_place(const char *text, char **file, char **ns, struct err *err)
{
	const char *slash = strrchr(text, '/'), *colon = strchr(slash ? slash : text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);

	if (!len || (slash && slash + 1 == text + len))
		return err_set(
			err, ERR_INVALID, "%.100s does not name a kubeconfig file", log_esc(text));
	if (colon && !kobj_label_valid(colon + 1, strlen(colon + 1)))
		return err_set(err, ERR_INVALID,
			"%.100s: what comes after the colon is not a namespace", log_esc(text));
	*file = xstrndup(text, len);
	*ns = colon ? xstrdup(colon + 1) : NULL;
	return 0;
}

/* ---- answers */

static struct show_next next(enum show_do act, enum show_step step, const char *then,
	const char *fmt, ...) PRINTF_LIKE(4, 5);

static struct show_next next(
	enum show_do act, enum show_step step, const char *then, const char *fmt, ...)
{
	struct show_next n = {.act = act, .step = step, .next = then};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(n.why, sizeof(n.why), fmt, ap);
	va_end(ap);
	return n;
}

static struct show_next act(enum show_do what, enum show_step step)
{
	return (struct show_next){.act = what, .step = step};
}

static bool is(const struct show_authority *a, const char *reason)
{
	return a->observed && str_eq(a->reason, reason);
}

static const char *said(const struct show_authority *a)
{
	return a->message ? a->message : a->reason ? a->reason : "";
}

/* of: "source" or "target". */
static struct show_next wait_for(
	const struct show_authority *a, enum show_step step, const char *of, const char *reason)
{
	if (!a->observed)
		return next(SHOW_DO_WAIT, step, SEE_OPERATOR,
			"the operator of the %s has not observed the current generation", of);
	return next(
		SHOW_DO_WAIT, step, SEE_OPERATOR, "the %s is not %s yet: %s", of, reason, said(a));
}

/* ---- following */

/* What waiting does not repair. */
static const struct {
	const char *reason, *next;
} hindrances[] = {
	{"Conflict",
		"if no node needs the objects of the target that it names, delete those; else follow in the other direction"},
	{"SourceDiffers",
		"name the kubeconfig of the cluster that was followed before, or install the target again"},
	{"SourceWentBack",
		"if the source was restored from a backup, restore a newer one, or take the older state with tecctl follow --accept-source"},
};

/* DONE: the follower has copied everything up to now. By their roles in the command: after a promotion its
 * source is the follower. */
static struct show_next judge_following(const struct show_authority *leader,
	const struct show_authority *follower, enum show_step step)
{
	bool back = step == SHOW_STEP_SWAP;
	const char *of = back ? "source" : "target", *whom = back ? "target" : "source";

	if (follower->peer_uid && !str_eq(follower->peer_uid, leader->uid))
		return next(SHOW_DO_REFUSE, step,
			"name the kubeconfig of the cluster that it follows",
			"the %s follows another cluster: %s", of,
			follower->peer ? follower->peer : follower->peer_uid);
	for (size_t i = 0; i < ARRAY_LEN(hindrances); i++)
		if (is(follower, hindrances[i].reason))
			return next(SHOW_DO_REFUSE, step, hindrances[i].next, "%s: %s",
				follower->reason, said(follower));
	if (is(follower, "SourceUnreachable"))
		return next(SHOW_DO_WAIT, step,
			"the operator must reach the server that the kubeconfig names: see its address, and firewalls",
			"the operator of the %s does not reach the %s: %s", of, whom,
			said(follower));
	if (is(follower, "Following") && follower->peer_uid)
		return act(SHOW_DO_DONE, step);
	return wait_for(follower, step, of, "in step");
}

/* Neither direction of anything begins with these. */
static bool refuse_any(const struct show_authority *from, const struct show_authority *to,
	enum show_step step, struct show_next *out)
{
	const struct show_authority *const both[] = {from, to};
	static const char *const of[] = {"source", "target"};

	if (from->uid && str_eq(from->uid, to->uid)) {
		*out = next(SHOW_DO_REFUSE, step, "name two different clusters",
			"source and target are the same cluster");
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		if (!both[i]->known)
			*out = next(SHOW_DO_REFUSE, step, "use the tecctl of its version",
				"spec.authority of the %s has a value that this tecctl does not know",
				of[i]);
		else if (both[i]->is == MODEL_AUTHORITY_RETIRED)
			*out = next(SHOW_DO_REFUSE, step,
				"make a new TrustedExecutionCluster in its place",
				"the %s is Retired, which is permanent", of[i]);
		else
			continue;
		return true;
	}
	return false;
}

/* The target took over from the source and both say that they decide: following would bring back what
 * was deleted since. */
static bool refuse_later(
	const struct show_authority *from, const struct show_authority *to, struct show_next *out)
{
	bool both = from->is == MODEL_AUTHORITY_SELF && to->is == MODEL_AUTHORITY_SELF;

	if (!both || to->epoch <= from->epoch || !from->uid || !str_eq(to->peer_uid, from->uid))
		return false;
	*out = next(SHOW_DO_REFUSE, SHOW_STEP_FOLLOW,
		"exchange --from and --to; or, if the source is to go on, first set spec.authority of the target to Frozen",
		"the target decides with a later epoch (%" PRId64 ") than the source (%" PRId64 ")",
		to->epoch, from->epoch);
	return true;
}

struct show_next show_follow_next(
	const struct show_authority *from, const struct show_authority *to, bool given)
{
	struct show_next n;

	if (refuse_any(from, to, SHOW_STEP_FOLLOW, &n) || refuse_later(from, to, &n))
		return n;
	if (from->is == MODEL_AUTHORITY_FOLLOWING)
		return next(SHOW_DO_REFUSE, SHOW_STEP_FOLLOW, "follow the cluster that decides",
			"the source does not decide, it follows %s",
			from->peer ? from->peer : "another cluster");
	if (from->is == MODEL_AUTHORITY_FROZEN && to->is == MODEL_AUTHORITY_SELF)
		return next(SHOW_DO_REFUSE, SHOW_STEP_FOLLOW,
			to->epoch > from->epoch
				? "exchange --from and --to: the target decided later"
				: "finish or abort the promotion, or set spec.authority of the source to Self",
			"the source is Frozen and the target decides");
	if (to->is == MODEL_AUTHORITY_FOLLOWING) {
		n = judge_following(from, to, SHOW_STEP_FOLLOW);
		/* Another kubeconfig repairs nothing of what is refused. */
		if (given || n.act == SHOW_DO_REFUSE)
			return n;
	}
	return act(SHOW_DO_FOLLOW, SHOW_STEP_FOLLOW);
}

/* ---- promoting */

static bool has_ticket(const struct show_authority *to)
{
	return to->ticket && *to->ticket && !str_starts(to->ticket, SHOW_TICKET_ABORTED);
}

static bool same_ticket(const struct show_authority *from, const struct show_authority *to)
{
	return has_ticket(to) && str_eq(from->ticket, to->ticket);
}

/* "0.2" of "0.2.1" is what has to be equal. */
static bool same_minor(const char *a, const char *b)
{
	size_t n = strcspn(a, ".");

	if (a[n])
		n += 1 + strcspn(a + n + 1, ".");
	return strncmp(a, b, n) == 0 && (!b[n] || b[n] == '.');
}

/* What has to hold before the source is frozen; DONE: it does. */
static struct show_next preflight(const struct show_authority *from,
	const struct show_authority *to, const struct show_promotion *p)
{
	const enum show_step step = SHOW_STEP_PREFLIGHT;

	if (p->from_version && p->to_version && !same_minor(p->from_version, p->to_version))
		return next(SHOW_DO_REFUSE, step, "upgrade the older one first",
			"the operators are of different versions: %s at the source, %s at the target",
			p->from_version, p->to_version);
	if (p->skew_s > SKEW_MAX_S || p->skew_s < -SKEW_MAX_S)
		return next(SHOW_DO_REFUSE, step, "set both clocks, for example with NTP",
			"the clocks of the API servers are %" PRId64 " s apart", p->skew_s);
	if (!is(from, "Self"))
		return wait_for(from, step, "source", "Self");
	if (p->deleting)
		return next(SHOW_DO_WAIT, step, "tecctl status at the source",
			"%zu Machines are being deleted at the source, and not all of their keys are known to be revoked",
			p->deleting);
	if (!to->synced)
		return next(SHOW_DO_WAIT, step, "tecctl status at the target",
			"the target's Trustee does not have everything yet");
	return act(SHOW_DO_DONE, step);
}

/* The ticket of the target, without which nothing else is done. */
static struct show_next announce(
	const struct show_authority *to, const struct show_promotion *p, enum show_step step)
{
	if (p->ticket && !str_eq(p->ticket, to->ticket))
		return next(SHOW_DO_REFUSE, step, RUN_AGAIN,
			"the promotion was aborted, or started again, by another tecctl");
	return act(has_ticket(to) ? SHOW_DO_FREEZE : SHOW_DO_ANNOUNCE, step);
}

static struct show_next promote_from_self(const struct show_authority *from,
	const struct show_authority *to, const struct show_promotion *p)
{
	struct show_next n;

	switch (to->is) {
	case MODEL_AUTHORITY_SELF:
		return act(SHOW_DO_FOLLOW, SHOW_STEP_FOLLOW);
	case MODEL_AUTHORITY_FOLLOWING:
		break;
	case MODEL_AUTHORITY_FROZEN:
	case MODEL_AUTHORITY_RETIRED:
		return next(SHOW_DO_REFUSE, SHOW_STEP_FOLLOW,
			"tecctl follow makes the target follow the source",
			"the target is Frozen: it does not follow the source");
	}
	n = judge_following(from, to, SHOW_STEP_FOLLOW);
	if (n.act == SHOW_DO_DONE)
		n = preflight(from, to, p);
	if (n.act != SHOW_DO_DONE)
		return n;
	n = announce(to, p, SHOW_STEP_PREFLIGHT);
	if (n.act == SHOW_DO_FREEZE)
		n.step = SHOW_STEP_FREEZE;
	return n;
}

static struct show_next compare(const struct show_authority *from, const struct show_authority *to)
{
	const enum show_step step = SHOW_STEP_COPY;

	if (!from->digest)
		return next(SHOW_DO_WAIT, step, RUN_AGAIN,
			"the source does not show a digest of its state yet");
	if (to->digest && str_eq(from->digest, to->digest))
		return act(SHOW_DO_TAKE, SHOW_STEP_TAKE);
	if (!to->digest)
		return next(SHOW_DO_WAIT, step, RUN_AGAIN, "the target is copying: %s", said(to));
	return next(SHOW_DO_WAIT, step, RUN_AGAIN,
		"the clusters differ (source, target): Machines %" PRId64 ", %" PRId64
		"; AttestationKeys %" PRId64 ", %" PRId64 "; ApprovedImages %" PRId64 ", %" PRId64
		"; digests %.12s, %.12s",
		from->machines, to->machines, from->keys, to->keys, from->images, to->images,
		from->digest, to->digest);
}

/* The source is Frozen and the target follows it. */
static struct show_next promote_frozen(const struct show_authority *from,
	const struct show_authority *to, const struct show_promotion *p)
{
	struct show_next n = judge_following(from, to, SHOW_STEP_COPY);

	if (n.act == SHOW_DO_REFUSE)
		return n;
	if (!same_ticket(from, to) || (p->ticket && !str_eq(p->ticket, to->ticket)))
		return announce(to, p, SHOW_STEP_FREEZE);
	if (!is(from, "Frozen"))
		return wait_for(from, SHOW_STEP_FREEZE, "source", "Frozen");
	return n.act == SHOW_DO_DONE ? compare(from, to) : n;
}

static struct show_next promote_from_frozen(const struct show_authority *from,
	const struct show_authority *to, const struct show_promotion *p)
{
	switch (to->is) {
	case MODEL_AUTHORITY_FOLLOWING:
		return promote_frozen(from, to, p);
	case MODEL_AUTHORITY_SELF:
		if (!same_ticket(from, to))
			return next(SHOW_DO_REFUSE, SHOW_STEP_SWAP,
				to->epoch > from->epoch
					? "make the source follow it: tecctl follow, with --from and --to exchanged"
					: "set spec.authority of the source to Self, or of the target to Frozen and see which one is to decide",
				"the target decides, but did not take over from this source in this promotion");
		if (!is(to, "Self"))
			return wait_for(to, SHOW_STEP_TAKE, "target", "Self");
		return act(SHOW_DO_SWAP, SHOW_STEP_SWAP);
	case MODEL_AUTHORITY_FROZEN:
	case MODEL_AUTHORITY_RETIRED:
		break;
	}
	return next(SHOW_DO_REFUSE, SHOW_STEP_FREEZE,
		"set spec.authority of the one that decided last to Self",
		"both clusters are Frozen: no cluster decides");
}

static struct show_next promote_from_following(
	const struct show_authority *from, const struct show_authority *to)
{
	struct show_next n;

	if (to->is != MODEL_AUTHORITY_SELF)
		return next(SHOW_DO_REFUSE, SHOW_STEP_FOLLOW,
			to->is == MODEL_AUTHORITY_FROZEN
				? "finish or abort the promotion in the other direction"
				: "name the cluster that decides as --from",
			"the source does not decide, it follows %s",
			from->peer ? from->peer : "another cluster");
	n = judge_following(to, from, SHOW_STEP_SWAP);
	if (n.act == SHOW_DO_DONE)
		n.step = SHOW_N_STEPS;
	return n;
}

struct show_next show_promote_next(const struct show_authority *from,
	const struct show_authority *to, const struct show_promotion *p)
{
	struct show_next n;

	if (refuse_any(from, to, SHOW_STEP_FOLLOW, &n) || refuse_later(from, to, &n))
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
	return promote_from_following(from, to);
}

/* ---- aborting */

/* The ticket of a target that was fenced for the promotion that froze the source. */
static bool is_fenced(const struct show_authority *from, const struct show_authority *to)
{
	return to->ticket && str_starts(to->ticket, SHOW_TICKET_ABORTED) &&
	       (!from->ticket || str_eq(to->ticket + strlen(SHOW_TICKET_ABORTED), from->ticket));
}

static struct show_next abort_frozen(
	const struct show_authority *from, const struct show_authority *to)
{
	const enum show_step step = SHOW_STEP_FREEZE;

	if (to->is == MODEL_AUTHORITY_SELF)
		return next(SHOW_DO_REFUSE, step,
			"run tecctl promote with the same options, without --abort, to finish it",
			"the target decides already");
	/* Of a source that a person froze there is no promotion to fence. */
	if (is_fenced(from, to) || (!from->ticket && !has_ticket(to)))
		return act(SHOW_DO_UNFREEZE, step);
	if (from->ticket && !same_ticket(from, to))
		return next(SHOW_DO_REFUSE, step,
			"name its target as --to; or run tecctl promote with the same options, then --abort",
			"the source was frozen to promote another target");
	return act(SHOW_DO_FENCE, step);
}

struct show_next show_abort_next(const struct show_authority *from, const struct show_authority *to)
{
	struct show_next n;

	if (refuse_any(from, to, SHOW_STEP_FOLLOW, &n))
		return n;
	if (from->is == MODEL_AUTHORITY_FROZEN)
		return abort_frozen(from, to);
	if (from->is == MODEL_AUTHORITY_FOLLOWING || to->is == MODEL_AUTHORITY_SELF)
		return next(SHOW_DO_REFUSE, SHOW_STEP_FOLLOW,
			"to go back, promote in the other direction",
			"there is no promotion to abort: %s",
			to->is == MODEL_AUTHORITY_SELF ? "the target decides"
						       : "the source does not decide");
	if (has_ticket(to))
		return act(SHOW_DO_FENCE, SHOW_STEP_FOLLOW);
	if (!is(from, "Self"))
		return wait_for(from, SHOW_STEP_FOLLOW, "source", "Self");
	return act(SHOW_DO_DONE, SHOW_STEP_FOLLOW);
}

/* ---- retiring */

struct show_next show_retire_next(const struct show_authority *at, bool last)
{
	bool followed = is(at, "Following") || is(at, "FollowingBehind");

	if (!at->known)
		return next(SHOW_DO_REFUSE, SHOW_STEP_FOLLOW, "use the tecctl of its version",
			"spec.authority has a value that this tecctl does not know");
	if (at->is == MODEL_AUTHORITY_RETIRED) {
		if (is(at, "Retired"))
			return act(SHOW_DO_DONE, SHOW_STEP_FOLLOW);
		return wait_for(at, SHOW_STEP_FOLLOW, "cluster", "Retired");
	}
	if (last)
		return act(SHOW_DO_RETIRE, SHOW_STEP_FOLLOW);
	if (at->is != MODEL_AUTHORITY_FOLLOWING)
		return next(SHOW_DO_REFUSE, SHOW_STEP_FOLLOW,
			"tecctl promote hands over first; --last gives up every key",
			"the cluster %s: no other cluster is known to have its keys",
			at->is == MODEL_AUTHORITY_SELF ? "decides" : "is Frozen");
	if (!followed)
		return next(SHOW_DO_REFUSE, SHOW_STEP_FOLLOW,
			"see that the cluster that it follows runs; --last gives up every key",
			"the cluster that decides is not known to be well: %s", said(at));
	return act(SHOW_DO_RETIRE, SHOW_STEP_FOLLOW);
}

/* ---- without the other cluster */

int64_t show_next_epoch(const struct show_authority *from, const struct show_authority *to)
{
	int64_t epoch = to->epoch > to->peer_epoch ? to->epoch : to->peer_epoch;

	if (from && from->epoch > epoch)
		epoch = from->epoch;
	return epoch + 1;
}

static struct show_next from_lost_following(const struct show_authority *to)
{
	static const char *const lost[] = {"SourceUnreachable", "SourceWentBack", "SourceDiffers"};

	for (size_t i = 0; i < ARRAY_LEN(lost); i++)
		if (is(to, lost[i]))
			return act(SHOW_DO_TAKE_ALONE, SHOW_STEP_TAKE);
	if (!to->observed)
		return wait_for(to, SHOW_STEP_TAKE, "target", "Following");
	return next(SHOW_DO_REFUSE, SHOW_STEP_TAKE, "tecctl promote hands over between two",
		"the cluster that the target follows is not lost: %s", said(to));
}

struct show_next show_from_lost_next(const struct show_authority *to)
{
	const enum show_step step = SHOW_STEP_TAKE;

	if (!to->known)
		return next(SHOW_DO_REFUSE, step, "use the tecctl of its version",
			"spec.authority of the target has a value that this tecctl does not know");
	switch (to->is) {
	case MODEL_AUTHORITY_FOLLOWING:
		return from_lost_following(to);
	case MODEL_AUTHORITY_RETIRED:
		return next(SHOW_DO_REFUSE, step, "make a new TrustedExecutionCluster in its place",
			"the target is Retired, which is permanent");
	case MODEL_AUTHORITY_FROZEN:
		if (is(to, "Frozen"))
			return act(SHOW_DO_TAKE_ALONE, step);
		break;
	case MODEL_AUTHORITY_SELF:
		if (is(to, "Self"))
			return act(SHOW_DO_DONE, step);
		if (is(to, "PeerUnknown"))
			return act(SHOW_DO_TAKE_ALONE, step);
		break;
	}
	if (is(to, "PeerDecides"))
		return next(SHOW_DO_REFUSE, step,
			"tecctl follow makes the target follow it; then tecctl promote hands over",
			"the other cluster is not lost: %s", said(to));
	return wait_for(to, step, "target", to->is == MODEL_AUTHORITY_SELF ? "Self" : "Frozen");
}

char *show_last_seen(const struct show_authority *to, int64_t now_s)
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
		strbuf_adds(&out, "never read here, or it is not known when");
	}
	if (to->is == MODEL_AUTHORITY_FOLLOWING)
		strbuf_addf(&out, "; then %" PRId64 " objects were not copied yet", to->behind);
	strbuf_adds(&out, ". What it decided since then is not known here.");
	return strbuf_steal(&out);
}
