/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/kobj/key.h"
#include "tec/kobj/owner.h"
#include "tec/render/pcrjob.h"

#define NONCE "00112233445566778899aabbccddeeff"

static const struct kobj *image(const char *name, const char *uid, const char *reference)
{
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\","
			  "\"resourceVersion\":\"1\"},\"spec\":{\"image\":\"%s\"}}",
			name, uid, reference);
	cleanup_json struct json_object *o = json_tokener_parse(text);
	struct err err = ERR_INIT;
	const struct kobj *k = model_image_extract(o, &err);

	cr_assert(k, "%s", err.text);
	return k;
}

static struct json_object *at(struct json_object *o, const char *path)
{
	return json_object_array_get_idx(json_get_arr(o, path), 0);
}

static const struct render_pcrjob_platforms two = {.v = {{"a.box", {1}}, {"ovmf", {2, 3}}}, .n = 2};

Test(render_pcrjob, mounts_the_image_read_only_and_names_it)
{
	cleanup_kobj const struct kobj *i = image("coreos", "u1", "q.io/x@sha256:00");
	cleanup_json struct json_object *o =
		render_pcrjob(model_image(i), NULL, NULL, "ns", "tool:1", NONCE, 3);
	struct json_object *pod = json_get_obj(o, "spec/template/spec");
	struct json_object *c = at(pod, "containers"), *args = json_get_arr(c, "args");

	cr_assert_str_eq(json_get_str(at(pod, "volumes"), "image/reference"), "q.io/x@sha256:00");
	cr_assert_str_eq(json_get_str(at(c, "volumeMounts"), "mountPath"), "/image");
	cr_assert(json_get_bool(at(c, "volumeMounts"), "readOnly", false));
	cr_assert_str_eq(json_get_str(c, "image"), "tool:1");
	cr_assert_str_eq(json_object_get_string(at(c, "command")), "compute-pcrs");
	cr_assert_eq(json_object_array_length(args), 4);
	cr_assert_str_eq(
		json_object_get_string(json_object_array_get_idx(args, 1)), "q.io/x@sha256:00");
	cr_assert_str_eq(json_object_get_string(json_object_array_get_idx(args, 3)), NONCE);
}

Test(render_pcrjob, belongs_to_the_image_and_ends)
{
	cleanup_kobj const struct kobj *i = image("coreos", "u1", "q.io/x@sha256:00");
	cleanup_json struct json_object *o =
		render_pcrjob(model_image(i), NULL, NULL, "ns", "tool:1", NONCE, 3);

	cr_assert(kobj_owner_is_exactly(o, "u1"));
	cr_assert_str_eq(json_get_str(at(o, "metadata/ownerReferences"), "kind"), "ApprovedImage");
	cr_assert_str_eq(kobj_annotation(o, MODEL_JOB_IMAGE_ANNOTATION), "coreos");
	cr_assert_str_eq(kobj_annotation(o, MODEL_JOB_ATTEMPT_ANNOTATION), "3");
	cr_assert_str_eq(kobj_annotation(o, MODEL_JOB_NONCE_ANNOTATION), NONCE);
	cr_assert_str_eq(json_get_str(o, "spec/template/metadata/labels/app"), "compute-pcrs");
	cr_assert_gt(json_get_int(o, "spec/activeDeadlineSeconds", 0), 0);
	cr_assert_eq(json_get_int(o, "spec/backoffLimit", -1), 1);
	cr_assert_gt(json_get_int(o, "spec/ttlSecondsAfterFinished", 0), 0);
}

Test(render_pcrjob, keeps_the_restricted_profile)
{
	cleanup_kobj const struct kobj *i = image("coreos", "u1", "q.io/x@sha256:00");
	cleanup_json struct json_object *o =
		render_pcrjob(model_image(i), NULL, NULL, "ns", "tool:1", NONCE, 1);
	struct json_object *pod = json_get_obj(o, "spec/template/spec"), *c = at(pod, "containers");

	cr_assert(json_get_bool(pod, "securityContext/runAsNonRoot", false));
	cr_assert_gt(json_get_int(pod, "securityContext/runAsUser", 0), 0);
	cr_assert_str_eq(
		json_get_str(pod, "securityContext/seccompProfile/type"), "RuntimeDefault");
	cr_assert(!json_get_bool(c, "securityContext/allowPrivilegeEscalation", true));
	cr_assert(json_get_bool(c, "securityContext/readOnlyRootFilesystem", false));
	cr_assert_str_eq(json_object_get_string(at(c, "securityContext/capabilities/drop")), "ALL");
	cr_assert_str_eq(json_get_str(pod, "serviceAccountName"), RENDER_PCRJOB_SERVICE_ACCOUNT);
	cr_assert(json_get_str(c, "resources/limits/memory"));
	cr_assert(!json_get_bool(pod, "automountServiceAccountToken", true));
	cr_assert_str_eq(json_get_str(c, "terminationMessagePath"), "/dev/termination-log");
}

