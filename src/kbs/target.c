/* SPDX-License-Identifier: MIT */
/*
 * Targets: their words for people, and their work. An entry stands at most once in each of a
 * target's queues; it is put there when it begins to differ and looked at again when it is taken
 * out, so a change costs the number of targets and never a scan. What is revoked after it was
 * queued is in both, and found in the urgent one first. A target's slot stays its own until it is
 * removed.
 */
#include "config.h"

#include "sync_internal.h"

#include "tec/base/clock.h"

enum kbs_far kbs_entry_far(const struct kbs_sync *s, const struct kbs_entry *e)
{
	enum kbs_seen want = e->holder ? KBS_SEEN_WANTED : KBS_SEEN_ABSENT;
	enum kbs_far far = e->holder ? KBS_FAR_PRESENT : KBS_FAR_ABSENT;

	EACH_TARGET(s, i)
	{
		if (e->seen[i] == KBS_SEEN_UNKNOWN)
			return KBS_FAR_UNKNOWN;
		if (e->seen[i] != want)
			far = KBS_FAR_PENDING;
	}
	return far;
}

static bool differs(const struct kbs_entry *e, unsigned t)
{
	return e->seen[t] != (e->holder ? KBS_SEEN_WANTED : KBS_SEEN_ABSENT);
}

/* ---- the sum */

/* SHA-256(name, one zero byte, SHA-256(value)). */
static void contribution(const char *name, const uint8_t sha256[SHA256_LEN], struct kbs_sum *out)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];

	strbuf_add(&text, name, strlen(name) + 1);
	strbuf_add(&text, sha256, SHA256_LEN);
	bytes_sha256(strbuf_str(&text), text.len, digest);
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < SHA256_LEN; i++)
		out->w[i / 8] |= (uint64_t)digest[i] << (i % 8 * 8);
}

static void add(struct kbs_sum *sum, const struct kbs_sum *x)
{
	unsigned __int128 carry = 0;

	for (int i = 0; i < 4; i++) {
		carry += (unsigned __int128)sum->w[i] + x->w[i];
		sum->w[i] = (uint64_t)carry;
		carry >>= 64;
	}
}

void kbs_sum_add(struct kbs_sum *sum, const struct kbs_entry *e)
{
	struct kbs_sum x;

	contribution(e->name, e->sha256, &x);
	add(sum, &x);
}

void kbs_sum_sub(struct kbs_sum *sum, const struct kbs_entry *e)
{
	struct kbs_sum x, one = {{1, 0, 0, 0}};

	contribution(e->name, e->sha256, &x);
	for (int i = 0; i < 4; i++)
		x.w[i] = ~x.w[i];
	add(sum, &x);
	add(sum, &one);
}

static void add_text(struct kbs_sum *sum, const char *name, const char *text)
{
	uint8_t digest[SHA256_LEN];
	struct kbs_sum x;

	bytes_sha256(text, strlen(text), digest);
	contribution(name, digest, &x);
	add(sum, &x);
}

void kbs_sync_sum(const struct kbs_sync *s, struct kbs_sum *out)
{
	*out = s->sum;
	if (!s->policies.attestation)
		return;
	add_text(out, s->policies.shared ? "policy/shared" : "policy/attestation",
		s->policies.attestation);
	add_text(out, "policy/resource", s->policies.resource);
}

void kbs_sum_hex(const struct kbs_sum *sum, char out[SHA256_HEX_LEN + 1])
{
	uint8_t bytes[SHA256_LEN];

	for (unsigned i = 0; i < SHA256_LEN; i++)
		bytes[i] = (uint8_t)(sum->w[3 - i / 8] >> (56 - i % 8 * 8));
	bytes_to_hex(bytes, SHA256_LEN, out);
}

/* ---- queues */

static void todo_push(struct kbs_todo *q, struct kbs_entry *e)
{
	if (q->n == q->cap) {
		size_t cap = q->cap ? q->cap * 2 : 64;
		struct kbs_entry **v = xcalloc(cap, sizeof(*v));

		for (size_t i = 0; i < q->n; i++)
			v[i] = q->v[(q->head + i) & (q->cap - 1)];
		free(q->v);
		q->v = v;
		q->cap = cap;
		q->head = 0;
	}
	q->v[(q->head + q->n++) & (q->cap - 1)] = e;
}

