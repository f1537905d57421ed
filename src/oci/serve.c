/* SPDX-License-Identifier: MIT */
/* Restricts itself before it reads its request, and ends after one answer. */
#include "config.h"

#include "tec/oci/serve.h"

#include <errno.h>

#include "tec/base/confine.h"
#include "tec/base/file.h"
#include "tec/base/log.h"
#include "tec/oci/registry.h"
#include "tec/oci/wire.h"

#include "oci_internal.h"

#define MEMORY_MAX  (384u * 1024 * 1024) /* address space: a resolver thread alone takes 72 MiB */
#define CPU_S       30u
#define DESCRIPTORS 64u

/* CA certificates, name resolution, and the libraries for it. Not included: the service account's
 * token, client configurations, and credentials that were not passed. */
const char *const oci_readable[] = {"/etc/ssl", "/etc/pki", "/etc/ca-certificates",
	"/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/usr/lib", "/usr/lib64",
	"/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/resolv.conf", "/etc/hosts",
	"/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services",
	"/run/systemd/resolve", "/dev/urandom", "/dev/null"};
_Static_assert(ARRAY_LEN(oci_readable) == OCI_READABLE, "OCI_READABLE must match");

/* Without Landlock confine_files() has no effect, and its result is ignored; see the header. */
int oci_confine(const struct confine_limits *limits, int write_fd, struct err *err)
{
	if (confine_process(limits, err) < 0)
		return -1;
	(void)confine_files(&(struct confine_files){
		.read = oci_readable, .n_read = OCI_READABLE, .write_fd = write_fd});
	return 0;
}

struct answer {
	struct loop *loop;
	struct strbuf text;
	size_t n_warnings;
};

/* Collect warnings for the answer: this process has no log of its own. */
static void on_line(enum log_level level, const char *line, void *arg)
{
	struct answer *a = arg;

	if (level >= LOG_WARN)
		oci_answer_warn(&a->text, &a->n_warnings, line);
}

static void on_label(void *arg, const struct err *err, const char *value, size_t len)
{
	struct answer *a = arg;

	oci_answer_end(&a->text, err, value, len);
	loop_stop(a->loop);
}

/* Run the lookup in a loop of its own, until its answer is complete. */
static void ask(const struct oci_question *q, struct answer *a)
{
	const struct oci_conf conf = {
		.mirrors = (const char *const *)q->mirrors,
		.n_mirrors = q->n_mirrors,
		.insecure = (const char *const *)q->insecure,
		.n_insecure = q->n_insecure,
		.platform_os = q->os,
		.platform_arch = q->arch,
	};
	struct op_scope ops = OP_SCOPE_INIT;
	struct httpc *http;

	a->loop = loop_new();
	http = httpc_new(a->loop);
	(void)oci_label_get(a->loop, http, &ops, &conf, q->reference, q->label,
		(const struct secret *const *)q->configs, q->n_configs, on_label, a);
	loop_run(a->loop);
	httpc_free(http);
	loop_free(a->loop);
}

/* Restrict first, then read: the request holds credentials. */
int oci_serve(int in_fd, int out_fd, struct err *err)
{
	static const struct confine_limits limits = {
		.cpu_s = CPU_S, .descriptors = DESCRIPTORS, .memory = MEMORY_MAX};
	struct answer a = {.text = STRBUF_INIT};
	struct oci_question q;
	size_t len;
	char *all;
	int rc;

	log_setup(LOG_WARN, LOG_TEXT);
	/* Continue without Landlock: the keys are in another process anyway. */
	if (oci_confine(&limits, -1, err) < 0)
		return -1;
	all = file_read_fd(in_fd, "the request", OCI_QUESTION_MAX, &len, err);
	rc = all ? oci_question_decode(all, len, &q, err) : -1;
	file_wipe(all, len);
	if (rc < 0)
		return -1;
	log_capture(on_line, &a);
	ask(&q, &a);
	log_capture(NULL, NULL);
	rc = file_write(out_fd, strbuf_str(&a.text), a.text.len);
	if (rc < 0)
		err_set_errno(err, ERR_INVALID, errno, "cannot write the answer");
	strbuf_fini(&a.text);
	oci_question_fini(&q);
	return rc;
}
