/* SPDX-License-Identifier: MIT */
/*
 * Split the answer to a list into its items, and a watch stream into its lines, in bounded memory
 * and wherever reads end. On the way, metadata.managedFields is replaced by null (it is the larger
 * half of most objects) unless the kind keeps it, and members that nobody reads are cut out of spec, status and the maps to
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
 * stop. item NULL: the item is too large, and only what k8s_split_item() returns is known
 * of it. */
typedef int (*k8s_split_fn)(void *arg, const char *item, size_t len, struct err *err);

enum k8s_split_mode {
	K8S_SPLIT_LIST,   /* elements of the top-level "items" */
	K8S_SPLIT_WATCH,  /* whole lines: {"type":...,"object":{...}} */
	K8S_SPLIT_OBJECT, /* one object: the answer to a call */
};
/* keep: which members to keep; static; NULL: everything. secret: items contain key material, wipe
 * their text after fn has returned. */
struct k8s_split *k8s_split_new(enum k8s_split_mode mode, const struct kobj_keep *keep, bool secret,
	k8s_split_fn fn, void *arg);
void k8s_split_free(struct k8s_split *s);
int k8s_split_feed(struct k8s_split *s, const char *data, size_t len, struct err *err) MUST_CHECK;
/* Check at the end of the body that it is balanced, and that a list has
 * metadata.resourceVersion. */
int k8s_split_end(struct k8s_split *s, struct err *err) MUST_CHECK;
/* List only, after end: metadata.resourceVersion and metadata.continue ("" if none). Borrowed. */
const char *k8s_split_rv(const struct k8s_split *s);
const char *k8s_split_continue(const struct k8s_split *s);
/*
 * For use while fn runs: values of this item that were seen, "" when absent or not plain text. They
 * suffice to see, before parsing, that an event brings nothing new, and to identify an item that is
 * too large. The strings are borrowed.
 */
struct k8s_split_item {
	const char *type;            /* of the line */
	const char *name, *uid, *rv; /* of metadata: rv is resourceVersion */
	bool deleting;               /* has a deletionTimestamp */
};
struct k8s_split_item k8s_split_item(const struct k8s_split *s);

#endif
