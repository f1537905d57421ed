/* SPDX-License-Identifier: MIT */
/*
 * Requests and routes: the accessors for handlers, and the choice of the handler. 404, 405, 411 and 415
 * follow from the table of routes.
 */
#include "config.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

#include "net_internal.h"

#define CLOSED_RETRY_S 5

static const struct {
	const char *name;
	enum httpd_method method;
} method_names[] = {
	{"GET", HTTPD_GET},
	{"HEAD", HTTPD_HEAD},
	{"POST", HTTPD_POST},
	{"PUT", HTTPD_PUT},
	{"DELETE", HTTPD_DELETE},
	{"PATCH", HTTPD_PATCH},
	{"OPTIONS", HTTPD_OPTIONS},
};

/* ---- requests */

const char *httpd_method_name(enum httpd_method m)
{
	for (size_t i = 0; i < ARRAY_LEN(method_names); i++)
		if (method_names[i].method == m)
			return method_names[i].name;
	return "?";
}

/* The guard has checked the request line, so there is a blank. 0: a method that no route can have,
 * such as TRACE. */
static enum httpd_method method_of(const char *data)
{
	const char *end = strchr(data, ' ');

	for (size_t i = 0; i < ARRAY_LEN(method_names); i++)
		if (strlen(method_names[i].name) == (size_t)(end - data) &&
			memcmp(method_names[i].name, data, (size_t)(end - data)) == 0)
			return method_names[i].method;
	return 0;
}

/* Terminate every field value: blanks and CR before the LF become NUL. */
static void split_fields(struct httpd_req *r)
{
	for (char *c = r->fields; c < r->fields_end; c++) {
		if (*c != '\n')
			continue;
		for (char *e = c - 1; *e == '\r' || *e == ' ' || *e == '\t'; e--)
			*e = '\0';
	}
}

/* Copy head and body into the request: data = head, body, NUL, path, NUL. Offsets in p->head refer
 * to the same bytes. */
struct httpd_req *httpd_req_new(struct httpd_peer *p, const char *data, size_t len)
{
	size_t path_len = strcspn(data + p->head.target_off, "? ");
	struct httpd_req *r = xcalloc(1, sizeof(*r) + len + 1 + path_len + 1);

	memcpy(r->data, data, len);
	memcpy(r->data + len + 1, data + p->head.target_off, path_len);
	r->data_len = len;
	r->peer = p;
	r->method = method_of(r->data);
	r->is_head = r->method == HTTPD_HEAD;
	r->keep_alive = p->head.keep_alive;
	r->http10 = p->head.http10;
	r->has_length = p->head.has_length || p->head.chunked;
	r->start_us = clock_boot_us();
	r->target = r->data + p->head.target_off;
	r->path = r->data + len + 1;
	r->data[p->head.target_off + p->head.target_len] = '\0';
	r->fields = r->data + p->head.fields_off;
	r->fields_end = r->data + p->head.head_len - 2;
	split_fields(r);
	r->body = r->data + p->head.head_len;
	r->body_len = len - p->head.head_len;
	return r;
}

/* Cancel the request's ops before gone_fn, which may free what they refer to. */
void httpd_req_free(struct httpd_req *r)
{
	bool wipe = r->peer->httpd->conf.wipe;

	r->peer->req = NULL;
	if (r->peer->state != HTTPD_PEER_BODY) /* made from the head only: the body is still read */
		httpd_body_end(r->peer);
	op_scope_cancel(&r->ops);
	if (r->gone_fn)
		r->gone_fn(r->gone_arg);
	strbuf_fini(&r->headers);
	if (wipe)
		secret_wipe(r->data, r->data_len);
	free(r);
}

enum httpd_method httpd_req_method(const struct httpd_req *r)
{
	return r->method;
}

const char *httpd_req_path(const struct httpd_req *r)
{
	return r->path;
}

const char *httpd_req_target(const struct httpd_req *r)
{
	return r->target;
}

/* Return the first field of that name; the guard has refused duplicates where they matter. */
const char *httpd_req_header(const struct httpd_req *r, const char *name)
{
	size_t len = strlen(name);
	const char *line = r->fields;

	while (line < r->fields_end) {
		if (strncasecmp(line, name, len) == 0 && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " \t");
		line = memchr(line, '\n', (size_t)(r->fields_end - line));
		if (!line)
			break;
		line++;
	}
	return NULL;
}

const char *httpd_req_body(const struct httpd_req *r, size_t *len)
{
	*len = r->body_len;
	return r->body;
}

/* Formatted on first use and kept with the connection, as most requests are never logged. */
const char *httpd_req_peer(const struct httpd_req *r)
{
	struct httpd_peer *p = r->peer;

	if (p->text[0] == '\0')
		addr_format(httpd_peer_addr(p), p->text);
	return p->text;
}

bool httpd_req_local(const struct httpd_req *r, uint32_t *uid)
{
	return httpd_peer_user(r->peer, uid);
}

void httpd_req_source(const struct httpd_req *r, uint8_t out[ADDR_SOURCE_LEN])
{
	addr_source(httpd_peer_addr(r->peer), out);
}

/* The peer's timer is the request's deadline while it is BUSY. */
uint32_t httpd_req_ms_left(const struct httpd_req *r)
{
	uint64_t now = clock_boot_ms();
	uint64_t at = r->peer->timer.at_ms;

	return at > now ? (uint32_t)(at - now) : 0;
}

bool httpd_req_is_tls(const struct httpd_req *r)
{
	return httpd_peer_is_tls(r->peer);
}

enum tls_client_state httpd_req_client(const struct httpd_req *r, struct tls_client *out)
{
	struct ssl_st *ssl = httpd_peer_ssl(r->peer);

