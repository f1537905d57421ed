/* SPDX-License-Identifier: MIT */
/*
 * One parser for the configuration and for the JWE header. The header holds what decryption needs,
 * so it has no registration. An unusable value is refused when it is read, not when a machine
 * boots.
 */
#include "config.h"

#include "tec/attest/pin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/attest/flow.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"
#include "tec/pki/cert.h"
#include "tec/rats/initdata.h"

#define URL_MAX     2048
#define RETRIES_MAX 1000000
#define KEY_LEN     32

static const struct json_limits limits = {.bytes = 256u << 10, .depth = 16, .tokens = 4096};

static void server_fini(struct attest_server *s)
{
	free(s->url);
	free(s->cert);
	*s = (struct attest_server){NULL, NULL};
}

void attest_config_fini(struct attest_config *c)
{
	for (size_t i = 0; i < c->n_servers; i++)
		server_fini(&c->server[i]);
	server_fini(&c->registration);
	free(c->path);
	free(c->init_data);
	free(c->uuid);
	memset(c, 0, sizeof(*c));
}

/* ---- members */

/* Refuse user information, queries and fragments: paths are appended to the URL. */
bool attest_url_valid(const char *url)
{
	const char *host = str_starts(url, "https://")  ? url + 8
			   : str_starts(url, "http://") ? url + 7
							: NULL;

	if (!host || strlen(url) > URL_MAX || !*host || *host == '/' || *host == ':')
		return false;
	for (const char *p = host; *p; p++)
		if (*p <= ' ' || *p >= 0x7f || strchr("@?#\\\"<>", *p))
			return false;
	return true;
}

/* Read one server. `what` is its field path, for errors. */
static int read_server(
	struct json_object *o, const char *what, struct attest_server *out, struct err *err)
{
	const char *url = json_get_str(o, "url"), *cert = json_get_str(o, "cert");

	if (!json_object_is_type(o, json_type_object) || !url)
		return err_set(err, ERR_INVALID, "%s must be an object with a url", what);
	if (!attest_url_valid(url))
		return err_set(err, ERR_INVALID,
			"%s.url must be http://HOST[:PORT] or https://HOST[:PORT]: %s", what,
			log_esc(url));
	if (json_get(o, "cert") && !cert)
		return err_set(err, ERR_INVALID, "%s.cert must be a string", what);
	if (cert && *cert && pki_cert_read_bundle(cert, strlen(cert), NULL, NULL, err) < 0)
		return err_wrap(err, "%s.cert must be empty or a PEM certificate", what);
	if (cert && *cert && !str_starts(url, "https://"))
		return err_set(err, ERR_INVALID,
			"%s has a cert, so its url must begin with https://", what);
	out->url = xstrdup(url);
	out->cert = cert && *cert ? xstrdup(cert) : NULL;
	return 0;
}

/* Read the list of servers. n_servers grows first, so that attest_config_fini() frees a half-read
 * one. */
static int read_servers(struct json_object *o, struct attest_config *out, struct err *err)
{
	struct json_object *list = json_get_arr(o, "servers");
	size_t n = list ? json_object_array_length(list) : 0;
	char what[32];

	if (n == 0 || n > ATTEST_SERVERS_MAX)
		return err_set(err, ERR_INVALID, "servers must be a list of 1 to %u servers",
			ATTEST_SERVERS_MAX);
	for (size_t i = 0; i < n; i++) {
		snprintf(what, sizeof(what), "servers[%zu]", i);
		out->n_servers = i + 1;
		if (read_server(json_object_array_get_idx(list, i), what, &out->server[i], err) < 0)
			return -1;
	}
	return 0;
}

/* Read the optional registration. Its server has the same members as the others. */
static int read_registration(struct json_object *o, struct attest_config *out, struct err *err)
{
	struct json_object *r = json_get(o, "attestation_key/registration");
	const char *uuid = json_get_str(r, "uuid");

	if (!r)
		return 0;
	if (read_server(r, "attestation_key.registration", &out->registration, err) < 0)
		return -1;
	if (json_get(r, "uuid") && (!uuid || !uuid_valid(uuid, strlen(uuid))))
		return err_set(err, ERR_INVALID,
			"attestation_key.registration.uuid must be a lower-case UUID");
	out->uuid = xstrdup(uuid);
	return 0;
}

