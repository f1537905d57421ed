/* SPDX-License-Identifier: MIT */
/*
 * The HTTP side of the API, from the ground up: what a request is and how it is answered
 * (apiserver_answer.c), the files that serve requests, and on top the listener
 * (apiserver.c), which none of them calls. An answer ends its request, which frees what the request
 * owns.
 */
#ifndef TEC_APISTORE_APISERVER_INTERNAL_H
#define TEC_APISTORE_APISERVER_INTERNAL_H

#include <sys/queue.h>

#include "tec/apistore/apiserver.h"
#include "tec/apistore/rights.h"
#include "tec/apistore/status.h"
#include "tec/apistore/target.h"
#include "tec/apistore/user.h"

struct apiserver_watch;
struct apiserver_job;
struct document;

/* What the requests of a server share; the listener owns it. */
struct apiserver_shared {
	struct apistore_apiserver_conf conf;
	struct loop *loop;
	LIST_HEAD(, apiserver_watch) watches; /* owned by their requests */
	size_t n_watches;
	struct apiserver_job *job;   /* NULL: none; owned by its request */
	struct document **documents; /* owned, by apiserver_paths.c */
	size_t n_documents;
};

/* One request in progress. */
struct apiserver_call {
	struct apiserver_shared *shared;
	struct httpd_req *req;
	struct apistore_user user;
	const struct schema_kind *kind; /* NULL: not about an object */
	struct apistore_target *t;      /* valid with kind; a call of the store may take parts */
};

/* ---- apiserver_answer.c */

#define APISERVER_JSON "application/json"
#define APISERVER_TEXT "text/plain; charset=utf-8"

void apiserver_answer(struct httpd_req *req, struct apistore_answer take);
void apiserver_answer_json(struct httpd_req *req, int code, struct json_object *take_o);
/* Answer with a Status that has this message. */
void apiserver_answer_refuse(struct httpd_req *req, int code, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* Answer 406: the client accepts none of our media types. */
void apiserver_answer_not_acceptable(struct httpd_req *req);
/* Forbid caches to keep the answer that follows. */
void apiserver_answer_uncached(struct httpd_req *req);

/*
 * An answer that is sent in pieces. `piece` is called from the loop, once per turn, and never before
 * the client has read the last piece. It adds a piece and asks for the next one, or it ends or
 * aborts the stream (net/httpd). Embedded; the owner sets req, loop, piece and arg, and cancels next.
 */
struct apiserver_stream {
	struct httpd_req *req;
	struct loop *loop;
	void (*piece)(void *arg);
	void *arg;
	struct defer next;
	bool blocked; /* the socket has not taken the last piece yet */
};

/* Send the head of the answer. The first piece must be asked for. */
void apiserver_stream_start(struct apiserver_stream *s, const char *type);
void apiserver_stream_add(struct apiserver_stream *s, const void *data, size_t len);
/* Ask for the next piece, if need be after the client has read the last one. */
void apiserver_stream_more(struct apiserver_stream *s);

/* ---- apiserver_objects.c */

/* Serve a request about an object whose user, kind and verb have been checked. */
void apiserver_objects(const struct apiserver_call *c);
void apiserver_objects_drain(struct apiserver_shared *shared); /* end every watch */

/* ---- apiserver_paths.c: documents */

/* Serve a path that is open to anonymous users. False: it is not, and nothing was answered. */
bool apiserver_paths_open(struct apiserver_shared *shared, struct httpd_req *req);
/* Serve any other path that is not about an object. */
void apiserver_paths(const struct apiserver_call *c);
void apiserver_paths_fini(struct apiserver_shared *shared);

/* ---- apiserver_admin.c. False: the path is another one, and nothing was answered. */

/* Serve a backup or a change of the sealing key. */
bool apiserver_admin(const struct apiserver_call *c);
/* Serve PUT .../approvedimages/NAME/values. */
bool apiserver_admin_values(const struct apiserver_call *c);

#endif
