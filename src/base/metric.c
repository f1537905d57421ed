/* SPDX-License-Identifier: MIT */
/*
 * Each family has a list of series, the most recently used one first. Families are small
 * (METRIC_MAX_SERIES), so a lookup takes a few string comparisons. Label values are truncated and made
 * valid UTF-8 when stored. A full family does not grow: further label values count as "other".
 *
 * Rendered families look like this:
 *   # HELP tec_http_request_seconds Time from a complete request to its reply.
 *   # TYPE tec_http_request_seconds histogram
 *   tec_http_request_seconds_bucket{route="/ignition",le="0.001"} 3
 *   tec_http_request_seconds_bucket{route="/ignition",le="+Inf"} 4
 *   tec_http_request_seconds_sum{route="/ignition"} 0.017
 *   tec_http_request_seconds_count{route="/ignition"} 4
 */
#include "config.h"

#include "tec/base/metric.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "tec/base/mem.h"
#include "tec/base/utf8.h"

#define LABEL_MAX_LEN 120

struct metric_series {
	struct metric_series *next;
	char *l1, *l2;                     /* owned; NULL when the family has no such label */
	double value;                      /* histogram: the sum of observations */
	uint64_t count;                    /* histogram: the number of observations */
	uint64_t hits[METRIC_MAX_BUCKETS]; /* per bucket, cumulated when rendered */
};

static struct metric *families;

/* Keep the families sorted by name. Called when one gets a first series, which happens again after
 * metric_drop(): it must not be linked twice. */
static void family_register(struct metric *m)
{
	struct metric **at = &families;

	for (; *at && strcmp((*at)->name, m->name) <= 0; at = &(*at)->next)
		if (*at == m)
			return;
	m->next = *at;
	*at = m;
}

/* Copy a label value in its stored form; NULL if the family has no such label. */
static char *label_copy(const char *label, const char *v)
{
	char *copy;

	if (!label)
		return NULL;
	copy = xstrndup(v ? v : "", LABEL_MAX_LEN);
	if (!utf8_valid(copy, strlen(copy))) {
		for (char *p = copy; *p; p++)
			*p = *p & (char)0x80 ? '?' : *p;
	}
	return copy;
}

/* A family without this label stores NULL, which matches every value. */
static bool matches(const char *stored, const char *v)
{
	return !stored || strcmp(stored, v ? v : "") == 0;
}

/* Find a series and move it to the front of the list. */
static struct metric_series *find(struct metric *m, const char *l1, const char *l2)
{
	for (struct metric_series **pp = &m->series; *pp; pp = &(*pp)->next) {
		struct metric_series *s = *pp;

		if (!matches(s->l1, l1) || !matches(s->l2, l2))
			continue;
		*pp = s->next;
		s->next = m->series;
		m->series = s;
		return s;
	}
	return NULL;
}

/* A series is looked up twice when it is new: the stored form of its labels (truncated, or "other")
 * may already exist. */
static struct metric_series *find_or_add(struct metric *m, const char *l1, const char *l2)
{
	cleanup_free char *c1 = NULL, *c2 = NULL;
	struct metric_series *s = find(m, l1, l2);

	if (s)
		return s;
	if (!m->series)
		family_register(m);
	if (m->n_series >= METRIC_MAX_SERIES)
		l1 = l2 = "other";
	c1 = label_copy(m->label1, l1);
	c2 = label_copy(m->label2, l2);
	s = find(m, c1, c2);
	if (s)
		return s;
	s = xcalloc(1, sizeof(*s));
	s->l1 = steal_ptr(&c1);
	s->l2 = steal_ptr(&c2);
	s->next = m->series;
	m->series = s;
	m->n_series++;
	return s;
}

void metric_add(struct metric *m, const char *l1, const char *l2, double v)
{
	find_or_add(m, l1, l2)->value += v;
}

void metric_set(struct metric *m, const char *l1, const char *l2, double v)
{
	find_or_add(m, l1, l2)->value = v;
}

/* The bounds end at the first 0, so 0 cannot be a bound. */
static unsigned n_buckets(const struct metric *m)
{
	unsigned n = 0;

	while (n < METRIC_MAX_BUCKETS && m->buckets[n] != 0)
		n++;
	return n;
}

/* Count the value in its smallest bucket only; the exposition format wants cumulative counts, which
 * render_histogram() makes. */
void metric_observe(struct metric *m, const char *l1, const char *l2, double v)
{
	struct metric_series *s = find_or_add(m, l1, l2);
	unsigned n = n_buckets(m);

	for (unsigned i = 0; i < n; i++) {
		if (v <= m->buckets[i]) {
			s->hits[i]++;
			break;
		}
	}
	s->value += v;
	s->count++;
}

static void series_free(struct metric_series *s)
{
	free(s->l1);
	free(s->l2);
	free(s);
}

