/* SPDX-License-Identifier: MIT */
/*
 * Each rule is taken apart into single rights (one verb, one group, one resource, at most one name),
 * each of which one rule of the user must cover: as kube-apiserver does, so that two rules of the
 * user together cover what one of the new role says.
 */
#include "config.h"

#include "tec/apistore/escalate.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"

#define PATHS     "nonResourceURLs"
#define LOOKS_MAX 500000 /* rules times rights of one role; what is above says too much */

static const char *const members[] = {"apiGroups", "resources", PATHS, "resourceNames", "verbs"};

static size_t count(struct json_object *rule, const char *member)
{
	struct json_object *a = json_get_arr(rule, member);

	return a ? json_object_array_length(a) : 0;
}

static const char *at(struct json_object *rule, const char *member, size_t i)
{
	const char *s =
		json_object_get_string(json_object_array_get_idx(json_get_arr(rule, member), i));

	return s ? s : "";
}

static bool has(struct json_object *rule, const char *member, const char *want)
{
	for (size_t i = 0; i < count(rule, member); i++)
		if (str_eq(at(rule, member, i), want))
			return true;
	return false;
}

static bool has_or_all(struct json_object *rule, const char *member, const char *want)
{
	return has(rule, member, "*") || has(rule, member, want);
}

static bool has_resource(struct json_object *rule, const char *want)
{
	const char *slash = strchr(want, '/');
	cleanup_free char *any = slash ? xasprintf("*%s", slash) : NULL;

	return has_or_all(rule, "resources", want) || (any && has(rule, "resources", any));
}

static bool has_path(struct json_object *rule, const char *want)
{
	for (size_t i = 0; i < count(rule, PATHS); i++) {
		const char *have = at(rule, PATHS, i);
		size_t n = strlen(have);

		if (str_eq(have, want) ||
			(n > 0 && have[n - 1] == '*' && strncmp(have, want, n - 1) == 0))
			return true;
	}
	return false;
}

/* right: has one of each member that it has. */
static bool covers(struct json_object *rule, struct json_object *right)
{
	if (!has_or_all(rule, "verbs", at(right, "verbs", 0)))
		return false;
	if (count(right, PATHS) > 0)
		return has_path(rule, at(right, PATHS, 0));
	return has_or_all(rule, "apiGroups", at(right, "apiGroups", 0)) &&
	       has_resource(rule, at(right, "resources", 0)) &&
	       (count(rule, "resourceNames") == 0 ||
		       (count(right, "resourceNames") > 0 &&
			       has(rule, "resourceNames", at(right, "resourceNames", 0))));
}

struct search {
	struct json_object *own[2]; /* rules for resources, and for paths */
	struct json_object *missing;
	size_t looks; /* what was compared */
};

static struct json_object *right_with(struct json_object *o, const char *member, const char *value)
{
	return json_add(o, member, json_push_str(json_arr(), value));
}

/* Rights that differ in their verb alone are told as one. */
static void add_missing(struct search *s, struct json_object *right)
{
	for (size_t i = 0; i < json_object_array_length(s->missing); i++) {
		struct json_object *m = json_object_array_get_idx(s->missing, i);
		bool same = true;

		s->looks++;
		for (size_t k = 0; k < ARRAY_LEN(members) - 1; k++)
			same = same && json_object_equal(json_get(m, members[k]),
					       json_get(right, members[k]));
		if (!same || count(m, PATHS) > 0)
			continue;
		json_push_str(json_get(m, "verbs"), at(right, "verbs", 0));
		return;
	}
	json_push(s->missing, json_object_get(right));
}

static void look(struct search *s, struct json_object *take_right)
{
	cleanup_json struct json_object *right = take_right;

	s->looks++;
	for (size_t k = 0; k < ARRAY_LEN(s->own); k++)
		for (size_t i = 0; i < json_object_array_length(s->own[k]); i++, s->looks++)
			if (covers(json_object_array_get_idx(s->own[k], i), right))
				return;
	add_missing(s, right);
}

static bool is_too_much(const struct search *s)
{
	return s->looks > LOOKS_MAX;
}

static void look_at_resource(
	struct search *s, struct json_object *rule, const char *group, const char *resource)
{
	size_t names = count(rule, "resourceNames"), verbs = count(rule, "verbs");

