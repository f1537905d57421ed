/* SPDX-License-Identifier: MIT */
/*
 * The Pod template of an old Trustee: one Secret volume per Machine in its repository, all keys in
 * one projected volume, policies and reference values from ConfigMaps. No mount path is one of the
 * Rust operator's, so that its Deployments can be distinguished from ours. Refuses before sending
 * what the API server would not store.
 *
 * A Deployment is read back into lists: a Secret volume that has the name of its Secret and is a
 * UUID is a Machine's; the sources of trusted-ak-keys are keys. Anything added by others is
 * skipped.
 */
#include "config.h"

#include "tec/render/volumes.h"

#include "tec/base/bytes.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"

#include "render_internal.h"

#define FILE_NAME_MAX 255

/* ---- volumes */

/* Fill keys and Machines into the template, then what both ways of delivery share. */
static struct json_object *render(const struct model_cluster *c, const char *ns,
	const struct render_images *images, const struct render_trustee_inputs *in,
	const struct render_volumes *v)
{
	struct json_object *spec = render_template("trustee-deployment-v017.yaml");
	struct json_object *volumes = json_arr(), *mounts = json_arr();
	char hex[SHA256_HEX_LEN + 1];
	struct json_object *keys = render_element(
		json_get_arr(spec, "template/spec/volumes"), RENDER_VOLUMES_AK_VOLUME);

	/* `optional`: a Secret deleted meanwhile must not keep the Pod from starting. */
	for (size_t i = 0; i < v->aks.n; i++) {
		const char *ak = v->aks.v[i];
		struct json_object *secret = json_add_str(json_obj(), "name", ak);
		bool fits = strlen(ak) + strlen(".pub") <= FILE_NAME_MAX;
		cleanup_free char *file = NULL;

		/* The verifier reads every *.pub, whatever the Secret is called. A longer name than
		 * a file may have would keep the Pod from starting. */
		if (!fits)
			bytes_sha256_hex(ak, strlen(ak), hex);
		file = xasprintf("%s.pub", fits ? ak : hex);
		json_add(secret, "items", json_push(json_arr(), render_item("public_key", file)));
		json_add_bool(secret, "optional", true);
		json_push(json_get_arr(keys, "projected/sources"),
			json_add(json_obj(), "secret", secret));
	}
	for (size_t i = 0; i < v->machines.n; i++) {
		const char *id = v->machines.v[i];
		struct json_object *source = render_secret_source(id, "root");
		cleanup_free char *path = xasprintf(RENDER_VOLUMES_REPOSITORY "/default/%s", id);

		json_add_bool(source, "optional", true);
		json_push(volumes, render_named(id, "secret", source));
		json_push(mounts, render_mount(id, path));
	}
	render_replace(spec, "MACHINES", volumes, mounts);
	return render_kbs_deployment(c, ns, images, in, spec, v->contents);
}

/* ---- limits */

/* Unsorted lists would give different bytes for the same content, and restart Trustee. */
static int check_list(const struct render_names *l, const char *what, struct err *err)
{
	for (size_t i = 1; i < l->n; i++)
		if (strcmp(l->v[i - 1], l->v[i]) >= 0)
			return err_set(err, ERR_BUG, "%s %s and %s are not in order", what,
				l->v[i - 1], l->v[i]);
	return 0;
}

/* The length of the stored object, including the API server's managedFields. */
static size_t stored_len(struct json_object *o, const struct render_volumes *v)
{
	cleanup_free char *text = json_text(o);

	return strlen(text) + v->machines.n * RENDER_VOLUMES_OWNED_BYTES;
}

/* An empty render gives the fixed part of the size. With it, the message estimates how many Machines
 * fit, assuming the current number of keys per Machine. */