static struct kbs_entry *todo_pop(struct kbs_todo *q)
{
	struct kbs_entry *e;

	if (!q->n)
		return NULL;
	e = q->v[q->head];
	q->head = (q->head + 1) & (q->cap - 1);
	if (--q->n == 0) { /* as large as the last populating: given back */
		free(q->v);
		memset(q, 0, sizeof(*q));
	}
	return e;
}

static void todo_add(struct kbs_sync *s, unsigned t, struct kbs_entry *e)
{
	uint32_t bit = 1u << t;
	uint32_t *queued = e->holder ? &e->queued : &e->urgent;

	/* In flight: landing looks at it. */
	if (*queued & bit || e->flying & bit || !s->target[t].wake || !differs(e, t))
		return;
	*queued |= bit;
	todo_push(e->holder ? &s->target[t].todo[e->sort] : &s->target[t].urgent[e->sort], e);
}

static void wake(struct kbs_sync *s, unsigned t)
{
	if (s->target[t].wake)
		s->target[t].wake(s->target[t].arg);
}

void kbs_todo_spread(struct kbs_sync *s, struct kbs_entry *e)
{
	EACH_TARGET(s, t)
	{
		todo_add(s, t, e);
		wake(s, t);
	}
}

static void todo_clear(struct kbs_sync *s, unsigned t)
{
	for (int sort = 0; sort < 2; sort++) {
		struct kbs_entry *e;

		while ((e = todo_pop(&s->target[t].todo[sort])) != NULL) {
			e->queued &= ~(1u << t);
			kbs_entry_unpin(e);
		}
		while ((e = todo_pop(&s->target[t].urgent[sort])) != NULL) {
			e->urgent &= ~(1u << t);
			kbs_entry_unpin(e);
		}
	}
}

/* ---- targets */

static int find(const struct kbs_sync *s, const char *name)
{
	EACH_TARGET(s, i)
	if (strcmp(s->target[i].name, name) == 0)
		return (int)i;
	return -1;
}

static void tell_all(struct kbs_sync *s)
{
	kbs_tell(s, KBS_RESOURCE, NULL);
	kbs_tell(s, KBS_REFVALUE, NULL);
}

static void all_seen(struct kbs_sync *s, unsigned t, bool confirmed)
{
	for (size_t b = 0; b < s->n_buckets; b++)
		for (struct kbs_entry *e = s->buckets[b]; e; e = e->next)
			e->seen[t] = confirmed && e->holder ? KBS_SEEN_WANTED : KBS_SEEN_UNKNOWN;
	kbs_tally_all(s);
}

void kbs_sync_target_add(struct kbs_sync *s, const char *name)
{
	unsigned t = 0;

	if (find(s, name) >= 0)
		return;
	while (t < KBS_TARGETS_MAX && s->targets & 1u << t)
		t++;
	if (t == KBS_TARGETS_MAX)
		DIE("kbs sync: more than %d targets", KBS_TARGETS_MAX);
	s->targets |= 1u << t;
	s->target[t] = (struct kbs_target){.name = xstrdup(name)};
	all_seen(s, t, false);
	tell_all(s);
}

static void target_clear(struct kbs_sync *s, unsigned t)
{
	todo_clear(s, t);
	s->targets &= ~(1u << t);
	free(s->target[t].name);
	free(s->target[t].why);
	memset(&s->target[t], 0, sizeof(s->target[t]));
}

void kbs_sync_target_remove(struct kbs_sync *s, const char *name)
{
	int t = find(s, name);

	if (t < 0)
		return;
	target_clear(s, (unsigned)t);
	if (!s->targets)
		kbs_drop_entries(s, true);
	kbs_tally_all(s);
	tell_all(s);
}

size_t kbs_sync_targets(const struct kbs_sync *s)
{
	return (size_t)__builtin_popcount(s->targets);
}

void kbs_sync_reset(struct kbs_sync *s)
{
	EACH_TARGET(s, t)
	target_clear(s, t);
	kbs_drop_entries(s, false);
}

