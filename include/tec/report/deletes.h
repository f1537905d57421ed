/* SPDX-License-Identifier: MIT */
/*
 * Selects the copies to delete on a following cluster after somebody confirms that the source no
 * longer has the originals: for tecctl follow --confirm-deletes and --accept-source.
 */
#ifndef TEC_REPORT_DELETES_H
#define TEC_REPORT_DELETES_H

#include "tec/report/handover.h"

struct report_deletes {
	struct json_object **v[REPORT_N_KINDS]; /* owned arrays of borrowed objects */
	size_t n[REPORT_N_KINDS], all;
};

/* from NULL: the Machines and AttestationKeys whose deletion the target's operator withholds.
 * Otherwise: everything, images included, that the target has and the source lacks. Load the
 * target first, so that a copy made in between is not selected. Objects are borrowed from to. */
void report_deletes_find(
	const struct report_world *from, const struct report_world *to, struct report_deletes *out);
void report_deletes_fini(struct report_deletes *d);
#define cleanup_show_deletes __attribute__((cleanup(report_deletes_fini)))
/* Appends "2 Machines (a, b) and 1 AttestationKey (k)", with at most 20 names in all. */
void report_deletes_text(const struct report_deletes *d, struct strbuf *out);
/* How many of the selected objects (by UID) a later read of the target still shows. */
size_t report_deletes_left(const struct report_deletes *d, const struct report_world *now);

/* Whether the target may delete them: REPORT_DO_DONE, or REPORT_DO_REFUSE with the reason. from NULL:
 * as above. */
struct report_next report_deletes_next(
	const struct report_authority *from, const struct report_authority *to);

#endif
