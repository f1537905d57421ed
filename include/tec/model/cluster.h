/* SPDX-License-Identifier: MIT */
/* TrustedExecutionCluster: spec (with the documented defaults filled in) and the parts of its
 * status that decide whether a write is needed. */
#ifndef TEC_MODEL_CLUSTER_H
#define TEC_MODEL_CLUSTER_H

#include <json-c/json.h>
#include <string.h>

#include "tec/kobj/condition.h"
#include "tec/kobj/meta.h"
#include "tec/model/platforms.h"

#define MODEL_CLUSTER_SERVERS_MAX 8
#define MODEL_CLUSTER_CA_MAX      8
/* Announcements (model/mark.h) for the content of Secrets that the operator makes for the cluster:
 * one annotation per Secret, whose name is the prefix and the Secret's name. Further annotations
 * are ignored. */
#define MODEL_ANNOUNCED_PREFIX "trusted-execution-clusters.io/sha256-"
#define MODEL_ANNOUNCED_MAX    12

enum model_deploy { MODEL_DEPLOY_MANAGED, MODEL_DEPLOY_EXTERNAL };
enum model_delivery { MODEL_DELIVERY_ADMIN_API, MODEL_DELIVERY_VOLUMES };
enum model_isolation { MODEL_ISOLATION_PER_MACHINE, MODEL_ISOLATION_SHARED };
enum model_plaintext { MODEL_PLAINTEXT_ALLOW, MODEL_PLAINTEXT_REFUSE };
enum model_guard { MODEL_GUARD_ENABLED, MODEL_GUARD_DISABLED };
enum model_reg_mode { MODEL_REG_OPEN, MODEL_REG_TOKEN, MODEL_REG_MANUAL };
/* When a listener creates a node's Machine: when the node requests its Ignition configuration, or
 * when it registers its key. */
enum model_reg_machine { MODEL_REG_AT_REQUEST, MODEL_REG_AT_KEY };
enum model_approval { MODEL_APPROVAL_AUTOMATIC, MODEL_APPROVAL_MANUAL };
enum model_endorsement {
	MODEL_ENDORSEMENT_NONE,
	MODEL_ENDORSEMENT_OPTIONAL,
	MODEL_ENDORSEMENT_REQUIRED
};
/* Which cluster decides: see spec.authority. */
enum model_authority {
	MODEL_AUTHORITY_SELF,
	MODEL_AUTHORITY_FOLLOWING,
	MODEL_AUTHORITY_FROZEN,
	MODEL_AUTHORITY_RETIRED
};
enum model_pcr7 { MODEL_PCR7_IGNORE, MODEL_PCR7_REQUIRE };
enum model_release { MODEL_RELEASE_ANY_TIME, MODEL_RELEASE_ONCE_PER_BOOT };

/* Condition types in the order of model_cluster.cond; reasons are enums with names from the
 * contract. */
enum model_cluster_cond {
	CLUSTER_INSTALLED,
	CLUSTER_KNOWN_ADDRESS,
	CLUSTER_TRUSTEE_SYNCED,
	CLUSTER_REGISTRATION_OPEN,
	CLUSTER_KEYS_ISOLATED,
	CLUSTER_AUTHORITY,
	CLUSTER_N_CONDS
};
extern const char *const model_cluster_cond_types[CLUSTER_N_CONDS];
enum model_cluster_reason {
	CLUSTER_INSTALLATION_COMPLETED,
	CLUSTER_INSTALLING,
	CLUSTER_UNINSTALLING,
	CLUSTER_NON_UNIQUE,
	CLUSTER_GUARD_MISSING,
	CLUSTER_CONFLICT,
	CLUSTER_ADDRESS_FOUND,
	CLUSTER_NO_ADDRESS_FOUND,
	CLUSTER_SYNCED,
	CLUSTER_NOT_AVAILABLE,
	CLUSTER_REFUSED,
	CLUSTER_POPULATING,
	CLUSTER_OPEN,
	CLUSTER_NOT_SERVED,
	CLUSTER_MODE_MANUAL,
	CLUSTER_NO_REGISTRATION_KEY,
	CLUSTER_MACHINE_LIMIT_REACHED,
	CLUSTER_PENDING_LIMIT_REACHED,
	CLUSTER_PER_MACHINE,
	CLUSTER_SHARED_AMONG_NODES,
	CLUSTER_SHARED_WITH_STRANGERS,
	CLUSTER_SELF,
	CLUSTER_FROZEN,
	CLUSTER_FOLLOWING,
	CLUSTER_RETIRED,
	CLUSTER_FREEZING,
	CLUSTER_RETIRING,
	CLUSTER_FOLLOWING_BEHIND,
	CLUSTER_SOURCE_UNREACHABLE,
	CLUSTER_SOURCE_DIFFERS,
	CLUSTER_SOURCE_WENT_BACK,
	CLUSTER_PEER_UNKNOWN,
	CLUSTER_PEER_DECIDES,
	CLUSTER_N_REASONS,
};
const char *model_reg_mode_name(enum model_reg_mode m);   /* the value in spec */
const char *model_authority_name(enum model_authority a); /* likewise */
const char *model_cluster_reason(enum model_cluster_reason r);

