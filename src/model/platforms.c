/* SPDX-License-Identifier: MIT */
/*
 * Each element is read separately, into its own place. Refused are values of registers that do not
 * depend on a platform, and a name that occurs twice, because it is unknown which one counts.
 */
#include "config.h"

#include "tec/model/platforms.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/kobj/key.h"

#define WHY_MAX 300

void model_platforms_fini(struct model_platforms *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].name);
		free(p->v[i].why);
		pcr_events_fini(&p->v[i].events);
	}
	p->n = 0;
}

const struct model_platform *model_platforms_find(const struct model_platforms *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (str_eq(p->v[i].name, name))
			return &p->v[i];
	return NULL;
}

/* Keep the platform with the reason, so that the controller can report it, but drop its values. */
static void spoil(struct model_platform *m, const char *why)
{
	pcr_events_fini(&m->events);
	free(m->why);
	m->why = xstrdup(why);
	m->bad = true;
}

static bool has(const struct pcr_events *e, unsigned pcr)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->v[i].pcr == pcr)
			return true;
	return false;
}

bool model_platform_has(const struct model_platform *m, unsigned pcr)
{
	return has(&m->events, pcr);
}

static bool any_kernel(const struct pcr_events *e)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->v[i].pcr == 4 && e->v[i].id != PCR4_PLATFORM)
			return true;
	return false;
}

bool model_platform_any_kernel(const struct model_platform *m)
{
	return any_kernel(&m->events);
}

bool model_platform_application(const struct model_platform *m)
{
	for (size_t i = 0; i < m->events.n; i++)
		if (m->events.v[i].id == PCR4_PLATFORM &&
			m->events.v[i].type == PCR_EV_EFI_BOOT_SERVICES_APPLICATION)
			return true;
	return false;
}

/* The boot loader depends on a platform only through shim's validation being off, which PCR 14
 * shows. */
int model_platform_check(const struct pcr_events *e, struct err *err)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->v[i].pcr != 4 && e->v[i].pcr != 7 && e->v[i].pcr != 14)
			return err_set(err, ERR_INVALID,
				"it has a value of PCR %u, which does not depend on a platform",
				e->v[i].pcr);
	if (any_kernel(e) && !has(e, 14))
		return err_set(err, ERR_INVALID, "it has a boot loader in PCR 4 without PCR 14");
	if (!has(e, 4) && !has(e, 7) && !has(e, 14))
		return err_set(err, ERR_INVALID, "it has no events");
	return 0;
}

/* An element has either values or a reason for having none. */
static int read_values(struct model_platform *m, struct json_object *o, struct err *err)
{
	const char *hex = json_get_str(o, "variables"), *why = json_get_str(o, "why");
	struct json_object *pcrs = json_get(o, "pcrs");

	if (!hex || strlen(hex) != SHA256_HEX_LEN ||
		bytes_from_hex(hex, SHA256_HEX_LEN, m->variables) < 0)
		return err_set(err, ERR_INVALID, "variables is missing or not a SHA-256 digest");
	if (!pcrs == !why)
		return err_set(err, ERR_INVALID, "it has %s",
			pcrs ? "values and a reason for having none"
			     : "neither values nor a reason for having none");
	if (pcrs)
		return pcr_events_from_json(pcrs, &m->events, err) < 0
			       ? -1
			       : model_platform_check(&m->events, err);
	m->why = xasprintf("%.*s", WHY_MAX, why);
	return 0;
}

/* A duplicate spoils the first element of that name: neither of them is trusted. */
static void read_one(struct json_object *o, struct model_platforms *out)
{
	const char *name = json_get_str(o, "name");
	struct err err = ERR_INIT;
	struct model_platform *m;

	if (!name || !kobj_name_valid(name, strlen(name)))
		return;
	for (size_t i = 0; i < out->n; i++) {
		if (str_eq(out->v[i].name, name)) {
			spoil(&out->v[i], "it is listed twice");
			return;
		}
	}
	m = &out->v[out->n++];
	*m = (struct model_platform){.name = xstrdup(name), .events = PCR_EVENTS_INIT};
	if (read_values(m, o, &err) < 0)
		spoil(m, err.text);
}

/* The first MODEL_PLATFORMS_MAX elements are read, which is the most that spec can name. */
void model_platforms_read(struct json_object *list, struct model_platforms *out)
{
	out->n = 0;
	for (size_t i = 0; i < json_len(list) && i < MODEL_PLATFORMS_MAX; i++)
		read_one(json_at(list, i), out);
}

/* Bad elements are not written back: they would stay bad. */
struct json_object *model_platforms_json(const struct model_platforms *p)
{
	struct json_object *list = json_arr();

	for (size_t i = 0; i < p->n; i++) {
		const struct model_platform *m = &p->v[i];
		struct json_object *o;
		char hex[SHA256_HEX_LEN + 1];

		if (m->bad)
			continue;
		o = json_obj();
		bytes_to_hex(m->variables, SHA256_LEN, hex);
		json_add_str(o, "name", m->name);
		json_add_str(o, "variables", hex);
		json_add_str(o, "why", m->why);
		if (!m->why)
			json_add(o, "pcrs", pcr_events_json(&m->events));
		json_push(list, o);
	}
	return list;
}
