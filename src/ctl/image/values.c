/* SPDX-License-Identifier: MIT */
/*
 * The combinations of all approved images: one key of the queue, which runs once however many
 * images changed. The operator may be killed anywhere, because the name of a boot set is recorded
 * before it is declared, and removed from the record only after Trustee confirmed that it is gone.
 * Revocation waits for no write. While valid values are being computed again (another client
 * changed them and a restart forgot them), nothing changes, unless an image has to be revoked.
 */
#include "config.h"

#include "image_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/ctl/record.h"
#include "tec/model/mark.h"

#define DAY_S        (24 * 60 * 60)
#define EXPIRES_DAYS 365 /* lifetime of the reference values in the file */
#define RENEW_DAYS   180 /* they are renewed when less is left */

/* Declaring comes before writing: revocation must not wait for the API. */
enum ctl_values_do ctl_values_decide(const struct ctl_values_view *v)
{
	if (v->dirty)
		return CTL_VALUES_COMPUTE;
	if (!v->declared)
		return CTL_VALUES_DECLARE;
	if (v->rv_found && !v->announced)
		return CTL_VALUES_ANNOUNCE;
	return v->rv_found && !v->file_ok ? CTL_VALUES_WRITE : CTL_VALUES_NOTHING;
}

/* ---- names */

/* Find a name or insert it: the array stays sorted. */
static struct known *known_get(struct values *v, const char *name)
{
	size_t lo = 0, hi = v->n_known;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int d = strcmp(v->known[mid].name, name);

		if (d == 0)
			return &v->known[mid];
		if (d < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (v->n_known == v->cap_known) {
		v->cap_known = v->cap_known ? 2 * v->cap_known : 16;
		v->known = xreallocarray(v->known, v->cap_known, sizeof(*v->known));
	}
	memmove(&v->known[lo + 1], &v->known[lo], (v->n_known - lo) * sizeof(*v->known));
	v->n_known++;
	v->known[lo] = (struct known){.name = xstrdup(name)};
	return &v->known[lo];
}

void image_values_fini(struct values *v)
{
	for (size_t i = 0; i < v->n_known; i++)
		free(v->known[i].name);
	free(v->known);
	free(v->rv_seen);
	free(v->file_rv);
	free(v->awaited);
	free(v->reported_rv);
	image_sets_free(v->computing);
	image_sets_free(v->computed);
	render_refvalues_fini(&v->want);
	memset(v, 0, sizeof(*v));
}

/* ---- look */

/* Read the names of boot sets that Trustee may hold. After a start they are the only trace of
 * sets that have to be revoked. The text comes from a ConfigMap that other clients can write,
 * hence the checks. */
static void take_record(struct values *v, const struct model_configmap *rv)
{
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *a = NULL;

	if (str_eq(v->rv_seen, rv->plain.obj.rv))
		return;
	free(v->rv_seen);
	v->rv_seen = xstrdup(rv->plain.obj.rv);
	for (size_t i = 0; i < v->n_known; i++)
		v->known[i].recorded = false;
	v->n_recorded = 0;
	if (!rv->names)
		return;
	a = json_parse(rv->names, strlen(rv->names), &json_limits_object, &ignored);
	if (!a || !json_object_is_type(a, json_type_array)) {
		v->n_recorded = SIZE_MAX; /* to be written again */
		return;
	}
	v->n_recorded = json_len(a);
	for (size_t i = 0; i < v->n_recorded; i++) {
		struct json_object *s = json_at(a, i);
		const char *name = json_object_get_string(s);

		if (!json_object_is_type(s, json_type_string) ||
			strlen(name) > RENDER_BOOT_NAME_MAX ||
			!str_starts(name, RENDER_BOOT_PREFIX))
			continue;
		known_get(v, name)->recorded = true;
	}
	v->declared = false; /* some may be declared now; others an earlier process left */
}

/* Tell whether a revocation is recorded, or needs no record, and add it otherwise. A Trustee
 * that is restored from a backup holds the boot set again; until it is recorded, the name is
 * kept. */
static bool is_recorded(struct ctl_image *c, const char *name)
{
	struct ctl_record *r = c->kind.env->record;
	enum ctl_recorded recorded;

	if (!str_starts(name, RENDER_BOOT_PREFIX) || !ctl_record_is_wanted(r) ||
		caches_trustee_observed(c->kind.caches, KBS_REFVALUE, name) == KBS_OBSERVED_NONE)
		return true;
	recorded = ctl_record_state(r, MODEL_RECORD_VALUE, name, 0);
	if (recorded == CTL_RECORD_MISSING)
		ctl_record_add(
			r, MODEL_RECORD_VALUE, name, clock_wall_s(), c->kind.runner, CTL_IMAGE_ALL);
	return recorded == CTL_RECORDED;
}

/* Drop revoked names that every Trustee confirmed and that are recorded. */
static void forget_gone(struct ctl_image *c)
{
	struct values *v = &c->values;
	size_t kept = 0;

	for (size_t i = 0; i < v->n_known; i++) {
		struct known *k = &v->known[i];

		if (k->wanted ||
			!caches_trustee_gone(
				caches_trustee_observed(c->kind.caches, KBS_REFVALUE, k->name)) ||
			!is_recorded(c, k->name)) {
			v->known[kept++] = *k;
			continue;
		}
		kbs_sync_forget(c->kind.caches->sync, KBS_REFVALUE, k->name);
		free(k->name);
	}
	v->n_known = kept;
}

/* Nothing is wanted: neither boot sets nor values in the arrays. */
static bool is_empty(const struct values *v)
{
	return v->want.n_boot == 0 && str_eq(v->want.array[MODEL_RV_PCR4], "[]") &&
	       str_eq(v->want.array[MODEL_RV_PCR14], "[]");
}

/* Compare the file with a rendering that has the same expiration. */
static bool file_same(struct values *v, const struct model_configmap *rv)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	char hex[SHA256_HEX_LEN + 1];

