/* SPDX-License-Identifier: MIT */
/*
 * Events (events.k8s.io/v1) for people: de-duplicated (the same object, reason and note within 10
 * minutes becomes one Event whose series count is patched) and rate-limited (a bucket of 25, one
 * back every 12 s per object; 1,000 objects remembered). Best effort: failures are logged once and
 * dropped, never retried against a failing API.
 */
#ifndef TEC_K8S_EVENT_H
#define TEC_K8S_EVENT_H

#include "tec/k8s/transport.h"
#include "tec/kobj/gvk.h"
#include "tec/kobj/meta.h"
#include "tec/loop/loop.h"

struct k8s_events;
enum k8s_event_type { K8S_EVENT_NORMAL, K8S_EVENT_WARNING };

/* ns: where the objects are; reportingController; reportingInstance. */
struct k8s_events *k8s_events_new(struct loop *l, struct k8s_transport *t, const char *ns,
	const char *controller, const char *instance);
void k8s_events_free(struct k8s_events *e);
/* reason and action: CamelCase, at most 128; note: a sentence, cut at 1,024 bytes. */
void k8s_events_post(struct k8s_events *e, const struct kobj_gvk *gvk, const struct kobj *about,
	enum k8s_event_type type, const char *reason, const char *action, const char *note_fmt, ...)
	PRINTF_LIKE(7, 8);
/* The same under a name that follows from about, reason and key: nothing is written while the API
 * server still has it, regardless of its author and its age. */
void k8s_events_post_once(struct k8s_events *e, const struct kobj_gvk *gvk,
	const struct kobj *about, enum k8s_event_type type, const char *reason, const char *action,
	const char *key, const char *note_fmt, ...) PRINTF_LIKE(8, 9);

#endif
