/* SPDX-License-Identifier: MIT */
/*
 * One pass over the bytes, with a flag for strings, a stack of brackets, and the name of the
 * current member for the few objects that matter. The scanner only finds where an item begins and
 * ends: split_item.c decides what is kept of it, and json_parse() whether it is valid JSON. Bytes
 * of an item are copied in runs. Member names are compared as written: a name with escapes never
 * matches.
 */
#include "config.h"

#include "tec/k8s/split.h"

#include <string.h>

#include "split_internal.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

#define RAW_MAX    (64u << 20) /* as received: the limit for an item that never ends */
#define RV_MAX     128
#define NAME_LIMIT 256
#define KEY_LIMIT  328 /* prefix of 253, slash, name of 63 */
#define CONT_MAX   8192

enum { C_PLAIN, C_SPACE, C_QUOTE, C_OPEN, C_CLOSE, C_COLON, C_COMMA };
static const uint8_t class_of[256] = {
	[' '] = C_SPACE,
	['\t'] = C_SPACE,
	['\r'] = C_SPACE,
	['\n'] = C_SPACE,
	['"'] = C_QUOTE,
	['{'] = C_OPEN,
	['['] = C_OPEN,
	['}'] = C_CLOSE,
	[']'] = C_CLOSE,
	[':'] = C_COLON,
	[','] = C_COMMA,
};

static struct k8s_split *split_new(k8s_split_fn fn, void *arg, int mode)
{
	struct k8s_split *s = xcalloc(1, sizeof(*s));

	s->fn = fn;
	s->arg = arg;
	s->mode = mode;
	s->key.cap = KEY_LIMIT;
	s->rv.cap = RV_MAX;
	s->cont.cap = CONT_MAX;
	s->type.cap = 32;
	s->item_name.cap = NAME_LIMIT;
	s->item_uid.cap = s->owner_uid.cap = RV_MAX;
	s->item_rv.cap = RV_MAX;
	s->key.data = xmalloc(s->key.cap);
	return s;
}

struct k8s_split *k8s_split_list_new(k8s_split_fn fn, void *arg)
{
	return split_new(fn, arg, SPLIT_LIST);
}

struct k8s_split *k8s_split_watch_new(k8s_split_fn fn, void *arg)
{
	return split_new(fn, arg, SPLIT_WATCH);
}

struct k8s_split *k8s_split_object_new(k8s_split_fn fn, void *arg)
{
	return split_new(fn, arg, SPLIT_OBJECT);
}

void k8s_split_set_keep(struct k8s_split *s, const struct kobj_keep *keep)
{
	s->keep = keep;
}

void k8s_split_set_secret(struct k8s_split *s)
{
	s->secret = true;
}

void k8s_split_free(struct k8s_split *s)
{
	if (!s)
		return;
	split_item_release(s);
	free(s->key.data);
	free(s->rv.data);
	free(s->cont.data);
	free(s->type.data);
	free(s->item_name.data);
	free(s->item_uid.data);
	free(s->owner_uid.data);
	free(s->item_rv.data);
	free(s);
}

/* A malformed text is permanent for this list or stream: ERR_INVALID, the caller lists again. */
static int broken(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID, "%s", what);
}

/* Record the string that begins here. Buffers are allocated at the first use, since most streams
 * need few of them. */
static void note_start(struct k8s_split *s, struct split_note *n)
{
	if (!n->data)
		n->data = xmalloc(n->cap);
	n->len = 0;
	n->bad = false;
	s->noting = n;
}

/* A string that is too long is marked bad, so that a truncated name is never used. */
static void note_add(struct split_note *n, const char *data, size_t len)
{
	if (n->bad || len >= n->cap - n->len) {
		n->bad = true;
		return;
	}
	memcpy(n->data + n->len, data, len);
	n->len += len;
	n->data[n->len] = '\0';
}

/* Decide by the place in the tree whether the string that begins here is recorded: a member name,
 * or one of the few values that the caller may ask for. */
