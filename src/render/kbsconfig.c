/* SPDX-License-Identifier: MIT */
/*
 * Renders Deployment and Service of a KbsConfig from etc/kbsconfig-deployment.yaml, and checks the
 * objects that it names: the first problem is reported as a message for people.
 *
 * Volumes are in the order of the Trustee operator. Their names are never derived from object
 * names, which may be longer or occur twice. A mount of a single file (subPath) never changes while
 * the Pod runs; a mounted directory does.
 *
 * The guard in the Pod is enabled by an annotation: it serves port 8080 and terminates TLS with the
 * Secrets in spec; Trustee serves plain HTTP on loopback, as its kbs-config.toml must say.
 */
#include "config.h"

#include "tec/render/kbsconfig.h"

#include <string.h>

#include "render_internal.h"
#include "tec/base/bytes.h"
#include "tec/kobj/owner.h"
#include "tec/model/plain.h"

#define STORAGE         "/opt/confidential-containers/storage"
#define WRITABLE_LEGACY "/opt/confidential-containers"
#define KEYS_MAX        3
/* The kubelet cannot create a file with a longer name, and the Pod would not start. */
#define FILE_NAME_MAX 255

/* What is rendered, with its kbs-config.toml. kbs, as, rvps: the Pod's containers; equal pointers if
 * there is only one. */
struct pod {
	const struct model_kbsconfig *c;
	const struct render_kbsconfig_source *from;
	const struct model_kbsfile *file; /* without a readable one: no settings */
	bool legacy;
	struct json_object *volumes, *seed, *kbs, *as, *rvps; /* borrowed */
};

/* ---- what it names */

/* The object of this name; NULL: name is NULL or the object does not exist. */
static const struct model_input *find_object(
	const struct render_kbsconfig_source *from, bool secret, const char *name)
{
	return name ? model_input(from->find(from->arg, secret, name)) : NULL;
}

/* A key without its certificate (or the reverse) is ignored. */
static bool uses(const struct model_kbsconfig *c, enum model_kbsconfig_input i)
{
	if (i == KBSCONFIG_HTTPS_KEY || i == KBSCONFIG_HTTPS_CERT)
		return c->input[KBSCONFIG_HTTPS_KEY] && c->input[KBSCONFIG_HTTPS_CERT];
	if (i == KBSCONFIG_TOKEN_KEY || i == KBSCONFIG_TOKEN_CERT)
		return c->input[KBSCONFIG_TOKEN_KEY] && c->input[KBSCONFIG_TOKEN_CERT];
	if (i == KBSCONFIG_AS_CONFIG || i == KBSCONFIG_RVPS_CONFIG)
		return c->microservices && c->input[i];
	return c->input[i] != NULL;
}

static const struct model_input *input_of(const struct model_kbsconfig *c,
	const struct render_kbsconfig_source *from, enum model_kbsconfig_input i)
{
	return uses(c, i) ? find_object(from, model_kbsconfig_is_secret(i), c->input[i]) : NULL;
}

/* Mount points below /etc, to which kbs-config.toml refers. */
static const char *const etc_dirs[KBSCONFIG_N_INPUTS] = {
	[KBSCONFIG_AUTH] = "auth-secret",
	[KBSCONFIG_HTTPS_KEY] = "https-key",
	[KBSCONFIG_HTTPS_CERT] = "https-cert",
	[KBSCONFIG_TOKEN_KEY] = "attestation-key",
	[KBSCONFIG_TOKEN_CERT] = "attestation-cert",
};

static struct pod pod_of(
	const struct model_kbsconfig *c, const struct render_kbsconfig_source *from)
{
	static const struct model_kbsfile none;
	const struct model_input *config = input_of(c, from, KBSCONFIG_CONFIG);

	return (struct pod){.c = c,
		.from = from,
		.file = config ? &config->file : &none,
		.legacy = c->layout ? str_eq(c->layout, "legacy") : config && config->file.legacy};
}

bool render_kbsconfig_has_older_admin(
	const struct model_kbsconfig *c, const struct render_kbsconfig_source *from)
{
	struct pod p = pod_of(c, from);

	return p.file->older_admin && !p.legacy;
}

/* The first key of the ConfigMap that its file may have, preferred first; NULL: it has none. *wanted
 * is the one to ask for. A legacy configuration may name its own. */