	return ssl ? tls_client_of(ssl, out) : TLS_CLIENT_NONE;
}

void *httpd_req_arg(const struct httpd_req *r)
{
	return r->peer->httpd->conf.arg;
}

struct op_scope *httpd_req_ops(struct httpd_req *r)
{
	return &r->ops;
}

/* One function suffices: a handler frees its own state in it. */
void httpd_req_on_gone(struct httpd_req *r, httpd_gone_fn fn, void *arg)
{
	assert(!r->gone_fn);
	r->gone_fn = fn;
	r->gone_arg = arg;
}

/* ---- routes */

/* A 405 must list the permitted methods in Allow (RFC 9110 section 15.5.6). */
static void refuse_method(struct httpd_req *r, unsigned allowed)
{
	cleanup_strbuf struct strbuf allow = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(method_names); i++)
		if (allowed & method_names[i].method)
			strbuf_addf(&allow, "%s%s", allow.len ? ", " : "", method_names[i].name);
	httpd_reply_header(r, "Allow", strbuf_str(&allow));
	httpd_reply_error(r, 405, 0, "allowed methods: %s", strbuf_str(&allow));
}

/* Compare the media type without its parameters. A missing Content-Type is accepted. */
static bool body_type_fits(const struct httpd_req *r, const char *wanted)
{
	const char *type = httpd_req_header(r, "Content-Type");
	size_t len;

	if (!wanted || !type)
		return true;
	len = strcspn(type, "; \t");
	return len == strlen(wanted) && strncasecmp(type, wanted, len) == 0;
}

/* Return how closely a route fits the path: 0 not at all, SIZE_MAX exactly, otherwise the length of
 * its prefix. */
static size_t route_fit(const char *route, const char *path)
{
	size_t len = strlen(route);

	if (strcmp(route, path) == 0)
		return SIZE_MAX;
	if (len < 2 || strcmp(route + len - 2, "/*") != 0)
		return 0;
	return strncmp(route, path, len - 1) == 0 ? len - 1 : 0;
}

/* Count the request against its route's limit. False: the limit is reached and r has been
 * refused. */
static bool enter_route(struct httpd_req *r)
{
	struct httpd *h = r->peer->httpd;
	unsigned *in_route = &h->in_route[r->route - h->conf.routes];

	if (r->route->at_once == 0)
		return true;
	if (*in_route >= r->route->at_once) {
		r->keep_alive = false;
		httpd_reply_error(r, 503, 1, "too many concurrent requests of this kind");
		return false;
	}
	++*in_route;
	r->peer->in_route = in_route;
	return true;
}

/* Called when the reply is written, so that a slow reader holds its place in the route's limit. */
void httpd_leave_route(struct httpd_peer *p)
{
	if (p->in_route)
		--*p->in_route;
	p->in_route = NULL;
}

/* Find the route for this path and method. NULL: none; *allowed receives the methods of the
 * path. */
static const struct httpd_route *find_route(struct httpd_req *r, unsigned *allowed)
{
	const struct httpd_conf *conf = &r->peer->httpd->conf;
	const struct httpd_route *route = NULL;
	size_t best = 0;

	*allowed = 0;
	for (size_t i = 0; i < conf->n_routes; i++) {
		size_t fit = route_fit(conf->routes[i].path, r->path);

		if (fit == 0 || fit < best)
			continue;
		if (fit > best) {
			*allowed = 0;
			route = NULL;
		}
		best = fit;
		r->route = &conf->routes[i]; /* also labels a 405 */
		*allowed |= conf->routes[i].methods;
		if (conf->routes[i].methods & r->method)
			route = &conf->routes[i];
	}
	return route;
}

/* Check what the route requires, in the order 404, 405, 411, 415, 503, then call the handler. */
static void route_request(struct httpd_req *r)
{
	unsigned allowed;
	const struct httpd_route *route = find_route(r, &allowed);

	if (!r->route) {
		httpd_reply_error(r, 404, 0, "no such path");
		return;
	}
	if (!route) {
		refuse_method(r, allowed);
		return;
	}
	r->route = route;
	if (route->needs_body && !r->has_length)
		httpd_reply_error(r, 411, 0, "a Content-Length is required");
	else if (!body_type_fits(r, route->body_type))
		httpd_reply_error(r, 415, 0, "the body must be %s", route->body_type);
	else if (enter_route(r))
		route->fn(r, r->peer->httpd->conf.arg);
}

/* Decide from the head alone. The request is a temporary one, and may not be replied to here. */
bool httpd_req_wants_body(struct httpd_req *r, bool *known)
{
	const struct httpd *h = r->peer->httpd;
	unsigned allowed;
	const struct httpd_route *route = find_route(r, &allowed);
	enum httpd_standing standing = HTTPD_STRANGER;

	if (h->closed || !route || !body_type_fits(r, route->body_type))
		return false;
	if (h->conf.standing)
		standing = h->conf.standing(r, h->conf.arg);
	*known = standing == HTTPD_KNOWN;
	return standing != HTTPD_REFUSED;
}

/* Called inside libevhtp's callback. The token taken at accept pays for the first request. */
void httpd_serve(struct httpd_req *r)
{
	struct httpd_peer *p = r->peer;
	struct httpd *h = p->httpd;
	uint32_t retry_s;

	if (h->closed) {
		httpd_reply_error(r, 503, CLOSED_RETRY_S, "%s", h->closed);
	} else if (!p->prepaid && !ratelimit_take(h->conf.rate, httpd_peer_addr(p), &retry_s)) {
		r->keep_alive = false; /* free the connection for other clients */
		httpd_reply_error(r, 429, retry_s, "too many requests from this address");
	} else {
		p->prepaid = false;
		route_request(r);
	}
}
