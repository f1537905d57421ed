/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "tec/state/state.h"

static void fill(struct k8s_cache *c)
{
	k8s_cache_relist_begin(c);
	k8s_cache_relist_end(c);
}

Test(state_kinds, each_role_waits_for_what_it_needs)
{
	struct state s = STATE_INIT;

	cr_assert(state_filled(&s, STATE_FOR_ALL), "what a role does not have is not waited for");
	for (int i = 0; i < STATE_N_KINDS; i++)
		s.cache[i] = k8s_cache_new(&state_kinds[i].cache);
	fill(s.clusters);
	fill(s.machines);
	cr_assert_not(state_filled(&s, STATE_FOR_LISTENERS));
	fill(s.aks);
	cr_assert(state_filled(&s, STATE_FOR_LISTENERS));
	cr_assert_not(state_filled(&s, STATE_FOR_REVOKING));
	fill(s.secrets);
	cr_assert(state_filled(&s, STATE_FOR_REVOKING));
	cr_assert_not(state_filled(&s, STATE_FOR_ALL));
	for (int i = 0; i < STATE_N_KINDS; i++)
		if (!k8s_cache_filled(s.cache[i]))
			fill(s.cache[i]);
	cr_assert(state_filled(&s, STATE_FOR_ALL));
	for (int i = 0; i < STATE_N_KINDS; i++)
		k8s_cache_free(s.cache[i]);
}