	if (str_eq(v->file_rv, rv->plain.obj.rv))
		return v->file_same;
	free(v->file_rv);
	v->file_rv = xstrdup(rv->plain.obj.rv);
	render_refvalues_file(&v->want, rv->expires_s, &text);
	bytes_sha256_hex(strbuf_str(&text), text.len, hex);
	v->file_same = str_eq(rv->file_sha256, hex);
	if (!v->file_same && is_empty(v)) {
		bytes_sha256_hex("[]", 2, hex); /* as installed */
		v->file_same = str_eq(rv->file_sha256, hex);
	}
	return v->file_same;
}

/* Render the content of trustee-rv-data: the names as a JSON array, sorted, so that equal sets have
 * equal text, and the file. The current expiration is kept unless it is near, so that the file does
 * not change without need. */
static void data_texts(struct values *v, const struct model_configmap *rv, struct strbuf *names,
	struct strbuf *file)
{
	int64_t now = clock_wall_s(), renew = now + RENEW_DAYS * DAY_S;

	strbuf_addc(names, '[');
	for (size_t i = 0; i < v->n_known; i++) {
		if (i)
			strbuf_addc(names, ',');
		json_quote(names, v->known[i].name, strlen(v->known[i].name));
	}
	strbuf_addc(names, ']');
	if (rv->expires_s <= renew && v->expires_s <= renew)
		v->expires_s = now + EXPIRES_DAYS * DAY_S;
	render_refvalues_file(&v->want, rv->expires_s > renew ? rv->expires_s : v->expires_s, file);
}

static void data_hash(
	struct values *v, const struct model_configmap *rv, char hex[SHA256_HEX_LEN + 1])
{
	cleanup_strbuf struct strbuf file = STRBUF_INIT, names = STRBUF_INIT;

	data_texts(v, rv, &names, &file);
	model_configmap_rv_sha256(strbuf_str(&names), strbuf_str(&file), hex);
}

/* Report content of trustee-rv-data that was not announced, so another client wrote it. Once for
 * each version. */
static void tell_changed(struct ctl_image *c, const struct model_configmap *rv)
{
	const struct model_cluster *cluster = caches_cluster(c->kind.caches);
	struct values *v = &c->values;

	if (!rv || !cluster || !cluster->values_sha256 ||
		str_eq(v->reported_rv, rv->plain.obj.rv) ||
		model_mark_announces(cluster->values_sha256, rv->data_sha256))
		return;
	free(v->reported_rv);
	v->reported_rv = xstrdup(rv->plain.obj.rv);
	log_warn(NULL, "another client changed trustee-rv-data", NULL);
	k8s_events_post(c->kind.env->events, &kobj_cluster, &cluster->obj, K8S_EVENT_WARNING,
		model_image_reason(IMAGE_VALUES_CHANGED), "Commit",
		"Another client changed ConfigMap " MODEL_RV_CONFIGMAP
		". The operator restores it as soon as the values of all approved images are known. Check who can write ConfigMaps in this namespace.");
}

/* The file needs neither an announcement nor a write while it is empty and nothing is wanted: so
 * a new cluster makes no request. */
