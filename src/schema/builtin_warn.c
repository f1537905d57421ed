/* SPDX-License-Identifier: MIT */
/*
 * What kube-apiserver takes and warns of, for what people meet: names that become hostnames, parts of
 * bytes, environment and ports that hide each other, fields that are ignored. In its order and words.
 * What the types do not promise is looked at as in builtin_check.c.
 */
#include "config.h"

#include <string.h>

#include "builtin_internal.h"
#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"
#include "tec/schema/builtin.h"
#include "tec/schema/quantity.h"

#define SAME_MAX 64 /* of one number and protocol: each is held against all that come later */

/* Where in the object, and where the warnings go. */
struct warn {
	struct look at; /* without causes */
	struct schema_texts *out;
	struct json_object *ports, *names; /* what earlier containers have, by port and by name */
};

static bool is_full(const struct warn *w)
{
	return w->out->n >= SCHEMA_CAUSES_MAX || w->out->bytes >= SCHEMA_CAUSES_BYTES;
}

/* "PATH.FIELD: TEXT", "PATH[KEY]: TEXT", and "PATH: TEXT" without a field. */
static void say(struct warn *w, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void say(struct warn *w, const char *field, const char *fmt, ...)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	bool member = *field && *field != '[';
	size_t before = w->at.path.len;
	va_list ap;

	if (member)
		(void)look_go(&w->at, field);
	else
		strbuf_adds(&w->at.path, field);
	va_start(ap, fmt);
	strbuf_vaddf(&text, fmt, ap);
	va_end(ap);
	schema_texts_add(w->out, "%s: %s", strbuf_str(&w->at.path), strbuf_str(&text));
	look_back(&w->at, before);
}

static char *quoted(const char *s)
{
	struct strbuf b = STRBUF_INIT;

	schema_quote_go(&b, s, strlen(s));
	return strbuf_steal(&b);
}

static void each(struct warn *w, struct json_object *o, const char *list,
	void (*fn)(struct warn *w, struct json_object *v))
{
	struct json_object *a = json_get_arr(o, list);
	size_t whole = look_go(&w->at, list);

	for (size_t i = 0; a && !is_full(w) && i < json_object_array_length(a); i++) {
		size_t before = schema_path_index(&w->at.path, i);

		if (json_object_is_type(json_object_array_get_idx(a, i), json_type_object))
			fn(w, json_object_array_get_idx(a, i));
		look_back(&w->at, before);
	}
	look_back(&w->at, whole);
}

/* ---- quantities */

static void fraction(struct warn *w, struct json_object *quantities, const char *name)
{
	const char *s = json_get_str(quantities, name);
	cleanup_free char *field = xasprintf("[%s]", name);
	struct schema_quantity q;
	struct err err = ERR_INIT;

	if (!s || schema_quantity_parse(s, strlen(s), &q, &err) < 0 || q.nano % 1000000000 == 0)
		return;
	say(w, field, "fractional byte value \"%s\" is invalid, must be an integer", s);
}

static void fractions(struct warn *w, struct json_object *o, const char *first, const char *second)
{
	static const char *const bytes[] = {"memory", "ephemeral-storage"};
	const char *const of[] = {first, second};

	for (size_t b = 0; b < ARRAY_LEN(bytes); b++)
		for (size_t i = 0; i < ARRAY_LEN(of) && of[i]; i++) {
			size_t before = look_go(&w->at, of[i]);

			fraction(w, json_get_obj(o, of[i]), bytes[b]);
			look_back(&w->at, before);
		}
}

/* ---- containers */

static void env(struct warn *w, struct json_object *c)
{
	struct json_object *a = json_get_arr(c, "env");
	cleanup_json struct json_object *seen = json_obj();

	for (size_t i = 0; a && !is_full(w) && i < json_object_array_length(a); i++) {
		struct json_object *e = json_object_array_get_idx(a, i);
		const char *name = json_get_str(e, "name"), *value = json_get_str(e, "value");
		cleanup_free char *ref = xasprintf("$(%s)", name ? name : ""),
				  *field = xasprintf("env[%zu]", i), *shown = NULL;

		if (!name)
			continue;
		if (!json_object_object_get_ex(seen, name, NULL)) {
			json_add_bool(seen, name, true);
			continue;
		}
		if (!json_get(e, "valueFrom") && value && strstr(value, ref) && !str_eq(value, ref))
			continue;
		shown = quoted(name);
		say(w, field,
			"hides previous definition of %s, which may be dropped when using apply",
			shown);
	}
}

