/* SPDX-License-Identifier: MIT */
/*
 * tec-compute-pcrs: options, one prediction, one printed answer. It knows no network: in the Job's
 * form what was computed is handed to tec-publish-pcrs, which this process becomes. So whatever an
 * image's files do to the part that parses them, that part holds no token, and it stays small.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pcrs_options.h"
#include "pcrs_platforms.h"

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/model/variants.h"
#include "tec/pcr/compare.h"
#include "tec/pcr/image.h"

#define PUBLISHER "tec-publish-pcrs"
#define LOG_MAX   (16u << 20)
#define PRETTY    (JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE)

/* A file that gets shorter while its headers are mapped: nothing can be said about it. */
static void on_sigbus(int signo)
{
	static const char text[] =
		"tec-compute-pcrs: a file of the image became shorter, or could not be read, while it was looked at\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

/* ---- prediction */

static int open_dir(const char *path, const char *option, int *out, struct err *err)
{
	if (!path)
		return 0;
	*out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*out < 0)
		return err_set_errno(err, ERR_NOT_FOUND, errno, "--%s %s", option, log_esc(path));
	return 0;
}

static void close_dir(int fd)
{
	if (fd >= 0)
		close(fd);
}

static unsigned registers_of(enum pcrs_command c)
{
	switch (c) {
	case PCRS_PCR4:
		return PCR_IMAGE_PCR4;
	case PCRS_PCR7:
		return PCR_IMAGE_PCR7;
	case PCRS_PCR14:
		return PCR_IMAGE_PCR14;
	case PCRS_PUBLISH:
		return PCR_IMAGE_PCR4 | PCR_IMAGE_PCR14;
	default:
		return PCR_IMAGE_ALL;
	}
}

static int predict(const struct pcrs_options *o, struct pcr_variants *out, struct err *err)
{
	struct pcr_image_conf conf = {.registers = registers_of(o->command),
		.rootfs_fd = -1,
		.efivars_fd = -1,
		.mokvars_fd = -1,
		.secure_boot = o->secure_boot,
		.uki = o->uki,
		.all_kernels = o->all_kernels};
	bool files = o->command != PCRS_PCR14 || !o->mok_variables;
	int rc = -1;

	if (open_dir(files ? o->rootfs : NULL, "rootfs", &conf.rootfs_fd, err) == 0 &&
		open_dir(o->efivars, "efivars", &conf.efivars_fd, err) == 0 &&
		open_dir(o->mok_variables, "mok-variables", &conf.mokvars_fd, err) == 0)
		rc = pcr_image_predict(&conf, out, err);
	close_dir(conf.rootfs_fd);
	close_dir(conf.efivars_fd);
	close_dir(conf.mokvars_fd);
	if (rc == 0 && o->explain)
		fputs(strbuf_str(&out->explain), stderr);
	return rc;
}

/* ---- answers */

static int print_json(struct json_object *o, struct err *err)
{
	puts(json_object_to_json_string_ext(o, PRETTY));
	if (fflush(stdout) == EOF)
		return err_set_errno(err, ERR_INVALID, errno, "cannot write the answer");
	return 0;
}

/* "all" prints {"pcrs":[Pcr...]}, the others their Pcr alone. */
static int print_variants(
	const struct pcrs_options *o, const struct pcr_variants *v, struct err *err)
{
	cleanup_json struct json_object *answer = NULL;
	struct json_object *list;

	if (o->command == PCRS_ALL)
		answer = json_add(json_obj(), "pcrs", pcr_events_json(&v->v[0].events));
	else
		answer = pcr_events_one_json(&v->v[0].events, v->v[0].events.v[0].pcr);
	if (o->variants) {
		list = json_arr();
		for (size_t i = 0; i < v->n; i++) {
			struct json_object *one = json_add_str(json_obj(), "when", v->v[i].when);

			json_push(list, json_add(one, "pcrs", pcr_events_json(&v->v[i].events)));
		}
		json_add(answer, "variants", list);
	}
	return print_json(answer, err);
}

