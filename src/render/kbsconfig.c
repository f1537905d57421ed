/* SPDX-License-Identifier: MIT */
/* Renders Deployment and Service of a KbsConfig from etc/kbsconfig-deployment.yaml. */
#include "config.h"

#include "kbsconfig_internal.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/kobj/owner.h"

const struct render_kbsconfig_images render_kbsconfig_images_default = {
	.kbs = "ghcr.io/confidential-containers/staged-images/"
	       "kbs:b2442c222485b6ec5d6dee09d5a30bb561ff3622",
	.kbs_microservices = "ghcr.io/confidential-containers/key-broker-service:v0.21.0",
	.kbs_legacy = "ghcr.io/confidential-containers/key-broker-service:built-in-as-v0.11.0",
	.as = "ghcr.io/confidential-containers/staged-images/coco-as-grpc:latest",
	.rvps = "ghcr.io/confidential-containers/staged-images/rvps:latest",
	.guard = "ghcr.io/trusted-execution-clusters/tec-operator:" PACKAGE_VERSION,
};

/* ---- the hash of all inputs read at start */

/* The path tells two inputs apart that name the same object. */
static void add_hash(struct bytes_sha256_run *run, const char *what, const struct model_input *in)
{
	/* With the NUL, so that no two sequences of names hash alike. */
	bytes_sha256_add(run, what, strlen(what) + 1);
	bytes_sha256_add(run, in->obj.name, strlen(in->obj.name) + 1);
	bytes_sha256_add(run, in->sha256, sizeof(in->sha256));
}

/* Hash what Trustee reads only at start, so that a change of it rolls the Deployment out. */
static void content_hash(
	const struct model_kbsconfig *c, const struct render_kbsconfig_source *from, char hex[33])
{
	cleanup_sha256 struct bytes_sha256_run run;
	const char *at = c->caches;
	uint8_t digest[SHA256_LEN];

	bytes_sha256_init(&run);
	for (int i = 0; i < KBSCONFIG_N_INPUTS; i++) {
		const struct model_input *in = kbsconfig_input(c, from, i);

		if (in)
			add_hash(&run, model_kbsconfig_input_paths[i], in);
	}
	for (;;) {
		cleanup_free char *name = kbsconfig_line(&at, NULL);
		const struct model_input *in = kbsconfig_find(from, true, name);

		if (!name)
			break;
		if (in)
			add_hash(&run, "cache", in);
	}
	bytes_sha256_end(&run, digest);
	bytes_to_hex(digest, 16, hex);
}

/* ---- the Deployment */

/* env holds spec.KbsEnvVars as a JSON object of strings. */
static void fill_env(const struct model_kbsconfig *c, struct json_object *container)
{
	struct err err = ERR_INIT;
	cleanup_json struct json_object *env =
		c->env ? json_parse(c->env, strlen(c->env), &json_limits_object, &err) : NULL;
	struct json_object *list = json_get_arr(container, "env");

	if (!env)
		return;
	/* The model has sorted them by name. */
	json_object_object_foreach (env, name, value)
		json_push(list, json_add_str(json_add_str(json_obj(), "name", name), "value",
					json_object_get_string(value)));
}

/* Trustee before v0.21 has no /healthz: probe the port only. */
static void fill_probes(const struct kbsconfig_pod *p)
{
	static const char *const probes[] = {"readinessProbe", "livenessProbe"};

	bool has_healthz = !p->legacy && !p->file->older_admin;

	for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
		struct json_object *how = json_obj();

		if (has_healthz) {
			json_add_str(how, "path", "/healthz");
			json_add_str(how, "scheme", p->file->insecure_http ? "HTTP" : "HTTPS");
		}
		json_add_int(how, "port", p->file->port);
		json_add(json_get_obj(p->kbs, probes[i]), has_healthz ? "httpGet" : "tcpSocket",
			how);
	}
}

/* Three deployments, three images: legacy, microservices, all in one. */
static void fill_images(const struct kbsconfig_pod *p, const struct render_kbsconfig_images *images)
{
	bool apart = p->as != p->kbs;

	json_add_str(p->kbs, "image",
		p->legacy ? images->kbs_legacy
		: apart   ? images->kbs_microservices
			  : images->kbs);
	if (!apart)
		return;
	json_add_str(p->as, "image", images->as);
	json_add_str(p->rvps, "image", images->rvps);
}

