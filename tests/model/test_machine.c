/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/model/machine.h"

#define UUID "11111111-2222-3333-4444-555555555555"
#define UID  "u-1"
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define META "\"name\":\"machine-" UUID "\",\"uid\":\"u-1\",\"resourceVersion\":\"7\""

static struct kobj *extract_text(const char *text, struct err *err)
{
	cleanup_json struct json_object *o =
		json_parse(text, strlen(text), &json_limits_object, err);

	cr_assert(o, "%s: %s", text, err->text);
	return model_machine_extract(o, err);
}

Test(model_machine, a_new_one_has_nothing_but_its_id)
{
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *o =
		extract_text("{\"metadata\":{" META "},\"spec\":{\"id\":\"" UUID "\"}}", &err);
	const struct model_machine *m = model_machine(o);

	cr_assert(o, "%s", err.text);
	cr_assert_str_eq(m->id, UUID);
	cr_assert(m->id_valid);
	cr_assert_not(m->has_finalizer);
	cr_assert_not(m->by_listener);
	cr_assert_not(o->deleting);
	cr_assert_null(m->announced);
	cr_assert_null(m->bound_key);
	cr_assert_null(m->delivered_at);
	cr_assert_null(m->finalizers);
	cr_assert_not(model_machine_delivered(m));
	cr_assert_null(m->bound_at);
	cr_assert_null(m->owner_uid);
	cr_assert_eq(m->n_owners, 0);
	cr_assert_str_eq(model_machine_index(o, 0), UUID);
	cr_assert_null(model_machine_index(o, 1));
}

Test(model_machine, reads_what_decides)
{
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *o = extract_text(
		"{\"metadata\":{" META
		",\"generation\":1,\"deletionTimestamp\":\"2026-01-01T00:00:00Z\","
		"\"finalizers\":[\"x\",\"" MODEL_MACHINE_FINALIZER "\"],"
		"\"ownerReferences\":[{\"uid\":\"a\"},{\"uid\":\"c-1\",\"controller\":true}],"
		"\"annotations\":{\"" MODEL_KEY_SHA256_ANNOTATION "\":\"" UID " " HASH
		"\",\"" MODEL_BOUND_AT_ANNOTATION "\":\"" UID
		" 2026-01-01T00:00:00Z\",\"" MODEL_BOUND_KEY_ANNOTATION "\":\"" UID " k-1 " HASH
		"\",\"" MODEL_DELIVERED_AT_ANNOTATION "\":\"" UID
		" 2026-01-02T00:00:00Z revoked\",\"" MODEL_CREATED_BY_ANNOTATION
		"\":\"listener\"}},"
		"\"spec\":{\"id\":\"" UUID "\"},\"status\":{\"conditions\":["
		"{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"AllReady\"},"
		"{\"type\":\"KeyReady\",\"status\":\"False\",\"reason\":\"KeyLost\"}]}}",
		&err);
	const struct model_machine *m = model_machine(o);

	cr_assert(o, "%s", err.text);
	cr_assert(o->deleting);
	cr_assert(m->has_finalizer);
	cr_assert(m->by_listener);
	cr_assert_str_eq(m->announced, HASH);
	cr_assert_null(m->old_key_sha256);
	cr_assert_str_eq(m->bound_at, "2026-01-01T00:00:00Z");
	cr_assert_str_eq(m->bound_key, "k-1");
	cr_assert_str_eq(m->bound_spki, HASH);
	cr_assert_str_eq(m->delivered_at, "2026-01-02T00:00:00Z");
	cr_assert(m->recalled && model_machine_delivered(m));
	cr_assert_str_eq(m->finalizers, "[\"x\"]");
	cr_assert_str_eq(m->owner_uid, "c-1");
	cr_assert_eq(m->n_owners, 2);
	cr_assert_eq(m->cond[MACHINE_READY].status, KOBJ_COND_TRUE);
	cr_assert_str_eq(m->cond[MACHINE_KEY_READY].reason, model_machine_reason(MACHINE_KEY_LOST));
	cr_assert_eq(m->cond[MACHINE_AK_BOUND].status, KOBJ_COND_ABSENT);
}

