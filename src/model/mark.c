/* SPDX-License-Identifier: MIT */
/*
 * Marks are short texts with single spaces. A text that deviates from this form counts for nothing:
 * an announcement with one malformed hash announces none of its hashes.
 */
#include "config.h"

#include "tec/model/mark.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/meta.h"

/* The uid must be this object's: a mark copied from another object, or sent with a create, proves
 * nothing. */
const char *model_mark(struct json_object *o, const char *annotation)
{
	const char *text = kobj_annotation(o, annotation);
	const char *uid = json_get_str(o, "metadata/uid");
	size_t len = uid ? strlen(uid) : 0;

	if (!text || len == 0 || strncmp(text, uid, len) != 0 || text[len] != ' ' ||
		text[len + 1] == '\0')
		return NULL;
	return text + len + 1;
}

char *model_mark_text(const char *uid, const char *payload)
{
	return xasprintf("%s %s", uid, payload);
}

/* Count the hashes; 0 when the text is not a list of hashes. */
static size_t count(const char *hashes)
{
	size_t len = hashes ? strlen(hashes) : 0, n = (len + 1) / (SHA256_HEX_LEN + 1);

	if (len == 0 || (len + 1) % (SHA256_HEX_LEN + 1) != 0 || n > MODEL_MARK_HASHES_MAX)
		return 0;
	for (const char *p = hashes; p < hashes + len; p += SHA256_HEX_LEN + 1) {
		size_t hex = strspn(p, "0123456789abcdef");

		if (hex != SHA256_HEX_LEN || (p[hex] != ' ' && p + hex < hashes + len))
			return 0;
	}
	return n;
}

/* All hashes have one length, so entry i starts at a fixed offset. */
bool model_mark_announces(const char *hashes, const char *hex)
{
	size_t n = hex && strlen(hex) == SHA256_HEX_LEN ? count(hashes) : 0;

	for (size_t i = 0; i < n; i++)
		if (memcmp(hashes + i * (SHA256_HEX_LEN + 1), hex, SHA256_HEX_LEN) == 0)
			return true;
	return false;
}

/* A malformed announcement is replaced: it announced nothing. */
char *model_mark_announce(const char *hashes, const char *hex)
{
	size_t n = count(hashes);

	if (n == MODEL_MARK_HASHES_MAX)
		hashes += SHA256_HEX_LEN + 1;
	return n ? xasprintf("%s %s", hashes, hex) : xstrdup(hex);
}
