/* SPDX-License-Identifier: MIT */
/* The image that tec-compute-pcrs was asked to fetch, as a directory. */
#ifndef TEC_CMD_PCRS_FETCH_H
#define TEC_CMD_PCRS_FETCH_H

#include "pcrs_options.h"

#include "tec/oci/ref.h"

struct pcrs_fetched {
	char digest[OCI_DIGEST_LEN + 1]; /* of the reference */
	char *own;                       /* directory to be deleted; NULL: it is the caller's */
};
/* Fetches what o->fetch names; o->rootfs is where it is then. pcrs_fetched_fini() in any case. */
int pcrs_fetch(struct pcrs_options *o, struct pcrs_fetched *out, struct err *err) MUST_CHECK;
void pcrs_fetched_fini(struct pcrs_fetched *f);

#endif
