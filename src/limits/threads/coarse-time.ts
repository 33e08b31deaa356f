/**
 * Turns milliseconds into the coarse times of shared memory, sixteenths of a second: 31 bits of them last for four
 * years.
 */
export const COARSE = 16 / 1000
