/* SPDX-License-Identifier: MIT */
/*
 * Each object has a token bucket and a list of its most recent events; a repeated event increases
 * the count of the existing one. At most IN_FLIGHT requests run, the others wait in one list. The
 * first failure empties the list and pauses all posting for QUIET_MS, so that a failing API server
 * receives no more requests.
 */
#include "config.h"

#include "tec/k8s/event.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/base/table.h"
#include "tec/base/utf8.h"
#include "tec/k8s/call.h"

#define OBJECTS_MAX 1000
#define PER_OBJECT  8 /* different events remembered */
#define BUCKET      25
#define REFILL_MS   12000
#define SAME_MS     600000
#define IN_FLIGHT   8
#define QUIET_MS    30000
#define NOTE_MAX    1024
#define ID_MAX      128
#define NAME_HEX    16 /* hex digits at the end of an Event's name */

static struct metric posted =
	METRIC_COUNTER_INIT("tec_events_total", "Events by outcome.", "outcome", NULL);

struct said {
	struct k8s_events *e;
	uint64_t key;    /* of type, reason, action, note; 0: free */
	char *name, *rv; /* of the Event; rv NULL: not created yet */
	unsigned count;  /* occurrences */
	uint64_t last_ms;
	struct op *call;
	struct json_object *body; /* of the Event to create; owned, only while it waits */
	STAILQ_ENTRY(said) link;  /* in waiting */
	bool waiting;
};

struct object {
	struct table_link link;
	uint64_t uid; /* hash */
	uint64_t used_ms, refilled_ms;
	unsigned tokens;
	struct said said[PER_OBJECT];
};

struct k8s_events {
	struct k8s_transport *t; /* borrowed */
	char *ns, *controller, *instance;
	struct op_scope ops;
	struct table objects; /* owned; the objects too */
	STAILQ_HEAD(, said) waiting;
	unsigned in_flight;
	uint64_t quiet_until_ms, serial;
	bool failing; /* logged */
};

struct k8s_events *k8s_events_new(
	struct k8s_transport *t, const char *ns, const char *controller, const char *instance)
{
	struct k8s_events *e = xcalloc(1, sizeof(*e));

	e->t = t;
	e->ns = xstrdup(ns);
	e->controller = xstrndup(controller, ID_MAX);
	e->instance = xstrndup(instance, ID_MAX);
	STAILQ_INIT(&e->waiting);
	return e;
}

static bool is_busy(const struct said *s)
{
	return s->call || s->waiting;
}

static void said_forget(struct said *s)
{
	free(s->name);
	free(s->rv);
	json_object_put(s->body);
	memset(s, 0, sizeof(*s));
}

static void object_free(struct object *o)
{
	for (unsigned i = 0; i < PER_OBJECT; i++)
		said_forget(&o->said[i]);
	free(o);
}

void k8s_events_free(struct k8s_events *e)
{
	struct object *o;

	if (!e)
		return;
	op_scope_cancel(&e->ops);
	TABLE_EACH (o, link, &e->objects)
		object_free(o);
	table_fini(&e->objects);
	free(e->ns);
	free(e->controller);
	free(e->instance);
	free(e);
}

/* ---- what is remembered */

/* Drop the least recently used object that has no request, because requests point into theirs; false
 * when all have one. */
static bool evict(struct k8s_events *e)
{
	struct object *o, *oldest = NULL;

	TABLE_EACH (o, link, &e->objects) {
		unsigned i = 0;

		while (i < PER_OBJECT && !is_busy(&o->said[i]))
			i++;
		if ((!oldest || o->used_ms < oldest->used_ms) && i == PER_OBJECT)
			oldest = o;
	}
	if (!oldest)
		return false;
	table_remove(&e->objects, &oldest->link);
	object_free(oldest);
	return true;
}

/* Objects are found by a 64-bit hash of their UID: a collision would only merge the Events and
 * limits of two objects. */
static struct object *object_get(struct k8s_events *e, const char *uid)
{
	uint64_t hash = str_hash(uid, strlen(uid)), now = clock_boot_ms();
	struct object *o;

	TABLE_WITH_HASH (o, link, &e->objects, (uint32_t)hash) {
		if (o->uid == hash) {
			o->used_ms = now;
			return o;
		}
	}
	if (e->objects.n >= OBJECTS_MAX && !evict(e))
		return NULL;
	o = xcalloc(1, sizeof(*o));
	o->uid = hash;
	o->tokens = BUCKET;
	o->refilled_ms = o->used_ms = now;
	table_add(&e->objects, &o->link, (uint32_t)hash);
	return o;
}

/* Return the slot of this event: its own, a free one, or the least recently used one; NULL when all
 * are in flight. */
