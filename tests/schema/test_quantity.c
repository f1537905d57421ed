/* SPDX-License-Identifier: MIT */
/* Quantities and the text that they get; the same on kube-apiserver: test_two_servers_bodies.py. */
#include "config.h"

#include "schema/schema_testing.h"

#include "tec/schema/quantity.h"

#define WRONG                                                                                      \
	"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
#define SUFFIX "unable to parse quantity's suffix"

Test(schema_quantity, is_written_as_upstream_does)
{
	static const struct {
		const char *in, *want;
	} rows[] = {{"0", "0"}, {"1", "1"}, {"1000m", "1"}, {"1500m", "1500m"}, {"0.5", "500m"},
		{"1000", "1k"}, {"1500", "1500"}, {"1e3", "1e3"}, {"1E3", "1e3"}, {"1e-3", "1e-3"},
		{"1000e3", "1e6"}, {"1024Ki", "1Mi"}, {"1.5Gi", "1536Mi"}, {"1000Ki", "1000Ki"},
		{"0.5Ki", "512"}, {"60.546875Ki", "62k"}, {"62000Ki", "62000Ki"},
		{"60.54666656Ki", "61999786557440n"}, {"-1.5Ki", "-1536"}, {"-1Ki", "-1Ki"},
		{"100Mi", "100Mi"}, {"1E", "1E"}, {"2Ei", "2Ei"}, {"1n", "1n"}, {"0.1n", "1n"},
		{"0.0000000001", "1n"}, {"-1", "-1"}, {"+1", "1"}, {"-500m", "-500m"}, {"007", "7"},
		{"1u", "1u"}, {"12345678901234567890", "9223372036854775807"},
		{"1e100", "9223372036854775807"}, {"", NULL}, {"x", NULL}, {"1x", NULL},
		{"1 ", NULL}, {"1e", NULL}, {"1mm", NULL}, {"1iK", NULL}, {"1K", NULL},
		{"1.2.3", NULL}, {"1e1.5", NULL}, {"--1", NULL}, {"1-", NULL}, {"1+1", NULL}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[SCHEMA_QUANTITY_LEN] = "";
		struct schema_quantity q;
		struct err err = ERR_INIT;
		int rc = schema_quantity_parse(rows[i].in, strlen(rows[i].in), &q, &err);

		cr_expect_eq(rc == 0, rows[i].want != NULL, "%s: %s", rows[i].in, err.text);
		if (rc == 0)
			schema_quantity_text(&q, text);
		if (rc == 0 && rows[i].want)
			cr_expect_str_eq(text, rows[i].want, "%s became %s", rows[i].in, text);
	}
}

Test(schema_quantity, says_what_is_wrong)
{
	static const char *const rows[][2] = {{"", WRONG}, {"x", WRONG}, {"1 ", WRONG},
		{"1mm", SUFFIX}, {"1K", SUFFIX}, {"1e", SUFFIX}, {"1-", SUFFIX}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct schema_quantity q;
		struct err err = ERR_INIT;

		cr_assert_lt(schema_quantity_parse(rows[i][0], strlen(rows[i][0]), &q, &err), 0);
		cr_expect_str_eq(err.text, rows[i][1], "%s: %s", rows[i][0], err.text);
	}
}
