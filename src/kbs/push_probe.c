/* SPDX-License-Identifier: MIT */
/*
 * The probe. The sentinel read is compared with the one last written (if equal, all confirmations
 * are still valid) and with the sum of what is desired (if equal, everything is stored). In any
 * other case the content of Trustee's store is unknown and everything is sent.
 */
#include "config.h"

#include "push_internal.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"

#define SETTLE_MAX_MS 10000u
#define BACK_IN_ROW   3u /* a read proves less than a write: the disk may be full */

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

/* Discard all confirmations of this store. sentinel: the stored one; NULL: the store was lost. */
static void start_over(struct kbs_push *p, struct json_object *sentinel)
{
	struct push_request *f;

	p->order = sentinel && str_eq(json_get_str(sentinel, "policy"), PUSH_READS_LISTS)
			   ? PUSH_VALUES_FIRST
			   : PUSH_POLICIES_FIRST;
	/* Whatever it contains, it must be overwritten before anything is revoked. */
	p->clean = sentinel != NULL;
	memset(&p->stored_sum, 0, sizeof(p->stored_sum));
	p->sent = p->shared_emptied = p->marked = false;
	p->shared_mode = p->sync->policies.shared;
	p->policy_attestation = p->policy_resource = NULL;
	p->known = true; /* each entry is unknown from here on */
	p->check_due = p->conf.read_back;
	/* Answers to requests sent before the loss say nothing about the new store. */
	TAILQ_FOREACH (f, &p->in_flight, link)
		f->stale = true;
	kbs_sync_assume(p->sync, p->t, false);
	p->past_due = p->conf.each_revoked != NULL; /* may be an older, restored store */
	push_set_state(p, KBS_TARGET_POPULATING);
}

/* Decide what a stored sentinel proves. One of another cluster proves nothing. */
static void judge(struct kbs_push *p, struct json_object *o)
{
	struct kbs_sum want;

	if (!str_eq(json_get_str(o, "cluster"), p->cluster_uid)) {
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

/* While the store is known, a failed probe is retried like a request, without giving up the
 * store. */
static void probe_failed(struct kbs_push *p, const struct err *err)
{
	if (p->failed || !p->known || push_is_away(p, err, !p->serial_backoff.ms)) {
		push_fail(p, err);
		return;
	}
	p->probe_wanted = true;
	timer_set(&p->serial_wait, push_delay(p, &p->serial_backoff, "probe", err));
}

/* The answer releases `hold`: only now may anything be sent. */
static void on_probe(void *arg, const struct err *err, const struct kbs_answer *answer)
{
	struct kbs_push *p = arg;
	cleanup_json struct json_object *o = NULL;
	struct err bad = ERR_INIT;
	bool was_known = p->known;

	p->serial = false;
	if (err_is_set(err) && err->kind != ERR_NOT_FOUND) {
		probe_failed(p, err);
		return;
	}
	/* A few failures are kept, so that a Trustee that only reads is unreachable again soon. */
	if (p->failed && p->in_row > BACK_IN_ROW)
		p->in_row = BACK_IN_ROW;
	/* This does not reset the backoff: a server that answers may still accept no write. */
	p->failed = p->hold = false;
	if (!err_is_set(err))
		o = json_parse(answer->body, answer->body_len, &json_limits_object, &bad);
	if (o)
		judge(p, o);
	else
		p->known = false; /* no sentinel, or malformed */
	if (!p->known) {
		if (was_known)
			log_warn(NULL,
				"Trustee's store was lost or changed, sending everything again",
				"trustee=%s", log_esc(p->target));
		start_over(p, o);
	} else {
		p->marked = p->asked = true;
	}
	timer_set(&p->probe, p->conf.probe_ms);
	push_wake(p);
}

/* Read the sentinel, unless the controllers are still declaring. */
void push_probe_start(struct kbs_push *p)
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
	(void)kbs_admin_get_value(p->transport, &p->ops, KBS_SENTINEL, on_probe, p);
}

/* The periodic probe detects a store that was lost without a failed request. */
void push_probe_on_timer(void *arg)
{
	struct kbs_push *p = arg;

	/* Between a loss and the first message of values there is no sentinel. */
	if (p->known && !p->marked) {
		timer_set(&p->probe, p->conf.probe_ms);
		return;
	}
	p->probe_wanted = true;
	push_wake(p);
}
