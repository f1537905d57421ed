/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "ctl/world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/model/ak.h"
#include "tec/model/image.h"
#include "tec/model/machine.h"
#include "tec/model/mark.h"
#include "tec/model/secretobj.h"
#include "tec/pki/spki.h"
#include "tec/rats/names.h"
#include "tec/caches/adoption_cutoff.h"

static void quiet(enum log_level level, const char *line, void *arg)
{
	if (getenv("TEST_LOG"))
		fprintf(stderr, "%s\n", line);
}

void world_start(struct world *w)
{
	memset(w, 0, sizeof(*w));
	clock_fake_start(1000000, 1800000000);
	log_setup(getenv("TEST_LOG") ? LOG_DEBUG : LOG_INFO, LOG_TEXT);
	log_capture(quiet, NULL);
	w->loop = loop_new();
	w->api = fake_api_new(w->loop);
}

void world_stop(struct world *w)
{
	world_kill(w);
	fake_api_free(w->api);
	loop_free(w->loop);
	cr_assert_eq(secret_count(), 0, "%zu secrets are left", secret_count());
	log_capture(NULL, NULL);
	clock_fake_stop();
}

static struct kbs_transport *connect_kbs(
	void *arg, const struct ctl_kbs_place *place, struct err *err)
{
	struct world *w = arg;

	w->n_here += place->in_process;
	w->n_plain += !place->in_process && !str_starts(place->url, "https://");
	snprintf(w->place, sizeof(w->place), "%s %s", place->url ? place->url : "",
		place->connect_to ? place->connect_to : "-");
	if (!w->kbs) {
		err_set(err, ERR_TRANSIENT, "there is no Trustee in this world");
		return NULL;
	}
	return fake_kbs_transport(w->kbs);
}

static size_t in_flight(void *arg)
{
	struct life *l = arg;

	return ctl_kind_in_flight(l->machine) + ctl_kind_in_flight(l->ak) +
	       ctl_kind_in_flight(l->image);
}

static struct k8s_transport *connect_source(
	void *arg, struct k8s_kubeconfig *take_config, struct err *err)
{
	struct world *w = arg;

	snprintf(w->server, sizeof(w->server), "%s", take_config->server);
	k8s_kubeconfig_free(take_config);
	if (!w->source) {
		err_set(err, ERR_TRANSIENT, "there is no source in this world");
		return NULL;
	}
	w->source_f = fake_transport_new(w->loop);
	fake_transport_set_api(w->source_f, w->source);
	return fake_transport_seam(w->source_f);
}

static void on_since(void *arg)
{
}

static void on_peer(void *kind)
{
	ctl_kind_wake_all(kind);
}

void world_boot(struct world *w, const char *controllers)
{
	struct life *l = xcalloc(1, sizeof(*l));

	cr_assert_null(w->life);
	w->life = l;
	l->f = fake_transport_new(w->loop);
	fake_transport_set_api(l->f, w->api);
	l->api = fake_transport_seam(l->f);
	for (int i = 0; i < CACHES_N_KINDS; i++) {
		const struct k8s_watch_conf conf = {
			.gvk = caches_kinds[i].gvk, .ns = NS, .secret = i == CACHES_SECRETS};

		l->caches.cache[i] = k8s_cache_new(&caches_kinds[i].cache);
		l->watch[i] = k8s_watch_new(w->loop, l->api, l->caches.cache[i], &conf);
	}
	l->caches.sync = kbs_sync_new();
	l->events = k8s_events_new(l->api, NS, "tec-operator", "test");
	l->env = (struct ctl_env){.loop = w->loop,
		.api = l->api,
		.ns = NS,
		.caches = &l->caches,
		.kbs_connect = connect_kbs,
		.kbs_connect_arg = w,
		.kbs_url = w->kbs ? "http://trustee.test:8080" : NULL,
		.follow_connect = connect_source,
		.follow_connect_arg = w,
		.image_label = w->image_label,
		.image_compute = w->image_compute,
		.in_flight = in_flight,
		.in_flight_arg = l,
		.events = l->events,
		.images_ref = render_images_default};
	l->env.record = l->record = ctl_record_new(&l->env);
	l->since = ctl_adoption_cutoff_new(&l->env, &l->caches, on_since, w);
	l->trustee = ctl_trustee_new(&l->env);
	l->cluster = ctl_cluster_new(&l->env);
	l->machine = ctl_machine_new(&l->env);
	l->ak = ctl_ak_new(&l->env);
	l->image = ctl_image_new(&l->env);
	l->follow = ctl_follow_new(&l->env, &l->caches);
	ctl_follow_listen_peer(l->follow, on_peer, l->machine);
	ctl_follow_listen_peer(l->follow, on_peer, l->ak);
	ctl_follow_listen_peer(l->follow, on_peer, l->image);
	for (int i = 0; i < CACHES_N_KINDS; i++)
		k8s_watch_start(l->watch[i]);
	for (int i = 0; i < 100 && !caches_filled(&l->caches, CACHES_FOR_ALL); i++)
		loop_advance(w->loop, 100);
	cr_assert(caches_filled(&l->caches, CACHES_FOR_ALL));
	if (!world_get(w, &kobj_configmap, CTL_ADOPTION_CUTOFF_CONFIGMAP))
		clock_fake_advance(1000); /* what was put before the first life is older */
	ctl_adoption_cutoff_on(l->since);
	for (int i = 0; i < 100 && !caches_adoption_cutoff_known(&l->caches); i++)
		loop_advance(w->loop, 100);
	fake_transport_forget(l->f);
	if (w->arm)
		w->arm();
	if (!controllers || strchr(controllers, 'c'))
		ctl_trustee_on(l->trustee);
	if (!controllers || strchr(controllers, 'c'))
		ctl_cluster_on(l->cluster);
	if (!controllers || strchr(controllers, 'm'))
		ctl_kind_on(l->machine);
	if (!controllers || strchr(controllers, 'a'))
		ctl_kind_on(l->ak);
	if (!controllers || strchr(controllers, 'i'))
		ctl_kind_on(l->image);
	if (!controllers || strchr(controllers, 'f'))
		ctl_follow_on(l->follow);
	loop_drain(w->loop);
}

