/* SPDX-License-Identifier: MIT */
/*
 * The local endpoint for workloads of this machine: GET /cdh/resource/R/T/G and /info, and on
 * request /aa/token and /aa/evidence, over plain HTTP on a loopback address or a local socket,
 * compatible with Trustee's api-server-rest. Refused are peers that are not on loopback, users of
 * the local socket that conf does not list, and requests from web pages: those with an Origin, or
 * with a Host that does not name this machine's loopback (as after DNS rebinding).
 *
 * Every user of the machine can send requests, so the machine's disk key is never served, and
 * evidence from here is never valid in a handshake: see attest_cdh_bind().
 *
 * Requests for the same resource share one attestation. The token is kept until shortly before it
 * expires, and dropped when a server refuses something with it. Decrypted resources are not kept.
 */
#ifndef TEC_ATTEST_CDH_H
#define TEC_ATTEST_CDH_H

#include <stdbool.h>

#include "tec/attest/pin.h"
#include "tec/attest/source.h"
#include "tec/net/httpc.h"
#include "tec/net/httpd.h"

#define ATTEST_CDH_LISTEN "127.0.0.1:8006"

struct attest_cdh_conf {
	bool aa;                     /* serve tokens, each with its private key, and evidence */
	uint32_t users[32], n_users; /* who may use local sockets besides root; none: every user */
};

struct attest_cdh;
/* All arguments are borrowed. config: servers and init-data; its path and retries are ignored. The
 * caller adds addresses to the listener: attest_cdh_httpd(). */
struct attest_cdh *attest_cdh_new(struct httpc *client, const struct attest_source *source,
	const struct attest_config *config, const struct attest_cdh_conf *conf);
void attest_cdh_free(struct attest_cdh *c); /* NULL is fine */
struct httpd *attest_cdh_httpd(const struct attest_cdh *c);
/* True while an attestation is running; it must not be stopped during a TPM command. */
bool attest_cdh_busy(const struct attest_cdh *c);
/* Called from the loop each time the last running attestation or fetch has ended. Must
 * not free c. */
typedef void (*attest_cdh_idle_fn)(void *arg);
void attest_cdh_on_idle(struct attest_cdh *c, attest_cdh_idle_fn idle, void *arg);

/* Accept "127.0.0.1", "localhost" and "[::1]", with or without a port. */
bool attest_cdh_host_ok(const char *host);
/* Check whether a path accepted by attest_path_valid() is that of a Machine's disk key,
 * default/UUID/root, in upper or lower case. */
bool attest_cdh_is_disk_key(const char *path);
/* Compute what evidence for runtime data is bound to: SHA-384 over a prefix and the data. A
 * handshake hashes a JSON object, which never begins with this prefix, so the two cannot be
 * confused. */
void attest_cdh_bind(const void *data, size_t len, uint8_t out[RATS_BINDING_LEN]);
/* Return the percent-decoded value of `name` in a query; the caller frees it. NULL: absent or
 * malformed. */
char *attest_cdh_param(const char *query, const char *name, size_t *len);

#endif
