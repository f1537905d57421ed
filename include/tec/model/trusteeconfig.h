/* SPDX-License-Identifier: MIT */
/* TrusteeConfig (confidentialcontainers.org): generates a KbsConfig and the objects that it names,
 * from a profile. */
#ifndef TEC_MODEL_TRUSTEECONFIG_H
#define TEC_MODEL_TRUSTEECONFIG_H

#include <json-c/json.h>

#include "tec/kobj/condition.h"
#include "tec/kobj/meta.h"

enum model_trusteeconfig_cond {
	TRUSTEECONFIG_CONFIGURED,
	TRUSTEECONFIG_READY,
	TRUSTEECONFIG_N_CONDS
};
extern const char *const model_trusteeconfig_cond_types[TRUSTEECONFIG_N_CONDS];

enum model_trusteeconfig_reason {
	TRUSTEECONFIG_IS_CONFIGURED,
	TRUSTEECONFIG_CONFIGURING,
	TRUSTEECONFIG_INVALID_SPEC,
	TRUSTEECONFIG_INPUT_MISSING, /* a Secret that spec or its profile requires */
	TRUSTEECONFIG_EDITED,        /* a generated file was edited and does not fit spec */
	TRUSTEECONFIG_CONFLICT,      /* an object of another owner has a name that is needed */
	TRUSTEECONFIG_WRITE_REFUSED,
	TRUSTEECONFIG_NOT_WATCHED, /* its namespace is not among --trustee-namespaces */
	TRUSTEECONFIG_IS_READY,    /* from here on reasons of Ready */
	TRUSTEECONFIG_NOT_CONFIGURED,
	TRUSTEECONFIG_NOT_READY,
	TRUSTEECONFIG_N_REASONS,
};
const char *model_trusteeconfig_reason(enum model_trusteeconfig_reason r);

enum model_profile { MODEL_PROFILE_NONE, MODEL_PROFILE_PERMISSIVE, MODEL_PROFILE_RESTRICTED };

struct model_trusteeconfig {
	struct kobj obj;
	enum model_profile profile; /* NONE: spec does not name a known profile */
	bool ibmse;
	bool is_ready, has_status;                        /* as in status */
	const char *service_type;                         /* never NULL */
	const char *https_secret, *token_secret, *volume; /* NULL: not given */
	/* Lines of kbs-config.toml, each with its line end; never NULL unless problem is set. */
	const char *tls;
	const char *writable;          /* annotation MODEL_KBSCONFIG_WRITABLE */
	const char *problem;           /* why a part of spec is unusable; NULL: none */
	const char *description, *ref; /* from status: statusDescription, kbsConfigRef.name */
	struct kobj_cond cond[TRUSTEECONFIG_N_CONDS];
};

struct kobj *model_trusteeconfig_extract(struct json_object *o, struct err *err);
static inline const struct model_trusteeconfig *model_trusteeconfig(const struct kobj *o)
{
	return (const struct model_trusteeconfig *)o;
}

#endif
