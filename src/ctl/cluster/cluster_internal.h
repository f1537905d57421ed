/* SPDX-License-Identifier: MIT */
/*
 * Private to src/ctl/cluster. The files are a line, and each calls only those before it:
 *
 *	own          the Secrets that the operator makes (ctl/own.h): what they hold, a look at one
 *	inputs       what Trustee is rendered from besides spec: certificate, token signers
 *	regkey       the registration key and its changes
 *	tls          the TLS Secrets that spec names: missing, refused, doubtful
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
#include "tec/ctl/own.h"
#include "tec/model/pending.h"
#include "tec/render/volumes.h"
#include "tec/state/digest.h"

#define CLUSTER_CERT       "cert.pem" /* of a token signer's Secret */
#define CLUSTER_DEPLOYMENT "trustee-deployment"
#define CLUSTER_HASH_SIZE  17 /* with the NUL */

/* The object of an act: first the table in objects.c, in the order of installation (what the
 * Deployment mounts comes before it). */
enum cluster_object {
	CLUSTER_DATA,
	CLUSTER_POLICIES,
	CLUSTER_RV_DATA,
	CLUSTER_IMAGE_PCRS,
	CLUSTER_KBS_SERVICE,
	CLUSTER_ADMIN_SERVICE, /* of the guard */
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

/* A Secret with the name of a token signer, ours or not. */
struct cluster_signer {
	struct cluster_signer *next; /* owned by the list */
	unsigned number;             /* render/token.h */
	char name[RENDER_TOKEN_NAME_SIZE];
	struct ctl_own own;
	int64_t not_after_s; /* of its certificate when it was last read; 0: unreadable */
	char hash[CLUSTER_HASH_SIZE];
};

/* The two registration keys, and the act that reads the current one to create the previous one from
 * it. */
enum cluster_regkey { CLUSTER_REGKEY_CURRENT, CLUSTER_REGKEY_PREVIOUS, CLUSTER_REGKEY_TO_COPY };
#define CLUSTER_N_REGKEYS 2
#define CLUSTER_N_TLS     (3 + MODEL_CLUSTER_SERVERS_MAX)

/* What Deployment and config are rendered from besides spec. Owned strings. */
struct cluster_inputs {
	struct cluster_signer *signers;
	struct render_token_plan plan; /* borrows from signers */
	char *tls_hash;                /* of trusteeSecret when it was last usable */
	char *tls_read;      /* "name resourceVersion" of the version that was last read */
	char *tls_asked;     /* ... that is being read */
	bool tls_unusable;   /* the version that was last read has no certificate and key */
	char *deployment_rv; /* when it was last read */
	char *mounted;       /* "\nname\nname\n": signers' Secrets that it mounts */
	char *rendered_as;   /* the inputs as one text: a different text is a different template */
	bool moved;          /* inputs changed: the next write of the Deployment is not a repair */
};

/*
 * Delivery by volumes. `wanted` is what trustee-deployment is rendered with: a copy of what is
 * declared, updated rarely. `live` is what the Deployment mounted, with its status, at one
 * resourceVersion.
 */
struct cluster_volumes {
	char *uid;          /* owned: of the cluster; NULL: another delivery is configured */
	int64_t generation; /* of the cluster, when `wanted` was last checked to fit */
	struct render_volumes_list wanted, live;
	bool has_wanted; /* without it nothing that depends on the delivery is written */
	bool live_known; /* and nothing was written since */
	bool live_ours;  /* it was rendered for delivery by volumes */
	bool live_done;  /* its status says that all Pods have its template and are available */
	char *live_rv;   /* owned */
	bool dirty;      /* something changed since the last step */
	bool pending;    /* a new `wanted` waits for its time */
	bool confirming; /* notifications of kbs_sync are caused by ourselves */
	bool announced;  /* `wanted` was not written yet: its write is not a repair */
	/* Boot clock: nothing is added, nothing removed before. */
	uint64_t add_ms, take_back_ms;
	struct err refused; /* why `wanted` is not what is declared */
	size_t n_left_out;  /* Machines missing from `wanted` because of it */
};

/* Of the served cluster. */
struct cluster_authority {
	bool dirty;          /* the digest is not of what is there now */
	uint64_t changed_ms; /* boot clock: since when */
	struct state_digest digest;
	struct json_object *status; /* owned: status.authority as it is to be; NULL: absent */
	char *facts, *counts;       /* owned: the same as texts, as in struct model_cluster */
};

struct ctl_cluster {
	const struct ctl_env *env; /* borrowed */
	struct ctl_runner *runner; /* owned */
	struct ctl_acts acts;
	bool on;
	uint64_t status_ms;           /* boot clock: when counts were written last, or the start */
	struct model_pending pending; /* kept up to date at all times; all_machines is unused */
	size_t by_key;                /* the same, of model_pending_by_key() */
	/* of the served cluster: */
	struct ctl_install install;
	struct ctl_own auth; /* trustee-auth */
	struct ctl_own regkey[CLUSTER_N_REGKEYS];
	/* Hashes of the uids of the Secrets that were reported, by the field that names them. */
	uint64_t told_tls[CLUSTER_N_TLS];
	struct cluster_inputs inputs;
	struct cluster_volumes volumes;
	struct cluster_authority authority;
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
	const char *unreadable; /* ... that cannot be read: it is not changed */
	const char *missing;    /* a Secret; another operator's Trustee runs until it exists */
	uint32_t recheck_ms;
	struct kobj_cond_want want[CLUSTER_N_CONDS];
};

/* Trustee runs in this namespace, from what is rendered here. */
static inline bool cluster_renders_trustee(
	const struct ctl_cluster *c, const struct model_cluster *cluster)
{
	return cluster->deploy == MODEL_DEPLOY_MANAGED && !c->env->standalone;
}

/* Retired, nothing is repaired or made; but with delivery by volumes a key leaves Trustee only with
 * its Deployment. */
static inline bool cluster_may(
	const struct model_cluster *c, enum ctl_cluster_do d, unsigned object)
{
	return c->authority != MODEL_AUTHORITY_RETIRED ||
	       (c->delivery == MODEL_DELIVERY_VOLUMES &&
		       (d == CTL_CLUSTER_READ ||
			       (d == CTL_CLUSTER_APPLY && object == CLUSTER_TRUSTEE)));
}

/* The first thing to do wins. */
static inline void cluster_want(
	struct cluster_look *l, enum ctl_cluster_do d, unsigned object, unsigned number)
{
	if (d == CTL_CLUSTER_NOTHING || l->v.todo || !cluster_may(l->c, d, object))
		return;
	l->v.todo = (int)d;
	l->object = object;
	l->number = number;
}

/* The step runs again after ms, or sooner. */
static inline void cluster_recheck(struct cluster_look *l, uint64_t ms)
{
	if (!l->recheck_ms || ms < l->recheck_ms)
		l->recheck_ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

/* ---- own.c */
extern const struct ctl_own_conf cluster_own_auth, cluster_own_signer, cluster_own_regkey;
/* Sets todo or conflict. wanted: create it when it is absent. True: it may be used. */
bool cluster_own_look(const struct ctl_cluster *c, struct cluster_look *l,
	const struct ctl_own *own, unsigned object, unsigned number, bool wanted);

/* ---- inputs.c */
struct cluster_signer *cluster_inputs_signer(struct ctl_cluster *c, unsigned number);
/* Takes the certificate of o, which was read or is the answer of a create. */
void cluster_inputs_saw_signer(struct cluster_signer *s, struct json_object *o);
/* The plan wants it, or it may have been created. */
bool cluster_inputs_want_signer(const struct ctl_cluster *c, const char *name);
/* What Deployment and config are rendered with now. Borrowed until the next refresh. */
struct render_trustee_inputs cluster_inputs(const struct ctl_cluster *c);
/* A Secret appeared or changed: it may be a signer. */
void cluster_inputs_saw_secret(struct ctl_cluster *c, const char *name);
/* o: trustee-deployment, read or the answer of an apply. */
void cluster_inputs_saw_deployment(
	struct ctl_cluster *c, const struct model_cluster *cluster, struct json_object *o);
/* Plans the signers, once all that the plan depends on was read. */
void cluster_inputs_refresh(struct ctl_cluster *c, const struct model_cluster *cluster);
/* What must be read before anything is compared. True: nothing, the plan is valid. */
bool cluster_inputs_look(const struct ctl_cluster *c, struct cluster_look *l);
/* The next step of the plan. */
void cluster_inputs_look_plan(const struct ctl_cluster *c, struct cluster_look *l);
/* READ of CLUSTER_TLS. Done returns true when the error needs no retry. */
struct op *cluster_inputs_start_tls(
	struct ctl_cluster *c, const struct cluster_look *l, k8s_result_fn done, void *arg);
bool cluster_inputs_tls_done(struct ctl_cluster *c, const struct kobj *cluster,
	const struct err *err, const struct k8s_result *r);
/* Forgets everything except the list of Secrets; fini forgets that too. */
void cluster_inputs_reset(struct ctl_cluster *c);
void cluster_inputs_fini(struct ctl_cluster *c);

/* ---- regkey.c */
void cluster_regkey_init(struct ctl_cluster *c);
/* Forgets a copy that no rotation needs any more. */
void cluster_regkey_refresh(struct ctl_cluster *c, const struct model_cluster *cluster);
void cluster_regkey_look(const struct ctl_cluster *c, struct cluster_look *l);
/* The current one was read to be copied. */
void cluster_regkey_copy(
	struct ctl_cluster *c, const struct model_cluster *cluster, struct json_object *current);
bool cluster_regkey_is_name(const char *secret);
/* It is wanted, or may have been created. */
bool cluster_regkey_wanted(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name);

/* ---- tls.c */
bool cluster_tls_is_named(const struct model_cluster *c, const char *secret);
/* Appends a sentence for each: without it Trustee's Pod does not start, a listener accepts nothing,
 * or nodes get no answer. */
void cluster_tls_missing(
	const struct ctl_env *env, const struct model_cluster *c, struct strbuf *out);
void cluster_tls_refused(
	const struct ctl_env *env, const struct model_cluster *c, struct strbuf *out);
/* Reports what nobody has vouched for. */
void cluster_tls_tell(struct ctl_cluster *ctl, const struct model_cluster *c);

/* ---- registration.c */
/* Starts counting what counts against the limits. */
void cluster_registration_watch(struct ctl_cluster *c);
void cluster_registration_want(const struct ctl_cluster *c, struct cluster_look *l);

/* ---- served.c */
/* Hash of the current content of a list's files: "<keys>.<reference values>". */
#define CLUSTER_CONTENTS_LEN (2 * 16 + 1)
void cluster_served_contents(const struct ctl_env *env, const struct render_volumes_list *l,
	char out[CLUSTER_CONTENTS_LEN + 1]);
/* deployment: read, or the answer of an apply. */
void cluster_served_saw(struct cluster_volumes *v, struct json_object *deployment);
/* All of Trustee serves `live`: by the Deployment's status and by every Pod. */
bool cluster_served(const struct ctl_cluster *c);
/* Which Pod does not, and what to do about it. */
void cluster_served_why(const struct ctl_cluster *c, struct strbuf *out);
/* Confirms `live` to kbs_sync, name by name. */
void cluster_served_confirm(struct ctl_cluster *c, const struct model_cluster *served);

/* ---- authority.c */
void cluster_authority_watch(struct ctl_cluster *c);
void cluster_authority_refresh(struct ctl_cluster *c, const struct model_cluster *served);
void cluster_authority_want(const struct ctl_cluster *c, struct cluster_look *l);
void cluster_authority_fini(struct ctl_cluster *c); /* forgets what is to be written */

/* ---- retired.c */
/* Of a cluster with spec.authority Retired: every Trustee confirmed that it holds nothing of ours, and
 * no object has a finalizer of ours. Looks at all of them. */
bool cluster_retired(const struct ctl_cluster *c, const struct model_cluster *served);

/* ---- volumes.c */
/* In each step of the served cluster (NULL: there is none): confirms what Trustee serves and
 * updates `wanted`. Returns when to run again, in ms; 0: when something changes. */
uint32_t cluster_volumes_step(struct ctl_cluster *c, const struct model_cluster *served);
/* deployment: read, or the answer of an apply. writes: an apply of it begins. */
void cluster_volumes_saw(
	struct ctl_cluster *c, const struct model_cluster *served, struct json_object *deployment);
void cluster_volumes_writes(struct ctl_cluster *c, const struct model_cluster *served);
/* What must be mounted is not known yet, or is too large for the API: nothing of it is written. */
bool cluster_volumes_hold(const struct ctl_cluster *c);
/* NULL while cluster_volumes_hold(). */
struct json_object *cluster_volumes_render(
	const struct ctl_cluster *c, const struct model_cluster *cluster);
/* A value changed in kbs_sync. True: run a step now. */
bool cluster_volumes_on_sync(struct ctl_cluster *c, enum kbs_kind kind, const char *name);
void cluster_volumes_fini(struct ctl_cluster *c);

/* ---- objects.c */
extern const struct ctl_install_conf cluster_objects;
bool cluster_objects_installed(const struct kobj *cluster);

/* ---- view.c */
void cluster_view_forget(
	struct ctl_cluster *c); /* all that is known of the served cluster's Secrets */
/* A Secret of this name exists, or may still be created. */
bool cluster_view_needs(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name);
/* Its adopt-before is in the future: it would cover what is planted until then. */
bool cluster_view_adopts_later(const struct model_cluster *cluster);
void cluster_view_refresh(struct ctl_cluster *c, const struct model_cluster *served);
void cluster_view_look(const struct ctl_cluster *c, const char *name, struct cluster_look *l);

/* ---- act.c */
struct queue_next cluster_act_start(struct ctl_cluster *c, struct ctl_act *a,
	const struct cluster_look *l, enum ctl_cluster_do d);
/* Of the act that was last started. */
enum ctl_cluster_do cluster_act_doing(const struct ctl_act *a);

#endif
