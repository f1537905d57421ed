/* SPDX-License-Identifier: MIT */
/* Texts for people (messages of the kubelet, last output of a container) come from outside and are
 * cut. */
#include "config.h"

#include "tec/model/pod.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"
#include "tec/model/job.h"
#include "tec/model/pcrmsg.h"
#include "tec/model/plain.h"

/* Recognise the kubelet's reasons for a container that the runtime refuses, or whose volumes or
 * settings are missing. */
static bool is_not_created(const char *reason)
{
	return str_eq(reason, "CreateContainerError") ||
	       str_eq(reason, "CreateContainerConfigError") || str_eq(reason, "RunContainerError");
}

/* Use the last line of the termination message: it says why the program ended. */
static char *last_words(struct json_object *ended)
{
	const char *message = json_get_str(ended, "message");
	size_t n = message ? strlen(message) : 0;
	const char *line;
	cleanup_json struct json_object *last = NULL;

	while (n && message[n - 1] == '\n')
		n--;
	line = n ? memrchr(message, '\n', n) : NULL;
	if (!line)
		return model_plain_why(ended);
	line++;
	last = json_add_str(json_obj(), "reason", json_get_str(ended, "reason"));
	json_add(last, "message", json_object_new_string_len(line, (int)(message + n - line)));
	return model_plain_why(last);
}

/* Return the reason of the first container that failed or waits for something unusual. */
static char *container_why(struct json_object *statuses, struct model_pod *p)
{
	for (size_t i = 0; statuses && i < json_object_array_length(statuses); i++) {
		struct json_object *s = json_object_array_get_idx(statuses, i);
		struct json_object *waiting = json_get_obj(s, "state/waiting"),
				   *ended = json_get_obj(s, "state/terminated");
		const char *reason = json_get_str(waiting, "reason");

		if (ended && json_get_int(ended, "exitCode", 0) != 0) {
			p->failed = true;
			return last_words(ended);
		}
		if (reason && !str_eq(reason, "ContainerCreating") &&
			!str_eq(reason, "PodInitializing")) {
			p->not_created = is_not_created(reason);
			return model_plain_why(waiting);
		}
	}
	return NULL;
}

/* Return why the Pod has no node, from PodScheduled=False: "Unschedulable: 0/3 nodes are
 * available". */
static char *schedule_why(struct json_object *conditions)
{
	for (size_t i = 0; conditions && i < json_object_array_length(conditions); i++) {
		struct json_object *c = json_object_array_get_idx(conditions, i);

		if (str_eq(json_get_str(c, "type"), "PodScheduled") &&
			str_eq(json_get_str(c, "status"), "False"))
			return model_plain_why(c);
	}
	return NULL;
}

/* lastState counts, too: a container that crashed and waits for its restart did run. */
static bool any_started(struct json_object *statuses)
{
	for (size_t i = 0; statuses && i < json_object_array_length(statuses); i++) {
		struct json_object *s = json_object_array_get_idx(statuses, i);

		if (json_get_obj(s, "state/running") || json_get_obj(s, "state/terminated") ||
			json_get_obj(s, "lastState/terminated"))
			return true;
	}
	return false;
}

/* Read how far the Pod has come, and how often its containers were restarted. */
static void pod_life(struct json_object *o, struct model_pod *p)
{
	struct json_object *conditions = json_get_arr(o, "status/conditions"),
			   *all = json_get_arr(o, "status/containerStatuses");

	p->started = any_started(json_get_arr(o, "status/initContainerStatuses")) ||
		     any_started(all) || p->ended;

	for (size_t i = 0; conditions && i < json_object_array_length(conditions); i++) {
		struct json_object *c = json_object_array_get_idx(conditions, i);

		const char *type = json_get_str(c, "type");
		bool is = str_eq(json_get_str(c, "status"), "True");

		if (str_eq(type, "Ready"))
			p->ready = is;
		else if (str_eq(type, "PodScheduled"))
			p->placed = is;
		else if (str_eq(type, "PodReadyToStartContainers"))
			p->ready_to_start = is;
	}
	for (size_t i = 0; all && i < json_object_array_length(all); i++)
		p->restarts += json_get_int(json_object_array_get_idx(all, i), "restartCount", 0);
}

/* Read the result of container compute-pcrs. A restarted container is ignored: its state is not
 * that of the first run. */
static void pod_result(struct kobj_pack *pack, struct json_object *o, struct model_pod *p)
{
	struct json_object *all = json_get_arr(o, "status/containerStatuses");

	for (size_t i = 0; all && i < json_object_array_length(all); i++) {
		struct json_object *s = json_object_array_get_idx(all, i);
		struct json_object *ended = json_get_obj(s, "state/terminated");
		const char *message = json_get_str(ended, "message");

		if (!ended || !str_eq(json_get_str(s, "name"), MODEL_JOB_APP) ||
			json_get_int(s, "restartCount", -1) != 0)
			continue;
		p->exit_code = json_get_int(ended, "exitCode", -1);
		if (p->exit_code == 0 && message && strlen(message) <= MODEL_PCRMSG_MAX)
			kobj_pack_str(pack, offsetof(struct model_pod, message), message);
	}
}

/* `why` is the first explanation in the order in which a Pod starts: init containers, containers,
 * scheduling, then the Pod as a whole. */
struct kobj *model_pod_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_pod p = {.failed = false};
	cleanup_free char *why = NULL;
	struct json_object *labels = json_get_obj(o, "metadata/labels"), *job = NULL;

	if (kobj_meta_read(&pack, o, &p.obj, err) < 0)
		return NULL;
	/* The label's name contains a slash, which json_get_str() would take for a path. */
	if (labels && !json_object_object_get_ex(labels, "batch.kubernetes.io/job-name", &job))
		json_object_object_get_ex(labels, "job-name", &job);
	if (json_object_is_type(job, json_type_string))
		kobj_pack_str(&pack, offsetof(struct model_pod, job), json_object_get_string(job));
	kobj_pack_str(
		&pack, offsetof(struct model_pod, app), json_get_str(o, "metadata/labels/app"));
	kobj_pack_str(&pack, offsetof(struct model_pod, owner_uid), kobj_owner_controller(o));
	p.failed = str_eq(json_get_str(o, "status/phase"), "Failed");
	p.ended = p.failed || str_eq(json_get_str(o, "status/phase"), "Succeeded");
	pod_life(o, &p);
	pod_result(&pack, o, &p);
	kobj_pack_str(&pack, offsetof(struct model_pod, contents),
		kobj_annotation(o, MODEL_POD_CONTENTS_ANNOTATION));
	why = container_why(json_get_arr(o, "status/initContainerStatuses"), &p);
	if (!why)
		why = container_why(json_get_arr(o, "status/containerStatuses"), &p);
	if (!why)
		why = schedule_why(json_get_arr(o, "status/conditions"));
	if (!why && p.failed)
		why = model_plain_why(json_get_obj(o, "status"));
	kobj_pack_str(&pack, offsetof(struct model_pod, why), why);
	return kobj_pack_finish(&pack, &p, sizeof(p));
}

const char *model_pod_index(const struct kobj *o, unsigned i)
{
	return i == 0 ? ((const struct model_pod *)o)->job : NULL;
}
