/* SPDX-License-Identifier: MIT */
/* Shared by apiserver.c (authentication, authorization), apiserver_objects.c (bodies and answers),
 * apiserver_paths.c (documents), apiserver_review.c (access reviews, tokens), apiserver_watch.c
 * (streams) and apiserver_admin.c (backups, the sealing key, an image's values). */
#ifndef TEC_APISTORE_APISERVER_INTERNAL_H
#define TEC_APISTORE_APISERVER_INTERNAL_H

#include <sys/queue.h>

#include "tec/apistore/apiserver.h"
#include "tec/apistore/kinds.h"
#include "tec/apistore/request.h"
#include "tec/apistore/rights.h"
#include "tec/loop/timer.h"

struct apiserver_watch;
struct apiserver_job;
struct documents;

struct apistore_apiserver {
	struct apistore_apiserver_conf conf;
	struct loop *loop;
	struct httpd *httpd;                  /* owned */
	struct jws_public *tokens;            /* owned */
	struct timer renew;                   /* when to check the certificates */
	char server[80];                      /* "127.0.0.1:6443", set by the first request */
	LIST_HEAD(, apiserver_watch) watches; /* owned by their requests */
	size_t n_watches;
	struct apiserver_job *job;   /* NULL: none; owned by its request */
	struct documents *documents; /* owned */
};

/* One request in progress. */
struct apiserver_call {
	struct apistore_apiserver *a;
	struct httpd_req *req;
	struct apistore_user user;
	const struct schema_kind *kind; /* NULL: not about an object */
	struct apistore_target *t;      /* valid with kind; a call of the store may take parts */
};

#define APISERVER_JSON "application/json"
#define APISERVER_TEXT "text/plain; charset=utf-8"

/* apiserver.c: send an answer and so end the request, which frees what it owns. */
void apiserver_answer(struct httpd_req *req, struct apistore_answer take);
void apiserver_common_headers(struct httpd_req *req, const struct apistore_answer *a);
struct apistore_answer apiserver_not_acceptable(void);
void apiserver_json(struct httpd_req *req, int code, struct json_object *take_o);

/* apiserver_objects.c */
void apiserver_serve_object(const struct apiserver_call *c);
/* apiserver_paths.c: true: the path is open to anonymous users, and was answered. */
bool apiserver_serve_all(struct apistore_apiserver *a, struct httpd_req *req);
void apiserver_serve_path(const struct apiserver_call *c);

/* apiserver_review.c: kinds that are posted to be answered and never stored. */
bool apiserver_is_question(const struct apiserver_call *c);
void apiserver_review(const struct apiserver_call *c, struct json_object *body);
/* apiserver.c: the attributes of a request for authorization. The strings are borrowed from t. */
struct apistore_act apiserver_act(const struct apistore_target *t, const char *verb);

/* apiserver_watch.c: answers with a stream. */
void apiserver_watch_start(const struct apiserver_call *c);
void apiserver_watch_end_all(struct apistore_apiserver *a);

/* apiserver_admin.c: true: the path is an administration path, and was answered. The caller has
 * authorized the request. */
bool apiserver_admin(const struct apiserver_call *c);
/* The same for PUT .../approvedimages/NAME/values. */
bool apiserver_values(const struct apiserver_call *c);

#endif
