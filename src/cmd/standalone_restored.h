/* SPDX-License-Identifier: MIT */
/* What a start does differently after --restore, and with a store of a version before 0.3.0. */
#ifndef TEC_CMD_STANDALONE_RESTORED_H
#define TEC_CMD_STANDALONE_RESTORED_H

#include "tec/apistore/objects.h"
#include "tec/base/err.h"

/* At the first start after it: an Event and a line of the log list the keys that are approved. The
 * Event is stored with what else this start writes. */
int standalone_restored_report(
	struct apistore_objects *objects, const char *ns, struct err *err) MUST_CHECK;

#endif
