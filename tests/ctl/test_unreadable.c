/* SPDX-License-Identifier: MIT */
/*
 * One object after the other cannot be read, of every kind: nothing is made, written, taken back or
 * released because of it, not while it is seen by a watch and not when it is found so at a start.
 */
#include "config.h"

#include "ctl/images.h"
#include "ctl/nodes.h"
#include "tec/ctl/unreadable.h"

static const struct {
	enum caches_of kind;
	const struct kobj_gvk *gvk;
	const char *name;
} objects[] = {
	{CACHES_CLUSTERS, &kobj_cluster, "tec"},
	{CACHES_MACHINES, &kobj_machine, "a"},
	{CACHES_AKS, &kobj_ak, "key"},
	{CACHES_IMAGES, &kobj_image, "coreos"},
	{CACHES_SECRETS, &kobj_secret, ID_A},
	{CACHES_SECRETS, &kobj_secret, "key"},
	{CACHES_SECRETS, &kobj_secret, "trustee-auth"},
	{CACHES_SECRETS, &kobj_secret, "trustee-token"},
	{CACHES_CONFIGMAPS, &kobj_configmap, "image-pcrs"},
	{CACHES_CONFIGMAPS, &kobj_configmap, "trustee-rv-data"},
	{CACHES_CONFIGMAPS, &kobj_configmap, "trustee-data"},
	{CACHES_CONFIGMAPS, &kobj_configmap, "trustee-policies"},
	{CACHES_SERVICES, &kobj_service, "kbs-service"},
	{CACHES_DEPLOYMENTS, &kobj_deployment, "trustee-deployment"},
};

static size_t at; /* of objects: the one that cannot be read */

static void spoil(void)
{
	char rv[24];
	struct err err = ERR_INIT;
	const char *name = objects[at].name;
	const char *uid = world_str(&w, objects[at].gvk, name, "metadata/uid");
	struct k8s_cache *cache = w.life->caches.cache[objects[at].kind];

	cr_assert(uid, "%s %s", objects[at].gvk->kind, name);
	snprintf(rv, sizeof(rv), "%llu", (unsigned long long)fake_api_rv(w.api) + 1);
	cr_assert_eq(
		k8s_cache_put_unreadable(cache, name, uid, rv, false, &err), 0, "%s", err.text);
	cr_assert(k8s_cache_find(cache, name)->unreadable || k8s_cache_find(cache, name)->immutable,
		"%s", name);
}

/* There is no version before it. */
static void spoil_first(void)
{
	k8s_cache_remove(w.life->caches.cache[objects[at].kind], objects[at].name, NULL);
	spoil();
	cr_assert(k8s_cache_find(w.life->caches.cache[objects[at].kind], objects[at].name)
			  ->unreadable);
}

/* It is small again. */
static void mend(void)
{
	fake_api_merge(w.api, objects[at].gvk, NS, objects[at].name,
		"{\"metadata\":{\"annotations\":{\"x/y\":\"z\"}}}");
	fake_api_merge(w.api, objects[at].gvk, NS, objects[at].name,
		"{\"metadata\":{\"annotations\":{\"x/y\":\"zz\"}}}");
	world_run(&w, 5000);
	cr_assert_not(k8s_cache_find(w.life->caches.cache[objects[at].kind], objects[at].name)
			      ->unreadable,
		"%s", objects[at].name);
}

static void up(void)
{
	nodes_up();
	world_cluster(&w, "tec", "{" ADDRESS "}");
	world_boot(&w, NULL);
	world_run(&w, 20000);
	world_machine(&w, "a", ID_A, "listener");
	world_run(&w, 2000);
	world_ak(&w, "key", test_pem[0], ID_A, "listener");
	commit("coreos", REF_A, false);
	world_run(&w, 60000);
}

static void down(void)
{
	w.arm = NULL;
	nodes_down();
}

TestSuite(ctl_unreadable, .fini = down, .timeout = 300);

