/* SPDX-License-Identifier: MIT */
/*
 * Reads, and the four writes. Each write computes the object that would be stored; it is admitted
 * (admit.c) with the fields that only the server sets, and stored. A patch whose result names
 * another object, uid or resourceVersion is refused before that, and a request to the status
 * subresource stores only the status of the result.
 */
#include "config.h"

#include "tec/apireq/request.h"

#include <stdio.h>
#include <string.h>

#include "tec/store/gc.h"
#include "tec/apireq/patch.h"
#include "tec/apireq/listing.h"
#include "tec/apireq/managed.h"
#include "tec/base/clock.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/base/yaml.h"

#include "admit.h"

#define ANY_RESOURCE "the server could not find the requested resource"
#define PIECE        (256u << 10) /* bytes of a list that come with the answer */

#define MODIFIED                                                                                   \
	"the object has been modified; please apply your changes to the latest version and try again"

#define UNPROCESSABLE "the server rejected our request due to an error in our request"

/* Limits of a body: a few times what our kinds need. */
static const struct json_limits limits = {APIREQ_BODY_MAX, 128, 400000, false};

/* ---- answers */

/* Answer with an object in the form that the request asked for. */
static struct apireq_answer shown_as(struct store_objects *s, const struct apireq_request_info *t,
	int code, char *take_text, size_t len)
{
	const struct schema_kind *k = store_objects_kind(s, t->group, t->resource)->schema;
	struct body shown = BODY_INIT;

	if (!apireq_representation_add(
		    &t->form, k, APIREQ_REPRESENTATION_FIRST, t->group, take_text, len, &shown))
		return (struct apireq_answer){.code = code, .body = take_text, .len = len};
	file_wipe(take_text, len);
	return (struct apireq_answer){.code = code, .body = shown.data, .len = shown.len};
}

/* Answer after a function has reported a database failure by its result alone. */
static struct apireq_answer trouble(struct store_objects *s)
{
	struct err err = ERR_INIT;

	if (!store_objects_trouble(s, &err))
		DIE("database failure without an error");
	return apireq_status_storage(&err);
}

/* ---- reads */

/* A resourceVersion in a get asks for a version at least as new: the current one always is, unless
 * the client's is from the future. */
static struct apireq_answer get(struct store_objects *s, const struct apireq_request_info *t)
{
	const struct store_key key = {t->qualified, t->ns, t->name};
	cleanup_free char *rv = apireq_request_info_param(t, "resourceVersion");
	uint64_t want = 0, now = store_objects_rv(s);
	size_t len = 0;
	char *text;

	if (rv && *rv && str_to_u64(rv, INT64_MAX, &want) < 0)
		return apireq_status_refusal(
			400, "Invalid value for resourceVersion: %s", log_esc(rv));
	if (want > now)
		return apireq_status_too_large(want, now);
	text = store_objects_text(s, &key, &len);
	if (!text)
		return apireq_status_absent(t);
	return shown_as(s, t, 200, text, len);
}

/* Start a list and produce its first piece; a short list is complete then. */
static struct apireq_answer list(struct store_objects *s, struct apireq_request_info *take_t)
{
	struct apireq_answer answer = {0};
	struct apireq_listing *l = apireq_listing_start(s, take_t, &answer);
	struct body out = BODY_INIT;
	struct err err = ERR_INIT;
	int rc;

	if (!l)
		return answer;
	rc = apireq_listing_pull(l, &out, PIECE, &err);
	if (rc < 0) {
		body_fini(&out);
		apireq_listing_free(l);
		(void)store_objects_failed(s, &err);
		return trouble(s);
	}
	if (rc > 0)
		answer.more = l;
	else
		apireq_listing_free(l);
	answer.code = 200;
	answer.body = steal_ptr(&out.data);
	answer.len = out.len;
	return answer;
}

/* ---- preparing an object */

/* Set a member of o to a copy of that of from; remove it if from is NULL or lacks it. */
static void copy_member(struct json_object *o, struct json_object *from, const char *name)
{
	struct json_object *v = NULL;

	json_drop(o, name);
	if (from && json_object_object_get_ex(from, name, &v))
		json_add(o, name, json_copy(v));
}

