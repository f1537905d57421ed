/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/rats/api.h"

#define RES "/kbs/v0/resource/"

Test(rats_api, reads_the_requests_of_nodes)
{
	static const struct {
		const char *method, *target;
		enum rats_api asked;
	} t[] = {
		{"POST", "/kbs/v0/auth", RATS_API_AUTH},
		{"POST", "/kbs/v0/auth/", RATS_API_AUTH},
		{"POST", "/kbs/v0/auth?", RATS_API_AUTH},
		{"POST", "/kbs/v0/auth/?x=/y", RATS_API_AUTH},
		{"POST", "/kbs/v0/attest?x", RATS_API_ATTEST},
		{"GET", "/kbs/v0/resource/?a/b/c", RATS_API_GET_RESOURCE},
		{"GET", "/kbs/v0/auth", RATS_API_NONE},
		{"post", "/kbs/v0/auth", RATS_API_NONE},
		{"POST", "/kbs/v0/authx", RATS_API_NONE},
		{"POST", "/kbs/v0/auth//", RATS_API_NONE},
		{"POST", "/kbs/v0/auth/x", RATS_API_NONE},
		{"POST", "/kbs/v0/auth%2F", RATS_API_NONE},
		{"POST", "/kbs/v0/auth;x", RATS_API_NONE},
		{"POST", "/kbs/v0//auth", RATS_API_NONE},
		{"POST", "/kbs/v0/resource/a/b/c", RATS_API_NONE},
		{"GET", "/kbs/v0/resource", RATS_API_NONE},
		{"GET", "/", RATS_API_NONE},
		{"?", "", RATS_API_NONE},
	};
	char path[RATS_API_PATH_MAX + 1];

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		memset(path, 'x', sizeof(path));
		cr_expect_eq(rats_api_read(t[i].method, t[i].target, path), t[i].asked, "%s %s",
			t[i].method, t[i].target);
		cr_expect_str_empty(path, "%s", t[i].target);
	}
}

Test(rats_api, a_path_has_one_spelling)
{
	static const struct {
		const char *target, *path; /* "": refused */
	} t[] = {
		{"a/b/c", "a/b/c"},
		{"/a/b/c", "a/b/c"},
		{"/a/b/c/?/", "a/b/c"},
		{"%61/%62%2D%2d/c%2E", "a/b--/c."},
		{"a/b/c?%", "a/b/c"},
		{"//a/b/c", ""},
		{"a/b/c//", ""},
		{"a//b/c", ""},
		{"a/b", ""},
		{"a/b/", ""},
		{"a/b/c/d", ""},
		{"a/./c", ""},
		{"a/%2e/c", ""},
		{"a/%2E%2E/c", ""},
		{"a%2fb/c", ""},
		{"a/b/c%2F", ""},
		{"a/b/c%3Fx", ""},
		{"a/b/c%00", ""},
		{"a/b/%2563", ""},
		{"a/b/%%363", ""},
		{"a/b/c%", ""},
		{"a/b/c%6", ""},
		{"a/b/c%6?1", ""},
		{"a/b/c%6/", ""},
		{"a/b/c%+1", ""},
		{"a/b/c%C3%A4", ""},
		{"a/b/c;d", ""},
		{"a/b/c+d", ""},
		{"a\\b\\c", ""},
	};
	char path[RATS_API_PATH_MAX + 1], target[512];

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		snprintf(target, sizeof(target), RES "%s", t[i].target);
		cr_expect_eq(rats_api_read("GET", target, path), RATS_API_GET_RESOURCE);
		cr_expect_str_eq(path, t[i].path, "%s", target);
	}
}

Test(rats_api, a_path_has_at_most_255_bytes_however_it_is_spelled)
{
	static const char *const formats[] = {RES "a/%0*d/c", RES "/a/%0*d/c", RES "a/%0*d/c/",
		RES "a/%0*d/%%63", RES "a/%0*d/c/?xyz"};
	char path[RATS_API_PATH_MAX + 1], target[512];

	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		for (int more = 0; more < 2; more++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(target, sizeof(target), formats[i], 251 + more, 1);
#pragma GCC diagnostic pop
			cr_expect_eq(rats_api_read("GET", target, path), RATS_API_GET_RESOURCE);
			cr_expect_eq(strlen(path), more ? 0 : 255, "%s", target);
		}
}

Test(rats_api, errors_have_the_shape_of_trustees)
{
	static const struct {
		int status;
		const char *type, *body;
	} t[] = {
		{404, "application/json",
			"{\"type\":\"https://github.com/confidential-containers/kbs/errors/InvalidRequestPath\",\"detail\":\"a\\\"b\"}"},
		{400, "application/json",
			"{\"type\":\"https://github.com/confidential-containers/kbs/errors/HttpError\",\"detail\":\"a\\\"b\"}"},
		{413, "text/plain", "payload reached size limit"},
	};

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		cleanup_strbuf struct strbuf out = STRBUF_INIT;

		cr_expect_str_eq(rats_api_listener_error(&out, t[i].status, "a\"b"), t[i].type);
		cr_expect_str_eq(strbuf_str(&out), t[i].body);
	}
}
