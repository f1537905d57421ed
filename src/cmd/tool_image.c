/* SPDX-License-Identifier: MIT */
/*
 * image approve and image verify. Where no Jobs run, tecctl is the Job: it computes what the operator's
 * Job of the image asks for, and writes a Pod of that Job which ended and says it. The operator takes
 * it as it takes every Job's, and decides alone.
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
#include "tec/kobj/owner.h"
#include "tec/model/image.h"
#include "tec/model/job.h"
#include "tec/model/pcrmsg.h"
#include "tec/model/pcrs.h"
#include "tec/show/advice.h"

#define POLL_MS    250
#define NAME_MAX_1 50 /* of a name made from a reference, before its digest */

/* ---- names */

/* "debian-01234567" of "registry/a/Debian@sha256:0123456789..."; the caller frees. */
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

/* Of files alone, which no registry has: what they compute to. */
static char *reference_of_values(const struct strbuf *values)
{
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	bytes_sha256(strbuf_str(values), values->len, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	return xasprintf("localhost/rootfs@sha256:%s", hex);
}

/* ---- the ApprovedImage */

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

/* Finds it or makes it; *name is its name, the caller frees. */
static int make_image(struct tool *t, const char *reference, char **name, struct err *err)
{
	const char *given = conf_str(t->conf, "name");
	cleanup_show_world struct show_world w = {.ns = NULL};
	cleanup_json struct json_object *o = json_obj();
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	struct json_object *have;

	if (!model_image_digest(reference))
		return err_set(err, ERR_INVALID,
			"%.150s does not end in a digest; next step: REGISTRY/NAME@sha256:..., which skopeo inspect or tec-compute-pcrs fetch prints",
			log_esc(reference));
	if (given && !kobj_name_valid(given, strlen(given)))
		return err_set(err, ERR_INVALID,
			"option --name: %.100s cannot be the name of an object", log_esc(given));
	if (tool_load(t, 1u << SHOW_IMAGE, &w, err) < 0)
		return -1;
	have = find_image(&w, given, reference);
	if (have && !str_eq(json_get_str(have, "spec/image"), reference))
		return err_set(err, ERR_INVALID,
			"ApprovedImage %.80s is of another image; next step: --name NAME", given);
	*name = have ? xstrdup(show_name(have)) : given ? xstrdup(given) : name_of(reference);
	if (have)
		return 0;
	json_add_str(json_add_str(o, "apiVersion", "trusted-execution-clusters.io/v1alpha1"),
		"kind", "ApprovedImage");
	json_add(o, "metadata", json_add_str(json_obj(), "name", *name));
	json_add(o, "spec", json_add_str(json_obj(), "image", reference));
	kobj_path(&kobj_image, t->ns, NULL, NULL, &path);
	strbuf_adds(&path, "?fieldManager=tecctl");
	if (tool_ask(t, "POST", strbuf_str(&path), "application/json", o, NULL, err) < 0)
		return -1;
	tool_say(stderr, "tecctl: made ApprovedImage %s", *name);
	return 0;
}

/* ---- in the place of a Job */

/* The Job of this image that the operator waits for: the youngest. The caller puts it. */
static struct json_object *find_job(struct tool *t, struct json_object *image, struct err *err)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_json struct json_object *list = NULL;
	struct json_object *items, *found = NULL;

	kobj_path(&kobj_job, t->ns, NULL, NULL, &path);
	if (tool_ask(t, "GET", strbuf_str(&path), NULL, NULL, &list, err) < 0)
		return NULL;
	items = json_get_arr(list, "items");
	for (size_t i = 0; items && i < json_object_array_length(items); i++) {
		struct json_object *o = json_object_array_get_idx(items, i);
		struct err unused = ERR_INIT;
		cleanup_kobj const struct kobj *k = model_job_extract(o, &unused);
		const struct model_job *j = (const struct model_job *)(const struct kobj *)k;

		if (!j || j->obj.deleting || !j->nonce ||
			!str_eq(j->owner_uid, json_get_str(image, "metadata/uid")))
			continue;
		if (!found || strcmp(json_get_str(o, "metadata/creationTimestamp"),
				      json_get_str(found, "metadata/creationTimestamp")) > 0)
			found = o;
	}
	return found ? json_object_get(found) : NULL;
}