static int string_start(struct k8s_split *s, struct err *err)
{
	enum split_node node = (enum split_node)s->node[s->depth];

	s->in_string = true;
	s->noting = NULL;
	if (s->depth == 0 || node == SPLIT_NODE_ITEMS || s->items_value)
		return broken(err, s->depth ? "an element of items is not an object"
					    : "text outside of an object");
	if (s->skip && s->bounded && s->depth == s->skip_depth)
		note_start(s, &s->owner_uid);
	if (s->skip || node == SPLIT_NODE_OTHER)
		return 0;
	if (s->expect_key)
		note_start(s, &s->key);
	else if (node == SPLIT_NODE_LIST_META && split_key_is(s, "resourceVersion"))
		note_start(s, &s->rv);
	else if (node == SPLIT_NODE_LIST_META && split_key_is(s, "continue"))
		note_start(s, &s->cont);
	else if (node == SPLIT_NODE_LINE && split_key_is(s, "type"))
		note_start(s, &s->type);
	else if (node == SPLIT_NODE_ITEM_META && split_key_is(s, "name"))
		note_start(s, &s->item_name);
	else if (node == SPLIT_NODE_ITEM_META && split_key_is(s, "uid"))
		note_start(s, &s->item_uid);
	else if (node == SPLIT_NODE_ITEM_META && split_key_is(s, "resourceVersion"))
		note_start(s, &s->item_rv);
	else if (node == SPLIT_NODE_ITEM_META && split_key_is(s, "deletionTimestamp"))
		s->deleting = true;
	return 0;
}

/* Tell whether the object about to open, a member of an item or of its metadata, is one of the maps
 * that are cut. */
static enum split_node map_node(const struct k8s_split *s, bool in_metadata)
{
	if (!s->keep)
		return SPLIT_NODE_OTHER;
	if (in_metadata && s->keep->labels && split_key_is(s, "labels"))
		return SPLIT_NODE_LABELS;
	if (in_metadata && s->keep->annotations && split_key_is(s, "annotations"))
		return SPLIT_NODE_ANNOTATIONS;
	if (!in_metadata && s->keep->data &&
		(split_key_is(s, "data") || split_key_is(s, "binaryData") ||
			split_key_is(s, "stringData")))
		return SPLIT_NODE_DATA;
	if (!in_metadata && s->keep->spec && split_key_is(s, "spec"))
		return SPLIT_NODE_SPEC;
	if (!in_metadata && s->keep->status && split_key_is(s, "status"))
		return SPLIT_NODE_STATUS;
	return SPLIT_NODE_OTHER;
}

/* Classify the container about to open by its place in the tree. */
static enum split_node child_node(const struct k8s_split *s, bool object)
{
	switch ((enum split_node)s->node[s->depth]) {
	case SPLIT_NODE_ROOT:
		if (object)
			return split_key_is(s, "metadata") ? SPLIT_NODE_LIST_META
							   : SPLIT_NODE_OTHER;
		return split_key_is(s, "items") ? SPLIT_NODE_ITEMS : SPLIT_NODE_OTHER;
	case SPLIT_NODE_ITEMS:
		return SPLIT_NODE_ITEM;
	case SPLIT_NODE_LINE:
		return object && split_key_is(s, "object") ? SPLIT_NODE_ITEM : SPLIT_NODE_OTHER;
	case SPLIT_NODE_ITEM:
		if (object && split_key_is(s, "metadata"))
			return SPLIT_NODE_ITEM_META;
		return object ? map_node(s, false) : SPLIT_NODE_OTHER;
	case SPLIT_NODE_ITEM_META:
		if (!object)
			return s->keep && s->keep->owners && split_key_is(s, "ownerReferences")
				       ? SPLIT_NODE_OWNERS
				       : SPLIT_NODE_OTHER;
		return map_node(s, true);
	case SPLIT_NODE_OWNERS:
		return object ? SPLIT_NODE_OWNER : SPLIT_NODE_OTHER;
	case SPLIT_NODE_OTHER:
	case SPLIT_NODE_LIST_META:
	case SPLIT_NODE_LABELS:
	case SPLIT_NODE_ANNOTATIONS:
	case SPLIT_NODE_DATA:
	case SPLIT_NODE_SPEC:
	case SPLIT_NODE_STATUS:
	case SPLIT_NODE_OWNER:
		break;
	}
	return SPLIT_NODE_OTHER;
}

