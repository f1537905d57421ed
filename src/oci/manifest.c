/* SPDX-License-Identifier: MIT */
/*
 * Documents are told apart by their own mediaType, never by the Content-Type of the answer: only
 * the former is covered by the digest. A document that could be read both as an index and as a
 * manifest (CVE-2021-41190) is refused, and so is an index in an index. Descriptors are bounded
 * here, before anything is fetched with them.
 */
#include "config.h"

#include "tec/oci/manifest.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"

#define OCI    "application/vnd.oci.image."
#define DOCKER "application/vnd.docker."

static const struct json_limits manifest_limits = {
	.bytes = OCI_MANIFEST_MAX, .depth = 16, .tokens = 50000};
static const struct json_limits config_limits = {
	.bytes = OCI_CONFIG_MAX, .depth = 32, .tokens = 50000};

static bool is_manifest_type(const char *type)
{
	return str_eq(type, OCI "manifest.v1+json") ||
	       str_eq(type, DOCKER "distribution.manifest.v2+json");
}

void oci_digest_of(const void *body, size_t len, char out[OCI_DIGEST_LEN + 1])
{
	uint8_t sum[SHA256_LEN];

	bytes_sha256(body, len, sum);
	strcpy(out, "sha256:");
	bytes_to_hex(sum, sizeof(sum), out + strlen("sha256:"));
}

int oci_digest_check(const char *digest, const void *body, size_t len, struct err *err)
{
	char actual[OCI_DIGEST_LEN + 1];

	oci_digest_of(body, len, actual);
	/* The actual digest is not reported: it would reveal an internal server's page. */
	if (!str_eq(digest, actual))
		return err_set(
			err, ERR_INVALID, "the content does not match the digest %.19s...", digest);
	return 0;
}

/* Check digest and size. `max` also bounds what is downloaded with the descriptor. */
static int take_descriptor(
	struct json_object *o, size_t max, struct oci_descriptor *out, struct err *err)
{
	const char *digest = json_get_str(o, "digest");
	int64_t size = json_get_int(o, "size", -1);

	if (!digest || !oci_digest_valid(digest, strlen(digest)))
		return err_set(err, ERR_INVALID, "the descriptor has no sha256 digest");
	if (size < 1 || (uint64_t)size > max)
		return err_set(err, ERR_INVALID,
			"the descriptor's size is not within 1 to %zu bytes", max);
	memcpy(out->digest, digest, OCI_DIGEST_LEN + 1);
	out->size = (size_t)size;
	return 0;
}

/* ---- index ---- */

/* Rate an index entry. 0: another platform; 1: a variant of it; 2: the default variant. */
static int fits(struct json_object *entry, const char *os, const char *arch)
{
	const char *variant = json_get_str(entry, "platform/variant");
	const char *type = json_get_str(entry, "mediaType");

	if (!str_eq(json_get_str(entry, "platform/os"), os) ||
		!str_eq(json_get_str(entry, "platform/architecture"), arch) ||
		(type && !is_manifest_type(type)))
		return 0;
	if (!variant || !*variant || (str_eq(arch, "arm64") && str_eq(variant, "v8")) ||
		(str_eq(arch, "amd64") && str_eq(variant, "v1")))
		return 2;
	return 1;
}

/* Choose the best entry of an index. Two equally good ones with different digests are ambiguous. */
static int choose(struct json_object *list, const char *os, const char *arch,
	struct oci_descriptor *out, struct err *err)
{
	struct json_object *chosen = NULL;
	bool ambiguous = false;
	int best = 0;

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *e = json_object_array_get_idx(list, i);
		int n = fits(e, os, arch);

		if (n > best) {
			chosen = e;
			ambiguous = false;
			best = n;
		} else if (n && n == best &&
			   !str_eq(json_get_str(e, "digest"), json_get_str(chosen, "digest"))) {
			ambiguous = true; /* the same manifest may be listed twice */
		}
	}
	if (!chosen)
		return err_set(
			err, ERR_INVALID, "the index does not list an image for %s/%s", os, arch);
	if (ambiguous)
		return err_set(err, ERR_INVALID,
			"the index lists several images for %s/%s: approve the digest of one", os,
			arch);
	if (take_descriptor(chosen, OCI_MANIFEST_MAX, out, err) != 0)
		return err_wrap(err, "the index, %s/%s", os, arch);
	return 0;
}

/* Refuse a document with both or neither of manifests and config, and a mediaType that contradicts
 * them. */
