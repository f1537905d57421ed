/* SPDX-License-Identifier: MIT */
/*
 * One call = text for on_data plus an ending; both are only ever delivered from a deferred call. A
 * request of the in-memory API is an exchange with its transport inside of ours, whose text and
 * ending become ours.
 */
#include "config.h"

#include "fake/transport.h"

#include <criterion/criterion.h>
#include "fake/api.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/loop/timer.h"

#define N_FAULTS 6

struct record {
	struct fake_request req;
	unsigned refs; /* the log, the expectation and the call */
};

struct ending {
	bool set;
	int status;
	uint32_t retry_after_ms;
	char *body; /* owned; NULL: none */
	struct err err;
};

struct fake_expect {
	struct fake_expect *next;
	struct fake_transport *f;
	char *method, *path;
	bool prefix;
	unsigned times, seen;
	uint32_t after_ms, retry_after_ms;
	struct ending end;
	struct record *rec; /* of the last request; ref */
	struct call *call;  /* while in flight */
};

struct call {
	struct k8s_exchange x; /* first */
	struct fake_transport *f;
	struct call *next, **prevp;
	struct record *rec;        /* ref */
	struct timer limit, delay; /* deadline or silence; latency */
	struct defer defer;
	struct strbuf out;
	struct ending end;
	struct fake_expect *expect;
	bool cut, *gone;
	/* a request of the in-memory API */
	struct op_scope inner; /* the exchange with its transport */
	struct strbuf held;    /* of a watch: what fake_api_hold_watches() keeps back */
};

struct fake_transport {
	struct k8s_transport base;
	struct fake_expect *expects;
	struct call *calls;
	struct record **log;
	size_t n_log, pieces;
	uint32_t latency_ms;
	unsigned every[N_FAULTS], fits[N_FAULTS];
	unsigned writes_left; /* before it dies, with dying set */
	bool dying, dead;
	struct fake_api *api;
	struct fake_transport *next_of_api;
};

/* ---- records and calls */

static struct record *rec_ref(struct record *r)
{
	r->refs++;
	return r;
}

static void rec_unref(struct record *r)
{
	if (!r || --r->refs)
		return;
	free(r->req.method);
	free(r->req.path);
	free(r->req.content_type);
	free(r->req.body);
	free(r);
}

static bool is_write(const struct record *r)
{
	return strcmp(r->req.method, "GET") != 0;
}

static bool is_watch(const struct record *r)
{
	return str_eq(r->req.verb, "watch") || strstr(r->req.path, "watch=true") ||
	       strstr(r->req.path, "watch=1");
}

static void ending_fini(struct ending *e)
{
	free(e->body);
	memset(e, 0, sizeof(*e));
}

static void end_with(struct call *c, int status, uint32_t retry_after_ms, const char *body);
static void end_status(struct call *c, int status, const char *reason, const char *message);
static void wake(struct call *c);

static void fake_stop(struct k8s_exchange *x)
{
	struct call *c = (struct call *)x;

	*c->prevp = c->next;
	if (c->next)
		c->next->prevp = c->prevp;
	if (c->expect)
		c->expect->call = NULL;
	if (c->gone)
		*c->gone = true;
	op_scope_cancel(&c->inner);
	timer_fini(&c->limit);
	timer_fini(&c->delay);
	defer_cancel(&c->defer);
	rec_unref(c->rec);
	ending_fini(&c->end);
	strbuf_fini(&c->out);
	strbuf_fini(&c->held);
}

static void call_done(struct call *c)
{
	cleanup_free char *body = steal_ptr(&c->end.body);
	struct err err = c->end.err;
	struct k8s_answer a = {c->end.status, c->end.retry_after_ms, body ? body : "", 0};

	a.body_len = strlen(a.body);
	k8s_transport_end(&c->x, &err, &a);
}

static void end_err(struct call *c, enum err_kind kind, const char *text)
{
	ending_fini(&c->end);
	c->end.set = true;
	err_set(&c->end.err, kind, "%s", text);
}

