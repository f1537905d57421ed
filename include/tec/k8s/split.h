/* SPDX-License-Identifier: MIT */
/*
 * Cuts a list answer into its items and a watch stream into its lines, for any boundary of reads,
 * in bounded memory. metadata.managedFields is replaced by null on the way (it is the larger half
 * of most objects). Pure; a fuzz target. (c-stack.md C) Limits: depth 64, 2 MiB an item, 4 MiB a
 * line.
 */
#ifndef TEC_K8S_SPLIT_H
#define TEC_K8S_SPLIT_H

#include <stddef.h>

#include "tec/base/err.h"

struct k8s_split;
/* One item's complete JSON text; return -1 with err set to stop. Borrowed for the call. */
typedef int (*k8s_split_fn)(void *arg, const char *item, size_t len, struct err *err);

struct k8s_split *k8s_split_list_new(
	k8s_split_fn fn, void *arg); /* elements of the top-level "items" */
struct k8s_split *k8s_split_watch_new(
	k8s_split_fn fn, void *arg); /* whole lines: {"type":...,"object":{...}} */
struct k8s_split *k8s_split_object_new(
	k8s_split_fn fn, void *arg); /* one object: the answer to a call */
void k8s_split_free(struct k8s_split *s);
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
 * line's "type", and metadata.name and metadata.resourceVersion of the item. Enough to see that an
 * event tells nothing new, before it is parsed.
 */
const char *k8s_split_type(const struct k8s_split *s);
const char *k8s_split_item_name(const struct k8s_split *s);
const char *k8s_split_item_rv(const struct k8s_split *s);

#endif
