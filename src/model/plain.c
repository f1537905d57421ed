/* SPDX-License-Identifier: MIT */
/* Readers shared by the extractors of kinds that are not ours. */
#include "config.h"

#include "tec/model/plain.h"

#include <inttypes.h>

#include "tec/base/json.h"
#include "tec/base/str.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"

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
	for (struct lh_entry *e = a ? lh_table_head(json_object_get_object(a)) : NULL; e;
		e = lh_entry_next(e)) {
		if (str_starts(lh_entry_k(e), ITS_OWN))
			continue;
		strbuf_addf(&text, "%s ", (const char *)lh_entry_k(e));
		json_canonical(&text, (struct json_object *)lh_entry_v(e));
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
	kobj_pack_str(&pack, offsetof(struct model_plain, owner_uid), kobj_owner_controller(o));
	kobj_pack_str(&pack, offsetof(struct model_plain, render_hash),
		kobj_annotation(o, KOBJ_RENDER_HASH_ANNOTATION));
	kobj_pack_str(
		&pack, offsetof(struct model_plain, cluster_ip), json_get_str(o, "spec/clusterIP"));
	kobj_pack_str(
		&pack, offsetof(struct model_plain, volume), json_get_str(o, "spec/volumeName"));
	p.seen = json_get_int(o, "status/observedGeneration", 0);
	p.wanted = number(o, "spec/replicas", 1);
	p.ready = number(o, "status/readyReplicas", 0);
	p.updated = number(o, "status/updatedReplicas", 0);
	p.replicas = number(o, "status/replicas", 0);
	p.shape = model_plain_shape(o);
	return kobj_pack_finish(&pack, &p, sizeof(p));
}

char *model_plain_why(struct json_object *o)
{
	const char *reason = json_get_str(o, "reason"), *message = json_get_str(o, "message");

	if (!reason)
		return NULL;
	return message && *message ? xasprintf("%.64s: %.*s", reason, WHY_MAX, message)
				   : xasprintf("%.64s", reason);
}
