/* SPDX-License-Identifier: MIT */
/* Where a merge is not plain: built-in kinds by the table, others by their schema. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/builtin.h"
#include "tec/schema/merge.h"

/* Members with dots, elements as "[]". */
static struct schema_at go(const struct schema_kind *k, const char *path)
{
	struct schema_at at = schema_at_object(k);

	while (*path) {
		size_t len = strcspn(path, ".[");
		cleanup_free char *name = xstrndup(path, len);

		if (len)
			at = schema_at_member(at, name);
		path += len;
		if (str_starts(path, "[]")) {
			at = schema_at_element(at);
			path += 2;
		}
		if (*path == '.')
			path++;
	}
	return at;
}

static const struct {
	const char *group, *kind, *path;
	enum schema_merge_type type;
	const char *keys;
} rows[] = {
	{"", "ConfigMap", "metadata.finalizers", SCHEMA_MERGE_SET, ""},
	{"", "Secret", "metadata.ownerReferences", SCHEMA_MERGE_MAP, "uid"},
	{"", "Secret", "metadata.ownerReferences[]", SCHEMA_MERGE_ATOMIC, ""},
	{"", "ServiceAccount", "secrets", SCHEMA_MERGE_MAP, "name"},
	{"", "ServiceAccount", "imagePullSecrets", SCHEMA_MERGE_PLAIN, ""},
	{"", "ConfigMap", "secrets", SCHEMA_MERGE_PLAIN, ""},
	{"", "ConfigMap", "data", SCHEMA_MERGE_PLAIN, ""},
	{"", "ConfigMap", "data.metadata.finalizers", SCHEMA_MERGE_PLAIN, ""},
	{"", "Event", "no.such[].place", SCHEMA_MERGE_PLAIN, ""},
	{"", "Event", "involvedObject", SCHEMA_MERGE_ATOMIC, ""},
	{"events.k8s.io", "Event", "regarding", SCHEMA_MERGE_ATOMIC, ""},
	{"rbac.authorization.k8s.io", "RoleBinding", "roleRef", SCHEMA_MERGE_ATOMIC, ""},
};

static void assert_merge(const struct schema_merge *m, size_t i)
{
	cleanup_strbuf struct strbuf keys = STRBUF_INIT;

	for (size_t j = 0; j < ARRAY_LEN(m->keys) && m->keys[j]; j++)
		strbuf_addf(&keys, "%s%s", j ? "," : "", m->keys[j]);
	cr_expect_eq(m->type, rows[i].type, "%s", rows[i].path);
	cr_expect_str_eq(strbuf_str(&keys), rows[i].keys, "%s", rows[i].path);
}

Test(schema_merge, knows_the_builtin_kinds)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct schema_kind *k =
			schema_builtin_kind(rows[i].group, "v1", rows[i].kind);

		cr_assert(k, "%s", rows[i].kind);
		assert_merge(schema_at_merge(go(k, rows[i].path)), i);
	}
}

Test(schema_merge, knows_the_schema_of_a_crd)
{
	struct schema_crd *c = load_crd("crd/trustedexecutionclusters.yaml");
	const struct schema_kind *k = &c->kind;
	const struct schema_merge *m = schema_at_merge(go(k, "spec.trusteeServers"));

	cr_assert_eq(m->type, SCHEMA_MERGE_MAP);
	cr_assert_str_eq(m->keys[0], "address");
	cr_assert_null(m->keys[1]);
	m = schema_at_merge(go(k, "status.conditions"));
	cr_assert_eq(m->type, SCHEMA_MERGE_MAP);
	cr_assert_str_eq(m->keys[0], "type");
	m = schema_at_merge(go(k, "spec.attestation.platformConfigMaps"));
	cr_assert_eq(m->type, SCHEMA_MERGE_SET);
	m = schema_at_merge(go(k, "metadata.ownerReferences"));
	cr_assert_str_eq(m->keys[0], "uid");
	m = schema_at_merge(go(k, "spec.trustee"));
	cr_assert_eq(m->type, SCHEMA_MERGE_PLAIN);
	schema_crd_free(c);
}
