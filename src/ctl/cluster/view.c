/* SPDX-License-Identifier: MIT */
/*
 * TrustedExecutionCluster: refresh, look, decide (pure), conditions. Counts in the status are
 * written at most every ten seconds (those of registrations every minute), and not within ten
 * seconds of a start, while they are still growing.
 */
#include "config.h"

#include "cluster_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/ctl/trustee.h"
#include "tec/model/lost.h"
#include "tec/caches/record.h"

#define COUNTS_MS   10000 /* between two writes of counts */
#define REGISTER_MS 60000 /* of registrations: many nodes register at once */
#define SEEN_S      600 /* of the time at which the peer was last seen, while nothing else changes */
#define QUIET_MS    2000 /* counts that did not change for so long are written before that */

/* The mirror of spec comes first: it is what proves later that the API server dropped a field
 * (`lost`). While a field is lost nothing is changed but the status. */
enum ctl_cluster_do ctl_cluster_decide(const struct ctl_cluster_view *v)
{
	if (!v->found)
		return CTL_CLUSTER_NOTHING;
	if (!v->deleting && v->served && !v->lost) {
		if (!v->mirrored)
			return CTL_CLUSTER_MIRROR;
		if (v->todo)
			return (enum ctl_cluster_do)v->todo;
	}
	return v->status_ok ? CTL_CLUSTER_NOTHING : CTL_CLUSTER_APPLY_STATUS;
}

/* ---- refresh */

/* Called when another cluster object is served: what is known concerns the Secrets of the former
 * one. */
void cluster_view_forget(struct ctl_cluster *c)
{
	cluster_inputs_reset(c);
	memset(c->told_tls, 0, sizeof(c->told_tls));
	ctl_own_reset(&c->auth);
	for (int i = 0; i < CLUSTER_N_REGKEYS; i++)
		ctl_own_reset(&c->regkey[i]);
}

/* Bring the memory of the controller up to date before the look. Everything that a step may
 * change in memory happens here, so that look and decide stay free of side effects. */
void cluster_view_refresh(struct ctl_cluster *c, const struct model_cluster *served)
{
	if (ctl_install_follow(&c->install, &served->obj))
		cluster_view_forget(c);
	if (cluster_renders_trustee(c, served))
		cluster_inputs_refresh(c, served);
	cluster_regkey_refresh(c, served);
	cluster_tls_tell(c, served);
	cluster_authority_refresh(c, served);
}

/* ---- annotations that are no longer needed */

/* An announcement without its Secret may be removed, unless a create of the Secret is still
 * possible. */
bool cluster_view_needs(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name)
{
	bool managed = cluster_renders_trustee(c, cluster);

	if (caches_secret(c->env->caches, name))
		return true;
	if (str_eq(name, c->auth.name))
		return managed;
	if (cluster_regkey_is_name(name))
		return cluster_regkey_wanted(c, cluster, name);
	return managed && cluster_inputs_want_signer(c, name);
}

bool cluster_view_adopts_later(const struct model_cluster *cluster)
{
	return cluster->adopt_before_s != INT64_MIN && cluster->adopt_before_s > clock_wall_s();
}

/* A server that spec names and that is in sync holds nothing that was revoked: it is no longer lost. */
bool cluster_view_found(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *address)
{
	struct kbs_target_status t;

	for (unsigned i = 0; kbs_sync_target(c->env->caches->sync, i, &t); i++)
		if (str_eq(t.name, address))
			return t.state == KBS_TARGET_IN_SYNC &&
			       ctl_trustee_is_named(cluster, address);
	return false;
}

/* Tell whether a server that was declared lost is back. */
static bool any_found(const struct ctl_cluster *c, const struct model_cluster *cluster)
{
	cleanup_json struct json_object *list = NULL;

	if (!cluster->lost_servers)
		return false;
	list = model_lost_list(cluster->lost_servers);
	for (size_t i = 0; i < json_len(list); i++)
		if (cluster_view_found(c, cluster, json_get_str(json_at(list, i), "address")))
			return true;
	return false;
}

/* ---- objects */

