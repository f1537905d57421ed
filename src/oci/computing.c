/* SPDX-License-Identifier: MIT */
/*
 * The program that compute.c starts. Whatever an image does to the processes that read it, they
 * must not open the operator's files, although they run as the same user: they inherit the
 * restrictions that this program imposes on itself. Without Landlock it therefore computes nothing.
 */
#include "config.h"

#include "tec/oci/compute.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/bytes.h"
#include "tec/base/confine.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/loop/child.h"
#include "tec/loop/loop.h"
#include "tec/net/httpc_proxy.h"

#include "oci_internal.h"

#define QUESTION_MAX (32u << 20)
#define ARGS_MAX     48
#define DESCRIPTORS  256u
#define COMPUTE_MS   (20u * 60 * 1000)
#define NAME         "tec-compute-pcrs"

struct computing {
	struct json_object *question; /* owned */
	const char *scratch;
	struct loop *loop;
	struct op_scope ops;
	struct oci_lines lines;
	struct err *err;
};

/* In the build directory the tool is next to this program. */
char *oci_compute_tool(void)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash, *beside;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	beside = xasprintf("%.*s/%s", slash ? (int)(slash - self) : 0, self, NAME);
	if (access(beside, X_OK) == 0)
		return beside;
	free(beside);
	return xasprintf("%s/%s", TEC_BINDIR, NAME);
}

/* ---- lines */

/* Overlong lines are cut at the size of the buffer. The text may come from a registry, so control
 * characters become '?'. */
void oci_lines_add(struct oci_lines *l, const char *data, size_t len, oci_said_fn line, void *arg)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char b = (unsigned char)data[i];
		const char *text = l->text, *name;

		if (b != '\n') {
			if (l->len < sizeof(l->text) - 1)
				l->text[l->len++] = (char)(b < ' ' || b >= 0x7f ? '?' : b);
			continue;
		}
		l->text[l->len] = '\0';
		l->len = 0;
		name = strstr(text, ": ");
		if (str_starts(text, "tec-") && name)
			text = name + 2;
		if (!*text)
			continue;
		snprintf(l->last, sizeof(l->last), "%s", text);
		line(arg, l->last);
	}
}

/* ---- the directory */

/* Keep the directory itself. Errors are ignored: what cannot be removed makes a later step fail. */
static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (ftw->level > 0)
		(void)remove(path);
	return 0;
}

