/* SPDX-License-Identifier: MIT */
/*
 * Registering the attestation key with the operator's listener: PUT {"public_key", "uuid", "platform"}.
 * Registered now (201) and registered before (409) are both success.
 */
#ifndef TEC_ATTEST_REGISTER_H
#define TEC_ATTEST_REGISTER_H

#include "tec/attest/pin.h"
#include "tec/attest/source.h"
#include "tec/net/httpc.h"
#include "tec/pki/spki.h"

/* note: what the server said beside that it is done, or NULL. */
typedef void (*attest_register_fn)(
	void *arg, enum attest_fault fault, const struct err *err, const char *note);

/* tls: for https; NULL is plain http. */
struct op *attest_register_start(struct httpc *client, struct op_scope *scope, const char *url,
	struct httpc_tls *tls, const char *uuid, const struct pki_spki *ak, attest_register_fn done,
	void *arg);

/* Trust in one server: its certificate of the configuration, else the system's CAs. *out NULL: plain
 * http. */
int attest_server_tls(
	const struct attest_server *s, struct httpc_tls **out, struct err *err) MUST_CHECK;

#endif
