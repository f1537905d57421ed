/* SPDX-License-Identifier: MIT */
/*
 * Trustee's installation. Everything is built anew from the model and two constants' worth of
 * names; nothing is read back, so a render is the same bytes for the same cluster (its hash says
 * so). Private keys are put into their Secret's text inside the locked arena and never become a
 * json-c string. Not rendered: anything that changes with the number of Machines (it would restart
 * Trustee).
 */
#include "config.h"

#include "tec/render/trustee.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/kobj/gvk.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"
#include "tec/render/etc.h"

#define KBS_PORT     8080
#define KBS_USER     65532
#define KEYS_DIR     "/opt/trustee/keys"
#define TOKEN_DIR    "/opt/trustee/token"
#define STORAGE_DIR  "/opt/trustee/storage"
#define CONFIG_DIR   "/etc/kbs"
#define TLS_DIR      "/etc/tls"
#define POLICIES_DIR "/policies"

/*
 * Two files of a page each per Machine: 50,000 (the default machineLimit) are 400 MiB, counted as
 * the container's memory; the kernel's inodes and the server itself come on top.
 */
#define STORAGE_SIZE "512Mi"
#define MEMORY_LIMIT "1Gi"

/* Trustee: the first release with /healthz and with the [admin] section of etc/kbs-config.toml. */
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

/* apiVersion, kind, metadata. c NULL: no owner. app NULL: no label app. */
static struct json_object *frame(const struct kobj_gvk *gvk, const char *name, const char *ns,
	const struct model_cluster *c, const char *app)
{
	cleanup_strbuf struct strbuf version = STRBUF_INIT;
	struct json_object *o = json_obj(), *meta = json_obj(), *labels = json_obj();

	kobj_api_version(gvk, &version);
	json_add_str(labels, "app", app);
	json_add_str(labels, "app.kubernetes.io/managed-by", "tec-operator");
	json_add_str(meta, "name", name);
	json_add_str(meta, "namespace", ns);
	json_add(meta, "labels", labels);
	if (c)
		json_add(meta, "ownerReferences",
			json_push(json_arr(),
				kobj_owner_json(&kobj_cluster, c->obj.name, c->obj.uid)));
	json_add_str(o, "apiVersion", strbuf_str(&version));
	json_add_str(o, "kind", gvk->kind);
	return json_add(o, "metadata", meta);
}

static struct json_object *hashed(struct json_object *o)
{
	kobj_render_hash_set(o);
	return o;
}

/* ---- ConfigMaps */

/* The markers of etc/kbs-config.toml: see the head of that file. */
static void kbs_config(const struct model_cluster *c, struct strbuf *out)
{
	static const char plain[] = "#plain: ", tls[] = " #tls";
	const char *line = render_etc("kbs-config.toml");

	while (*line) {
		const char *end = strchrnul(line, '\n'), *stop = end;
		bool is_plain = strncmp(line, plain, strlen(plain)) == 0;
		bool is_tls = end - line >= (ptrdiff_t)strlen(tls) &&
			      memcmp(end - strlen(tls), tls, strlen(tls)) == 0;

		if (is_plain)
			line += strlen(plain);
		if (is_tls)
			stop -= strlen(tls);
		if (c->trustee_secret ? !is_plain : !is_tls) {
			strbuf_add(out, line, (size_t)(stop - line));
			strbuf_addc(out, '\n');
		}
		line = *end ? end + 1 : end;
	}
}

struct json_object *render_trustee_data(const struct model_cluster *c, const char *ns)
{
	cleanup_strbuf struct strbuf toml = STRBUF_INIT;
	struct json_object *o = frame(&kobj_configmap, "trustee-data", ns, c, NULL);

	kbs_config(c, &toml);
	json_add(o, "data", json_add_str(json_obj(), "kbs-config.toml", strbuf_str(&toml)));
	return hashed(o);
}

struct json_object *render_trustee_policies(const struct model_cluster *c, const char *ns)
{
	struct json_object *o = frame(&kobj_configmap, "trustee-policies", ns, c, NULL);
	struct json_object *data = json_obj();

	json_add_str(data, "default_cpu.rego", render_etc("tpm.rego"));
	json_add_str(data, "resource-policy.rego", render_etc("resource.rego"));
	return hashed(json_add(o, "data", data));
}