/* Remove everything below a directory. FTW_PHYS: links are removed, not followed. */
static void empty(const char *dir)
{
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int make_dir(const char *path, struct err *err)
{
	return mkdir(path, 0700) == 0 || errno == EEXIST
		       ? 0
		       : err_set_errno(err, ERR_INVALID, errno, "cannot create %s", log_esc(path));
}

/* Write the members of a ConfigMap as files. It comes from the API, but is treated as untrusted:
 * names that are not plain file names are skipped, and so is a binary value that is not base64. */
static int write_members(const char *dir, struct json_object *o, bool binary, struct err *err)
{
	json_object_object_foreach (o, name, value) {
		const char *text = json_object_get_string(value);
		size_t len = (size_t)json_object_get_string_len(value);
		cleanup_free char *path = xasprintf("%s/%s", dir, name);
		cleanup_free uint8_t *bytes = NULL;

		if (!json_object_is_type(value, json_type_string) ||
			(binary && bytes_from_b64(text, strlen(text), &bytes, &len) != 0) ||
			!*name || strchr(name, '/') || str_eq(name, ".") || str_eq(name, ".."))
			continue;
		if (file_replace(path, binary ? (const char *)bytes : text, len, 0600, err) < 0)
			return -1;
	}
	return 0;
}

int oci_compute_platform(const char *dir, struct json_object *configmap, struct err *err)
{
	struct json_object *binary = json_get_obj(configmap, "binaryData"),
			   *plain = json_get_obj(configmap, "data");

	if (make_dir(dir, err) < 0 || (binary && write_members(dir, binary, true, err) < 0))
		return -1;
	return plain ? write_members(dir, plain, false, err) : 0;
}

/* ---- the children */

static void on_line(void *arg, const char *line)
{
	fprintf(stderr, "%s\n", line);
}

static void on_said(void *arg, const char *data, size_t len)
{
	struct computing *c = arg;

	oci_lines_add(&c->lines, data, len, on_line, NULL);
}

/* Stop the loop of run(). The child's last line is more useful than its exit status. */
static void on_done(void *arg, const struct err *err, const char *out, size_t len)
{
	struct computing *c = arg;

	if (err_is_set(err))
		err_set(c->err, err->kind, "%s", c->lines.last[0] ? c->lines.last : err->text);
	loop_stop(c->loop);
}

/* Run tec-compute-pcrs and wait for it. argv begins with the program's name; input may be NULL.
 * proxies: it asks a registry. */
static int run(struct computing *c, const char *const *argv, const char *input, bool proxies,
	uint32_t deadline_ms, struct err *err)
{
	cleanup_free char *tmp = xasprintf("TMPDIR=%s", c->scratch);
	const char *env[1 + HTTPC_PROXY_VARIABLES + 1] = {tmp};
	const struct child_spec spec = {
		.file = json_get_str(c->question, "tool"),
		.argv = argv,
		.env = env,
		.bare_env = true,
		.input = input,
		.input_len = input ? strlen(input) : 0,
		.max_out = OCI_COMPUTE_MESSAGE_MAX,
		.deadline_ms = deadline_ms,
		.said = on_said,
	};

	if (proxies)
		httpc_proxy_env(env + 1);
	c->err = err;
	c->lines.last[0] = '\0';
	(void)child_start(c->loop, &c->ops, &spec, on_done, c);
	loop_run(c->loop);
	return err_is_set(err) ? -1 : 0;
}

/* Fetch the image's files. Only this child gets the credentials, through a file descriptor and
 * never as a file on disk; they are wiped afterwards. */
static int fetch(struct computing *c, const char *rootfs, struct err *err)
{
	const char *argv[ARGS_MAX] = {
		NAME, "fetch", json_get_str(c->question, "reference"), "--into", rootfs};
	const char *ca = json_get_str(c->question, "ca"), *auth = json_get_str(c->question, "auth");
	struct json_object *options = json_get_arr(c->question, "options");
	size_t n = 5;
	int rc;

	for (size_t i = 0; options && i < json_object_array_length(options) && n < ARGS_MAX - 5;
		i++)
		argv[n++] = json_object_get_string(json_object_array_get_idx(options, i));
	if (ca) {
		argv[n++] = "--registry-ca";
		argv[n++] = ca;
	}
	if (auth) {
		argv[n++] = "--registry-auth";
		argv[n++] = "/proc/self/fd/0";
	}
	rc = run(c, argv, auth, true, OCI_COMPUTE_DEADLINE_MS, err);
	json_wipe(json_get(c->question, "auth"));
	return rc;
}

/* Write each platform to a directory, and append --platform NAME=DIR to the arguments. */
static int add_platforms(struct computing *c, struct json_object *out, struct err *err)
{
	struct json_object *platforms = json_get_obj(c->question, "platforms");
	cleanup_free char *all = xasprintf("%s/platforms", c->scratch);

	if (!platforms)
		return 0;
	if (make_dir(all, err) < 0)
		return -1;
	json_object_object_foreach (platforms, name, map) {
		cleanup_free char *dir = xasprintf("%s/%s", all, name),
				  *arg = xasprintf("%s=%s", name, dir);

		if (oci_compute_platform(dir, map, err) < 0)
			return err_wrap(err, "platform %.60s", log_esc(name));
		json_push_str(json_push_str(out, "--platform"), arg);
	}
	return 0;
}

/* Compute the values, without the credentials, and copy the result to out_fd. */
static int compute(struct computing *c, const char *rootfs, int out_fd, struct err *err)
{
	cleanup_free char *result = xasprintf("%s/result", c->scratch), *text = NULL;
	cleanup_json struct json_object *platforms = json_arr();
	const char *argv[ARGS_MAX] = {NAME, "--image", json_get_str(c->question, "reference"),
		"--nonce", json_get_str(c->question, "nonce"), "--rootfs", rootfs, "--result",
		result};
	size_t n = 9, len;

	if (add_platforms(c, platforms, err) < 0)
		return -1;
	for (size_t i = 0; i < json_object_array_length(platforms) && n < ARGS_MAX - 2; i++)
		argv[n++] = json_object_get_string(json_object_array_get_idx(platforms, i));
	if (run(c, argv, NULL, false, COMPUTE_MS, err) < 0)
		return -1;
	text = file_read(result, OCI_COMPUTE_MESSAGE_MAX, &len, NULL, err);
	if (text && file_write(out_fd, text, len) < 0)
		err_set_errno(err, ERR_INVALID, errno, "cannot write the answer");
	return err_is_set(err) ? -1 : 0;
}

/* ---- restrictions */

/* Restrict this process and its children. The order matters: afterwards only the scratch directory
 * can be written, so it is created first. */
static int confine(struct computing *c, struct err *err)
{
	static const struct confine_limits limits = {.cpu_s = OCI_COMPUTE_CPU_S,
		.descriptors = DESCRIPTORS,
		.memory = OCI_COMPUTE_MEMORY,
		.file = OCI_COMPUTE_FILE};
	const char *paths[OCI_READABLE + 2];
	struct confine_files files = {.read = paths, .n_read = OCI_READABLE, .run = true};
	bool done;

	memcpy(paths, oci_readable, sizeof(oci_readable));
	paths[files.n_read++] = json_get_str(c->question, "tool");
	if (json_get_str(c->question, "ca"))
		paths[files.n_read++] = json_get_str(c->question, "ca");
	if (confine_process(&limits, err) < 0 || make_dir(c->scratch, err) < 0)
		return -1;
	files.write_fd = open(c->scratch, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (files.write_fd < 0)
		return err_set_errno(
			err, ERR_INVALID, errno, "cannot open %s", log_esc(c->scratch));
	done = confine_files(&files);
	close(files.write_fd);
	return done ? 0
		    : err_set(err, ERR_DENIED,
			      "computing images requires Landlock (Linux 5.19), which isolates the programs that read them from the operator's files; next step: run tecctl image approve --rootfs DIR on another machine");
}

/* Read the request. Its buffer held credentials, so it is wiped. */
static struct json_object *read_question(int fd, struct err *err)
{
	static const struct json_limits limits = {QUESTION_MAX, 16, 100000, false};
	size_t len;
	char *text = file_read_fd(fd, "the request", QUESTION_MAX, &len, err);
	struct json_object *o = text ? json_parse(text, len, &limits, err) : NULL;

	file_wipe(text, len);
	if (o && (!json_get_str(o, "tool") || !json_get_str(o, "scratch"))) {
		json_object_put(o);
		err_set(err, ERR_INVALID, "the request lacks tool or scratch");
		return NULL;
	}
	return o;
}

/* Fetch, then compute. Both work below the scratch directory, the only one that can be written.
 * Files are removed before and after: an earlier process may have been killed. */
int oci_compute_serve(int in_fd, int out_fd, struct err *err)
{
	struct computing c = {.question = read_question(in_fd, err)};
	cleanup_free char *rootfs = NULL;
	int rc;

	if (!c.question)
		return -1;
	c.scratch = json_get_str(c.question, "scratch");
	rc = confine(&c, err);
	if (rc == 0) {
		c.loop = loop_new();
		empty(c.scratch);
		rootfs = xasprintf("%s/rootfs", c.scratch);
		if (json_get_str(c.question, "reference") &&
			(make_dir(rootfs, err) < 0 || fetch(&c, rootfs, err) < 0 ||
				compute(&c, rootfs, out_fd, err) < 0))
			rc = -1;
		empty(c.scratch);
		op_scope_cancel(&c.ops);
		loop_free(c.loop);
	}
	json_wipe(c.question);
	json_object_put(c.question);
	return rc;
}
