/* SPDX-License-Identifier: MIT */
/* Refuses a file that others can read: its key vouches for every server that nodes will trust. */
#include "config.h"

#include "node_ca.h"

#include "tec/base/clock.h"
#include "tec/base/file.h"
#include "tec/base/log.h"

/* The mode counts for regular files only: a pipe, as from a secret store, has none worth
 * checking. */
int node_ca_read(const char *path, struct pki_ca *out, struct err *err)
{
	struct stat st;
	size_t len;
	char *text = file_read(path, PKI_CA_FILE_MAX, &len, &st, err);
	int rc;

	if (!text)
		return -1;
	rc = pki_ca_read(text, len, clock_wall_s(), out, err);
	file_wipe(text, len);
	if (rc == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077)) {
		pki_ca_fini(out);
		rc = err_set(err, ERR_INVALID,
			"other users can read the private key; next step: chmod 0600 FILE");
	}
	return rc < 0 ? err_wrap(err, "%.120s", log_esc(path)) : 0;
}
