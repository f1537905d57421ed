/* SPDX-License-Identifier: MIT */
/*
 * Names as path segments, DNS names or qualified names, with a table of which kind has which. The
 * texts are kube-apiserver's.
 */
#include "config.h"

#include <ctype.h>

#include "tec/base/mem.h"
#include "tec/kobj/key.h"

#include "write.h"

#define ANNOTATIONS_MAX (256u << 10)
#define LABEL_MAX       63

#define SUBDOMAIN                                                                                  \
	"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define LABEL                                                                                      \
	"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define NAME_PART                                                                                  \
	"must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define LABEL_VALUE                                                                                \
	"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

/* ---- names of objects */

static bool is_label(const char *s, size_t n)
{
	if (n == 0 || s[0] == '-' || s[n - 1] == '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) && s[i] != '-')
			return false;
	return true;
}

/* Of any length: that is told apart. */
static bool is_subdomain(const char *s, size_t n)
{
	for (size_t at = 0, end; at <= n; at = end + 1) {
		const char *dot = at < n ? memchr(s + at, '.', n - at) : NULL;

		end = dot ? (size_t)(dot - s) : n;
		if (!is_label(s + at, end - at))
			return false;
	}
	return true;
}

/* The problems of one name as causes of a field. */
struct field {
	struct schema_causes *causes;
	const char *name, *value;
};

static void wrong(const struct field *f, const char *why)
{
	schema_cause_add_text(f->causes, SCHEMA_INVALID, f->name, f->value, "%s", why);
}

static void too_long(const struct field *f, size_t max)
{
	schema_cause_add_text(f->causes, SCHEMA_INVALID, f->name, f->value,
		"must be no more than %zu characters", max);
}

/* A prefix may end with a dash, as more comes after it: it is looked at with a letter there, in place
 * of its last two characters, as kube-apiserver does. */
static char *look_of(const char *name, bool prefix)
{
	size_t n = strlen(name);

	return prefix && n > 1 && name[n - 1] == '-' ? xasprintf("%.*sa", (int)(n - 2), name)
						     : xstrdup(name);
}

static void check_subdomain(const struct field *f, const char *name)
{
	size_t n = strlen(name);

	if (n > KOBJ_NAME_MAX)
		too_long(f, KOBJ_NAME_MAX);
	if (!is_subdomain(name, n))
		wrong(f, SUBDOMAIN);
}

static void check_label_name(const struct field *f, const char *name)
{
	size_t n = strlen(name);

	if (n > LABEL_MAX)
		too_long(f, LABEL_MAX);
	if (!is_label(name, n))
		wrong(f, is_subdomain(name, n) ? "must not contain dots" : LABEL);
}

/* It stands in paths, and in the keys of the store: those have a limit here. */
static void check_segment(const struct field *f, const char *name)
{
	if (strchr(name, '/'))
		wrong(f, "may not contain '/'");
	if (strchr(name, '%'))
		wrong(f, "may not contain '%'");
}

static void check_path_name(const struct field *f)
{
	if (str_eq(f->value, ".") || str_eq(f->value, ".."))
		schema_cause_add_text(
			f->causes, SCHEMA_INVALID, f->name, f->value, "may not be '%s'", f->value);
	else
		check_segment(f, f->value);
	if (strlen(f->value) > KOBJ_NAME_MAX)
		too_long(f, KOBJ_NAME_MAX);
}

/* How a kind is named, and whether its finalizers are domain-qualified. */
static const struct rule {
	const char *group, *kind;
	void (*check)(const struct field *f, const char *name);
	bool any_finalizer;
} rules[] = {{"", "Namespace", check_label_name, false}, {"", "Event", check_segment, true},
	{"events.k8s.io", "Event", check_subdomain, true},
	{"rbac.authorization.k8s.io", NULL, check_segment, false}};

/* k may be NULL. */
static const struct rule *rule_of(const struct schema_kind *k)
{
	static const struct rule built_in = {"", "", check_subdomain, false},
				 other = {"", "", check_subdomain, true};

	for (size_t i = 0; k && !k->crd && i < ARRAY_LEN(rules); i++)
		if (str_eq(k->group, rules[i].group) &&
			(!rules[i].kind || str_eq(k->kind, rules[i].kind)))
			return &rules[i];
	return k && !k->crd ? &built_in : &other;
}

static void check_names(
	const struct rule *r, const char *prefix, const char *name, struct schema_causes *causes)
{
	const struct field of_prefix = {causes, "metadata.generateName", prefix ? prefix : ""},
			   f = {causes, "metadata.name", name};
	cleanup_free char *looked = look_of(of_prefix.value, true);

	if (prefix && *prefix)
		r->check(&of_prefix, looked);
	if (!*name)
		schema_cause_add(
			causes, SCHEMA_REQUIRED, f.name, NULL, "name or generateName is required");
	else if (r->check == check_segment)
		check_path_name(&f);
	else
		r->check(&f, name);
}

/* ---- qualified names */

static bool is_name_part(const char *s, size_t n)
{
	if (n == 0 || !isalnum((unsigned char)s[0]) || !isalnum((unsigned char)s[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("-_.", s[i]))
			return false;
	return true;
}

/* value is what is quoted; name is what is looked at: of an annotation in lower case. */
static void check_qualified(const struct field *f, const char *name)
{
	const char *slash = strchr(name, '/'), *part = slash ? slash + 1 : name;
	size_t prefix = slash ? (size_t)(slash - name) : 0, n = strlen(part);

	if (slash && strchr(part, '/')) {
		wrong(f,
			"a qualified name " NAME_PART
			" with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
		return;
	}
	if (slash && prefix == 0)
		wrong(f, "prefix part must be non-empty");
	if (prefix > KOBJ_NAME_MAX)
		wrong(f, "prefix part must be no more than 253 characters");
	if (prefix > 0 && !is_subdomain(name, prefix))
		wrong(f, "prefix part " SUBDOMAIN);
	if (n == 0)
		wrong(f, "name part must be non-empty");
	else if (n > LABEL_MAX)
		wrong(f, "name part must be no more than 63 characters");
	if (!is_name_part(part, n))
		wrong(f, "name part " NAME_PART);
}

static void check_labels(struct json_object *labels, struct schema_causes *causes)
{
	json_object_object_foreach (labels, key, v) {
		const char *value = json_object_get_string(v);
		const struct field f = {causes, "metadata.labels", key},
				   of_value = {causes, "metadata.labels", value ? value : ""};
		size_t n = strlen(of_value.value);

		check_qualified(&f, key);
		if (n > LABEL_MAX)
			too_long(&of_value, LABEL_MAX);
		if (n > 0 && !is_name_part(value, n))
			wrong(&of_value, LABEL_VALUE);
	}
}

static void check_annotations(struct json_object *annotations, struct schema_causes *causes)
{
	size_t size = 0;

	json_object_object_foreach (annotations, key, v) {
		const struct field f = {causes, "metadata.annotations", key};
		cleanup_free char *lower = xstrdup(key);

		for (char *p = lower; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		check_qualified(&f, lower);
		size += strlen(key) + (size_t)json_object_get_string_len(v);
	}
	if (size > ANNOTATIONS_MAX)
		schema_cause_add(causes, SCHEMA_TOO_LONG, "metadata.annotations", NULL,
			"may not be more than %u bytes", ANNOTATIONS_MAX);
}

static bool is_standard(const char *finalizer)
{
	return str_eq(finalizer, "kubernetes") || str_eq(finalizer, "orphan") ||
	       str_eq(finalizer, "foregroundDeletion");
}

static bool has_text(struct json_object *list, const char *text)
{
	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		if (str_eq(json_object_get_string(json_object_array_get_idx(list, i)), text))
			return true;
	return false;
}

static void check_finalizers(
	const struct rule *r, struct json_object *list, struct schema_causes *causes)
{
	size_t n = json_object_array_length(list);

	for (size_t i = 0; i < n; i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(list, i));
		const struct field f = {causes, "metadata.finalizers", name};

		check_qualified(&f, name);
	}
	if (has_text(list, "orphan") && has_text(list, "foregroundDeletion"))
		schema_cause_add(causes, SCHEMA_INVALID, "metadata.finalizers", list,
			"finalizer orphan and foregroundDeletion cannot be both set");
	for (size_t i = 0; !r->any_finalizer && i < n; i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(list, i));
		cleanup_free char *field = xasprintf("metadata.finalizers[%zu]", i);
		const struct field f = {causes, field, name};

		if (!strchr(name, '/') && !is_standard(name))
			wrong(&f,
				"name is neither a standard finalizer name nor is it fully qualified");
	}
}

void apistore_meta_warn(struct json_object *o, struct schema_texts *out)
{
	struct json_object *list = json_get_arr(o, "metadata/finalizers");

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(list, i));
		cleanup_strbuf struct strbuf shown = STRBUF_INIT;

		if (strchr(name, '/') || is_standard(name))
			continue;
		schema_quote_go(&shown, name, strlen(name));
		schema_texts_add(out,
			"metadata.finalizers: %s: prefer a domain-qualified finalizer name%s to avoid accidental conflicts with other finalizer writers",
			strbuf_str(&shown), strchr(name, '.') ? " including a path (/)" : "");
	}
}

/* Those that are new on an object that is being deleted. */
static void check_no_new(
	struct json_object *was, struct json_object *list, struct schema_causes *causes)
{
	struct json_object *have = json_get_arr(was, "metadata/finalizers");
	cleanup_schema_texts struct schema_texts added = {NULL, 0, 0};
	cleanup_strbuf struct strbuf all = STRBUF_INIT;

	if (!json_get(was, "metadata/deletionTimestamp"))
		return;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(list, i));

		if (!has_text(have, name))
			schema_texts_add(&added, "%s", name);
	}
	schema_texts_sort(&added);
	for (size_t i = 0; i < added.n; i++) {
		if (i && str_eq(added.text[i], added.text[i - 1]))
			continue;
		strbuf_adds(&all, i ? ", " : "");
		schema_quote_go(&all, added.text[i], strlen(added.text[i]));
	}
	if (added.n)
		schema_cause_add(causes, SCHEMA_FORBIDDEN, "metadata.finalizers", NULL,
			"no new finalizers can be added if the object is being deleted, found new finalizers []string{%s}",
			strbuf_str(&all));
}

