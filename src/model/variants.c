/* SPDX-License-Identifier: MIT */
/*
 * Each element is read separately. Values of registers other than 4 and 14 are refused: PCR 7
 * belongs to a platform, and values unknown to this operator would enter combinations.
 */
#include "config.h"

#include "tec/model/variants.h"

#include "tec/base/json.h"

#define WHEN_MAX 200

void model_variants_fini(struct model_variants *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].when);
		pcr_events_fini(&s->v[i].events);
	}
	free(s->v);
	*s = (struct model_variants){NULL, 0};
}

/* PCR 4 measures the boot chain, PCR 14 the state of shim: without both, nothing limits what may
 * boot. That there is no shim has to be said, and is not believed of a chain with one. */
int model_variant_check(const struct pcr_events *e, struct err *err)
{
	bool shim = false, no_shim = false;
	uint8_t value[SHA256_LEN];

	if (!pcr_events_value(e, 4, value))
		return err_set(err, ERR_INVALID, "there is no value of PCR 4");
	if (!pcr_events_value(e, 14, value))
		return err_set(err, ERR_INVALID, "there is no value of PCR 14");
	for (size_t i = 0; i < e->n; i++) {
		shim |= e->v[i].id == PCR4_SHIM ||
			(e->v[i].pcr == 14 && e->v[i].id != PCR14_NO_SHIM);
		no_shim |= e->v[i].id == PCR14_NO_SHIM;
	}
	if (shim && no_shim)
		return err_set(err, ERR_INVALID, "there is a shim, and it says that there is none");
	return 0;
}

/* False: the element is dropped without a reason, because the entry's own values stay valid without
 * it. */
static bool read_one(struct json_object *o, struct model_variant *v)
{
	const char *when = json_get_str(o, "when");
	struct json_object *secure_boot = json_get(o, "secure_boot");
	struct err ignored = ERR_INIT;
	bool other = false;

	*v = (struct model_variant){.events = PCR_EVENTS_INIT};
	if (!when || !json_object_is_type(secure_boot, json_type_boolean) ||
		pcr_events_from_json(json_get_arr(o, "pcrs"), &v->events, &ignored) < 0)
		return false;
	for (size_t i = 0; i < v->events.n; i++)
		other |= v->events.v[i].pcr != 4 && v->events.v[i].pcr != 14;
	if (other || model_variant_check(&v->events, &ignored) < 0) {
		pcr_events_fini(&v->events);
		return false;
	}
	v->secure_boot = json_object_get_boolean(secure_boot);
	v->when = xasprintf("%.*s", WHEN_MAX, when);
	return true;
}

/* Read in place: an element that is refused leaves its slot to the next one. */
void model_variants_read(struct json_object *list, struct model_variants *out)
{
	size_t n = json_len(list) < MODEL_VARIANTS_MAX ? json_len(list) : MODEL_VARIANTS_MAX;

	*out = (struct model_variants){NULL, 0};
	if (!n)
		return;
	out->v = xcalloc(n, sizeof(*out->v));
	for (size_t i = 0; i < n; i++)
		out->n += read_one(json_at(list, i), &out->v[out->n]);
}

struct json_object *model_variants_json(const struct model_variants *s)
{
	struct json_object *list = json_arr();

	for (size_t i = 0; i < s->n; i++) {
		struct json_object *o = json_add_str(json_obj(), "when", s->v[i].when);

		json_add_bool(o, "secure_boot", s->v[i].secure_boot);
		json_push(list, json_add(o, "pcrs", pcr_events_json(&s->v[i].events)));
	}
	return list;
}
