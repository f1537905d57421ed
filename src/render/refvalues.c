/* SPDX-License-Identifier: MIT */
/* Names are compared as text, so they are ordered by PCR values in hex. Values are written by
 * hand: hundreds are made after each change, and they contain only hex and image names. */
#include "config.h"

#include "tec/render/refvalues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

/* A PCR set and the name of its boot. */
struct named {
	char name[RENDER_BOOT_NAME_MAX + 1];
	const struct pcr_set *set;
};

void render_refvalues_fini(struct render_refvalues *r)
{
	for (int i = 0; i < MODEL_RV_N_ARRAYS; i++)
		free(r->array[i]);
	for (size_t i = 0; i < r->n_boot; i++)
		free(r->boot[i].value);
	free(r->boot);
	*r = (struct render_refvalues)RENDER_REFVALUES_INIT;
}

/* PCR values in hex, in the order 4, 7, 14; the same name in the policy (rats/policy.c). */
void render_boot_name(const uint8_t pcr4[SHA256_LEN], const uint8_t *pcr7,
	const uint8_t pcr14[SHA256_LEN], char out[RENDER_BOOT_NAME_MAX + 1])
{
	const uint8_t *const registers[] = {pcr4, pcr7, pcr14};
	char *p = stpcpy(out, "boot");

	for (size_t i = 0; i < ARRAY_LEN(registers); i++) {
		if (!registers[i])
			continue;
		*p++ = '.';
		bytes_to_hex(registers[i], SHA256_LEN, p);
		p += SHA256_HEX_LEN;
	}
}

/* ---- arrays */

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, SHA256_LEN);
}

/* The distinct values of one PCR as a sorted JSON array. */
static char *array_of(const struct pcr_sets *sets, unsigned pcr)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	cleanup_free uint8_t *v = xcalloc(2 * sets->n + 1, SHA256_LEN);
	char hex[SHA256_HEX_LEN + 1];
	size_t n = 0;

	for (size_t i = 0; i < sets->n; i++) {
		const struct pcr_set *s = &sets->v[i];

		if (s->has[pcr])
			memcpy(v + SHA256_LEN * n++, s->value[pcr], SHA256_LEN);
		if (pcr == 4 && s->has_uncalled)
			memcpy(v + SHA256_LEN * n++, s->uncalled, SHA256_LEN);
	}
	qsort(v, n, SHA256_LEN, by_bytes);
	strbuf_addc(&out, '[');
	for (size_t i = 0; i < n; i++) {
		const uint8_t *at = v + SHA256_LEN * i;

		if (i && memcmp(at, at - SHA256_LEN, SHA256_LEN) == 0)
			continue;
		bytes_to_hex(at, SHA256_LEN, hex);
		strbuf_addf(&out, "%s\"%s\"", i ? "," : "", hex);
	}
	strbuf_addc(&out, ']');
	return strbuf_steal(&out);
}

/* ---- boots */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* The value of n sets with the same PCR values: the images that boot so on their own, otherwise
 * those of which parts are combined. */
static char *boot_value(const char *const *images, const struct named *v, size_t n)
{
	cleanup_free const char **names = xcalloc(2 * n, sizeof(*names));
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	size_t k = 0, shown = 0;

	for (size_t i = 0; i < n; i++)
		/* Both halves are of one image: a boot of that image alone. */
		if (v[i].set->image[0] == v[i].set->image[1])
			names[k++] = images[v[i].set->image[0]];
	/* No image boots so on its own: name both images of each mix. */
	for (size_t i = 0, own = k; i < n && !own; i++) {
		names[k++] = images[v[i].set->image[0]];
		names[k++] = images[v[i].set->image[1]];
	}
	qsort(names, k, sizeof(*names), by_text);
	strbuf_adds(&out, "{\"images\":[");
	for (size_t i = 0; i < k; i++) {
		if (i && strcmp(names[i], names[i - 1]) == 0)
			continue;
		if (shown++)
			strbuf_addc(&out, ',');
		json_quote(&out, names[i], strlen(names[i]));
	}
	strbuf_adds(&out, "]}");
	return strbuf_steal(&out);
}

/* Sets with equal PCR values have equal names, so they are adjacent after sorting. A set has a name
 * for each form of PCR 4. */
static void add_boots(const char *const *images, const struct pcr_sets *sets, bool with_pcr7,
	struct render_refvalues *out)
{
	cleanup_free struct named *v = xcalloc(2 * sets->n + 1, sizeof(*v));
	size_t n = 0, end;

	for (size_t i = 0; i < sets->n; i++) {
		const struct pcr_set *s = &sets->v[i];
		const uint8_t *pcr7 = with_pcr7 ? s->value[7] : NULL;

		/* A boot without one of these values cannot be named, and is not approved. */
		if (!s->has[4] || !s->has[14] || (with_pcr7 && !s->has[7]))
			continue;
		render_boot_name(s->value[4], pcr7, s->value[14], v[n].name);
		v[n++].set = s;
		if (!s->has_uncalled)
			continue;
		render_boot_name(s->uncalled, pcr7, s->value[14], v[n].name);
		v[n++].set = s;
	}
	qsort(v, n, sizeof(*v), by_name);
	out->boot = xcalloc(n + 1, sizeof(*out->boot));
	for (size_t i = 0; i < n; i = end) {
		struct render_boot *b = &out->boot[out->n_boot++];

		for (end = i + 1; end < n && strcmp(v[end].name, v[i].name) == 0; end++)
			;
		memcpy(b->name, v[i].name, sizeof(b->name));
		b->value = boot_value(images, &v[i], end - i);
	}
}

/* tpm_svn does not come from images: it is a constant of the file. */
void render_refvalues(const char *const *images, const struct pcr_sets *sets, bool with_pcr7,
	struct render_refvalues *out)
{
	*out = (struct render_refvalues)RENDER_REFVALUES_INIT;
	out->array[MODEL_RV_PCR14] = array_of(sets, 14);
	out->array[MODEL_RV_PCR4] = array_of(sets, 4);
	out->array[MODEL_RV_PCR7] = array_of(sets, 7);
	out->array[MODEL_RV_SVN] = xstrdup("[\"1\"]");
	add_boots(images, sets, with_pcr7, out);
}

/* PCR 7 is optional (spec.attestation.pcr7), so its array is omitted if empty. */
void render_refvalues_file(const struct render_refvalues *r, int64_t expires_s, struct strbuf *out)
{
	char expires[CLOCK_RFC3339_LEN];
	bool first = true;

	clock_format(expires_s, expires);
	strbuf_addc(out, '[');
	for (int i = 0; i < MODEL_RV_N_ARRAYS; i++) {
		if (i == MODEL_RV_PCR7 && str_eq(r->array[i], "[]"))
			continue;
		strbuf_addf(out,
			"%s{\"version\":\"0.1.0\",\"name\":\"%s\",\"expiration\":\"%s\",\"value\":",
			first ? "" : ",", model_rv_array_names[i], expires);
		strbuf_adds(out, r->array[i]);
		strbuf_addc(out, '}');
		first = false;
	}
	strbuf_addc(out, ']');
}
