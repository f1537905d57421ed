/* SPDX-License-Identifier: MIT */
/* The in-memory API of tests/fake, as far as other tests rely on it. */
#include "config.h"

#include <criterion/criterion.h>

#include "fake/transport.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/k8s/call.h"
#include "tec/k8s/watch.h"

static struct loop *loop;
static struct fake_transport *fake;
static struct fake_api *api;
static struct k8s_cache *cache;
static struct k8s_watch *watch;
static struct err last_err;
static bool last_exists;
static char *last_rv;

static void on_result(void *arg, const struct err *err, const struct k8s_result *r)
{
	(void)arg;
	last_err = *err;
	last_exists = r->already_exists;
	free(last_rv);
	last_rv = r->object ? xstrdup(json_get_str(r->object, "metadata/resourceVersion")) : NULL;
}

static struct op_scope ops;

enum verb { CREATE, APPLY, APPLY_STATUS, PATCH };

/* 0, or the HTTP status of the refusal. */
static int write_text(enum verb verb, const char *text)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(text, strlen(text), &json_limits_object, &err);
	struct k8s_transport *t = fake_transport_seam(fake);

	cr_assert_not_null(o, "%s", err.text);
	if (verb == CREATE)
		k8s_call_create(t, &ops, &kobj_machine, "ns", o, 0, on_result, NULL);
	else if (verb == APPLY)
		k8s_call_apply(t, &ops, &kobj_machine, "ns", o, on_result, NULL);
	else if (verb == APPLY_STATUS)
		k8s_call_apply_status(t, &ops, &kobj_machine, "ns", o, on_result, NULL);
	else
		k8s_call_merge_patch(t, &ops, &kobj_machine, "ns", "a", o, on_result, NULL);
	loop_drain(loop);
	return last_err.http;
}

static int delete_uid(const char *uid)
{
	k8s_call_delete(fake_transport_seam(fake), &ops, &kobj_machine, "ns", "a", uid, NULL,
		on_result, NULL);
	loop_drain(loop);
	return last_err.http;
}

static struct json_object *there(void)
{
	return fake_api_get(api, &kobj_machine, "ns", "a");
}

static struct kobj *extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack p = KOBJ_PACK_INIT;
	struct kobj k = {0};

	return kobj_meta_read(&p, o, &k, err) < 0 ? NULL : kobj_pack_finish(&p, &k, sizeof(k));
}

static const struct k8s_cache_type type = {extract, sizeof(struct kobj), NULL, 0};

static void setup(void)
{
	clock_fake_start(1000000, 1767323045);
	log_setup(LOG_ERROR, LOG_TEXT);
	loop = loop_new();
	api = fake_api_new(loop);
	fake = fake_transport_new(loop);
	fake_transport_set_api(fake, api);
	cache = k8s_cache_new(&type);
	watch = k8s_watch_new(loop, fake_transport_seam(fake), cache,
		&(struct k8s_watch_conf){.gvk = &kobj_machine, .ns = "ns"});
}

static void teardown(void)
{
	free(last_rv);
	last_rv = NULL;
	k8s_watch_free(watch);
	k8s_cache_free(cache);
	fake_transport_free(fake);
	fake_api_free(api);
	loop_free(loop);
	metric_reset_all();
	clock_fake_stop();
}

TestSuite(fake_api, .init = setup, .fini = teardown);

#define HEAD                                                                                       \
	"\"apiVersion\":\"trusted-execution-clusters.io/v1alpha1\",\"kind\":\"Machine\",\"metadata\":{\"name\":\"a\""

Test(fake_api, create_says_when_it_exists)
{
	cr_expect_eq(
		write_text(CREATE, "{" HEAD "},\"spec\":{\"id\":\"x\"},\"status\":{\"no\":1}}"), 0);
	cr_expect_eq(json_get_int(there(), "metadata/generation", 0), 1);
	cr_expect_str_eq(json_get_str(there(), "metadata/namespace"), "ns");
	cr_expect_str_eq(
		json_get_str(there(), "metadata/creationTimestamp"), "2026-01-02T03:04:05Z");
	cr_expect_null(json_get(there(), "status"), "status is another resource");
	cr_expect_eq(write_text(CREATE, "{" HEAD "}}"), 409);
	cr_expect(last_exists);
	cr_expect_eq(last_err.kind, ERR_CONFLICT);
}

