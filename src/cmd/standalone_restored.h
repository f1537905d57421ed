/* SPDX-License-Identifier: MIT */
/* What the first start after --restore, or with a store from before 0.3.0, does differently. */
#ifndef TEC_CMD_STANDALONE_RESTORED_H
#define TEC_CMD_STANDALONE_RESTORED_H

#include "tec/apistore/objects.h"
#include "tec/base/err.h"

/* On the first start after a restoration, lists the approved keys in an Event and a log line.
 * The Event is committed together with what else this start writes. */
int standalone_restored_report(
	struct apistore_objects *objects, const char *ns, struct err *err) MUST_CHECK;

#endif
