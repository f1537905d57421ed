/* SPDX-License-Identifier: MIT */
/*
 * Port 8001: PUT or POST /register-ak. Validates the key completely before it contacts the API,
 * then creates the AttestationKey. The object's name is derived from the key, so the API server
 * itself detects duplicates (409).
 */
#ifndef TEC_SRV_REGAK_H
#define TEC_SRV_REGAK_H

#include "tec/srv/listener.h"

struct srv_listener *srv_regak_new(const struct srv_env *env);

#endif
