/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "pcr/pcr_events.h"
#include "tec/base/mem.h"
#include "tec/pcr/bootpath.h"
#include "tec/pcr/combine.h"

#define IMAGES_MAX 40
static struct {
	const char *name;
	struct pcr_events events;
} image[IMAGES_MAX];
static size_t n_images, conflicts;
static struct pcr_sets sets;

static void down(void)
{
	for (size_t i = 0; i < n_images; i++) {
		free((char *)(uintptr_t)image[i].name);
		pcr_events_fini(&image[i].events);
	}
	pcr_sets_fini(&sets);
}

TestSuite(pcr_combine, .fini = down);

static struct pcr_events *more(const char *name)
{
	image[n_images].name = xstrdup(name);
	return &image[n_images++].events;
}

static void combine(void)
{
	struct pcr_mixer *m = pcr_mixer_new();

	pcr_sets_fini(&sets);
	for (size_t i = 0; i < n_images; i++)
		cr_assert(pcr_mixer_add(m, image[i].name, i, &image[i].events, 100000, &sets));
	cr_assert_eq(pcr_mixer_count(m), n_images);
	conflicts = pcr_mixer_conflicts(m);
	pcr_mixer_free(m);
}

/* How many sets have this value of PCR 4. */
static size_t with_pcr4(const char *hex)
{
	uint8_t value[SHA256_LEN];
	size_t n = 0;

	cr_assert_eq(bytes_from_hex(hex, SHA256_HEX_LEN, value), 0);
	for (size_t i = 0; i < sets.n; i++)
		n += sets.v[i].has[4] && memcmp(sets.v[i].value[4], value, SHA256_LEN) == 0;
	return n;
}

static const char *pcr4_of(const char *shim, const char *grub, const char *kernel)
{
	struct pcr_events e = PCR_EVENTS_INIT;
	const char *hex;

	add_pcr4(&e, shim, grub, kernel);
	hex = value_of(&e, 4);
	pcr_events_fini(&e);
	return hex;
}

/* A digest that nothing else has. */
static const char *made_up(int kind, int i)
{
	static char hex[4][SHA256_HEX_LEN + 1];
	uint8_t in[2] = {(uint8_t)kind, (uint8_t)i}, digest[SHA256_LEN];

	bytes_sha256(in, sizeof(in), digest);
	bytes_to_hex(digest, SHA256_LEN, hex[kind % 4]);
	return hex[kind % 4];
}

Test(pcr_combine, no_image_no_set)
{
	combine();
	cr_assert_eq(sets.n, 0);
	more("empty");
	combine();
	cr_assert_eq(sets.n, 0);
}

Test(pcr_combine, one_image_is_itself_in_its_own_order)
{
	struct pcr_events *e = more("a");

	add_pcr14(e);
	add(e, PCR4_VMLINUZ, KERNEL_A); /* not the usual order, and repeated */
	add(e, PCR4_SHIM, SHIM_A);
	add(e, PCR4_SHIM, SHIM_A);
	combine();
	cr_assert_eq(sets.n, 1);
	cr_assert_str_eq(hex_of(sets.v[0].value[4]), value_of(e, 4));
	cr_assert_str_eq(hex_of(sets.v[0].value[14]), PCR14);
	cr_assert(!sets.v[0].has[7]);
	cr_assert_eq(sets.v[0].image[1], 0);
}

Test(pcr_combine, two_images_give_the_published_four)
{
	add_pcr4(more("cos1"), SHIM_A, GRUB_A, KERNEL_A);
	add_pcr4(more("cos2"), SHIM_B, GRUB_B, KERNEL_B);
	combine();
	cr_assert_eq(sets.n, 4);
	cr_assert_eq(conflicts, 0);
	cr_assert_eq(with_pcr4(PCR4_A), 1);
	cr_assert_eq(with_pcr4(PCR4_B), 1);
	cr_assert_eq(with_pcr4(PCR4_AB), 1);
	cr_assert_eq(with_pcr4(PCR4_BA), 1);
	/* Its own ones first, and the mixes say whose they are. */
	cr_assert(sets.v[0].image[0] == 0 && sets.v[0].image[1] == 0);
	cr_assert(sets.v[1].image[0] == 1 && sets.v[1].image[1] == 1);
	cr_assert(sets.v[2].image[0] == 0 && sets.v[2].image[1] == 1);
	cr_assert(sets.v[3].image[0] == 0 && sets.v[3].image[1] == 1);
}

