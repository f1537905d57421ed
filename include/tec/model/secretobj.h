/* SPDX-License-Identifier: MIT */
/*
 * Secrets of our namespace as the controllers see them. Only these parts of data are kept: a LUKS
 * key (member `root`, in the locked arena), the identity of an attestation key (member
 * `public_key`, as SPKI hash and Trustee name), and the certificates in tls.crt and ca.crt.
 * Everything else is dropped at once.
 */
#ifndef TEC_MODEL_SECRETOBJ_H
#define TEC_MODEL_SECRETOBJ_H

#include <json-c/json.h>

#include "tec/base/bytes.h"
#include "tec/base/secret.h"
#include "tec/kobj/meta.h"
#include "tec/pki/pair.h"

enum model_secret_shape {
	MODEL_SECRET_OTHER,    /* not ours */
	MODEL_SECRET_LUKS,     /* type Opaque, exactly {root}, a well-formed key */
	MODEL_SECRET_LUKS_BAD, /* has root and nothing else, but not in our form */
	MODEL_SECRET_AK,       /* type Opaque, exactly {public_key} */
};

struct model_secret {
	struct kobj obj;
	enum model_secret_shape shape;
	const char *owner_uid; /* controller */
	/* SHA-256 of each certificate in ca.crt, in hex, separated by spaces; "": ca.crt is
	 * unusable; NULL: absent. */
	const char *ca_sha256;
	const char *ca; /* those certificates in PEM; NULL: absent or unusable */
	/* tls.crt in PEM, the server's own certificate first; NULL: absent or unusable. What is
	 * wrong with it and tls.key, whatever they are used for (model/tlsuse.h). */
	const char *tls_crt;
	enum pki_pair_fault tls_fault;
	const char *tls_why; /* NULL: nothing */
	unsigned n_owners;
	bool has_ak_finalizer;
	const uint8_t *sha256; /* LUKS: of `root`; AK: of public_key's bytes; others: NULL */
	uint64_t public_hash;  /* AK: str_hash() of those bytes, for a quick comparison */
	/* AK: name in Trustee, a reference (base/intern.h) shared with kbs/sync; NULL when
	 * public_key is not a usable key. */
	const char *identity;
	struct secret *root; /* LUKS: the bytes of `root`, owned; released with the object */
};

/* Extract a Secret. Overwrites every string of o's data (and of kubectl's copy of it) with zeros,
 * on failure too: afterwards o is only good for json_object_put(). */
struct kobj *model_secret_extract(struct json_object *o, struct err *err);
static inline const struct model_secret *model_secret(const struct kobj *o)
{
	return (const struct model_secret *)o;
}

/* LUKS: the SHA-256 of `root` as hex, written to and returned as out; NULL: another shape. */
const char *model_secret_key_sha256(const struct model_secret *s, char out[SHA256_HEX_LEN + 1]);
/* AK: the same for the bytes of public_key. */
const char *model_secret_public_sha256(const struct model_secret *s, char out[SHA256_HEX_LEN + 1]);

/* Make a new `root` value: {"key_type":"oct","key":"<32 base64 characters of 24 random bytes>"}. */
struct secret *model_luks_root_new(void);
/* Make the Secret's JSON text for the create, without json-c strings of the key; immutable: true.
 * The text itself is a secret. */
struct secret *model_luks_secret_text(const char *name, const char *machine_name,
	const char *machine_uid, const struct secret *root);
/* Make the JSON text of o, a Secret without data or a patch of one, with one member of data added
 * whose base64 is given. o is borrowed. */
struct secret *model_secret_text(
	struct json_object *o, const char *member, const struct secret *b64);
/* Make Secret <AttestationKey name>; the caller releases it. */
struct json_object *model_ak_secret_json(
	const char *ak_name, const char *ak_uid, const char *public_key);

#endif