static void container(struct warn *w, struct json_object *c)
{
	size_t before = look_go(&w->at, "resources");

	fractions(w, json_get_obj(c, "resources"), "limits", "requests");
	look_back(&w->at, before);
	env(w, c);
}

static bool same_ip(const char *a, const char *b)
{
	return str_eq(a ? a : "", b ? b : "");
}

/* One port beside an earlier one of the same number and protocol. */
static void beside(struct warn *w, struct json_object *port, struct json_object *other)
{
	struct json_object *o = json_get(other, "port");
	const char *ip = json_get_str(port, "hostIP"), *their = json_get_str(o, "hostIP"),
		   *at = json_get_str(other, "at");
	int64_t host = json_get_int(port, "hostPort", 0), theirs = json_get_int(o, "hostPort", 0);
	bool any = !ip || !*ip, any_other = !their || !*their;

	if (same_ip(ip, their) && host == theirs)
		say(w, "", "duplicate port definition with %s", at);
	else if (host == 0 || theirs == 0)
		say(w, "", "overlapping port definition with %s", at);
	else if (host == theirs && any != any_other)
		say(w, "", "dangerously ambiguous port definition with %s", at);
}

static void port(struct warn *w, struct json_object *p)
{
	const char *protocol = json_get_str(p, "protocol");
	cleanup_free char *key = xasprintf("%lld/%s",
		(long long)json_get_int(p, "containerPort", 0), protocol ? protocol : "");
	struct json_object *others = NULL, *entry = json_obj();

	if (!json_object_object_get_ex(w->ports, key, &others))
		json_add(w->ports, key, others = json_arr());
	for (size_t i = 0; !is_full(w) && i < json_object_array_length(others); i++)
		beside(w, p, json_object_array_get_idx(others, i));
	if (json_object_array_length(others) >= SAME_MAX) {
		json_object_put(entry);
		return;
	}
	json_add(entry, "port", json_object_get(p));
	json_add_str(entry, "at", strbuf_str(&w->at.path));
	json_push(others, entry);
}

static void ports(struct warn *w, struct json_object *c)
{
	each(w, c, "ports", port);
}

static void port_name(struct warn *w, struct json_object *p)
{
	const char *name = json_get_str(p, "name"), *at;
	struct json_object *other = NULL;
	cleanup_free char *shown = NULL;

	if (!name || !*name)
		return;
	if (!json_object_object_get_ex(w->names, name, &other)) {
		json_add_str(w->names, name, strbuf_str(&w->at.path));
		return;
	}
	at = json_object_get_string(other);
	shown = quoted(name);
	say(w, "",
		"duplicate port name %s with %s, services and probes that select ports by name will use %s",
		shown, at, at);
}

static void port_names(struct warn *w, struct json_object *c)
{
	each(w, c, "ports", port_name);
}

static void containers(
	struct warn *w, struct json_object *spec, void (*fn)(struct warn *w, struct json_object *c))
{
	each(w, spec, "initContainers", fn);
	each(w, spec, "containers", fn);
}

/* ---- Pods */

static void twice(struct warn *w, struct json_object *spec, const char *list, const char *member)
{
	struct json_object *a = json_get_arr(spec, list);
	cleanup_json struct json_object *seen = json_obj();

	for (size_t i = 0; a && !is_full(w) && i < json_object_array_length(a); i++) {
		const char *v = json_get_str(json_object_array_get_idx(a, i), member);
		cleanup_free char *field = xasprintf("%s[%zu].%s", list, i, member),
				  *shown = quoted(v ? v : "");

		if (v && json_object_object_get_ex(seen, v, NULL))
			say(w, field, "duplicate %s %s", member, shown);
		else if (v)
			json_add_bool(seen, v, true);
	}
}

static void spread(struct warn *w, struct json_object *c)
{
	if (!json_get(c, "labelSelector"))
		say(w, "labelSelector", "a null labelSelector results in matching no pod");
}

static void term(struct warn *w, struct json_object *t)
{
	size_t before = look_go(&w->at, "podAffinityTerm");

	spread(w, json_get_obj(t, "podAffinityTerm"));
	look_back(&w->at, before);
}

static void affinity(struct warn *w, struct json_object *spec)
{
	static const char *const kinds[] = {"podAffinity", "podAntiAffinity"};
	size_t whole = look_go(&w->at, "affinity");

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct json_object *a = json_get_obj(json_get_obj(spec, "affinity"), kinds[i]);
		size_t before = look_go(&w->at, kinds[i]);

		each(w, a, "requiredDuringSchedulingIgnoredDuringExecution", spread);
		each(w, a, "preferredDuringSchedulingIgnoredDuringExecution", term);
		look_back(&w->at, before);
	}
	look_back(&w->at, whole);
}

