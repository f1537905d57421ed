/* SPDX-License-Identifier: MIT */
/*
 * One Trustee: its states and errors, its requests, and which phase acts.
 *
 * An error never drops anything: what failed is unknown and pending again, alone, or with
 * everything in flight if Trustee is unreachable or refuses us. Several failures in a row mean that
 * it is unreachable, one does not. A name that is refused repeatedly while Trustee answers does not
 * count, so it delays nothing but itself.
 *
 * Probing compares the sentinel read with the one last written (if equal, all confirmations are
 * still valid) and with the sum of what is desired (if equal, everything is stored). The sentinel of
 * another cluster ends all writing, unless that cluster may be replaced. In any other case the content
 * of Trustee's store is unknown and everything is sent.
 *
 * Populating sends the dirty sentinel, policies, reference values and the clean sentinel, one request
 * at a time (a message carries as many values as fit). A message of values starts with the dirty
 * sentinel unless that is stored: its name sorts first, so the values after it are never hidden
 * behind a clean one.
 *
 * Running sends one request per key, in a window. A key that failed waits for its own backoff.
 * Retries are sent before new work, and revocations before deliveries. A request that replaces or
 * removes a key waits until the sentinel is dirty.
 */
#include "config.h"

#include "tec/kbs/push.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "kbs_internal.h"
#include "tec/base/backoff.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"
#include "tec/base/str.h"
#include "tec/base/uuid.h"
#include "tec/kbs/admin.h"
#include "tec/loop/timer.h"

#define AWAY_MIN_MS   200u   /* first delay of a probe */
#define SAID_MAX_MS   30000u /* longest delay if Trustee answers but does not accept it */
#define LOST_MAX_MS   500u   /* longest delay without an answer: several mean unreachable */
#define FIRST_MS      100u   /* first delay of a request */
#define AWAY_AFTER    5u     /* failures in a row that mean unreachable */
#define ALLOWED_MIN   2u     /* the window never shrinks below this */
#define SETTLE_MAX_MS 10000u /* longest wait for the controllers before a first probe */
#define BACK_IN_ROW   3u     /* a read proves less than a write: the disk may be full */
#define SHARED_NAME   "trusted_aks"
#define SHARED_MAX    (7u * 1024 * 1024) /* of a body; our Trustee accepts 8 MiB */
#define READS_LISTS   "reads-lists"
#define LIST_MAX      (4u * 1024 * 1024) /* of the list of resources: 70,000 Machines */
#define AGAIN_MS      1000u              /* delay after a failed read of the check or the record */
#define LOSSES_MAX    10u                /* failed reads in a row that end the check */
#define UNSTORED                                                                                                   \
	"it could not store a key (PluginInternalError): its storage of resources is full or damaged. Repair it, " \
	"and everything is sent again"

#define KBS_IDENTITY_PREFIX "ak."

/* A request about a resource, or a message of values, and what it was made from. A failed
 * request about a resource is kept until its next try; its entry counts as in flight, so it is
 * not sent twice. */
TAILQ_HEAD(push_requests, push_request);
struct push_request {
	TAILQ_ENTRY(push_request) link;
	struct push_requests *list; /* the one it is in */
	struct kbs_push *p;
	struct push_item {
		struct kbs_entry *e; /* in flight */
		bool revoke;
		uint8_t sha256[SHA256_LEN];
	} * item; /* owned */
	size_t n;
	bool stale; /* the store was lost after sending: the answer is meaningless */
	/* The revocations that it repeats, owned, and their number. */
	struct push_repeat *repeats;
	size_t n_repeats;
	/* A message of values: */
	bool clean; /* it carries a clean sentinel with this sum */
	struct kbs_sum sum;
	bool releases;       /* its sentinel belongs to no cluster */
	bool empties_shared; /* trusted_aks is emptied */
	/* About a resource: */
	bool unstored; /* Trustee could not store it: counts in n_unstored */
	struct backoff backoff;
	struct timer retry;
};

/* A name with a revocation that is sent once more. */
struct push_repeat {
	struct table_link link; /* in push_repeats.names; owner: its kind */
	struct push_repeat *next;
	char name[];
};
struct push_repeats {
	struct push_repeat *first[2]; /* by kind, owned */
	struct table names;           /* of both kinds: finds duplicates */
};

/* What is sent first until both policies are confirmed. */
enum push_order {
	/* The store was lost: nothing may be readable under the server's default policies. Or
	 * its attestation policy is of version 0.2.0 or older and cannot read identities that
	 * are lists. */
	PUSH_POLICIES_FIRST,
	/* The stored policy reads lists: a new policy must not refuse a node before its values
	 * are stored. */
	PUSH_VALUES_FIRST,
};

struct kbs_push {
	struct loop *loop; /* borrowed */
	struct kbs_sync *sync;
	struct kbs_push_conf conf;
	char *target, *cluster_uid, *session; /* owned */
	unsigned t;                           /* index in sync */
	struct kbs_transport *transport;      /* owned; NULL: not reachable yet */
	struct op_scope ops;
	enum kbs_target_state state;
	char error[ERR_TEXT_SIZE]; /* of the last request, or "" */
	char *text;                /* owned: why there is no transport; NULL: there is one */
	bool failed;               /* no answer since the last failure */
	bool finishing;            /* the clean sentinel is no longer debounced */
	/* Since when Trustee accepts nothing, and answers no probe; boot clock, 0: it does. */
	uint64_t refusing_ms, silent_ms;
	bool releasing, released; /* another cluster may begin once everything is taken back */
	struct timer retry;
	unsigned in_row; /* failures since something was accepted, bounded */

	/* The probe, and what is known about Trustee's store. */
	bool probe_wanted;
	bool hold;      /* nothing is sent before the probe is answered */
	bool known;     /* the entries' state of this target is valid */
	bool marked;    /* the stored sentinel is ours, so a probe is conclusive */
	char *replaces; /* owned: the cluster whose sentinel ours is to replace; NULL: none */
	bool wrote;     /* something was sent that may have come after another cluster's sentinel */
	bool alone;     /* nothing but the probe is in flight, or was sent since it started */
	bool asked;     /* a probe has just read the store; valid for this turn of the loop */
	bool unrecorded; /* the stored sentinel does not record yet that the policy reads lists */
	enum push_order order;
	uint64_t waiting_since_ms; /* boot clock: when the first probe became due */
	struct timer probe;

	/* Populating: one request at a time about policies and values. */
	bool serial; /* one is in flight; the probe counts too */
	struct backoff serial_backoff;
	struct timer serial_wait;
	const char *policy_attestation, *policy_resource; /* confirmed; NULL: unknown */
	const char *policy_sent;                          /* the one in flight */
	bool sends_resource_policy;                       /* or the attestation policy */
	bool shared_emptied;                              /* trusted_aks is empty */
	bool shared_mode;                                 /* identities are sent as one array */
	size_t batch_max; /* names per message; halved when one is too large */
	/* The stored sentinel is dirty unless one of these is set: */
	bool clean; /* it is clean, with stored_sum */
	bool sent;  /* it may be clean, with sent_sum: the answer was lost */
	struct kbs_sum stored_sum, sent_sum;
	bool sentinel_due;
	struct timer sentinel;