/* What its container is to be given as --platform, from the ConfigMaps. The caller puts it. */
static struct json_object *platforms_of(
	struct tool_compute *c, struct json_object *job, struct err *err)
{
	struct json_object *containers = json_get_arr(job, "spec/template/spec/containers"), *args,
			   *out = json_arr();

	args = json_get_arr(containers ? json_object_array_get_idx(containers, 0) : NULL, "args");
	for (size_t i = 0; args && i + 1 < json_object_array_length(args); i++) {
		const char *arg = json_object_get_string(json_object_array_get_idx(args, i)),
			   *value = json_object_get_string(json_object_array_get_idx(args, i + 1));
		cleanup_json struct json_object *map = NULL;
		cleanup_free char *name = NULL;

		if (!str_eq(arg, "--platform") || !value)
			continue;
		name = xstrndup(value, strcspn(value, "="));
		map = tool_get(c->t, &kobj_configmap, name, err);
		if (!map || tool_compute_platform(c, map, out, err) < 0) {
			json_object_put(out);
			return NULL;
		}
	}
	return out;
}

static struct json_object *pod_json(struct json_object *job, const char *message)
{
	const char *name = show_name(job);
	struct json_object *o = json_obj(), *meta = json_obj(), *container = json_obj(),
			   *ended = json_obj(), *status = json_obj();
	cleanup_free char *prefix = xasprintf("%s-", name);

	json_add_str(meta, "generateName", prefix);
	json_add(meta, "labels",
		json_add_str(json_add_str(json_obj(), "batch.kubernetes.io/job-name", name), "app",
			MODEL_JOB_APP));
	json_add(meta, "ownerReferences",
		json_push(json_arr(),
			kobj_owner_json(&kobj_job, name, json_get_str(job, "metadata/uid"))));
	json_add_str(json_add_str(container, "name", MODEL_JOB_APP), "image", "tecctl");
	json_add_str(json_add_str(o, "apiVersion", "v1"), "kind", "Pod");
	json_add(o, "metadata", meta);
	json_add(o, "spec",
		json_add_str(json_add(json_obj(), "containers", json_push(json_arr(), container)),
			"restartPolicy", "Never"));
	json_add_str(json_add_str(json_add_int(ended, "exitCode", 0), "reason", "Completed"),
		"message", message);
	container =
		json_add_str(json_add_str(json_obj(), "name", MODEL_JOB_APP), "image", "tecctl");
	json_add_int(json_add_bool(json_add_str(container, "imageID", ""), "ready", false),
		"restartCount", 0);
	json_add(container, "state", json_add(json_obj(), "terminated", ended));
	json_add_str(status, "phase", "Succeeded");
	json_add(status, "containerStatuses", json_push(json_arr(), container));
	return json_add(o, "status", status);
}

/* A Pod is made without its status, which is written then. */
static int write_pod(struct tool *t, struct json_object *job, const char *message, struct err *err)
{
	cleanup_json struct json_object *pod = pod_json(job, message), *made = NULL,
					*patch = json_obj();
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	json_add(patch, "status", json_object_get(json_get_obj(pod, "status")));
	kobj_path(&kobj_pod, t->ns, NULL, NULL, &path);
	if (tool_ask(t, "POST", strbuf_str(&path), "application/json", pod, &made, err) < 0)
		return -1;
	strbuf_reset(&path);
	kobj_path(&kobj_pod, t->ns, show_name(made), "status", &path);
	return tool_ask(
		t, "PATCH", strbuf_str(&path), "application/merge-patch+json", patch, NULL, err);
}

static int play_job(
	struct tool_compute *c, struct json_object *image, struct json_object *job, struct err *err)
{
	cleanup_json struct json_object *platforms = platforms_of(c, job, err);
	struct err unused = ERR_INIT;
	cleanup_kobj const struct kobj *k = model_job_extract(job, &unused);
	cleanup_strbuf struct strbuf message = STRBUF_INIT;