int oci_manifest_parse(const char *text, size_t len, const char *os, const char *arch,
	struct oci_manifest *out, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(text, len, &manifest_limits, err);
	struct json_object *config;
	const char *type;
	bool index;

	memset(out, 0, sizeof(*out));
	if (!o)
		return err_wrap(err, "the manifest");
	type = json_get_str(o, "mediaType");
	index = json_get_arr(o, "manifests") != NULL;
	config = json_get_obj(o, "config");
	if (json_get_int(o, "schemaVersion", 0) != 2)
		return err_set(err, ERR_INVALID, "the manifest's schemaVersion is not 2");
	if (index == (config != NULL) || (json_get(o, "layers") && index))
		return err_set(err, ERR_INVALID,
			"the document is neither a manifest nor an index, or it is both");
	if (json_get(o, "mediaType") &&
		!(index ? str_eq(type, OCI "index.v1+json") ||
					str_eq(type, DOCKER "distribution.manifest.list.v2+json")
			: is_manifest_type(type)))
		return err_set(
			err, ERR_INVALID, "the manifest's mediaType does not match its content");
	out->index = index;
	if (index)
		return choose(json_get_arr(o, "manifests"), os, arch, &out->next, err);
	/* Manifests also describe other artifacts, such as signatures. */
	type = json_get_str(config, "mediaType");
	if (!str_eq(type, OCI "config.v1+json") && !str_eq(type, DOCKER "container.image.v1+json"))
		return err_set(err, ERR_INVALID,
			"the manifest is not for a container image: its configuration has another type");
	if (take_descriptor(config, OCI_CONFIG_MAX, &out->next, err) != 0)
		return err_wrap(err, "the manifest's configuration");
	return 0;
}

/* ---- layers ---- */

/* Accept tar, plain or compressed. The compression is detected by the first bytes, not by
 * the type. */
static bool is_layer_type(const char *type)
{
	static const char *const types[] = {OCI "layer.v1.tar", OCI "layer.v1.tar+gzip",
		OCI "layer.v1.tar+zstd", OCI "layer.nondistributable.v1.tar",
		OCI "layer.nondistributable.v1.tar+gzip", OCI "layer.nondistributable.v1.tar+zstd",
		DOCKER "image.rootfs.diff.tar", DOCKER "image.rootfs.diff.tar.gzip",
		DOCKER "image.rootfs.diff.tar.zstd", DOCKER "image.rootfs.foreign.diff.tar.gzip"};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (str_eq(type, types[i]))
			return true;
	return false;
}

/* Layers are checked all at once, so that no unpacking starts for an image that cannot be
 * completed. */
int oci_manifest_layers(
	const char *text, size_t len, struct oci_descriptor **out, size_t *n, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(text, len, &manifest_limits, err);
	struct json_object *list = o ? json_get_arr(o, "layers") : NULL;
	size_t count = list ? json_object_array_length(list) : 0;
	cleanup_free struct oci_descriptor *all = NULL;

	*out = NULL;
	*n = 0;
	if (!o)
		return err_wrap(err, "the manifest");
	if (!count || count > OCI_LAYERS_MAX)
		return err_set(err, ERR_INVALID, "the manifest has no layers, or more than %u",
			OCI_LAYERS_MAX);
	all = xcalloc(count, sizeof(*all));
	for (size_t i = 0; i < count; i++) {
		struct json_object *e = json_object_array_get_idx(list, i);
		const char *type = json_get_str(e, "mediaType");

		if (!is_layer_type(type))
			return err_set(err, ERR_INVALID,
				"layer %zu of %zu has an unsupported type: %.80s", i + 1, count,
				type ? log_esc(type) : "none");
		if (take_descriptor(e, OCI_LAYER_MAX, &all[i], err) != 0)
			return err_wrap(err, "layer %zu of %zu", i + 1, count);
	}
	*out = steal_ptr(&all);
	*n = count;
	return 0;
}

/* ---- configuration ---- */

/* The three names are nested: the document has "config", which has "Labels". Missing ones mean no
 * label. */
int oci_config_label(const char *text, size_t len, const char *label, char **value,
	size_t *value_len, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(text, len, &config_limits, err);
	struct json_object *config, *labels, *v = NULL;

	*value = NULL;
	*value_len = 0;
	if (!o)
		return err_wrap(err, "the image's configuration");
	config = json_get(o, "config");
	if (!json_object_is_type(o, json_type_object))
		return err_set(err, ERR_INVALID, "the image's configuration is not an object");
	if (config && !json_object_is_type(config, json_type_object))
		return err_set(err, ERR_INVALID, "the image's config is not an object");
	labels = json_get(config, "Labels");
	if (labels && !json_object_is_type(labels, json_type_object))
		return err_set(err, ERR_INVALID, "the image's Labels are not an object");
	/* A label's name may contain slashes, which json_get() would take for a path. */
	if (!labels || !json_object_object_get_ex(labels, label, &v))
		return 0;
	if (!json_object_is_type(v, json_type_string))
		return err_set(
			err, ERR_INVALID, "the image's label %s is not a string", log_esc(label));
	*value_len = (size_t)json_object_get_string_len(v);
	*value = xmemdup(json_object_get_string(v), *value_len);
	return 0;
}
