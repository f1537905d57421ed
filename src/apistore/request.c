/* SPDX-License-Identifier: MIT */
/*
 * Reads, then the four writes that carry an object. Each of these makes the object that would be
 * stored and hands it to store(), which keeps what only the server decides and refuses the rest.
 */
#include "config.h"

#include "tec/apistore/request.h"

#include <stdio.h>

#include "tec/apistore/events.h"
#include "tec/apistore/list.h"
#include "tec/base/clock.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/schema/crd.h"

#include "rules.h"
#include "write.h"

#define ANY_RESOURCE "the server could not find the requested resource"
#define PIECE        (256u << 10) /* of a list, at a time */

const struct json_limits apistore_write_limits = {APISTORE_BODY_MAX, 128, 400000, false};

/* ---- answers */

static struct apistore_answer answer_of(int code, char *take_text, size_t len)
{
	return (struct apistore_answer){.code = code, .body = take_text, .len = len};
}

/* An object in the form and the version of the request. */
static struct apistore_answer shown_as(struct apistore_objects *s, const struct apistore_target *t,
	int code, char *take_text, size_t len)
{
	const struct schema_kind *k = apistore_objects_kind(s, t->group, t->resource)->schema;
	struct body shown = BODY_INIT;

	if (!k || (t->form.shape == APISTORE_SHAPE_OBJECT && !apistore_form_differs(k)))
		return answer_of(code, take_text, len);
	if (t->form.shape == APISTORE_SHAPE_OBJECT)
		apistore_form_versioned(k, t->version, take_text, len, &shown);
	else
		apistore_form_object(&t->form, k, take_text, len, true, &shown);
	file_wipe(take_text, len);
	return answer_of(code, shown.data, shown.len);
}

struct apistore_answer apistore_write_trouble(struct apistore_objects *s)
{
	struct err err = ERR_INIT;

	if (!apistore_objects_trouble(s, &err))
		DIE("the database failed and does not know why");
	return apistore_status_storage(&err);
}

/* ---- reads */

static struct apistore_answer get(struct apistore_objects *s, const struct apistore_target *t)
{
	const struct apistore_key key = {t->qualified, t->ns, t->name};
	cleanup_free char *rv = apistore_target_param(t, "resourceVersion");
	uint64_t want = 0, now = apistore_objects_rv(s);
	size_t len = 0;
	char *text;

	if (rv && *rv && str_to_u64(rv, INT64_MAX, &want) < 0)
		return apistore_status_refusal(
			400, "BadRequest", "Invalid value for resourceVersion: %s", log_esc(rv));
	if (want > now)
		return apistore_status_too_large(want, now);
	text = apistore_objects_text(s, &key, &len);
	if (!text)
		return apistore_status_absent(t);
	if (str_eq(t->sub, "scale"))
		return apistore_scale_shown(answer_of(200, text, len));
	return shown_as(s, t, 200, text, len);
}

static struct apistore_answer list(struct apistore_objects *s, struct apistore_target *take_t)
{
	struct apistore_answer answer = {0};
	struct apistore_listing *l = apistore_list_new(s, take_t, &answer);
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;
	int rc;

	if (!l)
		return answer;
	rc = apistore_list_pull(l, &out, PIECE, &err);
	if (rc < 0) {
		body_fini(&out);
		apistore_list_free(l);
		(void)apistore_objects_failed(s, &err);
		return apistore_write_trouble(s);
	}
	if (rc > 0)
		answer.more = l;
	else
		apistore_list_free(l);
	answer.code = 200;
	answer.body = steal_ptr(&out.data);
	answer.len = out.len;
	return answer;
}

/* ---- what a write may make */

void apistore_write_copy(struct json_object *o, struct json_object *from, const char *name)
{
	struct json_object *v = NULL;

	json_object_object_del(o, name);
	if (from && json_object_object_get_ex(from, name, &v))
		json_add(o, name, json_copy(v));
}

static void drop_empty(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(o, name, &v))
		return;
	if (!v || (json_object_is_type(v, json_type_object) && json_object_object_length(v) == 0) ||
		(json_object_is_type(v, json_type_array) && json_object_array_length(v) == 0))
		json_object_object_del(o, name);
}

