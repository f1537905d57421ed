/* SPDX-License-Identifier: MIT */
/*
 * Port 8000: GET /ignition-clevis-pin-trustee and /ignition. Makes a Machine with a new UUID, then
 * answers the Ignition that encrypts the root disk for it. Everything that can refuse is checked
 * before the Machine is made.
 */
#ifndef TEC_SRV_REGIGNITION_H
#define TEC_SRV_REGIGNITION_H

#include "tec/srv/listener.h"

struct srv_listener *srv_regignition_new(const struct srv_env *env);

#endif
