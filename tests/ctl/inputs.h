/* SPDX-License-Identifier: MIT */
/* What tests of Trustee's installation share: certificates and signers as others make them, and
 * what the Pod template says. One world per test program's file. */
#ifndef TEC_TESTS_CTL_INPUTS_H
#define TEC_TESTS_CTL_INPUTS_H

#include <criterion/criterion.h>
#include <string.h>

#include "ctl/pairs.h"
#include "ctl/world.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/kobj/owner.h"
#include "tec/pki/cert.h"
#include "tec/pki/key.h"

#define SPEC "{\"publicTrusteeAddr\":\"kbs-service\"}"
/* Without the guard: it is Trustee that reads the certificate, at its start only. */
#define TLS_SPEC                                                                                   \
	"{\"publicTrusteeAddr\":\"kbs-service\",\"trusteeSecret\":\"my-tls\",\"trustee\":{\"guard\":\"Disabled\"}}"
#define DEPLOY "trustee-deployment"
#define HOUR   3600000ull
#define DAY    (24 * HOUR)

static struct world w;

static inline void inputs_up(void)
{
	world_start(&w);
}

static inline void inputs_down(void)
{
	world_stop(&w);
}

/* ---- the hands of others */

static inline void tls_as(const char *name, const char *crt, const char *key, const char *ca)
{
	pair_put(&w, name, crt, key, ca);
}

static inline void tls(int which)
{
	tls_as("my-tls", pair(which)->crt, pair(which)->key, pair(which)->crt);
}

/* A signer as we make it, whose certificate ends in so many days; cluster NULL: nobody's. */
static inline void signer(const char *name, unsigned days, const char *cluster)
{
	cleanup_pki_key struct pki_key *key = pki_key_new_p256();
	cleanup_strbuf struct strbuf cert = STRBUF_INIT, b64 = STRBUF_INIT;
	struct json_object *o = json_obj(), *meta = json_obj(), *data = json_obj();
	struct err err = ERR_INIT;

	cr_assert_eq(pki_cert_self_signed(key, name, clock_wall_s(), days, &cert, &err), 0);
	bytes_to_b64(&b64, cert.data, cert.len);
	json_add_str(meta, "name", name);
	if (cluster)
		json_add(meta, "ownerReferences",
			json_push(json_arr(),
				kobj_owner_json(&kobj_cluster, cluster,
					world_str(&w, &kobj_cluster, cluster, "metadata/uid"))));
	json_add_str(json_add_str(data, "key.pem", "QQ=="), "cert.pem", strbuf_str(&b64));
	json_add(json_add(o, "metadata", meta), "data", data);
	fake_api_put_json(w.api, &kobj_secret, NS, json_add_str(o, "type", "Opaque"));
}

static inline void install(const char *spec)
{
	world_cluster(&w, "tec", spec);
	world_boot(&w, "cma");
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
	fake_transport_forget(w.life->f);
}

static inline void reboot(void)
{
	world_kill(&w);
	world_boot(&w, "cma");
	world_run(&w, 60000);
}

/* ---- what is there */

static inline struct json_object *template(void)
{
	return json_get_obj(world_get(&w, &kobj_deployment, DEPLOY), "spec/template");
}

static inline const char *noted(const char *which)
{
	cleanup_free char *name = xasprintf("trusted-execution-clusters.io/%s", which);
	const char *s = kobj_annotation(template(), name);

	return s ? s : "";
}

/* Does the Pod mount this Secret? */
static inline bool mounts(const char *secret)
{
	struct json_object *a = json_get_arr(template(), "spec/volumes");

	for (size_t i = 0; a && i < json_object_array_length(a); i++)
		if (str_eq(json_get_str(json_object_array_get_idx(a, i), "secret/secretName"),
			    secret))
			return true;
	return false;
}

static inline const char *config(void)
{
	return json_get_str(json_get_obj(world_get(&w, &kobj_configmap, "trustee-data"), "data"),
		"kbs-config.toml");
}

static inline size_t applies(const char *resource)
{
	return fake_transport_count(w.life->f, "apply", resource);
}

static inline const char *installed_message(void)
{
	const char *s = fake_api_condition(w.api, &kobj_cluster, NS, "tec", "Installed", "message");

	return s ? s : "";
}

static inline size_t events_with(const char *reason)
{
	cleanup_free char *want = xasprintf("\"reason\":\"%s\"", reason);

	return world_events(&w, want);
}

#endif
