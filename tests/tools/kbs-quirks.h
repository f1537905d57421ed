/* SPDX-License-Identifier: MIT */
/*
 * How Trustee refuses: 404 for a path that does not exist and 401 for everything else, without a
 * Content-Type. Its one handler knows paths, not methods; GET, POST, PUT and DELETE reach it.
 */
#ifndef TESTS_TOOLS_KBS_QUIRKS_H
#define TESTS_TOOLS_KBS_QUIRKS_H

#include "tec/broker/admin.h"

/* Makes an answer of broker_admin() what Trustee would say. */
void quirks_answer(const struct broker_request *r, struct broker_answer *a);
/* Of broker_kbsd_conf. */
const char *quirks_error_body(struct strbuf *out, int status, const char *message);

#endif
