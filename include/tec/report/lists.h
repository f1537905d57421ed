/* SPDX-License-Identifier: MIT */
/* Lists of Machines, attestation keys and images as tables in kubectl's style, and all details of
 * one object. */
#ifndef TEC_REPORT_LISTS_H
#define TEC_REPORT_LISTS_H

#include "tec/base/str.h"
#include "tec/report/world.h"

void report_machines(const struct report_world *w, bool colours, struct strbuf *out);
void report_keys(const struct report_world *w, bool colours, struct strbuf *out);
void report_images(const struct report_world *w, bool colours, struct strbuf *out);
void report_machine(const struct report_world *w, struct json_object *machine, bool colours,
	struct strbuf *out);
/* Appends the sets of PCR values that Trustee accepts for this image, with the events behind each
 * register. */
void report_image(
	const struct report_world *w, struct json_object *image, bool colours, struct strbuf *out);

#endif
