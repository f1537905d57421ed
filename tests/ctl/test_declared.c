/* SPDX-License-Identifier: MIT */
/* What the installed CustomResourceDefinition does not declare of a status: found by refusals, left
 * out, and tried again. */
#include "config.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/base/mem.h"
#include "tec/ctl/declared.h"

#define BEGINS                                                                                     \
	"failed to create typed patch object (ns/k; confidentialcontainers.org/v1alpha1, Kind=KbsConfig): "
#define REFUSED ": field not declared in schema"

static struct ctl_declared d;
static unsigned n_warnings;

static void count(enum log_level level, const char *line, void *arg)
{
	n_warnings += level == LOG_WARN;
}

static void up(void)
{
	clock_fake_start(1000000, 1800000000);
	log_capture(count, NULL);
}

static void down(void)
{
	log_capture(NULL, NULL);
	clock_fake_stop();
}

TestSuite(ctl_declared, .init = up, .fini = down);

static bool refused(enum ctl_declared_fit sent, const char *message)
{
	return ctl_declared_refused(&d, &kobj_kbsconfig, sent, message);
}

/* Returns what is left of an object; the caller frees it. */
static char *fit(const char *status, enum ctl_declared_fit want)
{
	struct err err = ERR_INIT;
	cleanup_free char *text = xasprintf("{\"status\":%s}", status);
	cleanup_json struct json_object *o =
		json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert(o, "%s", err.text);
	cr_assert_eq(ctl_declared_fit(&d, &kobj_kbsconfig, o), want, "%s", status);
	return json_text(json_get_obj(o, "status"));
}

#define FIT(status, want, left)                                                                    \
	do {                                                                                       \
		cleanup_free char *is = fit(status, want);                                         \
		cr_expect_str_eq(is, left);                                                        \
	} while (0)

#define STATUS "{\"isReady\":true,\"conditions\":[]}"

