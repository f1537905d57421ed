/* SPDX-License-Identifier: MIT */
/*
 * The Job retries a failed Pod once (a node may go away); after that, the operator retries later.
 * The result is the container's termination message; for a failed container it is the end of the
 * Pod's log, which the ApprovedImage's condition shows.
 */
#include "config.h"

#include "tec/render/pcrjob.h"

#include <stdio.h>
#include <string.h>

#include "render_internal.h"
#include "tec/base/bytes.h"
#include "tec/base/json.h"

#define PLATFORMS "/platforms/"
#define IMAGE     "/image"
#define REGISTRY  "/registry"

/* The name depends on every input, so a changed input is a different Job and never an update. */
void render_pcrjob_name(const struct model_image *i, const struct render_pcrjob_platforms *p,
	const struct render_pcrjob_fetch *fetch, char out[RENDER_PCRJOB_NAME_LEN + 1])
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	char hex[SHA256_HEX_LEN + 1];

	strbuf_addf(&text, "%s %s", i->obj.uid, i->image);
	for (size_t k = 0; p && k < p->n; k++) {
		bytes_to_hex(p->v[k].variables, SHA256_LEN, hex);
		strbuf_addf(&text, " %s %s", p->v[k].name, hex);
	}
	if (fetch)
		strbuf_adds(&text, " fetch");
	bytes_sha256_hex(strbuf_str(&text), text.len, hex);
	/* 64 bits suffice: a collision only makes two images share a name, which the annotations
	 * reveal. */

	snprintf(out, RENDER_PCRJOB_NAME_LEN + 1, MODEL_JOB_APP "-%.16s", hex);
}

static void add_arg(struct json_object *args, const char *option, const char *value)
{
	if (value && *value)
		json_push_str(json_push_str(args, option), value);
}

/* Add the variables to the environment of a container. */
static void add_env(struct json_object *container, const char *const *env)
{
	struct json_object *list = json_arr();

	for (; env && *env; env++) {
		size_t len = strcspn(*env, "=");
		cleanup_free char *name = xstrndup(*env, len);

		json_push(list, json_add_str(json_add_str(json_obj(), "name", name), "value",
					*env + len + 1));
	}
	json_add(container, "env", list);
}

/* Add the init container that fetches the image, and the volume that it shares with the other
 * container. */
static void add_fetch(struct json_object *pod, const struct model_image *i,
	const struct render_pcrjob_fetch *fetch, const char *tool)
{
	cleanup_json struct json_object *more = render_template("compute-pcrs-fetch.yaml");
	struct json_object *container = json_get_obj(more, "container"),
			   *args = json_get_arr(container, "args");

	json_add_str(container, "image", tool);
	json_push_str(args, i->image);
	add_arg(args, "--into", IMAGE);
	/* Keys of Secret tec-operator-registry, which the template mounts; it is optional. */
	add_arg(args, "--registry-auth", REGISTRY "/.dockerconfigjson");
	add_arg(args, "--registry-ca", REGISTRY "/ca.crt");
	add_arg(args, "--registry-mirror", fetch->registry_mirror);
	add_arg(args, "--insecure-registry", fetch->insecure_registry);
	add_env(container, fetch->env);
	json_add(json_get_obj(pod, "securityContext"), "fsGroup",
		json_object_get(json_get(more, "fsGroup")));
	json_add(pod, "initContainers", json_push(json_arr(), json_object_get(container)));
	json_add(pod, "volumes", json_object_get(json_get_arr(more, "volumes")));
}

/* The nonce ties the result to this Job: a message of another one is refused. */
struct json_object *render_pcrjob(const struct model_image *i,
	const struct render_pcrjob_platforms *p, const struct render_pcrjob_fetch *fetch,
	const char *ns, const char *tool, const char *nonce, unsigned attempt)
{
	struct json_object *spec = render_template("compute-pcrs-job.yaml"), *marks = json_obj();
	struct json_object *pod = json_get_obj(spec, "template/spec"), *volumes;
	struct json_object *container =
		render_element(json_get_arr(spec, "template/spec/containers"), MODEL_JOB_APP);
	struct json_object *args = json_get_arr(container, "args");
	char name[RENDER_PCRJOB_NAME_LEN + 1], number[16];

	render_pcrjob_name(i, p, fetch, name);
	snprintf(number, sizeof(number), "%u", attempt);
	/* Annotations carry what the controller needs to judge the result later. */
	json_add_str(marks, MODEL_JOB_IMAGE_ANNOTATION, i->obj.name);
	json_add_str(marks, MODEL_JOB_ATTEMPT_ANNOTATION, number);
	json_add_str(marks, MODEL_JOB_NONCE_ANNOTATION, nonce);
	json_add_str(container, "image", tool);
	add_arg(args, "--image", i->image);
	add_arg(args, "--nonce", nonce);
	if (fetch) {
		json_add_str(marks, MODEL_JOB_FETCH_ANNOTATION, fetch->why);
		/* A NetworkPolicy selects these Pods: only they may reach a registry. */
		json_add_str(json_get_obj(spec, "template/metadata/labels"),
			RENDER_PCRJOB_FETCH_LABEL, "true");
		add_fetch(pod, i, fetch, tool);
	} else {
		json_add_str(json_get_obj(render_element(json_get_arr(pod, "volumes"), "image"),
				     "image"),
			"reference", i->image);
	}
	volumes = json_get_arr(pod, "volumes");
	for (size_t k = 0; p && k < p->n; k++) {
		/* A platform name may exceed the length of a volume name. */
		cleanup_free char *volume = xasprintf("platform-%zu", k);
		cleanup_free char *path = xasprintf(PLATFORMS "%s", p->v[k].name);
		cleanup_free char *value = xasprintf("%s=%s", p->v[k].name, path);

		json_push(json_get_arr(container, "volumeMounts"), render_mount(volume, path));
		json_push(volumes, render_named(volume, "configMap",
					   json_add_str(json_obj(), "name", p->v[k].name)));
		add_arg(args, "--platform", value);
	}
	return json_add(render_object(&(struct render_meta){.gvk = &kobj_job,
				.name = name,
				.ns = ns,
				.app = MODEL_JOB_APP,
				.take_marks = marks,
				.owner_gvk = &kobj_image,
				.owner = &i->obj}),
		"spec", spec);
}
