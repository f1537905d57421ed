/* SPDX-License-Identifier: MIT */
/*
 * Opens the store and puts into it what must exist from the start: the first objects, the
 * certificate for nodes, a report of a restoration. The API itself is in apihttp/.
 *
 * In the directory of --standalone:
 *
 *   store.db                      all objects, and sealed rows (broker, certificates for nodes)
 *   sealing.key                   seals them, unless --sealing-key or a credential does
 *   ca.*, server.*, token.key     of the API server (apihttp/authority.h)
 *   kubeconfig                    of the administrator, while sealing.key is here too
 *   scratch                       of the children that compute images
 */
#include "config.h"

#include "standalone.h"

#include "node_ca.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/apihttp/listener.h"
#include "tec/apireq/inproc.h"
#include "tec/store/gc.h"
#include "tec/store/rows.h"
#include "tec/apireq/transport.h"
#include "tec/apireq/unserved.h"
#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/loop/timer.h"
#include "tec/pki/ca.h"
#include "tec/pki/cert.h"
#include "tec/render/etc.h"
#include "tec/srv/metrics.h"

#define CLUSTER_NAME "tec"
#define CONNECTIONS  2000
#define OUR_API      "/apis/trusted-execution-clusters.io/v1alpha1/namespaces/%s/"
#define NOTE_MAX     1024 /* of events.k8s.io */

#define TLS_SECRET   "standalone-tls"
#define TLS_TABLE    "standalone/node-tls"
#define NAMES_MAX    32
#define EVERY_MS     (24 * 3600 * 1000) /* between two checks */
#define CA_LEFT_DAYS 730                /* validity left at which the CA certificate is renewed */
#define LEFT_DAYS    60                 /* the same for the listeners' certificate */

extern const struct render_etc_file standalone_crds[]; /* crd/, via build-aux/embed.sh */

/*
 * The certificate of the three listeners for nodes, in a Secret like those that a cluster names.
 * The keys of its CA and of the certificate are sealed rows and are created only once: nodes keep
 * the CA certificate as long as they live, and also trust an operator that was restored elsewhere.
 * This CA is separate from the API's, whose key must be in no backup.
 */
struct node_tls {
	char *path, *host; /* owned; API path of the Secret; host in the nodes' URLs */
	struct pki_key *ca_key, *key;
	struct strbuf ca; /* certificate of the CA, PEM */
	struct timer next;
};

struct standalone {
	struct loop *loop;
	const struct options *options; /* borrowed */
	char *ns, *server;             /* owned */
	bool made_cluster;             /* on this start */
	struct store_schema schema;
	struct apireq_kinds *kinds;
	struct store_gc *gc;
	struct store_objects *objects;
	struct apihttp_authority *authority;
	struct node_tls tls; /* path NULL: nodes use plain HTTP */
	struct apihttp_listener *api;
};

/* ---- the store */

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
static struct store_sealing_conf sealing_of(const struct options *o)
{
	return (struct store_sealing_conf){o->sealing_key, getenv("CREDENTIALS_DIRECTORY")};
}

/* --check-config must change nothing on disk, so its store is in memory. */
static bool only_checks(const struct standalone *s)
{
	return conf_bool(s->options->conf, "check-config");
}

/* Open the database; our CRDs are compiled in, so a newer program brings its own schemas. */
static int open_store(struct standalone *s, struct err *err)
{
	static const struct store_db_conf in_memory = {0};
	struct store_db *db =
		only_checks(s)
			? store_db_open(&in_memory, err)
			: store_sealing_open_db(apihttp_authority_sealing(s->authority), err);

	if (!db)
		return -1;
	s->kinds = apireq_kinds_new();
	for (const struct render_etc_file *f = standalone_crds; f->name; f++)
		apireq_kinds_add(s->kinds, f->text);
	s->schema = (struct store_schema){.namespaces = true};
	apireq_kinds_use(s->kinds, &s->schema);
	s->objects = store_objects_new(db, &s->schema, s->loop);
	s->gc = store_gc_new(s->objects);
	return 0;
}

