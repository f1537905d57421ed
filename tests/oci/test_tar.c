/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "oci/tar_builder.h"
#include "tec/base/mem.h"
#include "tec/oci/tar.h"

/* Everything that was handed out, one line each. */
struct got {
	struct strbuf text;
	const char *refuse; /* the entry with this path */
};

static int on_entry(void *arg, const struct oci_tar_entry *e, struct err *err)
{
	static const char letters[] = "fdlhso";
	struct got *g = arg;

	strbuf_addf(&g->text, "%c %s", letters[e->type], e->path);
	if (e->type == OCI_TAR_SYMLINK || e->type == OCI_TAR_HARDLINK)
		strbuf_addf(&g->text, " > %s", e->target);
	strbuf_addc(&g->text, e->size ? '=' : '\n');
	return str_eq(g->refuse, e->path) ? err_set(err, ERR_DENIED, "no") : 0;
}

static int on_data(void *arg, const void *data, size_t len, struct err *err)
{
	struct got *g = arg;

	strbuf_add(&g->text, data, len);
	return 0;
}

static int on_done(void *arg, struct err *err)
{
	struct got *g = arg;

	if (g->text.len && g->text.data[g->text.len - 1] != '\n')
		strbuf_addc(&g->text, '\n');
	return 0;
}

static const struct oci_tar_ops ops = {.entry = on_entry, .data = on_data, .done = on_done};

/* In pieces of this length. */
static int read_all(const struct strbuf *b, size_t step, struct got *g, struct err *err)
{
	struct oci_tar *t = oci_tar_new(&ops, g);
	int rc = 0;

	err_clear(err);
	for (size_t at = 0; rc == 0 && at < b->len; at += step) {
		size_t n = b->len - at < step ? b->len - at : step;
		cleanup_free char *copy = xmemdup(b->data + at, n);

		rc = oci_tar_add(t, copy, n, err);
	}
	if (rc == 0)
		rc = oci_tar_end(t, err);
	oci_tar_free(t);
	return rc;
}

static void expect(const struct strbuf *b, const char *want)
{
	static const size_t steps[] = {1, 7, 511, 512, 513, 1 << 20};
	struct err err = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct got g = {STRBUF_INIT, NULL};

		cr_assert_eq(read_all(b, steps[i], &g, &err), 0, "%s", err.text);
		cr_assert_str_eq(strbuf_str(&g.text), want);
		strbuf_fini(&g.text);
	}
}

static void refuse(const struct strbuf *b, const char *why)
{
	struct got g = {STRBUF_INIT, NULL};
	struct err err = ERR_INIT;

	cr_assert_eq(read_all(b, 512, &g, &err), -1, "%s: %s", why, strbuf_str(&g.text));
	cr_assert_eq(err.kind, ERR_INVALID);
	cr_assert(strstr(err.text, why), "%s", err.text);
	strbuf_fini(&g.text);
}

Test(oci_tar, entries_of_every_type)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	tar_entry(&b, '5', "./a/", NULL, NULL);
	tar_entry(&b, '0', "./a//b", NULL, "text");
	tar_entry(&b, '0', "/empty", NULL, NULL);
	tar_entry(&b, '\0', "old", NULL, "x");
	tar_entry(&b, '\0', "old/", NULL, NULL);
	tar_entry(&b, '2', "l", "../../out", NULL);
	tar_entry(&b, '1', "h", "./a/b", NULL);
	tar_entry(&b, '3', "dev", NULL, NULL);
	tar_entry(&b, 'Z', "what", NULL, "content of nobody knows what");
	tar_entry(&b, '5', "./", NULL, NULL);
	tar_entry(&b, 'g', "pax_global", NULL, "20 path=elsewhere..\n");
	tar_head(&b, &(struct tar_head){.name = "n", .prefix = "p/q", .type = '0'});
	tar_end(&b);
	strbuf_adds(&b, "whatever comes after the end");
	expect(&b, "d a\nf a/b=text\nf empty\nf old=x\nd old\nl l > ../../out\nh h > a/b\no dev\n"
		   "o what\nf p/q/n\n");
}

Test(oci_tar, long_names_of_gnu_and_pax)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	char name[301], pax[400];

	memset(name, 'n', 300);
	name[100] = name[200] = '/';
	name[300] = '\0';
	tar_entry(&b, 'L', "././@LongLink", NULL, name);
	tar_entry(&b, 'K', "././@LongLink", NULL, "../target");
	tar_entry(&b, '2', "short", "s", NULL);
	snprintf(pax, sizeof(pax), "310 path=%s\n18 linkpath=t/arg\n10 size=3\n", name);
	cr_assert_eq(strlen(pax), 310 + 18 + 10);
	tar_entry(&b, 'x', "PaxHeaders", NULL, pax);
	tar_head(&b, &(struct tar_head){.name = "short", .type = '0', .size = 77});
	tar_data(&b, "abc", 3);
	tar_entry(&b, 'x', "PaxHeaders", NULL, "22 GNU.sparse.major=1\n");
	tar_entry(&b, '0', "sparse", NULL, "map and pieces");
	/* Nothing of it is left for the next one. */
	tar_entry(&b, '0', "last", NULL, "1");
	tar_end(&b);
	cleanup_free char *want =
		xasprintf("l %s > ../target\nf %s=abc\ns sparse\nf last=1\n", name, name);
	expect(&b, want);
}

Test(oci_tar, an_archive_may_lack_its_end)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	expect(&b, "");
	tar_entry(&b, '0', "a", NULL, "1");
	expect(&b, "f a=1\n");
}

