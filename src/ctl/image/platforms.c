/* SPDX-License-Identifier: MIT */
/*
 * The platforms of spec.attestation from the view of one image. A value is current if its entry
 * names the variables that the platform's ConfigMap holds now. An outdated value counts until a
 * current one replaces it, so that an edited or deleted ConfigMap locks no node out. To revoke a
 * value, remove its platform from spec.
 */
#include "config.h"

#include "image_internal.h"

#include <string.h>

#include "tec/base/mem.h"
#include "tec/pcr/bootpath.h"

/* ---- look */

/* A value is current only if its digest of the variables is that of the ConfigMap. */
static enum image_platform_state state_of(
	const struct model_configmap *map, const struct model_platform *value)
{
	if (!map)
		return IMAGE_PLATFORM_MISSING;
	if (map->plain.obj.unreadable)
		return IMAGE_PLATFORM_UNREADABLE;
	if (!map->is_platform)
		return IMAGE_PLATFORM_EMPTY;
	if (!value || value->bad || memcmp(value->variables, map->variables, SHA256_LEN) != 0)
		return IMAGE_PLATFORM_WANTED;
	return value->why ? IMAGE_PLATFORM_NONE : IMAGE_PLATFORM_HAVE;
}

/* Tell whether the value may be used. A lost ConfigMap revokes nothing; one that no longer
 * allows any kernel (validation off) or programs of the firmware does. */
static bool has_value(const struct model_configmap *map, const struct model_platform *m)
{
	if (!m || m->bad || m->why)
		return false;
	if (!map || !map->is_platform)
		return true;
	return (map->validation_off_ok || !model_platform_any_kernel(m)) &&
	       (map->applications_ok || !model_platform_application(m));
}

/* Compare each platform of spec with the entry. `unmounted`: a Pod that mounts a missing
 * ConfigMap would hang, so no Job is created. */
void image_platforms_look(
	const struct caches *s, const struct model_pcrs_entry *entry, struct image_platforms *out)
{
	const struct model_cluster *c = caches_cluster(s);

	*out = (struct image_platforms){
		.required = c && c->pcr7 == MODEL_PCR7_REQUIRE, .entry = entry};
	for (unsigned i = 0; c && i < c->n_platforms; i++) {
		const struct model_configmap *map = caches_configmap(s, c->platform[i]);
		bool mounts = map && map->is_platform;
		size_t at;
		struct image_platform *p = &out->v[out->n++];

		p->name = c->platform[i];
		p->value = entry ? model_platforms_find(&entry->platforms, p->name) : NULL;
		p->state = state_of(map, p->value);
		p->counts = has_value(map, p->value);
		out->have += p->counts && (!out->required || model_platform_has(p->value, 7));
		out->unmounted |= !mounts;
		out->incomplete |= !mounts || p->state == IMAGE_PLATFORM_WANTED;
		if (!mounts)
			continue;
		/* Inserted by name, so that a different order in spec does not lead to another
		 * Job. */
		at = out->job.n++;
		for (; at > 0 && strcmp(out->job.v[at - 1].name, p->name) > 0; at--)
			out->job.v[at] = out->job.v[at - 1];
		out->job.v[at].name = p->name;
		memcpy(out->job.v[at].variables, map->variables, SHA256_LEN);
	}
}

/* Called for each change of a ConfigMap, to find out whether it concerns images. */
bool image_platforms_name(const struct caches *s, const char *name)
{
	const struct model_cluster *c = caches_cluster(s);

	for (unsigned i = 0; c && i < c->n_platforms; i++)
		if (str_eq(c->platform[i], name))
			return true;
	return false;
}

/* ---- conditions */

/* Append the registers in which a node of this platform differs from the condition's general
 * text. */
