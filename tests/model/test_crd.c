/* SPDX-License-Identifier: MIT */
/* crd/ is the master schema: what the model reads stands there, and what stands there the model
 * reads. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tec/base/yaml.h"
#include "tec/model/ak.h"
#include "tec/model/cluster.h"
#include "tec/model/image.h"
#include "tec/model/kbsconfig.h"
#include "tec/model/trusteeconfig.h"
#include "tec/model/machine.h"

static struct json_object *load(const char *file)
{
	const char *top = getenv("TOP_SRCDIR");
	cleanup_free char *path = xasprintf("%s/crd/%s", top ? top : ".", file);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct json_object *o;
	char chunk[4096];
	FILE *f = fopen(path, "r");
	size_t n;

	cr_assert(f, "cannot open %s", path);
	while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
		strbuf_add(&text, chunk, n);
	fclose(f);
	o = yaml_parse(text.data, text.len, &err);
	cr_assert(o, "%s: %s", path, err.text);
	return o;
}

static struct json_object *schema(struct json_object *crd)
{
	struct json_object *v = json_object_array_get_idx(json_get_arr(crd, "spec/versions"), 0);
	struct json_object *s = json_get_obj(v, "schema/openAPIV3Schema");

	cr_assert(s);
	return s;
}

static struct json_object *spec_properties(struct json_object *crd)
{
	struct json_object *p = json_get_obj(schema(crd), "properties/spec/properties");

	cr_assert(p);
	return p;
}

/* ---- fields */

static void assert_fields(const char *file, const char *const *names, size_t n)
{
	cleanup_json struct json_object *crd = load(file);
	struct json_object *p = spec_properties(crd);

	for (size_t i = 0; i < n; i++)
		cr_assert(json_get_obj(p, names[i]), "%s lacks %s", file, names[i]);
	cr_assert_eq((size_t)json_object_object_length(p), n, "%s has a field nobody reads", file);
}

Test(model_crd, small_kinds_have_the_fields_the_model_reads)
{
	static const char *const machine[] = {"id"}, *const ak[] = {"publicKey", "uuid"},
				 *const image[] = {"image", "secureBoot", "bootPath"};

	assert_fields("machines.yaml", machine, ARRAY_LEN(machine));
	assert_fields("attestationkeys.yaml", ak, ARRAY_LEN(ak));
	assert_fields("approvedimages.yaml", image, ARRAY_LEN(image));
}

/* What a KbsConfig has beside the objects that it names one by one. */
static const char *const kbsconfig_fields[] = {
	"kbsServiceType",
	"kbsDeploymentType",
	"kbsSecretResources",
	"ibmSEConfigSpec/certStorePvc",
	"KbsEnvVars",
	"kbsLocalCertCacheSpec/secrets/secretName",
	"kbsLocalCertCacheSpec/secrets/mountPath",
	"kbsLocalCertCacheSpec/secretName",
	"kbsLocalCertCacheSpec/mountPath",
	"KbsDeploymentSpec/replicas",
	"KksDeploymentSpec/replicas",
};

static struct json_object *find_field(struct json_object *p, const char *path);
static size_t count_leaves(struct json_object *p);

Test(model_crd, kbsconfig_has_exactly_the_fields_the_model_reads)
{
	cleanup_json struct json_object *crd = load("trustee/kbsconfigs.yaml");
	struct json_object *p = spec_properties(crd);

	for (size_t i = 0; i < KBSCONFIG_N_INPUTS; i++)
		cr_assert(find_field(p, model_kbsconfig_input_paths[i]), "the CRD lacks %s",
			model_kbsconfig_input_paths[i]);
	for (size_t i = 0; i < ARRAY_LEN(kbsconfig_fields); i++)
		cr_assert(find_field(p, kbsconfig_fields[i]), "the CRD lacks %s",
			kbsconfig_fields[i]);
	cr_assert_eq(count_leaves(p), KBSCONFIG_N_INPUTS + ARRAY_LEN(kbsconfig_fields));
}

Test(model_crd, trusteeconfig_has_exactly_the_fields_the_model_reads)
{
	static const char *const fields[] = {"profileType", "kbsServiceType",
		"httpsSpec/tlsSecretName", "attestationTokenVerificationSpec/tlsSecretName",
		"ibmSE/pvName", "tlsConfig/profile", "tlsConfig/minVersion", "tlsConfig/maxVersion",
		"tlsConfig/ciphers", "tlsConfig/groups"};
	cleanup_json struct json_object *crd = load("trustee/trusteeconfigs.yaml");
	struct json_object *p = spec_properties(crd);

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		cr_assert(find_field(p, fields[i]), "the CRD lacks %s", fields[i]);
	cr_assert_eq(count_leaves(p), ARRAY_LEN(fields));
}

