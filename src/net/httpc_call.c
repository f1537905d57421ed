/* SPDX-License-Identifier: MIT */
/*
 * One transfer: copy and check the request, set the options of its easy handle, handle the body as it
 * arrives, and interpret curl's result. curl's callbacks do as little as possible; the only user code
 * that runs in them is on_data.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

#include "httpc_internal.h"

/* ---- the request ---- */

/* Test eight bytes at a time: each request has a token of about a thousand bytes. */
bool httpc_printable(const char *s)
{
	const uint64_t each = 0x0101010101010101u, high = each * 0x80;
	size_t len = strlen(s);

	for (; len >= 8; s += 8, len -= 8) {
		uint64_t v, is_del;

		memcpy(&v, s, 8);
		is_del = v ^ (each * 0x7f);
		/* The high bit of a byte is set if it was below 0x20 or 0x7f. */
		if ((((v - each * 0x20) & ~v) | ((is_del - each) & ~is_del)) & high)
			return false;
	}
	for (; len > 0; s++, len--)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

/* curl copies the line; its copy is wiped when the list is freed. */
static void add_header(struct httpc_call *k, const char *line)
{
	struct curl_slist *l = curl_slist_append(k->headers, line);

	if (!l)
		DIE("out of memory: http header");
	k->headers = l;
}

/* Set the headers, including those that suppress curl's own. */
static int copy_headers(struct httpc_call *k, const struct httpc_request *req)
{
	struct strbuf line = STRBUF_INIT;
	bool has_type = false;
	int rc = 0;

	for (size_t i = 0; i < req->n_headers && rc == 0; i++) {
		const struct httpc_header *h = &req->headers[i];

		if (!httpc_printable(h->name) || !httpc_printable(h->value) || !*h->name ||
			strchr(h->name, ':'))
			rc = err_set(&k->err, ERR_INVALID,
				"a request header contains control characters");
		has_type = has_type || strcasecmp(h->name, "content-type") == 0;
		strbuf_reset(&line);
		/* "Name;" is curl's way to send an empty value. */
		strbuf_adds(&line, h->name);
		strbuf_adds(&line, *h->value ? ": " : ";");
		strbuf_adds(&line, h->value);
		if (rc == 0)
			add_header(k, strbuf_str(&line));
	}
	if (rc == 0 && req->bearer) {
		strbuf_reset(&line);
		strbuf_adds(&line, "Authorization: Bearer ");
		strbuf_adds(&line, req->bearer);
		if (!*req->bearer || strpbrk(req->bearer, " \t\r\n") ||
			!httpc_printable(req->bearer))
			rc = err_set(&k->err, ERR_INVALID,
				"the bearer token contains blanks or control characters");
		else
			add_header(k, strbuf_str(&line));
	}
	if (line.data)
		secret_wipe(line.data, line.cap);
	strbuf_fini(&line);
	if (k->body.data)
		add_header(k, "Expect:"); /* no wait for 100-continue */
	if (k->body.data && !has_type)
		add_header(k, "Content-Type:");
	return rc;
}

/* "::ADDR:PORT" means: for every host and port connect to this address (CURLOPT_CONNECT_TO). */
static void set_connect_to(struct httpc_call *k, const char *addr_port, int addr_len)
{
	cleanup_free char *s = xasprintf("::%.*s", addr_len, addr_port);

	k->connect_to = curl_slist_append(NULL, s);
	if (!k->connect_to)
		DIE("out of memory: connect-to");
}

/*
 * Split the URL into scheme, authority and path. If the TLS name differs from the URL's host, curl is
 * given a URL with that name, because it takes SNI and the name to verify from the URL. It then
 * connects to the original authority, which stays in the Host header.
 */
static int place_url(struct httpc_call *k, const struct httpc_request *req)
{
	const char *auth = strstr(req->url, "://"), *name = req->tls ? req->tls->server_name : NULL;
	const char *port;
	int auth_len, host_len;

	if (!auth || !httpc_printable(req->url) || strchr(req->url, ' '))
		return err_set(&k->err, ERR_INVALID, "invalid URL");
	auth += 3;
	auth_len = (int)strcspn(auth, "/?#");
	if (!auth_len || memchr(auth, '@', (size_t)auth_len))
		return err_set(&k->err, ERR_INVALID,
			"invalid URL: it has no host, or it contains user information");
	port = auth[0] == '[' ? memchr(auth, ']', (size_t)auth_len) : auth;
	if (!port)
		return err_set(
			&k->err, ERR_INVALID, "invalid URL: the host has no closing bracket");
	k->origin_key = xstrndup(req->url, (size_t)(auth + auth_len - req->url));
	port = memchr(port, ':', (size_t)(auth + auth_len - port));
	host_len = port ? (int)(port - auth) : auth_len;
	if (req->connect_to) {
		set_connect_to(k, req->connect_to, (int)strlen(req->connect_to));
		k->where = xasprintf("%.*s%s as %.*s", (int)(auth - req->url), req->url,
			req->connect_to, host_len, auth);
	} else {
		k->where = xstrdup(k->origin_key);
	}
	if (!name || (strlen(name) == (size_t)host_len &&
			     strncasecmp(name, auth, (size_t)host_len) == 0)) {
		k->url = xstrdup(req->url);
		return 0;
	}
	k->url = xasprintf(strchr(name, ':') && name[0] != '[' ? "%.*s[%s]%s" : "%.*s%s%s",
		(int)(auth - req->url), req->url, name, auth + host_len);
	if (!req->connect_to) {
		cleanup_free char *to = xasprintf(port ? "%.*s" : "%.*s:", auth_len, auth);

		set_connect_to(k, to, (int)strlen(to));
	}
	cleanup_free char *host = xasprintf("Host: %.*s", auth_len, auth);
	add_header(k, host);
	return 0;
}

/* The body is moved if possible; otherwise it is copied once, and the copy is wiped. */
struct httpc_call *httpc_call_new(const struct httpc_request *req, bool *ok)
{
	struct httpc_call *k = xcalloc(1, sizeof(*k));

	k->fd = -1;
	k->method = xstrdup(req->method);
	k->tls = req->tls ? httpc_tls_ref(req->tls) : NULL;
	if (req->take_body)
		k->body = body_move(req->take_body);
	else if (req->body)
		body_add(&k->body, req->body, req->body_len, req->body_len);
	k->max_body = req->max_body ? req->max_body : HTTPC_RESULT_MAX;
	k->deadline_ms = req->deadline_ms;
	k->connect_ms = req->connect_ms ? req->connect_ms : HTTPC_CONNECT_MS;
	k->silence_ms = req->silence_ms;
	k->stream = req->stream;
	k->yields = req->yields;
	k->max_in_flight = req->max_in_flight ? req->max_in_flight : HTTPC_PER_ORIGIN;
	k->reach = req->reach;
	k->once = req->once;
	*ok = place_url(k, req) == 0 && copy_headers(k, req) == 0;
	return k;
}

/* Whatever held a token or a key is wiped by the allocator (curl's lists) or by body_fini(). */
void httpc_call_free(struct httpc_call *k)
{
	curl_slist_free_all(k->headers); /* wipes the token: see the allocator in httpc.c */
	curl_slist_free_all(k->connect_to);
	body_fini(&k->body);
	free(k->method);
	free(k->url);
	free(k->origin_key);
	free(k->where);
	free(k->content_type);
	free(k->location);
	free(k->set_cookie);
	free(k->www_authenticate);
	body_fini(&k->answer);
	httpc_tls_unref(k->tls);
	if (k->fd >= 0)
		close(k->fd);
	free(k);
}

/* ---- curl's callbacks ---- */

/* Set keepalive and timeouts on a new connection. */
static int on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	unsigned unacked_ms = 20000;
	int idle_s = 15, interval_s = 5, on = 1;

	/* A dead connection is closed after 20 s even if nothing is sent on it. A failure of these
	 * calls only costs that detection. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof(unacked_ms));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	return CURL_SOCKOPT_OK;
}

/* Record the scope of the address, for the error and the answer. */
static bool may_reach(struct httpc_call *k, enum addr_scope scope)
{
	k->scope = scope;
	k->refused = !(k->reach & ADDR_REACH(scope));
	return !k->refused;
}

/* Called before connecting: if this address is refused, curl tries the next one of the name. */
static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
	if (!may_reach(arg, addr_scope(&to->addr)))
		return CURL_SOCKET_BAD;
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static enum addr_scope scope_of_text(const char *ip)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

	if (inet_pton(AF_INET, ip, &v4.sin_addr) == 1)
		return addr_scope((const struct sockaddr *)&v4);
	if (inet_pton(AF_INET6, ip, &v6.sin6_addr) == 1)
		return addr_scope((const struct sockaddr *)&v6);
	return ADDR_RESERVED;
}