/* ---- initial objects */

/* Apply an object, as kubectl apply --server-side --force-conflicts does. */
static int put(
	struct standalone *s, const char *path, const char *text, size_t len, struct err *err)
{
	cleanup_free char *at = xasprintf("%s?fieldManager=tec-operator&force=true", path);

	return apireq_inproc_must(
		s->objects, "PATCH", at, "application/apply-patch+yaml", text, len, err);
}

/* Apply an object made of kind, name and spec; a Namespace has no spec. */
static int put_object(struct standalone *s, const char *list, const char *version, const char *kind,
	const char *name, struct json_object *take_spec, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/%s", list, name), *text = NULL;
	cleanup_json struct json_object *o = json_obj();

	json_add_str(json_add_str(o, "apiVersion", version), "kind", kind);
	json_add(o, "metadata", json_add_str(json_obj(), "name", name));
	if (take_spec)
		json_add(o, "spec", take_spec);
	text = json_text(o);
	return put(s, path, text, strlen(text), err);
}

/* The host of --public-address, an IPv6 address with its brackets. The caller frees. *has_port:
 * a port follows it. */
static char *public_host(const struct standalone *s, bool *has_port)
{
	const char *addr = s->options->public_address, *colon = strrchr(addr, ':');

	*has_port = colon && !strchr(colon, ']') && (addr[0] == '[' || strchr(addr, ':') == colon);
	return xstrndup(addr, *has_port ? (size_t)(colon - addr) : strlen(addr));
}

/* HOST and the port of a listener; `port` if the listener is off or picks any port. The caller
 * frees. */
static char *reached_at(const char *host, const char *listen, const char *port)
{
	const char *colon = listen ? strrchr(listen, ':') : NULL;

	return xasprintf("%s:%s", host, colon && !str_eq(colon, ":0") ? colon + 1 : port);
}

/* Create the first TrustedExecutionCluster; an existing one, of any name, is left as it is: an
 * administrator may have changed it. The defaults of spec are the strict ones: no plain text, and
 * no Machine before a node registers its key. */
static int put_cluster(struct standalone *s, struct err *err)
{
	const struct options *o = s->options;
	bool has_port;
	cleanup_free char *path = xasprintf(OUR_API "trustedexecutionclusters", s->ns),
			  *host = public_host(s, &has_port),
			  *kbs = has_port ? xstrdup(o->public_address)
					  : reached_at(host, o->guard.listen_kbs, "8080"),
			  *ignition = reached_at(host, o->listen_register, "8000"),
			  *ak = reached_at(host, o->listen_register_ak, "8001");
	cleanup_json struct json_object *list = apireq_inproc_get(s->objects, path);
	struct json_object *spec, *trustee;

	if (json_len(json_get_arr(list, "items")) > 0)
		return 0;
	spec = json_obj();
	trustee = json_add_str(json_obj(), "deploy", "External");
	json_add_str(json_add_str(spec, "publicTrusteeAddr", kbs), "publicRegisterAddr", ignition);
	json_add_str(spec, "publicAttestationKeyRegisterAddr", ak);
	json_add(spec, "registration", json_add_str(json_obj(), "machine", "AtKey"));
	json_add(spec, "attestation", json_add_str(json_obj(), "release", "OncePerBoot"));
	if (s->tls.path) {
		json_add_str(spec, "registerServerSecret", TLS_SECRET);
		json_add_str(spec, "attestationKeyRegisterSecret", TLS_SECRET);
		json_add_str(trustee, "plaintext", "Refuse");
		if (o->guard.listen_kbs)
			json_add_str(spec, "trusteeSecret", TLS_SECRET);
	}
	json_add(spec, "trustee", trustee);
	s->made_cluster = true;
	return put_object(s, path, "trusted-execution-clusters.io/v1alpha1",
		"TrustedExecutionCluster", CLUSTER_NAME, spec, err);
}

/* ---- the certificate for nodes */

