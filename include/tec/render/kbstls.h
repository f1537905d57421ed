/* SPDX-License-Identifier: MIT */
/* TLS lines put into somebody's kbs-config.toml, which stays as it is otherwise, byte for byte. */
#ifndef TEC_RENDER_KBSTLS_H
#define TEC_RENDER_KBSTLS_H

#include "tec/base/err.h"
#include "tec/base/str.h"

/*
 * lines: as model/trusteeconfig makes them; "" changes nothing. They come in the place of the former
 * ones of [http_server], or at its end. ERR_INVALID: the file has no such section, or is no TOML
 * afterwards; out is then worth nothing.
 */
int render_kbstls_merge(
	const char *text, const char *lines, struct strbuf *out, struct err *err) MUST_CHECK;

#endif
