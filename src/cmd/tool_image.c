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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/image.h"
#include "tec/model/pcrmsg.h"
#include "tec/model/pcrs.h"
#include "tec/report/handover.h"
#include "tec/report/image.h"

#define POLL_MS  250
#define NO_NONCE "00000000000000000000000000000000"

/* ---- the ApprovedImage */

/* Find the ApprovedImage or create it. *name is its name, which the caller frees. */
static int make_image(
	struct tool *t, const char *reference, bool handed_in, char **name, struct err *err)
{
	const char *given = conf_str(t->conf, "name");
	cleanup_show_world struct report_world w = {.ns = NULL};
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_json struct json_object *o = NULL;
	int exists;

	if (report_image_check(reference, given, err) < 0 ||
		tool_load(t, 1u << REPORT_IMAGE, &w, err) < 0)
		return -1;
	exists = report_image_choose(&w, given, reference, name, err);
	if (exists)
		return exists < 0 ? -1 : 0;
	o = report_image_new(*name, reference, handed_in);
	kobj_path(&kobj_image, t->ns, NULL, NULL, &path);
	strbuf_adds(&path, "?fieldManager=tecctl");
	if (tool_ask(t, "POST", strbuf_str(&path), "application/json", o, NULL, err) < 0)
		return -1;
	tool_say(stderr, "tecctl: created ApprovedImage %s", *name);
	return 0;
}

/* ---- handing in values */

/* Compute the values as a Job would, with the platforms that the cluster names, and PUT them to the
 * subresource of --standalone. */
static int hand_in(struct tool_compute *c, const char *name, const char *reference, struct err *err)
{
	cleanup_json struct json_object *platforms = json_arr(), *body = json_obj();
	cleanup_strbuf struct strbuf message = STRBUF_INIT, path = STRBUF_INIT;
	cleanup_show_world struct report_world w = {.ns = NULL};
	struct json_object *names;

	if (tool_load(c->t, 1u << REPORT_CLUSTER, &w, err) < 0)
		return -1;
	names = json_get_arr(report_cluster(&w), "spec/attestation/platformConfigMaps");
	for (size_t i = 0; i < json_len(names); i++) {
		cleanup_json struct json_object *map = tool_get(
			c->t, &kobj_configmap, json_object_get_string(json_at(names, i)), err);

		if (!map || tool_compute_platform(c, map, platforms, err) < 0)
			return -1;
	}
	if (tool_compute_message(c, reference, NO_NONCE, platforms, &message, err) < 0)
		return -1;
	json_add_str(body, "message", strbuf_str(&message));
	kobj_path(&kobj_image, c->t->ns, name, "values", &path);
	return tool_ask(c->t, "PUT", strbuf_str(&path), "application/json", body, NULL, err);
}

/* ---- waiting until it is in force */

/* --wait=0 still looks once. The condition's message is printed when it has changed. */
static int wait_for_image(struct tool *t, const char *name, struct err *err)
{
	uint64_t end = clock_boot_ms() + t->wait_ms;
	cleanup_free char *told = NULL;

	for (;;) {
		cleanup_json struct json_object *image = tool_get(t, &kobj_image, name, err);
		const char *message = json_get_str(report_condition(image, "Committed"), "message");

		if (!image)
			return -1;
		if (report_is_true(image, "Committed")) {
			tool_say(stdout, "approvedimage %s is in force", name);
			return 0;
		}
		if (message && !str_eq(message, told)) {
			tool_say(stderr, "tecctl: %s", message);
			free(told);
			told = xstrdup(message);
		}
		if (clock_boot_ms() >= end)
			return report_image_late(image, t->wait_ms / 1000, err);
		if (tool_sleep(t, POLL_MS, err) < 0)
			return -1;
	}
}

/* Compute the values of --rootfs, which is made absolute for the child, before anything is created:
 * an image without values is never approved. A cluster is refused: there, Jobs compute the values,
 * and nothing can be handed in. *reference is made from the values if none was given. */
static int compute_rootfs(
	struct tool_compute *c, const char *rootfs, char **reference, struct err *err)
{
	cleanup_json struct json_object *version = NULL;
	cleanup_strbuf struct strbuf values = STRBUF_INIT;

