/* SPDX-License-Identifier: MIT */
/*
 * A k8s_transport for tests. It answers each request from, in this order: an injected fault, a
 * queued expectation, the in-memory API (when one is set). Any other request fails the test and is
 * named. Answers come through the loop (op rules); deadline_ms and silence_ms follow the boot
 * clock, so loop_advance() reaches them.
 *
 * Scripted:
 *
 *	struct fake_transport *f = fake_transport_new(loop);
 *	struct fake_expect *e = fake_transport_expect(f, "GET", "/api/v1/namespaces/a/secrets*");
 *
 *	fake_expect_answer(e, 200, "{...}");
 *	something_start(fake_transport_seam(f));
 *	loop_drain(loop);
 *	fake_transport_free(f);
 *
 * Set before the request, the answer comes at once, set after it, then; without one the request
 * stays open. Free fails on a call in flight and on an expectation that was not met.
 *
 * In-memory API, several transports (clients, or lives of one operator) over one set of objects:
 *
 *	struct fake_api *api = fake_api_new(loop);
 *
 *	fake_transport_set_api(f, api);
 *	fake_api_put(api, &kobj_machine, "ns", "{\"metadata\":{\"name\":\"m\"}}");
 *	loop_drain(loop);
 *	cr_assert(fake_api_get(api, &kobj_secret, "ns", "x"));
 *	cr_assert_eq(fake_transport_writes(f), 0);
 */
#ifndef TEC_TESTS_FAKE_TRANSPORT_H
#define TEC_TESTS_FAKE_TRANSPORT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/k8s/transport.h"
#include "tec/kobj/gvk.h"
#include "tec/loop/loop.h"

struct fake_transport;
struct fake_expect; /* owned by its transport, lives as long */
struct fake_api;

struct fake_transport *fake_transport_new(struct loop *l);
/* Also reached by k8s_transport_free(). The api is borrowed and stays. */
void fake_transport_free(struct fake_transport *f);
struct k8s_transport *fake_transport_seam(struct fake_transport *f);

/* ---- requests */
struct fake_request {
	char *method, *path, *content_type, *body; /* body NULL without one; NUL-terminated */
	size_t body_len;
	const char *verb, *resource;
	uint32_t deadline_ms, silence_ms;
};
size_t fake_transport_requests(const struct fake_transport *f); /* all so far */
/* what: a method ("PATCH") or a verb ("apply"). NULL, of either: any. */
size_t fake_transport_count(const struct fake_transport *f, const char *what, const char *resource);
size_t fake_transport_writes(const struct fake_transport *f); /* everything but GET */
const struct fake_request *fake_transport_request(
	const struct fake_transport *f, size_t i); /* asserts i */
const struct fake_request *fake_transport_last(const struct fake_transport *f);
struct json_object *fake_request_json(const struct fake_request *r); /* the caller puts it */
void fake_transport_forget(struct fake_transport *f);                /* drops counts and records */
size_t fake_transport_in_flight(const struct fake_transport *f);     /* streams included */

/* ---- scripted answers. path: exact with query, or a prefix when it ends in '*'. First match in
 * order of queueing wins. */
struct fake_expect *fake_transport_expect(
	struct fake_transport *f, const char *method, const char *path);
void fake_expect_answer(struct fake_expect *e, int status, const char *body); /* body NULL: "" */
void fake_expect_answer_after(
	struct fake_expect *e, uint32_t after_ms, int status, const char *body);
void fake_expect_retry_after(struct fake_expect *e, uint32_t ms); /* of the answer set next */
void fake_expect_fail(struct fake_expect *e, enum err_kind kind,
	const char *text); /* no answer: a transport error */
void fake_expect_times(
	struct fake_expect *e, unsigned n); /* default 1; 0: any number, none included */
bool fake_expect_started(
	const struct fake_expect *e);               /* its request is there (in flight or ended) */
