/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/image: what a look at one image finds, what is remembered of it, and the
 * combinations of all. */
#ifndef TEC_CTL_IMAGE_INTERNAL_H
#define TEC_CTL_IMAGE_INTERNAL_H

#include "../ctl_internal.h"
#include "tec/ctl/image.h"
#include "tec/model/configmap.h"
#include "tec/model/image.h"
#include "tec/model/pcrmsg.h"
#include "tec/render/pcrjob.h"
#include "tec/render/refvalues.h"

/* One of spec.attestation.platformConfigMaps, as an image's entry has it. */
enum image_platform_state {
	IMAGE_PLATFORM_MISSING, /* there is no such ConfigMap */
	IMAGE_PLATFORM_EMPTY,   /* or it holds no variables */
	IMAGE_PLATFORM_UNREADABLE,
	IMAGE_PLATFORM_WANTED, /* the entry says nothing of the variables as they are now */
	IMAGE_PLATFORM_NONE,   /* it says why there is no value */
	IMAGE_PLATFORM_HAVE,
};
struct image_platform {
	const char *name; /* of the cluster */
	enum image_platform_state state;
	const struct model_platform *value; /* of the entry; NULL: none */
	bool counts;                        /* it has a value that may be used */
};
/* Borrowed from the caches. */
struct image_platforms {
	struct image_platform v[MODEL_PLATFORMS_MAX];
	unsigned n, have;                   /* of those, which have all that is required */
	bool required;                      /* spec.attestation.pcr7 */
	bool incomplete, unmounted;         /* as in struct ctl_image_view */
	struct render_pcrjob_platforms job; /* that a Job can mount */
};

/* Of one image object. Owned by the controller's list. */
struct image_info {
	struct image_info *next;
	char *name, *uid; /* owned */
	enum ctl_image_label label;
	unsigned tries;    /* of the label */
	uint64_t label_ms; /* boot clock: when it is asked for again */
	char nonce[33];    /* of the computation that is about to start; "": none */
	/* Its entry alone, as it counted last, or (to_write) as it is to be written. Owned; NULL:
	 * none. */
	struct model_pcrs *kept;
	bool to_write;
	char note[320];       /* why the label is not used; "": no reason */
	char problem[400];    /* why a write is refused; "": it is not */
	char result_why[256]; /* why its message is not taken; "": no reason */
	unsigned attempts;    /* computations there have been */
	/* Of job.c. */
	char job_name[RENDER_PCRJOB_NAME_LEN + 1]; /* of the last one that was to be made */
	char unmounted[300];       /* why its image cannot be mounted; "": it may be */
	struct image_child *child; /* of child.c; owned; NULL: none */
};

/* A boot set that a Trustee may hold. */
struct known {
	char *name;    /* owned */
	bool wanted;   /* is a combination; else it is being revoked */
	bool recorded; /* stands in trustee-rv-data */
};

struct values {
	bool dirty, declared;
	bool arrays;                  /* are declared; else revoked */
	struct image_sets *computing; /* owned; NULL: nothing is */
	struct image_sets *computed;  /* owned; the last ones, for what was refused */
	char *awaited;                /* owned; nothing is computed before this image's values */
	struct render_refvalues want; /* owned */
	struct known *known;          /* owned; sorted by name */
	size_t n_known, cap_known;
	size_t n_recorded; /* names in trustee-rv-data */
	char *rv_seen;     /* owned: the version of trustee-rv-data that the record was read from */
	char *file_rv;     /* owned: the version whose file was compared; NULL: compare */
	bool file_same;
	int64_t expires_s; /* of the next file; chosen once for announcing and writing it */
	char *reported_rv; /* owned: the version of trustee-rv-data that was reported */
	/* As images saw it last: every combination is written and declared; of images that are
	 * gone nothing is left anywhere. */
	bool was_settled, was_gone;
	char problem[320];
};

struct image_way;
struct ctl_image {
	struct ctl_kind kind;
	const struct image_way *way; /* how values are computed */
	struct image_info *infos;    /* owned */
	/* The text of image-pcrs as last read, until the write that it is for. Owned. */
	char *pcrs_rv, *pcrs_text;
	struct values values;
};

/* A computation of an image's values that was announced, as far as it got. Borrowed for one step. */
struct image_run {
	const char *nonce, *message; /* message NULL: none to take */
};
struct model_job;
struct model_pod;
/* Of job.c alone. */
struct image_job {
	const struct model_job *now, *old; /* old: running, and of other platforms */
	const struct model_pod *pod;
	struct render_pcrjob_fetch fetch; /* why NULL: the Job is to mount the image */
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
	/* What is to be computed, as the name of a Job: another one for another image, or other
	 * platforms. */
	char what[RENDER_PCRJOB_NAME_LEN + 1];
	struct image_job job;
};

/* info.c */
struct image_info *image_info_find(const struct ctl_image *c, const struct kobj *o);
struct image_info *image_info_get(struct ctl_image *c, const struct kobj *o); /* found or made */
void image_info_drop(struct ctl_image *c, const char *name);
/* Nothing is missing any more: what was tried for it is forgotten. */
void image_info_rest(const struct ctl_image *c, struct image_info *i);
/* This operator does not decide: nothing is computed for it, and of what was computed nothing is left
 * to be written. handed_in: except values that a person gave, who is not asked again. */