/* Called before the request is sent, on a new connection or on one that an earlier call left, whose
 * address may not be permitted to this call. */
static int on_request(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct httpc_call *k = arg;

	if (k->once && k->was_sent) {
		err_set(&k->err, ERR_TRANSIENT,
			"%s %s: the connection was closed without an answer", k->method, k->where);
		return CURL_PREREQFUNC_ABORT;
	}
	k->was_sent = true;
	return !k->reach || may_reach(k, scope_of_text(ip)) ? CURL_PREREQFUNC_OK
							    : CURL_PREREQFUNC_ABORT;
}

/* Append to a body that is delivered as a whole. Returning 0 ends the transfer; k->err or k->cut
 * tells why. */
static size_t collect(struct httpc_call *k, const char *data, size_t len, size_t max)
{
	curl_off_t length = -1;
	size_t expect = 0;

	if (k->answer.len + len > max) {
		if (k->on_data) { /* an error page: its status and first bytes are enough */
			body_add(&k->answer, data, max - k->answer.len, 0);
			k->cut = true;
			return 0;
		}
		err_set(&k->err, ERR_INVALID, "the answer is larger than %zu bytes", max);
		return 0;
	}
	if (!k->answer.cap &&
		!curl_easy_getinfo(k->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length))
		expect = length > 0 && (uint64_t)length <= max ? (size_t)length : 0;
	body_add(&k->answer, data, len, expect);
	return len;
}

