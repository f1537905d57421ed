/* SPDX-License-Identifier: MIT */
/* Deletes objects: a deletion marks the object, and apistore/objects removes it if no finalizer is
 * left. */
#include "config.h"

#include "write.h"

#include "tec/apistore/gc.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define AT_ONCE 10000 /* objects that one request deletes at most */

/* Check uid and resourceVersion in the preconditions of DeleteOptions. */
static int check_preconditions(
	const struct apistore_write *w, struct json_object *body, struct apistore_answer *refused)
{
	static const struct {
		const char *member, *name, *then;
	} conditions[] = {{"uid", "UID", "deleted and then recreated"},
		{"resourceVersion", "ResourceVersion", "modified"}};
	struct json_object *wanted = json_get(body, "preconditions"),
			   *m = json_get(w->was, "metadata");

	for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
		const char *want = json_get_str(wanted, conditions[i].member);
		cleanup_free char *why = NULL;

		if (!want || str_eq(want, json_get_str(m, conditions[i].member)))
			continue;
		why = xasprintf(
			"the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s",
			conditions[i].name, want, conditions[i].name,
			json_get_str(m, conditions[i].member), conditions[i].then);
		*refused = apistore_status_conflict(w->t, json_get_str(w->was, "kind"), why);
		return -1;
	}
	return 0;
}

/* Mark and store. A dry run computes the same answer without storing. */
struct apistore_answer apistore_remove_object(
	const struct apistore_write *w, struct json_object *body)
{
	struct apistore_answer answer = {0};
	struct apistore_stored stored;
	struct json_object *o;

	if (!w->was)
		return apistore_status_absent(w->t);
	if (check_preconditions(w, body, &answer) < 0)
		return answer;
	o = json_copy(w->was);
	apistore_gc_mark(o, w->policy);
	if (apistore_objects_store(w->s, &w->key, w->was, o, w->dry, 0, &stored) < 0)
		answer = apistore_write_trouble(w->s);
	else if (stored.gone)
		answer = apistore_status_deleted(w->t, json_get_str(stored.o, "metadata/uid"));
	else /* finalizers keep it: answer with the marked object */
		answer = (struct apistore_answer){
			.code = 200, .body = steal_ptr(&stored.text), .len = stored.len};
	file_wipe(stored.text, stored.len);
	json_object_put(stored.o);
	return answer;
}

/* The deletion of a collection. */
struct sweep {
	const struct apistore_write *w;
	struct strbuf names; /* ns/name, each with its NUL byte */
	size_t n;
};

/* Collect the names before deleting anything: a scan must not run while its table is written. */
static bool note_name(void *arg, const struct apistore_version *v)
{
	struct sweep *s = arg;

	if (!apistore_selector_matches(s->w->t->select, v->key.ns, v->key.name, v->meta))
		return true;
	strbuf_addf(&s->names, "%s/%s", v->key.ns, v->key.name);
	strbuf_add(&s->names, "", 1);
	return ++s->n < AT_ONCE;
}

/* Delete all that the target selects. The answer is a Status, where kube-apiserver returns the list
 * of deleted objects. */
struct apistore_answer apistore_remove_all(const struct apistore_write *w)
{
	struct sweep sweep = {.w = w};
	const struct apistore_scan scan = {.resource = w->key.resource,
		.ns = w->key.ns[0] ? w->key.ns : NULL,
		.no_body = true,
		.only_keys = w->t->select == NULL};
	struct err err = ERR_INIT;

	if (apistore_db_scan(apistore_objects_db(w->s), &scan, note_name, &sweep, &err) < 0)
		(void)apistore_objects_failed(w->s, &err);
	for (size_t at = 0; !w->dry && at < sweep.names.len;
		at += strlen(sweep.names.data + at) + 1) {
		/* A namespace has no slash, so the first one ends it; names of some kinds may have
		 * other characters. */
		char *ns = sweep.names.data + at, *name = strchr(ns, '/') + 1;
		cleanup_free char *ns_only = xstrndup(ns, (size_t)(name - 1 - ns));
		const struct apistore_key key = {w->key.resource, ns_only, name};

		json_object_put(apistore_gc_delete(w->s, &key, w->policy));
	}
	strbuf_fini(&sweep.names);
	return apistore_status_success();
}
