/* SPDX-License-Identifier: MIT */
/*
 * Somebody's kbs-config.toml that gets TLS lines: what comes out is TOML that says the same but for
 * those lines, and getting them again changes nothing. A file that can take them is not refused.
 */
#include "config.h"

#include <stdint.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/toml.h"
#include "tec/render/kbstls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SECTION "[http_server]\nsockets = []\n"
#define LINES                                                                                      \
	"# TLS configuration - Mozilla custom profile\ntls_profile = \"custom\"\n"                 \
	"tls_min_version = \"1.2\"\ntls_ciphers = [\"A\", \"B\"]\n"

static const char *const keys[] = {
	"tls_profile", "tls_min_version", "tls_max_version", "tls_ciphers", "tls_groups"};

static struct json_object *read(const char *text)
{
	struct err err = ERR_INIT;

	return toml_parse(text, strlen(text), &err);
}

/* Takes the TLS members away; how many there were, -1: there is no such table. */
static int take_tls(struct json_object *o)
{
	struct json_object *server = json_get(o, "http_server");
	int n = 0;

	if (!json_object_is_type(server, json_type_object))
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		n += json_object_object_get_ex(server, keys[i], NULL);
		json_object_object_del(server, keys[i]);
	}
	return n;
}

static void check_merged(const char *text, const char *merged)
{
	cleanup_json struct json_object *was = read(text), *now = read(merged);
	cleanup_strbuf struct strbuf again = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (!now || !str_eq(json_get_str(now, "http_server/tls_profile"), "custom"))
		DIE("no TOML, or without the lines: %s", merged);
	if (take_tls(now) < 3) /* more: keys in quotes, which stay */
		DIE("a TLS line less: %s", merged);
	if (was && take_tls(was) >= 0 && !json_object_equal(was, now))
		DIE("%s became %s", text, merged);
	if (render_kbstls_merge(merged, LINES, &again, &err) < 0 ||
		!str_eq(strbuf_str(&again), merged))
		DIE("%s: %s became %s", err.text, merged, strbuf_str(&again));
}

/* must: a file with the section in plain words, to which nothing speaks against the lines. */
static void one(const char *text, bool must)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (render_kbstls_merge(text, LINES, &out, &err) == 0)
		check_merged(text, strbuf_str(&out));
	else if (must || err.kind != ERR_INVALID)
		DIE("refused: %s: %s", err.text, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = xstrndup((const char *)data, size);
	cleanup_free char *after = xasprintf(SECTION "%s", text),
			  *before = xasprintf("%s\n" SECTION, text);
	cleanup_json struct json_object *alone = read(text), *with = read(after);

	one(text, false);
	one(after, take_tls(with) == 0);
	one(before, alone && !json_object_object_get_ex(alone, "http_server", NULL));
	return 0;
}
