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

#define DEPTH_MAX 64
#define ITEM_MAX  (2u << 20)  /* of the kept text; not more than json_limits_api parses */
#define KEEP_MAX  (32u << 10) /* a larger buffer is freed after the item */
#define RAW_MAX   (64u << 20) /* as received: the limit for an item that never ends */

enum node_kind {
	NODE_OTHER,
	NODE_ROOT,
	NODE_LIST_META,
	NODE_ITEMS,
	NODE_LINE,
	NODE_ITEM,
	NODE_ITEM_META,
	NODE_OWNERS,
	NODE_OWNER,
};

/* The short strings that are recorded while they pass. */
enum note_kind { KEY, RV, CONT, TYPE, ITEM_NAME, ITEM_UID, ITEM_RV, OWNER_UID, NOTES };
static const size_t note_max[NOTES] = {
	[KEY] = 328, /* prefix of 253, slash, name of 63 */
	[RV] = 128,
	[CONT] = 8192,
	[TYPE] = 32,
	[ITEM_NAME] = 256,
	[ITEM_UID] = 128,
	[ITEM_RV] = 128,
	[OWNER_UID] = 128,
};

struct note {
	char *data; /* owned; NULL until the first use */
	size_t len, cap;
	bool bad; /* escaped or too long */
};

struct k8s_split {
	k8s_split_fn fn;
	void *arg;
	enum k8s_split_mode mode;
	bool secret, failed;
	bool in_string, escape, expect_key, done, items_seen, items_value;
	bool capture, skip;
	bool over;        /* the item is too large: nothing more of it is stored */
	bool one_cut;     /* one member of the map being read was already kept as null */
	size_t member_at; /* offset in item of the member being read, including its comma */
	const struct kobj_keep *keep;           /* static; NULL: everything */
	const char *const *kept;                /* the members kept of the map that is cut */
	unsigned depth, skip_depth, kept_depth; /* kept_depth: of that map; 0: none */
	uint8_t node[DEPTH_MAX + 1];
	bool is_object[DEPTH_MAX + 1];
	char *item; /* owned */
	size_t item_len, item_cap, raw_len;
	struct note note[NOTES]; /* from TYPE on: of the item being read */
	struct note *noting;     /* the one being recorded */
	bool deleting;           /* the item being read has a deletionTimestamp */
	bool bounded;            /* the value cut out is the uid of an owner, which is put back */
};

/* Compare the name of the current member, as written. */
static bool key_is(const struct k8s_split *s, const char *name)
{
	const struct note *key = &s->note[KEY];
	size_t len = strlen(name);

	return !key->bad && key->len == len && memcmp(key->data, name, len) == 0;
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
	for (unsigned i = TYPE; i <= ITEM_RV; i++)
		s->note[i].len = 0;
	s->deleting = s->over = false;
	return rc;
}

/* Decide at a colon whether the value is stored; if not, run is NULL afterwards. All bytes go
 * through add_to_item(), so that the size limit does not depend on where reads end. */
