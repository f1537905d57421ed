/* SPDX-License-Identifier: MIT */
/*
 * Trustee's ConfigMaps, Services, Secrets and its Deployment. Everything is made from the model and
 * files in etc/; nothing is read back, so the same cluster gives the same bytes (its hash relies on
 * that).
 *
 * The Deployment is a template in etc/ with the cluster's values filled in, for both ways of
 * delivery. A changed Pod template restarts Trustee, so the order of its lists must not change. The
 * guard (etc/trustee-guard.yaml) is placed beside Trustee, which then listens on loopback only;
 * without it the rendered template is the same as in releases before the guard.
 */
#include "config.h"

#include "render_internal.h"

#include "tec/render/volumes.h"

#define KBS_PORT        8080
#define OLD_TOKEN_DIR   "/opt/trustee/token-old"
#define HASH_ANNOTATION "trusted-execution-clusters.io/"
#define TLS_HASH        HASH_ANNOTATION "tls-hash"
#define TOKEN_HASH      HASH_ANNOTATION "token-hash"

/* trustee: the first release with /healthz and with the [admin] section of etc/kbs-config.toml. */
const struct render_images render_images_default = {
	.trustee = "quay.io/trusted-execution-clusters/key-broker-service:v0.21.0",
	.operator_ = "ghcr.io/trusted-execution-clusters/tec-operator:" PACKAGE_VERSION,
	.compute_pcrs = "ghcr.io/trusted-execution-clusters/tec-compute-pcrs:" PACKAGE_VERSION,
};

/* ---- kbs-config.toml */

/* A marker of a line, which decides whether the line is kept (see the head of
 * etc/kbs-config.toml). */
struct marker {
	const char *text;
	bool keep;
};

/* The marker at the front or the end of [line, end); NULL: none. */
static const struct marker *find_marker(
	const struct marker *list, size_t n, bool front, const char *line, const char *end)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(list[i].text);

		if ((size_t)(end - line) >= len &&
			memcmp(front ? line : end - len, list[i].text, len) == 0)
			return &list[i];
	}
	return NULL;
}

/* Drop or keep each line by its markers, which are removed. */
static void kbs_config(
	const struct model_cluster *c, const struct render_trustee_inputs *in, struct strbuf *out)
{
	/* With the guard, Trustee serves plain http on loopback. */
	bool guarded = model_cluster_guarded(c), tls = c->trustee_secret && !guarded;
	const struct marker heads[] = {{"#plain: ", !tls}, {"#guard: ", guarded}},
			    tails[] = {{" #signers", true}, {" #tls", tls}, {" #open", !guarded}};
	const char *line = render_etc(
		c->delivery == MODEL_DELIVERY_VOLUMES ? "kbs-config-v017.toml" : "kbs-config.toml");

	while (*line) {
		const char *end = strchrnul(line, '\n');
		const struct marker *head = find_marker(heads, ARRAY_LEN(heads), true, line, end),
				    *tail = find_marker(tails, ARRAY_LEN(tails), false, line, end);

		if ((!head || head->keep) && (!tail || tail->keep)) {
			const char *from = line + (head ? strlen(head->text) : 0);
			const char *to = end - (tail ? strlen(tail->text) : 0);

			strbuf_add(out, from, (size_t)(to - from));
			/* The line ends with the list of trusted certificates, to which those of former
			 * signers are appended: "a" ] becomes "a", "b" ]. */
			if (tail == &tails[0]) {
				out->len--; /* the bracket */
				for (unsigned i = 1; i < in->n_signers; i++)
					strbuf_addf(out, ", \"" OLD_TOKEN_DIR "/%u/cert.pem\"",
						render_token_number(in->signers[i].name));
				strbuf_addc(out, ']');
			}
			strbuf_addc(out, '\n');
		}
		line = *end ? end + 1 : end;
	}
}

/* The only part of the configuration that depends on the cluster is in the markers. */
struct json_object *render_trustee_data(
	const struct model_cluster *c, const char *ns, const struct render_trustee_inputs *in)
{
	cleanup_strbuf struct strbuf toml = STRBUF_INIT;
	kbs_config(c, in, &toml);
	return render_configmap("trustee-data", ns, c,
		json_add_str(json_obj(), "kbs-config.toml", strbuf_str(&toml)));
}

