/* SPDX-License-Identifier: MIT */
/*
 * Register the attestation key with the operator's listener: PUT {"public_key", "uuid",
 * "platform"}. Newly registered (201) and already registered (409) are both success.
 */
#ifndef TEC_ATTEST_REGISTER_H
#define TEC_ATTEST_REGISTER_H

#include "tec/attest/pin.h"
#include "tec/attest/source.h"
#include "tec/net/httpc.h"
#include "tec/pki/spki.h"

/* note: a message from the server that a person should see although registration succeeded, or
 * NULL. */
typedef void (*attest_register_fn)(
	void *arg, enum attest_fault fault, const struct err *err, const char *note);

/* tls NULL: plain http. */
struct op *attest_register_start(struct httpc *client, struct op_scope *scope, const char *url,
	struct httpc_tls *tls, const char *uuid, const struct pki_spki *ak, attest_register_fn done,
	void *arg);

/* Make the TLS context for one server: it trusts the certificate in the configuration, or else the
 * system's CAs. *out NULL: plain http. */
int attest_server_tls(
	const struct attest_server *s, struct httpc_tls **out, struct err *err) MUST_CHECK;

#endif
