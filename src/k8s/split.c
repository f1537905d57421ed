/* SPDX-License-Identifier: MIT */
/*
 * One pass over the bytes: a string flag, a bracket stack, and for the few objects that matter the
 * name of the current member. It only finds where an item begins and ends and cuts out what is not
 * read; whether the item is valid JSON is json_parse()'s business. Bytes of an item are copied in
 * runs. Member names are compared as written: a name with escapes is not one we look for.
 */
#include "config.h"

#include "tec/k8s/split.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/jsonread.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

#define DEPTH_MAX  64
#define ITEM_MAX   (2u << 20)  /* what is kept; not more than json_limits_api parses */
#define RAW_MAX    (64u << 20) /* as it comes: an end to what never ends */
#define KEEP_MAX   (32u << 10) /* a larger item buffer is given back */
#define RV_MAX     128
#define NAME_LIMIT 256
#define KEY_LIMIT  328 /* prefix of 253, slash, name of 63 */
#define CONT_MAX   8192

enum node {
	NODE_OTHER,
	NODE_ROOT,
	NODE_LIST_META,
	NODE_ITEMS,
	NODE_LINE,
	NODE_ITEM,
	NODE_ITEM_META,
	NODE_OWNERS,
	NODE_LABELS, /* this and what follows: maps that are cut */
	NODE_ANNOTATIONS,
	NODE_DATA,
	NODE_OWNER
};

/* A short string being noted while it passes. */
struct note {
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
	bool over;        /* the item is too large: nothing of it is stored any more */
	bool one_cut;     /* of the map being read one member was left as null already */
	size_t member_at; /* where in item the member being read begins, with its comma */
	const struct kobj_keep *keep; /* static; NULL: everything */
	unsigned depth, skip_depth;
	uint8_t node[DEPTH_MAX + 1];
	bool is_object[DEPTH_MAX + 1];
	char *item; /* owned */
	size_t item_len, item_cap, raw_len;
	struct note key, rv, cont, *noting; /* data owned */
	bool bounded; /* what is cut out is a uid of an owner, which is put back */
	struct note owner_uid;
	struct note type, item_name, item_uid, item_rv; /* of the item being read */
	bool deleting;                                  /* the same */
};

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

static void item_release(struct k8s_split *s)
{
	if (s->secret && s->item)
		secret_wipe(s->item, s->item_cap);
	free(s->item);
	s->item = NULL;
	s->item_len = s->item_cap = 0;
}

void k8s_split_free(struct k8s_split *s)
{
	if (!s)
		return;
	item_release(s);
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

/* realloc would leave the old bytes in freed memory. */
static void item_add(struct k8s_split *s, const char *data, size_t len)
{
	if (s->over)
		return;
	if (len > ITEM_MAX - s->item_len) {
		item_release(s);
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
		item_release(s);
		s->item = grown;
		s->item_len = used;
		s->item_cap = cap;
	}
	memcpy(s->item + s->item_len, data, len);
	s->item_len += len;
}

static int broken(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID, "%s", what);
}

static int emit(struct k8s_split *s, struct err *err)
{
	int rc;

	s->capture = false;
	s->raw_len = 0;
	if (!s->over)
		s->item[s->item_len] = '\0';
	rc = s->fn(s->arg, s->item, s->item_len, err);
	if (s->item_cap > KEEP_MAX)
		item_release(s);
	else if (s->secret && s->item)
		secret_wipe(s->item, s->item_cap);
	s->item_len = 0;
	s->type.len = s->item_name.len = s->item_uid.len = s->item_rv.len = 0;
	s->deleting = s->over = false;
	return rc;
}

static bool key_is(const struct k8s_split *s, const char *name)
{
	size_t len = strlen(name);

	return !s->key.bad && s->key.len == len && memcmp(s->key.data, name, len) == 0;
}

static void note_start(struct k8s_split *s, struct note *n)
{
	if (!n->data)
		n->data = xmalloc(n->cap);
	n->len = 0;
	n->bad = false;
	s->noting = n;
}

static void note_add(struct note *n, const char *data, size_t len)
{
	if (n->bad || len >= n->cap - n->len) {
		n->bad = true;
		return;
	}
	memcpy(n->data + n->len, data, len);
	n->len += len;
	n->data[n->len] = '\0';
}

static int string_start(struct k8s_split *s, struct err *err)
{
	enum node node = (enum node)s->node[s->depth];

	s->in_string = true;
	s->noting = NULL;
	if (s->depth == 0 || node == NODE_ITEMS || s->items_value)
		return broken(err, s->depth ? "an element of items is not an object"
					    : "text outside of an object");
	if (s->skip && s->bounded && s->depth == s->skip_depth)
		note_start(s, &s->owner_uid);
	if (s->skip || node == NODE_OTHER)
		return 0;
	if (s->expect_key)
		note_start(s, &s->key);
	else if (node == NODE_LIST_META && key_is(s, "resourceVersion"))
		note_start(s, &s->rv);
	else if (node == NODE_LIST_META && key_is(s, "continue"))
		note_start(s, &s->cont);
	else if (node == NODE_LINE && key_is(s, "type"))
		note_start(s, &s->type);
	else if (node == NODE_ITEM_META && key_is(s, "name"))
		note_start(s, &s->item_name);
	else if (node == NODE_ITEM_META && key_is(s, "uid"))
		note_start(s, &s->item_uid);
	else if (node == NODE_ITEM_META && key_is(s, "resourceVersion"))
		note_start(s, &s->item_rv);
	else if (node == NODE_ITEM_META && key_is(s, "deletionTimestamp"))
		s->deleting = true;
	return 0;
}

