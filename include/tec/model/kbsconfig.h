/* SPDX-License-Identifier: MIT */
/* KbsConfig (confidentialcontainers.org): one Trustee, configured by ConfigMaps and Secrets that it
 * names. */
#ifndef TEC_MODEL_KBSCONFIG_H
#define TEC_MODEL_KBSCONFIG_H

#include <json-c/json.h>

#include "tec/kobj/condition.h"
#include "tec/kobj/meta.h"

#define MODEL_KBSCONFIG_FINALIZER "kbsconfig.confidentialcontainers.org/finalizer"
/* Annotation: "legacy" or "current" overrides what kbs-config.toml suggests. */
#define MODEL_KBSCONFIG_GUARD  "trusted-execution-clusters.io/trustee-guard"
#define MODEL_KBSCONFIG_LAYOUT "trusted-execution-clusters.io/trustee-layout"
/* Annotation: "true" copies the Secrets of kbsSecretResources into a volume that Trustee can write. */
#define MODEL_KBSCONFIG_WRITABLE "trusted-execution-clusters.io/writable-repository"
/* Annotation: profile of the TrusteeConfig for which it was made. */
#define MODEL_KBSCONFIG_PROFILE "trusted-execution-clusters.io/profile"
#define MODEL_KBSCONFIG_ALL     "*" /* value of index 0 for every object; index 1 is the uid */

enum model_kbsconfig_cond { KBSCONFIG_INSTALLED, KBSCONFIG_READY, KBSCONFIG_N_CONDS };
extern const char *const model_kbsconfig_cond_types[KBSCONFIG_N_CONDS];

enum model_kbsconfig_reason {
	KBSCONFIG_IS_INSTALLED,
	KBSCONFIG_INSTALLING,
	KBSCONFIG_INPUT_MISSING, /* an object that spec names, or a key in it, is missing */
	KBSCONFIG_INPUT_INVALID,
	KBSCONFIG_CONFLICT, /* with another KbsConfig, or another owner of an object */
	KBSCONFIG_WRITE_REFUSED,
	KBSCONFIG_NOT_WATCHED, /* its namespace is not among --trustee-namespaces */
	KBSCONFIG_IS_READY,    /* from here on reasons of Ready */
	KBSCONFIG_NOT_INSTALLED,
	KBSCONFIG_STARTING,
	KBSCONFIG_ROLLING_OUT,
	KBSCONFIG_NO_REPLICAS,
	KBSCONFIG_DELETING, /* reason of both conditions */
	KBSCONFIG_N_REASONS,
};
const char *model_kbsconfig_reason(enum model_kbsconfig_reason r);

/* Objects named by single members of spec: ConfigMaps first, then Secrets. */
enum model_kbsconfig_input {
	KBSCONFIG_CONFIG,
	KBSCONFIG_AS_CONFIG,
	KBSCONFIG_RVPS_CONFIG,
	KBSCONFIG_VALUES,
	KBSCONFIG_CPU_POLICY,
	KBSCONFIG_GPU_POLICY,
	KBSCONFIG_RESOURCE_POLICY,
	KBSCONFIG_QCNL,
	KBSCONFIG_AUTH,
	KBSCONFIG_HTTPS_KEY,
	KBSCONFIG_HTTPS_CERT,
	KBSCONFIG_TOKEN_KEY,
	KBSCONFIG_TOKEN_CERT,
	KBSCONFIG_N_INPUTS,
};
/* Their paths in spec, with '/' between members. */
extern const char *const model_kbsconfig_input_paths[KBSCONFIG_N_INPUTS];
static inline bool model_kbsconfig_is_secret(enum model_kbsconfig_input i)
{
	return i >= KBSCONFIG_AUTH;
}

struct model_kbsconfig {
	struct kobj obj;
	bool has_finalizer;
	bool microservices; /* where spec does not say: as implied by its other members */
	bool is_ready;      /* as in status */
	bool has_status;
	int32_t replicas;
	const char *other_finalizers;          /* kobj_finalizers() */
	const char *input[KBSCONFIG_N_INPUTS]; /* NULL: not given */
	const char *service_type;              /* never NULL */
	const char *resources;                 /* names of Secrets, one per line; NULL: none */
	const char *caches;                    /* lines "SECRET<tab>directory"; NULL: none */
	const char *pvc;
	const char *env;       /* JSON object; NULL: none */
	const char *layout;    /* the annotation */
	const char *guard;     /* the annotation; NULL: absent */
	const char *writable;  /* the annotation */
	const char *problem;   /* why a part of spec is unusable; NULL: none */
	const char *owner_uid; /* controller: its TrusteeConfig */
	const char *owners;    /* JSON: all owners, when none is the controller; NULL: none */
	const char *profile;   /* annotation: profile of the owner */
	const char *log;       /* KbsEnvVars.RUST_LOG */
	struct kobj_cond cond[KBSCONFIG_N_CONDS];
};

struct kobj *model_kbsconfig_extract(struct json_object *o, struct err *err);
const char *model_kbsconfig_index(const struct kobj *o, unsigned i);
static inline const struct model_kbsconfig *model_kbsconfig(const struct kobj *o)
{
	return (const struct model_kbsconfig *)o;
}
/* Tell whether spec names this ConfigMap or Secret. */
bool model_kbsconfig_names(const struct model_kbsconfig *c, bool secret, const char *name);

#endif
