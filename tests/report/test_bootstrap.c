/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "report_testing.h"
#include "tec/report/bootstrap.h"

#define GOOD                                                                                       \
	COND("Installed", "True", "InstallationCompleted", "")                                     \
	"," COND("KnownTrusteeAddress", "True", "AddressFound", "") "," COND(                      \
		"RegistrationOpen", "True", "Open", "") "," COND("KeysIsolated", "True",           \
		"PerMachine", "") "," COND("Authority", "True", "Self", "") ","
#define SYNCED COND("TrusteeSynced", "True", "Synced", "")
#define ADDRESSES                                                                                  \
	"\"publicTrusteeAddr\":\"t.example\",\"publicRegisterAddr\":\"r.example\","                \
	"\"publicAttestationKeyRegisterAddr\":\"a.example\""
#define SERVERS ",\"trusteeServers\":[{\"address\":\"kbs.ns.svc\",\"caSecret\":\"ca\"}]"
#define IMAGE(status, reason)                                                                      \
	"{" META("i", "i") ",\"status\":{\"conditions\":[" COND(                                   \
		"Committed", status, reason, "Why.") "]}}"

static struct report_findings f;

static void judge(const char *spec, const char *conditions, const char *images)
{
	cleanup_free char *text = xasprintf(
		"{\"cluster\":[{" META("tec",
			"u") ",\"spec\":{%s},\"status\":{\"conditions\":[%s]}}],\"image\":[%s]}",
		spec, conditions, images);
	cleanup_show_world struct report_world w;
	cleanup_kobj const struct kobj *o = NULL;
	struct err err = ERR_INIT;

	report_findings_fini(&f);
	report_findings_init(&f);
	world_of(&w, text);
	o = model_cluster_extract(report_cluster(&w), &err);
	cr_assert(o, "%s", err.text);
	report_bootstrap(&w, model_cluster(o), &f);
}

static void down(void)
{
	report_findings_fini(&f);
}

TestSuite(report_bootstrap, .fini = down);

/* How the line is that has these words; "": there is none. */
static const char *is(const char *words)
{
	for (size_t i = 0; i < json_object_array_length(f.all); i++) {
		struct json_object *o = json_object_array_get_idx(f.all, i);

		if (strstr(json_get_str(o, "text"), words) ||
			str_eq(json_get_str(o, "check"), words))
			return json_get_str(o, "is");
	}
	return "";
}

Test(report_bootstrap, an_anchor_that_is_ready)
{
	judge(ADDRESSES SERVERS, GOOD SYNCED, IMAGE("True", "ValuesKnown"));
	cr_expect_eq(f.n_no, 0);
	for (size_t i = 0; i < json_object_array_length(f.all); i++)
		cr_expect_str_eq(json_get_str(json_object_array_get_idx(f.all, i), "is"), "ok");
	cr_expect_str_eq(is("kbs.ns.svc, CA in Secret ca"), "ok");
	cr_expect_str_eq(is("limits: 50000 Machines, 10000 pending, 4 waiting keys"), "ok");
}

Test(report_bootstrap, what_is_missing_is_named)
{
	judge("", "", "");
	cr_expect_str_eq(is("TrusteeSynced"), "no", "never confirmed");
	cr_expect_str_eq(is("publicTrusteeAddr is not set"), "no");
	cr_expect_str_eq(is("publicRegisterAddr is not set: new nodes"), "no");
	cr_expect_str_eq(is("publicAttestationKeyRegisterAddr is not set"), "no");
	cr_expect_str_eq(is("no image is approved"), "no");
	cr_expect_str_eq(is("servers"), "");
	judge(ADDRESSES, GOOD COND("TrusteeSynced", "False", "NotAvailable", "Away."),
		IMAGE("True", "ValuesKnown") "," IMAGE("False", "ComputationFailed"));
	cr_expect_eq(f.n_no, 2);
	cr_expect_str_eq(is("NotAvailable: Away."), "no");
	cr_expect_str_eq(is("i is in force"), "ok");
	cr_expect_str_eq(is("i is not in force: ComputationFailed: Why."), "no");
	cr_expect_str_eq(is("nodes installed now know only this Trustee"), "note");
	judge("\"publicAttestationKeyRegisterAddr\":\"a.example\"", GOOD SYNCED, "");
	cr_expect_str_eq(is("publicRegisterAddr is not set: using the host of"), "note");
}

Test(report_bootstrap, servers_inside_of_what_the_nodes_form)
{
	judge("\"publicTrusteeAddr\":\"kbs-service:8080\"" SERVERS, GOOD SYNCED, "");
	cr_expect_str_eq(is("nodes know only cluster-internal server names"), "note");
	judge("\"publicTrusteeAddr\":\"kbs-service:8080\",\"trusteeServers\":["
	      "{\"address\":\"anchor.example\"}]",
		GOOD SYNCED, "");
	cr_expect_str_eq(is("servers"), "");
	cr_expect_str_eq(is("anchor.example: nodes use plain HTTP"), "note");
}

Test(report_bootstrap, what_people_have_to_do_for_each_node)
{
	judge(ADDRESSES ",\"registration\":{\"mode\":\"Manual\",\"approval\":\"Manual\","
			"\"machineLimit\":7}",
		GOOD SYNCED, "");
	cr_expect_str_eq(is("mode Manual, approval Manual; limits: 7 Machines"), "note");
	cr_expect_str_eq(is("approval"), "note");
}

Test(report_bootstrap, what_the_addresses_answer)
{
	struct report_endpoint e = {.name = "Trustee",
		.method = "GET",
		.expected = 401,
		.secret = "s",
		.url = (char *)"https://t/x",
		.host = (char *)"t"};
	struct err none = ERR_INIT, tls = ERR_INIT, away = ERR_INIT;

	err_set(&tls, ERR_DENIED, "self-signed");
	err_set(&away, ERR_TRANSIENT, "refused");
	report_findings_init(&f);
	report_bootstrap_answer(&e, 401, &none, &f);
	report_bootstrap_host(&e, true, &f);
	cr_expect_eq(f.n_no, 0);
	report_bootstrap_answer(&e, 503, &none, &f);
	report_bootstrap_answer(&e, 404, &none, &f);
	report_bootstrap_answer(&e, 0, &tls, &f);
	report_bootstrap_answer(&e, 0, &away, &f);
	report_bootstrap_host(&e, false, &f);
	cr_expect_eq(f.n_no, 5);
	cr_expect_str_eq(is("https://t/x: HTTP 404, expected 401"), "no");
	cr_expect_str_eq(is("https://t/x: self-signed"), "no");
	cr_expect_str_eq(is("the certificate in Secret s is not valid for t"), "no");
}
