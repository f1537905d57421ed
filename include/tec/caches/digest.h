/* SPDX-License-Identifier: MIT */
/*
 * A digest of what an operator decided: two with the same digest serve the same nodes with the same
 * keys, approve the same images and require the same of nodes. SHA-256 over a line with the version
 * of this form, then one line for each fact, sorted, each followed by a newline; a line is a
 * JSON array (RFC 8785):
 *
 *	["attestationkey", SHA-256 of its SPKI, uuid, approved]
 *	["image", image, number of its bootPath, any Secure Boot, handed in]
 *	["machine", id, SHA-256 of its disk key, SHA-256 of the SPKI that is bound to it]
 *	["pcrs", image, SHA-256 of its entry in image-pcrs]
 *	["spec", {attestation, registration, keyIsolation}]
 *
 * Names and uids are not included, as they differ between clusters; nor are objects being deleted,
 * nor those that a follower withholds and no Trustee ever had: only the follower has them.
 */
#ifndef TEC_CACHES_DIGEST_H
#define TEC_CACHES_DIGEST_H

#include "tec/base/bytes.h"
#include "tec/caches/caches.h"

struct caches_digest {
	char hex[SHA256_HEX_LEN + 1];
	size_t machines, aks, images;
};
/* Reads every object in the caches: do not call it for every event. */
void caches_digest(const struct caches *s, struct caches_digest *out);

#endif