/* Restore the metadata that only the server sets from the current object, or remove it (was NULL),
 * and drop empty lists and maps, which kube-apiserver does not store. */
static void keep_meta(const struct store_key *key, struct json_object *o, struct json_object *was)
{
	static const char *const members[] = {"name", "namespace", "uid", "creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"},
				 *const never_empty[] = {
					 "annotations", "finalizers", "labels", "ownerReferences"};
	struct json_object *m = store_objects_meta(o), *v = NULL;

	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		copy_member(m, was ? json_get(was, "metadata") : NULL, members[i]);
	for (size_t i = 0; i < ARRAY_LEN(never_empty); i++)
		if (json_object_object_get_ex(m, never_empty[i], &v) &&
			(!v || ((json_object_is_type(v, json_type_object) ||
					json_object_is_type(v, json_type_array)) &&
				       json_len(v) == 0)))
			json_drop(m, never_empty[i]);
	json_add_str(m, "name", key->name);
	json_add_str(m, "namespace", key->ns[0] ? key->ns : NULL);
}

/* Describe the field manager. version: the object's apiVersion; now: a buffer of CLOCK_RFC3339_LEN
 * bytes, which the result borrows. */
static struct apireq_manager manager_of(
	const struct apireq_admit *w, const char *version, char *now)
{
	clock_format(clock_wall_s(), now);
	return (struct apireq_manager){w->opt.manager, version, w->t->sub, now};
}

/* Complete and validate an object that is to be stored. From the middle on, o has the server's
 * values for what clients cannot set. */
static int prepare(
	const struct apireq_admit *w, struct json_object *o, struct apireq_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;
	cleanup_free char *gv =
		k ? xasprintf("%s%s%s", k->group, k->group[0] ? "/" : "", k->version) : NULL;

	/* A client may omit kind and apiVersion, because the path implies them. */
	if (k && !json_get(o, "apiVersion"))
		json_add_str(o, "apiVersion", gv);
	if (k && !json_get(o, "kind"))
		json_add_str(o, "kind", k->kind);
	if (apireq_admit_body(w, o, refused) < 0)
		return -1;
	keep_meta(&w->key, o, w->was);
	if (w->kind->status && !w->t->sub[0])
		copy_member(o, w->was, "status");
	return apireq_admit_object(w, o, refused);
}

/* Store a prepared object, and answer with it. */
static struct apireq_answer store(const struct apireq_admit *w, struct json_object *take_o)
{
	struct apireq_answer answer;
	struct store_stored stored;

	if (w->kind->schema && w->kind->custom && !w->t->sub[0])
		apireq_admit_warn(take_o, w->warnings);
	/* Validation saw the names of the requested group; the store has those of core Events. */
	if (apireq_representation_renames(w->t->group)) {
		apireq_representation_rename(take_o, true);
		apireq_representation_rename(w->was, true);
	}
	if (store_objects_store(
		    w->s, &w->key, w->was, take_o, w->opt.dry, APIREQ_OBJECT_MAX, &stored) < 0) {
		file_wipe(stored.text, stored.len);
		answer = trouble(w->s);
	} else if (stored.too_large) {
		file_wipe(stored.text, stored.len);
		answer = apireq_status_refusal(
			413, "Request entity too large: limit is %u", APIREQ_OBJECT_MAX);
	} else {
		answer = shown_as(w->s, w->t, w->was ? 200 : 201, stored.text, stored.len);
	}
	json_object_put(stored.o);
	return answer;
}

/* The end of every write but an apply: record the ownership of its fields. */
static struct apireq_answer store_as_update(
	const struct apireq_admit *w, struct json_object *take_o)
{
	const struct apireq_place p =
		apireq_place_object(w->kind, &store_objects_schema(w->s)->lists);
	char now[CLOCK_RFC3339_LEN];
	const struct apireq_manager m = manager_of(w, json_get_str(take_o, "apiVersion"), now);

	apireq_managed_update(&p, w->kind, &m, w->was, take_o);
	return store(w, take_o);
}

