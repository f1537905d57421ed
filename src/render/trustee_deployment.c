/* SPDX-License-Identifier: MIT */
/*
 * Trustee's Deployment, for delivery by the admin API, and what the one of delivery by volumes
 * shares with it. The Pod template changes only with what a running Trustee would not notice:
 * config, certificates, signer, image. Not rendered: anything that changes with the number of
 * Machines (it would restart Trustee); render/volumes.c has to.
 */
#include "config.h"

#include "tec/render/volumes.h"

#include "render_internal.h"

#include <stdio.h>

#define KBS_PORT        8080
#define KBS_USER        65532
#define KEYS_DIR        "/opt/trustee/keys"
#define TOKEN_DIR       "/opt/trustee/token"
#define OLD_TOKEN_DIR   "/opt/trustee/token-old"
#define CONFIG_DIR      "/etc/kbs"
#define POLICIES_DIR    "/policies"
#define HASH_ANNOTATION "trusted-execution-clusters.io/"
#define TLS_HASH        HASH_ANNOTATION "tls-hash"
#define TOKEN_HASH      HASH_ANNOTATION "token-hash"

/*
 * Two files of a page each per Machine: 50,000 (the default machineLimit) are 400 MiB, counted as
 * the container's memory; the kernel's inodes and the server itself come on top.
 */
#define STORAGE_SIZE "512Mi"
#define MEMORY_LIMIT "1Gi"

/* ---- kbs-config.toml */

/* "a" ] -> "a", "b" ]: the certificates of former signers. */
static void add_signers(struct strbuf *out, const struct render_trustee_inputs *in)
{
	out->len--; /* the bracket */
	for (unsigned i = 1; i < in->n_signers; i++)
		strbuf_addf(out, ", \"" OLD_TOKEN_DIR "/%u/cert.pem\"",
			render_token_number(in->signers[i].name));
	strbuf_addc(out, ']');
}

static bool marked(const char *line, const char *end, const char *marker)
{
	size_t n = strlen(marker);

	return (size_t)(end - line) >= n && memcmp(end - n, marker, n) == 0;
}

void render_kbs_config(const char *file, const struct model_cluster *c,
	const struct render_trustee_inputs *in, struct strbuf *out)
{
	static const char plain[] = "#plain: ", tls[] = " #tls", signers[] = " #signers";
	const char *line = render_etc(file);

	while (*line) {
		const char *end = strchrnul(line, '\n'), *stop = end;
		bool is_plain = strncmp(line, plain, strlen(plain)) == 0;
		bool is_tls = marked(line, end, tls), is_signers = marked(line, end, signers);

		if (is_plain)
			line += strlen(plain);
		if (is_tls)
			stop -= strlen(tls);
		if (is_signers)
			stop -= strlen(signers);
		if (c->trustee_secret ? !is_plain : !is_tls) {
			strbuf_add(out, line, (size_t)(stop - line));
			if (is_signers)
				add_signers(out, in);
			strbuf_addc(out, '\n');
		}
		line = *end ? end + 1 : end;
	}
}

struct json_object *render_kbs_data(const char *file, const struct model_cluster *c, const char *ns,
	const struct render_trustee_inputs *in)
{
	cleanup_strbuf struct strbuf toml = STRBUF_INIT;
	struct json_object *o = render_frame(&kobj_configmap, "trustee-data", ns, c, NULL);

	render_kbs_config(file, c, in, &toml);
	json_add(o, "data", json_add_str(json_obj(), "kbs-config.toml", strbuf_str(&toml)));
	return render_hashed(o);
}

/* ---- volumes */

struct json_object *render_mount(const char *name, const char *path, bool read_only)
{
	struct json_object *m = json_obj();

	json_add_str(m, "name", name);
	json_add_str(m, "mountPath", path);
	return read_only ? json_add_bool(m, "readOnly", true) : m;
}

struct json_object *render_named(const char *name, const char *source, struct json_object *take_v)
{
	return json_add(json_add_str(json_obj(), "name", name), source, take_v);
}

struct json_object *render_item(const char *key, const char *path)
{
	return json_add_str(json_add_str(json_obj(), "key", key), "path", path);
}

