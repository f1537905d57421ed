/* SPDX-License-Identifier: MIT */
/*
 * For tests only: GET /dump (everything stored, and the requests in their order), GET /counts, POST
 * /lose (empties the store, as when a Pod without a volume was replaced).
 * Listens on loopback only.
 */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/net/addr.h"
#include "tec/net/httpd.h"

#include "kbs-quirks.h"
#include "kbs-tool.h"

static void count(struct tool *t, const char *verb, int status)
{
	unsigned i = 0;

	while (i < t->n_counts &&
		(t->counts[i].status != status || strcmp(t->counts[i].verb, verb) != 0))
		i++;
	if (i == TOOL_COUNT_MAX)
		return;
	if (i == t->n_counts) {
		t->n_counts++;
		t->counts[i].verb = verb;
		t->counts[i].status = status;
	}
	t->counts[i].n++;
}

void tool_answer(void *arg, const struct broker_request *r, struct broker_answer *a)
{
	struct tool *t = arg;
	struct tool_entry *l = &t->log[t->n_requests % TOOL_LOG_MAX];

	if (t->quirks)
		quirks_answer(r, a);
	free(l->target);
	*l = (struct tool_entry){
		.n = ++t->n_requests,
		.ms = clock_boot_ms() - t->start_ms,
		.verb = a->verb,
		.method = r->method,
		.target = xstrdup(r->target),
		.status = a->status,
		.type = a->type,
	};
	count(t, a->verb, a->status);
}

void tool_log_free(struct tool *t)
{
	for (size_t i = 0; i < TOOL_LOG_MAX; i++)
		free(t->log[i].target);
}

int tool_new_store(struct tool *t, struct err *err)
{
	if (!t->store)
		t->store = broker_store_memory_new();
	broker_store_memory_lose(t->store);
	if (broker_admin_seed(t->store, err) < 0)
		return -1;
	return t->from_dir ? tool_load_files(t->store, t->from_dir, err) : 0;
}

/* ---- the dump */

struct dump {
	struct tool *tool;
	struct strbuf *out;
	enum broker_store_ns ns;
	bool first;
};

static void dump_key(void *arg, const char *key)
{
	struct dump *d = arg;
	struct broker_store_value v;
	struct err err = ERR_INIT;

	if (broker_store_get(d->tool->store, d->ns, key, &v, &err) < 0)
		return;
	if (!d->first)
		strbuf_addc(d->out, ',');
	d->first = false;
	json_quote(d->out, key, strlen(key));
	strbuf_addc(d->out, ':');
	if (d->ns == BROKER_STORE_REPOSITORY) {
		strbuf_addc(d->out, '"');
		bytes_to_b64(d->out, v.data, v.len);
		strbuf_addc(d->out, '"');
	} else if (d->ns == BROKER_STORE_REFERENCE_VALUE) {
		strbuf_add(d->out, v.data, v.len); /* JSON already */
	} else {
		json_quote(d->out, v.data, v.len);
	}
}

static void dump_log(struct strbuf *out, const struct tool *t)
{
	uint64_t from = t->n_requests > TOOL_LOG_MAX ? t->n_requests - TOOL_LOG_MAX : 0;

	strbuf_addc(out, '[');
	for (uint64_t n = from; n < t->n_requests; n++) {
		const struct tool_entry *l = &t->log[n % TOOL_LOG_MAX];

		strbuf_addf(out,
			"%s{\"n\":%llu,\"ms\":%llu,\"verb\":\"%s\",\"method\":\"%s\",\"status\":%d,"
			"\"type\":\"%s\",\"target\":",
			n > from ? "," : "", (unsigned long long)l->n, (unsigned long long)l->ms,
			l->verb, l->method, l->status, l->type);
		json_quote(out, l->target, strlen(l->target));
		strbuf_addc(out, '}');
	}
	strbuf_addc(out, ']');
}

/* {"VERB":{"STATUS":N,...},...} */
static void dump_counts(struct strbuf *out, const struct tool *t)
{
	struct json_object *o = json_obj();
	cleanup_free char *text = NULL;

	for (unsigned i = 0; i < t->n_counts; i++) {
		struct json_object *v = json_get(o, t->counts[i].verb);
		char status[12];

		if (!v) {
			v = json_obj();
			json_add(o, t->counts[i].verb, v);
		}
		snprintf(status, sizeof(status), "%d", t->counts[i].status);
		json_add_int(v, status, (int64_t)t->counts[i].n);
	}
	text = json_text(o);
	strbuf_adds(out, text);
	json_object_put(o);
}

static void on_dump(struct httpd_req *req, void *arg)
{
	static const char *const names[BROKER_STORE_N] = {
		[BROKER_STORE_KBS] = "resource_policies",
		[BROKER_STORE_REPOSITORY] = "resources",
		[BROKER_STORE_REFERENCE_VALUE] = "reference_values",
		[BROKER_STORE_ATTESTATION_POLICY] = "attestation_policies",
	};
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct tool *t = arg;
	struct err err = ERR_INIT;

	if (t->from_dir && tool_new_store(t, &err) < 0) {
		httpd_reply_error(req, 500, 0, "%s", err.text);
		return;
	}
	strbuf_addc(&out, '{');
	for (int ns = 0; ns < BROKER_STORE_N; ns++) {
		struct dump d = {t, &out, ns, true};

		strbuf_addf(&out, "\"%s\":{", names[ns]);
		if (broker_store_list(t->store, ns, "", dump_key, &d, &err) < 0) {
			httpd_reply_error(req, 500, 0, "%s", err.text);
			return;
		}
		strbuf_adds(&out, "},");
	}
	strbuf_adds(&out, "\"trusted_ak_keys\":");
	tool_dump_aks(&out, t->from_dir);
	strbuf_adds(&out, ",\"counts\":");
	dump_counts(&out, t);
	strbuf_adds(&out, ",\"log\":");
	dump_log(&out, t);
	strbuf_addc(&out, '}');
	httpd_reply(req, 200, "application/json", out.data, out.len);
}

static void on_counts(struct httpd_req *req, void *arg)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	dump_counts(&out, arg);
	httpd_reply(req, 200, "application/json", out.data, out.len);
}

static void on_lose(struct httpd_req *req, void *arg)
{
	struct err err = ERR_INIT;

	if (tool_new_store(arg, &err) < 0)
		httpd_reply_error(req, 500, 0, "%s", err.text);
	else
		httpd_reply(req, 200, NULL, NULL, 0);
}

static const struct httpd_route routes[] = {
	{.path = "/dump", .methods = HTTPD_GET, .fn = on_dump},
	{.path = "/counts", .methods = HTTPD_GET, .fn = on_counts},
	{.path = "/lose", .methods = HTTPD_POST, .fn = on_lose},
};

static bool is_loopback(const struct addr *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a->ss;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a->ss;

	if (a->ss.ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

int tool_debug_listen(struct tool *t, const char *addr, struct err *err)
{
	struct httpd_conf h = httpd_conf_default;
	struct addr a;

	if (addr_parse(addr, &a, err) < 0)
		return -1;
	if (!is_loopback(&a))
		return err_set(err, ERR_INVALID, "%s is not a loopback address", addr);
	h.name = "debug";
	h.routes = routes;
	h.n_routes = ARRAY_LEN(routes);
	h.arg = t;
	t->debug = httpd_new(t->loop, &h);
	return httpd_listen(t->debug, addr, err);
}
