/* SPDX-License-Identifier: MIT */
/*
 * The files of an image while its layers are merged. Only names are kept, so nothing that a layer
 * contains (links, whiteouts, names below links) is ever applied to a file system. Contents are
 * numbers for which the caller keeps files. At the end the wanted files are written to an empty
 * directory.
 *
 * Links in a path are followed as container runtimes do: confined to the image's root. Limits:
 * OCI_TREE_NODES_MAX names, OCI_TREE_DEPTH_MAX levels, 40 links in one path.
 */
#ifndef TEC_OCI_TREE_H
#define TEC_OCI_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "tec/base/err.h"

#define OCI_TREE_NODES_MAX 300000u
#define OCI_TREE_DEPTH_MAX 2048u

/* Files wanted from an image: in and below a directory, up to this depth. */
struct oci_need {
	const char *dir; /* "usr/lib/modules" */
	unsigned depth;  /* 1: only the directory itself */
	/* Of the wanted files: a name, and how others end; both NULL: all. */
	const char *name, *ending;
};

struct oci_tree;
/* drop: called when no file has this content any more. */
struct oci_tree *oci_tree_new(void (*drop)(void *arg, unsigned content), void *arg);
void oci_tree_free(struct oci_tree *t); /* does not call drop; NULL is fine */

/* Start the next layer. The call is optional for the first one. */
void oci_tree_next_layer(struct oci_tree *t);

/* Add one entry; path as in oci/tar.h. ERR_INVALID: no runtime could create it either, or a limit
 * is reached. */
int oci_tree_dir(struct oci_tree *t, const char *path, struct err *err) MUST_CHECK;
int oci_tree_symlink(
	struct oci_tree *t, const char *path, const char *target, struct err *err) MUST_CHECK;
int oci_tree_hardlink(
	struct oci_tree *t, const char *path, const char *target, struct err *err) MUST_CHECK;
int oci_tree_file(
	struct oci_tree *t, const char *path, unsigned content, struct err *err) MUST_CHECK;
/* Add a device, or a file whose content is not kept: an earlier file of this name is gone. */
int oci_tree_other(struct oci_tree *t, const char *path, struct err *err) MUST_CHECK;
/* Whiteouts: remove this name, or all names in a directory, as far as earlier layers made them. */
int oci_tree_hide(struct oci_tree *t, const char *path, struct err *err) MUST_CHECK;
int oci_tree_hide_all(struct oci_tree *t, const char *dir, struct err *err) MUST_CHECK;

/* Check whether a file with this path is wanted. */
bool oci_need_has(const struct oci_need *needs, size_t n, const char *path);
/*
 * Write the wanted directories, files and links below into_fd, and what those links lead to.
 * Content c is moved from file "fC" in stage_fd. Call it once per tree; after a failure nothing
 * remains. ERR_INVALID: a wanted file is a link to one whose content was not kept.
 */
int oci_tree_write(struct oci_tree *t, int into_fd, int stage_fd, const struct oci_need *needs,
	size_t n, struct err *err) MUST_CHECK;

#endif
