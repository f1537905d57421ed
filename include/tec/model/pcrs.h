/* SPDX-License-Identifier: MIT */
/*
 * The text image-pcrs.json of ConfigMap image-pcrs: one entry per ApprovedImage, by resource name:
 * {"<name>":{"first_seen":time,"pcrs":[Pcr...],"platforms":[...],"reference":image,"variants":[...]
 * }}, where platforms (model/platforms.h) and variants (model/variants.h) are optional. Only the
 * operator writes it, and announces each entry's hash on its ApprovedImage first. Others who can
 * write the ConfigMap are not trusted, so the text is untrusted: an entry is good only when its
 * reference is a string, its values replay from its events, and PCR 4 and PCR 14 are among them. A
 * bad entry keeps the reason and does not affect the others.
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
	char *name, *reference;           /* owned; reference "" when absent */
	char *why;                        /* owned; NULL: the entry is good */
	char *text;                       /* owned; of a good entry, as written and hashed */
	char sha256[SHA256_HEX_LEN + 1];  /* of text */
	int64_t first_seen_us;            /* of a good entry */
	struct pcr_events events;         /* of a good entry */
	struct model_platforms platforms; /* of a good entry */
	struct model_variants variants;   /* of a good entry */
};

struct model_pcrs {
	struct model_pcrs_entry *v; /* owned; sorted by name */
	size_t n;
	char *why; /* owned; why the whole text is refused; NULL: it is not */
};

/* Parse the text; never returns NULL. */
struct model_pcrs *model_pcrs_parse(const char *text, size_t len);
void model_pcrs_free(struct model_pcrs *m);
DEFINE_CLEANUP(model_pcrs_cleanup_, struct model_pcrs *, model_pcrs_free)
#define cleanup_model_pcrs __attribute__((cleanup(model_pcrs_cleanup_)))
/* Find an entry; borrowed; NULL: absent. */
const struct model_pcrs_entry *model_pcrs_find(const struct model_pcrs *m, const char *name);

/* Make an entry; the caller releases it. */
struct json_object *model_pcrs_entry_json(
	const char *reference, int64_t first_seen_us, const struct pcr_events *events);
/*
 * Return the text with the entry of `name` replaced, added or (take_entry NULL) removed; the other
 * entries stay unchanged, good or bad. NULL: the text is not an object of entries (ERR_INVALID).
 * The caller frees it.
 */
char *model_pcrs_edit(const char *text, size_t len, const char *name,
	struct json_object *take_entry, struct err *err) MUST_CHECK;

#endif
