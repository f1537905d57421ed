/* SPDX-License-Identifier: MIT */
/*
 * The text is parsed as a whole and released again: some kilobytes of events per image remain.
 * Names that no ApprovedImage can have are skipped, so that none of them ever reaches a Trustee.
 */
#include "config.h"

#include "tec/model/pcrs.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/kobj/key.h"

/* The largest ConfigMap is 1 MiB. */
static const struct json_limits limits = {.bytes = 1536 * 1024, .depth = 9, .tokens = 200000};
#define ENTRIES_MAX 4096

static int by_name(const void *a, const void *b)
{
	const struct model_pcrs_entry *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Store the entry, or the reason why it is refused. The hash is of our own rendering of it, which
 * is what the announcement on the ApprovedImage contains. */
static void read_entry(struct model_pcrs_entry *e, const char *name, struct json_object *o)
{
	const char *reference = json_get_str(o, "reference"), *seen = json_get_str(o, "first_seen");
	struct err err = ERR_INIT;
	int64_t us;

	e->name = xstrdup(name);
	e->reference = xstrdup(reference ? reference : "");
	if (!reference)
		err_set(&err, ERR_INVALID, "reference is missing or not a string");
	else if (!seen || clock_parse(seen, &us) < 0)
		err_set(&err, ERR_INVALID, "first_seen is missing or not a time");
	else if (pcr_events_from_json(json_get_arr(o, "pcrs"), &e->events, &err) == 0 &&
		 model_variant_check(&e->events, &err) == 0) {
		model_platforms_read(json_get_arr(o, "platforms"), &e->platforms);
		model_variants_read(json_get_arr(o, "variants"), &e->variants);
		e->first_seen_us = us;
		e->text = json_text(o);
		bytes_sha256_hex(e->text, strlen(e->text), e->sha256);
		return;
	}
	pcr_events_fini(&e->events);
	e->why = xstrdup(err.text);
}

/* Check the form of the text as a whole; entries are checked one by one later. */
static struct json_object *parse(const char *text, size_t len, struct err *err)
{
	cleanup_json struct json_object *o = json_parse(text, len, &limits, err);

	if (o && !json_object_is_type(o, json_type_object))
		err_set(err, ERR_INVALID, "it is not a JSON object");
	else if (json_len(o) > ENTRIES_MAX)
		err_set(err, ERR_INVALID, "it has more than %d entries", ENTRIES_MAX);
	return err_is_set(err) ? NULL : steal_ptr(&o);
}

/* An unreadable text is kept as a reason: no entry of it counts, but nothing else is affected. */
struct model_pcrs *model_pcrs_parse(const char *text, size_t len)
{
	struct model_pcrs *m = xcalloc(1, sizeof(*m));
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o = parse(text, len, &err);

	if (!o) {
		m->why = xstrdup(err.text);
		return m;
	}
	m->v = xcalloc((size_t)json_len(o) + 1, sizeof(*m->v));
	json_object_object_foreach (o, name, entry) {
		if (kobj_name_valid(name, strlen(name)))
			read_entry(&m->v[m->n++], name, entry);
	}
	qsort(m->v, m->n, sizeof(*m->v), by_name);
	return m;
}

void model_pcrs_free(struct model_pcrs *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].name);
		free(m->v[i].reference);
		free(m->v[i].why);
		free(m->v[i].text);
		pcr_events_fini(&m->v[i].events);
		model_platforms_fini(&m->v[i].platforms);
		model_variants_fini(&m->v[i].variants);
	}
	free(m->v);
	free(m->why);
	free(m);
}

/* bsearch() compares only the name, so the key needs no other member. */
const struct model_pcrs_entry *model_pcrs_find(const struct model_pcrs *m, const char *name)
{
	const struct model_pcrs_entry key = {.name = (char *)(uintptr_t)name};

	return m->n ? bsearch(&key, m->v, m->n, sizeof(*m->v), by_name) : NULL;
}

struct json_object *model_pcrs_entry_json(
	const char *reference, int64_t first_seen_us, const struct pcr_events *events)
{
	struct json_object *o = json_obj();
	char seen[CLOCK_RFC3339_US_LEN];

	clock_format_us(first_seen_us, seen);
	json_add_str(o, "first_seen", seen);
	json_add(o, "pcrs", pcr_events_json(events));
	return json_add_str(o, "reference", reference);
}

/* Work on the JSON instead of the parsed entries, so that entries of others keep every member. */
char *model_pcrs_edit(const char *text, size_t len, const char *name,
	struct json_object *take_entry, struct err *err)
{
	cleanup_json struct json_object *entry = take_entry;
	cleanup_json struct json_object *o = parse(text, len, err);

	if (!o)
		return NULL;
	if (entry)
		json_add(o, name, steal_ptr(&entry));
	else
		json_object_object_del(o, name);
	return json_text(o);
}
