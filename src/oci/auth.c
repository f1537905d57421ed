/* SPDX-License-Identifier: MIT */
/*
 * Credentials are copied from json-c's strings into secrets immediately, and the whole tree is
 * wiped before it is freed. A configuration key is compared as text: the host exactly, the path at
 * component boundaries. An unreadable entry is an error if it is the matching one: sending no
 * credentials instead would be reported as a wrong password.
 */
#include "config.h"

#include "tec/oci/auth.h"

#include <string.h>
#include <strings.h>

#include "tec/base/json.h"
#include "tec/base/str.h"

#define TOKEN_MIN_S 60u /* the specification's minimum */
#define TOKEN_MAX_S 3600u

static const struct json_limits config_limits = {
	.bytes = SECRET_MAX_LEN, .depth = 8, .tokens = 8192};
static const struct json_limits token_limits = {
	.bytes = SECRET_MAX_LEN, .depth = 8, .tokens = 1024};

static void wiped_json_cleanup(struct json_object **o)
{
	json_wipe(*o);
	json_object_put(*o);
}
#define cleanup_wiped_json __attribute__((cleanup(wiped_json_cleanup)))

void oci_cred_free(struct oci_cred *c)
{
	if (!c)
		return;
	secret_free(c->basic);
	secret_free(c->identity);
	free(c);
}

/* ---- finding the entry ---- */

