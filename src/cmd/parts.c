/* SPDX-License-Identifier: MIT */
/*
 * Wiring only. What should run (controllers, Secret watch, which certificates) is decided in one
 * place, consider(), from what is so now; everything that may change it only asks for another look.
 */
#include "config.h"

#include "parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/base/uuid.h"
#include "tec/kbs/client.h"
#include "tec/render/regkey.h"
#include "tec/srv/metrics.h"
#include "tec/state/cluster.h"

#define DRAIN_MS 10000
/* How long keys are not taken back because a list is missing that only others read. */
#define PATIENCE_MS 10000
/* The lease, a token's life, a minute of leeway: nothing of an old leader is taken after it. */
#define REPEAT_REVOKED_MS   (15000 + KBS_TOKEN_LIFE_S * 1000 + 60000)
#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

static void consider(void *arg);

static void ask(void *arg)
{
	struct parts *p = arg;

	defer_call(&p->consider, p->loop, consider, p);
}

static void on_cluster_change(void *arg, const struct kobj *was, const struct kobj *now)
{
	ask(arg);
}

void parts_init(struct parts *p, struct options *o, struct loop *take_loop)
{
	memset(p, 0, sizeof(*p));
	p->options = o;
	p->loop = take_loop;
}

/* ---- connect ---- */

static struct k8s_kubeconfig *load_config(const struct options *o, struct err *err)
{
	if (o->kubeconfig)
		return k8s_kubeconfig_load(o->kubeconfig, NULL, err);
	return k8s_kubeconfig_in_cluster(getenv("KUBERNETES_SERVICE_HOST"),
		getenv("KUBERNETES_SERVICE_PORT"), SERVICE_ACCOUNT_DIR, err);
}

static int choose_namespace(struct parts *p, const struct k8s_kubeconfig *k, struct err *err)
{
	const char *ns = p->options->namespace_;

	if (!ns)
		ns = getenv("POD_NAMESPACE");
	if (!ns)
		ns = k->namespace_;
	if (!ns)
		return err_set(err, ERR_INVALID,
			"no namespace is known: give --namespace, or set POD_NAMESPACE or the context's namespace");
	if (!kobj_label_valid(ns, strlen(ns)))
		return err_set(err, ERR_INVALID, "--namespace: not a valid namespace name");
	p->ns = xstrdup(ns);
	return 0;
}

/* One descriptor per connection and some for ourselves; a Pod's soft limit is often lower than its
 * hard limit. */
static void raise_descriptor_limit(const struct options *o)
{
	rlim_t want = (rlim_t)o->max_connections * 2 + 256;
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur >= want)
		return;
	lim.rlim_cur = lim.rlim_max == RLIM_INFINITY || lim.rlim_max > want ? want : lim.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur < want)
		log_warn(NULL, "fewer descriptors than connections allowed", "count=%llu",
			(unsigned long long)lim.rlim_cur);
}

int parts_connect(struct parts *p, struct err *err)
{
	struct k8s_kubeconfig *k = load_config(p->options, err);

	if (!k)
		return -1;
	if (choose_namespace(p, k, err) < 0) {
		k8s_kubeconfig_free(k);
		return -1;
	}
	raise_descriptor_limit(p->options);
	p->http = httpc_new(p->loop);
	p->api = k8s_client_new(p->loop, p->http, k, PACKAGE_NAME "/" PACKAGE_VERSION);
	return 0;
}

/* ---- watch ---- */

int parts_watch(struct parts *p, struct err *err)
{
	for (int i = 0; i < STATE_N_KINDS; i++) {
		const struct state_kind *kind = &state_kinds[i];
		struct k8s_watch_conf conf = {
			.gvk = kind->gvk,
			.ns = p->ns,
			.label_selector = kind->labels,
			.secret = i == STATE_SECRETS,
		};

		if (!(kind->needs & STATE_FOR_LISTENERS) && !options_controls(p->options))
			continue;
		p->state.cache[i] = k8s_cache_new(&kind->cache);
		p->watch[i] = k8s_watch_new(p->loop, p->api, p->state.cache[i], &conf);
		k8s_watch_on_state(p->watch[i], ask, p);
	}
	srv_metrics_count(&p->state);
	k8s_cache_listen(p->state.clusters, on_cluster_change, p);
	return 0;
}

/* ---- control ---- */

