/* SPDX-License-Identifier: MIT */
/*
 * Lists of what is mounted, and how a Deployment is read back into them: a Secret volume that has
 * the name of its Secret and is a UUID is a Machine's; the sources of trusted-ak-keys are keys.
 * Anything added by others is skipped.
 */
#include "config.h"

#include "tec/render/volumes.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"

static void free_all(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void render_volumes_list_fini(struct render_volumes_list *l)
{
	free_all(l->machines, l->n_machines);
	free_all(l->aks, l->n_aks);
	free(l->contents);
	memset(l, 0, sizeof(*l));
}

/* Grow at powers of two, which needs no capacity field. */
static void add(char ***list, size_t *n, const char *name)
{
	if ((*n & (*n - 1)) == 0) /* full: a power of two, or none */
		*list = xreallocarray(*list, *n ? *n * 2 : 1, sizeof(**list));
	(*list)[(*n)++] = xstrdup(name);
}

void render_volumes_list_add_machine(struct render_volumes_list *l, const char *id)
{
	add(&l->machines, &l->n_machines, id);
}

void render_volumes_list_add_ak(struct render_volumes_list *l, const char *name)
{
	add(&l->aks, &l->n_aks, name);
}

static int by_text(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* Sort and remove duplicates. */
static void sort(char **list, size_t *n)
{
	size_t kept = 0;

	if (*n)
		qsort(list, *n, sizeof(*list), by_text);
	for (size_t i = 0; i < *n; i++) {
		if (kept && strcmp(list[kept - 1], list[i]) == 0)
			free(list[i]);
		else
			list[kept++] = list[i];
	}
	/* The allocation stays at least as large as add() expects for the new length. */
	*n = kept;
}

void render_volumes_list_sort(struct render_volumes_list *l)
{
	sort(l->machines, &l->n_machines);
	sort(l->aks, &l->n_aks);
}

static bool has(char *const *list, size_t n, const char *name)
{
	return n && bsearch(&name, list, n, sizeof(*list), by_text);
}

bool render_volumes_has_machine(const struct render_volumes_list *l, const char *id)
{
	return has(l->machines, l->n_machines, id);
}

bool render_volumes_has_ak(const struct render_volumes_list *l, const char *name)
{
	return has(l->aks, l->n_aks, name);
}

/* Valid until the list is changed. */
struct render_volumes render_volumes_of(const struct render_volumes_list *l)
{
	return (struct render_volumes){.machines = (const char *const *)l->machines,
		.n_machines = l->n_machines,
		.aks = (const char *const *)l->aks,
		.n_aks = l->n_aks,
		.contents = l->contents};
}

/* Each projected source is the Secret of one approved key. */
static void read_keys(struct json_object *sources, struct render_volumes_list *out)
{
	for (size_t i = 0; i < json_len(sources); i++) {
		const char *name = json_get_str(json_at(sources, i), "secret/name");

		if (name)
			render_volumes_list_add_ak(out, name);
	}
}

/* What the stored Pod template records about the content of its files. */
static void read_contents(struct json_object *deployment, struct render_volumes_list *out)
{
	struct json_object *marks = json_get_obj(deployment, "spec/template/metadata/annotations");
	struct json_object *v = NULL;

	if (marks && json_object_object_get_ex(marks, MODEL_POD_CONTENTS_ANNOTATION, &v) &&
		json_object_is_type(v, json_type_string))
		out->contents = xstrdup(json_object_get_string(v));
}

/* The projected volume tells our Deployment from any other: it exists even without keys. */
bool render_volumes_read(struct json_object *deployment, struct render_volumes_list *out)
{
	struct json_object *volumes = json_get_arr(deployment, "spec/template/spec/volumes");
	bool ours = false;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < json_len(volumes); i++) {
		struct json_object *v = json_at(volumes, i);
		const char *name = json_get_str(v, "name"),
			   *secret = json_get_str(v, "secret/secretName");

		if (name && str_eq(name, secret) && uuid_valid(name, strlen(name)))
			render_volumes_list_add_machine(out, name);
		if (!str_eq(name, RENDER_VOLUMES_AK_VOLUME) || !json_get_obj(v, "projected"))
			continue;
		ours = true;
		read_keys(json_get_arr(v, "projected/sources"), out);
	}
	if (!ours) {
		render_volumes_list_fini(out);
		return false;
	}
	/* render_trustee_deployment_volumes() requires sorted lists. */
	render_volumes_list_sort(out);
	read_contents(deployment, out);
	return true;
}