void kbs_sync_confirm(struct kbs_sync *s, const char *target, enum kbs_sort sort, const char *name,
	const uint8_t sha256[SHA256_LEN])
{
	struct kbs_entry *e = kbs_entry_find(s, sort, name);
	int t = find(s, target);

	if (!e || t < 0)
		return;
	kbs_set_seen(s, e, (unsigned)t,
		!sha256                                                   ? KBS_SEEN_ABSENT
		: e->holder && memcmp(e->sha256, sha256, SHA256_LEN) == 0 ? KBS_SEEN_WANTED
									  : KBS_SEEN_OTHER);
}

void kbs_sync_doubt(struct kbs_sync *s, const char *target, enum kbs_sort sort, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, sort, name);
	int t = find(s, target);

	if (e && t >= 0)
		kbs_set_seen(s, e, (unsigned)t, KBS_SEEN_UNKNOWN);
}

void kbs_sync_target_says(
	struct kbs_sync *s, const char *name, enum kbs_target_state state, const char *why)
{
	int t = find(s, name);

	if (t < 0 || (s->target[t].state == state && str_eq(s->target[t].why, why)))
		return;
	s->target[t].state = state;
	free(s->target[t].why);
	s->target[t].why = xstrdup(why);
	tell_all(s);
}

/* Worst first. */
enum kbs_target_state kbs_sync_state(const struct kbs_sync *s)
{
	static const int badness[] = {[KBS_TARGET_REFUSED] = 4,
		[KBS_TARGET_WAITING] = 3,
		[KBS_TARGET_POPULATING] = 2,
		[KBS_TARGET_ASKING] = 1,
		[KBS_TARGET_IN_SYNC] = 0};
	enum kbs_target_state worst = s->targets ? KBS_TARGET_IN_SYNC : KBS_TARGET_WAITING;

	EACH_TARGET(s, t)
	if (badness[s->target[t].state] > badness[worst])
		worst = s->target[t].state;
	return worst;
}

const char *kbs_sync_why(const struct kbs_sync *s)
{
	struct strbuf *why = (struct strbuf *)(uintptr_t)&s->why;
	unsigned n = 0;

	strbuf_reset(why);
	EACH_TARGET(s, t)
	{
		const struct kbs_target *x = &s->target[t];

		if (x->state == KBS_TARGET_IN_SYNC)
			continue;
		strbuf_addf(why, "%sTrustee at %s: %s", n++ ? " " : "", x->name,
			x->why ? x->why : "no answer has come yet.");
	}
	if (!s->targets)
		strbuf_adds(why, "No Trustee is administered.");
	else if (!n)
		strbuf_adds(why, "Changes are on their way to Trustee.");
	return strbuf_str(why);
}

const char *kbs_sync_lacking(const struct kbs_sync *s, enum kbs_sort sort, const char *name)
{
	struct strbuf *text = (struct strbuf *)(uintptr_t)&s->lacking;
	const struct kbs_entry *e = kbs_entry_find(s, sort, name);
	unsigned n = 0;

	strbuf_reset(text);
	EACH_TARGET(s, t)
	if (!e || differs(e, t))
		strbuf_addf(text, n++ ? ", %s" : "Trustee at %s", s->target[t].name);
	if (n)
		strbuf_adds(text, " has not confirmed it yet.");
	else
		strbuf_adds(text, "Trustee has not confirmed all of it yet.");
	return strbuf_str(text);
}

void kbs_sync_policies(
	struct kbs_sync *s, const char *attestation, const char *resource, bool shared)
{
	if (s->policies.attestation == attestation && s->policies.resource == resource &&
		s->policies.shared == shared)
		return;
	s->policies = (struct kbs_policies){attestation, resource, shared};
	s->changed_ms = clock_boot_ms();
	EACH_TARGET(s, t)
	wake(s, t);
}

/* ---- for a push */

unsigned kbs_sync_attach(struct kbs_sync *s, const char *name, void (*fn)(void *arg), void *arg)
{
	unsigned t;

	kbs_sync_target_add(s, name);
	t = (unsigned)find(s, name);
	s->target[t].wake = fn;
	s->target[t].arg = arg;
	return t;
}

void kbs_sync_detach(struct kbs_sync *s, unsigned t)
{
	todo_clear(s, t);
	s->target[t].wake = NULL;
}

const struct kbs_policies *kbs_sync_wanted_policies(const struct kbs_sync *s)
{
	return &s->policies;
}

uint64_t kbs_sync_changed_ms(const struct kbs_sync *s)
{
	return s->changed_ms;
}

