/* SPDX-License-Identifier: MIT */
/*
 * Trustee for tests. One struct fake_kbs is a server; there may be several kbs_transports to it
 * (connections, or one for each run of the operator), freed by their owners before it. A request is
 * answered by, in this order: a fault, a queued expectation, the in-memory Trustee (when it
 * serves). A request that none of them answers fails the test and is named. Answers come through
 * the loop; deadlines are kept by the boot clock, so loop_advance() reaches them.
 *
 * The in-memory Trustee behaves like the real one: resources,
 * reference values (set one by one, names sorted; keys of objects sorted on GET), the two policies,
 * 401 with its error `type`s, 413 above max_body; DELETE of what is missing is a
 * PluginInternalError.
 */
#ifndef TEC_TESTS_FAKE_KBS_H
#define TEC_TESTS_FAKE_KBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/kbs/sync.h"
#include "tec/kbs/transport.h"
#include "tec/loop/loop.h"

/* How many Trustee servers are administered. */
static inline size_t kbs_sync_targets(const struct kbs_sync *s)
{
	struct kbs_target_status ignored;
	unsigned n = 0;

	while (kbs_sync_target(s, n, &ignored))
		n++;
	return n;
}

struct fake_kbs;
struct fake_kbs_expect; /* owned by its server */

struct fake_kbs *fake_kbs_new(struct loop *l);
void fake_kbs_free(struct fake_kbs *k); /* fails on expectations that were not met */
struct kbs_transport *fake_kbs_transport(struct fake_kbs *k); /* a new one; the caller's */

/* ---- what was requested */
struct fake_kbs_request {
	char *method, *path, *body; /* body NUL-terminated, NULL without one */
	size_t body_len;
	const char *verb;
};
size_t fake_kbs_requests(const struct fake_kbs *k); /* all so far */
/* method NULL: any; path: a piece of it, NULL: any. */
size_t fake_kbs_count(const struct fake_kbs *k, const char *method, const char *path);
const struct fake_kbs_request *fake_kbs_request(const struct fake_kbs *k, size_t i);
void fake_kbs_forget(struct fake_kbs *k); /* counts and records start again */
size_t fake_kbs_in_flight(const struct fake_kbs *k);
size_t fake_kbs_most_in_flight(const struct fake_kbs *k);

/* ---- scripted: path exact, or a prefix when it ends in '*'. Without an answer the deadline ends
 * it. */
struct fake_kbs_expect *fake_kbs_expect(struct fake_kbs *k, const char *method, const char *path);
/* type "": no error body; body NULL: what goes with the type. */
void fake_kbs_answer(struct fake_kbs_expect *e, int status, const char *type, const char *body);
void fake_kbs_fail(struct fake_kbs_expect *e, enum err_kind kind, const char *text);

/* ---- the in-memory Trustee */
void fake_kbs_serve(struct fake_kbs *k);
void fake_kbs_lose_store(struct fake_kbs *k);
void fake_kbs_max_body(struct fake_kbs *k, size_t bytes); /* default 2 MiB */
/* Borrowed until it changes; NULL: not there. */
const char *fake_kbs_resource(const struct fake_kbs *k, const char *path); /* "default/x/root" */
const char *fake_kbs_value(const struct fake_kbs *k, const char *name);    /* JSON, keys sorted */
const char *fake_kbs_policy(const struct fake_kbs *k, bool resource);      /* decoded */
size_t fake_kbs_resources(const struct fake_kbs *k);
size_t fake_kbs_values(const struct fake_kbs *k); /* null ones too */
void fake_kbs_put_value(struct fake_kbs *k, const char *name, const char *json);
void fake_kbs_put_resource(struct fake_kbs *k, const char *path, const char *text);
/* The next write of this name is acknowledged and lost. Static. */
void fake_kbs_forgets(struct fake_kbs *k, const char *name);
/* No resource whose path contains part can be stored; NULL: all can. Static. */
void fake_kbs_cannot_store(struct fake_kbs *k, const char *part);
/* The resources are gone; policies and values stay, which are stored elsewhere. */
void fake_kbs_lose_resources(struct fake_kbs *k);
/* GET of all resources answers with their paths; otherwise it is refused, as by older servers. */
void fake_kbs_lists(struct fake_kbs *k, bool lists);
/* Every answer comes this much later; what is requested is done at once. 0: next turn. */
void fake_kbs_latency(struct fake_kbs *k, uint32_t ms);
/* Called after each request that changed something. */
void fake_kbs_on_change(struct fake_kbs *k, void (*fn)(void *arg), void *arg);

/* ---- faults */
enum fake_kbs_fault {
	FAKE_KBS_REFUSE,      /* answered as given, nothing is done */
	FAKE_KBS_LOST,        /* not done, never answered: the deadline ends it */
	FAKE_KBS_ANSWER_LOST, /* done, but the connection broke before the answer */
	FAKE_KBS_HALF,        /* of a message of reference values the first half is done, then it
				 is answered as given */
};
/* The nth request from now (1 = next) that starts with `method` (NULL: any) gets it, once. */
void fake_kbs_fault(struct fake_kbs *k, unsigned nth, const char *method, enum fake_kbs_fault fault,
	int status, const char *type, const char *body);
/* While down, every connection is refused (ERR_TRANSIENT). */
void fake_kbs_down(struct fake_kbs *k, bool down);
/* kill -9 of our side after n more requests were done: no answer to the last one, and nothing more
 * is done or answered until fake_kbs_revive(). */
void fake_kbs_die_after(struct fake_kbs *k, unsigned n);
bool fake_kbs_is_dead(const struct fake_kbs *k);
void fake_kbs_revive(struct fake_kbs *k);

#endif
