/* SPDX-License-Identifier: MIT */
/*
 * Nodes are listed in their directory and in one hash table by directory and name. Each node knows
 * the last layer that made it, so that a whiteout removes only what earlier layers made, wherever
 * it occurs in its own layer. A missing directory on the path of an entry is created, as runtimes
 * do.
 *
 * Writing follows the paths that a reader of the finished directory will follow: create each
 * directory and link on them, then what is wanted at their end. The path of a node consists only of
 * directories, so nothing is created outside the target directory.
 */
#include "config.h"

#include "tec/oci/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/base/table.h"
#include "tec/oci/tar.h"

/* The content of a file with one or more names (hard links). */
struct content {
	unsigned number, refs;
	char *at; /* owned; the first path it was written to, or NULL */
};

enum node_type { NODE_DIR, NODE_FILE, NODE_SYMLINK };

struct node {
	struct table_link link;   /* in oci_tree.names; not the root */
	struct node *dir;         /* NULL: the root */
	LIST_ENTRY(node) sibling; /* in dir->children */
	LIST_HEAD(, node) children;
	enum node_type type;
	unsigned layer, depth;   /* the last layer that made it; levels below the root */
	struct content *content; /* of a FILE; NULL: content not kept */
	char *target;            /* owned; of a SYMLINK */
	bool written;
	unsigned written_depth; /* of a DIR: the depth to which its children were written */
	char name[];
};

struct oci_tree {
	struct node *root; /* owned, with all below it */
	struct table names;
	unsigned n, layer;
	void (*drop)(void *arg, unsigned content);
	void *arg;
};

/* A path that is being resolved, with links confined to the root. */
struct way {
	struct strbuf text;
	size_t at;       /* offset of the part still to resolve */
	unsigned links;  /* followed so far */
	struct node *in; /* where it has got to */
};
enum step {
	STEP_ERROR = -1,
	STEP_OVER, /* done: `in` is the end */
	STEP_ON,   /* moved to *now: `in`, or a link to follow next */
	STEP_NONE, /* the name does not exist, or `in` is a file */
};
static void way_fini(struct way *w)
{
	strbuf_fini(&w->text);
}
#define cleanup_way __attribute__((cleanup(way_fini)))

#define LINKS_MAX 40u
#define WAY_MAX   16384u

/* ---- nodes */

/* Mix the directory's address into the hash; the table compares directory and name afterwards. */
static uint32_t hash_of(const struct node *dir, const char *name, size_t len)
{
	uint32_t h = table_hash(name, len);

	return h ^ (uint32_t)((uintptr_t)dir >> 4) * 2654435761u;
}

static struct node *find_node(
	const struct oci_tree *t, const struct node *dir, const char *name, size_t len)
{
	struct node *n;

	TABLE_WITH_HASH (n, link, &t->names, hash_of(dir, name, len))
		if (n->dir == dir && strlen(n->name) == len && memcmp(n->name, name, len) == 0)
			return n;
	return NULL;
}

/* Release a content. With its last name the caller drops the file. */
static void content_unref(struct oci_tree *t, struct content *c)
{
	if (!c || --c->refs)
		return;
	if (t->drop)
		t->drop(t->arg, c->number);
	free(c->at);
	free(c);
}

/* Remove a node and everything below it. The depth is bounded by OCI_TREE_DEPTH_MAX, and so is the
 * recursion. */
static void node_remove(struct oci_tree *t, struct node *n)
{
	while (!LIST_EMPTY(&n->children))
		node_remove(t, LIST_FIRST(&n->children));
	content_unref(t, n->content);
	free(n->target);
	if (n->dir) {
		LIST_REMOVE(n, sibling);
		table_remove(&t->names, &n->link);
		t->n--;
	}
	free(n);
}

/* Add a name to a directory, within the limits. It belongs to the current layer. */
static struct node *node_add(struct oci_tree *t, struct node *dir, const char *name, size_t len,
	enum node_type type, struct err *err)
{
	struct node *n;

