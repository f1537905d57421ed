/* SPDX-License-Identifier: MIT */
/* A kubeconfig from anywhere: parsed, or refused with a reason; what is parsed keeps the promises
 * of the header; every secret is freed. */
#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"
#include "tec/k8s/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct k8s_kubeconfig *k)
{
	if (!k->server || (!str_starts(k->server, "https://") && !str_starts(k->server, "http://")))
		DIE("server");
	for (const char *p = k->server; *p; p++)
		if ((unsigned char)*p <= 0x20 || *p == '@' || *p == '?' || *p == '#')
			DIE("server holds 0x%02x", (unsigned char)*p);
	if (k->exec_argv && (!k->exec_argv[0] || !*k->exec_argv[0] || !k->exec_api_version))
		DIE("exec without command or version");
	if (k->exec_argv && (k->token || k->token_file || k->cert_data || k->cert_file))
		DIE("exec beside other credentials");
	if (str_starts(k->server, "http://") &&
		(k->exec_argv || k->token || k->token_file || k->cert_data || k->cert_file))
		DIE("credentials over plain http");
	for (size_t i = 0; k->token && i < secret_len(k->token); i++)
		if (secret_peek(k->token)[i] <= 0x20 || secret_peek(k->token)[i] >= 0x7f)
			DIE("token holds a byte that ends a header line");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct k8s_kubeconfig *k =
		k8s_kubeconfig_parse((const char *)data, size, "/dir", NULL, &err);

	if (!k == !err_is_set(&err))
		DIE("neither a result nor an error, or both");
	if (k)
		check(k);
	k8s_kubeconfig_free(k);
	if (secret_count() != 0)
		DIE("%zu secrets left", secret_count());
	return 0;
}