static const char *env_or(const char *name, const char *dflt)
{
	const char *v = getenv(name);

	return v && *v ? v : dflt;
}

static void on_lease(void *arg, bool leader)
{
	ask(arg);
}

static void make_lease(struct parts *p)
{
	char host[256] = "tec-operator", uuid[UUID_TEXT_LEN + 1];
	cleanup_free char *identity = NULL;
	struct k8s_lease_conf conf = {
		.ns = p->ns, .name = "tec-operator", .on_change = on_lease, .arg = p};

	gethostname(host, sizeof(host) - 1);
	uuid_new_v4(uuid);
	identity = xasprintf("%s_%s", env_or("POD_NAME", host), uuid);
	conf.identity = identity;
	p->lease = k8s_lease_new(p->loop, p->api, &conf);
	p->gate = k8s_gate_new(p->api, k8s_lease_may_write, p->lease);
}

/* ctl/trustee's door to a server. */
static struct kbs_transport *connect_to_trustee(
	void *arg, const struct ctl_kbs_place *place, struct err *err)
{
	struct parts *p = arg;
	struct kbs_client_conf conf = {
		.url = place->url, .connect_to = place->connect_to, .admin = place->admin};
	struct kbs_transport *t;

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

int parts_control(struct parts *p, struct err *err)
{
	struct render_images images = {
		.trustee = env_or("RELATED_IMAGE_TRUSTEE", render_images_default.trustee),
		.operator_ = env_or("RELATED_IMAGE_OPERATOR", render_images_default.operator_),
		.compute_pcrs =
			env_or("RELATED_IMAGE_COMPUTE_PCRS", render_images_default.compute_pcrs),
	};
	struct k8s_transport *api;

	p->events = k8s_events_new(
		p->loop, p->api, p->ns, PACKAGE_NAME, env_or("POD_NAME", PACKAGE_NAME));
	if (!options_controls(p->options))
		return 0;
	if (p->options->leader_elect)
		make_lease(p);
	api = p->gate ? p->gate : p->api;
	p->ctl_events =
		k8s_events_new(p->loop, api, p->ns, PACKAGE_NAME, env_or("POD_NAME", PACKAGE_NAME));
	p->state.sync = kbs_sync_new();
	p->labels = labels_new(p->loop, p->options, err);
	if (!p->labels)
		return -1;
	p->env = (struct ctl_env){
		.loop = p->loop,
		.api = api,
		.ns = p->ns,
		.state = &p->state,
		.events = p->ctl_events,
		.images_ref = images,
		.image_label = labels_image,
		.image_label_arg = p->labels,
		.kbs_connect = connect_to_trustee,
		.kbs_connect_arg = p,
		.kbs_url = p->options->kbs_url,
		.repeat_revoked_ms = p->options->leader_elect ? REPEAT_REVOKED_MS : 0,
	};
	p->since = ctl_since_new(&p->env, &p->state, ask, p);
	p->trustee = ctl_trustee_new(&p->env);
	p->cluster = ctl_cluster_new(&p->env);
	p->machine = ctl_machine_new(&p->env);
	p->ak = ctl_ak_new(&p->env);
	p->image = ctl_image_new(&p->env);
	p->unreadable = ctl_unreadable_new(&p->state, p->ctl_events);
	return 0;
}

/* ---- serve ---- */

static bool is_ready(void *arg, const char **why)
{
	const struct parts *p = arg;

	*why = "objects are being listed";
	if (!state_filled(&p->state, STATE_FOR_LISTENERS))
		return false;
	*why = "TLS Secrets are being read";
	if (p->certs && !srv_certs_filled(p->certs))
		return false;
	*why = "the registration key is being read";
	if (p->regkey && !srv_regkey_filled(p->regkey))
		return false;
	*why = "shutting down";
	return !p->drain_until_ms;
}

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

	p->certs = env.certs = srv_certs_new(p->loop, p->api, p->ns, ask, p);
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
	return 0;
}

int parts_serve(struct parts *p, struct err *err)
{
	const struct options *o = p->options;

	if ((options_serves_register(o) || options_serves_register_ak(o)) &&
		serve_registration(p, err) < 0)
		return -1;
	p->health = srv_health_new(p->loop, is_ready, p);
	if (httpd_listen(srv_health_httpd(p->health), o->listen_health, err) < 0)
		return err_wrap(err, "--listen-health");
	return 0;
}

/* ---- what should run now ---- */

