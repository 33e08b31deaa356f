/**
 * How much a sender may have under way to one receiver, counted in units that both sides reckon alike. The system's
 * buffer for a socket holds some 270 small messages or 200 KB; staying below that, a write never has to wait for a
 * receiver that doesn't read, so it neither takes up memory nor keeps a finished process alive.
 */
export const WINDOW = 128
/** The receiver sends one byte back for so many units read. */
export const STEP = 16

/** The units of a frame: the system's own record for each piece counts as much as a kilobyte. */
export function unitsOf(size: number): number {
  return 1 + (size >> 10)
}
