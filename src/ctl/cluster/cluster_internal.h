/* SPDX-License-Identifier: MIT */
/*
 * Private to src/ctl/cluster. Each file calls only those listed before it:
 *
 *	own          the Secrets that the operator creates (ctl/own.h): content, and a look at one;
 *	             the registration key and its rotation
 *	inputs       what Trustee is rendered from besides spec: certificate, token signers
 *	tls          the TLS Secrets that spec names: missing, refused, unusable,
 *	             unverified
 *	registration who can register: counts and condition
 *	volumes      delivery by volumes: which files Trustee should mount, and which it serves
 *	objects      the table of the installation, for ctl/install.h
 *	view         refresh (update the controller's memory from the caches), look (read only),
 *	             decide
 *	act          starts a request and takes its answer
 *	cluster      the step, what wakes it, creation and end
 */
#ifndef TEC_CTL_CLUSTER_INTERNAL_H
#define TEC_CTL_CLUSTER_INTERNAL_H

#include "../ctl_internal.h"
#include "tec/base/clock.h"
#include "tec/ctl/cluster.h"
#include "tec/ctl/own.h"
#include "tec/model/pending.h"
#include "tec/model/tlsuse.h"
#include "tec/render/volumes.h"
#include "tec/caches/digest.h"

#define CLUSTER_CERT       "cert.pem" /* of a token signer's Secret */
#define CLUSTER_DEPLOYMENT "trustee-deployment"
#define CLUSTER_HASH_SIZE  17 /* with the NUL */

/* The object of an act. First the table of objects.c in the order of installation: what the
 * Deployment mounts is created before the Deployment. */
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
	CLUSTER_TLS,    /* the Secret named by spec.trusteeSecret */
	CLUSTER_REGKEY, /* number: enum cluster_regkey */
};

/* struct ctl_install_object.inputs */
#define CLUSTER_IF_MANAGED  1u /* installed unless trustee.deploy is External */
#define CLUSTER_IF_FILES    2u /* delivery by volumes: waits until the files are known */
#define CLUSTER_FROM_INPUTS 4u
#define CLUSTER_FROM_FILES  8u

struct ctl_cluster;

/* A Secret with the name of a token signer, created by this operator or not. */
struct cluster_signer {
	struct cluster_signer *next; /* owned by the list */
	unsigned number;             /* render/token.h */
	char name[RENDER_TOKEN_NAME_SIZE];
	struct ctl_own own;
	/* Of its certificate when it was last read; 0: unreadable. One that begins in the future, made
	 * while the clock was ahead, is none. */
	int64_t not_before_s, not_after_s;
	char hash[CLUSTER_HASH_SIZE];
};

/* The two registration keys, and the act that reads the current key in order to create the previous
 * key from it. */
enum cluster_regkey { CLUSTER_REGKEY_CURRENT, CLUSTER_REGKEY_PREVIOUS, CLUSTER_REGKEY_TO_COPY };
#define CLUSTER_N_REGKEYS 2
#define CLUSTER_N_TLS     (3 + MODEL_CLUSTER_SERVERS_MAX)

/* Inputs of the Deployment and config besides spec. Owned strings. */
struct cluster_inputs {
	struct cluster_signer *signers;
	struct render_token_plan plan; /* borrows from signers */
	char *tls_hash;                /* of trusteeSecret when it was last usable */
	char *tls_read;      /* "name resourceVersion" of the version that was last read */
	char *tls_asked;     /* ... of the version that is being read */
	bool tls_denied;     /* the last version could not be read */
	char *deployment_rv; /* when it was last read */
	char *mounted;       /* "\nname\nname\n": signer Secrets that the Deployment mounts */
	char *rendered_as;   /* the inputs as one text: a different text is a different template */
	bool moved;          /* inputs changed: report the next write as an update, not a repair */
};

/*
 * Delivery by volumes. `wanted` is the list that trustee-deployment is rendered with: a copy of
 * what is declared, updated rarely because each update restarts Trustee. `live` is what the
 * Deployment mounted at one resourceVersion, with its status.
 */
