/* SPDX-License-Identifier: MIT */
/*
 * The two clocks and RFC 3339 text. A fake clock is two numbers that replace both clocks in the whole
 * process. Parsing refuses dates that do not exist; a leap second counts as the first second of the
 * next minute.
 */
#include "config.h"

#include "tec/base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tec/base/mem.h"

static struct {
	bool on;
	uint64_t boot_us;
	int64_t wall_us;
} fake;

static uint64_t read_us(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) < 0)
		DIE("cannot read clock %d", (int)id);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* CLOCK_BOOTTIME, unlike CLOCK_MONOTONIC, continues while the machine is suspended: a deadline that
 * passed during suspend is due on resume. */
uint64_t clock_boot_us(void)
{
	return fake.on ? fake.boot_us : read_us(CLOCK_BOOTTIME);
}

uint64_t clock_boot_ms(void)
{
	return clock_boot_us() / 1000;
}

/* For comparing with the API's timestamps only: the wall clock may jump in both directions. */
int64_t clock_wall_us(void)
{
	return fake.on ? fake.wall_us : (int64_t)read_us(CLOCK_REALTIME);
}

/* Convert to seconds, rounding down also before 1970. */
static int64_t floor_s(int64_t us)
{
	return us / 1000000 - (us % 1000000 < 0);
}

int64_t clock_wall_s(void)
{
	return floor_s(clock_wall_us());
}

/* Write v as n decimal digits with leading zeros. Without printf, because every log line has a
 * time. */
static void digits(char *out, unsigned v, unsigned n)
{
	while (n-- > 0) {
		out[n] = (char)('0' + v % 10);
		v /= 10;
	}
}

/* Write "YYYY-MM-DDThh:mm:ss" without NUL. Times outside the years 0-9999 are clamped. */
static void format_seconds(int64_t wall_s, char out[19])
{
	const int64_t min = -62167219200, max = 253402300799;
	time_t t = (time_t)(wall_s < min ? min : wall_s > max ? max : wall_s);
	struct tm tm;

	if (!gmtime_r(&t, &tm))
		DIE("cannot convert time %lld to a date", (long long)t);
	memcpy(out, "0000-00-00T00:00:00", 19);
	digits(out, (unsigned)(tm.tm_year + 1900), 4);
	digits(out + 5, (unsigned)(tm.tm_mon + 1), 2);
	digits(out + 8, (unsigned)tm.tm_mday, 2);
	digits(out + 11, (unsigned)tm.tm_hour, 2);
	digits(out + 14, (unsigned)tm.tm_min, 2);
	digits(out + 17, (unsigned)tm.tm_sec, 2);
}

void clock_format(int64_t wall_s, char out[CLOCK_RFC3339_LEN])
{
	format_seconds(wall_s, out);
	out[19] = 'Z';
	out[20] = '\0';
}

/* The form of metav1.MicroTime, always with six digits. */
void clock_format_us(int64_t wall_us, char out[CLOCK_RFC3339_US_LEN])
{
	int64_t s = floor_s(wall_us);

	format_seconds(s, out);
	out[19] = '.';
	digits(out + 20, (unsigned)(wall_us - s * 1000000), 6);
	out[26] = 'Z';
	out[27] = '\0';
}

/* True if s begins with the shape, in which '0' stands for any digit. */
static bool has_shape(const char *s, const char *shape)
{
	for (; *shape; s++, shape++)
		if (*shape == '0' ? *s < '0' || *s > '9' : *s != *shape)
			return false;
	return true;
}

/* Read an optional ".123"; digits beyond microseconds are dropped. */
static int parse_fraction(const char **s, int64_t *us)
{
	int64_t scale = 100000;

	*us = 0;
	if (**s != '.')
		return 0;
	(*s)++;
	if (**s < '0' || **s > '9')
		return -1;
	for (; **s >= '0' && **s <= '9'; (*s)++) {
		*us += (**s - '0') * scale;
		scale /= 10;
	}
	return 0;
}

/* Read "Z" or "+hh:mm" and require the end of the text. */
static int parse_zone(const char *s, int64_t *offset_s)
{
	int h, m;

	*offset_s = 0;
	if (*s == 'Z' || *s == 'z')
		return s[1] == '\0' ? 0 : -1;
	if ((*s != '+' && *s != '-') || !has_shape(s + 1, "00:00") || s[6] != '\0' ||
		sscanf(s + 1, "%2d:%2d", &h, &m) != 2 || h > 23 || m > 59)
		return -1;
	*offset_s = (*s == '-' ? -1 : 1) * (h * 3600 + m * 60);
	return 0;
}

/* Accept lower-case 't' and 'z' too, as RFC 3339 section 5.6 allows. timegm() moves a date that
 * does not exist to one that does. */
int clock_parse(const char *s, int64_t *wall_us)
{
	int year, month, day, h, m, sec;
	int64_t us, offset_s, date_s;
	struct tm tm = {.tm_isdst = 0};

	if (!s || !has_shape(s, "0000-00-00") || (s[10] != 'T' && s[10] != 't') ||
		!has_shape(s + 11, "00:00:00") ||
		sscanf(s, "%4d-%2d-%2d%*c%2d:%2d:%2d", &year, &month, &day, &h, &m, &sec) != 6)
		return -1;
	s += 19;
	if (parse_fraction(&s, &us) < 0 || parse_zone(s, &offset_s) < 0)
		return -1;
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = day;
	date_s = timegm(&tm);
	if (tm.tm_mon != month - 1 || tm.tm_mday != day || h > 23 || m > 59 || sec > 60)
		return -1;
	*wall_us = (date_s + h * 3600 + m * 60 + sec - offset_s) * 1000000 + us;
	return 0;
}

/* Tests set both clocks to known values; timers then fire only through clock_fake_advance(). */
void clock_fake_start(uint64_t boot_ms, int64_t wall_s)
{
	fake.on = true;
	fake.boot_us = boot_ms * 1000;
	fake.wall_us = wall_s * 1000000;
}

/* Both clocks move together, as in reality outside of clock jumps. */
void clock_fake_advance(uint64_t ms)
{
	if (!fake.on)
		DIE("advancing a real clock");
	fake.boot_us += ms * 1000;
	fake.wall_us += (int64_t)ms * 1000;
}

/* Simulate a jump of the wall clock; the boot clock is unaffected, so deadlines hold. */
void clock_fake_set_wall(int64_t wall_s)
{
	if (!fake.on)
		DIE("setting a real clock");
	fake.wall_us = wall_s * 1000000;
}

void clock_fake_stop(void)
{
	fake.on = false;
}

bool clock_is_fake(void)
{
	return fake.on;
}
