/* SPDX-License-Identifier: MIT */
/*
 * What is sent, in which order. One request at a time about policies and values (a message carries
 * as many values as fit), a window of requests about resources. A message of values always carries
 * the dirty sentinel, whose name sorts first, so that what follows it is never hidden behind a
 * clean one; what takes something away and cannot carry it waits for a message that did.
 */
#include "config.h"

#include "push_internal.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

#define SHARED_NAME "trusted_aks"
#define SHARED_MAX  (7u * 1024 * 1024) /* of a body; our Trustee takes 8 MiB */

void push_sentinel_json(const struct kbs_push *p, const struct kbs_sum *sum, struct strbuf *out)
{
	char hex[SHA256_HEX_LEN + 1] = "";

	if (sum)
		kbs_sum_hex(sum, hex);
	strbuf_adds(out, "{\"cluster\":");
	json_quote(out, p->cluster_uid, strlen(p->cluster_uid));
	strbuf_addf(out, ",\"session\":\"%s\",\"sum\":\"%s\"}", sum ? "" : p->session, hex);
}

/* ---- flights */

static struct push_flight *flight_new(struct kbs_push *p)
{
	struct push_flight *f = xcalloc(1, sizeof(*f));

	f->p = p;
	f->next = p->flights;
	f->prevp = &p->flights;
	if (f->next)
		f->next->prevp = &f->next;
	p->flights = f;
	return f;
}

static void flight_add(struct push_flight *f, struct kbs_entry *e)
{
	struct push_item *i;

	if (f->n == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 1;
		f->item = xreallocarray(f->item, f->cap, sizeof(*f->item));
	}
	i = &f->item[f->n++];
	*i = (struct push_item){.e = e, .revoke = !e->holder};
	memcpy(i->sha256, e->sha256, SHA256_LEN);
}

/* Nobody knows whether what it carried is there: it is pending again. */
static void land_unknown(struct push_flight *f)
{
	for (size_t i = 0; i < f->n; i++)
		kbs_sync_landed(f->p->sync, f->p->t, f->item[i].e, false, NULL);
	push_flight_free(f);
}

/* All it carried is there. */
static void land(struct push_flight *f)
{
	struct kbs_push *p = f->p;

	if (f->stale) {
		land_unknown(f);
		return;
	}

	for (size_t i = 0; i < f->n; i++) {
		struct push_item *x = &f->item[i];

		if (x->revoke)
			push_note_revoked(p, x->e->sort, x->e->name);
		kbs_sync_landed(p->sync, p->t, x->e, true, x->revoke ? NULL : x->sha256);
	}
	push_flight_free(f);
}

/* ---- values */

static bool is_identity(const struct kbs_entry *e)
{
	return strncmp(e->name, KBS_IDENTITY_PREFIX, strlen(KBS_IDENTITY_PREFIX)) == 0;
}

/* The far side did not take so much at once. */
static bool shrink(struct push_flight *f, const struct err *err)
{
	struct kbs_push *p = f->p;

	if (err->http != 413 || f->n + f->again < 2)
		return false;
	p->batch_max = (f->n + f->again) / 2;
	land_unknown(f);
	return true;
}

static void serial_went_well(struct kbs_push *p)
{
	p->serial_tries = 0;
	push_went_well(p);
}

/* Of what is sent one at a time. */
static void serial_failed(
	struct kbs_push *p, struct push_flight *f, const char *what, const struct err *err)
{
	if (push_is_away(p, err, 0)) {
		push_fail(p, err);
		return;
	}
	if (f)
		land_unknown(f);
	push_retry_serial(p, what, err);
}

static void on_values(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct push_flight *f = arg;
	struct kbs_push *p = f->p;

	p->serial = false;
	if (err_is_set(err) && !shrink(f, err)) {
		serial_failed(p, f, "reference values", err);
		return;
	}
	if (!err_is_set(err)) {
		if (f->n) { /* a message with the sentinel alone brings nothing forward */
			p->backoff_ms = 0;
			push_went_well(p);
		}
		p->serial_tries = 0;
		p->marked = true;
		p->sent = false;
		p->clean = f->clean;
		p->far_sum = f->sum;
		p->shared_emptied = p->shared_emptied || f->empties_shared;
		push_drop_again(p, KBS_REFVALUE, f->again);
		land(f);
	}
	push_ask(p);
}

static void send_values(struct push_flight *f, const struct kbs_values *m)
{
	f->p->serial = true;
	(void)kbs_admin_put_values(f->p->transport, &f->p->ops, m, on_values, f);
}

/* The base64 keys of all identities, for the Rust operator's policy. */
struct keys {
	const char **v;
	struct json_object **o; /* they are in here */
	size_t n, cap;
};