	/* Running: a window of requests about resources. */
	struct push_requests in_flight; /* messages of values too */
	struct push_requests waiting;   /* failed, until their timer */
	struct push_requests due[2];    /* ready for another try: deliveries, revocations */
	unsigned n_resources;           /* requests about resources in flight */
	unsigned n_unstored;            /* keys that Trustee could not store, in any of the lists */
	bool suspect;                   /* several could not be stored, and none since then */
	bool damaged;                   /* what is stored may not be there any more */
	unsigned allowed;               /* their current limit, at most conf.window */
	/* Repeating. What was revoked early in our term becomes due when the last requests of an
	 * earlier leader must have arrived; what conf.each_revoked names becomes due when a
	 * store was lost. */
	struct push_repeats early, due_again;
	struct timer repeat_timer; /* not set: the early part of our term is over */
	bool past_due;             /* conf.each_revoked has not named them yet */
	unsigned n_repeated;       /* repeated deletes in flight: nothing is delivered meanwhile */

	/* Checking: reading back after everything was sent to a store. */
	bool check_due, checking;
	struct strbuf check_names; /* of values, each with its NUL */
	size_t check_at;           /* in them */
	unsigned check_losses;     /* in a row */
	struct timer check;
};

static struct metric states = METRIC_GAUGE_INIT(
	"tec_trustee_state", "1 for the state that a Trustee is in.", "trustee", "state");

/* Values of the metric's label and of the log. */
static const char *const state_names[] = {[KBS_TARGET_UNREACHABLE] = "Unreachable",
	[KBS_TARGET_PROBING] = "Probing",
	[KBS_TARGET_POPULATING] = "Populating",
	[KBS_TARGET_IN_SYNC] = "InSync",
	[KBS_TARGET_REFUSED] = "Refused",
	[KBS_TARGET_CONFLICT] = "Conflict"};

/* Trustee does not answer, or refuses us: only a probe leads out of these states. */
static bool is_bad(enum kbs_target_state state)
{
	return state == KBS_TARGET_UNREACHABLE || state == KBS_TARGET_REFUSED;
}

/* The only writer of p->state: checks the move, logs it and reports it to kbs_sync. */
static void set_state(struct kbs_push *p, enum kbs_target_state state)
{
	if (state == KBS_TARGET_POPULATING || state == KBS_TARGET_IN_SYNC)
		(void)snprintf(p->error, sizeof(p->error), "%s", p->n_unstored ? UNSTORED : "");
	if (p->state != state) {
		assert(!is_bad(p->state) || state == KBS_TARGET_PROBING ||
			state == KBS_TARGET_UNREACHABLE);
		metric_drop(&states, p->target, state_names[p->state]);
		metric_set(&states, p->target, state_names[state], 1);
		log_at(is_bad(state) || state == KBS_TARGET_CONFLICT ? LOG_WARN : LOG_INFO, NULL,
			"Trustee state", "trustee=%s state=%s reason=%s", log_esc(p->target),
			state_names[state], log_esc(p->text ? p->text : p->error));
		p->state = state;
	}
	/* After a failure the reported state stays until Trustee answers: otherwise every object would
	 * be examined again at each probe. */
	if (state != KBS_TARGET_PROBING || !p->failed)
		kbs_sync_set_status(
			p->sync, p->target, state, *p->error ? p->error : NULL, p->text);
}

/* Look for work in the next turn of the loop. */
static void wake(void *push)
{
	struct kbs_push *p = push;

	kbs_sync_wake(p->sync, p->t);
}

/* ---- names that are revoked once more, each name once */

/* The table finds duplicates, as a message must not contain a name twice; the chain gives the order.
 * Both kinds share the table; `owner` distinguishes them. */
static void repeat_add(struct push_repeats *l, enum kbs_kind kind, const char *name)
{
	size_t len = strlen(name);
	struct push_repeat *a;

	TABLE_WITH_HASH (a, link, &l->names, table_hash_str(name))
		if (a->link.owner == kind && strcmp(a->name, name) == 0)
			return;
	a = xcalloc(1, sizeof(*a) + len + 1);
	memcpy(a->name, name, len);
	a->link.owner = kind;
	table_add(&l->names, &a->link, table_hash_str(name));
	a->next = l->first[kind];
	l->first[kind] = a;
}

/* Remove the first name of a kind; the caller owns it. */
static struct push_repeat *repeat_pop(struct push_repeats *l, enum kbs_kind kind)
{
	struct push_repeat *a = l->first[kind];

	if (a) {
		l->first[kind] = a->next;
		table_remove(&l->names, &a->link);
	}
	return a;
}

/* Move all names to `to`, or free them. */
static void repeats_move(struct push_repeats *l, struct push_repeats *to)
{
	struct push_repeat *a;

	for (int kind = 0; kind < 2; kind++) {
		while ((a = repeat_pop(l, (enum kbs_kind)kind)) != NULL) {
			if (to)
				repeat_add(to, (enum kbs_kind)kind, a->name);
			free(a);
		}
	}
}

/* For conf.each_revoked(). */
static void repeat_add_due(void *arg, enum kbs_kind kind, const char *name)
{
	struct kbs_push *p = arg;

	repeat_add(&p->due_again, kind, name);
}

/* The next name that is due; NULL: none. Borrowed until it is taken. A name that is wanted again is
 * sent anyway, so it is dropped on the way. A list is not: an earlier leader may have sent one with an
 * object that was withdrawn since. */
static const char *repeat_next(struct kbs_push *p, enum kbs_kind kind)
{
	const struct push_repeat *a;

	while ((a = p->due_again.first[kind]) != NULL) {
		const struct kbs_entry *e = kbs_entry_find(p->sync, kind, a->name);

		if (!e || !e->objects || e->taken_back)
			return a->name;
		free(repeat_pop(&p->due_again, kind));
	}
	return NULL;
}

/* Move the next name to the request that repeats it. */
static void repeat_take(struct push_request *f, enum kbs_kind kind)
{
	struct push_repeat *a = repeat_pop(&f->p->due_again, kind);

	a->next = f->repeats;
	f->repeats = a;
	f->n_repeats++;
}

/* The request ends: what it repeated is done, or becomes due again. */
static void repeat_end(struct push_request *f, bool done)
{
	while (f->repeats) {
		struct push_repeat *a = f->repeats;

		f->repeats = a->next;
		if (!done)
			repeat_add(&f->p->due_again, (enum kbs_kind)a->link.owner, a->name);
		free(a);
	}
	f->n_repeats = 0;
}

/* ---- requests */

/* Append to a list; a request is always in exactly one. */
static void move(struct push_request *f, struct push_requests *to)
{
	if (f->list)
		TAILQ_REMOVE(f->list, f, link);
	f->list = to;
	TAILQ_INSERT_TAIL(to, f, link);
}

/* The backoff has ended: queue the request again by what is desired now. */
static void on_due(void *arg)
{
	struct push_request *f = arg;

	move(f, &f->p->due[!f->item->e->objects]);
	wake(f->p);
}

/* A request that changes the store starts. */
static void note_write(struct kbs_push *p)
{
	p->wrote = true;
	p->alone = false;
}

/* Note whether Trustee could not store a key. The first one is reported. */
static void set_unstored(struct push_request *f, bool unstored)
{
	struct kbs_push *p = f->p;

	if (f->unstored == unstored)
		return;
	f->unstored = unstored;
	p->n_unstored += unstored ? 1u : -1u;
	if (p->n_unstored == unstored && !is_bad(p->state))
		set_state(p, p->state);
}

/* Owned by the list it is in; freed by finish_confirmed() or finish_unknown(). */
static struct push_request *request_new(struct kbs_push *p)
{
	struct push_request *f = xcalloc(1, sizeof(*f));

	f->p = p;
	timer_init(&f->retry, p->loop, on_due, f);
	move(f, &p->in_flight);
	return f;
}

/* The items were finished before: their in-flight bits are cleared. */
static void request_free(struct push_request *f)
{
	set_unstored(f, false);
	TAILQ_REMOVE(f->list, f, link);
	timer_fini(&f->retry);
	free(f->item);
	free(f);
}

