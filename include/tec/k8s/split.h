/* SPDX-License-Identifier: MIT */
/*
 * Split the answer to a list into its items, and a watch stream into its lines, in bounded memory
 * and wherever reads end. On the way, metadata.managedFields is replaced by null (it is the larger
 * half of most objects), and members that nobody reads are cut out of spec, status and the maps to
 * which every client may add (kobj_keep). The first such member stays with the value null, to show
 * that there are some; the others are dropped. Pure; a fuzz target.
 *
 * Limits: depth 64; 2 MiB for what is kept of an item, 64 MiB for an item as received. An item
 * above the first limit is read to its end without being stored, and reported as too large; one
 * above the second limit ends the text with an error.
 */
#ifndef TEC_K8S_SPLIT_H
#define TEC_K8S_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"
#include "tec/kobj/gvk.h"

struct k8s_split;
/* Called with the complete JSON text of one item, borrowed for the call; return -1 with err set to
 * stop. item NULL: the item is too large, and only what k8s_split_item_*() return is known of
 * it. */
typedef int (*k8s_split_fn)(void *arg, const char *item, size_t len, struct err *err);

struct k8s_split *k8s_split_list_new(
	k8s_split_fn fn, void *arg); /* elements of the top-level "items" */
struct k8s_split *k8s_split_watch_new(
	k8s_split_fn fn, void *arg); /* whole lines: {"type":...,"object":{...}} */
struct k8s_split *k8s_split_object_new(
	k8s_split_fn fn, void *arg); /* one object: the answer to a call */
void k8s_split_free(struct k8s_split *s);
/* Set which members to keep; static; NULL: everything. Call before the first feed. */
void k8s_split_set_keep(struct k8s_split *s, const struct kobj_keep *keep);
/* Items contain key material: wipe their text after fn has returned. Call before the first feed. */
void k8s_split_set_secret(struct k8s_split *s);
int k8s_split_feed(struct k8s_split *s, const char *data, size_t len, struct err *err) MUST_CHECK;
/* Check at the end of the body that it is balanced, and that a list has
 * metadata.resourceVersion. */
int k8s_split_end(struct k8s_split *s, struct err *err) MUST_CHECK;
/* List only, after end: metadata.resourceVersion and metadata.continue ("" if none). Borrowed. */
const char *k8s_split_rv(const struct k8s_split *s);
const char *k8s_split_continue(const struct k8s_split *s);
/*
 * For use while fn runs: values of this item that were seen, "" when absent or not plain text: the
 * line's "type", and the item's metadata.name, uid and resourceVersion. They suffice to see, before
 * parsing, that an event brings nothing new, and to identify an item that is too large.
 */
const char *k8s_split_type(const struct k8s_split *s);
const char *k8s_split_item_name(const struct k8s_split *s);
const char *k8s_split_item_uid(const struct k8s_split *s);
const char *k8s_split_item_rv(const struct k8s_split *s);
bool k8s_split_item_deleting(const struct k8s_split *s); /* has a deletionTimestamp */

#endif
