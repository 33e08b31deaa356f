import { shortDuration } from '../../duration.js'
import type { Finding } from '../diagnosis.js'

/** Clocks that are synchronized by NTP differ by less: milliseconds. */
const TOLERANCE = 1000

/** What is known of a server's clock. */
export interface ClockFacts {
  /** How far it is ahead of this machine's: milliseconds; undefined when it can't be read. */
  readonly ahead: number | undefined
  /** The largest error of that offset: milliseconds. */
  readonly uncertainty: number
}

/**
 * A finding when a server's clock differs by more than clocks that are synchronized by NTP.
 * @param promises which are weakened. @param how tells what can happen, given the difference in words.
 */
export function clockFindings(
  { ahead, uncertainty }: ClockFacts,
  promises: Finding['promises'],
  how: (gap: string) => string,
): Finding[] {
  if (ahead === undefined || Math.abs(ahead) <= TOLERANCE + uncertainty) return []
  const gap = `${shortDuration(Math.abs(ahead))} ${ahead > 0 ? 'ahead of' : 'behind'} this machine's`
  return [{ id: 'clock', promises, how: how(gap), mend: 'let NTP keep all clocks, in small steps' }]
}

/** A server's clock, for the end of a line of facts; empty when the clock can't be read. */
export function clockFact({ ahead }: Pick<ClockFacts, 'ahead'>): string {
  if (ahead === undefined) return ''
  return `, clock ${shortDuration(Math.abs(ahead))} ${ahead < 0 ? 'behind' : 'ahead'}`
}
