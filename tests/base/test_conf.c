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
	{"listen", CONF_STRING, "ADDR:PORT", "0.0.0.0:8080", .group = "Listening",
		.help = "Where to listen."},
	{"level", CONF_STRING, "LEVEL", .help = "How much to log.", .letter = 'l',
		.reloadable = true},
	{"verify", CONF_BOOL, NULL, "true", .help = "Whether to verify.", .letter = 'v',
		.reloadable = true},
	{"format", CONF_CHOICE, "FORMAT", "text", .choices = "text, json, js",
		.help = "How it looks.", .reloadable = true},
	{"disk", CONF_LIST, "FILE", .help = "A disk, and another one.", .letter = 'd'},
	{"count", CONF_STRING, "N", "5", .help = "How many."},
	{"seed", CONF_PAIR, "SRC DST",
		.help = "Copies the object SRC to DST before anything else is done, which is what an "
			"installer wants."},
	{"version", CONF_ACTION, .help = "Print the version.", .letter = 'V'},
	{"help", CONF_ACTION, .help = "Print this text.", .letter = 'h'},
};
static const struct conf_program program = {
	.name = "prog", .usage = "[OPTION]...", .options = table, .n_options = ARRAY_LEN(table)};

static const struct conf_command commands[] = {
	{"list", NULL, "Lists what is there.", "level disk"},
	{"show", "NAME", "Shows one thing.", "level format"},
};
static const struct conf_command or_none[] = {
	{"list", NULL, "Lists what is there.", "level disk"},
	{.options = "listen"},
};
static const struct conf_program with_commands = {.name = "prog",
	.usage = "COMMAND [OPTION]...\n--listen=X",
	.about = "Does things.",
	.notes = "Exit status: 0.",
	.options = table,
	.n_options = ARRAY_LEN(table),
	.commands = commands,
	.n_commands = ARRAY_LEN(commands)};
static const struct conf_program with_a_default = {.name = "prog",
	.options = table,
	.n_options = ARRAY_LEN(table),
	.commands = or_none,
	.n_commands = ARRAY_LEN(or_none)};

static struct conf *conf;
static struct err err;
static char path[64];

static void setup(void)
{
	conf = conf_new(&program);
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
	cr_assert(!conf_is_set(conf, "listen"));
	cr_assert_eq(conf_choice(conf, "format"), 0);
	cr_assert_null(conf_nth(conf, "disk", 0));
	cr_assert_null(conf_nth(conf, "seed", 1));
}

Test(base_conf, command_line_forms)
{
	cr_assert_eq(ARGV("--listen=[::1]:1", "--level", "debug", "--verify=false", "--help",
			     "--help", "--format", "json", "--seed", "a", "--b"),
		0, "%s", err.text);
	cr_assert_str_eq(conf_str(conf, "listen"), "[::1]:1");
	cr_assert_str_eq(conf_str(conf, "level"), "debug");
	cr_assert(!conf_bool(conf, "verify"));
	cr_assert(conf_bool(conf, "help"));
	cr_assert_eq(conf_choice(conf, "format"), 1);
	cr_assert_str_eq(conf_str(conf, "seed"), "a");
	cr_assert_str_eq(conf_nth(conf, "seed", 1), "--b");
	cr_assert_null(conf_nth(conf, "seed", 2));
	cr_assert(conf_is_set(conf, "listen"));
}

Test(base_conf, letters_stand_alone_together_and_before_a_value)
{
	static const char *const t[][4] = {{"-l", "x", "-v", "-h"}, {"-lx", "-vh"}, {"-l=x", "-hv"},
		{"-vhl", "x"}, {"-vhlx"}, {"-hhvl=x"}, {"--level=x", "-v", "--help"}};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct conf *c = conf_new(&program);
		int n = 0;

		while (n < 4 && t[i][n])
			n++;
		cr_expect_eq(parse_words(c, t[i], n), 0, "%zu: %s", i, err.text);
		cr_expect_str_eq(conf_str(c, "level"), "x", "%zu", i);
		cr_expect(conf_bool(c, "verify") && conf_bool(c, "help"), "%zu", i);
		conf_free(c);
	}
}

