/* SPDX-License-Identifier: MIT */
/* Containers: ports, environment, probes, what they may do. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "builtin_internal.h"
#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"

#define ENV_TEXT                                                                                   \
	"a valid environment variable name must consist only of printable ASCII characters other than '='"
#define KEY_TEXT                                                                                   \
	"a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
#define NO_HANDLER "must specify a handler type"

/* ---- ports */

void look_port_name(struct look *l, struct json_object *o, const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	const char *s = json_get_str(o, name);
	size_t n = s ? strlen(s) : 0;
	struct json_object *v = json_get(o, name);

	if (!s)
		return;
	if (n > 15)
		look_at(l, name, SCHEMA_INVALID, v, "must be no more than 15 characters");
	if (n == 0 || strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") < n)
		look_at(l, name, SCHEMA_INVALID, v,
			"must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
	if (!strpbrk(s, letters))
		look_at(l, name, SCHEMA_INVALID, v, "must contain at least one letter (a-z)");
	if (strstr(s, "--"))
		look_at(l, name, SCHEMA_INVALID, v, "must not contain consecutive hyphens");
	if (n > 0 && (s[0] == '-' || s[n - 1] == '-'))
		look_at(l, name, SCHEMA_INVALID, v, "must not begin or end with a hyphen");
}

static void port(struct look *l, struct json_object *p)
{
	static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
	int64_t n;

	if (!look_empty(json_get(p, "name")))
		look_port_name(l, p, "name");
	if (!look_number(p, "containerPort", &n) || n == 0)
		look_at(l, "containerPort", SCHEMA_REQUIRED, NULL, "");
	else
		look_port(l, p, "containerPort");
	if (look_number(p, "hostPort", &n) && n != 0)
		look_port(l, p, "hostPort");
	look_one_of(l, p, "protocol", protocols);
}

/* ---- environment */

static void env_name(struct look *l, struct json_object *o, const char *name)
{
	const char *s = json_get_str(o, name);

	for (const char *p = s; p && *p; p++)
		if (*p < ' ' || *p > '~' || *p == '=') {
			look_at(l, name, SCHEMA_INVALID, json_get(o, name), ENV_TEXT);
			return;
		}
}

/* metadata.labels['a'], metadata.annotations['a']; NULL: neither. name: owned by the caller. */
static const char *subscripted(const char *path, char **name)
{
	static const char *const maps[] = {"metadata.annotations", "metadata.labels"};

	for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
		size_t n = strlen(maps[i]), len = strlen(path);

		if (str_starts(path, maps[i]) && str_starts(path + n, "['") &&
			str_ends(path, "']") && len >= n + 4) {
			*name = xstrndup(path + n + 2, len - n - 4);
			return maps[i];
		}
	}
	return NULL;
}

static bool is_field(const char *path)
{
	static const char *const known[] = {"metadata.name", "metadata.namespace", "metadata.uid",
		"metadata.labels", "metadata.annotations", "spec.nodeName", "spec.host",
		"spec.restartPolicy", "spec.serviceAccountName", "spec.schedulerName",
		"status.phase", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_eq(path, known[i]))
			return true;
	return false;
}

void look_field_ref(struct look *l, struct json_object *r, const char *const *paths)
{
	const char *path = json_get_str(r, "fieldPath"), *version = json_get_str(r, "apiVersion");
	cleanup_free char *name = NULL, *why = NULL;

	if (!look_needs(l, r, "fieldPath", "") || !path)
		return;
	if (version && *version && !str_eq(version, "v1"))
		why = xasprintf("error converting fieldPath: unsupported pod version: %s", version);
	else if (subscripted(path, &name) && !look_qualified(name))
		look_here(l, SCHEMA_INVALID, name, LOOK_PART);
	else if (!name && strchr(path, '['))
		why = xasprintf("error converting fieldPath: field label does not support "
				"subscript: %s",
			path);
	else if (!name && !is_field(path))
		why = xasprintf("error converting fieldPath: field label not supported: %s", path);
	else if (!name)
		look_one_of(l, r, "fieldPath", paths);
	if (why)
		look_at(l, "fieldPath", SCHEMA_INVALID, json_get(r, "fieldPath"), why);
}

static void env_field(struct look *l, struct json_object *r)
{
	static const char *const known[] = {"metadata.name", "metadata.namespace", "metadata.uid",
		"spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs",
		"status.podIP", "status.podIPs", NULL};

	look_field_ref(l, r, known);
}

static void divisor(struct look *l, struct json_object *r, const char *resource)
{
	static const char *const cpu[] = {"0", "1", "1m", NULL}, *const bytes[] = {"0", "1", "1k",
									 "1M", "1G", "1T", "1P",
									 "1E", "1Ki", "1Mi", "1Gi",
									 "1Ti", "1Pi", "1Ei", NULL};
	const char *d = json_get_str(r, "divisor"), *what = strchr(resource, '.');
	bool is_cpu = str_eq(what, ".cpu");
	cleanup_free char *why = NULL;

	for (const char *const *w = is_cpu ? cpu : bytes; *w; w++)
		if (!d || str_eq(d, *w))
			return;
	why = is_cpu ? xstrdup("only divisor's values 1m and 1 are supported with the cpu resource")
		     : xasprintf("only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, "
				 "1Ti, 1Pi, 1Ei are supported with the %s resource",
			       what ? what + 1 : resource);
	look_at_text(l, "divisor", SCHEMA_INVALID, resource, why);
}

void look_resource_ref(struct look *l, struct json_object *r, bool volume)
{
	static const char *const known[] = {"limits.cpu", "limits.ephemeral-storage",
		"limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory",
		NULL};
	const char *resource = json_get_str(r, "resource");

	if (volume && !look_needs(l, r, "containerName", ""))
		return;
	if (!look_needs(l, r, "resource", "") || !resource)
		return;
	if (str_starts(resource, "limits.hugepages-") ||
		str_starts(resource, "requests.hugepages-") || look_one_of(l, r, "resource", known))
		divisor(l, r, resource);
}

static void env_resource(struct look *l, struct json_object *r)
{
	look_resource_ref(l, r, false);
}

static void key_ref(struct look *l, struct json_object *r)
{
	const char *key = json_get_str(r, "key");
	cleanup_json struct json_object *none = json_add_str(json_obj(), "name", "");

	look_subdomain(l, json_get(r, "name") ? r : none, "name");
	if (look_needs(l, r, "key", "") && key &&
		strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") <
			strlen(key))
		look_at(l, "key", SCHEMA_INVALID, json_get(r, "key"), KEY_TEXT);
}

static void value_from(struct look *l, struct json_object *e)
{
	static const struct {
		const char *name;
		void (*check)(struct look *l, struct json_object *r);
	} sources[] = {{"fieldRef", env_field}, {"resourceFieldRef", env_resource},
		{"configMapKeyRef", key_ref}, {"secretKeyRef", key_ref}};
	struct json_object *from = json_get_obj(e, "valueFrom");
	size_t before = look_go(l, "valueFrom"), n = 0;

	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		struct json_object *r = json_get_obj(from, sources[i].name);
		size_t here = look_go(l, sources[i].name);

		n += r != NULL;
		if (r && sources[i].check)
			sources[i].check(l, r);
		look_back(l, here);
	}
	look_back(l, before);
	if (n == 0)
		look_at_text(l, "valueFrom", SCHEMA_INVALID, "",
			"must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`");
	else if (!look_empty(json_get(e, "value")))
		look_at_text(l, "valueFrom", SCHEMA_INVALID, "",
			"may not be specified when `value` is not empty");
	else if (n > 1)
		look_at_text(l, "valueFrom", SCHEMA_INVALID, "",
			"may not have more than one field specified at a time");
}

