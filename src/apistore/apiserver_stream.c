/* SPDX-License-Identifier: MIT */
/* A client that does not read stops the stream after one piece, which bounds its memory. */
#include "config.h"

#include "apiserver_internal.h"

/* While the stream is blocked nothing is done: on_drained() asks again. */
static void on_turn(void *arg)
{
	struct apiserver_stream *s = arg;

	if (!s->blocked)
		s->piece(s->arg);
}

void apiserver_stream_more(struct apiserver_stream *s)
{
	defer_call(&s->next, s->loop, on_turn, s);
}

static void on_drained(void *arg)
{
	struct apiserver_stream *s = arg;

	s->blocked = false;
	apiserver_stream_more(s);
}

void apiserver_stream_start(struct apiserver_stream *s, int code, const char *type)
{
	apiserver_answer_uncached(s->req);
	httpd_stream_start(s->req, code, type, on_drained, s);
}

void apiserver_stream_add(struct apiserver_stream *s, const void *data, size_t len)
{
	if (len > 0)
		s->blocked = httpd_stream_add(s->req, data, len) > 0;
}

void apiserver_stream_cancel(struct apiserver_stream *s)
{
	defer_cancel(&s->next);
}