Test(base_conf, a_list_keeps_all_its_values)
{
	cr_assert_eq(ARGV("--disk", "a", "-db", "--disk=", "-d=c"), 0, "%s", err.text);
	cr_assert_str_eq(conf_nth(conf, "disk", 0), "a");
	cr_assert_str_eq(conf_nth(conf, "disk", 1), "b");
	cr_assert_str_eq(conf_nth(conf, "disk", 2), "");
	cr_assert_str_eq(conf_nth(conf, "disk", 3), "c");
	cr_assert_null(conf_nth(conf, "disk", 4));
}

Test(base_conf, values_may_be_empty_or_hold_anything)
{
	cr_assert_eq(ARGV("--listen=", "--level=a=b --x"), 0);
	cr_assert_str_eq(conf_str(conf, "listen"), "");
	cr_assert_str_eq(conf_str(conf, "level"), "a=b --x");
}

Test(base_conf, command_line_refuses_and_names_it)
{
	static const struct {
		const char *a, *b, *named;
	} t[] = {{"x", NULL, "\"x\""}, {"-x", NULL, "-x"}, {"-hx", NULL, "-hx"},
		{"-", NULL, "\"-\""}, {"--", NULL, "--"}, {"--listen", NULL, "--listen"},
		{"-l", NULL, "--level"}, {"--nope", NULL, "--nope"},
		{"--nope=secret", NULL, "--nope"}, {"--lis=1", NULL, "--lis"},
		{"--verify=yes", NULL, "true, false"}, {"--verify=", NULL, "--verify"},
		{"--help=true", NULL, "--help"}, {"--seed", "a", "--seed"},
		{"--seed=a", "b", "--seed"}, {"--listen=a", "--listen=b", "twice"},
		{"-la", "--level=b", "--level is given twice"}, {"--verify", "true", "\"true\""},
		{"--format=xml", NULL, "text, json, js"}, {"--format=", NULL, "--format"},
		{"--format", "json,", "--format"}, {"--format=jso", NULL, "--format"},
		{"--=x", NULL, "--"}, {"", NULL, "\"\""}, {"--Listen=a", NULL, "--Listen"},
		{"---listen=a", NULL, "---listen"}, {"--disk", NULL, "--disk"}};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct conf *c = conf_new(&program);

		err_clear(&err);
		cr_expect_eq(parse_words(c, (const char *[]){t[i].a, t[i].b}, t[i].b ? 2 : 1), -1,
			"%s", t[i].a);
		cr_expect_eq(err.kind, ERR_INVALID);
		cr_expect(strstr(err.text, t[i].named), "%s: %s", t[i].a, err.text);
		cr_expect(!strstr(err.text, "secret"));
		conf_free(c);
	}
}

/* What the words give with this program: -1, or the command's index. */
static int command_of(const struct conf_program *p, struct conf **out, const char *const words[4])
{
	int n = 0, rc;

	while (n < 4 && words[n])
		n++;
	*out = conf_new(p);
	err_clear(&err);
	rc = parse_words(*out, words, n);
	return rc < 0 ? -1 : (int)conf_command(*out);
}

Test(base_conf, a_command_takes_its_operand_and_its_options)
{
	static const struct {
		const char *words[4];
		int command;
		const char *operand;
	} t[] = {{{"list"}, 0, NULL}, {{"-ld", "list", "--disk=b"}, 0, NULL},
		{{"show", "x"}, 1, "x"}, {{"--format=json", "show", "-ly", "x"}, 1, "x"},
		{{"show", ""}, 1, ""}};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct conf *c;

		cr_expect_eq(command_of(&with_commands, &c, t[i].words), t[i].command, "%zu: %s", i,
			err.text);
		if (t[i].operand)
			cr_expect_str_eq(conf_operand(c), t[i].operand, "%zu", i);
		else
			cr_expect_null(conf_operand(c), "%zu", i);
		conf_free(c);
	}
}

