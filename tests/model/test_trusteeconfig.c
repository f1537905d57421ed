/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "extract.h"
#include "tec/model/trusteeconfig.h"

static const struct model_trusteeconfig *read_tc(const char *spec)
{
	cleanup_free char *text = xasprintf("{" META("t") "},\"spec\":%s}", spec);

	return model_trusteeconfig(read_as(model_trusteeconfig_extract, text));
}

#define HEAD(p) "# TLS configuration - Mozilla " p " profile\ntls_profile = \"" p "\"\n"

/* Section 9 of the specification, cases 1 to 3. */
Test(model_trusteeconfig, tls_settings_become_lines)
{
	static const char *const table[][2] = {
		{"{\"profileType\":\"Permissive\"}", HEAD("intermediate")},
		{"{\"profileType\":\"Permissive\",\"tlsConfig\":{}}", HEAD("intermediate")},
		{"{\"profileType\":\"Permissive\",\"tlsConfig\":{\"profile\":\"\"}}",
			HEAD("intermediate")},
		{"{\"profileType\":\"Permissive\",\"tlsConfig\":{\"profile\":\"modern\",\"minVersion\":\"1.3\","
		 "\"ciphers\":[\"TLS_AES_128_GCM_SHA256\"],\"groups\":[\"X25519\"]}}",
			HEAD("modern")},
		{"{\"profileType\":\"Permissive\",\"tlsConfig\":{\"profile\":\"custom\"}}",
			HEAD("custom")},
		{"{\"profileType\":\"Permissive\",\"tlsConfig\":{\"profile\":\"custom\",\"minVersion\":\"1.2\","
		 "\"maxVersion\":\"1.3\",\"ciphers\":[\"TLS_AES_128_GCM_SHA256\","
		 "\"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\",\"TLS_RSA_WITH_AES_128_CBC_SHA\"],"
		 "\"groups\":[\"X25519\",\"secp384r1\"]}}",
			HEAD("custom") "tls_min_version = \"1.2\"\ntls_max_version = \"1.3\"\n"
				       "tls_ciphers = \"TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
				       "AES128-SHA\"\ntls_groups = \"X25519:secp384r1\"\n"},
		{"{\"profileType\":\"Permissive\",\"tlsConfig\":{\"profile\":\"custom\",\"ciphers\":[]}}",
			HEAD("custom")},
		/* Mixed, in the order that is given. */
		{"{\"profileType\":\"Permissive\",\"tlsConfig\":{\"profile\":\"custom\",\"ciphers\":["
		 "\"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256\",\"AES128-GCM-SHA256\","
		 "\"TLS_RSA_WITH_AES_256_GCM_SHA384\",\"TLS_CHACHA20_POLY1305_SHA256\","
		 "\"TLS_RSA_WITH_3DES_EDE_CBC_SHA\",\"TLS_DHE_RSA_WITH_AES_128_CBC_SHA\"]}}",
			HEAD("custom") "tls_ciphers = \"ECDHE-ECDSA-CHACHA20-POLY1305:"
				       "AES128-GCM-SHA256:AES256-GCM-SHA384:"
				       "TLS_CHACHA20_POLY1305_SHA256:DES-CBC3-SHA:"
				       "DHE-RSA-AES128-SHA\"\n"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct model_trusteeconfig *t = read_tc(table[i][0]);

		cr_assert_null(t->problem, "%s", t->problem);
		cr_assert_str_eq(t->tls, table[i][1]);
		kobj_unref(&t->obj);
	}
}

#define CUSTOM(rest)                                                                               \
	"{\"profileType\":\"Permissive\",\"tlsConfig\":{\"profile\":\"custom\"," rest "}}"

Test(model_trusteeconfig, what_cannot_be_used_is_a_sentence)
{
	static const char *const table[][2] = {
		{"{}", "spec.profileType is neither"},
		{"{\"profileType\":\"permissive\"}", "spec.profileType is neither"},
		{"{\"profileType\":\"\"}", "spec.profileType is neither"},
		{"{\"profileType\":\"Restricted\",\"ibmSE\":{}}", "spec.ibmSE.pvName is missing"},
		{"{\"profileType\":\"Restricted\",\"httpsSpec\":{\"tlsSecretName\":\"A_B\"}}",
			"spec.httpsSpec.tlsSecretName is not a valid object name"},
		{"{\"profileType\":\"Restricted\",\"tlsConfig\":{\"profile\":\"typo\"}}",
			"spec.tlsConfig.profile is not"},
		{CUSTOM("\"minVersion\":\"1.1\""), "spec.tlsConfig.minVersion is not 1.2 or 1.3"},
		{CUSTOM("\"maxVersion\":\"1.4\""), "spec.tlsConfig.maxVersion is not"},
		{CUSTOM("\"maxVersion\":\"\\\"\\nx=\\\"\""), "spec.tlsConfig.maxVersion is not"},
		{CUSTOM("\"ciphers\":[\"TLS_TYPO\"]"), "spec.tlsConfig.ciphers contains a name"},
		{CUSTOM("\"ciphers\":[\"A\\\"\\nx=\\\"\"]"),
			"spec.tlsConfig.ciphers contains a name"},
		{CUSTOM("\"ciphers\":[7]"), "spec.tlsConfig.ciphers contains a name"},
		{CUSTOM("\"groups\":[\"a:b\"]"), "spec.tlsConfig.groups contains a name"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct model_trusteeconfig *t = read_tc(table[i][0]);

		cr_assert(t->problem && strncmp(t->problem, table[i][1], strlen(table[i][1])) == 0,
			"%s: %s", table[i][0], t->problem);
		kobj_unref(&t->obj);
	}
}

Test(model_trusteeconfig, a_name_leaves_room_for_the_names_made_of_it)
{
	char name[254];
	cleanup_free char *text = NULL;
	const struct model_trusteeconfig *t;

	memset(name, 'a', sizeof(name) - 1);
	name[240] = '\0';
	text = xasprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"
			 "\"spec\":{\"profileType\":\"Permissive\"}}",
		name);
	t = model_trusteeconfig(read_as(model_trusteeconfig_extract, text));
	cr_assert(t->problem && strstr(t->problem, "too long"));
	kobj_unref(&t->obj);
}

Test(model_trusteeconfig, spec_and_status_are_read)
{
	const struct model_trusteeconfig *t = model_trusteeconfig(read_as(
		model_trusteeconfig_extract,
		"{" META(
			"t") "},\"spec\":{\"profileType\":\"Restricted\",\"kbsServiceType\":\"NodePort\","
			     "\"httpsSpec\":{\"tlsSecretName\":\"h\"},"
			     "\"attestationTokenVerificationSpec\":{\"tlsSecretName\":\"t\"},"
			     "\"ibmSE\":{\"pvName\":\"v\"}},\"status\":{\"isReady\":true,"
			     "\"statusDescription\":\"d\",\"kbsConfigRef\":{\"name\":\"k\"}}}"));

	cr_assert_null(t->problem);
	cr_assert_eq(t->profile, MODEL_PROFILE_RESTRICTED);
	cr_assert(t->ibmse && t->is_ready && t->has_status);
	cr_assert_str_eq(t->service_type, "NodePort");
	cr_assert_str_eq(t->https_secret, "h");
	cr_assert_str_eq(t->token_secret, "t");
	cr_assert_str_eq(t->volume, "v");
	cr_assert_str_eq(t->description, "d");
	cr_assert_str_eq(t->ref, "k");
	kobj_unref(&t->obj);
}