static const char *file_key(const struct pod *p, const struct model_input *in,
	enum model_kbsconfig_input i, const char **wanted)
{
	static const char *const keys[KBSCONFIG_AUTH][KEYS_MAX] = {
		[KBSCONFIG_CONFIG] = {MODEL_KBSFILE_KEY},
		[KBSCONFIG_AS_CONFIG] = {"as-config.json"},
		[KBSCONFIG_RVPS_CONFIG] = {"rvps-config.json"},
		[KBSCONFIG_VALUES] = {"reference_value", "reference-values.json"},
		[KBSCONFIG_CPU_POLICY] = {"default_cpu.rego", "default.rego"},
		[KBSCONFIG_GPU_POLICY] = {"default_gpu.rego"},
		[KBSCONFIG_RESOURCE_POLICY] = {"resource-policy.rego", "policy.rego"},
		[KBSCONFIG_QCNL] = {"sgx_default_qcnl.conf"},
	};
	const char *path = !p->legacy                       ? NULL
			   : i == KBSCONFIG_VALUES          ? p->file->values_path
			   : i == KBSCONFIG_RESOURCE_POLICY ? p->file->policy_path
							    : NULL;
	const char *own = path ? strrchr(path, '/') + 1 : NULL;

	*wanted = own ? own : keys[i][0];
	if (own && model_input_has(in, own))
		return own;
	for (size_t k = 0; k < KEYS_MAX && keys[i][k]; k++)
		if (model_input_has(in, keys[i][k]))
			return keys[i][k];
	return NULL;
}

/* The next item of a list, which the model keeps as text, one item per line. It is cut at a tab;
 * *rest is the text after the tab. The caller frees. NULL: the end. */
static char *next_line(const char **at, char **rest)
{
	const char *end = *at ? strchrnul(*at, '\n') : NULL;
	char *line, *tab;

	if (!end || end == *at)
		return NULL;
	line = xstrndup(*at, (size_t)(end - *at));
	*at = *end ? end + 1 : end;
	tab = strchr(line, '\t');
	if (tab)
		*tab = '\0';
	if (rest)
		*rest = tab ? tab + 1 : NULL;
	return line;
}

/* ---- volumes: parts */

/* Read-only unless Trustee writes there. */
static void add_mount(struct json_object *container, const char *volume, const char *path,
	const char *sub_path, bool writable)
{
	struct json_object *m = json_add_str(json_obj(), "name", volume);

	json_add_str(json_add_str(m, "mountPath", path), "subPath", sub_path);
	if (!writable)
		json_add_bool(m, "readOnly", true);
	json_push(json_get_arr(container, "volumeMounts"), m);
}

/* A tmpfs: what Trustee writes there must not reach the node's disk. */
static void add_memory(
	const struct pod *p, struct json_object *container, const char *name, const char *path)
{
	json_push(p->volumes,
		render_named(name, "emptyDir", json_add_str(json_obj(), "medium", "Memory")));
	add_mount(container, name, path, NULL, true);
}

/* Mount one file at dir/path. live: mount the directory, so that it follows the ConfigMap. */
static void add_file(const struct pod *p, struct json_object *container,
	enum model_kbsconfig_input i, const char *volume, const char *dir, const char *path,
	bool live)
{
	const struct model_input *in = input_of(p->c, p->from, i);
	cleanup_free char *at = live ? xstrdup(dir) : xasprintf("%s/%s", dir, path);
	struct json_object *source;
	const char *wanted;

	if (!in)
		return;
	source = json_add_str(json_obj(), "name", in->obj.name);
	json_add(source, "items",
		json_push(json_arr(), render_item(file_key(p, in, i, &wanted), path)));
	json_push(p->volumes, render_named(volume, "configMap", source));
	add_mount(container, volume, at, live ? NULL : path, false);
}

static char *dir_of(const char *path)
{
	return xstrndup(path, (size_t)(strrchr(path, '/') - path));
}

/* ---- Secrets */

/* Collect a key; several settings may name the same file. */
static bool add_named(void *arg, const char *key)
{
	struct json_object *items = arg;

	for (size_t i = 0; i < json_len(items); i++)
		if (str_eq(json_get_str(json_at(items, i), "key"), key))
			return true;
	json_push(items, render_item(key, key));
	return true;
}

/* With separate services, as-config.json names keys of these Secrets; it is not parsed here. */
static bool is_whole(const struct pod *p, enum model_kbsconfig_input i)
{
	return p->c->microservices && (i == KBSCONFIG_TOKEN_KEY || i == KBSCONFIG_TOKEN_CERT);
}

/* Mount a Secret at /etc/DIR with the keys that kbs-config.toml names there, and no others: the
 * Secret of a public key often contains the private key as well. The container of the attestation
 * service gets all keys, in a volume of its own. */
static void add_secret(
	const struct pod *p, struct json_object *container, enum model_kbsconfig_input i)
{
	bool whole = is_whole(p, i) && container == p->as;
	cleanup_json struct json_object *items = json_arr();
	cleanup_free char *path = xasprintf("/etc/%s", etc_dirs[i]);
	cleanup_free char *volume =
		xasprintf("%s%s", is_whole(p, i) && !whole ? "kbs-" : "", etc_dirs[i]);
	struct json_object *source;

	if (!uses(p->c, i))
		return;
	model_kbsfile_each(p->file, etc_dirs[i], add_named, items);
	if (!whole && json_len(items) == 0)
		return;
	source = json_add_str(json_obj(), "secretName", p->c->input[i]);
	if (!whole)
		json_add(source, "items", steal_ptr(&items));
	json_push(p->volumes, render_named(volume, "secret", source));
	add_mount(container, volume, path, NULL, false);
}

