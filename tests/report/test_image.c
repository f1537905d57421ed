/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "report_testing.h"
#include "tec/model/image.h"
#include "tec/report/image.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int choose(const char *world, const char *given, const char *reference, char **name)
{
	cleanup_show_world struct report_world w;
	struct err err = ERR_INIT;
	int rc;

	*name = NULL;
	world_of(&w, world);
	rc = report_image_choose(&w, given, reference, name, &err);
	cr_expect_eq(rc < 0, err_is_set(&err));
	return rc;
}

Test(report_image, a_name_is_made_from_the_reference)
{
	static const struct {
		const char *reference, *name;
	} cases[] = {{"registry/a/Debian@sha256:" HEX, "debian-01234567"},
		{"q/fcos:42.1@sha256:" HEX, "fcos-01234567"}, {"x@sha256:" HEX, "x-01234567"},
		{"q/a_b.c@sha256:" HEX, "a-b-c-01234567"},
		{"q/_a@sha256:" HEX, "image--a-01234567"}, {"q/@sha256:" HEX, "image--01234567"},
		{"q/aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffff@sha256:" HEX,
			"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee-01234567"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *name = NULL;

		cr_expect_eq(choose("{}", NULL, cases[i].reference, &name), 0);
		cr_expect_str_eq(name, cases[i].name);
	}
}

Test(report_image, one_that_exists_is_not_made_again)
{
	static const char *const world =
		"{\"image\":[{" META("old", "1") ",\"spec\":{\"image\":\"q/x@sha256:" HEX "\"}}]}";
	cleanup_free char *by_reference = NULL, *by_name = NULL, *fresh = NULL, *other = NULL;

	cr_expect_eq(choose(world, NULL, "q/x@sha256:" HEX, &by_reference), 1);
	cr_expect_str_eq(by_reference, "old");
	cr_expect_eq(choose(world, "old", "q/x@sha256:" HEX, &by_name), 1);
	cr_expect_str_eq(by_name, "old");
	cr_expect_eq(choose(world, "new", "q/x@sha256:" HEX, &fresh), 0);
	cr_expect_str_eq(fresh, "new");
	cr_expect_eq(choose(world, "old", "q/y@sha256:" HEX, &other), -1);
}

Test(report_image, a_tag_and_a_bad_name_are_refused)
{
	struct err err = ERR_INIT;

	cr_expect_eq(report_image_check("q/x@sha256:" HEX, "a.b", &err), 0);
	cr_expect_eq(report_image_check("q/x:latest", NULL, &err), -1);
	cr_expect(strstr(err.text, " has no digest; next step: "), "%s", err.text);
	err_clear(&err);
	cr_expect_eq(report_image_check("q/x@sha256:" HEX, "A", &err), -1);
	cr_expect(strstr(err.text, " is not a valid object name"), "%s", err.text);
}

Test(report_image, only_handed_in_values_leave_a_mark)
{
	cleanup_json struct json_object *computed = report_image_new("n", "q/x@sha256:" HEX, false),
					*handed = report_image_new("n", "q/x@sha256:" HEX, true);
	struct err err = ERR_INIT;
	cleanup_free char *text = json_text(computed);

	cr_expect_str_eq(text,
		"{\"apiVersion\":\"trusted-execution-clusters.io/v1alpha1\",\"kind\":\"ApprovedImage\","
		"\"metadata\":{\"name\":\"n\"},\"spec\":{\"image\":\"q/x@sha256:" HEX "\"}}");
	json_add_str(json_get(handed, "metadata"), "uid", "u");
	json_add_str(json_get(handed, "metadata"), "resourceVersion", "1");
	json_add_str(json_get(handed, "metadata"), "namespace", "n");
	{
		cleanup_kobj const struct kobj *o = model_image_extract(handed, &err);

		cr_assert(o, "%s", err.text);
		cr_expect(model_image(o)->handed_in);
		cr_expect(model_image(o)->digest_ok);
	}
}

Test(report_image, values_have_a_reference_with_a_digest)
{
	cleanup_free char *a = report_image_reference("a", 1), *b = report_image_reference("b", 1);

	cr_expect_str_eq(a,
		"localhost/rootfs@sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
	cr_expect_str_neq(a, b);
}

Test(report_image, what_it_waits_for_is_said_with_the_next_step)
{
	cleanup_show_world struct report_world w;
	struct err err = ERR_INIT;

	world_of(
		&w, "{\"image\":[{" META("a", "1") ",\"status\":{\"conditions\":[" COND("Committed",
			    "False", "ValuesAwaited", "Waiting.") "]}},{" META("b", "2") "}]}");
	cr_expect_eq(report_image_late(w.list[REPORT_IMAGE].v[0], 5, &err), -1);
	cr_expect_str_eq(err.text,
		"the image is not in force after 5 s: Waiting.; next step: Provide the values.");
	err_clear(&err);
	cr_expect_eq(report_image_late(w.list[REPORT_IMAGE].v[1], 0, &err), -1);
	cr_expect_str_eq(err.text,
		"the image is not in force after 0 s: the operator has reported nothing; next step: "
		"tecctl doctor");
}

#define LONG_NAME "an-image-whose-name-is-as-long-as-names-of-images-are-in-practice-0123"

Test(report_image, the_next_step_is_not_cut_for_a_long_message)
{
	cleanup_show_world struct report_world w;
	struct err err = ERR_INIT;

	world_of(
		&w, "{\"image\":[{" META(LONG_NAME, "1") ",\"status\":{\"conditions\":[" COND(
			    "Committed", "False", "NoDigestGiven",
			    "spec.image does not end in a complete SHA-256 digest (@sha256: and 64 "
			    "hexadecimal digits).") "]}}]}");
	cr_expect_eq(report_image_late(w.list[REPORT_IMAGE].v[0], 5, &err), -1);
	cr_expect(strstr(err.text, " s: spec.image does not end in "), "%s", err.text);
	cr_expect(strstr(err.text, "kubectl delete ai " LONG_NAME
				   ", then approve the image with its digest."),
		"%s", err.text);
}

/* Events that extend PCR 4 and PCR 14 by digests of these bytes. */
static void events_of(struct pcr_events *e, uint8_t pcr4, uint8_t pcr14)
{
	uint8_t a[SHA256_LEN] = {pcr4}, b[SHA256_LEN] = {pcr14};

	pcr_events_push(e, PCR4_SHIM, PCR_EV_EFI_BOOT_SERVICES_APPLICATION, 4, a);
	pcr_events_push(e, PCR14_MOK_LIST, PCR_EV_IPL, 14, b);
}

Test(report_image, values_in_force_that_the_image_has_not_are_counted)
{
	cleanup_pcrmsg struct model_pcrmsg m = MODEL_PCRMSG_INIT;
	struct model_pcrs_entry e = {.events = PCR_EVENTS_INIT};
	struct model_variant more = {.events = PCR_EVENTS_INIT};

	events_of(&m.events, 1, 2);
	cr_expect_eq(report_image_unlike(&e, &m), 1, "values without registers match nothing");
	events_of(&e.events, 1, 2);
	cr_expect_eq(report_image_unlike(&e, &m), 0);
	events_of(&more.events, 1, 3);
	e.variants.v = &more;
	e.variants.n = 1;
	cr_expect_eq(report_image_unlike(&e, &m), 1, "a variant that differs in PCR 14 alone");
	m.variants.v = xcalloc(1, sizeof(*m.variants.v));
	m.variants.n = 1;
	m.variants.v[0].events = (struct pcr_events)PCR_EVENTS_INIT;
	events_of(&m.variants.v[0].events, 1, 3);
	cr_expect_eq(report_image_unlike(&e, &m), 0);
	pcr_events_fini(&e.events);
	pcr_events_fini(&more.events);
}
