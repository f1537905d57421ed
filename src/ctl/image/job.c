/* SPDX-License-Identifier: MIT */
/*
 * A Job computes an image's values. It mounts the image as a volume until that proves impossible:
 * the API server drops the volume, a node's runtime does not create the container, or the volumes
 * of a Pod are not mounted in time. Then a new Job is created whose Pod fetches the image instead,
 * with the reason; while such a Job exists, Jobs of other images are created in the same way.
 */
#include "config.h"

#include "image_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/model/job.h"
#include "tec/model/pod.h"

#define FOREIGN_RECHECK_MS 30000
#define PENDING_S          30  /* until a Pod that does not start is reported */
#define MOUNT_S            120 /* ---- mounted or fetched */

/* Find out from the Job that mounts the image, if there is one, whether the mount failed. */
static void look_mounting(const struct caches *s, struct image_look *l)
{
	char name[RENDER_PCRJOB_NAME_LEN + 1], *why = l->info->unmounted;
	const size_t room = sizeof(l->info->unmounted);
	const struct model_pod *p = NULL;
	const struct model_job *j;
	int64_t left_s;

	render_pcrjob_name(l->m, &l->platforms.job, NULL, name);
	j = (const struct model_job *)k8s_cache_find(s->jobs, name);
	if (!j || j->obj.deleting || !str_eq(j->owner_uid, l->m->obj.uid))
		return;
	for (const struct kobj *o = k8s_cache_first(s->pods, 0, name); o;
		o = k8s_cache_next(s->pods, 0, o))
		p = (const struct model_pod *)o;
	if (!j->mounts_image) {
		snprintf(why, room, "the API server drops image volumes");
	} else if (p && p->not_created) {
		snprintf(why, room,
			"the node did not create a container with the image volume (%.200s)",
			p->why);
	} else if (p && p->placed && !p->ready_to_start && !p->started && !p->why) {
		left_s = p->obj.created_s + MOUNT_S - clock_wall_s();
		if (left_s > 0)
			ctl_look_again(&l->base, left_s * 1000, "job");
		else
			snprintf(why, room,
				"the node did not mount the volumes of the Pod within %d s",
				MOUNT_S);
	}
}

/* Choose the same one of several reasons each time, so that a condition does not flap. */
static void first_reason(void *arg, const struct kobj *o)
{
	const char **first = arg, *why = ((const struct model_job *)o)->fetch;

	if (why && (!*first || strcmp(why, *first) < 0))
		*first = why;
}

/* A reason of another image's Job counts, too: whether images can be mounted depends on the
 * cluster, not on the image. */
static void look_fetch(struct ctl_image *c, struct image_look *l)
{
	if (!l->info->unmounted[0])
		look_mounting(c->kind.caches, l);
	if (l->info->unmounted[0])
		l->job.fetch.why = l->info->unmounted;
	else
		k8s_cache_each(c->kind.caches->jobs, first_reason, &l->job.fetch.why);
	l->job.fetch.registry_mirror = c->kind.env->registry_mirror;
	l->job.fetch.insecure_registry = c->kind.env->insecure_registry;
	l->job.fetch.env = c->kind.env->proxy_env;
}

static const struct render_pcrjob_fetch *fetch_of(const struct image_look *l)
{
	return l->job.fetch.why ? &l->job.fetch : NULL;
}

/* ---- look */

/* A Job counts only if the image owns it and announced its nonce: any client could have created
 * it. */