/* False: the owner cancelled the call from on_data. */
static bool give(struct call *c)
{
	struct strbuf text = c->out;
	struct err err = ERR_INIT;
	bool gone = false;
	size_t n = c->cut ? text.len / 2 : text.len, off = 0;
	int rc = 0;

	c->out = (struct strbuf)STRBUF_INIT;
	c->gone = &gone;
	while (off < n && rc == 0 && !gone) {
		size_t piece = c->f->pieces && c->f->pieces < n - off ? c->f->pieces : n - off;
		/* each piece in its own allocation, so that a read beyond it is seen */
		char *copy = xmalloc(piece);

		memcpy(copy, text.data + off, piece);
		rc = c->x.to.on_data(c->x.arg, copy, piece, &err);
		free(copy);
		off += piece;
	}
	strbuf_fini(&text);
	if (gone)
		return false;
	c->gone = NULL;
	if (rc < 0) {
		ending_fini(&c->end);
		c->end.set = true;
		c->end.err = err;
	} else if (c->cut) {
		end_err(c, ERR_TRANSIENT, "connection cut (fake)");
	}
	return true;
}

static void deliver(void *arg)
{
	struct call *c = arg;

	if (c->f->dead || timer_is_set(&c->delay))
		return;
	if (c->out.len && c->x.to.on_data) {
		if (c->rec->req.deadline_ms == 0 && c->rec->req.silence_ms)
			timer_set(&c->limit, c->rec->req.silence_ms);
		if (!give(c))
			return;
	}
	if (c->end.set)
		call_done(c);
}

static void wake(struct call *c)
{
	defer_call(&c->defer, c->f->base.loop, deliver, c);
}

static void on_limit(void *arg)
{
	struct call *c = arg;

	if (c->f->dead)
		return;
	op_scope_cancel(&c->inner);
	timer_cancel(&c->delay);
	strbuf_reset(&c->out);
	end_err(c, ERR_TRANSIENT, "no answer in time (fake)");
	wake(c);
}

static void end_with(struct call *c, int status, uint32_t retry_after_ms, const char *body)
{
	ending_fini(&c->end);
	c->end.set = true;
	c->end.status = status;
	c->end.retry_after_ms = retry_after_ms;
	if (c->x.to.on_data && status < 300)
		strbuf_adds(&c->out, body);
	else
		c->end.body = xstrdup(body);
	wake(c);
}

static void end_status(struct call *c, int status, const char *reason, const char *message)
{
	cleanup_json struct json_object *o = json_obj();
	cleanup_free char *text = NULL;

	json_add_str(o, "kind", "Status");
	json_add_str(o, "apiVersion", "v1");
	json_add_str(o, "status", status < 300 ? "Success" : "Failure");
	json_add_str(o, "message", message);
	json_add_str(o, "reason", reason);
	json_add_int(o, "code", status);
	text = json_text(o);
	end_with(c, status, status == 429 ? 1000 : 0, text);
}

/* ---- the seam */

static bool fault_fits(const struct record *r, enum fake_fault fault)
{
	if (fault == FAKE_FAULT_409)
		return is_write(r);
	if (fault == FAKE_FAULT_410)
		return is_watch(r) || str_eq(r->req.verb, "list");
	return true;
}

/* True: the request is dealt with. */
static bool inject(struct fake_transport *f, struct call *c)
{
	int due = -1;

	for (int i = 0; i < N_FAULTS; i++)
		if (f->every[i] && fault_fits(c->rec, (enum fake_fault)i) &&
			++f->fits[i] % f->every[i] == 0 && due < 0)
			due = i;
	switch (due) {
	case FAKE_FAULT_409:
		end_status(c, 409, "Conflict", "the object has been modified (fault)");
		return true;
	case FAKE_FAULT_410:
		if (!is_watch(c->rec)) {
			end_status(c, 410, "Expired", "too old resource version (fault)");
			return true;
		}
		end_with(c, 200, 0,
			"{\"type\":\"ERROR\",\"object\":"
			"{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}\n");
		return true;
	case FAKE_FAULT_429:
		end_status(c, 429, "TooManyRequests", "slow down (fault)");
		return true;
	case FAKE_FAULT_500:
		end_status(c, 500, "InternalError", "etcdserver: request timed out (fault)");
		return true;
	case FAKE_FAULT_CUT:
		c->cut = true;
		return false;
	case FAKE_FAULT_SILENCE:
		return true;
	default:
		return false;
	}
}