struct model_cluster {
	struct kobj obj;
	/* NULL when unset */
	const char *public_trustee_addr, *public_register_addr, *public_ak_addr;
	const char *trustee_secret, *register_secret, *ak_secret;
	int trustee_port, register_port, ak_port; /* defaults filled in: 8080, 8000, 8001 */
	unsigned n_servers;
	const char *server_addr[MODEL_CLUSTER_SERVERS_MAX], *server_ca[MODEL_CLUSTER_SERVERS_MAX],
		*server_admin[MODEL_CLUSTER_SERVERS_MAX];
	enum model_deploy deploy;
	enum model_delivery delivery;
	int window; /* keys in flight per Trustee; 0: default, differs by Trustee */
	/* uid of the cluster that this one may replace at Trustee; NULL: none */
	const char *take_over;
	enum model_isolation isolation;
	enum model_plaintext plaintext;
	/* While something is lost (below): from the mirror, since this is what runs. */
	enum model_guard guard;
	/* While something is lost: from the mirror, so that a pruned spec starts nothing. */
	enum model_authority authority;
	/* From spec.follow, kept in the same way; NULL: unset. follow_namespace NULL: that of the
	 * kubeconfig. */
	const char *follow_secret, *follow_namespace;
	int64_t follow_stale_ms;
	int64_t epoch; /* kept in the same way */
	enum model_reg_mode reg_mode;
	enum model_reg_machine reg_machine;
	const char *token_secret;
	enum model_approval approval;
	int64_t pending_ttl_ms; /* 0: never */
	int pending_limit, machine_limit, waiting_keys;
	enum model_endorsement endorsement;
	const char *endorsement_ca;
	/* From spec.attestation; while something is lost, from the mirror: a pruned spec does not
	 * reduce what nodes have to prove. */
	unsigned n_platforms;
	const char *platform[MODEL_PLATFORMS_MAX]; /* ConfigMaps, in the order given */
	enum model_pcr7 pcr7;
	enum model_release release;
	/* From spec.tls, or from the mirror while something is lost: SHA-256 of the certificates
	 * allowed in a TLS Secret's ca.crt, in hex, separated by spaces; NULL: any. */
	const char *ca_sha256;
	/* Canonical JSON of the (+) part of spec (trusteeServers, trustee, registration,
	 * attestation, authority, epoch, follow, tls), NULL when none is set; and the annotation
	 * that mirrors it. */
	const char *extended_spec, *extended_mirror;
	/*
	 * Path of the first member that the annotation has and spec lost: a visit of the Rust
	 * operator with its CRD pruned it. NULL: none. While set, the cluster is not acted on.
	 */
	const char *extended_lost;
	/* The annotation (model/lost.h), NULL if no entry counts; and when the first server was
	 * declared lost, INT64_MAX: none was. */
	const char *lost_servers;
	int64_t lost_since_s;
	struct {
		const char *secret; /* name of the Secret */
		const char *hashes; /* NULL: the mark is not this object's, and does not count */
	} announced[MODEL_ANNOUNCED_MAX];
	unsigned n_announced;
	int64_t adopt_before_s; /* annotation, wall clock; INT64_MIN: absent or not RFC 3339 */
	bool adopt_before_bad;  /* the annotation is not a time */
	/* Payload of a mark (model/mark.h): hashes of what the operator wrote, or is about to
	 * write, into trustee-rv-data; NULL: no valid mark. */
	const char *values_sha256;
	/* Payload of a mark: uid of the TrustedExecutionCluster that is followed; NULL: none
	 * yet. */
	const char *followed_uid;
	/* Payload of a mark: uid of one that was seen Retired, so that it never decides again;
	 * NULL: none. */
	const char *retired_uid;
	/* From status.authority: who is followed (NULL: unknown), and all of it as two texts for
	 * comparison: facts, and counters (behind). "": absent. */
	const char *authority_peer, *authority_facts, *authority_counts;
	int64_t peer_epoch;  /* from status.authority; -1: unknown */
	int64_t peer_seen_s; /* from status.authority, wall clock; 0: unknown */
	struct kobj_cond cond[CLUSTER_N_CONDS];
};
#define MODEL_CLUSTER_VALUES_MARK   "trusted-execution-clusters.io/reference-values-sha256"
#define MODEL_CLUSTER_FOLLOWED_MARK "trusted-execution-clusters.io/followed-uid"
#define MODEL_CLUSTER_RETIRED_MARK  "trusted-execution-clusters.io/retired-uid"
/* On a ConfigMap or Secret that is a copy: uid of the TrustedExecutionCluster from which it was
 * copied. */