/* What only the server decides: as it was, or nothing yet (was NULL). */
static void keep_meta(
	const struct apistore_key *key, struct json_object *o, struct json_object *was)
{
	static const char *const members[] = {"name", "namespace", "uid", "creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"},
				 *const never_empty[] = {
					 "annotations", "finalizers", "labels", "ownerReferences"};
	struct json_object *m = apistore_objects_meta(o);

	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		apistore_write_copy(m, was ? json_get(was, "metadata") : NULL, members[i]);
	for (size_t i = 0; i < ARRAY_LEN(never_empty); i++)
		drop_empty(m, never_empty[i]);
	json_add_str(m, "name", key->name);
	json_add_str(m, "namespace", key->ns[0] ? key->ns : NULL);
}

/* What a client may leave out, since the path says it. */
static void complete(const struct apistore_write *w, struct json_object *o)
{
	const struct schema_kind *k = apistore_admit_kind(w);
	cleanup_free char *gv =
		k ? xasprintf("%s%s%s", k->group, k->group[0] ? "/" : "", k->version) : NULL;

	if (k && !json_get(o, "apiVersion"))
		json_add_str(o, "apiVersion", gv);
	if (k && !json_get(o, "kind"))
		json_add_str(o, "kind", k->kind);
}

struct apistore_manager apistore_write_manager(
	const struct apistore_write *w, const char *version, char *now)
{
	clock_format(clock_wall_s(), now);
	return (struct apistore_manager){w->manager, version, w->t->sub, now};
}

static void note_manager(const struct apistore_write *w, struct json_object *o)
{
	const struct apistore_place p = apistore_place_object(w->kind, &w->s->schema->lists);
	char now[CLOCK_RFC3339_LEN];
	const struct apistore_manager m =
		apistore_write_manager(w, json_get_str(o, "apiVersion"), now);

	if (!w->applied)
		apistore_managed_update(&p, w->kind, &m, w->was, o);
}

/* Versions of a CRD differ in their apiVersion only; one of them is what is stored. */
static void use_stored_version(const struct apistore_write *w, struct json_object *o)
{
	const struct schema_kind *k = w->kind->schema;
	const char *have = json_get_str(o, "apiVersion");
	size_t n = k ? strlen(k->group) : 0;
	cleanup_free char *gv = NULL;

	if (!k || !k->crd || !have || strncmp(have, k->group, n) != 0 || have[n] != '/' ||
		!schema_crd_version(k->crd->crd, have + n + 1))
		return;
	gv = xasprintf("%s/%s", k->group, schema_crd_storage(k->crd->crd)->kind.version);
	json_add_str(o, "apiVersion", gv);
	if (w->was)
		json_add_str(w->was, "apiVersion", gv); /* from before another one was stored */
}

static bool is_there(const struct apistore_write *w)
{
	size_t len = 0;
	char *text = apistore_objects_text(w->s, &w->key, &len);

	file_wipe(text, len);
	return text != NULL;
}

/* The end of every write that carries an object. */
struct apistore_answer apistore_write_store(
	const struct apistore_write *w, struct json_object *take_o)
{
	cleanup_json struct json_object *o = take_o;
	struct apistore_answer refused;
	struct apistore_stored stored;

	complete(w, o);
	use_stored_version(w, o);
	if (apistore_admit_decode(w, o, &refused) < 0 ||
		apistore_check_object(w, o, &refused) < 0 ||
		apistore_admit_read(w, o, &refused) < 0)
		return refused;
	keep_meta(&w->key, o, w->was);
	if (w->kind->status && !w->t->sub[0])
		apistore_write_copy(o, w->was, "status");
	if (apistore_check_meta(w, o, &refused) < 0 || apistore_grant_check(w, o, &refused) < 0 ||
		apistore_rules(w->t, o, w->was, &refused) < 0 ||
		apistore_admit_check(w, o, &refused) < 0)
		return refused;
	if (w->create && is_there(w))
		return apistore_status_exists(w->t);
	note_manager(w, o);
	if (apistore_events_renames(w->t->group)) {
		apistore_events_to_core(o);
		apistore_events_to_core(w->was);
	}
	if (apistore_objects_store(w->s, &w->key, w->was, json_object_get(o), w->dry,
		    APISTORE_OBJECT_MAX, &stored) < 0) {
		file_wipe(stored.text, stored.len);
		refused = apistore_write_trouble(w->s);
	} else if (stored.too_large) {
		file_wipe(stored.text, stored.len);
		refused = apistore_status_refusal(413, "RequestEntityTooLarge",
			"Request entity too large: limit is %u", APISTORE_OBJECT_MAX);
	} else {
		refused = shown_as(w->s, w->t, w->was ? 200 : 201, stored.text, stored.len);
	}
	json_object_put(stored.o);
	return refused;
}

/* ---- writes */