static struct json_object *one_file(const char *name, const char *ns, const struct model_cluster *c,
	const char *file, const char *text)
{
	struct json_object *o = frame(&kobj_configmap, name, ns, c, NULL);

	return hashed(json_add(o, "data", json_add_str(json_obj(), file, text)));
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

struct json_object *render_trustee_service(const struct model_cluster *c, const char *ns)
{
	struct json_object *o = frame(&kobj_service, "kbs-service", ns, c, NULL);
	struct json_object *port = json_obj(), *spec = json_obj();

	json_add_str(port, "name", "kbs-port");
	json_add_int(port, "port", c->trustee_port);
	json_add_int(port, "targetPort", KBS_PORT);
	json_add_str(port, "protocol", "TCP");
	json_add(spec, "selector", json_add_str(json_obj(), "app", "kbs"));
	json_add(spec, "ports", json_push(json_arr(), port));
	return hashed(json_add(o, "spec", spec));
}

/* ---- Deployment */

static struct json_object *mount(const char *name, const char *path, bool read_only)
{
	struct json_object *m = json_obj();

	json_add_str(m, "name", name);
	json_add_str(m, "mountPath", path);
	return read_only ? json_add_bool(m, "readOnly", true) : m;
}

static struct json_object *named(const char *name, const char *source, struct json_object *v)
{
	return json_add(json_add_str(json_obj(), "name", name), source, v);
}

/* fsGroup makes 0440 readable; key NULL: all of the Secret. */
static struct json_object *secret_source(const char *secret, const char *key)
{
	struct json_object *s = json_obj(), *item = NULL;

	json_add_str(s, "secretName", secret);
	json_add_int(s, "defaultMode", 0440);
	if (key) {
		item = json_add_str(json_add_str(json_obj(), "key", key), "path", key);
		json_add(s, "items", json_push(json_arr(), item));
	}
	return s;
}

static struct json_object *volumes(const struct model_cluster *c)
{
	struct json_object *a = json_arr();
	struct json_object *storage = json_obj();

	/* In memory: keys must not lie on a node's disk. */
	json_add_str(storage, "medium", "Memory");
	json_add_str(storage, "sizeLimit", STORAGE_SIZE);
	json_push(a, named("trustee-data", "configMap",
			     json_add_str(json_obj(), "name", "trustee-data")));
	json_push(a, named("trustee-policies", "configMap",
			     json_add_str(json_obj(), "name", "trustee-policies")));
	/* The private half stays out of Trustee's Pod. */
	json_push(a, named("trustee-auth", "secret", secret_source("trustee-auth", "public.pub")));
	json_push(a, named("trustee-token", "secret", secret_source("trustee-token", NULL)));
	json_push(a, named("trustee-storage", "emptyDir", storage));
	if (c->trustee_secret)
		json_push(
			a, named("trustee-tls", "secret", secret_source(c->trustee_secret, NULL)));
	return a;
}

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

static struct json_object *pod_security(void)
{
	struct json_object *s = json_obj();

	json_add_bool(s, "runAsNonRoot", true);
	json_add_int(s, "runAsUser", KBS_USER);
	json_add_int(s, "runAsGroup", KBS_USER);
	json_add_int(s, "fsGroup", KBS_USER);
	return json_add(s, "seccompProfile", json_add_str(json_obj(), "type", "RuntimeDefault"));
}

static struct json_object *probe(const struct model_cluster *c, int period_s, int failures)
{
	struct json_object *get = json_obj(), *p = json_obj();

	json_add_str(get, "path", "/healthz");
	json_add_int(get, "port", KBS_PORT);
	json_add_str(get, "scheme", c->trustee_secret ? "HTTPS" : "HTTP");
	json_add(p, "httpGet", get);
	json_add_int(p, "periodSeconds", period_s);
	json_add_int(p, "timeoutSeconds", 5);
	return json_add_int(p, "failureThreshold", failures);
}

/* Trustee writes its own open policies where it finds none: ours are there before its first start.
 */
static struct json_object *init_container(const char *image)
{
	struct json_object *c = json_obj(), *args = json_arr(), *mounts = json_arr();

	json_push_str(args, "--seed");
	json_push_str(args, POLICIES_DIR);
	json_push_str(args, STORAGE_DIR);
	json_push(mounts, mount("trustee-policies", POLICIES_DIR, true));
	json_push(mounts, mount("trustee-storage", STORAGE_DIR, false));
	json_add_str(c, "name", "seed");
	json_add_str(c, "image", image);
	json_add(c, "args", args);
	json_add(c, "volumeMounts", mounts);
	json_add(c, "resources", resources("10m", "16Mi", "500m", "64Mi"));
	return json_add(c, "securityContext", container_security());
}

static struct json_object *kbs_container(const struct model_cluster *c, const char *image)
{
	struct json_object *o = json_obj(), *cmd = json_arr(), *mounts = json_arr(),
			   *port = json_obj(), *log = json_obj();

	json_push_str(cmd, "/usr/local/bin/kbs");
	json_push_str(cmd, "--config-file");
	json_push_str(cmd, CONFIG_DIR "/kbs-config.toml");
	json_push(mounts, mount("trustee-data", CONFIG_DIR, true));
	json_push(mounts, mount("trustee-auth", KEYS_DIR, true));
	json_push(mounts, mount("trustee-token", TOKEN_DIR, true));
	json_push(mounts, mount("trustee-storage", STORAGE_DIR, false));
	if (c->trustee_secret)
		json_push(mounts, mount("trustee-tls", TLS_DIR, true));
	json_add_int(port, "containerPort", KBS_PORT);
	json_add_str(port, "protocol", "TCP");
	/* debug would log evidence */
	json_add_str(json_add_str(log, "name", "RUST_LOG"), "value", "info");
	json_add_str(o, "name", "kbs");
	json_add_str(o, "image", image);
	json_add(o, "command", cmd);
	json_add(o, "env", json_push(json_arr(), log));
	json_add(o, "ports", json_push(json_arr(), port));
	json_add(o, "volumeMounts", mounts);
	json_add(o, "startupProbe", probe(c, 2, 30));
	json_add(o, "livenessProbe", probe(c, 20, 3));
	json_add(o, "readinessProbe", probe(c, 5, 3));
	json_add(o, "resources", resources("50m", "64Mi", "2", MEMORY_LIMIT));
	return json_add(o, "securityContext", container_security());
}

struct json_object *render_trustee_deployment(
	const struct model_cluster *c, const char *ns, const struct render_images *images)
{
	struct json_object *o = frame(&kobj_deployment, "trustee-deployment", ns, c, "kbs");
	struct json_object *spec = json_obj(), *template = json_obj(), *pod = json_obj(),
			   *strategy = json_obj(), *rolling = json_obj();

	/* Never two at once: they would hold different keys behind one Service. */
	json_add_int(rolling, "maxSurge", 0);
	json_add_int(rolling, "maxUnavailable", 1);
	json_add_str(strategy, "type", "RollingUpdate");
	json_add(strategy, "rollingUpdate", rolling);
	json_add_bool(pod, "automountServiceAccountToken", false);
	json_add_bool(pod, "enableServiceLinks", false);
	json_add(pod, "securityContext", pod_security());
	json_add(pod, "initContainers", json_push(json_arr(), init_container(images->operator_)));
	json_add(pod, "containers", json_push(json_arr(), kbs_container(c, images->trustee)));
	json_add(pod, "volumes", volumes(c));
	json_add(template, "metadata",
		json_add(json_obj(), "labels", json_add_str(json_obj(), "app", "kbs")));
	json_add(template, "spec", pod);
	json_add_int(spec, "replicas", 1);
	json_add(spec, "selector",
		json_add(json_obj(), "matchLabels", json_add_str(json_obj(), "app", "kbs")));
	json_add(spec, "strategy", strategy);
	json_add(spec, "template", template);
	return hashed(json_add(o, "spec", spec));
}

/* ---- Secrets */

/* {...,"data":{NAME:<base64 of key>,NAME2:<base64 of text>}} */
static struct secret *secret_text(struct json_object *take_o, const char *key_name,
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
	strbuf_addf(&tail, "\",\"%s\":\"", text_name);
	bytes_to_b64(&tail, text, strlen(text));
	strbuf_adds(&tail, "\"}}");
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
	return secret_text(frame(&kobj_secret, "trustee-auth", ns, c, NULL), "private.key",
		private_pem, "public.pub", public_pem);
}

struct secret *render_token_secret(const struct model_cluster *c, const char *ns,
	const struct secret *key_pem, const char *cert_pem)
{
	return secret_text(frame(&kobj_secret, "trustee-token", ns, c, NULL), "key.pem", key_pem,
		"cert.pem", cert_pem);
}