Test(fake_api, apply_merges_forgets_and_changes_nothing_twice)
{
	uint64_t rv;

	cr_expect_eq(write_text(APPLY, "{" HEAD ",\"uid\":\"u\"}}"), 409, "a uid makes no object");
	cr_expect_null(there());
	fake_api_put(api, &kobj_machine, "ns",
		"{\"metadata\":{\"name\":\"a\",\"labels\":{\"other\":\"1\"}},\"spec\":{\"id\":\"x\"}}");
	cr_expect_eq(
		write_text(APPLY,
			"{" HEAD
			",\"labels\":{\"l\":\"1\",\"x.io/m\":\"2\"},\"finalizers\":[\"f/g\"]}}"),
		0);
	cr_expect_str_eq(json_get_str(there(), "metadata/labels/other"), "1");
	cr_expect_str_eq(json_get_str(there(), "metadata/labels/l"), "1");
	rv = fake_api_rv(api);
	cr_expect_eq(
		write_text(APPLY,
			"{" HEAD
			",\"labels\":{\"l\":\"1\",\"x.io/m\":\"2\"},\"finalizers\":[\"f/g\"]}}"),
		0);
	cr_expect_eq(fake_api_rv(api), rv, "nothing new: no event");
	cr_expect_eq(write_text(APPLY, "{" HEAD ",\"labels\":{\"l\":\"1\"}}}"), 0);
	cr_expect_eq(json_object_object_length(json_get_obj(there(), "metadata/labels")), 2);
	cr_expect_null(
		json_get(there(), "metadata/finalizers"), "a list that nobody holds is gone");
	cr_expect_eq(json_get_int(there(), "metadata/generation", 0), 1,
		"labels do not make a new generation");
	cr_expect_eq(write_text(APPLY, "{" HEAD ",\"uid\":\"other\"}}"), 422);
	cr_expect_eq(
		write_text(APPLY,
			"{" HEAD
			",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"name\":\"o\","
			"\"uid\":\"1\",\"controller\":true}]}}"),
		0);
	cr_expect_eq(write_text(PATCH, "{\"metadata\":{\"resourceVersion\":\"1\"}}"), 409);
}

Test(fake_api, status_is_applied_by_condition_type)
{
	fake_api_put(
		api, &kobj_machine, "ns", "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"n\":1}}");
	cr_expect_eq(write_text(APPLY_STATUS,
			     "{" HEAD
			     "},\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"True\"},"
			     "{\"type\":\"B\",\"status\":\"True\"}]},\"spec\":{\"n\":9}}"),
		0);
	cr_expect_eq(json_get_int(there(), "spec/n", 0), 1);
	cr_expect_eq(json_get_int(there(), "metadata/generation", 0), 1);
	cr_expect_eq(
		write_text(APPLY_STATUS,
			"{" HEAD
			"},\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"False\"}]}}"),
		0);
	cr_expect_str_eq(fake_api_condition(api, &kobj_machine, "ns", "a", "A", "status"), "False");
	cr_expect_null(fake_api_condition(api, &kobj_machine, "ns", "a", "B", "status"));
}

Test(fake_api, finalizers_hold_a_deletion_until_the_last_is_off)
{
	cleanup_free char *patch = NULL, *uid = NULL;

	fake_api_put(api, &kobj_machine, "ns",
		"{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"f/g\"]}}");
	uid = xstrdup(json_get_str(there(), "metadata/uid"));
	cr_expect_eq(delete_uid("other"), 409);
	cr_expect_eq(last_err.kind, ERR_NOT_FOUND);
	cr_expect_eq(delete_uid(uid), 0);
	cr_assert_not_null(there());
	cr_expect_not_null(json_get(there(), "metadata/deletionTimestamp"));
	patch = xasprintf(
		"{\"metadata\":{\"resourceVersion\":\"%s\",\"finalizers\":[\"f/g\",\"new\"]}}",
		json_get_str(there(), "metadata/resourceVersion"));
	cr_expect_eq(write_text(PATCH, patch), 422);
	free(patch);
	patch = xasprintf("{\"metadata\":{\"resourceVersion\":\"%s\",\"finalizers\":null}}",
		json_get_str(there(), "metadata/resourceVersion"));
	cr_expect_eq(write_text(PATCH, patch), 0);
	cr_expect_null(there());
	cr_expect_eq(delete_uid(uid), 404);
}

Test(fake_api, answers_can_overtake_watches)
{
	k8s_watch_start(watch);
	loop_drain(loop);
	fake_api_hold_watches(api, true);
	cr_expect_eq(write_text(CREATE, "{" HEAD "}}"), 0);
	cr_expect_eq(k8s_cache_count(cache), 0);
	fake_api_hold_watches(api, false);
	loop_drain(loop);
	cr_expect_not_null(k8s_cache_find(cache, "a"));
}

Test(fake_api, a_killed_client_leaves_what_it_wrote_and_no_more)
{
	struct fake_transport *first = fake;

	fake_transport_die_after(fake, 1);
	last_err = (struct err){.kind = ERR_BUG, .http = -1};
	cr_expect_eq(write_text(CREATE, "{" HEAD "}}"), -1, "no answer");
	cr_expect(fake_transport_is_dead(fake));
	cr_expect_not_null(there());
	cr_expect_eq(delete_uid(json_get_str(there(), "metadata/uid")), -1);
	loop_advance(loop, 100000);
	cr_expect_not_null(there());
	op_scope_cancel(&ops);
	fake = fake_transport_new(loop);
	fake_transport_set_api(fake, api);
	cr_expect_eq(write_text(CREATE, "{" HEAD "}}"), 409, "the next life sees it");
	k8s_watch_free(watch);
	watch = NULL;
	fake_transport_free(first);
}

Test(fake_api, orphans_are_collected_on_demand)
{
	cleanup_free char *child = NULL;

	fake_api_put(
		api, &kobj_machine, "ns", "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"n\":1}}");
	child = xasprintf("{\"metadata\":{\"name\":\"s\",\"ownerReferences\":[{\"uid\":\"%s\"}]}}",
		json_get_str(there(), "metadata/uid"));
	fake_api_put(api, &kobj_secret, "ns", child);
	cr_expect_eq(fake_api_collect(api), 0);
	fake_api_delete(api, &kobj_machine, "ns", "a");
	cr_expect_eq(fake_api_collect(api), 1);
	cr_expect_eq(fake_api_count(api, &kobj_secret, "ns"), 0);
}
