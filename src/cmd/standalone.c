/* SPDX-License-Identifier: MIT */
/*
 * Wiring only: opens the store and puts the first objects into it; the API itself is in apistore/.
 *
 * In the directory of --standalone:
 *
 *   store.db                      all objects, and sealed rows (broker, certificates for nodes)
 *   sealing.key                   seals them, unless --sealing-key or a credential does
 *   ca.*, server.*, token.key     of the API server (apistore/authority.h)
 *   kubeconfig                    of the administrator, while sealing.key is here too
 *   scratch                       of the children that compute images
 */
#include "config.h"

#include "standalone.h"

#include "standalone_restored.h"
#include "standalone_tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/apistore/apiserver.h"
#include "tec/apistore/inproc.h"
#include "tec/apistore/gc.h"
#include "tec/apistore/transport.h"
#include "tec/apistore/unserved.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/render/etc.h"
#include "tec/srv/metrics.h"

#define CLUSTER_NAME "tec"
#define CONNECTIONS  2000

extern const struct render_etc_file standalone_crds[]; /* crd/, via build-aux/embed.sh */

struct standalone {
	struct loop *loop;
	const struct options *options; /* borrowed */
	char *dir, *ns, *host, *server;
	bool made_cluster; /* on this start */
	struct apistore_schema schema;
	struct apistore_kinds *kinds;
	struct apistore_gc *gc;
	struct apistore_objects *objects;
	struct apistore_authority *authority;
	struct standalone_tls *tls; /* for nodes; NULL: none */
	struct apistore_apiserver *api;
};

/* ---- addresses and files */

/* The host at which a client on this machine reaches the listener: "127.0.0.1" for
 * "0.0.0.0:6443". The caller frees. */
static char *host_of(const char *listen)
{
	const char *colon = strrchr(listen, ':');
	cleanup_free char *host = xstrndup(listen, colon ? (size_t)(colon - listen) : 0);
	size_t n = strlen(host);

	if (n >= 2 && host[0] == '[')
		return str_eq(host, "[::]") ? xstrdup("127.0.0.1") : xstrndup(host + 1, n - 2);
	return xstrdup(!*host || str_eq(host, "0.0.0.0") ? "127.0.0.1" : host);
}

/* --sealing-key, or the directory of systemd credentials (systemd.exec(5)). */
static struct apistore_sealing_conf sealing_of(const struct options *o)
{
	return (struct apistore_sealing_conf){o->sealing_key, getenv("CREDENTIALS_DIRECTORY")};
}

/* --check-config must change nothing on disk, so its store is in memory. */
static bool only_checks(const struct standalone *s)
{
	return conf_bool(s->options->conf, "check-config");
}

/* Open the directory with its keys and certificates, which are created if missing. */
static int open_authority(struct standalone *s, struct err *err)
{
	const char *const names[] = {"localhost", "127.0.0.1", "::1", s->host, NULL};
	const struct apistore_authority_conf conf = {s->dir, names, s->server, s->ns,
		s->options->write_kubeconfig, sealing_of(s->options), false, only_checks(s)};

	s->authority = apistore_authority_open(&conf, clock_wall_s(), err);
	return s->authority ? 0 : -1;
}

/* Open the database; our CRDs are compiled in, so a newer program brings its own schemas. */
static int open_store(struct standalone *s, struct err *err)
{
	static const struct apistore_db_conf in_memory = {0};
	struct apistore_db *db =
		only_checks(s)
			? apistore_db_open(&in_memory, err)
			: apistore_sealing_open_db(apistore_authority_sealing(s->authority), err);

	if (!db)
		return -1;
	s->kinds = apistore_kinds_new();
	for (const struct render_etc_file *f = standalone_crds; f->name; f++)
		apistore_kinds_add(s->kinds, f->text);
	s->schema = (struct apistore_schema){.namespaces = true};
	apistore_kinds_use(s->kinds, &s->schema);
	s->objects = apistore_objects_new(db, &s->schema, s->loop);
	s->gc = apistore_gc_new(s->objects);
	return 0;
}

/* ---- initial objects */

/* Apply an object, as kubectl apply --server-side --force-conflicts does. */
static int put(struct standalone *s, const char *path, struct json_object *o, struct err *err)
{
	cleanup_free char *text = json_text(o);
	cleanup_free char *at = xasprintf("%s/%s?fieldManager=tec-operator&force=true", path,
		json_get_str(o, "metadata/name"));
	struct apistore_answer a = apistore_inproc_ask(
		s->objects, "PATCH", at, "application/apply-patch+yaml", text, strlen(text));
	int rc = a.code / 100 == 2 ? 0 : err_set(err, ERR_BUG, "%s: %.200s", at, a.body);

	apistore_answer_fini(&a);
	return rc;
}

