/* SPDX-License-Identifier: MIT */
/*
 * The controller of ApprovedImage: from the image reference to values in Trustee, and back. Per
 * image (keys of the queue are names): values come from the label org.coreos.pcrs, or from the
 * termination message of a Job whose nonce was announced on the image. Both end as an entry of
 * ConfigMap image-pcrs, which counts if its hash is announced on the image, its reference is that
 * of the image and its values replay. With platforms in spec.attestation, only a Job can compute
 * everything. For all images together (key "*"): their combinations are written to trustee-rv-data
 * and declared to Trustee, and former combinations are revoked. A finalizer is removed after that
 * was confirmed.
 */
#ifndef TEC_CTL_IMAGE_H
#define TEC_CTL_IMAGE_H

#include "tec/base/err.h"
#include "tec/ctl/env.h"
#include "tec/ctl/kind.h"

/* ---- one image */

/* The state of its entry in image-pcrs. */
enum ctl_image_entry {
	CTL_IMAGE_ENTRY_ABSENT,
	CTL_IMAGE_ENTRY_GOOD,
	CTL_IMAGE_ENTRY_STALE,   /* for another reference */
	CTL_IMAGE_ENTRY_BAD,     /* does not replay, or is incomplete */
	CTL_IMAGE_ENTRY_CHANGED, /* its hash was not announced: another client wrote it */
	CTL_IMAGE_ENTRY_UNMARKED, /* not announced, but the image is older than this operator: adopted */
	CTL_IMAGE_ENTRY_UNKNOWN, /* not announced, and the age of this operator is not known yet */
	CTL_IMAGE_ENTRY_N,
};
/* The state of its label, kept in memory. */
enum ctl_image_label {
	CTL_IMAGE_LABEL_ASK,
	CTL_IMAGE_LABEL_WAIT,    /* the registry does not answer: retried while a Job runs */
	CTL_IMAGE_LABEL_REFUSED, /* the registry's answer is invalid: retried much later */
	CTL_IMAGE_LABEL_GOT,     /* its values replay */
	CTL_IMAGE_LABEL_NONE,    /* missing or unusable: a Job computes the values */
	CTL_IMAGE_LABEL_N,
};
/* The computation of its values: a Job or a child process. */
enum ctl_image_run {
	CTL_IMAGE_RUN_ABSENT,
	CTL_IMAGE_RUN_RUNNING,
	CTL_IMAGE_RUN_ENDED, /* failed, or its result is not a valid entry */
	CTL_IMAGE_RUN_DELETING,
	CTL_IMAGE_RUN_FOREIGN,     /* has its name, but belongs to another owner */
	CTL_IMAGE_RUN_UNANNOUNCED, /* belongs to the image, but was not announced: ignored */
	CTL_IMAGE_RUN_N,
};

/* The input of decide. */
struct ctl_image_view {
	bool found, deleting, has_finalizer;
	bool retired;   /* spec.authority is Retired: only revocation is done */
	bool following; /* it is Following: only deletion is done; ctl/follow does the rest */
	bool confirmed; /* a live answer showed that the cached version is current */
	bool adopt;     /* it has no owner, and a cluster is served */
	bool digest_ok;
	bool served; /* a cluster is served, and image-pcrs exists */
	enum ctl_image_entry entry;
	enum ctl_image_label label;
	enum ctl_image_run run;
	bool run_announced; /* a computation may start: the hash of its nonce is on the image */
	bool made;          /* values are known that image-pcrs does not hold */
	bool announced;     /* and their hash is on the image */
	bool handed_in;     /* the values are computed elsewhere; nothing is computed here */
	bool old_run;       /* a computation for other platforms still runs */
	bool platforms;     /* spec names platforms, which the label does not cover */
	bool incomplete;    /* the entry lacks the current values of a platform */
	bool unmounted;     /* the ConfigMap of a platform is missing: a Job's Pod would hang */
	bool withheld;      /* PCR 7 is required, and the entry has it for no platform */
	bool pcrs_read;     /* the live text of image-pcrs was read and is current */
	bool due;           /* the ended computation may be replaced now */
	bool problem;       /* one that time does not solve: reported before the next attempt */
	bool refused;       /* with its values, there would be too many combinations */
	bool settled;       /* every combination is written and declared */
	bool gone;          /* nothing of deleted images is left anywhere */
	bool status_ok;
};

enum ctl_image_do {
	CTL_IMAGE_NOTHING,
	CTL_IMAGE_CONFIRM,
	CTL_IMAGE_ADOPT,
	CTL_IMAGE_ADD_FINALIZER,
	CTL_IMAGE_ASK_LABEL,
	CTL_IMAGE_ANNOUNCE_RUN,
	CTL_IMAGE_ANNOUNCE_ENTRY, /* before it is written */
	CTL_IMAGE_TAKE_OVER,      /* announce the existing entry of another operator */
	CTL_IMAGE_READ_PCRS,
	CTL_IMAGE_WRITE_ENTRY,
	CTL_IMAGE_REMOVE_ENTRY,
	CTL_IMAGE_START_RUN,
	CTL_IMAGE_REMOVE_RUN,
	CTL_IMAGE_REMOVE_OLD_RUN,
	CTL_IMAGE_DROP_FINALIZER,
	CTL_IMAGE_APPLY_STATUS,
	CTL_IMAGE_DECLARE_VALUES, /* this and the following belong to key "*" */
	CTL_IMAGE_ANNOUNCE_VALUES,
	CTL_IMAGE_WRITE_VALUES,
	CTL_IMAGE_N_DO,
};
enum ctl_image_do ctl_image_decide(const struct ctl_image_view *v);

/* ---- all images: key "*" */

#define CTL_IMAGE_ALL "*"

struct ctl_values_view {
	bool dirty;     /* an image or an entry changed since combinations were computed */
	bool declared;  /* kbs/sync knows what to send and what to revoke */
	bool rv_found;  /* trustee-rv-data exists */
	bool announced; /* the hash of its next data is announced on the cluster, if there is one */
	bool file_ok;   /* its content is current and does not expire soon */
};

enum ctl_values_do {
	CTL_VALUES_NOTHING,
	CTL_VALUES_COMPUTE, /* in memory only */
	CTL_VALUES_DECLARE, /* in memory only; revokes, too, which waits for nothing */
	CTL_VALUES_ANNOUNCE,
	CTL_VALUES_WRITE, /* trustee-rv-data; then the boot sets that it names may be declared */
	CTL_VALUES_N_DO,
};
enum ctl_values_do ctl_values_decide(const struct ctl_values_view *v);

struct ctl_kind *ctl_image_new(const struct ctl_env *env);

/* Takes values that were computed elsewhere: a message of model/pcrmsg.h with any nonce. The
 * next steps announce and write them; the condition says when they count. CONFLICT: the image is
 * being deleted; TRANSIENT: the controller has not read it yet; INVALID: the message is
 * unusable. */
int ctl_image_hand_in(struct ctl_kind *k, const char *name, const char *text, size_t len,
	struct err *err) MUST_CHECK;

#endif