/* Mount what the sources project. False: there are none, and nothing is mounted. */
static bool add_projected(const struct pod *p, struct json_object *container, const char *volume,
	const char *path, struct json_object *take_sources)
{
	if (json_len(take_sources) == 0) {
		json_object_put(take_sources);
		return false;
	}
	json_push(p->volumes,
		render_named(volume, "projected", json_add(json_obj(), "sources", take_sources)));
	add_mount(container, volume, path, NULL, false);
	return true;
}

/* One volume per line of spec.kbsLocalCertCacheSpec, "SECRET<tab>DIRECTORY". */
static void add_caches(const struct pod *p)
{
	const char *at = p->c->caches;

	for (unsigned i = 0;; i++) {
		char *dir;
		cleanup_free char *secret = next_line(&at, &dir);
		cleanup_free char *volume = xasprintf("vcek-%u", i);

		if (!secret)
			return;
		json_push(p->volumes, render_named(volume, "secret",
					      json_add_str(json_obj(), "secretName", secret)));
		add_mount(p->as, volume, dir, NULL, false);
	}
}

/* ---- resources */

/* Mount each Secret as a directory default/SECRET below resource_dir. `optional` lets the Pod
 * start if one is deleted meanwhile. */
static void add_resources_legacy(const struct pod *p)
{
	const char *at = p->c->resources, *top = p->file->resource_dir ? p->file->resource_dir
								       : WRITABLE_LEGACY
							 "/kbs/repository";
	cleanup_free char *dir = xasprintf("%s/default", top);

	/* A tmpfs, in which the kubelet creates one directory per Secret. */
	add_memory(p, p->kbs, "default", dir);
	for (unsigned i = 0;; i++) {
		cleanup_free char *secret = next_line(&at, NULL);
		cleanup_free char *volume = xasprintf("resource-%u", i);
		cleanup_free char *path = secret ? xasprintf("%s/%s", dir, secret) : NULL;

		if (!secret)
			return;
		json_push(p->volumes,
			render_named(volume, "secret",
				json_add_bool(json_add_str(json_obj(), "secretName", secret),
					"optional", true)));
		add_mount(p->kbs, volume, path, NULL, false);
	}
}

/* Project the keys of one Secret as files "default\x2FSECRET\x2FKEY": LocalFs encodes a slash
 * like that. */
static struct json_object *resource_source(const struct pod *p, const char *secret)
{
	const struct model_input *in = find_object(p->from, true, secret);
	struct json_object *list = json_arr(), *source = json_add_str(json_obj(), "name", secret);

	for (const char *at = NULL;;) {
		cleanup_free char *key = model_input_next(in, &at);
		cleanup_free char *path =
			key ? xasprintf("default\\x2F%s\\x2F%s", secret, key) : NULL;

		if (!key)
			break;
		json_push(list, render_item(key, path));
	}
	if (json_len(list) == 0) { /* without items, all keys would be projected */
		json_object_put(list);
		json_object_put(source);
		return NULL;
	}
	json_add_bool(json_add(source, "items", list), "optional", true);
	return json_add(json_obj(), "secret", source);
}

static bool is_writable(const struct pod *p)
{
	return str_eq(p->c->writable, "true");
}

/* One projected volume for all resources; kubelet updates it while Trustee runs. A writable
 * repository is a copy of it. */
static void add_resources(const struct pod *p, const char *storage)
{
	cleanup_free char *dir = xasprintf("%s/repository", storage);
	struct json_object *sources = json_arr();
	const char *at = p->c->resources;

	for (;;) {
		cleanup_free char *secret = next_line(&at, NULL);
		struct json_object *source = secret ? resource_source(p, secret) : NULL;

		if (!secret)
			break;
		if (source)
			json_push(sources, source);
	}
	if (!is_writable(p)) {
		if (!add_projected(p, p->kbs, "repository-dir", dir, sources))
			add_memory(p, p->kbs, "repository-dir", dir);
		return;
	}
	add_memory(p, p->kbs, "repository-dir", dir);
	if (add_projected(p, p->seed, "resources", "/resources", sources))
		add_mount(p->seed, "repository-dir", "/repository", NULL, true);
}

/* ---- both layouts */