/* ---- creates */

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
static struct apireq_answer create(const struct apireq_admit *w, struct json_object *body)
{
	const char *name = json_get_str(body, "metadata/name"),
		   *prefix = json_get_str(body, "metadata/generateName"),
		   *rv = json_get_str(body, "metadata/resourceVersion");
	cleanup_json struct json_object *o = json_copy(body);
	cleanup_free char *generated = NULL;
	struct apireq_request_info named = *w->t;
	struct apireq_admit here = *w;
	struct apireq_answer refused;
	uint64_t version = 0;

	here.t = &named;
	if ((!name || !*name) && prefix && *prefix && json_get_obj(o, "metadata")) {
		name = generated = generated_name(prefix);
		json_add_str(json_get(o, "metadata"), "name", name);
	}
	name = name ? name : "";   /* refused by the validation */
	named.name = (char *)name; /* borrowed for the call */
	here.key.name = name;
	if (apireq_admit_type(w, body, &refused) < 0 || prepare(&here, o, &refused) < 0)
		return refused;
	if (rv && str_to_u64(rv, INT64_MAX, &version) == 0 && version != 0 && !w->opt.dry)
		return apireq_status_refusal(
			500, "resourceVersion should not be set on objects to be created");
	/* An existing object is reported last, after all that is wrong with the new one. */
	if (apireq_admit_exists(w->s, &here.key))
		return apireq_status_exists(&named);
	return store_as_update(&here, steal_ptr(&o));
}

/* ---- identity of a changed object */

/* Check name, uid and resourceVersion of the result, where they are given, against the current
 * object. resourceVersion is the optimistic lock: a mismatch is a Conflict. False: *refused is
 * set. */
static bool is_meant(
	const struct apireq_admit *w, struct json_object *o, struct apireq_answer *refused)
{
	const char *name = json_get_str(o, "metadata/name");
	const char *rv = json_get_str(o, "metadata/resourceVersion");
	const char *uid = json_get_str(o, "metadata/uid");
	cleanup_free char *why = NULL;

	if (name && !str_eq(name, w->t->name)) {
		*refused = apireq_status_refusal(400,
			"the name of the object (%s) does not match the name on the URL (%s)", name,
			w->t->name);
	} else if (uid && !w->was) {
		why = xasprintf(
			"uid mismatch: the provided object specified uid %s, and no existing object was found",
			uid);
		*refused = apireq_status_conflict(w->t, w->t->resource, why);
	} else if (uid && !str_eq(uid, json_get_str(w->was, "metadata/uid"))) {
		why = xasprintf("\"%s\": field is immutable", uid);
		*refused = apireq_status_invalid(
			w->t, json_get_str(w->was, "kind"), "metadata.uid", "Invalid value", why);
	} else if (rv && *rv && !str_eq(rv, json_get_str(w->was, "metadata/resourceVersion"))) {
		*refused = apireq_status_conflict(w->t, w->t->resource, MODIFIED);
	} else {
		return true;
	}
	return false;
}

/* Is the member a string, or absent? */
static bool is_word(struct json_object *o, const char *name)
{
	struct json_object *v = json_get(o, name);

	return !v || json_object_is_type(v, json_type_string);
}

static struct apireq_answer no_name(const struct apireq_admit *w)
{
	return apireq_status_refusal(400,
		"the name of the object (%s based on URL) was undeterminable: name must be provided",
		w->t->name);
}

/* Answer a custom object whose kind or apiVersion the patch changed. The details name the group of
 * the result, as in kube-apiserver. */
static struct apireq_answer other_type(
	const struct apireq_admit *w, struct json_object *o, const char *field, const char *must)
{
	const char *version = json_get_str(o, "apiVersion"), *slash = strchr(version, '/');
	cleanup_free char *group =
		slash ? xstrndup(version, (size_t)(slash - version)) : xstrdup("");
	const struct apireq_request_info named = {.group = group, .name = w->t->name};
	cleanup_free char *why = xasprintf("\"%s\": must be %s", json_get_str(o, field), must);

	return apireq_status_invalid(&named, json_get_str(o, "kind"), field, "Invalid value", why);
}

