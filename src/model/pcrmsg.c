/* SPDX-License-Identifier: MIT */
/*
 * Packed, all numbers one byte:
 *
 *   message   hashes events variants platforms
 *   hashes    count, then 32 bytes each
 *   events    count, then per event: id, type, index of its hash
 *   variants  count, then per variant: Secure Boot (0 or 1), text, events
 *   platforms count, then per platform: text (its name), 32 bytes (its variables),
 *             0 and events, or 1 and text (why there are none)
 *   text      length, bytes of UTF-8 without control characters
 *
 * Values have one encoding only: an unused or duplicate hash is refused, and so is trailing data.
 */
#include "config.h"

#include "tec/model/pcrmsg.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/utf8.h"
#include "tec/kobj/key.h"
#include "tec/model/pcrs.h"

#define PREFIX     "tec-pcrs/3 "
#define HASHES_MAX 255
#define WHY_MAX    120 /* of a platform; eight of them must fit */

void model_pcrmsg_fini(struct model_pcrmsg *m)
{
	pcr_events_fini(&m->events);
	model_platforms_fini(&m->platforms);
	model_variants_fini(&m->variants);
}

bool model_pcrmsg_nonce_valid(const char *nonce)
{
	return nonce && strlen(nonce) == MODEL_PCRMSG_NONCE_LEN &&
	       strspn(nonce, "0123456789abcdef") == MODEL_PCRMSG_NONCE_LEN;
}

/* ---- write */

struct table {
	const uint8_t *v[HASHES_MAX]; /* borrowed */
	size_t n;
};

/* A linear search: at most HASHES_MAX entries, once per Job. */
static size_t index_of(const struct table *t, const uint8_t *digest)
{
	size_t i = 0;

	while (i < t->n && memcmp(t->v[i], digest, SHA256_LEN) != 0)
		i++;
	return i;
}

/* Add the hashes of the events to the table, each once; false when a count would exceed one
 * byte. */
static bool collect(struct table *t, const struct pcr_events *e)
{
	for (size_t i = 0; i < e->n; i++) {
		if (index_of(t, e->v[i].digest) < t->n)
			continue;
		if (t->n == HASHES_MAX)
			return false;
		t->v[t->n++] = e->v[i].digest;
	}
	return e->n <= UINT8_MAX;
}

static void put_events(struct strbuf *out, const struct table *t, const struct pcr_events *e)
{
	strbuf_addc(out, (char)e->n);
	for (size_t i = 0; i < e->n; i++) {
		strbuf_addc(out, (char)e->v[i].id);
		strbuf_addc(out, (char)e->v[i].type);
		strbuf_addc(out, (char)index_of(t, e->v[i].digest));
	}
}

/* Write a text, cut at a character boundary. Control characters become blanks, because the text is
 * displayed without escaping. */
static void put_text(struct strbuf *out, const char *text, size_t max)
{
	size_t len = strnlen(text, max);
	char *at;

	while (len && !utf8_valid(text, len))
		len--;
	strbuf_addc(out, (char)len);
	strbuf_add(out, text, len);
	at = out->data + out->len - len;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)at[i] < ' ' || at[i] == 0x7f)
			at[i] = ' ';
}

/* Write the hashes in the order of their first use: the reader insists on it, so that a message has
 * one form only. */
static void put_all(struct strbuf *out, const struct table *t, const struct model_pcrmsg *m)
{
	strbuf_addc(out, (char)t->n);
	for (size_t i = 0; i < t->n; i++)
		strbuf_add(out, t->v[i], SHA256_LEN);
	put_events(out, t, &m->events);
	strbuf_addc(out, (char)m->variants.n);
	for (size_t i = 0; i < m->variants.n; i++) {
		strbuf_addc(out, m->variants.v[i].secure_boot);
		put_text(out, m->variants.v[i].when, UINT8_MAX);
		put_events(out, t, &m->variants.v[i].events);
	}
	strbuf_addc(out, (char)m->platforms.n);
	for (size_t i = 0; i < m->platforms.n; i++) {
		const struct model_platform *p = &m->platforms.v[i];

		put_text(out, p->name, UINT8_MAX);
		strbuf_add(out, p->variables, SHA256_LEN);
		strbuf_addc(out, p->why != NULL);
		if (p->why)
			put_text(out, p->why, WHY_MAX);
		else
			put_events(out, t, &p->events);
	}
}

