/* SPDX-License-Identifier: MIT */
/*
 * The combinations of all approved images, as one key that runs once however many images changed.
 * What makes it safe to be killed anywhere: the name of a boot set is written down before it is
 * declared, and taken out after Trustee confirmed that it is gone. Revoking waits for no write.
 * Refuses to send an array that is longer than one value may be; the images say so then.
 */
#include "config.h"

#include "image_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define DAY_S        (24 * 60 * 60)
#define EXPIRES_DAYS 365
#define RENEW_DAYS   180

enum ctl_values_do ctl_values_decide(const struct ctl_values_view *v)
{
	if (v->dirty)
		return CTL_VALUES_COMPUTE;
	if (!v->declared)
		return CTL_VALUES_DECLARE;
	return v->rv_found && !v->file_ok ? CTL_VALUES_WRITE : CTL_VALUES_NOTHING;
}

/* ---- names */

/* Where it is, or would be. */
static size_t known_at(const struct values *v, const char *name, bool *found)
{
	size_t lo = 0, hi = v->n_known;

	*found = false;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int d = strcmp(v->known[mid].name, name);

		if (d == 0) {
			*found = true;
			return mid;
		}
		if (d < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct known *known_get(struct values *v, const char *name)
{
	bool found;
	size_t i = known_at(v, name, &found);

	if (found)
		return &v->known[i];
	if (v->n_known == v->cap_known) {
		v->cap_known = v->cap_known ? 2 * v->cap_known : 16;
		v->known = xreallocarray(v->known, v->cap_known, sizeof(*v->known));
	}
	memmove(&v->known[i + 1], &v->known[i], (v->n_known - i) * sizeof(*v->known));
	v->n_known++;
	v->known[i] = (struct known){.name = xstrdup(name)};
	return &v->known[i];
}

void values_fini(struct values *v)
{
	for (size_t i = 0; i < v->n_known; i++)
		free(v->known[i].name);
	free(v->known);
	free(v->rv_seen);
	free(v->file_rv);
	render_refvalues_fini(&v->want);
	memset(v, 0, sizeof(*v));
}

/* ---- look */

static void take_record(struct values *v, const struct ctl_configmap *rv)
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
		v->n_recorded = SIZE_MAX; /* to be written anew */
		return;
	}
	v->n_recorded = json_object_array_length(a);
	for (size_t i = 0; i < v->n_recorded; i++) {
		struct json_object *s = json_object_array_get_idx(a, i);
		const char *name = json_object_get_string(s);

		if (!json_object_is_type(s, json_type_string) ||
			strlen(name) > RENDER_BOOT_NAME_MAX ||
			!str_starts(name, RENDER_BOOT_PREFIX))
			continue;
		known_get(v, name)->recorded = true;
	}
	v->declared = false; /* some may be declared now; some are of another life */
}

static void forget_gone(struct ctl_image *c)
{
	struct values *v = &c->values;
	size_t kept = 0;

	for (size_t i = 0; i < v->n_known; i++) {
		struct known *k = &v->known[i];

		if (k->wanted || !ctl_far_gone(ctl_far(c->env, KBS_REFVALUE, k->name))) {
			v->known[kept++] = *k;
			continue;
		}
		kbs_sync_forget(c->env->sync, KBS_REFVALUE, k->name);
		free(k->name);
	}
	v->n_known = kept;
}

static bool is_empty(const struct values *v)
{
	return v->want.n_boot == 0 && str_eq(v->want.array[RENDER_PCR4], "[]") &&
	       str_eq(v->want.array[RENDER_PCR14], "[]");
}

static void sha256_hex(const char *text, size_t len, char hex[SHA256_HEX_LEN + 1])
{
	uint8_t digest[SHA256_LEN];

	bytes_sha256(text, len, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
}

/* The file as it would be with the expiration it has. */
static bool file_same(struct values *v, const struct ctl_configmap *rv)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	char hex[SHA256_HEX_LEN + 1];

	if (str_eq(v->file_rv, rv->plain.obj.rv))
		return v->file_same;
	free(v->file_rv);
	v->file_rv = xstrdup(rv->plain.obj.rv);
	render_refvalues_file(&v->want, rv->expires_s, &text);
	sha256_hex(strbuf_str(&text), text.len, hex);
	v->file_same = str_eq(rv->file_sha256, hex);
	if (!v->file_same && is_empty(v)) {
		sha256_hex("[]", 2, hex); /* as installed */
		v->file_same = str_eq(rv->file_sha256, hex);
	}
	return v->file_same;
}

static void look(struct ctl_image *c, struct ctl_values_view *out)
{
	const struct ctl_configmap *rv = ctl_configmap_find(c->env, CTL_RV_CONFIGMAP);
	struct values *v = &c->values;
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
}

/* Is a part of what follows from the caches not known? Then what is declared stays, and nothing is
 * written. */
bool values_unknown(const struct ctl_env *env)
{
	const struct ctl_configmap *pcrs = ctl_configmap_find(env, MODEL_PCRS_CONFIGMAP),
				   *rv = ctl_configmap_find(env, CTL_RV_CONFIGMAP);

	return ctl_env_cluster_unknown(env) || k8s_cache_unreadable(env->images) ||
	       (pcrs && pcrs->plain.obj.unreadable) || (rv && rv->plain.obj.unreadable);
}

