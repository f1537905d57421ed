/* SPDX-License-Identifier: MIT */
/*
 * Published values as test data: digests of Fedora CoreOS images and the registers they lead to
 * (fixtures of compute-pcrs and a test of the operator, trusted-execution-clusters).
 */
#ifndef TEC_TESTS_PCR_EVENTS_H
#define TEC_TESTS_PCR_EVENTS_H

#include <criterion/criterion.h>
#include <string.h>

#include "tec/pcr/tpmevent.h"

#define EFI_CALL  "3d6772b4f84ed47595d72a2c4c5ffd15f5bb72c7507fe26f2aaee2c69d5633ba"
#define SEPARATOR "df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119"
/* fedora-42.20250929.3.0 */
#define SHIM_A   "94896c17d49fc8c8df0cc2836611586edab1615ce7cb58cf13fc5798de56b367"
#define GRUB_A   "bc6844fc7b59b4f0c7da70a307fc578465411d7a2c34b0f4dc2cc154c873b644"
#define KERNEL_A "6115ef506eecf507d43279d2b5f11573c4011fab0f5bba6e22bb72dbf1d1ffd9"
#define PCR4_A   "eedb05d189eabc928d16f5b5c758479894ad8921064efd26361eb11b3211f1ad"
#define PCR7_A   "b3a56a06c03a65277d0a787fcabc1e293eaa5d6dd79398f2dda741f7b874c65d"
/* cos2 of the operator's test */
#define SHIM_B   "1fed6fad5ca735adc80615d2a7e795e2f17f84e407b07979498c9edb1e04383f"
#define GRUB_B   "8f3adc6b42da2defa6d5ef3202badc39a5a22ceec068f106760592163a505a0e"
#define KERNEL_B "772c3a90820e4a76944d3715e6f700bc41e846b0049b7817f9feb3289a56d3f8"
#define PCR4_B   "c7fc63ec604348d8258993a9e344ba72041afd1473ad291a3171199b551aedbd"
/* Loader of A with the kernel of B: published there too. Loader of B with the kernel of A: computed
 * with Python's hashlib. */
#define PCR4_AB "c9c3add791efc98f59977c89e673a34ad0b357872e9eb2c43d14607488e5d9e2"
#define PCR4_BA "cf274ba459a0b23bb14ab00e93aa7be7177a3ae77f8e6c5c69e8de229cd52169"
/* The same on firmware that does not measure the call of the boot entry; by hashlib, too. */
#define UNCALLED_A  "3a347e2a8171ae489c3a77c8f7e28d6e3e9234d41fce9dd6990575eddd21507c"
#define UNCALLED_B  "705d660c6b2bab6a44bb5951027e29105c3feba12f904348c4501880948b3d67"
#define UNCALLED_AB "54c3fdf241fbe077cdf0a53ca9e1fabd60c136d343d4965eaa8f039366102609"
#define UNCALLED_BA "86939ce715820c9c79cde7f2d9efa20a81798ab12dda4c9cfc4e6a645283ff45"
/* fedora-44.20260111.91.1 */
#define SHIM_C   "9d5c8223265f3119cbc44155abbb58717e998338f41a4edeacb4b0b94357821f"
#define GRUB_C   "72c5ea9371a1262e5275d2ed7e97fb6ae420f7e8e5eb5f18a1232c088cd74680"
#define KERNEL_C "c5da3452bfe17cce87e00390f70afb55303f4f4411af853cf5289b95fce81c14"
#define PCR4_C   "55cafe514d82bb527d34b678c4d2954d1aab07b6483367b67cc90f121d6f67d4"
#define PCR7_C   "8e8d561f8e596446b86c0cdbf22d9ff54a0b2913dd44054e23c493c93aa79ce7"
/* Fedora's, the same in 42 and 44 */
#define MOK_LIST    "e8e48e3ad10bc243341b4663c0057aef0ec7894ccc9ecb0598f0830fa57f7220"
#define MOK_LIST_X  "8d8a3aae50d5d25838c95c034aadce7b548c9a952eb7925e366eda537c59c3b0"
#define MOK_TRUSTED "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"
#define PCR14       "17cdefd9548f4383b67a37a901673bf3c8ded6f619d36c8007562de1d93c81cc"
/* Secure Boot on, qemu's OVMF of Fedora 42 */
#define SB_ON     "ccfc4bb32888a345bc8aeadaba552b627d99348c767681ab3141f5b01e40a40e"
#define PK        "adb6fc232943e39c374bf4782b6c697f43c39fca1f4b51dfceda21164e19a893"
#define KEK       "b5432fe20c624811cb0296391bfdf948ebd02f0705ab8229bea09774023f0ebf"
#define DB        "4313e43de720194a0eabf4d6415d42b5a03a34fdc47bb1fc924cc4e665e6893d"
#define DBX       "001004ba58a184f09be6c1f4ec75a246cc2eefa9637b48ee428b6aa9bce48c55"
#define SHIM_CERT "4d4a8e2c74133bbdc01a16eaf2dbb5d575afeb36f5d8dfcf609ae043909e2ee9"
#define SBAT_42   "e8e9578f5951ef16b1c1aa18ef02944b8375ec45ed4b5d8cdb30428db4a31016"
#define SBAT_44   "bcf4d1ff6bf02f949e5afd49dc45fe3e16f39b302764bf2ee98257e8297a1f7d"
#define MOK_CERT  "ad5901fd581e6640c742c488083b9ac2c48255bd28a16c106c6f9df52702ee3f"