Test(render_pcrjob, where_images_cannot_be_mounted_another_container_fetches_it)
{
	static const char *const env[] = {"https_proxy=http://u:a=b@p:1", "NO_PROXY=", NULL};
	static const struct render_pcrjob_fetch fetch = {
		"no reason", "q.io=mirror.test/q", "mirror.test", env};
	static const char *const want[] = {"q.io/x@sha256:00", "--into", "/image",
		"--registry-auth", "/registry/.dockerconfigjson", "--registry-ca",
		"/registry/ca.crt", "--registry-mirror", "q.io=mirror.test/q",
		"--insecure-registry", "mirror.test"};
	cleanup_kobj const struct kobj *i = image("coreos", "u1", "q.io/x@sha256:00");
	cleanup_json struct json_object *o = render_pcrjob(model_image(i), &two, &fetch, "ns",
						"tool:1", NONCE, 3),
					*mounts = render_pcrjob(model_image(i), &two, NULL, "ns",
						"tool:1", NONCE, 3);
	struct json_object *pod = json_get_obj(o, "spec/template/spec"),
			   *first = at(pod, "initContainers"), *args = json_get_arr(first, "args"),
			   *volumes = json_get_arr(pod, "volumes");
	char n[2][RENDER_PCRJOB_NAME_LEN + 1];

	cr_assert_eq(json_object_array_length(args), ARRAY_LEN(want));
	for (size_t k = 0; k < ARRAY_LEN(want); k++)
		cr_assert_str_eq(
			json_object_get_string(json_object_array_get_idx(args, k)), want[k]);
	cr_assert_str_eq(json_object_to_json_string(json_get_arr(first, "env")),
		"[ { \"name\": \"https_proxy\", \"value\": \"http:\\/\\/u:a=b@p:1\" }, { \"name\": \"NO_PROXY\", \"value\": \"\" } ]");
	cr_assert_str_eq(json_get_str(first, "image"), "tool:1");
	cr_assert(json_get_bool(first, "securityContext/readOnlyRootFilesystem", false));
	cr_assert(!json_get_bool(first, "securityContext/allowPrivilegeEscalation", true));
	cr_assert_str_eq(
		json_object_get_string(at(first, "securityContext/capabilities/drop")), "ALL");
	cr_assert(json_get_str(first, "resources/limits/memory"));
	/* What is fetched is bounded, and the credentials are where it is fetched alone. */
	cr_assert_eq(json_object_array_length(volumes), 4);
	cr_assert(json_get_str(at(pod, "volumes"), "emptyDir/sizeLimit"));
	cr_assert_str_eq(json_get_str(json_object_array_get_idx(volumes, 1), "secret/secretName"),
		"tec-operator-registry");
	cr_assert(json_get_bool(json_object_array_get_idx(volumes, 1), "secret/optional", false));
	cr_assert(json_object_equal(json_get_arr(pod, "containers"),
		json_get_arr(mounts, "spec/template/spec/containers")));
	cr_assert_eq(json_get_int(pod, "securityContext/fsGroup", 0), 65532);
	cr_assert_str_eq(kobj_annotation(o, MODEL_JOB_FETCH_ANNOTATION), "no reason");
	cr_assert(json_object_object_get_ex(
		json_get_obj(o, "spec/template/metadata/labels"), RENDER_PCRJOB_FETCH_LABEL, NULL));
	cr_assert(!json_object_object_get_ex(json_get_obj(mounts, "spec/template/metadata/labels"),
		RENDER_PCRJOB_FETCH_LABEL, NULL));
	render_pcrjob_name(model_image(i), &two, &fetch, n[0]);
	render_pcrjob_name(model_image(i), &two, NULL, n[1]);
	cr_assert_str_neq(n[0], n[1]);
}

