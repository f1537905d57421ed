/* SPDX-License-Identifier: MIT */
/* The one format of texts that is checked. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "schema_internal.h"

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

/* RFC 3339 as go-openapi reads it: no leap second, and any digits as zone. */
bool schema_is_date_time(const char *p, size_t len)
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