/* The Secrets that this role's listeners need: their own certificate, and what nodes shall trust.
 */
static void want_certs(struct parts *p)
{
	const struct model_cluster *c = state_cluster_oldest(&p->state);
	const char *names[3 + MODEL_CLUSTER_SERVERS_MAX] = {NULL};
	size_t n = 0;
	unsigned i;

	if (c && p->regignition) {
		names[n++] = c->register_secret;
		names[n++] = c->trustee_secret;
		for (i = 0; i < c->n_servers; i++)
			names[n++] = c->server_ca[i];
	}
	if (c)
		names[n++] = c->ak_secret;
	srv_certs_want(p->certs, names, n);
	/* After a change to AtRequest too, while nodes come with ids of before. */
	if (c && (c->reg_machine == MODEL_REG_AT_KEY ||
			 model_cluster_announced(c, RENDER_REGKEY_CURRENT)))
		srv_regkey_want(p->regkey);
	if (p->regignition)
		srv_listener_refresh(p->regignition);
	if (p->regak)
		srv_listener_refresh(p->regak);
}

/* What takes keys back starts with the others, or without them when their lists do not come: what
 * it has not seen counts as there (state/trustee). */
static void controllers_on(struct parts *p, bool all)
{
	log_info(NULL, "controllers start", "machine=%zu ak=%zu count=%d",
		k8s_cache_count(p->state.machines), k8s_cache_count(p->state.aks), all ? 5 : 3);
	if (p->revoking_on) { /* they look again, with what was not known before */
		ctl_machine_off(p->machine);
		ctl_ak_off(p->ak);
	} else {
		ctl_trustee_on(p->trustee); /* first: the others ask what Trustee may hold */
	}
	if (all)
		ctl_cluster_on(p->cluster);
	ctl_machine_on(p->machine);
	ctl_ak_on(p->ak);
	if (all)
		ctl_image_on(p->image);
	p->revoking_on = true;
	p->installing_on = all;
}

/* Those that declare what Trustee shall hold. */
static void declaring_off(struct parts *p)
{
	log_info(NULL, "controllers stop", NULL);
	ctl_cluster_off(p->cluster);
	ctl_machine_off(p->machine);
	ctl_ak_off(p->ak);
	ctl_image_off(p->image);
}

static void controllers_off(struct parts *p)
{
	if (!p->finishing)
		declaring_off(p);
	ctl_trustee_off(p->trustee); /* forgets what was declared */
	p->revoking_on = p->installing_on = p->finishing = false;
}

static void on_impatient(void *arg)
{
	struct parts *p = arg;

	p->impatient = true;
	for (int i = 0; i < STATE_N_KINDS; i++)
		if (!k8s_cache_filled(p->state.cache[i]))
			log_warn(NULL, "no list yet, what needs it waits", "resource=%s",
				state_kinds[i].gvk->plural);
	ask(p);
}

static void consider_start(struct parts *p)
{
	bool all = state_filled(&p->state, STATE_FOR_ALL),
	     enough = state_filled(&p->state, STATE_FOR_REVOKING);

	if (p->installing_on || (!all && (p->revoking_on || !enough)))
		return;
	if (all || p->impatient) {
		timer_cancel(&p->patience);
		controllers_on(p, all);
	} else if (!timer_is_set(&p->patience)) {
		timer_set(&p->patience, PATIENCE_MS);
	}
}

static void consider_controllers(struct parts *p)
{
	bool leads = !p->lease || k8s_lease_state(p->lease) == K8S_LEASE_LEADER;
	bool leader = leads && (!p->drain_until_ms || p->finishing);
	enum k8s_watch_state secrets = k8s_watch_state(p->watch[STATE_SECRETS]);
	bool reads = secrets != K8S_WATCH_IDLE && secrets != K8S_WATCH_STOPPED;

	if (p->revoking_on && !leader)
		controllers_off(p);
	if (p->finishing)
		return; /* nothing is started any more */
	if (leader && !reads)
		k8s_watch_start(p->watch[STATE_SECRETS]);
	if (!leader && reads) {
		/* Keys leave memory with the leadership. */
		k8s_watch_stop(p->watch[STATE_SECRETS]);
		k8s_cache_clear(p->state.secrets);
	}
	if (!leader) {
		ctl_since_off(p->since);
		timer_cancel(&p->patience);
		p->impatient = false;
	} else if (reads) {
		ctl_since_on(p->since);
		if (ctl_since_known(p->since))
			consider_start(p);
	}
}

