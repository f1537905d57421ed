/* SPDX-License-Identifier: MIT */
/* The image that tec-compute-pcrs fetches, as a directory. */
#ifndef TEC_CMD_PCRS_FETCH_H
#define TEC_CMD_PCRS_FETCH_H

#include "pcrs_options.h"

#include "tec/oci/ref.h"

struct pcrs_fetched {
	char digest[OCI_DIGEST_LEN + 1]; /* of the reference */
	char *own;                       /* owned: temporary directory to remove; NULL: none */
};
/* Fetches the image o->fetch and sets o->rootfs to its directory. Call pcrs_fetched_fini() in
 * any case. */
int pcrs_fetch(struct pcrs_options *o, struct pcrs_fetched *out, struct err *err) MUST_CHECK;
void pcrs_fetched_fini(struct pcrs_fetched *f);

#endif
