/* SPDX-License-Identifier: MIT */
/* Notes in a table by name, with counts by lag. Most keys are in step and have no note, so
 * memory and time depend on the number of problems, not of objects. */
#include "config.h"

#include "follow_internal.h"

#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

#define NAMES_SHOWN 3

static struct follow_note *find(const struct follow_notes *n, const char *name)
{
	struct follow_note *note;

	TABLE_WITH_HASH (note, link, &n->table, table_hash_str(name))
		if (strcmp(note->name, name) == 0)
			return note;
	return NULL;
}

/* A new note counts as in step until its lag is set. */
static struct follow_note *get(struct follow_notes *n, const char *name)
{
	struct follow_note *note = find(n, name);

	if (note)
		return note;
	note = xcalloc(1, sizeof(*note) + strlen(name) + 1);
	memcpy(note->name, name, strlen(name));
	table_add(&n->table, &note->link, table_hash_str(name));
	n->n[FOLLOW_IN_STEP]++;
	return note;
}

/* Keeps the table as small as the number of problems. */
static void drop_if_empty(struct follow_notes *n, struct follow_note *note)
{
	if (note->deleted || note->lag != FOLLOW_IN_STEP)
		return;
	n->n[FOLLOW_IN_STEP]--;
	table_remove(&n->table, &note->link);
	free(note);
}

bool follow_note_deleted(const struct follow_notes *n, const char *name)
{
	const struct follow_note *note = find(n, name);

	return note && note->deleted;
}

/* Clearing a note that does not exist is the common case, and costs one lookup. */
void follow_note_set_deleted(struct follow_notes *n, const char *name, bool deleted)
{
	struct follow_note *note = deleted ? get(n, name) : find(n, name);

	if (!note)
		return;
	note->deleted = deleted;
	drop_if_empty(n, note);
}

/* Counts by lag are updated here and nowhere else. */
bool follow_note_set_lag(struct follow_notes *n, const char *name, enum follow_lag lag)
{
	struct follow_note *note = lag == FOLLOW_IN_STEP ? find(n, name) : get(n, name);

	if (!note || note->lag == lag)
		return false;
	n->n[note->lag]--;
	n->n[lag]++;
	note->lag = lag;
	drop_if_empty(n, note);
	return true;
}

/* The order is that of the table: arbitrary, but stable while nothing changes. */
void follow_note_names(const struct follow_notes *n, enum follow_lag lag, struct strbuf *out)
{
	const struct follow_note *note;
	size_t shown = 0;

	if (n->n[lag] == 0)
		return;
	TABLE_EACH (note, link, &n->table) {
		if (note->lag != lag)
			continue;
		if (shown == NAMES_SHOWN) {
			strbuf_addf(out, " and %zu more", n->n[lag] - shown);
			return;
		}
		strbuf_addf(out, "%s%s", shown ? ", " : "", note->name);
		shown++;
	}
}

void follow_notes_clear(struct follow_notes *n)
{
	struct follow_note *note;

	TABLE_EACH (note, link, &n->table)
		free(note);
	table_fini(&n->table);
	memset(n, 0, sizeof(*n));
}
