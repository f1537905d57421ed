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

#define AT(m) offsetof(struct model_pod, m)

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
	for (size_t i = 0; i < json_len(statuses); i++) {
		struct json_object *s = json_at(statuses, i);
		struct json_object *waiting = json_get_obj(s, "state/waiting"),
				   *ended = json_get_obj(s, "state/terminated");
		const char *reason = json_get_str(waiting, "reason");

		if (ended && json_get_int(ended, "exitCode", 0) != 0) {
			p->failed = true;
			return last_words(ended);
		}
		if (!reason || str_eq(reason, "ContainerCreating") ||
			str_eq(reason, "PodInitializing"))
			continue;
		/* The runtime refuses the container, or its volumes or settings are missing. */
		p->not_created = str_eq(reason, "CreateContainerError") ||
				 str_eq(reason, "CreateContainerConfigError") ||
				 str_eq(reason, "RunContainerError");
		return model_plain_why(waiting);
	}
	return NULL;
}

/* lastState counts, too: a container that crashed and waits for its restart did run. */
static bool any_started(struct json_object *statuses)
{
	for (size_t i = 0; i < json_len(statuses); i++) {
		struct json_object *s = json_at(statuses, i);

		if (json_get_obj(s, "state/running") || json_get_obj(s, "state/terminated") ||
			json_get_obj(s, "lastState/terminated"))
			return true;
	}
	return false;
}

/* Read how far the Pod has come. Return why it has no node, from PodScheduled=False: "Unschedulable:
 * 0/3 nodes are available". */
static char *read_conditions(struct json_object *conditions, struct model_pod *p)
{
	struct json_object *unplaced = NULL;

	for (size_t i = 0; i < json_len(conditions); i++) {
		struct json_object *c = json_at(conditions, i);
		const char *type = json_get_str(c, "type"), *status = json_get_str(c, "status");
		bool is = str_eq(status, "True");

		if (str_eq(type, "Ready"))
			p->ready = is;
		else if (str_eq(type, "PodReadyToStartContainers"))
			p->ready_to_start = is;
		else if (str_eq(type, "PodScheduled")) {
			p->placed = is;
			unplaced = str_eq(status, "False") ? c : NULL;
		}
	}
	return model_plain_why(unplaced);
}

/* Read how often containers were restarted, and the result of container compute-pcrs. A restarted
 * one is ignored: its state is not that of the first run. */
static void read_containers(struct kobj_pack *pack, struct json_object *all, struct model_pod *p)
{
	for (size_t i = 0; i < json_len(all); i++) {
		struct json_object *s = json_at(all, i);
		struct json_object *ended = json_get_obj(s, "state/terminated");
		const char *message = json_get_str(ended, "message");

		p->restarts += json_get_int(s, "restartCount", 0);
		if (!ended || !str_eq(json_get_str(s, "name"), MODEL_JOB_APP) ||
			json_get_int(s, "restartCount", -1) != 0)
			continue;
		p->exit_code = json_get_int(ended, "exitCode", -1);
		if (p->exit_code == 0 && message && strlen(message) <= MODEL_PCRMSG_MAX)
			kobj_pack_str(pack, AT(message), message);
	}
}

/* `why` is the first explanation in the order in which a Pod starts: init containers, containers,
 * scheduling, then the Pod as a whole. */
struct kobj *model_pod_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_pod p = {.failed = false};
	struct json_object *init = json_get_arr(o, "status/initContainerStatuses"),
			   *all = json_get_arr(o, "status/containerStatuses");
	cleanup_free char *why = NULL, *unplaced = NULL;
	struct json_object *labels = json_get_obj(o, "metadata/labels"), *job = NULL;

	if (kobj_meta_read(&pack, o, &p.obj, err) < 0)
		return NULL;
	/* The label's name contains a slash, which json_get_str() would take for a path. */
	if (labels && !json_object_object_get_ex(labels, "batch.kubernetes.io/job-name", &job))
		json_object_object_get_ex(labels, "job-name", &job);
	if (json_object_is_type(job, json_type_string))
		kobj_pack_str(&pack, AT(job), json_object_get_string(job));
	kobj_pack_str(&pack, AT(app), json_get_str(o, "metadata/labels/app"));
	kobj_pack_str(&pack, AT(owner_uid), kobj_owner_controller(o));
	p.failed = str_eq(json_get_str(o, "status/phase"), "Failed");
	p.ended = p.failed || str_eq(json_get_str(o, "status/phase"), "Succeeded");
	p.started = any_started(init) || any_started(all) || p.ended;
	unplaced = read_conditions(json_get_arr(o, "status/conditions"), &p);
	read_containers(&pack, all, &p);
	kobj_pack_str(&pack, AT(contents), kobj_annotation(o, MODEL_POD_CONTENTS_ANNOTATION));
	why = container_why(init, &p);
	if (!why)
		why = container_why(all, &p);
	if (!why)
		why = steal_ptr(&unplaced);
	if (!why && p.failed)
		why = model_plain_why(json_get_obj(o, "status"));
	kobj_pack_str(&pack, AT(why), why);
	return kobj_pack_finish(&pack, &p, sizeof(p));
}

const char *model_pod_index(const struct kobj *o, unsigned i)
{
	return i == 0 ? ((const struct model_pod *)o)->job : NULL;
}
