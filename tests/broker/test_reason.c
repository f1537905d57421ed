/* SPDX-License-Identifier: MIT */
/* The sentence for a person, for each thing that may be wrong with what a node booted. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "fake/broker.h"
#include "rats/fixture.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/broker/reason.h"
#include "tec/rats/names.h"

#define UUID "11111111-2222-4333-8444-555555555555"

static struct broker_store *store;
static struct json_object *body;
static struct rats_attest a;

static void up(void)
{
	cleanup_free char *text = NULL;
	enum rats_flaw flaw;
	struct err err = ERR_INIT;

	store = broker_store_memory_new();
	body = fixture_attest(false);
	text = json_text(body);
	cr_assert_eq(rats_attest_read(text, strlen(text), 65536, &a, &flaw, &err), 0);
}

static void down(void)
{
	rats_attest_fini(&a);
	json_object_put(body);
	broker_store_free(store);
}

TestSuite(broker_reason, .init = up, .fini = down);

static void set_value(const char *name, const char *value)
{
	cleanup_free char *entry = xasprintf("{\"name\":\"%s\",\"value\":%s}", name, value);
	struct err err = ERR_INIT;

	cr_assert_eq(broker_store_set(
			     store, BROKER_STORE_REFERENCE_VALUE, name, entry, strlen(entry), &err),
		0);
}

static void register_key(void)
{
	cleanup_strbuf struct strbuf value = STRBUF_INIT;
	char name[RATS_IDENTITY_NAME_LEN + 1];

	cr_assert_eq(rats_identity_name(a.evidence.ak.der, a.evidence.ak.der_len, name), 0);
	rats_identity_value(a.evidence.ak.der, a.evidence.ak.der_len, UUID, &value);
	set_value(name, strbuf_str(&value));
}

/* 64 times the digit; register i of the fixture is filled with the byte i. */
static const char *hex_of(unsigned byte)
{
	static char hex[4][SHA256_HEX_LEN + 1];
	static unsigned n;
	char *out = hex[n++ % 4];

	for (size_t i = 0; i < SHA256_HEX_LEN; i += 2)
		snprintf(out + i, 3, "%02x", byte);
	return out;
}

static void approve(unsigned pcr4, unsigned pcr14, const char *images)
{
	cleanup_free char *name = xasprintf("boot.%s.%s", hex_of(pcr4), hex_of(pcr14));
	cleanup_free char *value = xasprintf("{\"images\":%s}", images);

	set_value(name, str_eq(images, "null") ? "null" : value);
}

static void expect(enum rats_policy policy, bool pcr7, int pcr, const char *text)
{
	const struct broker_policy p = {.policy = policy, .require_pcr7 = pcr7};
	cleanup_rats_verdict struct rats_verdict v;
	cleanup_broker_reason struct broker_reason r;

	rats_policy_attest(policy, pcr7, &a.evidence, broker_reason_value, store, &v);
	broker_reason_make(store, &p, &a.evidence, &v, &r);
	cr_expect_eq(r.pcr, pcr, "PCR %d instead of %d", r.pcr, pcr);
	cr_expect(strncmp(strbuf_str(&r.text), text, *text ? strlen(text) : 1) == 0, "%s",
		strbuf_str(&r.text));
}

Test(broker_reason, key_that_is_not_registered)
{
	approve(4, 14, "[\"a\"]");
	expect(RATS_POLICY_PER_MACHINE, false, -1,
		"Its attestation key is not registered for a Machine.");
	register_key();
	expect(RATS_POLICY_PER_MACHINE, false, -1, "");
}

Test(broker_reason, register_that_differs_is_named_with_the_nearest_image)
{
	cleanup_free char *one = xasprintf(
		"The boot is not approved: PCR 14 is %s, expected %s. The nearest approved image is near.",
		hex_of(14), hex_of(0xe0));
	cleanup_free char *two = xasprintf(
		"The boot is not approved: PCR 4 is %s, expected %s; PCR 14 is %s, expected %s. The nearest approved image is far, other, b and 1 more.",
		hex_of(4), hex_of(0x40), hex_of(14), hex_of(0xe1));

	register_key();
	expect(RATS_POLICY_PER_MACHINE, false, -1,
		"The boot is not approved: no image is approved yet. PCR 4 is 0404");
	approve(0x40, 0xe1, "[\"far\",\"other\",\"b\",\"c\"]");
	expect(RATS_POLICY_PER_MACHINE, false, 4, two);
	approve(4, 0xe0, "[\"near\"]");
	expect(RATS_POLICY_PER_MACHINE, false, 14, one);
	approve(4, 14, "null"); /* revoked: not even a candidate */
	expect(RATS_POLICY_PER_MACHINE, false, 14, one);
	approve(4, 0xe0, "[]");
	expect(RATS_POLICY_PER_MACHINE, false, 4, two);
	approve(4, 14, "[\"itself\"]");
	expect(RATS_POLICY_PER_MACHINE, false, -1, "");
}

Test(broker_reason, register_seven_counts_only_where_the_policy_asks)
{
	cleanup_free char *name = xasprintf("boot.%s.%s.%s", hex_of(4), hex_of(0x70), hex_of(14));
	cleanup_free char *text = xasprintf(
		"The boot is not approved: PCR 7 is %s, expected %s. The nearest approved image is seven.",
		hex_of(7), hex_of(0x70));

	register_key();
	set_value(name, "{\"images\":[\"seven\"]}");
	expect(RATS_POLICY_PER_MACHINE, true, 7, text);
	expect(RATS_POLICY_PER_MACHINE, false, -1,
		"The boot is not approved: no image is approved yet.");
}

Test(broker_reason, nearest_of_many)
{
	register_key();
	for (unsigned i = 0; i < 200; i++)
		approve(0x40 + i % 100, 0x20 + i, "[\"far\"]");
	approve(4, 0xfe, "[\"near\"]");
	for (unsigned i = 0; i < 200; i++)
		approve(0x41 + i % 100, 0x20 + i, "[\"far\"]");
	expect(RATS_POLICY_PER_MACHINE, false, 14, "The boot is not approved: PCR 14 is ");
}

Test(broker_reason, lists_of_shared_keys)
{
	cleanup_free char *aks = xasprintf("[\"%s\"]", a.evidence.ak_public);
	cleanup_free char *pcr4 = xasprintf("[\"%s\"]", hex_of(4));
	cleanup_free char *text = xasprintf(
		"The boot is not approved: PCR 14 is %s, which no approved image has.", hex_of(14));

	expect(RATS_POLICY_SHARED, false, -1, "Its attestation key is not registered");
	set_value("trusted_aks", aks);
	set_value("tpm_pcr4", pcr4);
	set_value("tpm_pcr14", "[1,null]");
	expect(RATS_POLICY_SHARED, false, 14, text);
}