Test(render_pcrjob, its_name_is_the_objects_own)
{
	cleanup_kobj const struct kobj *a = image("coreos", "u1", "q.io/x@sha256:00");
	cleanup_kobj const struct kobj *again = image("coreos", "u2", "q.io/x@sha256:00");
	cleanup_kobj const struct kobj *other = image("coreos", "u1", "q.io/x@sha256:01");
	char n[3][RENDER_PCRJOB_NAME_LEN + 1];

	render_pcrjob_name(model_image(a), NULL, NULL, n[0]);
	render_pcrjob_name(model_image(again), NULL, NULL, n[1]);
	render_pcrjob_name(model_image(other), NULL, NULL, n[2]);
	cr_assert(kobj_label_valid(n[0], strlen(n[0])));
	cr_assert_str_neq(n[0], n[1]);
	cr_assert_str_neq(n[0], n[2]);
}

Test(render_pcrjob, mounts_each_platform_read_only_and_names_it)
{
	static const char *const args[] = {"--image", "q.io/x@sha256:00", "--nonce", NONCE,
		"--platform", "a.box=/platforms/a.box", "--platform", "ovmf=/platforms/ovmf"};
	static const char *const paths[] = {"/image", "/platforms/a.box", "/platforms/ovmf"};
	static const char *const maps[] = {NULL, "a.box", "ovmf"};
	cleanup_kobj const struct kobj *i = image("coreos", "u1", "q.io/x@sha256:00");
	cleanup_json struct json_object *o =
		render_pcrjob(model_image(i), &two, NULL, "ns", "tool:1", NONCE, 3);
	struct json_object *pod = json_get_obj(o, "spec/template/spec"), *c = at(pod, "containers");
	struct json_object *volumes = json_get_arr(pod, "volumes"),
			   *mounts = json_get_arr(c, "volumeMounts"),
			   *list = json_get_arr(c, "args");

	cr_assert_eq(json_object_array_length(list), ARRAY_LEN(args));
	for (size_t k = 0; k < ARRAY_LEN(args); k++)
		cr_assert_str_eq(
			json_object_get_string(json_object_array_get_idx(list, k)), args[k]);
	cr_assert_eq(json_object_array_length(volumes), ARRAY_LEN(paths));
	cr_assert_eq(json_object_array_length(mounts), ARRAY_LEN(paths));
	for (size_t k = 0; k < ARRAY_LEN(paths); k++) {
		struct json_object *m = json_object_array_get_idx(mounts, k),
				   *v = json_object_array_get_idx(volumes, k);
		const char *map = json_get_str(v, "configMap/name");

		cr_assert_str_eq(json_get_str(m, "mountPath"), paths[k]);
		cr_assert(json_get_bool(m, "readOnly", false));
		cr_assert_str_eq(json_get_str(m, "name"), json_get_str(v, "name"));
		cr_assert(
			kobj_label_valid(json_get_str(v, "name"), strlen(json_get_str(v, "name"))));
		cr_assert(maps[k] ? str_eq(map, maps[k]) : !map, "%zu", k);
	}
}

Test(render_pcrjob, other_platforms_or_variables_are_another_job)
{
	static const struct render_pcrjob_platforms none = {.n = 0},
						    one = {.v = {{"a.box", {1}}}, .n = 1},
						    changed = {.v = {{"a.box", {9}}}, .n = 1},
						    renamed = {.v = {{"b.box", {1}}}, .n = 1};
	const struct render_pcrjob_platforms *const all[] = {NULL, &one, &changed, &renamed, &two};
	cleanup_kobj const struct kobj *i = image("coreos", "u1", "q.io/x@sha256:00");
	char n[ARRAY_LEN(all)][RENDER_PCRJOB_NAME_LEN + 1], same[RENDER_PCRJOB_NAME_LEN + 1];

	for (size_t a = 0; a < ARRAY_LEN(all); a++) {
		render_pcrjob_name(model_image(i), all[a], NULL, n[a]);
		for (size_t b = 0; b < a; b++)
			cr_assert_str_neq(n[a], n[b]);
	}
	render_pcrjob_name(model_image(i), &none, NULL, same);
	cr_assert_str_eq(same, n[0]);
	cleanup_json struct json_object *o =
		render_pcrjob(model_image(i), &one, NULL, "ns", "tool:1", NONCE, 1);
	cr_assert_str_eq(json_get_str(o, "metadata/name"), n[1]);
}
