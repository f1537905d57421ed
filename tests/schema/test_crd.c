/* SPDX-License-Identifier: MIT */
/* Our own definitions are read; what the program could not serve is refused. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/crd.h"

static const char *const files[] = {"crd/approvedimages.yaml", "crd/attestationkeys.yaml",
	"crd/machines.yaml", "crd/trustedexecutionclusters.yaml"};

Test(schema_crd, reads_ours)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct schema_crd *c = load_crd(files[i]);

		cr_assert(c->kind.namespaced && c->kind.status && c->kind.n_subs == 1);
		cr_assert_str_eq(c->kind.group, "trusted-execution-clusters.io");
		cr_assert_str_eq(c->kind.version, "v1alpha1");
		cr_assert_str_eq(c->kind.categories[0], "tec-all");
		cr_assert_not_null(c->kind.short_names[0]);
		cr_assert_gt(c->n_columns, 2);
		cr_assert_eq(c->kind.crd, c);
		schema_crd_free(c);
	}
}

#define NAMES  "names: {plural: foos, singular: foo, kind: Foo, listKind: FooList}"
#define SCHEMA "schema: {openAPIV3Schema: {type: object, properties: {a: {type: string"
#define CRD(names, version)                                                                        \
	"{spec: {group: example.com, scope: Namespaced, " names ", versions: [" version "]}}"

Test(schema_crd, refuses_what_it_cannot_serve)
{
	static const struct {
		const char *crd, *why; /* a part of it */
	} rows[] = {
		{CRD(NAMES, ""), "one version"},
		{CRD(NAMES, "{name: v1, " SCHEMA "}}}}}, {name: v2, " SCHEMA "}}}}}"),
			"one version"},
		{CRD(NAMES, "{" SCHEMA "}}}}}"), "required"},
		{CRD("names: {plural: foos, kind: Foo}", "{name: v1, " SCHEMA "}}}}}"), "singular"},
		{CRD(NAMES, "{name: v1}"), "openAPIV3Schema"},
		{CRD(NAMES, "{name: v1, " SCHEMA ", pattern: '('}}}}}"), "pattern"},
		{CRD(NAMES,
			 "{name: v1, additionalPrinterColumns: [{name: a, type: string}], " SCHEMA
			 "}}}}}"),
			"jsonPath"},
		{CRD(NAMES, "{name: v1, " SCHEMA
			    ", x-kubernetes-validations: [{rule: 'self.nope()'}]}}}}}"),
			"nope"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		cleanup_json struct json_object *o = parse(rows[i].crd);
		struct err err = ERR_INIT;

		cr_expect_null(schema_crd_new(o, &err), "%s", rows[i].crd);
		cr_expect_not_null(strstr(err.text, rows[i].why), "%s: %s", rows[i].crd, err.text);
	}
}
