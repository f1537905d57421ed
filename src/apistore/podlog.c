/* SPDX-License-Identifier: MIT */
/*
 * The subresource log of a Pod. Nothing runs Pods here, so that there is never a line: what is asked is
 * checked as kube-apiserver does, and a Pod without a node has an empty log there as well.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "tec/base/clock.h"
#include "tec/base/mem.h"

#include "write.h"

struct options {
	bool has_tail, has_limit, has_since, has_time, has_stream;
	int64_t tail, limit, since;
};

static bool read_number(const struct apistore_write *w, const char *name, bool *has, int64_t *out,
	struct apistore_answer *refused)
{
	cleanup_free char *v = apistore_target_param(w->t, name);
	char *end = NULL;

	*has = v && *v;
	if (!*has)
		return true;
	errno = 0;
	*out = strtoll(v, &end, 10);
	if (*end || strspn(v, " \t\n") || errno) {
		*refused = apistore_status_refusal(400, "BadRequest",
			"strconv.ParseInt: parsing \"%s\": %s", v,
			*end || strspn(v, " \t\n") ? "invalid syntax" : "value out of range");
		return false;
	}
	return true;
}

static bool read_options(
	const struct apistore_write *w, struct options *o, struct apistore_answer *refused)
{
	cleanup_free char *time = apistore_target_param(w->t, "sinceTime"),
			  *stream = apistore_target_param(w->t, "stream");
	int64_t at;

	*o = (struct options){.has_time = time && *time, .has_stream = stream != NULL};
	if (!read_number(w, "tailLines", &o->has_tail, &o->tail, refused) ||
		!read_number(w, "limitBytes", &o->has_limit, &o->limit, refused) ||
		!read_number(w, "sinceSeconds", &o->has_since, &o->since, refused))
		return false;
	if (o->has_time && clock_parse(time, &at) < 0) {
		*refused = apistore_status_refusal(400, "BadRequest",
			"parsing time \"%s\": it is not a time as in RFC 3339", time);
		return false;
	}
	return true;
}

static void add_range(
	struct schema_causes *causes, const char *field, bool has, int64_t value, int64_t least)
{
	cleanup_json struct json_object *v = json_object_new_int64(value);

	if (has && value < least)
		schema_cause_add(causes, SCHEMA_INVALID, field, v, "must be greater than %s0",
			least ? "" : "or equal to ");
}

static bool check_options(
	const struct apistore_write *w, const struct options *o, struct apistore_answer *refused)
{
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0, false};

	add_range(&causes, "tailLines", o->has_tail, o->tail, 0);
	add_range(&causes, "limitBytes", o->has_limit, o->limit, 1);
	if (o->has_since && o->has_time)
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, "[]", NULL,
			"at most one of `sinceTime` or `sinceSeconds` may be specified");
	else
		add_range(&causes, "sinceSeconds", o->has_since, o->since, 1);
	if (o->has_stream)
		schema_cause_add(&causes, SCHEMA_FORBIDDEN, "stream", NULL, "may not be specified");
	if (causes.n == 0)
		return true;
	*refused = apistore_status_causes(w->t, "PodLogOptions", &causes);
	return false;
}

/* Adds the names of a list of containers; *found: the wanted one is among them. */
static void look_at(struct json_object *pod, const char *path, const char *wanted,
	struct strbuf *names, bool *found)
{
	struct json_object *a = json_get_arr(pod, path);

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		const char *name = json_get_str(json_object_array_get_idx(a, i), "name");

		strbuf_addf(names, "%s%s", names->len ? " " : "", name ? name : "");
		*found = *found || str_eq(name, wanted);
	}
}

static bool has_container(const struct apistore_write *w, struct json_object *pod,
	const char *wanted, struct apistore_answer *refused)
{
	struct json_object *a = json_get_arr(pod, "spec/containers");
	cleanup_strbuf struct strbuf names = STRBUF_INIT;
	bool found = false;

	look_at(pod, "spec/initContainers", wanted, &names, &found);
	look_at(pod, "spec/containers", wanted, &names, &found);
	look_at(pod, "spec/ephemeralContainers", wanted, &names, &found);
	if (found || (!*wanted && a && json_object_array_length(a) == 1))
		return true;
	*refused =
		*wanted ? apistore_status_refusal(400, "BadRequest",
				  "container %s is not valid for pod %s", wanted, w->t->name)
			: apistore_status_refusal(400, "BadRequest",
				  "a container name must be specified for pod %s, choose one of: [%s]",
				  w->t->name, strbuf_str(&names));
	return false;
}

struct apistore_answer apistore_podlog(const struct apistore_write *w, const char *method)
{
	cleanup_free char *container = apistore_target_param(w->t, "container");
	cleanup_json struct json_object *pod = NULL;
	struct apistore_answer refused = {0};
	struct options o;
	const char *node;

	if (!str_eq(method, "GET"))
		return apistore_status_refusal(405, "MethodNotAllowed",
			"the server does not allow this method on the requested resource");
	if (!read_options(w, &o, &refused) || !check_options(w, &o, &refused))
		return refused;
	pod = apistore_objects_get(w->s, &w->key);
	if (!pod)
		return apistore_status_absent(w->t);
	if (!has_container(w, pod, container ? container : "", &refused))
		return refused;
	node = json_get_str(pod, "spec/nodeName");
	if (node && *node)
		return apistore_status_refusal(404, "NotFound",
			"Pod %s has no log: it names node %s, but nothing runs Pods here",
			w->t->name, node);
	return (struct apistore_answer){.code = 204};
}
