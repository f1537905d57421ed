/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "show_testing.h"
#include "tec/show/finding.h"

#define DAY_S 86400

static struct show_findings f;

static void up(void)
{
	show_findings_init(&f);
}

static void down(void)
{
	show_findings_fini(&f);
}

TestSuite(show_finding, .init = up, .fini = down);

static void count(void *arg, struct json_object *finding)
{
	unsigned *n = arg;

	*n += json_get_str(finding, "check") != NULL;
}

Test(show_finding, each_is_one_safe_line)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;
	unsigned said = 0;

	f.said = count;
	f.arg = &said;
	show_found(&f, SHOW_IS_OK, "a", NULL, "%d", 1);
	show_found(&f, SHOW_IS_NO, "b", "do it", "bad\033[2J\nnews");
	show_found(&f, SHOW_IS_NOTE, "c", NULL, "x");
	cr_expect_eq(said, 3);
	cr_expect_eq(f.n_no, 1);
	show_finding_line(json_object_array_get_idx(f.all, 1), false, &line);
	cr_expect_str_eq(
		strbuf_str(&line), "no    b                    bad\\u001b[2J news -> do it");
	strbuf_reset(&line);
	show_finding_line(json_object_array_get_idx(f.all, 2), false, &line);
	cr_expect_str_eq(strbuf_str(&line), "note  c                    x");
	cr_expect_null(json_get_str(json_object_array_get_idx(f.all, 0), "next"));
}

Test(show_finding, a_certificate_that_ends_soon_is_named)
{
	static const struct {
		int64_t left_s;
		const char *is;
	} cases[] = {{31 * DAY_S, "ok"}, {29 * DAY_S, "note"}, {1, "note"}, {0, "no"}, {-1, "no"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		show_found_end(&f, "TLS", "s", NOW_S + cases[i].left_s, NOW_S);
		cr_expect_str_eq(
			json_get_str(json_object_array_get_idx(f.all, i), "is"), cases[i].is);
	}
}

Test(show_finding, what_the_operator_has_not_seen_is_named)
{
	cleanup_show_world struct show_world w;

	world_of(&w, "{\"cluster\":[{\"metadata\":{\"name\":\"c\",\"generation\":2},\"status\":{"
		     "\"conditions\":[{\"type\":\"Installed\",\"observedGeneration\":1}]}}]}");
	show_found_observed(&f, show_cluster(&w));
	cr_expect_eq(f.n_no, 1);
	json_add_int(json_get(show_cluster(&w), "metadata"), "generation", 1);
	show_found_observed(&f, show_cluster(&w));
	cr_expect_eq(f.n_no, 1);
}
