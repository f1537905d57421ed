/* SPDX-License-Identifier: MIT */
/*
 * Wiring only: creates the parts and connects them, then decides which of them run, and when.
 *
 * connect  the Kubernetes API, or the store that takes its place and the embedded broker
 * watch    a cache and a watch for each kind that this role needs
 * control  Lease -> gate -> controllers, which write through the gate alone
 * serve    registration listeners, the broker's listener, health, the API of --standalone
 *
 * Each step may fail, after which parts_fini() releases what was created until then.
 *
 * Controllers, the watch of Secrets, the certificates that are read, and the shutdown come and go.
 * One function, check(), compares what runs with what should run; everything
 * that may change the answer only schedules it (parts_check).
 *
 * Start: watches of everything but Secrets -> the Lease -> as the leader, the watch of Secrets ->
 * all controllers once every list is complete; after WAIT_MS without that, those that revoke keys.
 *
 * Shutdown: /readyz fails, and each reply ends its connection -> the controllers note what Trustee
 * confirmed -> they stop -> the Lease is released; meanwhile the listeners serve for the shutdown
 * delay -> they accept nothing more -> requests in flight end -> the loop ends. A second signal
 * ends the loop at once.
 */
#include "config.h"

#include "parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/confine.h"
#include "tec/base/uuid.h"
#include "tec/ctl/leader_tasks.h"
#include "tec/ctl/shutdown.h"
#include "tec/kbs/client.h"
#include "tec/oci/authfile.h"
#include "tec/oci/compute.h"
#include "tec/oci/lookup.h"
#include "tec/render/regkey.h"
#include "tec/srv/metrics.h"
#include "tec/caches/adoption_cutoff.h"
#include "tec/caches/cluster.h"

#define SELF      "/proc/self/exe"
#define ENDING_MS 50 /* between two checks of a shutdown */
/* How long the controllers that revoke keys wait for a list that only the other controllers
 * need. */
#define WAIT_MS 10000

/* Lease duration, lifetime of an admin token and a minute of leeway: after that, Trustee
 * accepts nothing of an earlier leader, which could have restored a revoked key. */
#define REPEAT_REVOKED_MS (15000 + KBS_TOKEN_LIFE_S * 1000 + 60000)
/* The Lease of the Trustee operator, in the namespace where that operator would run: the two
 * never work at the same time, and each can take over from the other. */
#define TRUSTEE_LEASE       "178dc119.confidentialcontainers.org"
#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* Zeroed, so that parts_fini() works from any later stage. */
void parts_init(struct parts *p, struct options *o, struct loop *take_loop)
{
	memset(p, 0, sizeof(*p));
	p->options = o;
	p->loop = take_loop;
}

/* ---- connect ---- */

/* Connect to an API server: ours, or for ctl/follow another one, where it only reads and therefore
 * needs no Lease. */
static struct k8s_transport *connect_to_api(
	void *arg, struct k8s_kubeconfig *take_config, struct err *err)
{
	struct parts *p = arg;

	return k8s_client_new(p->loop, p->http, take_config, PACKAGE_NAME "/" PACKAGE_VERSION,
		p->options->api_http1);
}

/* Connect to a Kubernetes cluster, or open our own store and the embedded broker unless
 * --listen-kbs=off. Nothing is sent to a cluster yet: a wrong address shows when the watches start,
 * and is retried. The environment is read here only; k8s/kubeconfig decides which source wins. */
