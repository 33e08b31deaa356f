/** The smallest relative increase of a double. */
const STEP = 2 ** -52

/**
 * Returns `time + duration`, never rounded down: a permit that returns too early by a rounding error would be one too
 * many in some window.
 */
export function addRoundedUp(time: number, duration: number): number {
  const sum = time + duration
  // The exact rounding error of the addition (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B).
  const added = sum - time
  const lost = time - (sum - added) + (duration - added)
  return lost > 0 ? sum + Math.abs(sum) * STEP : sum
}