/* Namespaces must exist before objects in them are accepted. */
static int put_namespace(struct standalone *s, const char *name, struct err *err)
{
	cleanup_json struct json_object *o = json_obj();

	json_add_str(json_add_str(o, "apiVersion", "v1"), "kind", "Namespace");
	json_add(o, "metadata", json_add_str(json_obj(), "name", name));
	return put(s, "/api/v1/namespaces", o, err);
}

/* The host of --public-address, an IPv6 address with its brackets. The caller frees. *has_port:
 * a port follows it. */
static char *public_host(const struct standalone *s, bool *has_port)
{
	const char *addr = s->options->public_address, *colon = strrchr(addr, ':');

	*has_port = colon && !strchr(colon, ']') && (addr[0] == '[' || strchr(addr, ':') == colon);
	return xstrndup(addr, *has_port ? (size_t)(colon - addr) : strlen(addr));
}

/* Create the certificate for nodes; in a certificate an IPv6 address has no brackets. */
static int make_tls(struct standalone *s, struct err *err)
{
	bool has_port;
	cleanup_free char *host = public_host(s, &has_port);
	size_t len = strlen(host);
	bool bracketed = len > 2 && host[0] == '[' && host[len - 1] == ']';
	cleanup_free char *name = xstrndup(host + bracketed, len - 2 * bracketed);

	s->tls = standalone_tls_new(s->loop, s->objects, s->ns, name, s->options->node_ca, err);
	return s->tls ? 0 : -1;
}

/* HOST and the port of a listener; `port` if the listener is off or picks any port. The caller
 * frees. */
static char *reached_at(const char *host, const char *listen, const char *port)
{
	const char *colon = listen ? strrchr(listen, ':') : NULL;

	return xasprintf("%s:%s", host, colon && !str_eq(colon, ":0") ? colon + 1 : port);
}

/* The spec of the first cluster. Its defaults are the strict ones: no plain text, and no
 * Machine before a node registers its key. */
static struct json_object *first_spec(const struct standalone *s)
{
	const struct options *o = s->options;
	bool has_port;
	cleanup_free char *host = public_host(s, &has_port);
	cleanup_free char *kbs = has_port ? xstrdup(o->public_address)
					  : reached_at(host, o->guard.listen_kbs, "8080");
	cleanup_free char *ignition = reached_at(host, o->listen_register, "8000");
	cleanup_free char *ak = reached_at(host, o->listen_register_ak, "8001");
	struct json_object *spec = json_obj(),
			   *trustee = json_add_str(json_obj(), "deploy", "External");

	json_add_str(json_add_str(spec, "publicTrusteeAddr", kbs), "publicRegisterAddr", ignition);
	json_add_str(spec, "publicAttestationKeyRegisterAddr", ak);
	json_add(spec, "registration", json_add_str(json_obj(), "machine", "AtKey"));
	if (s->tls) {
		json_add_str(spec, "registerServerSecret", STANDALONE_TLS_SECRET);
		json_add_str(spec, "attestationKeyRegisterSecret", STANDALONE_TLS_SECRET);
		json_add_str(trustee, "plaintext", "Refuse");
		if (o->guard.listen_kbs)
			json_add_str(spec, "trusteeSecret", STANDALONE_TLS_SECRET);
	}
	return json_add(spec, "trustee", trustee);
}

/* Create the first TrustedExecutionCluster; an existing one, of any name, is left as it is. */
static int put_cluster(struct standalone *s, struct err *err)
{
	cleanup_free char *path = xasprintf(
		"/apis/trusted-execution-clusters.io/v1alpha1/namespaces/%s/trustedexecutionclusters",
		s->ns);
	cleanup_json struct json_object *list = apistore_inproc_get(s->objects, path);
	cleanup_json struct json_object *o = json_obj();
	struct json_object *items = json_get_arr(list, "items");

	/* Leave what an administrator has made of it since. */
	if (items && json_object_array_length(items) > 0)
		return 0;
	json_add_str(o, "apiVersion", "trusted-execution-clusters.io/v1alpha1");
	json_add_str(o, "kind", "TrustedExecutionCluster");
	json_add(o, "metadata", json_add_str(json_obj(), "name", CLUSTER_NAME));
	json_add(o, "spec", first_spec(s));
	s->made_cluster = true;
	return put(s, path, o, err);
}

/* Put in what must exist from the start and commit it. Objects of kinds that are no longer
 * served are dropped. */
static int fill(struct standalone *s, struct err *err)
{
	if (apistore_unserved_drop(s->objects, err) < 0 || put_namespace(s, "default", err) < 0 ||
		put_namespace(s, s->ns, err) < 0)
		return -1;
	if (s->options->plain)
		log_warn(NULL,
			"nodes get no certificates, their disk keys are readable in plain HTTP",
			"option=--plain");
	else if (s->options->public_address && make_tls(s, err) < 0)
		return -1;
	if (s->options->public_address && put_cluster(s, err) < 0)
		return -1;
	if (standalone_restored_report(s->objects, s->ns, err) < 0)
		return -1;
	return apistore_objects_commit(s->objects, err);
}