/* Record what is sent: the entry may change while the request is in flight. */
static void request_add(struct push_request *f, struct kbs_entry *e)
{
	struct push_item *i;

	ARRAY_GROW(f->item, f->n);
	i = &f->item[f->n++];
	*i = (struct push_item){.e = e, .revoke = !e->objects};
	memcpy(i->sha256, e->sha256, SHA256_LEN);
}

/* Queue what the request carried again, and free the request. */
static void finish_unknown(struct push_request *f)
{
	for (size_t i = 0; i < f->n; i++)
		kbs_sync_finish(f->p->sync, f->p->t, f->item[i].e, false, NULL);
	repeat_end(f, false);
	request_free(f);
}

/* Trustee holds all that the request carried. An answer from before the store was lost confirms
 * nothing. */
static void finish_confirmed(struct push_request *f)
{
	struct kbs_push *p = f->p;

	if (f->stale) {
		finish_unknown(f);
		return;
	}
	for (size_t i = 0; i < f->n; i++) {
		struct push_item *x = &f->item[i];

		/* A late request of an earlier leader could undo this: repeat it later. After the
		 * early part of our term none can arrive. */
		if ((x->revoke || x->e->taken_back) && timer_is_set(&p->repeat_timer))
			repeat_add(&p->early, (enum kbs_kind)x->e->kind, x->e->name);
		kbs_sync_finish(p->sync, p->t, x->e, true, x->revoke ? NULL : x->sha256);
	}
	repeat_end(f, true);
	request_free(f);
}

/* ---- errors */

/* Whether Trustee itself did not answer: no answer at all, or one from a proxy. */
static bool is_lost(const struct err *err)
{
	return !err->http || err->http == 429 || err->http >= 502;
}

/* Whether a short wait is pointless. A failed TLS handshake is not an answer of Trustee: its
 * next certificate may be the right one, and nothing was sent. */
static bool is_refused(const struct err *err)
{
	return (err->kind == ERR_DENIED && err->http) || err->kind == ERR_INVALID;
}

/* Count a failed request; first: it was the request's first try. A lost answer halves the window.
 * True: Trustee is now unreachable. */
static bool is_away(struct kbs_push *p, const struct err *err, bool first)
{
	unsigned least = p->conf.window < ALLOWED_MIN ? p->conf.window : ALLOWED_MIN;

	if (is_refused(err) || err->kind == ERR_CONFLICT)
		return true;
	if (is_lost(err)) {
		p->allowed = p->allowed / 2 > least ? p->allowed / 2 : least;
		/* The next answer may come from another process, with an empty store and its own
		 * policies: no key must be sent there before our policies. */
		p->probe_wanted = p->hold = true;
	}
	if ((is_lost(err) || first) && p->in_row < AWAY_AFTER)
		p->in_row++;
	return p->in_row >= AWAY_AFTER;
}

/* Grow the window by one (additive increase, as TCP does). */
static void succeeded(struct kbs_push *p)
{
	p->in_row = 0;
	if (p->allowed < p->conf.window)
		p->allowed++;
}

/* The delay before a failed request is sent again; what: for the log. Retry-After is honoured up to
 * SAID_MAX_MS: a proxy may send hours. */
static uint32_t delay_for(
	struct kbs_push *p, struct backoff *b, const char *what, const struct err *err)
{
	uint32_t ms = backoff_next(b, FIRST_MS, is_lost(err) ? LOST_MAX_MS : SAID_MAX_MS);

	if (err->retry_after_ms > ms)
		ms = err->retry_after_ms < SAID_MAX_MS ? err->retry_after_ms : SAID_MAX_MS;
	log_info(NULL, "Trustee request failed, will be retried",
		"trustee=%s name=%s retry_ms=%u reason=%s", log_esc(p->target), log_esc(what), ms,
		log_esc(err->text));
	return ms;
}

/* End the check. */
static void check_stop(struct kbs_push *p)
{
	timer_cancel(&p->check);
	strbuf_fini(&p->check_names);
	p->checking = false;
}

/* Cancel all requests in flight: whether Trustee executed them is unknown. */
static void cancel_all(struct kbs_push *p)
{
	struct push_requests *all[] = {&p->in_flight, &p->waiting, &p->due[0], &p->due[1]};

	op_scope_cancel(&p->ops);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		while (!TAILQ_EMPTY(all[i]))
			finish_unknown(TAILQ_FIRST(all[i]));
	p->n_resources = p->n_repeated = 0;
	timer_cancel(&p->serial_wait);
	timer_cancel(&p->probe);
	timer_cancel(&p->sentinel);
	/* The next phase starts with a probe and its own backoff. */
	backoff_reset(&p->serial_backoff);
	p->check_due = p->check_due || p->checking;
	check_stop(p);
	p->serial = false;
}

/* The wait before the next probe: as long as the trouble has lasted, so that it doubles. A quarter of
 * that if there was no answer: over a line that loses most requests, little would be sent. */
static uint32_t away_for(uint64_t *since_ms, bool lost)
{
	uint64_t now = clock_boot_ms(), ms;

	*since_ms = *since_ms ? *since_ms : now;
	ms = (now - *since_ms) / (lost ? 4 : 1);
	ms = ms < AWAY_MIN_MS ? AWAY_MIN_MS : ms > SAID_MAX_MS ? SAID_MAX_MS : ms;
	return (uint32_t)backoff_spread(ms - ms / 5, ms);
}

/* Trustee is unreachable or refuses us: everything in flight becomes pending again. A refusal needs a
 * person (a key or a certificate), so it is retried slowly. */
static void fail(struct kbs_push *p, uint64_t *since_ms, const struct err *err)
{
	const struct err why = *err; /* err may belong to a request that is freed here */
	bool refused = is_refused(&why);
	uint32_t after = refused ? (why.kind == ERR_DENIED ? p->conf.denied_ms : p->conf.refused_ms)
				 : away_for(since_ms, is_lost(&why));

	p->failed = true;
	p->suspect = p->suspect || p->n_unstored;
	cancel_all(p);
	if (!refused && why.retry_after_ms > after)
		after = why.retry_after_ms > SAID_MAX_MS ? SAID_MAX_MS : why.retry_after_ms;
	(void)snprintf(p->error, sizeof(p->error), "%s", why.text);
	set_state(p, refused ? KBS_TARGET_REFUSED : KBS_TARGET_UNREACHABLE);
	timer_set(&p->retry, after);
}

/* Every way back starts with a probe: the store may have been replaced meanwhile. */
static void on_retry(void *arg)
{
	struct kbs_push *p = arg;

	if (!p->transport)
		return;
	p->probe_wanted = p->hold = true;
	p->waiting_since_ms = clock_boot_ms();
	set_state(p, KBS_TARGET_PROBING);
	wake(p);
}

/* ---- the sentinel */

/* Whether the stored sentinel is clean and its sum is that of what is desired now. */
static bool sentinel_is_right(const struct kbs_push *p)
{
	struct kbs_sum want;

	kbs_sync_sum(p->sync, &want);
	return p->clean && memcmp(&want, &p->stored_sum, sizeof(want)) == 0;
}

/* Add {"cluster":...,"session":...,"sum":"..."}, and "policy":READS_LISTS if the stored policy reads
 * lists. */
static void add_mark(struct kbs_values *m, const char *cluster, const char *session,
	const char *sum, bool reads_lists)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_adds(&text, "{\"cluster\":");
	json_quote(&text, cluster, strlen(cluster));
	strbuf_addf(&text, ",\"session\":\"%s\",\"sum\":\"%s\"%s}", session, sum,
		reads_lists ? ",\"policy\":\"" READS_LISTS "\"" : "");
	kbs_values_add(m, KBS_SENTINEL, strbuf_str(&text), text.len);
}