/* ---- owners */

/* As Go writes it: in the order of its struct. */
static void add_owner(struct strbuf *out, struct json_object *owner)
{
	static const char *const members[] = {
		"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"};

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		struct json_object *v = json_get(owner, members[i]);

		if (i >= 4 && !v)
			continue;
		strbuf_addf(out, "%s\"%s\":", i ? "," : "{", members[i]);
		if (v)
			schema_json_go(out, v);
		else
			strbuf_adds(out, "\"\"");
	}
	strbuf_addc(out, '}');
}

/* Of "a/b/c" it is none. */
static const char *version_in(const char *api_version)
{
	const char *slash = api_version ? strchr(api_version, '/') : NULL;

	if (!slash)
		return api_version;
	return strchr(slash + 1, '/') ? NULL : slash + 1;
}

static void check_owner(struct json_object *owner, struct schema_causes *causes)
{
	static const char *const members[][2] = {{"apiVersion", "version must not be empty"},
		{"kind", "must not be empty"}, {"name", "must not be empty"},
		{"uid", "must not be empty"}};
	const char *api_version = json_get_str(owner, "apiVersion");

	for (size_t k = 0; k < ARRAY_LEN(members); k++) {
		const char *given = json_get_str(owner, members[k][0]),
			   *value = k == 0 ? version_in(given) : given;
		cleanup_free char *field = xasprintf("metadata.ownerReferences.%s", members[k][0]);

		if (!value || !*value)
			schema_cause_add_text(causes, SCHEMA_INVALID, field, given ? given : "",
				"%s", members[k][1]);
	}
	if (str_eq(json_get_str(owner, "kind"), "Event") &&
		(str_eq(api_version, "v1") || str_eq(api_version, "/v1"))) {
		cleanup_strbuf struct strbuf value = STRBUF_INIT;

		add_owner(&value, owner);
		schema_cause_add_json(causes, SCHEMA_INVALID, "metadata.ownerReferences",
			strbuf_str(&value), "/v1, Kind=Event is disallowed from being an owner");
	}
}

