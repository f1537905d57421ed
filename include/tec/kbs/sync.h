/* SPDX-License-Identifier: MIT */
/*
 * What every administered Trustee should hold (desired), and what each one confirmed (observed).
 * Controllers declare, revoke and read; listeners are called when something observed changes. This
 * module sends no requests: kbs/push does so for each target and reports the answers here (with
 * delivery by volumes, ctl/cluster does). Messages for people are made from these values in
 * ctl/trustee.
 *
 * A declared value is an object (compact, referenced) plus a render function, so no second copy of
 * a key is kept; a lost Secret is restored from that object. The value of a name shared by several
 * objects is a list. Values are compared by SHA-256.
 */
#ifndef TEC_KBS_SYNC_H
#define TEC_KBS_SYNC_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/secret.h"
#include "tec/kobj/meta.h"

enum kbs_kind { KBS_RESOURCE, KBS_REFVALUE }; /* a resource path; a reference value name */

/* The value's bytes, which depend on the object only; the caller frees. */
typedef struct secret *(*kbs_render_fn)(const struct kobj *object);

/* The state of one name over all targets. */
enum kbs_observed {
	KBS_OBSERVED_NONE,    /* no Trustee is administered: nothing to deliver or revoke */
	KBS_OBSERVED_UNKNOWN, /* for at least one target; counts as present */
	KBS_OBSERVED_PENDING, /* at least one has not confirmed what is desired */
	KBS_OBSERVED_PRESENT, /* all confirmed the declared value */
	KBS_OBSERVED_ABSENT,  /* all confirmed that they hold nothing under this name */
};

struct kbs_sync;
struct kbs_sync *kbs_sync_new(void);
void kbs_sync_free(struct kbs_sync *s);
/* Leadership is lost: forget everything declared, revoked and confirmed, and all targets. No key
 * stays in memory. */
void kbs_sync_reset(struct kbs_sync *s);
/* fn is called when the observed state of a name may have changed; name NULL: of all names.
 * Several can be added, for the life of s. fn is also called from inside declare and revoke if
 * these changed something; it may forget a name, but must not declare or revoke. */
void kbs_sync_listen(
	struct kbs_sync *s, void (*fn)(void *arg, enum kbs_kind kind, const char *name), void *arg);

/* ---- desired */

/* True if this changed what is desired. A reference to the object is kept. */
bool kbs_sync_declare(struct kbs_sync *s, enum kbs_kind kind, const char *name,
	const struct kobj *object, kbs_render_fn render);
/*
 * Declare one of several objects that share a name, identified by metadata.name: the value is a
 * JSON array of what render returns for each, at most KBS_LIST_MAX of them, sorted by `order`, then
 * uid. The remaining objects wait for a place. A name is declared either in this way or with
 * declare. Lists are public: their text is not wiped.
 */
#define KBS_LIST_MAX 32
bool kbs_sync_declare_in(struct kbs_sync *s, enum kbs_kind kind, const char *name,
	const struct kobj *object, int64_t order, kbs_render_fn render);
/* Remove the object with this metadata.name from the list. Revokes the name if it was the last
 * one, or if none was declared. */
bool kbs_sync_withdraw(
	struct kbs_sync *s, enum kbs_kind kind, const char *name, const char *object);
bool kbs_sync_revoke(struct kbs_sync *s, enum kbs_kind kind, const char *name);
/* Drop a name that is confirmed absent and no longer needed by any object. */
void kbs_sync_forget(struct kbs_sync *s, enum kbs_kind kind, const char *name);
/* The policies that every target should have (static texts), and whether identities are sent one
 * by one or as the Rust operator's single array trusted_aks. A change makes every push populate
 * again. There is no default: nothing is sent before the first call. */
void kbs_sync_policies(
	struct kbs_sync *s, const char *attestation, const char *resource, bool shared);

