/* SPDX-License-Identifier: MIT */
/*
 * For the tests of kbs/push: a Trustee (fake/kbs) and one operator's life (sync and push), which
 * ends at once with life_end(), as by a kill, and starts again with what is wanted. Two judges
 * watch every test: whatever is confirmed is so in the store at that moment, and a clean sentinel
 * with the wanted sum never stands in a store that differs. The sum is computed here a second time.
 */
#ifndef TESTS_KBS_PUSH_FIXTURE_H
#define TESTS_KBS_PUSH_FIXTURE_H

#include "kbs/fixture.h"
#include "kbs/thing.h"
#include "tec/kbs/push.h"

#define WISHES_MAX 16
#define PROBE_MS   180000

/* What the cluster wants, independent of any life. */
struct wish {
	enum kbs_kind kind;
	char name[64];
	const char *value; /* NULL: to be gone; static */
	bool forgotten;    /* confirmed gone: the controllers do not know of it any more */
};

static struct kbs_sync *sync;
static struct kbs_push *push;
static struct kbs_push_conf conf;
static struct wish wishes[WISHES_MAX];
static size_t n_wishes;
static const char *attestation, *resource_policy;
static bool shared;
static bool watched;    /* the judges look */
static bool store_lost; /* what was confirmed need not be true until the next probe */

/* ---- the sum, computed in another way */

