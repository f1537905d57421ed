/* SPDX-License-Identifier: MIT */
/*
 * What Pods, Jobs and claims say of how they are run, beside their containers: the kernel's settings,
 * gates, what a failure means, which Pods are enough, where data comes from.
 */
#include "config.h"

#include "builtin_internal.h"

#include <ctype.h>
#include <string.h>

#include "schema_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define SYSCTL_TEXT                                                                                \
	"must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
#define INDEXES_MAX 65536
#define RULES_MAX   20 /* each may be held against each container */
#define HOST_USERS  "when `hostUsers` is false"

static size_t length(struct json_object *a)
{
	return json_object_is_type(a, json_type_array) ? json_object_array_length(a) : 0;
}

static void at_most(struct look *l, struct json_object *o, const char *list, size_t max)
{
	size_t n = length(json_get(o, list));
	cleanup_json struct json_object *count = json_object_new_int64((int64_t)n);
	cleanup_free char *why = xasprintf("must have at most %zu items", max);

	if (n > max)
		look_at(l, list, SCHEMA_TOO_MANY, count, why);
}

/* ---- Pods */

static bool is_sysctl(const char *s)
{
	size_t n = strlen(s);

	for (size_t at = 0, part; at <= n; at += part + 1) {
		part = strcspn(s + at, "./");
		if (part == 0 || !isalnum((unsigned char)s[at]) ||
			!isalnum((unsigned char)s[at + part - 1]))
			return false;
		for (size_t i = at; i < at + part; i++)
			if (isupper((unsigned char)s[i]) ||
				(!isalnum((unsigned char)s[i]) && !strchr("-_", s[i])))
				return false;
	}
	return n <= 253;
}

static void sysctls(struct look *l, struct json_object *spec)
{
	struct json_object *a = json_get_arr(json_get_obj(spec, "securityContext"), "sysctls");
	cleanup_json struct json_object *seen = json_obj();
	size_t before = look_go(l, "securityContext");

	for (size_t i = 0; i < length(a); i++) {
		const char *name = json_get_str(json_object_array_get_idx(a, i), "name");
		cleanup_free char *field = xasprintf("sysctls[%zu].name", i);

		if (!name || !*name)
			look_at_text(l, field, SCHEMA_REQUIRED, "", "");
		else if (!is_sysctl(name))
			look_at_text(l, field, SCHEMA_INVALID, name, SYSCTL_TEXT);
		else if (json_object_object_get_ex(seen, name, NULL))
			look_at_text(l, field, SCHEMA_DUPLICATE, name, "");
		if (name && strncmp(name, "net.", 4) == 0 &&
			json_get_bool(spec, "hostNetwork", false))
			look_at_text(l, field, SCHEMA_INVALID, name,
				"may not be specified when 'hostNetwork' is true");
		if (name && *name)
			json_add_bool(seen, name, true);
	}
	look_back(l, before);
}

static void host_users(struct look *l, struct json_object *spec)
{
	static const char *const shared[][2] = {
		{"hostNetwork", "hostNetwork"}, {"hostPID", "HostPID"}, {"hostIPC", "HostIPC"}};

	if (json_get_bool(spec, "hostUsers", true))
		return;
	for (size_t i = 0; i < ARRAY_LEN(shared); i++)
		if (json_get_bool(spec, shared[i][0], false))
			look_at(l, shared[i][1], SCHEMA_FORBIDDEN, NULL, HOST_USERS);
}

static void gates(struct look *l, struct json_object *spec)
{
	struct json_object *a = json_get_arr(spec, "schedulingGates");
	cleanup_json struct json_object *seen = json_obj();

	for (size_t i = 0; i < length(a); i++) {
		const char *name = json_get_str(json_object_array_get_idx(a, i), "name");
		cleanup_free char *field = xasprintf("schedulingGates[%zu]", i);

		name = name ? name : "";
		look_name(l, field, name);
		if (*name && json_object_object_get_ex(seen, name, NULL))
			look_at_text(l, field, SCHEMA_DUPLICATE, name, "");
		if (*name)
			json_add_bool(seen, name, true);
	}
	if (length(a) && !look_empty(json_get(spec, "nodeName")))
		look_at(l, "nodeName", SCHEMA_FORBIDDEN, NULL,
			"cannot be set until all schedulingGates have been cleared");
}

void look_pod_policy(struct look *l, struct json_object *spec)
{
	sysctls(l, spec);
	host_users(l, spec);
	gates(l, spec);
}

/* ---- containers */

