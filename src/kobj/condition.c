/* SPDX-License-Identifier: MIT */
/*
 * Compare conditions without keeping their text: a message is represented by a hash that is keyed per
 * process and never stored. A message is made valid UTF-8 before it is compared or sent. Otherwise
 * the API would store a different text, and the object would be written on every step.
 */
#include "config.h"

#include "tec/kobj/condition.h"

#include <stdarg.h>
#include <string.h>

#include "tec/base/bytes.h"
#include "tec/base/clock.h"
#include "tec/base/json.h"
#include "tec/base/utf8.h"

static const char *const status_names[] = {
	[KOBJ_COND_ABSENT] = NULL,
	[KOBJ_COND_TRUE] = "True",
	[KOBJ_COND_FALSE] = "False",
	[KOBJ_COND_UNKNOWN] = "Unknown",
};

uint64_t kobj_message_hash(const char *message)
{
	return str_hash(message, strlen(message));
}

/* Fill in a desired condition; called by the steps of controllers, which compare it with
 * kobj_cond_same() before they write. */
void kobj_cond_want(struct kobj_cond_want *w, const char *type, enum kobj_cond_status status,
	const char *reason, const char *message_fmt, ...)
{
	cleanup_strbuf struct strbuf message = STRBUF_INIT;
	va_list ap;

	w->type = type;
	w->status = status;
	w->reason = reason;
	va_start(ap, message_fmt);
	strbuf_vaddf(&message, message_fmt, ap);
	va_end(ap);
	utf8_fit(&message, sizeof(w->message) - 1);
	memcpy(w->message, strbuf_str(&message), message.len + 1);
}

/* Read without failing: whatever is missing or malformed is treated as absent, and the next apply
 * repairs it. */
void kobj_cond_read(struct kobj_pack *p, struct json_object *o, const char *const *types, size_t n,
	struct kobj_cond *fixed, size_t field_offset)
{
	struct json_object *conditions = json_get_arr(o, "status/conditions");

	for (size_t i = 0; i < n; i++) {
		const char *status, *message, *time;
		struct json_object *c = NULL;
		int64_t us = 0, generation;

		/* If a type occurs twice, the first entry counts. */
		for (size_t k = 0; !c && k < json_len(conditions); k++)
			if (str_eq(json_get_str(json_at(conditions, k), "type"), types[i]))
				c = json_at(conditions, k);
		status = json_get_str(c, "status");
		message = json_get_str(c, "message");
		time = json_get_str(c, "lastTransitionTime");
		generation = json_get_int(c, "observedGeneration", 0);
		memset(&fixed[i], 0, sizeof(fixed[i]));
		/* An unknown status stays ABSENT, so that the condition is written again. */
		for (size_t k = KOBJ_COND_TRUE; k < ARRAY_LEN(status_names); k++)
			if (str_eq(status, status_names[k]))
				fixed[i].status = (enum kobj_cond_status)k;
		if (fixed[i].status == KOBJ_COND_ABSENT)
			continue;
		/* A malformed time counts as unset; kobj_cond_json() then stamps the current time. */
		if (!time || clock_parse(time, &us) < 0)
			us = 0;
		fixed[i].transition_s = us / 1000000;
		fixed[i].message_hash = kobj_message_hash(message ? message : "");
		/* -1 equals no generation and so forces a new write */
		fixed[i].observed_generation =
			generation >= 0 && generation <= INT32_MAX ? (int32_t)generation : -1;
		kobj_pack_str(p,
			field_offset + i * sizeof(fixed[0]) + offsetof(struct kobj_cond, reason),
			json_get_str(c, "reason"));
	}
}

/* lastTransitionTime is not compared: it follows from the status. */
bool kobj_cond_same(const struct kobj_cond *have, const struct kobj_cond_want *want, size_t n,
	int64_t generation)
{
	for (size_t i = 0; i < n; i++) {
		if (have[i].status != want[i].status)
			return false;
		if (want[i].status == KOBJ_COND_ABSENT)
			continue;
		if (!str_eq(have[i].reason, want[i].reason) ||
			have[i].observed_generation != generation ||
			have[i].message_hash != kobj_message_hash(want[i].message))
			return false;
	}
	return true;
}

/* have is NULL for an object without previous conditions. A time that was never set is replaced
 * even if the status is unchanged, because the API requires lastTransitionTime. */
struct json_object *kobj_cond_json(const struct kobj_cond *have, const struct kobj_cond_want *want,
	size_t n, int64_t generation, int64_t now_s)
{
	struct json_object *a = json_arr();

	for (size_t i = 0; i < n; i++) {
		bool stays = have && have[i].status == want[i].status && have[i].transition_s != 0;
		char time[CLOCK_RFC3339_LEN];
		struct json_object *c;

		if (want[i].status == KOBJ_COND_ABSENT)
			continue;
		clock_format(stays ? have[i].transition_s : now_s, time);
		c = json_obj();
		json_add_str(c, "type", want[i].type);
		json_add_str(c, "status", status_names[want[i].status]);
		json_add_int(c, "observedGeneration", generation);
		json_add_str(c, "lastTransitionTime", time);
		json_add_str(c, "reason", want[i].reason);
		json_add_str(c, "message", want[i].message);
		json_push(a, c);
	}
	return a;
}
