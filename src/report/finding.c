/* SPDX-License-Identifier: MIT */
/*
 * Findings are JSON objects, so that -o json prints exactly what people read. The words of "is" are
 * part of that format:
 *
 *   {"check": "limits", "is": "note", "text": "mode Token, ...", "next": "give new nodes a token, ..."}
 *   note  limits               mode Token, ... -> give new nodes a token, ...
 */
#include "config.h"

#include "tec/report/finding.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/gvk.h"
#include "tec/report/advice.h"
#include "tec/report/text.h"

#define DAY_S     86400
#define SOON_DAYS 30

static const char *const words[] = {"ok", "note", "no"};

void report_findings_init(struct report_findings *f)
{
	*f = (struct report_findings){.all = json_arr()};
}

void report_findings_fini(struct report_findings *f)
{
	json_object_put(f->all);
	f->all = NULL;
}

/* The text is not escaped here: JSON keeps it as it is, and report_finding_line() escapes it. */
void report_found(struct report_findings *f, enum report_is is, const char *what, const char *next,
	const char *fmt, ...)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct json_object *o;
	va_list ap;

	va_start(ap, fmt);
	strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	f->n_no += is == REPORT_IS_NO;
	o = json_add_str(json_add_str(json_obj(), "check", what), "is", words[is]);
	json_add_str(json_add_str(o, "text", strbuf_str(&text)), "next", next);
	json_push(f->all, o);
	if (f->said)
		f->said(f->arg, o);
}

/* A finding without a known word counts as "no": the loop stops at the last of them. */
void report_finding_line(struct json_object *finding, bool colours, struct strbuf *out)
{
	static const enum report_colour of[] = {REPORT_GOOD, REPORT_WAITS, REPORT_BAD};
	const char *is = json_get_str(finding, "is"), *what = json_get_str(finding, "check"),
		   *next = json_get_str(finding, "next");
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(words) && !str_eq(is, words[i]))
		i++;
	report_text(out, colours, of[i], words[i]);
	strbuf_addf(out, "%*s%-20s ", (int)(6 - strlen(words[i])), "", what);
	report_safe(out, json_get_str(finding, "text"));
	if (next) {
		strbuf_adds(out, " -> ");
		report_safe(out, next);
	}
}

/* ---- findings shared by several checks */

/* A condition that resolves without action is a note and does not fail the check. */
void report_found_condition(
	struct report_findings *f, struct json_object *cluster, const char *type)
{
	struct json_object *c = report_condition(cluster, type);
	const char *reason = json_get_str(c, "reason"), *message = json_get_str(c, "message");
	cleanup_strbuf struct strbuf next = STRBUF_INIT;
	bool good = str_eq(json_get_str(c, "status"), "True");

	if (!c)
		return;
	if (!good)
		report_advice(REPORT_CLUSTER, reason, report_name(cluster), &next);
	report_found(f,
		good                                    ? REPORT_IS_OK
		: report_passes(REPORT_CLUSTER, reason) ? REPORT_IS_NOTE
							: REPORT_IS_NO,
		type, next.len ? strbuf_str(&next) : NULL, "%s: %s", reason ? reason : "-",
		message ? message : "");
}

/* A Lease that was not renewed within its duration has no holder, whatever it says; but a wrong
 * clock looks the same. */
void report_found_leader(
	struct report_findings *f, struct json_object *lease, const struct err *why, int64_t now_s)
{
	const char *text = json_get_str(lease, "spec/renewTime"),
		   *holder = json_get_str(lease, "spec/holderIdentity");
	int64_t us, age;

