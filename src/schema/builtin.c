/* SPDX-License-Identifier: MIT */
/*
 * The table of built-in kinds, and the checks that kube-apiserver makes on their objects. Names,
 * verbs and short names are those of its discovery. The checks run after the defaults, which only
 * RoleBindings have. Members that are not checked are stored as they came. A value that is decoded
 * here is wiped afterwards; causes name the place of a value, never its content.
 */
#include "config.h"

#include "tec/schema/builtin.h"

#include <ctype.h>
#include <string.h>

#include "schema_internal.h"
#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"
#include "tec/kobj/key.h"

#define RBAC "rbac.authorization.k8s.io"

/* ---- the kinds */

#define NAMES(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}
#define KIND(g, k, p, s, ...)                                                                      \
	{                                                                                          \
		.group = g, .version = "v1", .kind = k, .list_kind = k "List", .plural = p,        \
		.singular = s, __VA_ARGS__                                                         \
	}
#define STORED .verbs = SCHEMA_VERBS_ALL, .namespaced = true
/* A review is answered at once and never stored. */
#define REVIEW .verbs = SCHEMA_VERB_CREATE, .members = "spec status"

/* A POST to serviceaccounts/NAME/token exchanges a TokenRequest, not a ServiceAccount. */
static const struct schema_sub account_subs[] = {
	{.name = "token",
		.group = "authentication.k8s.io",
		.version = "v1",
		.kind = "TokenRequest",
		.verbs = SCHEMA_VERB_CREATE},
};

/* By group, then by name: the order of discovery. */
static const struct schema_kind kinds[] = {
	KIND("", "ConfigMap", "configmaps", "configmap", .short_names = NAMES("cm"),
		.members = "data binaryData immutable", STORED),
	KIND("", "Event", "events", "event", .short_names = NAMES("ev"),
		.members =
			"involvedObject reason message source firstTimestamp lastTimestamp count "
			"type eventTime series action related reportingComponent reportingInstance",
		STORED),
	KIND("", "Namespace", "namespaces", "namespace", .short_names = NAMES("ns"),
		.verbs = SCHEMA_VERB_GET | SCHEMA_VERB_LIST | SCHEMA_VERB_WATCH,
		.members = "spec status"),
	KIND("", "Secret", "secrets", "secret", .members = "data stringData immutable type",
		STORED),
	KIND("", "ServiceAccount", "serviceaccounts", "serviceaccount", .short_names = NAMES("sa"),
		.subs = account_subs, .n_subs = ARRAY_LEN(account_subs),
		.members = "secrets imagePullSecrets automountServiceAccountToken", STORED),
	KIND("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews",
		"selfsubjectreview", REVIEW),
	KIND("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews",
		"selfsubjectaccessreview", REVIEW),
	KIND("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews",
		"selfsubjectrulesreview", REVIEW),
	KIND("events.k8s.io", "Event", "events", "event", .short_names = NAMES("ev"),
		.members = "eventTime series reportingController reportingInstance action reason "
			   "regarding related note type deprecatedSource deprecatedFirstTimestamp "
			   "deprecatedLastTimestamp deprecatedCount",
		STORED),
	KIND(RBAC, "RoleBinding", "rolebindings", "rolebinding", .members = "subjects roleRef",
		STORED),
};

size_t schema_builtin_count(void)
{
	return ARRAY_LEN(kinds);
}

const struct schema_kind *schema_builtin_at(size_t i)
{
	return i < ARRAY_LEN(kinds) ? &kinds[i] : NULL;
}

/* The table is small: a search is fast enough for every request. */
const struct schema_kind *schema_builtin_kind(
	const char *group, const char *version, const char *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kinds[i].group, group) && str_eq(kinds[i].version, version) &&
			str_eq(kinds[i].kind, kind))
			return &kinds[i];
	return NULL;
}

/* ---- causes */

/* The check of one object: the path of the member being checked, and where causes go. */
struct check {
	struct strbuf path;
	struct schema_causes *causes;
};

/* The path is extended for this cause only, so callers need not restore it. */
static void add_cause(struct check *c, const char *name, enum schema_problem p,
	struct json_object *v, const char *why)
{
	size_t before = schema_path_add(&c->path, name);

	schema_cause_add(c->causes, p, strbuf_str(&c->path), v, "%s", why);
	schema_path_cut(&c->path, before);
}

/* An empty value counts as missing, as in Go's API types. */
static bool require(struct check *c, struct json_object *o, const char *name)
{
	if (!json_is_empty(json_get(o, name)))
		return true;
	add_cause(c, name, SCHEMA_REQUIRED, NULL, "");
	return false;
}

