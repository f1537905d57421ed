/* SPDX-License-Identifier: MIT */
/*
 * The files of etc/ that are compiled in (build-aux/embed.sh makes the table): ends with a NULL
 * name. A policy BASE.rego that can require PCR 7 is there as BASE-pcr7.rego too, with its switch
 * on.
 */
#ifndef TEC_RENDER_ETC_H
#define TEC_RENDER_ETC_H

struct render_etc_file {
	const char *name, *text;
};
extern const struct render_etc_file render_etc_files[];

#endif
