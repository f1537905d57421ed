/* SPDX-License-Identifier: MIT */
/*
 * At most one call is in flight, and one timer serves every wait. The end of a call only records
 * what happened and sets the state and the delay; step() starts the next call. Backoff is reset
 * when a stream lasted for a second, not when a list succeeds: otherwise a server that answers
 * lists but refuses watches would receive requests without a pause. A silent stream proves nothing
 * until the next bookmark, so the first stream after a failure is short.
 */
#include "config.h"

#include "tec/k8s/watch.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "tec/base/backoff.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/metric.h"
#include "tec/base/secret.h"
#include "tec/k8s/split.h"
#include "tec/loop/timer.h"

#define PAGE             "500"
#define SILENCE_LIST_MS  30000
#define SILENCE_WATCH_MS 120000 /* bookmarks come about every minute */
#define FRESH_GRACE_MS   2000   /* allowed for the end of a stream that was asked to last fresh_s */
#define LIVED_MS         1000   /* a stream that lasted this long was a success */
/* Seconds: the first stream after a failure, whose proper end shows that the watch works. */
#define PROVE_S        2
#define GIVE_UP_RESUME 3  /* failed watches in a row before the resourceVersion is dropped */
#define REFUSED_MAX    32 /* bad objects and versions remembered as logged */

static struct metric states = METRIC_GAUGE_INIT(
	"tec_watch_state", "1 for the state each watch is in.", "resource", "state");
static struct metric events = METRIC_COUNTER_INIT(
	"tec_watch_events_total", "Objects and events received by watches.", "resource", "type");
static struct metric restarts = METRIC_COUNTER_INIT("tec_watch_restarts_total",
	"Lists and streams started again, by reason.", "resource", "reason");

static struct metric unreadable = METRIC_GAUGE_INIT(
	"tec_watch_unreadable", "Objects that exist but cannot be read.", "resource", NULL);

static const char *const state_names[] = {
	[K8S_WATCH_IDLE] = "idle",
	[K8S_WATCH_LISTING] = "listing",
	[K8S_WATCH_WATCHING] = "watching",
	[K8S_WATCH_BACKOFF] = "backoff",
	[K8S_WATCH_STOPPED] = "stopped",
};

struct k8s_watch {
	struct k8s_transport *t; /* borrowed */
	struct k8s_cache *cache; /* borrowed */
	const struct kobj_gvk *gvk;
	const char *label; /* static */
	uint32_t fresh_s;
	char *ns, *field_selector, *label_selector;
	bool secret;
	enum k8s_watch_state state;
	void (*on_state)(void *arg);
	void *on_state_arg;
	struct op_scope ops;
	struct op *call;
	struct timer next;       /* to step() */
	struct k8s_split *split; /* of the call in flight */
	char *rv;                /* resourceVersion to resume from; NULL: list first */
	char *list_rv, *cont;    /* between pages */
	uint64_t started_ms;
	unsigned fails; /* in a row */
	bool relisted;  /* listed at once after a 410; not again until a stream lasted */
	struct backoff backoff;
	uint32_t backoff_max_ms;
	bool in_data;                  /* on_data() is running */
	bool malformed;                /* how the stream ended */
	struct err event_err;          /* the same: by an ERROR event */
	uint64_t refused[REFUSED_MAX]; /* hashes of uid or text, a ring buffer */
	unsigned n_refused;
	size_t n_unreadable;     /* of the cache, as added to the metric */
	const char *last_reason; /* static; logged once until it changes */
	int64_t seen_s;
	struct err problem;
};

static void step(void *arg);

