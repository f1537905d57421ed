/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/image: the result of a look at one image, what is remembered of it, and the
 * combinations of all images. */
#ifndef TEC_CTL_IMAGE_INTERNAL_H
#define TEC_CTL_IMAGE_INTERNAL_H

#include "../ctl_internal.h"
#include "tec/ctl/image.h"
#include "tec/model/configmap.h"
#include "tec/model/image.h"
#include "tec/model/pcrmsg.h"
#include "tec/render/pcrjob.h"
#include "tec/render/refvalues.h"

/* The state of one of spec.attestation.platformConfigMaps, compared with an image's entry. */
enum image_platform_state {
	IMAGE_PLATFORM_MISSING, /* the ConfigMap does not exist */
	IMAGE_PLATFORM_EMPTY,   /* it holds no variables */
	IMAGE_PLATFORM_UNREADABLE,
	IMAGE_PLATFORM_WANTED, /* the entry does not cover the current variables */
	IMAGE_PLATFORM_NONE,   /* the entry says why there is no value */
	IMAGE_PLATFORM_HAVE,
};
struct image_platform {
	const char *name; /* of the cluster */
	enum image_platform_state state;
	const struct model_platform *value; /* of the entry; NULL: none */
	bool counts;                        /* its value may be used */
};
/* Borrowed from the caches. */
struct image_platforms {
	struct image_platform v[MODEL_PLATFORMS_MAX];
	unsigned n, have;                     /* how many; and how many have every required value */
	bool required;                        /* spec.attestation.pcr7 */
	bool incomplete, unmounted;           /* as in struct ctl_image_view */
	const struct model_pcrs_entry *entry; /* of the image; NULL: no good one */
	struct render_pcrjob_platforms job;   /* those that a Job can mount */
};

/* The memory of one image object. Owned by the controller's list. */
struct image_info {
	struct image_info *next;
	char *name, *uid; /* owned */
	enum ctl_image_label label;
	unsigned tries;    /* failed reads of the label */
	uint64_t label_ms; /* boot clock: when the label is read again */
	char nonce[33];    /* of the computation that is about to start; "": none */
	/* Its entry alone, as it last counted, or (to_write) as it must be written. Owned; NULL:
	 * none. */
	struct model_pcrs *kept;
	bool to_write;
	char note[ERR_TEXT_SIZE + 64];    /* why the label is not used; "": no reason */
	char problem[ERR_TEXT_SIZE + 64]; /* why a write is refused; "": it is not */
	char result_why
		[ERR_TEXT_SIZE]; /* why the result of a computation is rejected; "": no reason */
	unsigned attempts;       /* computations so far */
	/* For job.c. */
	char job_name[RENDER_PCRJOB_NAME_LEN + 1]; /* of the last Job whose creation was tried */
	char unmounted[300];       /* why its image cannot be mounted; "": it may be */
	struct image_child *child; /* for child.c; owned; NULL: none */
};

/* A boot set that a Trustee may hold. */
struct known {
	char *name;    /* owned */
	bool wanted;   /* is a combination; otherwise it is being revoked */
	bool recorded; /* is named in trustee-rv-data */
};

struct values {
	bool dirty, declared;
	bool arrays;                  /* the arrays are declared; otherwise revoked */
	struct image_sets *computing; /* owned; NULL: no computation in progress */
	struct image_sets *computed;  /* owned; the last result, for the refused images */
	char *awaited;                /* owned; the image whose values the computation waits for */
	struct render_refvalues want; /* owned */
	struct known *known;          /* owned; sorted by name */
	size_t n_known, cap_known;
	size_t n_recorded; /* names in trustee-rv-data */
	char *rv_seen;     /* owned: the version of trustee-rv-data that the names were read from */
	char *file_rv;     /* owned: the version whose file was compared; NULL: compare */
	bool file_same;
	int64_t expires_s; /* of the next file; chosen once for announcing and writing it */
	char *reported_rv; /* owned: the version of trustee-rv-data that was reported */
	/* What images were last told: every combination is written and declared; nothing of deleted
	 * images is left anywhere. */
	bool was_settled, was_gone;
	char problem[ERR_TEXT_SIZE + 64];
};

