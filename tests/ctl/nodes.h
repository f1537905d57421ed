/* SPDX-License-Identifier: MIT */
/* What tests with a Trustee that answers share: the Trustee, a cluster, a node that joins. One
 * world per test program's file. */
#ifndef TEC_TESTS_CTL_NODES_H
#define TEC_TESTS_CTL_NODES_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ctl/keys.h"
#include "ctl/world.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/uuid.h"
#include "tec/rats/names.h"

#define ADDRESS                                                                                    \
	"\"publicTrusteeAddr\":\"kbs-service\",\"publicAttestationKeyRegisterAddr\":\"reg:8001\""

static struct world w;
static struct fake_kbs *kbs;

static inline void nodes_up(void)
{
	world_start(&w);
	w.kbs = kbs = fake_kbs_new(w.loop);
	fake_kbs_serve(kbs);
}

static inline void nodes_down(void)
{
	world_kill(&w);
	fake_kbs_free(kbs);
	world_stop(&w);
}

/* What Trustee holds for an id; NULL: nothing. */
static inline const char *resource(const char *id)
{
	static char path[RATS_RESOURCE_PATH_MAX];

	rats_resource_path(id, path);
	return fake_kbs_resource(kbs, path);
}

/* Machine "a" with AttestationKey "key", given so long to be delivered. */
static inline void join(uint64_t ms)
{
	world_machine(&w, "a", ID_A, "listener");
	world_run(&w, 2000);
	world_ak(&w, "key", test_pem[0], ID_A, "listener");
	world_run(&w, ms);
}

/* A Secret with an admin key, of a Trustee that is not the cluster's own. */
static inline void admin_key(const char *name)
{
	cleanup_free char *text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\"},\"type\":\"Opaque\",\"data\":{\"private.key\":\"a2V5\"}}",
		name);

	fake_api_put(w.api, &kobj_secret, NS, text);
}

static inline const char *synced(void)
{
	return world_reason(&w, &kobj_cluster, "tec", "TrusteeSynced");
}

static inline const char *synced_message(void)
{
	return fake_api_condition(w.api, &kobj_cluster, NS, "tec", "TrusteeSynced", "message");
}

/* A member of status.authority as text; "-": it has none. */
static inline const char *authority_status(const char *member)
{
	cleanup_free char *path = xasprintf("status/authority/%s", member);
	static char text[300];
	struct json_object *v = json_get(world_get(&w, &kobj_cluster, "tec"), path);

	snprintf(text, sizeof(text), "%s", v ? json_object_get_string(v) : "-");
	return text;
}

#endif
