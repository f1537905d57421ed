/* SPDX-License-Identifier: MIT */
/*
 * Machine: the acts. Each is one request, or a change of memory only. The bytes of a new key stay
 * in the secret arena from before their announcement until their create is answered, and go from
 * there into the text of the request (an arena buffer, too). The Machine is written by merge
 * patches with the UID and the resourceVersion that decide saw: an apply would remove what another
 * operator wrote in the meantime.
 */
#include "config.h"

#include "machine_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/model/mark.h"

/* Called by kbs_sync when the value is sent; NULL while the Secret has no valid key. */
static struct secret *render_root(const struct kobj *declared)
{
	const struct secret *root = model_secret(declared)->root;

	return root ? secret_new_copy(secret_peek(root), secret_len(root)) : NULL;
}

static struct log_ctx log_of(const struct ctl_kind *k, const struct ctl_look *l)
{
	return (struct log_ctx){"Machine", k->env->ns, l->o->name, l->o->uid};
}

/* The Secret is the declared object, so kbs_sync follows its content without another call. */
static void declare(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct machine_look *l = (const struct machine_look *)look;
	struct log_ctx lc = log_of(k, look);

	if (kbs_sync_declare(k->state->sync, KBS_RESOURCE, l->path, &l->secret->obj, render_root))
		log_debug(&lc, "key declared", "resource=%s", log_esc(l->path));
}

/* Revoke the disk key only: the Machine stays, and gets the key back once an AttestationKey is
 * bound. */
static void recall(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct machine_look *l = (const struct machine_look *)look;
	struct log_ctx lc = log_of(k, look);

	kbs_sync_revoke(k->state->sync, KBS_RESOURCE, l->path);
	log_info(&lc, "key is being revoked", "reason=\"no key is bound\"");
}

/* Revoke the disk key and withdraw the identities of all keys that were ever approved for this
 * Machine. A duplicate leaves the path alone, because it is the other Machine's. */
static void revoke(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct machine_look *l = (const struct machine_look *)look;
	const struct state *s = k->state;
	struct log_ctx lc = log_of(k, look);
	char name[RATS_IDENTITY_NAME_LEN + 1];

	if (l->path[0] && l->owns_path)
		kbs_sync_revoke(s->sync, KBS_RESOURCE, l->path);
	/* The same keys as look_identities(). */
	for (const struct kobj *o = k8s_cache_first(s->aks, 2, l->m->obj.uid); o;
		o = k8s_cache_next(s->aks, 2, o)) {
		if (model_ak_was_approved(model_ak(o)) && model_ak_identity(model_ak(o), name))
			kbs_sync_withdraw(s->sync, KBS_REFVALUE, name, o->name);
	}
	log_info(&lc, "key and identity are being revoked", "reason=%s",
		l->v.deleting ? "deleted" : "retired");
}

enum ctl_recorded ctl_machine_recorded(const struct ctl_record *r,
	const struct ctl_machine_notes *n, const char *path, const struct model_machine *m)
{
	enum ctl_recorded of_path = CTL_RECORDED, of_id = CTL_RECORDED;

	if (n->path)
		of_path = ctl_record_state(r, MODEL_RECORD_RESOURCE, path, 0);
	if (n->id)
		of_id = ctl_record_state(r, MODEL_RECORD_ID, m->id, m->deleted_s);
	return of_path > of_id ? of_path : of_id;
}

void ctl_machine_record(struct ctl_kind *k, const struct ctl_machine_notes *n, const char *path,
	const struct model_machine *m)
{
	if (n->path)
		ctl_record_add(k->env->record, MODEL_RECORD_RESOURCE, path, clock_wall_s(),
			k->runner, m->obj.name);
	if (n->id)
		ctl_record_add(k->env->record, MODEL_RECORD_ID, m->id, m->deleted_s, k->runner,
			m->obj.name);
}

/* Backups of a Trustee may hold the key, and nodes may hold a valid ID: both outlive this
 * object. */
static void record(struct ctl_kind *k, const struct ctl_look *look)
{
	const struct machine_look *l = (const struct machine_look *)look;

	ctl_machine_record(k, &l->notes, l->path, l->m);
}

/* ---- how acts end */

