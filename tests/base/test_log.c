/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <signal.h>
#include <stdio.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/utf8.h"

static struct strbuf seen;
static enum log_level seen_level;
static unsigned n_seen;

static void keep(enum log_level level, const char *line, void *arg)
{
	strbuf_reset(&seen);
	strbuf_adds(&seen, line);
	seen_level = level;
	n_seen++;
}

static void setup(void)
{
	clock_fake_start(0, 1767323045);
	log_setup(LOG_INFO, LOG_TEXT);
	log_capture(keep, NULL);
}

static void teardown(void)
{
	log_capture(NULL, NULL);
	strbuf_fini(&seen);
	clock_fake_stop();
}

TestSuite(base_log, .init = setup, .fini = teardown);

Test(base_log, text_line_has_the_object)
{
	struct log_ctx lc = {"Machine", "a", "b", "c"};

	log_info(&lc, "key pushed", "took_ms=%u", 12u);
	cr_assert_str_eq(strbuf_str(&seen),
		"2026-01-02T03:04:05.000Z info msg=\"key pushed\" kind=Machine ns=a name=b uid=c "
		"took_ms=12");
	cr_assert_eq(seen_level, LOG_INFO);
}

Test(base_log, members_and_fields_may_be_missing)
{
	struct log_ctx lc = {.name = "with space"};

	log_warn(NULL, "x", NULL);
	cr_assert_str_eq(strbuf_str(&seen), "2026-01-02T03:04:05.000Z warn msg=\"x\"");
	log_warn(&lc, "x", NULL);
	cr_assert_str_eq(
		strbuf_str(&seen), "2026-01-02T03:04:05.000Z warn msg=\"x\" name=\"with space\"");
}

Test(base_log, lower_levels_are_silent)
{
	log_debug(NULL, "x", NULL);
	cr_assert_eq(n_seen, 0);
	log_setup(LOG_DEBUG, LOG_TEXT);
	log_debug(NULL, "x", NULL);
	cr_assert_eq(n_seen, 1);
}

Test(base_log, what_is_not_written_is_not_evaluated)
{
	int n = 0;

	if (n == 0)
		log_debug(NULL, "a", "count=%d", ++n);
	else
		log_warn(NULL, "a", "count=%d", ++n);
	cr_assert_eq(n, 0);
	log_info(NULL, "a", "count=%d", ++n);
	cr_assert_eq(n, 1);
	cr_assert_eq(n_seen, 1);
}

Test(base_log, json_line_is_json)
{
	struct log_ctx lc = {"Machine", "a", "12", "c\n"};
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = NULL;

	log_setup(LOG_INFO, LOG_JSON);
	log_info(&lc, "key \"pushed\"",
		"took_ms=12 rv=007 path=%s state=Ready leader=true queue= key=%s count=-1.5",
		log_esc("/a b"), log_esc("12"));
	o = json_parse(strbuf_str(&seen), seen.len, &json_limits_object, &err);
	cr_assert_not_null(o, "%s: %s", strbuf_str(&seen), err.text);
	cr_assert_str_eq(json_get_str(o, "ts"), "2026-01-02T03:04:05.000Z");
	cr_assert_str_eq(json_get_str(o, "level"), "info");
	cr_assert_str_eq(json_get_str(o, "msg"), "key \"pushed\"");
	cr_assert_str_eq(json_get_str(o, "name"), "12");
	cr_assert_str_eq(json_get_str(o, "uid"), "c\n");
	cr_assert_eq(json_get_int(o, "took_ms", 0), 12);
	cr_assert_str_eq(json_get_str(o, "rv"), "007");
	cr_assert_str_eq(json_get_str(o, "path"), "/a b");
	cr_assert_str_eq(json_get_str(o, "state"), "Ready");
	cr_assert(json_get_bool(o, "leader", false));
	cr_assert_str_eq(json_get_str(o, "queue"), "");
	cr_assert_str_eq(json_get_str(o, "key"), "12");
}

