/* SPDX-License-Identifier: MIT */
/* The text can be edited by others, so each entry is checked, and the number of entries is bounded. */
#include "config.h"

#include "tec/model/lost.h"

#include <string.h>

#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"

/* Read the time of an entry; INT64_MAX: it is not RFC 3339, or there is no address. */
static int64_t at_of(struct json_object *entry)
{
	const char *address = json_get_str(entry, "address"), *at = json_get_str(entry, "at");
	int64_t us;

	if (!address || !address[0] || !at || clock_parse(at, &us) < 0)
		return INT64_MAX;
	return us / 1000000;
}

struct json_object *model_lost_list(const char *text)
{
	struct err ignored = ERR_INIT;
	cleanup_json struct json_object *all =
		text ? json_parse(text, strlen(text), &json_limits_object, &ignored) : NULL;
	struct json_object *list = json_arr();

	if (!json_object_is_type(all, json_type_array))
		return list;
	for (size_t i = 0; i < json_len(all) && json_len(list) < MODEL_LOST_MAX; i++)
		if (at_of(json_at(all, i)) != INT64_MAX)
			json_push(list, json_object_get(json_at(all, i)));
	return list;
}

struct json_object *model_lost_find(struct json_object *list, const char *address)
{
	for (size_t i = 0; i < json_len(list); i++)
		if (str_eq(json_get_str(json_at(list, i), "address"), address))
			return json_at(list, i);
	return NULL;
}

/* Nothing waits for a server without an adminSecret, so nobody declares it lost. */
bool model_lost_all(struct json_object *list, struct json_object *servers)
{
	bool any = false;

	for (size_t i = 0; i < json_len(servers); i++) {
		struct json_object *s = json_at(servers, i);

		if (!json_get_str(s, "adminSecret"))
			continue;
		if (!model_lost_find(list, json_get_str(s, "address")))
			return false;
		any = true;
	}
	return any;
}

int64_t model_lost_since_s(struct json_object *list)
{
	int64_t since_s = INT64_MAX;

	for (size_t i = 0; i < json_len(list); i++) {
		int64_t at_s = at_of(json_at(list, i));

		since_s = at_s < since_s ? at_s : since_s;
	}
	return since_s;
}

void model_lost_add(struct json_object *list, const char *address, int64_t at_s, const char *by)
{
	struct json_object *o = json_obj();
	char at[CLOCK_RFC3339_LEN];

	clock_format(at_s, at);
	json_add_str(json_add_str(o, "address", address), "at", at);
	json_push(list, json_add_str(o, "by", by));
}