/* The only writer of the state: check the transition, set the metrics, notify readiness. */
static void set_state(struct k8s_watch *w, enum k8s_watch_state to, const char *reason)
{
	enum k8s_watch_state from = w->state;
	bool ok = false;

	if (from == to)
		return;
	switch (from) {
	case K8S_WATCH_IDLE:
	case K8S_WATCH_STOPPED:
		ok = to == K8S_WATCH_LISTING || to == K8S_WATCH_STOPPED;
		break;
	case K8S_WATCH_LISTING:
	case K8S_WATCH_WATCHING:
	case K8S_WATCH_BACKOFF:
		ok = to != K8S_WATCH_IDLE;
		break;
	}
	if (!ok)
		DIE("watch of %s: %s -> %s", w->gvk->plural, state_names[from], state_names[to]);
	w->state = to;
	metric_set(&states, w->label, state_names[from], 0);
	metric_set(&states, w->label, state_names[to], 1);
	log_debug(NULL, "watch", "resource=%s from=%s to=%s reason=%s", w->gvk->plural,
		state_names[from], state_names[to], log_esc(reason));
	if (w->on_state)
		w->on_state(w->on_state_arg);
}

/* Handle every failure: log one line per change of reason, wait, and continue (from rv, or with a
 * list when it is NULL). */
static void back_off(
	struct k8s_watch *w, const char *reason, const struct err *err, uint32_t at_least)
{
	bool first = w->fails == 0;
	uint32_t ms = backoff_next(&w->backoff, BACKOFF_MIN_MS, w->backoff_max_ms);

	if (at_least < err->retry_after_ms)
		at_least = err->retry_after_ms;
	if (ms < at_least)
		ms = at_least;
	w->fails++;
	metric_add(&restarts, w->label, reason, 1);
	if ((first || !str_eq(w->last_reason, reason)) && err_is_set(err))
		log_warn(NULL, w->rv ? "watch interrupted" : "list failed",
			"resource=%s reason=%s retry_ms=%" PRIu32 " http=%d err=%s", w->gvk->plural,
			reason, ms, err->http, log_esc(err->text));
	w->last_reason = reason;
	if (err_is_set(err))
		w->problem = *err;
	set_state(w, K8S_WATCH_BACKOFF, reason);
	if (w->state == K8S_WATCH_BACKOFF) /* on_state may have stopped it */
		timer_set(&w->next, ms);
}

static void go_on(struct k8s_watch *w, enum k8s_watch_state to, const char *reason)
{
	set_state(w, to, reason);
	if (w->state == to)
		timer_set(&w->next, 0);
}

/* ---- one object */

/* Remember the hash; the oldest of REFUSED_MAX is forgotten, and its object logged again if it
 * returns. */
static bool refused_before(struct k8s_watch *w, uint64_t hash)
{
	for (unsigned i = 0; i < REFUSED_MAX && i < w->n_refused; i++)
		if (w->refused[i] == hash)
			return true;
	w->refused[w->n_refused++ % REFUSED_MAX] = hash;
	return false;
}

/* Count a refused object and log it once per object (or per text that is not an object). */
static void refuse(struct k8s_watch *w, const char *name, const char *uid, const char *text,
	size_t len, const struct err *err)
{
	struct log_ctx lc = {.kind = w->gvk->kind, .ns = w->ns, .name = name, .uid = uid};

	metric_add(&events, w->label, "refused", 1);
	if (!refused_before(w, uid ? str_hash(uid, strlen(uid)) : str_hash(text ? text : "", len)))
		log_err(LOG_WARN, &lc, "object refused: treated as absent", err);
}

/* Return the object's name in the cache: across namespaces names are not unique, the UID is. */
static const char *key_of(const struct k8s_watch *w, const char *name, const char *uid)
{
	return w->ns ? name : uid;
}

/* Put o into the cache, or remove it when the extractor does not want it. */
static void take_object(struct k8s_watch *w, struct json_object *o, const char *text, size_t len)
{
	struct err err = ERR_INIT;

	if (k8s_cache_put_event(w->cache, o, &err) < 0)
		refuse(w, json_get_str(o, "metadata/name"), json_get_str(o, "metadata/uid"), text,
			len, &err);
}

/*
 * Record an object that is too large to parse: its name, uid and version prove that it exists.
 * Logged once per version. False: not even those are known.
 */
