/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/oci/manifest.h"

#define X63 "000000000000000000000000000000000000000000000000000000000000000"
#define DA  "sha256:" X63 "a"
#define DB  "sha256:" X63 "b"
#define DC  "sha256:" X63 "c"
#define MT  "\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\""
#define IT  "\"mediaType\":\"application/vnd.oci.image.index.v1+json\""
#define CT  "\"mediaType\":\"application/vnd.oci.image.config.v1+json\""
#define V2  "\"schemaVersion\":2"
#define ENTRY(d, arch, more)                                                                       \
	"{" MT ",\"size\":7,\"digest\":\"" d "\",\"platform\":{\"os\":\"linux\",\"architecture\":" \
	"\"" arch "\"" more "}}"
#define INDEX(list)  "{" V2 "," IT ",\"manifests\":[" list "]}"
#define CONFIG(more) "{" V2 "," MT ",\"layers\":[],\"config\":{" CT more "}}"

static int parse(const char *text, struct oci_manifest *m, struct err *err)
{
	cleanup_free char *copy = xmemdup(text, strlen(text)); /* ASan sees a byte too many */

	err_clear(err);
	return oci_manifest_parse(copy, strlen(text), "linux", "arm64", m, err);
}

Test(oci_manifest, the_platform_is_chosen)
{
	static const struct {
		const char *text, *digest;
	} t[] = {
		{INDEX(ENTRY(DA, "amd64", "") "," ENTRY(DB, "arm64", "")), DB},
		{INDEX(ENTRY(DB, "arm64", ",\"variant\":\"v8\"")), DB},
		{INDEX(ENTRY(DB, "arm64", ",\"variant\":\"v9\"")), DB},
		{INDEX(ENTRY(DA, "arm64", ",\"variant\":\"v9\"") "," ENTRY(DB, "arm64", "")), DB},
		{INDEX(ENTRY(DB, "arm64", ",\"variant\":\"v8\"") "," ENTRY(
			 DA, "arm64", ",\"variant\":\"v9\"")),
			DB},
		{INDEX(ENTRY(DA, "arm64", ",\"variant\":\"v9\"") "," ENTRY(DC, "arm64",
			 ",\"variant\":\"v7\"") "," ENTRY(DB, "arm64", ",\"variant\":\"\"")),
			DB},
		{INDEX(ENTRY(DB, "arm64", "") "," ENTRY(DB, "arm64", "")), DB},
		/* What a build attests, an entry without platform, entries that are not objects. */
		{INDEX("1,null,[],{},{\"digest\":\"x\"}," ENTRY(DA, "unknown", "") "," ENTRY(
			 DB, "arm64", "")),
			DB},
		/* mediaType may be left out, of the index as well as of an entry. */
		{"{" V2 ",\"manifests\":[{\"size\":7,\"digest\":\"" DB
		 "\",\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}}]}",
			DB},
		{"{" V2
		 ",\"mediaType\":\"application/vnd.docker.distribution.manifest.list.v2+json\""
		 ",\"manifests\":[" ENTRY(DB, "arm64", "") "]}",
			DB},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		struct oci_manifest m;

		cr_assert_eq(parse(t[i].text, &m, &err), 0, "%s: %s", t[i].text, err.text);
		cr_assert(m.index);
		cr_assert_str_eq(m.next.digest, t[i].digest, "%s", t[i].text);
		cr_assert_eq(m.next.size, 7);
	}
}

