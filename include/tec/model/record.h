/* SPDX-License-Identifier: MIT */
/*
 * A record of deletions: the text of a ConfigMap, with a line "SECONDS KIND NAME" for each entry.
 * There are two families of such ConfigMaps: tec-revoked-N, what was revoked from Trustee (a
 * Trustee restored from a backup has it again), and tec-deleted-ids, ids of deleted Machines, which
 * prove to a listener that they were once issued (rats/ticket.h).
 *
 * Pure. A parsed record is sorted and never changes; malformed lines are skipped, so that a name in
 * it is always one that Trustee or a listener may know.
 */
#ifndef TEC_MODEL_RECORD_H
#define TEC_MODEL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/str.h"

#define MODEL_RECORD_REVOKED "tec-revoked-" /* followed by a number below MODEL_RECORD_MAPS */
#define MODEL_RECORD_IDS     "tec-deleted-ids"
#define MODEL_RECORD_FILE    "deleted"                              /* in data */
#define MODEL_RECORD_LABEL   "trusted-execution-clusters.io/record" /* on all of them */

#define MODEL_RECORD_MAPS    64
#define MODEL_RECORD_ENTRIES 256  /* at most, in one tec-revoked-N */
#define MODEL_RECORD_IDS_MAX 4096 /* at most, in tec-deleted-ids; no record has more */
#define MODEL_RECORD_DAYS    30   /* for which a revocation is kept */

enum model_record_kind {
	MODEL_RECORD_RESOURCE, /* a path of Trustee: default/UUID/root */
	MODEL_RECORD_VALUE,    /* a reference value: an identity, or a boot set */
	MODEL_RECORD_ID,       /* of a Machine; its time is the Machine's deletionTimestamp */
	MODEL_RECORD_DROPPED,  /* revocations up to this time did not fit: the name is "-" */
	MODEL_RECORD_N_KINDS,
};

struct model_record_entry {
	int64_t at_s; /* wall clock */
	enum model_record_kind kind;
	const char *name; /* borrowed from the record */
};

struct model_record {
	struct model_record_entry *v; /* owned; sorted by kind and name; the latest of each name */
	size_t n;
	int64_t newest_s; /* 0: empty */
	char *text;       /* owned; contains the names */
};

struct model_record *model_record_parse(const char *text); /* never NULL */
void model_record_free(struct model_record *r);
/* Find an entry; NULL: absent. r may be NULL. Borrowed. */
const struct model_record_entry *model_record_find(
	const struct model_record *r, enum model_record_kind kind, const char *name);
void model_record_add(
	struct strbuf *text, enum model_record_kind kind, const char *name, int64_t at_s);
/* Return the time (wall clock) before which revocations are no longer kept. */
int64_t model_record_oldest_s(int64_t now_s);
/* Tell whether a ConfigMap with this name may hold a record. */
bool model_record_is_name(const char *configmap);
void model_record_name(unsigned map, char out[sizeof(MODEL_RECORD_REVOKED) + 10]);

#endif
