/* SPDX-License-Identifier: MIT */
/*
 * Which copies of a cluster that follows another one are to be deleted, because somebody confirms that the
 * other one does not have them any more: of tecctl follow --confirm-deletes and --accept-source.
 */
#ifndef TEC_SHOW_DELETES_H
#define TEC_SHOW_DELETES_H

#include "tec/show/handover.h"

struct show_deletes {
	struct json_object **v[SHOW_N_KINDS]; /* owned arrays of borrowed objects */
	size_t n[SHOW_N_KINDS], all;
};

/* from NULL: the Machines and AttestationKeys of the target that its operator withholds. Otherwise what
 * the target has and the source lacks, images too: load the target first, so that a copy that was just
 * made is not among them. Objects are borrowed from to. */
void show_deletes_find(
	const struct show_world *from, const struct show_world *to, struct show_deletes *out);
void show_deletes_fini(struct show_deletes *d);
#define cleanup_show_deletes __attribute__((cleanup(show_deletes_fini)))
/* "2 Machines (a, b) and 1 AttestationKey (k)", of 20 names at most. */
void show_deletes_text(const struct show_deletes *d, struct strbuf *out);
/* How many of them a later look still shows. */
size_t show_deletes_left(const struct show_deletes *d, const struct show_world *now);

/* Whether the target can delete them: DONE, or REFUSE. from NULL: as above. */
struct show_next show_deletes_next(
	const struct show_authority *from, const struct show_authority *to);

#endif
