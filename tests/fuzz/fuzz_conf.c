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
	{"a", CONF_STRING, "TEXT", "default", "A text.", true},
	{"listen", CONF_STRING, "ADDR", NULL, "Fixed.", false},
	{"verify", CONF_BOOL, "BOOL", "true", "A switch.", true},
	{"profile", CONF_OPTIONAL, "FILE", NULL, "Perhaps a file.", false},
	{"config", CONF_FILE, "FILE", NULL, "Not in a file.", false},
	{"help", CONF_ACTION, NULL, NULL, "Not in a file.", false},
	{"seed", CONF_PAIR, "SRC DST", NULL, "Not in a file.", false},
};

static void drop_line(enum log_level level, const char *line, void *arg)
{
}

static void check(const struct conf *c)
{
	const char *a = conf_str(c, "a");

	if (!a || strchr(a, '\n') || a[0] == ' ')
		DIE("a value that no line can hold");
	(void)conf_bool(c, "verify"); /* dies of anything but true and false */
	if (conf_is_set(c, "config") || conf_is_set(c, "help") || conf_is_set(c, "seed"))
		DIE("a file set what is for the command line");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("conf", MFD_CLOEXEC);
	struct conf *c = conf_new(table, ARRAY_LEN(table));
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
