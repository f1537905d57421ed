/* SPDX-License-Identifier: MIT */
/*
 * A directory is read by the known names. Only if none of them exists is it listed, to report what
 * it contains instead. In a log, only events whose digest matches their data are trusted.
 */
#include "config.h"

#include "tec/measure/vars.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "measure_internal.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/measure/eventlog.h"

#define NAME_MAX_CHARS 10 /* "SecureBoot" */

void measure_vars_fini(struct measure_vars *v)
{
	for (int i = 0; i < PCR_PLATFORM_N_FILES; i++)
		strbuf_fini(&v->text[i]);
	*v = (struct measure_vars){.found = {false}};
}

void measure_vars_digest(const struct measure_vars *v, uint8_t out[SHA256_LEN])
{
	struct pcr_platform_file files[PCR_PLATFORM_N_FILES] = {{NULL, 0}};

	for (int i = 0; i < PCR_PLATFORM_N_FILES; i++)
		if (v->found[i])
			files[i] =
				(struct pcr_platform_file){strbuf_str(&v->text[i]), v->text[i].len};
	pcr_platform_digest(files, out);
}

/* The name of a firmware variable is that of its file before the GUID. */
static bool is_name(int i, const char *name)
{
	size_t n = strcspn(pcr_platform_files[i], "-");

	return strlen(name) == n && strncmp(name, pcr_platform_files[i], n) == 0;
}

/* Tell whether a file is a variable of the firmware, rather than of shim or none. */
static bool is_firmware(int i)
{
	return i < PCR_PLATFORM_N_VARS || i == PCR_PLATFORM_DBT || i == PCR_PLATFORM_DBR;
}

/* ---- a directory */

static bool any_found(const struct measure_vars *v, int from, int to)
{
	for (int i = from; i < to; i++)
		if (v->found[i])
			return true;
	return false;
}

bool measure_vars_has_firmware(const struct measure_vars *v)
{
	return any_found(v, 0, PCR_PLATFORM_N_VARS);
}

bool measure_vars_has_mok(const struct measure_vars *v)
{
	return any_found(v, PCR_PLATFORM_MOK_LIST, PCR_PLATFORM_ALLOW_VALIDATION_OFF);
}

/* Read the files with these indexes. Missing ones are skipped. */
static int read_files(
	int dir_fd, int from, int to, const char *what, struct measure_vars *out, struct err *err)
{
	for (int i = from; i < to; i++) {
		out->found[i] =
			measure_read_small(dir_fd, pcr_platform_files[i], &out->text[i], err) == 0;
		if (!out->found[i] && err->kind != ERR_NOT_FOUND)
			return err_wrap(err, "%s", what);
		err_clear(err);
	}
	return 0;
}

/* What a directory contains instead of the variables, as bits. */
#define OTHER_FILES 1u
#define PLAIN_NAMES 2u /* PK, db without their GUIDs */
#define MOK_NAMES   4u

/* Examine what a directory contains, for the error message. */
static unsigned look_around(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	unsigned seen = 0;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return OTHER_FILES;
	}
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		seen |= OTHER_FILES;
		if (str_starts(e->d_name, "MokList"))
			seen |= MOK_NAMES;
		for (int i = 0; i < PCR_PLATFORM_N_VARS; i++) {
			if (is_name(i, e->d_name))
				seen |= PLAIN_NAMES;
		}
	}
	closedir(d);
	return seen;
}

/*
 * Explain the likely mistake: the wrong directory, files copied without GUIDs, or nothing copied.
 */
static int refuse_dir(unsigned seen, struct err *err)
{
	const char *is = "the directory is empty";

	if (seen & MOK_NAMES)
		is = "these are MOK variables (--mok-variables)";
	else if (seen & PLAIN_NAMES)
		is = "the file names lack GUIDs";
	else if (seen)
		is = "it contains other files";
	return err_set(err, ERR_NOT_FOUND,
		"firmware variables: %s and the others are missing, %s; next step: copy them from a node's /sys/firmware/efi/efivars%s",
		pcr_platform_files[PCR_PLATFORM_SECURE_BOOT], is,
		seen ? "" : ", or use --secureboot-disabled if it has no keys");
}