/* Losing a key, or waiting for Trustee on deletion, needs attention; everything else is routine. */
void machine_act_tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o)
{
	/* Conditions tell what happens to every Machine; Events are for what an administrator has to
	 * know or do. */
	const struct kobj_cond_want *key = &a->want[MACHINE_KEY_READY],
				    *delivered = &a->want[MACHINE_DELIVERED];

	if ((a->event_mask & 1u << MACHINE_KEY_READY) && key->status != KOBJ_COND_TRUE &&
		!str_eq(key->reason, model_machine_reason(MACHINE_KEY_PENDING)))
		k8s_events_post(k->env->events, &kobj_machine, o, K8S_EVENT_WARNING, key->reason,
			"MakeKey", "%s", key->message);
	if ((a->event_mask & 1u << MACHINE_DELIVERED) &&
		str_eq(delivered->reason, model_machine_reason(MACHINE_REVOKING)))
		k8s_events_post(k->env->events, &kobj_machine, o, K8S_EVENT_NORMAL,
			"WaitingForTrustee", "Revoke", "%s", delivered->message);
}

/* Take the answer of a request for the Secret; the Machine itself was taken by ctl/kind. */
bool machine_act_ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r)
{
	if (a->doing != CTL_MACHINE_READ_SECRET && a->doing != CTL_MACHINE_CREATE_SECRET &&
		a->doing != CTL_MACHINE_RESTORE_SECRET)
		return false;
	if (!err_is_set(err)) {
		secret_free(steal_ptr(&a->made));
		if (!r->cached)
			ctl_take_answer(k->state->secrets, r->object, true);
	}
	return ctl_act_must_read(a, err, r, a->doing != CTL_MACHINE_READ_SECRET);
}

/* ---- how they start */

static struct op *read_secret(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *l, int d)
{
	return ctl_kind_get(k, a, &kobj_secret, ((const struct machine_look *)l)->m->id);
}

/* POST the announced key, or the delivered key that kbs_sync still has. A POST never overwrites:
 * of two operators only one creates the Secret. */
static struct op *make_secret(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct machine_look *l = (const struct machine_look *)look;
	bool restore = d == CTL_MACHINE_RESTORE_SECRET;
	cleanup_secret struct secret *root = NULL;
	cleanup_secret struct secret *text = NULL;
	struct op *op;

	if (restore)
		root = render_root(kbs_sync_object(k->state->sync, KBS_RESOURCE, l->path));
	text = model_luks_secret_text(
		l->m->id, l->m->obj.name, l->m->obj.uid, restore ? root : a->made);
	op = k8s_call_create_secret(k->env->api, &k->acts.ops, &kobj_secret, k->env->ns,
		steal_ptr(&text), ctl_kind_done, a);
	k8s_call_unless_cached(op, k->state->secrets);
	return op;
}

/* Announce the hash of a new key. After a failed patch the same key is announced again, so that
 * a patch which reached the API after all matches. */
static void announce(struct ctl_act *a, const struct machine_look *l, struct json_object *marks)
{
	cleanup_free char *hashes = NULL;
	uint8_t digest[SHA256_LEN];

	if (!a->made) {
		a->made = model_luks_root_new();
		secret_sha256(a->made, digest);
		bytes_to_hex(digest, SHA256_LEN, a->made_sha256);
	}
	hashes = model_mark_announce(l->m->announced, a->made_sha256);
	ctl_add_mark(marks, &l->m->obj, MODEL_KEY_SHA256_ANNOTATION, hashes);
}

/* Mark the key as delivered, and reduce the announcement to its hash: other announced keys were
 * never delivered, and must not be accepted later. */
static void mark_delivered(
	const struct machine_look *l, struct json_object *marks, const char *suffix)
{
	cleanup_free char *text = NULL;
	char now[CLOCK_RFC3339_LEN], hex[SHA256_HEX_LEN + 1];

	clock_format(clock_wall_s(), now);
	text = xasprintf("%s%s", l->m->delivered_at ? l->m->delivered_at : now, suffix);
	ctl_add_mark(marks, &l->m->obj, MODEL_DELIVERED_AT_ANNOTATION, text);
	if (l->v.key_ours || l->v.inherits)
		ctl_add_mark(marks, &l->m->obj, MODEL_KEY_SHA256_ANNOTATION,
			model_secret_key_sha256(l->secret, hex));
}

/* Add the annotations of one act. Return true if the patch adds the finalizer, too. */
static bool add_marks(struct ctl_act *a, const struct machine_look *l, enum ctl_machine_do d,
	struct json_object *marks)
{
	switch (d) {
	case CTL_MACHINE_ANNOUNCE:
		announce(a, l, marks);
		return true;
	case CTL_MACHINE_INHERIT:
		mark_delivered(l, marks, "");
		return true;
	case CTL_MACHINE_MARK_DELIVERED:
		mark_delivered(l, marks, "");
		return false;
	case CTL_MACHINE_NOTE_RECALL:
		mark_delivered(l, marks, MODEL_DELIVERED_REVOKED);
		return false;
	default:
		return d == CTL_MACHINE_ADD_FINALIZER;
	}
}