Test(pcr_combine, what_does_not_differ_gives_nothing_new)
{
	struct pcr_events *a = more("a"), *b = more("b");

	add_pcr4(a, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(a);
	add_pcr4(b, SHIM_A, GRUB_A, KERNEL_B);
	add_pcr14(b);
	combine();
	cr_assert_eq(sets.n, 2);
	cr_assert_eq(with_pcr4(PCR4_AB), 1);
}

Test(pcr_combine, loader_and_its_certificates_stay_together)
{
	struct pcr_events *a = more("a"), *c = more("c");

	add_pcr4(a, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr7(a, SBAT_42);
	add_pcr14(a);
	add_pcr4(c, SHIM_C, GRUB_C, KERNEL_C);
	add_pcr7(c, SBAT_44);
	add_pcr14(c);
	combine();
	cr_assert_eq(sets.n, 4);
	for (size_t i = 0; i < sets.n; i++) {
		cleanup_free char *pcr4 = xstrdup(hex_of(sets.v[i].value[4]));
		bool loader_a = strcmp(pcr4, PCR4_A) == 0 ||
				strcmp(pcr4, pcr4_of(SHIM_A, GRUB_A, KERNEL_C)) == 0;

		cr_assert_str_eq(hex_of(sets.v[i].value[7]), loader_a ? PCR7_A : PCR7_C);
		cr_assert_str_eq(hex_of(sets.v[i].value[14]), PCR14);
	}
}

/* The Rust tool loses the image that lacks an event. A mix never lacks it either. */
Test(pcr_combine, an_event_of_one_side_does_not_lose_the_other_image)
{
	add_pcr4(more("grub"), SHIM_A, GRUB_A, KERNEL_A);
	add_pcr4(more("uki"), SHIM_B, GRUB_B, NULL);
	combine();
	cr_assert_eq(with_pcr4(PCR4_A), 1);
	cr_assert_eq(with_pcr4(pcr4_of(SHIM_B, GRUB_B, NULL)), 1);
	cr_assert_eq(with_pcr4(pcr4_of(SHIM_B, GRUB_B, KERNEL_A)), 1);
	cr_assert_eq(with_pcr4(pcr4_of(SHIM_A, GRUB_A, NULL)), 0); /* would start any kernel */
	cr_assert_eq(sets.n, 3);
}

/* A second stage that the other loader does not have goes with its own shim only. */
Test(pcr_combine, an_event_of_one_side_stays_with_its_group)
{
	struct pcr_events *a = more("a"), *b = more("b");

	add(a, PCR4_SHIM, SHIM_A);
	add(a, PCR4_GRUB, GRUB_A);
	add(a, PCR4_VMLINUZ, KERNEL_A);
	add(b, PCR4_SHIM, SHIM_B);
	add(b, PCR4_VMLINUZ, KERNEL_A);
	combine();
	cr_assert_eq(sets.n, 2);
}

Test(pcr_combine, a_kernel_measured_twice_is_mixed_as_such)
{
	struct pcr_events *a = more("a"), *b = more("b"), both = PCR_EVENTS_INIT;

	add_pcr4(a, SHIM_A, GRUB_A, KERNEL_A);
	add(a, PCR4_VMLINUZ, KERNEL_A);
	add_pcr4(b, SHIM_B, GRUB_B, KERNEL_B);
	add(b, PCR4_VMLINUZ, KERNEL_B);
	combine();
	cr_assert_eq(sets.n, 4);
	cr_assert_eq(with_pcr4(value_of(a, 4)), 1);
	add_pcr4(&both, SHIM_A, GRUB_A, KERNEL_B);
	add(&both, PCR4_VMLINUZ, KERNEL_B);
	cr_assert_eq(with_pcr4(value_of(&both, 4)), 1);
	pcr_events_fini(&both);
	cr_assert_eq(with_pcr4(PCR4_A), 0);
}

Test(pcr_combine, the_loader_decides_how_often_a_kernel_is_measured)
{
	struct pcr_events *a = more("a"), *b = more("b"), twice = PCR_EVENTS_INIT;

	add_pcr4(a, SHIM_A, GRUB_A, KERNEL_A);
	add(a, PCR4_VMLINUZ, KERNEL_A);
	add_pcr4(b, SHIM_B, GRUB_B, KERNEL_B);
	combine();
	cr_assert_eq(sets.n, 4);
	cr_assert_eq(with_pcr4(value_of(a, 4)), 1);
	cr_assert_eq(with_pcr4(PCR4_B), 1);
	cr_assert_eq(with_pcr4(PCR4_BA), 1, "the loader of b measures once");
	add_pcr4(&twice, SHIM_A, GRUB_A, KERNEL_B);
	add(&twice, PCR4_VMLINUZ, KERNEL_B);
	cr_assert_eq(with_pcr4(value_of(&twice, 4)), 1, "the loader of a measures twice");
	pcr_events_fini(&twice);
}

Test(pcr_combine, the_same_kernel_under_two_loaders_is_two_states)
{
	struct pcr_events *a = more("a"), *b = more("b");

	add_pcr4(a, SHIM_A, GRUB_A, KERNEL_A);
	add(a, PCR4_VMLINUZ, KERNEL_A);
	add_pcr4(b, SHIM_B, GRUB_B, KERNEL_A);
	combine();
	cr_assert_eq(sets.n, 2);
	cr_assert_eq(conflicts, 0);
}

Test(pcr_combine, several_kernels_are_taken_as_they_are)
{
	struct pcr_events *a = more("a"), *b = more("b"), both = PCR_EVENTS_INIT;

	add_pcr4(a, SHIM_A, GRUB_A, KERNEL_A);
	add(a, PCR4_VMLINUZ, KERNEL_C);
	add_pcr4(b, SHIM_B, GRUB_B, KERNEL_B);
	combine();
	add_pcr4(&both, SHIM_B, GRUB_B, KERNEL_A);
	add(&both, PCR4_VMLINUZ, KERNEL_C);
	cr_assert_eq(with_pcr4(value_of(&both, 4)), 1);
	pcr_events_fini(&both);
}

Test(pcr_combine, mixes_do_not_depend_on_the_order_of_events)
{
	struct pcr_events *a = more("a");

	add(a, PCR4_VMLINUZ, KERNEL_A);
	add(a, PCR4_GRUB, GRUB_A);
	add(a, PCR4_SHIM, SHIM_A);
	add(a, PCR4_SEPARATOR, SEPARATOR);
	add(a, PCR4_EFI_CALL, EFI_CALL);
	add_pcr4(more("b"), SHIM_B, GRUB_B, KERNEL_B);
	combine();
	cr_assert_eq(with_pcr4(value_of(a, 4)), 1); /* its own stays as it is */
	cr_assert_eq(with_pcr4(PCR4_AB), 1);
	cr_assert_eq(with_pcr4(PCR4_BA), 1);
}

/* As the Rust tool's tests: shim's certificate belongs to two groups at once. */
Test(pcr_combine, a_contradiction_is_discarded_and_counted)
{
	struct pcr_events *a = more("a"), *b = more("b");

	add(a, PCR4_SHIM, SHIM_A);
	add(a, PCR7_SECURE_BOOT, SB_ON);
	add(a, PCR7_SHIM_CERT, SHIM_CERT);
	add(b, PCR4_SHIM, SHIM_B);
	add(b, PCR7_SECURE_BOOT, PK);
	add(b, PCR7_SHIM_CERT, KEK);
	combine();
	cr_assert_eq(sets.n, 2);
	cr_assert_eq(conflicts, 2);
}

Test(pcr_combine, turning_secure_boot_on_mixes_nothing)
{
	struct pcr_events *off = more("off"), *on = more("on");

	add_pcr4(off, SHIM_A, GRUB_A, KERNEL_A);
	add(off, PCR7_SECURE_BOOT, PK);
	add(off, PCR7_SEPARATOR, SEPARATOR);
	add(off, PCR7_SBAT_LEVEL, SBAT_44);
	add_pcr4(on, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr7(on, SBAT_42);
	combine();
	cr_assert_eq(sets.n, 2);
}

Test(pcr_combine, two_loaders_and_four_kernels_give_eight)
{
	for (int i = 0; i < 4; i++) {
		struct pcr_events *e = more(i == 0 ? "a" : i == 1 ? "b" : i == 2 ? "c" : "d");

		add(e, PCR4_SHIM, made_up(1, i / 2));
		add(e, PCR4_VMLINUZ, made_up(2, i));
	}
	combine();
	/* Each mix is found by two pairs, and counts once: the other loader comes from either of
	 * two images. */
	cr_assert_eq(sets.n, 4 + 4);
	for (int shim = 0; shim < 2; shim++) {
		for (int kernel = 0; kernel < 4; kernel++) {
			struct pcr_events e = PCR_EVENTS_INIT;

			add(&e, PCR4_SHIM, made_up(1, shim));
			add(&e, PCR4_VMLINUZ, made_up(2, kernel));
			cr_assert_eq(with_pcr4(value_of(&e, 4)), 1);
			pcr_events_fini(&e);
		}
	}
}

Test(pcr_combine, n_images_that_differ_give_n_squared)
{
	for (int i = 0; i < IMAGES_MAX; i++) {
		char name[8];
		struct pcr_events *e;

		snprintf(name, sizeof(name), "i%02d", i);
		e = more(name);
		add_pcr4(e, made_up(1, i), made_up(2, i), made_up(3, i));
		add_pcr14(e);
	}
	combine();
	cr_assert_eq(sets.n, IMAGES_MAX * IMAGES_MAX);
	for (int i = 0; i < IMAGES_MAX; i++)
		cr_assert_eq(with_pcr4(pcr4_of(made_up(1, i), made_up(2, i), made_up(3, i))), 1);
	cr_assert_eq(with_pcr4(pcr4_of(made_up(1, 3), made_up(2, 3), made_up(3, 7))), 1);
	cr_assert_eq(with_pcr4(pcr4_of(made_up(1, 3), made_up(2, 4), made_up(3, 4))), 0);
}

Test(pcr_combine, variants_of_one_image_are_not_mixed)
{
	add_pcr4(more("a"), SHIM_A, GRUB_A, KERNEL_A);
	add_pcr4(more("a"), SHIM_B, GRUB_B, KERNEL_B);
	combine();
	cr_assert_eq(sets.n, 2);
	add_pcr4(more("c"), SHIM_C, GRUB_C, KERNEL_C);
	combine();
	cr_assert_eq(sets.n, 3 + 4);
	cr_assert_eq(with_pcr4(PCR4_AB), 0);
}

Test(pcr_combine, registers_of_one_side_are_kept)
{
	add_pcr4(more("a"), SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(more("b"));
	combine();
	cr_assert_eq(sets.n, 3);
	cr_assert(!sets.v[0].has[14] && !sets.v[1].has[4]);
	cr_assert(sets.v[2].has[4] && sets.v[2].has[14]);
}

Test(pcr_combine, a_bound_stops_it_and_what_was_too_much_is_taken_back)
{
	struct pcr_mixer *m = pcr_mixer_new();

	add_pcr4(more("a"), SHIM_A, GRUB_A, KERNEL_A);
	add_pcr4(more("b"), SHIM_B, GRUB_B, KERNEL_B);
	add_pcr4(more("c"), SHIM_C, GRUB_C, KERNEL_C);
	cr_assert(pcr_mixer_add(m, "a", 0, &image[0].events, 5, &sets));
	cr_assert(pcr_mixer_add(m, "b", 1, &image[1].events, 5, &sets));
	cr_assert_eq(sets.n, 4);
	cr_assert(!pcr_mixer_add(m, "c", 2, &image[2].events, 5, &sets));
	cr_assert_leq(sets.n, 5);
	pcr_mixer_cut(m, 2);
	pcr_sets_cut(&sets, 4);
	cr_assert_eq(with_pcr4(PCR4_C), 0);
	/* And is as it was: the same is found again, and no more. */
	cr_assert(pcr_mixer_add(m, "c", 2, &image[2].events, 9, &sets));
	cr_assert_eq(sets.n, 9);
	cr_assert_eq(with_pcr4(PCR4_C), 1);
	cr_assert(!pcr_mixer_add(m, "d", 3, &image[2].events, 9, &sets), "its own always counts");
	pcr_mixer_free(m);
}

/* ---- the second form of PCR 4 */

static const char *uncalled(size_t i)
{
	return sets.v[i].has_uncalled ? hex_of(sets.v[i].uncalled) : "";
}

Test(pcr_combine, firmware_may_leave_out_the_call_in_each_state)
{
	struct pcr_events *a = more("a"), *b = more("b");

	add_pcr4(a, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(a);
	add_pcr4(b, SHIM_B, GRUB_B, KERNEL_B);
	add_pcr14(b);
	combine();
	cr_assert_eq(sets.n, 4);
	for (size_t i = 0; i < sets.n; i++) {
		const char *called = hex_of(sets.v[i].value[4]);

		cr_assert_str_eq(uncalled(i), strcmp(called, PCR4_A) == 0    ? UNCALLED_A
					      : strcmp(called, PCR4_B) == 0  ? UNCALLED_B
					      : strcmp(called, PCR4_AB) == 0 ? UNCALLED_AB
									     : UNCALLED_BA);
	}
}

Test(pcr_combine, one_form_only_without_a_call_after_failures_and_without_pcr_4)
{
	struct pcr_events *lacks = more("lacks"), *bare = more("bare"), *other = more("other");
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT;

	add(lacks, PCR4_SEPARATOR, SEPARATOR);
	add(lacks, PCR4_SHIM, SHIM_A);
	add_pcr14(bare);
	add(other, PCR4_EFI_CALL, SHIM_B); /* another text */
	add_pcr4(&e, SHIM_C, GRUB_C, KERNEL_C);
	cr_assert(pcr_boot_failed(&e, 1, more("failed")));
	for (size_t i = 0; i < n_images; i++) {
		struct pcr_mixer *m = pcr_mixer_new();

		pcr_sets_fini(&sets);
		cr_assert(pcr_mixer_add(m, image[i].name, i, &image[i].events, 10, &sets));
		cr_assert_str_eq(uncalled(0), "", "%s", image[i].name);
		pcr_mixer_free(m);
	}
}

Test(pcr_combine, the_second_form_of_events)
{
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT, to = PCR_EVENTS_INIT,
					     failed = PCR_EVENTS_INIT, none = PCR_EVENTS_INIT;

	add_pcr4(&e, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(&e);
	cr_assert(pcr_boot_uncalled(&e, &to));
	cr_assert_eq(to.n, e.n - 1);
	cr_assert_str_eq(value_of(&to, 4), UNCALLED_A);
	cr_assert_str_eq(value_of(&to, 14), PCR14);
	cr_assert_not(pcr_boot_uncalled(&to, &none), "it has no call any more");
	cr_assert(pcr_boot_failed(&e, 2, &failed));
	pcr_events_fini(&none);
	cr_assert_not(pcr_boot_uncalled(&failed, &none));
}

Test(pcr_combine, of_a_platforms_own_beginning_nothing_is_derived)
{
	cleanup_pcr_events struct pcr_events e = PCR_EVENTS_INIT, platform = PCR_EVENTS_INIT,
					     on = PCR_EVENTS_INIT, other = PCR_EVENTS_INIT;

	add_pcr4(&e, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(&e);
	add(&platform, PCR4_PLATFORM, EFI_CALL);
	add(&platform, PCR4_PLATFORM, SHIM_C);
	add(&platform, PCR4_PLATFORM, SEPARATOR);
	add_pcr7(&platform, SBAT_42);
	cr_assert(pcr_boot_on_platform(&platform, &e, &on));
	cr_assert_eq(on.n, 6, "%zu", on.n);
	for (size_t i = 0; i < on.n; i++)
		cr_assert_eq(on.v[i].pcr, 4);
	cr_assert(pcr_event_same(&on.v[2], &platform.v[2]) && pcr_event_same(&on.v[3], &e.v[2]));
	cr_assert_not(pcr_boot_uncalled(&on, &other));
	pcr_events_fini(&other);
	cr_assert_not(pcr_boot_failed(&on, 1, &other));
	pcr_events_fini(&other);
	/* In its place, not before it. */
	cr_assert(pcr_boot_on_platform(&platform, &on, &other));
	cr_assert_eq(other.n, on.n);
}

/* ---- without shim */

#define ZERO "0000000000000000000000000000000000000000000000000000000000000000"

static void add_uki(struct pcr_events *e, const char *loader, const char *uki)
{
	add(e, PCR4_EFI_CALL, EFI_CALL);
	add(e, PCR4_SEPARATOR, SEPARATOR);
	if (loader)
		add(e, PCR4_GRUB, loader);
	add(e, PCR4_UKI, uki);
	add(e, PCR14_NO_SHIM, ZERO);
}

Test(pcr_combine, chains_without_shim_mix_with_each_other_alone)
{
	struct pcr_events *a = more("a"), *b = more("b"), *direct = more("direct"),
			  *shim = more("shim");

	add_uki(a, GRUB_A, KERNEL_A);
	add_uki(b, GRUB_B, KERNEL_B);
	add_uki(direct, NULL, KERNEL_C);
	add_pcr4(shim, SHIM_C, GRUB_C, KERNEL_A);
	add_pcr14(shim);
	combine();
	/* Two loaders times three UKIs, one UKI by itself, and the chain with shim as it is. */
	cr_assert_eq(sets.n, 8, "%zu", sets.n);
	for (size_t i = 0; i < sets.n; i++) {
		bool with_shim = sets.v[i].image[0] == 3 && sets.v[i].image[1] == 3;

		cr_assert(sets.v[i].has[4] && sets.v[i].has[14] && sets.v[i].has_uncalled);
		cr_assert_str_eq(hex_of(sets.v[i].value[14]), with_shim ? PCR14 : ZERO);
	}
	cr_assert_eq(conflicts, 0);
}