/* Receive a part of the body. A short count ends the transfer with CURLE_WRITE_ERROR; k->err or
 * k->cut holds the reason. */
static size_t on_write(char *data, size_t size, size_t n, void *arg)
{
	struct httpc_call *k = arg;
	size_t len = size * n;
	int rc;

	if (k->state != HTTPC_CALL_RUNNING || len == 0)
		return 0;
	if (!k->status)
		(void)curl_easy_getinfo(k->easy, CURLINFO_RESPONSE_CODE, &k->status);
	if (k->silence_ms)
		timer_set(&k->silence, k->silence_ms);
	if (!k->on_data)
		return collect(k, data, len, k->max_body);
	if (k->status < 200 || k->status > 299)
		return collect(k, data, len, HTTPC_RESULT_MAX);
	rc = k->on_data(k->arg, data, len, &k->err);
	if (k->state != HTTPC_CALL_RUNNING) /* cancelled by its own on_data */
		return 0;
	if (rc != 0 && !err_is_set(&k->err))
		err_set(&k->err, ERR_BUG, "on_data failed without an error");
	return rc == 0 ? len : 0;
}

/* curl derives behaviour from its own options (no body for HEAD), so the method is not just
 * text. */
static CURLcode set_method(struct httpc_call *k)
{
	CURL *e = k->easy;
	CURLcode rc;

	if (strcmp(k->method, "HEAD") == 0)
		return curl_easy_setopt(e, CURLOPT_NOBODY, 1L);
	if (!k->body.data && (strcmp(k->method, "GET") == 0 || strcmp(k->method, "DELETE") == 0)) {
		rc = curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
	} else {
		rc = curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)k->body.len);
		if (!rc) /* not copied */
			rc = curl_easy_setopt(
				e, CURLOPT_POSTFIELDS, k->body.data ? k->body.data : "");
	}
	if (!rc)
		rc = curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, k->method);
	return rc;
}

