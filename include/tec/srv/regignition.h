/* SPDX-License-Identifier: MIT */
/*
 * Port 8000: GET /ignition-clevis-pin-trustee and /ignition. Creates a Machine with a new UUID,
 * then answers with the Ignition configuration that encrypts the root disk for it. All checks
 * that can refuse come before the Machine is created.
 */
#ifndef TEC_SRV_REGIGNITION_H
#define TEC_SRV_REGIGNITION_H

#include "tec/srv/listener.h"

struct srv_listener *srv_regignition_new(const struct srv_env *env);

#endif