/* Add our sentinel; sum NULL: the dirty one. A clean one names no session: the next process can accept
 * it. */
static void add_sentinel(const struct kbs_push *p, const struct kbs_sum *sum, struct kbs_values *m)
{
	char hex[SHA256_HEX_LEN + 1] = "";

	if (sum)
		kbs_sum_hex(sum, hex);
	add_mark(m, p->cluster_uid, sum ? "" : p->session, hex, p->order == PUSH_VALUES_FIRST);
}

/* Whether a sentinel may be written now; if not, request a probe. A sentinel may only replace one that
 * was just read: otherwise a store that was lost meanwhile would look complete from then on. */
static bool may_mark(struct kbs_push *p)
{
	if (p->asked)
		return true;
	p->probe_wanted = p->hold = true;
	wake(p);
	return false;
}

/* Begin a message of values, with the dirty sentinel unless that is stored. NULL: a probe is due. */
static struct push_request *message_new(struct kbs_push *p, struct kbs_values *m)
{
	if (p->clean || p->sent || p->unrecorded) {
		if (!may_mark(p))
			return NULL;
		add_sentinel(p, NULL, m);
	}
	return request_new(p);
}

/* ---- values */

static bool is_identity(const struct kbs_entry *e)
{
	return str_starts(e->name, KBS_IDENTITY_PREFIX);
}

/* Handle the failure of a request; f may be NULL. A single one delays the next request; several mean
 * that Trustee is unreachable. */
static void serial_failed(
	struct kbs_push *p, struct push_request *f, const char *what, const struct err *err)
{
	if (is_away(p, err, true)) {
		fail(p, &p->refusing_ms, err);
		return;
	}
	if (f)
		finish_unknown(f);
	timer_set(&p->serial_wait, delay_for(p, &p->serial_backoff, what, err));
}

/* 413 halves the batch instead of failing: the limit of a server or proxy is unknown in advance. */
static void on_values(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct push_request *f = arg;
	struct kbs_push *p = f->p;

	p->serial = false;
	if (err_is_set(err)) {
		if (err->http != 413 || f->n + f->n_repeats < 2) {
			serial_failed(p, f, "reference values", err);
			return;
		}
		/* Too many names for the server's body limit. */
		p->batch_max = (f->n + f->n_repeats) / 2;
		finish_unknown(f);
		wake(p);
		return;
	}
	if (f->n || !p->marked) { /* a later message with the sentinel alone is not progress */
		p->refusing_ms = 0;
		succeeded(p);
	}
	backoff_reset(&p->serial_backoff);
	p->marked = true;
	p->sent = p->unrecorded = false;
	p->clean = f->clean;
	/* Only an answered message tells which sentinel is stored. */
	p->stored_sum = f->sum;
	p->shared_emptied = p->shared_emptied || f->empties_shared;
	p->released = f->releases;
	if (p->replaces)
		p->conf.did_replace(p->conf.replace_arg, p->replaces);
	free(steal_ptr(&p->replaces));
	finish_confirmed(f);
	wake(p);
}

static void send_values(struct push_request *f, const struct kbs_values *m)
{
	f->p->serial = true;
	note_write(f->p);
	(void)kbs_admin_put_values(f->p->transport, &f->p->ops, m, on_values, f);
}

/* Add one entry to the message; false: it does not fit. The first entry is added whatever its
 * size. */
static bool add_value(struct push_request *f, struct kbs_values *m, struct kbs_entry *e)
{
	struct kbs_push *p = f->p;
	bool in_array = p->shared_mode && is_identity(e) && e->objects;
	cleanup_secret struct secret *value = NULL;
	size_t len;

	if (e->objects && !in_array)
		value = kbs_entry_render(e);
	len = value ? secret_len(value) : 4;
	if (f->n && kbs_values_body_len(m, strlen(e->name), len) > p->conf.max_body)
		return false;
	if (!in_array)
		kbs_values_add(m, e->name, value ? (const char *)secret_peek(value) : NULL, len);
	kbs_sync_take(p->sync, p->t, e);
	request_add(f, e);
	return true;
}

/* Policies are static texts, so pointers are compared. */
static bool policies_are_there(const struct kbs_push *p)
{
	const struct kbs_policies *want = &p->sync->policies;

	return p->policy_attestation == want->attestation && p->policy_resource == want->resource;
}

/* Add the array of all identities' base64 keys for the Rust operator's policy. Sorted, so that equal
 * sets give equal text. False: it is too large and the push has failed. */
static bool add_shared(struct kbs_push *p, struct kbs_values *m)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;
	cleanup_free char **keys = NULL;
	const struct kbs_object *o;
	struct kbs_entry *e;
	size_t n = 0;

	EACH_ENTRY (p->sync, e) {
		if (e->kind != KBS_REFVALUE || !is_identity(e))
			continue;
		EACH_OBJECT (e, o) {
			cleanup_secret struct secret *value = kbs_object_render(e, o);
			cleanup_json struct json_object *json = NULL;

			json = json_parse((const char *)secret_peek(value), secret_len(value),
				&json_limits_object, &err);
			if (!json || !json_get_str(json, "ak"))
				DIE("kbs push: the identity %s has no key", e->name);
			ARRAY_GROW(keys, n);
			keys[n++] = xstrdup(json_get_str(json, "ak"));
		}
	}
	if (n)
		qsort(keys, n, sizeof(*keys), str_order);
	strbuf_addc(&text, '[');
	for (size_t i = 0; i < n; i++) {
		if (i)
			strbuf_addc(&text, ',');
		json_quote(&text, keys[i], strlen(keys[i]));
		free(keys[i]);
	}
	strbuf_addc(&text, ']');
	if (kbs_values_body_len(m, strlen(SHARED_NAME), text.len) <= SHARED_MAX) {
		kbs_values_add(m, SHARED_NAME, strbuf_str(&text), text.len);
		return true;
	}
	err_set(&err, ERR_INVALID,
		"the list of all identities exceeds what Trustee accepts in one message; "
		"spec.trustee.keyIsolation PerMachine has no such limit");
	fail(p, &p->refusing_ms, &err);
	return false;
}

/* In shared mode identities are taken one by one for their confirmation, but sent as one array. */
static void start_values(struct kbs_push *p, bool empties_shared)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	struct push_request *f = message_new(p, &m);
	bool identities = false;
	struct kbs_entry *e;

	if (!f)
		return;
	while (f->n < p->batch_max && (e = kbs_sync_peek(p->sync, p->t, KBS_REFVALUE)) != NULL) {
		identities = identities || is_identity(e);
		if (!add_value(f, &m, e))
			break;
	}
	f->empties_shared = empties_shared;
	if (f->empties_shared)
		kbs_values_add(&m, SHARED_NAME, "[]", 2);
	if (identities && p->shared_mode && !add_shared(p, &m))
		return;
	send_values(f, &m);
}

/* Mark the store as incomplete before something is changed or removed. */
static void start_dirty(struct kbs_push *p)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	struct push_request *f = message_new(p, &m);

	if (f)
		send_values(f, &m);
}

