/* SPDX-License-Identifier: MIT */
/*
 * Nodes are listed in their directory and in one hash table by directory and name. Each node knows
 * the last layer that made it, so that a whiteout removes only what earlier layers made, wherever
 * it occurs in its own layer. A missing directory on the path of an entry is created, as runtimes
 * do.
 */
#include "config.h"

#include "oci_tree.h"

#include <stdlib.h>
#include <string.h>

#include "tec/base/log.h"
#include "tec/oci/tar.h"

#define LINKS_MAX 40u
#define WAY_MAX   16384u

/* ---- nodes */

/* Mix the directory's address into the hash; the table compares directory and name afterwards. */
static uint32_t hash_of(const struct oci_node *dir, const char *name, size_t len)
{
	uint32_t h = table_hash(name, len);

	return h ^ (uint32_t)((uintptr_t)dir >> 4) * 2654435761u;
}

struct oci_node *oci_node_find(
	const struct oci_tree *t, const struct oci_node *dir, const char *name, size_t len)
{
	struct oci_node *n;

	TABLE_WITH_HASH (n, link, &t->names, hash_of(dir, name, len))
		if (n->dir == dir && strlen(n->name) == len && memcmp(n->name, name, len) == 0)
			return n;
	return NULL;
}

/* Release a content. With its last name the caller drops the file. */
static void content_unref(struct oci_tree *t, struct oci_content *c)
{
	if (!c || --c->refs)
		return;
	if (t->drop)
		t->drop(t->arg, c->number);
	free(c->at);
	free(c);
}

static void node_clear(struct oci_tree *t, struct oci_node *n)
{
	content_unref(t, n->content);
	n->content = NULL;
	free(n->target);
	n->target = NULL;
}

/* Remove a node and everything below it. The depth is bounded by OCI_TREE_DEPTH_MAX, and so is the
 * recursion. */
static void node_remove(struct oci_tree *t, struct oci_node *n)
{
	while (!LIST_EMPTY(&n->children))
		node_remove(t, LIST_FIRST(&n->children));
	node_clear(t, n);
	if (n->dir) {
		LIST_REMOVE(n, sibling);
		table_remove(&t->names, &n->link);
		t->n--;
	}
	free(n);
}

