/* SPDX-License-Identifier: MIT */
/*
 * One sealed row holds the time since when every key delivery has been marked. The row is removed
 * by the change that names another server, before a key can be on its way there; once no other
 * server is named, it is written again with the current time. In doubt there is no row: then no
 * Machine counts as never attested, and none is deleted for that.
 */
#include "config.h"

#include "attested.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tec/apistore/rows.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/ctl/machine.h"
#include "tec/k8s/call.h"
#include "tec/kobj/gvk.h"
#include "tec/rats/names.h"
#include "tec/state/cluster.h"
#include "tec/state/machine.h"

#define TABLE "broker/marks"
#define ROW   "since"
#define DAY_S 86400

struct attested {
	struct apistore_objects *objects;
	struct state *state;
	bool here;
};

/* ---- since when */

/* Parse "SINCE RESTORED". A row from before the last restoration does not count: 0. */
static int64_t parse_row(const char *text, int64_t restored_s)
{
	int64_t since_s, restored;

	return sscanf(text, "%" SCNd64 " %" SCNd64, &since_s, &restored) == 2 &&
			       restored == restored_s
		       ? since_s
		       : 0;
}

/* No row is not an error: marks_since_s stays 0. */
static int read_row(struct attested *a, struct err *err)
{
	cleanup_free char *text = NULL;
	void *data;
	size_t len;

	if (apistore_rows_get(a->objects, TABLE, ROW, &data, &len, err) < 0) {
		if (err->kind != ERR_NOT_FOUND)
			return -1;
		err_clear(err);
		return 0;
	}
	text = xstrndup(data, len);
	free(data);
	a->state->marks_since_s = parse_row(text, a->state->restored_s);
	return 0;
}

/* If the row cannot be written, marks_since_s is 0: nothing is concluded from missing marks. */
static void set_row(struct attested *a, int64_t since_s)
{
	cleanup_free char *text = xasprintf("%" PRId64 " %" PRId64, since_s, a->state->restored_s);
	struct err err = ERR_INIT;
	int rc = since_s ? apistore_rows_set(a->objects, TABLE, ROW, text, strlen(text), &err)
			 : apistore_rows_remove(a->objects, TABLE, ROW, &err);

	a->state->marks_since_s = rc < 0 ? 0 : since_s;
	if (rc < 0 && err.kind != ERR_NOT_FOUND)
		log_err(LOG_ERROR, NULL, "cannot store since when attestations are recorded", &err);
}

/* Whether no other server has the keys of this cluster; only then does a missing mark prove
 * anything. */
static bool is_alone(const struct attested *a)
{
	const struct model_cluster *c = state_cluster_policy(a->state);

	return a->here && c && c->n_servers == 0 && c->delivery != MODEL_DELIVERY_VOLUMES;
}

static void take_later(void *arg, const struct kobj *o)
{
	int64_t *s = arg;

	*s = o->created_s > *s ? o->created_s : *s;
}

/* A time later than the creation of each existing Machine, in case the clock was ahead when one
 * was created. */
static int64_t from_now_s(const struct attested *a)
{
	int64_t s = clock_wall_s();

	k8s_cache_each(a->state->machines, take_later, &s);
	return s;
}

/* Until both lists are complete, a server or Machine may be missing from them. */
void attested_check(struct attested *a)
{
	struct state *s = a->state;
	bool alone = is_alone(a);

	if (!k8s_cache_filled(s->clusters) || !k8s_cache_filled(s->machines) ||
		alone == (s->marks_since_s != 0))
		return;
	set_row(a, alone ? from_now_s(a) : 0);
	s->never_attested = 0; /* no Machine is younger than marks_since_s */
}

/* Another server may have been named or removed. */
static void on_cluster(void *arg, const struct kobj *was, const struct kobj *now)
{
	attested_check(arg);
}

/* Keep the count of Machines whose node has never had its disk key. */
static void on_machine(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct attested *a = arg;
	struct state *s = a->state;

	s->never_attested += state_machine_never_attested(s, now ? model_machine(now) : NULL);
	s->never_attested -= state_machine_never_attested(s, was ? model_machine(was) : NULL);
}

/* ---- marks */

/* Release the key to the node. */
static void give(struct broker_held *h)
{
	broker_held_end(h, NULL);
}

/* End the request for a key with an error; text may be empty. */
static void refuse(struct broker_held *h, enum err_kind kind, const char *text)
{
	struct err err = ERR_INIT;

	(void)!err_set(&err, kind, "%s", text);
	broker_held_end(h, &err);
}

/* The Machine whose disk key the path names; NULL: another resource, or no such Machine. */
static const struct model_machine *machine_of(const struct attested *a, const char *path)
{
	char id[UUID_TEXT_LEN + 1];

	return rats_resource_is_root(path, id) ? state_machine_of_id(a->state, id) : NULL;
}

/* The API answered the mark. A failed write is harmless if the Machine has an older mark: that
 * already protects it from deletion. */
static void on_marked(void *arg, const struct err *err, const struct k8s_result *r)
{
	struct broker_held *h = arg;
	struct attested *a = h->arg;
	const struct model_machine *m = machine_of(a, h->path);

	if (err->kind == ERR_NOT_FOUND ||
		(r->object && json_get(r->object, "metadata/deletionTimestamp"))) {
		refuse(h, ERR_NOT_FOUND, "");
	} else if (!err_is_set(err) || (m && !state_machine_never_attested(a->state, m))) {
		give(h); /* marked, or an older mark protects the Machine */
	} else {
		log_err(LOG_WARN, NULL, "disk key withheld, the attestation cannot be recorded",
			err);
		refuse(h, ERR_TRANSIENT, "The attestation cannot be recorded.");
	}
}

/* One write per Machine and day: a mark of today is as good as a new one. */
void attested_mark(
	struct attested *a, struct k8s_transport *api, const char *ns, struct broker_held *h)
{
	const struct model_machine *m = machine_of(a, h->path);
	int64_t now_s = clock_wall_s();
	cleanup_json struct json_object *o = NULL;

	h->arg = a;
	if (!k8s_cache_filled(a->state->machines)) {
		refuse(h, ERR_TRANSIENT, "The list of Machines is still being read.");
	} else if (!m) {
		give(h);
	} else if (m->obj.deleting) {
		refuse(h, ERR_NOT_FOUND, "");
	} else if (m->attested_s && now_s >= m->attested_s && now_s - m->attested_s < DAY_S) {
		give(h);
	} else {
		o = ctl_machine_attested_json(m, now_s);
		(void)k8s_call_apply(api, h->ops, &kobj_machine, ns, o, on_marked, h);
	}
}

/* ---- life */

/* The listeners are registered for the life of the caches, which end before `a` is freed. */
struct attested *attested_new(
	struct apistore_objects *objects, struct state *state, bool here, struct err *err)
{
	struct attested *a = xcalloc(1, sizeof(*a));

	a->objects = objects;
	a->state = state;
	a->here = here;
	if (read_row(a, err) < 0) {
		free(a);
		err_wrap(err, "cannot read since when attestations are recorded");
		return NULL;
	}
	k8s_cache_listen(state->clusters, on_cluster, a);
	k8s_cache_listen(state->machines, on_machine, a);
	return a;
}

void attested_free(struct attested *a)
{
	free(a);
}