int parts_connect(struct parts *p, struct err *err)
{
	const struct options *o = p->options;
	/* Two listeners' connections and a reserve; the soft limit in a Pod is often lower. */
	uint64_t want = (uint64_t)o->max_connections * 2 + 256;
	uint64_t descriptors = confine_raise_descriptors(want);
	const struct k8s_kubeconfig_from from = {
		.file = o->kubeconfig,
		.env_file = getenv("KUBECONFIG"),
		.namespace_ = o->namespace_,
		.env_namespace = getenv("POD_NAMESPACE"),
		.host = getenv("KUBERNETES_SERVICE_HOST"),
		.port = getenv("KUBERNETES_SERVICE_PORT"),
		.root = SERVICE_ACCOUNT_DIR,
	};
	struct store_objects *objects;
	struct k8s_kubeconfig *k;

	if (descriptors < want)
		log_warn(NULL, "file descriptor limit is too low for --max-connections",
			"count=%" PRIu64, descriptors);
	if (!o->standalone) {
		k = k8s_kubeconfig_choose(&from, err);
		if (!k)
			return -1;
		p->ns = xstrdup(k->namespace_);
		p->http = httpc_new(p->loop);
		p->api = connect_to_api(p, k, err);
		return 0;
	}
	p->standalone = standalone_new(p->loop, p->options, err);
	if (!p->standalone)
		return -1;
	objects = standalone_objects(p->standalone);
	p->ns = xstrdup(standalone_ns(p->standalone));
	p->caches.restored_s = store_db_restored_s(store_objects_db(objects));
	p->http = httpc_new(p->loop);
	p->api = standalone_transport(p->standalone);
	if (o->guard.listen_kbs)
		p->embedded = embedded_new(p->loop, objects, p->options, err);
	return p->embedded || !o->guard.listen_kbs ? 0 : -1;
}

/* ---- watch ---- */

static void on_cluster_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct parts *p = arg;

	if (p->standalone && (!was || !now || was->generation != now->generation))
		standalone_certify(p->standalone);
	parts_check(p);
}

/* Create the caches that this role needs and their watches. Without a cluster no workload can
 * exist, so caches of workloads count as filled, with nothing in them. */
int parts_watch(struct parts *p, struct err *err)
{
	/* Where another process may be the leader, its report of the peer counts. */
	p->caches.peer = options_controls_cluster(p->options) && !p->options->leader_elect
				 ? CACHES_PEER_UNKNOWN
				 : CACHES_PEER_TOLD;
	if (!p->options->controls_cluster)
		return 0;
	for (int i = 0; i < CACHES_N_KINDS; i++) {
		const struct caches_kind *kind = &caches_kinds[i];
		struct k8s_watch_conf conf = {
			.gvk = kind->gvk,
			.ns = p->ns,
			.label_selector = kind->labels,
			.secret = i == CACHES_SECRETS,
		};

		if (!(kind->needs & CACHES_FOR_LISTENERS) && !options_controls_cluster(p->options))
			continue;
		p->caches.cache[i] = k8s_cache_new(&kind->cache);
		if (kind->workload && p->standalone) {
			/* An empty list, so that the cache counts as filled. */
			k8s_cache_relist_begin(p->caches.cache[i]);
			k8s_cache_relist_end(p->caches.cache[i]);
			continue;
		}
		p->watch[i] = k8s_watch_new(p->loop, p->api, p->caches.cache[i], &conf);
		k8s_watch_on_state(p->watch[i], parts_check, p);
	}
	srv_metrics_count(&p->caches);
	k8s_cache_listen(p->caches.clusters, on_cluster_change, p);
	if (!p->standalone)
		return 0;
	p->attested = attested_new(
		standalone_objects(p->standalone), &p->caches, p->embedded != NULL, err);
	return p->attested ? 0 : -1;
}

/* ---- control ---- */

/* Leadership was won or lost; the leader's tasks start or stop. */
static void on_lease(void *arg, bool leader)
{
	parts_check(arg);
}

/* The identity has a UUID besides the Pod's name: a restarted container must not take itself
 * for its predecessor. */
static struct k8s_lease *make_lease(struct parts *p, const char *ns, const char *name)
{
	char host[256] = "tec-operator", uuid[UUID_TEXT_LEN + 1];
	cleanup_free char *identity = NULL;
	struct k8s_lease_conf conf = {.ns = ns, .name = name, .on_change = on_lease, .arg = p};

	gethostname(host, sizeof(host) - 1);
	uuid_new_v4(uuid);
	identity = xasprintf("%s_%s", env_or("POD_NAME", host), uuid);
	conf.identity = identity;
	return k8s_lease_new(p->loop, p->api, &conf);
}

/* Connect ctl/trustee to a Trustee, or to the embedded broker. Requests are sent only while the
 * Lease is held: a former leader must not write keys. */