/* Add a name to a directory, within the limits. It belongs to the current layer. */
static struct oci_node *node_add(struct oci_tree *t, struct oci_node *dir, const char *name,
	size_t len, enum oci_node_type type, struct err *err)
{
	struct oci_node *n;

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
	t->root->type = OCI_NODE_DIR;
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
static int redirect(const struct oci_node *link, struct oci_way *w, struct err *err)
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
enum oci_step oci_way_step(
	struct oci_tree *t, struct oci_way *w, bool make, struct oci_node **now, struct err *err)
{
	const char *name;
	size_t len;

	*now = w->in;
	w->at += strspn(strbuf_str(&w->text) + w->at, "/");
	name = strbuf_str(&w->text) + w->at;
	len = strcspn(name, "/");
	if (!len)
		return OCI_STEP_OVER;
	if (w->in->type != OCI_NODE_DIR)
		return OCI_STEP_NONE;
	w->at += len;
	if (len == 1 && name[0] == '.')
		return OCI_STEP_ON;
	if (len == 2 && name[0] == '.' && name[1] == '.') {
		*now = w->in = w->in->dir ? w->in->dir : w->in;
		return OCI_STEP_ON;
	}
	if (len > OCI_TAR_NAME_MAX) {
		err_set(err, ERR_INVALID, "a link leads to a name longer than %u bytes",
			OCI_TAR_NAME_MAX);
		return OCI_STEP_ERROR;
	}
	*now = oci_node_find(t, w->in, name, len);
	if (!*now && make)
		*now = node_add(t, w->in, name, len, OCI_NODE_DIR, err);
	if (!*now)
		return make ? OCI_STEP_ERROR : OCI_STEP_NONE;
	if ((*now)->type != OCI_NODE_SYMLINK) {
		w->in = *now;
		return OCI_STEP_ON;
	}
	if ((*now)->target[0] == '/')
		w->in = t->root;
	return redirect(*now, w, err) < 0 ? OCI_STEP_ERROR : OCI_STEP_ON;
}

/* Find the directory at the end of a path. *out NULL: it does not exist. make: create it. */
static int enter(struct oci_tree *t, const char *path, size_t len, bool make, struct oci_node **out,
	struct err *err)
{
	cleanup_oci_way struct oci_way w = {STRBUF_INIT, 0, 0, t->root};
	struct oci_node *now;
	enum oci_step step;

	strbuf_add(&w.text, path, len);
	while ((step = oci_way_step(t, &w, make, &now, err)) == OCI_STEP_ON)
		;
	*out = step == OCI_STEP_OVER && w.in->type == OCI_NODE_DIR ? w.in : NULL;
	if (step == OCI_STEP_ERROR)
		return -1;
	if (!*out && make)
		return err_set(err, ERR_INVALID, "%.150s is below a file", log_esc(path));
	return 0;
}

/* Find the directory that contains the last name of a path. */
static int enter_parent(struct oci_tree *t, const char *path, bool make, struct oci_node **dir,
	const char **name, struct err *err)
{
	const char *slash = strrchr(path, '/');

	*name = slash ? slash + 1 : path;
	return enter(t, path, slash ? (size_t)(slash - path) : 0, make, dir, err);
}

/* ---- entries */

/* Create a node, replacing an earlier one of this name. An existing directory is kept, with its
 * content. */
static struct oci_node *place(
	struct oci_tree *t, const char *path, enum oci_node_type type, struct err *err)
{
	struct oci_node *dir, *was;
	const char *name;

	if (enter_parent(t, path, true, &dir, &name, err) < 0)
		return NULL;
	was = oci_node_find(t, dir, name, strlen(name));
	if (was && was->type == OCI_NODE_DIR && type == OCI_NODE_DIR) {
		was->layer = t->layer;
		return was;
	}
	if (was)
		node_remove(t, was);
	return node_add(t, dir, name, strlen(name), type, err);
}

int oci_tree_dir(struct oci_tree *t, const char *path, struct err *err)
{
	return place(t, path, OCI_NODE_DIR, err) ? 0 : -1;
}

int oci_tree_symlink(struct oci_tree *t, const char *path, const char *target, struct err *err)
{
	struct oci_node *n = place(t, path, OCI_NODE_SYMLINK, err);

	if (!n)
		return -1;
	n->target = xstrdup(target);
	return 0;
}

int oci_tree_file(struct oci_tree *t, const char *path, unsigned content, struct err *err)
{
	struct oci_node *n = place(t, path, OCI_NODE_FILE, err);

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
	struct oci_node *dir, *was;
	const char *name;

	if (enter_parent(t, path, false, &dir, &name, err) < 0)
		return -1;
	was = dir ? oci_node_find(t, dir, name, strlen(name)) : NULL;
	if (was)
		node_remove(t, was);
	return 0;
}

/* A missing target gives a file without content: the target may be one that is not kept. */
int oci_tree_hardlink(struct oci_tree *t, const char *path, const char *target, struct err *err)
{
	struct oci_content *c = NULL;
	struct oci_node *dir, *from, *n;
	const char *name;

	if (enter_parent(t, target, false, &dir, &name, err) < 0)
		return -1;
	from = dir ? oci_node_find(t, dir, name, strlen(name)) : NULL;
	if (from && from->type == OCI_NODE_DIR)
		return err_set(
			err, ERR_INVALID, "%.150s is a hard link to a directory", log_esc(path));
	if (from && from->type == OCI_NODE_SYMLINK) {
		cleanup_free char *to = xstrdup(from->target);

		return oci_tree_symlink(t, path, to, err);
	}
	/* Take the reference first: placing the name may remove the target, if both are equal. */
	c = from ? from->content : NULL;
	if (c)
		c->refs++;
	n = place(t, path, OCI_NODE_FILE, err);
	if (n)
		n->content = c;
	else
		content_unref(t, c);
	return n ? 0 : -1;
}

/* ---- whiteouts */

/* Remove what earlier layers made at and below n. A directory stays while this layer has something
 * in it. */
static void prune(struct oci_tree *t, struct oci_node *n, bool itself)
{
	struct oci_node *next;

	for (struct oci_node *c = LIST_FIRST(&n->children); c; c = next) {
		next = LIST_NEXT(c, sibling);
		prune(t, c, true);
	}
	if (itself && n->layer < t->layer && LIST_EMPTY(&n->children))
		node_remove(t, n);
}

/* A whiteout for a name that does not exist is ignored. */
int oci_tree_hide(struct oci_tree *t, const char *path, struct err *err)
{
	struct oci_node *dir, *was;
	const char *name;

	if (enter_parent(t, path, false, &dir, &name, err) < 0)
		return -1;
	was = dir ? oci_node_find(t, dir, name, strlen(name)) : NULL;
	if (was)
		prune(t, was, true);
	return 0;
}

/* Opaque whiteout: the directory itself stays. */
int oci_tree_hide_all(struct oci_tree *t, const char *dir_path, struct err *err)
{
	struct oci_node *dir;

	if (enter(t, dir_path, strlen(dir_path), false, &dir, err) < 0)
		return -1;
	if (dir)
		prune(t, dir, false);
	return 0;
}
