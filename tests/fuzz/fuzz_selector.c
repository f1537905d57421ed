/* SPDX-License-Identifier: MIT */
/*
 * A path with its query, to a newline, then what selectors look at of an object. Whatever is read
 * is read the same way twice; a requirement and its opposite never both select; what is refused
 * leaves nothing behind.
 */
#include "config.h"

#include <stdint.h>

#include "tec/apireq/request_info.h"
#include "tec/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* "k in (v)" and "k notin (v)" of the same words. */
static void check_opposites(const char *words, const char *meta)
{
	cleanup_free char *in = xasprintf("a in (%s)", words),
			  *out = xasprintf("a notin (%s)", words);
	struct store_selector *yes = NULL, *no = NULL;
	struct err err = ERR_INIT, again = ERR_INIT;
	int rc = store_selector_parse(in, NULL, "secrets", &yes, &err);

	if (strchr(words, ')')) { /* words end early: no pair */
		store_selector_free(yes);
		return;
	}
	if (store_selector_parse(out, NULL, "secrets", &no, &again) != rc)
		DIE("one of two opposites is refused");
	if (rc == 0 && store_selector_matches(yes, "", "", meta) ==
			       store_selector_matches(no, "", "", meta))
		DIE("neither or both of two opposites select");
	store_selector_free(yes);
	store_selector_free(no);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = xmemdup(data, size);
	char *meta = strchr(text, '\n');
	cleanup_apireq_request_info struct apireq_request_info t, again;
	struct err err = ERR_INIT, same = ERR_INIT;
	int rc;

	if (meta)
		*meta++ = '\0';
	meta = meta ? meta : text + strlen(text);
	rc = apireq_request_info_parse(text, &t, &err);
	if (apireq_request_info_parse(text, &again, &same) != rc || err.kind != same.kind)
		DIE("a path that is read in two ways");
	if (rc < 0 && t.select)
		DIE("a refusal with a selector");
	if (rc == 0 && (!*t.resource || strchr(t.name, '/') || strchr(t.ns, '/')))
		DIE("a target that is none");
	if (rc == 0)
		(void)store_selector_matches(t.select, t.ns, t.name, meta);
	check_opposites(text, meta);
	return 0;
}
