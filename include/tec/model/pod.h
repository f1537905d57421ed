/* SPDX-License-Identifier: MIT */
/* A Pod of Trustee or of a Job, compact: whether it runs, what it was started with and said. */
#ifndef TEC_MODEL_POD_H
#define TEC_MODEL_POD_H

#include <json-c/json.h>
#include <stdbool.h>

#include "tec/kobj/meta.h"

/* Of Trustee's Pods: the hash of the files they were started with (render/volumes.h). */
#define MODEL_POD_CONTENTS_ANNOTATION "trusted-execution-clusters.io/contents-hash"

/* Index 0: the Job. */
struct model_pod {
	struct kobj obj;
	const char *job;       /* its name, by label; NULL: no Job's */
	const char *owner_uid; /* controller */
	const char *app;       /* label */
	bool ready, ended;     /* ended: no process is left */
	const char *contents;  /* annotation */
	int64_t restarts;
	/* Of container compute-pcrs, once it has ended and was never started again: its termination
	 * message when it ended well (NULL: none, or longer than a kubelet keeps), and its exit
	 * status. */
	const char *message;
	int64_t exit_code;
	bool failed;
	const char *why;     /* what it waits for, or how it failed; NULL: nothing to tell */
	bool started;        /* a container of it ran, or runs */
	bool placed;         /* on a node */
	bool ready_to_start; /* its volumes and its network are there: its images are pulled next */
	bool not_created;    /* `why` is that a container cannot be created or started */
};
struct kobj *model_pod_extract(struct json_object *o, struct err *err);
const char *model_pod_index(const struct kobj *o, unsigned i);

#endif
