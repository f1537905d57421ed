/* SPDX-License-Identifier: MIT */
/* A world from JSON text: {"cluster":[...],"machine":[...],"key":[...],"image":[...],"map":[...],"event":[...]}. */
#ifndef TEST_SHOW_TESTING_H
#define TEST_SHOW_TESTING_H

#include <criterion/criterion.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/report/world.h"

#define NOW_S 1767323045 /* 2026-01-02T03:04:05Z */
#define META(name, uid)                                                                            \
	"\"metadata\":{\"name\":\"" name "\",\"uid\":\"" uid                                       \
	"\",\"resourceVersion\":\"1\",\"namespace\":\"n\",\"creationTimestamp\":\"2026-01-02T03:00:05Z\"}"
#define COND(type, status, reason, message)                                                        \
	"{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"" reason                    \
	"\",\"message\":\"" message "\"}"

static inline void world_of(struct report_world *w, const char *text)
{
	static const char *const names[] = {"cluster", "machine", "key", "image", "map", "event"};
	struct err err = ERR_INIT;
	cleanup_json struct json_object *o =
		json_parse(text, strlen(text), &json_limits_object, &err);

	cr_assert(o, "%s", err.text);
	*w = (struct report_world){.ns = "n", .now_s = NOW_S};
	for (unsigned k = 0; k < REPORT_N_KINDS; k++) {
		struct json_object *all = json_get_arr(o, names[k]);

		for (size_t i = 0; all && i < json_object_array_length(all); i++)
			report_world_take(w, (enum report_kind)k,
				json_object_get(json_object_array_get_idx(all, i)));
	}
	report_world_sort(w);
}

#endif
