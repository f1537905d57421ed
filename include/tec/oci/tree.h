/* SPDX-License-Identifier: MIT */
/*
 * An image's files while its layers are put on top of each other: only names, so that nothing a layer
 * says (links, whiteouts, names with links in front of them) is ever done to a file system. Contents
 * are numbers that the caller keeps files for. In the end what is needed is made, in a directory that
 * was empty.
 *
 * Links in front of a name are followed as container runtimes do: inside the image's root. Bounded:
 * OCI_TREE_NODES_MAX names, OCI_TREE_DEPTH_MAX levels, 40 links on one way.
 */
#ifndef TEC_OCI_TREE_H
#define TEC_OCI_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"

#define OCI_TREE_NODES_MAX 300000u
#define OCI_TREE_DEPTH_MAX 2048u

/* What is wanted of an image: at and below a directory, this many levels deep. */
struct oci_need {
	const char *dir;  /* "usr/lib/modules" */
	unsigned depth;   /* 1: only what is in the directory itself */
	const char *name; /* of the files that are wanted; NULL: all */
};

struct oci_tree;
/* drop: nothing has this content any more. */
struct oci_tree *oci_tree_new(void (*drop)(void *arg, unsigned content), void *arg);
void oci_tree_free(struct oci_tree *t); /* does not call drop; NULL is fine */

/* What follows is of the next layer. The first one need not be announced. */
void oci_tree_next_layer(struct oci_tree *t);

/* One entry each; path as in oci/tar.h. ERR_INVALID: no runtime could make it either, or a bound is
 * reached. */
int oci_tree_dir(struct oci_tree *t, const char *path, struct err *err) MUST_CHECK;
int oci_tree_symlink(
	struct oci_tree *t, const char *path, const char *target, struct err *err) MUST_CHECK;
int oci_tree_hardlink(
	struct oci_tree *t, const char *path, const char *target, struct err *err) MUST_CHECK;
int oci_tree_file(
	struct oci_tree *t, const char *path, unsigned content, struct err *err) MUST_CHECK;
/* A file whose content is not kept, a device: what the name meant before is gone. */
int oci_tree_other(struct oci_tree *t, const char *path, struct err *err) MUST_CHECK;
/* Whiteouts: of this name, and of all names in a directory, as far as earlier layers have them. */
int oci_tree_hide(struct oci_tree *t, const char *path, struct err *err) MUST_CHECK;
int oci_tree_hide_all(struct oci_tree *t, const char *dir, struct err *err) MUST_CHECK;

/* Whether a file with this path is wanted. */
bool oci_need_has(const struct oci_need *needs, size_t n, const char *path);
/*
 * Makes the wanted directories, files and links below into_fd, and what those links lead to. Content c
 * is moved there from file "fC" in stage_fd. Once per tree; a failure leaves nothing. ERR_INVALID: a wanted file is a link to
 * one whose content was not kept.
 */
int oci_tree_write(struct oci_tree *t, int into_fd, int stage_fd, const struct oci_need *needs,
	size_t n, struct err *err) MUST_CHECK;

#endif