/* An item starts to be captured here: an element of items, or the outermost object of a watch line
 * or an answer. */
static int open_container(struct k8s_split *s, bool object, struct err *err)
{
	enum split_node node;

	if (s->depth == SPLIT_DEPTH_MAX)
		return broken(err, "nested too deeply");
	if (s->depth == 0 && (!object || s->done))
		return broken(err, "text outside of an object");
	if (s->items_value && object)
		return broken(err, "items is not an array");
	if (s->node[s->depth] == SPLIT_NODE_ITEMS && !object && s->depth)
		return broken(err, "an element of items is not an object");
	if (s->depth == 0)
		node = s->mode == SPLIT_WATCH    ? SPLIT_NODE_LINE
		       : s->mode == SPLIT_OBJECT ? SPLIT_NODE_ITEM
						 : SPLIT_NODE_ROOT;
	else
		node = s->skip ? SPLIT_NODE_OTHER : child_node(s, object);
	if (node == SPLIT_NODE_ITEMS && s->items_seen)
		return broken(err, "duplicate items");
	if (node == SPLIT_NODE_ITEMS)
		s->items_seen = true;
	s->items_value = false;
	s->depth++;
	s->node[s->depth] = (uint8_t)node;
	s->is_object[s->depth] = object;
	s->expect_key = object;
	if (node >= SPLIT_NODE_LABELS)
		s->one_cut = false;
	if (s->mode == SPLIT_LIST ? node == SPLIT_NODE_ITEM : s->depth == 1)
		s->capture = true;
	return 0;
}

/* Close a container. *ended: the closing bracket ends the captured item, which the caller must
 * emit. */
static int close_container(struct k8s_split *s, bool object, bool *ended, struct err *err)
{
	enum split_node node = (enum split_node)s->node[s->depth];

	if (s->depth == 0 || s->is_object[s->depth] != object)
		return broken(err, "brackets do not match");
	s->depth--;
	s->expect_key = false;
	*ended = s->capture && (s->mode == SPLIT_LIST ? node == SPLIT_NODE_ITEM : s->depth == 0);
	if (s->depth == 0 && s->mode != SPLIT_WATCH)
		s->done = true;
	return 0;
}

/* Check a plain byte outside of strings and items: there, every byte must make sense. items may be
 * null, as Go writes an empty list. */
static int plain(struct k8s_split *s, char c, struct err *err)
{
	if (s->depth == 0)
		return broken(err, "text outside of an object");
	if (s->node[s->depth] == SPLIT_NODE_ITEMS)
		return broken(err, "an element of items is not an object");
	if (s->items_value) {
		if (c != 'n')
			return broken(err, "items is not an array");
		s->items_value = false;
		s->items_seen = true;
	}
	return 0;
}

/* Read the inside of a string. Returns the position after the closing quote, or end. */
static const char *string_bytes(struct k8s_split *s, const char *p, const char *end)
{
	while (p < end) {
		const char *from = p;

		if (s->escape) {
			s->escape = false;
			p++;
			continue;
		}
		p = json_plain_run(p, end);
		if (s->noting)
			note_add(s->noting, from, (size_t)(p - from));
		if (p == end)
			break;
		if (*p == '"') {
			s->in_string = false;
			s->noting = NULL;
			return p + 1;
		}
		s->escape = *p++ == '\\';
		if (s->noting) /* a control byte is reported by the parser of the item */
			s->noting->bad = true;
	}
	return p;
}

/* After the top-level "items", only an array or null may follow. */
static int colon(struct k8s_split *s, struct err *err)
{
	if (s->depth == 0)
		return broken(err, "text outside of an object");
	s->expect_key = false;
	if (s->node[s->depth] == SPLIT_NODE_ROOT && split_key_is(s, "items"))
		s->items_value = true;
	return 0;
}

/* Handle one byte outside of strings. *run: start of the bytes of the item that are not copied yet,
 * NULL: nothing to copy. */
