/* SPDX-License-Identifier: MIT */
/*
 * What kube-apiserver fills into built-in kinds, as a table of paths. A path goes from member to
 * member: NAME* is every element of a list, +NAME is made where it is missing, NAME[a=b] and NAME[!a]
 * go on only where that holds of the object reached. The last member gets the value, as JSON, when
 * it is not there; "=NAME" copies the member beside it.
 *
 * Not here: what a controller would choose (the labels and the selector of a Job).
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/schema/builtin.h"

#define PATH_MAX_LEN 160

struct fill {
	const char *path, *value;
};

static const struct fill job[] = {{"spec[!parallelism].completions", "1"},
	{"spec.parallelism", "1"}, {"spec[!backoffLimitPerIndex].backoffLimit", "6"},
	{"spec.backoffLimit", "2147483647"}, {"spec.completionMode", "\"NonIndexed\""},
	{"spec.suspend", "false"}, {"spec.manualSelector", "false"},
	{"spec[!podFailurePolicy].podReplacementPolicy", "\"TerminatingOrFailed\""},
	{"spec.podReplacementPolicy", "\"Failed\""}};
static const struct fill binding[] = {{"roleRef.apiGroup", "\"rbac.authorization.k8s.io\""},
	{"subjects*[kind=User].apiGroup", "\"rbac.authorization.k8s.io\""},
	{"subjects*[kind=Group].apiGroup", "\"rbac.authorization.k8s.io\""}};
static const struct fill pod[] = {{"spec.enableServiceLinks", "true"}};

static const struct fill pod_spec[] = {{"restartPolicy", "\"Always\""},
	{"dnsPolicy", "\"ClusterFirst\""}, {"securityContext", "{}"},
	{"terminationGracePeriodSeconds", "30"}, {"schedulerName", "\"default-scheduler\""},
	{"serviceAccountName", "=serviceAccount"}, {"serviceAccount", "=serviceAccountName"},
	{"volumes*.secret.defaultMode", "420"}, {"volumes*.configMap.defaultMode", "420"},
	{"volumes*.projected.defaultMode", "420"}, {"volumes*.downwardAPI.defaultMode", "420"},
	{"volumes*.hostPath.type", "\"\""}, {"volumes*.image.pullPolicy", "=@image"},
	{"volumes*.projected.sources*.serviceAccountToken.expirationSeconds", "3600"},
	{"volumes*.downwardAPI.items*.fieldRef.apiVersion", "\"v1\""}};
static const struct fill container[] = {{"resources", "{}"},
	{"terminationMessagePath", "\"/dev/termination-log\""},
	{"terminationMessagePolicy", "\"File\""}, {"imagePullPolicy", "=@image"},
	{"ports*.protocol", "\"TCP\""}, {"env*.valueFrom.fieldRef.apiVersion", "\"v1\""}};
static const struct fill probe[] = {{"timeoutSeconds", "1"}, {"periodSeconds", "10"},
	{"successThreshold", "1"}, {"failureThreshold", "3"}, {"httpGet.path", "\"/\""},
	{"httpGet.scheme", "\"HTTP\""}};

/* "Always" for what has no tag, or the tag latest; an image that a digest alone names stays. */
static const char *pull_policy(const char *image)
{
	const char *slash = strrchr(image, '/'), *last = slash ? slash + 1 : image;
	const char *digest = strchr(last, '@'), *tag = strchr(last, ':');
	size_t n;

	if (!tag || (digest && tag > digest))
		return digest ? "IfNotPresent" : "Always";
	n = digest ? (size_t)(digest - tag - 1) : strlen(tag + 1);
	return n == 6 && strncmp(tag + 1, "latest", 6) == 0 ? "Always" : "IfNotPresent";
}

static void put(struct json_object *o, const char *name, const char *value)
{
	struct err err = ERR_INIT;

	if (!json_object_is_type(o, json_type_object) || json_object_object_get_ex(o, name, NULL))
		return;
	if (value[0] != '=') {
		json_add(o, name, json_parse(value, strlen(value), &json_limits_public, &err));
	} else if (value[1] != '@') {
		struct json_object *from = json_get(o, value + 1);

		if (from)
			json_add(o, name, json_object_get(from));
	} else {
		const char *image = json_get_str(o, value + 2);
		const char *reference = json_get_str(o, "reference");

		if (image || reference)
			json_add_str(o, name, pull_policy(image ? image : reference));
	}
}

