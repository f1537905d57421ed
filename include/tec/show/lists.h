/* SPDX-License-Identifier: MIT */
/* Lists of Machines, attestation keys and images as tables in kubectl's style, and all details of
 * one object. */
#ifndef TEC_SHOW_LISTS_H
#define TEC_SHOW_LISTS_H

#include "tec/base/str.h"
#include "tec/show/world.h"

void show_machines(const struct show_world *w, bool colours, struct strbuf *out);
void show_keys(const struct show_world *w, bool colours, struct strbuf *out);
void show_images(const struct show_world *w, bool colours, struct strbuf *out);
void show_machine(
	const struct show_world *w, struct json_object *machine, bool colours, struct strbuf *out);
/* Appends the sets of PCR values that Trustee accepts for this image, with the events behind each
 * register. */
void show_image(
	const struct show_world *w, struct json_object *image, bool colours, struct strbuf *out);

#endif
