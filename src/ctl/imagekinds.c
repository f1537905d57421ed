/* SPDX-License-Identifier: MIT */
/*
 * Extraction. Texts for people (a kubelet's messages, a Pod's last words) come from outside and are
 * cut; nothing in here fails because of what a ConfigMap holds: that is for the controller to tell.
 */
#include "config.h"

#include "tec/ctl/imagekinds.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"
#include "tec/model/pcrmsg.h"
#include "tec/pcr/platform.h"
#include "tec/render/pcrjob.h"
#include "tec/render/volumes.h"

#define WHY_MAX 400

/* ---- ConfigMaps */

static void configmap_fini(struct kobj *o)
{
	model_pcrs_free(((struct ctl_configmap *)o)->pcrs);
}

static void read_array(struct ctl_configmap *m, struct json_object *entry)
{
	struct json_object *value = json_get_arr(entry, "value");
	const char *name = json_get_str(entry, "name");
	cleanup_free char *text = value ? json_text(value) : NULL;

	for (unsigned i = 0; text && i < RENDER_N_ARRAYS; i++) {
		if (!str_eq(name, render_array_names[i]))
			continue;
		bytes_sha256(text, strlen(text), m->array_sha256[i]);
		if (m->arrays & 1u << i) /* twice: who knows which one counts */
			memset(m->array_sha256[i], 0, SHA256_LEN);
		m->arrays |= 1u << i;
	}
}

static void read_file(struct kobj_pack *pack, struct ctl_configmap *m, const char *file)
{
	struct err ignored = ERR_INIT;
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];
	size_t len = strlen(file);
	cleanup_json struct json_object *a = json_parse(file, len, &json_limits_object, &ignored);
	const char *expires = NULL;
	int64_t us;

	bytes_sha256(file, len, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	kobj_pack_str(pack, offsetof(struct ctl_configmap, file_sha256), hex);
	if (a && !json_object_is_type(a, json_type_array))
		return;
	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		read_array(m, json_object_array_get_idx(a, i));
	if (a && json_object_array_length(a))
		expires = json_get_str(json_object_array_get_idx(a, 0), "expiration");
	if (expires && clock_parse(expires, &us) == 0)
		m->expires_s = us / 1000000;
}

static struct json_object *text_of(struct json_object *o, const char *member, const char *key)
{
	struct json_object *in = json_get_obj(o, member), *v = NULL;

	/* Such a key may hold what json_get_str() takes for a path or for no text. */
	if (in)
		json_object_object_get_ex(in, key, &v);
	return json_object_is_type(v, json_type_string) ? v : NULL;
}

/* As the kubelet mounts them. What is no base64, which the API would not store, is not there. */
static void read_platform(struct ctl_configmap *m, struct json_object *o)
{
	struct pcr_platform_file files[PCR_PLATFORM_N_VARS] = {{NULL, 0}};
	uint8_t *binary[PCR_PLATFORM_N_VARS] = {NULL};

	for (int i = 0; i < PCR_PLATFORM_N_VARS; i++) {
		struct json_object *v = text_of(o, "data", pcr_platform_files[i]);
		size_t len = v ? (size_t)json_object_get_string_len(v) : 0;

		if (v) {
			files[i] = (struct pcr_platform_file){json_object_get_string(v), len};
		} else if ((v = text_of(o, "binaryData", pcr_platform_files[i])) &&
			   bytes_from_b64(json_object_get_string(v),
				   (size_t)json_object_get_string_len(v), &binary[i], &len) == 0) {
			files[i] =
				(struct pcr_platform_file){binary[i] ? binary[i] : (void *)"", len};
		}
		m->is_platform |= v != NULL;
	}
	if (m->is_platform)
		pcr_platform_digest(files, m->variables);
	for (int i = 0; i < PCR_PLATFORM_N_VARS; i++)
		free(binary[i]);
}

