/* SPDX-License-Identifier: MIT */
/*
 * One number of nano units, which covers what Kubernetes keeps (2^63 of any unit); what is larger
 * becomes the largest. Digits beyond that range are counted and not kept, so a long text costs its
 * length only.
 */
#include "config.h"

#include "tec/schema/quantity.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/mem.h"

#define WRONG                                                                                      \
	"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
#define NANO 1000000000

__extension__ typedef __int128 wide;

#define LARGEST ((wide)INT64_MAX * NANO)

static const char decimal[] = "num kMGTPE"; /* 10^-9 and on, in steps of 10^3 */
static const char binary[] = "KMGTPE";

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* v * by, bounded. */
static wide times(wide v, int64_t by)
{
	return v > LARGEST / by ? LARGEST : v * by;
}

/* v * 10^exp: a rest is rounded up. */
static wide shifted(wide v, int64_t exp)
{
	for (; exp > 0 && v > 0 && v < LARGEST; exp--)
		v = times(v, 10);
	for (; exp < 0 && v > 1; exp++)
		v = v / 10 + (v % 10 != 0);
	return v;
}

/* "e12", "E-3"; false: no number. */
static bool read_exponent(const char *s, size_t len, int64_t *exp)
{
	bool minus = len > 1 && s[1] == '-';
	size_t i = 1 + (len > 1 && (s[1] == '-' || s[1] == '+'));

	if (len < 2 || (*s != 'e' && *s != 'E') || i == len)
		return false;
	for (*exp = 0; i < len; i++) {
		if (!is_digit(s[i]))
			return false;
		*exp = *exp > 1000 ? *exp : *exp * 10 + (s[i] - '0');
	}
	*exp = minus ? -*exp : *exp;
	return true;
}

/* How often 10 and 1024 are in the suffix; false: it is none. */
static bool read_suffix(
	const char *s, size_t len, int64_t *tens, size_t *kibis, enum schema_quantity_form *form)
{
	const char *at;

	*tens = 0;
	*kibis = 0;
	*form = SCHEMA_QUANTITY_SI;
	if (len == 0)
		return true;
	if (len == 1 && *s != ' ' && (at = strchr(decimal, *s))) {
		*tens = (at - decimal) * 3 - 9;
		return true;
	}
	if (len == 2 && s[1] == 'i' && (at = strchr(binary, *s))) {
		*kibis = (size_t)(at - binary) + 1;
		*form = SCHEMA_QUANTITY_BINARY;
		return true;
	}
	*form = SCHEMA_QUANTITY_EXPONENT;
	return read_exponent(s, len, tens);
}

/* Where the number ends; its digits in *value and how many of them are behind the point. */
static size_t read_number(const char *s, size_t len, size_t i, wide *value, int64_t *tens)
{
	bool point = false;

	*value = 0;
	*tens = 0;
	for (; i < len && (is_digit(s[i]) || (s[i] == '.' && !point)); i++) {
		if (s[i] == '.') {
			point = true;
		} else if (*value < LARGEST / 10) {
			*value = *value * 10 + (s[i] - '0');
			*tens -= point;
		} else {
			*tens += !point;
		}
	}
	return i;
}

int schema_quantity_parse(const char *s, size_t len, struct schema_quantity *out, struct err *err)
{
	bool minus = len > 0 && *s == '-';
	int64_t fraction, tens;
	size_t number, end, kibis;
	wide v;

	number = end = read_number(s, len, len > 0 && (*s == '-' || *s == '+'), &v, &fraction);
	while (end < len && s[end] && strchr("eEinumkKMGTP", s[end]))
		end++;
	if (end < len && (s[end] == '-' || s[end] == '+'))
		end++;
	while (end < len && is_digit(s[end]))
		end++;
	if (len == 0 || end < len)
		return err_set(err, ERR_INVALID, "%s", WRONG);
	if (!read_suffix(s + number, len - number, &tens, &kibis, &out->form))
		return err_set(err, ERR_INVALID, "unable to parse quantity's suffix");
	for (; kibis > 0; kibis--)
		v = times(v, 1024);
	v = shifted(v, fraction + tens + 9);
	out->nano = minus ? -v : v;
	return 0;
}

/* ---- texts */

static void print(wide v, bool minus, const char *suffix, char out[SCHEMA_QUANTITY_LEN])
{
	char digits[40];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + (int)(v % 10));
		v /= 10;
	} while (v > 0);
	(void)snprintf(out, SCHEMA_QUANTITY_LEN, "%s%s%s", minus ? "-" : "", digits + at, suffix);
}

/* Whether it has a binary suffix: all others are written as decimals, as none must lose a fraction. */
static bool is_kibis(const struct schema_quantity *q)
{
	return q->form == SCHEMA_QUANTITY_BINARY && q->nano % ((wide)1024 * NANO) == 0;
}

void schema_quantity_text(const struct schema_quantity *q, char out[SCHEMA_QUANTITY_LEN])
{
	bool minus = q->nano < 0;
	wide v = minus ? -q->nano : q->nano;
	char suffix[8] = "";
	size_t n = 0;

	if (v > 0 && is_kibis(q)) {
		v /= NANO;
		for (; v % 1024 == 0 && n < strlen(binary); n++)
			v /= 1024;
		(void)snprintf(suffix, sizeof(suffix), "%ci", binary[n - 1]);
	} else if (v > 0) {
		for (; v % 1000 == 0 && n < strlen(decimal) - 1; n++)
			v /= 1000;
		if (n != 3 && q->form == SCHEMA_QUANTITY_EXPONENT)
			(void)snprintf(suffix, sizeof(suffix), "e%d", (int)n * 3 - 9);
		else if (n != 3)
			(void)snprintf(suffix, sizeof(suffix), "%c", decimal[n]);
	}
	print(v, minus, suffix, out);
}
