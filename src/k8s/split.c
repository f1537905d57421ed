/* SPDX-License-Identifier: MIT */
/*
 * One pass over the bytes, with a flag for strings, a stack of brackets, and the name of the
 * current member for the few objects that matter. The scanner finds where an item begins and ends;
 * json_parse() decides whether it is valid JSON. Member names are compared as written: a name with
 * escapes never matches.
 *
 * The text of the item being read is copied in runs to a bounded buffer that is wiped when it may
 * contain a key, and freed when it grew large. Members that nobody reads are cut out while they
 * pass; of each map that is cut, the first such member stays, with the value null.
 */
#include "config.h"

#include "tec/k8s/split.h"

#include <string.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

#define DEPTH_MAX  64
#define ITEM_MAX   (2u << 20)  /* of the kept text; not more than json_limits_api parses */
#define KEEP_MAX   (32u << 10) /* a larger buffer is freed after the item */
#define RAW_MAX    (64u << 20) /* as received: the limit for an item that never ends */
#define RV_MAX     128
#define NAME_LIMIT 256
#define KEY_LIMIT  328 /* prefix of 253, slash, name of 63 */
#define CONT_MAX   8192

enum node_kind {
	NODE_OTHER,
	NODE_ROOT,
	NODE_LIST_META,
	NODE_ITEMS,
	NODE_LINE,
	NODE_ITEM,
	NODE_ITEM_META,
	NODE_OWNERS,
	NODE_LABELS, /* this and the following ones: maps that are cut */
	NODE_ANNOTATIONS,
	NODE_DATA,
	NODE_SPEC,
	NODE_STATUS,
	NODE_OWNER
};

/* A short string that is recorded while it passes. */
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
	bool over;        /* the item is too large: nothing more of it is stored */
	bool one_cut;     /* one member of the map being read was already kept as null */
	size_t member_at; /* offset in item of the member being read, including its comma */
	const struct kobj_keep *keep; /* static; NULL: everything */
	unsigned depth, skip_depth;
	uint8_t node[DEPTH_MAX + 1];
	bool is_object[DEPTH_MAX + 1];
	char *item; /* owned */
	size_t item_len, item_cap, raw_len;
	struct note key, rv, cont, *noting; /* data owned */
	bool bounded; /* the value cut out is the uid of an owner, which is put back */
	struct note owner_uid;
	struct note type, item_name, item_uid, item_rv; /* of the item being read */
	bool deleting;                                  /* the same */
};

/* Compare the name of the current member, as written. */
static bool key_is(const struct k8s_split *s, const char *name)
{
	size_t len = strlen(name);

	return !s->key.bad && s->key.len == len && memcmp(s->key.data, name, len) == 0;
}

/*
 * ---- the text of the item being read. *run: start of the bytes of it that are not copied yet,
 * NULL: nothing to copy. The caller checks s->skip first, for speed: it calls cut_member() while it
 * is false, resume_item() while it is true.
 */

static void release_item(struct k8s_split *s)
{
	if (s->secret && s->item)
		secret_wipe(s->item, s->item_cap);
	free(s->item);
	s->item = NULL;
	s->item_len = s->item_cap = 0;
}

/* Append to the item. Grows by copying, since realloc would leave the old bytes, possibly a key, in
 * freed memory. */
