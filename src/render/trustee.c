/* SPDX-License-Identifier: MIT */
/*
 * Trustee's ConfigMaps, Services and Secrets. Everything is made from the model and files in etc/;
 * nothing is read back, so the same cluster gives the same bytes (its hash relies on that). Private
 * keys are written into their Secret's text inside the locked arena and never become a json-c
 * string.
 */
#include "config.h"

#include "render_internal.h"

#include <assert.h>

#include "tec/base/yaml.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"
#include "tec/render/etc.h"

#define KBS_PORT 8080

/* trustee: the first release with /healthz and with the [admin] section of etc/kbs-config.toml. */
const struct render_images render_images_default = {
	.trustee = "quay.io/trusted-execution-clusters/key-broker-service:v0.21.0",
	.operator_ = "ghcr.io/trusted-execution-clusters/tec-operator:" PACKAGE_VERSION,
	.compute_pcrs = "ghcr.io/trusted-execution-clusters/tec-compute-pcrs:" PACKAGE_VERSION,
};

const char *render_etc(const char *file_name)
{
	for (const struct render_etc_file *f = render_etc_files; f->name; f++) {
		if (str_eq(f->name, file_name))
			return f->text;
	}
	return NULL;
}

/* A template is parsed as YAML once and kept as JSON, which takes a sixth of the time to parse. */
struct json_object *render_template(const char *file)
{
	static struct known {
		const char *yaml; /* borrowed; NULL: free */
		char *json;       /* owned, never freed */
	} known[16];
	struct known *k = known;
	const char *yaml = render_etc(file);
	struct err err = ERR_INIT;
	struct json_object *o;

	/* Texts are static, so their addresses identify them. */
	while (k->yaml && k->yaml != yaml)
		k++;
	assert(k < known + ARRAY_LEN(known) - 1);
	o = k->json ? json_parse(k->json, strlen(k->json), &json_limits_object, &err)
		    : yaml_parse(yaml, strlen(yaml), &err);
	if (!o)
		DIE("etc/%s: %s", file, err.text);
	if (!k->json)
		k->json = json_text(o);
	k->yaml = yaml;
	return o;
}

/* Owner references make the garbage collector delete what a deleted owner leaves. */
struct json_object *render_object(const struct render_meta *m)
{
	cleanup_strbuf struct strbuf version = STRBUF_INIT;
	struct json_object *o = json_obj(), *meta = json_obj(), *labels = json_obj();

	kobj_api_version(m->gvk, &version);
	/* Services and NetworkPolicies select by this label. */
	json_add_str(labels, "app", m->app);
	json_add_str(labels, "app.kubernetes.io/managed-by", "tec-operator");
	json_add_str(meta, "name", m->name);
	json_add_str(meta, "namespace", m->ns);
	json_add(meta, "labels", labels);
	if (m->take_marks)
		json_add(meta, "annotations", m->take_marks);
	if (m->owner)
		json_add(meta, "ownerReferences",
			json_push(json_arr(),
				kobj_owner_json(m->owner_gvk, m->owner->name, m->owner->uid)));
	json_add_str(o, "apiVersion", strbuf_str(&version));
	json_add_str(o, "kind", m->gvk->kind);
	return json_add(o, "metadata", meta);
}

struct json_object *render_frame(const struct kobj_gvk *gvk, const char *name, const char *ns,
	const struct model_cluster *c, const char *app)
{
	return render_object(&(struct render_meta){.gvk = gvk,
		.name = name,
		.ns = ns,
		.app = app,
		.owner_gvk = &kobj_cluster,
		.owner = c ? &c->obj : NULL});
}

/* The hash lets a controller skip the request if nothing changed. */
struct json_object *render_hashed(struct json_object *take_o)
{
	kobj_render_hash_set(take_o);
	return take_o;
}

/* ---- ConfigMaps */

struct json_object *render_trustee_data(
	const struct model_cluster *c, const char *ns, const struct render_trustee_inputs *in)
{
	return render_kbs_data("kbs-config.toml", c, ns, in);
}

/* The variants with PCR 7 are generated at build time (render/etc.h). */
const char *render_trustee_attestation_policy(const struct model_cluster *c)
{
	bool pcr7 = c->pcr7 == MODEL_PCR7_REQUIRE;

	if (c->isolation == MODEL_ISOLATION_SHARED)
		return render_etc(pcr7 ? "tpm-shared-pcr7.rego" : "tpm-shared.rego");
	return render_etc(pcr7 ? "tpm-pcr7.rego" : "tpm.rego");
}