/* Load the keys. The first start creates both, or stores those of a given CA (--node-ca; or NULL)
 * and its certificate, in one commit: a crash in between must not leave half of them. */
static int load_keys(struct standalone *s, const struct pki_ca *given, struct err *err)
{
	struct node_tls *t = &s->tls;

	t->ca_key = store_rows_get_key(s->objects, TLS_TABLE, "ca.key", err);
	if (!t->ca_key && err->kind == ERR_NOT_FOUND) {
		cleanup_pki_key struct pki_key *made = given ? NULL : pki_key_new_p256(),
					       *key = pki_key_new_p256();

		err_clear(err);
		if (store_rows_set_key(
			    s->objects, TLS_TABLE, "ca.key", given ? given->key : made, err) < 0 ||
			store_rows_set_key(s->objects, TLS_TABLE, "key", key, err) < 0 ||
			(given && store_rows_set(s->objects, TLS_TABLE, "ca.crt", given->cert.data,
					  given->cert.len, err) < 0) ||
			store_objects_commit(s->objects, err) < 0)
			return -1;
		t->ca_key = store_rows_get_key(s->objects, TLS_TABLE, "ca.key", err);
	}
	if (t->ca_key && given &&
		!pki_issue_fits(strbuf_str(&given->cert), given->cert.len, t->ca_key))
		return err_set(err, ERR_INVALID,
			"the directory of --standalone already has another CA, which its nodes trust; next step: start without the option, or with a new directory");
	t->key = t->ca_key ? store_rows_get_key(s->objects, TLS_TABLE, "key", err) : NULL;
	return t->key ? 0 : -1;
}

/* Load the keys and the certificate of the CA, which renew() creates if it is missing. */
static int load_rows(struct standalone *s, struct err *err)
{
	const char *file = s->options->node_ca;
	cleanup_pki_ca struct pki_ca given = {.key = NULL};
	void *data = NULL;
	size_t len;

	if (file && node_ca_read(file, &given, err) < 0)
		return err_wrap(err, "option --node-ca");
	if (load_keys(s, file ? &given : NULL, err) < 0)
		return -1;
	if (store_rows_get(s->objects, TLS_TABLE, "ca.crt", &data, &len, err) == 0) {
		strbuf_add(&s->tls.ca, data, len);
		free(data);
	} else if (err->kind != ERR_NOT_FOUND) {
		return -1;
	}
	err_clear(err);
	return 0;
}

/* Decode data/`name` of the Secret; "" if absent. The caller frees. */
static char *member(struct json_object *secret, const char *name)
{
	cleanup_free char *at = xasprintf("data/%s", name);
	const char *b64 = json_get_str(secret, at);
	cleanup_free uint8_t *bytes = NULL;
	size_t len;

	if (!b64 || bytes_from_b64(b64, strlen(b64), &bytes, &len) < 0)
		return xstrdup("");
	return xstrndup((const char *)bytes, len);
}

static void add_member(struct strbuf *out, const char *name, const void *data, size_t len)
{
	strbuf_addf(out, "\"%s\":\"", name);
	bytes_to_b64(out, data, len);
	strbuf_addc(out, '"');
}

/* Write the Secret as text, so that no JSON object of ours holds the private key. The text is
 * wiped; the store seals the Secret. */
static int put_secret(struct standalone *s, const struct strbuf *cert, struct err *err)
{
	cleanup_secret struct secret *pem = pki_key_private_pem(s->tls.key);
	cleanup_wiped_strbuf struct strbuf text = STRBUF_INIT;

	strbuf_adds(&text,
		"{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"" TLS_SECRET
		"\"},\"type\":\"kubernetes.io/tls\",\"data\":{");
	add_member(&text, "tls.crt", cert->data, cert->len);
	strbuf_addc(&text, ',');
	add_member(&text, "ca.crt", s->tls.ca.data, s->tls.ca.len);
	strbuf_addc(&text, ',');
	add_member(&text, "tls.key", secret_peek(pem), secret_len(pem));
	strbuf_adds(&text, "}}");
	return put(s, s->tls.path, text.data, text.len, err);
}