static struct kbs_transport *connect_to_trustee(
	void *arg, const struct ctl_kbs_place *place, struct err *err)
{
	struct parts *p = arg;
	struct kbs_client_conf conf = {
		.url = place->url, .connect_to = place->connect_to, .admin = place->admin};
	struct kbs_transport *t;

	if (place->in_process)
		return embedded_transport(p->embedded);
	if (place->ca) {
		conf.tls = httpc_tls_new(
			secret_peek(place->ca), secret_len(place->ca), NULL, 0, NULL, 0, NULL, err);
		if (!conf.tls)
			return NULL;
	}
	t = kbs_client_new(p->loop, p->http, &conf, err);
	httpc_tls_unref(conf.tls);
	if (t && p->lease) {
		t->may_send = k8s_lease_may_write;
		t->may_send_arg = p->lease;
	}
	return t;
}

/* The credentials are read again for each lookup: their file may have been renewed. */
static struct op *image_label(void *arg, struct op_scope *scope, const char *reference,
	const char *label, oci_label_fn done, void *done_arg)
{
	struct parts *p = arg;
	const struct options *o = p->options;
	const struct secret *config = oci_authfile_get(p->registry_auth);
	const struct oci_conf conf = {
		.mirrors = o->registry_mirrors.items,
		.n_mirrors = o->registry_mirrors.n,
		.insecure = o->insecure_registries.items,
		.n_insecure = o->insecure_registries.n,
		.platform_os = "linux",
		.platform_arch = conf_str(o->conf, "arch"),
	};

	return oci_lookup_get(
		p->lookup, scope, &conf, reference, label, &config, config != NULL, done, done_arg);
}

/* The child gets its options as words of a command line; unset ones are left to its defaults. */
static struct op *image_compute(void *arg, struct op_scope *scope, const char *reference,
	const char *nonce, struct json_object *platforms, oci_said_fn said, oci_computed_fn done,
	void *done_arg)
{
	static const char *const names[][2] = {{"registry-mirror", "--registry-mirror"},
		{"insecure-registry", "--insecure-registry"}, {"arch", "--arch"}};
	struct parts *p = arg;
	const struct conf *c = p->options->conf;
	const char *options[2 * ARRAY_LEN(names) + 1];
	struct oci_compute_question q = {.reference = reference,
		.nonce = nonce,
		.options = options,
		.ca = conf_str(c, "registry-ca"),
		.auth = oci_authfile_get(p->registry_auth),
		.platforms = platforms};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = conf_str(c, names[i][0]);

		if (!value || !*value)
			continue;
		options[n++] = names[i][1];
		options[n++] = value;
	}
	options[n] = NULL;
	return oci_compute(p->computes, scope, &q, said, done, done_arg);
}

/* Prepare to ask registries for labels and, with --standalone, where there are no Jobs, to compute
 * values. Each request runs in a child, which is this program itself (/proc/self/exe), so that an
 * update on disk cannot mix versions; the scratch space of a computation is in DIR. */
static int make_images(struct parts *p, struct err *err)
{
	static const char *const label[] = {"tec-operator", "--lookup-label", NULL},
				 *const compute[] = {"tec-operator", "--compute-image", NULL};
	struct oci_computes_conf conf = {.file = SELF, .argv = compute};

	p->registry_auth = oci_authfile_new(p->options->registry_auth, err);
	if (!p->registry_auth)
		return err_wrap(err, "option --registry-auth");
	p->lookup = oci_lookup_new(p->loop, SELF, label);
	if (!p->standalone)
		return 0;
	conf.tool = p->compute_tool = oci_compute_tool();
	conf.scratch = p->scratch = xasprintf("%s/scratch", p->options->standalone);
	p->computes = oci_computes_new(p->loop, &conf);
	return 0;
}

/* The state of following is part of the cluster's status. */
static void on_follow(void *arg)
{
	ctl_cluster_look_again(arg);
}

/* The state of the followed cluster's peer decides what may be delivered, so every object is
 * looked at again. */
static void on_peer(void *kind)
{
	ctl_kind_wake_all(kind);
}