void ctl_rv_sha256(const char *names, const char *file, char hex[SHA256_HEX_LEN + 1])
{
	cleanup_sha256 struct bytes_sha256_run run;
	uint8_t digest[SHA256_LEN];

	bytes_sha256_init(&run);
	bytes_sha256_add(&run, names ? names : "", names ? strlen(names) : 0);
	bytes_sha256_add(&run, "", 1); /* ends the first */
	bytes_sha256_add(&run, file ? file : "", file ? strlen(file) : 0);
	bytes_sha256_end(&run, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
}

struct kobj *ctl_configmap_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct ctl_configmap m = {.pcrs = NULL};
	struct json_object *data = json_get_obj(o, "data");
	char hex[SHA256_HEX_LEN + 1];
	const char *text;

	if (kobj_meta_read(&pack, o, &m.plain.obj, err) < 0)
		return NULL;
	kobj_pack_str(
		&pack, offsetof(struct ctl_configmap, plain.owner_uid), kobj_owner_controller(o));
	kobj_pack_str(&pack, offsetof(struct ctl_configmap, plain.render_hash),
		kobj_annotation(o, KOBJ_RENDER_HASH_ANNOTATION));
	if (str_eq(json_get_str(o, "metadata/name"), MODEL_PCRS_CONFIGMAP)) {
		text = json_get_str(data, MODEL_PCRS_FILE);
		m.pcrs = text ? model_pcrs_parse(text, strlen(text)) : NULL;
		m.plain.obj.fini = configmap_fini;
	} else if (str_eq(json_get_str(o, "metadata/name"), CTL_RV_CONFIGMAP)) {
		text = json_get_str(data, CTL_RV_FILE);
		if (text)
			read_file(&pack, &m, text);
		kobj_pack_str(&pack, offsetof(struct ctl_configmap, names),
			json_get_str(data, CTL_RV_NAMES));
		ctl_rv_sha256(json_get_str(data, CTL_RV_NAMES), text, hex);
		kobj_pack_str(&pack, offsetof(struct ctl_configmap, data_sha256), hex);
	} else {
		read_platform(&m, o);
	}
	return kobj_pack_finish(&pack, &m, sizeof(m));
}

const struct ctl_configmap *ctl_configmap_find(const struct ctl_env *env, const char *name)
{
	return (const struct ctl_configmap *)k8s_cache_find(env->configmaps, name);
}

/* ---- Jobs */

/* "reason: message", cut; NULL when there is no reason. */
static char *reason_and_message(struct json_object *o)
{
	const char *reason = json_get_str(o, "reason"), *message = json_get_str(o, "message");

	if (!reason)
		return NULL;
	return message && *message ? xasprintf("%.64s: %.*s", reason, WHY_MAX, message)
				   : xasprintf("%.64s", reason);
}

static void read_job_condition(struct kobj_pack *pack, struct ctl_job *j, struct json_object *c)
{
	const char *type = json_get_str(c, "type"), *at = json_get_str(c, "lastTransitionTime");
	int64_t us;

	if (!str_eq(json_get_str(c, "status"), "True"))
		return;
	if (str_eq(type, "Complete")) {
		j->state = CTL_JOB_COMPLETE;
	} else if (str_eq(type, "Failed")) {
		cleanup_free char *why = reason_and_message(c);

		j->state = CTL_JOB_FAILED;
		kobj_pack_str(pack, offsetof(struct ctl_job, why), why);
	} else {
		return;
	}
	if (at && clock_parse(at, &us) == 0)
		j->finished_s = us / 1000000;
}

struct kobj *ctl_job_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct ctl_job j = {.state = CTL_JOB_RUNNING};
	struct json_object *conditions = json_get_arr(o, "status/conditions");
	const char *attempt = kobj_annotation(o, RENDER_PCRJOB_ATTEMPT_ANNOTATION);
	uint64_t n = 0;

	if (kobj_meta_read(&pack, o, &j.obj, err) < 0)
		return NULL;
	for (size_t i = 0; conditions && i < json_object_array_length(conditions); i++)
		read_job_condition(&pack, &j, json_object_array_get_idx(conditions, i));
	if (attempt && str_to_u64(attempt, 1000000, &n) == 0)
		j.attempt = (unsigned)n;
	kobj_pack_str(&pack, offsetof(struct ctl_job, owner_uid), kobj_owner_controller(o));
	kobj_pack_str(&pack, offsetof(struct ctl_job, image),
		kobj_annotation(o, RENDER_PCRJOB_IMAGE_ANNOTATION));
	kobj_pack_str(&pack, offsetof(struct ctl_job, nonce),
		kobj_annotation(o, RENDER_PCRJOB_NONCE_ANNOTATION));
	return kobj_pack_finish(&pack, &j, sizeof(j));
}

const char *ctl_job_index(const struct kobj *o, unsigned i)
{
	return i == 0 ? ((const struct ctl_job *)o)->image : NULL;
}

/* ---- Pods */

