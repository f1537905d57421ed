/* SPDX-License-Identifier: MIT */
/* Commands and options of tecctl. */
#ifndef TEC_CMD_TOOL_OPTIONS_H
#define TEC_CMD_TOOL_OPTIONS_H

#include "tec/base/conf.h"

/* Exit status; 2 is usage, 130 an interrupt. */
#define TOOL_FAILED      1 /* failure or a negative result */
#define TOOL_USAGE       2
#define TOOL_UNREACHABLE 3
#define TOOL_DENIED      4
#define TOOL_INTERRUPTED 130

enum tool_command {
	TOOL_STATUS,
	TOOL_WHY,
	TOOL_MACHINE_LIST,
	TOOL_MACHINE_SHOW,
	TOOL_MACHINE_DELETE,
	TOOL_APPROVE,
	TOOL_DENY,
	TOOL_REBIND,
	TOOL_KEY_LIST,
	TOOL_SERVER_LOST,
	TOOL_IMAGE_APPROVE,
	TOOL_IMAGE_LIST,
	TOOL_IMAGE_EXPLAIN,
	TOOL_IMAGE_VERIFY,
	TOOL_IGNITION,
	TOOL_BACKUP,
	TOOL_DOCTOR,
	TOOL_BOOTSTRAP_CHECK,
	TOOL_BOOTSTRAP_CA,
	TOOL_BOOTSTRAP_CERT,
	TOOL_BOOTSTRAP_SERVERS,
	TOOL_FOLLOW,
	TOOL_PROMOTE,
	TOOL_RETIRE,
	TOOL_COMPLETION,
	TOOL_N_COMMANDS,
};

enum tool_output { TOOL_TEXT, TOOL_JSON, TOOL_YAML, TOOL_NAME };

extern const struct conf_program tool_program;

#endif
