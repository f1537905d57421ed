/* SPDX-License-Identifier: MIT */
/*
 * image approve and image verify. With a directory the values are computed here and handed in;
 * the operator alone decides what counts. With a reference the operator has them computed.
 *
 * image approve REF           create the ApprovedImage and wait
 * image approve --image TAG   resolve the tag to a digest first
 * image approve --rootfs DIR  compute, create it with the mark "handed in", PUT the values, wait
 * image verify NAME           compute, compare with the values in force
 *
 * All computing is done by a child, tec-compute-pcrs (tool_compute.h).
 */
#include "config.h"

#include "tool.h"
#include "tool_compute.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"
#include "tec/model/image.h"
#include "tec/model/pcrmsg.h"
#include "tec/model/pcrs.h"
#include "tec/show/advice.h"

#define POLL_MS    250
#define NAME_MAX_1 50 /* characters of a name made from a reference, without the digest */
#define NO_NONCE   "00000000000000000000000000000000"

/* ---- names */

/* A name for the ApprovedImage: "debian-01234567" for "registry/a/Debian@sha256:0123456789...".
 * The caller frees. */
static char *name_of(const char *reference)
{
	const char *digest = model_image_digest(reference), *at = strchr(reference, '@');
	size_t end = at ? (size_t)(at - reference) : strlen(reference), start = end;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	while (start > 0 && reference[start - 1] != '/')
		start--;
	for (size_t i = start; i < end && out.len < NAME_MAX_1 && reference[i] != ':'; i++) {
		int c = tolower((unsigned char)reference[i]);

		strbuf_addc(&out, isascii(c) && isalnum(c) ? (char)c : '-');
	}
	return xasprintf("%s%s-%.8s",
		out.len && isalnum((unsigned char)out.data[0]) ? "" : "image-", strbuf_str(&out),
		digest);
}

/* A reference for files that are in no registry, made from the values that they compute to. The
 * caller frees. */
static char *reference_of_values(const struct strbuf *values)
{
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	bytes_sha256(strbuf_str(values), values->len, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	return xasprintf("localhost/rootfs@sha256:%s", hex);
}

/* ---- the ApprovedImage */

/* By name if one was given, else by the reference. */
static struct json_object *find_image(
	const struct show_world *w, const char *name, const char *reference)
{
	for (size_t i = 0; i < w->list[SHOW_IMAGE].n; i++) {
		struct json_object *o = w->list[SHOW_IMAGE].v[i];

		if (name ? str_eq(show_name(o), name)
			 : str_eq(json_get_str(o, "spec/image"), reference))
			return o;
	}
	return NULL;
}

/* Find the ApprovedImage or create it. *name is its name, which the caller frees. */
static int make_image(
	struct tool *t, const char *reference, bool handed_in, char **name, struct err *err)
{
	const char *given = conf_str(t->conf, "name");
	cleanup_show_world struct show_world w = {.ns = NULL};
	cleanup_json struct json_object *o = json_obj();
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	struct json_object *have, *meta;

	if (!model_image_digest(reference))
		return err_set(err, ERR_INVALID,
			"%.150s has no digest; next step: give REGISTRY/NAME@sha256:..., as printed by skopeo inspect or tec-compute-pcrs fetch",
			log_esc(reference));
	if (given && !kobj_name_valid(given, strlen(given)))
		return err_set(err, ERR_INVALID, "option --name: %.100s is not a valid object name",
			log_esc(given));
	if (tool_load(t, 1u << SHOW_IMAGE, &w, err) < 0)
		return -1;
	have = find_image(&w, given, reference);
	if (have && !str_eq(json_get_str(have, "spec/image"), reference))
		return err_set(err, ERR_INVALID,
			"ApprovedImage %.80s is for another image; next step: --name NAME", given);
	*name = have ? xstrdup(show_name(have)) : given ? xstrdup(given) : name_of(reference);
	if (have)
		return 0;
	json_add_str(json_add_str(o, "apiVersion", "trusted-execution-clusters.io/v1alpha1"),
		"kind", "ApprovedImage");
	meta = json_add_str(json_obj(), "name", *name);
	/* The mark makes the operator wait for values instead of computing them. */
	if (handed_in)
		json_add(meta, "annotations",
			json_add_str(json_obj(), MODEL_IMAGE_VALUES, MODEL_IMAGE_HANDED_IN));
	json_add(o, "metadata", meta);
	json_add(o, "spec", json_add_str(json_obj(), "image", reference));
	kobj_path(&kobj_image, t->ns, NULL, NULL, &path);
	strbuf_adds(&path, "?fieldManager=tecctl");
	if (tool_ask(t, "POST", strbuf_str(&path), "application/json", o, NULL, err) < 0)
		return -1;
	tool_say(stderr, "tecctl: created ApprovedImage %s", *name);
	return 0;
}

/* ---- handing in values */

/* The --platform options for tec-compute-pcrs, from the platforms that the cluster names. The
 * caller releases it. */
static struct json_object *platforms_of(struct tool_compute *c, struct err *err)
{
	cleanup_show_world struct show_world w = {.ns = NULL};
	struct json_object *names, *out = json_arr();

	if (tool_load(c->t, 1u << SHOW_CLUSTER, &w, err) < 0) {
		json_object_put(out);
		return NULL;
	}
	names = json_get_arr(show_cluster(&w), "spec/attestation/platformConfigMaps");
	for (size_t i = 0; names && i < json_object_array_length(names); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(names, i));
		cleanup_json struct json_object *map = tool_get(c->t, &kobj_configmap, name, err);

		if (!map || tool_compute_platform(c, map, out, err) < 0) {
			json_object_put(out);
			return NULL;
		}
	}
	return out;
}