static void job_look(struct ctl_image *c, struct image_look *l)
{
	const struct caches *s = c->kind.caches;
	const struct kobj *o;

	look_fetch(c, l);
	render_pcrjob_name(l->m, &l->platforms.job, fetch_of(l), l->what);
	/* A running one for other platforms or variables than the current ones, or one that should
	 * mount an image that cannot be mounted. */
	for (o = k8s_cache_first(s->jobs, 0, l->m->obj.name); o && !l->job.old;
		o = k8s_cache_next(s->jobs, 0, o)) {
		const struct model_job *j = (const struct model_job *)o;

		if (j->state == MODEL_JOB_RUNNING && !o->deleting && !str_eq(o->name, l->what) &&
			str_eq(j->owner_uid, l->m->obj.uid))
			l->job.old = j;
	}
	l->v.old_run = l->job.old != NULL;
	l->job.now = (const struct model_job *)k8s_cache_find(s->jobs, l->what);
	if (!l->job.now)
		return;
	if (!str_eq(l->job.now->owner_uid, l->m->obj.uid)) {
		l->v.run = CTL_IMAGE_RUN_FOREIGN; /* its deletion would not wake this image */
		ctl_look_again(&l->base, FOREIGN_RECHECK_MS, "job");
		return;
	}
	l->run.nonce = l->job.now->nonce;
	if (!image_entry_announces_run(l->m, l->run.nonce)) {
		l->v.run = l->job.now->obj.deleting ? CTL_IMAGE_RUN_DELETING
						    : CTL_IMAGE_RUN_UNANNOUNCED;
		return;
	}
	/* Oldest first: the condition shows the last one. */
	for (o = k8s_cache_first(s->pods, 0, l->what); o; o = k8s_cache_next(s->pods, 0, o)) {
		l->job.pod = (const struct model_pod *)o;
		if (l->job.pod->message && str_eq(l->job.pod->owner_uid, l->job.now->obj.uid))
			l->run.message = l->job.pod->message;
	}
	if (l->job.now->obj.deleting) {
		l->v.run = CTL_IMAGE_RUN_DELETING;
	} else if (l->job.now->state == MODEL_JOB_RUNNING) {
		l->v.run = CTL_IMAGE_RUN_RUNNING;
	} else {
		l->v.run = CTL_IMAGE_RUN_ENDED;
		image_child_due(l, l->job.now->attempt, l->job.now->finished_s,
			l->job.now->state == MODEL_JOB_COMPLETE && !l->job.pod);
	}
}

/* ---- conditions */

/* Return for how many seconds no container has started, and look again when PENDING_S is
 * reached. */
static int64_t pending_for(struct image_look *l)
{
	const struct kobj *since = l->job.pod ? &l->job.pod->obj : &l->job.now->obj;
	int64_t s = clock_wall_s() - since->created_s;

	if (l->job.pod && l->job.pod->started)
		return 0;
	if (s < PENDING_S)
		ctl_look_again(&l->base, (PENDING_S - s) * 1000, "job");
	return s;
}

/* A Pod that does not start is explained as far as its status allows; otherwise the text names a
 * command. */
static void want_pending(const struct ctl_image *c, struct image_look *l, const char *how)
{
	const struct model_pod *pod = l->job.pod;
	const char *ns = c->kind.env->ns;

	if (!pod)
		IMAGE_WANT(l, IMAGE_POD_PENDING,
			"Job %s has no Pod after %d s. See why: kubectl describe job %s -n %s.%s",
			l->what, PENDING_S, l->what, ns, how);
	else
		IMAGE_WANT(l, IMAGE_POD_PENDING,
			"The Pod of Job %s has not started after %d s%s See: kubectl describe pod %s -n %s.%s",
			l->what, PENDING_S,
			pod->ready_to_start
				? ". Its images are being pulled, which takes time for a large one."
				: ", and its status gives no reason.",
			pod->obj.name, ns, how);
}

