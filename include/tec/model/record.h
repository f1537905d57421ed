/* SPDX-License-Identifier: MIT */
/*
 * A record of what was deleted: the text of a ConfigMap, a line for each entry, "SECONDS KIND
 * NAME". Two families of ConfigMaps hold one each: tec-revoked-N, what was revoked from Trustee
 * (a Trustee that is set back holds it again), and tec-deleted-ids, ids of deleted Machines that
 * prove to a listener that they were handed out (rats/ticket.h).
 *
 * Pure. A parsed record is sorted and never changes; lines that are none of ours are left out, so
 * that a name in it is always one that Trustee or a listener may know.
 */
#ifndef TEC_MODEL_RECORD_H
#define TEC_MODEL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/str.h"

#define MODEL_RECORD_REVOKED "tec-revoked-" /* and a number below MODEL_RECORD_MAPS */
#define MODEL_RECORD_IDS     "tec-deleted-ids"
#define MODEL_RECORD_FILE    "deleted"                              /* in data */
#define MODEL_RECORD_LABEL   "trusted-execution-clusters.io/record" /* on all of them */

#define MODEL_RECORD_MAPS    64
#define MODEL_RECORD_ENTRIES 256  /* of one tec-revoked-N */
#define MODEL_RECORD_IDS_MAX 4096 /* of tec-deleted-ids; no record has more */
#define MODEL_RECORD_DAYS    30   /* so long a revocation is kept */

enum model_record_kind {
	MODEL_RECORD_RESOURCE, /* a path of Trustee: default/UUID/root */
	MODEL_RECORD_VALUE,    /* a reference value: an identity, or a boot set */
	MODEL_RECORD_ID,       /* of a Machine; its time is the Machine's deletionTimestamp */
	MODEL_RECORD_DROPPED,  /* revocations up to this time had no place: the name is "-" */
	MODEL_RECORD_N_KINDS,
};

struct model_record_entry {
	int64_t at_s; /* wall clock */
	enum model_record_kind kind;
	const char *name; /* borrowed from the record */
};

struct model_record {
	struct model_record_entry *v; /* by kind and name; of one name the latest */
	size_t n;
	int64_t newest_s; /* 0: empty */
	char *text;       /* owned: what the names are in */
};

struct model_record *model_record_parse(const char *text); /* never NULL */
void model_record_free(struct model_record *r);
/* NULL: it is not there; r may be NULL. Borrowed. */
const struct model_record_entry *model_record_find(
	const struct model_record *r, enum model_record_kind kind, const char *name);
void model_record_add(
	struct strbuf *text, enum model_record_kind kind, const char *name, int64_t at_s);
/* Revocations before this time (wall clock) are no longer kept. */
int64_t model_record_oldest_s(int64_t now_s);
/* The ConfigMap with this name may hold one. */
bool model_record_is_name(const char *configmap);
void model_record_name(unsigned map, char out[sizeof(MODEL_RECORD_REVOKED) + 10]);

#endif
