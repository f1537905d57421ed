/* SPDX-License-Identifier: MIT */
/*
 * Keep one k8s_cache equal to the API: LIST in pages of 500, then WATCH with bookmarks from the
 * list's resourceVersion; resume after a closed stream, list again after a 410, end a silent
 * stream, back off 0.8-30 s with jitter. States: IDLE -> LISTING -> WATCHING -> (BACKOFF ->
 * WATCHING | LISTING), STOPPED; tec_watch_state{resource,state} shows the current one. An item that
 * the cache refuses is logged once, counted, and treated as absent, so that one bad object never
 * stops the others. A missing CRD (404) is retried until it appears.
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
	/* NULL: all namespaces. The cache's extract function must then use the uid as the name. */
	const char *ns;
	const char *field_selector; /* "metadata.name=x", NULL: all */
	const char *label_selector;
	/* Static: the resource's label in metrics; NULL: its plural name. Set for another API
	 * server's objects. */
	const char *label;
	uint32_t backoff_max_ms; /* 0: 30,000 */
	/* The maximum age in seconds of the server's last word while it is reachable; 0: minutes.
	 * For data that must not depend on a connection that died unnoticed. */
	uint32_t fresh_s;
	bool secret; /* item texts are wiped after extraction */
};

struct k8s_watch *k8s_watch_new(struct loop *l, struct k8s_transport *t, struct k8s_cache *cache,
	const struct k8s_watch_conf *conf);
void k8s_watch_free(struct k8s_watch *w);
void k8s_watch_start(struct k8s_watch *w);
void k8s_watch_stop(struct k8s_watch *w); /* the cache keeps its objects */
enum k8s_watch_state k8s_watch_state(const struct k8s_watch *w);
/* When the API server last reported the state of its objects: by a list, an event, a bookmark or
 * the proper end of a stream; wall clock, 0: never. */
int64_t k8s_watch_seen_s(const struct k8s_watch *w);
/* Why nothing was received since then: the error of the last failed call; "" while the watch works.
 * Borrowed. */
const char *k8s_watch_problem(const struct k8s_watch *w);
/* fn is called whenever the state changes (for readiness). */
void k8s_watch_on_state(struct k8s_watch *w, void (*fn)(void *arg), void *arg);

#endif