static void sleeps(struct look *l, struct json_object *spec, struct json_object *c)
{
	static const char *const hooks[] = {"postStart", "preStop"};
	int64_t grace, seconds;

	for (size_t i = 0; i < ARRAY_LEN(hooks); i++) {
		struct json_object *sleep =
			json_get_obj(json_get_obj(json_get_obj(c, "lifecycle"), hooks[i]), "sleep");
		cleanup_free char *field = xasprintf("lifecycle.%s.sleep", hooks[i]), *why = NULL;

		if (!sleep || !look_number(spec, "terminationGracePeriodSeconds", &grace))
			continue;
		(void)look_number(sleep, "seconds", &seconds);
		if (seconds >= 0 && seconds <= grace)
			continue;
		why = xasprintf(
			"must be non-negative and less than terminationGracePeriodSeconds (%lld)",
			(long long)grace);
		look_at(l, field, SCHEMA_INVALID, json_get(sleep, "seconds"), why);
	}
}

static void resizes(struct look *l, struct json_object *spec, struct json_object *c)
{
	static const char *const resources[] = {"cpu", "memory", NULL}, *const policies[] = {
										"NotRequired",
										"RestartContainer",
										NULL};
	struct json_object *a = json_get_arr(c, "resizePolicy");
	cleanup_json struct json_object *seen = json_obj();

	for (size_t i = 0; i < length(a); i++) {
		struct json_object *p = json_object_array_get_idx(a, i);
		const char *name = json_get_str(p, "resourceName"),
			   *policy = json_get_str(p, "restartPolicy");
		cleanup_json struct json_object *one = json_obj(), *other = json_obj();
		cleanup_free char *field = xasprintf("resizePolicy[%zu]", i);

		if (name && json_object_object_get_ex(seen, name, NULL))
			look_at_text(l, field, SCHEMA_DUPLICATE, name, "");
		json_add_bool(seen, name ? name : "", true);
		json_add_str(one, "resizePolicy", name);
		json_add_str(other, "resizePolicy", policy);
		if (look_needs(l, one, "resizePolicy", ""))
			look_one_of(l, one, "resizePolicy", resources);
		if (look_needs(l, other, "resizePolicy", ""))
			look_one_of(l, other, "resizePolicy", policies);
		if (str_eq(json_get_str(spec, "restartPolicy"), "Never") &&
			!str_eq(policy, "NotRequired"))
			look_at_text(l, "resizePolicy", SCHEMA_INVALID, policy ? policy : "",
				"must be 'NotRequired' when `restartPolicy` is 'Never'");
	}
}

void look_container_policy(struct look *l, struct json_object *spec, struct json_object *c)
{
	sleeps(l, spec, c);
	resizes(l, spec, c);
}

/* ---- what a failure of a Job's Pod means */

static bool names_container(struct json_object *spec, const char *name)
{
	static const char *const lists[] = {"initContainers", "containers"};
	struct json_object *pod = json_get_obj(spec, "template/spec");

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct json_object *a = json_get_arr(pod, lists[i]);

		for (size_t n = 0; n < length(a); n++)
			if (str_eq(json_get_str(json_object_array_get_idx(a, n), "name"), name))
				return true;
	}
	return false;
}

static void exit_values(struct look *l, struct json_object *codes)
{
	struct json_object *a = json_get_arr(codes, "values");
	bool in = str_eq(json_get_str(codes, "operator"), "In"), ordered = true;
	cleanup_json struct json_object *seen = json_obj(), *none = json_arr();

	if (length(a) == 0)
		look_at(l, "values", SCHEMA_INVALID, none, "at least one value is required");
	at_most(l, codes, "values", 255);
	for (size_t i = 0; i < length(a); i++) {
		struct json_object *v = json_object_array_get_idx(a, i);
		int64_t n = json_object_get_int64(v);
		cleanup_free char *field = xasprintf("values[%zu]", i),
				  *key = xasprintf("%lld", (long long)n);

		if (in && n == 0)
			look_at(l, field, SCHEMA_INVALID, v, "must not be 0 for the In operator");
		if (json_object_object_get_ex(seen, key, NULL))
			look_at(l, field, SCHEMA_DUPLICATE, v, "");
		json_add_bool(seen, key, true);
		ordered &=
			i == 0 || json_object_get_int64(json_object_array_get_idx(a, i - 1)) <= n;
	}
	if (!ordered)
		look_at(l, "values", SCHEMA_INVALID, a, "must be ordered");
}

