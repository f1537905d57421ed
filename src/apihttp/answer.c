/* SPDX-License-Identifier: MIT */
/* The headers that every answer has, and the shapes that most answers have. A client that does not
 * read stops a stream after one piece, which bounds its memory. */
#include "config.h"

#include "apihttp_internal.h"

#include <stdarg.h>
#include <string.h>

#include "tec/base/json.h"

#define WARNINGS_MAX 4096 /* bytes of all warnings together, as in kube-apiserver */

void apihttp_answer_uncached(struct httpd_req *req)
{
	httpd_reply_header(req, "Cache-Control", "no-cache, private");
}

/* Send one Warning header per warning (RFC 7234, section 5.5), up to WARNINGS_MAX bytes in all; the
 * rest is dropped. Quotes and control characters are escaped: the text may quote the client. */
static void common_headers(struct httpd_req *req, const struct apireq_answer *a)
{
	size_t left = WARNINGS_MAX;

	apihttp_answer_uncached(req);
	for (size_t i = 0; i < a->warnings.n && strlen(a->warnings.text[i]) <= left; i++) {
		cleanup_strbuf struct strbuf quoted = STRBUF_INIT;

		strbuf_adds(&quoted, "299 - \"");
		for (const char *p = a->warnings.text[i]; *p; p++) {
			if (*p == '"' || *p == '\\')
				strbuf_addc(&quoted, '\\');
			strbuf_addc(&quoted, (unsigned char)*p < ' ' || *p == 0x7f ? ' ' : *p);
		}
		strbuf_addc(&quoted, '"');
		left -= strlen(a->warnings.text[i]);
		httpd_reply_header(req, "Warning", quoted.data);
	}
}

void apihttp_answer(struct httpd_req *req, struct apireq_answer take)
{
	const char *type = take.len && take.body[0] == '{' ? APIHTTP_JSON : APIHTTP_TEXT;

	common_headers(req, &take);
	if (take.code == 401)
		httpd_reply_header(req, "WWW-Authenticate", "Bearer realm=\"tec-operator\"");
	httpd_reply(req, take.code, type, take.body ? take.body : "", take.len);
	apireq_answer_fini(&take);
}

void apihttp_answer_json(struct httpd_req *req, int code, struct json_object *take_o)
{
	apihttp_answer(req, apireq_status_object(code, take_o));
	json_object_put(take_o);
}

void apihttp_answer_refuse(struct httpd_req *req, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	apihttp_answer(req, apireq_status_vrefusal(code, fmt, ap));
	va_end(ap);
}

void apihttp_answer_not_acceptable(struct httpd_req *req)
{
	apihttp_answer_refuse(
		req, 406, "only the following media types are accepted: application/json");
}

/* ---- streams */

/* While the stream is blocked nothing is done: on_drained() asks again. */
static void on_turn(void *arg)
{
	struct apihttp_pieces *s = arg;

	if (!s->blocked)
		s->piece(s->arg);
}

void apihttp_pieces_more(struct apihttp_pieces *s)
{
	defer_call(&s->next, s->loop, on_turn, s);
}

static void on_drained(void *arg)
{
	struct apihttp_pieces *s = arg;

	s->blocked = false;
	apihttp_pieces_more(s);
}

void apihttp_pieces_start(struct apihttp_pieces *s, const char *type)
{
	apihttp_answer_uncached(s->req);
	httpd_stream_start(s->req, 200, type, on_drained, s);
}

void apihttp_pieces_add(struct apihttp_pieces *s, const void *data, size_t len)
{
	if (len > 0)
		s->blocked = httpd_stream_add(s->req, data, len) > 0;
}
