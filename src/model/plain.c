/* SPDX-License-Identifier: MIT */
/* What all extractors of other people's kinds read alike. */
#include "config.h"

#include "tec/model/plain.h"

#include "tec/base/json.h"
#include "tec/base/str.h"
#include "tec/kobj/owner.h"
#include "tec/kobj/subset.h"

#define WHY_MAX 400

static int32_t number(struct json_object *o, const char *path, int32_t dflt)
{
	int64_t n = json_get_int(o, path, dflt);

	return n >= 0 && n <= INT32_MAX ? (int32_t)n : dflt;
}

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
