/* SPDX-License-Identifier: MIT */
/* A parameter that does not fit its buffer cannot have a known value; a type that does not fit is
 * skipped with its range. */
#include "config.h"

#include "tec/apihttp/negotiation.h"

#include <string.h>
#include <strings.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

/* Copy the value of a parameter without its quotes. A value that does not fit cannot be a known one,
 * and becomes "". */
static void copy(char *out, size_t size, const char *from, size_t len)
{
	bool quoted = len >= 2 && from[0] == '"' && from[len - 1] == '"';

	from += quoted;
	len -= quoted ? 2 : 0;
	if (len >= size)
		len = 0;
	memcpy(out, from, len);
	out[len] = '\0';
}

/* Read one parameter, such as "as=Table". False: it is a q of zero. */
static bool take_param(const char *p, size_t n, struct apihttp_media *out)
{
	const char *eq = memchr(p, '=', n), *value = eq ? eq + 1 : "";
	size_t name = eq ? (size_t)(eq - p) : n, len = eq ? n - name - 1 : 0;

	if (name == 2 && strncasecmp(p, "as", 2) == 0)
		copy(out->as, sizeof(out->as), value, len);
	else if (name == 1 && (*p == 'g' || *p == 'G'))
		copy(out->group, sizeof(out->group), value, len);
	else if (name == 1 && (*p == 'v' || *p == 'V'))
		copy(out->version, sizeof(out->version), value, len);
	else if (name == 1 && (*p == 'q' || *p == 'Q'))
		return len == 0 || strspn(value, "0.") < len;
	return true;
}

/* Read one media range with its parameters. False: the client does not accept it. */
static bool read_range(const char *p, size_t n, struct apihttp_media *out)
{
	bool first = true, wanted = true;

	*out = (struct apihttp_media){.type = ""};
	for (size_t at = 0; at <= n; first = false) {
		const char *semicolon = memchr(p + at, ';', n - at), *part = p + at;
		size_t len = semicolon ? (size_t)(semicolon - part) : n - at;

		at += len + 1;
		for (; len > 0 && (*part == ' ' || *part == '\t'); len--)
			part++;
		while (len > 0 && (part[len - 1] == ' ' || part[len - 1] == '\t'))
			len--;
		if (first)
			copy(out->type, sizeof(out->type), part, len);
		else
			wanted &= take_param(part, len, out);
	}
	return wanted && out->type[0];
}

/* Skips ranges that the client does not accept, so every result is one that it does. */
bool apihttp_negotiation_next(const char **p, struct apihttp_media *out)
{
	while (**p) {
		const char *range = *p;
		size_t n = strcspn(range, ",");

		*p += n + (range[n] == ',');
		if (read_range(range, n, out))
			return true;
	}
	return false;
}

/* The client's order decides, not its q values, as in kube-apiserver. A range with an unknown form
 * ("as=...") is skipped, so that a plain application/json after it serves as the fallback. */
bool apihttp_negotiation_choose(const char *accept, struct apireq_representation *out)
{
	struct apihttp_media m;

	*out = (struct apireq_representation){.shape = APIREQ_SHAPE_OBJECT};
	if (!accept || !*accept)
		return true;
	while (apihttp_negotiation_next(&accept, &m)) {
		bool meta = str_eq(m.group, "meta.k8s.io") &&
			    (str_eq(m.version, "v1") || str_eq(m.version, "v1beta1"));

		if (strcasecmp(m.type, "application/json") != 0 &&
			strcasecmp(m.type, "application/*") != 0 && !str_eq(m.type, "*/*"))
			continue;
		if (!m.as[0])
			return true;
		out->beta = str_eq(m.version, "v1beta1");
		if (meta && str_eq(m.as, "Table"))
			out->shape = APIREQ_SHAPE_TABLE;
		else if (meta && (str_eq(m.as, "PartialObjectMetadata") ||
					 str_eq(m.as, "PartialObjectMetadataList")))
			out->shape = APIREQ_SHAPE_METADATA;
		if (out->shape != APIREQ_SHAPE_OBJECT)
			return true;
	}
	return false;
}

/* Only tables have this option; the form of other answers is not changed by it. */
bool apihttp_negotiation_include(struct apireq_representation *f, const char *include)
{
	static const char *const names[] = {[SCHEMA_INCLUDE_METADATA] = "Metadata",
		[SCHEMA_INCLUDE_NONE] = "None",
		[SCHEMA_INCLUDE_OBJECT] = "Object"};

	f->include = SCHEMA_INCLUDE_METADATA;
	if (!include || !*include)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(include, names[i])) {
			f->include = (enum schema_include)i;
			return true;
		}
	return false;
}