static void add_key(void *arg, const struct kbs_entry *e)
{
	struct keys *k = arg;
	cleanup_secret struct secret *value = NULL;
	struct err ignored = ERR_INIT;

	if (!is_identity(e))
		return;
	if (k->n == k->cap) {
		k->cap = k->cap ? k->cap * 2 : 64;
		k->v = xreallocarray(k->v, k->cap, sizeof(*k->v));
		k->o = xreallocarray(k->o, k->cap, sizeof(*k->o));
	}
	value = e->render(e->holder);
	k->o[k->n] = json_parse(
		(const char *)secret_peek(value), secret_len(value), &json_limits_object, &ignored);
	k->v[k->n] = k->o[k->n] ? json_get_str(k->o[k->n], "ak") : NULL;
	if (!k->v[k->n])
		DIE("kbs push: the identity %s has no key", e->name);
	k->n++;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void shared_json(const struct kbs_push *p, struct strbuf *out)
{
	struct keys k = {0};

	kbs_sync_each(p->sync, KBS_REFVALUE, add_key, &k);
	if (k.n)
		qsort(k.v, k.n, sizeof(*k.v), by_text);
	strbuf_addc(out, '[');
	for (size_t i = 0; i < k.n; i++) {
		if (i)
			strbuf_addc(out, ',');
		json_quote(out, k.v[i], strlen(k.v[i]));
	}
	strbuf_addc(out, ']');
	for (size_t i = 0; i < k.n; i++)
		json_object_put(k.o[i]);
	free(k.o);
	free(k.v);
}

/* One entry into the message; false: it does not fit any more. */
static bool add_value(struct push_flight *f, struct kbs_values *m, struct kbs_entry *e)
{
	struct kbs_push *p = f->p;
	bool in_array = p->shared_mode && is_identity(e) && e->holder;
	cleanup_secret struct secret *value = NULL;
	size_t len;

	if (e->holder && !in_array)
		value = e->render(e->holder);
	len = value ? secret_len(value) : 4;
	if (f->n && kbs_values_body_len(m, strlen(e->name), len) > p->conf.max_body)
		return false;
	if (!in_array)
		kbs_values_add(m, e->name, value ? (const char *)secret_peek(value) : NULL, len);
	flight_add(f, kbs_sync_take(p->sync, p->t, KBS_REFVALUE));
	return true;
}

static void add_dirty(const struct kbs_push *p, struct kbs_values *m)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	push_sentinel_json(p, NULL, &text);
	kbs_values_add(m, KBS_SENTINEL, strbuf_str(&text), text.len);
}

static void start_values(struct kbs_push *p, bool empties_shared)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct push_flight *f = flight_new(p);
	bool identities = false;
	struct kbs_entry *e;

	add_dirty(p, &m);
	while (f->n < p->batch_max && (e = kbs_sync_peek(p->sync, p->t, KBS_REFVALUE)) != NULL) {
		identities = identities || is_identity(e);
		if (!add_value(f, &m, e))
			break;
	}
	f->empties_shared = empties_shared && !p->shared_mode;
	if (f->empties_shared)
		kbs_values_add(&m, SHARED_NAME, "[]", 2);
	if (identities && p->shared_mode) {
		struct err err = ERR_INIT;

		strbuf_reset(&text);
		shared_json(p, &text);
		if (kbs_values_body_len(&m, strlen(SHARED_NAME), text.len) > SHARED_MAX) {
			err_set(&err, ERR_INVALID,
				"all identities in one value are more than it takes at once; "
				"keyIsolation PerMachine has no such limit");
			push_fail(p, &err);
			return;
		}
		kbs_values_add(&m, SHARED_NAME, strbuf_str(&text), text.len);
	}
	send_values(f, &m);
}

static void start_clean(struct kbs_push *p)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct push_flight *f = flight_new(p);

	f->clean = p->sent = true;
	kbs_sync_sum(p->sync, &f->sum);
	p->sent_sum = f->sum;
	push_sentinel_json(p, &f->sum, &text);
	kbs_values_add(&m, KBS_SENTINEL, strbuf_str(&text), text.len);
	p->sentinel_due = false;
	send_values(f, &m);
}

/* ---- policies */

static void on_resource_policy(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct kbs_push *p = arg;

	p->serial = false;
	if (err_is_set(err)) {
		serial_failed(p, NULL, "resource policy", err);
		return;
	}
	serial_went_well(p);
	p->policy_resource = p->policy_sent;
	push_ask(p);
}

static void on_attestation_policy(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct kbs_push *p = arg;

	p->serial = false;
	if (err_is_set(err)) {
		serial_failed(p, NULL, "attestation policy", err);
		return;
	}
	serial_went_well(p);
	p->policy_attestation = p->policy_sent;
	push_ask(p);
}