static inline int structural(struct k8s_split *s, const char *p, const char **run, struct err *err)
{
	bool ended = false;

	switch (class_of[(unsigned char)*p]) {
	case C_SPACE:
		return 0;
	case C_PLAIN:
		return s->capture ? 0 : plain(s, *p, err);
	case C_QUOTE:
		return string_start(s, err);
	case C_OPEN:
		if (open_container(s, *p == '{', err) < 0)
			return -1;
		if (s->capture && !s->skip && !*run)
			*run = p;
		return 0;
	case C_CLOSE:
		if (s->skip && split_item_resume(s))
			*run = p;
		if (close_container(s, *p == '}', &ended, err) < 0)
			return -1;
		return ended ? split_item_end(s, p, run, err) : 0;
	case C_COLON:
		if (colon(s, err) < 0)
			return -1;
		if (s->capture && !s->skip)
			split_item_cut(s, p, run);
		return 0;
	default: /* C_COMMA */
		if (s->depth == 0)
			return broken(err, "text outside of an object");
		if (s->skip && split_item_resume(s))
			*run = p;
		if (s->node[s->depth] >= SPLIT_NODE_LABELS)
			split_item_member(s, p, run);
		s->expect_key = s->is_object[s->depth];
		s->items_value = false;
		return 0;
	}
}

/* Copy the rest of the run at the end, because the caller's buffer ends here. */
static int feed(struct k8s_split *s, const char *data, size_t len, struct err *err)
{
	const char *p = data, *end = data + len;
	const char *run = s->capture && !s->skip ? p : NULL;

	while (p < end) {
		if (s->in_string)
			p = string_bytes(s, p, end);
		else if (structural(s, p++, &run, err) < 0)
			return -1;
	}
	if (run)
		split_item_add(s, run, (size_t)(end - run));
	return 0;
}

/* A split that has failed must not be fed again: its position in the text is lost. */
int k8s_split_feed(struct k8s_split *s, const char *data, size_t len, struct err *err)
{
	if (s->failed)
		return err_set(err, ERR_BUG, "fed after an error");
	/* in steps, so that the limit holds for any size of a read */
	while (len) {
		size_t n = len < 65536 ? len : 65536;

		if (s->capture && (s->raw_len += n) > RAW_MAX + 65536) {
			s->failed = true;
			return err_set(
				err, ERR_INVALID, "an item is larger than %u bytes", RAW_MAX);
		}
		if (feed(s, data, n, err) < 0) {
			s->failed = true;
			return -1;
		}
		data += n;
		len -= n;
	}
	return 0;
}

/* Check a note that is sent back to the server in a URL. */
static bool note_sane(const struct split_note *n)
{
	for (size_t i = 0; i < n->len; i++)
		if (n->data[i] <= ' ' || n->data[i] > '~')
			return false;
	return !n->bad;
}

/* A truncated text is transient, as a broken connection is; a complete text without the required
 * members is invalid. */
int k8s_split_end(struct k8s_split *s, struct err *err)
{
	if (s->failed)
		return err_set(err, ERR_BUG, "ended after an error");
	if (s->depth || s->in_string || (s->mode != SPLIT_WATCH && !s->done))
		return err_set(err, ERR_TRANSIENT, "the text is truncated");
	if (s->mode != SPLIT_LIST)
		return 0;
	if (!s->items_seen)
		return broken(err, "the list has no items");
	if (!note_sane(&s->rv) || s->rv.len == 0)
		return broken(err, "the list has no metadata.resourceVersion");
	if (!note_sane(&s->cont))
		return broken(err, "metadata.continue is malformed");
	return 0;
}

const char *k8s_split_rv(const struct k8s_split *s)
{
	return s->rv.len ? s->rv.data : "";
}

const char *k8s_split_continue(const struct k8s_split *s)
{
	return s->cont.len ? s->cont.data : "";
}

/* A bad note (escaped or too long) counts as absent. */
static const char *noted(const struct split_note *n)
{
	return n->len && !n->bad ? n->data : "";
}

const char *k8s_split_type(const struct k8s_split *s)
{
	return noted(&s->type);
}

const char *k8s_split_item_name(const struct k8s_split *s)
{
	return noted(&s->item_name);
}

const char *k8s_split_item_uid(const struct k8s_split *s)
{
	return noted(&s->item_uid);
}

bool k8s_split_item_deleting(const struct k8s_split *s)
{
	return s->deleting;
}

const char *k8s_split_item_rv(const struct k8s_split *s)
{
	return noted(&s->item_rv);
}
