/* pipeline/decode/jpeg/scan/lanes_inner.h: declarations shared by lanes.c and the loop of lanes_avx512.c.
 * Private.
 *
 * Table entries, 32 bits. From bit
 *   0  8 bits: bits of all its symbols and values, at most MRI_LANE_BITS
 *   8  8 bits: how far all go; MRI_LANE_END more when the last is an end of block; MRI_LANE_DC: a DC symbol;
 *      MRI_LANE_ODD: this entry cannot be taken
 *  16  8 bits: how far the first value goes
 *  24  5 bits: size of the value that follows the code in the bits; 0 when the values are in `values`
 *  30  MRI_LANE_HARD: read one symbol in plain C
 *  31  MRI_LANE_LONG: the code is longer than the window, and in the table of long codes
 * Added to the position k of the last coefficient "how far" has bit 6 set when the entry cannot be taken, and
 * is at least 63 when it can and ends the block (or is a DC symbol).
 *
 * One number gives a table's start and the width of its windows: a table of n bits begins at an index that is
 * 32 - n modulo 32, so that the window is shifted right by the index. */
#ifndef MRI_LANES_INNER_H
#define MRI_LANES_INNER_H

#include "pipeline/decode/jpeg/scan/lanes.h"

#define MRI_LANE_BITS 25 /* bits that a window of 32 has at any bit of a byte */
#define MRI_LANE_END  129
#define MRI_LANE_DC   128
#define MRI_LANE_ODD  64
#define MRI_LANE_HARD 0x40000000u
#define MRI_LANE_LONG 0x80000000u

#define MRI_LANE_AC_BITS      11 /* two symbols at once where they fit */
#define MRI_LANE_CAREFUL_BITS 10 /* one symbol: for the end of a block that fills up */
#define MRI_LANE_DC_BITS      9
#define MRI_LANE_LONG_ENTRIES                                                                                \
    4096 /* windows of 16 bits from the first one whose code is longer than AC_BITS */

/* Indexes in a set of tables: each region is 32 entries larger than its table. */
#define MRI_LANE_AC_AT      (32 - MRI_LANE_AC_BITS)
#define MRI_LANE_CAREFUL_AT (2048 + 32 + 32 - MRI_LANE_CAREFUL_BITS)
#define MRI_LANE_DC_AT      (2048 + 1024 + 64 + 32 - MRI_LANE_DC_BITS)
#define MRI_LANE_LONG_AT    (2048 + 1024 + 512 + 96)
#define MRI_LANE_SKIM_AT    (2048 + 1024 + 512 + MRI_LANE_LONG_ENTRIES + 128 + 32 - MRI_LANE_AC_BITS)
#define MRI_LANE_SET        (2 * 2048 + 1024 + 512 + MRI_LANE_LONG_ENTRIES + 160)
#define MRI_LANE_PARKED     (MRI_LANE_TABLES * MRI_LANE_SET + 31) /* a lane without work looks here: 1 bit */

/* Room of a batch: blocks of coefficients, with the spare one after each segment (512 KiB stay in the second
 * cache); bytes of the file without stuffing; segments. */
#define MRI_LANE_BLOCKS   8192
#define MRI_LANE_BYTES    (128 << 10)
#define MRI_LANE_SEGMENTS 256

/* A scan without entry points is read in pieces, one a lane; blocks that a piece has room for. */
#define MRI_LANE_PIECES       32
#define MRI_LANE_PIECE_BLOCKS 512

#define MRI_LANE_SPARE                                                                                       \
    8 /* index of coefficients that nobody reads, in a block before the first segment's                      \
       */

/* One load gives both words. */
typedef struct mri_lane_entry {
    uint32_t how;    /* as above */
    uint32_t values; /* 4 signed bytes: coefficients from the first one on */
} mri_lane_entry;

typedef struct mri_lane_tables {
    _Alignas(64) mri_lane_entry entry[MRI_LANE_PARKED + 33];
    uint32_t long_at[MRI_LANE_TABLES]; /* index of window 0 of the long codes, modulo 2^32 */
    mri_huff_codes ac[MRI_LANE_TABLES], dc[MRI_LANE_TABLES], skim[MRI_LANE_TABLES]; /* their codes */
} mri_lane_tables;

/* Tables of one set, made anew when they are of other codes. */
void mri_lane_tables_ac(mri_lane_tables *t, uint32_t set, const mri_huff_codes *codes);
void mri_lane_tables_dc(mri_lane_tables *t, uint32_t set, const mri_huff_codes *codes);
/* More of AC: all symbols whose codes are in a window, without their values. */
void mri_lane_tables_skim(mri_lane_tables *t, uint32_t set, const mri_huff_codes *codes);

typedef struct mri_lane_segment {
    uint32_t bit, end_bit; /* of bytes[]; where it begins, and where the next one does */
    uint32_t at, end;      /* its coefficients; a block of spare ones follows */
    uint32_t from, to;     /* MCU columns */
    int32_t dc[MRI_JPEG_ENTRY_COMPONENTS], next_dc[MRI_JPEG_ENTRY_COMPONENTS];
    bool whole; /* it ends at an entry point, with which we compare */
    bool good;
} mri_lane_segment;

/* State of an MCU: 2 * block + (1 in its AC part). */
#define MRI_LANE_STATES 16

