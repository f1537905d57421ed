/* SPDX-License-Identifier: MIT */
/*
 * The Pod template of an old Trustee: one Secret volume per Machine in its repository, all keys in
 * one projected volume, policies and reference values from ConfigMaps. No mount path is one of the
 * Rust operator's, so that its Deployments can be distinguished from ours. Refuses before sending
 * what the API server would not store.
 */
#include "config.h"

#include "tec/render/volumes.h"

#include "tec/base/bytes.h"
#include "tec/base/uuid.h"

#include "render_internal.h"

#define CONFIG        "kbs-config-v017.toml"
#define FILE_NAME_MAX 255

struct json_object *render_trustee_data_volumes(
	const struct model_cluster *c, const char *ns, const struct render_trustee_inputs *in)
{
	return render_kbs_data(CONFIG, c, ns, in);
}

const char *render_volumes_attestation_policy(const struct model_cluster *c)
{
	return render_etc(c->pcr7 == MODEL_PCR7_REQUIRE ? "tpm-v017-pcr7.rego" : "tpm-v017.rego");
}

struct json_object *render_trustee_policies_volumes(const struct model_cluster *c, const char *ns)
{
	struct json_object *o = render_frame(&kobj_configmap, "trustee-policies", ns, c, NULL);
	struct json_object *data = json_obj();

	json_add_str(data, "default_cpu.rego", render_volumes_attestation_policy(c));
	/* If it is missing, Trustee writes one, but the directory is read-only. */
	json_add_str(data, "default_gpu.rego", "");
	json_add_str(data, "resource-policy.rego", render_etc("resource-shared.rego"));
	return render_hashed(json_add(o, "data", data));
}

/* ---- volumes */

/* `optional`: a Secret deleted meanwhile must not keep the Pod from starting. */
static void add_machine(struct json_object *volumes, struct json_object *mounts, const char *id)
{
	struct json_object *source = render_secret_source(id, "root");
	cleanup_free char *path = xasprintf(RENDER_VOLUMES_REPOSITORY "/default/%s", id);

	json_add_bool(source, "optional", true);
	json_push(volumes, render_named(id, "secret", source));
	json_push(mounts, render_mount(id, path));
}

/* The verifier reads every *.pub. A longer name than a file may have would keep the Pod from
 * starting, so its hash is used instead. */
static char *key_file(const char *ak)
{
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	if (strlen(ak) + strlen(".pub") <= FILE_NAME_MAX)
		return xasprintf("%s.pub", ak);
	bytes_sha256(ak, strlen(ak), digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	return xasprintf("%s.pub", hex);
}

/* Project one key; a Secret deleted meanwhile is left out. */
static void add_key(struct json_object *sources, const char *ak)
{
	cleanup_free char *file = key_file(ak);
	struct json_object *secret = json_add_str(json_obj(), "name", ak);

	/* The name of the file must end in .pub, whatever the Secret is called. */
	json_add(secret, "items", json_push(json_arr(), render_item("public_key", file)));
	json_add_bool(secret, "optional", true);
	json_push(sources, json_add(json_obj(), "secret", secret));
}

/* Fill keys and Machines into the template, then what both ways of delivery share. */
static struct json_object *render(const struct model_cluster *c, const char *ns,
	const struct render_images *images, const struct render_trustee_inputs *in,
	const struct render_volumes *v)
{
	struct json_object *spec = render_template("trustee-deployment-v017.yaml");
	struct json_object *volumes = json_arr(), *mounts = json_arr();
	struct json_object *keys = render_element(
		json_get_arr(spec, "template/spec/volumes"), RENDER_VOLUMES_AK_VOLUME);

	for (size_t i = 0; i < v->n_aks; i++)
		add_key(json_get_arr(keys, "projected/sources"), v->aks[i]);
	for (size_t i = 0; i < v->n_machines; i++)
		add_machine(volumes, mounts, v->machines[i]);
	render_replace(spec, "MACHINES", volumes, mounts);
	return render_kbs_deployment(c, ns, images, in,
		&(struct render_pod){.config = CONFIG, .take_spec = spec, .contents = v->contents});
}

/* ---- limits */

/* Unsorted lists would give different bytes for the same content, and restart Trustee. */
static int check_list(const char *const *list, size_t n, const char *what, struct err *err)
{
	for (size_t i = 1; i < n; i++) {
		if (strcmp(list[i - 1], list[i]) >= 0)
			return err_set(err, ERR_BUG, "%s %s and %s are not in order", what,
				list[i - 1], list[i]);
	}
	return 0;
}

/* The length of the stored object, including the API server's managedFields. */
static size_t stored_len(struct json_object *o, const struct render_volumes *v)
{
	cleanup_free char *text = json_text(o);

	return strlen(text) + v->n_machines * RENDER_VOLUMES_OWNED_BYTES;
}

/* Estimate how many Machines fit, assuming the current number of keys per Machine. */
static int refuse_size(
	size_t len, size_t empty_len, const struct render_volumes *v, struct err *err)
{
	size_t n = v->n_machines ? v->n_machines : 1;
	size_t fit = (RENDER_VOLUMES_MAX_BYTES - empty_len) * n / (len - empty_len);

	return err_set(err, ERR_INVALID,
		"Trustee's Deployment would need %zu bytes with %zu Machines; the limit of the API is %d, "
		"about %zu Machines. Set spec.trustee.delivery to AdminAPI (Trustee v0.21 or later).",
		len, v->n_machines, RENDER_VOLUMES_MAX_BYTES, fit);
}

/* An empty render gives the fixed part of the size for the error message. */
struct json_object *render_trustee_deployment_volumes(const struct model_cluster *c, const char *ns,
	const struct render_images *images, const struct render_trustee_inputs *in,
	const struct render_volumes *v, struct err *err)
{
	const struct render_volumes nothing = {0};
	cleanup_json struct json_object *o = NULL, *empty = NULL;
	size_t len;

	if (check_list(v->machines, v->n_machines, "Machines", err) < 0 ||
		check_list(v->aks, v->n_aks, "AttestationKeys", err) < 0)
		return NULL;
	for (size_t i = 0; i < v->n_machines; i++) {
		/* The id becomes part of a path. */
		if (!uuid_valid(v->machines[i], strlen(v->machines[i]))) {
			err_set(err, ERR_INVALID, "Machine id %.40s is not a UUID", v->machines[i]);
			return NULL;
		}
	}
	o = render(c, ns, images, in, v);
	len = stored_len(o, v);
	if (len <= RENDER_VOLUMES_MAX_BYTES)
		return steal_ptr(&o);
	empty = render(c, ns, images, in, &nothing);
	refuse_size(len, stored_len(empty, &nothing), v, err);
	return NULL;
}
