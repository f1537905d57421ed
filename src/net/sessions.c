/* SPDX-License-Identifier: MIT */
/*
 * A table by cookie, a list ordered by time, and the places of each source (net/share), which are
 * ordered by time as well, because share_active() is never called. Timed out sessions are ended
 * whenever one is opened or looked up. Cookies are credentials, so only their hash is kept.
 *
 * Life of a session: open (awaits its name) -> named -> attested -> ended. It may be evicted at any
 * point. An awaited session that is evicted leaves all lists but stays allocated (group NULL) until
 * session_named() or sessions_end(), because its opener still holds the pointer.
 */
#include "config.h"

#include "tec/net/sessions.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>
#include <sys/queue.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/base/table.h"
#include "tec/net/share.h"

#define COOKIE "kbs-session-id="

struct group {
	struct share *share; /* owned */
	unsigned n;
};

struct session {
	struct table_link link; /* in by_cookie, when named */
	TAILQ_ENTRY(session) age;
	struct share_place place;
	struct group *group; /* NULL: evicted while awaiting its name, in no list */
	uint8_t source[ADDR_SOURCE_LEN];
	uint64_t since_ms;
	bool named, awaited;
	uint8_t cookie[SHA256_LEN]; /* digest of the cookie */
	void *data;                 /* owned; released by sessions.release */
};

struct sessions {
	struct table by_cookie;
	TAILQ_HEAD(, session) oldest_first;
	struct group unfinished, attested;
	unsigned max, max_per_source;
	uint32_t time_ms;
	struct metric *evicted;
	void (*release)(void *data);
};

struct sessions *sessions_new(unsigned max, unsigned max_per_source, uint32_t time_ms,
	struct metric *evicted, void (*release)(void *data))
{
	struct sessions *s = xcalloc(1, sizeof(*s));

	TAILQ_INIT(&s->oldest_first);
	s->unfinished.share = share_new();
	s->attested.share = share_new();
	s->max = max;
	s->max_per_source = max_per_source;
	s->time_ms = time_ms;
	s->evicted = evicted;
	s->release = release;
	return s;
}

/* Count the session in a group and as a place of its source. */
static void join(struct session *e, struct group *g)
{
	e->group = g;
	g->n++;
	share_join(g->share, &e->place, e->source);
}

static void leave(struct session *e)
{
	share_leave(e->group->share, &e->place);
	e->group->n--;
	e->group = NULL;
}

/* Remove the session from every list and table; it stays allocated. */
static void unlink_session(struct sessions *s, struct session *e)
{
	if (e->named)
		table_remove(&s->by_cookie, &e->link);
	TAILQ_REMOVE(&s->oldest_first, e, age);
	leave(e);
}

void sessions_end(struct sessions *s, struct session *e)
{
	if (e->group)
		unlink_session(s, e);
	if (e->data)
		s->release(e->data);
	free(e);
}

/* Count and remove a session that gives way. One that awaits its name is still referenced by its
 * opener. */
static void evict(struct sessions *s, struct session *e)
{
	metric_add(s->evicted, NULL, NULL, 1);
	if (e->awaited)
		unlink_session(s, e);
	else
		sessions_end(s, e);
}

void sessions_free(struct sessions *s)
{
	struct session *e;

	if (!s)
		return;
	while ((e = TAILQ_FIRST(&s->oldest_first))) {
		assert(!e->awaited);
		sessions_end(s, e);
	}
	table_fini(&s->by_cookie);
	share_free(s->unfinished.share);
	share_free(s->attested.share);
	free(s);
}

/* The list is ordered by time, so only the first sessions can have timed out. Awaited ones are
 * skipped. */
void sessions_sweep(struct sessions *s, uint64_t now_ms)
{
	struct session *e = TAILQ_FIRST(&s->oldest_first), *next;

	for (; e && now_ms - e->since_ms >= s->time_ms; e = next) {
		next = TAILQ_NEXT(e, age);
		if (!e->awaited)
			sessions_end(s, e);
	}
}