static int run_pcr11(const struct pcrs_options *o, struct err *err)
{
	cleanup_pcr_events struct pcr_events events = PCR_EVENTS_INIT;
	cleanup_json struct json_object *answer = NULL;
	struct json_object *list;
	int fd = open(o->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

	if (fd < 0)
		return err_set_errno(err, ERR_NOT_FOUND, errno, "cannot open %s", log_esc(o->file));
	rc = pcr_image_uki(fd, o->file, &events, err);
	close(fd);
	if (rc < 0)
		return -1;
	answer = pcr_events_one_json(&events, 11);
	/* The Rust tool calls these events by their sections. */
	list = json_get_arr(answer, "events");
	for (size_t i = 0; i < events.n; i++) {
		const char *name = pcr_uki_event_name(events.v[i].id);

		json_add_str(json_object_array_get_idx(list, i), "name", name);
		if (o->explain)
			fprintf(stderr, "  PCR 11  %-18s  %s\n", name, log_esc(o->file));
	}
	return print_json(answer, err);
}

/* The whole log: files in securityfs have no size. */
static int read_log(const char *path, struct strbuf *out, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char chunk[16384];
	ssize_t n = -1;

	while (fd >= 0 && out->len <= LOG_MAX &&
		((n = read(fd, chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR)))
		if (n > 0)
			strbuf_add(out, chunk, (size_t)n);
	if (fd < 0 || n < 0) {
		err_set_errno(err, ERR_NOT_FOUND, errno, "cannot read %s", log_esc(path));
		close_dir(fd);
		return -1;
	}
	close(fd);
	if (out->len > LOG_MAX)
		return err_set(err, ERR_INVALID, "%s is larger than 16 MiB", log_esc(path));
	return 0;
}

static int run_verify(const struct pcrs_options *o, struct err *err)
{
	cleanup_pcr_variants struct pcr_variants v = PCR_VARIANTS_INIT;
	cleanup_pcr_comparison struct pcr_comparison c = PCR_COMPARISON_INIT;
	cleanup_strbuf struct strbuf log = STRBUF_INIT;

	if (predict(o, &v, err) < 0 || read_log(o->file, &log, err) < 0)
		return -1;
	if (pcr_compare_log(&v, strbuf_str(&log), log.len, &c, err) < 0)
		return err_wrap(err, "%s", log_esc(o->file));
	fputs(strbuf_str(&c.report), stdout);
	if (!o->efivars)
		puts("PCR  7  not compared: that needs --efivars");
	if (fflush(stdout) == EOF)
		return err_set_errno(err, ERR_INVALID, errno, "cannot write the answer");
	return c.matches ? 0 : 1;
}

/* ---- the Job's form */

/* Beside this program as it was built, or where it is installed. */
static char *publisher_path(void)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash, *beside;

	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
		beside = xasprintf("%.*s/" PUBLISHER, (int)(slash ? slash - self : 0), self);
		if (access(beside, X_OK) == 0)
			return beside;
		free(beside);
	}
	return xstrdup(PKGLIBEXECDIR "/" PUBLISHER);
}

/* The answer becomes the standard input of what this process becomes. */
static int hand_over(const char *text, struct err *err)
{
	int fd = memfd_create("pcrs", MFD_CLOEXEC);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) < 0 ||
		dup2(fd, STDIN_FILENO) < 0) {
		err_set_errno(err, ERR_TRANSIENT, errno, "cannot hand the values over");
		close_dir(fd);
		return -1;
	}
	close(fd);
	return 0;
}

/* What the image may show beside the first, in the form of the entry. */
static struct json_object *others_json(const struct pcr_variants *v)
{
	struct model_variant other[MODEL_VARIANTS_MAX]; /* borrows from v */
	struct model_variants others = {other, 0};

	for (size_t i = 1; i < v->n && others.n < MODEL_VARIANTS_MAX; i++)
		other[others.n++] =
			(struct model_variant){v->v[i].when, v->v[i].secure_boot, v->v[i].events};
	return model_variants_json(&others);
}

static int run_publish(const struct pcrs_options *o, struct err *err)
{
	cleanup_pcr_variants struct pcr_variants v = PCR_VARIANTS_INIT;
	cleanup_model_platforms struct model_platforms platforms = {.n = 0};
	cleanup_json struct json_object *answer = NULL;
	cleanup_free char *text = NULL, *path = publisher_path();
	char *argv[10];
	size_t n = 0;

	if (predict(o, &v, err) < 0 || pcrs_platforms_predict(o, &platforms, err) < 0)
		return -1;
	answer = json_add(json_obj(), "pcrs", pcr_events_json(&v.v[0].events));
	if (platforms.n)
		json_add(answer, "platforms", model_platforms_json(&platforms));
	if (v.n > 1)
		json_add(answer, "variants", others_json(&v));
	text = json_text(answer);
	if (hand_over(text, err) < 0)
		return -1;
	argv[n++] = path;
	argv[n++] = (char *)"--image";
	argv[n++] = (char *)o->image;
	argv[n++] = (char *)"--resource-name";
	argv[n++] = (char *)o->resource_name;
	if (o->kubeconfig) {
		argv[n++] = (char *)"--kubeconfig";
		argv[n++] = (char *)o->kubeconfig;
	}
	if (o->namespace_) {
		argv[n++] = (char *)"--namespace";
		argv[n++] = (char *)o->namespace_;
	}
	argv[n] = NULL;
	execv(path, argv);
	return err_set_errno(err, ERR_INVALID, errno, "cannot start %s", log_esc(path));
}

static int run(const struct pcrs_options *o, struct err *err)
{
	cleanup_pcr_variants struct pcr_variants v = PCR_VARIANTS_INIT;

	switch (o->command) {
	case PCRS_PCR11:
		return run_pcr11(o, err);
	case PCRS_VERIFY:
		return run_verify(o, err);
	case PCRS_PUBLISH:
		return run_publish(o, err);
	default:
		return predict(o, &v, err) < 0 ? -1 : print_variants(o, &v, err);
	}
}

int main(int argc, char *argv[])
{
	struct pcrs_options o;
	struct err err = ERR_INIT;
	int status = 0;

	signal(SIGBUS, on_sigbus);
	switch (pcrs_options_read(&o, argc, argv)) {
	case PCRS_BAD:
		status = 2;
		break;
	case PCRS_EXIT:
		break;
	case PCRS_RUN:
		status = run(&o, &err);
		if (status < 0) {
			fprintf(stderr, "tec-compute-pcrs: %s\n", err.text);
			status = 1;
		}
		break;
	}
	pcrs_options_fini(&o);
	return status;
}