static void todo_add_all(struct kbs_sync *s, unsigned t)
{
	for (size_t b = 0; b < s->n_buckets; b++)
		for (struct kbs_entry *e = s->buckets[b]; e; e = e->next)
			todo_add(s, t, e);
}

void kbs_sync_unknown(struct kbs_sync *s, unsigned t)
{
	all_seen(s, t, false);
	todo_add_all(s, t);
}

void kbs_sync_all_confirmed(struct kbs_sync *s, unsigned t)
{
	todo_clear(s, t);
	all_seen(s, t, true);
	todo_add_all(s, t);
	tell_all(s);
}

size_t kbs_sync_waiting(const struct kbs_sync *s, unsigned t, enum kbs_sort sort)
{
	return s->target[t].todo[sort].n + s->target[t].urgent[sort].n;
}

/* The queue's first that has to be sent; what is in flight is looked at when it lands. */
static struct kbs_entry *todo_first(struct kbs_todo *q, unsigned t, bool urgent)
{
	uint32_t bit = 1u << t;

	while (q->n) {
		struct kbs_entry *e = q->v[q->head];

		if (!e->forgotten && !(e->flying & bit) && differs(e, t))
			return e;
		(void)todo_pop(q);
		*(urgent ? &e->urgent : &e->queued) &= ~bit;
		kbs_entry_unpin(e);
	}
	return NULL;
}

struct kbs_entry *kbs_sync_peek(struct kbs_sync *s, unsigned t, enum kbs_sort sort)
{
	struct kbs_entry *e = todo_first(&s->target[t].urgent[sort], t, true);

	return e ? e : todo_first(&s->target[t].todo[sort], t, false);
}

struct kbs_entry *kbs_sync_take(struct kbs_sync *s, unsigned t, enum kbs_sort sort)
{
	struct kbs_entry *e = kbs_sync_peek(s, t, sort);

	if (!e)
		return NULL;
	if (s->target[t].urgent[sort].n) {
		(void)todo_pop(&s->target[t].urgent[sort]);
		e->urgent &= ~(1u << t);
	} else {
		(void)todo_pop(&s->target[t].todo[sort]);
		e->queued &= ~(1u << t);
	}
	e->flying |= 1u << t;
	/* Revoked while this is under way, it would count as gone. (Pending before and after.) */
	if (e->seen[t] == KBS_SEEN_ABSENT)
		e->seen[t] = KBS_SEEN_OTHER;
	return e;
}

struct secret *kbs_sync_confirmed(
	const struct kbs_sync *s, unsigned t, enum kbs_sort sort, const char *name)
{
	const struct kbs_entry *e = kbs_entry_find(s, sort, name);

	if (!e || !e->holder || e->flying & 1u << t || e->seen[t] != KBS_SEEN_WANTED)
		return NULL;
	return e->render(e->holder);
}

void kbs_sync_suspect(struct kbs_sync *s, unsigned t, enum kbs_sort sort, const char *name)
{
	struct kbs_entry *e = kbs_entry_find(s, sort, name);

	kbs_set_seen(s, e, t, KBS_SEEN_UNKNOWN);
	e = kbs_entry_find(s, sort, name); /* who was told may have forgotten it */
	if (e)
		todo_add(s, t, e);
}

void kbs_sync_lost(struct kbs_sync *s, unsigned t, struct kbs_entry *e)
{
	kbs_set_seen(s, e, t, KBS_SEEN_UNKNOWN);
}

void kbs_sync_landed(
	struct kbs_sync *s, unsigned t, struct kbs_entry *e, bool confirmed, const uint8_t *sha256)
{
	enum kbs_seen seen = !confirmed ? KBS_SEEN_UNKNOWN
			     : !sha256  ? KBS_SEEN_ABSENT
			     : e->holder && memcmp(e->sha256, sha256, SHA256_LEN) == 0
				     ? KBS_SEEN_WANTED
				     : KBS_SEEN_OTHER;
	bool differs_now = seen != (e->holder ? KBS_SEEN_WANTED : KBS_SEEN_ABSENT);

	/* It stays pinned while listeners, who may forget it, are told. */
	kbs_set_seen(s, e, t, seen);
	e->flying &= ~(1u << t);
	if (differs_now && !e->forgotten)
		todo_add(s, t, e);
	kbs_entry_unpin(e);
}
