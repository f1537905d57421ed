/* SPDX-License-Identifier: MIT */
/* The guard in Trustee's Pod. What is rendered without it is tested in test_trustee and
 * test_volumes. */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/render/volumes.h"

#define ID "11111111-2222-4333-8444-555555555555"

static const char *ids[] = {ID}, *aks[] = {"ak-1"};
static char contents[] = "a.b";
static const struct render_volumes files = {{ids, 1}, {aks, 1}, contents};

static const struct variant {
	enum model_delivery delivery;
	const char *secret;
} variants[] = {{MODEL_DELIVERY_ADMIN_API, NULL}, {MODEL_DELIVERY_ADMIN_API, "tls"},
	{MODEL_DELIVERY_VOLUMES, NULL}, {MODEL_DELIVERY_VOLUMES, "tls"}};

static struct model_cluster cluster(const struct variant *v)
{
	return (struct model_cluster){.obj = {.name = "tec", .uid = "c-1"},
		.trustee_port = 9443,
		.delivery = v->delivery,
		.isolation = MODEL_ISOLATION_SHARED,
		.trustee_secret = v->secret};
}

static struct json_object *deployment_of(const struct model_cluster *c, const char *tls_hash)
{
	const struct render_trustee_inputs in = {.tls_hash = tls_hash};
	struct err err = ERR_INIT;
	struct json_object *o =
		c->delivery == MODEL_DELIVERY_VOLUMES
			? render_trustee_deployment_volumes(
				  c, "ns", &render_images_default, &in, &files, &err)
			: render_trustee_deployment(c, "ns", &render_images_default, &in);

	cr_assert(o, "%s", err.text);
	return o;
}

static struct json_object *deployment(const struct variant *v)
{
	struct model_cluster c = cluster(v);

	return deployment_of(&c, "t1");
}

static struct json_object *pick(struct json_object *list, const char *member, const char *value)
{
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *e = json_object_array_get_idx(list, i);

		if (str_eq(json_get_str(e, member), value))
			return e;
	}
	return NULL;
}

static struct json_object *container(struct json_object *o, const char *name)
{
	return pick(json_get_arr(o, "spec/template/spec/containers"), "name", name);
}

static bool has_arg(struct json_object *c, const char *arg)
{
	struct json_object *list = json_get_arr(c, "args");

	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		if (str_eq(json_object_get_string(json_object_array_get_idx(list, i)), arg))
			return true;
	return false;
}

Test(render_guard, trustee_listens_on_loopback_and_the_guard_for_nodes)
{
	for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
		struct model_cluster c = cluster(&variants[i]);
		const struct render_trustee_inputs in = {.tls_hash = NULL};
		bool api = c.delivery == MODEL_DELIVERY_ADMIN_API;
		cleanup_json struct json_object *o = deployment(&variants[i]);
		cleanup_json struct json_object *data = render_trustee_data(&c, "ns", &in);
		struct json_object *kbs = container(o, "kbs"), *guard = container(o, "guard");
		struct json_object *toml = NULL;
		const char *text;

		cr_assert(json_object_object_get_ex(
			json_get_obj(data, "data"), "kbs-config.toml", &toml));
		text = json_object_get_string(toml);
		cr_assert(strstr(text, "\nsockets = [\"127.0.0.1:8081\"]\n"));
		cr_assert(strstr(text, "\ninsecure_http = true\n"));
		cr_assert_null(strstr(text, "0.0.0.0"));
		cr_assert_null(strstr(text, "/etc/tls"));
		cr_assert_null(strstr(text, "#guard"));
		cr_assert_null(strstr(text, "#open"));
		cr_assert_eq(
			json_object_array_length(json_get_arr(o, "spec/template/spec/containers")),
			2);
		cr_assert_null(json_get(kbs, "ports"));
		cr_assert_str_eq(json_get_str(kbs, "image"), render_images_default.trustee);
		cr_assert_str_eq(json_get_str(guard, "image"), render_images_default.operator_);
		cr_assert(has_arg(guard, "--role=guard"));
		cr_assert(has_arg(guard, "--upstream=http://127.0.0.1:8081"));
		cr_assert(has_arg(guard, "--listen-kbs=[::]:8080"));
		cr_assert_eq(has_arg(guard, "--listen-admin=[::]:8082"), api);
		cr_assert_not(render_trustee_deployment_is_foreign(o));
	}
}

