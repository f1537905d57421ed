/* SPDX-License-Identifier: MIT */
/*
 * The text image-pcrs.json of ConfigMap image-pcrs: one entry per ApprovedImage, by resource name:
 * {"<name>":{"first_seen":time,"pcrs":[Pcr...],"platforms":[...],"reference":image,"variants":[...]
 * }}, of which platforms (model/platforms.h) and variants (model/variants.h) need not be there.
 * Written by the operator alone, which announces each entry's hash on its ApprovedImage first; what
 * else could write the ConfigMap is not trusted, so the text is hostile: an entry is good only when
 * its reference is a text, its values replay from its events, and PCR 4 and PCR 14 are among them.
 * A bad one keeps its reason and does not spoil the others.
 */
#ifndef TEC_MODEL_PCRS_H
#define TEC_MODEL_PCRS_H

#include <json-c/json.h>

#include "tec/base/mem.h"
#include "tec/model/platforms.h"
#include "tec/model/variants.h"
#include "tec/pcr/tpmevent.h"

#define MODEL_PCRS_CONFIGMAP "image-pcrs"
#define MODEL_PCRS_FILE      "image-pcrs.json"

struct model_pcrs_entry {
	char *name, *reference;           /* owned; reference "" when there is none */
	char *why;                        /* owned; NULL: the entry is good */
	char *text;                       /* owned; of a good entry, as it is written and hashed */
	char sha256[SHA256_HEX_LEN + 1];  /* of text */
	int64_t first_seen_us;            /* of a good entry */
	struct pcr_events events;         /* of a good entry */
	struct model_platforms platforms; /* of a good entry */
	struct model_variants variants;   /* of a good entry */
};

struct model_pcrs {
	struct model_pcrs_entry *v; /* owned; sorted by name */
	size_t n;
	char *why; /* owned; the whole text is refused; NULL: it is not */
};

/* Never NULL. */
struct model_pcrs *model_pcrs_parse(const char *text, size_t len);
void model_pcrs_free(struct model_pcrs *m);
DEFINE_CLEANUP(model_pcrs_cleanup_, struct model_pcrs *, model_pcrs_free)
#define cleanup_model_pcrs __attribute__((cleanup(model_pcrs_cleanup_)))
/* Borrowed; NULL: there is no such entry. */
const struct model_pcrs_entry *model_pcrs_find(const struct model_pcrs *m, const char *name);

/* These events are enough for an approval. */
int model_pcrs_check(const struct pcr_events *e, struct err *err) MUST_CHECK;
/* An entry; the caller puts it. */
struct json_object *model_pcrs_entry_json(
	const char *reference, int64_t first_seen_us, const struct pcr_events *events);
/*
 * The text with the entry of `name` replaced, added or (take_entry NULL) taken out; the others stay
 * as they are, good or bad. NULL: the text is not an object of entries (ERR_INVALID). The caller
 * frees.
 */
char *model_pcrs_edit(const char *text, size_t len, const char *name,
	struct json_object *take_entry, struct err *err) MUST_CHECK;

#endif