static bool expect_matches(const struct fake_expect *e, const struct fake_request *r)
{
	if ((e->times && e->seen == e->times) || strcmp(e->method, r->method) != 0)
		return false;
	return e->prefix ? str_starts(r->path, e->path) : str_eq(r->path, e->path);
}

static void expect_apply(struct fake_expect *e, struct call *c)
{
	if (e->after_ms)
		timer_set(&c->delay, e->after_ms);
	if (err_is_set(&e->end.err)) {
		end_err(c, e->end.err.kind, e->end.err.text);
		wake(c);
	} else {
		end_with(c, e->end.status, e->end.retry_after_ms, e->end.body);
	}
}

static bool scripted(struct fake_transport *f, struct call *c)
{
	struct fake_expect *e = f->expects;

	while (e && !expect_matches(e, &c->rec->req))
		e = e->next;
	if (!e)
		return false;
	e->seen++;
	rec_unref(e->rec);
	e->rec = rec_ref(c->rec);
	if (e->end.set) {
		expect_apply(e, c);
	} else {
		e->call = c;
		c->expect = e;
	}
	return true;
}

static void call_init(struct call *c, struct fake_transport *f)
{
	const struct k8s_request *req = &c->x.req;
	struct record *r = xcalloc(1, sizeof(*r));

	r->refs = 2;
	r->req.method = xstrdup(req->method);
	r->req.path = xstrdup(req->path);
	r->req.content_type = xstrdup(req->content_type);
	if (req->body.data) {
		r->req.body = xstrndup(req->body.data, req->body.len);
		r->req.body_len = req->body.len;
	}
	r->req.verb = req->verb;
	r->req.resource = req->resource;
	r->req.deadline_ms = req->deadline_ms;
	r->req.silence_ms = req->silence_ms;
	f->log = xreallocarray(f->log, f->n_log + 1, sizeof(*f->log));
	f->log[f->n_log++] = r;
	c->rec = r;
	c->f = f;
	c->prevp = &f->calls;
	c->next = f->calls;
	if (c->next)
		c->next->prevp = &c->next;
	f->calls = c;
}

/* ---- the in-memory API */

static int api_data(void *arg, const char *data, size_t len, struct err *err)
{
	struct call *c = arg;

	if (is_watch(c->rec) && c->f->api->held) {
		strbuf_add(&c->held, data, len);
		return 0;
	}
	if (c->rec->req.deadline_ms == 0 && c->rec->req.silence_ms)
		timer_set(&c->limit, c->rec->req.silence_ms); /* now, not when it is delivered */
	strbuf_add(&c->out, data, len);
	wake(c);
	return 0;
}

static void api_done(void *arg, const struct err *err, const struct k8s_answer *a)
{
	struct call *c = arg;

	if (!timer_is_set(&c->delay))
		timer_cancel(&c->limit);
	end_with(c, a->status, a->retry_after_ms, a->body);
}

/* Starts c's request there; the write is done when this returns. */
static void api_ask(struct call *c)
{
	struct fake_transport *f = c->f;
	struct k8s_request req = c->x.req;
	uint64_t rv = fake_api_rv(f->api);

	if (fake_api_hides(f->api, req.path)) {
		end_with(c, 404, 0, "404 page not found\n");
		return;
	}
	c->x.req.path = NULL;
	c->x.req.body = (struct body)BODY_INIT;
	req.verb = NULL; /* metrics count the outer one */
	(void)k8s_transport_start(
		f->api->inner, &c->inner, &req, c->x.to.on_data ? api_data : NULL, api_done, c);
	if (f->dying && !c->cut && fake_api_rv(f->api) != rv && --f->writes_left == 0)
		f->dead = true;
}

