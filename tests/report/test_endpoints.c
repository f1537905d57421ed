/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "report_testing.h"
#include "tec/report/endpoints.h"

#define CA "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

static struct report_endpoint e[REPORT_N_ENDPOINTS];
static const struct kobj *cluster;

static void of(const char *spec)
{
	cleanup_free char *text = xasprintf("{" META("tec", "u") ",\"spec\":%s}", spec);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert(o, "%s", err.text);
	cluster = model_cluster_extract(o, &err);
	cr_assert(cluster, "%s", err.text);
	report_endpoints(model_cluster(cluster), e);
}

static void down(void)
{
	report_endpoints_fini(e);
	if (cluster)
		kobj_unref(cluster);
}

TestSuite(report_endpoints, .fini = down);

Test(report_endpoints, are_where_the_cluster_says)
{
	of("{\"publicTrusteeAddr\":\"kbs.example:8080\",\"publicRegisterAddr\":\"[fd00::1]\","
	   "\"publicAttestationKeyRegisterAddr\":\"[fd00::2]:9\",\"registerServerSecret\":\"r\","
	   "\"attestationKeyRegisterSecret\":\"a\"}");
	cr_expect_str_eq(e[REPORT_REGISTRATION].url, "https://[fd00::1]:8000/ignition");
	cr_expect_str_eq(e[REPORT_REGISTRATION].host, "fd00::1");
	cr_expect_str_eq(e[REPORT_REGISTRATION].method, "HEAD", "a GET would make a Machine");
	cr_expect_str_eq(e[REPORT_KEY_REGISTRATION].url, "https://[fd00::2]:9/register-ak");
	cr_expect_str_eq(e[REPORT_KEY_REGISTRATION].secret, "a");
	cr_expect(str_starts(e[REPORT_KBS].url, "http://kbs.example:8080/kbs/v0/resource/"));
	cr_expect_str_eq(e[REPORT_KBS].host, "kbs.example");
	cr_expect(report_endpoint_answers(&e[REPORT_KBS], 401));
	cr_expect(report_endpoint_answers(&e[REPORT_KBS], 429));
	cr_expect_not(report_endpoint_answers(&e[REPORT_KBS], 404));
	cr_expect_not(report_endpoint_answers(&e[REPORT_REGISTRATION], 200));
}

Test(report_endpoints, without_addresses_there_are_none)
{
	of("{\"publicAttestationKeyRegisterAddr\":\"ak.example:8001\",\"registerServerPort\":81}");
	cr_expect_str_eq(e[REPORT_REGISTRATION].url, "http://ak.example:81/ignition");
	cr_expect_str_eq(e[REPORT_REGISTRATION].host, "ak.example");
	cr_expect(!e[REPORT_KBS].url && !e[REPORT_KBS].host);
	down();
	of("{}");
	for (int i = 0; i < REPORT_N_ENDPOINTS; i++)
		cr_expect(!e[i].url && !e[i].host);
}

Test(report_endpoints, the_script_asks_all_and_holds_their_cas)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;

	of("{\"publicTrusteeAddr\":\"kbs.example\",\"publicRegisterAddr\":\"r.example\","
	   "\"publicAttestationKeyRegisterAddr\":\"a.example\",\"trusteeSecret\":\"t\"}");
	strbuf_adds(&e[REPORT_KBS].ca_pem, CA);
	cr_assert_eq(report_endpoints_script(e, &out, &err), 0, "%s", err.text);
	cr_expect(str_starts(strbuf_str(&out), "#!/bin/sh\n"));
	cr_expect(strstr(strbuf_str(&out),
		"\nlook 'registration' 405 'http://r.example:8000/ignition' -I <<'END'\nEND\n"));
	cr_expect(strstr(strbuf_str(&out),
		"\nlook 'key registration' 405 'http://a.example/register-ak' <<'END'\nEND\n"));
	cr_expect(strstr(strbuf_str(&out), "/bootstrap/check' <<'END'\n" CA "END\nexit $failed\n"));
}

Test(report_endpoints, nothing_of_an_address_is_run)
{
	static const char *const bad[] = {
		"a'b", "a;b", "a$(b)", "a`b`", "a&b", "a|b", "a*b", "a\\nb"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		cleanup_free char *spec = xasprintf("{\"publicTrusteeAddr\":\"%s\"}", bad[i]);
		cleanup_strbuf struct strbuf out = STRBUF_INIT;
		struct err err = ERR_INIT;

		of(spec);
		if (e[REPORT_KBS].url)
			cr_expect_eq(report_endpoints_script(e, &out, &err), -1, "%s", bad[i]);
		cr_expect_null(strstr(strbuf_str(&out), bad[i]));
		down();
	}
	cluster = NULL;
	memset(e, 0, sizeof(e));
}

Test(report_endpoints, names_that_only_pods_know)
{
	static const char *const inside[] = {"kbs-service", "kbs-service:8080", "kbs.ns.svc",
		"kbs.ns.svc.:80", "kbs.ns.svc.cluster.local", "x.cluster.local:1"};
	static const char *const outside[] = {
		"kbs.example.org", "10.0.0.1:8080", "[fd00::1]:1", "localhost", "svc.example", ""};

	for (size_t i = 0; i < ARRAY_LEN(inside); i++)
		cr_expect(report_inside_only(inside[i]), "%s", inside[i]);
	for (size_t i = 0; i < ARRAY_LEN(outside); i++)
		cr_expect_not(report_inside_only(outside[i]), "%s", outside[i]);
}