/* Compute the values as a Job would and PUT them to the subresource of --standalone. */
static int hand_in(struct tool_compute *c, const char *name, const char *reference, struct err *err)
{
	cleanup_json struct json_object *platforms = platforms_of(c, err), *body = json_obj();
	cleanup_strbuf struct strbuf message = STRBUF_INIT, path = STRBUF_INIT;

	if (!platforms ||
		tool_compute_message(c, reference, NO_NONCE, platforms, &message, err) < 0)
		return -1;
	json_add_str(body, "message", strbuf_str(&message));
	kobj_path(&kobj_image, c->t->ns, name, "values", &path);
	return tool_ask(c->t, "PUT", strbuf_str(&path), "application/json", body, NULL, err);
}

/* ---- waiting until it is in force */

/* Print the condition's message when it has changed. */
static void tell_progress(struct json_object *image, char **told)
{
	struct json_object *c = show_condition(image, "Committed");
	const char *message = json_get_str(c, "message");

	if (!message || str_eq(message, *told))
		return;
	tool_say(stderr, "tecctl: %s", message);
	free(*told);
	*told = xstrdup(message);
}

/* The condition's advice is better than "tecctl doctor", if there is one. */
static int not_in_time(struct tool *t, struct json_object *image, struct err *err)
{
	struct json_object *c = show_condition(image, "Committed");
	const char *message = json_get_str(c, "message"), *reason = json_get_str(c, "reason");
	cleanup_strbuf struct strbuf next = STRBUF_INIT;

	if (!show_advice(SHOW_IMAGE, reason, show_name(image), &next))
		strbuf_adds(&next, "tecctl doctor");
	return err_set(err, ERR_INVALID,
		"the image is not in force after %llu s: %.100s; next step: %.100s",
		(unsigned long long)t->wait_ms / 1000,
		message ? message : "the operator has reported nothing", strbuf_str(&next));
}

