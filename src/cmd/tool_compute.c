/* SPDX-License-Identifier: MIT */
/*
 * The child reads files of an image, which are untrusted. It gets a directory of its own, an empty
 * environment and no kubeconfig; tecctl reads only its output, of bounded size.
 */
#include "config.h"

#include "tool_compute.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/bytes.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/loop/child.h"
#include "tec/model/pcrmsg.h"
#include "tec/net/httpc_proxy.h"
#include "tec/oci/compute.h"

#define PROGRAM    "tec-compute-pcrs"
#define VALUES_MAX (8u << 20)
#define ARGS_MAX   64

/* ---- directory */

/* The program is checked first, to name what to install. */
int tool_compute_init(struct tool_compute *c, struct tool *t, struct err *err)
{
	*c = (struct tool_compute){.t = t, .file = oci_compute_tool()};
	if (access(c->file, X_OK) < 0)
		return err_set(err, ERR_NOT_FOUND, "%.200s not found; next step: install " PROGRAM,
			c->file);
	c->dir = file_temp_dir(getenv("TMPDIR"), "tecctl");
	return c->dir ? 0
		      : err_set_errno(err, ERR_INVALID, errno,
				"cannot create a directory for the image's files; next step: set TMPDIR");
}

void tool_compute_fini(struct tool_compute *c)
{
	file_remove_tree(c->dir);
	free(c->dir);
	free(c->rootfs);
	free(c->file);
}

static int make_dir(const char *path, struct err *err)
{
	return mkdir(path, 0700) == 0 || errno == EEXIST
		       ? 0
		       : err_set_errno(err, ERR_INVALID, errno, "cannot create %s", log_esc(path));
}

/* ---- the child */

struct run {
	struct tool *t;
	struct strbuf *out;
	struct err *err;
};

/* Pass on the child's messages. The child escapes what comes from outside; should it miss
 * something, control characters and non-ASCII bytes are replaced here, so that they cannot
 * drive the terminal. */
static void on_said(void *arg, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char b = (unsigned char)data[i];

		fputc((b < ' ' && b != '\n') || b >= 0x7f ? '?' : b, stderr);
	}
	fflush(stderr);
}

/* Standard output is complete; it is kept only on success. */
static void on_done(void *arg, const struct err *err, const char *out, size_t len)
{
	struct run *r = arg;

	*r->err = *err;
	if (!err_is_set(err))
		strbuf_add(r->out, out, len);
	tool_done(r->t);
}

/* Run the child. argv begins with the program's name and ends with NULL. proxies: it asks a
 * registry. */
static int run(struct tool_compute *c, const char *const *argv, bool proxies, struct strbuf *out,
	struct err *err)
{
	cleanup_free char *tmp = xasprintf("TMPDIR=%s", c->dir);
	const char *env[2 + HTTPC_PROXY_VARIABLES + 1] = {"PATH=/usr/bin:/bin", tmp};
	struct run r = {c->t, out, err};
	const struct child_spec spec = {.file = c->file,
		.argv = argv,
		.env = env,
		.bare_env = true,
		.max_out = VALUES_MAX,
		.said = on_said};

	if (proxies)
		httpc_proxy_env(env + 2);
	(void)child_start(c->t->loop, &c->t->ops, &spec, on_done, &r);
	if (tool_run(c->t, err) < 0)
		return -1;
	if (!err_is_set(err))
		return 0;
	/* The failure is the image's, not the API server's, which ERR_TRANSIENT would mean. */
	err->kind = ERR_INVALID;
	return -1;
}

/* Fetch an image, or with into NULL only resolve its digest. Options of ours are passed on by
 * name. */
static int fetch(struct tool_compute *c, const char *image, const char *into, char **reference,
	struct err *err)
{
	static const char *const options[][2] = {{"registry-mirror", "--registry-mirror"},
		{"insecure-registry", "--insecure-registry"}, {"registry-auth", "--registry-auth"},
		{"registry-ca", "--registry-ca"}, {"arch", "--arch"}, {"timeout", "--timeout"}};
	const char *argv[ARGS_MAX] = {PROGRAM, "fetch", image};
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	size_t n = 3;

	if (into) {
		argv[n++] = "--into";
		argv[n++] = into;
	}
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if (!conf_str(c->t->conf, options[i][0]))
			continue;
		argv[n++] = options[i][1];
		argv[n++] = conf_str(c->t->conf, options[i][0]);
	}
	if (run(c, argv, true, &out, err) < 0)
		return err_wrap(err, "image %.100s", log_esc(image));
	while (out.len && out.data[out.len - 1] == '\n')
		out.data[--out.len] = '\0';
	*reference = strbuf_steal(&out);
	return 0;
}

int tool_compute_resolve(
	struct tool_compute *c, const char *image, char **reference, struct err *err)
{
	return fetch(c, image, NULL, reference, err);
}

int tool_compute_fetch(struct tool_compute *c, const char *image, char **reference, struct err *err)
{
	c->rootfs = xasprintf("%s/rootfs", c->dir);
	return make_dir(c->rootfs, err) < 0 ? -1 : fetch(c, image, c->rootfs, reference, err);
}

/* Made absolute for the child. */
int tool_compute_open(struct tool_compute *c, const char *rootfs, struct err *err)
{
	c->rootfs = realpath(rootfs, NULL);
	return c->rootfs ? 0
			 : err_set(err, ERR_NOT_FOUND, "cannot open --rootfs %s", log_esc(rootfs));
}

/* --variants: all values that the image may legitimately show. */
int tool_compute_values(struct tool_compute *c, struct strbuf *out, struct err *err)
{
	const char *const argv[] = {PROGRAM, "all", "--rootfs", c->rootfs, "--variants", NULL};

	return run(c, argv, false, out, err);
}

/* Compute as the operator's Job does, so that the operator accepts the result as it would a
 * Job's. */
int tool_compute_message(struct tool_compute *c, const char *reference, const char *nonce,
	struct json_object *platforms, struct strbuf *out, struct err *err)
{
	cleanup_free char *result = xasprintf("%s/result", c->dir), *text = NULL;
	const char *argv[ARGS_MAX] = {PROGRAM, "--image", reference, "--nonce", nonce, "--rootfs",
		c->rootfs, "--result", result};
	size_t n = 9, len;

	for (size_t i = 0; platforms && i < json_object_array_length(platforms) && n + 1 < ARGS_MAX;
		i++)
		argv[n++] = json_object_get_string(json_object_array_get_idx(platforms, i));
	if (run(c, argv, false, out, err) < 0)
		return -1;
	text = file_read(result, MODEL_PCRMSG_MAX, &len, NULL, err);
	if (!text)
		return -1;
	/* The message is in the file; standard output is dropped. */
	strbuf_reset(out);
	strbuf_add(out, text, len);
	return 0;
}

/* ---- platforms */

/* oci/compute writes the files, as for the values that an operator computes itself. */
int tool_compute_platform(struct tool_compute *c, struct json_object *configmap,
	struct json_object *platforms, struct err *err)
{
	const char *name = report_name(configmap);
	cleanup_free char *all = xasprintf("%s/platforms", c->dir),
			  *dir = xasprintf("%s/%s", all, name),
			  *arg = xasprintf("%s=%s", name, dir);

	if (make_dir(all, err) < 0 || oci_compute_platform(dir, configmap, err) < 0)
		return err_wrap(err, "platform %.60s", name);
	json_push_str(json_push_str(platforms, "--platform"), arg);
	return 0;
}
