/* SPDX-License-Identifier: MIT */
/* Writes our two policies into Trustee's storage before its first start: if it finds none, it
 * writes its own, which accept any TPM. Blocks; for an init container. */
#ifndef TEC_KBS_SEED_H
#define TEC_KBS_SEED_H

#include "tec/base/err.h"
#include "tec/base/str.h"

/* src: the files of ConfigMap trustee-policies. dst: the root of the storage (LocalFs). Appends
 * a line to `said` for each file written. The error names the file. */
int kbs_seed(const char *src, const char *dst, struct strbuf *said, struct err *err) MUST_CHECK;

#endif
