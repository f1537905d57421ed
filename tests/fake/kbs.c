/* SPDX-License-Identifier: MIT */
/*
 * The store is one table of named texts (kind, name, bytes). A request is handled when it starts
 * and its answer is kept until its timer. An unknown request fails the test with its method and
 * path.
 */
#include "config.h"

#include "fake/kbs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/base/table.h"
#include "tec/loop/timer.h"

#define API         "/kbs/v0/"
#define DEADLINE_MS 10000u

enum kind { RESOURCE, VALUE, POLICY };

struct item {
	struct table_link link;
	enum kind kind;
	char *name, *text; /* owned */
};

struct fake_kbs_expect {
	struct fake_kbs_expect *next;
	char *method, *path;
	bool used, answered;
	struct err err;
	int status;
	char type[KBS_TYPE_MAX];
	char *body;
};

struct fault {
	struct fault *next;
	unsigned left;
	char *method; /* NULL: any */
	enum fake_kbs_fault what;
	int status;
	char type[KBS_TYPE_MAX];
	char *body;
};

struct fake_kbs {
	struct loop *loop;
	struct table items; /* owned; the items too */
	size_t n[3];
	struct fake_kbs_expect *expects;
	struct fault *faults;
	struct fake_kbs_request *log;
	const char *forgets[4]; /* static */
	bool lists;
	const char *cannot_store;
	size_t n_log, cap_log, in_flight, most_in_flight, n_transports;
	size_t max_body;
	uint32_t latency_ms;
	unsigned die_after; /* 0: not set */
	bool serves, down, dead;
	void (*changed)(void *arg);
	void *changed_arg;
};

struct transport {
	struct kbs_transport t; /* first */
	struct fake_kbs *k;
	struct call *calls; /* in flight */
};

struct call {
	struct op op; /* first */
	struct transport *t;
	struct call *next, **prevp; /* in its transport; prevp NULL: it has left */
	char *path;                 /* owned; NULL: a GET */
	struct timer timer;
	struct err err;
	int status;
	struct strbuf body;
	struct kbs_call *call; /* what is answered */
};

/* ---- store */

static struct item *find(const struct fake_kbs *k, enum kind kind, const char *name)
{
	struct item *i;

	TABLE_WITH_HASH (i, link, &k->items, table_hash_str(name))
		if (i->kind == kind && strcmp(i->name, name) == 0)
			return i;
	return NULL;
}

static const char *get(const struct fake_kbs *k, enum kind kind, const char *name)
{
	const struct item *i = find(k, kind, name);

	return i ? i->text : NULL;
}

static void put(struct fake_kbs *k, enum kind kind, const char *name, const void *text, size_t len)
{
	struct item *i = find(k, kind, name);

	if (!i) {
		i = xcalloc(1, sizeof(*i));
		i->kind = kind;
		i->name = xstrdup(name);
		table_add(&k->items, &i->link, table_hash_str(name));
		k->n[kind]++;
	}
	free(i->text);
	i->text = xstrndup(text, len);
}

static void item_free(struct fake_kbs *k, struct item *i)
{
	k->n[i->kind]--;
	table_remove(&k->items, &i->link);
	free(i->name);
	free(i->text);
	free(i);
}

void fake_kbs_lose_store(struct fake_kbs *k)
{
	struct item *i;

	TABLE_EACH (i, link, &k->items)
		item_free(k, i);
	table_fini(&k->items);
}

void fake_kbs_lose_resources(struct fake_kbs *k)
{
	struct item *i;

	TABLE_EACH (i, link, &k->items)
		if (i->kind == RESOURCE)
			item_free(k, i);
}

const char *fake_kbs_resource(const struct fake_kbs *k, const char *path)
{
	return get(k, RESOURCE, path);
}

const char *fake_kbs_value(const struct fake_kbs *k, const char *name)
{
	return get(k, VALUE, name);
}

const char *fake_kbs_policy(const struct fake_kbs *k, bool resource)
{
	return get(k, POLICY, resource ? "resource" : "attestation");
}

size_t fake_kbs_resources(const struct fake_kbs *k)
{
	return k->n[RESOURCE];
}

size_t fake_kbs_values(const struct fake_kbs *k)
{
	return k->n[VALUE];
}

void fake_kbs_put_value(struct fake_kbs *k, const char *name, const char *json)
{
	put(k, VALUE, name, json, strlen(json));
}