/* ---- Secrets and ConfigMaps */

#define DATA_MAX (1u << 20)
#define KEY_TEXT "must be letters, digits, '-', '_' and '.'"
#define ACCOUNT  "kubernetes.io/service-account.name"

/* Add a cause about a member of a map: "data[tls.crt]". */
static void at_key(struct check *c, const char *map, const char *key, enum schema_problem p,
	const char *value, const char *why)
{
	cleanup_free char *field = xasprintf("%s[%s]", map, key);

	schema_cause_add_text(c->causes, p, field, value, why);
}

/* The characters of a file name, because each key becomes a file in a volume. */
static void check_key(struct check *c, const char *map, const char *key)
{
	size_t n = strlen(key), good = 0;

	while (good < n && (isalnum((unsigned char)key[good]) || strchr("-_.", key[good])))
		good++;
	if (n > KOBJ_NAME_MAX)
		at_key(c, map, key, SCHEMA_INVALID, key, "must have at most 253 characters");
	if (n == 0 || good < n)
		at_key(c, map, key, SCHEMA_INVALID, key, KEY_TEXT);
	if (str_eq(key, ".") || str_starts(key, ".."))
		at_key(c, map, key, SCHEMA_INVALID, key, "must not be '.' or begin with '..'");
}

/* Check the keys of one map and return the total size of its values. other: the map that must not
 * have the same keys; NULL: none, and the values are base64. */
static size_t check_data(struct check *c, struct json_object *o, const char *map, const char *other)
{
	struct json_object *also = other ? json_get_obj(o, other) : NULL;
	size_t size = 0;

	json_each (json_get_obj(o, map), key, v) {
		size_t n = (size_t)json_object_get_string_len(v);
		const char *text;

		check_key(c, map, key);
		if (also && json_object_object_get_ex(also, key, NULL))
			at_key(c, map, key, SCHEMA_INVALID, key, "is in binaryData, too");
		if (!json_object_is_type(v, json_type_string))
			continue;
		text = json_object_get_string(v);
		if (other)
			size += n;
		else if (n >= 4) /* the decoded length, by length and padding */
			size += n / 4 * 3 - (text[n - 1] == '=') - (text[n - 2] == '=');
	}
	return size;
}

/* The limit of 1 MiB is kube-apiserver's, and counts values only. */
static void check_size(struct check *c, const char *field, size_t size)
{
	if (size > DATA_MAX)
		schema_cause_add(c->causes, SCHEMA_TOO_LONG, field, NULL,
			"must have at most %u bytes", DATA_MAX);
}

/* The key must exist; its value may be empty, as in kube-apiserver, or null, which json_get() would
 * not tell from an absent one. */
static bool require_key(struct check *c, struct json_object *data, const char *key)
{
	if (json_object_object_get_ex(data, key, NULL))
		return true;
	at_key(c, "data", key, SCHEMA_REQUIRED, NULL, "");
	return false;
}

/* Check that the credentials of a registry are a JSON object. */
static void check_docker(struct check *c, struct json_object *data, const char *key)
{
	struct json_object *v = NULL, *o;
	struct err err = ERR_INIT;
	uint8_t *bytes = NULL;
	size_t n = 0;

	if (!require_key(c, data, key))
		return;
	(void)json_object_object_get_ex(data, key, &v);
	if (v && (!json_object_is_type(v, json_type_string) ||
			 bytes_from_b64(json_object_get_string(v),
				 (size_t)json_object_get_string_len(v), &bytes, &n) < 0))
		return; /* not base64: already refused */
	o = json_parse(bytes ? (const char *)bytes : "", n, &json_limits_object, &err);
	if (!json_object_is_type(o, json_type_object))
		at_key(c, "data", key, SCHEMA_INVALID, NULL, "must be a JSON object");
	json_wipe(o);
	json_object_put(o);
	if (bytes)
		secret_wipe(bytes, n);
	free(bytes);
}

/* Check the keys that the type of a Secret requires. Other types, including Opaque and custom ones,
 * have no rules. */
