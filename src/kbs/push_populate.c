/* SPDX-License-Identifier: MIT */
/*
 * Populating: policies, reference values and the sentinel, one request at a time (a message
 * carries as many values as fit). A message of values starts with the dirty sentinel unless that
 * is stored: its name sorts first, so the values after it are never hidden behind a clean one.
 * Sends no key.
 */
#include "config.h"

#include "push_internal.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

#define SHARED_NAME "trusted_aks"
#define SHARED_MAX  (7u * 1024 * 1024) /* of a body; our Trustee accepts 8 MiB */

/* ---- the sentinel */

/* A clean sentinel names no session: the next process can accept it. */
void push_sentinel_json(const struct kbs_push *p, const struct kbs_sum *sum, struct strbuf *out)
{
	char hex[SHA256_HEX_LEN + 1] = "";

	if (sum)
		kbs_sum_hex(sum, hex);
	strbuf_adds(out, "{\"cluster\":");
	json_quote(out, p->cluster_uid, strlen(p->cluster_uid));
	strbuf_addf(out, ",\"session\":\"%s\",\"sum\":\"%s\"%s}", sum ? "" : p->session, hex,
		p->order == PUSH_VALUES_FIRST ? ",\"policy\":\"" PUSH_READS_LISTS "\"" : "");
}

/* Whether the stored sentinel is clean and its sum is that of what is desired now. */
bool push_sentinel_is_right(const struct kbs_push *p)
{
	struct kbs_sum want;

	kbs_sync_sum(p->sync, &want);
	return p->clean && memcmp(&want, &p->stored_sum, sizeof(want)) == 0;
}

/* sum NULL: the dirty sentinel. */
static void add_sentinel(const struct kbs_push *p, const struct kbs_sum *sum, struct kbs_values *m)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	push_sentinel_json(p, sum, &text);
	kbs_values_add(m, KBS_SENTINEL, strbuf_str(&text), text.len);
}

/* Whether the stored sentinel may be something other than our dirty one. */
static bool dirty_is_due(const struct kbs_push *p)
{
	return p->clean || p->sent || !p->marked;
}

/* Whether a sentinel may be written now; if not, request a probe. */
static bool may_mark(struct kbs_push *p)
{
	if (p->asked || !p->marked)
		return true;
	p->probe_wanted = p->hold = true;
	push_wake(p);
	return false;
}

/* ---- values */

static bool is_identity(const struct kbs_entry *e)
{
	return str_starts(e->name, KBS_IDENTITY_PREFIX);
}

/* A single failure delays the next request; several mean that Trustee is unreachable. */
void push_serial_failed(
	struct kbs_push *p, struct push_request *f, const char *what, const struct err *err)
{
	if (push_is_away(p, err, true)) {
		push_fail(p, err);
		return;
	}
	if (f)
		push_finish_unknown(f);
	timer_set(&p->serial_wait, push_delay(p, &p->serial_backoff, what, err));
}

/* 413 halves the batch instead of failing: the limit of a server or proxy is unknown in advance. */
static void on_values(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct push_request *f = arg;
	struct kbs_push *p = f->p;

	(void)answer;
	p->serial = false;
	if (err_is_set(err)) {
		if (err->http != 413 || f->n + f->n_repeats < 2) {
			push_serial_failed(p, f, "reference values", err);
			return;
		}
		/* Too many names for the server's body limit. */
		p->batch_max = (f->n + f->n_repeats) / 2;
		push_finish_unknown(f);
		push_wake(p);
		return;
	}
	if (f->n) { /* a message with the sentinel alone is not progress */
		backoff_reset(&p->backoff);
		push_succeeded(p);
	}
	backoff_reset(&p->serial_backoff);
	p->marked = true;
	p->sent = false;
	p->clean = f->clean;
	/* Only an answered message tells which sentinel is stored. */
	p->stored_sum = f->sum;
	p->shared_emptied = p->shared_emptied || f->empties_shared;
	push_finish_confirmed(f);
	push_wake(p);
}

