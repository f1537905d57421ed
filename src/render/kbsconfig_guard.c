/* SPDX-License-Identifier: MIT */
/*
 * The guard in the Pod of a KbsConfig, enabled by its annotation: it serves port 8080 and
 * terminates TLS with the Secrets in spec; Trustee serves plain HTTP on loopback, as its
 * kbs-config.toml must say.
 */
#include "config.h"

#include "kbsconfig_internal.h"

/* Names of the private key and the certificate in a Secret: those of cert-manager, of a
 * TrusteeConfig and of the walkthrough. */
static const char *const keys[2][3] = {
	{"tls.key", "privateKey", "https.key"},
	{"tls.crt", "certificate", "https.crt"},
};

static const char *tls_key(const struct model_input *in, bool certificate)
{
	for (size_t i = 0; i < ARRAY_LEN(keys[0]); i++)
		if (model_input_has(in, keys[certificate][i]))
			return keys[certificate][i];
	return NULL;
}

/* Whether the Secret has the private key or certificate under one of the accepted names. */
static bool has_tls_key(const struct model_kbsconfig *c, const struct render_kbsconfig_source *from,
	bool certificate, struct strbuf *why)
{
	const struct model_input *in =
		kbsconfig_input(c, from, certificate ? KBSCONFIG_HTTPS_CERT : KBSCONFIG_HTTPS_KEY);
	const char *const *names = keys[certificate];

	if (!in || tls_key(in, certificate))
		return true;
	strbuf_addf(why, "Secret %s has none of the keys %s, %s, %s. Add one for the guard.",
		in->obj.name, names[0], names[1], names[2]);
	return false;
}

/* A Trustee reachable beside the guard would make the guard pointless. */
bool kbsconfig_guard_fits(const struct model_kbsconfig *c,
	const struct render_kbsconfig_source *from, const struct model_kbsfile *f, bool legacy,
	struct strbuf *why)
{
	if (!c->guard)
		return true;
	if (!str_eq(c->guard, "tpm") && !str_eq(c->guard, "tpm+sample"))
		strbuf_adds(why, "Annotation " MODEL_KBSCONFIG_GUARD
				 " is neither tpm nor tpm+sample. Correct or remove it.");
	else if (legacy)
		strbuf_adds(why,
			"The guard does not support the protocol of Trustee up to v0.18. Remove annotation " MODEL_KBSCONFIG_GUARD
			".");
	else if (!f->insecure_http || !f->loopback || f->port == RENDER_GUARD_PORT ||
		 f->port == RENDER_GUARD_HEALTH_PORT)
		strbuf_adds(why,
			"With the guard, Trustee must listen on loopback only: set http_server.sockets in kbs-config.toml to [\"127.0.0.1:8081\"] and http_server.insecure_http to true.");
	else
		return has_tls_key(c, from, false, why) && has_tls_key(c, from, true, why);
	return false;
}

/* Project one key of a Secret under the name that the guard expects. */
static void add_source(struct json_object *sources, const struct model_input *in, bool certificate)
{
	struct json_object *one = json_add_str(json_obj(), "name", in->obj.name);

	json_add(one, "items",
		json_push(json_arr(), render_item(tls_key(in, certificate), keys[certificate][0])));
	json_push(sources, json_add(json_obj(), "secret", one));
}

/* Mount the certificate at /etc/tls; the guard reloads it when it changes. */
static void add_tls(const struct kbsconfig_pod *p, struct json_object *more)
{
	const struct model_input *key = kbsconfig_input(p->c, p->from, KBSCONFIG_HTTPS_KEY),
				 *cert = kbsconfig_input(p->c, p->from, KBSCONFIG_HTTPS_CERT);
	struct json_object *guard = json_get_obj(more, "guard"), *sources = json_arr();

	if (!key || !cert) {
		json_object_put(sources);
		return;
	}
	add_source(sources, key, false);
	add_source(sources, cert, true);
	json_push(p->volumes,
		render_named("guard-tls", "projected", json_add(json_obj(), "sources", sources)));
	json_push(json_get_arr(guard, "volumeMounts"), render_mount("guard-tls", "/etc/tls"));
	render_push_all(json_get_arr(guard, "args"), json_get_arr(more, "tls/args"));
}

/* Element 1 of args is the upstream in etc/trustee-guard.yaml; replaced by the port of this
 * Trustee. */
void kbsconfig_add_guard(
	const struct kbsconfig_pod *p, struct json_object *containers, const char *image)
{
	cleanup_json struct json_object *more = render_template("trustee-guard.yaml");
	struct json_object *args = json_get_arr(more, "guard/args");
	cleanup_free char *upstream = xasprintf("--upstream=http://127.0.0.1:%u", p->file->port),
			  *tee = xasprintf("--tee=%s", p->c->guard);

	json_object_array_put_idx(args, 1, json_object_new_string(upstream));
	json_push(args, json_object_new_string(tee));
	add_tls(p, more);
	render_add_guard(containers, p->kbs, more, image);
}
