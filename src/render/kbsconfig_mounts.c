/* SPDX-License-Identifier: MIT */
/*
 * The volumes of a KbsConfig's Pod, in the order of the Trustee operator. Volume names are never
 * derived from object names, which may be longer or occur twice. A mount of a single file (subPath)
 * never changes while the Pod runs; a mounted directory does.
 */
#include "config.h"

#include "kbsconfig_internal.h"

#include <string.h>

#define WRITABLE_LEGACY "/opt/confidential-containers"

/* ---- parts */

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
static void add_memory(const struct kbsconfig_pod *p, struct json_object *container,
	const char *name, const char *path)
{
	json_push(p->volumes,
		render_named(name, "emptyDir", json_add_str(json_obj(), "medium", "Memory")));
	add_mount(container, name, path, NULL, true);
}

static struct json_object *items(struct json_object *source, const char *key, const char *path)
{
	return json_add(source, "items", json_push(json_arr(), render_item(key, path)));
}

/* Add a volume with one file of a ConfigMap. */
static void add_configmap(const struct kbsconfig_pod *p, const char *volume, const char *name,
	const char *key, const char *path)
{
	json_push(p->volumes, render_named(volume, "configMap",
				      items(json_add_str(json_obj(), "name", name), key, path)));
}

/* The object of an input and the key with its file; NULL: not given. */
static const struct model_input *input(
	const struct kbsconfig_pod *p, enum model_kbsconfig_input i, const char **key)
{
	const struct model_input *in = kbsconfig_input(p->c, p->from, i);

	*key = in ? kbsconfig_key(in, p->file, p->legacy, i) : NULL;
	return in;
}

/* Mount one file at dir/path. live: mount the directory, so that it follows the ConfigMap. */
static void add_file(const struct kbsconfig_pod *p, struct json_object *container,
	enum model_kbsconfig_input i, const char *volume, const char *dir, const char *path,
	bool live)
{
	const char *key;
	const struct model_input *in = input(p, i, &key);
	cleanup_free char *at = live ? xstrdup(dir) : xasprintf("%s/%s", dir, path);

	if (!in)
		return;
	add_configmap(p, volume, in->obj.name, key, path);
	add_mount(container, volume, at, live ? NULL : path, false);
}

static char *dir_of(const char *path)
{
	return xstrndup(path, (size_t)(strrchr(path, '/') - path));
}

/* ---- Secrets */

struct named {
	struct json_object *items;
};

/* Collect a key; several settings may name the same file. */
static bool add_named(void *arg, const char *key)
{
	struct named *n = arg;

	for (size_t i = 0; i < json_object_array_length(n->items); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(n->items, i), "key"), key))
			return true;
	json_push(n->items, render_item(key, key));
	return true;
}

/* Mount a Secret at /etc/DIR with the keys that kbs-config.toml names there, and no others: the
 * Secret of a public key often contains the private key as well. whole: another file may name
 * keys, so all of them are mounted. */
static void add_secret(const struct kbsconfig_pod *p, struct json_object *container,
	enum model_kbsconfig_input i, bool whole)
{
	const char *dir = kbsconfig_etc_dir(i);
	struct named n = {json_arr()};
	struct json_object *source;
	cleanup_free char *path = xasprintf("/etc/%s", dir);

	if (kbsconfig_uses(p->c, i))
		model_kbsfile_each(p->file, dir, add_named, &n);
	if (!kbsconfig_uses(p->c, i) || (!whole && json_object_array_length(n.items) == 0)) {
		json_object_put(n.items);
		return;
	}
	source = json_add_str(json_obj(), "secretName", p->c->input[i]);
	if (whole)
		json_object_put(n.items);
	else
		json_add(source, "items", n.items);
	json_push(p->volumes, render_named(dir, "secret", source));
	add_mount(container, dir, path, NULL, false);
}

