/* SPDX-License-Identifier: MIT */
/* A record is one copy of the text, cut into lines in place; entries point into it. */
#include "config.h"

#include "tec/model/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/uuid.h"
#include "tec/rats/names.h"

#define BOOT_PREFIX "boot."
#define NAME_MAX_   300
#define NAME_CHARS  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define TIME_MAX    INT64_C(99999999999) /* seconds: the year 5138 */

static const char *const words[MODEL_RECORD_N_KINDS] = {
	[MODEL_RECORD_RESOURCE] = "resource",
	[MODEL_RECORD_VALUE] = "value",
	[MODEL_RECORD_ID] = "id",
	[MODEL_RECORD_DROPPED] = "dropped",
};

/* Each kind has its own form of name. Others are dropped, since the names are later sent to Trustee
 * or compared with ids. */
static bool is_name(enum model_record_kind kind, const char *name)
{
	char id[UUID_TEXT_LEN + 1];

	switch (kind) {
	case MODEL_RECORD_RESOURCE:
		return rats_resource_is_root(name, id);
	case MODEL_RECORD_VALUE:
		/* Only characters that every storage backend of Trustee accepts. */
		return (rats_is_identity_name(name) || str_starts(name, BOOT_PREFIX)) &&
		       strlen(name) <= NAME_MAX_ && name[strspn(name, NAME_CHARS)] == '\0';
	case MODEL_RECORD_ID:
		return uuid_valid(name, strlen(name));
	case MODEL_RECORD_DROPPED:
		return str_eq(name, "-");
	case MODEL_RECORD_N_KINDS:
		break;
	}
	return false;
}

/* Parse "SECONDS KIND NAME", cutting the line at its blanks. */
static bool read_line(char *line, struct model_record_entry *out)
{
	char *kind = strchr(line, ' '), *name = kind ? strchr(kind + 1, ' ') : NULL, *end;

	if (!name || *line < '0' || *line > '9')
		return false;
	*kind++ = *name++ = '\0';
	out->at_s = strtoll(line, &end, 10);
	if (*end || out->at_s > TIME_MAX)
		return false;
	for (int i = 0; i < MODEL_RECORD_N_KINDS; i++) {
		if (!str_eq(kind, words[i]))
			continue;
		out->kind = (enum model_record_kind)i;
		out->name = name;
		return is_name(out->kind, name);
	}
	return false;
}

/* The order of entries, which model_record_find() relies on. */
static int by_name(const void *a, const void *b)
{
	const struct model_record_entry *x = a, *y = b;

	return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
}

/* Sort by kind and name, of one name the latest first: that one is kept. */
static int latest_first(const void *a, const void *b)
{
	const struct model_record_entry *x = a, *y = b;
	int d = by_name(x, y);

	return d ? d : (x->at_s < y->at_s) - (x->at_s > y->at_s);
}

/* The number of entries is bounded, because the ConfigMap can be edited by others. */
struct model_record *model_record_parse(const char *text)
{
	struct model_record *r = xcalloc(1, sizeof(*r));
	size_t n = 0;
	char *next;

	r->text = xstrdup(text);
	for (char *line = r->text; line && n < MODEL_RECORD_IDS_MAX; line = next) {
		struct model_record_entry e;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!read_line(line, &e))
			continue;
		ARRAY_GROW(r->v, n);
		r->v[n++] = e;
		r->newest_s = e.at_s > r->newest_s ? e.at_s : r->newest_s;
	}
	if (n)
		qsort(r->v, n, sizeof(*r->v), latest_first);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || by_name(&r->v[i], &r->v[r->n - 1]) != 0)
			r->v[r->n++] = r->v[i];
	return r;
}

void model_record_free(struct model_record *r)
{
	if (!r)
		return;
	free(r->v);
	free(r->text);
	free(r);
}

const struct model_record_entry *model_record_find(
	const struct model_record *r, enum model_record_kind kind, const char *name)
{
	const struct model_record_entry key = {.kind = kind, .name = name};

	return r && r->n ? bsearch(&key, r->v, r->n, sizeof(*r->v), by_name) : NULL;
}

void model_record_add(
	struct strbuf *text, enum model_record_kind kind, const char *name, int64_t at_s)
{
	strbuf_addf(text, "%" PRId64 " %s %s\n", at_s, words[kind], name);
}

int64_t model_record_oldest_s(int64_t now_s)
{
	return now_s - MODEL_RECORD_DAYS * INT64_C(86400);
}

/* Any suffix will do: records are looked up by exact name, so others are parsed but never used. */
bool model_record_is_name(const char *configmap)
{
	return str_starts(configmap, MODEL_RECORD_REVOKED) || str_eq(configmap, MODEL_RECORD_IDS);
}

void model_record_name(unsigned map, char out[sizeof(MODEL_RECORD_REVOKED) + 10])
{
	snprintf(out, sizeof(MODEL_RECORD_REVOKED) + 10, MODEL_RECORD_REVOKED "%u", map);
}
