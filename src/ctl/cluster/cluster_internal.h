/* SPDX-License-Identifier: MIT */
/* Private to src/ctl/cluster: the objects of an installation and what is known of each. */
#ifndef TEC_CTL_CLUSTER_INTERNAL_H
#define TEC_CTL_CLUSTER_INTERNAL_H

#include "../ctl_internal.h"
#include "tec/ctl/cluster.h"
#include "tec/model/pending.h"
#include "tec/render/volumes.h"

#define CLUSTER_N_OBJECTS 11
/* Beside the table, where an act names its object by number: a token signer's Secret, and the one
 * that spec.trusteeSecret names. */
#define CLUSTER_SIGNER     CLUSTER_N_OBJECTS
#define CLUSTER_TLS        (CLUSTER_N_OBJECTS + 1)
#define CLUSTER_REGKEY     (CLUSTER_N_OBJECTS + 2) /* number: enum cluster_regkey */
#define CLUSTER_AUTH       "trustee-auth"
#define CLUSTER_DEPLOYMENT "trustee-deployment"
#define CLUSTER_DATA       "trustee-data"
#define CLUSTER_HASH_SIZE  17 /* with the NUL */

struct ctl_cluster;

enum cluster_object_kind {
	CLUSTER_OBJECT_APPLY,       /* rendered, repaired */
	CLUSTER_OBJECT_CREATE_ONLY, /* made once, then somebody else's to write */
	CLUSTER_OBJECT_SECRET,      /* announced, then made once (struct cluster_own) */
	CLUSTER_OBJECT_UNWANTED,    /* deleted if this cluster owns it and we did not render it */
};

struct ctl_cluster;
struct cluster_object {
	const struct kobj_gvk *gvk;
	const char *name;
	enum cluster_object_kind kind;
	bool of_trustee;  /* not with deploy: External */
	bool of_delivery; /* rendered another way with delivery by volumes */
	struct json_object *(*render)(const struct ctl_cluster *ctl, const struct model_cluster *c);
};
extern const struct cluster_object cluster_objects[CLUSTER_N_OBJECTS];

/* Of one object, by resourceVersion, so that an answer holds until the object changes. Owned
 * strings. */
struct cluster_known {
	char *ok_rv, *drift_rv, *conflict_rv;
	char *foreign_rv; /* the Rust operator's: it goes and is made anew */
	bool must_read;   /* a create met an object that the cache does not show */
};

/*
 * A Secret that the operator makes for the cluster, under a name that anybody may have taken: the
 * hash of what will be made is announced on the cluster object, then it is POSTed. One that is
 * there is used only while its content is announced.
 */
struct cluster_own {
	char name[RENDER_TOKEN_NAME_SIZE];
	const char *data[2];           /* its members, static; one or two */
	char *read_rv;                 /* owned: of the version read last */
	char hash[SHA256_HEX_LEN + 1]; /* of its content; "": it is not of the form we make */
	bool must_read;                /* a create met one that the cache does not show */
	/* Owned: the JSON text to be POSTed, kept until one that is announced was seen; and the
	 * hash of its content. */
	struct secret *text;
	char text_hash[SHA256_HEX_LEN + 1];
};

enum cluster_own_state {
	CLUSTER_OWN_ABSENT,
	CLUSTER_OWN_UNREAD,
	CLUSTER_OWN_GOOD,
	CLUSTER_OWN_OLDER,   /* of our form, not announced, but older than the marker */
	CLUSTER_OWN_PLANTED, /* somebody else's content under a name and owner that are ours */
	CLUSTER_OWN_FOREIGN, /* it does not even say that the cluster owns it */
};

/* A Secret with a token signer's name, whoever made it. */
struct cluster_signer {
	struct cluster_signer *next; /* owned by the list */
	unsigned number;             /* render/token.h */
	struct cluster_own own;
	int64_t not_after_s; /* of its certificate as read last; 0: not to be read */
	char hash[CLUSTER_HASH_SIZE];
};