static void exit_codes(struct look *l, struct json_object *spec, struct json_object *codes)
{
	static const char *const operators[] = {"In", "NotIn", NULL};
	const char *container = json_get_str(codes, "containerName");
	size_t before = look_go(l, "onExitCodes");

	if (look_needs(l, codes, "operator", "valid values: [\"In\" \"NotIn\"]"))
		look_one_of(l, codes, "operator", operators);
	if (container && !names_container(spec, container))
		look_at_text(l, "containerName", SCHEMA_INVALID, container,
			"must be one of the container or initContainer names in the pod template");
	exit_values(l, codes);
	look_back(l, before);
}

static void condition(struct look *l, struct json_object *c)
{
	static const char *const statuses[] = {"False", "True", "Unknown", NULL};

	look_name(l, "type", json_get_str(c, "type"));
	if (!look_empty(json_get(c, "status")))
		look_one_of(l, c, "status", statuses);
}

static void failure_rule(struct look *l, struct json_object *spec, struct json_object *rule)
{
	static const char *const actions[] = {"Count", "FailIndex", "FailJob", "Ignore", NULL};
	struct json_object *codes = json_get_obj(rule, "onExitCodes");
	size_t conditions = length(json_get(rule, "onPodConditions"));

	if (look_needs(l, rule, "action",
		    "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]"))
		look_one_of(l, rule, "action", actions);
	if (str_eq(json_get_str(rule, "action"), "FailIndex") &&
		!json_get(spec, "backoffLimitPerIndex"))
		look_at(l, "action", SCHEMA_INVALID, json_get(rule, "action"),
			"requires the backoffLimitPerIndex to be set");
	if (codes)
		exit_codes(l, spec, codes);
	at_most(l, rule, "onPodConditions", 20);
	look_each(l, rule, "onPodConditions", condition);
	if ((codes != NULL) == (conditions > 0))
		schema_cause_add_json(l->causes, SCHEMA_INVALID, strbuf_str(&l->path),
			codes ? "specifying both OnExitCodes and OnPodConditions is not supported"
			      : "specifying one of OnExitCodes and OnPodConditions is required",
			"%s", "");
}

/* ---- which of a Job's Pods are enough */

/* As strconv.Atoi: a sign and digits. */
static bool index_of(const char *s, size_t len, int64_t *out)
{
	size_t digits = len > 0 && *s == '+';

	*out = 0;
	for (size_t i = digits; i < len; i++) {
		if (!isdigit((unsigned char)s[i]) || *out > (INT64_MAX - 9) / 10)
			return false;
		*out = *out * 10 + (s[i] - '0');
	}
	return len > digits;
}

/* One number of "0-2,4". False: why has got what is wrong with it. */
static bool next_index(
	struct strbuf *why, const char *s, size_t len, int64_t completions, int64_t *last)
{
	int64_t n, before = *last;

	if (!index_of(s, len, &n)) {
		strbuf_adds(why, "cannot convert string to integer for index: ");
		schema_quote_go(why, s, len);
	} else if (n >= completions) {
		strbuf_adds(why, "too large index: ");
		schema_quote_go(why, s, len);
	} else if (before >= n) {
		strbuf_addf(why, "non-increasing order, previous: %lld, current: %lld",
			(long long)before, (long long)n);
	}
	*last = n;
	return why->len == 0;
}

/* How many indexes "0-2,4" has: 4. -1: why has got what is wrong. */
static int64_t count_indexes(struct strbuf *why, const char *s, int64_t completions)
{
	int64_t total = 0, last = -1, first;
	size_t len, n;

	for (; *s; s += len + (s[len] == ',' && s[len + 1])) {
		len = strcspn(s, ",");
		n = strcspn(s, "-,");
		if (n < len && n + 1 + strcspn(s + n + 1, "-,") < len) {
			strbuf_adds(why, "the fragment ");
			schema_quote_go(why, s, len);
			strbuf_adds(why,
				" violates the requirement that an index interval can have at most two parts separated by '-'");
			return -1;
		}
		if (!next_index(why, s, n, completions, &last))
			return -1;
		first = last;
		if (n < len && !next_index(why, s + n + 1, len - n - 1, completions, &last))
			return -1;
		total += last - first + 1;
	}
	return total;
}

static void success_count(
	struct look *l, struct json_object *rule, int64_t n, int64_t most, const char *of)
{
	cleanup_free char *why = xasprintf(
		"must be less than or equal to %lld (the number of %s)", (long long)most, of);

	if (n > most)
		look_at(l, "succeededCount", SCHEMA_INVALID, json_get(rule, "succeededCount"), why);
}