static void check_type(struct check *c, struct json_object *o)
{
	struct json_object *data = json_get_obj(o, "data"), *v = NULL;
	const char *type = json_get_str(o, "type");

	if (str_eq(type, "kubernetes.io/dockercfg")) {
		check_docker(c, data, ".dockercfg");
	} else if (str_eq(type, "kubernetes.io/dockerconfigjson")) {
		check_docker(c, data, ".dockerconfigjson");
	} else if (str_eq(type, "kubernetes.io/basic-auth")) {
		/* One of the two suffices; without both, each is reported as missing. */
		if (!json_object_object_get_ex(data, "username", NULL) &&
			!json_object_object_get_ex(data, "password", NULL)) {
			(void)require_key(c, data, "username");
			(void)require_key(c, data, "password");
		}
	} else if (str_eq(type, "kubernetes.io/ssh-auth")) {
		/* Unlike with the other types, an empty value is refused. */
		json_object_object_get_ex(data, "ssh-privatekey", &v);
		if (json_is_empty(v))
			at_key(c, "data", "ssh-privatekey", SCHEMA_REQUIRED, NULL, "");
	} else if (str_eq(type, "kubernetes.io/tls")) {
		/* The certificate and key are not parsed: kube-apiserver does not either. */
		(void)require_key(c, data, "tls.crt");
		(void)require_key(c, data, "tls.key");
	} else if (str_eq(type, "kubernetes.io/service-account-token")) {
		/* Whether the ServiceAccount exists is not checked here. */
		json_object_object_get_ex(json_get_obj(o, "metadata/annotations"), ACCOUNT, &v);
		if (json_is_empty(v))
			at_key(c, "metadata.annotations", ACCOUNT, SCHEMA_REQUIRED, NULL, "");
	}
}

/* ---- RoleBindings */

/* Require one of the words (NULL-terminated); a missing value is "". */
static void require_word(
	struct check *c, struct json_object *o, const char *name, const char *const *words)
{
	cleanup_strbuf struct strbuf all = STRBUF_INIT;
	const char *have = json_get_str(o, name);

	for (const char *const *w = words; *w; w++) {
		if (str_eq(have ? have : "", *w))
			return;
		strbuf_addf(&all, "%s\"%s\"", all.len ? ", " : "supported values: ", *w);
	}
	add_cause(c, name, SCHEMA_UNSUPPORTED, json_get(o, name), strbuf_str(&all));
}

/* The API group depends on the kind: "" for ServiceAccounts, RBAC's for users and groups. */
static void check_subject(struct check *c, struct json_object *s)
{
	static const char *const subject_kinds[] = {"ServiceAccount", "User", "Group", NULL},
				 *const core[] = {"", NULL}, *const rbac[] = {RBAC, NULL};
	const char *kind = json_get_str(s, "kind"), *name = json_get_str(s, "name");
	bool account = str_eq(kind, "ServiceAccount");

	if (require(c, s, "name") && account && name && !kobj_name_valid(name, strlen(name)))
		add_cause(c, "name", SCHEMA_INVALID, json_get(s, "name"),
			"must be the name of an object");
	require_word(c, s, "kind", subject_kinds);
	if (account)
		require_word(c, s, "apiGroup", core);
	else if (str_eq(kind, "User") || str_eq(kind, "Group"))
		require_word(c, s, "apiGroup", rbac);
}

/* Unlike kube-apiserver, only the ClusterRoles that apireq/rights knows may be named: a binding
 * to any other would grant nothing. */
static void check_binding(struct check *c, struct json_object *o)
{
	static const char *const groups[] = {RBAC, NULL};
	static const char *const role_kinds[] = {"ClusterRole", NULL};
	static const char *const names[] = {
		SCHEMA_ROLE_ADMIN, SCHEMA_ROLE_FOLLOW, SCHEMA_ROLE_VIEW, NULL};
	struct json_object *ref = json_get_obj(o, "roleRef"), *a = json_get_arr(o, "subjects");
	size_t before = schema_path_add(&c->path, "roleRef");

	if (ref)
		require_word(c, ref, "apiGroup", groups);
	require_word(c, ref, "kind", role_kinds);
	require_word(c, ref, "name", names);
	schema_path_cut(&c->path, before);
	(void)schema_path_add(&c->path, "subjects");
	for (size_t i = 0; i < json_len(a); i++) {
		size_t list = schema_path_index(&c->path, i);

		if (json_object_is_type(json_at(a, i), json_type_object))
			check_subject(c, json_at(a, i));
		schema_path_cut(&c->path, list);
	}
	schema_path_cut(&c->path, before);
}

/* Only an absent group is filled in; an explicit "" is checked as given. */
static void fill_group(struct json_object *o)
{
	if (json_object_is_type(o, json_type_object) &&
		!json_object_object_get_ex(o, "apiGroup", NULL))
		json_add_str(o, "apiGroup", RBAC);
}