enum kbs_observed kbs_sync_observed(const struct kbs_sync *s, enum kbs_kind kind, const char *name);
/* The same for one object in a list: ABSENT if all confirmed a value without it. */
enum kbs_observed kbs_sync_observed_in(
	const struct kbs_sync *s, enum kbs_kind kind, const char *name, const char *object);
/* The object declared for a name (the first of a list), borrowed; NULL: not declared, or
 * revoked. */
const struct kobj *kbs_sync_object(const struct kbs_sync *s, enum kbs_kind kind, const char *name);
/* The i-th object of a name, including those that wait for a place; NULL: past the last one. */
const struct kobj *kbs_sync_object_at(
	const struct kbs_sync *s, enum kbs_kind kind, const char *name, unsigned i);
/* The object with this metadata.name; NULL: not declared. *has_place (may be NULL): it is in the
 * value. */
const struct kobj *kbs_sync_object_in(const struct kbs_sync *s, enum kbs_kind kind,
	const char *name, const char *object, bool *has_place);
/* Whether the name is revoked and not forgotten yet. */
bool kbs_sync_is_revoked(const struct kbs_sync *s, enum kbs_kind kind, const char *name);
/* SHA-256 of the value declared for a name; false: not declared, or revoked. */
bool kbs_sync_desired(
	const struct kbs_sync *s, enum kbs_kind kind, const char *name, uint8_t sha256[SHA256_LEN]);
/* Call fn for every name of a kind, declared or revoked, in no order. Names are copied first: fn
 * may confirm one, and a listener may then forget it. */
void kbs_sync_names(const struct kbs_sync *s, enum kbs_kind kind,
	void (*fn)(void *arg, const char *name), void *arg);
/* Counts for status: declared names, names confirmed by all targets, unconfirmed revocations. */
void kbs_sync_counts(
	const struct kbs_sync *s, size_t *declared, size_t *confirmed, size_t *revoking);

/* ---- targets, by name (the address shown to people) */

enum kbs_target_state {
	KBS_TARGET_UNREACHABLE, /* not reachable, or not reachable yet */
	KBS_TARGET_PROBING,     /* its sentinel is being read */
	KBS_TARGET_POPULATING,
	KBS_TARGET_IN_SYNC,  /* changes may be in flight */
	KBS_TARGET_REFUSED,  /* it does not accept our key or our requests: retried slowly, needs
				an administrator */
	KBS_TARGET_CONFLICT, /* another cluster administers it: needs an administrator, too */
};

struct kbs_target_status {
	const char *name; /* all borrowed until the next call that changes anything */
	enum kbs_target_state state;
	const char *error; /* of its last request; NULL: none */
	const char *text;  /* a message from its controller; NULL: none */
};

void kbs_sync_target_add(struct kbs_sync *s, const char *target);
void kbs_sync_target_remove(struct kbs_sync *s, const char *target);
/* Sets the status of a target; error and text are copied and may be NULL. */
void kbs_sync_set_status(struct kbs_sync *s, const char *target, enum kbs_target_state state,
	const char *error, const char *text);
/* The i-th target, from 0; false: no more. */
bool kbs_sync_target(const struct kbs_sync *s, unsigned i, struct kbs_target_status *out);
/* Whether the i-th target has not confirmed what is desired for this name. */
bool kbs_sync_target_differs(
	const struct kbs_sync *s, unsigned i, enum kbs_kind kind, const char *name);
/* The worst state of all targets; UNREACHABLE without targets. PROBING: all others are in sync,
 * and what was reported before a restart may still be true. */
enum kbs_target_state kbs_sync_state(const struct kbs_sync *s);
/* The target answered that it holds this value under the name (sha256 NULL: nothing). */
void kbs_sync_confirm(struct kbs_sync *s, const char *target, enum kbs_kind kind, const char *name,
	const uint8_t sha256[SHA256_LEN]);
/* What the target holds under this name is unknown until the next confirmation: it is about to
 * change, or differs from what was confirmed. */
void kbs_sync_set_unknown(
	struct kbs_sync *s, const char *target, enum kbs_kind kind, const char *name);

#endif