/* Send null for each revoked name again, or the current list if the name has other objects. */
static void start_repeated_values(struct kbs_push *p)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	struct push_request *f = message_new(p, &m);
	bool identities = false;
	const char *name;

	if (!f)
		return;
	while (f->n_repeats < p->batch_max && (name = repeat_next(p, KBS_REFVALUE)) != NULL) {
		const struct kbs_entry *e = kbs_entry_find(p->sync, KBS_REFVALUE, name);
		bool is_list = e && e->objects && !p->shared_mode; /* else in the shared array */
		cleanup_secret struct secret *value = is_list ? kbs_entry_render(e) : NULL;
		size_t len = value ? secret_len(value) : 4;

		if (f->n_repeats && kbs_values_body_len(&m, strlen(name), len) > p->conf.max_body)
			break;
		identities = identities || str_starts(name, KBS_IDENTITY_PREFIX);
		kbs_values_add(
			&m, name, value ? (const char *)secret_peek(value) : NULL, value ? len : 0);
		repeat_take(f, KBS_REFVALUE);
	}
	if (identities && p->shared_mode && !add_shared(p, &m))
		return;
	send_values(f, &m);
}

/* ---- policies */

/* Record the confirmed policy. Once both are stored, values may precede policies. */
static void on_policy(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct kbs_push *p = arg;

	p->serial = false;
	if (err_is_set(err)) {
		serial_failed(p, NULL,
			p->sends_resource_policy ? "resource policy" : "attestation policy", err);
		return;
	}
	p->refusing_ms = 0;
	backoff_reset(&p->serial_backoff);
	succeeded(p);
	*(p->sends_resource_policy ? &p->policy_resource : &p->policy_attestation) = p->policy_sent;
	if (policies_are_there(p) && p->order != PUSH_VALUES_FIRST) {
		p->order = PUSH_VALUES_FIRST;
		p->unrecorded = true; /* rewrite the sentinel */
	}
	wake(p);
}

/* The resource policy is sent first: it decides who may read keys. */
static void start_policy(struct kbs_push *p)
{
	const struct kbs_policies *want = &p->sync->policies;
	bool resource = p->policy_resource != want->resource;

	p->serial = true;
	p->sends_resource_policy = resource;
	/* Unknown until answered: the desired one may change meanwhile, or change back. */
	*(resource ? &p->policy_resource : &p->policy_attestation) = NULL;
	p->policy_sent = resource ? want->resource : want->attestation;
	note_write(p);
	(void)kbs_admin_put_policy(p->transport, &p->ops, resource, p->policy_sent, on_policy, p);
}

/* ---- the probe */

/* Whether the sentinel carries this sum; a dirty one carries "". */
static bool has_sum(struct json_object *o, const struct kbs_sum *sum)
{
	char hex[SHA256_HEX_LEN + 1];

	kbs_sum_hex(sum, hex);
	return str_eq(json_get_str(o, "sum"), hex);
}

/* Whether no other process has written since we did, so that all confirmations are still valid. */
static bool is_ours(struct kbs_push *p, struct json_object *o)
{
	if (!p->known)
		return false;
	if (str_eq(json_get_str(o, "session"), p->session)) {
		p->clean = p->sent = false;
		return true;
	}
	if (p->sent && has_sum(o, &p->sent_sum)) {
		p->stored_sum = p->sent_sum;
		p->clean = true;
		p->sent = false;
		return true;
	}
	p->sent = false;
	return p->clean && has_sum(o, &p->stored_sum);
}

/* Everything is sent again anyway. */
static void forgive(struct kbs_push *p)
{
	struct push_requests *all[] = {&p->in_flight, &p->waiting, &p->due[0], &p->due[1]};
	struct push_request *f;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		TAILQ_FOREACH (f, all[i], link)
			set_unstored(f, false);
}

/* Discard all confirmations of this store. sentinel: the stored one; NULL: the store was lost. */
static void start_over(struct kbs_push *p, struct json_object *sentinel)
{
	struct push_request *f;

	p->order = sentinel && str_eq(json_get_str(sentinel, "policy"), READS_LISTS)
			   ? PUSH_VALUES_FIRST
			   : PUSH_POLICIES_FIRST;
	/* Whatever it contains, the dirty sentinel is written before anything else: by it the next
	 * probe knows this store again, and the confirmations stay valid. */
	p->clean = true;
	memset(&p->stored_sum, 0, sizeof(p->stored_sum));
	p->sent = p->shared_emptied = p->marked = p->unrecorded = false;
	p->shared_mode = p->sync->policies.shared;
	p->policy_attestation = p->policy_resource = NULL;
	p->known = true; /* each entry is unknown from here on */
	p->suspect = p->damaged = false;
	p->check_due = p->conf.read_back;
	/* Answers to requests sent before the loss say nothing about the new store. */
	TAILQ_FOREACH (f, &p->in_flight, link)
		f->stale = true;
	forgive(p);
	kbs_sync_assume(p->sync, p->t, false);
	p->past_due = p->conf.each_revoked != NULL; /* may be an older, restored store */
	set_state(p, KBS_TARGET_POPULATING);
}

/* The cluster that the sentinel belongs to, if we may not replace it; else NULL. */
static const char *other_cluster(struct kbs_push *p, struct json_object *sentinel)
{
	const char *cluster = json_get_str(sentinel, "cluster");

	free(steal_ptr(&p->replaces));
	if (!p->conf.may_replace || !cluster || !*cluster || str_eq(cluster, p->cluster_uid))
		return NULL;
	if (!p->conf.may_replace(p->conf.replace_arg, cluster))
		return cluster;
	p->replaces = xstrdup(cluster);
	return NULL;
}

static void on_spoiled(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct kbs_push *p = arg;

	p->serial = false;
	p->wrote = err_is_set(err);
	wake(p);
}

/*
 * Stop: the store is another cluster's. Nothing is sent until a probe finds another sentinel.
 *
 * Trustee has no transactions, so two clusters that start at the same time both write until one of
 * them reads the other's sentinel here. What it wrote may have replaced policies and values of the
 * other one, which must therefore send everything again: that is what a dirty sentinel of no session
 * makes it do. The last request of this cluster writes it.
 */
static void stop_for(struct kbs_push *p, const char *cluster)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;

	cancel_all(p);
	(void)snprintf(p->error, sizeof(p->error), "the cluster with uid %.64s administers it",
		log_esc(cluster));
	p->known = false;
	if (p->state != KBS_TARGET_CONFLICT)
		kbs_sync_assume(p->sync, p->t, false);
	set_state(p, KBS_TARGET_CONFLICT);
	timer_set(&p->probe, p->conf.probe_ms);
	if (!p->wrote)
		return;
	add_mark(&m, cluster, "", "", false);
	p->serial = true;
	(void)kbs_admin_put_values(p->transport, &p->ops, &m, on_spoiled, p);
}

/* Decide what a stored sentinel proves. One of another cluster proves nothing. */
static void judge(struct kbs_push *p, struct json_object *o)
{
	struct kbs_sum want;

	if (!str_eq(json_get_str(o, "cluster"), p->cluster_uid)) {
		p->known = false;
		return;
	}
	p->wrote = p->wrote && !p->alone;
	if (p->damaged) {
		p->known = false;
		return;
	}
	/* All confirmations are still valid: nothing to send. */
	if (is_ours(p, o))
		return;
	kbs_sync_sum(p->sync, &want);
	/* Another process, usually an earlier leader, has stored exactly this. */
	p->known = has_sum(o, &want);
	if (!p->known)
		return;
	p->clean = p->shared_emptied = true;
	p->order = PUSH_VALUES_FIRST;
	p->stored_sum = want;
	p->policy_attestation = p->sync->policies.attestation;
	p->policy_resource = p->sync->policies.resource;
	p->shared_mode = p->sync->policies.shared;
	kbs_sync_assume(p->sync, p->t, true);
}