/* Create the controllers of KbsConfigs and TrusteeConfigs, with a Lease and a gate of their own. */
static void control_trustees(struct parts *p)
{
	const struct registries_list *places = &p->options->trustee_namespaces;

	if (p->options->leader_elect)
		p->trustee_lease =
			make_lease(p, places->n ? places->items[0] : p->ns, TRUSTEE_LEASE);
	p->trustee_gate = k8s_gate_new(
		p->api, p->trustee_lease ? k8s_lease_may_write : NULL, p->trustee_lease);
	p->trustees =
		trustees_new(p->loop, p->api, p->trustee_gate, p->options, p->ns, parts_check, p);
}

/* How many writes could still change the copied state; a cluster is Frozen only when none is
 * left. */
static size_t in_flight(void *arg)
{
	struct parts *p = arg;

	return ctl_kind_in_flight(p->machine) + ctl_kind_in_flight(p->ak) +
	       ctl_kind_in_flight(p->image) + (p->pending ? srv_pending_under_way(p->pending) : 0);
}

/* Fill in what the controllers share, except for controllers themselves. */
static void set_env(struct parts *p, struct k8s_transport *api)
{
	struct render_images images = {
		.trustee = env_or("RELATED_IMAGE_TRUSTEE", render_images_default.trustee),
		.operator_ = env_or("RELATED_IMAGE_OPERATOR", render_images_default.operator_),
		.compute_pcrs =
			env_or("RELATED_IMAGE_COMPUTE_PCRS", render_images_default.compute_pcrs),
		.rate_limit = conf_str(p->options->conf, "rate-limit"),
	};

	httpc_proxy_env(p->proxy_env);
	p->env = (struct ctl_env){
		.loop = p->loop,
		.api = api,
		.ns = p->ns,
		.caches = &p->caches,
		.in_flight = in_flight,
		.in_flight_arg = p,
		.events = p->ctl_events,
		.images_ref = images,
		.registry_mirror = conf_str(p->options->conf, "registry-mirror"),
		.insecure_registry = conf_str(p->options->conf, "insecure-registry"),
		.proxy_env = p->proxy_env,
		.image_label = image_label,
		.image_label_arg = p,
		.image_compute = p->standalone ? image_compute : NULL,
		.image_compute_arg = p,
		.kbs_connect = connect_to_trustee,
		.kbs_connect_arg = p,
		.follow_connect = connect_to_api,
		.follow_connect_arg = p,
		.kbs_url = p->options->kbs_url,
		.standalone = p->standalone != NULL,
		.repeat_revoked_ms = p->options->leader_elect ? REPEAT_REVOKED_MS : 0,
	};
}

/* Create the controllers; they do not run before check() starts them. All their writes pass the
 * gate. */
int parts_control(struct parts *p, struct err *err)
{
	struct k8s_transport *api;

	p->events = k8s_events_new(p->api, p->ns, PACKAGE_NAME, env_or("POD_NAME", PACKAGE_NAME));
	if (!options_controls(p->options))
		return 0;
	if (options_controls_trustees(p->options))
		control_trustees(p);
	if (!options_controls_cluster(p->options))
		return 0;
	if (p->options->leader_elect)
		p->lease = make_lease(p, p->ns, "tec-operator");
	api = p->gate = k8s_gate_new(p->api, p->lease ? k8s_lease_may_write : NULL, p->lease);
	p->ctl_events = k8s_events_new(api, p->ns, PACKAGE_NAME, env_or("POD_NAME", PACKAGE_NAME));
	p->caches.sync = kbs_sync_new();
	p->caches.kbs_in_process = p->embedded != NULL;
	if (make_images(p, err) < 0)
		return -1;
	set_env(p, api);
	p->env.record = ctl_record_new(&p->env);
	p->since = ctl_adoption_cutoff_new(&p->env, &p->caches, parts_check, p);
	p->trustee = ctl_trustee_new(&p->env);
	p->cluster = ctl_cluster_new(&p->env);
	p->machine = ctl_machine_new(&p->env);
	p->ak = ctl_ak_new(&p->env);
	p->image = ctl_image_new(&p->env);
	p->follow = ctl_follow_new(&p->env, &p->caches);
	p->env.follow = ctl_follow_state(p->follow);
	ctl_follow_listen(p->follow, on_follow, p->cluster);
	ctl_follow_listen_peer(p->follow, on_peer, p->machine);
	ctl_follow_listen_peer(p->follow, on_peer, p->ak);
	ctl_follow_listen_peer(p->follow, on_peer, p->image);
	p->unreadable = ctl_unreadable_new(&p->caches, p->ctl_events);
	return 0;
}