Test(base_log, escapes_cannot_be_broken_out_of)
{
	static const char *const t[] = {"a\" msg=\"b", "line\nts info msg=x", "\x1b[31mred",
		"back\\slash\"", "\xff\xfe", "\xc3",
		"\xe2\x80\xae"
		"abc",
		"", "a=b c=d", "\x7f", "tab\there", "\xf0\x9f\x98\x80"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
			log_setup(LOG_INFO, (enum log_format)format);
			log_info(&(struct log_ctx){.name = t[i]}, t[i], "path=%s url=%s",
				log_esc(t[i]), log_esc("x"));
			cr_expect_null(strpbrk(strbuf_str(&seen), "\n\x1b\x7f\t"), "case %zu", i);
			cr_expect(utf8_valid(strbuf_str(&seen), seen.len), "case %zu", i);
			cr_expect(str_ends(strbuf_str(&seen),
					  format == LOG_TEXT ? " url=\"x\"" : ",\"url\":\"x\"}"),
				"%s", strbuf_str(&seen));
		}
	}
	log_info(NULL, "m", "path=%s", log_esc("\xe2\x80\xae"));
	cr_assert_not_null(strstr(strbuf_str(&seen), "\\u202e"));
}

Test(base_log, esc_reads_back_as_json)
{
	static const char *const t[] = {
		"plain", "q\"q", "b\\b", "n\nn\rr\tt\x01", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const char *esc = log_esc(t[i]);
		struct err err = ERR_INIT;
		cleanup_json struct json_object *o =
			json_parse(esc, strlen(esc), &json_limits_public, &err);

		cr_assert_not_null(o, "%s", err.text);
		cr_assert_str_eq(json_object_get_string(o), t[i]);
	}
	cr_assert_str_eq(log_esc(NULL), "\"\"");
	cr_assert_str_eq(log_escn("a\0b", 3), "\"a\\u0000b\"");
}

Test(base_log, long_values_are_cut)
{
	char big[2000];
	const char *esc;

	for (size_t shift = 0; shift < 3; shift++) {
		memset(big, 'x', sizeof(big));
		for (size_t i = shift; i + 3 < sizeof(big); i += 3)
			memcpy(big + i, "\xe2\x82\xac", 3);
		big[sizeof(big) - 1] = '\0';
		esc = log_escn(big, 1500);
		cr_assert_leq(strlen(esc), 511);
		cr_assert_gt(strlen(esc), 500);
		cr_assert(str_ends(esc, "...\""));
		cr_assert(utf8_valid(esc, strlen(esc)));
	}
}

Test(base_log, eight_escapes_live_at_once)
{
	const char *e[8];
	char name[2] = "a";

	for (int i = 0; i < 8; i++) {
		name[0] = (char)('a' + i);
		e[i] = log_esc(name);
	}
	for (int i = 0; i < 8; i++)
		cr_assert_eq(e[i][1], 'a' + i);
}

Test(base_log, err_line_has_its_numbers)
{
	struct err err = ERR_INIT;

	err_set_http(&err, ERR_CONFLICT, 409, "was \"changed\"");
	err.sys = 5;
	log_err(LOG_ERROR, NULL, "apply", &err);
	cr_assert_str_eq(strbuf_str(&seen),
		"2026-01-02T03:04:05.000Z error msg=\"apply\" err_kind=conflict "
		"errno=5 http=409 err=\"was \\\"changed\\\"\"");
	log_setup(LOG_INFO, LOG_JSON);
	log_err(LOG_ERROR, NULL, "apply", &err);
	cr_assert_str_eq(strbuf_str(&seen),
		"{\"ts\":\"2026-01-02T03:04:05.000Z\",\"level\":\"error\",\"msg\":\"apply\","
		"\"err_kind\":\"conflict\",\"errno\":5,\"http\":409,"
		"\"err\":\"was \\\"changed\\\"\"}");
}

Test(base_log, unknown_key_aborts_in_tests, .signal = SIGABRT)
{
	log_info(NULL, "x", "no_such_key=1");
}

Test(base_log, unescaped_fields_abort_in_tests, .signal = SIGABRT)
{
	log_info(NULL, "x", "name=%s", "two words");
}

Test(base_log, known_keys_only_matter_in_tests, .init = setup)
{
	char first[256], second[256];
	FILE *f;

	log_capture(NULL, NULL);
	cr_redirect_stderr();
	log_info(NULL, "goes to stderr", "no_such_key=1");
	log_info(NULL, "goes to stderr", "name=%s", "two words\nx");
	f = cr_get_redirected_stderr();
	cr_assert(fgets(first, sizeof(first), f) && fgets(second, sizeof(second), f));
	cr_expect_not_null(strstr(first, "no_such_key=1\n"), "%s", first);
	cr_expect_not_null(strstr(second, "fields=\"name=two words\\nx\"\n"), "%s", second);
}
