/* SPDX-License-Identifier: MIT */
/* Layers as lines; what is made of them stands in a directory that a test compares as text. */
#include "config.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/oci/tree.h"

static char folder[] = "/tmp/tec-test-tree.XXXXXX";
static int into, stage;
static struct oci_tree *tree;
static unsigned dropped;

static void on_drop(void *arg, unsigned content)
{
	dropped |= 1u << content;
}

static void setup(void)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	cr_assert(mkdtemp(folder));
	cleanup_free char *a = xasprintf("%s/into", folder), *b = xasprintf("%s/stage", folder);

	cr_assert_eq(mkdir(a, 0700) + mkdir(b, 0700), 0);
	into = open(a, O_RDONLY | O_DIRECTORY);
	stage = open(b, O_RDONLY | O_DIRECTORY);
	for (unsigned i = 0; i < 10; i++) {
		cleanup_free char *name = xasprintf("f%u", i);
		int fd = openat(stage, name, O_CREAT | O_WRONLY, 0600);

		cr_assert_eq(write(fd, name, 2), 2);
		close(fd);
	}
	tree = oci_tree_new(on_drop, NULL);
	dropped = 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void teardown(void)
{
	oci_tree_free(tree);
	close(into);
	close(stage);
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* "f PATH N", "d PATH", "l PATH TARGET", "h PATH TARGET", "o PATH", "- PATH" hides, "* DIR" hides all
 * in it, "" is the next layer. */
static int entry(const char *line, struct err *err)
{
	char path[200] = "", other[200] = "";

	err_clear(err);
	(void)sscanf(line + (*line != '\0'), " %199s %199s", path, other);
	switch (*line) {
	case 'f':
		return oci_tree_file(tree, path, (unsigned)atoi(other), err);
	case 'd':
		return oci_tree_dir(tree, path, err);
	case 'l':
		return oci_tree_symlink(tree, path, other, err);
	case 'h':
		return oci_tree_hardlink(tree, path, other, err);
	case 'o':
		return oci_tree_other(tree, path, err);
	case '-':
		return oci_tree_hide(tree, path, err);
	case '*':
		return oci_tree_hide_all(tree, str_eq(path, ".") ? "" : path, err);
	default:
		oci_tree_next_layer(tree);
		return 0;
	}
}

static struct strbuf seen;

static int list_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *name = path + strlen(folder) + strlen("/into");
	char text[100] = "";

	if (type == FTW_SL)
		cr_assert(readlink(path, text, sizeof(text) - 1) > 0);
	if (type == FTW_F) {
		FILE *f = fopen(path, "r");

		cr_assert(f && fgets(text, sizeof(text), f));
		fclose(f);
	}
	if (*name)
		strbuf_addf(&seen, "%s%s%s ", name + 1, *text ? "=" : "/", text);
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All that stands in the directory, sorted. */
static char *listed(void)
{
	cleanup_free char *path = xasprintf("%s/into", folder);
	struct strbuf out = STRBUF_INIT;
	char *words[64], *at;
	size_t n = 0;

	strbuf_reset(&seen);
	nftw(path, list_one, 16, FTW_PHYS);
	at = seen.data;
	for (char *w; at && (w = strsep(&at, " "));)
		if (*w)
			words[n++] = w;
	qsort(words, n, sizeof(*words), by_text);
	for (size_t i = 0; i < n; i++)
		strbuf_addf(&out, "%s%s", i ? " " : "", words[i]);
	return strbuf_steal(&out);
}

static const struct oci_need needs[] = {{"k", 2, "v", ".u"}, {"e", 3, NULL, NULL}};

struct layers {
	const char *lines[12];
	const char *want; /* what stands there; after '!': what is said against it */
};

static void check(const struct layers *t)
{
	struct err err = ERR_INIT;
	int rc = 0;

	setup();
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(t->lines) && t->lines[i]; i++)
		rc = entry(t->lines[i], &err);
	if (rc == 0)
		rc = oci_tree_write(tree, into, stage, needs, ARRAY_LEN(needs), &err);
	cleanup_free char *have = listed();

	cr_assert_eq(rc, *t->want == '!' ? -1 : 0, "%s: %s", t->lines[0], err.text);
	if (rc < 0) {
		cr_assert(strstr(err.text, t->want + 1), "%s", err.text);
		cr_assert_str_eq(have, "", "it leaves something");
	} else {
		cr_assert_str_eq(have, t->want);
	}
	teardown();
}

