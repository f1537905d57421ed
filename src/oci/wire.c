/* SPDX-License-Identifier: MIT */
/*
 * The answer comes from a process that a registry may have compromised: each length is compared
 * with the available bytes before anything is read, each text is checked, and anything before,
 * between or after the expected records invalidates the whole answer.
 */
#include "config.h"

#include "tec/oci/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tec/base/bytes.h"
#include "tec/base/utf8.h"

#define LIST_MAX     1024u
#define RETRY_MAX_MS 3600000u

static const enum err_kind kinds[] = {ERR_TRANSIENT, ERR_NOT_FOUND, ERR_DENIED, ERR_INVALID};

/* ---- records ---- */

struct reader {
	const char *p, *end;
};

static bool is_next(const struct reader *r, char tag)
{
	return r->p < r->end && *r->p == tag;
}

/* Read a record with this letter and at most `max` bytes. Return -1 if the next record is another
 * one. */
static int take(struct reader *r, char tag, size_t max, const char **bytes, size_t *len)
{
	size_t n = 0, digits = 0;

	if (!is_next(r, tag))
		return -1;
	for (r->p++; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++) {
		if ((digits && n == 0) || ++digits > 8)
			return -1;
		n = n * 10 + (size_t)(*r->p - '0');
	}
	if (!digits || n > max || !is_next(r, ':'))
		return -1;
	r->p++;
	if ((size_t)(r->end - r->p) <= n || r->p[n] != '\n')
		return -1;
	*bytes = r->p;
	*len = n;
	r->p += n + 1;
	return 0;
}

/* Read a record as text; NUL bytes are refused. */
static char *take_text(struct reader *r, char tag)
{
	const char *p;
	size_t n;

	if (take(r, tag, OCI_QUESTION_MAX, &p, &n) < 0 || memchr(p, '\0', n))
		return NULL;
	return xstrndup(p, n);
}

static void add(struct strbuf *out, char tag, const void *bytes, size_t len)
{
	strbuf_addf(out, "%c%zu:", tag, len);
	strbuf_add(out, bytes, len);
	strbuf_addc(out, '\n');
}

static void add_text(struct strbuf *out, char tag, const char *text)
{
	add(out, tag, text, strlen(text));
}

/* ---- the question ---- */

/* Credentials come last, so that the rest can be built in an ordinary buffer. */
char *oci_question_encode(const struct oci_conf *conf, const char *reference, const char *label,
	const struct secret *const *configs, size_t n_configs, size_t *len, struct err *err)
{
	cleanup_strbuf struct strbuf head = STRBUF_INIT;
	size_t at;
	char *all;

	add_text(&head, 'r', reference);
	add_text(&head, 'l', label);
	add_text(&head, 'o', conf->platform_os);
	add_text(&head, 'a', conf->platform_arch);
	for (size_t i = 0; i < conf->n_mirrors; i++)
		add_text(&head, 'm', conf->mirrors[i]);
	for (size_t i = 0; i < conf->n_insecure; i++)
		add_text(&head, 'i', conf->insecure[i]);
	*len = head.len + 4;
	for (size_t i = 0; i < n_configs; i++)
		*len += secret_len(configs[i]) + 16;
	if (*len > OCI_QUESTION_MAX || conf->n_mirrors > LIST_MAX || conf->n_insecure > LIST_MAX) {
		err_set(err, ERR_INVALID,
			"the lists of registries or their credentials are too large");
		return NULL;
	}
	/* Allocate the full size: a growing buffer would leave copies of credentials behind. */
	all = xcalloc(1, *len);
	memcpy(all, head.data, head.len);
	at = head.len;
	for (size_t i = 0; i < n_configs; i++) {
		at += (size_t)snprintf(all + at, *len - at, "c%zu:", secret_len(configs[i]));
		memcpy(all + at, secret_peek(configs[i]), secret_len(configs[i]));
		at += secret_len(configs[i]);
		all[at++] = '\n';
	}
	memcpy(all + at, "z0:\n", 4);
	*len = at + 4;
	return all;
}

static int take_list(struct reader *r, char tag, char ***list, size_t *n)
{
	while (is_next(r, tag)) {
		char *text = *n < LIST_MAX ? take_text(r, tag) : NULL;

		if (!text)
			return -1;
		ARRAY_GROW(*list, *n);
		(*list)[(*n)++] = text;
	}
	return 0;
}

/* Read credentials directly into secrets. */
static int take_configs(struct reader *r, struct oci_question *q)
{
	const char *p;
	size_t n;

	while (is_next(r, 'c')) {
		if (q->n_configs == LIST_MAX || take(r, 'c', SECRET_MAX_LEN, &p, &n) < 0 || n == 0)
			return -1;
		ARRAY_GROW(q->configs, q->n_configs);
		q->configs[q->n_configs++] = secret_new_copy(p, n);
	}
	return 0;
}

/* The order of records is fixed, so a chain of reads is the whole grammar. */
int oci_question_decode(const char *bytes, size_t len, struct oci_question *out, struct err *err)
{
	struct reader r = {bytes, bytes + len};
	const char *p;
	size_t n;

	memset(out, 0, sizeof(*out));
	if (len <= OCI_QUESTION_MAX && (out->reference = take_text(&r, 'r')) &&
		(out->label = take_text(&r, 'l')) && (out->os = take_text(&r, 'o')) &&
		(out->arch = take_text(&r, 'a')) &&
		take_list(&r, 'm', &out->mirrors, &out->n_mirrors) == 0 &&
		take_list(&r, 'i', &out->insecure, &out->n_insecure) == 0 &&
		take_configs(&r, out) == 0 && take(&r, 'z', 0, &p, &n) == 0 && r.p == r.end)
		return 0;
	oci_question_fini(out);
	return err_set(err, ERR_INVALID, "standard input does not contain a label request");
}

