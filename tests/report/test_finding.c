/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "report_testing.h"
#include "tec/report/finding.h"

#define DAY_S 86400

static struct report_findings f;

static void up(void)
{
	report_findings_init(&f);
}

static void down(void)
{
	report_findings_fini(&f);
}

TestSuite(report_finding, .init = up, .fini = down);

static void count(void *arg, struct json_object *finding)
{
	unsigned *n = arg;

	*n += json_get_str(finding, "check") != NULL;
}

Test(report_finding, each_is_one_safe_line)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;
	unsigned said = 0;

	f.said = count;
	f.arg = &said;
	report_found(&f, REPORT_IS_OK, "a", NULL, "%d", 1);
	report_found(&f, REPORT_IS_NO, "b", "do it", "bad\033[2J\nnews");
	report_found(&f, REPORT_IS_NOTE, "c", NULL, "x");
	cr_expect_eq(said, 3);
	cr_expect_eq(f.n_no, 1);
	report_finding_line(json_object_array_get_idx(f.all, 1), false, &line);
	cr_expect_str_eq(
		strbuf_str(&line), "no    b                    bad\\u001b[2J news -> do it");
	strbuf_reset(&line);
	report_finding_line(json_object_array_get_idx(f.all, 2), false, &line);
	cr_expect_str_eq(strbuf_str(&line), "note  c                    x");
	cr_expect_null(json_get_str(json_object_array_get_idx(f.all, 0), "next"));
}

Test(report_finding, a_certificate_that_ends_soon_is_named)
{
	static const struct {
		int64_t left_s;
		const char *is;
	} cases[] = {{31 * DAY_S, "ok"}, {29 * DAY_S, "note"}, {1, "note"}, {0, "no"}, {-1, "no"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		report_found_end(&f, "TLS", "s", NOW_S + cases[i].left_s, NOW_S);
		cr_expect_str_eq(
			json_get_str(json_object_array_get_idx(f.all, i), "is"), cases[i].is);
	}
}

Test(report_finding, what_the_operator_has_not_seen_is_named)
{
	cleanup_show_world struct report_world w;

	world_of(&w, "{\"cluster\":[{\"metadata\":{\"name\":\"c\",\"generation\":2},\"status\":{"
		     "\"conditions\":[{\"type\":\"Installed\",\"observedGeneration\":1}]}}]}");
	report_found_observed(&f, report_cluster(&w));
	cr_expect_eq(f.n_no, 1);
	json_add_int(json_get(report_cluster(&w), "metadata"), "generation", 1);
	report_found_observed(&f, report_cluster(&w));
	cr_expect_eq(f.n_no, 1);
}

/* The words "is" and "text" of the last finding. */
static void last_is(const char *is, const char *text)
{
	struct json_object *o = json_object_array_get_idx(f.all, json_len(f.all) - 1);

	cr_expect_str_eq(json_get_str(o, "is"), is);
	cr_expect_str_eq(json_get_str(o, "text"), text);
}

/* A Lease as the API returns it, renewed at NOW_S. */
static struct json_object *lease_of(const char *holder)
{
	struct json_object *spec =
		json_add_str(json_obj(), "renewTime", "2026-01-02T03:04:05.000000Z");

	json_add_int(json_add_str(spec, "holderIdentity", holder), "leaseDurationSeconds", 20);
	return json_add(json_obj(), "spec", spec);
}

Test(report_finding, a_leader_counts_until_its_lease_expires)
{
	cleanup_json struct json_object *held = lease_of("pod-1"), *released = lease_of(""),
					*empty = json_obj();
	struct err err = ERR_INIT;

	report_found_leader(&f, held, &err, NOW_S + 20);
	last_is("ok", "pod-1");
	report_found_leader(&f, held, &err, NOW_S + 21);
	last_is("no", "pod-1 renewed the Lease 21 s ago, and it has expired");
	report_found_leader(&f, released, &err, NOW_S);
	last_is("no", "no process holds the Lease tec-operator");
	report_found_leader(&f, empty, &err, NOW_S);
	last_is("no", "no process holds the Lease tec-operator");
	err_set(&err, ERR_DENIED, "forbidden");
	report_found_leader(&f, NULL, &err, NOW_S);
	last_is("note", "unknown: forbidden");
	err_clear(&err);
	err_set(&err, ERR_NOT_FOUND, "gone");
	report_found_leader(&f, NULL, &err, NOW_S);
	last_is("note",
		"no Lease found: tec-operator --standalone and --leader-elect=false have none");
}

Test(report_finding, one_ready_pod_is_enough)
{
	cleanup_json struct json_object *o = json_obj();

	report_found_pods(&f, o);
	last_is("no", "0 of 1 Pods are ready");
	json_add(o, "status", json_add_int(json_obj(), "readyReplicas", 1));
	json_add(o, "spec", json_add_int(json_obj(), "replicas", 2));
	report_found_pods(&f, o);
	last_is("ok", "1 of 2 Pods are ready");
}

Test(report_finding, a_kind_that_is_not_defined_is_named)
{
	cleanup_json struct json_object *list = json_obj();
	struct json_object *all = json_arr();

	json_add(list, "resources", all);
	json_push(all, json_add_str(json_obj(), "name", "trustedexecutionclusters"));
	json_push(all, json_add_str(json_obj(), "name", "machines"));
	cr_expect_not(report_found_kinds(&f, list));
	last_is("no", "the server has no resource attestationkeys, approvedimages");
	cr_expect_not(report_found_kinds(&f, NULL));
	json_push(all, json_add_str(json_obj(), "name", "attestationkeys"));
	json_push(all, json_add_str(json_obj(), "name", "approvedimages"));
	cr_expect(report_found_kinds(&f, list));
	last_is("ok", "all four are defined");
}

Test(report_finding, an_image_counts_only_in_force)
{
	cleanup_show_world struct report_world w;

	world_of(&w, "{\"image\":[{" META("a", "1") "},{" META("b", "2") "}]}");
	report_found_images(&f, &w);
	last_is("no", "0 of 2 approved images are in force");
	json_add(w.list[REPORT_IMAGE].v[0], "status",
		json_add(json_obj(), "conditions", json_arr()));
	json_push(json_get_arr(w.list[REPORT_IMAGE].v[0], "status/conditions"),
		json_add_str(json_add_str(json_obj(), "type", "Committed"), "status", "True"));
	report_found_images(&f, &w);
	last_is("ok", "1 of 2 approved images are in force");
	report_world_problem(&w, REPORT_IMAGE, "forbidden");
	report_found_images(&f, &w);
	cr_expect_eq(json_len(f.all), 2, "an unreadable list says nothing");
}
