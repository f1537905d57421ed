/* SPDX-License-Identifier: MIT */
/*
 * The chain: reference -> index -> manifest -> configuration (for a label) or layers (for files),
 * each document from the first host that has it. Documents are identified by digest, so mirrors
 * need not be trusted. For a label, a verified document is never fetched again, and one that is not
 * an image ends the lookup, because every other host would send the same bytes.
 *
 * One document or layer at a time. A layer is unpacked into numbered files before its digest is
 * verified, so a failure discards all files. The lowest layer comes first, because whiteouts and
 * links refer to what is below them.
 */
#include "config.h"

#include "tec/oci/image.h"

#include <inttypes.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/loop/timer.h"

#include "oci_internal.h"

#define LABEL_MS 120000u

enum stage { STAGE_REFERENCE, STAGE_MANIFEST, STAGE_CONFIG, STAGE_LAYERS };

struct image_call {
	struct op op; /* first */
	struct oci_asking asking;
	struct op_scope ops;
	struct timer deadline;
	struct defer fail;
	struct err err; /* why the call could not start */
	char *os, *arch;
	struct oci_ref ref; /* if given as a tag, the digest is set after the first document */
	enum stage stage;
	struct oci_descriptor next; /* the document to fetch */
	char *label;                /* owned; NULL: the files are wanted */
	oci_label_fn label_done;
	struct oci_image_spec spec;    /* of a label: only the deadline */
	struct oci_descriptor *layers; /* owned */
	size_t n_layers, layer;
	struct oci_unpack *unpack; /* owned; NULL: not started */
	oci_image_fn done;
	void *arg;
};

static void fetch_next(struct image_call *k);

/* Cancel everything and remove unpacked files (oci_unpack_free()). */
static void call_free(struct image_call *k)
{
	op_scope_cancel(&k->ops);
	timer_fini(&k->deadline);
	defer_cancel(&k->fail);
	oci_unpack_free(k->unpack);
	oci_asking_fini(&k->asking);
	free(k->layers);
	free(k->label);
	free(k->os);
	free(k->arch);
	free(k);
}

static void call_abort(struct op *op)
{
	call_free((struct image_call *)op);
}

/* End the call. err and value must not point into k, which is freed. value: of the label; NULL:
 * there is none, or the files were wanted. */
static void call_end(struct image_call *k, const struct err *err, const char *value, size_t len)
{
	oci_label_fn label_done = k->label_done;
	oci_image_fn done = k->done;
	void *arg = k->arg;
	char digest[OCI_DIGEST_LEN + 1];

	memcpy(digest, k->ref.digest, sizeof(digest));
	op_finish(&k->op);
	call_free(k);
	if (label_done)
		label_done(arg, err, value, len);
	else
		done(arg, err, err_is_set(err) ? NULL : digest);
}

/* Report an error of the start from the loop, since no callback runs before the call returned. */
static void on_fail(void *arg)
{
	struct image_call *k = arg;
	struct err err = k->err;

	call_end(k, &err, NULL, 0);
}

/* Give up. The error names the host that was being used. */
static void on_deadline(void *arg)
{
	struct image_call *k = arg;
	struct err err = ERR_INIT;

	err_set(&err, ERR_TRANSIENT,
		k->label ? "%s: the registry took longer than %u s"
			 : "%s: the image was not fetched within %u s",
		k->asking.sources[k->asking.at].host, k->spec.deadline_ms / 1000);
	call_end(k, &err, NULL, 0);
}

static void say(const struct image_call *k, const char *line)
{
	if (k->spec.progress)
		k->spec.progress(k->arg, line);
}

/* ---- layers */

static int on_piece(void *arg, const void *data, size_t len, struct err *err)
{
	struct image_call *k = arg;

	return oci_unpack_add(k->unpack, data, len, err);
}

/* Start the next layer, or finish after the last one. */
static void next_layer(struct image_call *k)
{
	cleanup_free char *line = NULL;
	struct err err = ERR_INIT;

	if (k->layer == k->n_layers) {
		if (oci_unpack_finish(k->unpack, &err) == 0)
			say(k, "image unpacked");
		call_end(k, &err, NULL, 0);
		return;
	}
	k->next = k->layers[k->layer];
	line = xasprintf(
		"layer %zu of %zu, %.1f MB", k->layer + 1, k->n_layers, (double)k->next.size / 1e6);
	say(k, line);
	if (oci_unpack_layer(k->unpack, &err) < 0)
		call_end(k, &err, NULL, 0);
	else
		fetch_next(k);
}

/* Start unpacking from the lowest layer. After a failed host this happens again from scratch. */
static void begin_layers(struct image_call *k, const char *body, size_t len)
{
	struct err err = ERR_INIT;

	k->layer = 0;
	k->stage = STAGE_LAYERS;
	free(steal_ptr(&k->layers));
	oci_unpack_free(steal_ptr(&k->unpack));
	if (oci_manifest_layers(body, len, &k->layers, &k->n_layers, &err) == 0) {
		k->unpack = oci_unpack_new(&k->spec.unpack, &err);
		if (!k->unpack)
			err_wrap(&err, "the target directory");
	}
	if (err_is_set(&err))
		call_end(k, &err, NULL, 0);
	else
		next_layer(k);
}

/* ---- documents */

