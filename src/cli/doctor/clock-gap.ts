import { shortDuration } from '../short-duration.js'

/** Clocks that are kept by NTP differ by less: milliseconds. */
const TOLERANCE = 1000

/**
 * How much a server's clock is ahead of this machine's, or behind it, in words; undefined when that is not known, or no more
 * than NTP leaves.
 * @param ahead milliseconds. @param uncertainty how far that may be wrong: milliseconds.
 */
export function clockGap(ahead: number | undefined, uncertainty: number): string | undefined {
  if (ahead === undefined || Math.abs(ahead) <= TOLERANCE + uncertainty) return undefined
  return `${shortDuration(Math.abs(ahead))} ${ahead > 0 ? 'ahead of' : 'behind'} this machine's`
}