	if (!lease && why->kind == ERR_NOT_FOUND)
		report_found(f, REPORT_IS_NOTE, "leader", NULL,
			"no Lease found: tec-operator --standalone and --leader-elect=false have none");
	else if (!lease)
		report_found(f, REPORT_IS_NOTE, "leader", NULL, "unknown: %s", why->text);
	else if (!holder || !*holder || !text || clock_parse(text, &us) < 0)
		report_found(f, REPORT_IS_NO, "leader",
			"kubectl get pods: check that an operator runs",
			"no process holds the Lease tec-operator");
	else if ((age = now_s - us / 1000000) >
		 json_get_int(lease, "spec/leaseDurationSeconds", 15))
		report_found(f, REPORT_IS_NO, "leader",
			"kubectl get pods: check that an operator runs; also compare the clocks",
			"%s renewed the Lease %" PRId64 " s ago, and it has expired", holder, age);
	else
		report_found(f, REPORT_IS_OK, "leader", NULL, "%s", holder);
}

void report_found_pods(struct report_findings *f, struct json_object *deployment)
{
	int64_t ready = json_get_int(deployment, "status/readyReplicas", 0);

	report_found(f, ready > 0 ? REPORT_IS_OK : REPORT_IS_NO, "operator",
		ready > 0 ? NULL : "kubectl describe deployment tec-operator",
		"%" PRId64 " of %" PRId64 " Pods are ready", ready,
		json_get_int(deployment, "spec/replicas", 1));
}

/* By the plural in the APIResourceList. */
bool report_found_kinds(struct report_findings *f, struct json_object *resources)
{
	static const struct kobj_gvk *const kinds[] = {
		&kobj_cluster, &kobj_machine, &kobj_ak, &kobj_image};
	struct json_object *have = json_get_arr(resources, "resources");
	cleanup_strbuf struct strbuf missing = STRBUF_INIT;

	for (size_t k = 0, i; k < ARRAY_LEN(kinds); k++) {
		for (i = 0; i < json_len(have); i++)
			if (str_eq(json_get_str(json_at(have, i), "name"), kinds[k]->plural))
				break;
		if (i == json_len(have))
			strbuf_addf(&missing, "%s%s", missing.len ? ", " : "", kinds[k]->plural);
	}
	if (missing.len)
		report_found(f, REPORT_IS_NO, "kinds", "kubectl apply -k crd/",
			"the server has no resource %s", strbuf_str(&missing));
	else
		report_found(f, REPORT_IS_OK, "kinds", NULL, "all four are defined");
	return !missing.len;
}

void report_found_images(struct report_findings *f, const struct report_world *w)
{
	size_t good = report_count_true(w, REPORT_IMAGE, "Committed");

	if (!w->list[REPORT_IMAGE].problem)
		report_found(f, good ? REPORT_IS_OK : REPORT_IS_NO, "images",
			good ? NULL : "tecctl image approve; until then every boot is refused",
			"%zu of %zu approved images are in force", good, w->list[REPORT_IMAGE].n);
}

/* Every condition carries the generation that it was computed for; Installed is always
 * reported, so it stands for all. */
void report_found_observed(struct report_findings *f, struct json_object *cluster)
{
	int64_t generation = json_get_int(cluster, "metadata/generation", 0);
	bool seen = json_get_int(report_condition(cluster, "Installed"), "observedGeneration",
			    -1) == generation;

	report_found(f, seen ? REPORT_IS_OK : REPORT_IS_NO, "operator",
		seen ? NULL : "check that it runs and reaches this API server; check its log",
		"it has%s observed the current generation of the TrustedExecutionCluster",
		seen ? "" : " not");
}

/* Days are rounded down: a certificate with "0 days" still works today. */
void report_found_end(struct report_findings *f, const char *what, const char *secret,
	int64_t end_s, int64_t now_s)
{
	int64_t days = (end_s - now_s) / DAY_S;

	if (end_s <= now_s)
		report_found(f, REPORT_IS_NO, what, "nodes refuse it; renew it",
			"the certificate in Secret %s has expired", secret);
	else
		report_found(f, days < SOON_DAYS ? REPORT_IS_NOTE : REPORT_IS_OK, what,
			days < SOON_DAYS ? "renew it" : NULL,
			"the certificate in Secret %s is valid for %" PRId64 " days", secret, days);
}