/* Trustee up to v0.18: kbs-config.toml can set each path. */
static void mounts_legacy(const struct pod *p)
{
	const char *policy = p->file->policy_path ? p->file->policy_path
						  : WRITABLE_LEGACY "/opa/policy.rego",
		   *values = p->file->values_path ? p->file->values_path
						  : WRITABLE_LEGACY
				     "/rvps/reference-values/reference-values.json";
	cleanup_free char *policy_dir = dir_of(policy), *values_dir = dir_of(values),
			  *policies_dir =
				  xasprintf("%s/opa", p->file->policy_dir ? p->file->policy_dir
									  : WRITABLE_LEGACY
							      "/attestation-service/policies");
	struct json_object *policies = json_arr();

	/* Trustee's whole tree is a tmpfs; the files are mounted into it. */
	add_memory(p, p->kbs, "confidential-containers", WRITABLE_LEGACY);
	/* Both attestation policies are projected into one directory. */
	for (int i = KBSCONFIG_CPU_POLICY; i <= KBSCONFIG_GPU_POLICY; i++)
		if (p->c->input[i])
			json_push(policies,
				json_add(json_obj(), "configMap",
					json_add_str(json_obj(), "name", p->c->input[i])));
	(void)add_projected(p, p->as, "attestation-policy", policies_dir, policies);
	add_file(p, p->kbs, KBSCONFIG_RESOURCE_POLICY, "resource-policy", policy_dir,
		strrchr(policy, '/') + 1, true);
	add_resources_legacy(p);
	add_file(p, p->rvps, KBSCONFIG_VALUES, "reference-values", values_dir,
		strrchr(values, '/') + 1, true);
}

/* Trustee from v0.19: everything lies below one storage directory. */
static void mounts_current(const struct pod *p)
{
	const char *storage = p->file->storage_dir ? p->file->storage_dir : STORAGE;
	const struct model_input *values = input_of(p->c, p->from, KBSCONFIG_VALUES);
	cleanup_free char *as = xasprintf("%s/attestation_service_policy", storage),
			  *kbs = xasprintf("%s/kbs", storage),
			  *values_dir = p->file->values_dir ? xstrdup(p->file->values_dir)
							    : xasprintf("%s/local_json", storage);

	/* Parents before what is mounted inside them. */
	add_memory(p, p->kbs, "base-storage-dir", storage);
	add_memory(p, p->as, "attestation-policy-dir", as);
	add_file(p, p->as, KBSCONFIG_CPU_POLICY, "attestation-policy", as, "default_cpu.rego",
		false);
	add_file(p, p->as, KBSCONFIG_GPU_POLICY, "attestation-policy-gpu", as, "default_gpu.rego",
		false);
	add_memory(p, p->kbs, "resource-policy-dir", kbs);
	add_file(p, p->kbs, KBSCONFIG_RESOURCE_POLICY, "resource-policy", kbs,
		"resource-policy.rego", false);
	add_resources(p, storage);
	/* The store must be writable, so a tmpfs is mounted with the file in it. */
	add_memory(p, p->rvps, "rvps-dir", values_dir);
	if (!values || !values->values_list) /* an empty list is the same as no file */
		add_file(p, p->rvps, KBSCONFIG_VALUES, "reference-values", values_dir,
			"reference_value", false);
}

/* The order is part of the Pod template: a change would restart every Trustee. */
static void add_volumes(const struct pod *p)
{
	bool apart = p->as != p->kbs;

	add_file(p, p->kbs, KBSCONFIG_CONFIG, "kbs-config", "/etc/kbs-config", MODEL_KBSFILE_KEY,
		true);
	if (p->legacy)
		mounts_legacy(p);
	else
		mounts_current(p);
	add_file(p, p->as, KBSCONFIG_QCNL, "qcnl", "/etc", "sgx_default_qcnl.conf", false);
	if (p->c->pvc) {
		json_push(p->volumes, render_named("ibmse", "persistentVolumeClaim",
					      json_add_str(json_obj(), "claimName", p->c->pvc)));
		add_mount(p->as, "ibmse", "/run/confidential-containers/ibmse/", NULL, true);
	}
	add_secret(p, p->kbs, KBSCONFIG_AUTH);
	add_caches(p);
	add_secret(p, p->kbs, KBSCONFIG_HTTPS_KEY);
	add_secret(p, p->kbs, KBSCONFIG_HTTPS_CERT);
	add_secret(p, p->as, KBSCONFIG_TOKEN_KEY);
	add_secret(p, p->as, KBSCONFIG_TOKEN_CERT);
	if (!apart)
		return;
	/* kbs verifies tokens with the certificate. */
	add_secret(p, p->kbs, KBSCONFIG_TOKEN_KEY);
	add_secret(p, p->kbs, KBSCONFIG_TOKEN_CERT);
	/* Only separate services have configuration files of their own. */
	add_file(p, p->as, KBSCONFIG_AS_CONFIG, "as-config", "/etc/as-config", "as-config.json",
		true);
	add_file(p, p->rvps, KBSCONFIG_RVPS_CONFIG, "rvps-config", "/etc/rvps-config",
		"rvps-config.json", true);
}

/* ---- the guard */

/* Names of the private key and the certificate in a Secret: those of cert-manager, of a
 * TrusteeConfig and of the walkthrough. */
static const char *const guard_keys[2][3] = {
	{"tls.key", "privateKey", "https.key"},
	{"tls.crt", "certificate", "https.crt"},
};