Test(oci_manifest, an_index_without_one_answer_is_invalid)
{
	static const struct {
		const char *text, *said;
	} t[] = {
		{INDEX(""), "not list an image for linux/arm64"},
		{INDEX(ENTRY(DA, "amd64", "")), "not list an image for linux/arm64"},
		{INDEX("{" IT ",\"size\":7,\"digest\":\"" DA "\",\"platform\":{\"os\":\"linux\","
		       "\"architecture\":\"arm64\"}}"),
			"not list an image for linux/arm64"}, /* an index */
		{INDEX(ENTRY(DA, "arm64", "") "," ENTRY(DB, "arm64", "")), "several images"},
		{INDEX(ENTRY(DA, "arm64", "") "," ENTRY(DB, "arm64", ",\"variant\":\"v8\"")),
			"several images"},
		{INDEX(ENTRY(DA, "arm64", ",\"variant\":\"v7\"") "," ENTRY(
			 DB, "arm64", ",\"variant\":\"v9\"")),
			"several images"},
		/* The first one again does not make it unambiguous. */
		{INDEX(ENTRY(DA, "arm64", "") "," ENTRY(DB, "arm64", "") "," ENTRY(
			 DA, "arm64", "")),
			"several images"},
		{INDEX(ENTRY("sha512:" X63 X63 "aa", "arm64", "")), "sha256 digest"},
		{INDEX(ENTRY("", "arm64", "")), "sha256 digest"},
		{INDEX("{" MT ",\"size\":4194305,\"digest\":\"" DA "\",\"platform\":{\"os\":"
		       "\"linux\",\"architecture\":\"arm64\"}}"),
			"size is not within 1 to 4194304"},
		{INDEX("{" MT ",\"digest\":\"" DA "\",\"platform\":{\"os\":\"linux\","
		       "\"architecture\":\"arm64\"}}"),
			"size is not within"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		struct oci_manifest m;

		cr_assert_eq(parse(t[i].text, &m, &err), -1, "%s", t[i].text);
		cr_assert_eq(err.kind, ERR_INVALID);
		cr_assert(strstr(err.text, t[i].said), "%s: %s", t[i].text, err.text);
	}
}

Test(oci_manifest, a_manifest_names_its_configuration)
{
	static const char *const t[] = {
		CONFIG(",\"size\":8388608,\"digest\":\"" DC "\""),
		"{" V2 ",\"config\":{" CT ",\"size\":8388608,\"digest\":\"" DC "\"}}",
		"{" V2 ",\"mediaType\":\"application/vnd.docker.distribution.manifest.v2+json\","
		"\"config\":{\"mediaType\":\"application/vnd.docker.container.image.v1+json\","
		"\"size\":8388608,\"digest\":\"" DC "\"}}",
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		struct oci_manifest m;

		cr_assert_eq(parse(t[i], &m, &err), 0, "%s: %s", t[i], err.text);
		cr_assert_not(m.index);
		cr_assert_str_eq(m.next.digest, DC);
		cr_assert_eq(m.next.size, OCI_CONFIG_MAX);
	}
}

Test(oci_manifest, other_documents_are_invalid)
{
	static const char *const t[] = {"", "{}", "[]", "null", "garbage", "\"x\"", "{" V2 "}",
		"{\"schemaVersion\":1,\"config\":{" CT ",\"size\":1,\"digest\":\"" DC "\"}}",
		"{\"schemaVersion\":\"2\",\"config\":{" CT ",\"size\":1,\"digest\":\"" DC "\"}}",
		"{\"config\":{" CT ",\"size\":1,\"digest\":\"" DC "\"}}",
		/* both, or called what it is not (CVE-2021-41190) */
		"{" V2 ",\"manifests\":[],\"config\":{" CT ",\"size\":1,\"digest\":\"" DC "\"}}",
		"{" V2 ",\"layers\":[],\"manifests\":[" ENTRY(DB, "arm64", "") "]}",
		"{" V2 "," IT ",\"config\":{" CT ",\"size\":1,\"digest\":\"" DC "\"}}",
		"{" V2 "," MT ",\"manifests\":[" ENTRY(DB, "arm64", "") "]}",
		"{" V2 ",\"mediaType\":\"text/plain\",\"manifests\":[" ENTRY(DB, "arm64", "") "]}",
		"{" V2 ",\"mediaType\":7,\"manifests\":[" ENTRY(DB, "arm64", "") "]}",
		"{" V2 ",\"manifests\":{}}", "{" V2 ",\"config\":[]}",
		/* configurations of something else, or unusable */
		CONFIG(""), CONFIG(",\"size\":1"), CONFIG(",\"size\":0,\"digest\":\"" DC "\""),
		CONFIG(",\"size\":-1,\"digest\":\"" DC "\""),
		CONFIG(",\"size\":8388609,\"digest\":\"" DC "\""),
		CONFIG(",\"size\":1e3,\"digest\":\"" DC "\""),
		CONFIG(",\"size\":18446744073709551617,\"digest\":\"" DC "\""),
		CONFIG(",\"size\":1,\"digest\":\"sha256:../../../etc\""),
		"{" V2 ",\"config\":{\"size\":1,\"digest\":\"" DC "\"}}",
		"{" V2 ",\"config\":{\"mediaType\":\"application/vnd.cncf.helm.config.v1+json\","
		"\"size\":1,\"digest\":\"" DC "\"}}",
		"{" V2 "," V2 ",\"config\":{" CT ",\"size\":1,\"digest\":\"" DC "\"}}"};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		struct err err = ERR_INIT;
		struct oci_manifest m;

		cr_assert_eq(parse(t[i], &m, &err), -1, "%s", t[i]);
		cr_assert_eq(err.kind, ERR_INVALID, "%s", t[i]);
	}
}

