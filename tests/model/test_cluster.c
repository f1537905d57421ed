/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/model/cluster.h"

#define META                                                                                       \
	"\"metadata\":{\"name\":\"tec\",\"uid\":\"u-1\",\"resourceVersion\":\"7\",\"generation\":3}"

#define OTHER_UID "0a1b2c3d-1111-4222-8333-444455556666"
#define HEX_A     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B     "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct kobj *extract_text(const char *text, struct err *err)
{
	cleanup_json struct json_object *o =
		json_parse(text, strlen(text), &json_limits_object, err);

	cr_assert(o, "%s: %s", text, err->text);
	return model_cluster_extract(o, err);
}

/* spec is JSON. */
static struct kobj *extract(const char *spec)
{
	cleanup_free char *text = xasprintf("{" META ",\"spec\":%s}", spec);
	struct err err = ERR_INIT;
	struct kobj *o = extract_text(text, &err);

	cr_assert(o, "%s: %s", spec, err.text);
	return o;
}

Test(model_cluster, defaults_are_those_of_the_contract)
{
	static const char *const specs[] = {"{}",
		"{\"publicTrusteeAddr\":null,\"trustee\":{},\"registration\":{\"mode\":null}}",
		"{\"publicTrusteeAddr\":\"\",\"unknown\":{\"a\":1}}"};

	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		cleanup_kobj const struct kobj *o = extract(specs[i]);
		const struct model_cluster *c = model_cluster(o);

		cr_assert_str_eq(o->name, "tec");
		cr_assert_eq(o->generation, 3);
		cr_assert_null(c->public_trustee_addr);
		cr_assert_null(c->public_ak_addr);
		cr_assert_null(c->trustee_secret);
		cr_assert_eq(c->trustee_port, 8080);
		cr_assert_eq(c->register_port, 8000);
		cr_assert_eq(c->ak_port, 8001);
		cr_assert_eq(c->n_servers, 0);
		cr_assert_eq(c->deploy, MODEL_DEPLOY_MANAGED);
		cr_assert_eq(c->delivery, MODEL_DELIVERY_ADMIN_API);
		cr_assert_eq(c->isolation, MODEL_ISOLATION_PER_MACHINE);
		cr_assert_eq(c->plaintext, MODEL_PLAINTEXT_ALLOW);
		cr_assert_eq(c->guard, MODEL_GUARD_ENABLED);
		cr_assert(model_cluster_guarded(c));
		cr_assert_eq(c->reg_mode, MODEL_REG_OPEN);
		cr_assert_eq(c->reg_machine, MODEL_REG_AT_REQUEST);
		cr_assert_eq(c->approval, MODEL_APPROVAL_AUTOMATIC);
		cr_assert_eq(c->endorsement, MODEL_ENDORSEMENT_NONE);
		cr_assert_eq(c->pending_ttl_ms, 24 * 3600 * 1000);
		cr_assert_eq(c->pending_limit, 10000);
		cr_assert_eq(c->machine_limit, 50000);
		cr_assert_eq(c->waiting_keys, 4);
		cr_assert_eq(c->window, 0);
		cr_assert_null(c->take_over);
		cr_assert_eq(c->n_platforms, 0);
		cr_assert_eq(c->pcr7, MODEL_PCR7_IGNORE);
		cr_assert_eq(c->release, MODEL_RELEASE_ANY_TIME);
	}
}

Test(model_cluster, an_object_without_spec_has_defaults)
{
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *o = extract_text("{" META "}", &err);

	cr_assert(o, "%s", err.text);
	cr_assert_eq(model_cluster(o)->trustee_port, 8080);
	cr_assert_null(model_cluster(o)->extended_spec);
}

