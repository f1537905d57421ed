/* SPDX-License-Identifier: MIT */
/*
 * Validates objects before they are stored: custom kinds against their CRD schema, built-in kinds
 * against their types and immutable fields, metadata by a table of rules per kind. Errors are found
 * in kube-apiserver's order: types, decoding and unknown fields, names and namespace, then values.
 */
#include "config.h"

#include "admit.h"

#include <ctype.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/file.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/kobj/key.h"
#include "tec/schema/builtin.h"
#include "tec/schema/crd.h"

#include "decode.h"

#define ANNOTATIONS_MAX (256u << 10)
#define LABEL_MAX       63

#define SUBDOMAIN "must be a DNS name of lowercase letters, digits, '-' and '.'"
#define NAME_PART "must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"

/* Store an answer for the client and return -1, so that a check can end with one statement. */
static int refuse(struct apireq_answer *refused, struct apireq_answer a)
{
	*refused = a;
	return -1;
}

/* The message does not quote the whole object, unlike kube-apiserver's: it may be a Secret. */
struct apireq_answer apireq_admit_invalid(const char *why)
{
	static const struct apireq_request_info none = {.group = (char *)"", .name = (char *)""};

	return apireq_status_invalid(&none, "", "patch", "Invalid value", why);
}

/* The text is wiped, as it may be that of a Secret. */
bool apireq_admit_exists(struct store_objects *s, const struct store_key *key)
{
	size_t len = 0;
	char *text = store_objects_text(s, key, &len);

	file_wipe(text, len);
	return text != NULL;
}

/* ---- type */

/* Check the type of a new built-in object. A missing kind or apiVersion is accepted: kube-apiserver
 * fills it in from the URL. The end of the message is ours: that of kube-apiserver names Go
 * types. */
static int check_builtin_type(
	const struct apireq_admit *w, struct json_object *o, struct apireq_answer *refused)
{
	const char *kind = json_get_str(o, "kind"), *have = json_get_str(o, "apiVersion"),
		   *must = w->kind->schema->kind, *slash = have ? strrchr(have, '/') : NULL;
	cleanup_free char *gv =
		xasprintf("%s%s%s", w->t->group, w->t->group[0] ? "/" : "", w->t->version);

	if ((!kind || str_eq(kind, must)) && (!have || str_eq(have, gv)))
		return 0;
	return refuse(refused,
		apireq_status_refusal(400,
			"%s in version \"%s\" cannot be handled as a %s: kind and apiVersion name another kind",
			kind ? kind : must,
			slash  ? slash + 1
			: have ? have
			       : w->t->version,
			must));
}

/* Check the type of a custom object, and that a PUT names the version it replaces: an unconditional
 * update is not allowed for custom resources. */
static int check_custom_type(
	const struct apireq_admit *w, struct json_object *o, struct apireq_answer *refused)
{
	const char *kind = json_get_str(o, "kind"), *have = json_get_str(o, "apiVersion"),
		   *rv = json_get_str(o, "metadata/resourceVersion"), *must = w->kind->schema->kind;
	cleanup_free char *gv = xasprintf("%s/%s", w->t->group, w->t->version), *why = NULL;

	if (have && !str_eq(have, gv))
		return refuse(refused,
			apireq_status_refusal(400,
				"the API version in the data (%s) does not match the expected API version (%s)",
				have, gv));
	if (!w->was && kind && !str_eq(kind, must)) {
		why = xasprintf("\"%s\": must be %s", kind, must);
		return refuse(
			refused, apireq_status_invalid(w->t, kind, "kind", "Invalid value", why));
	}
	if (w->was && json_get_str(o, "metadata/name") && (!rv || !*rv))
		return refuse(refused,
			apireq_status_invalid(w->t, w->t->resource, "metadata.resourceVersion",
				"Invalid value", "0: must be specified for an update"));
	return 0;
}

int apireq_admit_type(
	const struct apireq_admit *w, struct json_object *o, struct apireq_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;

	if (!k)
		return 0;
	if (k->crd)
		return check_custom_type(w, o, refused);
	return w->was ? 0 : check_builtin_type(w, o, refused);
}

/* ---- reading */

/* Refuse an object that cannot be decoded, in kube-apiserver's words: the status and text differ
 * between a patched object and one that was sent whole. */
static int refuse_object(
	const struct apireq_admit *w, const char *why, struct apireq_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;

	if (w->patched)
		return refuse(refused, apireq_admit_invalid(why));
	if (!k)
		return refuse(refused, apireq_status_refusal(400, "%s", why));
	return refuse(refused,
		apireq_status_refusal(400, "%s in version \"%s\" cannot be handled as a %s: %s",
			k->kind, k->version, k->kind, why));
}