/* --wait=0 still looks once. */
static int wait_for_image(struct tool *t, const char *name, struct err *err)
{
	uint64_t end = clock_boot_ms() + t->wait_ms;
	cleanup_free char *told = NULL;

	for (;;) {
		cleanup_json struct json_object *image = tool_get(t, &kobj_image, name, err);

		if (!image)
			return -1;
		if (show_is_true(image, "Committed")) {
			tool_say(stdout, "approvedimage %s is in force", name);
			return 0;
		}
		tell_progress(image, &told);
		if (clock_boot_ms() >= end)
			return not_in_time(t, image, err);
		if (tool_sleep(t, POLL_MS, err) < 0)
			return -1;
	}
}

/* Refuse --rootfs at a cluster: there, Jobs compute the values, and nothing can be handed in. */
static int check_standalone(struct tool *t, struct err *err)
{
	cleanup_json struct json_object *version = NULL;
	const char *text;

	if (tool_ask(t, "GET", "/version", NULL, NULL, &version, err) < 0)
		return -1;
	text = json_get_str(version, "gitVersion");
	if (text && strstr(text, "+tec-operator-"))
		return 0;
	return err_set(err, ERR_INVALID,
		"option --rootfs requires tec-operator --standalone; %.60s computes values in Jobs; next step: tecctl image approve REF",
		t->server);
}

/* Made absolute for the child. */
static int open_rootfs(struct tool_compute *c, const char *rootfs, struct err *err)
{
	c->rootfs = realpath(rootfs, NULL);
	if (!c->rootfs)
		return err_set(err, ERR_NOT_FOUND, "cannot open --rootfs %s", log_esc(rootfs));
	return 0;
}

/* The reference is the operand, or made from the values if there is none. */
static int approve_rootfs(struct tool_compute *c, const char *rootfs, struct err *err)
{
	const char *operand = conf_operand(c->t->conf);
	cleanup_strbuf struct strbuf values = STRBUF_INIT;
	cleanup_free char *reference = NULL, *name = NULL;

	/* Compute first: an image without values is never approved. */
	if (check_standalone(c->t, err) < 0 || tool_compute_init(c, c->t, err) < 0 ||
		open_rootfs(c, rootfs, err) < 0 || tool_compute_values(c, &values, err) < 0)
		return -1;
	reference = operand ? xstrdup(operand) : reference_of_values(&values);
	if (make_image(c->t, reference, true, &name, err) < 0 ||
		hand_in(c, name, reference, err) < 0)
		return -1;
	return wait_for_image(c->t, name, err);
}

static int approve_reference(struct tool *t, const char *reference, struct err *err)
{
	cleanup_free char *name = NULL;

	if (make_image(t, reference, false, &name, err) < 0)
		return -1;
	return wait_for_image(t, name, err);
}

/* Approve the digest that the tag has today; a later push to the tag is not approved. */
static int approve_tag(struct tool_compute *c, const char *image, struct err *err)
{
	cleanup_free char *reference = NULL;

	if (tool_compute_init(c, c->t, err) < 0 ||
		tool_compute_resolve(c, image, &reference, err) < 0)
		return -1;
	return approve_reference(c->t, reference, err);
}

/* REF, --image and --rootfs are three ways to name an image; only REF and --rootfs go together. */
int tool_image_approve(struct tool *t, struct err *err)
{
	const char *operand = conf_operand(t->conf), *image = conf_str(t->conf, "image"),
		   *rootfs = conf_str(t->conf, "rootfs");
	struct tool_compute c = {.t = t};
	int rc;

	if (!operand && !image && !rootfs)
		return err_set(err, ERR_INVALID,
			"no image given; next step: tecctl image approve REF, --image TAG, or --rootfs DIR with tec-operator --standalone");
	if (image && (operand || rootfs))
		return err_set(err, ERR_INVALID,
			"option --image cannot be combined with REF or --rootfs; next step: give one of them");
	if (!image && !rootfs)
		return approve_reference(t, operand, err);
	rc = image ? approve_tag(&c, image, err) : approve_rootfs(&c, rootfs, err);
	tool_compute_fini(&c);
	return rc;
}