/* Check the size before writing anything: a kubelet would cut a longer message silently. */
int model_pcrmsg_write(const char *nonce, const char *digest, const struct model_pcrmsg *m,
	struct strbuf *out, struct err *err)
{
	cleanup_strbuf struct strbuf packed = STRBUF_INIT;
	struct table table = {.n = 0};
	bool fits;
	size_t len = strlen(PREFIX) + strlen(nonce) + 1 + strlen(digest) + 1;

	fits = collect(&table, &m->events);
	for (size_t i = 0; fits && i < m->variants.n; i++)
		fits = collect(&table, &m->variants.v[i].events);
	for (size_t i = 0; fits && i < m->platforms.n; i++)
		fits = collect(&table, &m->platforms.v[i].events);
	if (!fits)
		return err_set(
			err, ERR_INVALID, "there are more than %d distinct events", HASHES_MAX);
	put_all(&packed, &table, m);
	len += bytes_b64_len(packed.len);
	if (len > MODEL_PCRMSG_MAX)
		return err_set(err, ERR_INVALID,
			"the values take %zu bytes, but at most %d are allowed", len,
			MODEL_PCRMSG_MAX);
	strbuf_addf(out, PREFIX "%s %s ", nonce, digest);
	bytes_to_b64(out, packed.data, packed.len);
	return 0;
}

/* ---- read */

struct reader {
	const uint8_t *p, *end;
	const uint8_t *hashes;
	size_t n_hashes, n_used; /* hashes must be referred to in their order first */
	const char *why;         /* the first error; NULL: none */
};

/* Take n bytes. After the first error nothing is read any more, so callers need not check each
 * step. */
static const uint8_t *get(struct reader *r, size_t n)
{
	const uint8_t *at = r->p;

	if (r->why || (size_t)(r->end - r->p) < n) {
		r->why = r->why ? r->why : "it is truncated";
		return NULL;
	}
	r->p += n;
	return at;
}

static unsigned get_number(struct reader *r, unsigned max, const char *why)
{
	const uint8_t *at = get(r, 1);

	if (at && *at > max) {
		r->why = why;
		return 0;
	}
	return at ? *at : 0;
}

/* Read a text; NULL on error. The caller frees it. */
static char *get_text(struct reader *r, unsigned max)
{
	size_t len = get_number(r, max, "a text is too long");
	const uint8_t *at = get(r, len);

	if (!at)
		return NULL;
	for (size_t i = 0; i < len; i++)
		if (at[i] < ' ' || at[i] == 0x7f)
			r->why = "a text contains control characters";
	if (!utf8_valid(at, len))
		r->why = "a text is not UTF-8";
	return r->why ? NULL : xasprintf("%.*s", (int)len, (const char *)at);
}

/* Read one event. An image may only state PCR 4 and 14, a platform PCR 7 as well: other registers
 * would let the message approve what is not computed here. */
static void get_event(struct reader *r, bool platform, struct pcr_events *out)
{
	const uint8_t *at = get(r, 3);
	enum pcr_event_id id = at ? (enum pcr_event_id)at[0] : 0;
	unsigned pcr = at && id < PCR_N_EVENT_IDS ? pcr_event_register(id) : PCR_MAX;

	if (r->why)
		return;
	if (pcr != 4 && pcr != 14 && !(platform && pcr == 7))
		r->why = "an event belongs to another register";
	else if (at[1] >= PCR_N_EVENT_TYPES)
		r->why = "an event has an unknown type";
	else if (at[2] >= r->n_hashes || at[2] > r->n_used)
		r->why = "an event refers to a missing hash, or hashes are not in order";
	else if (!pcr_event_valid(
			 id, (enum pcr_event_type)at[1], r->hashes + (size_t)at[2] * SHA256_LEN))
		r->why = "an event has a wrong type or hash";
	else if (!pcr_events_push(out, id, (enum pcr_event_type)at[1], pcr,
			 r->hashes + (size_t)at[2] * SHA256_LEN))
		r->why = "there are too many events";
	else if (at[2] == r->n_used)
		r->n_used++;
}

/* The events are checked for completeness here, because unpack() has no later chance to name the
 * list. */
static void get_events(struct reader *r, bool platform, struct pcr_events *out)
{
	unsigned n = get_number(r, UINT8_MAX, NULL);
	struct err err = ERR_INIT;

	*out = (struct pcr_events)PCR_EVENTS_INIT;
	for (unsigned i = 0; i < n && !r->why; i++)
		get_event(r, platform, out);
	if (!r->why &&
		(platform ? model_platform_check(out, &err) : model_variant_check(out, &err)) < 0)
		r->why = "a register is missing";
}

