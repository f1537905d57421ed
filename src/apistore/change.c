/* SPDX-License-Identifier: MIT */
/*
 * PUT, and one function per kind of patch. Each computes the new object from the current one and
 * the body. A result that names another object, uid or resourceVersion is refused before it is
 * stored. A request to the status subresource stores only the status of the result.
 */
#include "config.h"

#include <string.h>

#include "tec/apistore/jsonpatch.h"
#include "tec/apistore/patch.h"
#include "tec/apistore/strategic.h"
#include "tec/base/clock.h"
#include "tec/base/mem.h"
#include "tec/base/yaml.h"

#include "write.h"

#define MODIFIED                                                                                   \
	"the object has been modified; please apply your changes to the latest version and try again"

#define UNPROCESSABLE "the server rejected our request due to an error in our request"

/* ---- identity of the result */

/* Answer 422 for a patch whose result is invalid. Unlike kube-apiserver's, the message does not
 * quote the whole object, which may be a Secret. */
struct apistore_answer apistore_change_invalid(const char *why)
{
	static const struct apistore_target none = {.group = (char *)"", .name = (char *)""};

	return apistore_status_invalid(&none, "", "patch", "Invalid value", why);
}

/* Check name, uid and resourceVersion of the result, where they are given, against the current
 * object. resourceVersion is the optimistic lock: a mismatch is a Conflict. False: *refused is
 * set. */