/* Tell whether an act on Trustee's Deployment must wait. The Deployment must not mount a signer or
 * admin key of someone else, and a running one is deleted only when everything exists that the new
 * one needs. */
static bool is_held(const struct ctl_cluster *c, struct cluster_look *l, enum ctl_install_do d)
{
	bool safe = c->inputs.plan.n_use && ctl_own_state(&c->auth, &l->c->obj) == CTL_OWN_GOOD;
	const char *tls = l->c->trustee_secret;

	if (l->unreadable)
		return true;
	if (d == CTL_INSTALL_APPLY)
		return !safe;
	if (d != CTL_INSTALL_DELETE)
		return false;
	if (tls && !caches_secret(c->env->caches, tls))
		l->missing = tls;
	return !safe || l->conflict || l->missing;
}

/* Later objects overwrite `unreadable` and `waits`: any one of them is good enough for the
 * condition. */
static void look_object(const struct ctl_cluster *c, struct cluster_look *l, unsigned i)
{
	const struct ctl_install_object *t = &cluster_objects.objects[i];
	enum ctl_install_state state = ctl_install_state(&c->install, &l->c->obj, i);
	enum ctl_install_do d = ctl_install_decide(t->kind, state);

	if (state == CTL_INSTALL_UNREADABLE)
		l->unreadable = t->name;
	else if (state == CTL_INSTALL_DELETING)
		l->waits = t->name;
	else if (state == CTL_INSTALL_CONFLICT && !l->conflict)
		l->conflict = t->name;
	if (d == CTL_INSTALL_APPLY && (t->inputs & CLUSTER_IF_FILES) && c->volumes.uid &&
		!c->volumes.has_wanted)
		return;
	if (i != CLUSTER_TRUSTEE || !is_held(c, l, d))
		cluster_want(l, (enum ctl_cluster_do)d, i, 0);
}

/* Visit all objects in the order of installation; the first that needs an act wins. The inputs are
 * read first, and a signer is created if none exists. Further signers wait until everything else is
 * installed. */
static void look_all(const struct ctl_cluster *c, struct cluster_look *l)
{
	bool managed = cluster_renders_trustee(c, l->c);
	bool planned = managed && cluster_inputs_look(c, l);
	bool bare = planned && !c->inputs.plan.n_use;
	bool tidy = cluster_view_adopts_later(l->c) || any_found(c, l->c);

	if (bare)
		cluster_inputs_look_plan(c, l);
	for (unsigned i = 0; i < CLUSTER_N_OBJECTS; i++) {
		const struct ctl_install_object *t = &cluster_objects.objects[i];

		if ((t->inputs & CLUSTER_IF_MANAGED) && !managed)
			continue;
		if (c->env->standalone && t->gvk != &kobj_configmap)
			continue;
		if (i == CLUSTER_KBS_SERVICE) /* the admin key, before what needs it */
			cluster_own_look(c, l, &c->auth, CLUSTER_AUTH, 0, true);
		look_object(c, l, i);
	}
	cluster_regkey_look(c, l);
	if (planned && !bare)
		cluster_inputs_look_plan(c, l);
	for (unsigned i = 0; i < l->c->n_announced; i++)
		tidy = tidy || !cluster_view_needs(c, l->c, l->c->announced[i].secret);
	if (tidy)
		cluster_want(l, CTL_CLUSTER_TIDY, 0, 0);
}

/* ---- logs, Events, conditions */