int apireq_admit_strict(const struct apireq_admit *w, struct apireq_answer *refused)
{
	cleanup_strbuf struct strbuf all = STRBUF_INIT;

	if (w->opt.fields != APIREQ_FIELDS_STRICT || w->warnings->n == 0)
		return 0;
	for (size_t i = 0; i < w->warnings->n; i++)
		strbuf_addf(
			&all, "%s%s", i ? ", " : "strict decoding error: ", w->warnings->text[i]);
	return refuse_object(w, strbuf_str(&all), refused);
}

/* Check the types of a decoded body. Built-in kinds are decoded into Go structs by kube-apiserver,
 * so their unknown fields are reported here, before anything else; those of custom kinds are
 * reported when they are pruned. */
int apireq_admit_decode(
	const struct apireq_admit *w, struct json_object *o, struct apireq_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0};
	struct err err = ERR_INIT;
	bool built_in = k && !k->crd;
	struct json_object *number = k && k->crd ? json_find_infinite(o) : NULL;
	cleanup_free char *why = NULL;

	if (built_in && !str_eq(json_get_str(o, "kind"), k->kind))
		return 0; /* the caller refuses the wrong kind */
	if (number) {     /* no double can represent it, so it cannot be stored as JSON */
		why = xasprintf("the number %.40s is too large", json_object_get_string(number));
		return refuse_object(w, why, refused);
	}
	if (apireq_decode(k, o, &unknown, &err) < 0)
		return refuse_object(w, err.text, refused);
	for (size_t i = 0; i < unknown.n; i++)
		schema_texts_add(w->warnings, "unknown field \"%s\"", unknown.text[i]);
	return built_in ? apireq_admit_strict(w, refused) : 0;
}

/* ---- identity */

/* Check that an object has a type, is in the namespace of the request, and has the type of the one it
 * replaces. */
static int check_identity(
	const struct apireq_admit *w, struct json_object *o, struct apireq_answer *refused)
{
	static const char no_type[] = "kind and apiVersion are required and must be strings";
	const char *kind = json_get_str(o, "kind"), *ns = json_get_str(o, "metadata/namespace");

	if (!kind || !json_get_str(o, "apiVersion"))
		return refuse(refused, w->patched ? apireq_admit_invalid(no_type)
						  : apireq_status_refusal(400, "%s", no_type));
	if (ns && *ns && w->key.ns[0] && !str_eq(ns, w->key.ns))
		return refuse(refused,
			apireq_status_refusal(400,
				"the namespace of the provided object does not match the namespace sent on the request"));
	if (w->was && (!store_objects_same_member(w->was, o, "kind") ||
			      !store_objects_same_member(w->was, o, "apiVersion"))) {
		cleanup_free char *why = xasprintf("\"%s\": must be %s of %s", kind,
			json_get_str(w->was, "kind"), json_get_str(w->was, "apiVersion"));

		return refuse(
			refused, apireq_status_invalid(w->t, kind, "kind", "Invalid value", why));
	}
	return 0;
}

/* After decoding, prune unknown fields of custom kinds and set defaults of built-in kinds. */
int apireq_admit_body(
	const struct apireq_admit *w, struct json_object *o, struct apireq_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;
	cleanup_schema_texts struct schema_texts unknown = {NULL, 0, 0};

	if (apireq_admit_decode(w, o, refused) < 0 || check_identity(w, o, refused) < 0)
		return -1;
	if (k && k->crd)
		schema_prune(k->crd->schema, o, &unknown);
	else if (k)
		schema_builtin_default(k, o);
	for (size_t i = 0; i < unknown.n; i++)
		schema_texts_add(w->warnings, "unknown field \"%s\"", unknown.text[i]);
	return k ? apireq_admit_strict(w, refused) : 0;
}

/* ---- defaults and checks of single built-in kinds */

/* Check that all values of a map decode as base64. Their type, string, was checked before. A value
 * is not quoted: it may be a secret. */
static int check_base64(struct json_object *o, const char *member, struct apireq_answer *refused)
{
	const char *kind = json_get_str(o, "kind");

	json_each (json_get_obj(o, member), name, value) {
		const char *text = json_object_get_string(value);
		size_t len = value ? (size_t)json_object_get_string_len(value) : 0, n = len;
		uint8_t *bytes = NULL;

		if (len == 0)
			continue;
		if (bytes_from_b64(text, len, &bytes, &n) < 0)
			return refuse(refused,
				apireq_status_refusal(400,
					"%s in version \"v1\" cannot be handled as a %s: %s: a value is not base64",
					kind, kind, member));
		secret_wipe(bytes, n);
		free(bytes);
	}
	return 0;
}