/* Docker Hub has three historical names, which count as one host. */
static bool is_hub(const char *host, size_t len)
{
	static const char *const names[] = {"docker.io", "index.docker.io", "registry-1.docker.io"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (len == strlen(names[i]) && strncasecmp(host, names[i], len) == 0)
			return true;
	return false;
}

/* Return the length of the key's path if the key covers host and repository, otherwise -1. A longer
 * path is a better match. */
static int key_match(const char *key, const char *host, const char *repository)
{
	size_t host_len, path_len;
	const char *path;

	if (strncasecmp(key, "https://", 8) == 0)
		key += 8;
	else if (strncasecmp(key, "http://", 7) == 0)
		key += 7;
	host_len = strcspn(key, "/");
	if (!(host_len == strlen(host) && strncasecmp(key, host, host_len) == 0) &&
		!(is_hub(key, host_len) && is_hub(host, strlen(host))))
		return -1;
	path = key + host_len;
	path += *path == '/';
	path_len = strlen(path);
	while (path_len && path[path_len - 1] == '/')
		path_len--;
	/* docker login wrote "/v1/" or "/v2/" for a whole registry. */
	if (path_len == 2 && path[0] == 'v' && (path[1] == '1' || path[1] == '2'))
		path_len = 0;
	if (!path_len)
		return 0;
	if (strncmp(path, repository, path_len) != 0 ||
		(repository[path_len] != '\0' && repository[path_len] != '/'))
		return -1;
	return (int)path_len;
}

/* ---- reading credentials ---- */

/* Decode base64 with or without padding, as docker and podman write it. docker appends NUL bytes,
 * which are removed. */
static struct secret *decode_pair(const char *auth)
{
	size_t len = strlen(auth), pad = (4 - len % 4) % 4;
	cleanup_secret struct secret *text = secret_new(len + 3), *raw = NULL;

	memcpy(secret_bytes(text), auth, len);
	memset(secret_bytes(text) + len, '=', pad);
	raw = secret_from_b64((const char *)secret_peek(text), len + pad);
	if (!raw)
		return NULL;
	len = secret_len(raw);
	while (len && secret_peek(raw)[len - 1] == '\0')
		len--;
	return len ? secret_new_copy(secret_peek(raw), len) : NULL;
}

/* Read auth, or else username and password, as the value of an Authorization header. An entry with
 * neither leaves c empty. */
static int take_pair(struct json_object *entry, struct oci_cred *c, struct err *err)
{
	static const char prefix[] = "Basic ";
	const char *auth = json_get_str(entry, "auth"), *user = json_get_str(entry, "username");
	const char *password = json_get_str(entry, "password");
	cleanup_secret struct secret *pair = NULL, *b64 = NULL;
	const uint8_t *colon;
	size_t n;

	if (auth && *auth) {
		pair = decode_pair(auth);
		if (!pair)
			return err_set(err, ERR_INVALID, "auth is not base64 of user:password");
	} else if (user && *user) {
		n = strlen(user);
		if (strchr(user, ':'))
			return err_set(err, ERR_INVALID, "the username contains a colon");
		pair = secret_new(n + 1 + (password ? strlen(password) : 0));
		memcpy(secret_bytes(pair), user, n);
		secret_bytes(pair)[n] = ':';
		if (password)
			memcpy(secret_bytes(pair) + n + 1, password, strlen(password));
	} else {
		return 0;
	}
	colon = memchr(secret_peek(pair), ':', secret_len(pair));
	if (!colon || colon == secret_peek(pair))
		return err_set(err, ERR_INVALID, "auth is not base64 of user:password");
	if (secret_len(pair) > SECRET_MAX_LEN / 2) /* base64 adds a third */
		return err_set(err, ERR_INVALID, "the credentials are too large");
	b64 = secret_to_b64(pair);
	c->basic = secret_new(sizeof(prefix) + secret_len(b64));
	memcpy(secret_bytes(c->basic), prefix, sizeof(prefix) - 1);
	memcpy(secret_bytes(c->basic) + sizeof(prefix) - 1, secret_peek(b64), secret_len(b64));
	return 0;
}

/* Read an entry: an identity token takes precedence over a password. */
static int take_entry(struct json_object *entry, struct oci_cred **out, struct err *err)
{
	cleanup_oci_cred struct oci_cred *c = xcalloc(1, sizeof(*c));
	const char *identity;

	if (!json_object_is_type(entry, json_type_object))
		return err_set(err, ERR_INVALID, "not a JSON object");
	identity = json_get_str(entry, "identitytoken");
	if (identity && *identity)
		c->identity = secret_new_copy(identity, strlen(identity) + 1);
	else if (take_pair(entry, c, err) != 0)
		return -1;
	/* {} means that a credential helper has them; helpers are not supported. */
	*out = c->basic || c->identity ? steal_ptr(&c) : NULL;
	return 0;
}

/* Search one configuration. Replace *out if it has a better match than *best; the earlier one of
 * equals stays. */
static int search(struct json_object *o, const char *host, const char *repository, int *best,
	struct oci_cred **out, struct err *err)
{
	struct json_object *auths = json_get_obj(o, "auths"), *found = NULL;
	struct oci_cred *c = NULL;
	bool better = false;

	if (!json_object_is_type(o, json_type_object))
		return err_set(err, ERR_INVALID, "not a JSON object");
	json_object_object_foreach (auths ? auths : o, key, entry) {
		int n = key_match(key, host, repository);

		if (n <= *best)
			continue;
		*best = n;
		found = entry;
		better = true;
	}
	if (!better)
		return 0;
	if (take_entry(found, &c, err) != 0)
		return err_wrap(err, "the entry of %s", host);
	oci_cred_free(*out);
	*out = c;
	return 0;
}

/* All configurations are parsed, even after a match: a later one may have a longer path. */
int oci_cred_find(const struct secret *const *configs, size_t n, const char *host,
	const char *repository, struct oci_cred **out, struct err *err)
{
	cleanup_oci_cred struct oci_cred *found = NULL;
	int best = -1;

	*out = NULL;
	for (size_t i = 0; i < n; i++) {
		cleanup_wiped_json struct json_object *o =
			json_parse((const char *)secret_peek(configs[i]), secret_len(configs[i]),
				&config_limits, err);

		if (!o || search(o, host, repository, &best, &found, err) != 0)
			return err_wrap(err, "registry credentials");
	}
	*out = steal_ptr(&found);
	return 0;
}

/* ---- a configuration with one credential ---- */

static uint8_t *put(uint8_t *p, const void *bytes, size_t len)
{
	memcpy(p, bytes, len);
	return p + len;
}

/* Write into a buffer for the worst case of escaping, then copy the used part: a secret has a fixed
 * size. */
struct secret *oci_cred_config(
	const struct oci_cred *c, const char *host, const char *repository, struct err *err)
{
	static const char tail[] = "\"}}}", hex[] = "0123456789abcdef";
	const struct secret *from = c->identity ? c->identity : c->basic;
	size_t skip = c->identity ? 0 : strlen("Basic ");
	size_t len = secret_len(from) - 1 - skip; /* without the NUL byte */
	cleanup_free char *head = xasprintf("{\"auths\":{\"%s/%s\":{\"%s\":\"", host, repository,
		c->identity ? "identitytoken" : "auth");
	size_t room = strlen(head) + 6 * len + strlen(tail);
	cleanup_secret struct secret *all = NULL;
	uint8_t *p;

	if (room > SECRET_MAX_LEN) {
		err_set(err, ERR_INVALID, "the credentials of %s are too large", host);
		return NULL;
	}
	all = secret_new(room);
	p = put(secret_bytes(all), head, strlen(head));
	/* The content of a JSON string. json-c would leave copies of the secret in its buffers. */
	for (const uint8_t *s = secret_peek(from) + skip, *end = s + len; s < end; s++) {
		if (*s >= 0x20 && *s != '"' && *s != '\\') {
			*p++ = *s;
			continue;
		}
		p = put(p, "\\u00", 4);
		*p++ = (uint8_t)hex[*s >> 4];
		*p++ = (uint8_t)hex[*s & 15];
	}
	p = put(p, tail, strlen(tail));
	return secret_new_copy(secret_peek(all), (size_t)(p - secret_peek(all)));
}

/* ---- the challenge ---- */

/*
 * WWW-Authenticate is a list of challenges, and each challenge has a list of parameters; both use
 * the same comma. A word followed by '=' is a parameter, any other word starts the next challenge.
 * Malformed input is refused: after a misread realm, a password would go to the wrong server.
 */
struct reader {
	const char *p, *end;
};

/* RFC 9110, section 5.6.2. */
static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* RFC 9110, section 11.2. */
static bool is_token68(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~+/=", c));
}

static void skip_blanks(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
		r->p++;
}

static size_t word(struct reader *r, bool (*in)(char c))
{
	const char *start = r->p;

	while (r->p < r->end && in(*r->p))
		r->p++;
	return (size_t)(r->p - start);
}

static bool at(const struct reader *r, char c)
{
	return r->p < r->end && *r->p == c;
}

/* Read a token or a quoted string. Values that are too long or unprintable are refused. out NULL:
 * skip. */
static int value(struct reader *r, char *out, size_t cap, struct err *err)
{
	bool quoted = at(r, '"');
	size_t n = 0;

	r->p += quoted;
	for (; r->p < r->end; r->p++) {
		char c = *r->p;

		if (quoted ? c == '"' : !is_token(c))
			break;
		if (quoted && c == '\\') {
			if (++r->p == r->end)
				break;
			c = *r->p;
		}
		if ((unsigned char)c < 0x20 || c == 0x7f)
			return err_set(err, ERR_INVALID,
				"the authentication challenge contains control characters");
		if (out && n + 1 >= cap)
			return err_set(
				err, ERR_INVALID, "the authentication challenge is too long");
		if (out)
			out[n] = c;
		n++;
	}
	if (quoted && !at(r, '"'))
		return err_set(
			err, ERR_INVALID, "the authentication challenge lacks a closing quote");
	r->p += quoted;
	if (!quoted && n == 0)
		return err_set(err, ERR_INVALID,
			"the authentication challenge has a parameter without a value");
	if (out)
		out[n] = '\0';
	return 0;
}

/* Return the buffer for a parameter of a Bearer challenge, or NULL to ignore the parameter. */
static char *place(struct oci_challenge *c, const char *name, size_t len, size_t *cap)
{
	static const char *const names[] = {"realm", "service", "scope"};
	char *const to[] = {c->realm, c->service, c->scope};
	const size_t caps[] = {sizeof(c->realm), sizeof(c->service), sizeof(c->scope)};

	for (size_t i = 0; i < 3; i++)
		if (len == strlen(names[i]) && strncasecmp(name, names[i], len) == 0) {
			*cap = caps[i];
			return to[i];
		}
	return NULL;
}

/* Read the value of a parameter; r is at the '='. c NULL: the challenge is ignored. */
static int parameter(
	struct reader *r, struct oci_challenge *c, const char *name, size_t len, struct err *err)
{
	size_t cap = 0;
	char *to = c ? place(c, name, len, &cap) : NULL;

	r->p++;
	skip_blanks(r);
	if (to && *to)
		return err_set(
			err, ERR_INVALID, "the authentication challenge repeats a parameter");
	return value(r, to, cap, err);
}

/* Skip "abc==" in "Negotiate abc==". '=' may occur only at its end, which tells it from a
 * parameter. */
static void skip_token68(struct reader *r)
{
	struct reader ahead = *r;
	const char *start, *stop;

	skip_blanks(&ahead);
	start = ahead.p;
	stop = start + word(&ahead, is_token68);
	while (stop > start && stop[-1] == '=')
		stop--;
	skip_blanks(&ahead);
	if ((ahead.p == ahead.end || *ahead.p == ',') &&
		!memchr(start, '=', (size_t)(stop - start)))
		*r = ahead;
}

/* Basic is only noted; of several Bearer challenges the first counts. */
int oci_challenge_parse(const char *text, size_t len, struct oci_challenge *out, struct err *err)
{
	struct reader r = {text, text + len};
	struct oci_challenge *kept = NULL; /* out while the first Bearer is read */
	bool scheme = false;

	memset(out, 0, sizeof(*out));
	for (;;) {
		struct reader ahead;
		const char *name;
		size_t n;

		while (at(&r, ',') || at(&r, ' ') || at(&r, '\t'))
			r.p++;
		if (r.p == r.end)
			break;
		name = r.p;
		n = word(&r, is_token);
		ahead = r;
		skip_blanks(&ahead);
		if (n && scheme && at(&ahead, '=')) {
			r = ahead;
			if (parameter(&r, kept, name, n, err) != 0)
				return -1;
			skip_blanks(&r);
		} else if (n) {
			scheme = true;
			out->basic = out->basic || (n == 5 && strncasecmp(name, "Basic", 5) == 0);
			kept = n == 6 && strncasecmp(name, "Bearer", 6) == 0 && !out->bearer ? out
											     : NULL;
			out->bearer = out->bearer || kept;
			skip_token68(&r);
			if (at(&r, ' ') || at(&r, '\t'))
				continue; /* its first parameter */
		}
		if (!n || (r.p < r.end && *r.p != ','))
			return err_set(
				err, ERR_INVALID, "the authentication challenge is malformed");
	}
	if (out->bearer && !*out->realm)
		return err_set(err, ERR_INVALID, "the Bearer challenge has no realm");
	return 0;
}

/* ---- the token server's answer ---- */

/* The token is sent in a header, so blanks and control characters are refused. */
int oci_token_parse(const char *text, size_t len, struct oci_token *out, struct err *err)
{
	cleanup_wiped_json struct json_object *o = json_parse(text, len, &token_limits, err);
	const char *token;
	int64_t s;

	memset(out, 0, sizeof(*out));
	if (!o) { /* json-c's position would reveal what another server's page contains */
		err_clear(err);
		return err_set(err, ERR_INVALID, "the token server's answer is not JSON");
	}
	token = json_get_str(o, "token");
	if (!token || !*token)
		token = json_get_str(o, "access_token");
	if (!token || !*token)
		return err_set(
			err, ERR_INVALID, "the token server's answer does not contain a token");
	for (const char *p = token; *p; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
			return err_set(err, ERR_INVALID,
				"the token server's token contains blanks or control characters");
	s = json_get_int(o, "expires_in", TOKEN_MIN_S);
	out->valid_s = s < TOKEN_MIN_S ? TOKEN_MIN_S : s > TOKEN_MAX_S ? TOKEN_MAX_S : (uint32_t)s;
	out->token = secret_new_copy(token, strlen(token) + 1);
	return 0;
}
