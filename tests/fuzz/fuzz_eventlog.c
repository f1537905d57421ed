/* SPDX-License-Identifier: MIT */
/*
 * A TCG2 event log: every event moves forward and lies inside the log, registers that are extended
 * exist, and the end is the log's end. A platform's file that is made of it is one. Held against a prediction it is damaged or it differs, and
 * what is said of it cannot write to a terminal.
 */
#include "config.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "tec/base/mem.h"
#include "tec/measure/compare.h"
#include "tec/measure/eventlog.h"
#include "tec/measure/firmware.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct eventlog_event *e)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	eventlog_describe(e, &text);
	for (const char *p = strbuf_str(&text); *p; p++)
		assert((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static void check_report(const struct measure_comparison *c)
{
	for (const char *p = strbuf_str(&c->report); *p; p++)
		assert(*p == '\n' || ((unsigned char)*p >= 0x20 && *p != 0x7f));
}

/* Of an image that would not start the log alone is told. */
static void compare_refused(const uint8_t *data, size_t size, bool good)
{
	static const char why[] = "nothing to compare the log with: it is too old\n";
	cleanup_boot_comparison struct measure_comparison c = MEASURE_COMPARISON_INIT;
	struct err err = ERR_INIT;

	if (measure_compare_refused("it is too old", data, size, &c, &err) < 0) {
		assert(!good || strstr(err.text, "more than"));
		return;
	}
	assert((good || size == 0) && !c.matches);
	assert(strncmp(strbuf_str(&c.report), why, strlen(why)) == 0);
	check_report(&c);
}

static void compare(const uint8_t *data, size_t size, bool good)
{
	static const enum pcr_event_id ids[] = {PCR4_SEPARATOR, PCR4_SHIM, PCR4_GRUB};
	cleanup_boot_variants struct measure_variants v = MEASURE_VARIANTS_INIT;
	cleanup_boot_comparison struct measure_comparison c = MEASURE_COMPARISON_INIT;
	const uint8_t digest[SHA256_LEN] = {0};
	struct err err = ERR_INIT;

	v.v = xcalloc(1, sizeof(*v.v));
	v.n = 1;
	v.v[0].when = xstrdup("always");
	v.v[0].label = xcalloc(ARRAY_LEN(ids), sizeof(*v.v[0].label));
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		v.v[0].label[i] = xstrdup("a file");
		if (!pcr_events_push(&v.v[0].events, ids[i], PCR_EV_SEPARATOR, 4, digest))
			assert(!"three events are too many");
	}
	if (measure_compare_log(&v, PCR_BOOT_STRICT, data, size, &c, &err) < 0) {
		assert(!good || strstr(err.text, "more than"));
		return;
	}
	assert((good || size == 0) && c.variant == 0);
	check_report(&c);
}

static void check_vars(const uint8_t *data, size_t size, bool good)
{
	cleanup_boot_vars struct measure_vars vars = {.found = {false}};
	struct err err = ERR_INIT;

	if (measure_vars_from_log(data, size, &vars, &err) < 0) {
		assert(err_is_set(&err));
		return;
	}
	for (int i = 0; i < PCR_PLATFORM_N_VARS; i++) {
		assert(!vars.found[i] || vars.text[i].len > MEASURE_VARS_ATTRIBUTES ||
			(i == PCR_PLATFORM_SECURE_BOOT &&
				vars.text[i].len == MEASURE_VARS_ATTRIBUTES));
	}
	assert(good);
}

/* What is written of a log is what is read of a file: a platform of at most so many events. */
static void check_firmware(const uint8_t *data, size_t size, bool good)
{
	cleanup_boot_vars struct measure_vars vars = {.found = {false}};
	cleanup_strbuf struct strbuf notes = STRBUF_INIT;
	cleanup_firmware struct measure_firmware f = {.n = 0};
	struct err err = ERR_INIT;

	if (measure_firmware_from_log(data, size, &vars, &notes, &err) < 0) {
		assert(err_is_set(&err));
		return;
	}
	assert(good && measure_firmware_read(&vars, &f, &err) == 0);
	assert(f.n <= MEASURE_FIRMWARE_MAX);
	assert(vars.found[PCR_PLATFORM_EVENTS] == (vars.text[PCR_PLATFORM_EVENTS].len > 0));
	for (const char *p = strbuf_str(&notes); *p; p++)
		assert(*p == '\n' || ((unsigned char)*p >= 0x20 && *p != 0x7f));
}

/* The bytes as a platform's file: read whole or refused. */
static void check_file(const uint8_t *data, size_t size)
{
	cleanup_boot_vars struct measure_vars vars = {.found = {false}};
	cleanup_firmware struct measure_firmware f = {.n = 0};
	struct err err = ERR_INIT;

	strbuf_add(&vars.text[PCR_PLATFORM_EVENTS], data, size);
	if (measure_firmware_read(&vars, &f, &err) < 0) {
		assert(err_is_set(&err) && f.n == 0);
		return;
	}
	assert(f.n > 0 && f.n <= MEASURE_FIRMWARE_MAX);
	for (size_t i = 0; i < f.n; i++)
		assert((f.v[i].pcr == 4 || f.v[i].pcr == 7) &&
			(f.v[i].variable < 0) == (f.v[i].label != NULL));
}

static void check(const uint8_t *data, size_t size, bool good)
{
	compare(data, size, good);
	compare_refused(data, size, good);
	check_vars(data, size, good);
	check_firmware(data, size, good);
	check_file(data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free uint8_t *copy = xmalloc(size ? size : 1);
	struct err err = ERR_INIT;
	struct eventlog_event e;
	struct eventlog log;
	size_t last;
	int rc;

	memcpy(copy, data, size);
	if (eventlog_open(copy, size, &log, &err) < 0) {
		assert(err.kind == ERR_INVALID);
		check(copy, size, false);
		return 0;
	}
	assert(log.n_algs >= 1 && log.n_algs <= ARRAY_LEN(log.alg) && log.pos <= size);
	for (last = log.pos; (rc = eventlog_next(&log, &e, &err)) > 0; last = log.pos) {
		assert(log.pos > last && log.pos <= size);
		assert(e.data + e.len == copy + log.pos);
		assert(e.pcr < 24 || e.type == EVENTLOG_NO_ACTION);
		assert(strncmp(eventlog_type_name(e.type), "EV_", 3) == 0);
		check_text(&e);
	}
	assert(rc == 0 ? last == size : err.kind == ERR_INVALID);
	check(copy, size, rc == 0);
	return 0;
}
