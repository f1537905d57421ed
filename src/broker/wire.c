/* SPDX-License-Identifier: MIT */
/*
 * Prescanned JSON, strict base64, then member by member. Refuses more than Trustee only where two
 * parsers could differ (duplicate members, a string with NUL) and where the body's length does not
 * bound the memory (nesting, number of values).
 */
#include "config.h"

#include "tec/broker/wire.h"

#include <time.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/utf8.h"
#include "tec/rats/api.h"

#define MESSAGE_VERSION "0.1.0"
/* Of policy ids in Trustee. */
#define WORD     "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
#define BODY_MAX ((size_t)64 << 20) /* the listener's limit is far lower */

static const struct json_limits small_limits = {.bytes = BODY_MAX, .depth = 8, .tokens = 64};
/* 8 MiB of identities (tec/rats/names.h) are about 12,000 names with 7 tokens each. */
static const struct json_limits values_limits = {.bytes = BODY_MAX, .depth = 64, .tokens = 400000};
static const struct json_limits entry_limits = {
	.bytes = BODY_MAX, .depth = 64, .tokens = 400016}; /* a value and its envelope */

int broker_wire_resource_check(const char *path, struct err *err)
{
	if (!rats_api_path_valid(path))
		return err_set(err, ERR_INVALID,
			"a resource is REPOSITORY/TYPE/TAG of letters, digits, '_', '-' and '.'");
	return 0;
}

/* ---- policies */

void broker_wire_policy_fini(struct broker_wire_policy *p)
{
	free(p->id);
	free(p->text);
	*p = (struct broker_wire_policy){NULL, NULL, 0};
}

/* Parse a JSON object within limits; the caller puts it. */
static struct json_object *parse_object(
	const char *body, size_t len, const struct json_limits *limits, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(body, len, limits, err);

	if (!o)
		return NULL;
	if (!json_object_is_type(o, json_type_object)) {
		err_set(err, ERR_INVALID, "not a JSON object");
		return NULL;
	}
	return steal_ptr(&o);
}

/* The id becomes a file name in LocalFs, so it must not contain a dot or slash. */
int broker_wire_policy_parse(
	const char *body, size_t len, bool with_id, struct broker_wire_policy *out, struct err *err)
{
	cleanup_json struct json_object *o = parse_object(body, len, &small_limits, err);
	cleanup_free uint8_t *text = NULL;
	const char *id, *policy;
	size_t text_len;

	if (!o)
		return -1;
	id = json_get_str(o, "policy_id");
	policy = json_get_str(o, "policy");
	if (!policy)
		return err_set(err, ERR_INVALID, "policy is missing");
	if (with_id && (!id || !*id || id[strspn(id, WORD)]))
		return err_set(err, ERR_INVALID, "policy_id is missing or not a valid id");
	/* Without padding, as Trustee requires. */
	if (bytes_from_b64url(policy, strlen(policy), &text, &text_len) < 0)
		return err_set(err, ERR_INVALID, "policy is not base64url without padding");
	/* A text with NUL could be read differently by a C and a Rust program. */
	if (text_len == 0 || !utf8_valid(text, text_len) || memchr(text, '\0', text_len))
		return err_set(err, ERR_INVALID, "policy is not UTF-8 text");
	*out = (struct broker_wire_policy){with_id ? xstrdup(id) : NULL, NULL, text_len};
	out->text = (char *)steal_ptr(&text);
	return 0;
}

/* ---- reference values */

/* One year after now_s, as Trustee's reference value provider sets it; 29 February becomes the
 * 28th. */
static void expiration(int64_t now_s, char out[CLOCK_RFC3339_LEN])
{
	time_t t = (time_t)now_s;
	struct tm tm;

	gmtime_r(&t, &tm);
	tm.tm_year++;
	if (tm.tm_mon == 1 && tm.tm_mday == 29)
		tm.tm_mday = 28;
	clock_format((int64_t)timegm(&tm), out);
}

/* Members of the value are sorted, so that equal values are equal bytes in the store. */
static void make_entry(
	struct strbuf *out, const char *name, const char *expires, struct json_object *value)
{
	strbuf_reset(out);
	strbuf_adds(out, "{\"version\":\"" MESSAGE_VERSION "\",\"name\":");
	json_quote(out, name, strlen(name));
	strbuf_addf(out, ",\"expiration\":\"%s\",\"value\":", expires);
	json_canonical(out, value);
	strbuf_addc(out, '}');
}

/* Parse the message and return its payload as an object. */
static struct json_object *open_message(const char *body, size_t len, struct err *err)
{
	cleanup_json struct json_object *o = parse_object(body, len, &small_limits, err);
	cleanup_free uint8_t *payload = NULL;
	struct json_object *version = NULL;
	const char *text;
	size_t n;

	if (!o)
		return NULL;
	/* An absent version is the current one. */
	if (json_object_object_get_ex(o, "version", &version) &&
		!str_eq(json_get_str(o, "version"), MESSAGE_VERSION))
		err_set(err, ERR_INVALID, "the version must be " MESSAGE_VERSION);
	else if (!str_eq(json_get_str(o, "type"), "sample"))
		err_set(err, ERR_INVALID, "the type must be sample");
	else if (!(text = json_get_str(o, "payload")))
		err_set(err, ERR_INVALID, "payload is missing");
	else if (bytes_from_b64(text, strlen(text), &payload, &n) < 0)
		err_set(err, ERR_INVALID, "payload is not base64");
	else
		return parse_object((const char *)payload, n, &values_limits, err);
	return NULL;
}

/* fn sees the values in the order of the message: the operator puts its sentinel first. */
int broker_wire_values(const char *body, size_t len, int64_t now_s, broker_wire_value_fn fn,
	void *arg, struct err *err)
{
	cleanup_json struct json_object *o = open_message(body, len, err);
	cleanup_strbuf struct strbuf entry = STRBUF_INIT;
	char expires[CLOCK_RFC3339_LEN];

	if (!o)
		return -1;
	expiration(now_s, expires);
	json_object_object_foreach (o, name, value) {
		make_entry(&entry, name, expires, value);
		if (fn(arg, name, strbuf_str(&entry), entry.len, err) < 0)
			return -1;
	}
	return 0;
}

/* Entries were written by make_entry(), so a malformed one is a bug or a damaged store. */
int broker_wire_entry_value(const char *entry, size_t len, struct strbuf *out, struct err *err)
{
	cleanup_json struct json_object *o = parse_object(entry, len, &entry_limits, err);
	struct json_object *value = NULL;

	if (!o)
		return -1;
	if (!json_object_object_get_ex(o, "value", &value))
		return err_set(err, ERR_BUG, "a stored reference value has no value");
	json_canonical(out, value);
	return 0;
}