struct image_way;
struct ctl_image {
	struct ctl_kind kind;
	const struct image_way *way; /* how values are computed */
	struct image_info *infos;    /* owned */
	/* The text of image-pcrs as last read, kept until the write that needs it. Owned. */
	char *pcrs_rv, *pcrs_text;
	struct values values;
};

/* The state of an announced computation of an image's values. Borrowed for one step. */
struct image_run {
	const char *nonce, *message; /* message NULL: no result */
};
struct model_job;
struct model_pod;
/* For job.c alone. */
struct image_job {
	const struct model_job *now, *old; /* old: still running, for other platforms */
	const struct model_pod *pod;
	struct render_pcrjob_fetch fetch; /* .why NULL: the Job mounts the image */
};

/* Borrowed from the caches, valid for one step. */
struct image_look {
	struct ctl_look base;
	struct ctl_image_view v;
	const struct model_image *m;
	struct image_info *info;
	const struct model_pcrs_entry *entry;
	struct image_platforms platforms;
	struct image_run run;
	/* What must be computed, as the name of a Job: it differs for another image or other
	 * platforms. */
	char what[RENDER_PCRJOB_NAME_LEN + 1];
	struct image_job job;
};

/* info.c */
struct image_info *image_info_find(const struct ctl_image *c, const struct kobj *o);
struct image_info *image_info_get(struct ctl_image *c, const struct kobj *o); /* found or made */
void image_info_drop(struct ctl_image *c, const char *name);
/* Nothing is missing any more: forget all attempts. */
void image_info_rest(const struct ctl_image *c, struct image_info *i);
/* This operator does not decide: computations stop, and their results are dropped unless written
 * already. handed_in: values that a person provided are kept, because nobody would be asked
 * again. */
void image_info_stop(const struct ctl_image *c, struct image_info *i, bool handed_in);
void image_info_forget_pcrs(struct ctl_image *c); /* the text of image-pcrs */

/* entry.c */
enum ctl_image_entry image_entry_state(
	const struct caches *s, const struct model_image *m, const struct model_pcrs_entry **entry);
/* The entry whose values count; NULL: none, or not known yet. Borrowed until the loop runs
 * again. */
enum image_awaited {
	IMAGE_NOTHING_AWAITED,
	IMAGE_VALUES_AWAITED, /* the values counted, and must be computed again */
	IMAGE_CUTOFF_AWAITED, /* the marker of ctl/adoption_cutoff, the age of this operator */
};
const struct model_pcrs_entry *image_entry_counted(
	const struct ctl_image *c, const struct model_image *m, enum image_awaited *awaited);
const struct model_pcrs_entry *image_entry_kept(const struct image_info *i); /* NULL: nothing */
void image_entry_keep(struct image_info *i, const struct model_pcrs_entry *entry);
/* Keeps new values for writing. was: the current entry of this image, or NULL. False: the values
 * are unchanged or invalid. */
bool image_entry_made(struct image_info *i, const struct model_pcrs_entry *was,
	const char *reference, int64_t now_us, const struct model_pcrmsg *m);
void image_entry_nonce_make(struct image_info *i);

/* False for NULL and malformed nonces, too. */
bool image_entry_announces_run(const struct model_image *m, const char *nonce);
/* Takes the message of l->run. False: nothing new, or err says what is wrong. */
bool image_entry_take(struct image_info *i, const struct image_look *l, struct err *err);

/*
 * How an image's values are computed: by a Job or by a child process. The rest of this folder does
 * not depend on which it is; it starts one computation with info->nonce, follows its state, and
 * takes the message.
 */
struct image_way {
	/* Sets v.run, v.due, v.old_run and run. */
	void (*look)(struct ctl_image *c, struct image_look *l);
	/* Sets the condition: a computation runs, has ended, or is about to start. */
	void (*want)(const struct ctl_image *c, struct image_look *l);
	/* Return a request in flight, or NULL if the act is complete. */
	struct op *(*start)(struct ctl_kind *k, struct ctl_act *a, const struct image_look *l);
	struct op *(*remove)(
		struct ctl_kind *k, struct ctl_act *a, const struct image_look *l, bool old);
};
extern const struct image_way image_by_job, image_by_child;