static const char *tls_key(const struct model_input *in, bool certificate)
{
	for (size_t i = 0; i < ARRAY_LEN(guard_keys[0]); i++)
		if (model_input_has(in, guard_keys[certificate][i]))
			return guard_keys[certificate][i];
	return NULL;
}

/* Whether the Secret has the private key or certificate under one of the accepted names. */
static bool has_tls_key(const struct pod *p, bool certificate, struct strbuf *why)
{
	const struct model_input *in =
		input_of(p->c, p->from, certificate ? KBSCONFIG_HTTPS_CERT : KBSCONFIG_HTTPS_KEY);
	const char *const *names = guard_keys[certificate];

	if (!in || tls_key(in, certificate))
		return true;
	strbuf_addf(why, "Secret %s has none of the keys %s, %s, %s. Add one for the guard.",
		in->obj.name, names[0], names[1], names[2]);
	return false;
}

/* A Trustee reachable beside the guard would make the guard pointless. */
static bool guard_fits(const struct pod *p, struct strbuf *why)
{
	const struct model_kbsfile *f = p->file;
	const char *guard = p->c->guard;

	if (!guard)
		return true;
	if (!str_eq(guard, "tpm") && !str_eq(guard, "tpm+sample"))
		strbuf_adds(why, "Annotation " MODEL_KBSCONFIG_GUARD
				 " is neither tpm nor tpm+sample. Correct or remove it.");
	else if (p->legacy)
		strbuf_adds(why,
			"The guard does not support the protocol of Trustee up to v0.18. Remove annotation " MODEL_KBSCONFIG_GUARD
			".");
	else if (!f->insecure_http || !f->loopback || f->port == RENDER_GUARD_PORT ||
		 f->port == RENDER_GUARD_HEALTH_PORT)
		strbuf_adds(why,
			"With the guard, Trustee must listen on loopback only: set http_server.sockets in kbs-config.toml to [\"127.0.0.1:8081\"] and http_server.insecure_http to true.");
	else
		return has_tls_key(p, false, why) && has_tls_key(p, true, why);
	return false;
}

/* Mount the certificate at /etc/tls; the guard reloads it when it changes. */
static void add_tls(const struct pod *p, struct json_object *more)
{
	const struct model_input *key = input_of(p->c, p->from, KBSCONFIG_HTTPS_KEY),
				 *cert = input_of(p->c, p->from, KBSCONFIG_HTTPS_CERT);
	struct json_object *guard = json_get_obj(more, "guard"), *sources = json_arr();

	if (!key || !cert) {
		json_object_put(sources);
		return;
	}
	for (int i = 0; i < 2; i++) {
		/* Each key under the name that the guard expects. */
		const struct model_input *in = i ? cert : key;
		struct json_object *one = json_add_str(json_obj(), "name", in->obj.name);

		json_add(one, "items",
			json_push(json_arr(), render_item(tls_key(in, i), guard_keys[i][0])));
		json_push(sources, json_add(json_obj(), "secret", one));
	}
	json_push(p->volumes,
		render_named("guard-tls", "projected", json_add(json_obj(), "sources", sources)));
	json_push(json_get_arr(guard, "volumeMounts"), render_mount("guard-tls", "/etc/tls"));
	render_push_all(json_get_arr(guard, "args"), json_get_arr(more, "tls/args"));
}

/* Element 1 of args is the upstream in etc/trustee-guard.yaml; replaced by the port of this
 * Trustee. */
static void add_guard(const struct pod *p, struct json_object *containers, const char *image)
{
	cleanup_json struct json_object *more = render_template("trustee-guard.yaml");
	struct json_object *args = json_get_arr(more, "guard/args");
	cleanup_free char *upstream = xasprintf("--upstream=http://127.0.0.1:%u", p->file->port),
			  *tee = xasprintf("--tee=%s", p->c->guard);

	json_object_array_put_idx(args, 1, json_object_new_string(upstream));
	json_push(args, json_object_new_string(tee));
	add_tls(p, more);
	render_add_guard(containers, p->kbs, more, image);
}

/* ---- what is missing or wrong */

/* Whether the object exists and can be read; otherwise explain. */
static bool is_there(
	const struct pod *p, bool secret, const char *name, const char *path, struct strbuf *why)
{
	const struct model_input *in = model_input(p->from->find(p->from->arg, secret, name));

	if (in && !in->obj.unreadable)
		return true;
	strbuf_addf(why, "%s %s, which ", secret ? "Secret" : "ConfigMap", name);
	model_plain_field(why, path);
	strbuf_adds(why,
		in ? " names, is too large to be read." : " names, does not exist. Create it.");
	return false;
}

/* The Secret whose keys are looked for. */
struct named {
	const struct model_input *in;
	const char *dir;
	struct strbuf *why;
};