/* Names of the certificate. */
struct names {
	size_t n;
	char *v[NAMES_MAX + 1]; /* owned; NULL-terminated */
};

static void names_fini(struct names *names)
{
	while (names->n)
		free(names->v[--names->n]);
}

/* take_name NULL: there is none. */
static void names_add(struct names *names, char *take_name)
{
	for (size_t i = 0; take_name && i < names->n; i++)
		if (str_eq(names->v[i], take_name))
			free(steal_ptr(&take_name));
	if (take_name && names->n < NAMES_MAX)
		names->v[names->n++] = take_name;
	else
		free(take_name);
}

/* The hosts at which nodes reach this machine as the clusters say: installed disks keep
 * publicTrusteeAddr for good, whatever --public-address is now. trusteeServers are other machines. */
static void names_of_clusters(const struct standalone *s, struct names *names)
{
	static const char *const fields[] = {"spec/publicTrusteeAddr", "spec/publicRegisterAddr",
		"spec/publicAttestationKeyRegisterAddr"};
	cleanup_free char *path = xasprintf(OUR_API "trustedexecutionclusters", s->ns);
	cleanup_json struct json_object *list = apireq_inproc_get(s->objects, path);
	struct json_object *items = json_get_arr(list, "items");

	for (size_t i = 0; i < json_len(items); i++)
		for (size_t k = 0; k < ARRAY_LEN(fields); k++)
			names_add(names, str_host(json_get_str(json_at(items, i), fields[k])));
}

/* Issue a certificate if the Secret's, of which only the public part is read, does not match the
 * CA, the key or the names, or expires soon. Before that the CA certificate is renewed with the
 * same key and subject, so that nodes with the earlier certificate still trust it. */
static int renew(struct standalone *s, struct err *err)
{
	struct node_tls *t = &s->tls;
	static const char *const local[] = {"localhost", "127.0.0.1", "::1"};
	int64_t now_s = clock_wall_s();
	struct pki_issue what = {PKI_ISSUE_SERVER, t->host, NULL, NULL, now_s, PKI_CA_LEAF_DAYS};
	__attribute__((cleanup(names_fini))) struct names names = {.n = 0};
	cleanup_json struct json_object *secret = apireq_inproc_get(s->objects, t->path);
	cleanup_free char *cert = member(secret, "tls.crt"), *ca = member(secret, "ca.crt");
	cleanup_strbuf struct strbuf new_ca = STRBUF_INIT, made = STRBUF_INIT;

	names_add(&names, xstrdup(t->host));
	for (size_t i = 0; i < ARRAY_LEN(local); i++)
		names_add(&names, xstrdup(local[i]));
	names_of_clusters(s, &names);
	what.names = (const char *const *)names.v;
	if (!pki_cert_lasts(strbuf_str(&t->ca), t->ca.len, now_s, CA_LEFT_DAYS)) {
		if (pki_ca_issue(t->ca_key, t->ca.len ? t->ca.data : NULL, now_s, &new_ca, err) < 0)
			return -1;
		strbuf_reset(&t->ca);
		strbuf_add(&t->ca, new_ca.data, new_ca.len);
		if (store_rows_set(s->objects, TLS_TABLE, "ca.crt", t->ca.data, t->ca.len, err) < 0)
			return -1;
	}
	if (str_eq(ca, strbuf_str(&t->ca)) &&
		pki_issue_serves(cert, strlen(cert), t->key, what.names, now_s, LEFT_DAYS))
		return 0;
	if (pki_issue(&what, t->key, t->ca_key, strbuf_str(&t->ca), &made, err) < 0)
		return err_wrap(err, "--public-address");
	if (put_secret(s, &made, err) < 0)
		return -1;
	log_info(NULL, "certificate for nodes created", "secret=%s host=%s", TLS_SECRET,
		log_esc(t->host));
	return 0;
}