/* ---- serve ---- */

/* Ready only if a request could be answered: every listener needs these lists and Secrets. */
static bool is_ready(void *arg, const char **why)
{
	const struct parts *p = arg;

	*why = "shutting down";
	if (p->ending)
		return false;
	*why = "objects are being listed";
	if (!caches_filled(&p->caches, CACHES_FOR_LISTENERS))
		return false;
	*why = "the time of the first start is being recorded";
	if (!caches_adoption_cutoff_known(&p->caches))
		return false;
	*why = "TLS Secrets are being read";
	if (p->certs && !srv_certs_filled(p->certs))
		return false;
	*why = "the registration key is being read";
	return !p->regkey || srv_regkey_filled(p->regkey);
}

/* Create the listeners of this role and bind their ports; they refuse connections until check()
 * refreshes them. */
static int serve_registration(struct parts *p, struct err *err)
{
	const struct options *o = p->options;
	struct srv_env env = {
		.loop = p->loop,
		.api = p->api,
		.ns = p->ns,
		.caches = &p->caches,
		.events = p->events,
		.max_connections = o->max_connections,
	};

	p->certs = env.certs = srv_certs_new(p->loop, p->api, p->ns, parts_check, p);
	p->pending = env.pending = srv_pending_new(&p->caches);
	p->regkey = env.regkey = srv_regkey_new(p->loop, p->api, p->ns);
	if (o->rate_on)
		p->rate = env.rate = ratelimit_new(o->rate_burst, o->rate_per_s, 16384);
	if (options_serves_register(o)) {
		p->regignition = srv_regignition_new(&env);
		if (options_listen(srv_listener_httpd(p->regignition), "--listen-register",
			    o->listen_register, err) < 0)
			return -1;
	}
	if (options_serves_register_ak(o)) {
		p->regak = srv_regak_new(&env);
		if (options_listen(srv_listener_httpd(p->regak), "--listen-register-ak",
			    o->listen_register_ak, err) < 0)
			return -1;
	}
	if (p->embedded)
		return embedded_listen(p->embedded,
			&(struct embedded_nodes){.ns = p->ns,
				.caches = &p->caches,
				.attested = p->attested,
				.api = p->api,
				.events = p->events,
				.rate = p->rate},
			err);
	return 0;
}

/* Pass on the values of an image that somebody computed elsewhere and hands in through the API. */
static int hand_in(void *arg, const char *ns, const char *name, const char *message, size_t len,
	struct err *err)
{
	struct parts *p = arg;

	if (!p->image || !str_eq(ns, p->ns))
		return err_set(
			err, ERR_NOT_FOUND, "no ApprovedImages are managed in that namespace");
	return ctl_image_hand_in(p->image, name, message, len, err);
}

/* Health comes last, so that it answers only when the rest is set up. */
int parts_serve(struct parts *p, struct err *err)
{
	const struct options *o = p->options;

	if ((options_serves_register(o) || options_serves_register_ak(o)) &&
		serve_registration(p, err) < 0)
		return -1;
	p->health = srv_health_new(p->loop, is_ready, p);
	if (options_listen(srv_health_httpd(p->health), "--listen-health", o->listen_health, err) <
		0)
		return -1;
	return p->standalone ? standalone_listen(p->standalone, is_ready, hand_in, p, err) : 0;
}

/* ---- run ---- */

/* Follow the Secrets that the cluster names, and let each listener adopt what has changed. */
static void want_certs(struct parts *p)
{
	const struct model_cluster *c = caches_cluster_oldest(&p->caches);
	const char *names[SRV_CERTS_MAX];

	srv_certs_want(p->certs, names, c ? srv_certs_of(c, p->regignition, names) : 0,
		c ? c->ca_sha256 : NULL);
	/* After a change to AtRequest, too: nodes still come with ids handed out before. */
	if (c && (c->reg_machine == MODEL_REG_AT_KEY ||
			 model_cluster_announced(c, RENDER_REGKEY_CURRENT)))
		srv_regkey_want(p->regkey);
	if (p->regignition)
		srv_listener_refresh(p->regignition);
	if (p->regak)
		srv_listener_refresh(p->regak);
	if (p->embedded)
		srv_listener_follow(srv_listener_env(p->regignition), embedded_httpd(p->embedded),
			c ? c->trustee_secret : NULL, embedded_tls(p->embedded));
}

