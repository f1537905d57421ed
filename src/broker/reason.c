/* SPDX-License-Identifier: MIT */
/*
 * A boot is a reference value named after its PCR values (rats/policy.c), so the nearest one is
 * found by comparing names, and only the best candidates are read: a revoked one is null.
 * CANDIDATES_MAX bounds the cost, because any node can cause it.
 */
#include "config.h"

#include "tec/broker/reason.h"

#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/broker/wire.h"

#define BOOT           "boot."
#define REGISTERS_MAX  3
#define CANDIDATES_MAX 32
#define IMAGES_MAX     3 /* named in a sentence */

/* The nearest names found so far, with the number of PCRs that differ. */
struct search {
	unsigned pcr[REGISTERS_MAX], n;
	char got[REGISTERS_MAX][SHA256_HEX_LEN + 1];
	char *name[CANDIDATES_MAX]; /* owned */
	unsigned differs[CANDIDATES_MAX], n_names;
};

void broker_reason_fini(struct broker_reason *r)
{
	strbuf_fini(&r->text);
}

/* A value that cannot be parsed counts as absent, which never approves anything. */
struct json_object *broker_reason_value(void *store, const char *name)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct broker_store_value entry;
	struct err err = ERR_INIT;

	if (broker_store_get(store, BROKER_STORE_REFERENCE_VALUE, name, &entry, &err) < 0 ||
		broker_wire_entry_value(entry.data, entry.len, &text, &err) < 0)
		return NULL;
	err_clear(&err);
	return json_parse(text.data, text.len, &json_limits_object, &err);
}

/* The i-th PCR value in the name of a boot. */
static const char *value_in(const char *name, unsigned i)
{
	return name + strlen(BOOT) + (size_t)i * (SHA256_HEX_LEN + 1);
}

/* Keep the name if it differs in fewer PCRs than the worst candidate. */
static void consider(void *arg, const char *name)
{
	struct search *s = arg;
	unsigned differs = 0, worst = 0;

	if (strlen(name) != strlen(BOOT) + s->n * (SHA256_HEX_LEN + 1) - 1)
		return; /* a leftover of a policy with another number of PCRs */
	for (unsigned i = 0; i < s->n; i++)
		differs += strncmp(value_in(name, i), s->got[i], SHA256_HEX_LEN) != 0;
	/* Not full yet: keep every candidate, however distant. */
	if (s->n_names < CANDIDATES_MAX) {
		s->differs[s->n_names] = differs;
		s->name[s->n_names++] = xstrdup(name);
		return;
	}
	/* Full: replace the worst candidate if this one is better. */
	for (unsigned i = 1; i < s->n_names; i++)
		if (s->differs[i] > s->differs[worst])
			worst = i;
	if (s->differs[worst] <= differs)
		return;
	free(s->name[worst]);
	s->name[worst] = xstrdup(name);
	s->differs[worst] = differs;
}

/* The images of the approved boot with the fewest differing PCRs, which the caller puts; *name is
 * borrowed from s. */
static struct json_object *nearest(
	const struct search *s, struct broker_store *store, const char **name)
{
	/* Nearest first, and stop at the first one that is still approved. */
	for (unsigned differs = 0; differs <= s->n; differs++)
		for (unsigned i = 0; i < s->n_names; i++) {
			cleanup_json struct json_object *boot =
				s->differs[i] == differs ? broker_reason_value(store, s->name[i])
							 : NULL;
			struct json_object *images = json_object_is_type(boot, json_type_object)
							     ? json_get_arr(boot, "images")
							     : NULL;

			if (images && json_object_array_length(images) > 0) {
				*name = s->name[i];
				return json_object_get(images);
			}
		}
	return NULL;
}

/* List the image names, at most IMAGES_MAX: an Event's note is limited to 1 kB. */
static void add_images(struct strbuf *out, struct json_object *images)
{
	size_t n = json_object_array_length(images);

	for (size_t i = 0; i < n && i < IMAGES_MAX; i++) {
		struct json_object *v = json_object_array_get_idx(images, i);

		strbuf_addf(out, "%s%s", i ? ", " : "",
			json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "?");
	}
	if (n > IMAGES_MAX)
		strbuf_addf(out, " and %zu more", n - IMAGES_MAX);
}