void image_info_stop(const struct ctl_image *c, struct image_info *i, bool handed_in);
void image_info_forget_pcrs(struct ctl_image *c); /* the text of image-pcrs */

/* entry.c */
enum ctl_image_entry image_entry_state(
	const struct state *s, const struct model_image *m, const struct model_pcrs_entry **entry);
/* The entry whose values count; NULL: none does, or it is not known yet which. Borrowed for the
 * turn. */
enum image_awaited {
	IMAGE_NOTHING_AWAITED,
	IMAGE_VALUES_AWAITED, /* they counted, and have to be computed again */
	IMAGE_SINCE_AWAITED,  /* the marker that says how old this operator is */
};
const struct model_pcrs_entry *image_entry_counted(
	const struct ctl_image *c, const struct model_image *m, enum image_awaited *awaited);
const struct model_pcrs_entry *image_entry_kept(const struct image_info *i); /* NULL: nothing */
void image_entry_keep(struct image_info *i, const struct model_pcrs_entry *entry);
/* Keeps new values to be written. was: the entry of this image so far, or NULL. False: they are
 * the existing ones, or not good enough. */
bool image_entry_made(struct image_info *i, const struct model_pcrs_entry *was,
	const char *reference, int64_t now_us, const struct model_pcrmsg *m);
void image_entry_nonce_make(struct image_info *i);
void image_entry_nonce_hash(const char *nonce, char hex[SHA256_HEX_LEN + 1]);
/* NULL and malformed nonces are not announced. */
bool image_entry_announces_run(const struct model_image *m, const char *nonce);
/* Of l->run. False: nothing new, or err says what is wrong. */
bool image_entry_take(struct image_info *i, const struct image_look *l, struct err *err);

/*
 * How an image's values are computed. The rest of this folder does not know which of the two it is: it
 * starts one computation with info->nonce, sees how far that got, and takes the message.
 */
struct image_way {
	/* v.run, v.due, v.old_run and run. */
	void (*look)(struct ctl_image *c, struct image_look *l);
	/* What to say about it: it runs, has ended, or is about to start. */
	void (*want)(const struct ctl_image *c, struct image_look *l);
	/* Requests, or NULL: it is done. */
	struct op *(*start)(struct ctl_kind *k, struct ctl_act *a, const struct image_look *l);
	struct op *(*remove)(
		struct ctl_kind *k, struct ctl_act *a, const struct image_look *l, bool old);
};
extern const struct image_way image_by_job, image_by_child;

/* job.c */
/* A Job was made. */
void image_job_started(struct ctl_image *c, const struct k8s_result *r);
/* After a start that failed: whether because there is one already. i: may be NULL. */
bool image_job_exists(
	const struct ctl_image *c, struct image_info *i, const struct k8s_result *r) MUST_CHECK;
/* Of one that ended then, the attempt-th: whether it may be replaced; if not, looks again when it may. */
void image_job_due(struct image_look *l, unsigned attempt, int64_t ended_s, bool lost);
/* A Job or one of its Pods changed. */
void image_job_map(void *self, const struct kobj *was, const struct kobj *now);
void image_job_map_pod(void *self, const struct kobj *was, const struct kobj *now);

/* child.c */
void image_child_free(struct image_child *ch); /* ends it; NULL is fine */

/* platforms.c. entry: a good one, or NULL. */
void image_platforms_look(
	const struct state *s, const struct model_pcrs_entry *entry, struct image_platforms *out);
/* Sentences with a space before each: what is not as it should be, and, where PCR 7 is required,
 * what is. */
void image_platforms_note(const struct image_platforms *p, struct strbuf *out);
/* Whether this ConfigMap is a platform's. */
bool image_platforms_name(const struct state *s, const char *name);
/* What a good entry has for a platform; NULL: nothing that counts. Borrowed. */
const struct model_platform *image_platforms_value(
	const struct state *s, const struct model_pcrs_entry *entry, const char *name);

/* sets.c: all states that nodes may be in which boot the images that count. */
/* Each of them is a name in ConfigMap trustee-rv-data, and each register's values are one value of
 * at most SECRET_MAX_LEN in Trustee: this many fit into both. */
#define IMAGE_STATES_MAX 960
struct image_counted {
	char *name, *uid; /* owned */
	int64_t since_us; /* when its values were first known */
	bool refused;     /* there would be too many states */
};
struct image_sets {
	struct image_counted *v; /* owned; the oldest first */
	size_t n, n_refused;
	struct pcr_sets sets; /* their indexes are those of v */
	size_t conflicts;
	char *awaited;     /* owned; an image whose values count and are not at hand; NULL: none */
	bool since;        /* it, or another one, waits for the marker, which always comes */
	bool revokes;      /* an image waits for being revoked */
	struct work *work; /* owned; NULL: it is done */
};
struct image_sets *image_sets_new(const struct ctl_image *c);
void image_sets_free(struct image_sets *s); /* NULL is fine */
/* A slice; true: it was the last one, not to be called again. Another one is made when an image or an
 * entry changes. */
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
/* Something that they follow from cannot be read: what is declared stays, nothing is written. */
bool image_values_unknown(const struct state *s);
/* The image with this uid was, when all were computed last. */
bool image_values_refused(const struct ctl_image *c, const char *uid);

/* view.c: looks and decides, for every key. */
int image_view_look(
	struct ctl_kind *k, const char *name, struct ctl_act *act, struct ctl_look *out);

/* What the condition is to be. */
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