	if (t->n == OCI_TREE_NODES_MAX) {
		err_set(err, ERR_INVALID, "the image has more than %u directories and links",
			OCI_TREE_NODES_MAX);
		return NULL;
	}
	if (dir->depth == OCI_TREE_DEPTH_MAX) {
		err_set(err, ERR_INVALID, "directories are nested more than %u levels deep",
			OCI_TREE_DEPTH_MAX);
		return NULL;
	}
	n = xcalloc(1, sizeof(*n) + len + 1);
	memcpy(n->name, name, len);
	n->type = type;
	n->dir = dir;
	n->depth = dir->depth + 1;
	n->layer = t->layer;
	LIST_INIT(&n->children);
	LIST_INSERT_HEAD(&dir->children, n, sibling);
	table_add(&t->names, &n->link, hash_of(dir, name, len));
	t->n++;
	return n;
}

struct oci_tree *oci_tree_new(void (*drop)(void *arg, unsigned content), void *arg)
{
	struct oci_tree *t = xcalloc(1, sizeof(*t));

	t->drop = drop;
	t->arg = arg;
	t->root = xcalloc(1, sizeof(*t->root) + 1);
	t->root->type = NODE_DIR;
	LIST_INIT(&t->root->children);
	return t;
}

/* The caller removes its files itself, so drop is not called. */
void oci_tree_free(struct oci_tree *t)
{
	if (!t)
		return;
	t->drop = NULL;
	node_remove(t, t->root);
	table_fini(&t->names);
	free(t);
}

void oci_tree_next_layer(struct oci_tree *t)
{
	t->layer++;
}

/* ---- resolving paths */

/* Continue with a link's target, followed by the unresolved rest of the path. */
static int redirect(const struct node *link, struct way *w, struct err *err)
{
	cleanup_free char *left = xstrdup(strbuf_str(&w->text) + w->at);

	if (++w->links > LINKS_MAX || strlen(left) + strlen(link->target) + 2 > WAY_MAX)
		return err_set(err, ERR_INVALID, "too many symbolic links in the path to %.100s",
			log_esc(left));
	strbuf_reset(&w->text);
	strbuf_addf(&w->text, "%s/%s", link->target, left);
	w->at = 0;
	return 0;
}

/* ".." in the root stays there, and absolute links start there: nothing leads out of the image. */
static enum step way_step(
	struct oci_tree *t, struct way *w, bool make, struct node **now, struct err *err)
{
	const char *name;
	size_t len;

	*now = w->in;
	w->at += strspn(strbuf_str(&w->text) + w->at, "/");
	name = strbuf_str(&w->text) + w->at;
	len = strcspn(name, "/");
	if (!len)
		return STEP_OVER;
	if (w->in->type != NODE_DIR)
		return STEP_NONE;
	w->at += len;
	if (len == 1 && name[0] == '.')
		return STEP_ON;
	if (len == 2 && name[0] == '.' && name[1] == '.') {
		*now = w->in = w->in->dir ? w->in->dir : w->in;
		return STEP_ON;
	}
	if (len > OCI_TAR_NAME_MAX) {
		err_set(err, ERR_INVALID, "a link leads to a name longer than %u bytes",
			OCI_TAR_NAME_MAX);
		return STEP_ERROR;
	}
	*now = find_node(t, w->in, name, len);
	if (!*now && make)
		*now = node_add(t, w->in, name, len, NODE_DIR, err);
	if (!*now)
		return make ? STEP_ERROR : STEP_NONE;
	if ((*now)->type != NODE_SYMLINK) {
		w->in = *now;
		return STEP_ON;
	}
	if ((*now)->target[0] == '/')
		w->in = t->root;
	return redirect(*now, w, err) < 0 ? STEP_ERROR : STEP_ON;
}

