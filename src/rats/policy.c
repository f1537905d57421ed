/* SPDX-License-Identifier: MIT */
/* Follows the Rego policies rule by rule. The tests evaluate both on one table; any difference
 * is a bug. */
#include "config.h"

#include "tec/rats/policy.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/rats/names.h"

#define AFFIRM_IDENTITY    2
#define AFFIRM_EXECUTABLES 3
#define WARN               33
#define CONTRAINDICATE     97

void rats_verdict_fini(struct rats_verdict *v)
{
	json_object_put(v->validated);
	free(v->machine);
	memset(v, 0, sizeof(*v));
}

/* ---- a key of its own Machine */

/* The Machine of a list entry, borrowed from it; NULL: the entry is for another key. */
static const char *machine_in(struct json_object *entry, const char *ak_public)
{
	const char *machine = json_get_str(entry, "machine");
	size_t n = 0;

	if (!machine || !str_eq(json_get_str(entry, "ak"), ak_public))
		return NULL;
	/* Count code points, as Rego's count() does. */
	for (const char *p = machine; *p; p++)
		n += ((unsigned char)*p & 0xc0) != 0x80;
	return n == UUID_TEXT_LEN ? machine : NULL;
}

/* Look the key up by its name. A value that is a single entry instead of a list is accepted as
 * well. */
static char *machine_of(const struct rats_evidence *e, rats_policy_value_fn value, void *arg)
{
	char name[RATS_IDENTITY_NAME_LEN + 1];
	cleanup_json struct json_object *identity = NULL;
	const char *machine = NULL;

	if (rats_identity_name(e->ak.der, e->ak.der_len, name) < 0)
		return NULL;
	identity = value(arg, name);
	if (!json_object_is_type(identity, json_type_array))
		return xstrdup(machine_in(identity, e->ak_public));
	/* Different keys can share the name; the entry with the whole key decides. */
	for (size_t i = 0; !machine && i < json_len(identity); i++)
		machine = machine_in(json_at(identity, i), e->ak_public);
	return xstrdup(machine);
}

/* The images whose boot gives these PCR values; the caller puts them. NULL: none. */
static struct json_object *images_of(
	const struct rats_evidence *e, bool require_pcr7, rats_policy_value_fn value, void *arg)
{
	char hex[3][SHA256_HEX_LEN + 1], name[5 + 3 * (SHA256_HEX_LEN + 1)];
	cleanup_json struct json_object *boot = NULL;
	struct json_object *images;

	bytes_to_hex(e->pcrs[4], SHA256_LEN, hex[0]);
	bytes_to_hex(e->pcrs[7], SHA256_LEN, hex[1]);
	bytes_to_hex(e->pcrs[14], SHA256_LEN, hex[2]);
	/* The name says which PCRs were approved together (render/refvalues.h). */
	if (require_pcr7)
		snprintf(name, sizeof(name), "boot.%s.%s.%s", hex[0], hex[1], hex[2]);
	else
		snprintf(name, sizeof(name), "boot.%s.%s", hex[0], hex[2]);
	boot = value(arg, name);
	images = json_get_arr(boot, "images");
	return json_len(images) > 0 ? json_object_get(images) : NULL;
}

/* Both claims must hold for `validated`: the resource policy grants a key by it alone. */
static void per_machine(const struct rats_evidence *e, bool require_pcr7,
	rats_policy_value_fn value, void *arg, struct rats_verdict *out)
{
	struct json_object *images = images_of(e, require_pcr7, value, arg);

	out->machine = machine_of(e, value, arg);
	if (out->machine)
		out->identity = AFFIRM_IDENTITY;
	if (images)
		out->executables = AFFIRM_EXECUTABLES;
	if (out->machine && images)
		out->validated = json_add(json_add_str(json_obj(), "machine", out->machine),
			"images", json_copy(images));
	json_object_put(images);
}

/* ---- shared lists, as in the Rust operator */

/* Whether the reference value `name` is a list that contains text. */
static bool listed(const char *text, const char *name, rats_policy_value_fn value, void *arg)
{
	cleanup_json struct json_object *list = value(arg, name);

	for (size_t i = 0; json_object_is_type(list, json_type_array) && i < json_len(list); i++) {
		struct json_object *v = json_at(list, i);

		if (json_object_is_type(v, json_type_string) &&
			str_eq(json_object_get_string(v), text))
			return true;
	}
	return false;
}

/* The shared lists contain lower-case hex. */
static bool register_listed(const struct rats_evidence *e, unsigned pcr, const char *name,
	rats_policy_value_fn value, void *arg)
{
	char hex[SHA256_HEX_LEN + 1];

	bytes_to_hex(e->pcrs[pcr], SHA256_LEN, hex);
	return listed(hex, name, value, arg);
}

/* PCR values are compared one by one, so values of different images can be combined: the reason
 * why the per-Machine policy approves a boot as a whole. */
static void shared(const struct rats_evidence *e, bool require_pcr7, rats_policy_value_fn value,
	void *arg, struct rats_verdict *out)
{
	if (listed(e->ak_public, "trusted_aks", value, arg))
		out->identity = AFFIRM_IDENTITY;
	if (register_listed(e, 4, "tpm_pcr4", value, arg) &&
		register_listed(e, 14, "tpm_pcr14", value, arg) &&
		(!require_pcr7 || register_listed(e, 7, "tpm_pcr7", value, arg)))
		out->executables = AFFIRM_EXECUTABLES;
}

/* Start from the worst claims: a rule can only improve them, as the defaults in Rego. */
void rats_policy_attest(enum rats_policy p, bool require_pcr7, const struct rats_evidence *e,
	rats_policy_value_fn value, void *arg, struct rats_verdict *out)
{
	memset(out, 0, sizeof(*out));
	out->identity = CONTRAINDICATE;
	out->executables = WARN;
	if (e->tee != RATS_TEE_TPM)
		return;
	if (p == RATS_POLICY_PER_MACHINE)
		per_machine(e, require_pcr7, value, arg, out);
	else
		shared(e, require_pcr7, value, arg, out);
}

/* Distinguishes "unknown node" from "unknown boot" in reports. */
bool rats_policy_knows_key(const struct rats_verdict *v)
{
	return v->identity == AFFIRM_IDENTITY;
}

/* An unknown key outweighs an unknown boot, as in the Rego policies. */
const char *rats_policy_status(const struct rats_verdict *v)
{
	if (v->identity != AFFIRM_IDENTITY)
		return "contraindicated";
	return v->executables == AFFIRM_EXECUTABLES ? "affirming" : "warning";
}

/* A part that is "root" makes it one, as in Rego, where the path is not checked before. */
static bool is_disk_key(const char *path)
{
	size_t n;

	for (const char *p = path;; p += n + 1) {
		n = strcspn(p, "/");
		if (n == 4 && memcmp(p, "root", n) == 0)
			return true;
		if (!p[n])
			return false;
	}
}

/* The shared policy grants any resource to any affirmed node, as the Rust operator's does. */
bool rats_policy_grants(
	enum rats_policy p, bool once_per_boot, const struct rats_holder *h, const char *path)
{
	cleanup_free char *own = NULL;

	if (!str_eq(h->status, "affirming"))
		return false;
	if (once_per_boot && h->sealed && is_disk_key(path))
		return false;
	if (p == RATS_POLICY_SHARED)
		return true;
	own = h->machine ? xasprintf("default/%s/root", h->machine) : NULL;
	return str_eq(own, path);
}
