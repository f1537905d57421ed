/* SPDX-License-Identifier: MIT */
/* A Pod of Trustee or of a Job, in compact form: whether it runs, its input and its result. */
#ifndef TEC_MODEL_POD_H
#define TEC_MODEL_POD_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/kobj/meta.h"

/* On Trustee's Pods: the hash of the files with which they were started (render/volumes.h). */
#define MODEL_POD_CONTENTS_ANNOTATION "trusted-execution-clusters.io/contents-hash"

/* Index 0: the Job. */
struct model_pod {
	struct kobj obj;
	const char *job;       /* name of its Job, from a label; NULL: none */
	const char *owner_uid; /* controller */
	const char *app;       /* label */
	bool ready, ended;     /* ended: all containers have ended for good */
	const char *contents;  /* annotation */
	int64_t restarts;
	/* Of container compute-pcrs, when it has ended and was never restarted: its termination
	 * message if it succeeded (NULL: none, or longer than a kubelet keeps), and its exit
	 * status. */
	const char *message;
	int64_t exit_code;
	bool failed;
	const char *why;     /* what it waits for, or how it failed; NULL: nothing to report */
	bool started;        /* one of its containers ran, or runs */
	bool placed;         /* assigned to a node */
	bool ready_to_start; /* its volumes and network are set up: images are pulled next */
	bool not_created;    /* `why` says that a container cannot be created or started */
};
struct kobj *model_pod_extract(struct json_object *o, struct err *err);
const char *model_pod_index(const struct kobj *o, unsigned i);

#endif
