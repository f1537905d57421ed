/* SPDX-License-Identifier: MIT */
/*
 * Keeps one k8s_cache equal to the API: LIST in pages of 500, then WATCH with bookmarks from the
 * list's resourceVersion; resumes after a closed stream, lists again after 410, ends a silent
 * stream, backs off 0.8-30 s with jitter. States: IDLE -> LISTING -> WATCHING -> (BACKOFF ->
 * WATCHING | LISTING), STOPPED; tec_watch_state{resource,state} shows the current one. An item that
 * the cache refuses is logged once, counted, and treated as absent, so one bad object never stops
 * the others. A missing CRD (404) is waited for.
 */
#ifndef TEC_K8S_WATCH_H
#define TEC_K8S_WATCH_H

#include "tec/k8s/cache.h"
#include "tec/k8s/transport.h"
#include "tec/kobj/gvk.h"
#include "tec/loop/loop.h"

struct k8s_watch;
enum k8s_watch_state {
	K8S_WATCH_IDLE,
	K8S_WATCH_LISTING,
	K8S_WATCH_WATCHING,
	K8S_WATCH_BACKOFF,
	K8S_WATCH_STOPPED,
};

struct k8s_watch_conf {
	const struct kobj_gvk *gvk;
	/* NULL: all namespaces. The extract function of the cache makes the uid the name then. */
	const char *ns;
	const char *field_selector; /* "metadata.name=x", NULL: all */
	const char *label_selector;
	/* Static: what metrics call the resource; NULL: by its name. Of another API server's. */
	const char *label;
	uint32_t backoff_max_ms; /* 0: 30,000 */
	/* While the server can be reached, what it said last is at most about so old; 0: minutes. For
	 * what must not depend on a connection that is dead without a sign of it. */
	uint32_t fresh_s;
	bool secret; /* item texts are wiped after extraction */
};

struct k8s_watch *k8s_watch_new(struct loop *l, struct k8s_transport *t, struct k8s_cache *cache,
	const struct k8s_watch_conf *conf);
void k8s_watch_free(struct k8s_watch *w);
void k8s_watch_start(struct k8s_watch *w);
void k8s_watch_stop(struct k8s_watch *w); /* the cache keeps what it has */
enum k8s_watch_state k8s_watch_state(const struct k8s_watch *w);
/* When the API server last said how its objects are, in a list, an event, a bookmark or the proper end
 * of a stream; wall clock, 0: never. */
int64_t k8s_watch_seen_s(const struct k8s_watch *w);
/* Why nothing came since then, of the last call that failed; "" while it works. Borrowed. */
const char *k8s_watch_problem(const struct k8s_watch *w);
/* Called whenever the state changes (to wake readiness). */
void k8s_watch_on_state(struct k8s_watch *w, void (*fn)(void *arg), void *arg);

#endif