static bool policies_are_there(const struct kbs_push *p)
{
	const struct kbs_policies *want = kbs_sync_wanted_policies(p->sync);

	return p->policy_attestation == want->attestation && p->policy_resource == want->resource;
}

static void start_policy(struct kbs_push *p)
{
	const struct kbs_policies *want = kbs_sync_wanted_policies(p->sync);

	p->serial = true;
	/* Unknown until answered: the wanted one may change meanwhile, or change back. */
	if (p->policy_resource != want->resource) {
		p->policy_resource = NULL;
		p->policy_sent = want->resource;
		(void)kbs_admin_put_policy(
			p->transport, &p->ops, true, want->resource, on_resource_policy, p);
	} else {
		p->policy_attestation = NULL;
		p->policy_sent = want->attestation;
		(void)kbs_admin_put_policy(
			p->transport, &p->ops, false, want->attestation, on_attestation_policy, p);
	}
}

/* ---- resources */

static void resource_failed(struct push_flight *f, const struct err *err)
{
	struct kbs_push *p = f->p;

	if (f->again) {
		serial_failed(p, f, "repeated revocation", err);
		return;
	}
	if (push_is_away(p, err, f->tries)) {
		push_fail(p, err);
		return;
	}
	for (size_t i = 0; i < f->n; i++)
		push_retry_key(p, f->item[i].e, f->tries, err);
	push_flight_free(f);
	push_ask(p);
}

static void on_resource(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct push_flight *f = arg;
	struct kbs_push *p = f->p;

	p->n_resources--;
	p->again_flying = false;
	if (err_is_set(err)) {
		resource_failed(f, err);
		return;
	}
	p->backoff_ms = 0;
	push_went_well(p);
	push_drop_again(p, KBS_RESOURCE, f->again);
	land(f);
	push_ask(p);
}

static void start_resource(struct kbs_push *p, struct kbs_entry *e, unsigned tries)
{
	struct push_flight *f = flight_new(p);
	cleanup_secret struct secret *value = NULL;

	f->tries = tries;
	flight_add(f, e);
	p->n_resources++;
	if (!e->holder) {
		(void)kbs_admin_delete_resource(p->transport, &p->ops, e->name, on_resource, f);
		return;
	}
	value = e->render(e->holder);
	(void)kbs_admin_put_resource(p->transport, &p->ops, e->name, value, on_resource, f);
}

/* What replaces or removes must not happen behind a clean sentinel. */
static bool takes_away(const struct kbs_push *p, const struct kbs_entry *e)
{
	return !e->holder || e->seen[p->t] == KBS_SEEN_OTHER;
}

/* What waited and is due goes before what is new, and what is revoked before what is delivered. */
enum from { FROM_REVOKED, FROM_DELIVERED, FROM_NEW };
static struct kbs_entry *next_key(struct kbs_push *p, enum from *from)
{
	struct kbs_entry *waited = push_wait_due(p, false), *fresh;

	*from = FROM_REVOKED;
	if (waited)
		return waited;
	fresh = kbs_sync_peek(p->sync, p->t, KBS_RESOURCE);
	waited = fresh && !fresh->holder ? NULL : push_wait_due(p, true);
	*from = waited ? FROM_DELIVERED : FROM_NEW;
	return waited ? waited : fresh;
}

/* True: it waits for the sentinel to be dirty. */
static bool start_resources(struct kbs_push *p)
{
	struct kbs_entry *e;
	enum from from;

	while (p->n_resources < p->room && !p->again_flying && (e = next_key(p, &from)) != NULL) {
		if (takes_away(p, e) && (p->clean || p->sent))
			return true;
		if (from == FROM_NEW)
			start_resource(p, kbs_sync_take(p->sync, p->t, KBS_RESOURCE), 0);
		else
			start_resource(p, e, push_wait_take(p, from == FROM_DELIVERED));
	}
	return false;
}

/* ---- once more */

/* The first of the list that nobody declared again since. */
static const struct push_again *next_again(struct kbs_push *p, enum kbs_sort sort)
{
	while (p->again[sort] && kbs_sync_holder(p->sync, sort, p->again[sort]->name))
		push_drop_again(p, sort, 1);
	return p->again[sort];
}

static void again_values(struct kbs_push *p)
{
	cleanup_values struct kbs_values m = KBS_VALUES_INIT;
	struct push_flight *f = flight_new(p);

	add_dirty(p, &m);
	for (const struct push_again *a = p->again[KBS_REFVALUE]; a && f->again < p->batch_max;
		a = a->next, f->again++) {
		if (kbs_sync_holder(p->sync, KBS_REFVALUE, a->name))
			continue;
		if (f->again && kbs_values_body_len(&m, strlen(a->name), 4) > p->conf.max_body)
			break;
		kbs_values_add(&m, a->name, NULL, 0);
	}
	send_values(f, &m);
}

