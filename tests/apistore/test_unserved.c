/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>

#include "apistore/things.h"
#include "tec/apistore/unserved.h"
#include "tec/base/log.h"

static char said[512];
static unsigned lines;

static void on_line(enum log_level level, const char *line, void *arg)
{
	snprintf(said, sizeof(said), "%s", line);
	lines++;
}

static void put(
	struct apistore_objects *s, const char *resource, const char *name, const char *meta)
{
	cleanup_free char *text =
		xasprintf("{\"kind\":\"K\",\"apiVersion\":\"v1\",\"metadata\":%s}", meta);

	json_object_put(apistore_objects_put(
		s, &(const struct apistore_key){resource, "ns", name}, json_of(text)));
}

static void drop(struct apistore_objects *s)
{
	struct err err = ERR_INIT;

	log_capture(on_line, NULL);
	cr_assert_eq(apistore_unserved_drop(s, &err), 0, "%s", err.text);
	log_capture(NULL, NULL);
	cr_assert_eq(apistore_objects_commit(s, &err), 0, "%s", err.text);
}

#define OURS "{\"ownerReferences\":[{\"kind\":\"TrustedExecutionCluster\",\"uid\":\"1\"}]}"

Test(apistore_unserved, what_nobody_serves_goes_and_is_counted)
{
	struct apistore_objects *s = things_new(NULL);

	put(s, "services", "register-server", OURS);
	put(s, "services", "a", "{\"finalizers\":[\"x.io/f\"]}");
	put(s, "deployments.apps", "a", "{}");
	put(s, "deployments.apps", "b", "{}");
	put(s, "secrets", "a", "{}");
	drop(s);
	cr_assert_eq(lines, 1);
	cr_assert(strstr(said, "count=3"), "%s", said);
	cr_assert(strstr(said, "2 deployments.apps, 1 services"), "%s", said);
	cr_assert_eq(apistore_objects_count(s, "services", NULL), 0);
	cr_assert_eq(apistore_objects_count(s, "deployments.apps", NULL), 0);
	cr_assert_eq(apistore_objects_count(s, "secrets", NULL), 1);
	apistore_objects_free(s);
}

Test(apistore_unserved, what_the_operator_made_goes_without_a_word)
{
	struct apistore_objects *s = things_new(NULL);
	uint64_t rv;

	put(s, "services", "register-server", OURS);
	drop(s);
	cr_assert_eq(lines, 0);
	cr_assert_eq(apistore_objects_count(s, "services", NULL), 0);
	rv = apistore_objects_rv(s);
	drop(s);
	cr_assert_eq(apistore_objects_rv(s), rv);
	apistore_objects_free(s);
}