static void list_free(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void oci_question_fini(struct oci_question *q)
{
	free(q->reference);
	free(q->label);
	free(q->os);
	free(q->arch);
	list_free(q->mirrors, q->n_mirrors);
	list_free(q->insecure, q->n_insecure);
	for (size_t i = 0; i < q->n_configs; i++)
		secret_free(q->configs[i]);
	free(q->configs);
	memset(q, 0, sizeof(*q));
}

/* ---- the answer ---- */

/* Check that a text is fit for a condition or a log line. */
static bool is_clean(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)p[i] < 0x20 || p[i] == 0x7f)
			return false;
	return utf8_valid(p, n);
}

/* Make any text fit: unsuitable bytes become '?'. */
static void add_clean(struct strbuf *out, char tag, const char *text, size_t max)
{
	cleanup_free char *copy = xstrndup(text, max);
	size_t n = strlen(copy);
	bool utf8 = utf8_valid(copy, n);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)copy[i];

		if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
			copy[i] = '?';
	}
	add(out, tag, copy, n);
}

void oci_answer_warn(struct strbuf *out, size_t *n_warnings, const char *text)
{
	if (*n_warnings == OCI_WARNINGS_MAX)
		return;
	(*n_warnings)++;
	add_clean(out, 'w', text, OCI_WARNING_LEN);
}

/* Write an error. Kinds that the reader does not expect become INVALID. */
static void add_err(struct strbuf *out, const struct err *err)
{
	enum err_kind kind = ERR_INVALID;
	char number[16];

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (kinds[i] == err->kind)
			kind = err->kind;
	add_text(out, 'k', err_kind_name(kind));
	snprintf(number, sizeof(number), "%d", err->http >= 0 && err->http <= 999 ? err->http : 0);
	add_text(out, 'h', number);
	snprintf(number, sizeof(number), "%" PRIu32,
		err->retry_after_ms < RETRY_MAX_MS ? err->retry_after_ms : RETRY_MAX_MS);
	add_text(out, 's', number);
	add_clean(out, 't', err->text, sizeof(err->text) - 1);
}

/* Write the result, which ends the answer. An oversized label becomes an error. */
void oci_answer_end(struct strbuf *out, const struct err *err, const char *value, size_t len)
{
	struct err large = ERR_INIT;

	if (err_is_set(err)) {
		add_err(out, err);
	} else if (!value) {
		add(out, 'n', "", 0);
	} else if (len > OCI_LABEL_MAX) {
		err_set(&large, ERR_INVALID, "the image's label is larger than %u bytes",
			OCI_LABEL_MAX);
		add_err(out, &large);
	} else {
		add(out, 'v', value, len);
	}
}

/* Read a decimal number up to max; signs and blanks are refused by str_to_u64(). */
static int take_number(struct reader *r, char tag, uint64_t max, uint64_t *out)
{
	char text[16];
	const char *p;
	size_t n;

	if (take(r, tag, sizeof(text) - 1, &p, &n) < 0 || memchr(p, '\0', n))
		return -1;
	memcpy(text, p, n);
	text[n] = '\0';
	return str_to_u64(text, max, out);
}

static int take_kind(struct reader *r, enum err_kind *out)
{
	const char *p;
	size_t n;

	if (take(r, 'k', 16, &p, &n) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const char *name = err_kind_name(kinds[i]);

		if (strlen(name) == n && memcmp(name, p, n) == 0) {
			*out = kinds[i];
			return 0;
		}
	}
	return -1;
}

/* Rebuild an error from its records. Kind and ranges are checked, as they decide when to retry. */
static int take_err(struct reader *r, struct err *out)
{
	enum err_kind kind;
	uint64_t http, retry;
	const char *p;
	size_t n;

	if (take_kind(r, &kind) < 0 || take_number(r, 'h', 999, &http) < 0 ||
		take_number(r, 's', RETRY_MAX_MS, &retry) < 0 ||
		take(r, 't', sizeof(out->text) - 1, &p, &n) < 0 || !n || !is_clean(p, n))
		return -1;
	err_set_http(out, kind, (int)http, "%.*s", (int)n, p);
	out->retry_after_ms = (uint32_t)retry;
	return 0;
}

/* Read warnings, then exactly one result. The caller checks that nothing follows. */
static int take_answer(struct reader *r, struct oci_answer *out)
{
	const char *p;
	size_t n;

	/* Warnings go to the log, so they must be clean. */
	while (is_next(r, 'w')) {
		if (out->n_warnings == OCI_WARNINGS_MAX ||
			take(r, 'w', OCI_WARNING_LEN, &p, &n) < 0 || !is_clean(p, n))
			return -1;
		memcpy(out->warnings[out->n_warnings], p, n);
		out->warnings[out->n_warnings++][n] = '\0';
	}
	if (is_next(r, 'n'))
		return take(r, 'n', 0, &p, &n);
	if (is_next(r, 'k'))
		return take_err(r, &out->err);
	if (take(r, 'v', OCI_LABEL_MAX, &p, &n) < 0)
		return -1;
	out->value = xmemdup(p, n);
	out->len = n;
	return 0;
}

int oci_answer_decode(const char *bytes, size_t len, struct oci_answer *out, struct err *err)
{
	struct reader r = {bytes, bytes + len};

	memset(out, 0, sizeof(*out));
	if (take_answer(&r, out) == 0 && r.p == r.end)
		return 0;
	oci_answer_fini(out);
	return err_set(err, ERR_INVALID, "the child's output is not a valid answer");
}

void oci_answer_fini(struct oci_answer *a)
{
	free(a->value);
	memset(a, 0, sizeof(*a));
}
