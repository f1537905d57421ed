/* SPDX-License-Identifier: MIT */
/*
 * The row of a Pod: its state is not one member but follows from those of its containers, init
 * containers first. Restarts and their time are counted as kubectl shows them.
 */
#include "config.h"

#include "table_internal.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/schema/table.h"

struct pod {
	struct json_object *o;
	char *reason;             /* owned */
	int64_t restarts, last_s; /* -1: none */
	size_t ready, total;
};

static void set_reason(struct pod *p, char *take_reason)
{
	free(p->reason);
	p->reason = take_reason;
}

static struct json_object *with(struct json_object *a, const char *member, const char *value)
{
	for (size_t i = 0; value && i < table_length(a); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(a, i), member), value))
			return json_object_array_get_idx(a, i);
	return NULL;
}

static bool condition_is_true(struct pod *p, const char *type)
{
	struct json_object *c = with(json_get_arr(p->o, "status/conditions"), "type", type);

	return str_eq(json_get_str(c, "status"), "True");
}

/* An init container that keeps running is one of the containers. */
static bool is_sidecar(struct pod *p, struct json_object *status)
{
	struct json_object *c = with(
		json_get_arr(p->o, "spec/initContainers"), "name", json_get_str(status, "name"));

	return str_eq(json_get_str(c, "restartPolicy"), "Always");
}

static void note_restarts(struct pod *p, struct json_object *status)
{
	int64_t t = table_seconds(json_get_str(status, "lastState/terminated/finishedAt"));

	p->restarts += json_get_int(status, "restartCount", 0);
	if (t > p->last_s)
		p->last_s = t;
}

static char *exit_text(const char *prefix, struct json_object *terminated)
{
	int64_t signal = json_get_int(terminated, "signal", 0);

	return xasprintf("%s%s:%lld", prefix, signal ? "Signal" : "ExitCode",
		(long long)(signal ? signal : json_get_int(terminated, "exitCode", 0)));
}

/* One init container: true = the Pod waits for it, and reason says how. */
static bool waits_for(struct pod *p, struct json_object *status, size_t i)
{
	struct json_object *terminated = json_get_obj(status, "state/terminated");
	const char *reason = json_get_str(terminated, "reason"),
		   *waiting = json_get_str(status, "state/waiting/reason");

	if (terminated && json_get_int(terminated, "exitCode", 0) == 0)
		return false;
	if (is_sidecar(p, status) && json_get_bool(status, "started", false)) {
		p->ready += json_get_bool(status, "ready", false);
		return false;
	}
	if (terminated)
		set_reason(p, reason && *reason ? xasprintf("Init:%s", reason)
						: exit_text("Init:", terminated));
	else if (waiting && *waiting && !str_eq(waiting, "PodInitializing"))
		set_reason(p, xasprintf("Init:%s", waiting));
	else
		set_reason(p, xasprintf("Init:%zu/%zu", i,
				      table_length(json_get_arr(p->o, "spec/initContainers"))));
	return true;
}

static bool initializing(struct pod *p)
{
	struct json_object *a = json_get_arr(p->o, "status/initContainerStatuses");
	struct pod sidecars = {.last_s = -1};

	for (size_t i = 0; i < table_length(a); i++) {
		struct json_object *status = json_object_array_get_idx(a, i);

		note_restarts(p, status);
		if (is_sidecar(p, status))
			note_restarts(&sidecars, status);
		if (!waits_for(p, status, i))
			continue;
		if (!condition_is_true(p, "Initialized"))
			return true;
		break;
	}
	p->restarts = sidecars.restarts;
	p->last_s = sidecars.last_s;
	return false;
}