/* ---- ConfigMaps */

/* The variants are generated at build time (render/etc.h). */
const char *render_trustee_attestation_policy(const struct model_cluster *c)
{
	bool pcr7 = c->pcr7 == MODEL_PCR7_REQUIRE;

	if (c->isolation == MODEL_ISOLATION_SHARED)
		return render_etc(pcr7 ? "tpm-shared-pcr7.rego" : "tpm-shared.rego");
	return render_etc(pcr7 ? "tpm-pcr7.rego" : "tpm.rego");
}

const char *render_trustee_resource_policy(const struct model_cluster *c)
{
	bool once = c->release == MODEL_RELEASE_ONCE_PER_BOOT;

	if (c->isolation == MODEL_ISOLATION_SHARED)
		return render_etc(once ? "resource-shared-once.rego" : "resource-shared.rego");
	return render_etc(once ? "resource-once.rego" : "resource.rego");
}

const char *render_trustee_volumes_policy(const struct model_cluster *c)
{
	return render_etc(c->pcr7 == MODEL_PCR7_REQUIRE ? "tpm-v017-pcr7.rego" : "tpm-v017.rego");
}

/* Keys are the file names in Trustee's storage (kbs/seed.c). */
struct json_object *render_trustee_policies(const struct model_cluster *c, const char *ns)
{
	struct json_object *data = json_obj();

	if (c->delivery == MODEL_DELIVERY_VOLUMES) {
		json_add_str(data, "default_cpu.rego", render_trustee_volumes_policy(c));
		/* If it is missing, Trustee writes one, but the directory is read-only. */
		json_add_str(data, "default_gpu.rego", "");
	} else {
		json_add_str(data, "default_cpu.rego", render_trustee_attestation_policy(c));
	}
	json_add_str(data, "resource-policy.rego", render_trustee_resource_policy(c));
	return render_configmap("trustee-policies", ns, c, data);
}

struct json_object *render_rv_data(const struct model_cluster *c, const char *ns)
{
	return render_configmap(
		"trustee-rv-data", ns, c, json_add_str(json_obj(), "reference-values.json", "[]"));
}

struct json_object *render_image_pcrs(const char *ns)
{
	return render_configmap(
		"image-pcrs", ns, NULL, json_add_str(json_obj(), "image-pcrs.json", "{}"));
}

/* ---- Service */

struct json_object *render_trustee_service(const struct model_cluster *c, const char *ns)
{
	return render_service(render_frame(&kobj_service, "kbs-service", ns, c, NULL), NULL, "kbs",
		"kbs-port", c->trustee_port, KBS_PORT);
}

struct json_object *render_trustee_admin_service(const struct model_cluster *c, const char *ns)
{
	return render_service(render_frame(&kobj_service, "kbs-admin", ns, c, NULL), NULL, "kbs",
		"kbs-admin", RENDER_TRUSTEE_ADMIN_PORT, RENDER_TRUSTEE_ADMIN_PORT);
}

/* ---- Secrets */

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

/* ---- the Deployment: volumes and mounts */

/* Replace the element `name` of o's list by those of take_others; NULL: remove it. */
static void replace(
	struct json_object *o, const char *list, const char *name, struct json_object *take_others)
{
	struct json_object *was = json_get_arr(o, list), *now = json_arr();

	for (size_t i = 0; i < json_len(was); i++) {
		struct json_object *one = json_at(was, i);

		if (str_eq(json_get_str(one, "name"), name))
			render_push_all(now, take_others);
		else
			json_push(now, json_object_get(one));
	}
	json_object_put(take_others);
	json_add(o, list, now);
}

void render_replace(struct json_object *spec, const char *name, struct json_object *take_volumes,
	struct json_object *take_mounts)
{
	struct json_object *pod = json_get_obj(spec, "template/spec");

	replace(pod, "volumes", name, take_volumes);
	replace(render_element(json_get_arr(pod, "containers"), "kbs"), "volumeMounts", name,
		take_mounts);
}

/* The signer is mounted at a fixed path whatever its Secret is called; of a former one only the
 * certificate is mounted. */