Test(base_conf, what_a_command_does_not_take_is_refused)
{
	static const struct {
		const char *words[4], *text;
	} t[] = {{{NULL}, "no command"}, {{"-l", "x"}, "no command"},
		{{"lists"}, "unknown command \"lists\""}, {{""}, "unknown command \"\""},
		{{"list", "x"}, "unexpected argument \"x\""},
		{{"show", "x", "list"}, "unexpected argument \"list\""},
		{{"show"}, "command show needs NAME"},
		{{"list", "--format=json"}, "option --format has no effect with list"},
		{{"show", "x", "-d", "a"}, "option --disk has no effect with show"}};
	struct conf *c;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cr_expect_eq(command_of(&with_commands, &c, t[i].words), -1, "%zu", i);
		cr_expect_str_eq(err.text, t[i].text);
		conf_free(c);
	}
	/* A question is answered whatever else is missing. */
	c = conf_new(&with_commands);
	cr_expect_eq(parse_words(c, (const char *[]){"-h"}, 1), 0, "%s", err.text);
	conf_free(c);
}

Test(base_conf, a_program_may_do_something_without_a_command)
{
	struct conf *c;

	cr_expect_eq(command_of(&with_a_default, &c, (const char *[4]){"--listen=x"}), 1);
	conf_free(c);
	cr_expect_eq(command_of(&with_a_default, &c, (const char *[4]){"list"}), 0);
	conf_free(c);
	cr_expect_eq(command_of(&with_a_default, &c, (const char *[4]){"-lx"}), -1);
	cr_expect_str_eq(err.text, "option --level has no effect without a command");
	conf_free(c);
}

Test(base_conf, numbers_have_limits)
{
	static const struct {
		const char *text;
		bool good;
	} t[] = {{"--count=1", true}, {"--count=10", true}, {"--count=0", false},
		{"--count=11", false}, {"--count=1x", false}, {"--count=", false},
		{"--count=-1", false}, {"--count=99999999999999999999", false}};
	uint64_t n;

	cr_assert_eq(conf_number(conf, "count", 1, 10, &n, &err), 0);
	cr_assert_eq(n, 5);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct conf *c = conf_new(&program);

		err_clear(&err);
		cr_assert_eq(parse_words(c, &t[i].text, 1), 0);
		cr_expect_eq(conf_number(c, "count", 1, 10, &n, &err), t[i].good ? 0 : -1, "%s",
			t[i].text);
		cr_expect(t[i].good || strstr(err.text, "--count"), "%s", err.text);
		cr_expect(t[i].good || strstr(err.text, "from 1 to 10"), "%s", err.text);
		conf_free(c);
	}
	err_clear(&err);
	cr_expect_eq(conf_number(conf, "level", 1, 10, &n, &err), -1);
}

Test(base_conf, the_start_of_a_program_answers_questions)
{
	static const struct {
		const char *word;
		enum conf_result result;
	} t[] = {{"--version", CONF_EXIT}, {"-h", CONF_EXIT}, {"-lx", CONF_RUN},
		{"--nope", CONF_BAD}};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct conf *c = conf_new(&program);
		char *argv[] = {(char *)(uintptr_t) "prog", (char *)(uintptr_t)t[i].word};

		cr_expect_eq(conf_start(c, 2, argv), t[i].result, "%s", t[i].word);
		conf_free(c);
	}
}