/* As kube-apiserver makes them: no vowels, nothing that looks like something else. */
static char *generated_name(const char *prefix)
{
	static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
	uint8_t random[5];
	char tail[6] = "";

	bytes_random(random, sizeof(random));
	for (size_t i = 0; i < sizeof(random); i++)
		tail[i] = letters[random[i] % (sizeof(letters) - 1)];
	return xasprintf("%.*s%s", 58, prefix, tail);
}

static struct apistore_answer create(const struct apistore_write *w, struct json_object *body)
{
	const char *name = json_get_str(body, "metadata/name"),
		   *prefix = json_get_str(body, "metadata/generateName");
	cleanup_json struct json_object *o = json_copy(body);
	cleanup_free char *generated = NULL;
	struct apistore_target named = *w->t;
	struct apistore_write here = *w;

	here.create = true;
	here.t = &named;
	if ((!name || !*name) && prefix && *prefix && json_get_obj(o, "metadata")) {
		name = generated = generated_name(prefix);
		json_add_str(json_get(o, "metadata"), "name", name);
	}
	name = name ? name : "";   /* refused with all else that is wrong */
	named.name = (char *)name; /* borrowed for the call */
	here.key.name = name;
	if (json_get(body, "metadata/resourceVersion"))
		return apistore_status_refusal(400, "BadRequest",
			"resourceVersion should not be set on objects to be created");
	return apistore_write_store(&here, steal_ptr(&o));
}

/* ---- the way in */

static int read_dry(const struct apistore_write *w, struct json_object *body, bool *dry,
	struct apistore_answer *refused)
{
	static const struct apistore_target options = {
		.group = (char *)"meta.k8s.io", .name = (char *)""};
	cleanup_free char *param = apistore_target_param(w->t, "dryRun"), *why = NULL;
	struct json_object *a = str_eq(json_get_str(body, "kind"), "DeleteOptions")
					? json_get_arr(body, "dryRun")
					: NULL;
	const char *value = param;

	if (!value && a && json_object_array_length(a) > 0)
		value = json_object_get_string(json_object_array_get_idx(a, 0));
	*dry = value != NULL;
	if (!value || str_eq(value, "All"))
		return 0;
	why = xasprintf("\"%s\": supported values: \"All\"", value);
	*refused = apistore_status_invalid(
		&options, "PatchOptions", "dryRun", "Unsupported value", why);
	return -1;
}

/* As kube-apiserver does: what the query says, or the first part of User-Agent. */
static int read_manager(
	struct apistore_write *w, const struct apistore_request *r, struct apistore_answer *refused)
{
	static const struct apistore_target options = {
		.group = (char *)"meta.k8s.io", .name = (char *)""};
	cleanup_free char *param = apistore_target_param(w->t, "fieldManager");
	const char *agent = r->user_agent ? r->user_agent : "unknown";
	size_t n = 0;

	if (param && strlen(param) > APISTORE_MANAGER_MAX) {
		*refused = apistore_status_invalid(&options, "PatchOptions", "fieldManager",
			"Too long", "may not be more than 128 bytes");
		return -1;
	}
	if (param && *param) {
		snprintf(w->manager, sizeof(w->manager), "%s", param);
		return 0;
	}
	for (; *agent && *agent != '/' && n < APISTORE_MANAGER_MAX; agent++)
		if (*agent >= ' ' && *agent < 0x7f)
			w->manager[n++] = *agent;
	if (n == 0)
		snprintf(w->manager, sizeof(w->manager), "unknown");
	return 0;
}

static int read_fields(const struct apistore_write *w, const struct apistore_request *r,
	enum apistore_fields *out, struct apistore_answer *refused)
{
	static const char *const names[] = {[APISTORE_FIELDS_IGNORE] = "Ignore",
		[APISTORE_FIELDS_WARN] = "Warn",
		[APISTORE_FIELDS_STRICT] = "Strict"};
	static const struct apistore_target options = {
		.group = (char *)"meta.k8s.io", .name = (char *)""};
	cleanup_free char *param = apistore_target_param(w->t, "fieldValidation"), *why = NULL;

	*out = r->warns ? APISTORE_FIELDS_WARN : APISTORE_FIELDS_IGNORE;
	if (!param || !*param)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(param, names[i])) {
			*out = (enum apistore_fields)i;
			return 0;
		}
	why = xasprintf("\"%s\": supported values: \"\", \"Ignore\", \"Warn\", \"Strict\"", param);
	*refused = apistore_status_invalid(&options,
		str_eq(r->method, "POST")  ? "CreateOptions"
		: str_eq(r->method, "PUT") ? "UpdateOptions"
					   : "PatchOptions",
		"fieldValidation", "Unsupported value", why);
	return -1;
}