/* Called for each key that kbs-config.toml names as a file of this Secret. */
static bool has_named_key(void *arg, const char *key)
{
	const struct named *n = arg;

	if (model_input_has(n->in, key))
		return true;
	strbuf_addf(n->why,
		"Secret %s has no key %s, which kbs-config.toml names as /etc/%s/%s. Add it.",
		n->in->obj.name, key, n->dir, key);
	return false;
}

/* A Secret needs only the keys that kbs-config.toml names; a ConfigMap one that its file may have,
 * but the legacy CPU policy is mounted whole. */
static bool input_is_there(const struct pod *p, int i, struct strbuf *why)
{
	bool secret = model_kbsconfig_is_secret(i);
	struct named n = {.dir = etc_dirs[i], .why = why};
	const char *wanted;

	if (!uses(p->c, i))
		return true;
	if (!is_there(p, secret, p->c->input[i], model_kbsconfig_input_paths[i], why))
		return false;
	n.in = find_object(p->from, secret, p->c->input[i]);
	if (secret)
		return model_kbsfile_each(p->file, n.dir, has_named_key, &n);
	if ((p->legacy && i == KBSCONFIG_CPU_POLICY) || file_key(p, n.in, i, &wanted))
		return true;
	strbuf_addf(why, "ConfigMap %s has no key %s. Add it.", n.in->obj.name, wanted);
	return false;
}

/* Check the Secrets in spec.kbsSecretResources and spec.kbsLocalCertCacheSpec. */
static bool lists_are_there(const struct pod *p, struct strbuf *why)
{
	const char *at[2] = {p->c->resources, p->c->caches};

	for (int i = 0; i < 2; i++) {
		for (;;) {
			cleanup_free char *name = next_line(&at[i], NULL);

			if (!name)
				break;
			if (!is_there(p, true, name,
				    i ? "kbsLocalCertCacheSpec" : "kbsSecretResources", why))
				return false;
		}
	}
	return true;
}

/* Check the file name default\x2FSECRET\x2FKEY of each resource. */
static void check_names(const struct pod *p, struct strbuf *why)
{
	const char *at = p->c->resources;

	for (;;) {
		cleanup_free char *secret = next_line(&at, NULL);
		const struct model_input *in = find_object(p->from, true, secret);

		if (!secret)
			return;
		for (const char *next = NULL; in;) {
			cleanup_free char *key = model_input_next(in, &next);

			if (!key)
				break;
			if (strlen("default\\x2F\\x2F") + strlen(secret) + strlen(key) <=
				FILE_NAME_MAX)
				continue;
			strbuf_addf(why,
				"Key %s of Secret %s cannot be a file name in Trustee: both names together exceed 240 characters. Use shorter names.",
				key, secret);
			return;
		}
	}
}

/* Whether all inputs are valid and consistent with each other; otherwise explain. */
static bool fits(const struct pod *p, struct strbuf *why)
{
	const struct model_input *values = input_of(p->c, p->from, KBSCONFIG_VALUES);
	const char *layout = p->c->layout;

	if (p->c->problem)
		strbuf_addf(why, "%s. Correct it.", p->c->problem);
	else if (layout && !str_eq(layout, "legacy") && !str_eq(layout, "current"))
		strbuf_adds(why, "Annotation " MODEL_KBSCONFIG_LAYOUT
				 " is neither legacy nor current. Correct or remove it.");
	else if (p->c->writable && !is_writable(p) && !str_eq(p->c->writable, "false"))
		strbuf_adds(why, "Annotation " MODEL_KBSCONFIG_WRITABLE
				 " is neither true nor false. Correct or remove it.");
	else if (is_writable(p) && p->legacy)
		strbuf_adds(why, "Annotation " MODEL_KBSCONFIG_WRITABLE
				 " is for the current layout only. Remove it.");
	else if (p->file->why)
		strbuf_addf(why, "%s of ConfigMap %s cannot be used: %s. Correct it.",
			MODEL_KBSFILE_KEY, p->c->input[KBSCONFIG_CONFIG], p->file->why);
	else if (!p->legacy && values && values->values_list && !values->values_empty)
		strbuf_addf(why,
			"ConfigMap %s contains a list of reference values, the format of Trustee up to v0.18. Use an object that maps names to values.",
			values->obj.name);
	else if (!p->legacy)
		check_names(p, why);
	return why->len == 0 && guard_fits(p, why);
}

/* Report what the user must change in the KbsConfig first, then missing objects, then their
 * content. */