static void send_values(struct push_request *f, const struct kbs_values *m)
{
	f->p->serial = true;
	(void)kbs_admin_put_values(f->p->transport, &f->p->ops, m, on_values, f);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A growing array for sorting. */
struct key_list {
	char **v; /* owned, base64 */
	size_t n, cap;
};

/* Append the base64 key of one identity. */
static void add_key(
	struct key_list *keys, const struct kbs_entry *e, const struct kbs_object *object)
{
	cleanup_secret struct secret *value = kbs_object_render(e, object);
	cleanup_json struct json_object *o = NULL;
	struct err err = ERR_INIT;

	o = json_parse(
		(const char *)secret_peek(value), secret_len(value), &json_limits_object, &err);
	if (!o || !json_get_str(o, "ak"))
		DIE("kbs push: the identity %s has no key", e->name);
	if (keys->n == keys->cap) {
		keys->cap = keys->cap ? keys->cap * 2 : 64;
		keys->v = xreallocarray(keys->v, keys->cap, sizeof(*keys->v));
	}
	keys->v[keys->n++] = xstrdup(json_get_str(o, "ak"));
}

/* The array of all identities' base64 keys for the Rust operator's policy. Sorted, so that equal
 * sets give equal text. */
static void shared_json(const struct kbs_push *p, struct strbuf *out)
{
	struct key_list keys = {0};
	const struct kbs_object *o;
	struct kbs_entry *e;

	EACH_ENTRY (p->sync, e) {
		if (e->kind != KBS_REFVALUE || !is_identity(e))
			continue;
		EACH_OBJECT (e, o)
			add_key(&keys, e, o);
	}
	if (keys.n)
		qsort(keys.v, keys.n, sizeof(*keys.v), by_text);
	strbuf_addc(out, '[');
	for (size_t i = 0; i < keys.n; i++) {
		if (i)
			strbuf_addc(out, ',');
		json_quote(out, keys.v[i], strlen(keys.v[i]));
		free(keys.v[i]);
	}
	strbuf_addc(out, ']');
	free(keys.v);
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
	push_request_add(f, e);
	return true;
}

bool push_values_are_left(struct kbs_push *p, bool *empties_shared)
{
	*empties_shared = !p->shared_mode && !p->shared_emptied && push_policies_are_there(p);
	return *empties_shared || kbs_sync_peek(p->sync, p->t, KBS_REFVALUE);
}

/* Add the array of all identities; false: it is too large and the push has failed. */
static bool add_shared(struct kbs_push *p, struct kbs_values *m)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;

	shared_json(p, &text);
	if (kbs_values_body_len(m, strlen(SHARED_NAME), text.len) <= SHARED_MAX) {
		kbs_values_add(m, SHARED_NAME, strbuf_str(&text), text.len);
		return true;
	}
	err_set(&err, ERR_INVALID,
		"the list of all identities exceeds what Trustee accepts in one message; "
		"spec.trustee.keyIsolation PerMachine has no such limit");
	push_fail(p, &err);
	return false;
}

/* In shared mode identities are taken one by one for their confirmation, but sent as one array. */
void push_start_values(struct kbs_push *p, bool empties_shared)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	struct push_request *f;
	bool identities = false;
	struct kbs_entry *e;

	if (dirty_is_due(p) && !may_mark(p))
		return;
	f = push_request_new(p);
	if (dirty_is_due(p))
		add_sentinel(p, NULL, &m);
	while (f->n < p->batch_max && (e = kbs_sync_peek(p->sync, p->t, KBS_REFVALUE)) != NULL) {
		identities = identities || is_identity(e);
		if (!add_value(f, &m, e))
			break;
	}
	f->empties_shared = empties_shared && !p->shared_mode;
	if (f->empties_shared)
		kbs_values_add(&m, SHARED_NAME, "[]", 2);
	if (identities && p->shared_mode && !add_shared(p, &m))
		return;
	send_values(f, &m);
}

