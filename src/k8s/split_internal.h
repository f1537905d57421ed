/* SPDX-License-Identifier: MIT */
/* Shared by the scanner (split.c) and the text of an item (split_item.c). */
#ifndef TEC_SRC_K8S_SPLIT_INTERNAL_H
#define TEC_SRC_K8S_SPLIT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tec/k8s/split.h"

#define SPLIT_DEPTH_MAX 64

enum split_node {
	SPLIT_NODE_OTHER,
	SPLIT_NODE_ROOT,
	SPLIT_NODE_LIST_META,
	SPLIT_NODE_ITEMS,
	SPLIT_NODE_LINE,
	SPLIT_NODE_ITEM,
	SPLIT_NODE_ITEM_META,
	SPLIT_NODE_OWNERS,
	SPLIT_NODE_LABELS, /* this and the following ones: maps that are cut */
	SPLIT_NODE_ANNOTATIONS,
	SPLIT_NODE_DATA,
	SPLIT_NODE_SPEC,
	SPLIT_NODE_STATUS,
	SPLIT_NODE_OWNER
};

/* A short string that is recorded while it passes. */
struct split_note {
	char *data; /* owned; NULL until the first use */
	size_t len, cap;
	bool bad; /* escaped or too long */
};

struct k8s_split {
	k8s_split_fn fn;
	void *arg;
	enum { SPLIT_LIST, SPLIT_WATCH, SPLIT_OBJECT } mode;
	bool secret, failed;
	bool in_string, escape, expect_key, done, items_seen, items_value;
	bool capture, skip;
	bool over;        /* the item is too large: nothing more of it is stored */
	bool one_cut;     /* one member of the map being read was already kept as null */
	size_t member_at; /* offset in item of the member being read, including its comma */
	const struct kobj_keep *keep; /* static; NULL: everything */
	unsigned depth, skip_depth;
	uint8_t node[SPLIT_DEPTH_MAX + 1];
	bool is_object[SPLIT_DEPTH_MAX + 1];
	char *item; /* owned */
	size_t item_len, item_cap, raw_len;
	struct split_note key, rv, cont, *noting; /* data owned */
	bool bounded; /* the value cut out is the uid of an owner, which is put back */
	struct split_note owner_uid;
	struct split_note type, item_name, item_uid, item_rv; /* of the item being read */
	bool deleting;                                        /* the same */
};

/* Compare the name of the current member, as written. */
static inline bool split_key_is(const struct k8s_split *s, const char *name)
{
	size_t len = strlen(name);

	return !s->key.bad && s->key.len == len && memcmp(s->key.data, name, len) == 0;
}

/*
 * Functions of split_item.c, called while an item is captured. *run: start of the bytes of it that
 * are not copied yet, NULL: nothing to copy. The caller checks s->skip first, for speed: it calls
 * cut() while it is false, resume() while it is true.
 */
void split_item_release(struct k8s_split *s);
void split_item_add(struct k8s_split *s, const char *data, size_t len);
/* p at the colon: the value after it may be one that is not stored; then *run is NULL. */
void split_item_cut(struct k8s_split *s, const char *p, const char **run);
/* p at the comma of a map that may be cut. */
void split_item_member(struct k8s_split *s, const char *p, const char **run);
/* Tell whether the value that was cut out has ended here. */
bool split_item_resume(struct k8s_split *s);
/* p at the bracket that ends the item: emit it. */
int split_item_end(
	struct k8s_split *s, const char *p, const char **run, struct err *err) MUST_CHECK;

#endif
