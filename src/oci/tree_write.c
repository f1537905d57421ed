/* SPDX-License-Identifier: MIT */
/*
 * Follow the paths that a reader of the finished directory will follow: create each directory and
 * link on them, then what is wanted at their end. The path of a node consists only of directories,
 * so nothing is created outside the target directory.
 */
#include "config.h"

#include "oci_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"

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
		if (depth <= needs[i].depth && (!needs[i].name || str_eq(slash + 1, needs[i].name)))
			return true;
	}
	return false;
}

static void add_path(const struct oci_node *n, struct strbuf *out)
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
static int write_dir(struct writing *w, struct oci_node *n, struct err *err)
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
static int write_link(struct writing *w, struct oci_node *n, struct err *err)
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
static int write_file(struct writing *w, struct oci_node *n, struct err *err)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	struct oci_content *c = n->content;
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

static int follow(struct writing *w, struct oci_node *from, const char *path,
	const struct oci_need *need, struct err *err);

/* Write what is wanted at and below n, `depth` levels deep. */
static int write_below(struct writing *w, struct oci_node *n, unsigned depth,
	const struct oci_need *need, struct err *err)
{
	struct oci_node *c;

	if (n->type == OCI_NODE_FILE)
		return write_file(w, n, err);
	if (write_dir(w, n, err) < 0)
		return -1;
	if (depth <= n->written_depth)
		return 0;
	n->written_depth = depth;
	LIST_FOREACH (c, &n->children, sibling) {
		bool wanted = !need->name || str_eq(need->name, c->name);
		int rc = 0;

		if (c->type == OCI_NODE_DIR)
			rc = write_below(w, c, depth - 1, need, err);
		else if (c->type == OCI_NODE_FILE && wanted)
			rc = write_file(w, c, err);
		else if (c->type == OCI_NODE_SYMLINK && wanted && !c->written)
			rc = write_link(w, c, err) < 0 ? -1 : follow(w, n, c->target, need, err);
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* Write the directories and links on a path, and what is wanted at its end. A dangling path is
 * written as far as it exists. */
static int follow(struct writing *w, struct oci_node *from, const char *path,
	const struct oci_need *need, struct err *err)
{
	cleanup_oci_way struct oci_way way = {
		STRBUF_INIT, 0, 0, path[0] == '/' ? w->t->root : from};
	struct oci_node *now;
	enum oci_step step;
	int rc;

	if (w->nested == NESTED_MAX)
		return err_set(err, ERR_INVALID, "too many levels of links below %.100s",
			log_esc(need->dir));
	strbuf_adds(&way.text, path);
	while ((step = oci_way_step(w->t, &way, false, &now, err)) == OCI_STEP_ON) {
		if (now->type == OCI_NODE_DIR && write_dir(w, now, err) < 0)
			return -1;
		if (now->type == OCI_NODE_SYMLINK && write_link(w, now, err) < 0)
			return -1;
	}
	if (step == OCI_STEP_ERROR)
		return -1;
	if (step == OCI_STEP_NONE)
		return 0;
	w->nested++;
	rc = write_below(w, way.in, need->depth, need, err);
	w->nested--;
	return rc;
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