void fake_transport_release(struct fake_api *api)
{
	for (struct fake_transport *f = api->transports; f; f = f->next_of_api) {
		for (struct call *c = f->calls; c; c = c->next) {
			strbuf_add(&c->out, strbuf_str(&c->held), c->held.len);
			strbuf_reset(&c->held);
			wake(c);
		}
	}
}

static void on_delay(void *arg)
{
	wake(arg);
}

static void fake_start(struct k8s_exchange *x)
{
	struct fake_transport *f = (struct fake_transport *)x->t;
	struct call *c = (struct call *)x;
	const struct k8s_request *req = &x->req;
	bool on_data = x->to.on_data;
	uint32_t limit = req->deadline_ms ? req->deadline_ms : on_data ? req->silence_ms : 15000;

	call_init(c, f);
	timer_init(&c->limit, x->t->loop, on_limit, c);
	timer_init(&c->delay, x->t->loop, on_delay, c);
	if (limit)
		timer_set(&c->limit, limit);
	if (f->dead)
		return;
	if (f->latency_ms)
		timer_set(&c->delay, f->latency_ms);
	if (!inject(f, c) && !scripted(f, c)) {
		if (!f->api)
			cr_assert_fail("unexpected request: %s %s %s", req->method, req->path,
				c->rec->req.body ? c->rec->req.body : "");
		api_ask(c);
	}
	if (c->cut && (is_write(c->rec) || !on_data)) {
		op_scope_cancel(&c->inner);
		end_err(c, ERR_TRANSIENT, "connection cut after the request (fake)");
		wake(c);
	}
}

static void fake_free(struct k8s_transport *t)
{
	struct fake_transport *f = (struct fake_transport *)t;
	struct fake_expect *e;

	cr_assert_null(f->calls, "still in flight: %s %s", f->calls->rec->req.method,
		f->calls->rec->req.path);
	while ((e = f->expects)) {
		cr_assert(e->times == 0 || e->seen == e->times,
			"%u requests expected, %u made: %s %s", e->times, e->seen, e->method,
			e->path);
		f->expects = e->next;
		ending_fini(&e->end);
		rec_unref(e->rec);
		free(e->method);
		free(e->path);
		free(e);
	}
	fake_transport_forget(f);
	fake_transport_set_api(f, NULL);
	free(f);
}

static const struct k8s_transport_ops fake_ops = {fake_start, fake_stop, fake_free};

struct fake_transport *fake_transport_new(struct loop *l)
{
	struct fake_transport *f = xcalloc(1, sizeof(*f));

	f->base = (struct k8s_transport){&fake_ops, l, sizeof(struct call)};
	return f;
}

void fake_transport_free(struct fake_transport *f)
{
	fake_free(&f->base);
}

struct k8s_transport *fake_transport_seam(struct fake_transport *f)
{
	return &f->base;
}

size_t fake_transport_requests(const struct fake_transport *f)
{
	return f->n_log;
}

size_t fake_transport_count(const struct fake_transport *f, const char *what, const char *resource)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_log; i++) {
		const struct fake_request *r = &f->log[i]->req;

		if ((!what || str_eq(r->method, what) || str_eq(r->verb, what)) &&
			(!resource || str_eq(r->resource, resource)))
			n++;
	}
	return n;
}

size_t fake_transport_writes(const struct fake_transport *f)
{
	return f->n_log - fake_transport_count(f, "GET", NULL);
}

const struct fake_request *fake_transport_request(const struct fake_transport *f, size_t i)
{
	cr_assert_lt(i, f->n_log, "only %zu requests so far", f->n_log);
	return &f->log[i]->req;
}

const struct fake_request *fake_transport_last(const struct fake_transport *f)
{
	cr_assert_gt(f->n_log, 0, "no request was made");
	return &f->log[f->n_log - 1]->req;
}

struct json_object *fake_request_json(const struct fake_request *r)
{
	struct err err = ERR_INIT;
	struct json_object *o =
		json_parse(r->body ? r->body : "", r->body_len, &json_limits_object, &err);

	cr_assert_not_null(o, "%s %s: body is not JSON: %s", r->method, r->path, err.text);
	return o;
}