void fake_kbs_put_resource(struct fake_kbs *k, const char *path, const char *text)
{
	put(k, RESOURCE, path, text, strlen(text));
}

/* ---- the server */

/* What was asked for, if it is not forgotten. */
static void keep(struct fake_kbs *k, enum kind kind, const char *name, const void *text, size_t len)
{
	for (unsigned i = 0; i < ARRAY_LEN(k->forgets); i++) {
		if (str_eq(k->forgets[i], name)) {
			k->forgets[i] = NULL;
			return;
		}
	}
	put(k, kind, name, text, len);
}

static void answer(struct call *c, int status, const char *type, const char *body)
{
	c->status = status;
	if (body)
		strbuf_adds(&c->body, body);
	else if (*type)
		strbuf_addf(&c->body,
			"{\"type\":\"https://github.com/confidential-containers/kbs/errors/%s\","
			"\"detail\":\"a detail\"}",
			type);
}

/* [A-Za-z0-9_-][A-Za-z0-9_.-]* three times. */
static bool path_ok(const char *p)
{
	unsigned segments = 1;
	bool first = true;

	for (; *p; p++) {
		bool plain = (*p >= '0' && *p <= '9') || ((*p | 32) >= 'a' && (*p | 32) <= 'z') ||
			     *p == '_' || *p == '-' || (*p == '.' && !first);

		if (*p == '/' && first)
			return false;
		if (*p != '/' && !plain)
			return false;
		segments += *p == '/';
		first = *p == '/';
	}
	return segments == 3 && !first;
}

static void serve_resource(
	struct fake_kbs *k, struct call *c, const struct kbs_request *req, const char *path)
{
	struct item *i = find(k, RESOURCE, path);
	bool deletes = str_eq(req->method, "DELETE");

	if (!path_ok(path) || (deletes && !i) ||
		(!deletes && k->cannot_store && strstr(path, k->cannot_store))) {
		answer(c, 401, "PluginInternalError", NULL);
		return;
	}
	if (deletes)
		item_free(k, i);
	else
		keep(k, RESOURCE, path, req->body.data, req->body.len);
	answer(c, 200, "", NULL);
}

static void serve_list(struct fake_kbs *k, struct call *c)
{
	cleanup_json struct json_object *list = json_arr();
	const struct item *i;

	TABLE_EACH (i, link, &k->items)
		if (i->kind == RESOURCE)
			json_push_str(list, i->name);
	if (k->lists)
		answer(c, 200, "", json_object_to_json_string(list));
	else
		answer(c, 401, "PluginInternalError", NULL);
}

static struct json_object *parse(const void *text, size_t len)
{
	static const struct json_limits limits = {
		.bytes = 16u << 20, .depth = 32, .tokens = 1000000};
	struct err err = ERR_INIT;

	return json_parse(text, len, &limits, &err);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Values are set one by one, sorted by name, each with the members of its objects sorted. */
static void set_values(struct fake_kbs *k, struct json_object *values, bool half)
{
	size_t n = (size_t)json_object_object_length(values), i = 0;
	cleanup_free const char **names = xcalloc(n + 1, sizeof(*names));

	json_object_object_foreach (values, name, v) {
		(void)v;
		names[i++] = name;
	}
	qsort(names, n, sizeof(*names), by_name);
	for (i = 0; i < (half ? (n + 1) / 2 : n); i++) {
		cleanup_strbuf struct strbuf text = STRBUF_INIT;
		struct json_object *v = NULL;

		json_object_object_get_ex(values, names[i], &v);
		json_canonical(&text, v);
		keep(k, VALUE, names[i], text.data, text.len);
	}
}

static void serve_values(
	struct fake_kbs *k, struct call *c, const struct kbs_request *req, bool half)
{
	cleanup_json struct json_object *msg = parse(req->body.data, req->body.len), *values = NULL;
	const char *payload = msg ? json_get_str(msg, "payload") : NULL;
	cleanup_free uint8_t *text = NULL;
	size_t len;