static void env(struct look *l, struct json_object *e)
{
	if (look_needs(l, e, "name", ""))
		env_name(l, e, "name");
	if (json_get_obj(e, "valueFrom"))
		value_from(l, e);
}

static void env_all(struct look *l, struct json_object *r)
{
	if (look_needs(l, r, "name", ""))
		look_subdomain(l, r, "name");
}

/* What is wrong with a source as a whole is told of the list. */
static void env_from(struct look *l, struct json_object *c)
{
	static const char *const sources[] = {"configMapRef", "secretRef"};
	struct json_object *a = json_get_arr(c, "envFrom");
	size_t whole = look_go(l, "envFrom");

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		struct json_object *e = json_object_array_get_idx(a, i);
		size_t before = schema_path_index(&l->path, i), n = 0;

		env_name(l, e, "prefix");
		for (size_t k = 0; k < ARRAY_LEN(sources); k++) {
			struct json_object *r = json_get_obj(e, sources[k]);
			size_t here = look_go(l, sources[k]);

			n += r != NULL;
			if (r)
				env_all(l, r);
			look_back(l, here);
		}
		look_back(l, before);
		if (n != 1)
			look_here(l, SCHEMA_INVALID, NULL,
				n ? "may not have more than one field specified at a time"
				  : "must specify one of: `configMapRef` or `secretRef`");
	}
	look_back(l, whole);
}

