/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"
#include "tec/render/listener.h"

static const struct model_cluster cluster = {
	.obj = {.name = "tec", .uid = "c-1"}, .register_port = 8100, .ak_port = 8201};

static void assert_service(struct json_object *o, const char *name, int port, int target)
{
	struct json_object *p = json_object_array_get_idx(json_get_arr(o, "spec/ports"), 0);

	cr_assert_str_eq(json_get_str(o, "apiVersion"), "v1");
	cr_assert_str_eq(json_get_str(o, "kind"), "Service");
	cr_assert_str_eq(json_get_str(o, "metadata/name"), name);
	cr_assert_str_eq(json_get_str(o, "metadata/namespace"), "ns");
	cr_assert(kobj_owner_is_exactly(o, "c-1"));
	cr_assert(kobj_annotation(o, KOBJ_RENDER_HASH_ANNOTATION));
	cr_assert_str_eq(json_get_str(o, "spec/type"), "ClusterIP");
	cr_assert_str_eq(json_get_str(o, "spec/selector/app"), "tec-operator");
	cr_assert_eq(json_object_array_length(json_get_arr(o, "spec/ports")), 1);
	cr_assert_eq(json_get_int(p, "port", 0), port);
	cr_assert_eq(json_get_int(p, "targetPort", 0), target);
}

Test(render_listener, services_lead_to_the_operators_own_pods)
{
	cleanup_json struct json_object *reg = render_register_service(&cluster, "ns");
	cleanup_json struct json_object *ak = render_ak_service(&cluster, "ns");

	assert_service(reg, "register-server", 8100, 8000);
	assert_service(ak, "attestation-key-register", 8201, 8001);
}