/* Check that a patch kept the object's kind and apiVersion, by the rules of kube-apiserver's
 * decoders: the missing kind of a built-in object is filled in, that of a custom object is an
 * error. */
static bool keeps_type(
	const struct apireq_admit *w, struct json_object *o, struct apireq_answer *refused)
{
	const char *must_kind = json_get_str(w->was, "kind"),
		   *must_version = json_get_str(w->was, "apiVersion"), *kind, *version;
	bool custom = w->kind->custom;

	if (!is_word(o, "kind") || !is_word(o, "apiVersion")) {
		*refused = apireq_admit_invalid("kind or apiVersion is not a string");
		return false;
	}
	kind = json_get_str(o, "kind");
	version = json_get_str(o, "apiVersion");
	if (custom && (!kind || !*kind)) {
		*refused = apireq_admit_invalid("Object 'Kind' is missing");
		return false;
	}
	/* Without a version, kube-apiserver decodes a built-in kind to a type that has no name, and
	 * so complains of the name. */
	if (!version || !*version) {
		*refused =
			custom ? apireq_status_refusal(400,
					 "Object 'apiVersion' is missing in the result of the patch")
			       : no_name(w);
		return false;
	}
	if (!kind || !*kind)
		kind = json_get_str(json_add_str(o, "kind", must_kind), "kind");
	if (str_eq(kind, must_kind) && str_eq(version, must_version))
		return true;
	if (custom && strchr(version, '/') == strrchr(version, '/')) {
		if (w->t->sub[0]) /* only its status is used */
			return true;
		*refused = str_eq(kind, must_kind) ? other_type(w, o, "apiVersion", must_version)
						   : other_type(w, o, "kind", must_kind);
		return false;
	}
	*refused = apireq_admit_invalid("kind and apiVersion name another kind");
	return false;
}

/* Store the result of a PUT or of any patch other than apply. */
static struct apireq_answer update(const struct apireq_admit *w, struct json_object *take_o)
{
	cleanup_json struct json_object *o = take_o;
	struct apireq_answer refused;
	struct json_object *meta;

	if ((w->patched && !keeps_type(w, o, &refused)) || !is_meant(w, o, &refused))
		return refused;
	meta = json_get(o, "metadata"); /* if not an object, it is refused by the decoder below */
	if (!json_get(o, "metadata/name") && (!meta || json_object_is_type(meta, json_type_object)))
		return no_name(w);
	if (w->t->sub[0]) {
		/* Only the status comes from the request, but the whole must be valid for it. */
		if (apireq_admit_decode(w, o, &refused) < 0)
			return refused;
		meta = json_copy(w->was);
		copy_member(meta, o, "status");
		json_object_put(o);
		o = meta;
	}
	return prepare(w, o, &refused) < 0 ? refused : store_as_update(w, steal_ptr(&o));
}

/* ---- kinds of change */

static struct apireq_answer merge_patch(const struct apireq_admit *w, struct json_object *body)
{
	struct json_object *o = json_copy(w->was);

	apireq_patch_merge(o, body);
	return update(w, o);
}

/* Apply a strategic merge patch. The schema says which lists merge by key. */
static struct apireq_answer strategic_patch(const struct apireq_admit *w, struct json_object *body)
{
	const struct apireq_place p =
		apireq_place_object(w->kind, &store_objects_schema(w->s)->lists);
	cleanup_json struct json_object *o = json_copy(w->was);
	struct err err = ERR_INIT;

	if (apireq_patch_strategic(&p, o, body, &err) < 0)
		return apireq_status_refusal(400, "%s", err.text);
	return update(w, steal_ptr(&o));
}

/* Apply a JSON patch (RFC 6902). kube-apiserver hides the reason of a failed operation, so this
 * does too. */
static struct apireq_answer json_patch(const struct apireq_admit *w, struct json_object *body)
{
	cleanup_json struct json_object *o = json_copy(w->was);
	struct apireq_answer refused;
	struct err err = ERR_INIT;

