/* SPDX-License-Identifier: MIT */
/*
 * Account for the memory of request bodies, in all listeners of the process together. Known senders
 * have a separate budget, so that strangers cannot exclude them. A large body counts with the bytes
 * that have arrived, not with the length that its head announces, until its request ends.
 *
 * Strangers' bodies compete by number, not by size: the source that sends the most of them loses one
 * first, and among equal sources the longest idle one does. So a large upload of an honest client,
 * which keeps sending, completes among many small or slow ones.
 */
#include "config.h"

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/metric.h"

#include "net_internal.h"

static struct metric refused_total = METRIC_COUNTER_INIT("tec_http_refused_bodies_total",
	"Requests refused because request bodies used too much memory.", "listener", NULL);

static struct metric held_bytes = METRIC_GAUGE_INIT("tec_http_body_bytes",
	"Bytes of large request bodies in memory, by sender: known (authenticated) or stranger.",
	"sender", NULL);

static size_t known, strangers;  /* accounted bytes, of all listeners */
static struct share *being_read; /* owned; strangers' bodies being read; NULL: none */
static size_t n_being_read;

/* Remove the body from those being read. The share is freed with the last one, as no listener owns
 * it. */
static void leave(struct httpd_body *b)
{
	if (!b->in_share)
		return;
	share_leave(being_read, &b->place);
	b->in_share = false;
	if (--n_being_read > 0)
		return;
	share_free(being_read);
	being_read = NULL;
}

/* Note that bytes have arrived, so that the body is not the longest idle one. */
static void touch(struct httpd_peer *p)
{
	uint8_t source[ADDR_SOURCE_LEN];

	if (p->body.in_share) {
		share_active(being_read, &p->body.place);
		return;
	}
	if (!being_read)
		being_read = share_new();
	addr_source(httpd_peer_addr(p), source);
	share_join(being_read, &p->body.place, source);
	n_being_read++;
	p->body.in_share = true;
}

static void note_refused(struct httpd_peer *p)
{
	char peer[ADDR_TEXT_LEN];
	unsigned left_out;

	metric_add(&refused_total, p->httpd->conf.name, NULL, 1);
	if (!httpd_may_log(p->httpd, HTTPD_NOISE_BODY, &left_out))
		return;
	addr_format(httpd_peer_addr(p), peer);
	log_warn(NULL, "request bodies use too much memory: refused one",
		"server=%s peer=%s count=%u", p->httpd->conf.name, peer, left_out + 1);
}

/* Replace the accounted size of this body in the total of its kind. */
static void count(struct httpd_body *b, size_t held)
{
	size_t *all = b->known ? &known : &strangers;

	*all = *all - b->held + held;
	b->held = held;
	metric_set(&held_bytes, b->known ? "known" : "stranger", NULL, (double)*all);
}

static bool room_for_known(const struct httpd_peer *p, size_t more)
{
	return known + more <= HTTPD_KNOWN_MAX;
}

/* Refuse other bodies until this one fits, or until this one is next to be refused. */
static bool room_for_stranger(struct httpd_peer *p, size_t more)
{
	touch(p);
	while (strangers + more > HTTPD_STRANGERS_MAX) {
		struct httpd_peer *idlest =
			container_of(share_idlest(being_read), struct httpd_peer, body.place);

		if (idlest == p)
			return false;
		note_refused(idlest);
		httpd_guard_refuse(idlest, 503);
	}
	return true;
}

/* Called for each piece that arrives. Bodies up to HTTPD_BODY_SMALL are free: the number of
 * connections bounds them. */
bool httpd_body_grow(struct httpd_peer *p, size_t len)
{
	struct httpd_body *b = &p->body;
	size_t more = len - b->held;

	if (len <= HTTPD_BODY_SMALL || len <= b->held)
		return true;
	if (!(b->known ? room_for_known(p, more) : room_for_stranger(p, more))) {
		note_refused(p);
		return false;
	}
	count(b, len);
	return true;
}

/* A complete body can no longer be refused, but counts until its request ends. */
void httpd_body_read(struct httpd_peer *p)
{
	leave(&p->body);
}

void httpd_body_end(struct httpd_peer *p)
{
	struct httpd_body *b = &p->body;

	leave(b);
	if (b->held > 0)
		count(b, 0);
	b->known = false;
}