struct cluster_volumes {
	char *uid;          /* owned: of the cluster; NULL: another delivery is configured */
	int64_t generation; /* of the cluster, when `wanted` was last checked to fit */
	struct render_volumes wanted, live;
	bool has_wanted; /* while false, no object that depends on the files is written */
	bool live_known; /* `live` was read, and no write was sent since */
	bool live_ours;  /* the Deployment was rendered for delivery by volumes */
	bool live_done;  /* its status says that all Pods have its template and are available */
	char *live_rv;   /* owned */
	bool dirty;      /* something changed since the last step */
	bool pending;    /* a new `wanted` waits for its time */
	bool confirming; /* this controller causes the notifications of kbs_sync: ignore them */
	bool announced;  /* `wanted` was not written yet: report its write as an update */
	/* Boot clock: the earliest times for adding and for removing files. */
	uint64_t add_ms, take_back_ms;
	struct err refused; /* why `wanted` is not what is declared */
	size_t n_left_out;  /* Machines missing from `wanted` for this reason */
};

/* Of the served cluster. */
struct cluster_authority {
	bool dirty;          /* the digest is out of date */
	uint64_t changed_ms; /* boot clock: since when */
	struct caches_digest digest;
	struct json_object *status; /* owned: desired status.authority; NULL: absent */
	char *facts, *counts;       /* owned: the same as text, as in struct model_cluster */
};

struct ctl_cluster {
	const struct ctl_env *env; /* borrowed */
	struct ctl_runner *runner; /* owned */
	struct ctl_acts acts;
	bool on;
	uint64_t status_ms;  /* boot clock: last write of counts, or the start */
	uint64_t counted_ms; /* boot clock: last change of a count */
	struct model_pending
		pending; /* always up to date, even while off; all_machines is unused */
	size_t by_key;   /* the same, of model_pending_by_key() */
	/* of the served cluster: */
	struct ctl_install install;
	struct ctl_own auth; /* trustee-auth */
	struct ctl_own regkey[CLUSTER_N_REGKEYS];
	/* By field that names a TLS Secret: hash of the UID of the Secret that was reported. */
	uint64_t told_tls[CLUSTER_N_TLS];
	struct cluster_inputs inputs;
	struct cluster_volumes volumes;
	struct cluster_authority authority;
};

/* Borrowed from the caches, valid for one step. */
struct cluster_look {
	struct ctl_cluster_view v;
	const struct model_cluster *c, *served;
	unsigned object;        /* of v.todo: enum cluster_object */
	unsigned number;        /* ... of a signer or registration key */
	const char *conflict;   /* name of an object that another owner has; NULL: none */
	bool conflict_own;      /* ... and it is a Secret that the operator would create */
	const char *waits;      /* name of an object that is being deleted */
	const char *unreadable; /* name of an object that cannot be read, so it is not changed */
	const char *missing;    /* a Secret; the other operator's Trustee runs until it exists */
	uint32_t recheck_ms;
	struct kobj_cond_want want[CLUSTER_N_CONDS];
};

/* Tell whether this operator renders the Trustee of the cluster. */
static inline bool cluster_renders_trustee(
	const struct ctl_cluster *c, const struct model_cluster *cluster)
{
	return cluster->deploy == MODEL_DEPLOY_MANAGED && !c->env->standalone;
}

/* A retired operator repairs and creates nothing, with one exception: with delivery by volumes,
 * a key leaves Trustee only by an update of its Deployment. */
static inline bool cluster_may(
	const struct model_cluster *c, enum ctl_cluster_do d, unsigned object)
{
	return c->authority != MODEL_AUTHORITY_RETIRED ||
	       (c->delivery == MODEL_DELIVERY_VOLUMES &&
		       (d == CTL_CLUSTER_READ ||
			       (d == CTL_CLUSTER_APPLY && object == CLUSTER_TRUSTEE)));
}

