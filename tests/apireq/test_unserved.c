/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>

#include "apireq/things.h"
#include "tec/store/gc.h"
#include "tec/apireq/kinds.h"
#include "tec/store/rows.h"
#include "tec/apireq/unserved.h"
#include "tec/base/log.h"

/* clang-format off */
#define OWN_KIND                                                                                      \
	"{\"spec\":{\"group\":\"example.io\",\"scope\":\"Namespaced\",\"names\":{"                 \
	"\"plural\":\"things\",\"singular\":\"thing\",\"kind\":\"Thing\","                         \
	"\"listKind\":\"ThingList\"},\"versions\":[{\"name\":\"v1\",\"schema\":{"                  \
	"\"openAPIV3Schema\":{\"type\":\"object\"}}}]}}"
/* clang-format on */

static char said[512];
static unsigned lines;

static void on_line(enum log_level level, const char *line, void *arg)
{
	snprintf(said, sizeof(said), "%s", line);
	lines++;
}

static void put(struct store_objects *s, const char *resource, const char *name, const char *meta)
{
	cleanup_free char *text =
		xasprintf("{\"kind\":\"K\",\"apiVersion\":\"v1\",\"metadata\":%s}", meta);

	json_object_put(store_objects_put(
		s, &(const struct store_key){resource, "ns", name}, json_of(text)));
}

static void drop(struct store_objects *s)
{
	struct err err = ERR_INIT;

	log_capture(on_line, NULL);
	cr_assert_eq(apireq_unserved_drop(s, &err), 0, "%s", err.text);
	log_capture(NULL, NULL);
	store_gc_collect(s);
	cr_assert_eq(store_objects_commit(s, &err), 0, "%s", err.text);
}

#define OWNED(by) "{\"ownerReferences\":[{\"kind\":\"" by "\",\"uid\":\"1\"}]}"
#define CRDS      "customresourcedefinitions.apiextensions.k8s.io"

struct store {
	struct apireq_kinds *kinds;
	struct store_schema schema;
	struct store_objects *s;
};

static void store_start(struct store *x)
{
	struct err err = ERR_INIT;
	struct store_db *db = store_db_open(&(const struct store_db_conf){0}, &err);

	cr_assert_not_null(db, "%s", err.text);
	*x = (struct store){.kinds = apireq_kinds_new(), .schema = {.namespaces = true}};
	apireq_kinds_add(x->kinds, OWN_KIND);
	apireq_kinds_use(x->kinds, &x->schema);
	x->s = store_objects_new(db, &x->schema, NULL);
}

static void store_stop(struct store *x)
{
	store_objects_free(x->s);
	apireq_kinds_free(x->kinds);
}

Test(apireq_unserved, what_nobody_serves_goes_and_is_counted)
{
	struct store x;

	store_start(&x);
	put(x.s, "services", "register-server", OWNED("TrustedExecutionCluster"));
	put(x.s, "services", "a", "{\"finalizers\":[\"x.io/f\"]}");
	put(x.s, "deployments.apps", "a", "{}");
	put(x.s, "deployments.apps", "b", "{}");
	put(x.s, "foos.example.com", "b", "{}");
	put(x.s, "jobs.batch", "a", OWNED("CronJob"));
	put(x.s, "pods", "a", "{\"finalizers\":[\"x.io/f\"]}");
	put(x.s, CRDS, "things.example.io", "{}");
	put(x.s, CRDS, "foos.example.com", "{}");
	put(x.s, "secrets", "a", "{}");
	put(x.s, "things.example.io", "a", "{}");
	drop(x.s);
	cr_assert_eq(lines, 1);
	cr_assert(strstr(said, "count=7"), "%s", said);
	cr_assert(strstr(said, "1 " CRDS ", 2 deployments.apps, 1 foos.example.com, 1 jobs.batch, "
			       "1 pods, 1 services"),
		"%s", said);
	cr_assert_eq(store_objects_count(x.s, NULL, NULL), 2);
	cr_assert_eq(store_objects_count(x.s, "things.example.io", NULL), 1);
	cr_assert_eq(store_objects_count(x.s, "secrets", NULL), 1);
	store_stop(&x);
}

