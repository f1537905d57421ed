/* SPDX-License-Identifier: MIT */
/*
 * The source: a second API server, read by watches of the kinds that are copied. Its address and
 * credentials come from a kubeconfig in a Secret. Everybody who can write Secrets here can write
 * it, so a kubeconfig that would make this process read a file or start a program is refused.
 */
#include "config.h"

#include "follow_internal.h"

#include <stdio.h>
#include <string.h>

#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"

#define KUBECONFIG   "kubeconfig" /* member of the Secret */
#define RETRY_MS     5000         /* maximum backoff while the source is unreachable */
#define PEER_FRESH_S 20           /* a silent connection to a peer is tested after this time */

const enum state_of follow_kinds[FOLLOW_N_WATCHES] = {
	STATE_CLUSTERS, STATE_MACHINES, STATE_AKS, STATE_IMAGES, STATE_CONFIGMAPS, STATE_SECRETS};

/* ---- connecting */

/* All refusals name the member, so that the text makes sense in the condition. */
static int refuse(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID, "member " KUBECONFIG " %s", what);
}

/* Refuse a kubeconfig that names programs or files, or does not verify the server. */
static int check_config(const struct k8s_kubeconfig *k, const char *ns, struct err *err)
{
	if (k->exec_argv)
		return refuse(
			err, "names a program (exec); use a token or a client certificate instead");
	if (k->ca_file || k->cert_file || k->key_file || k->token_file)
		return refuse(err,
			"names a file; embed the data instead (kubectl config view --flatten)");
	if (k->insecure || !str_starts(k->server, "https://"))
		return refuse(err,
			"does not verify the server's certificate, but disk keys are sent over this connection");
	if (!ns)
		return refuse(err, "names no namespace; set spec.follow.namespace");
	return kobj_label_valid(ns, strlen(ns)) ? 0 : refuse(err, "names an invalid namespace");
}

/* Start the watches. Of a peer, only the cluster is read, and a dead connection must be noticed
 * soon. */
static void start_watches(struct follow_source *s, const char *ns, bool all)
{
	static const char *const labels[FOLLOW_N_WATCHES] = {"followed trustedexecutionclusters",
		"followed machines", "followed attestationkeys", "followed approvedimages",
		"followed configmaps", "followed secrets"}; /* as follow_kinds */

	s->n = all ? FOLLOW_N_WATCHES : 1;
	for (int i = 0; i < s->n; i++) {
		enum state_of of = follow_kinds[i];
		const struct k8s_watch_conf conf = {.gvk = state_kinds[of].gvk,
			.ns = ns,
			.fresh_s = all ? 0 : PEER_FRESH_S,
			.secret = of == STATE_SECRETS,
			.label = labels[i],
			.backoff_max_ms = RETRY_MS};

		s->watch[i] = k8s_watch_new(s->env->loop, s->api, s->state.cache[of], &conf);
		k8s_watch_on_state(s->watch[i], follow_on_listed, s->f);
		k8s_watch_start(s->watch[i]);
	}
}

/* On failure nothing is left open; the message is for the condition Authority. */
static int connect_to(struct follow_source *s, const struct secret *text, struct err *err)
{
	const struct model_cluster *c = state_cluster(s->env->state);
	struct k8s_kubeconfig *k = k8s_kubeconfig_parse(
		(const char *)secret_peek(text), secret_len(text), "/", NULL, err);
	cleanup_free char *ns = NULL;

	if (!k)
		return -1;
	ns = xstrdup(c && c->follow_namespace ? c->follow_namespace : k->namespace_);
	if (check_config(k, ns, err) < 0) {
		k8s_kubeconfig_free(k);
		return -1;
	}
	snprintf(s->peer, sizeof(s->peer), "%s %s", k->server, ns);
	free(s->ns);
	s->ns = xstrdup(ns);
	s->api = s->env->follow_connect(s->env->follow_connect_arg, k, err);
	if (!s->api)
		return -1;
	log_info(NULL, "connecting to another operator", "peer=%s", log_esc(s->peer));
	start_watches(s, ns, c && c->authority == MODEL_AUTHORITY_FOLLOWING);
	return 0;
}

/* ---- the Secret */

/* The answer of the API about the Secret of spec.follow: connect, or explain why not. All members
 * of the answer are wiped, since only the kubeconfig is needed. */