/* All that the model reads of a cluster. */
static const char *const cluster_fields[] = {
	"publicTrusteeAddr",
	"publicRegisterAddr",
	"publicAttestationKeyRegisterAddr",
	"trusteeKbsPort",
	"registerServerPort",
	"attestationKeyRegisterPort",
	"trusteeSecret",
	"registerServerSecret",
	"attestationKeyRegisterSecret",
	"trusteeServers/address",
	"trusteeServers/caSecret",
	"trusteeServers/adminSecret",
	"trustee/deploy",
	"trustee/delivery",
	"trustee/keyIsolation",
	"trustee/plaintext",
	"trustee/guard",
	"trustee/window",
	"trustee/takeOver",
	"authority",
	"epoch",
	"follow/kubeconfigSecret",
	"follow/namespace",
	"follow/maxStaleness",
	"registration/mode",
	"registration/tokenSecret",
	"registration/approval",
	"registration/pendingTTL",
	"registration/pendingLimit",
	"registration/machineLimit",
	"registration/waitingKeysPerMachine",
	"registration/machine",
	"registration/endorsement",
	"registration/endorsementCAConfigMap",
	"attestation/platformConfigMaps",
	"attestation/pcr7",
	"attestation/release",
	"tls/caSHA256",
};

/* The schema of "a/b" below properties: through properties of objects and items of lists. */
static struct json_object *find_field(struct json_object *p, const char *path)
{
	const char *slash = strchr(path, '/');
	cleanup_free char *first = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(path);
	struct json_object *f = json_get_obj(p, first), *below;

	if (!f || !slash)
		return f;
	below = json_get_obj(f, "properties");
	return find_field(below ? below : json_get_obj(f, "items/properties"), slash + 1);
}

static size_t count_leaves(struct json_object *p)
{
	size_t n = 0;

	json_object_object_foreach (p, name, f) {
		struct json_object *below = json_get_obj(f, "properties");

		(void)name;
		if (!below)
			below = json_get_obj(f, "items/properties");
		n += below ? count_leaves(below) : 1;
	}
	return n;
}

Test(model_crd, cluster_has_exactly_the_fields_the_model_reads)
{
	cleanup_json struct json_object *crd = load("trustedexecutionclusters.yaml");
	struct json_object *p = spec_properties(crd);

	for (size_t i = 0; i < ARRAY_LEN(cluster_fields); i++)
		cr_assert(find_field(p, cluster_fields[i]), "the CRD lacks %s", cluster_fields[i]);
	cr_assert_eq(count_leaves(p), ARRAY_LEN(cluster_fields));
}

/* spec with value (taken) at "a/b"; lists get one element. */
static struct kobj *extract_with(const char *path, struct json_object *take_value, struct err *err)
{
	cleanup_json struct json_object *o = json_tokener_parse(
		"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}");
	const char *slash = strchr(path, '/');
	struct json_object *spec = json_obj();

	if (!slash) {
		json_add(spec, path, take_value);
	} else {
		cleanup_free char *first = xstrndup(path, (size_t)(slash - path));
		struct json_object *in = json_obj();

		if (str_eq(first, "trusteeServers")) {
			json_add_str(in, "address", "a");
			json_add(in, slash + 1, take_value);
			json_add(spec, first, json_push(json_arr(), in));
		} else {
			json_add(spec, first, json_add(in, slash + 1, take_value));
		}
	}
	json_add(o, "spec", spec);
	return model_cluster_extract(o, err);
}

Test(model_crd, every_cluster_field_is_read)
{
	for (size_t i = 0; i < ARRAY_LEN(cluster_fields); i++) {
		const char *leaf = strrchr(cluster_fields[i], '/');
		struct err err = ERR_INIT;

		/* A list is not a legal value of any leaf but one: its reader complains. */
		cr_assert_null(
			extract_with(cluster_fields[i],
				str_eq(leaf, "/platformConfigMaps") ? json_obj() : json_arr(),
				&err),
			"%s is not read", cluster_fields[i]);
		cr_assert(strstr(err.text, leaf ? leaf + 1 : cluster_fields[i]), "%s: %s",
			cluster_fields[i], err.text);
	}
}