static struct said *said_get(struct k8s_events *e, struct object *o, uint64_t key)
{
	struct said *best = NULL;
	uint64_t now = clock_boot_ms();

	for (unsigned i = 0; i < PER_OBJECT; i++) {
		struct said *s = &o->said[i];

		if (s->key && !is_busy(s) && now - s->last_ms >= SAME_MS)
			said_forget(s);
		if (s->key == key)
			return s;
		if (!is_busy(s) && (!best || s->last_ms < best->last_ms))
			best = s;
	}
	if (best) {
		said_forget(best);
		best->e = e;
		best->key = key;
	}
	return best;
}

/* ---- requests */

static void pump(struct k8s_events *e);

/* AlreadyExists is the purpose of k8s_events_post_once(): another process or an earlier run posted
 * the Event. */
static void on_done(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct said *s = arg;
	struct k8s_events *e = s->e;
	const char *rv =
		r && r->object ? json_get_str(r->object, "metadata/resourceVersion") : NULL;

	e->in_flight--;
	if (err_is_set(err) && r && r->already_exists) {
		metric_add(&posted, "known", NULL, 1);
		said_forget(s);
	} else if (err_is_set(err) || !rv) {
		metric_add(&posted, "failed", NULL, 1);
		if (!e->failing)
			log_err(LOG_WARN, NULL, "Event not written", err);
		/* a 404 or 409 on the patch means that the Event was deleted, not that the API
		 * fails */
		if (err->kind != ERR_CONFLICT && err->kind != ERR_NOT_FOUND) {
			e->failing = true;
			e->quiet_until_ms = clock_boot_ms() + QUIET_MS;
		}
		said_forget(s);
	} else {
		metric_add(&posted, s->rv ? "counted" : "made", NULL, 1);
		e->failing = false;
		xreplace(&s->rv, rv);
	}
	pump(e);
}

/* A repeated event patches series.count of the existing Event with its resourceVersion; a new one
 * is created. */
static void start(struct said *s)
{
	struct k8s_events *e = s->e;

	e->in_flight++;
	if (s->rv) {
		cleanup_json struct json_object *patch = json_obj();
		char now[CLOCK_RFC3339_US_LEN];
		struct json_object *series = json_obj();

		clock_format_us(clock_wall_us(), now);
		json_add_str(json_add_int(series, "count", s->count), "lastObservedTime", now);
		json_add(patch, "metadata", json_add_str(json_obj(), "resourceVersion", s->rv));
		json_add(patch, "series", series);
		op_hold(&s->call, k8s_call_merge_patch(e->t, &e->ops, &kobj_event, e->ns, s->name,
					  patch, on_done, s));
		return;
	}
	op_hold(&s->call,
		k8s_call_create(e->t, &e->ops, &kobj_event, e->ns, s->body, 0, on_done, s));
	json_object_put(s->body);
	s->body = NULL;
}

/* Start waiting requests up to IN_FLIGHT. While the API is failing, drop them instead. */
static void pump(struct k8s_events *e)
{
	bool quiet = clock_boot_ms() < e->quiet_until_ms;

	while (!STAILQ_EMPTY(&e->waiting) && (quiet || e->in_flight < IN_FLIGHT)) {
		struct said *s = STAILQ_FIRST(&e->waiting);

		STAILQ_REMOVE_HEAD(&e->waiting, link);
		s->waiting = false;
		if (quiet) {
			metric_add(&posted, "dropped", NULL, 1);
			said_forget(s);
		} else {
			start(s);
		}
	}
}

/* <about>.<16 hex digits>, a valid DNS subdomain. key NULL: a name that no other Event has;
 * otherwise the name is the same in each process. */
static char *event_name(
	struct k8s_events *e, const struct kobj *about, const char *reason, const char *key)
{
	uint64_t seed[3] = {(uint64_t)clock_wall_us(), ++e->serial, (uintptr_t)e};
	size_t len = strlen(about->name);
	cleanup_free char *text = NULL;
	uint8_t digest[SHA256_LEN];
	char hex[NAME_HEX + 1];

	snprintf(hex, sizeof(hex), "%016" PRIx64, str_hash(seed, sizeof(seed)));
	if (key) {
		text = xasprintf("%s %s %s", about->uid, reason, key);
		bytes_sha256(text, strlen(text), digest);
		bytes_to_hex(digest, NAME_HEX / 2, hex);
	}
	if (len > 253 - 1 - NAME_HEX)
		len = 253 - 1 - NAME_HEX;
	while (len && (about->name[len - 1] == '.' || about->name[len - 1] == '-'))
		len--;
	return xasprintf("%.*s.%s", (int)len, about->name, hex);
}