/* Drop an empty map, which kube-apiserver does not store. */
static void drop_empty(struct json_object *o, const char *member)
{
	struct json_object *data = json_get_obj(o, member);

	if (data && json_len(data) == 0)
		json_drop(o, member);
}

/* Encode stringData into data, where it replaces members of the same name, and drop it. */
static void merge_string_data(struct json_object *o)
{
	struct json_object *text = json_get_obj(o, "stringData"), *data = json_get_obj(o, "data");

	if (text && !data)
		json_add(o, "data", data = json_obj());
	json_each (text, name, value) {
		cleanup_strbuf struct strbuf b64 = STRBUF_INIT;

		if (value)
			bytes_to_b64(&b64, json_object_get_string(value),
				(size_t)json_object_get_string_len(value));
		json_add_str(data, name, strbuf_str(&b64));
		if (b64.data)
			secret_wipe(b64.data, b64.cap);
	}
	json_wipe(text);
	json_drop(o, "stringData");
}

/* Set the label with the name, and for a new Namespace its finalizer and phase. */
static void complete_namespace(const struct apireq_admit *w, struct json_object *o)
{
	struct json_object *m = store_objects_meta(o), *labels = json_get_obj(m, "labels");

	if (!labels)
		json_add(m, "labels", labels = json_obj());
	json_add_str(labels, "kubernetes.io/metadata.name", w->t->name);
	if (w->was)
		return;
	if (!json_get_obj(o, "spec"))
		json_add(o, "spec", json_obj());
	json_add(json_get(o, "spec"), "finalizers", json_push_str(json_arr(), "kubernetes"));
	json_add(o, "status", json_add_str(json_obj(), "phase", "Active"));
}

/* Fill in what the server sets in an object of a built-in kind, and check the rest. */
static int apply_rules(
	const struct apireq_admit *w, struct json_object *o, struct apireq_answer *refused)
{
	const char *resource = w->t->qualified, *type = json_get_str(o, "type");

	if (str_eq(resource, "secrets")) {
		if (!type || !*type)
			json_add_str(o, "type", "Opaque");
		merge_string_data(o);
		drop_empty(o, "data");
		return check_base64(o, "data", refused);
	}
	if (str_eq(resource, "configmaps")) {
		drop_empty(o, "data");
		drop_empty(o, "binaryData");
		return check_base64(o, "binaryData", refused);
	}
	if (str_eq(resource, "namespaces"))
		complete_namespace(w, o);
	return 0;
}

/* ---- names of objects */

/* Each returns what is wrong with a name, or NULL. */

static const char *fault_of_subdomain(const char *name)
{
	return kobj_name_valid(name, strlen(name)) ? NULL : SUBDOMAIN;
}

/* The rule for names that become part of a DNS name, such as that of a Namespace. */
static const char *fault_of_label(const char *name)
{
	return kobj_label_valid(name, strlen(name))
		       ? NULL
		       : "must be at most 63 lowercase letters, digits and '-'";
}

/* The weakest rule: a name must at least be usable as a path segment. */
static const char *fault_of_segment(const char *name)
{
	if (strlen(name) > KOBJ_NAME_MAX)
		return "must have at most 253 characters";
	return strpbrk(name, "/%") || str_eq(name, ".") || str_eq(name, "..")
		       ? "must not contain '/' or '%', and must not be '.' or '..'"
		       : NULL;
}

/* Add an error unless why is NULL. */
static void cause(struct schema_causes *c, const char *field, const char *value, const char *why)
{
	if (why)
		schema_cause_add_text(c, SCHEMA_INVALID, field, value, why);
}

/* The name rule of a kind, and whether its finalizers may lack a domain. kind NULL: all of the
 * group. */
static const struct name_rule {
	const char *group, *kind;
	const char *(*fault)(const char *name);
	bool any_finalizer;
} name_rules[] = {{"", "Namespace", fault_of_label, false}, {"", "Event", fault_of_segment, true},
	{"events.k8s.io", "Event", fault_of_subdomain, true},
	{"rbac.authorization.k8s.io", NULL, fault_of_segment, false}};

/* ---- qualified names */

/* Check a qualified name: an optional DNS prefix and a slash, then a name of at most 63
 * characters. */
