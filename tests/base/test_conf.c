/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/conf.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

static const struct conf_option table[] = {
	{"listen", CONF_STRING, "ADDR:PORT", "0.0.0.0:8080", "Where to listen.", false},
	{"level", CONF_STRING, "LEVEL", NULL, "How much to log.", true},
	{"verify", CONF_BOOL, NULL, "true", "Whether to verify.", true},
	{"profile", CONF_OPTIONAL, "FILE", NULL, "Write a profile.", false},
	{"help", CONF_ACTION, NULL, NULL, "Print this text.", false},
	{"seed", CONF_PAIR, "SRC DST", NULL,
		"Copies the object SRC to DST before anything else is done, which is what an "
		"installer wants.",
		false},
};

static struct conf *conf;
static struct err err;
static char path[64];

static void setup(void)
{
	conf = conf_new(table, ARRAY_LEN(table));
	err_clear(&err);
	snprintf(path, sizeof(path), "test_conf.%ld.tmp", (long)getpid());
}

static void teardown(void)
{
	conf_free(conf);
	unlink(path);
}

TestSuite(base_conf, .init = setup, .fini = teardown);

static void write_file(const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	cr_assert_not_null(f);
	cr_assert_eq(fwrite(text, 1, len, f), len);
	fclose(f);
}

static int parse_file(const char *text)
{
	write_file(text, strlen(text));
	err_clear(&err);
	return conf_parse_file(conf, path, &err);
}

/* argv is not const in C, the parser does not write to it. */
static int parse_words(struct conf *c, const char *const *words, int n)
{
	char *argv[16] = {(char *)(uintptr_t) "prog"};

	for (int i = 0; i < n; i++)
		argv[i + 1] = (char *)(uintptr_t)words[i];
	return conf_parse_argv(c, n + 1, argv, &err);
}
#define ARGV(...)                                                                                  \
	parse_words(conf, (const char *[]){__VA_ARGS__},                                           \
		(int)ARRAY_LEN(((const char *[]){__VA_ARGS__})))

Test(base_conf, defaults_stand_until_something_is_given)
{
	cr_assert_eq(parse_words(conf, NULL, 0), 0);
	cr_assert_str_eq(conf_str(conf, "listen"), "0.0.0.0:8080");
	cr_assert_null(conf_str(conf, "level"));
	cr_assert(conf_bool(conf, "verify"));
	cr_assert(!conf_bool(conf, "help"));
	cr_assert(!conf_bool(conf, "profile"));
	cr_assert(!conf_is_set(conf, "listen"));
	cr_assert_null(conf_second(conf, "seed"));
}

Test(base_conf, command_line_forms)
{
	cr_assert_eq(ARGV("--listen=[::1]:1", "--level", "debug", "--verify=false", "--profile",
			     "--help", "--seed", "a", "--b"),
		0, "%s", err.text);
	cr_assert_str_eq(conf_str(conf, "listen"), "[::1]:1");
	cr_assert_str_eq(conf_str(conf, "level"), "debug");
	cr_assert(!conf_bool(conf, "verify"));
	cr_assert_str_eq(conf_str(conf, "profile"), "");
	cr_assert(conf_bool(conf, "profile"));
	cr_assert(conf_bool(conf, "help"));
	cr_assert_str_eq(conf_str(conf, "seed"), "a");
	cr_assert_str_eq(conf_second(conf, "seed"), "--b");
	cr_assert(conf_is_set(conf, "listen"));
}

Test(base_conf, values_may_be_empty_or_hold_anything)
{
	cr_assert_eq(ARGV("--listen=", "--level=a=b --x", "--profile=f"), 0);
	cr_assert_str_eq(conf_str(conf, "listen"), "");
	cr_assert_str_eq(conf_str(conf, "level"), "a=b --x");
	cr_assert_str_eq(conf_str(conf, "profile"), "f");
}

Test(base_conf, command_line_refuses)
{
	static const struct {
		const char *a, *b;
	} t[] = {{"x", NULL}, {"-h", NULL}, {"--", NULL}, {"--listen", NULL}, {"--nope", NULL},
		{"--lis=1", NULL}, {"--verify=yes", NULL}, {"--verify=", NULL},
		{"--help=true", NULL}, {"--seed", "a"}, {"--seed=a", "b"},
		{"--listen=a", "--listen=b"}, {"--verify", "true"}, {"--help", "--help"},
		{"--=x", NULL}, {"", NULL}, {"--Listen=a", NULL}, {"---listen=a", NULL},
		{"--profile", "f"}};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct conf *c = conf_new(table, ARRAY_LEN(table));

		err_clear(&err);
		cr_expect_eq(parse_words(c, (const char *[]){t[i].a, t[i].b}, t[i].b ? 2 : 1), -1,
			"%s", t[i].a);
		cr_expect_eq(err.kind, ERR_INVALID);
		conf_free(c);
	}
}

Test(base_conf, file_forms)
{
	cr_assert_eq(parse_file("# comment\n\n  listen = 1.2.3.4:5  \r\nlevel=a = b # no comment\n"
				"\tverify\t=\tfalse\n"
				"profile ="),
		0, "%s", err.text);
	cr_assert_str_eq(conf_str(conf, "listen"), "1.2.3.4:5");
	cr_assert_str_eq(conf_str(conf, "level"), "a = b # no comment");
	cr_assert(!conf_bool(conf, "verify"));
	cr_assert_str_eq(conf_str(conf, "profile"), "");
	cr_assert(conf_is_set(conf, "listen"));
}

