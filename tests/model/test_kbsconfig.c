/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "model/extract.h"
#include "tec/model/kbsconfig.h"

static const struct kobj *with(const char *spec)
{
	cleanup_free char *text = xasprintf("{" META("k") "},\"spec\":%s}", spec);

	return read_as(model_kbsconfig_extract, text);
}

Test(model_kbsconfig, every_field_of_spec_is_read)
{
	cleanup_kobj const struct kobj *o = with(
		"{\"kbsConfigMapName\":\"a\",\"kbsAuthSecretName\":\"b\",\"kbsServiceType\":"
		"\"NodePort\",\"kbsSecretResources\":[\"r1\",\"r2\",\"r1\"],\"KbsEnvVars\":{\"Z\":"
		"\"1\",\"A\":\"\"},\"KbsDeploymentSpec\":{\"replicas\":0},\"ibmSEConfigSpec\":{"
		"\"certStorePvc\":\"p\"},\"tdxConfigSpec\":{\"kbsTdxConfigMapName\":\"t\"},"
		"\"kbsLocalCertCacheSpec\":{\"secrets\":[{\"secretName\":\"v\"},{\"secretName\":"
		"\"w\",\"mountPath\":\"/m\"}]}}");
	const struct model_kbsconfig *c = model_kbsconfig(o);

	cr_assert_null(c->problem);
	cr_assert_str_eq(c->input[KBSCONFIG_CONFIG], "a");
	cr_assert_str_eq(c->input[KBSCONFIG_AUTH], "b");
	cr_assert_str_eq(c->input[KBSCONFIG_QCNL], "t");
	cr_assert_str_eq(c->service_type, "NodePort");
	cr_assert_str_eq(c->resources, "r1\nr2\n");
	cr_assert_str_eq(c->env, "{\"A\":\"\",\"Z\":\"1\"}");
	cr_assert_str_eq(c->pvc, "p");
	cr_assert_str_eq(c->caches,
		"v\t/opt/confidential-containers/attestation-service/kds-store/vcek\nw\t/m\n");
	cr_assert_eq(c->replicas, 0);
	cr_assert_not(c->microservices);
	cr_assert(model_kbsconfig_names(c, true, "r2") && model_kbsconfig_names(c, true, "w"));
	cr_assert(model_kbsconfig_names(c, false, "t"));
	cr_assert_not(model_kbsconfig_names(c, true, "t"), "a ConfigMap's name");
	cr_assert_not(model_kbsconfig_names(c, true, "r"));
	cr_assert_not(model_kbsconfig_names(c, false, ""));
}

Test(model_kbsconfig, each_named_object_has_a_path_of_its_own)
{
	for (int i = 0; i < KBSCONFIG_N_INPUTS; i++) {
		const char *path = model_kbsconfig_input_paths[i], *slash = strchr(path, '/');
		cleanup_free char *spec = slash ? xasprintf("{\"%.*s\":{\"%s\":\"x\"}}",
							  (int)(slash - path), path, slash + 1)
						: xasprintf("{\"%s\":\"x\"}", path);
		cleanup_kobj const struct kobj *o = with(spec);

		for (int k = 0; k < KBSCONFIG_N_INPUTS; k++)
			cr_expect_eq(model_kbsconfig(o)->input[k] != NULL, k == i, "%s", path);
	}
}

Test(model_kbsconfig, older_forms_and_defaults)
{
	cleanup_kobj const struct kobj *none = with("{}"),
				       *flat = with("{\"kbsLocalCertCacheSpec\":{\"secretName\":"
						    "\"v\",\"mountPath\":\"/m\"},"
						    "\"KksDeploymentSpec\":{\"replicas\":3},"
						    "\"kbsServiceType\":\"\"}"),
				       *parts = with("{\"kbsAsConfigMapName\":\"a\"}"),
				       *one = with("{\"kbsAsConfigMapName\":\"a\","
						   "\"kbsDeploymentType\":\"AllInOneDeployment\"}");

	cr_assert_eq(model_kbsconfig(none)->replicas, 1);
	cr_assert_str_eq(model_kbsconfig(none)->service_type, "ClusterIP");
	cr_assert_str_eq(model_kbsconfig(flat)->caches, "v\t/m\n");
	cr_assert_eq(model_kbsconfig(flat)->replicas, 3);
	cr_assert_str_eq(model_kbsconfig(flat)->service_type, "ClusterIP");
	cr_assert(model_kbsconfig(parts)->microservices, "its ConfigMap is given");
	cr_assert_not(model_kbsconfig(one)->microservices);
}

Test(model_kbsconfig, what_cannot_be_used_is_one_sentence)
{
	static const struct {
		const char *spec, *problem;
	} t[] = {
		{"{\"kbsConfigMapName\":\"A b\"}",
			"spec.kbsConfigMapName is not a valid object name"},
		{"{\"tdxConfigSpec\":{\"kbsTdxConfigMapName\":\"..\"}}",
			"spec.tdxConfigSpec.kbsTdxConfigMapName is not a valid object name"},
		{"{\"kbsSecretResources\":[\"a\",\"../b\"]}",
			"spec.kbsSecretResources contains an invalid Secret name"},
		{"{\"kbsSecretResources\":[7]}",
			"spec.kbsSecretResources contains an invalid Secret name"},
		{"{\"KbsDeploymentSpec\":{\"replicas\":-1}}",
			"spec.KbsDeploymentSpec.replicas is negative"},
		{"{\"kbsDeploymentType\":\"Micro\"}",
			"spec.kbsDeploymentType is neither AllInOneDeployment nor MicroservicesDeployment"},
		{"{\"kbsLocalCertCacheSpec\":{\"secrets\":[{\"secretName\":\"a\",\"mountPath\":"
		 "\"x\"}]}}",
			"spec.kbsLocalCertCacheSpec.secrets.mountPath is not an absolute path"},
		{"{\"kbsLocalCertCacheSpec\":{\"secrets\":[{\"secretName\":\"a\",\"mountPath\":"
		 "\"/a/../b\"}]}}",
			"spec.kbsLocalCertCacheSpec.secrets.mountPath is not an absolute path"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_kobj const struct kobj *o = with(t[i].spec);

		cr_expect(str_eq(model_kbsconfig(o)->problem, t[i].problem), "%s: %s", t[i].spec,
			model_kbsconfig(o)->problem ? model_kbsconfig(o)->problem : "-");
	}
}