/* The registration key, and the act that reads the current one to make the previous one of it. */
enum cluster_regkey { CLUSTER_REGKEY_CURRENT, CLUSTER_REGKEY_PREVIOUS, CLUSTER_REGKEY_TO_COPY };
#define CLUSTER_N_REGKEYS 2

/* What Deployment and config are rendered from besides spec. Owned strings. */
struct cluster_inputs {
	struct cluster_signer *signers;
	struct render_token_plan plan; /* borrows from signers */
	char *tls_hash;      /* of trusteeSecret when it was last usable; after a start, of the
				Deployment */
	char *tls_read;      /* "name resourceVersion" of what was read last */
	char *tls_asked;     /* ... of what is being read */
	bool tls_unusable;   /* what was read last has no certificate and key */
	char *deployment_rv; /* as read last */
	char *mounted;       /* "\nname\nname\n": signers' Secrets that it mounts */
	char *rendered_as;   /* the inputs as one text: another one is another template */
	bool moved;          /* the next write of the Deployment is no repair */
};

/*
 * Delivery by volumes. `wanted` is what trustee-deployment is rendered with: a copy of what is
 * declared, replaced rarely. `live` is what the Deployment was seen to mount, with its status, at
 * one resourceVersion.
 */
struct cluster_volumes {
	char *uid;          /* owned: of the cluster it is about; NULL: delivery is another */
	int64_t generation; /* that `wanted` was found to fit with */
	struct render_volumes_list wanted, live;
	bool has_wanted; /* else nothing that depends on the delivery is written */
	bool live_known; /* nothing was written since */
	bool live_ours;  /* it is one of delivery by volumes */
	bool live_done;  /* by its status all Pods are of its template, and available */
	char *live_rv;   /* owned */
	bool dirty;      /* something changed that it has not looked at */
	bool pending;    /* `wanted` is to be replaced, but not yet */
	bool confirming; /* what kbs_sync tells now is our own doing */
	bool announced;  /* it was not written yet; the next write of the Deployment is no repair */
	/* Boot clock: nothing is added before, nothing taken back before. */
	uint64_t add_ms, take_back_ms;
	struct err refused; /* why `wanted` is not what is declared */
	size_t n_left_out;  /* Machines that are not in `wanted` for it */
};

struct ctl_cluster {
	const struct ctl_env *env; /* borrowed */
	struct ctl_runner *runner; /* owned */
	struct ctl_acts acts;
	bool on;
	uint64_t status_ms;           /* boot clock: when counts were written last, or the start */
	struct model_pending pending; /* followed at all times; all_machines is not filled in */
	/* of the served cluster: */
	char *known_uid; /* owned */
	int64_t known_generation;
	struct cluster_known known[CLUSTER_N_OBJECTS];
	struct cluster_own auth; /* trustee-auth */
	struct cluster_own regkey[CLUSTER_N_REGKEYS];
	struct cluster_inputs inputs;
	char problem[512]; /* why an object cannot be written; "": no reason */
	struct cluster_volumes volumes;
};

/* Borrowed from the caches, valid for one step. */
struct cluster_look {
	struct ctl_cluster_view v;
	const struct model_cluster *c, *served;
	unsigned object;        /* of todo */
	unsigned number;        /* ... when it is a signer */
	const char *conflict;   /* name of an object that is not ours; NULL: none */
	bool conflict_own;      /* ... and it is a Secret under the name of one of ours */
	const char *waits;      /* ... that is being deleted */
	const char *unreadable; /* ... that cannot be read: it is left as it is */
	const char *missing;    /* a Secret: until it is there another operator's Trustee goes on */
	uint32_t recheck_ms;
	struct kobj_cond_want want[CLUSTER_N_CONDS];
};

/* cluster_objects.c */
void cluster_known_fini(struct cluster_known *k);
/* The object is judged again, although it did not change. */
void cluster_known_forget(struct ctl_cluster *c, const struct kobj_gvk *gvk, const char *name);
/* The first thing to do wins. */
void cluster_want(struct cluster_look *l, enum ctl_cluster_do d, unsigned object, unsigned number);
void cluster_known_reset(struct ctl_cluster *c, const struct model_cluster *served);
const struct kobj *cluster_object_find(const struct ctl_env *env, unsigned i);
/* Sets todo, object, conflict, waits, unreadable. */
void cluster_look_objects(struct ctl_cluster *c, struct cluster_look *l);
struct op *cluster_start_object(struct ctl_cluster *c, struct ctl_act *a,
	const struct cluster_look *l, enum ctl_cluster_do d, k8s_result_fn done, struct err *err);
