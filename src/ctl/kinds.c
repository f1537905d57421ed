/* SPDX-License-Identifier: MIT */
/* The table, and what is told of objects that cannot be read. */
#include "config.h"

#include "tec/ctl/kinds.h"

#include "tec/ctl/env.h"
#include "tec/ctl/imagekinds.h"
#include "tec/model/ak.h"
#include "tec/model/cluster.h"
#include "tec/model/image.h"
#include "tec/model/machine.h"
#include "tec/model/secretobj.h"

#define CACHE(extract, type, index, n)                                                             \
	{                                                                                          \
		extract, sizeof(struct type), index, n                                             \
	}

const struct ctl_kind ctl_kind_cluster = {
	&kobj_cluster, CACHE(model_cluster_extract, model_cluster, model_cluster_index, 1)};
const struct ctl_kind ctl_kind_machine = {
	&kobj_machine, CACHE(model_machine_extract, model_machine, model_machine_index, 1)};
const struct ctl_kind ctl_kind_ak = {
	&kobj_ak, CACHE(model_ak_extract, model_ak, model_ak_index, 3)};
const struct ctl_kind ctl_kind_image = {
	&kobj_image, CACHE(model_image_extract, model_image, NULL, 0)};
const struct ctl_kind ctl_kind_secret = {
	&kobj_secret, CACHE(model_secret_extract, model_secret, NULL, 0)};
const struct ctl_kind ctl_kind_configmap = {
	&kobj_configmap, CACHE(ctl_configmap_extract, ctl_configmap, NULL, 0)};
const struct ctl_kind ctl_kind_service = {
	&kobj_service, CACHE(ctl_plain_extract, ctl_plain, NULL, 0)};
const struct ctl_kind ctl_kind_deployment = {
	&kobj_deployment, CACHE(ctl_plain_extract, ctl_plain, NULL, 0)};
const struct ctl_kind ctl_kind_job = {&kobj_job, CACHE(ctl_job_extract, ctl_job, ctl_job_index, 1)};
const struct ctl_kind ctl_kind_pod = {&kobj_pod, CACHE(ctl_pod_extract, ctl_pod, ctl_pod_index, 1)};

static void on_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	const struct ctl_unreadable *u = arg;

	if (!now || !now->unreadable || (was && was->unreadable && str_eq(was->uid, now->uid)))
		return;
	k8s_events_post(u->events, u->kind->gvk, now, K8S_EVENT_WARNING, "Unreadable", "Read",
		"%s %s is larger than 2 MiB and cannot be read; reduce it. Until then nothing is concluded from it.",
		u->kind->gvk->kind, now->name);
}

void ctl_unreadable_tell(struct ctl_unreadable *u, struct k8s_cache *cache)
{
	k8s_cache_listen(cache, on_change, u);
}