static bool take_unreadable(struct k8s_watch *w, const struct err *why)
{
	struct k8s_split_item seen = k8s_split_item(w->split);
	struct log_ctx lc = {.kind = w->gvk->kind, .ns = w->ns, .name = seen.name, .uid = seen.uid};
	cleanup_free char *version = xasprintf("%s %s", seen.uid, seen.rv);
	struct err ignored = ERR_INIT;

	if (k8s_cache_put_unreadable(w->cache, key_of(w, seen.name, seen.uid), seen.uid, seen.rv,
		    seen.deleting, &ignored) < 0)
		return false;
	metric_add(&events, w->label, "unreadable", 1);
	if (!refused_before(w, str_hash(version, strlen(version))))
		log_err(LOG_WARN, &lc,
			"cannot read the object, everything that depends on it waits", why);
	return true;
}

/* Wipe key material before json-c frees the strings. */
static void drop_json(struct k8s_watch *w, struct json_object *o, struct json_object *object)
{
	if (w->secret) {
		json_wipe(json_get_obj(object, "data"));
		json_wipe(json_get_obj(object, "stringData"));
	}
	json_object_put(o);
}

/* A listener of the cache may stop the watch: end the call by an error then. */
static int stopped(struct k8s_watch *w, struct err *err)
{
	return w->state == K8S_WATCH_STOPPED ? err_set(err, ERR_TRANSIENT, "stopped") : 0;
}

/* Parse the text of an item. text NULL: it was too large to keep. */
static struct json_object *read_text(const char *text, size_t len, struct err *err)
{
	if (text)
		return json_parse(text, len, &json_limits_api, err);
	err_set(err, ERR_INVALID, "larger than 2 MiB");
	return NULL;
}

/* One bad object must not stop the list: it is refused or unreadable, and the list continues. */
static int on_item(void *arg, const char *text, size_t len, struct err *err)
{
	struct k8s_watch *w = arg;
	struct err bad = ERR_INIT;
	struct json_object *o = read_text(text, len, &bad);

	if (o) {
		metric_add(&events, w->label, "listed", 1);
		take_object(w, o, text, len);
		drop_json(w, o, o);
	} else if (!take_unreadable(w, &bad)) {
		refuse(w, NULL, NULL, text, len, &bad);
	}
	return stopped(w, err);
}

/* A new stream resumes from the resourceVersion of the last event or bookmark. */
static void note_rv(struct k8s_watch *w, const char *rv)
{
	if (rv && *rv && !str_eq(rv, w->rv))
		xreplace(&w->rv, rv);
}

/* Handle an event whose object is too large to parse, as far as its type and metadata are known.
 * False: its meaning is unknown. */
static bool unreadable_event(struct k8s_watch *w, const struct err *why)
{
	struct k8s_split_item seen = k8s_split_item(w->split);

	if (strcmp(seen.type, "ADDED") == 0 || strcmp(seen.type, "MODIFIED") == 0)
		return take_unreadable(w, why);
	if (strcmp(seen.type, "DELETED") != 0 || !*seen.uid || !*seen.rv)
		return false;
	metric_add(&events, w->label, seen.type, 1);
	k8s_cache_remove(w->cache, key_of(w, seen.name, seen.uid), seen.uid);
	return true;
}

/* Handle one line of the stream. A line that cannot be understood ends the stream, because a lost
 * change cannot be noticed later. */