/* ---- compute */

struct counted {
	const struct ctl_image *c;
	const struct model_image **v; /* owned */
	size_t n;
};

static void count_in(void *arg, const struct kobj *o)
{
	struct counted *in = arg;
	const struct model_image *m = model_image(o);
	const struct model_pcrs_entry *entry;

	/* Without our finalizer it could go without being revoked. */
	if (!o->deleting && m->has_finalizer && m->digest_ok &&
		image_entry(in->c->env, m, &entry) == CTL_IMAGE_ENTRY_GOOD)
		in->v[in->n++] = m;
}

static int by_name(const void *a, const void *b)
{
	const struct model_image *const *x = a, *const *y = b;

	return strcmp((*x)->obj.name, (*y)->obj.name);
}

static void mark_wanted(struct values *v)
{
	for (size_t i = 0; i < v->n_known; i++)
		v->known[i].wanted = false;
	for (size_t i = 0; i < v->want.n_boot; i++)
		known_get(v, v->want.boot[i].name)->wanted = true;
	v->too_long = false;
	for (int i = 0; i < RENDER_N_ARRAYS; i++)
		v->too_long |= strlen(v->want.array[i]) > SECRET_MAX_LEN;
}

static void compute(struct ctl_image *c)
{
	struct counted in = {.c = c};
	cleanup_pcr_sets struct pcr_sets sets = PCR_SETS_INIT;
	cleanup_free struct pcr_image *images = NULL;
	cleanup_free const struct model_image **v = NULL;
	const struct model_cluster *cluster = ctl_env_cluster(c->env);
	bool required = cluster && cluster->pcr7 == MODEL_PCR7_REQUIRE;
	struct values *to = &c->values;
	size_t conflicts = 0;

	in.v = v = xcalloc(k8s_cache_count(c->env->images) + 1, sizeof(*v));
	k8s_cache_each(c->env->images, count_in, &in);
	qsort(v, in.n, sizeof(*v), by_name);
	images = xcalloc(in.n + 1, sizeof(*images));
	for (size_t i = 0; i < in.n; i++)
		images[i].name = v[i]->obj.name;
	image_sets_combine(c->env, v, in.n, &sets, &conflicts);
	render_refvalues_fini(&to->want);
	render_refvalues(images, &sets, required, &to->want);
	mark_wanted(to);
	to->arrays = in.n > 0 || cluster;
	to->dirty = to->declared = false;
	free(steal_ptr(&to->file_rv));
	log_info(NULL, "reference values computed", "image=%zu count=%zu", in.n, to->want.n_boot);
	if (conflicts)
		log_warn(NULL, "some combinations contradict themselves and are left out",
			"count=%zu", conflicts);
	if (to->too_long)
		log_error(NULL, "more register values than one reference value takes", "max=%d",
			SECRET_MAX_LEN);
}

/* ---- declare */

struct holder {
	struct kobj obj;
	const char *text;
};

static struct secret *render_text(const struct kobj *o)
{
	const char *text = ((const struct holder *)o)->text;

	return secret_new_copy(text, strlen(text));
}

static void declare(struct ctl_image *c, const char *name, const char *text)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	cleanup_kobj const struct kobj *o = NULL;
	struct holder h = {.text = NULL};

	if (strlen(text) > SECRET_MAX_LEN)
		return;
	kobj_pack_str(&pack, offsetof(struct holder, obj.name), name);
	kobj_pack_str(&pack, offsetof(struct holder, obj.uid), "");
	kobj_pack_str(&pack, offsetof(struct holder, obj.rv), "");
	kobj_pack_str(&pack, offsetof(struct holder, text), text);
	o = kobj_pack_finish(&pack, &h, sizeof(h));
	kbs_sync_declare(c->env->sync, KBS_REFVALUE, name, o, render_text);
}

static void revoke(struct ctl_image *c, const char *name)
{
	if (ctl_far_gone(ctl_far(c->env, KBS_REFVALUE, name)))
		kbs_sync_forget(c->env->sync, KBS_REFVALUE, name);
	else
		kbs_sync_revoke(c->env->sync, KBS_REFVALUE, name);
}

/* A new boot set waits until its name is written down, where there is a place to write it to. */
static void declare_all(struct ctl_image *c)
{
	bool unwritten = !ctl_env_cluster(c->env) && !ctl_configmap_find(c->env, CTL_RV_CONFIGMAP);
	struct values *v = &c->values;
	size_t boot = 0; /* both lists are sorted */

	v->declared = true;
	for (size_t i = 0; i < v->n_known; i++) {
		const struct known *k = &v->known[i];

		if (!k->wanted)
			revoke(c, k->name);
		else if (k->recorded || unwritten)
			declare(c, k->name, v->want.boot[boot].value);
		boot += k->wanted;
	}
	for (int i = 0; i < RENDER_N_ARRAYS; i++) {
		if (v->arrays)
			declare(c, render_array_names[i], v->want.array[i]);
		else
			revoke(c, render_array_names[i]);
	}
}

