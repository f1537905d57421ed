/* SPDX-License-Identifier: MIT */
/*
 * The formats of strings that a CRD may name. Those with a grammar of their own that no kind here
 * uses (ISBN, credit cards, colours, e-mail, URIs) are accepted unchecked; int32 and the like are
 * ignored by kube-apiserver too.
 */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "schema_internal.h"
#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"

struct scan {
	const char *p, *end;
};

static bool number(struct scan *s, int digits, int from, int to)
{
	int v = 0;

	for (int i = 0; i < digits; i++) {
		if (s->p >= s->end || !isdigit((unsigned char)*s->p))
			return false;
		v = v * 10 + (*s->p++ - '0');
	}
	return v >= from && v <= to;
}

static bool literal(struct scan *s, const char *any)
{
	return s->p < s->end && *s->p && strchr(any, *s->p++);
}

static bool date(struct scan *s)
{
	static const char days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	const char *start = s->p;
	int month, day, year;

	if (!number(s, 4, 0, 9999) || !literal(s, "-") || !number(s, 2, 1, 12) ||
		!literal(s, "-") || !number(s, 2, 1, 31))
		return false;
	year = (start[0] - '0') * 1000 + (start[1] - '0') * 100 + (start[2] - '0') * 10 + start[3] -
	       '0';
	month = (start[5] - '0') * 10 + start[6] - '0';
	day = (start[8] - '0') * 10 + start[9] - '0';
	if (month == 2 && day == 29 && (year % 4 || (year % 100 == 0 && year % 400)))
		return false;
	return day <= days[month - 1];
}

static bool is_date(const char *p, size_t len)
{
	struct scan s = {p, p + len};

	return date(&s) && s.p == s.end;
}

/* RFC 3339 as go-openapi reads it: no leap second, and any digits as zone. */
static bool is_date_time(const char *p, size_t len)
{
	struct scan s = {p, p + len};

	if (!date(&s) || !literal(&s, "Tt") || !number(&s, 2, 0, 23) || !literal(&s, ":") ||
		!number(&s, 2, 0, 59) || !literal(&s, ":") || !number(&s, 2, 0, 59))
		return false;
	if (s.p < s.end && *s.p == '.') {
		const char *digits = ++s.p;

		while (s.p < s.end && isdigit((unsigned char)*s.p))
			s.p++;
		if (s.p == digits)
			return false;
	}
	if (s.p < s.end && (*s.p == 'Z' || *s.p == 'z'))
		return s.p + 1 == s.end;
	return literal(&s, "+-") && number(&s, 2, 0, 99) && literal(&s, ":") &&
	       number(&s, 2, 0, 99) && s.p == s.end;
}

static bool is_uuid(const char *p, size_t len, char version)
{
	size_t digit = 0;

	for (size_t i = 0; i < len; i++) {
		if (p[i] == '-' && (digit == 8 || digit == 12 || digit == 16 || digit == 20) && i &&
			p[i - 1] != '-')
			continue;
		if (!isxdigit((unsigned char)p[i]))
			return false;
		if (digit == 12 && version && p[i] != version)
			return false;
		if (digit == 16 && version >= '4' && !strchr("89abAB", p[i]))
			return false;
		digit++;
	}
	return digit == 32 && p[len - 1] != '-';
}

static bool is_go_duration(const char *p, size_t len)
{
	static const char *const units[] = {"ns", "us", "\xc2\xb5s", "ms", "s", "m", "h"};
	const char *end = p + len;

	if (p < end && (*p == '-' || *p == '+'))
		p++;
	if (end - p == 1 && *p == '0')
		return true;
	if (p == end)
		return false;
	while (p < end) {
		const char *digits = p;
		size_t u = 0, n = 0;

		while (p < end && isdigit((unsigned char)*p))
			p++, n++;
		if (p < end && *p == '.')
			for (p++; p < end && isdigit((unsigned char)*p); p++)
				n++;
		if (p == digits || !n)
			return false;
		for (; u < ARRAY_LEN(units); u++)
			if ((size_t)(end - p) >= strlen(units[u]) &&
				memcmp(p, units[u], strlen(units[u])) == 0)
				break;
		if (u == ARRAY_LEN(units))
			return false;
		/* "m" is also the beginning of "ms", which stands before it. */
		p += strlen(units[u]);
	}
	return true;
}

/* The other form that go-openapi takes: "2 days" and the like, anywhere in the text. */
static bool is_duration(const char *p, size_t len)
{
	static const char *const units[] = {
		"ns", "us", "\xc2\xb5s", "ms", "s", "m", "h", "hr", "d", "w", "wk"};
	static const char *const prefixes[] = {
		"nano", "micro", "milli", "sec", "min", "hour", "day", "week"};
	const char *end = p + len;

	if (is_go_duration(p, len))
		return true;
	while (p < end) {
		char unit[16] = "";
		size_t n = 0;

		if (!isdigit((unsigned char)*p++))
			continue;
		while (p < end && (isdigit((unsigned char)*p) || isspace((unsigned char)*p)))
			p++;
		for (; p < end && (isalpha((unsigned char)*p) || (*p & 0x80)); p++)
			if (n < sizeof(unit) - 1)
				unit[n++] = (char)tolower((unsigned char)*p);
		for (size_t i = 0; i < ARRAY_LEN(units); i++)
			if (str_eq(unit, units[i]))
				return true;
		for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
			if (str_starts(unit, prefixes[i]))
				return true;
	}
	return false;
}

