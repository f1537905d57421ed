/* SPDX-License-Identifier: MIT */
/*
 * The local endpoint that workloads of this machine use: GET /cdh/resource/R/T/G and /info, and on request
 * /aa/token and /aa/evidence, over plain HTTP on a loopback address or a local socket, as Trustee's
 * api-server-rest answers them. Refused are other peers than loopback ones, users of the local socket that
 * conf does not name, and what comes from a web page: a Host that is not a name of this machine's loopback
 * (a page that rebound its DNS name), an Origin.
 *
 * Every user of the machine can ask, so the machine's disk key is never served, and what a TPM signs here
 * is never what a handshake asks it to sign: see attest_cdh_bind().
 *
 * Requests for the same resource share one attestation; the token is kept until shortly before it
 * expires, and given up when a server refuses something with it. Nothing that was decrypted is kept.
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
	uint32_t users[32], n_users; /* who may use local sockets, beside root; none: everybody */
};

struct attest_cdh;
/* All borrowed. config: servers and init-data; its path and retries are not used. The listener is the
 * caller's to give addresses to: attest_cdh_httpd(). */
struct attest_cdh *attest_cdh_new(struct httpc *client, const struct attest_source *source,
	const struct attest_config *config, const struct attest_cdh_conf *conf);
void attest_cdh_free(struct attest_cdh *c); /* NULL is fine */
struct httpd *attest_cdh_httpd(const struct attest_cdh *c);
/* An attestation is under way: its use of the TPM is not to be cut short. */
bool attest_cdh_busy(const struct attest_cdh *c);
/* From the loop, each time the last attestation or fetch that was under way has ended; it must not free c. */
typedef void (*attest_cdh_idle_fn)(void *arg);
void attest_cdh_on_idle(struct attest_cdh *c, attest_cdh_idle_fn idle, void *arg);

/* "127.0.0.1", "localhost", "[::1]", each with a port or none. */
bool attest_cdh_host_ok(const char *host);
/* Whether a path that attest_path_valid() takes is the place of a Machine's disk key, default/UUID/root,
 * in upper or lower case. */
bool attest_cdh_is_disk_key(const char *path);
/* What evidence for runtime data is bound to: SHA-384 over a prefix and the data. A handshake's binding is
 * SHA-384 over a JSON object, which begins otherwise. */
void attest_cdh_bind(const void *data, size_t len, uint8_t out[RATS_BINDING_LEN]);
/* The value of `name` in a query, percent-decoded; the caller frees. NULL: absent, or malformed. */
char *attest_cdh_param(const char *query, const char *name, size_t *len);

#endif
