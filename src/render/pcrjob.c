/* SPDX-License-Identifier: MIT */
/*
 * One Pod that fails once is tried once more by the Job itself (a node may go away); what fails
 * again is the operator's to retry, later. The result is the container's termination message; of
 * one that failed it is the Pod's last words, for a person to read in the ApprovedImage's
 * condition.
 */
#include "config.h"

#include "tec/render/pcrjob.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/kobj/gvk.h"
#include "tec/kobj/owner.h"

#define JOB_USER    65532
#define DEADLINE_S  900  /* pulling a bootable image of some gigabytes included */
#define TTL_S       3600 /* how long a Job that ended can be looked at */
#define PLATFORMS   "/platforms/"
#define VOLUME_SIZE 32 /* of its name */

static const struct render_pcrjob_platforms no_platforms;

void render_pcrjob_name(const struct model_image *i, const struct render_pcrjob_platforms *p,
	char out[RENDER_PCRJOB_NAME_LEN + 1])
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	strbuf_addf(&text, "%s %s", i->obj.uid, i->image);
	for (size_t k = 0; p && k < p->n; k++) {
		bytes_to_hex(p->v[k].variables, SHA256_LEN, hex);
		strbuf_addf(&text, " %s %s", p->v[k].name, hex);
	}
	bytes_sha256(strbuf_str(&text), text.len, digest);
	bytes_to_hex(digest, 8, hex);
	snprintf(out, RENDER_PCRJOB_NAME_LEN + 1, MODEL_JOB_APP "-%.16s", hex);
}

static struct json_object *labels(void)
{
	struct json_object *l = json_add_str(json_obj(), "app", MODEL_JOB_APP);

	return json_add_str(l, "app.kubernetes.io/managed-by", "tec-operator");
}

static struct json_object *metadata(const struct model_image *i,
	const struct render_pcrjob_platforms *p, const char *ns, const char *nonce,
	unsigned attempt)
{
	struct json_object *meta = json_obj(), *annotations = json_obj();
	char name[RENDER_PCRJOB_NAME_LEN + 1], number[16];

	render_pcrjob_name(i, p, name);
	snprintf(number, sizeof(number), "%u", attempt);
	json_add_str(annotations, MODEL_JOB_IMAGE_ANNOTATION, i->obj.name);
	json_add_str(annotations, MODEL_JOB_ATTEMPT_ANNOTATION, number);
	json_add_str(annotations, MODEL_JOB_NONCE_ANNOTATION, nonce);
	json_add_str(meta, "name", name);
	json_add_str(meta, "namespace", ns);
	json_add(meta, "labels", labels());
	json_add(meta, "annotations", annotations);
	return json_add(meta, "ownerReferences",
		json_push(json_arr(), kobj_owner_json(&kobj_image, i->obj.name, i->obj.uid)));
}

static struct json_object *resources(void)
{
	struct json_object *requests = json_obj(), *limits = json_obj();

	json_add_str(requests, "cpu", "100m");
	json_add_str(requests, "memory", "32Mi");
	json_add_str(limits, "cpu", "1");
	json_add_str(limits, "memory", "128Mi");
	return json_add(json_add(json_obj(), "requests", requests), "limits", limits);
}

static struct json_object *mount(const char *name, const char *path)
{
	struct json_object *m = json_add_str(json_obj(), "name", name);

	json_add_str(m, "mountPath", path);
	return json_add_bool(m, "readOnly", true);
}

/* A platform's name may be longer than a volume's. */
static void platform_volume(char out[VOLUME_SIZE], size_t k)
{
	snprintf(out, VOLUME_SIZE, "platform-%zu", k);
}

static struct json_object *mounts(const struct render_pcrjob_platforms *p)
{
	struct json_object *list = json_push(json_arr(), mount("image", "/image"));
	char volume[VOLUME_SIZE];

	for (size_t k = 0; k < p->n; k++) {
		cleanup_free char *path = xasprintf(PLATFORMS "%s", p->v[k].name);

		platform_volume(volume, k);
		json_push(list, mount(volume, path));
	}
	return list;
}

