/* SPDX-License-Identifier: MIT */
/*
 * libcurl for a program that seldom needs it: tec-compute-pcrs speaks to a registry in one run of
 * many, and some 25 libraries that libcurl brings along are a quarter of what a run costs. A program
 * that has src/net/httpc_late.c among its sources is not linked with libcurl and calls this before
 * its first httpc_new(). The library stays until the process ends.
 */
#ifndef TEC_NET_HTTPC_LATE_H
#define TEC_NET_HTTPC_LATE_H

#include "tec/base/err.h"

/* ERR_INVALID: the library is not there, or lacks a function. */
int httpc_late_load(struct err *err) MUST_CHECK;

#endif
