/* SPDX-License-Identifier: MIT */
/* What a credential plugin prints: a credential that can stand in a header line, or a reason; every
 * secret is freed. */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "../src/k8s/auth_internal.h"
#include "tec/base/mem.h"
#include "tec/base/secret.h"

#define API_VERSION "client.authentication.k8s.io/v1"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct auth_exec *x)
{
	if (!x->cert != !x->key || (!x->token && !x->cert))
		DIE("half a credential");
	if (!x->token)
		return;
	if (secret_len(x->token) < 2 || secret_peek(x->token)[secret_len(x->token) - 1] != '\0')
		DIE("an empty token, or one without an end");
	for (size_t i = 0; i + 1 < secret_len(x->token); i++)
		if (secret_peek(x->token)[i] <= 0x20 || secret_peek(x->token)[i] >= 0x7f)
			DIE("token holds a byte that ends a header line");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* exact size, so that reading one byte too many is seen */
	cleanup_free char *copy = xmemdup(data, size);
	struct err err = ERR_INIT;
	struct auth_exec x;
	int rc = auth_exec_parse(copy, size, API_VERSION, &x, &err);

	if ((rc == 0) == err_is_set(&err))
		DIE("neither a result nor an error, or both");
	if (rc == 0) {
		check(&x);
		auth_exec_fini(&x);
	}
	if (secret_count() != 0)
		DIE("%zu secrets left", secret_count());
	return 0;
}