/* The default that RoleBindings have: RBAC's group for roleRef, users and groups. */
void schema_builtin_default(const struct schema_kind *k, struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "subjects");

	if (!str_eq(k->kind, "RoleBinding"))
		return;
	fill_group(json_get_obj(o, "roleRef"));
	for (size_t i = 0; i < json_len(a); i++) {
		struct json_object *s = json_at(a, i);
		const char *kind = json_get_str(s, "kind");

		if (str_eq(kind, "User") || str_eq(kind, "Group"))
			fill_group(s);
	}
}

/* ---- Events */

/* core/v1 accepts nearly everything, as it always did. events.k8s.io/v1 has rules for new objects,
 * and only metadata and series may change later. Causes name the fields of core/v1, because
 * kube-apiserver validates the converted object. */

#define SHORT_MAX 128
#define NOTE_MAX  1024

/* Bytes, not characters: kube-apiserver uses len() here. */
static void at_most(
	struct check *c, struct json_object *o, const char *member, const char *field, size_t max)
{
	const char *text = json_get_str(o, member);
	cleanup_free char *why = xasprintf("must have at most %zu bytes", max);

	if (text && strlen(text) > max)
		add_cause(c, field, SCHEMA_INVALID, NULL, why);
}

/* Check for a qualified name such as "a" or "example.io/a": an optional DNS prefix, then letters,
 * digits and "-_." with a letter or digit at both ends. */
static bool is_qualified(const char *s)
{
	const char *slash = strchr(s, '/'), *part = slash ? slash + 1 : s;
	size_t n = strlen(part);

	if (slash && !kobj_name_valid(s, (size_t)(slash - s)))
		return false;
	if (n == 0 || n > 63 || !isalnum((unsigned char)part[0]) ||
		!isalnum((unsigned char)part[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)part[i]) && !strchr("-_.", part[i]))
			return false;
	return true;
}

/* The rules for an Event with an eventTime apply to those of core/v1, too. An Event about a
 * cluster-scoped object has no namespace to match: it must be in "default", or in kube-system for
 * the newer form. */
static void check_event(struct check *c, struct json_object *o, bool core)
{
	static const char *const members[] = {"reportingInstance", "action", "reason"};
	const char *controller = core ? "reportingComponent" : "reportingController",
		   *name = json_get_str(o, controller), *ns = json_get_str(o, "metadata/namespace"),
		   *of = json_get_str(o, core ? "involvedObject/namespace" : "regarding/namespace");
	bool timed = !json_is_empty(json_get(o, "eventTime"));
	bool none = !ns || !*ns || str_eq(ns, "default") || (timed && str_eq(ns, "kube-system"));

	if (of && *of ? !timed && !str_eq(ns, of) : !none)
		add_cause(c, "involvedObject.namespace", SCHEMA_INVALID, NULL,
			"must be the namespace of the Event");
	if (!timed)
		return;
	require(c, o, controller);
	if (name && *name && !is_qualified(name))
		add_cause(c, controller, SCHEMA_INVALID, json_get(o, controller),
			"must be a qualified name such as example.com/name");
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		require(c, o, members[i]);
		at_most(c, o, members[i], members[i], SHORT_MAX);
	}
	at_most(c, o, core ? "message" : "note", "message", NOTE_MAX);
}

/* A series begins with its second occurrence. */
static void check_series(struct check *c, struct json_object *o)
{
	struct json_object *series = json_get_obj(o, "series");

	if (!series)
		return;
	if (json_get_int(series, "count", 0) < 2)
		add_cause(c, "series.count", SCHEMA_INVALID, NULL, "must be at least 2");
	if (json_is_empty(json_get(series, "lastObservedTime")))
		add_cause(c, "series.lastObservedTime", SCHEMA_REQUIRED, NULL, "");
}

/* The deprecated members must be unset in a new Event, except deprecatedCount, for which 0 is
 * allowed. */
static void check_new_event(struct check *c, struct json_object *o)
{
	static const char *const unset[][2] = {{"deprecatedFirstTimestamp", "firstTimestamp"},
		{"deprecatedLastTimestamp", "lastTimestamp"}, {"deprecatedCount", "count"},
		{"deprecatedSource", "source"}};
	const char *type = json_get_str(o, "type");

	check_series(c, o);
	require(c, o, "eventTime");
	if (!str_eq(type, "Normal") && !str_eq(type, "Warning"))
		add_cause(c, "type", SCHEMA_INVALID, json_get(o, "type"),
			"must be Normal or Warning");
	for (size_t i = 0; i < ARRAY_LEN(unset); i++)
		if (!json_is_empty(json_get(o, unset[i][0])) &&
			!(str_eq(unset[i][1], "count") && json_get_int(o, unset[i][0], 0) == 0))
			add_cause(c, unset[i][1], SCHEMA_INVALID, NULL, "must be unset");
}