/* n grows with each element that is started, so that fini() frees an incomplete one, too. */
static void get_variants(struct reader *r, struct model_variants *out)
{
	unsigned n = get_number(r, MODEL_VARIANTS_MAX, "there are too many variants");

	out->v = n ? xcalloc(n, sizeof(*out->v)) : NULL;
	for (unsigned i = 0; i < n && !r->why; i++) {
		struct model_variant *v = &out->v[out->n++];

		v->secure_boot = get_number(r, 1, "Secure Boot is neither on nor off");
		v->when = get_text(r, UINT8_MAX);
		get_events(r, false, &v->events);
	}
}

/* Count the platform before its values are read, so that fini() frees what an error leaves
 * behind. */
static void get_platforms(struct reader *r, struct model_platforms *out)
{
	unsigned n = get_number(r, MODEL_PLATFORMS_MAX, "there are too many platforms");

	for (unsigned i = 0; i < n && !r->why; i++) {
		struct model_platform *p = &out->v[out->n];
		const uint8_t *variables;
		char *name = get_text(r, UINT8_MAX);

		if (name &&
			(!kobj_name_valid(name, strlen(name)) || model_platforms_find(out, name)))
			r->why = "the name of a platform is not valid or occurs twice";
		*p = (struct model_platform){.name = name, .events = PCR_EVENTS_INIT};
		out->n++;
		variables = get(r, SHA256_LEN);
		if (variables)
			memcpy(p->variables, variables, SHA256_LEN);
		if (get_number(r, 1, "a platform has neither values nor a reason"))
			p->why = get_text(r, WHY_MAX);
		else
			get_events(r, true, &p->events);
	}
}

/* Return the first error, or NULL. out may be partly filled either way; the caller releases it. */
static const char *unpack(const uint8_t *data, size_t len, struct model_pcrmsg *out)
{
	struct reader r = {.p = data, .end = data + len};

	r.n_hashes = get_number(&r, HASHES_MAX, NULL);
	r.hashes = get(&r, r.n_hashes * SHA256_LEN);
	/* Duplicates are refused: equal values would have more than one encoding. */
	for (size_t i = 0; !r.why && i < r.n_hashes; i++)
		for (size_t k = 0; k < i; k++)
			if (memcmp(r.hashes + i * SHA256_LEN, r.hashes + k * SHA256_LEN,
				    SHA256_LEN) == 0)
				r.why = "a hash is duplicated";
	get_events(&r, false, &out->events);
	get_variants(&r, &out->variants);
	get_platforms(&r, &out->platforms);
	if (!r.why && r.p != r.end)
		return "trailing data after the values";
	if (!r.why && r.n_used != r.n_hashes)
		return "a hash is not used";
	return r.why;
}

/* Skip len bytes, which must be `want` (NULL: any), and a space; NULL when the text does not start
 * with them. */
static const char *after(const char *text, const char *end, const char *want, size_t len)
{
	if ((size_t)(end - text) <= len || text[len] != ' ' ||
		(want && memcmp(text, want, len) != 0))
		return NULL;
	return text + len + 1;
}

/* The nonce proves that the message is from the Job whose nonce was announced, the digest that it
 * is for this image. Only then the values are unpacked. */
int model_pcrmsg_read(const char *text, size_t len, const char *nonce, const char *digest,
	struct model_pcrmsg *out, struct err *err)
{
	cleanup_free uint8_t *data = NULL;
	const char *end = text + len, *at, *why;
	size_t n = 0;

	*out = (struct model_pcrmsg)MODEL_PCRMSG_INIT;
	if (len > MODEL_PCRMSG_MAX || len < strlen(PREFIX) ||
		memcmp(text, PREFIX, strlen(PREFIX)) != 0)
		return err_set(err, ERR_INVALID, "it is not a message of tec-compute-pcrs");
	at = text + strlen(PREFIX);
	at = after(at, end, nonce, nonce ? strlen(nonce) : MODEL_PCRMSG_NONCE_LEN);
	if (!at)
		return err_set(err, ERR_INVALID, "it does not contain the announced nonce");
	at = after(at, end, digest, strlen(digest));
	if (!at)
		return err_set(err, ERR_INVALID, "it is about another image");
	if (bytes_from_b64(at, (size_t)(end - at), &data, &n) < 0 || n == 0)
		return err_set(err, ERR_INVALID, "its values are not base64");
	why = unpack(data, n, out);
	if (!why)
		return 0;
	model_pcrmsg_fini(out);
	*out = (struct model_pcrmsg)MODEL_PCRMSG_INIT;
	return err_set(err, ERR_INVALID, "its values are malformed: %s", why);
}