static void on_read(void *arg, const struct err *read_err, const struct k8s_result *r)
{
	struct follow_source *s = arg;
	const char *b64 = r->object ? json_get_str(r->object, "data/" KUBECONFIG) : NULL;
	cleanup_secret struct secret *text = NULL;
	struct err err = *read_err;

	s->problem[0] = '\0';
	if (b64 && strlen(b64) <= SECRET_MAX_LEN)
		text = secret_from_b64(b64, strlen(b64));
	json_wipe(r->object ? json_get_obj(r->object, "data") : NULL);
	if (!err_is_set(&err) && !text)
		(void)err_set(&err, ERR_INVALID, "it has no member " KUBECONFIG);
	if (err_is_set(&err) || connect_to(s, text, &err) < 0) {
		snprintf(s->problem, sizeof(s->problem),
			"The Secret of spec.follow cannot be used: %s.", err.text);
		log_err(LOG_WARN, NULL, "cannot connect to the followed operator", &err);
	}
	if (!err_is_set(read_err))
		follow_kind_check(s->f);
	else /* the next tick reads it again */
		free(steal_ptr(&s->from));
}

/* `from` identifies all inputs of the connection; while it is the same, nothing is done. */
void follow_source_want(struct follow_source *s, const struct model_cluster *c)
{
	const struct model_secret *secret = state_secret(s->env->state, c->follow_secret);
	cleanup_free char *from = xasprintf("%s %s %s %s %d", c->follow_secret,
		secret ? secret->obj.uid : "", secret ? secret->obj.rv : "",
		c->follow_namespace ? c->follow_namespace : "",
		c->authority == MODEL_AUTHORITY_FOLLOWING);

	if (str_eq(from, s->from))
		return;
	follow_source_close(s);
	if (!secret) {
		snprintf(s->problem, sizeof(s->problem),
			"Secret %.253s, which spec.follow names, does not exist.",
			c->follow_secret);
		return;
	}
	s->from = steal_ptr(&from);
	op_hold(&s->read, k8s_call_get(s->env->api, &s->ops, &kobj_input_secret, s->env->ns,
				  c->follow_secret, on_read, s));
}

/* ---- life */

/* Take the source's marker (ctl/adoption_cutoff.h): objects older than it may have had keys that were never
 * recorded. */
static void on_configmap(void *arg, const struct kobj *was, const struct kobj *now)
{
	struct follow_source *s = arg;

	if (now && str_eq(now->name, "tec-operator-since"))
		s->state.marker_s = now->created_s;
}

/* The caches exist for life, so that listeners need not be added at each connection. */
void follow_source_init(struct follow_source *s, const struct ctl_env *env, struct ctl_follow *f)
{
	s->env = env;
	s->f = f;
	s->state = (struct state)STATE_INIT;
	for (int i = 0; i < FOLLOW_N_WATCHES; i++)
		s->state.cache[follow_kinds[i]] =
			k8s_cache_new(&state_kinds[follow_kinds[i]].cache);
	k8s_cache_listen(s->state.configmaps, on_configmap, s);
	k8s_cache_listen(s->state.clusters, follow_on_cluster, f);
}

/* The owner stops its kinds first, because they read the caches that are cleared here. */
void follow_source_close(struct follow_source *s)
{
	follow_on_closing(s->f);
	op_cancel(&s->read);
	for (int i = 0; i < FOLLOW_N_WATCHES; i++) {
		k8s_watch_free(s->watch[i]);
		s->watch[i] = NULL;
		k8s_cache_clear(s->state.cache[follow_kinds[i]]);
	}
	s->n = 0;
	k8s_transport_free(steal_ptr(&s->api));
	free(steal_ptr(&s->ns));
	free(steal_ptr(&s->from));
	s->problem[0] = s->peer[0] = '\0';
	s->state.marker_s = INT64_MIN;
}

void follow_source_fini(struct follow_source *s)
{
	follow_source_close(s);
	op_scope_cancel(&s->ops);
	for (int i = 0; i < FOLLOW_N_WATCHES; i++)
		k8s_cache_free(s->state.cache[follow_kinds[i]]);
}

/* ---- state */

/* All watches in use have delivered a complete list at least once. */
bool follow_source_filled(const struct follow_source *s)
{
	for (int i = 0; i < s->n; i++)
		if (!k8s_cache_filled(s->state.cache[follow_kinds[i]]))
			return false;
	return s->n > 0;
}

/* A problem of the connection outranks those of single watches. */
bool follow_source_problem(const struct follow_source *s, char why[512])
{
	if (s->problem[0]) {
		snprintf(why, 512, "%s", s->problem);
		return true;
	}
	for (int i = 0; i < s->n; i++) {
		const char *problem = k8s_watch_problem(s->watch[i]);

		if (*problem) {
			snprintf(why, 512, "%s.", problem);
			return true;
		}
	}
	return false;
}

/* The oldest of the watches counts: the copy is as current as its oldest part. */
int64_t follow_source_seen_s(const struct follow_source *s)
{
	int64_t seen_s = INT64_MAX;

	for (int i = 0; i < s->n; i++) {
		int64_t one_s = k8s_watch_seen_s(s->watch[i]);

		seen_s = one_s < seen_s ? one_s : seen_s;
	}
	return s->n > 0 ? seen_s : 0;
}