/* Find the directory at the end of a path. *out NULL: it does not exist. make: create it. */
static int enter(struct oci_tree *t, const char *path, size_t len, bool make, struct node **out,
	struct err *err)
{
	cleanup_way struct way w = {STRBUF_INIT, 0, 0, t->root};
	struct node *now;
	enum step step;

	strbuf_add(&w.text, path, len);
	while ((step = way_step(t, &w, make, &now, err)) == STEP_ON)
		;
	*out = step == STEP_OVER && w.in->type == NODE_DIR ? w.in : NULL;
	if (step == STEP_ERROR)
		return -1;
	if (!*out && make)
		return err_set(err, ERR_INVALID, "%.150s is below a file", log_esc(path));
	return 0;
}

/* Find the directory that contains the last name of a path. */
static int enter_parent(struct oci_tree *t, const char *path, bool make, struct node **dir,
	const char **name, struct err *err)
{
	const char *slash = strrchr(path, '/');

	*name = slash ? slash + 1 : path;
	return enter(t, path, slash ? (size_t)(slash - path) : 0, make, dir, err);
}

/* Find the node at the end of a path, without following it if it is a link. *out NULL: it does not
 * exist. */
static int find_path(struct oci_tree *t, const char *path, struct node **out, struct err *err)
{
	struct node *dir;
	const char *name;

	if (enter_parent(t, path, false, &dir, &name, err) < 0)
		return -1;
	*out = dir ? find_node(t, dir, name, strlen(name)) : NULL;
	return 0;
}

/* ---- entries */

/* Create a node, replacing an earlier one of this name. An existing directory is kept, with its
 * content. */
static struct node *place(
	struct oci_tree *t, const char *path, enum node_type type, struct err *err)
{
	struct node *dir, *was;
	const char *name;

	if (enter_parent(t, path, true, &dir, &name, err) < 0)
		return NULL;
	was = find_node(t, dir, name, strlen(name));
	if (was && was->type == NODE_DIR && type == NODE_DIR) {
		was->layer = t->layer;
		return was;
	}
	if (was)
		node_remove(t, was);
	return node_add(t, dir, name, strlen(name), type, err);
}

int oci_tree_dir(struct oci_tree *t, const char *path, struct err *err)
{
	return place(t, path, NODE_DIR, err) ? 0 : -1;
}

int oci_tree_symlink(struct oci_tree *t, const char *path, const char *target, struct err *err)
{
	struct node *n = place(t, path, NODE_SYMLINK, err);

	if (!n)
		return -1;
	n->target = xstrdup(target);
	return 0;
}

int oci_tree_file(struct oci_tree *t, const char *path, unsigned content, struct err *err)
{
	struct node *n = place(t, path, NODE_FILE, err);

	if (!n)
		return -1;
	n->content = xcalloc(1, sizeof(*n->content));
	n->content->number = content;
	n->content->refs = 1;
	return 0;
}

/* Remove the earlier file of this name. Parents are not created for something that is not kept. */
int oci_tree_other(struct oci_tree *t, const char *path, struct err *err)
{
	struct node *was;

	if (find_path(t, path, &was, err) < 0)
		return -1;
	if (was)
		node_remove(t, was);
	return 0;
}

/* A missing target gives a file without content: the target may be one that is not kept. */
int oci_tree_hardlink(struct oci_tree *t, const char *path, const char *target, struct err *err)
{
	struct content *c = NULL;
	struct node *from, *n;

	if (find_path(t, target, &from, err) < 0)
		return -1;
	if (from && from->type == NODE_DIR)
		return err_set(
			err, ERR_INVALID, "%.150s is a hard link to a directory", log_esc(path));
	if (from && from->type == NODE_SYMLINK) {
		cleanup_free char *to = xstrdup(from->target);

		return oci_tree_symlink(t, path, to, err);
	}
	/* Take the reference first: placing the name may remove the target, if both are equal. */
	c = from ? from->content : NULL;
	if (c)
		c->refs++;
	n = place(t, path, NODE_FILE, err);
	if (n)
		n->content = c;
	else
		content_unref(t, c);
	return n ? 0 : -1;
}

