/* SPDX-License-Identifier: MIT */
/*
 * One Pod that fails once is tried once more by the Job itself (a node may go away); what fails
 * again is the operator's to retry, later. The result is the container's termination message; of
 * one that failed it is the end of the Pod's log, which the ApprovedImage's condition shows.
 */
#include "config.h"

#include "tec/render/pcrjob.h"

#include <stdio.h>
#include <string.h>

#include "render_internal.h"
#include "tec/base/bytes.h"
#include "tec/base/json.h"

#define PLATFORMS "/platforms/"

void render_pcrjob_name(const struct model_image *i, const struct render_pcrjob_platforms *p,
	char out[RENDER_PCRJOB_NAME_LEN + 1])
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	strbuf_addf(&text, "%s %s", i->obj.uid, i->image);
	for (size_t k = 0; p && k < p->n; k++) {
		bytes_to_hex(p->v[k].variables, SHA256_LEN, hex);
		strbuf_addf(&text, " %s %s", p->v[k].name, hex);
	}
	bytes_sha256(strbuf_str(&text), text.len, digest);
	bytes_to_hex(digest, 8, hex);
	snprintf(out, RENDER_PCRJOB_NAME_LEN + 1, MODEL_JOB_APP "-%.16s", hex);
}

/* Mount, volume and arguments of the platform with index k. */
static void add_platform(
	const char *name, size_t k, struct json_object *container, struct json_object *volumes)
{
	/* A platform's name may be longer than a volume's. */
	cleanup_free char *volume = xasprintf("platform-%zu", k);
	cleanup_free char *path = xasprintf(PLATFORMS "%s", name);
	cleanup_free char *value = xasprintf("%s=%s", name, path);
	struct json_object *args = json_get_arr(container, "args");

	json_push(json_get_arr(container, "volumeMounts"), render_mount(volume, path));
	json_push(
		volumes, render_named(volume, "configMap", json_add_str(json_obj(), "name", name)));
	json_push_str(json_push_str(args, "--platform"), value);
}

struct json_object *render_pcrjob(const struct model_image *i,
	const struct render_pcrjob_platforms *p, const char *ns, const char *tool,
	const char *nonce, unsigned attempt)
{
	struct json_object *spec = render_template("compute-pcrs-job.yaml"), *marks = json_obj();
	struct json_object *volumes = json_get_arr(spec, "template/spec/volumes");
	struct json_object *container =
		render_element(json_get_arr(spec, "template/spec/containers"), MODEL_JOB_APP);
	struct json_object *args = json_get_arr(container, "args");
	char name[RENDER_PCRJOB_NAME_LEN + 1], number[16];

	render_pcrjob_name(i, p, name);
	snprintf(number, sizeof(number), "%u", attempt);
	json_add_str(marks, MODEL_JOB_IMAGE_ANNOTATION, i->obj.name);
	json_add_str(marks, MODEL_JOB_ATTEMPT_ANNOTATION, number);
	json_add_str(marks, MODEL_JOB_NONCE_ANNOTATION, nonce);
	json_add_str(container, "image", tool);
	json_push_str(json_push_str(args, "--image"), i->image);
	json_push_str(json_push_str(args, "--nonce"), nonce);
	json_add_str(
		json_get_obj(render_element(volumes, "image"), "image"), "reference", i->image);
	for (size_t k = 0; p && k < p->n; k++)
		add_platform(p->v[k].name, k, container, volumes);
	return json_add(render_object(&(struct render_meta){.gvk = &kobj_job,
				.name = name,
				.ns = ns,
				.app = MODEL_JOB_APP,
				.take_marks = marks,
				.owner_gvk = &kobj_image,
				.owner = &i->obj}),
		"spec", spec);
}