/* Follow an index once; an index in an index is refused. */
static void on_manifest(struct image_call *k, const char *body, size_t len)
{
	struct oci_manifest m;
	struct err err = ERR_INIT;

	/* Pin the digest of the document that a tag led to, so that other hosts must send the same
	 * image. */
	if (!k->ref.digest[0]) {
		oci_digest_of(body, len, k->ref.digest);
		say(k, k->ref.digest);
	}
	if (!k->spec.resolve && oci_manifest_parse(body, len, k->os, k->arch, &m, &err) == 0 &&
		m.index && k->stage == STAGE_MANIFEST)
		err_set(&err, ERR_INVALID, "the index names another index as the image");
	if (err_is_set(&err) || k->spec.resolve) {
		call_end(k, &err, NULL, 0);
	} else if (m.index || k->label) {
		k->next = m.next;
		k->stage = m.index ? STAGE_MANIFEST : STAGE_CONFIG;
		fetch_next(k);
	} else {
		begin_layers(k, body, len);
	}
}

/* End the call with the label. An image without it is not an error. */
static void on_config(struct image_call *k, const char *body, size_t len)
{
	struct err err = ERR_INIT;
	cleanup_free char *value = NULL;
	size_t value_len = 0;

	(void)!oci_config_label(body, len, k->label, &value, &value_len, &err);
	call_end(k, &err, value, value_len);
}

/* Start with the document that the reference names. Its size is unknown. */
static void begin(struct image_call *k)
{
	memcpy(k->next.digest, k->ref.digest, sizeof(k->next.digest));
	k->next.size = OCI_MANIFEST_MAX;
	k->stage = STAGE_REFERENCE;
	fetch_next(k);
}

/* Handle a document or a layer. After a failure the next host is asked, for files from the
 * beginning: documents fetched so far stay valid, but layers do not. */
static void on_fetched(void *arg, const struct err *err, const char *body, size_t len)
{
	struct image_call *k = arg;
	struct err e = *err;

	if (k->stage == STAGE_LAYERS) {
		if (!err_is_set(&e))
			(void)!oci_unpack_layer_end(k->unpack, &e);
		if (err_is_set(&e))
			err_wrap(&e, "layer %zu of %zu", k->layer + 1, k->n_layers);
	}
	if (err_is_set(&e) && !oci_asking_next(&k->asking, &e)) {
		oci_asking_name_tried(&k->asking, &e);
		call_end(k, &e, NULL, 0);
	} else if (err_is_set(&e) && k->label) {
		fetch_next(k);
	} else if (err_is_set(&e)) {
		begin(k);
	} else if (k->stage == STAGE_LAYERS) {
		k->layer++;
		next_layer(k);
	} else if (k->stage == STAGE_CONFIG) {
		on_config(k, body, len);
	} else {
		on_manifest(k, body, len);
	}
}

/* Fetch the next document, or stream the next layer. */
static void fetch_next(struct image_call *k)
{
	struct oci_want want = {
		.blob = k->stage >= STAGE_CONFIG,
		.what = k->next,
		.any_size = k->stage == STAGE_REFERENCE,
		.tag = k->stage == STAGE_REFERENCE && !k->ref.digest[0] ? k->ref.tag : NULL,
		.piece = k->stage == STAGE_LAYERS ? on_piece : NULL,
	};

	(void)oci_fetch_start(
		&k->asking.net, &k->ops, &k->asking.sources[k->asking.at], &want, on_fetched, k);
}

/* ---- start */

/* Start a call whose reference was parsed (k->err is set if that failed). */
static struct op *call_start(struct image_call *k, struct loop *l, struct httpc *http,
	struct op_scope *scope, const struct oci_conf *conf, const struct secret *const *configs,
	size_t n_configs)
{
	k->os = xstrdup(conf->platform_os);
	k->arch = xstrdup(conf->platform_arch);
	timer_init(&k->deadline, l, on_deadline, k);
	op_begin(&k->op, scope, call_abort);
	if (err_is_set(&k->err) ||
		oci_asking_init(&k->asking, http, conf, &k->ref, configs, n_configs, &k->err) < 0) {
		defer_call(&k->fail, l, on_fail, k);
	} else {
		timer_set(&k->deadline, k->spec.deadline_ms);
		begin(k);
	}
	return &k->op;
}

struct op *oci_label_get(struct loop *l, struct httpc *http, struct op_scope *scope,
	const struct oci_conf *conf, const char *reference, const char *label,
	const struct secret *const *docker_configs, size_t n_configs, oci_label_fn done, void *arg)
{
	struct image_call *k = xcalloc(1, sizeof(*k));

	k->label = xstrdup(label);
	k->spec.deadline_ms = LABEL_MS;
	k->label_done = done;
	k->arg = arg;
	(void)!oci_ref_parse(reference, &k->ref, &k->err);
	return call_start(k, l, http, scope, conf, docker_configs, n_configs);
}

struct op *oci_image_fetch(struct loop *l, struct httpc *http, struct op_scope *scope,
	const struct oci_conf *conf, const struct oci_image_spec *spec,
	const struct secret *const *docker_configs, size_t n_configs, oci_image_fn done, void *arg)
{
	struct image_call *k = xcalloc(1, sizeof(*k));

	k->spec = *spec;
	k->spec.reference = NULL;
	k->done = done;
	k->arg = arg;
	(void)!oci_ref_parse_tag(spec->reference, &k->ref, &k->err);
	return call_start(k, l, http, scope, conf, docker_configs, n_configs);
}
