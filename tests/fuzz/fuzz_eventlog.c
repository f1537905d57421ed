/* SPDX-License-Identifier: MIT */
/*
 * A TCG2 event log: every event moves forward and lies inside the log, registers that are extended
 * exist, and the end is the log's end.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/pcr/eventlog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free uint8_t *copy = xmalloc(size ? size : 1);
	struct err err = ERR_INIT;
	struct eventlog_event e;
	struct eventlog log;
	size_t last;
	int rc;

	memcpy(copy, data, size);
	if (eventlog_open(copy, size, &log, &err) < 0) {
		assert(err.kind == ERR_INVALID);
		return 0;
	}
	assert(log.n_algs >= 1 && log.n_algs <= ARRAY_LEN(log.alg) && log.pos <= size);
	for (last = log.pos; (rc = eventlog_next(&log, &e, &err)) > 0; last = log.pos) {
		assert(log.pos > last && log.pos <= size);
		assert(e.data + e.len == copy + log.pos);
		assert(e.pcr < 24 || e.type == EVENTLOG_NO_ACTION);
		assert(strncmp(eventlog_type_name(e.type), "EV_", 3) == 0);
	}
	assert(rc == 0 ? last == size : err.kind == ERR_INVALID);
	return 0;
}
