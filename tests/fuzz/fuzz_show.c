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
#include "tec/show/lists.h"
#include "tec/show/status.h"
#include "tec/show/text.h"
#include "tec/show/why.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct strbuf *out)
{
	for (size_t i = 0; i < out->len; i++)
		assert((unsigned char)out->data[i] >= 0x20 ? out->data[i] != 0x7f
							   : out->data[i] == '\n');
}

static void show_all(struct show_world *w)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT, yaml = STRBUF_INIT;
	cleanup_json struct json_object *status = show_status(w);

	show_status_text(status, false, &out);
	show_yaml(&yaml, status);
	show_machines(w, false, &out);
	show_keys(w, false, &out);
	show_images(w, false, &out);
	for (size_t i = 0; i < w->list[SHOW_MACHINE].n; i++) {
		cleanup_json struct json_object *why = show_why(w, w->list[SHOW_MACHINE].v[i]);

		show_why_text(why, false, &out);
		show_machine(w, w->list[SHOW_MACHINE].v[i], false, &out);
	}
	for (size_t i = 0; i < w->list[SHOW_IMAGE].n; i++)
		show_image(w, w->list[SHOW_IMAGE].v[i], false, &out);
	check_text(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"cluster", "machine", "key", "image", "map", "event"};
	struct show_world w = {.ns = "n", .now_s = 1767323045};
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse((const char *)data, size, &json_limits_public, &err);

	if (!o)
		return 0;
	for (unsigned k = 0; k < SHOW_N_KINDS; k++) {
		struct json_object *all = json_get_arr(o, names[k]);

		for (size_t i = 0; all && i < json_object_array_length(all); i++)
			show_world_take(&w, (enum show_kind)k,
				json_object_get(json_object_array_get_idx(all, i)));
	}
	show_world_sort(&w);
	show_all(&w);
	show_world_fini(&w);
	return 0;
}