Test(model_crd, every_enum_value_is_known_and_no_other)
{
	cleanup_json struct json_object *crd = load("trustedexecutionclusters.yaml");
	size_t enums = 0, values = 0;

	for (size_t i = 0; i < ARRAY_LEN(cluster_fields); i++) {
		struct json_object *f = find_field(spec_properties(crd), cluster_fields[i]);
		struct json_object *e = json_get_arr(f, "enum");
		struct err err = ERR_INIT;

		for (size_t j = 0; e && j < json_object_array_length(e); j++) {
			struct json_object *v = json_object_array_get_idx(e, j);
			cleanup_kobj const struct kobj *o =
				extract_with(cluster_fields[i], json_object_get(v), &err);

			cr_assert(o, "%s: %s", cluster_fields[i], err.text);
			values++;
		}
		if (!e)
			continue;
		enums++;
		cr_assert_null(extract_with(
			cluster_fields[i], json_object_new_string("SomethingElse"), &err));
	}
	cr_assert_eq(enums, 12);
	cr_assert_eq(values, 28, "the model knows 28 values; the CRD names %zu", values);
}

Test(model_crd, lists_are_bounded_as_in_the_model)
{
	cleanup_json struct json_object *crd = load("trustedexecutionclusters.yaml");

	cr_assert_eq(json_get_int(spec_properties(crd), "trusteeServers/maxItems", 0),
		MODEL_CLUSTER_SERVERS_MAX);
	cr_assert_eq(json_get_int(find_field(spec_properties(crd), "tls/caSHA256"), "maxItems", 0),
		MODEL_CLUSTER_CA_MAX);
	cr_assert_eq(
		json_get_int(find_field(spec_properties(crd), "attestation/platformConfigMaps"),
			"maxItems", 0),
		MODEL_PLATFORMS_MAX);
}

/* ---- reasons */

/* The reasons that the description of `conditions` lists for a type, "A, B, C"; the caller frees.
 */
static char *listed(struct json_object *crd, const char *type)
{
	const char *d =
		json_get_str(schema(crd), "properties/status/properties/conditions/description");
	cleanup_free char *head = xasprintf("\n%s: ", type);
	const char *at;

	cr_assert(d);
	at = strstr(d, head);
	cr_assert(at, "no line \"%s: ...\"", type);
	at += strlen(head);
	return xstrndup(at, strcspn(at, "\n"));
}

static bool in_list(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += len) {
		if ((p == list || p[-1] == ' ') && (p[len] == ',' || p[len] == '\0'))
			return true;
	}
	return false;
}

static size_t count_list(const char *list)
{
	size_t n = 1;

	for (; *list; list++)
		n += *list == ',';
	return n;
}

/* One reason and the types (bits) it is written for. */
struct use {
	const char *reason;
	unsigned types;
};

static void assert_reasons(const char *file, const char *const *types, size_t n_types,
	const struct use *uses, size_t n_uses)
{
	cleanup_json struct json_object *crd = load(file);

	for (size_t t = 0; t < n_types; t++) {
		cleanup_free char *list = listed(crd, types[t]);
		size_t n = 0;

		for (size_t i = 0; i < n_uses; i++) {
			bool used = uses[i].types >> t & 1;

			n += used;
			cr_assert_eq(in_list(list, uses[i].reason), used, "%s: %s of %s", file,
				uses[i].reason, types[t]);
		}
		cr_assert_eq(count_list(list), n, "%s lists for %s what the model lacks: %s", file,
			types[t], list);
	}
}

#define IN(t) (1u << (t))

Test(model_crd, cluster_reasons_are_those_of_the_crd)
{
	struct use uses[CLUSTER_N_REASONS];

	for (int i = 0; i < CLUSTER_N_REASONS; i++) {
		uses[i].reason = model_cluster_reason((enum model_cluster_reason)i);
		uses[i].types = i <= CLUSTER_CONFLICT                ? IN(CLUSTER_INSTALLED)
				: i <= CLUSTER_NO_ADDRESS_FOUND      ? IN(CLUSTER_KNOWN_ADDRESS)
				: i <= CLUSTER_POPULATING            ? IN(CLUSTER_TRUSTEE_SYNCED)
				: i <= CLUSTER_PENDING_LIMIT_REACHED ? IN(CLUSTER_REGISTRATION_OPEN)
				: i <= CLUSTER_SHARED_WITH_STRANGERS ? IN(CLUSTER_KEYS_ISOLATED)
								     : IN(CLUSTER_AUTHORITY);
	}
	uses[CLUSTER_NOT_SERVED].types |= IN(CLUSTER_KEYS_ISOLATED) | IN(CLUSTER_AUTHORITY);
	for (int i = CLUSTER_FROZEN; i <= CLUSTER_RETIRED; i++)
		uses[i].types |= IN(CLUSTER_REGISTRATION_OPEN);
	for (int i = CLUSTER_FOLLOWING; i <= CLUSTER_RETIRED; i++)
		uses[i].types |= IN(CLUSTER_TRUSTEE_SYNCED);
	uses[CLUSTER_PEER_UNKNOWN].types |= IN(CLUSTER_REGISTRATION_OPEN);
	uses[CLUSTER_REFUSED].types |= IN(CLUSTER_INSTALLED) | IN(CLUSTER_REGISTRATION_OPEN);
	uses[CLUSTER_RETIRED].types |= IN(CLUSTER_INSTALLED);
	uses[CLUSTER_CONFLICT].types |= IN(CLUSTER_AUTHORITY) | IN(CLUSTER_TRUSTEE_SYNCED);
	assert_reasons("trustedexecutionclusters.yaml", model_cluster_cond_types, CLUSTER_N_CONDS,
		uses, CLUSTER_N_REASONS);
}