Test(base_conf, an_empty_file_is_fine)
{
	cr_assert_eq(parse_file(""), 0);
	cr_assert_str_eq(conf_str(conf, "listen"), "0.0.0.0:8080");
}

Test(base_conf, file_refuses_and_names_the_line)
{
	static const char *const t[] = {"nope = 1", "listen", "= 1", "help = true", "seed = a",
		"verify = 1", "verify =", "level = a\nlevel = b", "--listen = a", "[section]",
		"listen: a", "Listen = a"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cr_expect_eq(parse_file(t[i]), -1, "%s", t[i]);
		cr_expect_eq(err.kind, ERR_INVALID);
		cr_expect_not_null(strstr(err.text, path));
		cr_expect_not_null(
			strstr(err.text, strchr(t[i], '\n') ? "line 2" : "line 1"), "%s", err.text);
	}
}

Test(base_conf, file_must_be_text)
{
	write_file("level = a\0b\n", 12);
	cr_assert_eq(conf_parse_file(conf, path, &err), -1);
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert_eq(parse_file("level = \xff\n"), -1);
}

Test(base_conf, file_size_is_bounded)
{
	cleanup_free char *big = xmalloc(1048577);

	memset(big, '#', 1048577);
	write_file(big, 1048577);
	cr_assert_eq(conf_parse_file(conf, path, &err), -1);
	cr_assert_eq(err.kind, ERR_INVALID);
}

Test(base_conf, missing_file_is_not_found)
{
	cr_assert_eq(conf_parse_file(conf, "no/such/file", &err), -1);
	cr_assert_eq(err.kind, ERR_NOT_FOUND);
	cr_assert_not_null(strstr(err.text, "no/such/file"));
}

Test(base_conf, command_line_wins_over_the_file)
{
	cr_assert_eq(ARGV("--level=argv"), 0);
	cr_assert_eq(parse_file("level = file\nlisten = file\n"), 0);
	cr_assert_str_eq(conf_str(conf, "level"), "argv");
	cr_assert_str_eq(conf_str(conf, "listen"), "file");
}

static unsigned n_warned;

static void count_lines(enum log_level level, const char *line, void *arg)
{
	n_warned += level == LOG_WARN && strstr(line, "listen") != NULL;
}

Test(base_conf, rereading_forgets_the_old_file)
{
	log_capture(count_lines, NULL);
	cr_assert_eq(parse_file("level = one\nlisten = one\n"), 0);
	cr_assert_eq(n_warned, 0);
	cr_assert_eq(parse_file("level = two\nlisten = one\n"), 0);
	cr_assert_eq(n_warned, 0);
	cr_assert_str_eq(conf_str(conf, "level"), "two");
	cr_assert_eq(parse_file(""), 0);
	cr_assert_eq(n_warned, 1); /* listen needs a restart */
	cr_assert_null(conf_str(conf, "level"));
	cr_assert_str_eq(conf_str(conf, "listen"), "0.0.0.0:8080");
	log_capture(NULL, NULL);
}

Test(base_conf, a_bad_file_changes_nothing)
{
	cr_assert_eq(parse_file("level = one\n"), 0);
	cr_assert_eq(parse_file("level = two\nnope = 1\n"), -1);
	cr_assert_str_eq(conf_str(conf, "level"), "one");
}

Test(base_conf, unknown_name_aborts, .signal = SIGABRT)
{
	conf_str(conf, "nope");
}

/* What `print` writes. The caller frees. */
static char *printed(void (*print)(const struct conf_option *, size_t, FILE *))
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	print(table, ARRAY_LEN(table), f);
	fclose(f);
	return text;
}

Test(base_conf, help_lists_every_option)
{
	cleanup_free char *text = printed(conf_print_help);
	cleanup_free char *rest = xstrdup(text);
	char *p = rest, *line;

	cr_assert_not_null(strstr(text,
		"  --listen=ADDR:PORT\n        Where to listen.\n        Default: 0.0.0.0:8080\n"));
	cr_assert_not_null(strstr(text, "  --verify[=true|false]\n"));
	cr_assert_not_null(strstr(text, "  --profile[=FILE]\n"));
	cr_assert_not_null(strstr(text, "  --help\n"));
	cr_assert_not_null(strstr(text, "  --seed SRC DST\n"));
	while ((line = strsep(&p, "\n")))
		cr_assert_leq(strlen(line), 80);
}

Test(base_conf, sample_is_a_valid_file_with_every_file_option)
{
	cleanup_free char *text = printed(conf_print_sample);
	cleanup_strbuf struct strbuf open = STRBUF_INIT;

	cr_assert_eq(parse_file(text), 0, "%s", err.text);
	cr_assert_not_null(strstr(text, "#listen = 0.0.0.0:8080\n"));
	cr_assert_null(strstr(text, "seed"));
	cr_assert_null(strstr(text, "help ="));
	/* Uncommented, it is still valid. */
	for (const char *p = text; *p; p++) {
		if (*p == '#' && p[1] != ' ')
			continue;
		strbuf_addc(&open, *p);
	}
	cr_assert_eq(parse_file(strbuf_str(&open)), 0, "%s", err.text);
	cr_assert_str_eq(conf_str(conf, "listen"), "0.0.0.0:8080");
	cr_assert(conf_is_set(conf, "verify"));
}