static inline void add(struct pcr_events *e, enum pcr_event_id id, const char *hex)
{
	enum pcr_event_type type = PCR_EV_EFI_BOOT_SERVICES_APPLICATION;
	unsigned pcr = id < PCR7_SECURE_BOOT ? 4 : id < PCR11_LINUX ? 7 : 14;
	uint8_t digest[SHA256_LEN];

	if (id == PCR4_EFI_CALL)
		type = PCR_EV_EFI_ACTION;
	else if (id == PCR4_SEPARATOR || id == PCR7_SEPARATOR)
		type = PCR_EV_SEPARATOR;
	else if (pcr == 7)
		type = id < PCR7_SEPARATOR ? PCR_EV_EFI_VARIABLE_DRIVER_CONFIG
					   : PCR_EV_EFI_VARIABLE_AUTHORITY;
	else if (pcr == 14)
		type = id == PCR14_NO_SHIM ? PCR_EV_NO_ACTION : PCR_EV_IPL;
	cr_assert_eq(bytes_from_hex(hex, SHA256_HEX_LEN, digest), 0);
	cr_assert(pcr_events_push(e, id, type, pcr, digest));
}

/* NULL: without that event. */
static inline void add_pcr4(
	struct pcr_events *e, const char *shim, const char *grub, const char *kernel)
{
	add(e, PCR4_EFI_CALL, EFI_CALL);
	add(e, PCR4_SEPARATOR, SEPARATOR);
	add(e, PCR4_SHIM, shim);
	add(e, PCR4_GRUB, grub);
	if (kernel)
		add(e, PCR4_VMLINUZ, kernel);
}

static inline void add_pcr7(struct pcr_events *e, const char *sbat)
{
	static const char *const firmware[] = {SB_ON, PK, KEK, DB, DBX, SEPARATOR, SHIM_CERT};

	static const enum pcr_event_id ids[] = {PCR7_SECURE_BOOT, PCR7_PK, PCR7_KEK, PCR7_DB,
		PCR7_DBX, PCR7_SEPARATOR, PCR7_SHIM_CERT};

	for (int i = 0; i < 7; i++)
		add(e, ids[i], firmware[i]);
	add(e, PCR7_SBAT_LEVEL, sbat);
	add(e, PCR7_GRUB_MOK_LIST_CERT, MOK_CERT);
}

static inline void add_pcr14(struct pcr_events *e)
{
	add(e, PCR14_MOK_LIST, MOK_LIST);
	add(e, PCR14_MOK_LIST_X, MOK_LIST_X);
	add(e, PCR14_MOK_LIST_TRUSTED, MOK_TRUSTED);
}

static inline const char *hex_of(const uint8_t digest[SHA256_LEN])
{
	static char ring[4][SHA256_HEX_LEN + 1];
	static unsigned next;
	char *hex = ring[next++ % 4];

	bytes_to_hex(digest, SHA256_LEN, hex);
	return hex;
}

static inline const char *value_of(const struct pcr_events *e, unsigned pcr)
{
	uint8_t value[SHA256_LEN];

	return pcr_events_value(e, pcr, value) ? hex_of(value) : "";
}

#endif
