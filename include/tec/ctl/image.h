/* SPDX-License-Identifier: MIT */
/*
 * ApprovedImage: from the reference to values in Trustee, and back. Per image (keys are names): its
 * values come from the label org.coreos.pcrs, otherwise from the termination message of a Job whose
 * nonce was announced on the image; either way they end as an entry of ConfigMap image-pcrs, and
 * count when the entry's hash is announced on the image, its reference is the image's and its
 * values replay. With platforms in spec.attestation only a Job can tell all that is wanted. Over
 * all images (key "*"): their combinations go into trustee-rv-data and to Trustee, and what is no
 * combination any more is revoked. A finalizer goes after that was confirmed.
 */
#ifndef TEC_CTL_IMAGE_H
#define TEC_CTL_IMAGE_H

#include "tec/base/err.h"
#include "tec/ctl/env.h"
#include "tec/ctl/kind.h"

/* ---- one image */

/* Its entry in image-pcrs. */
enum ctl_image_entry {
	CTL_IMAGE_ENTRY_ABSENT,
	CTL_IMAGE_ENTRY_GOOD,
	CTL_IMAGE_ENTRY_STALE,    /* of another reference */
	CTL_IMAGE_ENTRY_BAD,      /* does not replay, or is not enough */
	CTL_IMAGE_ENTRY_CHANGED,  /* its hash was not announced: another client wrote it */
	CTL_IMAGE_ENTRY_UNMARKED, /* as before, of an image older than this operator: taken over */
	CTL_IMAGE_ENTRY_UNKNOWN,  /* as before, and it is not known yet how old this operator is */
	CTL_IMAGE_ENTRY_N,
};
/* Its label. What was seen is kept in memory. */
enum ctl_image_label {
	CTL_IMAGE_LABEL_ASK,
	CTL_IMAGE_LABEL_WAIT,    /* the registry does not answer: asked again while a Job runs */
	CTL_IMAGE_LABEL_REFUSED, /* what the registry sent is wrong: asked again much later */
	CTL_IMAGE_LABEL_GOT,     /* with values that replay */
	CTL_IMAGE_LABEL_NONE,    /* or none that can be used: the Job's turn */
	CTL_IMAGE_LABEL_N,
};
/* The computation of its values: a Job. */
enum ctl_image_run {
	CTL_IMAGE_RUN_ABSENT,
	CTL_IMAGE_RUN_RUNNING,
	CTL_IMAGE_RUN_ENDED, /* failed, or without a good entry */
	CTL_IMAGE_RUN_DELETING,
	CTL_IMAGE_RUN_FOREIGN,     /* of its name, and not its own */
	CTL_IMAGE_RUN_UNANNOUNCED, /* its own, and not one that was announced: says nothing */
	CTL_IMAGE_RUN_N,
};

/* All that decide looks at. */
struct ctl_image_view {
	bool found, deleting, has_finalizer;
	bool retired;   /* spec.authority; nothing else is done then */
	bool following; /* likewise: only what is being deleted goes; ctl/follow does the rest */
	bool confirmed; /* a live answer showed that the cached version is current */
	bool adopt;     /* without an owner, and a cluster is served */
	bool digest_ok;
	bool served; /* a cluster is, and image-pcrs exists */
	enum ctl_image_entry entry;
	enum ctl_image_label label;
	enum ctl_image_run run;
	bool run_announced; /* one may start: the hash of its nonce stands on the image */
	bool made;          /* values are at hand that image-pcrs does not have */
	bool announced;     /* and their hash stands on the image */
	bool handed_in;     /* what is computed elsewhere is handed in; nothing is had here */
	bool old_run;       /* one of other platforms still runs */
	bool platforms;     /* there are some: the label knows none of them */
	bool incomplete;    /* the entry lacks one of them as it is now */
	bool unmounted;     /* the ConfigMap of one is missing: a Job's Pod would hang */
	bool withheld;      /* PCR 7 is required, and the entry has it for no platform */
	bool pcrs_read;     /* the live text of image-pcrs is at hand, and current */
	bool due;           /* one that ended has been there long enough */
	bool problem;       /* one that time does not solve: in the status before the next try */
	bool refused;       /* its values would be too many, together with those in force */
	bool settled;       /* every combination is written and declared */
	bool gone;          /* of images that are gone nothing is left anywhere */
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
	CTL_IMAGE_TAKE_OVER,      /* announce the existing entry */
	CTL_IMAGE_READ_PCRS,
	CTL_IMAGE_WRITE_ENTRY,
	CTL_IMAGE_REMOVE_ENTRY,
	CTL_IMAGE_START_RUN,
	CTL_IMAGE_REMOVE_RUN,
	CTL_IMAGE_REMOVE_OLD_RUN,
	CTL_IMAGE_DROP_FINALIZER,
	CTL_IMAGE_APPLY_STATUS,
	CTL_IMAGE_DECLARE_VALUES, /* this and the following: of key "*" */
	CTL_IMAGE_ANNOUNCE_VALUES,
	CTL_IMAGE_WRITE_VALUES,
	CTL_IMAGE_N_DO,
};
enum ctl_image_do ctl_image_decide(const struct ctl_image_view *v);

/* ---- all images: key "*" */

#define CTL_IMAGE_ALL "*"

struct ctl_values_view {
	bool dirty;     /* an image or an entry changed since combinations were computed */
	bool declared;  /* to kbs/sync: what is wanted and may be, and what is not wanted */
	bool rv_found;  /* trustee-rv-data exists */
	bool announced; /* the hash of its next data is announced on the cluster, if there is one */
	bool file_ok;   /* its content is as wanted, and stays valid for some time */
};

enum ctl_values_do {
	CTL_VALUES_NOTHING,
	CTL_VALUES_COMPUTE, /* memory */
	CTL_VALUES_DECLARE, /* memory; and revoke, which waits for nothing */
	CTL_VALUES_ANNOUNCE,
	CTL_VALUES_WRITE, /* trustee-rv-data; boot sets that it names may be declared then */
	CTL_VALUES_N_DO,
};
enum ctl_values_do ctl_values_decide(const struct ctl_values_view *v);

struct ctl_kind *ctl_image_new(const struct ctl_env *env);

/* Takes an image's values from who computed them: a message of model/pcrmsg.h, whatever its nonce. They are
 * announced and written in the next steps; the condition says when they count. CONFLICT: it is
 * being deleted; TRANSIENT: the controller has not read it yet; INVALID. */
int ctl_image_hand_in(struct ctl_kind *k, const char *name, const char *text, size_t len,
	struct err *err) MUST_CHECK;

#endif