Test(model_cluster, reads_every_field)
{
	cleanup_kobj const struct kobj *o = extract(
		"{\"publicTrusteeAddr\":\"t:1\",\"publicAttestationKeyRegisterAddr\":\"a:2\","
		"\"trusteeKbsPort\":1,\"registerServerPort\":2,\"attestationKeyRegisterPort\":65535,"
		"\"trusteeSecret\":\"ts\",\"registerServerSecret\":\"rs\",\"attestationKeyRegisterSecret\":\"as\","
		"\"trusteeServers\":[{\"address\":\"x\",\"caSecret\":\"xc\",\"adminSecret\":\"xa\"},{\"address\":\"y:5\"}],"
		"\"trustee\":{\"deploy\":\"External\",\"delivery\":\"Volumes\",\"keyIsolation\":\"Shared\",\"plaintext\":\"Refuse\","
		"\"guard\":\"Disabled\",\"takeOver\":\"" OTHER_UID "\"},"
		"\"registration\":{\"mode\":\"Token\",\"tokenSecret\":\"tok\",\"approval\":\"Manual\",\"pendingTTL\":\"1h30m\","
		"\"pendingLimit\":5,\"machineLimit\":6,\"waitingKeysPerMachine\":7,\"machine\":\"AtKey\",\"endorsement\":\"Required\","
		"\"endorsementCAConfigMap\":\"roots\"},"
		"\"attestation\":{\"platformConfigMaps\":[\"ovmf\",\"a.box\"],\"pcr7\":\"Require\",\"release\":\"OncePerBoot\"}}");
	const struct model_cluster *c = model_cluster(o);

	cr_assert_str_eq(c->public_trustee_addr, "t:1");
	cr_assert_str_eq(c->public_ak_addr, "a:2");
	cr_assert_eq(c->trustee_port, 1);
	cr_assert_eq(c->register_port, 2);
	cr_assert_eq(c->ak_port, 65535);
	cr_assert_str_eq(c->trustee_secret, "ts");
	cr_assert_str_eq(c->register_secret, "rs");
	cr_assert_str_eq(c->ak_secret, "as");
	cr_assert_eq(c->n_servers, 2);
	cr_assert_str_eq(c->take_over, OTHER_UID);
	cr_assert_str_eq(c->server_addr[0], "x");
	cr_assert_str_eq(c->server_ca[0], "xc");
	cr_assert_str_eq(c->server_admin[0], "xa");
	cr_assert_str_eq(c->server_addr[1], "y:5");
	cr_assert_null(c->server_ca[1]);
	cr_assert_null(c->server_admin[1]);
	cr_assert_eq(c->deploy, MODEL_DEPLOY_EXTERNAL);
	cr_assert_eq(c->delivery, MODEL_DELIVERY_VOLUMES);
	cr_assert_eq(c->isolation, MODEL_ISOLATION_SHARED);
	cr_assert_eq(c->plaintext, MODEL_PLAINTEXT_REFUSE);
	cr_assert_eq(c->guard, MODEL_GUARD_DISABLED);
	cr_assert_eq(c->reg_mode, MODEL_REG_TOKEN);
	cr_assert_str_eq(c->token_secret, "tok");
	cr_assert_eq(c->reg_machine, MODEL_REG_AT_KEY);
	cr_assert_str_eq(model_reg_mode_name(c->reg_mode), "Token");
	cr_assert_eq(c->approval, MODEL_APPROVAL_MANUAL);
	cr_assert_eq(c->pending_ttl_ms, 90 * 60 * 1000);
	cr_assert_eq(c->pending_limit, 5);
	cr_assert_eq(c->machine_limit, 6);
	cr_assert_eq(c->waiting_keys, 7);
	cr_assert_eq(c->endorsement, MODEL_ENDORSEMENT_REQUIRED);
	cr_assert_str_eq(c->endorsement_ca, "roots");
	cr_assert_eq(c->n_platforms, 2);
	cr_assert_str_eq(c->platform[0], "ovmf");
	cr_assert_str_eq(c->platform[1], "a.box");
	cr_assert_eq(c->pcr7, MODEL_PCR7_REQUIRE);
	cr_assert_eq(c->release, MODEL_RELEASE_ONCE_PER_BOOT);
}

Test(model_cluster, pending_ttl_of_0_means_never)
{
	cleanup_kobj const struct kobj *o = extract("{\"registration\":{\"pendingTTL\":\"0\"}}");

	cr_assert_eq(model_cluster(o)->pending_ttl_ms, 0);
}

Test(model_cluster, conditions_are_read_by_type)
{
	struct err err = ERR_INIT;
	cleanup_kobj const struct kobj *o = extract_text(
		"{" META ",\"status\":{\"conditions\":[{\"type\":\"Other\",\"status\":\"True\"},"
		"{\"type\":\"TrusteeSynced\",\"status\":\"False\",\"reason\":\"Populating\",\"message\":\"m\","
		"\"observedGeneration\":3,\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}]}}",
		&err);
	const struct model_cluster *c = model_cluster(o);

	cr_assert(o, "%s", err.text);
	cr_assert_eq(c->cond[CLUSTER_INSTALLED].status, KOBJ_COND_ABSENT);
	cr_assert_eq(c->cond[CLUSTER_TRUSTEE_SYNCED].status, KOBJ_COND_FALSE);
	cr_assert_str_eq(
		c->cond[CLUSTER_TRUSTEE_SYNCED].reason, model_cluster_reason(CLUSTER_POPULATING));
}

