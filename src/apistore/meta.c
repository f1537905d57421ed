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
#define LABEL_1035                                                                                 \
	"a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
#define NAME_PART                                                                                  \
	"must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define LABEL_VALUE                                                                                \
	"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

/* ---- names of objects */

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

static void check_subdomain(const struct field *f)
{
	size_t n = strlen(f->value);

	if (n > KOBJ_NAME_MAX)
		too_long(f, KOBJ_NAME_MAX);
	else if (!kobj_name_valid(f->value, n))
		wrong(f, SUBDOMAIN);
}

static void check_label_name(const struct field *f)
{
	size_t n = strlen(f->value);

	if (n > LABEL_MAX)
		too_long(f, LABEL_MAX);
	else if (!kobj_label_valid(f->value, n))
		wrong(f, LABEL);
}

static void check_service_name(const struct field *f)
{
	size_t n = strlen(f->value);

	if (n > LABEL_MAX)
		too_long(f, LABEL_MAX);
	else if (!kobj_label_valid(f->value, n) || isdigit((unsigned char)f->value[0]))
		wrong(f, LABEL_1035);
}

/* It stands in paths, and in the keys of the store. */
static void check_segment(const struct field *f)
{
	size_t n = strlen(f->value);

	if (str_eq(f->value, ".") || str_eq(f->value, ".."))
		schema_cause_add_text(
			f->causes, SCHEMA_INVALID, f->name, f->value, "may not be '%s'", f->value);
	if (strchr(f->value, '/'))
		wrong(f, "may not contain '/'");
	if (strchr(f->value, '%'))
		wrong(f, "may not contain '%'");
	if (n > KOBJ_NAME_MAX)
		too_long(f, KOBJ_NAME_MAX);
}

static void check_name(const struct schema_kind *k, const char *name, struct schema_causes *causes)
{
	const struct field f = {causes, "metadata.name", name};

	if (!*name)
		schema_cause_add(
			causes, SCHEMA_REQUIRED, f.name, NULL, "name or generateName is required");
	else if (k && k->names_path)
		check_segment(&f);
	else if (k && !k->group[0] && str_eq(k->kind, "Namespace"))
		check_label_name(&f);
	else if (k && !k->group[0] && str_eq(k->kind, "Service"))
		check_service_name(&f);
	else
		check_subdomain(&f);
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
	else if (slash && !kobj_name_valid(name, prefix))
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

static void check_finalizers(struct json_object *list, struct schema_causes *causes)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(list, i));
		const struct field f = {causes, "metadata.finalizers", name};

		check_qualified(&f, name);
	}
}

static void check_owners(struct json_object *list, struct schema_causes *causes)
{
	static const char *const members[][2] = {{"apiVersion", "version must not be empty"},
		{"kind", "must not be empty"}, {"name", "must not be empty"},
		{"uid", "must not be empty"}};

	for (size_t i = 0; i < json_object_array_length(list); i++)
		for (size_t k = 0; k < ARRAY_LEN(members); k++) {
			const char *value =
				json_get_str(json_object_array_get_idx(list, i), members[k][0]);
			cleanup_free char *field =
				xasprintf("metadata.ownerReferences.%s", members[k][0]);

			if (!value || !*value)
				schema_cause_add_text(
					causes, SCHEMA_INVALID, field, "", "%s", members[k][1]);
		}
}

void apistore_meta_check(const struct apistore_write *w, const struct schema_kind *k,
	struct json_object *o, struct schema_causes *causes)
{
	struct json_object *m = json_get_obj(o, "metadata"), *labels = json_get_obj(m, "labels"),
			   *annotations = json_get_obj(m, "annotations"),
			   *finalizers = json_get_arr(m, "finalizers"),
			   *owners = json_get_arr(m, "ownerReferences");

	check_name(k, w->t->name, causes);
	if (annotations)
		check_annotations(annotations, causes);
	if (labels)
		check_labels(labels, causes);
	if (owners)
		check_owners(owners, causes);
	if (finalizers)
		check_finalizers(finalizers, causes);
}