Test(ctl_declared, only_a_member_of_status_is_believed)
{
	static const struct {
		const char *message;
		const char *member; /* NULL: an ordinary failure */
	} cases[] = {
		{NULL, NULL},
		{"", NULL},
		{REFUSED, NULL},
		{"Internal error", NULL},
		{BEGINS ".status.conditions: expected list, got map", NULL},
		{BEGINS ".status.conditions" REFUSED, "conditions"},
		{"failed to create typed patch object: .status.conditions" REFUSED, "conditions"},
		{BEGINS "errors:\n  .status.a" REFUSED "\n  .status.b" REFUSED, "a"},
		{BEGINS ".status.conditions[type=\"Ready\"].observedGeneration" REFUSED,
			"conditions"},
		{BEGINS ".status.kbsConfigRef.name" REFUSED, "kbsConfigRef"},
		{BEGINS ".spec.replicas" REFUSED, NULL},
		{BEGINS ".status" REFUSED, NULL},
		{BEGINS ".status." REFUSED, NULL},
		{BEGINS ".status.a-member-with-a-name-that-nobody-writes" REFUSED, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *member = cases[i].member;

		memset(&d, 0, sizeof(d));
		cr_expect_eq(refused(CTL_DECLARED_WHOLE, cases[i].message), !!member, "%zu", i);
		cr_expect_eq(d.n, member ? 1 : 0, "%zu", i);
		cr_expect_str_eq(d.missing[0], member ? member : "", "%zu", i);
	}
}

Test(ctl_declared, what_is_missing_is_left_out_and_tried_again)
{
	FIT(STATUS, CTL_DECLARED_WHOLE, STATUS);
	cr_assert(refused(CTL_DECLARED_WHOLE, BEGINS ".status.conditions" REFUSED));
	cr_assert(
		refused(CTL_DECLARED_WHOLE, BEGINS ".status.conditions" REFUSED), "another object");
	cr_expect_eq(n_warnings, 1);
	FIT(STATUS, CTL_DECLARED_CUT, "{\"isReady\":true}");
	FIT("{\"isReady\":false}", CTL_DECLARED_WHOLE, "{\"isReady\":false}");
	cr_expect_not(refused(CTL_DECLARED_CUT, BEGINS ".status.conditions" REFUSED),
		"it was not sent, so a repetition would not end");
	/* One attempt per period, whichever object it is. */
	clock_fake_advance(CTL_DECLARED_AGAIN_MS);
	FIT(STATUS, CTL_DECLARED_PROBE, STATUS);
	FIT(STATUS, CTL_DECLARED_CUT, "{\"isReady\":true}");
	cr_assert(refused(CTL_DECLARED_PROBE, BEGINS ".status.conditions" REFUSED));
	FIT(STATUS, CTL_DECLARED_CUT, "{\"isReady\":true}");
	cr_expect_eq(n_warnings, 1, "it is known");
	ctl_declared_accepted(&d, &kobj_kbsconfig, CTL_DECLARED_CUT);
	ctl_declared_accepted(&d, &kobj_kbsconfig, CTL_DECLARED_WHOLE); /* without conditions */
	FIT(STATUS, CTL_DECLARED_CUT, "{\"isReady\":true}");
	/* The definition is updated. */
	clock_fake_advance(CTL_DECLARED_AGAIN_MS);
	FIT(STATUS, CTL_DECLARED_PROBE, STATUS);
	ctl_declared_accepted(&d, &kobj_kbsconfig, CTL_DECLARED_PROBE);
	FIT(STATUS, CTL_DECLARED_WHOLE, STATUS);
}

/* It is refused for one member after the other; a newer definition may lack fewer. */
Test(ctl_declared, several_members)
{
	cr_assert(refused(CTL_DECLARED_WHOLE, BEGINS ".status.a" REFUSED));
	FIT("{\"a\":1,\"b\":2,\"c\":3}", CTL_DECLARED_CUT, "{\"b\":2,\"c\":3}");
	cr_assert(refused(CTL_DECLARED_CUT, BEGINS ".status.b" REFUSED));
	FIT("{\"a\":1,\"b\":2,\"c\":3}", CTL_DECLARED_CUT, "{\"c\":3}");
	clock_fake_advance(CTL_DECLARED_AGAIN_MS);
	FIT("{\"a\":1,\"b\":2,\"c\":3}", CTL_DECLARED_PROBE, "{\"a\":1,\"b\":2,\"c\":3}");
	cr_assert(refused(CTL_DECLARED_PROBE, BEGINS ".status.b" REFUSED));
	FIT("{\"a\":1,\"b\":2,\"c\":3}", CTL_DECLARED_CUT, "{\"a\":1,\"c\":3}");
	for (char c = 'c'; d.n < CTL_DECLARED_MAX; c++) {
		cleanup_free char *m = xasprintf(BEGINS ".status.%c" REFUSED, c);

		cr_assert(refused(CTL_DECLARED_CUT, m));
	}
	cr_expect_not(refused(CTL_DECLARED_CUT, BEGINS ".status.z" REFUSED));
}

Test(ctl_declared, conditions_say_it_where_they_are_declared)
{
	struct err err = ERR_INIT;
	cleanup_free char *first = NULL, *later = NULL;
	cleanup_json struct json_object *o = NULL;
	struct json_object *c;

	cr_assert(refused(CTL_DECLARED_WHOLE, BEGINS ".status.authority" REFUSED));
	first = fit("{\"authority\":{},\"conditions\":[{\"type\":\"Ready\"}]}", CTL_DECLARED_CUT);
	clock_fake_advance(3000);
	later = fit("{\"authority\":{},\"conditions\":[{\"type\":\"Ready\"}]}", CTL_DECLARED_CUT);
	cr_expect_str_eq(first, later, "it is the same in each write");
	o = json_parse(first, strlen(first), &json_limits_object, &err);
	cr_assert_eq(json_len(json_get_arr(o, "conditions")), 2);
	c = json_at(json_get_arr(o, "conditions"), 1);
	cr_expect_str_eq(json_get_str(c, "type"), "CRDOutdated");
	cr_expect_str_eq(json_get_str(c, "status"), "True");
	cr_expect_str_eq(json_get_str(c, "lastTransitionTime"), "2027-01-15T08:00:00Z");
	cr_expect(strstr(json_get_str(c, "message"), "status.authority"));
	cr_expect(strstr(json_get_str(c, "message"), "-k crd/trustee/"));
}