Test(model_cluster, what_it_does_not_know_is_an_error_that_names_the_member)
{
	static const struct {
		const char *spec, *member;
	} cases[] = {
		{"[]", "spec"},
		{"{\"publicTrusteeAddr\":5}", "publicTrusteeAddr"},
		{"{\"trusteeSecret\":\"\"}", "trusteeSecret"},
		{"{\"trusteeSecret\":\"../x\"}", "trusteeSecret"},
		{"{\"registerServerSecret\":\"A\"}", "registerServerSecret"},
		{"{\"trusteeKbsPort\":0}", "trusteeKbsPort"},
		{"{\"trusteeKbsPort\":65536}", "trusteeKbsPort"},
		{"{\"registerServerPort\":\"8000\"}", "registerServerPort"},
		{"{\"attestationKeyRegisterPort\":8000.5}", "attestationKeyRegisterPort"},
		{"{\"trustee\":[]}", "trustee"},
		{"{\"trustee\":\"External\"}", "trustee"},
		{"{\"registration\":1}", "registration"},
		{"{\"trustee\":{\"deploy\":\"managed\"}}", "trustee.deploy"},
		{"{\"trustee\":{\"plaintext\":\"\"}}", "trustee.plaintext"},
		{"{\"trustee\":{\"guard\":\"disabled\"}}", "trustee.guard"},
		{"{\"trustee\":{\"takeOver\":true}}", "trustee.takeOver"},
		{"{\"trustee\":{\"takeOver\":\"\"}}", "trustee.takeOver is not a UID"},
		{"{\"trustee\":{\"takeOver\":\"other\"}}", "trustee.takeOver is not a UID"},
		{"{\"registration\":{\"mode\":\"Closed\"}}", "registration.mode"},
		{"{\"registration\":{\"mode\":true}}", "registration.mode"},
		{"{\"registration\":{\"machine\":\"Never\"}}", "registration.machine"},
		{"{\"registration\":{\"pendingTTL\":24}}", "pendingTTL"},
		{"{\"registration\":{\"pendingTTL\":\"1d\"}}", "pendingTTL"},
		{"{\"registration\":{\"pendingTTL\":\"\"}}", "pendingTTL"},
		{"{\"registration\":{\"pendingTTL\":\"-1h\"}}", "pendingTTL"},
		{"{\"registration\":{\"pendingLimit\":0}}", "pendingLimit"},
		{"{\"registration\":{\"machineLimit\":99999999999}}", "machineLimit"},
		{"{\"registration\":{\"waitingKeysPerMachine\":-1}}", "waitingKeysPerMachine"},
		{"{\"trusteeServers\":{}}", "trusteeServers"},
		{"{\"trusteeServers\":[{}]}", "address"},
		{"{\"trusteeServers\":[{\"address\":\"\"}]}", "address"},
		{"{\"trusteeServers\":[null]}", "address"},
		{"{\"trusteeServers\":[\"x\"]}", "address"},
		{"{\"trusteeServers\":[{\"address\":\"a\",\"caSecret\":\"\"}]}", "caSecret"},
		{"{\"trusteeServers\":[{},{},{},{},{},{},{},{},{}]}", "more than 8"},
		{"{\"attestation\":[]}", "attestation"},
		{"{\"tls\":[]}", "spec.tls"},
		{"{\"tls\":{\"caSHA256\":\"a\"}}", "spec.tls.caSHA256 is not a list"},
		{"{\"tls\":{\"caSHA256\":[]}}", "1 to 8"},
		{"{\"tls\":{\"caSHA256\":[1,2,3,4,5,6,7,8,9]}}", "1 to 8"},
		{"{\"tls\":{\"caSHA256\":[null]}}", "lower-case hexadecimal"},
		{"{\"tls\":{\"caSHA256\":[\"ab\"]}}", "lower-case hexadecimal"},
		{"{\"tls\":{\"caSHA256\":[\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"]}}",
			"lower-case hexadecimal"},
		{"{\"attestation\":{\"pcr7\":\"require\"}}", "attestation.pcr7"},
		{"{\"attestation\":{\"pcr7\":true}}", "attestation.pcr7"},
		{"{\"attestation\":{\"release\":\"Never\"}}", "attestation.release"},
		{"{\"attestation\":{\"platformConfigMaps\":\"a\"}}", "platformConfigMaps"},
		{"{\"attestation\":{\"platformConfigMaps\":[null]}}", "platformConfigMaps"},
		{"{\"attestation\":{\"platformConfigMaps\":[7]}}", "platformConfigMaps"},
		{"{\"attestation\":{\"platformConfigMaps\":[\"\"]}}", "platformConfigMaps"},
		{"{\"attestation\":{\"platformConfigMaps\":[\"../a\"]}}", "platformConfigMaps"},
		{"{\"attestation\":{\"platformConfigMaps\":[\"a\",\"b\",\"a\"]}}", "a twice"},
		{"{\"attestation\":{\"platformConfigMaps\":[1,2,3,4,5,6,7,8,9]}}", "more than 8"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *text = xasprintf("{" META ",\"spec\":%s}", cases[i].spec);
		struct err err = ERR_INIT;

		cr_assert_null(extract_text(text, &err), "%s", cases[i].spec);
		cr_assert_eq(err.kind, ERR_INVALID);
		cr_assert(strstr(err.text, cases[i].member), "%s: %s", cases[i].spec, err.text);
	}
}