void cluster_set_rv(char **slot, struct json_object *o);
void cluster_told_repaired(struct ctl_cluster *c, const struct kobj *cluster,
	const struct kobj_gvk *gvk, const char *name);
/* Of one that failed. True: the error is none. */
bool cluster_object_failed(struct ctl_cluster *c, bool *must_read, const struct kobj_gvk *gvk,
	const char *name, enum ctl_cluster_do d, const struct err *err, const struct k8s_result *r);
/* True: the error is none. */
bool cluster_object_done(struct ctl_cluster *c, const struct kobj *cluster, enum ctl_cluster_do d,
	unsigned i, const struct err *err, const struct k8s_result *r);

/* cluster_own.c */
void cluster_own_init(struct cluster_own *own, const char *name, const char *a, const char *b);
void cluster_own_reset(struct cluster_own *own); /* all but what it is called and consists of */
/* Its text, which is owned from here on; NULL: there is none any more. */
void cluster_own_set_text(struct cluster_own *own, struct secret *take_text);
/* Which Secret an act is about; NULL: none of these. */
struct cluster_own *cluster_own_of(struct ctl_cluster *c, unsigned object, unsigned number);
enum cluster_own_state cluster_own_state(const struct ctl_cluster *c,
	const struct model_cluster *cluster, const struct cluster_own *own);
/* What follows for one. wanted: it is to be made when it is absent; has_text: and its text is
 * there; announced: under its hash. */
enum ctl_cluster_do cluster_own_decide(
	enum cluster_own_state state, bool wanted, bool has_text, bool announced);
/* Sets todo or conflict. True: it may be used. */
bool cluster_look_own(struct ctl_cluster *c, struct cluster_look *l, struct cluster_own *own,
	unsigned object, unsigned number, bool wanted);
/* What the annotations of the cluster have too much; the last thing that is looked at. */
void cluster_look_tidy(struct ctl_cluster *c, struct cluster_look *l);
/* ANNOUNCE, TIDY: patches of the cluster object, which cannot be bettered by anybody. */
struct op *cluster_start_marks(struct ctl_cluster *c, struct ctl_act *a,
	const struct cluster_look *l, enum ctl_cluster_do d, k8s_result_fn done, struct err *err);
/* READ, MAKE_SECRET, DELETE. True (of done): the error is none. */
struct op *cluster_start_own(struct ctl_cluster *c, struct ctl_act *a, const struct cluster_look *l,
	enum ctl_cluster_do d, k8s_result_fn done);
bool cluster_own_done(struct ctl_cluster *c, const struct kobj *cluster, enum ctl_cluster_do d,
	unsigned object, unsigned number, const struct err *err, const struct k8s_result *r);

/* cluster_inputs.c */
/* A new signer's text. */
struct secret *cluster_signer_make(const struct ctl_cluster *c, const struct model_cluster *cluster,
	const char *name, struct err *err);
struct cluster_own *cluster_signer_own(struct ctl_cluster *c, unsigned number);
/* It was read, or is the answer of a create: its certificate. */
void cluster_signer_saw(struct ctl_cluster *c, unsigned number, struct json_object *o);
void cluster_signer_told(
	struct ctl_cluster *c, const struct kobj *cluster, enum ctl_cluster_do d, const char *name);
/* It is being made, or the plan wants it. */
bool cluster_signer_wanted(const struct ctl_cluster *c, const char *name);
/* What Deployment and config are rendered with now. Borrowed until the next look. */
void cluster_inputs(const struct ctl_cluster *c, struct render_trustee_inputs *out);
/* A Secret appeared or changed: it may be a signer. */
void cluster_inputs_saw_secret(struct ctl_cluster *c, const char *name);
/* trustee-deployment as it was read or answered. */
void cluster_inputs_saw_deployment(
	struct ctl_cluster *c, const struct model_cluster *cluster, struct json_object *o);