void world_kill(struct world *w)
{
	struct life *l = w->life;

	if (!l)
		return;
	ctl_record_free(l->record);
	ctl_trustee_free(l->trustee);
	ctl_follow_free(l->follow);
	ctl_kind_free(l->image);
	ctl_kind_free(l->ak);
	ctl_kind_free(l->machine);
	ctl_cluster_free(l->cluster);
	ctl_adoption_cutoff_free(l->since);
	for (int i = 0; i < CACHES_N_KINDS; i++)
		k8s_watch_free(l->watch[i]);
	kbs_sync_free(l->caches.sync);
	k8s_events_free(l->events);
	for (int i = 0; i < CACHES_N_KINDS; i++)
		k8s_cache_free(l->caches.cache[i]);
	k8s_transport_free(l->api);
	free(l);
	w->life = NULL;
}

void world_run(struct world *w, uint64_t ms)
{
	loop_advance(w->loop, ms);
}

/* ---- objects */

void world_cluster(struct world *w, const char *name, const char *spec)
{
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"%s\"},\"spec\":%s}", name, spec);

	fake_api_put(w->api, &kobj_cluster, NS, text);
	if (w->life)
		loop_drain(w->loop);
}

static void see_machine(struct world *w, const char *id, const char *name)
{
	const char *uid = world_str(w, &kobj_machine, name, "metadata/uid");

	for (size_t i = 0; i < ARRAY_LEN(w->seen); i++) {
		if (*w->seen[i].id && !str_eq(w->seen[i].id, id))
			continue;
		snprintf(w->seen[i].id, sizeof(w->seen[i].id), "%s", id);
		snprintf(w->seen[i].uid, sizeof(w->seen[i].uid), "%s", uid);
		return;
	}
}

void world_machine(struct world *w, const char *name, const char *id, const char *by)
{
	struct json_object *cluster = world_get(w, &kobj_cluster, "tec");
	struct json_object *o = model_machine_new_json(id, cluster ? "tec" : NULL,
		cluster ? json_get_str(cluster, "metadata/uid") : NULL, false);

	json_add_str(json_get_obj(o, "metadata"), "name", name);
	if (!by) {
		json_object_object_del(json_get_obj(o, "metadata"), "annotations");
		json_object_object_del(json_get_obj(o, "metadata"), "ownerReferences");
	}
	fake_api_put_json(w->api, &kobj_machine, NS, o);
	see_machine(w, id, name);
	if (w->life)
		loop_drain(w->loop);
}

const char *world_seen(const struct world *w, const char *id)
{
	for (size_t i = 0; i < ARRAY_LEN(w->seen); i++)
		if (id && str_eq(w->seen[i].id, id))
			return w->seen[i].uid;
	return MODEL_SEEN_NONE;
}

void world_ak(struct world *w, const char *name, const char *pem, const char *uuid, const char *by)
{
	struct json_object *o = model_ak_new_json(name, pem, uuid);

	if (!by)
		json_object_object_del(json_get_obj(o, "metadata"), "annotations");
	else
		model_ak_note_seen(o, world_seen(w, uuid));
	fake_api_put_json(w->api, &kobj_ak, NS, o);
	if (w->life)
		loop_drain(w->loop);
}

struct json_object *world_get(struct world *w, const struct kobj_gvk *gvk, const char *name)
{
	return fake_api_get(w->api, gvk, NS, name);
}

const char *world_str(
	struct world *w, const struct kobj_gvk *gvk, const char *name, const char *path)
{
	struct json_object *o = world_get(w, gvk, name);