	if (!platforms || !k)
		return platforms ? err_set(err, ERR_INVALID, "%s", unused.text) : -1;
	if (tool_compute_message(c, json_get_str(image, "spec/image"),
		    ((const struct model_job *)(const struct kobj *)k)->nonce, platforms, &message,
		    err) < 0)
		return -1;
	return write_pod(c->t, job, strbuf_str(&message), err);
}

/* ---- until it is in force */

/* Says what is new. */
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

static int not_in_time(struct tool *t, struct json_object *image, struct err *err)
{
	struct json_object *c = show_condition(image, "Committed");
	const char *message = json_get_str(c, "message"), *reason = json_get_str(c, "reason");
	cleanup_strbuf struct strbuf next = STRBUF_INIT;

	if (!show_advice(SHOW_IMAGE, reason, show_name(image), &next))
		strbuf_adds(&next, "tecctl doctor");
	return err_set(err, ERR_INVALID,
		"it is not in force after %llu s: %.100s; next step: %.100s",
		(unsigned long long)t->wait_ms / 1000, message ? message : "the operator is silent",
		strbuf_str(&next));
}

/* Nothing else here ends a Job whose result was taken. */
static int drop_job(struct tool *t, struct json_object *job, struct err *err)
{
	if (!job || tool_delete(t, &kobj_job, job, err) == 0)
		return 0;
	if (err->kind != ERR_NOT_FOUND)
		return err_wrap(err, "Job %.60s", show_name(job));
	err_clear(err);
	return 0;
}

/* c NULL: Jobs compute. */
static int wait_for_image(struct tool *t, const char *name, struct tool_compute *c, struct err *err)
{
	uint64_t end = clock_boot_ms() + t->wait_ms;
	cleanup_free char *told = NULL;
	cleanup_json struct json_object *played = NULL;

	for (;;) {
		cleanup_json struct json_object *image = tool_get(t, &kobj_image, name, err),
						*job = NULL;

		if (!image)
			return -1;
		if (show_is_true(image, "Committed")) {
			tool_say(stdout, "approvedimage %s is in force", name);
			return drop_job(t, played, err);
		}
		tell_progress(image, &told);
		if (c)
			job = find_job(t, image, err);
		if (err_is_set(err))
			return -1;
		if (job && !str_eq(json_get_str(job, "metadata/uid"),
				   json_get_str(played, "metadata/uid"))) {
			if (play_job(c, image, job, err) < 0)
				return -1;
			json_object_put(played);
			played = steal_ptr(&job);
			end = clock_boot_ms() + t->wait_ms;
		}
		if (clock_boot_ms() >= end)
			return not_in_time(t, image, err);
		if (tool_sleep(t, POLL_MS, err) < 0)
			return -1;
	}
}

/* A cluster's Jobs compute, as a Pod that nobody ran would not be believed by its owner. */
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
		"options --image and --rootfs are for tec-operator --standalone, and %.60s runs Jobs that compute; next step: tecctl image approve REF",
		t->server);
}

static int open_rootfs(struct tool_compute *c, const char *rootfs, struct err *err)
{
	c->rootfs = realpath(rootfs, NULL);
	if (!c->rootfs)
		return err_set(err, ERR_NOT_FOUND, "cannot open --rootfs %s", log_esc(rootfs));
	return 0;
}

static int approve_here(struct tool *t, struct tool_compute *c, const char *image,
	const char *rootfs, struct err *err)
{
	cleanup_strbuf struct strbuf values = STRBUF_INIT;
	cleanup_free char *reference = NULL, *name = NULL;

	if (check_standalone(t, err) < 0 || tool_compute_init(c, t, err) < 0)
		return -1;
	if (rootfs) {
		if (open_rootfs(c, rootfs, err) < 0)
			return -1;
		reference = conf_operand(t->conf) ? xstrdup(conf_operand(t->conf)) : NULL;
	} else if (tool_compute_fetch(c, image, &reference, err) < 0) {
		return -1;
	}
	/* What does not compute is never approved. */
	if (tool_compute_values(c, &values, err) < 0)
		return -1;
	if (!reference)
		reference = reference_of_values(&values);
	if (make_image(t, reference, &name, err) < 0)
		return -1;
	return wait_for_image(t, name, c, err);
}

