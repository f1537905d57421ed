/* SPDX-License-Identifier: MIT */
/*
 * The TLS Secrets that spec names: which are missing, which cannot be used, and which have a CA that
 * spec does not list.
 * Without a list, nothing proves whose CA it is. Then a Secret that is younger than the cluster
 * object is reported once: a stranger may have waited for the name. The rule needs no memory, and
 * covers each Secret that was created after spec named it.
 */
#include "config.h"

#include "cluster_internal.h"

#include <string.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"

/* An Event shows three hashes at most. */
#define SHOWN_LEN (3 * (SHA256_HEX_LEN + 1) - 1)

bool cluster_tls_is_named(const struct model_cluster *c, const char *secret)
{
	struct model_tls_use use;

	for (unsigned i = 0; model_tls_use(c, i, &use); i++)
		if (str_eq(use.secret, secret))
			return true;
	return false;
}

/* NULL: the field is not set, or the Secret does not exist. */
static const struct model_secret *secret_of(
	const struct ctl_env *env, const struct model_tls_use *use)
{
	return use->secret ? caches_secret(env->caches, use->secret) : NULL;
}

/* Each sentence names the field, because several fields may name Secrets. */
void cluster_tls_missing(
	const struct ctl_env *env, const struct model_cluster *c, struct strbuf *out)
{
	struct model_tls_use use;

	for (unsigned i = 0; model_tls_use(c, i, &use); i++)
		if (use.secret && !secret_of(env, &use))
			strbuf_addf(out, " Secret %s (%s) does not exist.", use.secret, use.field);
}

/* An unlisted CA is refused, because nodes would trust it; the message shows its hash so that it
 * can be compared and listed. */
void cluster_tls_refused(
	const struct ctl_env *env, const struct model_cluster *c, struct strbuf *out)
{
	struct model_tls_use use;
	const char *ca;

	for (unsigned i = 0; model_tls_use(c, i, &use); i++) {
		const struct model_secret *s = secret_of(env, &use);

		ca = s ? model_cluster_unlisted_ca(c->ca_sha256, s->ca_sha256) : NULL;
		if (ca && !*ca)
			strbuf_addf(out,
				" Secret %s (%s) is refused: its ca.crt is unusable, and spec.tls.caSHA256 is set.",
				use.secret, use.field);
		else if (ca)
			strbuf_addf(out,
				" Secret %s (%s) is refused: spec.tls.caSHA256 does not list the certificate with SHA-256 %.64s in its "
				"ca.crt.",
				use.secret, use.field, ca);
	}
}

void cluster_tls_unusable(
	const struct ctl_env *env, const struct model_cluster *c, struct strbuf *out)
{
	int64_t now_s = clock_wall_s();
	struct model_tls_use use;

	for (unsigned i = 0; model_tls_use(c, i, &use); i++) {
		const struct model_secret *s = secret_of(env, &use);
		struct err why = ERR_INIT;

		if (s && !model_cluster_unlisted_ca(c->ca_sha256, s->ca_sha256) &&
			!model_tls_usable(&use, s, now_s, &why))
			strbuf_addf(out, " Secret %s (%s) cannot be used: %s.", use.secret,
				use.field, why.text);
	}
}

/* Each Secret is reported once per process; the Event itself is deduplicated by the UID. */
void cluster_tls_tell(struct ctl_cluster *ctl, const struct model_cluster *c)
{
	struct model_tls_use use;

	for (unsigned i = 0; model_tls_use(c, i, &use); i++) {
		const struct model_secret *s = secret_of(ctl->env, &use);
		struct log_ctx lc = {"Secret", ctl->env->ns, use.secret, s ? s->obj.uid : NULL};
		uint64_t uid = s ? str_hash(s->obj.uid, strlen(s->obj.uid)) : 0;

		/* Nodes get a CA that nobody has confirmed. Kubernetes times are whole seconds: a
		 * Secret of the same second usually comes from the same manifest as the cluster
		 * object. */
		if (!s || c->ca_sha256 || !s->ca_sha256 || !*s->ca_sha256 ||
			s->obj.created_s <= c->obj.created_s || ctl->told_tls[i] == uid)
			continue;
		ctl->told_tls[i] = uid;
		log_warn(&lc, "TLS Secret is younger than the cluster object", "cert=%.64s",
			s->ca_sha256);
		/* It lists hashes, because an administrator can compare them with the CA at hand. */
		k8s_events_post_once(ctl->env->events, &kobj_cluster, &c->obj, K8S_EVENT_WARNING,
			"TLSSecretIsYounger", "Trust", s->obj.uid,
			"Secret %s, which spec.%s names, was created after this TrustedExecutionCluster. Nodes are configured to trust its CA, "
			"SHA-256 %.*s%s. If this is not your CA, delete the Secret, and reinstall the nodes that fetched their Ignition "
			"configuration since then. To accept only your CA, list it in spec.tls.caSHA256.",
			s->obj.name, use.field, SHOWN_LEN, s->ca_sha256,
			strlen(s->ca_sha256) > SHOWN_LEN ? " and others" : "");
	}
}