/* When nothing else is left, so that every tombstone is confirmed; keys one at a time: they are
 * few. */
static bool start_again(struct kbs_push *p)
{
	const struct push_again *a;
	struct push_flight *f;

	if (!p->again_due)
		return false;
	if (next_again(p, KBS_REFVALUE)) {
		again_values(p);
		return true;
	}
	a = next_again(p, KBS_RESOURCE);
	if (!a) {
		p->again_due = false;
		return false;
	}
	if (p->clean || p->sent) {
		start_values(p, false);
		return true;
	}
	f = flight_new(p);
	f->again = 1;
	p->n_resources++;
	p->again_flying = true;
	(void)kbs_admin_delete_resource(p->transport, &p->ops, a->name, on_resource, f);
	return true;
}

/* ---- all of it */

static bool values_are_left(struct kbs_push *p, bool *empties_shared)
{
	*empties_shared = !p->shared_mode && !p->shared_emptied && policies_are_there(p);
	return *empties_shared || kbs_sync_peek(p->sync, p->t, KBS_REFVALUE);
}

static bool sentinel_is_right(const struct kbs_push *p)
{
	struct kbs_sum want;

	kbs_sync_sum(p->sync, &want);
	return p->clean && memcmp(&want, &p->far_sum, sizeof(want)) == 0;
}

bool push_is_done(struct kbs_push *p)
{
	return !p->serial && !p->flights && !push_is_waiting(p) &&
	       !kbs_sync_peek(p->sync, p->t, KBS_RESOURCE) &&
	       !kbs_sync_peek(p->sync, p->t, KBS_REFVALUE) && policies_are_there(p) &&
	       sentinel_is_right(p);
}

/* A clean sentinel whose answer was lost may say another sum than the one that is due now: a probe
 * could not tell whose it is. */
static bool two_may_stand(const struct kbs_push *p)
{
	struct kbs_sum want;

	kbs_sync_sum(p->sync, &want);
	return p->sent && memcmp(&want, &p->sent_sum, sizeof(want)) != 0;
}

static void at_rest(struct kbs_push *p)
{
	p->backoff_ms = 0;
	push_set_state(p, KBS_PUSH_IN_SYNC, "in step.");
	if (p->check_due && !p->checking)
		push_check_start(p);
	if (!timer_is_set(&p->probe))
		timer_set(&p->probe, p->conf.probe_ms);
	if (sentinel_is_right(p)) {
		timer_cancel(&p->sentinel);
		p->sentinel_due = false;
	} else if (p->sentinel_due || p->finishing) {
		if (two_may_stand(p))
			start_values(p, false);
		else
			start_clean(p);
	} else if (!timer_is_set(&p->sentinel)) {
		timer_set(&p->sentinel, p->conf.sentinel_ms);
	}
}

/* Identities are sent in another form from here on: all of them anew, then the policies. */
static bool change_mode(struct kbs_push *p)
{
	if (p->shared_mode == kbs_sync_wanted_policies(p->sync)->shared)
		return false;
	if (p->flights || p->serial)
		return true;
	p->shared_mode = !p->shared_mode;
	p->shared_emptied = false;
	p->order = PUSH_VALUES_FIRST;
	kbs_sync_unknown(p->sync, p->t);
	return false;
}

void push_work(struct kbs_push *p)
{
	bool filled = p->state == KBS_PUSH_IN_SYNC, values, policies, empties = false,
	     must_dirty = false;

	if (change_mode(p))
		return;
	policies = policies_are_there(p);
	values = values_are_left(p, &empties);
	/* Keys come after everything that says who may read them. */
	if (policies && (filled || (!values && !p->serial)))
		must_dirty = start_resources(p);
	must_dirty = must_dirty || (!policies && (p->clean || p->sent));
	if (p->serial || timer_is_set(&p->serial_wait))
		return;
	if (must_dirty && !values)
		start_values(p, false);
	else if (!policies && p->order == PUSH_POLICIES_FIRST && !must_dirty)
		start_policy(p);
	else if (values)
		start_values(p, empties);
	else if (!policies)
		start_policy(p);
	else if (!p->flights && !push_is_waiting(p) &&
		 !kbs_sync_peek(p->sync, p->t, KBS_RESOURCE) && !start_again(p))
		at_rest(p);
	else if (!filled)
		push_set_state(p, KBS_PUSH_POPULATING, "it is being filled.");
}
