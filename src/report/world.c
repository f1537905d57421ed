/* SPDX-License-Identifier: MIT */
/* Plain lists, searched from the start: a command reads them once and looks up few objects. */
#include "config.h"

#include "tec/report/world.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/lost.h"
#include "tec/model/machine.h"

void report_world_fini(struct report_world *w)
{
	for (int k = 0; k < REPORT_N_KINDS; k++) {
		for (size_t i = 0; i < w->list[k].n; i++)
			json_object_put(w->list[k].v[i]);
		free(w->list[k].v);
		free(w->list[k].problem);
	}
	memset(w->list, 0, sizeof(w->list));
}

/* An object without a name cannot be shown or found; an API server never sends one. */
void report_world_take(struct report_world *w, enum report_kind kind, struct json_object *take_o)
{
	struct report_list *l = &w->list[kind];

	if (!json_get_str(take_o, "metadata/name")) {
		json_object_put(take_o);
		return;
	}
	ARRAY_GROW(l->v, l->n);
	l->v[l->n++] = take_o;
}

/* RFC 3339 in UTC sorts as text. Names break ties, so that the output is the same in each run. */
static int compare(const void *a, const void *b)
{
	struct json_object *x = *(struct json_object *const *)a,
			   *y = *(struct json_object *const *)b;
	int d = strcmp(report_str(x, "metadata/creationTimestamp"),
		report_str(y, "metadata/creationTimestamp"));

	return d ? d : strcmp(report_name(x), report_name(y));
}

void report_world_sort(struct report_world *w)
{
	for (int k = 0; k < REPORT_N_KINDS; k++)
		if (w->list[k].n)
			qsort(w->list[k].v, w->list[k].n, sizeof(*w->list[k].v), compare);
}

void report_world_problem(struct report_world *w, enum report_kind kind, const char *why)
{
	free(w->list[kind].problem);
	w->list[kind].problem = xstrdup(why);
}

/* ---- one object */

const char *report_str(struct json_object *o, const char *path)
{
	const char *text = json_get_str(o, path);

	return text ? text : "";
}

const char *report_name(struct json_object *o)
{
	return report_str(o, "metadata/name");
}

bool report_deleting(struct json_object *o)
{
	return json_get(o, "metadata/deletionTimestamp") != NULL;
}

/* A clock behind the API server's counts as age 0, not as unknown. */
int64_t report_age_of(const struct report_world *w, struct json_object *o)
{
	const char *text = json_get_str(o, "metadata/creationTimestamp");
	int64_t us;

	if (!text || clock_parse(text, &us) < 0)
		return -1;
	return us / 1000000 > w->now_s ? 0 : w->now_s - us / 1000000;
}

/* A type occurs once (the CRD's list is keyed by it). */
struct json_object *report_condition(struct json_object *o, const char *type)
{
	struct json_object *all = json_get_arr(o, "status/conditions");

	for (size_t i = 0; i < json_len(all); i++)
		if (str_eq(json_get_str(json_at(all, i), "type"), type))
			return json_at(all, i);
	return NULL;
}

bool report_is_true(struct json_object *o, const char *type)
{
	return str_eq(json_get_str(report_condition(o, type), "status"), "True");
}

size_t report_count_true(const struct report_world *w, enum report_kind kind, const char *type)
{
	size_t n = 0;

	for (size_t i = 0; i < w->list[kind].n; i++)
		n += report_is_true(w->list[kind].v[i], type);
	return n;
}

/* ---- related objects */

struct json_object *report_find(
	const struct report_world *w, enum report_kind kind, const char *name)
{
	for (size_t i = 0; i < w->list[kind].n; i++)
		if (str_eq(report_name(w->list[kind].v[i]), name))
			return w->list[kind].v[i];
	return NULL;
}

/* The lists are sorted by age, so the first that qualifies is the oldest. If all are being
 * deleted, the oldest of those. */
struct json_object *report_cluster(const struct report_world *w)
{
	const struct report_list *l = &w->list[REPORT_CLUSTER];

	for (size_t i = 0; i < l->n; i++)
		if (!report_deleting(l->v[i]))
			return l->v[i];
	return l->n ? l->v[0] : NULL;
}

/* A name wins over an id: names are unique in the namespace, ids need not be. */
struct json_object *report_machine_find(
	const struct report_world *w, const char *text, struct err *err)
{
	const struct report_list *l = &w->list[REPORT_MACHINE];
	struct json_object *found = report_find(w, REPORT_MACHINE, text);

	for (size_t i = 0; !found && i < l->n; i++) {
		if (!str_eq(json_get_str(l->v[i], "spec/id"), text))
			continue;
		for (size_t k = i + 1; k < l->n; k++)
			if (str_eq(json_get_str(l->v[k], "spec/id"), text)) {
				err_set(err, ERR_CONFLICT,
					"the Machines %.80s and %.80s both have the id %.60s; next step: name one of them",
					report_name(l->v[i]), report_name(l->v[k]), log_esc(text));
				return NULL;
			}
		found = l->v[i];
	}
	if (!found)
		err_set(err, ERR_NOT_FOUND,
			"no Machine in namespace %.63s has the name or id %.80s; next step: tecctl machine list",
			w->ns, log_esc(text));
	return found;
}

/* By the UID in the Machine's mark: a key of the same name that was created later is not the
 * bound one. */
struct json_object *report_machine_key(const struct report_world *w, struct json_object *machine)
{
	struct err ignored = ERR_INIT;
	cleanup_kobj const struct kobj *m = model_machine_extract(machine, &ignored);
	const char *uid = m ? model_machine((const struct kobj *)m)->bound_key : NULL;

	for (size_t i = 0; uid && i < w->list[REPORT_KEY].n; i++)
		if (str_eq(json_get_str(w->list[REPORT_KEY].v[i], "metadata/uid"), uid))
			return w->list[REPORT_KEY].v[i];
	return NULL;
}

/* *at is the index to continue from, so no memory is needed between calls. */
struct json_object *report_machine_other_key(
	const struct report_world *w, struct json_object *machine, size_t *at)
{
	const struct report_list *l = &w->list[REPORT_KEY];
	const char *id = json_get_str(machine, "spec/id");
	struct json_object *holds = report_machine_key(w, machine);

	while (id && *at < l->n) {
		struct json_object *key = l->v[(*at)++];

		if (key != holds && str_eq(json_get_str(key, "spec/uuid"), id))
			return key;
	}
	return NULL;
}

/* The name of a file contains a dot, so it is not read by a path. */
const char *report_file(
	const struct report_world *w, const char *configmap, const char *file, size_t *len)
{
	struct json_object *map = report_find(w, REPORT_CONFIGMAP, configmap), *text = NULL;

	json_object_object_get_ex(json_get_obj(map, "data"), file, &text);
	if (!json_object_is_type(text, json_type_string))
		return NULL;
	*len = (size_t)json_object_get_string_len(text);
	return json_object_get_string(text);
}

struct json_object *report_servers(const struct report_world *w)
{
	size_t len;
	const char *text = report_file(w, MODEL_SERVERS_CONFIGMAP, MODEL_SERVERS_FILE, &len);
	struct err ignored = ERR_INIT;

	return text ? json_parse(text, len, &json_limits_object, &ignored) : NULL;
}

struct model_pcrs *report_pcrs(const struct report_world *w)
{
	size_t len;
	const char *text = report_file(w, MODEL_PCRS_CONFIGMAP, MODEL_PCRS_FILE, &len);

	return text ? model_pcrs_parse(text, len) : NULL;
}