/* Append warnings that matter although everything is installed. */
static void notes(const struct ctl_cluster *ctl, const struct model_cluster *c, struct strbuf *out)
{
	cleanup_strbuf struct strbuf unused = STRBUF_INIT;

	if (c->adopt_before_bad)
		strbuf_adds(out,
			" Annotation " MODEL_ADOPT_BEFORE_ANNOTATION
			" is not an RFC 3339 time such as 2026-01-31T12:00:00Z and is ignored.");
	if (c->deploy == MODEL_DEPLOY_MANAGED && ctl->inputs.tls_denied && c->trustee_secret)
		strbuf_addf(out,
			" Secret %s (trusteeSecret) may not be read; Trustee keeps its certificate.",
			c->trustee_secret);
	if (c->plaintext == MODEL_PLAINTEXT_ALLOW && c->public_trustee_addr && !c->trustee_secret)
		strbuf_adds(out,
			" Warning: trusteeSecret is not set, so nodes talk to Trustee in plain text.");
	if (c->deploy == MODEL_DEPLOY_MANAGED && c->guard == MODEL_GUARD_DISABLED)
		strbuf_adds(out,
			" Warning: spec.trustee.guard is Disabled. A node with an approved attestation key can forge its measured boot "
			"state and get its disk key, and every node can try to reach Trustee's admin API.");
	if (c->deploy == MODEL_DEPLOY_EXTERNAL && c->release == MODEL_RELEASE_ONCE_PER_BOOT &&
		!ctl->env->standalone)
		strbuf_adds(out,
			" Warning: spec.attestation.release is OncePerBoot, which needs a guard (tec-operator --guard) in front of this "
			"Trustee: without one, a node that has finished its boot can forge PCR 15 and get its disk key again.");
	model_cluster_unused_fields(c, &unused);
	if (unused.len)
		strbuf_addf(out, " These fields are set but have no effect in this version: %s.",
			strbuf_str(&unused));
}

/* Choose the reason once all objects are installed: a refused or missing TLS Secret still keeps the
 * condition from being True. */
static enum model_cluster_reason installed_reason(
	const struct ctl_cluster *c, const struct model_cluster *cluster, struct strbuf *text)
{
	cleanup_strbuf struct strbuf missing = STRBUF_INIT, refused = STRBUF_INIT,
				     unusable = STRBUF_INIT;
	enum model_cluster_reason r = CLUSTER_INSTALLATION_COMPLETED;

	cluster_tls_refused(c->env, cluster, &refused);
	cluster_tls_missing(c->env, cluster, &missing);
	cluster_tls_unusable(c->env, cluster, &unusable);
	if (refused.len) {
		r = CLUSTER_REFUSED;
		strbuf_addf(text,
			"All objects are created, but a Secret is refused.%s If the certificate belongs to your CA, list it in "
			"spec.tls.caSHA256; otherwise delete the Secret.",
			refused.data);
	} else if (unusable.len) {
		r = CLUSTER_REFUSED;
		strbuf_adds(text,
			"All objects are created, but nodes cannot connect until a Secret is corrected.");
	} else if (missing.len) {
		r = CLUSTER_INSTALLING;
		strbuf_adds(text, "All objects are created, but some cannot work yet.");
	} else if (cluster->release == MODEL_RELEASE_ONCE_PER_BOOT &&
		   cluster->deploy == MODEL_DEPLOY_MANAGED &&
		   cluster->guard == MODEL_GUARD_DISABLED) {
		r = CLUSTER_GUARD_MISSING;
		strbuf_adds(text,
			"All objects are created, but spec.attestation.release is OncePerBoot and spec.trustee.guard is Disabled: a node "
			"that has finished its boot can forge PCR 15 and get its disk key again. Set spec.trustee.guard to Enabled.");
	} else {
		strbuf_adds(text, "All objects are installed.");
	}
	strbuf_adds(text, strbuf_str(&unusable));
	strbuf_adds(text, strbuf_str(&missing));
	notes(c, cluster, text);
	return r;
}

/* Say what the installation waits for, if it does. */
static bool is_installing(const struct cluster_look *l, struct strbuf *text)
{
	if (l->missing)
		strbuf_addf(text,
			"Secret %s (trusteeSecret) does not exist. Until it does, the Trustee of another operator keeps running.",
			l->missing);
	else if (l->waits || l->v.todo)
		strbuf_addf(text, "%s%s", l->waits ? l->waits : "Objects",
			l->waits ? " is being deleted and will be created again when it is gone."
				 : " are being created or updated.");
	return text->len > 0;
}

/* The order is that of urgency: what a user must do comes before what the operator is still
 * doing. */