Test(base_conf, file_forms)
{
	cr_assert_eq(parse_file("# comment\n\n  listen = 1.2.3.4:5  \r\nlevel=a = b # no comment\n"
				"\tverify\t=\tfalse\nformat = js\ncount ="),
		0, "%s", err.text);
	cr_assert_str_eq(conf_str(conf, "listen"), "1.2.3.4:5");
	cr_assert_str_eq(conf_str(conf, "level"), "a = b # no comment");
	cr_assert(!conf_bool(conf, "verify"));
	cr_assert_eq(conf_choice(conf, "format"), 2);
	cr_assert_str_eq(conf_str(conf, "count"), "");
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
		"verify = 1", "verify =", "format = xml", "format =", "disk = a",
		"level = a\nlevel = b", "--listen = a", "[section]", "listen: a", "Listen = a"};

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
static char *printed(
	void (*print)(const struct conf_program *, FILE *), const struct conf_program *p)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	print(p, f);
	fclose(f);
	return text;
}

Test(base_conf, help_lists_every_option)
{
	cleanup_free char *text = printed(conf_print_help, &program);
	cleanup_free char *rest = xstrdup(text);
	char *p = rest, *line;

	cr_assert(str_starts(text,
		"Usage: prog [OPTION]...\n\nListening:\n"
		"  --listen=ADDR:PORT\n        Where to listen.\n        Default: 0.0.0.0:8080\n"));
	cr_assert_not_null(strstr(text, "  --level=LEVEL, -l LEVEL\n"));
	cr_assert_not_null(strstr(text, "  --verify[=true|false], -v\n"));
	cr_assert_not_null(strstr(text, "  --format=FORMAT\n"));
	cr_assert_not_null(strstr(text, "  --help, -h\n"));
	cr_assert_not_null(strstr(text, "  --seed SRC DST\n"));
	while ((line = strsep(&p, "\n")))
		cr_assert_leq(strlen(line), 80);
}

Test(base_conf, help_lists_every_command)
{
	cleanup_free char *text = printed(conf_print_help, &with_commands);

	cr_assert(str_starts(text,
		"Usage: prog COMMAND [OPTION]...\n       prog --listen=X\nDoes things.\n\n"
		"Commands:\n  list\n        Lists what is there.\n"
		"  show NAME\n        Shows one thing.\n\nListening:\n"));
	cr_assert_not_null(
		strstr(text, "  --help, -h\n        Print this text.\n\nExit status: 0.\n"));
}