static void look(struct ctl_image *c, struct ctl_values_view *out)
{
	const struct model_configmap *rv = caches_configmap(c->kind.caches, MODEL_RV_CONFIGMAP);
	const struct model_cluster *cluster = caches_cluster(c->kind.caches);
	struct values *v = &c->values;
	char hex[SHA256_HEX_LEN + 1];
	size_t n_recorded = 0;

	*out = (struct ctl_values_view){
		.dirty = v->dirty, .rv_found = rv && !rv->plain.obj.deleting};
	if (v->dirty)
		return;
	if (rv)
		take_record(v, rv);
	forget_gone(c);
	out->declared = v->declared;
	for (size_t i = 0; i < v->n_known; i++)
		n_recorded += v->known[i].recorded;
	out->file_ok = rv && n_recorded == v->n_known && v->n_recorded == v->n_known &&
		       file_same(v, rv) &&
		       (is_empty(v) || rv->expires_s > clock_wall_s() + RENEW_DAYS * DAY_S);
	out->announced = !rv || !cluster || (out->file_ok && is_empty(v));
	if (out->announced)
		return;
	data_hash(v, rv, hex);
	out->announced = model_mark_announces(cluster->values_sha256, hex);
	tell_changed(c, rv);
}

/* An object that cannot be read may be an approved image or hold its values: then nothing may be
 * revoked or written. */
bool image_values_unknown(const struct caches *s)
{
	const struct model_configmap *pcrs = caches_configmap(s, MODEL_PCRS_CONFIGMAP),
				     *rv = caches_configmap(s, MODEL_RV_CONFIGMAP);

	return caches_cluster_unknown(s) || k8s_cache_unreadable(s->images) ||
	       (pcrs && pcrs->plain.obj.unreadable) || (rv && rv->plain.obj.unreadable);
}

/* ---- compute */

/* Adopt the result of a complete computation. */
static void take_computed(struct ctl_image *c)
{
	const struct model_cluster *cluster = caches_cluster(c->kind.caches);
	struct values *to = &c->values;
	struct image_sets *s = steal_ptr(&to->computing);
	cleanup_free const char **names = xcalloc(s->n + 1, sizeof(*names));

	image_sets_free(to->computed);
	to->computed = s;
	for (size_t i = 0; i < s->n; i++)
		names[i] = s->v[i].name;
	render_refvalues_fini(&to->want);
	render_refvalues(
		names, &s->sets, cluster && cluster->pcr7 == MODEL_PCR7_REQUIRE, &to->want);
	pcr_sets_fini(&s->sets);
	for (size_t i = 0; i < to->n_known; i++)
		to->known[i].wanted = false;
	for (size_t i = 0; i < to->want.n_boot; i++)
		known_get(to, to->want.boot[i].name)->wanted = true;
	to->arrays = (s->n > 0 || cluster) &&
		     caches_cluster_authority(c->kind.caches) != MODEL_AUTHORITY_RETIRED;
	to->dirty = to->declared = false;
	free(steal_ptr(&to->file_rv));
	log_info(NULL, "reference values computed", "image=%zu count=%zu", s->n - s->n_refused,
		to->want.n_boot);
	if (s->n_refused)
		log_warn(NULL, "images refused, there would be too many node states",
			"image=%zu max=%d", s->n_refused, IMAGE_STATES_MAX);
	if (s->conflicts)
		log_warn(NULL, "some combinations contradict each other and are skipped",
			"count=%zu", s->conflicts);
}

enum computed { COMPUTED, COMPUTING, AWAITED };

/* Compute a slice, unless the values of an image are unknown and nothing has to be revoked. The
 * marker of ctl/adoption_cutoff is always awaited, because it always arrives. */
static enum computed compute(struct ctl_image *c)
{
	struct values *to = &c->values;
	struct image_sets *s = to->computing;

	if (!s)
		s = to->computing = image_sets_new(c);
	if (s->awaited && (s->since || !s->revokes)) {
		if (!str_eq(to->awaited, s->awaited))
			log_warn(NULL,
				"keeping the current reference values until those of an image are known again",
				"name=%s", s->awaited);
		tell_changed(c, caches_configmap(c->kind.caches, MODEL_RV_CONFIGMAP));
		free(to->awaited);
		to->awaited = steal_ptr(&s->awaited);
		image_sets_free(steal_ptr(&to->computing));
		return AWAITED;
	}
	free(steal_ptr(&to->awaited));
	if (!image_sets_run(s))
		return COMPUTING;
	take_computed(c);
	return COMPUTED;
}

/* ---- declare */

/* kbs_sync declares objects; these exist in memory only. */
struct values_obj {
	struct kobj obj;
	const char *text;
};

static struct secret *render_text(const struct kobj *o)
{
	const char *text = ((const struct values_obj *)o)->text;