/* Of an item or of its metadata: is the object about to open a map that is cut? */
static enum node map_node(const struct k8s_split *s, bool in_metadata)
{
	if (!s->keep)
		return NODE_OTHER;
	if (in_metadata && s->keep->labels && key_is(s, "labels"))
		return NODE_LABELS;
	if (in_metadata && s->keep->annotations && key_is(s, "annotations"))
		return NODE_ANNOTATIONS;
	if (!in_metadata && s->keep->data &&
		(key_is(s, "data") || key_is(s, "binaryData") || key_is(s, "stringData")))
		return NODE_DATA;
	return NODE_OTHER;
}

/* What the container about to open is, by its place. */
static enum node child_node(const struct k8s_split *s, bool object)
{
	switch ((enum node)s->node[s->depth]) {
	case NODE_ROOT:
		if (object)
			return key_is(s, "metadata") ? NODE_LIST_META : NODE_OTHER;
		return key_is(s, "items") ? NODE_ITEMS : NODE_OTHER;
	case NODE_ITEMS:
		return NODE_ITEM;
	case NODE_LINE:
		return object && key_is(s, "object") ? NODE_ITEM : NODE_OTHER;
	case NODE_ITEM:
		if (object && key_is(s, "metadata"))
			return NODE_ITEM_META;
		return object ? map_node(s, false) : NODE_OTHER;
	case NODE_ITEM_META:
		if (!object)
			return s->keep && s->keep->owners && key_is(s, "ownerReferences")
				       ? NODE_OWNERS
				       : NODE_OTHER;
		return map_node(s, true);
	case NODE_OWNERS:
		return object ? NODE_OWNER : NODE_OTHER;
	case NODE_OTHER:
	case NODE_LIST_META:
	case NODE_LABELS:
	case NODE_ANNOTATIONS:
	case NODE_DATA:
	case NODE_OWNER:
		break;
	}
	return NODE_OTHER;
}

static int open_container(struct k8s_split *s, bool object, struct err *err)
{
	enum node node;

	if (s->depth == DEPTH_MAX)
		return broken(err, "nested too deeply");
	if (s->depth == 0 && (!object || s->done))
		return broken(err, "text outside of an object");
	if (s->items_value && object)
		return broken(err, "items is not an array");
	if (s->node[s->depth] == NODE_ITEMS && !object && s->depth)
		return broken(err, "an element of items is not an object");
	if (s->depth == 0)
		node = s->mode == SPLIT_WATCH    ? NODE_LINE
		       : s->mode == SPLIT_OBJECT ? NODE_ITEM
						 : NODE_ROOT;
	else
		node = s->skip ? NODE_OTHER : child_node(s, object);
	if (node == NODE_ITEMS && s->items_seen)
		return broken(err, "items twice");
	if (node == NODE_ITEMS)
		s->items_seen = true;
	s->items_value = false;
	s->depth++;
	s->node[s->depth] = (uint8_t)node;
	s->is_object[s->depth] = object;
	s->expect_key = object;
	if (node >= NODE_LABELS)
		s->one_cut = false;
	if (s->mode == SPLIT_LIST ? node == NODE_ITEM : s->depth == 1)
		s->capture = true;
	return 0;
}

/* Afterwards the item, if one ended, is still to be emitted: *ended. */
static int close_container(struct k8s_split *s, bool object, bool *ended, struct err *err)
{
	enum node node = (enum node)s->node[s->depth];

	if (s->depth == 0 || s->is_object[s->depth] != object)
		return broken(err, "brackets do not match");
	s->depth--;
	s->expect_key = false;
	*ended = s->capture && (s->mode == SPLIT_LIST ? node == NODE_ITEM : s->depth == 0);
	if (s->depth == 0 && s->mode != SPLIT_WATCH)
		s->done = true;
	return 0;
}

/* Outside of strings and items only: there every byte has to make sense. */
static int plain(struct k8s_split *s, char c, struct err *err)
{
	if (s->depth == 0)
		return broken(err, "text outside of an object");
	if (s->node[s->depth] == NODE_ITEMS)
		return broken(err, "an element of items is not an object");
	if (s->items_value) {
		if (c != 'n')
			return broken(err, "items is not an array");
		s->items_value = false;
		s->items_seen = true;
	}
	return 0;
}

/* Feeds the inside of a string; returns where it stopped: after the closing quote or at the end.
 */
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
		if (s->noting) /* a control byte is left to who parses the item */
			s->noting->bad = true;
	}
	return p;
}