/* Name each differing PCR. tecctl why parses "PCR N is HASH". */
static void say_boot(struct broker_store *store, const struct search *s, struct broker_reason *out)
{
	const char *name = NULL;
	cleanup_json struct json_object *images = nearest(s, store, &name);
	unsigned said = 0;

	/* Followed by one clause per PCR that differs. */
	strbuf_adds(&out->text, "The boot is not approved: ");
	if (!images) {
		strbuf_addf(&out->text,
			"no image is approved yet. PCR 4 is %s and PCR 14 is %s. Create an ApprovedImage for the image it should boot.",
			s->got[0], s->got[s->n - 1]);
		return;
	}
	for (unsigned i = 0; i < s->n; i++) {
		const char *expected = value_in(name, i);

		/* Equal PCRs are omitted: the message must fit an Event. */
		if (strncmp(expected, s->got[i], SHA256_HEX_LEN) == 0)
			continue;
		if (!said++)
			out->pcr = (int)s->pcr[i];
		strbuf_addf(&out->text, "%sPCR %u is %s, expected %.*s", said > 1 ? "; " : "",
			s->pcr[i], s->got[i], SHA256_HEX_LEN, expected);
	}
	strbuf_adds(&out->text, ". The nearest approved image is ");
	add_images(&out->text, images);
	strbuf_adds(
		&out->text, ". Boot that image, or create an ApprovedImage for the one it booted.");
}

/* Whether the shared list of this PCR contains the value. */
static bool is_listed(struct broker_store *store, unsigned pcr, const char *hex)
{
	cleanup_free char *name = xasprintf("tpm_pcr%u", pcr);
	cleanup_json struct json_object *list = broker_reason_value(store, name);

	for (size_t i = 0;
		json_object_is_type(list, json_type_array) && i < json_object_array_length(list);
		i++) {
		struct json_object *v = json_object_array_get_idx(list, i);

		if (json_object_is_type(v, json_type_string) &&
			str_eq(json_object_get_string(v), hex))
			return true;
	}
	return false;
}

/* With shared lists a boot is not approved as a whole, so no nearest image exists. */
static void say_lists(struct broker_store *store, const struct search *s, struct broker_reason *out)
{
	strbuf_adds(&out->text, "The boot is not approved:");
	for (unsigned i = 0; i < s->n; i++) {
		if (is_listed(store, s->pcr[i], s->got[i]))
			continue;
		if (out->pcr < 0)
			out->pcr = (int)s->pcr[i];
		strbuf_addf(&out->text, " PCR %u is %s, which no approved image has.", s->pcr[i],
			s->got[i]);
	}
	strbuf_adds(&out->text, " Create an ApprovedImage for the image it should boot.");
}

/* The first rule that fails is reported, in the order of the policy. */
void broker_reason_make(struct broker_store *store, const struct broker_policy *p,
	const struct rats_evidence *e, const struct rats_verdict *v, struct broker_reason *out)
{
	struct search s = {.n = 0};
	struct err err = ERR_INIT;

	*out = (struct broker_reason){.text = STRBUF_INIT, .pcr = -1};
	if (str_eq(rats_policy_status(v), "affirming"))
		return;
	if (e->tee != RATS_TEE_TPM) {
		strbuf_adds(&out->text, "Sample evidence proves nothing and gets no resource.");
		return;
	}
	if (!rats_policy_knows_key(v)) {
		strbuf_adds(&out->text,
			"Its attestation key is not registered for a Machine. Check the AttestationKeys: the key must be approved.");
		return;
	}
	/* PCR 4: boot manager and kernel; 7: Secure Boot policy; 14: MOK (shim). Their order is that
	 * of the values in a name. */
	s.pcr[s.n++] = 4;
	if (p->require_pcr7)
		s.pcr[s.n++] = 7;
	s.pcr[s.n++] = 14;
	for (unsigned i = 0; i < s.n; i++)
		bytes_to_hex(e->pcrs[s.pcr[i]], SHA256_LEN, s.got[i]);
	if (p->policy == RATS_POLICY_SHARED) {
		say_lists(store, &s, out);
		return;
	}
	/* Even without the list, say_boot() reports the PCR values. */
	if (broker_store_list(store, BROKER_STORE_REFERENCE_VALUE, BOOT, consider, &s, &err) < 0)
		strbuf_addf(&out->text, "Cannot read the reference values (%s). ", err.text);
	say_boot(store, &s, out);
	while (s.n_names > 0)
		free(s.name[--s.n_names]);
}