/* Of the first container that has something to tell. */
static char *container_why(struct json_object *statuses, bool *failed)
{
	for (size_t i = 0; statuses && i < json_object_array_length(statuses); i++) {
		struct json_object *s = json_object_array_get_idx(statuses, i);
		struct json_object *waiting = json_get_obj(s, "state/waiting"),
				   *ended = json_get_obj(s, "state/terminated");
		const char *reason = json_get_str(waiting, "reason");

		if (ended && json_get_int(ended, "exitCode", 0) != 0) {
			*failed = true;
			return reason_and_message(ended);
		}
		if (reason && !str_eq(reason, "ContainerCreating") &&
			!str_eq(reason, "PodInitializing"))
			return reason_and_message(waiting);
	}
	return NULL;
}

/* PodScheduled=False: "Unschedulable: 0/3 nodes are available". */
static char *schedule_why(struct json_object *conditions)
{
	for (size_t i = 0; conditions && i < json_object_array_length(conditions); i++) {
		struct json_object *c = json_object_array_get_idx(conditions, i);

		if (str_eq(json_get_str(c, "type"), "PodScheduled") &&
			str_eq(json_get_str(c, "status"), "False"))
			return reason_and_message(c);
	}
	return NULL;
}

/* Ready, and how often a container of it was started anew. */
static void pod_life(struct json_object *o, struct ctl_pod *p)
{
	struct json_object *conditions = json_get_arr(o, "status/conditions"),
			   *all = json_get_arr(o, "status/containerStatuses");

	for (size_t i = 0; conditions && i < json_object_array_length(conditions); i++) {
		struct json_object *c = json_object_array_get_idx(conditions, i);

		if (str_eq(json_get_str(c, "type"), "Ready"))
			p->ready = str_eq(json_get_str(c, "status"), "True");
	}
	for (size_t i = 0; all && i < json_object_array_length(all); i++)
		p->restarts += json_get_int(json_object_array_get_idx(all, i), "restartCount", 0);
}

/* How compute-pcrs ended. One that was started again is not what its first run said. */
static void pod_result(struct kobj_pack *pack, struct json_object *o, struct ctl_pod *p)
{
	struct json_object *all = json_get_arr(o, "status/containerStatuses");

	for (size_t i = 0; all && i < json_object_array_length(all); i++) {
		struct json_object *s = json_object_array_get_idx(all, i);
		struct json_object *ended = json_get_obj(s, "state/terminated");
		const char *message = json_get_str(ended, "message");

		if (!ended || !str_eq(json_get_str(s, "name"), RENDER_PCRJOB_APP) ||
			json_get_int(s, "restartCount", -1) != 0)
			continue;
		p->exit_code = json_get_int(ended, "exitCode", -1);
		if (p->exit_code == 0 && message && strlen(message) <= MODEL_PCRMSG_MAX)
			kobj_pack_str(pack, offsetof(struct ctl_pod, message), message);
	}
}

struct kobj *ctl_pod_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct ctl_pod p = {.failed = false};
	cleanup_free char *why = NULL;
	struct json_object *labels = json_get_obj(o, "metadata/labels"), *job = NULL;

	if (kobj_meta_read(&pack, o, &p.obj, err) < 0)
		return NULL;
	/* The name of this label has a slash, which json_get_str() would take for a path. */
	if (labels && !json_object_object_get_ex(labels, "batch.kubernetes.io/job-name", &job))
		json_object_object_get_ex(labels, "job-name", &job);
	if (json_object_is_type(job, json_type_string))
		kobj_pack_str(&pack, offsetof(struct ctl_pod, job), json_object_get_string(job));
	kobj_pack_str(&pack, offsetof(struct ctl_pod, app), json_get_str(o, "metadata/labels/app"));
	kobj_pack_str(&pack, offsetof(struct ctl_pod, owner_uid), kobj_owner_controller(o));
	pod_life(o, &p);
	pod_result(&pack, o, &p);
	kobj_pack_str(&pack, offsetof(struct ctl_pod, contents),
		kobj_annotation(o, RENDER_VOLUMES_CONTENTS_ANNOTATION));
	p.failed = str_eq(json_get_str(o, "status/phase"), "Failed");
	p.ended = p.failed || str_eq(json_get_str(o, "status/phase"), "Succeeded");
	why = container_why(json_get_arr(o, "status/containerStatuses"), &p.failed);
	if (!why)
		why = schedule_why(json_get_arr(o, "status/conditions"));
	if (!why && p.failed)
		why = reason_and_message(json_get_obj(o, "status"));
	kobj_pack_str(&pack, offsetof(struct ctl_pod, why), why);
	return kobj_pack_finish(&pack, &p, sizeof(p));
}

const char *ctl_pod_index(const struct kobj *o, unsigned i)
{
	return i == 0 ? ((const struct ctl_pod *)o)->job : NULL;
}