	if (apireq_patch_json(&o, body, &err) < 0)
		return apireq_status_refusal(422, UNPROCESSABLE);
	for (size_t i = 0; i < json_len(body); i++) {
		json_each (json_at(body, i), name, v) {
			if (!str_eq(name, "op") && !str_eq(name, "path") && !str_eq(name, "from") &&
				!str_eq(name, "value"))
				schema_texts_add(w->warnings,
					"json patch unknown field \"[%zu].%s\"", i, name);
		}
	}
	if (apireq_admit_strict(w, &refused) < 0)
		return refused;
	if (!json_object_is_type(o, json_type_object))
		return apireq_admit_invalid("the result is not an object");
	return update(w, steal_ptr(&o));
}

/* Server-side apply: merge the body by field ownership. Unlike other patches it creates the object
 * if there is none. */
static struct apireq_answer apply(const struct apireq_admit *w, struct json_object *body)
{
	const struct apireq_place p =
		apireq_place_object(w->kind, &store_objects_schema(w->s)->lists);
	cleanup_free char *version =
		xasprintf("%s%s%s", w->t->group, w->t->group[0] ? "/" : "", w->t->version);
	char now[CLOCK_RFC3339_LEN];
	const struct apireq_manager m = manager_of(w, version, now);
	cleanup_json struct json_object *o = NULL;
	struct apireq_answer refused;

	if (!is_meant(w, body, &refused))
		return refused;
	o = apireq_managed_apply(
		&p, w->kind, &m, w->was, body, apireq_request_info_flag(w->t, "force"), &refused);
	if (!o || prepare(w, o, &refused) < 0)
		return refused;
	if (w->was)
		apireq_managed_keep_times(w->was, o);
	return store(w, steal_ptr(&o));
}

/* ---- content types */

struct patch_kind {
	const char *type;
	struct apireq_answer (*run)(const struct apireq_admit *w, struct json_object *body);
	bool built_in; /* not for custom resources */
};

static const struct patch_kind patch_kinds[] = {
	{"application/json-patch+json", json_patch, false},
	{"application/merge-patch+json", merge_patch, false},
	{"application/strategic-merge-patch+json", strategic_patch, true},
	{"application/apply-patch+yaml", apply, false},
};

/* Choose the patch function by the content type, ignoring its parameters. NULL: not supported for
 * this kind. */
static const struct patch_kind *kind_of(
	const struct apireq_admit *w, const struct apireq_request *r)
{
	const char *have = r->content_type ? r->content_type : "";
	size_t n = strcspn(have, "; \t");

	for (size_t i = 0; i < ARRAY_LEN(patch_kinds); i++)
		if (strlen(patch_kinds[i].type) == n && strncmp(have, patch_kinds[i].type, n) == 0)
			return patch_kinds[i].built_in && w->kind->custom ? NULL : &patch_kinds[i];
	return NULL;
}

/* Parse the body of a patch. This comes before the object is read, so a malformed body is answered
 * with 400 even if there is no such object. */
static struct json_object *read_patch(
	const struct apireq_admit *w, const struct apireq_request *r, struct apireq_answer *refused)
{
	const struct patch_kind *k = kind_of(w, r);
	const char *body = r->body ? r->body : "";
	cleanup_json struct json_object *o = NULL;
	struct err err = ERR_INIT;

	if (!k) {
		/* kube-apiserver has two different texts for built-in and custom kinds. */
		*refused = apireq_status_refusal(415, "%s",
			!w->kind->custom
				? "415: Unsupported Media Type"
				: "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml");
		return NULL;
	}
	/* Only an apply may be YAML. JSON, a subset of it, is parsed as JSON: the limits of that
	 * parser are wider. */
	if (k->run == apply && body[strspn(body, " \t\r\n")] != '{')
		o = yaml_parse_go(body, r->len, &err);
	else
		o = json_parse(body, r->len, &limits, &err);
	if (o && k->run == json_patch && apireq_patch_check(o, &err) < 0) {
		json_object_put(o);
		o = NULL;
	}
	if (!o && err.http)
		*refused = apireq_status_refusal(err.http, "%s", err.text);
	else if (!o)
		*refused = apireq_status_refusal(400, "error decoding %s: %s",
			k->run == apply ? "YAML" : "patch",
			err_is_set(&err) ? err.text : "it is null");
	else if (k->run != json_patch && !json_object_is_type(o, json_type_object))
		*refused = apireq_status_refusal(400,
			"error decoding patch: must be of type object, not %s",
			json_type_to_name(json_object_get_type(o)));
	else
		return steal_ptr(&o);
	return NULL;
}

