/* SPDX-License-Identifier: MIT */
/* Uses OpenSSL's own table, plus two suites that OpenSSL knows only if it was built with weak
 * ciphers: Trustee brings its own OpenSSL, which may know them. */
#include "config.h"

#include "tec/pki/cipher.h"

#include <openssl/ssl.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/base/str.h"

/* A ':' or '@' in a name would add other ciphers or a command to OpenSSL's cipher list. */
bool pki_cipher_is_name(const char *name)
{
	return *name && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789-_") == strlen(name);
}

/* OPENSSL_cipher_name() returns "(NONE)" for an unknown suite, not NULL. */
const char *pki_cipher_openssl_name(const char *name)
{
	/* Missing in OpenSSL's table unless it was built with enable-weak-ssl-ciphers. */
	static const char *const weak[][2] = {
		{"TLS_RSA_WITH_3DES_EDE_CBC_SHA", "DES-CBC3-SHA"},
		{"TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", "ECDHE-RSA-DES-CBC3-SHA"},
	};
	const char *out;

	if (!pki_cipher_is_name(name))
		return NULL;
	if (!str_starts(name, "TLS_"))
		return name;
	for (size_t i = 0; i < ARRAY_LEN(weak); i++)
		if (str_eq(name, weak[i][0]))
			return weak[i][1];
	out = OPENSSL_cipher_name(name);
	return out && out[0] != '(' ? out : NULL;
}