/* Of a start with another address than the store's: nothing moves by itself. */
static void compare_address(const struct standalone *s)
{
	__attribute__((cleanup(names_fini))) struct names names = {.n = 0};

	names_of_clusters(s, &names);
	for (size_t i = 0; i < names.n; i++)
		if (str_eq(names.v[i], s->tls.host))
			return;
	if (names.n)
		log_warn(NULL,
			"nodes do not use this --public-address: the addresses of the TrustedExecutionCluster are others, and its "
			"certificate covers them too. Installed nodes need publicTrusteeAddr to lead here as long as they exist; for "
			"new ones, set publicRegisterAddr and publicAttestationKeyRegisterAddr",
			"option=%s publicTrusteeAddr=%s", log_esc(s->tls.host),
			log_esc(names.v[0]));
}

/* After an error the next attempt is a day later: renewal starts LEFT_DAYS before the expiry. */
static void on_time(void *arg)
{
	struct standalone *s = arg;
	struct err err = ERR_INIT;

	if (renew(s, &err) < 0)
		log_err(LOG_ERROR, NULL, "cannot renew the certificate for nodes", &err);
	timer_set(&s->tls.next, EVERY_MS);
}

/* The first renewal is part of the start: without a certificate no node could be served. In a
 * certificate an IPv6 address has no brackets. */
static int make_tls(struct standalone *s, struct err *err)
{
	bool has_port;
	cleanup_free char *host = public_host(s, &has_port);
	size_t len = strlen(host);
	bool bracketed = len > 2 && host[0] == '[' && host[len - 1] == ']';

	s->tls.path = xasprintf("/api/v1/namespaces/%s/secrets/" TLS_SECRET, s->ns);
	s->tls.host = xstrndup(host + bracketed, len - 2 * bracketed);
	timer_init(&s->tls.next, s->loop, on_time, s);
	if (load_rows(s, err) < 0 || renew(s, err) < 0)
		return -1;
	compare_address(s);
	timer_set(&s->tls.next, EVERY_MS);
	return 0;
}

/* ---- the first start after --restore, or with a store from before 0.3.0 */

/* By the condition: the annotation is only a request. */
static bool is_approved(struct json_object *key)
{
	struct json_object *conditions = json_get_arr(key, "status/conditions");

	for (size_t i = 0; i < json_len(conditions); i++) {
		struct json_object *c = json_at(conditions, i);

		if (str_eq(json_get_str(c, "type"), "Approved"))
			return str_eq(json_get_str(c, "status"), "True");
	}
	return false;
}

/* Append the names of approved keys, as many as fit into the note. */
static void add_names(struct strbuf *note, struct json_object *keys)
{
	static const char more[] = " and others (kubectl get attestationkeys)";
	size_t n = 0;

	for (size_t i = 0; i < json_len(keys); i++) {
		struct json_object *key = json_at(keys, i);
		const char *name = json_get_str(key, "metadata/name");

		if (!name || !is_approved(key))
			continue;
		if (note->len + strlen(name) + sizeof(more) + 3 > NOTE_MAX) {
			strbuf_adds(note, more);
			break;
		}
		strbuf_addf(note, "%s%s", n++ > 0 ? ", " : "", name);
	}
	strbuf_adds(note, n > 0 ? "." : "none.");
}

/* Render the Event. version, the store's resourceVersion, makes its name unique. */
static struct json_object *event_of(
	const char *ns, struct json_object *cluster, const char *note, uint64_t version)
{
	struct json_object *o = json_obj(), *meta = json_obj(), *about = json_obj();
	const char *name = json_get_str(cluster, "metadata/name");
	cleanup_free char *event_name = xasprintf("%.200s.restored-%" PRIu64, name, version);
	char now[CLOCK_RFC3339_US_LEN];

	clock_format_us(clock_wall_us(), now);
	json_add_str(json_add_str(meta, "name", event_name), "namespace", ns);
	json_add_str(about, "apiVersion", "trusted-execution-clusters.io/v1alpha1");
	json_add_str(about, "kind", "TrustedExecutionCluster");
	json_add_str(json_add_str(about, "namespace", ns), "name", name);
	json_add_str(about, "uid", json_get_str(cluster, "metadata/uid"));
	json_add_str(json_add_str(o, "apiVersion", "events.k8s.io/v1"), "kind", "Event");
	json_add(o, "metadata", meta);
	json_add_str(json_add_str(o, "eventTime", now), "type", "Warning");
	json_add_str(json_add_str(o, "reason", "Restored"), "action", "Restore");
	json_add_str(o, "reportingController", PACKAGE_NAME);
	json_add_str(o, "reportingInstance", PACKAGE_NAME);
	json_add(o, "regarding", about);
	return json_add_str(o, "note", note);
}