/* The answer releases `hold`: only now may anything be sent. */
static void on_probe(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct kbs_push *p = arg;
	cleanup_json struct json_object *o = NULL;
	struct err bad = ERR_INIT;
	/* Nothing was written to a store without our sentinel. */
	bool was_filled = p->known && p->marked;
	const char *other;

	p->serial = false;
	if (err_is_set(err) && err->kind != ERR_NOT_FOUND) {
		if (p->failed || !p->known || is_away(p, err, !p->serial_backoff.ms)) {
			fail(p, &p->silent_ms, err);
			return;
		}
		/* While the store is known, this is retried like a request, without giving up the
		 * store. */
		p->probe_wanted = true;
		timer_set(&p->serial_wait, delay_for(p, &p->serial_backoff, "probe", err));
		return;
	}
	/* A few failures are kept, so that a Trustee that only reads is unreachable again soon. */
	if (p->failed && p->in_row > BACK_IN_ROW)
		p->in_row = BACK_IN_ROW;
	/* This resets one of the two: a server that answers may still accept no write. */
	p->silent_ms = 0;
	p->failed = p->hold = false;
	if (!err_is_set(err))
		o = json_parse(answer->body, answer->body_len, &json_limits_object, &bad);
	other = o ? other_cluster(p, o) : NULL;
	if (other) {
		stop_for(p, other);
		return;
	}
	if (o)
		judge(p, o);
	else
		p->known = false; /* no sentinel, or malformed */
	p->asked = true;
	if (!p->known) {
		if (was_filled)
			log_warn(NULL,
				"Trustee's store was lost or changed, sending everything again",
				"trustee=%s", log_esc(p->target));
		start_over(p, o);
	} else {
		p->marked = true;
	}
	timer_set(&p->probe, p->conf.probe_ms);
	wake(p);
}

/* Read the sentinel, unless the controllers are still declaring. */
static void start_probe(struct kbs_push *p)
{
	uint64_t now = clock_boot_ms(), unchanged_ms = now - p->sync->changed_ms;

	/* Controllers are still declaring: a probe now would find a difference. */
	if (!p->known && unchanged_ms < p->conf.settle_ms &&
		now - p->waiting_since_ms < SETTLE_MAX_MS) {
		timer_set(&p->probe, p->conf.settle_ms - unchanged_ms);
		return;
	}
	p->probe_wanted = false;
	p->serial = true;
	p->alone = TAILQ_EMPTY(&p->in_flight);
	(void)kbs_admin_get_value(p->transport, &p->ops, KBS_SENTINEL, on_probe, p);
}

/* The periodic probe detects a store that was lost without a failed request. */
static void on_probe_due(void *arg)
{
	struct kbs_push *p = arg;

	p->probe_wanted = true;
	wake(p);
}

/* ---- keys */

/* Trustee's storage of resources is full or damaged. LocalJson damages its file when keys arrive at the
 * same time, so from now on they are sent one by one. */
static void could_not_store(struct push_request *f)
{
	f->p->conf.window = f->p->allowed = 1;
	set_unstored(f, true);
}

/* Both a put and a delete end here; the entry's state decides what was confirmed. */
static void on_key(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct push_request *f = arg;
	struct kbs_push *p = f->p;
	struct kbs_entry *e = f->n ? f->item->e : NULL; /* NULL: a repeated revocation */
	bool delivers = e && !f->item->revoke;

	p->n_resources--;
	p->n_repeated -= f->n_repeats > 0;
	if (err_is_set(err) && !e) {
		serial_failed(p, f, "repeated revocation", err);
		return;
	}
	if (err_is_set(err) && delivers && str_eq(answer->type, "PluginInternalError"))
		could_not_store(f);
	if (err_is_set(err) && is_away(p, err, !f->backoff.ms)) {
		fail(p, &p->refusing_ms, err);
		return;
	}
	if (err_is_set(err)) {
		move(f, &p->waiting);
		timer_set(&f->retry, delay_for(p, &f->backoff, e->name, err));
		kbs_set_seen(p->sync, e, p->t, KBS_SEEN_UNKNOWN);
		wake(p);
		return;
	}
	/* Its storage was repaired, or replaced by an empty one: the sentinel is stored elsewhere. */
	if (delivers && (f->unstored || p->suspect))
		p->damaged = p->probe_wanted = p->hold = true;
	p->refusing_ms = 0;
	succeeded(p);
	finish_confirmed(f);
	wake(p);
}

/* The first retry that is due. Entries forgotten meanwhile are dropped. */
static struct push_request *first_due(struct kbs_push *p, bool revoked)
{
	struct push_request *f;

	while ((f = TAILQ_FIRST(&p->due[revoked])) != NULL && f->item->e->forgotten)
		finish_unknown(f);
	return f;
}

/* Send what fits into the window: due revocations, new revocations, due deliveries, new deliveries.
 * True: something must wait until the sentinel is dirty. */
static bool start_keys(struct kbs_push *p)
{
	while (p->n_resources < p->allowed && !p->n_repeated) {
		struct push_request *f = first_due(p, true);
		struct kbs_entry *e = f ? f->item->e : kbs_sync_peek(p->sync, p->t, KBS_RESOURCE);

		/* No revocation is left: a due delivery comes before a new one. */
		if (!f && (!e || e->objects) && (f = first_due(p, false)) != NULL)
			e = f->item->e;
		if (!e)
			return false;
		/* A clean sentinel would hide this change from the next process. */
		if (p->clean || p->sent)
			return true;
		if (f)
			move(f, &p->in_flight);
		else
			kbs_sync_take(p->sync, p->t, e);
		/* A retry keeps its request and with it the backoff. */
		f = f ? f : request_new(p);
		f->n = 0;
		f->stale = false;
		request_add(f, e); /* the current desired value */
		p->n_resources++;
		note_write(p);
		if (e->objects)
			(void)kbs_admin_put_resource(
				p->transport, &p->ops, e->name, kbs_entry_render(e), on_key, f);
		else
			(void)kbs_admin_delete_resource(p->transport, &p->ops, e->name, on_key, f);
	}
	return false;
}

/* Whether keys are queued, in flight, or waiting for a retry. */
static bool keys_are_left(struct kbs_push *p)
{
	return !TAILQ_EMPTY(&p->in_flight) || !TAILQ_EMPTY(&p->waiting) ||
	       !TAILQ_EMPTY(&p->due[0]) || !TAILQ_EMPTY(&p->due[1]) ||
	       kbs_sync_peek(p->sync, p->t, KBS_RESOURCE);
}

/* Repeat revocations. Called when nothing else is left, so every first revocation is confirmed.
 * If the name lists other objects, their value is sent instead. One window at a time, so new
 * work waits for no more than that. */
static bool start_repeat(struct kbs_push *p)
{
	p->past_due = p->past_due && !p->conf.each_revoked(p->conf.revoked_arg, repeat_add_due, p);
	if (p->past_due) { /* the record is not loaded yet */
		timer_set(&p->serial_wait, AGAIN_MS);
		return true;
	}
	if (repeat_next(p, KBS_REFVALUE)) {
		start_repeated_values(p);
		return true;
	}
	if (!repeat_next(p, KBS_RESOURCE))
		return false;
	if (p->clean || p->sent) {
		start_dirty(p);
		return true;
	}
	while (p->n_resources < p->allowed && repeat_next(p, KBS_RESOURCE)) {
		struct push_request *f = request_new(p);

		repeat_take(f, KBS_RESOURCE);
		p->n_resources++;
		p->n_repeated++;
		note_write(p);
		(void)kbs_admin_delete_resource(p->transport, &p->ops, f->repeats->name, on_key, f);
	}
	return true;
}

/* Tell whether revocations have to be repeated, or are being, before anything is delivered. */
static bool revokes_first(struct kbs_push *p)
{
	return p->conf.revoke_first && p->state != KBS_TARGET_IN_SYNC &&
	       (p->past_due || p->n_repeated || repeat_next(p, KBS_REFVALUE) ||
		       repeat_next(p, KBS_RESOURCE));
}