/* Several acts are one merge patch of metadata; lists (owners, finalizers) are sent whole. */
static struct op *patch(struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	const struct machine_look *l = (const struct machine_look *)look;
	struct json_object *meta, *marks = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(look->o, &meta);
	bool held = add_marks(a, l, (enum ctl_machine_do)d, marks);
	const struct model_cluster *cluster;

	if (json_object_object_length(marks) > 0)
		json_add(meta, "annotations", marks);
	else
		json_object_put(marks);
	if (d == CTL_MACHINE_ADOPT) {
		cluster = state_cluster(k->state);
		json_add(meta, "ownerReferences",
			json_push(json_arr(), kobj_owner_json(&kobj_cluster, cluster->obj.name,
						      cluster->obj.uid)));
	} else if (held || d == CTL_MACHINE_DROP_FINALIZER) {
		json_add(meta, "finalizers",
			kobj_finalizers(l->m->finalizers, held ? MODEL_MACHINE_FINALIZER : NULL));
	}
	return ctl_kind_patch(k, a, &kobj_machine, a->name, patch);
}

/* An apply with the UID: a later Machine of the same name must not inherit the time. */
struct json_object *ctl_machine_attested_json(const struct model_machine *m, int64_t now_s)
{
	struct json_object *meta, *marks = json_obj();
	struct json_object *o = ctl_apply_new(&kobj_machine, &m->obj, &meta);
	char now[CLOCK_RFC3339_LEN];

	clock_format(now_s, now);
	ctl_add_mark(marks, &m->obj, MODEL_LAST_ATTESTED_ANNOTATION, now);
	json_add(meta, "annotations", marks);
	return o;
}

const struct ctl_do machine_acts[CTL_MACHINE_N_DO] = {
	[CTL_MACHINE_CONFIRM] = {"read the Machine", .flags = CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN,
		.start = ctl_kind_start_confirm},
	[CTL_MACHINE_ADD_FINALIZER] = {"add the finalizer", .flags = CTL_DO_ANSWERS_SELF,
		.start = patch},
	[CTL_MACHINE_ADOPT] = {"set the cluster as owner", .flags = CTL_DO_ANSWERS_SELF,
		.start = patch},
	[CTL_MACHINE_READ_SECRET] = {"read the Secret",
		.flags = CTL_DO_GONE_IS_FINE | CTL_DO_FROZEN | CTL_DO_FOLLOWING,
		.start = read_secret},
	[CTL_MACHINE_ANNOUNCE] = {"announce the key", .flags = CTL_DO_ANSWERS_SELF, .start = patch},
	[CTL_MACHINE_CREATE_SECRET] = {"create the key", "key made", .start = make_secret},
	[CTL_MACHINE_RESTORE_SECRET] = {"restore the key",
		"key restored, its Secret had been deleted", CTL_DO_WARNS, .start = make_secret},
	[CTL_MACHINE_INHERIT] = {"take over the key", "key of another operator taken over",
		CTL_DO_ANSWERS_SELF, .start = patch},
	[CTL_MACHINE_MARK_DELIVERED] = {"mark the key as delivered",
		.flags = CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN, .start = patch},
	[CTL_MACHINE_DECLARE] = {"declare the key", .flags = CTL_DO_FROZEN | CTL_DO_FOLLOWING,
		.memory = declare},
	[CTL_MACHINE_RECALL] = {"revoke the key", .memory = recall},
	[CTL_MACHINE_NOTE_RECALL] = {"mark the key as revoked", "key revoked until a key is bound",
		CTL_DO_ANSWERS_SELF, .start = patch},
	[CTL_MACHINE_REVOKE] = {"revoke", .flags = CTL_DO_RETIRED, .memory = revoke},
	[CTL_MACHINE_RECORD] = {"record the deletion", .memory = record},
	[CTL_MACHINE_DROP_FINALIZER] = {"remove the finalizer",
		"Machine released, no Trustee holds its key",
		CTL_DO_ANSWERS_SELF | CTL_DO_GONE_IS_FINE | CTL_DO_RETIRED, .start = patch},
	[CTL_MACHINE_EXPIRE] = {"delete the unclaimed Machine",
		"Machine deleted, no key was approved for it in time", CTL_DO_GONE_IS_FINE,
		.start = ctl_kind_start_expire},
	[CTL_MACHINE_APPLY_STATUS] = {"write the status",
		.flags = CTL_DO_ANSWERS_SELF | CTL_DO_FROZEN | CTL_DO_RETIRED,
		.start = ctl_kind_start_status},
};
