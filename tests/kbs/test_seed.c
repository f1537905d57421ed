/* SPDX-License-Identifier: MIT */
/* The policies before Trustee's first start: where they go, and what stops it. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tec/base/mem.h"
#include "tec/kbs/seed.h"

static char top[] = "/tmp/tec-seed-XXXXXX", src[64], dst[64];
static struct err err;
static struct strbuf said;

static void setup(void)
{
	cr_assert(mkdtemp(top));
	snprintf(src, sizeof(src), "%s/src", top);
	snprintf(dst, sizeof(dst), "%s/dst", top);
	cr_assert(mkdir(src, 0755) == 0 && mkdir(dst, 0755) == 0);
}

static void teardown(void)
{
	cleanup_free char *command = xasprintf("rm -r %s", top);

	cr_assert_eq(system(command), 0);
	strbuf_fini(&said);
}

TestSuite(kbs_seed, .init = setup, .fini = teardown);

static void put(const char *dir, const char *name, const char *text, size_t len)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name);
	FILE *f = fopen(path, "w");

	cr_assert(f && fwrite(text, 1, len, f) == len && fclose(f) == 0);
}

static void expect(const char *name, const char *text)
{
	cleanup_free char *path = xasprintf("%s/%s", dst, name);
	char is[64] = "";
	FILE *f = fopen(path, "r");

	cr_assert(f, "%s", path);
	cr_expect(fread(is, 1, sizeof(is) - 1, f) > 0);
	fclose(f);
	cr_expect_str_eq(is, text);
}

static void put_policies(const char *resource)
{
	put(src, "resource-policy.rego", resource, strlen(resource));
	put(src, "default_cpu.rego", "cpu", 3);
}

Test(kbs_seed, writes_both_policies_again_and_again)
{
	put_policies("one");
	cr_assert_eq(kbs_seed(src, dst, &said, &err), 0, "%s", err.text);
	put_policies("two");
	cr_assert_eq(kbs_seed(src, dst, &said, &err), 0, "%s", err.text);
	expect("kbs/resource-policy.rego", "two");
	expect("attestation_service_policy/default_cpu.rego", "cpu");
	cr_expect(strstr(strbuf_str(&said), "kbs/resource-policy.rego (3 bytes)"));
}

Test(kbs_seed, refuses_what_is_no_policy)
{
	cleanup_free char *big = xcalloc(1, 1048577);

	cr_expect_eq(kbs_seed(src, dst, &said, &err), -1);
	cr_expect(strstr(err.text, "src/resource-policy.rego"), "%s", err.text);
	err_clear(&err);
	put_policies("");
	cr_expect_eq(kbs_seed(src, dst, &said, &err), -1);
	cr_expect(strstr(err.text, "is empty"), "%s", err.text);
	err_clear(&err);
	put(src, "resource-policy.rego", big, 1048577);
	cr_expect_eq(kbs_seed(src, dst, &said, &err), -1);
	cr_expect_eq(said.len, 0);
}

/* A volume of Secrets: links to a directory that the kubelet replaces. */
Test(kbs_seed, copies_resources_that_trustee_may_change)
{
	static const char longest[] = "default\\x2F"
				      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"
				      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"
				      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"
				      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"
				      "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd\\x2F";
	cleanup_free char *hidden = xasprintf("%s/..data", src),
			  *link = xasprintf("%s/default\\x2Fs\\x2Fkey", src),
			  *to = xasprintf("%s/default\\x2Fs\\x2Fkey", dst);
	struct stat st;

	cr_assert_eq(strlen(longest), 255);
	cr_assert_eq(mkdir(hidden, 0755), 0);
	put(hidden, "key", "one", 3);
	cr_assert_eq(symlink("..data/key", link), 0);
	put(src, longest, "", 0);
	for (int again = 0; again < 2; again++) {
		cr_assert_eq(kbs_seed_resources(src, dst, &said, &err), 0, "%s", err.text);
		expect("default\\x2Fs\\x2Fkey", "one");
		cr_assert(lstat(to, &st) == 0 && S_ISREG(st.st_mode));
		cr_expect_eq(st.st_mode & 0777, 0666, "%o", st.st_mode);
		/* What a client set, in a file that only its owner may write to. */
		put(dst, "default\\x2Fs\\x2Fkey", "other", 5);
		cr_assert_eq(chmod(to, 0400), 0);
		put(dst, "default\\x2Fc\\x2Fkey", "client's", 8);
	}
	expect("default\\x2Fc\\x2Fkey", "client's");
	cr_expect_null(strstr(strbuf_str(&said), "x2F"), "%s", strbuf_str(&said));
	rmdir(dst);
	cr_assert_eq(kbs_seed_resources("/nonexistent", dst, &said, &err), -1);
	cr_expect(strstr(err.text, "/nonexistent"), "%s", err.text);
}

Test(kbs_seed, names_what_it_cannot_write)
{
	put_policies("one");
	put(dst, "kbs", "a file", 6);
	cr_expect_eq(kbs_seed(src, dst, &said, &err), -1);
	cr_expect(strstr(err.text, "dst/kbs"), "%s", err.text);
}
