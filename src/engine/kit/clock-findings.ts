import { shortDuration } from '../../base/duration.js'
import type { Finding } from '../diagnosis.js'

/** Clocks that NTP synchronizes differ by less, in milliseconds. */
const TOLERANCE = 1000

/** The offset of a server's clock. */
export interface ClockFacts {
  /** How far it is ahead of this machine's clock, in milliseconds; undefined if it can't be read. */
  readonly ahead: number | undefined
  /** The largest error of that offset, in milliseconds. */
  readonly uncertainty: number
}

/**
 * Returns a finding if a server's clock differs by more than NTP allows.
 * @param promises the weakened promises. @param how describes what can happen, given the difference in words.
 */
export function clockFindings(
  { ahead, uncertainty }: ClockFacts,
  promises: Finding['promises'],
  how: (gap: string) => string,
): Finding[] {
  if (ahead === undefined || Math.abs(ahead) <= TOLERANCE + uncertainty) return []
  const gap = `${shortDuration(Math.abs(ahead))} ${ahead > 0 ? 'ahead of' : 'behind'} this machine's`
  return [{ id: 'clock', promises, how: how(gap), fix: 'synchronize all clocks with NTP, which slews them' }]
}

/** The offset of a server's clock as the end of a line of facts; empty if it can't be read. */
export function clockFact({ ahead }: Pick<ClockFacts, 'ahead'>): string {
  if (ahead === undefined) return ''
  return `, clock ${shortDuration(Math.abs(ahead))} ${ahead < 0 ? 'behind' : 'ahead'}`
}