static int parse_event(struct k8s_watch *w, const char *text, size_t len, struct err *err)
{
	struct err bad = ERR_INIT;
	struct json_object *o = read_text(text, len, &bad), *object = json_get_obj(o, "object");
	const char *type = json_get_str(o, "type"), *name = json_get_str(object, "metadata/name"),
		   *uid = json_get_str(object, "metadata/uid"),
		   *rv = json_get_str(object, "metadata/resourceVersion"), *message;
	int code;

	if (!o && unreadable_event(w, &bad)) {
		note_rv(w, k8s_split_item(w->split).rv);
		return stopped(w, err);
	}
	if (!object || !type) { /* the change is lost: only a list shows the current state */
		if (!err_is_set(&bad))
			err_set(&bad, ERR_INVALID, "the event has no type or no object");
		refuse(w, NULL, NULL, text, len, &bad);
		w->malformed = true;
		drop_json(w, o, object);
		return err_set(err, ERR_INVALID, "the stream is unusable");
	}
	if (strcmp(type, "ERROR") == 0) { /* with a Status; nothing follows it */
		code = (int)json_get_int(object, "code", 0);
		message = json_get_str(object, "message");
		/* 410: the version has expired */
		err_set_http(&w->event_err, code == 410 ? ERR_GONE : ERR_TRANSIENT, code,
			"watch ended by the server: %s", message ? message : "no message");
		drop_json(w, o, object);
		return err_set(err, ERR_TRANSIENT, "ended by the server");
	}
	if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0) {
		metric_add(&events, w->label, type, 1);
		take_object(w, object, text, len);
	} else if (strcmp(type, "DELETED") == 0 && name) {
		metric_add(&events, w->label, type, 1);
		if (w->ns || uid) /* across namespaces, the name alone identifies no object */
			k8s_cache_remove(w->cache, key_of(w, name, uid), uid);
	} else { /* BOOKMARK, and types that a later API may add */
		metric_add(&events, w->label, strcmp(type, "BOOKMARK") == 0 ? type : "unknown", 1);
	}
	note_rv(w, rv);
	drop_json(w, o, object);
	return stopped(w, err);
}

static void note_seen(struct k8s_watch *w)
{
	w->seen_s = clock_wall_s();
	err_clear(&w->problem);
}

/* An ERROR event says nothing about the objects, so it does not count as seen. Most events repeat
 * our own write, whose answer is already in the cache: these are not parsed. */
static int on_event(void *arg, const char *text, size_t len, struct err *err)
{
	struct k8s_watch *w = arg;
	struct k8s_split_item seen = k8s_split_item(w->split);
	const struct kobj *o;

	if (strcmp(seen.type, "ERROR") != 0)
		note_seen(w);
	if (!*seen.rv || (strcmp(seen.type, "MODIFIED") != 0 && strcmp(seen.type, "ADDED") != 0))
		return parse_event(w, text, len, err);
	o = k8s_cache_find(w->cache, key_of(w, seen.name, seen.uid));
	if (!o || strcmp(o->rv, seen.rv) != 0)
		return parse_event(w, text, len, err);
	metric_add(&events, w->label, "echo", 1);
	note_rv(w, seen.rv);
	return stopped(w, err);
}

/* Several watches of one kind share the metric, so each adds its difference. */
static void count_unreadable(struct k8s_watch *w)
{
	size_t n = k8s_cache_unreadable(w->cache);

	if (n != w->n_unreadable)
		metric_add(&unreadable, w->label, NULL, (double)n - (double)w->n_unreadable);
	w->n_unreadable = n;
}

/* in_data defers k8s_watch_stop(): the call must not be freed while it delivers data. */
static int on_data(void *arg, const char *data, size_t len, struct err *err)
{
	struct k8s_watch *w = arg;
	int rc;

	w->in_data = true;
	rc = k8s_split_feed(w->split, data, len, err);
	w->in_data = false;
	count_unreadable(w);
	return rc;
}

/* ---- ends of calls */

/* Ask for the next page, or complete the relist and start to watch from the version of the first
 * page. */
