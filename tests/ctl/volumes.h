/* SPDX-License-Identifier: MIT */
/* What tests of delivery by volumes share: what Trustee's Deployment mounts, and the hands of its
 * controller and the kubelet. */
#ifndef TEC_TESTS_CTL_VOLUMES_H
#define TEC_TESTS_CTL_VOLUMES_H

#include "ctl/images.h"
#include "ctl/nodes.h"
#include "tec/model/pod.h"
#include "tec/render/trustee.h"
#include "tec/render/volumes.h"

#define VOLUMES "{" ADDRESS ",\"trustee\":{\"delivery\":\"Volumes\",\"keyIsolation\":\"Shared\"}}"
#define ADMIN   "{" ADDRESS ",\"trustee\":{\"delivery\":\"AdminAPI\",\"keyIsolation\":\"Shared\"}}"
#define POD     "trustee-1"

static inline void volumes_up(void)
{
	nodes_up();
	w.image_label = ask;
}

/* ---- what is there */

static inline struct json_object *deployment(void)
{
	return world_get(&w, &kobj_deployment, "trustee-deployment");
}

static inline bool mounts(const char *id)
{
	cleanup_volumes struct render_volumes l = RENDER_VOLUMES_INIT;

	return deployment() && render_volumes_read(deployment(), &l) &&
	       render_names_have(&l.machines, id);
}

static inline bool mounts_ak(const char *name)
{
	cleanup_volumes struct render_volumes l = RENDER_VOLUMES_INIT;

	return deployment() && render_volumes_read(deployment(), &l) &&
	       render_names_have(&l.aks, name);
}

static inline size_t n_mounted(void)
{
	cleanup_volumes struct render_volumes l = RENDER_VOLUMES_INIT;

	cr_assert(render_volumes_read(deployment(), &l));
	return l.machines.n;
}

static inline size_t writes_of_deployments(void)
{
	return fake_transport_count(w.life->f, "apply", "deployments");
}

/* ---- the Deployment's controller and the kubelet */

static inline void status(int64_t generation, int replicas, int updated, int available)
{
	cleanup_free char *text = xasprintf(
		"{\"status\":{\"observedGeneration\":%lld,\"replicas\":%d,\"updatedReplicas\":%d,"
		"\"availableReplicas\":%d}}",
		(long long)generation, replicas, updated, available);

	fake_api_merge(w.api, &kobj_deployment, NS, "trustee-deployment", text);
}

static inline void pod(const char *name, const char *contents, bool ready)
{
	struct json_object *o = json_obj(), *meta = json_obj(), *st = json_obj(), *c = json_obj();
	cleanup_free char *ready_text = xstrdup(ready ? "True" : "False");

	json_add_str(meta, "name", name);
	json_add(meta, "labels", json_add_str(json_obj(), "app", "kbs"));
	json_add(meta, "annotations",
		json_add_str(json_obj(), MODEL_POD_CONTENTS_ANNOTATION, contents));
	json_add(meta, "finalizers", json_push_str(json_arr(), "test/kubelet"));
	json_add_str(json_add_str(c, "type", "Ready"), "status", ready_text);
	json_add(st, "conditions", json_push(json_arr(), c));
	json_add_str(st, "phase", "Running");
	fake_api_put_json(
		w.api, &kobj_pod, NS, json_add(json_add(o, "metadata", meta), "status", st));
}

static inline void pod_gone(const char *name)
{
	fake_api_merge(w.api, &kobj_pod, NS, name, "{\"metadata\":{\"finalizers\":null}}");
	fake_api_delete(w.api, &kobj_pod, NS, name);
}

static inline void current_pod(const char *name)
{
	cleanup_volumes struct render_volumes l = RENDER_VOLUMES_INIT;

	render_volumes_read(deployment(), &l);
	pod(name, l.contents, true);
}

static inline void roll_out(void)
{
	current_pod(POD);
	status(json_get_int(deployment(), "metadata/generation", 0), 1, 1, 1);
	world_run(&w, 3000);
}

static inline void install(const char *spec)
{
	world_cluster(&w, "tec", spec);
	world_boot(&w, NULL);
	world_run(&w, 15000);
	if (deployment())
		roll_out();
}

static inline void id_of(unsigned i, char id[UUID_TEXT_LEN + 1])
{
	snprintf(id, UUID_TEXT_LEN + 1, "00000000-0000-4000-9000-%012x", i);
}

static inline void machines(unsigned from, unsigned n)
{
	char id[UUID_TEXT_LEN + 1];

	for (unsigned i = from; i < from + n; i++) {
		cleanup_free char *name = xasprintf("m-%u", i);

		id_of(i, id);
		world_machine(&w, name, id, "listener");
	}
}

static inline bool delivered(void)
{
	return str_eq(world_cond(&w, &kobj_machine, "a", "Delivered"), "True") &&
	       str_eq(world_cond(&w, &kobj_ak, "key", "Delivered"), "True");
}

#endif