/* cond: "a=b", "!a" or "a". */
static bool holds(struct json_object *o, const char *cond, size_t len)
{
	cleanup_free char *name = xstrndup(cond + (*cond == '!'), len - (*cond == '!'));
	char *value = strchr(name, '=');

	if (value)
		*value++ = '\0';
	if (value)
		return str_eq(json_get_str(o, name), value);
	return (json_get(o, name) != NULL) == (*cond != '!');
}

static void fill_at(struct json_object *o, const char *path, const char *value);

static void fill_element(
	struct json_object *o, const char *cond, size_t len, const char *rest, const char *value)
{
	if (json_object_is_type(o, json_type_object) && (!cond || holds(o, cond, len)))
		fill_at(o, rest, value);
}

static void fill_at(struct json_object *o, const char *path, const char *value)
{
	bool make = *path == '+';
	const char *name = path + make, *end = name + strcspn(name, ".*["), *cond = NULL, *rest;
	char text[PATH_MAX_LEN];
	struct json_object *next = NULL;
	size_t len = 0;

	(void)snprintf(text, sizeof(text), "%.*s", (int)(end - name), name);
	if (!*end) {
		put(o, text, value);
		return;
	}
	rest = end + (*end == '*');
	if (*rest == '[') {
		cond = rest + 1;
		len = strcspn(cond, "]");
		rest = cond + len + 1;
	}
	rest++; /* the dot */
	if (!json_object_object_get_ex(o, text, &next) && make)
		json_add(o, text, next = json_obj());
	if (*end != '*') {
		fill_element(next, cond, len, rest, value);
		return;
	}
	for (size_t i = 0;
		json_object_is_type(next, json_type_array) && i < json_object_array_length(next);
		i++)
		fill_element(json_object_array_get_idx(next, i), cond, len, rest, value);
}

static void fill(struct json_object *o, const struct fill *f, size_t n)
{
	for (size_t i = 0; i < n && json_object_is_type(o, json_type_object); i++)
		fill_at(o, f[i].path, f[i].value);
}

static void fill_containers(struct json_object *list)
{
	static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *c = json_object_array_get_idx(list, i);

		if (!json_object_is_type(c, json_type_object))
			continue;
		fill(c, container, ARRAY_LEN(container));
		for (size_t k = 0; k < ARRAY_LEN(probes); k++)
			fill(json_get_obj(c, probes[k]), probe, ARRAY_LEN(probe));
	}
}

/* One without a source is an empty directory. */
static void fill_volumes(struct json_object *list)
{
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *v = json_object_array_get_idx(list, i);

		if (json_object_is_type(v, json_type_object) && json_get(v, "name") &&
			json_object_object_length(v) == 1)
			json_add(v, "emptyDir", json_obj());
	}
}

static void fill_pod_spec(struct json_object *spec)
{
	if (!spec)
		return;
	fill_volumes(json_get_arr(spec, "volumes"));
	fill(spec, pod_spec, ARRAY_LEN(pod_spec));
	fill_containers(json_get_arr(spec, "containers"));
	fill_containers(json_get_arr(spec, "initContainers"));
}

void schema_builtin_default(const struct schema_kind *k, struct json_object *o)
{
	static const struct {
		const char *group, *kind;
		const struct fill *fill;
		size_t n;
		const char *pod; /* where a Pod's spec is; NULL: nowhere */
	} kinds[] = {{"batch", "Job", job, ARRAY_LEN(job), "spec/template/spec"},
		{"", "Pod", pod, ARRAY_LEN(pod), "spec"},
		{"rbac.authorization.k8s.io", "RoleBinding", binding, ARRAY_LEN(binding), NULL}};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!str_eq(k->group, kinds[i].group) || !str_eq(k->kind, kinds[i].kind))
			continue;
		fill(o, kinds[i].fill, kinds[i].n);
		if (kinds[i].pod)
			fill_pod_spec(json_get_obj(o, kinds[i].pod));
	}
}
