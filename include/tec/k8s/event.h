/* SPDX-License-Identifier: MIT */
/*
 * Events (events.k8s.io/v1) for people. They are de-duplicated (the same object, reason and note
 * within 10 minutes is one Event, whose series count is patched) and rate-limited per object (a
 * bucket of 25 tokens, one returned every 12 s; 1,000 objects are remembered). Best effort:
 * failures are logged once and dropped, and never retried against a failing API server.
 */
#ifndef TEC_K8S_EVENT_H
#define TEC_K8S_EVENT_H

#include "tec/k8s/transport.h"
#include "tec/kobj/gvk.h"
#include "tec/kobj/meta.h"

struct k8s_events;
enum k8s_event_type { K8S_EVENT_NORMAL, K8S_EVENT_WARNING };

/* ns: the namespace of the objects; controller, instance: reportingController and
 * reportingInstance. */
struct k8s_events *k8s_events_new(
	struct k8s_transport *t, const char *ns, const char *controller, const char *instance);
void k8s_events_free(struct k8s_events *e);
/* reason and action: CamelCase, at most 128; note: a sentence, truncated to 1,024 bytes. */
void k8s_events_post(struct k8s_events *e, const struct kobj_gvk *gvk, const struct kobj *about,
	enum k8s_event_type type, const char *reason, const char *action, const char *note_fmt, ...)
	PRINTF_LIKE(7, 8);
/* Post an Event whose name is derived from about, reason and key: nothing is written while the API
 * server still has an Event of that name, whatever its author and age. */
void k8s_events_post_once(struct k8s_events *e, const struct kobj_gvk *gvk,
	const struct kobj *about, enum k8s_event_type type, const char *reason, const char *action,
	const char *key, const char *note_fmt, ...) PRINTF_LIKE(8, 9);

#endif
