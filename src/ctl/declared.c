/* SPDX-License-Identifier: MIT */
/*
 * The API server names one member per refusal, with its path. It is believed only as far as a
 * member of status goes: anything else is an ordinary failure. Whether the definition was updated is
 * found by trying, because reading it would need a right in the whole cluster.
 */
#include "config.h"

#include "tec/ctl/declared.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"

#define REFUSAL ": field not declared in schema"

static struct metric outdated = METRIC_GAUGE_INIT("tec_crd_outdated",
	"1 if the installed CustomResourceDefinition lacks members of the status.", "kind", NULL);

void ctl_declared_advice(
	const struct ctl_declared *d, const struct kobj_gvk *gvk, struct strbuf *out)
{
	strbuf_addf(out, "CustomResourceDefinition %s.%s is outdated: it does not declare",
		gvk->plural, gvk->group);
	for (unsigned i = 0; i < d->n; i++)
		strbuf_addf(out, "%s status.%s", i ? "," : "", d->missing[i]);
	strbuf_addf(out,
		", so the operator cannot write it. Run kubectl apply --server-side --force-conflicts -k crd%s/ with the "
		"files of this version.",
		str_eq(gvk->group, kobj_kbsconfig.group) ? "/trustee" : "");
}

/* Only where the definition has conditions. Its time is that of the first refusal, so that it stays
 * the same in each write. */
static void add_condition(
	const struct ctl_declared *d, const struct kobj_gvk *gvk, struct json_object *conditions)
{
	cleanup_strbuf struct strbuf advice = STRBUF_INIT;
	struct json_object *c = json_obj();
	char time[CLOCK_RFC3339_LEN];

	ctl_declared_advice(d, gvk, &advice);
	clock_format(d->since_s, time);
	json_add_str(c, "type", "CRDOutdated");
	json_add_str(c, "status", "True");
	json_add_str(c, "lastTransitionTime", time);
	json_add_str(c, "reason", "FieldsNotDeclared");
	json_add_str(c, "message", strbuf_str(&advice));
	json_push(conditions, c);
}

/* A probe is due once per period, whichever object of the kind is written then. */
enum ctl_declared_fit ctl_declared_fit(
	struct ctl_declared *d, const struct kobj_gvk *gvk, struct json_object *o)
{
	struct json_object *status = json_get_obj(o, "status"), *conditions;
	bool has = false;

	for (unsigned i = 0; i < d->n; i++)
		has = has || json_get(status, d->missing[i]);
	if (!has)
		return CTL_DECLARED_WHOLE;
	if (clock_boot_ms() >= d->again_ms) {
		d->again_ms = clock_boot_ms() + CTL_DECLARED_AGAIN_MS;
		return CTL_DECLARED_PROBE;
	}
	for (unsigned i = 0; i < d->n; i++)
		json_drop(status, d->missing[i]);
	conditions = json_get_arr(status, "conditions");
	if (conditions)
		add_condition(d, gvk, conditions);
	return CTL_DECLARED_CUT;
}

/* Find the member of status in ".status.MEMBER...: field not declared in schema". Return its length,
 * or 0. */
static size_t refused_member(const char *message, const char **member)
{
	const char *end = message ? strstr(message, REFUSAL) : NULL, *path = end;
	size_t len;

	while (path && path > message && path[-1] != ' ' && path[-1] != '\n')
		path--;
	if (!path || !str_starts(path, ".status."))
		return 0;
	*member = path + strlen(".status.");
	len = strcspn(*member, ".[:");
	return len < sizeof(((struct ctl_declared *)0)->missing[0]) ? len : 0;
}

/* A refused probe starts the list over: a newer definition may lack fewer members. */
bool ctl_declared_refused(struct ctl_declared *d, const struct kobj_gvk *gvk,
	enum ctl_declared_fit sent, const char *message)
{
	cleanup_strbuf struct strbuf advice = STRBUF_INIT;
	struct log_ctx lc = {.kind = gvk->kind};
	const char *member = NULL;
	size_t len = refused_member(message, &member);
	bool first = d->n == 0;

	if (len == 0)
		return false;
	if (sent == CTL_DECLARED_PROBE)
		d->n = 0;
	for (unsigned i = 0; i < d->n; i++)
		if (strlen(d->missing[i]) == len && memcmp(d->missing[i], member, len) == 0)
			return sent != CTL_DECLARED_CUT; /* it was not sent: no reason to repeat */
	if (d->n == CTL_DECLARED_MAX)
		return false;
	snprintf(d->missing[d->n++], sizeof(d->missing[0]), "%.*s", (int)len, member);
	if (first) {
		d->since_s = clock_wall_s();
		d->again_ms = clock_boot_ms() + CTL_DECLARED_AGAIN_MS;
		metric_set(&outdated, gvk->kind, NULL, 1);
		ctl_declared_advice(d, gvk, &advice);
		log_warn(&lc, strbuf_str(&advice), NULL);
	}
	return true;
}

void ctl_declared_accepted(
	struct ctl_declared *d, const struct kobj_gvk *gvk, enum ctl_declared_fit sent)
{
	struct log_ctx lc = {.kind = gvk->kind};

	if (sent != CTL_DECLARED_PROBE)
		return;
	d->n = 0;
	metric_set(&outdated, gvk->kind, NULL, 0);
	log_info(&lc, "the CustomResourceDefinition declares the whole status now", NULL);
}
