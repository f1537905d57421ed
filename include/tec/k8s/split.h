/* SPDX-License-Identifier: MIT */
/*
 * Cuts a list answer into its items and a watch stream into its lines, for any boundary of reads,
 * in bounded memory. On the way metadata.managedFields is replaced by null (it is the larger half
 * of most objects), and members that are not read are cut out of the maps that every client may add
 * to, and of spec and status (kobj_keep): the first such member stays with the value null, so that
 * it can be seen that there is one, the others go. Pure; a fuzz target.
 *
 * Limits: depth 64; 2 MiB of what is kept of an item, 64 MiB as it comes. An item above the first
 * is read to its end without being stored and reported as one that is too large; one above the
 * second ends the text with an error.
 */
#ifndef TEC_K8S_SPLIT_H
#define TEC_K8S_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"
#include "tec/kobj/gvk.h"

struct k8s_split;
/* One item's complete JSON text; return -1 with err set to stop. Borrowed for the call. item NULL:
 * it is too large, and only what k8s_split_item_*() return is known of it. */
typedef int (*k8s_split_fn)(void *arg, const char *item, size_t len, struct err *err);

struct k8s_split *k8s_split_list_new(
	k8s_split_fn fn, void *arg); /* elements of the top-level "items" */
struct k8s_split *k8s_split_watch_new(
	k8s_split_fn fn, void *arg); /* whole lines: {"type":...,"object":{...}} */
struct k8s_split *k8s_split_object_new(
	k8s_split_fn fn, void *arg); /* one object: the answer to a call */
void k8s_split_free(struct k8s_split *s);
/* What to keep; static; NULL: everything. Call before the first feed. */
void k8s_split_set_keep(struct k8s_split *s, const struct kobj_keep *keep);
/* Items hold key material: their text is wiped once fn has returned. Call before the first feed. */
void k8s_split_set_secret(struct k8s_split *s);
int k8s_split_feed(struct k8s_split *s, const char *data, size_t len, struct err *err) MUST_CHECK;
/* At the end of the body: balanced, and for a list with metadata.resourceVersion. */
int k8s_split_end(struct k8s_split *s, struct err *err) MUST_CHECK;
/* List only, after end: metadata.resourceVersion and metadata.continue ("" if none). Borrowed. */
const char *k8s_split_rv(const struct k8s_split *s);
const char *k8s_split_continue(const struct k8s_split *s);
/*
 * While fn runs: what passed by of this item, "" when it was not there or not plain text: the
 * line's "type", and metadata.name, uid and resourceVersion of the item. Enough to see that an
 * event brings nothing new, before it is parsed, and to know which one is too large.
 */
const char *k8s_split_type(const struct k8s_split *s);
const char *k8s_split_item_name(const struct k8s_split *s);
const char *k8s_split_item_uid(const struct k8s_split *s);
const char *k8s_split_item_rv(const struct k8s_split *s);
bool k8s_split_item_deleting(const struct k8s_split *s); /* it has a deletionTimestamp */

#endif
