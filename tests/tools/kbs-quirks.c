/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "kbs-quirks.h"

#include "tec/base/mem.h"

void quirks_answer(const struct broker_request *r, struct broker_answer *a)
{
	if (!a->type[0])
		return;
	if (a->status == 405 && (str_eq(r->method, "PATCH") || str_eq(r->method, "HEAD"))) {
		a->type = "";
		strbuf_reset(&a->body);
	} else {
		if (a->status == 405 && !str_starts(r->target, BROKER_ADMIN_PREFIX "resource/"))
			broker_admin_refuse(a, 404, "PluginNotFound", "Plugin not found");
		else if (a->status == 405 || str_eq(a->type, "ResourceNotFound"))
			broker_admin_refuse(a, 401, "PluginInternalError", "Plugin internal error");
		a->status =
			str_eq(a->type, "InvalidRequestPath") || str_eq(a->type, "PluginNotFound")
				? 404
				: 401;
	}
	a->allow[0] = '\0';
	a->challenge = NULL;
	a->content_type = NULL;
}

const char *quirks_error_body(struct strbuf *out, int status, const char *message)
{
	if (status == 413)
		strbuf_adds(out, "payload reached size limit");
	return status == 413 ? "text/plain" : NULL;
}
