/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tec/apistore/lists.h"

const struct apistore_list apistore_lists_builtin[APISTORE_LISTS_BUILTIN] = {
	{"conditions", {"type"}},
	{"containers", {"name"}},
	{"env", {"name"}},
	{"imagePullSecrets", {"name"}},
	{"initContainers", {"name"}},
	{"ports", {"port", "containerPort", "protocol"}},
	{"volumeMounts", {"mountPath"}},
	{"volumes", {"name"}},
};