struct json_object *render_secret_source(const char *secret, const char *key)
{
	struct json_object *s = json_obj();

	json_add_str(s, "secretName", secret);
	json_add_int(s, "defaultMode", 0440);
	return key ? json_add(s, "items", json_push(json_arr(), render_item(key, key))) : s;
}

struct json_object *render_config_map_source(const char *config_map)
{
	return json_add_str(json_obj(), "name", config_map);
}

/* The signer at one place whatever its Secret is called; of a former one only the certificate. */
static void add_tokens(const struct render_trustee_inputs *in, struct json_object *volumes,
	struct json_object *mounts)
{
	const char *signer = in->n_signers ? in->signers[0].name : "trustee-token";

	json_push(volumes,
		render_named("trustee-token", "secret", render_secret_source(signer, NULL)));
	json_push(mounts, render_mount("trustee-token", TOKEN_DIR, true));
	for (unsigned i = 1; i < in->n_signers; i++) {
		unsigned number = render_token_number(in->signers[i].name);
		cleanup_free char *name = xasprintf("trustee-token-old-%u", number);
		cleanup_free char *path = xasprintf(OLD_TOKEN_DIR "/%u", number);

		json_push(volumes, render_named(name, "secret",
					   render_secret_source(in->signers[i].name, "cert.pem")));
		json_push(mounts, render_mount(name, path, true));
	}
}

static void add_common(const struct model_cluster *c, const struct render_trustee_inputs *in,
	struct json_object *volumes, struct json_object *mounts)
{
	struct json_object *storage = json_obj();

	/* In memory: keys must not lie on a node's disk. */
	json_add_str(storage, "medium", "Memory");
	json_add_str(storage, "sizeLimit", STORAGE_SIZE);
	json_push(volumes, render_named("trustee-data", "configMap",
				   render_config_map_source("trustee-data")));
	json_push(mounts, render_mount("trustee-data", CONFIG_DIR, true));
	json_push(volumes, render_named("trustee-storage", "emptyDir", storage));
	json_push(mounts, render_mount("trustee-storage", RENDER_STORAGE_DIR, false));
	add_tokens(in, volumes, mounts);
	if (!c->trustee_secret)
		return;
	json_push(volumes, render_named("trustee-tls", "secret",
				   render_secret_source(c->trustee_secret, NULL)));
	json_push(mounts, render_mount("trustee-tls", RENDER_TLS_DIR, true));
}

/* ---- containers */

static struct json_object *resources(
	const char *cpu, const char *memory, const char *cpu_limit, const char *memory_limit)
{
	struct json_object *requests = json_obj(), *limits = json_obj();

	json_add_str(requests, "cpu", cpu);
	json_add_str(requests, "memory", memory);
	json_add_str(limits, "cpu", cpu_limit);
	json_add_str(limits, "memory", memory_limit);
	return json_add(json_add(json_obj(), "requests", requests), "limits", limits);
}

static struct json_object *container_security(void)
{
	struct json_object *s = json_obj();

	json_add_bool(s, "allowPrivilegeEscalation", false);
	json_add_bool(s, "readOnlyRootFilesystem", true);
	return json_add(
		s, "capabilities", json_add(json_obj(), "drop", json_push_str(json_arr(), "ALL")));
}

struct json_object *render_container(const char *name, const char *image, const char *cpu,
	const char *memory, const char *cpu_limit, const char *memory_limit)
{
	struct json_object *o = json_obj();

	json_add_str(o, "name", name);
	json_add_str(o, "image", image);
	json_add(o, "resources", resources(cpu, memory, cpu_limit, memory_limit));
	return json_add(o, "securityContext", container_security());
}

static struct json_object *pod_security(void)
{
	struct json_object *s = json_obj();

	json_add_bool(s, "runAsNonRoot", true);
	json_add_int(s, "runAsUser", KBS_USER);
	json_add_int(s, "runAsGroup", KBS_USER);
	json_add_int(s, "fsGroup", KBS_USER);
	return json_add(s, "seccompProfile", json_add_str(json_obj(), "type", "RuntimeDefault"));
}

