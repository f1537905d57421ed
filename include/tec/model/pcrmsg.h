/* SPDX-License-Identifier: MIT */
/*
 * The result of a compute-pcrs Job: the termination message of its container, which is all
 * that the operator takes from it.
 *
 *   tec-pcrs/3 NONCE DIGEST BASE64
 *
 * NONCE is the one in the Job's template, DIGEST the image's (64 hex digits), BASE64 the packed
 * values: a table of distinct hashes, then lists of events with a byte each for an event's id,
 * type and hash (pcrmsg.c). The program that writes it has read files that others
 * built, so the text is hostile: every length is checked, and only PCR 4 and 14 are taken from an
 * image, and only what model/platforms.h permits from a platform.
 */
#ifndef TEC_MODEL_PCRMSG_H
#define TEC_MODEL_PCRMSG_H

#include "tec/base/str.h"
#include "tec/model/platforms.h"
#include "tec/model/variants.h"
#include "tec/pcr/tpmevent.h"

#define MODEL_PCRMSG_MAX       4096 /* the size to which a kubelet cuts the message */
#define MODEL_PCRMSG_NONCE_LEN 32   /* hex digits: 128 bits */
/* Exit status of the Job's program when its values do not fit; the explanation is on standard
 * error. */
#define MODEL_PCRMSG_TOO_MANY 3

/* The values of one image as a Job computes them. */
struct model_pcrmsg {
	struct pcr_events events; /* of PCR 4 and PCR 14 */
	struct model_platforms platforms;
	struct model_variants variants;
};
#define MODEL_PCRMSG_INIT                                                                          \
	{                                                                                          \
		.events = PCR_EVENTS_INIT                                                          \
	}
void model_pcrmsg_fini(struct model_pcrmsg *m);
#define cleanup_pcrmsg __attribute__((cleanup(model_pcrmsg_fini)))

bool model_pcrmsg_nonce_valid(const char *nonce);

/* Append the message. ERR_INVALID: it would be longer than MODEL_PCRMSG_MAX. */
int model_pcrmsg_write(const char *nonce, const char *digest, const struct model_pcrmsg *m,
	struct strbuf *out, struct err *err) MUST_CHECK;
/* Parse a message. nonce NULL: any. ERR_INVALID: not a message, or one with another nonce or
 * digest; out is empty then. */
int model_pcrmsg_read(const char *text, size_t len, const char *nonce, const char *digest,
	struct model_pcrmsg *out, struct err *err) MUST_CHECK;

#endif
