/* SPDX-License-Identifier: MIT */
/* Readers shared by the extractors of kinds that are not ours. */
#include "config.h"

#include "tec/model/plain.h"

#include <inttypes.h>

#include "tec/base/json.h"
#include "tec/base/str.h"
#include "tec/kobj/key.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"

#define AT(m) offsetof(struct model_plain, m)

#define WHY_MAX 400
#define ITS_OWN "deployment.kubernetes.io/" /* prefix of the Deployment controller's annotations */

/* Counts from outside: a negative or absurd one is replaced by the default. */
static int32_t number(struct json_object *o, const char *path, int32_t dflt)
{
	int64_t n = json_get_int(o, path, dflt);

	return n >= 0 && n <= INT32_MAX ? (int32_t)n : dflt;
}

/*
 * Hash everything that a writer may change, except the status. The generation covers spec, but not
 * labels, owners, finalizers and annotations; those that the Deployment controller writes together
 * with the status are left out, and so are managedFields and the resourceVersion, which change with
 * every status. 0 for a kind without a generation.
 */
uint64_t model_plain_shape(struct json_object *o)
{
	static const char *const parts[] = {
		"metadata/labels", "metadata/ownerReferences", "metadata/finalizers"};
	struct json_object *a = json_get_obj(o, "metadata/annotations");
	int64_t generation = json_get_int(o, "metadata/generation", 0);
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	uint64_t shape;

	if (generation <= 0)
		return 0;
	strbuf_addf(&text, "%s %" PRId64 " %d\n", json_get_str(o, "metadata/uid"), generation,
		json_get(o, "metadata/deletionTimestamp") != NULL);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		struct json_object *part = json_get(o, parts[i]);

		if (part)
			json_canonical(&text, part);
		strbuf_addf(&text, "\n");
	}
	json_each (a, name, value) {
		if (str_starts(name, ITS_OWN))
			continue;
		strbuf_addf(&text, "%s ", name);
		json_canonical(&text, value);
	}
	shape = str_hash(strbuf_str(&text), text.len);
	return shape ? shape : 1;
}

/* Members of other kinds are simply absent: one struct serves Services, Deployments and claims. */
struct kobj *model_plain_extract(struct json_object *o, struct err *err)
{
	cleanup_kobj_pack struct kobj_pack pack = KOBJ_PACK_INIT;
	struct model_plain p = {0};

	if (kobj_meta_read(&pack, o, &p.obj, err) < 0)
		return NULL;
	kobj_pack_str(&pack, AT(owner_uid), kobj_owner_controller(o));
	kobj_pack_str(&pack, AT(render_hash), kobj_annotation(o, KOBJ_RENDER_HASH_ANNOTATION));
	kobj_pack_str(&pack, AT(cluster_ip), json_get_str(o, "spec/clusterIP"));
	kobj_pack_str(&pack, AT(kept_images), kobj_annotation(o, MODEL_KEPT_IMAGES));
	kobj_pack_str(&pack, AT(volume), json_get_str(o, "spec/volumeName"));
	p.seen = json_get_int(o, "status/observedGeneration", 0);
	p.wanted = number(o, "spec/replicas", 1);
	p.ready = number(o, "status/readyReplicas", 0);
	p.updated = number(o, "status/updatedReplicas", 0);
	p.replicas = number(o, "status/replicas", 0);
	p.shape = model_plain_shape(o);
	return kobj_pack_finish(&pack, &p, sizeof(p));
}

void model_plain_field(struct strbuf *out, const char *path)
{
	size_t at;

	strbuf_adds(out, "spec.");
	at = out->len;
	strbuf_adds(out, path);
	for (; at < out->len; at++)
		out->data[at] = out->data[at] == '/' ? '.' : out->data[at];
}

const char *model_plain_text(struct json_object *o, const char *path)
{
	const char *s = json_get_str(o, path);

	return s && *s ? s : NULL;
}

const char *model_plain_needed(struct json_object *o, const char *member, struct err *err)
{
	const char *s = json_get_str(json_get_obj(o, "spec"), member);

	if (!s)
		err_set(err, ERR_INVALID, "spec.%s of %s is missing or not a string", member,
			json_get_str(o, "metadata/name"));
	return s;
}

void model_plain_complain(struct strbuf *problem, const char *path, const char *what)
{
	if (problem->len)
		return;
	model_plain_field(problem, path);
	strbuf_addf(problem, " %s", what);
}

/* An invalid name would make the object invalid that refers to it. */
const char *model_plain_name(struct json_object *spec, const char *path, struct strbuf *problem)
{
	const char *s = model_plain_text(spec, path);

	if (!s || kobj_name_valid(s, strlen(s)))
		return s;
	model_plain_complain(problem, path, "is not a valid object name");
	return NULL;
}

char *model_plain_why(struct json_object *o)
{
	const char *reason = json_get_str(o, "reason"), *message = json_get_str(o, "message");

	if (!reason)
		return NULL;
	return message && *message ? xasprintf("%.64s: %.*s", reason, WHY_MAX, message)
				   : xasprintf("%.64s", reason);
}