/* Keep only the containers of this deployment type. Pointers in p are borrowed from spec. */
static void take_containers(struct json_object *spec, struct kbsconfig_pod *p)
{
	struct json_object *pod = json_get_obj(spec, "template/spec");
	struct json_object *all = json_get_arr(pod, "containers"), *list = json_arr();

	p->volumes = json_get_arr(pod, "volumes");
	p->kbs = p->as = p->rvps = render_element(all, "kbs");
	if (p->c->microservices) {
		p->as = render_element(all, "as");
		p->rvps = render_element(all, "rvps");
	}
	json_push(list, json_object_get(p->kbs));
	if (p->c->microservices)
		json_push(json_push(list, json_object_get(p->as)), json_object_get(p->rvps));
	/* json_add() replaces the old list, which drops unused containers. */
	json_add(pod, "containers", list);
}

/* The object's frame: owned by the KbsConfig, labelled app=kbs. */
static struct json_object *object(const struct model_kbsconfig *c, const char *ns,
	const struct kobj_gvk *gvk, const char *name)
{
	return render_object(&(struct render_meta){.gvk = gvk,
		.name = name,
		.ns = ns,
		.app = "kbs",
		.owner_gvk = &kobj_kbsconfig,
		.owner = &c->obj});
}

/* Requires KBSCONFIG_IS_INSTALLED from render_kbsconfig_check(): the configuration is present. */
struct json_object *render_kbsconfig_deployment(const struct model_kbsconfig *c, const char *ns,
	const struct render_kbsconfig_source *from, const struct render_kbsconfig_images *images)
{
	struct json_object *spec = render_template("kbsconfig-deployment.yaml");
	struct kbsconfig_pod p = {.c = c, .from = from};
	struct json_object *containers;
	char hash[33];

	p.file = &kbsconfig_input(c, from, KBSCONFIG_CONFIG)->file;
	p.legacy = render_kbsconfig_is_legacy(c, from);
	take_containers(spec, &p);
	json_add_int(spec, "replicas", c->replicas);
	json_add_int(json_object_array_get_idx(json_get_arr(p.kbs, "ports"), 0), "containerPort",
		p.file->port);
	fill_images(&p, images);
	fill_probes(&p);
	kbsconfig_mounts(&p);
	containers = json_get_arr(spec, "template/spec/containers");
	for (size_t i = 0; i < json_object_array_length(containers); i++)
		fill_env(c, json_object_array_get_idx(containers, i));
	if (c->guard)
		kbsconfig_add_guard(&p, containers, images->guard);
	content_hash(c, from, hash);
	json_add_str(
		json_get_obj(spec, "template/metadata/annotations"), RENDER_KBSCONFIG_HASH, hash);
	return render_hashed(json_add(
		object(c, ns, &kobj_deployment, RENDER_KBSCONFIG_DEPLOYMENT), "spec", spec));
}

/* With the guard, clients reach its port; Trustee listens on loopback. */
struct json_object *render_kbsconfig_service(
	const struct model_kbsconfig *c, const char *ns, const struct render_kbsconfig_source *from)
{
	const struct model_input *config = kbsconfig_input(c, from, KBSCONFIG_CONFIG);
	struct json_object *port = json_obj(), *spec = json_obj();

	json_add_str(port, "name", "kbs-port");
	/* The port that clients of the Trustee operator know. */
	json_add_int(port, "port", 8080);
	json_add_int(port, "targetPort", c->guard ? RENDER_GUARD_PORT : config->file.port);
	json_add_str(port, "protocol", "TCP");
	json_add_str(spec, "type", c->service_type);
	json_add(spec, "selector", json_add_str(json_obj(), "app", "kbs"));
	json_add(spec, "ports", json_push(json_arr(), port));
	return render_hashed(
		json_add(object(c, ns, &kobj_service, RENDER_KBSCONFIG_SERVICE), "spec", spec));
}
