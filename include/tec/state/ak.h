/* SPDX-License-Identifier: MIT */
/* Which AttestationKey belongs to a Machine. */
#ifndef TEC_STATE_AK_H
#define TEC_STATE_AK_H

#include "tec/model/ak.h"
#include "tec/model/machine.h"
#include "tec/state/state.h"

/* Tell whether another operator approved the key for this Machine, with both older than this
 * operator: then it is bound as it is. */
bool state_ak_is_inherited(
	const struct state *s, const struct model_ak *ak, const struct model_machine *m);
/* Return the live key to which the Machine is bound, otherwise the one to be inherited; NULL:
 * none. */
const struct model_ak *state_ak_of_machine(const struct state *s, const struct model_machine *m);

#endif