/* Run a PUT (body as parsed by the caller) or a PATCH. Only an apply to the object itself may
 * create it. */
static struct apireq_answer change(
	const struct apireq_admit *w, const struct apireq_request *r, struct json_object *body)
{
	const struct patch_kind *k = str_eq(r->method, "PATCH") ? kind_of(w, r) : NULL;
	cleanup_free char *manager = apireq_request_info_param(w->t, "fieldManager");
	struct apireq_admit here = *w;
	struct apireq_answer refused;

	here.patched = k && k->run != apply;
	/* An apply must name its field manager, unlike other requests. */
	if (k && k->run == apply && (!manager || !*manager))
		return apireq_status_invalid(&apireq_status_options, "PatchOptions", "fieldManager",
			"Required value", "is required for apply patch");
	if (!w->was && (!k || k->run != apply || w->t->sub[0]))
		return apireq_status_absent(w->t);
	if (k)
		return k->run(&here, body);
	return apireq_admit_type(w, body, &refused) < 0 ? refused : update(w, json_copy(body));
}

/* ---- deletions */

/* Check uid and resourceVersion in the preconditions of DeleteOptions. */
static int check_preconditions(
	const struct apireq_admit *w, struct json_object *body, struct apireq_answer *refused)
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
		*refused = apireq_status_conflict(w->t, json_get_str(w->was, "kind"), why);
		return -1;
	}
	return 0;
}

/* Mark and store. A dry run computes the same answer without storing. */
static struct apireq_answer remove_object(const struct apireq_admit *w, struct json_object *body)
{
	struct apireq_answer answer = {0};
	struct store_stored stored;
	struct json_object *o;

	if (!w->was)
		return apireq_status_absent(w->t);
	if (check_preconditions(w, body, &answer) < 0)
		return answer;
	o = json_copy(w->was);
	store_gc_mark(o, w->opt.policy);
	if (store_objects_store(w->s, &w->key, w->was, o, w->opt.dry, 0, &stored) < 0)
		answer = trouble(w->s);
	else if (stored.gone)
		answer = apireq_status_deleted(w->t, json_get_str(stored.o, "metadata/uid"));
	else /* finalizers keep it: answer with the marked object */
		answer = (struct apireq_answer){
			.code = 200, .body = steal_ptr(&stored.text), .len = stored.len};
	file_wipe(stored.text, stored.len);
	json_object_put(stored.o);
	return answer;
}

/* Is this object one of the collection to delete? */
static bool is_selected(void *arg, const struct store_version *v)
{
	const struct apireq_admit *w = arg;

	return store_selector_matches(w->t->select, v->key.ns, v->key.name, v->meta);
}

static void remove_one(void *arg, const struct store_key *key)
{
	const struct apireq_admit *w = arg;

	if (!w->opt.dry)
		json_object_put(store_gc_delete(w->s, key, w->opt.policy));
}

/* Delete all that the target selects. The answer is a Status, where kube-apiserver returns the list
 * of deleted objects. */
static struct apireq_answer remove_all(struct apireq_admit *w)
{
	const struct store_scan scan = {.resource = w->key.resource,
		.ns = w->key.ns[0] ? w->key.ns : NULL,
		.no_body = true,
		.only_keys = w->t->select == NULL,
		.wants = is_selected};
	struct err err = ERR_INIT;

	if (store_db_scan_keys(store_objects_db(w->s), &scan, remove_one, w, &err) < 0)
		(void)store_objects_failed(w->s, &err);
	return apireq_status_success(NULL);
}

