/* SPDX-License-Identifier: MIT */
/*
 * The Ignition response: members in a fixed order, so that equal input gives equal bytes. An
 * address with a configured Secret is never handed out as http, even if the certificate is
 * missing. The Accept header is parsed by hand (RFC 9110 section 12.5.1); malformed parts are
 * ignored.
 */
#include "config.h"

#include "tec/render/ignition.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "render_internal.h"
#include "tec/base/json.h"

#define MINOR_MIN 2 /* 3.2.0: the first version with clevis "custom" */
#define MINOR_MAX 6

/* ---- Accept */

/* A part of the header, not NUL-terminated. */
struct span {
	const char *p;
	size_t len;
};

/* Optional white space (RFC 9110 section 5.6.3). */
static struct span trim(struct span s)
{
	while (s.len > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
		s.p++, s.len--;
	while (s.len > 0 && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* Take the text up to `sep` outside quotes, trimmed; s continues after it. */
static struct span cut(struct span *s, char sep)
{
	struct span part = {s->p, 0};
	bool quoted = false;
	size_t i = 0;

	for (; i < s->len && (quoted || s->p[i] != sep); i++) {
		if (s->p[i] == '"')
			quoted = !quoted;
	}
	part.len = i;
	if (i < s->len)
		i++;
	s->p += i;
	s->len -= i;
	return trim(part);
}

static bool is(struct span s, const char *text)
{
	return s.len == strlen(text) && strncasecmp(s.p, text, s.len) == 0;
}

/* Take decimal digits up to a dot or the end; -1: no digits, or more than 6. */
static int take_number(struct span *s)
{
	int n = 0, digits = 0;

	while (s->len > 0 && s->p[0] >= '0' && s->p[0] <= '9') {
		if (++digits > 6)
			return -1;
		n = n * 10 + (s->p[0] - '0');
		s->p++, s->len--;
	}
	if (digits == 0)
		return -1;
	if (s->len > 0 && s->p[0] == '.')
		s->p++, s->len--;
	return n;
}

/* The highest minor version of 3.x that a client naming this version can read; -1: none. A
 * client of "3.N.0-experimental" reads 3.(N-1).0 but not yet 3.N.0. */
static int readable_minor(struct span v)
{
	int major, minor;

	/* A parameter value may be a quoted string (RFC 9110 section 5.6.6). */
	if (v.len >= 2 && v.p[0] == '"' && v.p[v.len - 1] == '"')
		v.p++, v.len -= 2;
	major = take_number(&v);
	minor = take_number(&v);
	if (major != 3 || minor < 0 || take_number(&v) < 0)
		return -1;
	if (v.len == 0)
		return minor;
	return is(v, "-experimental") ? minor - 1 : -1;
}

/* A named version wins over a wildcard: Ignition sends both. */
int render_ignition_version(const char *accept)
{
	struct span all = {accept, accept ? strlen(accept) : 0};
	bool named = false, any = false;
	int best = -1;

	all = trim(all);
	if (all.len == 0)
		return MINOR_MAX;
	while (all.len > 0) {
		struct span range = cut(&all, ',');
		struct span type = cut(&range, ';');
		bool ours = is(type, "application/vnd.coreos.ignition+json");
		bool acceptable = true, versioned = false;
		int minor = -1;

		while (range.len > 0) {
			struct span value = cut(&range, ';');
			struct span name = cut(&value, '=');

			value = trim(value);
			/* q=0 in one of its spellings ("0", "0.", "0.000"): not acceptable. */
			if (is(name, "q") && value.len && value.p[0] == '0' &&
				(value.len == 1 || value.p[1] == '.') &&
				(value.len < 3 || strspn(value.p + 2, "0") >= value.len - 2))
				acceptable = false;
			if (ours && is(name, "version")) {
				versioned = true;
				minor = readable_minor(value);
			}
		}
		named |= versioned;
		any |= !versioned && acceptable &&
		       (ours || is(type, "*/*") || is(type, "application/*"));
		if (versioned && acceptable && minor > best)
			best = minor;
	}
	if (!named)
		return any ? MINOR_MAX : -1;
	/* All named versions are too old for this document. */
	if (best < MINOR_MIN)
		return -1;
	return best < MINOR_MAX ? best : MINOR_MAX;
}

/* ---- the document */

/* https as soon as a Secret is configured: a missing certificate must not downgrade to http. */
static struct json_object *url(bool tls, const char *addr, const char *path)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	strbuf_addf(&b, "%s://%s%s", tls ? "https" : "http", addr, path);
	return json_object_new_string_len(strbuf_str(&b), (int)b.len);
}

/* cert is "" for plain http, and while the configured Secret has no certificate yet. */
static void add_server(
	struct json_object *servers, const char *addr, const char *secret, const char *ca)
{
	struct json_object *s = json_obj();

	json_add(s, "url", url(secret || ca, addr, ""));
	json_push(servers, json_add_str(s, "cert", ca ? ca : ""));
}

/* The order is the order in which the pin tries the servers. */
struct json_object *render_ignition_servers(
	const struct model_cluster *c, const struct render_ignition_ca *ca)
{
	struct json_object *servers = json_arr();

	assert(c->public_trustee_addr);
	add_server(servers, c->public_trustee_addr, c->trustee_secret, ca->trustee);
	for (unsigned i = 0; i < c->n_servers; i++)
		add_server(servers, c->server_addr[i], c->server_ca[i], ca->server[i]);
	return servers;
}

/* The configuration of the clevis pin, embedded in the LUKS token by Ignition. */
static struct json_object *pin_config(
	const struct model_cluster *c, const char *uuid, const struct render_ignition_ca *ca)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	struct json_object *o = json_obj();

	strbuf_addf(&path, "default/%s/root", uuid);
	json_add(o, "servers", render_ignition_servers(c, ca));
	json_add_str(o, "path", strbuf_str(&path));
	if (c->public_ak_addr) {
		struct json_object *r = json_obj();

		json_add(r, "url", url(c->ak_secret || ca->ak, c->public_ak_addr, "/register-ak"));
		json_add_str(r, "uuid", uuid);
		json_add_str(r, "cert", ca->ak ? ca->ak : "");
		json_add(o, "attestation_key", json_add(json_obj(), "registration", r));
	}
	return o;
}

/* etc/ignition.yaml is the frame; version and pin configuration are filled in. */
void render_ignition(const struct model_cluster *c, const char *uuid, int minor,
	const struct render_ignition_ca *ca, struct strbuf *out)
{
	cleanup_json struct json_object *o = render_template("ignition.yaml"), *pin = NULL;
	cleanup_free char *config = NULL, *text = NULL;
	struct json_object *luks = json_at(json_get_arr(o, "storage/luks"), 0);
	char version[16];

	assert(minor >= MINOR_MIN && minor <= MINOR_MAX);
	pin = pin_config(c, uuid, ca);
	config = json_text(pin);
	snprintf(version, sizeof(version), "3.%d.0", minor);
	json_add_str(json_get_obj(o, "ignition"), "version", version);
	/* The pin's configuration is JSON inside a JSON string. */
	json_add_str(json_get_obj(luks, "clevis/custom"), "config", config);
	text = json_text(o);
	strbuf_adds(out, text);
}

/* Every Ignition that supports the pin reads 3.2.0; the merged document has a version of its
 * own. */
struct json_object *render_ignition_first(const char *url, const char *ca)
{
	struct json_object *ignition = json_add_str(json_obj(), "version", "3.2.0");
	struct json_object *merge = json_push(json_arr(), json_add_str(json_obj(), "source", url));

	json_add(ignition, "config", json_add(json_obj(), "merge", merge));
	if (ca) {
		cleanup_strbuf struct strbuf data = STRBUF_INIT;
		struct json_object *all = json_arr();

		strbuf_adds(&data, "data:,");
		/* A data URL (RFC 2397): PEM contains characters that need encoding. */
		str_percent_encode(&data, ca, strlen(ca));
		json_push(all, json_add_str(json_obj(), "source", strbuf_str(&data)));
		json_add(ignition, "security",
			json_add(json_obj(), "tls",
				json_add(json_obj(), "certificateAuthorities", all)));
	}
	return json_add(json_obj(), "ignition", ignition);
}
