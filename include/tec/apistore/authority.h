/* SPDX-License-Identifier: MIT */
/*
 * What the API server needs for being believed, as files of one directory: its own CA (ca.crt,
 * ca.key), its server certificate (server.crt, server.key), the key that signs ServiceAccounts'
 * tokens (token.key); beside them the store's sealing key (apistore/sealing), under which the three keys
 * are sealed, and, unless that key or the caller has another place, the administrator's kubeconfig with a
 * client certificate in it. All 0600 in a directory 0700. What is missing is made; a certificate that
 * ends soon, or that does not name what the server is reached by, is made again with its key kept; the
 * CA's own keeps its key too, so what it signed stays valid.
 *
 * Owns the lock of the directory while it lives: one process at a time.
 */
#ifndef TEC_APISTORE_AUTHORITY_H
#define TEC_APISTORE_AUTHORITY_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/apistore/sealing.h"
#include "tec/base/err.h"
#include "tec/base/secret.h"
#include "tec/pki/key.h"

struct apistore_authority;

struct apistore_authority_conf {
	const char *dir;
	/* Host names and addresses of the server, NULL-terminated. */
	const char *const *names;
	const char *server; /* "https://127.0.0.1:6443", for the kubeconfig */
	const char *ns;     /* of the kubeconfig's context */
	/* Where it is written. NULL: to the directory when the sealing key is there too, else nowhere. */
	const char *kubeconfig;
	struct apistore_sealing_conf sealing;
	/* Only the lock and a sealing key that is there already: to restore a backup. */
	bool sealing_only;
	/* Looks at what is there, and makes the rest in memory: neither a file nor the directory is
	 * made or changed, and no lock is taken. apistore_authority_sealing() only reads then. */
	bool look_only;
};

/*
 * NULL: ERR_CONFLICT another process uses dir, ERR_INVALID says which file is wrong and what to do.
 * dir is made when its parent is there. now_s: the wall clock.
 */
struct apistore_authority *apistore_authority_open(
	const struct apistore_authority_conf *conf, int64_t now_s, struct err *err) MUST_CHECK;
void apistore_authority_close(struct apistore_authority *a); /* NULL is fine */

/* Looks at the ends of all certificates and makes again what ends soon. 1: the server's is another. */
int apistore_authority_renew(
	struct apistore_authority *a, int64_t now_s, struct err *err) MUST_CHECK;

bool apistore_authority_is_new(const struct apistore_authority *a); /* there was no CA before */
/* Its path; NULL: none is written. */
const char *apistore_authority_kubeconfig(const struct apistore_authority *a);
/* Borrowed until the next renew. */
const char *apistore_authority_ca(const struct apistore_authority *a); /* PEM */
const char *apistore_authority_cert(const struct apistore_authority *a);
const struct secret *apistore_authority_key(const struct apistore_authority *a);
const struct pki_key *apistore_authority_token_key(const struct apistore_authority *a);
const char *apistore_authority_dir(const struct apistore_authority *a);
struct apistore_sealing *apistore_authority_sealing(struct apistore_authority *a);

#endif