/* ---- verify */

static bool same_register(const struct pcr_events *a, const struct pcr_events *b, unsigned pcr)
{
	uint8_t x[SHA256_LEN], y[SHA256_LEN];

	return pcr_events_value(a, pcr, x) && pcr_events_value(b, pcr, y) &&
	       memcmp(x, y, sizeof(x)) == 0;
}

/* PCR 7 is not compared: it depends on the platform, not on the image alone. */
static bool same_values(const struct pcr_events *a, const struct pcr_events *b)
{
	return same_register(a, b, 4) && same_register(a, b, 14);
}

/* Whether the image computes to these values in any of its variants. */
static bool computed_has(const struct model_pcrmsg *m, const struct pcr_events *e)
{
	bool found = same_values(&m->events, e);

	for (size_t i = 0; !found && i < m->variants.n; i++)
		found = same_values(&m->variants.v[i].events, e);
	return found;
}

/* Check that every set of values in force is one that the image computes to. A variant that was
 * computed but is not in force is no fault. */
static int compare(const char *name, const struct model_pcrs_entry *e, const struct model_pcrmsg *m)
{
	size_t n_bad = !computed_has(m, &e->events);

	for (size_t i = 0; i < e->variants.n; i++)
		n_bad += !computed_has(m, &e->variants.v[i].events);
	if (n_bad)
		tool_say(stdout,
			"approvedimage %s: %zu of %zu value sets in force do not match the image; next step: tecctl image explain %s",
			name, n_bad, 1 + e->variants.n, name);
	else
		tool_say(stdout, "approvedimage %s: all %zu value sets in force match the image",
			name, 1 + e->variants.n);
	return n_bad ? TOOL_FAILED : 0;
}

/* Compute the values again, independently of the operator, from the registry or from --rootfs. */
static int verify(
	struct tool *t, struct tool_compute *c, const struct model_pcrs_entry *e, struct err *err)
{
	const char *rootfs = conf_str(t->conf, "rootfs");
	cleanup_free char *reference = NULL;
	cleanup_strbuf struct strbuf message = STRBUF_INIT;
	cleanup_pcrmsg struct model_pcrmsg m = MODEL_PCRMSG_INIT;

	if (tool_compute_init(c, t, err) < 0)
		return -1;
	if (rootfs) {
		if (open_rootfs(c, rootfs, err) < 0)
			return -1;
	} else if (tool_compute_fetch(c, e->reference, &reference, err) < 0) {
		return -1;
	}
	if (tool_compute_message(c, e->reference, NO_NONCE, NULL, &message, err) < 0 ||
		model_pcrmsg_read(strbuf_str(&message), message.len, NO_NONCE,
			model_image_digest(e->reference), &m, err) < 0)
		return -1;
	return compare(e->name, e, &m);
}

/* The values in force are those in the operator's ConfigMap, not those of the ApprovedImage. */
int tool_image_verify(struct tool *t, struct err *err)
{
	cleanup_show_world struct show_world w = {.ns = NULL};
	cleanup_model_pcrs struct model_pcrs *pcrs = NULL;
	struct tool_compute c = {.t = t};
	const char *name = conf_operand(t->conf);
	const struct model_pcrs_entry *e = NULL;
	int rc;

	if (tool_load(t, 1u << SHOW_CONFIGMAP, &w, err) < 0)
		return -1;
	pcrs = show_pcrs(&w);
	e = pcrs ? model_pcrs_find(pcrs, name) : NULL;
	if (!e || e->why || !model_image_digest(e->reference))
		return err_set(err, ERR_NOT_FOUND,
			"no values found for ApprovedImage %.80s; next step: tecctl image list",
			log_esc(name));
	rc = verify(t, &c, e, err);
	tool_compute_fini(&c);
	return rc;
}