static void on_list_done(
	void *arg, const struct err *transport_err, const struct k8s_answer *answer)
{
	struct k8s_watch *w = arg;
	struct err err = ERR_INIT;
	int rc = k8s_answer_check(transport_err, answer, &err);

	if (w->state == K8S_WATCH_STOPPED)
		return;
	if (rc == 0)
		rc = k8s_split_end(w->split, &err);
	if (rc < 0) { /* objects seen by an incomplete list are no truth: all keep their entries */
		k8s_cache_relist_abandon(w->cache);
		xreplace(&w->cont, NULL);
		if (err.kind != ERR_GONE || w->fails) {
			back_off(w,
				err.kind == ERR_NOT_FOUND ? "not_served" : err_kind_name(err.kind),
				&err, 0);
			return;
		}
		/* an expired continue token is no failure: the next list may be faster */
		w->fails++;
		metric_add(&restarts, w->label, "expired", 1);
		timer_set(&w->next, 0);
		return;
	}
	if (!w->list_rv)
		w->list_rv = xstrdup(k8s_split_rv(w->split));
	xreplace(&w->cont, *k8s_split_continue(w->split) ? k8s_split_continue(w->split) : NULL);
	if (w->cont) {
		timer_set(&w->next, 0);
		return;
	}
	/* all pages show the state of the first one: a watch from its version misses nothing */
	free(w->rv);
	w->rv = steal_ptr(&w->list_rv);
	note_seen(w);
	k8s_cache_relist_end(w->cache);
	count_unreadable(w);
	if (w->state != K8S_WATCH_STOPPED)
		go_on(w, K8S_WATCH_WATCHING, "listed");
}

/* Decide how to continue after a stream: resume, list again, or back off. A 410 leads to a list at
 * once, but only once per working stream. */
static void on_watch_done(
	void *arg, const struct err *transport_err, const struct k8s_answer *answer)
{
	struct k8s_watch *w = arg;
	struct err err = ERR_INIT;
	int rc = k8s_answer_check(transport_err, answer, &err);
	bool lived = clock_boot_ms() - w->started_ms >= LIVED_MS;

	if (w->state == K8S_WATCH_STOPPED)
		return;
	if (lived) {
		w->fails = 0;
		w->relisted = false;
		backoff_reset(&w->backoff);
	}

	if (err_is_set(&w->event_err)) {
		err = w->event_err;
		rc = -1;
	}
	if (rc == 0 &&
		lived) { /* timeoutSeconds has passed, or the server restarts: the usual case */
		note_seen(w);
		metric_add(&restarts, w->label, "closed", 1);
		timer_set(&w->next, 0);
		return;
	}
	if (w->malformed || err.kind == ERR_GONE || err.kind == ERR_INVALID ||
		err.kind == ERR_NOT_FOUND || w->fails >= GIVE_UP_RESUME)
		xreplace(&w->rv, NULL);
	/* Also after other failures: a restarted server first refuses connections and then has
	 * forgotten the version. The backoff spent on those failures need not be spent again. */
	if (err.kind == ERR_GONE && !w->relisted) {
		w->fails++;
		w->relisted = true;
		metric_add(&restarts, w->label, "gone", 1);
		go_on(w, K8S_WATCH_LISTING, "gone");
		return;
	}
	back_off(w,
		rc == 0        ? "short"
		: w->malformed ? "malformed"
			       : err_kind_name(err.kind),
		&err, rc == 0 ? LIVED_MS : 0);
}

/* ---- starts of calls */

static void add_query(struct strbuf *path, const char *name, const char *value)
{
	if (!value)
		return;
	strbuf_addf(path, "%s=", name);
	str_percent_encode(path, value, strlen(value));
	strbuf_addc(path, '&');
}

/* Request a page or a stream. The stream's length is random, so that the watches of many kinds do
 * not all end at the same moment. */
static void start_call(struct k8s_watch *w, bool list)
{
	struct strbuf path = STRBUF_INIT;
	struct k8s_request req = {.method = "GET", .resource = w->gvk->plural};

	kobj_path(w->gvk, w->ns, NULL, NULL, &path);
	strbuf_addc(&path, '?');
	add_query(&path, "fieldSelector", w->field_selector);
	add_query(&path, "labelSelector", w->label_selector);
	if (list) {
		add_query(&path, "continue", w->cont);
		strbuf_adds(&path, "limit=" PAGE);
	} else {
		add_query(&path, "resourceVersion", w->rv);
		strbuf_addf(&path, "watch=true&allowWatchBookmarks=true&timeoutSeconds=%" PRIu32,
			err_is_set(&w->problem) ? PROVE_S
			: w->fresh_s            ? w->fresh_s
						: (uint32_t)backoff_spread(300, 599));
	}
	req.path = strbuf_steal(&path);
	req.verb = list ? "list" : "watch";
	req.silence_ms = w->fresh_s ? w->fresh_s * 1000 + FRESH_GRACE_MS
			 : list     ? SILENCE_LIST_MS
				    : SILENCE_WATCH_MS;
	k8s_split_free(w->split);
	w->split = k8s_split_new(list ? K8S_SPLIT_LIST : K8S_SPLIT_WATCH, w->gvk->keep, w->secret,
		list ? on_item : on_event, w);
	w->started_ms = clock_boot_ms();
	op_hold(&w->call, k8s_transport_start(w->t, &w->ops, &req, on_data,
				  list ? on_list_done : on_watch_done, w));
}