/* Start the controllers that revoke keys, and with `all` the others. Called again with `all`
 * once every list is complete. */
static void controllers_on(struct parts *p, bool all)
{
	timer_cancel(&p->wait);
	ctl_follow_leads(p->follow);
	log_info(NULL, "controllers start", "machine=%zu ak=%zu count=%d",
		k8s_cache_count(p->caches.machines), k8s_cache_count(p->caches.aks), all ? 5 : 3);
	if (p->revoking_on) { /* restart them with the lists that were incomplete */
		ctl_kind_off(p->machine);
		ctl_kind_off(p->ak);
	} else {
		ctl_trustee_on(p->trustee); /* first: the others ask it what Trustee may hold */
	}
	if (all)
		ctl_cluster_on(p->cluster);
	ctl_kind_on(p->machine);
	ctl_kind_on(p->ak);
	if (all) {
		ctl_kind_on(p->image);
		ctl_follow_on(p->follow);
	}
	p->revoking_on = true;
	p->all_on = all;
}

/* Stop the controllers that declare what Trustee should hold; what they declared stays. */
static void declaring_off(struct parts *p)
{
	log_info(NULL, "controllers stop", NULL);
	ctl_follow_off(p->follow);
	ctl_cluster_off(p->cluster);
	ctl_kind_off(p->machine);
	ctl_kind_off(p->ak);
	ctl_kind_off(p->image);
	ctl_record_off(p->env.record);
}

/* Trustee's declarations are forgotten last: the other controllers refer to them. */
static void controllers_off(struct parts *p)
{
	if (!p->finishing)
		declaring_off(p);
	ctl_trustee_off(p->trustee); /* also forgets what was declared */
	p->revoking_on = p->all_on = p->finishing = false;
}

/* A list is missing for too long, as if its kind were not installed: revoke keys without it. */
static void on_waited(void *arg)
{
	struct parts *p = arg;

	p->waited = true;
	for (int i = 0; i < CACHES_N_KINDS; i++)
		if (!k8s_cache_filled(p->caches.cache[i]))
			log_warn(NULL,
				"list is incomplete, the controllers that need it are waiting",
				"resource=%s", caches_kinds[i].gvk->plural);
	parts_check(p);
}

/* Without leader election every process leads. */
static bool leads(const struct k8s_lease *lease)
{
	return !lease || k8s_lease_state(lease) == K8S_LEASE_LEADER;
}

/* Take the next step towards what should run. false: nothing is left to do. The view is everything
 * that ctl_leader_tasks_decide() looks at; it has no other input. */
static bool do_duty(struct parts *p)
{
	enum k8s_watch_state secrets = k8s_watch_state(p->watch[CACHES_SECRETS]);
	const struct ctl_leader_tasks_view v = {
		.leads = leads(p->lease),
		.draining = p->ending,
		.finishing = p->finishing,
		.reads_secrets = secrets != K8S_WATCH_IDLE && secrets != K8S_WATCH_STOPPED,
		.cutoff_known = caches_adoption_cutoff_known(&p->caches),
		.all_filled = caches_filled(&p->caches, CACHES_FOR_ALL),
		.revoking_filled = caches_filled(&p->caches, CACHES_FOR_REVOKING),
		.all_on = p->all_on,
		.revoking_on = p->revoking_on,
		.waiting = timer_is_set(&p->wait),
		.waited = p->waited,
	};

	switch (ctl_leader_tasks_decide(&v)) {
	case CTL_LEADER_TASKS_NOTHING:
		return false;
	case CTL_LEADER_TASKS_STOP:
		controllers_off(p);
		break;
	case CTL_LEADER_TASKS_FORGET:
		k8s_watch_stop(p->watch[CACHES_SECRETS]);
		k8s_cache_clear(p->caches.secrets);
		ctl_adoption_cutoff_off(p->since);
		timer_cancel(&p->wait);
		p->waited = false;
		break;
	case CTL_LEADER_TASKS_READ:
		k8s_watch_start(p->watch[CACHES_SECRETS]);
		ctl_adoption_cutoff_on(p->since);
		break;
	case CTL_LEADER_TASKS_START_ALL:
		controllers_on(p, true);
		break;
	case CTL_LEADER_TASKS_START_REVOKING:
		controllers_on(p, false);
		break;
	case CTL_LEADER_TASKS_WAIT:
		timer_set(&p->wait, WAIT_MS);
		break;
	}
	return true;
}