static struct json_object *probe(
	const struct model_cluster *c, bool has_healthz, int period_s, int failures)
{
	struct json_object *get = json_obj(), *p = json_obj();

	json_add_int(get, "port", KBS_PORT);
	if (has_healthz) {
		json_add_str(get, "path", "/healthz");
		json_add_str(get, "scheme", c->trustee_secret ? "HTTPS" : "HTTP");
	}
	json_add(p, has_healthz ? "httpGet" : "tcpSocket", get);
	json_add_int(p, "periodSeconds", period_s);
	json_add_int(p, "timeoutSeconds", 5);
	return json_add_int(p, "failureThreshold", failures);
}

/* Trustee writes its own open policies where it finds none: ours are there before its first start.
 */
static struct json_object *init_container(const char *image)
{
	struct json_object *c = render_container("seed", image, "10m", "16Mi", "500m", "64Mi");
	struct json_object *args = json_arr(), *mounts = json_arr();

	json_push_str(args, "--seed");
	json_push_str(args, POLICIES_DIR);
	json_push_str(args, RENDER_STORAGE_DIR);
	json_push(mounts, render_mount("trustee-policies", POLICIES_DIR, true));
	json_push(mounts, render_mount("trustee-storage", RENDER_STORAGE_DIR, false));
	json_add(c, "args", args);
	return json_add(c, "volumeMounts", mounts);
}

static struct json_object *kbs_container(const struct model_cluster *c, const char *image,
	bool has_healthz, struct json_object *take_mounts)
{
	struct json_object *o = render_container("kbs", image, "50m", "64Mi", "2", MEMORY_LIMIT);
	struct json_object *cmd = json_arr(), *port = json_obj(), *log = json_obj();

	json_push_str(cmd, "/usr/local/bin/kbs");
	json_push_str(cmd, "--config-file");
	json_push_str(cmd, CONFIG_DIR "/kbs-config.toml");
	json_add_int(port, "containerPort", KBS_PORT);
	json_add_str(port, "protocol", "TCP");
	/* debug would log evidence */
	json_add_str(json_add_str(log, "name", "RUST_LOG"), "value", "info");
	json_add(o, "command", cmd);
	json_add(o, "env", json_push(json_arr(), log));
	json_add(o, "ports", json_push(json_arr(), port));
	json_add(o, "volumeMounts", take_mounts);
	json_add(o, "startupProbe", probe(c, has_healthz, 2, 30));
	json_add(o, "livenessProbe", probe(c, has_healthz, 20, 3));
	return json_add(o, "readinessProbe", probe(c, has_healthz, 5, 3));
}

/* ---- the Pod template */

/* One value of all signers' hashes; nothing when one is not known. */
static void add_token_hash(const struct render_trustee_inputs *in, struct json_object *annotations)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	for (unsigned i = 0; i < in->n_signers; i++) {
		if (!in->signers[i].hash)
			return;
		strbuf_addf(&text, "%s%s", i ? "." : "", in->signers[i].hash);
	}
	if (in->n_signers)
		json_add_str(annotations, TOKEN_HASH, strbuf_str(&text));
}