/* ---- the check
 *
 * After everything was sent to a store, compare once what it reports with what it confirmed: LocalJson
 * loses acknowledged writes. First the list of resources, if the server has one, then the values one
 * by one. Whatever is missing or different becomes unknown and is sent again. A key cannot be read
 * back, and a server without the list answers with an error, which proves nothing. Sends only GET. */

/* Forget the confirmation, which queues the entry again. */
static void repair(struct kbs_push *p, enum kbs_kind kind, const char *name)
{
	log_warn(NULL, "Trustee lost a confirmed entry, sending it again", "trustee=%s name=%s",
		log_esc(p->target), log_esc(name));
	kbs_sync_set_unknown(p->sync, p->target, kind, name);
}

static void check_next(void *push);

/* A read that fails proves nothing, so only an answer repairs. */
static void on_value(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct kbs_push *p = arg;
	const char *name = strbuf_str(&p->check_names) + p->check_at;
	cleanup_json struct json_object *is = NULL, *ought = NULL;
	cleanup_secret struct secret *want = NULL;
	struct err ignored = ERR_INIT;

	if (err_is_set(err) && err->kind != ERR_NOT_FOUND) {
		if (++p->check_losses > LOSSES_MAX)
			check_stop(p);
		else
			timer_set(&p->check, AGAIN_MS);
		return;
	}
	/* NULL if it changed meanwhile or is in flight: then it is not lost. */
	want = kbs_sync_confirmed(p->sync, p->t, KBS_REFVALUE, name);
	if (want && !err_is_set(err)) {
		/* Compared as JSON: Trustee may format a value differently. */
		is = json_parse(answer->body, answer->body_len, &json_limits_object, &ignored);
		ought = json_parse((const char *)secret_peek(want), secret_len(want),
			&json_limits_object, &ignored);
	}
	if (want && (!is || !ought || !json_object_equal(is, ought)))
		repair(p, KBS_REFVALUE, name);
	p->check_at += strlen(name) + 1;
	p->check_losses = 0;
	check_next(p);
}

/* One value at a time, so that the check does not crowd out deliveries. */
static void check_next(void *arg)
{
	struct kbs_push *p = arg;

	if (p->check_at >= p->check_names.len) {
		check_stop(p);
		return;
	}
	(void)kbs_admin_get_value(
		p->transport, &p->ops, strbuf_str(&p->check_names) + p->check_at, on_value, p);
}

/* Repair each declared resource that was confirmed but is missing in the list. Names are copied
 * first, because repair() calls listeners that may change the table. */
static void compare_list(struct kbs_push *p, struct json_object *list)
{
	size_t n = json_object_array_length(list);
	const char **v = xcalloc(n + 1, sizeof(*v));
	cleanup_strbuf struct strbuf missing = STRBUF_INIT;
	struct kbs_entry *e;

	for (size_t i = 0; i < n; i++) {
		v[i] = json_object_get_string(json_object_array_get_idx(list, i));
		v[i] = v[i] ? v[i] : "";
	}
	/* Sorted once for many lookups; the list may have 70,000 names. */
	qsort(v, n, sizeof(*v), str_order);
	EACH_ENTRY (p->sync, e) {
		if (e->kind == KBS_RESOURCE && e->objects &&
			!bsearch(&e->name, v, n, sizeof(*v), str_order))
			strbuf_add(&missing, e->name, strlen(e->name) + 1);
	}
	for (size_t at = 0; at < missing.len; at += strlen(missing.data + at) + 1) {
		cleanup_secret struct secret *want =
			kbs_sync_confirmed(p->sync, p->t, KBS_RESOURCE, missing.data + at);

		if (want)
			repair(p, KBS_RESOURCE, missing.data + at);
	}
	free(v);
}

/* Compare the list, if the server supports it, then go on to the values. */
static void on_list(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	static const struct json_limits limits = {
		.bytes = LIST_MAX, .depth = 2, .tokens = LIST_MAX / 8};
	struct kbs_push *p = arg;
	struct err why = *err;
	cleanup_json struct json_object *o = NULL;

	if (!err_is_set(err))
		o = json_parse(answer->body, answer->body_len, &limits, &why);
	if (o && json_object_is_type(o, json_type_array))
		compare_list(p, o);
	else
		log_debug(NULL, "Trustee does not list its resources", "trustee=%s reason=%s",
			log_esc(p->target), log_esc(why.text));
	check_next(p);
}

/* Take the names first: entries may come and go while values are read. */
static void check_start(struct kbs_push *p)
{
	struct kbs_entry *e;

	check_stop(p);
	p->check_due = false;
	p->checking = true;
	p->check_at = p->check_losses = 0;
	EACH_ENTRY (p->sync, e) {
		/* Identities of shared mode are one array, which others may write too. */
		if (e->kind == KBS_REFVALUE && e->objects && !(p->shared_mode && is_identity(e)))
			strbuf_add(&p->check_names, e->name, strlen(e->name) + 1);
	}
	(void)kbs_admin_list_resources(p->transport, &p->ops, LIST_MAX, on_list, p);
}
/* ---- what to do now */

/* Switch between one value per identity and one shared array. All identities are sent again in
 * the new form, then the policies. True: requests in the old form must end first. */
static bool change_mode(struct kbs_push *p)
{
	if (p->shared_mode == p->sync->policies.shared)
		return false;
	/* Requests in flight carry the old form: wait for their answers. */
	if (!TAILQ_EMPTY(&p->in_flight) || p->serial)
		return true;
	p->shared_mode = !p->shared_mode;
	p->shared_emptied = false;
	/* Everything is unknown again and therefore queued. */
	kbs_sync_assume(p->sync, p->t, false);
	return false;
}

/* Everything is taken back: leave the store to whatever cluster comes next. */
static void release(struct kbs_push *p)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	struct push_request *f;

	if (!may_mark(p))
		return;
	f = request_new(p);
	f->releases = true;
	add_mark(&m, "", "", "", p->order == PUSH_VALUES_FIRST);
	send_values(f, &m);
}

/* Everything is sent: read back once, and write the clean sentinel after its debounce. */
static void all_sent(struct kbs_push *p)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	struct push_request *f;
	struct kbs_sum want;

	p->refusing_ms = 0;
	set_state(p, KBS_TARGET_IN_SYNC);
	if (p->releasing) {
		release(p);
		return;
	}
	if (p->check_due && !p->checking)
		check_start(p);
	if (!timer_is_set(&p->probe))
		timer_set(&p->probe, p->conf.probe_ms);
	if (sentinel_is_right(p)) {
		timer_cancel(&p->sentinel);
		p->sentinel_due = false;
	} else if (p->sentinel_due || p->finishing) {
		/* A clean sentinel whose answer was lost may be stored, with another sum than the
		 * one that is due now: a probe could not distinguish the two. */
		kbs_sync_sum(p->sync, &want);
		if (p->sent && memcmp(&want, &p->sent_sum, sizeof(want)) != 0) {
			start_dirty(p);
			return;
		}
		if (!may_mark(p))
			return;
		/* `sent` is set before the request: if its answer is lost, a clean sentinel may be
		 * stored. */
		f = request_new(p);
		f->clean = p->sent = true;
		f->sum = p->sent_sum = want;
		add_sentinel(p, &want, &m);
		p->sentinel_due = false;
		send_values(f, &m);
	} else if (!timer_is_set(&p->sentinel)) {
		timer_set(&p->sentinel, p->conf.sentinel_ms);
	}
}

