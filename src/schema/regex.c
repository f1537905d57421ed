/* SPDX-License-Identifier: MIT */
/*
 * PCRE2 backtracks, so each match has limits; the patterns of crd/ stay far below them. Groups do
 * not capture, and therefore there are no back references.
 */
#include "config.h"

#include "tec/schema/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "tec/base/mem.h"

#define PATTERN_MAX 4096    /* bytes */
#define MATCH_LIMIT 200000  /* backtracking steps from one position */
#define DEPTH_LIMIT 10000   /* nested alternatives */
#define HEAP_LIMIT  4096    /* KiB */
#define TEXT_MAX    1048576 /* bytes */

struct schema_regex {
	pcre2_code *code;             /* owned */
	pcre2_match_context *context; /* owned: the limits */
};

/* NEVER_BACKSLASH_C refuses \C, which could split a UTF-8 character. */
struct schema_regex *schema_regex_new(const char *pattern, size_t len, struct err *err)
{
	/* Without DOLLAR_ENDONLY, "$" would also match before a final newline. */
	const uint32_t options =
		PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_AUTO_CAPTURE;
	struct schema_regex *r;
	pcre2_code *code;
	PCRE2_SIZE at = 0;
	int why = 0;

	if (len > PATTERN_MAX) {
		err_set(err, ERR_INVALID, "the pattern is longer than %d bytes", PATTERN_MAX);
		return NULL;
	}
	code = pcre2_compile((PCRE2_SPTR)pattern, len, options, &why, &at, NULL);
	if (!code) {
		PCRE2_UCHAR text[128] = "";

		pcre2_get_error_message(why, text, sizeof(text));
		err_set(err, ERR_INVALID, "%s at byte %zu", (const char *)text, (size_t)at);
		return NULL;
	}
	r = xcalloc(1, sizeof(*r));
	r->code = code;
	r->context = pcre2_match_context_create(NULL);
	if (!r->context)
		DIE("out of memory");
	pcre2_set_match_limit(r->context, MATCH_LIMIT);
	pcre2_set_depth_limit(r->context, DEPTH_LIMIT);
	pcre2_set_heap_limit(r->context, HEAP_LIMIT);
	return r;
}

void schema_regex_free(struct schema_regex *r)
{
	if (!r)
		return;
	pcre2_match_context_free(r->context);
	pcre2_code_free(r->code);
	free(r);
}

/* A match that exceeds a limit returns an error, which counts as no match: the value is refused. */
bool schema_regex_match(const struct schema_regex *r, const char *s, size_t len)
{
	pcre2_match_data *data;
	int rc;

	if (len > TEXT_MAX)
		return false;
	data = pcre2_match_data_create(1, NULL);
	if (!data)
		DIE("out of memory");
	rc = pcre2_match(r->code, (PCRE2_SPTR)s, len, 0, 0, data, r->context);
	pcre2_match_data_free(data);
	return rc >= 0;
}
