/* SPDX-License-Identifier: MIT */
/* tec-operator --seed SRC DST: the init container of Trustee's Deployment. */
#ifndef TEC_CMD_SEED_H
#define TEC_CMD_SEED_H

#include "tec/base/err.h"

/* Copies the policies of the mounted ConfigMap (SRC) into Trustee's storage folder (DST), which
 * exists. */
int seed_policies(const char *src, const char *dst, struct err *err) MUST_CHECK;

#endif
