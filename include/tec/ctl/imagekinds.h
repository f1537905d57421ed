/* SPDX-License-Identifier: MIT */
/*
 * What the image controller reads beside ApprovedImages, compact: Jobs, Pods (Trustee's too), the
 * two ConfigMaps that hold values, and of those with a platform's firmware variables their digest.
 * Others keep what struct ctl_plain keeps, so the one cache serves the cluster controller too.
 */
#ifndef TEC_CTL_IMAGEKINDS_H
#define TEC_CTL_IMAGEKINDS_H

#include "tec/ctl/env.h"
#include "tec/model/pcrs.h"
#include "tec/render/refvalues.h"

#define CTL_RV_CONFIGMAP "trustee-rv-data"
#define CTL_RV_FILE      "reference-values.json"
/* (+) A JSON array of the names of boot sets that a Trustee may hold: written before the first of
 * them is declared and taken out when it is confirmed gone, so that no restart forgets one. */
#define CTL_RV_NAMES "boot-sets.json"

struct ctl_configmap {
	struct ctl_plain plain;
	struct model_pcrs *pcrs; /* of image-pcrs, owned by the object; NULL: no text */
	const char *file_sha256; /* of trustee-rv-data's file, hex; NULL: no text */
	const char *data_sha256; /* of both its texts: ctl_rv_sha256() */
	int64_t expires_s;       /* its first expiration; 0: none */
	const char *names;       /* its CTL_RV_NAMES as it stands there; NULL: none */
	/* The file's arrays, as text: SHA-256 (zeros for one that is there twice), and bit i set
	 * when there is one. */
	uint8_t array_sha256[RENDER_N_ARRAYS][SHA256_LEN];
	unsigned arrays;
	bool is_platform;              /* it has a firmware variable that PCR 7 depends on */
	uint8_t variables[SHA256_LEN]; /* of a platform: pcr/platform.h */
};
/* Of what trustee-rv-data holds; NULL counts as "". */
void ctl_rv_sha256(const char *names, const char *file, char hex[SHA256_HEX_LEN + 1]);
struct kobj *ctl_configmap_extract(struct json_object *o, struct err *err);
/* Of env's cache; NULL: it is not there. Borrowed for the turn. */
const struct ctl_configmap *ctl_configmap_find(const struct ctl_env *env, const char *name);

/* Index 0: the ApprovedImage's name. */
enum ctl_job_state { CTL_JOB_RUNNING, CTL_JOB_COMPLETE, CTL_JOB_FAILED };
struct ctl_job {
	struct kobj obj;
	const char *owner_uid; /* controller */
	const char *image;     /* the ApprovedImage's name; NULL: no Job of ours */
	const char *nonce;     /* that its result has to carry; NULL: none */
	enum ctl_job_state state;
	unsigned attempt;
	const char *why;    /* of a failed one: "reason: message" */
	int64_t finished_s; /* 0: not yet */
};
struct kobj *ctl_job_extract(struct json_object *o, struct err *err);
const char *ctl_job_index(const struct kobj *o, unsigned i);

/* Index 0: the Job. */
struct ctl_pod {
	struct kobj obj;
	const char *job;       /* its name, by label; NULL: no Job's */
	const char *owner_uid; /* controller */
	const char *app;       /* label */
	bool ready, ended;     /* ended: no process is left */
	const char *contents;  /* annotation, render/volumes.h */
	int64_t restarts;
	/* Of container compute-pcrs, once it has ended and was never started again: its termination
	 * message when it ended well (NULL: none, or longer than a kubelet keeps), and its exit
	 * status. */
	const char *message;
	int64_t exit_code;
	bool failed;
	const char *why; /* what it waits for, or how it failed; NULL: nothing to tell */
};
struct kobj *ctl_pod_extract(struct json_object *o, struct err *err);
const char *ctl_pod_index(const struct kobj *o, unsigned i);

#endif
