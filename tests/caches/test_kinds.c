/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/k8s/split.h"
#include "tec/model/plain.h"
#include "tec/caches/caches.h"

static void fill(struct k8s_cache *c)
{
	k8s_cache_relist_begin(c);
	k8s_cache_relist_end(c);
}

Test(caches_kinds, each_role_waits_for_what_it_needs)
{
	struct caches s = CACHES_INIT;

	cr_assert(caches_filled(&s, CACHES_FOR_ALL), "what a role does not have is not waited for");
	for (int i = 0; i < CACHES_N_KINDS; i++)
		s.cache[i] = k8s_cache_new(&caches_kinds[i].cache);
	fill(s.clusters);
	fill(s.machines);
	cr_assert_not(caches_filled(&s, CACHES_FOR_LISTENERS));
	fill(s.aks);
	cr_assert(caches_filled(&s, CACHES_FOR_LISTENERS));
	cr_assert_not(caches_filled(&s, CACHES_FOR_REVOKING));
	fill(s.secrets);
	cr_assert(caches_filled(&s, CACHES_FOR_REVOKING));
	cr_assert_not(caches_filled(&s, CACHES_FOR_ALL));
	for (int i = 0; i < CACHES_N_KINDS; i++)
		if (!k8s_cache_filled(s.cache[i]))
			fill(s.cache[i]);
	cr_assert(caches_filled(&s, CACHES_FOR_ALL));
	for (int i = 0; i < CACHES_N_KINDS; i++)
		k8s_cache_free(s.cache[i]);
}

static const char deployment[] =
	"{\"metadata\":{\"name\":\"d\",\"uid\":\"u\",\"resourceVersion\":\"7\",\"generation\":3,\"labels\":{"
	"\"app\":\"kbs\"},\"annotations\":{\"trusted-execution-clusters.io/render-hash\":\"h\"},"
	"\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"K\",\"name\":\"k\",\"uid\":\"o\","
	"\"controller\":true}]},\"spec\":{\"progressDeadlineSeconds\":600,\"replicas\":4,\"template\":"
	"{\"spec\":{\"replicas\":9}}},\"status\":{\"availableReplicas\":8,\"conditions\":[{}],"
	"\"observedGeneration\":2,\"readyReplicas\":1,\"replicas\":5,\"updatedReplicas\":3}}";

static int parse(void *arg, const char *item, size_t len, struct err *err)
{
	*(struct json_object **)arg = json_parse(item, len, &json_limits_api, err);
	return 0;
}

static struct kobj *extract(const struct kobj_keep *keep, struct json_object **o)
{
	struct k8s_split *s = k8s_split_new(K8S_SPLIT_OBJECT, keep, false, parse, o);
	struct err err = ERR_INIT;
	struct kobj *k;

	cr_assert_eq(k8s_split_feed(s, deployment, sizeof(deployment) - 1, &err), 0);
	cr_assert_eq(k8s_split_end(s, &err), 0);
	k8s_split_free(s);
	k = caches_kinds[CACHES_DEPLOYMENTS].cache.extract(*o, &err);
	cr_assert(k, "%s", err.text);
	return k;
}

/* The answers to calls are cut less: their shape must be the same. */
Test(caches_kinds, what_is_cut_out_of_a_deployment_is_not_read)
{
	cleanup_json struct json_object *cut = NULL, *whole = NULL;
	struct kobj *a = extract(caches_kinds[CACHES_DEPLOYMENTS].gvk->keep, &cut);
	struct kobj *b = extract(kobj_deployment.keep, &whole);
	const struct model_plain *p = (const struct model_plain *)a,
				 *q = (const struct model_plain *)b;

	cr_assert_null(json_get(cut, "spec/template"));
	cr_assert(json_get(whole, "spec/template"));
	cr_expect(p->wanted == 4 && p->seen == 2 && p->ready == 1 && p->updated == 3 &&
		  p->replicas == 5);
	cr_expect_str_eq(p->owner_uid, "o");
	cr_expect_str_eq(p->render_hash, "h");
	cr_expect(p->shape != 0 && p->shape == q->shape);
	kobj_unref(a);
	kobj_unref(b);
}
