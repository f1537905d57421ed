/* SPDX-License-Identifier: MIT */
/*
 * What every administered Trustee shall hold (desired), and what each has confirmed (observed).
 * Controllers declare, revoke and read; listeners are called when something observed changes.
 * Nothing here sends requests: kbs/push does for each target and reports its answers here (with
 * delivery by volumes, ctl/cluster does). Messages for people are made from these values in
 * ctl/trustee.
 *
 * A declared value is an object (compact, referenced) plus a render function, so no second copy of
 * a key is kept; a lost Secret is restored from that object. A name that several objects share has a
 * list of their values. Values are compared by SHA-256.
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

/* The state of one name over all targets together. */
enum kbs_observed {
	KBS_OBSERVED_NONE,    /* no Trustee is administered: nothing can be delivered or has to be
			    revoked */
	KBS_OBSERVED_UNKNOWN, /* of at least one target; counts as present */
	KBS_OBSERVED_PENDING, /* at least one has not confirmed what is desired */
	KBS_OBSERVED_PRESENT, /* all confirmed the declared value */
	KBS_OBSERVED_ABSENT,  /* all confirmed that they hold nothing under this name */
};

struct kbs_sync;
struct kbs_sync *kbs_sync_new(void);
void kbs_sync_free(struct kbs_sync *s);
/* The leadership is lost: forgets everything declared, revoked and confirmed, and all targets. No
 * key stays in memory. */
void kbs_sync_reset(struct kbs_sync *s);
/* fn is called when what is observed of a name may have changed; name NULL: of all names. There may
 * be several, for the life of s. Also called from inside declare and revoke, when these changed
 * something; a listener may forget a name, and must not declare or revoke. */
void kbs_sync_listen(
	struct kbs_sync *s, void (*fn)(void *arg, enum kbs_kind kind, const char *name), void *arg);

/* ---- desired */

/* True when this changed what is desired. The object is referenced. */
bool kbs_sync_declare(struct kbs_sync *s, enum kbs_kind kind, const char *name,
	const struct kobj *object, kbs_render_fn render);
/*
 * Declares one of several objects that share a name, each known by its metadata.name: the value is
 * a JSON array of what render makes of each, at most KBS_LIST_MAX of them, the lowest `order` first,
 * then the lowest uid. The others wait for a place. A name is declared in this way or the other.
 * Lists are public: their text is not wiped.
 */
#define KBS_LIST_MAX 32
bool kbs_sync_declare_in(struct kbs_sync *s, enum kbs_kind kind, const char *name,
	const struct kobj *object, int64_t order, kbs_render_fn render);
/* Takes the object with this metadata.name out of the list. Revokes the name when none is left, and
 * when none was declared. */
bool kbs_sync_withdraw(
	struct kbs_sync *s, enum kbs_kind kind, const char *name, const char *object);
bool kbs_sync_revoke(struct kbs_sync *s, enum kbs_kind kind, const char *name);
/* Confirmed absent, and no object needs it any more. */
void kbs_sync_forget(struct kbs_sync *s, enum kbs_kind kind, const char *name);
/* The policies every target shall have (static texts), and whether identities are sent one by one
 * or as the Rust operator's one array trusted_aks. A change makes every push populate again.
 * Targets start without policies: nothing is sent before the first call. */
void kbs_sync_policies(
	struct kbs_sync *s, const char *attestation, const char *resource, bool shared);

enum kbs_observed kbs_sync_observed(const struct kbs_sync *s, enum kbs_kind kind, const char *name);
/* The same of one object in a list: ABSENT when all confirmed a value without it. */
enum kbs_observed kbs_sync_observed_in(
	const struct kbs_sync *s, enum kbs_kind kind, const char *name, const char *object);
/* The object declared for a name, the first of a list, borrowed; NULL: not declared or revoked. */
const struct kobj *kbs_sync_object(const struct kbs_sync *s, enum kbs_kind kind, const char *name);
/* The i-th object of a name, those that wait for a place included; NULL: past the last one. */
const struct kobj *kbs_sync_object_at(
	const struct kbs_sync *s, enum kbs_kind kind, const char *name, unsigned i);
/* The one with this metadata.name; NULL: it is not declared. has_place (or NULL): it is in the value. */
const struct kobj *kbs_sync_object_in(const struct kbs_sync *s, enum kbs_kind kind,
	const char *name, const char *object, bool *has_place);
/* Revoked, and not forgotten yet. */
bool kbs_sync_is_revoked(const struct kbs_sync *s, enum kbs_kind kind, const char *name);
/* SHA-256 of the value declared for a name; false: not declared or revoked. */
bool kbs_sync_desired(
	const struct kbs_sync *s, enum kbs_kind kind, const char *name, uint8_t sha256[SHA256_LEN]);
/* Every name of a kind, declared or revoked, in no order. Names are copied first: fn may confirm
 * one, and a listener may then forget it. */
void kbs_sync_names(const struct kbs_sync *s, enum kbs_kind kind,
	void (*fn)(void *arg, const char *name), void *arg);
/* Counts for status: declared names, names confirmed by all targets, unconfirmed revocations. */
void kbs_sync_counts(
	const struct kbs_sync *s, size_t *declared, size_t *confirmed, size_t *revoking);

/* ---- targets, by name (the address shown to people) */

enum kbs_target_state {
	KBS_TARGET_UNREACHABLE, /* not reachable, or not reachable yet */
	KBS_TARGET_PROBING,     /* what it holds is being read */
	KBS_TARGET_POPULATING,
	KBS_TARGET_IN_SYNC, /* changes may be under way */
	KBS_TARGET_REFUSED, /* it does not accept our key, or what we send: slow retry, a person
			       is needed */
};

struct kbs_target_status {
	const char *name; /* all borrowed until the next call that changes anything */
	enum kbs_target_state state;
	const char *error; /* of its last request; NULL: none */
	const char *text;  /* a sentence of its controller; NULL: none */
};

void kbs_sync_target_add(struct kbs_sync *s, const char *target);
void kbs_sync_target_remove(struct kbs_sync *s, const char *target);
/* Sets the status of a target; error and text are copied and may be NULL. */
void kbs_sync_set_status(struct kbs_sync *s, const char *target, enum kbs_target_state state,
	const char *error, const char *text);
/* The i-th target, from 0; false: there are no more. */
bool kbs_sync_target(const struct kbs_sync *s, unsigned i, struct kbs_target_status *out);
/* The i-th target has not confirmed what is desired of this name. */
bool kbs_sync_target_differs(
	const struct kbs_sync *s, unsigned i, enum kbs_kind kind, const char *name);
/* The worst over all targets; WAITING when there is none. PROBING: all others are in sync, and what
 * was reported before a restart may still be true. */
enum kbs_target_state kbs_sync_state(const struct kbs_sync *s);
/* The target answered that it holds this value under the name (sha256 NULL: nothing). */
void kbs_sync_confirm(struct kbs_sync *s, const char *target, enum kbs_kind kind, const char *name,
	const uint8_t sha256[SHA256_LEN]);
/* What the target holds under this name is unknown until the next confirmation: it is about to
 * change, or is not what it confirmed. */
void kbs_sync_set_unknown(
	struct kbs_sync *s, const char *target, enum kbs_kind kind, const char *name);

#endif