#define MODEL_COPIED_ANNOTATION       "trusted-execution-clusters.io/copied-from"
#define MODEL_EXTENDED_ANNOTATION     "trusted-execution-clusters.io/extended-spec"
#define MODEL_ADOPT_BEFORE_ANNOTATION "trusted-execution-clusters.io/adopt-before"

/* k8s_extract_fn: ERR_INVALID names the member. */
struct kobj *model_cluster_extract(struct json_object *o, struct err *err);
static inline const struct model_cluster *model_cluster(const struct kobj *o)
{
	return (const struct model_cluster *)o;
}
/* Cache index 0: "" unless the object is being deleted, so that k8s_cache_first(clusters, 0, "") is
 * the cluster served (oldest, then by name). */
const char *model_cluster_index(const struct kobj *o, unsigned i);
/* Hashes announced for a Secret, for model_mark_announce(); NULL: none. Borrowed from c. */
const char *model_cluster_announced(const struct model_cluster *c, const char *secret);
/* Tell whether a Secret with this name and content (model/content.h) is the operator's own. */
bool model_cluster_announces(const struct model_cluster *c, const char *secret, const char *hex);
/* Get the two texts of a status.authority (NULL: absent); the caller frees them. */
void model_cluster_authority_texts(struct json_object *authority, char **facts, char **counts);
/* Return the uid of the TrustedExecutionCluster elsewhere that may decide instead of this one;
 * NULL: none. */
static inline const char *model_cluster_peer(const struct model_cluster *c)
{
	bool over = c->followed_uid && c->retired_uid && !strcmp(c->followed_uid, c->retired_uid);

	return c->follow_secret && !over ? c->followed_uid : NULL;
}
/* Tell whether the cluster that c follows, or followed when it retired, administers the primary
 * Trustee of c. A Retired cluster may have administered it itself after that. */
bool model_cluster_leaves_trustee(const struct model_cluster *c);
/* Tell whether c must stop deciding, because its peer decides with a later epoch. Of two that
 * decide with the same epoch, exactly one must stop if both know each other; otherwise the one that
 * knows the other. */
bool model_cluster_yields(const struct model_cluster *c, const struct model_cluster *peer);
/* A guard runs in front of the Trustee that the operator deploys. */
static inline bool model_cluster_guarded(const struct model_cluster *c)
{
	return c->deploy == MODEL_DEPLOY_MANAGED && c->guard == MODEL_GUARD_ENABLED;
}
/* Return the first certificate in `found` (hashes as pki_cert_read_bundle() writes them) that
 * `listed` (model_cluster.ca_sha256) lacks; "": found has no certificate. NULL: all are listed, or
 * found or listed is NULL. Borrowed from found; it ends at a space or at the end of the text. */
const char *model_cluster_unlisted_ca(const char *listed, const char *found);
/* List the fields that are set but have no effect in this version, as "a, b" (empty: none). */
void model_cluster_unused_fields(const struct model_cluster *c, struct strbuf *out);

/* Compare two versions of a TrustedExecutionCluster (NULL: absent): true when nothing differs that
 * other controllers read, but only its status or metadata. */
bool model_cluster_means_the_same(const struct kobj *was, const struct kobj *now);

#endif