	return secret_new_copy(text, strlen(text));
}

/* kbs_sync keeps a reference to an object with name and text. */
static void declare(struct ctl_image *c, const char *name, const char *text)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	cleanup_kobj const struct kobj *o = NULL;
	struct values_obj h = {.text = NULL};

	kobj_pack_str(&pack, offsetof(struct values_obj, obj.name), name);
	kobj_pack_str(&pack, offsetof(struct values_obj, obj.uid), "");
	kobj_pack_str(&pack, offsetof(struct values_obj, obj.rv), "");
	kobj_pack_str(&pack, offsetof(struct values_obj, text), text);
	o = kobj_pack_finish(&pack, &h, sizeof(h));
	kbs_sync_declare(c->kind.caches->sync, KBS_REFVALUE, name, o, render_text);
}

/* A name that is gone already is forgotten once that is recorded: see forget_gone(). One that no
 * Trustee was ever to have is only declared. */
static void revoke(struct ctl_image *c, const char *name)
{
	enum kbs_observed is = caches_trustee_observed(c->kind.caches, KBS_REFVALUE, name);

	if (is == KBS_OBSERVED_NONE)
		kbs_sync_forget(c->kind.caches->sync, KBS_REFVALUE, name);
	else if (!caches_trustee_gone(is))
		kbs_sync_revoke(c->kind.caches->sync, KBS_REFVALUE, name);
}

/* Declare the wanted values and revoke the others. A new boot set waits until its name is
 * recorded, if there is a place to record it. */
void image_values_declare(struct ctl_kind *k, const struct ctl_look *look)
{
	struct ctl_image *c = (struct ctl_image *)k;
	bool unwritten =
		!caches_cluster(k->caches) && !caches_configmap(k->caches, MODEL_RV_CONFIGMAP);
	struct values *v = &c->values;
	size_t boot = 0; /* both lists are sorted */

	v->declared = true;
	for (size_t i = 0; i < v->n_known; i++) {
		const struct known *n = &v->known[i];

		if (!n->wanted)
			revoke(c, n->name);
		else if (n->recorded || unwritten)
			declare(c, n->name, v->want.boot[boot].value);
		boot += n->wanted;
	}
	for (int i = 0; i < MODEL_RV_N_ARRAYS; i++) {
		if (v->arrays)
			declare(c, model_rv_array_names[i], v->want.array[i]);
		else
			revoke(c, model_rv_array_names[i]);
	}
}

/* ---- write */

/* The mark on the cluster lists the hashes of data that this operator wrote or is about to
 * write. */
struct op *image_values_announce(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	struct ctl_image *c = (struct ctl_image *)k;
	const struct model_configmap *rv = caches_configmap(c->kind.caches, MODEL_RV_CONFIGMAP);
	const struct model_cluster *cluster = caches_cluster(c->kind.caches);
	struct json_object *meta, *annotations = json_obj();
	cleanup_json struct json_object *patch = ctl_patch_of(&cluster->obj, &meta);
	cleanup_free char *first = NULL, *payload = NULL;
	char hex[SHA256_HEX_LEN + 1];

	/* The first announcement includes the existing data, which an older version wrote. */
	if (!cluster->values_sha256 && rv->data_sha256)
		first = model_mark_announce(NULL, rv->data_sha256);
	data_hash(&c->values, rv, hex);
	payload = model_mark_announce(first ? first : cluster->values_sha256, hex);
	ctl_add_mark(annotations, &cluster->obj, MODEL_CLUSTER_VALUES_MARK, payload);
	json_add(meta, "annotations", annotations);
	return ctl_kind_patch(k, a, &kobj_cluster, cluster->obj.name, patch);
}

/* An apply with the UID: the ConfigMap may have been replaced, and is then left for the next
 * step. */
struct op *image_values_write(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d)
{
	struct ctl_image *c = (struct ctl_image *)k;
	const struct model_configmap *rv = caches_configmap(k->caches, MODEL_RV_CONFIGMAP);
	cleanup_strbuf struct strbuf file = STRBUF_INIT, names = STRBUF_INIT;
	cleanup_json struct json_object *o = NULL;
	struct json_object *meta, *data;

	data_texts(&c->values, rv, &names, &file);
	o = ctl_apply_new(&kobj_configmap, &rv->plain.obj, &meta);
	data = json_add_str(json_obj(), MODEL_RV_FILE, strbuf_str(&file));
	json_add(o, "data", json_add_str(data, MODEL_RV_NAMES, strbuf_str(&names)));
	return k8s_call_apply(
		k->env->api, &k->acts.ops, &kobj_configmap, k->env->ns, o, ctl_kind_done, a);
}

