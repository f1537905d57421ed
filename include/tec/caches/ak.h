/* SPDX-License-Identifier: MIT */
/* Which AttestationKey belongs to a Machine. */
#ifndef TEC_CACHES_AK_H
#define TEC_CACHES_AK_H

#include "tec/model/ak.h"
#include "tec/model/machine.h"
#include "tec/caches/caches.h"

/* Tell whether another operator approved the key for this Machine, with both older than this
 * operator: then it is bound as it is. */
bool caches_ak_is_inherited(
	const struct caches *s, const struct model_ak *ak, const struct model_machine *m);
/* Return the live key to which the Machine is bound, otherwise the one to be inherited; NULL:
 * none. */
const struct model_ak *caches_ak_of_machine(const struct caches *s, const struct model_machine *m);

#endif