/* Everything in the API and in Trustee that must not come or go. */
static char *state(void)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	char path[RATS_RESOURCE_PATH_MAX], name[300];

	for (size_t i = 0; i < ARRAY_LEN(objects); i++)
		strbuf_addf(&s, "%s %s %zu\n", objects[i].name,
			world_str(&w, objects[i].gvk, objects[i].name, "metadata/uid"),
			fake_api_count(w.api, objects[i].gvk, NS));
	rats_resource_path(ID_A, path);
	identity_of(test_pem[0], name);
	strbuf_addf(&s, "%s\n%s\n", fake_kbs_resource(kbs, path), fake_kbs_value(kbs, name));
	for (int i = 0; i < MODEL_RV_N_ARRAYS; i++)
		strbuf_addf(&s, "%s\n", fake_kbs_value(kbs, model_rv_array_names[i]));
	strbuf_addf(&s, "%s\n", fake_kbs_value(kbs, BOOT_A));
	strbuf_addf(&s, "%s\n%s\n", rv_data("reference-values.json"), rv_data("boot-sets.json"));
	return strbuf_steal(&s);
}

static void nothing_follows(void (*how)(void))
{
	for (at = 0; at < ARRAY_LEN(objects); at++) {
		cleanup_free char *before = NULL, *after = NULL, *mended = NULL;

		up();
		before = state();
		cr_assert_not(strstr(before, "(null)"), "%s", before);
		how();
		world_run(&w, 120000);
		after = state();
		cr_expect_str_eq(after, before, "%s: %s\n%s", objects[at].name, before, after);
		mend();
		world_run(&w, 60000);
		mended = state();
		cr_expect_str_eq(mended, before, "%s", objects[at].name);
		if (at + 1 < ARRAY_LEN(objects))
			down();
	}
}

Test(ctl_unreadable, nothing_follows_from_an_object_that_turns_so)
{
	nothing_follows(spoil);
}

static void restart(void)
{
	w.arm = spoil_first;
	world_kill(&w);
	world_boot(&w, NULL);
	w.arm = NULL;
}

Test(ctl_unreadable, nothing_follows_from_an_object_found_so_at_a_start)
{
	nothing_follows(restart);
}

/* Whatever else cannot be read, a Machine that is deleted ends in Trustee. */
Test(ctl_unreadable, keys_are_taken_back_all_the_same)
{
	char path[RATS_RESOURCE_PATH_MAX], name[300];

	rats_resource_path(ID_A, path);
	identity_of(test_pem[0], name);
	for (at = 0; at < ARRAY_LEN(objects); at++) {
		bool needed = objects[at].kind == CACHES_MACHINES ||
			      objects[at].kind == CACHES_CLUSTERS ||
			      strcmp(objects[at].name, "trustee-auth") == 0;

		if (needed)
			continue;
		up();
		restart();
		world_run(&w, 20000);
		fake_api_delete(w.api, &kobj_machine, NS, "a");
		world_run(&w, 60000);
		cr_expect_null(world_get(&w, &kobj_machine, "a"), "%s", objects[at].name);
		cr_expect_null(fake_kbs_resource(kbs, path), "%s", objects[at].name);
		if (objects[at].kind != CACHES_AKS)
			cr_expect_str_eq(fake_kbs_value(kbs, name), "null", "%s", objects[at].name);
		if (at + 1 < ARRAY_LEN(objects))
			down();
	}
}

Test(ctl_unreadable, the_cluster_says_which_one_it_is)
{
	const char *said;

	at = 8;
	up();
	spoil();
	world_run(&w, 20000);
	said = fake_api_condition(w.api, &kobj_cluster, NS, "tec", "Installed", "message");
	cr_expect(strstr(said, "image-pcrs is larger than 2 MiB and cannot be read"), "%s", said);
	mend();
	world_run(&w, 20000);
	cr_expect_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
}

Test(ctl_unreadable, an_event_says_so_once)
{
	struct ctl_unreadable *u;
	size_t n;

	at = 5;
	up();
	u = ctl_unreadable_new(&w.life->caches, w.life->events);
	n = fake_api_count(w.api, &kobj_event, NS);
	spoil();
	world_run(&w, 20000);
	cr_expect_geq(fake_api_count(w.api, &kobj_event, NS), n + 1);
	world_kill(&w);
	ctl_unreadable_free(u);
}
