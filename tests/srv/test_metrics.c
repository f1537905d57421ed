/* SPDX-License-Identifier: MIT */
/* The text of /metrics, and object counts that follow the caches. */
#include "config.h"

#include <ctype.h>

#include "srv/srv_testing.h"
#include "tec/loop/queue.h"
#include "tec/loop/timer.h"
#include "tec/srv/metrics.h"

TestSuite(srv_metrics, .timeout = SUITE_LIMIT);

/* Prometheus text format 0.0.4, one line: a comment, or name{labels} value. */
static bool line_is_valid(const char *line)
{
	const char *p = line;
	char *end;

	if (str_starts(line, "# HELP ") || str_starts(line, "# TYPE "))
		return true;
	if (!isalpha((unsigned char)*p) && *p != '_')
		return false;
	while (isalnum((unsigned char)*p) || *p == '_' || *p == ':')
		p++;
	if (*p == '{') {
		bool quoted = false;

		for (p++; *p && (quoted || *p != '}'); p++) {
			if (quoted && *p == '\\' && p[1])
				p++;
			else if (*p == '"')
				quoted = !quoted;
		}
		if (quoted || *p++ != '}')
			return false;
	}
	if (*p++ != ' ')
		return false;
	if (strcmp(p, "+Inf") == 0)
		return true;
	strtod(p, &end);
	return end != p && *end == '\0';
}

static void render(struct strbuf *out)
{
	strbuf_reset(out);
	srv_metrics_render(out);
}

static void noted(void *arg)
{
}

static struct queue_next settled(void *arg, const char *key)
{
	return (struct queue_next){.verdict = QUEUE_SETTLED};
}

Test(srv_metrics, every_line_parses_and_every_sample_has_a_type)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	cleanup_free char *copy = NULL;
	char family[128] = "";
	struct rig r;

	rig_open(&r, OPEN_SPEC);
	cr_assert_eq(rig_status(&r, r.port, GET_IGNITION), 200);
	render(&out);
	cr_assert(out.len && out.data[out.len - 1] == '\n');
	copy = xstrdup(strbuf_str(&out));
	for (char *save = NULL, *l = strtok_r(copy, "\n", &save); l;
		l = strtok_r(NULL, "\n", &save)) {
		cr_assert(line_is_valid(l), "%s", l);
		if (str_starts(l, "# TYPE "))
			sscanf(l, "# TYPE %127s", family);
		else if (l[0] != '#')
			cr_assert(str_starts(l, family), "%s is not under # TYPE %s", l, family);
	}
	rig_close(&r);
}

/* What issue 3 names. */
Test(srv_metrics, has_the_families_an_operator_looks_at)
{
	static const char *const wanted[] = {
		"\ntec_http_requests_total{route=\"/ignition\",code=\"200\"} 1\n",
		"\ntec_http_requests_total{route=\"/register-ak\",code=\"201\"} 1\n",
		"\ntec_http_requests_total{route=\"unmatched\",code=\"404\"} 1\n",
		"\ntec_http_request_seconds_bucket{route=\"/ignition\",le=\"+Inf\"} 1\n",
		"\ntec_http_request_seconds_sum{",
		"\ntec_http_connections{",
		"\ntec_queue_depth{queue=\"machine\"}",
		"\ntec_watch_state{resource=\"machines\",state=\"watching\"} 1\n",
		"\ntec_api_requests_total{verb=\"create\",code=\"201\"} 2\n",
		"\ntec_api_request_seconds_count{verb=\"create\"} 2\n",
		"\ntec_objects{kind=\"Machine\",state=\"keyless\"} 1\n",
		"\ntec_objects{kind=\"AttestationKey\",state=\"waiting\"} 1\n",
		"\nprocess_resident_memory_bytes ",
		"\nprocess_cpu_seconds_total ",
		"\nprocess_open_fds ",
		"\nprocess_start_time_seconds ",
		"\ntec_secrets_in_memory 5\n", /* of the database behind the fake */
		"\ntec_build_info{version=\"" PACKAGE_VERSION "\",compiler=\"",
	};
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct queue_conf conf = {.name = "machine"};
	struct queue *q;
	struct rig r;

	rig_init(&r);
	srv_metrics_count(&r.caches);
	rig_start(&r);
	fake_api_put(r.api, &kobj_cluster, NS,
		"{\"metadata\":{\"name\":\"tec\"},\"spec\":" OPEN_SPEC "}");
	q = queue_new(r.loop, &conf, settled, NULL);
	queue_add(q, "a");
	loop_drain(r.loop);
	cr_assert_eq(rig_status(&r, r.port, GET_IGNITION), 200);
	cr_assert_eq(rig_status(&r, r.port, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
	cr_assert_eq(rig_register_status(&r, KEY_A, NULL), 201);
	loop_advance(r.loop, 120000); /* past a bookmark: timers ran */
	render(&out);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		cr_assert(strstr(strbuf_str(&out), wanted[i]), "no %s in\n%s", wanted[i] + 1,
			strbuf_str(&out));
	queue_free(q);
	rig_close(&r);
}

/* Only real time can lag. */
Test(srv_metrics, loop_lag_and_turns_are_measured)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct loop *l = loop_new();
	struct timer t;

	timer_init(&t, l, noted, NULL);
	timer_set(&t, 0);
	while (timer_is_set(&t))
		loop_turn(l, 0);
	render(&out);
	cr_assert(strstr(strbuf_str(&out), "\ntec_loop_lag_seconds_count 1\n"), "%s", out.data);
	cr_assert(strstr(strbuf_str(&out), "\ntec_loop_turn_seconds_count "), "%s", out.data);
	timer_fini(&t);
	loop_free(l);
	metric_reset_all();
}

static double value_of(const char *sample)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	const char *at;

	render(&out);
	at = strstr(strbuf_str(&out), sample);
	return at ? strtod(at + strlen(sample), NULL) : -1;
}