static int colon(struct k8s_split *s, struct err *err)
{
	if (s->depth == 0)
		return broken(err, "text outside of an object");
	s->expect_key = false;
	if (s->node[s->depth] == NODE_ROOT && key_is(s, "items"))
		s->items_value = true;
	return 0;
}

/* The list of what is kept of the map being read; NULL: it is not such a map. */
static const char *const *kept_here(const struct k8s_split *s)
{
	switch ((enum node)s->node[s->depth]) {
	case NODE_LABELS:
		return s->keep->labels;
	case NODE_ANNOTATIONS:
		return s->keep->annotations;
	case NODE_DATA:
		return s->keep->data;
	case NODE_OWNER:
		return s->keep->owners;
	default:
		return NULL;
	}
}

/* The value after this colon is not stored: afterwards run is NULL. Always through item_add, so
 * that what is too large does not depend on where the reads end. */
static void cut_value(struct k8s_split *s, const char *p, const char **run)
{
	const char *const *kept = s->skip ? NULL : kept_here(s);
	bool fields = s->node[s->depth] == NODE_ITEM_META && key_is(s, "managedFields");

	if (s->skip || !s->capture)
		return;
	s->bounded = s->node[s->depth] == NODE_OWNER && key_is(s, "uid");
	s->owner_uid.len = 0;
	if (!fields && !s->bounded &&
		(!kept || (!s->key.bad && kobj_keeps(kept, s->key.data, s->key.len))))
		return;
	item_add(s, *run, (size_t)(p + 1 - *run));
	*run = NULL;
	s->skip = true;
	s->skip_depth = s->depth;
	if (s->bounded) /* its bytes come when it has ended */
		return;
	if (fields || !s->one_cut)
		item_add(s, "null", 4);
	else if (!s->over)
		s->item_len = s->member_at;
	s->one_cut |= !fields;
}

/* A member begins in a map that is cut: it can be taken back from here. */
static void member_begins(struct k8s_split *s, const char *p, const char **run)
{
	if (s->skip || !s->capture || !kept_here(s))
		return;
	item_add(s, *run, (size_t)(p - *run));
	*run = p;
	s->member_at = s->item_len;
}

/* The value cut out has ended: what follows belongs to the object around it. */
static bool skip_ends(struct k8s_split *s)
{
	if (!s->skip || s->depth != s->skip_depth)
		return false;
	s->skip = false;
	if (s->bounded && (s->owner_uid.bad || !s->owner_uid.len)) {
		item_add(s, "null", 4);
	} else if (s->bounded) {
		item_add(s, "\"", 1);
		item_add(s, s->owner_uid.data, s->owner_uid.len);
		item_add(s, "\"", 1);
	}
	s->bounded = false;
	return true;
}

static int item_ended(struct k8s_split *s, const char *p, const char **run, struct err *err)
{
	item_add(s, *run, (size_t)(p + 1 - *run));
	*run = NULL;
	return emit(s, err);
}

/* One byte outside of strings. *run: where the bytes of the item that are not copied yet begin,
 * NULL: none to copy. */
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
		if (skip_ends(s))
			*run = p;
		if (close_container(s, *p == '}', &ended, err) < 0)
			return -1;
		return ended ? item_ended(s, p, run, err) : 0;
	case C_COLON:
		if (colon(s, err) < 0)
			return -1;
		cut_value(s, p, run);
		return 0;
	default: /* C_COMMA */
		if (s->depth == 0)
			return broken(err, "text outside of an object");
		if (skip_ends(s))
			*run = p;
		member_begins(s, p, run);
		s->expect_key = s->is_object[s->depth];
		s->items_value = false;
		return 0;
	}
}

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
		item_add(s, run, (size_t)(end - run));
	return 0;
}

int k8s_split_feed(struct k8s_split *s, const char *data, size_t len, struct err *err)
{
	if (s->failed)
		return err_set(err, ERR_BUG, "fed after an error");
	/* in steps, so that the cap is kept whatever the size of a read */
	while (len) {
		size_t n = len < 65536 ? len : 65536;

		if (s->capture && (s->raw_len += n) > RAW_MAX + 65536) {
			s->failed = true;
			return err_set(err, ERR_INVALID, "an item of more than %u bytes", RAW_MAX);
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

/* Both go back to the server in a URL. */
static bool note_sane(const struct note *n)
{
	for (size_t i = 0; i < n->len; i++)
		if (n->data[i] <= ' ' || n->data[i] > '~')
			return false;
	return !n->bad;
}

int k8s_split_end(struct k8s_split *s, struct err *err)
{
	if (s->failed)
		return err_set(err, ERR_BUG, "ended after an error");
	if (s->depth || s->in_string || (s->mode != SPLIT_WATCH && !s->done))
		return err_set(err, ERR_TRANSIENT, "the text ends too early");
	if (s->mode != SPLIT_LIST)
		return 0;
	if (!s->items_seen)
		return broken(err, "a list without items");
	if (!note_sane(&s->rv) || s->rv.len == 0)
		return broken(err, "a list without metadata.resourceVersion");
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

static const char *noted(const struct note *n)
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