static void annotations(struct warn *w, struct json_object *o)
{
	static const char *const old[][2] = {
		{"scheduler.alpha.kubernetes.io/critical-pod",
			"non-functional in v1.16+; use the \"priorityClassName\" field instead"},
		{"security.alpha.kubernetes.io/sysctls",
			"non-functional in v1.11+; use the \"sysctls\" field instead"},
		{"security.alpha.kubernetes.io/unsafe-sysctls",
			"non-functional in v1.11+; use the \"sysctls\" field instead"}};
	struct json_object *a = json_get_obj(o, "metadata/annotations");

	for (size_t i = 0; a && i < ARRAY_LEN(old); i++) {
		cleanup_free char *field = xasprintf("metadata.annotations[%s]", old[i][0]);

		if (json_object_object_get_ex(a, old[i][0], NULL))
			say(w, field, "%s", old[i][1]);
	}
}

/* o: a Pod or a template of one. */
static void pod(struct warn *w, struct json_object *o)
{
	struct json_object *spec = json_get_obj(o, "spec");
	size_t before = look_go(&w->at, "spec");

	each(w, spec, "topologySpreadConstraints", spread);
	look_back(&w->at, before);
	annotations(w, o);
	(void)look_go(&w->at, "spec");
	twice(w, spec, "hostAliases", "ip");
	twice(w, spec, "imagePullSecrets", "name");
	fractions(w, spec, "overhead", NULL);
	containers(w, spec, container);
	containers(w, spec, ports);
	containers(w, spec, port_names);
	if (json_get_int(spec, "terminationGracePeriodSeconds", 0) < 0)
		say(w, "terminationGracePeriodSeconds",
			"must be >= 0; negative values are invalid and will be treated as 1");
	affinity(w, spec);
	look_back(&w->at, before);
}

static void template(struct warn *w, struct json_object *o)
{
	size_t before = look_go(&w->at, "spec.template");

	pod(w, json_get_obj(o, "spec/template"));
	look_back(&w->at, before);
}

/* ---- other kinds */

/* Finalizers of custom resources, which need no domain. */
static void custom(struct warn *w, struct json_object *o)
{
	struct json_object *a = json_get_arr(o, "metadata/finalizers");

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		const char *f = json_object_get_string(json_object_array_get_idx(a, i));
		cleanup_free char *shown = quoted(f ? f : "");

		if (!f || strchr(f, '/') || str_eq(f, "orphan") || str_eq(f, "kubernetes") ||
			str_eq(f, "foregroundDeletion"))
			continue;
		say(w, "metadata.finalizers",
			"%s: prefer a domain-qualified finalizer name%s to avoid accidental conflicts with other finalizer writers",
			shown, strchr(f, '.') ? " including a path (/)" : "");
	}
}

/* A new object whose Pods are named after it. what: the use of the name. */
static void name(struct warn *w, struct json_object *o, const char *what)
{
	const char *s = json_get_str(o, "metadata/name");

	if (s && (strlen(s) > 63 || strchr(s, '.')))
		say(w, "metadata.name",
			"this is used in %s, which can result in surprising behavior; a DNS label is recommended: [%s%s%s]",
			what, strlen(s) > 63 ? "must be no more than 63 characters" : "",
			strlen(s) > 63 && strchr(s, '.') ? " " : "",
			strchr(s, '.') ? "must not contain dots" : "");
}

static const struct rule {
	const char *group, *kind;
	void (*look)(struct warn *w, struct json_object *o);
	const char *name; /* what it is used in */
	bool on_create;
} rules[] = {{"", "Pod", pod, "the Pod's hostname", true},
	{"batch", "Job", template, "Pod names and hostnames", false}};

static void look(
	struct warn *w, const struct rule *r, struct json_object *old, struct json_object *o)
{
	if (!old)
		name(w, o, r->name);
	if (!old ||
		(!r->on_create && !json_object_equal(json_get(old, "spec"), json_get(o, "spec"))))
		r->look(w, o);
}

void schema_builtin_warn(const struct schema_kind *k, struct json_object *old,
	struct json_object *o, struct schema_texts *out)
{
	cleanup_json struct json_object *ports_seen = json_obj(), *names_seen = json_obj();
	struct warn w = {{STRBUF_INIT, NULL}, out, ports_seen, names_seen};

	for (size_t i = 0; !k->crd && i < ARRAY_LEN(rules); i++)
		if (str_eq(k->group, rules[i].group) && str_eq(k->kind, rules[i].kind))
			look(&w, &rules[i], old, o);
	if (k->crd)
		custom(&w, o);
	strbuf_fini(&w.at.path);
}
