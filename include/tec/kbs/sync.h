/* SPDX-License-Identifier: MIT */
/*
 * What every administered Trustee shall hold, and what each has confirmed. Controllers declare and
 * ask; they are woken when an answer changes. Nothing here talks to a Trustee: kbs/push does for
 * each target (or, with delivery by volumes, ctl/cluster), and confirms what it was answered. What
 * is said to people about it is made of these values in ctl/trustee.
 *
 * A declared value is its holder (a compact object, referenced) plus a render function, so no
 * second copy of a key is kept; the holder also is what a lost Secret is restored from. Values are
 * compared by SHA-256.
 */
#ifndef TEC_KBS_SYNC_H
#define TEC_KBS_SYNC_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/secret.h"
#include "tec/kobj/meta.h"

enum kbs_sort { KBS_RESOURCE, KBS_REFVALUE }; /* a resource path; a reference value name */

/* The value's bytes; the caller frees. Depends on holder only. */
typedef struct secret *(*kbs_render_fn)(const struct kobj *holder);

/* The state of one name over all targets together. */
enum kbs_far {
	KBS_FAR_NONE,    /* no Trustee is administered: nothing can be delivered, nothing has to be
			    revoked */
	KBS_FAR_UNKNOWN, /* at least one has not been asked yet since start; counts as present */
	KBS_FAR_PENDING, /* asked or waiting: at least one has not confirmed the wanted state */
	KBS_FAR_PRESENT, /* all confirmed the declared value */
	KBS_FAR_ABSENT,  /* all confirmed that they hold nothing under this name */
};

struct kbs_sync;
struct kbs_sync *kbs_sync_new(void);
void kbs_sync_free(struct kbs_sync *s);
/* Everything declared, revoked and confirmed is forgotten, keys leave memory: the leadership is
 * lost. Targets go too. */
void kbs_sync_reset(struct kbs_sync *s);
/* Called when the far state of a name may have changed. name NULL: of all names. Several may
 * listen, as long as s lives. Also called from inside declare and revoke, when these changed
 * something; a listener may forget, and must not declare or revoke. */
void kbs_sync_listen(
	struct kbs_sync *s, void (*fn)(void *arg, enum kbs_sort sort, const char *name), void *arg);

/* ---- what is wanted */

/* True when this changed what is wanted. holder is referenced. */
bool kbs_sync_declare(struct kbs_sync *s, enum kbs_sort sort, const char *name,
	const struct kobj *holder, kbs_render_fn render);
bool kbs_sync_revoke(struct kbs_sync *s, enum kbs_sort sort, const char *name);
/* Confirmed absent, and no object asks for it any more. */
void kbs_sync_forget(struct kbs_sync *s, enum kbs_sort sort, const char *name);
/* The policies every target shall have (static texts), and whether identities are sent one by one
 * or as the Rust operator's one array trusted_aks. A change makes every push populate again.
 * Targets start without policies: nothing is sent before the first call. */
void kbs_sync_policies(
	struct kbs_sync *s, const char *attestation, const char *resource, bool shared);

enum kbs_far kbs_sync_far(const struct kbs_sync *s, enum kbs_sort sort, const char *name);
/* The holder declared for a name, borrowed; NULL: not declared or revoked. */
const struct kobj *kbs_sync_holder(const struct kbs_sync *s, enum kbs_sort sort, const char *name);
/* A tombstone is there: revoked, and not forgotten yet. */
bool kbs_sync_is_revoked(const struct kbs_sync *s, enum kbs_sort sort, const char *name);
/* SHA-256 of the value declared for a name; false: not declared or revoked. */
bool kbs_sync_wanted(
	const struct kbs_sync *s, enum kbs_sort sort, const char *name, uint8_t sha256[SHA256_LEN]);
/* Every name of a sort, declared or revoked, in no order. Names are copied first: fn may confirm,
 * and who is told of that may forget. */
void kbs_sync_names(const struct kbs_sync *s, enum kbs_sort sort,
	void (*fn)(void *arg, const char *name), void *arg);
/* Counts for status: declared names, names confirmed everywhere, tombstones waiting. */
void kbs_sync_counts(
	const struct kbs_sync *s, size_t *declared, size_t *confirmed, size_t *revoking);

/* ---- targets, by name (the address shown to people) */

enum kbs_target_state {
	KBS_TARGET_WAITING, /* not reachable, or not reachable yet */
	KBS_TARGET_ASKING,  /* what it holds; nothing stands against it */
	KBS_TARGET_POPULATING,
	KBS_TARGET_IN_SYNC, /* changes may be under way */
	KBS_TARGET_REFUSED, /* it does not take our key, or what we send: slow retry, a person is
			       needed */
};

struct kbs_target_status {
	const char *name; /* all borrowed until the next call that changes anything */
	enum kbs_target_state state;
	const char *error; /* of its last request; NULL: none */
	const char *text;  /* a sentence of who controls it; NULL: none */
};

void kbs_sync_target_add(struct kbs_sync *s, const char *target);
void kbs_sync_target_remove(struct kbs_sync *s, const char *target);
/* How a target is doing; error and text are copied and may be NULL. */
void kbs_sync_target_says(struct kbs_sync *s, const char *target, enum kbs_target_state state,
	const char *error, const char *text);
/* The i-th target, from 0; false: there are no more. */
bool kbs_sync_target(const struct kbs_sync *s, unsigned i, struct kbs_target_status *out);
/* It has not confirmed what is wanted of this name. */
bool kbs_sync_target_lacks(
	const struct kbs_sync *s, unsigned i, enum kbs_sort sort, const char *name);
/* The worst over all targets; WAITING when there is none. ASKING: all others are in step, and what
 * was told before a restart may still be so. */
enum kbs_target_state kbs_sync_state(const struct kbs_sync *s);
/* For a target's connection: the target answered that it holds this value under the name (sha256
 * NULL: nothing). */
void kbs_sync_confirm(struct kbs_sync *s, const char *target, enum kbs_sort sort, const char *name,
	const uint8_t sha256[SHA256_LEN]);
/* What the target holds under this name is not known before the next confirmation: it is about to
 * change, or is not what it confirmed. */
void kbs_sync_doubt(struct kbs_sync *s, const char *target, enum kbs_sort sort, const char *name);

#endif
