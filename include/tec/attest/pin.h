/* SPDX-License-Identifier: MIT */
/*
 * The clevis pin "trustee": its configuration, as written by a person or Ignition and as stored in
 * the encrypted file, and the JWE around it. Both are parsed as the Rust pin does: members in any
 * order, unknown members accepted. Pure: no I/O, no TPM.
 */
#ifndef TEC_ATTEST_PIN_H
#define TEC_ATTEST_PIN_H

#include <json-c/json_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tec/base/body.h"
#include "tec/base/err.h"
#include "tec/base/secret.h"
#include "tec/base/str.h"

#define ATTEST_SERVERS_MAX 16
#define ATTEST_PLAIN_MAX   (1u << 20) /* of the plaintext; a disk's passphrase is below 8 KiB */

struct attest_server {
	char *url;  /* owned; http or https */
	char *cert; /* owned; PEM CA to verify its certificate with; NULL: the system's CAs */
};

struct attest_config {
	struct attest_server server[ATTEST_SERVERS_MAX];
	size_t n_servers;
	char *path;                        /* owned; "default/UUID/root" */
	char *init_data;                   /* owned; TOML, NULL: none */
	bool limited;                      /* by `retries`; otherwise retry forever */
	uint32_t retries;                  /* rounds over all servers after the first */
	struct attest_server registration; /* url NULL: none */
	char *uuid;                        /* owned; of the registration, NULL: none */
};

/* ERR_INVALID names the faulty member. out needs attest_config_fini() either way. */
int attest_config_read(
	const char *text, size_t len, struct attest_config *out, struct err *err) MUST_CHECK;
/* Parse only a list, {"servers":[{"url","cert"},...]}. Other members are refused. */
int attest_config_read_servers(
	const char *text, size_t len, struct attest_config *out, struct err *err) MUST_CHECK;
/* Parse the protected header of a JWE, from jwe_dir_header(). */
int attest_config_read_header(
	struct json_object *header, struct attest_config *out, struct err *err) MUST_CHECK;
/* Return the protected header as JSON. The caller frees it. */
char *attest_config_write_header(const struct attest_config *c);
void attest_config_fini(struct attest_config *c);
#define cleanup_attest_config __attribute__((cleanup(attest_config_fini)))

/* Accept http://HOST[:PORT] and https://HOST[:PORT], optionally with a path. */
bool attest_url_valid(const char *url);
/* Return the TOML that is sent for a JSON object of strings. The caller frees it. */
char *attest_init_data(const char *json, size_t len, struct err *err) MUST_CHECK;

/* Return the 32 bytes in {"key_type":"oct","key":"..."}; the caller frees them. err never quotes
 * them. */
struct secret *attest_pin_key(const char *resource, size_t len, struct err *err) MUST_CHECK;

#endif