static void two_controllers(struct json_object *list, struct json_object *first,
	struct json_object *other, struct schema_causes *causes)
{
	struct json_object *const both[] = {first, other};
	cleanup_strbuf struct strbuf value = STRBUF_INIT, names = STRBUF_INIT;

	for (size_t i = 0; i < json_object_array_length(list); i++) {
		strbuf_addc(&value, i ? ',' : '[');
		add_owner(&value, json_object_array_get_idx(list, i));
	}
	strbuf_addc(&value, ']');
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		const char *kind = json_get_str(both[i], "kind"),
			   *name = json_get_str(both[i], "name");

		strbuf_addf(
			&names, "%s%s/%s", i ? " and " : "", kind ? kind : "", name ? name : "");
	}
	schema_cause_add_json(causes, SCHEMA_INVALID, "metadata.ownerReferences",
		strbuf_str(&value),
		"Only one reference can have Controller set to true. Found \"true\" in references for %s",
		strbuf_str(&names));
}

static void check_owners(struct json_object *list, struct schema_causes *causes)
{
	struct json_object *first = NULL;

	/* Each cause of two shows the whole list. */
	for (size_t i = 0; !causes->cut && i < json_object_array_length(list); i++) {
		struct json_object *owner = json_object_array_get_idx(list, i);

		check_owner(owner, causes);
		if (!json_get_bool(owner, "controller", false))
			continue;
		if (first)
			two_controllers(list, first, owner, causes);
		else
			first = owner;
	}
}

void apistore_meta_check(const struct apistore_write *w, const struct schema_kind *k,
	struct json_object *o, struct schema_causes *causes)
{
	struct json_object *m = json_get_obj(o, "metadata"), *labels = json_get_obj(m, "labels"),
			   *annotations = json_get_obj(m, "annotations"),
			   *finalizers = json_get_arr(m, "finalizers"),
			   *owners = json_get_arr(m, "ownerReferences");
	const struct rule *r = rule_of(k);

	if (w->was && finalizers)
		check_no_new(w->was, finalizers, causes);
	check_names(r, json_get_str(m, "generateName"), w->t->name, causes);
	if (labels)
		check_labels(labels, causes);
	if (annotations)
		check_annotations(annotations, causes);
	if (owners)
		check_owners(owners, causes);
	if (finalizers)
		check_finalizers(r, finalizers, causes);
}