/* ---- write */

static char *names_text(const struct values *v)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; i < v->n_known; i++) {
		strbuf_addc(&out, i ? ',' : '[');
		json_quote(&out, v->known[i].name, strlen(v->known[i].name));
	}
	strbuf_adds(&out, v->n_known ? "]" : "[]");
	return strbuf_steal(&out);
}

struct op *values_start(struct ctl_image *c, struct ctl_act *act, k8s_result_fn done)
{
	const struct ctl_configmap *rv = ctl_configmap_find(c->env, CTL_RV_CONFIGMAP);
	int64_t now = clock_wall_s(), expires = rv->expires_s;
	cleanup_strbuf struct strbuf file = STRBUF_INIT;
	cleanup_free char *names = names_text(&c->values);
	struct json_object *meta, *data = json_obj();
	cleanup_json struct json_object *o = ctl_apply_new(&kobj_configmap, &rv->plain.obj, &meta);

	if (expires <= now + RENEW_DAYS * DAY_S)
		expires = now + EXPIRES_DAYS * DAY_S;
	render_refvalues_file(&c->values.want, expires, &file);
	json_add_str(data, CTL_RV_FILE, strbuf_str(&file));
	json_add_str(data, CTL_RV_NAMES, names);
	json_add(o, "data", data);
	return k8s_call_apply(c->env->api, &c->acts.ops, &kobj_configmap, c->env->ns, o, done, act);
}

static void wake_image(void *arg, const struct kobj *o)
{
	struct ctl_image *c = arg;

	ctl_runner_wake(c->runner, o->name);
}

void values_done(struct ctl_image *c, const struct err *err, const struct k8s_result *r)
{
	struct values *v = &c->values;
	bool told = v->problem[0] != '\0';

	v->problem[0] = '\0';
	if (!err_is_set(err))
		ctl_take_answer(c->env->configmaps, r->object, false);
	else if (err->kind == ERR_DENIED || err->kind == ERR_INVALID)
		snprintf(v->problem, sizeof(v->problem), "ConfigMap %s cannot be written: %s.",
			CTL_RV_CONFIGMAP, err->text);
	if (told != (v->problem[0] != '\0'))
		k8s_cache_each(c->env->images, wake_image, c);
}

/* ---- step */

void values_changed(struct ctl_image *c)
{
	c->values.dirty = true;
	c->values.was_settled = c->values.was_gone = false;
	ctl_runner_wake(c->runner, CTL_IMAGE_ALL);
}

bool values_settled(const struct ctl_image *c)
{
	return c->values.was_settled;
}

bool values_gone(const struct ctl_image *c)
{
	return c->values.was_gone;
}

static bool arrays_confirmed(const struct ctl_image *c)
{
	for (int i = 0; i < RENDER_N_ARRAYS; i++) {
		enum kbs_far far = ctl_far(c->env, KBS_REFVALUE, render_array_names[i]);

		if (far != KBS_FAR_NONE &&
			far != (c->values.arrays ? KBS_FAR_PRESENT : KBS_FAR_ABSENT))
			return false;
	}
	return true;
}

/* Images wait for these two. */
static void tell(struct ctl_image *c, const struct ctl_values_view *v)
{
	struct values *to = &c->values;
	bool idle = !v->dirty && v->declared && !to->too_long;
	bool settled = idle && v->rv_found && v->file_ok;
	bool gone = idle && (!v->rv_found || v->file_ok) && arrays_confirmed(c);

	for (size_t i = 0; gone && i < to->n_known; i++)
		gone = to->known[i].wanted;
	if (settled == to->was_settled && gone == to->was_gone)
		return;
	to->was_settled = settled;
	to->was_gone = gone;
	k8s_cache_each(c->env->images, wake_image, c);
}

struct queue_next values_step(struct ctl_image *c)
{
	struct ctl_act *a = ctl_act_find(&c->acts, CTL_IMAGE_ALL);
	enum ctl_values_do d = CTL_VALUES_COMPUTE;
	struct ctl_values_view v;
	struct queue_next next;

	if (ctl_act_busy(a, &next))
		return next;
	if (values_unknown(c->env)) /* a change wakes us */
		return ctl_settled();
	for (int i = 0; i < 4 && (d == CTL_VALUES_COMPUTE || d == CTL_VALUES_DECLARE); i++) {
		look(c, &v);
		d = ctl_values_decide(&v);
		if (d == CTL_VALUES_COMPUTE)
			compute(c);
		else if (d == CTL_VALUES_DECLARE)
			declare_all(c);
	}
	tell(c, &v);
	if (d == CTL_VALUES_NOTHING) {
		ctl_act_rest(a);
		return ctl_settled();
	}
	a = a ? a : ctl_act_get(&c->acts, CTL_IMAGE_ALL);
	if (d != CTL_VALUES_WRITE || !ctl_act_begin(a, CTL_IMAGE_WRITE_VALUES) ||
		!image_start(c, a, NULL, CTL_IMAGE_WRITE_VALUES))
		return ctl_retry(0, "an act had no visible effect yet");
	return ctl_in_flight();
}
