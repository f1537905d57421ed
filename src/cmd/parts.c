/* SPDX-License-Identifier: MIT */
/*
 * Wiring only: creates the parts and connects them. What runs when is decided in cmd/life.c.
 *
 * connect  the Kubernetes API, or the store that takes its place and the embedded broker
 * watch    a cache and a watch for each kind that this role needs
 * control  Lease -> gate -> controllers, which write through the gate alone
 * serve    registration listeners, the broker's listener, health, the API of --standalone
 *
 * Each step may fail, after which parts_fini() releases what was created until then.
 */
#include "config.h"

#include "parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tec/base/confine.h"
#include "tec/base/uuid.h"
#include "tec/kbs/client.h"
#include "tec/srv/metrics.h"
#include "tec/state/adoption_cutoff.h"

/* Lease duration, lifetime of an admin token and a minute of leeway: after that, Trustee
 * accepts nothing of an earlier leader, which could have restored a revoked key. */
#define REPEAT_REVOKED_MS (15000 + KBS_TOKEN_LIFE_S * 1000 + 60000)
/* The Lease of the Trustee operator, in the namespace where that operator would run: the two
 * never work at the same time, and each can take over from the other. */
#define TRUSTEE_LEASE       "178dc119.confidentialcontainers.org"
#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

static void on_cluster_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	parts_check(arg);
}

/* Zeroed, so that parts_fini() works from any later stage. */
void parts_init(struct parts *p, struct options *o, struct loop *take_loop)
{
	memset(p, 0, sizeof(*p));
	p->options = o;
	p->loop = take_loop;
}

/* ---- connect ---- */

/* The environment is read here only; k8s/kubeconfig decides which source wins. */
static struct k8s_kubeconfig *load_config(const struct options *o, struct err *err)
{
	const struct k8s_kubeconfig_from from = {
		.file = o->kubeconfig,
		.env_file = getenv("KUBECONFIG"),
		.namespace_ = o->namespace_,
		.env_namespace = getenv("POD_NAMESPACE"),
		.host = getenv("KUBERNETES_SERVICE_HOST"),
		.port = getenv("KUBERNETES_SERVICE_PORT"),
		.root = SERVICE_ACCOUNT_DIR,
	};

	return k8s_kubeconfig_choose(&from, err);
}

/* Open the store, which takes the place of the cluster, and the embedded broker unless
 * --listen-kbs=off. */
static int connect_standalone(struct parts *p, struct err *err)
{
	p->standalone = standalone_new(p->loop, p->options, err);
	if (!p->standalone)
		return -1;
	p->ns = xstrdup(standalone_ns(p->standalone));
	p->state.restored_s =
		apistore_db_restored_s(apistore_objects_db(standalone_objects(p->standalone)));
	p->http = httpc_new(p->loop);
	p->api = standalone_transport(p->standalone);
	if (!p->options->guard.listen_kbs)
		return 0;
	p->embedded = embedded_new(p->loop, standalone_objects(p->standalone), p->options, err);
	return p->embedded ? 0 : -1;
}

/* Nothing is sent yet: a wrong address shows when the watches start, and is retried. */
static int connect_cluster(struct parts *p, struct err *err)
{
	struct k8s_kubeconfig *k = load_config(p->options, err);

	if (!k)
		return -1;
	p->ns = xstrdup(k->namespace_);
	p->http = httpc_new(p->loop);
	p->api = k8s_client_new(
		p->loop, p->http, k, PACKAGE_NAME "/" PACKAGE_VERSION, p->options->api_http1);
	return 0;
}

/* Connect to a Kubernetes cluster, or open our own store. */
int parts_connect(struct parts *p, struct err *err)
{
	/* Two listeners' connections and a reserve; the soft limit in a Pod is often lower. */
	uint64_t want = (uint64_t)p->options->max_connections * 2 + 256;
	uint64_t descriptors = confine_raise_descriptors(want);

	if (descriptors < want)
		log_warn(NULL, "file descriptor limit is too low for --max-connections",
			"count=%" PRIu64, descriptors);
	return p->options->standalone ? connect_standalone(p, err) : connect_cluster(p, err);
}

/* ---- watch ---- */

/* Create the caches that this role needs and their watches. Without a cluster no workload can
 * exist, so caches of workloads count as filled, with nothing in them. */
int parts_watch(struct parts *p, struct err *err)
{
	/* Where another process may be the leader, its report of the peer counts. */
	p->state.peer = options_controls_cluster(p->options) && !p->options->leader_elect
				? STATE_PEER_UNKNOWN
				: STATE_PEER_TOLD;
	if (!p->options->controls_cluster)
		return 0;
	for (int i = 0; i < STATE_N_KINDS; i++) {
		const struct state_kind *kind = &state_kinds[i];
		struct k8s_watch_conf conf = {
			.gvk = kind->gvk,
			.ns = p->ns,
			.label_selector = kind->labels,
			.secret = i == STATE_SECRETS,
		};

		if (!(kind->needs & STATE_FOR_LISTENERS) && !options_controls_cluster(p->options))
			continue;
		p->state.cache[i] = k8s_cache_new(&kind->cache);
		if (kind->workload && p->standalone) {
			/* An empty list, so that the cache counts as filled. */
			k8s_cache_relist_begin(p->state.cache[i]);
			k8s_cache_relist_end(p->state.cache[i]);
			continue;
		}
		p->watch[i] = k8s_watch_new(p->loop, p->api, p->state.cache[i], &conf);
		k8s_watch_on_state(p->watch[i], parts_check, p);
	}
	srv_metrics_count(&p->state);
	k8s_cache_listen(p->state.clusters, on_cluster_change, p);
	if (!p->standalone)
		return 0;
	p->attested = attested_new(
		standalone_objects(p->standalone), &p->state, p->embedded != NULL, err);
	return p->attested ? 0 : -1;
}