/* One volume per line of spec.kbsLocalCertCacheSpec, "SECRET<tab>DIRECTORY". */
static void add_caches(const struct kbsconfig_pod *p)
{
	const char *at = p->c->caches;

	for (unsigned i = 0;; i++) {
		char *dir;
		cleanup_free char *secret = kbsconfig_line(&at, &dir);
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
static void add_resources_legacy(const struct kbsconfig_pod *p)
{
	const char *at = p->c->resources, *top = p->file->resource_dir ? p->file->resource_dir
								       : WRITABLE_LEGACY
							 "/kbs/repository";
	cleanup_free char *dir = xasprintf("%s/default", top);

	/* A tmpfs, in which the kubelet creates one directory per Secret. */
	add_memory(p, p->kbs, "default", dir);
	for (unsigned i = 0;; i++) {
		cleanup_free char *secret = kbsconfig_line(&at, NULL);
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
static struct json_object *resource_source(const struct kbsconfig_pod *p, const char *secret)
{
	const struct model_input *in = kbsconfig_find(p->from, true, secret);
	struct json_object *list = json_arr(), *source = json_add_str(json_obj(), "name", secret);

	for (const char *at = NULL;;) {
		cleanup_free char *key = model_input_next(in, &at);
		cleanup_free char *path =
			key ? xasprintf("default\\x2F%s\\x2F%s", secret, key) : NULL;

		if (!key)
			break;
		json_push(list, render_item(key, path));
	}
	if (json_object_array_length(list) == 0) { /* without items, all keys would be projected */
		json_object_put(list);
		json_object_put(source);
		return NULL;
	}
	json_add_bool(json_add(source, "items", list), "optional", true);
	return json_add(json_obj(), "secret", source);
}

/* One projected volume for all resources; kubelet updates it while Trustee runs. */
static void add_resources(const struct kbsconfig_pod *p, const char *storage)
{
	cleanup_free char *dir = xasprintf("%s/repository", storage);
	struct json_object *sources = json_arr();
	const char *at = p->c->resources;

	for (;;) {
		cleanup_free char *secret = kbsconfig_line(&at, NULL);
		struct json_object *source = secret ? resource_source(p, secret) : NULL;

		if (!secret)
			break;
		if (source)
			json_push(sources, source);
	}
	if (json_object_array_length(sources) == 0) {
		json_object_put(sources);
		add_memory(p, p->kbs, "repository-dir", dir);
		return;
	}
	json_push(p->volumes, render_named("repository-dir", "projected",
				      json_add(json_obj(), "sources", sources)));
	add_mount(p->kbs, "repository-dir", dir, NULL, false);
}

/* ---- both layouts */

/* Project both attestation policies into one directory. */
static void add_policies_legacy(const struct kbsconfig_pod *p)
{
	cleanup_free char *dir = xasprintf("%s/opa", p->file->policy_dir ? p->file->policy_dir
									 : WRITABLE_LEGACY
							     "/attestation-service/policies");
	struct json_object *sources = json_arr();

	for (int i = KBSCONFIG_CPU_POLICY; i <= KBSCONFIG_GPU_POLICY; i++)
		if (p->c->input[i])
			json_push(
				sources, json_add(json_obj(), "configMap",
						 json_add_str(json_obj(), "name", p->c->input[i])));
	if (json_object_array_length(sources) == 0) {
		json_object_put(sources);
		return;
	}
	json_push(p->volumes, render_named("attestation-policy", "projected",
				      json_add(json_obj(), "sources", sources)));
	add_mount(p->as, "attestation-policy", dir, NULL, false);
}

/* Trustee up to v0.18: kbs-config.toml can set each path. */
static void mounts_legacy(const struct kbsconfig_pod *p)
{
	const char *policy = p->file->policy_path ? p->file->policy_path
						  : WRITABLE_LEGACY "/opa/policy.rego",
		   *values = p->file->values_path ? p->file->values_path
						  : WRITABLE_LEGACY
				     "/rvps/reference-values/reference-values.json";
	cleanup_free char *policy_dir = dir_of(policy), *values_dir = dir_of(values);

	/* Trustee's whole tree is a tmpfs; the files are mounted into it. */
	add_memory(p, p->kbs, "confidential-containers", WRITABLE_LEGACY);
	add_policies_legacy(p);
	add_file(p, p->kbs, KBSCONFIG_RESOURCE_POLICY, "resource-policy", policy_dir,
		strrchr(policy, '/') + 1, true);
	add_resources_legacy(p);
	add_file(p, p->rvps, KBSCONFIG_VALUES, "reference-values", values_dir,
		strrchr(values, '/') + 1, true);
}

/* The store must be writable, so a tmpfs is mounted with the file in it. */
static void add_values(const struct kbsconfig_pod *p, const char *storage)
{
	const struct model_input *in = kbsconfig_input(p->c, p->from, KBSCONFIG_VALUES);
	cleanup_free char *dir = p->file->values_dir ? xstrdup(p->file->values_dir)
						     : xasprintf("%s/local_json", storage);

	add_memory(p, p->rvps, "rvps-dir", dir);
	if (!in || !in->values_list) /* an empty list is the same as no file */
		add_file(p, p->rvps, KBSCONFIG_VALUES, "reference-values", dir, "reference_value",
			false);
}

/* Trustee from v0.19: everything lies below one storage directory. */
static void mounts_current(const struct kbsconfig_pod *p)
{
	const char *storage = p->file->storage_dir ? p->file->storage_dir : KBSCONFIG_STORAGE;
	cleanup_free char *as = xasprintf("%s/attestation_service_policy", storage),
			  *kbs = xasprintf("%s/kbs", storage);

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
	add_values(p, storage);
}

/* The order is part of the Pod template: a change would restart every Trustee. */
void kbsconfig_mounts(const struct kbsconfig_pod *p)
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
	add_secret(p, p->kbs, KBSCONFIG_AUTH, false);
	add_caches(p);
	add_secret(p, p->kbs, KBSCONFIG_HTTPS_KEY, false);
	add_secret(p, p->kbs, KBSCONFIG_HTTPS_CERT, false);
	/* as-config.json names the token signer's files; it is not parsed here. */
	add_secret(p, p->as, KBSCONFIG_TOKEN_KEY, apart);
	add_secret(p, p->as, KBSCONFIG_TOKEN_CERT, apart);
	/* Only separate services have configuration files of their own. */
	if (!apart)
		return;
	add_file(p, p->as, KBSCONFIG_AS_CONFIG, "as-config", "/etc/as-config", "as-config.json",
		true);
	add_file(p, p->rvps, KBSCONFIG_RVPS_CONFIG, "rvps-config", "/etc/rvps-config",
		"rvps-config.json", true);
}