Test(oci_tar, what_could_be_read_in_two_ways_is_refused)
{
	static const struct {
		char type;
		const char *name, *link, *text, *why;
	} t[] = {
		{'0', "../x", NULL, NULL, "\"..\""},
		{'0', "a/../b", NULL, NULL, "\"..\""},
		{'0', "a/..", NULL, NULL, "\"..\""},
		{'1', "a", "../x", NULL, "\"..\""},
		{'1', "a", NULL, NULL, "a link target is empty"},
		{'2', "a", NULL, NULL, "a link target is empty"},
		{'0', "", NULL, "x", "an entry has no name"},
		{'0', "./", NULL, "x", "a directory has content"},
		{'0', "dir/", NULL, "x", "a directory has content"},
		{'x', "", NULL, "3 path=a\n", "is not terminated"},
		{'x', "", NULL, "99 path=a\n", "wrong length"},
		{'x', "", NULL, "0 path=a\n", "wrong length"},
		{'x', "", NULL, "-9 path=a\n", "wrong length"},
		{'x', "", NULL, "99999999999 path=a\n", "wrong length"},
		{'x', "", NULL, "path=a\n", "wrong length"},
		{'x', "", NULL, "9 path=ab\n", "is not terminated"},
		{'x', "", NULL, "9 path a\n", "is not terminated"},
		{'x', "", NULL, "10 path=ab", "is not terminated"},
		{'x', "", NULL, "11 size=-1\n", "size is not a number"},
		{'x', "", NULL, "29 size=99999999999999999999\n\n\n", "size is not a number"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_strbuf struct strbuf b = STRBUF_INIT;

		tar_entry(&b, t[i].type, t[i].name, t[i].link, t[i].text);
		tar_entry(&b, '0', "next", NULL, NULL);
		refuse(&b, t[i].why);
	}
}

/* Byte `at` of the first header, whose sum is right again. */
static void patch(struct strbuf *b, size_t at, const void *bytes, size_t len)
{
	unsigned sum = 0;

	memcpy(b->data + at, bytes, len);
	memset(b->data + 148, ' ', 8);
	for (size_t i = 0; i < 512; i++)
		sum += (uint8_t)b->data[i];
	snprintf(b->data + 148, 8, "%06o", sum);
}

Test(oci_tar, headers_are_checked)
{
	static const struct {
		size_t at, len;
		const char *bytes, *why;
	} t[] = {
		{124, 12, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "out of range"},
		{124, 12, "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff", "out of range"},
		{124, 12, "\x80\x00\x00\x00\x00\x00\x0f\xff\xff\xff\xff\xff", "impossible size"},
		{124, 4, "12x4", "not octal"},
		{156, 1, "S", NULL},
		{482, 1, "\1", NULL},
		{156, 1, "L", "ends inside"},
	};
	cleanup_strbuf struct strbuf b = STRBUF_INIT, more = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		strbuf_reset(&b);
		tar_entry(&b, '0', "a", NULL, "1");
		patch(&b, t[i].at, t[i].bytes, t[i].len);
		if (t[i].why)
			refuse(&b, t[i].why);
	}
	/* Sparse headers that go on in a further block would have to be followed. */
	strbuf_reset(&b);
	tar_entry(&b, 'S', "a", NULL, "1");
	expect(&b, "s a\n");
	patch(&b, 482, "\1", 1);
	refuse(&b, "too many pieces");
	/* One bit, and no new sum. */
	strbuf_reset(&b);
	tar_entry(&b, '0', "a", NULL, "1");
	b.data[0] ^= 1;
	refuse(&b, "wrong checksum");
	/* Names, or pax records, without end. */
	strbuf_reset(&b);
	tar_head(&b, &(struct tar_head){.name = "x", .type = 'x', .size = OCI_TAR_EXTRA_MAX + 1});
	refuse(&b, "larger than 1048576 bytes");
	/* What comes after one block of zeros is neither the end nor an entry. */
	strbuf_reset(&b);
	tar_end(&b);
	b.len = 512;
	tar_entry(&b, '0', "a", NULL, "1");
	refuse(&b, "follows a block of zeros");
}

Test(oci_tar, names_are_bounded)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT, name = STRBUF_INIT;

	for (unsigned i = 0; i < OCI_TAR_NAME_MAX + 1; i++)
		strbuf_addc(&name, 'n');
	tar_entry(&b, 'L', "", NULL, strbuf_str(&name));
	tar_entry(&b, '0', "a", NULL, NULL);
	refuse(&b, "a name is longer than 255 bytes");
	while (name.len <= OCI_TAR_PATH_MAX)
		strbuf_adds(&name, "/d");
	strbuf_reset(&b);
	tar_entry(&b, 'L', "", NULL, strbuf_str(&name));
	tar_entry(&b, '0', "a", NULL, NULL);
	refuse(&b, "a path is longer than 4095 bytes");
}

Test(oci_tar, every_end_but_between_entries_is_too_early)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	size_t all;

	tar_entry(&b, 'L', "", NULL, "long");
	tar_entry(&b, '0', "a", NULL, "12345");
	all = b.len;
	for (b.len = 1; b.len < all; b.len += 37)
		refuse(&b, "ends inside an entry");
}

Test(oci_tar, a_caller_may_end_it)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct got g = {STRBUF_INIT, "a"};
	struct err err = ERR_INIT;

	tar_entry(&b, '0', "a", NULL, "12345");
	cr_assert_eq(read_all(&b, 100, &g, &err), -1);
	cr_assert_eq(err.kind, ERR_DENIED);
	strbuf_fini(&g.text);
}