/* ---- life */

/* Keys, then the store, then the first objects: each needs the one before. */
struct standalone *standalone_new(struct loop *l, const struct options *o, struct err *err)
{
	struct standalone *s = xcalloc(1, sizeof(*s));

	s->loop = l;
	s->options = o;
	s->dir = xstrdup(o->standalone);
	s->ns = xstrdup(o->namespace_ ? o->namespace_ : STANDALONE_NS);
	s->host = host_of(o->listen_api);
	s->server = xasprintf(strchr(s->host, ':') ? "https://[%s]%s" : "https://%s%s", s->host,
		strrchr(o->listen_api, ':'));
	if (open_authority(s, err) == 0 && open_store(s, err) == 0 && fill(s, err) == 0)
		return s;
	standalone_free(s);
	return NULL;
}

/* The API server uses the objects, and the objects the kinds. */
void standalone_free(struct standalone *s)
{
	if (!s)
		return;
	apistore_apiserver_free(s->api);
	standalone_tls_free(s->tls);
	apistore_gc_free(s->gc);
	if (s->objects)
		apistore_objects_free(s->objects);
	apistore_kinds_free(s->kinds);
	apistore_authority_close(s->authority);
	free(s->server);
	free(s->host);
	free(s->ns);
	free(s->dir);
	free(s);
}

const char *standalone_ns(const struct standalone *s)
{
	return s->ns;
}

struct apistore_objects *standalone_objects(struct standalone *s)
{
	return s->objects;
}

struct k8s_transport *standalone_transport(struct standalone *s)
{
	return apistore_transport_new(s->loop, s->objects);
}

/* The API is served last, when the objects are complete. */
int standalone_listen(struct standalone *s, bool (*ready)(void *arg, const char **why),
	apistore_hand_in_fn hand_in, void *arg, struct err *err)
{
	const struct apistore_apiserver_conf conf = {
		.objects = s->objects,
		.kinds = s->kinds,
		.authority = s->authority,
		.version = PACKAGE_VERSION,
		.max_connections = CONNECTIONS,
		.ready = ready,
		.ready_arg = arg,
		.hand_in = hand_in,
		.hand_in_arg = arg,
		.metrics = srv_metrics_render,
	};

	s->api = apistore_apiserver_new(s->loop, &conf, err);
	if (!s->api)
		return -1;
	if (httpd_listen(apistore_apiserver_httpd(s->api), s->options->listen_api, err) < 0)
		return err_wrap(err, "--listen-api");
	return 0;
}

/* Restore without starting: the directory must hold no objects yet, and --sealing-key must be
 * that of the backup. */
int standalone_restore(const struct options *o, struct err *err)
{
	const char *const none[] = {NULL};
	const struct apistore_authority_conf conf = {
		o->standalone, none, "", "", NULL, sealing_of(o), true, false};
	struct apistore_authority *a = apistore_authority_open(&conf, clock_wall_s(), err);
	int rc;

	if (!a)
		return err->kind != ERR_NOT_FOUND
			       ? -1
			       : err_wrap(err,
					 "a backup can only be opened with the sealing key of the operator that made it; put that key in place first");
	rc = apistore_db_backup_restore(o->restore, o->standalone,
		apistore_sealing_key(apistore_authority_sealing(a)), o->accept_unverified, err);
	apistore_authority_close(a);
	if (rc == 0)
		printf("tec-operator: restored %s into %s; next step: start tec-operator --standalone=%s\n",
			o->restore, o->standalone, o->standalone);
	return rc;
}

/* Only a start that created the keys prints this. */
void standalone_say(const struct standalone *s)
{
	const char *kubeconfig = apistore_authority_kubeconfig(s->authority);

	if (!apistore_authority_is_new(s->authority))
		return;
	printf("tec-operator: created keys and certificates in %s\n", s->dir);
	printf("tec-operator: the Kubernetes API is at %s; clients need the administrator's kubeconfig\n",
		s->server);
	if (s->made_cluster)
		printf("tec-operator: created the TrustedExecutionCluster %s in namespace %s\n",
			CLUSTER_NAME, s->ns);
	else
		printf("tec-operator: no TrustedExecutionCluster in namespace %s: apply one, or start with --public-address\n",
			s->ns);
	if (kubeconfig)
		printf("tec-operator: next step: KUBECONFIG=%s kubectl get machines\n", kubeconfig);
	else
		printf("tec-operator: next step: start with --write-kubeconfig=FILE to get the administrator's kubeconfig\n");
	fflush(stdout);
}

void standalone_drain(struct standalone *s)
{
	if (s->api)
		apistore_apiserver_drain(s->api);
}