Test(model_machine, marks_of_another_object_or_another_form_count_for_nothing)
{
	static const char *const bound_keys[] = {"", "k-1", "k-1 abc", UID, UID " ", UID " k-1",
		UID " k-1 abc", "u-2 k-1 " HASH, UID "  " HASH "x", UID " k-1 " HASH " more"};

	for (size_t i = 0; i < ARRAY_LEN(bound_keys); i++) {
		struct err err = ERR_INIT;
		cleanup_free char *text = xasprintf(
			"{\"metadata\":{" META ",\"annotations\":{\"" MODEL_KEY_SHA256_ANNOTATION
			"\":\"" HASH "\",\"" MODEL_BOUND_AT_ANNOTATION
			"\":\"2026-01-01T00:00:00Z\",\"" MODEL_BOUND_KEY_ANNOTATION
			"\":\"%s\",\"" MODEL_DELIVERED_AT_ANNOTATION
			"\":\"u-2 2026-01-01T00:00:00Z\"}},\"spec\":{\"id\":\"" UUID "\"}}",
			bound_keys[i]);
		cleanup_kobj const struct kobj *o = extract_text(text, &err);
		const struct model_machine *m = model_machine(o);

		cr_assert(o, "%s", err.text);
		cr_assert(!m->announced && !m->bound_at && !m->delivered_at);
		cr_assert(!m->bound_key && !m->bound_spki, "row %zu: %s", i, m->bound_key);
		cr_assert_str_eq(m->old_key_sha256, HASH);
	}
}

Test(model_machine, an_id_that_is_no_uuid_is_kept_and_marked)
{
	static const char *const ids[] = {"", "x", "../../kbs", "1111-2222",
		"11111111-2222-3333-4444-55555555555A", UUID "0"};

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		cleanup_free char *text =
			xasprintf("{\"metadata\":{" META "},\"spec\":{\"id\":\"%s\"}}", ids[i]);
		struct err err = ERR_INIT;
		cleanup_kobj const struct kobj *o = extract_text(text, &err);

		cr_assert(o, "%s", err.text);
		cr_assert_str_eq(model_machine(o)->id, ids[i]);
		cr_assert_not(model_machine(o)->id_valid, "%s", ids[i]);
	}
}

Test(model_machine, refuses_what_is_no_machine)
{
	static const char *const bad[] = {"{}", "[]", "{\"metadata\":{" META "}}",
		"{\"metadata\":{" META "},\"spec\":{\"id\":5}}",
		"{\"metadata\":{" META "},\"spec\":{\"id\":null}}",
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"},\"spec\":{\"id\":\"" UUID "\"}}",
		"{\"metadata\":{\"name\":\"A/b\",\"uid\":\"u\",\"resourceVersion\":\"1\"},\"spec\":{\"id\":\"" UUID
		"\"}}"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;

		cr_assert_null(extract_text(bad[i], &err), "%s", bad[i]);
		cr_assert_eq(err.kind, ERR_INVALID);
	}
}

Test(model_machine, the_listeners_json_is_read_back_as_the_listeners)
{
	cleanup_json struct json_object *o = model_machine_new_json(UUID, "tec", "c-1", true);
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *k = NULL;

	cr_assert_str_eq(json_get_str(o, "apiVersion"), "trusted-execution-clusters.io/v1alpha1");
	cr_assert_str_eq(json_get_str(o, "kind"), "Machine");
	cr_assert_str_eq(json_get_str(o, "metadata/name"), "machine-" UUID);
	json_add_str(json_get_obj(o, "metadata"), "uid", "u");
	json_add_str(json_get_obj(o, "metadata"), "resourceVersion", "1");
	k = model_machine_extract(o, &err);
	cr_assert(k, "%s", err.text);
	cr_assert(model_machine(k)->by_listener);
	cr_assert(model_machine(k)->id_valid);
	cr_assert_str_eq(model_machine(k)->owner_uid, "c-1");
	cr_assert_eq(model_machine(k)->n_owners, 1);
	cr_assert(model_machine(k)->has_finalizer, "no deletion escapes");
	cr_assert_eq(model_machine(k)->deleted_s, 0);
}

Test(model_machine, without_a_cluster_it_has_no_owner)
{
	cleanup_json struct json_object *o = model_machine_new_json(UUID, NULL, NULL, false);

	cr_assert_null(json_get(o, "metadata/ownerReferences"));
	cr_assert_null(json_get(o, "metadata/finalizers"));
}