/* ---- whiteouts */

/* Remove what earlier layers made at and below n. A directory stays while this layer has something
 * in it. */
static void prune(struct oci_tree *t, struct node *n, bool itself)
{
	struct node *next;

	for (struct node *c = LIST_FIRST(&n->children); c; c = next) {
		next = LIST_NEXT(c, sibling);
		prune(t, c, true);
	}
	if (itself && n->layer < t->layer && LIST_EMPTY(&n->children))
		node_remove(t, n);
}

/* A whiteout for a name that does not exist is ignored. */
int oci_tree_hide(struct oci_tree *t, const char *path, struct err *err)
{
	struct node *was;

	if (find_path(t, path, &was, err) < 0)
		return -1;
	if (was)
		prune(t, was, true);
	return 0;
}

/* Opaque whiteout: the directory itself stays. */
int oci_tree_hide_all(struct oci_tree *t, const char *dir_path, struct err *err)
{
	struct node *dir;

	if (enter(t, dir_path, strlen(dir_path), false, &dir, err) < 0)
		return -1;
	if (dir)
		prune(t, dir, false);
	return 0;
}

/* ---- writing */

#define NESTED_MAX 64u /* levels of wanted links that lead to further wanted links */

struct writing {
	struct oci_tree *t;
	int into, stage;
	unsigned nested;
	struct made {
		char *path; /* owned */
		bool is_dir;
	} * made; /* owned; in order of creation, for undoing it */
	size_t n_made;
};

/* Record a created path. The list is only used to undo a failed write. */
static void note(struct writing *w, char *take_path, bool is_dir)
{
	ARRAY_GROW(w->made, w->n_made);
	w->made[w->n_made++] = (struct made){take_path, is_dir};
}

static bool wants(const struct oci_need *need, const char *name)
{
	return (!need->name && !need->ending) || (need->name && str_eq(need->name, name)) ||
	       (need->ending && str_ends(name, need->ending));
}

/* Compare the path literally, without following links: it decides only which contents to keep. */
bool oci_need_has(const struct oci_need *needs, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(needs[i].dir);
		const char *rest = path + len, *slash = strrchr(path, '/');
		unsigned depth = 0;

		if (!str_starts(path, needs[i].dir) || *rest != '/')
			continue;
		for (const char *p = rest; *p; p++)
			depth += *p == '/';
		if (depth <= needs[i].depth && wants(&needs[i], slash + 1))
			return true;
	}
	return false;
}

static void add_path(const struct node *n, struct strbuf *out)
{
	if (n->dir && n->dir->dir) {
		add_path(n->dir, out);
		strbuf_addc(out, '/');
	}
	strbuf_adds(out, n->name);
}

/* A full disk is temporary; other failures are permanent. */
static int failed(const char *path, struct err *err)
{
	return err_set_errno(err, errno == ENOSPC ? ERR_TRANSIENT : ERR_INVALID, errno,
		"cannot write %.150s", log_esc(path));
}

/* Create a directory and its parents, once. */
static int write_dir(struct writing *w, struct node *n, struct err *err)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	if (n->written || !n->dir)
		return 0;
	if (write_dir(w, n->dir, err) < 0)
		return -1;
	add_path(n, &path);
	if (mkdirat(w->into, strbuf_str(&path), 0755) < 0)
		return failed(strbuf_str(&path), err);
	note(w, strbuf_steal(&path), true);
	n->written = true;
	return 0;
}

/* Write a link with its target as it is: readers confine it to the root as well. */
static int write_link(struct writing *w, struct node *n, struct err *err)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	if (n->written)
		return 0;
	if (write_dir(w, n->dir, err) < 0)
		return -1;
	add_path(n, &path);
	if (symlinkat(n->target, w->into, strbuf_str(&path)) < 0)
		return failed(strbuf_str(&path), err);
	note(w, strbuf_steal(&path), false);
	n->written = true;
	return 0;
}

