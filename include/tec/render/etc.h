/* SPDX-License-Identifier: MIT */
/* The files of etc/ compiled in (build-aux/embed.sh makes the table), ended by a NULL name. A
 * policy BASE.rego that can require PCR 7 exists as BASE-pcr7.rego too, with that switch on. */
#ifndef TEC_RENDER_ETC_H
#define TEC_RENDER_ETC_H

struct render_etc_file {
	const char *name, *text;
};
extern const struct render_etc_file render_etc_files[];

#endif