	for (size_t v = 0; v < verbs && !is_too_much(s); v++)
		for (size_t i = 0; i < (names ? names : 1) && !is_too_much(s); i++) {
			struct json_object *o = json_obj();

			right_with(right_with(o, "apiGroups", group), "resources", resource);
			if (names)
				right_with(o, "resourceNames", at(rule, "resourceNames", i));
			look(s, right_with(o, "verbs", at(rule, "verbs", v)));
		}
}

static void look_at_rule(struct search *s, struct json_object *rule)
{
	size_t groups = count(rule, "apiGroups"), resources = count(rule, "resources"),
	       paths = count(rule, PATHS), verbs = count(rule, "verbs");

	for (size_t g = 0; g < groups && !is_too_much(s); g++)
		for (size_t r = 0; r < resources && !is_too_much(s); r++, s->looks++)
			look_at_resource(
				s, rule, at(rule, "apiGroups", g), at(rule, "resources", r));
	for (size_t p = 0; p < paths && !is_too_much(s); p++)
		for (size_t v = 0; v < verbs && !is_too_much(s); v++)
			look(s, right_with(right_with(json_obj(), PATHS, at(rule, PATHS, p)),
					"verbs", at(rule, "verbs", v)));
}

/* ---- words */

static void add_quoted(struct strbuf *out, const char *s)
{
	json_quote(out, s, strlen(s));
}

/* {APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]} */
static char *rule_text(struct json_object *rule)
{
	static const char *const names[] = {
		"APIGroups", "Resources", "NonResourceURLs", "ResourceNames", "Verbs"};
	struct strbuf b = STRBUF_INIT;

	strbuf_addc(&b, '{');
	for (size_t k = 0; k < ARRAY_LEN(members); k++) {
		if (count(rule, members[k]) == 0)
			continue;
		strbuf_addf(&b, "%s%s:[", b.len > 1 ? ", " : "", names[k]);
		for (size_t i = 0; i < count(rule, members[k]); i++) {
			strbuf_adds(&b, i ? " " : "");
			add_quoted(&b, at(rule, members[k], i));
		}
		strbuf_addc(&b, ']');
	}
	strbuf_addc(&b, '}');
	return strbuf_steal(&b);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *refusal(const struct apistore_user *u, struct json_object *missing)
{
	size_t n = json_object_array_length(missing);
	char **text = xcalloc(n, sizeof(*text));
	struct strbuf b = STRBUF_INIT;

	strbuf_adds(&b, "user ");
	add_quoted(&b, u->name);
	strbuf_adds(&b, " (groups=[");
	for (size_t i = 0; i < u->n_groups; i++) {
		strbuf_adds(&b, i ? " " : "");
		add_quoted(&b, u->groups[i]);
	}
	strbuf_adds(&b, "]) is attempting to grant RBAC permissions not currently held:");
	for (size_t i = 0; i < n; i++)
		text[i] = rule_text(json_object_array_get_idx(missing, i));
	qsort(text, n, sizeof(*text), by_text);
	for (size_t i = 0; i < n; i++) {
		strbuf_addf(&b, "\n%s", text[i]);
		free(text[i]);
	}
	free(text);
	return strbuf_steal(&b);
}

/* ---- questions */

char *apistore_escalate_missing(
	const struct apistore_asker *asker, const char *ns, struct json_object *rules)
{
	cleanup_json struct json_object *own =
		apistore_rights_rules(&asker->user, ns, asker->roles);
	cleanup_json struct json_object *missing = json_arr();
	struct search s = {
		{json_get(own, "resourceRules"), json_get(own, "nonResourceRules")}, missing, 0};
	size_t n =
		json_object_is_type(rules, json_type_array) ? json_object_array_length(rules) : 0;

	for (size_t i = 0; i < n; i++)
		look_at_rule(&s, json_object_array_get_idx(rules, i));
	if (is_too_much(&s))
		return xstrdup(
			"the rules name too many rights to compare them: name fewer, or use \"*\"");
	return json_object_array_length(missing) > 0 ? refusal(&asker->user, missing) : NULL;
}

bool apistore_escalate_allowed(const struct apistore_asker *asker, const char *verb,
	const char *resource, const char *ns, const char *name)
{
	const struct apistore_act act = {
		verb, "rbac.authorization.k8s.io", resource, "", ns, name, ""};

	return apistore_rights_allow(&asker->user, &act, asker->roles);
}