/* Set all options of a handle that was reset. */
CURLcode httpc_call_setup(struct httpc_call *k)
{
	CURL *e = k->easy;
	CURLcode rc = set_method(k);
#define SET(opt, v)                                                                                \
	if (!rc)                                                                                   \
	rc = curl_easy_setopt(e, (opt), (v))
	SET(CURLOPT_URL, k->url);
	SET(CURLOPT_PRIVATE, k);
	SET(CURLOPT_ERRORBUFFER, k->curl_text);
	SET(CURLOPT_WRITEFUNCTION, on_write);
	SET(CURLOPT_WRITEDATA, k);
	SET(CURLOPT_SOCKOPTFUNCTION, on_socket);
	if (k->reach) {
		SET(CURLOPT_OPENSOCKETFUNCTION, on_open);
		SET(CURLOPT_OPENSOCKETDATA, k);
	}
	if (k->reach || k->once) {
		SET(CURLOPT_PREREQFUNCTION, on_request);
		SET(CURLOPT_PREREQDATA, k);
	}
	SET(CURLOPT_HTTPHEADER, k->headers);
	SET(CURLOPT_CONNECT_TO, k->connect_to);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)k->connect_ms);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_QUICK_EXIT, 1L); /* a pending name lookup must not block the loop */
	SET(CURLOPT_PROXY, "");      /* none, even if the environment has one */
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_MAXAGE_CONN, 60L);
	/* The buffer is freed, and therefore wiped, after each transfer; wiping the default of 64 KiB
	 * costs more than the request. */
	SET(CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
	if (k->dialled)
		SET(CURLOPT_CONNECT_ONLY, 1L);
#undef SET
	return rc ? rc : httpc_tls_apply(k->tls, e);
}

/* ---- interpreting results ---- */

/* Decide whether a retry can help. TLS failures that need a person are ERR_DENIED. */
static enum err_kind kind_of(CURLcode rc, const char *text)
{
	switch ((int)rc) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_ISSUER_ERROR:
		return ERR_DENIED;
	case CURLE_SSL_CONNECT_ERROR:
		/* A server that disappears during the handshake returns; one that refuses it does not
		 * change its mind. OpenSSL's text tells them apart. */
		return strstr(text, "error:") && !strstr(text, "unexpected eof") ? ERR_DENIED
										 : ERR_TRANSIENT;
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
		/* With TLS 1.3 a client certificate is refused only after the handshake. */
		return strstr(text, "alert") ? ERR_DENIED : ERR_TRANSIENT;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL: /* also an answer that is HTTP/0.9 */
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING:
		return ERR_INVALID;
	default:
		return ERR_TRANSIENT;
	}
}

/* Join all WWW-Authenticate headers: challenges may be in one header or several (RFC 9110 section
 * 11.6.1). */
static void take_challenges(struct httpc_call *k)
{
	struct strbuf all = STRBUF_INIT;
	struct curl_header *h;

	for (size_t i = 0;
		curl_easy_header(k->easy, "WWW-Authenticate", i, CURLH_HEADER, -1, &h) == CURLHE_OK;
		i++) {
		if (all.len + strlen(h->value) > HTTPC_HEADER_MAX) {
			strbuf_fini(&all);
			return;
		}
		if (i)
			strbuf_adds(&all, ", ");
		strbuf_adds(&all, h->value);
	}
	k->www_authenticate = all.len ? strbuf_steal(&all) : NULL;
	strbuf_fini(&all);
}