/* ---- init-data */

/* Write a basic string; control characters are escaped as TOML requires. */
static void toml_string(struct strbuf *out, const char *s)
{
	strbuf_addc(out, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			strbuf_addf(out, "\\%c", c);
		else if (c == '\n')
			strbuf_adds(out, "\\n");
		else if (c < ' ' || c == 0x7f)
			strbuf_addf(out, "\\u%04X", c);
		else
			strbuf_addc(out, (char)c);
	}
	strbuf_addc(out, '"');
}

/* Render init-data as TOML with sorted keys: PCR 8 holds the digest of this text, so the same
 * configuration must always produce the same text. */
char *attest_init_data(const char *json, size_t len, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(json, len, &limits, err);
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	cleanup_free const char **names = NULL;
	size_t n = 0;

	if (!o)
		return NULL;
	if (!json_object_is_type(o, json_type_object))
		return err_null(err, ERR_INVALID, "must be a JSON object of strings");
	names = json_names(o, &n);
	strbuf_adds(&out, "version = \"0.1.0\"\nalgorithm = \"sha256\"\n\n[data]\n");
	for (size_t i = 0; i < n; i++) {
		struct json_object *v = json_object_object_get(o, names[i]);
		size_t bare = strspn(names[i],
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

		if (!json_object_is_type(v, json_type_string) || !*names[i])
			return err_null(
				err, ERR_INVALID, "member %s must be a string", log_esc(names[i]));
		/* A bare key where TOML allows one, else a quoted key. */
		if (names[i][bare])
			toml_string(&out, names[i]);
		else
			strbuf_adds(&out, names[i]);
		strbuf_adds(&out, " = ");
		toml_string(&out, json_object_get_string(v));
		strbuf_addc(&out, '\n');
	}
	return strbuf_steal(&out);
}

/* Read initdata: a JSON object in a configuration, the rendered TOML in a JWE header. */
static int read_init_data(
	struct json_object *o, bool toml, struct attest_config *out, struct err *err)
{
	const char *text = json_get_str(o, "initdata");

	if (!json_get(o, "initdata") || (text && !*text))
		return 0;
	if (!text)
		return err_set(err, ERR_INVALID, "initdata must be a string");
	if (!toml)
		out->init_data = attest_init_data(text, strlen(text), err);
	else if (rats_initdata_check(text, strlen(text), err) == 0)
		out->init_data = xstrdup(text);
	return out->init_data ? 0 : err_wrap(err, "initdata");
}

/* ---- the whole */

/* Read what configuration and header have in common: the servers, the path of the resource, num_retries.
 * Without num_retries a machine retries forever, so that it boots once it is approved. */
static int read_common(struct json_object *o, struct attest_config *out, struct err *err)
{
	const char *path = json_get_str(o, "path");
	struct json_object *n = json_get(o, "num_retries");
	int64_t retries = json_get_int(o, "num_retries", -1);

	if (read_servers(o, out, err) < 0)
		return -1;
	if (!path)
		return err_set(err, ERR_INVALID,
			"path is missing: specify a resource such as default/ID/root");
	while (*path == '/') /* some tools write "/default/ID/root" */
		path++;
	if (!attest_path_valid(path))
		return err_set(err, ERR_INVALID,
			"path must be REPOSITORY/TYPE/TAG with letters, digits and .-_: %s",
			log_esc(path));
	out->path = xstrdup(path);
	if (n && (retries < 0 || retries > RETRIES_MAX))
		return err_set(
			err, ERR_INVALID, "num_retries must be a number from 0 to %u", RETRIES_MAX);
	out->limited = n;
	out->retries = n ? (uint32_t)retries : 0;
	return 0;
}

/* Parse an object. out is empty afterwards, also on failure. */
static struct json_object *parse(
	const char *text, size_t len, struct attest_config *out, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(text, len, &limits, err);

	memset(out, 0, sizeof(*out));
	if (o && !json_object_is_type(o, json_type_object))
		return err_null(err, ERR_INVALID, "must be a JSON object");
	return steal_ptr(&o);
}

int attest_config_read(const char *text, size_t len, struct attest_config *out, struct err *err)
{
	cleanup_json struct json_object *o = parse(text, len, out, err);

	if (!o || read_common(o, out, err) < 0 || read_init_data(o, false, out, err) < 0)
		return -1;
	return read_registration(o, out, err);
}

/* Return the first member of o other than these two, or NULL. */
static const char *other_member(struct json_object *o, const char *a, const char *b)
{
	json_each (o, name, value)
		if (!str_eq(name, a) && !str_eq(name, b))
			return name;
	return NULL;
}

/* Other members are refused here: someone who passes a whole configuration expects all of it to
 * apply. */
int attest_config_read_servers(
	const char *text, size_t len, struct attest_config *out, struct err *err)
{
	cleanup_json struct json_object *o = parse(text, len, out, err);
	const char *other;

	if (!o)
		return -1;
	other = other_member(o, "servers", NULL);
	if (other)
		return err_set(err, ERR_INVALID,
			"unexpected member %.80s; a list of servers has only the member servers",
			log_esc(other));
	if (read_servers(o, out, err) < 0)
		return -1;
	for (size_t i = 0; i < out->n_servers; i++) {
		other = other_member(json_at(json_get_arr(o, "servers"), i), "url", "cert");
		if (other)
			return err_set(err, ERR_INVALID,
				"servers[%zu]: unexpected member %.80s; a server has only url and cert",
				i, log_esc(other));
	}
	return 0;
}

int attest_config_read_header(
	struct json_object *header, struct attest_config *out, struct err *err)
{
	struct json_object *o = json_get_obj(header, "clevis");

	memset(out, 0, sizeof(*out));
	if (!o || !str_eq(json_get_str(o, "pin"), "trustee"))
		return err_set(err, ERR_INVALID, "not encrypted with the clevis pin trustee");
	return read_common(o, out, err) < 0 ? -1 : read_init_data(o, true, out, err);
}

char *attest_config_write_header(const struct attest_config *c)
{
	cleanup_json struct json_object *o = json_obj();
	struct json_object *clevis = json_obj(), *servers = json_arr();

	for (size_t i = 0; i < c->n_servers; i++) {
		const char *cert = c->server[i].cert ? c->server[i].cert : "";

		json_push(servers, json_add_str(json_add_str(json_obj(), "url", c->server[i].url),
					   "cert", cert));
	}
	json_add_str(clevis, "pin", "trustee");
	json_add(clevis, "servers", servers);
	json_add_str(clevis, "path", c->path);
	if (c->limited)
		json_add_int(clevis, "num_retries", c->retries);
	json_add(clevis, "initdata", c->init_data ? json_str(c->init_data) : NULL);
	/* clevis luks list and report expect a member with the name of the pin. */
	json_add(clevis, "trustee", json_add_str(json_obj(), "path", c->path));
	json_add_str(o, "alg", "dir");
	json_add_str(o, "enc", "A256GCM");
	json_add(o, "clevis", clevis);
	return json_text(o);
}

/* Wipe the parsed JSON before it is freed: it holds the key. */
struct secret *attest_pin_key(const char *resource, size_t len, struct err *err)
{
	struct err bad = ERR_INIT;
	struct json_object *o = json_parse(resource, len, &json_limits_public, &bad);
	struct secret *key = NULL;
	const char *text =
		str_eq(json_get_str(o, "key_type"), "oct") ? json_get_str(o, "key") : NULL;

	if (text && strlen(text) == KEY_LEN)
		key = secret_new_copy(text, KEY_LEN);
	else
		err_set(err, ERR_INVALID,
			"the resource is not {\"key_type\":\"oct\",\"key\":\"...\"} with a key of %u characters",
			KEY_LEN);
	json_wipe(o);
	json_object_put(o);
	return key;
}
