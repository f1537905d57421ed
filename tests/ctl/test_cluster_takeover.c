/* SPDX-License-Identifier: MIT */
/* A namespace that the Rust operator installed: its Machines, keys and Trustee. */
#include "config.h"

#include <stdio.h>

#include "ctl/inputs.h"
#include "ctl/keys.h"
#include "tec/model/ak.h"
#include "tec/model/machine.h"

TestSuite(ctl_cluster_takeover, .init = inputs_up, .fini = inputs_down);

/* An object with its one owner. */
static void owned(const struct kobj_gvk *gvk, const char *name, const struct kobj_gvk *owner_gvk,
	const char *owner, const char *rest)
{
	cleanup_json struct json_object *ref =
		kobj_owner_json(owner_gvk, owner, world_str(&w, owner_gvk, owner, "metadata/uid"));
	cleanup_free char *ref_text = json_text(ref);
	cleanup_free char *text =
		xasprintf("{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[%s]},%s}", name,
			ref_text, rest);

	fake_api_put(w.api, gvk, NS, text);
}

#define RUST_DEPLOYMENT                                                                            \
	"\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":{\"app\":\"kbs\"}},\"template\":{" \
	"\"metadata\":{\"labels\":{\"app\":\"kbs\"}},\"spec\":{\"containers\":[{\"name\":\"kbs\"," \
	"\"volumeMounts\":[{\"name\":\"auth\",\"mountPath\":\"/key\"},{\"name\":\"" ID_A           \
	"\",\"mountPath\":\"/opt/trustee/kbs-repository/default/" ID_A "\"}]}],"                   \
	"\"volumes\":[{\"name\":\"auth\",\"secret\":{\"secretName\":\"trustee-auth\"}},"           \
	"{\"name\":\"" ID_A "\",\"secret\":{\"secretName\":\"" ID_A "\"}}]}}}"
#define RUST_ROOT "eyJrZXlfdHlwZSI6Im9jdCIsImtleSI6IkFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBIn0="

static const char *approved_by_rust(void)
{
	static char text[512];

	snprintf(text, sizeof(text),
		"{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"trusted-execution-clusters.io/v1alpha1\","
		"\"kind\":\"Machine\",\"name\":\"machine-a\",\"uid\":\"%s\",\"controller\":true}]},"
		"\"status\":{\"conditions\":[{\"type\":\"Approved\",\"status\":\"True\",\"reason\":"
		"\"MachineCreated\",\"message\":\"\",\"lastTransitionTime\":\"2024-01-01T00:00:00Z\"}]}}",
		world_str(&w, &kobj_machine, "machine-a", "metadata/uid"));
	return text;
}

/* As the Rust operator leaves a namespace with one node. */
static void rust_leaves(void)
{
	cleanup_strbuf struct strbuf pem = STRBUF_INIT;
	cleanup_free char *ak = NULL;

	world_cluster(&w, "tec", SPEC);
	owned(&kobj_secret, "trustee-auth", &kobj_cluster, "tec",
		"\"type\":\"Opaque\",\"data\":{\"private.key\":\"QQ==\",\"public.pub\":\"Qg==\"}");
	owned(&kobj_configmap, "trustee-data", &kobj_cluster, "tec",
		"\"data\":{\"kbs-config.toml\":\"x\",\"reference-values.json\":\"[]\"}");
	owned(&kobj_deployment, DEPLOY, &kobj_cluster, "tec", RUST_DEPLOYMENT);
	owned(&kobj_deployment, "register-server", &kobj_cluster, "tec", "\"spec\":{}");
	owned(&kobj_machine, "machine-a", &kobj_cluster, "tec", "\"spec\":{\"id\":\"" ID_A "\"}");
	fake_api_merge(w.api, &kobj_machine, NS, "machine-a",
		"{\"metadata\":{\"finalizers\":[\"finalizer.machine.trusted-execution-clusters.io\"]}}");
	owned(&kobj_secret, ID_A, &kobj_machine, "machine-a",
		"\"type\":\"Opaque\",\"data\":{\"root\":\"" RUST_ROOT "\"}");
	world_ak(&w, "ak-a", test_pem[0], ID_A, NULL);
	fake_api_merge(w.api, &kobj_ak, NS, "ak-a", approved_by_rust());
	bytes_to_b64(&pem, test_pem[0], strlen(test_pem[0]));
	ak = xasprintf("\"type\":\"Opaque\",\"data\":{\"public_key\":\"%s\"}", strbuf_str(&pem));
	owned(&kobj_secret, "ak-a", &kobj_ak, "ak-a", ak);
	fake_api_merge(w.api, &kobj_secret, NS, "ak-a",
		"{\"metadata\":{\"finalizers\":[\"" MODEL_AK_SECRET_FINALIZER "\"]}}");
	world_since(&w);
}

Test(ctl_cluster_takeover, a_rust_installation_is_taken_over_with_its_keys)
{
	cleanup_free char *was = NULL;

	rust_leaves();
	was = xstrdup(world_str(&w, &kobj_deployment, DEPLOY, "metadata/uid"));
	world_boot(&w, "cma");
	world_run(&w, 60000);
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True", "%s",
		installed_message());
	cr_assert_str_neq(world_str(&w, &kobj_deployment, DEPLOY, "metadata/uid"), was);
	cr_assert(!mounts(ID_A) && mounts("trustee-token"));
	cr_assert_eq(events_with("TakenOver"), 1);
	cr_assert_eq(fake_transport_count(w.life->f, "delete", "deployments"), 2);
	cr_assert_null(world_get(&w, &kobj_deployment, "register-server"));
	/* no key is another one, and it waits for Trustee */
	cr_assert_str_eq(world_str(&w, &kobj_secret, ID_A, "data/root"), RUST_ROOT);
	cr_assert(world_marked(&w, &kobj_machine, "machine-a", MODEL_KEY_SHA256_ANNOTATION));
	cr_assert(world_marked(&w, &kobj_machine, "machine-a", MODEL_BOUND_KEY_ANNOTATION));
	cr_assert_str_eq(world_cond(&w, &kobj_machine, "machine-a", "KeyReady"), "True");
	cr_assert_str_eq(world_cond(&w, &kobj_ak, "ak-a", "Approved"), "True");
	cr_assert(key_declared(&w, ID_A));
	cr_assert(identity_declared(&w, test_pem[0]));
	cr_assert_str_eq(
		json_get_str(json_get_obj(world_get(&w, &kobj_secret, "trustee-auth"), "data"),
			"private.key"),
		"QQ==");
	reboot();
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
}