static void look_at_containers(struct pod *p)
{
	struct json_object *a = json_get_arr(p->o, "status/containerStatuses");
	bool running = false;

	for (size_t i = table_length(a); i > 0; i--) {
		struct json_object *status = json_object_array_get_idx(a, i - 1),
				   *terminated = json_get_obj(status, "state/terminated");
		const char *waiting = json_get_str(status, "state/waiting/reason"),
			   *reason = json_get_str(terminated, "reason");

		note_restarts(p, status);
		if (waiting && *waiting) {
			set_reason(p, xstrdup(waiting));
		} else if (terminated) {
			set_reason(
				p, reason && *reason ? xstrdup(reason) : exit_text("", terminated));
		} else if (json_get_bool(status, "ready", false) &&
			   json_get_obj(status, "state/running")) {
			running = true;
			p->ready++;
		}
	}
	if (running && str_eq(p->reason, "Completed"))
		set_reason(p, xstrdup(condition_is_true(p, "Ready") ? "Running" : "NotReady"));
}

static void look_at_pod(struct pod *p)
{
	struct json_object *scheduled = with(
				   json_get_arr(p->o, "status/conditions"), "type", "PodScheduled"),
			   *init = json_get_arr(p->o, "spec/initContainers");
	const char *phase = json_get_str(p->o, "status/phase"),
		   *reason = json_get_str(p->o, "status/reason");

	p->total = table_length(json_get_arr(p->o, "spec/containers"));
	for (size_t i = 0; i < table_length(init); i++)
		p->total +=
			str_eq(json_get_str(json_object_array_get_idx(init, i), "restartPolicy"),
				"Always");
	set_reason(p, xstrdup(reason && *reason ? reason : phase ? phase : ""));
	if (str_eq(json_get_str(scheduled, "reason"), "SchedulingGated"))
		set_reason(p, xstrdup("SchedulingGated"));
	if (!initializing(p))
		look_at_containers(p);
	if (!json_get(p->o, "metadata/deletionTimestamp"))
		return;
	if (str_eq(reason, "NodeLost"))
		set_reason(p, xstrdup("Unknown"));
	else if (!str_eq(phase, "Succeeded") && !str_eq(phase, "Failed"))
		set_reason(p, xstrdup("Terminating"));
}

static void push_restarts(struct table_row *r, const struct pod *p)
{
	char age[SCHEMA_AGE_LEN];
	cleanup_free char *text = NULL;

	if (p->restarts && p->last_s >= 0) {
		schema_age_text(r->now_s - p->last_s, age);
		text = xasprintf("%lld (%s ago)", (long long)p->restarts, age);
	} else
		text = xasprintf("%lld", (long long)p->restarts);
	table_text(r, text);
}

static void push_gates(struct table_row *r, struct pod *p)
{
	struct json_object *gates = json_get_arr(p->o, "spec/readinessGates");
	cleanup_free char *text = NULL;
	size_t open = 0;

	for (size_t i = 0; i < table_length(gates); i++)
		open += condition_is_true(
			p, json_get_str(json_object_array_get_idx(gates, i), "conditionType"));
	text = table_length(gates) ? xasprintf("%zu/%zu", open, table_length(gates))
				   : xstrdup("<none>");
	table_text(r, text);
}

void table_fill_pod(struct table_row *r)
{
	struct pod p = {.o = r->o, .last_s = -1};
	struct json_object *ips = json_get_arr(r->o, "status/podIPs");
	const char *ip =
		table_length(ips) ? json_get_str(json_object_array_get_idx(ips, 0), "ip") : NULL;
	cleanup_free char *ready = NULL;

	look_at_pod(&p);
	ready = xasprintf("%zu/%zu", p.ready, p.total);
	table_member(r, "metadata/name", "");
	table_text(r, ready);
	table_text(r, p.reason);
	push_restarts(r, &p);
	table_age(r, "metadata/creationTimestamp");
	table_text(r, ip && *ip ? ip : "<none>");
	table_member(r, "spec/nodeName", "<none>");
	table_member(r, "status/nominatedNodeName", "<none>");
	push_gates(r, &p);
	free(p.reason);
}
