/* SPDX-License-Identifier: MIT */
/*
 * Selects the copies to delete on a following cluster after somebody confirms that the source no
 * longer has the originals: for tecctl follow --confirm-deletes and --accept-source.
 */
#ifndef TEC_SHOW_DELETES_H
#define TEC_SHOW_DELETES_H

#include "tec/show/handover.h"

struct show_deletes {
	struct json_object **v[SHOW_N_KINDS]; /* owned arrays of borrowed objects */
	size_t n[SHOW_N_KINDS], all;
};

/* from NULL: the Machines and AttestationKeys whose deletion the target's operator withholds.
 * Otherwise: everything, images included, that the target has and the source lacks. Load the
 * target first, so that a copy made in between is not selected. Objects are borrowed from to. */
void show_deletes_find(
	const struct show_world *from, const struct show_world *to, struct show_deletes *out);
void show_deletes_fini(struct show_deletes *d);
#define cleanup_show_deletes __attribute__((cleanup(show_deletes_fini)))
/* Appends "2 Machines (a, b) and 1 AttestationKey (k)", with at most 20 names in all. */
void show_deletes_text(const struct show_deletes *d, struct strbuf *out);
/* How many of the selected objects (by UID) a later read of the target still shows. */
size_t show_deletes_left(const struct show_deletes *d, const struct show_world *now);

/* Whether the target may delete them: SHOW_DO_DONE, or SHOW_DO_REFUSE with the reason. from NULL:
 * as above. */
struct show_next show_deletes_next(
	const struct show_authority *from, const struct show_authority *to);

#endif