static void note_own(
	const struct image_platforms *p, const struct image_platform *v, struct strbuf *out)
{
	cleanup_pcr_events struct pcr_events four = PCR_EVENTS_INIT;
	uint8_t value[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	if (p->required && !model_platform_has(v->value, 7))
		strbuf_addf(out,
			" PCR 7 of platform %s is unknown: its ConfigMap has no firmware variables (SecureBoot, PK, KEK, db, dbx).",
			v->name);
	if (pcr_events_value(&v->value->events, 14, value)) {
		bytes_to_hex(value, SHA256_LEN, hex);
		strbuf_addf(out, " On platform %s, PCR 14 is %s", v->name, hex);
		if (model_platform_any_kernel(v->value)) {
			pcr_events_value(&v->value->events, 4, value);
			bytes_to_hex(value, SHA256_LEN, hex);
			strbuf_addf(out,
				" and PCR 4 %s: shim's validation is off there, so any kernel has these values",
				hex);
		}
		strbuf_addc(out, '.');
	}
	if (!model_platform_has(v->value, 4) || model_platform_any_kernel(v->value) ||
		!pcr_boot_on_platform(&v->value->events, &p->entry->events, &four))
		return;
	pcr_events_value(&four, 4, value);
	bytes_to_hex(value, SHA256_LEN, hex);
	strbuf_addf(out,
		" On platform %s, PCR 4 is %s: its firmware measures other events before the boot loader%s.",
		v->name, hex,
		model_platform_application(v->value) ? ", among them a program of its own" : "");
}

/* One sentence for each platform that is not as required, with the step that solves it; then the
 * registers of platforms that differ from the image. */
void image_platforms_note(const struct image_platforms *p, struct strbuf *out)
{
	unsigned shown = 0;

	if (p->required && !p->n)
		strbuf_adds(out,
			" spec.attestation.pcr7 is Require, but platformConfigMaps names no platform.");
	for (unsigned i = 0; p->required && i < p->n; i++)
		if (p->v[i].state == IMAGE_PLATFORM_HAVE && model_platform_has(p->v[i].value, 7))
			strbuf_addf(out, "%s%s", shown++ ? ", " : " PCR 7 is known for platform ",
				p->v[i].name);
	if (shown)
		strbuf_addc(out, '.');
	for (unsigned i = 0; i < p->n; i++) {
		const struct image_platform *v = &p->v[i];

		switch (v->state) {
		case IMAGE_PLATFORM_MISSING:
			strbuf_addf(out,
				" ConfigMap %s does not exist: create it, or remove it from spec.attestation.platformConfigMaps.",
				v->name);
			break;
		case IMAGE_PLATFORM_EMPTY:
			strbuf_addf(out,
				" ConfigMap %s has no variables: its keys must be file names as in /sys/firmware/efi/efivars (SecureBoot, PK, KEK, db, dbx) or /sys/firmware/efi/mok-variables, or FirmwareEvents.",
				v->name);
			break;
		case IMAGE_PLATFORM_UNREADABLE:
			strbuf_addf(out,
				" ConfigMap %s is larger than 2 MiB and cannot be read; reduce it.",
				v->name);
			break;
		case IMAGE_PLATFORM_WANTED:
			strbuf_addf(out, " The values of platform %s are not computed yet%s%s.",
				v->name, v->value && v->value->bad ? ": " : "",
				v->value && v->value->bad ? v->value->why : "");
			break;
		case IMAGE_PLATFORM_NONE:
			strbuf_addf(out, " There are no values for platform %s: %s.", v->name,
				v->value->why);
			break;
		case IMAGE_PLATFORM_HAVE:
			continue;
		}
		if (v->counts)
			strbuf_adds(out, " Until then, the previous value is used.");
	}
	for (unsigned i = 0; i < p->n; i++)
		if (p->v[i].state == IMAGE_PLATFORM_HAVE)
			note_own(p, &p->v[i], out);
}

const struct model_platform *image_platforms_value(
	const struct caches *s, const struct model_pcrs_entry *entry, const char *name)
{
	const struct model_platform *value = model_platforms_find(&entry->platforms, name);

	return has_value(caches_configmap(s, name), value) ? value : NULL;
}
