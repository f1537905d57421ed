/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/kobj/subset.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/kobj/meta.h"

static struct json_object *parse(const char *text)
{
	struct err err = ERR_INIT;
	struct json_object *o = json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert_not_null(o, "%s: %s", err.text, text);
	return o;
}

static void expect(const char *want, const char *have, bool result)
{
	cleanup_json struct json_object *w = parse(want), *h = parse(have);

	cr_expect_eq(kobj_subset(w, h), result, "%s in %s", want, have);
}

Test(kobj_subset, members_values_and_numbers)
{
	static const struct {
		const char *want, *have;
		bool result;
	} table[] = {
		{"{}", "{\"a\":1}", true},
		{"{\"a\":1}", "{\"a\":1,\"b\":2}", true},
		{"{\"a\":1}", "{\"b\":2}", false},
		{"{\"a\":1}", "{\"a\":2}", false},
		{"{\"a\":1}", "{\"a\":1.0}", true},
		{"{\"a\":8080}", "{\"a\":\"8080\"}", true},
		{"{\"a\":\"8080\"}", "{\"a\":8080}", true},
		{"{\"a\":1.5}", "{\"a\":1.5}", true},
		{"{\"a\":18446744073709551615}", "{\"a\":18446744073709551615}", true},
		{"{\"a\":-1}", "{\"a\":1}", false},
		{"{\"a\":true}", "{\"a\":\"true\"}", false},
		{"{\"a\":true}", "{\"a\":1}", false},
		{"{\"a\":\"x\"}", "{\"a\":\"xy\"}", false},
		{"{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1,\"c\":2}}", true},
		{"{\"a\":{\"b\":1}}", "{\"a\":[1]}", false},
		{"{\"a\":[1]}", "{\"a\":{\"b\":1}}", false},
		{"{\"a\":null}", "{}", true},
		{"{\"a\":null}", "{\"a\":1}", false},
		{"{\"a\":1}", "{\"a\":null}", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		expect(table[i].want, table[i].have, table[i].result);
}

Test(kobj_subset, zero_values_that_servers_drop)
{
	expect("{\"readOnly\":false}", "{}", true);
	expect("{\"weight\":0}", "{}", true);
	expect("{\"clusterIP\":\"\"}", "{}", true);
	expect("{\"args\":[]}", "{}", true);
	expect("{\"emptyDir\":{}}", "{}", false);
	expect("{\"readOnly\":false}", "{\"readOnly\":true}", false);
	expect("{\"labels\":{\"a\":\"\"}}", "{\"labels\":{}}", false);
	expect("{\"data\":{\"a\":\"\"}}", "{\"data\":{\"b\":\"x\"}}", false);
	expect("{\"matchLabels\":{\"a\":\"\"}}", "{\"matchLabels\":{\"a\":\"\"}}", true);
}

Test(kobj_subset, plain_lists_are_equal_element_by_element)
{
	expect("{\"args\":[\"a\",\"b\"]}", "{\"args\":[\"a\",\"b\"]}", true);
	expect("{\"args\":[\"a\",\"b\"]}", "{\"args\":[\"b\",\"a\"]}", false);
	expect("{\"args\":[\"a\"]}", "{\"args\":[\"a\",\"b\"]}", false);
	expect("{\"args\":[]}", "{\"args\":[\"b\"]}", false);
	expect("{\"rules\":[{\"verbs\":[\"get\"]}]}",
		"{\"rules\":[{\"verbs\":[\"get\"],\"apiGroups\":[\"\"]}]}", true);
	expect("{\"finalizers\":[\"a/b\"]}", "{\"finalizers\":[\"x\",\"a/b\"]}", true);
	expect("{\"finalizers\":[\"a/b\"]}", "{\"finalizers\":[\"x\"]}", false);
	expect("{\"finalizers\":[{\"n\":1},null]}", "{\"finalizers\":[null,{\"n\":1}]}", true);
}

Test(kobj_subset, keyed_lists_ignore_order_and_other_entries)
{
	expect("{\"env\":[{\"name\":\"A\",\"value\":\"1\"}]}",
		"{\"env\":[{\"name\":\"B\",\"value\":\"2\"},{\"name\":\"A\",\"value\":\"1\"}]}",
		true);
	expect("{\"env\":[{\"name\":\"A\",\"value\":\"1\"}]}",
		"{\"env\":[{\"name\":\"A\",\"value\":\"2\"}]}", false);
	expect("{\"env\":[{\"name\":\"A\"}]}", "{\"env\":[{\"name\":\"B\"}]}", false);
	/* one volume mounted twice: the key is the path, not the name */
	expect("{\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/b\"}]}",
		"{\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/a\"},{\"name\":\"v\",\"mountPath\":\"/b\"}]}",
		true);
	expect("{\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/b\"}]}",
		"{\"volumeMounts\":[{\"name\":\"w\",\"mountPath\":\"/b\"}]}", false);
	expect("{\"ports\":[{\"port\":80}]}",
		"{\"ports\":[{\"port\":80,\"protocol\":\"UDP\"},{\"port\":80,\"protocol\":\"TCP\"}]}",
		true);
	expect("{\"ports\":[{\"port\":80}]}", "{\"ports\":[{\"port\":80,\"protocol\":\"UDP\"}]}",
		false);
	expect("{\"ownerReferences\":[{\"uid\":\"u\",\"name\":\"n\"}]}",
		"{\"ownerReferences\":[{\"uid\":\"v\",\"name\":\"n\"}]}", false);
	expect("{\"conditions\":[{\"type\":\"A\",\"status\":\"True\"}]}",
		"{\"conditions\":[{\"type\":\"B\",\"status\":\"True\"},{\"type\":\"A\",\"status\":\"True\",\"reason\":\"r\"}]}",
		true);
}

/* What we would render, and what an API server with defaulting gives back for it. */
#define DEPLOYMENT_WANT                                                                                                      \
	"{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"trustee-deployment\",\"labels\":{"     \
	"\"app\":\"kbs\"},\"ownerReferences\":[{\"uid\":\"u1\",\"controller\":true}]},\"spec\":{\"replicas\":1,"             \
	"\"selector\":{\"matchLabels\":{\"app\":\"kbs\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"kbs\"}},"        \
	"\"spec\":{\"automountServiceAccountToken\":false,\"securityContext\":{\"runAsNonRoot\":true,\"fsGroup\":1001},"     \
	"\"initContainers\":[{\"name\":\"seed\",\"image\":\"op:1\",\"args\":[\"--seed\",\"/a\",\"/b\"],"                     \
	"\"volumeMounts\":[{\"name\":\"storage\",\"mountPath\":\"/opt/s\"}]}],"                                              \
	"\"containers\":[{\"name\":\"kbs\",\"image\":\"kbs:1\",\"command\":[\"/usr/local/bin/kbs\"],\"env\":[{\"name\":"     \
	"\"RUST_LOG\",\"value\":\"info\"},{\"name\":\"EMPTY\",\"value\":\"\"}],\"ports\":[{\"containerPort\":8080}],"        \
	"\"readinessProbe\":{\"tcpSocket\":{\"port\":8080}},\"resources\":{\"requests\":{\"cpu\":\"100m\"}},"                \
	"\"volumeMounts\":[{\"name\":\"storage\",\"mountPath\":\"/opt/s\"},{\"name\":\"data\",\"mountPath\":\"/etc/kbs\","   \
	"\"readOnly\":true}]}],\"volumes\":[{\"name\":\"storage\",\"emptyDir\":{\"medium\":\"Memory\"}},{\"name\":\"data\"," \
	"\"configMap\":{\"name\":\"trustee-data\",\"items\":[{\"key\":\"k\",\"path\":\"p\"}]}}]}}}}"
#define DEPLOYMENT_HAVE                                                                                                                  \
	"{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"annotations\":{\"deployment.kubernetes.io/revision\":"      \
	"\"1\"},\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"generation\":1,\"labels\":{\"app\":\"kbs\"},\"managedFields\":null,"    \
	"\"name\":\"trustee-deployment\",\"namespace\":\"a\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\",\"blockOwnerDeletion\":true," \
	"\"controller\":true,\"kind\":\"T\",\"name\":\"t\",\"uid\":\"u1\"}],\"resourceVersion\":\"7\",\"uid\":\"d1\"},"                  \
	"\"spec\":{\"progressDeadlineSeconds\":600,\"replicas\":1,\"revisionHistoryLimit\":10,\"selector\":{\"matchLabels\":{"           \
	"\"app\":\"kbs\"}},\"strategy\":{\"rollingUpdate\":{\"maxSurge\":\"25%%\",\"maxUnavailable\":\"25%%\"},\"type\":"                \
	"\"RollingUpdate\"},\"template\":{\"metadata\":{\"creationTimestamp\":null,\"labels\":{\"app\":\"kbs\"}},\"spec\":{"             \
	"\"automountServiceAccountToken\":false,\"containers\":[{\"name\":\"injected\",\"image\":\"mesh:2\"},{\"command\":["             \
	"\"/usr/local/bin/kbs\"],\"env\":[{\"name\":\"RUST_LOG\",\"value\":\"%s\"},{\"name\":\"EMPTY\"}],\"image\":\"kbs:1\","           \
	"\"imagePullPolicy\":\"IfNotPresent\",\"name\":\"kbs\",\"ports\":[{\"containerPort\":8080,\"protocol\":\"TCP\"}],"               \
	"\"readinessProbe\":{\"failureThreshold\":3,\"periodSeconds\":10,\"successThreshold\":1,\"tcpSocket\":{\"port\":8080},"          \
	"\"timeoutSeconds\":1},\"resources\":{\"requests\":{\"cpu\":\"100m\"}},\"terminationMessagePath\":\"/dev/termination-log\","     \
	"\"terminationMessagePolicy\":\"File\",\"volumeMounts\":[{\"mountPath\":\"/opt/s\",\"name\":\"storage\"},{\"mountPath\":"        \
	"\"/etc/kbs\",\"name\":\"data\",\"readOnly\":true}]}],\"dnsPolicy\":\"ClusterFirst\",\"initContainers\":[{\"args\":["            \
	"\"--seed\",\"/a\",\"/b\"],\"image\":\"op:1\",\"imagePullPolicy\":\"IfNotPresent\",\"name\":\"seed\",\"resources\":{},"          \
	"\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\",\"volumeMounts\":[{\"mountPath\":"    \
	"\"/opt/s\",\"name\":\"storage\"}]}],\"restartPolicy\":\"Always\",\"schedulerName\":\"default-scheduler\","                      \
	"\"securityContext\":{\"fsGroup\":1001,\"runAsNonRoot\":true},\"terminationGracePeriodSeconds\":30,\"volumes\":[{"               \
	"\"emptyDir\":{\"medium\":\"Memory\"},\"name\":\"storage\"},{\"configMap\":{\"defaultMode\":420,\"items\":[{\"key\":\"k\","      \
	"\"path\":\"p\"}],\"name\":\"trustee-data\"},\"name\":\"data\"}]}}},\"status\":{\"replicas\":1}}"

Test(kobj_subset, a_deployment_with_the_servers_defaults_is_what_we_rendered)
{
	cleanup_free char *same = xasprintf(DEPLOYMENT_HAVE, "info"),
			  *edited = xasprintf(DEPLOYMENT_HAVE, "debug");

	expect(DEPLOYMENT_WANT, same, true);
	expect(DEPLOYMENT_WANT, edited, false);
}

Test(kobj_subset, a_service_with_the_servers_defaults_is_what_we_rendered)
{
#define SERVICE_HAVE(target)                                                                                                         \
	"{\"metadata\":{\"name\":\"kbs-service\",\"uid\":\"s\"},\"spec\":{\"clusterIP\":\"10.0.0.7\",\"clusterIPs\":[\"10.0.0.7\"]," \
	"\"internalTrafficPolicy\":\"Cluster\",\"ipFamilies\":[\"IPv4\"],\"ipFamilyPolicy\":\"SingleStack\",\"ports\":[{\"name\":"   \
	"\"kbs-port\",\"port\":8080,\"protocol\":\"TCP\",\"targetPort\":" target                                                     \
	"}],\"selector\":{\"app\":\"kbs\"},\"sessionAffinity\":\"None\",\"type\":\"ClusterIP\"},\"status\":{\"loadBalancer\":{}}}"
	static const char want[] =
		"{\"metadata\":{\"name\":\"kbs-service\"},\"spec\":{\"type\":\"ClusterIP\",\"selector\":{\"app\":\"kbs\"},"
		"\"ports\":[{\"name\":\"kbs-port\",\"port\":8080,\"targetPort\":8080}]}}";

	expect(want, SERVICE_HAVE("8080"), true);
	expect(want, SERVICE_HAVE("8081"), false);
}

Test(kobj_subset, the_render_hash_depends_on_content_only)
{
	cleanup_json struct json_object *a = parse("{\"kind\":\"X\",\"spec\":{\"b\":1,\"a\":2}}");
	cleanup_json struct json_object *b = parse("{\"spec\":{\"a\":2,\"b\":1},\"kind\":\"X\"}");
	cleanup_json struct json_object *c = parse(
		"{\"kind\":\"X\",\"spec\":{\"b\":1,\"a\":3},\"metadata\":{\"annotations\":{\"k\":\"v\"}}}");
	cleanup_free char *first = NULL;

	kobj_render_hash_set(a);
	kobj_render_hash_set(b);
	first = xstrdup(kobj_annotation(a, KOBJ_RENDER_HASH_ANNOTATION));
	cr_assert_not_null(first);
	cr_expect_eq(strlen(first), 16);
	cr_expect_str_eq(kobj_annotation(b, KOBJ_RENDER_HASH_ANNOTATION), first);
	json_add_int(json_get_obj(b, "spec"), "c", 1);
	kobj_render_hash_set(b);
	cr_expect_str_neq(kobj_annotation(b, KOBJ_RENDER_HASH_ANNOTATION), first);
	kobj_render_hash_set(c);
	cr_expect_str_eq(kobj_annotation(c, "k"), "v");
	free(first);
	first = xstrdup(kobj_annotation(c, KOBJ_RENDER_HASH_ANNOTATION));
	kobj_render_hash_set(c);
	cr_expect_str_eq(kobj_annotation(c, KOBJ_RENDER_HASH_ANNOTATION), first,
		"setting it again changes nothing");
}