static void fill_tokens(const struct render_trustee_inputs *in, struct json_object *spec)
{
	struct json_object *volumes = json_arr(), *mounts = json_arr();
	struct json_object *signer =
		render_element(json_get_arr(spec, "template/spec/volumes"), "trustee-token");

	if (in->n_signers)
		json_add_str(json_get_obj(signer, "secret"), "secretName", in->signers[0].name);
	for (unsigned i = 1; i < in->n_signers; i++) {
		/* Numbered by Secret, so that a path keeps its meaning when another signer
		 * retires. */
		unsigned number = render_token_number(in->signers[i].name);
		cleanup_free char *name = xasprintf("trustee-token-old-%u", number);
		cleanup_free char *path = xasprintf(OLD_TOKEN_DIR "/%u", number);

		json_push(volumes, render_named(name, "secret",
					   render_secret_source(in->signers[i].name, "cert.pem")));
		json_push(mounts, render_mount(name, path));
	}
	render_replace(spec, "FORMER-TOKENS", volumes, mounts);
}

/* ---- the guard */

/* Certificate and ports move from Trustee to the guard. Trustee's probe asks the guard, because
 * the kubelet cannot reach a container's loopback. */
static void fill_guard(
	const struct model_cluster *c, const struct render_images *images, struct json_object *spec)
{
	cleanup_json struct json_object *more = render_template("trustee-guard.yaml");
	struct json_object *containers = json_get_arr(spec, "template/spec/containers");
	struct json_object *kbs = render_element(containers, "kbs");
	struct json_object *guard = json_get_obj(more, "guard");
	struct json_object *args = json_get_arr(guard, "args"), *mounts = json_arr();

	/* Without the admin API the guard's admin port stays closed. */
	if (c->delivery == MODEL_DELIVERY_ADMIN_API)
		render_push_all(args, json_get_arr(more, "admin/args"));
	if (c->trustee_secret) {
		render_push_all(args, json_get_arr(more, "tls/args"));
		json_push(mounts, render_mount("trustee-tls", "/etc/tls"));
	}
	json_add(guard, "volumeMounts", mounts);
	if (images->rate_limit) {
		cleanup_free char *rate = xasprintf("--rate-limit=%s", images->rate_limit);

		json_push_str(args, rate);
	}
	/* Trustee no longer needs the private key. */
	replace(kbs, "volumeMounts", "trustee-tls", NULL);
	render_add_guard(containers, kbs, more, images->operator_);
}

/* ---- TLS */

/* Without a Secret the template's TLS volume is removed. */
static void fill_tls(const struct model_cluster *c, struct json_object *spec)
{
	static const char *const probes[] = {
		"startupProbe/httpGet", "livenessProbe/httpGet", "readinessProbe/httpGet"};
	struct json_object *pod = json_get_obj(spec, "template/spec");
	struct json_object *kbs = render_element(json_get_arr(pod, "containers"), "kbs");

	/* The kubelet does not verify certificates, so only the scheme changes. */
	for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
		struct json_object *get = json_get_obj(kbs, probes[i]);

		if (get)
			json_add_str(get, "scheme", c->trustee_secret ? "HTTPS" : "HTTP");
	}
	if (!c->trustee_secret)
		render_replace(spec, "trustee-tls", NULL, NULL);
	else
		json_add_str(
			json_get_obj(render_element(json_get_arr(pod, "volumes"), "trustee-tls"),
				"secret"),
			"secretName", c->trustee_secret);
}

/* ---- the Pod template */

/* Each annotation restarts Trustee when its value changes. */
static void fill_annotations(const char *contents, const struct model_cluster *c,
	const struct render_trustee_inputs *in, struct json_object *annotations)
{
	cleanup_strbuf struct strbuf toml = STRBUF_INIT, tokens = STRBUF_INIT;
	bool known = in->n_signers > 0;
	char hex[SHA256_HEX_LEN + 1];

	kbs_config(c, in, &toml);
	bytes_sha256_hex(strbuf_str(&toml), toml.len, hex);
	/* 64 bits are enough to notice a change. */
	hex[16] = '\0';
	json_add_str(annotations, HASH_ANNOTATION "config-hash", hex);
	if (c->trustee_secret && !model_cluster_guarded(c)) /* the guard reloads it */
		json_add_str(annotations, TLS_HASH, in->tls_hash);
	for (unsigned i = 0; i < in->n_signers; i++) {
		known &= in->signers[i].hash != NULL;
		strbuf_addf(&tokens, "%s%s", i ? "." : "", known ? in->signers[i].hash : "");
	}
	/* An incomplete value would restart Trustee when the missing hash becomes known. */
	if (known)
		json_add_str(annotations, TOKEN_HASH, strbuf_str(&tokens));
	json_add_str(annotations, MODEL_POD_CONTENTS_ANNOTATION, contents);
}

