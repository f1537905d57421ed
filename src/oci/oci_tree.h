/* SPDX-License-Identifier: MIT */
/* Shared by tree.c (merging layers) and tree_write.c (writing the result). */
#ifndef TEC_OCI_TREE_INTERNAL_H
#define TEC_OCI_TREE_INTERNAL_H

#include <stdbool.h>
#include <sys/queue.h>

#include "tec/base/str.h"
#include "tec/base/table.h"
#include "tec/oci/tree.h"

/* The content of a file with one or more names (hard links). */
struct oci_content {
	unsigned number, refs;
	char *at; /* owned; the first path it was written to, or NULL */
};

enum oci_node_type { OCI_NODE_DIR, OCI_NODE_FILE, OCI_NODE_SYMLINK };

struct oci_node {
	struct table_link link;       /* in oci_tree.names; not the root */
	struct oci_node *dir;         /* NULL: the root */
	LIST_ENTRY(oci_node) sibling; /* in dir->children */
	LIST_HEAD(, oci_node) children;
	enum oci_node_type type;
	unsigned layer, depth;       /* the last layer that made it; levels below the root */
	struct oci_content *content; /* of a FILE; NULL: content not kept */
	char *target;                /* owned; of a SYMLINK */
	bool written;
	unsigned written_depth; /* of a DIR: the depth to which its children were written */
	char name[];
};

struct oci_tree {
	struct oci_node *root; /* owned, with all below it */
	struct table names;
	unsigned n, layer;
	void (*drop)(void *arg, unsigned content);
	void *arg;
};

struct oci_node *oci_node_find(
	const struct oci_tree *t, const struct oci_node *dir, const char *name, size_t len);

/* A path that is being resolved, with links confined to the root. */
struct oci_way {
	struct strbuf text;
	size_t at;           /* offset of the part still to resolve */
	unsigned links;      /* followed so far */
	struct oci_node *in; /* where it has got to */
};
enum oci_step {
	OCI_STEP_ERROR = -1,
	OCI_STEP_OVER, /* done: `in` is the end */
	OCI_STEP_ON,   /* moved to *now: `in`, or a link to follow next */
	OCI_STEP_NONE, /* the name does not exist, or `in` is a file */
};
/* Resolve the next component. make: create a missing name as a directory. */
enum oci_step oci_way_step(
	struct oci_tree *t, struct oci_way *w, bool make, struct oci_node **now, struct err *err);
static inline void oci_way_fini(struct oci_way *w)
{
	strbuf_fini(&w->text);
}
#define cleanup_oci_way __attribute__((cleanup(oci_way_fini)))

#endif
