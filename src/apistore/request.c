/* SPDX-License-Identifier: MIT */
/*
 * Reads, and the common path of all writes. Each write computes the object that would be stored and
 * passes it to apistore_write_store(), which restores the fields that only the server sets,
 * validates the result and stores it.
 */
#include "config.h"

#include "tec/apistore/request.h"

#include <stdio.h>

#include "tec/apistore/events.h"
#include "tec/base/clock.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

#include "query.h"
#include "rules.h"
#include "write.h"

#define ANY_RESOURCE "the server could not find the requested resource"
#define PIECE        (256u << 10) /* bytes of a list that come with the answer */

const struct json_limits apistore_write_limits = {APISTORE_BODY_MAX, 128, 400000, false};

/* ---- answers */

static struct apistore_answer answer_of(int code, char *take_text, size_t len)
{
	return (struct apistore_answer){.code = code, .body = take_text, .len = len};
}

/* Answer with an object in the form that the request asked for. */
static struct apistore_answer shown_as(struct apistore_objects *s, const struct apistore_target *t,
	int code, char *take_text, size_t len)
{
	const struct schema_kind *k = apistore_objects_kind(s, t->group, t->resource)->schema;
	struct body shown = BODY_INIT;

	if (k && t->form.shape != APISTORE_SHAPE_OBJECT)
		apistore_form_object(&t->form, k, take_text, len, true, &shown);
	else if (k && apistore_events_renames(t->group))
		apistore_form_event(take_text, len, false, &shown);
	else
		return answer_of(code, take_text, len);
	file_wipe(take_text, len);
	return answer_of(code, shown.data, shown.len);
}

/* Answer after a function has reported a database failure by its result alone. */
struct apistore_answer apistore_write_trouble(struct apistore_objects *s)
{
	struct err err = ERR_INIT;

	if (!apistore_objects_trouble(s, &err))
		DIE("database failure without an error");
	return apistore_status_storage(&err);
}

/* ---- reads */

/* A resourceVersion in a get asks for a version at least as new: the current one always is, unless
 * the client's is from the future. */
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
	return shown_as(s, t, 200, text, len);
}

/* Start a list and produce its first piece; a short list is complete then. */
static struct apistore_answer list(struct apistore_objects *s, struct apistore_target *take_t)
{
	struct apistore_answer answer = {0};
	struct apistore_listing *l = apistore_query_list(s, take_t, &answer);
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;
	int rc;

	if (!l)
		return answer;
	rc = apistore_listing_pull(l, &out, PIECE, &err);
	if (rc < 0) {
		body_fini(&out);
		apistore_listing_free(l);
		(void)apistore_objects_failed(s, &err);
		return apistore_write_trouble(s);
	}
	if (rc > 0)
		answer.more = l;
	else
		apistore_listing_free(l);
	answer.code = 200;
	answer.body = steal_ptr(&out.data);
	answer.len = out.len;
	return answer;
}

/* ---- preparing an object */

/* The value is copied, since both objects live on. */
void apistore_write_copy(struct json_object *o, struct json_object *from, const char *name)
{
	struct json_object *v = NULL;

	json_drop(o, name);
	if (from && json_object_object_get_ex(from, name, &v))
		json_add(o, name, json_copy(v));
}

/* Drop a member that is null, or an empty map or list. */
static void drop_empty(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(o, name, &v))
		return;
	if (!v || (json_object_is_type(v, json_type_object) && json_len(v) == 0) ||
		(json_object_is_type(v, json_type_array) && json_len(v) == 0))
		json_drop(o, name);
}

/* Restore the metadata that only the server sets from the current object, or remove it (was NULL),
 * and drop empty lists and maps, which kube-apiserver does not store. */
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