/* Runs from the loop, once for all reasons that came up in a turn. */
static void check(void *arg)
{
	struct parts *p = arg;

	if (p->attested)
		attested_check(p->attested);
	if (p->certs)
		want_certs(p);
	while (p->cluster && do_duty(p))
		;
	if (p->trustees)
		trustees_check(p->trustees, leads(p->trustee_lease) && !p->ending);
}

/* Deferred: the callers are callbacks of caches and watches, which must not be stopped from
 * within. */
void parts_check(void *arg)
{
	struct parts *p = arg;

	defer_call(&p->check, p->loop, check, p);
}

/* The listeners for nodes; returns their number. The health listener answers until the end. */
static size_t listeners(const struct parts *p, struct httpd *out[3])
{
	size_t n = 0;

	if (p->regignition)
		out[n++] = srv_listener_httpd(p->regignition);
	if (p->regak)
		out[n++] = srv_listener_httpd(p->regak);
	if (p->embedded)
		out[n++] = embedded_httpd(p->embedded);
	return n;
}

/* A Lease was given up, so another process can lead at once instead of waiting for its expiry. */
static void on_released(void *arg)
{
	struct parts *p = arg;

	p->released = --p->n_releasing == 0;
	timer_set(&p->next_ending, 0);
}

/* Take the steps of the shutdown that are due, then look again after ENDING_MS (ctl/shutdown.h).
 * The delay applies only to a process with listeners: a Service keeps sending it connections. */
static void go_on_ending(void *arg)
{
	struct parts *p = arg;
	struct httpd *httpd[3];
	size_t n = listeners(p, httpd);

	for (;;) {
		struct ctl_shutdown_view v = {
			.since_ms = clock_boot_ms() - p->ending_ms,
			.delay_ms = p->regignition || p->regak ? p->options->shutdown_delay_ms : 0,
			.controllers = p->revoking_on,
			.controls_end = p->finishing && ctl_trustee_is_finished(p->trustee),
			.releasing = p->releasing,
			.released = p->released,
			.draining = p->draining,
		};

		for (size_t i = 0; i < n; i++)
			v.in_flight |= httpd_in_flight(httpd[i]) > 0;
		switch (ctl_shutdown_decide(&v)) {
		case CTL_SHUTDOWN_WAIT:
			timer_set(&p->next_ending, ENDING_MS);
			return;
		case CTL_SHUTDOWN_STOP:
			controllers_off(p);
			break;
		case CTL_SHUTDOWN_RELEASE:
			/* Only after the controllers have stopped: two must not decide at once. */
			p->releasing = true;
			p->n_releasing = (p->lease ? 1 : 0) + (p->trustee_lease ? 1 : 0);
			p->released = p->n_releasing == 0;
			if (p->lease)
				k8s_lease_release(p->lease, on_released, p);
			if (p->trustee_lease)
				k8s_lease_release(p->trustee_lease, on_released, p);
			break;
		case CTL_SHUTDOWN_DRAIN:
			p->draining = true;
			for (size_t i = 0; i < n; i++)
				httpd_drain(httpd[i]);
			if (p->standalone)
				standalone_drain(p->standalone);
			break;
		case CTL_SHUTDOWN_END:
			loop_stop(p->loop);
			return;
		}
	}
}

/* What was made before may begin in the future, or have ended. */
static void on_clock_set(void *arg, int64_t by_s)
{
	struct parts *p = arg;

	log_warn(NULL,
		"the system clock was set; next step: if nodes or clients refuse certificates, compare their clocks",
		"seconds=%lld", (long long)by_s);
	if (p->standalone)
		standalone_certify(p->standalone);
}

