/* SPDX-License-Identifier: MIT */
/* A bounded number of ConfigMaps, each sorted: lookups need no further index. */
#include "config.h"

#include "tec/state/record.h"

const struct model_record *state_record(const struct state *s, const char *configmap)
{
	const struct model_configmap *m = state_configmap(s, configmap);

	return m ? m->record : NULL;
}

/* Maps without text, or not created yet, are NULL and simply have no entries. */
static const struct model_record *revoked(const struct state *s, unsigned map)
{
	char name[sizeof(MODEL_RECORD_REVOKED) + 10];

	model_record_name(map, name);
	return state_record(s, name);
}

/* Revocations of one name may be in several maps, so all are searched. */
bool state_record_has(
	const struct state *s, enum model_record_kind kind, const char *name, int64_t since_s)
{
	const struct model_record_entry *e;

	if (kind == MODEL_RECORD_ID) {
		e = state_record_of_id(s, name);
		return e && e->at_s >= since_s;
	}
	for (unsigned i = 0; i < MODEL_RECORD_MAPS; i++) {
		e = model_record_find(revoked(s, i), kind, name);
		if (e && e->at_s >= since_s)
			return true;
	}
	return false;
}

const struct model_record_entry *state_record_of_id(const struct state *s, const char *id)
{
	return model_record_find(state_record(s, MODEL_RECORD_IDS), MODEL_RECORD_ID, id);
}

/* Only names of Trustee are passed on: ids and the "dropped" entry are none. */
void state_record_each(const struct state *s, int64_t since_s,
	void (*fn)(void *arg, enum kbs_kind kind, const char *name), void *arg)
{
	for (unsigned i = 0; i < MODEL_RECORD_MAPS; i++) {
		const struct model_record *r = revoked(s, i);

		for (size_t k = 0; r && k < r->n; k++) {
			const struct model_record_entry *e = &r->v[k];

			if (e->at_s >= since_s && e->kind == MODEL_RECORD_RESOURCE)
				fn(arg, KBS_RESOURCE, e->name);
			else if (e->at_s >= since_s && e->kind == MODEL_RECORD_VALUE)
				fn(arg, KBS_REFVALUE, e->name);
		}
	}
}

/* The latest of all maps: everything up to it may be incomplete. */
int64_t state_record_dropped_s(const struct state *s)
{
	int64_t at_s = 0;

	for (unsigned i = 0; i < MODEL_RECORD_MAPS; i++) {
		const struct model_record_entry *e =
			model_record_find(revoked(s, i), MODEL_RECORD_DROPPED, "-");

		at_s = e && e->at_s > at_s ? e->at_s : at_s;
	}
	return at_s;
}