static void want_installed(const struct ctl_cluster *c, struct cluster_look *l)
{
	const struct ctl_act *act = ctl_act_find(&c->acts, l->c->obj.name);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	enum model_cluster_reason r = CLUSTER_CONFLICT;

	if (l->v.deleting) {
		r = CLUSTER_UNINSTALLING;
		strbuf_adds(&text, "The cluster is being deleted.");
	} else if (!l->v.served) {
		r = CLUSTER_NON_UNIQUE;
		strbuf_addf(&text,
			"TrustedExecutionCluster %s is older, and only the oldest one in a namespace is served. This one is served when "
			"that one is deleted.",
			l->served ? l->served->obj.name : "");
	} else if (l->v.lost) {
		strbuf_addf(&text,
			"spec no longer has %s, but annotation %s still has it: a CustomResourceDefinition without this field may "
			"have removed it. Nothing is changed until you set it again, or confirm the removal with: kubectl annotate "
			"trustedexecutioncluster %s %s-",
			l->c->extended_lost, MODEL_EXTENDED_ANNOTATION, l->c->obj.name,
			MODEL_EXTENDED_ANNOTATION);
	} else if (l->c->authority == MODEL_AUTHORITY_RETIRED) {
		r = CLUSTER_RETIRED;
		strbuf_adds(&text,
			"spec.authority is Retired: installed objects are neither repaired nor deleted.");
	} else if (c->env->standalone && l->c->deploy == MODEL_DEPLOY_MANAGED) {
		r = CLUSTER_REFUSED;
		strbuf_adds(&text,
			"spec.trustee.deploy must be External, because tec-operator --standalone runs no Deployments.");
	} else if (l->conflict_own) {
		strbuf_addf(&text,
			"Secret %s has content that this operator did not announce: another client created or replaced it. It is neither "
			"used nor changed. Delete it, and it is created again if it is needed: kubectl delete secret %s -n %s",
			l->conflict, l->conflict, c->env->ns);
	} else if (l->conflict) {
		strbuf_addf(&text,
			"%s exists and does not belong to this operator (another owner or other content). It is not changed. Delete it, and "
			"it is created again.",
			l->conflict);
	} else if (l->unreadable) {
		strbuf_addf(&text,
			"%s is larger than 2 MiB and cannot be read, so neither it nor what depends on it is changed. Make it smaller.",
			l->unreadable);
	} else if (act && act->refused) {
		r = CLUSTER_REFUSED;
		strbuf_adds(&text, act->refused);
	} else if (is_installing(l, &text)) {
		r = CLUSTER_INSTALLING;
	} else {
		r = installed_reason(c, l->c, &text);
	}
	CLUSTER_WANT(l, CLUSTER_INSTALLED, r == CLUSTER_INSTALLATION_COMPLETED, r, "%s",
		strbuf_str(&text));
}

/* In sync means that every Trustee is, and that nothing of this operator is left to send or
 * revoke. */
static void want_synced(const struct ctl_cluster *c, struct cluster_look *l)
{
	enum model_cluster_cond t = CLUSTER_TRUSTEE_SYNCED;
	size_t declared, confirmed, revoking;
	cleanup_strbuf struct strbuf why = STRBUF_INIT, dropped = STRBUF_INIT;
	int64_t dropped_s = caches_record_dropped_s(c->env->caches);
	enum kbs_target_state state;
	enum model_cluster_reason r;
	char at[CLOCK_RFC3339_LEN];
	bool synced;

	if (l->v.deleting || !l->v.served) {
		CLUSTER_WANT(l, t, false, CLUSTER_NOT_AVAILABLE, "This cluster is not served.");
		return;
	}
	if (!caches_trustee_is_administered(c->env->caches)) {
		bool follows = l->c->authority == MODEL_AUTHORITY_FOLLOWING;

		CLUSTER_WANT(l, t, false, follows ? CLUSTER_FOLLOWING : CLUSTER_RETIRED,
			follows ? "The cluster that this one follows administers Trustee at %s. Nothing is sent until this one is promoted."
				: "Another cluster administers Trustee at %s. Nothing is sent.",
			ctl_primary_target(l->c));
		return;
	}
	kbs_sync_counts(c->env->caches->sync, &declared, &confirmed, &revoking);
	state = kbs_sync_state(c->env->caches->sync);
	synced = state == KBS_TARGET_IN_SYNC && confirmed == declared && revoking == 0;
	r = synced                                                          ? CLUSTER_SYNCED
	    : state == KBS_TARGET_REFUSED                                   ? CLUSTER_REFUSED
	    : state == KBS_TARGET_CONFLICT                                  ? CLUSTER_CONFLICT
	    : state == KBS_TARGET_POPULATING || state == KBS_TARGET_IN_SYNC ? CLUSTER_POPULATING
									    : CLUSTER_NOT_AVAILABLE;
	/* The record of revocations overflowed within the time that it covers: an older backup of
	 * Trustee may hold keys that nobody would revoke again. */
	if (dropped_s >= caches_record_oldest_s(c->env->caches)) {
		clock_format(dropped_s, at);
		strbuf_addf(&dropped,
			" Some revocations up to %s are no longer recorded because there were too many: do not restore an older backup "
			"of Trustee.",
			at);
	}
	CLUSTER_WANT(l, t, synced, r,
		"%s%s%zu of %zu values are confirmed, %zu are still to be revoked.%s",
		synced ? "" : ctl_trustee_why(c->env->caches->sync, l->c, &why), synced ? "" : " ",
		confirmed, declared, revoking, strbuf_str(&dropped));
}