static void consider(void *arg)
{
	struct parts *p = arg;

	if (p->certs)
		want_certs(p);
	if (p->cluster)
		consider_controllers(p);
}

/* ---- life ---- */

static void on_drain(void *arg);

void parts_start(struct parts *p)
{
	int i;

	timer_init(&p->drain, p->loop, on_drain, p);
	timer_init(&p->patience, p->loop, on_impatient, p);
	log_info(NULL, "tec-operator starts", "version=%s ns=%s pid=%d", PACKAGE_VERSION, p->ns,
		(int)getpid());
	for (i = 0; i < STATE_N_KINDS; i++)
		if (p->watch[i] && i != STATE_SECRETS)
			k8s_watch_start(p->watch[i]);
	if (p->lease)
		k8s_lease_start(p->lease);
	ask(p);
}

void parts_reload(struct parts *p)
{
	struct err err = ERR_INIT;

	if (options_reload(p->options, &err) < 0) {
		log_err(LOG_ERROR, NULL, "configuration not reread, the old one stays", &err);
		return;
	}
	log_setup(p->options->log_level, p->options->log_format);
	log_info(NULL, "configuration reread", NULL);
}

static size_t in_flight(const struct parts *p)
{
	size_t n = 0;

	if (p->regignition)
		n += httpd_in_flight(srv_listener_httpd(p->regignition));
	if (p->regak)
		n += httpd_in_flight(srv_listener_httpd(p->regak));
	return n;
}

static void on_released(void *arg)
{
	struct parts *p = arg;

	loop_stop(p->loop);
}

static void on_drain(void *arg)
{
	struct parts *p = arg;

	bool busy = in_flight(p) || (p->finishing && !ctl_trustee_is_finished(p->trustee));

	if (busy && clock_boot_ms() < p->drain_until_ms) {
		timer_set(&p->drain, 50);
		return;
	}
	if (p->revoking_on)
		controllers_off(p);
	if (p->lease)
		k8s_lease_release(p->lease, on_released, p);
	else
		loop_stop(p->loop);
}

void parts_shutdown(struct parts *p, const char *why)
{
	if (p->drain_until_ms) {
		log_warn(NULL, "stopped at once", "signal=%s", log_esc(why));
		loop_stop(p->loop);
		return;
	}
	log_info(NULL, "shutting down", "signal=%s", log_esc(why));
	p->drain_until_ms = clock_boot_ms() + DRAIN_MS;
	if (p->regignition)
		httpd_drain(srv_listener_httpd(p->regignition));
	if (p->regak)
		httpd_drain(srv_listener_httpd(p->regak));
	if (p->revoking_on) {
		/* What Trustee was told is written there, so that the next process sends nothing
		 * again. */
		declaring_off(p);
		p->finishing = true;
		ctl_trustee_finish(p->trustee);
	}
	timer_set(&p->drain, 0);
}

void parts_fini(struct parts *p)
{
	int i;

	if (p->drain.loop) {
		timer_fini(&p->drain);
		timer_fini(&p->patience);
	}
	defer_cancel(&p->consider);
	srv_health_free(p->health);
	srv_listener_free(p->regak);
	srv_listener_free(p->regignition);
	srv_certs_free(p->certs);
	srv_regkey_free(p->regkey);
	ctl_trustee_free(p->trustee); /* tells the others that its servers are gone */
	ctl_image_free(p->image);
	ctl_ak_free(p->ak);
	ctl_machine_free(p->machine);
	ctl_cluster_free(p->cluster);
	ctl_since_free(p->since);
	for (i = 0; i < STATE_N_KINDS; i++)
		k8s_watch_free(p->watch[i]);
	labels_free(p->labels);
	kbs_sync_free(p->state.sync);
	k8s_events_free(p->ctl_events);
	k8s_events_free(p->events);
	for (i = 0; i < STATE_N_KINDS; i++)
		k8s_cache_free(p->state.cache[i]);
	ctl_unreadable_free(p->unreadable);
	srv_pending_free(p->pending);
	ratelimit_free(p->rate);
	k8s_transport_free(p->gate);
	k8s_lease_free(p->lease); /* the gate asked it */
	k8s_transport_free(p->api);
	httpc_free(p->http);
	loop_free(p->loop);
	free(p->ns);
}
