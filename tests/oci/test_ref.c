/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/oci/ref.h"

#define HEX    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define D      "@sha256:" HEX
#define TEN(s) s s s s s s s s s s

Test(oci_ref, well_formed_references)
{
	static const struct {
		const char *text, *registry, *repository;
	} t[] = {
		{"debian" D, "docker.io", "library/debian"},
		{"debian:12" D, "docker.io", "library/debian"},
		{"library/debian" D, "docker.io", "library/debian"},
		{"fedora/coreos" D, "docker.io", "fedora/coreos"},
		{"docker.io/debian" D, "docker.io", "library/debian"},
		{"index.docker.io/debian" D, "docker.io", "library/debian"},
		{"docker.io/a/b/c" D, "docker.io", "a/b/c"},
		{"quay.io/fedora/fedora-coreos:stable" D, "quay.io", "fedora/fedora-coreos"},
		{"QUAY.io/a" D, "quay.io", "a"},
		{"MYHOST/a" D, "myhost", "a"},
		{"localhost/a" D, "localhost", "a"},
		{"localhost:5000/a:b" D, "localhost:5000", "a"},
		{"host:5000/a" D, "host:5000", "a"},
		{"10.0.0.1:65535/a" D, "10.0.0.1:65535", "a"},
		{"[::1]:5000/a" D, "[::1]:5000", "a"},
		{"[2001:DB8::1]/a/b:c" D, "[2001:db8::1]", "a/b"},
		{"a.b/c__d/e-f--g.h_i" D, "a.b", "c__d/e-f--g.h_i"},
		{"a.b/c:_X.-9" D, "a.b", "c"},
		/* A short name that looks like a tag: what stands before the last ':' is the name.
		 */
		{"host:5000" D, "docker.io", "library/host"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		struct oci_ref r;

		cr_assert_eq(oci_ref_parse(t[i].text, &r, &err), 0, "%s: %s", t[i].text, err.text);
		cr_assert_str_eq(r.registry, t[i].registry);
		cr_assert_str_eq(r.repository, t[i].repository);
		cr_assert_str_eq(r.digest, "sha256:" HEX);
	}
}

static const char *const malformed[] = {
	"",
	"@",
	D,
	"/" D,
	":" D,
	"debian",
	"debian:12",
	"quay.io/a/b:latest",
	/* digests */
	"a@sha256:",
	"a@sha256:" HEX "0",
	"a@sha256:0123",
	"a@SHA256:" HEX,
	"a@sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
	"a@sha256:g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	"a@sha512:" HEX HEX,
	"a@sha512:" HEX,
	"a@" HEX,
	"a" D " ",
	" a" D,
	"a" D "\n",
	"a" D D,
	"a@sha512:" HEX D,
	"a@b" D,
	/* tags */
	"a:" D,
	"a:b:c" D,
	"a:.b" D,
	"a:-b" D,
	"a:b/c" D,
	"a:\xc3\xa4" D,
	"a:" TEN("0123456789abc") D,
	/* hosts */
	"host:/a" D,
	"host:0/a" D,
	"host:05/a" D,
	"host:65536/a" D,
	"host:1x/a" D,
	"host:100000/a" D,
	":5000/a" D,
	"-a.b/c" D,
	"a-.b/c" D,
	"a..b/c" D,
	".a/c" D,
	"a./c" D,
	"a_b.c/d" D,
	"[::1/a" D,
	"[]/a" D,
	"[1]/a" D,
	"[::1]5/a" D,
	"[::1]:/a" D,
	"[::1%25eth0]/a" D,
	"[g::]/a" D,
	"::1/a" D,
	"u@h.x/a" D,
	"u:p@h.x/a" D,
	"https://quay.io/a" D,
	"h.x:80:80/a" D,
	"a.b\\c/d" D,
	/* repositories */
	"quay.io/" D,
	"quay.io//a" D,
	"quay.io/a/" D,
	"quay.io/a//b" D,
	"quay.io/A" D,
	"quay.io/a b" D,
	"quay.io/../b" D,
	"quay.io/a/.b" D,
	"quay.io/a./b" D,
	"quay.io/a..b" D,
	"quay.io/a___b" D,
	"quay.io/_a" D,
	"quay.io/a_" D,
	"quay.io/-a" D,
	"quay.io/a%2fb" D,
	"quay.io/a?b" D,
	"quay.io/a#b" D,
	"quay.io/\xc3\xa4" D,
	"/a" D,
	"quay.io/a\r\nX: y" D,
};

Test(oci_ref, malformed_references_are_invalid)
{
	for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
		struct err err = ERR_INIT;
		struct oci_ref r;

		cr_assert_eq(oci_ref_parse(malformed[i], &r, &err), -1, "%s", malformed[i]);
		cr_assert_eq(err.kind, ERR_INVALID);
		cr_assert(str_starts(err.text, "image reference: "), "%s", err.text);
	}
}

/* "a.b/" and n letters. */
static int parse_long(size_t n, const char *host)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct oci_ref r;

	strbuf_adds(&s, host);
	while (n--)
		strbuf_addc(&s, 'x');
	strbuf_adds(&s, D);
	return oci_ref_parse(strbuf_str(&s), &r, &err);
}

Test(oci_ref, names_have_limits)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct oci_ref r;

	cr_assert_eq(parse_long(255, "a.b/"), 0);
	cr_assert_eq(parse_long(256, "a.b/"), -1);
	cr_assert_eq(parse_long(255 - 8, ""), 0); /* library/ */
	cr_assert_eq(parse_long(256 - 8, ""), -1);
	cr_assert_eq(parse_long(1000, ""), -1);
	for (int i = 0; i < 253; i++)
		strbuf_addc(&s, 'h');
	strbuf_adds(&s, ".h/a" D);
	cr_assert_eq(oci_ref_parse(s.data, &r, &err), 0, "%s", err.text);
	strbuf_drop(&s, 1);
	strbuf_reset(&s);
	for (int i = 0; i < 254; i++)
		strbuf_addc(&s, 'h');
	strbuf_adds(&s, ".h/a" D);
	cr_assert_eq(oci_ref_parse(s.data, &r, &err), -1);
}

Test(oci_ref, a_tag_may_have_128_characters)
{
	static const char tag[] = TEN("0123456789ab") "01234567"; /* 128 */
	cleanup_free char *good = xasprintf("a:%s" D, tag), *bad = xasprintf("a:%sx" D, tag);
	struct err err = ERR_INIT;
	struct oci_ref r;

	cr_assert_eq(oci_ref_parse(good, &r, &err), 0, "%s", err.text);
	cr_assert_eq(oci_ref_parse(bad, &r, &err), -1);
}