static void note_duplicate(void *arg, const char *path)
{
	schema_texts_add(arg, "duplicate field \"%s\"", path);
}

/* The object that is there, as the subresource of the request shows it. */
static struct json_object *seen_by(const struct apistore_write *w)
{
	struct json_object *o = apistore_objects_get(w->s, &w->key), *scale;

	if (apistore_events_renames(w->t->group))
		apistore_events_from_core(o);
	if (o)
		apistore_form_read(w->kind->schema, o);
	if (!o || !str_eq(w->t->sub, "scale"))
		return o;
	scale = apistore_scale_of(o);
	json_object_put(o);
	return scale;
}

static bool has_sub(const struct apistore_write *w)
{
	return str_eq(w->t->sub, "status")
		       ? w->kind->status
		       : str_eq(w->t->sub, "scale") && apistore_scale_has(w->kind);
}

static struct apistore_answer write_request(
	struct apistore_write *w, const struct apistore_request *r)
{
	bool is_post = str_eq(r->method, "POST"), is_delete = str_eq(r->method, "DELETE"),
	     is_patch = str_eq(r->method, "PATCH"), named = w->t->name[0] != '\0';
	cleanup_json struct json_object *body = NULL, *was = NULL;
	struct apistore_answer answer;
	struct err err = ERR_INIT;

	if ((is_post ? named : !named && !is_delete) || (is_delete && w->t->sub[0]) ||
		(!is_post && !is_delete && !is_patch && !str_eq(r->method, "PUT")))
		return apistore_status_refusal(405, "MethodNotAllowed",
			"the server does not allow this method on the requested resource");
	if (r->len > APISTORE_BODY_MAX)
		return apistore_status_refusal(413, "RequestEntityTooLarge",
			"Request entity too large: limit is %u", APISTORE_BODY_MAX);
	if (is_patch) {
		body = apistore_change_read(w, r, &answer);
		if (!body)
			return answer;
	} else if (r->len || !is_delete) {
		body = json_parse_last(r->body ? r->body : "", r->len, &apistore_write_limits,
			note_duplicate, w->warnings, &err);
		if (!json_object_is_type(body, json_type_object))
			return apistore_status_refusal(400, "BadRequest",
				"the body is not a JSON object%s%s", *err.text ? ": " : "",
				err.text);
	}
	if (read_dry(w, body, &w->dry, &answer) < 0 || read_manager(w, r, &answer) < 0 ||
		read_fields(w, r, &w->fields, &answer) < 0)
		return answer;
	if (named)
		w->was = was = seen_by(w);
	answer = is_post               ? create(w, body)
		 : is_delete && !named ? apistore_remove_all(w, body)
		 : is_delete           ? apistore_remove_object(w, body)
				       : apistore_change(w, r, body);
	if (str_eq(w->key.resource, "secrets")) {
		json_wipe(body);
		json_wipe(was);
	}
	return answer;
}

struct apistore_answer apistore_request(struct apistore_objects *s, struct apistore_target *take_t,
	const struct apistore_request *r)
{
	cleanup_apistore_target struct apistore_target t = *take_t;
	struct schema_texts warnings = {NULL, 0, 0};
	struct apistore_write w = {.s = s,
		.t = &t,
		.kind = apistore_objects_kind(s, t.group, t.resource),
		.key = {t.qualified, t.ns, t.name},
		.warnings = &warnings,
		.asker = r->asker};
	struct apistore_answer answer;
	struct err err = ERR_INIT;

	*take_t = (struct apistore_target){0};
	if (apistore_objects_trouble(s, &err)) /* the turn is lost already */
		return apistore_status_storage(&err);
	if (t.sub[0] && !has_sub(&w)) /* of a custom resource it is the object that is not found */
		return w.kind->custom ? apistore_status_absent(&t)
				      : apistore_status_refusal(404, "NotFound", ANY_RESOURCE);
	if (!str_eq(r->method, "GET"))
		answer = write_request(&w, r);
	else
		answer = t.name[0] ? get(s, &t) : list(s, &t);
	if (w.fields == APISTORE_FIELDS_IGNORE || answer.code / 100 != 2)
		schema_texts_fini(&warnings);
	if (!apistore_objects_trouble(s, &err)) {
		answer.warnings = warnings;
		return answer;
	}
	schema_texts_fini(&warnings);
	apistore_answer_fini(&answer);
	return apistore_status_storage(&err);
}