Test(ctl_cluster_takeover, the_old_deployment_goes_on_while_a_new_one_could_not_start)
{
	rust_leaves();
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-auth");
	fake_api_put(w.api, &kobj_secret, NS,
		"{\"metadata\":{\"name\":\"trustee-auth\"},\"data\":{\"private.key\":\"QQ==\"}}");
	signer("trustee-token", 3650, NULL);
	tls(0);
	fake_api_merge(
		w.api, &kobj_cluster, NS, "tec", "{\"spec\":{\"trusteeSecret\":\"my-tls\"}}");
	world_boot(&w, "c");
	world_run(&w, HOUR);
	cr_assert(mounts(ID_A) && strstr(installed_message(), "trustee-token"));
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-token");
	world_run(&w, HOUR);
	cr_assert(mounts(ID_A) && strstr(installed_message(), "trustee-auth"));
	fake_api_delete(w.api, &kobj_secret, NS, "my-tls");
	fake_api_delete(w.api, &kobj_secret, NS, "trustee-auth");
	world_run(&w, HOUR);
	cr_assert(mounts(ID_A) && strstr(installed_message(), "my-tls"));
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Installing");
	fake_transport_forget(w.life->f);
	world_run(&w, 2 * HOUR);
	cr_assert_eq(fake_transport_writes(w.life->f), 0);
	tls(0);
	world_run(&w, 60000);
	cr_assert(!mounts(ID_A) && mounts("my-tls"));
	cr_assert_str_eq(world_cond(&w, &kobj_cluster, "tec", "Installed"), "True");
}

/* What the new Pod mounts is there before the old one goes: that is the whole gap. */
Test(ctl_cluster_takeover, the_old_deployment_goes_when_all_else_is_in_place)
{
	size_t deleted = 0, applied = 0, i = 0;

	rust_leaves();
	world_boot(&w, "c");
	world_run(&w, 60000);
	for (; i < fake_transport_requests(w.life->f); i++) {
		const struct fake_request *r = fake_transport_request(w.life->f, i);

		if (str_eq(r->verb, "delete") && strstr(r->path, DEPLOY))
			deleted = i;
		else if (str_eq(r->verb, "apply") && strstr(r->path, DEPLOY))
			applied = i;
		else if (str_eq(r->verb, "create") && str_eq(r->resource, "secrets"))
			cr_assert_eq(deleted, 0);
		else if (str_eq(r->resource, "configmaps") && strstr(r->path, "trustee-"))
			cr_assert(deleted == 0 || str_eq(r->method, "GET"));
	}
	cr_assert(deleted && applied > deleted);
}

Test(ctl_cluster_takeover, nobodys_deployment_of_that_form_is_a_conflict)
{
	uint64_t rv;

	fake_api_put(w.api, &kobj_deployment, NS,
		"{\"metadata\":{\"name\":\"" DEPLOY "\"}," RUST_DEPLOYMENT "}");
	world_cluster(&w, "tec", SPEC);
	world_boot(&w, "cma");
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert(mounts(ID_A));
	cr_assert_eq(fake_transport_count(w.life->f, "delete", NULL), 0);
	cr_assert_eq(applies("deployments"), 0);
	rv = fake_api_rv(w.api);
	reboot();
	cr_assert_eq(fake_api_rv(w.api), rv);
}

Test(ctl_cluster_takeover, another_owners_deployment_of_that_form_stays)
{
	fake_api_put(w.api, &kobj_deployment, NS,
		"{\"metadata\":{\"name\":\"" DEPLOY
		"\",\"ownerReferences\":[{\"apiVersion\":\"x/v1\","
		"\"kind\":\"TrustedExecutionCluster\",\"name\":\"t\",\"uid\":\"other\","
		"\"controller\":true}]}," RUST_DEPLOYMENT "}");
	world_cluster(&w, "tec", SPEC);
	world_boot(&w, "cma");
	world_run(&w, 60000);
	cr_assert_str_eq(world_reason(&w, &kobj_cluster, "tec", "Installed"), "Conflict");
	cr_assert_eq(fake_transport_count(w.life->f, "delete", NULL), 0);
	cr_assert(mounts(ID_A));
}
