/* SPDX-License-Identifier: MIT */
/*
 * The two clocks and RFC 3339 text. A fake clock is two numbers that replace both clocks in the whole
 * process. Parsing refuses dates that do not exist; a leap second counts as the first second of the
 * next minute.
 */
#include "config.h"

#include "tec/base/clock.h"

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

/* Read exactly n digits at *s and advance past them. */
static int number(const char **s, unsigned n, int *out)
{
	int v = 0;

	for (; n > 0; n--, (*s)++) {
		if (**s < '0' || **s > '9')
			return -1;
		v = v * 10 + (**s - '0');
	}
	*out = v;
	return 0;
}

static int literal(const char **s, char c)
{
	if (**s != c)
		return -1;
	(*s)++;
	return 0;
}

/* Return the days from 1970-01-01 to a date of the Gregorian calendar. The year starts in March
 * here, so that the leap day is its last day (Howard Hinnant, days_from_civil). */
static int64_t days_of(int year, int month, int day)
{
	int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400, yoe = y - era * 400;
	int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

/* The Gregorian rule: a leap year is divisible by 4 and not by 100, or by 400. */
static bool date_exists(int year, int month, int day)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	if (month < 1 || month > 12 || day < 1)
		return false;
	return day <= days[month - 1] + (month == 2 && leap);
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
	int sign, h, m;

	*offset_s = 0;
	if (*s == 'Z' || *s == 'z')
		return s[1] == '\0' ? 0 : -1;
	if (*s != '+' && *s != '-')
		return -1;
	sign = *s++ == '-' ? -1 : 1;
	if (number(&s, 2, &h) < 0 || literal(&s, ':') < 0 || number(&s, 2, &m) < 0 || *s)
		return -1;
	if (h > 23 || m > 59)
		return -1;
	*offset_s = sign * (h * 3600 + m * 60);
	return 0;
}

/* Accept lower-case 't' and 'z' too, as RFC 3339 section 5.6 allows. */
int clock_parse(const char *s, int64_t *wall_us)
{
	int year, month, day, h, m, sec;
	int64_t us, offset_s;

	if (!s)
		return -1;
	if (number(&s, 4, &year) < 0 || literal(&s, '-') < 0 || number(&s, 2, &month) < 0 ||
		literal(&s, '-') < 0 || number(&s, 2, &day) < 0 || (*s != 'T' && *s != 't'))
		return -1;
	s++;
	if (number(&s, 2, &h) < 0 || literal(&s, ':') < 0 || number(&s, 2, &m) < 0 ||
		literal(&s, ':') < 0 || number(&s, 2, &sec) < 0)
		return -1;
	if (parse_fraction(&s, &us) < 0 || parse_zone(s, &offset_s) < 0)
		return -1;
	if (!date_exists(year, month, day) || h > 23 || m > 59 || sec > 60)
		return -1;
	*wall_us =
		(days_of(year, month, day) * 86400 + h * 3600 + m * 60 + sec - offset_s) * 1000000 +
		us;
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