	if (payload && str_eq(json_get_str(msg, "version"), "0.1.0") &&
		str_eq(json_get_str(msg, "type"), "sample") &&
		bytes_from_b64(payload, strlen(payload), &text, &len) == 0)
		values = parse(text, len);
	if (!values || !json_object_is_type(values, json_type_object)) {
		answer(c, 401, "RvpsError", NULL);
		return;
	}
	set_values(k, values, half);
	answer(c, 200, "", NULL);
}

static void serve_policy(
	struct fake_kbs *k, struct call *c, const struct kbs_request *req, bool resource)
{
	cleanup_json struct json_object *msg = parse(req->body.data, req->body.len);
	const char *policy = msg ? json_get_str(msg, "policy") : NULL;
	bool to_default =
		resource || (msg && str_eq(json_get_str(msg, "type"), "rego") &&
				    str_eq(json_get_str(msg, "policy_id"), "default_cpu"));
	cleanup_free uint8_t *text = NULL;
	size_t len;

	if (!policy || !to_default || bytes_from_b64url(policy, strlen(policy), &text, &len) < 0) {
		answer(c, 401, "ParsePolicyError", NULL);
		return;
	}
	put(k, POLICY, resource ? "resource" : "attestation", text, len);
	answer(c, 200, "", NULL);
}

static bool serve(struct fake_kbs *k, struct call *c, const struct kbs_request *req, bool half)
{
	const char *p = req->path;
	bool posts = str_eq(req->method, "POST");

	if (!str_starts(p, API))
		return false;
	p += strlen(API);
	if (req->body.len >= k->max_body)
		answer(c, 413, "", "payload reached size limit");
	else if (str_starts(p, "resource/") && (posts || str_eq(req->method, "DELETE")))
		serve_resource(k, c, req, p + strlen("resource/"));
	else if (str_eq(p, "resource") && str_eq(req->method, "GET"))
		serve_list(k, c);
	else if (str_eq(p, "reference-value") && posts)
		serve_values(k, c, req, half);
	else if (str_starts(p, "reference-value/") && str_eq(req->method, "GET"))
		if (get(k, VALUE, p + strlen("reference-value/")))
			answer(c, 200, "", get(k, VALUE, p + strlen("reference-value/")));
		else
			answer(c, 401, "RvpsError", NULL);
	else if (str_eq(p, "resource-policy") && posts)
		serve_policy(k, c, req, true);
	else if (str_eq(p, "attestation-policy") && posts)
		serve_policy(k, c, req, false);
	else
		return false;
	if (k->changed && c->status == 200 && !str_eq(req->method, "GET"))
		k->changed(k->changed_arg);
	return true;
}

/* ---- calls */

/* One connection never has two requests under way that could overtake each other. */
static void enter(struct call *c, const struct kbs_request *req)
{
	struct transport *t = c->t;

	if (!str_eq(req->method, "GET")) {
		for (const struct call *o = t->calls; o; o = o->next)
			cr_assert(!str_eq(o->path, req->path), "two requests at once: %s %s",
				req->method, req->path);
		c->path = xstrdup(req->path);
	}
	c->next = t->calls;
	c->prevp = &t->calls;
	if (c->next)
		c->next->prevp = &c->next;
	t->calls = c;
	if (++t->k->in_flight > t->k->most_in_flight)
		t->k->most_in_flight = t->k->in_flight;
}

static void leave(struct call *c)
{
	if (!c->prevp)
		return;
	*c->prevp = c->next;
	if (c->next)
		c->next->prevp = c->prevp;
	c->prevp = NULL;
	c->t->k->in_flight--;
}

static void call_free(struct call *c)
{
	timer_fini(&c->timer);
	leave(c);
	free(c->path);
	strbuf_fini(&c->body);
	free(c);
}

static void call_abort(struct op *op)
{
	call_free((struct call *)op);
}

static void on_timer(void *arg)
{
	struct call *c = arg;
	const struct kbs_answer a = {
		.status = c->status, .body = strbuf_str(&c->body), .body_len = c->body.len};

	op_finish(&c->op);
	leave(c);
	kbs_call_answer(c->call, &c->err, &a);
	call_free(c);
}

static void broken(struct call *c, const char *text)
{
	strbuf_reset(&c->body);
	c->status = 0;
	err_set(&c->err, ERR_TRANSIENT, "%s", text);
}

static struct fault *due_fault(struct fake_kbs *k, const char *method)
{
	struct fault *due = NULL;