/* Start the next call: a stream if a version is known, otherwise a list. */
static void step(void *arg)
{
	struct k8s_watch *w = arg;

	assert(w->state != K8S_WATCH_STOPPED);
	op_cancel(&w->call); /* only after a stop and start from within on_data() */
	if (w->rv) {
		w->malformed = false;
		err_clear(&w->event_err);
		set_state(w, K8S_WATCH_WATCHING, "resume");
	} else {
		set_state(w, K8S_WATCH_LISTING, "list");
	}
	if (w->state == K8S_WATCH_STOPPED)
		return;
	if (!w->rv && !w->cont) { /* the first page */
		xreplace(&w->list_rv, NULL);
		k8s_cache_relist_begin(w->cache);
	}
	start_call(w, w->rv == NULL);
}

/* ---- owner's side */

struct k8s_watch *k8s_watch_new(struct loop *l, struct k8s_transport *t, struct k8s_cache *cache,
	const struct k8s_watch_conf *conf)
{
	struct k8s_watch *w = xcalloc(1, sizeof(*w));

	w->t = t;
	w->cache = cache;
	w->gvk = conf->gvk;
	w->fresh_s = conf->fresh_s;
	w->label = conf->label ? conf->label : conf->gvk->plural;
	w->ns = xstrdup(conf->ns);
	w->field_selector = xstrdup(conf->field_selector);
	w->label_selector = xstrdup(conf->label_selector);
	w->secret = conf->secret;
	w->backoff_max_ms = conf->backoff_max_ms ? conf->backoff_max_ms : BACKOFF_MAX_MS;
	timer_init(&w->next, l, step, w);
	return w;
}

void k8s_watch_free(struct k8s_watch *w)
{
	if (!w)
		return;
	assert(!w->in_data); /* inside on_data() only stop it, free it later */
	op_scope_cancel(&w->ops);
	timer_fini(&w->next);
	k8s_split_free(w->split);
	free(w->ns);
	free(w->field_selector);
	free(w->label_selector);
	free(w->rv);
	free(w->list_rv);
	free(w->cont);
	free(w);
}

void k8s_watch_start(struct k8s_watch *w)
{
	if (w->state == K8S_WATCH_IDLE || w->state == K8S_WATCH_STOPPED)
		go_on(w, K8S_WATCH_LISTING, "start");
}

/* Forgets the version: a later start lists, because the version may have expired by then. */
void k8s_watch_stop(struct k8s_watch *w)
{
	timer_cancel(&w->next);
	if (!w->in_data) /* otherwise on_data() ends the call */
		op_cancel(&w->call);
	k8s_cache_relist_abandon(w->cache);
	xreplace(&w->cont, NULL);
	xreplace(&w->rv, NULL);
	set_state(w, K8S_WATCH_STOPPED, "stop");
}

enum k8s_watch_state k8s_watch_state(const struct k8s_watch *w)
{
	return w->state;
}

int64_t k8s_watch_seen_s(const struct k8s_watch *w)
{
	return w->seen_s;
}

const char *k8s_watch_problem(const struct k8s_watch *w)
{
	return w->problem.text;
}

void k8s_watch_on_state(struct k8s_watch *w, void (*fn)(void *arg), void *arg)
{
	w->on_state = fn;
	w->on_state_arg = arg;
}