/*
 * Replace curl's texts that contain elapsed milliseconds. Error texts become conditions, and a text
 * that differs each time would cause a write each time.
 */
static const char *untimed(CURLcode rc, long sys, const char *text)
{
	if (rc == CURLE_OPERATION_TIMEDOUT)
		return "no answer in time";
	if (rc == CURLE_COULDNT_CONNECT)
		return sys ? strerror((int)sys) : "cannot connect";
	return text;
}

/* Take the connection of httpc_dial(). curl closes its own descriptor, so it is duplicated. */
static void take_socket(struct httpc_call *k, CURLcode rc)
{
	const char *text = k->curl_text[0] ? k->curl_text : curl_easy_strerror(rc);
	curl_socket_t fd = CURL_SOCKET_BAD;
	long sys = 0;

	if (rc == CURLE_OK) {
		(void)curl_easy_getinfo(k->easy, CURLINFO_ACTIVESOCKET, &fd);
		k->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (k->fd < 0)
			err_set_errno(
				&k->err, ERR_TRANSIENT, errno, "cannot take over the connection");
		return;
	}
	(void)curl_easy_getinfo(k->easy, CURLINFO_OS_ERRNO, &sys);
	err_set(&k->err, ERR_TRANSIENT, "%s", untimed(rc, sys, text));
	k->err.sys = (int)sys;
}

/* Set the error, if any, and the fields of the answer. Header values with control characters or
 * above the limit are treated as missing. */
void httpc_call_result(struct httpc_call *k, CURLcode rc)
{
	const char *text = k->curl_text[0] ? k->curl_text : curl_easy_strerror(rc), *type = NULL;
	const char *to = NULL;
	struct curl_header *cookie;
	curl_off_t after_s = 0;

	if (k->dialled) {
		take_socket(k, rc);
		return;
	}
	(void)curl_easy_getinfo(k->easy, CURLINFO_RESPONSE_CODE, &k->status);
	if (rc == CURLE_WRITE_ERROR && k->cut)
		rc = CURLE_OK;
	if (rc != CURLE_OK && !err_is_set(&k->err) && k->refused) {
		err_set(&k->err, ERR_DENIED, "%s %s: not sent, its address is %s", k->method,
			k->where, addr_scope_name(k->scope));
	} else if (rc != CURLE_OK && !err_is_set(&k->err)) {
		long sys = 0;

		(void)curl_easy_getinfo(k->easy, CURLINFO_OS_ERRNO, &sys);
		text = untimed(rc, sys, text);
		err_set(&k->err, kind_of(rc, text), "%s %s: %s", k->method, k->where, text);
		k->err.sys = (int)sys;
	} else if (rc == CURLE_OK && !k->status) {
		err_set(&k->err, ERR_INVALID, "%s %s: no HTTP answer", k->method, k->where);
	}
	if (curl_easy_getinfo(k->easy, CURLINFO_RETRY_AFTER, &after_s) == CURLE_OK && after_s > 0)
		k->retry_after_ms = after_s > HTTPC_RETRY_MAX_MS / 1000 ? HTTPC_RETRY_MAX_MS
									: (uint32_t)after_s * 1000;
	if (curl_easy_getinfo(k->easy, CURLINFO_CONTENT_TYPE, &type) == CURLE_OK && type &&
		httpc_printable(type))
		k->content_type = xstrdup(type);
	if (curl_easy_getinfo(k->easy, CURLINFO_REDIRECT_URL, &to) == CURLE_OK && to &&
		strlen(to) <= HTTPC_HEADER_MAX)
		k->location = xstrdup(to);
	if (curl_easy_header(k->easy, "Set-Cookie", 0, CURLH_HEADER, -1, &cookie) == CURLHE_OK &&
		strlen(cookie->value) <= HTTPC_HEADER_MAX && httpc_printable(cookie->value))
		k->set_cookie = xstrdup(cookie->value);
	if (k->status == 401)
		take_challenges(k);
}
