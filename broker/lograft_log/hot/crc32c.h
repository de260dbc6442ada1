/* CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), chosen once at load: the processor's own
 * instruction where it has one, else eight tables. Three streams hide the instruction's latency;
 * the tables that join them are built at load, so that no magic constants stand here. */
#ifndef LOGRAFT_CRC32C_H
#define LOGRAFT_CRC32C_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LG_POLY 0x82F63B78u
#define LG_LONG 4096u /* bytes per stream in the long loop */
#define LG_SHORT 256u /* bytes per stream in the short loop */

static uint32_t lg_table[8][256];
static uint32_t lg_shift_long[4][256];
static uint32_t lg_shift_short[4][256];
static int lg_hardware = 0;

static uint32_t lg_soft(uint32_t crc, const uint8_t *data, size_t size) {
    while (size >= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        word ^= crc;
        crc = lg_table[7][word & 255] ^ lg_table[6][(word >> 8) & 255] ^ lg_table[5][(word >> 16) & 255] ^
              lg_table[4][(word >> 24) & 255] ^ lg_table[3][(word >> 32) & 255] ^ lg_table[2][(word >> 40) & 255] ^
              lg_table[1][(word >> 48) & 255] ^ lg_table[0][word >> 56];
        data += 8;
        size -= 8;
    }
    while (size--) crc = (crc >> 8) ^ lg_table[0][(crc ^ *data++) & 255];
    return crc;
}

/* The effect on a CRC of `size` zero bytes behind it is linear: one table per byte of the CRC. */
static void lg_build_shift(uint32_t shift[4][256], size_t size) {
    static const uint8_t zeros[64];
    uint32_t basis[32];
    for (int bit = 0; bit < 32; bit++) {
        uint32_t crc = 1u << bit;
        for (size_t done = 0; done < size; done += sizeof zeros) crc = lg_soft(crc, zeros, sizeof zeros);
        basis[bit] = crc;
    }
    for (int byte = 0; byte < 4; byte++)
        for (int value = 0; value < 256; value++) {
            uint32_t crc = 0;
            for (int bit = 0; bit < 8; bit++)
                if (value >> bit & 1) crc ^= basis[byte * 8 + bit];
            shift[byte][value] = crc;
        }
}

static uint32_t lg_shift(uint32_t shift[4][256], uint32_t crc) {
    return shift[0][crc & 255] ^ shift[1][(crc >> 8) & 255] ^ shift[2][(crc >> 16) & 255] ^ shift[3][crc >> 24];
}

#if defined(__x86_64__)
#include <nmmintrin.h>
#define LG_TARGET __attribute__((target("sse4.2")))
#define LG_STEP8(crc, word) _mm_crc32_u64((crc), (word))
#define LG_STEP1(crc, byte) _mm_crc32_u8((uint32_t)(crc), (byte))
static int lg_has_instruction(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <sys/auxv.h>
#define LG_TARGET __attribute__((target("+crc")))
#define LG_STEP8(crc, word) __crc32cd((uint32_t)(crc), (word))
#define LG_STEP1(crc, byte) __crc32cb((uint32_t)(crc), (byte))
static int lg_has_instruction(void) { return (getauxval(AT_HWCAP) >> 7) & 1; }
#endif

#ifdef LG_TARGET
LG_TARGET static uint64_t lg_three(uint64_t crc, const uint8_t **cursor, size_t stream, uint32_t shift[4][256]) {
    const uint8_t *data = *cursor;
    uint64_t first = crc, second = 0, third = 0, a, b, c;
    for (size_t at = 0; at < stream; at += 8) {
        memcpy(&a, data + at, 8);
        memcpy(&b, data + stream + at, 8);
        memcpy(&c, data + 2 * stream + at, 8);
        first = LG_STEP8(first, a);
        second = LG_STEP8(second, b);
        third = LG_STEP8(third, c);
    }
    *cursor = data + 3 * stream;
    second ^= lg_shift(shift, (uint32_t)first);
    return third ^ lg_shift(shift, (uint32_t)second);
}

LG_TARGET static uint32_t lg_hard(uint32_t start, const uint8_t *data, size_t size) {
    uint64_t crc = start, word;
    while (size >= 3 * LG_LONG) {
        crc = lg_three(crc, &data, LG_LONG, lg_shift_long);
        size -= 3 * LG_LONG;
    }
    while (size >= 3 * LG_SHORT) {
        crc = lg_three(crc, &data, LG_SHORT, lg_shift_short);
        size -= 3 * LG_SHORT;
    }
    while (size >= 8) {
        memcpy(&word, data, 8);
        crc = LG_STEP8(crc, word);
        data += 8;
        size -= 8;
    }
    while (size--) crc = LG_STEP1(crc, *data++);
    return (uint32_t)crc;
}
#else
static int lg_has_instruction(void) { return 0; }
static uint32_t lg_hard(uint32_t crc, const uint8_t *data, size_t size) { return lg_soft(crc, data, size); }
#endif

static void lg_crc32c_init(void) {
    for (int value = 0; value < 256; value++) {
        uint32_t crc = (uint32_t)value;
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (LG_POLY & (0u - (crc & 1)));
        lg_table[0][value] = crc;
    }
    for (int level = 1; level < 8; level++)
        for (int value = 0; value < 256; value++)
            lg_table[level][value] = (lg_table[level - 1][value] >> 8) ^ lg_table[0][lg_table[level - 1][value] & 255];
    lg_build_shift(lg_shift_long, LG_LONG);
    lg_build_shift(lg_shift_short, LG_SHORT);
    lg_hardware = lg_has_instruction();
}

/* Continues from `crc` (0 to begin), as zlib's crc32 does. Call lg_crc32c_init first: the tables are
 * private to each compiled module that includes this file. */
static uint32_t lg_crc32c(uint32_t crc, const uint8_t *data, size_t size) {
    crc = ~crc;
    crc = lg_hardware ? lg_hard(crc, data, size) : lg_soft(crc, data, size);
    return ~crc;
}

static uint32_t lg_crc32c_plain(uint32_t crc, const uint8_t *data, size_t size) {
    return ~lg_soft(~crc, data, size);
}
#endif