struct json_object *render_trustee_deployment_volumes(const struct model_cluster *c, const char *ns,
	const struct render_images *images, const struct render_trustee_inputs *in,
	const struct render_volumes *v, struct err *err)
{
	const struct render_volumes nothing = RENDER_VOLUMES_INIT;
	cleanup_json struct json_object *o = NULL, *empty = NULL;
	size_t len, fixed, n = v->machines.n;

	if (check_list(&v->machines, "Machines", err) < 0 ||
		check_list(&v->aks, "AttestationKeys", err) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const char *id = v->machines.v[i];

		/* The id becomes part of a path. */
		if (!uuid_valid(id, strlen(id))) {
			err_set(err, ERR_INVALID, "Machine id %.40s is not a UUID", id);
			return NULL;
		}
	}
	o = render(c, ns, images, in, v);
	len = stored_len(o, v);
	if (len <= RENDER_VOLUMES_MAX_BYTES)
		return steal_ptr(&o);
	empty = render(c, ns, images, in, &nothing);
	fixed = stored_len(empty, &nothing);
	err_set(err, ERR_INVALID,
		"Trustee's Deployment would need %zu bytes with %zu Machines; the limit of the API is %d, "
		"about %zu Machines. Set spec.trustee.delivery to AdminAPI (Trustee v0.21 or later).",
		len, n, RENDER_VOLUMES_MAX_BYTES,
		(RENDER_VOLUMES_MAX_BYTES - fixed) * (n ? n : 1) / (len - fixed));
	return NULL;
}

/* ---- lists */

static void names_fini(struct render_names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free((char *)(uintptr_t)l->v[i]);
	free(l->v);
}

void render_volumes_fini(struct render_volumes *v)
{
	names_fini(&v->machines);
	names_fini(&v->aks);
	free(v->contents);
	*v = (struct render_volumes)RENDER_VOLUMES_INIT;
}

void render_names_add(struct render_names *l, const char *name)
{
	ARRAY_GROW(l->v, l->n);
	l->v[l->n++] = xstrdup(name);
}

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* Sort and remove duplicates. The allocation stays at least as large as ARRAY_GROW() expects. */
static void names_sort(struct render_names *l)
{
	size_t kept = 0;

	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_text);
	for (size_t i = 0; i < l->n; i++) {
		if (kept && strcmp(l->v[kept - 1], l->v[i]) == 0)
			free((char *)(uintptr_t)l->v[i]);
		else
			l->v[kept++] = l->v[i];
	}
	l->n = kept;
}

void render_volumes_sort(struct render_volumes *v)
{
	names_sort(&v->machines);
	names_sort(&v->aks);
}

bool render_names_have(const struct render_names *l, const char *name)
{
	return l->n && bsearch(&name, l->v, l->n, sizeof(*l->v), by_text);
}

/* The projected volume tells our Deployment from any other: it exists even without keys. */
bool render_volumes_read(struct json_object *deployment, struct render_volumes *out)
{
	struct json_object *volumes = json_get_arr(deployment, "spec/template/spec/volumes");
	bool ours = false;

	*out = (struct render_volumes)RENDER_VOLUMES_INIT;
	for (size_t i = 0; i < json_len(volumes); i++) {
		struct json_object *v = json_at(volumes, i);
		struct json_object *sources = json_get_arr(v, "projected/sources");
		const char *name = json_get_str(v, "name"),
			   *secret = json_get_str(v, "secret/secretName");

		if (name && str_eq(name, secret) && uuid_valid(name, strlen(name)))
			render_names_add(&out->machines, name);
		if (!str_eq(name, RENDER_VOLUMES_AK_VOLUME) || !json_get_obj(v, "projected"))
			continue;
		ours = true;
		/* Each projected source is the Secret of one approved key. */
		for (size_t k = 0; k < json_len(sources); k++) {
			const char *key = json_get_str(json_at(sources, k), "secret/name");

			if (key)
				render_names_add(&out->aks, key);
		}
	}
	if (!ours) {
		render_volumes_fini(out);
		return false;
	}
	render_volumes_sort(out);
	out->contents = xstrdup(kobj_annotation(
		json_get_obj(deployment, "spec/template"), MODEL_POD_CONTENTS_ANNOTATION));
	return true;
}
