/* SPDX-License-Identifier: MIT */
/*
 * tec-compute-pcrs: options, one prediction, one printed answer. As a Job it writes the result to
 * the container's termination message, so it needs no token: whatever the files of an image do to
 * this process, it can only be wrong about that image. If an image must be fetched, the Job does
 * so in another container, which alone has network access and credentials.
 *
 * all, pcr4, pcr7, pcr14   predict from the image's files and print
 * pcr11                    PCR 11 of a unified kernel image, printed like the others
 * verify                   predict, then compare with a node's event log
 * fetch                    only the files, or only the digest
 * digest, extract-platform helpers, which predict nothing
 * no command               the Job: predict, and write the termination message
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pcrs_options.h"

#include "tec/base/confine.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/pcrmsg.h"
#include "tec/measure/compare.h"
#include "tec/measure/firmware.h"
#include "tec/measure/job.h"
#include "tec/measure/needs.h"
#include "tec/measure/predict.h"
#include "tec/net/httpc_late.h"
#include "tec/oci/authfile.h"
#include "tec/oci/image.h"
#include "tec/oci/ref.h"
#include "tec/oci/serve.h"

#define LOG_MAX   (16u << 20) /* bytes of an event log */
#define TRY_LATER 4           /* exit status */
#define PRETTY    (JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE)

#define MEMORY_MAX  ((size_t)4 << 30)
#define CPU_S       600u
#define DESCRIPTORS 256u
#define RESULT_MAX  ((size_t)64 << 20)

#define FETCH_MEMORY_MAX ((size_t)1 << 30)
#define KEPT_MAX         ((uint64_t)512 << 20) /* bytes of files kept */
#define TOTAL_MAX        ((uint64_t)64 << 30)  /* bytes of all layers, unpacked */
#define CA_MAX           (1u << 20)

/* The image that is fetched, as a directory. */
struct fetch {
	struct loop *loop;
	struct err *err;
	char digest[OCI_DIGEST_LEN + 1]; /* of the reference */
	char *own;                       /* owned: temporary directory to remove; NULL: none */
};

/* SIGBUS: a file was truncated while it was mapped, so nothing can be said about it. Only
 * async-signal-safe calls here. */
static void on_sigbus(int signo)
{
	static const char text[] =
		"tec-compute-pcrs: a file of the image was truncated or became unreadable during the examination\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

/* ---- prediction */

/* A missing option is no error: *out keeps its value. */
static int open_dir(const char *path, const char *option, int *out, struct err *err)
{
	if (!path)
		return 0;
	*out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*out < 0)
		return err_set_errno(
			err, ERR_NOT_FOUND, errno, "cannot open --%s %s", option, log_esc(path));
	return 0;
}

