/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "fixture.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/rats/names.h"
#include "tec/rats/policy.h"

#define OWN   "11111111-2222-4333-8444-555555555555"
#define OTHER "99999999-2222-4333-8444-555555555555"

/* Registers of the fixture: PCR i is filled with i. */
#define P4  "0404040404040404040404040404040404040404040404040404040404040404"
#define P7  "0707070707070707070707070707070707070707070707070707070707070707"
#define P14 "0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e"

struct case_ {
	const char *what;
	enum rats_policy policy;
	bool pcr7;
	/* %s stands for the key in base64; a value of NULL: absent. */
	const char *key_value, *name, *value;
	int identity, executables;
	const char *machine; /* validated */
};

struct world {
	const struct case_ *c;
	const struct rats_evidence *e;
	char key_name[RATS_IDENTITY_NAME_LEN + 1];
};

static struct json_object *value_of(void *arg, const char *name)
{
	struct world *w = arg;
	const char *text = str_eq(name, w->key_name)  ? w->c->key_value
			   : str_eq(name, w->c->name) ? w->c->value
						      : NULL;
	cleanup_strbuf struct strbuf full = STRBUF_INIT;
	struct err err = ERR_INIT;

	if (w->c->policy == RATS_POLICY_SHARED && str_eq(name, "trusted_aks"))
		text = w->c->key_value;
	if (w->c->policy == RATS_POLICY_SHARED && str_eq(name, "tpm_pcr14"))
		text = "[\"" P14 "\"]";
	if (!text)
		return NULL;
	for (const char *p = text; *p; p++) {
		if (p[0] == '%') {
			strbuf_adds(&full, w->e->ak_public);
			p++;
		} else {
			strbuf_addc(&full, *p);
		}
	}
	return json_parse(full.data, full.len, &json_limits_public, &err);
}

#define ENTRY    "{\"ak\":\"%s\",\"machine\":\"" OWN "\"}"
#define STRANGER "{\"ak\":\"x%s\",\"machine\":\"" OTHER "\"}"
#define IMAGES   "{\"images\":[\"coreos\"]}"
#define BOOT     "boot." P4 "." P14
#define BOOT7    "boot." P4 "." P7 "." P14
#define PM       RATS_POLICY_PER_MACHINE
#define SH       RATS_POLICY_SHARED

static const struct case_ cases[] = {
	{"registered and approved", PM, false, ENTRY, BOOT, IMAGES, 2, 3, OWN},
	{"not registered", PM, false, NULL, BOOT, IMAGES, 97, 3, NULL},
	{"entry {}", PM, false, "{}", BOOT, IMAGES, 97, 3, NULL},
	{"entry a string", PM, false, "\"%s\"", BOOT, IMAGES, 97, 3, NULL},
	{"a list of one", PM, false, "[" ENTRY "]", BOOT, IMAGES, 2, 3, OWN},
	{"a list with another key before", PM, false, "[" STRANGER "," ENTRY "]", BOOT, IMAGES, 2,
		3, OWN},
	{"a list with all types before", PM, false,
		"[null,1,\"%s\",[" ENTRY
		"],{},{\"ak\":\"%s\"},{\"ak\":\"%s\",\"machine\":36}," ENTRY "]",
		BOOT, IMAGES, 2, 3, OWN},
	{"the first of two with this key", PM, false,
		"[" ENTRY ",{\"ak\":\"%s\",\"machine\":\"" OTHER "\"}]", BOOT, IMAGES, 2, 3, OWN},
	{"a list without this key", PM, false, "[" STRANGER "]", BOOT, IMAGES, 97, 3, NULL},
	{"an empty list", PM, false, "[]", BOOT, IMAGES, 97, 3, NULL},
	{"a list in a list", PM, false, "[[" ENTRY "]]", BOOT, IMAGES, 97, 3, NULL},
	{"entry a number", PM, false, "7", BOOT, IMAGES, 97, 3, NULL},
	{"entry of another key", PM, false, "{\"ak\":\"x%s\",\"machine\":\"" OWN "\"}", BOOT,
		IMAGES, 97, 3, NULL},
	{"machine a number", PM, false, "{\"ak\":\"%s\",\"machine\":36}", BOOT, IMAGES, 97, 3,
		NULL},
	{"machine too short", PM, false, "{\"ak\":\"%s\",\"machine\":\"x\"}", BOOT, IMAGES, 97, 3,
		NULL},
	{"boot missing", PM, false, ENTRY, "boot.x", IMAGES, 2, 33, NULL},
	{"boot {}", PM, false, ENTRY, BOOT, "{}", 2, 33, NULL},
	{"no images", PM, false, ENTRY, BOOT, "{\"images\":[]}", 2, 33, NULL},
	{"images a string", PM, false, ENTRY, BOOT, "{\"images\":\"coreos\"}", 2, 33, NULL},
	{"boot a list", PM, false, ENTRY, BOOT, "[\"coreos\"]", 2, 33, NULL},
	{"PCR 7 required and approved", PM, true, ENTRY, BOOT7, IMAGES, 2, 3, OWN},
	{"PCR 7 required, approved without", PM, true, ENTRY, BOOT, IMAGES, 2, 33, NULL},
	{"PCR 7 not required, approved with", PM, false, ENTRY, BOOT7, IMAGES, 2, 33, NULL},
	{"shared: listed", SH, false, "[\"x\",\"%s\"]", "tpm_pcr4", "[\"" P4 "\"]", 2, 3, NULL},
	{"shared: key not listed", SH, false, "[\"x\"]", "tpm_pcr4", "[\"" P4 "\"]", 97, 3, NULL},
	{"shared: no list", SH, false, "\"%s\"", "tpm_pcr4", "[\"" P4 "\"]", 97, 3, NULL},
	{"shared: PCR 4 not listed", SH, false, "[\"%s\"]", "tpm_pcr4", "[\"" P7 "\"]", 2, 33,
		NULL},
	{"shared: PCR 7 required", SH, true, "[\"%s\"]", "tpm_pcr4", "[\"" P4 "\"]", 2, 33, NULL},
};