/* Errors that time does not solve are shown by every image, so all are woken when that changes. */
void image_values_ended(
	struct ctl_image *c, int doing, const struct err *err, const struct k8s_result *r)
{
	struct values *v = &c->values;
	bool had_problem = v->problem[0] != '\0';

	v->problem[0] = '\0';
	if (!err_is_set(err) && doing == CTL_IMAGE_ANNOUNCE_VALUES)
		ctl_take_answer(c->kind.caches->clusters, r->object, false);
	else if (!err_is_set(err))
		ctl_take_answer(c->kind.caches->configmaps, r->object, false);
	else if (ctl_err_is_refusal(err))
		snprintf(v->problem, sizeof(v->problem), "ConfigMap %s cannot be %s: %s.",
			MODEL_RV_CONFIGMAP,
			doing == CTL_IMAGE_ANNOUNCE_VALUES ? "announced" : "written", err->text);
	if (had_problem != (v->problem[0] != '\0'))
		ctl_kind_wake_all(&c->kind);
}

/* ---- step */

/* A computation in progress is dropped, because its input is outdated. */
void image_values_changed(struct ctl_image *c)
{
	c->values.dirty = true;
	image_sets_free(steal_ptr(&c->values.computing));
	c->values.was_settled = c->values.was_gone = false;
	ctl_runner_wake(c->kind.runner, CTL_IMAGE_ALL);
}

/* By UID: a new object of the same name was not judged yet. */
bool image_values_refused(const struct ctl_image *c, const char *uid)
{
	const struct image_sets *s = c->values.computed;

	for (size_t i = 0; s && s->n_refused && i < s->n; i++)
		if (s->v[i].refused && str_eq(s->v[i].uid, uid))
			return true;
	return false;
}

/* Publish the two facts that images wait for, and wake them when one changes. */
static void tell(struct ctl_image *c, const struct ctl_values_view *v)
{
	struct values *to = &c->values;
	bool idle = !v->dirty && v->declared;
	bool settled = idle && v->rv_found && v->file_ok;
	bool gone = idle && (!v->rv_found || v->file_ok);
	enum kbs_observed awaited = to->arrays ? KBS_OBSERVED_PRESENT : KBS_OBSERVED_ABSENT;

	/* A Trustee that never had a value (NONE) has nothing to confirm. */
	for (int i = 0; gone && i < MODEL_RV_N_ARRAYS; i++) {
		enum kbs_observed is = caches_trustee_observed(
			c->kind.caches, KBS_REFVALUE, model_rv_array_names[i]);

		gone = is == KBS_OBSERVED_NONE || is == awaited;
	}
	for (size_t i = 0; gone && i < to->n_known; i++)
		gone = to->known[i].wanted;
	if (settled == to->was_settled && gone == to->was_gone)
		return;
	to->was_settled = settled;
	to->was_gone = gone;
	ctl_kind_wake_all(&c->kind);
}

/* The look and the decision of key "*". Computing takes several turns of the loop; the step runs
 * again after each slice. */
int image_values_look(struct ctl_image *c, struct ctl_look *out)
{
	static const enum ctl_image_do acts[CTL_VALUES_N_DO] = {
		[CTL_VALUES_DECLARE] = CTL_IMAGE_DECLARE_VALUES,
		[CTL_VALUES_ANNOUNCE] = CTL_IMAGE_ANNOUNCE_VALUES,
		[CTL_VALUES_WRITE] = CTL_IMAGE_WRITE_VALUES,
	};
	const struct model_configmap *rv = caches_configmap(c->kind.caches, MODEL_RV_CONFIGMAP);
	const struct model_cluster *cluster = caches_cluster(c->kind.caches);
	struct ctl_values_view v;
	enum ctl_values_do d;

	if (image_values_unknown(c->kind.caches)) /* a change wakes this key */
		return CTL_IMAGE_NOTHING;
	look(c, &v);
	if (ctl_values_decide(&v) == CTL_VALUES_COMPUTE) {
		switch (compute(c)) {
		case COMPUTED:
			break;
		case COMPUTING:
			ctl_look_again(out, 1, "computing");
			return CTL_IMAGE_NOTHING;
		case AWAITED: /* a change of what it waits for wakes this key */
			return CTL_IMAGE_NOTHING;
		}
		look(c, &v);
	}
	d = ctl_values_decide(&v);
	if (d != CTL_VALUES_DECLARE)
		tell(c, &v);
	/* The two writes change these objects. */
	out->content =
		(rv ? ctl_version(&rv->plain.obj) : 0) + (cluster ? ctl_version(&cluster->obj) : 0);
	return (int)acts[d];
}
