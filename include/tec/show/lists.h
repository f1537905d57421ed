/* SPDX-License-Identifier: MIT */
/* Machines, attestation keys and images one by one: tables with kubectl's look, and all about one. */
#ifndef TEC_SHOW_LISTS_H
#define TEC_SHOW_LISTS_H

#include "tec/base/str.h"
#include "tec/show/world.h"

void show_machines(const struct show_world *w, bool colours, struct strbuf *out);
void show_keys(const struct show_world *w, bool colours, struct strbuf *out);
void show_images(const struct show_world *w, bool colours, struct strbuf *out);
void show_machine(
	const struct show_world *w, struct json_object *machine, bool colours, struct strbuf *out);
/* Which value sets Trustee takes from nodes with this image, and what each register's is made of. */
void show_image(
	const struct show_world *w, struct json_object *image, bool colours, struct strbuf *out);

#endif