Test(render_guard, nodes_are_counted_as_the_operator_counts_them)
{
	struct model_cluster c = cluster(&variants[0]);
	const struct render_trustee_inputs in = {.tls_hash = NULL};
	struct render_images images = render_images_default;
	cleanup_json struct json_object *o = NULL;

	images.rate_limit = "1000,100";
	o = render_trustee_deployment(&c, "ns", &images, &in);
	cr_assert(has_arg(container(o, "guard"), "--rate-limit=1000,100"));
}

Test(render_guard, tls_ends_in_the_guard)
{
	for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
		cleanup_json struct json_object *o = deployment(&variants[i]);
		struct json_object *guard = container(o, "guard"), *mount, *volume;
		bool tls = variants[i].secret != NULL;

		mount = pick(json_get_arr(guard, "volumeMounts"), "mountPath", "/etc/tls");
		volume = pick(json_get_arr(o, "spec/template/spec/volumes"), "name", "trustee-tls");
		cr_assert_eq(mount != NULL, tls);
		cr_assert_eq(volume != NULL, tls);
		cr_assert_eq(has_arg(guard, "--tls-cert=/etc/tls/tls.crt"), tls);
		cr_assert_eq(has_arg(guard, "--tls-key=/etc/tls/tls.key"), tls);
		cr_assert_null(pick(
			json_get_arr(container(o, "kbs"), "volumeMounts"), "name", "trustee-tls"));
		cr_assert_null(pick(json_get_arr(guard, "volumeMounts"), "name", "trustee-token"));
		if (tls)
			cr_assert_str_eq(json_get_str(volume, "secret/secretName"), "tls");
	}
}

/* The guard reads the mounted files again; Trustee's own certificate restarted it. */
Test(render_guard, another_certificate_restarts_nothing)
{
	for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
		struct model_cluster c = cluster(&variants[i]);
		cleanup_json struct json_object *a = deployment_of(&c, "t1"),
						*b = deployment_of(&c, "t2"), *d = NULL;

		cr_assert(json_object_equal(a, b));
		cr_assert_null(render_trustee_tls_hash(a));
		c.guard = MODEL_GUARD_DISABLED;
		d = deployment_of(&c, "t1");
		cr_assert_eq(render_trustee_tls_hash(d) != NULL, variants[i].secret != NULL);
		cr_assert_not(json_object_equal(json_get_obj(a, "spec/template/metadata"),
			json_get_obj(d, "spec/template/metadata")));
		cr_assert_null(container(d, "guard"));
	}
}

Test(render_guard, the_container_meets_the_restricted_standard)
{
	for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
		cleanup_json struct json_object *o = deployment(&variants[i]);
		struct json_object *guard = container(o, "guard");
		struct json_object *drop = json_get_arr(guard, "securityContext/capabilities/drop");

		cr_assert_not(
			json_get_bool(guard, "securityContext/allowPrivilegeEscalation", true));
		cr_assert(json_get_bool(guard, "securityContext/readOnlyRootFilesystem", false));
		cr_assert_str_eq(json_object_get_string(json_object_array_get_idx(drop, 0)), "ALL");
		cr_assert(json_get_str(guard, "resources/requests/memory"));
		cr_assert(json_get_str(guard, "resources/requests/cpu"));
		cr_assert(json_get_str(guard, "resources/limits/memory"));
		cr_assert(json_get_str(guard, "resources/limits/cpu"));
	}
}

