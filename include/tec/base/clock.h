/* SPDX-License-Identifier: MIT */
/*
 * Time. Deadlines use the boot clock, which continues during suspend and never jumps; the wall clock
 * is only for making and comparing API timestamps. Tests replace both with clock_fake_*(): the whole
 * process then sees the fake time.
 */
#ifndef TEC_BASE_CLOCK_H
#define TEC_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t clock_boot_ms(void);
uint64_t clock_boot_us(void);
int64_t clock_wall_s(void);
int64_t clock_wall_us(void);

/* RFC 3339 UTC, "2026-01-02T03:04:05Z" (21 bytes with NUL) and with microseconds (28 bytes with
 * NUL: Lease, Event). */
#define CLOCK_RFC3339_LEN    21
#define CLOCK_RFC3339_US_LEN 28
void clock_format(int64_t wall_s, char out[CLOCK_RFC3339_LEN]);
void clock_format_us(int64_t wall_us, char out[CLOCK_RFC3339_US_LEN]);
/* Parse an RFC 3339 time with optional fraction and offset into microseconds since the epoch. */
int clock_parse(const char *s, int64_t *wall_us) __attribute__((warn_unused_result));

void clock_fake_start(uint64_t boot_ms, int64_t wall_s); /* tests only */
void clock_fake_advance(uint64_t ms);                    /* moves both */
void clock_fake_set_wall(int64_t wall_s);                /* a wall clock jump */
void clock_fake_stop(void);
bool clock_is_fake(void);

#endif
