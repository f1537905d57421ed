/* SPDX-License-Identifier: MIT */
/* The files of etc/ compiled in (build-aux/embed.sh makes the table), ended by a NULL name. An
 * attestation policy BASE.rego exists as BASE-pcr7.rego too, which requires PCR 7, and a resource
 * policy as BASE-once.rego, which releases disk keys once per boot. */
#ifndef TEC_RENDER_ETC_H
#define TEC_RENDER_ETC_H

struct render_etc_file {
	const char *name, *text;
};
extern const struct render_etc_file render_etc_files[];

#endif