Test(apireq_unserved, what_the_operator_made_goes_without_a_word)
{
	struct store x;
	uint64_t rv;

	store_start(&x);
	put(x.s, "services", "register-server", OWNED("TrustedExecutionCluster"));
	put(x.s, "jobs.batch", "compute-1", OWNED("ApprovedImage"));
	put(x.s, "pods", "compute-1-x", OWNED("Job"));
	put(x.s, CRDS, "things.example.io", "{}");
	drop(x.s);
	cr_assert_eq(lines, 0);
	cr_assert_eq(store_objects_count(x.s, NULL, NULL), 0);
	rv = store_objects_rv(x.s);
	drop(x.s);
	cr_assert_eq(store_objects_rv(x.s), rv);
	store_stop(&x);
}

static void bind_role(struct store_objects *s, const char *name, const char *kind, const char *role)
{
	const struct store_key key = {"rolebindings.rbac.authorization.k8s.io", "ns", name};
	cleanup_free char *text =
		xasprintf("{\"roleRef\":{\"kind\":\"%s\",\"name\":\"%s\"}}", kind, role);

	json_object_put(store_objects_put(s, &key, json_of(text)));
}

Test(apireq_unserved, bindings_to_a_role_that_is_no_more_go)
{
	struct store x;

	store_start(&x);
	bind_role(x.s, "a", "ClusterRole", "tec-follow");
	bind_role(x.s, "b", "ClusterRole", "admin");
	bind_role(x.s, "c", "Role", "view");
	drop(x.s);
	cr_assert(strstr(said, "count=2"), "%s", said);
	cr_assert_eq(store_objects_count(x.s, NULL, NULL), 1);
	store_stop(&x);
}

/* The broker keeps every node's key in them. */
Test(apireq_unserved, rows_are_no_objects_and_stay)
{
	static const char *const values[] = {"a disk key", "{\"kind\":\"K\",\"metadata\":{}}"};
	struct store x;
	struct err err = ERR_INIT;

	store_start(&x);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		void *data;
		size_t len;

		cr_assert_eq(store_rows_set(x.s, "broker/repository", "default/a/root", values[i],
				     strlen(values[i]), &err),
			0);
		drop(x.s);
		cr_assert_eq(store_rows_get(
				     x.s, "broker/repository", "default/a/root", &data, &len, &err),
			0, "%s", err.text);
		cr_assert_eq(len, strlen(values[i]));
		cr_assert_arr_eq(data, values[i], len);
		free(data);
	}
	cr_assert_eq(lines, 0);
	store_stop(&x);
}

Test(apireq_unserved, what_it_owns_stays)
{
	const struct store_key owner = {"foos.example.com", "ns", "a"},
			       owned = {"things.example.io", "ns", "b"};
	struct json_object *o;
	struct store x;

	store_start(&x);
	json_object_put(store_objects_put(
		x.s, &owner, json_of("{\"kind\":\"Foo\",\"metadata\":{\"uid\":\"u\"}}")));
	json_object_put(store_objects_put(x.s, &owned,
		json_of("{\"kind\":\"Thing\",\"metadata\":{\"ownerReferences\":[{\"kind\":\"Foo\","
			"\"name\":\"a\",\"uid\":\"u\",\"apiVersion\":\"example.com/v1\"}]}}")));
	drop(x.s);
	cr_expect_eq(store_objects_count(x.s, "foos.example.com", NULL), 0);
	o = store_objects_get(x.s, &owned);
	cr_assert_not_null(o);
	cr_expect_null(json_get(o, "metadata/ownerReferences"));
	json_object_put(o);
	store_stop(&x);
}