/* ---- probes */

static void handler_port(struct look *l, struct json_object *o)
{
	int64_t n;

	cleanup_json struct json_object *none = json_object_new_int64(0);

	if (!json_get(o, "port"))
		look_at(l, "port", SCHEMA_INVALID, none, LOOK_PORT);
	else if (look_number(o, "port", &n))
		look_port(l, o, "port");
	else
		look_port_name(l, o, "port");
}

static void http_header(struct look *l, struct json_object *o)
{
	static const char text[] =
		"a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
	struct json_object *a = json_get_arr(o, "httpHeaders");

	for (size_t i = 0; a && i < json_object_array_length(a); i++) {
		const char *name = json_get_str(json_object_array_get_idx(a, i), "name");
		size_t n = 0;

		while (name && (isalnum((unsigned char)name[n]) || name[n] == '-'))
			n++;
		if (!name || n == 0 || name[n])
			look_at_text(l, "httpHeaders", SCHEMA_INVALID, name ? name : "", text);
	}
}

static void http_get(struct look *l, struct json_object *o)
{
	static const char *const schemes[] = {"HTTP", "HTTPS", NULL};

	handler_port(l, o);
	look_one_of(l, o, "scheme", schemes);
	http_header(l, o);
}

static void exec_command(struct look *l, struct json_object *o)
{
	look_needs(l, o, "command", "");
}

static void nothing(struct look *l, struct json_object *o)
{
	(void)l;
	(void)o;
}

/* False: there is none. */
static bool handler(struct look *l, struct json_object *h)
{
	static const struct {
		const char *name;
		void (*check)(struct look *l, struct json_object *o);
	} kinds[] = {{"exec", exec_command}, {"httpGet", http_get}, {"tcpSocket", handler_port},
		{"grpc", handler_port}, {"sleep", nothing}};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct json_object *o = json_get_obj(h, kinds[i].name);
		size_t before = look_go(l, kinds[i].name);

		if (o && n == 0)
			kinds[i].check(l, o);
		look_back(l, before);
		if (o && n++ > 0)
			look_at(l, kinds[i].name, SCHEMA_FORBIDDEN, NULL,
				"may not specify more than 1 handler type");
	}
	return n > 0;
}

static void probe(struct look *l, struct json_object *c, const char *name)
{
	static const char *const counts[] = {"initialDelaySeconds", "timeoutSeconds",
		"periodSeconds", "successThreshold", "failureThreshold"};
	struct json_object *p = json_get_obj(c, name);
	bool readiness = str_eq(name, "readinessProbe");
	size_t before;
	int64_t n;

	if (!p)
		return;
	before = look_go(l, name);
	if (!handler(l, p)) {
		look_back(l, before);
		look_at(l, name, SCHEMA_REQUIRED, NULL, NO_HANDLER);
		(void)look_go(l, name);
	}
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		look_not_negative(l, p, counts[i]);
	if (look_number(p, "terminationGracePeriodSeconds", &n) && (readiness || n <= 0))
		look_at(l, "terminationGracePeriodSeconds", SCHEMA_INVALID,
			json_get(p, "terminationGracePeriodSeconds"),
			readiness ? "must not be set for readinessProbes"
				  : "must be greater than 0");
	if (!readiness && look_number(p, "successThreshold", &n) && n != 1)
		look_at(l, "successThreshold", SCHEMA_INVALID, json_get(p, "successThreshold"),
			"must be 1");
	look_back(l, before);
}