	return o ? json_get_str(o, path) : NULL;
}

size_t world_events(struct world *w, const char *part)
{
	size_t n = 0;

	for (size_t i = 0; i < fake_transport_requests(w->life->f); i++) {
		const struct fake_request *r = fake_transport_request(w->life->f, i);

		n += str_eq(r->resource, "events") && r->body && strstr(r->body, part);
	}
	return n;
}

const char *world_annotation(
	struct world *w, const struct kobj_gvk *gvk, const char *name, const char *annotation)
{
	struct json_object *o = world_get(w, gvk, name);

	return o ? kobj_annotation(o, annotation) : NULL;
}

void world_mark(struct world *w, const struct kobj_gvk *gvk, const char *name,
	const char *annotation, const char *payload)
{
	cleanup_free char *patch = xasprintf("{\"metadata\":{\"annotations\":{\"%s\":\"%s %s\"}}}",
		annotation, world_str(w, gvk, name, "metadata/uid"), payload);

	fake_api_merge(w->api, gvk, NS, name, patch);
	if (w->life)
		loop_drain(w->loop);
}

const char *world_marked(
	struct world *w, const struct kobj_gvk *gvk, const char *name, const char *annotation)
{
	struct json_object *o = world_get(w, gvk, name);

	return o ? model_mark(o, annotation) : NULL;
}

void world_since(struct world *w)
{
	if (world_get(w, &kobj_configmap, CTL_ADOPTION_CUTOFF_CONFIGMAP))
		fake_api_delete(w->api, &kobj_configmap, NS, CTL_ADOPTION_CUTOFF_CONFIGMAP);
	clock_fake_advance(2000);
	fake_api_put(
		w->api, &kobj_configmap, NS, "{\"metadata\":{\"name\":\"tec-operator-since\"}}");
	clock_fake_advance(2000);
}

const char *world_cond(
	struct world *w, const struct kobj_gvk *gvk, const char *name, const char *type)
{
	const char *s = fake_api_condition(w->api, gvk, NS, name, type, "status");

	return s ? s : "";
}

const char *world_reason(
	struct world *w, const struct kobj_gvk *gvk, const char *name, const char *type)
{
	const char *s = fake_api_condition(w->api, gvk, NS, name, type, "reason");

	return s ? s : "";
}

/* ---- Trustee */

static void parse(const char *pem, struct pki_spki *out)
{
	struct err err = ERR_INIT;

	cr_assert_eq(pki_spki_parse_pem(pem, strlen(pem), out, &err), 0, "%s", err.text);
}

void identity_of(const char *pem, char out[300])
{
	struct pki_spki k;

	parse(pem, &k);
	cr_assert_eq(rats_identity_name(k.der, k.der_len, out), 0);
}

static const char *first_target(struct world *w)
{
	return "kbs-service";
}

void trustee_has_key(struct world *w, const char *id, bool has)
{
	const char *b64 = world_str(w, &kobj_secret, id, "data/root");
	char path[RATS_RESOURCE_PATH_MAX];
	uint8_t digest[SHA256_LEN];
	cleanup_free uint8_t *root = NULL;
	size_t len;

	rats_resource_path(id, path);
	if (has) {
		cr_assert_eq(bytes_from_b64(b64, strlen(b64), &root, &len), 0);
		bytes_sha256(root, len, digest);
	}
	kbs_sync_confirm(
		w->life->caches.sync, first_target(w), KBS_RESOURCE, path, has ? digest : NULL);
	loop_drain(w->loop);
}

void trustee_has_identity(struct world *w, const char *pem, const char *id, bool has)
{
	cleanup_strbuf struct strbuf value = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];
	struct pki_spki k;
	char name[300];

	parse(pem, &k);
	identity_of(pem, name);
	strbuf_addc(&value, '[');
	rats_identity_value(k.der, k.der_len, id, &value);
	strbuf_addc(&value, ']');
	bytes_sha256(strbuf_str(&value), value.len, digest);
	kbs_sync_confirm(
		w->life->caches.sync, first_target(w), KBS_REFVALUE, name, has ? digest : NULL);
	loop_drain(w->loop);
}

enum kbs_observed observed_key(struct world *w, const char *id)
{
	char path[RATS_RESOURCE_PATH_MAX];

	rats_resource_path(id, path);
	return kbs_sync_observed(w->life->caches.sync, KBS_RESOURCE, path);
}

bool key_declared(struct world *w, const char *id)
{
	char path[RATS_RESOURCE_PATH_MAX];

	rats_resource_path(id, path);
	return kbs_sync_object(w->life->caches.sync, KBS_RESOURCE, path) != NULL;
}

bool identity_declared(struct world *w, const char *pem)
{
	char name[300];

	identity_of(pem, name);
	return kbs_sync_object(w->life->caches.sync, KBS_REFVALUE, name) != NULL;
}