static void add_to_item(struct k8s_split *s, const char *data, size_t len)
{
	if (s->over)
		return;
	if (len > ITEM_MAX - s->item_len) {
		release_item(s);
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
		release_item(s);
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
		release_item(s);
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
	switch ((enum node_kind)s->node[s->depth]) {
	case NODE_LABELS:
		return s->keep->labels;
	case NODE_ANNOTATIONS:
		return s->keep->annotations;
	case NODE_DATA:
		return s->keep->data;
	case NODE_SPEC:
		return s->keep->spec;
	case NODE_STATUS:
		return s->keep->status;
	case NODE_OWNER:
		return s->keep->owners;
	default:
		return NULL;
	}
}

/* Decide at a colon whether the value is stored; if not, run is NULL afterwards. All bytes go
 * through add_to_item(), so that the size limit does not depend on where reads end. */
static void cut_member(struct k8s_split *s, const char *p, const char **run)
{
	const char *const *kept = kept_here(s);
	bool fields = s->node[s->depth] == NODE_ITEM_META && key_is(s, "managedFields");

	s->bounded = s->node[s->depth] == NODE_OWNER && key_is(s, "uid");
	s->owner_uid.len = 0;
	if (!fields && !s->bounded &&
		(!kept || (!s->key.bad && kobj_keeps(kept, s->key.data, s->key.len))))
		return;
	add_to_item(s, *run, (size_t)(p + 1 - *run));
	*run = NULL;
	s->skip = true;
	s->skip_depth = s->depth;
	if (s->bounded) /* its bytes are added when it has ended */
		return;
	if (fields || !s->one_cut)
		add_to_item(s, "null", 4);
	else if (!s->over)
		s->item_len = s->member_at;
	s->one_cut |= !fields;
}

/* A member of a map that is cut begins here: record the position, so that the whole member can be
 * removed. */
static void begin_member(struct k8s_split *s, const char *p, const char **run)
{
	if (s->skip || !s->capture || !kept_here(s))
		return;
	add_to_item(s, *run, (size_t)(p - *run));
	*run = p;
	s->member_at = s->item_len;
}

/* Check whether the value that is cut out ended here: what follows belongs to the enclosing object.
 * An owner's uid was limited in length and is put back now. */
static bool resume_item(struct k8s_split *s)
{
	if (s->depth != s->skip_depth)
		return false;
	s->skip = false;
	if (s->bounded && (s->owner_uid.bad || !s->owner_uid.len)) {
		add_to_item(s, "null", 4);
	} else if (s->bounded) {
		add_to_item(s, "\"", 1);
		add_to_item(s, s->owner_uid.data, s->owner_uid.len);
		add_to_item(s, "\"", 1);
	}
	s->bounded = false;
	return true;
}

static int end_item(struct k8s_split *s, const char *p, const char **run, struct err *err)
{
	add_to_item(s, *run, (size_t)(p + 1 - *run));
	*run = NULL;
	return emit(s, err);
}

/* ---- the scanner */

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
	release_item(s);
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
static void note_start(struct k8s_split *s, struct note *n)
{
	if (!n->data)
		n->data = xmalloc(n->cap);
	n->len = 0;
	n->bad = false;
	s->noting = n;
}

/* A string that is too long is marked bad, so that a truncated name is never used. */
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

/* Decide by the place in the tree whether the string that begins here is recorded: a member name,
 * or one of the few values that the caller may ask for. */
static int string_start(struct k8s_split *s, struct err *err)
{
	enum node_kind node = (enum node_kind)s->node[s->depth];

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

/* Tell whether the object about to open, a member of an item or of its metadata, is one of the maps
 * that are cut. */
static enum node_kind map_node(const struct k8s_split *s, bool in_metadata)
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
	if (!in_metadata && s->keep->spec && key_is(s, "spec"))
		return NODE_SPEC;
	if (!in_metadata && s->keep->status && key_is(s, "status"))
		return NODE_STATUS;
	return NODE_OTHER;
}

/* Classify the container about to open by its place in the tree. */
static enum node_kind child_node(const struct k8s_split *s, bool object)
{
	switch ((enum node_kind)s->node[s->depth]) {
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
	case NODE_SPEC:
	case NODE_STATUS:
	case NODE_OWNER:
		break;
	}
	return NODE_OTHER;
}

/* An item starts to be captured here: an element of items, or the outermost object of a watch line
 * or an answer. */
static int open_container(struct k8s_split *s, bool object, struct err *err)
{
	enum node_kind node;

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
		return broken(err, "duplicate items");
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

/* Close a container. *ended: the closing bracket ends the captured item, which the caller must
 * emit. */
static int close_container(struct k8s_split *s, bool object, bool *ended, struct err *err)
{
	enum node_kind node = (enum node_kind)s->node[s->depth];

	if (s->depth == 0 || s->is_object[s->depth] != object)
		return broken(err, "brackets do not match");
	s->depth--;
	s->expect_key = false;
	*ended = s->capture && (s->mode == SPLIT_LIST ? node == NODE_ITEM : s->depth == 0);
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
	if (s->node[s->depth] == NODE_ROOT && key_is(s, "items"))
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
		if (s->skip && resume_item(s))
			*run = p;
		if (close_container(s, *p == '}', &ended, err) < 0)
			return -1;
		return ended ? end_item(s, p, run, err) : 0;
	case C_COLON:
		if (colon(s, err) < 0)
			return -1;
		if (s->capture && !s->skip)
			cut_member(s, p, run);
		return 0;
	default: /* C_COMMA */
		if (s->depth == 0)
			return broken(err, "text outside of an object");
		if (s->skip && resume_item(s))
			*run = p;
		if (s->node[s->depth] >= NODE_LABELS)
			begin_member(s, p, run);
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
		add_to_item(s, run, (size_t)(end - run));
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
static bool note_sane(const struct note *n)
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