static inline void sum_one(uint8_t sum[32], const char *name, const char *value)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];
	unsigned carry = 0;

	bytes_sha256(value, strlen(value), digest);
	strbuf_add(&text, name, strlen(name) + 1);
	strbuf_add(&text, digest, sizeof(digest));
	bytes_sha256(text.data, text.len, digest);
	for (int i = 0; i < 32; i++) {
		carry += (unsigned)sum[i] + digest[i];
		sum[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

static inline void wanted_sum(char out[SHA256_HEX_LEN + 1])
{
	uint8_t sum[32] = {0}, big[32];

	for (size_t i = 0; i < n_wishes; i++)
		if (wishes[i].value)
			sum_one(sum, wishes[i].name, wishes[i].value);
	sum_one(sum, shared ? "policy/shared" : "policy/attestation", attestation);
	sum_one(sum, "policy/resource", resource_policy);
	for (int i = 0; i < 32; i++)
		big[i] = sum[31 - i];
	bytes_to_hex(big, sizeof(big), out);
}

/* The sum that the sentinel in the store says; false: none, or dirty. */
static inline bool stored_sum(char out[SHA256_HEX_LEN + 1])
{
	const char *text = fake_kbs_value(kbs, KBS_SENTINEL);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		text ? json_parse(text, strlen(text), &json_limits_object, &err) : NULL;
	const char *sum = o ? json_get_str(o, "sum") : NULL;

	if (!sum || !*sum)
		return false;
	snprintf(out, SHA256_HEX_LEN + 1, "%s", sum);
	return true;
}

/* ---- the judges */

static inline bool is_identity(const char *name)
{
	return strncmp(name, "ak.", 3) == 0;
}

static inline bool holds(const struct wish *w, const char *value)
{
	const char *observed = w->kind == KBS_RESOURCE ? fake_kbs_resource(kbs, w->name)
						       : fake_kbs_value(kbs, w->name);
	const char *all = fake_kbs_value(kbs, "trusted_aks");
	cleanup_free char *key = NULL;

	if (shared && is_identity(w->name)) { /* [{"ak":"KEY","machine":... */
		key = value ? xasprintf("\"%.*s\"", (int)strcspn(value + 8, "\""), value + 8)
			    : NULL;
		return value ? all && strstr(all, key) : !observed || str_eq(observed, "null");
	}
	return value ? str_eq(observed, value) : !observed || str_eq(observed, "null");
}

static inline const char *store_differs(void)
{
	size_t resources = 0;

	for (size_t i = 0; i < n_wishes; i++) {
		if (!holds(&wishes[i], wishes[i].value))
			return wishes[i].name;
		resources += wishes[i].kind == KBS_RESOURCE && wishes[i].value;
	}
	if (fake_kbs_resources(kbs) != resources)
		return "a resource that is not wanted";
	if (!str_eq(fake_kbs_policy(kbs, false), attestation))
		return "attestation policy";
	if (!str_eq(fake_kbs_policy(kbs, true), resource_policy))
		return "resource policy";
	if (!shared && !str_eq(fake_kbs_value(kbs, "trusted_aks"), "[]"))
		return "trusted_aks";
	return NULL;
}

static inline void judge_sentinel(void *arg)
{
	char is[SHA256_HEX_LEN + 1], want[SHA256_HEX_LEN + 1];
	const char *differs;

	(void)arg;
	if (!watched || !stored_sum(is))
		return;
	wanted_sum(want);
	differs = strcmp(is, want) == 0 ? store_differs() : NULL;
	cr_assert_null(differs, "a clean sentinel stands, but: %s", differs);
}

static inline void judge_confirmed(void *arg, enum kbs_kind kind, const char *name)
{
	(void)arg;
	if (!watched || store_lost)
		return;
	for (size_t i = 0; i < n_wishes; i++) {
		const struct wish *w = &wishes[i];
		enum kbs_observed observed;

		if (w->kind != kind || (name && strcmp(name, w->name) != 0) || w->forgotten)
			continue;
		observed = kbs_sync_observed(sync, kind, w->name);
		if (observed == KBS_OBSERVED_PRESENT && kbs_sync_object(sync, kind, w->name))
			cr_assert(holds(w, w->value), "%s is confirmed, and is not there", w->name);
		if (observed == KBS_OBSERVED_ABSENT && kbs_sync_is_revoked(sync, kind, w->name))
			cr_assert(holds(w, NULL), "%s is confirmed gone, and is there", w->name);
	}
}

/* ---- what is wanted */

static inline struct wish *wish(enum kbs_kind kind, const char *name)
{
	for (size_t i = 0; i < n_wishes; i++)
		if (wishes[i].kind == kind && strcmp(wishes[i].name, name) == 0)
			return &wishes[i];
	cr_assert_lt(n_wishes, (size_t)WISHES_MAX);
	wishes[n_wishes].kind = kind;
	snprintf(wishes[n_wishes].name, sizeof(wishes->name), "%s", name);
	return &wishes[n_wishes++];
}

/* An identity is a list of one. */
static inline void declare_in(
	struct kbs_sync *s, enum kbs_kind kind, const char *name, const char *value)
{
	cleanup_free char *one = is_identity(name) ? xstrndup(value + 1, strlen(value) - 2) : NULL;
	struct kobj *o = thing_new(name, one ? one : value);

	if (one)
		kbs_sync_declare_in(s, kind, name, o, 0, thing_render);
	else
		kbs_sync_declare(s, kind, name, o, thing_render);
	kobj_unref(o);
}

static inline void declare(enum kbs_kind kind, const char *name, const char *value)
{
	struct wish *w = wish(kind, name);

	w->value = value;
	w->forgotten = false;
	if (sync)
		declare_in(sync, kind, name, value);
}

static inline void revoke(enum kbs_kind kind, const char *name)
{
	struct wish *w = wish(kind, name);

	w->value = NULL;
	w->forgotten = false;
	if (sync)
		kbs_sync_revoke(sync, kind, name);
}

static inline enum kbs_observed observed(enum kbs_kind kind, const char *name)
{
	return kbs_sync_observed(sync, kind, name);
}

/* As a controller does when Trustee confirmed. */
static inline void forget_gone(void)
{
	for (size_t i = 0; i < n_wishes; i++) {
		struct wish *w = &wishes[i];

		if (w->value || w->forgotten || observed(w->kind, w->name) != KBS_OBSERVED_ABSENT)
			continue;
		kbs_sync_forget(sync, w->kind, w->name);
		w->forgotten = true;
	}
}

#define KEY(n)      "default/" n "/root"
#define IDENTITY(n) "[{\"ak\":\"" n "\",\"machine\":\"m\"}]"

/* Two machines and a boot set. */
static inline void declare_some(void)
{
	declare(KBS_REFVALUE, "boot.4.14", "{\"images\":[\"coreos\"]}");
	declare(KBS_REFVALUE, "ak.one", IDENTITY("one"));
	declare(KBS_REFVALUE, "ak.two", IDENTITY("two"));
	declare(KBS_RESOURCE, KEY("one"), "{\"key\":\"1\"}");
	declare(KBS_RESOURCE, KEY("two"), "{\"key\":\"2\"}");
}

/* ---- lives */

static inline void life_begin(void)
{
	sync = kbs_sync_new();
	kbs_sync_listen(sync, judge_confirmed, NULL);
	kbs_sync_policies(sync, attestation, resource_policy, shared);
	push = kbs_push_new(loop, sync, &conf, fake_kbs_transport(kbs));
	for (size_t i = 0; i < n_wishes; i++) {
		const struct wish *w = &wishes[i];

		if (w->value)
			declare_in(sync, w->kind, w->name, w->value);
		else if (!w->forgotten)
			kbs_sync_revoke(sync, w->kind, w->name);
	}
}

static inline void life_end(void)
{
	kbs_push_free(push);
	kbs_sync_free(sync);
	push = NULL;
	sync = NULL;
}

/* The reported status of the Trustee. */
static inline struct kbs_target_status push_status(void)
{
	struct kbs_target_status s = {0};

	for (unsigned i = 0; kbs_sync_target(sync, i, &s); i++)
		if (strcmp(s.name, conf.target) == 0)
			break;
	return s;
}

static inline void run(uint64_t ms)
{
	loop_advance(loop, ms);
}

/* All is there, and a restart now would cost one question. */
static inline void assert_in_step(const char *when)
{
	char is[SHA256_HEX_LEN + 1] = "", want[SHA256_HEX_LEN + 1];
	const char *differs = store_differs();

	cr_assert_null(differs, "%s: %s", when, differs);
	cr_assert_eq(push_status().state, KBS_TARGET_IN_SYNC, "%s: %s", when, push_status().error);
	for (size_t i = 0; i < n_wishes; i++)
		if (!wishes[i].forgotten)
			cr_assert_eq(observed(wishes[i].kind, wishes[i].name),
				wishes[i].value ? KBS_OBSERVED_PRESENT : KBS_OBSERVED_ABSENT,
				"%s: %s", when, wishes[i].name);
	wanted_sum(want);
	cr_assert(stored_sum(is), "%s: the sentinel is dirty", when);
	cr_assert_str_eq(is, want, "%s", when);
}

static inline void world_begin(void)
{
	fixture_begin();
	fake_kbs_serve(kbs);
	fake_kbs_on_change(kbs, judge_sentinel, NULL);
	/* No probe comes between what a test does. */
	conf = (struct kbs_push_conf){
		.target = "kbs.test", .cluster_uid = "c-1", .probe_ms = PROBE_MS};
	attestation = "package policy # attestation";
	resource_policy = "package policy # resource";
	n_wishes = 0;
	memset(wishes, 0, sizeof(wishes));
	shared = store_lost = false;
	watched = true;
}

static inline void world_end(void)
{
	life_end();
	fixture_end();
}

/* A Trustee that has it all, and a life that has nothing to do. */
static inline void in_step(void)
{
	declare_some();
	life_begin();
	run(10000);
	assert_in_step("at first");
	fake_kbs_forget(kbs);
}

#endif
