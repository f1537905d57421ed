/* SPDX-License-Identifier: MIT */
/* The process that reads what registries send, from its question to its answer. Each test is a
 * process of its own and is confined by it. */
#include "config.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/oci/serve.h"
#include "tec/oci/wire.h"

#define REF "127.0.0.1:1/a@sha256:0000000000000000000000000000000000000000000000000000000000000000"

/* What is answered to these bytes. */
static int serve(const char *bytes, size_t len, struct strbuf *out, struct err *err)
{
	int in[2], back[2], rc;
	char chunk[4096];
	ssize_t n;

	cr_assert(pipe(in) == 0 && pipe(back) == 0);
	cr_assert_eq(write(in[1], bytes, len), (ssize_t)len);
	close(in[1]);
	rc = oci_serve(in[0], back[1], err);
	close(back[1]);
	while ((n = read(back[0], chunk, sizeof(chunk))) > 0)
		strbuf_add(out, chunk, (size_t)n);
	close(in[0]);
	close(back[0]);
	return rc;
}

Test(oci_serve, what_a_registry_does_not_say_is_an_answer, .timeout = 30)
{
	const struct oci_conf conf = {.platform_os = "linux", .platform_arch = "amd64"};
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	struct oci_answer answer;
	struct err err = ERR_INIT;
	struct rlimit lim;
	size_t len;
	char *q = oci_question_encode(&conf, REF, "label", NULL, 0, &len, &err);

	cr_assert(q, "%s", err.text);
	cr_assert_eq(serve(q, len, &out, &err), 0, "%s", err.text);
	cr_assert_eq(
		oci_answer_decode(strbuf_str(&out), out.len, &answer, &err), 0, "%s", err.text);
	cr_expect_eq(answer.err.kind, ERR_TRANSIENT);
	cr_expect(strstr(answer.err.text, "127.0.0.1"), "%s", answer.err.text);
	oci_answer_fini(&answer);
	free(q);
	/* It cannot write a file any more. */
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &lim), 0);
	cr_expect_eq(lim.rlim_max, 0);
}

Test(oci_serve, what_is_no_question_has_no_answer)
{
	static const char *const bad[] = {"", "z", "r99:x", "GET / HTTP/1.1\r\n\r\n"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		cleanup_strbuf struct strbuf out = STRBUF_INIT;
		struct err err = ERR_INIT;

		cr_expect_eq(serve(bad[i], strlen(bad[i]), &out, &err), -1, "%zu", i);
		cr_expect_eq(err.kind, ERR_INVALID);
		cr_expect_eq(out.len, 0);
	}
}