/* State who can read a disk key besides the node of its Machine. */
static void want_isolated(struct cluster_look *l)
{
	enum model_cluster_cond t = CLUSTER_KEYS_ISOLATED;
	const struct model_cluster *c = l->c;
	bool automatic = c->approval == MODEL_APPROVAL_AUTOMATIC;
	const char *per_machine =
		c->delivery == MODEL_DELIVERY_VOLUMES
			? "PerMachine, which needs spec.trustee.delivery AdminAPI, because delivery Volumes requires Shared"
			: "PerMachine";
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	if (l->v.deleting || !l->v.served || l->v.lost) {
		CLUSTER_WANT(l, t, false, CLUSTER_NOT_SERVED, "This cluster is not served.");
	} else if (c->isolation == MODEL_ISOLATION_PER_MACHINE) {
		CLUSTER_WANT(l, t, true, CLUSTER_PER_MACHINE,
			"A node can read the disk key of its own Machine only.");
	} else if (automatic && c->reg_mode == MODEL_REG_OPEN) {
		strbuf_addf(&text,
			"Warning: every client that can reach registration and Trustee and knows a Machine's UUID can get that Machine's "
			"disk key, and needs no TPM, because spec.trustee.keyIsolation is Shared, spec.registration.mode is Open and "
			"spec.registration.approval is Automatic. Set keyIsolation to %s, or approval to Manual, or mode to Manual; "
			"then delete the AttestationKeys that you do not know.",
			per_machine);
		CLUSTER_WANT(l, t, false, CLUSTER_SHARED_WITH_STRANGERS, "%s", strbuf_str(&text));
	} else {
		strbuf_addf(&text,
			"Every node with an approved AttestationKey can read the disk key of each Machine whose UUID it knows, because "
			"spec.trustee.keyIsolation is Shared.%s To prevent this, set keyIsolation to %s.",
			automatic
				? " The first key that a client registers for a Machine without a key is approved automatically."
				: "",
			per_machine);
		CLUSTER_WANT(l, t, false, CLUSTER_SHARED_AMONG_NODES, "%s", strbuf_str(&text));
	}
}

/* Tell whether the condition need not be written now: nothing differs, or only the message does
 * and it is too early. flips_too: a changed reason may wait as well, also while nothing changes. */
static bool may_wait(const struct ctl_cluster *c, struct cluster_look *l, enum model_cluster_cond t,
	bool flips_too, uint64_t ms)
{
	const struct kobj_cond *have = &l->c->cond[t];
	const struct kobj_cond_want *want = &l->want[t];
	int64_t generation = l->c->obj.generation;
	uint64_t now = clock_boot_ms(), due = c->status_ms + ms;
	bool flips = have->status != want->status || !str_eq(have->reason, want->reason);

	if (kobj_cond_same(have, want, 1, generation))
		return true;
	if (flips && !flips_too)
		return false;
	/* The lag of a follower changes all the time. */
	if (!flips && t != CLUSTER_AUTHORITY && due > c->counted_ms + QUIET_MS)
		due = c->counted_ms + QUIET_MS;
	if (have->status == KOBJ_COND_ABSENT || have->observed_generation != generation ||
		now >= due)
		return false;
	cluster_recheck(l, due - now);
	return true;
}

