/* SPDX-License-Identifier: MIT */
/*
 * The text of the item being read, in a bounded buffer that is wiped when it may contain a key, and
 * freed when it grew large. Members that nobody reads are cut out while they pass; of each map that
 * is cut, the first such member stays, with the value null.
 */
#include "config.h"

#include <string.h>

#include "split_internal.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

#define ITEM_MAX (2u << 20)  /* of the kept text; not more than json_limits_api parses */
#define KEEP_MAX (32u << 10) /* a larger buffer is freed after the item */

void split_item_release(struct k8s_split *s)
{
	if (s->secret && s->item)
		secret_wipe(s->item, s->item_cap);
	free(s->item);
	s->item = NULL;
	s->item_len = s->item_cap = 0;
}

/* Append to the item. Grows by copying, since realloc would leave the old bytes, possibly a key, in
 * freed memory. */
void split_item_add(struct k8s_split *s, const char *data, size_t len)
{
	if (s->over)
		return;
	if (len > ITEM_MAX - s->item_len) {
		split_item_release(s);
		s->over = true;
		return;
	}
	if (s->item_cap - s->item_len < len + 1) {
		size_t cap = s->item_cap ? s->item_cap : 4096, used = s->item_len;
		char *grown;

		while (cap - used < len + 1)
			cap *= 2;
		grown = xmalloc(cap);
		if (used)
			memcpy(grown, s->item, used);
		split_item_release(s);
		s->item = grown;
		s->item_len = used;
		s->item_cap = cap;
	}
	memcpy(s->item + s->item_len, data, len);
	s->item_len += len;
}

/* Hand the item to the caller and reset all notes of it. A text that was too large is passed as
 * NULL. */
static int emit(struct k8s_split *s, struct err *err)
{
	int rc;

	s->capture = false;
	s->raw_len = 0;
	if (!s->over)
		s->item[s->item_len] = '\0';
	rc = s->fn(s->arg, s->item, s->item_len, err);
	if (s->item_cap > KEEP_MAX)
		split_item_release(s);
	else if (s->secret && s->item)
		secret_wipe(s->item, s->item_cap);
	s->item_len = 0;
	s->type.len = s->item_name.len = s->item_uid.len = s->item_rv.len = 0;
	s->deleting = s->over = false;
	return rc;
}

/* Return the list of members kept of the map being read; NULL: the map is not cut. */
static const char *const *kept_here(const struct k8s_split *s)
{
	switch ((enum split_node)s->node[s->depth]) {
	case SPLIT_NODE_LABELS:
		return s->keep->labels;
	case SPLIT_NODE_ANNOTATIONS:
		return s->keep->annotations;
	case SPLIT_NODE_DATA:
		return s->keep->data;
	case SPLIT_NODE_SPEC:
		return s->keep->spec;
	case SPLIT_NODE_STATUS:
		return s->keep->status;
	case SPLIT_NODE_OWNER:
		return s->keep->owners;
	default:
		return NULL;
	}
}

/* Decide at a colon whether the value is stored; if not, run is NULL afterwards. All bytes go
 * through split_item_add(), so that the size limit does not depend on where reads end. */
void split_item_cut(struct k8s_split *s, const char *p, const char **run)
{
	const char *const *kept = kept_here(s);
	bool fields = s->node[s->depth] == SPLIT_NODE_ITEM_META && split_key_is(s, "managedFields");

	s->bounded = s->node[s->depth] == SPLIT_NODE_OWNER && split_key_is(s, "uid");
	s->owner_uid.len = 0;
	if (!fields && !s->bounded &&
		(!kept || (!s->key.bad && kobj_keeps(kept, s->key.data, s->key.len))))
		return;
	split_item_add(s, *run, (size_t)(p + 1 - *run));
	*run = NULL;
	s->skip = true;
	s->skip_depth = s->depth;
	if (s->bounded) /* its bytes are added when it has ended */
		return;
	if (fields || !s->one_cut)
		split_item_add(s, "null", 4);
	else if (!s->over)
		s->item_len = s->member_at;
	s->one_cut |= !fields;
}

/* A member of a map that is cut begins here: record the position, so that the whole member can be
 * removed. */
void split_item_member(struct k8s_split *s, const char *p, const char **run)
{
	if (s->skip || !s->capture || !kept_here(s))
		return;
	split_item_add(s, *run, (size_t)(p - *run));
	*run = p;
	s->member_at = s->item_len;
}

/* Check whether the value that is cut out ended here: what follows belongs to the enclosing object.
 * An owner's uid was limited in length and is put back now. */
bool split_item_resume(struct k8s_split *s)
{
	if (s->depth != s->skip_depth)
		return false;
	s->skip = false;
	if (s->bounded && (s->owner_uid.bad || !s->owner_uid.len)) {
		split_item_add(s, "null", 4);
	} else if (s->bounded) {
		split_item_add(s, "\"", 1);
		split_item_add(s, s->owner_uid.data, s->owner_uid.len);
		split_item_add(s, "\"", 1);
	}
	s->bounded = false;
	return true;
}

int split_item_end(struct k8s_split *s, const char *p, const char **run, struct err *err)
{
	split_item_add(s, *run, (size_t)(p + 1 - *run));
	*run = NULL;
	return emit(s, err);
}