Test(model_cluster, most_servers_and_conditions_fit_into_the_pack)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct kobj *o;

	strbuf_adds(&b,
		"{\"metadata\":{\"name\":\"tec\",\"uid\":\"u\",\"resourceVersion\":\"7\",\"annotations\":{\"" //
		MODEL_EXTENDED_ANNOTATION
		"\":\"{}\"}},\"spec\":{\"publicTrusteeAddr\":\"a\",\"publicRegisterAddr\":\"a\","
		"\"publicAttestationKeyRegisterAddr\":\"a\",\"trusteeSecret\":\"a\",\"registerServerSecret\":\"a\","
		"\"attestationKeyRegisterSecret\":\"a\",\"registration\":{\"tokenSecret\":\"a\","
		"\"endorsementCAConfigMap\":\"a\"},\"trusteeServers\":[");
	for (int i = 0; i < MODEL_CLUSTER_SERVERS_MAX; i++)
		strbuf_addf(&b, "%s{\"address\":\"h%d\",\"caSecret\":\"c\",\"adminSecret\":\"a\"}",
			i ? "," : "", i);
	strbuf_adds(&b, "],\"attestation\":{\"platformConfigMaps\":[");
	for (int i = 0; i < MODEL_PLATFORMS_MAX; i++)
		strbuf_addf(&b, "%s\"p%d\"", i ? "," : "", i);
	strbuf_adds(&b, "]},\"tls\":{\"caSHA256\":[\"" HEX_A "\"]}},\"status\":{\"conditions\":[");
	for (int i = 0; i < CLUSTER_N_CONDS; i++)
		strbuf_addf(&b, "%s{\"type\":\"%s\",\"status\":\"True\",\"reason\":\"R\"}",
			i ? "," : "", model_cluster_cond_types[i]);
	strbuf_adds(&b, "]}}");
	o = extract_text(b.data, &err);
	cr_assert(o, "%s", err.text);
	cr_assert_str_eq(model_cluster(o)->server_addr[7], "h7");
	cr_assert_str_eq(model_cluster(o)->platform[7], "p7");
	kobj_unref(o);
}

Test(model_cluster, extended_spec_is_the_plus_part_in_canonical_form)
{
	cleanup_kobj const struct kobj *o = extract(
		"{\"trusteeServers\":[{\"caSecret\":\"c\",\"address\":\"a\"}],\"publicTrusteeAddr\":\"x\","
		"\"trustee\":{\"plaintext\":\"Refuse\",\"deploy\":\"External\"},\"registration\":null,"
		"\"tls\":{\"caSHA256\":[\"" HEX_A "\"]},"
		"\"attestation\":{\"platformConfigMaps\":[\"b\",\"a\"],\"pcr7\":\"Ignore\"}}");
	cleanup_kobj const struct kobj *none = extract("{\"publicTrusteeAddr\":\"x\"}");

	cr_assert_str_eq(model_cluster(o)->extended_spec,
		"{\"attestation\":{\"pcr7\":\"Ignore\",\"platformConfigMaps\":[\"b\",\"a\"]},"
		"\"tls\":{\"caSHA256\":[\"" HEX_A "\"]},"
		"\"trustee\":{\"deploy\":\"External\",\"plaintext\":\"Refuse\"},"
		"\"trusteeServers\":[{\"address\":\"a\",\"caSecret\":\"c\"}]}");
	cr_assert_null(model_cluster(none)->extended_spec);
}