/* What is to be read before anything is judged; false: something is. Then the plan of signers
 * holds. */
bool cluster_look_inputs(struct ctl_cluster *c, struct cluster_look *l);
/* What the plan wants done. */
void cluster_look_plan(struct ctl_cluster *c, struct cluster_look *l);
/* READ of CLUSTER_TLS. */
struct op *cluster_start_tls(
	struct ctl_cluster *c, struct ctl_act *a, const struct cluster_look *l, k8s_result_fn done);
bool cluster_tls_done(struct ctl_cluster *c, const struct kobj *cluster, const struct err *err,
	const struct k8s_result *r);
/* Everything is forgotten but which Secrets there are; fini forgets that as well. */
void cluster_inputs_reset(struct ctl_cluster *c);
void cluster_inputs_fini(struct ctl_cluster *c);

/* cluster_regkey.c */
void cluster_regkey_init(struct ctl_cluster *c);
void cluster_regkey_reset(struct ctl_cluster *c);
/* Sets todo or conflict. */
void cluster_look_regkey(struct ctl_cluster *c, struct cluster_look *l);
/* A new one's text. */
struct secret *cluster_regkey_make(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name);
/* The current one was read to be copied. */
void cluster_regkey_copy(
	struct ctl_cluster *c, const struct model_cluster *cluster, struct json_object *current);
bool cluster_regkey_is_name(const char *secret);
/* It is to be made, or being made. */
bool cluster_regkey_wanted(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name);

/* cluster_registration.c */
/* Follows what counts against the limits, from here on. */
void cluster_registration_watch(struct ctl_cluster *c);
void cluster_want_registration(const struct ctl_cluster *c, struct cluster_look *l);

/* cluster_volumes.c */
/* Each step of the served cluster (NULL: there is none): confirms what Trustee serves, and replaces
 * what is rendered. When to be asked again, in ms; 0: when something changes. */
uint32_t cluster_volumes_step(struct ctl_cluster *c, const struct model_cluster *served);
/* The Deployment as it was read or answered; a write of it begins. */
void cluster_volumes_saw(
	struct ctl_cluster *c, const struct model_cluster *served, struct json_object *deployment);
void cluster_volumes_writes(struct ctl_cluster *c, const struct model_cluster *served);
/* What is to be mounted is not known yet, or more than the API takes: nothing of it is written. */
bool cluster_volumes_hold(const struct ctl_cluster *c);
/* Something that is mounted cannot be read, so its content is not known. */
bool cluster_volumes_unknown(const struct ctl_cluster *c);
/* NULL when it holds. */
struct json_object *cluster_volumes_render(
	const struct ctl_cluster *c, const struct model_cluster *cluster);
/* Something that counts changed. True: it has to be looked at now. */
bool cluster_volumes_on_sync(struct ctl_cluster *c, enum kbs_sort sort, const char *name);
void cluster_volumes_fini(struct ctl_cluster *c);
/* What the files of a list say at this moment: "<keys>.<reference values>". */
#define CLUSTER_CONTENTS_LEN (2 * 16 + 1)
void cluster_volumes_contents(const struct ctl_env *env, const struct render_volumes_list *l,
	char out[CLUSTER_CONTENTS_LEN + 1]);

/* cluster_served.c */
/* `live` is what all of Trustee serves: by the Deployment's status and by every Pod. */
bool cluster_served(const struct ctl_cluster *c);
/* Which Pod it is not, and what to do. */
void cluster_served_why(const struct ctl_cluster *c, struct strbuf *out);
/* Tells kbs_sync what that is, name by name. */
void cluster_served_confirm(struct ctl_cluster *c, const struct model_cluster *served);

/* cluster_view.c */
/* Looks again in that time, unless it does so sooner. */
void cluster_recheck(struct cluster_look *l, uint64_t ms);
void cluster_look(struct ctl_cluster *c, const char *name, struct cluster_look *l);

#endif