/* Set what to do next, unless something is set already: callers run in order of priority. */
static inline void cluster_want(
	struct cluster_look *l, enum ctl_cluster_do d, unsigned object, unsigned number)
{
	if (d == CTL_CLUSTER_NOTHING || l->v.todo || !cluster_may(l->c, d, object))
		return;
	l->v.todo = (int)d;
	l->object = object;
	l->number = number;
}

/* Run the step again after ms at the latest. */
static inline void cluster_recheck(struct cluster_look *l, uint64_t ms)
{
	if (!l->recheck_ms || ms < l->recheck_ms)
		l->recheck_ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

/* Set a condition; `when` tells True from False. */
#define CLUSTER_WANT(l, type, when, reason, ...)                                                   \
	kobj_cond_want(&(l)->want[type], model_cluster_cond_types[type],                           \
		(when) ? KOBJ_COND_TRUE : KOBJ_COND_FALSE, model_cluster_reason(reason),           \
		__VA_ARGS__)

/* Run the step again at this time. Later times need no timer, because every key is stepped each
 * hour; one that has just passed needs a step, too. */
static inline void cluster_recheck_at(struct cluster_look *l, int64_t at_s)
{
	int64_t in_s = at_s - clock_wall_s();

	if (in_s <= 7200)
		cluster_recheck(l, in_s > 1 ? (uint64_t)in_s * 1000 : 1000);
}

/* ---- own.c */
extern const struct ctl_own_conf cluster_own_auth, cluster_own_signer, cluster_own_regkey;
/* Sets todo or conflict. wanted: create the Secret if it is absent. True: the Secret is usable. */
bool cluster_own_look(const struct ctl_cluster *c, struct cluster_look *l,
	const struct ctl_own *own, unsigned object, unsigned number, bool wanted);

/* ---- inputs.c */
struct cluster_signer *cluster_inputs_signer(struct ctl_cluster *c, unsigned number);
/* Takes the certificate from o: the answer of a read or a create. */
void cluster_inputs_saw_signer(struct cluster_signer *s, struct json_object *o);
/* The plan needs this signer, or a create may have reached the API. */
bool cluster_inputs_want_signer(const struct ctl_cluster *c, const char *name);
/* The current inputs of the Deployment and config. Borrowed until the next refresh. */
struct render_trustee_inputs cluster_inputs(const struct ctl_cluster *c);
/* o: trustee-deployment, read or the answer of an apply. */
void cluster_inputs_saw_deployment(
	struct ctl_cluster *c, const struct model_cluster *cluster, struct json_object *o);
/* Plans the signers once all inputs of the plan were read. */
void cluster_inputs_refresh(struct ctl_cluster *c, const struct model_cluster *cluster);
/* Finds what must be read before objects are compared. True: nothing is missing, the plan is
 * valid. */
bool cluster_inputs_look(const struct ctl_cluster *c, struct cluster_look *l);
/* The next step of the plan. */
void cluster_inputs_look_plan(const struct ctl_cluster *c, struct cluster_look *l);
/* READ of CLUSTER_TLS. _done() returns true when the error needs no retry. */
struct op *cluster_inputs_start_tls(
	struct ctl_cluster *c, const struct cluster_look *l, k8s_result_fn done, void *arg);
bool cluster_inputs_tls_done(struct ctl_cluster *c, const struct kobj *cluster,
	const struct err *err, const struct k8s_result *r);
/* reset() forgets everything except the list of Secrets; fini() forgets that too. */
void cluster_inputs_reset(struct ctl_cluster *c);
void cluster_inputs_fini(struct ctl_cluster *c);

/* Forgets a copied key that no rotation needs any more. */
void cluster_regkey_refresh(struct ctl_cluster *c, const struct model_cluster *cluster);
void cluster_regkey_look(const struct ctl_cluster *c, struct cluster_look *l);
/* Keeps a copy of the current key, which was just read, as the next previous key. */
void cluster_regkey_copy(
	struct ctl_cluster *c, const struct model_cluster *cluster, struct json_object *current);
bool cluster_regkey_is_name(const char *secret);
/* The Secret is wanted, or a create may have reached the API. */
bool cluster_regkey_wanted(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name);

/* ---- tls.c */
bool cluster_tls_is_named(const struct model_cluster *c, const char *secret);
/* Append one sentence for each Secret. A missing one keeps Trustee's Pod from starting, a listener
 * from accepting connections, or nodes from getting an answer. */
void cluster_tls_missing(
	const struct ctl_env *env, const struct model_cluster *c, struct strbuf *out);
void cluster_tls_refused(
	const struct ctl_env *env, const struct model_cluster *c, struct strbuf *out);
/* The same for what a server or nodes cannot use (model/tlsuse.h). */
void cluster_tls_unusable(
	const struct ctl_env *env, const struct model_cluster *c, struct strbuf *out);
/* Reports each Secret whose CA nobody has confirmed. */
void cluster_tls_tell(struct ctl_cluster *ctl, const struct model_cluster *c);

/* ---- registration.c */
/* Starts counting the objects that count against the limits of spec.registration. */
void cluster_registration_watch(struct ctl_cluster *c);
void cluster_registration_want(const struct ctl_cluster *c, struct cluster_look *l);

/* ---- authority.c */
void cluster_authority_watch(struct ctl_cluster *c);
void cluster_authority_refresh(struct ctl_cluster *c, const struct model_cluster *served);
void cluster_authority_want(const struct ctl_cluster *c, struct cluster_look *l);
void cluster_authority_fini(struct ctl_cluster *c); /* forgets status.authority */

/* ---- volumes.c */
/* deployment: read, or the answer of an apply. */
void cluster_served_saw(struct cluster_volumes *v, struct json_object *deployment);
/* Runs in each step of the served cluster (NULL: none): confirms what Trustee serves and updates
 * `wanted`. Returns after how many ms to run again; 0: only when something changes. */
uint32_t cluster_volumes_step(struct ctl_cluster *c, const struct model_cluster *served);
/* An apply of the Deployment begins. */
void cluster_volumes_writes(struct ctl_cluster *c, const struct model_cluster *served);
/* NULL while the files to mount are not known yet, or too large for the API: nothing that needs them
 * is written. */
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
	struct ctl_cluster *c); /* everything known about the served cluster's Secrets */