/* The condition for each state of the Job, most specific first. */
static void job_want(const struct ctl_image *c, struct image_look *l)
{
	const char *pod = l->job.pod ? l->job.pod->why : NULL;
	cleanup_strbuf struct strbuf how = STRBUF_INIT;

	/* Sentences about the label and the mount, each with a leading space. */
	strbuf_adds(&how, l->info->note);
	if (l->job.fetch.why)
		strbuf_addf(&how,
			" Its Pod fetches the image from the registry, because the image cannot be mounted: %s. Image volumes need Kubernetes 1.31 with the feature gate ImageVolume, which is on by default from 1.35, and containerd 2.1 or CRI-O 1.31.",
			l->job.fetch.why);

	switch (l->v.run) {
	case CTL_IMAGE_RUN_RUNNING:
		if (pod && !l->job.pod->failed)
			IMAGE_WANT(l, IMAGE_POD_PENDING, "The Pod of Job %s does not start. %s%s",
				l->what, pod, strbuf_str(&how));
		else if (pending_for(l) >= PENDING_S)
			want_pending(c, l, strbuf_str(&how));
		else
			IMAGE_WANT(l, IMAGE_COMPUTING, "Job %s computes the values.%s", l->what,
				strbuf_str(&how));
		break;
	case CTL_IMAGE_RUN_ENDED:
		if (l->job.now->state == MODEL_JOB_FAILED && l->job.pod &&
			l->job.pod->exit_code == MODEL_PCRMSG_TOO_MANY)
			IMAGE_WANT(l, IMAGE_TOO_MANY_EVENTS,
				"The values of this image do not fit into the result of Job %s (%s). Remove platforms that no node has from spec.attestation.platformConfigMaps.",
				l->what, pod ? pod : "");
		else if (l->job.now->state == MODEL_JOB_FAILED)
			IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED,
				"Job %s failed and is retried later. %s%s%s%s", l->what,
				l->job.now->why ? l->job.now->why : "", pod ? " " : "",
				pod ? pod : "", l->job.fetch.why ? strbuf_str(&how) : "");
		else if (l->info->result_why[0])
			IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED,
				"Job %s ended, but its result is not used: %s. A new Job is created later.",
				l->what, l->info->result_why);
		else if (l->run.message)
			IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED,
				"Job %s ended, but its result does not cover the current state of every platform. A new Job is created later.",
				l->what);
		else
			IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED,
				"Job %s ended, but none of its Pods has a result. A new Job is created.",
				l->what);
		break;
	case CTL_IMAGE_RUN_FOREIGN:
		IMAGE_WANT(l, IMAGE_COMPUTATION_FAILED,
			"Job %s exists and does not belong to this image. The operator does not change it. If it is not needed, delete it.",
			l->what);
		break;
	case CTL_IMAGE_RUN_ABSENT:
	case CTL_IMAGE_RUN_DELETING:
	case CTL_IMAGE_RUN_UNANNOUNCED:
	case CTL_IMAGE_RUN_N:
		IMAGE_WANT(l, IMAGE_COMPUTING, "A Job that computes the values is being created.%s",
			strbuf_str(&how));
	}
}

/* ---- start and removal */

/* The name is noted for image_job_exists(), which sees only the answer. */
static struct op *job_start(struct ctl_kind *k, struct ctl_act *a, const struct image_look *l)
{
	struct image_info *i = l->info;
	cleanup_json struct json_object *o = render_pcrjob(l->m, &l->platforms.job, fetch_of(l),
		k->env->ns, k->env->images_ref.compute_pcrs, i->nonce, i->attempts + 1);

	memcpy(i->job_name, l->what, sizeof(i->job_name));
	return k8s_call_create(
		k->env->api, &k->acts.ops, &kobj_job, k->env->ns, o, 0, ctl_kind_done, a);
}

/* Explain a Job that blocks the name, so that an administrator can delete it. */
bool image_job_exists(const struct ctl_image *c, struct image_info *i, const struct k8s_result *r)
{
	if (!r || !r->already_exists)
		return false;
	/* The cache shows every Job with our labels, so this one has none: it is not ours to
	 * delete. */
	if (i && !k8s_cache_find(c->kind.caches->jobs, i->job_name))
		snprintf(i->problem, sizeof(i->problem),
			"Job %s exists and was not created by the operator. Delete it: kubectl delete job %s -n %s",
			i->job_name, i->job_name, c->kind.env->ns);
	return true;
}

/* The number of the attempt survives in memory and determines the next delay. */
static struct op *job_remove(
	struct ctl_kind *k, struct ctl_act *a, const struct image_look *l, bool old)
{
	if (!old)
		l->info->attempts = l->job.now->attempt;
	return ctl_kind_delete(k, a, &kobj_job, old ? &l->job.old->obj : &l->job.now->obj);
}

const struct image_way image_by_job = {job_look, job_want, job_start, job_remove};

/* ---- which image a change wakes */

static void wake(struct ctl_image *c, const struct kobj *o)
{
	const struct model_job *j = (const struct model_job *)o;

	if (j && j->image)
		ctl_runner_wake(c->kind.runner, j->image);
}

void image_job_map(void *self, const struct kobj *was, const struct kobj *now)
{
	wake(self, was);
	wake(self, now);
}

/* A Pod names its Job, and the Job its image. */
void image_job_map_pod(void *self, const struct kobj *was, const struct kobj *now)
{
	struct ctl_image *c = self;
	const struct model_pod *p = (const struct model_pod *)(now ? now : was);

	if (p->job)
		wake(c, k8s_cache_find(c->kind.caches->jobs, p->job));
}
