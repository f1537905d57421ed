/* SPDX-License-Identifier: MIT */
/*
 * The chain: reference -> index -> manifest -> configuration -> label, each document from the first
 * host that has it. Documents are identified by digest, so mirrors need not be trusted, and a
 * verified document is never fetched again. A verified document that is not an image ends the
 * lookup, because every other host would send the same bytes.
 */
#include "config.h"

#include <string.h>

#include "tec/base/str.h"
#include "tec/loop/timer.h"

#include "oci_internal.h"

#define QUESTION_MS 120000u

enum stage { STAGE_REFERENCE, STAGE_MANIFEST, STAGE_CONFIG };

struct label_call {
	struct op op; /* first */
	struct loop *loop;
	struct oci_asking asking;
	struct op_scope ops;
	struct timer deadline;
	struct defer fail;
	struct err err; /* why the call could not start */
	char *os, *arch, *label;
	enum stage stage;
	struct oci_descriptor next; /* the document to fetch */
	oci_label_fn done;
	void *arg;
};

static void fetch_next(struct label_call *k);

static void call_free(struct label_call *k)
{
	op_scope_cancel(&k->ops);
	timer_fini(&k->deadline);
	defer_cancel(&k->fail);
	oci_asking_fini(&k->asking);
	free(k->os);
	free(k->arch);
	free(k->label);
	free(k);
}

static void call_abort(struct op *op)
{
	call_free((struct label_call *)op);
}

/* End the call. err and value must not point into k, which is freed. */
static void call_end(struct label_call *k, const struct err *err, const char *value, size_t len)
{
	oci_label_fn done = k->done;
	void *arg = k->arg;

	op_finish(&k->op);
	call_free(k);
	done(arg, err, value, len);
}

/* Report an error of the start from the loop, since no callback runs before the call returned. */
static void on_fail(void *arg)
{
	struct label_call *k = arg;
	struct err err = k->err;

	call_end(k, &err, NULL, 0);
}

static void on_deadline(void *arg)
{
	struct label_call *k = arg;
	struct err err = ERR_INIT;

	err_set(&err, ERR_TRANSIENT, "%s: the registry took longer than %u s",
		oci_asking_now(&k->asking)->host, QUESTION_MS / 1000);
	call_end(k, &err, NULL, 0);
}

/* ---- the chain ---- */

/* End the call with the label. An image without it is not an error. */
static void on_config(struct label_call *k, const char *body, size_t len)
{
	struct err err = ERR_INIT;
	cleanup_free char *value = NULL;
	size_t value_len = 0;

	(void)!oci_config_label(body, len, k->label, &value, &value_len, &err);
	call_end(k, &err, value, value_len);
}

/* Follow an index once; an index in an index is refused. */
static void on_manifest(struct label_call *k, const char *body, size_t len)
{
	struct oci_manifest m;
	struct err err = ERR_INIT;
	int rc = oci_manifest_parse(body, len, k->os, k->arch, &m, &err);

	if (rc == 0 && m.index && k->stage == STAGE_MANIFEST)
		rc = err_set(&err, ERR_INVALID, "the index names another index as the image");
	if (rc != 0) {
		call_end(k, &err, NULL, 0);
		return;
	}
	k->next = m.next;
	k->stage = m.index ? STAGE_MANIFEST : STAGE_CONFIG;
	fetch_next(k);
}

/* Continue with the next document, or with the next host after a failure. Documents fetched so far
 * stay valid. */
static void on_fetched(void *arg, const struct err *err, const char *body, size_t len)
{
	struct label_call *k = arg;
	struct err e = *err;

	if (!err_is_set(&e) && k->stage == STAGE_CONFIG) {
		on_config(k, body, len);
	} else if (!err_is_set(&e)) {
		on_manifest(k, body, len);
	} else if (oci_asking_next(&k->asking, &e)) {
		fetch_next(k);
	} else {
		oci_asking_name_tried(&k->asking, &e);
		call_end(k, &e, NULL, 0);
	}
}

static void fetch_next(struct label_call *k)
{
	struct oci_want want = {
		.blob = k->stage == STAGE_CONFIG,
		.what = k->next,
		.any_size = k->stage == STAGE_REFERENCE,
	};

	(void)oci_fetch_start(
		&k->asking.net, &k->ops, oci_asking_now(&k->asking), &want, on_fetched, k);
}

/* ---- start ---- */

/* The first document is requested by the reference's digest, so its size is unknown. */
static int prepare(struct label_call *k, struct httpc *http, const struct oci_conf *conf,
	const char *reference, const struct secret *const *configs, size_t n_configs,
	struct err *err)
{
	struct oci_ref ref;

	if (oci_ref_parse(reference, &ref, err) != 0)
		return -1;
	memcpy(k->next.digest, ref.digest, sizeof(k->next.digest));
	k->next.size = OCI_MANIFEST_MAX;
	return oci_asking_init(&k->asking, http, conf, &ref, configs, n_configs, err);
}

struct op *oci_label_get(struct loop *l, struct httpc *http, struct op_scope *scope,
	const struct oci_conf *conf, const char *reference, const char *label,
	const struct secret *const *docker_configs, size_t n_configs, oci_label_fn done, void *arg)
{
	struct label_call *k = xcalloc(1, sizeof(*k));

	k->loop = l;
	k->os = xstrdup(conf->platform_os);
	k->arch = xstrdup(conf->platform_arch);
	k->label = xstrdup(label);
	k->done = done;
	k->arg = arg;
	timer_init(&k->deadline, l, on_deadline, k);
	op_begin(&k->op, scope, call_abort);
	if (prepare(k, http, conf, reference, docker_configs, n_configs, &k->err) != 0) {
		defer_call(&k->fail, l, on_fail, k);
		return &k->op;
	}
	timer_set(&k->deadline, QUESTION_MS);
	fetch_next(k);
	return &k->op;
}