static void lifecycle(struct look *l, struct json_object *c)
{
	static const char *const hooks[] = {"postStart", "preStop"};
	size_t before = look_go(l, "lifecycle");

	for (size_t i = 0; i < ARRAY_LEN(hooks); i++) {
		struct json_object *h = json_get_obj(json_get_obj(c, "lifecycle"), hooks[i]);
		size_t here = look_go(l, hooks[i]);
		bool none = h && !handler(l, h);

		look_back(l, here);
		if (none)
			look_at(l, hooks[i], SCHEMA_REQUIRED, NULL, NO_HANDLER);
	}
	look_back(l, before);
}

/* ---- security */

void look_id(struct look *l, struct json_object *o, const char *name)
{
	int64_t n;

	if (look_number(o, name, &n) && (n < 0 || n > INT32_MAX))
		look_at(l, name, SCHEMA_INVALID, json_get(o, name),
			"must be between 0 and 2147483647, inclusive");
}

/* untyped, unnamed: what is said when there is no type, and no profile of type Localhost. */
static void profile(struct look *l, struct json_object *o, const char *name, const char *untyped,
	const char *unnamed)
{
	static const char *const types[] = {"Localhost", "RuntimeDefault", "Unconfined", NULL};
	struct json_object *p = json_get_obj(o, name);
	size_t before = look_go(l, name);

	if (p && look_needs(l, p, "type", untyped))
		look_one_of(l, p, "type", types);
	if (str_eq(json_get_str(p, "type"), "Localhost"))
		look_needs(l, p, "localhostProfile", unnamed);
	look_back(l, before);
}

void look_seccomp(struct look *l, struct json_object *o)
{
	profile(l, o, "seccompProfile", "type is required when seccompProfile is set",
		"must be set when seccomp type is Localhost");
}

void look_apparmor(struct look *l, struct json_object *o)
{
	profile(l, o, "appArmorProfile", "", "must be set when AppArmor type is Localhost");
}

static void security(struct look *l, struct json_object *c)
{
	static const char *const mounts[] = {"Default", "Unmasked", NULL};
	struct json_object *s = json_get_obj(c, "securityContext");
	size_t before = look_go(l, "securityContext");

	look_id(l, s, "runAsUser");
	look_id(l, s, "runAsGroup");
	look_one_of(l, s, "procMount", mounts);
	look_seccomp(l, s);
	look_apparmor(l, s);
	look_back(l, before);
}

/* ---- all of it */

void look_container(struct look *l, struct json_object *c)
{
	static const char *const messages[] = {"File", "FallbackToLogsOnError", NULL};

	look_one_of(l, c, "terminationMessagePolicy", messages);
	look_each(l, c, "ports", port);
	look_unique(l, c, "ports");
	look_each(l, c, "env", env);
	env_from(l, c);
}

void look_container_life(struct look *l, struct json_object *c, bool init)
{
	static const char text[] =
		"may not be set for init containers without restartPolicy=Always";
	static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
	bool once = init && !str_eq(json_get_str(c, "restartPolicy"), "Always");

	security(l, c);
	if (!once)
		lifecycle(l, c);
	else if (json_get(c, "lifecycle"))
		look_at(l, "lifecycle", SCHEMA_FORBIDDEN, NULL, text);
	for (size_t i = 0; i < ARRAY_LEN(probes); i++)
		if (!once)
			probe(l, c, probes[i]);
		else if (json_get(c, probes[i]))
			look_at(l, probes[i], SCHEMA_FORBIDDEN, NULL, text);
}
