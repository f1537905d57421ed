/* SPDX-License-Identifier: MIT */
/*
 * Objects of an API, of any shape, as tecctl shows them: {"machine":[...],"key":[...]...}. No text that it
 * prints has a byte that a terminal acts on.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/report/lists.h"
#include "tec/report/status.h"
#include "tec/report/text.h"
#include "tec/report/why.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct strbuf *out)
{
	for (size_t i = 0; i < out->len; i++)
		assert((unsigned char)out->data[i] >= 0x20 ? out->data[i] != 0x7f
							   : out->data[i] == '\n');
}

static void show_all(struct report_world *w)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT, yaml = STRBUF_INIT;
	cleanup_json struct json_object *status = report_status(w);

	report_status_text(status, false, &out);
	report_yaml(&yaml, status);
	report_machines(w, false, &out);
	report_keys(w, false, &out);
	report_images(w, false, &out);
	for (size_t i = 0; i < w->list[REPORT_MACHINE].n; i++) {
		cleanup_json struct json_object *why = report_why(w, w->list[REPORT_MACHINE].v[i]);

		report_why_text(why, false, &out);
		report_machine(w, w->list[REPORT_MACHINE].v[i], false, &out);
	}
	for (size_t i = 0; i < w->list[REPORT_IMAGE].n; i++)
		report_image(w, w->list[REPORT_IMAGE].v[i], false, &out);
	check_text(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"cluster", "machine", "key", "image", "map", "event"};
	struct report_world w = {.ns = "n", .now_s = 1767323045};
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse((const char *)data, size, &json_limits_public, &err);

	if (!o)
		return 0;
	for (unsigned k = 0; k < REPORT_N_KINDS; k++) {
		struct json_object *all = json_get_arr(o, names[k]);

		for (size_t i = 0; all && i < json_object_array_length(all); i++)
			report_world_take(&w, (enum report_kind)k,
				json_object_get(json_object_array_get_idx(all, i)));
	}
	report_world_sort(&w);
	show_all(&w);
	report_world_fini(&w);
	return 0;
}
