/* SPDX-License-Identifier: MIT */
/* Fills Trustee's storage before its start. Blocks; for an init container. */
#ifndef TEC_KBS_SEED_H
#define TEC_KBS_SEED_H

#include "tec/base/err.h"
#include "tec/base/str.h"

/* Writes our two policies: if Trustee finds none, it writes its own, which accept any TPM. src: the
 * files of ConfigMap trustee-policies. dst: the root of the storage (LocalFs). Appends a line to
 * `said` for each file written. The error names the file. */
int kbs_seed(const char *src, const char *dst, struct strbuf *said, struct err *err) MUST_CHECK;

/* Copies the files of src, a volume of Secrets, into the repository dst, where Trustee may change
 * them, whichever user it runs as. Appends a line to `said`. The error names the file. */
int kbs_seed_resources(
	const char *src, const char *dst, struct strbuf *said, struct err *err) MUST_CHECK;

#endif