/* ---- control ---- */

/* Leadership was won or lost; the leader's tasks start or stop in life.c. */
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

/* Connect ctl/follow to another API server. It only reads there, so it needs no Lease. */
static struct k8s_transport *connect_to_followed(
	void *arg, struct k8s_kubeconfig *take_config, struct err *err)
{
	struct parts *p = arg;

	return k8s_client_new(p->loop, p->http, take_config, PACKAGE_NAME "/" PACKAGE_VERSION,
		p->options->api_http1);
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

	p->env = (struct ctl_env){
		.loop = p->loop,
		.api = api,
		.ns = p->ns,
		.state = &p->state,
		.in_flight = in_flight,
		.in_flight_arg = p,
		.events = p->ctl_events,
		.images_ref = images,
		.registry_mirror = conf_str(p->options->conf, "registry-mirror"),
		.insecure_registry = conf_str(p->options->conf, "insecure-registry"),
		.image_label = images_label,
		.image_label_arg = p->images,
		.image_compute = p->standalone ? images_compute : NULL,
		.image_compute_arg = p->images,
		.kbs_connect = connect_to_trustee,
		.kbs_connect_arg = p,
		.follow_connect = connect_to_followed,
		.follow_connect_arg = p,
		.kbs_url = p->options->kbs_url,
		.kbs_in_process = p->embedded != NULL,
		.standalone = p->standalone != NULL,
		.repeat_revoked_ms = p->options->leader_elect ? REPEAT_REVOKED_MS : 0,
	};
}

/* Create the controllers; they do not run before life.c starts them. All their writes pass the
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
	p->state.sync = kbs_sync_new();
	p->images = images_new(p->loop, p->options, err);
	if (!p->images)
		return -1;
	set_env(p, api);
	p->env.record = ctl_record_new(&p->env);
	p->since = ctl_adoption_cutoff_new(&p->env, &p->state, parts_check, p);
	p->trustee = ctl_trustee_new(&p->env);
	p->cluster = ctl_cluster_new(&p->env);
	p->machine = ctl_machine_new(&p->env);
	p->ak = ctl_ak_new(&p->env);
	p->image = ctl_image_new(&p->env);
	p->follow = ctl_follow_new(&p->env, &p->state);
	p->env.follow = ctl_follow_state(p->follow);
	ctl_follow_listen(p->follow, on_follow, p->cluster);
	ctl_follow_listen_peer(p->follow, on_peer, p->machine);
	ctl_follow_listen_peer(p->follow, on_peer, p->ak);
	ctl_follow_listen_peer(p->follow, on_peer, p->image);
	p->unreadable = ctl_unreadable_new(&p->state, p->ctl_events);
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
	if (!state_filled(&p->state, STATE_FOR_LISTENERS))
		return false;
	*why = "the time of the first start is being recorded";
	if (!state_adoption_cutoff_known(&p->state))
		return false;
	*why = "TLS Secrets are being read";
	if (p->certs && !srv_certs_filled(p->certs))
		return false;
	*why = "the registration key is being read";
	return !p->regkey || srv_regkey_filled(p->regkey);
}

/* Create the listeners of this role and bind their ports; they refuse connections until life.c
 * refreshes them. */
static int serve_registration(struct parts *p, struct err *err)
{
	const struct options *o = p->options;
	struct srv_env env = {
		.loop = p->loop,
		.api = p->api,
		.ns = p->ns,
		.state = &p->state,
		.events = p->events,
		.max_connections = o->max_connections,
	};

	p->certs = env.certs = srv_certs_new(p->loop, p->api, p->ns, parts_check, p);
	p->pending = env.pending = srv_pending_new(&p->state);
	p->regkey = env.regkey = srv_regkey_new(p->loop, p->api, p->ns);
	if (o->rate_on)
		p->rate = env.rate = ratelimit_new(o->rate_burst, o->rate_per_s, 16384);
	if (options_serves_register(o)) {
		p->regignition = srv_regignition_new(&env);
		if (httpd_listen(srv_listener_httpd(p->regignition), o->listen_register, err) < 0)
			return err_wrap(err, "--listen-register");
	}
	if (options_serves_register_ak(o)) {
		p->regak = srv_regak_new(&env);
		if (httpd_listen(srv_listener_httpd(p->regak), o->listen_register_ak, err) < 0)
			return err_wrap(err, "--listen-register-ak");
	}
	if (p->embedded)
		return embedded_listen(p->embedded,
			&(struct embedded_nodes){.ns = p->ns,
				.state = &p->state,
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
	if (httpd_listen(srv_health_httpd(p->health), o->listen_health, err) < 0)
		return err_wrap(err, "--listen-health");
	return p->standalone ? standalone_listen(p->standalone, is_ready, hand_in, p, err) : 0;
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
	for (i = 0; i < STATE_N_KINDS; i++)
		k8s_watch_free(p->watch[i]);
	images_free(p->images);
	kbs_sync_free(p->state.sync);
	embedded_free(p->embedded);
	k8s_events_free(p->ctl_events);
	k8s_events_free(p->events);
	for (i = 0; i < STATE_N_KINDS; i++)
		k8s_cache_free(p->state.cache[i]);
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