enum model_kbsconfig_reason render_kbsconfig_check(const struct model_kbsconfig *c,
	const struct render_kbsconfig_source *from, struct strbuf *why)
{
	struct pod p = pod_of(c, from);

	if (!c->input[KBSCONFIG_CONFIG] && !c->problem) {
		strbuf_adds(why,
			"spec.kbsConfigMapName is missing. Set it to the name of a ConfigMap with kbs-config.toml.");
		return KBSCONFIG_INPUT_INVALID;
	}
	/* An invalid spec is reported before anything that is missing. */
	if (c->problem && !fits(&p, why))
		return KBSCONFIG_INPUT_INVALID;
	/* The separate services read configuration files of their own. */
	for (int i = KBSCONFIG_AS_CONFIG; c->microservices && i <= KBSCONFIG_RVPS_CONFIG; i++) {
		if (c->input[i])
			continue;
		strbuf_addf(why, "MicroservicesDeployment requires spec.%s. Set it.",
			model_kbsconfig_input_paths[i]);
		return KBSCONFIG_INPUT_INVALID;
	}
	for (int i = 0; i < KBSCONFIG_N_INPUTS; i++)
		if (!input_is_there(&p, i, why))
			return KBSCONFIG_INPUT_MISSING;
	if (!lists_are_there(&p, why))
		return KBSCONFIG_INPUT_MISSING;
	return fits(&p, why) ? KBSCONFIG_IS_INSTALLED : KBSCONFIG_INPUT_INVALID;
}

const struct render_kbsconfig_images render_kbsconfig_images_default = {
	.kbs = "ghcr.io/confidential-containers/staged-images/"
	       "kbs:b2442c222485b6ec5d6dee09d5a30bb561ff3622",
	.kbs_microservices = "ghcr.io/confidential-containers/key-broker-service:v0.21.0",
	.kbs_legacy = "ghcr.io/confidential-containers/key-broker-service:built-in-as-v0.11.0",
	.kbs_v0_18 = "ghcr.io/confidential-containers/key-broker-service:built-in-as-v0.18.0",
	.kbs_v0_20 = "ghcr.io/confidential-containers/key-broker-service:built-in-as-v0.20.0",
	.as = "ghcr.io/confidential-containers/staged-images/coco-as-grpc:latest",
	.rvps = "ghcr.io/confidential-containers/staged-images/rvps:latest",
	.operator_ = "ghcr.io/trusted-execution-clusters/tec-operator:" PACKAGE_VERSION,
};

/* ---- the hash of all inputs read at start */

/* Names are hashed with their NUL, so that no two sequences of names hash alike. */
static void add_hash(struct bytes_sha256_run *run, const char *what, const struct model_input *in)
{
	if (!in)
		return;
	bytes_sha256_add(run, what, strlen(what) + 1);
	bytes_sha256_add(run, in->obj.name, strlen(in->obj.name) + 1);
	bytes_sha256_add(run, in->sha256, sizeof(in->sha256));
}

struct hashed {
	struct bytes_sha256_run *run;
	const char *what;
	const struct model_input *in;
};

/* Called for each key of a Secret that kbs-config.toml names: only these are in the Pod. */
static bool add_key(void *arg, const char *key)
{
	const struct hashed *h = arg;
	const char *sum = h->in ? model_input_sum(h->in, key) : NULL;

	if (!sum)
		return true;
	bytes_sha256_add(h->run, h->what, strlen(h->what) + 1);
	bytes_sha256_add(h->run, key, strlen(key) + 1);
	bytes_sha256_add(h->run, sum, MODEL_INPUT_SUM_LEN);
	return true;
}

/* Hash the Secrets of a list that the model keeps as text. */
static void add_list(
	struct bytes_sha256_run *run, const struct pod *p, const char *what, const char *at)
{
	for (;;) {
		cleanup_free char *name = next_line(&at, NULL);

		if (!name)
			return;
		add_hash(run, what, find_object(p->from, true, name));
	}
}

/* Hash what Trustee reads only at start, so that a change of it rolls the Deployment out. The path
 * tells two inputs apart that name the same object. */
static void content_hash(const struct pod *p, char hex[33])
{
	cleanup_sha256 struct bytes_sha256_run run;
	uint8_t digest[SHA256_LEN];

	bytes_sha256_init(&run);
	for (int i = 0; i < KBSCONFIG_N_INPUTS; i++) {
		struct hashed h = {
			&run, model_kbsconfig_input_paths[i], input_of(p->c, p->from, i)};

		if (model_kbsconfig_is_secret(i) && !is_whole(p, i))
			model_kbsfile_each(p->file, etc_dirs[i], add_key, &h);
		else
			add_hash(&run, h.what, h.in);
	}
	add_list(&run, p, "cache", p->c->caches);
	if (is_writable(p)) /* copied at the start */
		add_list(&run, p, "resource", p->c->resources);
	bytes_sha256_end(&run, digest);
	bytes_to_hex(digest, 16, hex);
}

/* ---- the images */

/* The newest Trustee that reads the file. One without admin.type can be for v0.15, too, but clients
 * speak to the Trustee of their time only, and such files are used with v0.11. */
static const struct reader {
	const char *name; /* in MODEL_KEPT_IMAGES */
	size_t image;     /* of its kbs: offset in the images */
} readers[] = {
	{"v0.11", offsetof(struct render_kbsconfig_images, kbs_legacy)},
	{"v0.18", offsetof(struct render_kbsconfig_images, kbs_v0_18)},
	{"microservices", offsetof(struct render_kbsconfig_images, kbs_microservices)},
	{"v0.20", offsetof(struct render_kbsconfig_images, kbs_v0_20)},
	{"current", offsetof(struct render_kbsconfig_images, kbs)},
};