	if (tool_ask(c->t, "GET", "/version", NULL, NULL, &version, err) < 0)
		return -1;
	if (!report_is_standalone(json_get_str(version, "gitVersion")))
		return err_set(err, ERR_INVALID,
			"option --rootfs requires tec-operator --standalone; %.60s computes values in Jobs; next step: tecctl image approve REF",
			c->t->server);
	if (tool_compute_init(c, c->t, err) < 0 || tool_compute_open(c, rootfs, err) < 0 ||
		tool_compute_values(c, &values, err) < 0)
		return -1;
	if (!*reference)
		*reference = report_image_reference(strbuf_str(&values), values.len);
	return 0;
}

/* REF, --image and --rootfs are three ways to name an image; only REF and --rootfs go together. The
 * digest that is approved is the one that a tag has today; a later push to it is not approved. */
int tool_image_approve(struct tool *t, struct err *err)
{
	const char *operand = conf_operand(t->conf), *image = conf_str(t->conf, "image"),
		   *rootfs = conf_str(t->conf, "rootfs");
	cleanup_free char *reference = xstrdup(operand), *name = NULL;
	struct tool_compute c = {.t = t};
	int rc = 0;

	if (!operand && !image && !rootfs)
		return err_set(err, ERR_INVALID,
			"no image given; next step: tecctl image approve REF, --image TAG, or --rootfs DIR with tec-operator --standalone");
	if (image && (operand || rootfs))
		return err_set(err, ERR_INVALID,
			"option --image cannot be combined with REF or --rootfs; next step: give one of them");
	if (image)
		rc = tool_compute_init(&c, t, err) < 0
			     ? -1
			     : tool_compute_resolve(&c, image, &reference, err);
	else if (rootfs)
		rc = compute_rootfs(&c, rootfs, &reference, err);
	if (rc == 0)
		rc = make_image(t, reference, rootfs != NULL, &name, err);
	if (rc == 0 && rootfs)
		rc = hand_in(&c, name, reference, err);
	if (rc == 0)
		rc = wait_for_image(t, name, err);
	tool_compute_fini(&c);
	return rc;
}

/* ---- verify */

/* Compute the values again, independently of the operator, from the registry or from --rootfs. Every
 * set of values in force must be one that the image computes to. */
static int verify(
	struct tool *t, struct tool_compute *c, const struct model_pcrs_entry *e, struct err *err)
{
	const char *rootfs = conf_str(t->conf, "rootfs");
	cleanup_free char *reference = NULL;
	cleanup_strbuf struct strbuf message = STRBUF_INIT;
	cleanup_pcrmsg struct model_pcrmsg m = MODEL_PCRMSG_INIT;
	size_t n_bad;

	if (tool_compute_init(c, t, err) < 0 ||
		(rootfs ? tool_compute_open(c, rootfs, err)
			: tool_compute_fetch(c, e->reference, &reference, err)) < 0 ||
		tool_compute_message(c, e->reference, NO_NONCE, NULL, &message, err) < 0 ||
		model_pcrmsg_read(strbuf_str(&message), message.len, NO_NONCE,
			model_image_digest(e->reference), &m, err) < 0)
		return -1;
	n_bad = report_image_unlike(e, &m);
	if (n_bad)
		tool_say(stdout,
			"approvedimage %s: %zu of %zu value sets in force do not match the image; next step: tecctl image explain %s",
			e->name, n_bad, 1 + e->variants.n, e->name);
	else
		tool_say(stdout, "approvedimage %s: all %zu value sets in force match the image",
			e->name, 1 + e->variants.n);
	return n_bad ? TOOL_FAILED : 0;
}

/* The values in force are those in the operator's ConfigMap, not those of the ApprovedImage. */
int tool_image_verify(struct tool *t, struct err *err)
{
	cleanup_show_world struct report_world w = {.ns = NULL};
	cleanup_model_pcrs struct model_pcrs *pcrs = NULL;
	struct tool_compute c = {.t = t};
	const char *name = conf_operand(t->conf);
	const struct model_pcrs_entry *e = NULL;
	int rc;

	if (tool_load(t, 1u << REPORT_CONFIGMAP, &w, err) < 0)
		return -1;
	pcrs = report_pcrs(&w);
	e = pcrs ? model_pcrs_find(pcrs, name) : NULL;
	if (!e || e->why || !model_image_digest(e->reference))
		return err_set(err, ERR_NOT_FOUND,
			"no values found for ApprovedImage %.80s; next step: tecctl image list",
			log_esc(name));
	rc = verify(t, &c, e, err);
	tool_compute_fini(&c);
	return rc;
}
