/* SPDX-License-Identifier: MIT */
/*
 * Private to src/ctl/cluster. The files are a line, and each calls only those before it:
 *
 *	own          one Secret that the operator makes: announce, then make
 *	inputs       what Trustee is rendered from besides spec: certificate, token signers
 *	regkey       the registration key and its changes
 *	registration who can register: counts and condition
 *	served       delivery by volumes: what Trustee was seen to serve
 *	volumes      delivery by volumes: what it shall mount
 *	objects      the table of the installation, for ctl/install.h
 *	view         refresh (what is remembered follows what is there), then look (changes
 *	             nothing), decide
 *	act          starts an act, takes its answer
 *	cluster      the step, what wakes it, life
 */
#ifndef TEC_CTL_CLUSTER_INTERNAL_H
#define TEC_CTL_CLUSTER_INTERNAL_H

#include "../ctl_internal.h"
#include "tec/ctl/cluster.h"
#include "tec/model/pending.h"
#include "tec/render/volumes.h"

#define CLUSTER_DEPLOYMENT "trustee-deployment"
#define CLUSTER_HASH_SIZE  17 /* with the NUL */

/* What an act is about: first the table in objects.c, in the order of installation (what the
 * Deployment mounts comes before it). */
enum cluster_object {
	CLUSTER_DATA,
	CLUSTER_POLICIES,
	CLUSTER_RV_DATA,
	CLUSTER_IMAGE_PCRS,
	CLUSTER_KBS_SERVICE,
	CLUSTER_TRUSTEE,
	CLUSTER_REGISTER_SERVICE,
	CLUSTER_AK_SERVICE,
	CLUSTER_OLD_REGISTER, /* Deployments of the Rust operator's listeners */
	CLUSTER_OLD_AK,
	CLUSTER_N_OBJECTS,
	/* Secrets beside the table. */
	CLUSTER_AUTH = CLUSTER_N_OBJECTS,
	CLUSTER_SIGNER, /* number: render/token.h */
	CLUSTER_TLS,    /* that spec.trusteeSecret names */
	CLUSTER_REGKEY, /* number: enum cluster_regkey */
};

/* struct ctl_install_object.inputs */
#define CLUSTER_IF_MANAGED  1u /* not with trustee.deploy: External */
#define CLUSTER_IF_FILES    2u /* delivery by volumes: not before the files are known */
#define CLUSTER_FROM_INPUTS 4u
#define CLUSTER_FROM_FILES  8u

struct ctl_cluster;

/*
 * A Secret that the operator makes for the cluster, under a name that anybody may have taken: the
 * hash of what will be made is announced on the cluster object, then it is POSTed. One that is
 * there is used only while its content is announced.
 */
struct cluster_own {
	char name[RENDER_TOKEN_NAME_SIZE];
	const char *data[2]; /* its members, static; one or two */
	/* A new one, as JSON text. */
	struct secret *(*make)(const struct ctl_cluster *c, const struct model_cluster *cluster,
		const char *name, struct err *err);
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
	struct ctl_install install;
	struct cluster_own auth; /* trustee-auth */
	struct cluster_own regkey[CLUSTER_N_REGKEYS];
	struct cluster_inputs inputs;
	struct cluster_volumes volumes;
};

/* Borrowed from the caches, valid for one step. */
struct cluster_look {
	struct ctl_cluster_view v;
	const struct model_cluster *c, *served;
	unsigned object;        /* of todo: enum cluster_object */
	unsigned number;        /* ... of this one */
	const char *conflict;   /* name of an object that is not ours; NULL: none */
	bool conflict_own;      /* ... and it is a Secret under the name of one of ours */
	const char *waits;      /* ... that is being deleted */
	const char *unreadable; /* ... that cannot be read: it is left as it is */
	const char *missing;    /* a Secret: until it is there another operator's Trustee goes on */
	uint32_t recheck_ms;
	struct kobj_cond_want want[CLUSTER_N_CONDS];
};

/* The first thing to do wins. */
static inline void cluster_want(
	struct cluster_look *l, enum ctl_cluster_do d, unsigned object, unsigned number)
{
	if (d == CTL_CLUSTER_NOTHING || l->v.todo)
		return;
	l->v.todo = (int)d;
	l->object = object;
	l->number = number;
}