	for (struct fault *f = k->faults; f; f = f->next)
		if (f->left && (!f->method || str_eq(f->method, method)) && --f->left == 0)
			due = f;
	return due;
}

/* How much later the answer comes. */
#define NEVER UINT32_MAX
static uint32_t by_fault(struct fake_kbs *k, struct call *c, const struct kbs_request *req,
	const struct fault *f, uint32_t deadline_ms)
{
	switch (f->what) {
	case FAKE_KBS_REFUSE:
		answer(c, f->status, f->type, f->body);
		break;
	case FAKE_KBS_LOST:
		broken(c, "no answer in time");
		return deadline_ms;
	case FAKE_KBS_ANSWER_LOST:
		(void)serve(k, c, req, false);
		broken(c, "the connection was closed");
		break;
	case FAKE_KBS_HALF:
		(void)serve(k, c, req, true);
		strbuf_reset(&c->body);
		answer(c, f->status, f->type, f->body);
		break;
	}
	return k->latency_ms;
}

static struct fake_kbs_expect *expected(struct fake_kbs *k, const struct kbs_request *req)
{
	for (struct fake_kbs_expect *e = k->expects; e; e = e->next) {
		size_t n = strlen(e->path);
		bool prefix = n && e->path[n - 1] == '*';

		if (!e->used && str_eq(e->method, req->method) &&
			(prefix ? strncmp(e->path, req->path, n - 1) == 0
				: str_eq(e->path, req->path)))
			return e;
	}
	return NULL;
}

static void note(struct fake_kbs *k, const struct kbs_request *req)
{
	struct fake_kbs_request *r;

	if (k->n_log == k->cap_log) {
		k->cap_log = k->cap_log ? 2 * k->cap_log : 64;
		k->log = xreallocarray(k->log, k->cap_log, sizeof(*k->log));
	}
	r = &k->log[k->n_log++];
	*r = (struct fake_kbs_request){.method = xstrdup(req->method),
		.path = xstrdup(req->path),
		.body = req->body.data ? xmemdup(req->body.data, req->body.len) : NULL,
		.body_len = req->body.len,
		.verb = req->verb};
}

static uint32_t respond(struct fake_kbs *k, struct call *c, const struct kbs_request *req)
{
	uint32_t deadline_ms = req->deadline_ms ? req->deadline_ms : DEADLINE_MS;
	struct fault *f;
	struct fake_kbs_expect *e;

	if (k->dead)
		return NEVER;
	note(k, req);
	if (k->down) {
		broken(c, "connection refused");
		return 0;
	}
	if ((f = due_fault(k, req->method)) != NULL)
		return by_fault(k, c, req, f, deadline_ms);
	if ((e = expected(k, req)) != NULL) {
		e->used = true;
		c->err = e->err;
		if (!e->answered)
			broken(c, "no answer in time");
		else if (!err_is_set(&e->err))
			answer(c, e->status, e->type, e->body);
		return e->answered ? k->latency_ms : deadline_ms;
	}
	if (!k->serves || !serve(k, c, req, false))
		cr_assert(false, "nobody expects %s %s", req->method, req->path);
	if (k->die_after && --k->die_after == 0) {
		k->dead = true;
		return NEVER;
	}
	return k->latency_ms;
}

static void start(struct kbs_transport *t, struct op_scope *scope, struct kbs_request *req,
	struct kbs_call *call)
{
	struct call *c = xcalloc(1, sizeof(*c));
	struct transport *tr = (struct transport *)t;
	struct fake_kbs *k = tr->k;
	uint32_t after_ms;

	c->t = tr;
	c->call = call;
	enter(c, req);
	timer_init(&c->timer, k->loop, on_timer, c);
	op_begin(&c->op, scope, call_abort);
	after_ms = respond(k, c, req);
	if (after_ms != NEVER)
		timer_set(&c->timer, after_ms);
}

static void transport_free(struct kbs_transport *t)
{
	struct transport *tr = (struct transport *)t;

	tr->k->n_transports--;
	free(tr);
}

static const struct kbs_transport_ops ops = {.start = start, .free = transport_free};

struct kbs_transport *fake_kbs_transport(struct fake_kbs *k)
{
	struct transport *tr = xcalloc(1, sizeof(*tr));

	tr->t.ops = &ops;
	tr->t.loop = k->loop;
	tr->k = k;
	k->n_transports++;
	return &tr->t;
}

/* ---- the test's side */

struct fake_kbs *fake_kbs_new(struct loop *l)
{
	struct fake_kbs *k = xcalloc(1, sizeof(*k));