static const struct reader *reader_of(const struct pod *p)
{
	if (p->legacy)
		return &readers[p->file->admin_type];
	return &readers[p->c->microservices ? 2 : p->file->older_admin ? 3 : 4];
}

char *render_kbsconfig_kept(const struct model_kbsconfig *c,
	const struct render_kbsconfig_source *from, struct json_object *deployment)
{
	struct json_object *containers = json_get_arr(deployment, "spec/template/spec/containers");
	const struct pod p = pod_of(c, from);
	cleanup_strbuf struct strbuf kept = STRBUF_INIT;

	strbuf_adds(&kept, reader_of(&p)->name);
	for (size_t i = 0; i < json_len(containers); i++) {
		const char *name = json_get_str(json_at(containers, i), "name");
		const char *image = json_get_str(json_at(containers, i), "image");

		if (name && image)
			strbuf_addf(&kept, " %s=%s", name, image);
	}
	return strbuf_steal(&kept);
}

/* The container's image: the one that is kept for this reader, or else this one. */
static void set_image(
	const struct pod *p, struct json_object *container, const char *kept, const char *image)
{
	cleanup_free char *reader = xasprintf("%s ", reader_of(p)->name);
	cleanup_free char *at = xasprintf(" %s=", json_get_str(container, "name"));
	const char *found = kept && str_starts(kept, reader) ? strstr(kept, at) : NULL;
	cleanup_free char *own = NULL;

	if (found)
		own = xstrndup(found + strlen(at), strcspn(found + strlen(at), " "));
	json_add_str(container, "image", own ? own : image);
}

/* ---- the Deployment */

/* Trustee before v0.21 has no /healthz: probe the port only. */
static void fill_probes(const struct pod *p)
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

/* Keep only the containers of this deployment type. Pointers in p are borrowed from spec. */
static void take_containers(struct json_object *spec, struct pod *p)
{
	struct json_object *pod = json_get_obj(spec, "template/spec");
	struct json_object *all = json_get_arr(pod, "containers"), *list = json_arr();

	p->volumes = json_get_arr(pod, "volumes");
	p->seed = render_element(json_get_arr(pod, "initContainers"), "seed");
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
	struct pod p = pod_of(c, from);
	struct err err = ERR_INIT;
	cleanup_json struct json_object *env =
		c->env ? json_parse(c->env, strlen(c->env), &json_limits_object, &err) : NULL;
	struct json_object *containers;
	const char *image;
	char hash[33];

	take_containers(spec, &p);
	json_add_int(spec, "replicas", c->replicas);
	json_add_int(json_at(json_get_arr(p.kbs, "ports"), 0), "containerPort", p.file->port);
	memcpy(&image, (const char *)images + reader_of(&p)->image, sizeof(image));
	set_image(&p, p.kbs, images->kept, image);
	if (c->microservices) {
		set_image(&p, p.as, images->kept, images->as);
		set_image(&p, p.rvps, images->kept, images->rvps);
	}
	fill_probes(&p);
	add_volumes(&p);
	containers = json_get_arr(spec, "template/spec/containers");
	/* spec.KbsEnvVars: a JSON object of strings, which the model has sorted by name. */
	for (size_t i = 0; i < json_len(containers); i++) {
		struct json_object *list = json_get_arr(json_at(containers, i), "env");

		json_each (env, name, value)
			json_push(list, json_add_str(json_add_str(json_obj(), "name", name),
						"value", json_object_get_string(value)));
	}
	json_add_str(p.seed, "image", images->operator_);
	if (json_len(json_get_arr(p.seed, "volumeMounts")) == 0)
		json_object_object_del(json_get_obj(spec, "template/spec"), "initContainers");
	if (c->guard)
		add_guard(&p, containers, images->operator_);
	content_hash(&p, hash);
	json_add_str(
		json_get_obj(spec, "template/metadata/annotations"), RENDER_KBSCONFIG_HASH, hash);
	return render_hashed(json_add(
		object(c, ns, &kobj_deployment, RENDER_KBSCONFIG_DEPLOYMENT), "spec", spec));
}

/* With the guard, clients reach its port; Trustee listens on loopback. */
struct json_object *render_kbsconfig_service(
	const struct model_kbsconfig *c, const char *ns, const struct render_kbsconfig_source *from)
{
	const struct model_input *config = input_of(c, from, KBSCONFIG_CONFIG);
	/* The port that clients of the Trustee operator know. */
	return render_service(object(c, ns, &kobj_service, RENDER_KBSCONFIG_SERVICE),
		c->service_type, "kbs", "kbs-port", 8080,
		c->guard ? RENDER_GUARD_PORT : config->file.port);
}