/*
 * List the approved keys in an Event and a log line: a backup may contain the approval of a key
 * that was revoked since, which only a person can know. One text serves restored and converted
 * stores, as what to do is the same. The Event is about the TrustedExecutionCluster that has the
 * keys; without one, no key is in use. It goes through the API, so that validation, defaults and
 * watches apply, and is committed together with what else this start writes.
 */
static int report_restored(struct standalone *s, struct err *err)
{
	const struct store_db *db = store_objects_db(s->objects);
	cleanup_free char *clusters_path = xasprintf(OUR_API "trustedexecutionclusters", s->ns),
			  *keys_path = xasprintf(OUR_API "attestationkeys", s->ns),
			  *path = xasprintf("/apis/events.k8s.io/v1/namespaces/%s/events", s->ns),
			  *text = NULL;
	cleanup_json struct json_object *clusters = NULL, *keys = NULL, *event = NULL;
	cleanup_strbuf struct strbuf note = STRBUF_INIT;
	struct json_object *cluster;
	char at[CLOCK_RFC3339_LEN];

	if (!store_db_just_restored(db))
		return 0;
	clusters = apireq_inproc_get(s->objects, clusters_path);
	keys = apireq_inproc_get(s->objects, keys_path);
	clock_format(store_db_restored_s(db), at);
	strbuf_addf(&note,
		"The store was restored from a backup, or converted from a version before 0.3.0, at %s. "
		"Machines created before that without an approved key get one only from an administrator. "
		"Delete each AttestationKey that was revoked after the backup was made. Approved keys: ",
		at);
	add_names(&note, json_get_arr(keys, "items"));
	log_warn(NULL, strbuf_str(&note), NULL);
	/* The API lists by name; one namespace has one cluster that is served. */
	cluster = json_at(json_get_arr(clusters, "items"), 0);
	if (!cluster)
		return 0;
	event = event_of(s->ns, cluster, strbuf_str(&note), store_objects_rv(s->objects));
	text = json_text(event);
	return apireq_inproc_must(
		s->objects, "POST", path, "application/json", text, strlen(text), err);
}

/* ---- life */

/* Put in what must exist from the start and commit it; namespaces come before the objects in them.
 * Objects of kinds that are no longer served are dropped. */
static int fill(struct standalone *s, struct err *err)
{
	static const char namespaces[] = "/api/v1/namespaces";

	if (apireq_unserved_drop(s->objects, err) < 0 ||
		put_object(s, namespaces, "v1", "Namespace", "default", NULL, err) < 0 ||
		put_object(s, namespaces, "v1", "Namespace", s->ns, NULL, err) < 0)
		return -1;
	if (s->options->plain)
		log_warn(NULL,
			"nodes get no certificates, their disk keys are readable in plain HTTP",
			"option=--plain");
	else if (s->options->public_address && make_tls(s, err) < 0)
		return -1;
	if ((s->options->public_address && put_cluster(s, err) < 0) || report_restored(s, err) < 0)
		return -1;
	return store_objects_commit(s->objects, err);
}

/* Keys, then the store, then the first objects: each needs the one before. The certificates of the
 * API come last, as they say that the rest is there. */