static bool is_byte(const char *p, size_t len)
{
	uint8_t *out = NULL;
	size_t n;

	if (len == 0 || len % 4 || bytes_from_b64(p, len, &out, &n) < 0)
		return false;
	free(out);
	return true;
}

static bool is_ipv4(const char *p, size_t len)
{
	struct scan s = {p, p + len};

	for (int i = 0; i < 4; i++) {
		int digits = 0;

		if (i && !literal(&s, "."))
			return false;
		while (digits < 3 && s.p + digits < s.end && isdigit((unsigned char)s.p[digits]))
			digits++;
		if (!digits || (digits > 1 && *s.p == '0') || !number(&s, digits, 0, 255))
			return false;
	}
	return s.p == s.end;
}

static bool is_ipv6(const char *p, size_t len)
{
	size_t groups = 0, i = 0;
	bool gap = false;

	if (len >= 2 && p[0] == ':' && p[1] == ':') {
		gap = true;
		i = 2;
	}
	while (i < len) {
		size_t n = 0;

		if (memchr(p + i, '.', len - i) && !memchr(p + i, ':', len - i))
			return is_ipv4(p + i, len - i) && (gap ? groups + 2 < 8 : groups + 2 == 8);
		while (i + n < len && n < 5 && isxdigit((unsigned char)p[i + n]))
			n++;
		if (n == 0 || n > 4 || ++groups > 8)
			return false;
		i += n;
		if (i == len)
			break;
		if (p[i++] != ':' || i == len)
			return false;
		if (p[i] == ':') {
			if (gap)
				return false;
			gap = true;
			i++;
		}
	}
	return gap ? groups < 8 : groups == 8;
}

static bool is_cidr(const char *p, size_t len)
{
	const char *slash = memchr(p, '/', len);
	size_t digits = slash ? (size_t)(p + len - slash - 1) : 0;
	struct scan s = {slash ? slash + 1 : p, p + len};

	if (digits == 0 || digits > 3)
		return false;
	if (is_ipv4(p, (size_t)(slash - p)))
		return number(&s, (int)digits, 0, 32);
	return is_ipv6(p, (size_t)(slash - p)) && number(&s, (int)digits, 0, 128);
}

static bool is_hostname(const char *p, size_t len)
{
	if (len == 0 || len > 255)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)p[i]) && p[i] != '-' && p[i] != '.' && p[i] != '_' &&
			!((unsigned char)p[i] & 0x80))
			return false;
	return p[0] != '-' && p[0] != '.';
}

static bool is_mac(const char *p, size_t len)
{
	if (len != 17)
		return false;
	for (size_t i = 0; i < len; i++)
		if (i % 3 == 2 ? p[i] != p[2] || (p[i] != ':' && p[i] != '-')
			       : !isxdigit((unsigned char)p[i]))
			return false;
	return true;
}

/* Without dashes, as they are compared. */
static const char *const names[] = {"bsonobjectid", "byte", "cidr", "creditcard", "date",
	"datetime", "duration", "email", "hexcolor", "hostname", "ipv4", "ipv6", "isbn", "isbn10",
	"isbn13", "k8slongname", "k8sshortname", "mac", "password", "rgbcolor", "ssn", "uri",
	"uuid", "uuid3", "uuid4", "uuid5"};

static void plain_name(const char *format, char out[16])
{
	size_t n = 0;

	for (; *format && n < 15; format++)
		if (*format != '-')
			out[n++] = *format;
	out[n] = '\0';
}

bool schema_format_known(const char *format)
{
	char name[16];

	plain_name(format, name);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(name, names[i]))
			return true;
	return false;
}

bool schema_format_holds(const char *format, const char *s, size_t len)
{
	char f[16];

	plain_name(format, f);
	if (str_eq(f, "datetime"))
		return is_date_time(s, len);
	if (str_eq(f, "date"))
		return is_date(s, len);
	if (strncmp(f, "uuid", 4) == 0)
		return is_uuid(s, len, f[4]);
	if (str_eq(f, "duration"))
		return is_duration(s, len);
	if (str_eq(f, "byte"))
		return is_byte(s, len);
	if (str_eq(f, "ipv4"))
		return is_ipv4(s, len);
	if (str_eq(f, "ipv6"))
		return is_ipv6(s, len);
	if (str_eq(f, "cidr"))
		return is_cidr(s, len);
	if (str_eq(f, "hostname"))
		return is_hostname(s, len);
	if (str_eq(f, "mac"))
		return is_mac(s, len);
	if (str_eq(f, "k8sshortname"))
		return kobj_label_valid(s, len);
	if (str_eq(f, "k8slongname"))
		return kobj_name_valid(s, len);
	return true;
}