/* An events.k8s.io/v1 Event; reportingInstance and eventTime are required by its API. */
static struct json_object *event_json(struct k8s_events *e, const struct kobj_gvk *gvk,
	const struct kobj *about, enum k8s_event_type type, const char *reason, const char *action,
	const char *note, const char *name)
{
	cleanup_strbuf struct strbuf version = STRBUF_INIT, about_version = STRBUF_INIT;
	struct json_object *o = json_obj(), *meta = json_obj(), *regarding = json_obj();
	char now[CLOCK_RFC3339_US_LEN];

	clock_format_us(clock_wall_us(), now);
	kobj_api_version(&kobj_event, &version);
	kobj_api_version(gvk, &about_version);
	json_add_str(json_add_str(meta, "name", name), "namespace", e->ns);
	json_add_str(regarding, "apiVersion", strbuf_str(&about_version));
	json_add_str(regarding, "kind", gvk->kind);
	json_add_str(regarding, "namespace", e->ns);
	json_add_str(regarding, "name", about->name);
	json_add_str(regarding, "uid", about->uid);
	json_add_str(o, "apiVersion", strbuf_str(&version));
	json_add_str(o, "kind", kobj_event.kind);
	json_add(o, "metadata", meta);
	json_add_str(o, "eventTime", now);
	json_add_str(o, "type", type == K8S_EVENT_WARNING ? "Warning" : "Normal");
	json_add_str(o, "reason", reason);
	json_add_str(o, "action", action);
	json_add_str(o, "reportingController", e->controller);
	json_add_str(o, "reportingInstance", e->instance);
	json_add(o, "regarding", regarding);
	json_add_str(o, "note", note);
	return o;
}

/* Refill the bucket by the time elapsed since the last refill, keeping the remainder. */
static bool take_token(struct object *o)
{
	uint64_t now = clock_boot_ms(), back = (now - o->refilled_ms) / REFILL_MS;

	o->refilled_ms += back * REFILL_MS;
	o->tokens = back >= BUCKET - o->tokens ? BUCKET : o->tokens + (unsigned)back;
	if (o->tokens == 0)
		return false;
	o->tokens--;
	return true;
}

/* Decide whether an event is posted, counted or dropped. A dropped event that has no Event yet
 * gives its slot back. */
static void PRINTF_LIKE(8, 0) post(struct k8s_events *e, const struct kobj_gvk *gvk,
	const struct kobj *about, enum k8s_event_type type, const char *reason, const char *action,
	const char *key, const char *note_fmt, va_list ap)
{
	cleanup_strbuf struct strbuf note = STRBUF_INIT, same = STRBUF_INIT;
	uint64_t now = clock_boot_ms(), hash;
	struct object *o;
	struct said *s = NULL;

	strbuf_vaddf(&note, note_fmt, ap);
	utf8_fit(&note, NOTE_MAX);
	if (now < e->quiet_until_ms) {
		metric_add(&posted, "dropped", NULL, 1);
		return;
	}
	o = object_get(e, about->uid);
	if (o) {
		strbuf_addf(&same, "%d %s %s %s", (int)type, reason, action, strbuf_str(&note));
		hash = str_hash(same.data, same.len);
		s = said_get(e, o, hash ? hash : 1); /* 0 marks a free slot */
	}
	if (s) {
		s->count++;
		s->last_ms = now;
	}
	/* While its request is in flight, the event is only counted: the next patch carries the
	 * sum. */
	if (!s || is_busy(s) || (key && s->rv) || !take_token(o)) {
		metric_add(&posted, "dropped", NULL, 1);
		if (s && !s->rv && !is_busy(s))
			said_forget(s);
		return;
	}
	if (!s->rv) {
		s->name = event_name(e, about, reason, key);
		s->body =
			event_json(e, gvk, about, type, reason, action, strbuf_str(&note), s->name);
	}
	s->waiting = true;
	STAILQ_INSERT_TAIL(&e->waiting, s, link);
	pump(e);
}

void k8s_events_post(struct k8s_events *e, const struct kobj_gvk *gvk, const struct kobj *about,
	enum k8s_event_type type, const char *reason, const char *action, const char *note_fmt, ...)
{
	va_list ap;

	va_start(ap, note_fmt);
	post(e, gvk, about, type, reason, action, NULL, note_fmt, ap);
	va_end(ap);
}

void k8s_events_post_once(struct k8s_events *e, const struct kobj_gvk *gvk,
	const struct kobj *about, enum k8s_event_type type, const char *reason, const char *action,
	const char *key, const char *note_fmt, ...)
{
	va_list ap;

	va_start(ap, note_fmt);
	post(e, gvk, about, type, reason, action, key, note_fmt, ap);
	va_end(ap);
}
