/* SPDX-License-Identifier: MIT */
/* Inserts TLS settings into a user's kbs-config.toml and keeps all other bytes. */
#ifndef TEC_RENDER_KBSTLS_H
#define TEC_RENDER_KBSTLS_H

#include "tec/base/err.h"
#include "tec/base/str.h"

/* lines: made by model/trusteeconfig; "" changes nothing. They replace the former ones in
 * [http_server], or are added at its end. ERR_INVALID: the file has no such section, or the
 * result is not TOML; out is then undefined. */
int render_kbstls_merge(
	const char *text, const char *lines, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
