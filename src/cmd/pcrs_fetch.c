/* SPDX-License-Identifier: MIT */
/* Wiring: options, oci/image.h with the file list of boot/needs.h, and a loop for this one call. */
#include "config.h"

#include "pcrs_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/boot/needs.h"
#include "tec/oci/authfile.h"
#include "tec/oci/image.h"
#include "tec/oci/serve.h"

#define KEPT_MAX  ((uint64_t)512 << 20) /* bytes of files kept */
#define TOTAL_MAX ((uint64_t)64 << 30)  /* bytes of all layers, unpacked */
#define CA_MAX    (1u << 20)

#define MEMORY_MAX  ((size_t)1 << 30)
#define DESCRIPTORS 256u

struct running {
	struct loop *loop;
	struct err *err;
	char *digest;
};

/* Progress goes to standard error: standard output is the answer. */
static void on_progress(void *arg, const char *line)
{
	fprintf(stderr, "tec-compute-pcrs: %s\n", line);
}

/* The fetch ended; its digest is set only on success. */
static void on_image(void *arg, const struct err *err, const char *digest)
{
	struct running *r = arg;

	*r->err = *err;
	if (digest)
		memcpy(r->digest, digest, OCI_DIGEST_LEN + 1);
	loop_stop(r->loop);
}

/* Open the directory for the files: --into, or a temporary one that pcrs_fetched_fini() removes. */
static int open_into(struct pcrs_options *o, struct pcrs_fetched *out, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	int fd;

	if (!o->into) {
		out->own = xasprintf("%s/tec-compute-pcrs.XXXXXX", tmp && *tmp ? tmp : "/tmp");
		if (!mkdtemp(out->own)) {
			free(steal_ptr(&out->own));
			return err_set_errno(err, ERR_INVALID, errno,
				"cannot create a directory for the image's files; next step: give --into DIR");
		}
	}
	o->rootfs = o->into ? o->into : out->own;
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

/*
 * Confine a process that only fetches before the first byte arrives: an attacker who takes it
 * over finds no credentials of other registries and can open no file of the user who runs it.
 */
static int confine(const struct pcrs_options *o, int into_fd, struct err *err)
{
	const struct confine_limits limits = {.cpu_s = o->timeout_s,
		.descriptors = DESCRIPTORS,
		.memory = MEMORY_MAX,
		.file = KEPT_MAX};

	return o->command == PCRS_FETCH ? oci_confine(&limits, into_fd, err) : 0;
}

/* Fetch the image. Takes auth, of which the fetch copies only the credentials for its own hosts. */
static void run(const struct pcrs_options *o, int into_fd, struct httpc_tls *tls,
	struct oci_authfile *take_auth, struct running *r)
{
	const struct secret *auth = oci_authfile_get(take_auth);
	const struct oci_conf conf = {
		.mirrors = o->mirrors.items,
		.n_mirrors = o->mirrors.n,
		.insecure = o->insecure.items,
		.n_insecure = o->insecure.n,
		.tls = tls,
		.platform_os = "linux",
		.platform_arch = o->arch,
	};
	struct oci_need needs[BOOT_N_NEEDS];
	struct oci_image_spec spec = {
		.reference = o->fetch,
		.resolve = into_fd < 0,
		.unpack = {.into_fd = into_fd,
			.needs = needs,
			.n_needs = BOOT_N_NEEDS,
			.magic = BOOT_NEED_MAGIC,
			.max_kept = KEPT_MAX,
			.max_total = TOTAL_MAX},
		.deadline_ms = o->timeout_s * 1000,
		.progress = on_progress,
	};
	struct op_scope ops = OP_SCOPE_INIT;
	struct httpc *http;

	for (size_t i = 0; i < BOOT_N_NEEDS; i++)
		needs[i] = (struct oci_need){
			boot_needs[i].dir, boot_needs[i].depth, boot_needs[i].name};
	r->loop = loop_new();
	http = httpc_new(r->loop);
	(void)oci_image_fetch(r->loop, http, &ops, &conf, &spec, &auth, auth != NULL, on_image, r);
	oci_authfile_free(take_auth);
	if (confine(o, into_fd, r->err) == 0)
		loop_run(r->loop);
	op_scope_cancel(&ops);
	httpc_free(http);
	loop_free(r->loop);
}

/* Without --into, the command fetch only resolves the digest and writes no files. */
int pcrs_fetch(struct pcrs_options *o, struct pcrs_fetched *out, struct err *err)
{
	struct oci_authfile *auth = NULL;
	struct httpc_tls *tls = NULL;
	struct running r = {.err = err, .digest = out->digest};
	bool resolves = o->command == PCRS_FETCH && !o->into;
	int fd;

	log_setup(LOG_WARN, LOG_TEXT);
	fd = resolves ? -1 : open_into(o, out, err);
	if (fd < 0 && !resolves)
		return -1;
	if (read_ca(o->registry_ca, &tls, err) == 0) {
		auth = oci_authfile_new(o->registry_auth, err);
		if (auth)
			run(o, fd, tls, auth, &r);
		else
			err_wrap(err, "option --registry-auth");
	}
	httpc_tls_unref(tls);
	if (fd >= 0)
		close(fd);
	return err_is_set(err) ? -1 : 0;
}

/* Errors are ignored: a leftover in a temporary directory is no reason to fail. */
static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)remove(path);
	return 0;
}

void pcrs_fetched_fini(struct pcrs_fetched *f)
{
	if (f->own)
		(void)nftw(f->own, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(f->own);
}