int tool_image_approve(struct tool *t, struct err *err)
{
	const char *operand = conf_operand(t->conf), *image = conf_str(t->conf, "image"),
		   *rootfs = conf_str(t->conf, "rootfs");
	cleanup_free char *name = NULL;
	struct tool_compute c = {.t = t};
	int rc;

	if (!operand && !image && !rootfs)
		return err_set(err, ERR_INVALID,
			"which image? next step: tecctl image approve REF, or --image REF or --rootfs DIR with tec-operator --standalone");
	if (image && (operand || rootfs))
		return err_set(err, ERR_INVALID,
			"option --image excludes REF and --rootfs; next step: give one of them");
	if (!image && !rootfs)
		return make_image(t, operand, &name, err) < 0 ? -1
							      : wait_for_image(t, name, NULL, err);
	rc = approve_here(t, &c, image, rootfs, err);
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

static bool same_values(const struct pcr_events *a, const struct pcr_events *b)
{
	return same_register(a, b, 4) && same_register(a, b, 14);
}

static bool computed_has(const struct model_pcrmsg *m, const struct pcr_events *e)
{
	bool found = same_values(&m->events, e);

	for (size_t i = 0; !found && i < m->variants.n; i++)
		found = same_values(&m->variants.v[i].events, e);
	return found;
}

/* Every set of values in force is one that the image computes to. */
static int compare(const char *name, const struct model_pcrs_entry *e, const struct model_pcrmsg *m)
{
	size_t n_bad = !computed_has(m, &e->events);

	for (size_t i = 0; i < e->variants.n; i++)
		n_bad += !computed_has(m, &e->variants.v[i].events);
	if (n_bad)
		tool_say(stdout,
			"approvedimage %s: %zu of %zu value sets in force are not those of the image; next step: tecctl image explain %s",
			name, n_bad, 1 + e->variants.n, name);
	else
		tool_say(stdout,
			"approvedimage %s: all %zu value sets in force are those of the image",
			name, 1 + e->variants.n);
	return n_bad ? TOOL_FAILED : 0;
}

static int verify(
	struct tool *t, struct tool_compute *c, const struct model_pcrs_entry *e, struct err *err)
{
	static const char nonce[] = "00000000000000000000000000000000";
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
	if (tool_compute_message(c, e->reference, nonce, NULL, &message, err) < 0 ||
		model_pcrmsg_read(strbuf_str(&message), message.len, nonce,
			model_image_digest(e->reference), &m, err) < 0)
		return -1;
	return compare(e->name, e, &m);
}

int tool_image_verify(struct tool *t, struct err *err)
{
	cleanup_show_world struct show_world w = {.ns = NULL};
	cleanup_model_pcrs struct model_pcrs *pcrs = NULL;
	struct tool_compute c = {.t = t};
	const char *name = conf_operand(t->conf);
	const struct model_pcrs_entry *e = NULL;
	struct json_object *text = NULL;
	int rc;

	if (tool_load(t, 1u << SHOW_CONFIGMAP, &w, err) < 0)
		return -1;
	json_object_object_get_ex(
		json_get_obj(show_find(&w, SHOW_CONFIGMAP, MODEL_PCRS_CONFIGMAP), "data"),
		MODEL_PCRS_FILE, &text);
	if (json_object_is_type(text, json_type_string)) {
		pcrs = model_pcrs_parse(
			json_object_get_string(text), (size_t)json_object_get_string_len(text));
		e = model_pcrs_find(pcrs, name);
	}
	if (!e || e->why || !model_image_digest(e->reference))
		return err_set(err, ERR_NOT_FOUND,
			"there are no values of an ApprovedImage %.80s; next step: tecctl image list",
			log_esc(name));
	rc = verify(t, &c, e, err);
	tool_compute_fini(&c);
	return rc;
}