/* Looks again in that time, unless it does so sooner. */
static inline void cluster_recheck(struct cluster_look *l, uint64_t ms)
{
	if (!l->recheck_ms || ms < l->recheck_ms)
		l->recheck_ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

/* ---- own.c */
void cluster_own_reset(struct cluster_own *own); /* all but its name, its members and make */
/* Its text, which is owned from here on; NULL: there is none any more. */
void cluster_own_set_text(struct cluster_own *own, struct secret *take_text);
enum cluster_own_state cluster_own_state(const struct ctl_cluster *c,
	const struct model_cluster *cluster, const struct cluster_own *own);
/* Sets todo or conflict. wanted: it is to be made when it is absent. True: it may be used. */
bool cluster_own_look(const struct ctl_cluster *c, struct cluster_look *l,
	const struct cluster_own *own, unsigned object, unsigned number, bool wanted);
/* Sets or removes (hashes NULL) its announcement in the annotations of a patch. */
void cluster_own_put(struct json_object *annotations, const struct model_cluster *cluster,
	const char *name, const char *hashes);
/* ANNOUNCE: makes its text when there is none, and adds the announcement. */
int cluster_own_announce(const struct ctl_cluster *c, const struct model_cluster *cluster,
	struct cluster_own *own, struct json_object *annotations, struct err *err) MUST_CHECK;
/* It was read, or is the answer of its create. */
void cluster_own_saw(
	struct cluster_own *own, const struct model_cluster *cluster, struct json_object *o);

/* ---- inputs.c */
struct cluster_signer *cluster_signer_get(struct ctl_cluster *c, unsigned number);
/* It was read, or is the answer of a create: its certificate. */
void cluster_signer_saw(struct cluster_signer *s, struct json_object *o);
/* It is being made, or the plan wants it. */
bool cluster_signer_wanted(const struct ctl_cluster *c, const char *name);
/* What Deployment and config are rendered with now. Borrowed until the next refresh. */
struct render_trustee_inputs cluster_inputs(const struct ctl_cluster *c);
/* A Secret appeared or changed: it may be a signer. */
void cluster_inputs_saw_secret(struct ctl_cluster *c, const char *name);
/* trustee-deployment as it was read or answered. */
void cluster_inputs_saw_deployment(
	struct ctl_cluster *c, const struct model_cluster *cluster, struct json_object *o);
/* Makes the plan of signers, when all that it is made from was read. */
void cluster_inputs_refresh(struct ctl_cluster *c, const struct model_cluster *cluster);
/* What is to be read before anything is judged; false: something is. Then the plan holds. */
bool cluster_inputs_look(const struct ctl_cluster *c, struct cluster_look *l);
/* What the plan wants done. */
void cluster_inputs_look_plan(const struct ctl_cluster *c, struct cluster_look *l);
/* READ of CLUSTER_TLS; true: the error is none. */
struct op *cluster_tls_start(
	struct ctl_cluster *c, const struct cluster_look *l, k8s_result_fn done, void *arg);
bool cluster_tls_done(struct ctl_cluster *c, const struct kobj *cluster, const struct err *err,
	const struct k8s_result *r);
/* Everything is forgotten but which Secrets there are; fini forgets that as well. */
void cluster_inputs_reset(struct ctl_cluster *c);
void cluster_inputs_fini(struct ctl_cluster *c);

/* ---- regkey.c */
void cluster_regkey_init(struct ctl_cluster *c);
/* A copy that no change needs any more is forgotten. */
void cluster_regkey_refresh(struct ctl_cluster *c, const struct model_cluster *cluster);
void cluster_regkey_look(const struct ctl_cluster *c, struct cluster_look *l);
/* The current one was read to be copied. */
void cluster_regkey_copy(
	struct ctl_cluster *c, const struct model_cluster *cluster, struct json_object *current);
bool cluster_regkey_is_name(const char *secret);
/* It is to be made, or being made. */
bool cluster_regkey_wanted(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name);

/* ---- registration.c */
/* Follows what counts against the limits, from here on. */
void cluster_registration_watch(struct ctl_cluster *c);
void cluster_registration_want(const struct ctl_cluster *c, struct cluster_look *l);

/* ---- served.c */
/* What the files of a list say at this moment: "<keys>.<reference values>". */
#define CLUSTER_CONTENTS_LEN (2 * 16 + 1)
void cluster_served_contents(const struct ctl_env *env, const struct render_volumes_list *l,
	char out[CLUSTER_CONTENTS_LEN + 1]);
/* The Deployment as it was read or answered. */
void cluster_served_saw(struct cluster_volumes *v, struct json_object *deployment);
/* `live` is what all of Trustee serves: by the Deployment's status and by every Pod. */
bool cluster_served(const struct ctl_cluster *c);
/* Which Pod it is not, and what to do. */
void cluster_served_why(const struct ctl_cluster *c, struct strbuf *out);
/* Tells kbs_sync what that is, name by name. */
void cluster_served_confirm(struct ctl_cluster *c, const struct model_cluster *served);

/* ---- volumes.c */
/* Each step of the served cluster (NULL: there is none): confirms what Trustee serves, and replaces
 * what is rendered. When to be asked again, in ms; 0: when something changes. */
uint32_t cluster_volumes_step(struct ctl_cluster *c, const struct model_cluster *served);
/* The Deployment as it was read or answered; a write of it begins. */
void cluster_volumes_saw(
	struct ctl_cluster *c, const struct model_cluster *served, struct json_object *deployment);
void cluster_volumes_writes(struct ctl_cluster *c, const struct model_cluster *served);
/* What is to be mounted is not known yet, or more than the API takes: nothing of it is written. */
bool cluster_volumes_hold(const struct ctl_cluster *c);
/* NULL when it holds. */
struct json_object *cluster_volumes_render(
	const struct ctl_cluster *c, const struct model_cluster *cluster);
/* Something that counts changed. True: it has to be looked at now. */
bool cluster_volumes_on_sync(struct ctl_cluster *c, enum kbs_sort sort, const char *name);
void cluster_volumes_fini(struct ctl_cluster *c);

/* ---- objects.c */
extern const struct ctl_install_conf cluster_objects;
bool cluster_is_installed(const struct kobj *cluster);

/* ---- view.c */
void cluster_forget(struct ctl_cluster *c); /* all that is known of the served cluster */
/* Whether there is a Secret of this name, or one may still be made. */
bool cluster_is_needed(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name);
/* Its adopt-before would count later, for what is planted until then. */
bool cluster_adopts_later(const struct model_cluster *cluster);
void cluster_refresh(struct ctl_cluster *c, const struct model_cluster *served);
void cluster_look(const struct ctl_cluster *c, const char *name, struct cluster_look *l);

/* ---- act.c */
void cluster_act_init(struct ctl_cluster *c); /* trustee-auth */
struct queue_next cluster_act_start(struct ctl_cluster *c, struct ctl_act *a,
	const struct cluster_look *l, enum ctl_cluster_do d);
/* What the act last started was: enum ctl_cluster_do. */
enum ctl_cluster_do cluster_act_doing(const struct ctl_act *a);

#endif
