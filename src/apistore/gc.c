/* SPDX-License-Identifier: MIT */
/* A round sorts the uids there are and looks each owner up; objects that go may orphan others, so
 * rounds follow until one finds nothing. */
#include "config.h"

#include "tec/apistore/gc.h"

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#include "apistore_internal.h"

struct json_object *apistore_gc_delete(
	struct apistore_objects *s, const char *collection, const char *name)
{
	struct json_object *was = apistore_objects_get(s, collection, name), *o;
	char now[CLOCK_RFC3339_LEN];

	if (!was)
		return NULL;
	o = json_copy(was);
	clock_format(clock_wall_s(), now);
	if (!json_get(o, "metadata/deletionTimestamp"))
		json_add_str(apistore_objects_meta(o), "deletionTimestamp", now);
	return json_object_get(apistore_objects_put(s, collection, name, o));
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_orphan(struct json_object *o, const char *const *uids, size_t n_uids)
{
	struct json_object *owners = json_get_arr(o, "metadata/ownerReferences");
	size_t n = owners ? json_object_array_length(owners) : 0;

	for (size_t i = 0; i < n; i++) {
		const char *uid = json_get_str(json_object_array_get_idx(owners, i), "uid");

		if (uid && bsearch(&uid, uids, n_uids, sizeof(*uids), by_text))
			return false;
	}
	return n > 0 && !json_get(o, "metadata/deletionTimestamp");
}

static size_t collect_once(struct apistore_objects *s)
{
	const char **uids = xcalloc(s->n ? s->n : 1, sizeof(*uids));
	struct json_object **orphans = xcalloc(s->n ? s->n : 1, sizeof(*orphans));
	size_t n = 0, n_uids = 0;

	for (size_t i = 0; i < s->n; i++)
		if ((uids[n_uids] = json_get_str(s->sorted[i]->o, "metadata/uid")))
			n_uids++;
	qsort(uids, n_uids, sizeof(*uids), by_text);
	for (size_t i = s->n; i-- > 0;)
		if (is_orphan(s->sorted[i]->o, uids, n_uids))
			orphans[n++] = json_object_get(s->sorted[i]->o);
	free(uids);
	/* From the back: what is deleted does not move what is still to come. */
	for (size_t i = s->n, k = 0; k < n && i-- > 0;) {
		struct apistore_object *e = s->sorted[i];

		if (e->o != orphans[k])
			continue;
		json_object_put(orphans[k++]);
		json_object_put(apistore_gc_delete(s, e->collection, e->name));
	}
	free(orphans);
	return n;
}

size_t apistore_gc_collect(struct apistore_objects *s)
{
	size_t n = 0, found;

	while ((found = collect_once(s)) > 0)
		n += found;
	return n;
}