static void cut_member(struct k8s_split *s, const char *p, const char **run)
{
	const struct note *key = &s->note[KEY];
	bool cut = s->depth == s->kept_depth &&
		   (key->bad || !kobj_keeps(s->kept, key->data, key->len));
	bool fields = s->node[s->depth] == NODE_ITEM_META && key_is(s, "managedFields") &&
		      !(s->keep && s->keep->managed);

	s->bounded = s->node[s->depth] == NODE_OWNER && key_is(s, "uid");
	s->note[OWNER_UID].len = 0;
	if (!fields && !s->bounded && !cut)
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

/* Check whether the value that is cut out ended here: what follows belongs to the enclosing object.
 * An owner's uid was limited in length and is put back now. */
static bool resume_item(struct k8s_split *s)
{
	const struct note *uid = &s->note[OWNER_UID];

	if (s->depth != s->skip_depth)
		return false;
	s->skip = false;
	if (s->bounded && (uid->bad || !uid->len)) {
		add_to_item(s, "null", 4);
	} else if (s->bounded) {
		add_to_item(s, "\"", 1);
		add_to_item(s, uid->data, uid->len);
		add_to_item(s, "\"", 1);
	}
	s->bounded = false;
	return true;
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

struct k8s_split *k8s_split_new(enum k8s_split_mode mode, const struct kobj_keep *keep, bool secret,
	k8s_split_fn fn, void *arg)
{
	struct k8s_split *s = xcalloc(1, sizeof(*s));

	s->fn = fn;
	s->arg = arg;
	s->mode = mode;
	s->keep = keep;
	s->secret = secret;
	s->note[KEY].data = xmalloc(note_max[KEY]);
	return s;
}

void k8s_split_free(struct k8s_split *s)
{
	if (!s)
		return;
	release_item(s);
	for (unsigned i = 0; i < NOTES; i++)
		free(s->note[i].data);
	free(s);
}

/* A malformed text is permanent for this list or stream: ERR_INVALID, the caller lists again. */
static int broken(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID, "%s", what);
}

/* Record the string that begins here. Buffers are allocated at the first use, since most streams
 * need few of them. */
static void note_start(struct k8s_split *s, enum note_kind kind)
{
	struct note *n = &s->note[kind];

	n->cap = note_max[kind];
	if (!n->data)
		n->data = xmalloc(n->cap);
	n->len = 0;
	n->bad = false;
	s->noting = n;
}

/* Decide by the place in the tree whether the string that begins here is recorded: a member name,
 * or one of the few values that the caller may ask for. */
static int string_start(struct k8s_split *s, struct err *err)
{
	static const struct {
		enum node_kind node;
		const char *member;
		enum note_kind note;
	} values[] = {{NODE_LIST_META, "resourceVersion", RV}, {NODE_LIST_META, "continue", CONT},
		{NODE_LINE, "type", TYPE}, {NODE_ITEM_META, "name", ITEM_NAME},
		{NODE_ITEM_META, "uid", ITEM_UID}, {NODE_ITEM_META, "resourceVersion", ITEM_RV}};
	enum node_kind node = (enum node_kind)s->node[s->depth];

	s->in_string = true;
	s->noting = NULL;
	if (s->depth == 0 || node == NODE_ITEMS || s->items_value)
		return broken(err, s->depth ? "an element of items is not an object"
					    : "text outside of an object");
	if (s->skip && s->bounded && s->depth == s->skip_depth)
		note_start(s, OWNER_UID);
	if (s->skip || (node == NODE_OTHER && s->depth != s->kept_depth))
		return 0;
	if (s->expect_key) {
		note_start(s, KEY);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		if (node == values[i].node && key_is(s, values[i].member))
			note_start(s, values[i].note);
	s->deleting |= node == NODE_ITEM_META && key_is(s, "deletionTimestamp");
	return 0;
}

/* Return the members kept of the object about to open; NULL: it is no map that is cut. */
static const char *const *kept_of(const struct k8s_split *s)
{
	enum node_kind parent = (enum node_kind)s->node[s->depth];
	const struct kobj_keep *keep = s->keep;
	const struct {
		enum node_kind parent;
		const char *member;
		const char *const *kept;
	} maps[] = {
		{NODE_ITEM_META, "labels", keep->labels},
		{NODE_ITEM_META, "annotations", keep->annotations},
		{NODE_ITEM, "data", keep->data},
		{NODE_ITEM, "binaryData", keep->data},
		{NODE_ITEM, "stringData", keep->data},
		{NODE_ITEM, "spec", keep->spec},
		{NODE_ITEM, "status", keep->status},
	};

	if (parent == NODE_OTHER)
		return NULL;
	if (parent == NODE_OWNERS)
		return keep->owners;
	for (size_t i = 0; i < ARRAY_LEN(maps); i++)
		if (parent == maps[i].parent && key_is(s, maps[i].member))
			return maps[i].kept;
	return NULL;
}

/* Classify the container about to open by its place in the tree. */
static enum node_kind child_node(const struct k8s_split *s, bool object)
{
	static const struct {
		enum node_kind parent;
		bool object;
		const char *member; /* NULL: any */
		enum node_kind node;
	} children[] = {
		{NODE_ROOT, true, "metadata", NODE_LIST_META},
		{NODE_ROOT, false, "items", NODE_ITEMS},
		{NODE_ITEMS, true, NULL, NODE_ITEM},
		{NODE_LINE, true, "object", NODE_ITEM},
		{NODE_ITEM, true, "metadata", NODE_ITEM_META},
		{NODE_ITEM_META, false, "ownerReferences", NODE_OWNERS},
		{NODE_OWNERS, true, NULL, NODE_OWNER},
	};
	enum node_kind parent = (enum node_kind)s->node[s->depth];

	for (size_t i = 0; i < ARRAY_LEN(children); i++)
		if (parent == children[i].parent && object == children[i].object &&
			(!children[i].member || key_is(s, children[i].member)))
			return children[i].node;
	return NODE_OTHER;
}

/* An item starts to be captured here: an element of items, or the outermost object of a watch line
 * or an answer. */
static int open_container(struct k8s_split *s, bool object, struct err *err)
{
	const char *const *kept = NULL;
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
		node = s->mode == K8S_SPLIT_WATCH    ? NODE_LINE
		       : s->mode == K8S_SPLIT_OBJECT ? NODE_ITEM
						     : NODE_ROOT;
	else
		node = s->skip ? NODE_OTHER : child_node(s, object);
	if (node == NODE_ITEMS && s->items_seen)
		return broken(err, "duplicate items");
	if (node == NODE_ITEMS)
		s->items_seen = true;
	s->items_value = false;
	if (s->keep && s->depth && object && !s->skip)
		kept = kept_of(s);
	if (node == NODE_OWNER && !kept)
		node = NODE_OTHER;
	s->depth++;
	s->node[s->depth] = (uint8_t)node;
	s->is_object[s->depth] = object;
	s->expect_key = object;
	if (kept) {
		s->kept = kept;
		s->kept_depth = s->depth;
		s->one_cut = false;
	}
	if (s->mode == K8S_SPLIT_LIST ? node == NODE_ITEM : s->depth == 1)
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
	if (s->depth == s->kept_depth)
		s->kept_depth = 0;
	s->depth--;
	s->expect_key = false;
	*ended = s->capture && (s->mode == K8S_SPLIT_LIST ? node == NODE_ITEM : s->depth == 0);
	if (s->depth == 0 && s->mode != K8S_SPLIT_WATCH)
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
	struct note *n = s->noting;

	while (p < end) {
		const char *from = p;

		if (s->escape) {
			s->escape = false;
			p++;
			continue;
		}
		p = json_plain_run(p, end);
		if (n && (n->bad || (size_t)(p - from) >= n->cap - n->len)) {
			n->bad = true; /* too long: a truncated name is never used */
		} else if (n) {
			memcpy(n->data + n->len, from, (size_t)(p - from));
			n->len += (size_t)(p - from);
			n->data[n->len] = '\0';
		}
		if (p == end)
			break;
		if (*p == '"') {
			s->in_string = false;
			s->noting = NULL;
			return p + 1;
		}
		s->escape = *p++ == '\\';
		if (n) /* a control byte is reported by the parser of the item */
			n->bad = true;
	}
	return p;
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
		if (!ended)
			return 0;
		add_to_item(s, *run, (size_t)(p + 1 - *run));
		*run = NULL;
		return emit(s, err);
	case C_COLON:
		if (s->depth == 0)
			return broken(err, "text outside of an object");
		s->expect_key = false;
		/* After the top-level "items", only an array or null may follow. */
		if (s->node[s->depth] == NODE_ROOT && key_is(s, "items"))
			s->items_value = true;
		if (s->capture && !s->skip)
			cut_member(s, p, run);
		return 0;
	default: /* C_COMMA */
		if (s->depth == 0)
			return broken(err, "text outside of an object");
		if (s->skip && resume_item(s))
			*run = p;
		if (s->depth == s->kept_depth && !s->skip && s->capture) {
			/* Record where the next member of the map begins, so that it can be cut. */
			add_to_item(s, *run, (size_t)(p - *run));
			*run = p;
			s->member_at = s->item_len;
		}
		s->expect_key = s->is_object[s->depth];
		s->items_value = false;
		return 0;
	}
}

/* A split that has failed must not be fed again: its position in the text is lost. */
int k8s_split_feed(struct k8s_split *s, const char *data, size_t len, struct err *err)
{
	if (s->failed)
		return err_set(err, ERR_BUG, "fed after an error");
	s->failed = true; /* until all is read */
	/* in steps, so that the limit holds for any size of a read */
	while (len) {
		size_t n = len < 65536 ? len : 65536;
		const char *p = data, *end = data + n, *run = s->capture && !s->skip ? p : NULL;

		if (s->capture && (s->raw_len += n) > RAW_MAX + 65536)
			return err_set(
				err, ERR_INVALID, "an item is larger than %u bytes", RAW_MAX);
		while (p < end) {
			if (s->in_string)
				p = string_bytes(s, p, end);
			else if (structural(s, p++, &run, err) < 0)
				return -1;
		}
		if (run) /* the caller's buffer ends here */
			add_to_item(s, run, (size_t)(end - run));
		data = end;
		len -= n;
	}
	s->failed = false;
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
	if (s->depth || s->in_string || (s->mode != K8S_SPLIT_WATCH && !s->done))
		return err_set(err, ERR_TRANSIENT, "the text is truncated");
	if (s->mode != K8S_SPLIT_LIST)
		return 0;
	if (!s->items_seen)
		return broken(err, "the list has no items");
	if (!note_sane(&s->note[RV]) || s->note[RV].len == 0)
		return broken(err, "the list has no metadata.resourceVersion");
	if (!note_sane(&s->note[CONT]))
		return broken(err, "metadata.continue is malformed");
	return 0;
}

/* A bad note (escaped or too long) counts as absent. */
static const char *noted(const struct k8s_split *s, enum note_kind kind)
{
	return s->note[kind].len && !s->note[kind].bad ? s->note[kind].data : "";
}

const char *k8s_split_rv(const struct k8s_split *s)
{
	return noted(s, RV);
}

const char *k8s_split_continue(const struct k8s_split *s)
{
	return noted(s, CONT);
}

struct k8s_split_item k8s_split_item(const struct k8s_split *s)
{
	return (struct k8s_split_item){.type = noted(s, TYPE),
		.name = noted(s, ITEM_NAME),
		.uid = noted(s, ITEM_UID),
		.rv = noted(s, ITEM_RV),
		.deleting = s->deleting};
}
