/* SPDX-License-Identifier: MIT */
/* The command line and configuration file of tec-operator, validated and converted to values. */
#ifndef TEC_CMD_OPTIONS_H
#define TEC_CMD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "registries.h"

#include "tec/base/log.h"
#include "tec/net/httpd.h"

/* In the order of --role's choices. */
enum options_role { ROLE_ALL, ROLE_CONTROLLER, ROLE_REGISTER, ROLE_REGISTER_AK, ROLE_GUARD };

/* Options of --role=guard, some of which --standalone shares. NULL: not given. */
struct options_guard {
	const char *upstream, *upstream_ca;
	const char *listen_kbs, *listen_admin; /* listen_kbs NULL: off */
	const char *tls_cert, *tls_key;        /* both or none */
	bool sample, additional;
	size_t attest_max;
	unsigned sessions, sessions_per_source;
	uint32_t session_ms;
};

/* Strings are borrowed from conf. */
struct options {
	struct conf *conf;
	const char *kubeconfig, *namespace_; /* NULL: not given */
	bool api_http1;                      /* --api-protocol=http1 */
	const char *kbs_url;
	char *standalone; /* owned; the directory; NULL: use a cluster */
	const char *listen_api, *public_address;
	bool plain;
	/* File names; NULL: not given. */
	const char *node_ca, *sealing_key, *write_kubeconfig, *restore;
	bool accept_unverified;
	struct registries_list registry_mirrors, insecure_registries;
	const char *registry_auth; /* NULL: no credentials */
	const char *listen_register, *listen_register_ak, *listen_health;
	bool rate_on;
	uint32_t rate_burst, rate_per_s;
	unsigned max_connections;
	uint64_t shutdown_delay_ms;
	enum options_role role;
	bool controls_cluster, controls_trustees;  /* --controllers */
	struct registries_list trustee_namespaces; /* empty: the operator's namespace */
	bool leader_elect;
	enum log_level log_level;
	enum log_format log_format;
	const char *seed_src, *seed_dst;           /* --seed */
	const char *resources_src, *resources_dst; /* --seed-resources */
	bool lookup_label, compute_image;
	struct options_guard guard;
};

/* Read options as conf_start() does. Call options_fini() whatever the result. */
enum conf_result options_read(struct options *o, int argc, char *const argv[]);
void options_fini(struct options *o);
/* Read the configuration file again, on SIGHUP. Only reloadable options change; on an error, none. */
int options_reload(struct options *o, struct err *err) MUST_CHECK;
/* The same on SIGHUP: applies the options to the log. false: an error, which is logged. */
bool options_hangup(struct options *o);

static inline bool options_serves_register(const struct options *o)
{
	return o->controls_cluster && (o->role == ROLE_ALL || o->role == ROLE_REGISTER);
}
static inline bool options_serves_register_ak(const struct options *o)
{
	return o->controls_cluster && (o->role == ROLE_ALL || o->role == ROLE_REGISTER_AK);
}
/* Does this process run any controller? */
static inline bool options_controls(const struct options *o)
{
	return o->role == ROLE_ALL || o->role == ROLE_CONTROLLER;
}
static inline bool options_controls_cluster(const struct options *o)
{
	return o->controls_cluster && options_controls(o);
}
static inline bool options_controls_trustees(const struct options *o)
{
	return o->controls_trustees && options_controls(o);
}

/* Bind the listener of an option, which the error names. */
int options_listen(
	struct httpd *h, const char *option, const char *address, struct err *err) MUST_CHECK;

/* Return an environment variable that the Deployment sets, or dflt if it is unset or empty. */
const char *env_or(const char *name, const char *dflt);

#endif