/* Move a content to its first path; further names of it become hard links. */
static int write_file(struct writing *w, struct node *n, struct err *err)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	struct content *c = n->content;
	char staged[16];
	int rc;

	if (n->written)
		return 0;
	add_path(n, &path);
	if (!c)
		return err_set(err, ERR_INVALID,
			"%.150s is a link to a file that is not an EFI program",
			log_esc(strbuf_str(&path)));
	if (write_dir(w, n->dir, err) < 0)
		return -1;
	snprintf(staged, sizeof(staged), "f%u", c->number);
	rc = c->at ? linkat(w->into, c->at, w->into, strbuf_str(&path), 0)
		   : renameat(w->stage, staged, w->into, strbuf_str(&path));
	if (rc < 0)
		return failed(strbuf_str(&path), err);
	if (!c->at)
		c->at = xstrdup(strbuf_str(&path));
	note(w, strbuf_steal(&path), false);
	n->written = true;
	return 0;
}

/* ---- following paths */

static int write_below(struct writing *w, struct node *n, unsigned depth,
	const struct oci_need *need, struct err *err);

/* Write the directories and links on a path, and what is wanted at its end. A dangling path is
 * written as far as it exists. */
static int follow(struct writing *w, struct node *from, const char *path,
	const struct oci_need *need, struct err *err)
{
	cleanup_way struct way way = {STRBUF_INIT, 0, 0, path[0] == '/' ? w->t->root : from};
	struct node *now;
	enum step step;
	int rc;

	if (w->nested == NESTED_MAX)
		return err_set(err, ERR_INVALID, "too many levels of links below %.100s",
			log_esc(need->dir));
	strbuf_adds(&way.text, path);
	while ((step = way_step(w->t, &way, false, &now, err)) == STEP_ON) {
		if (now->type == NODE_DIR && write_dir(w, now, err) < 0)
			return -1;
		if (now->type == NODE_SYMLINK && write_link(w, now, err) < 0)
			return -1;
	}
	if (step == STEP_ERROR)
		return -1;
	if (step == STEP_NONE)
		return 0;
	w->nested++;
	rc = write_below(w, way.in, need->depth, need, err);
	w->nested--;
	return rc;
}

/* Write what is wanted at and below n, `depth` levels deep. */
static int write_below(struct writing *w, struct node *n, unsigned depth,
	const struct oci_need *need, struct err *err)
{
	struct node *c;

	if (n->type == NODE_FILE)
		return write_file(w, n, err);
	if (write_dir(w, n, err) < 0)
		return -1;
	if (depth <= n->written_depth)
		return 0;
	n->written_depth = depth;
	LIST_FOREACH (c, &n->children, sibling) {
		bool wanted = wants(need, c->name);
		int rc = 0;

		if (c->type == NODE_DIR)
			rc = write_below(w, c, depth - 1, need, err);
		else if (c->type == NODE_FILE && wanted)
			rc = write_file(w, c, err);
		else if (c->type == NODE_SYMLINK && wanted && !c->written)
			rc = write_link(w, c, err) < 0 ? -1 : follow(w, n, c->target, need, err);
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* After a failure everything is removed in reverse order, so that directories are empty by then. */
int oci_tree_write(struct oci_tree *t, int into_fd, int stage_fd, const struct oci_need *needs,
	size_t n, struct err *err)
{
	struct writing w = {.t = t, .into = into_fd, .stage = stage_fd};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = follow(&w, t->root, needs[i].dir, &needs[i], err);
	while (w.n_made) {
		struct made *m = &w.made[--w.n_made];

		if (rc < 0)
			(void)unlinkat(into_fd, m->path, m->is_dir ? AT_REMOVEDIR : 0);
		free(m->path);
	}
	free(w.made);
	return rc;
}
