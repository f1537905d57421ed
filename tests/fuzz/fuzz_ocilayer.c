/* SPDX-License-Identifier: MIT */
/*
 * A layer of a registry that lies. The first byte chooses: bit 0 how it comes (in one piece, or in
 * pieces of as many bytes as its upper bits say), the rest is the layer: tar, gzip or zstd. Twice, as
 * two layers. Names that come out are names inside, and nothing is written anywhere: contents are
 * numbers here.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/oci/inflate.h"
#include "tec/oci/tar.h"
#include "tec/oci/tree.h"

#define TOTAL_MAX (1u << 22)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
	struct oci_tree *tree;
	struct oci_tar *tar;
	unsigned next, dropped;
	char *path;
	uint64_t left;
	bool open;
};

static void on_drop(void *arg, unsigned content)
{
	struct reading *r = arg;

	assert(content < r->next);
	r->dropped++;
}

static void assert_path(const char *p)
{
	assert(*p && *p != '/' && p[strlen(p) - 1] != '/' && strlen(p) <= OCI_TAR_PATH_MAX);
	while (*p) {
		size_t n = strcspn(p, "/");

		assert(n > 0 && n <= OCI_TAR_NAME_MAX);
		assert(!(n == 1 && p[0] == '.') && !(n == 2 && p[0] == '.' && p[1] == '.'));
		p += n;
		p += *p == '/';
	}
}

static int on_entry(void *arg, const struct oci_tar_entry *e, struct err *err)
{
	struct reading *r = arg;

	assert(!r->open);
	assert_path(e->path);
	assert(e->type == OCI_TAR_FILE || !e->size);
	switch (e->type) {
	case OCI_TAR_FILE:
		r->open = true;
		r->left = e->size;
		r->path = xstrdup(e->path);
		return 0;
	case OCI_TAR_DIR:
		return oci_tree_dir(r->tree, e->path, err);
	case OCI_TAR_SYMLINK:
		assert(*e->target);
		return oci_tree_symlink(r->tree, e->path, e->target, err);
	case OCI_TAR_HARDLINK:
		assert_path(e->target);
		return oci_tree_hardlink(r->tree, e->path, e->target, err);
	case OCI_TAR_SPARSE:
		return oci_tree_hide(r->tree, e->path, err);
	default:
		return oci_tree_hide_all(r->tree, e->path, err);
	}
}

static int on_data(void *arg, const void *data, size_t len, struct err *err)
{
	struct reading *r = arg;

	assert(r->open && len && len <= r->left);
	r->left -= len;
	return 0;
}

static int on_done(void *arg, struct err *err)
{
	struct reading *r = arg;
	cleanup_free char *path = steal_ptr(&r->path);

	assert(r->open && !r->left);
	r->open = false;
	return oci_tree_file(r->tree, path, r->next++, err);
}

static const struct oci_tar_ops ops = {.entry = on_entry, .data = on_data, .done = on_done};

static int on_plain(void *arg, const void *data, size_t len, struct err *err)
{
	struct reading *r = arg;

	return oci_tar_add(r->tar, data, len, err);
}

static void read_layer(struct reading *r, const uint8_t *data, size_t size, size_t step)
{
	struct oci_inflate *z = oci_inflate_new(TOTAL_MAX, on_plain, r);
	struct err err = ERR_INIT;
	int rc = 0;

	r->tar = oci_tar_new(&ops, r);
	r->open = false;
	oci_tree_next_layer(r->tree);
	for (size_t at = 0; rc == 0 && at < size; at += step) {
		size_t n = size - at < step ? size - at : step;
		cleanup_free char *copy = xmemdup(data + at, n);

		rc = oci_inflate_add(z, copy, n, &err);
	}
	if (rc == 0)
		rc = oci_inflate_end(z, &err);
	if (rc == 0)
		rc = oci_tar_end(r->tar, &err);
	assert(rc ? err.kind == ERR_INVALID : !err_is_set(&err));
	assert(rc || !r->open);
	assert(oci_inflate_total(z) <= TOTAL_MAX);
	oci_inflate_free(z);
	oci_tar_free(r->tar);
	free(r->path);
	r->path = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reading r = {.next = 0};
	size_t step;

	if (size < 1)
		return 0;
	step = data[0] & 1 ? (size_t)(data[0] >> 1) + 1 : size;
	r.tree = oci_tree_new(on_drop, &r);
	read_layer(&r, data + 1, size - 1, step);
	read_layer(&r, data + 1, size - 1, step);
	assert(r.dropped <= r.next);
	oci_tree_free(r.tree);
	return 0;
}