bool fake_expect_open(const struct fake_expect *e); /* ... and still in flight */
const struct fake_request *fake_expect_request(const struct fake_expect *e);

/* ---- streams: a request with on_data whose expectation has no answer. Given to on_data in the
 * next turn. */
void fake_stream_send(struct fake_expect *e, const char *text);
void fake_stream_end(struct fake_expect *e); /* a clean end: done with status 200 */
void fake_stream_error(struct fake_expect *e, enum err_kind kind, const char *text);
/* Every answer (of the in-memory API or scripted) comes this much later; a write is done at once
 * all the same. 0: next turn. */
void fake_transport_latency(struct fake_transport *f, uint32_t ms);
/* Data reaches on_data in pieces of n bytes; 0: whole. Applies to lists too. */
void fake_transport_pieces(struct fake_transport *f, size_t n);

/* ---- faults: every_n-th request that the fault fits gets it instead of its answer; 0 turns it
 * off. */
enum fake_fault {
	FAKE_FAULT_409, /* writes: Conflict, nothing done */
	FAKE_FAULT_410, /* lists: 410 Expired; watches: an ERROR event with code 410 */
	FAKE_FAULT_429, /* any: Retry-After 1 s */
	FAKE_FAULT_500, /* any */
	FAKE_FAULT_CUT, /* any: writes are done but the answer is lost; reads end in the middle of
			   the text */
	FAKE_FAULT_SILENCE, /* any: writes are not done; nothing ever comes, the deadline or
			       silence_ms ends it */
};
void fake_transport_fault(struct fake_transport *f, enum fake_fault fault, unsigned every_n);
/* kill -9 after n more writes were done: no answer to the last one, and no request is answered or
 * done any more. */
void fake_transport_die_after(struct fake_transport *f, unsigned n_writes);
bool fake_transport_is_dead(const struct fake_transport *f);

/*
 * ---- the in-memory API: src/apireq (see its request.h for what it does), with the kinds of this
 * project. Garbage is collected on demand.
 */
struct fake_api *fake_api_new(struct loop *l);
void fake_api_free(struct fake_api *api); /* after its transports */
void fake_transport_set_api(struct fake_transport *f, struct fake_api *api);

/* What another client does. put creates or replaces everything given (status too); apiVersion,
 * kind and namespace are filled in. */
void fake_api_put(
	struct fake_api *api, const struct kobj_gvk *gvk, const char *ns, const char *text);
void fake_api_put_json(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns,
	struct json_object *take_o);
/* RFC 7386 on the whole object, status included; asserts that it exists. */
void fake_api_merge(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns,
	const char *name, const char *patch);
void fake_api_delete(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns,
	const char *name); /* finalizers hold it */
/* Borrowed until the object changes; NULL: absent. */
struct json_object *fake_api_get(
	struct fake_api *api, const struct kobj_gvk *gvk, const char *ns, const char *name);
size_t fake_api_count(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns);
/* status.conditions[type].status or .reason ("status", "reason", "message"), borrowed; NULL: none.
 */
const char *fake_api_condition(struct fake_api *api, const struct kobj_gvk *gvk, const char *ns,
	const char *name, const char *type, const char *member);
uint64_t fake_api_rv(
	const struct fake_api *api); /* the last one given; unchanged: nothing was written */
size_t fake_api_collect(
	struct fake_api *api); /* garbage collection until stable; objects removed */
void fake_api_drop_watches(struct fake_api *api);   /* all streams end cleanly */
void fake_api_forget_history(struct fake_api *api); /* older watches and continue tokens get 410 */
void fake_api_bookmark(struct fake_api *api);       /* to every watch, now */
/* While held, watches get nothing, so answers of writes overtake them; all of it is delivered when
 * the hold ends. */
void fake_api_hold_watches(struct fake_api *api, bool hold);
/* A kind whose CRD is missing: 404 for all its paths. */
void fake_api_hide(struct fake_api *api, const struct kobj_gvk *gvk, bool hidden);

#endif