/* Sort a directory before what is mounted inside it: a runtime that mounts in this order would
 * hide the latter, and Trustee would write its own policies there. The sort is stable, so that
 * no Pod is replaced needlessly. */
static struct json_object *parents_first(struct json_object *mounts)
{
	struct json_object *sorted = json_arr();
	size_t n = json_len(mounts);

	for (unsigned level = 0; json_len(sorted) < n; level++) {
		for (size_t i = 0; i < n; i++) {
			struct json_object *mount = json_at(mounts, i);
			const char *at = json_get_str(mount, "mountPath");
			unsigned depth = 0;

			for (; at && *at; at++)
				depth += *at == '/';
			if (depth == level)
				json_push(sorted, json_object_get(mount));
		}
	}
	return sorted;
}

/* Steps depend on each other: the guard moves what fill_tls() has set. */
struct json_object *render_kbs_deployment(const struct model_cluster *c, const char *ns,
	const struct render_images *images, const struct render_trustee_inputs *in,
	struct json_object *take_spec, const char *contents)
{
	struct json_object *o = render_frame(&kobj_deployment, "trustee-deployment", ns, c, "kbs");
	struct json_object *spec = take_spec;
	struct json_object *kbs =
		render_element(json_get_arr(spec, "template/spec/containers"), "kbs");

	json_add_str(kbs, "image", images->trustee);
	fill_tokens(in, spec);
	fill_tls(c, spec);
	if (model_cluster_guarded(c))
		fill_guard(c, images, spec);
	fill_annotations(contents, c, in, json_get_obj(spec, "template/metadata/annotations"));
	json_add(kbs, "volumeMounts", parents_first(json_get_arr(kbs, "volumeMounts")));
	return render_hashed(json_add(o, "spec", spec));
}

/* The init container "seed" is this operator's image (kbs/seed.h). */
struct json_object *render_trustee_deployment(const struct model_cluster *c, const char *ns,
	const struct render_images *images, const struct render_trustee_inputs *in)
{
	struct json_object *spec = render_template("trustee-deployment.yaml");

	json_add_str(render_element(json_get_arr(spec, "template/spec/initContainers"), "seed"),
		"image", images->operator_);
	return render_kbs_deployment(c, ns, images, in, spec, NULL);
}

/* ---- reading it back */

const char *render_trustee_tls_hash(struct json_object *deployment)
{
	return kobj_annotation(json_get_obj(deployment, "spec/template"), TLS_HASH);
}

const char *render_trustee_token_hash(struct json_object *deployment)
{
	return kobj_annotation(json_get_obj(deployment, "spec/template"), TOKEN_HASH);
}

/* ---- taking over from the Rust operator */

/* All containers are searched: the Rust operator's mounts may be in any of them. */
bool render_trustee_deployment_is_foreign(struct json_object *deployment)
{
	/* Mount paths of the Rust operator that ours never has. */
	static const char *const foreign[] = {"/opt/trustee", "/opt/trustee/policies/opa",
		"/opt/trustee/kbs-repository/default", "/key"};
	struct json_object *list = json_get_arr(deployment, "spec/template/spec/containers");

	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *mounts = json_get_arr(json_at(list, i), "volumeMounts");

		for (size_t j = 0; j < json_len(mounts); j++) {
			const char *path = json_get_str(json_at(mounts, j), "mountPath");

			for (size_t k = 0; k < ARRAY_LEN(foreign); k++)
				if (str_eq(path, foreign[k]))
					return true;
			if (path && str_starts(path, "/opt/trustee/kbs-repository/default/"))
				return true;
		}
	}
	return false;
}