void metric_drop(struct metric *m, const char *l1, const char *l2)
{
	struct metric_series *s = find(m, l1, l2);

	if (!s)
		return;
	m->series = s->next; /* find() moved it to the front */
	m->n_series--;
	series_free(s);
}

/* The value of a series; for a histogram the number of observations. */
double metric_value(const struct metric *m, const char *l1, const char *l2)
{
	for (const struct metric_series *s = m->series; s; s = s->next) {
		if (matches(s->l1, l1) && matches(s->l2, l2))
			return m->type == METRIC_HISTOGRAM ? (double)s->count : s->value;
	}
	return 0;
}

/* The shortest of two precisions that reads back as the same double. */
static void add_number(struct strbuf *out, double v)
{
	char text[40];

	if (isinf(v) || isnan(v)) {
		strbuf_adds(out, isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
		return;
	}
	snprintf(text, sizeof(text), "%.15g", v);
	if (strtod(text, NULL) != v)
		snprintf(text, sizeof(text), "%.17g", v);
	strbuf_adds(out, text);
}

/* The exposition format escapes backslash and newline, and in label values also quotes. */
static void add_escaped(struct strbuf *out, const char *s, bool quotes)
{
	for (; *s; s++) {
		if (*s == '\n')
			strbuf_adds(out, "\\n");
		else if (*s == '\\' || (quotes && *s == '"'))
			strbuf_addf(out, "\\%c", *s);
		else
			strbuf_addc(out, *s);
	}
}

/* *sep is '{' before the first label and ',' after it. */
static void add_label(struct strbuf *out, char *sep, const char *label, const char *v)
{
	strbuf_addc(out, *sep);
	*sep = ',';
	strbuf_addf(out, "%s=\"", label);
	add_escaped(out, v, true);
	strbuf_addc(out, '"');
}

/* Append one sample line; le is the bound of a bucket, or NULL. */
static void add_sample(struct strbuf *out, const struct metric *m, const struct metric_series *s,
	const char *suffix, const char *le, double v)
{
	char sep = '{';

	strbuf_addf(out, "%s%s", m->name, suffix);
	if (s->l1)
		add_label(out, &sep, m->label1, s->l1);
	if (s->l2)
		add_label(out, &sep, m->label2, s->l2);
	if (le)
		add_label(out, &sep, "le", le);
	strbuf_adds(out, sep == ',' ? "} " : " ");
	add_number(out, v);
	strbuf_addc(out, '\n');
}

/* Cumulative buckets, then "+Inf", the sum and the count, as the format requires. */
static void render_histogram(
	struct strbuf *out, const struct metric *m, const struct metric_series *s)
{
	unsigned n = n_buckets(m);
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++) {
		cleanup_strbuf struct strbuf le = STRBUF_INIT;

		sum += s->hits[i];
		add_number(&le, m->buckets[i]);
		add_sample(out, m, s, "_bucket", strbuf_str(&le), (double)sum);
	}
	add_sample(out, m, s, "_bucket", "+Inf", (double)s->count);
	add_sample(out, m, s, "_sum", NULL, s->value);
	add_sample(out, m, s, "_count", NULL, (double)s->count);
}

/* Sort series for stable output: the list itself is in order of use. */
static int by_labels(const void *a, const void *b)
{
	const struct metric_series *x = *(const struct metric_series *const *)a;
	const struct metric_series *y = *(const struct metric_series *const *)b;
	int d = strcmp(x->l1 ? x->l1 : "", y->l1 ? y->l1 : "");

	return d ? d : strcmp(x->l2 ? x->l2 : "", y->l2 ? y->l2 : "");
}

/* A family may hold one series more than METRIC_MAX_SERIES, the one called "other". */
static void render_family(struct strbuf *out, const struct metric *m)
{
	static const char *const types[] = {"counter", "gauge", "histogram"};
	const struct metric_series *sorted[METRIC_MAX_SERIES + 1];
	unsigned n = 0;

	strbuf_addf(out, "# HELP %s ", m->name);
	add_escaped(out, m->help, false);
	strbuf_addf(out, "\n# TYPE %s %s\n", m->name, types[m->type]);
	for (const struct metric_series *s = m->series; s && n < ARRAY_LEN(sorted); s = s->next)
		sorted[n++] = s;
	qsort(sorted, n, sizeof(sorted[0]), by_labels);
	for (unsigned i = 0; i < n; i++) {
		if (m->type == METRIC_HISTOGRAM)
			render_histogram(out, m, sorted[i]);
		else
			add_sample(out, m, sorted[i], "", NULL, sorted[i]->value);
	}
}

void metric_render(struct strbuf *out)
{
	for (const struct metric *m = families; m; m = m->next)
		render_family(out, m);
}

void metric_reset_all(void)
{
	while (families) {
		struct metric *m = families;

		families = m->next;
		m->next = NULL;
		while (m->series) {
			struct metric_series *s = m->series;

			m->series = s->next;
			series_free(s);
		}
		m->n_series = 0;
	}
}
