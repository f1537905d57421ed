/* SPDX-License-Identifier: MIT */
/*
 * The HTTP side of the API, from the ground up: what a request is and how it is answered
 * (answer.c), the files that serve requests, and on top the listener
 * (listener.c), which none of them calls. An answer ends its request, which frees what the request
 * owns.
 */
#ifndef TEC_APIHTTP_APIHTTP_INTERNAL_H
#define TEC_APIHTTP_APIHTTP_INTERNAL_H

#include <sys/queue.h>

#include "tec/apihttp/listener.h"
#include "tec/apireq/rights.h"
#include "tec/apireq/status.h"
#include "tec/apireq/request_info.h"
#include "tec/apireq/user.h"

struct apihttp_watch;
struct apihttp_job;
struct document;

/* What the requests of a server share; the listener owns it. */
struct apihttp_shared {
	struct apihttp_listener_conf conf;
	struct loop *loop;
	LIST_HEAD(, apihttp_watch) watches; /* owned by their requests */
	size_t n_watches;
	struct apihttp_job *job;     /* NULL: none; owned by its request */
	struct document **documents; /* owned, by paths.c */
	size_t n_documents;
};

/* One request in progress. */
struct apihttp_call {
	struct apihttp_shared *shared;
	struct httpd_req *req;
	struct apireq_user user;
	const struct schema_kind *kind; /* NULL: not about an object */
	struct apireq_request_info *t;  /* valid with kind; a call of the store may take parts */
};

/* ---- answer.c */

#define APIHTTP_JSON "application/json"
#define APIHTTP_TEXT "text/plain; charset=utf-8"

void apihttp_answer(struct httpd_req *req, struct apireq_answer take);
void apihttp_answer_json(struct httpd_req *req, int code, struct json_object *take_o);
/* Answer with a Status that has this message. */
void apihttp_answer_refuse(struct httpd_req *req, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Answer 406: the client accepts none of our media types. */
void apihttp_answer_not_acceptable(struct httpd_req *req);
/* Forbid caches to keep the answer that follows. */
void apihttp_answer_uncached(struct httpd_req *req);

/*
 * An answer that is sent in pieces. `piece` is called from the loop, once per turn, and never before
 * the client has read the last piece. It adds a piece and asks for the next one, or it ends or
 * aborts the stream (net/httpd). Embedded; the owner sets req, loop, piece and arg, and cancels next.
 */
struct apihttp_pieces {
	struct httpd_req *req;
	struct loop *loop;
	void (*piece)(void *arg);
	void *arg;
	struct defer next;
	bool blocked; /* the socket has not taken the last piece yet */
};

/* Send the head of the answer. The first piece must be asked for. */
void apihttp_pieces_start(struct apihttp_pieces *s, const char *type);
void apihttp_pieces_add(struct apihttp_pieces *s, const void *data, size_t len);
/* Ask for the next piece, if need be after the client has read the last one. */
void apihttp_pieces_more(struct apihttp_pieces *s);

/* ---- objects.c */

/* Serve a request about an object whose user, kind and verb have been checked. */
void apihttp_objects(const struct apihttp_call *c);
void apihttp_objects_drain(struct apihttp_shared *shared); /* end every watch */

/* ---- paths.c: documents */

/* Serve a path that is open to anonymous users. False: it is not, and nothing was answered. */
bool apihttp_paths_open(struct apihttp_shared *shared, struct httpd_req *req);
/* Serve any other path that is not about an object. */
void apihttp_paths(const struct apihttp_call *c);
void apihttp_paths_fini(struct apihttp_shared *shared);

/* ---- admin.c. False: the path is another one, and nothing was answered. */

/* Serve a backup or a change of the sealing key. */
bool apihttp_admin(const struct apihttp_call *c);
/* Serve PUT .../approvedimages/NAME/values. */
bool apihttp_admin_values(const struct apihttp_call *c);

#endif
