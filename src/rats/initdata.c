/* SPDX-License-Identifier: MIT */
/*
 * Reads line by line up to the first table. Stricter than TOML on purpose: another way to write a
 * key (quoted, dotted, with an escape in its value) could be read differently by the Trustee behind
 * this.
 */
#include "config.h"

#include "tec/rats/initdata.h"

#include <stdbool.h>
#include <string.h>

#include "tec/base/mem.h"

/* A trimmed line inside the caller's text. */
struct line {
	const char *p;
	size_t len;
};

/* Take the next line, trimmed; false: end of the text. */
static bool take_line(const char **p, const char *end, struct line *out)
{
	const char *nl;

	if (*p == end)
		return false;
	nl = memchr(*p, '\n', (size_t)(end - *p));
	out->p = *p;
	out->len = (size_t)((nl ? nl : end) - *p);
	*p = nl ? nl + 1 : end;
	while (out->len > 0 && strchr(" \t\r", out->p[out->len - 1]))
		out->len--;
	while (out->len > 0 && strchr(" \t", out->p[0]))
		out->p++, out->len--;
	return true;
}

static bool is_text(struct line l, const char *text)
{
	return l.len == strlen(text) && memcmp(l.p, text, l.len) == 0;
}

/* Take the string of a line `NAME = "string"` or 'string'; false: any other line. Escapes and
 * comments are not accepted. */
static bool take_value(struct line l, const char *name, struct line *out)
{
	size_t n = strlen(name);

	if (l.len < n || memcmp(l.p, name, n) != 0)
		return false;
	l.p += n, l.len -= n;
	while (l.len > 0 && strchr(" \t", l.p[0]))
		l.p++, l.len--;
	if (l.len == 0 || l.p[0] != '=')
		return false;
	l.p++, l.len--;
	while (l.len > 0 && strchr(" \t", l.p[0]))
		l.p++, l.len--;
	if (l.len < 2 || (l.p[0] != '"' && l.p[0] != '\'') || l.p[l.len - 1] != l.p[0])
		return false;
	out->p = l.p + 1;
	out->len = l.len - 2;
	for (size_t i = 0; i < out->len; i++)
		if (strchr("\"'\\#", out->p[i]))
			return false;
	return true;
}

/* Only the lines before [data] are read. Duplicates fall through to the error, as TOML forbids
 * them. */
int rats_initdata_check(const char *toml, size_t len, struct err *err)
{
	const char *p = toml, *end = toml + len;
	struct line l, version, algorithm;
	bool has_version = false, has_algorithm = false;

	if (len > 0 && memchr(toml, '\0', len))
		return err_set(err, ERR_INVALID, "The init-data contains a NUL byte.");
	while (take_line(&p, end, &l)) {
		if (l.len == 0 || l.p[0] == '#')
			continue;
		/* The first table ends what is read here. */
		if (l.p[0] == '[') {
			if (!is_text(l, "[data]"))
				return err_set(err, ERR_INVALID,
					"The first table of the init-data is not [data].");
			break;
		}
		if (!has_version && take_value(l, "version", &version))
			has_version = true;
		else if (!has_algorithm && take_value(l, "algorithm", &algorithm))
			has_algorithm = true;
		else
			return err_set(err, ERR_INVALID,
				"The init-data has a line before [data] other than version or algorithm with a plain string.");
	}
	if (!has_version || !has_algorithm)
		return err_set(
			err, ERR_INVALID, "The init-data must begin with version and algorithm.");
	if (!is_text(algorithm, "sha256"))
		return err_set(err, ERR_INVALID,
			"The init-data's algorithm must be sha256, because PCR 8 is compared with that digest.");
	return 0;
}

/* TPM2_PCR_Extend from the reset value: SHA-256 over 32 zero bytes and the digest of the text. */
void rats_initdata_pcr8(const char *toml, size_t len, uint8_t out[SHA256_LEN])
{
	uint8_t both[2 * SHA256_LEN] = {0};

	bytes_sha256(toml, len, both + SHA256_LEN);
	bytes_sha256(both, sizeof(both), out);
}
