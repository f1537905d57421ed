/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "ctl/world.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"

static struct world w;

static void up(void)
{
	world_start(&w);
}

static void down(void)
{
	world_stop(&w);
}

TestSuite(ctl_env, .init = up, .fini = down);

Test(ctl_env, the_oldest_cluster_is_served_then_by_name)
{
	world_cluster(&w, "b", "{}");
	world_cluster(&w, "a", "{}");
	clock_fake_advance(5000);
	world_cluster(&w, "0", "{}");
	world_boot(&w, "");
	cr_assert_str_eq(ctl_env_cluster(&w.life->env)->obj.name, "a");
	fake_api_delete(w.api, &kobj_cluster, NS, "a");
	world_run(&w, 100);
	cr_assert_str_eq(ctl_env_cluster(&w.life->env)->obj.name, "b");
}

Test(ctl_env, one_being_deleted_is_not_served)
{
	fake_api_put(w.api, &kobj_cluster, NS,
		"{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"x/y\"]},\"spec\":{}}");
	world_boot(&w, "");
	cr_assert(ctl_env_cluster(&w.life->env));
	fake_api_delete(w.api, &kobj_cluster, NS, "a");
	world_run(&w, 100);
	cr_assert_null(ctl_env_cluster(&w.life->env));
}

Test(ctl_env, plain_objects_keep_owner_and_hash_only)
{
	struct err err = ERR_INIT;
	static const char text[] =
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"7\",\"annotations\":{"
		"\"trusted-execution-clusters.io/render-hash\":\"h\"},\"ownerReferences\":[{\"uid\":\"o\",\"controller\":true}]}}";
	struct json_object *o = json_parse(text, sizeof(text) - 1, &json_limits_object, &err);
	struct kobj *k = ctl_plain_extract(o, &err);

	cr_assert(k);
	cr_assert_str_eq(((struct ctl_plain *)k)->owner_uid, "o");
	cr_assert_str_eq(((struct ctl_plain *)k)->render_hash, "h");
	kobj_unref(k);
	json_object_put(o);
	o = json_parse("{}", 2, &json_limits_object, &err);
	cr_assert_null(ctl_plain_extract(o, &err));
	cr_assert_eq(err.kind, ERR_INVALID);
	json_object_put(o);
}