/* Everything but metadata and series is immutable: the member, and the field of core/v1 that causes
 * name. Absent and empty are equal, as in Go's types. A series is checked only when it changed. */
static void check_changed_event(struct check *c, struct json_object *old, struct json_object *o)
{
	static const char *const fixed[][2] = {{"regarding", "involvedObject"},
		{"reason", "reason"}, {"note", "message"}, {"deprecatedSource", "source"},
		{"deprecatedFirstTimestamp", "firstTimestamp"},
		{"deprecatedLastTimestamp", "lastTimestamp"}, {"deprecatedCount", "count"},
		{"type", "type"}, {"eventTime", "eventTime"}, {"action", "action"},
		{"related", "related"}, {"reportingController", "reportingController"},
		{"reportingInstance", "reportingInstance"}};

	if (!json_object_equal(json_get(old, "series"), json_get(o, "series")))
		check_series(c, o);
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
		struct json_object *a = json_get(old, fixed[i][0]), *b = json_get(o, fixed[i][0]);

		if (!json_object_equal(a, b) && !(json_is_empty(a) && json_is_empty(b)))
			add_cause(c, fixed[i][1], SCHEMA_INVALID, b, "field is immutable");
	}
}

/* ---- what an update must not change */

/* The new and the old object are compared after the defaults, so that an omitted default is no
 * change. The type of a Secret is Opaque by default. */
static void check_changed(struct check *c, const struct schema_kind *k, struct json_object *old,
	struct json_object *now)
{
	static const char *const data[] = {"data", "binaryData"};
	static const char why[] = "field is immutable when `immutable` is set";
	const char *was = json_get_str(old, "type"), *is = json_get_str(now, "type");
	bool secret = str_eq(k->kind, "Secret");

	if (secret && !str_eq(was ? was : "Opaque", is ? is : "Opaque"))
		add_cause(c, "type", SCHEMA_INVALID, json_get(now, "type"), "field is immutable");
	if ((secret || str_eq(k->kind, "ConfigMap")) && json_get_bool(old, "immutable", false)) {
		/* immutable cannot be unset either, otherwise two updates would change the data. */
		if (!json_get_bool(now, "immutable", false))
			schema_cause_add(c->causes, SCHEMA_FORBIDDEN, "immutable", NULL, "%s", why);
		for (size_t i = 0; i < ARRAY_LEN(data); i++)
			if (!json_object_equal(json_get(old, data[i]), json_get(now, data[i])))
				schema_cause_add(
					c->causes, SCHEMA_FORBIDDEN, data[i], NULL, "%s", why);
	}
	if (str_eq(k->kind, "RoleBinding") &&
		!json_object_equal(json_get(old, "roleRef"), json_get(now, "roleRef")))
		add_cause(c, "roleRef", SCHEMA_INVALID, json_get(now, "roleRef"),
			"field is immutable");
	if (str_eq(k->group, "events.k8s.io"))
		check_changed_event(c, old, now);
}

/* ---- all kinds */

/* `was` selects the rules for an update; without it, those for a create apply. */
void schema_builtin_check(const struct schema_kind *k, struct json_object *was,
	struct json_object *o, struct schema_causes *causes)
{
	struct check c = {STRBUF_INIT, causes};

	if (was)
		check_changed(&c, k, was, o);
	if (str_eq(k->kind, "Secret")) {
		check_size(&c, "data", check_data(&c, o, "data", NULL));
		check_type(&c, o);
	} else if (str_eq(k->kind, "ConfigMap")) {
		/* Both maps share the limit. "[]" is the field that kube-apiserver reports. */
		size_t size = check_data(&c, o, "data", "binaryData");

		check_size(&c, "[]", size + check_data(&c, o, "binaryData", NULL));
	} else if (str_eq(k->kind, "RoleBinding")) {
		check_binding(&c, o);
	} else if (str_eq(k->kind, "Event")) {
		check_event(&c, o, k->group[0] == '\0');
	}
	if (!was && str_eq(k->group, "events.k8s.io"))
		check_new_event(&c, o);
	strbuf_fini(&c.path);
}
