/* SPDX-License-Identifier: MIT */
/*
 * Port 8001: PUT or POST /register-ak. Validates the key completely before the API is touched, then
 * makes the AttestationKey, whose name follows from the key, so that a duplicate is the API's own
 * 409.
 */
#ifndef TEC_SRV_REGAK_H
#define TEC_SRV_REGAK_H

#include "tec/srv/listener.h"

struct srv_listener *srv_regak_new(const struct srv_env *env);

#endif
