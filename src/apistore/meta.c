/* SPDX-License-Identifier: MIT */
/* Validates metadata: names by a table of rules per kind, labels, annotations, finalizers and
 * owners. */
#include "config.h"

#include "meta.h"

#include <ctype.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"

#define ANNOTATIONS_MAX (256u << 10)
#define LABEL_MAX       63

#define SUBDOMAIN "must be a DNS name of lowercase letters, digits, '-' and '.'"
#define NAME_PART "must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"

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
static const struct rule {
	const char *group, *kind;
	const char *(*fault)(const char *name);
	bool any_finalizer;
} rules[] = {{"", "Namespace", fault_of_label, false}, {"", "Event", fault_of_segment, true},
	{"events.k8s.io", "Event", fault_of_subdomain, true},
	{"rbac.authorization.k8s.io", NULL, fault_of_segment, false}};

/* Find the rule of a kind. Names of other kinds must be DNS subdomains; finalizers without a domain
 * are an error for built-in kinds and a warning for custom ones. k may be NULL. */
static const struct rule *rule_of(const struct schema_kind *k)
{
	static const struct rule built_in = {"", "", fault_of_subdomain, false},
				 other = {"", "", fault_of_subdomain, true};

	for (size_t i = 0; k && !k->crd && i < ARRAY_LEN(rules); i++)
		if (str_eq(k->group, rules[i].group) &&
			(!rules[i].kind || str_eq(k->kind, rules[i].kind)))
			return &rules[i];
	return k && !k->crd ? &built_in : &other;
}

/* Check name and generateName; one of them is required. */
static void check_names(
	const struct rule *r, const char *prefix, const char *name, struct schema_causes *causes)
{
	/* Check the prefix with a character after it: it may end with a dash, a name may not. */
	cleanup_free char *whole = prefix && *prefix ? xasprintf("%s0", prefix) : NULL;

	if (whole)
		cause(causes, "metadata.generateName", prefix, r->fault(whole));
	if (*name)
		cause(causes, "metadata.name", name, r->fault(name));
	else
		schema_cause_add(causes, SCHEMA_REQUIRED, "metadata.name", NULL,
			"name or generateName is required");
}

/* ---- qualified names */

/* Is this a name of letters, digits and "-_.", with a letter or digit at both ends? */
static bool is_name_part(const char *s, size_t n)
{
	if (n == 0 || !isalnum((unsigned char)s[0]) || !isalnum((unsigned char)s[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("-_.", s[i]))
			return false;
	return true;
}

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
	return is_name_part(part, n) ? NULL : "name " NAME_PART;
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
		else if (n > 0 && !is_name_part(value, n))
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

static bool has_text(struct json_object *list, const char *text)
{
	for (size_t i = 0; i < json_len(list); i++)
		if (str_eq(json_object_get_string(json_at(list, i)), text))
			return true;
	return false;
}

/* Check finalizers. Those of a custom resource may lack a domain, which is only a warning. */
static void check_finalizers(
	const struct rule *r, struct json_object *list, struct schema_causes *causes)
{
	size_t n = json_len(list);

	for (size_t i = 0; i < n; i++) {
		const char *name = json_object_get_string(json_at(list, i));
		cleanup_free char *field = xasprintf("metadata.finalizers[%zu]", i);

		cause(causes, "metadata.finalizers", name, fault_of_qualified(name));
		if (!r->any_finalizer && !strchr(name, '/') && !is_standard(name))
			cause(causes, field, name, "must have a domain, such as example.com/name");
	}
	if (has_text(list, "orphan") && has_text(list, "foregroundDeletion"))
		schema_cause_add(causes, SCHEMA_INVALID, "metadata.finalizers", list,
			"orphan and foregroundDeletion are mutually exclusive");
}

/* Called for custom resources only, whose finalizers check_finalizers() does not refuse. */
void apistore_meta_warn(struct json_object *o, struct schema_texts *out)
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

		if (has_text(have, name))
			continue;
		schema_cause_add(causes, SCHEMA_FORBIDDEN, "metadata.finalizers", NULL,
			"no new finalizers can be added if the object is being deleted: %s", name);
		return;
	}
}

/* ---- owners */

/* Return the version in an apiVersion; NULL: it is malformed, such as "a/b/c". */
static const char *version_in(const char *api_version)
{
	const char *slash = api_version ? strchr(api_version, '/') : NULL;

	if (!slash)
		return api_version;
	return strchr(slash + 1, '/') ? NULL : slash + 1;
}

/* Check one owner reference: all four members are required, and Events own nothing. */
static void check_owner(struct json_object *owner, struct schema_causes *causes)
{
	static const char *const members[] = {"apiVersion", "kind", "name", "uid"};
	const char *api_version = json_get_str(owner, "apiVersion");

	for (size_t k = 0; k < ARRAY_LEN(members); k++) {
		const char *given = json_get_str(owner, members[k]),
			   *value = k == 0 ? version_in(given) : given;
		cleanup_free char *field = xasprintf("metadata.ownerReferences.%s", members[k]);

		if (!value || !*value)
			cause(causes, field, given, "must not be empty");
	}
	if (str_eq(json_get_str(owner, "kind"), "Event") &&
		(str_eq(api_version, "v1") || str_eq(api_version, "/v1")))
		schema_cause_add(causes, SCHEMA_INVALID, "metadata.ownerReferences", NULL,
			"an Event must not be an owner");
}

/* Check each owner reference, and that at most one owner is the controller. */
static void check_owners(struct json_object *list, struct schema_causes *causes)
{
	size_t controllers = 0;

	for (size_t i = 0; i < json_len(list); i++) {
		struct json_object *owner = json_at(list, i);

		check_owner(owner, causes);
		controllers += json_get_bool(owner, "controller", false);
	}
	if (controllers > 1)
		schema_cause_add(causes, SCHEMA_INVALID, "metadata.ownerReferences", NULL,
			"only one owner can be the controller, found %zu", controllers);
}

void apistore_meta_check(const struct schema_kind *k, const char *name, struct json_object *was,
	struct json_object *o, struct schema_causes *causes)
{
	struct json_object *m = json_get_obj(o, "metadata"), *labels = json_get_obj(m, "labels"),
			   *annotations = json_get_obj(m, "annotations"),
			   *finalizers = json_get_arr(m, "finalizers"),
			   *owners = json_get_arr(m, "ownerReferences");
	const struct rule *r = rule_of(k);

	if (was && finalizers)
		check_no_new(was, finalizers, causes);
	check_names(r, json_get_str(m, "generateName"), name, causes);
	if (labels)
		check_labels(labels, causes);
	if (annotations)
		check_annotations(annotations, causes);
	if (owners)
		check_owners(owners, causes);
	if (finalizers)
		check_finalizers(r, finalizers, causes);
}