static struct json_object *template_meta(const struct render_pod *p, const struct model_cluster *c,
	const struct render_trustee_inputs *in)
{
	cleanup_strbuf struct strbuf toml = STRBUF_INIT;
	struct json_object *annotations = json_obj(), *meta = json_obj();
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	render_kbs_config(p->config, c, in, &toml);
	bytes_sha256(strbuf_str(&toml), toml.len, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	hex[16] = '\0';
	json_add_str(annotations, HASH_ANNOTATION "config-hash", hex);
	if (c->trustee_secret)
		json_add_str(annotations, TLS_HASH, in->tls_hash);
	add_token_hash(in, annotations);
	json_add_str(annotations, MODEL_POD_CONTENTS_ANNOTATION, p->contents);
	json_add(meta, "labels", json_add_str(json_obj(), "app", "kbs"));
	return json_add(meta, "annotations", annotations);
}

static unsigned depth(struct json_object *mount)
{
	unsigned n = 0;

	for (const char *at = json_get_str(mount, "mountPath"); at && *at; at++)
		n += *at == '/';
	return n;
}

/* A folder before what is mounted inside it: a runtime that mounts in this order would hide the
 * latter, and Trustee would write its own policies there. Otherwise the order stays, so that no Pod
 * is replaced for it. */
static struct json_object *parents_first(struct json_object *take_mounts)
{
	struct json_object *sorted = json_arr();
	size_t n = json_object_array_length(take_mounts);

	for (unsigned level = 0; json_object_array_length(sorted) < n; level++) {
		for (size_t i = 0; i < n; i++) {
			struct json_object *mount = json_object_array_get_idx(take_mounts, i);

			if (depth(mount) == level)
				json_push(sorted, json_object_get(mount));
		}
	}
	json_object_put(take_mounts);
	return sorted;
}

struct json_object *render_kbs_deployment(const struct model_cluster *c, const char *ns,
	const char *image, const struct render_trustee_inputs *in, const struct render_pod *p)
{
	struct json_object *o = render_frame(&kobj_deployment, "trustee-deployment", ns, c, "kbs");
	struct json_object *spec = json_obj(), *template = json_obj(), *pod = json_obj(),
			   *strategy = json_obj(), *rolling = json_obj();

	add_common(c, in, p->take_volumes, p->take_mounts);
	/* Never two at once: they would hold different keys behind one Service. */
	json_add_int(rolling, "maxSurge", 0);
	json_add_int(rolling, "maxUnavailable", 1);
	json_add_str(strategy, "type", "RollingUpdate");
	json_add(strategy, "rollingUpdate", rolling);
	json_add_bool(pod, "automountServiceAccountToken", false);
	json_add_bool(pod, "enableServiceLinks", false);
	json_add(pod, "securityContext", pod_security());
	if (p->take_init)
		json_add(pod, "initContainers", json_push(json_arr(), p->take_init));
	json_add(pod, "containers",
		json_push(json_arr(),
			kbs_container(c, image, p->has_healthz, parents_first(p->take_mounts))));
	json_add(pod, "volumes", p->take_volumes);
	json_add(template, "metadata", template_meta(p, c, in));
	json_add(template, "spec", pod);
	json_add_int(spec, "replicas", 1);
	json_add(spec, "selector",
		json_add(json_obj(), "matchLabels", json_add_str(json_obj(), "app", "kbs")));
	json_add(spec, "strategy", strategy);
	json_add(spec, "template", template);
	return render_hashed(json_add(o, "spec", spec));
}

struct json_object *render_trustee_deployment(const struct model_cluster *c, const char *ns,
	const struct render_images *images, const struct render_trustee_inputs *in)
{
	struct json_object *volumes = json_arr(), *mounts = json_arr();

	json_push(volumes, render_named("trustee-policies", "configMap",
				   render_config_map_source("trustee-policies")));
	/* The private half stays out of Trustee's Pod. */
	json_push(volumes, render_named("trustee-auth", "secret",
				   render_secret_source("trustee-auth", "public.pub")));
	json_push(mounts, render_mount("trustee-auth", KEYS_DIR, true));
	return render_kbs_deployment(c, ns, images->trustee, in,
		&(struct render_pod){.config = "kbs-config.toml",
			.take_init = init_container(images->operator_),
			.take_mounts = mounts,
			.take_volumes = volumes,
			.has_healthz = true});
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

/* ---- taking over */

static bool foreign_path(const char *path)
{
	return str_eq(path, "/opt/trustee") || str_eq(path, "/opt/trustee/policies/opa") ||
	       str_eq(path, "/opt/trustee/kbs-repository/default") ||
	       (path && str_starts(path, "/opt/trustee/kbs-repository/default/")) ||
	       str_eq(path, "/key");
}

bool render_trustee_deployment_is_foreign(struct json_object *deployment)
{
	struct json_object *list = json_get_arr(deployment, "spec/template/spec/containers");

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *mounts =
			json_get_arr(json_object_array_get_idx(list, i), "volumeMounts");

		for (size_t j = 0; mounts && j < json_object_array_length(mounts); j++) {
			if (foreign_path(json_get_str(
				    json_object_array_get_idx(mounts, j), "mountPath")))
				return true;
		}
	}
	return false;
}
