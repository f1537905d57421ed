/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/mark.h"
#include "tec/caches/cluster.h"

static struct caches s;

static void up(void)
{
	s = (struct caches)CACHES_INIT;
	s.clusters = k8s_cache_new(&caches_kinds[CACHES_CLUSTERS].cache);
}

static void down(void)
{
	k8s_cache_free(s.clusters);
}

static void put(const char *name, const char *created, const char *more)
{
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"1\","
			  "\"creationTimestamp\":\"%s\"%s},\"spec\":{}}",
			name, name, created, more);
	cleanup_json struct json_object *o = json_tokener_parse(text);

	k8s_cache_put(s.clusters, o);
}

TestSuite(caches_cluster, .init = up, .fini = down);

Test(caches_cluster, the_oldest_is_served_then_by_name)
{
	put("0", "2026-01-02T03:04:06Z", "");
	put("b", "2026-01-02T03:04:05Z", "");
	put("a", "2026-01-02T03:04:05Z", "");
	cr_assert_str_eq(caches_cluster(&s)->obj.name, "a");
	k8s_cache_remove(s.clusters, "a", NULL);
	cr_assert_str_eq(caches_cluster(&s)->obj.name, "b");
}

Test(caches_cluster, one_being_deleted_is_not_served)
{
	put("a", "2026-01-02T03:04:05Z", ",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"");
	cr_assert_null(caches_cluster(&s));
}

Test(caches_cluster, none_is_served_while_one_cannot_be_read)
{
	struct err err = ERR_INIT;

	put("a", "2026-01-02T03:04:05Z", "");
	cr_assert_eq(k8s_cache_put_unreadable(s.clusters, "b", "b", "1", false, &err), 0);
	cr_assert(caches_cluster_unknown(&s));
	cr_assert_null(caches_cluster(&s));
	cr_assert_str_eq(caches_cluster_oldest(&s)->obj.name, "a");
}

Test(caches_cluster, one_whose_peer_may_decide_does_not)
{
	static const struct {
		enum caches_peer peer;
		const char *reason; /* of the condition Authority */
		bool decides;
	} cases[] = {
		{CACHES_PEER_FINE, "PeerUnknown", true},
		{CACHES_PEER_UNKNOWN, "Self", false},
		{CACHES_PEER_DECIDES, "Self", false},
		{CACHES_PEER_TOLD, "Self", true},
		{CACHES_PEER_TOLD, "PeerUnknown", false},
		{CACHES_PEER_TOLD, "PeerDecides", false},
	};
	static const char known[] =
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"a\",\"resourceVersion\":\"%zu\",\"creationTimestamp\":"
		"\"2026-01-02T03:04:05Z\",\"annotations\":{\"" MODEL_CLUSTER_FOLLOWED_MARK
		"\":\"%s\"}},\"spec\":{%s},\"status\":{\"conditions\":[{\"type\":\"Authority\",\"status\":\"True\","
		"\"reason\":\"%s\",\"message\":\"\",\"observedGeneration\":1,"
		"\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}]}}";
	cleanup_free char *mark = model_mark_text("a", "u");

	for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
		bool has_peer = i % 2;
		cleanup_free char *text = xasprintf(known, i + 1, mark,
			has_peer ? "\"follow\":{\"kubeconfigSecret\":\"s\"}" : "",
			cases[i / 2].reason);
		cleanup_json struct json_object *o = json_tokener_parse(text);

		k8s_cache_put(s.clusters, o);
		s.peer = cases[i / 2].peer;
		cr_assert_eq(caches_cluster_decides(&s), !has_peer || cases[i / 2].decides,
			"case %zu", i);
		cr_assert_eq(caches_cluster_authority(&s),
			caches_cluster_decides(&s) ? MODEL_AUTHORITY_SELF : MODEL_AUTHORITY_FROZEN);
	}
}
