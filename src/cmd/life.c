/* SPDX-License-Identifier: MIT */
/*
 * Which parts run, and when: controllers, the watch of Secrets, the certificates that are read,
 * and the shutdown. One function, check(), compares what runs with what should run; everything
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

#include <unistd.h>

#include "tec/base/clock.h"
#include "tec/ctl/leader_tasks.h"
#include "tec/ctl/shutdown.h"
#include "tec/render/regkey.h"
#include "tec/state/cluster.h"
#include "tec/state/adoption_cutoff.h"

#define ENDING_MS 50 /* between two checks of a shutdown */
/* How long the controllers that revoke keys wait for a list that only the other controllers
 * need. */
#define WAIT_MS 10000

/* Follow the Secrets that the cluster names, and let each listener adopt what has changed. */
static void want_certs(struct parts *p)
{
	const struct model_cluster *c = state_cluster_oldest(&p->state);
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
		k8s_cache_count(p->state.machines), k8s_cache_count(p->state.aks), all ? 5 : 3);
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
	for (int i = 0; i < STATE_N_KINDS; i++)
		if (!k8s_cache_filled(p->state.cache[i]))
			log_warn(NULL,
				"list is incomplete, the controllers that need it are waiting",
				"resource=%s", state_kinds[i].gvk->plural);
	parts_check(p);
}

/* Without leader election every process leads. */
static bool leads(const struct k8s_lease *lease)
{
	return !lease || k8s_lease_state(lease) == K8S_LEASE_LEADER;
}

/* Everything that ctl_leader_tasks_decide() looks at; it has no other input. */
static struct ctl_leader_tasks_view duty_view(const struct parts *p)
{
	enum k8s_watch_state secrets = k8s_watch_state(p->watch[STATE_SECRETS]);

	return (struct ctl_leader_tasks_view){
		.leads = leads(p->lease),
		.draining = p->ending,
		.finishing = p->finishing,
		.reads_secrets = secrets != K8S_WATCH_IDLE && secrets != K8S_WATCH_STOPPED,
		.cutoff_known = state_adoption_cutoff_known(&p->state),
		.all_filled = state_filled(&p->state, STATE_FOR_ALL),
		.revoking_filled = state_filled(&p->state, STATE_FOR_REVOKING),
		.all_on = p->all_on,
		.revoking_on = p->revoking_on,
		.waiting = timer_is_set(&p->wait),
		.waited = p->waited,
	};
}