/* Secrets are watched later, by the leader only (CTL_LEADER_TASKS_READ). */
void parts_start(struct parts *p)
{
	int i;

	timer_init(&p->next_ending, p->loop, go_on_ending, p);
	timer_init(&p->wait, p->loop, on_waited, p);
	wallwatch_start(&p->clock, p->loop, on_clock_set, p);
	log_info(NULL, "tec-operator starts", "version=%s ns=%s pid=%d", PACKAGE_VERSION, p->ns,
		(int)getpid());
	for (i = 0; i < CACHES_N_KINDS; i++)
		if (p->watch[i] && i != CACHES_SECRETS)
			k8s_watch_start(p->watch[i]);
	if (p->trustees)
		trustees_start(p->trustees);
	if (p->lease)
		k8s_lease_start(p->lease);
	if (p->trustee_lease)
		k8s_lease_start(p->trustee_lease);
	if (p->standalone)
		standalone_say(p->standalone);
	parts_check(p);
}

/* Start the shutdown; a second call ends the loop at once. */
void parts_shutdown(struct parts *p, const char *why)
{
	struct httpd *httpd[3];

	if (p->ending) {
		log_warn(NULL, "stopping immediately", "signal=%s", log_esc(why));
		loop_stop(p->loop);
		return;
	}
	log_info(NULL, "shutting down", "signal=%s", log_esc(why));
	p->ending = true;
	p->ending_ms = clock_boot_ms();
	for (size_t i = 0, n = listeners(p, httpd); i < n; i++)
		httpd_leave(httpd[i]);
	if (p->revoking_on) {
		/* Note on the objects what Trustee has confirmed, so that the next process does not
		 * send it again. */
		declaring_off(p);
		p->finishing = true;
		ctl_trustee_finish(p->trustee);
	}
	parts_check(p); /* stops the watch of Secrets */
	timer_set(&p->next_ending, 0);
}

/* ---- release ---- */

/* The order matters: who calls back is released before who is called. Controllers go before the
 * watches and caches that they listen to, all of them before the transports, and the loop last. */
void parts_fini(struct parts *p)
{
	int i;

	if (p->next_ending.loop) {
		timer_fini(&p->next_ending);
		timer_fini(&p->wait);
		wallwatch_stop(&p->clock);
	}
	defer_cancel(&p->check);
	srv_health_free(p->health);
	srv_listener_free(p->regak);
	srv_listener_free(p->regignition);
	srv_certs_free(p->certs);
	srv_regkey_free(p->regkey);
	trustees_free(p->trustees);
	ctl_record_free(p->env.record);
	ctl_trustee_free(p->trustee); /* tells the other controllers that its servers are gone */
	ctl_follow_free(p->follow);
	ctl_kind_free(p->image);
	ctl_kind_free(p->ak);
	ctl_kind_free(p->machine);
	ctl_cluster_free(p->cluster);
	ctl_adoption_cutoff_free(p->since);
	for (i = 0; i < CACHES_N_KINDS; i++)
		k8s_watch_free(p->watch[i]);
	oci_authfile_free(p->registry_auth);
	oci_lookup_free(p->lookup);
	oci_computes_free(p->computes);
	free(p->compute_tool);
	free(p->scratch);
	kbs_sync_free(p->caches.sync);
	embedded_free(p->embedded);
	k8s_events_free(p->ctl_events);
	k8s_events_free(p->events);
	for (i = 0; i < CACHES_N_KINDS; i++)
		k8s_cache_free(p->caches.cache[i]);
	attested_free(p->attested);
	ctl_unreadable_free(p->unreadable);
	srv_pending_free(p->pending);
	ratelimit_free(p->rate);
	k8s_transport_free(p->gate);
	k8s_transport_free(p->trustee_gate);
	k8s_lease_free(p->lease); /* after the gate, which uses it */
	k8s_lease_free(p->trustee_lease);
	k8s_transport_free(p->api);
	standalone_free(p->standalone);
	httpc_free(p->http);
	loop_free(p->loop);
	free(p->ns);
}