/* Fill in kind and apiVersion, which a client may omit because the path implies them. */
static void complete(const struct apistore_write *w, struct json_object *o)
{
	const struct schema_kind *k = w->kind->schema;
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

/* Record field ownership after a write; an apply has already done it. */
static void note_manager(const struct apistore_write *w, struct json_object *o)
{
	const struct apistore_place p =
		apistore_place_object(w->kind, &apistore_objects_schema(w->s)->lists);
	char now[CLOCK_RFC3339_LEN];
	const struct apistore_manager m =
		apistore_write_manager(w, json_get_str(o, "apiVersion"), now);

	if (!w->applied)
		apistore_managed_update(&p, w->kind, &m, w->was, o);
}

/* Does the object exist? Its text is wiped, as it may be a Secret. */
static bool is_there(const struct apistore_write *w)
{
	size_t len = 0;
	char *text = apistore_objects_text(w->s, &w->key, &len);

	file_wipe(text, len);
	return text != NULL;
}

/* Validate and store an object: the end of every write except a deletion. The order of the checks
 * is that of kube-apiserver, and decides which error a client sees when there are several. */
struct apistore_answer apistore_write_store(
	const struct apistore_write *w, struct json_object *take_o)
{
	cleanup_json struct json_object *o = take_o;
	struct apistore_answer refused;
	struct apistore_stored stored;

	complete(w, o);
	if (apistore_admit_decode(w, o, &refused) < 0 ||
		apistore_check_object(w, o, &refused) < 0 ||
		apistore_admit_read(w, o, &refused) < 0)
		return refused;
	/* From here on, o has the server's values for what clients cannot set. */
	keep_meta(&w->key, o, w->was);
	if (w->kind->status && !w->t->sub[0])
		apistore_write_copy(o, w->was, "status");
	if (apistore_check_meta(w, &refused) < 0 || apistore_rules(w->t, o, w->was, &refused) < 0 ||
		apistore_admit_check(w, o, &refused) < 0)
		return refused;
	if (w->create && !w->dry && w->has_version)
		return apistore_status_refusal(
			500, NULL, "resourceVersion should not be set on objects to be created");
	/* An existing object is reported last, after all that is wrong with the new one. */
	if (w->create && is_there(w))
		return apistore_status_exists(w->t);
	if (w->kind->schema && w->kind->custom && !w->t->sub[0])
		apistore_meta_warn(o, w->warnings);
	note_manager(w, o);
	if (w->applied && w->was)
		apistore_managed_keep_times(w->was, o);
	/* Validation saw the names of the requested group; the store has those of core Events. */
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

/* Generate a name as kube-apiserver does: five characters without vowels and look-alikes after at
 * most 58 of the prefix. */
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

/* Create an object. A missing name is left to the validation, which reports it with all other
 * errors. */
static struct apistore_answer create(const struct apistore_write *w, struct json_object *body)
{
	const char *name = json_get_str(body, "metadata/name"),
		   *prefix = json_get_str(body, "metadata/generateName"),
		   *rv = json_get_str(body, "metadata/resourceVersion");
	cleanup_json struct json_object *o = json_copy(body);
	uint64_t version = 0;
	cleanup_free char *generated = NULL;
	struct apistore_target named = *w->t;
	struct apistore_write here = *w;
	struct apistore_answer refused;

	here.create = true;
	here.has_version = rv && str_to_u64(rv, INT64_MAX, &version) == 0 && version != 0;
	here.t = &named;
	if ((!name || !*name) && prefix && *prefix && json_get_obj(o, "metadata")) {
		name = generated = generated_name(prefix);
		json_add_str(json_get(o, "metadata"), "name", name);
	}
	name = name ? name : "";   /* refused by the validation */
	named.name = (char *)name; /* borrowed for the call */
	here.key.name = name;
	if (apistore_check_version(w, body, &refused) < 0)
		return refused;
	return apistore_write_store(&here, steal_ptr(&o));
}

/* ---- entry point */

static void note_duplicate(void *arg, const char *path)
{
	schema_texts_add(arg, "duplicate field \"%s\"", path);
}

/* Return the current object in the form of the requested group; NULL: not found. */
static struct json_object *seen_by(const struct apistore_write *w)
{
	struct json_object *o = apistore_objects_get(w->s, &w->key);

	if (apistore_events_renames(w->t->group))
		apistore_events_from_core(o);
	return o;
}

/* Is the requested subresource served? Only status is, on kinds that have it. */
static bool has_sub(const struct apistore_write *w)
{
	return str_eq(w->t->sub, "status") && w->kind->status;
}

/* The words of kube-apiserver for a method that custom resources lack on a subresource. */
static struct apistore_answer not_on_sub(const struct apistore_write *w, const char *verb)
{
	return apistore_status_refusal(405, "MethodNotAllowed",
		"%s is not supported on resources of kind \"%s\"", verb, w->t->qualified);
}

/* Parse and check a write, then run it. Bodies of Secrets are wiped before they are freed. */
static struct apistore_answer write_request(
	struct apistore_write *w, const struct apistore_request *r)
{
	bool is_post = str_eq(r->method, "POST"), is_delete = str_eq(r->method, "DELETE"),
	     is_patch = str_eq(r->method, "PATCH"), named = w->t->name[0] != '\0';
	cleanup_json struct json_object *body = NULL, *was = NULL;
	struct apistore_answer answer;
	struct err err = ERR_INIT;

	if (w->kind->custom && w->t->sub[0] && (is_post || is_delete))
		return not_on_sub(w, is_post ? "create" : "delete");
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
	if (apistore_options_read(w, r, body, &answer) < 0)
		return answer;
	if (named)
		w->was = was = seen_by(w);
	answer = is_post               ? create(w, body)
		 : is_delete && !named ? apistore_remove_all(w)
		 : is_delete           ? apistore_remove_object(w, body)
				       : apistore_change(w, r, body);
	if (str_eq(w->key.resource, "secrets")) {
		json_wipe(body);
		json_wipe(was);
	}
	return answer;
}

/* A failure of the database during the request replaces its answer, whatever the answer was: it may
 * rest on objects that could not be read. */
struct apistore_answer apistore_request(struct apistore_objects *s, struct apistore_target *take_t,
	const struct apistore_request *r)
{
	cleanup_apistore_target struct apistore_target t = *take_t;
	struct schema_texts warnings = {NULL, 0, 0};
	struct apistore_write w = {.s = s,
		.t = &t,
		.kind = apistore_objects_kind(s, t.group, t.resource),
		.key = {t.qualified, t.ns, t.name},
		.warnings = &warnings};
	struct apistore_answer answer;
	struct err err = ERR_INIT;

	*take_t = (struct apistore_target){0};
	if (apistore_objects_trouble(s, &err)) /* this turn will be rolled back */
		return apistore_status_storage(&err);
	if (t.sub[0] && !has_sub(&w)) /* for a custom kind, kube-apiserver reports the object */
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