static void close_dir(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Read the firmware variables from --efivars-from-log. verify uses its own log unless --efivars
 * is given; an empty log then means no PCR 7. */
static int read_vars(
	const struct pcrs_options *o, struct measure_vars *vars, bool *have, struct err *err)
{
	cleanup_free char *log = NULL;
	size_t len;

	*have = false;
	if (!o->efivars_log)
		return 0;
	log = file_read(o->efivars_log, LOG_MAX, &len, NULL, err);
	if (!log)
		return -1;
	if (o->command == PCRS_VERIFY && len == 0)
		return 0;
	if (measure_vars_from_log(log, len, vars, err) < 0)
		return err_wrap(err, "%s", log_esc(o->efivars_log));
	*have = true;
	return 0;
}

/* Open the directories, predict, and close them again. out is filled only on success. */
static int predict_of(const struct pcrs_options *o, const struct measure_vars *vars, bool vouched,
	struct measure_variants *out, struct err *err)
{
	/* A Job leaves PCR 7 to the operator, which knows the platforms. */
	static const unsigned registers[] = {[PCRS_ALL] = MEASURE_ALL,
		[PCRS_PCR4] = MEASURE_PCR4,
		[PCRS_PCR7] = MEASURE_PCR7,
		[PCRS_PCR14] = MEASURE_PCR14,
		[PCRS_VERIFY] = MEASURE_ALL | MEASURE_PCR11,
		[PCRS_JOB] = MEASURE_PCR4 | MEASURE_PCR14};
	struct measure_conf conf = {.registers = registers[o->command],
		.rootfs_fd = -1,
		.efivars_fd = -1,
		.mokvars_fd = -1,
		.secure_boot = o->secure_boot,
		.vars = vars,
		.vouched = vouched,
		.uki = o->uki,
		.validation_off_ok = o->validation_off,
		/* verify needs the variants that it does not accept, to explain a difference; the
		 * operator selects from a Job's values according to spec.bootPath. */
		.path = o->command == PCRS_VERIFY || o->command == PCRS_JOB ? PCR_BOOT_LAST
									    : o->boot_path,
		.all_kernels = o->all_kernels};
	bool files = o->command != PCRS_PCR14 || !o->mok_variables;
	int rc = -1;

	if (open_dir(files ? o->rootfs : NULL, "rootfs", &conf.rootfs_fd, err) == 0 &&
		open_dir(o->efivars, "efivars", &conf.efivars_fd, err) == 0 &&
		open_dir(o->mok_variables, "mok-variables", &conf.mokvars_fd, err) == 0)
		rc = measure_predict(&conf, out, err);
	close_dir(conf.rootfs_fd);
	close_dir(conf.efivars_fd);
	close_dir(conf.mokvars_fd);
	if (rc == 0 && o->explain)
		fputs(strbuf_str(&out->explain), stderr);
	return rc;
}

/* Predict the values of an image. vouched: a platform is known that starts unsigned programs. */
static int predict(
	const struct pcrs_options *o, bool vouched, struct measure_variants *out, struct err *err)
{
	cleanup_boot_vars struct measure_vars vars = {.found = {false}};
	bool have;

	if (read_vars(o, &vars, &have, err) < 0)
		return -1;
	return predict_of(o, have ? &vars : NULL, vouched, out, err);
}

/* ---- fetching */

/* Progress goes to standard error: standard output is the answer. */
static void on_progress(void *arg, const char *line)
{
	fprintf(stderr, "tec-compute-pcrs: %s\n", line);
}

/* The fetch ended; its digest is set only on success. */
static void on_image(void *arg, const struct err *err, const char *digest)
{
	struct fetch *r = arg;

	*r->err = *err;
	if (digest)
		memcpy(r->digest, digest, OCI_DIGEST_LEN + 1);
	loop_stop(r->loop);
}

/* Open the directory for the files: --into, or a temporary one that the caller removes. */
static int open_into(struct pcrs_options *o, struct fetch *r, struct err *err)
{
	int fd;

	if (!o->into) {
		r->own = file_temp_dir(getenv("TMPDIR"), "tec-compute-pcrs");
		if (!r->own)
			return err_set_errno(err, ERR_INVALID, errno,
				"cannot create a directory for the image's files; next step: give --into DIR");
	}
	o->rootfs = o->into ? o->into : r->own;
	fd = open(o->rootfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(
			err, ERR_NOT_FOUND, errno, "cannot open --into %s", log_esc(o->rootfs));
	return fd;
}

/* Read --registry-ca. *out NULL: the system's CAs, also if the file does not exist, as a Job
 * always names one. */
static int read_ca(const char *path, struct httpc_tls **out, struct err *err)
{
	cleanup_free char *text = NULL;
	size_t len;

	*out = NULL;
	if (!path)
		return 0;
	text = file_read(path, CA_MAX, &len, NULL, err);
	if (!text && err->kind == ERR_NOT_FOUND) {
		err_clear(err);
		return 0;
	}
	if (text)
		*out = httpc_tls_new(text, len, NULL, 0, NULL, 0, NULL, err);
	return *out ? 0 : err_wrap(err, "option --registry-ca");
}

/* Fetch the image. Takes auth, of which the fetch copies only the credentials for its own hosts. */
static void run_fetch(const struct pcrs_options *o, int into_fd, struct httpc_tls *tls,
	struct oci_authfile *take_auth, struct fetch *r)
{
	const struct secret *auth = oci_authfile_get(take_auth);
	const struct confine_limits limits = {.cpu_s = o->timeout_s,
		.descriptors = DESCRIPTORS,
		.memory = FETCH_MEMORY_MAX,
		.file = KEPT_MAX};
	const struct oci_conf conf = {
		.mirrors = o->mirrors.items,
		.n_mirrors = o->mirrors.n,
		.insecure = o->insecure.items,
		.n_insecure = o->insecure.n,
		.tls = tls,
		.platform_os = "linux",
		.platform_arch = o->arch,
	};
	struct oci_need needs[MEASURE_N_NEEDS];
	struct oci_image_spec spec = {
		.reference = o->fetch,
		.resolve = into_fd < 0,
		.unpack = {.into_fd = into_fd,
			.needs = needs,
			.n_needs = MEASURE_N_NEEDS,
			.magic = MEASURE_NEED_MAGIC,
			.max_kept = KEPT_MAX,
			.max_total = TOTAL_MAX},
		.deadline_ms = o->timeout_s * 1000,
		.progress = on_progress,
	};
	struct op_scope ops = OP_SCOPE_INIT;
	struct httpc *http;

	for (size_t i = 0; i < MEASURE_N_NEEDS; i++)
		needs[i] = (struct oci_need){measure_needs[i].dir, measure_needs[i].depth,
			measure_needs[i].name, measure_needs[i].ending};
	r->loop = loop_new();
	http = httpc_new(r->loop);
	(void)oci_image_fetch(r->loop, http, &ops, &conf, &spec, &auth, auth != NULL, on_image, r);
	oci_authfile_free(take_auth);
	/* Confine a process that only fetches before the first byte arrives: an attacker who takes
	 * it over finds no credentials of other registries and can open no file of the user. */
	if (o->command != PCRS_FETCH || oci_confine(&limits, into_fd, r->err) == 0)
		loop_run(r->loop);
	op_scope_cancel(&ops);
	httpc_free(http);
	loop_free(r->loop);
}

/* Fetch the image o->fetch and set o->rootfs to its directory. Without --into, the command fetch
 * only resolves the digest and writes no files. */
static int fetch(struct pcrs_options *o, struct fetch *r, struct err *err)
{
	struct oci_authfile *auth = NULL;
	struct httpc_tls *tls = NULL;
	bool resolves = o->command == PCRS_FETCH && !o->into;
	int fd;

	r->err = err;
	log_setup(LOG_WARN, LOG_TEXT);
	fd = resolves ? -1 : open_into(o, r, err);
	if (fd < 0 && !resolves)
		return -1;
	if (read_ca(o->registry_ca, &tls, err) == 0) {
		auth = oci_authfile_new(o->registry_auth, err);
		if (auth)
			run_fetch(o, fd, tls, auth, r);
		else
			err_wrap(err, "option --registry-auth");
	}
	httpc_tls_unref(tls);
	close_dir(fd);
	return err_is_set(err) ? -1 : 0;
}

/* ---- answers */

/* O_NONBLOCK: a FIFO must not block; boot/ refuses everything but regular files. */
static int open_file(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		err_set_errno(err, ERR_NOT_FOUND, errno, "cannot open %s", log_esc(path));
	return fd;
}

/* An answer that was not written completely must not end with status 0. */
static int flush(struct err *err)
{
	if (fflush(stdout) == EOF)
		return err_set_errno(err, ERR_INVALID, errno, "cannot write the output");
	return 0;
}

/* Indented, as people read it; programs parse it all the same. */
static int print_json(struct json_object *o, struct err *err)
{
	puts(json_object_to_json_string_ext(o, PRETTY));
	return flush(err);
}

/* Print the prediction in the Rust tool's format: "all" prints {"pcrs":[Pcr...]}, other
 * commands their Pcr alone; --variants adds a member. */
static int print_variants(
	const struct pcrs_options *o, const struct measure_variants *v, struct err *err)
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

/* PCR 11 of a UKI: systemd-stub measures the name and the content of each section. */
static int run_pcr11(const struct pcrs_options *o, struct err *err)
{
	cleanup_pcr_events struct pcr_events events = PCR_EVENTS_INIT;
	cleanup_json struct json_object *answer = NULL;
	struct json_object *list;
	unsigned n_profiles;
	int fd = open_file(o->file, err), rc;

	if (fd < 0)
		return -1;
	rc = measure_uki(fd, o->file, o->profile, &n_profiles, &events, err);
	close(fd);
	if (rc < 0)
		return -1;
	if (o->profile >= n_profiles)
		return err_set(err, ERR_INVALID, "%s has %u profile%s, numbered from 0",
			log_esc(o->file), n_profiles, n_profiles == 1 ? "" : "s");
	if (n_profiles > 1)
		fprintf(stderr,
			"tec-compute-pcrs: %s has %u profiles; this is PCR 11 of profile %u (--profile)\n",
			log_esc(o->file), n_profiles, o->profile);
	answer = pcr_events_one_json(&events, 11);
	/* The Rust tool names these events after their sections. */
	list = json_get_arr(answer, "events");
	for (size_t i = 0; i < events.n; i++) {
		const char *name = measure_uki_event_name(events.v[i].id);

		json_add_str(json_object_array_get_idx(list, i), "name", name);
		if (o->explain)
			fprintf(stderr, "  PCR 11  %-18s  %s\n", name, log_esc(o->file));
	}
	return print_json(answer, err);
}

/* Compare a node's event log with the prediction. Exit status 0: equal, 1: different. */
static int run_verify(const struct pcrs_options *o, struct err *err)
{
	cleanup_boot_variants struct measure_variants v = MEASURE_VARIANTS_INIT;
	cleanup_boot_comparison struct measure_comparison c = MEASURE_COMPARISON_INIT;
	cleanup_boot_vars struct measure_vars vars = {.found = {false}};
	cleanup_free char *log = NULL;
	struct err why = ERR_INIT;
	bool have;
	size_t len;
	int rc;

	if (read_vars(o, &vars, &have, err) < 0 ||
		!(log = file_read(o->file, LOG_MAX, &len, NULL, err)))
		return -1;
	rc = predict_of(o, have ? &vars : NULL, false, &v, &why);
	if (rc < 0 && why.kind != ERR_INVALID) {
		*err = why;
		return -1;
	}
	/* That the image cannot start is an answer, too; the log may show what did start. */
	if ((rc < 0 ? measure_compare_refused(why.text, log, len, &c, err)
		    : measure_compare_log(&v, o->boot_path, log, len, &c, err)) < 0)
		return err_wrap(err, "%s", log_esc(o->file));
	fputs(strbuf_str(&c.report), stdout);
	if (flush(err) < 0)
		return -1;
	return c.matches ? 0 : 1;
}

/* Print Authenticode digests in the format of sha256sum. */
static int run_digest(const struct pcrs_options *o, struct err *err)
{
	const char *path;

	for (size_t i = 0; (path = conf_operand_nth(o->conf, i)); i++) {
		char hex[SHA256_HEX_LEN + 1];
		uint8_t digest[SHA256_LEN];
		int fd = open_file(path, err), rc;

		if (fd < 0)
			return -1;
		rc = measure_digest(fd, path, digest, err);
		close(fd);
		if (rc < 0)
			return -1;
		bytes_to_hex(digest, SHA256_LEN, hex);
		printf("%s  %s\n", hex, log_esc(path));
	}
	return flush(err);
}

/* Print the name of each file that was written, and on standard error what was found. */
static int run_extract(const struct pcrs_options *o, struct err *err)
{
	cleanup_boot_vars struct measure_vars vars = {.found = {false}};
	cleanup_strbuf struct strbuf notes = STRBUF_INIT;
	const char *into = conf_operand_nth(o->conf, 1);
	cleanup_free char *log = NULL;
	size_t len;
	int dir;

	log = file_read(o->file, LOG_MAX, &len, NULL, err);
	if (!log)
		return -1;
	if (measure_firmware_from_log(log, len, &vars, &notes, err) < 0)
		return err_wrap(err, "%s", log_esc(o->file));
	fputs(strbuf_str(&notes), stderr);
	dir = open(into, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set_errno(err, ERR_NOT_FOUND, errno, "cannot open %s", log_esc(into));
	for (int i = 0; i < PCR_PLATFORM_N_FILES && !err_is_set(err); i++) {
		const char *name = pcr_platform_files[i];
		int fd;

		if (!vars.found[i])
			continue;
		/* An existing file is never overwritten. */
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd < 0 || file_write(fd, vars.text[i].data, vars.text[i].len) < 0)
			err_set_errno(err, ERR_INVALID, errno, "cannot write %s", name);
		else
			puts(name);
		close_dir(fd);
	}
	close(dir);
	return err_is_set(err) ? -1 : flush(err);
}

/* ---- the Job's form */

/* Predict the values of each --platform. One that fails carries its reason and does not affect
 * the others. */
static int predict_platforms(
	const struct pcrs_options *o, struct model_platforms *out, struct err *err)
{
	int rootfs = -1;

	if (o->n_platforms && open_dir(o->rootfs, "rootfs", &rootfs, err) < 0)
		return -1;
	for (size_t i = 0; i < o->n_platforms; i++) {
		const struct pcrs_platform *p = &o->platform[i];
		cleanup_strbuf struct strbuf explain = STRBUF_INIT;
		struct err why = ERR_INIT;
		int efivars = -1;

		if (open_dir(p->dir, "platform", &efivars, &why) < 0 ||
			measure_job_platform(rootfs, efivars, p->name, out, &explain, &why) < 0)
			fprintf(stderr, "tec-compute-pcrs: platform %s: %s\n", p->name, why.text);
		if (o->explain)
			fputs(strbuf_str(&explain), stderr);
		close_dir(efivars);
	}
	close_dir(rootfs);
	return 0;
}

/* Platforms come first: whether one of them vouches for unsigned programs decides about the
 * image. */
static int run_job(const struct pcrs_options *o, struct err *err)
{
	cleanup_boot_variants struct measure_variants v = MEASURE_VARIANTS_INIT;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct model_platforms platforms = {.n = 0};
	bool vouched = false;
	int status = -1, fd;

	if (predict_platforms(o, &platforms, err) < 0)
		return -1;
	for (size_t i = 0; i < platforms.n; i++)
		vouched |= !platforms.v[i].why;
	if (predict(o, vouched, &v, err) < 0) {
		model_platforms_fini(&platforms);
		return -1;
	}
	if (measure_job_message(&v, &platforms, o->nonce, o->digest, &text, err) < 0) {
		fprintf(stderr, "tec-compute-pcrs: too many events: %s\n", err->text);
		status = MODEL_PCRMSG_TOO_MANY;
	} else {
		/* The kubelet reads this file after the container has ended, so it must be
		 * complete: write, then close. */
		fd = open(o->result, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0644);
		if (fd < 0 || file_write(fd, text.data, text.len) < 0 || close(fd) < 0)
			err_set_errno(
				err, ERR_INVALID, errno, "cannot write %s", log_esc(o->result));
		else
			status = 0;
	}
	model_platforms_fini(&platforms);
	return status;
}

/*
 * Drop every right except to read the given files and to write the result, as the files of an
 * image are untrusted input. Not after a fetch by the same process, which must still remove its
 * own directory.
 */
static int confine(const struct pcrs_options *o, struct err *err)
{
	static const struct confine_limits limits = {.cpu_s = CPU_S,
		.descriptors = DESCRIPTORS,
		.memory = MEMORY_MAX,
		.file = RESULT_MAX};
	const char *given[] = {o->rootfs, o->efivars, o->mok_variables, o->efivars_log, o->file};
	const char *paths[ARRAY_LEN(given) + MODEL_PLATFORMS_MAX];
	const char *slash = o->result ? strrchr(o->result, '/') : NULL;
	cleanup_free char *result_dir =
		xstrndup(slash ? o->result : ".", slash ? (size_t)(slash - o->result) + 1 : 1);
	size_t n = 0;
	int dir = -1;

	if (o->fetch || o->command == PCRS_EXTRACT || o->command == PCRS_EXTRACT_VARS ||
		o->command == PCRS_DIGEST)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(given); i++)
		if (given[i])
			paths[n++] = given[i];
	for (size_t i = 0; i < o->n_platforms; i++)
		paths[n++] = o->platform[i].dir;
	if (confine_process(&limits, err) < 0)
		return -1;
	/* If it cannot be opened, writing the result will report that. */
	if (o->command == PCRS_JOB)
		dir = open(result_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)confine_files(&(struct confine_files){.read = paths, .n_read = n, .write_fd = dir});
	close_dir(dir);
	return 0;
}

/* Each command prints its answer and returns the exit status, or -1 with err set. */
static int run(const struct pcrs_options *o, struct err *err)
{
	cleanup_boot_variants struct measure_variants v = MEASURE_VARIANTS_INIT;

	switch (o->command) {
	case PCRS_PCR11:
		return run_pcr11(o, err);
	case PCRS_FETCH:
		return 0;
	case PCRS_DIGEST:
		return run_digest(o, err);
	case PCRS_EXTRACT:
	case PCRS_EXTRACT_VARS:
		return run_extract(o, err);
	case PCRS_VERIFY:
		return run_verify(o, err);
	case PCRS_JOB:
		return run_job(o, err);
	default:
		return predict(o, false, &v, err) < 0 ? -1 : print_variants(o, &v, err);
	}
}

/* Fetch if asked to, then compute. fetch prints the reference with the digest that was resolved, as
 * ApprovedImages need it. Exit status 4 tells the Job that a later attempt may succeed. */
static int run_all(struct pcrs_options *o, struct err *err)
{
	struct fetch f = {.own = NULL};
	const char *at = o->fetch ? strrchr(o->fetch, '@') : NULL;
	int status = 0;

	if (o->fetch && (httpc_late_load(err) < 0 || fetch(o, &f, err) < 0)) {
		status = err->kind == ERR_TRANSIENT ? TRY_LATER : 1;
	} else if (o->command == PCRS_FETCH) {
		printf("%.*s@%s\n", at ? (int)(at - o->fetch) : (int)strlen(o->fetch), o->fetch,
			f.digest);
		status = flush(err);
	} else {
		status = confine(o, err) < 0 ? 1 : run(o, err);
	}
	file_remove_tree(f.own);
	free(f.own);
	return status;
}

/* The handler for SIGBUS comes first: files are mapped from then on. */
int main(int argc, char *argv[])
{
	struct pcrs_options o;
	struct err err = ERR_INIT;
	enum conf_result result;
	int status = 0;

	signal(SIGBUS, on_sigbus);
	result = pcrs_options_read(&o, argc, argv);
	if (result == CONF_RUN)
		status = run_all(&o, &err);
	if (err_is_set(&err))
		fprintf(stderr, "tec-compute-pcrs: %s\n", err.text);
	pcrs_options_fini(&o);
	return result == CONF_BAD ? 2 : status < 0 ? 1 : status;
}