int measure_vars_read(int dir_fd, bool may_be_empty, struct measure_vars *out, struct err *err)
{
	unsigned seen;

	if (read_files(dir_fd, 0, PCR_PLATFORM_N_VARS, "firmware variables", out, err) < 0 ||
		read_files(dir_fd, PCR_PLATFORM_DBT, PCR_PLATFORM_N_FILES, "firmware variables",
			out, err) < 0)
		return -1;
	if (measure_vars_has_firmware(out))
		return 0;
	seen = look_around(dir_fd);
	return !seen && may_be_empty ? 0 : refuse_dir(seen, err);
}

int measure_vars_read_mok(int dir_fd, struct measure_vars *out, struct err *err)
{
	return read_files(dir_fd, PCR_PLATFORM_MOK_LIST, PCR_PLATFORM_ALLOW_VALIDATION_OFF,
		"MOK variables", out, err);
}

int measure_vars_read_platform(int dir_fd, struct measure_vars *out, struct err *err)
{
	if (read_files(dir_fd, 0, PCR_PLATFORM_N_FILES, "variables", out, err) < 0)
		return -1;
	if (measure_vars_has_firmware(out) || measure_vars_has_mok(out) ||
		out->found[PCR_PLATFORM_EVENTS])
		return 0;
	return refuse_dir(look_around(dir_fd), err);
}

/* ---- a log */

enum pcr_platform_var measure_variable_of(const struct efi_logged_variable *v)
{
	char name[NAME_MAX_CHARS + 1] = "";
	int i = 0;

	if (v->name_chars > NAME_MAX_CHARS)
		return PCR_PLATFORM_N_FILES;
	for (size_t c = 0; c < v->name_chars; c++)
		name[c] = v->name[2 * c + 1] ? '?' : (char)v->name[2 * c];
	while (i < PCR_PLATFORM_N_FILES &&
		!(is_firmware(i) && is_name(i, name) &&
			memcmp(&v->guid,
				i < PCR_PLATFORM_DB ? &efi_global_variable
						    : &efi_image_security_database,
				sizeof(v->guid)) == 0))
		i++;
	return (enum pcr_platform_var)i;
}

/* Take the first event of each variable, as the firmware measures each one once, and store it as an
 * efivarfs file. An empty variable is one without a file, except for SecureBoot, which is then measured
 * as empty rather than as off. The log has no attributes, so the usual ones are added: 0x06 for SecureBoot, which
 * only firmware writes, and 0x27 for authenticated variables. */
static int take_event(
	const struct eventlog_event *e, struct measure_vars *out, bool *seen, struct err *err)
{
	uint8_t digest[SHA256_LEN], attributes[MEASURE_VARS_ATTRIBUTES] = {0x27};
	struct efi_logged_variable v;
	enum pcr_platform_var i;

	if (e->pcr != 7 || e->type != EVENTLOG_VARIABLE ||
		!efi_logged_variable(e->data, e->len, &v))
		return 0;
	i = measure_variable_of(&v);
	if (i == PCR_PLATFORM_N_FILES)
		return 0;
	*seen = true;
	if (out->found[i] || (v.len == 0 && i != PCR_PLATFORM_SECURE_BOOT))
		return 0;
	bytes_sha256(e->data, e->len, digest);
	if (memcmp(digest, e->sha256, SHA256_LEN) != 0)
		return err_set(err, ERR_INVALID,
			"the event log: the contents of %s differ from what was measured",
			pcr_platform_files[i]);
	if (i == PCR_PLATFORM_SECURE_BOOT)
		attributes[0] = 0x06;
	out->found[i] = true;
	strbuf_add(&out->text[i], attributes, sizeof(attributes));
	strbuf_add(&out->text[i], v.data, v.len);
	return 0;
}

/* Events that are not firmware variables are skipped, but a damaged log is refused as a whole. */
int measure_vars_from_log(const void *log, size_t len, struct measure_vars *out, struct err *err)
{
	struct eventlog_event e;
	struct eventlog l;
	bool seen = false;
	int rc;

	if (eventlog_open(log, len, &l, err) < 0)
		return -1;
	while ((rc = eventlog_next(&l, &e, err)) > 0)
		if (take_event(&e, out, &seen, err) < 0)
			return -1;
	if (rc == 0 && !seen)
		return err_set(err, ERR_INVALID,
			"the event log does not contain the firmware variables (EV_EFI_VARIABLE_DRIVER_CONFIG in PCR 7)");
	return rc;
}
