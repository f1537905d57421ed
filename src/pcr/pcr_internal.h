/* SPDX-License-Identifier: MIT */
/*
 * Little-endian fields of PE, EFI and TCG structures. The caller has checked that they are there.
 */
#ifndef TEC_PCR_INTERNAL_H
#define TEC_PCR_INTERNAL_H

#include <stdint.h>

static inline uint16_t pcr_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t pcr_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void pcr_put_le32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}

#endif