const char *render_trustee_resource_policy(const struct model_cluster *c)
{
	return render_etc(
		c->isolation == MODEL_ISOLATION_SHARED ? "resource-shared.rego" : "resource.rego");
}

/* Keys are the file names in Trustee's storage (kbs/seed.c). */
struct json_object *render_trustee_policies(const struct model_cluster *c, const char *ns)
{
	struct json_object *o = render_frame(&kobj_configmap, "trustee-policies", ns, c, NULL);
	struct json_object *data = json_obj();

	json_add_str(data, "default_cpu.rego", render_trustee_attestation_policy(c));
	json_add_str(data, "resource-policy.rego", render_trustee_resource_policy(c));
	return render_hashed(json_add(o, "data", data));
}

static struct json_object *one_file(const char *name, const char *ns, const struct model_cluster *c,
	const char *file, const char *text)
{
	struct json_object *o = render_frame(&kobj_configmap, name, ns, c, NULL);

	return render_hashed(json_add(o, "data", json_add_str(json_obj(), file, text)));
}

struct json_object *render_rv_data(const struct model_cluster *c, const char *ns)
{
	return one_file("trustee-rv-data", ns, c, "reference-values.json", "[]");
}

struct json_object *render_image_pcrs(const char *ns)
{
	return one_file("image-pcrs", ns, NULL, "image-pcrs.json", "{}");
}

/* ---- Service */

/* type NULL is omitted: the API server's default applies and a user's choice is kept. */
struct json_object *render_service(const struct model_cluster *c, const char *ns, const char *name,
	const char *type, const char *app, const char *port_name, int port, int target)
{
	struct json_object *o = render_frame(&kobj_service, name, ns, c, NULL);
	struct json_object *p = json_obj(), *spec = json_obj();

	json_add_str(p, "name", port_name);
	json_add_int(p, "port", port);
	json_add_int(p, "targetPort", target);
	json_add_str(p, "protocol", "TCP");
	json_add_str(spec, "type", type);
	json_add(spec, "selector", json_add_str(json_obj(), "app", app));
	json_add(spec, "ports", json_push(json_arr(), p));
	return render_hashed(json_add(o, "spec", spec));
}

struct json_object *render_trustee_service(const struct model_cluster *c, const char *ns)
{
	return render_service(
		c, ns, "kbs-service", NULL, "kbs", "kbs-port", c->trustee_port, KBS_PORT);
}

struct json_object *render_trustee_admin_service(const struct model_cluster *c, const char *ns)
{
	return render_service(c, ns, "kbs-admin", NULL, "kbs", "kbs-admin",
		RENDER_TRUSTEE_ADMIN_PORT, RENDER_TRUSTEE_ADMIN_PORT);
}

/* ---- Secrets */

/* Write the JSON by hand: json-c would copy the key into ordinary memory. */
struct secret *render_secret_text(struct json_object *take_o, const char *key_name,
	const struct secret *key, const char *text_name, const char *text)
{
	cleanup_json struct json_object *o = take_o;
	cleanup_secret struct secret *b64 = secret_to_b64(key);
	cleanup_strbuf struct strbuf head = STRBUF_INIT, tail = STRBUF_INIT;
	cleanup_free char *json = NULL;
	struct secret *s;
	uint8_t *p;

	json_add_str(o, "type", "Opaque");
	json = json_text(o);
	strbuf_add(&head, json, strlen(json) - 1); /* all but the last brace */
	strbuf_addf(&head, ",\"data\":{\"%s\":\"", key_name);
	if (text_name) {
		strbuf_addf(&tail, "\",\"%s\":\"", text_name);
		bytes_to_b64(&tail, text, strlen(text));
	}
	strbuf_adds(&tail, "\"}}");
	/* Sized exactly: a growing buffer would leave copies of the key behind. */
	s = secret_new(head.len + secret_len(b64) + tail.len);
	p = secret_bytes(s);
	memcpy(p, head.data, head.len);
	memcpy(p + head.len, secret_peek(b64), secret_len(b64));
	memcpy(p + head.len + secret_len(b64), tail.data, tail.len);
	return s;
}

struct secret *render_auth_secret(const struct model_cluster *c, const char *ns,
	const struct secret *private_pem, const char *public_pem)
{
	return render_secret_text(render_frame(&kobj_secret, "trustee-auth", ns, c, NULL),
		"private.key", private_pem, "public.pub", public_pem);
}

struct secret *render_token_secret(const struct model_cluster *c, const char *ns, const char *name,
	const struct secret *key_pem, const char *cert_pem)
{
	return render_secret_text(render_frame(&kobj_secret, name, ns, c, NULL), "key.pem", key_pem,
		"cert.pem", cert_pem);
}
