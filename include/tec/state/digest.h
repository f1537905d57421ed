/* SPDX-License-Identifier: MIT */
/*
 * One number for what an operator decided: two that show the same one serve the same nodes with the
 * same keys, approve the same images and ask the same of nodes. SHA-256 over a line with the version
 * of this form and then one line for each fact, sorted, each with a newline behind it; a line is a
 * JSON array (RFC 8785):
 *
 *	["attestationkey", SHA-256 of its SPKI, uuid, approved]
 *	["image", image, number of its bootPath, any Secure Boot, handed in]
 *	["machine", id, SHA-256 of its disk key, SHA-256 of the SPKI that is bound to it]
 *	["pcrs", image, SHA-256 of its entry in image-pcrs]
 *	["spec", {attestation, registration, keyIsolation}]
 *
 * Names and uids are in no line, as they differ between two clusters; nor is what is being deleted, nor
 * what a follower withholds of which no Trustee ever had anything: only the follower has it.
 */
#ifndef TEC_STATE_DIGEST_H
#define TEC_STATE_DIGEST_H

#include "tec/base/bytes.h"
#include "tec/state/state.h"

struct state_digest {
	char hex[SHA256_HEX_LEN + 1];
	size_t machines, aks, images;
};
/* Goes through all of it: not for every event. */
void state_digest(const struct state *s, struct state_digest *out);

#endif
