/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <criterion/criterion.h>

#include "pcr/pcr_events.h"
#include "tec/base/json.h"
#include "tec/base/mem.h"
#include "tec/render/refvalues.h"

static struct {
	const char *name;
	struct pcr_events events;
} image[4];
static size_t n_images;
static struct render_refvalues r;

static void down(void)
{
	for (size_t i = 0; i < n_images; i++)
		pcr_events_fini(&image[i].events);
	render_refvalues_fini(&r);
}

TestSuite(render_refvalues, .fini = down);

static struct pcr_events *more(const char *name)
{
	image[n_images].name = name;
	return &image[n_images++].events;
}

static void render(bool with_pcr7)
{
	cleanup_pcr_sets struct pcr_sets sets = PCR_SETS_INIT;

	struct pcr_mixer *m = pcr_mixer_new();
	const char *names[ARRAY_LEN(image)];

	for (size_t i = 0; i < n_images; i++) {
		names[i] = image[i].name;
		cr_assert(pcr_mixer_add(m, names[i], i, &image[i].events, 100, &sets));
	}
	pcr_mixer_free(m);
	render_refvalues_fini(&r);
	render_refvalues(names, &sets, with_pcr7, &r);
}

static const char *boot(const char *name)
{
	for (size_t i = 0; i < r.n_boot; i++)
		if (strcmp(r.boot[i].name, name) == 0)
			return r.boot[i].value;
	return "";
}

Test(render_refvalues, two_images_that_differ)
{
	struct pcr_events *a = more("cos1"), *b = more("cos2");

	add_pcr4(a, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(a);
	add_pcr4(b, SHIM_B, GRUB_B, KERNEL_B);
	add_pcr14(b);
	render(false);
	cr_assert_str_eq(r.array[MODEL_RV_PCR4],
		"[\"" UNCALLED_A "\",\"" UNCALLED_AB "\",\"" UNCALLED_B "\",\"" UNCALLED_BA
		"\",\"" PCR4_B "\",\"" PCR4_AB "\",\"" PCR4_BA "\",\"" PCR4_A "\"]");
	cr_assert_str_eq(r.array[MODEL_RV_PCR14], "[\"" PCR14 "\"]");
	cr_assert_str_eq(r.array[MODEL_RV_PCR7], "[]");
	cr_assert_str_eq(r.array[MODEL_RV_SVN], "[\"1\"]");
	cr_assert_eq(r.n_boot, 8);
	cr_assert_str_eq(boot("boot." PCR4_A "." PCR14), "{\"images\":[\"cos1\"]}");
	cr_assert_str_eq(boot("boot." UNCALLED_A "." PCR14), "{\"images\":[\"cos1\"]}");
	cr_assert_str_eq(boot("boot." UNCALLED_BA "." PCR14), "{\"images\":[\"cos1\",\"cos2\"]}");
	cr_assert_str_eq(boot("boot." PCR4_B "." PCR14), "{\"images\":[\"cos2\"]}");
	cr_assert_str_eq(boot("boot." PCR4_AB "." PCR14), "{\"images\":[\"cos1\",\"cos2\"]}");
	cr_assert_str_eq(boot("boot." PCR4_BA "." PCR14), "{\"images\":[\"cos1\",\"cos2\"]}");
	for (size_t i = 1; i < r.n_boot; i++)
		cr_assert_lt(strcmp(r.boot[i - 1].name, r.boot[i].name), 0);
}

/* What image c shows by itself is also a mix of a and b: it is told as what it is. */
Test(render_refvalues, an_image_of_its_own_is_no_mix)
{
	struct pcr_events *a = more("a"), *b = more("b"), *c = more("c"), *d = more("d");

	add_pcr4(a, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(a);
	add_pcr4(b, SHIM_B, GRUB_B, KERNEL_B);
	add_pcr14(b);
	add_pcr4(c, SHIM_A, GRUB_A, KERNEL_B);
	add_pcr14(c);
	add_pcr4(d, SHIM_A, GRUB_A, KERNEL_B); /* the same image under two names */
	add_pcr14(d);
	render(false);
	cr_assert_eq(r.n_boot, 8);
	cr_assert_str_eq(boot("boot." UNCALLED_AB "." PCR14), "{\"images\":[\"c\",\"d\"]}");
	cr_assert_str_eq(boot("boot." PCR4_AB "." PCR14), "{\"images\":[\"c\",\"d\"]}");
	cr_assert_str_eq(boot("boot." PCR4_BA "." PCR14), "{\"images\":[\"a\",\"b\"]}");
}

Test(render_refvalues, with_pcr_7_the_name_has_it)
{
	struct pcr_events *a = more("a"), *b = more("b");

	add_pcr4(a, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr7(a, SBAT_42);
	add_pcr14(a);
	add_pcr4(b, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(b);
	render(true);
	cr_assert_eq(r.n_boot, 2); /* the other one has no PCR 7 */
	cr_assert_str_eq(boot("boot." PCR4_A "." PCR7_A "." PCR14), "{\"images\":[\"a\"]}");
	cr_assert_eq(strlen(r.boot[0].name), RENDER_BOOT_NAME_MAX);
	cr_assert_str_eq(r.array[MODEL_RV_PCR7], "[\"" PCR7_A "\"]");
}

Test(render_refvalues, the_file_has_the_shape_of_the_rust_operator)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct pcr_events *a = more("a");

	add_pcr4(a, SHIM_A, GRUB_A, KERNEL_A);
	add_pcr14(a);
	render(false);
	render_refvalues_file(&r, 1800000000, &text);
#define HEAD(name)                                                                                 \
	"{\"version\":\"0.1.0\",\"name\":\"" name                                                  \
	"\",\"expiration\":\"2027-01-15T08:00:00Z\",\"value\":"
	cr_assert_str_eq(text.data,
		"[" HEAD("tpm_pcr14") "[\"" PCR14 "\"]}," HEAD(
			"tpm_pcr4") "[\"" UNCALLED_A "\",\"" PCR4_A "\"]}," HEAD("tpm_svn") "["
											    "\"1\""
											    "]}]");
}

Test(render_refvalues, no_image_gives_empty_arrays)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	render(false);
	cr_assert_str_eq(r.array[MODEL_RV_PCR4], "[]");
	cr_assert_str_eq(r.array[MODEL_RV_PCR14], "[]");
	cr_assert_eq(r.n_boot, 0);
	render_refvalues_file(&r, 0, &text);
	cleanup_json struct json_object *o = json_tokener_parse(text.data);
	cr_assert_eq(json_object_array_length(o), 3);
}
