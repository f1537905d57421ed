/* SPDX-License-Identifier: MIT */
/* A good entry of image-pcrs.json with one member more. */
#ifndef TEC_TESTS_MODEL_ENTRY_H
#define TEC_TESTS_MODEL_ENTRY_H

#include "pcr/pcr_events.h"
#include "tec/base/json.h"
#include "tec/model/pcrs.h"

/* Written and read again: one entry, called coreos. The caller frees. */
static inline struct model_pcrs *entry_with(const char *member, struct json_object *take_value)
{
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;
	struct err err = ERR_INIT;
	struct json_object *o;
	cleanup_free char *text = NULL;

	add_pcr4(&e, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(&e);
	o = model_pcrs_entry_json("r", 1800000000000000, &e);
	text = model_pcrs_edit("{}", 2, "coreos", json_add(o, member, take_value), &err);
	cr_assert(text, "%s", err.text);
	return model_pcrs_parse(text, strlen(text));
}

#endif