Test(oci_manifest, a_manifest_of_very_many_entries_is_refused)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct oci_manifest m;

	strbuf_adds(&s, "{" V2 ",\"manifests\":[1");
	while (s.len < 200000)
		strbuf_adds(&s, ",{}");
	strbuf_adds(&s, "]}");
	cr_assert_eq(parse(s.data, &m, &err), -1);
}

/* The label's text, "none", or the error's. */
static const char *label_of(const char *text, const char *name)
{
	static char out[ERR_TEXT_SIZE];
	struct err err = ERR_INIT;
	cleanup_free char *value = NULL;
	size_t len;

	if (oci_config_label(text, strlen(text), name, &value, &len, &err) == 0)
		snprintf(out, sizeof(out), "%s", value ? value : "none");
	else
		snprintf(out, sizeof(out), "%s", err.text);
	cr_assert(!err_is_set(&err) || err.kind == ERR_INVALID);
	return out;
}

Test(oci_manifest, labels_of_a_configuration)
{
	static const struct {
		const char *text, *want;
	} t[] = {
		{"{\"config\":{\"Labels\":{\"a/b.c\":\"v\",\"x\":1}}}", "v"},
		{"{\"config\":{\"Labels\":{\"a/b.c\":\"\"}}}", ""},
		{"{\"config\":{\"Labels\":{\"a\":{\"b.c\":\"v\"}}}}", "none"},
		{"{\"config\":{\"Labels\":{}}}", "none"},
		{"{\"config\":{\"Labels\":null}}", "none"},
		{"{\"config\":null}", "none"},
		{"{}", "none"},
		{"{\"Labels\":{\"a/b.c\":\"v\"}}", "none"},
		{"{\"config\":{\"labels\":{\"a/b.c\":\"v\"}}}", "none"},
		{"{\"config\":{\"Labels\":{\"a/b.c\":1}}}",
			"the image's label \"a/b.c\" is not a string"},
		{"{\"config\":{\"Labels\":{\"a/b.c\":null}}}",
			"the image's label \"a/b.c\" is not a string"},
		{"{\"config\":{\"Labels\":{\"a/b.c\":{}}}}",
			"the image's label \"a/b.c\" is not a string"},
		{"{\"config\":{\"Labels\":[]}}", "the image's Labels are not an object"},
		{"{\"config\":[]}", "the image's config is not an object"},
		{"[]", "the image's configuration is not an object"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		cr_assert_str_eq(label_of(t[i].text, "a/b.c"), t[i].want, "%s", t[i].text);
	cr_assert(str_starts(label_of("garbage", "a"), "the image's configuration: "));
	cr_assert(str_starts(label_of("{\"config\":{\"Labels\":{\"a\":\"\\u0000\"}}}", "a"),
		"the image's configuration: "));
}

Test(oci_manifest, bytes_are_compared_with_their_digest)
{
	static const char abc[] =
		"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
	struct err err = ERR_INIT;

	cr_assert_eq(oci_digest_check(abc, "abc", 3, &err), 0);
	cr_assert_eq(oci_digest_check(abc, "abc", 2, &err), -1);
	err_clear(&err);
	cr_assert_eq(oci_digest_check(DA, "abc", 3, &err), -1);
	cr_assert_eq(err.kind, ERR_INVALID);
}