/* child.c */
void image_child_free(struct image_child *ch); /* ends the process; NULL is fine */
/* Sets v.due: whether a computation that ended at that time may be replaced; otherwise looks
 * again when it may. attempt: 1 for the first. lost: it had a result that nobody read. */
void image_child_due(struct image_look *l, unsigned attempt, int64_t ended_s, bool lost);

/* job.c */

/* After a failed start: tell whether the Job exists already. i may be NULL. */
bool image_job_exists(
	const struct ctl_image *c, struct image_info *i, const struct k8s_result *r) MUST_CHECK;
/* A Job or one of its Pods changed. */
void image_job_map(void *self, const struct kobj *was, const struct kobj *now);
void image_job_map_pod(void *self, const struct kobj *was, const struct kobj *now);

/* platforms.c. entry: a good one, or NULL. */
void image_platforms_look(
	const struct caches *s, const struct model_pcrs_entry *entry, struct image_platforms *out);
/* Appends sentences, each with a leading space: what is wrong with the platforms, and, if PCR 7 is
 * required, for which it is known. */
void image_platforms_note(const struct image_platforms *p, struct strbuf *out);
/* Whether spec names this ConfigMap as a platform. */
bool image_platforms_name(const struct caches *s, const char *name);
/* The value of a valid entry for a platform; NULL: none that counts. Borrowed. */
const struct model_platform *image_platforms_value(
	const struct caches *s, const struct model_pcrs_entry *entry, const char *name);

/* sets.c: all boot states of nodes that boot the images in force. */
/* Each state has two names in ConfigMap trustee-rv-data (both forms of PCR 4), and the values of each
 * register are one value of at most SECRET_MAX_LEN in Trustee: this many fit into both. */
#define IMAGE_STATES_MAX 960
struct image_counted {
	char *name, *uid; /* owned */
	int64_t since_us; /* when its values were first known */
	bool refused;     /* there would be too many states */
};
struct image_sets {
	struct image_counted *v; /* owned; the oldest first */
	size_t n, n_refused;
	struct pcr_sets sets; /* refer to images by their index in v */
	size_t conflicts;
	char *awaited;     /* owned; an image whose values count but are unknown; NULL: none */
	bool since;        /* some image waits for the marker, which always arrives */
	bool revokes;      /* some image is being revoked */
	struct work *work; /* owned; NULL: the work is done */
};
struct image_sets *image_sets_new(const struct ctl_image *c);
void image_sets_free(struct image_sets *s); /* NULL is fine */
/* Computes a slice. True: it was the last one, and this is not called again; a change of an
 * image or an entry starts a new computation. */
bool image_sets_run(struct image_sets *s) MUST_CHECK;

/* values.c: of key "*" */
int image_values_look(struct ctl_image *c, struct ctl_look *out);
void image_values_declare(struct ctl_kind *k, const struct ctl_look *look);
struct op *image_values_announce(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d);
struct op *image_values_write(
	struct ctl_kind *k, struct ctl_act *a, const struct ctl_look *look, int d);
void image_values_ended(
	struct ctl_image *c, int doing, const struct err *err, const struct k8s_result *r);
void image_values_changed(struct ctl_image *c); /* an image or an entry */
void image_values_fini(struct values *v);
/* An input of the values cannot be read: declarations stay, and nothing is written. */
bool image_values_unknown(const struct caches *s);
/* The last computation refused the image with this UID. */
bool image_values_refused(const struct ctl_image *c, const char *uid);

/* view.c: looks and decides, for every key. */
int image_view_look(
	struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out);

/* Set the condition of the look. */
#define IMAGE_WANT(l, r, ...)                                                                      \
	kobj_cond_want(&(l)->base.want[IMAGE_COMMITTED], model_image_cond_types[IMAGE_COMMITTED],  \
		(r) == IMAGE_IMAGE_COMMITTED ? KOBJ_COND_TRUE : KOBJ_COND_FALSE,                   \
		model_image_reason(r), __VA_ARGS__)

/* act.c */
extern const struct ctl_do image_acts[CTL_IMAGE_N_DO];
bool image_act_ended(
	struct ctl_kind *k, struct ctl_act *a, const struct err *err, const struct k8s_result *r);
void image_act_tell(struct ctl_kind *k, struct ctl_act *a, const struct kobj *o);

#endif
