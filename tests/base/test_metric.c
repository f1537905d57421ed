/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tec/base/metric.h"

static struct metric plain = METRIC_COUNTER_INIT("tec_b_total", "Plain.", NULL, NULL);
static struct metric labelled = METRIC_GAUGE_INIT("tec_a", "With\nlines and \\.", "x", "y");
static struct metric seconds = METRIC_SECONDS_INIT("tec_c_seconds", "Seconds.", "route", NULL);

TestSuite(base_metric, .fini = metric_reset_all);

Test(base_metric, nothing_used_renders_nothing)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	metric_render(&out);
	cr_assert_str_eq(strbuf_str(&out), "");
	cr_assert_eq(metric_value(&plain, NULL, NULL), 0);
}

Test(base_metric, families_and_series_are_sorted_and_escaped)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	metric_add(&plain, NULL, NULL, 1);
	metric_add(&plain, NULL, NULL, 2);
	metric_set(&labelled, "q\"\\\n", "1", 0.5);
	metric_set(&labelled, "a", "2", -3);
	metric_set(&labelled, "a", "1", 1e18);
	metric_render(&out);
	cr_assert_str_eq(strbuf_str(&out), "# HELP tec_a With\\nlines and \\\\.\n"
					   "# TYPE tec_a gauge\n"
					   "tec_a{x=\"a\",y=\"1\"} 1e+18\n"
					   "tec_a{x=\"a\",y=\"2\"} -3\n"
					   "tec_a{x=\"q\\\"\\\\\\n\",y=\"1\"} 0.5\n"
					   "# HELP tec_b_total Plain.\n"
					   "# TYPE tec_b_total counter\n"
					   "tec_b_total 3\n");
}

Test(base_metric, histogram_buckets_are_cumulative)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	metric_observe(&seconds, "r", NULL, 0.0001); /* a bound belongs to its bucket */
	metric_observe(&seconds, "r", NULL, 0.3);
	metric_observe(&seconds, "r", NULL, 99);
	cr_assert_eq(metric_value(&seconds, "r", NULL), 3);
	metric_render(&out);
	cr_assert_not_null(
		strstr(strbuf_str(&out), "tec_c_seconds_bucket{route=\"r\",le=\"0.0001\"} 1\n"));
	cr_assert_not_null(
		strstr(strbuf_str(&out), "tec_c_seconds_bucket{route=\"r\",le=\"0.1\"} 1\n"));
	cr_assert_not_null(
		strstr(strbuf_str(&out), "tec_c_seconds_bucket{route=\"r\",le=\"0.5\"} 2\n"));
	cr_assert_not_null(
		strstr(strbuf_str(&out), "tec_c_seconds_bucket{route=\"r\",le=\"10\"} 2\n"));
	cr_assert_not_null(
		strstr(strbuf_str(&out), "tec_c_seconds_bucket{route=\"r\",le=\"+Inf\"} 3\n"));
	cr_assert_not_null(strstr(strbuf_str(&out), "tec_c_seconds_sum{route=\"r\"} 99.3001\n"));
	cr_assert_not_null(strstr(strbuf_str(&out), "tec_c_seconds_count{route=\"r\"} 3\n"));
}

Test(base_metric, series_are_bounded)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	char label[16];

	for (int i = 0; i < 1000; i++) {
		snprintf(label, sizeof(label), "v%d", i);
		metric_add(&labelled, label, "z", 1);
	}
	cr_assert_eq(metric_value(&labelled, "v0", "z"), 1);
	cr_assert_eq(metric_value(&labelled, "v95", "z"), 1);
	cr_assert_eq(metric_value(&labelled, "v96", "z"), 0);
	cr_assert_eq(metric_value(&labelled, "other", "other"), 904);
	metric_add(&labelled, "v0", "z", 1);
	cr_assert_eq(metric_value(&labelled, "v0", "z"), 2);
	metric_render(&out);
}

Test(base_metric, drop_forgets_one_series)
{
	metric_set(&labelled, "a", "1", 4);
	metric_set(&labelled, "a", "2", 5);
	metric_drop(&labelled, "a", "1");
	metric_drop(&labelled, "a", "9");
	cr_assert_eq(metric_value(&labelled, "a", "1"), 0);
	cr_assert_eq(metric_value(&labelled, "a", "2"), 5);
	metric_drop(&labelled, "a", "2");
	metric_set(&labelled, "a", "1", 6); /* registered once, also after it was empty */
	cr_assert_eq(metric_value(&labelled, "a", "1"), 6);
}

Test(base_metric, hostile_labels_are_cleaned)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	char big[1000];

	memset(big, 'L', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	metric_add(&labelled, big, "\xff\xfe", 1);
	metric_add(&labelled, big, "\xff\xfe", 1);
	metric_add(&labelled, NULL, NULL, 1);
	metric_render(&out);
	cr_assert_lt(out.len, 600);
	cr_assert_not_null(strstr(strbuf_str(&out), "y=\"\?\?\"} 2\n"));
	cr_assert_not_null(strstr(strbuf_str(&out), "tec_a{x=\"\",y=\"\"} 1\n"));
}
