/* SPDX-License-Identifier: MIT */
/*
 * Two hash tables and a list in order of time: the oldest are ended whenever a place is asked for.
 * Cookies are credentials, so only their hash is kept.
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

#define COOKIE "kbs-session-id="

struct source {
	struct table_link link;
	uint8_t addr[ADDR_SOURCE_LEN];
	unsigned n;
};

struct session {
	struct table_link link; /* in by_cookie, when named */
	TAILQ_ENTRY(session) age;
	struct source *source;
	uint64_t since_ms;
	bool named, awaited;
	uint8_t cookie[SHA256_LEN]; /* its digest */
	void *data;                 /* released by sessions.release */
};

struct sessions {
	struct table by_cookie, sources;
	TAILQ_HEAD(, session) oldest_first;
	unsigned n, max, max_per_source;
	uint32_t time_ms;
	void (*release)(void *data);
};

struct sessions *sessions_new(
	unsigned max, unsigned max_per_source, uint32_t time_ms, void (*release)(void *data))
{
	struct sessions *s = xcalloc(1, sizeof(*s));

	TAILQ_INIT(&s->oldest_first);
	s->max = max;
	s->max_per_source = max_per_source;
	s->time_ms = time_ms;
	s->release = release;
	return s;
}

static struct source *find_source(struct sessions *s, const uint8_t addr[ADDR_SOURCE_LEN])
{
	uint32_t hash = table_hash(addr, ADDR_SOURCE_LEN);
	struct source *src;

	TABLE_WITH_HASH (src, link, &s->sources, hash)
		if (memcmp(src->addr, addr, ADDR_SOURCE_LEN) == 0)
			return src;
	src = xcalloc(1, sizeof(*src));
	memcpy(src->addr, addr, ADDR_SOURCE_LEN);
	table_add(&s->sources, &src->link, hash);
	return src;
}

static void leave_source(struct sessions *s, struct source *src)
{
	if (src->n > 0)
		return;
	table_remove(&s->sources, &src->link);
	free(src);
}

static void end(struct sessions *s, struct session *e)
{
	if (e->named)
		table_remove(&s->by_cookie, &e->link);
	TAILQ_REMOVE(&s->oldest_first, e, age);
	e->source->n--;
	leave_source(s, e->source);
	s->n--;
	if (e->data)
		s->release(e->data);
	free(e);
}

void sessions_free(struct sessions *s)
{
	struct session *e;

	if (!s)
		return;
	while ((e = TAILQ_FIRST(&s->oldest_first))) {
		assert(!e->awaited);
		end(s, e);
	}
	table_fini(&s->by_cookie);
	table_fini(&s->sources);
	free(s);
}

static void end_old(struct sessions *s, uint64_t now_ms)
{
	struct session *e = TAILQ_FIRST(&s->oldest_first), *next;

	for (; e && now_ms - e->since_ms >= s->time_ms; e = next) {
		next = TAILQ_NEXT(e, age);
		if (!e->awaited)
			end(s, e);
	}
}

void sessions_sweep(struct sessions *s, uint64_t now_ms)
{
	end_old(s, now_ms);
}

/* Seconds until the oldest session of src ends; of any source when src is NULL. */
static uint32_t seconds_left(const struct sessions *s, const struct source *src, uint64_t now_ms)
{
	const struct session *e;

	TAILQ_FOREACH (e, &s->oldest_first, age)
		if (!src || e->source == src)
			break;
	if (!e || now_ms - e->since_ms >= s->time_ms)
		return 1;
	return (uint32_t)((s->time_ms - (now_ms - e->since_ms) + 999) / 1000);
}

struct session *sessions_open(struct sessions *s, const uint8_t source[ADDR_SOURCE_LEN],
	uint64_t now_ms, uint32_t *retry_s)
{
	struct session *e;
	struct source *src;

	end_old(s, now_ms);
	if (s->n >= s->max) {
		*retry_s = seconds_left(s, NULL, now_ms);
		return NULL;
	}
	src = find_source(s, source);
	if (src->n >= s->max_per_source) {
		*retry_s = seconds_left(s, src, now_ms);
		return NULL;
	}
	e = xcalloc(1, sizeof(*e));
	e->source = src;
	e->since_ms = now_ms;
	e->awaited = true;
	TAILQ_INSERT_TAIL(&s->oldest_first, e, age);
	src->n++;
	s->n++;
	return e;
}

void session_named(struct sessions *s, struct session *e, const char *cookie)
{
	e->awaited = false;
	if (!cookie)
		return;
	bytes_sha256(cookie, strlen(cookie), e->cookie);
	e->named = true;
	table_add(&s->by_cookie, &e->link, table_hash(e->cookie, SHA256_LEN));
}

void sessions_end(struct sessions *s, struct session *take_it)
{
	end(s, take_it);
}

struct session *sessions_find(struct sessions *s, const char *cookie, uint64_t now_ms)
{
	uint8_t digest[SHA256_LEN];
	struct session *e;

	end_old(s, now_ms);
	bytes_sha256(cookie, strlen(cookie), digest);
	TABLE_WITH_HASH (e, link, &s->by_cookie, table_hash(digest, SHA256_LEN))
		if (memcmp(e->cookie, digest, SHA256_LEN) == 0)
			return e;
	return NULL;
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

size_t sessions_count(const struct sessions *s)
{
	return s->n;
}

char *sessions_cookie(const char *header)
{
	const char *p = header;

	while (p) {
		p += strspn(p, " ;");
		if (str_starts(p, COOKIE))
			return xstrndup(p + strlen(COOKIE), strcspn(p + strlen(COOKIE), "; "));
		p = strchr(p, ';');
	}
	return NULL;
}