/* 16 lanes, between two runs of the loop. */
typedef struct mri_lane_group {
    _Alignas(64) uint32_t byte[16], used[16]; /* place: 8 * byte + used, used below 8 */
    _Alignas(64) uint32_t at[16], end[16];    /* next coefficient; where the segment's end */
    _Alignas(64) uint32_t state[16], table[16];
    uint32_t segment[16];
    uint16_t ac, live; /* bits of lanes: in the AC part; at work */
} mri_lane_group;

/* Where lanes were at the starts of MCUs, in the order in which they came there. */
#define MRI_LANE_LOG 16384
typedef struct mri_lane_log {
    uint32_t count;
    _Alignas(64) uint32_t lane[MRI_LANE_LOG + 64], bit[MRI_LANE_LOG + 64];
    uint32_t at[MRI_LANE_LOG + 64];                            /* when storing: coefficient */
    int32_t sum[MRI_JPEG_ENTRY_COMPONENTS][MRI_LANE_LOG + 64]; /* when skimming: of DC differences since the
                                                                  lane's start */
} mri_lane_log;

/* More of a group when it reads one scan in many places (lanes_ahead.c). `end` of the group is a byte; `at`,
 * when skimming, the place in the block. */
typedef struct mri_lane_ahead {
    _Alignas(64) int32_t sum[MRI_JPEG_ENTRY_COMPONENTS][16];
    _Alignas(64) uint32_t full[16]; /* storing: a lane that begins an MCU at this coefficient or later stops
                                     */
} mri_lane_ahead;

/* Rows of a batch. */
typedef struct mri_lane_rows {
    uint32_t first, count, left; /* left: not stored yet */
    uint32_t end[MRI_LANE_ROWS]; /* segments up to the end of each row */
} mri_lane_rows;

/* DC alone, where nothing else is wanted. */
typedef struct mri_lane_dc {
    bool only;
    int16_t of[MRI_LANE_PIECES * MRI_LANE_PIECE_BLOCKS + 1]; /* each block's, in place of coef[] */
} mri_lane_dc;

struct mri_lanes {
    mri_lane_tables table;
    mri_lanes_picture picture;
    /* by state: its table; the next state and its table; its tables of single symbols and of long codes */
    _Alignas(64) uint32_t table_of[MRI_LANE_STATES], next[MRI_LANE_STATES], next_table[MRI_LANE_STATES];
    _Alignas(64) uint32_t careful[MRI_LANE_STATES], longer[MRI_LANE_STATES];
    _Alignas(64) uint32_t component_of[MRI_LANE_STATES]; /* of the scan, for skimming */
    mri_lane_group group[2];
    mri_lane_ahead ahead[2];
    mri_lane_log log;
    uint32_t order[MRI_LANE_LOG + 64]; /* records of the log by lane */
    /* MCUs [mcu_first, mcu_first + mcu_count) were decoded ahead: their coefficients, in MCU's order */
    uint64_t mcu_first;
    uint32_t mcu_count, piece_count; /* piece_count: lanes that stored */
    uint32_t mcu[MRI_LANE_PIECES * MRI_LANE_PIECE_BLOCKS];
    double block_bytes;  /* of the MCUs decoded ahead last; 0: unknown */
    uint32_t byte_limit; /* no lane reads from beyond: 8 bytes follow */
    mri_lane_rows rows;
    uint32_t segment_count, segment_next;
    mri_lane_segment segment[MRI_LANE_SEGMENTS];
    mri_lane_dc dc;
    /* zero but while a batch is there */
    _Alignas(64) int16_t coef[(MRI_LANE_PIECES * MRI_LANE_PIECE_BLOCKS + 1) * MRI_JPEG_BLOCK];
    uint8_t bytes[MRI_LANE_BYTES + 2 * MRI_UNSTUFF_SLACK];
};

/* Forget a batch. */
void mri_lanes_clear(mri_lanes *l);
/* Tables of the open picture; skim: values of AC coefficients are not needed. */
void mri_lanes_set_tables(mri_lanes *l, bool skim);
/* Of the lanes in `which`: those in `hard` read a symbol; those whose segment is over take the next one. */
void mri_lanes_attend(mri_lanes *l, mri_lane_group *g, uint32_t hard, uint32_t which);

void mri_lanes_run_avx512(mri_lanes *l, uint32_t groups);
/* Both groups read ahead, each lane up to the first MCU at or after its byte `end`, and log where MCUs begin:
 * a lane stops after the round with the DC symbol of that MCU. */
void mri_lanes_skim_avx512(mri_lanes *l);
void mri_lanes_ahead_avx512(mri_lanes *l); /* stores coefficients */
/* While reading ahead, the lanes in `hard` read a symbol, or begin anew. */
void mri_lanes_ahead_hard(mri_lanes *l, uint32_t group, uint32_t hard, bool store);
/* Forget the blocks that were decoded ahead. */
void mri_lanes_clear_ahead(mri_lanes *l);
/* Blocks of one segment to their places; adds up the DC differences in dc. Leaves zeros behind. */
void mri_lanes_store_avx512(mri_lanes *l, const mri_lane_segment *s, const mri_run_block *block, int32_t *dc);
/* MCUs whose coefficients begin at mcu[], of columns [from, from + count); DC is summed up already. */
void mri_lanes_store_ahead_avx512(const mri_lanes *l, const uint32_t *mcu, uint32_t from, uint32_t count,
                                  const mri_run_block *block);

#endif