static const char *fault_of_qualified(const char *name)
{
	const char *slash = strchr(name, '/'), *part = slash ? slash + 1 : name;
	size_t n = strlen(part);

	if (slash && !kobj_name_valid(name, (size_t)(slash - name)))
		return "prefix " SUBDOMAIN;
	if (n > LABEL_MAX)
		return "name must have at most 63 characters";
	return n > 0 && store_selector_is_name(part, n) ? NULL : "name " NAME_PART;
}

/* Check label keys and values; an empty value is valid. */
static void check_labels(struct json_object *labels, struct schema_causes *causes)
{
	json_each (labels, key, v) {
		const char *value = json_object_get_string(v);
		size_t n = value ? strlen(value) : 0;

		cause(causes, "metadata.labels", key, fault_of_qualified(key));
		if (n > LABEL_MAX)
			cause(causes, "metadata.labels", value, "must have at most 63 characters");
		else if (!store_selector_is_name(value, n))
			cause(causes, "metadata.labels", value, NAME_PART);
	}
}

/* Check annotation keys, which kube-apiserver compares in lower case, and their total size. */
static void check_annotations(struct json_object *annotations, struct schema_causes *causes)
{
	size_t size = 0;

	json_each (annotations, key, v) {
		cleanup_free char *lower = xstrdup(key);

		for (char *p = lower; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		cause(causes, "metadata.annotations", key, fault_of_qualified(lower));
		size += strlen(key) + (size_t)json_object_get_string_len(v);
	}
	if (size > ANNOTATIONS_MAX)
		schema_cause_add(causes, SCHEMA_TOO_LONG, "metadata.annotations", NULL,
			"must have at most %u bytes", ANNOTATIONS_MAX);
}

/* The finalizers that Kubernetes itself uses, which have no domain. */
static bool is_standard(const char *finalizer)
{
	return str_eq(finalizer, "kubernetes") || str_eq(finalizer, "orphan") ||
	       str_eq(finalizer, "foregroundDeletion");
}

/* Check finalizers. Those of a custom resource may lack a domain, which is only a warning. */
static void check_finalizers(
	const struct name_rule *r, struct json_object *list, struct schema_causes *causes)
{
	size_t n = json_len(list);

	for (size_t i = 0; i < n; i++) {
		const char *name = json_object_get_string(json_at(list, i));
		cleanup_free char *field = xasprintf("metadata.finalizers[%zu]", i);

		cause(causes, "metadata.finalizers", name, fault_of_qualified(name));
		if (!r->any_finalizer && !strchr(name, '/') && !is_standard(name))
			cause(causes, field, name, "must have a domain, such as example.com/name");
	}
	if (json_has_str(list, "orphan") && json_has_str(list, "foregroundDeletion"))
		schema_cause_add(causes, SCHEMA_INVALID, "metadata.finalizers", list,
			"orphan and foregroundDeletion are mutually exclusive");
}

/* Called for custom resources only, whose finalizers check_finalizers() does not refuse. */
void apireq_admit_warn(struct json_object *o, struct schema_texts *out)
{
	struct json_object *list = json_get_arr(o, "metadata/finalizers");

	for (size_t i = 0; i < json_len(list); i++) {
		const char *name = json_object_get_string(json_at(list, i));

		if (!strchr(name, '/') && !is_standard(name))
			schema_texts_add(out,
				"metadata.finalizers: \"%s\": should have a domain, such as example.com/name",
				name);
	}
}

/* Refuse new finalizers on an object that is being deleted. Only the first one is reported. */
static void check_no_new(
	struct json_object *was, struct json_object *list, struct schema_causes *causes)
{
	struct json_object *have = json_get_arr(was, "metadata/finalizers");

	if (!json_get(was, "metadata/deletionTimestamp"))
		return;
	for (size_t i = 0; i < json_len(list); i++) {
		const char *name = json_object_get_string(json_at(list, i));

		if (json_has_str(have, name))
			continue;
		schema_cause_add(causes, SCHEMA_FORBIDDEN, "metadata.finalizers", NULL,
			"no new finalizers can be added if the object is being deleted: %s", name);
		return;
	}
}

/* ---- owners */

/* Check each owner reference: all four members are required, Events own nothing, and at most one
 * owner is the controller. */
static void check_owners(struct json_object *list, struct schema_causes *causes)
{
	static const char *const members[] = {"apiVersion", "kind", "name", "uid"};
	size_t controllers = 0;

	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *owner = json_at(list, i);
		const char *version = json_get_str(owner, "apiVersion");

		for (size_t k = 0; k < ARRAY_LEN(members); k++) {
			const char *value = json_get_str(owner, members[k]);
			const char *slash = k == 0 && value ? strchr(value, '/') : NULL;
			cleanup_free char *field =
				xasprintf("metadata.ownerReferences.%s", members[k]);

			/* "a/" and "a/b/c" are malformed. */
			if (!value || !*value || (slash && (!slash[1] || strchr(slash + 1, '/'))))
				cause(causes, field, value, "must not be empty");
		}
		if (str_eq(json_get_str(owner, "kind"), "Event") &&
			(str_eq(version, "v1") || str_eq(version, "/v1")))
			schema_cause_add(causes, SCHEMA_INVALID, "metadata.ownerReferences", NULL,
				"an Event must not be an owner");
		controllers += json_get_bool(owner, "controller", false);
	}
	if (controllers > 1)
		schema_cause_add(causes, SCHEMA_INVALID, "metadata.ownerReferences", NULL,
			"only one owner can be the controller, found %zu", controllers);
}