static struct json_object *arguments(
	const struct model_image *i, const struct render_pcrjob_platforms *p, const char *nonce)
{
	struct json_object *args = json_arr();

	json_push_str(json_push_str(args, "--image"), i->image);
	json_push_str(json_push_str(args, "--nonce"), nonce);
	for (size_t k = 0; k < p->n; k++) {
		cleanup_free char *value =
			xasprintf("%s=" PLATFORMS "%s", p->v[k].name, p->v[k].name);

		json_push_str(json_push_str(args, "--platform"), value);
	}
	return args;
}

static struct json_object *container(const struct model_image *i,
	const struct render_pcrjob_platforms *p, const char *tool, const char *nonce)
{
	struct json_object *c = json_obj(), *security = json_obj();

	json_add_bool(security, "allowPrivilegeEscalation", false);
	json_add_bool(security, "readOnlyRootFilesystem", true);
	json_add(security, "capabilities",
		json_add(json_obj(), "drop", json_push_str(json_arr(), "ALL")));
	json_add_str(c, "name", MODEL_JOB_APP);
	json_add_str(c, "image", tool);
	json_add(c, "command", json_push_str(json_arr(), "compute-pcrs"));
	json_add(c, "args", arguments(i, p, nonce));
	json_add(c, "volumeMounts", mounts(p));
	json_add(c, "resources", resources());
	json_add_str(c, "terminationMessagePath", "/dev/termination-log");
	json_add_str(c, "terminationMessagePolicy", "FallbackToLogsOnError");
	return json_add(c, "securityContext", security);
}

static struct json_object *volumes(
	const struct model_image *i, const struct render_pcrjob_platforms *p)
{
	struct json_object *list = json_arr(), *volume = json_obj(), *source = json_obj();
	char name[VOLUME_SIZE];

	json_add_str(source, "reference", i->image);
	json_add_str(source, "pullPolicy", "IfNotPresent"); /* a digest never changes */
	json_add_str(volume, "name", "image");
	json_push(list, json_add(volume, "image", source));
	for (size_t k = 0; k < p->n; k++) {
		platform_volume(name, k);
		volume = json_add_str(json_obj(), "name", name);
		source = json_add_str(json_obj(), "name", p->v[k].name);
		json_push(list, json_add(volume, "configMap", source));
	}
	return list;
}

static struct json_object *pod(const struct model_image *i, const struct render_pcrjob_platforms *p,
	const char *tool, const char *nonce)
{
	struct json_object *o = json_obj(), *security = json_obj();

	json_add_bool(security, "runAsNonRoot", true);
	json_add_int(security, "runAsUser", JOB_USER);
	json_add_int(security, "runAsGroup", JOB_USER);
	json_add(security, "seccompProfile", json_add_str(json_obj(), "type", "RuntimeDefault"));
	json_add_str(o, "restartPolicy", "Never"); /* a failed Pod stays to be looked at */
	json_add_str(o, "serviceAccountName", RENDER_PCRJOB_SERVICE_ACCOUNT);
	json_add_bool(o, "automountServiceAccountToken", false);
	json_add_bool(o, "enableServiceLinks", false);
	json_add(o, "securityContext", security);
	json_add(o, "containers", json_push(json_arr(), container(i, p, tool, nonce)));
	return json_add(o, "volumes", volumes(i, p));
}

struct json_object *render_pcrjob(const struct model_image *i,
	const struct render_pcrjob_platforms *platforms, const char *ns, const char *tool,
	const char *nonce, unsigned attempt)
{
	const struct render_pcrjob_platforms *p = platforms ? platforms : &no_platforms;
	struct json_object *o = json_obj(), *spec = json_obj(), *template = json_obj();
	cleanup_strbuf struct strbuf version = STRBUF_INIT;

	kobj_api_version(&kobj_job, &version);
	json_add(template, "metadata", json_add(json_obj(), "labels", labels()));
	json_add(template, "spec", pod(i, p, tool, nonce));
	json_add_int(spec, "activeDeadlineSeconds", DEADLINE_S);
	json_add_int(spec, "backoffLimit", 1);
	json_add_int(spec, "ttlSecondsAfterFinished", TTL_S);
	json_add(spec, "template", template);
	json_add_str(o, "apiVersion", strbuf_str(&version));
	json_add_str(o, "kind", kobj_job.kind);
	json_add(o, "metadata", metadata(i, p, ns, nonce, attempt));
	return json_add(o, "spec", spec);
}
