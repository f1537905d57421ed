/* SPDX-License-Identifier: MIT */
/* Renders the URL and CA from the TrustedExecutionCluster. It sends no request there: that
 * would create a Machine. */
#include "config.h"

#include "tool.h"
#include "tool_check.h"

#include <stdio.h>

#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/model/cluster.h"
#include "tec/render/ignition.h"
#include "tec/show/endpoints.h"

/* Printed to standard error, as standard output is the configuration. */
static void warn(const struct model_cluster *c)
{
	if (c->reg_mode == MODEL_REG_MANUAL)
		fputs("tecctl: nodes will be refused: spec.registration.mode is Manual, so an administrator must create each Machine\n",
			stderr);
	else if (c->reg_mode == MODEL_REG_TOKEN)
		fputs("tecctl: nodes will be refused without a token: add ignition.config.merge[0].httpHeaders with Authorization: Bearer and a token made with spec.registration.tokenSecret\n",
			stderr);
}

/* Without a TLS Secret the URL is plain HTTP, and no CA is needed. */
int tool_ignition(struct tool *t, struct err *err)
{
	cleanup_show_world struct show_world w = {.ns = NULL};
	cleanup_strbuf struct strbuf ca = STRBUF_INIT, out = STRBUF_INIT;
	cleanup_json struct json_object *config = NULL;
	cleanup_free char *url = NULL;
	cleanup_kobj const struct kobj *o = NULL;
	const struct model_cluster *c;

	o = tool_load_cluster(t, 0, &w, err);
	if (!o)
		return -1;
	c = model_cluster(o);
	url = show_register_url(c, conf_str(t->conf, "address"), err);
	if (!url)
		return -1;
	warn(c);
	if (conf_bool(t->conf, "url")) {
		tool_say(stdout, "%s", url);
		return 0;
	}
	if (c->register_secret && tool_secret_ca(t, c, c->register_secret, &ca, err) < 0)
		return -1;
	config = render_ignition_first(url, c->register_secret ? strbuf_str(&ca) : NULL);
	tool_document(t, config, &out);
	fputs(strbuf_str(&out), stdout);
	return 0;
}