/* Add all errors of the metadata to causes. name: of the object, "" without one. Names of kinds
 * without a rule must be DNS subdomains; finalizers without a domain are an error for built-in kinds
 * and a warning for custom ones. */
static void check_meta(const struct schema_kind *k, const char *name, struct json_object *was,
	struct json_object *o, struct schema_causes *causes)
{
	const struct name_rule other = {"", "", fault_of_subdomain, !k || k->crd}, *r = &other;
	struct json_object *m = json_get_obj(o, "metadata"), *labels = json_get_obj(m, "labels"),
			   *annotations = json_get_obj(m, "annotations"),
			   *finalizers = json_get_arr(m, "finalizers"),
			   *owners = json_get_arr(m, "ownerReferences");
	const char *prefix = json_get_str(m, "generateName");
	cleanup_free char *whole = NULL;

	for (size_t i = 0; k && !k->crd && i < ARRAY_LEN(name_rules) && r == &other; i++)
		if (str_eq(k->group, name_rules[i].group) &&
			(!name_rules[i].kind || str_eq(k->kind, name_rules[i].kind)))
			r = &name_rules[i];
	if (was && finalizers)
		check_no_new(was, finalizers, causes);
	/* Check the prefix with a character after it: it may end with a dash, a name may not. */
	whole = prefix && *prefix ? xasprintf("%s0", prefix) : NULL;
	if (whole)
		cause(causes, "metadata.generateName", prefix, r->fault(whole));
	if (*name)
		cause(causes, "metadata.name", name, r->fault(name));
	else
		schema_cause_add(causes, SCHEMA_REQUIRED, "metadata.name", NULL,
			"name or generateName is required");
	check_labels(labels, causes);
	check_annotations(annotations, causes);
	check_owners(owners, causes);
	if (finalizers)
		check_finalizers(r, finalizers, causes);
}

/* ---- validation */

/* Validate the whole object and answer with all causes at once. Events of events.k8s.io are core
 * Events in storage, so the Status names them without their group, as kube-apiserver does. */
int apireq_admit_object(
	const struct apireq_admit *w, struct json_object *o, struct apireq_answer *refused)
{
	const struct schema_kind *k = w->kind->schema;
	cleanup_schema_causes struct schema_causes causes = {NULL, 0, 0};
	const struct store_key ns_key = {"namespaces", "", w->key.ns};
	const struct apireq_request_info ns = {
		.group = (char *)"", .resource = (char *)"namespaces", .name = (char *)w->key.ns};
	struct apireq_request_info named = *w->t;

	if (store_objects_schema(w->s)->namespaces && !w->was && w->key.ns[0] &&
		!apireq_admit_exists(w->s, &ns_key))
		return refuse(refused, apireq_status_absent(&ns));
	if (apply_rules(w, o, refused) < 0)
		return -1;
	check_meta(k, w->t->name, w->was, o, &causes);
	if (k && k->crd)
		schema_validate(k->crd->schema, o, w->was, str_eq(w->t->sub, "status"), &causes,
			w->opt.fields == APIREQ_FIELDS_IGNORE ? NULL : w->warnings);
	else if (k)
		schema_builtin_check(k, w->was, o, &causes);
	if (apireq_representation_renames(w->t->group))
		named.group = (char *)""; /* borrowed for the call */
	return causes.n == 0 ? 0
			     : refuse(refused, apireq_status_causes(
						       &named, json_get_str(o, "kind"), &causes));
}