/* Mark the store as incomplete before something is changed or removed. */
void push_start_dirty(struct kbs_push *p)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;

	if (!may_mark(p))
		return;
	add_sentinel(p, NULL, &m);
	send_values(push_request_new(p), &m);
}

/* `sent` is set before the request: if its answer is lost, a clean sentinel may be stored. */
void push_start_clean(struct kbs_push *p)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	struct push_request *f;

	if (!may_mark(p))
		return;
	f = push_request_new(p);
	f->clean = p->sent = true;
	kbs_sync_sum(p->sync, &f->sum);
	p->sent_sum = f->sum;
	add_sentinel(p, &f->sum, &m);
	p->sentinel_due = false;
	send_values(f, &m);
}

/* Send null for each revoked name again, or the current list if the name has other objects. */
void push_repeat_values(struct kbs_push *p)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	struct push_request *f;
	bool identities = false;
	const char *name;

	if (dirty_is_due(p) && !may_mark(p))
		return;
	f = push_request_new(p);
	if (dirty_is_due(p))
		add_sentinel(p, NULL, &m);
	while (f->n_repeats < p->batch_max && (name = push_repeat_next(p, KBS_REFVALUE)) != NULL) {
		const struct kbs_entry *e = kbs_entry_find(p->sync, KBS_REFVALUE, name);
		bool is_list = e && e->objects && !p->shared_mode; /* else in the shared array */
		cleanup_secret struct secret *value = is_list ? kbs_entry_render(e) : NULL;
		size_t len = value ? secret_len(value) : 4;

		if (f->n_repeats && kbs_values_body_len(&m, strlen(name), len) > p->conf.max_body)
			break;
		identities = identities || str_starts(name, KBS_IDENTITY_PREFIX);
		kbs_values_add(
			&m, name, value ? (const char *)secret_peek(value) : NULL, value ? len : 0);
		push_repeat_take(f, KBS_REFVALUE);
	}
	if (identities && p->shared_mode && !add_shared(p, &m))
		return;
	send_values(f, &m);
}

/* ---- policies */

/* Policies are static texts, so pointers are compared. */
bool push_policies_are_there(const struct kbs_push *p)
{
	const struct kbs_policies *want = &p->sync->policies;

	return p->policy_attestation == want->attestation && p->policy_resource == want->resource;
}

/* Record the confirmed policy. Once both are stored, values may precede policies. */
static void on_policy(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct kbs_push *p = arg;

	(void)answer;
	p->serial = false;
	if (err_is_set(err)) {
		push_serial_failed(p, NULL,
			p->sends_resource_policy ? "resource policy" : "attestation policy", err);
		return;
	}
	backoff_reset(&p->serial_backoff);
	push_succeeded(p);
	*(p->sends_resource_policy ? &p->policy_resource : &p->policy_attestation) = p->policy_sent;
	if (push_policies_are_there(p) && p->order != PUSH_VALUES_FIRST) {
		p->order = PUSH_VALUES_FIRST;
		p->marked = false; /* rewrite the sentinel, which records this */
	}
	push_wake(p);
}

/* The resource policy is sent first: it decides who may read keys. */
void push_start_policy(struct kbs_push *p)
{
	const struct kbs_policies *want = &p->sync->policies;
	bool resource = p->policy_resource != want->resource;

	p->serial = true;
	p->sends_resource_policy = resource;
	/* Unknown until answered: the desired one may change meanwhile, or change back. */
	*(resource ? &p->policy_resource : &p->policy_attestation) = NULL;
	p->policy_sent = resource ? want->resource : want->attestation;
	(void)kbs_admin_put_policy(p->transport, &p->ops, resource, p->policy_sent, on_policy, p);
}