/* ---- entry point */

static void note_duplicate(void *arg, const char *path)
{
	schema_texts_add(arg, "duplicate field \"%s\"", path);
}

/* Parse and check a write, then run it. Bodies of Secrets are wiped before they are freed. */
static struct apireq_answer write_request(struct apireq_admit *w, const struct apireq_request *r)
{
	bool is_post = str_eq(r->method, "POST"), is_delete = str_eq(r->method, "DELETE"),
	     is_patch = str_eq(r->method, "PATCH"), named = w->t->name[0] != '\0';
	cleanup_json struct json_object *body = NULL, *was = NULL;
	struct apireq_answer answer;
	struct err err = ERR_INIT;

	if (w->kind->custom && w->t->sub[0] && (is_post || is_delete))
		return apireq_status_refusal(405, "%s is not supported on resources of kind \"%s\"",
			is_post ? "create" : "delete", w->t->qualified);
	if ((is_post ? named : !named && !is_delete) || (is_delete && w->t->sub[0]) ||
		(!is_post && !is_delete && !is_patch && !str_eq(r->method, "PUT")))
		return apireq_status_refusal(
			405, "the server does not allow this method on the requested resource");
	if (r->len > APIREQ_BODY_MAX)
		return apireq_status_refusal(
			413, "Request entity too large: limit is %u", APIREQ_BODY_MAX);
	if (is_patch) {
		body = read_patch(w, r, &answer);
		if (!body)
			return answer;
	} else if (r->len || !is_delete) {
		body = json_parse_last(
			r->body ? r->body : "", r->len, &limits, note_duplicate, w->warnings, &err);
		if (!json_object_is_type(body, json_type_object))
			return apireq_status_refusal(400, "the body is not a JSON object%s%s",
				*err.text ? ": " : "", err.text);
	}
	if (apireq_options_read(w->t, r, body, &w->opt, &answer) < 0)
		return answer;
	if (named)
		w->was = was = store_objects_get(w->s, &w->key);
	if (apireq_representation_renames(w->t->group))
		apireq_representation_rename(was, false);
	answer = is_post               ? create(w, body)
		 : is_delete && !named ? remove_all(w)
		 : is_delete           ? remove_object(w, body)
				       : change(w, r, body);
	if (str_eq(w->key.resource, "secrets")) {
		json_wipe(body);
		json_wipe(was);
	}
	return answer;
}

/* A failure of the database during the request replaces its answer, whatever the answer was: it may
 * rest on objects that could not be read. */
struct apireq_answer apireq_request(
	struct store_objects *s, struct apireq_request_info *take_t, const struct apireq_request *r)
{
	cleanup_apireq_request_info struct apireq_request_info t = *take_t;
	struct schema_texts warnings = {NULL, 0, 0};
	struct apireq_admit w = {.s = s,
		.t = &t,
		.kind = store_objects_kind(s, t.group, t.resource),
		.key = {t.qualified, t.ns, t.name},
		.warnings = &warnings};
	struct apireq_answer answer;
	struct err err = ERR_INIT;

	*take_t = (struct apireq_request_info){0};
	if (store_objects_trouble(s, &err)) /* this turn will be rolled back */
		return apireq_status_storage(&err);
	/* The only subresource is status. For a custom kind, kube-apiserver reports the object. */
	if (t.sub[0] && !(str_eq(t.sub, "status") && w.kind->status))
		return w.kind->custom ? apireq_status_absent(&t)
				      : apireq_status_refusal(404, ANY_RESOURCE);
	if (!str_eq(r->method, "GET"))
		answer = write_request(&w, r);
	else
		answer = t.name[0] ? get(s, &t) : list(s, &t);
	if (w.opt.fields == APIREQ_FIELDS_IGNORE || answer.code / 100 != 2)
		schema_texts_fini(&warnings);
	if (!store_objects_trouble(s, &err)) {
		answer.warnings = warnings;
		return answer;
	}
	schema_texts_fini(&warnings);
	apireq_answer_fini(&answer);
	return apireq_status_storage(&err);
}