void fake_transport_forget(struct fake_transport *f)
{
	for (size_t i = 0; i < f->n_log; i++)
		rec_unref(f->log[i]);
	free(f->log);
	f->log = NULL;
	f->n_log = 0;
}

size_t fake_transport_in_flight(const struct fake_transport *f)
{
	size_t n = 0;

	for (const struct call *c = f->calls; c; c = c->next)
		n++;
	return n;
}

void fake_transport_pieces(struct fake_transport *f, size_t n)
{
	f->pieces = n;
}

void fake_transport_latency(struct fake_transport *f, uint32_t ms)
{
	f->latency_ms = ms;
}

void fake_transport_fault(struct fake_transport *f, enum fake_fault fault, unsigned every_n)
{
	f->every[fault] = every_n;
	f->fits[fault] = 0;
}

void fake_transport_die_after(struct fake_transport *f, unsigned n_writes)
{
	f->dying = true;
	f->writes_left = n_writes;
	f->dead = n_writes == 0;
}

bool fake_transport_is_dead(const struct fake_transport *f)
{
	return f->dead;
}

/* ---- expectations */

struct fake_expect *fake_transport_expect(
	struct fake_transport *f, const char *method, const char *path)
{
	struct fake_expect *e = xcalloc(1, sizeof(*e)), **end = &f->expects;
	size_t len = strlen(path);

	while (*end)
		end = &(*end)->next;
	*end = e;
	e->f = f;
	e->method = xstrdup(method);
	e->prefix = len && path[len - 1] == '*';
	e->path = xstrndup(path, len - e->prefix);
	e->times = 1;
	return e;
}

void fake_expect_answer_after(
	struct fake_expect *e, uint32_t after_ms, int status, const char *body)
{
	ending_fini(&e->end);
	e->after_ms = after_ms;
	e->end.set = true;
	e->end.status = status;
	e->end.retry_after_ms = e->retry_after_ms;
	e->end.body = xstrdup(body ? body : "");
	if (e->call)
		expect_apply(e, e->call);
}

void fake_expect_answer(struct fake_expect *e, int status, const char *body)
{
	fake_expect_answer_after(e, 0, status, body);
}

void fake_expect_retry_after(struct fake_expect *e, uint32_t ms)
{
	e->retry_after_ms = ms;
}

void fake_expect_fail(struct fake_expect *e, enum err_kind kind, const char *text)
{
	ending_fini(&e->end);
	e->end.set = true;
	err_set(&e->end.err, kind, "%s", text);
	if (e->call)
		expect_apply(e, e->call);
}

void fake_expect_times(struct fake_expect *e, unsigned n)
{
	e->times = n;
}

bool fake_expect_started(const struct fake_expect *e)
{
	return e->seen > 0;
}

bool fake_expect_open(const struct fake_expect *e)
{
	return e->call != NULL;
}

const struct fake_request *fake_expect_request(const struct fake_expect *e)
{
	cr_assert_not_null(e->rec, "not requested yet: %s %s", e->method, e->path);
	return &e->rec->req;
}

static struct call *stream_of(struct fake_expect *e)
{
	cr_assert(e->call && e->call->x.to.on_data, "no open stream: %s %s", e->method, e->path);
	return e->call;
}

void fake_stream_send(struct fake_expect *e, const char *text)
{
	strbuf_adds(&stream_of(e)->out, text);
	wake(e->call);
}

void fake_stream_end(struct fake_expect *e)
{
	end_with(stream_of(e), 200, 0, "");
}

void fake_stream_error(struct fake_expect *e, enum err_kind kind, const char *text)
{
	end_err(stream_of(e), kind, text);
	wake(e->call);
}

void fake_transport_set_api(struct fake_transport *f, struct fake_api *api)
{
	if (f->api) {
		struct fake_transport **p = &f->api->transports;

		while (*p != f)
			p = &(*p)->next_of_api;
		*p = f->next_of_api;
	}
	f->api = api;
	if (api) {
		f->next_of_api = api->transports;
		api->transports = f;
	}
}