/* Ready names the reason of the first condition that is not True. */
Test(model_crd, machine_reasons_are_those_of_the_crd)
{
	struct use uses[MACHINE_N_REASONS];

	for (int i = 0; i < MACHINE_N_REASONS; i++) {
		bool good =
			i == MACHINE_KEY_MADE || i == MACHINE_BOUND || i == MACHINE_DELIVERED_OK;

		uses[i].reason = model_machine_reason((enum model_machine_reason)i);
		uses[i].types = i <= MACHINE_KEY_PENDING       ? IN(MACHINE_KEY_READY)
				: i <= MACHINE_NO_KEY_APPROVED ? IN(MACHINE_AK_BOUND)
				: i <= MACHINE_WAITING         ? IN(MACHINE_DELIVERED)
							       : 0;
		if (!good)
			uses[i].types |= IN(MACHINE_READY);
	}
	uses[MACHINE_CONFLICT].types |= IN(MACHINE_AK_BOUND);
	assert_reasons("machines.yaml", model_machine_cond_types, MACHINE_N_CONDS, uses,
		MACHINE_N_REASONS);
}

Test(model_crd, ak_reasons_are_those_of_the_crd)
{
	struct use uses[AK_N_REASONS];

	for (int i = 0; i < AK_N_REASONS; i++) {
		uses[i].reason = model_ak_reason((enum model_ak_reason)i);
		uses[i].types = i <= AK_ENDORSEMENT_FAILED ? IN(AK_APPROVED) : IN(AK_DELIVERED);
		if (i == AK_INVALID_KEY)
			uses[i].types |= IN(AK_APPROVED);
	}
	uses[AK_CONFLICT].types |= IN(AK_APPROVED);
	assert_reasons("attestationkeys.yaml", model_ak_cond_types, AK_N_CONDS, uses, AK_N_REASONS);
}

Test(model_crd, image_reasons_are_those_of_the_crd)
{
	struct use uses[IMAGE_N_REASONS];

	for (int i = 0; i < IMAGE_N_REASONS; i++) {
		uses[i].reason = model_image_reason((enum model_image_reason)i);
		uses[i].types = IN(IMAGE_COMMITTED);
	}
	assert_reasons("approvedimages.yaml", model_image_cond_types, IMAGE_N_CONDS, uses,
		IMAGE_N_REASONS);
}

Test(model_crd, kbsconfig_reasons_are_those_of_the_crd)
{
	struct use uses[KBSCONFIG_N_REASONS];

	for (int i = 0; i < KBSCONFIG_N_REASONS; i++) {
		uses[i].reason = model_kbsconfig_reason((enum model_kbsconfig_reason)i);
		uses[i].types = i == KBSCONFIG_DELETING
					? IN(KBSCONFIG_INSTALLED) | IN(KBSCONFIG_READY)
				: i < KBSCONFIG_IS_READY ? IN(KBSCONFIG_INSTALLED)
							 : IN(KBSCONFIG_READY);
	}
	assert_reasons("trustee/kbsconfigs.yaml", model_kbsconfig_cond_types, KBSCONFIG_N_CONDS,
		uses, KBSCONFIG_N_REASONS);
}

Test(model_crd, trusteeconfig_reasons_are_those_of_the_crd)
{
	struct use uses[TRUSTEECONFIG_N_REASONS];

	for (int i = 0; i < TRUSTEECONFIG_N_REASONS; i++) {
		uses[i].reason = model_trusteeconfig_reason((enum model_trusteeconfig_reason)i);
		uses[i].types = i < TRUSTEECONFIG_IS_READY ? IN(TRUSTEECONFIG_CONFIGURED)
							   : IN(TRUSTEECONFIG_READY);
	}
	assert_reasons("trustee/trusteeconfigs.yaml", model_trusteeconfig_cond_types,
		TRUSTEECONFIG_N_CONDS, uses, TRUSTEECONFIG_N_REASONS);
}