static bool is_meant(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	const char *name = json_get_str(o, "metadata/name");
	const char *rv = json_get_str(o, "metadata/resourceVersion");
	const char *uid = json_get_str(o, "metadata/uid");
	cleanup_free char *why = NULL;

	if (name && !str_eq(name, w->t->name)) {
		*refused = apistore_status_refusal(400, "BadRequest",
			"the name of the object (%s) does not match the name on the URL (%s)", name,
			w->t->name);
	} else if (uid && !w->was) {
		why = xasprintf(
			"uid mismatch: the provided object specified uid %s, and no existing object was found",
			uid);
		*refused = apistore_status_conflict(w->t, w->t->resource, why);
	} else if (uid && !str_eq(uid, json_get_str(w->was, "metadata/uid"))) {
		why = xasprintf("\"%s\": field is immutable", uid);
		*refused = apistore_status_invalid(
			w->t, json_get_str(w->was, "kind"), "metadata.uid", "Invalid value", why);
	} else if (rv && *rv && !str_eq(rv, json_get_str(w->was, "metadata/resourceVersion"))) {
		*refused = apistore_status_conflict(w->t, w->t->resource, MODIFIED);
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

static struct apistore_answer no_name(const struct apistore_write *w)
{
	return apistore_status_refusal(400, "BadRequest",
		"the name of the object (%s based on URL) was undeterminable: name must be provided",
		w->t->name);
}

/* Answer a result without apiVersion. Without it, kube-apiserver decodes a built-in kind to a type
 * that has no name, and so complains of the name. */
static struct apistore_answer no_version(const struct apistore_write *w, bool custom)
{
	if (custom)
		return apistore_status_refusal(400, "BadRequest",
			"Object 'apiVersion' is missing in the result of the patch");
	return no_name(w);
}

/* Answer a custom object whose kind or apiVersion the patch changed. The details name the group of
 * the result, as in kube-apiserver. */
static struct apistore_answer other_type(
	const struct apistore_write *w, struct json_object *o, const char *field, const char *must)
{
	const char *version = json_get_str(o, "apiVersion"), *slash = strchr(version, '/');
	cleanup_free char *group =
		slash ? xstrndup(version, (size_t)(slash - version)) : xstrdup("");
	const struct apistore_target named = {.group = group, .name = w->t->name};
	cleanup_free char *why = xasprintf("\"%s\": must be %s", json_get_str(o, field), must);

	return apistore_status_invalid(
		&named, json_get_str(o, "kind"), field, "Invalid value", why);
}

/* Check that a patch kept the object's kind and apiVersion, by the rules of kube-apiserver's
 * decoders: the missing kind of a built-in object is filled in, that of a custom object is an
 * error. */
static bool keeps_type(
	const struct apistore_write *w, struct json_object *o, struct apistore_answer *refused)
{
	const char *must_kind = json_get_str(w->was, "kind"),
		   *must_version = json_get_str(w->was, "apiVersion"), *kind, *version;
	bool custom = w->kind->custom;

	if (!is_word(o, "kind") || !is_word(o, "apiVersion")) {
		*refused = apistore_change_invalid("kind or apiVersion is not a string");
		return false;
	}
	kind = json_get_str(o, "kind");
	version = json_get_str(o, "apiVersion");
	if (custom && (!kind || !*kind)) {
		*refused = apistore_change_invalid("Object 'Kind' is missing");
		return false;
	}
	if (!version || !*version) {
		*refused = no_version(w, custom);
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
	*refused = apistore_change_invalid("kind and apiVersion name another kind");
	return false;
}

/* Store the result of a PUT or of any patch other than apply. */
static struct apistore_answer update(const struct apistore_write *w, struct json_object *take_o)
{
	cleanup_json struct json_object *o = take_o;
	struct apistore_answer refused;
	struct json_object *stored, *meta;

	if ((w->patched && !keeps_type(w, o, &refused)) || !is_meant(w, o, &refused))
		return refused;
	meta = json_get(o, "metadata"); /* if not an object, it is refused by the decoder below */
	if (!json_get(o, "metadata/name") && (!meta || json_object_is_type(meta, json_type_object)))
		return no_name(w);
	if (!w->t->sub[0])
		return apistore_write_store(w, steal_ptr(&o));
	if (apistore_admit_decode(w, o, &refused) < 0) /* the whole must be valid, for its status */
		return refused;
	/* Only the status comes from the request. */
	stored = json_copy(w->was);
	apistore_write_copy(stored, o, "status");
	return apistore_write_store(w, stored);
}

/* ---- kinds of change */

static struct apistore_answer replace(const struct apistore_write *w, struct json_object *body)
{
	struct apistore_answer refused;

	if (apistore_check_version(w, body, &refused) < 0)
		return refused;
	return update(w, json_copy(body));
}

static struct apistore_answer merge_patch(const struct apistore_write *w, struct json_object *body)
{
	struct json_object *o = json_copy(w->was);

	apistore_patch_merge(o, body);
	return update(w, o);
}

/* Apply a strategic merge patch. The schema says which lists merge by key. */
static struct apistore_answer strategic_patch(
	const struct apistore_write *w, struct json_object *body)
{
	const struct apistore_place p =
		apistore_place_object(w->kind, &apistore_objects_schema(w->s)->lists);
	cleanup_json struct json_object *o = json_copy(w->was);
	struct err err = ERR_INIT;

	if (apistore_strategic_merge(&p, o, body, &err) < 0)
		return apistore_status_refusal(400, "BadRequest", "%s", err.text);
	return update(w, steal_ptr(&o));
}

/* Add a warning for each unknown member of an operation, in the order of the patch. */
static void note_unknown(struct json_object *patch, struct schema_texts *unknown)
{
	for (size_t i = 0; i < json_len(patch); i++) {
		struct json_object *op = json_at(patch, i);

		if (!op)
			continue;
		json_each (op, name, v) {
			if (!str_eq(name, "op") && !str_eq(name, "path") && !str_eq(name, "from") &&
				!str_eq(name, "value"))
				schema_texts_add(
					unknown, "json patch unknown field \"[%zu].%s\"", i, name);
		}
	}
}

static struct apistore_answer refuse_unknown(const struct schema_texts *unknown)
{
	cleanup_strbuf struct strbuf why = STRBUF_INIT;

	for (size_t i = 0; i < unknown->n; i++)
		strbuf_addf(&why, "%s%s", i ? ", " : "strict decoding error: ", unknown->text[i]);
	return apistore_change_invalid(strbuf_str(&why));
}

/* Apply a JSON patch (RFC 6902). kube-apiserver hides the reason of a failed operation, so this
 * does too. */
static struct apistore_answer json_patch(const struct apistore_write *w, struct json_object *body)
{
	cleanup_json struct json_object *o = json_copy(w->was);
	struct err err = ERR_INIT;

	if (apistore_jsonpatch_apply(&o, body, &err) < 0)
		return apistore_status_refusal(422, "Invalid", UNPROCESSABLE);
	note_unknown(body, w->warnings);
	if (w->fields == APISTORE_FIELDS_STRICT && w->warnings->n > 0)
		return refuse_unknown(w->warnings);
	if (!json_object_is_type(o, json_type_object))
		return apistore_change_invalid("the result is not an object");
	return update(w, steal_ptr(&o));
}

/* Server-side apply: merge the body by field ownership. Unlike other patches it creates the object
 * if there is none. */
static struct apistore_answer apply(const struct apistore_write *w, struct json_object *body)
{
	const struct apistore_place p =
		apistore_place_object(w->kind, &apistore_objects_schema(w->s)->lists);
	cleanup_free char *version =
		xasprintf("%s%s%s", w->t->group, w->t->group[0] ? "/" : "", w->t->version);
	char now[CLOCK_RFC3339_LEN];
	const struct apistore_manager m = apistore_write_manager(w, version, now);
	cleanup_json struct json_object *o = NULL;
	struct apistore_write here = *w;
	struct apistore_answer refused;

	if (!is_meant(w, body, &refused))
		return refused;
	o = apistore_managed_apply(
		&p, w->kind, &m, w->was, body, apistore_target_flag(w->t, "force"), &refused);
	if (!o)
		return refused;
	here.applied = true;
	return apistore_write_store(&here, steal_ptr(&o));
}

/* ---- content types */

struct patch_kind {
	const char *type;
	struct apistore_answer (*run)(const struct apistore_write *w, struct json_object *body);
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
	const struct apistore_write *w, const struct apistore_request *r)
{
	const char *have = r->content_type ? r->content_type : "";
	size_t n = strcspn(have, "; \t");

	for (size_t i = 0; i < ARRAY_LEN(patch_kinds); i++)
		if (strlen(patch_kinds[i].type) == n && strncmp(have, patch_kinds[i].type, n) == 0)
			return patch_kinds[i].built_in && w->kind->custom ? NULL : &patch_kinds[i];
	return NULL;
}

/* Answer 415, in the two different texts that kube-apiserver has for built-in and custom kinds. */
static struct apistore_answer unsupported(const struct apistore_write *w)
{
	cleanup_strbuf struct strbuf types = STRBUF_INIT;

	if (!w->kind->custom)
		return apistore_status_refusal(
			415, "UnsupportedMediaType", "415: Unsupported Media Type");
	for (size_t i = 0; i < ARRAY_LEN(patch_kinds); i++)
		if (!(patch_kinds[i].built_in && w->kind->custom))
			strbuf_addf(&types, "%s%s", types.len ? ", " : "", patch_kinds[i].type);
	return apistore_status_refusal(415, "UnsupportedMediaType",
		"the body of the request was in an unknown format - accepted media types include: %s",
		strbuf_str(&types));
}

/* Return the body from its first character that is not white space. */
static const char *first_of(const struct apistore_request *r)
{
	const char *p = r->body ? r->body : "";

	return p + strspn(p, " \t\r\n");
}

/* Parse the body of a patch. Only an apply may be YAML. */
static struct json_object *read_body(
	const struct patch_kind *k, const struct apistore_request *r, struct err *err)
{
	const char *body = r->body ? r->body : "";
	struct json_object *o;

	/* Parse JSON, a subset of YAML, as JSON: the limits of that parser are wider. */
	if (k->run == apply && *first_of(r) != '{')
		return yaml_parse_go(body, r->len, err);
	o = json_parse(body, r->len, &apistore_write_limits, err);
	if (!o || k->run != json_patch || apistore_jsonpatch_check(o, err) == 0)
		return o;
	json_object_put(o);
	return NULL;
}

/* Parse the body of a patch. This comes before the object is read, so a malformed body is answered
 * with 400 even if there is no such object. */
struct json_object *apistore_change_read(const struct apistore_write *w,
	const struct apistore_request *r, struct apistore_answer *refused)
{
	const struct patch_kind *k = kind_of(w, r);
	cleanup_json struct json_object *o = NULL;
	struct err err = ERR_INIT;

	if (!k) {
		*refused = unsupported(w);
		return NULL;
	}
	o = read_body(k, r, &err);
	if (!o && err.http)
		*refused = apistore_status_refusal(err.http,
			err.http == 413 ? "RequestEntityTooLarge" : "BadRequest", "%s", err.text);
	else if (!o)
		*refused = apistore_status_refusal(400, "BadRequest", "error decoding %s: %s",
			k->run == apply ? "YAML" : "patch",
			err_is_set(&err) ? err.text : "it is null");
	else if (k->run != json_patch && !json_object_is_type(o, json_type_object))
		*refused = apistore_status_refusal(400, "BadRequest",
			"error decoding patch: must be of type object, not %s",
			json_type_to_name(json_object_get_type(o)));
	else
		return steal_ptr(&o);
	return NULL;
}

/* Check that an apply names its field manager, which is required unlike in other requests. */
static bool may_apply(const struct apistore_write *w, struct apistore_answer *refused)
{
	static const struct apistore_target options = {
		.group = (char *)"meta.k8s.io", .name = (char *)""};
	cleanup_free char *manager = apistore_target_param(w->t, "fieldManager");

	if (manager && *manager)
		return true;
	*refused = apistore_status_invalid(&options, "PatchOptions", "fieldManager",
		"Required value", "is required for apply patch");
	return false;
}

/* Run a PUT (body as parsed by the caller) or a PATCH. Only an apply to the object itself may
 * create it. */
struct apistore_answer apistore_change(
	const struct apistore_write *w, const struct apistore_request *r, struct json_object *body)
{
	const struct patch_kind *k = str_eq(r->method, "PATCH") ? kind_of(w, r) : NULL;
	struct apistore_write here = *w;
	struct apistore_answer refused;

	here.patched = k && k->run != apply;
	if (k && k->run == apply && !may_apply(w, &refused))
		return refused;
	if (!w->was && (!k || k->run != apply || w->t->sub[0]))
		return apistore_status_absent(w->t);
	return k ? k->run(&here, body) : replace(w, body);
}