/* A probe that nodes could crowd out would restart Trustee under load. */
Test(render_guard, probes_ask_the_guard_where_nodes_do_not)
{
	static const struct {
		const char *container, *probe, *path;
	} probes[] = {{"guard", "startupProbe", "/healthz"}, {"guard", "livenessProbe", "/healthz"},
		{"guard", "readinessProbe", "/readyz"}, {"kbs", "startupProbe", "/readyz"},
		{"kbs", "livenessProbe", "/readyz"}};

	for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
		cleanup_json struct json_object *o = deployment(&variants[i]);
		struct json_object *port =
			pick(json_get_arr(container(o, "guard"), "ports"), "name", "health");
		cleanup_free char *arg = xasprintf(
			"--listen-health=[::]:%d", (int)json_get_int(port, "containerPort", 0));

		cr_assert(has_arg(container(o, "guard"), arg), "%s", arg);
		for (size_t k = 0; k < ARRAY_LEN(probes); k++) {
			struct json_object *p =
				json_get_obj(container(o, probes[k].container), probes[k].probe);

			cr_assert_str_eq(json_get_str(p, "httpGet/path"), probes[k].path);
			cr_assert_str_eq(json_get_str(p, "httpGet/scheme"), "HTTP");
			cr_assert_eq(json_get_int(p, "httpGet/port", 0),
				json_get_int(port, "containerPort", -1));
			cr_assert_null(json_get(p, "tcpSocket"));
		}
		cr_assert_null(json_get(container(o, "kbs"), "readinessProbe"));
	}
}

Test(render_guard, the_services_lead_to_its_two_listeners)
{
	struct model_cluster c = cluster(&variants[0]);
	cleanup_json struct json_object *nodes = render_trustee_service(&c, "ns"),
					*admin = render_trustee_admin_service(&c, "ns");
	struct json_object *p = json_object_array_get_idx(json_get_arr(nodes, "spec/ports"), 0);

	cr_assert_eq(json_get_int(p, "port", 0), 9443);
	cr_assert_eq(json_get_int(p, "targetPort", 0), 8080);
	p = json_object_array_get_idx(json_get_arr(admin, "spec/ports"), 0);
	cr_assert_str_eq(json_get_str(admin, "metadata/name"), "kbs-admin");
	cr_assert_str_eq(json_get_str(admin, "spec/selector/app"), "kbs");
	cr_assert_null(json_get(admin, "spec/type"));
	cr_assert_eq(json_get_int(p, "port", 0), RENDER_TRUSTEE_ADMIN_PORT);
	cr_assert_eq(json_get_int(p, "targetPort", 0), RENDER_TRUSTEE_ADMIN_PORT);
}

Test(render_guard, the_admin_service_is_where_there_is_an_admin_api)
{
	for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
		struct model_cluster c = cluster(&variants[i]);

		cr_expect_eq(render_trustee_has_admin_service(&c),
			c.delivery == MODEL_DELIVERY_ADMIN_API);
		c.guard = MODEL_GUARD_DISABLED;
		cr_expect_not(render_trustee_has_admin_service(&c));
		c.guard = MODEL_GUARD_ENABLED;
		c.deploy = MODEL_DEPLOY_EXTERNAL;
		cr_expect_not(render_trustee_has_admin_service(&c));
	}
}

Test(render_guard, what_trustee_mounts_is_read_back_as_without_it)
{
	cleanup_volumes struct render_volumes l = RENDER_VOLUMES_INIT;
	cleanup_json struct json_object *o = deployment(&variants[3]);

	cr_assert(render_volumes_read(o, &l));
	cr_assert_eq(l.machines.n, 1);
	cr_assert_str_eq(l.machines.v[0], ID);
	cr_assert_eq(l.aks.n, 1);
	cr_assert_str_eq(l.contents, "a.b");
	cr_assert(pick(json_get_arr(container(o, "kbs"), "volumeMounts"), "name", ID));
	cr_assert_null(pick(json_get_arr(container(o, "guard"), "volumeMounts"), "name", ID));
}
