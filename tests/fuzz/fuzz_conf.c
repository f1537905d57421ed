/* SPDX-License-Identifier: MIT */
/* A configuration file from anywhere, read twice as SIGHUP does: its values can be asked for, or it
 * changed nothing. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tec/base/conf.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct conf_option table[] = {
	{"a", CONF_STRING, "TEXT", "default", .help = "A text.", .reloadable = true},
	{"listen", CONF_STRING, "ADDR", .help = "Fixed."},
	{"verify", CONF_BOOL, "BOOL", "true", .help = "A switch.", .reloadable = true},
	{"format", CONF_CHOICE, "WORD", "text", .choices = "text, json", .help = "A word."},
	{"config", CONF_FILE, "FILE", .help = "Not in a file."},
	{"help", CONF_ACTION, .help = "Not in a file."},
	{"many", CONF_LIST, "X", .help = "Not in a file."},
	{"seed", CONF_PAIR, "SRC DST", .help = "Not in a file."},
};
static const struct conf_program program = {
	.name = "fuzz", .usage = "", .options = table, .n_options = ARRAY_LEN(table)};

static void drop_line(enum log_level level, const char *line, void *arg)
{
}

static void check(const struct conf *c)
{
	const char *a = conf_str(c, "a");

	if (!a || strchr(a, '\n') || a[0] == ' ')
		DIE("a value that no line can hold");
	(void)conf_choice(c, "format"); /* dies of anything else */
	if (!str_eq(conf_str(c, "verify"), conf_bool(c, "verify") ? "true" : "false"))
		DIE("a switch that is neither");
	if (conf_is_set(c, "config") || conf_is_set(c, "help") || conf_is_set(c, "many") ||
		conf_is_set(c, "seed"))
		DIE("a file set what is for the command line");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("conf", MFD_CLOEXEC);
	struct conf *c = conf_new(&program);
	struct err err = ERR_INIT;
	char path[40];
	size_t half = size / 2;

	log_capture(drop_line, NULL);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		DIE("no file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if ((conf_parse_file(c, path, &err) == 0) == err_is_set(&err))
		DIE("neither a result nor an error, or both");
	check(c);
	err_clear(&err);
	if (ftruncate(fd, (off_t)half) < 0) /* another file the second time */
		DIE("no file");
	if (conf_parse_file(c, path, &err) < 0)
		err_clear(&err);
	check(c);
	close(fd);
	conf_free(c);
	return 0;
}