Test(oci_tree, only_what_is_needed_is_made)
{
	static const struct layers t[] = {
		{{"f k/1/v 1", "f k/1/other 2", "f x/v 3", "f k/1/2/v 4"},
			"k/ k/1/ k/1/2/ k/1/v=f1"},
		{{"f e/a/b/c 1", "f e/a/b/c2/d 2", "d other"},
			"e/ e/a/ e/a/b/ e/a/b/c2/ e/a/b/c=f1"},
		{{"d e"}, "e/"},
		{{"d x"}, ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		check(&t[i]);
}

Test(oci_tree, a_later_layer_replaces_and_hides)
{
	static const struct layers t[] = {
		{{"f k/1/v 1", "", "f k/1/v 2"}, "k/ k/1/ k/1/v=f2"},
		{{"f k/1/v 1", "", "o k/1/v"}, "k/ k/1/"},
		{{"f k/1/v 1", "f k/2/v 2", "", "- k/1"}, "k/ k/2/ k/2/v=f2"},
		{{"f k/1/v 1", "f k/2/v 2", "", "* k"}, "k/"},
		{{"f k/1/v 1", "", "* ."}, ""},
		/* What the same layer makes stays, wherever in it the whiteout stands. */
		{{"f k/1/v 1", "f k/1/w 3", "", "f k/1/v 2", "- k/1"}, "k/ k/1/ k/1/v=f2"},
		{{"f k/1/v 1", "", "- k/1", "f k/1/v 2"}, "k/ k/1/ k/1/v=f2"},
		{{"f k/1/v 1", "f k/2/v 3", "", "f k/1/v 2", "* k"}, "k/ k/1/ k/1/v=f2"},
		/* A name that becomes something else, and one that stays a folder. */
		{{"f k/1/v 1", "", "l k ->", "f k2/1/v 2"}, "k=->"},
		{{"f k/1/v 1", "", "f k 2"}, "k=f2"},
		{{"f k/1/v 1", "", "d k"}, "k/ k/1/ k/1/v=f1"},
		{{"l k e", "", "d k", "f k/1/v 1"}, "k/ k/1/ k/1/v=f1"},
		{{"- nothing", "* nothing", "- k/1/v"}, ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		check(&t[i]);
}

Test(oci_tree, links_are_followed_inside)
{
	static const struct layers t[] = {
		{{"l k real", "f real/1/v 1"}, "k=real real/ real/1/ real/1/v=f1"},
		/* An entry whose folder is a link. */
		{{"l lib k", "f lib/1/v 1"}, "k/ k/1/ k/1/v=f1"},
		{{"l lib /k", "f lib/1/v 1"}, "k/ k/1/ k/1/v=f1"},
		{{"l lib ../../../k", "f lib/1/v 1"}, "k/ k/1/ k/1/v=f1"},
		{{"l lib k", "f k/1/v 1", "", "- lib/1"}, "k/"},
		{{"f boot/z 1", "l k/1/v ../../boot/z"},
			"boot/ boot/z=f1 k/ k/1/ k/1/v=../../boot/z"},
		{{"f boot/z 1", "l b /boot", "l k/1/v /b/./z"},
			"b=/boot boot/ boot/z=f1 k/ k/1/ k/1/v=/b/./z"},
		{{"l k/1/v /etc/shadow"}, "k/ k/1/ k/1/v=/etc/shadow"},
		{{"l k/1/v v"}, "!too many symbolic links"},
		{{"l a b", "l b a", "f a/x 1"}, "!too many symbolic links"},
		{{"f k/1 1", "f k/1/v 2"}, "!below a file"},
		/* A link to what is not wanted leaves that out. */
		{{"l k/1/build /usr", "f usr/x 1"}, "k/ k/1/"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		check(&t[i]);
}

Test(oci_tree, hard_links_share_what_was_kept)
{
	static const struct layers t[] = {
		{{"f o/1 1", "h k/1/v o/1", "h e/x k/1/v"}, "e/ e/x=f1 k/ k/1/ k/1/v=f1"},
		{{"f o/1 1", "", "h k/1/v o/1", "- o/1"}, "k/ k/1/ k/1/v=f1"},
		{{"f k/1/v 1", "h k/1/v k/1/v"}, "k/ k/1/ k/1/v=f1"},
		{{"l o/1 ../z", "f z 3", "h e/v o/1"}, "e/ e/v=../z z=f3"},
		{{"h k/1/v o/gone"}, "!not an EFI program"},
		{{"h other o/gone"}, ""},
		{{"d o", "h k/1/v o"}, "!to a directory"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		check(&t[i]);
}

Test(oci_tree, content_without_a_name_is_dropped, .init = setup, .fini = teardown)
{
	struct err err = ERR_INIT;

	cr_assert_eq(entry("f a/x 1", &err) + entry("h a/y a/x", &err) + entry("f a/z 2", &err), 0);
	cr_assert_eq(entry("o a/x", &err), 0);
	cr_assert_eq(dropped, 0, "a/y has it");
	entry("", &err);
	cr_assert_eq(entry("- a", &err), 0);
	cr_assert_eq(dropped, 1u << 1 | 1u << 2);
}

Test(oci_tree, it_has_bounds, .init = setup, .fini = teardown)
{
	cleanup_strbuf struct strbuf deep = STRBUF_INIT;
	struct err err = ERR_INIT;
	int rc = 0;

	/* Links let names be deeper than a path is long. */
	for (unsigned i = 0; i < OCI_TREE_DEPTH_MAX / 2; i++)
		strbuf_adds(&deep, i ? "/d" : "d");
	cr_assert_eq(oci_tree_dir(tree, strbuf_str(&deep), &err), 0, "%s", err.text);
	cr_assert_eq(oci_tree_symlink(tree, "a", strbuf_str(&deep), &err), 0);
	for (unsigned i = 0; rc == 0 && i < 4; i++) {
		cleanup_free char *path = xasprintf("a/%s", strbuf_str(&deep));
		cleanup_free char *to = xasprintf("%s/%s", i ? "b" : "a", strbuf_str(&deep));

		rc = oci_tree_dir(tree, path, &err);
		if (rc == 0)
			rc = oci_tree_symlink(tree, "a", to, &err);
	}
	cr_assert_eq(rc, -1);
	cr_assert(strstr(err.text, "levels deep") || strstr(err.text, "links"), "%s", err.text);
	err_clear(&err);
	for (unsigned i = 0; err.kind == ERR_NONE && i <= OCI_TREE_NODES_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%u", i);
		(void)!oci_tree_dir(tree, name, &err);
	}
	cr_assert(strstr(err.text, "more than 300000"), "%s", err.text);
}

/* Wanted links that lead to folders with wanted links, and so on. */
Test(oci_tree, links_that_lead_to_links_end, .init = setup, .fini = teardown)
{
	struct err err = ERR_INIT;

	for (unsigned i = 0; i < 1000; i++) {
		cleanup_free char *from = i ? xasprintf("x%u/l", i) : xstrdup("e/l");
		cleanup_free char *to = xasprintf("/x%u", i + 1);

		cr_assert_eq(oci_tree_symlink(tree, from, to, &err), 0, "%s", err.text);
	}
	cr_assert_eq(oci_tree_write(tree, into, stage, needs, ARRAY_LEN(needs), &err), -1);
	cr_assert(strstr(err.text, "levels of links"), "%s", err.text);
	cleanup_free char *have = listed();

	cr_assert_str_eq(have, "");
}

Test(oci_tree, needs_say_what_is_wanted)
{
	static const struct {
		const char *path;
		bool wanted;
	} t[] = {{"k/1/v", true}, {"k/v", true}, {"k/1/2/v", false}, {"k/1/w", false}, {"k", false},
		{"k/1/w.u", true}, {"k/1/2/w.u", false}, {"k/1/w.u.x", false}, {"kk/v", false},
		{"x/k/v", false}, {"e/a/b/c", true}, {"e/a/b/c/d", false}};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_assert_eq(oci_need_has(needs, ARRAY_LEN(needs), t[i].path), t[i].wanted, "%s",
			t[i].path);
}
