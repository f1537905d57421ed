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

#include "tec/base/mem.h"
#include "tec/base/metric.h"

#include "net_internal.h"

static struct metric held_bytes = METRIC_GAUGE_INIT("tec_http_body_bytes",
	"Bytes of large request bodies in memory, by sender: known (authenticated) or stranger.",
	"sender", NULL);

static size_t known, strangers;  /* accounted bytes, of all listeners */
static struct share *being_read; /* owned; strangers' bodies being read; NULL: none */
static size_t n_being_read;

/* A complete body can no longer be refused, but counts until its request ends. The share is freed with
 * the last body that is being read, as no listener owns it. */
void httpd_body_read(struct httpd_body *b)
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
static void touch(struct httpd_body *b, const struct sockaddr *sa)
{
	uint8_t source[ADDR_SOURCE_LEN];

	if (b->in_share) {
		share_active(being_read, &b->place);
		return;
	}
	if (!being_read)
		being_read = share_new();
	addr_source(sa, source);
	share_join(being_read, &b->place, source);
	n_being_read++;
	b->in_share = true;
}

/* Replace the accounted size of this body in the total of its kind. */
static void count(struct httpd_body *b, size_t held)
{
	size_t *all = b->known ? &known : &strangers;

	*all = *all - b->held + held;
	b->held = held;
	metric_set(&held_bytes, b->known ? "known" : "stranger", NULL, (double)*all);
}

/* Refuse other bodies until this one fits, or until this one is next to be refused. */
static bool room_for_stranger(
	struct httpd_body *b, const struct sockaddr *sa, size_t more, httpd_body_refuse_fn refuse)
{
	touch(b, sa);
	while (strangers + more > HTTPD_STRANGERS_MAX) {
		struct httpd_body *idlest =
			container_of(share_idlest(being_read), struct httpd_body, place);

		if (idlest == b)
			return false;
		refuse(idlest);
	}
	return true;
}

/* Called for each piece that arrives. Bodies up to HTTPD_BODY_SMALL are free: the number of
 * connections bounds them. */
bool httpd_body_grow(
	struct httpd_body *b, const struct sockaddr *sa, size_t len, httpd_body_refuse_fn refuse)
{
	size_t more = len - b->held;

	if (len <= HTTPD_BODY_SMALL || len <= b->held)
		return true;
	if (!(b->known ? known + more <= HTTPD_KNOWN_MAX : room_for_stranger(b, sa, more, refuse)))
		return false;
	count(b, len);
	return true;
}

void httpd_body_end(struct httpd_body *b)
{
	httpd_body_read(b);
	if (b->held > 0)
		count(b, 0);
	b->known = false;
}