/* A Secret of this name exists, or may still be created: its announcement is needed. */
bool cluster_view_needs(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *name);
/* Its adopt-before time is in the future, and would cover objects that are planted until then. */
bool cluster_view_adopts_later(const struct model_cluster *cluster);
/* The server was declared lost, and is in spec and in sync again. */
bool cluster_view_found(
	const struct ctl_cluster *c, const struct model_cluster *cluster, const char *address);
void cluster_view_refresh(struct ctl_cluster *c, const struct model_cluster *served);
void cluster_view_look(const struct ctl_cluster *c, const char *name, struct cluster_look *l);

/* Run a step of the served cluster after this time, if there is one and the controller is on: most
 * changes concern only that one. */
static inline void cluster_wake(struct ctl_cluster *c, uint32_t after_ms)
{
	const struct model_cluster *served = caches_cluster(c->env->caches);

	if (c->on && served && after_ms)
		ctl_runner_wake_after(c->runner, served->obj.name, after_ms);
	else if (c->on && served)
		ctl_runner_wake(c->runner, served->obj.name);
}

/* A count of the status changed. Many change in the same second. */
#define CLUSTER_WAIT_MS 1000 /* collects a burst of changes into one step */
static inline void cluster_counted(struct ctl_cluster *c)
{
	c->counted_ms = clock_boot_ms();
	cluster_wake(c, CLUSTER_WAIT_MS);
}

/* ---- act.c */
struct queue_next cluster_act_start(struct ctl_cluster *c, struct ctl_act *a,
	const struct cluster_look *l, enum ctl_cluster_do d);

#endif
