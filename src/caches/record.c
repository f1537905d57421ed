/* SPDX-License-Identifier: MIT */
/* A bounded number of ConfigMaps, each sorted: lookups need no further index. */
#include "config.h"

#include "tec/caches/record.h"

#include "tec/base/clock.h"
#include "tec/caches/cluster.h"

const struct model_record *caches_record(const struct caches *s, const char *configmap)
{
	const struct model_configmap *m = caches_configmap(s, configmap);

	return m ? m->record : NULL;
}

/* Maps without text, or not created yet, are NULL and simply have no entries. */
static const struct model_record *revoked(const struct caches *s, unsigned map)
{
	char name[sizeof(MODEL_RECORD_REVOKED) + 10];

	model_record_name(map, name);
	return caches_record(s, name);
}

/* Revocations of one name may be in several maps, so all are searched. */
bool caches_record_has(
	const struct caches *s, enum model_record_kind kind, const char *name, int64_t since_s)
{
	const struct model_record_entry *e;

	if (kind == MODEL_RECORD_ID) {
		e = caches_record_of_id(s, name);
		return e && e->at_s >= since_s;
	}
	for (unsigned i = 0; i < MODEL_RECORD_MAPS; i++) {
		e = model_record_find(revoked(s, i), kind, name);
		if (e && e->at_s >= since_s)
			return true;
	}
	return false;
}

const struct model_record_entry *caches_record_of_id(const struct caches *s, const char *id)
{
	return model_record_find(caches_record(s, MODEL_RECORD_IDS), MODEL_RECORD_ID, id);
}

/* Only names of Trustee are passed on: ids and the "dropped" entry are none. */
void caches_record_each(const struct caches *s, int64_t since_s,
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

/* While a cluster cannot be read, nothing is too old: it may name a lost server. */
int64_t caches_record_oldest_s(const struct caches *s)
{
	const struct model_cluster *c = caches_cluster(s);
	int64_t now_s = clock_wall_s();

	if (caches_cluster_unknown(s))
		return INT64_MIN;
	return model_record_oldest_s(c && c->lost_since_s < now_s ? c->lost_since_s : now_s);
}

/* The latest of all maps: everything up to it may be incomplete. */
int64_t caches_record_dropped_s(const struct caches *s)
{
	int64_t at_s = 0;

	for (unsigned i = 0; i < MODEL_RECORD_MAPS; i++) {
		const struct model_record_entry *e =
			model_record_find(revoked(s, i), MODEL_RECORD_DROPPED, "-");

		at_s = e && e->at_s > at_s ? e->at_s : at_s;
	}
	return at_s;
}