/* Send what may be sent now, in an order that never opens access: no key is readable before the
 * policies and values that restrict it are stored. */
static void send_next(struct kbs_push *p)
{
	bool filled = p->state == KBS_TARGET_IN_SYNC, values, policies, first, empties,
	     must_dirty = false;

	if (!p->transport || is_bad(p->state) || !p->sync->policies.attestation || p->released)
		return;
	if (p->probe_wanted && !p->serial && !timer_is_set(&p->serial_wait))
		start_probe(p);
	if (!p->known || p->hold || change_mode(p))
		return;
	/* What is missing decides the phase; the order of the conditions below is the order of
	 * safety. */
	policies = policies_are_there(p);
	/* The shared array is left to empty, or values are left to send. */
	empties = policies && !p->shared_mode && !p->shared_emptied;
	values = empties || kbs_sync_peek(p->sync, p->t, KBS_REFVALUE);
	first = !policies && p->order == PUSH_POLICIES_FIRST;
	if (!first && revokes_first(p)) {
		if (!p->serial && !timer_is_set(&p->serial_wait))
			(void)start_repeat(p);
		return;
	}
	/* Keys follow everything that decides who may read them. */
	if (policies && (filled || (!values && !p->serial)))
		must_dirty = start_keys(p);
	must_dirty = must_dirty || (!policies && (p->clean || p->sent));
	if (p->serial || timer_is_set(&p->serial_wait))
		return;
	if (must_dirty && (first || !values))
		start_dirty(p);
	else if (first)
		start_policy(p);
	else if (values)
		start_values(p, empties);
	else if (!policies)
		start_policy(p);
	else if (!keys_are_left(p) && !start_repeat(p))
		all_sent(p);
	else if (!filled)
		set_state(p, KBS_TARGET_POPULATING);
}

/* `asked` covers this turn only: the next turn may find another process behind the same address. */
static void work(void *arg)
{
	struct kbs_push *p = arg;

	send_next(p);
	p->asked = false;
}

/* The debounce has ended: write the clean sentinel if everything is still sent. */
static void on_sentinel(void *arg)
{
	struct kbs_push *p = arg;

	p->sentinel_due = true;
	wake(p);
}

/* The last requests of an earlier leader must have arrived by now. */
static void on_repeat(void *arg)
{
	struct kbs_push *p = arg;

	repeats_move(&p->early, &p->due_again);
	wake(p);
}

/* ---- the interface */

/* Without a transport the push stays UNREACHABLE until kbs_push_set_transport(). */
struct kbs_push *kbs_push_new(struct loop *l, struct kbs_sync *sync,
	const struct kbs_push_conf *conf, struct kbs_transport *take_t)
{
	struct kbs_push *p = xcalloc(1, sizeof(*p));
	char session[UUID_TEXT_LEN + 1];

	p->loop = l;
	p->sync = sync;
	p->conf = *conf;
	/* Zero means default, so that callers and tests set only what they need. */
	p->conf.window = conf->window ? conf->window : 32;
	p->conf.max_body = conf->max_body ? conf->max_body : 512u * 1024;
	p->conf.probe_ms = conf->probe_ms ? conf->probe_ms : 15000;
	p->conf.settle_ms = conf->settle_ms ? conf->settle_ms : 500;
	p->conf.sentinel_ms = conf->sentinel_ms ? conf->sentinel_ms : 3000;
	p->conf.denied_ms = conf->denied_ms ? conf->denied_ms : 20000;
	p->conf.refused_ms = conf->refused_ms ? conf->refused_ms : 300000;
	p->target = xstrdup(conf->target);
	p->cluster_uid = xstrdup(conf->cluster_uid);
	uuid_new_v4(session);
	p->session = xstrdup(session);
	p->batch_max = SIZE_MAX;
	p->allowed = p->conf.window;
	TAILQ_INIT(&p->in_flight);
	TAILQ_INIT(&p->waiting);
	TAILQ_INIT(&p->due[0]);
	TAILQ_INIT(&p->due[1]);
	timer_init(&p->retry, l, on_retry, p);
	timer_init(&p->probe, l, on_probe_due, p);
	timer_init(&p->sentinel, l, on_sentinel, p);
	timer_init(&p->repeat_timer, l, on_repeat, p);
	timer_init(&p->check, l, check_next, p);
	timer_init(&p->serial_wait, l, wake, p);
	/* From here on kbs_sync calls work() when something changes. */
	p->t = kbs_sync_attach(sync, p->target, l, work, p);
	metric_set(&states, p->target, state_names[p->state], 1);
	if (conf->repeat_revoked_ms)
		timer_set(&p->repeat_timer, conf->repeat_revoked_ms);
	if (take_t)
		kbs_push_set_transport(p, take_t, NULL);
	return p;
}

/* The requests go first: they hold references into kbs_sync's entries. */
void kbs_push_free(struct kbs_push *p)
{
	if (!p)
		return;
	cancel_all(p);
	timer_fini(&p->retry);
	timer_fini(&p->probe);
	timer_fini(&p->sentinel);
	timer_fini(&p->repeat_timer);
	timer_fini(&p->check);
	timer_fini(&p->serial_wait);
	repeats_move(&p->early, NULL);
	repeats_move(&p->due_again, NULL);
	table_fini(&p->early.names);
	table_fini(&p->due_again.names);
	metric_drop(&states, p->target, state_names[p->state]);
	kbs_sync_detach(p->sync, p->t);
	kbs_sync_target_remove(p->sync, p->target);
	kbs_transport_free(p->transport);
	free(p->target);
	free(p->cluster_uid);
	free(p->session);
	free(p->replaces);
	free(p->text);
	free(p);
}

/* The old transport may only be freed after its requests are cancelled. */
void kbs_push_set_transport(struct kbs_push *p, struct kbs_transport *take_t, const char *why)
{
	cancel_all(p);
	kbs_transport_free(p->transport);
	p->transport = take_t;
	p->refusing_ms = p->silent_ms = 0;
	p->in_row = 0;
	p->allowed = p->conf.window;
	p->batch_max = SIZE_MAX;
	timer_cancel(&p->retry);
	free(p->text);
	p->text = take_t ? NULL : xstrdup(why);
	/* on_retry() also sets the state: PROBING is the only way out of UNREACHABLE. */
	if (take_t) {
		on_retry(p);
	} else {
		p->error[0] = '\0';
		set_state(p, KBS_TARGET_UNREACHABLE);
	}
}

/* While Trustee is away, the pending retry is brought forward instead. */
void kbs_push_probe(struct kbs_push *p)
{
	if (!p->transport)
		return;
	if (is_bad(p->state)) {
		timer_set(&p->retry, 0);
		return;
	}
	p->probe_wanted = p->hold = true;
	wake(p);
}

void kbs_push_finish(struct kbs_push *p)
{
	p->finishing = true;
	wake(p);
}

/* A Trustee that is not in sync counts as finished: shutdown must not wait for it. */
bool kbs_push_is_finished(struct kbs_push *p)
{
	return !p->transport || p->state != KBS_TARGET_IN_SYNC ||
	       (!p->serial && !keys_are_left(p) && !kbs_sync_peek(p->sync, p->t, KBS_REFVALUE) &&
		       policies_are_there(p) && sentinel_is_right(p));
}

void kbs_push_set_window(struct kbs_push *p, unsigned window)
{
	p->conf.window = window;
	p->allowed = p->allowed < window ? p->allowed : window;
}

void kbs_push_release(struct kbs_push *p)
{
	p->releasing = true;
	wake(p);
}

bool kbs_push_is_released(const struct kbs_push *p)
{
	return p->released || p->state == KBS_TARGET_CONFLICT;
}
