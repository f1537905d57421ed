/* SPDX-License-Identifier: MIT */
/* Which AttestationKey is a Machine's. */
#ifndef TEC_STATE_AK_H
#define TEC_STATE_AK_H

#include "tec/model/ak.h"
#include "tec/model/machine.h"
#include "tec/state/state.h"

/* Another operator approved it for this Machine, and both are older: to be bound as it is. */
bool state_ak_is_inherited(
	const struct state *s, const struct model_ak *ak, const struct model_machine *m);
/* The live key that the Machine is bound to, else the one to be inherited; NULL: none. */
const struct model_ak *state_ak_of_machine(const struct state *s, const struct model_machine *m);

#endif