	k->loop = l;
	k->max_body = 2u << 20;
	return k;
}

void fake_kbs_free(struct fake_kbs *k)
{
	cr_assert_eq(k->n_transports, 0);
	fake_kbs_lose_store(k);
	fake_kbs_forget(k);
	free(k->log);
	while (k->expects) {
		struct fake_kbs_expect *e = k->expects;

		cr_assert(e->used, "%s %s was never asked", e->method, e->path);
		k->expects = e->next;
		free(e->method);
		free(e->path);
		free(e->body);
		free(e);
	}
	while (k->faults) {
		struct fault *f = k->faults;

		k->faults = f->next;
		free(f->method);
		free(f->body);
		free(f);
	}
	free(k);
}

size_t fake_kbs_requests(const struct fake_kbs *k)
{
	return k->n_log;
}

size_t fake_kbs_count(const struct fake_kbs *k, const char *method, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n_log; i++)
		n += (!method || str_eq(k->log[i].method, method)) &&
		     (!path || strstr(k->log[i].path, path));
	return n;
}

const struct fake_kbs_request *fake_kbs_request(const struct fake_kbs *k, size_t i)
{
	cr_assert_lt(i, k->n_log);
	return &k->log[i];
}

void fake_kbs_forget(struct fake_kbs *k)
{
	for (size_t i = 0; i < k->n_log; i++) {
		free(k->log[i].method);
		free(k->log[i].path);
		free(k->log[i].body);
	}
	k->n_log = 0;
	k->most_in_flight = k->in_flight;
}

size_t fake_kbs_in_flight(const struct fake_kbs *k)
{
	return k->in_flight;
}

size_t fake_kbs_most_in_flight(const struct fake_kbs *k)
{
	return k->most_in_flight;
}

struct fake_kbs_expect *fake_kbs_expect(struct fake_kbs *k, const char *method, const char *path)
{
	struct fake_kbs_expect *e = xcalloc(1, sizeof(*e)), **p = &k->expects;

	e->method = xstrdup(method);
	e->path = xstrdup(path);
	while (*p)
		p = &(*p)->next;
	*p = e;
	return e;
}

void fake_kbs_answer(struct fake_kbs_expect *e, int status, const char *type, const char *body)
{
	e->answered = true;
	e->status = status;
	snprintf(e->type, sizeof(e->type), "%s", type);
	e->body = xstrdup(body);
}

void fake_kbs_fail(struct fake_kbs_expect *e, enum err_kind kind, const char *text)
{
	e->answered = true;
	err_set(&e->err, kind, "%s", text);
}

void fake_kbs_serve(struct fake_kbs *k)
{
	k->serves = true;
}

void fake_kbs_max_body(struct fake_kbs *k, size_t bytes)
{
	k->max_body = bytes;
}

void fake_kbs_forgets(struct fake_kbs *k, const char *name)
{
	unsigned i = 0;

	while (i < ARRAY_LEN(k->forgets) && k->forgets[i])
		i++;
	cr_assert_lt(i, ARRAY_LEN(k->forgets));
	k->forgets[i] = name;
}

void fake_kbs_cannot_store(struct fake_kbs *k, const char *part)
{
	k->cannot_store = part;
}

void fake_kbs_lists(struct fake_kbs *k, bool lists)
{
	k->lists = lists;
}

void fake_kbs_latency(struct fake_kbs *k, uint32_t ms)
{
	k->latency_ms = ms;
}

void fake_kbs_on_change(struct fake_kbs *k, void (*fn)(void *arg), void *arg)
{
	k->changed = fn;
	k->changed_arg = arg;
}

void fake_kbs_fault(struct fake_kbs *k, unsigned nth, const char *method, enum fake_kbs_fault what,
	int status, const char *type, const char *body)
{
	struct fault *f = xcalloc(1, sizeof(*f));

	f->left = nth;
	f->method = xstrdup(method);
	f->what = what;
	f->status = status;
	snprintf(f->type, sizeof(f->type), "%s", type ? type : "");
	f->body = xstrdup(body);
	f->next = k->faults;
	k->faults = f;
}

void fake_kbs_down(struct fake_kbs *k, bool down)
{
	k->down = down;
}

void fake_kbs_die_after(struct fake_kbs *k, unsigned n)
{
	k->die_after = n;
}

bool fake_kbs_is_dead(const struct fake_kbs *k)
{
	return k->dead;
}

void fake_kbs_revive(struct fake_kbs *k)
{
	k->dead = false;
	k->die_after = 0;
}