Test(srv_metrics, the_process_describes_itself)
{
	double fds, rss, now = (double)clock_wall_s();
	int fd;

	fds = value_of("\nprocess_open_fds ");
	fd = dup(0);
	cr_assert_eq(value_of("\nprocess_open_fds "), fds + 1);
	close(fd);
	rss = value_of("\nprocess_resident_memory_bytes ");
	cr_assert(rss > 1e5 && rss < 1e11, "%g", rss);
	cr_assert_geq(value_of("\nprocess_cpu_seconds_total "), 0);
	cr_assert(value_of("\nprocess_start_time_seconds ") > now - 3600 &&
		  value_of("\nprocess_start_time_seconds ") <= now + 2);
	metric_reset_all();
}

static void put_machine(struct rig *r, const char *more)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"m\",\"uid\":\"m-1\",\"finalizers\":[\"x/y\"]%s,\"spec\":{\"id\":\"u\"}}",
		more);

	fake_api_put(r->api, &kobj_machine, NS, text);
	loop_drain(r->loop);
}

#define MACHINE_IN(state) value_of("\ntec_objects{kind=\"Machine\",state=\"" state "\"} ")
#define COND(type)                                                                                 \
	"{\"type\":\"" type "\",\"status\":\"True\",\"reason\":\"R\",\"message\":\"m\","           \
	"\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}"

Test(srv_metrics, machines_are_counted_in_one_state_each)
{
	struct rig r;

	rig_init(&r);
	srv_metrics_count(&r.caches);
	rig_start(&r);
	put_machine(&r, "}");
	cr_assert_eq(MACHINE_IN("keyless"), 1);
	put_machine(&r, "},\"status\":{\"conditions\":[" COND("KeyReady") "]}");
	cr_assert_eq(MACHINE_IN("keyless"), 0);
	cr_assert_eq(MACHINE_IN("unbound"), 1);
	put_machine(&r, ",\"annotations\":{\"" MODEL_BOUND_AT_ANNOTATION
			"\":\"m-1 2026-01-02T03:04:05Z\"}},\"status\":{\"conditions\":[" COND(
				"KeyReady") "]}");
	cr_assert_eq(MACHINE_IN("undelivered"), 1);
	put_machine(&r, "},\"status\":{\"conditions\":[" COND("KeyReady") "," COND("Ready") "]}");
	cr_assert_eq(MACHINE_IN("ready"), 1);
	fake_api_delete(r.api, &kobj_machine, NS, "m");
	loop_drain(r.loop);
	cr_assert_eq(MACHINE_IN("deleting"), 1);
	cr_assert_eq(MACHINE_IN("ready"), 0);
	fake_api_merge(r.api, &kobj_machine, NS, "m", "{\"metadata\":{\"finalizers\":null}}");
	loop_drain(r.loop);
	cr_assert_eq(MACHINE_IN("deleting"), 0);
	rig_close(&r);
}

#define KBSCONFIG_IN(ns, state)                                                                    \
	value_of("\ntec_kbsconfigs{namespace=\"" ns "\",state=\"" state "\"} ")

static void put_kbsconfig(struct k8s_cache *c, int version, const char *status)
{
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"k\",\"uid\":\"u\",\"resourceVersion\":"
			  "\"%d\"},\"spec\":{},\"status\":%s}",
			version, status);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert_eq(k8s_cache_put_event(c, o, &err), 0, "%s", err.text);
}

Test(srv_metrics, kbsconfigs_are_counted_by_namespace)
{
	struct caches a = CACHES_INIT, b = CACHES_INIT;
	struct caches *all[] = {&a, &b};

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		all[i]->kbsconfigs = k8s_cache_new(&caches_kinds[CACHES_KBSCONFIGS].cache);
		all[i]->trusteeconfigs = k8s_cache_new(&caches_kinds[CACHES_TRUSTEECONFIGS].cache);
		srv_metrics_count_trustees(all[i], i ? "b" : "a");
	}
	put_kbsconfig(a.kbsconfigs, 1, "{\"isReady\":true}");
	put_kbsconfig(b.kbsconfigs, 1, "{\"conditions\":[" COND("Installed") "]}");
	cr_assert_eq(KBSCONFIG_IN("a", "ready"), 1);
	cr_assert_eq(KBSCONFIG_IN("b", "installed"), 1);
	put_kbsconfig(b.kbsconfigs, 2, "{}");
	cr_assert_eq(KBSCONFIG_IN("b", "installed"), 0);
	cr_assert_eq(KBSCONFIG_IN("b", "waiting"), 1);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		k8s_cache_free(all[i]->kbsconfigs);
		k8s_cache_free(all[i]->trusteeconfigs);
	}
	metric_reset_all();
}

Test(srv_metrics, counts_survive_a_relist)
{
	struct rig r;

	rig_init(&r);
	srv_metrics_count(&r.caches);
	rig_start(&r);
	put_machine(&r, "}");
	fake_api_put(r.api, &kobj_machine, NS,
		"{\"metadata\":{\"name\":\"n\"},\"spec\":{\"id\":\"v\"}}");
	loop_drain(r.loop);
	cr_assert_eq(MACHINE_IN("keyless"), 2);
	fake_api_hold_watches(r.api, true);
	fake_api_delete(r.api, &kobj_machine, NS, "n");
	fake_api_forget_history(r.api);
	fake_api_drop_watches(r.api);
	fake_api_hold_watches(r.api, false);
	loop_advance(r.loop, 60000);
	cr_assert_eq(MACHINE_IN("keyless"), 1);
	rig_close(&r);
}