Test(model_cluster, what_the_mirror_has_and_spec_lacks_is_lost)
{
	static const struct {
		const char *mirror, *spec, *lost; /* lost NULL: nothing */
	} cases[] = {
		{NULL, "{}", NULL},
		{"{}", "{}", NULL},
		{"{}", "{\"trustee\":{}}", NULL},
		{"{\"registration\":{\"mode\":\"Token\"}}",
			"{\"registration\":{\"mode\":\"Token\"}}", NULL},
		{"{\"registration\":{\"mode\":\"Token\"}}",
			"{\"registration\":{\"mode\":\"Open\"}}", NULL},
		{"{\"registration\":{\"mode\":\"Token\"}}", "{}", "registration"},
		{"{\"registration\":{\"mode\":\"Token\"}}", "{\"registration\":{}}",
			"registration.mode"},
		{"{\"registration\":{\"mode\":\"Token\"}}",
			"{\"registration\":{\"approval\":\"Manual\"}}", "registration.mode"},
		{"{\"trustee\":{\"deploy\":\"External\"},\"trusteeServers\":[]}",
			"{\"trustee\":{\"deploy\":\"External\"}}", "trusteeServers"},
		{"{\"trusteeServers\":[{\"address\":\"a\"}]}", "{\"trusteeServers\":[]}", NULL},
		{"{\"trusteeServers\":null}", "{}", NULL},
		{"{\"future\":1}", "{}", "future"},
		{"{\"attestation\":{\"pcr7\":\"Require\"}}", "{}", "attestation"},
		{"{\"attestation\":{\"pcr7\":\"Require\"}}", "{\"attestation\":{}}",
			"attestation.pcr7"},
		{"{\"attestation\":{\"pcr7\":\"Require\"}}",
			"{\"attestation\":{\"pcr7\":\"Ignore\"}}", NULL},
		{"not json", "{}", "(the annotation"},
		{"[]", "{}", "(the annotation"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *o = json_tokener_parse("{" META "}");
		struct err err = ERR_INIT;
		cleanup_kobj const struct kobj *k = NULL;
		const char *what;

		json_add(o, "spec", json_tokener_parse(cases[i].spec));
		json_add(json_get_obj(o, "metadata"), "annotations",
			json_add_str(json_obj(), MODEL_EXTENDED_ANNOTATION, cases[i].mirror));
		k = model_cluster_extract(o, &err);
		cr_assert(k, "%s", err.text);
		what = model_cluster(k)->extended_lost;
		cr_assert_eq(what != NULL, cases[i].lost != NULL, "%zu: %s", i, what);
		if (cases[i].lost)
			cr_assert_eq(strncmp(what, cases[i].lost, strlen(cases[i].lost)), 0,
				"%s, not %s", what, cases[i].lost);
	}
}

Test(model_cluster, the_epoch_and_the_peer)
{
	static const struct {
		const char *mirror, *spec;
		int64_t epoch; /* -1: refused */
	} cases[] = {
		{"{}", "{}", 0},
		{"{\"epoch\":3}", "{\"epoch\":3}", 3},
		{"{\"epoch\":3}", "{}", 3}, /* pruned */
		{"{}", "{\"epoch\":1000000000}", 1000000000},
		{"{}", "{\"epoch\":1000000001}", -1},
		{"{}", "{\"epoch\":-1}", -1},
		{"{}", "{\"epoch\":\"3\"}", -1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *o = json_tokener_parse("{" META "}");
		struct err err = ERR_INIT;
		cleanup_kobj const struct kobj *k = NULL;

		json_add(o, "spec", json_tokener_parse(cases[i].spec));
		json_add(json_get_obj(o, "metadata"), "annotations",
			json_add_str(json_obj(), MODEL_EXTENDED_ANNOTATION, cases[i].mirror));
		k = model_cluster_extract(o, &err);
		cr_assert_eq(k != NULL, cases[i].epoch >= 0, "%zu: %s", i, err.text);
		cr_assert(!k || model_cluster(k)->epoch == cases[i].epoch, "%zu", i);
	}
	struct model_cluster c = {.followed_uid = "u"};

	cr_assert_null(model_cluster_peer(&c), "spec.follow is gone");
	c.follow_secret = "s";
	cr_assert_str_eq(model_cluster_peer(&c), "u");
	c.retired_uid = "another";
	cr_assert_str_eq(model_cluster_peer(&c), "u");
	c.retired_uid = "u";
	cr_assert_null(model_cluster_peer(&c));
}

Test(model_cluster, a_follower_leaves_the_trustee_of_the_cluster_that_it_follows)
{
	static const struct {
		enum model_authority authority;
		enum model_deploy deploy;
		const char *take_over, *followed;
		bool leaves;
	} cases[] = {
		{MODEL_AUTHORITY_FOLLOWING, MODEL_DEPLOY_EXTERNAL, "a", "a", true},
		{MODEL_AUTHORITY_FOLLOWING, MODEL_DEPLOY_EXTERNAL, "a", NULL, true},
		{MODEL_AUTHORITY_FOLLOWING, MODEL_DEPLOY_EXTERNAL, "a", "b", false},
		{MODEL_AUTHORITY_FOLLOWING, MODEL_DEPLOY_EXTERNAL, NULL, "a", false},
		{MODEL_AUTHORITY_FOLLOWING, MODEL_DEPLOY_MANAGED, "a", "a", false},
		{MODEL_AUTHORITY_SELF, MODEL_DEPLOY_EXTERNAL, "a", "a", false},
		{MODEL_AUTHORITY_FROZEN, MODEL_DEPLOY_EXTERNAL, "a", "a", false},
		{MODEL_AUTHORITY_RETIRED, MODEL_DEPLOY_EXTERNAL, "a", "a", true},
		{MODEL_AUTHORITY_RETIRED, MODEL_DEPLOY_EXTERNAL, "a", NULL, false},
		{MODEL_AUTHORITY_RETIRED, MODEL_DEPLOY_EXTERNAL, "a", "b", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct model_cluster c = {.authority = cases[i].authority,
			.deploy = cases[i].deploy,
			.take_over = cases[i].take_over,
			.followed_uid = cases[i].followed};

		cr_expect_eq(model_cluster_leaves_trustee(&c), cases[i].leaves, "%zu", i);
	}
}

Test(model_cluster, of_two_that_know_each_other_one_yields)
{
	struct model_cluster a = {.obj.uid = "a", .follow_secret = "s", .followed_uid = "b"},
			     b = {.obj.uid = "b", .follow_secret = "s", .followed_uid = "a"};

	for (int is = MODEL_AUTHORITY_SELF; is <= MODEL_AUTHORITY_RETIRED; is++)
		for (int epoch = 0; epoch < 3; epoch++) {
			bool later = epoch > 1 &&
				     (is == MODEL_AUTHORITY_SELF || is == MODEL_AUTHORITY_FROZEN);

			a.epoch = 1;
			b.epoch = epoch;
			b.authority = (enum model_authority)is;
			cr_assert_eq(model_cluster_yields(&a, &b), later, "%d %d", is, epoch);
			if (is == MODEL_AUTHORITY_SELF)
				cr_assert_neq(model_cluster_yields(&a, &b),
					model_cluster_yields(&b, &a), "%d", epoch);
		}
	/* One that does not know the other goes on, so the other does not. */
	b.authority = MODEL_AUTHORITY_SELF;
	b.epoch = a.epoch;
	b.follow_secret = NULL;
	cr_assert(model_cluster_yields(&a, &b));
	b.epoch = 0;
	cr_assert_not(model_cluster_yields(&a, &b));
}

/* A definition that prunes the field must not let nodes in with any PCR 7. */
Test(model_cluster, a_lost_attestation_is_that_of_the_mirror)
{
#define MIRROR "{\"attestation\":{\"pcr7\":\"Require\",\"platformConfigMaps\":[\"ovmf\"]}}"
	static const struct {
		const char *mirror, *spec;
		enum model_pcr7 pcr7;
		const char *platform; /* NULL: none */
	} cases[] = {
		{MIRROR, "{}", MODEL_PCR7_REQUIRE, "ovmf"},
		{MIRROR, "{\"attestation\":{\"platformConfigMaps\":[\"b\"]}}", MODEL_PCR7_REQUIRE,
			"ovmf"},
		{MIRROR, "{\"attestation\":{\"platformConfigMaps\":[\"b\"],\"pcr7\":\"Ignore\"}}",
			MODEL_PCR7_IGNORE, "b"},
		{"{\"registration\":{\"mode\":\"Open\"}}",
			"{\"attestation\":{\"platformConfigMaps\":[\"b\"]}}", MODEL_PCR7_IGNORE,
			"b"},
		{"{\"attestation\":7}", "{}", MODEL_PCR7_IGNORE, NULL},
		{"nonsense", "{}", MODEL_PCR7_IGNORE, NULL},
	};
#undef MIRROR

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *o = json_tokener_parse("{" META "}");
		struct err err = ERR_INIT;
		cleanup_kobj const struct kobj *k = NULL;
		const struct model_cluster *c;

		json_add(o, "spec", json_tokener_parse(cases[i].spec));
		json_add(json_get_obj(o, "metadata"), "annotations",
			json_add_str(json_obj(), MODEL_EXTENDED_ANNOTATION, cases[i].mirror));
		k = model_cluster_extract(o, &err);
		cr_assert(k, "%s", err.text);
		c = model_cluster(k);
		cr_assert_eq(c->pcr7, cases[i].pcr7, "%zu", i);
		cr_assert_eq(c->n_platforms, cases[i].platform ? 1 : 0, "%zu", i);
		if (cases[i].platform)
			cr_assert_str_eq(c->platform[0], cases[i].platform);
	}
}

/* What a definition without the field dropped does not change what runs. */
Test(model_cluster, the_guard_is_for_the_own_trustee_and_is_kept_when_spec_loses_it)
{
	static const struct {
		const char *mirror, *spec;
		bool guarded;
	} cases[] = {
		{NULL, "{\"trustee\":{\"guard\":\"Enabled\"}}", true},
		{NULL, "{\"trustee\":{\"guard\":\"Disabled\"}}", false},
		{NULL, "{\"trustee\":{\"deploy\":\"External\"}}", false},
		{NULL, "{\"trustee\":{\"deploy\":\"External\",\"guard\":\"Enabled\"}}", false},
		{"{\"trustee\":{\"guard\":\"Disabled\"}}", "{}", false},
		{"{\"trustee\":{\"guard\":\"Disabled\"}}", "{\"trustee\":{}}", false},
		{"{\"trustee\":{\"guard\":\"Disabled\"}}", "{\"trustee\":{\"guard\":\"Enabled\"}}",
			true},
		{"{\"trustee\":{\"plaintext\":\"Refuse\"}}", "{}", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_json struct json_object *o = json_tokener_parse("{" META "}");
		struct err err = ERR_INIT;
		cleanup_kobj const struct kobj *k = NULL;

		json_add(o, "spec", json_tokener_parse(cases[i].spec));
		if (cases[i].mirror)
			json_add(json_get_obj(o, "metadata"), "annotations",
				json_add_str(
					json_obj(), MODEL_EXTENDED_ANNOTATION, cases[i].mirror));
		k = model_cluster_extract(o, &err);
		cr_assert(k, "%s", err.text);
		cr_expect_eq(model_cluster_guarded(model_cluster(k)), cases[i].guarded, "%zu", i);
	}
}

Test(model_cluster, unused_fields_are_named)
{
	static const struct {
		const char *spec, *unused;
	} cases[] = {
		{"{}", ""},
		{"{\"trustee\":{\"deploy\":\"External\",\"plaintext\":\"Refuse\"},\"registration\":{\"mode\":\"Manual\"}}",
			""},
		{"{\"trustee\":{\"delivery\":\"AdminAPI\",\"keyIsolation\":\"PerMachine\"}}", ""},
		{"{\"trustee\":{\"delivery\":\"Volumes\",\"keyIsolation\":\"Shared\"}}", ""},
		{"{\"registration\":{\"mode\":\"Token\",\"tokenSecret\":\"a\",\"endorsement\":\"Optional\","
		 "\"endorsementCAConfigMap\":\"b\"}}",
			"registration.mode Token, registration.tokenSecret, registration.endorsement, "
			"registration.endorsementCAConfigMap"},
		{"{\"trusteeServers\":[{\"address\":\"a\"},{\"address\":\"b\",\"adminSecret\":\"c\"}]}",
			""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_kobj const struct kobj *o = extract(cases[i].spec);
		cleanup_strbuf struct strbuf b = STRBUF_INIT;

		model_cluster_unused_fields(model_cluster(o), &b);
		cr_assert_str_eq(strbuf_str(&b), cases[i].unused);
	}
}

/* ---- annotations of the operator and of administrators */

static struct kobj *annotated(const char *annotations)
{
	cleanup_free char *text = xasprintf("{\"metadata\":{\"name\":\"tec\",\"uid\":\"u-1\","
					    "\"resourceVersion\":\"7\",\"annotations\":{%s}}}",
		annotations);
	struct err err = ERR_INIT;
	struct kobj *o = extract_text(text, &err);

	cr_assert(o, "%s", err.text);
	return o;
}

Test(model_cluster, only_what_carries_the_uid_is_announced)
{
	cleanup_kobj const struct kobj *o =
		annotated("\"" MODEL_ANNOUNCED_PREFIX "trustee-auth\":\"u-1 " HEX_A " " HEX_B "\","
			  "\"" MODEL_ANNOUNCED_PREFIX "trustee-token\":\"u-2 " HEX_A "\","
			  "\"" MODEL_ANNOUNCED_PREFIX "Not A Name\":\"u-1 " HEX_A "\","
			  "\"" MODEL_ANNOUNCED_PREFIX "\":\"u-1 " HEX_A "\","
			  "\"example.org/sha256-trustee-token-2\":\"u-1 " HEX_A "\"");
	const struct model_cluster *c = model_cluster(o);

	cr_assert_eq(c->n_announced, 2); /* the other object's is seen, to be taken away */
	cr_assert(model_cluster_announces(c, "trustee-auth", HEX_A));
	cr_assert(model_cluster_announces(c, "trustee-auth", HEX_B));
	cr_assert(!model_cluster_announces(c, "trustee-auth", ""));
	cr_assert(!model_cluster_announces(c, "trustee-token", HEX_A));
	cr_assert(!model_cluster_announces(c, "trustee-token-2", HEX_A));
	cr_assert_null(model_cluster_announced(c, "trustee-token"));
}

Test(model_cluster, announcements_are_bounded)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	cleanup_kobj const struct kobj *o = NULL;

	for (int i = 0; i < 3 * MODEL_ANNOUNCED_MAX; i++)
		strbuf_addf(&text, "%s\"" MODEL_ANNOUNCED_PREFIX "s-%d\":\"u-1 " HEX_A "\"",
			i ? "," : "", i);
	o = annotated(strbuf_str(&text));
	cr_assert_eq(model_cluster(o)->n_announced, MODEL_ANNOUNCED_MAX);
}

Test(model_cluster, adopt_before_is_a_time)
{
	static const struct {
		const char *text;
		int64_t s;
	} t[] = {
		{"2027-01-15T09:00:00Z", 1800003600},
		{"2027-01-15T10:00:00.25+01:00", 1800003600},
		{"2027-01-15T09:00:00", INT64_MIN},
		{"2027-01-15", INT64_MIN},
		{"now", INT64_MIN},
		{"", INT64_MIN},
	};
	cleanup_kobj const struct kobj *none = annotated("");

	cr_assert_eq(model_cluster(none)->adopt_before_s, INT64_MIN);
	cr_assert(!model_cluster(none)->adopt_before_bad);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_free char *a =
			xasprintf("\"" MODEL_ADOPT_BEFORE_ANNOTATION "\":\"%s\"", t[i].text);
		cleanup_kobj const struct kobj *o = annotated(a);

		cr_assert_eq(model_cluster(o)->adopt_before_s, t[i].s, "%s", t[i].text);
		cr_assert_eq(
			model_cluster(o)->adopt_before_bad, t[i].s == INT64_MIN, "%s", t[i].text);
	}
}

Test(model_cluster, a_ca_is_listed_when_each_certificate_is)
{
	static const struct {
		const char *listed, *found, *unlisted; /* unlisted NULL: none */
	} cases[] = {
		{NULL, NULL, NULL},
		{NULL, HEX_A, NULL},
		{NULL, "", NULL},
		{HEX_A, NULL, NULL},
		{HEX_A, "", ""},
		{HEX_A, HEX_A, NULL},
		{HEX_A, HEX_A " " HEX_A, NULL},
		{HEX_A, HEX_B, HEX_B},
		{HEX_A, HEX_A " " HEX_B, HEX_B},
		{HEX_A, HEX_B " " HEX_A, HEX_B " " HEX_A},
		{HEX_B " " HEX_A, HEX_A " " HEX_B, NULL},
		{HEX_A, "a", "a"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *u = model_cluster_unlisted_ca(cases[i].listed, cases[i].found);

		cr_assert(str_eq(u, cases[i].unlisted), "%zu: %s", i, u ? u : "all are listed");
	}
}

/* A definition that prunes the field must not let any CA in. */
Test(model_cluster, a_lost_list_of_certificates_is_that_of_the_mirror)
{
	cleanup_json struct json_object *o = json_tokener_parse("{" META ",\"spec\":{}}");
	cleanup_kobj const struct kobj *k = NULL;
	struct err err = ERR_INIT;

	json_add(json_get_obj(o, "metadata"), "annotations",
		json_add_str(json_obj(), MODEL_EXTENDED_ANNOTATION,
			"{\"tls\":{\"caSHA256\":[\"" HEX_A "\",\"" HEX_B "\"]}}"));
	k = model_cluster_extract(o, &err);
	cr_assert(k, "%s", err.text);
	cr_assert_str_eq(model_cluster(k)->ca_sha256, HEX_A " " HEX_B);
	cr_assert_str_eq(model_cluster(k)->extended_lost, "tls");
}