Test(rats_policy, judges_as_the_rego_does)
{
	const uint8_t extra[SHA256_LEN] = {0};
	struct fixture_quote q;
	cleanup_json struct json_object *o = NULL;
	struct rats_evidence e;
	enum rats_flaw flaw;
	struct err err = ERR_INIT;

	fixture_quote(extra, &q);
	o = fixture_evidence(&q);
	cr_assert_eq(rats_evidence_read(o, &e, &flaw, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct case_ *c = &cases[i];
		struct world w = {.c = c, .e = &e};
		cleanup_rats_verdict struct rats_verdict v;
		bool good = c->identity == 2 && c->executables == 3;

		cr_assert_eq(rats_identity_name(e.ak.der, e.ak.der_len, w.key_name), 0);
		rats_policy_attest(c->policy, c->pcr7, &e, value_of, &w, &v);
		cr_expect_eq(v.identity, c->identity, "%s: %d", c->what, v.identity);
		cr_expect_eq(v.executables, c->executables, "%s: %d", c->what, v.executables);
		cr_expect_str_eq(rats_policy_status(&v),
			c->identity == 97 ? "contraindicated"
			: good            ? "affirming"
					  : "warning",
			"%s", c->what);
		cr_expect_eq(v.validated != NULL, c->machine != NULL, "%s", c->what);
		if (c->machine)
			cr_expect_str_eq(json_get_str(v.validated, "machine"), c->machine);
	}
}

Test(rats_policy, a_sample_is_nothing)
{
	struct rats_evidence e = {.tee = RATS_TEE_SAMPLE};
	cleanup_rats_verdict struct rats_verdict v;

	rats_policy_attest(SH, false, &e, value_of, NULL, &v);
	cr_assert_str_eq(rats_policy_status(&v), "contraindicated");
}

Test(rats_policy, grants_a_machine_its_own_key)
{
	static const struct {
		enum rats_policy policy;
		const char *status, *machine, *path;
		bool granted,
			once; /* once: also to a sealed node where a disk key is released once */
	} t[] = {
		{PM, "affirming", OWN, "default/" OWN "/root", true, false},
		{PM, "affirming", OWN, "default/" OTHER "/root", false, false},
		{PM, "affirming", OWN, "default/" OWN "/toor", false, false},
		{PM, "affirming", OWN, "other/" OWN "/root", false, false},
		{PM, "affirming", OWN, "default/" OWN "/root/x", false, false},
		{PM, "affirming", NULL, "default/" OWN "/root", false, false},
		{PM, "warning", OWN, "default/" OWN "/root", false, false},
		{PM, "contraindicated", OWN, "default/" OWN "/root", false, false},
		{PM, NULL, OWN, "default/" OWN "/root", false, false},
		{SH, "affirming", NULL, "default/" OTHER "/root", true, false},
		{SH, "affirming", NULL, "default/" OTHER "/roots", true, true},
		{SH, "affirming", NULL, "root/" OTHER "/x", true, false},
		{SH, "affirming", NULL, "default/root/x", true, false},
		{SH, "warning", NULL, "default/" OTHER "/root", false, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		const struct rats_holder open = {t[i].status, t[i].machine, false},
					 sealed = {t[i].status, t[i].machine, true};

		for (int once = 0; once < 2; once++)
			cr_expect_eq(rats_policy_grants(t[i].policy, once, &open, t[i].path),
				t[i].granted, "%zu", i);
		cr_expect_eq(rats_policy_grants(t[i].policy, false, &sealed, t[i].path),
			t[i].granted, "%zu", i);
		cr_expect_eq(rats_policy_grants(t[i].policy, true, &sealed, t[i].path), t[i].once,
			"%zu", i);
	}
}