static void success_rule(struct look *l, struct json_object *spec, struct json_object *rule)
{
	int64_t completions = json_get_int(spec, "completions", 0), total = 0, n;
	const char *indexes = json_get_str(rule, "succeededIndexes");
	cleanup_strbuf struct strbuf why = STRBUF_INIT;

	if (!json_get(rule, "succeededCount") && !indexes)
		schema_cause_add(l->causes, SCHEMA_REQUIRED, strbuf_str(&l->path), NULL,
			"at least one of succeededCount or succeededIndexes must be specified");
	if (indexes && strlen(indexes) > INDEXES_MAX)
		look_at(l, "succeededIndexes", SCHEMA_TOO_LONG, NULL,
			"may not be more than 65536 bytes");
	if (indexes)
		total = count_indexes(&why, indexes, completions);
	if (total < 0) {
		cleanup_free char *text =
			xasprintf("error parsing succeededIndexes: %s", strbuf_str(&why));

		look_at_text(l, "succeededIndexes", SCHEMA_INVALID, indexes, text);
		total = 0;
	}
	look_not_negative(l, rule, "succeededCount");
	if (!look_number(rule, "succeededCount", &n))
		return;
	success_count(l, rule, n, completions, "specified completions");
	if (indexes)
		success_count(l, rule, n, total, "indexes in the specified succeededIndexes field");
}

/* ---- Jobs */

static void rules(struct look *l, struct json_object *spec, const char *policy,
	void (*fn)(struct look *l, struct json_object *spec, struct json_object *rule))
{
	struct json_object *p = json_get_obj(spec, policy), *a = json_get_arr(p, "rules");
	size_t whole = look_go(l, policy), list;

	at_most(l, p, "rules", RULES_MAX);
	list = look_go(l, "rules");
	for (size_t i = 0; i < length(a) && i < RULES_MAX; i++) {
		size_t before = schema_path_index(&l->path, i);

		if (json_object_is_type(json_object_array_get_idx(a, i), json_type_object))
			fn(l, spec, json_object_array_get_idx(a, i));
		look_back(l, before);
	}
	look_back(l, list);
	look_back(l, whole);
}

static void managed_by(struct look *l, struct json_object *spec)
{
	const char *s = json_get_str(spec, "managedBy"), *slash = s ? strchr(s, '/') : NULL;
	cleanup_free char *host = slash ? xstrndup(s, (size_t)(slash - s)) : NULL;

	if (!s)
		return;
	if (!*s)
		look_at(l, "managedBy", SCHEMA_REQUIRED, NULL, "");
	else if (!slash || slash == s || !slash[1])
		look_at_text(l, "managedBy", SCHEMA_INVALID, s,
			"must be a domain-prefixed path (such as \"acme.io/foo\")");
	else
		look_subdomain_at(l, "managedBy", host);
	if (strlen(s) > 63)
		look_at(l, "managedBy", SCHEMA_TOO_LONG, NULL, "may not be more than 63 bytes");
}

/* A Go value, in the order of its members. */
static void add_success(struct strbuf *out, struct json_object *rules)
{
	strbuf_adds(out, "{\"Rules\":[");
	for (size_t i = 0; i < length(rules) && i < RULES_MAX; i++) {
		struct json_object *rule = json_object_array_get_idx(rules, i);

		strbuf_adds(out, i ? ",{\"SucceededIndexes\":" : "{\"SucceededIndexes\":");
		schema_json_go(out, json_get(rule, "succeededIndexes"));
		strbuf_adds(out, ",\"SucceededCount\":");
		schema_json_go(out, json_get(rule, "succeededCount"));
		strbuf_addc(out, '}');
	}
	strbuf_adds(out, "]}");
}

void look_job_policy(struct look *l, struct json_object *spec)
{
	struct json_object *success = json_get_obj(spec, "successPolicy");

	managed_by(l, spec);
	rules(l, spec, "podFailurePolicy", failure_rule);
	if (!success)
		return;
	if (!str_eq(json_get_str(spec, "completionMode"), "Indexed")) {
		cleanup_strbuf struct strbuf value = STRBUF_INIT;
		size_t before = look_go(l, "successPolicy");

		add_success(&value, json_get(success, "rules"));
		schema_cause_add_json(l->causes, SCHEMA_INVALID, strbuf_str(&l->path),
			strbuf_str(&value), "requires indexed completion mode");
		look_back(l, before);
		return;
	}
	if (length(json_get(success, "rules")) == 0)
		look_at(l, "successPolicy.rules", SCHEMA_REQUIRED, NULL,
			"at least one rules must be specified when the successPolicy is specified");
	rules(l, spec, "successPolicy", success_rule);
}