struct standalone *standalone_new(struct loop *l, const struct options *o, struct err *err)
{
	struct standalone *s = xcalloc(1, sizeof(*s));
	cleanup_free char *host = host_of(o->listen_api);
	const char *const names[] = {"localhost", "127.0.0.1", "::1", host, NULL};
	struct apihttp_authority_conf conf = {.dir = o->standalone,
		.names = names,
		.kubeconfig = o->write_kubeconfig,
		.sealing = sealing_of(o)};

	s->loop = l;
	s->options = o;
	conf.ns = s->ns = xstrdup(o->namespace_ ? o->namespace_ : STANDALONE_NS);
	conf.server = s->server = xasprintf(strchr(host, ':') ? "https://[%s]%s" : "https://%s%s",
		host, strrchr(o->listen_api, ':'));
	conf.look_only = only_checks(s);
	s->authority = apihttp_authority_open(&conf, err);
	if (s->authority && open_store(s, err) == 0 && fill(s, err) == 0 &&
		apihttp_authority_renew(s->authority, clock_wall_s(), err) >= 0)
		return s;
	standalone_free(s);
	return NULL;
}

/* The API server uses the objects, and the objects the kinds. */
void standalone_free(struct standalone *s)
{
	if (!s)
		return;
	apihttp_listener_free(s->api);
	if (s->tls.path)
		timer_fini(&s->tls.next);
	pki_key_free(s->tls.ca_key);
	pki_key_free(s->tls.key);
	strbuf_fini(&s->tls.ca);
	free(s->tls.host);
	free(s->tls.path);
	store_gc_free(s->gc);
	if (s->objects)
		store_objects_free(s->objects);
	apireq_kinds_free(s->kinds);
	apihttp_authority_close(s->authority);
	free(s->server);
	free(s->ns);
	free(s);
}

/* The addresses may have changed, whose hosts are its names, or the clock. */
void standalone_certify(struct standalone *s)
{
	if (s->tls.path)
		timer_set_earlier(&s->tls.next, 0);
}

const char *standalone_ns(const struct standalone *s)
{
	return s->ns;
}

struct store_objects *standalone_objects(struct standalone *s)
{
	return s->objects;
}

struct k8s_transport *standalone_transport(struct standalone *s)
{
	return apireq_transport_new(s->loop, s->objects);
}

/* The API is served last, when the objects are complete. */
int standalone_listen(struct standalone *s, bool (*ready)(void *arg, const char **why),
	apihttp_hand_in_fn hand_in, void *arg, struct err *err)
{
	const struct apihttp_listener_conf conf = {
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

	s->api = apihttp_listener_new(s->loop, &conf, err);
	if (!s->api)
		return -1;
	return options_listen(
		apihttp_listener_httpd(s->api), "--listen-api", s->options->listen_api, err);
}

/* Restore without starting: the directory must hold no objects yet, and --sealing-key must be
 * that of the backup. */
int standalone_restore(const struct options *o, struct err *err)
{
	const char *const none[] = {NULL};
	const struct apihttp_authority_conf conf = {
		o->standalone, none, "", "", NULL, sealing_of(o), true, false};
	struct apihttp_authority *a = apihttp_authority_open(&conf, err);
	int rc;

	if (!a)
		return err->kind != ERR_NOT_FOUND
			       ? -1
			       : err_wrap(err,
					 "a backup can only be opened with the sealing key of the operator that made it; put that key in place first");
	rc = store_db_backup_restore(o->restore, o->standalone,
		store_sealing_key(apihttp_authority_sealing(a)), o->accept_unverified, err);
	apihttp_authority_close(a);
	if (rc == 0)
		printf("tec-operator: restored %s into %s; next step: start tec-operator --standalone=%s\n",
			o->restore, o->standalone, o->standalone);
	return rc;
}

/* Only a start that created the keys prints this. */
void standalone_say(const struct standalone *s)
{
	const char *kubeconfig = apihttp_authority_identity(s->authority).kubeconfig;

	if (!apihttp_authority_identity(s->authority).is_new)
		return;
	printf("tec-operator: created keys and certificates in %s\n", s->options->standalone);
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
		apihttp_listener_drain(s->api);
}
