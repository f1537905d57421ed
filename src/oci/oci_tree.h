/* SPDX-License-Identifier: MIT */
/* Shared by tree.c (layers on top of each other) and tree_write.c (what is made of them). */
#ifndef TEC_OCI_TREE_INTERNAL_H
#define TEC_OCI_TREE_INTERNAL_H

#include <stdbool.h>
#include <sys/queue.h>

#include "tec/base/str.h"
#include "tec/base/table.h"
#include "tec/oci/tree.h"

/* Of one or more names (hard links). */
struct oci_content {
	unsigned number, refs;
	char *at; /* owned; where it was written first; NULL: nowhere yet */
};

enum oci_node_type { OCI_NODE_DIR, OCI_NODE_FILE, OCI_NODE_SYMLINK };

struct oci_node {
	struct table_link link;       /* in oci_tree.names; not the root */
	struct oci_node *dir;         /* NULL: the root */
	LIST_ENTRY(oci_node) sibling; /* in dir->children */
	LIST_HEAD(, oci_node) children;
	enum oci_node_type type;
	unsigned layer, depth;
	struct oci_content *content; /* of a FILE; NULL: it was not kept */
	char *target;                /* owned; of a SYMLINK */
	bool written;
	unsigned written_depth; /* of a DIR: how deep its children were */
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

/* A path that is being followed, its links inside the root. */
struct oci_way {
	struct strbuf text;
	size_t at; /* what is before it was followed */
	unsigned links;
	struct oci_node *in;
};
enum oci_step {
	OCI_STEP_ERROR = -1,
	OCI_STEP_OVER, /* nothing is left, `in` is the end */
	OCI_STEP_ON,   /* to *now: `in`, or a link that is followed next */
	OCI_STEP_NONE, /* there is no such name, or `in` is a file */
};
/* make: a name that does not exist becomes a directory. */
enum oci_step oci_way_step(
	struct oci_tree *t, struct oci_way *w, bool make, struct oci_node **now, struct err *err);
static inline void oci_way_fini(struct oci_way *w)
{
	strbuf_fini(&w->text);
}
#define cleanup_oci_way __attribute__((cleanup(oci_way_fini)))

#endif
