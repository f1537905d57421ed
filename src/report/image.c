/* SPDX-License-Identifier: MIT */
/* Pure functions: the lists, the values and the waiting are the caller's. An image is found by its
 * reference, so that approving it twice creates one object. */
#include "config.h"

#include "tec/report/image.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/json.h"
#include "tec/base/log.h"
#include "tec/base/mem.h"
#include "tec/kobj/key.h"
#include "tec/model/image.h"
#include "tec/report/advice.h"

#define NAME_MAX_1 50 /* characters of a name made from a reference, without the digest */

/* ---- names */

/* A name for the ApprovedImage: "debian-01234567" for "registry/a/Debian@sha256:0123456789...".
 * The caller frees. */
static char *name_of(const char *reference)
{
	const char *digest = model_image_digest(reference), *at = strchr(reference, '@');
	size_t end = at ? (size_t)(at - reference) : strlen(reference), start = end;
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	while (start > 0 && reference[start - 1] != '/')
		start--;
	for (size_t i = start; i < end && out.len < NAME_MAX_1 && reference[i] != ':'; i++) {
		int c = tolower((unsigned char)reference[i]);

		strbuf_addc(&out, isascii(c) && isalnum(c) ? (char)c : '-');
	}
	return xasprintf("%s%s-%.8s",
		out.len && isalnum((unsigned char)out.data[0]) ? "" : "image-", strbuf_str(&out),
		digest);
}

char *report_image_reference(const char *values, size_t len)
{
	uint8_t digest[SHA256_LEN];
	char hex[SHA256_HEX_LEN + 1];

	bytes_sha256(values, len, digest);
	bytes_to_hex(digest, SHA256_LEN, hex);
	return xasprintf("localhost/rootfs@sha256:%s", hex);
}

int report_image_check(const char *reference, const char *given, struct err *err)
{
	if (!model_image_digest(reference))
		return err_set(err, ERR_INVALID,
			"%.150s has no digest; next step: give REGISTRY/NAME@sha256:..., as printed by skopeo inspect or tec-compute-pcrs fetch",
			log_esc(reference));
	if (given && !kobj_name_valid(given, strlen(given)))
		return err_set(err, ERR_INVALID, "option --name: %.100s is not a valid object name",
			log_esc(given));
	return 0;
}

/* ---- the object */

/* By name if one was given, else by the reference. */
int report_image_choose(const struct report_world *w, const char *given, const char *reference,
	char **name, struct err *err)
{
	struct json_object *have = given ? report_find(w, REPORT_IMAGE, given) : NULL;

	for (size_t i = 0; !given && !have && i < w->list[REPORT_IMAGE].n; i++)
		if (str_eq(json_get_str(w->list[REPORT_IMAGE].v[i], "spec/image"), reference))
			have = w->list[REPORT_IMAGE].v[i];
	if (have && !str_eq(json_get_str(have, "spec/image"), reference))
		return err_set(err, ERR_INVALID,
			"ApprovedImage %.80s is for another image; next step: --name NAME", given);
	*name = have ? xstrdup(report_name(have)) : given ? xstrdup(given) : name_of(reference);
	return have ? 1 : 0;
}

struct json_object *report_image_new(const char *name, const char *reference, bool handed_in)
{
	struct json_object *o = json_obj(), *meta = json_add_str(json_obj(), "name", name);

	json_add_str(json_add_str(o, "apiVersion", "trusted-execution-clusters.io/v1alpha1"),
		"kind", "ApprovedImage");
	if (handed_in)
		json_add(meta, "annotations",
			json_add_str(json_obj(), MODEL_IMAGE_VALUES, MODEL_IMAGE_HANDED_IN));
	json_add(o, "metadata", meta);
	return json_add(o, "spec", json_add_str(json_obj(), "image", reference));
}

/* The condition's advice is better than "tecctl doctor", if there is one. It is never cut for the
 * message, which the command has printed in full. */
int report_image_late(struct json_object *image, uint64_t wait_s, struct err *err)
{
	struct json_object *c = report_condition(image, "Committed");
	const char *message = json_get_str(c, "message"), *reason = json_get_str(c, "reason");
	cleanup_strbuf struct strbuf late = STRBUF_INIT, next = STRBUF_INIT;
	size_t used;

	strbuf_addf(&late, "the image is not in force after %" PRIu64 " s: ", wait_s);
	strbuf_adds(&next, "; next step: ");
	if (!report_advice(REPORT_IMAGE, reason, report_name(image), &next))
		strbuf_adds(&next, "tecctl doctor");
	used = late.len + next.len;
	return err_set(err, ERR_INVALID, "%s%.*s%s", strbuf_str(&late),
		used < sizeof(err->text) ? (int)(sizeof(err->text) - 1 - used) : 0,
		message ? message : "the operator has reported nothing", strbuf_str(&next));
}

/* ---- the values */

static bool same_register(const struct pcr_events *a, const struct pcr_events *b, unsigned pcr)
{
	uint8_t x[SHA256_LEN], y[SHA256_LEN];

	return pcr_events_value(a, pcr, x) && pcr_events_value(b, pcr, y) &&
	       memcmp(x, y, sizeof(x)) == 0;
}

/* Whether the image computes to these values in any of its variants: the likeliest boot (i 0) and
 * those after it. PCR 7 is not compared: it depends on the platform, not on the image alone. */
static bool computed_has(const struct model_pcrmsg *m, const struct pcr_events *e)
{
	for (size_t i = 0; i <= m->variants.n; i++) {
		const struct pcr_events *v = i ? &m->variants.v[i - 1].events : &m->events;

		if (same_register(v, e, 4) && same_register(v, e, 14))
			return true;
	}
	return false;
}

size_t report_image_unlike(const struct model_pcrs_entry *e, const struct model_pcrmsg *computed)
{
	size_t n = !computed_has(computed, &e->events);

	for (size_t i = 0; i < e->variants.n; i++)
		n += !computed_has(computed, &e->variants.v[i].events);
	return n;
}