/* Find or free a place in the group of unfinished sessions. False: no session gives way to a new
 * one of this source. */
static bool make_room(struct sessions *s, const uint8_t source[ADDR_SOURCE_LEN], uint64_t now_ms,
	uint32_t *retry_s)
{
	struct group *g = &s->unfinished;
	size_t held;
	struct share_place *p = share_held(g->share, source, &held);
	struct session *e;
	bool own = true;

	/* Below its own limit the source competes with all others; at the limit only with
	 * itself. */
	if (held < s->max_per_source) {
		if (g->n < s->max)
			return true;
		p = share_victim(g->share, source, &own);
	}
	e = container_of(p, struct session, place);
	if (own && now_ms - e->since_ms < SESSIONS_YIELD_MS) {
		*retry_s = (uint32_t)((SESSIONS_YIELD_MS - (now_ms - e->since_ms) + 999) / 1000);
		return false;
	}
	evict(s, e);
	return true;
}

struct session *sessions_open(struct sessions *s, const uint8_t source[ADDR_SOURCE_LEN],
	uint64_t now_ms, uint32_t *retry_s)
{
	struct session *e;

	sessions_sweep(s, now_ms);
	if (!make_room(s, source, now_ms, retry_s))
		return NULL;
	e = xcalloc(1, sizeof(*e));
	memcpy(e->source, source, ADDR_SOURCE_LEN);
	e->since_ms = now_ms;
	e->awaited = true;
	TAILQ_INSERT_TAIL(&s->oldest_first, e, age);
	join(e, &s->unfinished);
	return e;
}

/* The broker has assigned the cookie. A session that was evicted meanwhile ends here. */
void session_named(struct sessions *s, struct session *e, const char *cookie)
{
	e->awaited = false;
	if (!e->group) {
		sessions_end(s, e);
		return;
	}
	if (!cookie)
		return;
	bytes_sha256(cookie, strlen(cookie), e->cookie);
	e->named = true;
	table_add(&s->by_cookie, &e->link, table_hash(e->cookie, SHA256_LEN));
}

/* The table's hash is taken from the digest; the comparison of digests need not be
 * constant-time. */
struct session *sessions_find(struct sessions *s, const char *cookie, uint64_t now_ms)
{
	uint8_t digest[SHA256_LEN];
	struct session *e;

	sessions_sweep(s, now_ms);
	bytes_sha256(cookie, strlen(cookie), digest);
	TABLE_WITH_HASH (e, link, &s->by_cookie, table_hash(digest, SHA256_LEN))
		if (memcmp(e->cookie, digest, SHA256_LEN) == 0)
			return e;
	return NULL;
}

/* Move the session to the attested group, where it can only be replaced by other attested ones. */
void session_attested(struct sessions *s, struct session *e)
{
	bool own;

	leave(e);
	if (s->attested.n >= s->max)
		evict(s, container_of(share_victim(s->attested.share, e->source, &own),
				 struct session, place));
	join(e, &s->attested);
}

void session_set_data(struct session *e, void *take_data)
{
	assert(!e->data);
	e->data = take_data;
}

void *session_data(const struct session *e)
{
	return e->data;
}

const uint8_t *session_source(const struct session *e)
{
	return e->source;
}

size_t sessions_count(const struct sessions *s)
{
	return s->unfinished.n + s->attested.n;
}

/* Works for both headers: attributes of Set-Cookie follow the value after a semicolon, like further
 * cookies. Quotes around a value are not part of it (RFC 6265 section 4.1.1), as for Trustee. */
char *sessions_cookie(const char *header)
{
	const char *p = header;

	while (p) {
		p += strspn(p, " ;");
		if (str_starts(p, COOKIE)) {
			size_t len;

			p += strlen(COOKIE);
			len = strcspn(p, "; ");
			if (len >= 2 && p[0] == '"' && p[len - 1] == '"')
				return xstrndup(p + 1, len - 2);
			return xstrndup(p, len);
		}
		p = strchr(p, ';');
	}
	return NULL;
}