/* Take the next step towards what should run. false: nothing is left to do. */
static bool do_duty(struct parts *p)
{
	const struct ctl_leader_tasks_view v = duty_view(p);

	switch (ctl_leader_tasks_decide(&v)) {
	case CTL_LEADER_TASKS_NOTHING:
		return false;
	case CTL_LEADER_TASKS_STOP:
		controllers_off(p);
		break;
	case CTL_LEADER_TASKS_FORGET:
		k8s_watch_stop(p->watch[STATE_SECRETS]);
		k8s_cache_clear(p->state.secrets);
		ctl_adoption_cutoff_off(p->since);
		timer_cancel(&p->wait);
		p->waited = false;
		break;
	case CTL_LEADER_TASKS_READ:
		k8s_watch_start(p->watch[STATE_SECRETS]);
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

/* ---- start, SIGHUP, shutdown */

/* A file with an error changes nothing; of a good one only reloadable options apply. */
void parts_reload(struct parts *p)
{
	struct err err = ERR_INIT;

	if (options_reload(p->options, &err) < 0) {
		log_err(LOG_ERROR, NULL, "cannot reload the configuration, keeping the current one",
			&err);
		return;
	}
	log_setup(p->options->log_level, p->options->log_format);
	log_info(NULL, "configuration reloaded", NULL);
}

/* Requests of nodes that are being answered. */
static size_t in_flight(const struct parts *p)
{
	size_t n = 0;

	if (p->regignition)
		n += httpd_in_flight(srv_listener_httpd(p->regignition));
	if (p->regak)
		n += httpd_in_flight(srv_listener_httpd(p->regak));
	if (p->embedded)
		n += httpd_in_flight(embedded_httpd(p->embedded));
	return n;
}

/* A Lease was given up, so another process can lead at once instead of waiting for its expiry. */
static void on_released(void *arg)
{
	struct parts *p = arg;

	p->released = --p->n_releasing == 0;
	timer_set(&p->next_ending, 0);
}

/* Release the Leases only after the controllers have stopped: two must not decide at once. */
static void release(struct parts *p)
{
	p->releasing = true;
	p->n_releasing = (p->lease ? 1 : 0) + (p->trustee_lease ? 1 : 0);
	/* Without a Lease there is nothing to wait for. */
	p->released = p->n_releasing == 0;
	if (p->lease)
		k8s_lease_release(p->lease, on_released, p);
	if (p->trustee_lease)
		k8s_lease_release(p->trustee_lease, on_released, p);
}

/* Call fn for each listener for nodes. The health listener answers until the end. */
static void each_listener(struct parts *p, void (*fn)(struct httpd *h))
{
	if (p->regignition)
		fn(srv_listener_httpd(p->regignition));
	if (p->regak)
		fn(srv_listener_httpd(p->regak));
	if (p->embedded)
		fn(embedded_httpd(p->embedded));
}

/* The delay applies only to a process with listeners: a Service keeps sending it connections. */
static struct ctl_shutdown_view ending_view(const struct parts *p)
{
	bool serves = p->regignition || p->regak;

	return (struct ctl_shutdown_view){
		.since_ms = clock_boot_ms() - p->ending_ms,
		.delay_ms = serves ? p->options->shutdown_delay_ms : 0,
		.controllers = p->revoking_on,
		.controls_end = p->finishing && ctl_trustee_is_finished(p->trustee),
		.releasing = p->releasing,
		.released = p->released,
		.draining = p->draining,
		.in_flight = in_flight(p) > 0,
	};
}

/* Take the steps of the shutdown that are due, then look again after ENDING_MS (ctl/shutdown.h). */
static void go_on_ending(void *arg)
{
	struct parts *p = arg;

	for (;;) {
		const struct ctl_shutdown_view v = ending_view(p);

		switch (ctl_shutdown_decide(&v)) {
		case CTL_SHUTDOWN_WAIT:
			timer_set(&p->next_ending, ENDING_MS);
			return;
		case CTL_SHUTDOWN_STOP:
			controllers_off(p);
			break;
		case CTL_SHUTDOWN_RELEASE:
			release(p);
			break;
		case CTL_SHUTDOWN_DRAIN:
			p->draining = true;
			each_listener(p, httpd_drain);
			if (p->standalone)
				standalone_drain(p->standalone);
			break;
		case CTL_SHUTDOWN_END:
			loop_stop(p->loop);
			return;
		}
	}
}

/* Secrets are watched later, by the leader only (CTL_LEADER_TASKS_READ). */
void parts_start(struct parts *p)
{
	int i;

	timer_init(&p->next_ending, p->loop, go_on_ending, p);
	timer_init(&p->wait, p->loop, on_waited, p);
	log_info(NULL, "tec-operator starts", "version=%s ns=%s pid=%d", PACKAGE_VERSION, p->ns,
		(int)getpid());
	for (i = 0; i < STATE_N_KINDS; i++)
		if (p->watch[i] && i != STATE_SECRETS)
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
	if (p->ending) {
		log_warn(NULL, "stopping immediately", "signal=%s", log_esc(why));
		loop_stop(p->loop);
		return;
	}
	log_info(NULL, "shutting down", "signal=%s", log_esc(why));
	p->ending = true;
	p->ending_ms = clock_boot_ms();
	each_listener(p, httpd_leave);
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
