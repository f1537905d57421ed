/* SPDX-License-Identifier: MIT */
/*
 * The API server's identity, kept as files in one directory: its CA (ca.crt, ca.key), its server
 * certificate (server.crt, server.key), and the key that signs ServiceAccount tokens (token.key).
 * The three keys are sealed under the store's sealing key (store/sealing), which lies beside
 * them unless it is configured elsewhere. The administrator's kubeconfig, with a client
 * certificate, is written there too if the sealing key is there and the caller names no other path.
 * Files have mode 0600, the directory 0700. Missing files are created. A certificate that expires
 * soon or lacks one of the server's names is reissued for the same key; so is the CA's, which keeps
 * all that it signed valid.
 *
 * Holds the lock of the directory while it is open: one process at a time.
 */
#ifndef TEC_APIHTTP_AUTHORITY_H
#define TEC_APIHTTP_AUTHORITY_H

#include <stdbool.h>
#include <stdint.h>

#include "tec/store/sealing.h"
#include "tec/base/err.h"
#include "tec/base/secret.h"
#include "tec/pki/key.h"

struct apihttp_authority;

struct apihttp_authority_conf {
	const char *dir;
	/* Host names and addresses of the server, NULL-terminated. */
	const char *const *names;
	const char *server; /* "https://127.0.0.1:6443", for the kubeconfig */
	const char *ns;     /* of the kubeconfig's context */
	/* The path to write it to. NULL: into dir if the sealing key is there, else it is not
	 * written. */
	const char *kubeconfig;
	struct store_sealing_conf sealing;
	/* Take only the lock and an existing sealing key, to restore a backup. */
	bool sealing_only;
	/* Check only: read what exists and create the rest in memory. No file or directory is
	 * created or changed and no lock is taken; apihttp_authority_sealing() is then
	 * read-only. */
	bool look_only;
};

/*
 * Open the directory, creating it if its parent exists, and the keys; certificates come with the
 * first apihttp_authority_renew(). NULL: ERR_CONFLICT another process uses dir; ERR_INVALID a file is
 * wrong or lost, and err says which and what to do.
 */
struct apihttp_authority *apihttp_authority_open(
	const struct apihttp_authority_conf *conf, struct err *err) MUST_CHECK;
void apihttp_authority_close(struct apihttp_authority *a); /* NULL is fine */

/* Issue every certificate that is missing or expires soon. The first call comes when the store has been
 * committed: ca.crt says that nothing is missing. now_s: the wall clock. 1: the server certificate
 * changed. */
int apihttp_authority_renew(struct apihttp_authority *a, int64_t now_s, struct err *err) MUST_CHECK;

/* What the directory holds; borrowed until the next renew. */
struct apihttp_identity {
	const char *dir, *kubeconfig; /* paths; NULL: no kubeconfig is written */
	const char *ca, *cert;        /* PEM */
	const struct secret *key;     /* of cert, as PEM */
	const struct pki_key *token_key;
	bool is_new; /* the CA was created since the open */
};
struct apihttp_identity apihttp_authority_identity(const struct apihttp_authority *a);
struct store_sealing *apihttp_authority_sealing(struct apihttp_authority *a);

#endif
