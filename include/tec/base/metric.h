/* SPDX-License-Identifier: MIT */
/*
 * Counters, gauges and histograms of one process, rendered as Prometheus text exposition format
 * 0.0.4. A family is a static struct that registers itself on first use. It has at most two labels and
 * METRIC_MAX_SERIES series; further label values are counted under "other", so that outside input
 * cannot grow memory.
 */
#ifndef TEC_BASE_METRIC_H
#define TEC_BASE_METRIC_H

#include "tec/base/str.h"

#define METRIC_MAX_SERIES  96
#define METRIC_MAX_BUCKETS 14

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_series;
struct metric {
	const char *name, *help;
	enum metric_type type;
	const char *label1, *label2;        /* NULL: none */
	double buckets[METRIC_MAX_BUCKETS]; /* histogram: ascending upper bounds, 0-terminated */
	/* private */
	struct metric_series *series;
	unsigned n_series;
	struct metric *next;
};
/* static struct metric requests = METRIC_COUNTER_INIT("tec_http_requests_total", "Requests ...",
 * "route", "code"); */
#define METRIC_COUNTER_INIT(n, h, l1, l2)                                                          \
	{                                                                                          \
		.name = n, .help = h, .type = METRIC_COUNTER, .label1 = l1, .label2 = l2           \
	}
#define METRIC_GAUGE_INIT(n, h, l1, l2)                                                            \
	{                                                                                          \
		.name = n, .help = h, .type = METRIC_GAUGE, .label1 = l1, .label2 = l2             \
	}
/* A histogram of seconds, from 0.1 ms to 10 s. */
#define METRIC_SECONDS_INIT(n, h, l1, l2)                                                          \
	{                                                                                          \
		.name = n, .help = h, .type = METRIC_HISTOGRAM, .label1 = l1, .label2 = l2,        \
		.buckets = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5,   \
			1, 2.5, 10},                                                               \
	}

void metric_add(struct metric *m, const char *l1, const char *l2, double v); /* counter, gauge */
void metric_set(struct metric *m, const char *l1, const char *l2, double v); /* gauge */
void metric_observe(struct metric *m, const char *l1, const char *l2, double v); /* histogram */
void metric_drop(struct metric *m, const char *l1, const char *l2); /* removes one series */
double metric_value(
	const struct metric *m, const char *l1, const char *l2); /* tests; 0 if absent */

void metric_render(struct strbuf *out); /* all registered families, sorted by name */
void metric_reset_all(void);            /* teardown: frees every series, unregisters every family */

#endif