Test(base_conf, sample_is_a_valid_file_with_every_file_option)
{
	cleanup_free char *text = printed(conf_print_sample, &program);
	cleanup_strbuf struct strbuf open = STRBUF_INIT;

	cr_assert_eq(parse_file(text), 0, "%s", err.text);
	cr_assert_not_null(strstr(text, "#listen = 0.0.0.0:8080\n"));
	cr_assert_null(strstr(text, "seed"));
	cr_assert_null(strstr(text, "help ="));
	cr_assert_null(strstr(text, "disk"));
	cr_assert_null(strstr(text, "Listening"));
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

/* ---- an option whose value may be left out */

Test(base_conf, an_optional_value_is_only_what_is_joined)
{
	static const struct conf_option options[] = {
		{"alone", CONF_OPTIONAL, "DIR", .help = "Alone."},
		{"level", CONF_STRING, "N", .help = "How much."},
	};
	static const struct conf_program p = {
		.name = "prog", .usage = "", .options = options, .n_options = ARRAY_LEN(options)};
	char *const without[] = {(char *)"prog", (char *)"--alone", (char *)"--level", (char *)"3"};
	char *const with[] = {(char *)"prog", (char *)"--alone=/x"};
	struct conf *c = conf_new(&p);
	struct err e = ERR_INIT;

	cr_assert_eq(conf_parse_argv(c, ARRAY_LEN(without), without, &e), 0, "%s", e.text);
	cr_expect_str_eq(conf_str(c, "alone"), "");
	cr_expect_str_eq(conf_str(c, "level"), "3");
	conf_free(c);
	c = conf_new(&p);
	cr_expect_null(conf_str(c, "alone"));
	cr_assert_eq(conf_parse_argv(c, ARRAY_LEN(with), with, &e), 0, "%s", e.text);
	cr_expect_str_eq(conf_str(c, "alone"), "/x");
	conf_free(c);
}

/* ---- commands of two words, and completion */

static const struct conf_command in_groups[] = {
	{"thing list", NULL, "Lists things.", NULL},
	{"thing show", "[NAME]", "Shows one, or all.", "format"},
	{"thin", NULL, "Something else.", NULL},
};
static const char *const group_values[][2] = {{"thing show", "thing list"}};
static const struct conf_program with_groups = {.name = "prog",
	.usage = "COMMAND",
	.options = table,
	.n_options = ARRAY_LEN(table),
	.commands = in_groups,
	.n_commands = ARRAY_LEN(in_groups),
	.values = group_values,
	.n_values = ARRAY_LEN(group_values),
	.common = "level count"};

Test(conf_groups, commands_of_two_words)
{
	static const struct {
		const char *words[4];
		int command; /* -1: refused */
		const char *operand, *said;
	} cases[] = {
		{{"thing", "list"}, 0, NULL, NULL},
		{{"thing", "--level=1", "show", "x"}, 1, "x", NULL},
		{{"thing", "show"}, 1, NULL, NULL},
		{{"thin", "--count=1"}, 2, NULL, NULL},
		{{"thing"}, -1, NULL, "command thing needs one of list, show"},
		{{"thing", "lis"}, -1, NULL, "unknown command thing \"lis\""},
		{{"thi"}, -1, NULL, "unknown command \"thi\""},
		{{"thing list"}, 0, NULL, NULL},
		{{"thing", "list", "x"}, -1, NULL, "unexpected argument \"x\""},
		{{"thing", "list", "--format=json"}, -1, NULL, "has no effect with thing list"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *argv[5] = {(char *)(uintptr_t) "prog"};
		struct conf *c = conf_new(&with_groups);
		struct err e = ERR_INIT;
		int argc = 1, rc;

		for (; argc < 5 && cases[i].words[argc - 1]; argc++)
			argv[argc] = (char *)(uintptr_t)cases[i].words[argc - 1];
		rc = conf_parse_argv(c, argc, argv, &e);
		cr_expect_eq(rc, cases[i].command < 0 ? -1 : 0, "case %zu: %s", i, e.text);
		if (rc == 0) {
			cr_expect_eq((int)conf_command(c), cases[i].command, "case %zu", i);
			cr_expect(str_eq(conf_operand(c), cases[i].operand), "case %zu", i);
		} else {
			cr_expect(strstr(e.text, cases[i].said), "case %zu: %s", i, e.text);
		}
		conf_free(c);
	}
}

Test(conf_groups, help_of_one_command_has_its_options_and_the_common_ones)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	conf_print_command_help(&with_groups, &in_groups[1], out);
	fclose(out);
	cr_expect(
		str_starts(text,
			"Usage: prog thing show [NAME] [OPTION]...\nShows one, or all.\n\nOptions:\n  --format=FORMAT\n"),
		"%s", text);
	cr_expect(strstr(text, "\nCommon options:\n  --level=LEVEL, -l LEVEL\n"), "%s", text);
	cr_expect(strstr(text, "  --count=N\n") && strstr(text, "  --help, -h\n"));
	cr_expect_null(strstr(text, "--disk"));
	free(text);
}

Test(conf_groups, every_shell_gets_every_word)
{
	static const char *const words[] = {"thing", "list", "show", "thin", "format", "json"};

	for (int shell = CONF_BASH; shell <= CONF_FISH; shell++) {
		char *text = NULL;
		size_t len;
		FILE *out = open_memstream(&text, &len);

		conf_print_completion(&with_groups, (enum conf_shell)shell, out);
		fclose(out);
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			cr_expect(strstr(text, words[i]), "shell %d lacks %s", shell, words[i]);
		cr_expect(strstr(text, "thing list"), "shell %d", shell);
		free(text);
	}
}
