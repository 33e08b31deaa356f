/** The least part by which a double can grow. */
const STEP = 2 ** -52

/**
 * `time + duration`, never rounded down: a permit that comes back a rounding error too early would be one too many in
 * some window.
 */
export function addRoundedUp(time: number, duration: number): number {
  const sum = time + duration
  // What the addition lost, exactly (Knuth, The Art of Computer Programming 2, 4.2.2, theorem B).
  const added = sum - time
  const lost = time - (sum - added) + (duration - added)
  return lost > 0 ? sum + Math.abs(sum) * STEP : sum
}