/* The time alone is worth no write at rest: when the peer goes away, the condition changes, and the
 * exact time is written with it. */
static bool seen_is_old(const struct ctl_cluster *c, const struct cluster_look *l)
{
	const char *seen = json_get_str(c->authority.status, "seen");
	int64_t us;

	return seen && clock_parse(seen, &us) == 0 && us / 1000000 - l->c->peer_seen_s >= SEEN_S;
}

/* Return true if the status need not be written now. If only a count differs, sets recheck_ms to
 * the time when it may be written. */
static bool status_ok(const struct ctl_cluster *c, struct cluster_look *l)
{
	const struct kobj_cond *synced = &l->c->cond[CLUSTER_TRUSTEE_SYNCED];
	enum model_cluster_cond open = CLUSTER_REGISTRATION_OPEN;
	bool flips = !str_eq(l->c->cond[open].reason, l->want[open].reason), ok;

	for (int i = 0; i < CLUSTER_N_CONDS; i++)
		if (i != CLUSTER_TRUSTEE_SYNCED && i != CLUSTER_REGISTRATION_OPEN &&
			i != CLUSTER_AUTHORITY &&
			!kobj_cond_same(&l->c->cond[i], &l->want[i], 1, l->c->obj.generation))
			return false;
	if (l->v.served &&
		(!str_eq(l->c->authority_facts, c->authority.facts) || seen_is_old(c, l)))
		return false;
	/* After a start, a True stays until Trustee has answered, which wakes the key. */
	ok = (caches_trustee_is_probing(c->env->caches) && synced->status == KOBJ_COND_TRUE &&
		     synced->observed_generation == l->c->obj.generation) ||
	     may_wait(c, l, CLUSTER_TRUSTEE_SYNCED, false, COUNTS_MS);
	ok = may_wait(c, l, CLUSTER_AUTHORITY, false, COUNTS_MS) && ok;
	if (l->v.served && !str_eq(l->c->authority_counts, c->authority.counts)) {
		uint64_t now = clock_boot_ms(), due = c->status_ms + COUNTS_MS;

		if (now >= due)
			return false;
		cluster_recheck(l, due - now);
	}
	/* Near a limit, each registration may flip the condition. */
	return may_wait(c, l, open, true, flips ? COUNTS_MS : REGISTER_MS) && ok;
}

/* Look at one cluster object. Another one than the served gets a status, too, and nothing else;
 * while some object cannot be read, nobody knows which one is the oldest, and none is looked at. */
void cluster_view_look(const struct ctl_cluster *c, const char *name, struct cluster_look *l)
{
	const struct kobj *o = k8s_cache_find(c->env->caches->clusters, name);
	bool addressed;

	memset(l, 0, sizeof(*l));
	if (!o || caches_cluster_unknown(c->env->caches))
		return;
	l->c = model_cluster(o);
	addressed = l->c->public_trustee_addr != NULL;
	l->served = caches_cluster(c->env->caches);
	l->v.found = true;
	l->v.deleting = o->deleting;
	l->v.served = l->served == l->c;
	l->v.lost = l->c->extended_lost != NULL;
	l->v.mirrored = str_eq(l->c->extended_spec, l->c->extended_mirror);
	if (l->v.served)
		look_all(c, l);
	want_installed(c, l);
	CLUSTER_WANT(l, CLUSTER_KNOWN_ADDRESS, addressed,
		addressed ? CLUSTER_ADDRESS_FOUND : CLUSTER_NO_ADDRESS_FOUND,
		"spec.publicTrusteeAddr is %s",
		addressed ? "set." : "not set, so no node can get a key yet.");
	want_synced(c, l);
	cluster_registration_want(c, l);
	want_isolated(l);
	cluster_authority_want(c, l);
	l->v.status_ok = status_ok(c, l);
}
